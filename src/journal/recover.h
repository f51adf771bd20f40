/* SPDX-License-Identifier: Apache-2.0 */
/* How a core is found again: the store as of its last checkpoint, and the log from there. README.md, "The log". */
#ifndef TL_JOURNAL_RECOVER_H
#define TL_JOURNAL_RECOVER_H

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

struct at_work;
struct command;
struct core;
struct core_limits;
struct store;

/* Of the segments of a log that is made. */
enum { RECOVER_SEGMENT_BYTES = 8 << 20 };

struct recovered {
    cmdlog_position checkpoint; /* what the store stood at */
    struct cmdlog_lineage lineage; /* of that, as its record has it; nothing is known where an older version made it */
    cmdlog_position position;   /* of the newest entry that was applied: the log's */
    uint64_t work_us;        /* what it took to apply all behind the checkpoint */
    cmdlog_position skipped;    /* of the newest entry that a SKIP leaves out; 0: there is none */
    cmdlog_position differs;    /* of the first entry that was made of another state than the log makes; 0: there is none */
};

/*
 * Builds the core: of the record in the store, or of the store alone where no checkpoint was ever made, and of all entries of the log behind
 * that but those that a SKIP leaves out. What waited waits again, with nobody to be answered. A store whose record names another log, or other entries of this one up to
 * its checkpoint, is refused. In `at_work` (NULL: nowhere) it is noted what is applied, then and later, and the entry in which the process ended is forgotten.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_VERSION, TL_ERR_IO, and why in *ret_reason (mem_free). Owns: the caller; core_close().
 */
int recover_core(struct store *store, struct cmdlog *log, const struct core_limits *limits, struct at_work *at_work,
                 struct core **ret_core, struct recovered *ret_recovered, char **ret_reason) TL_MUST_USE;

/*
 * Appends, durably, what is to be known of the entry which is the log's last before that is applied: TRIED or SKIP. Before recover_core(), which goes by it as
 * whoever follows the log does. Returns: as cmdlog_append() and cmdlog_sync().
 */
int recover_append_annotation(struct cmdlog *log, const struct command *command) TL_MUST_USE;

/* What an entry says of the one before it, and nothing else. */
enum recover_says { RECOVER_SAYS_NOTHING, RECOVER_SAYS_TRIED, RECOVER_SAYS_SKIP };
/* *ret_skipped: set when it says SKIP or TRIED, of what SKIP leaves out. */
enum recover_says recover_read_says(struct slice bytes, cmdlog_position *ret_skipped);

/* The core as of the store's checkpoint, or of the store where there is none, alone: the same without the log. *ret_position: where that stands in it. */
int recover_begin(struct store *store, const struct core_limits *limits, struct core **ret_core,
                  cmdlog_position *ret_position, char **ret_reason) TL_MUST_USE;

/* The same of the record of a checkpoint alone. */
int recover_read_record(struct store *store, struct slice record, const struct core_limits *limits,
                        struct core **ret_core, struct recovered *ret_recovered, char **ret_reason) TL_MUST_USE;

/* What it says of the log alone. Returns: 0; TL_ERR_CORRUPT, TL_ERR_VERSION. */
int recover_read_position(struct slice record, cmdlog_position *ret_position, struct cmdlog_lineage *ret_lineage) TL_MUST_USE;

/* Whether the log is the store's, by the store's record; looks at the entries behind the checkpoint, and counts them. Returns: as recover_core(). */
int recover_check_log(struct cmdlog *log, const struct recovered *store, cmdlog_position *ret_behind,
                      char **ret_reason) TL_MUST_USE;

/*
 * Appends the record of a checkpoint: the core as it is, at this position in a log of this lineage (NULL: of a log that hosts share, which is told by who
 * opens the store). Requires: called between steps.
 */
void recover_write_record(struct core *core, cmdlog_position position, const struct cmdlog_lineage *lineage,
                          struct buf *record);

#endif
