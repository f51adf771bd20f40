/* SPDX-License-Identifier: Apache-2.0 */
/* Things as bytes; see coder.h. */
#include "core/step/coder.h"

#include "base/check.h"

void coder_demand(struct coder *coder, bool so)
{
    if (so)
        return;
    REQUIRE(coder_reads(coder));
    coder->bad = true;
    coder->in.len = 0;
}

void code_byte(struct coder *coder, uint8_t *value)
{
    struct slice taken = SLICE_NONE;

    if (!coder_reads(coder)) {
        buf_byte(coder->out, (char)*value);
        return;
    }
    coder_demand(coder, slice_take(&coder->in, 1, &taken));
    *value = coder->bad ? 0 : (uint8_t)taken.data[0];
}

static uint64_t read_number(struct coder *coder)
{
    struct slice before = coder->in;
    uint64_t value = 0;
    bool sound = slice_take_varint(&coder->in, &value);

    if (sound) {
        size_t len = before.len - coder->in.len;
        sound = len == 1 || before.data[len - 1] != 0; /* or else it is longer than it need be */
    }
    coder_demand(coder, sound);
    return coder->bad ? 0 : value;
}

void code_number(struct coder *coder, uint64_t *value)
{
    if (coder_reads(coder))
        *value = read_number(coder);
    else
        buf_varint(coder->out, *value);
}

void code_size(struct coder *coder, size_t *value)
{
    uint64_t number = *value;

    code_number(coder, &number);
    coder_demand(coder, number <= SIZE_MAX);
    *value = coder->bad ? 0 : (size_t)number;
}

void code_signed(struct coder *coder, int64_t *value)
{
    uint64_t bits = ((uint64_t)*value << 1) ^ (*value < 0 ? UINT64_MAX : 0);

    code_number(coder, &bits);
    if (coder_reads(coder))
        *value = (int64_t)((bits >> 1) ^ (0 - (bits & 1)));
}

unsigned code_enum(struct coder *coder, unsigned value, unsigned count)
{
    uint8_t byte = (uint8_t)value;

    code_byte(coder, &byte);
    coder_demand(coder, byte < count && (coder_reads(coder) || value < count));
    return coder->bad ? 0 : byte;
}

void code_flags(struct coder *coder, bool *const *flags, size_t count)
{
    uint8_t byte = 0;

    INSIST(count <= 8);
    for (size_t i = 0; i < count && !coder_reads(coder); i++)
        byte = (uint8_t)(byte | (*flags[i] ? 1u << i : 0u));
    code_byte(coder, &byte);
    coder_demand(coder, byte >> count == 0);
    for (size_t i = 0; i < count && coder_reads(coder); i++)
        *flags[i] = !coder->bad && (byte >> i & 1) != 0;
}

void code_bool(struct coder *coder, bool *value)
{
    code_flags(coder, &value, 1);
}

void code_slice(struct coder *coder, struct slice *value)
{
    uint64_t length = value->data == NULL ? 0 : (uint64_t)value->len + 1;

    code_number(coder, &length);
    if (!coder_reads(coder)) {
        if (value->data != NULL)
            buf_slice(coder->out, *value);
        return;
    }
    *value = SLICE_NONE;
    if (length == 0)
        return;
    coder_demand(coder, length - 1 <= coder->in.len && slice_take(&coder->in, (size_t)length - 1, value));
    if (coder->bad)
        *value = SLICE_NONE;
}

void code_bytes(struct coder *coder, struct slice *value)
{
    struct slice there = {value->data == NULL ? "" : value->data, value->len};

    code_slice(coder, &there);
    coder_demand(coder, there.data != NULL);
    *value = there;
}

void *code_array(struct coder *coder, void *items, size_t *count, size_t size, size_t element_min)
{
    uint64_t number = *count;

    code_number(coder, &number);
    if (!coder_reads(coder))
        return items;
    coder_demand(coder, number <= coder->in.len / element_min);
    *count = coder->bad ? 0 : (size_t)number;
    return *count == 0 ? NULL : arena_zalloc(coder->arena, *count * size);
}
