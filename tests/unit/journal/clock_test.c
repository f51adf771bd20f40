/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal with clocks that the test sets.
 *
 * Goal: a timestamp is issued at most once, whatever the wall clock does and however the process
 * ends. Timeouts and expiries follow the monotonic clock, and leases expire only after the input
 * barrier.
 * Method: a server runs repeatedly over a store and a log that survive it, while the test steps the
 * wall clock, stalls the process and cuts the power.
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

/* A server with a store and a log that survive its restarts. */
struct server {
    struct store *store;
    struct cmdlog_fixture kept;
    struct core *core;
    struct journal *journal;
    struct journal_clocks clocks;
    _Atomic uint64_t wall, boot;
    _Atomic unsigned barriers;
};

static uint64_t read_wall(void *context)
{
    struct server *server = context;
    return atomic_load(&server->wall);
}

static uint64_t read_boot(void *context)
{
    struct server *server = context;
    return atomic_load(&server->boot);
}

static void begin_after(struct server *server, bool machine_lost)
{
    server->clocks = (struct journal_clocks){read_wall, read_boot, server};
    struct journal_options options = {.clocks = &server->clocks, .host_crashed = machine_lost};
    server->core = cmdlog_fixture_begin(&server->kept, server->store, &options);
    assert_int_equal(journal_open_local(server->core, server->store, &options, &server->journal), 0);
}

static void begin(struct server *server)
{
    begin_after(server, false);
}

static void open_server(struct server *server)
{
    *server = (struct server){.store = store_open_mem(), .kept = {0}};
    atomic_store(&server->wall, NOW);
    atomic_store(&server->boot, HOUR);
    begin(server);
}

static void end(struct server *server)
{
    journal_close(server->journal);
    core_close(server->core);
    cmdlog_fixture_end(&server->kept);
}

static void close_server(struct server *server)
{
    end(server);
    cmdlog_fixture_free(&server->kept);
    store_close(server->store);
}

/* The disk ignores the writes of a process that the test has declared dead. */
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

/*
 * Simulates a power cut: the durable state remains, and writes of the journal's clean shutdown are
 * lost.
 */
static void cut_power(struct server *server)
{
    atomic_store(&dead, true);
    end(server);
    (void)store_mem_crash(server->store, 0);
    cmdlog_medium_crash(server->kept.medium, 0);
    atomic_store(&dead, false);
    begin_after(server, true);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

struct clock_request {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    tl_ts ts;
    tl_ts token;
    int64_t version; /* version of the only item of a write */
    enum problem_type problem;
};

static void done(struct command *command)
{
    struct clock_request *request = command->context;
    pthread_mutex_lock(&request->lock);
    request->ts = command->ts;
    request->problem = command->problem.type;
    request->token = command->type == COMMAND_LOCK ? command->lock.fencing_token : 0;
    request->version = command->type == COMMAND_WRITE ? command->write.results->version : 0;
    request->done = true;
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
    command_free(command);
}

static void submit(struct server *server, struct command *command, struct clock_request *request)
{
    *request = (struct clock_request){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    command->context = request;
    command->on_done = done;
    journal_submit(server->journal, command, false);
}

static bool is_done_by(struct clock_request *request, uint64_t until)
{
    pthread_mutex_lock(&request->lock);
    while (!request->done && clock_wait(&request->changed, &request->lock, until))
        continue;
    bool is = request->done;
    pthread_mutex_unlock(&request->lock);
    return is;
}

static void wait_done(struct clock_request *request)
{
    while (!is_done_by(request, UINT64_MAX))
        continue;
}

static struct command *session_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 10 * TL_SECOND;
    return command;
}

static struct clock_request ask(struct server *server, struct command *command)
{
    struct clock_request request;
    submit(server, command, &request);
    wait_done(&request);
    return request;
}

static bool session_is_open(struct server *server, const char *session)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_SESSIONS;
    command->status.id = slice_from(session);
    return ask(server, command).problem == PROBLEM_NONE;
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

/* Applies a step that writes nothing but uses a timestamp. Returns: the timestamp. */
static tl_ts inspect(struct server *server)
{
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.request = UINT64_MAX;
    return ask(server, command).ts;
}

static const int64_t steps[] = {
    10 * (int64_t)TL_SECOND, -10 * (int64_t)TL_SECOND, (int64_t)HOUR,
    -(int64_t)HOUR,          8760 * (int64_t)HOUR,     -8760 * (int64_t)HOUR,
};

/* Advances both clocks in steps short enough not to be stalls. */
static void pass(struct server *server, uint64_t us)
{
    for (uint64_t left = us; left > 0;) {
        uint64_t step = left < 200 * TL_MS ? left : 200 * TL_MS;
        atomic_fetch_add(&server->wall, step);
        atomic_fetch_add(&server->boot, step);
        (void)inspect(server);
        left -= step;
    }
}

/* As pass(), in steps of a minute with maintenance after each. */
static void pass_by_minutes(struct server *server, uint64_t us)
{
    for (uint64_t left = us; left > 0; left -= 60 * TL_SECOND) {
        atomic_fetch_add(&server->wall, 58 * TL_SECOND);
        atomic_fetch_add(&server->boot, 58 * TL_SECOND);
        pass(server, 2 * TL_SECOND);
    }
}

static void await_session_end(struct server *server, const char *session)
{
    while (session_is_open(server, session))
        usleep(5000);
}

/* --- Retention ---------------------------------------------------------------------------------------------------- */

/* Writes the document. Returns: its version afterwards. */
static int64_t write_one(struct server *server, enum write_op op)
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
    return ask(server, command).version;
}

