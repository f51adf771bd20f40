/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Map, its entries and views, and of doc in searches. */
#include "script/library/method_args.h"

#include "script/run/invoke.h"
#include "script/run/operate.h"

static bool lookup(struct run *run, struct value map, struct value key, struct entry **ret)
{
    return dict_find(run, dict_of(map), key, ret);
}

static bool map_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct entry *entry;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    /* Groovy's get with a default remembers it. */
    if (entry == NULL && n == 2) {
        *ret = a[2];
        return dict_put(run, dict_of(a[0]), a[1], a[2], NULL);
    }
    return true;
}

static bool map_get_or_default(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    *ret = entry != NULL ? entry->value : a[2];
    return true;
}

static bool map_put(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return dict_put(run, dict_of(a[0]), a[1], a[2], ret);
}

static bool map_put_if_absent(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    return ret->kind != VALUE_NULL || dict_put(run, dict_of(a[0]), a[1], a[2], NULL);
}

static bool map_put_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return dict_put_all(run, dict_of(a[0]), dict_of(a[1])) && give_nothing(ret);
}

static bool map_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct entry *entry;
    bool same;
    if (n == 2) {
        if (!lookup(run, a[0], a[1], &entry))
            return false;
        if (entry == NULL || !value_equals(run, entry->value, a[2], &same))
            return run->thrown == NULL && give_boolean(ret, false);
        return (!same || dict_remove_entry(run, dict_of(a[0]), entry)) && give_boolean(ret, same);
    }
    if (!dict_remove(run, dict_of(a[0]), a[1], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    return true;
}

static bool map_replace(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct entry *entry;
    bool same = false;
    if (!dict_check_writable(run, dict_of(a[0])) || !lookup(run, a[0], a[1], &entry))
        return false;
    if (n == 3) {
        if (entry != NULL && !value_equals(run, entry->value, a[2], &same))
            return false;
        if (same)
            entry->value = a[3];
        return give_boolean(ret, same);
    }
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    if (entry != NULL)
        entry->value = a[2];
    return true;
}

static bool map_contains_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    return lookup(run, a[0], a[1], &entry) && give_boolean(ret, entry != NULL);
}

static bool map_contains_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct dict *dict = dict_of(a[0]);
    for (struct entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        bool same;
        if (!run_step(run, 1) || !value_equals(run, entry->value, a[1], &same))
            return false;
        if (same)
            return give_boolean(ret, true);
    }
    return give_boolean(ret, false);
}

static bool map_clear(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return dict_clear(run, dict_of(a[0])) && give_nothing(ret);
}

static bool map_is_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, dict_of(a[0])->count == 0);
}

static bool map_size(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, dict_of(a[0])->count);
}

static bool view_of(struct run *run, struct value *a, enum class_id id, struct value *ret)
{
    struct view *view = run_object(run, sizeof *view, id);
    view->dict = dict_of(a[0]);
    return give(ret, view);
}

static bool map_key_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return view_of(run, a, CLASS_KEY_SET, ret);
}

static bool map_values(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return view_of(run, a, CLASS_VALUE_COLLECTION, ret);
}

static bool map_entry_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return view_of(run, a, CLASS_ENTRY_SET, ret);
}

static bool map_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct dict *dict = dict_new(run, type_class(((struct class_object *)a[0].object)->type));
    *ret = value_of(dict);
    if (n == 0 || value_integral(a[1]))
        return true;
    NEED(1);
    if (value_is(a[1], CLASS_CLOSURE)) {
        dict->comparator = a[1];
        return true;
    }
    return dict_put_all(run, dict, dict_of(a[1]));
}

static bool map_clone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct dict *dict = dict_new(run, (enum class_id)a[0].object->class);
    dict->comparator = dict_of(a[0])->comparator;
    return dict_put_all(run, dict, dict_of(a[0])) && give(ret, dict);
}

/* Walks all entries; a function that changes the keys meanwhile is found out. */
struct map_walk {
    struct run *run;
    struct dict *dict;
    struct entry *at;
    uint32_t changes;
    bool started;
};

static struct map_walk walk_map(struct run *run, struct value map)
{
    return (struct map_walk){run, dict_of(map), NULL, dict_of(map)->changes, false};
}

