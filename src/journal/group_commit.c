/* SPDX-License-Identifier: Apache-2.0 */
/* The three stages of a command: applied, durable, completed. README.md, "The local journal". */
#include <unistd.h>

#include "base/log.h"
#include "base/check.h"
#include "base/magic.h"
#include "core/catalog/catalog.h"
#include "journal/journal_internal.h"

enum {
    /* The commit delay ends when at most one in so many expected commands is missing. */
    COMMIT_DELAY_MISSING = 8,
    COMMIT_DELAY_SYNC_US_MAX = 20000,
    EXIT_STORE_FAILED = 70, /* EX_SOFTWARE of sysexits.h */
    /* Commands of a group that the thread completes which applied or synced it; a usual group has fewer. */
    COMPLETED_AT_ONCE_MAX = 256,
};

_Noreturn void journal__store_failed(const char *what, int code)
{
    log_error("%s failed: %s. Nothing that was not durable has been acknowledged; ending", what, error_text(code));
    (void)log_flush(LOG_END_US);
    _exit(EXIT_STORE_FAILED);
}

void journal__move_completed(struct effects *effects, struct list *group)
{
    while (!list_empty(&effects->completed)) {
        struct list *link = effects->completed.next;
        list_remove(link);
        list_append(group, link);
    }
}

void journal__take_completed(struct journal *journal, struct command *command, struct list *group)
{
    REQUIRE(command->type < COMMAND_TYPE_COUNT);
    metric_add(&journal->metrics.commands[command->type], 1);
    journal__move_completed(&journal->effects, group);
    if (list_linked(&command->link)) {
        list_remove(&command->link);
        list_append(group, &command->link);
    }
}

bool journal__put_ts_ceiling(struct journal *journal, uint64_t ahead)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(journal->cluster == NULL);
    pthread_mutex_lock(&journal->publish_lock);
    if (journal->synced_ts >= journal->ts_ceiling_at)
        journal->ts_ceiling_durable = journal->ts_ceiling;
    pthread_mutex_unlock(&journal->publish_lock);
    return journal__log_ts_ceiling(journal, ahead);
}

void journal__apply(struct journal *journal, struct command *command, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct list taken = LIST_INIT(taken);
    list_append(&taken, &command->link);
    (void)journal__apply_logged(journal, &taken, group);
}

void journal__record_applied(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    pthread_mutex_lock(&journal->publish_lock);
    INSIST(core_last_ts(journal->core) >= journal->applied_ts && journal->position >= journal->applied_position);
    journal->applied_ts = core_last_ts(journal->core);
    journal->applied_position = journal->position;
    journal->written_ts = journal->sync_all ? core_written_ts(journal->core) : core_must_sync_ts(journal->core);
    journal->sync_all = false;
    if (journal->synced_ts >= journal->ts_ceiling_at)
        journal->ts_ceiling_durable = journal->ts_ceiling;
    /* No reply may have a timestamp that a restart could issue again (invariant 6). */
    if (journal->applied_ts > journal->ts_ceiling_durable && journal->written_ts < journal->ts_ceiling_at)
        journal->written_ts = journal->ts_ceiling_at;
    if (journal->effects.catalog_changed) {
        catalog_unref(journal->applied_catalog);
        journal->applied_catalog = core_catalog(journal->core);
        journal->applied_catalog_ts = journal->applied_ts;
        journal->effects.catalog_changed = false;
    }
    pthread_mutex_unlock(&journal->publish_lock);

    uint64_t wait_end = core_next_wait_end(journal->core);
    uint64_t lease_end = core_next_lease_end(journal->core);
    pthread_mutex_lock(&journal->queue_lock);
    bool earlier = wait_end < journal->wait_end || lease_end < journal->lease_end;
    journal->wait_end = wait_end;
    journal->lease_end = lease_end;
    if (earlier && journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Requires: publish_lock. */
static void raise_stable(struct journal *journal, tl_ts ts)
{
    REQUIRE(journal__holds(&journal->publish_lock) && ts <= journal->applied_ts);
    if (ts <= atomic_load_explicit(&journal->stable_ts, memory_order_relaxed))
        return;
    atomic_store_explicit(&journal->stable_ts, ts, memory_order_release);
    if (journal->moved != NULL)
        journal->moved(journal->moved_context);
}

void journal_watch(struct journal *journal, void (*moved)(void *context), void *context)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->publish_lock);
    journal->moved = moved;
    journal->moved_context = context;
    pthread_mutex_unlock(&journal->publish_lock);
}

uint64_t journal_state_version(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return atomic_load_explicit(&journal->state_version, memory_order_acquire);
}

