/* SPDX-License-Identifier: Apache-2.0 */
/* The local journal: start, submission, end. README.md, invariants 1 to 5. */

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mutex.h"
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
#define LOG_BYTES_DEFAULT ((uint64_t)64 << 20)

/*
 * Tries to acquire core_lock, briefly spinning: most steps take a few microseconds, and passing the
 * command to a worker and back takes several times as long.
 */
static bool try_lock_core(struct journal *journal)
{
    for (int i = 0; i < CORE_TRIES; i++)
        if (pthread_mutex_trylock(&journal->core_lock) == 0)
            return true;
    return false;
}

/* --- Cancellation ------------------------------------------------------------------------------------------------- */

bool journal__register_waiter(struct command *command)
{
    struct command_waiter *waiter = command->waiter;
    REQUIRE(command->request != 0); /* 0 in a waiter: none */
    if (waiter == NULL || command_is(command->type, COMMAND_ALWAYS_ADMITTED))
        return true;
    uint64_t number = atomic_load(&waiter->number);
    while (number != COMMAND_WAITER_LEFT)
        if (atomic_compare_exchange_weak(&waiter->number, &number, command->request))
            return true;
    return false;
}

void journal__refuse_cancelled(struct command *command)
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
    /* It has no reply, so the dialect is irrelevant. */
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);
    cancel->cancel.request = number;
    cancel->on_done = journal__free_internal;
    return cancel;
}

/* Returns: a number above all issued before. */
static uint64_t next_number(struct journal *journal)
{
    uint64_t count = atomic_fetch_add_explicit(&journal->requests, 1, memory_order_relaxed) + 1;
    INSIST(count >> HOST_SHIFT == 0);
    return (uint64_t)journal_host_number(journal) << HOST_SHIFT | count;
}

/* Completes a CANCEL of journal_end_waits(). */
static void wait_ended(struct command *command)
{
    struct journal *journal = command->context;
    atomic_fetch_sub(&journal->open_cancels, 1);
    journal__free_internal(command);
}

/* Counts a CANCEL of journal_end_waits() until it is done: journal_accepts(). */
static void count_cancel(struct journal *journal, struct command *cancel)
{
    cancel->context = journal;
    cancel->on_done = wait_ended;
    atomic_fetch_add(&journal->open_cancels, 1);
}

/*
 * Cancels all waits of this host at its end. Those for locks of sessions keep their places for clients that ask
 * again, after the start or by another host of the cluster.
 */
static struct command *new_cancel_all(struct journal *journal)
{
    struct command *cancel = new_cancel((uint64_t)journal_host_number(journal) << HOST_SHIFT);
    cancel->cancel.keeps_places = true;
    cancel->request = next_number(journal);
    return cancel;
}

/*
 * Cancels the wait of a command that follows the CANCEL of all: that one alone, since there may be many others, and
 * in a cluster every host applies it. It keeps a place, too.
 */
static struct command *new_cancel_after(struct journal *journal, uint64_t number)
{
    struct command *cancel = new_cancel(number);
    cancel->cancel.keeps_places = true;
    cancel->request = next_number(journal);
    count_cancel(journal, cancel);
    return cancel;
}

/*
 * Returns: whether a command may wait for locks. Not every one does; a superfluous CANCEL is
 *          harmless.
 */
static bool may_wait(const struct command *command)
{
    return command_is(command->type, COMMAND_OWNED) && !command_is(command->type, COMMAND_ALWAYS_ADMITTED);
}

void journal__queue(struct journal *journal, struct command *command)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    REQUIRE(!list_linked(&command->link));
    if (journal->cluster != NULL)
        /* Time of submission, until the command is ordered. */
        command->clock = journal__boot(journal);
    journal->queued++;
    list_append(&journal->queue, &command->link);
    if (journal->sleepers > 0 && journal->queued - journal->taken >= journal->wake_length)
        pthread_cond_signal(&journal->queue_filled);
    if (journal->waits_ended && may_wait(command))
        journal__queue(journal, new_cancel_after(journal, command->request));
}

