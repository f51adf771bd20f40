/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's undeclared names, and its closures.
 *
 * In a closure passed to `with`, such a name is first a member of the delegate; a map has every
 * member, null by default. Else it is a parameter of the request, or a variable that the script
 * assigned.
 */
#include "script/run/dispatch_groovy.h"

#include "script/value/iter.h"
#include "script/run/operate.h"

/* Clears an error that reports a missing member of a delegate; keeps any other. */
static bool clear_missing(struct run *run, enum class_id missing)
{
    if (run->thrown->object.class != missing)
        return false;
    run->thrown = NULL;
    return true;
}

bool groovy_name_get(struct run *run, const struct frame *frame, const struct node *node, struct value *ret)
{
    for (const struct delegate *delegate = frame->delegate; delegate != NULL; delegate = delegate->outer) {
        if (groovy_get(run, delegate->value, node->value, ret))
            return true;
        if (!clear_missing(run, CLASS_MISSING_PROPERTY_EXCEPTION))
            return false;
    }
    struct map_entry *entry = dict_find_text(run, run->binding, (struct text *)node->value.object);
    if (entry == NULL)
        return groovy_missing_property(run, node->text, script_class_name(run->script));
    *ret = entry->value;
    return true;
}

bool groovy_name_set(struct run *run, const struct frame *frame, const struct node *node, struct value value)
{
    for (const struct delegate *delegate = frame->delegate; delegate != NULL; delegate = delegate->outer) {
        if (groovy_set(run, delegate->value, node->value, value))
            return true;
        if (!clear_missing(run, CLASS_MISSING_PROPERTY_EXCEPTION))
            return false;
    }
    return dict_put(run, run->binding, node->value, value, NULL);
}

static bool missing_function(struct run *run, const struct node *node, struct value *arguments, unsigned count)
{
    struct slice types, values, name = script_class_name(run->script);
    if (!groovy_show_arguments(run, arguments + 1, count, &types, &values))
        return false;
    return run_throw(run, CLASS_MISSING_METHOD_EXCEPTION,
                     "No signature of method: %.*s.%.*s() is applicable for argument types: (%.*s) values: [%.*s]",
                     SLICE_ARG(name), SLICE_ARG(node->text), SLICE_ARG(types), SLICE_ARG(values));
}

/* Output of print is discarded. */
static bool is_print(struct slice name, unsigned count)
{
    return (slice_is(name, "println") && count <= 1) || (slice_is(name, "print") && count == 1) ||
           (slice_is(name, "printf") && count >= 1);
}

bool groovy_name_call(struct run *run, const struct frame *frame, const struct node *node, struct value *arguments,
                      unsigned count, struct value *ret)
{
    for (const struct delegate *delegate = frame->delegate; delegate != NULL; delegate = delegate->outer) {
        arguments[0] = delegate->value;
        if (groovy_call(run, arguments, node->text, count, ret))
            return true;
        if (!clear_missing(run, CLASS_MISSING_METHOD_EXCEPTION))
            return false;
    }
    const struct function *function = groovy_choose_function(run, node->text, arguments + 1, count);
    if (function != NULL)
        return interp_call(run, function, NULL, arguments + 1, count, ret);
    struct map_entry *entry = dict_find_text(run, run->binding, (struct text *)node->value.object);
    if (entry != NULL) {
        arguments[0] = entry->value;
        return groovy_call(run, arguments, SLICE_LIT("call"), count, ret);
    }
    *ret = VALUE_NONE;
    if (slice_is(node->text, "sprintf"))
        return groovy_static_call(run, CLASS_STRING, SLICE_LIT("format"), arguments, count, ret);
    return is_print(node->text, count) || missing_function(run, node, arguments, count);
}

bool groovy_with(struct run *run, struct value self, struct value closure, struct value *ret)
{
    if (!value_is(closure, CLASS_CLOSURE))
        return run_throw_npe(run, "groovy.lang.Closure.clone()");
    const struct closure *given = (const struct closure *)closure.object;
    struct closure *copy = run_object(run, sizeof *copy, CLASS_CLOSURE);
    struct delegate *delegate = run_alloc(run, sizeof *delegate);
    *copy = *given;
    *delegate = (struct delegate){.value = self, .outer = given->delegate};
    copy->delegate = delegate;
    return run_invoke(run, value_of(copy), &self, 1, ret);
}

/* Calls */

#define SPLIT_MAX 16u

struct slice closure_class_name(struct run *run, struct value v)
{
    const struct closure *closure = (const struct closure *)v.object;
    if (!run->groovy || !value_is(v, CLASS_CLOSURE) || closure->kind != CLOSURE_BODY)
        return SLICE_NONE;
    struct slice script = script_class_name(run->script);
    return run_printf(run, "%.*s$%.*s", SLICE_ARG(script), SLICE_ARG(closure->body->name));
}

static bool wrong_arguments(struct run *run, const struct closure *closure, struct slice called,
                            struct value *arguments, unsigned count)
{
    struct slice types, values, name = closure_class_name(run, value_of(closure));
    if (!groovy_show_arguments(run, arguments, count, &types, &values))
        return false;
    struct slice wanted = SLICE_LIT("");
    char type[TYPE_NAME_MAX];
    for (unsigned i = 0; i < closure->body->parameter_count; i++) {
        type_id one = closure->body->parameters[i].type;
        wanted = run_printf(run, "%.*s%s%s", SLICE_ARG(wanted), i > 0 ? ", " : "",
                            one == TYPE_NONE ? "java.lang.Object" : type_java_name(one, type));
    }
    return run_throw(run, CLASS_MISSING_METHOD_EXCEPTION,
                     "No signature of method: %.*s.%.*s() is applicable for argument types: (%.*s) values: [%.*s]\n"
                     "Possible solutions: doCall(%.*s)",
                     SLICE_ARG(name), SLICE_ARG(called), SLICE_ARG(types), SLICE_ARG(values), SLICE_ARG(wanted));
}

static bool takes_arguments(const struct function *function, const struct value *arguments, unsigned count)
{
    return groovy_function_distance(function, arguments, count) >= 0;
}

/* `called` is the function's name in messages. */
static bool invoke_body(struct run *run, const struct closure *closure, struct slice called, struct value *arguments,
                        unsigned count, struct value *ret)
{
    const struct function *function = closure->body;
    if (takes_arguments(function, arguments, count))
        return interp_call(run, function, closure, arguments, count, ret);
    const struct seq *list = count == 1 && value_is_seq(arguments[0]) ? (const struct seq *)arguments[0].object : NULL;
    struct value split[SPLIT_MAX];
    if (list == NULL || list->count > SPLIT_MAX)
        return wrong_arguments(run, closure, called, arguments, count);
    for (unsigned i = 0; i < list->count; i++)
        split[i] = seq_item(list, i);
    if (!takes_arguments(function, split, list->count))
        return wrong_arguments(run, closure, called, arguments, count);
    return interp_call(run, function, closure, split, list->count, ret);
}

bool groovy_invoke(struct run *run, struct closure *closure, struct value *arguments, unsigned count, struct value *ret)
{
    return invoke_body(run, closure, SLICE_LIT("doCall"), arguments, count, ret);
}

bool groovy_invoke_as(struct run *run, struct value function, struct slice called, struct value *arguments,
                      unsigned count, struct value *ret)
{
    const struct closure *closure = (const struct closure *)function.object;
    return closure->kind == CLOSURE_BODY ? run_step(run, 1) && invoke_body(run, closure, called, arguments, count, ret)
                                         : run_invoke(run, function, arguments, count, ret);
}
