/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and collectors. A stream is a list that a script cannot see as one; each stage makes the next at once, which
 * differs from Java only in when a function with side effects is called.
 */
#include "script/library/method_args.h"

#include "script/run/convert.h"
#include "script/run/invoke.h"
#include "script/value/statistics.h"

static struct seq *stream_new(struct run *run, enum class_id id)
{
    return seq_new(run, id, 0);
}

static enum class_id stream_class(struct value stream)
{
    return (enum class_id)stream.object->class;
}

/* What a stream of this class is made of. */
static type_id element_type(enum class_id id)
{
    return id == CLASS_INT_STREAM      ? CLASS_INT
           : id == CLASS_LONG_STREAM   ? CLASS_LONG
           : id == CLASS_DOUBLE_STREAM ? CLASS_DOUBLE
                                       : CLASS_DEF;
}

static bool put(struct run *run, struct seq *stream, struct value item)
{
    type_id type = element_type((enum class_id)stream->object.class);
    return (type == CLASS_DEF || convert_site(run, item, type, &item)) && seq_add(run, stream, item);
}

static bool mapped(struct run *run, struct value *a, enum class_id id, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        if (!run_step(run, 1) || !run_invoke(run, a[1], &item, 1, &item) || !put(run, to, item))
            return false;
    }
    return give(ret, to);
}

static bool stream_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return mapped(run, a, stream_class(a[0]), ret);
}

static bool stream_map_to_int(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return mapped(run, a, CLASS_INT_STREAM, ret);
}

static bool stream_map_to_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return mapped(run, a, CLASS_LONG_STREAM, ret);
}

static bool stream_map_to_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return mapped(run, a, CLASS_DOUBLE_STREAM, ret);
}

static bool stream_map_to_obj(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return mapped(run, a, CLASS_STREAM, ret);
}

static bool copied(struct run *run, struct value *a, enum class_id id, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++)
        if (!run_step(run, 1) || !put(run, to, seq_item(from, i)))
            return false;
    return give(ret, to);
}

static bool stream_boxed(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return copied(run, a, CLASS_STREAM, ret);
}

static bool stream_as_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return copied(run, a, CLASS_LONG_STREAM, ret);
}

static bool stream_as_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return copied(run, a, CLASS_DOUBLE_STREAM, ret);
}

static bool stream_filter(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, stream_class(a[0]));
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        bool holds;
        if (!run_step(run, 1) || !invoke_test(run, a[1], &item, 1, &holds) || (holds && !seq_add(run, to, item)))
            return false;
    }
    return give(ret, to);
}

static bool flat_mapped(struct run *run, struct value *a, enum class_id id, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i), inner;
        struct iter iter;
        if (!run_step(run, 1) || !run_invoke(run, a[1], &item, 1, &inner))
            return false;
        if (inner.kind == VALUE_NULL)
            continue;
        if (!iter_init(&iter, run, inner))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "flatMap wants a stream");
        walk(&iter, of_inner)
        {
            if (!put(run, to, of_inner))
                return false;
        }
        if (run->thrown != NULL)
            return false;
    }
    return give(ret, to);
}

static bool stream_flat_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return flat_mapped(run, a, stream_class(a[0]), ret);
}

static bool stream_flat_map_to_int(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return flat_mapped(run, a, CLASS_INT_STREAM, ret);
}

static bool stream_flat_map_to_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return flat_mapped(run, a, CLASS_LONG_STREAM, ret);
}

static bool stream_flat_map_to_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return flat_mapped(run, a, CLASS_DOUBLE_STREAM, ret);
}

static bool stream_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, stream_new(run, type_class(((struct class_object *)a[0].object)->type)));
}

static bool stream_distinct(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, stream_class(a[0]));
    struct dict *seen = dict_new(run, CLASS_LINKED_HASH_SET);
    for (size_t i = 0; i < from->count; i++) {
        bool added;
        if (!dict_add(run, seen, seq_item(from, i), &added) || (added && !seq_add(run, to, seq_item(from, i))))
            return false;
    }
    return give(ret, to);
}

static bool stream_sorted(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *to = values_to_seq(run, a[0], stream_class(a[0]));
    return to != NULL && values_sort(run, to->items, to->count, n == 1 ? a[1] : VALUE_NONE) && give(ret, to);
}

static bool part(struct run *run, struct value *a, size_t begin, size_t end, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct seq *to = stream_new(run, stream_class(a[0]));
    for (size_t i = begin; i < end && i < from->count; i++)
        if (!run_step(run, 1) || !seq_add(run, to, seq_item(from, i)))
            return false;
    return give(ret, to);
}

static bool stream_limit(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%lld", (long long)a[1].i);
    return part(run, a, 0, (size_t)a[1].i, ret);
}

