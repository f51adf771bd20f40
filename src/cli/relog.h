/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backup brought to a later timestamp, by the log since then.
 *
 * The backup's log begins after the checkpoint of its store. So the backup is copied, and the entries of the original's log that
 * follow are appended to its log; opening it applies them. The original's log is in its archive and in its data
 * directory, and an entry may be cut in two between these: their segments are put together in one folder, by links, before it is read.
 */
#ifndef TL_CLI_RELOG_H
#define TL_CLI_RELOG_H

#include "base/error.h"
#include "base/types.h"
#include "cmdlog/cmdlog.h"

enum { RELOG_LOGS_MAX = 16 };

struct relog_options {
    const char *from; /* the backup; NULL: nothing, the log is taken from its first entry */
    const char
        *logs[RELOG_LOGS_MAX]; /* folders with segments of the log; those of a running server may change meanwhile */
    int log_count;
    tl_ts until;       /* of the last entry that is wanted; TL_TS_MAX: all there is */
    cmdlog_position last; /* the same as a position; UINT64_MAX: all there is */
};

struct relogged {
    cmdlog_position first; /* entry after the backup */
    uint64_t entries;      /* number of appended entries */
    tl_ts newest;       /* timestamp up to which it goes */
};

/*
 * Makes `directory`, which does not exist yet, a data directory of the backup and the entries after it; without a backup it has a log and no store. Changes nothing else, but DIRECTORY.log for a
 * while. Returns: 0; -1, with the reason on standard error, and no files remain.
 */
int relog_make(const struct relog_options *options, const char *directory, struct relogged *ret) TL_MUST_USE;

/* Removes a directory with all in it, as far as it can. */
void relog_remove(const char *directory);

#endif
