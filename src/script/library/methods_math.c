/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Math: Painless knows the versions for doubles only, Groovy the one that fits. */
#include "base/real.h"
#include "script/library/methods_number.h"

#include <math.h>

/* What is an expression of one double x, or of two, x and y: symbol, name in Java, expression. */
#define OF_ONE(X)                                                \
    X(abs, "abs", fabs(x))                                       \
    X(acos, "acos", real_acos(x))                                \
    X(asin, "asin", real_asin(x))                                \
    X(atan, "atan", real_atan(x))                                \
    X(cbrt, "cbrt", real_cbrt(x))                                \
    X(ceil, "ceil", ceil(x))                                     \
    X(cos, "cos", real_cos(x))                                   \
    X(cosh, "cosh", real_cosh(x))                                \
    X(exp, "exp", real_exp(x))                                   \
    X(expm1, "expm1", real_expm1(x))                             \
    X(floor, "floor", floor(x))                                  \
    X(log, "log", real_log(x))                                   \
    X(log10, "log10", real_log10(x))                             \
    X(log1p, "log1p", real_log1p(x))                             \
    X(next_down, "nextDown", nextafter(x, -INFINITY))            \
    X(next_up, "nextUp", nextafter(x, INFINITY))                 \
    X(rint, "rint", nearbyint(x))                                \
    X(signum, "signum", x == 0 || isnan(x) ? x : copysign(1, x)) \
    X(sin, "sin", real_sin(x))                                   \
    X(sinh, "sinh", real_sinh(x))                                \
    X(sqrt, "sqrt", sqrt(x))                                     \
    X(tan, "tan", real_tan(x))                                   \
    X(tanh, "tanh", real_tanh(x))                                \
    X(to_degrees, "toDegrees", x *(180.0 / 3.141592653589793))   \
    X(to_radians, "toRadians", x *(3.141592653589793 / 180.0))   \
    X(ulp, "ulp", isnan(x) || isinf(x) ? fabs(x) : nextafter(fabs(x), INFINITY) - fabs(x))
#define OF_TWO(X)                                       \
    X(atan2, "atan2", real_atan2(x, y))                 \
    X(copy_sign, "copySign", copysign(x, y))            \
    X(hypot, "hypot", real_hypot(x, y))                 \
    X(ieee_remainder, "IEEEremainder", remainder(x, y)) \
    X(next_after, "nextAfter", nextafter(x, y))

#define DEFINE_OF_ONE(symbol, name, expression)                                                \
    static bool math_##symbol(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                          \
        (void)run, (void)n;                                                                    \
        double x = a[1].d;                                                                     \
        return give_double(ret, expression);                                                   \
    }
#define DEFINE_OF_TWO(symbol, name, expression)                                                \
    static bool math_##symbol(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                          \
        (void)run, (void)n;                                                                    \
        double x = a[1].d, y = a[2].d;                                                         \
        return give_double(ret, expression);                                                   \
    }
#define ROW_OF_ONE(symbol, name, expression) M1(name, STATIC, DOUBLE, DOUBLE, math_##symbol),
#define ROW_OF_TWO(symbol, name, expression) M2(name, STATIC, DOUBLE, DOUBLE, DOUBLE, math_##symbol),

OF_ONE(DEFINE_OF_ONE)
OF_TWO(DEFINE_OF_TWO)

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
    return give_double(ret, nan ? NAN : real_pow(x, y));
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

METHOD_CONSTANT(e, value_double(2.718281828459045))
METHOD_CONSTANT(pi, value_double(3.141592653589793))

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
    M0("E", FIELD, DOUBLE, constant_e),
    M0("PI", FIELD, DOUBLE, constant_pi),
    M1("abs", GROOVY_STATIC, INT, INT, abs_integral),
    M1("abs", GROOVY_STATIC, LONG, LONG, abs_integral),
    M2("floorDiv", GROOVY_STATIC, LONG, LONG, LONG, math_floor_div),
    M2("floorMod", GROOVY_STATIC, LONG, LONG, LONG, math_floor_mod),
    M2("max", GROOVY_STATIC, LONG, LONG, LONG, methods_math_larger),
    M2("max", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_max),
    M2("min", GROOVY_STATIC, LONG, LONG, LONG, methods_math_smaller),
    M2("min", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_min),
    M2("pow", STATIC, DOUBLE, DOUBLE, DOUBLE, math_pow),
    M1("round", STATIC, LONG, DOUBLE, math_round),
};

/* Behind those for whole numbers: they fit these, too. */
static const struct method expression_methods[] = {OF_ONE(ROW_OF_ONE) OF_TWO(ROW_OF_TWO)};

const struct method_table methods_math[] = {
    METHOD_TABLE(MATH, math_methods),
    METHOD_TABLE(MATH, expression_methods),
    METHOD_TABLE(STRICT_MATH, math_methods),
    METHOD_TABLE(STRICT_MATH, expression_methods),
    {0, 0, NULL},
};
