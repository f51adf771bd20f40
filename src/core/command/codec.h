/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec: one function writes and reads a value in its byte form.
 *
 * A codec either writes or reads. Each function here writes the value that its pointer refers to,
 * or reads one into it. So the code for a structure names each field once, and both directions
 * cannot differ.
 *
 * Reading is strict: each value has exactly one form, and any other input sets `bad`. From then on
 * the codec reads zeros, so that callers check `bad` only at the end and loops over a count that
 * was read terminate. Allocation is bounded by the input: a count that the remaining bytes cannot
 * hold is refused.
 *
 *     number    varint: seven bits a byte, low ones first, the shortest form
 *     signed    zigzag number: 0, -1, 1, -2 are 0, 1, 2, 3
 *     flags     one byte, the first flag in the lowest bit; unused bits are 0
 *     slice     length + 1 as a number, and the bytes; 0 alone: data NULL
 *     array     count as a number, and the elements
 */
#ifndef TL_CORE_CODEC_H
#define TL_CORE_CODEC_H

#include "base/arena.h"
#include "base/buf.h"

struct codec {
    struct buf *out;     /* output, when writing; NULL: reading */
    struct slice in;     /* input not yet read; slices that are read point into it */
    struct arena *arena; /* when reading: allocates arrays */
    unsigned version;    /* of the form, for fields that only some versions have */
    bool bad;            /* the input is invalid */
};

static inline struct codec codec_to(struct buf *out, unsigned version)
{
    return (struct codec){.out = out, .version = version};
}

static inline struct codec codec_from(struct slice in, struct arena *arena)
{
    return (struct codec){.in = in, .arena = arena};
}

static inline bool codec_reads(const struct codec *codec)
{
    return codec->out == NULL;
}

/*
 * Sets `bad` if a value that was read violates a condition. Requires: when writing, the condition
 * holds.
 */
void codec_require(struct codec *codec, bool so);

void codec_byte(struct codec *codec, uint8_t *value);
void codec_number(struct codec *codec, uint64_t *value);
/* Codes a size as a number. When reading, sets `bad` if size_t cannot hold it. */
void codec_size(struct codec *codec, size_t *value);
void codec_signed(struct codec *codec, int64_t *value);
/*
 * Codes an enum constant below `count`. Returns: `value`, or the constant that was read. To be used
 * as `x = (enum e)codec_enum(codec, x, E_COUNT)`. Requires: 0 < `count` <= 256.
 */
unsigned codec_enum(struct codec *codec, unsigned value, unsigned count);
/* Codes up to eight flags. */
void codec_flags(struct codec *codec, bool *const *flags, size_t count);
void codec_bool(struct codec *codec, bool *value);
/* Requires: when writing, a slice with data NULL is empty. */
void codec_slice(struct codec *codec, struct slice *value);
/*
 * Codes a slice with data other than NULL, as codec_slice(). When reading, data is not NULL even if
 * it is empty.
 * Requires: when writing, a slice with data NULL is empty.
 */
void codec_bytes(struct codec *codec, struct slice *value);
/*
 * Codes the count of an array whose elements take at least `element_min` bytes; the caller codes
 * the elements.
 * Returns: `items`, or when reading a new zeroed array in the arena; NULL: no elements.
 * Requires: `element_min` > 0; when reading elements, the codec has an arena.
 */
void *codec_array(struct codec *codec, void *items, size_t *count, size_t size, size_t element_min);

/* Returns: whether the whole input was read and is valid. */
static inline bool codec_done(const struct codec *codec)
{
    return !codec->bad && codec->in.len == 0;
}

#endif
