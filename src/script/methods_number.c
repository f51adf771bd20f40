/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Number and its classes, of Boolean, Math, BigInteger and BigDecimal. */
#include "script/method_args.h"

#include "script/moment.h"
#include "script/operate.h"

#include <math.h>
#include <stdio.h>

/* Math: Painless knows the versions for doubles only, Groovy the one that fits. */

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
MATH_2(max, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? y : x) : fmax(x, y))
MATH_2(min, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? x : y) : fmin(x, y))
MATH_2(next_after, nextafter(x, y))

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

/* The larger of two numbers, of the class that both fit. */
static bool larger(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1].i >= a[2].i ? a[1] : a[2];
    ret->kind = a[1].kind > a[2].kind ? a[1].kind : a[2].kind;
    return true;
}

static bool smaller(struct run *run, struct value *a, unsigned n, struct value *ret)
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

#define STATIC (METHOD_BOTH | METHOD_STATIC)
#define GROOVY_STATIC (METHOD_GROOVY | METHOD_STATIC)

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
    M2("max", GROOVY_STATIC, LONG, LONG, LONG, larger),
    M2("max", STATIC, DOUBLE, DOUBLE, DOUBLE, math_max),
    M2("min", GROOVY_STATIC, LONG, LONG, LONG, smaller),
    M2("min", STATIC, DOUBLE, DOUBLE, DOUBLE, math_min),
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

/* Conversions of any number */

#define CONVERSION(name, kind)                                                                 \
    static bool number_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                          \
        (void)n;                                                                               \
        *ret = number_cast(run, a[0], kind);                                                   \
        return true;                                                                           \
    }

CONVERSION(byte_value, VALUE_BYTE)
CONVERSION(short_value, VALUE_SHORT)
CONVERSION(int_value, VALUE_INT)
CONVERSION(long_value, VALUE_LONG)
CONVERSION(float_value, VALUE_FLOAT)
CONVERSION(double_value, VALUE_DOUBLE)

static bool number_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order;
    if (a[1].kind == VALUE_NULL)
        return run_throw_npe(run, "Comparable.compareTo(Object)");
    return value_order(run, a[0], a[1], &order) && give_int(ret, (order > 0) - (order < 0));
}

static const struct method number_methods[] = {
    M0("byteValue", METHOD_BOTH, BYTE, number_byte_value),
    M0("shortValue", METHOD_BOTH, SHORT, number_short_value),
    M0("intValue", METHOD_BOTH, INT, number_int_value),
    M0("longValue", METHOD_BOTH, LONG, number_long_value),
    M0("floatValue", METHOD_BOTH, FLOAT, number_float_value),
    M0("doubleValue", METHOD_BOTH, DOUBLE, number_double_value),
};

static const struct method comparable_methods[] = {
    M1("compareTo", METHOD_BOTH, INT, DEF, number_compare_to),
};

/* Statics of the boxes */

static bool parse_failed(struct run *run, struct value text, unsigned radix)
{
    if (text.kind == VALUE_NULL)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "Cannot parse null string");
    struct slice shown = text_slice(run->arena, text_of(text));
    if (radix != 10)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\" under radix %u",
                         SLICE_ARG(shown), radix);
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(shown));
}

static bool parse_integral(struct run *run, struct value *a, unsigned n, int64_t min, int64_t max, enum value_kind kind,
                           struct value *ret)
{
    unsigned radix = n == 2 ? (unsigned)a[2].i : 10;
    int64_t i;
    if (a[1].kind == VALUE_NULL)
        return parse_failed(run, a[1], radix);
    struct slice text = text_slice(run->arena, text_of(a[1]));
    run_charge(run, text.len);
    if (radix < 2 || radix > 36 || !number_parse_i64(text, radix, min, max, &i))
        return parse_failed(run, a[1], radix);
    *ret = (struct value){.kind = kind, .i = i};
    return true;
}

static bool integer_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return parse_integral(run, a, n, INT32_MIN, INT32_MAX, VALUE_INT, ret);
}

static bool long_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return parse_integral(run, a, n, INT64_MIN, INT64_MAX, VALUE_LONG, ret);
}

