/* SPDX-License-Identifier: Apache-2.0 */
/* What methods of collections share, whatever the class: lists, sets, queues, and Java's helpers for them. */
#ifndef TL_SCRIPT_METHODS_COLLECTION_H
#define TL_SCRIPT_METHODS_COLLECTION_H

#include "script/library/method_args.h"

/* Starts a walk over a collection. Returns: false and a throwable when it is none. */
bool methods_collection_walk(struct run *run, struct iter *iter, struct value collection);

/* Adds to a list, a queue or a set; *ret_added is false for what a set has already. */
bool methods_collection_add_to(struct run *run, struct value collection, struct value item, bool *ret_added);

/* Whether an element equals `item`, as Java's equals. */
bool methods_collection_holds(struct run *run, struct value collection, struct value item, bool *ret);

/* Sorts a list in place; `comparator` is null for the elements' own order. */
bool methods_list_sort(struct run *run, struct value list, struct value comparator);

/* Methods that more than one class has; see method_call. */
bool methods_collection_add(struct call *call, struct value *ret);
bool methods_collection_add_all(struct call *call, struct value *ret);
bool methods_collection_remove(struct call *call, struct value *ret);
bool methods_collection_is_empty(struct call *call, struct value *ret);
bool methods_collection_size(struct call *call, struct value *ret);
bool methods_collection_copy(struct call *call, struct value *ret);
bool methods_collection_for_each(struct call *call, struct value *ret);
bool methods_collection_new(struct call *call, struct value *ret);

/* Collections.reverseOrder: the natural order turned round, or that of the comparator a[1]. */
bool methods_utility_reverse_order(struct call *call, struct value *ret);

#endif
