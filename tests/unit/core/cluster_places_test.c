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

static struct command *new_of(struct world *box, int host, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = (uint64_t)host << HOST_SHIFT | ++box->last_request[host];
    return command;
}

static void give(struct world *box, struct command *command, uint64_t us)
{
    struct core_fixture *core = &box->core;
    if (box->saves)
        fixture_reopen(core);
    if (box->step_work != 0)
        core->core->atomic_work_max = core->core->write_work_max = box->step_work;
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
static void expect(struct world *box, const uint64_t *requests, size_t count, enum problem_type problem)
{
    size_t found = 0;
    while (!list_empty(&box->core.effects.completed)) {
        struct command *command = list_entry(box->core.effects.completed.next, struct command, link);
        bool expected = false;
        list_remove(&command->link);
        for (size_t i = 0; i < count; i++)
            expected |= requests[i] == command->request;
        enum problem_type of_item = command->type == COMMAND_WRITE && command->problem.type == PROBLEM_NONE
                                        ? command->write.results[0].problem.type
                                        : PROBLEM_NONE;
        if (expected) {
            assert_int_equal(of_item != PROBLEM_NONE ? of_item : command->problem.type, problem);
            box->version = command->type == COMMAND_WRITE && command->problem.type == PROBLEM_NONE
                               ? command->write.results[0].version
                               : 0;
            box->token =
                command->type == COMMAND_LOCK && problem == PROBLEM_NONE ? command->lock.fencing_token : box->token;
            found++;
        } else if (command->type == COMMAND_LOCK || command->type == COMMAND_WRITE) {
            assert_true(of_item != PROBLEM_NONE || command->problem.type == PROBLEM_STOPPING ||
                        (command->request >> HOST_SHIFT == A && command->problem.type != PROBLEM_NONE));
        }
        command_free(command);
    }
    assert_int_equal(found, count);
}

static void expect_one(struct world *box, uint64_t request, enum problem_type problem)
{
    expect(box, &request, 1, problem);
}

static void expect_none(struct world *box)
{
    expect(box, NULL, 0, PROBLEM_NONE);
}

static void session(struct world *box, enum command_type type, const char *id)
{
    struct command *command = new_of(box, B, type);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    give(box, command, 10);
    expect_none(box);
}

static struct command *new_lock(struct world *box, int host, const char *session, uint64_t wait_us, size_t count)
{
    struct command *command = new_of(box, host, COMMAND_LOCK);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    return command;
}

/* Requests the lock of each letter of `ids`. Returns: the number of the request. */
static uint64_t ask(struct world *box, int host, const char *session, const char *ids, uint64_t wait_us)
{
    size_t count = strlen(ids);
    struct command *command = new_lock(box, host, session, wait_us, count);
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_copy(&command->arena, slice_make(ids + i, 1))};
    uint64_t request = command->request;
    give(box, command, 10);
    return request;
}

static uint64_t lock(struct world *box, int host, const char *session)
{
    return ask(box, host, session, "1", 60 * TL_SECOND);
}

static void unlock(struct world *box, const char *session)
{
    struct command *command = new_of(box, B, COMMAND_UNLOCK);
    command->owner.session = slice_from(session);
    give(box, command, 10);
}

static void tick(struct world *box, uint64_t seconds)
{
    for (int i = 0; i < 2; i++)
        give(box, new_of(box, B, COMMAND_TICK), i == 0 ? seconds * TL_SECOND : 10);
}

static void cancel(struct world *box, uint64_t request)
{
    struct command *command = new_of(box, B, COMMAND_CANCEL);
    command->cancel.request = request;
    command->cancel.keeps_places = true;
    give(box, command, 10);
}

