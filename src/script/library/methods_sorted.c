/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods of sorted maps and sets: their ends, the neighbours of a key, and the part between two keys.
 *
 * A part is a copy; changes of it do not show in the whole, as Java's would.
 */
#include "script/library/methods_collection.h"

static bool need_some(struct run *run, const struct dict *dict)
{
    return dict->count > 0 || run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
}

static bool give_key(struct value *ret, const struct entry *entry)
{
    *ret = entry == NULL ? VALUE_NONE : entry->key;
    return true;
}

static bool give_entry(struct value *ret, const struct entry *entry)
{
    *ret = value_of(entry);
    return true;
}

/* Ends */

static bool first_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return need_some(run, dict_of(a[0])) && give_key(ret, dict_of(a[0])->head);
}

static bool last_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return need_some(run, dict_of(a[0])) && give_key(ret, dict_of(a[0])->tail);
}

static bool first_entry(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_entry(ret, dict_of(a[0])->head);
}

static bool last_entry(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_entry(ret, dict_of(a[0])->tail);
}

static bool poll(struct run *run, struct dict *dict, struct entry *entry)
{
    return entry == NULL || dict_remove_entry(run, dict, entry);
}

#define POLL(name, end, give)                                                                \
    static bool poll_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                        \
        (void)n;                                                                             \
        struct entry *entry = dict_of(a[0])->end;                                            \
        return poll(run, dict_of(a[0]), entry) && give(ret, entry);                          \
    }

POLL(first, head, give_key)
POLL(last, tail, give_key)
POLL(first_entry, head, give_entry)
POLL(last_entry, tail, give_entry)

static bool get_comparator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = dict_of(a[0])->comparator;
    return true;
}

/* Neighbours */

enum side { SIDE_LOWER, SIDE_FLOOR, SIDE_CEILING, SIDE_HIGHER };

static bool neighbour(struct run *run, struct value *a, enum side side, const struct entry **ret_entry)
{
    const struct dict *dict = dict_of(a[0]);
    uint32_t at;
    bool found;
    if (!dict_search(run, dict, a[1], &at, &found))
        return false;
    bool self = found && (side == SIDE_FLOOR || side == SIDE_CEILING);
    int64_t index = self ? at : side <= SIDE_FLOOR ? (int64_t)at - 1 : (int64_t)at + found;
    *ret_entry = index >= 0 && index < dict->count ? dict->sorted[index] : NULL;
    return true;
}

#define NEIGHBOUR(name, side)                                                                 \
    static bool name##_key(struct run *run, struct value *a, unsigned n, struct value *ret)   \
    {                                                                                         \
        (void)n;                                                                              \
        const struct entry *entry;                                                            \
        return neighbour(run, a, side, &entry) && give_key(ret, entry);                       \
    }                                                                                         \
    static bool name##_entry(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                         \
        (void)n;                                                                              \
        const struct entry *entry;                                                            \
        return neighbour(run, a, side, &entry) && give_entry(ret, entry);                     \
    }

NEIGHBOUR(lower, SIDE_LOWER)
NEIGHBOUR(floor, SIDE_FLOOR)
NEIGHBOUR(ceiling, SIDE_CEILING)
NEIGHBOUR(higher, SIDE_HIGHER)

/* Parts */

/* A limit of a part: a key and whether it belongs to it; NULL for none. */
struct limit {
    const struct value *key;
    bool inclusive;
};

/* Where in `sorted` the part starts, or ends. */
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

static bool part(struct run *run, struct value *a, struct limit from, struct limit to, struct value *ret)
{
    const struct dict *dict = dict_of(a[0]);
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

static bool head_part(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return part(run, a, (struct limit){NULL, false}, (struct limit){&a[1], n == 2 && a[2].i != 0}, ret);
}

static bool tail_part(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return part(run, a, (struct limit){&a[1], n == 1 || a[2].i != 0}, (struct limit){NULL, false}, ret);
}

static bool middle_part(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct limit from = {&a[1], n == 2 || a[2].i != 0}, to = {n == 2 ? &a[2] : &a[3], n == 4 && a[4].i != 0};
    uint32_t low, high;
    bool low_found, high_found;
    if (!dict_search(run, dict_of(a[0]), *from.key, &low, &low_found) ||
        !dict_search(run, dict_of(a[0]), *to.key, &high, &high_found))
        return false;
    if (low > high)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "fromKey > toKey");
    return part(run, a, from, to, ret);
}

