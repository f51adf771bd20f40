/* SPDX-License-Identifier: Apache-2.0 */
/* A single host's command log, in files; README.md, "The file log". */
#ifndef TL_CMDLOG_CMDLOG_FILE_H
#define TL_CMDLOG_CMDLOG_FILE_H

#include "cmdlog/cmdlog.h"
#include "cmdlog/cmdlog_disk.h"

struct cmdlog_file_options {
    uint64_t segment_bytes; /* a multiple of 512, at least 1024; 0: 16 MiB. An old log keeps its own */
    unsigned spares_max;    /* trimmed segments to keep for reuse; others are removed */
    bool read_only;         /* for inspection: nothing is repaired, appended or trimmed */
    /*
     * Archives a segment that is about to be trimmed, given its file's name; NULL: no archive.
     * Returns: 1: it has taken the file away; 0: it is done with the file, which may be reused; a
     * fatal code: it failed, so the segment stays in the log and is offered again at a later trim.
     */
    int (*archive)(void *context, const char *name);
    void *archive_context;
    cmdlog_position after; /* a new log starts after this entry; 0: with the first */
    /* Of the entry at `after`, for a new log that continues another; zeros: a new identity. */
    struct cmdlog_lineage lineage;
};

/*
 * Opens the log on a disk, or creates it if the disk has none.
 * Returns: 0; TL_ERR_CORRUPT: durable bytes are damaged or missing, TL_ERR_IO; *ret_reason says
 * where, or is NULL (mem_free).
 * Owns: the caller, by cmdlog_close(). The log owns the disk, even if the opening fails.
 */
int cmdlog_file_open(struct cmdlog_disk *disk, const struct cmdlog_file_options *options, struct cmdlog **ret_log,
                     char **ret_reason) TL_MUST_USE;

/*
 * Allocates all spares (`spares_max`) in advance, so that no append has to. Any thread,
 * concurrently with all others.
 */
int cmdlog_file_preallocate(struct cmdlog *log) TL_MUST_USE;

#endif
