/* SPDX-License-Identifier: Apache-2.0 */
/* The local journal: beginning, submitting, ending. See README.md, invariants 1 to 5. */
#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "core/catalog/catalog.h"
#include "journal/journal_internal.h"

enum {
    GROUP_MAX_DEFAULT = 256,
    CORE_TRIES = 200,
};

#define FEED_BYTES_DEFAULT ((uint64_t)1 << 30)
#define HISTORY_DEFAULT_US (3600 * TL_SECOND)
#define RECOVERY_DEFAULT_US TL_SECOND
#define CHECKPOINT_BYTES_DEFAULT ((size_t)32 << 20)

/* Whether a command waits for no disk, unless for what others have written: it begins or ends a query transaction. */
static bool needs_no_sync(struct journal *journal, const struct command *command)
{
    if (!command_is(command->type, COMMAND_TXN_BOUNDARY))
        return false;
    return command->txn.mode == TXN_QUERY || queries_has(&journal->queries, command->txn.id);
}

/*
 * Takes the core lock where it is free, or about to be: most steps take a few microseconds, and to have the command handed
 * over and back takes several times as long.
 */
static bool take_core(struct journal *journal)
{
    for (int i = 0; i < CORE_TRIES; i++)
        if (pthread_mutex_trylock(&journal->core_lock) == 0)
            return true;
    return false;
}

/* --- Who leaves --------------------------------------------------------------------------------------------------- */

bool journal__enter(struct command *command)
{
    struct command_waiter *waiter = command->waiter;
    if (waiter == NULL || command_is(command->type, COMMAND_ALWAYS_ADMITTED))
        return true;
    uint64_t number = atomic_load(&waiter->number);
    while (number != COMMAND_WAITER_LEFT)
        if (atomic_compare_exchange_weak(&waiter->number, &number, command->request))
            return true;
    return false;
}

void journal__refuse_left(struct command *command)
{
    problem_set(&command->problem, &command->arena, PROBLEM_TASK_CANCELLED,
                "the request was cancelled, or its connection closed, before this was begun");
}

void journal_waiter_completed(struct command_waiter *waiter)
{
    uint64_t number = atomic_load(&waiter->number);
    while (number != COMMAND_WAITER_LEFT && !atomic_compare_exchange_weak(&waiter->number, &number, 0))
        ;
}

static struct command *new_cancel(uint64_t number)
{
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7); /* it has no reply, so any dialect does */
    cancel->cancel.request = number;
    cancel->on_done = journal__free_internal;
    return cancel;
}

void journal_cancel_waiter(struct journal *journal, struct command_waiter *waiter)
{
    uint64_t number = atomic_exchange(&waiter->number, COMMAND_WAITER_LEFT);
    if (number != 0 && number != COMMAND_WAITER_LEFT)
        journal_submit(journal, new_cancel(number), false);
}

/* Returns: a number above all before. */
static uint64_t next_number(struct journal *journal)
{
    return atomic_fetch_add_explicit(&journal->requests, 1, memory_order_relaxed) + 1;
}

static struct command *cancel_of_all(struct journal *journal)
{
    struct command *cancel = new_cancel((uint64_t)journal_host_number(journal) << HOST_SHIFT);
    cancel->request = next_number(journal);
    return cancel;
}

/* Of those that go by an owner some wait for locks; that others are followed by a CANCEL does no harm. */
static bool may_wait(const struct command *command)
{
    return command_is(command->type, COMMAND_OWNED) && !command_is(command->type, COMMAND_ALWAYS_ADMITTED);
}

void journal__queue(struct journal *journal, struct command *command)
{
    if (journal->cluster != NULL)
        command->clock = journal__boot(journal); /* until it is applied: since when it waits */
    journal->queued++;
    list_append(&journal->queue, &command->link);
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    if (journal->waits_end && may_wait(command))
        journal__queue(journal, cancel_of_all(journal));
}

void journal_end_waits(struct journal *journal)
{
    struct command *cancel = cancel_of_all(journal);
    pthread_mutex_lock(&journal->queue_lock);
    bool again = journal->waits_end || journal->stopping;
    journal->waits_end = true;
    if (!again)
        journal__queue(journal, cancel);
    pthread_mutex_unlock(&journal->queue_lock);
    if (again)
        command_free(cancel);
}

/* --- Submitting --------------------------------------------------------------------------------------------------- */

