/* SPDX-License-Identifier: Apache-2.0 */
/* What methods of numbers and booleans share, whatever the class. */
#ifndef TL_SCRIPT_METHODS_NUMBER_H
#define TL_SCRIPT_METHODS_NUMBER_H

#include "script/library/method_args.h"

/* Throws that a text, which may be null, is no number. Returns: false. */
bool methods_number_parse_failed(struct run *run, struct value text, unsigned radix);

/* compareTo of any number or other Comparable. */
bool methods_number_compare_to(struct call *call, struct value *ret);

/* Statics, see method_call: Integer.valueOf, Double.toString, Long.compare and the like. */
bool methods_number_value_of(struct call *call, struct value *ret);
bool methods_number_to_string(struct call *call, struct value *ret);
bool methods_number_compare(struct call *call, struct value *ret);
bool methods_number_hash(struct call *call, struct value *ret);
bool methods_number_sum(struct call *call, struct value *ret);

/* Math's max and min, of doubles and of integers; the result has the wider class of the two. */
bool methods_math_max(struct call *call, struct value *ret);
bool methods_math_min(struct call *call, struct value *ret);
bool methods_math_larger(struct call *call, struct value *ret);
bool methods_math_smaller(struct call *call, struct value *ret);

#endif
