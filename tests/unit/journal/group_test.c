/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of the local journal: which commands are answered together.
 *
 * Goal: a group ends when it has done much work, no reply waits for a TICK or for the end of a
 * pause, and no caller's thread is faster than a TICK that is due. Method: the workers are stopped
 * before they acquire core_lock, or the test has it, which makes the content of the queue
 * deterministic; each step is recorded with the hold of core_lock and the entry of the log in
 * which it is executed. Steps without a bound are claimed: no command makes one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/cmdlog_fixture.h"
#include "lib/unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/command/command_codec.h"
#include "core/unit/work.h"
#include "journal/journal.h"
#include "journal/journal_internal.h"
#include "json/json.h"
#include "store/store.h"

enum { STEPS_MAX = 64 };

/* A step of the core. */
struct step {
    uint64_t request;
    enum command_type type;
    unsigned hold;  /* of core_lock by a worker */
    unsigned entry; /* of the log */
    bool on_caller;
    uint64_t work; /* that it did */
};

/*
 * The clock by which the journal measures durations: it runs so slowly that no delay of the machine ends a group, and
 * each step adds `step_us`.
 */
enum { CLOCK_SLOWNESS = 1000 };
static _Atomic uint64_t clock_begun, clock_added, step_us;

/* What the workers do, and whether they are stopped. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopped;
    bool stop_after_close; /* `stopped` is set when a session was closed */
    bool checkpointing;    /* no checkpoint is durable */
    bool busy;             /* a thread that only tries to acquire core_lock finds it held */
    size_t entry_max;      /* bytes for which the log has space; 0: any */
    unsigned refused;      /* completed commands for which it had none */
    unsigned waiting;      /* workers that are stopped */
    unsigned done;         /* completed commands */
    unsigned prepared;     /* the log, which wanted space */
    unsigned holds;        /* of core_lock by workers */
    unsigned entries;      /* appended to the log */
    unsigned ticks;        /* steps of COMMAND_TICK */
    unsigned unbounded;    /* version of the commands whose steps count as unbounded; 0: none */
    unsigned reports;      /* lines of the log about such steps */
    struct step steps[STEPS_MAX];
    size_t step_count;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_test;

int __real_pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
int __wrap_cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
int __real_core_step(struct core *core, struct command *command, struct effects *effects);
int __wrap_core_step(struct core *core, struct command *command, struct effects *effects);

void __wrap_log_line(enum log_level level, const char *format, ...);

void __wrap_log_line(enum log_level level, const char *format, ...)
{
    char line[1000];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&seen.lock);
    seen.reports += level == LOG_WARNING && strstr(line, "[write] took 1000000 units") != NULL;
    pthread_mutex_unlock(&seen.lock);
}

/* Makes the step of a write count as one that was not divided. */
static void claim_unbounded(struct core *core, unsigned version)
{
    struct core_metrics *metrics = (struct core_metrics *)(uintptr_t)core_metrics(core);
    metric_add(&metrics->steps_undivided, 1);
    metric_set(&metrics->undivided_command, COMMAND_WRITE);
    metric_set(&metrics->undivided_version, version);
    metric_set(&metrics->undivided_work, 1000000);
}

int __real_store_checkpointed(struct store *store);
int __wrap_store_checkpointed(struct store *store);

int __wrap_store_checkpointed(struct store *store)
{
    pthread_mutex_lock(&seen.lock);
    bool checkpointing = seen.checkpointing;
    pthread_mutex_unlock(&seen.lock);
    return checkpointing ? 0 : __real_store_checkpointed(store);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(&seen.lock);
    bool busy = seen.busy;
    pthread_mutex_unlock(&seen.lock);
    return busy ? EBUSY : __real_pthread_mutex_trylock(lock);
}

/* Only workers call it, to acquire core_lock. */
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until)
{
    pthread_mutex_lock(&seen.lock);
    seen.waiting++;
    pthread_cond_broadcast(&seen.changed);
    while (seen.stopped)
        pthread_cond_wait(&seen.changed, &seen.lock);
    seen.waiting--;
    pthread_mutex_unlock(&seen.lock);
    int r = __real_pthread_mutex_timedlock(lock, until);
    if (r == 0) {
        pthread_mutex_lock(&seen.lock);
        seen.holds++;
        pthread_mutex_unlock(&seen.lock);
    }
    return r;
}

int __wrap_cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].len;
    pthread_mutex_lock(&seen.lock);
    seen.entries++;
    bool full = seen.entry_max > 0 && bytes > seen.entry_max;
    pthread_mutex_unlock(&seen.lock);
    return full ? TL_ERR_NO_SPACE : __real_cmdlog_append(log, parts, count, ret_position);
}

