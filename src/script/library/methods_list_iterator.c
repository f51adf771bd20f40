/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of ListIterator: iterates over a list in both directions and can change it. */
#include "script/library/methods_collection.h"

static struct iter *iter_of(struct call *call)
{
    return &((struct cursor *)call->self.object)->iter;
}

static bool list_iterator(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_LIST_CURSOR);
    if (!methods_collection_walk(run, &cursor->iter, call->self))
        return false;
    if (call->count == 1 && (call->args[0].i < 0 || (size_t)call->args[0].i > values_count(call->self)))
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index: %lld", (long long)call->args[0].i);
    cursor->iter.index = call->count == 1 ? (size_t)call->args[0].i : 0;
    return give(ret, cursor);
}

static bool has_previous(struct call *call, struct value *ret)
{
    return give_boolean(ret, iter_of(call)->index > 0);
}

static bool list_iterator_previous(struct call *call, struct value *ret)
{
    struct iter *iter = iter_of(call);
    if (iter->index == 0)
        return run_throw_null(call->run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    bool more;
    iter->index--;
    if (!iter_next(iter, ret, &more))
        return false;
    iter->index--;
    iter->back = true;
    return true;
}

static bool next_index(struct call *call, struct value *ret)
{
    return give_int(ret, (int64_t)iter_of(call)->index);
}

static bool previous_index(struct call *call, struct value *ret)
{
    return give_int(ret, (int64_t)iter_of(call)->index - 1);
}

/* Replaces the element that was returned last. */
static bool list_iterator_set(struct call *call, struct value *ret)
{
    struct iter *iter = iter_of(call);
    if (!iter->back && iter->index == 0)
        return run_throw_null(call->run, CLASS_ILLEGAL_STATE_EXCEPTION);
    int64_t index = (int64_t)iter->index - !iter->back;
    return seq_set(call->run, seq_of(iter->source), index, call->args[0], NULL) && give_nothing(ret);
}

static bool list_iterator_add(struct call *call, struct value *ret)
{
    struct iter *iter = iter_of(call);
    struct seq *seq = seq_of(iter->source);
    if (seq->changes != iter->expected)
        return run_throw_null(call->run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
    if (!seq_insert(call->run, seq, (int64_t)iter->index, call->args[0]))
        return false;
    iter->index++;
    iter->back = false;
    iter->expected = seq->changes;
    return give_nothing(ret);
}

static const struct method_row list_methods[] = {
    {"ListIterator listIterator()", BOTH, list_iterator},
    {"ListIterator listIterator(int)", BOTH, list_iterator},
};

static const struct method_row list_iterator_methods[] = {
    {"boolean hasPrevious()", BOTH, has_previous}, {"def previous()", GROOVY, list_iterator_previous},
    {"int nextIndex()", BOTH, next_index},         {"int previousIndex()", BOTH, previous_index},
    {"void set(def)", BOTH, list_iterator_set},    {"void add(def)", BOTH, list_iterator_add},
};

const struct method_table methods_list_iterator[] = {
    METHOD_ROWS(LIST, list_methods),
    METHOD_ROWS(LIST_ITERATOR, list_iterator_methods),
    {0},
};
