/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things as bytes, written and read by the same function.
 *
 * A coder goes in one of two directions. Each function here either writes what its pointer names, or reads it and puts it there; so
 * whoever codes a thing names its fields once, in their order, and the two directions cannot differ.
 *
 * Reading is strict. Each value has one form, and every other is refused; what is refused leaves the coder *bad*, and from then
 * on it reads zeros. So nobody need look but at the end, and loops whose count was read end at once. What is allocated is
 * bounded by the input: a count is refused that the bytes left cannot hold.
 *
 *     number    a varint: seven bits a byte, low ones first, the shortest form
 *     signed    a number, with its sign at the low end: 0, -1, 1, -2 are 0, 1, 2, 3
 *     flags     a byte, the first in the lowest bit; the others are 0
 *     slice     its length + 1, a number, and its bytes; 0 alone: absent
 *     array     a count, a number, and its elements
 */
#ifndef TL_CORE_CODEC_H
#define TL_CORE_CODEC_H

#include "base/arena.h"
#include "base/buf.h"

struct codec {
    struct buf *out;     /* of one that writes; NULL: it reads */
    struct slice in;     /* of one that reads: what is left; slices that are read point into it */
    struct arena *arena; /* of one that reads: where arrays are made */
    unsigned version;    /* of the form, for fields that not every version has */
    bool bad;            /* what was read is not such a thing */
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

/* Makes a coder bad, when what was read is not so. One that writes must never be told what is false. */
void codec_require(struct codec *codec, bool so);

void codec_byte(struct codec *codec, uint8_t *value);
void codec_number(struct codec *codec, uint64_t *value);
/* The same of a size, which is the same on all processors: a size that one cannot hold is refused by it. */
void codec_size(struct codec *codec, size_t *value);
void codec_signed(struct codec *codec, int64_t *value);
/* Returns: `value`, or the one read, which is below `count`. For `x = (enum e)codec_enum(coder, x, E_COUNT)`. */
unsigned codec_enum(struct codec *codec, unsigned value, unsigned count);
/* At most eight. */
void codec_flags(struct codec *codec, bool *const *flags, size_t count);
void codec_bool(struct codec *codec, bool *value);
void codec_slice(struct codec *codec, struct slice *value);
/* A slice that is there, when read even where it is empty. */
void codec_bytes(struct codec *codec, struct slice *value);
/*
 * The count of an array whose elements take `element_min` bytes at least. Returns: the array, new and zeroed where it is read;
 * NULL when it has no elements.
 */
void *codec_array(struct codec *codec, void *items, size_t *count, size_t size, size_t element_min);

/* Returns: whether all that was there was read, and was good. */
static inline bool codec_done(const struct codec *codec)
{
    return !codec->bad && codec->in.len == 0;
}

#endif
