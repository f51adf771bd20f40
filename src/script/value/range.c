/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges; see range.h. */
#include "script/value/range.h"

#include "script/value/number.h"
#include "script/run/operate.h"
#include "script/value/text.h"

/* Increments the last character; if it has no successor, appends a character. */
static bool step_text(struct run *run, const struct text *text, bool back, struct value *ret)
{
    struct text_buf out;
    uint16_t edge = back ? 0 : 0xffff;
    text_buf_init(&out, run);
    size_t kept = text->length;
    while (kept > 0 && text_at(text, kept - 1) == edge)
        kept--;
    if (kept > 0) {
        text_buf_range(&out, text, 0, kept - 1);
        text_buf_unit(&out, (uint16_t)(text_at(text, kept - 1) + (back ? -1 : 1)));
    }
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

static bool is_rangeable(struct value v)
{
    return value_number(v) || v.kind == VALUE_CHAR || value_is(v, CLASS_STRING);
}

/* If the other bound is a number, a text of one character is its code. */
static struct value bound_as_code(struct value v, struct value other)
{
    bool code = value_is(v, CLASS_STRING) && value_number(other) && ((const struct text *)v.object)->length == 1;
    return code ? value_int(text_at((const struct text *)v.object, 0)) : v;
}

/* Iterates from one bound to the other; `inclusive`: includes the other bound. */
static bool fill_range(struct run *run, struct seq *seq, struct value from, struct value to, bool inclusive)
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
        if (past || (order == 0 && !inclusive) ||
            (texts && ((struct text *)at.object)->length > longest && direction <= 0))
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
    if (from.kind == VALUE_NULL || to.kind == VALUE_NULL)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "Must specify a non-null value for the '%s' index in a Range",
                         from.kind == VALUE_NULL ? "from" : "to");
    from = bound_as_code(from, to);
    to = bound_as_code(to, from);
    bool texts = value_is(from, CLASS_STRING) && value_is(to, CLASS_STRING);
    if (!is_rangeable(from) || !is_rangeable(to) ||
        (value_is(from, CLASS_STRING) != value_is(to, CLASS_STRING) && !texts))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Incompatible Argument classes for ObjectRange");
    bool integers = from.kind == VALUE_INT && to.kind == VALUE_INT;
    struct range *range = run_object(run, sizeof *range, integers ? CLASS_INT_RANGE : CLASS_OBJECT_RANGE);
    range->from = from;
    range->to = to;
    range->exclusive = exclusive;
    *ret = value_of(range);
    if (!fill_range(run, &range->seq, from, to, !exclusive))
        return false;
    range->seq.object.flags |= OBJECT_READONLY;
    return true;
}

void range_borders(const struct range *range, size_t size, int64_t *ret_from, int64_t *ret_to, bool *ret_reverse)
{
    int64_t from = number_to_i64(range->from), to = number_to_i64(range->to);
    bool inclusive = !range->exclusive;
    if (range->exclusive && from == to) { /* Groovy's EmptyRange */
        *ret_from = *ret_to = 0;
        *ret_reverse = false;
        return;
    }
    from += from < 0 ? (int64_t)size : 0;
    to += to < 0 ? (int64_t)size : 0;
    *ret_reverse = from > to;
    *ret_from = from > to ? to + (inclusive ? 0 : 1) : from;
    *ret_to = from > to ? from + 1 : to + (inclusive ? 1 : 0);
}

bool range_append(struct run *run, const struct range *range, struct text_buf *out)
{
    if (!value_append(run, range->from, out))
        return false;
    text_buf_ascii(out, range->exclusive ? "..<" : "..");
    return value_append(run, range->to, out);
}
