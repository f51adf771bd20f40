/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the log of a cluster without being one of its hosts, and compares the states. README.md,
 * "Checking a host's directory".
 *
 * 1. Every entry after the checkpoint is applied as the hosts apply it: skipped entries are left out,
 *    and entries that do not count change nothing.
 * 2. A heartbeat has the chain of its host after an entry. It is compared with the chain after the
 *    same entry here, if the host is of this build.
 * 3. The log is only read: no life, lease, checkpoint or other key is written.
 */
#ifndef TL_JOURNAL_CLUSTER_REPLAY_H
#define TL_JOURNAL_CLUSTER_REPLAY_H

#include "cmdlog/cmdlog.h"

struct core;

/* A host whose heartbeats were compared. */
struct cluster_replay_host {
    char *name;
    uint64_t equal, different; /* numbers of heartbeats */
    /* Of the first that is different: the entry that its chain follows, and the chains. */
    cmdlog_position position;
    uint64_t chain, own_chain;
};

struct cluster_replay {
    cmdlog_position head;     /* of the log when the replay began */
    uint64_t entries;         /* applied or left out */
    cmdlog_position position; /* of the newest one; the checkpoint's if there was none */
    cmdlog_position compared; /* the newest entry after which chains were compared; 0: none */
    uint64_t other_build;     /* heartbeats of hosts of another build, which were not compared */
    struct cluster_replay_host *hosts;
    size_t host_count;
};

/*
 * Applies all entries after `checkpoint` that are in the log now. `silence_us`: duration for which the
 * log may stay silent.
 * Assumes: the core is as of the checkpoint; `log` is shared by hosts.
 * Returns: 0; CMDLOG_TRIMMED: the log lacks entries after the checkpoint; CMDLOG_UNREACHABLE;
 * TL_ERR_CORRUPT, TL_ERR_VERSION, TL_ERR_IO.
 * Owns: the caller owns *ret in all cases; cluster_replay_deinit().
 */
int cluster_replay(struct core *core, struct cmdlog *log, cmdlog_position checkpoint, uint64_t silence_us,
                   struct cluster_replay *ret) TL_MUST_USE;
void cluster_replay_deinit(struct cluster_replay *replay);

#endif
