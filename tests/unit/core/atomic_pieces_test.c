/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: an atomic write that takes more than one step may is carried out in pieces, others between them,
 * and has the effects and the reply of one that is done in one step (src/core/README.md, "Atomic writes
 * in pieces"). In a client's transaction it is refused.
 * Method: a core whose steps are checked one by one, in which few items are too much for one step.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"

enum { ITEMS = 40, STEP_WORK = 1500 };

/* Runs due steps until a command completes. Returns: it. */
static struct command *finish(struct core_fixture *fixture, uint64_t request)
{
    struct command *command;
    for (int steps = 0; (command = fixture_completed_as(fixture, request)) == NULL; steps++) {
        assert_int_equal(core_next_deadline(fixture->core), 0);
        assert_true(steps < 1000);
        fixture_tick(fixture);
    }
    return command;
}

static void make_steps_small(struct core_fixture *fixture)
{
    fixture->core->atomic_work_max = fixture->core->write_work_max = STEP_WORK;
}

static void begin(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture->checks_locks = true;
    make_steps_small(fixture);
    fixture_index(fixture, "fs", "there", "{\"v\":0}");
}

static void reopen(struct core_fixture *fixture)
{
    fixture_reopen(fixture);
    make_steps_small(fixture);
}

/* Nothing of an atomic write is left but its effects. */
static void end(struct core_fixture *fixture)
{
    fixture_free_completed(fixture);
    assert_int_equal(fixture->core->owners->txns.count, 0);
    core_stop(fixture->core, &fixture->effects);
    fixture_free_completed(fixture);
    fixture_close(fixture);
}

/* An atomic write of the documents 0 to `count` - 1, in descending order if `down`. */
static struct command *atomic_write(struct core_fixture *fixture, size_t count, int value, bool down)
{
    struct command *command = fixture_write_command(fixture, count);

    for (size_t i = 0; i < count; i++) {
        struct write_item *item = &command->write.items[i];
        *item = fixture_item(WRITE_INDEX, "fs", "", "", "");
        item->id = arena_printf(&command->arena, "%zu", down ? count - 1 - i : i);
        item->source = arena_printf(&command->arena, "{\"v\":%d}", value);
    }
    command->write.atomic = true;
    command->owner.timeout_us = 60 * TL_SECOND;
    return command;
}

static uint64_t give_atomic(struct core_fixture *fixture, struct command *command)
{
    fixture_give(fixture, command);
    return command->request;
}

static void assert_value(struct core_fixture *fixture, const char *id, int value)
{
    char expected[40];
    snprintf(expected, sizeof expected, "{\"v\":%d}", value);
    assert_string_equal(fixture_source(fixture, "fs", id), expected);
}

static void session(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    fixture_give(fixture, command);
}

/* Asks for X on a document, without waiting. Returns: whether it was granted. */
static bool lock(struct core_fixture *fixture, const char *owner, const char *id)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = slice_from(owner);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->lock.target_count = 1;
    fixture_give(fixture, command);
    struct command *done = fixture_completed_as(fixture, fixture->last_request);
    assert_non_null(done);
    bool granted = done->problem.type == PROBLEM_NONE;
    command_free(done);
    return granted;
}

static void unlock_all(struct core_fixture *fixture, const char *owner)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = slice_from(owner);
    fixture_give(fixture, command);
}

/* Others run between the pieces, nothing is seen before the end, and a checkpoint has its progress. */
static void test_atomic_write_runs_in_pieces(void **state)
{
    (void)state;

    for (int reopens = 0; reopens < 2; reopens++) {
        struct core_fixture fixture;
        struct command *command;
        int steps = 0;
        begin(&fixture);
        uint64_t request = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
        for (; (command = fixture_completed_as(&fixture, request)) == NULL; steps++) {
            assert_int_equal(core_next_deadline(fixture.core), 0);
            assert_null(fixture_source(&fixture, "fs", "0"));
            assert_null(fixture_source(&fixture, "fs", "39"));
            assert_int_equal(fixture_find(&fixture, "fs", "v", 1), 0);
            struct command *other = fixture_write_command(&fixture, 1);
            other->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "other", "{\"v\":2}");
            fixture_give(&fixture, other);
            struct command *done = fixture_completed_as(&fixture, fixture.last_request);
            assert_non_null(done);
            command_free(done);
            if (reopens)
                reopen(&fixture);
            fixture_tick(&fixture);
        }
        assert_true(steps >= 4);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->owner.transaction.len, 0);
        assert_false(command->write.rolled_back);
        for (size_t i = 0; i < ITEMS; i++) {
            assert_int_equal(command->write.results[i].outcome, WRITE_CREATED);
            assert_int_equal(command->write.results[i].version, 1);
        }
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), ITEMS + 2);
        assert_int_equal(fixture_find(&fixture, "fs", "v", 1), ITEMS);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* An atomic write of so many documents that are indexed and then moved. */
static struct command *pairs_write(struct core_fixture *fixture, size_t pairs)
{
    struct command *command = fixture_write_command(fixture, 2 * pairs);

