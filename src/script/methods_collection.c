/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Iterable, Collection, List, Set, Queue, Deque, Iterator, Collections and Arrays. */
#include "script/method_args.h"

#include "script/convert.h"
#include "script/operate.h"
#include "script/walk.h"

static bool start(struct run *run, struct iter *iter, struct value collection)
{
    return iter_init(iter, run, collection) || run_throw_npe(run, "java.util.Collection.iterator()");
}

bool invoke_test(struct run *run, struct value function, struct value *arguments, unsigned count, bool *ret)
{
    struct value result;
    if (!run_invoke(run, function, arguments, count, &result))
        return false;
    if (run->groovy)
        return convert_truth(run, result, ret);
    if (!convert_site(run, result, CLASS_BOOLEAN, &result))
        return false;
    *ret = result.i != 0;
    return true;
}

bool invoke_number(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret)
{
    return run_invoke(run, function, arguments, count, ret) &&
           (value_number(*ret) || ret->kind == VALUE_CHAR || convert_site(run, *ret, CLASS_DOUBLE, ret));
}

bool invoke_item(struct run *run, struct value function, struct value item, struct value *ret)
{
    bool entry = run->groovy && (value_is(item, CLASS_ENTRY) || value_is(item, CLASS_SIMPLE_ENTRY));
    if (entry && function_arity(function) == 2) {
        struct value pair[2] = {((struct entry *)item.object)->key, ((struct entry *)item.object)->value};
        return run_invoke(run, function, pair, 2, ret);
    }
    return run_invoke(run, function, &item, 1, ret);
}

bool invoke_item_test(struct run *run, struct value function, struct value item, bool *ret)
{
    struct value result;
    if (!run->groovy)
        return invoke_test(run, function, &item, 1, ret);
    return invoke_item(run, function, item, &result) && convert_truth(run, result, ret);
}

/* Collection */

static bool add_to(struct run *run, struct value collection, struct value item, bool *ret_added)
{
    *ret_added = true;
    if (value_is_set(collection))
        return dict_add(run, dict_of(collection), item, ret_added);
    if (!value_is_seq(collection))
        return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
    return seq_add(run, seq_of(collection), item);
}

static bool collection_add(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool added;
    return add_to(run, a[0], a[1], &added) && give_boolean(ret, added);
}

static bool collection_add_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed = false, added;
    NEED(1);
    struct seq *copy = values_to_seq(run, a[1], CLASS_ARRAY_LIST);
    for (size_t i = 0; copy != NULL && i < copy->count; i++) {
        if (!add_to(run, a[0], seq_item(copy, i), &added))
            return false;
        changed |= added;
    }
    return copy != NULL && give_boolean(ret, changed);
}

static bool collection_clear(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool ok;
    if (value_is_seq(a[0]))
        ok = seq_clear(run, seq_of(a[0]));
    else
        ok = dict_clear(run, value_is_set(a[0]) ? dict_of(a[0]) : ((struct view *)a[0].object)->dict);
    return ok && give_nothing(ret);
}

static bool contains(struct run *run, struct value collection, struct value item, bool *ret)
{
    struct iter iter;
    struct entry *entry;
    *ret = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct dict *dict = value_is_set(collection) ? dict_of(collection) : ((struct view *)collection.object)->dict;
        if (!dict_find(run, dict, item, &entry))
            return false;
        *ret = entry != NULL;
        return true;
    }
    if (!start(run, &iter, collection))
        return false;
    walk(&iter, one)
    {
        if (!value_equals(run, one, item, ret))
            return false;
        if (*ret)
            return true;
    }
    return run->thrown == NULL;
}

static bool collection_contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    return contains(run, a[0], a[1], &found) && give_boolean(ret, found);
}

static bool collection_contains_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    bool found = true;
    NEED(1);
    if (!start(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        if (!contains(run, a[0], item, &found))
            return false;
        if (!found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, found);
}

static bool collection_is_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, values_count(a[0]) == 0);
}

static bool collection_size(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)values_count(a[0]));
}

