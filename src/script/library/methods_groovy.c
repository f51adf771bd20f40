/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by Groovy's own methods; see methods_groovy.h. */
#include "script/library/methods_groovy.h"

#include "script/run/invoke.h"
#include "script/value/range.h"
#include "script/value/regex.h"

/* Returns: the matches as strings or, if the regex has groups, as lists of groups; NULL with a
   throwable in the run. */
static struct seq *matches_of(struct run *run, struct value matcher)
{
    struct seq *all = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct value arguments[2] = {matcher, VALUE_NONE}, count, match;
    if (!groovy_call(run, arguments, SLICE_LIT("size"), 0, &count))
        return NULL;
    for (int64_t i = 0; i < count.i; i++) {
        arguments[0] = matcher;
        arguments[1] = value_int(i);
        if (!groovy_call(run, arguments, SLICE_LIT("getAt"), 1, &match) || !seq_add(run, all, match))
            return NULL;
    }
    return all;
}

bool groovy_walk(struct run *run, struct iter *iter, struct value self)
{
    struct seq *one;
    if (iter_init(iter, run, self) || self.kind == VALUE_NULL)
        return true;
    if (value_is(self, CLASS_MATCHER)) {
        one = matches_of(run, self);
    } else {
        one = seq_new(run, CLASS_ARRAY_LIST, 1);
        one = one == NULL || !seq_add(run, one, self) ? NULL : one;
    }
    return one != NULL && iter_init(iter, run, value_of(one));
}

bool groovy_call_item(struct run *run, struct value self, struct value function, struct value item, struct value *ret)
{
    return value_is_map(self) ? invoke_item(run, function, item, ret) : run_invoke(run, function, &item, 1, ret);
}

bool groovy_test_item(struct run *run, struct value self, struct value function, struct value item, bool *ret)
{
    struct value result;
    return groovy_call_item(run, self, function, item, &result) && convert_truth(run, result, ret);
}

/* Collections */

struct value groovy_similar(struct run *run, struct value self)
{
    if (value_instance_of(self, CLASS_SET)) {
        bool sorted = self.object->class == CLASS_TREE_SET;
        struct dict *set = dict_new(run, sorted ? CLASS_TREE_SET : CLASS_LINKED_HASH_SET);
        if (sorted)
            set->comparator = dict_of(self)->comparator;
        return value_of(set);
    }
    bool linked = value_is(self, CLASS_LINKED_LIST) || value_is(self, CLASS_ARRAY_DEQUE);
    return value_of(seq_new(run,
                            linked                        ? CLASS_LINKED_LIST
                            : value_is(self, CLASS_STACK) ? CLASS_STACK
                                                          : CLASS_ARRAY_LIST,
                            0));
}

bool groovy_add(struct run *run, struct value collection, struct value item)
{
    bool added;
    if (value_is_set(collection))
        return dict_add(run, dict_of(collection), item, &added);
    if (value_is_seq(collection))
        return seq_add(run, seq_of(collection), item);
    return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
}

bool groovy_add_all(struct run *run, struct value collection, struct value items)
{
    struct iter iter;
    if (!value_instance_of(items, CLASS_ITERABLE) && !value_is_array(items))
        return groovy_add(run, collection, items);
    struct seq *copy = values_to_seq(run, items, CLASS_ARRAY_LIST); /* perhaps the same object */
    if (copy == NULL || !iter_init(&iter, run, value_of(copy)))
        return false;
    walk(&iter, item)
    {
        if (!groovy_add(run, collection, item))
            return false;
    }
    return run->thrown == NULL;
}

bool groovy_refill(struct run *run, struct value collection, const struct value *items, size_t count)
{
    bool set = value_is_set(collection);
    if (set ? !dict_clear(run, dict_of(collection)) : !seq_clear(run, seq_of(collection)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!run_step(run, 1) || !groovy_add(run, collection, items[i]))
            return false;
    return true;
}

/* Order: values that are not comparable are ordered by hash code, so that any list can be sorted */

static bool values_comparable(struct value a, struct value b)
{
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL || (value_number(a) && value_number(b)))
        return true;
    return value_type(a) == value_type(b) && value_instance_of(a, CLASS_COMPARABLE);
}

static bool order_by_hash(struct run *run, struct value a, struct value b, int *ret_order)
{
    int32_t x, y;
    bool same;
    if (!value_equals(run, a, b, &same) || !value_hash(run, a, &x) || !value_hash(run, b, &y))
        return false;
    *ret_order = same ? 0 : x > y ? 1 : -1;
    return true;
}

static bool order_any(struct run *run, struct value a, struct value b, int *ret_order)
{
    a = value_plain(a);
    b = value_plain(b);
    return values_comparable(a, b) ? operate_order(run, a, b, ret_order) : order_by_hash(run, a, b, ret_order);
}

