/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal and its log.
 *
 * Goal: the log reproduces the core, from its beginning and from any checkpoint. Open sessions and
 * transactions continue after a restart, unless the machine crashed.
 * Method: threads submit to a journal over an in-memory store and an in-memory log that is never
 * trimmed. The log applied to an empty store must give the digest of the journal's core. So must a
 * crash of the store to its last checkpoint, followed by a replay.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"

#include "core/step/command_group.h"
#include "journal/journal.h"
#include "journal/journal_internal.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_memory.h"
#include "store/store.h"

enum { WRITERS = 4, ROUNDS = 150 };

#define LONG_US (600 * TL_SECOND) /* for leases and waits that must not expire */
#define HALF UINT64_MAX           /* as recovery_us: half of the replay's duration */

/* --- A log that is never trimmed ---------------------------------------------------------------------------------- */

static struct cmdlog_functions untrimmed_functions;
static _Atomic int trimmed; /* number of trims that checkpoints requested */

static int trim_nothing(struct cmdlog *log, cmdlog_position before)
{
    (void)log;
    (void)before;
    atomic_fetch_add(&trimmed, 1);
    return 0;
}

static _Atomic bool log_is_full;
static int (*real_append)(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);

static int append_unless_full(struct cmdlog *log, const struct slice *parts, size_t count,
                              cmdlog_position *ret_position)
{
    return atomic_load(&log_is_full) ? TL_ERR_NO_SPACE : real_append(log, parts, count, ret_position);
}

/*
 * The first report of a checkpoint while armed blocks until another report is done, or until none
 * was begun for a while, as it must be.
 */
static _Atomic bool hold_first_report;
static _Atomic bool unreachable; /* reports fail */
static _Atomic cmdlog_position newest_unreported;
static _Atomic int reports_begun, reports_done;
static _Atomic cmdlog_position newest_reported;
static _Atomic bool reported_out_of_order;
static int (*real_put_checkpoint)(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);

static int put_checkpoint_held(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint)
{
    enum { POLLS = 400, POLL_US = 1000 };
    atomic_fetch_add(&reports_begun, 1);
    if (atomic_load(&unreachable)) {
        atomic_store(&newest_unreported, checkpoint->position);
        return CMDLOG_UNREACHABLE;
    }
    bool held = atomic_exchange(&hold_first_report, false);
    for (int i = 0; held && i < POLLS && atomic_load(&reports_done) == 0; i++)
        usleep(POLL_US);
    if (checkpoint->position <= atomic_load(&newest_reported))
        atomic_store(&reported_out_of_order, true);
    atomic_store(&newest_reported, checkpoint->position);
    int r = real_put_checkpoint(log, checkpoint);
    atomic_fetch_add(&reports_done, 1);
    return r;
}

/* Stops the saver at its next sync while armed, which it does without core_lock. */
static _Atomic bool hold_saver;
static struct journal *held_journal;
static sem_t saver_held, saver_released;
static int (*real_sync)(struct cmdlog *log, cmdlog_position position);

static int sync_held(struct cmdlog *log, cmdlog_position position)
{
    if (atomic_load(&hold_saver) && pthread_equal(pthread_self(), held_journal->saver.id)) {
        atomic_store(&hold_saver, false);
        sem_post(&saver_held);
        sem_wait(&saver_released);
    }
    return real_sync(log, position);
}

/* Simulates a log of the same identity with other entries. */
static _Atomic bool other_entries;
static int (*real_lineage)(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage);

static int lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage)
{
    int r = real_lineage(log, position, ret_lineage);
    ret_lineage->history_crc ^= atomic_load(&other_entries) ? 1 : 0;
    return r;
}

static struct cmdlog *open_log(struct cmdlog_medium *medium)
{
    struct cmdlog *log = cmdlog_memory_open(medium);
    untrimmed_functions = *log->functions;
    untrimmed_functions.trim = trim_nothing;
    real_append = untrimmed_functions.append;
    untrimmed_functions.append = append_unless_full;
    real_lineage = untrimmed_functions.lineage;
    untrimmed_functions.lineage = lineage;
    real_put_checkpoint = untrimmed_functions.put_checkpoint;
    untrimmed_functions.put_checkpoint = put_checkpoint_held;
    real_sync = untrimmed_functions.sync;
    untrimmed_functions.sync = sync_held;
    log->functions = &untrimmed_functions;
    return log;
}

/* --- A server ----------------------------------------------------------------------------------------------------- */

struct server {
    struct store *store;
    struct cmdlog_medium *medium;
    struct cmdlog *log;
    struct core *core;
    struct recovered recovered;
    struct journal *journal;
};

static void begin_with(struct server *server, struct journal_options options)
{
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    server->log = open_log(server->medium);
    if (recover_core(server->store, server->log, &limits, NULL, &server->core, &server->recovered, &reason) != 0)
        fail_msg("recovery: %s", reason);
    assert_int_equal(server->recovered.differs, 0);
    options.log = server->log;
    options.cmdlog_position = server->recovered.position;
    options.log_work_us = server->recovered.work_us;
    options.log_replayed_bytes = server->recovered.replayed_bytes;
    if (options.recovery_us == HALF)
        options.recovery_us = server->recovered.work_us / 2;
    assert_int_equal(journal_open_local(server->core, server->store, &options, &server->journal), 0);
}

