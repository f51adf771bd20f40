/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and collectors.
 *
 * A stream is a list that scripts cannot use as a list. Each stage computes the next list at once.
 * Only the order in which functions with side effects are called differs from Java.
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

/* Returns: the type of the elements of a stream class. */
static type_id element_type(enum class_id id)
{
    return id == CLASS_INT_STREAM      ? CLASS_INT
           : id == CLASS_LONG_STREAM   ? CLASS_LONG
           : id == CLASS_DOUBLE_STREAM ? CLASS_DOUBLE
                                       : CLASS_DEF;
}

static bool put_item(struct run *run, struct seq *stream, struct value item)
{
    type_id type = element_type((enum class_id)stream->object.class);
    return (type == CLASS_DEF || convert_site(run, item, type, &item)) && seq_add(run, stream, item);
}

/* Maps to a stream of the row's result class; the next two natives do the same. */
static bool stream_map(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    enum class_id id = type_class(call->row->result);
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        if (!run_step(run, 1) || !run_invoke(run, call->args[0], &item, 1, &item) || !put_item(run, to, item))
            return false;
    }
    return give(ret, to);
}

static bool stream_copy(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    enum class_id id = type_class(call->row->result);
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++)
        if (!run_step(run, 1) || !put_item(run, to, seq_item(from, i)))
            return false;
    return give(ret, to);
}

static bool stream_filter(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, stream_class(call->self));
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        bool holds;
        if (!run_step(run, 1) || !invoke_test(run, call->args[0], &item, 1, &holds) ||
            (holds && !seq_add(run, to, item)))
            return false;
    }
    return give(ret, to);
}

static bool stream_flat_map(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    enum class_id id = type_class(call->row->result);
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, id);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i), inner;
        struct iter iter;
        if (!run_step(run, 1) || !run_invoke(run, call->args[0], &item, 1, &inner))
            return false;
        if (inner.kind == VALUE_NULL)
            continue;
        if (!iter_init(&iter, run, inner))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "flatMap wants a stream");
        walk(&iter, of_inner)
        {
            if (!put_item(run, to, of_inner))
                return false;
        }
        if (run->thrown != NULL)
            return false;
    }
    return give(ret, to);
}

static bool stream_empty(struct call *call, struct value *ret)
{
    return give(ret, stream_new(call->run, type_class(((struct class_object *)call->self.object)->type)));
}

static bool stream_distinct(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, stream_class(call->self));
    struct dict *seen = dict_new(run, CLASS_LINKED_HASH_SET);
    for (size_t i = 0; i < from->count; i++) {
        bool added;
        if (!dict_add(run, seen, seq_item(from, i), &added) || (added && !seq_add(run, to, seq_item(from, i))))
            return false;
    }
    return give(ret, to);
}

static bool stream_sorted(struct call *call, struct value *ret)
{
    struct seq *to = values_to_seq(call->run, call->self, stream_class(call->self));
    return to != NULL && values_sort(call->run, to->items, to->count, call->count == 1 ? call->args[0] : VALUE_NONE) &&
           give(ret, to);
}

static bool stream_part(struct call *call, size_t begin, size_t end, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct seq *to = stream_new(run, stream_class(call->self));
    for (size_t i = begin; i < end && i < from->count; i++)
        if (!run_step(run, 1) || !seq_add(run, to, seq_item(from, i)))
            return false;
    return give(ret, to);
}

static bool stream_limit(struct call *call, struct value *ret)
{
    if (call->args[0].i < 0)
        return run_throw(call->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%lld", (long long)call->args[0].i);
    return stream_part(call, 0, (size_t)call->args[0].i, ret);
}

static bool stream_skip(struct call *call, struct value *ret)
{
    if (call->args[0].i < 0)
        return run_throw(call->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%lld", (long long)call->args[0].i);
    return stream_part(call, (size_t)call->args[0].i, SIZE_MAX, ret);
}

static bool stream_for_each(struct call *call, struct value *ret)
{
    const struct seq *from = seq_of(call->self);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i), ignored;
        if (!run_step(call->run, 1) || !run_invoke(call->run, call->args[0], &item, 1, &ignored))
            return false;
    }
    return give_nothing(ret);
}

