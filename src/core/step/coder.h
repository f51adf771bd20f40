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
#ifndef TL_CORE_CODER_H
#define TL_CORE_CODER_H

#include "base/arena.h"
#include "base/buf.h"

struct coder {
    struct buf *out;     /* of one that writes; NULL: it reads */
    struct slice in;     /* of one that reads: what is left; slices that are read point into it */
    struct arena *arena; /* of one that reads: where arrays are made */
    unsigned version;    /* of the form, for fields that not every version has */
    bool bad;            /* what was read is not such a thing */
};

static inline struct coder coder_to(struct buf *out, unsigned version)
{
    return (struct coder){.out = out, .version = version};
}

static inline struct coder coder_from(struct slice in, struct arena *arena)
{
    return (struct coder){.in = in, .arena = arena};
}

static inline bool coder_reads(const struct coder *coder)
{
    return coder->out == NULL;
}

/* Makes a coder bad, when what was read is not so. One that writes must never be told what is false. */
void coder_demand(struct coder *coder, bool so);

void code_byte(struct coder *coder, uint8_t *value);
void code_number(struct coder *coder, uint64_t *value);
/* The same of a size, which is the same on all processors: a size that one cannot hold is refused by it. */
void code_size(struct coder *coder, size_t *value);
void code_signed(struct coder *coder, int64_t *value);
/* Returns: `value`, or the one read, which is below `count`. For `x = (enum e)code_enum(coder, x, E_COUNT)`. */
unsigned code_enum(struct coder *coder, unsigned value, unsigned count);
/* At most eight. */
void code_flags(struct coder *coder, bool *const *flags, size_t count);
void code_bool(struct coder *coder, bool *value);
void code_slice(struct coder *coder, struct slice *value);
/* A slice that is there, when read even where it is empty. */
void code_bytes(struct coder *coder, struct slice *value);
/*
 * The count of an array whose elements take `element_min` bytes at least. Returns: the array, new and zeroed where it is read;
 * NULL when it has no elements.
 */
void *code_array(struct coder *coder, void *items, size_t *count, size_t size, size_t element_min);

/* Returns: whether all that was there was read, and was good. */
static inline bool coder_done(const struct coder *coder)
{
    return !coder->bad && coder->in.len == 0;
}

#endif
