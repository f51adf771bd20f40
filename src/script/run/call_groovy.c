/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's calls choose the method of that name with the least distance from the arguments to its parameters.
 *
 * In ascending distance: the same class (a closure for any functional interface), a wider
 * primitive, a supertype, Object. Null fits any reference type. Without a match, a map's entry of
 * that name may be a closure.
 */
#include "script/run/dispatch_groovy.h"

#include "script/run/convert.h"
#include "script/value/seq.h"

/* Distances */

enum { NEAR_EXACT = 0, NEAR_WIDER = 2, NEAR_EXTENDS = 20, NEAR_NULL = 40, NEAR_OBJECT = 60, NEAR_NEVER = -1 };

/* Returns: the position in Java's widening order; 0 for any other type. */
static int width_of(type_id type)
{
    switch (type_unboxed(type)) {
    case CLASS_BYTE: return 1;
    case CLASS_SHORT: return 2;
    case CLASS_INT: return 3;
    case CLASS_LONG: return 4;
    case CLASS_BIG_INTEGER: return 5;
    case CLASS_BIG_DECIMAL: return 6;
    case CLASS_FLOAT: return 7;
    case CLASS_DOUBLE: return 8;
    default: return 0;
    }
}

static int number_distance(type_id given, type_id wanted)
{
    int from = width_of(given), to = width_of(wanted);
    /* A parameter accepts types that widen to its own; float and double also accept a decimal. */
    if (from == 0 || to == 0 || from > to || (from >= 7 && to < 7))
        return NEAR_NEVER;
    return NEAR_WIDER * (to - from) + (wanted == type_unboxed(wanted) ? 0 : 1);
}

int groovy_distance(struct value argument, type_id wanted)
{
    bool any = wanted == CLASS_DEF || wanted == CLASS_OBJECT;
    if (argument.kind == VALUE_NULL)
        return type_primitive(wanted) ? NEAR_NEVER : any ? NEAR_EXACT : NEAR_NULL;
    type_id given = value_type(argument);
    if (any)
        return NEAR_OBJECT;
    if (type_unboxed(given) == type_unboxed(wanted))
        return NEAR_EXACT;
    if (value_is(argument, CLASS_GSTRING) && wanted == CLASS_STRING)
        return NEAR_EXTENDS;
    if (value_is(argument, CLASS_CLOSURE))
        return type_dims(wanted) == 0 && class_infos[type_class(wanted)].kind == CLASS_KIND_F ? NEAR_EXACT : NEAR_NEVER;
    if (argument.kind == VALUE_CHAR && wanted >= CLASS_INT && wanted <= CLASS_DOUBLE)
        return NEAR_WIDER * (int)(wanted - CLASS_INT + 1);
    int numbers = number_distance(given, wanted);
    if (numbers != NEAR_NEVER)
        return numbers;
    if (type_primitive(wanted))
        return NEAR_NEVER;
    return value_instance_of(argument, wanted) ? NEAR_EXTENDS : NEAR_NEVER;
}

/* Returns: the sum over all arguments; NEAR_NEVER if one does not fit. */
static int method_distance(const struct method *method, const struct value *arguments, unsigned count,
                           uint32_t as_object)
{
    bool rest = (method->flags & METHOD_REST) != 0;
    if (rest ? count + 1 < method->count : count != method->count)
        return NEAR_NEVER;
    int sum = rest ? NEAR_OBJECT : 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i < method->count ? i : method->count - 1u;
        type_id wanted = method->parameters[at];
        int one = groovy_distance(arguments[i + 1], wanted);
        bool refused = i < 32 && (as_object >> i & 1) && wanted != CLASS_DEF && wanted != CLASS_OBJECT;
        if (one == NEAR_NEVER || refused)
            return NEAR_NEVER;
        sum += one;
    }
    return sum;
}

/*
 * Returns: the row of `query` that fits the arguments best; NULL if none fits. arguments[1] is the first argument; the
 * query's count is ignored.
 */
static const struct method *select_method(struct run *run, const struct method_lookup *query,
                                          const struct value *arguments, unsigned count)
{
    const struct method *best = NULL;
    const struct method_rows *found = run_methods(run, query);
    int nearest = 0;
    for (unsigned i = 0; i < found->count; i++) {
        const struct method *method = found->rows[i];
        int here = method_distance(method, arguments, count, query->as_object);
        if (here != NEAR_NEVER && (best == NULL || here < nearest)) {
            best = method;
            nearest = here;
        }
    }
    return best;
}

/*
 * A GString is passed unconverted to a collection that stores or searches it, and to comparisons of
 * objects.
 */
