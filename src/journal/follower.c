/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the entries of the cluster's log. README.md, "In a cluster". */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/command/command_codec.h"
#include "journal/at_work.h"
#include "journal/cluster.h"
#include "journal/read_ahead.h"

#define AWAIT_US TL_SECOND
#define PAUSED_POLL_US TL_MS
#define OUT_POLL_US (5 * TL_MS)
#define ATTEMPT_US (100 * TL_MS)

/* --- This host's own entries -------------------------------------------------------------------------------------- */

/*
 * Finds an in-flight entry of this host by life and number. An entry of a previous life also counts
 * if it precedes the JOIN of the current one.
 * Returns: the entry; NULL: it is another host's, or a repetition. Requires: queue_lock.
 */
static struct inflight_entry *find_own_entry(struct journal *journal, const struct command_group_header *head)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    list_for_each(link, &journal->cluster->inflight)
    {
        struct inflight_entry *entry = list_entry(link, struct inflight_entry, link);
        if (entry->life == head->life && entry->number == head->number)
            return entry;
    }
    return NULL;
}

/* As find_own_entry(), and removes the entry from the list. */
static struct inflight_entry *take_own_entry(struct journal *journal, const struct command_group_header *head)
{
    struct inflight_entry *entry = find_own_entry(journal, head);
    if (entry != NULL)
        list_remove(&entry->link);
    return entry;
}

/* Cancels the waits of abandoned commands in the core. */
static void cancel_abandoned(struct journal *journal, const uint64_t *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
        command->cancel.request = requests[i];
        command->on_done = journal__free_internal;
        cluster__submit_own(journal, command);
    }
}

/* --- Effects on the cluster --------------------------------------------------------------------------------------- */

/*
 * The cluster-related content of an entry. It is collected before the entry is applied, because its
 * commands belong to their submitters afterwards.
 */
struct entry_effects {
    struct list heartbeats; /* copies */
    bool hosts;             /* the core's hosts may change */
    uint64_t joined_life;   /* life in a JOIN; 0: none */
    uint64_t *requests;     /* of an abandoned entry; mem_free */
    size_t request_count;
};

static void collect_effect(struct entry_effects *effects, const struct command *command)
{
    if (command->type == COMMAND_HEARTBEAT) {
        struct command *copy = command_new(COMMAND_HEARTBEAT, DIALECT_7);
        copy->request = command->request;
        copy->heartbeat = command->heartbeat;
        list_append(&effects->heartbeats, &copy->link);
    }
    if (command->type == COMMAND_JOIN)
        effects->joined_life = command->join.life;
    effects->hosts = effects->hosts || command->type == COMMAND_HEARTBEAT || command->type == COMMAND_JOIN ||
                     command->type == COMMAND_HOST_GONE;
}

static void collect_effects(struct journal *journal, struct entry_effects *effects, struct list *commands,
                            bool abandoned)
{
    list_init(&effects->heartbeats);
    list_for_each(link, commands)
    {
        const struct command *command = list_entry(link, struct command, link);
        metric_add(&journal->metrics.commands[command->type], 1);
        collect_effect(effects, command);
        if (!abandoned)
            continue;
        effects->requests = mem_realloc(effects->requests, (effects->request_count + 1) * sizeof *effects->requests);
        effects->requests[effects->request_count++] = command->request;
    }
}

/*
 * Begins a life of this host, which has joined. In-flight entries of its previous life will never
 * be applied, so their commands are queued again. Requires: queue_lock.
 */
static void begin_life(struct journal *journal, uint16_t number)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    while (!list_empty(&cluster->inflight)) /* newest first, which preserves their order */
        cluster__requeue(journal, list_entry(cluster->inflight.prev, struct inflight_entry, link));
    cluster->host = number;
    cluster->number = 0;
    cluster->beat_at = 0;
    cluster->joining = false;
    cluster->joined = cluster->was_joined = cluster->replay.joined = true;
    cluster__forget_clocks(journal);
}

/*
 * Returns: why this host's JOIN was refused; mem_free. The core's reason names the limit only: what a host does
 * about it depends on that host's own. Requires: core_lock, queue_lock.
 */