static bool stream_peek(struct call *call, struct value *ret)
{
    return stream_for_each(call, ret) && give(ret, call->self.object);
}

static bool stream_count(struct call *call, struct value *ret)
{
    return give_long(ret, seq_of(call->self)->count);
}

enum match { MATCH_ANY, MATCH_ALL, MATCH_NONE };

/* Gives whether any, all or no elements satisfy the predicate; the datum is an enum match. */
static bool stream_match(struct call *call, struct value *ret)
{
    bool stop_at = call->row->datum.number != MATCH_ALL, result = call->row->datum.number == MATCH_ANY;
    const struct seq *from = seq_of(call->self);
    for (size_t i = 0; i < from->count; i++) {
        struct value item = seq_item(from, i);
        bool holds;
        if (!run_step(call->run, 1) || !invoke_test(call->run, call->args[0], &item, 1, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, result);
    }
    return give_boolean(ret, !result);
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

static bool stream_find_first(struct call *call, struct value *ret)
{
    struct value first = seq_item(seq_of(call->self), 0);
    return optional_for(call->run, stream_class(call->self), seq_of(call->self)->count > 0 ? &first : NULL, ret);
}

static bool stream_min_or_max(struct call *call, int sign, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct value best = seq_item(from, 0);
    for (size_t i = 1; i < from->count; i++) {
        struct value pair[2] = {seq_item(from, i), best}, result;
        int order;
        if (!run_step(run, 1))
            return false;
        if (call->count == 1) {
            if (!run_invoke(run, call->args[0], pair, 2, &result) || !convert_site(run, result, CLASS_INT, &result))
                return false;
            order = (result.i > 0) - (result.i < 0);
        } else if (!value_order(run, pair[0], pair[1], &order)) {
            return false;
        }
        best = order * sign > 0 ? pair[0] : best;
    }
    return optional_for(run, stream_class(call->self), from->count > 0 ? &best : NULL, ret);
}

/* The datum: 1 for the maximum, -1 for the minimum. */
static bool stream_extreme(struct call *call, struct value *ret)
{
    return stream_min_or_max(call, (int)call->row->datum.number, ret);
}

static bool stream_total(struct run *run, const struct seq *seq, struct value zero, struct value *ret)
{
    *ret = zero;
    for (size_t i = 0; i < seq->count; i++)
        if (!run_step(run, 1) || !number_binary(run, OP_ADD, *ret, seq_item(seq, i), ret))
            return false;
    return true;
}

static bool stream_sum(struct call *call, struct value *ret)
{
    enum class_id id = stream_class(call->self);
    return stream_total(call->run, seq_of(call->self),
                        id == CLASS_INT_STREAM    ? value_int(0)
                        : id == CLASS_LONG_STREAM ? value_long(0)
                                                  : value_double(0),
                        ret);
}

static bool stream_average(struct call *call, struct value *ret)
{
    const struct seq *from = seq_of(call->self);
    struct value sum;
    if (!stream_total(call->run, from, value_double(0), &sum))
        return false;
    sum.d = from->count > 0 ? sum.d / (double)from->count : 0;
    return optional_for(call->run, CLASS_DOUBLE_STREAM, from->count > 0 ? &sum : NULL, ret);
}

static bool stream_reduce(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct value so_far = call->count == 1 ? seq_item(from, 0) : call->args[0],
                 function = call->count == 1 ? call->args[0] : call->args[1];
    for (size_t i = call->count == 1; i < from->count; i++) {
        struct value pair[2] = {so_far, seq_item(from, i)};
        if (!run_step(run, 1) || !run_invoke(run, function, pair, 2, &so_far))
            return false;
    }
    if (call->count == 1)
        return optional_for(run, stream_class(call->self), from->count > 0 ? &so_far : NULL, ret);
    *ret = so_far;
    return true;
}

/* reduce with a combiner of partial results. There is no parallel execution, so the combiner is
   not called. */
static bool stream_reduce_parts(struct call *call, struct value *ret)
{
    return stream_reduce(&(struct call){call->run, call->row, call->self, call->args, 2}, ret);
}

/* Makes a container by the first function and adds the elements by the second. */
static bool stream_collect_into(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    if (!run_invoke(run, call->args[0], NULL, 0, ret))
        return false;
    for (size_t i = 0; i < from->count; i++) {
        struct value pair[2] = {*ret, seq_item(from, i)}, ignored;
        if (!run_step(run, 1) || !run_invoke(run, call->args[1], pair, 2, &ignored))
            return false;
    }
    return true;
}

static bool stream_statistics(struct call *call, struct value *ret)
{
    enum class_id id = stream_class(call->self) == CLASS_INT_STREAM    ? CLASS_INT_STATISTICS
                       : stream_class(call->self) == CLASS_LONG_STREAM ? CLASS_LONG_STATISTICS
                                                                       : CLASS_DOUBLE_STATISTICS;
    return statistics_of(call->run, id, seq_of(call->self), VALUE_NONE, ret);
}

/* Fills the array that the function makes. */
static bool stream_to_array_of(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *from = seq_of(call->self);
    struct value count = value_int(from->count);
    if (!run_invoke(run, call->args[0], &count, 1, ret))
        return false;
    struct array *array = value_is_array(*ret) ? (struct array *)ret->object : NULL;
    if (array == NULL || array->count != from->count)
        return run_throw(run, CLASS_ILLEGAL_STATE_EXCEPTION, "the function made no array of %u elements", from->count);
    for (size_t i = 0; i < from->count; i++)
        if (!run_step(run, 1) || !convert_site(run, seq_item(from, i), array->element, &array->items[i]))
            return false;
    return true;
}

static bool stream_to_array(struct call *call, struct value *ret)
{
    const struct seq *from = seq_of(call->self);
    struct array *array = array_new(call->run, element_type(stream_class(call->self)), from->count);
    for (size_t i = 0; array != NULL && i < from->count; i++)
        array->items[i] = seq_item(from, i);
    return give(ret, array);
}

static bool stream_iterator(struct call *call, struct value *ret)
{
    struct cursor *cursor = run_object(call->run, sizeof *cursor, CLASS_CURSOR);
    iter_init(&cursor->iter, call->run, call->self);
    cursor->iter.expected = seq_of(call->self)->changes;
    return give(ret, cursor);
}

static bool stream_of(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret,
                values_to_seq(call->run, call->args[0], type_class(((struct class_object *)call->self.object)->type)));
}

static bool stream_concat(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    NOT_NULL(1);
    struct seq *both = values_to_seq(run, call->args[0], stream_class(call->args[0]));
    const struct seq *more = seq_of(call->args[1]);
    for (size_t i = 0; both != NULL && i < more->count; i++)
        if (!run_step(run, 1) || !seq_add(run, both, seq_item(more, i)))
            return false;
    return give(ret, both);
}

/* Gives a range of numbers. The datum: whether it includes the end. */
static bool number_range(struct call *call, struct value *ret)
{
    bool closed = call->row->datum.number != 0;
    enum class_id id = type_class(call->row->result);
    struct run *run = call->run;
    struct seq *to = stream_new(run, id);
    for (int64_t i = call->args[0].i; closed ? i <= call->args[1].i : i < call->args[1].i; i++) {
        if (!run_step(run, 1) || !seq_add(run, to, id == CLASS_INT_STREAM ? value_int(i) : value_long(i)))
            return false;
        if (i == INT64_MAX)
            break;
    }
    return give(ret, to);
}

/* Collectors: closures from the list of elements to the result; held[0] and held[1] are the
   constructor's arguments */

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

static bool stream_collect(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct seq *items = values_to_seq(call->run, call->self, CLASS_ARRAY_LIST);
    return items != NULL && run_collector(call->run, call->args[0], items, ret);
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

static bool collect_joining(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
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

static bool collect_counting(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
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

/* Sums or averages; held[1] is 0 in the class of the sum. */
static bool collect_summing(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *numbers;
    return map_all(run, closure->held[0], a[0], &numbers) && stream_total(run, numbers, closure->held[1], ret) &&
           (*ret = number_cast(run, *ret, closure->held[1].kind), true);
}

static bool collect_averaging(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *numbers;
    if (!map_all(run, closure->held[0], a[0], &numbers) || !stream_total(run, numbers, value_double(0), ret))
        return false;
    return give_double(ret, numbers->count == 0 ? 0 : ret->d / numbers->count);
}

static bool collect_mapping(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
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
    for (struct map_entry *entry = dict_first(groups); entry != NULL; entry = dict_next(groups, entry))
        if (downstream.kind != VALUE_NULL && !run_collector(run, downstream, seq_of(entry->value), &entry->value))
            return false;
    return true;
}

static bool group_into(struct run *run, struct dict *groups, struct value key, struct value item)
{
    struct map_entry *entry;
    if (!dict_find(run, groups, key, &entry))
        return false;
    if (entry != NULL)
        return seq_add(run, seq_of(entry->value), item);
    struct seq *group = seq_new(run, CLASS_ARRAY_LIST, 0);
    return seq_add(run, group, item) && dict_put(run, groups, key, value_of(group), NULL);
}

static bool collect_grouping(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
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

static bool collect_partitioning(struct run *run, struct closure *closure, struct value *a, unsigned n,
                                 struct value *ret)
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

/* Gives the map that toMap fills: the supplier's or, without a supplier, a new HashMap. */
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
        struct map_entry *entry;
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

static bool collect_summarizing(struct run *run, struct closure *closure, struct value *a, unsigned n,
                                struct value *ret)
{
    (void)n;
    return statistics_of(run, (enum class_id)closure->held[1].i, seq_of(a[0]), closure->held[0], ret);
}

/* Reduces: held[0] is the operator, held[1] a list with the identity, held[2] a mapper or null.
   Without an identity the result is an Optional. */
static bool collect_reducing(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
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

static bool collectors_reducing(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *start = NULL;
    if (call->count > 1) {
        start = seq_new(run, CLASS_ARRAY_LIST, 1);
        if (start == NULL || !seq_add(run, start, call->args[0]))
            return false;
    }
    *ret = collector_new(run, collect_reducing, call_last(call), value_of(start),
                         call->count == 3 ? call->args[1] : VALUE_NONE);
    return true;
}

static bool best_by(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value arguments[2] = {a[0], closure->held[0]};
    return stream_min_or_max(CALL(run, arguments, 1), closure->held[1].i != 0 ? 1 : -1, ret) &&
           (ret->object->class = CLASS_OPTIONAL, true);
}

static bool collectors_to_list(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, to_list, VALUE_NONE, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool collectors_to_set(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, to_set, VALUE_NONE, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool collectors_to_collection(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, to_collection, call->args[0], VALUE_NONE, VALUE_NONE);
    return true;
}

static bool collectors_joining(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_joining, call->count > 0 ? call->args[0] : VALUE_NONE,
                         call->count > 1 ? call->args[1] : VALUE_NONE, call->count > 1 ? call->args[2] : VALUE_NONE);
    return true;
}

static bool collectors_counting(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_counting, VALUE_NONE, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool collectors_summing_int(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summing, call->args[0], value_int(0), VALUE_NONE);
    return true;
}

static bool collectors_summing_long(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summing, call->args[0], value_long(0), VALUE_NONE);
    return true;
}

static bool collectors_summing_double(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summing, call->args[0], value_double(0), VALUE_NONE);
    return true;
}

static bool collectors_averaging(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_averaging, call->args[0], VALUE_NONE, VALUE_NONE);
    return true;
}

static bool collectors_mapping(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_mapping, call->args[0], call->args[1], VALUE_NONE);
    return true;
}

static bool collectors_collecting_then(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collecting_then, call->args[0], call->args[1], VALUE_NONE);
    return true;
}

static bool collectors_grouping(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_grouping, call->args[0],
                         call->count == 2   ? call->args[1]
                         : call->count == 3 ? call->args[2]
                                            : VALUE_NONE,
                         call->count == 3 ? call->args[1] : VALUE_NONE);
    return true;
}

