/* SPDX-License-Identifier: Apache-2.0 */
/* Java's arithmetic and conversions; see number.h. */
#include "script/value/number.h"

#include "base/check.h"
#include "base/dtoa.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *symbol, *name;
} operators[OP_COUNT] = {
    [OP_ADD] = {"+", "addition"},       [OP_SUB] = {"-", "subtraction"},
    [OP_MUL] = {"*", "multiplication"}, [OP_DIV] = {"/", "division"},
    [OP_REM] = {"%", "remainder"},      [OP_SHL] = {"<<", "left shift"},
    [OP_SHR] = {">>", "right shift"},   [OP_USHR] = {">>>", "unsigned right shift"},
    [OP_AND] = {"&", "bitwise and"},    [OP_OR] = {"|", "bitwise or"},
    [OP_XOR] = {"^", "bitwise xor"},    [OP_POW] = {"**", "power"},
};

const char *operator_symbol(enum operator op)
{
    return operators[op].symbol;
}

const char *operator_name(enum operator op)
{
    return operators[op].name;
}

/* Writing */

/* Conversions */

int64_t double_to_i64(double d)
{
    if (isnan(d))
        return 0;
    if (d >= 9223372036854775807.0)
        return INT64_MAX;
    if (d <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)d;
}

int32_t double_to_i32(double d)
{
    if (isnan(d))
        return 0;
    if (d >= 2147483647.0)
        return INT32_MAX;
    if (d <= -2147483648.0)
        return INT32_MIN;
    return (int32_t)d;
}

static const struct big *whole_part(const struct decimal *decimal)
{
    return decimal->unscaled;
}

int64_t number_to_i64(struct value v)
{
    if (value_floating(v))
        return double_to_i64(v.d);
    if (value_is(v, CLASS_BIG_INTEGER))
        return (int64_t)big_low_bits((const struct big *)v.object);
    if (value_is(v, CLASS_BIG_DECIMAL)) {
        const struct decimal *decimal = (const struct decimal *)v.object;
        int64_t i;
        if (!big_to_i64(whole_part(decimal), &i))
            return (int64_t)big_low_bits(whole_part(decimal));
        for (int32_t s = 0; s < decimal->scale && i != 0; s++)
            i /= 10;
        for (int32_t s = decimal->scale; s < 0; s++)
            i = (int64_t)((uint64_t)i * 10);
        return i;
    }
    return v.i;
}

int32_t number_to_i32(struct value v)
{
    return value_floating(v) ? double_to_i32(v.d) : (int32_t)(uint32_t)(uint64_t)number_to_i64(v);
}

double number_to_double(struct run *run, struct value v)
{
    if (value_floating(v))
        return v.d;
    if (value_is(v, CLASS_BIG_INTEGER))
        return big_to_double(run, (const struct big *)v.object);
    if (value_is(v, CLASS_BIG_DECIMAL))
        return decimal_to_double(run, (const struct decimal *)v.object);
    return (double)v.i;
}

struct value number_cast(struct run *run, struct value v, enum value_kind kind)
{
    switch (kind) {
    case VALUE_BYTE: return (struct value){.kind = kind, .i = (int8_t)(uint8_t)(uint32_t)number_to_i32(v)};
    case VALUE_SHORT: return (struct value){.kind = kind, .i = (int16_t)(uint16_t)(uint32_t)number_to_i32(v)};
    case VALUE_CHAR: return value_char((uint16_t)(uint32_t)number_to_i32(v));
    case VALUE_INT: return value_int(number_to_i32(v));
    case VALUE_LONG: return value_long(number_to_i64(v));
    case VALUE_FLOAT: return value_float(number_to_double(run, v));
    case VALUE_DOUBLE: return value_double(number_to_double(run, v));
    default: UNREACHABLE(); return VALUE_NONE;
    }
}

struct big *number_to_big(struct run *run, struct value v)
{
    if (value_is(v, CLASS_BIG_INTEGER))
        return (struct big *)v.object;
    if (value_is(v, CLASS_BIG_DECIMAL)) {
        struct decimal *whole = decimal_set_scale(run, (struct decimal *)v.object, 0, ROUND_DOWN);
        return whole == NULL ? NULL : whole->unscaled;
    }
    return big_from_i64(run, number_to_i64(v));
}

struct decimal *number_to_decimal(struct run *run, struct value v)
{
    if (value_is(v, CLASS_BIG_DECIMAL))
        return (struct decimal *)v.object;
    if (!value_floating(v))
        return decimal_new(run, number_to_big(run, v), 0);
    if (!isfinite(v.d)) {
        run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION,
                  "Character %c is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.",
                  isnan(v.d) ? 'N' : 'I');
        return NULL;
    }
    char text[DTOA_TEXT_MAX];
    size_t len = v.kind == VALUE_FLOAT ? dtoa_float((float)v.d, text) : dtoa_double(v.d, text);
    return decimal_from_slice(run, slice_make(text, len));
}

/* Arithmetic */

static uint64_t as_unsigned(int64_t i)
{
    return (uint64_t)i;
}

