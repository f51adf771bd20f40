/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Math. Painless has only the variants for double; Groovy selects the variant by
   argument types. */
#include "base/real.h"
#include "script/library/methods_number.h"

#include <math.h>

static double next_down(double x)
{
    return nextafter(x, -INFINITY);
}

static double next_up(double x)
{
    return nextafter(x, INFINITY);
}

static double signum(double x)
{
    return x == 0 || isnan(x) ? x : copysign(1, x);
}

static double to_degrees(double x)
{
    return x * (180.0 / 3.141592653589793);
}

static double to_radians(double x)
{
    return x * (3.141592653589793 / 180.0);
}

static double ulp(double x)
{
    return isnan(x) || isinf(x) ? fabs(x) : nextafter(fabs(x), INFINITY) - fabs(x);
}

static bool math_of_one(struct call *call, struct value *ret)
{
    return give_double(ret, call->row->datum.of_one(call->args[0].d));
}

static bool math_of_two(struct call *call, struct value *ret)
{
    return give_double(ret, call->row->datum.of_two(call->args[0].d, call->args[1].d));
}

/* Gives the larger of two doubles. NaN if either is NaN; 0.0 is larger than -0.0. */
bool methods_math_max(struct call *call, struct value *ret)
{
    double x = call->args[0].d, y = call->args[1].d;
    return give_double(ret, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? y : x) : fmax(x, y));
}

bool methods_math_min(struct call *call, struct value *ret)
{
    double x = call->args[0].d, y = call->args[1].d;
    return give_double(ret, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? x : y) : fmin(x, y));
}

static bool math_pow(struct call *call, struct value *ret)
{
    double x = call->args[0].d, y = call->args[1].d;
    bool nan = isnan(y) || (fabs(x) == 1 && isinf(y));
    return give_double(ret, nan ? NAN : real_pow(x, y));
}

static bool math_round(struct call *call, struct value *ret)
{
    int64_t rounded = double_to_i64(floor(call->args[0].d + 0.5));
    double exact = call->args[0].d;
    if (exact == 0.49999999999999994)
        rounded = 0;
    *ret = call->args[0].kind == VALUE_FLOAT ? value_int(double_to_i32(floor(exact + 0.5))) : value_long(rounded);
    return true;
}

static bool abs_integral(struct call *call, struct value *ret)
{
    *ret = call->args[0];
    if (call->args[0].i < 0)
        *ret = call->args[0].kind == VALUE_LONG ? value_long((int64_t)(0 - (uint64_t)call->args[0].i))
                                                : value_int(-call->args[0].i);
    return true;
}

/* Gives the larger of two numbers, in the wider class of the two. */
bool methods_math_larger(struct call *call, struct value *ret)
{
    *ret = call->args[0].i >= call->args[1].i ? call->args[0] : call->args[1];
    ret->kind = call->args[0].kind > call->args[1].kind ? call->args[0].kind : call->args[1].kind;
    return true;
}

bool methods_math_smaller(struct call *call, struct value *ret)
{
    *ret = call->args[0].i <= call->args[1].i ? call->args[0] : call->args[1];
    ret->kind = call->args[0].kind > call->args[1].kind ? call->args[0].kind : call->args[1].kind;
    return true;
}

static bool floor_divide(struct call *call, struct value *ret)
{
    bool modulo = call->row->datum.number != 0;
    bool is_long = call->args[0].kind == VALUE_LONG || call->args[1].kind == VALUE_LONG;
    int64_t x = call->args[0].i, y = call->args[1].i;
    if (y == 0)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "/ by zero");
    int64_t quotient = y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y, rest = y == -1 ? 0 : x % y;
    if (rest != 0 && (rest < 0) != (y < 0)) {
        quotient--;
        rest += y;
    }
    int64_t result = modulo ? rest : quotient;
    *ret = is_long ? value_long(result) : value_int(result);
    return true;
}

