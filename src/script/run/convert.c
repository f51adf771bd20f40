/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions at run time; see convert.h. */
#include "script/run/convert.h"

#include "base/check.h"
#include "script/value/builder.h"
#include "script/run/interp.h"
#include "script/value/iter.h"
#include "script/value/regex.h"

#include <math.h>
#include <stdio.h>

struct named {
    char text[TYPE_NAME_MAX];
};

static struct named name_of(type_id type)
{
    struct named named;
    type_name(type, named.text);
    return named;
}

static struct named java_of(type_id type)
{
    struct named named;
    type_java_name(type, named.text);
    return named;
}

/* The kind of a primitive or boxed type; VALUE_OBJECT for others. */
static enum value_kind kind_of_type(type_id type)
{
    switch (type_unboxed(type)) {
    case CLASS_BOOLEAN: return VALUE_BOOLEAN;
    case CLASS_BYTE: return VALUE_BYTE;
    case CLASS_SHORT: return VALUE_SHORT;
    case CLASS_CHAR: return VALUE_CHAR;
    case CLASS_INT: return VALUE_INT;
    case CLASS_LONG: return VALUE_LONG;
    case CLASS_FLOAT: return VALUE_FLOAT;
    case CLASS_DOUBLE: return VALUE_DOUBLE;
    default: return VALUE_OBJECT;
    }
}

/* Returns: the unboxed type of a value, for messages: "int" for an Integer. */
static type_id unboxed_type(struct value v)
{
    return type_unboxed(value_type(v));
}

static bool widens_to(enum value_kind from, enum value_kind to)
{
    if (from == to)
        return true;
    if (from == VALUE_BOOLEAN || to == VALUE_BOOLEAN || to == VALUE_CHAR)
        return false;
    if (from == VALUE_CHAR)
        return to >= VALUE_INT;
    return from < to;
}

static bool cast_fails(struct run *run, struct value v, type_id target)
{
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class %s",
                     java_of(value_type(v)).text, java_of(target).text);
}

static bool text_to_char(struct run *run, struct value v, struct value *ret)
{
    const struct text *text = (const struct text *)v.object;
    if (text->length != 1)
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION,
                         "cannot cast java.lang.String with length not equal to one to char");
    *ret = value_char(text_at(text, 0));
    return true;
}

static bool def_to_text(struct run *run, struct value v, bool explicit, struct value *ret)
{
    if (explicit && v.kind == VALUE_CHAR) {
        *ret = value_of(value_to_text(run, v));
        return ret->kind != VALUE_NULL;
    }
    if (value_is(v, CLASS_STRING)) {
        *ret = v;
        return true;
    }
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "cannot %s cast def [%s] to java.lang.String",
                     explicit ? "explicitly" : "implicitly", name_of(unboxed_type(v)).text);
}

bool convert_def(struct run *run, struct value v, type_id target, bool explicit, struct value *ret)
{
    enum value_kind kind = type_dims(target) > 0 ? VALUE_OBJECT : kind_of_type(target);
    bool primitive = type_primitive(target);
    *ret = v;
    if (v.kind == VALUE_NULL)
        return !primitive || run_throw(run, CLASS_NULL_POINTER_EXCEPTION,
                                       "Cannot invoke \"Object.getClass()\" because \"value\" is null");
    if (target == CLASS_DEF || target == CLASS_OBJECT)
        return true;
    if (target == CLASS_STRING)
        return def_to_text(run, v, explicit, ret);
    if (kind == VALUE_OBJECT)
        return value_instance_of(v, target) || cast_fails(run, v, target);
    if (kind == VALUE_BOOLEAN) {
        if (v.kind == VALUE_BOOLEAN)
            return true;
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "cannot cast def [%s] to %s", name_of(unboxed_type(v)).text,
                         name_of(target).text);
    }
    if (kind == VALUE_CHAR && explicit && value_is(v, CLASS_STRING))
        return text_to_char(run, v, ret);
    bool number = value_is_numeric(v) || (explicit && value_number(v));
    if (number && (explicit || widens_to(v.kind, kind))) {
        *ret = number_cast(run, v, kind);
        return true;
    }
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "cannot %s cast def [%s] to %s",
                     explicit ? "explicitly" : "implicitly", name_of(unboxed_type(v)).text, name_of(target).text);
}

