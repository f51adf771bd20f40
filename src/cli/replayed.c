/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the log and compares the result with the store; see replayed.h. */
#include "cli/replayed.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "core/command/command.h"
#include "cmdlog/cmdlog_etcd.h"
#include "core/step/core.h"
#include "journal/at_work.h"
#include "journal/cluster_replay.h"

#define SHOWN_EVERY_US (100 * TL_MS)

static int replay_failed(const char *what, int code, char *reason)
{
    progress_clear();
    printf("%s: %s\n", escape_terminal(what), reason != NULL ? escape_terminal(reason) : error_text(code));
    mem_free(reason);
    return 1;
}

/* Shows the progress of a replay that takes longer than progress_set() waits. `context`: a struct progress. */
static void show_replay(void *context, const struct recover_progress *replay)
{
    struct progress *progress = context;
    uint64_t applied = replay->position - replay->checkpoint;
    if (replay->phase == RECOVER_BEGINS)
        progress_init(progress, "entries of the log", replay->last - replay->checkpoint, false);
    else
        progress_set(progress, applied);
    if (replay->phase == RECOVER_ENDED && progress->shown_us != progress->began_us)
        progress_end(progress);
}

static struct recover_observer shown_on(struct progress *progress)
{
    return (struct recover_observer){.report = show_replay, .context = progress, .period_us = SHOWN_EVERY_US};
}

/*
 * Prints what may explain a difference. `from_first`: the log was applied from its first entry.
 * Returns: 1.
 */
static int explain_difference(const struct durable *made, bool from_first)
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

