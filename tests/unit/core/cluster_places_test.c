/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a request for locks, or a named write, that waits by a host that leaves its cluster keeps its place for its
 * session, or for its ID, which asks again by another host (README-locks.md, "Kept places").
 * Method: host a dies, b stays; the requests of both, JOIN and HOST_GONE. Each case runs twice, the second time with
 * the core saved and loaded before each command.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/command/command_codec.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

enum { A = 1, B, HOSTS };                              /* the hosts' numbers */
enum { LONGER_THAN_KEPT = 11, SHORTER_THAN_KEPT = 9 }; /* seconds */
enum { FIRST_LIFE = 11 };                              /* of each host; the next one is one more */

struct world {
    struct core_fixture core;
    uint64_t last_request[HOSTS];
    tl_ts token;        /* of the last LOCK that was expected to be granted */
    int64_t version;    /* of the first document of the last write that was expected */
    uint64_t step_work; /* of an atomic write; 0: the usual one */
    bool saves;
};

static struct command *new_of(struct world *fixture, int host, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = (uint64_t)host << HOST_SHIFT | ++fixture->last_request[host];
    return command;
}

static void give(struct world *fixture, struct command *command, uint64_t us)
{
    struct core_fixture *core = &fixture->core;
    if (fixture->saves)
        fixture_reopen(core);
    if (fixture->step_work != 0)
        core->core->atomic_work_max = core->core->write_work_max = fixture->step_work;
    if (core->core->owners->locks.waiting_count < 100)
        core->core->owners->check_cost = 0; /* each step is checked */
    core->now = core->now <= core_last_ts(core->core) ? core_last_ts(core->core) : core->now;
    command->ts = ++core->now;
    command->clock = core->clock += us;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = command->clock;
    assert_int_equal(core_step(core->core, command, &core->effects), 0);
}

/*
 * Checks that exactly the commands with these numbers have completed, in any order, with `problem`. No client waits for
 * a LOCK or a write by host a any more, nor for one that was taken over.
 */
static void expect(struct world *fixture, const uint64_t *requests, size_t count, enum problem_type problem)
{
    size_t found = 0;
    while (!list_empty(&fixture->core.effects.completed)) {
        struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
        bool expected = false;
        list_remove(&command->link);
        for (size_t i = 0; i < count; i++)
            expected |= requests[i] == command->request;
        enum problem_type of_item = command->type == COMMAND_WRITE && command->problem.type == PROBLEM_NONE
                                        ? command->write.results[0].problem.type
                                        : PROBLEM_NONE;
        if (expected) {
            assert_int_equal(of_item != PROBLEM_NONE ? of_item : command->problem.type, problem);
            fixture->version = command->type == COMMAND_WRITE && command->problem.type == PROBLEM_NONE
                                   ? command->write.results[0].version
                                   : 0;
            fixture->token =
                command->type == COMMAND_LOCK && problem == PROBLEM_NONE ? command->lock.fencing_token : fixture->token;
            found++;
        } else if (command->type == COMMAND_LOCK || command->type == COMMAND_WRITE) {
            assert_true(of_item != PROBLEM_NONE || command->problem.type == PROBLEM_STOPPING ||
                        (command->request >> HOST_SHIFT == A && command->problem.type != PROBLEM_NONE));
        }
        command_free(command);
    }
    assert_int_equal(found, count);
}

static void expect_one(struct world *fixture, uint64_t request, enum problem_type problem)
{
    expect(fixture, &request, 1, problem);
}

static void expect_none(struct world *fixture)
{
    expect(fixture, NULL, 0, PROBLEM_NONE);
}

static void session(struct world *fixture, enum command_type type, const char *id)
{
    struct command *command = new_of(fixture, B, type);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    give(fixture, command, 10);
    expect_none(fixture);
}

static struct command *new_lock(struct world *fixture, int host, const char *session, uint64_t wait_us, size_t count)
{
    struct command *command = new_of(fixture, host, COMMAND_LOCK);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    return command;
}

/* Requests the lock of each letter of `ids`. Returns: the number of the request. */
static uint64_t ask(struct world *fixture, int host, const char *session, const char *ids, uint64_t wait_us)
{
    size_t count = strlen(ids);
    struct command *command = new_lock(fixture, host, session, wait_us, count);
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_copy(&command->arena, slice_make(ids + i, 1))};
    uint64_t request = command->request;
    give(fixture, command, 10);
    return request;
}

static uint64_t lock(struct world *fixture, int host, const char *session)
{
    return ask(fixture, host, session, "1", 60 * TL_SECOND);
}

static void unlock(struct world *fixture, const char *session)
{
    struct command *command = new_of(fixture, B, COMMAND_UNLOCK);
    command->owner.session = slice_from(session);
    give(fixture, command, 10);
}

static void tick(struct world *fixture, uint64_t seconds)
{
    for (int i = 0; i < 2; i++)
        give(fixture, new_of(fixture, B, COMMAND_TICK), i == 0 ? seconds * TL_SECOND : 10);
}

