/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Integer, Long, Short and Byte. */
#include "script/library/methods_number.h"

/* Parses an integer of the row's result type, which may be primitive or boxed. */
static bool parse_integral(struct call *call, struct value *ret)
{
    static const struct {
        int64_t min, max;
        enum value_kind kind;
    } kinds[] = {[CLASS_BYTE] = {INT8_MIN, INT8_MAX, VALUE_BYTE},
                 [CLASS_SHORT] = {INT16_MIN, INT16_MAX, VALUE_SHORT},
                 [CLASS_INT] = {INT32_MIN, INT32_MAX, VALUE_INT},
                 [CLASS_LONG] = {INT64_MIN, INT64_MAX, VALUE_LONG}};
    type_id type = type_unboxed(call->row->result);
    struct run *run = call->run;
    unsigned radix = call->count == 2 ? (unsigned)call->args[1].i : 10;
    int64_t i;
    if (call->args[0].kind == VALUE_NULL)
        return methods_number_parse_failed(run, call->args[0], radix);
    struct slice text = text_utf8(run, text_of(call->args[0]));
    run_charge(run, text.len);
    if (radix < 2 || radix > 36 || !number_parse_i64(text, radix, kinds[type].min, kinds[type].max, &i))
        return methods_number_parse_failed(run, call->args[0], radix);
    *ret = (struct value){.kind = kinds[type].kind, .i = i};
    return true;
}

/* Text output in any radix */

/* Gives the digits of an unsigned number in a radix of at most 36, with a minus sign if
   `negative`. */
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

static bool to_hex(struct call *call, struct value *ret)
{
    return give_digits(call->run, unsigned_of(call->args[0]), 16, false, ret);
}

static bool to_octal(struct call *call, struct value *ret)
{
    return give_digits(call->run, unsigned_of(call->args[0]), 8, false, ret);
}

static bool to_binary(struct call *call, struct value *ret)
{
    return give_digits(call->run, unsigned_of(call->args[0]), 2, false, ret);
}

static bool to_unsigned_text(struct call *call, struct value *ret)
{
    return give_digits(call->run, unsigned_of(call->args[0]), 10, false, ret);
}

static bool to_radix(struct call *call, struct value *ret)
{
    unsigned radix = call->args[1].i < 2 || call->args[1].i > 36 ? 10 : (unsigned)call->args[1].i;
    bool negative = call->args[0].i < 0;
    return give_digits(call->run, negative ? 0 - (uint64_t)call->args[0].i : (uint64_t)call->args[0].i, radix, negative,
                       ret);
}

/* Bits */

static bool integer_signum(struct call *call, struct value *ret)
{
    return give_int(ret, (call->args[0].i > 0) - (call->args[0].i < 0));
}

static bool integer_bit_count(struct call *call, struct value *ret)
{
    return give_int(ret, __builtin_popcountll(unsigned_of(call->args[0])));
}

static bool integer_leading_zeros(struct call *call, struct value *ret)
{
    int width = call->args[0].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(call->args[0]);
    return give_int(ret, bits == 0 ? width : __builtin_clzll(bits) - (64 - width));
}

static bool integer_trailing_zeros(struct call *call, struct value *ret)
{
    int width = call->args[0].kind == VALUE_LONG ? 64 : 32;
    uint64_t bits = unsigned_of(call->args[0]);
    return give_int(ret, bits == 0 ? width : __builtin_ctzll(bits));
}

