/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's additions to Iterable and Collection, which it took from Groovy with types of its own. */
#include "script/run/convert.h"
#include "script/run/invoke.h"
#include "script/library/methods_collection.h"

static bool iterable_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return methods_collection_for_each(run, a, n, ret) && (*ret = a[0], true);
}

static bool iterable_each_with_index(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value ignored;
    int64_t index = 0;
    *ret = a[0];
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value arguments[2] = {item, value_int(index++)};
        if (!run_invoke(run, a[1], arguments, 2, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

static bool quantify(struct run *run, struct value *a, bool stop_at, struct value *ret)
{
    struct iter iter;
    bool holds = !stop_at;
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!invoke_item_test(run, a[1], item, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, stop_at);
    }
    return run->thrown == NULL && give_boolean(ret, !stop_at);
}

static bool iterable_any(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return quantify(run, a, true, ret);
}

static bool iterable_every(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return quantify(run, a, false, ret);
}

static bool iterable_join(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct text_buf out;
    struct text *separator = value_to_text(run, a[1]);
    bool first = true;
    text_buf_init(&out, run);
    if (!methods_collection_walk(run, &iter, a[0]) || separator == NULL)
        return false;
    walk(&iter, item)
    {
        if (!first)
            text_buf_text(&out, separator);
        first = false;
        if (!value_append(run, item, &out))
            return false;
    }
    return run->thrown == NULL && give(ret, text_buf_done(&out));
}

static bool iterable_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    *ret = value_double(0);
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (n == 1 && !invoke_item(run, a[1], item, &item))
            return false;
        if (!value_number(item) && item.kind != VALUE_CHAR && !convert_site(run, item, CLASS_DOUBLE, &item))
            return false;
        *ret = value_double(ret->d + number_to_double(run, item));
    }
    return run->thrown == NULL;
}

static bool iterable_group_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct entry *entry;
        if (!invoke_item(run, a[1], item, &key) || !dict_find(run, groups, key, &entry))
            return false;
        bool ok = entry != NULL ? seq_add(run, seq_of(entry->value), item) : true;
        if (entry == NULL) {
            struct seq *group = seq_new(run, CLASS_ARRAY_LIST, 0);
            ok = seq_add(run, group, item) && dict_put(run, groups, key, value_of(group), NULL);
        }
        if (!ok)
            return false;
    }
    return run->thrown == NULL;
}

static bool iterable_find_results(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *results = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(results);
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!invoke_item(run, a[1], item, &result) || (result.kind != VALUE_NULL && !seq_add(run, results, result)))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_collect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct value into = n == 2 ? a[1] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0)), function = n == 2 ? a[2] : a[1];
    *ret = into;
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        bool added;
        if (!invoke_item(run, function, item, &result) || !methods_collection_add_to(run, into, result, &added))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    *ret = VALUE_NONE;
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, a[1], item, &holds))
            return false;
        if (holds) {
            *ret = item;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool collection_find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *found = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(found);
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, a[1], item, &holds) || (holds && !seq_add(run, found, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_find_result(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct iter iter;
    struct value function = n == 2 ? a[2] : a[1];
    *ret = n == 2 ? a[1] : VALUE_NONE;
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!invoke_item(run, function, item, &result))
            return false;
        if (result.kind != VALUE_NULL) {
            *ret = result;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool collection_split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct seq *both = seq_new(run, CLASS_ARRAY_LIST, 2);
    struct seq *yes = seq_new(run, CLASS_ARRAY_LIST, 0), *no = seq_new(run, CLASS_ARRAY_LIST, 0);
    if (both == NULL || !seq_add(run, both, value_of(yes)) || !seq_add(run, both, value_of(no)) ||
        !methods_collection_walk(run, &iter, a[0]))
        return false;
    *ret = value_of(both);
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, a[1], item, &holds) || !seq_add(run, holds ? yes : no, item))
            return false;
    }
    return run->thrown == NULL;
}

static const struct method iterable_methods[] = {
    M1("any", METHOD_PAINLESS, BOOLEAN, PREDICATE, iterable_any),
    M0("asCollection", METHOD_PAINLESS, COLLECTION, methods_collection_copy),
    M0("asList", METHOD_PAINLESS, LIST, methods_collection_copy),
    M1("each", METHOD_PAINLESS, DEF, CONSUMER, iterable_each),
    M1("eachWithIndex", METHOD_PAINLESS, DEF, OBJ_INT_CONSUMER, iterable_each_with_index),
    M1("every", METHOD_PAINLESS, BOOLEAN, PREDICATE, iterable_every),
    M1("findResults", METHOD_PAINLESS, LIST, FUNCTION, iterable_find_results),
    M1("groupBy", METHOD_PAINLESS, MAP, FUNCTION, iterable_group_by),
    M1("join", METHOD_PAINLESS, STRING, STRING, iterable_join),
    M0("sum", METHOD_PAINLESS, DOUBLE, iterable_sum),
    M1("sum", METHOD_PAINLESS, DOUBLE, TO_DOUBLE_FUNCTION, iterable_sum),
};

static const struct method collection_methods[] = {
    M1("collect", METHOD_PAINLESS, LIST, FUNCTION, collection_collect),
    M2("collect", METHOD_PAINLESS, DEF, COLLECTION, FUNCTION, collection_collect),
    M1("find", METHOD_PAINLESS, DEF, PREDICATE, collection_find),
    M1("findAll", METHOD_PAINLESS, LIST, PREDICATE, collection_find_all),
    M1("findResult", METHOD_PAINLESS, DEF, FUNCTION, collection_find_result),
    M2("findResult", METHOD_PAINLESS, DEF, DEF, FUNCTION, collection_find_result),
    M1("split", METHOD_PAINLESS, LIST, PREDICATE, collection_split),
};

const struct method_table methods_painless_iterable[] = {
    METHOD_TABLE(ITERABLE, iterable_methods),
    METHOD_TABLE(COLLECTION, collection_methods),
    {0, 0, NULL},
};
