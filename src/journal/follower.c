/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in the order of a cluster is applied. README.md, "In a cluster". */
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/step/command_codec.h"
#include "journal/cluster.h"

#define AWAIT_US TL_SECOND
#define HELD_US TL_MS

/* --- This host's own entries -------------------------------------------------------------------------------------- */

/*
 * Also one of a life before, which was in the log when that ended: it counts where it stands before the next JOIN. Returns: the entry, off the list;
 * NULL: it is another's, or comes again. Requires: queue_lock.
 */
static struct under_way *take_own(struct cluster *cluster, const struct command_group_header *head)
{
    list_for_each(link, &cluster->under_way)
    {
        struct under_way *entry = list_entry(link, struct under_way, link);
        if (entry->life != head->life || entry->number != head->number)
            continue;
        list_remove(link);
        return entry;
    }
    return NULL;
}

/* Those that this host no longer waits for wait for nothing. */
static void cancel_abandoned(struct journal *journal, const uint64_t *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
        command->cancel.request = requests[i];
        command->on_done = journal__free_internal;
        cluster__submit_own(journal, command);
    }
}

/* --- What else an entry does -------------------------------------------------------------------------------------- */

/* What of an entry concerns the cluster, taken note of before it is applied: afterwards its commands are their submitters'. */
struct news {
    struct list heartbeats; /* copies */
    bool hosts;             /* what the core knows of them may change */
    uint64_t joined;        /* the life of a JOIN; 0: there is none */
    uint64_t *requests;     /* of an entry that was abandoned; mem_free */
    size_t request_count;
};

static void note_command(struct news *news, const struct command *command)
{
    if (command->type == COMMAND_HEARTBEAT) {
        struct command *copy = command_new(COMMAND_HEARTBEAT, DIALECT_7);
        copy->request = command->request;
        copy->heartbeat = command->heartbeat;
        list_append(&news->heartbeats, &copy->link);
    }
    if (command->type == COMMAND_JOIN)
        news->joined = command->join.life;
    news->hosts = news->hosts || command->type == COMMAND_HEARTBEAT || command->type == COMMAND_JOIN ||
                  command->type == COMMAND_HOST_GONE;
}

static void note_commands(struct journal *journal, struct news *news, struct list *commands, bool abandoned)
{
    list_init(&news->heartbeats);
    list_for_each(link, commands)
    {
        const struct command *command = list_entry(link, struct command, link);
        metric_add(&journal->figures.commands[command->type], 1);
        note_command(news, command);
        if (!abandoned)
            continue;
        news->requests = mem_realloc(news->requests, (news->request_count + 1) * sizeof *news->requests);
        news->requests[news->request_count++] = command->request;
    }
}

/* This host is in: what was under way in its life before never comes. Requires: queue_lock. */
static void begin_life(struct journal *journal, uint16_t number)
{
    struct cluster *cluster = journal->cluster;
    while (!list_empty(&cluster->under_way)) /* the newest first, so that they stand in their order */
        cluster__put_back(journal, list_entry(cluster->under_way.prev, struct under_way, link));
    cluster->host = number;
    cluster->number = 0;
    cluster->beat_at = 0;
    cluster->joining = false;
    cluster->in = cluster->was_in = true;
}