static void cancel(struct world *fixture, uint64_t request)
{
    struct command *command = new_of(fixture, B, COMMAND_CANCEL);
    command->cancel.request = request;
    command->cancel.keeps_places = true;
    give(fixture, command, 10);
}

/* A host begins a life, which ends an earlier one. `version`: of the command. */
static void join(struct world *fixture, int host, uint64_t life, unsigned version)
{
    struct command *command = new_of(fixture, B, COMMAND_JOIN);
    command->version = version;
    command->join = (struct join_command){.name = host == A ? SLICE_LIT("a") : SLICE_LIT("b"),
                                          .group = SLICE_LIT("default"),
                                          .build = SLICE_LIT("1"),
                                          .life = life,
                                          .limits = fixture->core.limits};
    give(fixture, command, 10);
    assert_int_equal(core_host(fixture->core.core, (uint16_t)host)->life, life);
}

static void leave_by(struct world *fixture, uint64_t life, unsigned version)
{
    struct command *command = new_of(fixture, B, COMMAND_HOST_GONE);
    command->version = version;
    command->gone = (struct gone_command){.name = SLICE_LIT("a"), .life = life};
    give(fixture, command, 10);
    assert_int_equal(core_host(fixture->core.core, A)->life, 0);
}

/* Host a is declared dead. */
static void leave(struct world *fixture, uint64_t life)
{
    leave_by(fixture, life, COMMAND_CODEC_VERSION);
}

static size_t kept_count(const struct world *fixture)
{
    return fixture->core.core->owners->kept_count;
}

static size_t count_holders(struct world *fixture, const char *session)
{
    return owners_session(fixture->core.core->owners, slice_from(session))->owner.locks.lock_count;
}

/* Session "holder" has the lock, "first" and "second" wait by host a. */
static void begin(struct world *fixture, bool saves)
{
    *fixture = (struct world){.saves = saves};
    fixture_open(&fixture->core);
    join(fixture, A, FIRST_LIFE, COMMAND_CODEC_VERSION);
    join(fixture, B, FIRST_LIFE, COMMAND_CODEC_VERSION);
    session(fixture, COMMAND_SESSION_OPEN, "holder");
    session(fixture, COMMAND_SESSION_OPEN, "first");
    session(fixture, COMMAND_SESSION_OPEN, "second");
    session(fixture, COMMAND_SESSION_OPEN, "third");
    uint64_t request = lock(fixture, B, "holder");
    expect_one(fixture, request, PROBLEM_NONE);
    (void)lock(fixture, A, "first");
    (void)lock(fixture, A, "second");
    expect_none(fixture);
}

/* Takes all replies up to that of a request, whose command is next then; 0: all. Returns: whether it is there. */
static bool drop_replies(struct world *fixture, uint64_t request)
{
    struct list *completed = &fixture->core.effects.completed;
    while (!list_empty(completed)) {
        struct command *command = list_entry(completed->next, struct command, link);
        if (request != 0 && command->request == request)
            return true;
        list_remove(&command->link);
        command_free(command);
    }
    return false;
}

static void end(struct world *fixture)
{
    core_stop(fixture->core.core, &fixture->core.effects);
    (void)drop_replies(fixture, 0);
    fixture_close(&fixture->core);
}

/* Host a is declared dead, and TICKs follow until none is due. Checks that each step is bounded. */
static void leave_in_bounded_steps(struct world *fixture)
{
    enum { STEPS = 2000 };
    int steps = 0;
    leave(fixture, FIRST_LIFE);
    assert_in_range(core_step_work(fixture->core.core), 0, CORE_STEP_WORK);
    for (; steps < STEPS && core_next_wait_end(fixture->core.core) == 0; steps++) {
        give(fixture, new_of(fixture, B, COMMAND_TICK), 0);
        assert_in_range(core_step_work(fixture->core.core), 0, CORE_STEP_WORK);
    }
    assert_in_range(steps, 1, STEPS - 1);
}

/* Checks that each of them gets the lock in this order, and releases it. */
static void expect_order(struct world *fixture, uint64_t first, uint64_t second, uint64_t third)
{
    unlock(fixture, "holder");
    expect_one(fixture, first, PROBLEM_NONE);
    unlock(fixture, "first");
    expect_one(fixture, second, PROBLEM_NONE);
    unlock(fixture, "second");
    expect_one(fixture, third, PROBLEM_NONE);
}

/* A session that asks again by another host has its place, before requests that came later. */
static void keeps_order(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t third = lock(&fixture, B, "third"); /* while the host is silent */
    leave(&fixture, FIRST_LIFE);
    assert_int_equal(kept_count(&fixture), 2);
    uint64_t second = lock(&fixture, B, "second"), first = lock(&fixture, B, "first");
    expect_none(&fixture);
    assert_int_equal(kept_count(&fixture), 0);
    tick(&fixture, LONGER_THAN_KEPT);
    expect_order(&fixture, first, second, third);
    end(&fixture);
}

