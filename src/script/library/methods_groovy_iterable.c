/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of what has elements: iterables, arrays, iterators. Ends, parts, extremes, sums, groups, order. */
#include "script/library/methods_groovy.h"

#include "script/value/range.h"

static struct seq *elements(struct run *run, struct value self)
{
    struct iter iter;
    struct seq *seq = seq_new(run, CLASS_ARRAY_LIST, values_count(self));
    if (seq == NULL || !groovy_walk(run, &iter, self))
        return NULL;
    walk(&iter, item)
    {
        if (!seq_add(run, seq, item))
            return NULL;
    }
    return run->thrown == NULL ? seq : NULL;
}

/* A part of the elements as a new collection of the same kind. */
static bool part(struct run *run, struct value self, const struct seq *all, size_t from, size_t to, struct value *ret)
{
    *ret = groovy_similar(run, self);
    for (size_t i = from; i < to && i < all->count; i++)
        if (!run_step(run, 1) || !groovy_add(run, *ret, seq_item(all, i)))
            return false;
    return true;
}

static bool end_of(struct run *run, struct value *a, const char *name, bool last, struct value *ret)
{
    const struct seq *all = value_is_seq(a[0]) ? seq_of(a[0]) : elements(run, a[0]);
    if (all == NULL)
        return false;
    if (all->count == 0)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot access %s() element from an empty %s", name,
                         value_is_seq(a[0])     ? "List"
                         : value_is_array(a[0]) ? "Array"
                                                : "Iterable");
    *ret = seq_item(all, last ? all->count - 1 : 0);
    return true;
}

static bool first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, "first", false, ret);
}

static bool last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return end_of(run, a, "last", true, ret);
}

static bool but_one(struct run *run, struct value *a, const char *name, size_t skip, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    if (all == NULL)
        return false;
    if (all->count == 0)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot access %s() for an empty %s", name,
                         value_is_array(a[0]) ? "array" : "iterable");
    return part(run, a[0], all, skip, all->count - 1 + skip, ret);
}

static bool tail(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return but_one(run, a, "tail", 1, ret);
}

static bool init(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return but_one(run, a, "init", 0, ret);
}

/* The first or last `count` elements, or what they leave. */
static bool take_or_drop(struct run *run, struct value *a, bool take, bool right, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    if (all == NULL)
        return false;
    size_t count = a[1].i < 0 ? 0 : (size_t)a[1].i;
    count = count > all->count ? all->count : count;
    size_t cut = right ? all->count - count : count;
    return take == right ? part(run, a[0], all, cut, all->count, ret) : part(run, a[0], all, 0, cut, ret);
}

static bool take(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return take_or_drop(run, a, true, false, ret);
}

static bool drop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return take_or_drop(run, a, false, false, ret);
}

static bool take_right(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return take_or_drop(run, a, true, true, ret);
}

static bool drop_right(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return take_or_drop(run, a, false, true, ret);
}

static bool split_while(struct run *run, struct value *a, bool keep, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    bool holds = true;
    size_t cut = 0;
    for (; all != NULL && cut < all->count; cut++) {
        if (!groovy_test_item(run, a[0], a[1], seq_item(all, cut), &holds))
            return false;
        if (!holds)
            break;
    }
    return all != NULL && part(run, a[0], all, keep ? 0 : cut, keep ? cut : all->count, ret);
}

static bool take_while(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return split_while(run, a, true, ret);
}

static bool drop_while(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return split_while(run, a, false, ret);
}

/* Sub lists of a size, one every `step` elements; the short ones at the end only if asked for. */
static bool collate(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    bool keep = a[n].kind != VALUE_BOOLEAN || a[n].i != 0;
    int64_t size = a[1].i, step = n >= 2 && a[2].kind != VALUE_BOOLEAN ? a[2].i : size;
    struct seq *lists = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(lists);
    if (all == NULL)
        return false;
    if (size <= 0)
        return seq_add(run, lists, value_of(all));
    if (step == 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "step cannot be zero");
    for (int64_t at = 0; at < (int64_t)all->count && at >= 0; at += step) {
        struct value list;
        if (!keep && at > (int64_t)all->count - size)
            break;
        if (!part(run, VALUE_NONE, all, (size_t)at, (size_t)(at + size), &list) || !seq_add(run, lists, list))
            return false;
    }
    return true;
}

/* Extremes and sums */