/* Requires: core_lock. */
static void look_at_join(struct journal *journal, uint64_t life, const struct list *group)
{
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
                cluster->joining = false;
                cluster->refused = mem_strdup(command->problem.reason.data, command->problem.reason.len);
            }
        }
        pthread_cond_broadcast(&cluster->changed);
        pthread_cond_broadcast(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static void put_back_own(struct journal *journal, struct under_way *mine, struct list *commands)
{
    while (!list_empty(commands)) {
        struct list *link = commands->next;
        list_remove(link);
        list_append(&mine->commands, link);
    }
    pthread_mutex_lock(&journal->queue_lock);
    list_append(&journal->cluster->under_way, &mine->link);
    cluster__put_back(journal, mine);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Those that came a second time, or of a life that is over. */
static void drop(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

static void apply(struct journal *journal, const struct command_group_header *head, cmdlog_position position, struct list *commands,
                  struct under_way *mine)
{
    struct list group = LIST_INIT(group);
    bool own = mine != NULL && !mine->abandoned;
    struct news news = {.hosts = false};
    note_commands(journal, &news, commands, mine != NULL && mine->abandoned);
    pthread_mutex_lock(&journal->core_lock);
    journal->step_clock = head->clock;
    uint64_t begun = journal__boot(journal);
    int r = command_group_apply(journal->core, head, commands, &journal->effects);
    if (r < 0)
        journal__store_failed("applying an entry", r);
    journal->work_us += journal__boot(journal) - begun;
    journal->position = position;
    cluster__reach(journal, position);
    pthread_mutex_lock(&journal->queue_lock);
    if (r == 0)
        common_note(&journal->cluster->common, journal__boot(journal), head->clock);
    pthread_mutex_unlock(&journal->queue_lock);
    journal__move_completed(&journal->effects, &group);
    if (news.joined != 0)
        look_at_join(journal, news.joined, &group);
    if (news.hosts)
        cluster__look_at_hosts(journal);
    journal__note_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);

    if (r == COMMAND_GROUP_IGNORED && own) {
        put_back_own(journal, tl_steal(mine), commands);
        own = false;
    }
    drop(commands);
    journal__finish(journal, &group, wanted, SYNC_ALL);
    while (!list_empty(&news.heartbeats)) {
        struct command *beat = list_entry(news.heartbeats.next, struct command, link);
        list_remove(&beat->link);
        if (r == 0)
            cluster__compare(journal, beat);
        command_free(beat);
    }
    cancel_abandoned(journal, news.requests, news.request_count);
    mem_free(news.requests);
    mem_free(mine);
}

static void take_entry(struct journal *journal, const struct cmdlog_entry *entry)
{
    struct cluster *cluster = journal->cluster;
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;
    int r = command_group_read_header(entry->bytes, &head);
    pthread_mutex_lock(&journal->queue_lock);
    struct under_way *mine = r == 0 ? take_own(cluster, &head) : NULL;
    if (mine != NULL)
        while (!list_empty(&mine->commands)) {
            struct list *link = mine->commands.next;
            list_remove(link);
            list_append(&commands, link);
        }
    pthread_mutex_unlock(&journal->queue_lock);
    if (r == 0 && list_empty(&commands))
        r = command_group_decode(entry->bytes, &head, &commands);
    if (r == COMMAND_CODEC_NEWER) {
        log_error("the log of the cluster has entries of a newer version");
        r = TL_ERR_VERSION;
    }
    if (r < 0)
        journal__store_failed("reading an entry of the cluster's log", r);
    apply(journal, &head, entry->position, &commands, mine);
    pthread_mutex_lock(&journal->queue_lock);
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* --- Commands that only look ------------------------------------------------------------------------------------- */

static void look(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct list taken = LIST_INIT(taken), group = LIST_INIT(group);
    pthread_mutex_lock(&journal->queue_lock);
    while (!list_empty(&cluster->looks)) {
        struct list *link = cluster->looks.next;
        list_remove(link);
        list_append(&taken, link);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (list_empty(&taken))
        return;
    pthread_mutex_lock(&journal->core_lock);
    while (!list_empty(&taken)) {
        struct command *command = list_entry(taken.next, struct command, link);
        list_remove(&command->link);
        journal__look(journal, command, &group);
    }
    pthread_mutex_unlock(&journal->core_lock);
    journal__finish(journal, &group, 0, SYNC_NONE);
}

/* --- Following ---------------------------------------------------------------------------------------------------- */

static bool is_over(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool over = journal->cluster->follow_no_more;
    pthread_mutex_unlock(&journal->queue_lock);
    return over;
}

/* While a checkpoint is on its way to a disk that is nearly full, or the disk is full, nothing is applied. */
static bool is_held(struct journal *journal)
{
    pthread_mutex_lock(&journal->core_lock);
    bool held = journal__is_held(journal) || !journal__is_ready(journal);
    pthread_mutex_unlock(&journal->core_lock);
    return held;
}

/* Whoever waits for a place in the order is told how far it goes. */
static void await(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    pthread_mutex_lock(&journal->queue_lock);
    cluster->passed = cmdlog_cursor_position(cluster->cursor);
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&journal->queue_lock);
    if (cmdlog_await(cluster->cursor, clock_boot_us() + AWAIT_US) != 0)
        return;
}

void *cluster__follower(void *context)
{
    struct journal *journal = context;
    struct cmdlog_cursor *cursor = journal->cluster->cursor;
    while (!is_over(journal)) {
        struct cmdlog_entry entry;
        look(journal);
        if (is_held(journal)) {
            usleep((useconds_t)HELD_US);
            continue;
        }
        int r = cmdlog_next(cursor, &entry);
        if (r == 0)
            take_entry(journal, &entry);
        else if (r == CMDLOG_END)
            await(journal);
        else if (r == CMDLOG_TRIMMED)
            journal__store_failed("following the log of the cluster, which has let go of what this host lacks: it has "
                                  "to copy a checkpoint of another host (an empty data directory)",
                                  TL_ERR_CORRUPT);
        else
            journal__store_failed("following the log of the cluster", r);
    }
    return NULL;
}
