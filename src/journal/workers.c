/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the journal: they wait for commands and for what runs out, and apply both in groups. */
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "journal/journal_internal.h"

enum {
    HELD_US = 1000, /* between two looks whether a checkpoint is on the disk */
};

#define SPACE_AGAIN_US (100 * TL_MS) /* until a disk that is full is looked at again */

void journal__free_internal(struct command *command)
{
    command_free(command);
}

/* Looks at what is due again at that time. */
static void put_off(struct journal *journal, uint64_t until)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->not_before = until;
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Requires: core_lock. Lets run out what has; leases by what was heard, and is applied. */
static void tick(struct journal *journal, uint64_t heard, struct list *group)
{
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    if (core_next_wait_end(journal->core) > clock && core_next_lease_end(journal->core) > heard)
        return;
    journal__check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed)) { /* it is done when the disk lets it */
        put_off(journal, journal__boot(journal) + SPACE_AGAIN_US);
        return;
    }
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->on_done = journal__free_internal;
    command->tick.barrier_clock = heard;
    journal__apply(journal, command, group);
    if (command->problem.type == PROBLEM_DISK_FULL)
        put_off(journal, journal__boot(journal) + SPACE_AGAIN_US);
}

/* Whether a lease is over, as far as is known, and it is yet to be heard whether somebody has prolonged it. Requires: queue_lock. */
static bool must_listen(const struct journal *journal, uint64_t clock)
{
    return !journal->listening && journal->lease_end <= clock && journal->lease_end > journal->heard;
}

/*
 * Returns: for how long there is nothing to do, by what is known now; 0: there is. While anything can run out the clock is read so often
 * that a time in which nothing was done shows. Requires: queue_lock.
 */
static uint64_t idle_us(struct journal *journal)
{
    journal__watch_clocks(journal);
    uint64_t boot = journal__boot(journal);
    uint64_t clock = journal__read_pace(journal);
    uint64_t first = journal->wait_end < journal->lease_end ? journal->wait_end : journal->lease_end;
    uint64_t idle = first < TL_TS_MAX ? PACE_BEAT_US : MAINTAIN_INTERVAL_US;
    if (journal->wake_at <= boot || must_listen(journal, clock))
        return 0;
    idle = journal->wake_at - boot < idle ? journal->wake_at - boot : idle;
    if (boot < journal->not_before)
        return idle;
    if (journal->wait_end <= clock || journal->lease_end <= journal->heard)
        return 0;
    idle = journal->wait_end - clock < idle ? journal->wait_end - clock : idle;
    return journal->lease_end > clock && journal->lease_end - clock < idle ? journal->lease_end - clock : idle;
}

/* Sleeps until there is something to do. Returns: false when the journal ends and nothing is left. */
static bool await_work(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    while (list_empty(&journal->queue) && !journal->stopping && !journal->sync_left) {
        uint64_t idle = idle_us(journal);
        if (idle == 0)
            break;
        journal->sleepers++;
        (void)journal__wait_until(journal, &journal->queue_filled, &journal->queue_lock, journal__boot(journal) + idle);
        journal->sleepers--;
    }
    bool more = !list_empty(&journal->queue) || !journal->stopping || journal->sync_left;
    journal->sync_left = false;
    pthread_mutex_unlock(&journal->queue_lock);
    return more;
}

/*
 * Moves up to group_max commands over. Wakes the other worker when some are left. No lease runs out by what was heard before all has been
 * taken that was in the queue then.
 */
