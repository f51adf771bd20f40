/* SPDX-License-Identifier: Apache-2.0 */
/* The worker threads: they wait for commands, timeouts and expiries, and apply them in groups. */
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/check.h"
#include "base/magic.h"
#include "journal/journal_internal.h"
#include "json/json.h"

enum {
    PAUSED_POLL_US = 1000, /* polling interval for a durable checkpoint */
};

/* Expected work (journal__expected_work()). */
enum {
    COMMAND_WORK = WORK_UNIT,
    /* A write of a short document: read, stored, and its places in the tree and the feed */
    DOCUMENT_WORK = WORK_ITEM + WORK_LOCK_ASKED + WORK_READ + 2 * WORK_WRITE,
    /*
     * An item with a script. Most scripts take less than a tenth of it, and some a whole step
     */
    SCRIPT_WORK = 5000,
    WORK_TIMES_MAX = 64 /* of journal->work_times */
};

#define SPACE_RETRY_US (100 * TL_MS) /* polling interval for free space on a full disk */

void journal__free_internal(struct command *command)
{
    command_free(command);
}

/* Postpones timeouts and expiries. */
static void put_off(struct journal *journal, uint64_t until)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->not_before = until;
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Returns: the clock of a passed input barrier, if all its input has been taken from the queue; else
 *          0: the input may renew leases. Requires: queue_lock.
 */
static uint64_t passed_barrier(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    return journal->taken >= journal->barrier_queued ? journal->barrier_clock : 0;
}

/*
 * Returns: whether a wait has timed out or a lease has expired. Leases expire only up to the clock of
 *          a passed input barrier, whose input has been applied then: commands are applied in the
 *          same hold of core_lock in which they are taken from the queue. Requires: core_lock.
 */
static bool tick_is_due(struct journal *journal, uint64_t *ret_barrier_clock)
{
    REQUIRE(journal__holds(&journal->core_lock));
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__command_clock(journal);
    *ret_barrier_clock = passed_barrier(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return core_next_wait_end(journal->core) <= clock || core_next_lease_end(journal->core) <= *ret_barrier_clock;
}

/* Applies a TICK if it is due. Requires: core_lock. */
static void apply_tick(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    uint64_t barrier_clock;
    if (!tick_is_due(journal, &barrier_clock))
        return;
    journal__check_space(journal);
    /* Retried when the disk has space. */
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed)) {
        put_off(journal, journal__boot(journal) + SPACE_RETRY_US);
        return;
    }
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->on_done = journal__free_internal;
    command->tick.barrier_clock = barrier_clock;
    journal__apply(journal, command, group);
    if (command->problem.type == PROBLEM_DISK_FULL)
        put_off(journal, journal__boot(journal) + SPACE_RETRY_US);
}

/*
 * Returns: whether a lease has expired by the clock, or a query transaction is idle by the host's
 *          clock, and the input barrier for that time was neither passed nor started. Requires:
 *          queue_lock.
 */
static bool input_barrier_is_due(struct journal *journal, uint64_t clock)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    uint64_t idle = atomic_load(&journal->query_txns.next_end);
    return !journal->barrier_pending && ((journal->lease_end <= clock && journal->lease_end > journal->barrier_clock) ||
                                         (idle <= journal__host_clock(journal) && idle > journal->barrier_host_clock));
}

/*
 * Returns: the time until the next timeout, expiry or maintenance, limited by the polling interval
 *          of the clock; 0: something is due now. While anything can expire the clock is polled
 *          often enough to detect stalls.
 * Requires: queue_lock.
 */
static uint64_t idle_us(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    journal__check_clocks(journal);
    uint64_t boot = journal__boot(journal);
    uint64_t clock = journal__command_clock(journal);
    uint64_t first = journal->wait_end < journal->lease_end ? journal->wait_end : journal->lease_end;
    uint64_t query_end = atomic_load(&journal->query_txns.next_end);
    uint64_t idle = first < TL_TS_MAX || query_end < UINT64_MAX ? RUN_CLOCK_POLL_US : MAINTAIN_INTERVAL_US;
    if (journal->wake_at <= boot || input_barrier_is_due(journal, clock) || query_end <= journal->barrier_host_clock)
        return 0;
    idle = query_end > clock && query_end - clock < idle ? query_end - clock : idle;
    idle = journal->wake_at - boot < idle ? journal->wake_at - boot : idle;
    if (boot < journal->not_before)
        return idle;
    if (journal->wait_end <= clock || journal->lease_end <= journal->barrier_clock)
        return 0;
    idle = journal->wait_end - clock < idle ? journal->wait_end - clock : idle;
    return journal->lease_end > clock && journal->lease_end - clock < idle ? journal->lease_end - clock : idle;
}

