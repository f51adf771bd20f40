/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal over clocks that the test sets: what is told of a timestamp is told once, whatever the clock does and however the process ends;
 * what runs out does so by the clock that nobody sets, and after everybody was heard.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/cmdlog_fixture.h"
#include "lib/unit.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "journal/journal.h"
#include "store/store.h"

#define HOUR (3600 * TL_SECOND)
#define NOW (UINT64_C(1700000000) * TL_SECOND)

/* A server's life over a store and a log that outlive it. */
struct life {
    struct store *store;
    struct cmdlog_fixture kept;
    struct core *core;
    struct journal *journal;
    struct journal_clocks clocks;
    _Atomic uint64_t wall, boot;
    _Atomic unsigned listened;
};

static uint64_t read_wall(void *context)
{
    struct life *life = context;
    return atomic_load(&life->wall);
}

static uint64_t read_boot(void *context)
{
    struct life *life = context;
    return atomic_load(&life->boot);
}

static void begin_after(struct life *life, bool machine_lost)
{
    life->clocks = (struct journal_clocks){read_wall, read_boot, life};
    struct journal_options options = {.clocks = &life->clocks, .host_crashed = machine_lost};
    life->core = cmdlog_fixture_begin(&life->kept, life->store, &options);
    assert_int_equal(journal_open_local(life->core, life->store, &options, &life->journal), 0);
}

static void begin(struct life *life)
{
    begin_after(life, false);
}

static void open_life(struct life *life)
{
    *life = (struct life){.store = store_open_mem(), .kept = {0}};
    atomic_store(&life->wall, NOW);
    atomic_store(&life->boot, HOUR);
    begin(life);
}

static void end(struct life *life)
{
    journal_close(life->journal);
    core_close(life->core);
    cmdlog_fixture_end(&life->kept);
}

static void close_life(struct life *life)
{
    end(life);
    cmdlog_fixture_free(&life->kept);
    store_close(life->store);
}

/* The disk, which hears nothing any more of a process that is dead. */
static _Atomic bool dead;
static _Atomic unsigned syncs;

int __real_cmdlog_sync(struct cmdlog *log, cmdlog_position position);
int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position);
int __real_cmdlog_seal(struct cmdlog *log);
int __wrap_cmdlog_seal(struct cmdlog *log);
int __real_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int __wrap_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int __real_cmdlog_trim(struct cmdlog *log, cmdlog_position before);
int __wrap_cmdlog_trim(struct cmdlog *log, cmdlog_position before);
int __real_store_checkpoint(struct store *store, struct slice record);
int __wrap_store_checkpoint(struct store *store, struct slice record);

int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position)
{
    atomic_fetch_add(&syncs, 1);
    return atomic_load(&dead) ? 0 : __real_cmdlog_sync(log, position);
}

int __wrap_cmdlog_seal(struct cmdlog *log)
{
    return atomic_load(&dead) ? 0 : __real_cmdlog_seal(log);
}

int __wrap_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint)
{
    return atomic_load(&dead) ? 0 : __real_cmdlog_put_checkpoint(log, checkpoint);
}

int __wrap_cmdlog_trim(struct cmdlog *log, cmdlog_position before)
{
    return atomic_load(&dead) ? 0 : __real_cmdlog_trim(log, before);
}

int __wrap_store_checkpoint(struct store *store, struct slice record)
{
    return atomic_load(&dead) ? 0 : __real_store_checkpoint(store, record);
}

/* What was durable when the machine went down is there again. What the journal does from then on, to end in order, is lost. */
static void cut_power(struct life *life)
{
    atomic_store(&dead, true);
    end(life);
    (void)store_mem_crash(life->store, 0);
    cmdlog_medium_crash(life->kept.medium, 0);
    atomic_store(&dead, false);
    begin_after(life, true);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

struct asked {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    tl_ts ts;
    tl_ts token;
    int64_t version; /* of the only item of a write */
    enum problem_type problem;
};

static void done(struct command *command)
{
    struct asked *asked = command->context;
    pthread_mutex_lock(&asked->lock);
    asked->ts = command->ts;
    asked->problem = command->problem.type;
    asked->token = command->type == COMMAND_LOCK ? command->lock.fencing_token : 0;
    asked->version = command->type == COMMAND_WRITE ? command->write.results->version : 0;
    asked->done = true;
    pthread_cond_broadcast(&asked->changed);
    pthread_mutex_unlock(&asked->lock);
    command_free(command);
}

static void submit(struct life *life, struct command *command, struct asked *asked)
{
    *asked = (struct asked){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    command->context = asked;
    command->on_done = done;
    journal_submit(life->journal, command, false);
}

static bool is_done_by(struct asked *asked, uint64_t until)
{
    pthread_mutex_lock(&asked->lock);
    while (!asked->done && clock_wait(&asked->changed, &asked->lock, until))
        continue;
    bool is = asked->done;
    pthread_mutex_unlock(&asked->lock);
    return is;
}

static void wait_done(struct asked *asked)
{
    while (!is_done_by(asked, UINT64_MAX))
        continue;
}

static struct command *session_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 10 * TL_SECOND;
    return command;
}

static struct asked ask(struct life *life, struct command *command)
{
    struct asked asked;
    submit(life, command, &asked);
    wait_done(&asked);
    return asked;
}

static bool lives(struct life *life, const char *session)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_SESSIONS;
    command->status.id = slice_from(session);
    return ask(life, command).problem == PROBLEM_NONE;
}

