/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on values whose types show only at run time: a `def` in Painless, everything in Groovy.
 */
#ifndef TL_SCRIPT_OPERATE_H
#define TL_SCRIPT_OPERATE_H

#include "script/syntax/node.h"

/* In the dialect of the run. */
bool operate_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret);
bool operate_negate(struct run *run, struct value v, struct value *ret);
bool operate_plus(struct run *run, struct value v, struct value *ret);
bool operate_invert(struct run *run, struct value v, struct value *ret);
bool operate_compare(struct run *run, enum comparison op, struct value a, struct value b, bool *ret);

/* Equality as == has it: numbers by value. */
bool operate_equal(struct run *run, struct value a, struct value b, bool *ret);

/* Groovy: the method behind an operator, for texts, lists, maps, sets and dates (operate_groovy.c). */
bool operate__groovy(struct run *run, enum operator op, struct value a, struct value b, struct value *ret);

/* Groovy's order of anything: numbers by value, texts, null first. */
bool operate_order(struct run *run, struct value a, struct value b, int *ret_order);

#endif
