/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Map, of its entries and views, and of doc in searches. */
#include "script/library/method_args.h"

#include "script/run/invoke.h"
#include "script/run/operate.h"

static bool lookup_entry(struct run *run, struct value map, struct value key, struct map_entry **ret)
{
    return dict_find(run, dict_of(map), key, ret);
}

static bool map_get(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    /* Groovy's get(key, default) stores the default. */
    if (entry == NULL && call->count == 2) {
        *ret = call->args[1];
        return dict_put(call->run, dict_of(call->self), call->args[0], call->args[1], NULL);
    }
    return true;
}

static bool map_get_or_default(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    *ret = entry != NULL ? entry->value : call->args[1];
    return true;
}

static bool map_put(struct call *call, struct value *ret)
{
    return dict_put(call->run, dict_of(call->self), call->args[0], call->args[1], ret);
}

static bool map_put_if_absent(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    return ret->kind != VALUE_NULL || dict_put(call->run, dict_of(call->self), call->args[0], call->args[1], NULL);
}

static bool map_put_all(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return dict_put_all(call->run, dict_of(call->self), dict_of(call->args[0])) && give_nothing(ret);
}

static bool map_remove(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_entry *entry;
    bool same;
    if (call->count == 2) {
        if (!lookup_entry(run, call->self, call->args[0], &entry))
            return false;
        if (entry == NULL || !value_equals(run, entry->value, call->args[1], &same))
            return run->thrown == NULL && give_boolean(ret, false);
        return (!same || dict_remove_entry(run, dict_of(call->self), entry)) && give_boolean(ret, same);
    }
    if (!dict_remove(run, dict_of(call->self), call->args[0], &entry))
        return false;
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    return true;
}

static bool map_replace(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_entry *entry;
    bool same = false;
    if (!dict_check_writable(run, dict_of(call->self)) || !lookup_entry(run, call->self, call->args[0], &entry))
        return false;
    if (call->count == 3) {
        if (entry != NULL && !value_equals(run, entry->value, call->args[1], &same))
            return false;
        if (same)
            entry->value = call->args[2];
        return give_boolean(ret, same);
    }
    *ret = entry != NULL ? entry->value : VALUE_NONE;
    if (entry != NULL)
        entry->value = call->args[1];
    return true;
}

static bool map_contains_key(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    return lookup_entry(call->run, call->self, call->args[0], &entry) && give_boolean(ret, entry != NULL);
}

static bool map_contains_value(struct call *call, struct value *ret)
{
    const struct dict *dict = dict_of(call->self);
    for (struct map_entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        bool same;
        if (!run_step(call->run, 1) || !value_equals(call->run, entry->value, call->args[0], &same))
            return false;
        if (same)
            return give_boolean(ret, true);
    }
    return give_boolean(ret, false);
}

static bool map_clear(struct call *call, struct value *ret)
{
    return dict_clear(call->run, dict_of(call->self)) && give_nothing(ret);
}

static bool map_is_empty(struct call *call, struct value *ret)
{
    return give_boolean(ret, dict_of(call->self)->count == 0);
}

static bool map_size(struct call *call, struct value *ret)
{
    return give_int(ret, dict_of(call->self)->count);
}

static bool map_view_of(struct call *call, struct value *ret)
{
    enum class_id id = (enum class_id)call->row->datum.number;
    struct map_view *view = run_object(call->run, sizeof *view, id);
    view->dict = dict_of(call->self);
    return give(ret, view);
}

static bool map_new(struct call *call, struct value *ret)
{
    struct dict *dict = dict_new(call->run, type_class(((struct class_object *)call->self.object)->type));
    *ret = value_of(dict);
    if (call->count == 0 || value_integral(call->args[0]))
        return true;
    NOT_NULL(0);
    if (value_is(call->args[0], CLASS_CLOSURE)) {
        dict->comparator = call->args[0];
        return true;
    }
    return dict_put_all(call->run, dict, dict_of(call->args[0]));
}

