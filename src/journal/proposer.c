/* SPDX-License-Identifier: Apache-2.0 */
/* What a host puts into the order of its cluster. README.md, "In a cluster". */
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "journal/cluster.h"

enum {
    ENTRY_BYTES = 1 << 20, /* an entry that has come to so many gets no further command */
};

#define BEAT_US TL_SECOND
#define SUBMIT_US (50 * TL_MS) /* one attempt, after which the entry is made anew of what is queued by then */

/* --- What is due -------------------------------------------------------------------------------------------------- */

/* Requires: queue_lock. A lease is over, and this host has heard since who keeps leases alive. */
static bool must_say_heard(const struct journal *journal)
{
    const struct cluster *cluster = journal->cluster;
    return journal->heard > cluster->said_heard && journal->lease_end <= journal->heard &&
           journal->lease_end > cluster->said_heard;
}

/* Requires: queue_lock. */
static bool is_beat_due(struct journal *journal)
{
    return journal->cluster->beat_at <= journal__boot(journal) || must_say_heard(journal);
}

/* Requires: queue_lock. */
static bool is_tick_due(struct journal *journal)
{
    const struct cluster *cluster = journal->cluster;
    return cluster->is_keeper && !cluster->ticking && journal->not_before <= journal__boot(journal) &&
           (journal->wait_end <= cluster__clock(journal) || journal->lease_end <= cluster->heard_by_all);
}

/* Requires: queue_lock. Returns: of boot, when something is due that nobody will tell of. */
static uint64_t next_look(struct journal *journal)
{
    const struct cluster *cluster = journal->cluster;
    uint64_t boot = journal__boot(journal), clock = cluster__clock(journal);
    uint64_t until = cluster->beat_at;
    if (cluster->is_keeper && !cluster->ticking && journal->wait_end < TL_TS_MAX && journal->wait_end > clock &&
        boot + (journal->wait_end - clock) < until)
        until = boot + (journal->wait_end - clock);
    return until > boot ? until : boot;
}

/* Sleeps until there is something to order. Returns: false when nothing is to be ordered any more. */
static bool await_turn(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    while (!cluster->ended) {
        if (cluster->in && (!list_empty(&journal->queue) || is_beat_due(journal) || is_tick_due(journal)))
            break;
        uint64_t until = cluster->in ? next_look(journal) : journal__boot(journal) + BEAT_US;
        journal->sleepers++;
        (void)journal__wait_until(journal, &journal->queue_filled, &journal->queue_lock, until);
        journal->sleepers--;
    }
    bool more = !cluster->ended;
    pthread_mutex_unlock(&journal->queue_lock);
    return more;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static void ticked(struct command *command)
{
    struct journal *journal = command->context;
    pthread_mutex_lock(&journal->queue_lock);
    journal->cluster->ticking = false;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    command_free(command);
}

static struct command *own(struct journal *journal, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = (uint64_t)journal->cluster->host << HOST_SHIFT;
    command->on_done = journal__free_internal;
    command->clock = journal__boot(journal);
    journal->queued++;
    journal->taken++;
    return command;
}

/* What the journal itself has to say, behind what was taken. `heard`: of the ears, all of that is in what was taken. Requires: queue_lock. */
static void add_own(struct journal *journal, uint64_t heard, struct list *taken)
{
    struct cluster *cluster = journal->cluster;
    if (is_beat_due(journal)) {
        struct command *beat = own(journal, COMMAND_HEARTBEAT);
        cluster->said_heard = heard > cluster->said_heard ? heard : cluster->said_heard;
        beat->heartbeat = (struct heartbeat_command){.barrier_clock = cluster->said_heard,
                                                     .low = store_history_low(journal->store),
                                                     .position = cluster->reached.position,
                                                     .chain = cluster->reached.chain};
        cluster->beat_at = journal__boot(journal) + BEAT_US;
        list_append(taken, &beat->link);
    }
    if (is_tick_due(journal)) {
        struct command *tick = own(journal, COMMAND_TICK);
        tick->tick.barrier_clock = cluster->heard_by_all;
        tick->on_done = ticked;
        tick->context = journal;
        cluster->ticking = true;
        list_append(taken, &tick->link);
    }
}

/* What this host has no room for is refused here. */
static void refuse_large(struct journal *journal, struct list *taken, struct list *refused)
{
    if (journal->directory == NULL)
        return;
    pthread_mutex_lock(&journal->core_lock);
    list_for_each_safe(link, following, taken)
    {
        if (!journal__refuse_too_much(journal, list_entry(link, struct command, link)))
            continue;
        list_remove(link);
        list_append(refused, link);
    }
    pthread_mutex_unlock(&journal->core_lock);
}

/* Writes as many commands as an entry takes. The rest stays in `taken`. */
static void write_entry(struct journal *journal, struct under_way *entry, struct list *taken)
{
    struct command_group_header head = {
        .host = journal->cluster->host, .ts = journal__wall(journal), .life = entry->life, .number = entry->number};
    pthread_mutex_lock(&journal->queue_lock);
    head.clock = cluster__clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    buf_clear(&journal->entry);
    command_group_begin(&head, &journal->entry);
    while (!list_empty(taken) && journal->entry.len < ENTRY_BYTES) {
        struct list *link = taken->next;
        list_remove(link);
        list_append(&entry->commands, link);
        command_group_add(list_entry(link, struct command, link), &journal->entry);
    }
}

static void put_back_taken(struct journal *journal, struct list *taken)
{
    struct list *first = journal->queue.next;
    while (!list_empty(taken)) {
        struct list *link = taken->next;
        list_remove(link);
        list_insert_before(first, link);
        journal->taken--;
    }
}

static void refuse_all(struct list *commands, struct list *refused)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        cluster__refuse(command, PROBLEM_DISK_FULL,
                        "the log of the cluster has no room; writes are refused until it has");
        list_append(refused, &command->link);
    }
}

