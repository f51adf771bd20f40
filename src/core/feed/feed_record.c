/* SPDX-License-Identifier: Apache-2.0 */
/* Binary form of feed records; README.md, "In the store". */
#include "base/big_endian.h"
#include "base/check.h"
#include "core/feed/feed.h"
#include "core/feed/feed_record.h"
#include "store/store.h"

static void put_bytes(struct buf *buf, struct slice bytes)
{
    buf_varint(buf, bytes.len);
    buf_slice(buf, bytes);
}

static bool take_bytes(struct slice *bytes, struct slice *ret_bytes)
{
    uint64_t len;
    return slice_take_varint(bytes, &len) && len <= bytes->len && slice_take(bytes, (size_t)len, ret_bytes);
}

void feed_change_put(struct buf *buf, const struct feed_change *change)
{
    REQUIRE(change->kind >= FEED_WRITTEN && change->kind <= FEED_RENAMED); /* what can be read */
    buf_byte(buf, (char)change->kind);
    buf_varint(buf, change->index);
    if (change->kind <= FEED_DELETED)
        buf_varint(buf, change->type);
    if (change->kind <= FEED_INDEX_DELETED || change->kind == FEED_RENAMED)
        put_bytes(buf, change->name);
    if (change->kind == FEED_RENAMED)
        put_bytes(buf, change->to);
}

static bool take_numbers(struct slice *bytes, struct feed_change *change)
{
    uint64_t index, type = 0;
    if (!slice_take_varint(bytes, &index) || index > UINT32_MAX)
        return false;
    if (change->kind <= FEED_DELETED && (!slice_take_varint(bytes, &type) || type > UINT16_MAX))
        return false;
    change->index = (uint32_t)index;
    change->type = (uint16_t)type;
    return true;
}

bool feed_change_take(struct slice *bytes, struct feed_change *ret_change)
{
    struct slice what;
    if (!slice_take(bytes, 1, &what) || what.data[0] < FEED_WRITTEN || what.data[0] > FEED_RENAMED)
        return false;
    *ret_change = (struct feed_change){.kind = (enum feed_kind)what.data[0]};
    if (!take_numbers(bytes, ret_change))
        return false;
    bool renamed = ret_change->kind == FEED_RENAMED;
    if ((ret_change->kind <= FEED_INDEX_DELETED || renamed) && !take_bytes(bytes, &ret_change->name))
        return false;
    return !renamed || take_bytes(bytes, &ret_change->to);
}

struct slice feed_key(char bytes[FEED_KEY_BYTES], tl_ts ts, uint32_t part)
{
    REQUIRE(ts <= TL_TS_MAX);
    big_endian_put_u64(bytes, ts);
    big_endian_put_u32(bytes + 8, part);
    return slice_make(bytes, FEED_KEY_BYTES);
}

bool feed_key_parse(struct slice key, tl_ts *ret_ts, uint32_t *ret_part)
{
    return slice_take_u64be(&key, ret_ts) && slice_take_u32be(&key, ret_part) && key.len == 0;
}

void feed_record_begin(struct buf *buf, struct slice transaction)
{
    buf_byte(buf, FEED_RECORD_VERSION);
    put_bytes(buf, transaction);
}

bool feed_record_open(struct slice *record, struct slice *ret_transaction)
{
    struct slice version;
    return slice_take(record, 1, &version) && version.data[0] == FEED_RECORD_VERSION &&
           take_bytes(record, ret_transaction);
}

void feed_state_put(struct buf *buf, bool off, tl_ts from)
{
    REQUIRE(from < TL_TS_MAX);
    buf_byte(buf, off ? 0 : 1);
    buf_u64be(buf, from);
}

int feed_read_state(struct store *store, bool *ret_off, tl_ts *ret_from)
{
    struct store_value value;
    struct slice flag;
    int r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, slice_from(feed_state_key), &value);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r;
    struct slice bytes = value.bytes;
    bool sound = slice_take(&bytes, 1, &flag) && (flag.data[0] == 0 || flag.data[0] == 1) &&
                 slice_take_u64be(&bytes, ret_from) && bytes.len == 0;
    *ret_off = sound && flag.data[0] == 0;
    store_value_release(&value);
    return sound ? 0 : tl_trace(TL_ERR_CORRUPT);
}
