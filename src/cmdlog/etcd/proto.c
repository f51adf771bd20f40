/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of Protocol Buffers messages; see proto.h. */
#include "cmdlog/etcd/proto.h"

#include "base/check.h"

enum { WIRE_NUMBER = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2, WIRE_FOUR = 5 };

enum {
    LENGTH_BYTES = 4, /* a nested message's length: a padded varint, written last */
    FIELD_MAX = (1 << 29) - 1,
};

/*
 * Appends a varint of the format: least significant seven bits first, unlike those of base/buf.h.
 */
static void put_number(struct buf *buf, uint64_t value)
{
    while (value >= 0x80) {
        buf_byte(buf, (char)(value | 0x80));
        value >>= 7;
    }
    buf_byte(buf, (char)value);
}

static void put_tag(struct buf *buf, unsigned field, unsigned wire)
{
    REQUIRE(field > 0 && field <= FIELD_MAX);
    put_number(buf, (uint64_t)field << 3 | wire);
}

void proto_number_set(struct buf *buf, unsigned field, uint64_t value)
{
    put_tag(buf, field, WIRE_NUMBER);
    put_number(buf, value);
}

void proto_number(struct buf *buf, unsigned field, uint64_t value)
{
    if (value != 0)
        proto_number_set(buf, field, value);
}

void proto_bytes_header(struct buf *buf, unsigned field, size_t len)
{
    put_tag(buf, field, WIRE_BYTES);
    put_number(buf, len);
}

void proto_bytes(struct buf *buf, unsigned field, struct slice bytes)
{
    if (bytes.len == 0)
        return;
    proto_bytes_header(buf, field, bytes.len);
    buf_slice(buf, bytes);
}

size_t proto_begin(struct buf *buf, unsigned field)
{
    put_tag(buf, field, WIRE_BYTES);
    buf_append(buf, "\0\0\0\0", LENGTH_BYTES);
    return buf->len;
}

void proto_end(struct buf *buf, size_t begun)
{
    if (buf->overflow)
        return;
    REQUIRE(begun >= LENGTH_BYTES && begun <= buf->len);
    size_t len = buf->len - begun;
    REQUIRE(len < (size_t)1 << 7 * LENGTH_BYTES);
    char bytes[LENGTH_BYTES];
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        bytes[i] = (char)((len >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    buf_overwrite(buf, begun - LENGTH_BYTES, bytes, LENGTH_BYTES);
}

static bool take_number(struct slice *message, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < message->len && i < 10; i++) {
        unsigned char byte = (unsigned char)message->data[i];
        if (i == 9 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            *ret_value = value;
            *message = slice_from_offset(*message, i + 1);
            return true;
        }
    }
    return false;
}

int proto_take(struct slice *message, struct proto_field *ret_field)
{
    struct proto_field field = {0};
    uint64_t tag, len = 0;
    if (message->len == 0)
        return 0;
    if (!take_number(message, &tag) || tag >> 3 == 0 || tag >> 3 > FIELD_MAX)
        return tl_trace(TL_ERR_CORRUPT);
    field.number = (unsigned)(tag >> 3);
    switch (tag & 7) {
    case WIRE_NUMBER:
        field.is_number = true;
        if (!take_number(message, &field.value))
            return tl_trace(TL_ERR_CORRUPT);
        break;
    case WIRE_BYTES:
        if (!take_number(message, &len))
            return tl_trace(TL_ERR_CORRUPT);
        break;
    case WIRE_EIGHT: len = 8; break;
    case WIRE_FOUR: len = 4; break;
    default: return tl_trace(TL_ERR_CORRUPT);
    }
    if (!field.is_number && (len > message->len || !slice_take(message, (size_t)len, &field.bytes)))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_field = field;
    return 1;
}
