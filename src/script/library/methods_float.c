/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Double and Float. */
#include "script/library/methods_number.h"

#include <math.h>

static bool double_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    double d;
    if (a[1].kind == VALUE_NULL)
        return run_throw_npe(run, "String.trim()");
    struct slice text = text_utf8(run, text_of(a[1]));
    run_charge(run, text.len);
    if (number_parse_double(text, &d))
        return give_double(ret, d);
    if (text.len == 0)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "empty String");
    return methods_number_parse_failed(run, a[1], 10);
}

static bool float_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!double_parse(run, a, n, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
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

METHOD_CONSTANT(double_max, value_double(1.7976931348623157e308))
METHOD_CONSTANT(double_min, value_double(4.9e-324))
METHOD_CONSTANT(float_max, value_float(3.4028234663852886e38))
METHOD_CONSTANT(float_min, value_float(1.401298464324817e-45))
METHOD_CONSTANT(nan, value_double(NAN))
METHOD_CONSTANT(infinity, value_double(INFINITY))
METHOD_CONSTANT(minus_infinity, value_double(-INFINITY))

static const struct method double_methods[] = {
    M0("MAX_VALUE", FIELD, DOUBLE, constant_double_max),
    M0("MIN_VALUE", FIELD, DOUBLE, constant_double_min),
    M0("NaN", FIELD, DOUBLE, constant_nan),
    M0("POSITIVE_INFINITY", FIELD, DOUBLE, constant_infinity),
    M0("NEGATIVE_INFINITY", FIELD, DOUBLE, constant_minus_infinity),
    M2("compare", STATIC, INT, DOUBLE, DOUBLE, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, DOUBLE_BOX, methods_number_compare_to),
    M1("hashCode", STATIC, INT, DOUBLE, methods_number_hash),
    M1("isFinite", STATIC, BOOLEAN, DOUBLE, double_is_finite),
    M0("isInfinite", METHOD_BOTH, BOOLEAN, double_is_infinite),
    M1("isInfinite", STATIC, BOOLEAN, DOUBLE, double_is_infinite),
    M0("isNaN", METHOD_BOTH, BOOLEAN, double_is_nan),
    M1("isNaN", STATIC, BOOLEAN, DOUBLE, double_is_nan),
    M2("max", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_max),
    M2("min", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_math_min),
    M1("parseDouble", STATIC | METHOD_TAKES_NULL, DOUBLE, STRING, double_parse),
    M2("sum", STATIC, DOUBLE, DOUBLE, DOUBLE, methods_number_sum),
    M1("toString", STATIC, STRING, DOUBLE, methods_number_to_string),
    M1("valueOf", STATIC, DOUBLE_BOX, DOUBLE, methods_number_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, DOUBLE_BOX, STRING, double_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, DOUBLE_BOX, DOUBLE, methods_number_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, DOUBLE_BOX, STRING, double_parse),
};

static const struct method float_methods[] = {
    M0("MAX_VALUE", FIELD, FLOAT, constant_float_max),
    M0("MIN_VALUE", FIELD, FLOAT, constant_float_min),
    M2("compare", STATIC, INT, FLOAT, FLOAT, methods_number_compare),
    M1("compareTo", METHOD_BOTH, INT, FLOAT_BOX, methods_number_compare_to),
    M0("isNaN", METHOD_BOTH, BOOLEAN, double_is_nan),
    M1("isNaN", STATIC, BOOLEAN, FLOAT, double_is_nan),
    M1("parseFloat", STATIC | METHOD_TAKES_NULL, FLOAT, STRING, float_parse),
    M1("toString", STATIC, STRING, FLOAT, methods_number_to_string),
    M1("valueOf", STATIC, FLOAT_BOX, FLOAT, methods_number_value_of),
};

const struct method_table methods_float[] = {
    METHOD_TABLE(DOUBLE_BOX, double_methods),
    METHOD_TABLE(FLOAT_BOX, float_methods),
    {0, 0, NULL},
};
