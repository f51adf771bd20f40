/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of any object: operators by name, conversions, text output. */
#include "script/library/methods_groovy.h"

/* Calls the operator of the method's name; the datum is the operator. */
static bool call_operator(struct call *call, struct value *ret)
{
    return operate_binary(call->run, (enum operator)call->row->datum.number, call->self, call->args[0], ret);
}

/* Methods of x[i]. groovy_get_at implements elements itself and calls these methods for other
   cases; so only the methods of slices may differ from it */

static bool get_element(struct call *call, struct value *ret)
{
    return groovy_get_at(call->run, call->self, call->args[0], ret);
}

static bool put_element(struct call *call, struct value *ret)
{
    return groovy_set_at(call->run, call->self, call->args[0], call->args[1]) && give_nothing(ret);
}

static bool get_slice(struct call *call, struct value *ret)
{
    return groovy_slice(call->run, call->self, call->args[0], ret);
}

static bool put_slice(struct call *call, struct value *ret)
{
    return groovy_set_slice(call->run, call->self, call->args[0], call->args[1]) && give_nothing(ret);
}

static bool get_member(struct call *call, struct value *ret)
{
    return groovy_get(call->run, call->self, call->args[0], ret);
}

static bool put_member(struct call *call, struct value *ret)
{
    return groovy_set(call->run, call->self, call->args[0], call->args[1]) && give_nothing(ret);
}

/* Gives the element with this index in iteration order; null beyond the end. */
static bool get_nth(struct call *call, struct value *ret)
{
    const struct seq *all = values_to_seq(call->run, call->self, CLASS_ARRAY_LIST);
    int64_t index;
    if (all == NULL || !groovy_index(call->run, call->args[0].i, all->count, &index))
        return false;
    *ret = seq_item(all, (size_t)index);
    return true;
}

static bool as_type(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return convert_groovy(call->run, call->self, ((const struct class_object *)call->args[0].object)->type, true, ret);
}

static bool as_boolean(struct call *call, struct value *ret)
{
    bool truth;
    return convert_truth(call->run, call->self, &truth) && give_boolean(ret, truth);
}

/* Gives whether the receiver, as a case of a switch, matches the argument. */
static bool is_case(struct call *call, struct value *ret)
{
    bool takes;
    return groovy_contains(call->run, call->args[0], call->self, &takes) && give_boolean(ret, takes);
}

static bool object_inspect(struct call *call, struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, call->run);
    return groovy_inspect(call->run, call->self, &out) && give(ret, text_buf_done(&out));
}

static bool object_with(struct call *call, struct value *ret)
{
    return groovy_with(call->run, call->self, call->args[0], ret);
}

static const struct method_row object_methods[] = {
    {"def plus(def)", GROOVY, call_operator, {OP_ADD}},
    {"def minus(def)", GROOVY, call_operator, {OP_SUB}},
    {"def multiply(def)", GROOVY, call_operator, {OP_MUL}},
    {"def div(def)", GROOVY, call_operator, {OP_DIV}},
    {"def mod(def)", GROOVY, call_operator, {OP_REM}},
    {"def power(def)", GROOVY, call_operator, {OP_POW}},
    {"def leftShift(def)", GROOVY, call_operator, {OP_SHL}},
    {"def rightShift(def)", GROOVY, call_operator, {OP_SHR}},
    {"def rightShiftUnsigned(def)", GROOVY, call_operator, {OP_USHR}},
    {"def and(def)", GROOVY, call_operator, {OP_AND}},
    {"def or(def)", GROOVY, call_operator, {OP_OR}},
    {"def xor(def)", GROOVY, call_operator, {OP_XOR}},
    {"def getAt(String)", GROOVY, get_member},
    {"void putAt(String, def)", GROOVY, put_member},
    {"def asType(Class)", GROOVY | METHOD_NULL, as_type},
    {"def with(Closure)", GROOVY | METHOD_NULL, object_with},
    {"boolean asBoolean()", GROOVY, as_boolean},
    {"boolean isCase(def)", GROOVY, is_case},
    {"String inspect()", GROOVY | METHOD_NULL, object_inspect},
};

/* Compares collections element by element, with Groovy's ==. */
static bool object_equals(struct call *call, struct value *ret)
{
    bool same;
    return operate_equal(call->run, call->self, call->args[0], &same) && give_boolean(ret, same);
}

/* The native of toListString, toMapString and so on, which do the same as toString. */
static bool object_to_string(struct call *call, struct value *ret)
{
    return give(ret, value_to_text(call->run, call->self));
}

static const struct method_row list_methods[] = {
    {"boolean equals(List)", GROOVY, object_equals},    {"def getAt(int)", GROOVY, get_element},
    {"List getAt(Collection)", GROOVY, get_slice},      {"void putAt(int, def)", GROOVY, put_element},
    {"void putAt(Collection, def)", GROOVY, put_slice},
};

static const struct method_row array_methods[] = {
    {"def getAt(int)", GROOVY, get_element},
    {"List getAt(Collection)", GROOVY, get_slice},
    {"void putAt(int, def)", GROOVY, put_element},
};

static const struct method_row iterable_methods[] = {
    {"def getAt(int)", GROOVY, get_nth},
    {"String toListString()", GROOVY, object_to_string},
};

static const struct method_row map_methods[] = {
    {"String toMapString()", GROOVY, object_to_string},
    {"boolean equals(Map)", GROOVY, object_equals},
    {"def getAt(def)", GROOVY, get_element},
    {"void putAt(def, def)", GROOVY, put_element},
};

/* getAt of StringBuilder: indexes its content as a string. */
static bool get_of_builder(struct call *call, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->self);
    return text != NULL && groovy_get_at(call->run, value_of(text), call->args[0], ret);
}

static const struct method_row builder_methods[] = {
    {"String getAt(int)", GROOVY, get_of_builder},
    {"String getAt(Collection)", GROOVY, get_of_builder},
};

static const struct method_row text_methods[] = {
    {"String getAt(int)", GROOVY, get_element},
    {"String getAt(Collection)", GROOVY, get_slice},
};

/* Booleans */

static bool boolean_implies(struct call *call, struct value *ret)
{
    bool other;
    return convert_truth(call->run, call->args[0], &other) && give_boolean(ret, call->self.i == 0 || other);
}

static bool to_boolean(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->self.i != 0);
}

static const struct method_row boolean_methods[] = {
    {"boolean implies(def)", GROOVY, boolean_implies},
    {"boolean toBoolean()", GROOVY, to_boolean},
};

const struct method_table methods_groovy_object[] = {
    METHOD_ROWS(OBJECT, object_methods),
    METHOD_ROWS(LIST, list_methods),
    METHOD_ROWS(ARRAY, array_methods),
    METHOD_ROWS(ITERABLE, iterable_methods),
    METHOD_ROWS(MAP, map_methods),
    METHOD_ROWS(STRING, text_methods),
    METHOD_ROWS(STRING_BUILDER, builder_methods),
    METHOD_ROWS(STRING_BUFFER, builder_methods),
    METHOD_ROWS(BOOLEAN_BOX, boolean_methods),
    {0},
};