/* Keeps or drops what a test says; the test sees each element once, in order. */
struct filter {
    struct value function; /* or null: members of `among` */
    struct value among;
    bool keep; /* what the test holds for stays */
};

static bool filter_test(struct run *run, const struct filter *filter, struct value item, bool *ret)
{
    return filter->function.kind != VALUE_NULL ? invoke_item_test(run, filter->function, item, ret)
                                               : contains(run, filter->among, item, ret);
}

static bool filter_in_place(struct run *run, struct value collection, const struct filter *filter, bool *ret_changed)
{
    struct iter iter;
    *ret_changed = false;
    if (value_is_seq(collection) && (seq_of(collection)->object.flags & OBJECT_READONLY))
        return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
    if (!start(run, &iter, collection))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!filter_test(run, filter, item, &holds))
            return false;
        if (holds == filter->keep)
            continue;
        if (!iter_remove(&iter))
            return false;
        *ret_changed = true;
    }
    return run->thrown == NULL;
}

static bool collection_remove_if(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.function = a[1], .keep = false};
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_remove_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.among = a[1], .keep = false};
    if (value_is(a[1], CLASS_CLOSURE))
        filter.function = a[1];
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_retain_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.among = a[1], .keep = true};
    if (value_is(a[1], CLASS_CLOSURE))
        filter.function = a[1];
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

/* Removes an element by its value. */
static bool remove_value(struct run *run, struct value collection, struct value item, bool *ret_removed)
{
    struct iter iter;
    *ret_removed = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct entry *entry;
        struct dict *dict = value_is_set(collection) ? dict_of(collection) : ((struct view *)collection.object)->dict;
        if (!dict_remove(run, dict, item, &entry))
            return false;
        *ret_removed = entry != NULL;
        return true;
    }
    if (!start(run, &iter, collection))
        return false;
    walk(&iter, one)
    {
        bool same;
        if (!value_equals(run, one, item, &same))
            return false;
        if (!same)
            continue;
        *ret_removed = true;
        return iter_remove(&iter);
    }
    return run->thrown == NULL;
}

static bool collection_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool removed;
    return remove_value(run, a[0], a[1], &removed) && give_boolean(ret, removed);
}

static bool collection_to_array(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = values_to_seq(run, a[0], CLASS_ARRAY_LIST);
    struct array *array = seq == NULL ? NULL : array_new(run, run->groovy ? CLASS_OBJECT : CLASS_DEF, seq->count);
    for (size_t i = 0; array != NULL && i < seq->count; i++)
        array->items[i] = seq_item(seq, i);
    return give(ret, array);
}

static bool collection_stream(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, values_to_seq(run, a[0], CLASS_STREAM));
}

static bool collection_copy(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, values_to_seq(run, a[0], CLASS_ARRAY_LIST));
}

static bool collection_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    bool given = n == 1 && !value_integral(a[1]);
    if (given)
        NEED(1);
    if (class_extends(id, CLASS_SET)) {
        struct dict *set = dict_new(run, id);
        struct value into[2] = {value_of(set), n == 1 ? a[1] : VALUE_NONE}, ignored;
        *ret = into[0];
        if (given && value_is(a[1], CLASS_CLOSURE)) {
            set->comparator = a[1];
            return true;
        }
        if (given && !dict_reserve(run, set, id == CLASS_TREE_SET || values_count(a[1]) < 12 ? 0 : values_count(a[1])))
            return false;
        return !given || collection_add_all(run, into, 1, &ignored);
    }
    return give(ret, given ? values_to_seq(run, a[1], id) : seq_new(run, id, 0));
}

static bool collection_for_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value ignored;
    NEED(1);
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!invoke_item(run, a[1], item, &ignored))
            return false;
    }
    return run->thrown == NULL && give_nothing(ret);
}

static bool iterable_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return collection_for_each(run, a, n, ret) && (*ret = a[0], true);
}