static bool stream_skip(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%lld", (long long)a[1].i);
    return part(run, a, (size_t)a[1].i, SIZE_MAX, ret);
}

static bool stream_for_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i), ignored;
        if (!run_step(run, 1) || !run_invoke(run, a[1], &item, 1, &ignored))
            return false;
    }
    return give_nothing(ret);
}

static bool stream_peek(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return stream_for_each(run, a, n, ret) && give(ret, a[0].object);
}

static bool stream_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, seq_of(a[0])->count);
}

/* Whether the test gives `stop_at` for any; `result` is the answer then. */
static bool stream_test(struct run *run, struct value *a, bool stop_at, bool result, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        bool holds;
        if (!run_step(run, 1) || !invoke_test(run, a[1], &item, 1, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, result);
    }
    return give_boolean(ret, !result);
}

static bool stream_any_match(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return stream_test(run, a, true, true, ret);
}

static bool stream_all_match(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return stream_test(run, a, false, false, ret);
}

static bool stream_none_match(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return stream_test(run, a, true, false, ret);
}

static bool optional_for(struct run *run, enum class_id stream, const struct value *value, struct value *ret)
{
    enum class_id id = stream == CLASS_INT_STREAM      ? CLASS_OPTIONAL_INT
                       : stream == CLASS_LONG_STREAM   ? CLASS_OPTIONAL_LONG
                       : stream == CLASS_DOUBLE_STREAM ? CLASS_OPTIONAL_DOUBLE
                                                       : CLASS_OPTIONAL;
    struct seq *optional = seq_new(run, id, 1);
    return optional != NULL && (value == NULL || seq_add(run, optional, *value)) && give(ret, optional);
}

static bool stream_find_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value first = seq_item(seq_of(a[0]), 0);
    return optional_for(run, stream_class(a[0]), seq_of(a[0])->count > 0 ? &first : NULL, ret);
}

static bool extreme(struct run *run, struct value *a, unsigned n, int sign, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct value best = seq_item(from, 0);
    for (size_t i = 1; i < from->count; i++) {
        struct value pair[2] = {seq_item(from, i), best}, result;
        int order;
        if (!run_step(run, 1))
            return false;
        if (n == 1) {
            if (!run_invoke(run, a[1], pair, 2, &result) || !convert_site(run, result, CLASS_INT, &result))
                return false;
            order = (result.i > 0) - (result.i < 0);
        } else if (!value_order(run, pair[0], pair[1], &order)) {
            return false;
        }
        best = order * sign > 0 ? pair[0] : best;
    }
    return optional_for(run, stream_class(a[0]), from->count > 0 ? &best : NULL, ret);
}

static bool stream_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return extreme(run, a, n, 1, ret);
}

static bool stream_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return extreme(run, a, n, -1, ret);
}

static bool total(struct run *run, const struct seq *seq, struct value zero, struct value *ret)
{
    *ret = zero;
    for (size_t i = 0; i < seq->count; i++)
        if (!run_step(run, 1) || !number_binary(run, OP_ADD, *ret, seq_item(seq, i), ret))
            return false;
    return true;
}

static bool stream_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = stream_class(a[0]);
    return total(run, seq_of(a[0]),
                 id == CLASS_INT_STREAM    ? value_int(0)
                 : id == CLASS_LONG_STREAM ? value_long(0)
                                           : value_double(0),
                 ret);
}

static bool stream_average(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    struct value sum;
    if (!total(run, from, value_double(0), &sum))
        return false;
    sum.d = from->count > 0 ? sum.d / (double)from->count : 0;
    return optional_for(run, CLASS_DOUBLE_STREAM, from->count > 0 ? &sum : NULL, ret);
}

static bool stream_reduce(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *from = seq_of(a[0]);
    struct value so_far = n == 1 ? seq_item(from, 0) : a[1], function = n == 1 ? a[1] : a[2];
    for (size_t i = n == 1; i < from->count; i++) {
        struct value pair[2] = {so_far, seq_item(from, i)};
        if (!run_step(run, 1) || !run_invoke(run, function, pair, 2, &so_far))
            return false;
    }
    if (n == 1)
        return optional_for(run, stream_class(a[0]), from->count > 0 ? &so_far : NULL, ret);
    *ret = so_far;
    return true;
}

/* With a third argument, which puts parts together that nobody made in parallel: it has no part in it. */
static bool stream_reduce_parts(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return stream_reduce(run, a, 2, ret);
}

/* A container made by the first function, filled by the second. */
static bool stream_collect_into(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    if (!run_invoke(run, a[1], NULL, 0, ret))
        return false;
    for (size_t i = 0; i < from->count; i++) {
        struct value pair[2] = {*ret, seq_item(from, i)}, ignored;
        if (!run_step(run, 1) || !run_invoke(run, a[2], pair, 2, &ignored))
            return false;
    }
    return true;
}