static bool extreme(struct run *run, struct value *a, unsigned n, int sign, struct value *ret)
{
    struct iter iter;
    bool first_one = true, keyed = n == 1 && value_is(a[1], CLASS_CLOSURE) && function_arity(a[1]) == 1;
    struct value best = VALUE_NONE, comparator = groovy_comparator(run, n == 1 && !keyed ? a[1] : VALUE_NONE);
    *ret = VALUE_NONE;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value key = item;
        int order = 0;
        if ((keyed && !run_invoke(run, a[1], &item, 1, &key)) ||
            (!first_one &&
             !(keyed ? operate_order(run, key, best, &order) : groovy_order(run, comparator, key, best, &order))))
            return false;
        if (first_one || order * sign > 0) {
            *ret = item;
            best = key;
        }
        first_one = false;
    }
    return run->thrown == NULL;
}

static bool max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return extreme(run, a, n, 1, ret);
}

static bool min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return extreme(run, a, n, -1, ret);
}

/* Adds whatever has a plus; of nothing the sum is null, or what it was to start with. */
static bool sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    bool function = n > 0 && value_is(a[n], CLASS_CLOSURE), given = n > (function ? 1 : 0);
    *ret = given ? a[1] : VALUE_NONE;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (function && !run_invoke(run, a[n], &item, 1, &item))
            return false;
        if (given && !operate_binary(run, OP_ADD, *ret, item, ret))
            return false;
        if (!given)
            *ret = item;
        given = true;
    }
    return run->thrown == NULL;
}

static bool count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    int64_t found = 0;
    bool function = value_is(a[1], CLASS_CLOSURE);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!(function ? groovy_test_item(run, a[0], a[1], item, &holds) : operate_equal(run, item, a[1], &holds)))
            return false;
        found += holds;
    }
    return run->thrown == NULL && give_int(ret, found);
}

static bool join(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct text_buf out;
    struct text *separator = n == 0 || a[1].kind == VALUE_NULL ? NULL : value_to_text(run, a[1]);
    bool first_one = true;
    text_buf_init(&out, run);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!first_one && separator != NULL)
            text_buf_text(&out, separator);
        first_one = false;
        if (!value_append(run, item, &out))
            return false;
    }
    return run->thrown == NULL && give(ret, text_buf_done(&out));
}

/* Groups */

static bool count_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    return groovy_walk(run, &iter, a[0]) && groovy_count_by(run, &iter, a, n, ret);
}

static bool group_once(struct run *run, struct value self, struct value function, struct dict *groups)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, self))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct entry *entry;
        if (!run_invoke(run, function, &item, 1, &key) || !dict_find(run, groups, key, &entry))
            return false;
        struct seq *members = entry != NULL ? seq_of(entry->value) : seq_new(run, CLASS_ARRAY_LIST, 0);
        if ((entry == NULL && !dict_put(run, groups, key, value_of(members), NULL)) || !seq_add(run, members, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Groups by the first function, each group by the next; there are at most as many as a call has arguments. */
static bool group(struct run *run, struct value self, const struct value *functions, size_t how_many, struct value *ret)
{
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!group_once(run, self, functions[0], groups))
        return false;
    for (struct entry *entry = dict_first(groups); how_many > 1 && entry != NULL; entry = dict_next(groups, entry))
        if (!group(run, entry->value, functions + 1, how_many - 1, &entry->value))
            return false;
    return true;
}

#define GROUPS_MAX 16

static bool group_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!value_is_seq(a[1]))
        return group(run, a[0], a + 1, n, ret);
    const struct seq *functions = elements(run, a[1]);
    if (functions == NULL)
        return false;
    if (functions->count == 0 || functions->count > GROUPS_MAX)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "groupBy takes from 1 to %d closures", GROUPS_MAX);
    return group(run, a[0], functions->items, functions->count, ret);
}

/* Order */

/* Lists and arrays are sorted in place unless asked otherwise, the elements of others as a new list. */
static bool sort_into(struct run *run, struct value self, struct value function, bool in_place, struct value *ret)
{
    struct seq *all = elements(run, self);
    struct value comparator = groovy_comparator(run, function);
    if (all == NULL || !run_step(run, all->count) || !values_sort(run, all->items, all->count, comparator))
        return false;
    *ret = in_place && (value_is_seq(self) || value_is_array(self)) ? self : value_of(all);
    if (ret->object == &all->object)
        return true;
    if (value_is_array(self)) {
        memcpy(((struct array *)self.object)->items, all->items, all->count * sizeof *all->items);
        return true;
    }
    for (size_t i = 0; i < all->count; i++)
        if (!seq_set(run, seq_of(self), (int64_t)i, all->items[i], NULL))
            return false;
    return true;
}