static const struct method_row math_methods[] = {
    {"static double E", BOTH, method_constant, {.real = 2.718281828459045}},
    {"static double PI", BOTH, method_constant, {.real = 3.141592653589793}},
    {"static int abs(int)", GROOVY, abs_integral},
    {"static long abs(long)", GROOVY, abs_integral},
    {"static long floorDiv(long, long)", GROOVY, floor_divide, {false}},
    {"static long floorMod(long, long)", GROOVY, floor_divide, {true}},
    {"static long max(long, long)", GROOVY, methods_math_larger},
    {"static double max(double, double)", BOTH, methods_math_max},
    {"static long min(long, long)", GROOVY, methods_math_smaller},
    {"static double min(double, double)", BOTH, methods_math_min},
    {"static double pow(double, double)", BOTH, math_pow},
    {"static long round(double)", BOTH, math_round},
};

/* These rows follow the integer variants: their double parameters would accept integers as well. */
static const struct method_row expression_methods[] = {
    {"static double abs(double)", BOTH, math_of_one, {.of_one = fabs}},
    {"static double acos(double)", BOTH, math_of_one, {.of_one = real_acos}},
    {"static double asin(double)", BOTH, math_of_one, {.of_one = real_asin}},
    {"static double atan(double)", BOTH, math_of_one, {.of_one = real_atan}},
    {"static double cbrt(double)", BOTH, math_of_one, {.of_one = real_cbrt}},
    {"static double ceil(double)", BOTH, math_of_one, {.of_one = ceil}},
    {"static double cos(double)", BOTH, math_of_one, {.of_one = real_cos}},
    {"static double cosh(double)", BOTH, math_of_one, {.of_one = real_cosh}},
    {"static double exp(double)", BOTH, math_of_one, {.of_one = real_exp}},
    {"static double expm1(double)", BOTH, math_of_one, {.of_one = real_expm1}},
    {"static double floor(double)", BOTH, math_of_one, {.of_one = floor}},
    {"static double log(double)", BOTH, math_of_one, {.of_one = real_log}},
    {"static double log10(double)", BOTH, math_of_one, {.of_one = real_log10}},
    {"static double log1p(double)", BOTH, math_of_one, {.of_one = real_log1p}},
    {"static double nextDown(double)", BOTH, math_of_one, {.of_one = next_down}},
    {"static double nextUp(double)", BOTH, math_of_one, {.of_one = next_up}},
    {"static double rint(double)", BOTH, math_of_one, {.of_one = nearbyint}},
    {"static double signum(double)", BOTH, math_of_one, {.of_one = signum}},
    {"static double sin(double)", BOTH, math_of_one, {.of_one = real_sin}},
    {"static double sinh(double)", BOTH, math_of_one, {.of_one = real_sinh}},
    {"static double sqrt(double)", BOTH, math_of_one, {.of_one = sqrt}},
    {"static double tan(double)", BOTH, math_of_one, {.of_one = real_tan}},
    {"static double tanh(double)", BOTH, math_of_one, {.of_one = real_tanh}},
    {"static double toDegrees(double)", BOTH, math_of_one, {.of_one = to_degrees}},
    {"static double toRadians(double)", BOTH, math_of_one, {.of_one = to_radians}},
    {"static double ulp(double)", BOTH, math_of_one, {.of_one = ulp}},
    {"static double atan2(double, double)", BOTH, math_of_two, {.of_two = real_atan2}},
    {"static double copySign(double, double)", BOTH, math_of_two, {.of_two = copysign}},
    {"static double hypot(double, double)", BOTH, math_of_two, {.of_two = real_hypot}},
    {"static double IEEEremainder(double, double)", BOTH, math_of_two, {.of_two = remainder}},
    {"static double nextAfter(double, double)", BOTH, math_of_two, {.of_two = nextafter}},
};

const struct method_table methods_math[] = {
    METHOD_ROWS(MATH, math_methods),
    METHOD_ROWS(MATH, expression_methods),
    METHOD_ROWS(STRICT_MATH, math_methods),
    METHOD_ROWS(STRICT_MATH, expression_methods),
    {0},
};
