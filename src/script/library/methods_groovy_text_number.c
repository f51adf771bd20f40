/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's conversions of a string to a number or a boolean, and tests whether it is one. */
#include "script/library/method_args.h"

static struct slice trimmed_text(struct run *run, struct value v)
{
    struct slice text = text_utf8(run, text_of(v));
    run_charge(run, text.len);
    return slice_trim(text);
}

static bool not_a_number(struct run *run, struct slice text)
{
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(text));
}

/* Parses an Integer or a Long; the row's result type selects which. */
static bool to_integral(struct call *call, struct value *ret)
{
    bool is_long = call->row->result == CLASS_LONG_BOX;
    struct slice text = trimmed_text(call->run, call->self);
    int64_t i;
    if (!number_parse_i64(text, 10, is_long ? INT64_MIN : INT32_MIN, is_long ? INT64_MAX : INT32_MAX, &i))
        return not_a_number(call->run, text);
    *ret = is_long ? value_long(i) : value_int(i);
    return true;
}

static bool string_to_double(struct call *call, struct value *ret)
{
    struct slice text = trimmed_text(call->run, call->self);
    double d;
    return number_parse_double(text, &d) ? give_double(ret, d) : not_a_number(call->run, text);
}

static bool string_to_float(struct call *call, struct value *ret)
{
    if (!string_to_double(call, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
}

static bool string_to_big_decimal(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct slice text = trimmed_text(run, call->self);
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

static bool string_to_big_integer(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct slice text = trimmed_text(run, call->self);
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? not_a_number(run, text) : give(ret, big);
}

static bool string_is_integer(struct call *call, struct value *ret)
{
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed_text(call->run, call->self), 10, INT32_MIN, INT32_MAX, &i));
}

static bool string_is_long(struct call *call, struct value *ret)
{
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed_text(call->run, call->self), 10, INT64_MIN, INT64_MAX, &i));
}

static bool string_is_number(struct call *call, struct value *ret)
{
    double d;
    struct slice text = trimmed_text(call->run, call->self);
    bool letters = text.len > 0 && strchr("dDfFNI", text.data[text.len - 1]) != NULL;
    return give_boolean(ret, !letters && number_parse_double(text, &d));
}

static bool string_to_boolean(struct call *call, struct value *ret)
{
    struct slice text = trimmed_text(call->run, call->self);
    bool yes = slice_is(text, "y") || slice_is(text, "1") || slice_is_ignoring_case(text, "true");
    return give_boolean(ret, yes);
}

static const struct method_row string_methods[] = {
    {"Integer toInteger()", GROOVY, to_integral},
    {"Long toLong()", GROOVY, to_integral},
    {"Double toDouble()", GROOVY, string_to_double},
    {"Float toFloat()", GROOVY, string_to_float},
    {"BigDecimal toBigDecimal()", GROOVY, string_to_big_decimal},
    {"BigInteger toBigInteger()", GROOVY, string_to_big_integer},
    {"Boolean toBoolean()", GROOVY, string_to_boolean},
    {"boolean isInteger()", GROOVY, string_is_integer},
    {"boolean isLong()", GROOVY, string_is_long},
    {"boolean isNumber()", GROOVY, string_is_number},
    {"boolean isDouble()", GROOVY, string_is_number},
    {"boolean isFloat()", GROOVY, string_is_number},
    {"boolean isBigDecimal()", GROOVY, string_is_number},
};

const struct method_table methods_groovy_text_number[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