static bool outcome_is_stored(struct server *server)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("transaction");
    return ask(server, command).problem == PROBLEM_NONE;
}

/* Returns: whether a purge key is left within [from, to). */
static bool has_purge_key(struct server *server, const char *from, const char *to)
{
    struct store_iter *iter = store_iter_new(server->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(from), slice_from(to));
    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    store_iter_free(iter);
    return any;
}

static void await_purge(struct server *server, const char *from, const char *to)
{
    while (has_purge_key(server, from, to)) {
        pass(server, 100 * TL_MS);
        usleep(5000);
    }
}

/*
 * The version of a deleted document is kept for a minute, and the outcome of a transaction for an
 * hour, of elapsed time, independent of steps of the wall clock.
 */
static void test_retention_ignores_clock_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct server server;
        open_server(&server);
        struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        command->txn.id = SLICE_LIT("transaction");
        command->txn.idle_us = TL_SECOND;
        assert_int_equal(ask(&server, command).problem, PROBLEM_NONE);
        assert_true(outcome_is_stored(&server));
        pass(&server, 5 * TL_SECOND); /* maintenance runs */
        assert_int_equal(write_one(&server, WRITE_INDEX), 1);
        assert_int_equal(write_one(&server, WRITE_DELETE), 2);
        atomic_fetch_add(&server.wall, (uint64_t)steps[i]);
        pass(&server, 50 * TL_SECOND);
        assert_int_equal(write_one(&server, WRITE_INDEX), 3);
        assert_int_equal(write_one(&server, WRITE_DELETE), 4);
        if (i % 2 == 0)
            cut_power(&server);
        pass(&server, CORE_TOMBSTONE_US + 5 * TL_SECOND);
        await_purge(&server, "g", "h");
        assert_int_equal(write_one(&server, WRITE_INDEX), 1);
        assert_true(outcome_is_stored(&server));
        pass_by_minutes(&server, CORE_OUTCOME_US);
        await_purge(&server, "X", "Y");
        assert_false(outcome_is_stored(&server));
        close_server(&server);
    }
}

/* --- Query transactions ------------------------------------------------------------------------------------------- */

