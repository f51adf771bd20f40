/* SPDX-License-Identifier: Apache-2.0 */
/* A host's own log, in files; README.md, "The file log". */
#ifndef TL_CMDLOG_CMDLOG_FILE_H
#define TL_CMDLOG_CMDLOG_FILE_H

#include "cmdlog/cmdlog.h"
#include "cmdlog/cmdlog_disk.h"

struct cmdlog_file_options {
    uint64_t segment_bytes; /* a multiple of 512, at least 1024; 0: 16 MiB. A log that is there keeps its own. */
    unsigned spares_max;    /* how many segments are kept for use again; others are removed */
    bool read_only;         /* for looking: nothing is repaired, appended, trimmed */
    /*
     * Is told of the oldest segment, by its file's name, before that is let go: for who keeps them. Returns: 1, it has taken the file away; 0, it is done with it; a
     * fatal code: it is not, so the segment stays, and it is told again when more is to be let go. NULL: nobody does.
     */
    int (*archive)(void *context, const char *name);
    void *archive_context;
    cmdlog_position after;     /* a log that is made begins behind this entry, as if all up to it had been trimmed; 0: with the first ever */
    struct cmdlog_lineage
        lineage; /* of that entry: the log that is made goes on from there; zeros: it gets an identity of its own */
};

/*
 * Opens the log on a disk, or makes it.
 * Returns: 0; TL_ERR_CORRUPT where durable bytes are damaged or gone, TL_ERR_VERSION, TL_ERR_IO, with *ret_reason saying where
 * (mem_free). Owns: the caller, by cmdlog_close(), and the log its disk, in every case.
 */
int cmdlog_file_open(struct cmdlog_disk *disk, const struct cmdlog_file_options *options, struct cmdlog **ret_log,
                  char **ret_reason) TL_MUST_USE;

/* Writes spares in advance, so that no append has to. For a thread that has the time. */
int cmdlog_file_preallocate(struct cmdlog *log) TL_MUST_USE;

#endif
