/* SPDX-License-Identifier: Apache-2.0 */
/* Submits this host's entries to the cluster's log. README.md, "In a cluster". */
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "journal/cluster.h"

enum {
    ENTRY_BYTES = 1 << 20 /* an entry of this size gets no further command */
};

#define FULL_PAUSE_US (50 * TL_MS)
#define SLOT_US (50 * TL_MS)  /* limit of one wait for the entry in flight */
#define RETURN_US (3 * TL_MS) /* limit of the wait for clients that are being answered */

/*
 * Returns: whether entries have a life to be in. It is over, and this host not yet out, from when an entry has
 * ended it (HOST_GONE, or a JOIN of another process with this host's name) until the keeper's thread sees that.
 */
static bool has_life(const struct cluster *cluster)
{
    return cluster->joined && cluster->life != 0;
}

/* --- Heartbeats and TICKs ----------------------------------------------------------------------------------------- */

/*
 * Returns: whether a heartbeat must report a passed input barrier now, since a lease has expired.
 *          Requires: queue_lock.
 */
static bool must_send_barrier_clock(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    return journal->barrier_clock > cluster->sent_barrier_clock && journal->lease_end <= journal->barrier_clock &&
           journal->lease_end > cluster->sent_barrier_clock;
}

/* Requires: queue_lock. */
static bool is_beat_due(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    return journal->cluster->beat_at <= journal__boot(journal) || must_send_barrier_clock(journal);
}

/* Requires: queue_lock. */
static bool is_tick_due(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    return cluster->is_keeper && !cluster->ticking && journal->not_before <= journal__boot(journal) &&
           (journal->wait_end <= cluster__clock(journal) || journal->lease_end <= cluster->barrier_clock_min);
}

/*
 * Returns: on the boot clock, when the next heartbeat or timeout is due without a wake-up.
 *          Requires: queue_lock.
 */
static uint64_t next_look(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    uint64_t boot = journal__boot(journal), clock = cluster__clock(journal);
    uint64_t until = cluster->beat_at;
    if (cluster->is_keeper && !cluster->ticking && journal->wait_end < TL_TS_MAX && journal->wait_end > clock &&
        boot + (journal->wait_end - clock) < until)
        until = boot + (journal->wait_end - clock);
    return until > boot ? until : boot;
}

/* Sleeps until there is something to order. Returns: false: nothing is submitted any more. */
static bool await_turn(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    while (!cluster->ended) {
        if (has_life(cluster) && (!list_empty(&journal->queue) || is_beat_due(journal) || is_tick_due(journal)))
            break;
        uint64_t until = has_life(cluster) ? next_look(journal) : journal__boot(journal) + BEAT_US;
        journal->sleepers++;
        (void)journal__wait_until(journal, &journal->queue_filled, &journal->queue_lock, until);
        journal->sleepers--;
    }
    bool more = !cluster->ended;
    pthread_mutex_unlock(&journal->queue_lock);
    return more;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static void on_ticked(struct command *command)
{
    REQUIRE(command->type == COMMAND_TICK);
    struct journal *journal = command->context;
    pthread_mutex_lock(&journal->queue_lock);
    journal->cluster->ticking = false;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    command_free(command);
}

/* Makes a command of the journal's own. Requires: queue_lock. */
static struct command *own_command(struct journal *journal, enum command_type type)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct command *command = command_new(type, DIALECT_7);
    command->request = (uint64_t)journal->cluster->host << HOST_SHIFT;
    command->on_done = journal__free_internal;
    command->clock = journal__boot(journal);
    journal->queued++;
    journal->taken++;
    return command;
}

/*
 * Appends the journal's own commands that are due. `barrier_clock`: of a passed input barrier whose
 * input is in `taken` or earlier. Requires: queue_lock.
 */
static void add_own(struct journal *journal, uint64_t barrier_clock, struct list *taken)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    if (is_beat_due(journal)) {
        struct command *beat = own_command(journal, COMMAND_HEARTBEAT);
        cluster->sent_barrier_clock =
            barrier_clock > cluster->sent_barrier_clock ? barrier_clock : cluster->sent_barrier_clock;
        beat->heartbeat = (struct heartbeat_command){.barrier_clock = cluster->sent_barrier_clock,
                                                     .low = store_history_low(journal->store),
                                                     .position = cluster->applied.position,
                                                     .chain = cluster->applied.chain};
        cluster->beat_at = journal__boot(journal) + BEAT_US;
        list_append(taken, &beat->link);
    }
    if (is_tick_due(journal)) {
        struct command *tick = own_command(journal, COMMAND_TICK);
        tick->tick.barrier_clock = cluster->barrier_clock_min;
        tick->on_done = on_ticked;
        tick->context = journal;
        cluster->ticking = true;
        list_append(taken, &tick->link);
    }
}

