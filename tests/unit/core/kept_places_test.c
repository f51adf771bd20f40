/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a request for locks that waited at a restart keeps its place for its session, which asks again;
 * no session keeps a lock that its client was not notified of (README-locks.md, "Kept places").
 * Method: a CANCEL of all requests, as a host submits it when it ends in good order, and when it has started again.
 * Each case runs twice, the second time with the core saved and loaded before each command.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

enum { LONGER_THAN_KEPT = 11, SHORTER_THAN_KEPT = 9 }; /* seconds */
enum { AFTER_RESTART = 100000 };                       /* the first number of a request then */

struct world {
    struct core_fixture core;
    uint64_t last_request;
    tl_ts token; /* of the last LOCK that was expected to be granted */
    bool saves;
};

static struct command *new_as(struct world *fixture, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = ++fixture->last_request;
    return command;
}

static void give(struct world *fixture, struct command *command, uint64_t us)
{
    struct core_fixture *core = &fixture->core;
    if (fixture->saves)
        fixture_reopen(core);
    core->now = core->now <= core_last_ts(core->core) ? core_last_ts(core->core) : core->now;
    command->ts = ++core->now;
    command->clock = core->clock += us;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = command->clock;
    assert_int_equal(core_step(core->core, command, &core->effects), 0);
}

/* Checks that exactly the commands with these numbers have completed, in any order, with `problem`. */
static void expect(struct world *fixture, const uint64_t *requests, size_t count, enum problem_type problem)
{
    size_t found = 0;
    while (!list_empty(&fixture->core.effects.completed)) {
        struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
        bool expected = false;
        list_remove(&command->link);
        for (size_t i = 0; i < count; i++)
            expected |= requests[i] == command->request;
        if (expected) {
            assert_int_equal(command->problem.type, problem);
            fixture->token =
                command->type == COMMAND_LOCK && problem == PROBLEM_NONE ? command->lock.fencing_token : fixture->token;
            found++;
        } else if (command->type == COMMAND_LOCK) {
            /* of before a restart: no client waits for it */
            assert_true(command->request < AFTER_RESTART || command->problem.type == PROBLEM_STOPPING);
        }
        command_free(command);
    }
    assert_int_equal(found, count);
}

static void expect_one(struct world *fixture, uint64_t request, enum problem_type problem)
{
    expect(fixture, &request, 1, problem);
}

static void session(struct world *fixture, enum command_type type, const char *id)
{
    struct command *command = new_as(fixture, type);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    give(fixture, command, 10);
    expect(fixture, NULL, 0, PROBLEM_NONE);
}

/* Requests the lock of each letter of `ids`. Returns: the number of the request. */
static uint64_t ask(struct world *fixture, const char *session, const char *ids, enum lock_mode mode, uint64_t wait_us)
{
    struct command *command = new_as(fixture, COMMAND_LOCK);
    size_t count = strlen(ids);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = mode, .index = SLICE_LIT("fs"), .id = arena_copy(&command->arena, slice_make(ids + i, 1))};
    command->lock.target_count = count;
    uint64_t request = command->request;
    give(fixture, command, 10);
    return request;
}

static uint64_t lock(struct world *fixture, const char *session)
{
    return ask(fixture, session, "1", LOCK_X, 60 * TL_SECOND);
}

static void unlock(struct world *fixture, const char *session)
{
    struct command *command = new_as(fixture, COMMAND_UNLOCK);
    command->owner.session = slice_from(session);
    give(fixture, command, 10);
}

static void tick(struct world *fixture, uint64_t seconds)
{
    for (int i = 0; i < 2; i++)
        give(fixture, new_as(fixture, COMMAND_TICK), i == 0 ? seconds * TL_SECOND : 10);
}

static void cancel(struct world *fixture, uint64_t request, bool keeps_places)
{
    struct command *command = new_as(fixture, COMMAND_CANCEL);
    command->cancel.request = request;
    command->cancel.keeps_places = keeps_places;
    give(fixture, command, 10);
}

/* The commands of a host after a start. */
static void restart(struct world *fixture)
{
    struct command *command = new_as(fixture, COMMAND_RESTART);
    give(fixture, command, 10);
    cancel(fixture, 0, true);
    expect(fixture, NULL, 0, PROBLEM_NONE);
    fixture->last_request += AFTER_RESTART;
}

