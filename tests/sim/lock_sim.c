/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the table of locks decides exactly as the rule in README-locks.md says, and does nothing else.
 * Method: a million random requests, releases, withdrawals, timeouts, moves, deaths, and some of them at one moment, beside a model that knows
 * nothing of marks, counts or queues: a list of locks, a list of waiting requests, and the rule "two locks
 * conflict when one resource is the other or lies above it and their modes do not go together". After each step what
 * the table granted, and in which order, must be what the model grants; circles that the table reports must be circles
 * in the model, their victim the youngest, and the model must have none left. Now and then the table is written as bytes, and goes on as
 * what is read of them, in which nothing may be otherwise.
 *
 * usage: lock_sim [SEED [STEPS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rand.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"

enum {
    OWNERS = 12, /* sessions, the first half; transactions of sessions or of none */
    WRITES = 10, /* of their own, each ends with its grant */
    ACTORS = OWNERS + WRITES,
    WANTS_MAX = 3,
    REQUESTS_MAX = 40,
    LOCKS_MAX = 400,
    PLACES_MAX = ACTORS * 8,
    DIRECTORIES = 7,
    DOCUMENTS = 6,
};

#define CHECK(sim, e) ((e) ? (void)0 : failed(sim, #e, __LINE__))

/* --- The world: one index, a few directories, documents that move between them ------------------------------------ */

enum thing_kind { THING_ALL, THING_INDEX, THING_DIRECTORY, THING_DOCUMENT };

struct thing {
    enum thing_kind kind;
    int number; /* of the index, directory or document */
};

static const char *const directory_paths[DIRECTORIES] = {"/", "/a", "/b", "/a/x", "/a//y/", "/b/x", "/a/x/deep"};
static const int directory_parents[DIRECTORIES] = {-1, 0, 0, 1, 1, 2, 3};
static const char *const document_ids[DOCUMENTS] = {"0", "1", "2", "3", "4", "5"};

struct model_want {
    struct thing on;
    enum lock_mode mode;
    bool within;
};

struct model_lock {
    int owner;
    struct thing on;
    enum lock_mode mode;
    bool place; /* of something within a directory: in the way only of locks on that and above */
};

struct model_request {
    int owner;
    uint64_t arrival;
    bool upgrade;
    tl_ts deadline;
    struct model_want wants[WANTS_MAX];
    size_t want_count;
    struct lock_request *real;
};

struct actor {
    struct lock_owner owner;
    int session; /* -1: none */
    uint64_t born;
    bool alive;
    bool first; /* it is what an ended session left */
};

struct sim {
    uint64_t seed;
    uint64_t step;
    const char *doing;
    struct rng rng;
    tl_ts ts;
    struct lock_table table;
    struct actor actors[ACTORS];
    int places[DOCUMENTS]; /* directory of each, -1: none */
    struct model_lock locks[LOCKS_MAX];
    size_t lock_count;
    struct model_request *waiting[REQUESTS_MAX]; /* in no order */
    size_t waiting_count;
    struct model_request *expected[REQUESTS_MAX]; /* granted by the model, to be granted by the table */
    size_t expected_count;
    struct model_request *ended[REQUESTS_MAX]; /* by a deadlock */
    size_t ended_count;
    uint64_t last_arrival;
    uint64_t last_born;
    uint64_t granted, waited, deadlocks, requeues, moves, deaths, written;
};

static _Noreturn void failed(const struct sim *sim, const char *expression, int line)
{
    fprintf(stderr, "lock_sim: seed %llu step %llu (%s) line %d: %s\n", (unsigned long long)sim->seed,
            (unsigned long long)sim->step, sim->doing, line, expression);
    abort();
}

static int roll(struct sim *sim, int bound)
{
    return (int)rng_below(&sim->rng, (uint64_t)bound);
}

/* --- The rule ----------------------------------------------------------------------------------------------------- */

static bool go_together(enum lock_mode a, enum lock_mode b)
{
    return a != LOCK_X && b != LOCK_X && !(a == LOCK_U && b == LOCK_U);
}

static bool directory_covers(int above, int directory)
{
    while (directory >= 0 && directory != above)
        directory = directory_parents[directory];
    return directory == above;
}

static bool covers(const struct sim *sim, struct thing above, struct thing thing)
{
    switch (above.kind) {
    case THING_ALL: return true;
    case THING_INDEX: return thing.kind != THING_ALL;
    case THING_DIRECTORY: {
        int at = thing.kind == THING_DIRECTORY ? thing.number : -1;
        if (thing.kind == THING_DOCUMENT)
            at = sim->places[thing.number];
        return at >= 0 && directory_covers(above.number, at);
    }
    case THING_DOCUMENT: return thing.kind == THING_DOCUMENT && thing.number == above.number;
    }
    return false;
}

static bool against(const struct sim *sim, struct thing a, enum lock_mode mode_a, bool place_a, struct thing b,
                    enum lock_mode mode_b, bool place_b)
{
    if (go_together(mode_a, mode_b) || (place_a && place_b))
        return false;
    return (!place_a && covers(sim, a, b)) || (!place_b && covers(sim, b, a));
}

static bool passes(const struct sim *sim, int asker, int holder)
{
    return asker == holder || sim->actors[asker].session == holder;
}

static int rank(const struct sim *sim, const struct model_request *request)
{
    return sim->actors[request->owner].first ? 0 : request->upgrade ? 1 : 2;
}

static bool is_ahead(const struct sim *sim, const struct model_request *a, const struct model_request *b)
{
    int x = rank(sim, a), y = rank(sim, b);
    return x != y ? x < y : a->arrival < b->arrival;
}

static bool request_against_lock(const struct sim *sim, const struct model_request *request,
                                 const struct model_lock *lock)
{
    if (passes(sim, request->owner, lock->owner))
        return false;
    for (size_t i = 0; i < request->want_count; i++)
        if (against(sim, request->wants[i].on, request->wants[i].mode, request->wants[i].within, lock->on, lock->mode,
                    lock->place))
            return true;
    return false;
}

static bool request_against_request(const struct sim *sim, const struct model_request *request,
                                    const struct model_request *other)
{
    if (passes(sim, request->owner, other->owner))
        return false;
    for (size_t i = 0; i < request->want_count; i++)
        for (size_t j = 0; j < other->want_count; j++)
            if (against(sim, request->wants[i].on, request->wants[i].mode, request->wants[i].within, other->wants[j].on,
                        other->wants[j].mode, other->wants[j].within))
                return true;
    return false;
}

/* Whether a request waits for what somebody holds whom `asker` passes: then it is no obstacle to him. */
static bool waits_behind(const struct sim *sim, const struct model_request *request, int asker)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        if (passes(sim, asker, sim->locks[i].owner) && request_against_lock(sim, request, &sim->locks[i]))
            return true;
    return false;
}

/* Whether q stands in the way of r by its place in the queue. */
static bool stands_before(const struct sim *sim, const struct model_request *q, const struct model_request *r)
{
    return q != r && is_ahead(sim, q, r) && request_against_request(sim, r, q) && !waits_behind(sim, q, r->owner);
}

static bool model_grantable(const struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        if (request_against_lock(sim, request, &sim->locks[i]))
            return false;
    for (size_t i = 0; i < sim->waiting_count; i++)
        if (stands_before(sim, sim->waiting[i], request))
            return false;
    return true;
}

static bool model_is_upgrade(const struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->lock_count; i++) {
        const struct model_lock *lock = &sim->locks[i];
        if (lock->place || !passes(sim, request->owner, lock->owner))
            continue;
        for (size_t j = 0; j < request->want_count; j++)
            if (covers(sim, lock->on, request->wants[j].on))
                return true;
    }
    return false;
}

