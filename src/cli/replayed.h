/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the state of a stopped store follows from the command log. A second directory is made
 * of an older backup and the log since then, up to the position of the store's checkpoint. The two
 * are compared by the hash chain over all writes, and by the digest of the complete state. A
 * difference has a cause other than a command: a defect of the disk, of memory or of the program,
 * or a modified file.
 */
#ifndef TL_CLI_REPLAYED_H
#define TL_CLI_REPLAYED_H

#include "cli/durable.h"
#include "cli/relog.h"

/*
 * Replays the log and prints the result of the comparison on standard output. Creates
 * DATA.replayed, which needs as much space as the backup, and removes it. Writes by another build
 * are not compared (journal/README.md, "The hash chain"). `data`: the directory that `durable` was
 * opened from, read-only.
 * `options`: the backup and the folders of the log; `until` and `last` are set here.
 * Returns: 0: equal; 1: different, or the comparison failed.
 */
int replayed_compare(const char *data, const struct durable *durable, const struct relog_options *options) TL_MUST_USE;

/*
 * Applies the entries of the log after the checkpoint to a copy of the store, as a start does, compares the chain
 * with the recorded ones, and has the result checked by `check`, which returns an exit status. Creates DATA.replayed
 * and removes it; the copy shares the store's tables where the file system permits. If the server has
 * ended in one of the entries, which may end this process, too, only those before it are applied.
 * Returns: 0: no difference, and `check` returned 0; 1: different, or the entries could not be applied.
 * Requires: the directory has a log of its own, with entries after the checkpoint that recover_check_log() accepts.
 */
int replayed_check_rest(const char *data, const struct durable *durable,
                        int (*check)(const struct durable *made)) TL_MUST_USE;

/*
 * Applies the entries of a cluster's log after the checkpoint of a host's directory to a copy of its
 * store, and prints how the chains compare with those that the hosts have reported
 * (journal/cluster_replay.h). Creates DATA.replayed, which needs as much space as the store, and
 * removes it. `genesis`: position of the log's genesis, which is not an entry.
 * Returns: 0: equal; 1: different, nothing could be compared, or the comparison failed.
 */
int replayed_compare_cluster(const char *data, const struct durable *durable, struct cmdlog *log,
                             cmdlog_position genesis) TL_MUST_USE;

#endif