static struct entry *walk_next(struct map_walk *walk)
{
    if (walk->run->thrown != NULL || !run_step(walk->run, 1))
        return NULL;
    if (walk->changes != walk->dict->changes) {
        run_throw_null(walk->run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
        return NULL;
    }
    walk->at = walk->started ? dict_next(walk->dict, walk->at) : dict_first(walk->dict);
    walk->started = true;
    return walk->at;
}

/* A function of key and value; in Groovy perhaps of the entry. */
static bool call_pair(struct run *run, struct value function, struct entry *entry, struct value *ret)
{
    struct value pair[2] = {entry->key, entry->value};
    if (run->groovy)
        return invoke_item(run, function, value_of(entry), ret);
    return run_invoke(run, function, pair, 2, ret);
}

static bool test_pair(struct run *run, struct value function, struct entry *entry, bool *ret)
{
    struct value pair[2] = {entry->key, entry->value};
    if (run->groovy)
        return invoke_item_test(run, function, value_of(entry), ret);
    return invoke_test(run, function, pair, 2, ret);
}

static bool map_for_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    struct value ignored;
    NEED(1);
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;)
        if (!call_pair(run, a[1], entry, &ignored))
            return false;
    return run->thrown == NULL && give_nothing(ret);
}

static bool map_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!map_for_each(run, a, n, ret))
        return false;
    *ret = a[0];
    return true;
}

static bool map_replace_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    if (!dict_check_writable(run, dict_of(a[0])))
        return false;
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;)
        if (!call_pair(run, a[1], entry, &entry->value))
            return false;
    return run->thrown == NULL && give_nothing(ret);
}

/* Stores what a function computed; null takes the key out. */
static bool settle(struct run *run, struct value *a, struct value computed, struct value *ret)
{
    struct entry *entry;
    *ret = computed;
    if (computed.kind == VALUE_NULL)
        return dict_remove(run, dict_of(a[0]), a[1], &entry);
    return dict_put(run, dict_of(a[0]), a[1], computed, NULL);
}

static bool map_compute(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    struct value pair[2], computed;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    pair[0] = a[1];
    pair[1] = entry == NULL ? VALUE_NONE : entry->value;
    return run_invoke(run, a[2], pair, 2, &computed) && settle(run, a, computed, ret);
}

static bool map_compute_if_absent(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    struct value computed;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    if (entry != NULL && entry->value.kind != VALUE_NULL) {
        *ret = entry->value;
        return true;
    }
    *ret = VALUE_NONE;
    if (!run_invoke(run, a[2], &a[1], 1, &computed))
        return false;
    return computed.kind == VALUE_NULL || settle(run, a, computed, ret);
}

static bool map_compute_if_present(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    *ret = VALUE_NONE;
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    return entry == NULL || entry->value.kind == VALUE_NULL || map_compute(run, a, 2, ret);
}

static bool map_merge(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry;
    NEED(2);
    if (!lookup(run, a[0], a[1], &entry))
        return false;
    struct value computed = a[2];
    if (entry != NULL && entry->value.kind != VALUE_NULL) {
        struct value pair[2] = {entry->value, a[2]};
        if (!run_invoke(run, a[3], pair, 2, &computed))
            return false;
    }
    return settle(run, a, computed, ret);
}

/* Groovy's and Painless's additions */

static bool add_to(struct run *run, struct value collection, struct value item)
{
    bool added;
    return value_is_set(collection) ? dict_add(run, dict_of(collection), item, &added)
                                    : seq_add(run, seq_of(collection), item);
}

static bool map_collect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct map_walk walk = walk_map(run, a[0]);
    *ret = n == 2 ? a[1] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value result;
        if (!call_pair(run, n == 2 ? a[2] : a[1], entry, &result) || !add_to(run, *ret, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_find_results(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    *ret = value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value result;
        if (!call_pair(run, a[1], entry, &result) || (result.kind != VALUE_NULL && !add_to(run, *ret, result)))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_find_result(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct map_walk walk = walk_map(run, a[0]);
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        if (!call_pair(run, n == 2 ? a[2] : a[1], entry, ret))
            return false;
        if (ret->kind != VALUE_NULL)
            return true;
    }
    *ret = n == 2 ? a[1] : VALUE_NONE;
    return run->thrown == NULL;
}

static bool map_find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    *ret = VALUE_NONE;
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, a[1], entry, &holds))
            return false;
        if (holds)
            return give(ret, entry);
    }
    return run->thrown == NULL;
}