static bool collectors_partitioning(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_partitioning, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE,
                         VALUE_NONE);
    return true;
}

static bool collectors_to_map(struct call *call, struct value *ret)
{
    *ret =
        collector_new(call->run, to_map, call->args[0], call->args[1], call->count >= 3 ? call->args[2] : VALUE_NONE);
    return true;
}

static bool collectors_summarizing_int(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summarizing, call->args[0], value_int(CLASS_INT_STATISTICS), VALUE_NONE);
    return true;
}

static bool collectors_summarizing_long(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summarizing, call->args[0], value_int(CLASS_LONG_STATISTICS), VALUE_NONE);
    return true;
}

static bool collectors_summarizing_double(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, collect_summarizing, call->args[0], value_int(CLASS_DOUBLE_STATISTICS), VALUE_NONE);
    return true;
}

static bool collectors_to_map_in(struct call *call, struct value *ret)
{
    if (!collectors_to_map(call, ret))
        return false;
    ((struct closure *)ret->object)->held[3] = call->args[3];
    return true;
}

static bool collectors_max_by(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, best_by, call->args[0], value_int(1), VALUE_NONE);
    return true;
}

static bool collectors_min_by(struct call *call, struct value *ret)
{
    *ret = collector_new(call->run, best_by, call->args[0], value_int(0), VALUE_NONE);
    return true;
}