/* Requires: queue_lock. */
static bool is_under_way(const struct cluster *cluster, const struct under_way *entry)
{
    list_for_each(link, &cluster->under_way) if (list_entry(link, struct under_way, link) == entry) return true;
    return false;
}

/*
 * The follower may see the entry before the log has said its number here. What was not taken is queued again, in front, so that whoever has waited too long
 * meanwhile is told that nothing was done. Returns: as cmdlog_submit(); 0 where it has come.
 */
static int submit(struct journal *journal, struct under_way *entry, struct list *refused)
{
    struct cluster *cluster = journal->cluster;
    struct slice part = buf_as_slice(&journal->entry);
    uint64_t number = 0;
    pthread_mutex_lock(&journal->queue_lock);
    bool in = cluster->in && cluster->life == entry->life;
    list_append(&cluster->under_way, &entry->link);
    pthread_mutex_unlock(&journal->queue_lock);
    int r = in ? cmdlog_submit(cluster->log, &part, 1, clock_boot_us() + SUBMIT_US, &number) : CMDLOG_FENCED;
    pthread_mutex_lock(&journal->queue_lock);
    if (!is_under_way(cluster, entry)) { /* it has come by now, or a new life has begun, and it was put back */
        pthread_mutex_unlock(&journal->queue_lock);
        return 0;
    }
    if (r == 0) {
        entry->log_number = number;
    } else {
        cluster->number -= cluster->life == entry->life;
        if (r == TL_ERR_NO_SPACE)
            refuse_all(&entry->commands, refused);
        cluster__put_back(journal, entry);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return r;
}

static void hand_back(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command->on_done(command);
    }
}

static void propose(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct list taken = LIST_INIT(taken), refused = LIST_INIT(refused);
    uint64_t heard = journal__take_queued(journal, &taken);
    refuse_large(journal, &taken, &refused);
    struct under_way *entry = mem_zalloc(sizeof *entry);
    list_init(&entry->commands);
    pthread_mutex_lock(&journal->queue_lock);
    add_own(journal, heard, &taken);
    entry->life = cluster->life;
    entry->number = ++cluster->number;
    entry->submitted = journal__boot(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    if (list_empty(&taken)) {
        pthread_mutex_lock(&journal->queue_lock);
        cluster->number--;
        pthread_mutex_unlock(&journal->queue_lock);
        mem_free(entry);
    } else {
        write_entry(journal, entry, &taken);
        pthread_mutex_lock(&journal->queue_lock);
        put_back_taken(journal, &taken);
        pthread_mutex_unlock(&journal->queue_lock);
        if (submit(journal, entry, &refused) != 0)
            cluster__tell_late(journal);
    }
    hand_back(&refused);
}

void *cluster__proposer(void *context)
{
    struct journal *journal = context;
    while (await_turn(journal))
        propose(journal);
    return NULL;
}
