/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: requests that are granted, or end, together resume in order and in steps of bounded cost,
 * with other commands in between (README-locks.md, "Requests"). Ready commands end
 * for the same reasons as waiting ones.
 * Method: a core whose steps are checked one by one, with the cost per step of servers, or of one.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/command/command_codec.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/unit/work.h"

static void begin(struct core_fixture *fixture, size_t step_cost)
{
    fixture_open(fixture);
    core_close(fixture->core);
    fixture->limits.ephemeral_batch = step_cost;
    assert_int_equal(core_open(fixture->store, &fixture->limits, &fixture->core), 0);
    fixture_index(fixture, "fs", "there", "{\"v\":0}");
}

static void end(struct core_fixture *fixture)
{
    core_stop(fixture->core, &fixture->effects);
    fixture_free_completed(fixture);
    fixture_close(fixture);
}

static void session(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    fixture_give(fixture, command);
}

static void lock(struct core_fixture *fixture, const char *session, const char *id)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->lock.target_count = 1;
    fixture_give(fixture, command);
}

/* Requests the whole index. */
static void lock_index(struct core_fixture *fixture, const char *session)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs")};
    command->lock.target_count = 1;
    fixture_give(fixture, command);
}

/* Requests two documents at once. */
static void lock_two(struct core_fixture *fixture, const char *session, const char *first, const char *second)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, 2 * sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(first)};
    command->lock.targets[1] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(second)};
    command->lock.target_count = 2;
    fixture_give(fixture, command);
}

static void unlock_all(struct core_fixture *fixture, const char *session)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    fixture_give(fixture, command);
}

/* Writes a document. Returns: the number of the command. */
static uint64_t put(struct core_fixture *fixture, int id, int value, const char *session, const char *transaction)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "", "");
    command->write.items[0].id = arena_printf(&command->arena, "%d", id);
    command->write.items[0].source = arena_printf(&command->arena, "{\"v\":%d}", value);
    command->owner.session = slice_from(session);
    command->owner.transaction = slice_from(transaction);
    command->owner.timeout_us = 60 * TL_SECOND;
    fixture_give(fixture, command);
    return fixture->last_request;
}

static void txn(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.idle_us = 3600 * TL_SECOND;
    fixture_give(fixture, command);
}

static void cancel(struct core_fixture *fixture, uint64_t request)
{
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);

    command->cancel.request = request;
    fixture_give(fixture, command);
}

static size_t ready_count(const struct core_fixture *fixture)
{
    return fixture->core->owners->ready_count;
}

/* --- Bounded steps ------------------------------------------------------------------------------------------------ */

/*
 * Writes that waited for one session resume in order, in bounded steps. A new write runs at once,
 * or queues after the ready writes of its document.
 */
static void test_ready_writes_resume_in_bounded_steps(void **state)
{
    enum { WRITES = 10000, DOCUMENTS = 1000 };
    struct core_fixture fixture;
    uint64_t last = 0;
    (void)state;

    begin(&fixture, core_limits_default().ephemeral_batch);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    for (int i = 0; i < DOCUMENTS; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        lock(&fixture, "holder", id);
    }
    for (int i = 0; i < WRITES; i++)
        put(&fixture, i % DOCUMENTS, i, "", "");
    fixture_free_completed(&fixture);
    session(&fixture, COMMAND_SESSION_CLOSE, "holder");
    size_t done = fixture_free_completed(&fixture);
    assert_true(done > 100 && done <= 1 + core_limits_default().ephemeral_batch);
    assert_int_equal(core_next_deadline(fixture.core), 0);

    uint64_t other = put(&fixture, DOCUMENTS, 1, "", ""); /* a write of another document runs alone */
    struct command *command = fixture_completed(&fixture);
    assert_int_equal(command->request, other);
    command_free(command);
    assert_null(fixture_completed(&fixture));
    uint64_t queued = put(&fixture, 0, WRITES, "", ""); /* a write of the same document waits */
    assert_null(fixture_completed(&fixture));
    int steps = 0;
    for (; core_next_deadline(fixture.core) == 0; steps++) {
        fixture_tick(&fixture);
        for (; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
            if (command->type != COMMAND_WRITE)
                continue;
            assert_true(command->write.results[0].outcome == (done <= DOCUMENTS ? WRITE_CREATED : WRITE_UPDATED));
            assert_true(command->ts > last);
            last = command->ts;
            done++;
            if (command->request == queued)
                queued = 0;
        }
    }
    assert_true(steps > 5 && steps < 50);
    assert_int_equal(done, WRITES + 1 + 1);
    assert_int_equal(queued, 0);
    char expected[32];
    snprintf(expected, sizeof expected, "{\"v\":%d}", WRITES);
    assert_string_equal(fixture_source(&fixture, "fs", "0"), expected);
    assert_string_equal(fixture_source(&fixture, "fs", "999"), "{\"v\":9999}");
    lock_table_check(&fixture.core->owners->locks);
    end(&fixture);
}

static size_t waiting_count(const struct core_fixture *fixture)
{
    return fixture->core->owners->locks.waiting_count;
}

/*
 * A lock passes through sessions that asked for it before thousands of requests of another one: each release evaluates
 * one of these, and they are granted in bounded steps.
 */
static void test_requests_of_one_session_after_others_are_evaluated_once(void **state)
{
    enum { OTHERS = 40, COUNT = 6000, WORK_MAX = 20000 };
    struct core_fixture fixture;
    char id[16];
    (void)state;

    begin(&fixture, 1000);
    session(&fixture, COMMAND_SESSION_OPEN, "s");
    for (int i = 0; i <= OTHERS; i++) {
        snprintf(id, sizeof id, "o%d", i);
        session(&fixture, COMMAND_SESSION_OPEN, id);
        lock(&fixture, id, "1");
    }
    for (int i = 0; i < COUNT; i++)
        lock(&fixture, "s", "1");
    assert_int_equal(waiting_count(&fixture), OTHERS + COUNT);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(id, sizeof id, "o%d", i);
        unlock_all(&fixture, id);
        assert_in_range(core_step_work(fixture.core), 1, WORK_MAX);
        assert_int_equal(waiting_count(&fixture), OTHERS + COUNT - 1 - i);
    }
    snprintf(id, sizeof id, "o%d", OTHERS);
    unlock_all(&fixture, id);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 0);
    end(&fixture);
}

/*
 * Waits of a session end and are answered in bounded steps; until then none is granted, and the
 * session keeps its locks.
 */
static void test_ended_waits_are_answered_in_bounded_steps(void **state)
{
    enum { WAITS = 20000 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, core_limits_default().ephemeral_batch);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "waiter");
    lock(&fixture, "holder", "1");
    for (int i = 0; i < WAITS; i++)
        put(&fixture, 1, i, "waiter", "");
    fixture_free_completed(&fixture);
    session(&fixture, COMMAND_SESSION_CLOSE, "waiter");
    const size_t most = (CANCELS_PER_COST + GRANTS_PER_COST) * core_limits_default().ephemeral_batch + CANCELS_PER_COST;
    size_t answered = fixture_free_completed(&fixture); /* the reply of the close is not one of them */
    assert_true(answered > 100 && answered <= core_limits_default().ephemeral_batch);
    assert_int_equal(waiting_count(&fixture),
                     WAITS + 1 - CANCELS_PER_COST * (core_limits_default().ephemeral_batch + 1));
    unlock_all(&fixture, "holder");
    fixture_free_completed(&fixture);
    while (core_next_deadline(fixture.core) == 0) {
        size_t before = waiting_count(&fixture);
        fixture_tick(&fixture);
        assert_true(before - waiting_count(&fixture) <= most);
        for (struct command *command; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
            if (command->type != COMMAND_WRITE)
                continue;
            assert_int_equal(command->problem.type, PROBLEM_SESSION_MISSING);
            answered++;
        }
    }
    assert_int_equal(answered, WAITS);
    assert_null(fixture_source(&fixture, "fs", "1"));
    end(&fixture);
}

/* Cancels all requests of a host, in as many steps as that takes; with `single_step`, in one. */
static void cancel_host(struct core_fixture *fixture, uint64_t host, bool single_step)
{
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);

    command->cancel.request = host << HOST_SHIFT;
    command->cancel.single_step = single_step;
    fixture_give(fixture, command);
}

/*
 * The requests of a host that stops end in bounded steps. Between them others run, a cancelled
 * request whose lock becomes free is not run, and the state can be saved and loaded.
 */
static void test_cancelled_waits_end_in_bounded_steps(void **state)
{
    enum { WAITS = 25, FIRST = CANCELS_PER_COST, NEXT = 2 * CANCELS_PER_COST - 1 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "waiter");
    lock(&fixture, "holder", "1");
    for (int i = 0; i < WAITS; i++) {
        put(&fixture, 1, i, "", "");
        if (i % 5 == 0)
            lock(&fixture, "waiter", "1");
    }
    fixture_free_completed(&fixture);
    size_t all = waiting_count(&fixture);
    cancel_host(&fixture, 0, false);
    assert_int_equal(waiting_count(&fixture), all - FIRST);
    assert_int_equal(core_next_deadline(fixture.core), 0);
    fixture_reopen(&fixture);
    fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), all - FIRST - NEXT); /* all that cost one point */
    lock_table_check(&fixture.core->owners->locks);
    unlock_all(&fixture, "holder"); /* grants the next one, which does not run */
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 0);
    assert_null(fixture_source(&fixture, "fs", "1"));
    assert_true(lock_table_is_idle(&fixture.core->owners->locks)); /* nor was the request of a session granted */
    lock_table_check(&fixture.core->owners->locks);
    end(&fixture);
}

/*
 * The end of a cancelled request frees the lock of another one, which ends in the same unit: its session must not keep
 * it.
 */
