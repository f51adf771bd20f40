/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of real numbers.
 *
 * Each takes its argument into a small interval, sums a series there in pairs of doubles, goes back, and rounds once:
 *
 * - exp(x) = 2^k exp(r), where x = k ln 2 + r and |r| <= ln 2 / 2; the hyperbolic functions are made of it;
 * - log(2^k m) = k ln 2 + 2 artanh((m - 1) / (m + 1)), where m is near 1; pow(x, y) = exp(y log x);
 * - sin, cos and tan take x modulo π/2. For that the bits of 2/π that matter are multiplied by x as whole numbers (M. H. Payne
 *   and R. N. Hanek, "Radian reduction for trigonometric functions", 1983), for all sizes of x;
 * - atan(z) = 8 atan(z'), where z' is z after three times z / (1 + sqrt(1 + z²)); asin and acos are angles of points.
 *
 * The last terms of a series, which weigh less than 2^-30 of it, are summed in plain doubles: what is lost is below 2^-80.
 */
#include "base/real.h"
#include "base/double_double.h"

#include <stdbool.h>
#include <stdint.h>

static const struct pair ONE = {1, 0};
static const struct pair PI = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
static const struct pair HALF_PI = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const struct pair LN_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const struct pair ONE_OVER_LN_10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

/* Below this, f(x) is x to the last bit where f(x) = x + O(x²). */
#define TINY 0x1p-60

/* --- Pairs and their series --------------------------------------------------------------------------------------- */

static struct pair of(double x)
{
    return (struct pair){x, 0};
}

static struct pair scale(struct pair x, int exponent)
{
    return (struct pair){ldexp(x.hi, exponent), ldexp(x.lo, exponent)};
}

/* x 2^exponent, rounded once, where it is subnormal, too. */
static double rounded(struct pair x, int exponent)
{
    if (x.hi == 0 || ilogb(x.hi) + exponent >= -1022)
        return ldexp(x.hi, exponent);
    if (ilogb(x.hi) + exponent < -1080)
        return copysign(0, x.hi);
    /* A number whose last bit weighs as much as the smallest double will, and whose sign is that of x. */
    double grid = copysign(ldexp(1, 52 - 1074 - exponent), x.hi);
    struct pair sum = pair_sum(grid, x.hi);
    return ldexp((sum.hi + (sum.lo + x.lo)) - grid, exponent);
}

/* 1 + x + x²/2! + x³/3! + … for |x| <= 0.35. */
static struct pair exponential_series(struct pair x)
{
    double tail = 1;
    for (int n = 22; n > 9; n--)
        tail = 1 + tail * x.hi / n;
    struct pair sum = of(tail);
    for (int n = 9; n > 0; n--)
        sum = pair_add(ONE, pair_over(pair_mul(sum, x), n));
    return sum;
}

/* 1 + u / (2 or 6) + …: the sum of first! u^k / (2k + first)! for |u| <= 0.62; cos, cosh are those of first = 0, sin and sinh over
   their argument those of first = 1. */
static struct pair factorial_series(struct pair u, int first)
{
    double tail = 1;
    for (int k = 14; k > 6; k--)
        tail = 1 + tail * u.hi / ((2 * k + first) * (2 * k + first - 1));
    struct pair sum = of(tail);
    for (int k = 6; k > 0; k--)
        sum = pair_add(ONE, pair_over(pair_mul(sum, u), (2 * k + first) * (2 * k + first - 1)));
    return sum;
}

/* 1 + u/3 + u²/5 + … for |u| <= 0.03; artanh(x) / x is that of x², atan(x) / x that of -x². */
static struct pair odd_series(struct pair u)
{
    double tail = 0;
    for (int k = 20; k > 6; k--)
        tail = (tail + 1.0 / (2 * k + 1)) * u.hi;
    struct pair sum = of(tail);
    for (int k = 6; k > 0; k--)
        sum = pair_mul(pair_add(sum, pair_over(ONE, 2 * k + 1)), u);
    return pair_add(sum, ONE);
}

/* --- Exponentials ------------------------------------------------------------------------------------------------- */

/* exp(x) as a pair between 0.7 and 1.5 and an exponent, for |x| < 10000. */
static struct pair exponential(struct pair x, int *ret_exponent)
{
    double k = rint(x.hi / LN_2.hi);
    struct pair r = pair_add(x, pair_product(-k, LN_2.hi));
    r = pair_add(r, of(-k * LN_2.lo));
    *ret_exponent = (int)k;
    return exponential_series(r);
}

double real_exp(double x)
{
    if (isnan(x) || x > 710)
        return isnan(x) ? x : INFINITY;
    if (x < -746)
        return 0;
    int exponent;
    struct pair e = exponential(of(x), &exponent);
    return rounded(e, exponent);
}

/* sinh(x) for |x| <= 0.5. */
static struct pair small_sinh(struct pair x)
{
    return pair_mul(x, factorial_series(pair_mul(x, x), 1));
}

double real_expm1(double x)
{
    if (isnan(x) || fabs(x) < TINY || x > 710)
        return x > 710 ? INFINITY : x;
    if (x < -50)
        return -1;
    int exponent;
    if (fabs(x) < 1) { /* exp(x) - 1 = 2 sinh(x/2) exp(x/2) loses no bits where they are nearly equal */
        struct pair half = of(x / 2), e = exponential(half, &exponent);
        return pair_mul(small_sinh(half), scale(e, exponent + 1)).hi;
    }
    struct pair e = exponential(of(x), &exponent);
    return exponent > 120 ? rounded(e, exponent) : pair_add(scale(e, exponent), of(-1)).hi;
}

/* exp(x)/2 ± exp(-x)/2 for 0 <= x <= 711. */
static double half_exponentials(double x, double sign)
{
    int exponent;
    struct pair e = exponential(of(x), &exponent);
    if (exponent > 60)
        return rounded(e, exponent - 1);
    e = scale(e, exponent);
    return pair_add(e, pair_mul(of(sign), pair_div(ONE, e))).hi / 2;
}

double real_sinh(double x)
{
    if (isnan(x) || fabs(x) < TINY || fabs(x) > 711)
        return fabs(x) > 711 ? copysign(INFINITY, x) : x;
    return fabs(x) < 0.5 ? small_sinh(of(x)).hi : copysign(half_exponentials(fabs(x), -1), x);
}

double real_cosh(double x)
{
    if (isnan(x) || fabs(x) > 711)
        return isnan(x) ? x : INFINITY;
    return half_exponentials(fabs(x), 1);
}

double real_tanh(double x)
{
    if (isnan(x) || fabs(x) < TINY || fabs(x) > 20)
        return fabs(x) > 20 ? copysign(1, x) : x;
    if (fabs(x) < 0.5)
        return pair_div(small_sinh(of(x)), factorial_series(pair_product(x, x), 0)).hi;
    int exponent;
    struct pair e = exponential(of(2 * fabs(x)), &exponent);
    struct pair below_one = pair_div(of(2), pair_add(scale(e, exponent), ONE));
    return copysign(pair_add(ONE, pair_negative(below_one)).hi, x);
}

/* --- Logarithms --------------------------------------------------------------------------------------------------- */

/* The logarithm of what is above 0. */
static struct pair logarithm(struct pair x)
{
    int exponent;
    if (frexp(x.hi, &exponent) < M_SQRT1_2)
        exponent--;
    struct pair m = scale(x, -exponent);
    struct pair s = pair_div(pair_add(m, of(-1)), pair_add(m, ONE));
    struct pair log_m = pair_mul(pair_mul(of(2), s), odd_series(pair_mul(s, s)));
    return exponent == 0 ? log_m : pair_add(pair_mul(of(exponent), LN_2), log_m);
}

/* Whether a logarithm of x is given without calculating. */
static bool has_plain_log(double x, double *ret_log)
{
    *ret_log = isnan(x) || x > DBL_MAX ? x : x < 0 ? NAN : -INFINITY;
    return !(x > 0 && x <= DBL_MAX);
}

double real_log(double x)
{
    double plain;
    return has_plain_log(x, &plain) ? plain : logarithm(of(x)).hi;
}

double real_log10(double x)
{
    double plain;
    return has_plain_log(x, &plain) ? plain : pair_mul(logarithm(of(x)), ONE_OVER_LN_10).hi;
}

double real_log1p(double x)
{
    double plain;
    if (fabs(x) < TINY)
        return x;
    return has_plain_log(1 + x, &plain) ? plain : logarithm(pair_sum(1, x)).hi;
}

/* --- Powers and roots --------------------------------------------------------------------------------------------- */

static bool is_whole(double x)
{
    return isinf(x) || floor(x) == x;
}

static bool is_odd(double x)
{
    return fabs(x) < 0x1p53 && fabs(fmod(x, 2)) == 1;
}

/* Powers of 0 and infinity, and with infinity; `grows` says whether the magnitude goes to infinity, else it goes to 0. */
static double power_at_the_edge(double x, double y)
{
    if (isinf(y) && fabs(x) == 1)
        return 1;
    bool grows = isinf(y) ? (fabs(x) > 1) == (y > 0) : (x != 0) == (y > 0);
    return copysign(grows ? INFINITY : 0, signbit(x) && is_odd(y) ? -1 : 1);
}

double real_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (isnan(x) || isnan(y) || (x < 0 && !isinf(x) && !is_whole(y)))
        return NAN;
    if (x == 0 || isinf(x) || isinf(y))
        return power_at_the_edge(x, y);
    if (y == 1 || y == 2)
        return y == 1 ? x : x * x;
    double sign = x < 0 && is_odd(y) ? -1 : 1;
    struct pair log_x = logarithm(of(fabs(x)));
    if (fabs(log_x.hi * y) > 1000) /* an infinite product, too */
        return sign * ((log_x.hi > 0) == (y > 0) ? INFINITY : 0);
    if (fabs(log_x.hi * y) < TINY)
        return sign;
    int exponent;
    struct pair power = exponential(pair_mul(log_x, of(y)), &exponent);
    return sign * rounded(power, exponent);
}