/* Refuses commands that this host's disk has no space for. */
static void refuse_large(struct journal *journal, struct list *taken, struct list *refused)
{
    if (journal->directory == NULL)
        return;
    pthread_mutex_lock(&journal->core_lock);
    list_for_each_safe(link, following, taken)
    {
        if (!journal__refuse_oversized(journal, list_entry(link, struct command, link)))
            continue;
        list_remove(link);
        list_append(refused, link);
    }
    pthread_mutex_unlock(&journal->core_lock);
}

/* Returns: whether it is one of add_own(), which may have been queued by requeue_taken(). */
static bool is_own(const struct command *command)
{
    return command->type == COMMAND_HEARTBEAT || command->type == COMMAND_TICK;
}

/*
 * Returns: whether a command may run many cleanup actions, up to the limits of a step. It is the last one of its entry:
 * the next entry says again whether there is memory. (Without a cluster such a command has an entry of its own.)
 */
static bool may_run_actions(const struct command *command)
{
    return command->type == COMMAND_SESSION_DETACH ||
           (command->type == COMMAND_SESSION_CLOSE && command->session.force);
}

/*
 * Encodes commands up to the size of an entry, or the next one if it is tried alone, or up to one that
 * may_run_actions(). The rest stays in `taken`.
 */
static void write_entry(struct journal *journal, struct inflight_entry *entry, struct list *taken)
{
    REQUIRE(list_empty(&entry->commands) && entry->number > 0);
    struct command_group_header head = {.host = journal->cluster->host, .life = entry->life, .number = entry->number};
    pthread_mutex_lock(&journal->queue_lock);
    head.ts = cluster__proposed_ts(journal);
    head.clock = cluster__clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    head.memory_full = journal__is_memory_full(journal);
    buf_clear(&journal->entry);
    command_group_begin(&head, &journal->entry);
    bool alone = journal->cluster->alone > 0, ends = false;
    journal->cluster->sent_commands = 0;
    while (!list_empty(taken) && journal->entry.len < ENTRY_BYTES && !(alone && !list_empty(&entry->commands)) &&
           !ends) {
        struct command *command = list_entry(taken->next, struct command, link);
        list_remove(&command->link);
        list_append(&entry->commands, &command->link);
        command_group_add(command, &journal->entry);
        journal->cluster->sent_commands += !is_own(command);
        ends = may_run_actions(command);
    }
    journal->cluster->alone -= alone;
    journal->cluster->sent_at = clock_boot_us();
}

/* Requires: queue_lock. */
static void requeue_taken(struct journal *journal, struct list *taken)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct list *first = journal->queue.next;
    while (!list_empty(taken)) {
        struct list *link = taken->next;
        list_remove(link);
        list_insert_before(first, link);
        journal->taken--;
    }
}

/*
 * Returns: whether it is ordered while the log's space is scarce. HOST_GONE is one a host, and with a host that is
 * forgotten the log can be trimmed further.
 */
static bool is_ordered_always(const struct command *command)
{
    return is_own(command) || command->type == COMMAND_HOST_GONE;
}

/*
 * Refuses a command for which the log has no space, or postpones it: cluster__is_kept(). `command`: it is
 * in no list.
 */
static void refuse_one(struct journal *journal, struct command *command, struct list *refused)
{
    if (cluster__is_kept(command)) {
        list_append(&journal->postponed, &command->link);
        return;
    }
    cluster__refuse_log_full(journal, command);
    list_append(refused, &command->link);
}