/* A Comparator of Java's makes it the sort of Java's List, which returns nothing. */
static bool is_comparator(struct value v)
{
    return value_is(v, CLASS_CLOSURE) && ((const struct closure *)v.object)->kind == CLOSURE_NATIVE;
}

static bool sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    bool flag = n > 0 && a[1].kind == VALUE_BOOLEAN;
    if (n == 1 && value_is_seq(a[0]) && is_comparator(a[1]))
        return sort_into(run, a[0], a[1], true, ret) && give_nothing(ret);
    return sort_into(run, a[0], n > 0 && !(flag && n == 1) ? a[n] : VALUE_NONE, !flag || a[1].i != 0, ret);
}

static bool to_sorted(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return sort_into(run, a[0], n > 0 ? a[1] : VALUE_NONE, false, ret);
}

/* Keeps the first of those that are equal, or that the comparator does not tell apart. */
static struct seq *without_doubles(struct run *run, struct value self, struct value function)
{
    const struct seq *all = elements(run, self);
    struct seq *kept = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct value comparator = groovy_comparator(run, function);
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        int order = 1;
        for (size_t k = 0; k < kept->count && order != 0; k++)
            if (!run_step(run, 1) || !groovy_order(run, comparator, seq_item(all, i), seq_item(kept, k), &order))
                return NULL;
        if (order != 0 && !seq_add(run, kept, seq_item(all, i)))
            return NULL;
    }
    return all == NULL ? NULL : kept;
}

static bool unique(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    bool flag = n > 0 && a[1].kind == VALUE_BOOLEAN, in_place = !flag || a[1].i != 0;
    struct seq *kept = without_doubles(run, a[0], n > 0 && !(flag && n == 1) ? a[n] : VALUE_NONE);
    *ret = in_place && (value_is_seq(a[0]) || value_is_set(a[0])) ? a[0] : value_of(kept);
    return kept != NULL && (ret->object == &kept->object || groovy_refill(run, a[0], kept->items, kept->count));
}

static bool to_unique(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return give(ret, without_doubles(run, a[0], n > 0 ? a[1] : VALUE_NONE));
}

/* Sets of elements */

static bool among(struct run *run, const struct seq *seq, struct value item, bool *ret)
{
    *ret = false;
    for (size_t i = 0; i < seq->count && !*ret; i++)
        if (!run_step(run, 1) || !operate_equal(run, seq_item(seq, i), item, ret))
            return false;
    return true;
}

/* What both have, in the order of the smaller one. */
static bool intersect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool swap = values_count(a[0]) < values_count(a[1]);
    const struct seq *from = elements(run, a[swap ? 1 : 0]), *through = elements(run, a[swap ? 0 : 1]);
    *ret = groovy_similar(run, a[swap ? 1 : 0]);
    for (size_t i = 0; from != NULL && through != NULL && i < through->count; i++) {
        bool has;
        if (!among(run, from, seq_item(through, i), &has) || (has && !groovy_add(run, *ret, seq_item(through, i))))
            return false;
    }
    return run->thrown == NULL;
}

static bool disjoint(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *left = elements(run, a[0]), *right = elements(run, a[1]);
    bool has = false;
    for (size_t i = 0; left != NULL && right != NULL && i < right->count && !has; i++)
        if (!among(run, left, seq_item(right, i), &has))
            return false;
    return run->thrown == NULL && give_boolean(ret, !has);
}

static bool flatten_into(struct run *run, struct value self, struct value function, struct value into);

static bool flatten_level(struct run *run, struct value self, struct value function, struct value into)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, self))
        return false;
    walk(&iter, item)
    {
        struct value result = item;
        bool nested = value_instance_of(item, CLASS_COLLECTION) || value_is_array(item);
        if (!nested && function.kind != VALUE_NULL) {
            if (!run_invoke(run, function, &item, 1, &result))
                return false;
            nested = value_instance_of(result, CLASS_COLLECTION);
        }
        if (nested ? !flatten_into(run, result, function, into) : !groovy_add(run, into, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool flatten_into(struct run *run, struct value self, struct value function, struct value into)
{
    if (!run_enter(run, 3))
        return false;
    bool ok = flatten_level(run, self, function, into);
    run_leave(run, 3);
    return ok;
}

static bool flatten(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = groovy_similar(run, a[0]);
    return flatten_into(run, a[0], n > 0 ? a[1] : VALUE_NONE, *ret);
}

/* Conversions */

static bool to_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, elements(run, a[0]));
}

static bool to_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *set = dict_new(run, CLASS_LINKED_HASH_SET);
    *ret = value_of(set);
    return groovy_add_all(run, *ret, value_of(elements(run, a[0])));
}

