/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods of sorted maps and sets: first and last key, neighbors of a key, and the part between two
 * keys.
 *
 * A part is a copy: unlike in Java, changes to it do not affect the whole collection.
 */
#include "script/library/methods_collection.h"

static bool need_some(struct run *run, const struct dict *dict)
{
    return dict->count > 0 || run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
}

static bool give_key(struct value *ret, const struct map_entry *entry)
{
    *ret = entry == NULL ? VALUE_NONE : entry->key;
    return true;
}

static bool give_entry(struct value *ret, const struct map_entry *entry)
{
    *ret = value_of(entry);
    return true;
}

/* First and last */

static bool first_key(struct call *call, struct value *ret)
{
    return need_some(call->run, dict_of(call->self)) && give_key(ret, dict_of(call->self)->head);
}

static bool last_key(struct call *call, struct value *ret)
{
    return need_some(call->run, dict_of(call->self)) && give_key(ret, dict_of(call->self)->tail);
}

static bool first_entry(struct call *call, struct value *ret)
{
    return give_entry(ret, dict_of(call->self)->head);
}

static bool last_entry(struct call *call, struct value *ret)
{
    return give_entry(ret, dict_of(call->self)->tail);
}

static bool remove_polled(struct run *run, struct dict *dict, struct map_entry *entry)
{
    return entry == NULL || dict_remove_entry(run, dict, entry);
}

static bool poll_first(struct call *call, struct value *ret)
{
    struct map_entry *entry = dict_of(call->self)->head;
    return remove_polled(call->run, dict_of(call->self), entry) && give_key(ret, entry);
}

static bool poll_last(struct call *call, struct value *ret)
{
    struct map_entry *entry = dict_of(call->self)->tail;
    return remove_polled(call->run, dict_of(call->self), entry) && give_key(ret, entry);
}

static bool poll_first_entry(struct call *call, struct value *ret)
{
    struct map_entry *entry = dict_of(call->self)->head;
    return remove_polled(call->run, dict_of(call->self), entry) && give_entry(ret, entry);
}

static bool poll_last_entry(struct call *call, struct value *ret)
{
    struct map_entry *entry = dict_of(call->self)->tail;
    return remove_polled(call->run, dict_of(call->self), entry) && give_entry(ret, entry);
}

static bool get_comparator(struct call *call, struct value *ret)
{
    *ret = dict_of(call->self)->comparator;
    return true;
}

/* Neighbors */

enum side { SIDE_LOWER, SIDE_FLOOR, SIDE_CEILING, SIDE_HIGHER };

static bool find_neighbour(struct call *call, enum side side, const struct map_entry **ret_entry)
{
    const struct dict *dict = dict_of(call->self);
    uint32_t at;
    bool found;
    if (!dict_search(call->run, dict, call->args[0], &at, &found))
        return false;
    bool self = found && (side == SIDE_FLOOR || side == SIDE_CEILING);
    int64_t index = self ? at : side <= SIDE_FLOOR ? (int64_t)at - 1 : (int64_t)at + found;
    *ret_entry = index >= 0 && index < dict->count ? dict->sorted[index] : NULL;
    return true;
}

/* Gives the neighbor of a key; the datum is the side. */
static bool neighbour_key(struct call *call, struct value *ret)
{
    const struct map_entry *entry;
    return find_neighbour(call, (enum side)call->row->datum.number, &entry) && give_key(ret, entry);
}

static bool neighbour_entry(struct call *call, struct value *ret)
{
    const struct map_entry *entry;
    return find_neighbour(call, (enum side)call->row->datum.number, &entry) && give_entry(ret, entry);
}

/* Parts */

/* One bound of a part: a key, and whether the part includes it. A NULL key means no bound. */
struct limit {
    const struct value *key;
    bool inclusive;
};

/* Gives the index of the first element of the part or, with `end`, of the first element after
   it. */
static bool limit_index(struct run *run, const struct dict *dict, struct limit limit, bool end, uint32_t *ret_index)
{
    bool found;
    *ret_index = end ? dict->count : 0;
    if (limit.key == NULL)
        return true;
    if (!dict_search(run, dict, *limit.key, ret_index, &found))
        return false;
    *ret_index += found && limit.inclusive == end;
    return true;
}

static bool give_part(struct call *call, struct limit from, struct limit to, struct value *ret)
{
    struct run *run = call->run;
    const struct dict *dict = dict_of(call->self);
    uint32_t begin, end;
    if (!limit_index(run, dict, from, false, &begin) || !limit_index(run, dict, to, true, &end))
        return false;
    struct dict *found = dict_new(run, (enum class_id)dict->object.class);
    found->comparator = dict->comparator;
    for (uint32_t i = begin; i < end; i++)
        if (!run_step(run, 1) || !dict_put(run, found, dict->sorted[i]->key, dict->sorted[i]->value, NULL))
            return false;
    return give(ret, found);
}

static bool head_part(struct call *call, struct value *ret)
{
    return give_part(call, (struct limit){NULL, false},
                     (struct limit){&call->args[0], call->count == 2 && call->args[1].i != 0}, ret);
}

static bool tail_part(struct call *call, struct value *ret)
{
    return give_part(call, (struct limit){&call->args[0], call->count == 1 || call->args[1].i != 0},
                     (struct limit){NULL, false}, ret);
}