static size_t count_holders(struct world *fixture, const char *session)
{
    return owners_session(fixture->core.core->owners, slice_from(session))->owner.locks.lock_count;
}

/* Session "holder" has the lock, "first" and "second" wait. */
static void begin(struct world *fixture, bool saves)
{
    *fixture = (struct world){.saves = saves};
    fixture_open(&fixture->core);
    session(fixture, COMMAND_SESSION_OPEN, "holder");
    session(fixture, COMMAND_SESSION_OPEN, "first");
    session(fixture, COMMAND_SESSION_OPEN, "second");
    session(fixture, COMMAND_SESSION_OPEN, "third");
    uint64_t request = lock(fixture, "holder");
    expect_one(fixture, request, PROBLEM_NONE);
    (void)lock(fixture, "first");
    (void)lock(fixture, "second");
    expect(fixture, NULL, 0, PROBLEM_NONE);
}

static void end(struct world *fixture)
{
    core_stop(fixture->core.core, &fixture->core.effects);
    while (!list_empty(&fixture->core.effects.completed)) {
        struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    fixture_close(&fixture->core);
}

/* A session that asks again has its place, whatever the order in which sessions ask. */
static void keeps_order(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    uint64_t third = lock(&fixture, "third"), second = lock(&fixture, "second"), first = lock(&fixture, "first");
    unlock(&fixture, "holder");
    expect_one(&fixture, first, PROBLEM_NONE);
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/* The lock becomes free before they ask again: no other request overtakes them, and each is answered. */
static void keeps_granted_lock(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    unlock(&fixture, "holder");
    uint64_t third = lock(&fixture, "third"), second = lock(&fixture, "second");
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    uint64_t first = lock(&fixture, "first");
    expect_one(&fixture, first, PROBLEM_NONE);
    assert_int_equal(count_holders(&fixture, "first"), 1);
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/* A session that does not ask again loses its place, and locks that it was granted there. */
static void ends_after_a_time(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    unlock(&fixture, "holder");
    (void)lock(&fixture, "third");
    tick(&fixture, SHORTER_THAN_KEPT);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    restart(&fixture); /* gives those of before no further time */
    uint64_t third = lock(&fixture, "third");
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    expect_one(&fixture, third, PROBLEM_NONE);
    assert_int_equal(count_holders(&fixture, "first"), 0);
    assert_int_equal(count_holders(&fixture, "second"), 0);
    assert_int_equal(fixture.core.core->owners->kept_count, 0);
    end(&fixture);
}

/* Another request of the session, and one that does not want to wait, take over nothing. */
static void only_equal_request_takes_over(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    uint64_t request = ask(&fixture, "first", "2", LOCK_X, 60 * TL_SECOND);
    expect_one(&fixture, request, PROBLEM_NONE);
    request = ask(&fixture, "first", "1", LOCK_X, 0);
    expect_one(&fixture, request, PROBLEM_LOCK_CONFLICT);
    assert_int_equal(fixture.core.core->owners->kept_count, 2);
    uint64_t shared = ask(&fixture, "first", "1", LOCK_S, 60 * TL_SECOND);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    unlock(&fixture, "holder"); /* the kept one is granted, and covers the other */
    expect_one(&fixture, shared, PROBLEM_NONE);
    tick(&fixture, LONGER_THAN_KEPT); /* the shared lock is left */
    request = ask(&fixture, "third", "1", LOCK_S, 0);
    expect_one(&fixture, request, PROBLEM_NONE);
    end(&fixture);
}

/* The end of a session ends its kept request, granted or not. */
static void ends_with_its_session(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    unlock(&fixture, "holder");
    session(&fixture, COMMAND_SESSION_CLOSE, "first");
    tick(&fixture, 1);
    uint64_t second = lock(&fixture, "second");
    expect_one(&fixture, second, PROBLEM_NONE);
    session(&fixture, COMMAND_SESSION_CLOSE, "second");
    tick(&fixture, 1);
    assert_int_equal(fixture.core.core->owners->kept_count, 0);
    end(&fixture);
}

/* The locks of a kept request may be released before its client asks again: then it asks anew. */
static void released_lock_is_requested_again(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    unlock(&fixture, "holder");
    unlock(&fixture, "first");
    uint64_t first = lock(&fixture, "first");
    expect(&fixture, NULL, 0, PROBLEM_NONE); /* "second" has a place before it now */
    uint64_t second = lock(&fixture, "second");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, first, PROBLEM_NONE);
    end(&fixture);
}

/* A lock that was released and locked again by another request has the token of that one. */
static void has_token_of_its_lock(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    session(&fixture, COMMAND_SESSION_CLOSE, "second");
    unlock(&fixture, "holder");
    assert_int_equal(count_holders(&fixture, "first"), 1);
    unlock(&fixture, "first");
    uint64_t both = ask(&fixture, "first", "12", LOCK_X, 0);
    expect_one(&fixture, both, PROBLEM_NONE);
    tl_ts token = fixture.token;
    uint64_t first = lock(&fixture, "first");
    expect_one(&fixture, first, PROBLEM_NONE);
    assert_int_equal(fixture.token, token);
    assert_int_equal(count_holders(&fixture, "first"), 2);
    assert_int_equal(fixture.core.core->owners->kept_count, 0);
    end(&fixture);
}

/* A wait that was taken over has the deadline and the number of the request that did, and is kept again. */
static void is_as_any_other_once_taken_over(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    uint64_t first = lock(&fixture, "first"), second = lock(&fixture, "second");
    assert_int_equal(fixture.core.core->owners->kept_count, 0);
    tick(&fixture, LONGER_THAN_KEPT);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    cancel(&fixture, second, false);
    expect_one(&fixture, second, PROBLEM_LOCK_WAIT_TIMEOUT);
    restart(&fixture);
    assert_int_equal(fixture.core.core->owners->kept_count, 1);
    cancel(&fixture, first, false); /* finds nothing: its client is gone, and the place is kept */
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    second = lock(&fixture, "second");
    first = lock(&fixture, "first");
    unlock(&fixture, "holder");
    expect_one(&fixture, first, PROBLEM_NONE);
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    end(&fixture);
}

/* The end of the server cancels kept requests too, and undoes what they were granted. */
static void ends_with_its_server(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    restart(&fixture);
    unlock(&fixture, "holder");
    assert_int_equal(count_holders(&fixture, "first"), 1);
    cancel(&fixture, 0, false);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    assert_int_equal(fixture.core.core->owners->kept_count, 0);
    assert_int_equal(count_holders(&fixture, "first"), 0);
    uint64_t third = ask(&fixture, "third", "1", LOCK_X, 0);
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/* A kept request is the victim of a deadlock like any other: its session asks anew, and is refused. */
static void may_be_a_victim(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    uint64_t own = ask(&fixture, "first", "2", LOCK_X, 0);
    expect_one(&fixture, own, PROBLEM_NONE);
    restart(&fixture);
    uint64_t holder = ask(&fixture, "holder", "2", LOCK_X, 60 * TL_SECOND);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    assert_int_equal(fixture.core.core->owners->kept_count, 1); /* "second" */
    uint64_t first = lock(&fixture, "first");
    expect_one(&fixture, first, PROBLEM_DEADLOCK_DETECTED);
    unlock(&fixture, "first");
    expect_one(&fixture, holder, PROBLEM_NONE);
    end(&fixture);
}

static void has_submitter(struct command *command)
{
    command_free(command);
}

/*
 * At an end in good order each waiting client is answered, and its place is kept. (A loaded core has no submitters.)
 * Its lock may become free before the end.
 */
static void answers_at_an_orderly_end(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    list_for_each(link, &fixture.core.core->owners->waits) list_entry(link, struct wait, of_all)->command->on_done =
        has_submitter;
    uint64_t ended[] = {fixture.last_request - 1, fixture.last_request};
    cancel(&fixture, 0, true);
    expect(&fixture, ended, saves ? 0 : 2, PROBLEM_STOPPING);
    assert_int_equal(fixture.core.core->owners->kept_count, 2);
    unlock(&fixture, "holder");
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    restart(&fixture);
    uint64_t third = lock(&fixture, "third"), second = lock(&fixture, "second"), first = lock(&fixture, "first");
    expect_one(&fixture, first, PROBLEM_NONE);
    unlock(&fixture, "first");
    expect_one(&fixture, second, PROBLEM_NONE);
    unlock(&fixture, "second");
    expect_one(&fixture, third, PROBLEM_NONE);
    end(&fixture);
}

/* Requests the lock that "holder" has, and `count` others, of which the last has its own name. */
static void ask_many(struct world *fixture, size_t count, const char *last)
{
    struct command *command = new_as(fixture, COMMAND_LOCK);
    command->owner.session = SLICE_LIT("third");
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, (count + 1) * sizeof(struct lock_target));
    for (size_t i = 0; i <= count; i++)
        command->lock.targets[i] =
            (struct lock_target){.mode = LOCK_X,
                                 .index = SLICE_LIT("fs"),
                                 .id = i == count ? slice_from(last) : arena_printf(&command->arena, "%zu", i + 1)};
    command->lock.target_count = count + 1;
    give(fixture, command, 10);
    expect(fixture, NULL, 0, PROBLEM_NONE);
}

/* "first" waits for the lock of "holder", and for each letter of `ids`, which "holder" has too, alone. */
static void begin_many(struct world *fixture, bool saves, const char *ids)
{
    begin(fixture, saves);
    uint64_t request = ask(fixture, "holder", ids, LOCK_X, 0);
    expect_one(fixture, request, PROBLEM_NONE);
    for (const char *id = ids; *id != '\0'; id++)
        (void)ask(fixture, "first", (char[]){*id, '\0'}, LOCK_X, 60 * TL_SECOND);
    expect(fixture, NULL, 0, PROBLEM_NONE);
    fixture->core.limits.ephemeral_batch = 1;
    fixture->core.core->limits.ephemeral_batch = 1;
}

static size_t kept_count(const struct world *fixture)
{
    return fixture->core.core->owners->kept_count;
}

/*
 * Places are kept in batches, which TICKs continue. A request whose turn is still to come is found by its session and
 * not by its number, and may be granted; a later restart does not change that.
 */
static void keeps_in_batches(bool saves)
{
    struct world fixture;
    begin_many(&fixture, saves, "abcdefghijkl"); /* 14 wait */
    uint64_t last = fixture.last_request;
    cancel(&fixture, 0, true);
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    assert_int_equal(core_next_wait_end(fixture.core.core), 0);
    cancel(&fixture, last, false);
    (void)ask(&fixture, "first", "k", LOCK_X, 60 * TL_SECOND); /* its turn is still to come */
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    fixture.last_request += AFTER_RESTART;
    cancel(&fixture, 0, true);
    assert_int_equal(kept_count(&fixture), 2 * CANCELS_PER_COST);
    unlock(&fixture, "holder");
    for (int i = 0; i < 10 && core_next_wait_end(fixture.core.core) == 0; i++)
        tick(&fixture, 0);
    assert_true(core_next_wait_end(fixture.core.core) != 0);
    assert_int_equal(kept_count(&fixture), 14);
    assert_int_equal(count_holders(&fixture, "first"), 13);
    for (const char *id = "1abcdefghijkl"; *id != '\0'; id++) {
        uint64_t request = ask(&fixture, "first", (char[]){*id, '\0'}, LOCK_X, 0);
        expect_one(&fixture, request, PROBLEM_NONE);
    }
    assert_int_equal(kept_count(&fixture), 1); /* "second" */
    session(&fixture, COMMAND_SESSION_CLOSE, "first");
    tick(&fixture, LONGER_THAN_KEPT);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/* A request with many locks counts as several: its command is copied. */
static void test_large_requests_have_smaller_batches(void **state)
{
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    ask_many(&fixture, 1000, "a");
    ask_many(&fixture, 1000, "b");
    fixture.core.core->limits.ephemeral_batch = 1;
    cancel(&fixture, 0, true);
    assert_int_equal(kept_count(&fixture), 3); /* two small ones, and the first large one */
    tick(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 4);
    end(&fixture);
}

/*
 * All requests of a host are marked in one step, at a unit of work each. As limits.waiters_max, 100,000, may wait in
 * all queues, that is a 25th of what a commit may be.
 */
static void test_marks_of_all_requests_are_little_work(void **state)
{
    enum { WAITS = 2000, OF_THE_BATCH = 2000 };
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    for (int i = 0; i < WAITS; i++)
        (void)lock(&fixture, "first");
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    fixture.core.core->limits.ephemeral_batch = 1;
    cancel(&fixture, 0, true);
    assert_int_equal(kept_count(&fixture), CANCELS_PER_COST);
    assert_in_range(core_step_work(fixture.core.core), WAITS * WORK_LOCK, WAITS * WORK_LOCK + OF_THE_BATCH);
    assert_true(core_limits_default().waiters_max * WORK_LOCK <= CORE_COMMIT_WORK / 25);
    end(&fixture);
}

/* In commands before version 17 all are kept at once. */
static void test_older_commands_keep_all_at_once(void **state)
{
    struct world fixture;
    (void)state;
    begin_many(&fixture, false, "abcdefghijkl");
    struct command *command = new_as(&fixture, COMMAND_CANCEL);
    command->cancel.keeps_places = true;
    command->version = COMMAND_SINCE_PLACES_IN_BATCHES - 1;
    command->cancel.request = 0;
    give(&fixture, command, 10);
    assert_int_equal(kept_count(&fixture), 14);
    end(&fixture);
}

/* A CANCEL that a server sends after that of all keeps the place of one LOCK, and ends another request. */
static void keeps_one(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    struct command *command = new_as(&fixture, COMMAND_WRITE);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, "1", "{}");
    uint64_t write = command->request;
    give(&fixture, command, 10);
    cancel(&fixture, write - 1, true);
    assert_int_equal(kept_count(&fixture), 1);
    cancel(&fixture, write, true);
    expect_one(&fixture, write, PROBLEM_STOPPING);
    uint64_t second = lock(&fixture, "second");
    assert_int_equal(kept_count(&fixture), 0);
    cancel(&fixture, second - 3, true);
    assert_int_equal(kept_count(&fixture), 0); /* it names no request that waits */
    end(&fixture);
}

/* A host joins the cluster, or leaves it, by a command before version 19. */
static void host(struct world *fixture, bool leaves)
{
    struct command *command = new_as(fixture, leaves ? COMMAND_HOST_GONE : COMMAND_JOIN);
    command->join = (struct join_command){.name = SLICE_LIT("a"),
                                          .group = SLICE_LIT("default"),
                                          .build = SLICE_LIT("1"),
                                          .life = 11,
                                          .limits = fixture->core.limits};
    if (leaves)
        command->gone = (struct gone_command){.name = SLICE_LIT("a"), .life = 11};
    command->version = COMMAND_SINCE_PLACES_IN_CLUSTER - 1;
    give(fixture, command, 10);
}

/*
 * Before version 19 of commands a place that was kept of one request ends when its host has left its cluster, and so
 * does the lock if it was free by then: no session has it without its client, and the next one has its turn.
 */
static void ends_with_its_host(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    host(&fixture, false);
    uint64_t other = fixture.last_request; /* requests of hosts that stay have small numbers */
    fixture.last_request = (uint64_t)1 << HOST_SHIFT;
    uint64_t free = ask(&fixture, "third", "a", LOCK_X, 60 * TL_SECOND);
    expect_one(&fixture, free, PROBLEM_NONE);
    uint64_t parked = ask(&fixture, "second", "a", LOCK_X, 60 * TL_SECOND);
    cancel(&fixture, parked, true);
    uint64_t last = lock(&fixture, "third");
    cancel(&fixture, last, true);
    assert_int_equal(kept_count(&fixture), 2);
    fixture.last_request = other;
    unlock(&fixture, "third");
    assert_int_equal(count_holders(&fixture, "second"), 1); /* without a client */
    uint64_t waits = ask(&fixture, "third", "a", LOCK_X, 60 * TL_SECOND);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    host(&fixture, true);
    tick(&fixture, 0);
    expect_one(&fixture, waits, PROBLEM_NONE);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(count_holders(&fixture, "second"), 0);
    end(&fixture);
}

/* The ends of many kept requests that were granted have the other waiting ones resolve their names again once. */
static void test_ends_of_granted_requests_are_bounded(void **state)
{
    enum { MANY = 4000 };
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    for (int part = 0; part < 2; part++) {
        for (size_t i = 0; i < MANY; i++) {
            struct command *command = new_as(&fixture, COMMAND_LOCK);
            command->owner.session = part == 0 ? SLICE_LIT("holder") : SLICE_LIT("first");
            command->owner.timeout_us = part * 60 * TL_SECOND;
            command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
            command->lock.targets[0] = (struct lock_target){
                .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "many-%zu", i)};
            command->lock.target_count = 1;
            give(&fixture, command, 10);
        }
    }
    cancel(&fixture, 0, true);
    unlock(&fixture, "holder");
    for (int i = 0; i < 10 && core_next_wait_end(fixture.core.core) == 0; i++)
        tick(&fixture, 0);
    assert_int_equal(count_holders(&fixture, "first"), MANY + 1);
    uint64_t most = 0;
    for (int i = 0; i < 20 && fixture.core.core->owners->kept_count > 0; i++) {
        give(&fixture, new_as(&fixture, COMMAND_TICK), i == 0 ? LONGER_THAN_KEPT * TL_SECOND : 10);
        uint64_t work = core_step_work(fixture.core.core);
        most = work > most ? work : most;
    }
    assert_int_equal(count_holders(&fixture, "first"), 0);
    assert_in_range(most, 0, CORE_STEP_WORK);
    fixture.last_request += AFTER_RESTART; /* no client waits for those of before */
    end(&fixture);
}

static uint64_t ask_by_alias(struct world *fixture, const char *session, const char *id, uint64_t wait_us)
{
    struct command *command = new_as(fixture, COMMAND_LOCK);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("a"), .id = slice_from(id)};
    command->lock.target_count = 1;
    uint64_t request = command->request;
    give(fixture, command, 10);
    return request;
}

