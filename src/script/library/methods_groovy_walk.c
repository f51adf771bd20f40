/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods that iterate over any object: each, collect, find, inject, grep and similar
   ones. */
#include "script/library/methods_groovy.h"

static bool walk_each(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value ignored;
    *ret = call->self;
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (!groovy_call_item(run, call->self, call->args[0], item, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

/* Calls a closure with element and index. A map's closure gets key, value and index, or entry
   and index. */
static bool each_with_index(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value ignored;
    int64_t index = 0;
    *ret = call->self;
    bool split = value_is_map(call->self) && function_arity(call->args[0]) == 3;
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value arguments[3] = {item, value_int(index), VALUE_NONE};
        if (split) {
            const struct map_entry *entry = (const struct map_entry *)item.object;
            arguments[0] = entry->key;
            arguments[1] = entry->value;
            arguments[2] = value_int(index);
        }
        index++;
        if (!run_invoke(run, call->args[0], arguments, split ? 3 : 2, &ignored))
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

static bool walk_collect(struct call *call, struct value *ret)
{
    *ret = call->count == 2 ? call->args[0] : value_of(seq_new(call->run, CLASS_ARRAY_LIST, 0));
    return collect_into(call->run, call->self, call->count == 0 ? VALUE_NONE : call_last(call), *ret);
}

/* Collects the closure's results; those that are collections are concatenated. */
static bool collect_many(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = call->count == 2 ? call->args[0] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!groovy_call_item(run, call->self, call_last(call), item, &result) || !groovy_add_all(run, *ret, result))
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

static bool collect_nested(struct call *call, struct value *ret)
{
    *ret = value_of(seq_new(call->run, CLASS_ARRAY_LIST, 0));
    return collect_nested_into(call->run, call->self, call->args[0], *ret);
}

/* Adds the entries of a map, an entry, or a pair of key and value in a list or array. */
static bool add_entry(struct run *run, struct dict *into, struct value item)
{
    if (value_is_map(item))
        return dict_put_all(run, into, dict_of(item));
    if (value_instance_of(item, CLASS_MAP_ENTRY)) {
        const struct map_entry *entry = (const struct map_entry *)item.object;
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

static bool collect_entries(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    bool given = call->count > 0 && value_is_map(call->args[0]),
         function = call->count > 0 && value_is(call_last(call), CLASS_CLOSURE);
    struct dict *into = given ? dict_of(call->args[0]) : dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(into);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if ((function && !groovy_call_item(run, call->self, call_last(call), item, &item)) ||
            !add_entry(run, into, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Tests an element by the closure; without one, by its own truth value. */
static bool holds_for(struct call *call, struct value item, bool *ret)
{
    return call->count == 0 ? convert_truth(call->run, item, ret)
                            : groovy_test_item(call->run, call->self, call_last(call), item, ret);
}

static bool groovy_find(struct call *call, struct value *ret)
{
    struct iter iter;
    *ret = VALUE_NONE;
    if (!groovy_walk(call->run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(call, item, &holds))
            return false;
        if (holds) {
            *ret = item;
            return true;
        }
    }
    return call->run->thrown == NULL;
}

static bool find_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = groovy_similar(run, call->self);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(call, item, &holds) || (holds && !groovy_add(run, *ret, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool find_result(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (!groovy_call_item(run, call->self, call_last(call), item, ret))
            return false;
        if (ret->kind != VALUE_NULL)
            return true;
    }
    *ret = call->count == 2 ? call->args[0] : VALUE_NONE;
    return run->thrown == NULL;
}

static bool find_results(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct seq *results = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(results);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!groovy_call_item(run, call->self, call->args[0], item, &result) ||
            (result.kind != VALUE_NULL && !seq_add(run, results, result)))
            return false;
    }
    return run->thrown == NULL;
}

enum occurrence { OCCURRENCE_FIRST, OCCURRENCE_LAST, OCCURRENCE_ALL };

static bool find_indexes(struct call *call, struct value *ret)
{
    enum occurrence which = (enum occurrence)call->row->datum.number;
    struct run *run = call->run;
    struct iter iter;
    int64_t index = 0, start = call->count == 2 ? number_to_i64(call->args[0]) : 0;
    struct seq *all = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = which == OCCURRENCE_ALL ? value_of(all) : value_int(-1);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds = false;
        if (index >= start && !groovy_test_item(run, call->self, call_last(call), item, &holds))
            return false;
        if (holds && which == OCCURRENCE_FIRST)
            return give_int(ret, index);
        if (holds && which == OCCURRENCE_LAST)
            *ret = value_int(index);
        if (holds && which == OCCURRENCE_ALL && !seq_add(run, all, value_long(index)))
            return false;
        index++;
    }
    return run->thrown == NULL;
}

static bool walk_any_or_every(struct call *call, struct value *ret)
{
    bool stop_at = call->row->datum.number != 0;
    struct iter iter;
    if (!groovy_walk(call->run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!holds_for(call, item, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, stop_at);
    }
    return call->run->thrown == NULL && give_boolean(ret, !stop_at);
}

/* Calls the closure with the previous result and the next element; *so_far is the initial value,
   then the result. */
static bool fold_element(struct run *run, struct iter *iter, struct value self, struct value function,
                         struct value *so_far)
{
    bool split = value_is_map(self) && function_arity(function) == 3;
    walk(iter, item)
    {
        struct value arguments[3] = {*so_far, item, VALUE_NONE};
        if (split) {
            arguments[1] = ((const struct map_entry *)item.object)->key;
            arguments[2] = ((const struct map_entry *)item.object)->value;
        }
        if (!run_invoke(run, function, arguments, split ? 3 : 2, so_far))
            return false;
    }
    return run->thrown == NULL;
}

static bool walk_inject(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    bool more = true;
    struct value so_far = call->count == 2 ? call->args[0] : VALUE_NONE;
    if (!groovy_walk(run, &iter, call->self) || (call->count == 1 && !iter_next(&iter, &so_far, &more)))
        return false;
    if (!more)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION,
                         "Cannot call inject() on an empty %s without passing an initial value.",
                         value_instance_of(call->self, CLASS_COLLECTION) ? "collection" : "iterable");
    if (!fold_element(run, &iter, call->self, call_last(call), &so_far))
        return false;
    *ret = so_far;
    return true;
}

/* Gives the elements that a filter matches, as `in` and switch do. */
static bool walk_grep(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = groovy_similar(run, call->self);
    if (!groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!(call->count == 0 ? convert_truth(run, item, &holds)
                               : groovy_contains(run, item, call->args[0], &holds)) ||
            (holds && !groovy_add(run, *ret, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool walk_split(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct seq *both = seq_new(run, CLASS_ARRAY_LIST, 2);
    struct value sides[2] = {groovy_similar(run, call->self), groovy_similar(run, call->self)};
    *ret = value_of(both);
    if (!seq_add(run, both, sides[0]) || !seq_add(run, both, sides[1]) || !groovy_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!groovy_test_item(run, call->self, call->args[0], item, &holds) ||
            !groovy_add(run, sides[holds ? 0 : 1], item))
            return false;
    }
    return run->thrown == NULL;
}

static bool walk_iterator(struct call *call, struct value *ret)
{
    struct cursor *cursor = run_object(call->run, sizeof *cursor, CLASS_CURSOR);
    *ret = value_of(cursor);
    return groovy_walk(call->run, &cursor->iter, call->self);
}

/* Methods of any object; null is accepted as receiver */

static const struct method_row walk_methods[] = {
    {"def each(Closure)", GROOVY | METHOD_NULL, walk_each},
    {"def eachWithIndex(Closure)", GROOVY | METHOD_NULL, each_with_index},
    {"List collect()", GROOVY | METHOD_NULL, walk_collect},
    {"List collect(Closure)", GROOVY | METHOD_NULL, walk_collect},
    {"Collection collect(Collection, Closure)", GROOVY | METHOD_NULL, walk_collect},
    {"def find()", GROOVY | METHOD_NULL, groovy_find},
    {"def find(Closure)", GROOVY | METHOD_NULL, groovy_find},
    {"Collection findAll()", GROOVY | METHOD_NULL, find_all},
    {"Collection findAll(Closure)", GROOVY | METHOD_NULL, find_all},
    {"def findResult(Closure)", GROOVY | METHOD_NULL, find_result},
    {"def findResult(def, Closure)", GROOVY | METHOD_NULL, find_result},
    {"int findIndexOf(Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_FIRST}},
    {"int findIndexOf(int, Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_FIRST}},
    {"int findLastIndexOf(Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_LAST}},
    {"int findLastIndexOf(int, Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_LAST}},
    {"List findIndexValues(Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_ALL}},
    {"List findIndexValues(Number, Closure)", GROOVY | METHOD_NULL, find_indexes, {OCCURRENCE_ALL}},
    {"boolean any()", GROOVY | METHOD_NULL, walk_any_or_every, {true}},
    {"boolean any(Closure)", GROOVY | METHOD_NULL, walk_any_or_every, {true}},
    {"boolean every()", GROOVY | METHOD_NULL, walk_any_or_every, {false}},
    {"boolean every(Closure)", GROOVY | METHOD_NULL, walk_any_or_every, {false}},
    {"def inject(Closure)", GROOVY | METHOD_NULL, walk_inject},
    {"def inject(def, Closure)", GROOVY | METHOD_NULL, walk_inject},
    {"Collection grep()", GROOVY | METHOD_NULL, walk_grep},
    {"Collection grep(def)", GROOVY | METHOD_NULL, walk_grep},
    {"Collection split(Closure)", GROOVY | METHOD_NULL, walk_split},
    {"Iterator iterator()", GROOVY | METHOD_NULL, walk_iterator},
};

static const struct method_row element_methods[] = {
    {"List collectMany(Closure)", GROOVY, collect_many},
    {"Collection collectMany(Collection, Closure)", GROOVY, collect_many},
    {"List collectNested(Closure)", GROOVY, collect_nested},
    {"Map collectEntries()", GROOVY, collect_entries},
    {"Map collectEntries(Closure)", GROOVY, collect_entries},
    {"Map collectEntries(Map)", GROOVY, collect_entries},
    {"Map collectEntries(Map, Closure)", GROOVY, collect_entries},
    {"List findResults(Closure)", GROOVY, find_results},
};

const struct method_table methods_groovy_walk[] = {
    METHOD_ROWS(OBJECT, walk_methods),   METHOD_ROWS(ITERABLE, element_methods), METHOD_ROWS(ITERATOR, element_methods),
    METHOD_ROWS(ARRAY, element_methods), METHOD_ROWS(MAP, element_methods),      {0},
};