static void begin_query(struct server *server)
{
    struct query_txn_terms terms = {.id = SLICE_LIT("transaction"), .timeout_us = 4 * TL_SECOND};
    struct arena arena = ARENA_INIT;
    struct query_txn_info info;
    struct problem problem = {0};
    assert_int_equal(journal_query_txn_begin(server->journal, &terms, &arena, &info, &problem), 0);
    assert_true(info.read_ts <= journal_stable(server->journal));
    arena_deinit(&arena);
}

/* A host has as many open as the limit of transactions says, whatever the number of others. */
static void test_open_query_txns_are_limited(void **state)
{
    struct server server;
    struct arena arena = ARENA_INIT;
    struct query_txn_info info;
    struct problem problem = {0};
    (void)state;
    open_server(&server);
    size_t most = core_limits(server.core)->transactions_max;
    for (size_t i = 0; i <= most; i++) {
        struct query_txn_terms terms = {.id = arena_printf(&arena, "%zu", i), .timeout_us = TL_SECOND};
        assert_int_equal(journal_query_txn_begin(server.journal, &terms, &arena, &info, &problem),
                         i < most ? 0 : JOURNAL_REFUSED);
    }
    assert_int_equal(problem.type, PROBLEM_LIMIT_EXCEEDED);
    arena_deinit(&arena);
    close_server(&server);
}

static bool query_is_open(struct server *server)
{
    struct arena arena = ARENA_INIT;
    struct query_txn_info info;
    bool open = journal_query_txn_find(server->journal, SLICE_LIT("transaction"), &arena, &info) == QUERY_TXN_OPEN;
    arena_deinit(&arena);
    return open;
}

static void read_once(struct server *server)
{
    struct query_txn *query = journal_query_txn_use(server->journal, SLICE_LIT("transaction"));
    assert_non_null(query);
    journal_query_txn_release(server->journal, query);
}

static void await_query_end(struct server *server)
{
    while (query_is_open(server)) {
        pass(server, 100 * TL_MS);
        usleep(5000);
    }
}

/* The idle time starts with the last read, whenever that was, and is never shorter than its limit. */
static void test_query_txn_is_idle_after_its_last_read(void **state)
{
    static const uint64_t first_read[] = {1,           100 * TL_MS, 249 * TL_MS, 251 * TL_MS,
                                          400 * TL_MS, 900 * TL_MS, 3900 * TL_MS};
    (void)state;
    for (size_t i = 0; i < sizeof first_read / sizeof *first_read; i++) {
        struct server server;
        open_server(&server);
        begin_query(&server);
        pass(&server, first_read[i]);
        read_once(&server);
        pass(&server, 3990 * TL_MS);
        assert_true(query_is_open(&server));
        read_once(&server);
        pass(&server, 3990 * TL_MS);
        assert_true(query_is_open(&server));
        await_query_end(&server);
        close_server(&server);
    }
}

/* A read that takes long is a use as long as it takes. */
static void test_query_txn_is_not_idle_during_a_read(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    begin_query(&server);
    struct query_txn *query = journal_query_txn_use(server.journal, SLICE_LIT("transaction"));
    pass(&server, 20 * TL_SECOND);
    assert_true(query_is_open(&server));
    journal_query_txn_release(server.journal, query);
    await_query_end(&server);
    close_server(&server);
}

static void start_barrier(void *context);

/*
 * Time in which the process was stalled does not count, and input that was sent before the end of
 * the idle time is read first.
 */
static void test_query_txn_ends_after_input_barrier(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    begin_query(&server);
    atomic_fetch_add(&server.wall, 60 * TL_SECOND);
    atomic_fetch_add(&server.boot, 60 * TL_SECOND);
    pass(&server, TL_SECOND);
    assert_true(query_is_open(&server));
    journal_set_input_barrier(server.journal,
                              &(struct journal_input_barrier){.start = start_barrier, .context = &server});
    while (atomic_load(&server.barriers) == 0) {
        pass(&server, 100 * TL_MS);
        usleep(5000);
    }
    pass(&server, 20 * TL_SECOND);
    assert_true(query_is_open(&server));
    read_once(&server); /* it was sent before, and is read late */
    journal_barrier_passed(server.journal);
    pass(&server, 2 * TL_SECOND);
    assert_true(query_is_open(&server));
    while (query_is_open(&server)) {
        journal_barrier_passed(server.journal);
        pass(&server, 100 * TL_MS);
        usleep(5000);
    }
    close_server(&server);
}

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