static void begin(struct server *server, size_t checkpoint_bytes, bool machine_lost)
{
    begin_with(server, (struct journal_options){.checkpoint_bytes = checkpoint_bytes, .host_crashed = machine_lost});
}

static void end(struct server *server)
{
    journal_close(server->journal);
    core_close(server->core);
    cmdlog_close(server->log);
}

static struct server server_new(void)
{
    return (struct server){.store = store_open_mem(), .medium = cmdlog_medium_new()};
}

static void server_free(struct server *server)
{
    store_close(server->store);
    cmdlog_medium_free(server->medium);
}

static void done(struct command *command)
{
    sem_post(command->context);
}

/* Submits a command and waits for its completion. Owns: the caller, again. */
static struct command *run(struct server *server, struct command *command)
{
    sem_t answered;
    sem_init(&answered, 0, 0);
    command->on_done = done;
    command->context = &answered;
    journal_submit(server->journal, command, command->type == COMMAND_TXN_BEGIN);
    while (sem_wait(&answered) != 0) {
    }
    sem_destroy(&answered);
    return command;
}

static struct command *write_command(const char *id, const char *transaction)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    *command->write.items = (struct write_item){.op = WRITE_INDEX,
                                                .index = SLICE_LIT("fs"),
                                                .id = arena_printf(&command->arena, "%s", id),
                                                .source = SLICE_LIT("{\"v\":1}"),
                                                .version = VERSION_ANY,
                                                .if_seq_no = SEQ_NO_ANY};
    command->owner.transaction = arena_printf(&command->arena, "%s", transaction);
    command->owner.timeout_us = LONG_US;
    return command;
}

static void must_run(struct server *server, struct command *command)
{
    run(server, command);
    if (command->problem.type != PROBLEM_NONE)
        fail_msg("%s: %.*s", command_name(command->type), SLICE_ARG(command->problem.reason));
    command_free(command);
}

static struct command *txn_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = arena_printf(&command->arena, "%s", id);
    command->txn.idle_us = LONG_US;
    return command;
}

struct writer {
    struct server *server;
    int number;
};

/* Runs transactions and writes on a few documents, so that some wait for others. */
static void *write_much(void *context)
{
    const struct writer *writer = context;
    struct server *server = writer->server;
    char name[32], id[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "t%d-%d-%d", (int)server->recovered.position, writer->number, i);
        snprintf(id, sizeof id, "%d", i % 7);
        must_run(server, txn_command(COMMAND_TXN_BEGIN, name));
        must_run(server, write_command(id, name));
        command_free(run(server, write_command(name, "")));
        must_run(server, txn_command(i % 5 == 0 ? COMMAND_TXN_ROLLBACK : COMMAND_TXN_COMMIT, name));
        command_free(run(server, write_command(id, "")));
    }
    return NULL;
}

static void work(struct server *server)
{
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){server, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_much, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

static uint64_t digest(struct core *core)
{
    uint64_t value = 0;
    assert_int_equal(core_digest(core, &value), 0);
    return value;
}

/* Asserts the digest of a replay over a store, by a build with these default limits. */
static void assert_makes(struct server *server, struct store *store, const struct core_limits *limits,
                         uint64_t expected)
{
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    struct cmdlog *log = open_log(server->medium);
    if (recover_core(store, log, limits, NULL, &core, &recovered, &reason) != 0)
        fail_msg("recovery: %s", reason);
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    assert_int_equal(recovered.position, head.appended);
    assert_int_equal(recovered.differs, 0);
    assert_true(digest(core) == expected);
    core_close(core);
    cmdlog_close(log);
}

static void test_replay_makes_the_same_core(void **state)
{
    static const size_t bytes[] = {1, 5000, (size_t)1 << 30};
    const struct core_limits limits = core_limits_default();
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        struct server server = server_new();
        begin(&server, bytes[i], false);
        work(&server);
        journal_stop(server.journal);
        uint64_t expected = digest(server.core);
        struct store *empty = store_open_mem();
        assert_makes(&server, empty, &limits, expected);
        store_close(empty);
        end(&server);
        store_mem_crash(server.store, 0);
        assert_makes(&server, server.store, &limits, expected);
        begin(&server, bytes[i], false);
        work(&server);
        end(&server);
        server_free(&server);
    }
}

/* Opens more sessions than another build's limits allow. */
static void open_many(struct server *server, int count)
{
    for (int i = 0; i < count; i++) {
        struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
        command->session.id = arena_printf(&command->arena, "s%d", i);
        command->session.ttl_us = LONG_US;
        must_run(server, command);
    }
}

/*
 * The first command logs all limits, even defaults, because a build with other defaults may replay
 * the log. So it does after an older build that logged none.
 */
static void test_limits_are_logged_first(void **state)
{
    struct core_limits others = core_limits_default();
    (void)state;
    others.sessions_max = others.ephemeral_max = others.transactions_max = 2;
    others.script.steps_max = 1000;
    for (int named = 0; named < 2; named++) { /* limits given to the journal, or the core's own */
        struct core_limits limits = core_limits_default();
        struct server server = server_new();
        begin_with(&server, (struct journal_options){.limits = named ? &limits : NULL});
        open_many(&server, 5);
        assert_true(core_limits_recorded(server.core));
        journal_stop(server.journal);
        uint64_t expected = digest(server.core);
        struct store *empty = store_open_mem();
        assert_makes(&server, empty, &others, expected);
        store_close(empty);
        end(&server);
        server_free(&server);
    }
}