static bool iterable_each_with_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value arguments[3], ignored;
    int64_t index = 0;
    *ret = a[0];
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool split = run->groovy && value_is(item, CLASS_ENTRY) && function_arity(a[1]) == 3;
        arguments[0] = split ? ((struct entry *)item.object)->key : item;
        arguments[1] = split ? ((struct entry *)item.object)->value : value_int(index);
        arguments[2] = value_int(index++);
        if (!run_invoke(run, a[1], arguments, split ? 3 : 2, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

static bool quantify(struct run *run, struct value *a, unsigned n, bool stop_at, struct value *ret)
{
    struct iter iter;
    bool holds = !stop_at;
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (n == 0 ? !convert_truth(run, item, &holds) : !invoke_item_test(run, a[1], item, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, stop_at);
    }
    return run->thrown == NULL && give_boolean(ret, !stop_at);
}

static bool iterable_any(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return quantify(run, a, n, true, ret);
}

static bool iterable_every(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return quantify(run, a, n, false, ret);
}

static bool iterable_join(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct text_buf out;
    struct text *separator = n == 0 ? NULL : value_to_text(run, a[1]);
    bool first = true;
    text_buf_init(&out, run);
    if (!start(run, &iter, a[0]) || (n == 1 && separator == NULL))
        return false;
    walk(&iter, item)
    {
        if (!first && separator != NULL)
            text_buf_text(&out, separator);
        first = false;
        if (!value_append(run, item, &out))
            return false;
    }
    return run->thrown == NULL && give(ret, text_buf_done(&out));
}

static bool iterable_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = value_double(0);
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (n == 1 && !invoke_item(run, a[1], item, &item))
            return false;
        if (!value_number(item) && item.kind != VALUE_CHAR && !convert_site(run, item, CLASS_DOUBLE, &item))
            return false;
        *ret = value_double(ret->d + number_to_double(run, item));
    }
    return run->thrown == NULL;
}

static bool iterable_group_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct entry *entry;
        if (!invoke_item(run, a[1], item, &key) || !dict_find(run, groups, key, &entry))
            return false;
        bool ok = entry != NULL ? seq_add(run, seq_of(entry->value), item) : true;
        if (entry == NULL) {
            struct seq *group = seq_new(run, CLASS_ARRAY_LIST, 0);
            ok = seq_add(run, group, item) && dict_put(run, groups, key, value_of(group), NULL);
        }
        if (!ok)
            return false;
    }
    return run->thrown == NULL;
}

static bool iterable_find_results(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *results = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(results);
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!invoke_item(run, a[1], item, &result) || (result.kind != VALUE_NULL && !seq_add(run, results, result)))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_collect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct value into = n == 2 ? a[1] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0)), function = n == 2 ? a[2] : a[1];
    *ret = into;
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result = item;
        bool added;
        if ((n > 0 && !invoke_item(run, function, item, &result)) || !add_to(run, into, result, &added))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = VALUE_NONE;
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (n == 0 ? !convert_truth(run, item, &holds) : !invoke_item_test(run, a[1], item, &holds))
            return false;
        if (holds) {
            *ret = item;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool collection_find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    bool to_set = run->groovy && value_is_set(a[0]);
    struct value into = to_set ? value_of(dict_new(run, (enum class_id)a[0].object->class))
                               : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    *ret = into;
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds, added;
        if (n == 0 ? !convert_truth(run, item, &holds) : !invoke_item_test(run, a[1], item, &holds))
            return false;
        if (holds && !add_to(run, into, item, &added))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_find_result(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct value function = n == 2 ? a[2] : a[1];
    *ret = n == 2 ? a[1] : VALUE_NONE;
    if (!start(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!invoke_item(run, function, item, &result))
            return false;
        if (result.kind != VALUE_NULL) {
            *ret = result;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool collection_split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *both = seq_new(run, CLASS_ARRAY_LIST, 2);
    struct seq *yes = seq_new(run, CLASS_ARRAY_LIST, 0), *no = seq_new(run, CLASS_ARRAY_LIST, 0);
    if (both == NULL || !seq_add(run, both, value_of(yes)) || !seq_add(run, both, value_of(no)) ||
        !start(run, &iter, a[0]))
        return false;
    *ret = value_of(both);
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, a[1], item, &holds) || !seq_add(run, holds ? yes : no, item))
            return false;
    }
    return run->thrown == NULL;
}

