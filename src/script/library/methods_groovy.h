/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of Groovy's own methods: iteration over any object, closures called with an
 * element, collections of the receiver's kind, Groovy's order and equality.
 *
 * Groovy adds methods to Java's classes. Most of them accept any object: an object that is not a
 * collection is treated as a collection of itself, and null as an empty one.
 */
#ifndef TL_SCRIPT_METHODS_GROOVY_H
#define TL_SCRIPT_METHODS_GROOVY_H

#include "script/run/convert.h"
#include "script/run/interp.h"
#include "script/library/method_args.h"
#include "script/run/operate.h"

/* Starts an iteration over any object. Returns: true; false with a throwable in the run if a
   list of the elements had to be made and could not. */
bool groovy_walk(struct run *run, struct iter *iter, struct value self);

/* Calls a closure with an element of `self`. For a map, a closure with two parameters gets key
   and value. */
bool groovy_call_item(struct run *run, struct value self, struct value function, struct value item, struct value *ret);
bool groovy_test_item(struct run *run, struct value self, struct value function, struct value item, bool *ret);

/* Returns: a new, empty list or set for a result made of elements of `self`; it has the same
   kind. */
struct value groovy_similar(struct run *run, struct value self);
bool groovy_add(struct run *run, struct value collection, struct value item);
/* Adds the elements of a collection or an array; any other value is added itself. */
bool groovy_add_all(struct run *run, struct value collection, struct value items);
/* Replaces the contents of a list or set by these elements. */
bool groovy_refill(struct run *run, struct value collection, const struct value *items, size_t count);

/* Returns: a comparator for values_sort and for minimum and maximum; a null `function` means
   Groovy's order, which is defined for any values. */
struct value groovy_comparator(struct run *run, struct value function);
bool groovy_order(struct run *run, struct value comparator, struct value a, struct value b, int *ret_order);

/* Gives the closure's result for the element or, without a closure, the element itself. */
bool groovy_key(struct call *call, struct value item, struct value *ret);
/* Implements countBy over `iter`: gives a map from key to the number of elements with that key. */
bool groovy_count_by(struct call *call, struct iter *iter, struct value *ret);

/* Gives a map's value for a key. A missing key gives null; in a map made by withDefault, the
   closure's value, which is stored. */
bool groovy_map_get(struct run *run, struct dict *dict, struct value key, struct value *ret);

/* Writes a value with strings in quotes, for inspect() and messages. */
bool groovy_inspect(struct run *run, struct value v, struct text_buf *out);

/* Gives the elements of a list, an array or a string at a range or at a list of indexes;
   negative indexes count from the end. */
bool groovy_slice(struct run *run, struct value self, struct value indexes, struct value *ret);
/* Replaces the elements in a range by a value or by the elements of a collection; with a list of
   indexes, sets each of them. */
bool groovy_set_slice(struct run *run, struct value self, struct value indexes, struct value value);
/* Converts an index that may be negative, counted from the end. Returns: true; false with a
   throwable in the run if it is before the first element. */
bool groovy_index(struct run *run, int64_t index, size_t count, int64_t *ret_index);

#endif
