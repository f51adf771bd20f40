/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Object, Objects, throwables, optionals, Locale, System and Debug. */
#include "script/library/method_args.h"

#include "script/run/convert.h"
#include "script/run/invoke.h"
#include "script/run/operate.h"

static bool object_equals(struct call *call, struct value *ret)
{
    bool equal;
    return value_equals(call->run, call->self, call->args[0], &equal) && give_boolean(ret, equal);
}

static bool object_hash_code(struct call *call, struct value *ret)
{
    int32_t hash;
    return value_hash(call->run, call->self, &hash) && give_int(ret, hash);
}

static bool object_to_string(struct call *call, struct value *ret)
{
    return give(ret, value_to_text(call->run, call->self));
}

static bool object_new(struct call *call, struct value *ret)
{
    return give(ret, run_object(call->run, sizeof(struct object), CLASS_OBJECT));
}

static bool object_get_class(struct call *call, struct value *ret)
{
    struct class_object *object = run_object(call->run, sizeof *object, CLASS_CLASS);
    object->type = value_type(call->self);
    return give(ret, object);
}

static bool object_is(struct call *call, struct value *ret)
{
    bool same;
    return operate_compare(call->run, COMPARE_SAME, call->self, call->args[0], &same) && give_boolean(ret, same);
}

static const struct method_row object_methods[] = {
    {"boolean equals(Object)", BOTH, object_equals}, {"int hashCode()", BOTH, object_hash_code},
    {"String toString()", BOTH, object_to_string},   {"Class getClass()", GROOVY, object_get_class},
    {"boolean is(Object)", GROOVY, object_is},       {"new Object()", GROOVY, object_new},
};

/* Class */

static bool class_name_of(struct call *call, struct value *ret)
{
    bool simple = call->row->datum.number != 0;
    char name[TYPE_NAME_MAX];
    type_id type = ((struct class_object *)call->self.object)->type;
    const char *shown = simple ? type_name(type, name) : type_java_name(type, name);
    const char *last = simple ? strrchr(shown, '.') : NULL;
    return give_slice(call->run, ret, slice_from(last == NULL ? shown : last + 1));
}

static bool class_is_instance(struct call *call, struct value *ret)
{
    return give_boolean(ret, value_instance_of(call->args[0], ((struct class_object *)call->self.object)->type));
}

static const struct method_row class_methods[] = {
    {"String getName()", GROOVY, class_name_of, {false}},
    {"String getSimpleName()", GROOVY, class_name_of, {true}},
    {"boolean isInstance(Object)", GROOVY, class_is_instance},
};

/* Throwables */

static bool throwable_new(struct call *call, struct value *ret)
{
    struct throwable *thrown =
        run_object(call->run, sizeof *thrown, type_class(((struct class_object *)call->self.object)->type));
    thrown->offset = -1;
    if (call->count == 2)
        thrown->cause = (struct throwable *)(call->args[1].kind == VALUE_NULL ? NULL : call->args[1].object);
    *ret = value_of(thrown);
    if (call->count == 0 || call->args[0].kind == VALUE_NULL)
        return true;
    thrown->message = value_to_text(call->run, call->args[0]);
    return thrown->message != NULL;
}

static bool throwable_message(struct call *call, struct value *ret)
{
    *ret = value_of(((struct throwable *)call->self.object)->message);
    return true;
}

static bool throwable_cause(struct call *call, struct value *ret)
{
    *ret = value_of(((struct throwable *)call->self.object)->cause);
    return true;
}

static const struct method_row throwable_methods[] = {
    {"new Throwable()", BOTH, throwable_new},
    {"new Throwable(String)", BOTH, throwable_new},
    {"new Throwable(String, Throwable)", GROOVY, throwable_new},
    {"String getMessage()", BOTH, throwable_message},
    {"String getLocalizedMessage()", BOTH, throwable_message},
    {"Throwable getCause()", GROOVY, throwable_cause},
};

/* Objects */

static bool objects_equals(struct call *call, struct value *ret)
{
    return object_equals(&(struct call){call->run, call->row, call->args[0], call->args + 1, call->count}, ret);
}

static bool objects_hash_code(struct call *call, struct value *ret)
{
    return object_hash_code(&(struct call){call->run, call->row, call->args[0], call->args + 1, call->count}, ret);
}