bool convert_site(struct run *run, struct value v, type_id target, struct value *ret)
{
    *ret = v;
    if (target == CLASS_DEF || target == CLASS_OBJECT)
        return true;
    if (!type_primitive(target)) {
        if (v.kind == VALUE_NULL || value_instance_of(v, target))
            return true;
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot cast %s to %s", java_of(value_type(v)).text,
                         java_of(target).text);
    }
    if (v.kind == VALUE_NULL)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION,
                         "Cannot invoke \"java.lang.Number.intValue()\" because the value is null");
    enum value_kind kind = kind_of_type(target);
    if (v.kind == VALUE_OBJECT)
        return cast_fails(run, v, CLASS_NUMBER);
    if (widens_to(v.kind, kind)) {
        *ret = kind == v.kind ? v : number_cast(run, v, kind);
        return true;
    }
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot cast %s to %s", java_of(value_type(v)).text,
                     java_of(type_boxed(target)).text);
}

bool convert_typed(struct run *run, struct value v, type_id from, type_id target, struct value *ret)
{
    *ret = v;
    if (target == CLASS_DEF || target == CLASS_OBJECT)
        return true;
    enum value_kind kind = type_dims(target) > 0 ? VALUE_OBJECT : kind_of_type(target);
    if (from == CLASS_CHAR && target == CLASS_STRING) {
        *ret = value_of(value_to_text(run, v));
        return ret->kind != VALUE_NULL;
    }
    if (from == CLASS_STRING && kind == VALUE_CHAR) {
        if (v.kind == VALUE_NULL)
            return run_throw_npe(run, "String.length()");
        return text_to_char(run, v, ret);
    }
    if (kind == VALUE_OBJECT || kind == VALUE_BOOLEAN) {
        if (v.kind == VALUE_NULL)
            return !type_primitive(target) || run_throw_npe(run, "java.lang.Boolean.booleanValue()");
        return value_instance_of(v, target) || cast_fails(run, v, target);
    }
    if (v.kind == VALUE_NULL)
        return !type_primitive(target) || run_throw_npe(run, "java.lang.Number.intValue()");
    if (!value_is_numeric(v) && !value_number(v))
        return cast_fails(run, v, type_boxed(target));
    *ret = number_cast(run, v, kind);
    return true;
}

/* Groovy */

bool convert_truth(struct run *run, struct value v, bool *ret)
{
    v = value_plain(v);
    if (v.kind != VALUE_OBJECT) {
        *ret = value_floating(v) ? v.d != 0 : v.kind != VALUE_NULL && v.i != 0;
        return true;
    }
    if (value_is(v, CLASS_STRING) || value_is_array(v) || value_is_map(v) || value_instance_of(v, CLASS_COLLECTION))
        *ret = values_count(v) > 0;
    else if (value_is(v, CLASS_BIG_INTEGER))
        *ret = ((const struct big *)v.object)->count > 0;
    else if (value_is(v, CLASS_BIG_DECIMAL))
        *ret = ((const struct decimal *)v.object)->unscaled->count > 0;
    else if (value_is(v, CLASS_STRING_BUILDER) || value_is(v, CLASS_STRING_BUFFER))
        *ret = ((const struct builder *)v.object)->buf.length > 0;
    else if (value_is(v, CLASS_MATCHER)) {
        struct regex_matcher copy = *(const struct regex_matcher *)v.object;
        return regex_matcher_find(run, &copy, ret);
    } else if (value_is(v, CLASS_CURSOR))
        *ret = iter_has_next(&((const struct cursor *)v.object)->iter);
    else
        *ret = true;
    return true;
}

static bool groovy_cast_fails(struct run *run, struct value v, type_id target)
{
    struct text *text = value_to_text(run, v);
    if (text == NULL)
        return false;
    bool null_primitive = v.kind == VALUE_NULL && type_primitive(target);
    char own[TYPE_NAME_MAX] = "null";
    if (v.kind != VALUE_NULL)
        type_java_name(value_type(v), own);
    struct slice shown = text_utf8(run, text);
    return run_throw(run, CLASS_GROOVY_CAST_EXCEPTION, "Cannot cast object '%.*s' with class '%s' to class '%s'%s%s%s",
                     SLICE_ARG(shown), own, java_of(target).text, null_primitive ? ". Try '" : "",
                     null_primitive ? java_of(type_boxed(target)).text : "", null_primitive ? "' instead" : "");
}

/*
 * Converts a text to a number, which only `as` allows; a text of one character converts to its
 * code.
 */