static bool stream_statistics(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = stream_class(a[0]) == CLASS_INT_STREAM    ? CLASS_INT_STATISTICS
                       : stream_class(a[0]) == CLASS_LONG_STREAM ? CLASS_LONG_STATISTICS
                                                                 : CLASS_DOUBLE_STATISTICS;
    return statistics_of(run, id, seq_of(a[0]), VALUE_NONE, ret);
}

/* Into the array that the function makes. */
static bool stream_to_array_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    struct value count = value_int(from->count);
    if (!run_invoke(run, a[1], &count, 1, ret))
        return false;
    struct array *array = value_is_array(*ret) ? (struct array *)ret->object : NULL;
    if (array == NULL || array->count != from->count)
        return run_throw(run, CLASS_ILLEGAL_STATE_EXCEPTION, "the function made no array of %u elements", from->count);
    for (size_t i = 0; i < from->count; i++)
        if (!run_step(run, 1) || !convert_site(run, seq_item(from, i), array->element, &array->items[i]))
            return false;
    return true;
}

static bool stream_to_array(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *from = seq_of(a[0]);
    struct array *array = array_new(run, element_type(stream_class(a[0])), from->count);
    for (size_t i = 0; array != NULL && i < from->count; i++)
        array->items[i] = seq_item(from, i);
    return give(ret, array);
}

static bool stream_iterator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_CURSOR);
    iter_init(&cursor->iter, run, a[0]);
    cursor->iter.expected = seq_of(a[0])->changes;
    return give(ret, cursor);
}

static bool stream_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, values_to_seq(run, a[1], type_class(((struct class_object *)a[0].object)->type)));
}

static bool stream_concat(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    struct seq *both = values_to_seq(run, a[1], stream_class(a[1]));
    const struct seq *more = seq_of(a[2]);
    for (size_t i = 0; both != NULL && i < more->count; i++)
        if (!run_step(run, 1) || !seq_add(run, both, seq_item(more, i)))
            return false;
    return give(ret, both);
}

static bool number_range(struct run *run, struct value *a, bool closed, enum class_id id, struct value *ret)
{
    struct seq *to = stream_new(run, id);
    for (int64_t i = a[1].i; closed ? i <= a[2].i : i < a[2].i; i++) {
        if (!run_step(run, 1) || !seq_add(run, to, id == CLASS_INT_STREAM ? value_int(i) : value_long(i)))
            return false;
        if (i == INT64_MAX)
            break;
    }
    return give(ret, to);
}

static bool int_range(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_range(run, a, false, CLASS_INT_STREAM, ret);
}

static bool int_range_closed(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_range(run, a, true, CLASS_INT_STREAM, ret);
}

static bool long_range(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_range(run, a, false, CLASS_LONG_STREAM, ret);
}

static bool long_range_closed(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_range(run, a, true, CLASS_LONG_STREAM, ret);
}

/* Collectors: a function from the whole list to the result. held[0], held[1] are what it was made with. */

static struct value collector_new(struct run *run, closure_native *native, struct value a, struct value b,
                                  struct value c)
{
    struct value made = closure_native_new(run, native, 1, a, b);
    ((struct closure *)made.object)->held[2] = c;
    made.object->class = CLASS_COLLECTOR;
    return made;
}

static bool run_collector(struct run *run, struct value collector, struct seq *items, struct value *ret)
{
    struct value list = value_of(items);
    if (!value_is(collector, CLASS_COLLECTOR))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a Collector is expected");
    struct closure *closure = (struct closure *)collector.object;
    if (!run_enter(run, 4))
        return false;
    bool ok = run_step(run, 1) && closure->native(run, closure, &list, 1, ret);
    run_leave(run, 4);
    return ok;
}

static bool stream_collect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct seq *items = values_to_seq(run, a[0], CLASS_ARRAY_LIST);
    return items != NULL && run_collector(run, a[1], items, ret);
}

static bool to_list(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)closure, (void)n;
    *ret = a[0];
    return true;
}

static bool to_set(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)closure, (void)n;
    struct dict *set = dict_new(run, CLASS_HASH_SET);
    const struct seq *items = seq_of(a[0]);
    for (size_t i = 0; i < items->count; i++) {
        bool added;
        if (!run_step(run, 1) || !dict_add(run, set, seq_item(items, i), &added))
            return false;
    }
    return give(ret, set);
}

