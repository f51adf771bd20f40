/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods that walk over any object: each, collect, find, inject, grep and their kin. */
#include "script/library/methods_groovy.h"

static bool each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value ignored;
    *ret = a[0];
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!groovy_call_item(run, a[0], a[1], item, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

/* A map's closure gets key, value and index, or entry and index. */
static bool each_with_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value ignored;
    int64_t index = 0;
    *ret = a[0];
    bool split = value_is_map(a[0]) && function_arity(a[1]) == 3;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value arguments[3] = {item, value_int(index), VALUE_NONE};
        if (split) {
            const struct entry *entry = (const struct entry *)item.object;
            arguments[0] = entry->key;
            arguments[1] = entry->value;
            arguments[2] = value_int(index);
        }
        index++;
        if (!run_invoke(run, a[1], arguments, split ? 3 : 2, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

static bool collect_into(struct run *run, struct value self, struct value function, struct value into)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, self))
        return false;
    walk(&iter, item)
    {
        struct value result = item;
        if ((function.kind != VALUE_NULL && !groovy_call_item(run, self, function, item, &result)) ||
            !groovy_add(run, into, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool collect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = n == 2 ? a[1] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    return collect_into(run, a[0], n == 0 ? VALUE_NONE : a[n], *ret);
}

/* Results that are collections are joined. */
static bool collect_many(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = n == 2 ? a[1] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!groovy_call_item(run, a[0], a[n], item, &result) || !groovy_add_all(run, *ret, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool collect_nested_into(struct run *run, struct value self, struct value function, struct value into);

static bool collect_level(struct run *run, struct value self, struct value function, struct value into)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, self))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (value_instance_of(item, CLASS_COLLECTION)) {
            result = value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
            if (!collect_nested_into(run, item, function, result))
                return false;
        } else if (!run_invoke(run, function, &item, 1, &result)) {
            return false;
        }
        if (!groovy_add(run, into, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool collect_nested_into(struct run *run, struct value self, struct value function, struct value into)
{
    if (!run_enter(run, 3))
        return false;
    bool ok = collect_level(run, self, function, into);
    run_leave(run, 3);
    return ok;
}

static bool collect_nested(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    return collect_nested_into(run, a[0], a[1], *ret);
}

/* A map, an entry, or a list or array of key and value. */
static bool add_entry(struct run *run, struct dict *into, struct value item)
{
    if (value_is_map(item))
        return dict_put_all(run, into, dict_of(item));
    if (value_instance_of(item, CLASS_MAP_ENTRY)) {
        const struct entry *entry = (const struct entry *)item.object;
        return dict_put(run, into, entry->key, entry->value, NULL);
    }
    if (value_is_seq(item) || value_is_array(item)) {
        const struct seq *pair = values_to_seq(run, item, CLASS_ARRAY_LIST);
        return pair != NULL &&
               dict_put(run, into, seq_item(pair, 0), pair->count > 1 ? seq_item(pair, 1) : VALUE_NONE, NULL);
    }
    if (item.kind == VALUE_NULL)
        return run_throw_npe(run, "java.util.Map$Entry.getKey()");
    struct value ignored;
    return convert_groovy(run, item, CLASS_MAP_ENTRY, true, &ignored);
}

static bool collect_entries(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    bool given = n > 0 && value_is_map(a[1]), function = n > 0 && value_is(a[n], CLASS_CLOSURE);
    struct dict *into = given ? dict_of(a[1]) : dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(into);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if ((function && !groovy_call_item(run, a[0], a[n], item, &item)) || !add_entry(run, into, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Without a closure the elements themselves are asked whether they are true. */
static bool holds_for(struct run *run, struct value *a, unsigned n, struct value item, bool *ret)
{
    return n == 0 ? convert_truth(run, item, ret) : groovy_test_item(run, a[0], a[n], item, ret);
}

static bool find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = VALUE_NONE;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(run, a, n, item, &holds))
            return false;
        if (holds) {
            *ret = item;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = groovy_similar(run, a[0]);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(run, a, n, item, &holds) || (holds && !groovy_add(run, *ret, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool find_result(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!groovy_call_item(run, a[0], a[n], item, ret))
            return false;
        if (ret->kind != VALUE_NULL)
            return true;
    }
    *ret = n == 2 ? a[1] : VALUE_NONE;
    return run->thrown == NULL;
}

static bool find_results(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *results = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(results);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!groovy_call_item(run, a[0], a[1], item, &result) ||
            (result.kind != VALUE_NULL && !seq_add(run, results, result)))
            return false;
    }
    return run->thrown == NULL;
}

enum place { PLACE_FIRST, PLACE_LAST, PLACE_ALL };

static bool find_places(struct run *run, struct value *a, unsigned n, enum place which, struct value *ret)
{
    struct iter iter;
    int64_t index = 0, start = n == 2 ? number_to_i64(a[1]) : 0;
    struct seq *all = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = which == PLACE_ALL ? value_of(all) : value_int(-1);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds = false;
        if (index >= start && !groovy_test_item(run, a[0], a[n], item, &holds))
            return false;
        if (holds && which == PLACE_FIRST)
            return give_int(ret, index);
        if (holds && which == PLACE_LAST)
            *ret = value_int(index);
        if (holds && which == PLACE_ALL && !seq_add(run, all, value_long(index)))
            return false;
        index++;
    }
    return run->thrown == NULL;
}

static bool find_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return find_places(run, a, n, PLACE_FIRST, ret);
}

static bool find_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return find_places(run, a, n, PLACE_LAST, ret);
}

static bool find_index_values(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return find_places(run, a, n, PLACE_ALL, ret);
}

static bool quantify(struct run *run, struct value *a, unsigned n, bool stop_at, struct value *ret)
{
    struct iter iter;
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(run, a, n, item, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, stop_at);
    }
    return run->thrown == NULL && give_boolean(ret, !stop_at);
}

static bool any(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return quantify(run, a, n, true, ret);
}

static bool every(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return quantify(run, a, n, false, ret);
}

/* Calls with what came out so far and the next element. */
static bool fold(struct run *run, struct iter *iter, struct value self, struct value function, struct value *so_far)
{
    bool split = value_is_map(self) && function_arity(function) == 3;
    walk(iter, item)
    {
        struct value arguments[3] = {*so_far, item, VALUE_NONE};
        if (split) {
            arguments[1] = ((const struct entry *)item.object)->key;
            arguments[2] = ((const struct entry *)item.object)->value;
        }
        if (!run_invoke(run, function, arguments, split ? 3 : 2, so_far))
            return false;
    }
    return run->thrown == NULL;
}

static bool inject(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    bool more = true;
    struct value so_far = n == 2 ? a[1] : VALUE_NONE;
    if (!groovy_walk(run, &iter, a[0]) || (n == 1 && !iter_next(&iter, &so_far, &more)))
        return false;
    if (!more)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION,
                         "Cannot call inject() on an empty %s without passing an initial value.",
                         value_instance_of(a[0], CLASS_COLLECTION) ? "collection" : "iterable");
    if (!fold(run, &iter, a[0], a[n], &so_far))
        return false;
    *ret = so_far;
    return true;
}

/* Those that a filter takes, as `in` and switch understand it. */
static bool grep(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = groovy_similar(run, a[0]);
    if (!groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!(n == 0 ? convert_truth(run, item, &holds) : groovy_contains(run, item, a[1], &holds)) ||
            (holds && !groovy_add(run, *ret, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *both = seq_new(run, CLASS_ARRAY_LIST, 2);
    struct value sides[2] = {groovy_similar(run, a[0]), groovy_similar(run, a[0])};
    *ret = value_of(both);
    if (!seq_add(run, both, sides[0]) || !seq_add(run, both, sides[1]) || !groovy_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!groovy_test_item(run, a[0], a[1], item, &holds) || !groovy_add(run, sides[holds ? 0 : 1], item))
            return false;
    }
    return run->thrown == NULL;
}

static bool iterator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_CURSOR);
    *ret = value_of(cursor);
    return groovy_walk(run, &cursor->iter, a[0]);
}

/* Of any object, null among them. */
#define N (METHOD_GROOVY | METHOD_NULL)

static const struct method walk_methods[] = {
    M1("each", N, DEF, CLOSURE, each),
    M1("eachWithIndex", N, DEF, CLOSURE, each_with_index),
    M0("collect", N, LIST, collect),
    M1("collect", N, LIST, CLOSURE, collect),
    M2("collect", N, COLLECTION, COLLECTION, CLOSURE, collect),
    M0("find", N, DEF, find),
    M1("find", N, DEF, CLOSURE, find),
    M0("findAll", N, COLLECTION, find_all),
    M1("findAll", N, COLLECTION, CLOSURE, find_all),
    M1("findResult", N, DEF, CLOSURE, find_result),
    M2("findResult", N, DEF, DEF, CLOSURE, find_result),
    M1("findIndexOf", N, INT, CLOSURE, find_index_of),
    M2("findIndexOf", N, INT, INT, CLOSURE, find_index_of),
    M1("findLastIndexOf", N, INT, CLOSURE, find_last_index_of),
    M2("findLastIndexOf", N, INT, INT, CLOSURE, find_last_index_of),
    M1("findIndexValues", N, LIST, CLOSURE, find_index_values),
    M2("findIndexValues", N, LIST, NUMBER, CLOSURE, find_index_values),
    M0("any", N, BOOLEAN, any),
    M1("any", N, BOOLEAN, CLOSURE, any),
    M0("every", N, BOOLEAN, every),
    M1("every", N, BOOLEAN, CLOSURE, every),
    M1("inject", N, DEF, CLOSURE, inject),
    M2("inject", N, DEF, DEF, CLOSURE, inject),
    M0("grep", N, COLLECTION, grep),
    M1("grep", N, COLLECTION, DEF, grep),
    M1("split", N, COLLECTION, CLOSURE, split),
    M0("iterator", N, ITERATOR, iterator),
};

static const struct method element_methods[] = {
    M1("collectMany", G, LIST, CLOSURE, collect_many),
    M2("collectMany", G, COLLECTION, COLLECTION, CLOSURE, collect_many),
    M1("collectNested", G, LIST, CLOSURE, collect_nested),
    M0("collectEntries", G, MAP, collect_entries),
    M1("collectEntries", G, MAP, CLOSURE, collect_entries),
    M1("collectEntries", G, MAP, MAP, collect_entries),
    M2("collectEntries", G, MAP, MAP, CLOSURE, collect_entries),
    M1("findResults", G, LIST, CLOSURE, find_results),
};

const struct method_table methods_groovy_walk[] = {
    METHOD_TABLE(OBJECT, walk_methods),      METHOD_TABLE(ITERABLE, element_methods),
    METHOD_TABLE(ITERATOR, element_methods), METHOD_TABLE(ARRAY, element_methods),
    METHOD_TABLE(MAP, element_methods),      {0, 0, NULL},
};
