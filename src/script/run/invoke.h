/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that a script passed to a library function: predicates, functions to a number, consumers.
 *
 * All return false with a throwable when the function threw or its result has the wrong type.
 */
#ifndef TL_SCRIPT_INVOKE_H
#define TL_SCRIPT_INVOKE_H

#include "script/value/function.h"

/* Calls a predicate. Painless requires a boolean; Groovy takes the truth of the result. */
bool invoke_test(struct run *run, struct value function, struct value *arguments, unsigned count, bool *ret);
/* Calls a function whose result must be a number. */
bool invoke_number(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret);
/*
 * Calls with an element. Groovy passes key and value of an entry to a closure with two parameters,
 * else the entry.
 */
bool invoke_item(struct run *run, struct value function, struct value item, struct value *ret);
bool invoke_item_test(struct run *run, struct value function, struct value item, bool *ret);

#endif