static bool with_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    struct seq *pairs = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        struct seq *pair = seq_new(run, CLASS_ARRAY_LIST, 2);
        if (!seq_add(run, pair, seq_item(all, i)) ||
            !seq_add(run, pair, value_int((n > 0 ? a[1].i : 0) + (int64_t)i)) || !seq_add(run, pairs, value_of(pair)))
            return false;
    }
    return all != NULL && give(ret, pairs);
}

static bool indexed(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *all = elements(run, a[0]);
    struct dict *map = dict_new(run, CLASS_LINKED_HASH_MAP);
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!dict_put(run, map, value_int((n > 0 ? a[1].i : 0) + (int64_t)i), seq_item(all, i), NULL))
            return false;
    return all != NULL && give(ret, map);
}

/* Each way to take one element of every collection, the first collection's changing fastest. */
static bool combinations(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *collections = elements(run, a[0]);
    struct seq *done = NULL;
    (void)n;
    for (size_t i = 0; collections != NULL && i < collections->count; i++) {
        const struct seq *items = elements(run, seq_item(collections, i));
        struct seq *longer = seq_new(run, CLASS_ARRAY_LIST, 0);
        for (size_t k = 0; items != NULL && k < items->count; k++)
            for (size_t j = 0; j < (done == NULL ? 1 : done->count); j++) {
                struct seq *one = done == NULL ? seq_new(run, CLASS_ARRAY_LIST, 0)
                                               : values_to_seq(run, seq_item(done, j), CLASS_ARRAY_LIST);
                if (one == NULL || !seq_add(run, one, seq_item(items, k)) || !seq_add(run, longer, value_of(one)))
                    return false;
            }
        done = longer;
    }
    return collections != NULL && run->thrown == NULL &&
           give(ret, done == NULL ? seq_new(run, CLASS_ARRAY_LIST, 0) : done);
}

/* The first elements of all lists, the second ones, as many as the shortest has. */
static bool transpose(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *lists = elements(run, a[0]);
    struct seq *turned = seq_new(run, CLASS_ARRAY_LIST, 0);
    size_t shortest = SIZE_MAX;
    *ret = value_of(turned);
    for (size_t i = 0; lists != NULL && i < lists->count; i++)
        shortest = values_count(seq_item(lists, i)) < shortest ? values_count(seq_item(lists, i)) : shortest;
    for (size_t k = 0; lists != NULL && lists->count > 0 && k < shortest; k++) {
        struct seq *row = seq_new(run, CLASS_ARRAY_LIST, lists->count);
        for (size_t i = 0; i < lists->count; i++) {
            struct value list = seq_item(lists, i), item;
            if (!run_step(run, 1) || !groovy_get_at(run, list, value_int((int64_t)k), &item) ||
                !seq_add(run, row, item))
                return false;
        }
        if (!seq_add(run, turned, value_of(row)))
            return false;
    }
    return lists != NULL;
}

static bool size(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *all = elements(run, a[0]);
    return all != NULL && give_int(ret, all->count);
}

static bool contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *all = elements(run, a[0]);
    bool has;
    return all != NULL && among(run, all, a[1], &has) && give_boolean(ret, has);
}

static bool reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *all = elements(run, a[0]), *turned = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!run_step(run, 1) || !seq_add(run, turned, seq_item(all, all->count - 1 - i)))
            return false;
    bool in_place = n == 1 && a[1].i != 0 && value_is_seq(a[0]);
    *ret = in_place ? a[0] : value_of(turned);
    return all != NULL && (!in_place || groovy_refill(run, a[0], turned->items, turned->count));
}

static bool reverse_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *all = elements(run, a[0]);
    struct value ignored;
    *ret = a[0];
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!groovy_call_item(run, a[0], a[1], seq_item(all, all->count - 1 - i), &ignored))
            return false;
    return all != NULL;
}

static bool index_range(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return range_new(run, value_int(0), value_int((int64_t)values_count(a[0])), true, ret);
}