/* Both steps are in one hold of queue_lock: a command that is refused in between would have a needless CANCEL. */
void journal_cancel_waiter(struct journal *journal, struct command_waiter *waiter)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t number = atomic_exchange(&waiter->number, COMMAND_WAITER_LEFT);
    if (number != 0 && number != COMMAND_WAITER_LEFT && !journal->stopping) {
        struct command *cancel = new_cancel(number);
        cancel->request = next_number(journal);
        journal__queue(journal, cancel);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

void journal_end_waits(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct command *cancel = new_cancel_all(journal);
    pthread_mutex_lock(&journal->queue_lock);
    bool again = journal->waits_ended || journal->stopping;
    journal->waits_ended = true;
    if (!again) {
        count_cancel(journal, cancel);
        journal__queue(journal, cancel);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (again)
        command_free(cancel);
}

bool journal_accepts(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return atomic_load(&journal->open_cancels) == 0 && journal__is_ready(journal);
}

/* --- Submitting --------------------------------------------------------------------------------------------------- */

/* Returns: whether a command takes too long for a caller's thread, as its size shows. */
static bool takes_long(const struct command *command)
{
    return journal__expected_work(command) > CALLER_WORK_MAX;
}

/*
 * Applies the command on the caller's thread if the core is free, the queue is empty, and neither a
 * TICK nor a step of a checkpoint is due at once, and the log needs no space: only workers make
 * checkpoints and prepare the log, after a group, and an idle one looks once a second, in which a lone
 * caller could fill the memory, or a segment. Returns: whether it did.
 */
static bool apply_on_caller(struct journal *journal, struct command *command)
{
    if (!try_lock_core(journal))
        return false;
    bool held = journal__is_paused(journal) || journal__wants_worker(journal) || journal__log_wants_space(journal) ||
                core_next_wait_end(journal->core) == 0;
    pthread_mutex_lock(&journal->queue_lock);
    bool admitted = !held && list_empty(&journal->queue) && !journal->stopping && !journal->waits_ended &&
                    journal__register_waiter(command);
    pthread_mutex_unlock(&journal->queue_lock);
    if (!admitted) {
        pthread_mutex_unlock(&journal->core_lock);
        return false;
    }
    struct list group = LIST_INIT(group);
    tl_ts written = core_must_sync_ts(journal->core);
    journal__apply(journal, command, &group);
    journal__record_applied(journal);
    /* The command waits and wrote nothing. */
    bool idle = list_empty(&group) && core_must_sync_ts(journal->core) == written;
    tl_ts wanted = idle ? 0 : core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ONCE);
    return true;
}

void journal_submit(struct journal *journal, struct command *command, bool may_block)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC) && command->on_done != NULL && !list_linked(&command->link));
    if (command->request == 0)
        command->request = next_number(journal);
    if (journal__refuse_in_query_txn(journal, command) || journal__refuse_if_full(journal, command)) {
        command->on_done(command);
        return;
    }
    if (journal->cluster != NULL) {
        cluster__submit(journal, command);
        return;
    }
    if (may_block && !takes_long(command) && apply_on_caller(journal, command))
        return;
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    bool queued = !stopped && journal__register_waiter(command);
    if (queued)
        journal__queue(journal, command);
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped)
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is stopping; try again later");
    else if (!queued)
        journal__refuse_cancelled(command);
    if (!queued)
        command->on_done(command);
}

bool journal__holds(const pthread_mutex_t *lock)
{
    return mutex_is_held(lock);
}

static void init_locks(struct journal *journal)
{
    mutex_init(&journal->queue_lock);
    pthread_cond_init(&journal->queue_filled, NULL);
    mutex_init(&journal->core_lock);
    pthread_cond_init(&journal->saving_begun, NULL);
    mutex_init(&journal->report_lock);
    mutex_init(&journal->publish_lock);
    pthread_cond_init(&journal->sync_changed, NULL);
    pthread_cond_init(&journal->durable_added, NULL);
    mutex_init(&journal->pin_lock);
}

static void deinit_locks(struct journal *journal)
{
    pthread_mutex_destroy(&journal->queue_lock);
    pthread_cond_destroy(&journal->queue_filled);
    pthread_mutex_destroy(&journal->core_lock);
    pthread_cond_destroy(&journal->saving_begun);
    pthread_mutex_destroy(&journal->report_lock);
    pthread_cond_destroy(&journal->sync_changed);
    pthread_cond_destroy(&journal->durable_added);
    pthread_mutex_destroy(&journal->publish_lock);
    pthread_mutex_destroy(&journal->pin_lock);
}