/* --- The model's state -------------------------------------------------------------------------------------------- */

static bool same(struct thing a, struct thing b)
{
    return a.kind == b.kind && a.number == b.number;
}

static struct model_lock *model_lock(struct sim *sim, int owner, struct thing on)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        if (sim->locks[i].owner == owner && !sim->locks[i].place && same(sim->locks[i].on, on))
            return &sim->locks[i];
    return NULL;
}

static void model_grant(struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < request->want_count; i++) {
        const struct model_want *want = &request->wants[i];
        struct model_lock *lock = want->within ? NULL : model_lock(sim, request->owner, want->on);
        if (lock != NULL) {
            lock->mode = want->mode > lock->mode ? want->mode : lock->mode;
            continue;
        }
        CHECK(sim, sim->lock_count < LOCKS_MAX);
        sim->locks[sim->lock_count++] = (struct model_lock){request->owner, want->on, want->mode, want->within};
    }
}

static void model_forget_waiting(struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->waiting_count; i++)
        if (sim->waiting[i] == request) {
            sim->waiting[i] = sim->waiting[--sim->waiting_count];
            return;
        }
    CHECK(sim, false);
}

static bool model_is_waiting(const struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->waiting_count; i++)
        if (sim->waiting[i] == request)
            return true;
    return false;
}

