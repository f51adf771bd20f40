/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double-double arithmetic: numbers with about 100 bits of precision, as the unevaluated sum of two
 * doubles (T. J. Dekker, "A floating-point technique for extending the available precision", 1971).
 *
 * Infinities, NaN, overflow and a subnormal `lo` are not handled; callers scale their arguments.
 * Only addition, multiplication, division, square root and fma() are used, which IEEE 754 defines
 * exactly. The compiler must not contract them (-ffp-contract=off).
 */
#ifndef TL_BASE_DOUBLE_DOUBLE_H
#define TL_BASE_DOUBLE_DOUBLE_H

#include <float.h>
#include <math.h>

_Static_assert(FLT_EVAL_METHOD == 0, "doubles are evaluated as doubles");

/* The number hi + lo; `hi` is that number rounded to a double. */
struct dd {
    double hi, lo;
};

/* Returns: the exact sum of two doubles. Assumes: |larger| >= |smaller|. */
static inline struct dd dd_fast_two_sum(double larger, double smaller)
{
    double sum = larger + smaller;
    return (struct dd){sum, smaller - (sum - larger)};
}

/* Returns: the exact sum of two doubles. */
static inline struct dd dd_two_sum(double a, double b)
{
    double sum = a + b, of_b = sum - a;
    return (struct dd){sum, (a - (sum - of_b)) + (b - of_b)};
}

/* Returns: the exact product of two doubles. */
static inline struct dd dd_two_product(double a, double b)
{
    double product = a * b;
    return (struct dd){product, fma(a, b, -product)};
}

static inline struct dd dd_neg(struct dd x)
{
    return (struct dd){-x.hi, -x.lo};
}

static inline struct dd dd_add(struct dd x, struct dd y)
{
    struct dd high = dd_two_sum(x.hi, y.hi), low = dd_two_sum(x.lo, y.lo);
    high = dd_fast_two_sum(high.hi, high.lo + low.hi);
    return dd_fast_two_sum(high.hi, high.lo + low.lo);
}

static inline struct dd dd_mul(struct dd x, struct dd y)
{
    struct dd product = dd_two_product(x.hi, y.hi);
    return dd_fast_two_sum(product.hi, product.lo + (x.hi * y.lo + x.lo * y.hi));
}

static inline struct dd dd_div(struct dd x, struct dd y)
{
    double first = x.hi / y.hi;
    struct dd rest = dd_add(x, dd_neg(dd_mul(y, (struct dd){first, 0})));
    double second = rest.hi / y.hi;
    rest = dd_add(rest, dd_neg(dd_mul(y, (struct dd){second, 0})));
    return dd_add(dd_fast_two_sum(first, second), (struct dd){rest.hi / y.hi, 0});
}

static inline struct dd dd_div_double(struct dd x, double divisor)
{
    double quotient = x.hi / divisor;
    return dd_fast_two_sum(quotient, (fma(-quotient, divisor, x.hi) + x.lo) / divisor);
}

/* Returns: the square root; 0 for numbers below 0. */
static inline struct dd dd_sqrt(struct dd x)
{
    if (x.hi <= 0)
        return (struct dd){0, 0};
    double root = sqrt(x.hi);
    struct dd rest = dd_add(x, dd_neg(dd_two_product(root, root)));
    return dd_fast_two_sum(root, rest.hi / (2 * root));
}

#endif
