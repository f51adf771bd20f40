/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the lock table decides exactly by the rule in README-locks.md, and does nothing else.
 * Method: a million random requests, releases, withdrawals, undos, timeouts, moves and ends of owners,
 * some of them as one atomic change, are compared with a model. The model has no intention locks,
 * counts or queues: only a list of locks, a list of waiting requests, and the rule "two locks
 * conflict if one resource is the other or an ancestor of it and the modes are incompatible"; and of
 * each lock what its confirmed grants and each unconfirmed one give it. After
 * each step the table must have granted the same requests as the model, in the same order. A cycle
 * that the table reports must be a cycle in the model, with the youngest as the victim, and the
 * model must have no cycle left. From time to time the table is serialized and replaced by the
 * table that is read back, which must behave the same. Half of these times it is in pieces, of which
 * some are written ahead between any two steps; a chunk of holds is small.
 *
 * usage: lock_sim [--from SEED] [--seeds N] [--steps N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/rand.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/command/section.h"

enum {
    OWNERS = 12, /* the first half sessions, the others transactions of sessions or of none */
    WRITES = 10, /* autocommit writes; each ends with its grant */
    ACTORS = OWNERS + WRITES,
    WANTS_MAX = 3,
    REQUESTS_MAX = 40,
    UNCONFIRMED_MAX = 16,
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

struct model_spec {
    struct thing on;
    enum lock_mode mode;
    bool within;
    bool filed; /* the lock has an unconfirmed grant by it */
};

struct model_lock {
    int owner;
    struct thing on;
    enum lock_mode mode;
    /* an insert intention: conflicts only with locks on the directory and its ancestors */
    bool place;
    enum lock_mode confirmed_mode; /* without its unconfirmed grants; LOCK_NONE: no lock */
    tl_ts confirmed_token;
};

struct model_request {
    int owner;
    uint64_t arrival;
    bool upgrade;
    tl_ts deadline;
    bool stays; /* once granted after a wait it stays for a while, and may be undone */
    bool unconfirmed;
    struct model_spec specs[WANTS_MAX];
    size_t spec_count;
    struct lock_request *real;
    bool saved; /* a piece has its specs: their bytes had this checksum */
    uint32_t saved_crc;
};

struct actor {
    struct lock_owner owner;
    int session; /* -1: none */
    uint64_t born;
    bool alive;
    bool cleanup; /* makes a cleanup request */
};

struct sim {
    uint64_t seed;
    uint64_t step;
    const char *doing;
    struct rng rng;
    struct rng save_rng; /* when and how the table is saved in pieces */
    tl_ts ts;
    struct lock_table table;
    struct buf *pieces; /* by number; empty: no chunk has it */
    uint64_t last_piece;
    struct actor actors[ACTORS];
    int places[DOCUMENTS]; /* directory of each, -1: none */
    struct model_lock locks[LOCKS_MAX];
    size_t lock_count;
    struct model_request *waiting[REQUESTS_MAX]; /* in no order */
    size_t waiting_count;
    /* granted by the model, to be granted by the table */
    struct model_request *expected[REQUESTS_MAX];
    size_t expected_count;
    struct model_request *ended[REQUESTS_MAX]; /* deadlock victims */
    size_t ended_count;
    struct model_request *unconfirmed[UNCONFIRMED_MAX]; /* granted; in no order */
    size_t unconfirmed_count;
    /* of the waiting requests, while the table is serialized without them */
    struct slice specs[REQUESTS_MAX];
    bool without_specs;
    uint64_t last_arrival;
    uint64_t last_born;
    uint64_t granted, waited, deadlocks, requeues, moves, deaths, written, in_pieces, undone;
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

static bool are_compatible(enum lock_mode a, enum lock_mode b)
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

static bool conflicts(const struct sim *sim, struct thing a, enum lock_mode mode_a, bool insert_a, struct thing b,
                      enum lock_mode mode_b, bool insert_b)
{
    if (are_compatible(mode_a, mode_b) || (insert_a && insert_b))
        return false;
    return (!insert_a && covers(sim, a, b)) || (!insert_b && covers(sim, b, a));
}

static bool ignores(const struct sim *sim, int asker, int holder)
{
    return asker == holder || sim->actors[asker].session == holder;
}

static int priority(const struct sim *sim, const struct model_request *request)
{
    return sim->actors[request->owner].cleanup ? 0 : request->upgrade ? 1 : 2;
}

static bool precedes(const struct sim *sim, const struct model_request *a, const struct model_request *b)
{
    int x = priority(sim, a), y = priority(sim, b);
    return x != y ? x < y : a->arrival < b->arrival;
}

static bool request_conflicts_with_lock(const struct sim *sim, const struct model_request *request,
                                        const struct model_lock *lock)
{
    if (ignores(sim, request->owner, lock->owner))
        return false;
    for (size_t i = 0; i < request->spec_count; i++)
        if (conflicts(sim, request->specs[i].on, request->specs[i].mode, request->specs[i].within, lock->on, lock->mode,
                      lock->place))
            return true;
    return false;
}

static bool request_conflicts_with_request(const struct sim *sim, const struct model_request *request,
                                           const struct model_request *other)
{
    if (ignores(sim, request->owner, other->owner))
        return false;
    for (size_t i = 0; i < request->spec_count; i++)
        for (size_t j = 0; j < other->spec_count; j++)
            if (conflicts(sim, request->specs[i].on, request->specs[i].mode, request->specs[i].within,
                          other->specs[j].on, other->specs[j].mode, other->specs[j].within))
                return true;
    return false;
}

/*
 * Returns: whether a request waits for a lock of an owner that `asker` ignores, and so does not
 * block `asker`.
 */
static bool waits_for_ignored(const struct sim *sim, const struct model_request *request, int asker)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        if (ignores(sim, asker, sim->locks[i].owner) && request_conflicts_with_lock(sim, request, &sim->locks[i]))
            return true;
    return false;
}

/* Returns: whether q blocks r because it precedes it. */
static bool blocks(const struct sim *sim, const struct model_request *q, const struct model_request *r)
{
    return q != r && precedes(sim, q, r) && request_conflicts_with_request(sim, r, q) &&
           !waits_for_ignored(sim, q, r->owner);
}

static bool model_grantable(const struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        if (request_conflicts_with_lock(sim, request, &sim->locks[i]))
            return false;
    for (size_t i = 0; i < sim->waiting_count; i++)
        if (blocks(sim, sim->waiting[i], request))
            return false;
    return true;
}

static bool model_is_upgrade(const struct sim *sim, const struct model_request *request)
{
    for (size_t i = 0; i < sim->lock_count; i++) {
        const struct model_lock *lock = &sim->locks[i];
        if (lock->place || !ignores(sim, request->owner, lock->owner))
            continue;
        for (size_t j = 0; j < request->spec_count; j++)
            if (covers(sim, lock->on, request->specs[j].on))
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

static enum lock_mode stronger(enum lock_mode a, enum lock_mode b)
{
    return a > b ? a : b;
}

/* `waited`: the request was granted after a wait, so it can be undone. */
static void model_grant(struct sim *sim, struct model_request *request, bool waited)
{
    request->unconfirmed = waited && request->stays;
    for (size_t i = 0; i < request->spec_count; i++) {
        struct model_spec *spec = &request->specs[i];
        struct model_lock *lock = spec->within ? NULL : model_lock(sim, request->owner, spec->on);
        if (lock == NULL) {
            CHECK(sim, sim->lock_count < LOCKS_MAX);
            lock = &sim->locks[sim->lock_count++];
            *lock = (struct model_lock){request->owner, spec->on, spec->mode, spec->within, LOCK_NONE, TL_TS_NONE};
        }
        lock->mode = stronger(lock->mode, spec->mode);
        spec->filed = request->unconfirmed && !spec->within;
        if (!request->unconfirmed)
            lock->confirmed_mode = stronger(lock->confirmed_mode, spec->mode);
    }
}

/* Adds the token of a confirmed grant to its locks. */
static void model_confirm_token(struct sim *sim, const struct model_request *request)
{
    tl_ts token = lock_request_token(request->real);
    for (size_t i = 0; i < request->spec_count; i++) {
        struct model_lock *lock =
            request->specs[i].within ? NULL : model_lock(sim, request->owner, request->specs[i].on);
        if (lock != NULL && token > lock->confirmed_token)
            lock->confirmed_token = token;
    }
}

static void model_confirm(struct sim *sim, struct model_request *request)
{
    tl_ts token = lock_request_token(request->real);
    request->unconfirmed = false;
    for (size_t i = 0; i < request->spec_count; i++) {
        struct model_spec *spec = &request->specs[i];
        struct model_lock *lock = spec->filed ? model_lock(sim, request->owner, spec->on) : NULL;
        if (lock == NULL)
            continue;
        spec->filed = false;
        lock->confirmed_mode = stronger(lock->confirmed_mode, spec->mode);
        lock->confirmed_token = token > lock->confirmed_token ? token : lock->confirmed_token;
    }
}

/* What a lock has by its confirmed and its unconfirmed grants. Returns: its mode. */
static enum lock_mode model_value(const struct sim *sim, const struct model_lock *lock, tl_ts *ret_token)
{
    enum lock_mode mode = lock->confirmed_mode;
    *ret_token = lock->confirmed_token;
    for (size_t i = 0; i < sim->unconfirmed_count; i++) {
        const struct model_request *request = sim->unconfirmed[i];
        tl_ts token = lock_request_token(request->real);
        for (size_t j = 0; request->owner == lock->owner && j < request->spec_count; j++)
            if (request->specs[j].filed && same(request->specs[j].on, lock->on)) {
                mode = stronger(mode, request->specs[j].mode);
                *ret_token = token > *ret_token ? token : *ret_token;
            }
    }
    return mode;
}

/* Undoes a request. Requires: it is in sim->unconfirmed no more. */
static void model_undo(struct sim *sim, struct model_request *request)
{
    for (size_t i = 0; i < request->spec_count; i++) {
        struct model_spec *spec = &request->specs[i];
        struct model_lock *lock = spec->filed ? model_lock(sim, request->owner, spec->on) : NULL;
        tl_ts token;
        if (lock == NULL)
            continue;
        spec->filed = false;
        lock->mode = model_value(sim, lock, &token);
        if (lock->mode == LOCK_NONE)
            *lock = sim->locks[--sim->lock_count];
    }
    request->unconfirmed = false;
}

/* A released lock has no grants any more. */
static void model_forget_grants(struct sim *sim, const struct model_lock *lock)
{
    for (size_t i = 0; i < sim->unconfirmed_count; i++)
        for (size_t j = 0; j < sim->unconfirmed[i]->spec_count; j++)
            if (sim->unconfirmed[i]->owner == lock->owner && same(sim->unconfirmed[i]->specs[j].on, lock->on))
                sim->unconfirmed[i]->specs[j].filed = false;
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
            if (!lock->place)
                model_forget_grants(sim, lock);
            sim->locks[i] = sim->locks[--sim->lock_count];
        } else {
            i++;
        }
    }
    return released;
}

/* Grants the first grantable request. Returns: false: there is no such request. */
static bool model_grant_one(struct sim *sim)
{
    struct model_request *best = NULL;
    for (size_t i = 0; i < sim->waiting_count; i++)
        if ((best == NULL || precedes(sim, sim->waiting[i], best)) && model_grantable(sim, sim->waiting[i]))
            best = sim->waiting[i];
    if (best == NULL)
        return false;
    model_forget_waiting(sim, best);
    model_grant(sim, best, true);
    sim->expected[sim->expected_count++] = best;
    return true;
}

static void model_grant_all(struct sim *sim)
{
    while (model_grant_one(sim))
        ;
}

/* During a call of the table: grants as many requests as the table has granted until now. */
static void model_catch_up(struct sim *sim)
{
    size_t granted = 0;
    list_for_each(link, &sim->table.granted) granted++;
    while (sim->expected_count < granted)
        CHECK(sim, model_grant_one(sim));
}

/* --- Cycles ------------------------------------------------------------------------------------- */

/*
 * Returns: whether r depends on q: q precedes and blocks r, or a conflicting lock is held by q's
 * owner, its session, or an owner that belongs to q's owner, which only the client can end. So r
 * can depend on itself.
 */
static bool depends(const struct sim *sim, const struct model_request *r, const struct model_request *q)
{
    if (blocks(sim, q, r))
        return true;
    for (size_t i = 0; i < sim->lock_count; i++) {
        int holder = sim->locks[i].owner;
        if ((q->owner == holder || sim->actors[q->owner].session == holder ||
             (holder < OWNERS && sim->actors[holder].session == q->owner)) &&
            request_conflicts_with_lock(sim, r, &sim->locks[i]))
            return true;
    }
    return false;
}

/*
 * There is no cycle if requests can be removed one by one, each when it depends on no remaining
 * request.
 */
static bool model_has_cycle(const struct sim *sim)
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
    CHECK(sim, !sim->actors[ended->owner].cleanup);
    for (size_t i = 0; i < count; i++) {
        const struct model_request *from = lock_request_user(steps[i].request);
        const struct model_request *to = lock_request_user(steps[(i + 1) % count].request);
        CHECK(sim, model_is_waiting(sim, from) && depends(sim, from, to));
        CHECK(sim, sim->actors[from->owner].cleanup || sim->actors[from->owner].born <= sim->actors[ended->owner].born);
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
    a->cleanup = a->owner.cleanup = actor >= OWNERS && session < 0 && roll(sim, 4) == 0;
}

static void actor_end(struct sim *sim, int actor)
{
    lock_owner_deinit(&sim->actors[actor].owner);
    sim->actors[actor].alive = false;
}

static void request_done(struct sim *sim, struct model_request *request)
{
    if (request->unconfirmed)
        model_confirm(sim, request);
    lock_request_free(request->real);
    free(request);
}

/* An autocommit write is executed when it is granted, and ends. */
static void write_done(struct sim *sim, int actor)
{
    model_release(sim, actor, NULL);
    lock_release_all(&sim->table, &sim->actors[actor].owner);
    actor_end(sim, actor);
}

/*
 * No other owner has the token of a grant. It is stale if a later grant to the same owner has
 * changed the lock.
 */
static void check_token(struct sim *sim, const struct model_request *request)
{
    const struct lock_owner *mine = &sim->actors[request->owner].owner;
    tl_ts token = lock_request_token(request->real);
    if (mine->autocommit) {
        CHECK(sim, token == TL_TS_NONE);
        return;
    }
    CHECK(sim, token <= lock_table_last_ts(&sim->table));
    for (size_t i = 0; i < request->spec_count; i++) {
        if (request->specs[i].within)
            continue;
        struct resource_name name = name_of(sim, request->specs[i].on);
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
        request_done(sim, request);
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
    if (request->unconfirmed && sim->unconfirmed_count < UNCONFIRMED_MAX) {
        sim->unconfirmed[sim->unconfirmed_count++] = request;
        return true;
    }
    if (!request->unconfirmed)
        model_confirm_token(sim, request);
    request_done(sim, request);
    if (actor >= OWNERS)
        write_done(sim, actor);
    return true;
}

/* Compares the events of the table with those of the model. */
static void drain(struct sim *sim)
{
    do
        model_grant_all(sim);
    while (drain_one(sim));
    CHECK(sim, sim->expected_count == 0 && sim->ended_count == 0);
}

static void fill_lock_request(struct sim *sim, struct model_request *request)
{
    request->spec_count = 1 + (size_t)(roll(sim, 3) == 0 ? roll(sim, WANTS_MAX) : 0);
    for (size_t i = 0; i < request->spec_count; i++)
        request->specs[i] =
            (struct model_spec){random_thing(sim), (enum lock_mode)(LOCK_S + roll(sim, LOCK_MODE_COUNT - 1)), false};
}

/* A write requests its document, and sometimes an insert intention on another directory. */
static void fill_write_request(struct sim *sim, struct model_request *request)
{
    request->spec_count = 1;
    request->specs[0] = (struct model_spec){{THING_DOCUMENT, roll(sim, DOCUMENTS)}, LOCK_X, false};
    if (roll(sim, 3) == 0) {
        request->spec_count = 2;
        request->specs[1] = (struct model_spec){{THING_DIRECTORY, roll(sim, DIRECTORIES)}, LOCK_X, true};
    }
}

static void make_real(struct sim *sim, struct model_request *request)
{
    struct lock_spec specs[WANTS_MAX];
    for (size_t i = 0; i < request->spec_count; i++)
        specs[i] =
            (struct lock_spec){name_of(sim, request->specs[i].on), request->specs[i].mode, request->specs[i].within};
    request->real =
        lock_request_new(&sim->table, &sim->actors[request->owner].owner, specs, request->spec_count, request);
}

/*
 * lock_table_can_grant_ignoring_waiters() must see holders and cleanup requests, and nothing else.
 */
static void check_can_grant_ignoring_waiters(struct sim *sim, const struct model_request *request)
{
    int session = sim->actors[request->owner].session;
    bool unheld = true, held = false;
    for (size_t i = 0; i < request->spec_count; i++) {
        struct lock_spec spec = {name_of(sim, request->specs[i].on), request->specs[i].mode, request->specs[i].within};
        unheld = unheld && lock_table_can_grant_ignoring_waiters(
                               &sim->table, session < 0 ? NULL : &sim->actors[session].owner, &spec);
    }
    for (size_t i = 0; i < sim->lock_count; i++)
        held = held || request_conflicts_with_lock(sim, request, &sim->locks[i]);
    for (size_t i = 0; i < sim->waiting_count; i++)
        held = held || (sim->actors[sim->waiting[i]->owner].cleanup &&
                        request_conflicts_with_request(sim, request, sim->waiting[i]) &&
                        (session < 0 || !waits_for_ignored(sim, sim->waiting[i], session)));
    CHECK(sim, unheld == !held);
}

/* lock_table_can_grant() must agree with the rule. */
static void check_can_grant(struct sim *sim, const struct model_request *request)
{
    int session = sim->actors[request->owner].session;
    struct lock_owner *owner = session < 0 ? NULL : &sim->actors[session].owner;
    bool free = true;
    for (size_t i = 0; i < request->spec_count; i++) {
        struct lock_spec spec = {name_of(sim, request->specs[i].on), request->specs[i].mode, request->specs[i].within};
        free = free && lock_table_can_grant(&sim->table, owner, &spec);
    }
    /*
     * It may return false because of a waiting request of its own session, or one that an upgrade
     * precedes.
     */
    CHECK(sim, !free || model_grantable(sim, request));
    check_can_grant_ignoring_waiters(sim, request);
}

static void end_refused(struct sim *sim, struct model_request *request)
{
    int actor = request->owner;
    request_done(sim, request);
    if (actor >= OWNERS)
        actor_end(sim, actor);
}

static void start(struct sim *sim, struct model_request *request, bool wait)
{
    request->arrival = ++sim->last_arrival;
    request->upgrade = model_is_upgrade(sim, request);
    make_real(sim, request);
    if (request->owner >= OWNERS)
        check_can_grant(sim, request);
    bool grantable = model_grantable(sim, request);
    if (grantable)
        model_grant(sim, request, false);
    else if (wait)
        sim->waiting[sim->waiting_count++] = request;
    int outcome = lock_request_start(request->real, wait);
    if (grantable) /* requests that blocked its owner may not block it any more */
        model_grant_all(sim);
    CHECK(sim, grantable == (outcome == LOCK_GRANTED) || (outcome == LOCK_GRANTED && sim->ended_count > 0) ||
                   (outcome == LOCK_GRANTED && wait));
    if (outcome == LOCK_CONFLICT) {
        struct lock_conflict conflicts[4];
        CHECK(sim, lock_request_conflicts(request->real, conflicts, 4) > 0);
        end_refused(sim, request);
    } else if (outcome == LOCK_DEADLOCK) {
        /* Its result comes first, although other victims may have been chosen before it. */
        size_t at = 0;
        while (at < sim->ended_count && sim->ended[at] != request)
            at++;
        CHECK(sim, at < sim->ended_count);
        memmove(sim->ended + at, sim->ended + at + 1, (--sim->ended_count - at) * sizeof sim->ended[0]);
        model_grant_all(sim);
        end_refused(sim, request);
    } else if (outcome == LOCK_WAITS) {
        sim->waited++;
    } else {
        if (!grantable) {
            model_grant_all(sim);
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
        if (!request->unconfirmed)
            model_confirm_token(sim, request);
        request_done(sim, request);
        if (actor >= OWNERS)
            write_done(sim, actor);
    }
}

/* Few owners in some seeds, many in others, so that contention varies. */
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
    request->stays = roll(sim, 2) == 0;
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
    /* Usually a lock that it holds. */
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
    request_done(sim, request);
    if (actor >= OWNERS)
        actor_end(sim, actor);
}

static void step_withdraw(struct sim *sim)
{
    if (sim->waiting_count > 0)
        withdraw(sim, sim->waiting[roll(sim, (int)sim->waiting_count)]);
}

static struct model_request *take_unconfirmed(struct sim *sim, size_t at)
{
    struct model_request *request = sim->unconfirmed[at];
    sim->unconfirmed[at] = sim->unconfirmed[--sim->unconfirmed_count];
    return request;
}

/* Confirms an unconfirmed request, or undoes it. */
static void step_undo(struct sim *sim)
{
    if (sim->unconfirmed_count == 0)
        return;
    bool undoes = roll(sim, 3) > 0;
    struct model_request *request = sim->unconfirmed[roll(sim, (int)sim->unconfirmed_count)];
    for (size_t i = 0; i < sim->unconfirmed_count; i++)
        if (sim->unconfirmed[i] == request)
            take_unconfirmed(sim, i);
    if (undoes) {
        model_undo(sim, request);
        lock_request_undo(request->real, TL_TS_NONE);
        sim->undone++;
    }
    request_done(sim, request);
}

/* Frees the unconfirmed requests of an owner. */
static void free_unconfirmed(struct sim *sim, int actor)
{
    for (size_t i = 0; i < sim->unconfirmed_count;)
        if (sim->unconfirmed[i]->owner == actor)
            request_done(sim, take_unconfirmed(sim, i));
        else
            i++;
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
                                                 (request->deadline == due->deadline && precedes(sim, request, due))))
                due = request;
        }
        if (due == NULL)
            return;
        withdraw(sim, due);
        drain(sim);
    }
}