static void test_cancelled_request_granted_by_another_ones_end_keeps_no_lock(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "first");
    session(&fixture, COMMAND_SESSION_OPEN, "second");
    lock(&fixture, "holder", "1");
    lock_two(&fixture, "first", "1", "2");
    lock(&fixture, "second", "2");
    assert_int_equal(waiting_count(&fixture), 2);
    cancel_host(&fixture, 0, false);
    assert_int_equal(waiting_count(&fixture), 0);
    unlock_all(&fixture, "holder");
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    lock_table_check(&fixture.core->owners->locks);
    fixture_free_completed(&fixture);
    end(&fixture);
}

/*
 * Sessions whose leases end together have more waiting requests than end in one step. A lock that
 * becomes free meanwhile is granted to another owner, also by a core that is loaded in between, and
 * the sessions keep their own locks until their last request has ended.
 */
static void test_waits_of_expired_sessions_end_in_bounded_steps(void **state)
{
    enum { SESSIONS = 4, WAITS = 8, BATCH = 2 * CANCELS_PER_COST - 1 };
    static const char *const ids[SESSIONS] = {"s0", "s1", "s2", "s3"};
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    for (int i = 0; i < SESSIONS; i++) {
        session(&fixture, COMMAND_SESSION_OPEN, ids[i]);
        lock(&fixture, ids[i], ids[i]);
    }
    lock(&fixture, "holder", "1");
    for (int i = 0; i < SESSIONS * WAITS; i++) {
        if (i < SESSIONS)
            lock(&fixture, ids[i], "1");
        else
            put(&fixture, 1, i, ids[i % SESSIONS], "");
    }
    fixture_free_completed(&fixture);
    fixture.clock += 1800 * TL_SECOND;
    session(&fixture, COMMAND_SESSION_KEEPALIVE, "holder");
    fixture.clock += 1800 * TL_SECOND;
    fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), SESSIONS * WAITS - BATCH - 1); /* one times out */
    assert_int_equal(fixture.core->owners->terminating_count, SESSIONS);
    fixture_reopen(&fixture);
    unlock_all(&fixture, "holder"); /* grants requests of the sessions, which end */
    lock_table_check(&fixture.core->owners->locks);
    assert_int_equal(fixture.core->owners->terminating_count, SESSIONS);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 0);
    assert_int_equal(fixture.core->owners->sessions.count, 1);
    lock(&fixture, "holder", "1");
    assert_int_equal(fixture.core->owners->locks.lock_count, 1);
    assert_null(fixture_source(&fixture, "fs", "1"));
    lock_table_check(&fixture.core->owners->locks);
    fixture_free_completed(&fixture);
    end(&fixture);
}

/*
 * Sessions end together. Only TICK continues their cleanup: the commands of a group are answered
 * together, so a batch of cleanup with each of them would delay all. A command before version 9
 * continues it, as it did.
 */
static void test_only_tick_continues_cleanup(void **state)
{
    enum { SESSIONS = 6 };
    static const char *const ids[SESSIONS] = {"s0", "s1", "s2", "s3", "s4", "s5"};
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    for (int i = 0; i < SESSIONS; i++) {
        session(&fixture, COMMAND_SESSION_OPEN, ids[i]);
        lock(&fixture, ids[i], ids[i]);
    }
    fixture.clock += 3600 * TL_SECOND;
    fixture_tick(&fixture);
    size_t left = fixture.core->owners->terminating_count;
    assert_true(left > 2 && left < SESSIONS);
    for (int i = 0; i < 3; i++)
        put(&fixture, i, i, "", "");
    assert_int_equal(fixture.core->owners->terminating_count, left);
    assert_int_equal(core_next_deadline(fixture.core), 0);
    struct command *older = command_new(COMMAND_UNLOCK, DIALECT_7);
    older->owner.session = SLICE_LIT("none");
    older->version = COMMAND_SINCE_TICK_CLEANUP - 1;
    fixture_give(&fixture, older);
    assert_int_equal(fixture.core->owners->terminating_count, left - 1);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(fixture.core->owners->terminating_count, 0);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    fixture_free_completed(&fixture);
    end(&fixture);
}

enum { NEW_INDICES = 40, NEW_FIELDS = 900 };

/* Puts a template with many fields for the indices "new-*". */
static void put_template(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_INDEX_TEMPLATE_PUT, DIALECT_7);
    struct buf body = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&body, "{\"index_patterns\":[\"new-*\"],\"template\":{\"mappings\":{\"properties\":{");
    for (int i = 0; i < NEW_FIELDS; i++)
        buf_printf(&body, "%s\"f%d\":{\"type\":\"keyword\"}", i == 0 ? "" : ",", i);
    buf_lit(&body, "}}}}");
    command->object.name = SLICE_LIT("t");
    command->object.body = arena_copy(&command->arena, buf_as_slice(&body));
    buf_deinit(&body);
    fixture_give(fixture, command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

/* Sends a bulk that creates NEW_INDICES indices. Returns: its number. */
static uint64_t create_indices(struct core_fixture *fixture, uint64_t timeout_us)
{
    struct command *command = fixture_write_command(fixture, NEW_INDICES);

    command->owner.timeout_us = timeout_us;
    for (size_t i = 0; i < NEW_INDICES; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, NULL, NULL, "1", "{}");
        command->write.items[i].index = arena_printf(&command->arena, "new-%zu", i);
    }
    fixture_give(fixture, command);
    return fixture->last_request;
}

/*
 * A bulk waits for a lock on everything; meanwhile a template makes the indices that it creates
 * expensive. It postpones items when it is resumed, or times out, as if it had not waited: each step
 * stays within its bound, which fixture_give() checks.
 */
static void test_resumed_bulk_postpones_indices(void **state)
{
    (void)state;
    for (int expires = 0; expires < 2; expires++) {
        struct core_fixture fixture;

        begin(&fixture, core_limits_default().ephemeral_batch);
        session(&fixture, COMMAND_SESSION_OPEN, "s");
        struct command *everything = command_new(COMMAND_LOCK, DIALECT_7);
        everything->owner.session = SLICE_LIT("s");
        everything->lock.targets = arena_zalloc(&everything->arena, sizeof(struct lock_target));
        everything->lock.targets[0] = (struct lock_target){.mode = LOCK_X};
        everything->lock.target_count = 1;
        fixture_give(&fixture, everything);
        assert_int_equal(everything->problem.type, PROBLEM_NONE);
        uint64_t request = create_indices(&fixture, 60 * TL_SECOND);
        assert_null(fixture_completed_as(&fixture, request));
        put_template(&fixture);
        if (expires) {
            fixture.clock += 60 * TL_SECOND;
            fixture_tick(&fixture);
        } else {
            unlock_all(&fixture, "s");
        }
        struct command *command = fixture_completed_as(&fixture, request);
        assert_non_null(command);
        size_t first = NEW_INDICES - command->write.postponed_count;
        assert_true(first > 0 && first < NEW_INDICES / 2);
        for (size_t i = 0; i < NEW_INDICES; i++) {
            assert_int_equal(command->write.results[i].outcome, i < first && !expires ? WRITE_CREATED : WRITE_FAILED);
            assert_int_equal(command->write.results[i].postponed, i >= first);
        }
        command_free(command);
        fixture_free_completed(&fixture);
        end(&fixture);
    }
}

/*
 * The cleanup of one session grants, one after the other, the remaining requests of the next one,
 * which have been cancelled: they end, and the next session is cleaned in a later step.
 */
static void test_cleanup_that_ends_waits_of_next_session_completes(void **state)
{
    enum { WAITS = 2 * CANCELS_PER_COST + 1 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 2);
    session(&fixture, COMMAND_SESSION_OPEN, "first");
    session(&fixture, COMMAND_SESSION_OPEN, "next");
    lock(&fixture, "first", "1");
    for (int i = 0; i < WAITS; i++)
        put(&fixture, 1, i, "next", "");
    assert_int_equal(waiting_count(&fixture), WAITS);
    fixture_free_completed(&fixture);
    fixture.clock += 3600 * TL_SECOND;
    fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 0);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(fixture.core->owners->sessions.count, 0);
    assert_int_equal(fixture.core->owners->locks.lock_count, 0);
    assert_null(fixture_source(&fixture, "fs", "1"));
    fixture_free_completed(&fixture);
    end(&fixture);
}

/* The waiting request of a transaction ends with its session, and so do both. */
static void test_waits_of_transactions_end_with_the_session(void **state)
{
    enum { TXNS = 2 * CANCELS_PER_COST };
    struct core_fixture fixture;
    uint64_t requests[TXNS];
    bool answered[TXNS] = {false};
    char ids[TXNS][16];
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "s");
    lock(&fixture, "holder", "1");
    for (int i = 0; i < TXNS; i++) {
        struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        snprintf(ids[i], sizeof ids[i], "t%d", i);
        command->txn.id = slice_from(ids[i]);
        command->txn.mode = TXN_UPDATE;
        command->txn.idle_us = 3600 * TL_SECOND;
        command->owner.session = SLICE_LIT("s");
        fixture_give(&fixture, command);
        requests[i] = put(&fixture, 1, i, "s", ids[i]);
    }
    fixture_free_completed(&fixture);
    assert_int_equal(waiting_count(&fixture), TXNS);
    session(&fixture, COMMAND_SESSION_DETACH, "s"); /* no connection keeps it alive */
    assert_int_equal(waiting_count(&fixture), 1);   /* the others cost one point */
    unlock_all(&fixture, "holder");
    for (size_t count = 0; count < TXNS;) {
        struct command *command = fixture_completed(&fixture);
        if (command == NULL) {
            assert_int_equal(core_next_deadline(fixture.core), 0);
            fixture_tick(&fixture);
            continue;
        }
        if (command->type == COMMAND_WRITE) {
            size_t i = 0;
            assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
            while (i < TXNS && requests[i] != command->request)
                i++;
            assert_true(i < TXNS && !answered[i]); /* once, in any order */
            answered[i] = true;
            count++;
        }
        command_free(command);
    }
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    assert_null(fixture_source(&fixture, "fs", "1"));
    fixture_free_completed(&fixture);
    end(&fixture);
}