int __wrap_core_step(struct core *core, struct command *command, struct effects *effects)
{
    enum command_type type = command->type;
    pthread_mutex_lock(&seen.lock);
    struct step step = {command->request, type, seen.holds, seen.entries, is_test, 0};
    struct step *recorded = seen.step_count < STEPS_MAX ? &seen.steps[seen.step_count++] : &step;
    *recorded = step;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    uint64_t bound = core_end_work(core, command);
    int r = __real_core_step(core, command, effects);
    atomic_fetch_add(&clock_added, atomic_load(&step_us));
    INSIST(bound == CORE_WORK_UNKNOWN || core_step_work(core) <= WORK_UNIT + bound);
    pthread_mutex_lock(&seen.lock);
    recorded->work = core_step_work(core);
    if (type == COMMAND_WRITE && seen.unbounded > 0)
        claim_unbounded(core, seen.unbounded);
    seen.ticks += type == COMMAND_TICK;
    pthread_cond_broadcast(&seen.changed);
    seen.stopped = seen.stopped || (type == COMMAND_SESSION_CLOSE && seen.stop_after_close);
    pthread_mutex_unlock(&seen.lock);
    return r;
}

static void stop_workers(bool stopped)
{
    pthread_mutex_lock(&seen.lock);
    seen.stopped = stopped;
    seen.stop_after_close = false;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static void await(const unsigned *counter, unsigned wanted)
{
    pthread_mutex_lock(&seen.lock);
    while (*counter < wanted)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

/* Returns: the step of a command. Requires: it was executed, among the first STEPS_MAX. */
static struct step step_of(uint64_t request)
{
    struct step step = {0};
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < seen.step_count; i++)
        if (seen.steps[i].request == request)
            step = seen.steps[i];
    pthread_mutex_unlock(&seen.lock);
    assert_int_equal(step.request, request);
    return step;
}

static bool has_step(uint64_t request)
{
    for (size_t i = 0; i < seen.step_count; i++)
        if (seen.steps[i].request == request)
            return true;
    return false;
}

/* Waits until the step of a command has begun: the next hold of core_lock finds it done. */
static void await_step(uint64_t request)
{
    pthread_mutex_lock(&seen.lock);
    while (!has_step(request))
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

/* --- A journal ---------------------------------------------------------------------------------------------------- */

struct group_box {
    struct store *store;
    struct cmdlog_fixture log;
    struct core *core;
    struct journal *journal;
};

/* Sessions are cleaned up in many steps. */
/* The log says that it wants space while `wants_space`, until a worker prepares it. */
static struct {
    struct cmdlog_functions functions;
    void (*head)(struct cmdlog *log, struct cmdlog_head *ret_head);
    bool wants_space;
} thirsty;

static void thirsty_head(struct cmdlog *log, struct cmdlog_head *ret_head)
{
    thirsty.head(log, ret_head);
    pthread_mutex_lock(&seen.lock);
    ret_head->wants_space = thirsty.wants_space;
    pthread_mutex_unlock(&seen.lock);
}

static int thirsty_preallocate(struct cmdlog *log)
{
    (void)log;
    pthread_mutex_lock(&seen.lock);
    seen.prepared += thirsty.wants_space;
    thirsty.wants_space = false;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    return 0;
}

static uint64_t read_wall(void *context)
{
    (void)context;
    return clock_wall_us();
}

static uint64_t read_boot(void *context)
{
    (void)context;
    uint64_t begun = atomic_load(&clock_begun);
    return begun + (clock_boot_us() - begun) / CLOCK_SLOWNESS + atomic_load(&clock_added);
}

static void open_box(struct group_box *fixture)
{
    static const struct journal_clocks clocks = {read_wall, read_boot, NULL};
    struct core_limits limits = core_limits_default();
    struct journal_options options = {.limits = &limits, .clocks = &clocks};
    atomic_store(&clock_begun, clock_boot_us());
    is_test = true;
    limits.ephemeral_batch = limits.purge_batch = 1;
    fixture->store = store_open_mem();
    fixture->log = (struct cmdlog_fixture){0};
    fixture->core = cmdlog_fixture_begin(&fixture->log, fixture->store, &options);
    thirsty.functions = *fixture->log.log->functions;
    thirsty.head = thirsty.functions.head;
    thirsty.functions.head = thirsty_head;
    thirsty.functions.preallocate = thirsty_preallocate;
    fixture->log.log->functions = &thirsty.functions;
    assert_int_equal(journal_open_local(fixture->core, fixture->store, &options, &fixture->journal), 0);
    pthread_mutex_lock(&seen.lock);
    seen.step_count = 0;
    seen.done = seen.ticks = 0;
    pthread_mutex_unlock(&seen.lock);
}

static void close_box(struct group_box *fixture)
{
    journal_close(fixture->journal);
    core_close(fixture->core);
    cmdlog_fixture_end(&fixture->log);
    cmdlog_fixture_free(&fixture->log);
    store_close(fixture->store);
}

static void done(struct command *command)
{
    bool refused = command->problem.type == PROBLEM_DISK_FULL;
    if (command->problem.type != PROBLEM_NONE)
        print_message("%.*s\n", SLICE_ARG(command->problem.reason));
    INSIST(refused || command->problem.type == PROBLEM_NONE);
    INSIST(refused || command->type != COMMAND_WRITE || command->write.results->outcome != WRITE_FAILED);
    command_free(command);
    pthread_mutex_lock(&seen.lock);
    INSIST(!refused || seen.entry_max > 0);
    seen.refused += refused;
    seen.done++;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

/* Returns: the command's number. */
static uint64_t submit(struct group_box *fixture, struct command *command, bool may_block)
{
    static uint64_t number;
    command->request = ++number;
    command->on_done = done;
    journal_submit(fixture->journal, command, may_block);
    return number;
}

static struct write_item *new_item(struct command *command, const char *id)
{
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = SLICE_LIT("fs"),
                                .id = slice_from(id),
                                .source = SLICE_LIT("{\"v\":1}"),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    return item;
}

static struct command *write_command(const char *id)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = new_item(command, id);
    command->write.item_count = 1;
    command->owner.timeout_us = 60 * TL_SECOND;
    return command;
}

/* A write that takes longer than a group may, which its size shows. */
static struct command *large_write(const char *id)
{
    enum { BYTES = 2 << 20 };
    struct command *command = write_command(id);
    command->write.items->source = arena_printf(&command->arena, "{\"v\":1%*s}", BYTES, "");
    return command;
}

/* A write that takes longer than a group may, which is known after its step. */
static struct command *script_write(const char *id)
{
    struct command *command = write_command(id);
    struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
    update->script_lang = SLICE_LIT("painless");
    update->script_source = SLICE_LIT("int n = 0; for (int i = 0; i < 200000; i++) { n += i } ctx._source.v = n");
    command->write.items->op = WRITE_UPDATE;
    command->write.items->source = SLICE_NONE;
    command->write.items->update = update;
    return command;
}

static struct command *partial_update(const char *id)
{
    struct command *command = write_command(id);
    struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
    update->doc = SLICE_LIT("{\"v\":2}");
    command->write.items->op = WRITE_UPDATE;
    command->write.items->source = SLICE_NONE;
    command->write.items->update = update;
    return command;
}

/* A LOCK or an UNLOCK by a session of `count` documents, named by `prefix` and a number. */
static struct command *lock_command(enum command_type type, const char *session, const char *prefix, size_t count)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner = (struct command_owner){.session = slice_from(session), .timeout_us = 60 * TL_SECOND};
    command->lock.targets = arena_zalloc(&command->arena, (count + 1) * sizeof *command->lock.targets);
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%s%zu", prefix, i)};
    return command;
}

static struct command *open_command(const char *session)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(session);
    command->session.ttl_us = 60 * TL_SECOND;
    return command;
}

