/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Object, Objects, throwables, optionals, Locale, System and Debug. */
#include "script/library/method_args.h"

#include "script/run/convert.h"
#include "script/run/invoke.h"
#include "script/run/operate.h"

static bool object_equals(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool equal;
    return value_equals(run, a[0], a[1], &equal) && give_boolean(ret, equal);
}

static bool object_hash_code(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int32_t hash;
    return value_hash(run, a[0], &hash) && give_int(ret, hash);
}

static bool object_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[0]));
}

static bool object_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return give(ret, run_object(run, sizeof(struct object), CLASS_OBJECT));
}

static bool object_get_class(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct class_object *object = run_object(run, sizeof *object, CLASS_CLASS);
    object->type = value_type(a[0]);
    return give(ret, object);
}

static bool object_is(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool same;
    return operate_compare(run, COMPARE_SAME, a[0], a[1], &same) && give_boolean(ret, same);
}

static const struct method object_methods[] = {
    M1("equals", METHOD_BOTH, BOOLEAN, OBJECT, object_equals),
    M0("hashCode", METHOD_BOTH, INT, object_hash_code),
    M0("toString", METHOD_BOTH, STRING, object_to_string),
    M0("getClass", METHOD_GROOVY, CLASS, object_get_class),
    M1("is", METHOD_GROOVY, BOOLEAN, OBJECT, object_is),
    M0("new", METHOD_GROOVY | METHOD_NEW, OBJECT, object_new),
};

/* Class */

static bool class_name_of(struct run *run, struct value *a, bool simple, struct value *ret)
{
    char name[TYPE_NAME_MAX];
    type_id type = ((struct class_object *)a[0].object)->type;
    const char *shown = simple ? type_name(type, name) : type_java_name(type, name);
    const char *last = simple ? strrchr(shown, '.') : NULL;
    return give_slice(run, ret, slice_from(last == NULL ? shown : last + 1));
}

static bool class_get_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return class_name_of(run, a, false, ret);
}

static bool class_get_simple_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return class_name_of(run, a, true, ret);
}

static bool class_is_instance(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, value_instance_of(a[1], ((struct class_object *)a[0].object)->type));
}

static const struct method class_methods[] = {
    M0("getName", METHOD_GROOVY, STRING, class_get_name),
    M0("getSimpleName", METHOD_GROOVY, STRING, class_get_simple_name),
    M1("isInstance", METHOD_GROOVY, BOOLEAN, OBJECT, class_is_instance),
};

/* Throwables */

static bool throwable_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct throwable *thrown = run_object(run, sizeof *thrown, type_class(((struct class_object *)a[0].object)->type));
    thrown->offset = -1;
    if (n == 2)
        thrown->cause = (struct throwable *)(a[2].kind == VALUE_NULL ? NULL : a[2].object);
    *ret = value_of(thrown);
    if (n == 0 || a[1].kind == VALUE_NULL)
        return true;
    thrown->message = value_to_text(run, a[1]);
    return thrown->message != NULL;
}

static bool throwable_message(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_of(((struct throwable *)a[0].object)->message);
    return true;
}

static bool throwable_cause(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_of(((struct throwable *)a[0].object)->cause);
    return true;
}

static const struct method throwable_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, THROWABLE, throwable_new),
    M1("new", METHOD_BOTH | METHOD_NEW, THROWABLE, STRING, throwable_new),
    M2("new", METHOD_GROOVY | METHOD_NEW, THROWABLE, STRING, THROWABLE, throwable_new),
    M0("getMessage", METHOD_BOTH, STRING, throwable_message),
    M0("getLocalizedMessage", METHOD_BOTH, STRING, throwable_message),
    M0("getCause", METHOD_GROOVY, THROWABLE, throwable_cause),
};

/* Objects */

static bool objects_equals(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return object_equals(run, a + 1, n, ret);
}

static bool objects_hash_code(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return object_hash_code(run, a + 1, n, ret);
}