static const struct method_row stream_methods[] = {
    {"boolean allMatch(Predicate)", BOTH, stream_match, {MATCH_ALL}},
    {"boolean anyMatch(Predicate)", BOTH, stream_match, {MATCH_ANY}},
    {"boolean noneMatch(Predicate)", BOTH, stream_match, {MATCH_NONE}},
    {"def collect(Collector)", BOTH, stream_collect},
    {"static Stream concat(Stream, Stream)", BOTH, stream_concat},
    {"long count()", PAINLESS, stream_count},
    {"def collect(Supplier, BiConsumer, BiConsumer)", BOTH, stream_collect_into},
    {"Stream distinct()", BOTH, stream_distinct},
    {"static Stream empty()", BOTH, stream_empty},
    {"Stream filter(Predicate)", BOTH, stream_filter},
    {"Optional findAny()", BOTH, stream_find_first},
    {"Optional findFirst()", BOTH, stream_find_first},
    {"Stream flatMap(Function)", BOTH, stream_flat_map},
    {"IntStream flatMapToInt(Function)", BOTH, stream_flat_map},
    {"LongStream flatMapToLong(Function)", BOTH, stream_flat_map},
    {"DoubleStream flatMapToDouble(Function)", BOTH, stream_flat_map},
    {"void forEach(Consumer)", BOTH, stream_for_each},
    {"void forEachOrdered(Consumer)", BOTH, stream_for_each},
    {"Iterator iterator()", BOTH, stream_iterator},
    {"Stream limit(long)", BOTH, stream_limit},
    {"Stream map(Function)", BOTH, stream_map},
    {"IntStream mapToInt(ToIntFunction)", BOTH, stream_map},
    {"LongStream mapToLong(ToLongFunction)", BOTH, stream_map},
    {"DoubleStream mapToDouble(ToDoubleFunction)", BOTH, stream_map},
    {"Optional max(Comparator)", BOTH, stream_extreme, {1}},
    {"Optional min(Comparator)", BOTH, stream_extreme, {-1}},
    {"static Stream of(def[])", BOTH, stream_of},
    {"Stream peek(Consumer)", BOTH, stream_peek},
    {"Optional reduce(BinaryOperator)", BOTH, stream_reduce},
    {"def reduce(def, BinaryOperator)", BOTH, stream_reduce},
    {"def reduce(def, BiFunction, BinaryOperator)", BOTH, stream_reduce_parts},
    {"Stream skip(long)", BOTH, stream_skip},
    {"Stream sorted()", BOTH, stream_sorted},
    {"Stream sorted(Comparator)", BOTH, stream_sorted},
    {"def[] toArray()", BOTH, stream_to_array},
    {"def[] toArray(IntFunction)", BOTH, stream_to_array_of},
};

