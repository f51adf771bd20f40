/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods of Iterable, Collection, Set and Iterator that Java has, and how collections are made.
 *
 * Lists and queues are in methods_list.c, the classes Collections and Arrays in methods_utility.c, what one dialect adds in
 * methods_painless_iterable.c and methods_groovy….c.
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

bool methods_collection_add(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool added;
    return methods_collection_add_to(run, a[0], a[1], &added) && give_boolean(ret, added);
}

bool methods_collection_add_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed = false, added;
    NEED(1);
    struct seq *copy = values_to_seq(run, a[1], CLASS_ARRAY_LIST);
    for (size_t i = 0; copy != NULL && i < copy->count; i++) {
        if (!methods_collection_add_to(run, a[0], seq_item(copy, i), &added))
            return false;
        changed |= added;
    }
    return copy != NULL && give_boolean(ret, changed);
}

static bool collection_clear(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool ok;
    if (value_is_seq(a[0]))
        ok = seq_clear(run, seq_of(a[0]));
    else
        ok = dict_clear(run, value_is_set(a[0]) ? dict_of(a[0]) : ((struct view *)a[0].object)->dict);
    return ok && give_nothing(ret);
}

bool methods_collection_holds(struct run *run, struct value collection, struct value item, bool *ret)
{
    struct iter iter;
    struct entry *entry;
    *ret = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct dict *dict = value_is_set(collection) ? dict_of(collection) : ((struct view *)collection.object)->dict;
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

static bool collection_contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    return methods_collection_holds(run, a[0], a[1], &found) && give_boolean(ret, found);
}

static bool collection_contains_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    bool found = true;
    NEED(1);
    if (!methods_collection_walk(run, &iter, a[1]))
        return false;
    walk(&iter, item)
    {
        if (!methods_collection_holds(run, a[0], item, &found))
            return false;
        if (!found)
            break;
    }
    return run->thrown == NULL && give_boolean(ret, found);
}

bool methods_collection_is_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, values_count(a[0]) == 0);
}

bool methods_collection_size(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)values_count(a[0]));
}

/* Taking out */

/* Keeps or drops what a test says; the test sees each element once, in order. */
struct filter {
    struct value function; /* or null: members of `among` */
    struct value among;
    bool keep; /* what the test holds for stays */
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

static bool collection_remove_if(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.function = a[1], .keep = false};
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_remove_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.among = a[1], .keep = false};
    if (value_is(a[1], CLASS_CLOSURE))
        filter.function = a[1];
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

static bool collection_retain_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool changed;
    NEED(1);
    struct filter filter = {.among = a[1], .keep = true};
    if (value_is(a[1], CLASS_CLOSURE))
        filter.function = a[1];
    return filter_in_place(run, a[0], &filter, &changed) && give_boolean(ret, changed);
}

/* Removes an element by its value. */
static bool remove_value(struct run *run, struct value collection, struct value item, bool *ret_removed)
{
    struct iter iter;
    *ret_removed = false;
    if (value_is_set(collection) || value_is(collection, CLASS_KEY_SET)) {
        struct entry *entry;
        struct dict *dict = value_is_set(collection) ? dict_of(collection) : ((struct view *)collection.object)->dict;
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

bool methods_collection_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool removed;
    return remove_value(run, a[0], a[1], &removed) && give_boolean(ret, removed);
}

/* Copies */

static bool collection_to_array(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *seq = values_to_seq(run, a[0], CLASS_ARRAY_LIST);
    struct array *array = seq == NULL ? NULL : array_new(run, run->groovy ? CLASS_OBJECT : CLASS_DEF, seq->count);
    for (size_t i = 0; array != NULL && i < seq->count; i++)
        array->items[i] = seq_item(seq, i);
    return give(ret, array);
}

static bool collection_stream(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, values_to_seq(run, a[0], CLASS_STREAM));
}

bool methods_collection_copy(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, values_to_seq(run, a[0], CLASS_ARRAY_LIST));
}

bool methods_collection_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    bool given = n == 1 && !value_integral(a[1]);
    if (given)
        NEED(1);
    if (class_extends(id, CLASS_SET)) {
        struct dict *set = dict_new(run, id);
        struct value into[2] = {value_of(set), n == 1 ? a[1] : VALUE_NONE}, ignored;
        *ret = into[0];
        if (given && value_is(a[1], CLASS_CLOSURE)) {
            set->comparator = a[1];
            return true;
        }
        if (given && !dict_reserve(run, set, id == CLASS_TREE_SET || values_count(a[1]) < 12 ? 0 : values_count(a[1])))
            return false;
        return !given || methods_collection_add_all(run, into, 1, &ignored);
    }
    return give(ret, given ? values_to_seq(run, a[1], id) : seq_new(run, id, 0));
}

/* Walks */