/* The lock becomes free before they ask again: no other request overtakes them. */
static void keeps_granted_lock(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t third = lock(&fixture, B, "third");
    leave(&fixture, FIRST_LIFE);
    unlock(&fixture, "holder");
    expect_none(&fixture);
    assert_int_equal(count_holders(&fixture, "first"), 1);
    uint64_t second = lock(&fixture, B, "second");
    expect_none(&fixture);
    uint64_t first = lock(&fixture, B, "first");
    expect_one(&fixture, first, PROBLEM_NONE);
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/*
 * A session that does not ask again loses its place, and locks that it was granted there, after 10 s: a further life of
 * the host, and its end, neither ends nor prolongs that.
 */
static void ends_after_a_time(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t third = lock(&fixture, B, "third");
    leave(&fixture, FIRST_LIFE);
    unlock(&fixture, "holder");
    tick(&fixture, SHORTER_THAN_KEPT);
    join(&fixture, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&fixture), 2);
    join(&fixture, A, FIRST_LIFE + 2, COMMAND_CODEC_VERSION);
    leave(&fixture, FIRST_LIFE + 2);
    cancel(&fixture, (uint64_t)A << HOST_SHIFT);
    assert_int_equal(kept_count(&fixture), 2);
    assert_int_equal(count_holders(&fixture, "first"), 1);
    expect_none(&fixture);
    tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    expect_one(&fixture, third, PROBLEM_NONE);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(count_holders(&fixture, "first"), 0);
    end(&fixture);
}

/* A request is kept until its own deadline, if that is earlier. */
static void ends_by_its_deadline(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    (void)ask(&fixture, A, "third", "1", TL_SECOND);
    leave(&fixture, FIRST_LIFE);
    assert_int_equal(kept_count(&fixture), 3);
    tick(&fixture, 2);
    assert_int_equal(kept_count(&fixture), 2);
    end(&fixture);
}

/* The next life begins before the end of the last one was known: its JOIN keeps places, too. */
static void is_kept_by_next_life(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t number = (uint64_t)A << HOST_SHIFT | 1; /* of "first" */
    join(&fixture, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&fixture), 2);
    fixture.last_request[A] = 0; /* it counts anew */
    uint64_t third = lock(&fixture, A, "third");
    assert_int_equal(third, number);
    cancel(&fixture, number); /* finds the request of this life, whose place is kept */
    assert_int_equal(kept_count(&fixture), 3);
    uint64_t second = lock(&fixture, B, "second"), first = lock(&fixture, A, "first");
    third = lock(&fixture, B, "third");
    expect_none(&fixture); /* the earlier life's requests have the same numbers */
    expect_order(&fixture, first, second, third);
    end(&fixture);
}

