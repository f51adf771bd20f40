/* SPDX-License-Identifier: Apache-2.0 */
/* A host's membership in a cluster: start, submission, timeouts, end. README.md, "In a cluster". */
#include "journal/at_work.h"
#include "journal/cluster.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "journal/read_ahead.h"
#include "journal/recover.h"

#define TIMEOUT_DEFAULT_US (30 * TL_SECOND)
#define CLOCK_SKEW_DEFAULT_US (500 * TL_MS)
#define KEEPER_POLL_US (100 * TL_MS)     /* polling interval of the keeper's thread */
#define WARN_INTERVAL_US (5 * TL_SECOND) /* interval of the warnings of a start that waits */
#define STOP_POLL_US (100 * TL_MS)       /* polling interval of a start for its stop */
#define DRAIN_US (5 * TL_SECOND)         /* limit of ordering queued commands while stopping */

static char *copy_text(struct slice text)
{
    return mem_strdup(text.data, text.len);
}

void cluster__refuse(struct command *command, enum problem_type type, const char *why)
{
    REQUIRE(type != PROBLEM_NONE && why != NULL);
    problem_set(&command->problem, &command->arena, type, "%s", why);
}

uint64_t cluster__clock(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    return cluster_clock_read(&journal->cluster->cluster_clock, journal__boot(journal));
}

bool cluster__is_kept(const struct command *command)
{
    return command->type == COMMAND_CANCEL || command->type == COMMAND_SESSION_DETACH ||
           command->type == COMMAND_LIMITS;
}

/* --- Submitting --------------------------------------------------------------------------------------------------- */

void cluster__submit(struct journal *journal, struct command *command)
{
    REQUIRE(command->on_done != NULL);
    struct cluster *cluster = journal->cluster;
    bool unlogged = command_is(command->type, COMMAND_UNLOGGED);
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    bool taken = !stopped && journal__register_waiter(command);
    if (taken && unlogged) {
        command->clock = journal__boot(journal); /* time of submission, as in journal__queue() */
        list_append(&cluster->inspections, &command->link);
    }
    if (taken && !unlogged)
        journal__queue(journal, command);
    pthread_mutex_unlock(&journal->queue_lock);
    if (unlogged && taken)
        cmdlog_interrupt(cluster->cursor);
    if (stopped)
        cluster__refuse(command, PROBLEM_STOPPING, "the server is stopping; try again later");
    else if (!taken)
        journal__refuse_cancelled(command);
    if (!taken)
        command->on_done(command);
}

void cluster__submit_own(struct journal *journal, struct command *command)
{
    if (command->request == 0)
        command->request = (uint64_t)journal->cluster->host << HOST_SHIFT;
    if (command->on_done == NULL)
        command->on_done = journal__free_internal;
    cluster__submit(journal, command);
}

void cluster__requeue(struct journal *journal, struct inflight_entry *entry)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    struct list *first = journal->queue.next;
    while (!list_empty(&entry->commands)) {
        struct command *command = list_entry(entry->commands.next, struct command, link);
        list_remove(&command->link);
        /* Stale; a new one will follow. */
        if (command->type == COMMAND_HEARTBEAT || command->type == COMMAND_TICK) {
            cluster->ticking = cluster->ticking && command->type != COMMAND_TICK;
            cluster->beat_at = 0;
            command_free(command);
            continue;
        }
        list_insert_before(first, &command->link);
        journal->taken--;
    }
    list_remove(&entry->link);
    mem_free(entry);
}

/* --- Needless ends of waits --------------------------------------------------------------------------------------- */