bool methods_collection_for_each(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter iter;
    struct value ignored;
    NEED(1);
    if (!methods_collection_walk(run, &iter, a[0]))
        return false;
    walk(&iter, item)
    {
        if (!invoke_item(run, a[1], item, &ignored))
            return false;
    }
    return run->thrown == NULL && give_nothing(ret);
}

static bool iterable_iterator(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct cursor *cursor = run_object(run, sizeof *cursor, CLASS_CURSOR);
    *ret = value_of(cursor);
    return methods_collection_walk(run, &cursor->iter, a[0]);
}

static bool iterator_has_next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, iter_has_next(&((struct cursor *)a[0].object)->iter));
}

static bool iterator_next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool more;
    if (!iter_next(&((struct cursor *)a[0].object)->iter, ret, &more))
        return false;
    return more || run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
}

static bool iterator_remove(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return iter_remove(&((struct cursor *)a[0].object)->iter) && give_nothing(ret);
}

static bool iterator_for_each_remaining(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct iter *iter = &((struct cursor *)a[0].object)->iter;
    walk(iter, item)
    {
        struct value ignored;
        if (!run_invoke(run, a[1], &item, 1, &ignored))
            return false;
    }
    return run->thrown == NULL && give_nothing(ret);
}

static const struct method iterable_methods[] = {
    M1("forEach", METHOD_BOTH, VOID, CONSUMER, methods_collection_for_each),
    M0("iterator", METHOD_BOTH, ITERATOR, iterable_iterator),
};

static const struct method collection_methods[] = {
    M1("add", METHOD_BOTH, BOOLEAN, DEF, methods_collection_add),
    M1("addAll", METHOD_BOTH, BOOLEAN, COLLECTION, methods_collection_add_all),
    M0("clear", METHOD_BOTH, VOID, collection_clear),
    M1("contains", METHOD_BOTH, BOOLEAN, DEF, collection_contains),
    M1("containsAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_contains_all),
    M0("isEmpty", METHOD_BOTH, BOOLEAN, methods_collection_is_empty),
    M1("removeAll", METHOD_GROOVY, BOOLEAN, CLOSURE, collection_remove_all),
    M1("removeAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_remove_all),
    M1("removeIf", METHOD_BOTH, BOOLEAN, PREDICATE, collection_remove_if),
    M1("retainAll", METHOD_GROOVY, BOOLEAN, CLOSURE, collection_retain_all),
    M1("retainAll", METHOD_BOTH, BOOLEAN, COLLECTION, collection_retain_all),
    M0("size", METHOD_BOTH, INT, methods_collection_size),
    M0("stream", METHOD_BOTH, STREAM, collection_stream),
    M0("toArray", METHOD_BOTH, DEF_ARRAY, collection_to_array),
    M1("toArray", METHOD_BOTH, DEF_ARRAY, DEF_ARRAY, collection_to_array),
    M1("remove", METHOD_GROOVY, BOOLEAN, DEF, methods_collection_remove),
};

static const struct method set_methods[] = {
    M1("remove", METHOD_BOTH, BOOLEAN, DEF, methods_collection_remove),
};

static const struct method new_collection_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, COLLECTION, methods_collection_new),
    M1("new", METHOD_BOTH | METHOD_NEW, COLLECTION, COLLECTION, methods_collection_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, COLLECTION, INT, methods_collection_new),
    M0("clone", METHOD_BOTH, DEF, methods_collection_copy),
};

static const struct method tree_set_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, TREE_SET, methods_collection_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, TREE_SET, COLLECTION, methods_collection_new),
    M1("new", METHOD_BOTH | METHOD_NEW, TREE_SET, COMPARATOR, methods_collection_new),
};

static const struct method iterator_methods[] = {
    M0("hasNext", METHOD_BOTH, BOOLEAN, iterator_has_next),
    M0("next", METHOD_BOTH, DEF, iterator_next),
    M0("remove", METHOD_BOTH, VOID, iterator_remove),
    M1("forEachRemaining", METHOD_BOTH, VOID, CONSUMER, iterator_for_each_remaining),
};

const struct method_table methods_collection[] = {
    METHOD_TABLE(ITERABLE, iterable_methods),
    METHOD_TABLE(SET, set_methods),
    METHOD_TABLE(COLLECTION, collection_methods),
    METHOD_TABLE(ARRAY_LIST, new_collection_methods),
    METHOD_TABLE(LINKED_LIST, new_collection_methods),
    METHOD_TABLE(ARRAY_DEQUE, new_collection_methods),
    METHOD_TABLE(HASH_SET, new_collection_methods),
    METHOD_TABLE(LINKED_HASH_SET, new_collection_methods),
    METHOD_TABLE(TREE_SET, tree_set_methods),
    METHOD_TABLE(ITERATOR, iterator_methods),
    {0, 0, NULL},
};