static bool objects_hash(struct call *call, struct value *ret)
{
    uint32_t hash = 1;
    NOT_NULL(0);
    const struct array *array = (struct array *)call->args[0].object;
    for (size_t i = 0; i < array->count; i++) {
        int32_t one;
        if (!run_step(call->run, 1) || !value_hash(call->run, array->items[i], &one))
            return false;
        hash = hash * 31 + (uint32_t)one;
    }
    return give_int(ret, (int32_t)hash);
}

static bool objects_is_null(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].kind == VALUE_NULL);
}

static bool objects_non_null(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].kind != VALUE_NULL);
}

static bool objects_require_non_null(struct call *call, struct value *ret)
{
    *ret = call->args[0];
    if (call->args[0].kind != VALUE_NULL)
        return true;
    if (call->count == 2 && call->args[1].kind != VALUE_NULL)
        return run_throw_text(call->run, CLASS_NULL_POINTER_EXCEPTION, text_of(call->args[1]));
    return run_throw_null(call->run, CLASS_NULL_POINTER_EXCEPTION);
}

static bool objects_to_string(struct call *call, struct value *ret)
{
    if (call->count == 2 && call->args[0].kind == VALUE_NULL) {
        *ret = call->args[1];
        return true;
    }
    return give(ret, value_to_text(call->run, call->args[0]));
}

static const struct method_row objects_methods[] = {
    {"static boolean equals(Object, Object)", BOTH, objects_equals},
    {"static int hash(Object[])", BOTH, objects_hash},
    {"static int hashCode(Object)", BOTH, objects_hash_code},
    {"static boolean isNull(Object)", BOTH, objects_is_null},
    {"static boolean nonNull(Object)", BOTH, objects_non_null},
    {"static def requireNonNull(def)", BOTH, objects_require_non_null},
    {"static def requireNonNull(def, String)", BOTH, objects_require_non_null},
    {"static String toString(Object)", BOTH, objects_to_string},
    {"static String toString(Object, String)", BOTH, objects_to_string},
};

/* Optionals: lists with at most one value */

static bool optional_make(struct run *run, enum class_id id, const struct value *value, struct value *ret)
{
    struct seq *seq = seq_new(run, id, 1);
    return seq != NULL && (value == NULL || seq_add(run, seq, *value)) && give(ret, seq);
}

static bool optional_of(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return optional_make(call->run, CLASS_OPTIONAL, &call->args[0], ret);
}

static bool optional_of_nullable(struct call *call, struct value *ret)
{
    return optional_make(call->run, CLASS_OPTIONAL, call->args[0].kind == VALUE_NULL ? NULL : &call->args[0], ret);
}

static bool optional_empty(struct call *call, struct value *ret)
{
    return optional_make(call->run, CLASS_OPTIONAL, NULL, ret);
}

static bool optional_is_present(struct call *call, struct value *ret)
{
    return give_boolean(ret, seq_of(call->self)->count > 0);
}

static bool optional_get(struct call *call, struct value *ret)
{
    if (seq_of(call->self)->count == 0)
        return run_throw(call->run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "No value present");
    *ret = seq_item(seq_of(call->self), 0);
    return true;
}

static bool optional_or_else(struct call *call, struct value *ret)
{
    *ret = seq_of(call->self)->count > 0 ? seq_item(seq_of(call->self), 0) : call->args[0];
    return true;
}

static bool optional_or_else_get(struct call *call, struct value *ret)
{
    return seq_of(call->self)->count > 0
               ? optional_get(&(struct call){call->run, call->row, call->self, call->args, 0}, ret)
               : run_invoke(call->run, call->args[0], NULL, 0, ret);
}

static bool optional_or_else_throw(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct value thrown;
    if (seq_of(call->self)->count > 0)
        return optional_get(&(struct call){run, call->row, call->self, call->args, 0}, ret);
    if (!run_invoke(run, call->args[0], NULL, 0, &thrown))
        return false;
    if (!value_instance_of(thrown, CLASS_THROWABLE))
        return run_throw_npe(run, "throw");
    run->thrown = (struct throwable *)thrown.object;
    return false;
}

static bool optional_if_present(struct call *call, struct value *ret)
{
    struct value item = seq_item(seq_of(call->self), 0);
    return (seq_of(call->self)->count == 0 || run_invoke(call->run, call->args[0], &item, 1, ret)) && give_nothing(ret);
}

