/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges; see range.h. */
#include "script/range.h"

#include "script/number.h"
#include "script/operate.h"
#include "script/text.h"

/* The last character moves on; where that has no next one, the text grows. */
static bool step_text(struct run *run, const struct text *text, bool back, struct value *ret)
{
    struct text_buf out;
    uint16_t edge = back ? 0 : 0xffff;
    text_buf_init(&out, run);
    size_t kept = text->length;
    while (kept > 0 && text_at(text, kept - 1) == edge)
        kept--;
    if (kept > 0)
        text_buf_range(&out, text, 0, kept - 1);
    if (kept > 0)
        text_buf_unit(&out, (uint16_t)(text_at(text, kept - 1) + (back ? -1 : 1)));
    if (!back && kept < text->length)
        text_buf_range(&out, text, kept, text->length);
    if (!back && kept == 0)
        text_buf_unit(&out, 0);
    *ret = value_of(text_buf_done(&out));
    return ret->kind != VALUE_NULL;
}

bool range_step(struct run *run, struct value v, bool back, struct value *ret)
{
    if (value_is(v, CLASS_STRING))
        return step_text(run, (const struct text *)v.object, back, ret);
    if (v.kind == VALUE_CHAR) {
        *ret = value_char((uint16_t)(v.i + (back ? -1 : 1)));
        return true;
    }
    return operate_binary(run, back ? OP_SUB : OP_ADD, v, value_int(1), ret);
}

static bool rangeable(struct value v)
{
    return value_number(v) || v.kind == VALUE_CHAR || value_is(v, CLASS_STRING);
}

/* Walks from one end towards the other; `inclusive` of the other end. */
static bool fill(struct run *run, struct seq *seq, struct value from, struct value to, bool inclusive)
{
    int direction, order;
    bool texts = value_is(from, CLASS_STRING);
    size_t longest = texts ? ((const struct text *)to.object)->length : 0;
    if (!operate_order(run, from, to, &direction))
        return false;
    for (struct value at = from;;) {
        if (!operate_order(run, at, to, &order))
            return false;
        bool past = direction <= 0 ? order > 0 : order < 0;
        if (past || (order == 0 && !inclusive) || (texts && ((struct text *)at.object)->length > longest && direction <= 0))
            return true;
        if (!run_step(run, 1) || !seq_add(run, seq, at))
            return false;
        if (order == 0)
            return true;
        if (!range_step(run, at, direction > 0, &at))
            return false;
    }
}

bool range_new(struct run *run, struct value from, struct value to, bool exclusive, struct value *ret)
{
    bool texts = value_is(from, CLASS_STRING) && value_is(to, CLASS_STRING);
    if (!rangeable(from) || !rangeable(to) || (value_is(from, CLASS_STRING) != value_is(to, CLASS_STRING) && !texts))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Incompatible Argument classes for ObjectRange");
    bool integers = from.kind == VALUE_INT && to.kind == VALUE_INT;
    struct range *range = run_object(run, sizeof *range, integers ? CLASS_INT_RANGE : CLASS_OBJECT_RANGE);
    range->from = from;
    range->to = to;
    range->exclusive = exclusive;
    *ret = value_of(range);
    if (!fill(run, &range->seq, from, to, !exclusive))
        return false;
    range->seq.object.flags |= OBJECT_READONLY;
    return true;
}

static bool out_of_bounds(struct run *run, int64_t index, size_t size)
{
    return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "%s = %lld", index < 0 ? "fromIndex" : "toIndex",
                     (long long)(index < 0 ? index : (int64_t)size));
}

bool range_borders(struct run *run, const struct range *range, size_t size, size_t *ret_from, size_t *ret_to,
                   bool *ret_reverse)
{
    int64_t from = number_to_i64(range->from), to = number_to_i64(range->to);
    bool inclusive = !range->exclusive;
    if (range->exclusive && from == to) { /* Groovy's EmptyRange */
        *ret_from = *ret_to = 0;
        *ret_reverse = false;
        return true;
    }
    from += from < 0 ? (int64_t)size : 0;
    to += to < 0 ? (int64_t)size : 0;
    *ret_reverse = from > to;
    int64_t low = from > to ? to + (inclusive ? 0 : 1) : from;
    int64_t high = from > to ? from + 1 : to + (inclusive ? 1 : 0);
    if (low < 0 || high > (int64_t)size || low > high)
        return out_of_bounds(run, low < 0 ? low : high, (size_t)(high < 0 ? 0 : high));
    *ret_from = (size_t)low;
    *ret_to = (size_t)high;
    return true;
}

bool range_append(struct run *run, const struct range *range, struct text_buf *out)
{
    if (!value_append(run, range->from, out))
        return false;
    text_buf_ascii(out, range->exclusive ? "..<" : "..");
    return value_append(run, range->to, out);
}
