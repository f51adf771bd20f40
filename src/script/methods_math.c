/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Math: Painless knows the versions for doubles only, Groovy the one that fits. */
#include "script/methods_number.h"

#include <math.h>

#define MATH_1(name, expression)                                                             \
    static bool math_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                        \
        (void)run, (void)n;                                                                  \
        double x = a[1].d;                                                                   \
        return give_double(ret, expression);                                                 \
    }
#define MATH_2(name, expression)                                                             \
    static bool math_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                        \
        (void)run, (void)n;                                                                  \
        double x = a[1].d, y = a[2].d;                                                       \
        return give_double(ret, expression);                                                 \
    }

MATH_1(abs, fabs(x))
MATH_1(acos, acos(x))
MATH_1(asin, asin(x))
MATH_1(atan, atan(x))
MATH_1(cbrt, (double)cbrtl(x)) /* rounded once, so that cubes have exact roots */
MATH_1(ceil, ceil(x))
MATH_1(cos, cos(x))
MATH_1(cosh, cosh(x))
MATH_1(exp, exp(x))
MATH_1(expm1, expm1(x))
MATH_1(floor, floor(x))
MATH_1(log, log(x))
MATH_1(log10, log10(x))
MATH_1(log1p, log1p(x))
MATH_1(next_down, nextafter(x, -INFINITY))
MATH_1(next_up, nextafter(x, INFINITY))
MATH_1(rint, nearbyint(x))
MATH_1(signum, x == 0 || isnan(x) ? x : copysign(1, x))
MATH_1(sin, sin(x))
MATH_1(sinh, sinh(x))
MATH_1(sqrt, sqrt(x))
MATH_1(tan, tan(x))
MATH_1(tanh, tanh(x))
MATH_1(to_degrees, x *(180.0 / 3.141592653589793))
MATH_1(to_radians, x *(3.141592653589793 / 180.0))
MATH_1(ulp, isnan(x) || isinf(x) ? fabs(x) : nextafter(fabs(x), INFINITY) - fabs(x))
MATH_2(atan2, atan2(x, y))
MATH_2(copy_sign, copysign(x, y))
MATH_2(hypot, hypot(x, y))
MATH_2(ieee_remainder, remainder(x, y))
MATH_2(next_after, nextafter(x, y))

/* The methods_math_larger of two doubles; NaN where one is none, and 0.0 is above -0.0. */
bool methods_math_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    double x = a[1].d, y = a[2].d;
    return give_double(ret, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? y : x) : fmax(x, y));
}

bool methods_math_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    double x = a[1].d, y = a[2].d;
    return give_double(ret, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? x : y) : fmin(x, y));
}

static bool math_pow(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    double x = a[1].d, y = a[2].d;
    bool nan = isnan(y) || (fabs(x) == 1 && isinf(y));
    return give_double(ret, nan ? NAN : pow(x, y));
}

static bool math_round(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    int64_t rounded = double_to_i64(floor(a[1].d + 0.5));
    double exact = a[1].d;
    if (exact == 0.49999999999999994)
        rounded = 0;
    *ret = a[1].kind == VALUE_FLOAT ? value_int(double_to_i32(floor(exact + 0.5))) : value_long(rounded);
    return true;
}

static bool math_e(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)a, (void)n;
    return give_double(ret, 2.718281828459045);
}

static bool math_pi(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)a, (void)n;
    return give_double(ret, 3.141592653589793);
}

static bool abs_integral(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1];
    if (a[1].i < 0)
        *ret = a[1].kind == VALUE_LONG ? value_long((int64_t)(0 - (uint64_t)a[1].i)) : value_int(-a[1].i);
    return true;
}

/* The methods_math_larger of two numbers, of the class that both fit. */
bool methods_math_larger(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1].i >= a[2].i ? a[1] : a[2];
    ret->kind = a[1].kind > a[2].kind ? a[1].kind : a[2].kind;
    return true;
}

bool methods_math_smaller(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1].i <= a[2].i ? a[1] : a[2];
    ret->kind = a[1].kind > a[2].kind ? a[1].kind : a[2].kind;
    return true;
}

