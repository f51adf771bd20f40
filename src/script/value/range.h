/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's ranges: read-only lists with their bounds as written. An index by a range counts
 * negative bounds from the end of the indexed list, so 0..<-1 selects other elements than it
 * contains.
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
 * Returns: false with a throwable if the bounds are incompatible or there are too many elements.
 */
bool range_new(struct run *run, struct value from, struct value to, bool exclusive, struct value *ret);

/*
 * Computes the elements that an integral range selects of `size` elements: *ret_from up to, but not including, *ret_to.
 * Both count from the start and may be out of bounds.
 */
void range_borders(const struct range *range, size_t size, int64_t *ret_from, int64_t *ret_to, bool *ret_reverse);

/* Groovy's next() or, with `back`, previous() of a number, character or text. */
bool range_step(struct run *run, struct value v, bool back, struct value *ret);

/* Appends "1..5", "1..<5". */
bool range_append(struct run *run, const struct range *range, struct text_buf *out);

#endif
