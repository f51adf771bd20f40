/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Number and Comparable, and those that all number classes have. */
#include "script/library/methods_number.h"

#include "script/run/operate.h"

/* Converts to a number of another kind; the datum is an enum value_kind. */
static bool number_as(struct call *call, struct value *ret)
{
    *ret = number_cast(call->run, call->self, (enum value_kind)call->row->datum.number);
    return true;
}

bool methods_number_compare_to(struct call *call, struct value *ret)
{
    int order;
    if (call->args[0].kind == VALUE_NULL)
        return run_throw_npe(call->run, "Comparable.compareTo(Object)");
    return value_order(call->run, call->self, call->args[0], &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Static methods of the boxed classes */

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

bool methods_number_value_of(struct call *call, struct value *ret)
{
    *ret = call->args[0];
    return true;
}

bool methods_number_to_string(struct call *call, struct value *ret)
{
    return give(ret, value_to_text(call->run, call->args[0]));
}

bool methods_number_compare(struct call *call, struct value *ret)
{
    int order = number_compare(call->run, call->args[0], call->args[1]);
    return give_int(ret, order);
}

bool methods_number_hash(struct call *call, struct value *ret)
{
    return give_int(ret, number_hash(call->args[0]));
}

bool methods_number_sum(struct call *call, struct value *ret)
{
    return number_binary(call->run, OP_ADD, call->args[0], call->args[1], ret);
}

static const struct method_row number_methods[] = {
    {"byte byteValue()", BOTH, number_as, {VALUE_BYTE}},    {"short shortValue()", BOTH, number_as, {VALUE_SHORT}},
    {"int intValue()", BOTH, number_as, {VALUE_INT}},       {"long longValue()", BOTH, number_as, {VALUE_LONG}},
    {"float floatValue()", BOTH, number_as, {VALUE_FLOAT}}, {"double doubleValue()", BOTH, number_as, {VALUE_DOUBLE}},
};

static const struct method_row comparable_methods[] = {
    {"int compareTo(def)", BOTH, methods_number_compare_to},
};

const struct method_table methods_number[] = {
    METHOD_ROWS(NUMBER, number_methods),
    METHOD_ROWS(COMPARABLE, comparable_methods),
    {0},
};