static bool integral_binary(struct run *run, enum operator op, int64_t a, int64_t b, bool is_long, int64_t *ret)
{
    unsigned distance = (unsigned)as_unsigned(b) & (is_long ? 63u : 31u);
    switch (op) {
    case OP_ADD: *ret = (int64_t)(as_unsigned(a) + as_unsigned(b)); return true;
    case OP_SUB: *ret = (int64_t)(as_unsigned(a) - as_unsigned(b)); return true;
    case OP_MUL: *ret = (int64_t)(as_unsigned(a) * as_unsigned(b)); return true;
    case OP_DIV:
    case OP_REM:
        if (b == 0)
            return run_throw(run, CLASS_ARITHMETIC_EXCEPTION,
                             run->groovy && op == OP_DIV ? "Division by zero" : "/ by zero");
        if (b == -1)
            *ret = op == OP_DIV ? (int64_t)(0 - as_unsigned(a)) : 0;
        else
            *ret = op == OP_DIV ? a / b : a % b;
        return true;
    case OP_SHL: *ret = (int64_t)(as_unsigned(a) << distance); return true;
    case OP_SHR: *ret = a >> distance; return true;
    case OP_USHR:
        *ret = is_long ? (int64_t)(as_unsigned(a) >> distance) : (int64_t)((uint32_t)as_unsigned(a) >> distance);
        return true;
    case OP_AND: *ret = a & b; return true;
    case OP_OR: *ret = a | b; return true;
    case OP_XOR: *ret = a ^ b; return true;
    default: UNREACHABLE(); return false;
    }
}

static double floating_binary(enum operator op, double a, double b)
{
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_REM: return fmod(a, b);
    default: UNREACHABLE(); return 0;
    }
}

static bool is_shift(enum operator op)
{
    return op == OP_SHL || op == OP_SHR || op == OP_USHR;
}

bool number_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    bool is_long = a.kind == VALUE_LONG || (b.kind == VALUE_LONG && !is_shift(op));
    if (op <= OP_REM && (value_floating(a) || value_floating(b))) {
        bool is_double = a.kind == VALUE_DOUBLE || b.kind == VALUE_DOUBLE;
        double x = number_to_double(run, a), y = number_to_double(run, b);
        *ret = is_double ? value_double(floating_binary(op, x, y))
                         : value_float((double)(float)floating_binary(op, (double)(float)x, (double)(float)y));
        return true;
    }
    int64_t result = 0;
    int64_t x = is_long ? number_to_i64(a) : number_to_i32(a);
    int64_t y = is_long ? number_to_i64(b) : number_to_i32(b);
    if (!integral_binary(run, op, x, y, is_long, &result))
        return false;
    *ret = is_long ? value_long(result) : value_int(result);
    return true;
}

static bool decimal_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct decimal *x = number_to_decimal(run, a), *y = x == NULL ? NULL : number_to_decimal(run, b), *z = NULL;
    if (y == NULL)
        return false;
    if (op == OP_ADD)
        z = decimal_add(run, x, y);
    else if (op == OP_SUB)
        z = decimal_subtract(run, x, y);
    else if (op == OP_MUL)
        z = decimal_multiply(run, x, y);
    else if (op == OP_DIV)
        z = decimal_divide(run, x, y);
    else
        return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                         "Cannot use mod() on this number type: java.math.BigDecimal with value: %.*s",
                         SLICE_ARG(decimal_slice(run, x)));
    *ret = value_of(z);
    return z != NULL;
}

static bool big_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct big *x = number_to_big(run, a), *y = x == NULL ? NULL : number_to_big(run, b), *z = NULL;
    if (y == NULL)
        return false;
    if (op == OP_REM && y->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger: modulus not positive");
    if (op == OP_ADD)
        z = big_add(run, x, y);
    else if (op == OP_SUB)
        z = big_subtract(run, x, y);
    else if (op == OP_MUL)
        z = big_multiply(run, x, y);
    else if (op == OP_REM)
        big_divide(run, x, y, NULL, &z);
    else
        return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION, "bits of a BigInteger are not supported");
    *ret = value_of(z);
    return z != NULL;
}

static struct value shrink_big(struct run *run, struct big *big)
{
    int64_t i;
    (void)run;
    if (big == NULL || !big_to_i64(big, &i))
        return value_of(big);
    return i >= INT32_MIN && i <= INT32_MAX ? value_int(i) : value_long(i);
}

static bool power_of(struct run *run, struct value a, struct value b, struct value *ret)
{
    bool whole = !value_floating(a) && !value_floating(b) && !value_is(a, CLASS_BIG_DECIMAL) &&
                 !value_is(b, CLASS_BIG_DECIMAL) && !value_is(b, CLASS_BIG_INTEGER);
    int64_t exponent = whole ? number_to_i64(b) : -1;
    if (exponent < 0 || exponent > 1000000) {
        double result = real_pow(number_to_double(run, a), number_to_double(run, b));
        *ret = value_double(result);
        return true;
    }
    struct big *base = number_to_big(run, a);
    struct big *result = base == NULL ? NULL : big_power(run, base, (uint64_t)exponent);
    /* An int's power is an int or big; a long's fits a long, too. */
    int64_t i;
    bool big = result != NULL && a.kind != VALUE_LONG && big_to_i64(result, &i) && (i < INT32_MIN || i > INT32_MAX);
    *ret = big ? value_of(result) : shrink_big(run, result);
    return result != NULL;
}

