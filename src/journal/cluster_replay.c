/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the log of a cluster; see cluster_replay.h. */
#include "journal/cluster_replay.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "cmdlog/cmdlog_shared.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"
#include "core/step/core.h"
#include "journal/recover.h"

/* A host whose heartbeats name entries further back is not compared there. */
enum { POINTS = 1 << 16 };

struct point {
    cmdlog_position position;
    uint64_t chain; /* after the entry */
};

struct replay_comparison {
    struct core *core;
    struct cluster_replay *replay;
    struct point *points; /* of the newest entries, a ring */
    size_t next;          /* number of points ever added */
};

static void add_point(struct replay_comparison *comparison)
{
    comparison->points[comparison->next++ % POINTS] =
        (struct point){comparison->replay->position, core_chain(comparison->core)};
}

/* Returns: the point of an entry, or NULL. Positions rise. */
static const struct point *find_point(const struct replay_comparison *comparison, cmdlog_position position)
{
    size_t low = comparison->next < POINTS ? 0 : comparison->next - POINTS, high = comparison->next;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct point *point = &comparison->points[middle % POINTS];
        if (point->position == position)
            return point;
        if (point->position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct cluster_replay_host *find_host(struct cluster_replay *replay, struct slice name)
{
    for (size_t i = 0; i < replay->host_count; i++)
        if (slice_is(name, replay->hosts[i].name))
            return &replay->hosts[i];
    replay->hosts = mem_realloc(replay->hosts, (replay->host_count + 1) * sizeof *replay->hosts);
    struct cluster_replay_host *host = &replay->hosts[replay->host_count++];
    *host = (struct cluster_replay_host){.name = mem_strdup(name.data, name.len)};
    return host;
}

/* Compares the chain in a heartbeat, which the core has applied. */
static void compare_heartbeat(struct replay_comparison *comparison, const struct command_group_header *head,
                              const struct heartbeat_command *beat)
{
    const struct core_host *sender = core_host(comparison->core, head->host);
    const struct point *point = find_point(comparison, beat->position);
    if (sender == NULL || point == NULL)
        return;
    if (!slice_is(sender->build, CORE_BUILD)) {
        comparison->replay->other_build++;
        return;
    }
    struct cluster_replay_host *host = find_host(comparison->replay, sender->name);
    if (beat->position > comparison->replay->compared)
        comparison->replay->compared = beat->position;
    if (point->chain == beat->chain) {
        host->equal++;
    } else if (host->different++ == 0) {
        host->position = beat->position;
        host->chain = beat->chain;
        host->own_chain = point->chain;
    }
}

/* Applies an entry. *ret_beat: the heartbeat in it that counts; position 0: none. */
static int apply_entry(struct core *core, const struct cmdlog_entry *entry, struct command_group_header *ret_head,
                       struct heartbeat_command *ret_beat)
{
    struct list commands = LIST_INIT(commands);
    struct effects effects;
    effects_init(&effects);
    *ret_beat = (struct heartbeat_command){.position = 0};
    int r = command_group_decode(entry->bytes, ret_head, &commands);
    if (r < 0)
        return tl_trace(r);
    if (r == COMMAND_CODEC_NEWER)
        return tl_trace(TL_ERR_VERSION);
    list_for_each(link, &commands)
    {
        const struct command *command = list_entry(link, struct command, link);
        if (command->type == COMMAND_HEARTBEAT)
            *ret_beat = command->heartbeat;
    }
    r = command_group_apply(core, ret_head, &commands, &effects);
    if (r == COMMAND_GROUP_IGNORED)
        ret_beat->position = 0;
    command_free_all(&commands);
    recover_free_completed(&effects);
    return r < 0 ? tl_trace(r) : 0;
}

static int take_entry(struct replay_comparison *comparison, const struct cmdlog_entry *entry,
                      const struct cmdlog_skips *skips)
{
    struct command_group_header head;
    struct heartbeat_command beat = {.position = 0};
    int r = cmdlog_is_skipped(skips, entry->position) ? 0 : apply_entry(comparison->core, entry, &head, &beat);
    if (r < 0)
        return r;
    comparison->replay->entries++;
    comparison->replay->position = entry->position;
    add_point(comparison);
    if (beat.position != 0)
        compare_heartbeat(comparison, &head, &beat);
    return 0;
}

/* Waits for the next entry. Returns: 0; CMDLOG_UNREACHABLE: the log has been silent for too long. */
static int await_replayed(struct cmdlog *log, struct cmdlog_cursor *cursor, uint64_t silence_us)
{
    cmdlog_position head;
    if (cmdlog_await(cursor, clock_boot_us() + silence_us) == 0)
        return 0;
    return cmdlog_read_head(log, clock_boot_us() + silence_us, &head);
}

static int replay_entries(struct replay_comparison *comparison, struct cmdlog *log, cmdlog_position checkpoint,
                          cmdlog_position head, const struct cmdlog_skips *skips, uint64_t silence_us)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    int r = head <= checkpoint ? 0 : cmdlog_follow(log, checkpoint + 1, &cursor);
    if (r != 0 || head <= checkpoint)
        return r;
    while (r == 0 && cmdlog_cursor_position(cursor) < head) {
        r = cmdlog_next(cursor, &entry);
        if (r == 0)
            r = take_entry(comparison, &entry, skips);
        else if (r == CMDLOG_END)
            r = await_replayed(log, cursor, silence_us);
    }
    cmdlog_unfollow(cursor);
    return r;
}

int cluster_replay(struct core *core, struct cmdlog *log, cmdlog_position checkpoint, uint64_t silence_us,
                   struct cluster_replay *ret)
{
    struct replay_comparison comparison = {.core = core, .replay = ret};
    struct cmdlog_skips *skips = NULL;
    *ret = (struct cluster_replay){.position = checkpoint};
    int r = cmdlog_read_head(log, clock_boot_us() + silence_us, &ret->head);
    if (r == 0) /* after the head, so that skips of entries up to it are seen */
        r = cmdlog_list_skips(log, clock_boot_us() + silence_us, &skips);
    if (r == 0) {
        comparison.points = mem_alloc(POINTS * sizeof *comparison.points);
        add_point(&comparison);
        r = replay_entries(&comparison, log, checkpoint, ret->head, skips, silence_us);
    }
    mem_free(comparison.points);
    mem_free(skips);
    return r;
}

void cluster_replay_deinit(struct cluster_replay *replay)
{
    for (size_t i = 0; i < replay->host_count; i++)
        mem_free(replay->hosts[i].name);
    mem_free(replay->hosts);
    *replay = (struct cluster_replay){0};
}