static bool map_clone(struct call *call, struct value *ret)
{
    struct dict *dict = dict_new(call->run, (enum class_id)call->self.object->class);
    dict->comparator = dict_of(call->self)->comparator;
    return dict_put_all(call->run, dict, dict_of(call->self)) && give(ret, dict);
}

/* Iteration over all entries; throws if a callback adds or removes keys. */
struct map_walk {
    struct run *run;
    struct dict *dict;
    struct map_entry *at;
    uint32_t changes;
    bool started;
};

static struct map_walk walk_map(struct run *run, struct value map)
{
    return (struct map_walk){run, dict_of(map), NULL, dict_of(map)->changes, false};
}

static struct map_entry *walk_next(struct map_walk *walk)
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

/* Calls a function with key and value; in Groovy, with the entry if the function has one
   parameter. */
static bool call_pair(struct run *run, struct value function, struct map_entry *entry, struct value *ret)
{
    struct value pair[2] = {entry->key, entry->value};
    if (run->groovy)
        return invoke_item(run, function, value_of(entry), ret);
    return run_invoke(run, function, pair, 2, ret);
}

static bool test_pair(struct run *run, struct value function, struct map_entry *entry, bool *ret)
{
    struct value pair[2] = {entry->key, entry->value};
    if (run->groovy)
        return invoke_item_test(run, function, value_of(entry), ret);
    return invoke_test(run, function, pair, 2, ret);
}

static bool map_for_each(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    struct value ignored;
    NOT_NULL(0);
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;)
        if (!call_pair(run, call->args[0], entry, &ignored))
            return false;
    return run->thrown == NULL && give_nothing(ret);
}

static bool map_each(struct call *call, struct value *ret)
{
    if (!map_for_each(call, ret))
        return false;
    *ret = call->self;
    return true;
}

static bool map_replace_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    if (!dict_check_writable(run, dict_of(call->self)))
        return false;
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;)
        if (!call_pair(run, call->args[0], entry, &entry->value))
            return false;
    return run->thrown == NULL && give_nothing(ret);
}

/* Stores the result of a function for the key in args[0]; null removes the key. */
static bool store_computed(struct call *call, struct value computed, struct value *ret)
{
    struct map_entry *entry;
    *ret = computed;
    if (computed.kind == VALUE_NULL)
        return dict_remove(call->run, dict_of(call->self), call->args[0], &entry);
    return dict_put(call->run, dict_of(call->self), call->args[0], computed, NULL);
}

static bool map_compute(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    struct value pair[2], computed;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    pair[0] = call->args[0];
    pair[1] = entry == NULL ? VALUE_NONE : entry->value;
    return run_invoke(call->run, call->args[1], pair, 2, &computed) && store_computed(call, computed, ret);
}

static bool map_compute_if_absent(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    struct value computed;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    if (entry != NULL && entry->value.kind != VALUE_NULL) {
        *ret = entry->value;
        return true;
    }
    *ret = VALUE_NONE;
    if (!run_invoke(call->run, call->args[1], &call->args[0], 1, &computed))
        return false;
    return computed.kind == VALUE_NULL || store_computed(call, computed, ret);
}

static bool map_compute_if_present(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    *ret = VALUE_NONE;
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    return entry == NULL || entry->value.kind == VALUE_NULL ||
           map_compute(&(struct call){call->run, call->row, call->self, call->args, 2}, ret);
}

static bool map_merge(struct call *call, struct value *ret)
{
    struct map_entry *entry;
    NOT_NULL(1);
    if (!lookup_entry(call->run, call->self, call->args[0], &entry))
        return false;
    struct value computed = call->args[1];
    if (entry != NULL && entry->value.kind != VALUE_NULL) {
        struct value pair[2] = {entry->value, call->args[1]};
        if (!run_invoke(call->run, call->args[2], pair, 2, &computed))
            return false;
    }
    return store_computed(call, computed, ret);
}

/* Groovy's and Painless's additions */

static bool add_to(struct run *run, struct value collection, struct value item)
{
    bool added;
    return value_is_set(collection) ? dict_add(run, dict_of(collection), item, &added)
                                    : seq_add(run, seq_of(collection), item);
}

