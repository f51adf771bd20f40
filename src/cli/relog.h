/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rolls a backup forward to a later timestamp, by the log since then.
 *
 * The backup's log begins after the checkpoint of its store. So the backup is copied, and the
 * following entries of the original's log are appended to its log; opening it applies them. The
 * original's log is in its archive and in its data directory, and an entry may be divided between
 * these: their segments are collected in one folder, by links, before the log is read.
 */
#ifndef TL_CLI_RELOG_H
#define TL_CLI_RELOG_H

#include "base/error.h"
#include "base/types.h"
#include "cmdlog/cmdlog.h"

enum { RELOG_LOGS_MAX = 16 };

struct relog_options {
    const char *from; /* the backup; NULL: none, the log is applied from its first entry */
    const char
        *logs[RELOG_LOGS_MAX]; /* folders with segments of the log; those of a running server may change meanwhile */
    int log_count;
    tl_ts until;          /* timestamp of the last command to apply; TL_TS_MAX: all */
    cmdlog_position last; /* position of the last entry to apply; UINT64_MAX: all */
};

struct relogged {
    cmdlog_position first; /* entry after the backup */
    uint64_t entries;      /* number of appended entries */
    tl_ts newest;          /* timestamp at which the last entry was proposed */
};

/*
 * Creates a data directory from the backup and the entries after it, the last one without its commands that
 * certainly have timestamps above `until`; without a backup it has a log
 * and no store. Writes nothing else, except DIRECTORY.log temporarily.
 * Assumes: `directory` does not exist.
 * Returns: 0; -1, with the reason on standard error, and no files remain.
 */
int relog_make(const struct relog_options *options, const char *directory, struct relogged *ret) TL_MUST_USE;

/*
 * Creates a directory with a copy of the store in a data directory, and without its log. Files that RocksDB never
 * changes are linked, where the file system permits, so that the copy takes little space.
 * Assumes: `directory` does not exist; no process changes `data`.
 * Returns: 0; -1, with the reason on standard error, and no files remain.
 */
int relog_copy_store(const char *data, const char *directory) TL_MUST_USE;

/* Removes a directory with its content; ignores errors. */
void relog_remove(const char *directory);

#endif
