/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of Groovy's own methods share: walks over anything, closures called with an element, collections
 * like a given one, orders and equality as Groovy's library has them.
 *
 * Groovy adds methods to Java's classes. Most take any object: what is no collection is a collection of itself, and
 * null is one of nothing.
 */
#ifndef TL_SCRIPT_METHODS_GROOVY_H
#define TL_SCRIPT_METHODS_GROOVY_H

#include "script/run/convert.h"
#include "script/run/interp.h"
#include "script/library/method_args.h"
#include "script/run/operate.h"

/* Starts a walk over anything. Returns: false and a throwable only when the elements had to be made and could not. */
bool groovy_walk(struct run *run, struct iter *iter, struct value self);

/* Calls a closure with an element of `self`; a map's closure with two parameters gets key and value. */
bool groovy_call_item(struct run *run, struct value self, struct value function, struct value item, struct value *ret);
bool groovy_test_item(struct run *run, struct value self, struct value function, struct value item, bool *ret);

/* A new list or set for a result made of elements of `self`. */
struct value groovy_similar(struct run *run, struct value self);
bool groovy_add(struct run *run, struct value collection, struct value item);
/* Adds the elements of what is a collection or an array, else the value itself. */
bool groovy_add_all(struct run *run, struct value collection, struct value items);
/* Makes these elements the only ones of a list or set. */
bool groovy_refill(struct run *run, struct value collection, const struct value *items, size_t count);

/* A comparator for values_sort and for looking for extremes; null: Groovy's order of anything. */
struct value groovy_comparator(struct run *run, struct value function);
bool groovy_order(struct run *run, struct value comparator, struct value a, struct value b, int *ret_order);

/* The closure's key or, without a closure, the element. */
bool groovy_key(struct call *call, struct value item, struct value *ret);
/* countBy over what `iter` walks: a map from key to how many elements have it. */
bool groovy_count_by(struct call *call, struct iter *iter, struct value *ret);

/* A map's value; null where it has none, or what Groovy's withDefault makes for the key. */
bool groovy_map_get(struct run *run, struct dict *dict, struct value key, struct value *ret);

/* Text that shows strings in quotes: inspect(), and messages. */
bool groovy_inspect(struct run *run, struct value v, struct text_buf *out);

/* Elements by a range or a list of indexes, from the end where negative: lists, arrays and texts. */
bool groovy_slice(struct run *run, struct value self, struct value indexes, struct value *ret);
/* Replaces what a range covers by a value or the elements of a collection. */
bool groovy_set_slice(struct run *run, struct value self, struct value indexes, struct value value);
/* Turns a negative index around. Returns: false and a throwable when it is still negative. */
bool groovy_index(struct run *run, int64_t index, size_t count, int64_t *ret_index);

#endif