/* A host begins a life, which ends an earlier one. `version`: of the command. */
static void join(struct world *box, int host, uint64_t life, unsigned version)
{
    struct command *command = new_of(box, B, COMMAND_JOIN);
    command->version = version;
    command->join = (struct join_command){.name = host == A ? SLICE_LIT("a") : SLICE_LIT("b"),
                                          .group = SLICE_LIT("default"),
                                          .build = SLICE_LIT("1"),
                                          .life = life,
                                          .limits = box->core.limits};
    give(box, command, 10);
    assert_int_equal(core_host(box->core.core, (uint16_t)host)->life, life);
}

static void leave_by(struct world *box, uint64_t life, unsigned version)
{
    struct command *command = new_of(box, B, COMMAND_HOST_GONE);
    command->version = version;
    command->gone = (struct gone_command){.name = SLICE_LIT("a"), .life = life};
    give(box, command, 10);
    assert_int_equal(core_host(box->core.core, A)->life, 0);
}

/* Host a is declared dead. */
static void leave(struct world *box, uint64_t life)
{
    leave_by(box, life, COMMAND_CODEC_VERSION);
}

static size_t kept_count(const struct world *box)
{
    return box->core.core->owners->kept_count;
}

static size_t count_holders(struct world *box, const char *session)
{
    return owners_session(box->core.core->owners, slice_from(session))->owner.locks.lock_count;
}

/* Session "holder" has the lock, "first" and "second" wait by host a. */
static void begin(struct world *box, bool saves)
{
    *box = (struct world){.saves = saves};
    fixture_open(&box->core);
    join(box, A, FIRST_LIFE, COMMAND_CODEC_VERSION);
    join(box, B, FIRST_LIFE, COMMAND_CODEC_VERSION);
    session(box, COMMAND_SESSION_OPEN, "holder");
    session(box, COMMAND_SESSION_OPEN, "first");
    session(box, COMMAND_SESSION_OPEN, "second");
    session(box, COMMAND_SESSION_OPEN, "third");
    uint64_t request = lock(box, B, "holder");
    expect_one(box, request, PROBLEM_NONE);
    (void)lock(box, A, "first");
    (void)lock(box, A, "second");
    expect_none(box);
}

/* Takes all replies up to that of a request, whose command is next then; 0: all. Returns: whether it is there. */
static bool drop_replies(struct world *box, uint64_t request)
{
    struct list *completed = &box->core.effects.completed;
    while (!list_empty(completed)) {
        struct command *command = list_entry(completed->next, struct command, link);
        if (request != 0 && command->request == request)
            return true;
        list_remove(&command->link);
        command_free(command);
    }
    return false;
}

static void end(struct world *box)
{
    core_stop(box->core.core, &box->core.effects);
    (void)drop_replies(box, 0);
    fixture_close(&box->core);
}

/* Host a is declared dead, and TICKs follow until none is due. Checks that each step is bounded. */
static void leave_in_bounded_steps(struct world *box)
{
    enum { STEPS = 2000 };
    int steps = 0;
    leave(box, FIRST_LIFE);
    assert_in_range(core_step_work(box->core.core), 0, CORE_STEP_WORK);
    for (; steps < STEPS && core_next_wait_end(box->core.core) == 0; steps++) {
        give(box, new_of(box, B, COMMAND_TICK), 0);
        assert_in_range(core_step_work(box->core.core), 0, CORE_STEP_WORK);
    }
    assert_in_range(steps, 1, STEPS - 1);
}

/* Checks that each of them gets the lock in this order, and releases it. */
static void expect_order(struct world *box, uint64_t first, uint64_t second, uint64_t third)
{
    unlock(box, "holder");
    expect_one(box, first, PROBLEM_NONE);
    unlock(box, "first");
    expect_one(box, second, PROBLEM_NONE);
    unlock(box, "second");
    expect_one(box, third, PROBLEM_NONE);
}

