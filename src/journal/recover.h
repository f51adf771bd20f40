/* SPDX-License-Identifier: Apache-2.0 */
/* How a core is found again: the store as of its last checkpoint, and the log from there. README.md, "On a log". */
#ifndef TL_JOURNAL_RECOVER_H
#define TL_JOURNAL_RECOVER_H

#include "base/buf.h"
#include "log/log.h"

struct core;
struct core_limits;
struct store;

struct recovered {
    log_position checkpoint; /* what the store stood at */
    log_position position;   /* of the newest entry that was applied: the log's */
};

/*
 * Builds the core: of the record in the store, or of the store alone where no checkpoint was ever made, and of all entries of the log behind
 * that. What waited waits again, with nobody to be answered.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_VERSION, TL_ERR_IO, and why in *ret_reason (mem_free). Owns: the caller; core_close().
 */
int recover_core(struct store *store, struct log *log, const struct core_limits *limits, struct core **ret_core,
                 struct recovered *ret_recovered, char **ret_reason) TL_MUST_USE;

/* The same of the record of a checkpoint alone. */
int recover_read_record(struct store *store, struct slice record, const struct core_limits *limits,
                        struct core **ret_core, log_position *ret_position, char **ret_reason) TL_MUST_USE;

/* Looks at the entries behind a checkpoint, and counts them. Returns: as recover_core(). */
int recover_check_log(struct log *log, log_position checkpoint, log_position *ret_behind,
                      char **ret_reason) TL_MUST_USE;

/* Appends the record of a checkpoint: the core as it is, at this position. Requires: called between steps. */
void recover_write_record(struct core *core, log_position position, struct buf *record);

#endif
