/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal on a log.
 *
 * Goal: the log makes the same core again, from its beginning and from any checkpoint; what was open goes on after a restart, unless the
 * machine went down.
 * Method: threads submit to a journal over a twin and a log in memory, that lets nothing go. What the log makes of an empty store has the
 * digest of the core that the journal had, and so has what a crash of the store to its last checkpoint and the log behind it make.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/unit.h"

#include "base/alloc.h"

#include "core/step/command_group.h"
#include "journal/journal.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_memory.h"
#include "store/store.h"

enum { WRITERS = 4, ROUNDS = 150 };

#define LONG_US (600 * TL_SECOND) /* for leases and waits whose end is not the point */
#define HALF UINT64_MAX /* as recovery_us: of what the start has taken */

/* --- A log that keeps all ----------------------------------------------------------------------------------------- */

static struct cmdlog_functions keeping;
static _Atomic int trimmed; /* how often a checkpoint has let go of something */

static int trim_nothing(struct cmdlog *log, cmdlog_position before)
{
    (void)log;
    (void)before;
    atomic_fetch_add(&trimmed, 1);
    return 0;
}

static _Atomic bool log_is_full;
static int (*append_really)(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);

static int append_if_room(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    return atomic_load(&log_is_full) ? TL_ERR_NO_SPACE : append_really(log, parts, count, ret_position);
}

/*
 * The first that notes a checkpoint while it is armed is held up before it does, until another one has, or until none has for a while: then none may.
 */
static _Atomic bool hold_first_note;
static _Atomic int notes_begun, notes_done;
static _Atomic cmdlog_position newest_noted;
static _Atomic bool noted_out_of_order;
static int (*note_really)(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);

static int note(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint)
{
    enum { LOOKS = 400, LOOK_US = 1000 };
    atomic_fetch_add(&notes_begun, 1);
    bool held = atomic_exchange(&hold_first_note, false);
    for (int i = 0; held && i < LOOKS && atomic_load(&notes_done) == 0; i++)
        usleep(LOOK_US);
    if (checkpoint->position <= atomic_load(&newest_noted))
        atomic_store(&noted_out_of_order, true);
    atomic_store(&newest_noted, checkpoint->position);
    int r = note_really(log, checkpoint);
    atomic_fetch_add(&notes_done, 1);
    return r;
}

/* As a log of the same identity that has gone another way. */
static _Atomic bool other_entries;
static int (*lineage_really)(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage);

static int lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage)
{
    int r = lineage_really(log, position, ret_lineage);
    ret_lineage->history_crc ^= atomic_load(&other_entries) ? 1 : 0;
    return r;
}

static struct cmdlog *open_log(struct cmdlog_medium *medium)
{
    struct cmdlog *log = cmdlog_memory_open(medium);
    keeping = *log->functions;
    keeping.trim = trim_nothing;
    append_really = keeping.append;
    keeping.append = append_if_room;
    lineage_really = keeping.lineage;
    keeping.lineage = lineage;
    note_really = keeping.put_checkpoint;
    keeping.put_checkpoint = note;
    log->functions = &keeping;
    return log;
}

/* --- A life of a server ------------------------------------------------------------------------------------------- */

struct life {
    struct store *store;
    struct cmdlog_medium *medium;
    struct cmdlog *log;
    struct core *core;
    struct recovered recovered;
    struct journal *journal;
};

static void begin_with(struct life *life, struct journal_options options)
{
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    life->log = open_log(life->medium);
    if (recover_core(life->store, life->log, &limits, NULL, &life->core, &life->recovered, &reason) != 0)
        fail_msg("recovery: %s", reason);
    assert_int_equal(life->recovered.differs, 0);
    options.log = life->log;
    options.cmdlog_position = life->recovered.position;
    options.log_work_us = life->recovered.work_us;
    if (options.recovery_us == HALF)
        options.recovery_us = life->recovered.work_us / 2;
    assert_int_equal(journal_open_local(life->core, life->store, &options, &life->journal), 0);
}

static void begin(struct life *life, size_t checkpoint_bytes, bool machine_lost)
{
    begin_with(life, (struct journal_options){.checkpoint_bytes = checkpoint_bytes, .host_crashed = machine_lost});
}

static void end(struct life *life)
{
    journal_close(life->journal);
    core_close(life->core);
    cmdlog_close(life->log);
}

static struct life born(void)
{
    return (struct life){.store = store_open_mem(), .medium = cmdlog_medium_new()};
}