/*
 * Timestamps of reads and of locks neither repeat nor decrease across power cuts and clock steps.
 */
static void test_timestamps_increase_across_power_cuts(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    assert_int_equal(ask(&server, session_command(COMMAND_SESSION_OPEN, "holder")).problem, PROBLEM_NONE);
    tl_ts last = 0;
    for (size_t round = 0; round < 3 * sizeof steps / sizeof *steps; round++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", round);
        assert_int_equal(ask(&server, session_command(COMMAND_SESSION_KEEPALIVE, "holder")).problem, PROBLEM_NONE);
        struct clock_request lock = ask(&server, lock_command("holder", id, 0));
        assert_int_equal(lock.problem, PROBLEM_NONE);
        assert_true(lock.token > last);
        last = lock.ts > lock.token ? lock.ts : lock.token;
        for (int i = 0; i < 20; i++) {
            tl_ts ts = inspect(&server);
            assert_true(ts > last);
            assert_true(journal_stable(server.journal) >= last);
            last = ts;
            atomic_fetch_add(&server.wall, 100 * TL_MS);
            atomic_fetch_add(&server.boot, 100 * TL_MS);
        }
        tl_ts stable = journal_stable(server.journal);
        last = stable > last ? stable : last;
        atomic_fetch_add(&server.wall, (uint64_t)steps[round % (sizeof steps / sizeof *steps)]);
        switch (round % 3) {
        case 0: cut_power(&server); break;
        case 1: end(&server), begin(&server); break;
        default: break;
        }
        assert_true(journal_stable(server.journal) > last || round % 3 == 2);
    }
    close_server(&server);
}

/*
 * The first timestamp of the next start is close to the clock: right after it following a clean
 * shutdown, within seconds following a crash.
 */
static void test_restart_ceiling_is_close_to_clock(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    assert_true(inspect(&server) < NOW + TL_SECOND);
    end(&server);
    begin(&server);
    assert_true(inspect(&server) < NOW + TL_SECOND);
    cut_power(&server);
    assert_true(inspect(&server) < NOW + 10 * TL_SECOND);
    close_server(&server);
}

/* An idle and a busy server both raise the ceiling every few seconds, not per command. */
static void test_ceiling_is_raised_every_few_seconds(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    unsigned before = atomic_load(&syncs);
    for (int i = 0; i < 2000; i++) {
        atomic_fetch_add(&server.wall, 10 * TL_MS);
        atomic_fetch_add(&server.boot, 10 * TL_MS);
        (void)inspect(&server);
    }
    assert_true(atomic_load(&syncs) - before <= 20); /* over twenty seconds */
    close_server(&server);
}

/* --- Durations ---------------------------------------------------------------------------------------------------- */

static void test_leases_ignore_clock_steps(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(ask(&server, session_command(COMMAND_SESSION_OPEN, "s")).problem, PROBLEM_NONE);
        atomic_fetch_add(&server.wall, (uint64_t)steps[i]);
        pass(&server, 9 * TL_SECOND);
        assert_true(session_is_open(&server, "s"));
        pass(&server, 2 * TL_SECOND);
        await_session_end(&server, "s");
    }
    close_server(&server);
}

