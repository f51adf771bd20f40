/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of entries; see entry_key.h. */
#include "mapping/entry_key.h"

#include "base/big_endian.h"
#include "base/check.h"

enum {
    TAG_BYTES = 'b',
    TAG_DOUBLE = 'f',
    TAG_INTEGER = 'i',
    BYTE_ESCAPED = 0xff, /* after 00: the value has a 00 here */
    BYTE_END = 0x01,     /* after 00: the end of the value */
    BYTE_END_CUT = 0x02, /* after 00: the end of a truncated value */
};

#define SIGN_BIT ((uint64_t)1 << 63)

void entry_document_key(struct buf *buf, uint16_t type, struct slice id)
{
    buf_byte(buf, (char)(type >> 8));
    buf_byte(buf, (char)(type & 0xff));
    buf_slice(buf, id);
}

bool entry_document_key_parse(struct slice key, uint16_t *ret_type, struct slice *ret_id)
{
    if (key.len < 2 || key.len > ENTRY_DOCUMENT_KEY_MAX)
        return false;
    *ret_type = (uint16_t)((unsigned char)key.data[0] << 8 | (unsigned char)key.data[1]);
    *ret_id = slice_from_offset(key, 2);
    return true;
}

void entry_key_field(struct buf *buf, uint32_t index, uint16_t field)
{
    buf_u32be(buf, index);
    buf_byte(buf, (char)(field >> 8));
    buf_byte(buf, (char)(field & 0xff));
}

void entry_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4])
{
    big_endian_range_u32(index, ret_lower, ret_upper);
}

/* Returns: the number of bytes in the first ENTRY_VALUE_CHARACTERS_MAX characters. */
static size_t kept_bytes(struct slice bytes)
{
    if (bytes.len <= ENTRY_VALUE_CHARACTERS_MAX)
        return bytes.len;
    size_t characters = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bool starts = ((unsigned char)bytes.data[i] & 0xc0) != 0x80;
        if (starts && characters++ == ENTRY_VALUE_CHARACTERS_MAX)
            return i;
    }
    /* Not UTF-8: a run of continuation bytes counts as one character and must be bounded too. */
    return bytes.len <= 4 * ENTRY_VALUE_CHARACTERS_MAX ? bytes.len : 4 * ENTRY_VALUE_CHARACTERS_MAX;
}

static void append_escaped(struct buf *buf, struct slice bytes)
{
    while (bytes.len > 0) {
        size_t clean = slice_find_byte(bytes, '\0');
        buf_append(buf, bytes.data, clean);
        if (clean == bytes.len)
            return;
        buf_byte(buf, '\0');
        buf_byte(buf, (char)BYTE_ESCAPED);
        bytes = slice_from_offset(bytes, clean + 1);
    }
}

bool entry_key_prefix(struct buf *buf, struct slice prefix)
{
    size_t kept = kept_bytes(prefix);
    buf_byte(buf, TAG_BYTES);
    append_escaped(buf, (struct slice){prefix.data, kept});
    return kept < prefix.len;
}

bool entry_value_encode(struct buf *buf, const struct field_value *value)
{
    switch ((enum field_value_kind)value->kind) {
    case FIELD_VALUE_I64:
        buf_byte(buf, TAG_INTEGER);
        buf_u64be(buf, (uint64_t)value->i64 ^ SIGN_BIT);
        return false;
    case FIELD_VALUE_F64: {
        uint64_t bits;
        memcpy(&bits, &value->f64, sizeof bits);
        buf_byte(buf, TAG_DOUBLE);
        buf_u64be(buf, bits & SIGN_BIT ? ~bits : bits | SIGN_BIT);
        return false;
    }
    case FIELD_VALUE_BYTES: {
        bool cut = entry_key_prefix(buf, value->bytes);
        buf_byte(buf, '\0');
        buf_byte(buf, cut ? BYTE_END_CUT : BYTE_END);
        return cut;
    }
    case FIELD_VALUE_NONE: break;
    }
    UNREACHABLE();
}

