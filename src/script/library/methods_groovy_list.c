/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of lists, collections and ranges that other iterables do not have. */
#include "script/library/methods_groovy.h"
#include "script/value/range.h"

/* Lists are stacks; the top is the last element. */
static bool list_push(struct call *call, struct value *ret)
{
    return seq_add(call->run, seq_of(call->self), call->args[0]) && give_boolean(ret, true);
}

static bool list_pop(struct call *call, struct value *ret)
{
    struct seq *seq = seq_of(call->self);
    if (seq->count == 0)
        return run_throw(call->run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot pop() an empty List");
    return seq_remove(call->run, seq, (int64_t)seq->count - 1, ret);
}

static bool remove_at(struct call *call, struct value *ret)
{
    return seq_remove(call->run, seq_of(call->self), call->args[0].i, ret);
}

static bool remove_element(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *seq = seq_of(call->self);
    for (size_t i = 0; i < seq->count; i++) {
        bool same;
        if (!run_step(run, 1) || !value_equals(run, seq_item(seq, i), call->args[0], &same))
            return false;
        if (same)
            return seq_remove(run, seq, (int64_t)i, NULL) && give_boolean(ret, true);
    }
    return give_boolean(ret, false);
}

static bool list_swap(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *seq = seq_of(call->self);
    struct value one, two;
    *ret = call->self;
    return seq_get(run, seq, call->args[0].i, &one) && seq_get(run, seq, call->args[1].i, &two) &&
           seq_set(run, seq, call->args[0].i, two, NULL) && seq_set(run, seq, call->args[1].i, one, NULL);
}

static bool list_insert(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *longer = values_to_seq(run, call->self, CLASS_ARRAY_LIST);
    struct seq *more = longer == NULL ? NULL : values_to_seq(run, call->args[1], CLASS_ARRAY_LIST);
    for (size_t i = 0; more != NULL && i < more->count; i++)
        if (!seq_insert(run, longer, call->args[0].i + (int64_t)i, seq_item(more, i)))
            return false;
    return more != NULL && give(ret, longer);
}

static bool as_immutable(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (value_is_set(call->self)) {
        struct dict *set = dict_new(run, CLASS_IMMUTABLE_SET);
        *ret = value_of(set);
        if (!groovy_add_all(run, *ret, call->self))
            return false;
        set->object.flags |= OBJECT_READONLY;
        return true;
    }
    struct seq *seq = values_to_seq(run, call->self, CLASS_IMMUTABLE_LIST);
    if (seq != NULL)
        seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

/* Adds the elements of an array or a collection; gives whether the receiver changed. */
static bool add_all(struct call *call, struct value *ret)
{
    size_t before = values_count(call->self);
    return groovy_add_all(call->run, call->self, call->args[0]) &&
           give_boolean(ret, values_count(call->self) != before);
}

static const struct method_row list_methods[] = {
    {"boolean push(def)", GROOVY, list_push},   {"def pop()", GROOVY, list_pop},
    {"def removeAt(int)", GROOVY, remove_at},   {"boolean removeElement(def)", GROOVY, remove_element},
    {"List swap(int, int)", GROOVY, list_swap}, {"List plus(int, Iterable)", GROOVY, list_insert},
};

static const struct method_row collection_methods[] = {
    {"Collection asImmutable()", GROOVY, as_immutable},
    {"boolean addAll(Object[])", GROOVY, add_all},
};

/* Ranges */

static bool range_end(struct call *call, struct value *ret)
{
    bool upper = call->row->datum.number != 0;
    const struct range *range = (const struct range *)call->self.object;
    const struct seq *seq = &range->seq;
    *ret = upper ? range->to : range->from;
    if (seq->count == 0)
        return true;
    struct value ends[2] = {seq_item(seq, 0), seq_item(seq, seq->count - 1)};
    bool reverse = ends[0].kind != VALUE_OBJECT && ends[0].i > ends[1].i;
    *ret = ends[upper != reverse ? 1 : 0];
    return true;
}

static bool range_is_reverse(struct call *call, struct value *ret)
{
    const struct range *range = (const struct range *)call->self.object;
    int order;
    return operate_order(call->run, range->from, range->to, &order) && give_boolean(ret, order > 0);
}

/* Gives every n-th element, or calls a closure with each; a negative n counts from the last
   element. */
static bool range_steps(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *seq = seq_of(call->self);
    struct seq *steps = seq_new(run, CLASS_ARRAY_LIST, 0);
    int64_t step = call->args[0].i, stride = step < 0 ? -step : step;
    struct value ignored;
    *ret = call->count == 2 ? VALUE_NONE : value_of(steps);
    if (step == 0 && seq->count > 0)
        return run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION, "Infinite loop detected due to step size of 0");
    for (int64_t i = 0; i < (int64_t)seq->count; i += stride) {
        struct value item = seq_item(seq, (size_t)(step > 0 ? i : (int64_t)seq->count - 1 - i));
        if (!run_step(run, 1) ||
            !(call->count == 2 ? run_invoke(run, call->args[1], &item, 1, &ignored) : seq_add(run, steps, item)))
            return false;
    }
    return true;
}

static bool range_contains_within(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct range *range = (const struct range *)call->self.object;
    int low, high, order;
    if (!operate_order(run, range->from, range->to, &order) || !operate_order(run, call->args[0], range->from, &low) ||
        !operate_order(run, call->args[0], range->to, &high))
        return false;
    return give_boolean(ret, order <= 0 ? low >= 0 && high <= 0 : low <= 0 && high >= 0);
}

static bool range_text(struct call *call, struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, call->run);
    return range_append(call->run, (const struct range *)call->self.object, &out) && give(ret, text_buf_done(&out));
}

static const struct method_row range_methods[] = {
    {"String toString()", GROOVY, range_text},
    {"String inspect()", GROOVY, range_text},
    {"def getFrom()", GROOVY, range_end, {false}},
    {"def getTo()", GROOVY, range_end, {true}},
    {"int getFromInt()", GROOVY, range_end, {false}},
    {"int getToInt()", GROOVY, range_end, {true}},
    {"boolean isReverse()", GROOVY, range_is_reverse},
    {"List step(int)", GROOVY, range_steps},
    {"void step(int, Closure)", GROOVY, range_steps},
    {"boolean containsWithinBounds(def)", GROOVY, range_contains_within},
};

const struct method_table methods_groovy_list[] = {
    METHOD_ROWS(LIST, list_methods),
    METHOD_ROWS(COLLECTION, collection_methods),
    METHOD_ROWS(INT_RANGE, range_methods),
    METHOD_ROWS(OBJECT_RANGE, range_methods),
    {0},
};