static void buried(struct life *life)
{
    store_close(life->store);
    cmdlog_medium_free(life->medium);
}

static void done(struct command *command)
{
    sem_post(command->context);
}

/* Submits a command and waits for it. Owns: the caller, again. */
static struct command *run(struct life *life, struct command *command)
{
    sem_t answered;
    sem_init(&answered, 0, 0);
    command->on_done = done;
    command->context = &answered;
    journal_submit(life->journal, command, command->type == COMMAND_TXN_BEGIN);
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

static void must_run(struct life *life, struct command *command)
{
    run(life, command);
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
    struct life *life;
    int number;
};

/* Transactions and writes that meet on a few documents, so that some wait for others. */
static void *write_much(void *context)
{
    const struct writer *writer = context;
    struct life *life = writer->life;
    char name[32], id[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "t%d-%d-%d", (int)life->recovered.position, writer->number, i);
        snprintf(id, sizeof id, "%d", i % 7);
        must_run(life, txn_command(COMMAND_TXN_BEGIN, name));
        must_run(life, write_command(id, name));
        command_free(run(life, write_command(name, "")));
        must_run(life, txn_command(i % 5 == 0 ? COMMAND_TXN_ROLLBACK : COMMAND_TXN_COMMIT, name));
        command_free(run(life, write_command(id, "")));
    }
    return NULL;
}

static void work(struct life *life)
{
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){life, i};
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

/* What the log makes of a store, in a build with these limits as its own, has this digest. */
static void assert_makes(struct life *life, struct store *store, const struct core_limits *limits, uint64_t expected)
{
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    struct cmdlog *log = open_log(life->medium);
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

static void test_the_log_makes_the_same_core(void **state)
{
    static const size_t bytes[] = {1, 5000, (size_t)1 << 30};
    const struct core_limits limits = core_limits_default();
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        struct life life = born();
        begin(&life, bytes[i], false);
        work(&life);
        journal_stop(life.journal);
        uint64_t expected = digest(life.core);
        struct store *empty = store_open_mem();
        assert_makes(&life, empty, &limits, expected);
        store_close(empty);
        end(&life);
        store_mem_crash(life.store, 0);
        assert_makes(&life, life.store, &limits, expected);
        begin(&life, bytes[i], false);
        work(&life);
        end(&life);
        buried(&life);
    }
}

/* Sessions of which another build would not let in so many. */
static void open_many(struct life *life, int count)
{
    for (int i = 0; i < count; i++) {
        struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
        command->session.id = arena_printf(&command->arena, "s%d", i);
        command->session.ttl_us = LONG_US;
        must_run(life, command);
    }
}

/*
 * The first command says all limits, though they be the defaults: what applies the log may be a build that has others. So it is, too, where an older
 * build has said none.
 */
static void test_the_log_says_the_limits(void **state)
{
    struct core_limits others = core_limits_default();
    (void)state;
    others.sessions_max = others.ephemeral_max = others.transactions_max = 2;
    others.script.steps_max = 1000;
    for (int named = 0; named < 2; named++) { /* to the journal, or what the core has */
        struct core_limits limits = core_limits_default();
        struct life life = born();
        begin_with(&life, (struct journal_options){.limits = named ? &limits : NULL});
        open_many(&life, 5);
        assert_true(core_limits_recorded(life.core));
        journal_stop(life.journal);
        uint64_t expected = digest(life.core);
        struct store *empty = store_open_mem();
        assert_makes(&life, empty, &others, expected);
        store_close(empty);
        end(&life);
        buried(&life);
    }
}

/* What the server had for requests of its own goes with it, at once and with its locks; what clients have goes on. */
static void test_what_the_server_had_itself_is_rolled_back(void **state)
{
    struct life life = born();
    (void)state;
    begin(&life, 0, false);
    must_run(&life, txn_command(COMMAND_TXN_BEGIN, "open"));
    struct command *command = txn_command(COMMAND_TXN_BEGIN, "own");
    command->txn.of_host = true;
    must_run(&life, command);
    must_run(&life, write_command("1", "open"));
    must_run(&life, write_command("2", "own"));
    journal_stop(life.journal);
    uint64_t expected = digest(life.core);
    end(&life);
    store_close(life.store); /* as after kill -9: all is in the log */
    life.store = store_open_mem();
    struct core_limits limits = core_limits_default();
    assert_makes(&life, life.store, &limits, expected);
    store_close(life.store);
    life.store = store_open_mem();
    begin(&life, 0, false);
    command = run(&life, write_command("2", ""));
    assert_int_equal(command->write.results->outcome, WRITE_CREATED);
    command_free(command);
    must_run(&life, txn_command(COMMAND_TXN_COMMIT, "open"));
    command = run(&life, txn_command(COMMAND_TXN_COMMIT, "own"));
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    command_free(command);
    end(&life);
    buried(&life);
}