static void release_actor(struct sim *sim, int actor)
{
    if (roll(sim, 2) == 0)
        free_unconfirmed(sim, actor);
    model_release(sim, actor, NULL);
    lock_release_all(&sim->table, &sim->actors[actor].owner);
    drain(sim);
    free_unconfirmed(sim, actor);
    actor_end(sim, actor);
}

/* Ends an owner and all owners that belong to it. */
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
    for (int member = 0; member < OWNERS; member++)
        if (sim->actors[member].session == actor)
            release_actor(sim, member);
    release_actor(sim, actor);
    actor_start(sim, actor, sim->actors[actor].session);
    for (int member = 0; member < OWNERS; member++)
        if (sim->actors[member].session == actor)
            actor_start(sim, member, actor);
    sim->deaths++;
}

static bool model_sound(const struct sim *sim)
{
    for (size_t i = 0; i < sim->lock_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct model_lock *a = &sim->locks[i];
            const struct model_lock *b = &sim->locks[j];
            if (!ignores(sim, a->owner, b->owner) && !ignores(sim, b->owner, a->owner) &&
                conflicts(sim, a->on, a->mode, a->place, b->on, b->mode, b->place))
                return false;
        }
    return true;
}

/* Moves a document as a granted write would, where no lock conflicts. */
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