static size_t count_names(struct world *fixture, const char *session)
{
    return owners_session(fixture->core.core->owners, slice_from(session))->owner.locks.auxiliary_count;
}

/*
 * A lock by an alias has the alias's name also if its session had that by a kept request alone, which is undone: it was
 * asked for then, or waited for before and was granted then.
 */
static void name_outlives_kept_request(bool saves)
{
    for (int waited = 0; waited < 2; waited++) {
        struct world fixture = {.saves = saves};
        fixture_open(&fixture.core);
        fixture_index_command(&fixture.core, COMMAND_INDEX_CREATE, "x", "{\"aliases\":{\"a\":{}}}");
        session(&fixture, COMMAND_SESSION_OPEN, "first");
        session(&fixture, COMMAND_SESSION_OPEN, "second");
        session(&fixture, COMMAND_SESSION_OPEN, "third");
        expect_one(&fixture, ask_by_alias(&fixture, "second", "1", 0), PROBLEM_NONE);
        expect_one(&fixture, ask_by_alias(&fixture, "third", "2", 0), PROBLEM_NONE);
        if (waited) {
            expect_one(&fixture, ask_by_alias(&fixture, "first", "3", 0), PROBLEM_NONE);
            (void)ask_by_alias(&fixture, "first", "2", 60 * TL_SECOND); /* without the name, which "first" has */
            unlock(&fixture, "first");
        }
        (void)ask_by_alias(&fixture, "first", "1", 60 * TL_SECOND);
        restart(&fixture);
        uint64_t request = waited ? ask_by_alias(&fixture, "first", "2", 60 * TL_SECOND) : 0;
        unlock(&fixture, "second"); /* the kept one is granted, with the name */
        expect(&fixture, NULL, 0, PROBLEM_NONE);
        assert_int_equal(count_names(&fixture, "first"), 1);
        unlock(&fixture, "third");
        if (!waited)
            request = ask_by_alias(&fixture, "first", "2", 0);
        expect_one(&fixture, request, PROBLEM_NONE);
        tick(&fixture, LONGER_THAN_KEPT);
        assert_int_equal(fixture.core.core->owners->kept_count, 0);
        assert_int_equal(count_holders(&fixture, "first"), 1);
        assert_int_equal(count_names(&fixture, "first"), 1);
        end(&fixture);
    }
}