/* --- Memory as an input ------------------------------------------------------------------------------------------- */

/* Returns: whether the header of the entry with a write of a document says that memory was full. */
static bool is_full_at(struct server *server, const char *id)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    bool found = false, full = false;
    assert_int_equal(cmdlog_follow(server->log, 1, &cursor), 0);
    while (!found && cmdlog_next(cursor, &entry) == 0) {
        struct list commands = LIST_INIT(commands);
        struct command_group_header head;
        assert_int_equal(command_group_decode(entry.bytes, &head, &commands), 0);
        list_for_each(link, &commands)
        {
            const struct command *command = list_entry(link, struct command, link);
            found |= command->type == COMMAND_WRITE && slice_is(command->write.items->id, id);
        }
        command_free_all(&commands);
        full = head.memory_full;
    }
    cmdlog_unfollow(cursor);
    assert_true(found);
    return full;
}

/* Each entry says whether there was memory when it was made; a journal without a budget, that there was. */
static void test_entries_say_whether_memory_is_full(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, (size_t)1 << 40);
    for (int with = 0; with < 2; with++) {
        struct server server = server_new();
        begin_with(&server, (struct journal_options){.budget = with ? &budget : NULL});
        must_run(&server, write_command("before", ""));
        atomic_store(&budget.promised, budget.limit);
        must_run(&server, write_command("full", ""));
        atomic_store(&budget.promised, 0);
        must_run(&server, write_command("after", ""));
        assert_false(is_full_at(&server, "before"));
        assert_int_equal(is_full_at(&server, "full"), with);
        assert_false(is_full_at(&server, "after"));
        end(&server);
        server_free(&server);
    }
}

/*
 * Transactions that the server opened itself are rolled back at once, with their locks; clients'
 * transactions continue.
 */
static void test_restart_rolls_back_server_transactions(void **state)
{
    struct server server = server_new();
    (void)state;
    begin(&server, 0, false);
    must_run(&server, txn_command(COMMAND_TXN_BEGIN, "open"));
    struct command *command = txn_command(COMMAND_TXN_BEGIN, "own");
    command->txn.of_host = true;
    must_run(&server, command);
    must_run(&server, write_command("1", "open"));
    must_run(&server, write_command("2", "own"));
    journal_stop(server.journal);
    uint64_t expected = digest(server.core);
    end(&server);
    store_close(server.store); /* as after kill -9: the log has everything */
    server.store = store_open_mem();
    struct core_limits limits = core_limits_default();
    assert_makes(&server, server.store, &limits, expected);
    store_close(server.store);
    server.store = store_open_mem();
    begin(&server, 0, false);
    command = run(&server, write_command("2", ""));
    assert_int_equal(command->write.results->outcome, WRITE_CREATED);
    command_free(command);
    must_run(&server, txn_command(COMMAND_TXN_COMMIT, "open"));
    command = run(&server, txn_command(COMMAND_TXN_COMMIT, "own"));
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    command_free(command);
    end(&server);
    server_free(&server);
}

/*
 * Shuts down cleanly with an open transaction and a session that holds a lock; both exist after the
 * restart.
 */
static void open_session_and_transaction(struct server *server)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = SLICE_LIT("holder");
    command->session.ttl_us = LONG_US;
    must_run(server, command);
    command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("holder");
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.target_count = 1;
    *command->lock.targets = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("9")};
    must_run(server, command);
    must_run(server, txn_command(COMMAND_TXN_BEGIN, "open"));
    must_run(server, write_command("1", "open"));
}

static tl_ts written_at(struct server *server, const char *id)
{
    struct command *command = run(server, write_command(id, ""));
    tl_ts ts = command->ts;
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    command_free(command);
    return ts;
}

static void test_restart_keeps_sessions_and_transactions(void **state)
{
    struct server server = server_new();
    (void)state;
    begin(&server, 0, false);
    open_session_and_transaction(&server);
    tl_ts before = written_at(&server, "2");
    end(&server);
    begin(&server, 0, false);
    assert_true(written_at(&server, "2") > before);
    must_run(&server, txn_command(COMMAND_TXN_COMMIT, "open"));
    struct command *command = write_command("9", ""); /* it conflicts with the lock */
    command->owner.timeout_us = TL_MS;
    run(&server, command);
    assert_int_equal(command->problem.type == PROBLEM_NONE && command->write.results->outcome != WRITE_FAILED, 0);
    command_free(command);
    end(&server);
    server_free(&server);
}

static void test_machine_crash_rolls_back_transactions(void **state)
{
    struct server server = server_new();
    (void)state;
    begin(&server, 0, false);
    open_session_and_transaction(&server);
    end(&server);
    begin(&server, 0, true);
    struct command *command = run(&server, txn_command(COMMAND_TXN_COMMIT, "open"));
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    assert_non_null(strstr(command->problem.reason.data, "the server's machine crashed"));
    command_free(command);
    end(&server);
    server_free(&server);
}