static bool text_to_number(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    const struct text *text = (const struct text *)v.object;
    enum value_kind kind = kind_of_type(target);
    if (!coerce || kind == VALUE_CHAR) {
        if (coerce ? text->length == 0 : text->length != 1)
            return groovy_cast_fails(run, v, target);
        *ret = number_cast(run, value_char(text_at(text, 0)), kind);
        return true;
    }
    struct slice digits = text_utf8(run, text);
    run_charge(run, digits.len);
    double d;
    int64_t i;
    if (kind == VALUE_FLOAT || kind == VALUE_DOUBLE) {
        if (!number_parse_double(digits, &d))
            return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(digits));
        *ret = kind == VALUE_FLOAT ? value_float(d) : value_double(d);
        return true;
    }
    bool fits = number_parse_i64(digits, 10, kind == VALUE_LONG ? INT64_MIN : INT32_MIN,
                                 kind == VALUE_LONG ? INT64_MAX : INT32_MAX, &i);
    if (!fits)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(digits));
    *ret = number_cast(run, value_long(i), kind);
    return true;
}

/* A cast or assignment calls the class's constructor with the elements, or with the map. */
static bool construct_fails(struct run *run, struct value v, type_id target)
{
    struct slice types = SLICE_LIT(""), values;
    struct seq *arguments = value_is_map(v) ? NULL : values_to_seq(run, v, CLASS_ARRAY_LIST);
    struct text_buf shown;
    char own[TYPE_NAME_MAX];
    if (arguments == NULL && !value_is_map(v))
        return false;
    if (value_is_map(v) ? !groovy_show_arguments(run, &v, 1, &types, &values)
                        : !groovy_show_arguments(run, arguments->items, arguments->count, &types, &values))
        return false;
    text_buf_init(&shown, run);
    bool groovy = run->groovy;
    run->groovy = false; /* this message is Java's */
    bool ok = value_append(run, v, &shown);
    run->groovy = groovy;
    struct text *text = ok ? text_buf_done(&shown) : NULL;
    return text != NULL &&
           run_throw(
               run, CLASS_GROOVY_CAST_EXCEPTION,
               "Cannot cast object '%.*s' with class '%s' to class '%s' due to: groovy.lang.GroovyRuntimeException: "
               "Could not find matching constructor for: %s(%.*s)",
               SLICE_ARG(text_utf8(run, text)), type_java_name(value_type(v), own), java_of(target).text,
               java_of(target).text, SLICE_ARG(types));
}

static bool to_set(struct run *run, struct value v, type_id target, struct value *ret)
{
    bool open = target == CLASS_SET || target == CLASS_COLLECTION;
    struct dict *dict = dict_new(run, open                         ? CLASS_LINKED_HASH_SET
                                      : target == CLASS_SORTED_SET ? CLASS_TREE_SET
                                                                   : type_class(target));
    struct seq *seq = values_to_seq(run, v, CLASS_ARRAY_LIST);
    *ret = value_of(dict);
    for (size_t i = 0; seq != NULL && i < seq->count; i++) {
        bool added;
        if (!dict_add(run, dict, seq_item(seq, i), &added))
            return false;
    }
    return seq != NULL;
}

/*
 * `as` converts between all collections, and from a text's characters. Without it only sets, and
 * lists of arrays, are created.
 */
static bool to_collection(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    bool listed = value_instance_of(v, CLASS_COLLECTION) || value_is_array(v);
    bool set = type_assignable(CLASS_SET, target);
    if (value_is_map(v) && !coerce)
        return construct_fails(run, v, target);
    if (!listed && !(coerce && value_is(v, CLASS_STRING)))
        return groovy_cast_fails(run, v, target);
    bool makes = coerce || target == CLASS_SET || target == CLASS_LINKED_HASH_SET || (value_is_array(v) && !set);
    if (!makes)
        return construct_fails(run, v, target);
    if (set)
        return to_set(run, v, target, ret);
    bool linked = target == CLASS_LINKED_LIST || target == CLASS_QUEUE || target == CLASS_DEQUE;
    *ret = value_of(values_to_seq(run, v,
                                  linked                        ? CLASS_LINKED_LIST
                                  : target == CLASS_STACK       ? CLASS_STACK
                                  : target == CLASS_ARRAY_DEQUE ? CLASS_ARRAY_DEQUE
                                                                : CLASS_ARRAY_LIST));
    return ret->kind != VALUE_NULL;
}

