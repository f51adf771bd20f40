/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: Java's arithmetic on values, its conversions, and how it writes them.
 */
#ifndef TL_SCRIPT_NUMBER_H
#define TL_SCRIPT_NUMBER_H

#include "script/value/big.h"

enum operator{
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_REM,
    OP_SHL,
    OP_SHR,
    OP_USHR,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_POW,
    OP_COUNT
};

/* "+"; "addition", Painless's name. */
const char *operator_symbol(enum operator op);
const char *operator_name(enum operator op);

/* Java's conversions: narrowing wraps, floating to integral saturates, NaN is 0. */
int64_t number_to_i64(struct value v);
int32_t number_to_i32(struct value v);
double number_to_double(struct run *run, struct value v);
int64_t double_to_i64(double d);
int32_t double_to_i32(double d);
/* To one of the primitive kinds; from a primitive other than boolean, or a big number. */
struct value number_cast(struct run *run, struct value v, enum value_kind kind);

/* As Painless computes with a `def` or a primitive; both are numbers (char among them). */
bool number_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret);
/*
 * As Groovy: inexact division yields a decimal; integers overflow unless an operand is a big
 * integer.
 */
bool number_binary_groovy(struct run *run, enum operator op, struct value a, struct value b, struct value *ret);

/* Throws Groovy's error for a method that only integers have. Returns: false. */
bool number_not_on_fractions(struct run *run, const char *method, struct value v);

/* Compares by value across classes; NaN is greater than all other numbers. */
int number_compare(struct run *run, struct value a, struct value b);
/* By value, but NaN equals nothing: Painless's and Java's == on primitives. */
bool number_equal(struct run *run, struct value a, struct value b);

/* Java's parseInt and so on. Return: false, without a throwable, if the text is not a number. */
bool number_parse_i64(struct slice text, unsigned radix, int64_t min, int64_t max, int64_t *ret_value);
bool number_parse_double(struct slice text, double *ret_value);

int32_t number_hash(struct value v);
struct decimal *number_to_decimal(struct run *run, struct value v);
struct big *number_to_big(struct run *run, struct value v);

#endif
