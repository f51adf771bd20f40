/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock log: what units have done to the records of locks, until it goes into a batch.
 *
 * Nobody reads these records before a restart, so within a group of commands (core_group_begin()) a unit that did nothing
 * else need not write them: they go with the next unit that writes something, or at the end of the group all at once. For
 * 64 clients who lock and unlock that is one write for twenty.
 *
 * What earlier units have left stays when the open one is abandoned.
 */
#ifndef TL_CORE_LOCK_LOG_H
#define TL_CORE_LOCK_LOG_H

#include "base/buf.h"
#include "store/store.h"

struct lock_log {
    struct buf records; /* for each: length of the key, key, length of the value + 1 or 0: the record goes, value */
    size_t unit;        /* where those of the open unit begin */
    tl_ts kept_ts;      /* the newest timestamp that units before the open one have used */
};

void lock_log_init(struct lock_log *log);
void lock_log_deinit(struct lock_log *log);

void lock_log_put(struct lock_log *log, struct slice key, struct slice value);
void lock_log_drop(struct lock_log *log, struct slice key);

/* Returns: whether the open unit has left anything. */
static inline bool lock_log_changed(const struct lock_log *log)
{
    return log->records.len > log->unit;
}

/* Returns: whether units before the open one have. */
static inline bool lock_log_keeps(const struct lock_log *log)
{
    return log->unit > 0;
}

/* The open unit ends at `ts` without a write: what it left is kept. */
void lock_log_keep(struct lock_log *log, tl_ts ts);
/* The open unit is abandoned. */
void lock_log_cut(struct lock_log *log);
/* Puts all there is into a batch, in order. The log is empty afterwards. */
void lock_log_pour(struct lock_log *log, struct store_batch *batch);

#endif