/* A session that asks again by another host has its place, before requests that came later. */
static void keeps_order(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t third = lock(&box, B, "third"); /* while the host is silent */
    leave(&box, FIRST_LIFE);
    assert_int_equal(kept_count(&box), 2);
    uint64_t second = lock(&box, B, "second"), first = lock(&box, B, "first");
    expect_none(&box);
    assert_int_equal(kept_count(&box), 0);
    tick(&box, LONGER_THAN_KEPT);
    expect_order(&box, first, second, third);
    end(&box);
}

/* The lock becomes free before they ask again: no other request overtakes them. */
static void keeps_granted_lock(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t third = lock(&box, B, "third");
    leave(&box, FIRST_LIFE);
    unlock(&box, "holder");
    expect_none(&box);
    assert_int_equal(count_holders(&box, "first"), 1);
    uint64_t second = lock(&box, B, "second");
    expect_none(&box);
    uint64_t first = lock(&box, B, "first");
    expect_one(&box, first, PROBLEM_NONE);
    unlock(&box, "first");
    expect_one(&box, second, PROBLEM_NONE);
    unlock(&box, "second");
    expect_one(&box, third, PROBLEM_NONE);
    end(&box);
}

/*
 * A session that does not ask again loses its place, and locks that it was granted there, after 10 s: a further life of
 * the host, and its end, neither ends nor prolongs that.
 */
static void ends_after_a_time(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t third = lock(&box, B, "third");
    leave(&box, FIRST_LIFE);
    unlock(&box, "holder");
    tick(&box, SHORTER_THAN_KEPT);
    join(&box, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&box), 2);
    join(&box, A, FIRST_LIFE + 2, COMMAND_CODEC_VERSION);
    leave(&box, FIRST_LIFE + 2);
    cancel(&box, (uint64_t)A << HOST_SHIFT);
    assert_int_equal(kept_count(&box), 2);
    assert_int_equal(count_holders(&box, "first"), 1);
    expect_none(&box);
    tick(&box, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    expect_one(&box, third, PROBLEM_NONE);
    assert_int_equal(kept_count(&box), 0);
    assert_int_equal(count_holders(&box, "first"), 0);
    end(&box);
}

/* A request is kept until its own deadline, if that is earlier. */
static void ends_by_its_deadline(bool saves)
{
    struct world box;
    begin(&box, saves);
    (void)ask(&box, A, "third", "1", TL_SECOND);
    leave(&box, FIRST_LIFE);
    assert_int_equal(kept_count(&box), 3);
    tick(&box, 2);
    assert_int_equal(kept_count(&box), 2);
    end(&box);
}

/* The next life begins before the end of the last one was known: its JOIN keeps places, too. */
static void is_kept_by_next_life(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t number = (uint64_t)A << HOST_SHIFT | 1; /* of "first" */
    join(&box, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&box), 2);
    box.last_request[A] = 0; /* it counts anew */
    uint64_t third = lock(&box, A, "third");
    assert_int_equal(third, number);
    cancel(&box, number); /* finds the request of this life, whose place is kept */
    assert_int_equal(kept_count(&box), 3);
    uint64_t second = lock(&box, B, "second"), first = lock(&box, A, "first");
    third = lock(&box, B, "third");
    expect_none(&box); /* the earlier life's requests have the same numbers */
    expect_order(&box, first, second, third);
    end(&box);
}

/* The end of a session ends its kept request, granted or not. */
static void ends_with_its_session(bool saves)
{
    struct world box;
    begin(&box, saves);
    leave(&box, FIRST_LIFE);
    unlock(&box, "holder");
    session(&box, COMMAND_SESSION_CLOSE, "first");
    tick(&box, 1);
    uint64_t second = lock(&box, B, "second");
    expect_one(&box, second, PROBLEM_NONE);
    assert_int_equal(kept_count(&box), 0);
    end(&box);
}

