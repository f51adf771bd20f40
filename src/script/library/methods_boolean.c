/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Boolean. */
#include "script/library/methods_number.h"

#include <strings.h>

static bool boolean_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = a[1].kind == VALUE_NULL ? SLICE_NONE : text_utf8(run, text_of(a[1]));
    run_charge(run, text.len);
    return give_boolean(ret, text.len == 4 && strncasecmp(text.data, "true", 4) == 0);
}

static bool boolean_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

static bool boolean_and(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i && a[2].i);
}

static bool boolean_or(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i || a[2].i);
}

static bool boolean_xor(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].i != a[2].i);
}

static bool boolean_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, a[1].i - a[2].i);
}

METHOD_CONSTANT(true, value_boolean(true))
METHOD_CONSTANT(false, value_boolean(false))

static const struct method boolean_methods[] = {
    M0("TRUE", FIELD, BOOLEAN_BOX, constant_true),
    M0("FALSE", FIELD, BOOLEAN_BOX, constant_false),
    M0("booleanValue", METHOD_BOTH, BOOLEAN, boolean_value),
    M2("compare", STATIC, INT, BOOLEAN, BOOLEAN, boolean_compare),
    M1("compareTo", METHOD_BOTH, INT, BOOLEAN_BOX, methods_number_compare_to),
    M2("logicalAnd", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_and),
    M2("logicalOr", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_or),
    M2("logicalXor", STATIC, BOOLEAN, BOOLEAN, BOOLEAN, boolean_xor),
    M1("parseBoolean", STATIC | METHOD_TAKES_NULL, BOOLEAN, STRING, boolean_parse),
    M1("toString", STATIC, STRING, BOOLEAN, methods_number_to_string),
    M1("valueOf", STATIC, BOOLEAN_BOX, BOOLEAN, methods_number_value_of),
    M1("valueOf", GROOVY_STATIC | METHOD_TAKES_NULL, BOOLEAN_BOX, STRING, boolean_parse),
    M1("new", METHOD_GROOVY | METHOD_NEW, BOOLEAN_BOX, BOOLEAN, methods_number_value_of),
    M1("new", METHOD_GROOVY | METHOD_NEW, BOOLEAN_BOX, STRING, boolean_parse),
};

const struct method_table methods_boolean[] = {
    METHOD_TABLE(BOOLEAN_BOX, boolean_methods),
    {0, 0, NULL},
};