/* `as` copies a map into one of another class. */
static bool to_map(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    bool listed = value_instance_of(v, CLASS_COLLECTION) || value_is_array(v);
    if (!coerce && listed)
        return construct_fails(run, v, target);
    if (!value_is_map(v) || !coerce || class_infos[type_class(target)].kind == CLASS_KIND_I)
        return groovy_cast_fails(run, v, target);
    struct dict *dict = dict_new(run, type_class(target));
    *ret = value_of(dict);
    return dict_put_all(run, dict, (struct dict *)v.object);
}

static bool to_array(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    struct seq *seq = values_to_seq(run, v, CLASS_ARRAY_LIST);
    struct array *array = seq == NULL ? NULL : array_new(run, type_element(target), seq->count);
    if (array == NULL)
        return false;
    *ret = value_of(array);
    for (size_t i = 0; i < seq->count; i++)
        if (!convert_groovy(run, seq_item(seq, i), type_element(target), coerce, &array->items[i]))
            return false;
    return true;
}

static bool to_boxed(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    enum value_kind kind = kind_of_type(target);
    if (kind == VALUE_BOOLEAN) {
        bool truth;
        if (!convert_truth(run, v, &truth))
            return false;
        *ret = value_boolean(truth);
        return true;
    }
    if (v.kind == VALUE_NULL && type_primitive(target) && coerce)
        return run_throw_npe(run, "java.lang.Integer.intValue()");
    if (v.kind == VALUE_NULL)
        return type_primitive(target) ? groovy_cast_fails(run, v, target) : true;
    if (value_is(v, CLASS_STRING))
        return text_to_number(run, v, target, coerce, ret);
    if (!value_number(v) && v.kind != VALUE_CHAR)
        return groovy_cast_fails(run, v, coerce ? type_boxed(target) : target);
    *ret = number_cast(run, v, kind);
    return true;
}

static bool to_big(struct run *run, struct value v, type_id target, struct value *ret)
{
    if (value_is(v, CLASS_STRING)) {
        struct slice digits = text_utf8(run, (const struct text *)v.object);
        struct decimal *decimal = decimal_from_slice(run, digits);
        if (decimal == NULL && target == CLASS_BIG_DECIMAL)
            return decimal_refuse(run, digits);
        if (decimal == NULL || (target == CLASS_BIG_INTEGER && decimal->scale != 0))
            return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(digits));
        v = value_of(decimal);
    }
    if (!value_number(v))
        return groovy_cast_fails(run, v, target);
    /* A fraction is converted with all of its digits. */
    if (value_floating(v) && target == CLASS_BIG_DECIMAL && isfinite(v.d)) {
        char digits[1500];
        int len = snprintf(digits, sizeof digits, "%.1074f", v.d);
        while (len > 2 && digits[len - 1] == '0')
            len--;
        *ret = value_of(decimal_from_slice(run, slice_make(digits, (size_t)(digits[len - 1] == '.' ? len - 1 : len))));
        return ret->kind != VALUE_NULL;
    }
    *ret = target == CLASS_BIG_INTEGER ? value_of(number_to_big(run, v)) : value_of(number_to_decimal(run, v));
    return run->thrown == NULL;
}

bool convert_groovy(struct run *run, struct value v, type_id target, bool coerce, struct value *ret)
{
    *ret = v;
    if (target == TYPE_NONE || target == CLASS_DEF || target == CLASS_OBJECT)
        return true;
    v = value_plain(v);
    *ret = v;
    if (type_dims(target) == 0 && kind_of_type(target) != VALUE_OBJECT)
        return to_boxed(run, v, target, coerce, ret);
    if (v.kind == VALUE_NULL || value_instance_of(v, target))
        return true;
    if (type_dims(target) > 0) {
        bool listed =
            value_instance_of(v, CLASS_COLLECTION) || value_is_array(v) || (coerce && value_is(v, CLASS_STRING));
        return listed ? to_array(run, v, target, coerce, ret) : groovy_cast_fails(run, v, target);
    }
    if (target == CLASS_STRING) {
        *ret = value_of(value_to_text(run, v));
        return ret->kind != VALUE_NULL;
    }
    if (target == CLASS_BIG_INTEGER || target == CLASS_BIG_DECIMAL)
        return to_big(run, v, target, ret);
    if (target == CLASS_NUMBER && value_is(v, CLASS_STRING))
        return text_to_number(run, v, CLASS_INT_BOX, coerce, ret);
    if (type_assignable(CLASS_COLLECTION, target))
        return to_collection(run, v, target, coerce, ret);
    if (type_assignable(CLASS_MAP, target))
        return to_map(run, v, target, coerce, ret);
    return groovy_cast_fails(run, v, target);
}
