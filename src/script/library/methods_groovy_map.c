/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of maps. A closure with two parameters gets key and value; with one
   parameter, the entry. */
#include "script/library/methods_groovy.h"

static struct dict *similar_map(struct run *run, const struct dict *dict)
{
    bool sorted = dict->object.class == CLASS_TREE_MAP;
    struct dict *map = dict_new(run, sorted ? CLASS_TREE_MAP : CLASS_LINKED_HASH_MAP);
    if (sorted)
        map->comparator = dict->comparator;
    return map;
}

/* Starts an iteration over the entries. `doc` of searches counts as a map without entries. */
static bool walk_entries(struct run *run, struct iter *iter, struct value map)
{
    return iter_init(iter, run, value_of(dict_of(map)));
}

static struct seq *entries_of(struct run *run, struct value map)
{
    return values_to_seq(run, map, CLASS_ARRAY_LIST);
}

/* Calls the list method of the row's name on the list of entries. */
static bool as_list(struct call *call, struct value *ret)
{
    struct value arguments[2] = {value_of(entries_of(call->run, call->self)), call->args[0]};
    return arguments[0].kind != VALUE_NULL && groovy_call(call->run, arguments, slice_from(call->row->name), 1, ret);
}

static bool from_entries(struct run *run, const struct seq *list, struct dict *map, struct value *ret)
{
    *ret = value_of(map);
    for (size_t i = 0; i < list->count; i++) {
        const struct map_entry *entry = (const struct map_entry *)seq_item(list, i).object;
        if (!run_step(run, 1) || !dict_put(run, map, entry->key, entry->value, NULL))
            return false;
    }
    return true;
}

/* Sorts the entries by a closure; without one, by key into a sorted map. */
static bool map_sort(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *list = entries_of(run, call->self);
    if (list == NULL)
        return false;
    if (call->count == 0)
        return from_entries(run, list, dict_new(run, CLASS_TREE_MAP), ret);
    return values_sort(run, list->items, list->count, groovy_comparator(run, call->args[0])) &&
           from_entries(run, list, dict_new(run, CLASS_LINKED_HASH_MAP), ret);
}

static bool native_by_value(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    struct value pair[2] = {((const struct map_entry *)a[0].object)->value,
                            ((const struct map_entry *)a[1].object)->value};
    return run_invoke(run, closure->held[0], pair, n, ret);
}

static bool to_sorted(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *list = entries_of(run, call->self);
    struct value comparator = groovy_comparator(run, call->count == 0 ? VALUE_NONE : call->args[0]);
    if (call->count == 0)
        comparator = closure_native_new(run, native_by_value, 2, comparator, VALUE_NONE);
    return list != NULL && values_sort(run, list->items, list->count, comparator) &&
           from_entries(run, list, dict_new(run, CLASS_LINKED_HASH_MAP), ret);
}

/* Parts */