static size_t model_release(struct sim *sim, int owner, const struct thing *on)
{
    size_t released = 0;
    for (size_t i = 0; i < sim->lock_count;) {
        struct model_lock *lock = &sim->locks[i];
        if (lock->owner == owner && (on == NULL || (!lock->place && same(lock->on, *on)))) {
            released += !lock->place;
            sim->locks[i] = sim->locks[--sim->lock_count];
        } else {
            i++;
        }
    }
    return released;
}

/* Grants the foremost of what can be granted. */
static bool model_settle_one(struct sim *sim)
{
    struct model_request *best = NULL;
    for (size_t i = 0; i < sim->waiting_count; i++)
        if ((best == NULL || is_ahead(sim, sim->waiting[i], best)) && model_grantable(sim, sim->waiting[i]))
            best = sim->waiting[i];
    if (best == NULL)
        return false;
    model_forget_waiting(sim, best);
    model_grant(sim, best);
    sim->expected[sim->expected_count++] = best;
    return true;
}

static void model_settle(struct sim *sim)
{
    while (model_settle_one(sim))
        ;
}

/* In the midst of a call: grants as many as the table has granted until now. */
static void model_catch_up(struct sim *sim)
{
    size_t granted = 0;
    list_for_each(link, &sim->table.granted) granted++;
    while (sim->expected_count < granted)
        CHECK(sim, model_settle_one(sim));
}

/* --- Circles ------------------------------------------------------------------------------------------------------ */

/*
 * Whether r depends on q: q is ahead and in the way, or what conflicts with r is held by q's owner, its session, or a ward of
 * q's owner, whom only his client ends: so r may depend on itself.
 */
static bool depends(const struct sim *sim, const struct model_request *r, const struct model_request *q)
{
    if (stands_before(sim, q, r))
        return true;
    for (size_t i = 0; i < sim->lock_count; i++) {
        int holder = sim->locks[i].owner;
        if ((q->owner == holder || sim->actors[q->owner].session == holder ||
             (holder < OWNERS && sim->actors[holder].session == q->owner)) &&
            request_against_lock(sim, r, &sim->locks[i]))
            return true;
    }
    return false;
}