    for (size_t i = 0; i < pairs; i++) {
        struct write_item *item = &command->write.items[2 * i];
        struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
        item[0] = fixture_item(WRITE_INDEX, "tree", "", "", "");
        item[1] = fixture_item(WRITE_UPDATE, "tree", "", "", "");
        item[0].id = item[1].id = arena_printf(&command->arena, "%zu", i);
        item[0].source = arena_printf(&command->arena, "{\"path\":\"/a/%zu\"}", i);
        update->doc = arena_printf(&command->arena, "{\"path\":\"/b/%zu\"}", i);
        item[1].source = SLICE_NONE;
        item[1].update = update;
    }
    command->write.atomic = true;
    command->owner.timeout_us = 60 * TL_SECOND;
    return command;
}

/*
 * The one step of an atomic write in pieces that its size makes longer is the commit, a unit of its own: some 50 units
 * of work a document, however often the write has changed it, and nothing of the pieces before.
 */
static void test_only_commit_is_undivided(void **state)
{
    (void)state;

    enum { PAIRS = 400, COMMIT_WORK_EACH = 60, OTHER = 2000 };
    struct core_fixture fixture;
    struct command *command;
    uint64_t longest = 0, last = 0;
    begin(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    uint64_t request = give_atomic(&fixture, pairs_write(&fixture, PAIRS));
    while ((command = fixture_completed_as(&fixture, request)) == NULL) {
        longest = last > longest ? last : longest;
        assert_int_equal(core_next_deadline(fixture.core), 0);
        fixture_tick(&fixture);
        last = core_step_work(fixture.core);
    }
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    for (size_t i = 0; i < 2 * PAIRS; i++)
        assert_int_equal(command->write.results[i].outcome, i % 2 == 0 ? WRITE_CREATED : WRITE_UPDATED);
    command_free(command);
    assert_in_range(last, PAIRS * WORK_WRITE, PAIRS * COMMIT_WORK_EACH + OTHER);
    assert_in_range(last - fixture.core->indivisible_work, 0, OTHER);
    assert_in_range(longest, 1, 4 * STEP_WORK);
    end(&fixture);
}

/* Items of later pieces see what earlier ones did. */
static void test_piece_sees_pieces_before(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    struct command *command = atomic_write(&fixture, ITEMS, 1, false);
    command->write.items[ITEMS - 1].id = SLICE_LIT("0");
    command->write.items[ITEMS - 1].source = SLICE_LIT("{\"v\":7}");
    command = finish(&fixture, give_atomic(&fixture, command));
    assert_int_equal(command->write.results[ITEMS - 1].outcome, WRITE_UPDATED);
    assert_int_equal(command->write.results[ITEMS - 1].version, 2);
    command_free(command);
    assert_value(&fixture, "0", 7);
    end(&fixture);
}

/* The core leaves no script of an atomic write to its submitter: one that takes more steps than granted fails. */
static void test_script_in_pieces_is_not_postponed(void **state)
{
    struct write_update update = {.script_source = SLICE_LIT("for (int i = 0; i < 900; i++) { ctx._source.v = i }"),
                                  .script_steps = 1000,
                                  .script_postpones = true};
    (void)state;

    for (size_t failing = 0; failing < ITEMS; failing += ITEMS - 1) {
        struct core_fixture fixture;
        begin(&fixture);
        struct command *command = atomic_write(&fixture, ITEMS, 1, false);
        command->write.items[failing] = fixture_item(WRITE_UPDATE, "fs", "", "there", NULL);
        command->write.items[failing].update = &update;
        command = finish(&fixture, give_atomic(&fixture, command));
        assert_true(command->write.rolled_back);
        assert_int_equal(command->write.results[failing].outcome, WRITE_FAILED);
        assert_true(command->write.results[failing].script_long);
        assert_int_equal(command->write.postponed_count, 0);
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        assert_value(&fixture, "there", 0);
        end(&fixture);
    }
}

/* An item that fails in any piece undoes all, and each failed one is reported. */
static void test_failed_item_rolls_back_all_pieces(void **state)
{
    (void)state;

    for (size_t failing = 0; failing < ITEMS; failing += ITEMS - 1) {
        struct core_fixture fixture;
        begin(&fixture);
        struct command *command = atomic_write(&fixture, ITEMS, 1, false);
        command->write.items[failing] = fixture_item(WRITE_CREATE, "fs", "", "there", "{\"v\":1}");
        command->write.items[ITEMS / 2] = fixture_item(WRITE_CREATE, "fs", "", "there", "{\"v\":1}");
        command = finish(&fixture, give_atomic(&fixture, command));
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_true(command->write.rolled_back);
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(command->write.results[i].outcome,
                             i == failing || i == ITEMS / 2 ? WRITE_FAILED : WRITE_CREATED);
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        assert_value(&fixture, "there", 0);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* What ends a waiting command ends one between two pieces, and rolls it back. */
static void test_end_between_pieces_rolls_back(void **state)
{
    enum { HANG_UP, HOST_STOPS, SESSION_ENDS, MACHINE_LOST, WAYS };
    (void)state;

    for (int way = 0; way < 2 * WAYS; way++) {
        struct core_fixture fixture;
        begin(&fixture);
        session(&fixture, COMMAND_SESSION_OPEN, "s");
        struct command *command = atomic_write(&fixture, ITEMS, 1, false);
        command->owner.session = SLICE_LIT("s");
        uint64_t request = give_atomic(&fixture, command);
        fixture_tick(&fixture);
        fixture_tick(&fixture);
        fixture_free_completed(&fixture);
        if (way >= WAYS)
            reopen(&fixture);
        if (way % WAYS == HANG_UP || way % WAYS == HOST_STOPS) {
            struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);
            cancel->cancel.request = way % WAYS == HANG_UP ? request : 0;
            fixture_give(&fixture, cancel);
        } else if (way % WAYS == SESSION_ENDS) {
            session(&fixture, COMMAND_SESSION_CLOSE, "s");
        } else {
            fixture_give(&fixture, command_new(COMMAND_MACHINE_LOST, DIALECT_7));
        }
        command = finish(&fixture, request);
        assert_int_not_equal(command->problem.type, PROBLEM_NONE);
        command_free(command);
        for (int i = 0; i < 5; i++)
            fixture_tick(&fixture);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* A blocked piece waits without any other lock: the holder of its lock gets all others. */
static void test_blocked_piece_waits_without_locks(void **state)
{
    (void)state;

    for (int reopens = 0; reopens < 2; reopens++) {
        struct core_fixture fixture;
        begin(&fixture);
        session(&fixture, COMMAND_SESSION_OPEN, "s");
        assert_true(lock(&fixture, "s", "39"));
        uint64_t request = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
        while (core_next_deadline(fixture.core) == 0)
            fixture_tick(&fixture);
        assert_null(fixture_completed_as(&fixture, request));
        assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
        assert_true(lock(&fixture, "s", "0"));
        if (reopens)
            reopen(&fixture);
        unlock_all(&fixture, "s");
        struct command *command = finish(&fixture, request);
        assert_false(command->write.rolled_back);
        command_free(command);
        assert_value(&fixture, "0", 1);
        assert_value(&fixture, "39", 1);
        end(&fixture);
    }
}

/* At its deadline it fails the blocked items, as one that is done in one step. */
static void test_blocked_piece_times_out(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    session(&fixture, COMMAND_SESSION_OPEN, "s");
    assert_true(lock(&fixture, "s", "39"));
    uint64_t request = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 30 * TL_SECOND);
    assert_null(fixture_completed_as(&fixture, request));
    fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 31 * TL_SECOND);
    struct command *command = finish(&fixture, request);
    assert_true(command->write.rolled_back);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(command->write.results[i].problem.type, i == 39 ? PROBLEM_LOCK_WAIT_TIMEOUT : PROBLEM_NONE);
    command_free(command);
    assert_int_equal(fixture_count(&fixture, "fs"), 1);
    end(&fixture);
}

/* Two that write the same documents in opposite orders are both done. */
static void test_opposite_orders_are_no_deadlock(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    uint64_t up = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
    uint64_t down = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 2, true));
    int done = 0;
    for (int steps = 0; done < 2; steps++) {
        struct command *command;
        assert_true(steps < 1000);
        while ((command = fixture_completed(&fixture)) != NULL) {
            if (command->request == up || command->request == down) {
                assert_int_equal(command->problem.type, PROBLEM_NONE);
                assert_false(command->write.rolled_back);
                done++;
            }
            command_free(command);
        }
        fixture_tick(&fixture);
    }
    assert_int_equal(fixture_count(&fixture, "fs"), ITEMS + 1);
    assert_int_equal(fixture_find(&fixture, "fs", "v", 1) + fixture_find(&fixture, "fs", "v", 2), ITEMS);
    assert_true(fixture_find(&fixture, "fs", "v", 1) == 0 || fixture_find(&fixture, "fs", "v", 2) == 0);
    end(&fixture);
}

