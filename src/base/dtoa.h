/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats floating-point numbers as Java's Double.toString() and Float.toString() do since Java 19
 * (earlier releases sometimes printed more digits than necessary).
 *
 *  1. The text reads back as the same number of the same type.
 *  2. It has the fewest digits for which that holds, but at least two (4.9E-324 instead of 5E-324).
 *     Among texts of that length it is the nearest to the number.
 *  3. From 10^-3 to below 10^7 it is plain, as 0.00123 or 123.0; otherwise it has an exponent, as
 *     1.23E10. Special values: 0.0, -0.0, Infinity, -Infinity, NaN.
 */
#ifndef TL_BASE_DTOA_H
#define TL_BASE_DTOA_H

#include <stddef.h>

enum { DTOA_TEXT_MAX = 32 };

/* Formats `value` into `out`, followed by a NUL. Returns: its length. */
size_t dtoa_double(double value, char out[DTOA_TEXT_MAX]);
size_t dtoa_float(float value, char out[DTOA_TEXT_MAX]);

#endif