static bool short_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return parse_integral(run, a, n, INT16_MIN, INT16_MAX, VALUE_SHORT, ret);
}

static bool byte_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return parse_integral(run, a, n, INT8_MIN, INT8_MAX, VALUE_BYTE, ret);
}

static bool double_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    double d;
    if (a[1].kind == VALUE_NULL)
        return run_throw_npe(run, "String.trim()");
    struct slice text = text_slice(run->arena, text_of(a[1]));
    run_charge(run, text.len);
    if (number_parse_double(text, &d))
        return give_double(ret, d);
    if (text.len == 0)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "empty String");
    return parse_failed(run, a[1], 10);
}

static bool float_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!double_parse(run, a, n, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
}

static bool box_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1];
    return true;
}

static bool box_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[1]));
}

/* Digits of a number without sign, any radix up to 36. */
static bool give_digits(struct run *run, uint64_t bits, unsigned radix, bool negative, struct value *ret)
{
    char out[72];
    size_t at = sizeof out;
    do {
        out[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[bits % radix];
        bits /= radix;
    } while (bits > 0);
    if (negative)
        out[--at] = '-';
    return give_slice(run, ret, slice_make(out + at, sizeof out - at));
}

static uint64_t unsigned_of(struct value v)
{
    return v.kind == VALUE_LONG ? (uint64_t)v.i : (uint32_t)v.i;
}

static bool to_hex(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_digits(run, unsigned_of(a[1]), 16, false, ret);
}

static bool to_octal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_digits(run, unsigned_of(a[1]), 8, false, ret);
}

static bool to_binary(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_digits(run, unsigned_of(a[1]), 2, false, ret);
}

static bool to_unsigned_text(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_digits(run, unsigned_of(a[1]), 10, false, ret);
}

static bool to_radix(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    unsigned radix = a[2].i < 2 || a[2].i > 36 ? 10 : (unsigned)a[2].i;
    bool negative = a[1].i < 0;
    return give_digits(run, negative ? 0 - (uint64_t)a[1].i : (uint64_t)a[1].i, radix, negative, ret);
}

static bool box_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order = number_compare(run, a[1], a[2]);
    return give_int(ret, order);
}

static bool box_hash(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, number_hash(a[1]));
}

static bool box_signum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (a[1].i > 0) - (a[1].i < 0));
}

static bool box_bit_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, __builtin_popcountll(unsigned_of(a[1])));
}

static bool box_leading_zeros(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    int width = a[1].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(a[1]);
    return give_int(ret, bits == 0 ? width : __builtin_clzll(bits) - (64 - width));
}

static bool box_trailing_zeros(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    int width = a[1].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(a[1]);
    return give_int(ret, bits == 0 ? width : __builtin_ctzll(bits));
}

static bool box_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_binary(run, OP_ADD, a[1], a[2], ret);
}

static bool double_is_nan(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    return give_boolean(ret, isnan(a[n].d));
}

static bool double_is_infinite(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    return give_boolean(ret, isinf(a[n].d));
}

static bool double_is_finite(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, isfinite(a[1].d));
}

#define CONSTANT(name, made)                                                                     \
    static bool constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                            \
        (void)run, (void)a, (void)n;                                                             \
        *ret = made;                                                                             \
        return true;                                                                             \
    }

/* BigDecimal's older names of its roundings. */
#define ROUNDING(name, text) M0(text, METHOD_GROOVY | METHOD_STATIC | METHOD_FIELD, INT, constant_##name)