static bool to_collection(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    if (!run_invoke(run, closure->held[0], NULL, 0, ret))
        return false;
    for (size_t i = 0; i < items->count; i++) {
        bool added;
        if (!run_step(run, 1) ||
            !(value_is_set(*ret) ? dict_add(run, dict_of(*ret), seq_item(items, i), &added)
                                 : value_is_seq(*ret) && seq_add(run, seq_of(*ret), seq_item(items, i))))
            return run->thrown == NULL ? run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a Collection is expected") : false;
    }
    return true;
}

static bool joining(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    struct text_buf out;
    text_buf_init(&out, run);
    bool ok = closure->held[1].kind == VALUE_NULL || value_append(run, closure->held[1], &out);
    for (size_t i = 0; ok && i < items->count; i++) {
        ok = run_step(run, 1) &&
             (i == 0 || closure->held[0].kind == VALUE_NULL || value_append(run, closure->held[0], &out));
        struct value item = seq_item(items, i);
        if (ok && !value_instance_of(item, CLASS_CHAR_SEQUENCE))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class java.lang.CharSequence",
                             item.kind == VALUE_NULL ? "null" : class_infos[type_class(value_type(item))].java);
        ok = ok && value_append(run, item, &out);
    }
    ok = ok && (closure->held[2].kind == VALUE_NULL || value_append(run, closure->held[2], &out));
    return ok && give(ret, text_buf_done(&out));
}

static bool counting(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)closure, (void)n;
    return give_long(ret, seq_of(a[0])->count);
}

static bool map_all(struct run *run, struct value function, struct value list, struct seq **ret)
{
    const struct seq *items = seq_of(list);
    *ret = seq_new(run, CLASS_ARRAY_LIST, items->count);
    for (size_t i = 0; *ret != NULL && i < items->count; i++) {
        struct value item = seq_item(items, i);
        if (!run_step(run, 1) || !run_invoke(run, function, &item, 1, &item) || !seq_add(run, *ret, item))
            return false;
    }
    return *ret != NULL;
}

/* Sums and averages: held[1] is the zero of the sum. */
static bool summing(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *numbers;
    return map_all(run, closure->held[0], a[0], &numbers) && total(run, numbers, closure->held[1], ret) &&
           (*ret = number_cast(run, *ret, closure->held[1].kind), true);
}

static bool averaging(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *numbers;
    if (!map_all(run, closure->held[0], a[0], &numbers) || !total(run, numbers, value_double(0), ret))
        return false;
    return give_double(ret, numbers->count == 0 ? 0 : ret->d / numbers->count);
}

static bool mapping(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *items;
    return map_all(run, closure->held[0], a[0], &items) && run_collector(run, closure->held[1], items, ret);
}

static bool collecting_then(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value middle;
    return run_collector(run, closure->held[0], seq_of(a[0]), &middle) &&
           run_invoke(run, closure->held[1], &middle, 1, ret);
}

static bool finish_groups(struct run *run, struct dict *groups, struct value downstream)
{
    for (struct entry *entry = dict_first(groups); entry != NULL; entry = dict_next(groups, entry))
        if (downstream.kind != VALUE_NULL && !run_collector(run, downstream, seq_of(entry->value), &entry->value))
            return false;
    return true;
}

static bool group_into(struct run *run, struct dict *groups, struct value key, struct value item)
{
    struct entry *entry;
    if (!dict_find(run, groups, key, &entry))
        return false;
    if (entry != NULL)
        return seq_add(run, seq_of(entry->value), item);
    struct seq *group = seq_new(run, CLASS_ARRAY_LIST, 0);
    return seq_add(run, group, item) && dict_put(run, groups, key, value_of(group), NULL);
}

static bool grouping(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    *ret = value_of(dict_new(run, CLASS_HASH_MAP));
    if (closure->held[2].kind != VALUE_NULL && !run_invoke(run, closure->held[2], NULL, 0, ret))
        return false;
    if (!value_is_map(*ret))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a Map is expected");
    for (size_t i = 0; i < items->count; i++) {
        struct value item = seq_item(items, i), key;
        if (!run_step(run, 1) || !run_invoke(run, closure->held[0], &item, 1, &key) ||
            !group_into(run, dict_of(*ret), key, item))
            return false;
    }
    return finish_groups(run, dict_of(*ret), closure->held[1]);
}

static bool partitioning(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    for (int side = 0; side < 2; side++)
        if (!dict_put(run, groups, value_boolean(side), value_of(seq_new(run, CLASS_ARRAY_LIST, 0)), NULL))
            return false;
    for (size_t i = 0; i < items->count; i++) {
        struct value item = seq_item(items, i);
        bool holds;
        if (!run_step(run, 1) || !invoke_test(run, closure->held[0], &item, 1, &holds) ||
            !group_into(run, groups, value_boolean(holds), item))
            return false;
    }
    return finish_groups(run, groups, closure->held[1]);
}

