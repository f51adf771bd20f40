/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Double and Float. */
#include "script/library/methods_number.h"

#include <math.h>

static bool double_parse(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    double d;
    if (call->args[0].kind == VALUE_NULL)
        return run_throw_npe(run, "String.trim()");
    struct slice text = text_utf8(run, text_of(call->args[0]));
    run_charge(run, text.len);
    if (number_parse_double(text, &d))
        return give_double(ret, d);
    if (text.len == 0)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "empty String");
    return methods_number_parse_failed(run, call->args[0], 10);
}

static bool float_parse(struct call *call, struct value *ret)
{
    if (!double_parse(call, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
}

static bool double_is_nan(struct call *call, struct value *ret)
{
    return give_boolean(ret, isnan(call_last(call).d));
}

static bool double_is_infinite(struct call *call, struct value *ret)
{
    return give_boolean(ret, isinf(call_last(call).d));
}

static bool double_is_finite(struct call *call, struct value *ret)
{
    return give_boolean(ret, isfinite(call->args[0].d));
}

static const struct method_row double_methods[] = {
    {"static double MAX_VALUE", BOTH, method_constant, {.real = 1.7976931348623157e308}},
    {"static double MIN_VALUE", BOTH, method_constant, {.real = 4.9e-324}},
    {"static double NaN", BOTH, method_constant, {.real = NAN}},
    {"static double POSITIVE_INFINITY", BOTH, method_constant, {.real = INFINITY}},
    {"static double NEGATIVE_INFINITY", BOTH, method_constant, {.real = -INFINITY}},
    {"static int compare(double, double)", BOTH, methods_number_compare},
    {"int compareTo(Double)", BOTH, methods_number_compare_to},
    {"static int hashCode(double)", BOTH, methods_number_hash},
    {"static boolean isFinite(double)", BOTH, double_is_finite},
    {"boolean isInfinite()", BOTH, double_is_infinite},
    {"static boolean isInfinite(double)", BOTH, double_is_infinite},
    {"boolean isNaN()", BOTH, double_is_nan},
    {"static boolean isNaN(double)", BOTH, double_is_nan},
    {"static double max(double, double)", BOTH, methods_math_max},
    {"static double min(double, double)", BOTH, methods_math_min},
    {"static double parseDouble(String)", BOTH | METHOD_TAKES_NULL, double_parse},
    {"static double sum(double, double)", BOTH, methods_number_sum},
    {"static String toString(double)", BOTH, methods_number_to_string},
    {"static Double valueOf(double)", BOTH, methods_number_value_of},
    {"static Double valueOf(String)", GROOVY | METHOD_TAKES_NULL, double_parse},
    {"new Double(double)", GROOVY, methods_number_value_of},
    {"new Double(String)", GROOVY, double_parse},
};

static const struct method_row float_methods[] = {
    {"static float MAX_VALUE", BOTH, method_constant, {.real = 3.4028234663852886e38}},
    {"static float MIN_VALUE", BOTH, method_constant, {.real = 1.401298464324817e-45}},
    {"static int compare(float, float)", BOTH, methods_number_compare},
    {"int compareTo(Float)", BOTH, methods_number_compare_to},
    {"boolean isNaN()", BOTH, double_is_nan},
    {"static boolean isNaN(float)", BOTH, double_is_nan},
    {"static float parseFloat(String)", BOTH | METHOD_TAKES_NULL, float_parse},
    {"static String toString(float)", BOTH, methods_number_to_string},
    {"static Float valueOf(float)", BOTH, methods_number_value_of},
};

const struct method_table methods_float[] = {
    METHOD_ROWS(DOUBLE_BOX, double_methods),
    METHOD_ROWS(FLOAT_BOX, float_methods),
    {0},
};
