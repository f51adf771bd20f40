/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's ranges: read-only lists that remember how they were written, since an index by a range counts its ends from
 * the end of the list, and 0..<-1 means something else than the elements it has.
 */
#ifndef TL_SCRIPT_RANGE_H
#define TL_SCRIPT_RANGE_H

#include "script/value/seq.h"

struct range {
    struct seq seq;        /* CLASS_INT_RANGE or CLASS_OBJECT_RANGE: the elements */
    struct value from, to; /* as written */
    bool exclusive;        /* ..< */
};

static inline bool value_is_range(struct value v)
{
    return value_is(v, CLASS_INT_RANGE) || value_is(v, CLASS_OBJECT_RANGE);
}

/*
 * Makes the range of two numbers, or of two texts.
 *
 * Returns: true and the range; false and a throwable for ends that do not go together, or too many elements.
 */
bool range_new(struct run *run, struct value from, struct value to, bool exclusive, struct value *ret);

/*
 * What an index by an integral range takes of `size` elements: from *ret_from up to, but not including, *ret_to, which
 * are both from the start, and may be out of bounds.
 */
void range_borders(const struct range *range, size_t size, int64_t *ret_from, int64_t *ret_to, bool *ret_reverse);

/* The element after, or before, as Groovy's next() and previous(): of numbers, characters and texts. */
bool range_step(struct run *run, struct value v, bool back, struct value *ret);

/* Appends "1..5", "1..<5". */
bool range_append(struct run *run, const struct range *range, struct text_buf *out);

#endif
