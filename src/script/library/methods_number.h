/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the methods of numbers and booleans. */
#ifndef TL_SCRIPT_METHODS_NUMBER_H
#define TL_SCRIPT_METHODS_NUMBER_H

#include "script/library/method_args.h"

/* Throws Java's NumberFormatException for a text, which may be null. Returns: false. */
bool methods_number_parse_failed(struct run *run, struct value text, unsigned radix);

/* The native of compareTo, of numbers and any other Comparable. */
bool methods_number_compare_to(struct call *call, struct value *ret);

/* Natives of static methods, see method_call: Integer.valueOf, Double.toString, Long.compare and
   similar ones. */
bool methods_number_value_of(struct call *call, struct value *ret);
bool methods_number_to_string(struct call *call, struct value *ret);
bool methods_number_compare(struct call *call, struct value *ret);
bool methods_number_hash(struct call *call, struct value *ret);
bool methods_number_sum(struct call *call, struct value *ret);

/* Math's max and min of doubles, then (_larger, _smaller) of any numbers; the latter results
   have the wider class of the two. */
bool methods_math_max(struct call *call, struct value *ret);
bool methods_math_min(struct call *call, struct value *ret);
bool methods_math_larger(struct call *call, struct value *ret);
bool methods_math_smaller(struct call *call, struct value *ret);

#endif