/* Moves documents at once, as a granted bulk, a commit or a rename would. Requires: grants are suspended. */
static void step_move_all(struct sim *sim)
{
    struct resource_name names[DOCUMENTS];
    size_t count = 0;
    for (int i = 1 + roll(sim, DOCUMENTS); i > 0; i--) {
        int document = roll(sim, DOCUMENTS), before = sim->places[document], after = roll(sim, DIRECTORIES + 1) - 1;
        names[count] = name_of(sim, (struct thing){THING_DOCUMENT, document});
        names[count].path = after < 0 ? SLICE_NONE : slice_from(directory_paths[after]);
        sim->places[document] = after;
        if (model_sound(sim))
            count++;
        else
            sim->places[document] = before;
    }
    (void)lock_table_move_documents(&sim->table, names, count);
    sim->moves += count;
}

/* Several of these as one atomic change, with grants suspended until all are done. */
static void step_atomic(struct sim *sim)
{
    static void (*const parts[])(struct sim *) = {step_release, step_undo, step_withdraw, step_move, step_move_all};
    lock_table_suspend_grants(&sim->table);
    for (int count = 1 + roll(sim, 6); count > 0; count--)
        parts[roll(sim, COUNT_OF(parts))](sim);
    CHECK(sim, list_empty(&sim->table.granted) && list_empty(&sim->table.victims));
    lock_table_resume_grants(&sim->table);
}

