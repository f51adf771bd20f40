/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of maps; a closure with two parameters gets key and value, with one the entry. */
#include "script/library/methods_groovy.h"

static struct dict *similar_map(struct run *run, const struct dict *dict)
{
    bool sorted = dict->object.class == CLASS_TREE_MAP;
    struct dict *map = dict_new(run, sorted ? CLASS_TREE_MAP : CLASS_LINKED_HASH_MAP);
    if (sorted)
        map->comparator = dict->comparator;
    return map;
}

/* Of `doc`, which is a map without entries, there are none. */
static bool walk_entries(struct run *run, struct iter *iter, struct value map)
{
    return iter_init(iter, run, value_of(dict_of(map)));
}

static struct seq *entries(struct run *run, struct value map)
{
    return values_to_seq(run, map, CLASS_ARRAY_LIST);
}

/* Hands the entries, as a list, to the list's method of that name. */
static bool as_list(struct run *run, struct value *a, unsigned n, struct slice name, struct value *ret)
{
    a[0] = value_of(entries(run, a[0]));
    return a[0].kind != VALUE_NULL && groovy_call(run, a, name, n, ret);
}

static bool max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return as_list(run, a, n, SLICE_LIT("max"), ret);
}

static bool min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return as_list(run, a, n, SLICE_LIT("min"), ret);
}

static bool from_entries(struct run *run, const struct seq *list, struct dict *map, struct value *ret)
{
    *ret = value_of(map);
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *entry = (const struct entry *)seq_item(list, i).object;
        if (!run_step(run, 1) || !dict_put(run, map, entry->key, entry->value, NULL))
            return false;
    }
    return true;
}

/* Without a closure by key, as a sorted map. */
static bool sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *list = entries(run, a[0]);
    if (list == NULL)
        return false;
    if (n == 0)
        return from_entries(run, list, dict_new(run, CLASS_TREE_MAP), ret);
    return values_sort(run, list->items, list->count, groovy_comparator(run, a[1])) &&
           from_entries(run, list, dict_new(run, CLASS_LINKED_HASH_MAP), ret);
}

static bool native_by_value(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    struct value pair[2] = {((const struct entry *)a[0].object)->value, ((const struct entry *)a[1].object)->value};
    return run_invoke(run, closure->held[0], pair, n, ret);
}

static bool to_sorted(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *list = entries(run, a[0]);
    struct value comparator = groovy_comparator(run, n == 0 ? VALUE_NONE : a[1]);
    if (n == 0)
        comparator = closure_native_new(run, native_by_value, 2, comparator, VALUE_NONE);
    return list != NULL && values_sort(run, list->items, list->count, comparator) &&
           from_entries(run, list, dict_new(run, CLASS_LINKED_HASH_MAP), ret);
}

/* Parts */