static bool map_find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    bool tree = a[0].object->class == CLASS_TREE_MAP, linked = a[0].object->class != CLASS_HASH_MAP;
    struct dict *found = dict_new(run, tree ? CLASS_TREE_MAP : linked ? CLASS_LINKED_HASH_MAP : CLASS_HASH_MAP);
    *ret = value_of(found);
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, a[1], entry, &holds) || (holds && !dict_put(run, found, entry->key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_every(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, a[1], entry, &holds))
            return false;
        if (!holds)
            return give_boolean(ret, false);
    }
    return run->thrown == NULL && give_boolean(ret, true);
}

static bool map_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    int64_t count = 0;
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, a[1], entry, &holds))
            return false;
        count += holds;
    }
    return run->thrown == NULL && give_int(ret, count);
}

static bool map_group_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct map_walk walk = walk_map(run, a[0]);
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    for (struct entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value key;
        struct entry *group;
        if (!call_pair(run, a[1], entry, &key) || !dict_find(run, groups, key, &group))
            return false;
        struct dict *members = group == NULL ? dict_new(run, CLASS_LINKED_HASH_MAP) : dict_of(group->value);
        if ((group == NULL && !dict_put(run, groups, key, value_of(members), NULL)) ||
            !dict_put(run, members, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

/* Entries */

static struct entry *entry_of(struct value v)
{
    return (struct entry *)v.object;
}

static bool entry_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = entry_of(a[0])->key;
    return true;
}

static bool entry_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = entry_of(a[0])->value;
    return true;
}

static bool entry_set_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct entry *entry = entry_of(a[0]);
    if (entry->owner != NULL && !dict_check_writable(run, entry->owner))
        return false;
    *ret = entry->value;
    entry->value = a[1];
    return true;
}

static bool entry_new_pair(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, entry_new(run, a[1], a[2]));
}

static bool compare_entries(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool by_value = closure->held[1].i != 0;
    struct value pair[2];
    int order;
    for (unsigned i = 0; i < 2; i++)
        pair[i] = by_value ? entry_of(a[i])->value : entry_of(a[i])->key;
    if (closure->held[0].kind != VALUE_NULL)
        return run_invoke(run, closure->held[0], pair, 2, ret);
    return value_order(run, pair[0], pair[1], &order) && give_int(ret, (order > 0) - (order < 0));
}

static bool entry_comparing_by_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = closure_native_new(run, compare_entries, 2, n == 1 ? a[1] : VALUE_NONE, value_int(0));
    return true;
}

static bool entry_comparing_by_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = closure_native_new(run, compare_entries, 2, n == 1 ? a[1] : VALUE_NONE, value_int(1));
    return true;
}

