/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Collections and Arrays: Java's static helpers for collections and arrays. */
#include "script/run/invoke.h"
#include "script/library/methods_collection.h"
#include "script/run/operate.h"

static bool collections_sort(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return methods_list_sort(call->run, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE) &&
           give_nothing(ret);
}

static bool collections_reverse(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct seq *seq = seq_of(call->args[0]);
    for (size_t i = 0; i < seq->count / 2; i++) {
        struct value low = seq_item(seq, i), high = seq_item(seq, seq->count - 1 - i);
        if (!run_step(run, 1) || !seq_set(run, seq, (int64_t)i, high, NULL) ||
            !seq_set(run, seq, (int64_t)(seq->count - 1 - i), low, NULL))
            return false;
    }
    return give_nothing(ret);
}

static bool collection_extreme(struct run *run, struct value collection, struct value comparator, int sign,
                               struct value *ret)
{
    struct iter iter;
    bool first = true;
    if (!methods_collection_walk(run, &iter, collection))
        return false;
    walk(&iter, item)
    {
        int order = 0;
        if (!first && comparator.kind != VALUE_NULL) {
            struct value pair[2] = {item, *ret}, result;
            if (!invoke_number(run, comparator, pair, 2, &result))
                return false;
            order = value_floating(result) ? (result.d > 0) - (result.d < 0) : (result.i > 0) - (result.i < 0);
        } else if (!first && !value_order(run, item, *ret, &order)) {
            return false;
        }
        if (first || order * sign > 0)
            *ret = item;
        first = false;
    }
    if (first && run->thrown == NULL)
        return run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    return run->thrown == NULL;
}

static bool collections_max(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return collection_extreme(call->run, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE, 1, ret);
}

static bool collections_min(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return collection_extreme(call->run, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE, -1, ret);
}

static bool collections_swap(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct value one, two;
    struct seq *seq = seq_of(call->args[0]);
    return seq_get(run, seq, call->args[1].i, &one) && seq_get(run, seq, call->args[2].i, &two) &&
           seq_set(run, seq, call->args[1].i, two, NULL) && seq_set(run, seq, call->args[2].i, one, NULL) &&
           give_nothing(ret);
}

static bool collections_frequency(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    int64_t count = 0;
    NOT_NULL(0);
    if (!methods_collection_walk(run, &iter, call->args[0]))
        return false;
    walk(&iter, item)
    {
        bool same;
        if (!value_equals(run, item, call->args[1], &same))
            return false;
        count += same;
    }
    return run->thrown == NULL && give_int(ret, count);
}