static struct command *txn_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = slice_from(id);
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 60 * TL_SECOND;
    return command;
}

/* A write in a transaction of `count` documents, named by it and a number. */
static struct command *txn_write(const char *txn, size_t count)
{
    struct command *command = write_command(txn);
    const struct write_item item = *command->write.items;
    command->owner.transaction = slice_from(txn);
    command->write.items = arena_zalloc(&command->arena, count * sizeof item);
    command->write.item_count = count;
    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = item;
        command->write.items[i].id = arena_printf(&command->arena, "%s%zu", txn, i);
    }
    return command;
}

static struct command *session_command(enum command_type type)
{
    enum { ACTIONS = 8 };
    static const char *const ids[ACTIONS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = SLICE_LIT("holder");
    command->session.ttl_us = 60 * TL_SECOND;
    command->session.force = type == COMMAND_SESSION_CLOSE;
    if (type == COMMAND_SESSION_OPEN) {
        command->session.on_expire = arena_zalloc(&command->arena, ACTIONS * sizeof *command->session.on_expire);
        command->session.on_expire_count = ACTIONS;
        for (size_t i = 0; i < ACTIONS; i++)
            command->session.on_expire[i] = *new_item(command, ids[i]);
    }
    return command;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

/*
 * A group ends after the command with which it has done much work, and before one that is expected
 * to do much. Writes of documents share an entry; a script has its own, so that the group can end
 * before it is known what the next command does.
 */
static void test_group_ends_with_much_work(void **state)
{
    enum { COMMANDS = 6 };
    struct group_box fixture;
    uint64_t numbers[COMMANDS];
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, write_command("s"), false);
    await(&seen.done, 1);
    stop_workers(true);
    struct command *commands[] = {write_command("1"), write_command("2"), large_write("3"),
                                  write_command("4"), script_write("s"),  write_command("5")};
    for (size_t i = 0; i < COMMANDS; i++)
        numbers[i] = submit(&fixture, commands[i], false);
    stop_workers(false);
    await(&seen.done, 1 + COMMANDS);
    for (size_t i = 0; i < COMMANDS; i++)
        steps[i] = step_of(numbers[i]);
    assert_int_equal(steps[0].hold, steps[1].hold);
    assert_true(steps[1].hold < steps[2].hold);
    assert_true(steps[2].hold < steps[3].hold);
    assert_int_equal(steps[3].hold, steps[4].hold);
    assert_true(steps[4].hold < steps[5].hold);
    assert_int_equal(steps[0].entry, steps[1].entry);
    assert_true(steps[3].entry < steps[4].entry);
    close_box(&fixture);
}

/* Has the workers execute commands that are all in the queue before. Returns: their steps. */
static void run_queued(struct group_box *fixture, struct command **commands, size_t count, struct step *ret_steps)
{
    uint64_t numbers[STEPS_MAX];
    pthread_mutex_lock(&fixture->journal->core_lock);
    pthread_mutex_lock(&seen.lock);
    unsigned before = seen.done;
    seen.step_count = 0;
    pthread_mutex_unlock(&seen.lock);
    for (size_t i = 0; i < count; i++)
        numbers[i] = submit(fixture, commands[i], false);
    pthread_mutex_unlock(&fixture->journal->core_lock);
    await(&seen.done, before + (unsigned)count);
    for (size_t i = 0; i < count; i++)
        ret_steps[i] = step_of(numbers[i]);
}

/*
 * Updates did many times as much as their size says, each more than a group should. The next one begins a group of
 * its own: the commands before it do not wait for its step, as they did at first.
 */
static void test_group_ends_before_what_did_more_than_expected(void **state)
{
    enum { COMMANDS = 3, PUTS = 100 };
    struct group_box fixture;
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, write_command("s"), false);
    await(&seen.done, 1);
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < PUTS && round > 0; i++) { /* of others, in entries of their own */
            unsigned done = seen.done;
            submit(&fixture, write_command("3"), false);
            await(&seen.done, done + 1);
        }
        struct command *commands[] = {write_command("1"), script_write("s"), write_command("2")};
        run_queued(&fixture, commands, COMMANDS, steps);
        assert_int_equal(steps[0].hold == steps[1].hold, round == 0);
        assert_true(steps[1].hold < steps[2].hold);
    }
    close_box(&fixture);
}

