/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's methods of Iterable, Collection, Set and Iterator, and the constructors of collections.
 *
 * Related files: methods_list.c has lists and queues, methods_utility.c the classes Collections and
 * Arrays. methods_painless_iterable.c and methods_groovy….c have the additions of each dialect.
 */
#include "script/library/methods_collection.h"

#include "script/run/invoke.h"
#include "script/run/operate.h"

bool methods_collection_walk(struct run *run, struct iter *iter, struct value collection)
{
    return iter_init(iter, run, collection) || run_throw_npe(run, "java.util.Collection.iterator()");
}

bool methods_collection_add_to(struct run *run, struct value collection, struct value item, bool *ret_added)
{
    *ret_added = true;
    if (value_is_set(collection))
        return dict_add(run, dict_of(collection), item, ret_added);
    if (!value_is_seq(collection))
        return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
    return seq_add(run, seq_of(collection), item);
}

bool methods_collection_add(struct call *call, struct value *ret)
{
    bool added;
    return methods_collection_add_to(call->run, call->self, call->args[0], &added) && give_boolean(ret, added);
}

bool methods_collection_add_all(struct call *call, struct value *ret)
{
    bool changed = false, added;
    NOT_NULL(0);
    struct seq *copy = values_to_seq(call->run, call->args[0], CLASS_ARRAY_LIST);
    for (size_t i = 0; copy != NULL && i < copy->count; i++) {
        if (!methods_collection_add_to(call->run, call->self, seq_item(copy, i), &added))
            return false;
        changed |= added;
    }
    return copy != NULL && give_boolean(ret, changed);
}

static bool collection_clear(struct call *call, struct value *ret)
{
    bool ok;
    if (value_is_seq(call->self))
        ok = seq_clear(call->run, seq_of(call->self));
    else
        ok = dict_clear(call->run,
                        value_is_set(call->self) ? dict_of(call->self) : ((struct map_view *)call->self.object)->dict);
    return ok && give_nothing(ret);
}

bool methods_collection_holds(struct run *run, struct value collection, struct value item, bool *ret)
{
    struct iter iter;
    struct map_entry *entry;
    *ret = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct dict *dict =
            value_is_set(collection) ? dict_of(collection) : ((struct map_view *)collection.object)->dict;
        if (!dict_find(run, dict, item, &entry))
            return false;
        *ret = entry != NULL;
        return true;
    }
    if (!methods_collection_walk(run, &iter, collection))
        return false;
    walk(&iter, one)
    {
        if (!value_equals(run, one, item, ret))
            return false;
        if (*ret)
            return true;
    }
    return run->thrown == NULL;
}

static bool collection_contains(struct call *call, struct value *ret)
{
    bool found;
    return methods_collection_holds(call->run, call->self, call->args[0], &found) && give_boolean(ret, found);
}