static const struct method_row integer_methods[] = {
    {"static int MAX_VALUE", BOTH, method_constant, {INT32_MAX}},
    {"static int MIN_VALUE", BOTH, method_constant, {INT32_MIN}},
    {"static int compare(int, int)", BOTH, methods_number_compare},
    {"int compareTo(Integer)", BOTH, methods_number_compare_to},
    {"static int parseInt(String)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static String toString(int)", BOTH, methods_number_to_string},
    {"static Integer valueOf(int)", BOTH, methods_number_value_of},
    {"static int bitCount(int)", BOTH, integer_bit_count},
    {"static int hashCode(int)", BOTH, methods_number_hash},
    {"static int max(int, int)", BOTH, methods_math_larger},
    {"static int min(int, int)", BOTH, methods_math_smaller},
    {"static int numberOfLeadingZeros(int)", BOTH, integer_leading_zeros},
    {"static int numberOfTrailingZeros(int)", BOTH, integer_trailing_zeros},
    {"static int parseInt(String, int)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static int signum(int)", BOTH, integer_signum},
    {"static String toBinaryString(int)", BOTH, to_binary},
    {"static String toHexString(int)", BOTH, to_hex},
    {"static String toOctalString(int)", BOTH, to_octal},
    {"static String toString(int, int)", BOTH, to_radix},
    {"static String toUnsignedString(int)", BOTH, to_unsigned_text},
    {"static Integer valueOf(String)", GROOVY | METHOD_TAKES_NULL, parse_integral},
    {"new Integer(int)", GROOVY, methods_number_value_of},
    {"new Integer(String)", GROOVY, parse_integral},
    {"static Integer valueOf(String, int)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static int sum(int, int)", GROOVY, methods_number_sum},
};

static const struct method_row long_methods[] = {
    {"static long MAX_VALUE", BOTH, method_constant, {INT64_MAX}},
    {"static long MIN_VALUE", BOTH, method_constant, {INT64_MIN}},
    {"static int compare(long, long)", BOTH, methods_number_compare},
    {"int compareTo(Long)", BOTH, methods_number_compare_to},
    {"static long parseLong(String)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static String toString(long)", BOTH, methods_number_to_string},
    {"static Long valueOf(long)", BOTH, methods_number_value_of},
    {"static int bitCount(long)", BOTH, integer_bit_count},
    {"static int hashCode(long)", BOTH, methods_number_hash},
    {"static long max(long, long)", BOTH, methods_math_larger},
    {"static long min(long, long)", BOTH, methods_math_smaller},
    {"static int numberOfLeadingZeros(long)", BOTH, integer_leading_zeros},
    {"static int numberOfTrailingZeros(long)", BOTH, integer_trailing_zeros},
    {"static long parseLong(String, int)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static int signum(long)", BOTH, integer_signum},
    {"static String toBinaryString(long)", BOTH, to_binary},
    {"static String toHexString(long)", BOTH, to_hex},
    {"static String toOctalString(long)", BOTH, to_octal},
    {"static String toString(long, int)", BOTH, to_radix},
    {"static String toUnsignedString(long)", BOTH, to_unsigned_text},
    {"static Long valueOf(String)", GROOVY | METHOD_TAKES_NULL, parse_integral},
    {"new Long(long)", GROOVY, methods_number_value_of},
    {"new Long(String)", GROOVY, parse_integral},
    {"static Long valueOf(String, int)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static long sum(long, long)", BOTH, methods_number_sum},
};

static const struct method_row short_methods[] = {
    {"static short MAX_VALUE", BOTH, method_constant, {INT16_MAX}},
    {"static short MIN_VALUE", BOTH, method_constant, {INT16_MIN}},
    {"static int compare(short, short)", BOTH, methods_number_compare},
    {"int compareTo(Short)", BOTH, methods_number_compare_to},
    {"static short parseShort(String)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static String toString(short)", BOTH, methods_number_to_string},
    {"static Short valueOf(short)", BOTH, methods_number_value_of},
};

static const struct method_row byte_methods[] = {
    {"static byte MAX_VALUE", BOTH, method_constant, {INT8_MAX}},
    {"static byte MIN_VALUE", BOTH, method_constant, {INT8_MIN}},
    {"static int compare(byte, byte)", BOTH, methods_number_compare},
    {"int compareTo(Byte)", BOTH, methods_number_compare_to},
    {"static byte parseByte(String)", BOTH | METHOD_TAKES_NULL, parse_integral},
    {"static String toString(byte)", BOTH, methods_number_to_string},
    {"static Byte valueOf(byte)", BOTH, methods_number_value_of},
};

const struct method_table methods_integer[] = {
    METHOD_ROWS(INT_BOX, integer_methods),
    METHOD_ROWS(LONG_BOX, long_methods),
    METHOD_ROWS(SHORT_BOX, short_methods),
    METHOD_ROWS(BYTE_BOX, byte_methods),
    {0},
};