static bool optional_map(struct call *call, struct value *ret)
{
    struct value item = seq_item(seq_of(call->self), 0);
    if (seq_of(call->self)->count == 0)
        return give(ret, call->self.object);
    return run_invoke(call->run, call->args[0], &item, 1, &item) &&
           optional_make(call->run, CLASS_OPTIONAL, item.kind == VALUE_NULL ? NULL : &item, ret);
}

static bool optional_filter(struct call *call, struct value *ret)
{
    struct value item = seq_item(seq_of(call->self), 0);
    bool holds = true;
    if (seq_of(call->self)->count > 0 && !invoke_test(call->run, call->args[0], &item, 1, &holds))
        return false;
    return holds ? give(ret, call->self.object) : optional_make(call->run, CLASS_OPTIONAL, NULL, ret);
}

static const struct method_row optional_methods[] = {
    {"static Optional empty()", BOTH, optional_empty},
    {"static Optional of(def)", BOTH, optional_of},
    {"static Optional ofNullable(def)", BOTH, optional_of_nullable},
    {"Optional filter(Predicate)", BOTH, optional_filter},
    {"def get()", BOTH, optional_get},
    {"void ifPresent(Consumer)", BOTH, optional_if_present},
    {"boolean isPresent()", BOTH, optional_is_present},
    {"Optional map(Function)", BOTH, optional_map},
    {"def orElse(def)", BOTH, optional_or_else},
    {"def orElseGet(Supplier)", BOTH, optional_or_else_get},
    {"def orElseThrow(Supplier)", BOTH, optional_or_else_throw},
};

static const struct method_row optional_int_methods[] = {
    {"int getAsInt()", BOTH, optional_get},
    {"boolean isPresent()", BOTH, optional_is_present},
    {"int orElse(int)", BOTH, optional_or_else},
    {"int orElseGet(IntSupplier)", BOTH, optional_or_else_get},
};
static const struct method_row optional_long_methods[] = {
    {"long getAsLong()", BOTH, optional_get},
    {"boolean isPresent()", BOTH, optional_is_present},
    {"long orElse(long)", BOTH, optional_or_else},
    {"long orElseGet(LongSupplier)", BOTH, optional_or_else_get},
};
static const struct method_row optional_double_methods[] = {
    {"double getAsDouble()", BOTH, optional_get},
    {"boolean isPresent()", BOTH, optional_is_present},
    {"double orElse(double)", BOTH, optional_or_else},
    {"double orElseGet(DoubleSupplier)", BOTH, optional_or_else_get},
};

/* Gives the command's time, which is the same on every host and in every replay (invariant 1). */
static bool system_millis(struct call *call, struct value *ret)
{
    return give_long(ret, call->run->now_ms);
}

static const struct method_row system_methods[] = {
    {"static long currentTimeMillis()", BOTH, system_millis},
};

static bool locale_any(struct call *call, struct value *ret)
{
    return give(ret, run_object(call->run, sizeof(struct object), CLASS_LOCALE));
}

static const struct method_row locale_methods[] = {
    {"static Locale ROOT", BOTH, locale_any},
    {"static Locale ENGLISH", BOTH, locale_any},
    {"static Locale US", BOTH, locale_any},
    {"static Locale UK", BOTH, locale_any},
};

static bool debug_explain(struct call *call, struct value *ret)
{
    (void)call->count, (void)ret;
    run_throw_null(call->run, CLASS_PAINLESS_EXPLAIN_ERROR);
    call->run->thrown->explained = call->args[0];
    return false;
}

static const struct method_row debug_methods[] = {
    {"static void explain(Object)", PAINLESS, debug_explain},
};

const struct method_table methods_object[] = {
    METHOD_ROWS(OBJECT, object_methods),
    METHOD_ROWS(CLASS, class_methods),
    METHOD_ROWS(THROWABLE, throwable_methods),
    METHOD_ROWS(OBJECTS, objects_methods),
    METHOD_ROWS(OPTIONAL, optional_methods),
    METHOD_ROWS(OPTIONAL_INT, optional_int_methods),
    METHOD_ROWS(OPTIONAL_LONG, optional_long_methods),
    METHOD_ROWS(OPTIONAL_DOUBLE, optional_double_methods),
    METHOD_ROWS(SYSTEM, system_methods),
    METHOD_ROWS(LOCALE, locale_methods),
    METHOD_ROWS(DEBUG, debug_methods),
    {0},
};