static bool middle_part(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct limit from = {&call->args[0], call->count == 2 || call->args[1].i != 0},
                 to = {call->count == 2 ? &call->args[1] : &call->args[2], call->count == 4 && call->args[3].i != 0};
    uint32_t low, high;
    bool low_found, high_found;
    if (!dict_search(run, dict_of(call->self), *from.key, &low, &low_found) ||
        !dict_search(run, dict_of(call->self), *to.key, &high, &high_found))
        return false;
    if (low > high)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "fromKey > toKey");
    return give_part(call, from, to, ret);
}

static bool descending_as(struct run *run, const struct dict *dict, enum class_id id, struct value *ret)
{
    struct value arguments[2] = {VALUE_NONE, dict->comparator}, order;
    if (!methods_utility_reverse_order(CALL(run, arguments, 1), &order))
        return false;
    struct dict *found = dict_new(run, id);
    found->comparator = order;
    return dict_put_all(run, found, (struct dict *)(uintptr_t)dict) && give(ret, found);
}

static bool give_descending(struct call *call, struct value *ret)
{
    return descending_as(call->run, dict_of(call->self), (enum class_id)call->self.object->class, ret);
}

static bool descending_keys(struct call *call, struct value *ret)
{
    return descending_as(call->run, dict_of(call->self), CLASS_TREE_SET, ret);
}

static bool give_keys(struct call *call, struct value *ret)
{
    struct dict *set = dict_new(call->run, CLASS_TREE_SET);
    set->comparator = dict_of(call->self)->comparator;
    return dict_put_all(call->run, set, dict_of(call->self)) && give(ret, set);
}

static const struct method_row sorted_map_methods[] = {
    {"Comparator comparator()", BOTH, get_comparator},
    {"def firstKey()", BOTH, first_key},
    {"def lastKey()", BOTH, last_key},
    {"SortedMap headMap(def)", BOTH, head_part},
    {"SortedMap tailMap(def)", BOTH, tail_part},
    {"SortedMap subMap(def, def)", BOTH, middle_part},
};

static const struct method_row navigable_map_methods[] = {
    {"Map.Entry firstEntry()", BOTH, first_entry},
    {"Map.Entry lastEntry()", BOTH, last_entry},
    {"Map.Entry pollFirstEntry()", BOTH, poll_first_entry},
    {"Map.Entry pollLastEntry()", BOTH, poll_last_entry},
    {"def lowerKey(def)", BOTH, neighbour_key, {SIDE_LOWER}},
    {"def floorKey(def)", BOTH, neighbour_key, {SIDE_FLOOR}},
    {"def ceilingKey(def)", BOTH, neighbour_key, {SIDE_CEILING}},
    {"def higherKey(def)", BOTH, neighbour_key, {SIDE_HIGHER}},
    {"Map.Entry lowerEntry(def)", BOTH, neighbour_entry, {SIDE_LOWER}},
    {"Map.Entry floorEntry(def)", BOTH, neighbour_entry, {SIDE_FLOOR}},
    {"Map.Entry ceilingEntry(def)", BOTH, neighbour_entry, {SIDE_CEILING}},
    {"Map.Entry higherEntry(def)", BOTH, neighbour_entry, {SIDE_HIGHER}},
    {"NavigableMap headMap(def, boolean)", BOTH, head_part},
    {"NavigableMap tailMap(def, boolean)", BOTH, tail_part},
    {"NavigableMap subMap(def, boolean, def, boolean)", BOTH, middle_part},
    {"NavigableMap descendingMap()", BOTH, give_descending},
    {"NavigableSet descendingKeySet()", BOTH, descending_keys},
    {"NavigableSet navigableKeySet()", BOTH, give_keys},
};

static const struct method_row sorted_set_methods[] = {
    {"Comparator comparator()", BOTH, get_comparator},
    {"def first()", BOTH, first_key},
    {"def last()", BOTH, last_key},
    {"SortedSet headSet(def)", BOTH, head_part},
    {"SortedSet tailSet(def)", BOTH, tail_part},
    {"SortedSet subSet(def, def)", BOTH, middle_part},
};

static const struct method_row navigable_set_methods[] = {
    {"def pollFirst()", BOTH, poll_first},
    {"def pollLast()", BOTH, poll_last},
    {"def lower(def)", BOTH, neighbour_key, {SIDE_LOWER}},
    {"def floor(def)", BOTH, neighbour_key, {SIDE_FLOOR}},
    {"def ceiling(def)", BOTH, neighbour_key, {SIDE_CEILING}},
    {"def higher(def)", BOTH, neighbour_key, {SIDE_HIGHER}},
    {"NavigableSet headSet(def, boolean)", BOTH, head_part},
    {"NavigableSet tailSet(def, boolean)", BOTH, tail_part},
    {"NavigableSet subSet(def, boolean, def, boolean)", BOTH, middle_part},
    {"NavigableSet descendingSet()", BOTH, give_descending},
};

const struct method_table methods_sorted[] = {
    METHOD_ROWS(SORTED_MAP, sorted_map_methods),
    METHOD_ROWS(NAVIGABLE_MAP, navigable_map_methods),
    METHOD_ROWS(SORTED_SET, sorted_set_methods),
    METHOD_ROWS(NAVIGABLE_SET, navigable_set_methods),
    {0},
};
