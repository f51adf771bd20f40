/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's typed variants of Groovy's additions to Iterable and Collection. */
#include "script/run/convert.h"
#include "script/run/invoke.h"
#include "script/library/methods_collection.h"

static bool iterable_each(struct call *call, struct value *ret)
{
    return methods_collection_for_each(call, ret) && (*ret = call->self, true);
}

static bool iterable_each_with_index(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value ignored;
    int64_t index = 0;
    *ret = call->self;
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value arguments[2] = {item, value_int(index++)};
        if (!run_invoke(run, call->args[0], arguments, 2, &ignored))
            return false;
    }
    return run->thrown == NULL;
}

static bool iterable_any_or_every(struct call *call, struct value *ret)
{
    bool stop_at = call->row->datum.number != 0;
    struct run *run = call->run;
    struct iter iter;
    bool holds = !stop_at;
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (!invoke_item_test(run, call->args[0], item, &holds))
            return false;
        if (holds == stop_at)
            return give_boolean(ret, stop_at);
    }
    return run->thrown == NULL && give_boolean(ret, !stop_at);
}

static bool iterable_join(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct text_buf out;
    struct text *separator = value_to_text(run, call->args[0]);
    bool first = true;
    text_buf_init(&out, run);
    if (!methods_collection_walk(run, &iter, call->self) || separator == NULL)
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

static bool iterable_sum(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = value_double(0);
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (call->count == 1 && !invoke_item(run, call->args[0], item, &item))
            return false;
        if (!value_number(item) && item.kind != VALUE_CHAR && !convert_site(run, item, CLASS_DOUBLE, &item))
            return false;
        *ret = value_double(ret->d + number_to_double(run, item));
    }
    return run->thrown == NULL;
}

static bool iterable_group_by(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct dict *groups = dict_new(run, CLASS_LINKED_HASH_MAP);
    *ret = value_of(groups);
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value key;
        struct map_entry *entry;
        if (!invoke_item(run, call->args[0], item, &key) || !dict_find(run, groups, key, &entry))
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

static bool iterable_find_results(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct seq *results = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(results);
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        struct value result;
        if (!invoke_item(run, call->args[0], item, &result) ||
            (result.kind != VALUE_NULL && !seq_add(run, results, result)))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_collect(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value into = call->count == 2 ? call->args[0] : value_of(seq_new(run, CLASS_ARRAY_LIST, 0)),
                 function = call->count == 2 ? call->args[1] : call->args[0];
    *ret = into;
    if (!methods_collection_walk(run, &iter, call->self))
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

static bool collection_find(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    *ret = VALUE_NONE;
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, call->args[0], item, &holds))
            return false;
        if (holds) {
            *ret = item;
            return true;
        }
    }
    return run->thrown == NULL;
}

static bool collection_find_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct seq *found = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(found);
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, call->args[0], item, &holds) || (holds && !seq_add(run, found, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool collection_find_result(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value function = call->count == 2 ? call->args[1] : call->args[0];
    *ret = call->count == 2 ? call->args[0] : VALUE_NONE;
    if (!methods_collection_walk(run, &iter, call->self))
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

static bool collection_split(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct seq *both = seq_new(run, CLASS_ARRAY_LIST, 2);
    struct seq *yes = seq_new(run, CLASS_ARRAY_LIST, 0), *no = seq_new(run, CLASS_ARRAY_LIST, 0);
    if (both == NULL || !seq_add(run, both, value_of(yes)) || !seq_add(run, both, value_of(no)) ||
        !methods_collection_walk(run, &iter, call->self))
        return false;
    *ret = value_of(both);
    walk(&iter, item)
    {
        bool holds;
        if (!invoke_item_test(run, call->args[0], item, &holds) || !seq_add(run, holds ? yes : no, item))
            return false;
    }
    return run->thrown == NULL;
}

static const struct method_row iterable_methods[] = {
    {"boolean any(Predicate)", PAINLESS, iterable_any_or_every, {true}},
    {"Collection asCollection()", PAINLESS, methods_collection_copy},
    {"List asList()", PAINLESS, methods_collection_copy},
    {"def each(Consumer)", PAINLESS, iterable_each},
    {"def eachWithIndex(ObjIntConsumer)", PAINLESS, iterable_each_with_index},
    {"boolean every(Predicate)", PAINLESS, iterable_any_or_every, {false}},
    {"List findResults(Function)", PAINLESS, iterable_find_results},
    {"Map groupBy(Function)", PAINLESS, iterable_group_by},
    {"String join(String)", PAINLESS, iterable_join},
    {"double sum()", PAINLESS, iterable_sum},
    {"double sum(ToDoubleFunction)", PAINLESS, iterable_sum},
};

static const struct method_row collection_methods[] = {
    {"List collect(Function)", PAINLESS, collection_collect},
    {"def collect(Collection, Function)", PAINLESS, collection_collect},
    {"def find(Predicate)", PAINLESS, collection_find},
    {"List findAll(Predicate)", PAINLESS, collection_find_all},
    {"def findResult(Function)", PAINLESS, collection_find_result},
    {"def findResult(def, Function)", PAINLESS, collection_find_result},
    {"List split(Predicate)", PAINLESS, collection_split},
};

const struct method_table methods_painless_iterable[] = {
    METHOD_ROWS(ITERABLE, iterable_methods),
    METHOD_ROWS(COLLECTION, collection_methods),
    {0},
};