static const struct method map_methods[] = {
    M1("get", METHOD_BOTH, DEF, DEF, map_get),
    M2("get", METHOD_GROOVY, DEF, DEF, DEF, map_get),
    M2("getOrDefault", METHOD_BOTH, DEF, DEF, DEF, map_get_or_default),
    M2("put", METHOD_BOTH, DEF, DEF, DEF, map_put),
    M2("putIfAbsent", METHOD_BOTH, DEF, DEF, DEF, map_put_if_absent),
    M1("putAll", METHOD_BOTH, VOID, MAP, map_put_all),
    M1("remove", METHOD_BOTH, DEF, DEF, map_remove),
    M2("remove", METHOD_BOTH, BOOLEAN, DEF, DEF, map_remove),
    M2("replace", METHOD_BOTH, DEF, DEF, DEF, map_replace),
    M3("replace", METHOD_BOTH, BOOLEAN, DEF, DEF, DEF, map_replace),
    M1("containsKey", METHOD_BOTH, BOOLEAN, DEF, map_contains_key),
    M1("containsValue", METHOD_BOTH, BOOLEAN, DEF, map_contains_value),
    M0("clear", METHOD_BOTH, VOID, map_clear),
    M0("isEmpty", METHOD_BOTH, BOOLEAN, map_is_empty),
    M0("size", METHOD_BOTH, INT, map_size),
    M0("keySet", METHOD_BOTH, SET, map_key_set),
    M0("values", METHOD_BOTH, COLLECTION, map_values),
    M0("entrySet", METHOD_BOTH, SET, map_entry_set),
    M1("forEach", METHOD_BOTH, VOID, BI_CONSUMER, map_for_each),
    M1("replaceAll", METHOD_BOTH, VOID, BI_FUNCTION, map_replace_all),
    M2("compute", METHOD_BOTH, DEF, DEF, BI_FUNCTION, map_compute),
    M2("computeIfAbsent", METHOD_BOTH, DEF, DEF, FUNCTION, map_compute_if_absent),
    M2("computeIfPresent", METHOD_BOTH, DEF, DEF, BI_FUNCTION, map_compute_if_present),
    M3("merge", METHOD_BOTH, DEF, DEF, DEF, BI_FUNCTION, map_merge),
    M1("collect", METHOD_PAINLESS, LIST, BI_FUNCTION, map_collect),
    M2("collect", METHOD_PAINLESS, DEF, COLLECTION, BI_FUNCTION, map_collect),
    M1("count", METHOD_PAINLESS, INT, BI_PREDICATE, map_count),
    M1("each", METHOD_PAINLESS, DEF, BI_CONSUMER, map_each),
    M1("every", METHOD_PAINLESS, BOOLEAN, BI_PREDICATE, map_every),
    M1("find", METHOD_PAINLESS, MAP_ENTRY, BI_PREDICATE, map_find),
    M1("findAll", METHOD_PAINLESS, MAP, BI_PREDICATE, map_find_all),
    M1("findResult", METHOD_PAINLESS, DEF, BI_FUNCTION, map_find_result),
    M2("findResult", METHOD_PAINLESS, DEF, DEF, BI_FUNCTION, map_find_result),
    M1("findResults", METHOD_PAINLESS, LIST, BI_FUNCTION, map_find_results),
    M1("groupBy", METHOD_PAINLESS, MAP, BI_FUNCTION, map_group_by),
};

static const struct method new_map_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, MAP, map_new),
    M1("new", METHOD_BOTH | METHOD_NEW, MAP, MAP, map_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, MAP, INT, map_new),
    M0("clone", METHOD_BOTH, DEF, map_clone),
};

static const struct method tree_map_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, TREE_MAP, map_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, TREE_MAP, MAP, map_new),
    M1("new", METHOD_BOTH | METHOD_NEW, TREE_MAP, COMPARATOR, map_new),
    M0("clone", METHOD_BOTH, DEF, map_clone),
};

static const struct method entry_methods[] = {
    M0("getKey", METHOD_BOTH, DEF, entry_key),
    M0("getValue", METHOD_BOTH, DEF, entry_value),
    M1("setValue", METHOD_BOTH, DEF, DEF, entry_set_value),
    M0("comparingByKey", METHOD_BOTH | METHOD_STATIC, COMPARATOR, entry_comparing_by_key),
    M1("comparingByKey", METHOD_BOTH | METHOD_STATIC, COMPARATOR, COMPARATOR, entry_comparing_by_key),
    M0("comparingByValue", METHOD_BOTH | METHOD_STATIC, COMPARATOR, entry_comparing_by_value),
    M1("comparingByValue", METHOD_BOTH | METHOD_STATIC, COMPARATOR, COMPARATOR, entry_comparing_by_value),
};

static const struct method simple_entry_methods[] = {
    M2("new", METHOD_BOTH | METHOD_NEW, SIMPLE_ENTRY, DEF, DEF, entry_new_pair),
};

const struct method_table methods_map[] = {
    METHOD_TABLE(MAP, map_methods),
    METHOD_TABLE(HASH_MAP, new_map_methods),
    METHOD_TABLE(LINKED_HASH_MAP, new_map_methods),
    METHOD_TABLE(TREE_MAP, tree_map_methods),
    METHOD_TABLE(MAP_ENTRY, entry_methods),
    METHOD_TABLE(SIMPLE_ENTRY, simple_entry_methods),
    {0, 0, NULL},
};