static void fill_in(const struct method *method, struct value *arguments, unsigned count)
{
    bool holds = value_instance_of(arguments[0], CLASS_COLLECTION) || value_is_map(arguments[0]);
    for (unsigned i = 0; i < count; i++) {
        type_id wanted = method->parameters[i < method->count ? i : method->count - 1u];
        if (wanted != CLASS_OBJECT && !(wanted == CLASS_DEF && holds))
            arguments[i + 1] = value_plain(arguments[i + 1]);
    }
}

/* A library function does not accept null for an argument that it reads. */
static bool null_passes(const struct method *method, type_id wanted)
{
    if ((method->flags & METHOD_TAKES_NULL) || wanted == CLASS_DEF || wanted == CLASS_OBJECT || wanted == CLASS_CLOSURE)
        return true;
    return type_dims(wanted) == 0 &&
           (class_infos[type_class(wanted)].kind == CLASS_KIND_F || type_unboxed(wanted) != wanted);
}

bool groovy_apply(struct run *run, const struct method *method, struct value *arguments, unsigned count,
                  struct value *ret)
{
    for (unsigned i = 0; i < count; i++) {
        type_id wanted = method->parameters[i < method->count ? i : method->count - 1u];
        if (arguments[i + 1].kind == VALUE_NULL && !null_passes(method, wanted))
            return run_throw_npe(run, "Object.toString()");
    }
    fill_in(method, arguments, count);
    for (unsigned i = 0; i < count && i < method->count; i++) {
        type_id wanted = method->parameters[i];
        bool number = width_of(wanted) > 0 && value_type(arguments[i + 1]) != wanted;
        if (number && !convert_groovy(run, arguments[i + 1], wanted, false, &arguments[i + 1]))
            return false;
    }
    return method_call(method, run, arguments, count, ret);
}

struct value groovy_class_object(struct run *run, type_id type)
{
    struct class_object *object = run_object(run, sizeof *object, CLASS_CLASS);
    object->type = type;
    return value_of(object);
}

/* A call without arguments passes null if the only method of that name has one parameter. */
static const struct method *select_with_null(struct run *run, const struct method_lookup *query,
                                             struct value *arguments)
{
    const struct method_rows *found = run_methods(run, query);
    const struct method *method = found->count == 1 ? found->rows[0] : NULL;
    if (method == NULL || method->count != 1 || type_primitive(method->parameters[0]))
        return NULL;
    arguments[1] = VALUE_NONE;
    return method;
}

static struct slice show_parameters(struct run *run, const struct method *method)
{
    char name[TYPE_NAME_MAX];
    struct slice text = SLICE_LIT("");
    for (unsigned i = 0; i < method->count; i++)
        text = run_printf(run, "%.*s%s%s", SLICE_ARG(text), i > 0 ? ", " : "",
                          type_java_name(method->parameters[i], name));
    return text;
}

/* Throws if several methods have the name and none takes no arguments. Returns: false then. */
static bool too_many(struct run *run, const struct method_lookup *query)
{
    char result[TYPE_NAME_MAX], owner[TYPE_NAME_MAX];
    struct slice list = SLICE_LIT("");
    const struct method *method;
    unsigned count = 0;
    bool makes = (query->flags & METHOD_NEW) != 0;
    struct slice name = makes ? SLICE_LIT("<init>") : query->name;
    const struct method_rows *found = run_methods(run, query);
    for (; count < found->count && (method = found->rows[count]) != NULL; count++)
        list = run_printf(run, "%.*s\n  public %s%s%s#%.*s(%.*s)", SLICE_ARG(list),
                          makes ? "" : type_java_name(method->result, result), makes ? "" : " ",
                          type_java_name((type_id)(query->id == CLASS_ARRAY ? CLASS_OBJECT : query->id), owner),
                          SLICE_ARG(name), SLICE_ARG(show_parameters(run, method)));
    return count < 2 || run_throw(run, CLASS_METHOD_SELECTION_EXCEPTION,
                                  "Could not find which method %.*s() to invoke from this list:%.*s", SLICE_ARG(name),
                                  SLICE_ARG(list));
}

static bool select_and_call(struct run *run, type_id type, unsigned flags, struct slice name, struct value *arguments,
                            unsigned count, struct value *ret, bool *ret_found)
{
    struct method_lookup query = {type_dims(type) > 0 ? CLASS_ARRAY : type_class(type), name, count,
                                  METHOD_GROOVY | flags, run->as_object};
    const struct method *method = select_method(run, &query, arguments, count);
    *ret_found = false;
    if (method != NULL)
        run->as_object = 0;
    if (method == NULL && count == 0) {
        method = select_with_null(run, &query, arguments);
        count = method != NULL;
        if (method == NULL && !too_many(run, &query))
            return false;
    }
    *ret_found = method != NULL;
    return method == NULL || groovy_apply(run, method, arguments, count, ret);
}