static void test_lock_waits_ignore_clock_steps(void **state)
{
    struct server server;
    struct clock_request waiter;
    (void)state;
    open_server(&server);
    (void)ask(&server, session_command(COMMAND_SESSION_OPEN, "a"));
    (void)ask(&server, session_command(COMMAND_SESSION_OPEN, "b"));
    assert_int_equal(ask(&server, lock_command("a", "1", 0)).problem, PROBLEM_NONE);
    for (size_t i = 0; i < 2; i++) {
        submit(&server, lock_command("b", "1", 3 * TL_SECOND), &waiter);
        atomic_fetch_add(&server.wall, (uint64_t)(i == 0 ? (int64_t)HOUR : -(int64_t)HOUR));
        pass(&server, 2 * TL_SECOND);
        assert_false(is_done_by(&waiter, clock_boot_us() + 50 * TL_MS));
        pass(&server, 2 * TL_SECOND);
        wait_done(&waiter);
        assert_int_equal(waiter.problem, PROBLEM_LOCK_WAIT_TIMEOUT);
    }
    close_server(&server);
}

/*
 * The process was stalled for a minute and could not receive keepalives, so leases have not
 * expired.
 */
static void test_stall_does_not_expire_leases(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    (void)ask(&server, session_command(COMMAND_SESSION_OPEN, "s"));
    atomic_fetch_add(&server.wall, 60 * TL_SECOND);
    atomic_fetch_add(&server.boot, 60 * TL_SECOND);
    assert_true(session_is_open(&server, "s"));
    usleep(600000); /* the workers have read the clock */
    assert_true(session_is_open(&server, "s"));
    pass(&server, 11 * TL_SECOND);
    await_session_end(&server, "s");
    close_server(&server);
}

static void start_barrier(void *context)
{
    struct server *server = context;
    atomic_fetch_add(&server->barriers, 1);
}

/*
 * A lease does not expire before the input barrier has been passed; a keepalive submitted before
 * keeps it.
 */
static void test_leases_expire_after_input_barrier(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    journal_set_input_barrier(server.journal,
                              &(struct journal_input_barrier){.start = start_barrier, .context = &server});
    (void)ask(&server, session_command(COMMAND_SESSION_OPEN, "renewed"));
    (void)ask(&server, session_command(COMMAND_SESSION_OPEN, "silent"));
    pass(&server, 12 * TL_SECOND);
    while (atomic_load(&server.barriers) == 0)
        usleep(5000);
    assert_true(session_is_open(&server, "renewed"));
    assert_true(session_is_open(&server, "silent"));
    assert_int_equal(ask(&server, session_command(COMMAND_SESSION_KEEPALIVE, "renewed")).problem, PROBLEM_NONE);
    journal_barrier_passed(server.journal);
    await_session_end(&server, "silent");
    assert_true(session_is_open(&server, "renewed"));
    assert_int_equal(atomic_load(&server.barriers), 1);
    close_server(&server);
}

/* History stays readable for its full time, although the wall clock was set forward by a year. */
static void test_history_limit_ignores_clock_steps(void **state)
{
    struct server server;
    (void)state;
    open_server(&server);
    pass(&server, 5 * TL_SECOND);
    tl_ts then = inspect(&server);
    atomic_fetch_add(&server.wall, 8760 * HOUR);
    pass(&server, 5 * TL_SECOND);
    assert_true(inspect(&server) > then + 8000 * HOUR);
    assert_true(journal_oldest(server.journal) <= then);
    close_server(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_query_txns_are_limited),
        cmocka_unit_test(test_query_txn_is_idle_after_its_last_read),
        cmocka_unit_test(test_query_txn_is_not_idle_during_a_read),
        cmocka_unit_test(test_query_txn_ends_after_input_barrier),
        cmocka_unit_test(test_timestamps_increase_across_power_cuts),
        cmocka_unit_test(test_restart_ceiling_is_close_to_clock),
        cmocka_unit_test(test_ceiling_is_raised_every_few_seconds),
        cmocka_unit_test(test_leases_ignore_clock_steps),
        cmocka_unit_test(test_lock_waits_ignore_clock_steps),
        cmocka_unit_test(test_stall_does_not_expire_leases),
        cmocka_unit_test(test_leases_expire_after_input_barrier),
        cmocka_unit_test(test_history_limit_ignores_clock_steps),
        cmocka_unit_test(test_retention_ignores_clock_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