/* A kept request may be the victim of a deadlock: its session asks anew, and is refused. */
static void may_be_a_victim(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t own = ask(&box, B, "first", "2", 0);
    expect_one(&box, own, PROBLEM_NONE);
    leave(&box, FIRST_LIFE);
    uint64_t holder = ask(&box, B, "holder", "2", 60 * TL_SECOND);
    expect_none(&box);
    assert_int_equal(kept_count(&box), 1); /* "second" */
    uint64_t first = lock(&box, B, "first");
    expect_one(&box, first, PROBLEM_DEADLOCK_DETECTED);
    unlock(&box, "first");
    expect_one(&box, holder, PROBLEM_NONE);
    end(&box);
}

/* Another request closes a cycle with a kept one: that one is the victim if it asks last. */
static void has_other_victims(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t own = ask(&box, B, "second", "2", 0);
    expect_one(&box, own, PROBLEM_NONE);
    leave(&box, FIRST_LIFE);
    unlock(&box, "holder"); /* "first" is granted, and not notified */
    expect_none(&box);
    uint64_t second = ask(&box, B, "first", "2", 60 * TL_SECOND);
    expect_none(&box);
    /* "second" waits for "first", by its kept place, and that for "second": one of the two is refused. */
    uint64_t again = lock(&box, B, "second");
    struct session *first = owners_session(box.core.core->owners, SLICE_LIT("first"));
    assert_non_null(first);
    expect_one(&box, again, PROBLEM_DEADLOCK_DETECTED);
    unlock(&box, "second");
    expect_one(&box, second, PROBLEM_NONE);
    end(&box);
}

static void has_submitter(struct command *command)
{
    command_free(command);
}

/* The commands that wait have clients here. */
static void give_clients(struct world *box)
{
    list_for_each(link, &box->core.core->owners->waits) list_entry(link, struct wait, of_all)->command->on_done =
        has_submitter;
}

static void expect_answer(struct world *box, uint64_t request, const char *reason)
{
    assert_false(list_empty(&box->core.effects.completed));
    const struct command *command = list_entry(box->core.effects.completed.next, struct command, link);
    assert_int_equal(command->request, request);
    assert_true(slice_is(command->problem.reason, reason));
    expect_one(box, request, PROBLEM_STOPPING);
}

/*
 * A host that was out comes back and applies the end of its life: each client that still waits is answered once. One
 * that ends in good order has answered them before.
 */
static void test_clients_are_answered_once(void **state)
{
    (void)state;
    for (int orderly = 0; orderly < 2; orderly++) {
        struct world box;
        begin(&box, false);
        session(&box, COMMAND_SESSION_CLOSE, "second");
        give_clients(&box);
        uint64_t first = box.last_request[A] - 1 + ((uint64_t)A << HOST_SHIFT);
        if (orderly) {
            cancel(&box, (uint64_t)A << HOST_SHIFT);
            expect_answer(&box, first, "the server is shutting down");
            leave(&box, FIRST_LIFE);
        } else {
            leave(&box, FIRST_LIFE);
            expect_answer(&box, first, "the host that this request came by was out of the cluster");
        }
        assert_true(list_empty(&box.core.effects.completed) || orderly);
        expect_none(&box);
        uint64_t again = lock(&box, B, "first");
        expect_none(&box);
        unlock(&box, "holder");
        expect_one(&box, again, PROBLEM_NONE);
        end(&box);
    }
}