/* The end of a session ends its kept request, granted or not. */
static void ends_with_its_session(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    leave(&fixture, FIRST_LIFE);
    unlock(&fixture, "holder");
    session(&fixture, COMMAND_SESSION_CLOSE, "first");
    tick(&fixture, 1);
    uint64_t second = lock(&fixture, B, "second");
    expect_one(&fixture, second, PROBLEM_NONE);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/* A kept request may be the victim of a deadlock: its session asks anew, and is refused. */
static void may_be_a_victim(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t own = ask(&fixture, B, "first", "2", 0);
    expect_one(&fixture, own, PROBLEM_NONE);
    leave(&fixture, FIRST_LIFE);
    uint64_t holder = ask(&fixture, B, "holder", "2", 60 * TL_SECOND);
    expect_none(&fixture);
    assert_int_equal(kept_count(&fixture), 1); /* "second" */
    uint64_t first = lock(&fixture, B, "first");
    expect_one(&fixture, first, PROBLEM_DEADLOCK_DETECTED);
    unlock(&fixture, "first");
    expect_one(&fixture, holder, PROBLEM_NONE);
    end(&fixture);
}

/* Another request closes a cycle with a kept one: that one is the victim if it asks last. */
static void has_other_victims(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t own = ask(&fixture, B, "second", "2", 0);
    expect_one(&fixture, own, PROBLEM_NONE);
    leave(&fixture, FIRST_LIFE);
    unlock(&fixture, "holder"); /* "first" is granted, and not notified */
    expect_none(&fixture);
    uint64_t second = ask(&fixture, B, "first", "2", 60 * TL_SECOND);
    expect_none(&fixture);
    /* "second" waits for "first", by its kept place, and that for "second": one of the two is refused. */
    uint64_t again = lock(&fixture, B, "second");
    struct session *first = owners_session(fixture.core.core->owners, SLICE_LIT("first"));
    assert_non_null(first);
    expect_one(&fixture, again, PROBLEM_DEADLOCK_DETECTED);
    unlock(&fixture, "second");
    expect_one(&fixture, second, PROBLEM_NONE);
    end(&fixture);
}

static void has_submitter(struct command *command)
{
    command_free(command);
}

/* The commands that wait have clients here. */
static void give_clients(struct world *fixture)
{
    list_for_each(link, &fixture->core.core->owners->waits) list_entry(link, struct wait, of_all)->command->on_done =
        has_submitter;
}

static void expect_answer(struct world *fixture, uint64_t request, const char *reason)
{
    assert_false(list_empty(&fixture->core.effects.completed));
    const struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
    assert_int_equal(command->request, request);
    assert_true(slice_is(command->problem.reason, reason));
    expect_one(fixture, request, PROBLEM_STOPPING);
}

/*
 * A host that was out comes back and applies the end of its life: each client that still waits is answered once. One
 * that ends in good order has answered them before.
 */
static void test_clients_are_answered_once(void **state)
{
    (void)state;
    for (int orderly = 0; orderly < 2; orderly++) {
        struct world fixture;
        begin(&fixture, false);
        session(&fixture, COMMAND_SESSION_CLOSE, "second");
        give_clients(&fixture);
        uint64_t first = fixture.last_request[A] - 1 + ((uint64_t)A << HOST_SHIFT);
        if (orderly) {
            cancel(&fixture, (uint64_t)A << HOST_SHIFT);
            expect_answer(&fixture, first, "the server is shutting down");
            leave(&fixture, FIRST_LIFE);
        } else {
            leave(&fixture, FIRST_LIFE);
            expect_answer(&fixture, first, "the host that this request came by was out of the cluster");
        }
        assert_true(list_empty(&fixture.core.effects.completed) || orderly);
        expect_none(&fixture);
        uint64_t again = lock(&fixture, B, "first");
        expect_none(&fixture);
        unlock(&fixture, "holder");
        expect_one(&fixture, again, PROBLEM_NONE);
        end(&fixture);
    }
}

/* A host that ends in good order keeps places by its CANCEL; its HOST_GONE does not prolong them. */
static void is_kept_by_orderly_end(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    cancel(&fixture, (uint64_t)A << HOST_SHIFT);
    assert_int_equal(kept_count(&fixture), 2);
    tick(&fixture, SHORTER_THAN_KEPT);
    leave(&fixture, FIRST_LIFE);
    uint64_t first = lock(&fixture, B, "first");
    tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    assert_int_equal(kept_count(&fixture), 0);
    unlock(&fixture, "holder");
    expect_one(&fixture, first, PROBLEM_NONE);
    end(&fixture);
}

/* "first" waits by host a for the lock of "holder", and for each letter of `ids`, which "holder" has too, alone. */
static void begin_many(struct world *fixture, bool saves, const char *ids)
{
    begin(fixture, saves);
    uint64_t request = ask(fixture, B, "holder", ids, 0);
    expect_one(fixture, request, PROBLEM_NONE);
    for (const char *id = ids; *id != '\0'; id++)
        (void)ask(fixture, A, "first", (char[]){*id, '\0'}, 60 * TL_SECOND);
    expect_none(fixture);
    fixture->core.limits.ephemeral_batch = 1;
    fixture->core.core->limits.ephemeral_batch = 1;
}

static void finish_batches(struct world *fixture)
{
    for (int i = 0; i < 10 && core_next_wait_end(fixture->core.core) == 0; i++)
        tick(fixture, 0);
    assert_true(core_next_wait_end(fixture->core.core) != 0);
}

/*
 * Places are kept in batches. A request whose turn is still to come is found by its session and not by its number, may
 * be granted, and is kept in its turn also if its host begins and ends another life meanwhile.
 */
static void keeps_in_batches(bool saves)
{
    struct world fixture;
    begin_many(&fixture, saves, "abcdefghijkl"); /* 14 wait */
    uint64_t last = (uint64_t)A << HOST_SHIFT | fixture.last_request[A];
    leave(&fixture, FIRST_LIFE);
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    cancel(&fixture, last);
    (void)ask(&fixture, B, "first", "k", 60 * TL_SECOND); /* its turn is still to come */
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    join(&fixture, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    leave(&fixture, FIRST_LIFE + 1);
    assert_int_equal(kept_count(&fixture), 2 * CANCELS_PER_COST);
    unlock(&fixture, "holder");
    finish_batches(&fixture);
    assert_int_equal(count_holders(&fixture, "first"), 13);
    for (const char *id = "1abcdefghijkl"; *id != '\0'; id++) {
        uint64_t request = ask(&fixture, B, "first", (char[]){*id, '\0'}, 0);
        assert_true(drop_replies(&fixture, request)); /* the k that waited by b is granted by then */
        expect_one(&fixture, request, PROBLEM_NONE);
    }
    assert_int_equal(kept_count(&fixture), 1); /* "second" */
    end(&fixture);
}

/*
 * A client asks again before its host is found dead. Its later request has the place of the former one, for as long as
 * it waits, and is answered.
 */
static void is_repeated_before_its_turn(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t third = lock(&fixture, B, "third"), second = lock(&fixture, B, "second"),
             first = lock(&fixture, B, "first");
    leave(&fixture, FIRST_LIFE);
    expect_none(&fixture);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 3);
    tick(&fixture, LONGER_THAN_KEPT);
    cancel(&fixture, second); /* they have their own numbers */
    expect_none(&fixture);
    assert_int_equal(kept_count(&fixture), 1);
    second = lock(&fixture, B, "second");
    expect_order(&fixture, first, second, third);
    end(&fixture);
}

/* The lock is free before the host is found dead: the former request is granted, and covers the later one. */
static void is_repeated_and_granted_before(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t third = lock(&fixture, B, "third"), first = lock(&fixture, B, "first");
    unlock(&fixture, "holder");
    assert_true(drop_replies(&fixture, first));
    const struct command *answered = list_entry(fixture.core.effects.completed.next, struct command, link);
    assert_int_equal(answered->problem.type, PROBLEM_NONE);
    (void)drop_replies(&fixture, 0);
    leave(&fixture, FIRST_LIFE);
    uint64_t second = lock(&fixture, B, "second");
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/* Only a request for the same locks by a live host has the place: not one for others, nor another that is kept. */
static void only_equal_request_has_the_place(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t request = ask(&fixture, B, "holder", "2", 0);
    expect_one(&fixture, request, PROBLEM_NONE);
    (void)ask(&fixture, B, "first", "2", 60 * TL_SECOND);
    (void)ask(&fixture, B, "first", "12", 60 * TL_SECOND);
    (void)lock(&fixture, A, "first");
    leave(&fixture, FIRST_LIFE);
    expect_none(&fixture);
    assert_int_equal(kept_count(&fixture), 3);
    end(&fixture);
}

/* Writes without a name are cancelled: some of their items may have run. */
static void cancels_writes(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    struct command *command = new_of(&fixture, A, COMMAND_WRITE);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, "1", "{}");
    uint64_t write = command->request;
    give(&fixture, command, 10);
    leave(&fixture, FIRST_LIFE);
    expect_one(&fixture, write, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&fixture), 2);
    end(&fixture);
}

