/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's operators (+ - * << and so on) on texts, lists, maps, sets and dates. */
#include "script/run/operate.h"
#include "script/value/text_search.h"

#include "script/value/builder.h"
#include "script/value/function.h"
#include "script/value/iter.h"
#include "script/value/temporal.h"
#include "script/value/regex.h"

static const char *const names[OP_COUNT] = {"plus", "minus",     "multiply",   "div",
                                            "mod",  "leftShift", "rightShift", "rightShiftUnsigned",
                                            "and",  "or",        "xor",        "power"};

/* A null operand of a number's method: the call is ambiguous, or the only method throws on it. */
static bool number_and_null(struct run *run, enum operator op, struct value a)
{
    char name[TYPE_NAME_MAX];
    if (op > OP_DIV)
        return run_throw_npe(run, op == OP_POW ? "java.lang.Number.doubleValue()" : "java.lang.Number.intValue()");
    return run_throw(
        run, CLASS_GROOVY_RUNTIME_EXCEPTION,
        "Ambiguous method overloading for method %s#%s.\nCannot resolve which method to invoke for [null] due to "
        "overlapping prototypes between:\n\t[class java.lang.Character]%s\n\t[class java.lang.Number]",
        type_java_name(value_type(a), name), names[op], op == OP_ADD ? "\n\t[class java.lang.String]" : "");
}

static bool throw_missing_operator(struct run *run, enum operator op, struct value a, struct value b)
{
    char left[TYPE_NAME_MAX], right[TYPE_NAME_MAX] = "null";
    struct text *shown = value_to_text(run, b);
    if (shown == NULL)
        return false;
    if (b.kind != VALUE_NULL)
        type_java_name(value_type(b), right);
    struct slice text = text_utf8(run, shown);
    if (a.kind == VALUE_NULL && op == OP_ADD)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot execute null+%.*s", SLICE_ARG(text));
    if (a.kind == VALUE_NULL)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke method %s() on null object", names[op]);
    if (b.kind == VALUE_NULL && value_number(a))
        return number_and_null(run, op, a);
    return run_throw(run, CLASS_MISSING_METHOD_EXCEPTION,
                     "No signature of method: %s.%s() is applicable for argument types: (%s) values: [%.*s]",
                     type_java_name(value_type(a), left), names[op], right, SLICE_ARG(text));
}

/* Removes the first occurrence. */
static bool text_minus(struct run *run, struct text *text, struct value b, struct value *ret)
{
    struct text *part = value_to_text(run, b);
    int64_t at = part == NULL ? -1 : text_index(run, text, part, 0);
    *ret = value_of(text);
    if (part == NULL || at < 0)
        return part != NULL;
    struct text *head = text_substring(run, text, 0, (size_t)at);
    struct text *tail = head == NULL ? NULL : text_substring(run, text, (size_t)at + part->length, text->length);
    *ret = value_of(tail == NULL ? NULL : text_concat(run, head, tail));
    return ret->kind != VALUE_NULL;
}

static bool text_times(struct run *run, struct text *text, int64_t count, struct value *ret)
{
    struct text_buf out;
    if (count < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "multiply() should be called with a number of 0 or greater not: %lld", (long long)count);
    text_buf_init(&out, run);
    for (int64_t i = 0; i < count && !out.failed; i++) {
        if (!run_step(run, 1))
            return false;
        text_buf_text(&out, text);
    }
    *ret = value_of(text_buf_done(&out));
    return ret->kind != VALUE_NULL;
}

static bool text_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct text *text = (struct text *)a.object;
    if (op == OP_ADD)
        return operate__concat(run, a, b, ret);
    if (op == OP_SUB)
        return text_minus(run, text, b, ret);
    if (op == OP_MUL && value_number(b))
        return text_times(run, text, number_to_i64(b), ret);
    if (op == OP_SHL) {
        struct builder *builder = run_object(run, sizeof *builder, CLASS_STRING_BUFFER);
        text_buf_init(&builder->buf, run);
        text_buf_text(&builder->buf, text);
        *ret = value_of(builder);
        return value_append(run, b, &builder->buf);
    }
    return throw_missing_operator(run, op, a, b);
}

static bool contained_in(struct run *run, struct value list, struct value item, bool *ret)
{
    struct iter iter;
    *ret = false;
    if (!iter_init(&iter, run, list))
        return operate_equal(run, list, item, ret);
    walk(&iter, one)
    {
        if (!operate_equal(run, one, item, ret))
            return false;
        if (*ret)
            return true;
    }
    return run->thrown == NULL;
}

static bool add_each(struct run *run, struct seq *seq, struct value more)
{
    struct iter iter;
    if (!value_instance_of(more, CLASS_ITERABLE) || !iter_init(&iter, run, more))
        return seq_add(run, seq, more);
    walk(&iter, item)
    {
        if (!seq_add(run, seq, item))
            return false;
    }
    return run->thrown == NULL;
}

static bool list_minus(struct run *run, struct value a, struct value b, struct value *ret)
{
    struct seq *rest = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct iter iter;
    *ret = value_of(rest);
    iter_init(&iter, run, a);
    bool many = value_instance_of(b, CLASS_COLLECTION);
    walk(&iter, item)
    {
        bool gone;
        if (!(many ? contained_in(run, b, item, &gone) : operate_equal(run, b, item, &gone)) ||
            (!gone && !seq_add(run, rest, item)))
            return false;
    }
    return run->thrown == NULL;
}

