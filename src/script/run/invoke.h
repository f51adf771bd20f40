/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that a library function was given: to decide, to count, to see an element.
 *
 * All return false when the function threw, or gave what does not serve.
 */
#ifndef TL_SCRIPT_INVOKE_H
#define TL_SCRIPT_INVOKE_H

#include "script/value/function.h"

/* Calls a function that decides: Painless wants a boolean, Groovy takes its truth. */
bool invoke_test(struct run *run, struct value function, struct value *arguments, unsigned count, bool *ret);
/* Calls a function that counts. */
bool invoke_number(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret);
/* Calls with an element; Groovy hands an entry's key and value to a closure with two parameters, else the entry. */
bool invoke_item(struct run *run, struct value function, struct value item, struct value *ret);
bool invoke_item_test(struct run *run, struct value function, struct value item, bool *ret);

#endif