double real_cbrt(double x)
{
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    int exponent;
    double m = frexp(fabs(x), &exponent); /* x = m 8^(exponent / 3), and 0.5 <= m < 4 */
    int over = (exponent % 3 + 3) % 3;
    m = ldexp(m, over);
    double root = 1;
    for (int i = 0; i < 7; i++) /* Newton's steps double the bits that are right */
        root -= (root * root * root - m) / (3 * root * root);
    struct pair cube = pair_mul(pair_product(root, root), of(root));
    struct pair off = pair_add(cube, of(-m));
    return copysign(ldexp(pair_quick(root, -off.hi / (3 * root * root)).hi, (exponent - over) / 3), x);
}

double real_hypot(double x, double y)
{
    if (isinf(x) || isinf(y))
        return INFINITY;
    if (isnan(x) || isnan(y))
        return NAN;
    double larger = fabs(x) > fabs(y) ? fabs(x) : fabs(y), smaller = fabs(x) > fabs(y) ? fabs(y) : fabs(x);
    if (smaller <= larger * TINY)
        return larger;
    int exponent;
    larger = frexp(larger, &exponent);
    smaller = ldexp(smaller, -exponent);
    struct pair sum = pair_add(pair_product(larger, larger), pair_product(smaller, smaller));
    return rounded(pair_sqrt(sum), exponent);
}