/* The map that a supplier of to_map's makes, or one of its own. */
static bool map_for(struct run *run, struct value supplier, struct value *ret)
{
    if (supplier.kind == VALUE_NULL)
        return give(ret, dict_new(run, CLASS_HASH_MAP));
    if (!run_invoke(run, supplier, NULL, 0, ret))
        return false;
    return value_is_map(*ret) || run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "toMap wants a map");
}

static bool to_map(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    struct value made;
    if (!map_for(run, closure->held[3], &made))
        return false;
    struct dict *map = dict_of(made);
    for (size_t i = 0; i < items->count; i++) {
        struct value item = seq_item(items, i), key, value;
        struct entry *entry;
        if (!run_step(run, 1) || !run_invoke(run, closure->held[0], &item, 1, &key) ||
            !run_invoke(run, closure->held[1], &item, 1, &value) || !dict_find(run, map, key, &entry))
            return false;
        if (entry != NULL && closure->held[2].kind == VALUE_NULL) {
            struct text *shown = value_to_text(run, key);
            return shown != NULL && run_throw(run, CLASS_ILLEGAL_STATE_EXCEPTION, "Duplicate key %.*s",
                                              SLICE_ARG(text_utf8(run, shown)));
        }
        if (entry != NULL) {
            struct value pair[2] = {entry->value, value};
            if (!run_invoke(run, closure->held[2], pair, 2, &value))
                return false;
        }
        if (!dict_put(run, map, key, value, NULL))
            return false;
    }
    return give(ret, map);
}

static bool summarizing(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return statistics_of(run, (enum class_id)closure->held[1].i, seq_of(a[0]), closure->held[0], ret);
}

/* held[0] is the operator, held[1] what it starts with, held[2] what an item is made into; without a start an Optional. */
static bool reducing(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *items = seq_of(a[0]);
    bool started = closure->held[1].kind == VALUE_OBJECT && value_is_seq(closure->held[1]);
    struct value so_far = started ? seq_item(seq_of(closure->held[1]), 0) : seq_item(items, 0);
    for (size_t i = started ? 0 : 1; i < items->count; i++) {
        struct value pair[2] = {so_far, seq_item(items, i)};
        if (!run_step(run, 1) ||
            (closure->held[2].kind != VALUE_NULL && !run_invoke(run, closure->held[2], &pair[1], 1, &pair[1])) ||
            !run_invoke(run, closure->held[0], pair, 2, &so_far))
            return false;
    }
    if (!started)
        return optional_for(run, CLASS_STREAM, items->count > 0 ? &so_far : NULL, ret);
    *ret = so_far;
    return true;
}

static bool collectors_reducing(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *start = NULL;
    if (n > 1) {
        start = seq_new(run, CLASS_ARRAY_LIST, 1);
        if (start == NULL || !seq_add(run, start, a[1]))
            return false;
    }
    *ret = collector_new(run, reducing, a[n], value_of(start), n == 3 ? a[2] : VALUE_NONE);
    return true;
}

static bool best_by(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value arguments[2] = {a[0], closure->held[0]};
    return extreme(run, arguments, 1, closure->held[1].i != 0 ? 1 : -1, ret) &&
           (ret->object->class = CLASS_OPTIONAL, true);
}

#define COLLECTOR(name, native, x, y, z)                                                           \
    static bool collectors_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                              \
        (void)a, (void)n;                                                                          \
        *ret = collector_new(run, native, x, y, z);                                                \
        return true;                                                                               \
    }

COLLECTOR(to_list, to_list, VALUE_NONE, VALUE_NONE, VALUE_NONE)
COLLECTOR(to_set, to_set, VALUE_NONE, VALUE_NONE, VALUE_NONE)
COLLECTOR(to_collection, to_collection, a[1], VALUE_NONE, VALUE_NONE)
COLLECTOR(joining, joining, n > 0 ? a[1] : VALUE_NONE, n > 1 ? a[2] : VALUE_NONE, n > 1 ? a[3] : VALUE_NONE)
COLLECTOR(counting, counting, VALUE_NONE, VALUE_NONE, VALUE_NONE)
COLLECTOR(summing_int, summing, a[1], value_int(0), VALUE_NONE)
COLLECTOR(summing_long, summing, a[1], value_long(0), VALUE_NONE)
COLLECTOR(summing_double, summing, a[1], value_double(0), VALUE_NONE)
COLLECTOR(averaging, averaging, a[1], VALUE_NONE, VALUE_NONE)
COLLECTOR(mapping, mapping, a[1], a[2], VALUE_NONE)
COLLECTOR(collecting_then, collecting_then, a[1], a[2], VALUE_NONE)
COLLECTOR(grouping, grouping, a[1], n == 2 ? a[2] : n == 3 ? a[3] : VALUE_NONE, n == 3 ? a[2] : VALUE_NONE)
COLLECTOR(partitioning, partitioning, a[1], n == 2 ? a[2] : VALUE_NONE, VALUE_NONE)
COLLECTOR(to_map, to_map, a[1], a[2], n >= 3 ? a[3] : VALUE_NONE)
COLLECTOR(summarizing_int, summarizing, a[1], value_int(CLASS_INT_STATISTICS), VALUE_NONE)
COLLECTOR(summarizing_long, summarizing, a[1], value_int(CLASS_LONG_STATISTICS), VALUE_NONE)
COLLECTOR(summarizing_double, summarizing, a[1], value_int(CLASS_DOUBLE_STATISTICS), VALUE_NONE)