/* Runs due steps until the command waits for a lock. */
static void run_until_blocked(struct core_fixture *fixture)
{
    for (int steps = 0; core_next_deadline(fixture->core) == 0; steps++) {
        assert_true(steps < 1000);
        fixture_tick(fixture);
    }
    assert_int_equal(fixture->core->owners->locks.waiting_count, 1);
}

/*
 * Begins an atomic write while another session has the last document. Whenever the write waits, another session locks
 * the document at the other end of it, and the one that blocks it lets go, so that its attempt ends, until it keeps its
 * locks. It may do so `rounds_max` times. Returns: its request; *ret_blocker: the session for which it waits then.
 */
static uint64_t make_attempts(struct core_fixture *fixture, struct command *write, int rounds_max, bool reopens,
                              const char **ret_blocker)
{
    static const char *const sessions[] = {"a", "b"}, *const documents[] = {"39", "0"};
    session(fixture, COMMAND_SESSION_OPEN, "a");
    session(fixture, COMMAND_SESSION_OPEN, "b");
    assert_true(lock(fixture, "a", "39"));
    uint64_t request = give_atomic(fixture, write);
    run_until_blocked(fixture);
    int rounds = 0;
    for (; rounds < rounds_max && lock(fixture, sessions[(rounds + 1) % 2], documents[(rounds + 1) % 2]); rounds++) {
        unlock_all(fixture, sessions[rounds % 2]);
        run_until_blocked(fixture);
        if (reopens)
            reopen(fixture);
    }
    *ret_blocker = sessions[rounds % 2];
    return request;
}