CONSTANT(round_up, value_int(ROUND_UP))
CONSTANT(round_down, value_int(ROUND_DOWN))
CONSTANT(round_ceiling, value_int(ROUND_CEILING))
CONSTANT(round_floor, value_int(ROUND_FLOOR))
CONSTANT(round_half_up, value_int(ROUND_HALF_UP))
CONSTANT(round_half_down, value_int(ROUND_HALF_DOWN))
CONSTANT(round_half_even, value_int(ROUND_HALF_EVEN))
CONSTANT(int_max, value_int(INT32_MAX))
CONSTANT(int_min, value_int(INT32_MIN))
CONSTANT(long_max, value_long(INT64_MAX))
CONSTANT(long_min, value_long(INT64_MIN))
CONSTANT(short_max, ((struct value){.kind = VALUE_SHORT, .i = INT16_MAX}))
CONSTANT(short_min, ((struct value){.kind = VALUE_SHORT, .i = INT16_MIN}))
CONSTANT(byte_max, ((struct value){.kind = VALUE_BYTE, .i = INT8_MAX}))
CONSTANT(byte_min, ((struct value){.kind = VALUE_BYTE, .i = INT8_MIN}))
CONSTANT(double_max, value_double(1.7976931348623157e308))
CONSTANT(double_min, value_double(4.9e-324))
CONSTANT(float_max, value_float(3.4028234663852886e38))
CONSTANT(float_min, value_float(1.401298464324817e-45))
CONSTANT(nan, value_double(NAN))
CONSTANT(infinity, value_double(INFINITY))
CONSTANT(minus_infinity, value_double(-INFINITY))
CONSTANT(true, value_boolean(true))
CONSTANT(false, value_boolean(false))

#define FIELD (STATIC | METHOD_FIELD)

static const struct method integer_methods[] = {
    M0("MAX_VALUE", FIELD, INT, constant_int_max),
    M0("MIN_VALUE", FIELD, INT, constant_int_min),
    M1("bitCount", STATIC, INT, INT, box_bit_count),
    M2("compare", STATIC, INT, INT, INT, box_compare),
    M1("compareTo", METHOD_BOTH, INT, INT_BOX, number_compare_to),
    M1("hashCode", STATIC, INT, INT, box_hash),
    M2("max", STATIC, INT, INT, INT, larger),
    M2("min", STATIC, INT, INT, INT, smaller),
    M1("numberOfLeadingZeros", STATIC, INT, INT, box_leading_zeros),
    M1("numberOfTrailingZeros", STATIC, INT, INT, box_trailing_zeros),
    M1("parseInt", STATIC | METHOD_TAKES_NULL, INT, STRING, integer_parse),
    M2("parseInt", STATIC | METHOD_TAKES_NULL, INT, STRING, INT, integer_parse),
    M1("signum", STATIC, INT, INT, box_signum),
    M2("sum", GROOVY_STATIC, INT, INT, INT, box_sum),
    M1("toBinaryString", STATIC, STRING, INT, to_binary),
    M1("toHexString", STATIC, STRING, INT, to_hex),
    M1("toOctalString", STATIC, STRING, INT, to_octal),
    M1("toString", STATIC, STRING, INT, box_to_string),
    M2("toString", STATIC, STRING, INT, INT, to_radix),
    M1("toUnsignedString", STATIC, STRING, INT, to_unsigned_text),
    M1("valueOf", STATIC, INT_BOX, INT, box_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, INT_BOX, STRING, integer_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, INT_BOX, INT, box_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, INT_BOX, STRING, integer_parse),
    M2("valueOf", STATIC | METHOD_TAKES_NULL, INT_BOX, STRING, INT, integer_parse),
};

