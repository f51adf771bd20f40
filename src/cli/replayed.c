/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the log and compares the result with the store; see replayed.h. */
#include "cli/replayed.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/shown.h"
#include "core/command/command.h"
#include "core/step/core.h"

static int complain(const char *what, int code, char *reason)
{
    printf("%s: %s\n", shown(what), reason != NULL ? shown(reason) : error_text(code));
    mem_free(reason);
    return 1;
}

/*
 * Closes the replayed directory. Requests that wait in its core have no client: their commands are
 * freed.
 */
static void close_replayed(struct durable *replayed)
{
    struct effects effects;
    effects_init(&effects);
    if (replayed->core != NULL)
        core_stop(replayed->core, &effects);
    while (!list_empty(&effects.completed)) {
        struct command *command = list_entry(effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    durable_close(replayed);
}

/*
 * Prints what may explain a difference. `from_first`: the log was applied from its first entry.
 * Returns: 1.
 */
static int explain(const struct durable *made, bool from_first)
{
    if (made->recovered.other_build != 0)
        printf("replayed: another build wrote the log up to entry %" PRIu64
               ", and may have produced another state from it. "
               "Different builds are not compared: use --replay with a backup made by this build\n",
               made->recovered.other_build);
    else if (from_first)
        printf("replayed: the directory was made by a version without a command log, so the log lacks the "
               "beginning; use --replay with a backup\n");
    return 1;
}

static int compare(const struct durable *there, const struct durable *made, bool from_first)
{
    uint64_t digest_there = 0, digest_made = 0;
    if (made->recovered.position != there->recovered.checkpoint) {
        printf("replayed: the logs end at entry %" PRIu64 ", the store is at entry %" PRIu64 "\n",
               made->recovered.position, there->recovered.checkpoint);
        return 1;
    }
    if (made->recovered.differs != 0) {
        printf("replayed: the state differs from the recorded one, first at entry %" PRIu64 "\n",
               made->recovered.differs);
        return explain(made, from_first);
    }
    if (core_chain(made->core) != core_chain(there->core)) {
        printf("replayed: the writes differ from the recorded ones, after the last entry with a record of the state\n");
        return explain(made, from_first);
    }
    int r = core_digest(there->core, &digest_there);
    if (r == 0)
        r = core_digest(made->core, &digest_made);
    if (r != 0)
        return complain("replayed", r, NULL);
    if (digest_made != digest_there) {
        printf("replayed: the writes are equal, but the state of the store differs: the store was changed by something "
               "other than commands\n");
        return explain(made, from_first);
    }
    return 0;
}

/* Prints the result of a replay that made an equal state. */
static void print_equal(const struct durable *made, uint64_t entries, bool from_first)
{
    printf("replayed: %" PRIu64 " entries of the log%s produce the state of the directory\n", entries,
           from_first ? ", from the first on," : " after the backup");
    if (made->recovered.other_build != 0)
        printf("replayed: another build wrote the log up to entry %" PRIu64
               "; the writes of those entries were not compared\n",
               made->recovered.other_build);
}

int replayed_compare(const char *data, const struct durable *durable, const struct relog_options *options)
{
    tl_cleanup(buf_deinit) struct buf directory = BUF_INIT(BUF_UNLIMITED);
    struct relog_options relog = *options;
    struct relogged made;
    struct durable replayed = {0};
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    buf_printf(&directory, "%s.replayed", data);
    buf_byte(&directory, '\0');
    if (access(directory.data, F_OK) == 0) {
        printf("%s exists: it was left by an interrupted check; remove it\n", shown(directory.data));
        return 1;
    }
    relog.until = TL_TS_MAX;
    relog.last = durable->recovered.checkpoint;
    if (relog_make(&relog, directory.data, &made) != 0)
        return 1;
    struct store_options opening = {.directory = slice_from(directory.data)};
    int r = durable_open(&opening, &limits, NULL, &replayed, &reason);
    bool from_first = options->from == NULL;
    int status = r != 0 ? complain("replayed", r, reason) : compare(durable, &replayed, from_first);
    if (status == 0)
        print_equal(&replayed, made.entries, from_first);
    close_replayed(&replayed);
    relog_remove(directory.data);
    return status;
}