/*
 * Logs the limits, unless the log has them already: the core must obey the limits in the log, not
 * this process's options or defaults. Requires: core_lock.
 */
static void set_limits(struct journal *journal, const struct core_limits *limits, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
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
 * Cancels the requests that waited at the end of the previous run, since their clients are gone. Those
 * for locks of sessions keep their places for clients that ask again.
 * After a crash of the machine also rolls back open update transactions, of which requests may be
 * missing. Requires: core_lock.
 */
static void end_previous_run(struct journal *journal, bool machine_lost, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    /* Request 0: all of this host. */
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.keeps_places = true;
    command->on_done = journal__free_internal;
    journal__apply(journal, command, group);
    if (!machine_lost)
        return;
    command = command_new(COMMAND_MACHINE_LOST, DIALECT_7);
    command->on_done = journal__free_internal;
    journal__apply(journal, command, group);
}

/*
 * Publishes the catalog, then syncs and completes the group. Releases core_lock. Requires:
 * core_lock.
 */
static void publish_group(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    journal->effects.catalog_changed = true;
    journal__record_applied(journal);
    catalog_unref(journal->catalog); /* in a cluster this is repeated after joining */
    journal->catalog = catalog_ref(journal->applied_catalog);
    journal->catalog_ts = journal->applied_catalog_ts;
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, group, wanted, SYNC_ALL);
}

/*
 * Applies RESTART until it reports that nothing is left; no other command may come between.
 * Requires: core_lock.
 */
static void run_restart(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    for (bool more = true; more;) {
        struct command *command = command_new(COMMAND_RESTART, DIALECT_7);
        command->on_done = journal__free_internal;
        journal__apply(journal, command, group);
        more = command->restart.resubmit;
    }
}

/* Applies the first commands of this run and publishes the state. */
static void apply_restart(struct journal *journal, const struct journal_options *options)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    set_limits(journal, options->limits, &group);
    run_restart(journal, &group);
    end_previous_run(journal, options->host_crashed, &group);
    journal__set_feed(journal, options->feed_off, &group);
    publish_group(journal, &group);
}

void journal__publish(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    publish_group(journal, &group);
}

/*
 * Initializes the log's part. The command clock continues from its value in the core, so that
 * downtime counts against no lease. Timestamps continue above the ceiling.
 */
static void init_log(struct journal *journal, const struct journal_options *options)
{
    journal->entry = BUF_INIT(BUF_UNLIMITED);
    list_init(&journal->pending_replies);
    list_init(&journal->postponed);
    journal->log = options->log;
    journal->at_work = options->at_work;
    journal->position = options->cmdlog_position;
    journal->work_us = options->log_work_us;
    journal->checkpoint_log_bytes = options->log_bytes;
    journal->log_bytes = options->log_bytes + options->log_replayed_bytes;
    journal->log_bytes_max = options->checkpoint_log_bytes ? options->checkpoint_log_bytes : LOG_BYTES_DEFAULT;
    journal->recovery_us = options->recovery_us ? options->recovery_us : RECOVERY_DEFAULT_US;
    journal->checkpoint_bytes = options->checkpoint_bytes ? options->checkpoint_bytes : CHECKPOINT_BYTES_DEFAULT;
    journal->run_clock.stalled_us = journal->run_clock.last_boot - core_clock(journal->core);
    tl_ts mark = core_ts_ceiling(journal->core);
    journal->last_ts = mark > journal->last_ts ? mark : journal->last_ts;
}