static bool collectors_to_map_in(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!collectors_to_map(run, a, n, ret))
        return false;
    ((struct closure *)ret->object)->held[3] = a[4];
    return true;
}

COLLECTOR(max_by, best_by, a[1], value_int(1), VALUE_NONE)
COLLECTOR(min_by, best_by, a[1], value_int(0), VALUE_NONE)

static const struct method stream_methods[] = {
    M1("allMatch", METHOD_BOTH, BOOLEAN, PREDICATE, stream_all_match),
    M1("anyMatch", METHOD_BOTH, BOOLEAN, PREDICATE, stream_any_match),
    M1("noneMatch", METHOD_BOTH, BOOLEAN, PREDICATE, stream_none_match),
    M1("collect", METHOD_BOTH, DEF, COLLECTOR, stream_collect),
    M2("concat", STATIC, STREAM, STREAM, STREAM, stream_concat),
    M0("count", METHOD_PAINLESS, LONG, stream_count),
    M3("collect", METHOD_BOTH, DEF, SUPPLIER, BI_CONSUMER, BI_CONSUMER, stream_collect_into),
    M0("distinct", METHOD_BOTH, STREAM, stream_distinct),
    M0("empty", STATIC, STREAM, stream_empty),
    M1("filter", METHOD_BOTH, STREAM, PREDICATE, stream_filter),
    M0("findAny", METHOD_BOTH, OPTIONAL, stream_find_first),
    M0("findFirst", METHOD_BOTH, OPTIONAL, stream_find_first),
    M1("flatMap", METHOD_BOTH, STREAM, FUNCTION, stream_flat_map),
    M1("flatMapToInt", METHOD_BOTH, INT_STREAM, FUNCTION, stream_flat_map_to_int),
    M1("flatMapToLong", METHOD_BOTH, LONG_STREAM, FUNCTION, stream_flat_map_to_long),
    M1("flatMapToDouble", METHOD_BOTH, DOUBLE_STREAM, FUNCTION, stream_flat_map_to_double),
    M1("forEach", METHOD_BOTH, VOID, CONSUMER, stream_for_each),
    M1("forEachOrdered", METHOD_BOTH, VOID, CONSUMER, stream_for_each),
    M0("iterator", METHOD_BOTH, ITERATOR, stream_iterator),
    M1("limit", METHOD_BOTH, STREAM, LONG, stream_limit),
    M1("map", METHOD_BOTH, STREAM, FUNCTION, stream_map),
    M1("mapToInt", METHOD_BOTH, INT_STREAM, TO_INT_FUNCTION, stream_map_to_int),
    M1("mapToLong", METHOD_BOTH, LONG_STREAM, TO_LONG_FUNCTION, stream_map_to_long),
    M1("mapToDouble", METHOD_BOTH, DOUBLE_STREAM, TO_DOUBLE_FUNCTION, stream_map_to_double),
    M1("max", METHOD_BOTH, OPTIONAL, COMPARATOR, stream_max),
    M1("min", METHOD_BOTH, OPTIONAL, COMPARATOR, stream_min),
    M1("of", STATIC, STREAM, DEF_ARRAY, stream_of),
    M1("peek", METHOD_BOTH, STREAM, CONSUMER, stream_peek),
    M1("reduce", METHOD_BOTH, OPTIONAL, BINARY_OPERATOR, stream_reduce),
    M2("reduce", METHOD_BOTH, DEF, DEF, BINARY_OPERATOR, stream_reduce),
    M3("reduce", METHOD_BOTH, DEF, DEF, BI_FUNCTION, BINARY_OPERATOR, stream_reduce_parts),
    M1("skip", METHOD_BOTH, STREAM, LONG, stream_skip),
    M0("sorted", METHOD_BOTH, STREAM, stream_sorted),
    M1("sorted", METHOD_BOTH, STREAM, COMPARATOR, stream_sorted),
    M0("toArray", METHOD_BOTH, DEF_ARRAY, stream_to_array),
    M1("toArray", METHOD_BOTH, DEF_ARRAY, INT_FUNCTION, stream_to_array_of),
};