/* A host that ends in good order keeps places by its CANCEL; its HOST_GONE does not prolong them. */
static void is_kept_by_orderly_end(bool saves)
{
    struct world box;
    begin(&box, saves);
    cancel(&box, (uint64_t)A << HOST_SHIFT);
    assert_int_equal(kept_count(&box), 2);
    tick(&box, SHORTER_THAN_KEPT);
    leave(&box, FIRST_LIFE);
    uint64_t first = lock(&box, B, "first");
    tick(&box, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    assert_int_equal(kept_count(&box), 0);
    unlock(&box, "holder");
    expect_one(&box, first, PROBLEM_NONE);
    end(&box);
}

/* "first" waits by host a for the lock of "holder", and for each letter of `ids`, which "holder" has too, alone. */
static void begin_many(struct world *box, bool saves, const char *ids)
{
    begin(box, saves);
    uint64_t request = ask(box, B, "holder", ids, 0);
    expect_one(box, request, PROBLEM_NONE);
    for (const char *id = ids; *id != '\0'; id++)
        (void)ask(box, A, "first", (char[]){*id, '\0'}, 60 * TL_SECOND);
    expect_none(box);
    box->core.limits.ephemeral_batch = 1;
    box->core.core->limits.ephemeral_batch = 1;
}

static void finish_batches(struct world *box)
{
    for (int i = 0; i < 10 && core_next_wait_end(box->core.core) == 0; i++)
        tick(box, 0);
    assert_true(core_next_wait_end(box->core.core) != 0);
}

/*
 * Places are kept in batches. A request whose turn is still to come is found by its session and not by its number, may
 * be granted, and is kept in its turn also if its host begins and ends another life meanwhile.
 */
static void keeps_in_batches(bool saves)
{
    struct world box;
    begin_many(&box, saves, "abcdefghijkl"); /* 14 wait */
    uint64_t last = (uint64_t)A << HOST_SHIFT | box.last_request[A];
    leave(&box, FIRST_LIFE);
    assert_int_equal(kept_count(&box), CANCELS_PER_COST);
    cancel(&box, last);
    (void)ask(&box, B, "first", "k", 60 * TL_SECOND); /* its turn is still to come */
    assert_int_equal(kept_count(&box), CANCELS_PER_COST);
    join(&box, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    assert_int_equal(kept_count(&box), CANCELS_PER_COST);
    leave(&box, FIRST_LIFE + 1);
    assert_int_equal(kept_count(&box), 2 * CANCELS_PER_COST);
    unlock(&box, "holder");
    finish_batches(&box);
    assert_int_equal(count_holders(&box, "first"), 13);
    for (const char *id = "1abcdefghijkl"; *id != '\0'; id++) {
        uint64_t request = ask(&box, B, "first", (char[]){*id, '\0'}, 0);
        assert_true(drop_replies(&box, request)); /* the k that waited by b is granted by then */
        expect_one(&box, request, PROBLEM_NONE);
    }
    assert_int_equal(kept_count(&box), 1); /* "second" */
    end(&box);
}

/*
 * A client asks again before its host is found dead. Its later request has the place of the former one, for as long as
 * it waits, and is answered.
 */
static void is_repeated_before_its_turn(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t third = lock(&box, B, "third"), second = lock(&box, B, "second"), first = lock(&box, B, "first");
    leave(&box, FIRST_LIFE);
    expect_none(&box);
    assert_int_equal(kept_count(&box), 0);
    assert_int_equal(box.core.core->owners->locks.waiting_count, 3);
    tick(&box, LONGER_THAN_KEPT);
    cancel(&box, second); /* they have their own numbers */
    expect_none(&box);
    assert_int_equal(kept_count(&box), 1);
    second = lock(&box, B, "second");
    expect_order(&box, first, second, third);
    end(&box);
}

/* The lock is free before the host is found dead: the former request is granted, and covers the later one. */
static void is_repeated_and_granted_before(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t third = lock(&box, B, "third"), first = lock(&box, B, "first");
    unlock(&box, "holder");
    assert_true(drop_replies(&box, first));
    const struct command *answered = list_entry(box.core.effects.completed.next, struct command, link);
    assert_int_equal(answered->problem.type, PROBLEM_NONE);
    (void)drop_replies(&box, 0);
    leave(&box, FIRST_LIFE);
    uint64_t second = lock(&box, B, "second");
    unlock(&box, "first");
    expect_one(&box, second, PROBLEM_NONE);
    unlock(&box, "second");
    expect_one(&box, third, PROBLEM_NONE);
    end(&box);
}

/* Only a request for the same locks by a live host has the place: not one for others, nor another that is kept. */
static void only_equal_request_has_the_place(bool saves)
{
    struct world box;
    begin(&box, saves);
    uint64_t request = ask(&box, B, "holder", "2", 0);
    expect_one(&box, request, PROBLEM_NONE);
    (void)ask(&box, B, "first", "2", 60 * TL_SECOND);
    (void)ask(&box, B, "first", "12", 60 * TL_SECOND);
    (void)lock(&box, A, "first");
    leave(&box, FIRST_LIFE);
    expect_none(&box);
    assert_int_equal(kept_count(&box), 3);
    end(&box);
}

/* Writes without a name are cancelled: some of their items may have run. */
static void cancels_writes(bool saves)
{
    struct world box;
    begin(&box, saves);
    struct command *command = new_of(&box, A, COMMAND_WRITE);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, "1", "{}");
    uint64_t write = command->request;
    give(&box, command, 10);
    leave(&box, FIRST_LIFE);
    expect_one(&box, write, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&box), 2);
    end(&box);
}