static char *describe_refusal(struct journal *journal, struct slice reason)
{
    REQUIRE(journal__holds(&journal->core_lock) && journal__holds(&journal->queue_lock));
    const struct core_limits *own = &journal->cluster->limits, *common = core_limits(journal->core);
    const char *limit = core_limits_differ(own, common);
    size_t len = limit != NULL ? strlen(limit) : 0;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&text, reason);
    if (len > 0 && reason.len > len && slice_is(slice_from_offset(reason, reason.len - len), limit)) {
        uint64_t value = core_limits_value(common, limit);
        buf_printf(&text, ": this host has %" PRIu64 ", the cluster %" PRIu64, core_limits_value(own, limit), value);
        if (strchr(limit, ' ') == NULL)
            buf_printf(&text, "; start it with --%s %" PRIu64, limit, value);
    }
    buf_byte(&text, '\0');
    return buf_detach(&text, &(size_t){0});
}

/* Handles an applied JOIN of this host: it has joined, or was refused. Requires: core_lock. */
static void handle_join(struct journal *journal, uint64_t life, const struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cluster *cluster = journal->cluster;
    size_t count;
    const struct core_host *all = core_hosts(journal->core, &count);
    pthread_mutex_lock(&journal->queue_lock);
    if (life == cluster->life && cluster->joining) {
        for (size_t i = 0; i < count; i++)
            if (all[i].life == life)
                begin_life(journal, all[i].number);
        list_for_each(link, group)
        {
            const struct command *command = list_entry(link, struct command, link);
            if (command->type == COMMAND_JOIN && command->problem.type != PROBLEM_NONE && cluster->refused == NULL) {
                cluster->joining = cluster->refusal_is_final = cluster->refusal_reported = false;
                cluster->refused_at = clock_boot_us();
                cluster->refused_after = cluster->lives_ended;
                cluster->refused = describe_refusal(journal, command->problem.reason);
            }
        }
        pthread_cond_broadcast(&cluster->changed);
        pthread_cond_broadcast(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

/* --- Skipped entries ---------------------------------------------------------------------------------------------- */

/*
 * Returns: the life in which this host is a member now and has read the skipped entries; 0: none, so
 *          no entry may be applied.
 */
static uint64_t member_life(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct cmdlog_lease lease;
    cmdlog_lease(cluster->log, &lease);
    pthread_mutex_lock(&journal->queue_lock);
    bool read = lease.life == cluster->skips_life;
    pthread_mutex_unlock(&journal->queue_lock);
    return read && clock_boot_us() < lease.until ? lease.life : 0;
}

static _Noreturn void end_skipped(const struct cluster *cluster)
{
    cluster__end_different(cluster, "an entry that this host has applied was left out of the log (--skip-entry) while "
                                    "this host was out of the cluster and had been forgotten");
}

/*
 * Adopts the skips that were read in a new life. One that is new and not after the applied position
 * was made while this host was forgotten.
 */
static void adopt_skips(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    struct cmdlog_skips *read = tl_steal(cluster->skips_read);
    pthread_mutex_unlock(&journal->queue_lock);
    if (read == NULL)
        return;
    for (size_t i = 0; i < read->count; i++)
        if (read->positions[i] <= journal->position && !cmdlog_is_skipped(cluster->skips, read->positions[i]))
            end_skipped(cluster);
    mem_free(cluster->own_skips);
    cluster->skips = cluster->own_skips = read;
}

static bool has_ended(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool ended = journal->cluster->ended;
    pthread_mutex_unlock(&journal->queue_lock);
    return ended;
}

/*
 * Answers the commands of this host that the unverified entry completed that their outcome is
 * unknown, except a JOIN, which handle_join() needs.
 */
static void answer_unverified(struct list *group)
{
    struct list unknown = LIST_INIT(unknown);
    list_for_each_safe(link, following, group)
    {
        struct command *command = list_entry(link, struct command, link);
        if (command->on_done == NULL || command->type == COMMAND_JOIN)
            continue;
        list_remove(link);
        cluster__refuse(command, PROBLEM_OUTCOME_UNKNOWN,
                        "the log of the cluster could not be reached in time to confirm that this was done; whether it "
                        "was is not known");
        list_append(&unknown, link);
    }
    cluster__complete_commands(&unknown);
}

/* Blocks until the log can be reached. Returns: the skipped entries; mem_free. */
static struct cmdlog_skips *await_skips(struct journal *journal, struct list *group)
{
    struct cluster *cluster = journal->cluster;
    struct cmdlog_skips *skips;
    uint64_t begun = journal__boot(journal);
    int r;
    while ((r = cmdlog_list_skips(cluster->log, clock_boot_us() + ATTEMPT_US, &skips)) == CMDLOG_UNREACHABLE) {
        if (has_ended(journal))
            journal__store_failed("stopping before the log of the cluster was asked whether the entry that was applied "
                                  "last is skipped",
                                  TL_ERR_STOPPED);
        if (journal__boot(journal) - begun >= cluster->timeout_us)
            answer_unverified(group);
        usleep((useconds_t)OUT_POLL_US);
    }
    if (r < 0)
        journal__store_failed("reading the skipped entries of the cluster's log", r);
    return skips;
}

/*
 * Returns if the entry that was applied had not been skipped when its application was complete; ends
 * the process if it had, or if the server stops before that is known. Called before the application
 * has any effect outside of the core. `group`: the commands that the entry completed; if it takes
 * longer than timeout_us they are answered that their outcome is unknown, and removed.
 * Requires: core_lock. It is released while the log is asked; the core is `unverified` then.
 */
static void verify_applied(struct journal *journal, cmdlog_position position, uint64_t life, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cluster *cluster = journal->cluster;
    if (member_life(journal) == life)
        return;
    cluster->unverified = true;
    pthread_mutex_unlock(&journal->core_lock);
    struct cmdlog_skips *skips = await_skips(journal, group);
    if (cmdlog_is_skipped(skips, position))
        end_skipped(cluster);
    mem_free(skips);
    pthread_mutex_lock(&journal->core_lock);
    cluster->unverified = false;
}

bool cluster__is_unverified(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return journal->cluster != NULL && journal->cluster->unverified;
}

/* --- Progress of a start ------------------------------------------------------------------------------------------ */

static void report_replay(struct journal *journal, enum recover_phase phase, uint64_t now)
{
    struct start_replay *replay = &journal->cluster->replay;
    replay->progress.phase = phase;
    replay->progress.us = now - replay->begun_us;
    replay->observer->report(replay->observer->context, &replay->progress);
    replay->reported_us = now;
}

/* Begins the reports. One attempt to learn where the log ends: nothing but the reports depends on the answer. */
static void begin_replay(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct start_replay *replay = &cluster->replay;
    replay->progress =
        (struct recover_progress){.shared = true, .checkpoint = journal->position, .position = journal->position};
    if (cmdlog_read_head(cluster->log, clock_boot_us() + ATTEMPT_US, &replay->progress.last) != 0)
        replay->progress.last = 0;
    replay->begun = true;
    replay->begun_us = journal__boot(journal);
    report_replay(journal, RECOVER_BEGINS, replay->begun_us);
}

/*
 * Reports the progress of a start before `entry` is applied: at the first one, unless that is the JOIN of this host,
 * which is in `life`, and when due.
 */
static void observe_entry(struct journal *journal, const struct cmdlog_entry *entry, uint64_t life)
{
    struct start_replay *replay = &journal->cluster->replay;
    bool first = !replay->begun;
    if (replay->observer == NULL || replay->joined || (first && entry->life == life))
        return;
    if (first)
        begin_replay(journal);
    struct recover_progress *progress = &replay->progress;
    if (progress->last != 0 && progress->last < entry->position) /* the other hosts append meanwhile */
        progress->last = entry->position;
    uint64_t now = journal__boot(journal);
    if (!first && now - replay->reported_us >= replay->observer->period_us)
        report_replay(journal, RECOVER_REPLAYS, now);
    progress->position = entry->position;
    progress->entries++;
    progress->bytes += entry->bytes.len;
}

void cluster__end_start_replay(struct journal *journal)
{
    REQUIRE(journal->cluster->replay.joined);
    if (journal->cluster->replay.begun)
        report_replay(journal, RECOVER_ENDED, journal__boot(journal));
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static void requeue_own(struct journal *journal, struct inflight_entry *mine, struct list *commands)
{
    REQUIRE(list_empty(&mine->commands));
    while (!list_empty(commands)) {
        struct list *link = commands->next;
        list_remove(link);
        list_append(&mine->commands, link);
    }
    pthread_mutex_lock(&journal->queue_lock);
    list_append(&journal->cluster->inflight, &mine->link);
    cluster__requeue(journal, mine);
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Moves the completed commands to `withheld` if this host differs from the others: no client is
 * answered from a state that may be wrong.
 */
static void withhold_replies(struct cluster *cluster, struct list *group)
{
    REQUIRE(cluster->differs || list_empty(&cluster->withheld));
    while (cluster->differs && !list_empty(group)) {
        struct list *link = group->next;
        list_remove(link);
        list_append(&cluster->withheld, link);
    }
}

static void apply_entry(struct journal *journal, const struct command_group_header *head,
                        const struct cmdlog_entry *entry, struct list *commands, struct inflight_entry *mine,
                        uint64_t life)
{
    REQUIRE(life > 0 && entry->position > 0);
    struct list group = LIST_INIT(group);
    bool own = mine != NULL && !mine->abandoned;
    struct entry_effects effects = {.hosts = false};
    collect_effects(journal, &effects, commands, mine != NULL && mine->abandoned);
    pthread_mutex_lock(&journal->core_lock);
    journal->step_clock = head->clock;
    uint64_t begun = journal__boot(journal);
    at_work_begin_entry(journal->at_work, entry->position, head->ts, entry->bytes.len);
    int r = command_group_apply(journal->core, head, commands, &journal->effects);
    if (r < 0) {
        at_work_fail_entry(journal->at_work);
        journal__store_failed("applying an entry", r);
    }
    at_work_end_entry(journal->at_work);
    journal__report_unbounded_step(journal);
    journal->work_us += journal__boot(journal) - begun;
    journal__move_completed(&journal->effects, &group);
    verify_applied(journal, entry->position, life, &group);
    journal->position = entry->position;
    journal->log_bytes += entry->bytes.len;
    cluster__record_chain(journal, entry->position);
    pthread_mutex_lock(&journal->queue_lock);
    if (r == 0)
        cluster_clock_observe(&journal->cluster->cluster_clock, journal__boot(journal), head->clock);
    pthread_mutex_unlock(&journal->queue_lock);
    if (effects.joined_life != 0)
        handle_join(journal, effects.joined_life, &group);
    if (effects.hosts)
        cluster__update_hosts(journal);
    journal__record_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);

    if (r == COMMAND_GROUP_IGNORED && own) {
        requeue_own(journal, tl_steal(mine), commands);
        own = false;
    }
    command_free_all(commands);
    withhold_replies(journal->cluster, &group);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    while (!list_empty(&effects.heartbeats)) {
        struct command *beat = list_entry(effects.heartbeats.next, struct command, link);
        list_remove(&beat->link);
        if (r == 0)
            cluster__compare(journal, beat, entry->submitted);
        command_free(beat);
    }
    if (effects.hosts) /* after all that is to be seen of the change */
        journal__change_state(journal);
    cancel_abandoned(journal, effects.requests, effects.request_count);
    mem_free(effects.requests);
    mem_free(mine);
}

/*
 * Passes an entry without applying it, as every host does. No command of it is of this process:
 * every host had halted when it was skipped.
 */
static void pass_skipped(struct journal *journal, const struct cmdlog_entry *entry)
{
    struct list group = LIST_INIT(group);
    log_warning("entry %" PRIu64 " of the log of the cluster is skipped (--skip-entry)", entry->position);
    pthread_mutex_lock(&journal->core_lock);
    journal->position = entry->position;
    journal->log_bytes += entry->bytes.len;
    cluster__record_chain(journal, entry->position);
    journal__record_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    cluster__publish_applied(journal);
}

/* Applies or passes an entry. Requires: this host is a member, in `life`. */
static void take_entry(struct journal *journal, struct read_ahead_entry *read, uint64_t life)
{
    REQUIRE(life > 0);
    struct cluster *cluster = journal->cluster;
    const struct cmdlog_entry *entry = &read->entry;
    adopt_skips(journal);
    observe_entry(journal, entry, life);
    if (cmdlog_is_skipped(cluster->skips, entry->position)) {
        pass_skipped(journal, entry);
        return;
    }
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;
    int r = command_group_read_header(entry->bytes, &head);
    pthread_mutex_lock(&journal->queue_lock);
    struct inflight_entry *mine = r == 0 ? take_own_entry(journal, &head) : NULL;
    if (mine != NULL)
        while (!list_empty(&mine->commands)) {
            struct list *link = mine->commands.next;
            list_remove(link);
            list_append(&commands, link);
        }
    pthread_mutex_unlock(&journal->queue_lock);
    if (r == 0 && list_empty(&commands) && (r = read_ahead_decode(cluster->ahead, read)) == 0)
        list_append_all(&commands, &read->commands);
    if (r == COMMAND_CODEC_NEWER) {
        log_error("the log of the cluster has entries of a newer version");
        r = TL_ERR_VERSION;
    }
    if (r < 0)
        journal__store_failed("reading an entry of the cluster's log", r);
    apply_entry(journal, &head, entry, &commands, mine, life);
    cluster__publish_applied(journal);
}

/* --- Commands without an entry ------------------------------------------------------------------------------------ */

static void run_inspections(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct list taken = LIST_INIT(taken), group = LIST_INIT(group);
    pthread_mutex_lock(&journal->queue_lock);
    while (!list_empty(&cluster->inspections)) {
        struct list *link = cluster->inspections.next;
        list_remove(link);
        list_append(&taken, link);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (list_empty(&taken))
        return;
    pthread_mutex_lock(&journal->core_lock);
    while (!list_empty(&taken)) {
        struct command *command = list_entry(taken.next, struct command, link);
        INSIST(command_is(command->type, COMMAND_UNLOGGED));
        list_remove(&command->link);
        journal__inspect(journal, command, &group);
    }
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, 0, SYNC_NONE);
}

/* --- Following ---------------------------------------------------------------------------------------------------- */

static bool is_over(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool over = journal->cluster->follower_stopping;
    pthread_mutex_unlock(&journal->queue_lock);
    return over;
}

/*
 * Returns: whether no entry may be applied now: the disk is full, or nearly full during a
 *          checkpoint.
 */
static bool is_paused(struct journal *journal)
{
    pthread_mutex_lock(&journal->core_lock);
    bool paused = journal__is_paused(journal) || !journal__is_ready(journal);
    pthread_mutex_unlock(&journal->core_lock);
    return paused;
}

/*
 * Returns: whether the commands of an entry may be decoded ahead. Those of an entry of this host are decoded already,
 * and an entry that is skipped is never decoded.
 */
static bool may_decode_ahead(struct journal *journal, const struct cmdlog_entry *entry)
{
    struct command_group_header head;
    if (cmdlog_is_skipped(journal->cluster->skips, entry->position) ||
        command_group_read_header(entry->bytes, &head) != 0)
        return false;
    pthread_mutex_lock(&journal->queue_lock);
    bool own = find_own_entry(journal, &head) != NULL;
    pthread_mutex_unlock(&journal->queue_lock);
    return !own;
}

/*
 * Reads the entries that the log has, as far as there is room for them. Returns: as cmdlog_next(); 0: there is no
 * room. Assumes: this host is a member, and has read which entries are skipped.
 */
static int read_entries(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct cmdlog_entry entry;
    int r = 0;
    adopt_skips(journal);
    while (r == 0 && read_ahead_has_room(cluster->ahead))
        if ((r = cmdlog_next(cluster->cursor, &entry)) == 0)
            read_ahead_put(cluster->ahead, &entry, cluster->behind && may_decode_ahead(journal, &entry));
    cluster->behind = r == 0 || (cluster->behind && r != CMDLOG_END);
    return r;
}

/* Waits for the next entry. The log may have passed a position that has none. */
static void await_followed(struct journal *journal)
{
    cluster__publish_applied(journal);
    if (cmdlog_await(journal->cluster->cursor, clock_boot_us() + AWAIT_US) != 0)
        return;
}

void cluster__follower(void *context)
{
    struct journal *journal = context;
    struct read_ahead *ahead = journal->cluster->ahead;
    int r = 0; /* of reading; after a failure the entries before it are applied */
    while (!is_over(journal)) {
        struct read_ahead_entry *entry;
        run_inspections(journal);
        if (is_paused(journal)) {
            usleep((useconds_t)PAUSED_POLL_US);
            continue;
        }
        uint64_t life = member_life(journal);
        if (life == 0) {
            usleep((useconds_t)OUT_POLL_US);
            continue;
        }
        if (r == 0 || r == CMDLOG_END)
            r = read_entries(journal);
        if (read_ahead_next(ahead, &entry) == 0) {
            take_entry(journal, entry, life);
            read_ahead_entry_free(entry);
        } else if (r == CMDLOG_END)
            await_followed(journal);
        else if (r == CMDLOG_TRIMMED)
            journal__store_failed("following the log of the cluster, which was trimmed beyond what this host has "
                                  "applied: its next start copies a checkpoint of another host",
                                  TL_ERR_CORRUPT);
        else
            journal__store_failed("following the log of the cluster", r);
    }
}