/*
 * A group ends when it has taken as long as a group should, although its commands have done less work than that: on a
 * machine that is slower than expected, or whose disk is. No command waits for what follows then.
 */
static void test_group_ends_when_it_takes_long(void **state)
{
    enum { COMMANDS = 9, TOGETHER = 3 };
    struct group_box fixture;
    struct command *commands[COMMANDS];
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, write_command("s"), false);
    await(&seen.done, 1);
    for (uint64_t slow = 0; slow < 2; slow++) {
        for (size_t i = 0; i < COMMANDS; i++)
            commands[i] = partial_update("s");
        atomic_store(&step_us, slow * GROUP_US / TOGETHER + slow);
        run_queued(&fixture, commands, COMMANDS, steps);
        atomic_store(&step_us, 0);
        for (size_t i = 1; i < COMMANDS; i++)
            assert_int_equal(steps[i].hold == steps[i - 1].hold, slow == 0 || i % TOGETHER != 0);
    }
    close_box(&fixture);
}

/*
 * Puts share an entry, which is applied as a whole. When one took longer than a group should, the next ones have fewer
 * commands, so that the group ends in time, until they are fast again.
 */
static void test_entry_is_smaller_when_it_took_long(void **state)
{
    enum { COMMANDS = 32, FEW = 4, ROUNDS = 12 };
    struct group_box fixture;
    struct command *commands[COMMANDS];
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, write_command("s"), false);
    await(&seen.done, 1);
    for (int round = 0; round < ROUNDS; round++) {
        bool slow = round == 1 || round == 2;
        for (size_t i = 0; i < COMMANDS; i++)
            commands[i] = write_command("s");
        atomic_store(&step_us, slow ? GROUP_US : 0);
        run_queued(&fixture, commands, COMMANDS, steps);
        atomic_store(&step_us, 0);
        bool whole = steps[0].entry == steps[COMMANDS - 1].entry;
        assert_true(round == 0 || round == 1 || round == ROUNDS - 1 ? whole : round > 2 || !whole);
        for (size_t i = FEW; i < COMMANDS && round == 2; i++)
            assert_true(steps[i].hold > steps[i - FEW].hold);
    }
    close_box(&fixture);
}

/* A write of a document with `count` equal numbers, parsed as by a request. */
static struct command *values_write(const char *id, int count, bool parsed)
{
    struct command *command = write_command(id);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_doc *json = arena_alloc(&command->arena, sizeof *json);
    struct problem problem;
    buf_lit(&buf, "{\"v\":[1");
    for (int i = 1; i < count; i++)
        buf_lit(&buf, ",1");
    buf_lit(&buf, "]}");
    command->write.items->source = arena_copy(&command->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    assert_int_equal(
        json_parse(&command->arena, command->write.items->source, DIALECT_7, JSON_DOCUMENT, json, &problem), 0);
    command->write.items->parsed = parsed ? json : NULL;
    return command;
}

/* A document of many values begins a group of its own, though its bytes are few. */
static void test_group_ends_before_document_of_many_values(void **state)
{
    enum { COMMANDS = 3, VALUES = 12000 };
    struct group_box fixture;
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, values_write("v", VALUES, true), false);
    await(&seen.done, 1);
    for (int parsed = 0; parsed < 2; parsed++) {
        struct command *commands[] = {write_command("1"), values_write("2", VALUES, parsed),
                                      values_write("3", VALUES, parsed)};
        run_queued(&fixture, commands, COMMANDS, steps);
        assert_int_equal(steps[0].hold < steps[1].hold, parsed);
        assert_int_equal(steps[1].hold < steps[2].hold, parsed);
    }
    close_box(&fixture);
}