/* As above, until it keeps its locks: after four times. */
static uint64_t begin_last_attempt(struct core_fixture *fixture, struct command *write, bool reopens,
                                   const char **ret_blocker)
{
    uint64_t request = make_attempts(fixture, write, 20, reopens, ret_blocker);
    assert_int_equal(wait__by_request(fixture->core, request)->command->write.attempts, 4);
    assert_string_equal(*ret_blocker, "a");
    return request;
}

/*
 * A client that locks and unlocks documents makes it attempt again a few times only: then it keeps its locks while it
 * waits.
 */
static void test_attempts_are_bounded(void **state)
{
    (void)state;

    for (int reopens = 0; reopens < 2; reopens++) {
        struct core_fixture fixture;
        const char *blocker;
        begin(&fixture);
        uint64_t request = begin_last_attempt(&fixture, atomic_write(&fixture, ITEMS, 1, false), reopens > 0, &blocker);
        unlock_all(&fixture, blocker);
        struct command *command = finish(&fixture, request);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_false(command->write.rolled_back);
        command_free(command);
        assert_int_equal(fixture_find(&fixture, "fs", "v", 1), ITEMS);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* While it keeps its locks it may be the victim of a deadlock: all of it is undone, and the store has no outcome. */
static void test_victim_with_locks_is_rolled_back(void **state)
{
    (void)state;

    for (int reopens = 0; reopens < 2; reopens++) {
        struct core_fixture fixture;
        const char *blocker;
        begin(&fixture);
        uint64_t request = begin_last_attempt(&fixture, atomic_write(&fixture, ITEMS, 1, false), false, &blocker);
        if (reopens)
            reopen(&fixture);
        char id[60];
        snprintf(id, sizeof id, "%.*s", SLICE_ARG(wait__by_request(fixture.core, request)->command->owner.transaction));
        struct command *wanted = command_new(COMMAND_LOCK, DIALECT_7);
        wanted->owner.session = slice_from(blocker);
        wanted->owner.timeout_us = 60 * TL_SECOND;
        wanted->lock.targets = arena_zalloc(&wanted->arena, sizeof(struct lock_target));
        wanted->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("0")};
        wanted->lock.target_count = 1;
        fixture_give(&fixture, wanted);
        uint64_t asked = fixture.last_request;
        struct command *done[2] = {NULL, NULL}, *command;
        for (int steps = 0; done[0] == NULL || done[1] == NULL; steps++) {
            assert_true(steps < 100);
            while ((command = fixture_completed(&fixture)) != NULL)
                if (command->request == request || command->request == asked)
                    done[command->request == asked] = command;
                else
                    command_free(command);
            fixture_tick(&fixture);
        }
        assert_int_equal(done[0]->problem.type, PROBLEM_DEADLOCK_DETECTED); /* it is younger than the session */
        assert_int_equal(done[1]->problem.type, PROBLEM_NONE);
        assert_int_equal(done[0]->owner.transaction.len, 0);
        struct txn_outcome outcome;
        assert_int_equal(txn__get_outcome(fixture.core, slice_from(id), &done[0]->arena, &outcome), 1);
        for (int i = 0; i < 2; i++)
            command_free(done[i]);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        end(&fixture);
    }
}

/* In a log of before an attempt ends whenever it is blocked, as it did then. */
static void test_older_command_has_no_last_attempt(void **state)
{
    enum { ROUNDS = 12 };
    struct core_fixture fixture;
    const char *blocker;
    (void)state;

    begin(&fixture);
    fixture.version = COMMAND_SINCE_LAST_ATTEMPT - 1;
    struct command *command = atomic_write(&fixture, ITEMS, 1, false);
    uint64_t request = make_attempts(&fixture, command, ROUNDS, false, &blocker);
    assert_int_equal(command->write.attempts, 0);
    unlock_all(&fixture, blocker);
    command = finish(&fixture, request);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_false(command->write.rolled_back);
    command_free(command);
    end(&fixture);
}

/* Ends the transaction that is under way, as an operator does. */
static void end_by_force(struct core_fixture *fixture, uint64_t request)
{
    struct command *command = command_new(COMMAND_TXN_ROLLBACK, DIALECT_7);
    command->txn.id = arena_printf(
        &command->arena, "%llu", (unsigned long long)wait__by_request(fixture->core, request)->txn->owner.locks.number);
    command->txn.force = true;
    fixture_give(fixture, command);
}

/* What ends a waiting command ends one in its last attempt, which has locks, and undoes all of it. */
static void test_end_of_last_attempt_rolls_back(void **state)
{
    enum { HANG_UP, HOST_STOPS, SESSION_ENDS, MACHINE_LOST, FORCE, TIMES_OUT, WAYS };
    enum { WAITS, WAITS_REOPENED, RUNS, RUNS_REOPENED, STATES };
    (void)state;

    for (int way = 0; way < WAYS * STATES; way++) {
        struct core_fixture fixture;
        const char *blocker;
        int of = way / WAYS;
        if (way % WAYS == TIMES_OUT && of >= RUNS)
            continue; /* it has no deadline then */
        begin(&fixture);
        session(&fixture, COMMAND_SESSION_OPEN, "s");
        struct command *command = atomic_write(&fixture, ITEMS, 1, false);
        command->owner.session = SLICE_LIT("s");
        uint64_t request = begin_last_attempt(&fixture, command, false, &blocker);
        if (of >= RUNS) {
            unlock_all(&fixture, blocker);
            fixture_free_completed(&fixture);
        }
        if (of == WAITS_REOPENED || of == RUNS_REOPENED)
            reopen(&fixture);
        char id[60];
        snprintf(id, sizeof id, "%.*s", SLICE_ARG(wait__by_request(fixture.core, request)->command->owner.transaction));
        switch (way % WAYS) {
        case HANG_UP:
        case HOST_STOPS:
            command = command_new(COMMAND_CANCEL, DIALECT_7);
            command->cancel.request = way % WAYS == HANG_UP ? request : 0;
            fixture_give(&fixture, command);
            break;
        case SESSION_ENDS: session(&fixture, COMMAND_SESSION_CLOSE, "s"); break;
        case MACHINE_LOST: fixture_give(&fixture, command_new(COMMAND_MACHINE_LOST, DIALECT_7)); break;
        case FORCE: end_by_force(&fixture, request); break;
        case TIMES_OUT: fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 61 * TL_SECOND); break;
        }
        command = finish(&fixture, request);
        if (way % WAYS == TIMES_OUT) {
            assert_true(command->write.rolled_back);
            assert_int_equal(command->write.results[ITEMS - 1].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
        } else {
            assert_int_not_equal(command->problem.type, PROBLEM_NONE);
        }
        assert_null(command->write.retired);
        unlock_all(&fixture, blocker);
        for (int i = 0; i < 5; i++)
            fixture_tick(&fixture);
        assert_int_equal(fixture.core->owners->txns.count, 0);
        struct txn_outcome outcome; /* no client has its id */
        assert_int_equal(txn__get_outcome(fixture.core, slice_from(id), &command->arena, &outcome), 1);
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* A repetition of a request that waits with its locks is answered with its results. */
static void test_repetition_of_last_attempt_runs_once(void **state)
{
    (void)state;

    for (int generated = 0; generated < 2; generated++) {
        struct core_fixture fixture;
        struct command *pair[2], *command;
        const char *blocker;
        begin(&fixture);
        for (int i = 0; i < 2; i++) {
            pair[i] = atomic_write(&fixture, ITEMS, 1, false);
            pair[i]->write.request = (struct write_request){SLICE_LIT("r"), 7, 0};
        }
        for (size_t j = 0; j < ITEMS && generated; j++) {
            pair[1]->write.items[j].id = arena_printf(&pair[1]->arena, "new-%zu", j);
            pair[1]->write.items[j].id_generated = true;
        }
        uint64_t numbers[2];
        numbers[0] = begin_last_attempt(&fixture, pair[0], false, &blocker);
        numbers[1] = give_atomic(&fixture, pair[1]);
        for (int i = 0; i < 20; i++)
            fixture_tick(&fixture);
        unlock_all(&fixture, blocker);
        for (int steps = 0, done = 0; done < 2; steps++) {
            assert_true(steps < 1000);
            while ((command = fixture_completed(&fixture)) != NULL) {
                if (command->request == numbers[0] || command->request == numbers[1]) {
                    assert_int_equal(command->problem.type, PROBLEM_NONE);
                    for (size_t i = 0; i < ITEMS; i++) {
                        assert_int_equal(command->write.results[i].outcome, WRITE_CREATED);
                        assert_int_equal(command->write.results[i].version, 1);
                    }
                    done++;
                }
                command_free(command);
            }
            fixture_tick(&fixture);
        }
        assert_int_equal(fixture_count(&fixture, "fs"), ITEMS + 1);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/* A client that guesses the id of its transaction cannot read, write, commit or roll back in it. */
static void test_transaction_of_pieces_is_out_of_reach(void **state)
{
    static const enum command_type types[] = {COMMAND_WRITE, COMMAND_TXN_LOCK, COMMAND_TXN_COMMIT,
                                              COMMAND_TXN_ROLLBACK};
    (void)state;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct core_fixture fixture;
        begin(&fixture);
        uint64_t request = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
        fixture_tick(&fixture);
        struct slice id = wait__by_request(fixture.core, request)->command->owner.transaction;
        struct command *command =
            types[i] == COMMAND_WRITE ? fixture_write_command(&fixture, 1) : command_new(types[i], DIALECT_7);
        if (types[i] == COMMAND_WRITE)
            command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "x", "{\"v\":1}");
        if (types[i] == COMMAND_TXN_COMMIT || types[i] == COMMAND_TXN_ROLLBACK)
            command->txn.id = arena_copy(&command->arena, id);
        else
            command->owner.transaction = arena_copy(&command->arena, id);
        fixture_give(&fixture, command);
        command = fixture_completed_as(&fixture, fixture.last_request);
        assert_non_null(command);
        assert_int_not_equal(command->problem.type, PROBLEM_NONE);
        command_free(command);
        command = finish(&fixture, request);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_false(command->write.rolled_back);
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), ITEMS + 1);
        end(&fixture);
    }
}

/* The deletion of its index between two pieces waits for its end. */
static void test_index_is_deleted_after_pieces(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    uint64_t request = give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false));
    fixture_tick(&fixture);
    fixture_tick(&fixture);
    struct command *command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
    command->index.name = SLICE_LIT("fs");
    command->owner.timeout_us = 60 * TL_SECOND;
    fixture_give(&fixture, command);
    assert_null(fixture_completed_as(&fixture, fixture.last_request));
    command = finish(&fixture, request);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_false(command->write.rolled_back);
    command_free(command);
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_null(catalog_index(fixture.core->catalog, SLICE_LIT("fs")));
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    end(&fixture);
}