/* No circle: requests can be taken away one by one, each when it depends on none that is left. */
static bool model_has_circle(const struct sim *sim)
{
    bool gone[REQUESTS_MAX] = {false};
    size_t left = sim->waiting_count;
    for (bool progress = true; progress && left > 0;) {
        progress = false;
        for (size_t i = 0; i < sim->waiting_count; i++) {
            bool free = !gone[i];
            for (size_t j = 0; free && j < sim->waiting_count; j++)
                free = gone[j] || !depends(sim, sim->waiting[i], sim->waiting[j]);
            if (free) {
                gone[i] = true;
                left--;
                progress = true;
            }
        }
    }
    return left > 0;
}

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                        bool requeued)
{
    struct sim *sim = context;
    struct model_request *ended = lock_request_user(victim);
    model_catch_up(sim);
    CHECK(sim, !sim->actors[ended->owner].first);
    for (size_t i = 0; i < count; i++) {
        const struct model_request *from = lock_request_user(steps[i].request);
        const struct model_request *to = lock_request_user(steps[(i + 1) % count].request);
        CHECK(sim, model_is_waiting(sim, from) && depends(sim, from, to));
        CHECK(sim, sim->actors[from->owner].first || sim->actors[from->owner].born <= sim->actors[ended->owner].born);
    }
    if (requeued) {
        CHECK(sim, ended->owner >= OWNERS);
        ended->arrival = ++sim->last_arrival;
        sim->requeues++;
        return;
    }
    model_forget_waiting(sim, ended);
    sim->ended[sim->ended_count++] = ended;
    sim->deadlocks++;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static struct resource_name name_of(const struct sim *sim, struct thing thing)
{
    struct resource_name name = {0};
    if (thing.kind != THING_ALL)
        name.index = SLICE_LIT("fs");
    if (thing.kind == THING_DIRECTORY)
        name.path = slice_from(directory_paths[thing.number]);
    if (thing.kind == THING_DOCUMENT) {
        name.type = SLICE_LIT("_doc");
        name.id = slice_from(document_ids[thing.number]);
        if (sim->places[thing.number] >= 0)
            name.path = slice_from(directory_paths[sim->places[thing.number]]);
    }
    return name;
}

static struct thing random_thing(struct sim *sim)
{
    int pick = roll(sim, 40);
    if (pick == 0)
        return (struct thing){THING_ALL, 0};
    if (pick < 3)
        return (struct thing){THING_INDEX, 0};
    if (pick < 17)
        return (struct thing){THING_DIRECTORY, roll(sim, DIRECTORIES)};
    return (struct thing){THING_DOCUMENT, roll(sim, DOCUMENTS)};
}

static void actor_start(struct sim *sim, int actor, int session)
{
    struct actor *a = &sim->actors[actor];
    *a = (struct actor){.session = session, .born = ++sim->last_born, .alive = true};
    lock_owner_init(&sim->table, &a->owner, session < 0 ? NULL : &sim->actors[session].owner, a);
    a->owner.autocommit = actor >= OWNERS;
    a->first = a->owner.cleanup = actor >= OWNERS && session < 0 && roll(sim, 4) == 0;
}

static void actor_end(struct sim *sim, int actor)
{
    lock_owner_deinit(&sim->actors[actor].owner);
    sim->actors[actor].alive = false;
}

static void request_done(struct model_request *request)
{
    lock_request_free(request->real);
    free(request);
}

/* A write of its own runs when it is granted and is over. */
static void write_done(struct sim *sim, int actor)
{
    model_release(sim, actor, NULL);
    lock_release_all(&sim->table, &sim->actors[actor].owner);
    actor_end(sim, actor);
}

/* The token is its owner's alone; it is stale already when a later grant to him has changed the lock. */
static void check_token(struct sim *sim, const struct model_request *request)
{
    const struct lock_owner *mine = &sim->actors[request->owner].owner;
    tl_ts token = lock_request_token(request->real);
    if (mine->autocommit) {
        CHECK(sim, token == TL_TS_NONE);
        return;
    }
    CHECK(sim, token <= lock_table_last_ts(&sim->table));
    for (size_t i = 0; i < request->want_count; i++) {
        if (request->wants[i].within)
            continue;
        struct resource_name name = name_of(sim, request->wants[i].on);
        struct lock_owner *owner = NULL;
        bool found = lock_table_find_token(&sim->table, token, &name, &owner);
        CHECK(sim, found ? owner == mine : token < lock_table_last_ts(&sim->table));
        CHECK(sim, !lock_table_find_token(&sim->table, lock_table_last_ts(&sim->table) + 1, &name, NULL));
    }
}

static bool drain_one(struct sim *sim)
{
    struct lock_request *real = lock_table_next_victim(&sim->table);
    if (real != NULL) {
        struct model_request *request = lock_request_user(real);
        CHECK(sim, sim->ended_count > 0 && sim->ended[0] == request);
        memmove(sim->ended, sim->ended + 1, --sim->ended_count * sizeof sim->ended[0]);
        int actor = request->owner;
        request_done(request);
        if (actor >= OWNERS)
            actor_end(sim, actor);
        return true;
    }
    real = lock_table_next_granted(&sim->table);
    if (real == NULL)
        return false;
    struct model_request *request = lock_request_user(real);
    CHECK(sim, sim->expected_count > 0 && sim->expected[0] == request);
    memmove(sim->expected, sim->expected + 1, --sim->expected_count * sizeof sim->expected[0]);
    int actor = request->owner;
    check_token(sim, request);
    request_done(request);
    if (actor >= OWNERS)
        write_done(sim, actor);
    return true;
}

/* Fetches what the table did, which must be what the model did. */
static void drain(struct sim *sim)
{
    do
        model_settle(sim);
    while (drain_one(sim));
    CHECK(sim, sim->expected_count == 0 && sim->ended_count == 0);
}

static void fill_lock_request(struct sim *sim, struct model_request *request)
{
    request->want_count = 1 + (size_t)(roll(sim, 3) == 0 ? roll(sim, WANTS_MAX) : 0);
    for (size_t i = 0; i < request->want_count; i++)
        request->wants[i] =
            (struct model_want){random_thing(sim), (enum lock_mode)(LOCK_S + roll(sim, LOCK_MODE_COUNT - 1)), false};
}

/* A write wants its document, and perhaps a new place for it. */
static void fill_write_request(struct sim *sim, struct model_request *request)
{
    request->want_count = 1;
    request->wants[0] = (struct model_want){{THING_DOCUMENT, roll(sim, DOCUMENTS)}, LOCK_X, false};
    if (roll(sim, 3) == 0) {
        request->want_count = 2;
        request->wants[1] = (struct model_want){{THING_DIRECTORY, roll(sim, DIRECTORIES)}, LOCK_X, true};
    }
}

static void make_real(struct sim *sim, struct model_request *request)
{
    struct lock_spec wants[WANTS_MAX];
    for (size_t i = 0; i < request->want_count; i++)
        wants[i] =
            (struct lock_spec){name_of(sim, request->wants[i].on), request->wants[i].mode, request->wants[i].within};
    request->real =
        lock_request_new(&sim->table, &sim->actors[request->owner].owner, wants, request->want_count, request);
}

/* Who asks whoever waits is told of what others hold and what ended sessions left, and of nothing else. */
static void check_unheld_for(struct sim *sim, const struct model_request *request)
{
    int session = sim->actors[request->owner].session;
    bool unheld = true, held = false;
    for (size_t i = 0; i < request->want_count; i++) {
        struct lock_spec want = {name_of(sim, request->wants[i].on), request->wants[i].mode, request->wants[i].within};
        unheld = unheld && lock_table_can_grant_ignoring_waiters(&sim->table, session < 0 ? NULL : &sim->actors[session].owner, &want);
    }
    for (size_t i = 0; i < sim->lock_count; i++)
        held = held || request_against_lock(sim, request, &sim->locks[i]);
    for (size_t i = 0; i < sim->waiting_count; i++)
        held = held ||
               (sim->actors[sim->waiting[i]->owner].first && request_against_request(sim, request, sim->waiting[i]) &&
                (session < 0 || !waits_behind(sim, sim->waiting[i], session)));
    CHECK(sim, unheld == !held);
}

/* The short path must agree with the rule. */
static void check_free_for(struct sim *sim, const struct model_request *request)
{
    int session = sim->actors[request->owner].session;
    struct lock_owner *owner = session < 0 ? NULL : &sim->actors[session].owner;
    bool free = true;
    for (size_t i = 0; i < request->want_count; i++) {
        struct lock_spec want = {name_of(sim, request->wants[i].on), request->wants[i].mode, request->wants[i].within};
        free = free && lock_table_can_grant(&sim->table, owner, &want);
    }
    /* It may say no where a waiting request of its own session, or one behind an upgrade, is all there is. */
    CHECK(sim, !free || model_grantable(sim, request));
    check_unheld_for(sim, request);
}

static void end_refused(struct sim *sim, struct model_request *request)
{
    int actor = request->owner;
    request_done(request);
    if (actor >= OWNERS)
        actor_end(sim, actor);
}

static void start(struct sim *sim, struct model_request *request, bool wait)
{
    request->arrival = ++sim->last_arrival;
    request->upgrade = model_is_upgrade(sim, request);
    make_real(sim, request);
    if (request->owner >= OWNERS)
        check_free_for(sim, request);
    bool grantable = model_grantable(sim, request);
    if (grantable)
        model_grant(sim, request);
    else if (wait)
        sim->waiting[sim->waiting_count++] = request;
    int outcome = lock_request_start(request->real, wait);
    if (grantable) /* what was in the way of its own is so no more */
        model_settle(sim);
    CHECK(sim, grantable == (outcome == LOCK_GRANTED) || (outcome == LOCK_GRANTED && sim->ended_count > 0) ||
                   (outcome == LOCK_GRANTED && wait));
    if (outcome == LOCK_CONFLICT) {
        struct lock_conflict conflicts[4];
        CHECK(sim, lock_request_conflicts(request->real, conflicts, 4) > 0);
        end_refused(sim, request);
    } else if (outcome == LOCK_DEADLOCK) {
        /* It was told first, and others may have been ended before it. */
        size_t at = 0;
        while (at < sim->ended_count && sim->ended[at] != request)
            at++;
        CHECK(sim, at < sim->ended_count);
        memmove(sim->ended + at, sim->ended + at + 1, (--sim->ended_count - at) * sizeof sim->ended[0]);
        model_settle(sim);
        end_refused(sim, request);
    } else if (outcome == LOCK_WAITS) {
        sim->waited++;
    } else {
        if (!grantable) {
            model_settle(sim);
            CHECK(sim, sim->expected_count > 0);
            size_t at = 0;
            while (at < sim->expected_count && sim->expected[at] != request)
                at++;
            CHECK(sim, at < sim->expected_count);
            memmove(sim->expected + at, sim->expected + at + 1, (--sim->expected_count - at) * sizeof sim->expected[0]);
        }
        sim->granted++;
        int actor = request->owner;
        check_token(sim, request);
        request_done(request);
        if (actor >= OWNERS)
            write_done(sim, actor);
    }
}

/* Of few owners in some seeds, of many in others: so that locks are free here and crowded there. */
static int random_owner(struct sim *sim)
{
    int active = 2 + (int)(sim->seed % (OWNERS - 1));
    return (roll(sim, active) * 5 + (int)(sim->seed % OWNERS)) % OWNERS;
}

static void step_acquire(struct sim *sim)
{
    int actor = random_owner(sim);
    if (sim->waiting_count + ACTORS >= REQUESTS_MAX || sim->lock_count + 40 >= LOCKS_MAX)
        return;
    struct model_request *request = calloc(1, sizeof *request);
    request->owner = actor;
    request->deadline = sim->ts + (tl_ts)roll(sim, 60);
    fill_lock_request(sim, request);
    start(sim, request, roll(sim, 5) > 0);
}

static void step_write(struct sim *sim)
{
    int actor = OWNERS + roll(sim, WRITES);
    if (sim->actors[actor].alive || sim->waiting_count + 1 >= REQUESTS_MAX)
        return;
    actor_start(sim, actor, roll(sim, 2) ? roll(sim, OWNERS / 2) : -1);
    struct model_request *request = calloc(1, sizeof *request);
    request->owner = actor;
    request->deadline = sim->ts + (tl_ts)roll(sim, 60);
    fill_write_request(sim, request);
    start(sim, request, true);
}

static void step_release(struct sim *sim)
{
    int actor = roll(sim, OWNERS);
    if (roll(sim, 4) == 0) {
        size_t expected = model_release(sim, actor, NULL);
        CHECK(sim, lock_release_all(&sim->table, &sim->actors[actor].owner) == expected);
        return;
    }
    /* Mostly something that it holds. */
    struct thing thing = random_thing(sim);
    for (size_t i = 0; i < sim->lock_count; i++)
        if (sim->locks[i].owner == actor && !sim->locks[i].place && roll(sim, 3) > 0)
            thing = sim->locks[i].on;
    struct resource_name name = name_of(sim, thing);
    size_t expected = model_release(sim, actor, &thing);
    CHECK(sim, lock_release(&sim->table, &sim->actors[actor].owner, &name) == (expected > 0));
}

static void withdraw(struct sim *sim, struct model_request *request)
{
    int actor = request->owner;
    model_forget_waiting(sim, request);
    request_done(request);
    if (actor >= OWNERS)
        actor_end(sim, actor);
}

static void step_withdraw(struct sim *sim)
{
    if (sim->waiting_count > 0)
        withdraw(sim, sim->waiting[roll(sim, (int)sim->waiting_count)]);
}

static void step_time(struct sim *sim)
{
    sim->ts = lock_table_last_ts(&sim->table) + 1 + (tl_ts)roll(sim, 20);
    lock_table_set_ts(&sim->table, sim->ts);
    for (;;) {
        struct model_request *due = NULL;
        for (size_t i = 0; i < sim->waiting_count; i++) {
            struct model_request *request = sim->waiting[i];
            if (request->deadline <= sim->ts && (due == NULL || request->deadline < due->deadline ||
                                                 (request->deadline == due->deadline && is_ahead(sim, request, due))))
                due = request;
        }
        if (due == NULL)
            return;
        withdraw(sim, due);
        drain(sim);
    }
}

static void let_go(struct sim *sim, int actor)
{
    model_release(sim, actor, NULL);
    lock_release_all(&sim->table, &sim->actors[actor].owner);
    drain(sim);
    actor_end(sim, actor);
}

/* Everything of an owner and of those whose session it is ends. */
static void step_death(struct sim *sim)
{
    int actor = roll(sim, OWNERS);
    for (size_t i = 0; i < sim->waiting_count;) {
        struct model_request *request = sim->waiting[i];
        if (request->owner == actor || sim->actors[request->owner].session == actor) {
            withdraw(sim, request);
            drain(sim);
            i = 0;
        } else {
            i++;
        }
    }
    for (int ward = 0; ward < OWNERS; ward++)
        if (sim->actors[ward].session == actor)
            let_go(sim, ward);
    let_go(sim, actor);
    actor_start(sim, actor, sim->actors[actor].session);
    for (int ward = 0; ward < OWNERS; ward++)
        if (sim->actors[ward].session == actor)
            actor_start(sim, ward, actor);
    sim->deaths++;
}

static bool model_sound(const struct sim *sim)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct model_lock *a = &sim->locks[i];
            const struct model_lock *b = &sim->locks[j];
            if (!passes(sim, a->owner, b->owner) && !passes(sim, b->owner, a->owner) &&
                against(sim, a->on, a->mode, a->place, b->on, b->mode, b->place))
                return false;
        }
    return true;
}

