/* SPDX-License-Identifier: Apache-2.0 */
/* The lock log; see lock_log.h. */
#include "core/locks/lock_log.h"

#include "base/check.h"

enum { MEMORY_KEPT_MAX = 256 * 1024 };

void lock_log_init(struct lock_log *log)
{
    *log = (struct lock_log){.records = BUF_INIT(BUF_UNLIMITED)};
}

void lock_log_deinit(struct lock_log *log)
{
    buf_deinit(&log->records);
}

void lock_log_put(struct lock_log *log, struct slice key, struct slice value)
{
    buf_varint(&log->records, key.len);
    buf_slice(&log->records, key);
    buf_varint(&log->records, value.len + 1);
    buf_slice(&log->records, value);
}

void lock_log_drop(struct lock_log *log, struct slice key)
{
    buf_varint(&log->records, key.len);
    buf_slice(&log->records, key);
    buf_varint(&log->records, 0);
}

void lock_log_keep(struct lock_log *log, tl_ts ts)
{
    log->unit = log->records.len;
    log->kept_ts = ts;
}

void lock_log_cut(struct lock_log *log)
{
    buf_truncate(&log->records, log->unit);
}

static void pour_one(struct slice *records, struct store_batch *batch)
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

void lock_log_pour(struct lock_log *log, struct store_batch *batch)
{
    for (struct slice left = buf_as_slice(&log->records); left.len > 0;)
        pour_one(&left, batch);
    if (log->records.capacity > MEMORY_KEPT_MAX)
        buf_deinit(&log->records);
    buf_clear(&log->records);
    log->unit = 0;
}
