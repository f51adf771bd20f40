/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of List, and of Queue, Deque and Stack, which are lists here. */
#include "script/library/methods_collection.h"

static bool list_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_get(run, seq_of(a[0]), a[1].i, ret);
}

static bool list_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_set(run, seq_of(a[0]), a[1].i, a[2], ret);
}

static bool list_insert(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_insert(run, seq_of(a[0]), a[1].i, a[2]) && give_nothing(ret);
}

static bool list_insert_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(2);
    struct seq *copy = values_to_seq(run, a[2], CLASS_ARRAY_LIST);
    for (size_t i = 0; copy != NULL && i < copy->count; i++)
        if (!seq_insert(run, seq_of(a[0]), a[1].i + (int64_t)i, seq_item(copy, i)))
            return false;
    return copy != NULL && give_boolean(ret, copy->count > 0);
}

static bool list_remove_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_remove(run, seq_of(a[0]), a[1].i, ret);
}

static bool index_from(struct run *run, struct value *a, bool backwards, struct value *ret)
{
    const struct seq *seq = seq_of(a[0]);
    if (!seq_check(run, seq))
        return false;
    for (size_t i = 0; i < seq->count; i++) {
        size_t at = backwards ? seq->count - 1 - i : i;
        bool same;
        if (!run_step(run, 1) || !value_equals(run, seq_item(seq, at), a[1], &same))
            return false;
        if (same)
            return give_int(ret, (int64_t)at);
    }
    return give_int(ret, -1);
}

static bool list_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return index_from(run, a, false, ret);
}

static bool list_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return index_from(run, a, true, ret);
}

/* Sorts a copy, then puts it in place: a comparator may see the list, but must not change it. */
bool methods_list_sort(struct run *run, struct value list, struct value comparator)
{
    struct seq *seq = seq_of(list);
    uint32_t changes = seq->changes;
    if (!seq_check_writable(run, seq) || !seq_check(run, seq))
        return false;
    struct value *items = run_alloc_large(run, (seq->count + 1) * sizeof *items);
    size_t count = seq->count;
    for (size_t i = 0; items != NULL && i < count; i++)
        items[i] = seq_item(seq, i);
    if (items == NULL || !run_step(run, count) || !values_sort(run, items, count, comparator))
        return false;
    if (seq->changes != changes || seq->count != count)
        return run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
    for (size_t i = 0; i < count; i++)
        if (!seq_set(run, seq, (int64_t)i, items[i], NULL))
            return false;
    return true;
}

static bool list_sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return methods_list_sort(run, a[0], a[1]) && give_nothing(ret);
}

static bool list_replace_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct seq *seq = seq_of(a[0]);
    for (size_t i = 0; i < seq->count; i++) {
        struct value item = seq_item(seq, i), result;
        uint32_t changes = seq->changes;
        if (!run_step(run, 1) || !run_invoke(run, a[1], &item, 1, &result))
            return false;
        if (changes != seq->changes)
            return run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
        if (!seq_set(run, seq, (int64_t)i, result, NULL))
            return false;
    }
    return give_nothing(ret);
}

static bool list_sub_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, seq_sub(run, seq_of(a[0]), a[1].i, a[2].i));
}

/* Queues: the first element is the head. */

static bool end_of(struct run *run, struct value *a, bool last, bool remove, bool must, struct value *ret)
{
    struct seq *seq = seq_of(a[0]);
    *ret = VALUE_NONE;
    if (seq->count == 0)
        return !must || run_throw_null(run, seq->object.class == CLASS_STACK ? CLASS_EMPTY_STACK_EXCEPTION
                                                                             : CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    int64_t index = last ? (int64_t)seq->count - 1 : 0;
    return remove ? seq_remove(run, seq, index, ret) : seq_get(run, seq, index, ret);
}

static bool queue_peek(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, false, false, false, ret);
}

static bool queue_poll(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, false, true, false, ret);
}

static bool queue_element(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, false, false, true, ret);
}

static bool queue_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, false, true, true, ret);
}

static bool deque_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, false, true, ret);
}

static bool deque_peek_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, false, false, ret);
}

static bool deque_poll_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, true, false, ret);
}