/* Moves a document where no lock forbids it, as a write that was granted would. */
static void step_move(struct sim *sim)
{
    int document = roll(sim, DOCUMENTS);
    int before = sim->places[document];
    int after = roll(sim, DIRECTORIES + 1) - 1;
    struct resource_name name = name_of(sim, (struct thing){THING_DOCUMENT, document});
    sim->places[document] = after;
    if (!model_sound(sim)) {
        sim->places[document] = before;
        return;
    }
    struct slice path = after < 0 ? SLICE_NONE : slice_from(directory_paths[after]);
    lock_table_move_document(&sim->table, &name, path);
    sim->moves++;
}

/* Some of these at one moment: nobody is granted anything, or ended, before all is done. */
static void step_moment(struct sim *sim)
{
    static void (*const parts[])(struct sim *) = {step_release, step_release, step_withdraw, step_move};
    lock_table_suspend_grants(&sim->table);
    for (int count = 1 + roll(sim, 6); count > 0; count--)
        parts[roll(sim, 4)](sim);
    CHECK(sim, list_empty(&sim->table.granted) && list_empty(&sim->table.victims));
    lock_table_resume_grants(&sim->table);
}

/* --- As bytes ----------------------------------------------------------------------------------------------------- */

static void gather_parties(struct sim *sim, struct lock_codec_refs *parties, struct lock_owner **owners,
                           struct lock_request **requests)
{
    *parties = (struct lock_codec_refs){.owners = owners, .requests = requests, .request_count = sim->waiting_count};
    for (int i = 0; i < ACTORS; i++)
        if (sim->actors[i].alive)
            owners[parties->owner_count++] = &sim->actors[i].owner;
    for (size_t i = 0; i < sim->waiting_count; i++)
        requests[i] = sim->waiting[i]->real;
}