static struct command *lock_command(const char *session, const char *id, uint64_t wait_us)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    *target = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->owner.session = slice_from(session);
    command->lock.targets = target;
    command->lock.target_count = 1;
    command->owner.timeout_us = wait_us;
    return command;
}

/* A step that does nothing: it uses a timestamp and writes nothing. */
static tl_ts look(struct life *life)
{
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.request = UINT64_MAX;
    return ask(life, command).ts;
}

static const int64_t steps[] = {
    10 * (int64_t)TL_SECOND, -10 * (int64_t)TL_SECOND, (int64_t)HOUR,
    -(int64_t)HOUR,          8760 * (int64_t)HOUR,     -8760 * (int64_t)HOUR,
};

/* Time passes, by both clocks, in steps that a server at work would see. */
static void pass(struct life *life, uint64_t us)
{
    for (uint64_t left = us; left > 0;) {
        uint64_t step = left < 200 * TL_MS ? left : 200 * TL_MS;
        atomic_fetch_add(&life->wall, step);
        atomic_fetch_add(&life->boot, step);
        (void)look(life);
        left -= step;
    }
}

/* The same in great steps, each of which is seen by some upkeep. */
static void pass_by_minutes(struct life *life, uint64_t us)
{
    for (uint64_t left = us; left > 0; left -= 60 * TL_SECOND) {
        atomic_fetch_add(&life->wall, 58 * TL_SECOND);
        atomic_fetch_add(&life->boot, 58 * TL_SECOND);
        pass(life, 2 * TL_SECOND);
    }
}

static void until_gone(struct life *life, const char *session)
{
    while (lives(life, session))
        usleep(5000);
}

/* --- What is kept for a time ---------------------------------------------------------------------------------------- */

/* Returns: the version that comes of it. */
static int64_t write_one(struct life *life, enum write_op op)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.items[0] = (struct write_item){.op = op,
                                                  .index = SLICE_LIT("fs"),
                                                  .id = SLICE_LIT("1"),
                                                  .source = SLICE_LIT("{}"),
                                                  .version = VERSION_ANY,
                                                  .if_seq_no = SEQ_NO_ANY};
    command->write.item_count = 1;
    return ask(life, command).version;
}

static bool outcome_told(struct life *life)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("transaction");
    return ask(life, command).problem == PROBLEM_NONE;
}

/* Whether anything marked so is to be removed still. */
static bool any_marked(struct life *life, const char *from, const char *to)
{
    struct store_iter *iter = store_iter_new(life->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(from), slice_from(to));
    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    store_iter_free(iter);
    return any;
}

static void until_removed(struct life *life, const char *from, const char *to)
{
    while (any_marked(life, from, to)) {
        pass(life, 100 * TL_MS);
        usleep(5000);
    }
}

/*
 * However the wall clock is set, the version of a deleted document counts for a minute and the outcome of a transaction is told for an hour,
 * as time passes.
 */
static void test_minute_and_hour_are_what_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct life life;
        open_life(&life);
        struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        command->txn.id = SLICE_LIT("transaction");
        command->txn.idle_us = TL_SECOND;
        assert_int_equal(ask(&life, command).problem, PROBLEM_NONE);
        assert_true(outcome_told(&life));
        pass(&life, 5 * TL_SECOND); /* some upkeep */
        assert_int_equal(write_one(&life, WRITE_INDEX), 1);
        assert_int_equal(write_one(&life, WRITE_DELETE), 2);
        atomic_fetch_add(&life.wall, (uint64_t)steps[i]);
        pass(&life, 50 * TL_SECOND);
        assert_int_equal(write_one(&life, WRITE_INDEX), 3);
        assert_int_equal(write_one(&life, WRITE_DELETE), 4);
        if (i % 2 == 0)
            cut_power(&life);
        pass(&life, CORE_TOMBSTONE_US + 5 * TL_SECOND);
        until_removed(&life, "g", "h");
        assert_int_equal(write_one(&life, WRITE_INDEX), 1);
        assert_true(outcome_told(&life));
        pass_by_minutes(&life, CORE_OUTCOME_US);
        until_removed(&life, "X", "Y");
        assert_false(outcome_told(&life));
        close_life(&life);
    }
}

