/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Collections and Arrays: Java's static helpers for what collections and arrays hold. */
#include "script/run/invoke.h"
#include "script/library/methods_collection.h"
#include "script/run/operate.h"

static bool collections_sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return methods_list_sort(run, a[1], n == 2 ? a[2] : VALUE_NONE) && give_nothing(ret);
}

static bool collections_reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct seq *seq = seq_of(a[1]);
    for (size_t i = 0; i < seq->count / 2; i++) {
        struct value low = seq_item(seq, i), high = seq_item(seq, seq->count - 1 - i);
        if (!run_step(run, 1) || !seq_set(run, seq, (int64_t)i, high, NULL) ||
            !seq_set(run, seq, (int64_t)(seq->count - 1 - i), low, NULL))
            return false;
    }
    return give_nothing(ret);
}

static bool extreme(struct run *run, struct value collection, struct value comparator, int sign, struct value *ret)
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

static bool collections_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return extreme(run, a[1], n == 2 ? a[2] : VALUE_NONE, 1, ret);
}

static bool collections_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return extreme(run, a[1], n == 2 ? a[2] : VALUE_NONE, -1, ret);
}

static bool collections_swap(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct value one, two;
    struct seq *seq = seq_of(a[1]);
    return seq_get(run, seq, a[2].i, &one) && seq_get(run, seq, a[3].i, &two) && seq_set(run, seq, a[2].i, two, NULL) &&
           seq_set(run, seq, a[3].i, one, NULL) && give_nothing(ret);
}

static bool collections_frequency(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    int64_t count = 0;
    NEED(1);
    if (!methods_collection_walk(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        bool same;
        if (!value_equals(run, item, a[2], &same))
            return false;
        count += same;
    }
    return run->thrown == NULL && give_int(ret, count);
}

static bool collections_n_copies(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "List length = %lld", (long long)a[1].i);
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, (size_t)a[1].i);
    for (int64_t i = 0; seq != NULL && i < a[1].i; i++)
        if (!run_step(run, 1) || !seq_add(run, seq, a[2]))
            return false;
    if (seq != NULL)
        seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_disjoint(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    bool found = false;
    NEED(1);
    NEED(2);
    if (!methods_collection_walk(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        if (!methods_collection_holds(run, a[2], item, &found))
            return false;
        if (found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, !found);
}

static bool collections_add_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return methods_collection_add_all(run, a + 1, n, ret);
}

/* Collections that refuse changes */

static bool frozen_list(struct run *run, struct value item, bool has_item, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_IMMUTABLE_LIST, 0);
    if (has_item && !seq_add(run, seq, item))
        return false;
    seq->object.flags |= OBJECT_READONLY;
    return give(ret, seq);
}

static bool collections_empty_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return frozen_list(run, VALUE_NONE, false, ret);
}

static bool collections_singleton_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return frozen_list(run, a[1], true, ret);
}

static bool frozen_dict(struct run *run, enum class_id id, struct value *a, unsigned n, struct value *ret)
{
    struct dict *dict = dict_new(run, id);
    if (n > 0 && !dict_put(run, dict, a[1], n > 1 ? a[2] : VALUE_NONE, NULL))
        return false;
    dict->object.flags |= OBJECT_READONLY;
    return give(ret, dict);
}

static bool collections_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return frozen_dict(run, CLASS_IMMUTABLE_SET, a, n, ret);
}

static bool collections_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return frozen_dict(run, CLASS_IMMUTABLE_MAP, a, n, ret);
}

/* A copy that refuses changes; changes behind its back do not show, which nobody here could make unseen. */
static bool collections_unmodifiable(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (value_is_seq(a[1]) || !(value_is_map(a[1]) || value_is_set(a[1]))) {
        struct seq *copy = values_to_seq(run, a[1], CLASS_IMMUTABLE_LIST);
        if (copy != NULL)
            copy->object.flags |= OBJECT_READONLY;
        return give(ret, copy);
    }
    struct dict *copy = dict_new(run, value_is_map(a[1]) ? CLASS_IMMUTABLE_MAP : CLASS_IMMUTABLE_SET);
    if (!dict_put_all(run, copy, dict_of(a[1])))
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

bool methods_utility_reverse_order(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = closure_native_new(run, compare_reversed, 2, n == 1 ? a[1] : VALUE_NONE, VALUE_NONE);
    return true;
}

/* Arrays */

static bool arrays_as_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *seq;
    if (n == 1 && value_is_array(a[1])) {
        seq = values_to_seq(run, a[1], CLASS_ARRAYS_LIST);
    } else {
        seq = seq_new(run, CLASS_ARRAYS_LIST, n);
        for (unsigned i = 1; seq != NULL && i <= n; i++)
            if (!seq_add(run, seq, a[i]))
                return false;
    }
    if (seq != NULL)
        seq->object.flags |= OBJECT_FIXED;
    return give(ret, seq);
}

