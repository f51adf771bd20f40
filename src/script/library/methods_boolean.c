/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Boolean. */
#include "script/library/methods_number.h"

static bool boolean_parse(struct call *call, struct value *ret)
{
    struct slice text = call->args[0].kind == VALUE_NULL ? SLICE_NONE : text_utf8(call->run, text_of(call->args[0]));
    run_charge(call->run, text.len);
    return give_boolean(ret, slice_is_ignoring_case(text, "true"));
}

static bool boolean_value(struct call *call, struct value *ret)
{
    *ret = call->self;
    return true;
}

static bool boolean_and(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].i && call->args[1].i);
}

static bool boolean_or(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].i || call->args[1].i);
}

static bool boolean_xor(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].i != call->args[1].i);
}

static bool boolean_compare(struct call *call, struct value *ret)
{
    return give_int(ret, call->args[0].i - call->args[1].i);
}

static const struct method_row boolean_methods[] = {
    {"static Boolean TRUE", BOTH, method_constant, {true}},
    {"static Boolean FALSE", BOTH, method_constant, {false}},
    {"boolean booleanValue()", BOTH, boolean_value},
    {"static int compare(boolean, boolean)", BOTH, boolean_compare},
    {"int compareTo(Boolean)", BOTH, methods_number_compare_to},
    {"static boolean logicalAnd(boolean, boolean)", BOTH, boolean_and},
    {"static boolean logicalOr(boolean, boolean)", BOTH, boolean_or},
    {"static boolean logicalXor(boolean, boolean)", BOTH, boolean_xor},
    {"static boolean parseBoolean(String)", BOTH | METHOD_TAKES_NULL, boolean_parse},
    {"static String toString(boolean)", BOTH, methods_number_to_string},
    {"static Boolean valueOf(boolean)", BOTH, methods_number_value_of},
    {"static Boolean valueOf(String)", GROOVY | METHOD_TAKES_NULL, boolean_parse},
    {"new Boolean(boolean)", GROOVY, methods_number_value_of},
    {"new Boolean(String)", GROOVY, boolean_parse},
};

const struct method_table methods_boolean[] = {
    METHOD_ROWS(BOOLEAN_BOX, boolean_methods),
    {0},
};
