/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's fields, elements and methods of a `def`, found by the run-time class of the value. */
#include "script/run/interp.h"

#include "base/check.h"
#include "script/run/convert.h"
#include "script/value/dict.h"
#include "script/library/method.h"

#include <stdio.h>

static bool null_receiver(struct run *run)
{
    return run_throw(run, CLASS_NULL_POINTER_EXCEPTION,
                     "Cannot invoke \"Object.getClass()\" because \"callArgs[0]\" is null");
}

static const struct method *find_method(struct value self, struct slice name, unsigned count, unsigned kind)
{
    type_id type = value_type(self);
    if (type_dims(type) > 0)
        return NULL;
    return method_find(&(struct method_lookup){type_class(type), name, count, METHOD_PAINLESS | kind});
}

static const struct method *find_accessor(struct value self, const char *prefix, struct slice field)
{
    char name[METHOD_ACCESSOR_MAX];
    struct slice accessor = method_accessor(name, prefix, field);
    return accessor.len == 0 ? NULL : find_method(self, accessor, 0, 0);
}

static const struct method *find_getter(struct run *run, const struct node *node, struct value self)
{
    struct call_cache *cache = &run->caches[node->slot];
    enum class_id id = (enum class_id)value_type(self);
    if (cache->id == id)
        return cache->method;
    const struct method *method = find_accessor(self, "get", node->text);
    if (method == NULL)
        method = find_accessor(self, "is", node->text);
    if (method == NULL)
        method = find_method(self, node->text, 0, METHOD_FIELD);
    cache->id = (uint16_t)id;
    cache->method = method;
    return method;
}

static bool list_index(struct run *run, struct slice name, int64_t *ret_index)
{
    if (number_parse_i64(name, 10, INT32_MIN, INT32_MAX, ret_index))
        return true;
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Illegal list shortcut value [%.*s].", SLICE_ARG(name));
}

static bool accessor_missing(struct run *run, const char *what, const struct node *node, struct value self)
{
    char name[TYPE_NAME_MAX];
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "dynamic %s [%s, %.*s] not found", what,
                     type_name(value_type(self), name), SLICE_ARG(node->text));
}

static bool get_key(struct run *run, struct dict *dict, struct value key, struct value *ret)
{
    struct map_entry *entry;
    if (value_is(key, CLASS_STRING) && dict->object.class != CLASS_TREE_MAP)
        entry = dict_find_text(run, dict, (struct text *)key.object);
    else if (!dict_find(run, dict, key, &entry))
        return false;
    *ret = entry == NULL ? VALUE_NONE : entry->value;
    return true;
}

static bool get_doc(struct run *run, struct value self, struct value key, struct value *ret)
{
    struct value arguments[2] = {self, key};
    return dispatch_by_name(run, arguments, SLICE_LIT("get"), 1, ret);
}

bool dispatch_get(struct run *run, const struct node *node, struct value self, struct value *ret)
{
    struct value arguments[2] = {self, node->value};
    int64_t index;
    if (node->method != NULL) {
        if (self.kind == VALUE_NULL && (node->flags & NODE_STATIC) == 0)
            return null_receiver(run);
        return method_call(node->method, run, arguments, 0, ret);
    }
    if (self.kind == VALUE_NULL)
        return null_receiver(run);
    if (node->flags & NODE_LENGTH) {
        *ret = value_int(((struct array *)self.object)->count);
        return true;
    }
    if (value_is_map(self) && node->a->type != CLASS_DEF)
        return get_key(run, (struct dict *)self.object, node->value, ret);
    if (value_is_array(self) && slice_is(node->text, "length")) {
        *ret = value_int(((struct array *)self.object)->count);
        return true;
    }
    if (value_is(self, CLASS_DOC))
        return get_doc(run, self, node->value, ret);
    bool may_be_getter = node->a->type == CLASS_DEF && node->op != DOT_KEY;
    const struct method *getter = may_be_getter ? find_getter(run, node, self) : NULL;
    if (getter != NULL)
        return method_call(getter, run, arguments, 0, ret);
    if (value_is_map(self))
        return get_key(run, (struct dict *)self.object, node->value, ret);
    if (value_is_seq(self))
        return list_index(run, node->text, &index) && seq_get(run, (struct seq *)self.object, index, ret);
    return accessor_missing(run, "getter", node, self);
}