static const struct method_row int_stream_methods[] = {
    {"boolean allMatch(IntPredicate)", BOTH, stream_match, {MATCH_ALL}},
    {"boolean anyMatch(IntPredicate)", BOTH, stream_match, {MATCH_ANY}},
    {"boolean noneMatch(IntPredicate)", BOTH, stream_match, {MATCH_NONE}},
    {"OptionalDouble average()", BOTH, stream_average},
    {"Stream boxed()", BOTH, stream_copy},
    {"static IntStream concat(IntStream, IntStream)", BOTH, stream_concat},
    {"long count()", BOTH, stream_count},
    {"IntStream distinct()", BOTH, stream_distinct},
    {"IntStream filter(IntPredicate)", BOTH, stream_filter},
    {"OptionalInt findAny()", BOTH, stream_find_first},
    {"OptionalInt findFirst()", BOTH, stream_find_first},
    {"void forEach(IntConsumer)", BOTH, stream_for_each},
    {"void forEachOrdered(IntConsumer)", BOTH, stream_for_each},
    {"static IntStream empty()", BOTH, stream_empty},
    {"IntStream flatMap(IntFunction)", BOTH, stream_flat_map},
    {"IntStream limit(long)", BOTH, stream_limit},
    {"IntStream map(IntUnaryOperator)", BOTH, stream_map},
    {"Stream mapToObj(IntFunction)", BOTH, stream_map},
    {"OptionalInt max()", BOTH, stream_extreme, {1}},
    {"OptionalInt min()", BOTH, stream_extreme, {-1}},
    {"static IntStream of(int[])", BOTH, stream_of},
    {"IntStream peek(IntConsumer)", BOTH, stream_peek},
    {"OptionalInt reduce(IntBinaryOperator)", BOTH, stream_reduce},
    {"int reduce(int, IntBinaryOperator)", BOTH, stream_reduce},
    {"IntStream skip(long)", BOTH, stream_skip},
    {"IntStream sorted()", BOTH, stream_sorted},
    {"int sum()", BOTH, stream_sum},
    {"Iterator iterator()", BOTH, stream_iterator},
    {"int[] toArray()", BOTH, stream_to_array},
    {"IntSummaryStatistics summaryStatistics()", BOTH, stream_statistics},
    {"DoubleStream asDoubleStream()", BOTH, stream_copy},
    {"LongStream asLongStream()", BOTH, stream_copy},
    {"DoubleStream mapToDouble(IntToDoubleFunction)", BOTH, stream_map},
    {"LongStream mapToLong(IntToLongFunction)", BOTH, stream_map},
    {"static IntStream range(int, int)", BOTH, number_range, {false}},
    {"static IntStream rangeClosed(int, int)", BOTH, number_range, {true}},
};