/* --- Serialization ------------------------------------------------------------------------------ */

static void collect_refs(struct sim *sim, struct lock_codec_refs *refs, struct lock_owner **owners,
                         struct lock_request **requests)
{
    *refs = (struct lock_codec_refs){.owners = owners, .requests = requests};
    for (int i = 0; i < ACTORS; i++)
        if (sim->actors[i].alive)
            owners[refs->owner_count++] = &sim->actors[i].owner;
    for (size_t i = 0; i < sim->waiting_count; i++)
        requests[i] = sim->waiting[i]->real;
    for (size_t i = 0; i < sim->unconfirmed_count; i++)
        requests[sim->waiting_count + i] = sim->unconfirmed[i]->real;
    refs->request_count = sim->waiting_count + sim->unconfirmed_count;
}

static struct buf write_table(struct sim *sim, struct lock_codec_refs *refs, bool in_pieces)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&bytes, SECTIONS_VERSION);
    refs->in_pieces = refs->without_specs = in_pieces;
    lock_codec_table(&codec, &sim->table, refs);
    return bytes;
}

/* Appends the specs of a waiting request, as a piece has them. */
static struct slice write_specs(const struct model_request *request, struct arena *arena)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&bytes, SECTIONS_VERSION);
    lock_codec_write_specs(&codec, request->real);
    struct slice specs = arena_copy(arena, buf_as_slice(&bytes));
    buf_deinit(&bytes);
    return specs;
}

