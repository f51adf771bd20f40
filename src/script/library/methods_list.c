/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of List, and of Queue, Deque and Stack, which are lists here. */
#include "script/library/methods_collection.h"

static bool list_get(struct call *call, struct value *ret)
{
    return seq_get(call->run, seq_of(call->self), call->args[0].i, ret);
}

static bool list_set(struct call *call, struct value *ret)
{
    return seq_set(call->run, seq_of(call->self), call->args[0].i, call->args[1], ret);
}

static bool list_insert(struct call *call, struct value *ret)
{
    return seq_insert(call->run, seq_of(call->self), call->args[0].i, call->args[1]) && give_nothing(ret);
}

static bool list_insert_all(struct call *call, struct value *ret)
{
    NOT_NULL(1);
    struct seq *copy = values_to_seq(call->run, call->args[1], CLASS_ARRAY_LIST);
    for (size_t i = 0; copy != NULL && i < copy->count; i++)
        if (!seq_insert(call->run, seq_of(call->self), call->args[0].i + (int64_t)i, seq_item(copy, i)))
            return false;
    return copy != NULL && give_boolean(ret, copy->count > 0);
}

static bool list_remove_at(struct call *call, struct value *ret)
{
    return seq_remove(call->run, seq_of(call->self), call->args[0].i, ret);
}

static bool index_from(struct call *call, struct value *ret)
{
    bool backwards = call->row->datum.number != 0;
    struct run *run = call->run;
    const struct seq *seq = seq_of(call->self);
    if (!seq_check(run, seq))
        return false;
    for (size_t i = 0; i < seq->count; i++) {
        size_t at = backwards ? seq->count - 1 - i : i;
        bool same;
        if (!run_step(run, 1) || !value_equals(run, seq_item(seq, at), call->args[0], &same))
            return false;
        if (same)
            return give_int(ret, (int64_t)at);
    }
    return give_int(ret, -1);
}

/* Sorts a copy, then stores it. The comparator may read the list during the sort; if it changes
   the list, the sort throws. */
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

static bool list_sort(struct call *call, struct value *ret)
{
    return methods_list_sort(call->run, call->self, call->args[0]) && give_nothing(ret);
}

static bool list_replace_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct seq *seq = seq_of(call->self);
    for (size_t i = 0; i < seq->count; i++) {
        struct value item = seq_item(seq, i), result;
        uint32_t changes = seq->changes;
        if (!run_step(run, 1) || !run_invoke(run, call->args[0], &item, 1, &result))
            return false;
        if (changes != seq->changes)
            return run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
        if (!seq_set(run, seq, (int64_t)i, result, NULL))
            return false;
    }
    return give_nothing(ret);
}

static bool list_sub_list(struct call *call, struct value *ret)
{
    return give(ret, seq_sub(call->run, seq_of(call->self), call->args[0].i, call->args[1].i));
}

/* Queues: the first element is the head */

enum end { END_FIRST = 0, END_LAST = 1, END_REMOVE = 2, END_MUST = 4 };

/* Gives, and perhaps removes, the first or last element. An empty list gives null, or throws
   with END_MUST. The datum has flags of enum end. */
static bool end_of(struct call *call, struct value *ret)
{
    int64_t how = call->row->datum.number;
    struct run *run = call->run;
    struct seq *seq = seq_of(call->self);
    *ret = VALUE_NONE;
    if (seq->count == 0)
        return (how & END_MUST) == 0 ||
               run_throw_null(run, seq->object.class == CLASS_STACK ? CLASS_EMPTY_STACK_EXCEPTION
                                                                    : CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    int64_t index = how & END_LAST ? (int64_t)seq->count - 1 : 0;
    return how & END_REMOVE ? seq_remove(run, seq, index, ret) : seq_get(run, seq, index, ret);
}

static bool deque_add_first(struct call *call, struct value *ret)
{
    return seq_insert(call->run, seq_of(call->self), 0, call->args[0]) && give_nothing(ret);
}

static bool deque_add_last(struct call *call, struct value *ret)
{
    return seq_add(call->run, seq_of(call->self), call->args[0]) && give_nothing(ret);
}

static bool deque_offer_first(struct call *call, struct value *ret)
{
    return deque_add_first(call, ret) && give_boolean(ret, true);
}

static bool stack_push(struct call *call, struct value *ret)
{
    *ret = call->args[0];
    return seq_add(call->run, seq_of(call->self), call->args[0]);
}

static const struct method_row list_methods[] = {
    {"void add(int, def)", BOTH, list_insert},
    {"boolean addAll(int, Collection)", BOTH, list_insert_all},
    {"def get(int)", BOTH, list_get},
    {"int indexOf(def)", BOTH, index_from, {false}},
    {"int lastIndexOf(def)", BOTH, index_from, {true}},
    {"def remove(int)", BOTH, list_remove_at},
    {"void replaceAll(UnaryOperator)", BOTH, list_replace_all},
    {"def set(int, def)", BOTH, list_set},
    {"int getLength()", PAINLESS, methods_collection_size},
    {"void sort(Comparator)", PAINLESS, list_sort},
    {"List subList(int, int)", BOTH, list_sub_list},
};

static const struct method_row queue_methods[] = {
    {"def element()", BOTH, end_of, {END_MUST}},
    {"boolean offer(def)", BOTH, methods_collection_add},
    {"def peek()", BOTH, end_of, {END_FIRST}},
    {"def poll()", BOTH, end_of, {END_REMOVE}},
    {"def remove()", BOTH, end_of, {END_REMOVE | END_MUST}},
};

static const struct method_row deque_methods[] = {
    {"void addFirst(def)", BOTH, deque_add_first},
    {"void addLast(def)", BOTH, deque_add_last},
    {"boolean offerFirst(def)", BOTH, deque_offer_first},
    {"boolean offerLast(def)", BOTH, methods_collection_add},
    {"boolean removeFirstOccurrence(def)", BOTH, methods_collection_remove},
    {"def getFirst()", BOTH, end_of, {END_MUST}},
    {"def getLast()", BOTH, end_of, {END_LAST | END_MUST}},
    {"def peekFirst()", BOTH, end_of, {END_FIRST}},
    {"def peekLast()", BOTH, end_of, {END_LAST}},
    {"def pollFirst()", BOTH, end_of, {END_REMOVE}},
    {"def pollLast()", BOTH, end_of, {END_LAST | END_REMOVE}},
    {"def removeFirst()", BOTH, end_of, {END_REMOVE | END_MUST}},
    {"def removeLast()", BOTH, end_of, {END_LAST | END_REMOVE | END_MUST}},
    {"def pop()", BOTH, end_of, {END_REMOVE | END_MUST}},
    {"void push(def)", BOTH, deque_add_first},
    {"boolean remove(def)", PAINLESS, methods_collection_remove},
};

static const struct method_row stack_methods[] = {
    {"def push(def)", BOTH, stack_push},
    {"def pop()", BOTH, end_of, {END_LAST | END_REMOVE | END_MUST}},
    {"def peek()", BOTH, end_of, {END_LAST | END_MUST}},
    {"boolean empty()", BOTH, methods_collection_is_empty},
    {"new Stack()", BOTH, methods_collection_new},
};

const struct method_table methods_list[] = {
    METHOD_ROWS(LIST, list_methods),
    METHOD_ROWS(QUEUE, queue_methods),
    METHOD_ROWS(DEQUE, deque_methods),
    METHOD_ROWS(STACK, stack_methods),
    {0},
};