/* A write of two such documents, parsed. */
static struct command *two_values_writes(const char *id, const char *other_id, int count)
{
    struct command *command = values_write(id, count, true);
    const struct write_item item = *command->write.items;
    command->write.items = arena_zalloc(&command->arena, 2 * sizeof item);
    command->write.item_count = 2;
    command->write.items[0] = command->write.items[1] = item;
    command->write.items[1].id = slice_from(other_id);
    return command;
}

/* A write that does more than a group should, but less than its size says, changes nothing for those that follow. */
static void test_write_that_does_less_than_expected(void **state)
{
    enum { VALUES = 60000 };
    struct group_box fixture;
    (void)state;
    open_box(&fixture);
    uint64_t number = submit(&fixture, two_values_writes("1", "2", VALUES), false);
    await(&seen.done, 1);
    assert_true(step_of(number).work > GROUP_WORK);
    submit(&fixture, write_command("3"), false);
    await(&seen.done, 2);
    assert_int_equal(fixture.journal->work_times, 1);
    close_box(&fixture);
}

/* A LOCK does as much as it has locks: many locks are not in the group of the commands before. */
static void test_locks_count_in_group(void **state)
{
    enum { MANY = 5000, COMMANDS = 4 };
    struct group_box fixture;
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, open_command("holder"), false);
    await(&seen.done, 1);
    struct command *commands[] = {
        lock_command(COMMAND_LOCK, "holder", "a", 1), lock_command(COMMAND_LOCK, "holder", "b", MANY),
        lock_command(COMMAND_LOCK, "holder", "c", MANY), lock_command(COMMAND_UNLOCK, "holder", "b", MANY)};
    run_queued(&fixture, commands, COMMANDS, steps);
    assert_int_equal(steps[0].entry, steps[1].entry);
    assert_true(steps[1].hold < steps[2].hold);
    assert_true(steps[2].hold < steps[3].hold);
    close_box(&fixture);
}

/*
 * A release has an entry of its own if requests wait, since it does what waits for the locks, and if it is of so many
 * locks that it is a group's work. So has an update, whose work is that of the stored document.
 */
static void test_releases_and_updates_have_own_entry(void **state)
{
    enum { COMMANDS = 6, MANY = 8000 };
    struct group_box fixture;
    struct step steps[COMMANDS];
    unsigned done_before = 4;
    (void)state;
    open_box(&fixture);
    submit(&fixture, open_command("holder"), false);
    submit(&fixture, open_command("waiter"), false);
    submit(&fixture, lock_command(COMMAND_LOCK, "holder", "a", 3), false);
    submit(&fixture, write_command("s"), false);
    await(&seen.done, done_before);
    struct command *shared[] = {write_command("1"), lock_command(COMMAND_UNLOCK, "holder", "a", 1),
                                write_command("2"), lock_command(COMMAND_UNLOCK, "holder", "a", 0),
                                write_command("3"), partial_update("s")};
    run_queued(&fixture, shared, COMMANDS, steps);
    assert_int_equal(steps[0].entry, steps[4].entry);
    assert_true(steps[4].entry < steps[5].entry);
    assert_int_equal(steps[0].hold, steps[5].hold);
    done_before += COMMANDS;

    submit(&fixture, lock_command(COMMAND_LOCK, "holder", "m", MANY), false);
    await(&seen.done, ++done_before);
    struct command *many[] = {write_command("1"), lock_command(COMMAND_UNLOCK, "holder", "m", 0), write_command("2")};
    run_queued(&fixture, many, 3, steps);
    assert_true(steps[0].entry < steps[1].entry && steps[1].entry < steps[2].entry);
    done_before += 3;

    submit(&fixture, lock_command(COMMAND_LOCK, "holder", "n", MANY / 2), false);
    submit(&fixture, lock_command(COMMAND_LOCK, "waiter", "o", MANY / 2), false);
    await(&seen.done, done_before += 2);
    struct command *halves[] = {lock_command(COMMAND_UNLOCK, "holder", "n", 0),
                                lock_command(COMMAND_UNLOCK, "waiter", "o", 0)};
    run_queued(&fixture, halves, 2, steps);
    assert_true(steps[0].entry < steps[1].entry);
    done_before += 2;

    for (size_t targets = 0; targets < 2; targets++) { /* all of its locks, then this one */
        submit(&fixture, lock_command(COMMAND_LOCK, "holder", "b", 1), false);
        await(&seen.done, ++done_before);
        await_step(submit(&fixture, lock_command(COMMAND_LOCK, "waiter", "b", 1), false));
        struct command *contended[] = {write_command("1"), lock_command(COMMAND_UNLOCK, "holder", "b", targets)};
        run_queued(&fixture, contended, 2, steps);
        assert_true(steps[0].entry < steps[1].entry);
        done_before += 3;
        await(&seen.done, done_before);
        submit(&fixture, lock_command(COMMAND_UNLOCK, "waiter", "b", 0), false);
        await(&seen.done, ++done_before);
    }
    close_box(&fixture);
}