static bool arrays_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = values_to_seq(run, a[1], CLASS_ARRAY_LIST);
    return seq != NULL && give(ret, value_to_text(run, value_of(seq)));
}

static bool arrays_sort(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    char name[TYPE_NAME_MAX];
    if (!value_is_array(a[1]))
        return run_throw(
            run, CLASS_MISSING_METHOD_EXCEPTION,
            "No signature of method: static java.util.Arrays.sort() is applicable for argument types: (%s)",
            type_java_name(value_type(a[1]), name));
    struct array *array = (struct array *)a[1].object;
    return values_sort(run, array->items, array->count, VALUE_NONE) && give_nothing(ret);
}

static const struct method collections_methods[] = {
    M0("EMPTY_LIST", STATIC | METHOD_FIELD, LIST, collections_empty_list),
    M0("EMPTY_SET", STATIC | METHOD_FIELD, SET, collections_set),
    M0("EMPTY_MAP", STATIC | METHOD_FIELD, MAP, collections_map),
    M2("addAll", STATIC, BOOLEAN, COLLECTION, DEF_ARRAY, collections_add_all),
    M2("disjoint", STATIC, BOOLEAN, COLLECTION, COLLECTION, collections_disjoint),
    M0("emptyList", STATIC, LIST, collections_empty_list),
    M0("emptySet", STATIC, SET, collections_set),
    M0("emptyMap", STATIC, MAP, collections_map),
    M2("frequency", STATIC, INT, COLLECTION, DEF, collections_frequency),
    M1("max", STATIC, DEF, COLLECTION, collections_max),
    M2("max", STATIC, DEF, COLLECTION, COMPARATOR, collections_max),
    M1("min", STATIC, DEF, COLLECTION, collections_min),
    M2("min", STATIC, DEF, COLLECTION, COMPARATOR, collections_min),
    M2("nCopies", STATIC, LIST, INT, DEF, collections_n_copies),
    M1("reverse", STATIC, VOID, LIST, collections_reverse),
    M0("reverseOrder", STATIC, COMPARATOR, methods_utility_reverse_order),
    M1("reverseOrder", STATIC, COMPARATOR, COMPARATOR, methods_utility_reverse_order),
    M1("singleton", STATIC, SET, DEF, collections_set),
    M1("singletonList", STATIC, LIST, DEF, collections_singleton_list),
    M2("singletonMap", STATIC, MAP, DEF, DEF, collections_map),
    M1("sort", STATIC, VOID, LIST, collections_sort),
    M2("sort", STATIC, VOID, LIST, COMPARATOR, collections_sort),
    M3("swap", STATIC, VOID, LIST, INT, INT, collections_swap),
    M1("unmodifiableList", STATIC, LIST, LIST, collections_unmodifiable),
    M1("unmodifiableCollection", STATIC, COLLECTION, COLLECTION, collections_unmodifiable),
    M1("unmodifiableSet", STATIC, SET, SET, collections_unmodifiable),
    M1("unmodifiableMap", STATIC, MAP, MAP, collections_unmodifiable),
};

static const struct method arrays_methods[] = {
    M1("asList", STATIC, LIST, OBJECT_ARRAY, arrays_as_list),
    M1("asList", METHOD_GROOVY | METHOD_STATIC | METHOD_REST, LIST, DEF, arrays_as_list),
    M1("deepToString", METHOD_PAINLESS | METHOD_STATIC, STRING, OBJECT_ARRAY, arrays_to_string),
    M1("toString", METHOD_GROOVY | METHOD_STATIC, STRING, DEF, arrays_to_string),
    M1("sort", METHOD_GROOVY | METHOD_STATIC, VOID, DEF, arrays_sort),
};

const struct method_table methods_utility[] = {
    METHOD_TABLE(COLLECTIONS, collections_methods),
    METHOD_TABLE(ARRAYS, arrays_methods),
    {0, 0, NULL},
};