static bool sub_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct dict *map = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(map);
    if (!groovy_walk(run, &iter, a[1]))
        return false;
    walk(&iter, key)
    {
        struct entry *entry;
        if (!dict_find(run, dict_of(a[0]), key, &entry) ||
            (entry != NULL && !dict_put(run, map, key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

/* The first `count` entries, or the rest. */
static bool cut(struct run *run, struct value *a, bool take, struct value *ret)
{
    struct dict *from = dict_of(a[0]), *map = similar_map(run, from);
    int64_t index = 0;
    *ret = value_of(map);
    for (struct entry *entry = dict_first(from); entry != NULL; entry = dict_next(from, entry), index++)
        if (!run_step(run, 1) || ((index < a[1].i) == take && !dict_put(run, map, entry->key, entry->value, NULL)))
            return false;
    return true;
}

static bool take(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return cut(run, a, true, ret);
}

static bool drop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return cut(run, a, false, ret);
}

static bool cut_while(struct run *run, struct value *a, bool take, struct value *ret)
{
    struct iter iter;
    struct dict *map = similar_map(run, dict_of(a[0]));
    bool holds = true;
    *ret = value_of(map);
    if (!walk_entries(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        const struct entry *entry = (const struct entry *)item.object;
        if (holds && !groovy_test_item(run, a[0], a[1], item, &holds))
            return false;
        if (holds == take && !dict_put(run, map, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool take_while(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return cut_while(run, a, true, ret);
}

static bool drop_while(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return cut_while(run, a, false, ret);
}

static bool intersect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *left = dict_of(a[0]), *right = dict_of(a[1]), *map = similar_map(run, left);
    *ret = value_of(map);
    for (struct entry *entry = dict_first(left); entry != NULL; entry = dict_next(left, entry)) {
        struct entry *other;
        bool same = false;
        if (!run_step(run, 1) || !dict_find(run, right, entry->key, &other) ||
            (other != NULL && !operate_equal(run, entry->value, other->value, &same)) ||
            (same && !dict_put(run, map, entry->key, entry->value, NULL)))
            return false;
    }
    return true;
}

static bool find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct dict *found = similar_map(run, dict_of(a[0]));
    *ret = value_of(found);
    if (!walk_entries(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        const struct entry *entry = (const struct entry *)item.object;
        bool holds;
        if (!groovy_test_item(run, a[0], a[1], item, &holds) ||
            (holds && !dict_put(run, found, entry->key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

static bool count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    int64_t found = 0;
    if (!walk_entries(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!groovy_test_item(run, a[0], a[1], item, &holds))
            return false;
        found += holds;
    }
    return run->thrown == NULL && give_int(ret, found);
}

/* Groups */

/* Each group is a map of its entries. */
static bool group_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!walk_entries(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        const struct entry *entry = (const struct entry *)item.object;
        struct value key;
        struct entry *group;
        if (!groovy_key(run, a, n, item, &key) || !dict_find(run, groups, key, &group))
            return false;
        struct dict *members = group != NULL ? dict_of(group->value) : similar_map(run, dict_of(a[0]));
        if ((group == NULL && !dict_put(run, groups, key, value_of(members), NULL)) ||
            !dict_put(run, members, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool count_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    return walk_entries(run, &iter, a[0]) && groovy_count_by(run, &iter, a, n, ret);
}

static bool group_entries_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!walk_entries(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct entry *entry;
        if (!groovy_key(run, a, n, item, &key) || !dict_find(run, groups, key, &entry))
            return false;
        struct seq *members = entry != NULL ? seq_of(entry->value) : seq_new(run, CLASS_ARRAY_LIST, 0);
        if ((entry == NULL && !dict_put(run, groups, key, value_of(members), NULL)) || !seq_add(run, members, item))
            return false;
    }
    return run->thrown == NULL;
}

/* Changes */

static bool put_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    *ret = a[0];
    if (!groovy_walk(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        if (!value_instance_of(item, CLASS_MAP_ENTRY))
            return convert_groovy(run, item, CLASS_MAP_ENTRY, false, ret);
        const struct entry *entry = (const struct entry *)item.object;
        if (!dict_put(run, dict_of(a[0]), entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

static bool reverse_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *list = entries(run, a[0]);
    struct value ignored;
    *ret = a[0];
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (!groovy_call_item(run, a[0], a[1], seq_item(list, list->count - 1 - i), &ignored))
            return false;
    return list != NULL;
}

static bool as_immutable(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *map = dict_new(run, CLASS_IMMUTABLE_MAP);
    *ret = value_of(map);
    if (!dict_put_all(run, map, dict_of(a[0])))
        return false;
    map->object.flags |= OBJECT_READONLY;
    return true;
}

/* A copy that asks a closure for the value of a key it does not have, and keeps it. */
static bool with_default(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *map = dict_new(run, CLASS_MAP_WITH_DEFAULT);
    *ret = value_of(map);
    map->initial = a[1];
    return dict_put_all(run, map, dict_of(a[0]));
}

static bool get_or_make(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_map_get(run, dict_of(a[0]), a[1], ret);
}

static const struct method map_with_default_methods[] = {
    M1("get", G, DEF, DEF, get_or_make),
};

static const struct method map_methods[] = {
    M1("max", G, DEF, CLOSURE, max),
    M1("min", G, DEF, CLOSURE, min),
    M0("sort", G, MAP, sort),
    M1("sort", G, MAP, CLOSURE, sort),
    M1("sort", G, MAP, COMPARATOR, sort),
    M0("toSorted", G, MAP, to_sorted),
    M1("toSorted", G, MAP, CLOSURE, to_sorted),
    M1("toSorted", G, MAP, COMPARATOR, to_sorted),
    M1("subMap", G, MAP, COLLECTION, sub_map),
    M1("subMap", G, MAP, OBJECT_ARRAY, sub_map),
    M1("take", G, MAP, INT, take),
    M1("drop", G, MAP, INT, drop),
    M1("takeWhile", G, MAP, CLOSURE, take_while),
    M1("dropWhile", G, MAP, CLOSURE, drop_while),
    M1("intersect", G, MAP, MAP, intersect),
    M1("findAll", G, MAP, CLOSURE, find_all),
    M1("count", G, NUMBER, CLOSURE, count),
    M1("groupBy", G, MAP, CLOSURE, group_by),
    M1("countBy", G, MAP, CLOSURE, count_by),
    M1("groupEntriesBy", G, MAP, CLOSURE, group_entries_by),
    M1("putAll", G, MAP, COLLECTION, put_all),
    M1("reverseEach", G, MAP, CLOSURE, reverse_each),
    M0("asImmutable", G, MAP, as_immutable),
    M1("withDefault", G, MAP, CLOSURE, with_default),
};

const struct method_table methods_groovy_map[] = {
    METHOD_TABLE(MAP, map_methods),
    METHOD_TABLE(MAP_WITH_DEFAULT, map_with_default_methods),
    {0, 0, NULL},
};