static bool floor_divide(struct run *run, struct value *a, bool modulo, struct value *ret)
{
    bool is_long = a[1].kind == VALUE_LONG || a[2].kind == VALUE_LONG;
    int64_t x = a[1].i, y = a[2].i;
    if (y == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "/ by zero");
    int64_t quotient = y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y, rest = y == -1 ? 0 : x % y;
    if (rest != 0 && (rest < 0) != (y < 0)) {
        quotient--;
        rest += y;
    }
    int64_t result = modulo ? rest : quotient;
    *ret = is_long ? value_long(result) : value_int(result);
    return true;
}

static bool math_floor_div(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return floor_divide(run, a, false, ret);
}

static bool math_floor_mod(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return floor_divide(run, a, true, ret);
}

static const struct method math_methods[] = {
    M0("E", STATIC | METHOD_FIELD, DOUBLE, math_e),
    M0("PI", STATIC | METHOD_FIELD, DOUBLE, math_pi),
    M1("abs", GROOVY_STATIC, INT, INT, abs_integral),
    M1("abs", GROOVY_STATIC, LONG, LONG, abs_integral),
    M1("abs", STATIC, DOUBLE, DOUBLE, math_abs),
    M1("acos", STATIC, DOUBLE, DOUBLE, math_acos),
    M1("asin", STATIC, DOUBLE, DOUBLE, math_asin),
    M1("atan", STATIC, DOUBLE, DOUBLE, math_atan),
    M2("atan2", STATIC, DOUBLE, DOUBLE, DOUBLE, math_atan2),
    M1("cbrt", STATIC, DOUBLE, DOUBLE, math_cbrt),
    M1("ceil", STATIC, DOUBLE, DOUBLE, math_ceil),
    M2("copySign", STATIC, DOUBLE, DOUBLE, DOUBLE, math_copy_sign),
    M1("cos", STATIC, DOUBLE, DOUBLE, math_cos),
    M1("cosh", STATIC, DOUBLE, DOUBLE, math_cosh),
    M1("exp", STATIC, DOUBLE, DOUBLE, math_exp),
    M1("expm1", STATIC, DOUBLE, DOUBLE, math_expm1),
    M1("floor", STATIC, DOUBLE, DOUBLE, math_floor),
    M2("floorDiv", GROOVY_STATIC, LONG, LONG, LONG, math_floor_div),
    M2("floorMod", GROOVY_STATIC, LONG, LONG, LONG, math_floor_mod),
    M2("hypot", STATIC, DOUBLE, DOUBLE, DOUBLE, math_hypot),
    M2("IEEEremainder", STATIC, DOUBLE, DOUBLE, DOUBLE, math_ieee_remainder),
    M1("log", STATIC, DOUBLE, DOUBLE, math_log),
    M1("log10", STATIC, DOUBLE, DOUBLE, math_log10),
    M1("log1p", STATIC, DOUBLE, DOUBLE, math_log1p),
    M2("max", GROOVY_STATIC, LONG, LONG, LONG, methods_math_larger),
    M2("max", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_max),
    M2("min", GROOVY_STATIC, LONG, LONG, LONG, methods_math_smaller),
    M2("min", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_min),
    M2("nextAfter", STATIC, DOUBLE, DOUBLE, DOUBLE, math_next_after),
    M1("nextDown", STATIC, DOUBLE, DOUBLE, math_next_down),
    M1("nextUp", STATIC, DOUBLE, DOUBLE, math_next_up),
    M2("pow", STATIC, DOUBLE, DOUBLE, DOUBLE, math_pow),
    M1("rint", STATIC, DOUBLE, DOUBLE, math_rint),
    M1("round", STATIC, LONG, DOUBLE, math_round),
    M1("signum", STATIC, DOUBLE, DOUBLE, math_signum),
    M1("sin", STATIC, DOUBLE, DOUBLE, math_sin),
    M1("sinh", STATIC, DOUBLE, DOUBLE, math_sinh),
    M1("sqrt", STATIC, DOUBLE, DOUBLE, math_sqrt),
    M1("tan", STATIC, DOUBLE, DOUBLE, math_tan),
    M1("tanh", STATIC, DOUBLE, DOUBLE, math_tanh),
    M1("toDegrees", STATIC, DOUBLE, DOUBLE, math_to_degrees),
    M1("toRadians", STATIC, DOUBLE, DOUBLE, math_to_radians),
    M1("ulp", STATIC, DOUBLE, DOUBLE, math_ulp),
};

const struct method_table methods_math[] = {
    METHOD_TABLE(MATH, math_methods),
    METHOD_TABLE(STRICT_MATH, math_methods),
    {0, 0, NULL},
};