/* --- Named writes ------------------------------------------------------------------------------------------------- */

enum { HASH = 7, SMALL_STEP = 1500 };

#define PIECES "1abcdefghijklmnopqrstuvwxyz23456789ABCDE" /* the letters of the documents of a large atomic write */

/* Writes the document of each letter of `ids`; many atomically. `name`, `session`: NULL: none. Returns: its number. */
static uint64_t put(struct world *box, int host, const char *name, const char *session, const char *ids)
{
    struct command *command = new_of(box, host, COMMAND_WRITE);
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
    give(box, command, 10);
    return request;
}

/* Session "holder" has the lock of document 1, which has version 1. */
static void begin_writes(struct world *box, bool saves)
{
    begin(box, saves);
    session(box, COMMAND_SESSION_CLOSE, "first");
    session(box, COMMAND_SESSION_CLOSE, "second");
    unlock(box, "holder");
    uint64_t request = put(box, B, NULL, NULL, "1");
    expect_one(box, request, PROBLEM_NONE);
    request = lock(box, B, "holder");
    expect_one(box, request, PROBLEM_NONE);
}

static void settle(struct world *box)
{
    for (int i = 0; i < 100 && core_next_wait_end(box->core.core) <= box->core.clock; i++)
        give(box, new_of(box, B, COMMAND_TICK), 10);
    assert_true(core_next_wait_end(box->core.core) > box->core.clock);
}

