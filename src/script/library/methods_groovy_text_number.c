/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's readings of a text: as a number of some class, as a boolean, and whether it is one. */
#include "script/library/method_args.h"

static struct slice trimmed(struct run *run, struct value v)
{
    struct slice text = text_utf8(run, text_of(v));
    run_charge(run, text.len);
    while (text.len > 0 && (unsigned char)text.data[0] <= ' ')
        text = slice_from_offset(text, 1);
    while (text.len > 0 && (unsigned char)text.data[text.len - 1] <= ' ')
        text.len--;
    return text;
}

static bool not_a_number(struct run *run, struct slice text)
{
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(text));
}

static bool to_integral(struct run *run, struct value *a, int64_t min, int64_t max, enum value_kind kind,
                        struct value *ret)
{
    struct slice text = trimmed(run, a[0]);
    int64_t i;
    if (!number_parse_i64(text, 10, min, max, &i))
        return not_a_number(run, text);
    *ret = (struct value){.kind = kind, .i = i};
    return true;
}

static bool string_to_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_integral(run, a, INT32_MIN, INT32_MAX, VALUE_INT, ret);
}

static bool string_to_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_integral(run, a, INT64_MIN, INT64_MAX, VALUE_LONG, ret);
}

static bool string_to_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    double d;
    return number_parse_double(text, &d) ? give_double(ret, d) : not_a_number(run, text);
}

static bool string_to_float(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!string_to_double(run, a, n, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
}

static bool string_to_big_decimal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

static bool string_to_big_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? not_a_number(run, text) : give(ret, big);
}

static bool string_is_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed(run, a[0]), 10, INT32_MIN, INT32_MAX, &i));
}

static bool string_is_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed(run, a[0]), 10, INT64_MIN, INT64_MAX, &i));
}

static bool string_is_number(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    double d;
    struct slice text = trimmed(run, a[0]);
    bool letters = text.len > 0 && strchr("dDfFNI", text.data[text.len - 1]) != NULL;
    return give_boolean(ret, !letters && number_parse_double(text, &d));
}

static bool string_to_boolean(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    bool yes = slice_is(text, "y") || slice_is(text, "1") || (text.len == 4 && strncasecmp(text.data, "true", 4) == 0);
    return give_boolean(ret, yes);
}

static const struct method string_methods[] = {
    M0("toInteger", METHOD_GROOVY, INT_BOX, string_to_integer),
    M0("toLong", METHOD_GROOVY, LONG_BOX, string_to_long),
    M0("toDouble", METHOD_GROOVY, DOUBLE_BOX, string_to_double),
    M0("toFloat", METHOD_GROOVY, FLOAT_BOX, string_to_float),
    M0("toBigDecimal", METHOD_GROOVY, BIG_DECIMAL, string_to_big_decimal),
    M0("toBigInteger", METHOD_GROOVY, BIG_INTEGER, string_to_big_integer),
    M0("toBoolean", METHOD_GROOVY, BOOLEAN_BOX, string_to_boolean),
    M0("isInteger", METHOD_GROOVY, BOOLEAN, string_is_integer),
    M0("isLong", METHOD_GROOVY, BOOLEAN, string_is_long),
    M0("isNumber", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isDouble", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isFloat", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isBigDecimal", METHOD_GROOVY, BOOLEAN, string_is_number),
};

const struct method_table methods_groovy_text_number[] = {
    METHOD_TABLE(STRING, string_methods),
    {0, 0, NULL},
};