/* A bulk of two documents. */
static void put_two(struct core_fixture *fixture, const char *first, const char *second)
{
    struct command *command = fixture_write_command(fixture, 2);

    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", first, "{\"v\":1}");
    command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", second, "{\"v\":1}");
    command->owner.timeout_us = 60 * TL_SECOND;
    fixture_give(fixture, command);
}

/*
 * A bulk that times out tries each item once more. One that is cancelled must not, although its
 * batch comes after its time. Each has a document that no other request waits for.
 */
static void test_cancelled_bulk_tries_no_item_on_timeout(void **state)
{
    enum { WAITS = 6 * CANCELS_PER_COST };
    struct core_fixture fixture;
    char ids[WAITS][16];
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "other");
    lock(&fixture, "holder", "1");
    for (int i = 0; i < WAITS; i++) {
        snprintf(ids[i], sizeof ids[i], "free%d", i);
        lock(&fixture, "other", ids[i]);
        put_two(&fixture, "1", ids[i]);
    }
    cancel_host(&fixture, 0, false);
    unlock_all(&fixture, "other");
    assert_true(waiting_count(&fixture) > 0);
    fixture.clock += 120 * TL_SECOND;
    fixture_tick(&fixture);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 0);
    for (int i = 0; i < WAITS; i++)
        assert_null(fixture_source(&fixture, "fs", ids[i]));
    fixture_free_completed(&fixture);
    end(&fixture);
}

/* A bulk that waits for all its documents. */
static void put_many(struct core_fixture *fixture, size_t count)
{
    struct command *command = fixture_write_command(fixture, count);

    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "", "", "{}");
        command->write.items[i].id = arena_printf(&command->arena, "%zu", i);
    }
    command->owner.timeout_us = 60 * TL_SECOND;
    fixture_give(fixture, command);
}

/*
 * Cancelled bulks count by their items, since each leaves as many queues: a step ends as many as its account allows.
 * By commands before version 21 each counts as one.
 */
static void test_cancelled_bulks_count_by_their_items(void **state)
{
    enum { BULKS = 12, ITEMS = 400, STEP_COST = 20, OF_ONE = 1 + ITEMS / 32 + ITEMS / 20 };
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        begin(&fixture, STEP_COST);
        session(&fixture, COMMAND_SESSION_OPEN, "holder");
        lock_index(&fixture, "holder");
        for (int i = 0; i < BULKS; i++)
            put_many(&fixture, ITEMS);
        assert_int_equal(waiting_count(&fixture), BULKS);
        fixture_free_completed(&fixture);
        struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
        command->version = COMMAND_SINCE_CANCELS_WEIGHED - older;
        fixture_give(&fixture, command);
        size_t ended = BULKS - waiting_count(&fixture);
        assert_in_range(ended, older ? BULKS : 1, older ? BULKS : 1 + STEP_COST * CANCELS_PER_COST / OF_ONE);
        size_t answered = fixture_free_completed(&fixture) - 1;
        for (size_t before = ended; core_next_deadline(fixture.core) == 0; before = ended) {
            fixture_tick(&fixture);
            ended = BULKS - waiting_count(&fixture);
            assert_true(ended - before <= 1 + (STEP_COST + 1) * CANCELS_PER_COST / OF_ONE);
            answered += fixture_free_completed(&fixture) - 1;
        }
        assert_int_equal(answered, BULKS);
        assert_int_equal(waiting_count(&fixture), 0);
        lock_table_check(&fixture.core->owners->locks);
        end(&fixture);
    }
}

static size_t cancelled_count(const struct core_fixture *fixture)
{
    size_t count = 0;

    list_for_each(link, &fixture->core->owners->cancelled) count++;
    return count;
}

/* Releases one document. */
static void unlock_one(struct core_fixture *fixture, const char *session, int id)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] =
        (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%d", id)};
    command->lock.target_count = 1;
    fixture_give(fixture, command);
}

/*
 * Cancelled writes that are ready end where they have their turn, too: there the end of each has the cost of a
 * cancelled request besides that of its reply. Not in commands before version 21. They have their turns in another
 * order than they began to wait, in which cancelled requests end.
 */
static void test_cancelled_ready_writes_have_their_cost(void **state)
{
    enum { BATCH = 20, FIRST = BATCH + 1, WRITES = FIRST + 250, KEPT = BATCH / COST_KEPT_PART };
    enum { IN_ORDER = CANCELS_PER_COST * (BATCH - KEPT + 1) - 1 }; /* of all that are cancelled, in one TICK */
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        char id[16];
        begin(&fixture, BATCH);
        session(&fixture, COMMAND_SESSION_OPEN, "first");
        session(&fixture, COMMAND_SESSION_OPEN, "second");
        for (int i = 0; i < WRITES; i++) {
            snprintf(id, sizeof id, "%d", i);
            lock(&fixture, i < FIRST ? "first" : "second", id);
        }
        for (int i = 0; i < WRITES; i++)
            put(&fixture, i, i, "", "");
        unlock_all(&fixture, "first");
        assert_int_equal(ready_count(&fixture), 1); /* so that none of those that follow runs */
        for (int i = WRITES - 1; i >= FIRST; i--)
            unlock_one(&fixture, "second", i);
        assert_int_equal(ready_count(&fixture), WRITES - BATCH);
        fixture_free_completed(&fixture);
        cancel_host(&fixture, 0, false);
        size_t left = cancelled_count(&fixture);
        assert_int_equal(left, WRITES - BATCH - CANCELS_PER_COST * BATCH);
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = COMMAND_SINCE_CANCELS_WEIGHED - older;
        fixture_give(&fixture, command);
        assert_int_equal(left - cancelled_count(&fixture), IN_ORDER + (older ? KEPT - 1 : (KEPT - 1) / 2));
        while (core_next_deadline(fixture.core) == 0)
            fixture_tick(&fixture);
        assert_int_equal(cancelled_count(&fixture), 0);
        assert_true(fixture_free_completed(&fixture) >= WRITES - BATCH); /* each is answered */
        assert_null(fixture_source(&fixture, "fs", "250"));
        end(&fixture);
    }
}

/* A request of the host's next life may have the number of a cancelled one: it is not cancelled. */
static void test_cancelled_wait_leaves_request_with_its_number(void **state)
{
    enum { WAITS = 2 * CANCELS_PER_COST };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    lock(&fixture, "holder", "1");
    uint64_t before = fixture.last_request;
    for (int i = 0; i < WAITS; i++)
        put(&fixture, 1, i, "", "");
    cancel_host(&fixture, 0, false);
    fixture.last_request = before + WAITS - 1;
    uint64_t again = put(&fixture, 1, 77, "", "");
    assert_int_equal(again, before + WAITS);
    fixture_free_completed(&fixture);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_int_equal(waiting_count(&fixture), 1);
    assert_non_null(wait__by_request(fixture.core, again));
    cancel(&fixture, again);
    assert_int_equal(waiting_count(&fixture), 0);
    fixture_free_completed(&fixture);
    end(&fixture);
}

/* CANCEL of a log from before they were divided ends all waits in its step. */
static void test_cancel_of_older_version_ends_all_waits(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    lock(&fixture, "holder", "1");
    for (int i = 0; i < 3 * CANCELS_PER_COST; i++)
        put(&fixture, 1, i, "", "");
    cancel_host(&fixture, 0, true);
    assert_int_equal(waiting_count(&fixture), 0);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    end(&fixture);
}

/* Large bulks that time out are tried once more, in bounded steps. */
static void test_timed_out_bulks_retry_in_bounded_steps(void **state)
{
    enum { BULKS = 30, ITEMS = 1000 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, core_limits_default().ephemeral_batch);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    struct command *all = command_new(COMMAND_LOCK, DIALECT_7);
    all->owner.session = SLICE_LIT("holder");
    all->lock.targets = arena_zalloc(&all->arena, ITEMS * sizeof(struct lock_target));
    all->lock.target_count = ITEMS;
    for (size_t i = 0; i < ITEMS; i++)
        all->lock.targets[i] =
            (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&all->arena, "%zu", i)};
    fixture_give(&fixture, all);
    for (int i = 0; i < BULKS; i++) {
        struct command *command = fixture_write_command(&fixture, ITEMS);
        for (size_t j = 0; j < ITEMS; j++) {
            command->write.items[j] = fixture_item(WRITE_INDEX, "fs", "", "", "{\"v\":1}");
            command->write.items[j].id = arena_printf(&command->arena, "%zu", j);
        }
        command->owner.timeout_us = TL_SECOND;
        fixture_give(&fixture, command);
    }
    fixture_free_completed(&fixture);
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 10 * TL_SECOND);
    assert_int_equal(fixture_free_completed(&fixture), 1 + 1);
    assert_true(core_next_deadline(fixture.core) <= fixture.clock);
    end(&fixture);
}