static bool map_collect(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    *ret = call->count == 2 ? call->args[0] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value result;
        if (!call_pair(run, call->count == 2 ? call->args[1] : call->args[0], entry, &result) ||
            !add_to(run, *ret, result))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_find_results(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    *ret = value_of(seq_new(run, CLASS_ARRAY_LIST, 0));
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value result;
        if (!call_pair(run, call->args[0], entry, &result) || (result.kind != VALUE_NULL && !add_to(run, *ret, result)))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_find_result(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        if (!call_pair(run, call->count == 2 ? call->args[1] : call->args[0], entry, ret))
            return false;
        if (ret->kind != VALUE_NULL)
            return true;
    }
    *ret = call->count == 2 ? call->args[0] : VALUE_NONE;
    return run->thrown == NULL;
}

static bool map_find(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    *ret = VALUE_NONE;
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, call->args[0], entry, &holds))
            return false;
        if (holds)
            return give(ret, entry);
    }
    return run->thrown == NULL;
}

static bool map_find_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    bool tree = call->self.object->class == CLASS_TREE_MAP, linked = call->self.object->class != CLASS_HASH_MAP;
    struct dict *found = dict_new(run, tree ? CLASS_TREE_MAP : linked ? CLASS_LINKED_HASH_MAP : CLASS_HASH_MAP);
    *ret = value_of(found);
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, call->args[0], entry, &holds) ||
            (holds && !dict_put(run, found, entry->key, entry->value, NULL)))
            return false;
    }
    return run->thrown == NULL;
}

static bool map_every(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, call->args[0], entry, &holds))
            return false;
        if (!holds)
            return give_boolean(ret, false);
    }
    return run->thrown == NULL && give_boolean(ret, true);
}

static bool map_count(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    int64_t count = 0;
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        bool holds;
        if (!test_pair(run, call->args[0], entry, &holds))
            return false;
        count += holds;
    }
    return run->thrown == NULL && give_int(ret, count);
}

static bool map_group_by(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct map_walk walk = walk_map(run, call->self);
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    for (struct map_entry *entry; (entry = walk_next(&walk)) != NULL;) {
        struct value key;
        struct map_entry *group;
        if (!call_pair(run, call->args[0], entry, &key) || !dict_find(run, groups, key, &group))
            return false;
        struct dict *members = group == NULL ? dict_new(run, CLASS_LINKED_HASH_MAP) : dict_of(group->value);
        if ((group == NULL && !dict_put(run, groups, key, value_of(members), NULL)) ||
            !dict_put(run, members, entry->key, entry->value, NULL))
            return false;
    }
    return run->thrown == NULL;
}

/* Entries */

static struct map_entry *entry_of(struct value v)
{
    return (struct map_entry *)v.object;
}

static bool entry_key(struct call *call, struct value *ret)
{
    *ret = entry_of(call->self)->key;
    return true;
}

static bool entry_value(struct call *call, struct value *ret)
{
    *ret = entry_of(call->self)->value;
    return true;
}

static bool entry_set_value(struct call *call, struct value *ret)
{
    struct map_entry *entry = entry_of(call->self);
    if (entry->owner != NULL && !dict_check_writable(call->run, entry->owner))
        return false;
    *ret = entry->value;
    entry->value = call->args[0];
    return true;
}