/* --- Query transactions -------------------------------------------------------------------------------------------- */

/* A read, as requests make it: where the entry is not fresh the core is asked. Returns: whether the transaction is open. */
static bool read_once(struct life *life, bool *ret_fresh)
{
    tl_ts ts;
    struct query_txn *query = journal_query_txn_use(life->journal, SLICE_LIT("transaction"));
    if (query == NULL)
        return false;
    *ret_fresh = journal_query_txn_is_fresh(life->journal, query, &ts);
    journal_query_txn_release(life->journal, query);
    if (*ret_fresh)
        return true;
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    command->owner.transaction = SLICE_LIT("transaction");
    return ask(life, command).problem == PROBLEM_NONE;
}

/* Every read counts, also one of which the core does not hear: idle time begins with the last, and is never less than was said. */
static void test_every_read_counts(void **state)
{
    static const uint64_t first_read[] = {1,           100 * TL_MS, 249 * TL_MS, 251 * TL_MS,
                                          400 * TL_MS, 900 * TL_MS, 3900 * TL_MS};
    (void)state;
    for (size_t i = 0; i < sizeof first_read / sizeof *first_read; i++) {
        struct life life;
        bool fresh;
        open_life(&life);
        struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        command->txn.id = SLICE_LIT("transaction");
        command->txn.mode = TXN_QUERY;
        command->txn.idle_us = 4 * TL_SECOND;
        assert_int_equal(ask(&life, command).problem, PROBLEM_NONE);
        pass(&life, first_read[i]);
        assert_true(read_once(&life, &fresh));
        assert_int_equal(fresh, first_read[i] < 250 * TL_MS);
        pass(&life, 3900 * TL_MS);
        assert_true(read_once(&life, &fresh));
        assert_false(fresh);
        pass(&life, 4500 * TL_MS);
        assert_false(read_once(&life, &fresh));
        close_life(&life);
    }
}

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

/* Reads that write nothing, and locks: neither repeats nor sinks when the power is cut and the clock was set meanwhile. */
static void test_nothing_is_given_twice(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    assert_int_equal(ask(&life, session_command(COMMAND_SESSION_OPEN, "holder")).problem, PROBLEM_NONE);
    tl_ts last = 0;
    for (size_t round = 0; round < 3 * sizeof steps / sizeof *steps; round++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", round);
        assert_int_equal(ask(&life, session_command(COMMAND_SESSION_KEEPALIVE, "holder")).problem, PROBLEM_NONE);
        struct asked lock = ask(&life, lock_command("holder", id, 0));
        assert_int_equal(lock.problem, PROBLEM_NONE);
        assert_true(lock.token > last);
        last = lock.ts > lock.token ? lock.ts : lock.token;
        for (int i = 0; i < 20; i++) {
            tl_ts ts = look(&life);
            assert_true(ts > last);
            assert_true(journal_stable(life.journal) >= last);
            last = ts;
            atomic_fetch_add(&life.wall, 100 * TL_MS);
            atomic_fetch_add(&life.boot, 100 * TL_MS);
        }
        tl_ts stable = journal_stable(life.journal);
        last = stable > last ? stable : last;
        atomic_fetch_add(&life.wall, (uint64_t)steps[round % (sizeof steps / sizeof *steps)]);
        switch (round % 3) {
        case 0: cut_power(&life); break;
        case 1: end(&life), begin(&life); break;
        default: break;
        }
        assert_true(journal_stable(life.journal) > last || round % 3 == 2);
    }
    close_life(&life);
}

/* The next start is not far ahead of the clock: nowhere near after an end in order, seconds after a crash. */
static void test_a_start_does_not_run_ahead(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    assert_true(look(&life) < NOW + TL_SECOND);
    end(&life);
    begin(&life);
    assert_true(look(&life) < NOW + TL_SECOND);
    cut_power(&life);
    assert_true(look(&life) < NOW + 10 * TL_SECOND);
    close_life(&life);
}

/* An idle server and a busy one put down a mark every few seconds, not one a command. */
static void test_marks_are_few(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    unsigned before = atomic_load(&syncs);
    for (int i = 0; i < 2000; i++) {
        atomic_fetch_add(&life.wall, 10 * TL_MS);
        atomic_fetch_add(&life.boot, 10 * TL_MS);
        (void)look(&life);
    }
    assert_true(atomic_load(&syncs) - before <= 20); /* in twenty seconds */
    close_life(&life);
}