static bool list_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct seq *sum;
    if (op == OP_SHL) {
        *ret = a;
        return seq_add(run, (struct seq *)a.object, b);
    }
    if (op == OP_SUB)
        return list_minus(run, a, b, ret);
    if (op == OP_ADD) {
        sum = values_to_seq(run, a, CLASS_ARRAY_LIST);
        *ret = value_of(sum);
        return sum != NULL && add_each(run, sum, b);
    }
    if (op == OP_MUL && value_number(b)) {
        sum = seq_new(run, CLASS_ARRAY_LIST, 0);
        *ret = value_of(sum);
        for (int64_t i = 0; i < number_to_i64(b); i++)
            if (!run_step(run, 1) || !add_each(run, sum, a))
                return false;
        return true;
    }
    return throw_missing_operator(run, op, a, b);
}

static bool map_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct map_entry *gone;
    if (op == OP_SHL && value_is_map(b)) {
        *ret = a;
        return dict_put_all(run, (struct dict *)a.object, (struct dict *)b.object);
    }
    if (op == OP_SHL && value_instance_of(b, CLASS_MAP_ENTRY)) {
        const struct map_entry *entry = (const struct map_entry *)b.object;
        *ret = a;
        return dict_put(run, (struct dict *)a.object, entry->key, entry->value, NULL);
    }
    if ((op != OP_ADD && op != OP_SUB) || !value_is_map(b))
        return throw_missing_operator(run, op, a, b);
    struct dict *sum = dict_new(run, CLASS_LINKED_HASH_MAP);
    if (!dict_put_all(run, sum, (struct dict *)a.object))
        return false;
    *ret = value_of(sum);
    struct dict *other = (struct dict *)b.object;
    if (op == OP_ADD)
        return dict_put_all(run, sum, other);
    for (struct map_entry *entry = dict_first(other); entry != NULL; entry = dict_next(other, entry)) {
        struct map_entry *mine;
        bool same = false;
        if (!dict_find(run, sum, entry->key, &mine) ||
            (mine != NULL && !operate_equal(run, mine->value, entry->value, &same)) ||
            (same && !dict_remove(run, sum, entry->key, &gone)))
            return false;
    }
    return true;
}

static bool set_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    struct dict *set = op == OP_SHL ? (struct dict *)a.object : dict_new(run, (enum class_id)a.object->class);
    struct iter iter;
    struct value sources[2] = {op == OP_SHL ? VALUE_NONE : a, b};
    *ret = value_of(set);
    if (op != OP_ADD && op != OP_SHL && op != OP_SUB)
        return throw_missing_operator(run, op, a, b);
    for (unsigned i = 0; i < 2; i++) {
        bool added, gone = false;
        if (i == 1 && op == OP_SUB)
            break;
        if (i == 1 && (op == OP_SHL || !value_instance_of(b, CLASS_COLLECTION)))
            return dict_add(run, set, b, &added);
        if (!iter_init(&iter, run, sources[i]))
            continue;
        walk(&iter, item)
        {
            if (op == OP_SUB && !contained_in(run, b, item, &gone))
                return false;
            if (!gone && !dict_add(run, set, item, &added))
                return false;
        }
    }
    return run->thrown == NULL;
}

static bool date_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    const struct temporal *date = (const struct temporal *)a.object;
    if (op == OP_SUB && value_is(b, CLASS_DATE)) {
        *ret = value_int((date->seconds - ((const struct temporal *)b.object)->seconds) / 86400);
        return true;
    }
    if ((op != OP_ADD && op != OP_SUB) || !value_number(b))
        return throw_missing_operator(run, op, a, b);
    int64_t days = op == OP_ADD ? number_to_i32(b) : -(int64_t)number_to_i32(b);
    *ret = value_of(temporal_new(run, CLASS_DATE, date->seconds + days * 86400, date->nanos));
    return true;
}

bool operate__groovy(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    a = value_plain(a);
    if (value_is(a, CLASS_STRING) || !value_instance_of(a, CLASS_COLLECTION)) /* collections take it as it is */
        b = value_plain(b);
    bool a_number = value_number(a) || a.kind == VALUE_CHAR, b_number = value_number(b) || b.kind == VALUE_CHAR;
    if (a_number && b_number)
        return number_binary_groovy(run, op, a, b, ret);
    if (value_is(a, CLASS_STRING))
        return text_binary(run, op, a, b, ret);
    bool joins = a.kind == VALUE_NULL || value_number(a) || value_is(a, CLASS_STRING_BUILDER) ||
                 value_is(a, CLASS_STRING_BUFFER);
    if (op == OP_ADD && joins && value_is(b, CLASS_STRING))
        return operate__concat(run, a, b, ret);
    if (value_is(a, CLASS_CLOSURE) && value_is(b, CLASS_CLOSURE) && (op == OP_SHL || op == OP_SHR)) {
        *ret = op == OP_SHR ? function_then(run, a, b) : function_then(run, b, a);
        return true;
    }
    if (a.kind == VALUE_BOOLEAN && b.kind == VALUE_BOOLEAN && op >= OP_AND && op <= OP_XOR) {
        *ret = value_boolean(op == OP_AND ? a.i & b.i : op == OP_OR ? a.i | b.i : a.i ^ b.i);
        return true;
    }
    if (value_is_seq(a))
        return list_binary(run, op, a, b, ret);
    if (value_is_map(a))
        return map_binary(run, op, a, b, ret);
    if (value_is_set(a))
        return set_binary(run, op, a, b, ret);
    if (value_is(a, CLASS_DATE))
        return date_binary(run, op, a, b, ret);
    if ((value_is(a, CLASS_STRING_BUILDER) || value_is(a, CLASS_STRING_BUFFER)) && op == OP_SHL) {
        *ret = a;
        return value_append(run, b, &((struct builder *)a.object)->buf);
    }
    return throw_missing_operator(run, op, a, b);
}