static bool sub_map(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct dict *map = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(map);
    if (!groovy_walk(run, &iter, call->args[0]))
        return false;
    walk(&iter, key)
    {
        struct map_entry *entry;
        if (!dict_find(run, dict_of(call->self), key, &entry) ||
            (entry != NULL && !dict_put(run, map, key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

/* Takes (the datum is 1) or drops (0) the first entries; the argument is their number. */
static bool map_take_or_drop(struct call *call, struct value *ret)
{
    bool take = call->row->datum.number != 0;
    struct run *run = call->run;
    struct dict *from = dict_of(call->self), *map = similar_map(run, from);
    int64_t index = 0;
    *ret = value_of(map);
    for (struct map_entry *entry = dict_first(from); entry != NULL; entry = dict_next(from, entry), index++)
        if (!run_step(run, 1) ||
            ((index < call->args[0].i) == take && !dict_put(run, map, entry->key, entry->value, NULL)))
            return false;
    return true;
}

static bool cut_while(struct call *call, struct value *ret)
{
    bool take = call->row->datum.number != 0;
    struct run *run = call->run;
    struct iter iter;
    struct dict *map = similar_map(run, dict_of(call->self));
    bool holds = true;
    *ret = value_of(map);
    if (!walk_entries(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        const struct map_entry *entry = (const struct map_entry *)item.object;
        if (holds && !groovy_test_item(run, call->self, call->args[0], item, &holds))
            return false;
        if (holds == take && !dict_put(run, map, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_intersect(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct dict *left = dict_of(call->self), *right = dict_of(call->args[0]), *map = similar_map(run, left);
    *ret = value_of(map);
    for (struct map_entry *entry = dict_first(left); entry != NULL; entry = dict_next(left, entry)) {
        struct map_entry *other;
        bool same = false;
        if (!run_step(run, 1) || !dict_find(run, right, entry->key, &other) ||
            (other != NULL && !operate_equal(run, entry->value, other->value, &same)) ||
            (same && !dict_put(run, map, entry->key, entry->value, NULL)))
            return false;
    }
    return true;
}

static bool find_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct dict *found = similar_map(run, dict_of(call->self));
    *ret = value_of(found);
    if (!walk_entries(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        const struct map_entry *entry = (const struct map_entry *)item.object;
        bool holds;
        if (!groovy_test_item(run, call->self, call->args[0], item, &holds) ||
            (holds && !dict_put(run, found, entry->key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_count(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    int64_t found = 0;
    if (!walk_entries(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!groovy_test_item(run, call->self, call->args[0], item, &holds))
            return false;
        found += holds;
    }
    return run->thrown == NULL && give_int(ret, found);
}

/* Groups */

/* Groups the entries; each group is a map. */
static bool group_by(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!walk_entries(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        const struct map_entry *entry = (const struct map_entry *)item.object;
        struct value key;
        struct map_entry *group;
        if (!groovy_key(call, item, &key) || !dict_find(run, groups, key, &group))
            return false;
        struct dict *members = group != NULL ? dict_of(group->value) : similar_map(run, dict_of(call->self));
        if ((group == NULL && !dict_put(run, groups, key, value_of(members), NULL)) ||
            !dict_put(run, members, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool count_by(struct call *call, struct value *ret)
{
    struct iter iter;
    return walk_entries(call->run, &iter, call->self) && groovy_count_by(call, &iter, ret);
}

static bool group_entries_by(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!walk_entries(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct map_entry *entry;
        if (!groovy_key(call, item, &key) || !dict_find(run, groups, key, &entry))
            return false;
        struct seq *members = entry != NULL ? seq_of(entry->value) : seq_new(run, CLASS_ARRAY_LIST, 0);
        if ((entry == NULL && !dict_put(run, groups, key, value_of(members), NULL)) || !seq_add(run, members, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Changes */

static bool put_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = call->self;
    if (!groovy_walk(run, &iter, call->args[0]))
        return false;
    walk(&iter, item)
    {
        if (!value_instance_of(item, CLASS_MAP_ENTRY))
            return convert_groovy(run, item, CLASS_MAP_ENTRY, false, ret);
        const struct map_entry *entry = (const struct map_entry *)item.object;
        if (!dict_put(run, dict_of(call->self), entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool reverse_each(struct call *call, struct value *ret)
{
    const struct seq *list = entries_of(call->run, call->self);
    struct value ignored;
    *ret = call->self;
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (!groovy_call_item(call->run, call->self, call->args[0], seq_item(list, list->count - 1 - i), &ignored))
            return false;
    return list != NULL;
}

static bool as_immutable(struct call *call, struct value *ret)
{
    struct dict *map = dict_new(call->run, CLASS_IMMUTABLE_MAP);
    *ret = value_of(map);
    if (!dict_put_all(call->run, map, dict_of(call->self)))
        return false;
    map->object.flags |= OBJECT_READONLY;
    return true;
}

/* Gives a copy that computes the value of a missing key by a closure, and stores it. */
static bool with_default(struct call *call, struct value *ret)
{
    struct dict *map = dict_new(call->run, CLASS_MAP_WITH_DEFAULT);
    *ret = value_of(map);
    map->initial = call->args[0];
    return dict_put_all(call->run, map, dict_of(call->self));
}

static bool get_or_make(struct call *call, struct value *ret)
{
    return groovy_map_get(call->run, dict_of(call->self), call->args[0], ret);
}

static const struct method_row map_with_default_methods[] = {
    {"def get(def)", GROOVY, get_or_make},
};

static const struct method_row map_methods[] = {
    {"def max(Closure)", GROOVY, as_list},
    {"def min(Closure)", GROOVY, as_list},
    {"Map sort()", GROOVY, map_sort},
    {"Map sort(Closure)", GROOVY, map_sort},
    {"Map sort(Comparator)", GROOVY, map_sort},
    {"Map toSorted()", GROOVY, to_sorted},
    {"Map toSorted(Closure)", GROOVY, to_sorted},
    {"Map toSorted(Comparator)", GROOVY, to_sorted},
    {"Map subMap(Collection)", GROOVY, sub_map},
    {"Map subMap(Object[])", GROOVY, sub_map},
    {"Map take(int)", GROOVY, map_take_or_drop, {true}},
    {"Map drop(int)", GROOVY, map_take_or_drop, {false}},
    {"Map takeWhile(Closure)", GROOVY, cut_while, {true}},
    {"Map dropWhile(Closure)", GROOVY, cut_while, {false}},
    {"Map intersect(Map)", GROOVY, map_intersect},
    {"Map findAll(Closure)", GROOVY, find_all},
    {"Number count(Closure)", GROOVY, map_count},
    {"Map groupBy(Closure)", GROOVY, group_by},
    {"Map countBy(Closure)", GROOVY, count_by},
    {"Map groupEntriesBy(Closure)", GROOVY, group_entries_by},
    {"Map putAll(Collection)", GROOVY, put_all},
    {"Map reverseEach(Closure)", GROOVY, reverse_each},
    {"Map asImmutable()", GROOVY, as_immutable},
    {"Map withDefault(Closure)", GROOVY, with_default},
};

const struct method_table methods_groovy_map[] = {
    METHOD_ROWS(MAP, map_methods),
    METHOD_ROWS(MAP_WITH_DEFAULT, map_with_default_methods),
    {0},
};