/* Queues the postponed commands again, in front, once the log has space for small entries. */
static void requeue_postponed(struct journal *journal)
{
    struct cmdlog_space space;
    if (list_empty(&journal->postponed))
        return;
    cmdlog_space(journal->cluster->log, &space);
    if (space.scarce)
        return;
    pthread_mutex_lock(&journal->queue_lock);
    requeue_taken(journal, &journal->postponed);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Refuses commands for which the log has no space: those that add data, or all except the journal's own. */
static void refuse_for_space(struct journal *journal, struct list *taken, struct list *refused)
{
    struct cmdlog_space space;
    cmdlog_space(journal->cluster->log, &space);
    if (!space.full)
        return;
    list_for_each_safe(link, following, taken)
    {
        struct command *command = list_entry(link, struct command, link);
        if (space.scarce ? is_ordered_always(command) : !command_is(command->type, COMMAND_ADDS_DATA))
            continue;
        list_remove(link);
        refuse_one(journal, command, refused);
    }
    struct list dropped = LIST_INIT(dropped);
    (void)cluster__drop_cancels(refused, taken, &dropped);
    cluster__complete_commands(&dropped);
}

/* Completes commands that are in no entry, and their CANCELs, wherever these wait. */
static void complete_refused(struct journal *journal, struct list *refused)
{
    struct list dropped = LIST_INIT(dropped);
    if (list_empty(refused))
        return;
    pthread_mutex_lock(&journal->queue_lock);
    cluster__drop_queued_cancels(journal, refused, &dropped);
    pthread_mutex_unlock(&journal->queue_lock);
    (void)cluster__drop_cancels(refused, &journal->postponed, &dropped);
    cluster__complete_commands(&dropped);
    cluster__complete_commands(refused);
}

/*
 * Handles an entry for which the log has no space: the only command of an entry is refused; several are
 * queued again, in their order, and each is then tried alone. So a heartbeat or a release does not need
 * the space of a write. An abandoned entry has no commands. Frees the entry. Requires: queue_lock.
 * Returns: whether a command was refused that will be due again: one of the journal's own, or a postponed one.
 */
static bool refuse_entry(struct journal *journal, struct inflight_entry *entry, struct list *refused)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct list *commands = &entry->commands;
    bool is_single = !list_empty(commands) && commands->next == commands->prev, is_own_refused = false;
    if (is_single) {
        struct command *command = list_entry(commands->next, struct command, link);
        is_own_refused = is_own(command) || cluster__is_kept(command);
        list_remove(&command->link);
        refuse_one(journal, command, refused);
    }
    list_for_each(link, commands) journal->cluster->alone++;
    requeue_taken(journal, commands);
    list_remove(&entry->link);
    mem_free(entry);
    return is_own_refused;
}

/*
 * Marks the entries in flight whose numbers the log has given to a newer one: they are not in the log,
 * and their outcome can no longer be asked for. Requires: queue_lock.
 */
static void mark_replaced(struct journal *journal, uint64_t life, uint64_t log_number)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    list_for_each(link, &journal->cluster->inflight)
    {
        struct inflight_entry *entry = list_entry(link, struct inflight_entry, link);
        if (entry->life == life && entry->log_number >= log_number)
            entry->refused = true;
    }
}

/*
 * Handles the entries that the log has accepted and then refused for lack of space, as etcd does when
 * its alarm is raised: they never appear in the order. Newest first, which preserves the order of their
 * commands. Called before each submission: the log reuses the numbers of these entries.
 * Returns: whether a command of the journal's own was refused.
 */
static bool settle_inflight(struct journal *journal, struct list *refused)
{
    struct cluster *cluster = journal->cluster;
    bool is_own_refused = false;
    pthread_mutex_lock(&journal->queue_lock);
    for (struct list *link = cluster->inflight.prev, *older; link != &cluster->inflight; link = older) {
        struct inflight_entry *entry = list_entry(link, struct inflight_entry, link);
        cmdlog_position position;
        older = link->prev;
        int r = entry->refused ? TL_ERR_NO_SPACE
                : entry->log_number == 0 || entry->is_in
                    ? 0
                    : cmdlog_outcome(cluster->log, entry->log_number, 0, &position);
        entry->is_in = entry->log_number != 0 && r == 0;
        if (r == TL_ERR_NO_SPACE)
            is_own_refused = refuse_entry(journal, entry, refused) || is_own_refused;
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return is_own_refused;
}

/* Requires: queue_lock. */
static bool is_inflight(const struct journal *journal, const struct inflight_entry *entry)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    list_for_each(link,
                  &journal->cluster->inflight) if (list_entry(link, struct inflight_entry, link) == entry) return true;
    return false;
}

/*
 * Submits an entry. The follower may apply it before cmdlog_submit() returns. If the log does not
 * accept it, its commands return to the front of the queue, so that their timeout finds them in no
 * entry. If it has no space, as refuse_entry().
 * Returns: as cmdlog_submit(); 0: it was applied or queued again meanwhile.
 */