/* The server ends, in order, with a transaction and a session open that has a lock; both are there when it comes again. */
static void open_things(struct life *life)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = SLICE_LIT("holder");
    command->session.ttl_us = LONG_US;
    must_run(life, command);
    command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("holder");
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.target_count = 1;
    *command->lock.targets = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("9")};
    must_run(life, command);
    must_run(life, txn_command(COMMAND_TXN_BEGIN, "open"));
    must_run(life, write_command("1", "open"));
}

static tl_ts written_at(struct life *life, const char *id)
{
    struct command *command = run(life, write_command(id, ""));
    tl_ts ts = command->ts;
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    command_free(command);
    return ts;
}

static void test_what_was_open_goes_on(void **state)
{
    struct life life = born();
    (void)state;
    begin(&life, 0, false);
    open_things(&life);
    tl_ts before = written_at(&life, "2");
    end(&life);
    begin(&life, 0, false);
    assert_true(written_at(&life, "2") > before);
    must_run(&life, txn_command(COMMAND_TXN_COMMIT, "open"));
    struct command *command = write_command("9", ""); /* the lock is held */
    command->owner.timeout_us = TL_MS;
    run(&life, command);
    assert_int_equal(command->problem.type == PROBLEM_NONE && command->write.results->outcome != WRITE_FAILED, 0);
    command_free(command);
    end(&life);
    buried(&life);
}

static void test_a_lost_machine_rolls_back(void **state)
{
    struct life life = born();
    (void)state;
    begin(&life, 0, false);
    open_things(&life);
    end(&life);
    begin(&life, 0, true);
    struct command *command = run(&life, txn_command(COMMAND_TXN_COMMIT, "open"));
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_ABORTED);
    assert_non_null(strstr(command->problem.reason.data, "the machine of the server went down"));
    command_free(command);
    end(&life);
    buried(&life);
}

/*
 * What a start has applied again counts toward the next checkpoint. Else a server that is killed before it comes to one would take longer
 * with each start.
 */
static void test_what_a_start_applied_counts(void **state)
{
    struct life life = born();
    (void)state;
    begin(&life, 0, false);
    work(&life);
    end(&life);
    store_close(life.store);
    life.store = store_open_mem(); /* all that the log has is to be applied again */
    struct cmdlog *log = open_log(life.medium);
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    cmdlog_close(log);
    atomic_store(&trimmed, 0);
    begin_with(&life, (struct journal_options){.recovery_us = HALF, .checkpoint_bytes = (size_t)1 << 30});
    assert_int_equal(life.recovered.position, head.appended);
    while (atomic_load(&trimmed) == 0)
        usleep(20000);
    end(&life);
    buried(&life);
}

/* The store and this log are refused, for a reason that has this in it. */
static void assert_refused(struct life *life, struct cmdlog_medium *medium, const char *expected)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    struct cmdlog *log = open_log(medium);
    assert_int_equal(recover_core(life->store, log, &limits, NULL, &core, &recovered, &reason), TL_ERR_CORRUPT);
    if (strstr(reason, expected) == NULL)
        fail_msg("not '%s': %s", expected, reason);
    mem_free(reason);
    cmdlog_close(log);
}

/* A store that is not of the log is refused, also beside a log that is long enough. */
static void test_strangers_are_refused(void **state)
{
    struct life life = born(), other = born();
    (void)state;
    begin(&life, 0, false);
    work(&life);
    end(&life);
    assert_refused(&life, other.medium, "behind the end of the log");
    begin(&other, 0, false);
    work(&other);
    end(&other);
    begin(&other, 0, false);
    work(&other);
    end(&other);
    assert_refused(&life, other.medium,
                   "not of the log beside it, but of another one: put the folders `rocks' and `log'");
    atomic_store(&other_entries, true);
    assert_refused(&life, life.medium, "of other entries than the log beside it has");
    atomic_store(&other_entries, false);
    assert_int_equal(store_checkpoint(life.store, SLICE_LIT("tidestop\x01\x05nonsense")), 0);
    assert_refused(&life, life.medium, "the state in the store's checkpoint");
    assert_int_equal(store_checkpoint(life.store, SLICE_LIT("tidestop\x02\x05too short")), 0);
    assert_refused(&life, life.medium, "the record of the store's checkpoint is damaged");
    buried(&life);
    buried(&other);
}