static bool collection_contains_all(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    bool found = true;
    NOT_NULL(0);
    if (!methods_collection_walk(run, &iter, call->args[0]))
        return false;
    walk(&iter, item)
    {
        if (!methods_collection_holds(run, call->self, item, &found))
            return false;
        if (!found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, found);
}

bool methods_collection_is_empty(struct call *call, struct value *ret)
{
    return give_boolean(ret, values_count(call->self) == 0);
}

bool methods_collection_size(struct call *call, struct value *ret)
{
    return give_int(ret, (int64_t)values_count(call->self));
}

/* Removal */

/* Condition of filter_in_place, which tests each element once, in order. */
struct filter {
    struct value function; /* null: the condition is membership in `among` */
    struct value among;
    bool keep; /* whether elements that satisfy the condition stay, or the others */
};

static bool filter_test(struct run *run, const struct filter *filter, struct value item, bool *ret)
{
    return filter->function.kind != VALUE_NULL ? invoke_item_test(run, filter->function, item, ret)
                                               : methods_collection_holds(run, filter->among, item, ret);
}

static bool filter_in_place(struct run *run, struct value collection, const struct filter *filter, bool *ret_changed)
{
    struct iter iter;
    *ret_changed = false;
    if (value_is_seq(collection) && (seq_of(collection)->object.flags & OBJECT_READONLY))
        return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
    if (!methods_collection_walk(run, &iter, collection))
        return false;
    walk(&iter, item)
    {
        bool holds;
        if (!filter_test(run, filter, item, &holds))
            return false;
        if (holds == filter->keep)
            continue;
        if (!iter_remove(&iter))
            return false;
        *ret_changed = true;
    }
    return run->thrown == NULL;
}

static bool collection_remove_if(struct call *call, struct value *ret)
{
    bool changed;
    NOT_NULL(0);
    struct filter filter = {.function = call->args[0], .keep = false};
    return filter_in_place(call->run, call->self, &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_remove_all(struct call *call, struct value *ret)
{
    bool changed;
    NOT_NULL(0);
    struct filter filter = {.among = call->args[0], .keep = false};
    if (value_is(call->args[0], CLASS_CLOSURE))
        filter.function = call->args[0];
    return filter_in_place(call->run, call->self, &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_retain_all(struct call *call, struct value *ret)
{
    bool changed;
    NOT_NULL(0);
    struct filter filter = {.among = call->args[0], .keep = true};
    if (value_is(call->args[0], CLASS_CLOSURE))
        filter.function = call->args[0];
    return filter_in_place(call->run, call->self, &filter, &changed) && give_boolean(ret, changed);
}

/* Removes the first element equal to `item`. */
static bool remove_value(struct run *run, struct value collection, struct value item, bool *ret_removed)
{
    struct iter iter;
    *ret_removed = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct map_entry *entry;
        struct dict *dict =
            value_is_set(collection) ? dict_of(collection) : ((struct map_view *)collection.object)->dict;
        if (!dict_remove(run, dict, item, &entry))
            return false;
        *ret_removed = entry != NULL;
        return true;
    }
    if (!methods_collection_walk(run, &iter, collection))
        return false;
    walk(&iter, one)
    {
        bool same;
        if (!value_equals(run, one, item, &same))
            return false;
        if (!same)
            continue;
        *ret_removed = true;
        return iter_remove(&iter);
    }
    return run->thrown == NULL;
}

bool methods_collection_remove(struct call *call, struct value *ret)
{
    bool removed;
    return remove_value(call->run, call->self, call->args[0], &removed) && give_boolean(ret, removed);
}

/* Copies */

static bool collection_to_array(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *seq = values_to_seq(run, call->self, CLASS_ARRAY_LIST);
    struct array *array = seq == NULL ? NULL : array_new(run, run->groovy ? CLASS_OBJECT : CLASS_DEF, seq->count);
    for (size_t i = 0; array != NULL && i < seq->count; i++)
        array->items[i] = seq_item(seq, i);
    return give(ret, array);
}

static bool collection_stream(struct call *call, struct value *ret)
{
    return give(ret, values_to_seq(call->run, call->self, CLASS_STREAM));
}

bool methods_collection_copy(struct call *call, struct value *ret)
{
    return give(ret, values_to_seq(call->run, call->self, CLASS_ARRAY_LIST));
}

bool methods_collection_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    bool given = call->count == 1 && !value_integral(call->args[0]);
    if (given)
        NOT_NULL(0);
    if (class_extends(id, CLASS_SET)) {
        struct dict *set = dict_new(run, id);
        struct value into[2] = {value_of(set), call->count == 1 ? call->args[0] : VALUE_NONE}, ignored;
        *ret = into[0];
        if (given && value_is(call->args[0], CLASS_CLOSURE)) {
            set->comparator = call->args[0];
            return true;
        }
        if (given &&
            !dict_reserve(run, set,
                          id == CLASS_TREE_SET || values_count(call->args[0]) < 12 ? 0 : values_count(call->args[0])))
            return false;
        return !given || methods_collection_add_all(CALL(run, into, 1), &ignored);
    }
    return give(ret, given ? values_to_seq(run, call->args[0], id) : seq_new(run, id, 0));
}

/* Iteration */

bool methods_collection_for_each(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct iter iter;
    struct value ignored;
    NOT_NULL(0);
    if (!methods_collection_walk(run, &iter, call->self))
        return false;
    walk(&iter, item)
    {
        if (!invoke_item(run, call->args[0], item, &ignored))
            return false;
    }
    return run->thrown == NULL && give_nothing(ret);
}

static bool iterable_iterator(struct call *call, struct value *ret)
{
    struct cursor *cursor = run_object(call->run, sizeof *cursor, CLASS_CURSOR);
    *ret = value_of(cursor);
    return methods_collection_walk(call->run, &cursor->iter, call->self);
}

static bool iterator_has_next(struct call *call, struct value *ret)
{
    return give_boolean(ret, iter_has_next(&((struct cursor *)call->self.object)->iter));
}

static bool iterator_next(struct call *call, struct value *ret)
{
    bool more;
    if (!iter_next(&((struct cursor *)call->self.object)->iter, ret, &more))
        return false;
    return more || run_throw_null(call->run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
}

static bool iterator_remove(struct call *call, struct value *ret)
{
    return iter_remove(&((struct cursor *)call->self.object)->iter) && give_nothing(ret);
}

static bool iterator_for_each_remaining(struct call *call, struct value *ret)
{
    struct iter *iter = &((struct cursor *)call->self.object)->iter;
    walk(iter, item)
    {
        struct value ignored;
        if (!run_invoke(call->run, call->args[0], &item, 1, &ignored))
            return false;
    }
    return call->run->thrown == NULL && give_nothing(ret);
}

static const struct method_row iterable_methods[] = {
    {"void forEach(Consumer)", BOTH, methods_collection_for_each},
    {"Iterator iterator()", BOTH, iterable_iterator},
};

static const struct method_row collection_methods[] = {
    {"boolean add(def)", BOTH, methods_collection_add},
    {"boolean addAll(Collection)", BOTH, methods_collection_add_all},
    {"void clear()", BOTH, collection_clear},
    {"boolean contains(def)", BOTH, collection_contains},
    {"boolean containsAll(Collection)", BOTH, collection_contains_all},
    {"boolean isEmpty()", BOTH, methods_collection_is_empty},
    {"boolean removeAll(Closure)", GROOVY, collection_remove_all},
    {"boolean removeAll(Collection)", BOTH, collection_remove_all},
    {"boolean removeIf(Predicate)", BOTH, collection_remove_if},
    {"boolean retainAll(Closure)", GROOVY, collection_retain_all},
    {"boolean retainAll(Collection)", BOTH, collection_retain_all},
    {"int size()", BOTH, methods_collection_size},
    {"Stream stream()", BOTH, collection_stream},
    {"def[] toArray()", BOTH, collection_to_array},
    {"def[] toArray(def[])", BOTH, collection_to_array},
    {"boolean remove(def)", GROOVY, methods_collection_remove},
};

static const struct method_row set_methods[] = {
    {"boolean remove(def)", BOTH, methods_collection_remove},
};

static const struct method_row new_collection_methods[] = {
    {"new Collection()", BOTH, methods_collection_new},
    {"new Collection(Collection)", BOTH, methods_collection_new},
    {"new Collection(int)", GROOVY, methods_collection_new},
    {"def clone()", BOTH, methods_collection_copy},
};

static const struct method_row tree_set_methods[] = {
    {"new TreeSet()", BOTH, methods_collection_new},
    {"new TreeSet(Collection)", GROOVY, methods_collection_new},
    {"new TreeSet(Comparator)", BOTH, methods_collection_new},
};

static const struct method_row iterator_methods[] = {
    {"boolean hasNext()", BOTH, iterator_has_next},
    {"def next()", BOTH, iterator_next},
    {"void remove()", BOTH, iterator_remove},
    {"void forEachRemaining(Consumer)", BOTH, iterator_for_each_remaining},
};

const struct method_table methods_collection[] = {
    METHOD_ROWS(ITERABLE, iterable_methods),
    METHOD_ROWS(SET, set_methods),
    METHOD_ROWS(COLLECTION, collection_methods),
    METHOD_ROWS(ARRAY_LIST, new_collection_methods),
    METHOD_ROWS(LINKED_LIST, new_collection_methods),
    METHOD_ROWS(ARRAY_DEQUE, new_collection_methods),
    METHOD_ROWS(HASH_SET, new_collection_methods),
    METHOD_ROWS(LINKED_HASH_SET, new_collection_methods),
    METHOD_ROWS(TREE_SET, tree_set_methods),
    METHOD_ROWS(ITERATOR, iterator_methods),
    {0},
};
