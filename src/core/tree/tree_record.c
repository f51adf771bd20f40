/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of rename records; see tree_record.h. */
#include "core/tree/tree_record.h"

#include <limits.h>

#include "base/big_endian.h"
#include "base/check.h"

enum {
    LETTER_REACH = 'd',
    LETTER_DIRENT = 'g',
    LETTER_LONGEST = 'l',
    LETTER_RELOCATION = 'm',
    LETTER_HISTORY = 'p',
    LETTER_LAST_RENAME = 'r',
    LETTER_HIGH = 'v',
    LETTER_AT = 4
};

/*
 * Bytes that no valid UTF-8 text begins with; the other bytes of a synthetic origin are not a
 * delimiter, which is ASCII.
 */
enum { SYNTHETIC_ORIGIN = 0xff, NIBBLE = 0x80 };

static void begin_key(struct buf *buf, uint32_t index, char letter)
{
    buf_clear(buf);
    buf_u32be(buf, index);
    buf_byte(buf, letter);
}

struct slice tree_dirent_key(struct buf *buf, uint32_t index, struct slice dirent)
{
    begin_key(buf, index, LETTER_DIRENT);
    buf_slice(buf, dirent);
    return buf_as_slice(buf);
}

struct slice tree_relocation_key(struct buf *buf, uint32_t index, struct slice origin)
{
    begin_key(buf, index, LETTER_RELOCATION);
    buf_slice(buf, origin);
    return buf_as_slice(buf);
}

struct slice tree_history_key(struct buf *buf, uint32_t index, struct slice origin)
{
    begin_key(buf, index, LETTER_HISTORY);
    buf_slice(buf, origin);
    return buf_as_slice(buf);
}

struct slice tree_last_rename_key(struct buf *buf, uint32_t index)
{
    begin_key(buf, index, LETTER_LAST_RENAME);
    return buf_as_slice(buf);
}

struct slice tree_reach_key(struct buf *buf, uint32_t index, struct slice origin)
{
    begin_key(buf, index, LETTER_REACH);
    buf_slice(buf, origin);
    return buf_as_slice(buf);
}

struct slice tree_longest_key(struct buf *buf, uint32_t index)
{
    begin_key(buf, index, LETTER_LONGEST);
    return buf_as_slice(buf);
}

struct slice tree_high_key(struct buf *buf, uint32_t index, struct slice document)
{
    REQUIRE(document.len > 0); /* else it is a bound: tree_high_bounds() */
    begin_key(buf, index, LETTER_HIGH);
    buf_slice(buf, document);
    return buf_as_slice(buf);
}

void tree_high_bounds(struct buf *lower, struct buf *upper, uint32_t index)
{
    begin_key(lower, index, LETTER_HIGH);
    begin_key(upper, index, LETTER_HIGH + 1);
}

struct slice tree_key_text(struct slice key)
{
    REQUIRE(key.len > LETTER_AT);
    return slice_from_offset(key, LETTER_AT + 1);
}

void tree_dirent_bounds(struct buf *lower, struct buf *upper, uint32_t index, struct slice prefix)
{
    tree_dirent_key(lower, index, prefix);
    tree_dirent_key(upper, index, prefix);
    while ((unsigned char)upper->data[upper->len - 1] == UCHAR_MAX) /* ends at the key letter at the latest */
        buf_truncate(upper, upper->len - 1);
    INSIST(upper->len > LETTER_AT);
    buf_increment_last(upper);
}

void tree_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4])
{
    big_endian_range_u32(index, ret_lower, ret_upper);
}

static void append_nibbles(struct buf *buf, uint64_t number, int count)
{
    while (count-- > 0)
        buf_byte(buf, (char)(NIBBLE | (number >> (4 * count) & 15)));
}

void tree_new_origin(struct buf *buf, tl_ts ts, uint32_t number)
{
    REQUIRE(ts != TREE_TS_OPEN); /* the unit's, so that no two are equal (README.md, 3) */
    buf_byte(buf, (char)SYNTHETIC_ORIGIN);
    append_nibbles(buf, ts, 16);
    append_nibbles(buf, number, 8);
}

/* Small numbers of either sign take few bytes. */
static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ ((value & 1) != 0 ? UINT64_MAX : 0));
}

