/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of real numbers, with the same bits on every processor.
 *
 * A script's outcome and a hit's score must not depend on the machine. libm's functions do: they choose other instructions on
 * other processors, and change from release to release. These are calculated in pairs of doubles (base/double_double.h) and rounded once,
 * so that the result is the double nearest to the exact one, but for one in a million at most; it is within 1 ulp in any case, as Java
 * asks of Math. What IEEE 754 defines to the bit needs no function here: sqrt, fma, floor, ceil, rint, trunc, fmod, remainder
 * and the like are libm's. tools/check-layers sees to it that the deterministic layers use no others.
 *
 * Special values are those of C's Annex F, which are Java's but for pow(±1, ±infinity) and pow(1, NaN).
 */
#ifndef TL_BASE_REAL_H
#define TL_BASE_REAL_H

double real_exp(double x);
double real_expm1(double x);
double real_log(double x);
double real_log10(double x);
double real_log1p(double x);
double real_pow(double x, double y);
double real_cbrt(double x);
double real_hypot(double x, double y);

double real_sin(double x);
double real_cos(double x);
double real_tan(double x);
double real_asin(double x);
double real_acos(double x);
double real_atan(double x);
/* The angle of the point (x, y), between -π and π. */
double real_atan2(double y, double x);

double real_sinh(double x);
double real_cosh(double x);
double real_tanh(double x);

#endif