/* Applies the command here and now if nothing is ahead of it. */
static bool submit_here(struct journal *journal, struct command *command, enum sync_rounds rounds)
{
    if (!take_core(journal))
        return false;
    bool held = journal__is_held(journal);
    pthread_mutex_lock(&journal->queue_lock);
    bool free_to_go =
        !held && list_empty(&journal->queue) && !journal->stopping && !journal->waits_end && journal__enter(command);
    pthread_mutex_unlock(&journal->queue_lock);
    if (!free_to_go) {
        pthread_mutex_unlock(&journal->core_lock);
        return false;
    }
    struct list group = LIST_INIT(group);
    tl_ts written = core_must_sync_ts(journal->core);
    journal__apply(journal, command, &group);
    journal__note_applied(journal);
    bool idle = list_empty(&group) && core_must_sync_ts(journal->core) == written; /* it waits, and changed nothing */
    tl_ts wanted = idle ? 0 : core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, rounds);
    return true;
}

void journal_submit(struct journal *journal, struct command *command, bool lone)
{
    REQUIRE(command->on_done != NULL);
    if (command->request == 0)
        command->request = next_number(journal);
    if (journal__refuse_full(journal, command)) {
        command->on_done(command);
        return;
    }
    if (journal->cluster != NULL) {
        cluster__submit(journal, command);
        return;
    }
    if ((lone || needs_no_sync(journal, command)) && submit_here(journal, command, lone ? SYNC_ONCE : SYNC_NONE))
        return;
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    bool queued = !stopped && journal__enter(command);
    if (queued)
        journal__queue(journal, command);
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped)
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is stopping; try again later");
    else if (!queued)
        journal__refuse_left(command);
    if (!queued)
        command->on_done(command);
}

static void init_locks(struct journal *journal)
{
    pthread_mutex_init(&journal->queue_lock, NULL);
    pthread_cond_init(&journal->queue_filled, NULL);
    pthread_mutex_init(&journal->core_lock, NULL);
    pthread_mutex_init(&journal->note_lock, NULL);
    pthread_mutex_init(&journal->publish_lock, NULL);
    pthread_cond_init(&journal->gathered, NULL);
    pthread_mutex_init(&journal->pin_lock, NULL);
}

static void deinit_locks(struct journal *journal)
{
    pthread_mutex_destroy(&journal->queue_lock);
    pthread_cond_destroy(&journal->queue_filled);
    pthread_mutex_destroy(&journal->core_lock);
    pthread_mutex_destroy(&journal->note_lock);
    pthread_cond_destroy(&journal->gathered);
    pthread_mutex_destroy(&journal->publish_lock);
    pthread_mutex_destroy(&journal->pin_lock);
}

/*
 * The core goes by what the log says, and not by what this life of the server was told, nor by the defaults of its build. Requires: core_lock.
 */
static void set_limits(struct journal *journal, const struct core_limits *limits, struct list *group)
{
    if (limits == NULL)
        limits = core_limits(journal->core);
    if (core_limits_recorded(journal->core) && core_limits_equal(limits, core_limits(journal->core)))
        return;
    struct command *command = command_new(COMMAND_LIMITS, DIALECT_7);
    command->on_done = journal__free_internal;
    command->limits.limits = *limits;
    journal__apply(journal, command, group);
}

/*
 * What goes on from the life before: sessions, locks, transactions. Requests that waited end, since nobody can be told what comes of them, and
 * transactions of which requests may be missing. Requires: core_lock.
 */
static void end_former(struct journal *journal, bool machine_lost, struct list *group)
{
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7); /* 0: all of this host */
    command->on_done = journal__free_internal;
    journal__apply(journal, command, group);
    if (!machine_lost)
        return;
    command = command_new(COMMAND_MACHINE_LOST, DIALECT_7);
    command->on_done = journal__free_internal;
    journal__apply(journal, command, group);
}

/* The catalog as it was found, and what the first commands have completed. Requires: core_lock; gives it up. */
static void publish(struct journal *journal, struct list *group)
{
    journal->effects.catalog_changed = true;
    journal__note_applied(journal);
    catalog_unref(journal->catalog); /* a journal in a cluster publishes again, when it has joined */
    journal->catalog = catalog_ref(journal->applied_catalog);
    journal->catalog_ts = journal->applied_catalog_ts;
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, group, wanted, SYNC_ALL);
}

/* Comes back as often as it takes: before it is through nothing else may happen. Requires: core_lock. */
static void come_up(struct journal *journal, struct list *group)
{
    for (bool more = true; more;) {
        struct command *command = command_new(COMMAND_RESTART, DIALECT_7);
        command->on_done = journal__free_internal;
        journal__apply(journal, command, group);
        more = command->restart.resubmit;
    }
}

/* The first commands: by what limits all go, leases start anew, and the catalog as it was found is published. */
static void restart(struct journal *journal, const struct journal_options *options)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    set_limits(journal, options->limits, &group);
    come_up(journal, &group);
    end_former(journal, options->host_crashed, &group);
    journal__set_feed(journal, options->feed_off, &group);
    publish(journal, &group);
}

void journal__publish(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    publish(journal, &group);
}