/* Passes the specs of the waiting requests to the next read. */
static void pass_specs(const struct sim *sim, struct lock_codec_refs *refs)
{
    refs->without_specs = sim->without_specs;
    refs->specs = sim->specs;
    refs->specs_count = sim->without_specs ? sim->waiting_count : 0;
}

static void on_request_moved(void *context, const struct lock_request *request)
{
    (void)context;
    ((struct model_request *)lock_request_user(request))->saved = false;
}

/* Saves the specs of some waiting requests; those that are saved must be as they were. */
static void check_specs(struct sim *sim)
{
    for (size_t i = 0; i < sim->waiting_count; i++) {
        struct arena arena = ARENA_INIT;
        struct model_request *request = sim->waiting[i];
        struct slice specs = write_specs(request, &arena);
        uint32_t crc = crc32c(0, specs.data, specs.len);
        CHECK(sim, !request->saved || request->saved_crc == crc);
        request->saved = request->saved || rng_below(&sim->save_rng, 3) == 0;
        request->saved_crc = crc;
        arena_deinit(&arena);
    }
}

static void on_piece_unused(void *context, uint64_t piece)
{
    struct sim *sim = context;
    CHECK(sim, piece <= sim->last_piece && sim->pieces[piece].len > 0);
    buf_deinit(&sim->pieces[piece]);
}