static int compare_states(const struct durable *there, const struct durable *made, bool from_first)
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
        return explain_difference(made, from_first);
    }
    if (core_chain(made->core) != core_chain(there->core)) {
        printf("replayed: the writes differ from the recorded ones, after the last entry with a record of the state\n");
        return explain_difference(made, from_first);
    }
    int r = core_digest(there->core, &digest_there);
    if (r == 0)
        r = core_digest(made->core, &digest_made);
    if (r != 0)
        return replay_failed("replayed", r, NULL);
    if (digest_made != digest_there) {
        printf("replayed: the writes are equal, but the state of the store differs: the store was changed by something "
               "other than commands\n");
        return explain_difference(made, from_first);
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

/* Returns: whether DATA.replayed exists, which is printed. *directory: its path. */
static bool is_left(const char *data, struct buf *directory)
{
    buf_printf(directory, "%s.replayed", data);
    buf_byte(directory, '\0');
    if (access(directory->data, F_OK) != 0)
        return false;
    printf("%s exists: it was left by an interrupted check; remove it\n", escape_terminal(directory->data));
    return true;
}

int replayed_compare(const char *data, const struct durable *durable, const struct relog_options *options)
{
    tl_cleanup(buf_deinit) struct buf directory = BUF_INIT(BUF_UNLIMITED);
    struct relog_options relog = *options;
    struct relogged made;
    struct progress progress;
    const struct recover_observer observer = shown_on(&progress);
    struct durable replayed = {.observer = &observer};
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    if (durable->recovered.checkpoint == 0) {
        printf("replayed: nothing was compared: the store has no checkpoint yet, so all of its state is in the log. "
               "Start the server, stop it, and check again\n");
        return 1;
    }
    if (is_left(data, &directory))
        return 1;
    relog.until = TL_TS_MAX;
    relog.last = durable->recovered.checkpoint;
    if (relog_make(&relog, directory.data, &made) != 0)
        return 1;
    struct store_options opening = {.directory = slice_from(directory.data)};
    int r = durable_open(&opening, &limits, NULL, &replayed, &reason);
    bool from_first = options->from == NULL;
    int status = r != 0 ? replay_failed("replayed", r, reason) : compare_states(durable, &replayed, from_first);
    if (status == 0)
        print_equal(&replayed, made.entries, from_first);
    durable_close(&replayed);
    relog_remove(directory.data);
    return status;
}

/*
 * Applies the log's entries after the checkpoint, and before the position `end` unless that is 0, to the store in
 * `directory`.
 * Returns: the exit status.
 */
static int check_applied(const char *directory, struct cmdlog *log, cmdlog_position end,
                         int (*check)(const struct durable *made))
{
    const struct store_options opening = {.directory = slice_from(directory)};
    const struct core_limits limits = core_limits_default();
    struct progress progress;
    const struct recover_observer observer = shown_on(&progress);
    const struct recover_options replay = {.end = end, .observer = &observer};
    struct durable made = {0};
    char *reason = NULL;
    int status, r = store_open_rocks(&opening, &made.store, &reason);
    if (r == 0)
        r = recover_core_with(made.store, log, &limits, &replay, &made.core, &made.recovered, &reason);
    if (r != 0) {
        status = replay_failed("replayed", r, reason);
    } else if (made.recovered.differs != 0) {
        printf("replayed: the state differs from the recorded one, first at entry %" PRIu64 "\n",
               made.recovered.differs);
        status = explain_difference(&made, false);
    } else {
        if (end != 0)
            printf("replayed: the server has ended in entry %" PRIu64
                   " of the log, so that one and those after it were not applied. A start applies it again, or reports "
                   "what to do\n",
                   end);
        printf("replayed: %" PRIu64
               " entries of the log after the checkpoint; what follows is the state that they produce\n",
               made.recovered.position - made.recovered.checkpoint);
        status = check(&made);
    }
    durable_close(&made);
    return status;
}

int replayed_check_rest(const char *data, const struct durable *durable, int (*check)(const struct durable *made))
{
    REQUIRE(durable->log != NULL && !durable->is_member && check != NULL);
    tl_cleanup(buf_deinit) struct buf directory = BUF_INIT(BUF_UNLIMITED);
    char boot[DURABLE_BOOT_BYTES_MAX];
    uint64_t ended_in = at_work_read_ended_in(slice_from(data), durable_boot(boot));
    cmdlog_position end = ended_in > durable->recovered.checkpoint ? ended_in : 0;
    if (is_left(data, &directory) || relog_copy_store(data, directory.data) != 0)
        return 1;
    int status = check_applied(directory.data, durable->log, end, check);
    relog_remove(directory.data);
    return status;
}

/* --- In a cluster ------------------------------------------------------------------------------------------------- */

#define SILENCE_US (5 * TL_SECOND)

static int complain_of_log(int r, struct cmdlog *log, cmdlog_position checkpoint)
{
    if (r == CMDLOG_TRIMMED) {
        printf("replayed: the cluster's log was trimmed beyond entry %" PRIu64
               ", the checkpoint of the directory (--catch-up). Start the host, which copies a checkpoint of another "
               "one, stop it, and check again\n",
               checkpoint);
        return 1;
    }
    tl_cleanup(mem_freep) char *trouble = cmdlog_etcd_last_error(log);
    printf("replayed: the cluster's log%s: %s\n", r == CMDLOG_UNREACHABLE ? " cannot be reached" : "",
           trouble != NULL && *trouble != '\0' ? escape_terminal(trouble)
           : r < 0                             ? error_text(r)
                                               : "it cannot be reached");
    return 1;
}

/* Prints why no entry was applied. Returns: the exit status. */
static int print_no_entries(const struct cluster_replay *replay, cmdlog_position checkpoint, cmdlog_position genesis)
{
    if (checkpoint <= genesis)
        printf("replayed: nothing was compared: the cluster's log has no entry since the cluster was made. Check again "
               "when a host has run\n");
    else if (replay->head < checkpoint)
        printf("replayed: the cluster's log ends with entry %" PRIu64 ", before entry %" PRIu64
               ", the checkpoint of the directory, so etcd has lost entries: it was restored from a copy that is older "
               "than the directory. Start no host on it; see \"Backup\" in docs/cluster.md\n",
               replay->head, checkpoint);
    else
        printf("replayed: nothing was compared: the cluster's log ends with entry %" PRIu64
               ", the checkpoint of the directory. Either no host has run since, or etcd was restored from a copy. "
               "Check again while another host runs\n",
               checkpoint);
    return 1;
}

/* Prints the verdict about each host. Returns: the exit status. */
static int print_hosts(const struct cluster_replay *replay)
{
    bool differs = false;
    for (size_t i = 0; i < replay->host_count; i++) {
        const struct cluster_replay_host *host = &replay->hosts[i];
        if (host->different == 0) {
            printf("replayed: %" PRIu64 " states of host %s are equal\n", host->equal, escape_terminal(host->name));
            continue;
        }
        differs = true;
        printf("replayed: %" PRIu64 " states of host %s are equal, %" PRIu64 " differ, first after entry %" PRIu64
               ": its chain is %016" PRIx64 ", that of the directory %016" PRIx64 "\n",
               host->equal, escape_terminal(host->name), host->different, host->position, host->chain, host->own_chain);
    }
    if (replay->other_build > 0)
        printf("replayed: %" PRIu64 " states are of hosts of another build, and were not compared\n",
               replay->other_build);
    if (differs)
        printf("replayed: the directory and these hosts differ. If they agree with each other (`tidelock hosts'), the "
               "directory is wrong: start its host with an empty one, which copies a checkpoint\n");
    else if (replay->compared == 0)
        printf("replayed: nothing was compared: no host of this build has reported its state since the checkpoint. "
               "Check again while another host runs\n");
    return differs || replay->compared == 0 ? 1 : 0;
}

/* Applies the log to the store in `directory`. Returns: the exit status. */
static int replay_cluster(const char *directory, struct cmdlog *log, cmdlog_position checkpoint,
                          cmdlog_position genesis)
{
    const struct store_options opening = {.directory = slice_from(directory)};
    const struct core_limits limits = core_limits_default();
    struct store *store = NULL;
    struct core *core = NULL;
    struct cluster_replay replay = {0};
    cmdlog_position position;
    uint64_t log_bytes;
    char *reason = NULL;
    int status, r = store_open_rocks(&opening, &store, &reason);
    if (r == 0)
        r = recover_begin(store, &limits, &core, &position, &log_bytes, &reason);
    if (r != 0) {
        status = replay_failed("replayed", r, reason);
    } else if ((r = cluster_replay(core, log, checkpoint, SILENCE_US, &replay)) != 0) {
        status = complain_of_log(r, log, checkpoint);
    } else if (replay.head <= checkpoint) {
        status = print_no_entries(&replay, checkpoint, genesis);
    } else {
        printf("replayed: %" PRIu64 " entries of the cluster's log after the checkpoint, up to entry %" PRIu64
               "; states compared up to entry %" PRIu64 "\n",
               replay.entries, replay.position, replay.compared);
        status = print_hosts(&replay);
    }
    cluster_replay_deinit(&replay);
    if (core != NULL)
        recover_close_core(core);
    store_close(store);
    return status;
}

int replayed_compare_cluster(const char *data, const struct durable *durable, struct cmdlog *log,
                             cmdlog_position genesis)
{
    tl_cleanup(buf_deinit) struct buf directory = BUF_INIT(BUF_UNLIMITED);
    if (is_left(data, &directory) || relog_copy_store(data, directory.data) != 0)
        return 1;
    int status = replay_cluster(directory.data, log, durable->recovered.checkpoint, genesis);
    relog_remove(directory.data);
    return status;
}