bool dispatch_set(struct run *run, const struct node *node, struct value self, struct value value)
{
    int64_t index;
    if (self.kind == VALUE_NULL)
        return null_receiver(run);
    if (value_is_map(self))
        return dict_put(run, (struct dict *)self.object, node->value, value, NULL);
    if (value_is_seq(self))
        return list_index(run, node->text, &index) && seq_set(run, (struct seq *)self.object, index, value, NULL);
    return accessor_missing(run, "setter", node, self);
}

/* Converts an index of a list or array: an int; a negative one counts from the end. */
static bool number_index(struct run *run, const struct node *node, struct value self, size_t count, struct value *index)
{
    type_id given = node->b->type;
    if (node->a->type == CLASS_DEF && given != CLASS_DEF && given != CLASS_INT && given != CLASS_SHORT &&
        given != CLASS_BYTE && given != CLASS_CHAR && given != CLASS_OBJECT) {
        char name[TYPE_NAME_MAX];
        const char *simple = strrchr(type_name(given, name), '.');
        simple = simple == NULL ? name : simple + 1;
        return run_throw(run, CLASS_WRONG_METHOD_TYPE_EXCEPTION,
                         "cannot convert MethodHandle(%s,int)int to (Object,%s)%s",
                         value_is_seq(self) ? "List" : "Object", simple, simple);
    }
    if (!convert_site(run, *index, CLASS_INT, index))
        return false;
    if (index->i < 0)
        *index = value_int(index->i + (int64_t)count);
    return true;
}

bool dispatch_index(struct run *run, const struct node *node, struct value self, struct value *index)
{
    char name[TYPE_NAME_MAX];
    if (self.kind == VALUE_NULL)
        return null_receiver(run);
    if (value_is_map(self) || value_is(self, CLASS_DOC))
        return true;
    if (value_is_seq(self))
        return number_index(run, node, self, ((struct seq *)self.object)->count, index);
    if (value_is_array(self))
        return number_index(run, node, self, ((struct array *)self.object)->count, index);
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                     "Attempting to address a non-array-like type [%s] as an array.",
                     type_name(value_type(self), name));
}

bool dispatch_get_at(struct run *run, struct value self, struct value index, struct value *ret)
{
    if (value_is(self, CLASS_DOC))
        return get_doc(run, self, index, ret);
    if (value_is_map(self))
        return get_key(run, (struct dict *)self.object, index, ret);
    if (value_is_seq(self))
        return seq_get(run, (struct seq *)self.object, index.i, ret);
    struct array *array = (struct array *)self.object;
    if (!array_check(run, array, index.i))
        return false;
    *ret = array->items[index.i];
    return true;
}

bool dispatch_set_at(struct run *run, struct value self, struct value index, struct value value)
{
    if (value_is_map(self))
        return dict_put(run, (struct dict *)self.object, index, value, NULL);
    if (value_is_seq(self))
        return seq_set(run, (struct seq *)self.object, index.i, value, NULL);
    if (!value_is_array(self))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "it cannot be written to");
    struct array *array = (struct array *)self.object;
    return array_check(run, array, index.i) && convert_site(run, value, array->element, &array->items[index.i]);
}

/* Methods */

static const char *simple_name(type_id type, char *out)
{
    if (type == CLASS_DEF || type == TYPE_NONE)
        return "Object";
    const char *simple = strrchr(type_name(type, out), '.');
    return simple == NULL ? out : simple + 1;
}

/* Throws Java's error for argument types that can never fit the method. */
static bool wrong_types(struct run *run, const struct node *node, const struct method *method, struct value self)
{
    char name[TYPE_NAME_MAX];
    struct slice text = run_printf(run, "cannot convert MethodHandle(%s",
                                   value_is_seq(self)   ? "List"
                                   : value_is_map(self) ? "Map"
                                                        : simple_name(value_type(self), name));
    for (unsigned i = 0; i < method->count; i++)
        text = run_printf(run, "%.*s,%s", SLICE_ARG(text), simple_name(method->parameters[i], name));
    text = run_printf(run, "%.*s)%s to (Object", SLICE_ARG(text), simple_name(method->result, name));
    for (const struct node *argument = node->list; argument != NULL; argument = argument->next)
        text = run_printf(run, "%.*s,%s", SLICE_ARG(text), simple_name(argument->type, name));
    return run_throw(run, CLASS_WRONG_METHOD_TYPE_EXCEPTION, "%.*s)%s", SLICE_ARG(text), simple_name(node->type, name));
}