/* A repetition, later or while the first one is under way, is answered with its results. */
static void test_repetition_of_pieces_runs_once(void **state)
{
    (void)state;

    for (int generated = 0; generated < 2; generated++)
        for (int later = 0; later < 2; later++) {
            struct core_fixture fixture;
            struct command *pair[2];
            begin(&fixture);
            for (int i = 0; i < 2; i++) {
                pair[i] = atomic_write(&fixture, ITEMS, 1, false);
                pair[i]->write.request = (struct write_request){SLICE_LIT("r"), 7, 0};
                for (size_t j = 0; j < ITEMS && generated; j++) {
                    pair[i]->write.items[j].id = arena_printf(&pair[i]->arena, "%d-%zu", i, j);
                    pair[i]->write.items[j].id_generated = true;
                }
            }
            uint64_t first = give_atomic(&fixture, pair[0]), second;
            if (later)
                command_free(finish(&fixture, first));
            second = give_atomic(&fixture, pair[1]);
            struct command *command = NULL, *other;
            for (int steps = 0; command == NULL; steps++) {
                assert_true(steps < 1000);
                while ((other = fixture_completed(&fixture)) != NULL)
                    if (other->request == second)
                        command = other;
                    else
                        command_free(other);
                fixture_tick(&fixture);
            }
            assert_int_equal(command->problem.type, PROBLEM_NONE);
            for (size_t i = 0; i < ITEMS; i++) {
                assert_int_equal(command->write.results[i].outcome, WRITE_CREATED);
                assert_int_equal(command->write.results[i].version, 1);
            }
            command_free(command);
            while (core_next_deadline(fixture.core) == 0)
                fixture_tick(&fixture);
            assert_int_equal(fixture_count(&fixture, "fs"), ITEMS + 1);
            end(&fixture);
        }
}