static bool objects_hash(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    uint32_t hash = 1;
    NEED(1);
    const struct array *array = (struct array *)a[1].object;
    for (size_t i = 0; i < array->count; i++) {
        int32_t one;
        if (!run_step(run, 1) || !value_hash(run, array->items[i], &one))
            return false;
        hash = hash * 31 + (uint32_t)one;
    }
    return give_int(ret, (int32_t)hash);
}

static bool objects_is_null(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].kind == VALUE_NULL);
}

static bool objects_non_null(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].kind != VALUE_NULL);
}

static bool objects_require_non_null(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = a[1];
    if (a[1].kind != VALUE_NULL)
        return true;
    if (n == 2 && a[2].kind != VALUE_NULL)
        return run_throw_text(run, CLASS_NULL_POINTER_EXCEPTION, text_of(a[2]));
    return run_throw_null(run, CLASS_NULL_POINTER_EXCEPTION);
}

static bool objects_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n == 2 && a[1].kind == VALUE_NULL) {
        *ret = a[2];
        return true;
    }
    return give(ret, value_to_text(run, a[1]));
}

static const struct method objects_methods[] = {
    M2("equals", STATIC, BOOLEAN, OBJECT, OBJECT, objects_equals),
    M1("hash", STATIC, INT, OBJECT_ARRAY, objects_hash),
    M1("hashCode", STATIC, INT, OBJECT, objects_hash_code),
    M1("isNull", STATIC, BOOLEAN, OBJECT, objects_is_null),
    M1("nonNull", STATIC, BOOLEAN, OBJECT, objects_non_null),
    M1("requireNonNull", STATIC, DEF, DEF, objects_require_non_null),
    M2("requireNonNull", STATIC, DEF, DEF, STRING, objects_require_non_null),
    M1("toString", STATIC, STRING, OBJECT, objects_to_string),
    M2("toString", STATIC, STRING, OBJECT, STRING, objects_to_string),
};

/* Optionals: lists of none or one value */

static bool optional_make(struct run *run, enum class_id id, const struct value *value, struct value *ret)
{
    struct seq *seq = seq_new(run, id, 1);
    return seq != NULL && (value == NULL || seq_add(run, seq, *value)) && give(ret, seq);
}

static bool optional_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return optional_make(run, CLASS_OPTIONAL, &a[1], ret);
}

static bool optional_of_nullable(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return optional_make(run, CLASS_OPTIONAL, a[1].kind == VALUE_NULL ? NULL : &a[1], ret);
}

static bool optional_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return optional_make(run, CLASS_OPTIONAL, NULL, ret);
}

static bool optional_is_present(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, seq_of(a[0])->count > 0);
}

static bool optional_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (seq_of(a[0])->count == 0)
        return run_throw(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION, "No value present");
    *ret = seq_item(seq_of(a[0]), 0);
    return true;
}

static bool optional_or_else(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = seq_of(a[0])->count > 0 ? seq_item(seq_of(a[0]), 0) : a[1];
    return true;
}

static bool optional_or_else_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return seq_of(a[0])->count > 0 ? optional_get(run, a, 0, ret) : run_invoke(run, a[1], NULL, 0, ret);
}

static bool optional_or_else_throw(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value thrown;
    if (seq_of(a[0])->count > 0)
        return optional_get(run, a, 0, ret);
    if (!run_invoke(run, a[1], NULL, 0, &thrown))
        return false;
    if (!value_instance_of(thrown, CLASS_THROWABLE))
        return run_throw_npe(run, "throw");
    run->thrown = (struct throwable *)thrown.object;
    return false;
}

static bool optional_if_present(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value item = seq_item(seq_of(a[0]), 0);
    return (seq_of(a[0])->count == 0 || run_invoke(run, a[1], &item, 1, ret)) && give_nothing(ret);
}

static bool optional_map(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value item = seq_item(seq_of(a[0]), 0);
    if (seq_of(a[0])->count == 0)
        return give(ret, a[0].object);
    return run_invoke(run, a[1], &item, 1, &item) &&
           optional_make(run, CLASS_OPTIONAL, item.kind == VALUE_NULL ? NULL : &item, ret);
}

