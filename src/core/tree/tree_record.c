/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of what renames have left; see tree_record.h. */
#include "core/tree/tree_record.h"

#include <limits.h>

enum {
    LETTER_REACH = 'd',
    LETTER_GUEST = 'g',
    LETTER_LONGEST = 'l',
    LETTER_MOVED = 'm',
    LETTER_PAST = 'p',
    LETTER_NEWEST = 'r',
    LETTER_HIGH = 'v',
    LETTER_AT = 4
};

/* No text begins so: it is no UTF-8. Nor is what follows any delimiter, which is one character of ASCII. */
enum { NEW_BIRTH = 0xff, NIBBLE = 0x80 };

static void begin(struct buf *buf, uint32_t index, char letter)
{
    buf_clear(buf);
    buf_u32be(buf, index);
    buf_byte(buf, letter);
}

struct slice tree_dirent_key(struct buf *buf, uint32_t index, struct slice place)
{
    begin(buf, index, LETTER_GUEST);
    buf_slice(buf, place);
    return buf_as_slice(buf);
}

struct slice tree_relocation_key(struct buf *buf, uint32_t index, struct slice birth)
{
    begin(buf, index, LETTER_MOVED);
    buf_slice(buf, birth);
    return buf_as_slice(buf);
}

struct slice tree_history_key(struct buf *buf, uint32_t index, struct slice birth)
{
    begin(buf, index, LETTER_PAST);
    buf_slice(buf, birth);
    return buf_as_slice(buf);
}

struct slice tree_last_rename_key(struct buf *buf, uint32_t index)
{
    begin(buf, index, LETTER_NEWEST);
    return buf_as_slice(buf);
}

struct slice tree_reach_key(struct buf *buf, uint32_t index, struct slice birth)
{
    begin(buf, index, LETTER_REACH);
    buf_slice(buf, birth);
    return buf_as_slice(buf);
}

struct slice tree_longest_key(struct buf *buf, uint32_t index)
{
    begin(buf, index, LETTER_LONGEST);
    return buf_as_slice(buf);
}

struct slice tree_high_key(struct buf *buf, uint32_t index, struct slice document)
{
    begin(buf, index, LETTER_HIGH);
    buf_slice(buf, document);
    return buf_as_slice(buf);
}

void tree_high_bounds(struct buf *lower, struct buf *upper, uint32_t index)
{
    begin(lower, index, LETTER_HIGH);
    begin(upper, index, LETTER_HIGH + 1);
}

struct slice tree_key_text(struct slice key)
{
    return slice_from_offset(key, LETTER_AT + 1);
}

void tree_dirent_bounds(struct buf *lower, struct buf *upper, uint32_t index, struct slice prefix)
{
    tree_dirent_key(lower, index, prefix);
    tree_dirent_key(upper, index, prefix);
    while ((unsigned char)upper->data[upper->len - 1] == UCHAR_MAX) /* ends at the letter at the latest */
        buf_truncate(upper, upper->len - 1);
    buf_increment_last(upper);
}

void tree_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4])
{
    for (int i = 0; i < 4; i++) {
        ret_lower[i] = (char)(index >> (24 - 8 * i));
        ret_upper[i] = (char)((index + 1) >> (24 - 8 * i));
    }
}

static void append_nibbles(struct buf *buf, uint64_t number, int count)
{
    while (count-- > 0)
        buf_byte(buf, (char)(NIBBLE | (number >> (4 * count) & 15)));
}

void tree_new_origin(struct buf *buf, tl_ts ts, uint32_t number)
{
    buf_byte(buf, (char)NEW_BIRTH);
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

void tree_relocation_encode(struct buf *buf, const struct tree_relocation *moved)
{
    buf_u64be(buf, moved->ts);
    buf_byte(buf, (char)moved->state);
    buf_varint(buf, zigzag(moved->renames));
    buf_varint(buf, (uint64_t)moved->seq_no + 1);
    if (moved->state == TREE_RELOCATED)
        buf_slice(buf, moved->dirent);
}

int tree_relocation_decode(struct slice value, struct tree_relocation *ret_moved)
{
    struct tree_relocation moved = {0};
    struct slice lies;
    uint64_t renames, seq_no;

    if (!slice_take_u64be(&value, &moved.ts) || !slice_take(&value, 1, &lies) || !slice_take_varint(&value, &renames) ||
        !slice_take_varint(&value, &seq_no) || (unsigned char)lies.data[0] > TREE_DETACHED)
        return tl_trace(TL_ERR_CORRUPT);
    moved.state = (enum tree_state)lies.data[0];
    if ((moved.state == TREE_RELOCATED) != (value.len > 0))
        return tl_trace(TL_ERR_CORRUPT);
    moved.renames = unzigzag(renames);
    moved.seq_no = (int64_t)seq_no - 1;
    moved.dirent = value;
    *ret_moved = moved;
    return 0;
}

void tree_history_encode(struct buf *buf, tl_ts ts, const struct tree_relocation *before)
{
    tl_cleanup(buf_deinit) struct buf moved = BUF_INIT(BUF_UNLIMITED);

    tree_relocation_encode(&moved, before);
    buf_u64be(buf, ts);
    buf_varint(buf, moved.len);
    buf_slice(buf, buf_as_slice(&moved));
}

int tree_history_take(struct slice *past, tl_ts *ret_ts, struct slice *ret_moved)
{
    uint64_t len;

    return slice_take_u64be(past, ret_ts) && slice_take_varint(past, &len) && slice_take(past, (size_t)len, ret_moved)
               ? 0
               : tl_trace(TL_ERR_CORRUPT);
}

static bool is_sound_past(struct slice past)
{
    struct tree_relocation moved;
    struct slice item;
    tl_ts ts, after = TL_TS_MAX;
    bool sound = past.len > 0;

    while (sound && past.len > 0) {
        sound = tree_history_take(&past, &ts, &item) == 0 && ts <= after && tree_relocation_decode(item, &moved) == 0;
        after = ts;
    }
    return sound;
}

void tree_length_encode(struct buf *buf, size_t length)
{
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

    return (letter == LETTER_MOVED || letter == LETTER_PAST || letter == LETTER_NEWEST) &&
           slice_take_u64be(&value, &ts) && ts == TREE_TS_OPEN;
}

bool tree_record_is_valid(struct slice key, struct slice value)
{
    struct tree_relocation moved;
    size_t length;

    if (key.len <= LETTER_AT)
        return false;
    switch (key.data[LETTER_AT]) {
    case LETTER_REACH:
    case LETTER_LONGEST: return tree_length_decode(value, &length) == 0;
    case LETTER_HIGH:
    case LETTER_GUEST: return value.len > 0;
    case LETTER_MOVED: return tree_relocation_decode(value, &moved) == 0;
    case LETTER_PAST: return is_sound_past(value);
    case LETTER_NEWEST: return value.len == sizeof(uint64_t) + 1;
    default: return false;
    }
}