/*
 * The end of a transaction shares an entry, unless it is a group's work, or requests wait for its locks. Commands that
 * precede it in its entry count with what they may add to it.
 */
static void test_ends_of_transactions_share_entry(void **state)
{
    enum { MANY = 1000, COMMANDS = 5, QUEUED = 8, QUEUED_BYTES = 100000 };
    static const char *const ids[] = {"small", "large", "contended", "back", "queued"};
    struct group_box fixture;
    struct step steps[COMMANDS];
    unsigned done_before = 0;
    (void)state;
    open_box(&fixture);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        submit(&fixture, txn_command(COMMAND_TXN_BEGIN, ids[i]), false);
        submit(&fixture, txn_write(ids[i], i == 1 ? MANY : 1), false);
        await(&seen.done, done_before += 2);
    }
    struct command *commands[] = {write_command("1"), txn_command(COMMAND_TXN_COMMIT, "small"), write_command("2"),
                                  txn_command(COMMAND_TXN_COMMIT, "large"), write_command("3")};
    run_queued(&fixture, commands, COMMANDS, steps);
    assert_int_equal(steps[0].entry, steps[2].entry);
    assert_true(steps[2].entry < steps[3].entry && steps[3].entry < steps[4].entry);
    done_before += COMMANDS;

    struct command *back[] = {write_command("1"), txn_command(COMMAND_TXN_ROLLBACK, "back"), write_command("2")};
    run_queued(&fixture, back, 3, steps);
    assert_int_equal(steps[0].entry, steps[2].entry);
    done_before += 3;

    /* Half of a group's work is written, and then committed. */
    struct command *queued[QUEUED + 1];
    struct step queued_steps[QUEUED + 1];
    for (size_t i = 0; i < QUEUED; i++) {
        queued[i] = txn_write("queued", 1);
        queued[i]->write.items->source = arena_printf(&queued[i]->arena, "{\"v\":1%*s}", QUEUED_BYTES, "");
    }
    queued[QUEUED] = txn_command(COMMAND_TXN_COMMIT, "queued");
    run_queued(&fixture, queued, QUEUED + 1, queued_steps);
    assert_int_equal(queued_steps[0].entry, queued_steps[QUEUED - 1].entry);
    assert_true(queued_steps[QUEUED - 1].entry < queued_steps[QUEUED].entry);
    done_before += QUEUED + 1;

    await_step(submit(&fixture, write_command("contended0"), false));
    struct command *contended[] = {write_command("1"), txn_command(COMMAND_TXN_COMMIT, "contended")};
    run_queued(&fixture, contended, 2, steps);
    assert_true(steps[0].entry < steps[1].entry);
    await(&seen.done, done_before + 3);
    close_box(&fixture);
}

/*
 * A TICK that is due after a group is executed in a hold of core_lock of its own: the group is
 * completed, or left to the thread that syncs, when core_lock is released.
 */
static void test_no_group_waits_for_tick(void **state)
{
    struct group_box fixture;
    (void)state;
    open_box(&fixture);
    submit(&fixture, session_command(COMMAND_SESSION_OPEN), false);
    submit(&fixture, session_command(COMMAND_SESSION_CLOSE), false);
    await(&seen.done, 2);
    await(&seen.ticks, 2); /* a stop leaves the cleanup to the next start */
    journal_stop(fixture.journal);
    for (size_t i = 0; i < seen.step_count; i++)
        for (size_t j = 0; j < i && seen.steps[i].type == COMMAND_TICK; j++)
            assert_true(seen.steps[j].request == 0 || seen.steps[j].hold < seen.steps[i].hold);
    close_box(&fixture);
}

/* A caller's thread, for which other requests wait, applies no command that takes long. */
static void test_caller_leaves_long_command_to_worker(void **state)
{
    struct group_box fixture;
    (void)state;
    open_box(&fixture);
    uint64_t number = submit(&fixture, large_write("1"), true);
    await(&seen.done, 1);
    assert_false(step_of(number).on_caller);
    close_box(&fixture);
}

