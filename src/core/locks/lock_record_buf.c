/* SPDX-License-Identifier: Apache-2.0 */
/* The lock log; see lock_record_buf.h. */
#include "core/locks/lock_record_buf.h"

#include "base/check.h"

enum { MEMORY_RETAINED_MAX = 256 * 1024 };

void lock_record_buf_init(struct lock_record_buf *buf)
{
    *buf = (struct lock_record_buf){.records = BUF_INIT(BUF_UNLIMITED)};
}

void lock_record_buf_deinit(struct lock_record_buf *buf)
{
    buf_deinit(&buf->records);
}

void lock_record_buf_put(struct lock_record_buf *buf, struct slice key, struct slice value)
{
    buf_varint(&buf->records, key.len);
    buf_slice(&buf->records, key);
    buf_varint(&buf->records, value.len + 1);
    buf_slice(&buf->records, value);
}

void lock_record_buf_delete(struct lock_record_buf *buf, struct slice key)
{
    buf_varint(&buf->records, key.len);
    buf_slice(&buf->records, key);
    buf_varint(&buf->records, 0);
}

void lock_record_buf_retain(struct lock_record_buf *buf, tl_ts ts)
{
    buf->open_start = buf->records.len;
    buf->retained_ts = ts;
}

void lock_record_buf_discard(struct lock_record_buf *buf)
{
    buf_truncate(&buf->records, buf->open_start);
}

static void flush_one(struct slice *records, struct store_batch *batch)
{
    uint64_t key_len, value_len;
    struct slice key, value;
    bool sound = slice_take_varint(records, &key_len) && slice_take(records, key_len, &key) &&
                 slice_take_varint(records, &value_len) && slice_take(records, value_len ? value_len - 1 : 0, &value);
    INSIST(sound);
    if (value_len == 0)
        store_batch_delete(batch, SPACE_SYSTEM, key);
    else
        store_batch_put(batch, SPACE_SYSTEM, key, value);
}

void lock_record_buf_flush(struct lock_record_buf *buf, struct store_batch *batch)
{
    for (struct slice left = buf_as_slice(&buf->records); left.len > 0;)
        flush_one(&left, batch);
    if (buf->records.capacity > MEMORY_RETAINED_MAX)
        buf_deinit(&buf->records);
    buf_clear(&buf->records);
    buf->open_start = 0;
}