/* --- Named writes ------------------------------------------------------------------------------------------------- */

enum { HASH = 7, SMALL_STEP = 1500 };

#define PIECES "1abcdefghijklmnopqrstuvwxyz23456789ABCDE" /* the letters of the documents of a large atomic write */

/* Writes the document of each letter of `ids`; many atomically. `name`, `session`: NULL: none. Returns: its number. */
static uint64_t put(struct world *fixture, int host, const char *name, const char *session, const char *ids)
{
    struct command *command = new_of(fixture, host, COMMAND_WRITE);
    size_t count = strlen(ids);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->owner.session = session == NULL ? SLICE_NONE : slice_from(session);
    command->write.items = arena_zalloc(&command->arena, count * sizeof *command->write.items);
    command->write.item_count = count;
    command->write.atomic = count > 1;
    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", NULL, "?", "{}");
        command->write.items[i].id = arena_copy(&command->arena, slice_make(ids + i, 1));
    }
    if (name != NULL)
        command->write.request =
            (struct write_request){.id = arena_copy(&command->arena, slice_from(name)), .hash = HASH};
    uint64_t request = command->request;
    give(fixture, command, 10);
    return request;
}

/* Session "holder" has the lock of document 1, which has version 1. */
static void begin_writes(struct world *fixture, bool saves)
{
    begin(fixture, saves);
    session(fixture, COMMAND_SESSION_CLOSE, "first");
    session(fixture, COMMAND_SESSION_CLOSE, "second");
    unlock(fixture, "holder");
    uint64_t request = put(fixture, B, NULL, NULL, "1");
    expect_one(fixture, request, PROBLEM_NONE);
    request = lock(fixture, B, "holder");
    expect_one(fixture, request, PROBLEM_NONE);
}

static void settle(struct world *fixture)
{
    for (int i = 0; i < 100 && core_next_wait_end(fixture->core.core) <= fixture->core.clock; i++)
        give(fixture, new_of(fixture, B, COMMAND_TICK), 10);
    assert_true(core_next_wait_end(fixture->core.core) > fixture->core.clock);
}

/* Checks that these writes run in this order, each of which makes one version more of document 1. */
static void expect_versions(struct world *fixture, const uint64_t *requests, size_t count)
{
    struct reply {
        bool done;
        int64_t version;
    } replies[4] = {{0}};
    assert_in_range(count, 1, 4);
    unlock(fixture, "holder");
    settle(fixture);
    while (!list_empty(&fixture->core.effects.completed)) {
        struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
        list_remove(&command->link);
        for (size_t i = 0; i < count; i++)
            if (command->request == requests[i] && command->problem.type == PROBLEM_NONE)
                replies[i] = (struct reply){true, command->write.results[0].version};
        command_free(command);
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(replies[i].done);
        assert_int_equal(replies[i].version, 2 + i);
    }
    assert_int_equal(kept_count(fixture), 0);
    assert_int_equal(fixture->core.core->owners->locks.hold_count, 0);
    assert_int_equal(fixture->core.core->owners->txns.count, 0);
}