/* --- Durations ---------------------------------------------------------------------------------------------------- */

static void test_leases_do_not_follow_the_clock_that_is_set(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(ask(&life, session_command(COMMAND_SESSION_OPEN, "s")).problem, PROBLEM_NONE);
        atomic_fetch_add(&life.wall, (uint64_t)steps[i]);
        pass(&life, 9 * TL_SECOND);
        assert_true(lives(&life, "s"));
        pass(&life, 2 * TL_SECOND);
        until_gone(&life, "s");
    }
    close_life(&life);
}

static void test_waits_do_not_either(void **state)
{
    struct life life;
    struct asked waiter;
    (void)state;
    open_life(&life);
    (void)ask(&life, session_command(COMMAND_SESSION_OPEN, "a"));
    (void)ask(&life, session_command(COMMAND_SESSION_OPEN, "b"));
    assert_int_equal(ask(&life, lock_command("a", "1", 0)).problem, PROBLEM_NONE);
    for (size_t i = 0; i < 2; i++) {
        submit(&life, lock_command("b", "1", 3 * TL_SECOND), &waiter);
        atomic_fetch_add(&life.wall, (uint64_t)(i == 0 ? (int64_t)HOUR : -(int64_t)HOUR));
        pass(&life, 2 * TL_SECOND);
        assert_false(is_done_by(&waiter, clock_boot_us() + 50 * TL_MS));
        pass(&life, 2 * TL_SECOND);
        wait_done(&waiter);
        assert_int_equal(waiter.problem, PROBLEM_LOCK_WAIT_TIMEOUT);
    }
    close_life(&life);
}

/* The process stood still for a minute: nobody was there to hear a keepalive, so leases are not over. */
static void test_a_gap_does_not_count(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    (void)ask(&life, session_command(COMMAND_SESSION_OPEN, "s"));
    atomic_fetch_add(&life.wall, 60 * TL_SECOND);
    atomic_fetch_add(&life.boot, 60 * TL_SECOND);
    assert_true(lives(&life, "s"));
    usleep(600000); /* the workers have looked */
    assert_true(lives(&life, "s"));
    pass(&life, 11 * TL_SECOND);
    until_gone(&life, "s");
    close_life(&life);
}

static void listen_now(void *context)
{
    struct life *life = context;
    atomic_fetch_add(&life->listened, 1);
}

/* Who is still to be heard does not lose his lease; what he says in time counts. */
static void test_leases_end_when_all_were_heard(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    journal_set_input_barrier(life.journal, &(struct journal_input_barrier){.start = listen_now, .context = &life});
    (void)ask(&life, session_command(COMMAND_SESSION_OPEN, "heard"));
    (void)ask(&life, session_command(COMMAND_SESSION_OPEN, "silent"));
    pass(&life, 12 * TL_SECOND);
    while (atomic_load(&life.listened) == 0)
        usleep(5000);
    assert_true(lives(&life, "heard"));
    assert_true(lives(&life, "silent"));
    assert_int_equal(ask(&life, session_command(COMMAND_SESSION_KEEPALIVE, "heard")).problem, PROBLEM_NONE);
    journal_barrier_passed(life.journal);
    until_gone(&life, "silent");
    assert_true(lives(&life, "heard"));
    assert_int_equal(atomic_load(&life.listened), 1);
    close_life(&life);
}

/* The past stays readable for as long as it is kept, though the clock was set forward by a year. */
static void test_history_is_kept_by_the_other_clock(void **state)
{
    struct life life;
    (void)state;
    open_life(&life);
    pass(&life, 5 * TL_SECOND);
    tl_ts then = look(&life);
    atomic_fetch_add(&life.wall, 8760 * HOUR);
    pass(&life, 5 * TL_SECOND);
    assert_true(look(&life) > then + 8000 * HOUR);
    assert_true(journal_oldest(life.journal) <= then);
    close_life(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_read_counts),
        cmocka_unit_test(test_nothing_is_given_twice),
        cmocka_unit_test(test_a_start_does_not_run_ahead),
        cmocka_unit_test(test_marks_are_few),
        cmocka_unit_test(test_leases_do_not_follow_the_clock_that_is_set),
        cmocka_unit_test(test_waits_do_not_either),
        cmocka_unit_test(test_a_gap_does_not_count),
        cmocka_unit_test(test_leases_end_when_all_were_heard),
        cmocka_unit_test(test_history_is_kept_by_the_other_clock),
        cmocka_unit_test(test_minute_and_hour_are_what_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
