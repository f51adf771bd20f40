/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of iterables, arrays and iterators: ends, parts, minimum and maximum, sums,
   groups, order. */
#include "script/library/methods_groovy.h"

#include "script/value/range.h"

static struct seq *elements_of(struct run *run, struct value self)
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

/* Gives elements `from` to `to`, exclusive, as a new collection of the receiver's kind. */
static bool give_part(struct run *run, struct value self, const struct seq *all, size_t from, size_t to,
                      struct value *ret)
{
    *ret = groovy_similar(run, self);
    for (size_t i = from; i < to && i < all->count; i++)
        if (!run_step(run, 1) || !groovy_add(run, *ret, seq_item(all, i)))
            return false;
    return true;
}

/* The datum: whether to return the last element, or the first. */
static bool end_of(struct call *call, struct value *ret)
{
    bool last = call->row->datum.number != 0;
    const struct seq *all = value_is_seq(call->self) ? seq_of(call->self) : elements_of(call->run, call->self);
    if (all == NULL)
        return false;
    if (all->count == 0)
        return run_throw(call->run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot access %s() element from an empty %s",
                         last ? "last" : "first",
                         value_is_seq(call->self)     ? "List"
                         : value_is_array(call->self) ? "Array"
                                                      : "Iterable");
    *ret = seq_item(all, last ? all->count - 1 : 0);
    return true;
}

/* Gives all elements but the first (the datum is 1) or the last (0). */
static bool but_one(struct call *call, struct value *ret)
{
    size_t skip = (size_t)call->row->datum.number;
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    if (all == NULL)
        return false;
    if (all->count == 0)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "Cannot access %s() for an empty %s", call->row->name,
                         value_is_array(call->self) ? "array" : "iterable");
    return give_part(run, call->self, all, skip, all->count - 1 + skip, ret);
}

enum share { SHARE_DROP = 0, SHARE_TAKE = 1, SHARE_RIGHT = 2 };

/* Takes or drops `count` elements at either end; the datum is an enum share. */
static bool take_or_drop(struct call *call, struct value *ret)
{
    bool take = (call->row->datum.number & SHARE_TAKE) != 0, right = (call->row->datum.number & SHARE_RIGHT) != 0;
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    if (all == NULL)
        return false;
    size_t count = call->args[0].i < 0 ? 0 : (size_t)call->args[0].i;
    count = count > all->count ? all->count : count;
    size_t cut = right ? all->count - count : count;
    return take == right ? give_part(run, call->self, all, cut, all->count, ret)
                         : give_part(run, call->self, all, 0, cut, ret);
}

static bool split_while(struct call *call, struct value *ret)
{
    bool keep = call->row->datum.number != 0;
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    bool holds = true;
    size_t cut = 0;
    for (; all != NULL && cut < all->count; cut++) {
        if (!groovy_test_item(run, call->self, call->args[0], seq_item(all, cut), &holds))
            return false;
        if (!holds)
            break;
    }
    return all != NULL && give_part(run, call->self, all, keep ? 0 : cut, keep ? cut : all->count, ret);
}

/* Gives lists of `size` elements that start `step` elements apart; shorter ones at the end
   unless the last argument is false. */
static bool iterable_collate(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    bool keep = call_last(call).kind != VALUE_BOOLEAN || call_last(call).i != 0;
    int64_t size = call->args[0].i,
            step = call->count >= 2 && call->args[1].kind != VALUE_BOOLEAN ? call->args[1].i : size;
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
        if (!give_part(run, VALUE_NONE, all, (size_t)at, (size_t)(at + size), &list) || !seq_add(run, lists, list))
            return false;
    }
    return true;
}

/* Minimum, maximum and sum */

static bool iterable_extreme(struct call *call, struct value *ret)
{
    int sign = (int)call->row->datum.number;
    struct run *run = call->run;
    struct iter iter;
    bool first_one = true,
         keyed = call->count == 1 && value_is(call->args[0], CLASS_CLOSURE) && function_arity(call->args[0]) == 1;
    struct value best = VALUE_NONE,
                 comparator = groovy_comparator(run, call->count == 1 && !keyed ? call->args[0] : VALUE_NONE);
    *ret = VALUE_NONE;
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value key = item;
        int order = 0;
        if ((keyed && !run_invoke(run, call->args[0], &item, 1, &key)) ||
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

/* Adds the elements, which may be of any class with an addition. Without elements the result is
   the initial value, or null. */
static bool iterable_sum(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    bool function = call->count > 0 && value_is(call_last(call), CLASS_CLOSURE),
         given = call->count > (function ? 1 : 0);
    *ret = given ? call->args[0] : VALUE_NONE;
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (function && !run_invoke(run, call_last(call), &item, 1, &item))
            return false;
        if (given && !operate_binary(run, OP_ADD, *ret, item, ret))
            return false;
        if (!given)
            *ret = item;
        given = true;
    }
    return run->thrown == NULL;
}

static bool iterable_count(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    int64_t found = 0;
    bool function = value_is(call->args[0], CLASS_CLOSURE);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!(function ? groovy_test_item(run, call->self, call->args[0], item, &holds)
                       : operate_equal(run, item, call->args[0], &holds)))
            return false;
        found += holds;
    }
    return run->thrown == NULL && give_int(ret, found);
}