static struct buf write_table(struct sim *sim, struct lock_codec_refs *parties)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&bytes, 1);
    lock_codec_table(&codec, &sim->table, parties);
    return bytes;
}

/* The table goes, with its owners' parts in it; the owners are made anew. */
static void lose_table(struct sim *sim, struct lock_codec_refs *parties)
{
    struct lock_hooks hooks = sim->table.hooks;
    lock_codec_discard(&sim->table, parties);
    for (int i = ACTORS; i-- > 0;)
        if (sim->actors[i].alive)
            lock_owner_deinit(&sim->actors[i].owner);
    lock_table_deinit(&sim->table);
    lock_table_init(&sim->table, &hooks);
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &sim->actors[i];
        if (a->alive)
            lock_owner_init(&sim->table, &a->owner, a->session < 0 ? NULL : &sim->actors[a->session].owner, a);
    }
}

static void read_table(struct sim *sim, struct slice bytes, struct lock_codec_refs *parties, struct arena *arena)
{
    struct codec codec = codec_from(bytes, arena);
    lock_codec_table(&codec, &sim->table, parties);
    CHECK(sim, codec_done(&codec) && parties->request_count == sim->waiting_count);
}

/* What was cut off or has a bit flipped is refused, or is another table; either way it can be let go of. */
static void read_damaged(struct sim *sim, struct slice bytes, struct lock_codec_refs *parties)
{
    struct arena arena = ARENA_INIT;
    char *bytes_of = arena_alloc(&arena, bytes.len);
    bool cut = roll(sim, 3) == 0;
    memcpy(bytes_of, bytes.data, bytes.len);
    size_t at = (size_t)rng_below(&sim->rng, bytes.len);
    bytes_of[at] = (char)(bytes_of[at] ^ (cut ? 0 : 1 << roll(sim, 8)));
    struct codec codec = codec_from(slice_make(bytes_of, cut ? at : bytes.len), &arena);
    lock_codec_table(&codec, &sim->table, parties);
    CHECK(sim, !cut || !codec_done(&codec));
    lose_table(sim, parties);
    arena_deinit(&arena);
}