/* Returns: the largest work of a step while `count` writes wait for one lock and are granted. */
static uint64_t work_of_grants(size_t count)
{
    struct core_fixture fixture;
    size_t done = 0;

    begin(&fixture, core_limits_default().ephemeral_batch);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    struct command *all = command_new(COMMAND_LOCK, DIALECT_7);
    all->owner.session = SLICE_LIT("holder");
    all->lock.targets = arena_zalloc(&all->arena, sizeof(struct lock_target));
    all->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs")};
    all->lock.target_count = 1;
    fixture_give(&fixture, all);
    for (size_t i = 0; i < count; i++)
        put(&fixture, (int)i, 1, "", "");
    fixture_free_completed(&fixture);
    core_reset_metrics(fixture.core);
    unlock_all(&fixture, "holder");
    assert_in_range(fixture.core->owners->locks.waiting_count,
                    count - GRANTS_PER_COST * core_limits_default().ephemeral_batch, count - 500);
    lock_table_check(&fixture.core->owners->locks);
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7),
                       600 * TL_SECOND); /* a grantable request does not time out */
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    for (struct command *command; (command = fixture_completed(&fixture)) != NULL; command_free(command))
        if (command->type == COMMAND_WRITE) {
            assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
            done++;
        }
    assert_int_equal(done, count);
    uint64_t work = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_UNLOCK]);
    uint64_t later = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_TICK]);
    end(&fixture);
    return work > later ? work : later;
}

/* Requests locks on `count` documents, of the form `path`/number and with numbers from `first`. */
/* An index with directories. */
static const char paths_index[] =
    "{\"settings\":{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}},"
    "\"mappings\":{\"properties\":{\"path\":{\"type\":\"text\",\"analyzer\":\"paths\"}}}}";

static void lock_many(struct core_fixture *fixture, const char *session, const char *path, size_t first, size_t count)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->owner.timeout_us = 600 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] =
            (struct lock_target){.mode = LOCK_X,
                                 .index = SLICE_LIT("dirs"),
                                 .path = arena_printf(&command->arena, "%s/%zu", path, first + i)};
    fixture_give(fixture, command);
}

/*
 * `count` LOCKs of `each` documents in a directory wait for one lock, and are granted: by a command of an
 * `older` version all of them in its step.
 */
static void check_grants_of_locks(const char *path, size_t count, size_t each, bool older)
{
    enum { SESSIONS = 4 };
    struct core_fixture fixture;
    size_t granted = 0;

    begin(&fixture, core_limits_default().ephemeral_batch);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "dirs", paths_index);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    struct command *all = command_new(COMMAND_LOCK, DIALECT_7);
    all->owner.session = SLICE_LIT("holder");
    all->lock.targets = arena_zalloc(&all->arena, sizeof(struct lock_target));
    all->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("dirs")};
    all->lock.target_count = 1;
    fixture_give(&fixture, all);
    for (size_t i = 0; i < SESSIONS; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%zu", i);
        session(&fixture, COMMAND_SESSION_OPEN, id);
        for (size_t j = 0; j < count / SESSIONS; j++)
            lock_many(&fixture, id, path, (i * count + j) * each, each);
    }
    fixture_free_completed(&fixture);
    struct command *unlock = command_new(COMMAND_UNLOCK, DIALECT_7);
    unlock->owner.session = SLICE_LIT("holder");
    unlock->version = COMMAND_SINCE_GRANTED_PLACES - older;
    fixture.unbounded = older; /* for this command alone */
    fixture_give(&fixture, unlock);
    fixture.unbounded = false;
    assert_int_equal(waiting_count(&fixture) == 0, older);
    core_reset_metrics(fixture.core);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    for (struct command *command; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
        if (command->type != COMMAND_LOCK)
            continue;
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        granted++;
    }
    assert_int_equal(granted, count);
    end(&fixture);
}

/* Requests that are granted together count by the places that each locks, also below deep directories. */
static void test_grants_of_many_locks_are_divided_into_steps(void **state)
{
    enum { LEVELS = 100 };
    char deep[2 * LEVELS + 1];
    (void)state;

    for (size_t i = 0; i < LEVELS; i++)
        memcpy(deep + 2 * i, "/d", 3);
    check_grants_of_locks("/a", 3000, 4, false);
    check_grants_of_locks("/a", 1500, 49, false);
    check_grants_of_locks(deep, 1500, 1, false);
    check_grants_of_locks("/a", 1500, 49, true);
}

/*
 * Very many requests that are granted together are granted in bounded steps; a step only wakes the
 * others, which takes a few looks.
 */
static void test_grants_are_divided_into_steps(void **state)
{
    enum { FEW = 5000, LOOKS = 4 };
    (void)state;

    uint64_t work = work_of_grants(FEW);
    assert_in_range(work_of_grants(2 * FEW), 1, work + LOOKS * FEW);
}

/*
 * The items of a write count in its step before the commands that resume after it. Before version 12
 * they did not.
 */
static void test_write_leaves_rest_of_step_to_resumed_commands(void **state)
{
    enum { MOVED = 20, BATCH = 25 };
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        begin(&fixture, BATCH);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "dirs", paths_index);
        session(&fixture, COMMAND_SESSION_OPEN, "holder");
        struct command *bulk = NULL;
        for (int moved = 0; moved < 2; moved++) {
            bulk = fixture_write_command(&fixture, MOVED);
            for (size_t i = 0; i < MOVED; i++) {
                bulk->write.items[i] = fixture_item(WRITE_INDEX, "dirs", "", "", "");
                bulk->write.items[i].id = arena_printf(&bulk->arena, "%zu", i);
                bulk->write.items[i].source =
                    arena_printf(&bulk->arena, "{\"path\":\"/%s/%zu\"}", moved ? "b" : "a", i);
            }
            bulk->version = COMMAND_SINCE_WRITE_CHARGED - older;
            bulk->owner.session = SLICE_LIT("holder");
            if (moved)
                break;
            fixture_give(&fixture, bulk);
            struct command *all = command_new(COMMAND_LOCK, DIALECT_7);
            all->owner.session = SLICE_LIT("holder");
            all->lock.targets = arena_zalloc(&all->arena, sizeof(struct lock_target));
            all->lock.targets[0] =
                (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("dirs"), .path = SLICE_LIT("/a")};
            all->lock.target_count = 1;
            fixture_give(&fixture, all);
            for (size_t i = 0; i < MOVED; i++) {
                struct command *command = fixture_write_command(&fixture, 1);
                command->write.items[0] = fixture_item(WRITE_DELETE, "dirs", "", "", NULL);
                command->write.items[0].id = arena_printf(&command->arena, "%zu", i);
                command->owner.timeout_us = 60 * TL_SECOND;
                fixture_give(&fixture, command);
            }
            assert_int_equal(waiting_count(&fixture), MOVED);
        }
        fixture_give(&fixture, bulk);
        assert_int_equal(waiting_count(&fixture), 0);
        assert_int_equal(ready_count(&fixture), older ? 0 : MOVED - (BATCH - MOVED));
        while (core_next_deadline(fixture.core) == 0)
            fixture_tick(&fixture);
        assert_int_equal(ready_count(&fixture), 0);
        assert_int_equal(fixture_count(&fixture, "dirs"), 0);
        end(&fixture);
    }
}

/* --- Ready writes ------------------------------------------------------------------------------------------------- */

/*
 * Grants three autocommit writes of different documents: the first has run, the others are ready.
 */
static void make_ready(struct core_fixture *fixture, uint64_t requests[3], const char *session_of_last)
{
    begin(fixture, 1);
    session(fixture, COMMAND_SESSION_OPEN, "holder");
    session(fixture, COMMAND_SESSION_OPEN, "s");
    lock(fixture, "holder", "0");
    lock(fixture, "holder", "1");
    lock(fixture, "holder", "2");
    for (int i = 0; i < 3; i++)
        requests[i] = put(fixture, i, 1, i == 2 ? session_of_last : "", "");
    fixture_free_completed(fixture);
    unlock_all(fixture, "holder");
    struct command *command = fixture_completed_as(fixture, requests[0]);
    assert_non_null(command);
    command_free(command);
    assert_null(fixture_completed(fixture));
    assert_int_equal(ready_count(fixture), 2);
    lock_table_check(&fixture->core->owners->locks);
}

/* A ready write has its lock: a later write of the document waits and resumes after it. */
static void test_ready_write_is_not_overtaken(void **state)
{
    struct core_fixture fixture;
    uint64_t requests[3];
    (void)state;

    make_ready(&fixture, requests, "");
    uint64_t late = put(&fixture, 1, 2, "", "");
    assert_null(fixture_completed(&fixture));
    fixture_tick(&fixture);
    struct command *command = fixture_completed_as(&fixture, requests[1]);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    command_free(command);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    command = fixture_completed_as(&fixture, requests[2]);
    assert_non_null(command);
    command_free(command);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    command = fixture_completed_as(&fixture, late);
    assert_int_equal(command->write.results[0].outcome, WRITE_UPDATED);
    command_free(command);
    end(&fixture);
}

static void test_ready_write_ends_on_cancel(void **state)
{
    struct core_fixture fixture;
    uint64_t requests[3];
    (void)state;

    make_ready(&fixture, requests, "");
    cancel(&fixture, requests[2]);
    struct command *command = fixture_completed_as(&fixture, requests[2]);
    assert_int_equal(command->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    command_free(command);
    fixture_free_completed(&fixture);
    assert_int_equal(ready_count(&fixture), 1);
    uint64_t next = put(&fixture, 2, 7, "", ""); /* its lock was released */
    command = fixture_completed_as(&fixture, next);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    command_free(command);
    fixture_tick(&fixture);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"v\":1}");
    assert_string_equal(fixture_source(&fixture, "fs", "2"), "{\"v\":7}");
    end(&fixture);
}

static void test_ready_write_ends_with_its_session(void **state)
{
    struct core_fixture fixture;
    uint64_t requests[3];
    (void)state;

    make_ready(&fixture, requests, "s");
    session(&fixture, COMMAND_SESSION_CLOSE, "s");
    lock_table_check(&fixture.core->owners->locks);
    fixture_free_completed(&fixture);
    uint64_t next = put(&fixture, 2, 7, "", ""); /* its lock was released in the unit that ended it */
    struct command *command = fixture_completed_as(&fixture, next);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    command_free(command);
    fixture_tick(&fixture);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture); /* its reply has its turn */
    command = fixture_completed_as(&fixture, requests[2]);
    assert_int_equal(command->problem.type, PROBLEM_SESSION_MISSING);
    command_free(command);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_string_equal(fixture_source(&fixture, "fs", "2"), "{\"v\":7}");
    end(&fixture);
}

