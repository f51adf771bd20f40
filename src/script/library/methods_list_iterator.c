/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of ListIterator: a walk of a list that goes both ways, and changes what it passes. */
#include "script/library/methods_collection.h"

static struct iter *iter_of(struct value *a)
{
    return &((struct cursor *)a[0].object)->iter;
}

static bool list_iterator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_LIST_CURSOR);
    if (!methods_collection_walk(run, &cursor->iter, a[0]))
        return false;
    if (n == 1 && (a[1].i < 0 || (size_t)a[1].i > values_count(a[0])))
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index: %lld", (long long)a[1].i);
    cursor->iter.index = n == 1 ? (size_t)a[1].i : 0;
    return give(ret, cursor);
}

static bool has_previous(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, iter_of(a)->index > 0);
}

static bool previous(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter *iter = iter_of(a);
    if (iter->index == 0)
        return run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    bool more;
    iter->index--;
    if (!iter_next(iter, ret, &more))
        return false;
    iter->index--;
    iter->back = true;
    return true;
}

static bool next_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)iter_of(a)->index);
}

static bool previous_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)iter_of(a)->index - 1);
}

/* Replaces the element that was handed out last. */
static bool set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter *iter = iter_of(a);
    if (!iter->back && iter->index == 0)
        return run_throw_null(run, CLASS_ILLEGAL_STATE_EXCEPTION);
    int64_t index = (int64_t)iter->index - !iter->back;
    return seq_set(run, seq_of(iter->source), index, a[1], NULL) && give_nothing(ret);
}

static bool add(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter *iter = iter_of(a);
    struct seq *seq = seq_of(iter->source);
    if (seq->changes != iter->expected)
        return run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
    if (!seq_insert(run, seq, (int64_t)iter->index, a[1]))
        return false;
    iter->index++;
    iter->back = false;
    iter->expected = seq->changes;
    return give_nothing(ret);
}

static const struct method list_methods[] = {
    M0("listIterator", METHOD_BOTH, LIST_ITERATOR, list_iterator),
    M1("listIterator", METHOD_BOTH, LIST_ITERATOR, INT, list_iterator),
};

static const struct method list_iterator_methods[] = {
    M0("hasPrevious", METHOD_BOTH, BOOLEAN, has_previous),
    M0("previous", METHOD_GROOVY, DEF, previous),
    M0("nextIndex", METHOD_BOTH, INT, next_index),
    M0("previousIndex", METHOD_BOTH, INT, previous_index),
    M1("set", METHOD_BOTH, VOID, DEF, set),
    M1("add", METHOD_BOTH, VOID, DEF, add),
};

const struct method_table methods_list_iterator[] = {
    METHOD_TABLE(LIST, list_methods),
    METHOD_TABLE(LIST_ITERATOR, list_iterator_methods),
    {0, 0, NULL},
};