static bool iterable_join(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct text_buf out;
    struct text *separator =
        call->count == 0 || call->args[0].kind == VALUE_NULL ? NULL : value_to_text(run, call->args[0]);
    bool first_one = true;
    text_buf_init(&out, run);
    if (!groovy_walk(run, &iter, call->self))
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

static bool count_by(struct call *call, struct value *ret)
{
    struct iter iter;
    return groovy_walk(call->run, &iter, call->self) && groovy_count_by(call, &iter, ret);
}

static bool group_once(struct run *run, struct value self, struct value function, struct dict *groups)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, self))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct map_entry *entry;
        if (!run_invoke(run, function, &item, 1, &key) || !dict_find(run, groups, key, &entry))
            return false;
        struct seq *members = entry != NULL ? seq_of(entry->value) : seq_new(run, CLASS_ARRAY_LIST, 0);
        if ((entry == NULL && !dict_put(run, groups, key, value_of(members), NULL)) || !seq_add(run, members, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Groups by the first function, then each group by the next one. The depth is bounded by the
   number of arguments of a call. */
static bool group_level(struct run *run, struct value self, const struct value *functions, size_t how_many,
                        struct value *ret)
{
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!group_once(run, self, functions[0], groups))
        return false;
    for (struct map_entry *entry = dict_first(groups); how_many > 1 && entry != NULL; entry = dict_next(groups, entry))
        if (!group_level(run, entry->value, functions + 1, how_many - 1, &entry->value))
            return false;
    return true;
}

#define GROUPS_MAX 16

static bool group_by(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (!value_is_seq(call->args[0]))
        return group_level(run, call->self, call->args, call->count, ret);
    const struct seq *functions = elements_of(run, call->args[0]);
    if (functions == NULL)
        return false;
    if (functions->count == 0 || functions->count > GROUPS_MAX)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "groupBy takes from 1 to %d closures", GROUPS_MAX);
    return group_level(run, call->self, functions->items, functions->count, ret);
}

/* Order */

/* Sorts. Lists and arrays are sorted in place if `in_place` is true; otherwise the result is a
   new list. */