void journal__change_state(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->publish_lock);
    atomic_fetch_add_explicit(&journal->state_version, 1, memory_order_acq_rel);
    if (journal->moved != NULL)
        journal->moved(journal->moved_context);
    pthread_mutex_unlock(&journal->publish_lock);
}

/* Moves all commands that wait for a sync to the front of the group. Requires: publish_lock. */
static void take_enqueued(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->publish_lock));
    struct list *first = group->next;
    while (!list_empty(&journal->applied)) {
        struct list *link = journal->applied.next;
        list_remove(link);
        list_insert_before(first, link);
    }
    journal->applied_count = 0;
}

/*
 * Advances the stable timestamp if nothing written is waiting for a sync; a sync may be in progress
 * for asynchronous commits. Then also takes the commands enqueued for a sync that has already
 * covered them.
 * Returns: false: something written is not durable yet.
 */
static bool publish_unwritten(struct journal *journal, struct list *group)
{
    pthread_mutex_lock(&journal->publish_lock);
    bool durable = journal->written_ts <= journal->synced_ts;
    if (durable) {
        raise_stable(journal, journal->applied_ts);
        take_enqueued(journal, group);
    }
    pthread_mutex_unlock(&journal->publish_lock);
    return durable;
}

/* Frees a command without on_done: it was restored by a replay, or is another host's. */
static void drop_command(struct command *command)
{
    REQUIRE(command->on_done == NULL);
    if (command->type == COMMAND_TXN_LOCK)
        core_overlay_unref(command->txn_lock.overlay);
    command_free(command);
}

/* Completes the first commands of a group, `most` of them if there are more. */
static void complete_first(struct list *group, size_t most)
{
    for (size_t i = 0; i < most && !list_empty(group); i++) {
        struct command *command = list_entry(group->next, struct command, link);
        list_remove(&command->link);
        if (command->on_done != NULL)
            command->on_done(command);
        else
            drop_command(command);
    }
}

/*
 * Completes a group, of which all that must be is durable. The rest of a long one, such as the requests of a session
 * that has ended, is left to the completer: other commands wait for a worker, and other requests for a caller's thread.
 */
static void complete_group(struct journal *journal, struct list *group)
{
    complete_first(group, COMPLETED_AT_ONCE_MAX);
    if (list_empty(group))
        return;
    pthread_mutex_lock(&journal->publish_lock);
    if (journal->completer_takes) {
        list_append_all(&journal->durable, group);
        pthread_cond_signal(&journal->durable_added);
    }
    pthread_mutex_unlock(&journal->publish_lock);
    complete_first(group, SIZE_MAX);
}

/* Waits for commands to complete, and takes them all. Returns: false: the completer ends, and none are left. */
static bool take_durable(struct journal *journal, struct list *group)
{
    pthread_mutex_lock(&journal->publish_lock);
    while (list_empty(&journal->durable) && journal->completer_takes)
        pthread_cond_wait(&journal->durable_added, &journal->publish_lock);
    list_append_all(group, &journal->durable);
    pthread_mutex_unlock(&journal->publish_lock);
    return !list_empty(group);
}

/* The completer's thread. There is one, so that the commands of a group are completed in their order. */
static void completer_thread(void *context)
{
    struct journal *journal = context;
    struct list group = LIST_INIT(group);
    while (take_durable(journal, &group))
        complete_first(&group, SIZE_MAX);
}

bool journal__begin_completer(struct journal *journal)
{
    REQUIRE(!journal->completer.runs && journal->cluster == NULL);
    journal->completer_takes = true;
    if (thread_start(&journal->completer, "completer", completer_thread, journal) == 0)
        return true;
    journal->completer_takes = false;
    log_error("cannot start a thread of the journal");
    return false;
}

void journal__end_completer(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    journal->completer_takes = false;
    pthread_cond_signal(&journal->durable_added);
    pthread_mutex_unlock(&journal->publish_lock);
    thread_join(&journal->completer);
    ENSURE(list_empty(&journal->durable));
}

/*
 * Commit delay (as PostgreSQL's commit_delay): waits up to half the duration of a sync for more
 * commands to join it. Clients that were just answered usually send their next request at once, and
 * then share this sync. The last group gives the expected number.
 * Requires: publish_lock; `syncing` was set by the caller.
 */
static void commit_delay(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->publish_lock) && journal->syncing && journal->delay_target == 0);
    uint64_t until = journal__boot(journal) + journal->sync_us / 2;
    journal->delay_target = journal->expected - journal->expected / COMMIT_DELAY_MISSING;
    bool in_time = true;
    while (in_time && journal->applied_count < journal->delay_target)
        in_time = journal__wait_until(journal, &journal->sync_changed, &journal->publish_lock, until);
    journal->delay_target = 0;
}

/*
 * Syncs the log up to the applied position, then publishes the catalog and the stable timestamp.
 * Releases publish_lock during the sync.
 * Requires: publish_lock; `syncing` was set by the caller.
 */
