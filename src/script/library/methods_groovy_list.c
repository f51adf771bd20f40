/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of lists, collections and ranges that are not for every iterable. */
#include "script/library/methods_groovy.h"
#include "script/value/range.h"

/* Lists are stacks whose top is the end. */
static bool push(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_add(run, seq_of(a[0]), a[1]) && give_boolean(ret, true);
}

static bool pop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = seq_of(a[0]);
    if (seq->count == 0)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot pop() an empty List");
    return seq_remove(run, seq, (int64_t)seq->count - 1, ret);
}

static bool remove_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_remove(run, seq_of(a[0]), a[1].i, ret);
}

static bool remove_element(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = seq_of(a[0]);
    for (size_t i = 0; i < seq->count; i++) {
        bool same;
        if (!run_step(run, 1) || !value_equals(run, seq_item(seq, i), a[1], &same))
            return false;
        if (same)
            return seq_remove(run, seq, (int64_t)i, NULL) && give_boolean(ret, true);
    }
    return give_boolean(ret, false);
}

static bool swap(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = seq_of(a[0]);
    struct value one, two;
    *ret = a[0];
    return seq_get(run, seq, a[1].i, &one) && seq_get(run, seq, a[2].i, &two) && seq_set(run, seq, a[1].i, two, NULL) &&
           seq_set(run, seq, a[2].i, one, NULL);
}

static bool insert(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *longer = values_to_seq(run, a[0], CLASS_ARRAY_LIST);
    struct seq *more = longer == NULL ? NULL : values_to_seq(run, a[2], CLASS_ARRAY_LIST);
    for (size_t i = 0; more != NULL && i < more->count; i++)
        if (!seq_insert(run, longer, a[1].i + (int64_t)i, seq_item(more, i)))
            return false;
    return more != NULL && give(ret, longer);
}

static bool as_immutable(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (value_is_set(a[0])) {
        struct dict *set = dict_new(run, CLASS_IMMUTABLE_SET);
        *ret = value_of(set);
        if (!groovy_add_all(run, *ret, a[0]))
            return false;
        set->object.flags |= OBJECT_READONLY;
        return true;
    }
    struct seq *seq = values_to_seq(run, a[0], CLASS_IMMUTABLE_LIST);
    if (seq != NULL)
        seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

/* Sets and collections: every argument of an array. */
static bool add_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    size_t before = values_count(a[0]);
    return groovy_add_all(run, a[0], a[1]) && give_boolean(ret, values_count(a[0]) != before);
}

static const struct method list_methods[] = {
    M1("push", G, BOOLEAN, DEF, push),      M0("pop", G, DEF, pop),
    M1("removeAt", G, DEF, INT, remove_at), M1("removeElement", G, BOOLEAN, DEF, remove_element),
    M2("swap", G, LIST, INT, INT, swap),    M2("plus", G, LIST, INT, ITERABLE, insert),
};

static const struct method collection_methods[] = {
    M0("asImmutable", G, COLLECTION, as_immutable),
    M1("addAll", G, BOOLEAN, OBJECT_ARRAY, add_all),
};

/* Ranges */

static bool range_end(struct value *a, bool upper, struct value *ret)
{
    const struct range *range = (const struct range *)a[0].object;
    const struct seq *seq = &range->seq;
    *ret = upper ? range->to : range->from;
    if (seq->count == 0)
        return true;
    struct value ends[2] = {seq_item(seq, 0), seq_item(seq, seq->count - 1)};
    bool reverse = ends[0].kind != VALUE_OBJECT && ends[0].i > ends[1].i;
    *ret = ends[upper != reverse ? 1 : 0];
    return true;
}

static bool range_from(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return range_end(a, false, ret);
}

static bool range_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return range_end(a, true, ret);
}

static bool range_is_reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct range *range = (const struct range *)a[0].object;
    int order;
    return operate_order(run, range->from, range->to, &order) && give_boolean(ret, order > 0);
}

/* Every n-th element; from the other end when negative. */
static bool range_steps(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *seq = seq_of(a[0]);
    struct seq *steps = seq_new(run, CLASS_ARRAY_LIST, 0);
    int64_t step = a[1].i, stride = step < 0 ? -step : step;
    struct value ignored;
    *ret = n == 2 ? VALUE_NONE : value_of(steps);
    if (step == 0 && seq->count > 0)
        return run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION, "Infinite loop detected due to step size of 0");
    for (int64_t i = 0; i < (int64_t)seq->count; i += stride) {
        struct value item = seq_item(seq, (size_t)(step > 0 ? i : (int64_t)seq->count - 1 - i));
        if (!run_step(run, 1) || !(n == 2 ? run_invoke(run, a[2], &item, 1, &ignored) : seq_add(run, steps, item)))
            return false;
    }
    return true;
}

static bool range_contains_within(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct range *range = (const struct range *)a[0].object;
    int low, high, order;
    if (!operate_order(run, range->from, range->to, &order) || !operate_order(run, a[1], range->from, &low) ||
        !operate_order(run, a[1], range->to, &high))
        return false;
    return give_boolean(ret, order <= 0 ? low >= 0 && high <= 0 : low <= 0 && high >= 0);
}

static bool range_text(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text_buf out;
    text_buf_init(&out, run);
    return range_append(run, (const struct range *)a[0].object, &out) && give(ret, text_buf_done(&out));
}

static const struct method range_methods[] = {
    M0("toString", G, STRING, range_text),
    M0("inspect", G, STRING, range_text),
    M0("getFrom", G, DEF, range_from),
    M0("getTo", G, DEF, range_to),
    M0("getFromInt", G, INT, range_from),
    M0("getToInt", G, INT, range_to),
    M0("isReverse", G, BOOLEAN, range_is_reverse),
    M1("step", G, LIST, INT, range_steps),
    M2("step", G, VOID, INT, CLOSURE, range_steps),
    M1("containsWithinBounds", G, BOOLEAN, DEF, range_contains_within),
};

const struct method_table methods_groovy_list[] = {
    METHOD_TABLE(LIST, list_methods),
    METHOD_TABLE(COLLECTION, collection_methods),
    METHOD_TABLE(INT_RANGE, range_methods),
    METHOD_TABLE(OBJECT_RANGE, range_methods),
    {0, 0, NULL},
};
