/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs: numbers of about 100 bits, as the sum of two doubles (T. J. Dekker, "A floating-point technique for extending the
 * available precision", 1971).
 *
 * `hi` is the pair rounded to a double, `lo` what is left. Nothing here knows infinities or NaN, nor magnitudes that overflow or
 * whose `lo` would be subnormal: who calls scales first. Only additions, multiplications, divisions, square roots and fma() are
 * used, which IEEE 754 defines to the bit; no two of them may be contracted by the compiler (-ffp-contract=off).
 */
#ifndef TL_BASE_DOUBLE_DOUBLE_H
#define TL_BASE_DOUBLE_DOUBLE_H

#include <float.h>
#include <math.h>

_Static_assert(FLT_EVAL_METHOD == 0, "doubles are evaluated as doubles");

struct pair {
    double hi, lo;
};

/* The exact sum of two doubles of which the first is not the smaller. */
static inline struct pair pair_quick(double larger, double smaller)
{
    double sum = larger + smaller;
    return (struct pair){sum, smaller - (sum - larger)};
}

/* The exact sum of two doubles. */
static inline struct pair pair_sum(double a, double b)
{
    double sum = a + b, of_b = sum - a;
    return (struct pair){sum, (a - (sum - of_b)) + (b - of_b)};
}

/* The exact product of two doubles. */
static inline struct pair pair_product(double a, double b)
{
    double product = a * b;
    return (struct pair){product, fma(a, b, -product)};
}

static inline struct pair pair_negative(struct pair x)
{
    return (struct pair){-x.hi, -x.lo};
}

static inline struct pair pair_add(struct pair x, struct pair y)
{
    struct pair high = pair_sum(x.hi, y.hi), low = pair_sum(x.lo, y.lo);
    high = pair_quick(high.hi, high.lo + low.hi);
    return pair_quick(high.hi, high.lo + low.lo);
}

static inline struct pair pair_mul(struct pair x, struct pair y)
{
    struct pair product = pair_product(x.hi, y.hi);
    return pair_quick(product.hi, product.lo + (x.hi * y.lo + x.lo * y.hi));
}

static inline struct pair pair_div(struct pair x, struct pair y)
{
    double first = x.hi / y.hi;
    struct pair rest = pair_add(x, pair_negative(pair_mul(y, (struct pair){first, 0})));
    double second = rest.hi / y.hi;
    rest = pair_add(rest, pair_negative(pair_mul(y, (struct pair){second, 0})));
    return pair_add(pair_quick(first, second), (struct pair){rest.hi / y.hi, 0});
}

static inline struct pair pair_over(struct pair x, double divisor)
{
    double quotient = x.hi / divisor;
    return pair_quick(quotient, (fma(-quotient, divisor, x.hi) + x.lo) / divisor);
}

/* The square root of what is not negative. */
static inline struct pair pair_sqrt(struct pair x)
{
    if (x.hi <= 0)
        return (struct pair){0, 0};
    double root = sqrt(x.hi);
    struct pair rest = pair_add(x, pair_negative(pair_product(root, root)));
    return pair_quick(root, rest.hi / (2 * root));
}

#endif