/*
 * The replay of a start counts toward the next checkpoint. Otherwise repeated kills before a
 * checkpoint would lengthen each start.
 */
static void test_replay_work_counts_toward_checkpoint(void **state)
{
    struct server server = server_new();
    (void)state;
    begin(&server, 0, false);
    work(&server);
    end(&server);
    store_close(server.store);
    server.store = store_open_mem(); /* the whole log must be replayed */
    struct cmdlog *log = open_log(server.medium);
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    cmdlog_close(log);
    atomic_store(&trimmed, 0);
    begin_with(&server, (struct journal_options){.recovery_us = HALF, .checkpoint_bytes = (size_t)1 << 30});
    assert_int_equal(server.recovered.position, head.appended);
    while (atomic_load(&trimmed) == 0)
        usleep(20000);
    end(&server);
    server_free(&server);
}

/* Starts over with an empty store, which replays the whole log. */
static void begin_empty(struct server *server, struct journal_options options)
{
    store_close(server->store);
    server->store = store_open_mem();
    atomic_store(&trimmed, 0);
    begin_with(server, options);
}

/* Entries count when they are appended, and when a start replays them. */
static void test_log_size_makes_checkpoint_due(void **state)
{
    struct server server = server_new();
    struct journal_options options = {.recovery_us = LONG_US, .checkpoint_bytes = (size_t)1 << 30};
    (void)state;
    atomic_store(&trimmed, 0);
    begin_with(&server, options);
    must_run(&server, write_command("1", ""));
    options.checkpoint_log_bytes = 1 << 10;
    end(&server);
    begin_empty(&server, options);
    assert_true(server.recovered.replayed_bytes > 0);
    while (atomic_load(&trimmed) == 0)
        must_run(&server, write_command("1", ""));
    end(&server);

    options.checkpoint_log_bytes = 1;
    begin_empty(&server, options);
    while (atomic_load(&trimmed) == 0)
        usleep(1000);
    end(&server);
    server_free(&server);
}

/* Asserts that recovery refuses the store with this log, with a reason that contains `expected`. */
static void assert_refused(struct server *server, struct cmdlog_medium *medium, const char *expected)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    struct cmdlog *log = open_log(medium);
    assert_int_equal(recover_core(server->store, log, &limits, NULL, &core, &recovered, &reason), TL_ERR_CORRUPT);
    if (strstr(reason, expected) == NULL)
        fail_msg("not '%s': %s", expected, reason);
    mem_free(reason);
    cmdlog_close(log);
}

/* A store made from another log is refused, even if the log is long enough. */
static void test_store_of_another_log_is_refused(void **state)
{
    struct server server = server_new(), other = server_new();
    (void)state;
    begin(&server, 0, false);
    work(&server);
    end(&server);
    assert_refused(&server, other.medium, "beyond the end of the log");
    begin(&other, 0, false);
    work(&other);
    end(&other);
    begin(&other, 0, false);
    work(&other);
    end(&other);
    assert_refused(&server, other.medium,
                   "made from another log than the one next to it: put the folders `rocks' and `log'");
    atomic_store(&other_entries, true);
    assert_refused(&server, server.medium, "from other entries than the log next to it has");
    atomic_store(&other_entries, false);
    assert_int_equal(store_checkpoint(server.store, SLICE_LIT("tidestop\x01\x05nonsense")), 0);
    assert_refused(&server, server.medium, "the state in the store's checkpoint");
    assert_int_equal(store_checkpoint(server.store, SLICE_LIT("tidestop\x02\x05too short")), 0);
    assert_refused(&server, server.medium, "the record of the store's checkpoint is damaged");
    server_free(&server);
    server_free(&other);
}

/* Recovers over the store's record as it is. Returns: whether it was refused; if not, the core is the expected one. */
static bool recovery_is_refused(struct server *server, uint64_t expected)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    struct cmdlog *log = open_log(server->medium);
    int r = recover_core(server->store, log, &limits, NULL, &core, &recovered, &reason);
    if (r == 0) {
        assert_true(digest(core) == expected);
        core_close(core);
    } else {
        assert_true(r == TL_ERR_CORRUPT || r == TL_ERR_VERSION);
        assert_non_null(reason);
        mem_free(reason);
    }
    cmdlog_close(log);
    return r != 0;
}

/*
 * Any flipped bit of a checkpoint's record is refused, or has no effect: of its head, which has no
 * checksum of its own, and of a few bytes of the core, which has (tests/unit/core/save_test.c).
 */