/* Sent again by another host, before that is known to be dead or after, it is before writes that came later. */
static void write_keeps_order(bool saves)
{
    for (int way = 0; way < 8; way++) {
        bool before = way & 1, in_pieces = way & 2, joins = way & 4;
        const char *ids = in_pieces ? PIECES : "1";
        struct world fixture;
        begin_writes(&fixture, saves);
        fixture.step_work = SMALL_STEP;
        (void)put(&fixture, A, "a", NULL, ids);
        settle(&fixture);
        uint64_t other = put(&fixture, B, NULL, NULL, "1");
        uint64_t again = before ? put(&fixture, B, "a", NULL, ids) : 0;
        settle(&fixture);
        if (joins)
            join(&fixture, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
        else
            leave(&fixture, FIRST_LIFE);
        expect_none(&fixture);
        assert_int_equal(kept_count(&fixture), !before);
        if (!before)
            again = put(&fixture, B, "a", NULL, ids);
        assert_int_equal(fixture.core.core->owners->locks.waiting_count, 2);
        tick(&fixture, LONGER_THAN_KEPT);
        expect_none(&fixture);
        expect_versions(&fixture, (uint64_t[]){again, other}, 2);
        end(&fixture);
    }
}

/* Returns: the atomic write that waits with this number. */
static const struct write_command *waiting_write(const struct world *fixture, uint64_t request)
{
    list_for_each(link, &fixture->core.core->owners->waits)
    {
        const struct command *command = list_entry(link, struct wait, of_all)->command;
        if (command->request == request)
            return &command->write;
    }
    fail_msg("it does not wait");
    return NULL;
}

/*
 * The write of the dead host waits as a whole, its repetition in pieces, after it since its newest attempt. The
 * attempts of the repetition's own transaction are over: the write that gets the place begins with none.
 */
static void place_has_no_attempts_of_the_later_write(bool saves)
{
    static const char ids[] = "abcdefghijklmnopqrstuvwxyz23456789ABCDE1";
    struct world fixture;
    begin_writes(&fixture, saves);
    uint64_t request = ask(&fixture, B, "third", "c", 0);
    expect_one(&fixture, request, PROBLEM_NONE);
    unlock(&fixture, "third");
    fixture.step_work = SMALL_STEP;
    uint64_t again = put(&fixture, B, "a", NULL, ids);
    settle(&fixture);
    assert_int_equal(waiting_write(&fixture, again)->attempts, 1);
    request = ask(&fixture, B, "third", "c", 0);
    expect_one(&fixture, request, PROBLEM_NONE);
    fixture.step_work = WRITE_WORK_MAX;
    (void)put(&fixture, A, "a", NULL, ids);
    fixture.step_work = SMALL_STEP;
    unlock(&fixture, "holder");
    settle(&fixture);
    assert_int_equal(waiting_write(&fixture, again)->attempts, 2);
    leave(&fixture, FIRST_LIFE);
    settle(&fixture);
    expect_none(&fixture);
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 1);
    assert_int_equal(waiting_write(&fixture, again)->attempts, 0);
    unlock(&fixture, "third");
    settle(&fixture);
    expect_one(&fixture, again, PROBLEM_NONE);
    end(&fixture);
}

/* One that is not sent again runs nothing, and holds up others for 10 s. */
static void write_ends_after_a_time(bool saves)
{
    struct world fixture;
    begin_writes(&fixture, saves);
    (void)put(&fixture, A, "a", NULL, "1");
    leave(&fixture, FIRST_LIFE);
    uint64_t other = put(&fixture, B, NULL, NULL, "1");
    unlock(&fixture, "holder");
    tick(&fixture, SHORTER_THAN_KEPT);
    expect_none(&fixture);
    tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    expect_one(&fixture, other, PROBLEM_NONE);
    assert_int_equal(fixture.version, 2);
    end(&fixture);
}

/* Several have their locks, and have not run, when their host is found dead; the last one was sent again before. */
static void ready_write_gives_its_locks(bool saves)
{
    for (int way = 0; way < 2; way++) {
        struct world fixture;
        const char *ids = way == 0 ? "1" : "123";
        begin_writes(&fixture, saves);
        uint64_t request = ask(&fixture, B, "holder", "5", 0);
        expect_one(&fixture, request, PROBLEM_NONE);
        (void)put(&fixture, A, NULL, NULL, "5");
        (void)put(&fixture, A, "a", NULL, ids);
        uint64_t other = put(&fixture, B, NULL, NULL, "1"), again = put(&fixture, B, "a", NULL, ids);
        fixture.core.limits.ephemeral_batch = fixture.core.core->limits.ephemeral_batch = 1;
        unlock(&fixture, "holder");
        assert_int_equal(fixture.core.core->owners->ready_count, 1);
        (void)drop_replies(&fixture, 0); /* a write of host a has run */
        leave(&fixture, FIRST_LIFE);
        expect_none(&fixture);
        assert_int_equal(kept_count(&fixture), 0);
        settle(&fixture);
        expect_versions(&fixture, (uint64_t[]){again, other}, 2);
        end(&fixture);
    }
}

