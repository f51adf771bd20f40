/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of methods, of functions and closures by name, and of constructors. */
#include "script/run/eval.h"

#include "script/library/methods_groovy.h"

#define ARGUMENTS_MAX 64u

/* Pushes slots on the stack of locals for a receiver, the arguments and one more. */
static struct value *reserve_arguments(struct run *run, const struct node *list)
{
    unsigned count = 3;
    for (; list != NULL; list = list->next)
        count = list->kind == NODE_SPREAD_ARGUMENT ? ARGUMENTS_MAX : count + 1;
    return interp__stack(run, count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX);
}

/* Evaluates arguments into the slots after `first`. */
static bool eval_arguments(struct run *run, struct frame *frame, const struct node *list, struct value *arguments,
                           unsigned *count)
{
    struct dict *named = NULL;
    for (const struct node *argument = list; argument != NULL; argument = argument->next) {
        struct value value, key;
        bool spread = argument->kind == NODE_SPREAD_ARGUMENT, name = argument->kind == NODE_NAMED_ARGUMENT;
        if ((name && !eval(run, frame, argument->b, &key)) ||
            !eval(run, frame, spread || name ? argument->a : argument, &value))
            return false;
        if (name) {
            named = named == NULL ? dict_new(run, CLASS_LINKED_HASH_MAP) : named;
            if (!dict_put(run, named, key, value, NULL))
                return false;
            continue;
        }
        size_t more = spread && value_is_seq(value) ? ((struct seq *)value.object)->count : 1;
        if (*count + more + 1 >= ARGUMENTS_MAX)
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "more than %u arguments", ARGUMENTS_MAX - 2);
        for (size_t i = 0; i < more; i++)
            arguments[(*count)++] = spread && value_is_seq(value) ? seq_item((struct seq *)value.object, i) : value;
    }
    if (named == NULL)
        return true;
    /* Named arguments come first, as one map. */
    memmove(arguments + 2, arguments + 1, (*count - 1) * sizeof *arguments);
    arguments[1] = value_of(named);
    (*count)++;
    return true;
}

static bool call_each(struct run *run, struct value *arguments, unsigned count, struct slice name, struct value *ret)
{
    struct seq *to = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct iter iter;
    if (arguments[0].kind == VALUE_NULL) {
        *ret = VALUE_NONE;
        return true;
    }
    *ret = value_of(to);
    if (!groovy_walk(run, &iter, arguments[0]))
        return false;
    walk(&iter, item)
    {
        struct value one = VALUE_NONE;
        arguments[0] = item;
        if ((item.kind != VALUE_NULL && !groovy_call(run, arguments, name, count, &one)) || !seq_add(run, to, one))
            return false;
    }
    return run->thrown == NULL;
}

/* Returns: a bit per argument that is cast to Object, which selects a list's remove by value. */
static uint32_t cast_to_object(const struct node *list)
{
    uint32_t mask = 0;
    unsigned i = 0;
    for (const struct node *argument = list; argument != NULL && i < 32; argument = argument->next, i++)
        if ((argument->kind == NODE_CAST || argument->kind == NODE_COERCE) && argument->target == CLASS_OBJECT)
            mask |= 1u << i;
    return mask;
}

static bool eval_groovy_call(struct run *run, const struct node *node, struct frame *frame, struct value *arguments,
                             unsigned count, struct value *ret)
{
    struct slice name = node->text;
    if (node->b != NULL) {
        struct value computed;
        if (!eval__name(run, frame, node, &computed))
            return false;
        name = text_utf8(run, (struct text *)computed.object);
    }
    if (node->flags & NODE_STATIC)
        return groovy_static_call(run, node->a->target, name, arguments, count, ret);
    if (node->flags & NODE_SPREAD)
        return call_each(run, arguments, count, name, ret);
    run->as_object = cast_to_object(node->list);
    bool ok = groovy_call(run, arguments, name, count, ret);
    run->as_object = 0;
    return ok;
}

static bool call_with(struct run *run, struct frame *frame, const struct node *node, struct value *arguments,
                      struct value *ret)
{
    unsigned count = 1;
    if ((node->flags & NODE_STATIC) == 0 && !eval(run, frame, node->a, &arguments[0]))
        return false;
    if ((node->flags & NODE_SAFE) && arguments[0].kind == VALUE_NULL) {
        *ret = VALUE_NONE;
        return true;
    }
    if (!eval_arguments(run, frame, node->list, arguments, &count) || !run_step(run, 1))
        return eval__fail(run, node);
    bool ok = run->groovy ? eval_groovy_call(run, node, frame, arguments, count - 1, ret)
                          : dispatch_call(run, node, arguments, count - 1, ret);
    return (ok || eval__fail(run, node)) && eval__take(run, node, ret);
}

static bool call_value(struct run *run, struct value callee, struct value *arguments, unsigned count, struct value *ret)
{
    arguments[0] = callee;
    return groovy_call(run, arguments, SLICE_LIT("call"), count, ret);
}

static bool call_local_with(struct run *run, struct frame *frame, const struct node *node, struct value *arguments,
                            struct value *ret)
{
    unsigned count = 1;
    if (!eval_arguments(run, frame, node->list, arguments, &count))
        return eval__fail(run, node);
    count--;
    if (node->function != NULL)
        return interp_call(run, node->function, NULL, arguments + 1, count, ret) || eval__fail(run, node);
    struct value callee;
    if (node->a != NULL) /* a local that holds a closure, or an expression that yields one */
        return eval(run, frame, node->a, &callee) &&
               (call_value(run, callee, arguments, count, ret) || eval__fail(run, node));
    return groovy_name_call(run, frame, node, arguments, count, ret) || eval__fail(run, node);
}

static bool new_with(struct run *run, struct frame *frame, const struct node *node, struct value *arguments,
                     struct value *ret)
{
    unsigned count = 1;
    if (!eval_arguments(run, frame, node->list, arguments, &count) || !run_step(run, 1))
        return eval__fail(run, node);
    bool ok = run->groovy ? groovy_new(run, node->target, arguments, count - 1, ret)
                          : dispatch_new(run, node, arguments, count - 1, ret);
    if (!ok)
        return eval__fail(run, node);
    /* The offset of a new throwable is its constructor call. */
    if (class_infos[type_class(node->target)].kind == CLASS_KIND_X && ret->kind == VALUE_OBJECT)
        ((struct throwable *)ret->object)->offset = node->error_offset;
    return true;
}

/* Evaluates a call in one of its three forms, with slots for its arguments. */
bool eval__call(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value *next = run->stack_next, *end = run->stack_end;
    struct value *arguments = reserve_arguments(run, node->list);
    if (arguments == NULL)
        return eval__fail(run, node);
    bool ok = node->kind == NODE_CALL         ? call_with(run, frame, node, arguments, ret)
              : node->kind == NODE_CALL_LOCAL ? call_local_with(run, frame, node, arguments, ret)
                                              : new_with(run, frame, node, arguments, ret);
    run->stack_next = next;
    run->stack_end = end;
    return ok;
}
