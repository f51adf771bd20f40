/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the log and compares the result with the store; see replayed.h. */
#include "cli/replayed.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/shown.h"
#include "core/step/command.h"
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
        printf("replayed: another build wrote the log up to entry %" PRIu64 ", and may have made another state of it. "
               "Builds are not compared with each other: name a backup that this build has made, by --replay\n",
               made->recovered.other_build);
    else if (from_first)
        printf("replayed: of a directory that a version without a command log made, the log does not have the "
               "beginning; name a backup\n");
    return 1;
}

static int compare(const struct durable *there, const struct durable *made, bool from_first)
{
    uint64_t digest_there = 0, digest_made = 0;
    if (made->recovered.position != there->recovered.checkpoint) {
        printf("replayed: the log that is named ends at entry %" PRIu64 ", the store stands at %" PRIu64 "\n",
               made->recovered.position, there->recovered.checkpoint);
        return 1;
    }
    if (made->recovered.differs != 0) {
        printf("replayed: the log makes another state than there was: entry %" PRIu64 " is the first that says so\n",
               made->recovered.differs);
        return explain(made, from_first);
    }
    if (core_chain(made->core) != core_chain(there->core)) {
        printf(
            "replayed: the log makes other writes than there were, behind the last entry that says what there was\n");
        return explain(made, from_first);
    }
    int r = core_digest(there->core, &digest_there);
    if (r == 0)
        r = core_digest(made->core, &digest_made);
    if (r != 0)
        return complain("replayed", r, NULL);
    if (digest_made != digest_there) {
        printf("replayed: the log makes another state than the store has, though it wrote the same: the store has "
               "changed by itself\n");
        return explain(made, from_first);
    }
    return 0;
}

/* Prints the result of a replay that made an equal state. */
static void print_equal(const struct durable *made, uint64_t entries, bool from_first)
{
    printf("replayed: %" PRIu64 " entries of the log%s make the state that there is\n", entries,
           from_first ? ", from the first on," : " behind the backup");
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
        printf("%s is in the way: it is left of a check that was ended, and may be removed\n", shown(directory.data));
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