static void step_bytes(struct sim *sim)
{
    struct lock_owner *owners[ACTORS];
    struct lock_request *requests[REQUESTS_MAX];
    struct lock_codec_refs parties;
    struct arena arena = ARENA_INIT;
    gather_parties(sim, &parties, owners, requests);
    struct buf bytes = write_table(sim, &parties);
    lose_table(sim, &parties);
    for (int i = roll(sim, 4); i > 0; i--)
        read_damaged(sim, buf_as_slice(&bytes), &parties);
    read_table(sim, buf_as_slice(&bytes), &parties, &arena);
    for (size_t i = 0; i < sim->waiting_count; i++) {
        sim->waiting[i]->real = parties.requests[i];
        lock_request_set_user(parties.requests[i], sim->waiting[i]);
    }
    struct buf again = write_table(sim, &parties);
    CHECK(sim, slice_equal(buf_as_slice(&bytes), buf_as_slice(&again)));
    buf_deinit(&again);
    buf_deinit(&bytes);
    arena_deinit(&arena);
    sim->written++;
}

static void check(struct sim *sim)
{
    CHECK(sim, model_sound(sim));
    CHECK(sim, !model_has_circle(sim));
    CHECK(sim, sim->table.waiting_count == sim->waiting_count);
    size_t locks = 0;
    for (size_t i = 0; i < sim->lock_count; i++)
        locks += !sim->locks[i].place;
    CHECK(sim, sim->table.lock_count == locks);
    if (sim->step % 16 == 0)
        lock_table_check(&sim->table);
}