static bool iterable_iterator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_CURSOR);
    *ret = value_of(cursor);
    return start(run, &cursor->iter, a[0]);
}

/* List */

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

static bool sort_list(struct run *run, struct value list, struct value comparator)
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
    return sort_list(run, a[0], a[1]) && give_nothing(ret);
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

/* Queues: the first element is the head */

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

/* Iterator */

static bool iterator_has_next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, iter_has_next(&((struct cursor *)a[0].object)->iter));
}

static bool iterator_next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool more;
    if (!iter_next(&((struct cursor *)a[0].object)->iter, ret, &more))
        return false;
    return more || run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
}

static bool iterator_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return iter_remove(&((struct cursor *)a[0].object)->iter) && give_nothing(ret);
}

/* Collections */

static bool collections_sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return sort_list(run, a[1], n == 2 ? a[2] : VALUE_NONE) && give_nothing(ret);
}

static bool collections_reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct seq *seq = seq_of(a[1]);
    for (size_t i = 0; i < seq->count / 2; i++) {
        struct value low = seq_item(seq, i), high = seq_item(seq, seq->count - 1 - i);
        if (!run_step(run, 1) || !seq_set(run, seq, (int64_t)i, high, NULL) ||
            !seq_set(run, seq, (int64_t)(seq->count - 1 - i), low, NULL))
            return false;
    }
    return give_nothing(ret);
}

static bool extreme(struct run *run, struct value collection, struct value comparator, int sign, struct value *ret)
{
    struct iter iter;
    bool first = true;
    if (!start(run, &iter, collection))
        return false;
    walk(&iter, item)
    {
        int order = 0;
        if (!first && comparator.kind != VALUE_NULL) {
            struct value pair[2] = {item, *ret}, result;
            if (!invoke_number(run, comparator, pair, 2, &result))
                return false;
            order = value_floating(result) ? (result.d > 0) - (result.d < 0) : (result.i > 0) - (result.i < 0);
        } else if (!first && !value_order(run, item, *ret, &order)) {
            return false;
        }
        if (first || order * sign > 0)
            *ret = item;
        first = false;
    }
    if (first && run->thrown == NULL)
        return run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    return run->thrown == NULL;
}

static bool collections_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return extreme(run, a[1], n == 2 ? a[2] : VALUE_NONE, 1, ret);
}

static bool collections_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return extreme(run, a[1], n == 2 ? a[2] : VALUE_NONE, -1, ret);
}

static bool collections_swap(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct value one, two;
    struct seq *seq = seq_of(a[1]);
    return seq_get(run, seq, a[2].i, &one) && seq_get(run, seq, a[3].i, &two) && seq_set(run, seq, a[2].i, two, NULL) &&
           seq_set(run, seq, a[3].i, one, NULL) && give_nothing(ret);
}

static bool collections_frequency(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    int64_t count = 0;
    NEED(1);
    if (!start(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        bool same;
        if (!value_equals(run, item, a[2], &same))
            return false;
        count += same;
    }
    return run->thrown == NULL && give_int(ret, count);
}

static bool collections_n_copies(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "List length = %lld", (long long)a[1].i);
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, (size_t)a[1].i);
    for (int64_t i = 0; seq != NULL && i < a[1].i; i++)
        if (!run_step(run, 1) || !seq_add(run, seq, a[2]))
            return false;
    if (seq != NULL)
        seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_disjoint(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    bool found = false;
    NEED(1);
    NEED(2);
    if (!start(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        if (!contains(run, a[2], item, &found))
            return false;
        if (found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, !found);
}

static bool collections_add_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return collection_add_all(run, a + 1, n, ret);
}

static bool frozen_list(struct run *run, struct value item, bool has_item, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, 0);
    if (has_item && !seq_add(run, seq, item))
        return false;
    seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_empty_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return frozen_list(run, VALUE_NONE, false, ret);
}