static bool descending_as(struct run *run, const struct dict *dict, enum class_id id, struct value *ret)
{
    struct value arguments[2] = {VALUE_NONE, dict->comparator}, order;
    if (!methods_utility_reverse_order(run, arguments, 1, &order))
        return false;
    struct dict *found = dict_new(run, id);
    found->comparator = order;
    return dict_put_all(run, found, (struct dict *)(uintptr_t)dict) && give(ret, found);
}

static bool descending(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return descending_as(run, dict_of(a[0]), (enum class_id)a[0].object->class, ret);
}

static bool descending_keys(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return descending_as(run, dict_of(a[0]), CLASS_TREE_SET, ret);
}

static bool keys(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *set = dict_new(run, CLASS_TREE_SET);
    set->comparator = dict_of(a[0])->comparator;
    return dict_put_all(run, set, dict_of(a[0])) && give(ret, set);
}

#define BOTH METHOD_BOTH

static const struct method sorted_map_methods[] = {
    M0("comparator", BOTH, COMPARATOR, get_comparator),
    M0("firstKey", BOTH, DEF, first_key),
    M0("lastKey", BOTH, DEF, last_key),
    M1("headMap", BOTH, SORTED_MAP, DEF, head_part),
    M1("tailMap", BOTH, SORTED_MAP, DEF, tail_part),
    M2("subMap", BOTH, SORTED_MAP, DEF, DEF, middle_part),
};

static const struct method navigable_map_methods[] = {
    M0("firstEntry", BOTH, MAP_ENTRY, first_entry),
    M0("lastEntry", BOTH, MAP_ENTRY, last_entry),
    M0("pollFirstEntry", BOTH, MAP_ENTRY, poll_first_entry),
    M0("pollLastEntry", BOTH, MAP_ENTRY, poll_last_entry),
    M1("lowerKey", BOTH, DEF, DEF, lower_key),
    M1("floorKey", BOTH, DEF, DEF, floor_key),
    M1("ceilingKey", BOTH, DEF, DEF, ceiling_key),
    M1("higherKey", BOTH, DEF, DEF, higher_key),
    M1("lowerEntry", BOTH, MAP_ENTRY, DEF, lower_entry),
    M1("floorEntry", BOTH, MAP_ENTRY, DEF, floor_entry),
    M1("ceilingEntry", BOTH, MAP_ENTRY, DEF, ceiling_entry),
    M1("higherEntry", BOTH, MAP_ENTRY, DEF, higher_entry),
    M2("headMap", BOTH, NAVIGABLE_MAP, DEF, BOOLEAN, head_part),
    M2("tailMap", BOTH, NAVIGABLE_MAP, DEF, BOOLEAN, tail_part),
    M4("subMap", BOTH, NAVIGABLE_MAP, DEF, BOOLEAN, DEF, BOOLEAN, middle_part),
    M0("descendingMap", BOTH, NAVIGABLE_MAP, descending),
    M0("descendingKeySet", BOTH, NAVIGABLE_SET, descending_keys),
    M0("navigableKeySet", BOTH, NAVIGABLE_SET, keys),
};

static const struct method sorted_set_methods[] = {
    M0("comparator", BOTH, COMPARATOR, get_comparator),
    M0("first", BOTH, DEF, first_key),
    M0("last", BOTH, DEF, last_key),
    M1("headSet", BOTH, SORTED_SET, DEF, head_part),
    M1("tailSet", BOTH, SORTED_SET, DEF, tail_part),
    M2("subSet", BOTH, SORTED_SET, DEF, DEF, middle_part),
};

static const struct method navigable_set_methods[] = {
    M0("pollFirst", BOTH, DEF, poll_first),
    M0("pollLast", BOTH, DEF, poll_last),
    M1("lower", BOTH, DEF, DEF, lower_key),
    M1("floor", BOTH, DEF, DEF, floor_key),
    M1("ceiling", BOTH, DEF, DEF, ceiling_key),
    M1("higher", BOTH, DEF, DEF, higher_key),
    M2("headSet", BOTH, NAVIGABLE_SET, DEF, BOOLEAN, head_part),
    M2("tailSet", BOTH, NAVIGABLE_SET, DEF, BOOLEAN, tail_part),
    M4("subSet", BOTH, NAVIGABLE_SET, DEF, BOOLEAN, DEF, BOOLEAN, middle_part),
    M0("descendingSet", BOTH, NAVIGABLE_SET, descending),
};

const struct method_table methods_sorted[] = {
    METHOD_TABLE(SORTED_MAP, sorted_map_methods),
    METHOD_TABLE(NAVIGABLE_MAP, navigable_map_methods),
    METHOD_TABLE(SORTED_SET, sorted_set_methods),
    METHOD_TABLE(NAVIGABLE_SET, navigable_set_methods),
    {0, 0, NULL},
};