/* --- Angles ------------------------------------------------------------------------------------------------------- */

/* The first 1,280 bits of 2/π. */
static const uint64_t TWO_OVER_PI[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* 64 bits of 2/π, beginning with that of weight 2^-position; those before the point are 0. */
static uint64_t bits_of_two_over_pi(int position)
{
    int shift = position - 1, word = shift >> 6, bit = shift & 63;
    uint64_t first = word >= 0 ? TWO_OVER_PI[word] : 0, second = word + 1 >= 0 ? TWO_OVER_PI[word + 1] : 0;
    return bit == 0 ? first : first << bit | second >> (64 - bit);
}

/* The 256 bits in `words`, the most significant first, over 2^256, as a pair. They are not all 0. */
static struct pair fraction_of(uint64_t words[4])
{
    int zeros = 0;
    while (words[0] == 0) {
        words[0] = words[1], words[1] = words[2], words[2] = words[3], words[3] = 0;
        zeros += 64;
    }
    int shift = __builtin_clzll(words[0]);
    if (shift > 0) {
        words[0] = words[0] << shift | words[1] >> (64 - shift);
        words[1] = words[1] << shift | words[2] >> (64 - shift);
    }
    double high = (double)(words[0] >> 11), middle = (double)((words[0] & 0x7ff) << 42 | words[1] >> 22);
    return scale(pair_quick(high, ldexp(middle, -53)), -53 - zeros - shift);
}

/* Takes x, whose magnitude is above π/4, modulo π/2. Ensures: |*ret_rest| <= π/4, and x = quadrant π/2 + *ret_rest, modulo 2π. */
static unsigned reduce(double x, struct pair *ret_rest)
{
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53), words[4]; /* x = m 2^(exponent - 53) */
    int position = exponent - 53 - 1; /* bits before this one make multiples of 4 of m 2^(exponent - 53) */
    uint64_t carry = 0;
    for (int i = 3; i >= 0; i--) {
        unsigned __int128 product = (unsigned __int128)m * bits_of_two_over_pi(position + 64 * i) + carry;
        words[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    /* words are x 2/π modulo 4, over 4. */
    unsigned quadrant = (unsigned)(words[0] >> 62);
    bool up = (words[0] >> 61 & 1) != 0; /* the next quadrant is nearer, from above */
    words[0] = words[0] << 2 | words[1] >> 62, words[1] = words[1] << 2 | words[2] >> 62;
    words[2] = words[2] << 2 | words[3] >> 62, words[3] <<= 2;
    for (int i = 0; up && i < 4; i++) /* minus 1, but for one in the last place, which is beyond what a pair can hold */
        words[i] = ~words[i];
    struct pair rest = pair_mul(fraction_of(words), HALF_PI);
    *ret_rest = up == (x < 0) ? rest : pair_negative(rest);
    quadrant += up;
    return (x < 0 ? 4 - quadrant : quadrant) & 3;
}

static struct pair sine(struct pair r)
{
    return pair_mul(r, factorial_series(pair_negative(pair_mul(r, r)), 1));
}

static struct pair cosine(struct pair r)
{
    return factorial_series(pair_negative(pair_mul(r, r)), 0);
}

/* The sine of x + quarters π/2. */
static double shifted_sine(double x, unsigned quarters)
{
    if (isnan(x) || isinf(x))
        return NAN;
    struct pair r = of(x);
    if (fabs(x) > M_PI_4)
        quarters += reduce(x, &r);
    struct pair s = quarters & 1 ? cosine(r) : sine(r);
    return quarters & 2 ? -s.hi : s.hi;
}

double real_sin(double x)
{
    return fabs(x) < TINY ? x : shifted_sine(x, 0);
}

double real_cos(double x)
{
    return shifted_sine(x, 1);
}

double real_tan(double x)
{
    if (isnan(x) || isinf(x) || fabs(x) < TINY)
        return isinf(x) ? NAN : x;
    struct pair r = of(x);
    unsigned quadrant = fabs(x) > M_PI_4 ? reduce(x, &r) : 0;
    struct pair s = sine(r), c = cosine(r);
    return quadrant & 1 ? -pair_div(c, s).hi : pair_div(s, c).hi;
}

/* The angle whose tangent is z, for 0 <= z <= 1. */
static struct pair angle_of_tangent(struct pair z)
{
    for (int i = 0; i < 3; i++)
        z = pair_div(z, pair_add(ONE, pair_sqrt(pair_add(ONE, pair_mul(z, z)))));
    return pair_mul(scale(z, 3), odd_series(pair_negative(pair_mul(z, z))));
}

/* The angle of the point (x, y) for y >= 0, where neither is so much smaller than the other that it does not matter. */
static double angle(struct pair y, struct pair x)
{
    struct pair width = x.hi < 0 ? pair_negative(x) : x;
    bool steep = y.hi > width.hi;
    struct pair t = steep ? angle_of_tangent(pair_div(width, y)) : angle_of_tangent(pair_div(y, width));
    if (steep)
        t = pair_add(HALF_PI, pair_negative(t));
    return (x.hi < 0 ? pair_add(PI, pair_negative(t)) : t).hi;
}

double real_atan2(double y, double x)
{
    if (isnan(x) || isnan(y))
        return NAN;
    if (isinf(x) && isinf(y))
        return copysign(x > 0 ? M_PI_4 : (pair_add(PI, pair_negative(scale(HALF_PI, -1)))).hi, y);
    if (y == 0 || isinf(x) || fabs(y) < fabs(x) * TINY) /* the quotient of two numbers above 0 is rounded once, too */
        return signbit(x) ? copysign(PI.hi, y) : y == 0 || isinf(x) ? copysign(0, y) : y / x;
    if (isinf(y) || fabs(x) < fabs(y) * TINY)
        return copysign(HALF_PI.hi, y);
    int exponent;
    frexp(fabs(x) > fabs(y) ? x : y, &exponent);
    return copysign(angle(of(ldexp(fabs(y), -exponent)), of(ldexp(x, -exponent))), y);
}

double real_atan(double x)
{
    return fabs(x) < TINY ? x : real_atan2(x, 1);
}

/* The square root of 1 - x². */
static struct pair other_leg(double x)
{
    return pair_sqrt(pair_mul(pair_sum(1, -x), pair_sum(1, x)));
}

double real_asin(double x)
{
    if (!(fabs(x) <= 1))
        return NAN;
    return fabs(x) < TINY ? x : copysign(angle(of(fabs(x)), other_leg(x)), x);
}

double real_acos(double x)
{
    if (!(fabs(x) <= 1))
        return NAN;
    return angle(other_leg(x), of(x));
}