/*
 * Returns: whether an argument of this static type can be passed: not a text or a long for an int.
 */
static bool may_pass(type_id given, type_id wanted)
{
    if (given == TYPE_NONE || given == CLASS_DEF || given == CLASS_OBJECT || wanted == CLASS_DEF ||
        wanted == CLASS_OBJECT)
        return true;
    if (!type_primitive(wanted))
        return !type_primitive(given) || type_assignable(wanted, type_boxed(given));
    if (type_primitive(given))
        return given == wanted || (given != CLASS_BOOLEAN && wanted != CLASS_BOOLEAN && wanted != CLASS_CHAR &&
                                   (given == CLASS_CHAR ? wanted >= CLASS_INT : given < wanted));
    type_id unboxed = type_unboxed(given);
    return given == CLASS_NUMBER || (unboxed != given && may_pass(unboxed, wanted));
}

static bool pass_function(struct run *run, struct value argument, type_id wanted)
{
    const struct class_function *interface = class_function(type_class(wanted));
    const struct closure *closure = (const struct closure *)argument.object;
    char name[TYPE_NAME_MAX], owner[TYPE_NAME_MAX];
    if (closure->kind == CLOSURE_CALLER && value_is(closure->held[1], CLASS_CLASS)) {
        type_id type = ((const struct class_object *)closure->held[1].object)->type;
        struct slice called = text_utf8(run, closure->name);
        return method_referred(type, called, interface->count) ||
               run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "function reference [%s::%.*s/%u] matching [%s, %s/%u] not found", simple_name(type, owner),
                         SLICE_ARG(called), interface->count, type_name(wanted, name), interface->name,
                         interface->count);
    }
    if (closure->kind != CLOSURE_BODY || closure->body->parameter_count == interface->count)
        return true;
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                     "function reference [this::%.*s/%u] matching [%s, %s/%u] not found%s",
                     SLICE_ARG(closure->body->name), interface->count, type_name(wanted, name), interface->name,
                     interface->count, closure->body->lambda ? " due to an incorrect number of arguments" : "");
}

static bool pass_arguments(struct run *run, const struct node *node, const struct method *method,
                           struct value *arguments)
{
    const struct node *argument = node->list;
    for (unsigned i = 0; argument != NULL; argument = argument->next, i++)
        if (argument->kind != NODE_LAMBDA && argument->kind != NODE_REFERENCE &&
            !may_pass(argument->type, method->parameters[i]))
            return wrong_types(run, node, method, arguments[0]);
    for (unsigned i = 0; i < method->count; i++) {
        type_id wanted = method->parameters[i];
        bool function = type_dims(wanted) == 0 && class_infos[type_class(wanted)].kind == CLASS_KIND_F;
        if (function && value_is(arguments[i + 1], CLASS_CLOSURE)) {
            if (!pass_function(run, arguments[i + 1], wanted))
                return false;
        } else if (wanted != CLASS_DEF && !convert_site(run, arguments[i + 1], wanted, &arguments[i + 1])) {
            return false;
        }
    }
    return true;
}

static const struct method *find_call(struct run *run, const struct node *node, struct value self, unsigned count)
{
    struct call_cache *cache = &run->caches[node->slot];
    type_id type = value_type(self);
    if (type_dims(type) > 0)
        return NULL;
    if (cache->id == type)
        return cache->method;
    cache->id = type;
    cache->method = find_method(self, node->text, count, 0);
    return cache->method;
}

bool dispatch_call(struct run *run, const struct node *node, struct value *arguments, unsigned count, struct value *ret)
{
    struct value self = arguments[0];
    if (node->method != NULL) {
        if (self.kind == VALUE_NULL && (node->flags & NODE_STATIC) == 0)
            return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke \"%s()\" because the value is null",
                             node->method->name);
        if (node->flags & NODE_STATIC) {
            /* A static method that serves several classes needs the class it is called on. */
            struct class_object owner = {.object = {.class = CLASS_CLASS}, .type = node->a->target};
            arguments[0] = value_of(&owner);
            return method_call(node->method, run, arguments, count, ret);
        }
        return method_call(node->method, run, arguments, count, ret);
    }
    if (self.kind == VALUE_NULL)
        return null_receiver(run);
    const struct method *method = find_call(run, node, self, count);
    if (method == NULL) {
        char name[TYPE_NAME_MAX];
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "dynamic method [%s, %.*s/%u] not found",
                         type_name(value_type(self), name), SLICE_ARG(node->text), count);
    }
    return pass_arguments(run, node, method, arguments) && method_call(method, run, arguments, count, ret);
}