/* It has the limits of a transaction: nothing of it is done. */
static void test_limits_of_a_transaction_refuse_pieces(void **state)
{
    (void)state;

    for (int locks = 0; locks < 2; locks++) {
        struct core_fixture fixture;
        begin(&fixture);
        if (locks)
            fixture.core->limits.locks_per_session_max = ITEMS / 2;
        else
            fixture.core->commit_work_max = 500;
        struct command *command = finish(&fixture, give_atomic(&fixture, atomic_write(&fixture, ITEMS, 1, false)));
        assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
        command_free(command);
        assert_int_equal(fixture_count(&fixture, "fs"), 1);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        end(&fixture);
    }
}

/*
 * The results of all pieces together are limited, also if the write was loaded from a checkpoint in between, which
 * does not have their sum.
 */
static void test_results_of_pieces_are_limited(void **state)
{
    enum { LONG_NAME = 20000 };
    size_t count = 2;
    (void)state;

    for (int limited = 0; limited < 2; limited++) {
        struct core_fixture fixture;
        begin(&fixture);
        struct command *command = atomic_write(&fixture, count, 1, false);
        char *name = arena_alloc(&command->arena, LONG_NAME);
        memset(name, 'x', LONG_NAME);
        for (size_t i = 0; i < count; i++) {
            command->write.items[i].op = WRITE_DELETE;
            command->write.items[i].index = slice_make(name, LONG_NAME);
        }
        uint64_t request = give_atomic(&fixture, command);
        for (int i = 0; limited && i < 3; i++)
            fixture_tick(&fixture);
        if (limited) {
            assert_int_equal(fixture.core->owners->txns.count, 1);
            reopen(&fixture);
        }
        command = finish(&fixture, request);
        assert_int_equal(command->problem.type, limited ? PROBLEM_LIMIT_EXCEEDED : PROBLEM_NONE);
        assert_int_equal(command->write.rolled_back, !limited);
        count = WRITE_ATOMIC_RESULT_BYTES_MAX / (command->write.result_bytes / count) + 1; /* just too many */
        command_free(command);
        end(&fixture);
    }
}

