/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the methods of lists, sets and queues, and by Java's helper classes for them. */
#ifndef TL_SCRIPT_METHODS_COLLECTION_H
#define TL_SCRIPT_METHODS_COLLECTION_H

#include "script/library/method_args.h"

/* Starts an iteration over a collection. Returns: true; false with a throwable in the run if the
   value is not iterable. */
bool methods_collection_walk(struct run *run, struct iter *iter, struct value collection);

/* Adds an element to a list, a queue or a set; *ret_added is false if the set already has it. */
bool methods_collection_add_to(struct run *run, struct value collection, struct value item, bool *ret_added);

/* Finds whether an element equals `item`, by Java's equals. */
bool methods_collection_holds(struct run *run, struct value collection, struct value item, bool *ret);

/* Sorts a list in place; a null `comparator` means the elements' natural order. */
bool methods_list_sort(struct run *run, struct value list, struct value comparator);

/* Natives shared by several classes; see method_call. */
bool methods_collection_add(struct call *call, struct value *ret);
bool methods_collection_add_all(struct call *call, struct value *ret);
bool methods_collection_remove(struct call *call, struct value *ret);
bool methods_collection_is_empty(struct call *call, struct value *ret);
bool methods_collection_size(struct call *call, struct value *ret);
bool methods_collection_copy(struct call *call, struct value *ret);
bool methods_collection_for_each(struct call *call, struct value *ret);
bool methods_collection_new(struct call *call, struct value *ret);

/* Collections.reverseOrder: reverses the natural order, or the order of the comparator in
   args[0]. */
bool methods_utility_reverse_order(struct call *call, struct value *ret);

#endif