static const struct method_row long_stream_methods[] = {
    {"boolean allMatch(LongPredicate)", BOTH, stream_match, {MATCH_ALL}},
    {"boolean anyMatch(LongPredicate)", BOTH, stream_match, {MATCH_ANY}},
    {"boolean noneMatch(LongPredicate)", BOTH, stream_match, {MATCH_NONE}},
    {"OptionalDouble average()", BOTH, stream_average},
    {"Stream boxed()", BOTH, stream_copy},
    {"static LongStream concat(LongStream, LongStream)", BOTH, stream_concat},
    {"long count()", BOTH, stream_count},
    {"LongStream distinct()", BOTH, stream_distinct},
    {"LongStream filter(LongPredicate)", BOTH, stream_filter},
    {"OptionalLong findAny()", BOTH, stream_find_first},
    {"OptionalLong findFirst()", BOTH, stream_find_first},
    {"void forEach(LongConsumer)", BOTH, stream_for_each},
    {"void forEachOrdered(LongConsumer)", BOTH, stream_for_each},
    {"static LongStream empty()", BOTH, stream_empty},
    {"LongStream flatMap(LongFunction)", BOTH, stream_flat_map},
    {"LongStream limit(long)", BOTH, stream_limit},
    {"LongStream map(LongUnaryOperator)", BOTH, stream_map},
    {"Stream mapToObj(LongFunction)", BOTH, stream_map},
    {"OptionalLong max()", BOTH, stream_extreme, {1}},
    {"OptionalLong min()", BOTH, stream_extreme, {-1}},
    {"static LongStream of(long[])", BOTH, stream_of},
    {"LongStream peek(LongConsumer)", BOTH, stream_peek},
    {"OptionalLong reduce(LongBinaryOperator)", BOTH, stream_reduce},
    {"long reduce(long, LongBinaryOperator)", BOTH, stream_reduce},
    {"LongStream skip(long)", BOTH, stream_skip},
    {"LongStream sorted()", BOTH, stream_sorted},
    {"long sum()", BOTH, stream_sum},
    {"Iterator iterator()", BOTH, stream_iterator},
    {"long[] toArray()", BOTH, stream_to_array},
    {"LongSummaryStatistics summaryStatistics()", BOTH, stream_statistics},
    {"DoubleStream asDoubleStream()", BOTH, stream_copy},
    {"DoubleStream mapToDouble(LongToDoubleFunction)", BOTH, stream_map},
    {"IntStream mapToInt(LongToIntFunction)", BOTH, stream_map},
    {"static LongStream range(long, long)", BOTH, number_range, {false}},
    {"static LongStream rangeClosed(long, long)", BOTH, number_range, {true}},
};

