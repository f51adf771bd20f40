/* SPDX-License-Identifier: Apache-2.0 */
/* Summary statistics, which streams and collectors make. */
#ifndef TL_SCRIPT_STATISTICS_H
#define TL_SCRIPT_STATISTICS_H

#include "script/value/seq.h"
#include "script/value/text.h"

/*
 * Of what `function` makes of each item, or of the items where it is null.
 * Returns: false and a throwable when it throws, or something is no number.
 */
bool statistics_of(struct run *run, enum class_id id, const struct seq *items, struct value function,
                   struct value *ret);

/* As toString: "IntSummaryStatistics{count=3, …}". */
bool statistics_write(struct run *run, const struct object *object, struct text_buf *out);

static inline bool value_is_statistics(struct value v)
{
    return value_has_shape(v, SHAPE_STATISTICS);
}

#endif