static void sync_log(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->publish_lock) && journal->syncing);
    tl_ts covered = journal->applied_ts;
    cmdlog_position position = journal->applied_position;
    struct catalog *catalog = catalog_ref(journal->applied_catalog);
    tl_ts catalog_ts = journal->applied_catalog_ts;
    pthread_mutex_unlock(&journal->publish_lock);

    uint64_t begun = journal__boot(journal);
    atomic_store_explicit(&journal->sync_begun, begun, memory_order_relaxed);
    int r = cmdlog_sync(journal->log, position);
    atomic_store_explicit(&journal->sync_begun, 0, memory_order_relaxed);
    if (r < 0)
        journal__store_failed("making changes durable", r);
    uint64_t took = journal__boot(journal) - begun;
    metric_observe(&journal->metrics.sync_times, metric_times_us, took);

    pthread_mutex_lock(&journal->publish_lock);
    if (catalog != journal->catalog)
        atomic_fetch_add_explicit(&journal->state_version, 1, memory_order_acq_rel);
    catalog_unref(journal->catalog);
    journal->catalog = catalog;
    journal->catalog_ts = catalog_ts;
    INSIST(covered >= journal->synced_ts); /* one thread syncs at a time */
    journal->synced_ts = covered;
    raise_stable(journal, covered);
    journal->sync_us = (7 * journal->sync_us + (took < COMMIT_DELAY_SYNC_US_MAX ? took : COMMIT_DELAY_SYNC_US_MAX)) / 8;
}

/* Returns: whether there is something to sync and no thread is syncing. Requires: publish_lock. */
static bool sync_is_due(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->publish_lock));
    return !journal->syncing && (!list_empty(&journal->applied) || journal->written_ts > journal->synced_ts);
}

/*
 * Makes everything applied durable and visible, and completes the waiting commands. Releases
 * publish_lock meanwhile.
 * Requires: publish_lock, sync_is_due().
 */
static void sync_and_complete(struct journal *journal)
{
    REQUIRE(sync_is_due(journal));
    struct list group = LIST_INIT(group);
    journal->syncing = true;
    commit_delay(journal);
    size_t count = journal->applied_count;
    take_enqueued(journal, &group);
    sync_log(journal);
    if (count > 0)
        metric_observe(&journal->metrics.group_sizes, metric_sizes, count);
    journal->expected = count + journal->applied_count;
    journal->syncing = false;
    journal->completing++;
    pthread_cond_broadcast(&journal->sync_changed);
    pthread_mutex_unlock(&journal->publish_lock);
    complete_group(journal, &group);
    pthread_mutex_lock(&journal->publish_lock);
    INSIST(journal->completing > 0);
    journal->completing--;
    pthread_cond_broadcast(&journal->sync_changed);
}

/* Appends a group to the commands that wait for a sync. Requires: publish_lock. */
static void enqueue_group(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->publish_lock));
    while (!list_empty(group)) {
        struct list *link = group->next;
        list_remove(link);
        list_append(&journal->applied, link);
        journal->applied_count++;
    }
    if (journal->delay_target > 0 && journal->applied_count >= journal->delay_target)
        pthread_cond_broadcast(&journal->sync_changed);
}

/*
 * Leaves the remaining sync to a worker. Returns: false: the workers end or have ended, and may not
 * see it.
 */
static bool call_worker(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool ends = journal->stopping;
    journal->sync_pending = true;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    return !ends;
}

static void sync_all(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    while (sync_is_due(journal))
        sync_and_complete(journal);
    pthread_mutex_unlock(&journal->publish_lock);
}

void journal__finish_last(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    while (journal->syncing || journal->completing > 0 || sync_is_due(journal)) {
        if (sync_is_due(journal))
            sync_and_complete(journal);
        else
            pthread_cond_wait(&journal->sync_changed, &journal->publish_lock);
    }
    ENSURE(list_empty(&journal->applied) && journal->written_ts <= journal->synced_ts);
    pthread_mutex_unlock(&journal->publish_lock);
}

void journal__finish(struct journal *journal, struct list *group, tl_ts wanted, enum sync_rounds rounds)
{
    if (wanted == 0 || publish_unwritten(journal, group)) {
        complete_group(journal, group);
        return;
    }
    pthread_mutex_lock(&journal->publish_lock);
    enqueue_group(journal, group);
    for (bool again = rounds != SYNC_NONE; again && sync_is_due(journal); again = rounds == SYNC_ALL)
        sync_and_complete(journal);
    bool left = sync_is_due(journal);
    pthread_mutex_unlock(&journal->publish_lock);
    if (left && !call_worker(journal))
        sync_all(journal);
}
