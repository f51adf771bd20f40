/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of any object: the operators by name, conversions, and how it is shown. */
#include "script/library/methods_groovy.h"

#define OPERATOR(name, op)                                                            \
    static bool name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                 \
        (void)n;                                                                      \
        return operate_binary(run, op, a[0], a[1], ret);                              \
    }

OPERATOR(plus, OP_ADD)
OPERATOR(minus, OP_SUB)
OPERATOR(multiply, OP_MUL)
OPERATOR(divide, OP_DIV)
OPERATOR(modulo, OP_REM)
OPERATOR(power, OP_POW)
OPERATOR(left_shift, OP_SHL)
OPERATOR(right_shift, OP_SHR)
OPERATOR(right_shift_unsigned, OP_USHR)
OPERATOR(and, OP_AND)
OPERATOR(or, OP_OR)
OPERATOR(xor, OP_XOR)

/* x[i] by name. What groovy_get_at does not do itself it asks of these methods: only slices may be theirs. */

static bool get_element(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_get_at(run, a[0], a[1], ret);
}

static bool put_element(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_set_at(run, a[0], a[1], a[2]) && give_nothing(ret);
}

static bool get_slice(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_slice(run, a[0], a[1], ret);
}

static bool put_slice(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_set_slice(run, a[0], a[1], a[2]) && give_nothing(ret);
}

static bool get_member(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_get(run, a[0], a[1], ret);
}

static bool put_member(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_set(run, a[0], a[1], a[2]) && give_nothing(ret);
}

/* By its place in the order of walking; null beyond the end. */
static bool get_nth(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *all = values_to_seq(run, a[0], CLASS_ARRAY_LIST);
    int64_t index;
    if (all == NULL || !groovy_index(run, a[1].i, all->count, &index))
        return false;
    *ret = seq_item(all, (size_t)index);
    return true;
}

static bool as_type(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return convert_groovy(run, a[0], ((const struct class_object *)a[1].object)->type, true, ret);
}

static bool as_boolean(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool truth;
    return convert_truth(run, a[0], &truth) && give_boolean(ret, truth);
}

/* Whether this, as a case of a switch, takes the value. */
static bool is_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool takes;
    return groovy_contains(run, a[1], a[0], &takes) && give_boolean(ret, takes);
}

static bool inspect(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text_buf out;
    text_buf_init(&out, run);
    return groovy_inspect(run, a[0], &out) && give(ret, text_buf_done(&out));
}

static bool with(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return groovy_with(run, a[0], a[1], ret);
}

static const struct method object_methods[] = {
    M1("plus", G, DEF, DEF, plus),
    M1("minus", G, DEF, DEF, minus),
    M1("multiply", G, DEF, DEF, multiply),
    M1("div", G, DEF, DEF, divide),
    M1("mod", G, DEF, DEF, modulo),
    M1("power", G, DEF, DEF, power),
    M1("leftShift", G, DEF, DEF, left_shift),
    M1("rightShift", G, DEF, DEF, right_shift),
    M1("rightShiftUnsigned", G, DEF, DEF, right_shift_unsigned),
    M1("and", G, DEF, DEF, and),
    M1("or", G, DEF, DEF, or),
    M1("xor", G, DEF, DEF, xor),
    M1("getAt", G, DEF, STRING, get_member),
    M2("putAt", G, VOID, STRING, DEF, put_member),
    M1("asType", G | METHOD_NULL, DEF, CLASS, as_type),
    M1("with", G | METHOD_NULL, DEF, CLOSURE, with),
    M0("asBoolean", G, BOOLEAN, as_boolean),
    M1("isCase", G, BOOLEAN, DEF, is_case),
    M0("inspect", G | METHOD_NULL, STRING, inspect),
};

/* Collections are equal by Groovy's == of what they hold. */
static bool equals(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool same;
    return operate_equal(run, a[0], a[1], &same) && give_boolean(ret, same);
}

/* As toString, by the names that say of what. */
static bool shown(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[0]));
}

static const struct method list_methods[] = {
    M1("equals", G, BOOLEAN, LIST, equals),           M1("getAt", G, DEF, INT, get_element),
    M1("getAt", G, LIST, COLLECTION, get_slice),      M2("putAt", G, VOID, INT, DEF, put_element),
    M2("putAt", G, VOID, COLLECTION, DEF, put_slice),
};

static const struct method array_methods[] = {
    M1("getAt", G, DEF, INT, get_element),
    M1("getAt", G, LIST, COLLECTION, get_slice),
    M2("putAt", G, VOID, INT, DEF, put_element),
};

static const struct method iterable_methods[] = {
    M1("getAt", G, DEF, INT, get_nth),
    M0("toListString", G, STRING, shown),
};

static const struct method map_methods[] = {
    M0("toMapString", G, STRING, shown),
    M1("equals", G, BOOLEAN, MAP, equals),
    M1("getAt", G, DEF, DEF, get_element),
    M2("putAt", G, VOID, DEF, DEF, put_element),
};

/* Of a text under construction. */
static bool get_of_builder(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[0]);
    return text != NULL && groovy_get_at(run, value_of(text), a[1], ret);
}

static const struct method builder_methods[] = {
    M1("getAt", G, STRING, INT, get_of_builder),
    M1("getAt", G, STRING, COLLECTION, get_of_builder),
};

static const struct method text_methods[] = {
    M1("getAt", G, STRING, INT, get_element),
    M1("getAt", G, STRING, COLLECTION, get_slice),
};

/* Booleans */

static bool implies(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool other;
    return convert_truth(run, a[1], &other) && give_boolean(ret, a[0].i == 0 || other);
}

static bool to_boolean(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[0].i != 0);
}

static const struct method boolean_methods[] = {
    M1("implies", G, BOOLEAN, DEF, implies),
    M0("toBoolean", G, BOOLEAN, to_boolean),
};

const struct method_table methods_groovy_object[] = {
    METHOD_TABLE(OBJECT, object_methods),
    METHOD_TABLE(LIST, list_methods),
    METHOD_TABLE(ARRAY, array_methods),
    METHOD_TABLE(ITERABLE, iterable_methods),
    METHOD_TABLE(MAP, map_methods),
    METHOD_TABLE(STRING, text_methods),
    METHOD_TABLE(STRING_BUILDER, builder_methods),
    METHOD_TABLE(STRING_BUFFER, builder_methods),
    METHOD_TABLE(BOOLEAN_BOX, boolean_methods),
    {0, 0, NULL},
};