struct journal *journal__new(struct core *core, struct store *store, const struct journal_options *options)
{
    REQUIRE(core != NULL && store != NULL);
    REQUIRE(options->log != NULL);
    struct journal *journal = mem_zalloc(sizeof *journal);
    journal->magic = JOURNAL_MAGIC;
    journal->core = core;
    journal->store = store;
    journal->history_us = options->history_us ? options->history_us : HISTORY_DEFAULT_US;
    journal->feed_us = options->feed_us ? options->feed_us : journal->history_us;
    journal->feed_bytes_max = options->feed_bytes_max ? options->feed_bytes_max : FEED_BYTES_DEFAULT;
    journal->group_max = options->group_max ? options->group_max : GROUP_MAX_DEFAULT;
    journal->work_times = 1;
    journal->entry_work = GROUP_WORK;
    if (options->directory.len > 0)
        journal->directory = mem_strdup(options->directory.data, options->directory.len);
    journal->reserve_bytes = options->reserve_bytes;
    journal->budget = options->budget;
    list_init(&journal->queue);
    list_init(&journal->applied);
    list_init(&journal->durable);
    effects_init(&journal->effects);
    journal->effects.session_ended = journal__session_ended;
    journal__init_query_txns(journal, options->limits != NULL ? options->limits : core_limits(core));
    journal->wait_end = journal->lease_end = TL_TS_MAX;
    journal->last_ts = core_last_ts(core);
    journal->clocks = options->clocks != NULL ? *options->clocks : journal__machine_clocks;
    run_clock_init(&journal->run_clock, journal__boot(journal));
    init_log(journal, options);
    journal__load_ts_history(journal);
    atomic_init(&journal->writable, true);
    atomic_init(&journal->ready, true);
    init_locks(journal);
    journal__check_space(journal);
    return journal;
}

int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal)
{
    REQUIRE(ret_journal != NULL);
    struct journal *journal = journal__new(core, store, options);
    core_reset_metrics(core);
    apply_restart(journal, options);
    journal->serving = true;

    if (!journal__begin_completer(journal)) {
        journal_close(journal);
        return tl_trace(TL_ERR_IO);
    }
    for (unsigned i = 0; i < WORKER_COUNT; i++) {
        if (thread_start(&journal->workers[i], "journal", journal__worker, journal) != 0) {
            log_error("cannot start a thread of the journal");
            journal_close(journal);
            return tl_trace(TL_ERR_IO);
        }
    }
    if (!journal__begin_saver(journal)) {
        journal_close(journal);
        return tl_trace(TL_ERR_IO);
    }
    *ret_journal = journal;
    return 0;
}

/* Completes what waits in the core and ends the log. Assumes: the workers have ended. */
static void stop_core(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    journal__await_unpaused(journal);
    if (journal->cluster != NULL) {
        journal__end_checkpoints(journal); /* the steps that follow are not in the shared log */
    } else if (!journal__is_paused(journal)) {
        journal->maintain_at = 0; /* run maintenance now: its records are for the next start */
        (void)journal__maintain(journal, &group);
        /* The next start continues right after the last timestamp. */
        (void)journal__put_ts_ceiling(journal, 0);
    }
    if (journal->cluster == NULL) {
        /* The next start continues from here; the steps that follow are not logged. */
        journal__end_log(journal);
        journal__take_pending_replies(journal, &group);
    }
    core_stop(journal->core, &journal->effects);
    journal__move_completed(&journal->effects, &group);
    journal__record_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    journal__finish_last(journal); /* a caller's thread may be syncing, with this group enqueued */
}

const struct journal_metrics *journal_metrics(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock); /* held for a few instructions only */
    metric_set(&journal->metrics.queued, journal->queued - journal->taken);
    pthread_mutex_unlock(&journal->queue_lock);
    return &journal->metrics;
}

const struct core_metrics *journal_core_metrics(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return core_metrics(journal->core);
}

void journal_stop(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    journal->stopping = true;
    pthread_cond_broadcast(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped)
        return;
    journal__check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed))
        /* A thread waiting within an entry ends the process; the log has the entry. */
        store_give_up(journal->store);
    query_txns_stop(&journal->query_txns);
    if (journal->cluster != NULL)
        cluster__stop(journal);
    for (unsigned i = 0; i < WORKER_COUNT; i++)
        thread_join(&journal->workers[i]);
    journal__end_saver(journal);
    stop_core(journal);
    journal__end_completer(journal);
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    journal_stop(journal);
    INSIST(list_empty(&journal->queue) && list_empty(&journal->applied) &&
           list_empty(&journal->durable)); /* each command was answered */
    INSIST(list_empty(&journal->postponed) && list_empty(&journal->pending_replies));
    catalog_unref(journal->catalog);
    catalog_unref(journal->applied_catalog);
    query_txns_deinit(&journal->query_txns);
    pins_deinit(&journal->pins);
    cluster__free(journal);
    deinit_locks(journal);
    buf_deinit(&journal->entry);
    mem_free(journal->directory);
    magic_clear(&journal->magic);
    mem_free(journal);
}