/* One that came earlier by another host has the better place, and stays before those in between. */
static void earlier_write_has_its_own_place(bool saves)
{
    struct world fixture;
    begin_writes(&fixture, saves);
    uint64_t first = put(&fixture, B, "a", NULL, "1"), between = put(&fixture, B, NULL, NULL, "1");
    (void)put(&fixture, A, "a", NULL, "1");
    uint64_t other = put(&fixture, B, NULL, NULL, "1");
    leave(&fixture, FIRST_LIFE);
    settle(&fixture);
    expect_none(&fixture);
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 3);
    expect_versions(&fixture, (uint64_t[]){first, between, other}, 3);
    end(&fixture);
}

/* Only a request with the same ID, hash and session by a live host has the place. */
static void only_equal_write_has_the_place(bool saves)
{
    struct world fixture;
    begin_writes(&fixture, saves);
    (void)put(&fixture, A, "a", NULL, "1");
    (void)put(&fixture, A, "a", NULL, "1");
    (void)put(&fixture, B, "a", "third", "1");
    (void)put(&fixture, B, "b", NULL, "1");
    (void)put(&fixture, B, "a", NULL, "12");
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 5);
    leave(&fixture, FIRST_LIFE);
    assert_int_equal(kept_count(&fixture), 1);
    end(&fixture);
}