/* Returns: the length of the encoded value at the start of `bytes`; 0 if it is malformed. */
static size_t value_length(struct slice bytes, bool *ret_cut)
{
    *ret_cut = false;
    if (bytes.len == 0)
        return 0;
    if (bytes.data[0] == TAG_INTEGER || bytes.data[0] == TAG_DOUBLE)
        return bytes.len >= 9 ? 9 : 0;
    if (bytes.data[0] != TAG_BYTES)
        return 0;
    for (size_t at = 1;;) {
        at += slice_find_byte(slice_from_offset(bytes, at), '\0');
        if (at + 1 >= bytes.len)
            return 0;
        unsigned char next = (unsigned char)bytes.data[at + 1];
        at += 2;
        if (next == BYTE_ESCAPED)
            continue;
        *ret_cut = next == BYTE_END_CUT;
        return next == BYTE_END || next == BYTE_END_CUT ? at : 0;
    }
}

static bool decode_bytes(struct slice escaped, struct arena *arena, struct slice *ret_bytes)
{
    char *to = arena_alloc(arena, escaped.len);
    size_t len = 0;
    for (size_t i = 0; i < escaped.len; i++) {
        to[len++] = escaped.data[i];
        if (escaped.data[i] == '\0')
            i++; /* skip BYTE_ESCAPED */
    }
    *ret_bytes = (struct slice){to, len};
    return true;
}

bool entry_value_decode(struct slice bytes, enum field_value_kind kind, struct arena *arena,
                        struct field_value *ret_value)
{
    bool cut;
    uint64_t bits;
    if (bytes.len == 0 || value_length(bytes, &cut) != bytes.len)
        return false;
    char tag = bytes.data[0];
    struct slice rest = slice_from_offset(bytes, 1);
    ret_value->kind = (uint8_t)kind;
    if (kind == FIELD_VALUE_BYTES)
        return tag == TAG_BYTES && decode_bytes((struct slice){rest.data, rest.len - 2}, arena, &ret_value->bytes);
    if (!slice_take_u64be(&rest, &bits))
        return false;
    if (kind == FIELD_VALUE_I64 && tag == TAG_INTEGER) {
        ret_value->i64 = (int64_t)(bits ^ SIGN_BIT);
        return true;
    }
    if (kind == FIELD_VALUE_F64 && tag == TAG_DOUBLE) {
        bits = bits & SIGN_BIT ? bits ^ SIGN_BIT : ~bits;
        memcpy(&ret_value->f64, &bits, sizeof bits);
        return true;
    }
    return false;
}

bool entry_key_parse(struct slice key, struct entry_key *ret_key)
{
    struct slice rest = key;
    struct slice field;
    if (!slice_take_u32be(&rest, &ret_key->index) || !slice_take(&rest, 2, &field))
        return false;
    ret_key->field = (uint16_t)((unsigned char)field.data[0] << 8 | (unsigned char)field.data[1]);
    size_t value = value_length(rest, &ret_key->cut);
    struct slice shape;
    if (value == 0 || !slice_take(&rest, value, &ret_key->value) || !slice_take(&rest, 1, &shape))
        return false;
    ret_key->shape = (uint8_t)shape.data[0];
    ret_key->batch = 0;
    if (ret_key->shape == ENTRY_POSTING_LIST) {
        if (!slice_take_u64be(&rest, &ret_key->batch))
            return false;
    } else if (ret_key->shape != ENTRY_SINGLE) {
        return false;
    }
    ret_key->document_key = rest;
    return rest.len >= 2 && rest.len <= ENTRY_DOCUMENT_KEY_MAX;
}

bool entry_is_posting_list(struct slice key, uint64_t *ret_batch)
{
    struct entry_key parsed;
    if (!entry_key_parse(key, &parsed) || parsed.shape != ENTRY_POSTING_LIST)
        return false;
    *ret_batch = parsed.batch;
    return true;
}