static bool native_order_any(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)closure, (void)n;
    int order;
    return order_any(run, a[0], a[1], &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Compares by the key that held[0] gives. */
static bool native_order_by(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value x, y;
    int order;
    return run_invoke(run, closure->held[0], &a[0], 1, &x) && run_invoke(run, closure->held[0], &a[1], 1, &y) &&
           order_any(run, x, y, &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Compares by held[0], whose result is converted to int. */
static bool native_compare(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    struct value result;
    return run_invoke(run, closure->held[0], a, n, &result) && convert_groovy(run, result, CLASS_INT, false, ret);
}

struct value groovy_comparator(struct run *run, struct value function)
{
    closure_native *native = function.kind == VALUE_NULL     ? native_order_any
                             : function_arity(function) == 1 ? native_order_by
                                                             : native_compare;
    return closure_native_new(run, native, 2, function, VALUE_NONE);
}

bool groovy_order(struct run *run, struct value comparator, struct value a, struct value b, int *ret_order)
{
    struct value pair[2] = {a, b}, result;
    if (!run_invoke(run, comparator, pair, 2, &result))
        return false;
    *ret_order = (int)result.i;
    return true;
}

bool groovy_key(struct call *call, struct value item, struct value *ret)
{
    *ret = item;
    return call->count == 0 || groovy_call_item(call->run, call->self, call_last(call), item, ret);
}

bool groovy_count_by(struct call *call, struct iter *iter, struct value *ret)
{
    struct run *run = call->run;
    struct dict *counts = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(counts);
    walk(iter, item)
    {
        struct value key;
        struct map_entry *entry;
        if (!groovy_key(call, item, &key) || !dict_find(run, counts, key, &entry) ||
            !dict_put(run, counts, key, value_int(entry == NULL ? 1 : entry->value.i + 1), NULL))
            return false;
    }
    return run->thrown == NULL;
}

bool groovy_map_get(struct run *run, struct dict *dict, struct value key, struct value *ret)
{
    struct map_entry *entry;
    if (!dict_find(run, dict, key, &entry))
        return false;
    *ret = entry == NULL ? VALUE_NONE : entry->value;
    if (entry != NULL || dict->object.class != CLASS_MAP_WITH_DEFAULT)
        return true;
    return run_invoke(run, dict->initial, &key, 1, ret) && dict_put(run, dict, key, *ret, NULL);
}

/* Indexes */

bool groovy_index(struct run *run, int64_t index, size_t count, int64_t *ret_index)
{
    *ret_index = index < 0 ? index + (int64_t)count : index;
    return *ret_index >= 0 ||
           run_throw(run, CLASS_ARRAY_INDEX_OUT_OF_BOUNDS_EXCEPTION,
                     "Negative array index [%lld] too large for array size %zu", (long long)index, count);
}

static bool slice_text(struct run *run, struct text *text, struct value indexes, struct value *ret)
{
    struct text_buf out;
    struct iter iter;
    int64_t from, to;
    bool reverse;
    text_buf_init(&out, run);
    if (value_is_range(indexes)) {
        range_borders((const struct range *)indexes.object, text->length, &from, &to, &reverse);
        if (from < 0 || to > text->length || from > to)
            return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "begin %lld, end %lld, length %u",
                             (long long)from, (long long)to, text->length);
        for (int64_t i = from; i < to; i++)
            text_buf_unit(&out, text_at(text, (size_t)(reverse ? to - 1 - (i - from) : i)));
        return run_step(run, (uint64_t)(to - from) / 16) && give(ret, text_buf_done(&out));
    }
    iter_init(&iter, run, indexes);
    walk(&iter, index)
    {
        struct value one;
        if (!groovy_get_at(run, value_of(text), index, &one) || !value_append(run, one, &out))
            return false;
    }
    return run->thrown == NULL && give(ret, text_buf_done(&out));
}

/* Gives the bounds of a range in a list, with the checks and errors of Java's subList. */
static bool list_borders(struct run *run, const struct range *range, size_t size, int64_t *ret_from, int64_t *ret_to,
                         bool *ret_reverse)
{
    range_borders(range, size, ret_from, ret_to, ret_reverse);
    if (*ret_from < 0)
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "fromIndex = %lld", (long long)*ret_from);
    if (*ret_to > (int64_t)size)
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "toIndex = %lld", (long long)*ret_to);
    return *ret_from <= *ret_to || run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "fromIndex(%lld) > toIndex(%lld)",
                                             (long long)*ret_from, (long long)*ret_to);
}