/* A caller's thread does not apply its command while a worker waits for the core to apply a TICK. */
static void test_caller_is_not_ahead_of_due_tick(void **state)
{
    struct group_box fixture;
    (void)state;
    open_box(&fixture);
    submit(&fixture, session_command(COMMAND_SESSION_OPEN), false);
    await(&seen.done, 1);
    seen.stop_after_close = true;
    submit(&fixture, session_command(COMMAND_SESSION_CLOSE), false);
    await(&seen.waiting, WORKER_COUNT);
    assert_int_equal(core_next_wait_end(fixture.core), 0);
    uint64_t number = submit(&fixture, write_command("1"), true);
    stop_workers(false);
    await(&seen.done, 3);
    assert_false(step_of(number).on_caller);
    close_box(&fixture);
}

/*
 * A sync that a caller's thread leaves to the workers is done during a pause, too: while the disk
 * is nearly full, the checkpoint may take as long as it likes.
 */
static void test_pause_holds_no_applied_command(void **state)
{
    struct group_box fixture;
    struct list group = LIST_INIT(group);
    (void)state;
    open_box(&fixture);
    struct journal *journal = fixture.journal;
    struct command *command = write_command("1");
    command->request = UINT64_C(1) << 40;
    command->on_done = done;
    pthread_mutex_lock(&journal->core_lock);
    journal__apply(journal, command, &group);
    journal__record_applied(journal);
    pthread_mutex_lock(&seen.lock);
    seen.checkpointing = true;
    pthread_mutex_unlock(&seen.lock);
    journal->checkpointing = journal->paused = true;
    tl_ts wanted = core_last_ts(fixture.core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_NONE);
    await(&seen.done, 1);
    pthread_mutex_lock(&journal->core_lock);
    assert_true(journal__is_paused(journal));
    pthread_mutex_unlock(&journal->core_lock);
    pthread_mutex_lock(&seen.lock);
    seen.checkpointing = false;
    pthread_mutex_unlock(&seen.lock);
    close_box(&fixture);
}

/*
 * A caller's thread makes no checkpoints: when one is due its command is left to a worker, which begins
 * it. Otherwise the store's memory would grow until an idle worker looks, once a second.
 */
static void make_checkpoints_due(bool busy)
{
    enum { CHECKPOINT_BYTES = 64 << 10, WRITES = 1000, BYTES = 8 << 10, MOST = 32 * CHECKPOINT_BYTES };
    struct group_box fixture;
    open_box(&fixture);
    pthread_mutex_lock(&seen.lock);
    seen.busy = busy;
    pthread_mutex_unlock(&seen.lock);
    pthread_mutex_lock(&fixture.journal->core_lock);
    fixture.journal->checkpoint_bytes = CHECKPOINT_BYTES;
    cmdlog_position before = fixture.journal->checkpoint;
    pthread_mutex_unlock(&fixture.journal->core_lock);
    for (unsigned i = 0; i < WRITES; i++) {
        struct command *command = write_command("1");
        command->write.items->source = arena_printf(&command->arena, "{\"v\":1%*s}", BYTES, "");
        submit(&fixture, command, true);
        await(&seen.done, i + 1);
        assert_in_range(store_uncheckpointed_bytes(fixture.store), 0, MOST);
    }
    pthread_mutex_lock(&fixture.journal->core_lock);
    assert_true(fixture.journal->checkpoint > before);
    pthread_mutex_unlock(&fixture.journal->core_lock);
    pthread_mutex_lock(&seen.lock);
    seen.busy = false;
    pthread_mutex_unlock(&seen.lock);
    close_box(&fixture);
}

static void test_lone_caller_makes_checkpoints_due(void **state)
{
    (void)state;
    make_checkpoints_due(false);
}

/* Two busy workers may each find the other with core_lock whenever they only try to acquire it. */
static void test_busy_workers_make_checkpoints_due(void **state)
{
    (void)state;
    make_checkpoints_due(true);
}

/*
 * An append that finds no space prepared allocates it while it has core_lock. So a lone caller's command is left to
 * a worker when the log wants space, and a worker prepares it after its group, also if core_lock is held then.
 */
static void test_worker_prepares_log_before_it_is_full(void **state)
{
    struct group_box fixture;
    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        open_box(&fixture);
        submit(&fixture, write_command("1"), true);
        await(&seen.done, 1);
        pthread_mutex_lock(&seen.lock);
        seen.prepared = 0;
        thirsty.wants_space = true;
        seen.busy = busy == 1;
        pthread_mutex_unlock(&seen.lock);
        uint64_t number = submit(&fixture, write_command("2"), true);
        await(&seen.done, 2);
        assert_false(step_of(number).on_caller);
        await(&seen.prepared, 1);
        pthread_mutex_lock(&seen.lock);
        seen.busy = false;
        pthread_mutex_unlock(&seen.lock);
        close_box(&fixture);
    }
}