static bool deque_remove_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, true, true, ret);
}

static bool deque_add_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_insert(run, seq_of(a[0]), 0, a[1]) && give_nothing(ret);
}

static bool deque_add_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_add(run, seq_of(a[0]), a[1]) && give_nothing(ret);
}

static bool deque_offer_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return deque_add_first(run, a, n, ret) && give_boolean(ret, true);
}

static bool stack_push(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = a[1];
    return seq_add(run, seq_of(a[0]), a[1]);
}

static bool stack_peek(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, false, true, ret);
}

static bool stack_pop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, true, true, true, ret);
}

static const struct method list_methods[] = {
    M2("add", METHOD_BOTH, VOID, INT, DEF, list_insert),
    M2("addAll", METHOD_BOTH, BOOLEAN, INT, COLLECTION, list_insert_all),
    M1("get", METHOD_BOTH, DEF, INT, list_get),
    M1("indexOf", METHOD_BOTH, INT, DEF, list_index_of),
    M1("lastIndexOf", METHOD_BOTH, INT, DEF, list_last_index_of),
    M1("remove", METHOD_BOTH, DEF, INT, list_remove_at),
    M1("replaceAll", METHOD_BOTH, VOID, UNARY_OPERATOR, list_replace_all),
    M2("set", METHOD_BOTH, DEF, INT, DEF, list_set),
    M0("getLength", METHOD_PAINLESS, INT, methods_collection_size),
    M1("sort", METHOD_PAINLESS, VOID, COMPARATOR, list_sort),
    M2("subList", METHOD_BOTH, LIST, INT, INT, list_sub_list),
};

static const struct method queue_methods[] = {
    M0("element", METHOD_BOTH, DEF, queue_element), M1("offer", METHOD_BOTH, BOOLEAN, DEF, methods_collection_add),
    M0("peek", METHOD_BOTH, DEF, queue_peek),       M0("poll", METHOD_BOTH, DEF, queue_poll),
    M0("remove", METHOD_BOTH, DEF, queue_remove),
};

static const struct method deque_methods[] = {
    M1("addFirst", METHOD_BOTH, VOID, DEF, deque_add_first),
    M1("addLast", METHOD_BOTH, VOID, DEF, deque_add_last),
    M1("offerFirst", METHOD_BOTH, BOOLEAN, DEF, deque_offer_first),
    M1("offerLast", METHOD_BOTH, BOOLEAN, DEF, methods_collection_add),
    M1("removeFirstOccurrence", METHOD_BOTH, BOOLEAN, DEF, methods_collection_remove),
    M0("getFirst", METHOD_BOTH, DEF, queue_element),
    M0("getLast", METHOD_BOTH, DEF, deque_last),
    M0("peekFirst", METHOD_BOTH, DEF, queue_peek),
    M0("peekLast", METHOD_BOTH, DEF, deque_peek_last),
    M0("pollFirst", METHOD_BOTH, DEF, queue_poll),
    M0("pollLast", METHOD_BOTH, DEF, deque_poll_last),
    M0("removeFirst", METHOD_BOTH, DEF, queue_remove),
    M0("removeLast", METHOD_BOTH, DEF, deque_remove_last),
    M0("pop", METHOD_BOTH, DEF, queue_remove),
    M1("push", METHOD_BOTH, VOID, DEF, deque_add_first),
    M1("remove", METHOD_PAINLESS, BOOLEAN, DEF, methods_collection_remove),
};

static const struct method stack_methods[] = {
    M1("push", METHOD_BOTH, DEF, DEF, stack_push),
    M0("pop", METHOD_BOTH, DEF, stack_pop),
    M0("peek", METHOD_BOTH, DEF, stack_peek),
    M0("empty", METHOD_BOTH, BOOLEAN, methods_collection_is_empty),
    M0("new", METHOD_BOTH | METHOD_NEW, STACK, methods_collection_new),
};

const struct method_table methods_list[] = {
    METHOD_TABLE(LIST, list_methods),
    METHOD_TABLE(QUEUE, queue_methods),
    METHOD_TABLE(DEQUE, deque_methods),
    METHOD_TABLE(STACK, stack_methods),
    {0, 0, NULL},
};