/* A store whose checkpoint was made by a version that did not note the log is taken as it is; its next checkpoint notes it. */
static void test_a_record_without_lineage(void **state)
{
    enum { MAGIC_BYTES = 8 };
    struct life life = born();
    struct buf record = BUF_INIT(BUF_UNLIMITED), older = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage noted, of_log;
    cmdlog_position position;
    uint64_t chain;
    (void)state;
    begin(&life, 0, false);
    work(&life);
    end(&life);
    assert_int_equal(store_checkpoint_record(life.store, &record), 0);
    struct slice rest = slice_from_offset(buf_as_slice(&record), MAGIC_BYTES + 1);
    assert_true(slice_take_varint(&rest, &position));
    rest = slice_from_offset(rest, CMDLOG_IDENTITY_BYTES);
    assert_true(slice_take_varint(&rest, &chain));
    buf_lit(&older, "tidestop\x01");
    buf_varint(&older, position);
    buf_slice(&older, rest);
    assert_int_equal(store_checkpoint(life.store, buf_as_slice(&older)), 0);
    begin(&life, 0, false);
    assert_int_equal(life.recovered.checkpoint, position);
    must_run(&life, write_command("1", ""));
    assert_int_equal(journal_checkpoint(life.journal), 0);
    buf_clear(&record);
    assert_int_equal(store_checkpoint_record(life.store, &record), 0);
    assert_int_equal(recover_read_position(buf_as_slice(&record), &position, &noted), 0);
    assert_int_equal(cmdlog_lineage(life.log, position, &of_log), 0);
    assert_memory_equal(noted.identity, of_log.identity, CMDLOG_IDENTITY_BYTES);
    assert_int_equal(noted.history_crc, of_log.history_crc);
    end(&life);
    buf_deinit(&record);
    buf_deinit(&older);
    buried(&life);
}

static _Atomic uint64_t read_at = 1700000000 * (uint64_t)TL_SECOND; /* what both clocks said last */

/* A machine so slow that a hundredth of a second goes by between any two looks at a clock. */
static uint64_t slow_clock(void *context)
{
    (void)context;
    return atomic_fetch_add(&read_at, 10 * TL_MS);
}

/* A mark lies at or above the timestamp of its own step, however late that comes. */
static void test_a_slow_machine_stops(void **state)
{
    const struct journal_clocks slow = {.wall = slow_clock, .boot = slow_clock};
    struct life life = born();
    (void)state;
    for (int lives = 0; lives < 3; lives++) {
        begin_with(&life, (struct journal_options){.clocks = &slow});
        must_run(&life, write_command("before", ""));
        journal_close(life.journal); /* its workers use the core until then */
        tl_ts newest = core_last_ts(life.core);
        core_close(life.core);
        cmdlog_close(life.log);
        begin_with(&life, (struct journal_options){.clocks = &slow});
        struct command *command = run(&life, write_command("after", ""));
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_true(command->ts > newest);
        command_free(command);
        end(&life);
    }
    buried(&life);
}

/* A mark says what the state was: where the log makes another, the first that differs is told, and the rest is applied. */
static void test_another_state_is_told(void **state)
{
    struct life life = born();
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;
    (void)state;
    begin(&life, 0, false);
    must_run(&life, write_command("before", ""));
    end(&life);
    struct cmdlog *log = open_log(life.medium);
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    cmdlog_position wrong = 0, right = 0;
    for (int i = 0; i < 2; i++) {
        struct buf bytes = BUF_INIT(BUF_UNLIMITED);
        struct command_group_header first = {.ts = 1};
        struct command *mark = command_new(COMMAND_MARK, DIALECT_7);
        mark->mark = (struct mark_command){.ceiling = 1, .payload = SLICE_LIT(""), .chain = i == 0 ? 4711 : 0};
        command_group_begin(&first, &bytes);
        command_group_add(mark, &bytes);
        struct slice part = buf_as_slice(&bytes);
        assert_int_equal(cmdlog_append(log, &part, 1, i == 0 ? &wrong : &right), 0);
        command_free(mark);
        buf_deinit(&bytes);
    }
    assert_int_equal(cmdlog_sync(log, right), 0);
    assert_int_equal(recover_core(life.store, log, &limits, NULL, &core, &recovered, &reason), 0);
    assert_int_equal(recovered.differs, wrong);
    assert_int_equal(recovered.position, right);
    core_close(core);
    cmdlog_close(log);
    buried(&life);
}