/* Sleeps until there is work. Returns: false: the journal ends and no work is left. */
static bool await_work(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    while (list_empty(&journal->queue) && !journal->stopping && !journal->sync_pending) {
        uint64_t idle = idle_us(journal);
        if (idle == 0)
            break;
        journal->sleepers++;
        (void)journal__wait_until(journal, &journal->queue_filled, &journal->queue_lock, journal__boot(journal) + idle);
        journal->sleepers--;
    }
    bool more = !list_empty(&journal->queue) || !journal->stopping || journal->sync_pending;
    journal->sync_pending = false;
    pthread_mutex_unlock(&journal->queue_lock);
    return more;
}

static bool is_scripted(const struct write_item *item)
{
    const struct write_update *update = item->update;
    return update != NULL && update->script_source.len + update->script_id.len + update->script_file.len > 0;
}

static uint64_t expected_of_item(const struct write_item *item)
{
    uint64_t bytes = item->source.len;
    uint64_t values = item->parsed == NULL ? 0 : json_value_count(item->parsed) * WORK_ENTRY;
    const struct write_update *update = item->update;
    if (update == NULL)
        return DOCUMENT_WORK + bytes / WORK_BYTES + values;
    bytes += update->doc.len + update->upsert.len + update->ready.source.len;
    return DOCUMENT_WORK + bytes / WORK_BYTES + values + (is_scripted(item) ? SCRIPT_WORK : 0);
}

uint64_t journal__expected_work(const struct command *command)
{
    uint64_t work = COMMAND_WORK;
    switch (command->type) {
    case COMMAND_LOCK:
    case COMMAND_UNLOCK: return work + command->lock.target_count * WORK_LOCK_ASKED;
    case COMMAND_TXN_LOCK: return work + command->txn_lock.target_count * WORK_LOCK_ASKED;
    case COMMAND_WRITE: break;
    default: return work;
    }
    /* More than GROUP_WORK makes no difference. */
    for (size_t i = 0; i < command->write.item_count && work <= GROUP_WORK; i++)
        work += expected_of_item(&command->write.items[i]);
    return work;
}

/*
 * Returns: whether a command may do many times as much as its size says: long names and paths, large documents that it
 * replaces, or a script. A single document that is put or deleted does so for itself alone.
 */
static bool may_do_more(const struct command *command)
{
    return command->type == COMMAND_WRITE &&
           (command->write.item_count > 1 || (command->write.item_count == 1 && command->write.items->update != NULL));
}