static int submit_entry(struct journal *journal, struct inflight_entry *entry, struct list *refused,
                        bool *ret_own_refused)
{
    struct cluster *cluster = journal->cluster;
    struct slice part = buf_as_slice(&journal->entry);
    uint64_t number = 0, life = entry->life; /* the entry may be applied and freed before the submission returns */
    REQUIRE(!list_empty(&entry->commands));
    pthread_mutex_lock(&journal->queue_lock);
    bool in = cluster->joined && cluster->life == entry->life;
    list_append(&cluster->inflight, &entry->link);
    pthread_mutex_unlock(&journal->queue_lock);
    int r = in ? cmdlog_submit(cluster->log, &part, 1, clock_boot_us(), &number) : CMDLOG_FENCED;
    pthread_mutex_lock(&journal->queue_lock);
    if (r == 0)
        mark_replaced(journal, life, number);
    if (!is_inflight(journal, entry)) { /* it was applied, or a new life queued it again */
        pthread_mutex_unlock(&journal->queue_lock);
        return 0;
    }
    if (r == 0) {
        entry->log_number = number;
    } else {
        cluster->number -= cluster->life == entry->life;
        if (r == TL_ERR_NO_SPACE)
            *ret_own_refused = refuse_entry(journal, entry, refused) || *ret_own_refused;
        else
            cluster__requeue(journal, entry);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return r;
}

/*
 * Gives an entry its place in this host's life, and adds the journal's own commands to `taken`.
 * Returns: false: there is nothing to submit, or this host has no life: a JOIN that is applied meanwhile
 *          begins the numbers anew. Then the commands are queued again.
 */
static bool begin_entry(struct journal *journal, uint64_t barrier_clock, struct list *taken,
                        struct inflight_entry *entry)
{
    REQUIRE(list_empty(&entry->commands));
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    if (has_life(cluster))
        add_own(journal, barrier_clock, taken);
    bool begun = has_life(cluster) && !list_empty(taken);
    if (begun) {
        entry->life = cluster->life;
        entry->number = ++cluster->number;
        entry->submitted = journal__boot(journal);
    } else {
        requeue_taken(journal, taken);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return begun;
}

static size_t queue_length(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    size_t length = (size_t)(journal->queued - journal->taken);
    pthread_mutex_unlock(&journal->queue_lock);
    return length;
}

/* Waits for so many queued commands, until a time of the boot clock, while this host has a life and does not stop. */
static void await_queue_length(struct journal *journal, size_t wanted, uint64_t until)
{
    const struct cluster *cluster = journal->cluster;
    bool in_time = true;
    pthread_mutex_lock(&journal->queue_lock);
    REQUIRE(journal->wake_length == 0);
    journal->wake_length = wanted;
    journal->sleepers++;
    while (in_time && journal->queued - journal->taken < wanted && has_life(cluster) && !cluster->draining &&
           !cluster->ended)
        in_time = clock_wait(&journal->queue_filled, &journal->queue_lock, until);
    journal->sleepers--;
    journal->wake_length = 0;
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Waits for the next commands of the clients whose commands were in the newest entry: they are being answered.
 * Otherwise there would be two groups of clients, of which one's entry is in flight while the other one waits, and
 * twice as many appends. `wanted`: as many commands as are queued then. The wait is in vain if clients are gone or send
 * rarely, so it is short. A single client never waits.
 */
static void await_returning(struct journal *journal, size_t wanted)
{
    uint64_t now = clock_boot_us(), took = now - journal->cluster->sent_at;
    if (took <= SLOT_US && !journal__is_group_queued(journal))
        await_queue_length(journal, wanted, now + (took / 2 < RETURN_US ? took / 2 : RETURN_US));
}

/*
 * Waits until the log has a slot, before commands are taken, so that those that arrive meanwhile are in the entry, too.
 * An append costs the members and all hosts much the same, however many commands it has, so one is in flight at a time.
 */
static void await_slot(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    bool was_busy = cmdlog_await_slot(cluster->log, 0) != 0;
    /* Without a slot by then, commands are taken all the same: some may have to be refused. */
    if (cmdlog_await_slot(cluster->log, clock_boot_us() + SLOT_US) == 0)
        await_returning(journal, cluster->sent_commands + (was_busy ? queue_length(journal) : 0));
}

static void propose_entry(struct journal *journal)
{
    struct list taken = LIST_INIT(taken), refused = LIST_INIT(refused);
    await_slot(journal);
    bool own_refused = settle_inflight(journal, &refused);
    requeue_postponed(journal);
    uint64_t barrier_clock = journal__take_queued(journal, &taken);
    refuse_large(journal, &taken, &refused);
    refuse_for_space(journal, &taken, &refused);
    struct inflight_entry *entry = mem_zalloc(sizeof *entry);
    list_init(&entry->commands);
    if (begin_entry(journal, barrier_clock, &taken, entry)) {
        write_entry(journal, entry, &taken);
        pthread_mutex_lock(&journal->queue_lock);
        requeue_taken(journal, &taken);
        pthread_mutex_unlock(&journal->queue_lock);
        int r = submit_entry(journal, entry, &refused, &own_refused);
        journal__trim_entry_buf(journal);
        if (r != 0)
            cluster__expire_commands(journal);
    } else {
        mem_free(entry);
    }
    complete_refused(journal, &refused);
    if (own_refused)
        usleep((useconds_t)FULL_PAUSE_US); /* a TICK is due again at once */
}

void cluster__proposer(void *context)
{
    struct journal *journal = context;
    while (await_turn(journal))
        propose_entry(journal);
}
