/* SPDX-License-Identifier: Apache-2.0 */
/* Summary statistics of streams and collectors. */
#ifndef TL_SCRIPT_STATISTICS_H
#define TL_SCRIPT_STATISTICS_H

#include "script/value/seq.h"
#include "script/value/text.h"

/*
 * Computes statistics of the results of `function` for each item; of the items if it is null.
 * Returns: false with a throwable if it throws or a result is not a number.
 */
bool statistics_of(struct run *run, enum class_id id, const struct seq *items, struct value function,
                   struct value *ret);

/* Appends toString: "IntSummaryStatistics{count=3, …}". */
bool statistics_write(struct run *run, const struct object *object, struct text_buf *out);

static inline bool value_is_statistics(struct value v)
{
    return value_has_shape(v, SHAPE_STATISTICS);
}

#endif