static bool collections_singleton_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return frozen_list(run, a[1], true, ret);
}

static bool frozen_dict(struct run *run, enum class_id id, struct value *a, unsigned n, struct value *ret)
{
    struct dict *dict = dict_new(run, id);
    if (n > 0 && !dict_put(run, dict, a[1], n > 1 ? a[2] : VALUE_NONE, NULL))
        return false;
    dict->object.flags |= OBJECT_READONLY;
    return give(ret, dict);
}

static bool collections_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return frozen_dict(run, CLASS_IMMUTABLE_SET, a, n, ret);
}

static bool collections_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return frozen_dict(run, CLASS_IMMUTABLE_MAP, a, n, ret);
}

/* A copy that refuses changes; changes behind its back do not show, which nobody here could make unseen. */
static bool collections_unmodifiable(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (value_is_seq(a[1]) || !(value_is_map(a[1]) || value_is_set(a[1]))) {
        struct seq *copy = values_to_seq(run, a[1], CLASS_IMMUTABLE_LIST);
        if (copy != NULL)
            copy->object.flags |= OBJECT_READONLY;
        return give(ret, copy);
    }
    struct dict *copy = dict_new(run, value_is_map(a[1]) ? CLASS_IMMUTABLE_MAP : CLASS_IMMUTABLE_SET);
    if (!dict_put_all(run, copy, dict_of(a[1])))
        return false;
    copy->object.flags |= OBJECT_READONLY;
    return give(ret, copy);
}

static bool compare_reversed(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    int order;
    (void)n;
    if (closure->held[0].kind != VALUE_NULL) {
        struct value swapped[2] = {a[1], a[0]};
        return run_invoke(run, closure->held[0], swapped, 2, ret);
    }
    return value_order(run, a[1], a[0], &order) && give_int(ret, (order > 0) - (order < 0));
}

static bool collections_reverse_order(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = closure_native_new(run, compare_reversed, 2, n == 1 ? a[1] : VALUE_NONE, VALUE_NONE);
    return true;
}

/* Arrays */

static bool arrays_as_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *seq;
    if (n == 1 && value_is_array(a[1])) {
        seq = values_to_seq(run, a[1], CLASS_ARRAYS_LIST);
    } else {
        seq = seq_new(run, CLASS_ARRAYS_LIST, n);
        for (unsigned i = 1; seq != NULL && i <= n; i++)
            if (!seq_add(run, seq, a[i]))
                return false;
    }
    if (seq != NULL)
        seq->object.flags |= OBJECT_FIXED;
    return give(ret, seq);
}

static bool arrays_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = values_to_seq(run, a[1], CLASS_ARRAY_LIST);
    return seq != NULL && give(ret, value_to_text(run, value_of(seq)));
}

static bool arrays_sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct array *array = (struct array *)a[1].object;
    return values_sort(run, array->items, array->count, VALUE_NONE) && give_nothing(ret);
}

