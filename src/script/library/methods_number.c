/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Number and Comparable, and those that all classes of numbers have. */
#include "script/library/methods_number.h"

#include "script/run/operate.h"

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

bool methods_number_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order;
    if (a[1].kind == VALUE_NULL)
        return run_throw_npe(run, "Comparable.compareTo(Object)");
    return value_order(run, a[0], a[1], &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Statics of the boxes */

bool methods_number_parse_failed(struct run *run, struct value text, unsigned radix)
{
    if (text.kind == VALUE_NULL)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "Cannot parse null string");
    struct slice shown = text_utf8(run, text_of(text));
    if (radix != 10)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\" under radix %u",
                         SLICE_ARG(shown), radix);
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(shown));
}

bool methods_number_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1];
    return true;
}

bool methods_number_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[1]));
}

bool methods_number_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order = number_compare(run, a[1], a[2]);
    return give_int(ret, order);
}

bool methods_number_hash(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, number_hash(a[1]));
}

bool methods_number_sum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return number_binary(run, OP_ADD, a[1], a[2], ret);
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
    M1("compareTo", METHOD_BOTH, INT, DEF, methods_number_compare_to),
};

const struct method_table methods_number[] = {
    METHOD_TABLE(NUMBER, number_methods),
    METHOD_TABLE(COMPARABLE, comparable_methods),
    {0, 0, NULL},
};