/* The host of the repetition dies as well: the next one gets the place. */
static void place_outlives_two_hosts(bool saves)
{
    struct world fixture;
    begin_writes(&fixture, saves);
    (void)put(&fixture, A, "a", NULL, "1");
    uint64_t other = put(&fixture, B, NULL, NULL, "1");
    leave(&fixture, FIRST_LIFE);
    join(&fixture, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    (void)put(&fixture, A, "a", NULL, "1");
    assert_int_equal(kept_count(&fixture), 0);
    leave(&fixture, FIRST_LIFE + 1);
    assert_int_equal(kept_count(&fixture), 1);
    uint64_t again = put(&fixture, B, "a", NULL, "1");
    expect_none(&fixture);
    expect_versions(&fixture, (uint64_t[]){again, other}, 2);
    end(&fixture);
}

/* By commands before version 21 the end of a life cancels writes that it has not kept by a CANCEL. */
static void test_older_commands_keep_no_write(void **state)
{
    struct world fixture;
    (void)state;
    begin_writes(&fixture, false);
    uint64_t write = put(&fixture, A, "a", NULL, "1");
    leave_by(&fixture, FIRST_LIFE, COMMAND_SINCE_PLACES_OF_WRITES - 1);
    expect_one(&fixture, write, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/* A write is compared with the newest requests that have its ID, however many have it: not with all of them. */
static void test_write_is_compared_with_few(void **state)
{
    enum { MANY = 1000 };
    struct world fixture;
    (void)state;
    begin_writes(&fixture, false);
    (void)put(&fixture, A, "a", NULL, "1");
    for (int i = 0; i < MANY; i++)
        (void)put(&fixture, B, "a", "third", "1"); /* another request */
    leave(&fixture, FIRST_LIFE);
    assert_int_equal(kept_count(&fixture), 1);
    assert_in_range(core_step_work(fixture.core.core), MANY * WORK_LOCK, 2 * MANY * WORK_LOCK - 1);
    end(&fixture);
}

/* Many writes with one ID are compared with each other: each step is bounded. */
static void test_comparison_of_writes_is_bounded(void **state)
{
    enum { MANY = 2000 };
    struct world fixture;
    (void)state;
    begin_writes(&fixture, false);
    for (int i = 0; i < MANY; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "n%d", i / 2 % (MANY / 20));
        (void)put(&fixture, i % 2 == 0 ? A : B, name, i % 2 == 0 ? NULL : "third", "1"); /* another request */
    }
    expect_none(&fixture);
    fixture.core.limits.ephemeral_batch = fixture.core.core->limits.ephemeral_batch = 10;
    leave_in_bounded_steps(&fixture);
    assert_int_equal(kept_count(&fixture), MANY / 20);
    end(&fixture);
}

/* By commands before version 19 the end of a life ends all waits, also those that a CANCEL has kept. */
static void test_older_commands_keep_no_place(void **state)
{
    unsigned before = COMMAND_SINCE_PLACES_IN_CLUSTER - 1;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct world fixture;
        begin(&fixture, false);
        if (i == 2)
            cancel(&fixture, (uint64_t)A << HOST_SHIFT);
        if (i == 1)
            join(&fixture, A, FIRST_LIFE + 1, before);
        else
            leave_by(&fixture, FIRST_LIFE, before);
        uint64_t ended[] = {fixture.last_request[A] - 1 + ((uint64_t)A << HOST_SHIFT),
                            fixture.last_request[A] + ((uint64_t)A << HOST_SHIFT)};
        expect(&fixture, ended, 2, PROBLEM_STOPPING);
        assert_int_equal(kept_count(&fixture), 0);
        assert_int_equal(fixture.core.core->owners->locks.waiting_count, 0);
        end(&fixture);
    }
}

/* Many requests of one session are compared with later ones of it: each step is bounded. */
static void test_comparison_with_later_requests_is_bounded(void **state)
{
    enum { MANY = 4000 };
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    for (int i = 0; i < MANY; i++)
        (void)ask(&fixture, A, "first", "1", 60 * TL_SECOND);
    for (int i = 0; i < MANY; i++)
        (void)ask(&fixture, B, "first", i % 2 == 0 ? "12" : "13", 60 * TL_SECOND); /* each has a lock in common */
    expect_none(&fixture);
    leave_in_bounded_steps(&fixture);
    assert_int_equal(kept_count(&fixture), MANY + 2);
    end(&fixture);
}

/* Each case, without and with a core that is saved and loaded. */
#define TWICE(name, body)          \
    static void name(void **state) \
    {                              \
        (void)state;               \
        body(false);               \
        body(true);                \
    }

TWICE(test_repeated_request_has_its_place, keeps_order)
TWICE(test_free_lock_waits_for_its_client, keeps_granted_lock)
TWICE(test_place_ends_after_a_time, ends_after_a_time)
TWICE(test_place_ends_by_its_deadline, ends_by_its_deadline)
TWICE(test_next_life_keeps_places, is_kept_by_next_life)
TWICE(test_place_ends_with_its_session, ends_with_its_session)
TWICE(test_kept_victim, may_be_a_victim)
TWICE(test_cycle_with_a_kept_request, has_other_victims)
TWICE(test_orderly_end_keeps_places, is_kept_by_orderly_end)
TWICE(test_places_are_kept_in_batches, keeps_in_batches)
TWICE(test_repeated_before_the_host_is_dead, is_repeated_before_its_turn)
TWICE(test_granted_before_the_host_is_dead, is_repeated_and_granted_before)
TWICE(test_only_equal_request_has_the_place, only_equal_request_has_the_place)
TWICE(test_writes_are_cancelled, cancels_writes)
TWICE(test_repeated_write_has_its_place, write_keeps_order)
TWICE(test_place_has_no_attempts_of_the_later_write, place_has_no_attempts_of_the_later_write)
TWICE(test_place_of_write_ends_after_a_time, write_ends_after_a_time)
TWICE(test_ready_write_gives_its_locks, ready_write_gives_its_locks)
TWICE(test_earlier_write_has_its_own_place, earlier_write_has_its_own_place)
TWICE(test_only_equal_write_has_the_place, only_equal_write_has_the_place)
TWICE(test_place_outlives_two_hosts, place_outlives_two_hosts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_request_has_its_place),
        cmocka_unit_test(test_free_lock_waits_for_its_client),
        cmocka_unit_test(test_place_ends_after_a_time),
        cmocka_unit_test(test_place_ends_by_its_deadline),
        cmocka_unit_test(test_next_life_keeps_places),
        cmocka_unit_test(test_place_ends_with_its_session),
        cmocka_unit_test(test_kept_victim),
        cmocka_unit_test(test_cycle_with_a_kept_request),
        cmocka_unit_test(test_clients_are_answered_once),
        cmocka_unit_test(test_orderly_end_keeps_places),
        cmocka_unit_test(test_places_are_kept_in_batches),
        cmocka_unit_test(test_repeated_before_the_host_is_dead),
        cmocka_unit_test(test_granted_before_the_host_is_dead),
        cmocka_unit_test(test_only_equal_request_has_the_place),
        cmocka_unit_test(test_writes_are_cancelled),
        cmocka_unit_test(test_repeated_write_has_its_place),
        cmocka_unit_test(test_place_has_no_attempts_of_the_later_write),
        cmocka_unit_test(test_place_of_write_ends_after_a_time),
        cmocka_unit_test(test_ready_write_gives_its_locks),
        cmocka_unit_test(test_earlier_write_has_its_own_place),
        cmocka_unit_test(test_only_equal_write_has_the_place),
        cmocka_unit_test(test_place_outlives_two_hosts),
        cmocka_unit_test(test_write_is_compared_with_few),
        cmocka_unit_test(test_older_commands_keep_no_write),
        cmocka_unit_test(test_comparison_of_writes_is_bounded),
        cmocka_unit_test(test_older_commands_keep_no_place),
        cmocka_unit_test(test_comparison_with_later_requests_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