static void test_flipped_bit_of_record_is_refused(void **state)
{
    enum { TRIED_BYTES = 64 };
    struct server server = server_new();
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    size_t refused = 0;
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("1", ""));
    assert_int_equal(journal_checkpoint(server.journal), 0);
    must_run(&server, write_command("2", ""));
    journal_stop(server.journal);
    uint64_t expected = digest(server.core);
    end(&server);
    store_mem_crash(server.store, 0);
    assert_int_equal(store_checkpoint_record(server.store, &record), 0);
    assert_true(record.len > TRIED_BYTES);
    assert_false(recovery_is_refused(&server, expected));
    for (size_t bit = 0; bit < (size_t)8 * TRIED_BYTES; bit++) {
        store_mem_crash(server.store, 0); /* the replay has written to it */
        record.data[bit / 8] = (char)(record.data[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(store_checkpoint(server.store, buf_as_slice(&record)), 0);
        refused += recovery_is_refused(&server, expected);
        record.data[bit / 8] = (char)(record.data[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(refused, 8 * TRIED_BYTES);
    buf_deinit(&record);
    server_free(&server);
}

/*
 * A checkpoint record of a version without lineage is accepted; the next checkpoint records the
 * lineage.
 */
static void test_record_without_lineage_is_accepted(void **state)
{
    enum { MAGIC_BYTES = 8 };
    struct server server = server_new();
    struct buf record = BUF_INIT(BUF_UNLIMITED), older = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage noted, of_log;
    cmdlog_position position;
    uint64_t chain;
    (void)state;
    begin(&server, 0, false);
    work(&server);
    end(&server);
    assert_int_equal(store_checkpoint_record(server.store, &record), 0);
    struct slice rest = slice_from_offset(buf_as_slice(&record), MAGIC_BYTES + 1);
    assert_true(slice_take_varint(&rest, &position));
    rest = slice_from_offset(rest, CMDLOG_IDENTITY_BYTES);
    assert_true(slice_take_varint(&rest, &chain));
    buf_lit(&older, "tidestop\x01");
    buf_varint(&older, position);
    buf_slice(&older, rest);
    assert_int_equal(store_checkpoint(server.store, buf_as_slice(&older)), 0);
    begin(&server, 0, false);
    assert_int_equal(server.recovered.checkpoint, position);
    must_run(&server, write_command("1", ""));
    assert_int_equal(journal_checkpoint(server.journal), 0);
    buf_clear(&record);
    assert_int_equal(store_checkpoint_record(server.store, &record), 0);
    assert_int_equal(recover_read_position(buf_as_slice(&record), &position, &noted), 0);
    assert_int_equal(cmdlog_lineage(server.log, position, &of_log), 0);
    assert_memory_equal(noted.identity, of_log.identity, CMDLOG_IDENTITY_BYTES);
    assert_int_equal(noted.history_crc, of_log.history_crc);
    end(&server);
    buf_deinit(&record);
    buf_deinit(&older);
    server_free(&server);
}

static _Atomic uint64_t read_at = 1700000000 * (uint64_t)TL_SECOND; /* last reading of both clocks */

/* A clock that advances by a hundredth of a second with each reading. */
static uint64_t slow_clock(void *context)
{
    (void)context;
    return atomic_fetch_add(&read_at, 10 * TL_MS);
}

/* The ceiling covers the timestamp of its own step, however late that step is. */
static void test_ceiling_covers_its_own_step_on_slow_machine(void **state)
{
    const struct journal_clocks slow = {.wall = slow_clock, .boot = slow_clock};
    struct server server = server_new();
    (void)state;
    for (int lives = 0; lives < 3; lives++) {
        begin_with(&server, (struct journal_options){.clocks = &slow});
        must_run(&server, write_command("before", ""));
        journal_close(server.journal); /* its workers use the core until here */
        tl_ts newest = core_last_ts(server.core);
        core_close(server.core);
        cmdlog_close(server.log);
        begin_with(&server, (struct journal_options){.clocks = &slow});
        struct command *command = run(&server, write_command("after", ""));
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_true(command->ts > newest);
        command_free(command);
        end(&server);
    }
    server_free(&server);
}

/* Appends a MARK with this chain, of a build. Returns: its position. */
static cmdlog_position append_mark(struct cmdlog *log, uint64_t chain, const char *build)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header first = {.ts = 1};
    struct command *mark = command_new(COMMAND_MARK, DIALECT_7);
    cmdlog_position position = 0;
    mark->mark =
        (struct mark_command){.ceiling = 1, .payload = SLICE_LIT(""), .chain = chain, .build = slice_from(build)};
    command_group_begin(&first, &bytes);
    command_group_add(mark, &bytes);
    struct slice part = buf_as_slice(&bytes);
    assert_int_equal(cmdlog_append(log, &part, 1, &position), 0);
    assert_int_equal(cmdlog_sync(log, position), 0);
    command_free(mark);
    buf_deinit(&bytes);
    return position;
}

/* Replays the log over the server's store. */
static void recover_marks(struct server *server, struct cmdlog *log, struct recovered *ret_recovered)
{
    struct core_limits limits = core_limits_default();
    struct core *core;
    char *reason = NULL;
    assert_int_equal(recover_core(server->store, log, &limits, NULL, &core, ret_recovered, &reason), 0);
    core_close(core);
}

static void run_writes(struct server *server, int count)
{
    for (int i = 0; i < count; i++)
        must_run(server, write_command("1", ""));
}

struct reports {
    int begun, replayed, ended;
    struct recover_progress newest;
};

static void count_report(void *context, const struct recover_progress *progress)
{
    struct reports *reports = context;
    bool first = reports->begun == 0;
    assert_int_equal(progress->phase == RECOVER_BEGINS, first);
    assert_int_equal(reports->ended, 0);
    if (first) {
        assert_int_equal(progress->position, progress->checkpoint);
        assert_int_equal(progress->bytes, 0);
    } else {
        assert_true(progress->position > reports->newest.position);
        assert_true(progress->bytes > reports->newest.bytes && progress->us >= reports->newest.us);
        assert_int_equal(progress->bytes_total, reports->newest.bytes_total);
    }
    reports->begun += progress->phase == RECOVER_BEGINS;
    reports->replayed += progress->phase == RECOVER_REPLAYS;
    reports->ended += progress->phase == RECOVER_ENDED;
    reports->newest = *progress;
}

/* Replays the log, up to `end` (0: all), over a store, observed with this period. Closes the store. */
static struct reports observe_replay(struct server *server, struct store *store, cmdlog_position end,
                                     uint64_t period_us, struct recovered *ret_recovered)
{
    struct reports reports = {0};
    const struct recover_observer observer = {count_report, &reports, period_us};
    const struct recover_options options = {.end = end, .observer = &observer};
    struct core_limits limits = core_limits_default();
    struct core *core;
    struct cmdlog *log = open_log(server->medium);
    int r = recover_core_with(store, log, &limits, &options, &core, ret_recovered, NULL);
    if (r == 0)
        recover_close_core(core);
    else
        assert_int_equal(r, TL_ERR_VERSION);
    cmdlog_close(log);
    store_close(store);
    return reports;
}

/* Expects the reports of a replay that has succeeded: with a period of 0 one before each entry, else begin and end. */
static void expect_reports(const struct reports *reports, bool of_each, const struct recovered *recovered)
{
    assert_int_equal(reports->begun, 1);
    assert_int_equal(reports->replayed, of_each ? recovered->position - recovered->checkpoint - 1 : 0);
    assert_int_equal(reports->ended, 1);
    assert_int_equal(reports->newest.checkpoint, recovered->checkpoint);
    assert_int_equal(reports->newest.position, recovered->position);
    assert_int_equal(reports->newest.last, recovered->position);
    assert_int_equal(reports->newest.bytes, recovered->replayed_bytes);
}

/*
 * A replay reports its begin before the first entry, its progress before each other one (with a period of 0), and its
 * end after the last; with a long period its begin and its end. So it does after a checkpoint, and up to a given end.
 * Without entries to replay it reports nothing, and after a failure no end.
 */
static void test_replay_reports_its_progress(void **state)
{
    enum { WRITES = 20 };
    struct server server = server_new();
    struct recovered recovered;
    (void)state;
    struct reports reports = observe_replay(&server, store_open_mem(), 0, 0, &recovered);
    assert_int_equal(reports.begun + reports.replayed + reports.ended, 0);
    begin(&server, (size_t)1 << 30, false);
    run_writes(&server, WRITES);
    end(&server); /* it makes a checkpoint */
    begin(&server, (size_t)1 << 30, false);
    run_writes(&server, WRITES);
    struct store *checkpoint = store_mem_copy(server.store);
    end(&server);
    for (int i = 0; i < 2; i++) {
        reports = observe_replay(&server, store_open_mem(), 0, i == 0 ? 0 : UINT64_MAX, &recovered);
        assert_true(recovered.checkpoint == 0 && recovered.position >= (cmdlog_position)2 * WRITES);
        expect_reports(&reports, i == 0, &recovered);
        assert_int_equal(reports.newest.bytes_total, recovered.replayed_bytes);
    }
    reports = observe_replay(&server, store_open_mem(), WRITES, 0, &recovered);
    assert_int_equal(recovered.position, WRITES - 1);
    expect_reports(&reports, true, &recovered);
    assert_true(reports.newest.bytes_total > recovered.replayed_bytes);
    reports = observe_replay(&server, store_open_mem(), 1, 0, &recovered);
    assert_int_equal(reports.begun + reports.replayed + reports.ended, 0);
    reports = observe_replay(&server, checkpoint, 0, 0, &recovered);
    assert_true(recovered.checkpoint >= WRITES && recovered.position - recovered.checkpoint >= WRITES);
    expect_reports(&reports, true, &recovered);
    struct cmdlog *log = open_log(server.medium);
    cmdlog_position position;
    assert_int_equal(cmdlog_append(log, &SLICE_LIT("newer version"), 1, &position), 0);
    cmdlog_close(log);
    reports = observe_replay(&server, store_open_mem(), 0, 0, &recovered);
    assert_int_equal(reports.newest.last, position);
    assert_int_equal(reports.ended, 0);
    server_free(&server);
}

/*
 * MARK records the chain. If a replay computes another one, the first difference is reported, and
 * the rest is applied.
 */
static void test_chain_difference_is_reported(void **state)
{
    struct server server = server_new();
    struct recovered recovered;
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("before", ""));
    end(&server);
    struct cmdlog *log = open_log(server.medium);
    cmdlog_position wrong = append_mark(log, 4711, CORE_BUILD), right = append_mark(log, 0, CORE_BUILD);
    recover_marks(&server, log, &recovered);
    assert_int_equal(recovered.differs, wrong);
    assert_int_equal(recovered.position, right);
    assert_int_equal(recovered.other_build, 0);
    cmdlog_close(log);
    server_free(&server);
}

/*
 * Another build may compute another chain. Its MARKs, and the first one after them that has a chain,
 * are taken over and not compared; the next one is.
 */
static void test_chains_of_other_builds_are_not_compared(void **state)
{
    struct server server = server_new();
    struct recovered recovered;
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("before", ""));
    end(&server);
    struct cmdlog *log = open_log(server.medium);
    (void)append_mark(log, 4711, "");
    cmdlog_position other = append_mark(log, 4712, "0.0.1-core0");
    (void)append_mark(log, 0, CORE_BUILD);
    (void)append_mark(log, 4713, CORE_BUILD);
    cmdlog_position wrong = append_mark(log, 4714, CORE_BUILD);
    recover_marks(&server, log, &recovered);
    assert_int_equal(recovered.other_build, other);
    assert_int_equal(recovered.differs, wrong);
    cmdlog_close(log);
    server_free(&server);
}

static _Atomic uint64_t leap_us;

static uint64_t leaping_clock(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TL_SECOND + (uint64_t)now.tv_nsec / 1000 + atomic_load(&leap_us);
}

static void *checkpoint(void *context)
{
    const struct server *server = context;
    assert_int_equal(journal_checkpoint(server->journal), 0);
    return NULL;
}

/*
 * A backup's thread has a durable checkpoint but has not reported it when `_forcemerge` finishes
 * the next one. The older one must not be reported later: the log would take it for the newest,
 * although entries after it were trimmed for the other one.
 */
static void test_checkpoints_are_reported_in_order(void **state)
{
    struct server server = server_new();
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint newest;
    pthread_t thread;
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("1", ""));
    atomic_store(&reported_out_of_order, false);
    atomic_store(&newest_reported, 0);
    atomic_store(&reports_begun, 0);
    atomic_store(&reports_done, 0);
    atomic_store(&hold_first_report, true);
    assert_int_equal(pthread_create(&thread, NULL, checkpoint, &server), 0);
    while (atomic_load(&reports_begun) == 0)
        usleep(1000);
    must_run(&server, write_command("2", ""));
    checkpoint(&server);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&reported_out_of_order));
    assert_int_equal(cmdlog_get_checkpoint(server.log, 0, place, &newest), 0);
    assert_int_equal(newest.position, atomic_load(&newest_reported));
    end(&server);
    server_free(&server);
}