struct request_numbers {
    uint64_t *numbers; /* rising */
    size_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

static bool is_among(const struct request_numbers *all, uint64_t number)
{
    return bsearch(&number, all->numbers, all->count, sizeof number, compare_numbers) != NULL;
}

/* Returns: the requests of the commands that may have been cancelled. Owns: the caller; mem_free. */
static struct request_numbers list_cancelable(const struct list *commands)
{
    struct request_numbers all = {0};
    size_t capacity = 0;
    list_for_each(link, commands)
    {
        const struct command *command = list_entry(link, struct command, link);
        if (command->waiter == NULL)
            continue;
        if (all.count == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            all.numbers = mem_realloc(all.numbers, capacity * sizeof *all.numbers);
        }
        all.numbers[all.count++] = command->request;
    }
    if (all.count > 0)
        qsort(all.numbers, all.count, sizeof *all.numbers, compare_numbers);
    return all;
}

size_t cluster__drop_cancels(const struct list *refused, struct list *among, struct list *dropped)
{
    struct request_numbers never = list_cancelable(refused);
    size_t count = 0;
    list_for_each_safe(link, following, among)
    {
        const struct command *command = list_entry(link, struct command, link);
        if (never.count == 0 || command->type != COMMAND_CANCEL || !is_among(&never, command->cancel.request))
            continue;
        list_remove(link);
        list_append(dropped, link);
        count++;
    }
    mem_free(never.numbers);
    return count;
}

void cluster__drop_queued_cancels(struct journal *journal, const struct list *refused, struct list *dropped)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    list_for_each(link, refused)
    {
        struct command *command = list_entry(link, struct command, link);
        if (command->waiter != NULL)
            journal_waiter_completed(command->waiter);
    }
    journal->taken += cluster__drop_cancels(refused, &journal->queue, dropped);
}

/* --- Timeouts ----------------------------------------------------------------------------------------------------- */

void cluster__complete_commands(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        REQUIRE(command->on_done != NULL);
        command->on_done(command);
    }
}

/*
 * Removes commands submitted before a time from a list: they are in no entry, and never happen. Those of
 * cluster__is_kept() stay. Returns: their number. Requires: queue_lock.
 */
static size_t expire_list(struct journal *journal, struct list *commands, uint64_t before, struct list *refused)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    size_t count = 0;
    list_for_each_safe(link, following, commands)
    {
        struct command *command = list_entry(link, struct command, link);
        if (command->clock > before || cluster__is_kept(command))
            continue;
        list_remove(link);
        count++;
        cluster__refuse(command, PROBLEM_LOG_UNAVAILABLE,
                        "the log of the cluster could not be reached in time, or this host is out of the cluster; "
                        "nothing was done");
        list_append(refused, link);
    }
    return count;
}

/*
 * Abandons entries submitted before a time: they may still be ordered, so the outcome of their
 * commands is unknown. Those of cluster__is_kept() are queued again, in front, since the entry may never be:
 * two of them are as one. Requires: queue_lock.
 */
static void expire_inflight(struct journal *journal, uint64_t before, struct list *refused)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct list *first = journal->queue.next;
    list_for_each(at, &journal->cluster->inflight)
    {
        struct inflight_entry *entry = list_entry(at, struct inflight_entry, link);
        if (entry->submitted > before || entry->abandoned)
            continue;
        entry->abandoned = true;
        while (!list_empty(&entry->commands)) {
            struct command *command = list_entry(entry->commands.next, struct command, link);
            list_remove(&command->link);
            if (cluster__is_kept(command)) {
                list_insert_before(first, &command->link);
                journal->taken--;
                continue;
            }
            cluster__refuse(
                command, PROBLEM_OUTCOME_UNKNOWN,
                "the log of the cluster did not answer in time; whether this was done, or will be, is not known");
            list_append(refused, &command->link);
        }
    }
}