uint64_t journal__take_queued(struct journal *journal, struct list *taken)
{
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t heard = 0;
    for (size_t n = 0; n < journal->group_max && !list_empty(&journal->queue); n++) {
        struct list *link = journal->queue.next;
        list_remove(link);
        list_append(taken, link);
        journal->taken++;
    }
    if (!list_empty(&journal->queue) && journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    if (journal->taken >= journal->heard_queued)
        heard = journal->heard;
    pthread_mutex_unlock(&journal->queue_lock);
    return heard;
}

/* --- What must not be applied now ----------------------------------------------------------------------------------- */

/* Whether a command is not to wait for its turn: there is no room, and who knows when there will be. It has its problem then. */
static bool refuse_queued(struct journal *journal, struct command *command)
{
    if (journal__refuse_full(journal, command))
        return true;
    if (!journal->stopping || journal__is_ready(journal))
        return false;
    journal__refuse_for_room(journal, command);
    return true;
}

/*
 * Moves over the queued commands that are not to wait, and with `looks` those that only look. They were let in before it was seen that the
 * disk is full.
 */
static void take_unfit(struct journal *journal, bool looks, struct list *unfit)
{
    pthread_mutex_lock(&journal->queue_lock);
    list_for_each_safe (link, following, &journal->queue) {
        struct command *command = list_entry(link, struct command, link);
        bool looked = looks && command_is(command->type, COMMAND_UNLOGGED);
        if (!looked && !refuse_queued(journal, command))
            continue;
        list_remove(link);
        list_append(unfit, link);
        journal->taken++;
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Takes the core. Whoever has it may be waiting for room in the middle of an entry: meanwhile nobody is left in the queue who would rather be told. */
static void lock_core(struct journal *journal)
{
    struct timespec until;
    for (;;) {
        clock_gettime(CLOCK_REALTIME, &until); /* should it jump, somebody is told later */
        uint64_t end = (uint64_t)until.tv_nsec / 1000 + SPACE_AGAIN_US;
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

/* Whoever only looks is answered, and nobody waits for a full disk. Requires: core_lock, journal__is_held(); gives the lock up. */
static void serve_held(struct journal *journal)
{
    struct list unfit = LIST_INIT(unfit);
    struct list group = LIST_INIT(group);
    take_unfit(journal, true, &unfit);
    bool any = !list_empty(&unfit);
    while (!list_empty(&unfit)) {
        struct command *command = list_entry(unfit.next, struct command, link);
        list_remove(&command->link);
        if (command->problem.type == PROBLEM_NONE)
            journal__look(journal, command, &group);
        else
            list_append(&group, &command->link);
    }
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    if (any)
        journal__finish(journal, &group, wanted, SYNC_ALL);
    else
        usleep(HELD_US);
}

static void work_once(struct journal *journal)
{
    struct list taken = LIST_INIT(taken);
    struct list group = LIST_INIT(group);
    lock_core(journal);
    if (journal__is_held(journal)) {
        serve_held(journal);
        return;
    }
    uint64_t heard = journal__take_queued(journal, &taken);
    journal__apply_logged(journal, &taken, &group);
    tick(journal, heard, &group);
    journal__note_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
}

/* After a group, so that nobody waits for it who was there before. Whoever is applying just now does it then. */
static void run_maintenance(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    bool due = journal__maintain(journal, &group);
    tl_ts wanted = due ? core_last_ts(journal->core) : 0;
    if (due)
        journal__note_applied(journal);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
}

void journal__listen(struct journal *journal)
{
    struct journal_input_barrier ears = {0};
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__read_pace(journal);
    if (must_listen(journal, clock)) {
        ears = journal->ears;
        if (ears.start == NULL) {
            journal->heard = clock;
            journal->heard_queued = journal->queued;
        } else {
            journal->listening = true;
            journal->listen_clock = clock;
        }
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (ears.start != NULL)
        ears.start(ears.context);
}

void *journal__worker(void *context)
{
    struct journal *journal = context;
    while (await_work(journal)) {
        journal__listen(journal);
        work_once(journal);
        run_maintenance(journal);
        journal__keep_checkpoints(journal);
    }
    return NULL;
}

void journal_set_input_barrier(struct journal *journal, const struct journal_input_barrier *ears)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->ears = *ears;
    journal->listening = false;
    pthread_mutex_unlock(&journal->queue_lock);
}

void journal_barrier_passed(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    if (journal->listening) {
        journal->listening = false;
        journal->heard = journal->listen_clock;
        journal->heard_queued = journal->queued;
        if (journal->sleepers > 0)
            pthread_cond_signal(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}