/*
 * A thread has found a checkpoint durable but has not reported it. Another caller that needs no
 * newer checkpoint returns only after the log knows that one.
 */
static void test_checkpoint_returns_after_its_report(void **state)
{
    struct server server = server_new();
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint newest;
    pthread_t thread;
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("1", ""));
    atomic_store(&newest_reported, 0);
    atomic_store(&reports_begun, 0);
    atomic_store(&reports_done, 0);
    atomic_store(&hold_first_report, true);
    assert_int_equal(pthread_create(&thread, NULL, checkpoint, &server), 0);
    while (atomic_load(&reports_begun) == 0)
        usleep(1000);
    checkpoint(&server);
    assert_true(atomic_load(&reports_done) > 0);
    assert_int_equal(cmdlog_get_checkpoint(server.log, 0, place, &newest), 0);
    assert_int_equal(newest.position, atomic_load(&newest_reported));
    pthread_join(thread, NULL);
    end(&server);
    server_free(&server);
}

/* A checkpoint that could not be reported, since the log could not be reached, is reported later. */
static void test_checkpoint_is_reported_when_log_is_reached_again(void **state)
{
    struct server server = server_new();
    struct cmdlog_checkpoint newest;
    char place[CMDLOG_LOCATOR_MAX];
    (void)state;
    begin(&server, 0, false);
    must_run(&server, write_command("1", ""));
    int before = atomic_load(&trimmed);
    atomic_store(&newest_unreported, 0);
    atomic_store(&unreachable, true); /* also for a worker that tries again */
    checkpoint(&server);
    cmdlog_position position = atomic_load(&newest_unreported);
    assert_true(position > 0);
    assert_int_equal(cmdlog_get_checkpoint(server.log, 0, place, &newest), CMDLOG_NOT_FOUND);
    atomic_store(&unreachable, false);
    while (atomic_load(&trimmed) == before)
        must_run(&server, write_command("1", ""));
    assert_int_equal(cmdlog_get_checkpoint(server.log, 0, place, &newest), 0);
    assert_int_equal(newest.position, position);
    end(&server);
    server_free(&server);
}