void tree_relocation_encode(struct buf *buf, const struct tree_relocation *relocation)
{
    REQUIRE(relocation->seq_no >= -1);
    REQUIRE(relocation->state <= TREE_DETACHED);
    REQUIRE(relocation->state != TREE_RELOCATED || relocation->dirent.len > 0); /* else it cannot be decoded */
    buf_u64be(buf, relocation->ts);
    buf_byte(buf, (char)relocation->state);
    buf_varint(buf, zigzag(relocation->renames));
    buf_varint(buf, (uint64_t)relocation->seq_no + 1);
    if (relocation->state == TREE_RELOCATED)
        buf_slice(buf, relocation->dirent);
}

int tree_relocation_decode(struct slice value, struct tree_relocation *ret_relocation)
{
    struct tree_relocation relocation = {0};
    struct slice state;
    uint64_t renames, seq_no;

    if (!slice_take_u64be(&value, &relocation.ts) || !slice_take(&value, 1, &state) ||
        !slice_take_varint(&value, &renames) || !slice_take_varint(&value, &seq_no) ||
        (unsigned char)state.data[0] > TREE_DETACHED)
        return tl_trace(TL_ERR_CORRUPT);
    relocation.state = (enum tree_state)state.data[0];
    if ((relocation.state == TREE_RELOCATED) != (value.len > 0))
        return tl_trace(TL_ERR_CORRUPT);
    relocation.renames = unzigzag(renames);
    relocation.seq_no = (int64_t)seq_no - 1;
    relocation.dirent = value;
    *ret_relocation = relocation;
    return 0;
}

void tree_history_encode(struct buf *buf, tl_ts ts, const struct tree_relocation *before)
{
    REQUIRE(ts > 0);
    tl_cleanup(buf_deinit) struct buf relocation = BUF_INIT(BUF_UNLIMITED);

    tree_relocation_encode(&relocation, before);
    buf_u64be(buf, ts);
    buf_varint(buf, relocation.len);
    buf_slice(buf, buf_as_slice(&relocation));
}

int tree_history_take(struct slice *history, tl_ts *ret_ts, struct slice *ret_relocation)
{
    uint64_t len;

    return slice_take_u64be(history, ret_ts) && slice_take_varint(history, &len) &&
                   slice_take(history, (size_t)len, ret_relocation)
               ? 0
               : tl_trace(TL_ERR_CORRUPT);
}

static bool is_valid_history(struct slice history)
{
    struct tree_relocation relocation;
    struct slice item;
    tl_ts ts, after = TL_TS_MAX;
    bool valid = history.len > 0;

    while (valid && history.len > 0) {
        valid = tree_history_take(&history, &ts, &item) == 0 && ts <= after &&
                tree_relocation_decode(item, &relocation) == 0;
        after = ts;
    }
    return valid;
}

void tree_length_encode(struct buf *buf, size_t length)
{
    REQUIRE(length <= SIZE_MAX / 2); /* else it cannot be read */
    buf_varint(buf, length);
}

int tree_length_decode(struct slice value, size_t *ret_length)
{
    uint64_t length;

    if (!slice_take_varint(&value, &length) || value.len > 0 || length > SIZE_MAX / 2)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_length = (size_t)length;
    return 0;
}

bool tree_record_is_open(struct slice key, struct slice value)
{
    uint64_t ts;
    char letter = key.len > LETTER_AT ? key.data[LETTER_AT] : '\0';

    return (letter == LETTER_RELOCATION || letter == LETTER_HISTORY || letter == LETTER_LAST_RENAME) &&
           slice_take_u64be(&value, &ts) && ts == TREE_TS_OPEN;
}

bool tree_record_is_valid(struct slice key, struct slice value)
{
    struct tree_relocation relocation;
    size_t length;

    if (key.len <= LETTER_AT)
        return false;
    switch (key.data[LETTER_AT]) {
    case LETTER_REACH:
    case LETTER_LONGEST: return tree_length_decode(value, &length) == 0;
    case LETTER_HIGH:
    case LETTER_DIRENT: return value.len > 0;
    case LETTER_RELOCATION: return tree_relocation_decode(value, &relocation) == 0;
    case LETTER_HISTORY: return is_valid_history(value);
    case LETTER_LAST_RENAME: return value.len == sizeof(uint64_t) + 1;
    default: return false;
    }
}
