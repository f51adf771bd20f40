/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on values whose types are known only at run time: a `def` in Painless, all values in Groovy.
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

/* Compares as == does: numbers by value. */
bool operate_equal(struct run *run, struct value a, struct value b, bool *ret);

/*
 * Calls Groovy's method for an operator on texts, lists, maps, sets and dates (operate_groovy.c).
 */
bool operate__groovy(struct run *run, enum operator op, struct value a, struct value b, struct value *ret);

/* Joins the texts of two values, one of which is a text: the operator +. Returns: false with a throwable. */
bool operate__concat(struct run *run, struct value a, struct value b, struct value *ret);

/* Compares any two values as Groovy's <=> does: numbers by value, texts, null first. */
bool operate_order(struct run *run, struct value a, struct value b, int *ret_order);

#endif