static bool entry_new_pair(struct call *call, struct value *ret)
{
    return give(ret, entry_new(call->run, call->args[0], call->args[1]));
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

static bool entry_comparing_by_key(struct call *call, struct value *ret)
{
    *ret =
        closure_native_new(call->run, compare_entries, 2, call->count == 1 ? call->args[0] : VALUE_NONE, value_int(0));
    return true;
}

static bool entry_comparing_by_value(struct call *call, struct value *ret)
{
    *ret =
        closure_native_new(call->run, compare_entries, 2, call->count == 1 ? call->args[0] : VALUE_NONE, value_int(1));
    return true;
}

static const struct method_row map_methods[] = {
    {"def get(def)", BOTH, map_get},
    {"def get(def, def)", GROOVY, map_get},
    {"def getOrDefault(def, def)", BOTH, map_get_or_default},
    {"def put(def, def)", BOTH, map_put},
    {"def putIfAbsent(def, def)", BOTH, map_put_if_absent},
    {"void putAll(Map)", BOTH, map_put_all},
    {"def remove(def)", BOTH, map_remove},
    {"boolean remove(def, def)", BOTH, map_remove},
    {"def replace(def, def)", BOTH, map_replace},
    {"boolean replace(def, def, def)", BOTH, map_replace},
    {"boolean containsKey(def)", BOTH, map_contains_key},
    {"boolean containsValue(def)", BOTH, map_contains_value},
    {"void clear()", BOTH, map_clear},
    {"boolean isEmpty()", BOTH, map_is_empty},
    {"int size()", BOTH, map_size},
    {"Set keySet()", BOTH, map_view_of, {CLASS_KEY_SET}},
    {"Collection values()", BOTH, map_view_of, {CLASS_VALUE_COLLECTION}},
    {"Set entrySet()", BOTH, map_view_of, {CLASS_ENTRY_SET}},
    {"void forEach(BiConsumer)", BOTH, map_for_each},
    {"void replaceAll(BiFunction)", BOTH, map_replace_all},
    {"def compute(def, BiFunction)", BOTH, map_compute},
    {"def computeIfAbsent(def, Function)", BOTH, map_compute_if_absent},
    {"def computeIfPresent(def, BiFunction)", BOTH, map_compute_if_present},
    {"def merge(def, def, BiFunction)", BOTH, map_merge},
    {"List collect(BiFunction)", PAINLESS, map_collect},
    {"def collect(Collection, BiFunction)", PAINLESS, map_collect},
    {"int count(BiPredicate)", PAINLESS, map_count},
    {"def each(BiConsumer)", PAINLESS, map_each},
    {"boolean every(BiPredicate)", PAINLESS, map_every},
    {"Map.Entry find(BiPredicate)", PAINLESS, map_find},
    {"Map findAll(BiPredicate)", PAINLESS, map_find_all},
    {"def findResult(BiFunction)", PAINLESS, map_find_result},
    {"def findResult(def, BiFunction)", PAINLESS, map_find_result},
    {"List findResults(BiFunction)", PAINLESS, map_find_results},
    {"Map groupBy(BiFunction)", PAINLESS, map_group_by},
};

static const struct method_row new_map_methods[] = {
    {"new Map()", BOTH, map_new},
    {"new Map(Map)", BOTH, map_new},
    {"new Map(int)", GROOVY, map_new},
    {"def clone()", BOTH, map_clone},
};

static const struct method_row tree_map_methods[] = {
    {"new TreeMap()", BOTH, map_new},
    {"new TreeMap(Map)", GROOVY, map_new},
    {"new TreeMap(Comparator)", BOTH, map_new},
    {"def clone()", BOTH, map_clone},
};

static const struct method_row entry_methods[] = {
    {"def getKey()", BOTH, entry_key},
    {"def getValue()", BOTH, entry_value},
    {"def setValue(def)", BOTH, entry_set_value},
    {"static Comparator comparingByKey()", BOTH, entry_comparing_by_key},
    {"static Comparator comparingByKey(Comparator)", BOTH, entry_comparing_by_key},
    {"static Comparator comparingByValue()", BOTH, entry_comparing_by_value},
    {"static Comparator comparingByValue(Comparator)", BOTH, entry_comparing_by_value},
};

static const struct method_row simple_entry_methods[] = {
    {"new AbstractMap.SimpleEntry(def, def)", BOTH, entry_new_pair},
};

const struct method_table methods_map[] = {
    METHOD_ROWS(MAP, map_methods),
    METHOD_ROWS(HASH_MAP, new_map_methods),
    METHOD_ROWS(LINKED_HASH_MAP, new_map_methods),
    METHOD_ROWS(TREE_MAP, tree_map_methods),
    METHOD_ROWS(MAP_ENTRY, entry_methods),
    METHOD_ROWS(SIMPLE_ENTRY, simple_entry_methods),
    {0},
};