bool dispatch_new(struct run *run, const struct node *node, struct value *arguments, unsigned count, struct value *ret)
{
    struct class_object owner = {.object = {.class = CLASS_CLASS}, .type = node->target};
    arguments[0] = value_of(&owner);
    return method_call(node->method, run, arguments, count, ret);
}

bool dispatch_by_name(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret)
{
    char shown[TYPE_NAME_MAX];
    if (run->groovy)
        return groovy_call(run, arguments, name, count, ret);
    if (arguments[0].kind == VALUE_NULL)
        return null_receiver(run);
    const struct method *method = find_method(arguments[0], name, count, 0);
    if (method == NULL)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "dynamic method [%s, %.*s/%u] not found",
                         type_name(value_type(arguments[0]), shown), SLICE_ARG(name), count);
    for (unsigned i = 0; i < count; i++)
        if (!value_is(arguments[i + 1], CLASS_CLOSURE) &&
            !convert_site(run, arguments[i + 1], method->parameters[i], &arguments[i + 1]))
            return false;
    return method_call(method, run, arguments, count, ret);
}

/* Function values */

/* Calls X::name: a static method, a constructor, or a method of the first argument. */
static bool call_reference(struct run *run, const struct closure *closure, struct value *arguments, unsigned count,
                           struct value *ret)
{
    struct slice name = text_utf8(run, closure->name);
    struct value shifted[4] = {VALUE_NONE};
    if (count > 3)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "a reference takes at most three arguments");
    for (unsigned i = 0; i < count; i++)
        shifted[i + 1] = arguments[i];
    if (!value_is(closure->held[1], CLASS_CLASS)) {
        shifted[0] = closure->held[0];
        return dispatch_by_name(run, shifted, name, count, ret);
    }
    type_id type = ((const struct class_object *)closure->held[1].object)->type;
    bool is_new = slice_is(name, "new");
    if (is_new && type_dims(type) > 0) {
        struct array *array = array_new(run, type_element(type), number_to_i64(arguments[0]));
        *ret = value_of(array);
        return array != NULL;
    }
    struct method_lookup query = {type_class(type), name, count,
                                  METHOD_PAINLESS | (is_new ? METHOD_NEW : METHOD_STATIC)};
    const struct method *method = method_find(&query);
    if (method != NULL) {
        shifted[0] = closure->held[1];
        for (unsigned i = 0; i < count; i++)
            if (!convert_site(run, shifted[i + 1], method->parameters[i], &shifted[i + 1]))
                return false;
        return method_call(method, run, shifted, count, ret);
    }
    if (count > 0 && !is_new && (arguments[0].kind == VALUE_NULL || value_instance_of(arguments[0], type)))
        return dispatch_by_name(run, shifted + 1, name, count - 1, ret);
    char shown[TYPE_NAME_MAX];
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "function reference [%s::%.*s/%u] not found",
                     type_name(type, shown), SLICE_ARG(name), count);
}

/*
 * Functions made by the library nest as deep as a script builds them: Comparator.reversed() in a
 * loop.
 */
static bool call_native(struct run *run, struct closure *closure, struct value *arguments, unsigned count,
                        struct value *ret)
{
    if (!run_enter(run, RUN_NATIVE_FRAMES))
        return false;
    bool ok = closure->kind == CLOSURE_NATIVE ? closure->native(run, closure, arguments, count, ret)
                                              : call_reference(run, closure, arguments, count, ret);
    run_leave(run, RUN_NATIVE_FRAMES);
    return ok;
}

bool run_invoke(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret)
{
    if (!run_step(run, 1))
        return false;
    if (function.kind == VALUE_NULL)
        return run_throw_npe(run, "apply");
    if (!value_is(function, CLASS_CLOSURE))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a function is expected");
    struct closure *closure = (struct closure *)function.object;
    switch (closure->kind) {
    case CLOSURE_BODY:
        if (run->groovy)
            return groovy_invoke(run, closure, arguments, count, ret);
        return interp_call(run, closure->body, closure, arguments, count, ret);
    case CLOSURE_NATIVE:
    case CLOSURE_CALLER: return call_native(run, closure, arguments, count, ret);
    }
    UNREACHABLE();
    return false;
}