static const struct method iterable_methods[] = {
    M0("first", G, DEF, first),
    M0("last", G, DEF, last),
    M0("head", G, DEF, first),
    M0("tail", G, COLLECTION, tail),
    M0("init", G, COLLECTION, init),
    M1("take", G, COLLECTION, INT, take),
    M1("drop", G, COLLECTION, INT, drop),
    M1("takeRight", G, COLLECTION, INT, take_right),
    M1("dropRight", G, COLLECTION, INT, drop_right),
    M1("takeWhile", G, COLLECTION, CLOSURE, take_while),
    M1("dropWhile", G, COLLECTION, CLOSURE, drop_while),
    M1("collate", G, LIST, INT, collate),
    M2("collate", G, LIST, INT, BOOLEAN, collate),
    M2("collate", G, LIST, INT, INT, collate),
    M3("collate", G, LIST, INT, INT, BOOLEAN, collate),
    M0("max", G, DEF, max),
    M1("max", G, DEF, CLOSURE, max),
    M1("max", G, DEF, COMPARATOR, max),
    M0("min", G, DEF, min),
    M1("min", G, DEF, CLOSURE, min),
    M1("min", G, DEF, COMPARATOR, min),
    M0("sum", G, DEF, sum),
    M1("sum", G, DEF, CLOSURE, sum),
    M1("sum", G, DEF, DEF, sum),
    M2("sum", G, DEF, DEF, CLOSURE, sum),
    M1("count", G, NUMBER, CLOSURE, count),
    M1("count", G, NUMBER, DEF, count),
    M0("join", G, STRING, join),
    M1("join", G | METHOD_TAKES_NULL, STRING, STRING, join),
    M0("countBy", G, MAP, count_by),
    M1("countBy", G, MAP, CLOSURE, count_by),
    M1("groupBy", G, MAP, CLOSURE, group_by),
    M1("groupBy", G, MAP, LIST, group_by),
    M2("groupBy", G, MAP, CLOSURE, CLOSURE, group_by),
    M3("groupBy", G, MAP, CLOSURE, CLOSURE, CLOSURE, group_by),
    M0("sort", G, LIST, sort),
    M1("sort", G, LIST, CLOSURE, sort),
    M1("sort", G, LIST, COMPARATOR, sort),
    M1("sort", G, LIST, BOOLEAN, sort),
    M2("sort", G, LIST, BOOLEAN, CLOSURE, sort),
    M2("sort", G, LIST, BOOLEAN, COMPARATOR, sort),
    M0("toSorted", G, LIST, to_sorted),
    M1("toSorted", G, LIST, CLOSURE, to_sorted),
    M1("toSorted", G, LIST, COMPARATOR, to_sorted),
    M0("unique", G, COLLECTION, unique),
    M1("unique", G, COLLECTION, CLOSURE, unique),
    M1("unique", G, COLLECTION, COMPARATOR, unique),
    M1("unique", G, COLLECTION, BOOLEAN, unique),
    M2("unique", G, COLLECTION, BOOLEAN, CLOSURE, unique),
    M0("toUnique", G, COLLECTION, to_unique),
    M1("toUnique", G, COLLECTION, CLOSURE, to_unique),
    M1("toUnique", G, COLLECTION, COMPARATOR, to_unique),
    M1("intersect", G, COLLECTION, ITERABLE, intersect),
    M1("disjoint", G, BOOLEAN, ITERABLE, disjoint),
    M0("flatten", G, COLLECTION, flatten),
    M1("flatten", G, COLLECTION, CLOSURE, flatten),
    M0("toList", G, LIST, to_list),
    M0("asList", G, LIST, to_list),
    M0("toSet", G, SET, to_set),
    M0("withIndex", G, LIST, with_index),
    M1("withIndex", G, LIST, INT, with_index),
    M0("indexed", G, MAP, indexed),
    M1("indexed", G, MAP, INT, indexed),
    M0("combinations", G, LIST, combinations),
    M0("transpose", G, LIST, transpose),
    M0("size", G, INT, size),
    M1("contains", G, BOOLEAN, DEF, contains),
    M0("reverse", G, LIST, reverse),
    M1("reverse", G, LIST, BOOLEAN, reverse),
    M1("reverseEach", G, DEF, CLOSURE, reverse_each),
    M0("getIndices", G, LIST, index_range),
};

const struct method_table methods_groovy_iterable[] = {
    METHOD_TABLE(ITERABLE, iterable_methods),
    METHOD_TABLE(ITERATOR, iterable_methods),
    METHOD_TABLE(ARRAY, iterable_methods),
    {0, 0, NULL},
};