static _Atomic uint64_t leapt;

static uint64_t leaping_clock(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TL_SECOND + (uint64_t)now.tv_nsec / 1000 + atomic_load(&leapt);
}

static void *checkpoint(void *context)
{
    const struct life *life = context;
    assert_int_equal(journal_checkpoint(life->journal), 0);
    return NULL;
}

/*
 * A backup has a checkpoint, and before it has told the log of that `_forcemerge` has the next. The log is told of the older one first: it would take it for the newest,
 * and what lies behind it is let go for the other one.
 */
static void test_checkpoints_are_noted_in_order(void **state)
{
    struct life life = born();
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint newest;
    pthread_t thread;
    (void)state;
    begin(&life, 0, false);
    must_run(&life, write_command("1", ""));
    atomic_store(&noted_out_of_order, false);
    atomic_store(&newest_noted, 0);
    atomic_store(&notes_begun, 0);
    atomic_store(&notes_done, 0);
    atomic_store(&hold_first_note, true);
    assert_int_equal(pthread_create(&thread, NULL, checkpoint, &life), 0);
    while (atomic_load(&notes_begun) == 0)
        usleep(1000);
    must_run(&life, write_command("2", ""));
    checkpoint(&life);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&noted_out_of_order));
    assert_int_equal(cmdlog_get_checkpoint(life.log, 0, place, &newest), 0);
    assert_int_equal(newest.position, atomic_load(&newest_noted));
    end(&life);
    buried(&life);
}

static struct command *session_status(void)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_SESSIONS;
    return command;
}

/*
 * The log has no room, and the mark is used up: who only looks is answered, who writes is told, and nobody waits for room with the core in
 * hand. What ends a wait does so when there is room again.
 */
static void test_a_full_log(void **state)
{
    const struct journal_clocks leaping = {.wall = leaping_clock, .boot = leaping_clock};
    struct life life = born();
    sem_t answered, ended;
    (void)state;
    sem_init(&answered, 0, 0);
    sem_init(&ended, 0, 0);
    begin_with(&life, (struct journal_options){.clocks = &leaping});
    must_run(&life, txn_command(COMMAND_TXN_BEGIN, "first"));
    must_run(&life, write_command("1", "first"));
    struct command *waiting = write_command("1", "");
    waiting->on_done = done;
    waiting->context = &answered;
    journal_submit(life.journal, waiting, false);
    must_run(&life, session_status()); /* behind it: now it waits */
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);
    cancel->cancel.request = waiting->request;
    cancel->on_done = done;
    cancel->context = &ended;

    atomic_store(&log_is_full, true);
    for (int times = 0; times < 3; times++) {
        atomic_fetch_add(&leapt, 20 * TL_SECOND);
        must_run(&life, session_status());
        struct command *refused = run(&life, write_command("2", ""));
        assert_int_equal(refused->problem.type, PROBLEM_DISK_FULL);
        command_free(refused);
    }
    journal_submit(life.journal, cancel, false);
    must_run(&life, session_status());
    assert_int_equal(sem_trywait(&answered), -1);

    atomic_store(&log_is_full, false);
    must_run(&life, write_command("2", ""));
    sem_wait(&ended);
    sem_wait(&answered);
    assert_int_not_equal(waiting->problem.type, PROBLEM_NONE);
    command_free(waiting);
    command_free(cancel);
    sem_destroy(&answered);
    sem_destroy(&ended);
    end(&life);
    buried(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_log_makes_the_same_core),
        cmocka_unit_test(test_what_was_open_goes_on),
        cmocka_unit_test(test_the_log_says_the_limits),
        cmocka_unit_test(test_what_the_server_had_itself_is_rolled_back),
        cmocka_unit_test(test_a_lost_machine_rolls_back),
        cmocka_unit_test(test_what_a_start_applied_counts),
        cmocka_unit_test(test_strangers_are_refused),
        cmocka_unit_test(test_a_slow_machine_stops),
        cmocka_unit_test(test_another_state_is_told),
        cmocka_unit_test(test_a_full_log),
        cmocka_unit_test(test_checkpoints_are_noted_in_order),
        cmocka_unit_test(test_a_record_without_lineage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
