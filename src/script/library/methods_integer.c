/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Integer, Long, Short and Byte. */
#include "script/library/methods_number.h"

static bool parse_integral(struct run *run, struct value *a, unsigned n, int64_t min, int64_t max, enum value_kind kind,
                           struct value *ret)
{
    unsigned radix = n == 2 ? (unsigned)a[2].i : 10;
    int64_t i;
    if (a[1].kind == VALUE_NULL)
        return methods_number_parse_failed(run, a[1], radix);
    struct slice text = text_utf8(run, text_of(a[1]));
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

/* clang-format off: a row a line */

/* What all four have: of TYPE, whose class is BOX. */
#define WHOLE_METHODS(TYPE, BOX, max, min, parse_name, parse)              \
    M0("MAX_VALUE", FIELD, TYPE, max), M0("MIN_VALUE", FIELD, TYPE, min),  \
        M2("compare", STATIC, INT, TYPE, TYPE, methods_number_compare),    \
        M1("compareTo", METHOD_BOTH, INT, BOX, methods_number_compare_to), \
        M1(parse_name, STATIC | METHOD_TAKES_NULL, TYPE, STRING, parse),   \
        M1("toString", STATIC, STRING, TYPE, methods_number_to_string),    \
        M1("valueOf", STATIC, BOX, TYPE, methods_number_value_of)

/* What Integer and Long have beyond that. */
#define WIDE_METHODS(TYPE, BOX, parse_name, parse)                                                                \
    M1("bitCount", STATIC, INT, TYPE, integer_bit_count), M1("hashCode", STATIC, INT, TYPE, methods_number_hash), \
        M2("max", STATIC, TYPE, TYPE, TYPE, methods_math_larger),                                                 \
        M2("min", STATIC, TYPE, TYPE, TYPE, methods_math_smaller),                                                \
        M1("numberOfLeadingZeros", STATIC, INT, TYPE, integer_leading_zeros),                                     \
        M1("numberOfTrailingZeros", STATIC, INT, TYPE, integer_trailing_zeros),                                   \
        M2(parse_name, STATIC | METHOD_TAKES_NULL, TYPE, STRING, INT, parse),                                     \
        M1("signum", STATIC, INT, TYPE, integer_signum), M1("toBinaryString", STATIC, STRING, TYPE, to_binary),   \
        M1("toHexString", STATIC, STRING, TYPE, to_hex), M1("toOctalString", STATIC, STRING, TYPE, to_octal),     \
        M2("toString", STATIC, STRING, TYPE, INT, to_radix),                                                      \
        M1("toUnsignedString", STATIC, STRING, TYPE, to_unsigned_text),                                           \
        M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, BOX, STRING, parse),                                     \
        M1("new", METHOD_GROOVY | METHOD_NEW, BOX, TYPE, methods_number_value_of),                                \
        M1("new", METHOD_GROOVY | METHOD_NEW, BOX, STRING, parse),                                                \
        M2("valueOf", STATIC | METHOD_TAKES_NULL, BOX, STRING, INT, parse)

/* clang-format on */

static const struct method integer_methods[] = {
    WHOLE_METHODS(INT, INT_BOX, constant_int_max, constant_int_min, "parseInt", integer_parse),
    WIDE_METHODS(INT, INT_BOX, "parseInt", integer_parse),
    M2("sum", GROOVY_STATIC, INT, INT, INT, methods_number_sum),
};

static const struct method long_methods[] = {
    WHOLE_METHODS(LONG, LONG_BOX, constant_long_max, constant_long_min, "parseLong", long_parse),
    WIDE_METHODS(LONG, LONG_BOX, "parseLong", long_parse),
    M2("sum", STATIC, LONG, LONG, LONG, methods_number_sum),
};

static const struct method short_methods[] = {
    WHOLE_METHODS(SHORT, SHORT_BOX, constant_short_max, constant_short_min, "parseShort", short_parse),
};

static const struct method byte_methods[] = {
    WHOLE_METHODS(BYTE, BYTE_BOX, constant_byte_max, constant_byte_min, "parseByte", byte_parse),
};

const struct method_table methods_integer[] = {
    METHOD_TABLE(INT_BOX, integer_methods),
    METHOD_TABLE(LONG_BOX, long_methods),
    METHOD_TABLE(SHORT_BOX, short_methods),
    METHOD_TABLE(BYTE_BOX, byte_methods),
    {0, 0, NULL},
};