/* Checks that these writes run in this order, each of which makes one version more of document 1. */
static void expect_versions(struct world *box, const uint64_t *requests, size_t count)
{
    struct reply {
        bool done;
        int64_t version;
    } replies[4] = {{0}};
    assert_in_range(count, 1, 4);
    unlock(box, "holder");
    settle(box);
    while (!list_empty(&box->core.effects.completed)) {
        struct command *command = list_entry(box->core.effects.completed.next, struct command, link);
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
    assert_int_equal(kept_count(box), 0);
    assert_int_equal(box->core.core->owners->locks.hold_count, 0);
    assert_int_equal(box->core.core->owners->txns.count, 0);
}

/* Sent again by another host, before that is known to be dead or after, it is before writes that came later. */
static void write_keeps_order(bool saves)
{
    for (int way = 0; way < 8; way++) {
        bool before = way & 1, in_pieces = way & 2, joins = way & 4;
        const char *ids = in_pieces ? PIECES : "1";
        struct world box;
        begin_writes(&box, saves);
        box.step_work = SMALL_STEP;
        (void)put(&box, A, "a", NULL, ids);
        settle(&box);
        uint64_t other = put(&box, B, NULL, NULL, "1");
        uint64_t again = before ? put(&box, B, "a", NULL, ids) : 0;
        settle(&box);
        if (joins)
            join(&box, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
        else
            leave(&box, FIRST_LIFE);
        expect_none(&box);
        assert_int_equal(kept_count(&box), !before);
        if (!before)
            again = put(&box, B, "a", NULL, ids);
        assert_int_equal(box.core.core->owners->locks.waiting_count, 2);
        tick(&box, LONGER_THAN_KEPT);
        expect_none(&box);
        expect_versions(&box, (uint64_t[]){again, other}, 2);
        end(&box);
    }
}

/* One that is not sent again runs nothing, and holds up others for 10 s. */
static void write_ends_after_a_time(bool saves)
{
    struct world box;
    begin_writes(&box, saves);
    (void)put(&box, A, "a", NULL, "1");
    leave(&box, FIRST_LIFE);
    uint64_t other = put(&box, B, NULL, NULL, "1");
    unlock(&box, "holder");
    tick(&box, SHORTER_THAN_KEPT);
    expect_none(&box);
    tick(&box, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    expect_one(&box, other, PROBLEM_NONE);
    assert_int_equal(box.version, 2);
    end(&box);
}

/* Several have their locks, and have not run, when their host is found dead; the last one was sent again before. */
static void ready_write_gives_its_locks(bool saves)
{
    for (int way = 0; way < 2; way++) {
        struct world box;
        const char *ids = way == 0 ? "1" : "123";
        begin_writes(&box, saves);
        uint64_t request = ask(&box, B, "holder", "5", 0);
        expect_one(&box, request, PROBLEM_NONE);
        (void)put(&box, A, NULL, NULL, "5");
        (void)put(&box, A, "a", NULL, ids);
        uint64_t other = put(&box, B, NULL, NULL, "1"), again = put(&box, B, "a", NULL, ids);
        box.core.limits.ephemeral_batch = box.core.core->limits.ephemeral_batch = 1;
        unlock(&box, "holder");
        assert_int_equal(box.core.core->owners->ready_count, 1);
        (void)drop_replies(&box, 0); /* a write of host a has run */
        leave(&box, FIRST_LIFE);
        expect_none(&box);
        assert_int_equal(kept_count(&box), 0);
        settle(&box);
        expect_versions(&box, (uint64_t[]){again, other}, 2);
        end(&box);
    }
}

/* One that came earlier by another host has the better place, and stays before those in between. */
static void earlier_write_has_its_own_place(bool saves)
{
    struct world box;
    begin_writes(&box, saves);
    uint64_t first = put(&box, B, "a", NULL, "1"), between = put(&box, B, NULL, NULL, "1");
    (void)put(&box, A, "a", NULL, "1");
    uint64_t other = put(&box, B, NULL, NULL, "1");
    leave(&box, FIRST_LIFE);
    settle(&box);
    expect_none(&box);
    assert_int_equal(box.core.core->owners->locks.waiting_count, 3);
    expect_versions(&box, (uint64_t[]){first, between, other}, 3);
    end(&box);
}

/* Only a request with the same ID, hash and session by a live host has the place. */
static void only_equal_write_has_the_place(bool saves)
{
    struct world box;
    begin_writes(&box, saves);
    (void)put(&box, A, "a", NULL, "1");
    (void)put(&box, A, "a", NULL, "1");
    (void)put(&box, B, "a", "third", "1");
    (void)put(&box, B, "b", NULL, "1");
    (void)put(&box, B, "a", NULL, "12");
    assert_int_equal(box.core.core->owners->locks.waiting_count, 5);
    leave(&box, FIRST_LIFE);
    assert_int_equal(kept_count(&box), 1);
    end(&box);
}

/* The host of the repetition dies as well: the next one gets the place. */
static void place_outlives_two_hosts(bool saves)
{
    struct world box;
    begin_writes(&box, saves);
    (void)put(&box, A, "a", NULL, "1");
    uint64_t other = put(&box, B, NULL, NULL, "1");
    leave(&box, FIRST_LIFE);
    join(&box, A, FIRST_LIFE + 1, COMMAND_CODEC_VERSION);
    (void)put(&box, A, "a", NULL, "1");
    assert_int_equal(kept_count(&box), 0);
    leave(&box, FIRST_LIFE + 1);
    assert_int_equal(kept_count(&box), 1);
    uint64_t again = put(&box, B, "a", NULL, "1");
    expect_none(&box);
    expect_versions(&box, (uint64_t[]){again, other}, 2);
    end(&box);
}

/* By commands before version 21 the end of a life cancels writes that it has not kept by a CANCEL. */
static void test_older_commands_keep_no_write(void **state)
{
    struct world box;
    (void)state;
    begin_writes(&box, false);
    uint64_t write = put(&box, A, "a", NULL, "1");
    leave_by(&box, FIRST_LIFE, COMMAND_SINCE_PLACES_OF_WRITES - 1);
    expect_one(&box, write, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&box), 0);
    end(&box);
}

/* A write is compared with the newest requests that have its ID, however many have it: not with all of them. */
static void test_write_is_compared_with_few(void **state)
{
    enum { MANY = 1000 };
    struct world box;
    (void)state;
    begin_writes(&box, false);
    (void)put(&box, A, "a", NULL, "1");
    for (int i = 0; i < MANY; i++)
        (void)put(&box, B, "a", "third", "1"); /* another request */
    leave(&box, FIRST_LIFE);
    assert_int_equal(kept_count(&box), 1);
    assert_in_range(core_step_work(box.core.core), MANY * WORK_LOCK, 2 * MANY * WORK_LOCK - 1);
    end(&box);
}

/* Many writes with one ID are compared with each other: each step is bounded. */
static void test_comparison_of_writes_is_bounded(void **state)
{
    enum { MANY = 2000 };
    struct world box;
    (void)state;
    begin_writes(&box, false);
    for (int i = 0; i < MANY; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "n%d", i / 2 % (MANY / 20));
        (void)put(&box, i % 2 == 0 ? A : B, name, i % 2 == 0 ? NULL : "third", "1"); /* another request */
    }
    expect_none(&box);
    box.core.limits.ephemeral_batch = box.core.core->limits.ephemeral_batch = 10;
    leave_in_bounded_steps(&box);
    assert_int_equal(kept_count(&box), MANY / 20);
    end(&box);
}

/* By commands before version 19 the end of a life ends all waits, also those that a CANCEL has kept. */
static void test_older_commands_keep_no_place(void **state)
{
    unsigned before = COMMAND_SINCE_PLACES_IN_CLUSTER - 1;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct world box;
        begin(&box, false);
        if (i == 2)
            cancel(&box, (uint64_t)A << HOST_SHIFT);
        if (i == 1)
            join(&box, A, FIRST_LIFE + 1, before);
        else
            leave_by(&box, FIRST_LIFE, before);
        uint64_t ended[] = {box.last_request[A] - 1 + ((uint64_t)A << HOST_SHIFT),
                            box.last_request[A] + ((uint64_t)A << HOST_SHIFT)};
        expect(&box, ended, 2, PROBLEM_STOPPING);
        assert_int_equal(kept_count(&box), 0);
        assert_int_equal(box.core.core->owners->locks.waiting_count, 0);
        end(&box);
    }
}

/* Many requests of one session are compared with later ones of it: each step is bounded. */
static void test_comparison_with_later_requests_is_bounded(void **state)
{
    enum { MANY = 4000 };
    struct world box;
    (void)state;
    begin(&box, false);
    for (int i = 0; i < MANY; i++)
        (void)ask(&box, A, "first", "1", 60 * TL_SECOND);
    for (int i = 0; i < MANY; i++)
        (void)ask(&box, B, "first", i % 2 == 0 ? "12" : "13", 60 * TL_SECOND); /* each has a lock in common */
    expect_none(&box);
    leave_in_bounded_steps(&box);
    assert_int_equal(kept_count(&box), MANY + 2);
    end(&box);
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