static const struct method long_methods[] = {
    M0("MAX_VALUE", FIELD, LONG, constant_long_max),
    M0("MIN_VALUE", FIELD, LONG, constant_long_min),
    M1("bitCount", STATIC, INT, LONG, box_bit_count),
    M2("compare", STATIC, INT, LONG, LONG, box_compare),
    M1("compareTo", METHOD_BOTH, INT, LONG_BOX, number_compare_to),
    M1("hashCode", STATIC, INT, LONG, box_hash),
    M2("max", STATIC, LONG, LONG, LONG, larger),
    M2("min", STATIC, LONG, LONG, LONG, smaller),
    M1("numberOfLeadingZeros", STATIC, INT, LONG, box_leading_zeros),
    M1("numberOfTrailingZeros", STATIC, INT, LONG, box_trailing_zeros),
    M1("parseLong", STATIC | METHOD_TAKES_NULL, LONG, STRING, long_parse),
    M2("parseLong", STATIC | METHOD_TAKES_NULL, LONG, STRING, INT, long_parse),
    M1("signum", STATIC, INT, LONG, box_signum),
    M2("sum", STATIC, LONG, LONG, LONG, box_sum),
    M1("toBinaryString", STATIC, STRING, LONG, to_binary),
    M1("toHexString", STATIC, STRING, LONG, to_hex),
    M1("toOctalString", STATIC, STRING, LONG, to_octal),
    M1("toString", STATIC, STRING, LONG, box_to_string),
    M2("toString", STATIC, STRING, LONG, INT, to_radix),
    M1("toUnsignedString", STATIC, STRING, LONG, to_unsigned_text),
    M1("valueOf", STATIC, LONG_BOX, LONG, box_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, LONG_BOX, STRING, long_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, LONG_BOX, LONG, box_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, LONG_BOX, STRING, long_parse),
    M2("valueOf", STATIC | METHOD_TAKES_NULL, LONG_BOX, STRING, INT, long_parse),
};

static const struct method short_methods[] = {
    M0("MAX_VALUE", FIELD, SHORT, constant_short_max),
    M0("MIN_VALUE", FIELD, SHORT, constant_short_min),
    M1("parseShort", STATIC | METHOD_TAKES_NULL, SHORT, STRING, short_parse),
    M1("toString", STATIC, STRING, SHORT, box_to_string),
    M1("valueOf", STATIC, SHORT_BOX, SHORT, box_value_of),
    M2("compare", STATIC, INT, SHORT, SHORT, box_compare),
    M1("compareTo", METHOD_BOTH, INT, SHORT_BOX, number_compare_to),
};

static const struct method byte_methods[] = {
    M0("MAX_VALUE", FIELD, BYTE, constant_byte_max),
    M0("MIN_VALUE", FIELD, BYTE, constant_byte_min),
    M1("parseByte", STATIC | METHOD_TAKES_NULL, BYTE, STRING, byte_parse),
    M1("toString", STATIC, STRING, BYTE, box_to_string),
    M1("valueOf", STATIC, BYTE_BOX, BYTE, box_value_of),
    M2("compare", STATIC, INT, BYTE, BYTE, box_compare),
    M1("compareTo", METHOD_BOTH, INT, BYTE_BOX, number_compare_to),
};

static const struct method double_methods[] = {
    M0("MAX_VALUE", FIELD, DOUBLE, constant_double_max),
    M0("MIN_VALUE", FIELD, DOUBLE, constant_double_min),
    M0("NaN", FIELD, DOUBLE, constant_nan),
    M0("POSITIVE_INFINITY", FIELD, DOUBLE, constant_infinity),
    M0("NEGATIVE_INFINITY", FIELD, DOUBLE, constant_minus_infinity),
    M2("compare", STATIC, INT, DOUBLE, DOUBLE, box_compare),
    M1("compareTo", METHOD_BOTH, INT, DOUBLE_BOX, number_compare_to),
    M1("hashCode", STATIC, INT, DOUBLE, box_hash),
    M1("isFinite", STATIC, BOOLEAN, DOUBLE, double_is_finite),
    M0("isInfinite", METHOD_BOTH, BOOLEAN, double_is_infinite),
    M1("isInfinite", STATIC, BOOLEAN, DOUBLE, double_is_infinite),
    M0("isNaN", METHOD_BOTH, BOOLEAN, double_is_nan),
    M1("isNaN", STATIC, BOOLEAN, DOUBLE, double_is_nan),
    M2("max", STATIC, DOUBLE, DOUBLE, DOUBLE, math_max),
    M2("min", STATIC, DOUBLE, DOUBLE, DOUBLE, math_min),
    M1("parseDouble", STATIC | METHOD_TAKES_NULL, DOUBLE, STRING, double_parse),
    M2("sum", STATIC, DOUBLE, DOUBLE, DOUBLE, box_sum),
    M1("toString", STATIC, STRING, DOUBLE, box_to_string),
    M1("valueOf", STATIC, DOUBLE_BOX, DOUBLE, box_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, DOUBLE_BOX, STRING, double_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, DOUBLE_BOX, DOUBLE, box_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, DOUBLE_BOX, STRING, double_parse),
};