/* A command of a log of before is done in one step, as it was then. */
static void test_older_command_runs_in_one_step(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    struct command *command = atomic_write(&fixture, ITEMS, 1, false);
    command->version = COMMAND_SINCE_ATOMIC_PIECES - 1;
    command = fixture_completed_as(&fixture, give_atomic(&fixture, command));
    assert_non_null(command);
    assert_int_equal(command->write.results[ITEMS - 1].outcome, WRITE_CREATED);
    command_free(command);
    end(&fixture);
}

/* --- In a client's transaction ------------------------------------------------------------------------------------ */

static void txn(struct core_fixture *fixture, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = SLICE_LIT("t");
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 3600 * TL_SECOND;
    fixture_give(fixture, command);
    struct command *done = fixture_completed_as(fixture, fixture->last_request);
    assert_non_null(done);
    assert_int_equal(done->problem.type, PROBLEM_NONE);
    command_free(done);
}

static struct command *in_txn(struct command *command)
{
    command->owner.transaction = SLICE_LIT("t");
    return command;
}

/* Begins a transaction, which writes the document "first". */
static void begin_txn(struct core_fixture *fixture)
{
    begin(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    txn(fixture, COMMAND_TXN_BEGIN);
    struct command *command = in_txn(fixture_write_command(fixture, 1));
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "first", "{\"v\":5}");
    fixture_give(fixture, command);
    command_free(fixture_completed_as(fixture, fixture->last_request));
}

/* Commits it; all that it has written is "first". */
static void commit_first(struct core_fixture *fixture)
{
    txn(fixture, COMMAND_TXN_COMMIT);
    assert_int_equal(fixture_count(fixture, "fs"), 2);
    assert_int_equal(fixture_count(fixture, "tree"), 0);
    assert_int_equal(fixture_find(fixture, "fs", "v", 5), 1);
    assert_int_equal(fixture_find(fixture, "fs", "v", 1), 0);
    end(fixture);
}

static size_t locks_held(struct core_fixture *fixture)
{
    const struct lock_owner *owner = &txn__by_number(fixture->core, SLICE_LIT("1"))->owner.locks;
    return owner->lock_count + owner->auxiliary_count;
}

/* By what an atomic write is too much for one step; the first three are found before it asks for locks. */
enum too_much { BY_COUNT, BY_SOURCES, BY_PATHS, BY_RUN, BY_MAPPINGS, TOO_MUCH_COUNT };

static struct command *write_too_much(struct core_fixture *fixture, enum too_much by)
{
    static const size_t counts[] = {
        [BY_COUNT] = ITEMS, [BY_SOURCES] = 2, [BY_PATHS] = 10, [BY_RUN] = 18, [BY_MAPPINGS] = 4};
    struct command *command = in_txn(atomic_write(fixture, counts[by], 1, false));
    for (size_t i = 0; i < counts[by]; i++) {
        struct write_item *item = &command->write.items[i];
        if (by == BY_SOURCES)
            item->source = arena_printf(&command->arena, "{\"v\":1,\"w\":\"%6000d\"}", 1);
        if (by == BY_PATHS) {
            item->index = SLICE_LIT("tree");
            item->source = arena_printf(&command->arena, "{\"path\":\"/%zu/a/b/c/d/e/f/g/h/i/j/k/l/m/n\"}", i);
        }
        if (by == BY_MAPPINGS)
            item->source = arena_printf(&command->arena, "{\"a%zu\":1,\"b%zu\":1,\"c%zu\":1,\"d%zu\":1}", i, i, i, i);
    }
    return command;
}

/* It is refused as a whole, in a bounded step, with the remedy. What the transaction did before stays. */
static void test_too_much_in_a_transaction_is_refused(void **state)
{
    (void)state;

    for (enum too_much by = 0; by < TOO_MUCH_COUNT; by++) {
        struct core_fixture fixture;
        begin_txn(&fixture);
        size_t held = locks_held(&fixture);
        fixture_give(&fixture, write_too_much(&fixture, by));
        struct command *command = fixture_completed_as(&fixture, fixture.last_request);
        assert_non_null(command);
        assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        assert_non_null(strstr(command->problem.reason.data, "send it without [atomic]"));
        assert_int_equal(command->write.results == NULL, by == BY_COUNT);
        assert_int_equal(locks_held(&fixture) == held, by < BY_RUN);
        assert_true(core_step_work(fixture.core) < (by == BY_COUNT ? STEP_WORK / 10 : 2 * STEP_WORK));
        command_free(command);
        commit_first(&fixture);
    }
}

