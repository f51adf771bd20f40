/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digits: floating-point numbers as text, as Double.toString() and Float.toString() of Java are specified to print them (since Java 19;
 * those before sometimes printed more digits than are needed).
 *
 *  1. What is printed reads back as the same number, of the same type.
 *  2. No text with fewer digits does, and of those with as many it is the one nearest to the number; but there are two digits at least
 *     (4.9E-324, where 5E-324 would do).
 *  3. From 10^-3 up to 10^7 it is plain, 0.00123 or 123.0, elsewhere 1.23E10; 0.0, -0.0, Infinity, -Infinity, NaN.
 */
#ifndef TL_BASE_DTOA_H
#define TL_BASE_DTOA_H

#include <stddef.h>

enum { DTOA_TEXT_MAX = 32 };

/* Returns: the length of what is in `out`, which ends in a NUL. */
size_t dtoa_double(double value, char out[DTOA_TEXT_MAX]);
size_t dtoa_float(float value, char out[DTOA_TEXT_MAX]);

#endif