/* Writes a large document in a transaction. */
static void write_large(struct server *server, const char *id, const char *transaction)
{
    enum { BYTES = 1 << 20 };
    struct command *command = write_command(id, transaction);
    command->write.items->source = arena_printf(&command->arena, "{\"v\":1%*s}", BYTES, "");
    must_run(server, command);
}

/*
 * A checkpoint of a transaction of several megabytes is written in parts. Commands run meanwhile,
 * also in the transaction. After a crash the transaction continues, from the checkpoint and the
 * log.
 */
static void test_commands_run_while_transaction_is_saved(void **state)
{
    enum { DOCUMENTS = 12 };
    struct server server = server_new();
    pthread_t thread;
    char id[24];
    (void)state;
    begin(&server, 0, false);
    open_session_and_transaction(&server);
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(id, sizeof id, "large%d", i);
        write_large(&server, id, "open");
    }
    assert_int_equal(pthread_create(&thread, NULL, checkpoint, &server), 0);
    write_large(&server, "large0", "open");
    write_large(&server, "more", "open");
    must_run(&server, write_command("2", ""));
    pthread_join(thread, NULL);
    must_run(&server, write_command("3", "open"));
    end(&server);
    store_mem_crash(server.store, 0);
    begin(&server, 0, false);
    struct command *command = run(&server, txn_command(COMMAND_TXN_COMMIT, "open"));
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_int_equal(command->txn.changes, DOCUMENTS + 3); /* and `more`, 1, 3 */
    command_free(command);
    end(&server);
    server_free(&server);
}