bool number_not_on_fractions(struct run *run, const char *method, struct value v)
{
    char name[TYPE_NAME_MAX];
    struct text *shown = value_to_text(run, v);
    return shown != NULL && run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                                      "Cannot use %s() on this number type: %s with value: %.*s", method,
                                      type_java_name(value_type(v), name), SLICE_ARG(text_utf8(run, shown)));
}

bool number_binary_groovy(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    static const char *const methods[OP_COUNT] = {
        [OP_SHL] = "leftShift", [OP_SHR] = "rightShift", [OP_USHR] = "rightShiftUnsigned",
        [OP_AND] = "and",       [OP_OR] = "or",          [OP_XOR] = "xor"};
    if (op == OP_POW)
        return power_of(run, a, b, ret);
    if (op > OP_REM && (value_floating(a) || value_floating(b)))
        return number_not_on_fractions(run, methods[op], a);
    if (op <= OP_REM && (value_floating(a) || value_floating(b))) {
        *ret = value_double(floating_binary(op, number_to_double(run, a), number_to_double(run, b)));
        return true;
    }
    if (op == OP_DIV || value_is(a, CLASS_BIG_DECIMAL) || value_is(b, CLASS_BIG_DECIMAL))
        return decimal_binary(run, op, a, b, ret);
    if (value_is(a, CLASS_BIG_INTEGER) || value_is(b, CLASS_BIG_INTEGER))
        return big_binary(run, op, a, b, ret);
    return number_binary(run, op, a, b, ret);
}

/* Comparing */

static bool big_kind(struct value v)
{
    return value_is(v, CLASS_BIG_INTEGER) || value_is(v, CLASS_BIG_DECIMAL);
}

int number_compare(struct run *run, struct value a, struct value b)
{
    if (value_floating(a) || value_floating(b)) {
        double x = number_to_double(run, a), y = number_to_double(run, b);
        if (isnan(x) || isnan(y))
            return isnan(x) - isnan(y);
        return (x > y) - (x < y);
    }
    if (big_kind(a) || big_kind(b)) {
        struct decimal *x = number_to_decimal(run, a), *y = x == NULL ? NULL : number_to_decimal(run, b);
        return y == NULL ? 0 : decimal_compare(run, x, y);
    }
    return (a.i > b.i) - (a.i < b.i);
}

bool number_equal(struct run *run, struct value a, struct value b)
{
    if ((value_floating(a) && isnan(a.d)) || (value_floating(b) && isnan(b.d)))
        return false;
    return number_compare(run, a, b) == 0;
}

/* Parsing */

bool number_parse_i64(struct slice text, unsigned radix, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    if (text.len > 0 && (negative || text.data[0] == '+'))
        text = slice_from_offset(text, 1);
    if (text.len == 0)
        return false;
    unsigned __int128 magnitude = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10
                                                : 99;
        if (digit >= radix)
            return false;
        magnitude = magnitude * radix + digit;
        if (magnitude > (unsigned __int128)INT64_MAX + 1)
            return false;
    }
    __int128 signed_value = negative ? -(__int128)magnitude : (__int128)magnitude;
    if (signed_value < min || signed_value > max)
        return false;
    *ret_value = (int64_t)signed_value;
    return true;
}

bool number_parse_double(struct slice text, double *ret_value)
{
    text = slice_trim(text);
    size_t sign = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    struct slice body = slice_from_offset(text, sign);
    bool special = slice_is(body, "NaN") || slice_is(body, "Infinity");
    char copy[400];
    size_t digits = 0;
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    if (!special) {
        if (body.len > 1 && strchr("dDfF", body.data[body.len - 1]) != NULL)
            text.len--, body.len--;
        for (size_t i = 0; i < body.len; i++) {
            char c = body.data[i];
            digits += c >= '0' && c <= '9';
            if (!(c >= '0' && c <= '9') && strchr(".eE+-", c) == NULL)
                return false;
        }
        if (digits == 0)
            return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    char *end;
    *ret_value = strtod(copy, &end);
    return end == copy + text.len;
}

/* Hashing */

static int32_t fold_hash(uint64_t bits)
{
    return (int32_t)(uint32_t)(bits ^ bits >> 32);
}

int32_t number_hash(struct value v)
{
    union {
        double d;
        uint64_t bits;
    } as_double;
    union {
        float f;
        uint32_t bits;
    } as_float;
    switch (v.kind) {
    case VALUE_BOOLEAN: return v.i ? 1231 : 1237;
    case VALUE_LONG: return fold_hash((uint64_t)v.i);
    case VALUE_FLOAT: as_float.f = (float)v.d; return isnan(v.d) ? 0x7fc00000 : (int32_t)as_float.bits;
    case VALUE_DOUBLE: as_double.d = v.d; return isnan(v.d) ? 0x7ff80000 : fold_hash(as_double.bits);
    default: return (int32_t)v.i;
    }
}