/* While a checkpoint is not durable and the memory is at its limit, a caller's thread applies nothing. */
static void test_lone_caller_stalls_at_limit_of_memory(void **state)
{
    struct group_box fixture;
    (void)state;
    open_box(&fixture);
    struct journal *journal = fixture.journal;
    submit(&fixture, write_command("1"), true);
    await(&seen.done, 1);
    pthread_mutex_lock(&journal->core_lock);
    pthread_mutex_lock(&seen.lock);
    seen.checkpointing = true;
    pthread_mutex_unlock(&seen.lock);
    journal->checkpointing = true;
    journal->checkpoint_bytes = 1;
    pthread_mutex_unlock(&journal->core_lock);
    uint64_t request = submit(&fixture, write_command("2"), true);
    pthread_mutex_lock(&journal->core_lock);
    assert_true(journal__is_paused(journal));
    pthread_mutex_lock(&seen.lock);
    assert_false(has_step(request));
    assert_int_equal(seen.done, 1);
    seen.checkpointing = false;
    pthread_mutex_unlock(&seen.lock);
    pthread_mutex_unlock(&journal->core_lock);
    await(&seen.done, 2);
    close_box(&fixture);
}

/* A release needs little space: it is executed although a write of its entry finds none. */
static void test_full_log_refuses_large_commands_only(void **state)
{
    enum { COMMANDS = 3, BYTES = 100000 };
    struct group_box fixture;
    struct step steps[COMMANDS];
    (void)state;
    open_box(&fixture);
    submit(&fixture, open_command("holder"), false);
    submit(&fixture, lock_command(COMMAND_LOCK, "holder", "a", 2), false);
    await(&seen.done, 2);
    struct command *commands[] = {lock_command(COMMAND_UNLOCK, "holder", "a", 1), write_command("1"),
                                  lock_command(COMMAND_UNLOCK, "holder", "a", 2)};
    commands[1]->write.items->source = arena_printf(&commands[1]->arena, "{\"v\":1%*s}", BYTES, "");
    pthread_mutex_lock(&fixture.journal->core_lock);
    uint64_t numbers[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        numbers[i] = submit(&fixture, commands[i], false);
    pthread_mutex_lock(&seen.lock);
    seen.entry_max = BYTES;
    seen.refused = 0;
    pthread_mutex_unlock(&seen.lock);
    pthread_mutex_unlock(&fixture.journal->core_lock);
    await(&seen.done, 2 + COMMANDS);
    for (size_t i = 0; i < COMMANDS; i += 2)
        steps[i] = step_of(numbers[i]);
    assert_true(steps[0].entry < steps[2].entry);
    pthread_mutex_lock(&seen.lock);
    assert_int_equal(seen.refused, 1);
    assert_false(has_step(numbers[1]));
    seen.entry_max = 0;
    pthread_mutex_unlock(&seen.lock);
    close_box(&fixture);
}

/* Returns: the number of lines that report steps of so many writes. */
static unsigned count_reports(unsigned version, unsigned writes)
{
    struct group_box fixture;
    open_box(&fixture);
    pthread_mutex_lock(&seen.lock);
    seen.unbounded = version;
    seen.reports = 0;
    pthread_mutex_unlock(&seen.lock);
    for (unsigned i = 0; i < writes; i++) {
        submit(&fixture, write_command("1"), true);
        await(&seen.done, i + 1);
    }
    close_box(&fixture);
    seen.unbounded = 0;
    return seen.reports;
}

/* A step without a bound is a fault of the server, which its log reports; many of them do not fill the log. */
static void test_unbounded_steps_are_reported(void **state)
{
    (void)state;
    assert_int_equal(count_reports(0, 1), 0);
    assert_int_equal(count_reports(COMMAND_CODEC_VERSION, 1), 1);
    assert_int_equal(count_reports(COMMAND_CODEC_VERSION, 3), 2);
    assert_int_equal(count_reports(COMMAND_CODEC_VERSION, 9), 4);
    assert_int_equal(count_reports(COMMAND_CODEC_VERSION - 1, 9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_ends_with_much_work),
        cmocka_unit_test(test_group_ends_when_it_takes_long),
        cmocka_unit_test(test_entry_is_smaller_when_it_took_long),
        cmocka_unit_test(test_group_ends_before_what_did_more_than_expected),
        cmocka_unit_test(test_group_ends_before_document_of_many_values),
        cmocka_unit_test(test_write_that_does_less_than_expected),
        cmocka_unit_test(test_locks_count_in_group),
        cmocka_unit_test(test_releases_and_updates_have_own_entry),
        cmocka_unit_test(test_ends_of_transactions_share_entry),
        cmocka_unit_test(test_no_group_waits_for_tick),
        cmocka_unit_test(test_caller_leaves_long_command_to_worker),
        cmocka_unit_test(test_caller_is_not_ahead_of_due_tick),
        cmocka_unit_test(test_pause_holds_no_applied_command),
        cmocka_unit_test(test_lone_caller_makes_checkpoints_due),
        cmocka_unit_test(test_busy_workers_make_checkpoints_due),
        cmocka_unit_test(test_worker_prepares_log_before_it_is_full),
        cmocka_unit_test(test_lone_caller_stalls_at_limit_of_memory),
        cmocka_unit_test(test_full_log_refuses_large_commands_only),
        cmocka_unit_test(test_unbounded_steps_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