/* Writes the pieces of up to `count` changed chunks. */
static void save_chunks(struct sim *sim, size_t count)
{
    struct lock_chunk *chunk;
    for (; count > 0 && (chunk = lock_table_changed_chunk(&sim->table)) != NULL; count--) {
        uint64_t piece = chunk->piece;
        if (piece == 0) {
            piece = ++sim->last_piece;
            sim->pieces = realloc(sim->pieces, (piece + 1) * sizeof *sim->pieces);
            sim->pieces[piece] = BUF_INIT(BUF_UNLIMITED);
        }
        struct buf *bytes = &sim->pieces[piece];
        buf_clear(bytes);
        struct codec codec = codec_to(bytes, SECTIONS_VERSION);
        lock_codec_write_chunk(&codec, &sim->table, chunk);
        lock_chunk_saved(&sim->table, chunk, piece, (uint32_t)bytes->len, crc32c(0, bytes->data, bytes->len));
    }
}

static bool read_piece(void *context, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes)
{
    struct sim *sim = context;
    if (piece > sim->last_piece || sim->pieces[piece].len != len || crc32c(0, sim->pieces[piece].data, len) != crc)
        return false;
    buf_slice(ret_bytes, buf_as_slice(&sim->pieces[piece]));
    return true;
}

/* Frees all pieces; a table that was read as a whole has none. */
static void free_pieces(struct sim *sim)
{
    for (uint64_t piece = 1; piece <= sim->last_piece; piece++)
        buf_deinit(&sim->pieces[piece]);
    free(sim->pieces);
    sim->pieces = NULL;
    sim->last_piece = 0;
}

