/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's conversions and the types of its operators. */
#include "script/check/resolve.h"

struct shown show_type(type_id type)
{
    struct shown shown;
    type_name(type, shown.text);
    return shown;
}

type_id resolve__type(struct slice name)
{
    unsigned dims = 0;
    while (name.len > 2 && name.data[name.len - 1] == ']') {
        name.len -= 2;
        dims++;
    }
    enum class_id id = class_from_painless(name);
    return id == CLASS_COUNT || dims > TYPE_DIMS_MAX - 1 ? TYPE_NONE : type_array(id, dims);
}

/* Java's widening order: byte, short, int, long, float, double; char has the rank of short. */
static int widening_rank(type_id type)
{
    switch (type) {
    case CLASS_BYTE: return 1;
    case CLASS_SHORT:
    case CLASS_CHAR: return 2;
    case CLASS_INT: return 3;
    case CLASS_LONG: return 4;
    case CLASS_FLOAT: return 5;
    case CLASS_DOUBLE: return 6;
    default: return 0;
    }
}

static bool widens_to(type_id from, type_id to)
{
    return widening_rank(from) > 0 && widening_rank(from) < widening_rank(to) && to != CLASS_CHAR;
}

static bool primitive_cast(type_id actual, type_id expected, bool explicit, bool internal)
{
    if (expected == CLASS_DEF)
        return true;
    if (expected == CLASS_OBJECT)
        return internal;
    if (type_primitive(expected))
        return widening_rank(actual) > 0 && widening_rank(expected) > 0 && (explicit || widens_to(actual, expected));
    if (expected == CLASS_STRING)
        return actual == CLASS_CHAR && explicit;
    if (expected == CLASS_NUMBER)
        return internal && widening_rank(actual) > 0 && actual != CLASS_CHAR;
    type_id unboxed = type_unboxed(expected);
    if (unboxed == expected)
        return false;
    return internal && (unboxed == actual || widens_to(actual, unboxed) ||
                        (explicit && widening_rank(actual) > 0 && widening_rank(unboxed) > 0));
}

/* An array of def is not a supertype of other arrays. */
static bool into_def_array(type_id actual, type_id expected)
{
    return type_class(expected) == CLASS_DEF && type_dims(expected) > 0 && type_dims(actual) > 0;
}

bool cast_legal(type_id actual, type_id expected, bool explicit, bool internal)
{
    if (actual == expected)
        return true;
    if (actual == CLASS_VOID || expected == CLASS_VOID)
        return false;
    if (actual == CLASS_DEF || expected == CLASS_DEF)
        return true;
    if (type_primitive(actual))
        return primitive_cast(actual, expected, explicit, internal);
    if (type_primitive(expected)) {
        type_id unboxed = type_unboxed(actual);
        if (actual == CLASS_STRING)
            return expected == CLASS_CHAR && explicit;
        if (actual == CLASS_OBJECT || actual == CLASS_NUMBER)
            return explicit && internal;
        return unboxed != actual && internal &&
               (unboxed == expected || widens_to(unboxed, expected) ||
                (explicit && widening_rank(unboxed) > 0 && widening_rank(expected) > 0));
    }
    if (into_def_array(actual, expected))
        return explicit && type_class(actual) == CLASS_OBJECT;
    return type_assignable(expected, actual) || (explicit && type_assignable(actual, expected));
}

type_id promote_unary(type_id type, bool decimal)
{
    if (type == CLASS_DEF || (decimal && (type == CLASS_DOUBLE || type == CLASS_FLOAT)) || type == CLASS_LONG)
        return type;
    return widening_rank(type) > 0 && widening_rank(type) <= 3 ? CLASS_INT : TYPE_NONE;
}

/* The wider type decides, even if the other is not a number; its conversion fails then. */
type_id promote_numeric(type_id a, type_id b, bool decimal)
{
    static const type_id order[] = {CLASS_DOUBLE, CLASS_FLOAT, CLASS_LONG, CLASS_INT,
                                    CLASS_CHAR,   CLASS_SHORT, CLASS_BYTE};
    if (a == CLASS_DEF || b == CLASS_DEF)
        return CLASS_DEF;
    for (size_t i = decimal ? 0 : 2; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return i > 3 ? CLASS_INT : order[i];
    return TYPE_NONE;
}

type_id promote_add(type_id a, type_id b)
{
    return a == CLASS_STRING || b == CLASS_STRING ? CLASS_STRING : promote_numeric(a, b, true);
}

type_id promote_xor(type_id a, type_id b)
{
    if (a != CLASS_DEF && b != CLASS_DEF && (a == CLASS_BOOLEAN || b == CLASS_BOOLEAN))
        return CLASS_BOOLEAN;
    return promote_numeric(a, b, false);
}

type_id promote_equality(type_id a, type_id b)
{
    if (a == CLASS_DEF || b == CLASS_DEF)
        return CLASS_DEF;
    if (type_primitive(a) && type_primitive(b))
        return a == CLASS_BOOLEAN && b == CLASS_BOOLEAN ? CLASS_BOOLEAN : promote_numeric(a, b, true);
    return CLASS_OBJECT;
}

type_id promote_conditional(type_id a, type_id b)
{
    if (a == b)
        return a;
    if (a == CLASS_DEF || b == CLASS_DEF)
        return CLASS_DEF;
    if (!type_primitive(a) || !type_primitive(b))
        return CLASS_OBJECT;
    if (a == CLASS_BOOLEAN || b == CLASS_BOOLEAN)
        return TYPE_NONE;
    bool small = widening_rank(a) <= 2 && widening_rank(b) <= 2 && a != CLASS_CHAR && b != CLASS_CHAR;
    return small ? CLASS_SHORT : promote_numeric(a, b, true);
}