void cluster__expire_commands(struct journal *journal)
{
    struct list refused = LIST_INIT(refused), dropped = LIST_INIT(dropped);
    uint64_t now = journal__boot(journal);
    pthread_mutex_lock(&journal->queue_lock);
    if (now > journal->cluster->timeout_us) {
        journal->taken += expire_list(journal, &journal->queue, now - journal->cluster->timeout_us, &refused);
        cluster__drop_queued_cancels(journal, &refused, &dropped);
        (void)expire_list(journal, &journal->cluster->inspections, now - journal->cluster->timeout_us, &refused);
        expire_inflight(journal, now - journal->cluster->timeout_us, &refused);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    cluster__complete_commands(&refused);
    cluster__complete_commands(&dropped);
}

/* --- The keeper's thread ------------------------------------------------------------------------------------------ */

static void on_maintained(struct command *command)
{
    REQUIRE(command->type == COMMAND_MAINTAIN);
    struct journal *journal = command->context;
    pthread_mutex_lock(&journal->queue_lock);
    journal->cluster->maintaining = false;
    journal->cluster->more =
        command->problem.type == PROBLEM_NONE && command->maintain.removed >= command->maintain.keys_max;
    pthread_mutex_unlock(&journal->queue_lock);
    command_free(command);
}

static void maintain_cluster(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct list proposed = LIST_INIT(proposed);
    pthread_mutex_lock(&journal->queue_lock);
    bool keeper = cluster->is_keeper && cluster->joined && !cluster->maintaining;
    bool more = cluster->more;
    cluster->more = false;
    pthread_mutex_unlock(&journal->queue_lock);
    pthread_mutex_lock(&journal->core_lock);
    if (more && keeper)
        journal->maintain_at = 0;
    journal__maintain_cluster(journal, keeper, &proposed);
    pthread_mutex_unlock(&journal->core_lock);
    while (!list_empty(&proposed)) {
        struct command *command = list_entry(proposed.next, struct command, link);
        list_remove(&command->link);
        if (command->type == COMMAND_MAINTAIN) {
            pthread_mutex_lock(&journal->queue_lock);
            cluster->maintaining = true;
            pthread_mutex_unlock(&journal->queue_lock);
            command->on_done = on_maintained;
            command->context = journal;
        }
        cluster__submit_own(journal, command);
    }
}

/*
 * Gives up a life whose JOIN the log has accepted and then refused for lack of space, as etcd does when
 * its alarm is raised: it never appears in the order. Nothing else is submitted while this host joins, so
 * the JOIN's number is not given to another entry.
 */
static void settle_join(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    cmdlog_position position;
    pthread_mutex_lock(&journal->queue_lock);
    bool joining = cluster->joining;
    pthread_mutex_unlock(&journal->queue_lock);
    if (joining && cmdlog_outcome(cluster->log, cluster->join_number, 0, &position) == TL_ERR_NO_SPACE)
        cluster__give_up_life(journal);
}

/* Returns: whether this host must join (again): the log or the core has declared it out. */
static bool is_out(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct cmdlog_lease lease;
    settle_join(journal);
    cmdlog_lease(cluster->log, &lease);
    pthread_mutex_lock(&journal->queue_lock);
    if (lease.life != cluster->life || cluster->life == 0) {
        if (cluster->joined)
            log_warning("this host was out of the cluster; it joins again");
        cluster->joined = cluster->joining = false;
        if (!cluster->refusal_is_final)
            mem_free(tl_steal(cluster->refused)); /* without a lease nothing is applied that could decide */
    }
    bool out = !cluster->joined && !cluster->joining && cluster->refused == NULL;
    bool refused = cluster->refused != NULL && cluster->refusal_is_final && cluster->was_joined;
    pthread_mutex_unlock(&journal->queue_lock);
    if (refused) /* while it was out, the cluster changed its limits or its build */
        journal__store_failed(cluster->refused, TL_ERR_BUSY);
    return out;
}

static bool is_over(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool over = journal->cluster->ended;
    pthread_mutex_unlock(&journal->queue_lock);
    return over;
}

static void check_hosts(struct journal *journal, uint64_t *version)
{
    struct cmdlog_hosts *hosts;
    int r = cmdlog_list_hosts(journal->cluster->log, *version, clock_boot_us() + KEEPER_POLL_US, &hosts);
    if (r == CMDLOG_END)
        r = cmdlog_list_hosts(journal->cluster->log, 0, clock_boot_us(), &hosts);
    if (r != 0) {
        if (r == CMDLOG_UNREACHABLE)
            usleep((useconds_t)KEEPER_POLL_US);
        return;
    }
    *version = hosts->version;
    cluster__report_gone(journal, hosts);
    cluster__reconsider_refusal(journal, hosts);
    mem_free(hosts);
}

/* Joins if this host is out. `warned`: boot clock of the last warning about a failure. */
static void join_if_out(struct journal *journal, uint64_t *warned)
{
    int r = is_out(journal) ? cluster__join(journal) : 0;
    if (r == 0 || clock_boot_us() - *warned < WARN_INTERVAL_US)
        return;
    if (r == CMDLOG_EXISTS)
        log_warning("this host is not in the cluster yet: a host of the name %s is, from another data directory, a "
                    "copy of this one, or with another address, or its lease is not over. Stop it, or give this one "
                    "another --node-name",
                    journal->cluster->name);
    else if (r == TL_ERR_NO_SPACE)
        log_warning("this host is not in the cluster yet: etcd, which has the log, has reached its quota");
    else
        log_warning("this host is not in the cluster yet: the log cannot be reached");
    *warned = clock_boot_us();
}

static void keeper_thread(void *context)
{
    struct journal *journal = context;
    uint64_t version = 0, warned = 0;
    while (!is_over(journal)) {
        join_if_out(journal, &warned);
        check_hosts(journal, &version);
        cluster__expire_commands(journal);
        journal__start_input_barrier(journal);
        journal__end_idle_query_txns(journal);
        maintain_cluster(journal);
        cluster__check_log_space(journal);
        journal__presync_log(journal);
        pthread_mutex_lock(&journal->core_lock); /* no other thread begins checkpoints */
        journal__advance_checkpoints(journal);
    }
}

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

static struct cluster *new_cluster(const struct core *core, const struct journal_options *options,
                                   struct cmdlog_cursor *cursor)
{
    const struct journal_cluster *identity = options->cluster;
    struct cluster *cluster = mem_zalloc(sizeof *cluster);
    cluster->log = options->log;
    cluster->clock_skew_us = identity->clock_skew_us ? identity->clock_skew_us : CLOCK_SKEW_DEFAULT_US;
    cluster->cursor = cursor;
    cluster->replay.observer = identity->observer;
    cluster->ahead = read_ahead_open(&(struct read_ahead_options){.at_work = options->at_work});
    cluster->skips = options->skips;
    cluster->name = copy_text(identity->name);
    cluster->group = copy_text(identity->group);
    cluster->address = cluster__join_address(identity);
    cluster->build = copy_text(identity->build);
    cluster->about = copy_text(identity->about);
    cluster->directory = options->directory.len > 0 ? copy_text(options->directory) : NULL;
    cluster->limits = options->limits != NULL ? *options->limits : *core_limits(core);
    cluster->timeout_us = identity->timeout_us ? identity->timeout_us : TIMEOUT_DEFAULT_US;
    pthread_cond_init(&cluster->changed, NULL);
    list_init(&cluster->inflight);
    list_init(&cluster->inspections);
    list_init(&cluster->withheld);
    return cluster;
}

static bool begin_threads(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    return thread_start(&cluster->follower, "follower", cluster__follower, journal) == 0 &&
           thread_start(&cluster->proposer, "proposer", cluster__proposer, journal) == 0 &&
           thread_start(&cluster->keeper, "keeper", keeper_thread, journal) == 0 && journal__begin_saver(journal);
}

/*
 * Blocks until this host has joined. Returns: 0; TL_ERR_BUSY: the refusal is final, with *ret_reason
 * (mem_free); TL_ERR_STOPPED.
 */
static int await_join(struct journal *journal, const atomic_bool *stopping, char **ret_reason)
{
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    while (!cluster->joined && !cluster->refusal_is_final && !(stopping != NULL && atomic_load(stopping)))
        (void)clock_wait(&cluster->changed, &journal->queue_lock, clock_boot_us() + STOP_POLL_US);
    bool in = cluster->joined, refused = cluster->refused != NULL && cluster->refusal_is_final;
    if (!in && refused && ret_reason != NULL)
        *ret_reason = mem_strdup(cluster->refused, strlen(cluster->refused));
    pthread_mutex_unlock(&journal->queue_lock);
    return in ? 0 : refused ? TL_ERR_BUSY : TL_ERR_STOPPED;
}

/*
 * Logs the limits if no version has recorded them yet: all hosts joined with the same ones. Two
 * hosts may do this; the second has no effect.
 */
static void propose_limits(struct journal *journal)
{
    struct command *command = command_new(COMMAND_LIMITS, DIALECT_7);
    pthread_mutex_lock(&journal->core_lock);
    bool said = core_limits_recorded(journal->core);
    command->limits.limits = *core_limits(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    if (said)
        command_free(command);
    else
        cluster__submit_own(journal, command);
}

int journal_open_cluster(struct core *core, struct store *store, const struct journal_options *options,
                         struct journal **ret_journal, char **ret_reason)
{
    struct cmdlog_cursor *cursor;
    REQUIRE(options->cluster != NULL && options->log != NULL && cmdlog_is_host_name(options->cluster->name));
    if (ret_reason != NULL)
        *ret_reason = NULL;
    int r = cmdlog_follow(options->log, options->cmdlog_position + 1, &cursor);
    if (r == CMDLOG_TRIMMED)
        return recover_refuse_trimmed(ret_reason);
    if (r < 0)
        return tl_trace(r);
    struct journal *journal = journal__new(core, store, options);
    journal->cluster = new_cluster(core, options, cursor);
    cluster_clock_init(&journal->cluster->cluster_clock, journal__boot(journal), core_clock(core));
    core_reset_metrics(core);
    core_watch(core, options->at_work == NULL ? NULL : at_work_watch_commands(options->at_work));
    pthread_mutex_lock(&journal->core_lock);
    cluster__record_chain(journal, journal->position);
    cluster__update_hosts(journal);
    pthread_mutex_unlock(&journal->core_lock);
    journal__publish(journal);
    cluster__publish_applied(journal);
    r = begin_threads(journal) ? await_join(journal, options->cluster->stopping, ret_reason) : tl_trace(TL_ERR_IO);
    if (r < 0) {
        journal_close(journal);
        return r;
    }
    cluster__end_start_replay(journal);
    propose_limits(journal);
    journal->serving = true;
    *ret_journal = journal;
    return 0;
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

/* Blocks until each queued command is ordered, for a limited time, then ends submission. */
static void drain_queue(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    uint64_t until = clock_boot_us() + DRAIN_US;
    pthread_mutex_lock(&journal->queue_lock);
    cluster->draining = true;
    pthread_cond_broadcast(&journal->queue_filled);
    while (cluster->joined && (!list_empty(&journal->queue) || !list_empty(&cluster->inflight)) &&
           clock_wait(&cluster->changed, &journal->queue_lock, until))
        ;
    cluster->ended = true;
    pthread_cond_broadcast(&journal->queue_filled);
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Moves all commands of a list to `refused`, each with a problem. */
static void refuse_all(struct list *commands, enum problem_type type, const char *why, struct list *refused)
{
    while (!list_empty(commands)) {
        struct list *link = commands->next;
        list_remove(link);
        cluster__refuse(list_entry(link, struct command, link), type, why);
        list_append(refused, link);
    }
}

/* Completes the commands that will not be ordered or answered any more. */
static void end_left(struct journal *journal)
{
    static const char stopping[] = "the server is stopping; try again later";
    struct cluster *cluster = journal->cluster;
    struct list refused = LIST_INIT(refused);
    pthread_mutex_lock(&journal->queue_lock);
    expire_inflight(journal, UINT64_MAX, &refused); /* it may queue commands again */
    refuse_all(&journal->queue, PROBLEM_STOPPING, stopping, &refused);
    refuse_all(&journal->postponed, PROBLEM_STOPPING, stopping, &refused);
    while (!list_empty(&cluster->inflight)) {
        struct inflight_entry *entry = list_entry(cluster->inflight.next, struct inflight_entry, link);
        list_remove(&entry->link);
        mem_free(entry);
    }
    refuse_all(&cluster->inspections, PROBLEM_STOPPING, stopping, &refused);
    refuse_all(&cluster->withheld, PROBLEM_OUTCOME_UNKNOWN,
               "this host differs from the other hosts of the cluster; whether this was done is not known", &refused);
    pthread_mutex_unlock(&journal->queue_lock);
    cluster__complete_commands(&refused);
}

void cluster__stop(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    drain_queue(journal);
    thread_join(&cluster->proposer);
    thread_join(&cluster->keeper);
    pthread_mutex_lock(&journal->queue_lock);
    bool joined = cluster->joined; /* the follower still runs */
    pthread_mutex_unlock(&journal->queue_lock);
    if (joined && cmdlog_leave(cluster->log, clock_boot_us() + TL_SECOND) != 0)
        log_info("the others will know by its lease that this host has left");
    pthread_mutex_lock(&journal->queue_lock);
    cluster->joined = false;
    cluster->follower_stopping = true;
    pthread_mutex_unlock(&journal->queue_lock);
    cmdlog_interrupt(cluster->cursor);
    thread_join(&cluster->follower);
    end_left(journal);
}

void cluster__free(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    if (cluster == NULL)
        return;
    read_ahead_close(cluster->ahead);
    cmdlog_unfollow(cluster->cursor);
    pthread_cond_destroy(&cluster->changed);
    mem_free(cluster->name);
    mem_free(cluster->group);
    mem_free(cluster->address);
    mem_free(cluster->build);
    mem_free(cluster->about);
    mem_free(cluster->directory);
    mem_free(cluster->refused);
    mem_free(cluster->skips_read);
    mem_free(cluster->own_skips);
    mem_free(cluster->hosts);
    mem_free(cluster);
    journal->cluster = NULL;
}