static bool collections_n_copies(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (call->args[0].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "List length = %lld", (long long)call->args[0].i);
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, (size_t)call->args[0].i);
    for (int64_t i = 0; seq != NULL && i < call->args[0].i; i++)
        if (!run_step(run, 1) || !seq_add(run, seq, call->args[1]))
            return false;
    if (seq != NULL)
        seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_disjoint(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    bool found = false;
    NOT_NULL(0);
    NOT_NULL(1);
    if (!methods_collection_walk(run, &iter, call->args[0]))
        return false;
    walk(&iter, item)
    {
        if (!methods_collection_holds(run, call->args[1], item, &found))
            return false;
        if (found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, !found);
}

static bool collections_add_all(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return methods_collection_add_all(&(struct call){call->run, call->row, call->args[0], call->args + 1, call->count},
                                      ret);
}

/* Unmodifiable collections */

static bool frozen_list(struct run *run, struct value item, bool has_item, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, 0);
    if (has_item && !seq_add(run, seq, item))
        return false;
    seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_empty_list(struct call *call, struct value *ret)
{
    return frozen_list(call->run, VALUE_NONE, false, ret);
}

static bool collections_singleton_list(struct call *call, struct value *ret)
{
    return frozen_list(call->run, call->args[0], true, ret);
}

static bool frozen_dict(struct call *call, struct value *ret)
{
    enum class_id id = (enum class_id)call->row->datum.number;
    struct dict *dict = dict_new(call->run, id);
    if (call->count > 0 &&
        !dict_put(call->run, dict, call->args[0], call->count > 1 ? call->args[1] : VALUE_NONE, NULL))
        return false;
    dict->object.flags |= OBJECT_READONLY;
    return give(ret, dict);
}

/* Gives an unmodifiable copy. Unlike Java's view, it does not show later changes to the
   original. */
static bool collections_unmodifiable(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    if (value_is_seq(call->args[0]) || !(value_is_map(call->args[0]) || value_is_set(call->args[0]))) {
        struct seq *copy = values_to_seq(run, call->args[0], CLASS_IMMUTABLE_LIST);
        if (copy != NULL)
            copy->object.flags |= OBJECT_READONLY;
        return give(ret, copy);
    }
    struct dict *copy = dict_new(run, value_is_map(call->args[0]) ? CLASS_IMMUTABLE_MAP : CLASS_IMMUTABLE_SET);
    if (!dict_put_all(run, copy, dict_of(call->args[0])))
        return false;
    copy->object.flags |= OBJECT_READONLY;
    return give(ret, copy);
}

/* Orders */

static bool compare_reversed(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    int order;
    (void)n;
    if (closure->held[0].kind != VALUE_NULL) {
        struct value swapped[2] = {a[1], a[0]};
        return run_invoke(run, closure->held[0], swapped, 2, ret);
    }
    return value_order(run, a[1], a[0], &order) && give_int(ret, (order > 0) - (order < 0));
}

bool methods_utility_reverse_order(struct call *call, struct value *ret)
{
    *ret =
        closure_native_new(call->run, compare_reversed, 2, call->count == 1 ? call->args[0] : VALUE_NONE, VALUE_NONE);
    return true;
}

/* Arrays */

static bool arrays_as_list(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *seq;
    if (call->count == 1 && value_is_array(call->args[0])) {
        seq = values_to_seq(run, call->args[0], CLASS_ARRAYS_LIST);
    } else {
        seq = seq_new(run, CLASS_ARRAYS_LIST, call->count);
        for (unsigned i = 0; seq != NULL && i < call->count; i++)
            if (!seq_add(run, seq, call->args[i]))
                return false;
    }
    if (seq != NULL)
        seq->object.flags |= OBJECT_FIXED;
    return give(ret, seq);
}

static bool arrays_to_string(struct call *call, struct value *ret)
{
    struct seq *seq = values_to_seq(call->run, call->args[0], CLASS_ARRAY_LIST);
    return seq != NULL && give(ret, value_to_text(call->run, value_of(seq)));
}

static bool arrays_sort(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    char name[TYPE_NAME_MAX];
    if (!value_is_array(call->args[0]))
        return run_throw(
            call->run, CLASS_MISSING_METHOD_EXCEPTION,
            "No signature of method: static java.util.Arrays.sort() is applicable for argument types: (%s)",
            type_java_name(value_type(call->args[0]), name));
    struct array *array = (struct array *)call->args[0].object;
    return values_sort(call->run, array->items, array->count, VALUE_NONE) && give_nothing(ret);
}

static const struct method_row collections_methods[] = {
    {"static List EMPTY_LIST", BOTH, collections_empty_list},
    {"static Set EMPTY_SET", BOTH, frozen_dict, {CLASS_IMMUTABLE_SET}},
    {"static Map EMPTY_MAP", BOTH, frozen_dict, {CLASS_IMMUTABLE_MAP}},
    {"static boolean addAll(Collection, def[])", BOTH, collections_add_all},
    {"static boolean disjoint(Collection, Collection)", BOTH, collections_disjoint},
    {"static List emptyList()", BOTH, collections_empty_list},
    {"static Set emptySet()", BOTH, frozen_dict, {CLASS_IMMUTABLE_SET}},
    {"static Map emptyMap()", BOTH, frozen_dict, {CLASS_IMMUTABLE_MAP}},
    {"static int frequency(Collection, def)", BOTH, collections_frequency},
    {"static def max(Collection)", BOTH, collections_max},
    {"static def max(Collection, Comparator)", BOTH, collections_max},
    {"static def min(Collection)", BOTH, collections_min},
    {"static def min(Collection, Comparator)", BOTH, collections_min},
    {"static List nCopies(int, def)", BOTH, collections_n_copies},
    {"static void reverse(List)", BOTH, collections_reverse},
    {"static Comparator reverseOrder()", BOTH, methods_utility_reverse_order},
    {"static Comparator reverseOrder(Comparator)", BOTH, methods_utility_reverse_order},
    {"static Set singleton(def)", BOTH, frozen_dict, {CLASS_IMMUTABLE_SET}},
    {"static List singletonList(def)", BOTH, collections_singleton_list},
    {"static Map singletonMap(def, def)", BOTH, frozen_dict, {CLASS_IMMUTABLE_MAP}},
    {"static void sort(List)", BOTH, collections_sort},
    {"static void sort(List, Comparator)", BOTH, collections_sort},
    {"static void swap(List, int, int)", BOTH, collections_swap},
    {"static List unmodifiableList(List)", BOTH, collections_unmodifiable},
    {"static Collection unmodifiableCollection(Collection)", BOTH, collections_unmodifiable},
    {"static Set unmodifiableSet(Set)", BOTH, collections_unmodifiable},
    {"static Map unmodifiableMap(Map)", BOTH, collections_unmodifiable},
};

static const struct method_row arrays_methods[] = {
    {"static List asList(Object[])", BOTH, arrays_as_list},
    {"static List asList(def...)", GROOVY, arrays_as_list},
    {"static String deepToString(Object[])", PAINLESS, arrays_to_string},
    {"static String toString(def)", GROOVY, arrays_to_string},
    {"static void sort(def)", GROOVY, arrays_sort},
};

const struct method_table methods_utility[] = {
    METHOD_ROWS(COLLECTIONS, collections_methods),
    METHOD_ROWS(ARRAYS, arrays_methods),
    {0},
};
