/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions; see real.h.
 *
 * Each reduces its argument to a small interval, sums a series there in double-double arithmetic,
 * reverses the reduction, and rounds once:
 *
 * - exp(x) = 2^k exp(r), where x = k ln 2 + r and |r| <= ln 2 / 2; the hyperbolic functions use it;
 * - log(2^k m) = k ln 2 + 2 artanh((m - 1) / (m + 1)), where m is near 1; pow(x, y) = exp(y log x);
 * - sin, cos and tan reduce x modulo π/2: the relevant bits of 2/π are multiplied by x as integers,
 *   for x of any size (M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions",
 *   1983);
 * - atan(z) = 8 atan(z'), where z' is z after three steps z / (1 + sqrt(1 + z²)); asin and acos are
 *   angles of points.
 *
 * The last terms of a series, less than 2^-30 of the sum, are summed in plain doubles: the error is
 * below 2^-80.
 */
#include "base/real.h"
#include "base/double_double.h"

#include <stdbool.h>
#include <stdint.h>

static const struct dd ONE = {1, 0};
static const struct dd PI = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
static const struct dd HALF_PI = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const struct dd LN_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const struct dd ONE_OVER_LN_10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

/* For |x| below this, f(x) = x + O(x²) rounds to x. */
#define TINY 0x1p-60

/* --- Series in double-double arithmetic --------------------------------------------------------------------------- */

static struct dd dd_of(double x)
{
    return (struct dd){x, 0};
}

static struct dd scale_dd(struct dd x, int exponent)
{
    return (struct dd){ldexp(x.hi, exponent), ldexp(x.lo, exponent)};
}

/* Returns: x 2^exponent, rounded once, also if it is subnormal. */
static double round_scaled(struct dd x, int exponent)
{
    if (x.hi == 0 || ilogb(x.hi) + exponent >= -1022)
        return ldexp(x.hi, exponent);
    if (ilogb(x.hi) + exponent < -1080)
        return copysign(0, x.hi);
    /* Its last bit has the weight of the smallest double after scaling; its sign is that of x. */
    double grid = copysign(ldexp(1, 52 - 1074 - exponent), x.hi);
    struct dd sum = dd_two_sum(grid, x.hi);
    return ldexp((sum.hi + (sum.lo + x.lo)) - grid, exponent);
}

/* 1 + x + x²/2! + x³/3! + … for |x| <= 0.35. */
static struct dd exponential_series(struct dd x)
{
    double tail = 1;
    for (int n = 22; n > 9; n--)
        tail = 1 + tail * x.hi / n;
    struct dd sum = dd_of(tail);
    for (int n = 9; n > 0; n--)
        sum = dd_add(ONE, dd_div_double(dd_mul(sum, x), n));
    return sum;
}

/*
 * The sum of first! u^k / (2k + first)! = 1 + u / (2 or 6) + … for |u| <= 0.62. With first = 0 it
 * is cosh x for u = x², and cos x for u = -x²; with first = 1, sinh x / x and sin x / x.
 */
static struct dd factorial_series(struct dd u, int first)
{
    double tail = 1;
    for (int k = 14; k > 6; k--)
        tail = 1 + tail * u.hi / ((2 * k + first) * (2 * k + first - 1));
    struct dd sum = dd_of(tail);
    for (int k = 6; k > 0; k--)
        sum = dd_add(ONE, dd_div_double(dd_mul(sum, u), (2 * k + first) * (2 * k + first - 1)));
    return sum;
}

/* 1 + u/3 + u²/5 + … for |u| <= 0.03: artanh(x) / x for u = x², atan(x) / x for u = -x². */
static struct dd odd_series(struct dd u)
{
    double tail = 0;
    for (int k = 20; k > 6; k--)
        tail = (tail + 1.0 / (2 * k + 1)) * u.hi;
    struct dd sum = dd_of(tail);
    for (int k = 6; k > 0; k--)
        sum = dd_mul(dd_add(sum, dd_div_double(ONE, 2 * k + 1)), u);
    return dd_add(sum, ONE);
}

/* --- Exponentials ------------------------------------------------------------------------------------------------- */

/* Returns: exp(x) as a number between 0.7 and 1.5 and a binary exponent, for |x| < 10000. */
static struct dd dd_exp(struct dd x, int *ret_exponent)
{
    double k = rint(x.hi / LN_2.hi);
    struct dd r = dd_add(x, dd_two_product(-k, LN_2.hi));
    r = dd_add(r, dd_of(-k * LN_2.lo));
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
    struct dd e = dd_exp(dd_of(x), &exponent);
    return round_scaled(e, exponent);
}

/* sinh(x) for |x| <= 0.5. */
static struct dd small_sinh(struct dd x)
{
    return dd_mul(x, factorial_series(dd_mul(x, x), 1));
}

double real_expm1(double x)
{
    if (isnan(x) || fabs(x) < TINY || x > 710)
        return x > 710 ? INFINITY : x;
    if (x < -50)
        return -1;
    int exponent;
    if (fabs(x) < 1) { /* exp(x) - 1 = 2 sinh(x/2) exp(x/2), without cancellation */
        struct dd half = dd_of(x / 2), e = dd_exp(half, &exponent);
        return dd_mul(small_sinh(half), scale_dd(e, exponent + 1)).hi;
    }
    struct dd e = dd_exp(dd_of(x), &exponent);
    return exponent > 120 ? round_scaled(e, exponent) : dd_add(scale_dd(e, exponent), dd_of(-1)).hi;
}

/* exp(x)/2 ± exp(-x)/2 for 0 <= x <= 711. */
static double half_exponentials(double x, double sign)
{
    int exponent;
    struct dd e = dd_exp(dd_of(x), &exponent);
    if (exponent > 60)
        return round_scaled(e, exponent - 1);
    e = scale_dd(e, exponent);
    return dd_add(e, dd_mul(dd_of(sign), dd_div(ONE, e))).hi / 2;
}

double real_sinh(double x)
{
    if (isnan(x) || fabs(x) < TINY || fabs(x) > 711)
        return fabs(x) > 711 ? copysign(INFINITY, x) : x;
    return fabs(x) < 0.5 ? small_sinh(dd_of(x)).hi : copysign(half_exponentials(fabs(x), -1), x);
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
        return dd_div(small_sinh(dd_of(x)), factorial_series(dd_two_product(x, x), 0)).hi;
    int exponent;
    struct dd e = dd_exp(dd_of(2 * fabs(x)), &exponent);
    struct dd below_one = dd_div(dd_of(2), dd_add(scale_dd(e, exponent), ONE));
    return copysign(dd_add(ONE, dd_neg(below_one)).hi, x);
}

/* --- Logarithms --------------------------------------------------------------------------------------------------- */

/* The logarithm of x > 0. */
static struct dd dd_log(struct dd x)
{
    int exponent;
    if (frexp(x.hi, &exponent) < M_SQRT1_2)
        exponent--;
    struct dd m = scale_dd(x, -exponent);
    struct dd s = dd_div(dd_add(m, dd_of(-1)), dd_add(m, ONE));
    struct dd log_m = dd_mul(dd_mul(dd_of(2), s), odd_series(dd_mul(s, s)));
    return exponent == 0 ? log_m : dd_add(dd_mul(dd_of(exponent), LN_2), log_m);
}

/* Returns: whether *ret_log is the logarithm of x, a special value. */
static bool has_plain_log(double x, double *ret_log)
{
    *ret_log = isnan(x) || x > DBL_MAX ? x : x < 0 ? NAN : -INFINITY;
    return !(x > 0 && x <= DBL_MAX);
}

double real_log(double x)
{
    double plain;
    return has_plain_log(x, &plain) ? plain : dd_log(dd_of(x)).hi;
}

double real_log10(double x)
{
    double plain;
    return has_plain_log(x, &plain) ? plain : dd_mul(dd_log(dd_of(x)), ONE_OVER_LN_10).hi;
}

double real_log1p(double x)
{
    double plain;
    if (fabs(x) < TINY)
        return x;
    return has_plain_log(1 + x, &plain) ? plain : dd_log(dd_two_sum(1, x)).hi;
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

/* Powers where x is 0 or infinite, or y is infinite: of magnitude infinity (`grows`), 0 or 1. */
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
    struct dd log_x = dd_log(dd_of(fabs(x)));
    if (fabs(log_x.hi * y) > 1000) /* also an infinite product */
        return sign * ((log_x.hi > 0) == (y > 0) ? INFINITY : 0);
    if (fabs(log_x.hi * y) < TINY)
        return sign;
    int exponent;
    struct dd power = dd_exp(dd_mul(log_x, dd_of(y)), &exponent);
    return sign * round_scaled(power, exponent);
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
    for (int i = 0; i < 7; i++) /* each Newton step doubles the number of correct bits */
        root -= (root * root * root - m) / (3 * root * root);
    struct dd cube = dd_mul(dd_two_product(root, root), dd_of(root));
    struct dd off = dd_add(cube, dd_of(-m));
    return copysign(ldexp(dd_fast_two_sum(root, -off.hi / (3 * root * root)).hi, (exponent - over) / 3), x);
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
    struct dd sum = dd_add(dd_two_product(larger, larger), dd_two_product(smaller, smaller));
    return round_scaled(dd_sqrt(sum), exponent);
}

/* --- Angles ------------------------------------------------------------------------------------------------------- */

/* The first 1,280 bits of 2/π. */
static const uint64_t TWO_OVER_PI[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* Returns: 64 bits of 2/π from the one of weight 2^-position on; those before the point are 0. */
static uint64_t bits_of_two_over_pi(int position)
{
    int shift = position - 1, word = shift >> 6, bit = shift & 63;
    uint64_t first = word >= 0 ? TWO_OVER_PI[word] : 0, second = word + 1 >= 0 ? TWO_OVER_PI[word + 1] : 0;
    return bit == 0 ? first : first << bit | second >> (64 - bit);
}

/*
 * Returns: the 256-bit integer in `words`, most significant first, over 2^256.
 * Requires: it is not 0.
 */
static struct dd fraction_of(uint64_t words[4])
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
    return scale_dd(dd_fast_two_sum(high, ldexp(middle, -53)), -53 - zeros - shift);
}

/*
 * Reduces x modulo π/2. Requires: |x| > π/4.
 * Ensures: |*ret_rest| <= π/4, and x = quadrant π/2 + *ret_rest, modulo 2π. Returns: the quadrant.
 */
static unsigned reduce_angle(double x, struct dd *ret_rest)
{
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53), words[4]; /* x = m 2^(exponent - 53) */
    int position = exponent - 53 - 1; /* earlier bits of 2/π contribute multiples of 4 only */
    uint64_t carry = 0;
    for (int i = 3; i >= 0; i--) {
        unsigned __int128 product = (unsigned __int128)m * bits_of_two_over_pi(position + 64 * i) + carry;
        words[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    /* words are x 2/π modulo 4, divided by 4. */
    unsigned quadrant = (unsigned)(words[0] >> 62);
    bool up = (words[0] >> 61 & 1) != 0; /* the next quadrant is nearer */
    words[0] = words[0] << 2 | words[1] >> 62, words[1] = words[1] << 2 | words[2] >> 62;
    words[2] = words[2] << 2 | words[3] >> 62, words[3] <<= 2;
    for (int i = 0; up && i < 4; i++) /* subtracts 1, except for the last bit, beyond the precision here */
        words[i] = ~words[i];
    struct dd rest = dd_mul(fraction_of(words), HALF_PI);
    *ret_rest = up == (x < 0) ? rest : dd_neg(rest);
    quadrant += up;
    return (x < 0 ? 4 - quadrant : quadrant) & 3;
}

static struct dd dd_sin(struct dd r)
{
    return dd_mul(r, factorial_series(dd_neg(dd_mul(r, r)), 1));
}

static struct dd dd_cos(struct dd r)
{
    return factorial_series(dd_neg(dd_mul(r, r)), 0);
}

/* The sine of x + quarters * π/2. */
static double shifted_sine(double x, unsigned quarters)
{
    if (isnan(x) || isinf(x))
        return NAN;
    struct dd r = dd_of(x);
    if (fabs(x) > M_PI_4)
        quarters += reduce_angle(x, &r);
    struct dd s = quarters & 1 ? dd_cos(r) : dd_sin(r);
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
    struct dd r = dd_of(x);
    unsigned quadrant = fabs(x) > M_PI_4 ? reduce_angle(x, &r) : 0;
    struct dd s = dd_sin(r), c = dd_cos(r);
    return quadrant & 1 ? -dd_div(c, s).hi : dd_div(s, c).hi;
}

/* The angle whose tangent is z, for 0 <= z <= 1. */
static struct dd angle_of_tangent(struct dd z)
{
    for (int i = 0; i < 3; i++)
        z = dd_div(z, dd_add(ONE, dd_sqrt(dd_add(ONE, dd_mul(z, z)))));
    return dd_mul(scale_dd(z, 3), odd_series(dd_neg(dd_mul(z, z))));
}

/* The angle of the point (x, y) for y >= 0, where neither coordinate is negligible. */
static double dd_angle(struct dd y, struct dd x)
{
    struct dd width = x.hi < 0 ? dd_neg(x) : x;
    bool steep = y.hi > width.hi;
    struct dd t = steep ? angle_of_tangent(dd_div(width, y)) : angle_of_tangent(dd_div(y, width));
    if (steep)
        t = dd_add(HALF_PI, dd_neg(t));
    return (x.hi < 0 ? dd_add(PI, dd_neg(t)) : t).hi;
}

double real_atan2(double y, double x)
{
    if (isnan(x) || isnan(y))
        return NAN;
    if (isinf(x) && isinf(y))
        return copysign(x > 0 ? M_PI_4 : (dd_add(PI, dd_neg(scale_dd(HALF_PI, -1)))).hi, y);
    if (y == 0 || isinf(x) || fabs(y) < fabs(x) * TINY) /* also y / x is rounded once */
        return signbit(x) ? copysign(PI.hi, y) : y == 0 || isinf(x) ? copysign(0, y) : y / x;
    if (isinf(y) || fabs(x) < fabs(y) * TINY)
        return copysign(HALF_PI.hi, y);
    int exponent;
    frexp(fabs(x) > fabs(y) ? x : y, &exponent);
    return copysign(dd_angle(dd_of(ldexp(fabs(y), -exponent)), dd_of(ldexp(x, -exponent))), y);
}

double real_atan(double x)
{
    return fabs(x) < TINY ? x : real_atan2(x, 1);
}

/* The square root of 1 - x². */
static struct dd other_leg(double x)
{
    return dd_sqrt(dd_mul(dd_two_sum(1, -x), dd_two_sum(1, x)));
}

double real_asin(double x)
{
    if (!(fabs(x) <= 1))
        return NAN;
    return fabs(x) < TINY ? x : copysign(dd_angle(dd_of(fabs(x)), other_leg(x)), x);
}

double real_acos(double x)
{
    if (!(fabs(x) <= 1))
        return NAN;
    return dd_angle(other_leg(x), dd_of(x));
}