static const struct method_row double_stream_methods[] = {
    {"boolean allMatch(DoublePredicate)", BOTH, stream_match, {MATCH_ALL}},
    {"boolean anyMatch(DoublePredicate)", BOTH, stream_match, {MATCH_ANY}},
    {"boolean noneMatch(DoublePredicate)", BOTH, stream_match, {MATCH_NONE}},
    {"OptionalDouble average()", BOTH, stream_average},
    {"Stream boxed()", BOTH, stream_copy},
    {"static DoubleStream concat(DoubleStream, DoubleStream)", BOTH, stream_concat},
    {"long count()", BOTH, stream_count},
    {"DoubleStream distinct()", BOTH, stream_distinct},
    {"DoubleStream filter(DoublePredicate)", BOTH, stream_filter},
    {"OptionalDouble findAny()", BOTH, stream_find_first},
    {"OptionalDouble findFirst()", BOTH, stream_find_first},
    {"void forEach(DoubleConsumer)", BOTH, stream_for_each},
    {"void forEachOrdered(DoubleConsumer)", BOTH, stream_for_each},
    {"static DoubleStream empty()", BOTH, stream_empty},
    {"DoubleStream flatMap(DoubleFunction)", BOTH, stream_flat_map},
    {"DoubleStream limit(long)", BOTH, stream_limit},
    {"DoubleStream map(DoubleUnaryOperator)", BOTH, stream_map},
    {"Stream mapToObj(DoubleFunction)", BOTH, stream_map},
    {"OptionalDouble max()", BOTH, stream_extreme, {1}},
    {"OptionalDouble min()", BOTH, stream_extreme, {-1}},
    {"static DoubleStream of(double[])", BOTH, stream_of},
    {"DoubleStream peek(DoubleConsumer)", BOTH, stream_peek},
    {"OptionalDouble reduce(DoubleBinaryOperator)", BOTH, stream_reduce},
    {"double reduce(double, DoubleBinaryOperator)", BOTH, stream_reduce},
    {"DoubleStream skip(long)", BOTH, stream_skip},
    {"DoubleStream sorted()", BOTH, stream_sorted},
    {"double sum()", BOTH, stream_sum},
    {"Iterator iterator()", BOTH, stream_iterator},
    {"double[] toArray()", BOTH, stream_to_array},
    {"DoubleSummaryStatistics summaryStatistics()", BOTH, stream_statistics},
    {"IntStream mapToInt(DoubleToIntFunction)", BOTH, stream_map},
    {"LongStream mapToLong(DoubleToLongFunction)", BOTH, stream_map},
};

