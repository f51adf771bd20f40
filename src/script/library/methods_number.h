/* SPDX-License-Identifier: Apache-2.0 */
/* What methods of numbers and booleans share, whatever the class. */
#ifndef TL_SCRIPT_METHODS_NUMBER_H
#define TL_SCRIPT_METHODS_NUMBER_H

#include "script/library/method_args.h"

/* Defines the getter of a constant, constant_NAME. */
#define METHOD_CONSTANT(name, made)                                                              \
    static bool constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                            \
        (void)run, (void)a, (void)n;                                                             \
        *ret = made;                                                                             \
        return true;                                                                             \
    }

/* Throws that a text, which may be null, is no number. Returns: false. */
bool methods_number_parse_failed(struct run *run, struct value text, unsigned radix);

/* compareTo of any number or other Comparable. */
bool methods_number_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret);

/* Statics, see method_call: Integer.valueOf, Double.toString, Long.compare and the like. */
bool methods_number_value_of(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_number_to_string(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_number_compare(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_number_hash(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_number_sum(struct run *run, struct value *a, unsigned n, struct value *ret);

/* Math's max and min, of doubles and of integers; the result has the wider class of the two. */
bool methods_math_max(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_math_min(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_math_larger(struct run *run, struct value *a, unsigned n, struct value *ret);
bool methods_math_smaller(struct run *run, struct value *a, unsigned n, struct value *ret);

#endif