static bool slice_list(struct run *run, struct value self, const struct range *range, struct value *ret)
{
    int64_t from, to;
    bool reverse;
    struct seq *all = values_to_seq(run, self, CLASS_ARRAY_LIST);
    if (all == NULL || !list_borders(run, range, all->count, &from, &to, &reverse))
        return false;
    *ret = groovy_similar(run, self);
    for (int64_t i = from; i < to; i++)
        if (!run_step(run, 1) || !groovy_add(run, *ret, seq_item(all, (size_t)(reverse ? to - 1 - (i - from) : i))))
            return false;
    return true;
}

bool groovy_slice(struct run *run, struct value self, struct value indexes, struct value *ret)
{
    self = value_plain(self);
    struct iter iter;
    if (value_is(self, CLASS_STRING))
        return slice_text(run, text_of(self), indexes, ret);
    if (value_is_range(indexes))
        return slice_list(run, self, (const struct range *)indexes.object, ret);
    *ret = value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    if (!iter_init(&iter, run, indexes))
        return run_throw_npe(run, "java.util.Collection.iterator()");
    walk(&iter, index)
    {
        struct value one;
        bool nested = value_instance_of(index, CLASS_COLLECTION);
        if (!groovy_get_at(run, self, index, &one) ||
            !(nested ? groovy_add_all(run, *ret, one) : groovy_add(run, *ret, one)))
            return false;
    }
    return run->thrown == NULL;
}

static bool replace_range(struct run *run, struct seq *seq, int64_t from, int64_t to, struct value value)
{
    struct iter iter;
    int64_t at = from;
    for (int64_t i = from; i < to; i++)
        if (!run_step(run, 1) || !seq_remove(run, seq, at, NULL))
            return false;
    if (!value_instance_of(value, CLASS_COLLECTION))
        return seq_insert(run, seq, at, value);
    struct seq *copy = values_to_seq(run, value, CLASS_ARRAY_LIST);
    if (copy == NULL || !iter_init(&iter, run, value_of(copy)))
        return false;
    walk(&iter, item)
    {
        if (!seq_insert(run, seq, at++, item))
            return false;
    }
    return run->thrown == NULL;
}

bool groovy_set_slice(struct run *run, struct value self, struct value indexes, struct value value)
{
    struct iter iter;
    size_t index = 0;
    int64_t from, to;
    bool reverse;
    if (value_is_range(indexes))
        return list_borders(run, (const struct range *)indexes.object, seq_of(self)->count, &from, &to, &reverse) &&
               replace_range(run, seq_of(self), from, to, value);
    bool many = value_is_seq(value);
    if (many && seq_of(value)->count != values_count(indexes))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "The value collection must have the same size as the index collection");
    iter_init(&iter, run, indexes);
    walk(&iter, target)
    {
        if (!groovy_set_at(run, self, target, many ? seq_item(seq_of(value), index++) : value))
            return false;
    }
    return run->thrown == NULL;
}

/* Strings in quotes */

static bool inspect_map(struct run *run, struct dict *dict, struct text_buf *out)
{
    if (dict->count == 0) {
        text_buf_ascii(out, "[:]");
        return true;
    }
    text_buf_unit(out, '[');
    for (struct map_entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        if (entry != dict_first(dict))
            text_buf_ascii(out, ", ");
        if (!run_step(run, 1) || !groovy_inspect(run, entry->key, out))
            return false;
        text_buf_unit(out, ':');
        if (value_is_map(entry->value) && entry->value.object == &dict->object)
            text_buf_ascii(out, "(this Map)");
        else if (!groovy_inspect(run, entry->value, out))
            return false;
    }
    text_buf_unit(out, ']');
    return true;
}

static void inspect_text(const struct text *text, struct text_buf *out)
{
    static const char escaped[] = "\b\n\t\r\f\\'", letters[] = "bntrf\\'";
    text_buf_unit(out, '\'');
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        const char *escape = c != 0 && c < 128 ? strchr(escaped, c) : NULL;
        if (escape != NULL)
            text_buf_unit(out, '\\');
        text_buf_unit(out, escape != NULL ? (uint16_t)letters[escape - escaped] : c);
    }
    text_buf_unit(out, '\'');
}

bool groovy_inspect(struct run *run, struct value v, struct text_buf *out)
{
    v = value_plain(v);
    if (value_is(v, CLASS_STRING)) {
        inspect_text(text_of(v), out);
        return !out->failed;
    }
    bool map = value_is_map(v), list = value_instance_of(v, CLASS_COLLECTION) && !value_is_range(v);
    if (!map && !list)
        return value_append(run, v, out);
    if (!run_enter(run, 3))
        return false;
    bool ok = map ? inspect_map(run, dict_of(v), out) : value_append_list(run, v, groovy_inspect, out);
    run_leave(run, 3);
    return ok && !out->failed;
}