static const struct method float_methods[] = {
    M0("MAX_VALUE", FIELD, FLOAT, constant_float_max),
    M0("MIN_VALUE", FIELD, FLOAT, constant_float_min),
    M2("compare", STATIC, INT, FLOAT, FLOAT, box_compare),
    M1("compareTo", METHOD_BOTH, INT, FLOAT_BOX, number_compare_to),
    M0("isNaN", METHOD_BOTH, BOOLEAN, double_is_nan),
    M1("isNaN", STATIC, BOOLEAN, FLOAT, double_is_nan),
    M1("parseFloat", STATIC | METHOD_TAKES_NULL, FLOAT, STRING, float_parse),
    M1("toString", STATIC, STRING, FLOAT, box_to_string),
    M1("valueOf", STATIC, FLOAT_BOX, FLOAT, box_value_of),
};

/* Boolean */

static bool boolean_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = a[1].kind == VALUE_NULL ? SLICE_NONE : text_slice(run->arena, text_of(a[1]));
    run_charge(run, text.len);
    return give_boolean(ret, text.len == 4 && strncasecmp(text.data, "true", 4) == 0);
}

static bool boolean_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

static bool boolean_logic(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i && a[2].i);
}

static bool boolean_or(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i || a[2].i);
}

static bool boolean_xor(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i != a[2].i);
}

static bool boolean_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, a[1].i - a[2].i);
}

static const struct method boolean_methods[] = {
    M0("TRUE", FIELD, BOOLEAN_BOX, constant_true),
    M0("FALSE", FIELD, BOOLEAN_BOX, constant_false),
    M0("booleanValue", METHOD_BOTH, BOOLEAN, boolean_value),
    M2("compare", STATIC, INT, BOOLEAN, BOOLEAN, boolean_compare),
    M1("compareTo", METHOD_BOTH, INT, BOOLEAN_BOX, number_compare_to),
    M2("logicalAnd", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_logic),
    M2("logicalOr", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_or),
    M2("logicalXor", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_xor),
    M1("parseBoolean", STATIC | METHOD_TAKES_NULL, BOOLEAN, STRING, boolean_parse),
    M1("toString", STATIC, STRING, BOOLEAN, box_to_string),
    M1("valueOf", STATIC, BOOLEAN_BOX, BOOLEAN, box_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, BOOLEAN_BOX, STRING, boolean_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, BOOLEAN_BOX, BOOLEAN, box_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, BOOLEAN_BOX, STRING, boolean_parse),
};

/* BigInteger and BigDecimal */

static struct big *big_of(struct value v)
{
    return (struct big *)v.object;
}

static struct decimal *decimal_of(struct value v)
{
    return (struct decimal *)v.object;
}

static bool big_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct slice text = text_slice(run->arena, text_of(a[1]));
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? parse_failed(run, a[1], 10) : give(ret, big);
}

static bool big_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, big_from_i64(run, a[1].i));
}

#define BIG_OPERATION(name, made)                                                              \
    static bool big_do_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                          \
        (void)n;                                                                               \
        if (n == 1)                                                                            \
            NEED(1);                                                                           \
        return give(ret, made);                                                                \
    }