/* Takes the first command of the queue. Returns: NULL: the queue is empty. */
static struct command *take_first(struct journal *journal)
{
    struct command *command = NULL;
    pthread_mutex_lock(&journal->queue_lock);
    if (!list_empty(&journal->queue)) {
        command = list_entry(journal->queue.next, struct command, link);
        list_remove(&command->link);
        journal->taken++;
        INSIST(journal->taken <= journal->queued);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return command;
}

static void put_back(struct journal *journal, struct command *command)
{
    REQUIRE(!list_linked(&command->link));
    pthread_mutex_lock(&journal->queue_lock);
    list_insert_before(journal->queue.next, &command->link);
    INSIST(journal->taken > 0);
    journal->taken--;
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Takes the next command of a group that has `count` commands and has done, or is expected to do,
 * `*work`. The command's expected work is returned in *ret_expected. `times`: of commands that may_do_more().
 * Returns: NULL: the group is complete.
 */
static struct command *take_next(struct journal *journal, size_t count, uint64_t work, uint64_t times,
                                 uint64_t *ret_expected)
{
    struct command *command = count < journal->group_max && work < GROUP_WORK ? take_first(journal) : NULL;
    if (command == NULL)
        return NULL;
    *ret_expected = journal__expected_work(command) * (may_do_more(command) ? times : 1);
    if (count == 0 || work + *ret_expected <= GROUP_WORK)
        return command;
    put_back(journal, command);
    return NULL;
}

/* Wakes the other worker if commands are left. Returns: as passed_barrier(). */
static uint64_t end_group(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    if (!list_empty(&journal->queue) && journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    uint64_t barrier_clock = passed_barrier(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return barrier_clock;
}

bool journal__is_group_queued(struct journal *journal)
{
    size_t count = 0;
    uint64_t work = 0;
    pthread_mutex_lock(&journal->queue_lock);
    for (struct list *link = journal->queue.next;
         link != &journal->queue && count < journal->group_max && work < GROUP_WORK; link = link->next) {
        work += journal__expected_work(list_entry(link, struct command, link));
        count++;
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return count >= journal->group_max || work >= GROUP_WORK;
}

uint64_t journal__take_queued(struct journal *journal, struct list *taken)
{
    REQUIRE(list_empty(taken));
    struct command *command;
    uint64_t expected, work = 0;
    for (size_t count = 0; (command = take_next(journal, count, work, 1, &expected)) != NULL; count++) {
        list_append(taken, &command->link);
        work += expected;
    }
    return end_group(journal);
}

/*
 * Returns: whether the locks are on single names: the locks of an expression are known only in the
 * step.
 */
static bool names_are_single(const struct txn_lock_command *lock)
{
    for (size_t i = 0; i < lock->target_count; i++)
        if (lock->targets[i].expression != NULL)
            return false;
    return true;
}

/*
 * Returns: whether a write has no update: that does as much as its script or the stored document
 * demands.
 */
static bool has_no_update(const struct write_command *write)
{
    for (size_t i = 0; i < write->item_count; i++)
        if (write->items[i].update != NULL)
            return false;
    return true;
}

/*
 * Returns: whether the work of a command is known before its step, from its size or the core's state; if so, adds it
 * to *expected, which has what follows from its size. An update, the end of a session, and DDL may do as much as a
 * step may. So may a release, which executes requests that wait for the locks. `added`: the work of the commands that
 * precede it in its entry and may give its owner more to release or to commit.
 * Requires: core_lock.
 */
static bool work_is_known(const struct journal *journal, const struct command *command, uint64_t added,
                          uint64_t *expected)
{
    REQUIRE(journal__holds(&journal->core_lock));
    switch (command->type) {
    case COMMAND_LOCK:
    case COMMAND_TXN_BEGIN:
    case COMMAND_SESSION_OPEN:
    case COMMAND_SESSION_KEEPALIVE:
    case COMMAND_SESSION_ATTACH: return true;
    case COMMAND_TXN_LOCK: return names_are_single(&command->txn_lock);
    case COMMAND_WRITE: return has_no_update(&command->write);
    case COMMAND_UNLOCK:
        if (command->lock.target_count > 0)
            return core_next_wait_end(journal->core) == TL_TS_MAX;
        break;
    case COMMAND_TXN_COMMIT:
    case COMMAND_TXN_ROLLBACK: break;
    default: return false;
    }
    uint64_t work = core_end_work(journal->core, command);
    if (work > GROUP_WORK)
        return false;
    *expected += work + added;
    return true;
}

/* Returns: whether a command may give its owner more to release or to commit. */
static bool adds_to_owner(const struct command *command)
{
    return command->type == COMMAND_LOCK || command->type == COMMAND_TXN_LOCK ||
           (command->type == COMMAND_WRITE && command->owner.transaction.len > 0);
}

/*
 * Takes the commands of the next entry of a group that has `*count` commands, which have done `work`:
 * those whose work is known, up to journal->entry_work, or one other. Returns: the work that was expected, by their
 * size, of those of them that may_do_more().
 */
static uint64_t take_entry(struct journal *journal, size_t *count, uint64_t work, struct list *taken)
{
    REQUIRE(list_empty(taken) && journal->work_times > 0);
    struct command *command;
    uint64_t max = GROUP_WORK < work + journal->entry_work ? GROUP_WORK : work + journal->entry_work;
    uint64_t expected, added = 0, by_size = 0;
    bool known = true;
    while (known && (command = take_next(journal, *count, work, journal->work_times, &expected)) != NULL) {
        known = work_is_known(journal, command, added, &expected);
        if (!list_empty(taken) && (!known || work + expected > max)) {
            put_back(journal, command);
            return by_size;
        }
        list_append(taken, &command->link);
        work += expected;
        by_size += may_do_more(command) ? expected / journal->work_times : 0;
        added += adds_to_owner(command) ? expected : 0;
        ++*count;
    }
    return by_size;
}

/*
 * Notes how many times as much as expected an entry with such commands did, if that was more than a group should
 * do. Such commands usually come one after another, as the parts of one request: those that follow are expected to
 * do as much, so that they begin a group of their own and no command before them waits for their step. Each other
 * entry with such commands lowers it. One without any, such as the puts of others between two parts, shows nothing.
 */
static void note_work(struct journal *journal, uint64_t expected, uint64_t done)
{
    if (expected == 0)
        return;
    /* Less than once means nothing: repeated values, for example, cost less than is expected of values. */
    uint64_t times = done > GROUP_WORK && done > expected ? done / expected : 1;
    times = times < WORK_TIMES_MAX ? times : WORK_TIMES_MAX;
    if (times > journal->work_times)
        journal->work_times = times;
    else if (times < journal->work_times)
        journal->work_times--;
}

/*
 * Notes how long an entry took that did this work. One that took longer than a group should, with less work, shows
 * that work takes longer than expected, as on a disk that is slow: the next entries have as much as would have taken
 * a group's time, until entries are fast again.
 */
static void note_duration(struct journal *journal, uint64_t us, uint64_t done)
{
    if (us > GROUP_US && done < GROUP_WORK)
        journal->entry_work = done * GROUP_US / us;
    else
        journal->entry_work = journal->entry_work < GROUP_WORK / 2 ? 2 * journal->entry_work + 1 : GROUP_WORK;
}

/*
 * Applies queued commands as a group, until they have done GROUP_WORK or taken GROUP_US. An entry is applied as a
 * whole, so a command whose work is known only after its step has an entry of its own. The clock decides which
 * commands are in the group and the entry, never what they do. Requires: core_lock.
 */
static void apply_group(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    size_t count = 0;
    uint64_t work = 0, begun = journal__boot(journal), now = begun;
    struct list taken = LIST_INIT(taken);
    while (now - begun < GROUP_US) {
        uint64_t expected = take_entry(journal, &count, work, &taken), before = now;
        if (list_empty(&taken))
            break;
        uint64_t done = journal__apply_logged(journal, &taken, group);
        now = journal__boot(journal);
        note_work(journal, expected, done);
        note_duration(journal, now - before, done);
        work += done;
    }
    (void)end_group(journal);
}

/* --- A full or nearly full disk ----------------------------------------------------------------------------------- */

/*
 * Returns: whether a queued command is refused because the disk is full; its problem is then set.
 */
static bool refuse_queued(struct journal *journal, struct command *command)
{
    if (journal__refuse_if_full(journal, command))
        return true;
    if (!journal->stopping || journal__is_ready(journal))
        return false;
    journal__refuse_disk_full(journal, command);
    return true;
}

/*
 * Moves queued commands that a full disk refuses to `unfit`, and with `with_unlogged` also those
 * with COMMAND_UNLOGGED. They were queued before the disk was full.
 */
static void take_unfit(struct journal *journal, bool with_unlogged, struct list *unfit)
{
    pthread_mutex_lock(&journal->queue_lock);
    list_for_each_safe (link, following, &journal->queue) {
        struct command *command = list_entry(link, struct command, link);
        bool unlogged = with_unlogged && command_is(command->type, COMMAND_UNLOGGED);
        if (!unlogged && !refuse_queued(journal, command))
            continue;
        list_remove(link);
        list_append(unfit, link);
        journal->taken++;
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Acquires core_lock. Its holder may be waiting for disk space within an entry; meanwhile queued
 * commands that the full disk refuses are answered.
 */
static void lock_core(struct journal *journal)
{
    struct timespec until;
    for (;;) {
        /*
         * pthread_mutex_timedlock() knows this clock only; a step of it merely delays the refusals.
         */
        clock_gettime(CLOCK_REALTIME, &until);
        uint64_t end = (uint64_t)until.tv_nsec / 1000 + SPACE_RETRY_US;
        until.tv_sec += (time_t)(end / TL_SECOND);
        until.tv_nsec = (long)(end % TL_SECOND) * 1000;
        if (pthread_mutex_timedlock(&journal->core_lock, &until) == 0)
            return;
        struct list unfit = LIST_INIT(unfit);
        if (!journal__is_ready(journal))
            take_unfit(journal, false, &unfit);
        journal__finish(journal, &unfit, 0, SYNC_NONE);
    }
}

/*
 * Serves the queue during a pause: answers commands with COMMAND_UNLOGGED and refuses those that need
 * disk space. Also does the sync that a caller's thread has left. Releases core_lock.
 * Requires: core_lock, journal__is_paused().
 */
static void serve_paused(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct list unfit = LIST_INIT(unfit);
    struct list group = LIST_INIT(group);
    take_unfit(journal, true, &unfit);
    bool any = !list_empty(&unfit);
    while (!list_empty(&unfit)) {
        struct command *command = list_entry(unfit.next, struct command, link);
        list_remove(&command->link);
        if (command->problem.type == PROBLEM_NONE)
            journal__inspect(journal, command, &group);
        else
            list_append(&group, &command->link);
    }
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    if (!any)
        usleep(PAUSED_POLL_US);
}

/* Stages two and three of the commands applied in this hold of core_lock. Releases it. */
static void finish_applied(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    journal__record_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, group, wanted, SYNC_ALL);
}

/*
 * Applies a TICK after a group was completed or left to the thread that syncs, so that it delays none
 * of its commands.
 */
static void tick_after_group(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    lock_core(journal);
    if (!journal__is_paused(journal)) /* a checkpoint may have been begun meanwhile */
        apply_tick(journal, &group);
    finish_applied(journal, &group);
}

/* Applies a group. Returns: whether a checkpoint is due. */
static bool work_once(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    uint64_t barrier_clock;
    lock_core(journal);
    if (journal__is_paused(journal)) {
        serve_paused(journal);
        return false;
    }
    apply_group(journal, &group);
    bool due = tick_is_due(journal, &barrier_clock);
    bool checkpoint_is_due = journal__wants_worker(journal);
    finish_applied(journal, &group);
    if (due)
        tick_after_group(journal);
    return checkpoint_is_due;
}

/*
 * Runs maintenance after a group was completed, so that it delays none of its commands. If
 * core_lock is held, its holder will do it.
 */
static void maintain_after_group(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    bool due = journal__maintain(journal, &group);
    tl_ts wanted = due ? core_last_ts(journal->core) : 0;
    if (due)
        journal__record_applied(journal);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
}

/*
 * Looks after checkpoints after a group. If none is due, and core_lock is held, a later group does it, or
 * an idle worker within a second. One that is due waits for core_lock: each of two busy workers may find
 * the other with it every time, and the store's memory would grow meanwhile.
 */
static void advance_checkpoints(struct journal *journal, bool is_due)
{
    journal__presync_log(journal);
    if (is_due) {
        lock_core(journal);
    } else if (pthread_mutex_trylock(&journal->core_lock) != 0) {
        journal__prepare_log(journal); /* which does not wait: the next segment is needed after a few groups */
        return;
    }
    journal__advance_checkpoints(journal);
}

void journal__start_input_barrier(struct journal *journal)
{
    struct journal_input_barrier input_barrier = {0};
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__command_clock(journal);
    if (input_barrier_is_due(journal, clock)) {
        input_barrier = journal->input_barrier;
        if (input_barrier.start == NULL) {
            journal->barrier_clock = clock;
            journal->barrier_host_clock = journal__host_clock(journal);
            journal->barrier_queued = journal->queued;
        } else {
            journal->barrier_pending = true;
            journal->barrier_pending_clock = clock;
            journal->barrier_host_clock_pending = journal__host_clock(journal);
        }
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (input_barrier.start != NULL)
        input_barrier.start(input_barrier.context);
}

void journal__worker(void *context)
{
    struct journal *journal = context;
    while (await_work(journal)) {
        journal__start_input_barrier(journal);
        journal__end_idle_query_txns(journal);
        bool checkpoint_is_due = work_once(journal);
        maintain_after_group(journal);
        advance_checkpoints(journal, checkpoint_is_due);
    }
}

void journal_set_input_barrier(struct journal *journal, const struct journal_input_barrier *input_barrier)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock);
    journal->input_barrier = *input_barrier;
    journal->barrier_pending = false;
    pthread_mutex_unlock(&journal->queue_lock);
}

void journal_barrier_passed(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock);
    if (journal->barrier_pending) {
        journal->barrier_pending = false;
        journal->barrier_clock = journal->barrier_pending_clock;
        journal->barrier_host_clock = journal->barrier_host_clock_pending;
        journal->barrier_queued = journal->queued;
        if (journal->sleepers > 0)
            pthread_cond_signal(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}