/* What a step can do is done in it: eight documents; and one item, however much it is. */
static void test_one_step_in_a_transaction_is_done(void **state)
{
    (void)state;

    for (int single = 0; single < 2; single++) {
        struct core_fixture fixture;
        begin_txn(&fixture);
        struct command *command = in_txn(atomic_write(&fixture, single ? 1 : 8, 1, false));
        if (single)
            command->write.items[0].source = arena_printf(&command->arena, "{\"v\":1,\"w\":\"%30000d\"}", 1);
        fixture_give(&fixture, command);
        command = fixture_completed_as(&fixture, fixture.last_request);
        assert_non_null(command);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
        command_free(command);
        txn(&fixture, COMMAND_TXN_COMMIT);
        assert_int_equal(fixture_find(&fixture, "fs", "v", 1), single ? 1 : 8);
        end(&fixture);
    }
}

/* It waits for a lock, and is too much when it continues: since it has the lock, or since its time is over. */
static void test_too_much_after_a_wait_is_refused(void **state)
{
    (void)state;

    for (int late = 0; late < 2; late++) {
        struct core_fixture fixture;
        begin_txn(&fixture);
        session(&fixture, COMMAND_SESSION_OPEN, "s");
        assert_true(lock(&fixture, "s", "3"));
        fixture_give(&fixture, in_txn(atomic_write(&fixture, 8, 1, false)));
        uint64_t request = fixture.last_request;
        assert_null(fixture_completed_as(&fixture, request));
        fixture.core->atomic_work_max = 300;
        if (late)
            fixture_give_after(&fixture, command_new(COMMAND_TICK, DIALECT_7), 61 * TL_SECOND);
        else
            unlock_all(&fixture, "s");
        struct command *command = fixture_completed_as(&fixture, request);
        if (command == NULL)
            command = finish(&fixture, request);
        assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
        assert_non_null(strstr(command->problem.reason.data, "send it without [atomic]"));
        command_free(command);
        session(&fixture, COMMAND_SESSION_CLOSE, "s");
        commit_first(&fixture);
    }
}

/*
 * A command of a log of before has the effect that it had then: it is done, or as the transaction's first write
 * refused, with the reason of scripts.
 */
static void test_older_command_in_a_transaction_is_as_before(void **state)
{
    (void)state;

    for (int first = 0; first < 2; first++) {
        struct core_fixture fixture;
        if (first) {
            begin(&fixture);
            txn(&fixture, COMMAND_TXN_BEGIN);
        } else {
            begin_txn(&fixture);
        }
        struct command *command = in_txn(atomic_write(&fixture, ITEMS, 1, false));
        command->version = COMMAND_SINCE_ATOMIC_STEP - 1;
        fixture_give(&fixture, command);
        command = fixture_completed_as(&fixture, fixture.last_request);
        assert_non_null(command);
        assert_int_equal(command->problem.type, first ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        if (first)
            assert_non_null(strstr(command->problem.reason.data, "the scripts of an atomic request"));
        command_free(command);
        txn(&fixture, COMMAND_TXN_COMMIT);
        assert_int_equal(fixture_find(&fixture, "fs", "v", 1), first ? 0 : ITEMS);
        end(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atomic_write_runs_in_pieces),
        cmocka_unit_test(test_only_commit_is_undivided),
        cmocka_unit_test(test_piece_sees_pieces_before),
        cmocka_unit_test(test_script_in_pieces_is_not_postponed),
        cmocka_unit_test(test_failed_item_rolls_back_all_pieces),
        cmocka_unit_test(test_end_between_pieces_rolls_back),
        cmocka_unit_test(test_blocked_piece_waits_without_locks),
        cmocka_unit_test(test_blocked_piece_times_out),
        cmocka_unit_test(test_opposite_orders_are_no_deadlock),
        cmocka_unit_test(test_attempts_are_bounded),
        cmocka_unit_test(test_victim_with_locks_is_rolled_back),
        cmocka_unit_test(test_older_command_has_no_last_attempt),
        cmocka_unit_test(test_end_of_last_attempt_rolls_back),
        cmocka_unit_test(test_repetition_of_last_attempt_runs_once),
        cmocka_unit_test(test_transaction_of_pieces_is_out_of_reach),
        cmocka_unit_test(test_index_is_deleted_after_pieces),
        cmocka_unit_test(test_repetition_of_pieces_runs_once),
        cmocka_unit_test(test_limits_of_a_transaction_refuse_pieces),
        cmocka_unit_test(test_results_of_pieces_are_limited),
        cmocka_unit_test(test_older_command_runs_in_one_step),
        cmocka_unit_test(test_too_much_in_a_transaction_is_refused),
        cmocka_unit_test(test_one_step_in_a_transaction_is_done),
        cmocka_unit_test(test_too_much_after_a_wait_is_refused),
        cmocka_unit_test(test_older_command_in_a_transaction_is_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
