/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions with bit-identical results on every processor.
 *
 * The result of a script and the score of a hit must not depend on the host. Those of libm do: it
 * selects instructions by processor, and changes between releases. The functions here calculate in
 * double-double arithmetic (base/double_double.h) and round once. Their result is correctly
 * rounded, except for at most one argument in a million; the error is always within 1 ulp, as Java
 * requires of Math.
 *
 * Functions that IEEE 754 defines exactly are not here: sqrt, fma, floor, ceil, rint, trunc, fmod,
 * remainder and the like are used from libm. tools/check-layers permits the deterministic layers no
 * others.
 *
 * Special values are those of Annex F of C. They equal Java's, except for pow(±1, ±infinity) and
 * pow(1, NaN).
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
/* Returns: the angle of the point (x, y), from -π to π. */
double real_atan2(double y, double x);

double real_sinh(double x);
double real_cosh(double x);
double real_tanh(double x);

#endif