/* The three primitive streams differ in their types only. */
#define PRIMITIVE_STREAM(self, kind, array, predicate, unary, binary, consumer, function, optional)                    \
    M1("allMatch", METHOD_BOTH, BOOLEAN, predicate, stream_all_match),                                                 \
        M1("anyMatch", METHOD_BOTH, BOOLEAN, predicate, stream_any_match),                                             \
        M1("noneMatch", METHOD_BOTH, BOOLEAN, predicate, stream_none_match),                                           \
        M0("average", METHOD_BOTH, OPTIONAL_DOUBLE, stream_average), M0("boxed", METHOD_BOTH, STREAM, stream_boxed),   \
        M2("concat", STATIC, self, self, self, stream_concat), M0("count", METHOD_BOTH, LONG, stream_count),           \
        M0("distinct", METHOD_BOTH, self, stream_distinct), M1("filter", METHOD_BOTH, self, predicate, stream_filter), \
        M0("findAny", METHOD_BOTH, optional, stream_find_first),                                                       \
        M0("findFirst", METHOD_BOTH, optional, stream_find_first),                                                     \
        M1("forEach", METHOD_BOTH, VOID, consumer, stream_for_each),                                                   \
        M1("forEachOrdered", METHOD_BOTH, VOID, consumer, stream_for_each), M0("empty", STATIC, self, stream_empty),   \
        M1("flatMap", METHOD_BOTH, self, function, stream_flat_map),                                                   \
        M1("limit", METHOD_BOTH, self, LONG, stream_limit), M1("map", METHOD_BOTH, self, unary, stream_map),           \
        M1("mapToObj", METHOD_BOTH, STREAM, function, stream_map_to_obj),                                              \
        M0("max", METHOD_BOTH, optional, stream_max), M0("min", METHOD_BOTH, optional, stream_min),                    \
        M1("of", STATIC, self, array, stream_of), M1("peek", METHOD_BOTH, self, consumer, stream_peek),                \
        M1("reduce", METHOD_BOTH, optional, binary, stream_reduce),                                                    \
        M2("reduce", METHOD_BOTH, kind, kind, binary, stream_reduce),                                                  \
        M1("skip", METHOD_BOTH, self, LONG, stream_skip), M0("sorted", METHOD_BOTH, self, stream_sorted),              \
        M0("sum", METHOD_BOTH, kind, stream_sum), M0("iterator", METHOD_BOTH, ITERATOR, stream_iterator),              \
        M0("toArray", METHOD_BOTH, array, stream_to_array)

static const struct method int_stream_methods[] = {
    PRIMITIVE_STREAM(INT_STREAM, INT, INT_ARRAY, INT_PREDICATE, INT_UNARY_OPERATOR, INT_BINARY_OPERATOR, INT_CONSUMER,
                     INT_FUNCTION, OPTIONAL_INT),
    M0("summaryStatistics", METHOD_BOTH, INT_STATISTICS, stream_statistics),
    M0("asDoubleStream", METHOD_BOTH, DOUBLE_STREAM, stream_as_double),
    M0("asLongStream", METHOD_BOTH, LONG_STREAM, stream_as_long),
    M1("mapToDouble", METHOD_BOTH, DOUBLE_STREAM, INT_TO_DOUBLE_FUNCTION, stream_map_to_double),
    M1("mapToLong", METHOD_BOTH, LONG_STREAM, INT_TO_LONG_FUNCTION, stream_map_to_long),
    M2("range", STATIC, INT_STREAM, INT, INT, int_range),
    M2("rangeClosed", STATIC, INT_STREAM, INT, INT, int_range_closed),
};

static const struct method long_stream_methods[] = {
    PRIMITIVE_STREAM(LONG_STREAM, LONG, LONG_ARRAY, LONG_PREDICATE, LONG_UNARY_OPERATOR, LONG_BINARY_OPERATOR,
                     LONG_CONSUMER, LONG_FUNCTION, OPTIONAL_LONG),
    M0("summaryStatistics", METHOD_BOTH, LONG_STATISTICS, stream_statistics),
    M0("asDoubleStream", METHOD_BOTH, DOUBLE_STREAM, stream_as_double),
    M1("mapToDouble", METHOD_BOTH, DOUBLE_STREAM, LONG_TO_DOUBLE_FUNCTION, stream_map_to_double),
    M1("mapToInt", METHOD_BOTH, INT_STREAM, LONG_TO_INT_FUNCTION, stream_map_to_int),
    M2("range", STATIC, LONG_STREAM, LONG, LONG, long_range),
    M2("rangeClosed", STATIC, LONG_STREAM, LONG, LONG, long_range_closed),
};