/* Null */

/* Null has the methods that Groovy adds to every object. */
static bool call_of_null(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    struct method_lookup query = {CLASS_OBJECT, name, count, METHOD_GROOVY};
    const struct method *method = select_method(run, &query, arguments, count);
    if (method != NULL && (method->flags & METHOD_NULL))
        return groovy_apply(run, method, arguments, count, ret);
    return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke method %.*s() on null object", SLICE_ARG(name));
}

static bool call_null(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    bool one = count == 1, none = count == 0;
    if (none && slice_is(name, "toString"))
        *ret = value_of(text_new(run, SLICE_LIT("null")));
    else if (one && (slice_is(name, "equals") || slice_is(name, "is")))
        *ret = value_boolean(arguments[1].kind == VALUE_NULL);
    else if (none && slice_is(name, "asBoolean"))
        *ret = value_boolean(false);
    else
        return call_of_null(run, arguments, name, count, ret);
    return true;
}

/* Closures under a name */

static bool call_entry(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret,
                       bool *ret_found)
{
    struct text *key = value_is_map(arguments[0]) ? text_new(run, name) : NULL;
    struct map_entry *entry = key == NULL ? NULL : dict_find_text(run, (struct dict *)arguments[0].object, key);
    *ret_found = entry != NULL && value_is(entry->value, CLASS_CLOSURE);
    return !*ret_found || run_invoke(run, entry->value, arguments + 1, count, ret);
}

static bool call_object(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    bool found;
    type_id type = value_type(arguments[0]);
    if (!select_and_call(run, type, 0, name, arguments, count, ret, &found) || found)
        return run->thrown == NULL;
    if (!call_entry(run, arguments, name, count, ret, &found) || found)
        return run->thrown == NULL;
    if (value_is(arguments[0], CLASS_CLASS)) {
        type_id owner = ((const struct class_object *)arguments[0].object)->type;
        if (!select_and_call(run, owner, METHOD_STATIC, name, arguments, count, ret, &found) || found)
            return run->thrown == NULL;
    }
    /* As in Java, static methods can be called on an object. */
    if (!select_and_call(run, type, METHOD_STATIC, name, arguments, count, ret, &found) || found)
        return run->thrown == NULL;
    return groovy_missing_method(run, type, false, name, arguments, count);
}

/* Any other method of a GString is called on its text. */
static bool is_own_of_gstring(struct slice name)
{
    return slice_is(name, "hashCode") || slice_is(name, "equals") || slice_is(name, "getClass") || slice_is(name, "is");
}

bool groovy_call(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    if (arguments[0].kind == VALUE_NULL)
        return call_null(run, arguments, name, count, ret);
    if (value_is(arguments[0], CLASS_GSTRING) && !is_own_of_gstring(name))
        arguments[0] = value_plain(arguments[0]);
    bool closure = value_is(arguments[0], CLASS_CLOSURE);
    if (closure && (slice_is(name, "call") || slice_is(name, "doCall")))
        return groovy_invoke_as(run, arguments[0], name, arguments + 1, count, ret);
    return call_object(run, arguments, name, count, ret);
}

bool groovy_static_call(struct run *run, type_id type, struct slice name, struct value *arguments, unsigned count,
                        struct value *ret)
{
    bool found;
    arguments[0] = groovy_class_object(run, type);
    if (!select_and_call(run, type, METHOD_STATIC, name, arguments, count, ret, &found) || found)
        return run->thrown == NULL;
    if (!select_and_call(run, CLASS_CLASS, 0, name, arguments, count, ret, &found) || found)
        return run->thrown == NULL;
    return groovy_missing_method(run, type, true, name, arguments, count);
}

bool groovy_new(struct run *run, type_id type, struct value *arguments, unsigned count, struct value *ret)
{
    bool found;
    char name[TYPE_NAME_MAX];
    struct slice types, values;
    arguments[0] = groovy_class_object(run, type);
    if (!select_and_call(run, type, METHOD_NEW, SLICE_LIT("new"), arguments, count, ret, &found) || found)
        return run->thrown == NULL;
    if (!groovy_show_arguments(run, arguments + 1, count, &types, &values))
        return false;
    return run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION, "Could not find matching constructor for: %s(%.*s)",
                     type_java_name(type, name), SLICE_ARG(types));
}