/*
 * A change of the alias waits for the name that a kept request has, and its session asks for another lock by that: the
 * two do not wait for each other. The change is made when the session has released all.
 */
static void name_is_shared_before_a_change(bool saves)
{
    struct world fixture = {.saves = saves};
    fixture_open(&fixture.core);
    fixture_index_command(&fixture.core, COMMAND_INDEX_CREATE, "x", "{\"aliases\":{\"a\":{}}}");
    session(&fixture, COMMAND_SESSION_OPEN, "first");
    session(&fixture, COMMAND_SESSION_OPEN, "second");
    expect_one(&fixture, ask_by_alias(&fixture, "second", "1", 0), PROBLEM_NONE);
    (void)ask_by_alias(&fixture, "first", "1", 60 * TL_SECOND);
    restart(&fixture);
    unlock(&fixture, "second");
    struct command *change = new_as(&fixture, COMMAND_ALIASES_UPDATE);
    change->owner.timeout_us = 60 * TL_SECOND;
    change->aliases.actions = arena_zalloc(&change->arena, sizeof *change->aliases.actions);
    change->aliases.action_count = 1;
    change->aliases.actions[0] =
        (struct alias_action){.op = ALIAS_REMOVE, .index = SLICE_LIT("x"), .alias = SLICE_LIT("a")};
    uint64_t number = change->request;
    give(&fixture, change, 10);
    expect(&fixture, NULL, 0, PROBLEM_NONE);
    expect_one(&fixture, ask_by_alias(&fixture, "first", "2", 60 * TL_SECOND), PROBLEM_NONE);
    expect_one(&fixture, ask_by_alias(&fixture, "first", "1", 60 * TL_SECOND), PROBLEM_NONE);
    assert_int_equal(count_names(&fixture, "first"), 1);
    unlock(&fixture, "first");
    expect_one(&fixture, number, PROBLEM_NONE);
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
TWICE(test_only_equal_request_takes_over, only_equal_request_takes_over)
TWICE(test_place_ends_with_its_session, ends_with_its_session)
TWICE(test_released_lock_is_requested_again, released_lock_is_requested_again)
TWICE(test_lock_has_its_newest_token, has_token_of_its_lock)
TWICE(test_wait_that_was_taken_over, is_as_any_other_once_taken_over)
TWICE(test_place_ends_with_its_server, ends_with_its_server)
TWICE(test_orderly_end_keeps_places, answers_at_an_orderly_end)
TWICE(test_kept_victim, may_be_a_victim)
TWICE(test_places_are_kept_in_batches, keeps_in_batches)
TWICE(test_place_of_one_request, keeps_one)
TWICE(test_place_of_one_request_ends_with_its_host, ends_with_its_host)
TWICE(test_name_outlives_kept_request, name_outlives_kept_request)
TWICE(test_name_is_shared_before_a_change, name_is_shared_before_a_change)

/*
 * A request takes over the second of two that differ in their last lock, unless the first one has
 * more locks than a step compares: then it waits anew, and the kept ones end by themselves.
 */
static void test_comparison_with_kept_requests_is_limited(void **state)
{
    static const size_t counts[] = {1000, 10000};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world fixture;
        begin(&fixture, false);
        ask_many(&fixture, counts[i], "a");
        ask_many(&fixture, counts[i], "b");
        restart(&fixture);
        assert_int_equal(fixture.core.core->owners->kept_count, 4);
        ask_many(&fixture, counts[i], "b");
        assert_int_equal(fixture.core.core->owners->kept_count, i == 0 ? 3 : 4);
        end(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_request_has_its_place),
        cmocka_unit_test(test_free_lock_waits_for_its_client),
        cmocka_unit_test(test_place_ends_after_a_time),
        cmocka_unit_test(test_only_equal_request_takes_over),
        cmocka_unit_test(test_place_ends_with_its_session),
        cmocka_unit_test(test_released_lock_is_requested_again),
        cmocka_unit_test(test_lock_has_its_newest_token),
        cmocka_unit_test(test_wait_that_was_taken_over),
        cmocka_unit_test(test_place_ends_with_its_server),
        cmocka_unit_test(test_kept_victim),
        cmocka_unit_test(test_orderly_end_keeps_places),
        cmocka_unit_test(test_comparison_with_kept_requests_is_limited),
        cmocka_unit_test(test_places_are_kept_in_batches),
        cmocka_unit_test(test_large_requests_have_smaller_batches),
        cmocka_unit_test(test_marks_of_all_requests_are_little_work),
        cmocka_unit_test(test_older_commands_keep_all_at_once),
        cmocka_unit_test(test_place_of_one_request),
        cmocka_unit_test(test_place_of_one_request_ends_with_its_host),
        cmocka_unit_test(test_name_outlives_kept_request),
        cmocka_unit_test(test_name_is_shared_before_a_change),
        cmocka_unit_test(test_ends_of_granted_requests_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