/*
 * Only the saver writes ahead after the first part. While it is delayed, commands run, and neither
 * the workers nor the thread that waits for the checkpoint write a part.
 */
static void test_only_saver_continues_to_write_ahead(void **state)
{
    enum { DOCUMENTS = 12, COMMANDS = 20 };
    struct server server = server_new();
    pthread_t thread;
    char id[24];
    (void)state;
    begin(&server, 0, false);
    open_session_and_transaction(&server);
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(id, sizeof id, "large%d", i);
        write_large(&server, id, "open");
    }
    sem_init(&saver_held, 0, 0);
    sem_init(&saver_released, 0, 0);
    held_journal = server.journal;
    atomic_store(&hold_saver, true);
    assert_int_equal(pthread_create(&thread, NULL, checkpoint, &server), 0);
    sem_wait(&saver_held);
    const metric_value *pieces = &journal_core_metrics(server.journal)->pieces_written;
    uint64_t written = metric_read(pieces);
    assert_true(written > 0);
    for (int i = 0; i < COMMANDS; i++)
        must_run(&server, write_command("2", ""));
    assert_int_equal(metric_read(pieces), written);
    sem_post(&saver_released);
    pthread_join(thread, NULL);
    assert_true(metric_read(pieces) > written);
    end(&server);
    sem_destroy(&saver_held);
    sem_destroy(&saver_released);
    server_free(&server);
}

static struct command *session_status(void)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_SESSIONS;
    return command;
}

/*
 * The log is full and the ceiling is reached: status commands are answered, writes are refused, and
 * no thread waits for space with core_lock held. A CANCEL takes effect when there is space again.
 */
static void test_full_log_refuses_writes_without_waiting(void **state)
{
    const struct journal_clocks leaping = {.wall = leaping_clock, .boot = leaping_clock};
    struct server server = server_new();
    sem_t answered, ended;
    (void)state;
    sem_init(&answered, 0, 0);
    sem_init(&ended, 0, 0);
    begin_with(&server, (struct journal_options){.clocks = &leaping});
    must_run(&server, txn_command(COMMAND_TXN_BEGIN, "first"));
    must_run(&server, write_command("1", "first"));
    struct command *waiting = write_command("1", "");
    waiting->on_done = done;
    waiting->context = &answered;
    journal_submit(server.journal, waiting, false);
    must_run(&server, session_status()); /* applied after the lock command, which waits now */
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);
    cancel->cancel.request = waiting->request;
    cancel->on_done = done;
    cancel->context = &ended;

    atomic_store(&log_is_full, true);
    for (int times = 0; times < 3; times++) {
        atomic_fetch_add(&leap_us, 20 * TL_SECOND);
        must_run(&server, session_status());
        struct command *refused = run(&server, write_command("2", ""));
        assert_int_equal(refused->problem.type, PROBLEM_DISK_FULL);
        command_free(refused);
    }
    journal_submit(server.journal, cancel, false);
    must_run(&server, session_status());
    assert_int_equal(sem_trywait(&answered), -1);

    atomic_store(&log_is_full, false);
    must_run(&server, write_command("2", ""));
    sem_wait(&ended);
    sem_wait(&answered);
    assert_int_not_equal(waiting->problem.type, PROBLEM_NONE);
    command_free(waiting);
    command_free(cancel);
    sem_destroy(&answered);
    sem_destroy(&ended);
    end(&server);
    server_free(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay_makes_the_same_core),
        cmocka_unit_test(test_restart_keeps_sessions_and_transactions),
        cmocka_unit_test(test_limits_are_logged_first),
        cmocka_unit_test(test_entries_say_whether_memory_is_full),
        cmocka_unit_test(test_restart_rolls_back_server_transactions),
        cmocka_unit_test(test_machine_crash_rolls_back_transactions),
        cmocka_unit_test(test_replay_work_counts_toward_checkpoint),
        cmocka_unit_test(test_log_size_makes_checkpoint_due),
        cmocka_unit_test(test_store_of_another_log_is_refused),
        cmocka_unit_test(test_ceiling_covers_its_own_step_on_slow_machine),
        cmocka_unit_test(test_chain_difference_is_reported),
        cmocka_unit_test(test_chains_of_other_builds_are_not_compared),
        cmocka_unit_test(test_full_log_refuses_writes_without_waiting),
        cmocka_unit_test(test_checkpoints_are_reported_in_order),
        cmocka_unit_test(test_checkpoint_returns_after_its_report),
        cmocka_unit_test(test_checkpoint_is_reported_when_log_is_reached_again),
        cmocka_unit_test(test_commands_run_while_transaction_is_saved),
        cmocka_unit_test(test_only_saver_continues_to_write_ahead),
        cmocka_unit_test(test_replay_reports_its_progress),
        cmocka_unit_test(test_flipped_bit_of_record_is_refused),
        cmocka_unit_test(test_record_without_lineage_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