/* A path of names and numbers through maps and lists; a missing end yields the fallback, a missing middle throws. */
static bool by_path(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct text *path = text_of(a[1]);
    struct value at = a[0];
    size_t begin = 0;
    unsigned index = 0;
    NEED(1);
    if (path->length == 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Missing path");
    for (size_t i = 0; i <= path->length; i++) {
        if (i < path->length && text_at(path, i) != '.')
            continue;
        struct text *name = text_substring(run, path, begin, i);
        struct entry *entry = NULL;
        int64_t position = -1;
        bool last = i == path->length, found;
        if (name == NULL || !run_step(run, 1))
            return false;
        struct slice shown = text_slice(run->arena, name);
        if (value_is_map(at)) {
            if (!dict_find(run, dict_of(at), value_of(name), &entry))
                return false;
            found = entry != NULL;
            at = found ? entry->value : at;
        } else if (value_is_seq(at)) {
            if (!number_parse_i64(shown, 10, 0, INT32_MAX, &position))
                return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION,
                                 "Could not parse [%.*s] as a int index into list at path [%.*s] and index [%u]",
                                 SLICE_ARG(shown), SLICE_ARG(text_slice(run->arena, path)), index);
            found = position < seq_of(at)->count;
            at = found ? seq_item(seq_of(at), (size_t)position) : at;
        } else {
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                             "Non-container [%s] at [%.*s], index [%u] in path [%.*s]",
                             at.kind == VALUE_NULL ? "null" : class_infos[type_class(value_type(at))].java,
                             SLICE_ARG(shown), index, SLICE_ARG(text_slice(run->arena, path)));
        }
        if (!found && !last)
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                             "Container does not have [%.*s], for non-terminal index [%u] in path [%.*s]",
                             SLICE_ARG(shown), index, SLICE_ARG(text_slice(run->arena, path)));
        if (!found) {
            *ret = n == 2 ? a[2] : VALUE_NONE;
            return n == 2 || run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Could not find value at path [%.*s]",
                                       SLICE_ARG(text_slice(run->arena, path)));
        }
        begin = i + 1;
        index++;
    }
    *ret = at;
    return true;
}

bool method_get_by_path(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return by_path(run, a, n, ret);
}

static const struct method iterable_methods[] = {
    M1("forEach", METHOD_BOTH, VOID, CONSUMER, collection_for_each),
    M0("iterator", METHOD_BOTH, ITERATOR, iterable_iterator),
    M1("any", METHOD_PAINLESS, BOOLEAN, PREDICATE, iterable_any),
    M0("asCollection", METHOD_PAINLESS, COLLECTION, collection_copy),
    M0("asList", METHOD_PAINLESS, LIST, collection_copy),
    M1("each", METHOD_PAINLESS, DEF, CONSUMER, iterable_each),
    M1("eachWithIndex", METHOD_PAINLESS, DEF, OBJ_INT_CONSUMER, iterable_each_with_index),
    M1("every", METHOD_PAINLESS, BOOLEAN, PREDICATE, iterable_every),
    M1("findResults", METHOD_PAINLESS, LIST, FUNCTION, iterable_find_results),
    M1("groupBy", METHOD_PAINLESS, MAP, FUNCTION, iterable_group_by),
    M1("join", METHOD_PAINLESS, STRING, STRING, iterable_join),
    M0("sum", METHOD_PAINLESS, DOUBLE, iterable_sum),
    M1("sum", METHOD_PAINLESS, DOUBLE, TO_DOUBLE_FUNCTION, iterable_sum),
};

