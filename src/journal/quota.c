/* SPDX-License-Identifier: Apache-2.0 */
/* Space in the log of a cluster: reports, checkpoints that free it, refusals. README.md, "Space in the log". */
#include <inttypes.h>

#include "base/check.h"
#include "base/log.h"
#include "journal/cluster.h"

/*
 * While space is tight a checkpoint is due when so large a part of the quota has been logged since the
 * last one.
 */
enum { RELIEF_PART = 64 };

#define TRIM_INTERVAL_US TL_SECOND /* between two trims while space is tight */

bool cluster__is_log_full(struct journal *journal)
{
    struct cmdlog_space space;
    cmdlog_space(journal->cluster->log, &space);
    return space.full;
}

void cluster__refuse_log_full(struct journal *journal, struct command *command)
{
    struct cmdlog_space space;
    cmdlog_space(journal->cluster->log, &space);
    problem_set(
        &command->problem, &command->arena, PROBLEM_DISK_FULL,
        "etcd, which has the log of the cluster, is short of space: it has [%" PRIu64
        "] bytes in use, and a file of [%" PRIu64 "], of a quota of [%" PRIu64
        "]; writes are refused until the log has been trimmed, reads are served; if this persists, start hosts that "
        "are out or remove them (DELETE /_cluster/hosts/{name}), remove other programs' keys from etcd, "
        "defragment it, or raise its --quota-backend-bytes",
        space.used, space.size, space.quota);
}

bool cluster__wants_checkpoint(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cmdlog_space space;
    cmdlog_space(journal->cluster->log, &space);
    journal->cluster->relieving = journal->cluster->relieving && space.tight;
    return space.tight && (!journal->cluster->relieving ||
                           journal->log_bytes - journal->checkpoint_log_bytes >= space.quota / RELIEF_PART);
}

void cluster__begin_relief(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cmdlog_space space;
    cmdlog_space(journal->cluster->log, &space);
    journal->cluster->relieving = space.tight;
}

/* Logs which quota counts, when the first report is there. */
static void log_quota(const struct cmdlog_space *space)
{
    static const char *const sources[] = {[QUOTA_REPORTED] = "as etcd reports",
                                          [QUOTA_OF_OPTION] = "by --cluster-quota",
                                          [QUOTA_ASSUMED] =
                                              ("etcd's default, since etcd before 3.6 does not report its own: give "
                                               "--cluster-quota if --quota-backend-bytes is another one")};
    log_info("the log of the cluster has %" PRIu64 " bytes in etcd, of a quota of %" PRIu64 " (%s)", space->used,
             space->quota, sources[space->quota_source]);
}

void cluster__check_log_space(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    struct cmdlog_space space;
    cmdlog_space(cluster->log, &space);
    if (space.quota == 0 && !space.full)
        return;
    if (!cluster->quota_logged)
        log_quota(&space);
    cluster->quota_logged = true;
    if (space.tight && !cluster->log_is_tight)
        log_warning("etcd has %" PRIu64 " bytes in use, of a quota of %" PRIu64
                    ": a checkpoint is made, and the log is trimmed also for hosts that are out",
                    space.used, space.quota);
    cluster->log_is_tight = space.tight;
    if (space.tight && journal__boot(journal) >= cluster->trim_at) {
        journal__trim_again(journal);
        cluster->trim_at = journal__boot(journal) + TRIM_INTERVAL_US;
    }
    if (space.full == cluster->log_is_full)
        return;
    cluster->log_is_full = space.full;
    if (space.full)
        log_error("etcd has %" PRIu64 " bytes in use and a file of %" PRIu64 ", of a quota of %" PRIu64
                  ": writes are refused until the log has been trimmed",
                  space.used, space.size, space.quota);
    else
        log_info("etcd has space for the log of the cluster again: writes are accepted");
    journal__change_state(journal);
}
