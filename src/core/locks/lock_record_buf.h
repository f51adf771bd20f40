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
#ifndef TL_CORE_LOCK_RECORD_BUF_H
#define TL_CORE_LOCK_RECORD_BUF_H

#include "base/buf.h"
#include "store/store.h"

struct lock_record_buf {
    struct buf records; /* for each: length of the key, key, length of the value + 1 or 0: the record goes, value */
    size_t open_start;        /* where those of the open unit begin */
    tl_ts retained_ts;      /* the newest timestamp that units before the open one have used */
};

void lock_record_buf_init(struct lock_record_buf *log);
void lock_record_buf_deinit(struct lock_record_buf *log);

void lock_record_buf_put(struct lock_record_buf *log, struct slice key, struct slice value);
void lock_record_buf_delete(struct lock_record_buf *log, struct slice key);

/* Returns: whether the open unit has left anything. */
static inline bool lock_record_buf_has_open(const struct lock_record_buf *log)
{
    return log->records.len > log->open_start;
}

/* Returns: whether units before the open one have. */
static inline bool lock_record_buf_has_retained(const struct lock_record_buf *log)
{
    return log->open_start > 0;
}

/* The open unit ends at `ts` without a write: what it left is kept. */
void lock_record_buf_retain(struct lock_record_buf *log, tl_ts ts);
/* The open unit is abandoned. */
void lock_record_buf_discard(struct lock_record_buf *log);
/* Puts all there is into a batch, in order. The log is empty afterwards. */
void lock_record_buf_flush(struct lock_record_buf *log, struct store_batch *batch);

#endif