static const struct method collection_methods[] = {
    M1("add", METHOD_BOTH, BOOLEAN, DEF, collection_add),
    M1("addAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_add_all),
    M0("clear", METHOD_BOTH, VOID, collection_clear),
    M1("contains", METHOD_BOTH, BOOLEAN, DEF, collection_contains),
    M1("containsAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_contains_all),
    M0("isEmpty", METHOD_BOTH, BOOLEAN, collection_is_empty),
    M1("removeAll", METHOD_GROOVY, BOOLEAN, CLOSURE, collection_remove_all),
    M1("removeAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_remove_all),
    M1("removeIf", METHOD_BOTH, BOOLEAN, PREDICATE, collection_remove_if),
    M1("retainAll", METHOD_GROOVY, BOOLEAN, CLOSURE, collection_retain_all),
    M1("retainAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_retain_all),
    M0("size", METHOD_BOTH, INT, collection_size),
    M0("stream", METHOD_BOTH, STREAM, collection_stream),
    M0("toArray", METHOD_BOTH, DEF_ARRAY, collection_to_array),
    M1("toArray", METHOD_BOTH, DEF_ARRAY, DEF_ARRAY, collection_to_array),
    M1("collect", METHOD_PAINLESS, LIST, FUNCTION, collection_collect),
    M2("collect", METHOD_PAINLESS, DEF, COLLECTION, FUNCTION, collection_collect),
    M1("find", METHOD_PAINLESS, DEF, PREDICATE, collection_find),
    M1("findAll", METHOD_PAINLESS, LIST, PREDICATE, collection_find_all),
    M1("findResult", METHOD_PAINLESS, DEF, FUNCTION, collection_find_result),
    M2("findResult", METHOD_PAINLESS, DEF, DEF, FUNCTION, collection_find_result),
    M1("split", METHOD_PAINLESS, LIST, PREDICATE, collection_split),
    M1("remove", METHOD_GROOVY, BOOLEAN, DEF, collection_remove),
};

static const struct method list_methods[] = {
    M2("add", METHOD_BOTH, VOID, INT, DEF, list_insert),
    M2("addAll", METHOD_BOTH, BOOLEAN, INT, COLLECTION, list_insert_all),
    M1("get", METHOD_BOTH, DEF, INT, list_get),
    M1("indexOf", METHOD_BOTH, INT, DEF, list_index_of),
    M1("lastIndexOf", METHOD_BOTH, INT, DEF, list_last_index_of),
    M1("remove", METHOD_BOTH, DEF, INT, list_remove_at),
    M1("replaceAll", METHOD_BOTH, VOID, UNARY_OPERATOR, list_replace_all),
    M2("set", METHOD_BOTH, DEF, INT, DEF, list_set),
    M0("getLength", METHOD_PAINLESS, INT, collection_size),
    M1("sort", METHOD_PAINLESS, VOID, COMPARATOR, list_sort),
    M2("subList", METHOD_BOTH, LIST, INT, INT, list_sub_list),
    M1("getByPath", METHOD_PAINLESS, OBJECT, STRING, method_get_by_path),
    M2("getByPath", METHOD_PAINLESS, OBJECT, STRING, OBJECT, method_get_by_path),
};

static const struct method set_methods[] = {
    M1("remove", METHOD_BOTH, BOOLEAN, DEF, collection_remove),
};

static const struct method new_collection_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, COLLECTION, collection_new),
    M1("new", METHOD_BOTH | METHOD_NEW, COLLECTION, COLLECTION, collection_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, COLLECTION, INT, collection_new),
    M0("clone", METHOD_BOTH, DEF, collection_copy),
};

static const struct method tree_set_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, TREE_SET, collection_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, TREE_SET, COLLECTION, collection_new),
    M1("new", METHOD_BOTH | METHOD_NEW, TREE_SET, COMPARATOR, collection_new),
};

static const struct method queue_methods[] = {
    M0("element", METHOD_BOTH, DEF, queue_element), M1("offer", METHOD_BOTH, BOOLEAN, DEF, collection_add),
    M0("peek", METHOD_BOTH, DEF, queue_peek),       M0("poll", METHOD_BOTH, DEF, queue_poll),
    M0("remove", METHOD_BOTH, DEF, queue_remove),
};

static const struct method deque_methods[] = {
    M1("addFirst", METHOD_BOTH, VOID, DEF, deque_add_first),
    M1("addLast", METHOD_BOTH, VOID, DEF, deque_add_last),
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
    M1("remove", METHOD_PAINLESS, BOOLEAN, DEF, collection_remove),
};

static const struct method stack_methods[] = {
    M1("push", METHOD_BOTH, DEF, DEF, stack_push),
    M0("pop", METHOD_BOTH, DEF, stack_pop),
    M0("peek", METHOD_BOTH, DEF, stack_peek),
    M0("empty", METHOD_BOTH, BOOLEAN, collection_is_empty),
    M0("new", METHOD_BOTH | METHOD_NEW, STACK, collection_new),
};

static const struct method iterator_methods[] = {
    M0("hasNext", METHOD_BOTH, BOOLEAN, iterator_has_next),
    M0("next", METHOD_BOTH, DEF, iterator_next),
    M0("remove", METHOD_BOTH, VOID, iterator_remove),
};

#define STATIC (METHOD_BOTH | METHOD_STATIC)