/* A ready write was granted in time; its deadline no longer counts. */
static void test_ready_write_does_not_time_out(void **state)
{
    struct core_fixture fixture;
    uint64_t requests[3];
    (void)state;

    make_ready(&fixture, requests, "");
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 600 * TL_SECOND);
    struct command *command = fixture_completed_as(&fixture, requests[1]);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    command_free(command);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    command = fixture_completed_as(&fixture, requests[2]);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    command_free(command);
    end(&fixture);
}

/* A rollback ends the ready write of its transaction. */
static void test_ready_write_ends_on_rollback(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    lock(&fixture, "holder", "0");
    lock(&fixture, "holder", "1");
    uint64_t first = put(&fixture, 0, 1, "", ""), second = put(&fixture, 1, 1, "", "t");
    fixture_free_completed(&fixture);
    unlock_all(&fixture, "holder");
    command_free(fixture_completed_as(&fixture, first));
    assert_int_equal(ready_count(&fixture), 1);
    txn(&fixture, COMMAND_TXN_COMMIT, "t"); /* refused: a request of the transaction is pending */
    struct command *command = fixture_completed_as(&fixture, fixture.last_request);
    assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    command_free(command);
    txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    command = fixture_completed_as(&fixture, second);
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    command_free(command);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    end(&fixture);
}

/* Waiting and ready commands together do not exceed limits.waiters_max. */
static void test_ready_write_counts_against_waiters_max(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    core_close(fixture.core);
    fixture.limits.ephemeral_batch = 1;
    fixture.limits.waiters_max = 3;
    assert_int_equal(core_open(fixture.store, &fixture.limits, &fixture.core), 0);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    for (int i = 0; i < 3; i++)
        lock(&fixture, "holder", (const char *[]){"0", "1", "2"}[i]);
    for (int i = 0; i < 3; i++)
        put(&fixture, i, 1, "", "");
    fixture_free_completed(&fixture);
    unlock_all(&fixture, "holder");
    fixture_free_completed(&fixture);
    assert_int_equal(ready_count(&fixture), 2);
    uint64_t third = put(&fixture, 1, 1, "", "");
    assert_null(fixture_completed_as(&fixture, third)); /* waits */
    uint64_t fourth = put(&fixture, 2, 1, "", "");
    struct command *command = fixture_completed_as(&fixture, fourth);
    assert_int_equal(command->write.results[0].problem.type, PROBLEM_LIMIT_EXCEEDED);
    command_free(command);
    end(&fixture);
}

/* --- Bulks of transactions ---------------------------------------------------------------------------------------- */

/* Gives a bulk of a transaction that indexes documents from `first` on. Returns: its number. */
static uint64_t bulk(struct core_fixture *fixture, size_t first, size_t count, const char *transaction,
                     uint64_t timeout_us)
{
    struct command *command = fixture_write_command(fixture, count);

    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "", "", "{\"v\":1}");
        command->write.items[i].id = arena_printf(&command->arena, "%zu", first + i);
    }
    command->owner.transaction = slice_from(transaction);
    command->owner.timeout_us = timeout_us;
    fixture_give(fixture, command);
    return fixture->last_request;
}

/*
 * Returns: the largest work of a step of a bulk with `count` items in a transaction, which takes
 *          *ret_steps steps.
 */
static uint64_t work_of_bulk(size_t count, int *ret_steps)
{
    struct core_fixture fixture;
    struct command *command;

    begin(&fixture, core_limits_default().ephemeral_batch);
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    fixture_free_completed(&fixture);
    core_reset_metrics(fixture.core);
    uint64_t request = bulk(&fixture, 0, count, "t", 60 * TL_SECOND);
    for (*ret_steps = 1; (command = fixture_completed_as(&fixture, request)) == NULL; ++*ret_steps) {
        assert_int_equal(core_next_deadline(fixture.core), 0);
        fixture_tick(&fixture);
    }
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(command->write.results[i].outcome, WRITE_CREATED);
    command_free(command);
    uint64_t first = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_WRITE]);
    uint64_t later = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_TICK]);
    txn(&fixture, COMMAND_TXN_COMMIT, "t");
    command = fixture_completed_as(&fixture, fixture.last_request);
    assert_int_equal(command->txn.changes, count);
    command_free(command);
    end(&fixture);
    return first > later ? first : later;
}

/* A bulk of a transaction runs in batches: a step does as much with twice as many items. */
static void test_txn_bulk_runs_in_bounded_steps(void **state)
{
    size_t batch = core_limits_default().ephemeral_batch;
    int steps[2];
    (void)state;

    uint64_t work = work_of_bulk(4 * batch, &steps[0]), more = work_of_bulk(8 * batch, &steps[1]);
    assert_in_range(more, work - work / 10, work + work / 10);
    assert_in_range(more, 0, CORE_STEP_WORK / 2);
    assert_in_range(steps[0], 4, 5); /* sources count, too */
    assert_in_range(steps[1], 8, 9);
}

/*
 * Between two batches, other commands of the transaction are refused, its idle time does not run,
 * and its end ends the bulk.
 */
static void test_txn_bulk_is_under_way_between_batches(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 2);
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    uint64_t request = bulk(&fixture, 0, 7, "t", 60 * TL_SECOND);
    fixture_free_completed(&fixture);
    txn(&fixture, COMMAND_TXN_COMMIT, "t");
    struct command *command = fixture_completed_as(&fixture, fixture.last_request);
    assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    command_free(command);
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7),
                       7200 * TL_SECOND); /* longer than the idle time */
    assert_null(fixture_completed_as(&fixture, request));
    assert_int_equal(ready_count(&fixture), 1);
    txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    while ((command = fixture_completed_as(&fixture, request)) == NULL)
        fixture_tick(&fixture);
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    command_free(command);
    fixture_free_completed(&fixture);
    assert_null(fixture_source(&fixture, "fs", "0"));
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    end(&fixture);
}

/* A batch that times out fails its blocked item alone; the others, and later batches, are done. */
static void test_txn_bulk_continues_after_timeout(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 2);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    lock(&fixture, "holder", "2");
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    uint64_t request = bulk(&fixture, 0, 6, "t", TL_SECOND);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 10 * TL_SECOND);
    fixture_free_completed(&fixture);
    fixture_tick(&fixture);
    struct command *command = fixture_completed_as(&fixture, request);
    assert_non_null(command);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(command->write.results[i].outcome, i == 2 ? WRITE_FAILED : WRITE_CREATED);
    assert_int_equal(command->write.results[2].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    command_free(command);
    end(&fixture);
}

/*
 * A bulk that exceeds a limit of its transaction in a later batch keeps the batches before, and
 * fails the items from there on.
 */
static void test_txn_bulk_fails_from_batch_beyond_limit(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    core_close(fixture.core);
    fixture.limits.ephemeral_batch = 2;
    fixture.limits.transaction_changes_max = 5;
    assert_int_equal(core_open(fixture.store, &fixture.limits, &fixture.core), 0);
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    uint64_t request = bulk(&fixture, 0, 8, "t", TL_SECOND);
    for (int i = 0; i < 3; i++)
        fixture_tick(&fixture);
    struct command *command = fixture_completed_as(&fixture, request);
    assert_non_null(command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(command->write.results[i].outcome, i < 4 ? WRITE_CREATED : WRITE_FAILED);
        if (i >= 4)
            assert_int_equal(command->write.results[i].problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    }
    command_free(command);
    txn(&fixture, COMMAND_TXN_COMMIT, "t");
    command = fixture_completed_as(&fixture, fixture.last_request);
    assert_int_equal(command->txn.changes, 4);
    command_free(command);
    end(&fixture);
}

/*
 * A bulk that is cancelled between two batches reports its completed items, since the transaction
 * keeps their changes. Each remaining item fails.
 */
static void test_txn_bulk_reports_done_items_on_cancel(void **state)
{
    struct core_fixture fixture;
    struct command *command;
    (void)state;

    begin(&fixture, 2);
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    uint64_t request = bulk(&fixture, 0, 7, "t", 60 * TL_SECOND);
    fixture_tick(&fixture);
    cancel(&fixture, request);
    while ((command = fixture_completed_as(&fixture, request)) == NULL)
        fixture_tick(&fixture);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    size_t done = 0;
    while (done < 7 && command->write.results[done].outcome == WRITE_CREATED)
        done++;
    assert_in_range(done, 2, 6);
    for (size_t i = done; i < 7; i++) {
        assert_int_equal(command->write.results[i].outcome, WRITE_FAILED);
        assert_int_equal(command->write.results[i].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    }
    command_free(command);
    txn(&fixture, COMMAND_TXN_COMMIT, "t");
    command = fixture_completed_as(&fixture, fixture.last_request);
    assert_int_equal(command->txn.changes, done);
    command_free(command);
    end(&fixture);
}

/* The wait of a later batch is measured from its own request; the deadline is the command's. */
static void test_txn_bulk_waits_are_measured_by_batch(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 2);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    lock(&fixture, "holder", "2");
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    (void)bulk(&fixture, 0, 6, "t", 60 * TL_SECOND);
    uint64_t asked = fixture.core->clock;
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 5 * TL_SECOND);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
    const struct wait *wait = list_entry(fixture.core->owners->waits.next, struct wait, of_all);
    assert_int_equal(wait->since, fixture.core->clock);
    assert_true(wait->since > asked);
    assert_int_equal(wait->until, asked + 60 * TL_SECOND);
    assert_int_equal(wait->since_ts, core_last_ts(fixture.core));
    end(&fixture);
}

