/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Number formatting by patterns of java.text.DecimalFormat: "0.00", "#,##0.#", "0.##E0", "0%",
 * "0;(0)". Elasticsearch uses them as `format` of numeric fields, too. Symbols are those of Java's root
 * locale: a point, a comma between groups, a hyphen.
 *
 *  1. Numbers are rounded half to even, by their exact value and not by their shortest decimal
 *     form. Digits beyond the shortest form are zeros; Java has some others there, of doubles from some 10^17 on: it
 *     prints 1e23 as 99999999999999990000000. With exponents the half of an integral double below 2^63 is rounded up.
 *  2. A pattern without a digit position shows the integer part after its text: "yyyy" of 5 is
 *     "yyyy5".
 *
 *  3. A number given by its digits (number_print_digits()) is exact.
 *
 * Scripts use them as java.text.DecimalFormat. A replay of scripts in commands before version 18 uses
 * script/library/old_decimal_format.h, with other results.
 */
#ifndef TL_BASE_NUMBER_FORMAT_H
#define TL_BASE_NUMBER_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define NUMBER_FORMAT_BYTES_MAX 256
/* Most digits of number_print_digits(), and the most and the negative of the least scale. */
#define NUMBER_DIGITS_MAX 1000000

enum { NUMBER_FORMAT_MALFORMED = 1 };

struct number_format;

/*
 * Compiles a pattern.
 * Returns: 0; NUMBER_FORMAT_MALFORMED with the reason in *ret_why.
 * Owns: the format and the reason are allocated in `arena`.
 */
int number_format_parse(struct arena *arena, struct slice pattern, const struct number_format **ret_format,
                        struct slice *ret_why) TL_MUST_USE;

/* Append a number in a format. */
void number_print_double(struct buf *buf, const struct number_format *format, double number);
void number_print_i64(struct buf *buf, const struct number_format *format, int64_t number);
/*
 * Appends digits / 10^scale exactly, or rounded half to even. The text has as many digits before the point as the
 * number. Requires: at least one digit, no sign, and no leading zero but for 0; NUMBER_DIGITS_MAX.
 */
void number_print_digits(struct buf *buf, const struct number_format *format, bool negative, struct slice digits,
                         int64_t scale);

#endif
