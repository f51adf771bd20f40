/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Integer, Long, Short and Byte. */
#include "script/methods_number.h"

static bool parse_integral(struct run *run, struct value *a, unsigned n, int64_t min, int64_t max, enum value_kind kind,
                           struct value *ret)
{
    unsigned radix = n == 2 ? (unsigned)a[2].i : 10;
    int64_t i;
    if (a[1].kind == VALUE_NULL)
        return methods_number_parse_failed(run, a[1], radix);
    struct slice text = text_slice(run->arena, text_of(a[1]));
    run_charge(run, text.len);
    if (radix < 2 || radix > 36 || !number_parse_i64(text, radix, min, max, &i))
        return methods_number_parse_failed(run, a[1], radix);
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

/* As texts, in any radix */

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

/* Bits */

static bool integer_signum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (a[1].i > 0) - (a[1].i < 0));
}

static bool integer_bit_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, __builtin_popcountll(unsigned_of(a[1])));
}

static bool integer_leading_zeros(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    int width = a[1].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(a[1]);
    return give_int(ret, bits == 0 ? width : __builtin_clzll(bits) - (64 - width));
}

static bool integer_trailing_zeros(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    int width = a[1].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(a[1]);
    return give_int(ret, bits == 0 ? width : __builtin_ctzll(bits));
}

METHOD_CONSTANT(int_max, value_int(INT32_MAX))
METHOD_CONSTANT(int_min, value_int(INT32_MIN))
METHOD_CONSTANT(long_max, value_long(INT64_MAX))
METHOD_CONSTANT(long_min, value_long(INT64_MIN))
METHOD_CONSTANT(short_max, ((struct value){.kind = VALUE_SHORT, .i = INT16_MAX}))
METHOD_CONSTANT(short_min, ((struct value){.kind = VALUE_SHORT, .i = INT16_MIN}))
METHOD_CONSTANT(byte_max, ((struct value){.kind = VALUE_BYTE, .i = INT8_MAX}))
METHOD_CONSTANT(byte_min, ((struct value){.kind = VALUE_BYTE, .i = INT8_MIN}))

static const struct method integer_methods[] = {
    M0("MAX_VALUE", FIELD, INT, constant_int_max),
    M0("MIN_VALUE", FIELD, INT, constant_int_min),
    M1("bitCount", STATIC, INT, INT, integer_bit_count),
    M2("compare", STATIC, INT, INT, INT, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, INT_BOX, methods_number_compare_to),
    M1("hashCode", STATIC, INT, INT, methods_number_hash),
    M2("max", STATIC, INT, INT, INT, methods_math_larger),
    M2("min", STATIC, INT, INT, INT, methods_math_smaller),
    M1("numberOfLeadingZeros", STATIC, INT, INT, integer_leading_zeros),
    M1("numberOfTrailingZeros", STATIC, INT, INT, integer_trailing_zeros),
    M1("parseInt", STATIC | METHOD_TAKES_NULL, INT, STRING, integer_parse),
    M2("parseInt", STATIC | METHOD_TAKES_NULL, INT, STRING, INT, integer_parse),
    M1("signum", STATIC, INT, INT, integer_signum),
    M2("sum", GROOVY_STATIC, INT, INT, INT, methods_number_sum),
    M1("toBinaryString", STATIC, STRING, INT, to_binary),
    M1("toHexString", STATIC, STRING, INT, to_hex),
    M1("toOctalString", STATIC, STRING, INT, to_octal),
    M1("toString", STATIC, STRING, INT, methods_number_to_string),
    M2("toString", STATIC, STRING, INT, INT, to_radix),
    M1("toUnsignedString", STATIC, STRING, INT, to_unsigned_text),
    M1("valueOf", STATIC, INT_BOX, INT, methods_number_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, INT_BOX, STRING, integer_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, INT_BOX, INT, methods_number_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, INT_BOX, STRING, integer_parse),
    M2("valueOf", STATIC | METHOD_TAKES_NULL, INT_BOX, STRING, INT, integer_parse),
};

static const struct method long_methods[] = {
    M0("MAX_VALUE", FIELD, LONG, constant_long_max),
    M0("MIN_VALUE", FIELD, LONG, constant_long_min),
    M1("bitCount", STATIC, INT, LONG, integer_bit_count),
    M2("compare", STATIC, INT, LONG, LONG, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, LONG_BOX, methods_number_compare_to),
    M1("hashCode", STATIC, INT, LONG, methods_number_hash),
    M2("max", STATIC, LONG, LONG, LONG, methods_math_larger),
    M2("min", STATIC, LONG, LONG, LONG, methods_math_smaller),
    M1("numberOfLeadingZeros", STATIC, INT, LONG, integer_leading_zeros),
    M1("numberOfTrailingZeros", STATIC, INT, LONG, integer_trailing_zeros),
    M1("parseLong", STATIC | METHOD_TAKES_NULL, LONG, STRING, long_parse),
    M2("parseLong", STATIC | METHOD_TAKES_NULL, LONG, STRING, INT, long_parse),
    M1("signum", STATIC, INT, LONG, integer_signum),
    M2("sum", STATIC, LONG, LONG, LONG, methods_number_sum),
    M1("toBinaryString", STATIC, STRING, LONG, to_binary),
    M1("toHexString", STATIC, STRING, LONG, to_hex),
    M1("toOctalString", STATIC, STRING, LONG, to_octal),
    M1("toString", STATIC, STRING, LONG, methods_number_to_string),
    M2("toString", STATIC, STRING, LONG, INT, to_radix),
    M1("toUnsignedString", STATIC, STRING, LONG, to_unsigned_text),
    M1("valueOf", STATIC, LONG_BOX, LONG, methods_number_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, LONG_BOX, STRING, long_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, LONG_BOX, LONG, methods_number_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, LONG_BOX, STRING, long_parse),
    M2("valueOf", STATIC | METHOD_TAKES_NULL, LONG_BOX, STRING, INT, long_parse),
};

static const struct method short_methods[] = {
    M0("MAX_VALUE", FIELD, SHORT, constant_short_max),
    M0("MIN_VALUE", FIELD, SHORT, constant_short_min),
    M1("parseShort", STATIC | METHOD_TAKES_NULL, SHORT, STRING, short_parse),
    M1("toString", STATIC, STRING, SHORT, methods_number_to_string),
    M1("valueOf", STATIC, SHORT_BOX, SHORT, methods_number_value_of),
    M2("compare", STATIC, INT, SHORT, SHORT, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, SHORT_BOX, methods_number_compare_to),
};

static const struct method byte_methods[] = {
    M0("MAX_VALUE", FIELD, BYTE, constant_byte_max),
    M0("MIN_VALUE", FIELD, BYTE, constant_byte_min),
    M1("parseByte", STATIC | METHOD_TAKES_NULL, BYTE, STRING, byte_parse),
    M1("toString", STATIC, STRING, BYTE, methods_number_to_string),
    M1("valueOf", STATIC, BYTE_BOX, BYTE, methods_number_value_of),
    M2("compare", STATIC, INT, BYTE, BYTE, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, BYTE_BOX, methods_number_compare_to),
};

const struct method_table methods_integer[] = {
    METHOD_TABLE(INT_BOX, integer_methods),
    METHOD_TABLE(LONG_BOX, long_methods),
    METHOD_TABLE(SHORT_BOX, short_methods),
    METHOD_TABLE(BYTE_BOX, byte_methods),
    {0, 0, NULL},
};
