/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers changes of lock records in the store until they are written with a batch.
 *
 * Lock records are read only after a restart. So within a group of commands (core_group_begin()) a
 * unit that changes only locks is not written by itself: its records go with the next unit that is
 * written, or together at the end of the group. With 64 clients that lock and unlock, this saves 19
 * of 20 writes.
 *
 * The records of the open unit come last, so that they can be discarded when it is rolled back.
 */
#ifndef TL_CORE_LOCK_RECORD_BUF_H
#define TL_CORE_LOCK_RECORD_BUF_H

#include "base/buf.h"
#include "store/store.h"

struct lock_record_buf {
    /* each: key length, key, value length + 1, value; or 0 for a deletion, no value */
    struct buf records;
    size_t open_start; /* offset of the first record of the open unit */
    tl_ts retained_ts; /* newest timestamp of the units before the open one */
};

void lock_record_buf_init(struct lock_record_buf *buf);
void lock_record_buf_deinit(struct lock_record_buf *buf);

/* Appends a record to the open unit: it sets a key in the store. Key and value are copied. */
void lock_record_buf_put(struct lock_record_buf *buf, struct slice key, struct slice value);
/* Appends the deletion of a key to the open unit. */
void lock_record_buf_delete(struct lock_record_buf *buf, struct slice key);

/* Returns: whether the open unit has records. */
static inline bool lock_record_buf_has_open(const struct lock_record_buf *buf)
{
    return buf->records.len > buf->open_start;
}

/* Returns: whether units before the open one have records that are not written yet. */
static inline bool lock_record_buf_has_retained(const struct lock_record_buf *buf)
{
    return buf->open_start > 0;
}

/* Ends the open unit at `ts` without a write. Its records are retained. */
void lock_record_buf_retain(struct lock_record_buf *buf, tl_ts ts);
/* Discards the records of the open unit. */
void lock_record_buf_discard(struct lock_record_buf *buf);
/* Moves all records, in order, to `batch`. */
void lock_record_buf_flush(struct lock_record_buf *buf, struct store_batch *batch);

#endif