/* A slow wait is reported, though the wait before it in the list has begun again since. */
static void test_slow_wait_followed_by_batch_is_reported(void **state)
{
    struct core_fixture fixture;
    struct buf report = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    begin(&fixture, 2);
    session(&fixture, COMMAND_SESSION_OPEN, "holder");
    session(&fixture, COMMAND_SESSION_OPEN, "waiter");
    lock(&fixture, "holder", "2");
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    (void)bulk(&fixture, 0, 6, "t", 60 * TL_SECOND);
    lock(&fixture, "waiter", "2");
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 5 * TL_SECOND);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 2);
    core_report(fixture.core, fixture.clock, 4 * TL_SECOND, &report);
    buf_byte(&report, '\0');
    const char *line = strstr(report.data, " has waited 5.0 s");
    assert_non_null(line);
    assert_null(strstr(line + 1, " has waited "));
    buf_deinit(&report);
    end(&fixture);
}

/* An item that may not wait since others do fails for that limit; before version 14 as if its time were over. */
static void test_txn_write_says_that_too_many_wait(void **state)
{
    (void)state;

    for (unsigned version = COMMAND_SINCE_FULL_CAUSE - 1; version <= COMMAND_SINCE_FULL_CAUSE; version++) {
        struct core_fixture fixture;
        begin(&fixture, 2);
        session(&fixture, COMMAND_SESSION_OPEN, "holder");
        session(&fixture, COMMAND_SESSION_OPEN, "waiter");
        lock(&fixture, "holder", "1");
        lock(&fixture, "waiter", "1");
        fixture.core->limits.waiters_max = 1;
        txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = fixture_write_command(&fixture, 2);
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "0", "{\"v\":1}");
        command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"v\":1}");
        command->owner.transaction = SLICE_LIT("t");
        command->owner.timeout_us = 60 * TL_SECOND;
        command->version = version;
        fixture_give(&fixture, command);
        command = fixture_completed_as(&fixture, fixture.last_request);
        assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
        assert_int_equal(command->write.results[1].problem.type,
                         version < COMMAND_SINCE_FULL_CAUSE ? PROBLEM_LOCK_WAIT_TIMEOUT : PROBLEM_LIMIT_EXCEEDED);
        command_free(command);
        end(&fixture);
    }
}

/* Scripts of a later batch that determine paths are bounded, too; the fixture checks each step. */
static void test_txn_bulk_bounds_scripts_of_later_batches(void **state)
{
    enum { BATCH = 200 };
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 5000; i++) { ctx._source.n = i }")};
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, BATCH);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "u",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    for (int i = 0; i < BATCH; i++) {
        char id[12];
        (void)snprintf(id, sizeof id, "%d", i);
        fixture_index(&fixture, "u", id, "{\"n\":1,\"path\":\"/a\"}");
    }
    txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = fixture_write_command(&fixture, 2 * BATCH);
    for (size_t i = 0; i < 2 * BATCH; i++) {
        struct write_item *item = &command->write.items[i];
        *item = i < BATCH ? fixture_item(WRITE_INDEX, "fs", "", "", "{}")
                          : fixture_item(WRITE_UPDATE, "u", NULL, NULL, NULL);
        item->id = arena_printf(&command->arena, "%zu", i % BATCH);
        item->update = i < BATCH ? NULL : &update;
    }
    command->owner.transaction = SLICE_LIT("t");
    command->owner.timeout_us = 60 * TL_SECOND;
    fixture_give(&fixture, command);
    uint64_t request = fixture.last_request;
    while ((command = fixture_completed_as(&fixture, request)) == NULL)
        fixture_tick(&fixture);
    size_t done = 0;
    while (done < 2 * BATCH && !command->write.results[done].postponed)
        done++;
    assert_in_range(done, BATCH + 1, BATCH + 30); /* half of a million steps, 20,000 each */
    assert_int_equal(command->write.postponed_count, 2 * BATCH - done);
    command_free(command);
    end(&fixture);
}

/* --- Undone locks ------------------------------------------------------------------------------------------------- */

static void target(struct command *command, size_t at, enum lock_mode mode, const char *index, const char *id)
{
    command->lock.targets[at] = (struct lock_target){.mode = mode, .index = slice_from(index), .id = slice_from(id)};
}

static void unlock_two(struct core_fixture *fixture, const char *owner, const char *first, const char *second)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);

    command->owner.session = slice_from(owner);
    command->lock.targets = arena_zalloc(&command->arena, 2 * sizeof(struct lock_target));
    command->lock.target_count = 2;
    target(command, 0, LOCK_X, "fs", first);
    target(command, 1, LOCK_X, "fs", second);
    fixture_give(fixture, command);
}

/* Requests a document, and one of the missing index "nx" if `both`. Returns: the number of the command. */
static uint64_t lock_as(struct core_fixture *fixture, const char *owner, bool of_txn, enum lock_mode mode, bool both)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    *(of_txn ? &command->owner.transaction : &command->owner.session) = slice_from(owner);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, 2 * sizeof(struct lock_target));
    command->lock.target_count = both ? 2 : 1;
    target(command, 0, mode, "fs", "1");
    target(command, 1, mode, "nx", "1");
    fixture_give(fixture, command);
    return fixture->last_request;
}

/* Returns: the mode in which an owner holds a document; LOCK_NONE: it does not. */
static enum lock_mode mode_of(const struct core_fixture *fixture, const struct owner *owner, const char *index)
{
    struct lock_spec spec = {{.index = slice_from(index), .id = SLICE_LIT("1")}, LOCK_X, false, false};
    const struct lock_table *locks = &fixture->core->owners->locks;

    while (spec.mode > LOCK_NONE && !lock_table_holds(locks, &owner->locks, &spec))
        spec.mode--;
    return spec.mode;
}

static bool token_is_valid(const struct core_fixture *fixture, tl_ts token)
{
    const struct resource_name name = {.index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};

    return lock_table_find_token(&fixture->core->owners->locks, token, &name, NULL);
}

static struct owner *session_owner(const struct core_fixture *fixture, const char *id)
{
    return &owners_session(fixture->core->owners, slice_from(id))->owner;
}

/* State of a LOCK that was granted an upgrade, and has to resolve its names again in a later step. */
struct upgrade {
    struct core_fixture fixture;
    bool of_txn;
    struct owner *owner; /* "s", or the transaction "t" */
    uint64_t request;    /* of the LOCK */
    tl_ts token;         /* of the lock before */
};

/* `older`: the command that grants is of a version before 8. */
static void make_upgrade(struct upgrade *upgrade, bool of_txn, bool older)
{
    struct core_fixture *fixture = &upgrade->fixture;
    const char *name = of_txn ? "t" : "s";

    begin(fixture, 1);
    session(fixture, COMMAND_SESSION_OPEN, "other");
    if (of_txn)
        txn(fixture, COMMAND_TXN_BEGIN, name);
    else
        session(fixture, COMMAND_SESSION_OPEN, name);
    upgrade->of_txn = of_txn;
    upgrade->owner = of_txn ? &owners_txn(fixture->core->owners, SLICE_LIT("t"))->owner : session_owner(fixture, name);
    lock(fixture, "other", "8");
    lock(fixture, "other", "9");
    lock_as(fixture, "other", false, LOCK_S, false);
    uint64_t first = lock_as(fixture, name, of_txn, LOCK_S, false);
    struct command *command = fixture_completed_as(fixture, first);
    upgrade->token = command->lock.fencing_token;
    command_free(command);
    put(fixture, 8, 1, "", ""); /* two writes, one of which has its turn before the LOCK */
    put(fixture, 9, 2, "", "");
    upgrade->request = lock_as(fixture, name, of_txn, LOCK_X, true);
    struct command *create = command_new(COMMAND_INDEX_CREATE, DIALECT_5);
    create->index.name = SLICE_LIT("nx");
    create->index.body = SLICE_LIT("{\"mappings\":{\"file\":{}}}");
    fixture_give(fixture, create); /* the document gets other names */
    assert_int_equal(create->problem.type, PROBLEM_NONE);
    unlock_two(fixture, "other", "8", "9");
    assert_int_equal(ready_count(fixture), 1);
    struct command *unlock = command_new(COMMAND_UNLOCK, DIALECT_7);
    unlock->owner.session = SLICE_LIT("other");
    unlock->version = older ? COMMAND_SINCE_UNDO - 1 : COMMAND_CODEC_VERSION;
    fixture_give(fixture, unlock);
    assert_null(fixture_completed_as(fixture, upgrade->request));
    assert_int_equal(mode_of(fixture, upgrade->owner, "fs"), LOCK_X);
    assert_int_equal(mode_of(fixture, upgrade->owner, "nx"), LOCK_X);
    assert_false(token_is_valid(fixture, upgrade->token));
}

/* Checks that the owner has the lock of before the LOCK, so that another one can read. */
static void assert_undone(struct upgrade *upgrade)
{
    struct core_fixture *fixture = &upgrade->fixture;

    lock_table_check(&fixture->core->owners->locks);
    assert_int_equal(mode_of(fixture, upgrade->owner, "fs"), LOCK_S);
    assert_int_equal(mode_of(fixture, upgrade->owner, "nx"), LOCK_NONE);
    assert_true(token_is_valid(fixture, upgrade->token));
    fixture_free_completed(fixture);
    uint64_t shared = lock_as(fixture, "other", false, LOCK_S, false);
    struct command *command = fixture_completed_as(fixture, shared);
    assert_non_null(command);
    command_free(command);
}