static const struct method double_stream_methods[] = {
    PRIMITIVE_STREAM(DOUBLE_STREAM, DOUBLE, DOUBLE_ARRAY, DOUBLE_PREDICATE, DOUBLE_UNARY_OPERATOR,
                     DOUBLE_BINARY_OPERATOR, DOUBLE_CONSUMER, DOUBLE_FUNCTION, OPTIONAL_DOUBLE),
    M0("summaryStatistics", METHOD_BOTH, DOUBLE_STATISTICS, stream_statistics),
    M1("mapToInt", METHOD_BOTH, INT_STREAM, DOUBLE_TO_INT_FUNCTION, stream_map_to_int),
    M1("mapToLong", METHOD_BOTH, LONG_STREAM, DOUBLE_TO_LONG_FUNCTION, stream_map_to_long),
};

static const struct method collectors_methods[] = {
    M0("toList", STATIC, COLLECTOR, collectors_to_list),
    M0("toSet", STATIC, COLLECTOR, collectors_to_set),
    M1("toCollection", STATIC, COLLECTOR, SUPPLIER, collectors_to_collection),
    M0("joining", STATIC, COLLECTOR, collectors_joining),
    M1("joining", STATIC, COLLECTOR, CHAR_SEQUENCE, collectors_joining),
    M3("joining", STATIC, COLLECTOR, CHAR_SEQUENCE, CHAR_SEQUENCE, CHAR_SEQUENCE, collectors_joining),
    M0("counting", STATIC, COLLECTOR, collectors_counting),
    M1("summingInt", STATIC, COLLECTOR, TO_INT_FUNCTION, collectors_summing_int),
    M1("summingLong", STATIC, COLLECTOR, TO_LONG_FUNCTION, collectors_summing_long),
    M1("summingDouble", STATIC, COLLECTOR, TO_DOUBLE_FUNCTION, collectors_summing_double),
    M1("averagingInt", STATIC, COLLECTOR, TO_INT_FUNCTION, collectors_averaging),
    M1("averagingLong", STATIC, COLLECTOR, TO_LONG_FUNCTION, collectors_averaging),
    M1("averagingDouble", STATIC, COLLECTOR, TO_DOUBLE_FUNCTION, collectors_averaging),
    M2("mapping", STATIC, COLLECTOR, FUNCTION, COLLECTOR, collectors_mapping),
    M2("collectingAndThen", STATIC, COLLECTOR, COLLECTOR, FUNCTION, collectors_collecting_then),
    M1("groupingBy", STATIC, COLLECTOR, FUNCTION, collectors_grouping),
    M2("groupingBy", STATIC, COLLECTOR, FUNCTION, COLLECTOR, collectors_grouping),
    M3("groupingBy", STATIC, COLLECTOR, FUNCTION, SUPPLIER, COLLECTOR, collectors_grouping),
    M1("partitioningBy", STATIC, COLLECTOR, PREDICATE, collectors_partitioning),
    M2("partitioningBy", STATIC, COLLECTOR, PREDICATE, COLLECTOR, collectors_partitioning),
    M2("toMap", STATIC, COLLECTOR, FUNCTION, FUNCTION, collectors_to_map),
    M3("toMap", STATIC, COLLECTOR, FUNCTION, FUNCTION, BINARY_OPERATOR, collectors_to_map),
    M4("toMap", STATIC, COLLECTOR, FUNCTION, FUNCTION, BINARY_OPERATOR, SUPPLIER, collectors_to_map_in),
    M1("summarizingInt", STATIC, COLLECTOR, TO_INT_FUNCTION, collectors_summarizing_int),
    M1("summarizingLong", STATIC, COLLECTOR, TO_LONG_FUNCTION, collectors_summarizing_long),
    M1("summarizingDouble", STATIC, COLLECTOR, TO_DOUBLE_FUNCTION, collectors_summarizing_double),
    M1("reducing", STATIC, COLLECTOR, BINARY_OPERATOR, collectors_reducing),
    M2("reducing", STATIC, COLLECTOR, DEF, BINARY_OPERATOR, collectors_reducing),
    M3("reducing", STATIC, COLLECTOR, DEF, FUNCTION, BINARY_OPERATOR, collectors_reducing),
    M1("maxBy", STATIC, COLLECTOR, COMPARATOR, collectors_max_by),
    M1("minBy", STATIC, COLLECTOR, COMPARATOR, collectors_min_by),
};

const struct method_table methods_stream[] = {
    METHOD_TABLE(STREAM, stream_methods),           METHOD_TABLE(INT_STREAM, int_stream_methods),
    METHOD_TABLE(LONG_STREAM, long_stream_methods), METHOD_TABLE(DOUBLE_STREAM, double_stream_methods),
    METHOD_TABLE(COLLECTORS, collectors_methods),   {0, 0, NULL},
};