BIG_OPERATION(add, big_add(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(subtract, big_subtract(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(multiply, big_multiply(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(negate, big_negate(run, big_of(a[0])))
BIG_OPERATION(abs, big_of(a[0])->negative ? big_negate(run, big_of(a[0])) : big_of(a[0]))
BIG_OPERATION(max, big_compare(big_of(a[0]), big_of(a[1])) >= 0 ? big_of(a[0]) : big_of(a[1]))
BIG_OPERATION(min, big_compare(big_of(a[0]), big_of(a[1])) <= 0 ? big_of(a[0]) : big_of(a[1]))
BIG_OPERATION(decimal_add, decimal_add(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_subtract, decimal_subtract(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_multiply, decimal_multiply(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_negate, decimal_new(run, big_negate(run, decimal_of(a[0])->unscaled), decimal_of(a[0])->scale))
BIG_OPERATION(decimal_strip, decimal_strip(run, decimal_of(a[0])))
BIG_OPERATION(decimal_to_big, number_to_big(run, a[0]))

static bool big_divide_by(struct run *run, struct value *a, bool rest, struct value *ret)
{
    struct big *quotient, *remainder;
    NEED(1);
    if (big_of(a[1])->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger divide by zero");
    return big_divide(run, big_of(a[0]), big_of(a[1]), &quotient, &remainder) && give(ret, rest ? remainder : quotient);
}

static bool big_do_divide(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return big_divide_by(run, a, false, ret);
}

static bool big_do_remainder(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return big_divide_by(run, a, true, ret);
}

static bool big_do_mod(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (big_of(a[1])->count == 0 || big_of(a[1])->negative)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger: modulus not positive");
    if (!big_divide_by(run, a, true, ret))
        return false;
    return !big_of(*ret)->negative || give(ret, big_add(run, big_of(*ret), big_of(a[1])));
}

static bool big_do_pow(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Negative exponent");
    return give(ret, big_power(run, big_of(a[0]), (uint64_t)a[1].i));
}

static bool big_signum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    const struct big *big = value_is(a[0], CLASS_BIG_INTEGER) ? big_of(a[0]) : decimal_of(a[0])->unscaled;
    return give_int(ret, big->negative ? -1 : big->count > 0);
}

static bool decimal_new_from(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (value_number(a[1]))
        return give(ret, number_to_decimal(run, a[1]));
    struct slice text = text_slice(run->arena, text_of(a[1]));
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

/* Exact, as Java's divide with one argument; else with a scale and a rounding. */
static bool decimal_do_divide(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct decimal *quotient = decimal_divide(run, decimal_of(a[0]), decimal_of(a[1]));
    struct decimal *back = quotient == NULL ? NULL : decimal_multiply(run, quotient, decimal_of(a[1]));
    if (back == NULL)
        return false;
    if (decimal_compare(run, back, decimal_of(a[0])) != 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION,
                         "Non-terminating decimal expansion; no exact representable decimal result.");
    return give(ret, quotient);
}

static bool decimal_do_set_scale(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int rounding = n < 2                       ? ROUND_UNNECESSARY
                   : value_is_enumerator(a[2]) ? ((struct enumerator *)a[2].object)->ordinal
                                               : (int)a[2].i;
    return give(ret, decimal_set_scale(run, decimal_of(a[0]), a[1].i, rounding));
}

static bool decimal_do_scale(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, decimal_of(a[0])->scale);
}

static bool decimal_do_precision(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)big_digits(decimal_of(a[0])->unscaled));
}

static bool decimal_do_plain(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_slice(run, ret, decimal_plain(run, decimal_of(a[0])));
}

static bool decimal_do_abs(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return decimal_of(a[0])->unscaled->negative ? big_do_decimal_negate(run, a, n, ret) : give(ret, a[0].object);
}

#define BIG_CONSTANT(name, digits)                                                                       \
    static bool big_constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret)     \
    {                                                                                                    \
        (void)a, (void)n;                                                                                \
        return give(ret, big_from_i64(run, digits));                                                     \
    }                                                                                                    \
    static bool decimal_constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                                    \
        (void)a, (void)n;                                                                                \
        return give(ret, decimal_new(run, big_from_i64(run, digits), 0));                                \
    }

BIG_CONSTANT(zero, 0)
BIG_CONSTANT(one, 1)
BIG_CONSTANT(ten, 10)

static const struct method big_methods[] = {
    M0("ZERO", FIELD, BIG_INTEGER, big_constant_zero),
    M0("ONE", FIELD, BIG_INTEGER, big_constant_one),
    M0("TEN", FIELD, BIG_INTEGER, big_constant_ten),
    M1("new", METHOD_BOTH | METHOD_NEW, BIG_INTEGER, STRING, big_new),
    M1("valueOf", STATIC, BIG_INTEGER, LONG, big_value_of),
    M1("add", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_add),
    M1("subtract", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_subtract),
    M1("multiply", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_multiply),
    M1("divide", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_divide),
    M1("remainder", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_remainder),
    M1("mod", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_mod),
    M1("max", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_max),
    M1("min", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_min),
    M1("pow", METHOD_BOTH, BIG_INTEGER, INT, big_do_pow),
    M0("negate", METHOD_BOTH, BIG_INTEGER, big_do_negate),
    M0("abs", METHOD_BOTH, BIG_INTEGER, big_do_abs),
    M0("signum", METHOD_BOTH, INT, big_signum),
    M1("compareTo", METHOD_BOTH, INT, BIG_INTEGER, number_compare_to),
};

static const struct method decimal_methods[] = {
    M0("ZERO", FIELD, BIG_DECIMAL, decimal_constant_zero),
    M0("ONE", FIELD, BIG_DECIMAL, decimal_constant_one),
    M0("TEN", FIELD, BIG_DECIMAL, decimal_constant_ten),
    ROUNDING(round_up, "ROUND_UP"),
    ROUNDING(round_down, "ROUND_DOWN"),
    ROUNDING(round_ceiling, "ROUND_CEILING"),
    ROUNDING(round_floor, "ROUND_FLOOR"),
    ROUNDING(round_half_up, "ROUND_HALF_UP"),
    ROUNDING(round_half_down, "ROUND_HALF_DOWN"),
    ROUNDING(round_half_even, "ROUND_HALF_EVEN"),
    M1("new", METHOD_BOTH | METHOD_NEW, BIG_DECIMAL, STRING, decimal_new_from),
    M1("new", METHOD_GROOVY | METHOD_NEW, BIG_DECIMAL, NUMBER, decimal_new_from),
    M1("valueOf", STATIC, BIG_DECIMAL, DOUBLE, decimal_new_from),
    M1("add", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_add),
    M1("subtract", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_subtract),
    M1("multiply", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_multiply),
    M1("divide", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, decimal_do_divide),
    M1("setScale", METHOD_BOTH, BIG_DECIMAL, INT, decimal_do_set_scale),
    M2("setScale", METHOD_BOTH, BIG_DECIMAL, INT, ROUNDING_MODE, decimal_do_set_scale),
    M2("setScale", METHOD_GROOVY, BIG_DECIMAL, INT, INT, decimal_do_set_scale),
    M0("scale", METHOD_BOTH, INT, decimal_do_scale),
    M0("precision", METHOD_BOTH, INT, decimal_do_precision),
    M0("negate", METHOD_BOTH, BIG_DECIMAL, big_do_decimal_negate),
    M0("abs", METHOD_BOTH, BIG_DECIMAL, decimal_do_abs),
    M0("signum", METHOD_BOTH, INT, big_signum),
    M0("stripTrailingZeros", METHOD_BOTH, BIG_DECIMAL, big_do_decimal_strip),
    M0("toBigInteger", METHOD_BOTH, BIG_INTEGER, big_do_decimal_to_big),
    M0("toPlainString", METHOD_BOTH, STRING, decimal_do_plain),
    M1("compareTo", METHOD_BOTH, INT, BIG_DECIMAL, number_compare_to),
};

const struct method_table methods_number[] = {
    METHOD_TABLE(MATH, math_methods),           METHOD_TABLE(STRICT_MATH, math_methods),
    METHOD_TABLE(NUMBER, number_methods),       METHOD_TABLE(COMPARABLE, comparable_methods),
    METHOD_TABLE(INT_BOX, integer_methods),     METHOD_TABLE(LONG_BOX, long_methods),
    METHOD_TABLE(SHORT_BOX, short_methods),     METHOD_TABLE(BYTE_BOX, byte_methods),
    METHOD_TABLE(DOUBLE_BOX, double_methods),   METHOD_TABLE(FLOAT_BOX, float_methods),
    METHOD_TABLE(BOOLEAN_BOX, boolean_methods), METHOD_TABLE(BIG_INTEGER, big_methods),
    METHOD_TABLE(BIG_DECIMAL, decimal_methods), {0, 0, NULL},
};