static void test_undone_upgrade_ends_on_cancel(void **state)
{
    struct upgrade upgrade;
    (void)state;

    for (int of_txn = 0; of_txn < 2; of_txn++) {
        make_upgrade(&upgrade, of_txn, false);
        uint64_t waits = lock_as(&upgrade.fixture, "other", false, LOCK_S, false);
        cancel(&upgrade.fixture, upgrade.request);
        struct command *command = fixture_completed_as(&upgrade.fixture, waits); /* granted by the weaker mode */
        assert_non_null(command);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        command_free(command);
        assert_undone(&upgrade);
        end(&upgrade.fixture);
    }
}

static void test_undone_upgrade_ends_when_its_host_stops(void **state)
{
    struct upgrade upgrade;
    (void)state;

    make_upgrade(&upgrade, false, false);
    cancel_host(&upgrade.fixture, 0, false);
    assert_undone(&upgrade);
    end(&upgrade.fixture);
}

/* A waiting upgrade that was cancelled is granted before its turn to end. */
static void test_undone_upgrade_ends_if_granted_after_cancel(void **state)
{
    enum { WAITS = CANCELS_PER_COST };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 1);
    session(&fixture, COMMAND_SESSION_OPEN, "s");
    session(&fixture, COMMAND_SESSION_OPEN, "other");
    lock_as(&fixture, "s", false, LOCK_S, false);
    lock_as(&fixture, "other", false, LOCK_S, false);
    lock(&fixture, "other", "9");
    for (int i = 0; i < 2 * WAITS; i++)
        put(&fixture, 9, i, "", "");
    lock_as(&fixture, "s", false, LOCK_X, false);
    cancel_host(&fixture, 0, false);
    assert_int_equal(waiting_count(&fixture), WAITS + 1);
    struct command *unlock = command_new(COMMAND_UNLOCK, DIALECT_7);
    unlock->owner.session = SLICE_LIT("other");
    unlock->lock.targets = arena_zalloc(&unlock->arena, sizeof(struct lock_target));
    unlock->lock.target_count = 1;
    target(unlock, 0, LOCK_S, "fs", "1");
    fixture_give(&fixture, unlock);
    lock_table_check(&fixture.core->owners->locks);
    assert_int_equal(mode_of(&fixture, session_owner(&fixture, "s"), "fs"), LOCK_S);
    fixture_free_completed(&fixture);
    end(&fixture);
}

/* Also in a core that was loaded after the grant. */
static void test_undone_upgrade_outlasts_checkpoint(void **state)
{
    struct upgrade upgrade;
    (void)state;

    make_upgrade(&upgrade, false, false);
    fixture_reopen(&upgrade.fixture);
    upgrade.owner = session_owner(&upgrade.fixture, "s");
    lock_table_check(&upgrade.fixture.core->owners->locks);
    cancel(&upgrade.fixture, upgrade.request);
    assert_undone(&upgrade);
    end(&upgrade.fixture);
}

/*
 * When the LOCK resumes, its names mean a document that another session has requested: it waits
 * again with the earlier lock, and keeps that after its timeout.
 */
static void test_undone_upgrade_waits_again(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    make_upgrade(&upgrade, false, false);
    struct command *typed = command_new(COMMAND_LOCK, DIALECT_5);
    typed->owner.session = SLICE_LIT("other");
    typed->owner.timeout_us = 600 * TL_SECOND;
    typed->lock.targets = arena_zalloc(&typed->arena, sizeof(struct lock_target));
    typed->lock.target_count = 1;
    target(typed, 0, LOCK_X, "nx", "1");
    typed->lock.targets[0].type = SLICE_LIT("file");
    fixture_give(fixture, typed);
    while (core_next_deadline(fixture->core) == 0)
        fixture_tick(fixture);
    assert_int_equal(mode_of(fixture, upgrade.owner, "fs"), LOCK_S);
    assert_true(token_is_valid(fixture, upgrade.token));
    assert_int_equal(waiting_count(fixture), 1);
    fixture_free_completed(fixture);
    fixture_give_after(fixture, command_new(COMMAND_TICK, DIALECT_7), 120 * TL_SECOND);
    struct command *command = fixture_completed_as(fixture, upgrade.request);
    assert_int_equal(command->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    command_free(command);
    assert_undone(&upgrade);
    end(fixture);
}

/* Requests the document that the LOCK means when it resumes, which ends its time to wait, too. */
static void resume_without_time(struct upgrade *upgrade, unsigned version)
{
    struct core_fixture *fixture = &upgrade->fixture;
    struct command *typed = command_new(COMMAND_LOCK, DIALECT_5), *ticks;

    typed->owner.session = SLICE_LIT("other");
    typed->owner.timeout_us = 600 * TL_SECOND;
    typed->lock.targets = arena_zalloc(&typed->arena, sizeof(struct lock_target));
    typed->lock.target_count = 1;
    target(typed, 0, LOCK_X, "nx", "1");
    typed->lock.targets[0].type = SLICE_LIT("file");
    fixture_give(fixture, typed);
    for (uint64_t us = 120 * TL_SECOND; core_next_deadline(fixture->core) <= fixture->clock + us; us = 10) {
        ticks = command_new(COMMAND_TICK, DIALECT_7);
        ticks->version = version;
        fixture_give_after(fixture, ticks, us);
    }
}

/* A LOCK of a transaction that is refused when it resumes leaves the transaction its idle deadline. */
static void test_lock_refused_after_wait_leaves_idle_deadline(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    for (unsigned version = COMMAND_SINCE_IDLE_AFTER_REFUSAL - 1; version <= COMMAND_CODEC_VERSION; version++) {
        make_upgrade(&upgrade, true, false);
        resume_without_time(&upgrade, version);
        struct command *command = fixture_completed_as(fixture, upgrade.request);
        assert_int_equal(command->problem.type, PROBLEM_LOCK_CONFLICT);
        command_free(command);
        const struct txn *txn = owners_txn(fixture->core->owners, SLICE_LIT("t"));
        assert_non_null(txn);
        assert_int_equal(txn->idle.at == TL_TS_MAX, version < COMMAND_SINCE_IDLE_AFTER_REFUSAL);
        fixture_give_after(fixture, command_new(COMMAND_TICK, DIALECT_7), txn->timeout_us + 1);
        assert_int_equal(owners_txn(fixture->core->owners, SLICE_LIT("t")) == NULL,
                         version >= COMMAND_SINCE_IDLE_AFTER_REFUSAL);
        end(fixture);
    }
}

/* An upgrade that resumes with its names resolved keeps the stronger mode. */
static void test_resumed_upgrade_keeps_its_mode(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    make_upgrade(&upgrade, false, false);
    struct command *command = NULL;
    while (command == NULL && core_next_deadline(fixture->core) == 0) {
        fixture_tick(fixture);
        command = fixture_completed_as(fixture, upgrade.request);
    }
    assert_non_null(command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_int_equal(mode_of(fixture, upgrade.owner, "fs"), LOCK_X);
    assert_true(token_is_valid(fixture, command->lock.fencing_token));
    command_free(command);
    end(fixture);
}

/* A later request of the session for the same lock keeps its mode, and no stronger one. */
static void test_undone_upgrade_leaves_lock_of_later_request(void **state)
{
    static const struct {
        enum lock_mode later, left;
    } cases[] = {{LOCK_S, LOCK_S}, {LOCK_U, LOCK_U}, {LOCK_X, LOCK_X}};
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_upgrade(&upgrade, false, false);
        uint64_t later = lock_as(fixture, "s", false, cases[i].later, false);
        struct command *command = fixture_completed_as(fixture, later);
        assert_non_null(command);
        tl_ts token = command->lock.fencing_token;
        command_free(command);
        cancel(fixture, upgrade.request);
        lock_table_check(&fixture->core->owners->locks);
        assert_int_equal(mode_of(fixture, upgrade.owner, "fs"), cases[i].left);
        assert_int_equal(mode_of(fixture, upgrade.owner, "nx"), LOCK_NONE);
        assert_true(token_is_valid(fixture, token));
        assert_false(token_is_valid(fixture, upgrade.token));
        fixture_free_completed(fixture);
        end(fixture);
    }
}

/* A lock that a request acquired, and a later one of the session requested again, stays with the session. */
static void test_undone_lock_leaves_lock_of_later_request(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    make_upgrade(&upgrade, false, false);
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.target_count = 1;
    target(command, 0, LOCK_S, "nx", "1");
    fixture_give(fixture, command);
    command = fixture_completed_as(fixture, fixture->last_request);
    assert_non_null(command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    command_free(command);
    cancel(fixture, upgrade.request);
    lock_table_check(&fixture->core->owners->locks);
    assert_int_equal(mode_of(fixture, upgrade.owner, "nx"), LOCK_S);
    fixture_free_completed(fixture);
    end(fixture);
}

/* A lock that was released and acquired anew has nothing of the earlier grant. */
static void test_undone_upgrade_leaves_lock_acquired_anew(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    make_upgrade(&upgrade, false, false);
    unlock_all(fixture, "s");
    uint64_t anew = lock_as(fixture, "s", false, LOCK_X, false);
    struct command *command = fixture_completed_as(fixture, anew);
    assert_non_null(command);
    command_free(command);
    cancel(fixture, upgrade.request);
    lock_table_check(&fixture->core->owners->locks);
    assert_int_equal(mode_of(fixture, upgrade.owner, "fs"), LOCK_X);
    fixture_free_completed(fixture);
    end(fixture);
}

static void test_undone_upgrade_ends_with_its_owner(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    for (int of_txn = 0; of_txn < 2; of_txn++) {
        make_upgrade(&upgrade, of_txn, false);
        if (of_txn)
            txn(fixture, COMMAND_TXN_ROLLBACK, "t");
        else
            session(fixture, COMMAND_SESSION_CLOSE, "s");
        while (core_next_deadline(fixture->core) == 0)
            fixture_tick(fixture);
        lock_table_check(&fixture->core->owners->locks);
        assert_true(lock_table_is_idle(&fixture->core->owners->locks));
        fixture_free_completed(fixture);
        end(fixture);
    }
}

/* What a command of an older version has granted is undone as then: an upgrade keeps its mode. */
static void test_upgrade_of_older_version_is_undone_as_then(void **state)
{
    struct upgrade upgrade;
    struct core_fixture *fixture = &upgrade.fixture;
    (void)state;

    for (int reopens = 0; reopens < 2; reopens++) {
        make_upgrade(&upgrade, false, true);
        if (reopens)
            fixture_reopen(fixture);
        upgrade.owner = session_owner(fixture, "s");
        cancel(fixture, upgrade.request);
        lock_table_check(&fixture->core->owners->locks);
        assert_int_equal(mode_of(fixture, upgrade.owner, "fs"), LOCK_X);
        assert_int_equal(mode_of(fixture, upgrade.owner, "nx"), LOCK_NONE);
        fixture_free_completed(fixture);
        end(fixture);
    }
}

/* An UNLOCK of the documents `first` to `end` - 1 by name. */
static struct command *unlock_named(const char *session, const char *index, size_t first, size_t end)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->lock.target_count = end - first;
    command->lock.targets = arena_zalloc(&command->arena, (end - first) * sizeof(struct lock_target));
    for (size_t i = first; i < end; i++)
        command->lock.targets[i - first] = (struct lock_target){
            .mode = LOCK_X, .index = slice_from(index), .id = arena_printf(&command->arena, "%zu", i)};
    return command;
}

/* Runs a command. Returns: it, without what completed before. */
static struct command *run(struct core_fixture *fixture, struct command *command)
{
    fixture_free_completed(fixture);
    fixture_give(fixture, command);
    return fixture_completed_as(fixture, fixture->last_request);
}

static size_t lock_count(struct core_fixture *fixture, const char *session)
{
    return owners_session(fixture->core->owners, slice_from(session))->owner.locks.lock_count;
}

/*
 * An UNLOCK of many names does the first ones, which are free for others then, and says how many those are. A wrong
 * name fails it before it releases one. One of a version before 17 does all.
 */
static void test_unlock_releases_in_pieces(void **state)
{
    enum { MANY = 200 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture, 4);
    session(&fixture, COMMAND_SESSION_OPEN, "s");
    session(&fixture, COMMAND_SESSION_OPEN, "first");
    session(&fixture, COMMAND_SESSION_OPEN, "last");
    struct command *command = unlock_named("s", "fs", 0, MANY);
    command->type = COMMAND_LOCK;
    fixture_give(&fixture, command);
    assert_int_equal(lock_count(&fixture, "s"), MANY);
    lock(&fixture, "first", "0");
    lock(&fixture, "last", "199");

    struct command *wrong = unlock_named("s", "fs", 0, MANY);
    wrong->lock.targets[MANY - 1].index = SLICE_LIT("*");
    wrong = run(&fixture, wrong);
    assert_int_equal(wrong->problem.type, PROBLEM_INVALID_INDEX_NAME);
    assert_int_equal(lock_count(&fixture, "s"), MANY);
    command_free(wrong);

    command = run(&fixture, unlock_named("s", "fs", 0, MANY));
    size_t done = command->lock.done;
    assert_in_range(done, 1, MANY / 2);
    assert_int_equal(command->lock.released, done);
    assert_int_equal(lock_count(&fixture, "s"), MANY - done);
    command_free(command);
    assert_int_equal(lock_count(&fixture, "first"), 1);
    assert_int_equal(lock_count(&fixture, "last"), 0);

    struct command *older = unlock_named("s", "fs", done, MANY);
    older->version = COMMAND_SINCE_UNLOCK_PIECES - 1;
    older = run(&fixture, older);
    assert_int_equal(older->lock.released, MANY - done);
    command_free(older);
    assert_int_equal(lock_count(&fixture, "last"), 1);
    end(&fixture);
}

static void lock_by(struct core_fixture *fixture, const char *session, const char *index, const char *id)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index), .id = slice_from(id)};
    command->lock.target_count = 1;
    fixture_give(fixture, command);
}