static bool optional_filter(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value item = seq_item(seq_of(a[0]), 0);
    bool holds = true;
    if (seq_of(a[0])->count > 0 && !invoke_test(run, a[1], &item, 1, &holds))
        return false;
    return holds ? give(ret, a[0].object) : optional_make(run, CLASS_OPTIONAL, NULL, ret);
}

static const struct method optional_methods[] = {
    M0("empty", STATIC, OPTIONAL, optional_empty),
    M1("of", STATIC, OPTIONAL, DEF, optional_of),
    M1("ofNullable", STATIC, OPTIONAL, DEF, optional_of_nullable),
    M1("filter", METHOD_BOTH, OPTIONAL, PREDICATE, optional_filter),
    M0("get", METHOD_BOTH, DEF, optional_get),
    M1("ifPresent", METHOD_BOTH, VOID, CONSUMER, optional_if_present),
    M0("isPresent", METHOD_BOTH, BOOLEAN, optional_is_present),
    M1("map", METHOD_BOTH, OPTIONAL, FUNCTION, optional_map),
    M1("orElse", METHOD_BOTH, DEF, DEF, optional_or_else),
    M1("orElseGet", METHOD_BOTH, DEF, SUPPLIER, optional_or_else_get),
    M1("orElseThrow", METHOD_BOTH, DEF, SUPPLIER, optional_or_else_throw),
};

#define OPTIONAL_NUMBER(getter, type, supplier)                                                                  \
    {                                                                                                            \
        M0(getter, METHOD_BOTH, type, optional_get), M0("isPresent", METHOD_BOTH, BOOLEAN, optional_is_present), \
            M1("orElse", METHOD_BOTH, type, type, optional_or_else),                                             \
            M1("orElseGet", METHOD_BOTH, type, supplier, optional_or_else_get),                                  \
    }

static const struct method optional_int_methods[] = OPTIONAL_NUMBER("getAsInt", INT, INT_SUPPLIER);
static const struct method optional_long_methods[] = OPTIONAL_NUMBER("getAsLong", LONG, LONG_SUPPLIER);
static const struct method optional_double_methods[] = OPTIONAL_NUMBER("getAsDouble", DOUBLE, DOUBLE_SUPPLIER);

/* The clock is the command's: the same on every host and in every replay (invariant 1). */
static bool system_millis(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return give_long(ret, run->now_ms);
}

static const struct method system_methods[] = {
    M0("currentTimeMillis", STATIC, LONG, system_millis),
};

static bool locale_any(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return give(ret, run_object(run, sizeof(struct object), CLASS_LOCALE));
}

static const struct method locale_methods[] = {
    M0("ROOT", STATIC | METHOD_FIELD, LOCALE, locale_any),
    M0("ENGLISH", STATIC | METHOD_FIELD, LOCALE, locale_any),
    M0("US", STATIC | METHOD_FIELD, LOCALE, locale_any),
    M0("UK", STATIC | METHOD_FIELD, LOCALE, locale_any),
};

static bool debug_explain(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n, (void)ret;
    run_throw_null(run, CLASS_PAINLESS_EXPLAIN_ERROR);
    run->thrown->explained = a[1];
    return false;
}

static const struct method debug_methods[] = {
    M1("explain", METHOD_PAINLESS | METHOD_STATIC, VOID, OBJECT, debug_explain),
};

const struct method_table methods_object[] = {
    METHOD_TABLE(OBJECT, object_methods),
    METHOD_TABLE(CLASS, class_methods),
    METHOD_TABLE(THROWABLE, throwable_methods),
    METHOD_TABLE(OBJECTS, objects_methods),
    METHOD_TABLE(OPTIONAL, optional_methods),
    METHOD_TABLE(OPTIONAL_INT, optional_int_methods),
    METHOD_TABLE(OPTIONAL_LONG, optional_long_methods),
    METHOD_TABLE(OPTIONAL_DOUBLE, optional_double_methods),
    METHOD_TABLE(SYSTEM, system_methods),
    METHOD_TABLE(LOCALE, locale_methods),
    METHOD_TABLE(DEBUG, debug_methods),
    {0, 0, NULL},
};