static const struct method_row collectors_methods[] = {
    {"static Collector toList()", BOTH, collectors_to_list},
    {"static Collector toSet()", BOTH, collectors_to_set},
    {"static Collector toCollection(Supplier)", BOTH, collectors_to_collection},
    {"static Collector joining()", BOTH, collectors_joining},
    {"static Collector joining(CharSequence)", BOTH, collectors_joining},
    {"static Collector joining(CharSequence, CharSequence, CharSequence)", BOTH, collectors_joining},
    {"static Collector counting()", BOTH, collectors_counting},
    {"static Collector summingInt(ToIntFunction)", BOTH, collectors_summing_int},
    {"static Collector summingLong(ToLongFunction)", BOTH, collectors_summing_long},
    {"static Collector summingDouble(ToDoubleFunction)", BOTH, collectors_summing_double},
    {"static Collector averagingInt(ToIntFunction)", BOTH, collectors_averaging},
    {"static Collector averagingLong(ToLongFunction)", BOTH, collectors_averaging},
    {"static Collector averagingDouble(ToDoubleFunction)", BOTH, collectors_averaging},
    {"static Collector mapping(Function, Collector)", BOTH, collectors_mapping},
    {"static Collector collectingAndThen(Collector, Function)", BOTH, collectors_collecting_then},
    {"static Collector groupingBy(Function)", BOTH, collectors_grouping},
    {"static Collector groupingBy(Function, Collector)", BOTH, collectors_grouping},
    {"static Collector groupingBy(Function, Supplier, Collector)", BOTH, collectors_grouping},
    {"static Collector partitioningBy(Predicate)", BOTH, collectors_partitioning},
    {"static Collector partitioningBy(Predicate, Collector)", BOTH, collectors_partitioning},
    {"static Collector toMap(Function, Function)", BOTH, collectors_to_map},
    {"static Collector toMap(Function, Function, BinaryOperator)", BOTH, collectors_to_map},
    {"static Collector toMap(Function, Function, BinaryOperator, Supplier)", BOTH, collectors_to_map_in},
    {"static Collector summarizingInt(ToIntFunction)", BOTH, collectors_summarizing_int},
    {"static Collector summarizingLong(ToLongFunction)", BOTH, collectors_summarizing_long},
    {"static Collector summarizingDouble(ToDoubleFunction)", BOTH, collectors_summarizing_double},
    {"static Collector reducing(BinaryOperator)", BOTH, collectors_reducing},
    {"static Collector reducing(def, BinaryOperator)", BOTH, collectors_reducing},
    {"static Collector reducing(def, Function, BinaryOperator)", BOTH, collectors_reducing},
    {"static Collector maxBy(Comparator)", BOTH, collectors_max_by},
    {"static Collector minBy(Comparator)", BOTH, collectors_min_by},
};

const struct method_table methods_stream[] = {
    METHOD_ROWS(STREAM, stream_methods),           METHOD_ROWS(INT_STREAM, int_stream_methods),
    METHOD_ROWS(LONG_STREAM, long_stream_methods), METHOD_ROWS(DOUBLE_STREAM, double_stream_methods),
    METHOD_ROWS(COLLECTORS, collectors_methods),   {0},
};