static void init_table(struct sim *sim)
{
    enum { CHUNK_HOLDS_MAX = 7 };
    lock_table_init(&sim->table, &(struct lock_hooks){.deadlock = on_deadlock,
                                                      .piece_unused = on_piece_unused,
                                                      .request_moved = on_request_moved,
                                                      .context = sim});
    sim->table.chunk_holds = 1 + (uint32_t)(sim->seed % CHUNK_HOLDS_MAX);
}

/* Frees the table and all its state, and initializes the owners again. */
static void reset_table(struct sim *sim, struct lock_codec_refs *refs)
{
    lock_codec_discard(&sim->table, refs);
    for (int i = ACTORS; i-- > 0;)
        if (sim->actors[i].alive)
            lock_owner_deinit(&sim->actors[i].owner);
    lock_table_deinit(&sim->table);
    init_table(sim);
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &sim->actors[i];
        if (a->alive)
            lock_owner_init(&sim->table, &a->owner, a->session < 0 ? NULL : &sim->actors[a->session].owner, a);
    }
}

static void read_table(struct sim *sim, struct slice bytes, struct lock_codec_refs *refs, struct arena *arena)
{
    struct codec codec = codec_from(bytes, arena);
    codec.version = SECTIONS_VERSION;
    pass_specs(sim, refs);
    lock_codec_table(&codec, &sim->table, refs);
    CHECK(sim, codec_done(&codec) && refs->request_count == sim->waiting_count + sim->unconfirmed_count);
}

/*
 * Truncated bytes, or bytes with a flipped bit, are refused or give another table; both can be
 * freed.
 */
static void read_damaged(struct sim *sim, struct slice bytes, struct lock_codec_refs *refs)
{
    struct arena arena = ARENA_INIT;
    char *bytes_of = arena_alloc(&arena, bytes.len);
    bool cut = roll(sim, 3) == 0;
    memcpy(bytes_of, bytes.data, bytes.len);
    size_t at = (size_t)rng_below(&sim->rng, bytes.len);
    bytes_of[at] = (char)(bytes_of[at] ^ (cut ? 0 : 1 << roll(sim, 8)));
    struct codec codec = codec_from(slice_make(bytes_of, cut ? at : bytes.len), &arena);
    codec.version = SECTIONS_VERSION;
    pass_specs(sim, refs);
    lock_codec_table(&codec, &sim->table, refs);
    CHECK(sim, !cut || !codec_done(&codec));
    reset_table(sim, refs);
    arena_deinit(&arena);
}

static void step_serialize(struct sim *sim)
{
    struct lock_owner *owners[ACTORS];
    struct lock_request *requests[REQUESTS_MAX + UNCONFIRMED_MAX];
    struct lock_codec_refs refs;
    struct arena arena = ARENA_INIT;
    collect_refs(sim, &refs, owners, requests);
    bool in_pieces = rng_below(&sim->save_rng, 2) == 0;
    struct buf whole = write_table(sim, &refs, false), bytes = BUF_INIT(BUF_UNLIMITED);
    if (in_pieces)
        save_chunks(sim, SIZE_MAX);
    bytes = write_table(sim, &refs, in_pieces);
    sim->without_specs = in_pieces;
    for (size_t i = 0; i < sim->waiting_count && in_pieces; i++)
        sim->specs[i] = write_specs(sim->waiting[i], &arena);
    refs.read_piece = read_piece;
    refs.context = sim;
    reset_table(sim, &refs);
    for (int i = roll(sim, 4); i > 0; i--)
        read_damaged(sim, buf_as_slice(&bytes), &refs);
    read_table(sim, buf_as_slice(&bytes), &refs, &arena);
    for (size_t i = 0; i < sim->waiting_count; i++) {
        sim->waiting[i]->real = refs.requests[i];
        lock_request_set_user(refs.requests[i], sim->waiting[i]);
    }
    for (size_t i = 0; i < sim->unconfirmed_count; i++) {
        sim->unconfirmed[i]->real = refs.requests[sim->waiting_count + i];
        lock_request_set_user(sim->unconfirmed[i]->real, sim->unconfirmed[i]);
    }
    CHECK(sim, !in_pieces || lock_table_changed_chunk(&sim->table) == NULL);
    if (!in_pieces)
        free_pieces(sim);
    struct buf again = write_table(sim, &refs, in_pieces), whole_again = write_table(sim, &refs, false);
    CHECK(sim, slice_equal(buf_as_slice(&bytes), buf_as_slice(&again)));
    CHECK(sim, slice_equal(buf_as_slice(&whole), buf_as_slice(&whole_again)));
    buf_deinit(&again);
    buf_deinit(&whole_again);
    buf_deinit(&bytes);
    buf_deinit(&whole);
    arena_deinit(&arena);
    sim->written++;
    sim->in_pieces += in_pieces;
}