static const struct method collections_methods[] = {
    M0("EMPTY_LIST", STATIC | METHOD_FIELD, LIST, collections_empty_list),
    M0("EMPTY_SET", STATIC | METHOD_FIELD, SET, collections_set),
    M0("EMPTY_MAP", STATIC | METHOD_FIELD, MAP, collections_map),
    M2("addAll", STATIC, BOOLEAN, COLLECTION, DEF_ARRAY, collections_add_all),
    M2("disjoint", STATIC, BOOLEAN, COLLECTION, COLLECTION, collections_disjoint),
    M0("emptyList", STATIC, LIST, collections_empty_list),
    M0("emptySet", STATIC, SET, collections_set),
    M0("emptyMap", STATIC, MAP, collections_map),
    M2("frequency", STATIC, INT, COLLECTION, DEF, collections_frequency),
    M1("max", STATIC, DEF, COLLECTION, collections_max),
    M2("max", STATIC, DEF, COLLECTION, COMPARATOR, collections_max),
    M1("min", STATIC, DEF, COLLECTION, collections_min),
    M2("min", STATIC, DEF, COLLECTION, COMPARATOR, collections_min),
    M2("nCopies", STATIC, LIST, INT, DEF, collections_n_copies),
    M1("reverse", STATIC, VOID, LIST, collections_reverse),
    M0("reverseOrder", STATIC, COMPARATOR, collections_reverse_order),
    M1("reverseOrder", STATIC, COMPARATOR, COMPARATOR, collections_reverse_order),
    M1("singleton", STATIC, SET, DEF, collections_set),
    M1("singletonList", STATIC, LIST, DEF, collections_singleton_list),
    M2("singletonMap", STATIC, MAP, DEF, DEF, collections_map),
    M1("sort", STATIC, VOID, LIST, collections_sort),
    M2("sort", STATIC, VOID, LIST, COMPARATOR, collections_sort),
    M3("swap", STATIC, VOID, LIST, INT, INT, collections_swap),
    M1("unmodifiableList", STATIC, LIST, LIST, collections_unmodifiable),
    M1("unmodifiableCollection", STATIC, COLLECTION, COLLECTION, collections_unmodifiable),
    M1("unmodifiableSet", STATIC, SET, SET, collections_unmodifiable),
    M1("unmodifiableMap", STATIC, MAP, MAP, collections_unmodifiable),
};

static const struct method arrays_methods[] = {
    M1("asList", STATIC, LIST, OBJECT_ARRAY, arrays_as_list),
    M1("asList", METHOD_GROOVY | METHOD_STATIC | METHOD_REST, LIST, DEF, arrays_as_list),
    M1("deepToString", METHOD_PAINLESS | METHOD_STATIC, STRING, OBJECT_ARRAY, arrays_to_string),
    M1("toString", METHOD_GROOVY | METHOD_STATIC, STRING, DEF, arrays_to_string),
    M1("sort", METHOD_GROOVY | METHOD_STATIC, VOID, DEF, arrays_sort),
};

const struct method_table methods_collection[] = {
    METHOD_TABLE(ITERABLE, iterable_methods),
    METHOD_TABLE(LIST, list_methods),
    METHOD_TABLE(SET, set_methods),
    METHOD_TABLE(COLLECTION, collection_methods),
    METHOD_TABLE(ARRAY_LIST, new_collection_methods),
    METHOD_TABLE(LINKED_LIST, new_collection_methods),
    METHOD_TABLE(ARRAY_DEQUE, new_collection_methods),
    METHOD_TABLE(HASH_SET, new_collection_methods),
    METHOD_TABLE(LINKED_HASH_SET, new_collection_methods),
    METHOD_TABLE(TREE_SET, tree_set_methods),
    METHOD_TABLE(QUEUE, queue_methods),
    METHOD_TABLE(DEQUE, deque_methods),
    METHOD_TABLE(STACK, stack_methods),
    METHOD_TABLE(ITERATOR, iterator_methods),
    METHOD_TABLE(COLLECTIONS, collections_methods),
    METHOD_TABLE(ARRAYS, arrays_methods),
    {0, 0, NULL},
};
