/* SPDX-License-Identifier: Apache-2.0 */
/* Codec; see codec.h. */
#include "core/command/codec.h"

#include "base/check.h"

void codec_require(struct codec *codec, bool so)
{
    if (so)
        return;
    REQUIRE(codec_reads(codec));
    codec->bad = true;
    codec->in.len = 0;
}

void codec_byte(struct codec *codec, uint8_t *value)
{
    struct slice taken = SLICE_NONE;

    if (!codec_reads(codec)) {
        buf_byte(codec->out, (char)*value);
        return;
    }
    codec_require(codec, slice_take(&codec->in, 1, &taken));
    *value = codec->bad ? 0 : (uint8_t)taken.data[0];
}

static uint64_t read_number(struct codec *codec)
{
    struct slice before = codec->in;
    uint64_t value = 0;
    bool sound = slice_take_varint(&codec->in, &value);

    if (sound) {
        size_t len = before.len - codec->in.len;
        sound = len == 1 || before.data[len - 1] != 0; /* the shortest form of a varint */
    }
    codec_require(codec, sound);
    return codec->bad ? 0 : value;
}

void codec_number(struct codec *codec, uint64_t *value)
{
    if (codec_reads(codec))
        *value = read_number(codec);
    else
        buf_varint(codec->out, *value);
}

void codec_size(struct codec *codec, size_t *value)
{
    uint64_t number = *value;

    codec_number(codec, &number);
    codec_require(codec, number <= SIZE_MAX);
    *value = codec->bad ? 0 : (size_t)number;
}

void codec_signed(struct codec *codec, int64_t *value)
{
    uint64_t bits = ((uint64_t)*value << 1) ^ (*value < 0 ? UINT64_MAX : 0);

    codec_number(codec, &bits);
    if (codec_reads(codec))
        *value = (int64_t)((bits >> 1) ^ (0 - (bits & 1)));
}

unsigned codec_enum(struct codec *codec, unsigned value, unsigned count)
{
    REQUIRE(count > 0 && count <= UINT8_MAX + 1u);
    uint8_t byte = (uint8_t)value;

    codec_byte(codec, &byte);
    codec_require(codec, byte < count && (codec_reads(codec) || value < count));
    return codec->bad ? 0 : byte;
}

void codec_flags(struct codec *codec, bool *const *flags, size_t count)
{
    uint8_t byte = 0;

    INSIST(count <= 8);
    for (size_t i = 0; i < count && !codec_reads(codec); i++)
        byte = (uint8_t)(byte | (*flags[i] ? 1u << i : 0u));
    codec_byte(codec, &byte);
    codec_require(codec, byte >> count == 0);
    for (size_t i = 0; i < count && codec_reads(codec); i++)
        *flags[i] = !codec->bad && (byte >> i & 1) != 0;
}

void codec_bool(struct codec *codec, bool *value)
{
    codec_flags(codec, &value, 1);
}

void codec_slice(struct codec *codec, struct slice *value)
{
    REQUIRE(codec_reads(codec) || value->data != NULL || value->len == 0); /* else bytes would be lost */
    uint64_t length = value->data == NULL ? 0 : (uint64_t)value->len + 1;

    codec_number(codec, &length);
    if (!codec_reads(codec)) {
        if (value->data != NULL)
            buf_slice(codec->out, *value);
        return;
    }
    *value = SLICE_NONE;
    if (length == 0)
        return;
    codec_require(codec, length - 1 <= codec->in.len && slice_take(&codec->in, (size_t)length - 1, value));
    if (codec->bad)
        *value = SLICE_NONE;
}

void codec_bytes(struct codec *codec, struct slice *value)
{
    REQUIRE(codec_reads(codec) || value->data != NULL || value->len == 0);
    struct slice there = {value->data == NULL ? "" : value->data, value->len};

    codec_slice(codec, &there);
    codec_require(codec, there.data != NULL);
    *value = there;
}

void *codec_array(struct codec *codec, void *items, size_t *count, size_t size, size_t element_min)
{
    REQUIRE(codec_reads(codec) || items != NULL || *count == 0 || size == 0);
    REQUIRE(element_min > 0);
    uint64_t number = *count;

    codec_number(codec, &number);
    if (!codec_reads(codec))
        return items;
    codec_require(codec, number <= codec->in.len / element_min);
    *count = codec->bad ? 0 : (size_t)number;
    if (*count == 0)
        return NULL;
    REQUIRE(codec->arena != NULL);
    return arena_zalloc(codec->arena, *count * size);
}