/* The clock of commands goes on where it was: the server's absence counts against nobody. No timestamp up to the mark is given again. */
static void init_log(struct journal *journal, const struct journal_options *options)
{
    journal->entry = BUF_INIT(BUF_UNLIMITED);
    list_init(&journal->aside);
    list_init(&journal->postponed);
    journal->log = options->log;
    journal->at_work = options->at_work;
    journal->position = options->cmdlog_position;
    journal->work_us = options->log_work_us;
    journal->recovery_us = options->recovery_us ? options->recovery_us : RECOVERY_DEFAULT_US;
    journal->checkpoint_bytes = options->checkpoint_bytes ? options->checkpoint_bytes : CHECKPOINT_BYTES_DEFAULT;
    journal->pace.lost = journal->pace.last_boot - core_clock(journal->core);
    tl_ts mark = core_ts_ceiling(journal->core);
    journal->last_ts = mark > journal->last_ts ? mark : journal->last_ts;
}

struct journal *journal__new(struct core *core, struct store *store, const struct journal_options *options)
{
    struct journal *journal = mem_zalloc(sizeof *journal);
    journal->core = core;
    journal->store = store;
    journal->history_us = options->history_us ? options->history_us : HISTORY_DEFAULT_US;
    journal->feed_us = options->feed_us ? options->feed_us : journal->history_us;
    journal->feed_bytes_max = options->feed_bytes_max ? options->feed_bytes_max : FEED_BYTES_DEFAULT;
    journal->group_max = options->group_max ? options->group_max : GROUP_MAX_DEFAULT;
    if (options->directory.len > 0)
        journal->directory = mem_strdup(options->directory.data, options->directory.len);
    journal->reserve_bytes = options->reserve_bytes;
    list_init(&journal->queue);
    list_init(&journal->applied);
    effects_init(&journal->effects);
    journal->effects.query_txn_used = journal__query_seen;
    journal->effects.query_txn_ended = journal__query_ended;
    queries_init(&journal->queries);
    journal->wait_end = journal->lease_end = TL_TS_MAX;
    journal->last_ts = core_last_ts(core);
    journal->clocks = options->clocks != NULL ? *options->clocks : journal__machine_clocks;
    pace_init(&journal->pace, journal__boot(journal));
    init_log(journal, options);
    journal__load_past(journal);
    atomic_init(&journal->writable, true);
    atomic_init(&journal->ready, true);
    init_locks(journal);
    journal__check_space(journal);
    return journal;
}

int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal)
{
    struct journal *journal = journal__new(core, store, options);
    core_reset_metrics(core);
    restart(journal, options);
    journal->serving = true;

    for (unsigned i = 0; i < WORKER_COUNT; i++) {
        if (pthread_create(&journal->workers[i], NULL, journal__worker, journal) != 0) {
            log_error("cannot start a thread of the journal");
            journal_close(journal);
            return tl_trace(TL_ERR_IO);
        }
        journal->worker_count++;
    }
    *ret_journal = journal;
    return 0;
}

/* Completes what waits in the core, after the workers have ended. */
static void stop_core(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    journal__await_held(journal);
    if (journal->cluster != NULL) {
        journal__end_checkpoints(journal); /* whatever follows is this host's alone */
    } else if (!journal__is_held(journal)) {
        journal->maintain_at = 0; /* it has records to write, for the next start to find */
        (void)journal__maintain(journal, &group);
        (void)journal__put_mark(journal, 0); /* the next start has nothing to leap over */
    }
    if (journal->cluster == NULL) {
        journal__end_log(journal); /* the next start goes on from here, and knows nothing of what follows */
        journal__take_aside(journal, &group);
    }
    core_stop(journal->core, &journal->effects);
    journal__move_completed(&journal->effects, &group);
    journal__note_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    journal__finish_last(journal); /* a caller's thread may be at the disk, and this group behind it */
}

const struct journal_metrics *journal_metrics(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock); /* held for a few instructions only */
    metric_set(&journal->figures.queued, journal->queued - journal->taken);
    pthread_mutex_unlock(&journal->queue_lock);
    return &journal->figures;
}

const struct core_metrics *journal_core_metrics(struct journal *journal)
{
    return core_metrics(journal->core);
}

void journal_stop(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    journal->stopping = true;
    pthread_cond_broadcast(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped)
        return;
    journal__check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed))
        store_give_up(journal->store); /* who is in the middle of something ends the process: the log has it */
    if (journal->cluster != NULL)
        cluster__stop(journal);
    for (unsigned i = 0; i < journal->worker_count; i++)
        pthread_join(journal->workers[i], NULL);
    stop_core(journal);
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    journal_stop(journal);
    catalog_unref(journal->catalog);
    catalog_unref(journal->applied_catalog);
    pins_deinit(&journal->pins);
    queries_deinit(&journal->queries);
    cluster__free(journal);
    deinit_locks(journal);
    buf_deinit(&journal->entry);
    mem_free(journal->directory);
    mem_free(journal);
}