/*
 * A LOCK by an alias whose name the session has already does not ask for that. If the session loses it while the LOCK
 * waits, by an UNLOCK of all or of the lock by the alias, the LOCK gets it with its lock.
 */
static void test_lock_gets_name_that_was_released_meanwhile(void **state)
{
    (void)state;

    for (int named = 0; named < 2; named++) {
        for (int older = 0; older < 2; older++) {
            struct core_fixture fixture;
            begin(&fixture, 100);
            struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);
            command->index.name = SLICE_LIT("x");
            command->index.uuid = SLICE_LIT("0123456789abcdefghijkm");
            command->index.body = SLICE_LIT("{\"aliases\":{\"a\":{}}}");
            fixture_give(&fixture, command);
            session(&fixture, COMMAND_SESSION_OPEN, "s");
            session(&fixture, COMMAND_SESSION_OPEN, "other");
            lock_by(&fixture, "other", "x", "2");
            lock_by(&fixture, "s", "a", "1");
            const struct lock_owner *owner = &owners_session(fixture.core->owners, SLICE_LIT("s"))->owner.locks;
            assert_int_equal(owner->auxiliary_count, 1);
            lock_by(&fixture, "s", "a", "2");
            command = unlock_named("s", "a", 1, 2);
            if (!named)
                command->lock.target_count = 0;
            command->version = COMMAND_SINCE_NAMES_AGAIN - older;
            fixture_give(&fixture, command);
            assert_int_equal(owner->auxiliary_count, 0);
            unlock_all(&fixture, "other");
            assert_int_equal(owner->lock_count, 1);
            assert_int_equal(owner->auxiliary_count, older ? 0 : 1);
            lock_table_check(&fixture.core->owners->locks);
            end(&fixture);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unlock_releases_in_pieces),
        cmocka_unit_test(test_lock_gets_name_that_was_released_meanwhile),
        cmocka_unit_test(test_ready_writes_resume_in_bounded_steps),
        cmocka_unit_test(test_requests_of_one_session_after_others_are_evaluated_once),
        cmocka_unit_test(test_ended_waits_are_answered_in_bounded_steps),
        cmocka_unit_test(test_cancelled_waits_end_in_bounded_steps),
        cmocka_unit_test(test_cancelled_bulks_count_by_their_items),
        cmocka_unit_test(test_cancelled_ready_writes_have_their_cost),
        cmocka_unit_test(test_cancelled_request_granted_by_another_ones_end_keeps_no_lock),
        cmocka_unit_test(test_waits_of_expired_sessions_end_in_bounded_steps),
        cmocka_unit_test(test_only_tick_continues_cleanup),
        cmocka_unit_test(test_resumed_bulk_postpones_indices),
        cmocka_unit_test(test_cleanup_that_ends_waits_of_next_session_completes),
        cmocka_unit_test(test_waits_of_transactions_end_with_the_session),
        cmocka_unit_test(test_cancelled_bulk_tries_no_item_on_timeout),
        cmocka_unit_test(test_cancelled_wait_leaves_request_with_its_number),
        cmocka_unit_test(test_cancel_of_older_version_ends_all_waits),
        cmocka_unit_test(test_timed_out_bulks_retry_in_bounded_steps),
        cmocka_unit_test(test_grants_are_divided_into_steps),
        cmocka_unit_test(test_grants_of_many_locks_are_divided_into_steps),
        cmocka_unit_test(test_write_leaves_rest_of_step_to_resumed_commands),
        cmocka_unit_test(test_ready_write_is_not_overtaken),
        cmocka_unit_test(test_ready_write_ends_on_cancel),
        cmocka_unit_test(test_ready_write_ends_with_its_session),
        cmocka_unit_test(test_ready_write_does_not_time_out),
        cmocka_unit_test(test_ready_write_ends_on_rollback),
        cmocka_unit_test(test_undone_upgrade_ends_on_cancel),
        cmocka_unit_test(test_undone_upgrade_ends_when_its_host_stops),
        cmocka_unit_test(test_undone_upgrade_ends_if_granted_after_cancel),
        cmocka_unit_test(test_undone_upgrade_outlasts_checkpoint),
        cmocka_unit_test(test_undone_upgrade_waits_again),
        cmocka_unit_test(test_lock_refused_after_wait_leaves_idle_deadline),
        cmocka_unit_test(test_resumed_upgrade_keeps_its_mode),
        cmocka_unit_test(test_undone_upgrade_leaves_lock_of_later_request),
        cmocka_unit_test(test_undone_lock_leaves_lock_of_later_request),
        cmocka_unit_test(test_undone_upgrade_leaves_lock_acquired_anew),
        cmocka_unit_test(test_undone_upgrade_ends_with_its_owner),
        cmocka_unit_test(test_upgrade_of_older_version_is_undone_as_then),
        cmocka_unit_test(test_ready_write_counts_against_waiters_max),
        cmocka_unit_test(test_txn_bulk_runs_in_bounded_steps),
        cmocka_unit_test(test_txn_bulk_is_under_way_between_batches),
        cmocka_unit_test(test_txn_bulk_continues_after_timeout),
        cmocka_unit_test(test_txn_bulk_fails_from_batch_beyond_limit),
        cmocka_unit_test(test_txn_bulk_reports_done_items_on_cancel),
        cmocka_unit_test(test_txn_bulk_waits_are_measured_by_batch),
        cmocka_unit_test(test_slow_wait_followed_by_batch_is_reported),
        cmocka_unit_test(test_txn_write_says_that_too_many_wait),
        cmocka_unit_test(test_txn_bulk_bounds_scripts_of_later_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