static bool sort_into(struct run *run, struct value self, struct value function, bool in_place, struct value *ret)
{
    struct seq *all = elements_of(run, self);
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

/* Returns: whether the value is a Comparator; then iterable_sort() is Java's List.sort, which returns
   nothing. */
static bool is_comparator(struct value v)
{
    return value_is(v, CLASS_CLOSURE) && ((const struct closure *)v.object)->kind == CLOSURE_NATIVE;
}

static bool iterable_sort(struct call *call, struct value *ret)
{
    bool flag = call->count > 0 && call->args[0].kind == VALUE_BOOLEAN;
    if (call->count == 1 && value_is_seq(call->self) && is_comparator(call->args[0]))
        return sort_into(call->run, call->self, call->args[0], true, ret) && give_nothing(ret);
    return sort_into(call->run, call->self,
                     call->count > 0 && !(flag && call->count == 1) ? call_last(call) : VALUE_NONE,
                     !flag || call->args[0].i != 0, ret);
}

static bool to_sorted(struct call *call, struct value *ret)
{
    return sort_into(call->run, call->self, call->count > 0 ? call->args[0] : VALUE_NONE, false, ret);
}

/* Returns: a list of the distinct elements, the first of equal ones; NULL with a throwable in
   the run. */
static struct seq *without_doubles(struct run *run, struct value self, struct value function)
{
    const struct seq *all = elements_of(run, self);
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

static bool iterable_unique(struct call *call, struct value *ret)
{
    bool flag = call->count > 0 && call->args[0].kind == VALUE_BOOLEAN, in_place = !flag || call->args[0].i != 0;
    struct seq *kept = without_doubles(call->run, call->self,
                                       call->count > 0 && !(flag && call->count == 1) ? call_last(call) : VALUE_NONE);
    *ret = in_place && (value_is_seq(call->self) || value_is_set(call->self)) ? call->self : value_of(kept);
    return kept != NULL &&
           (ret->object == &kept->object || groovy_refill(call->run, call->self, kept->items, kept->count));
}

static bool to_unique(struct call *call, struct value *ret)
{
    return give(ret, without_doubles(call->run, call->self, call->count > 0 ? call->args[0] : VALUE_NONE));
}

/* Sets of elements */

static bool seq_contains(struct run *run, const struct seq *seq, struct value item, bool *ret)
{
    *ret = false;
    for (size_t i = 0; i < seq->count && !*ret; i++)
        if (!run_step(run, 1) || !operate_equal(run, seq_item(seq, i), item, ret))
            return false;
    return true;
}

/* Gives the elements that both have, in the order of the smaller one and of the kind of the
   larger one. */
static bool iterable_intersect(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    bool swap = values_count(call->self) < values_count(call->args[0]);
    const struct seq *from = elements_of(run, swap ? call->args[0] : call->self),
                     *through = elements_of(run, swap ? call->self : call->args[0]);
    *ret = groovy_similar(run, swap ? call->args[0] : call->self);
    for (size_t i = 0; from != NULL && through != NULL && i < through->count; i++) {
        bool has;
        if (!seq_contains(run, from, seq_item(through, i), &has) ||
            (has && !groovy_add(run, *ret, seq_item(through, i))))
            return false;
    }
    return run->thrown == NULL;
}

static bool disjoint(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *left = elements_of(run, call->self), *right = elements_of(run, call->args[0]);
    bool has = false;
    for (size_t i = 0; left != NULL && right != NULL && i < right->count && !has; i++)
        if (!seq_contains(run, left, seq_item(right, i), &has))
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

static bool flatten(struct call *call, struct value *ret)
{
    *ret = groovy_similar(call->run, call->self);
    return flatten_into(call->run, call->self, call->count > 0 ? call->args[0] : VALUE_NONE, *ret);
}

/* Conversions */

static bool to_list(struct call *call, struct value *ret)
{
    return give(ret, elements_of(call->run, call->self));
}

static bool to_set(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct dict *set = dict_new(run, CLASS_LINKED_HASH_SET);
    *ret = value_of(set);
    return groovy_add_all(run, *ret, value_of(elements_of(run, call->self)));
}

static bool with_index(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    struct seq *pairs = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        struct seq *pair = seq_new(run, CLASS_ARRAY_LIST, 2);
        if (!seq_add(run, pair, seq_item(all, i)) ||
            !seq_add(run, pair, value_int((call->count > 0 ? call->args[0].i : 0) + (int64_t)i)) ||
            !seq_add(run, pairs, value_of(pair)))
            return false;
    }
    return all != NULL && give(ret, pairs);
}

static bool indexed(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *all = elements_of(run, call->self);
    struct dict *map = dict_new(run, CLASS_LINKED_HASH_MAP);
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!dict_put(run, map, value_int((call->count > 0 ? call->args[0].i : 0) + (int64_t)i), seq_item(all, i),
                      NULL))
            return false;
    return all != NULL && give(ret, map);
}

/* Gives the Cartesian product of the collections; the first collection's element changes
   fastest. */
static bool combinations(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *collections = elements_of(run, call->self);
    struct seq *done = NULL;
    for (size_t i = 0; collections != NULL && i < collections->count; i++) {
        const struct seq *items = elements_of(run, seq_item(collections, i));
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

/* Gives the list of all first elements, that of all second ones, and so on, up to the shortest
   list's length. */
static bool transpose(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct seq *lists = elements_of(run, call->self);
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

static bool iterable_size(struct call *call, struct value *ret)
{
    const struct seq *all = elements_of(call->run, call->self);
    return all != NULL && give_int(ret, all->count);
}

static bool iterable_contains(struct call *call, struct value *ret)
{
    const struct seq *all = elements_of(call->run, call->self);
    bool has;
    return all != NULL && seq_contains(call->run, all, call->args[0], &has) && give_boolean(ret, has);
}

static bool iterable_reverse(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *all = elements_of(run, call->self), *turned = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!run_step(run, 1) || !seq_add(run, turned, seq_item(all, all->count - 1 - i)))
            return false;
    bool in_place = call->count == 1 && call->args[0].i != 0 && value_is_seq(call->self);
    *ret = in_place ? call->self : value_of(turned);
    return all != NULL && (!in_place || groovy_refill(run, call->self, turned->items, turned->count));
}

static bool reverse_each(struct call *call, struct value *ret)
{
    struct seq *all = elements_of(call->run, call->self);
    struct value ignored;
    *ret = call->self;
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (!groovy_call_item(call->run, call->self, call->args[0], seq_item(all, all->count - 1 - i), &ignored))
            return false;
    return all != NULL;
}

static bool index_range(struct call *call, struct value *ret)
{
    return range_new(call->run, value_int(0), value_int((int64_t)values_count(call->self)), true, ret);
}

static const struct method_row iterable_methods[] = {
    {"def first()", GROOVY, end_of, {false}},
    {"def last()", GROOVY, end_of, {true}},
    {"def head()", GROOVY, end_of, {false}},
    {"Collection tail()", GROOVY, but_one, {1}},
    {"Collection init()", GROOVY, but_one, {0}},
    {"Collection take(int)", GROOVY, take_or_drop, {SHARE_TAKE}},
    {"Collection drop(int)", GROOVY, take_or_drop, {SHARE_DROP}},
    {"Collection takeRight(int)", GROOVY, take_or_drop, {SHARE_TAKE | SHARE_RIGHT}},
    {"Collection dropRight(int)", GROOVY, take_or_drop, {SHARE_RIGHT}},
    {"Collection takeWhile(Closure)", GROOVY, split_while, {true}},
    {"Collection dropWhile(Closure)", GROOVY, split_while, {false}},
    {"List collate(int)", GROOVY, iterable_collate},
    {"List collate(int, boolean)", GROOVY, iterable_collate},
    {"List collate(int, int)", GROOVY, iterable_collate},
    {"List collate(int, int, boolean)", GROOVY, iterable_collate},
    {"def max()", GROOVY, iterable_extreme, {1}},
    {"def max(Closure)", GROOVY, iterable_extreme, {1}},
    {"def max(Comparator)", GROOVY, iterable_extreme, {1}},
    {"def min()", GROOVY, iterable_extreme, {-1}},
    {"def min(Closure)", GROOVY, iterable_extreme, {-1}},
    {"def min(Comparator)", GROOVY, iterable_extreme, {-1}},
    {"def sum()", GROOVY, iterable_sum},
    {"def sum(Closure)", GROOVY, iterable_sum},
    {"def sum(def)", GROOVY, iterable_sum},
    {"def sum(def, Closure)", GROOVY, iterable_sum},
    {"Number count(Closure)", GROOVY, iterable_count},
    {"Number count(def)", GROOVY, iterable_count},
    {"String join()", GROOVY, iterable_join},
    {"String join(String)", GROOVY | METHOD_TAKES_NULL, iterable_join},
    {"Map countBy()", GROOVY, count_by},
    {"Map countBy(Closure)", GROOVY, count_by},
    {"Map groupBy(Closure)", GROOVY, group_by},
    {"Map groupBy(List)", GROOVY, group_by},
    {"Map groupBy(Closure, Closure)", GROOVY, group_by},
    {"Map groupBy(Closure, Closure, Closure)", GROOVY, group_by},
    {"List sort()", GROOVY, iterable_sort},
    {"List sort(Closure)", GROOVY, iterable_sort},
    {"List sort(Comparator)", GROOVY, iterable_sort},
    {"List sort(boolean)", GROOVY, iterable_sort},
    {"List sort(boolean, Closure)", GROOVY, iterable_sort},
    {"List sort(boolean, Comparator)", GROOVY, iterable_sort},
    {"List toSorted()", GROOVY, to_sorted},
    {"List toSorted(Closure)", GROOVY, to_sorted},
    {"List toSorted(Comparator)", GROOVY, to_sorted},
    {"Collection unique()", GROOVY, iterable_unique},
    {"Collection unique(Closure)", GROOVY, iterable_unique},
    {"Collection unique(Comparator)", GROOVY, iterable_unique},
    {"Collection unique(boolean)", GROOVY, iterable_unique},
    {"Collection unique(boolean, Closure)", GROOVY, iterable_unique},
    {"Collection toUnique()", GROOVY, to_unique},
    {"Collection toUnique(Closure)", GROOVY, to_unique},
    {"Collection toUnique(Comparator)", GROOVY, to_unique},
    {"Collection intersect(Iterable)", GROOVY, iterable_intersect},
    {"boolean disjoint(Iterable)", GROOVY, disjoint},
    {"Collection flatten()", GROOVY, flatten},
    {"Collection flatten(Closure)", GROOVY, flatten},
    {"List toList()", GROOVY, to_list},
    {"List asList()", GROOVY, to_list},
    {"Set toSet()", GROOVY, to_set},
    {"List withIndex()", GROOVY, with_index},
    {"List withIndex(int)", GROOVY, with_index},
    {"Map indexed()", GROOVY, indexed},
    {"Map indexed(int)", GROOVY, indexed},
    {"List combinations()", GROOVY, combinations},
    {"List transpose()", GROOVY, transpose},
    {"int size()", GROOVY, iterable_size},
    {"boolean contains(def)", GROOVY, iterable_contains},
    {"List reverse()", GROOVY, iterable_reverse},
    {"List reverse(boolean)", GROOVY, iterable_reverse},
    {"def reverseEach(Closure)", GROOVY, reverse_each},
    {"List getIndices()", GROOVY, index_range},
};

const struct method_table methods_groovy_iterable[] = {
    METHOD_ROWS(ITERABLE, iterable_methods),
    METHOD_ROWS(ITERATOR, iterable_methods),
    METHOD_ROWS(ARRAY, iterable_methods),
    {0},
};