/* What a step does, and how often out of a hundred. */
static const struct {
    const char *name;
    int weight;
    void (*run)(struct sim *sim);
} kinds[] = {
    {"acquire", 30, step_acquire},  {"write", 20, step_write}, {"release", 24, step_release},
    {"withdraw", 4, step_withdraw}, {"time", 10, step_time},   {"move", 5, step_move},
    {"death", 3, step_death},       {"moment", 4, step_moment},
};
enum { BYTES_EVERY = 40 };

static void step(struct sim *sim)
{
    int pick = roll(sim, 100);
    size_t kind = 0;
    for (; pick >= kinds[kind].weight; kind++)
        pick -= kinds[kind].weight;
    sim->doing = kinds[kind].name;
    kinds[kind].run(sim);
    drain(sim);
    check(sim);
    if (roll(sim, BYTES_EVERY) > 0)
        return;
    sim->doing = "bytes";
    step_bytes(sim);
    check(sim);
}

static void run(uint64_t seed, uint64_t steps)
{
    struct sim *sim = calloc(1, sizeof *sim);
    sim->seed = seed;
    sim->ts = 1000;
    rng_init(&sim->rng, seed);
    lock_table_init(&sim->table, &(struct lock_hooks){.deadlock = on_deadlock, .context = sim});
    lock_table_set_ts(&sim->table, sim->ts);
    for (int i = 0; i < DOCUMENTS; i++)
        sim->places[i] = i % (DIRECTORIES + 1) - 1;
    for (int i = 0; i < OWNERS; i++) /* the second half are transactions, most of them of a session */
        actor_start(sim, i, i < OWNERS / 2 || i == OWNERS - 1 ? -1 : i - OWNERS / 2);
    for (sim->step = 0; sim->step < steps; sim->step++)
        step(sim);
    for (int i = 0; i < OWNERS * 40; i++) {
        step_death(sim);
        drain(sim);
    }
    while (sim->waiting_count > 0) {
        step_withdraw(sim);
        drain(sim);
    }
    for (int i = 0; i < OWNERS; i++) {
        model_release(sim, i, NULL);
        lock_release_all(&sim->table, &sim->actors[i].owner);
        drain(sim);
    }
    printf("seed %llu: %llu steps, %llu granted at once, %llu waited, %llu deadlocks, %llu requeued, %llu moves, "
           "%llu deaths, %llu times as bytes\n",
           (unsigned long long)seed, (unsigned long long)steps, (unsigned long long)sim->granted,
           (unsigned long long)sim->waited, (unsigned long long)sim->deadlocks, (unsigned long long)sim->requeues,
           (unsigned long long)sim->moves, (unsigned long long)sim->deaths, (unsigned long long)sim->written);
    lock_table_deinit(&sim->table);
    free(sim);
}

int main(int argc, char **argv)
{
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
    if (argc > 1) {
        run(strtoull(argv[1], NULL, 10), steps);
        return 0;
    }
    for (uint64_t seed = 1; seed <= 10; seed++)
        run(seed, steps);
    return 0;
}