/* Each lock has the mode and the token that follow from its grants. */
static void check_values(struct sim *sim)
{
    for (size_t i = 0; i < sim->lock_count; i++) {
        const struct model_lock *lock = &sim->locks[i];
        struct lock_owner *mine = &sim->actors[lock->owner].owner, *found = NULL;
        struct resource_name name = name_of(sim, lock->on);
        struct lock_spec spec = {name, lock->mode, false};
        tl_ts token;
        if (lock->place)
            continue;
        CHECK(sim, model_value(sim, lock, &token) == lock->mode);
        CHECK(sim, lock_table_holds(&sim->table, mine, &spec));
        spec.mode = lock->mode + 1;
        CHECK(sim, lock->mode == LOCK_X || !lock_table_holds(&sim->table, mine, &spec));
        CHECK(sim, lock_table_find_token(&sim->table, token, &name, &found) && found == mine);
    }
}

static void check(struct sim *sim)
{
    CHECK(sim, model_sound(sim));
    CHECK(sim, !model_has_cycle(sim));
    CHECK(sim, sim->table.waiting_count == sim->waiting_count);
    size_t locks = 0;
    for (size_t i = 0; i < sim->lock_count; i++)
        locks += !sim->locks[i].place;
    CHECK(sim, sim->table.lock_count == locks);
    check_values(sim);
    lock_codec_check_chunks(&sim->table);
    check_specs(sim);
    if (sim->step % 16 == 0)
        lock_table_check(&sim->table);
}

/* The kinds of steps, and how often each is chosen, in percent. */
static const struct {
    const char *name;
    int weight;
    void (*run)(struct sim *sim);
} kinds[] = {
    {"acquire", 30, step_acquire},  {"write", 16, step_write},  {"release", 20, step_release},
    {"withdraw", 4, step_withdraw}, {"time", 10, step_time},    {"move", 5, step_move},
    {"death", 3, step_death},       {"atomic", 4, step_atomic}, {"undo", 8, step_undo},
};
enum { SERIALIZE_EVERY = 40 };

static void step(struct sim *sim)
{
    int pick = roll(sim, 100);
    size_t kind = 0;
    for (; pick >= kinds[kind].weight; kind++)
        pick -= kinds[kind].weight;
    sim->doing = kinds[kind].name;
    kinds[kind].run(sim);
    drain(sim);
    if (rng_below(&sim->save_rng, 3) == 0)
        save_chunks(sim, 1 + (size_t)rng_below(&sim->save_rng, 6));
    check(sim);
    if (roll(sim, SERIALIZE_EVERY) > 0)
        return;
    sim->doing = "bytes";
    step_serialize(sim);
    check(sim);
}

static void run(uint64_t seed, uint64_t steps)
{
    struct sim *sim = calloc(1, sizeof *sim);
    sim->seed = seed;
    sim->ts = 1000;
    rng_init(&sim->rng, seed);
    rng_init(&sim->save_rng, ~seed);
    init_table(sim);
    lock_table_set_ts(&sim->table, sim->ts);
    for (int i = 0; i < DOCUMENTS; i++)
        sim->places[i] = i % (DIRECTORIES + 1) - 1;
    /* the second half are transactions, most of them of a session */
    for (int i = 0; i < OWNERS; i++)
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
           "%llu deaths, %llu undone, %llu times as bytes, %llu of them in pieces\n",
           (unsigned long long)seed, (unsigned long long)steps, (unsigned long long)sim->granted,
           (unsigned long long)sim->waited, (unsigned long long)sim->deadlocks, (unsigned long long)sim->requeues,
           (unsigned long long)sim->moves, (unsigned long long)sim->deaths, (unsigned long long)sim->undone,
           (unsigned long long)sim->written, (unsigned long long)sim->in_pieces);
    lock_table_deinit(&sim->table);
    free_pieces(sim);
    free(sim);
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 10, steps = 100000;
    const struct argument arguments[] = {
        {"--from", .number = &first}, {"--seeds", .number = &seeds}, {"--steps", .number = &steps}, {0}};
    arguments_take(argc, argv, arguments);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run(seed, steps);
    return 0;
}
