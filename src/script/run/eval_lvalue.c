/* SPDX-License-Identifier: Apache-2.0 */
/* Lvalues: reads, assigns and increments variables, fields and elements. */
#include "script/run/eval.h"

#include "base/check.h"
#include "script/library/methods_groovy.h"
#include "script/run/operate.h"

struct lvalue_target {
    struct value self;
    struct value index;
    bool skip; /* the object before ?. is null */
};

bool eval__binding(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    return groovy_name_get(run, frame, node, ret) || eval__fail(run, node);
}

bool eval__name(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    if (node->b == NULL) {
        *ret = node->value;
        return true;
    }
    if (!eval(run, frame, node->b, ret))
        return false;
    struct text *text = value_to_text(run, *ret);
    *ret = value_of(text);
    return text != NULL;
}

static bool open_target(struct run *run, struct frame *frame, const struct node *node, struct lvalue_target *target)
{
    target->skip = false;
    if (node->kind != NODE_DOT && node->kind != NODE_BRACE)
        return true;
    if (!eval(run, frame, node->a, &target->self))
        return false;
    target->skip = (node->flags & NODE_SAFE) && target->self.kind == VALUE_NULL;
    if (target->skip)
        return true;
    if (node->kind == NODE_DOT)
        return eval__name(run, frame, node, &target->index);
    if (!eval(run, frame, node->b, &target->index))
        return false;
    return run->groovy || dispatch_index(run, node, target->self, &target->index) ||
           interp__at(run, (int32_t)node->slot);
}

static bool load_target(struct run *run, struct frame *frame, const struct node *node, struct lvalue_target *target,
                        struct value *ret)
{
    bool ok;
    if (target->skip) {
        *ret = VALUE_NONE;
        return true;
    }
    switch (node->kind) {
    case NODE_LOCAL: *ret = *eval__local(frame, node); return true;
    case NODE_BINDING: return eval__binding(run, frame, node, ret);
    case NODE_DOT:
        ok = run->groovy ? groovy_get(run, target->self, target->index, ret)
                         : dispatch_get(run, node, target->self, ret);
        break;
    case NODE_BRACE:
        ok = run->groovy ? groovy_get_at(run, target->self, target->index, ret)
                         : dispatch_get_at(run, target->self, target->index, ret);
        break;
    default: UNREACHABLE(); return false;
    }
    return ok || interp__at(run, node->kind == NODE_BRACE ? node->error_offset : node->offset);
}

static bool store_target(struct run *run, struct frame *frame, const struct node *node, struct lvalue_target *target,
                         struct value value)
{
    bool ok;
    if (target->skip)
        return true;
    switch (node->kind) {
    case NODE_LOCAL:
        if (run->groovy && node->target != TYPE_NONE && !convert_groovy(run, value, node->target, false, &value))
            return false;
        *eval__local(frame, node) = value;
        return true;
    case NODE_BINDING: return groovy_name_set(run, frame, node, value) || eval__fail(run, node);
    case NODE_DOT:
        ok = run->groovy ? groovy_set(run, target->self, target->index, value)
                         : dispatch_set(run, node, target->self, value);
        break;
    case NODE_BRACE:
        ok = run->groovy ? groovy_set_at(run, target->self, target->index, value)
                         : dispatch_set_at(run, target->self, target->index, value);
        break;
    default: UNREACHABLE(); return false;
    }
    return ok || interp__at(run, node->offset);
}

/* Writing */

bool eval__assign(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct lvalue_target target;
    if (!open_target(run, frame, node->a, &target))
        return false;
    /* As in Java, a null receiver throws only after the right side was evaluated. */
    if (!eval(run, frame, node->b, ret))
        return false;
    if (target.skip)
        return true;
    if (run->groovy && node->a->kind == NODE_LOCAL && node->a->target != TYPE_NONE &&
        !convert_groovy(run, *ret, node->a->target, false, ret))
        return false;
    return store_target(run, frame, node->a, &target, *ret);
}

/*
 * Painless: converts the result to the class of the variable's old value; a typed variable narrows
 * to its type.
 */
static bool fit_compound(struct run *run, const struct node *node, struct value old, struct value *value)
{
    if (run->groovy)
        return true;
    if (node->target == CLASS_DEF)
        return old.kind == VALUE_NULL || convert_site(run, *value, type_unboxed(value_type(old)), value);
    type_id left = node->a->type;
    if (left == CLASS_DEF || left == node->target)
        return true;
    return convert_typed(run, *value, node->target, left, value);
}

/* A def with a number keeps its class: Integer -= Double is an Integer. */
static bool narrow_compound(struct run *run, struct value old, struct value *value)
{
    bool numbers =
        old.kind >= VALUE_BYTE && old.kind <= VALUE_DOUBLE && value->kind >= VALUE_BYTE && value->kind <= VALUE_DOUBLE;
    if (numbers)
        *value = number_cast(run, *value, old.kind);
    return numbers;
}

static bool concat_two(struct run *run, const struct node *node, struct value a, struct value b, struct value *ret)
{
    if (node->a->type == CLASS_DEF && !convert_def(run, a, CLASS_STRING, false, &a))
        return interp__at(run, node->offset);
    struct text *left = value_to_text(run, a), *right = left == NULL ? NULL : value_to_text(run, b);
    struct text *both =
        right == NULL || !run_step(run, (left->length + right->length) / 64) ? NULL : text_concat(run, left, right);
    *ret = value_of(both);
    return both != NULL || eval__fail(run, node);
}

static bool compute_compound(struct run *run, const struct node *node, struct value old, struct value b,
                             struct value *ret)
{
    if (!run->groovy && node->target == CLASS_STRING)
        return concat_two(run, node, old, b, ret);
    if (!run->groovy && node->target != CLASS_DEF && node->a->type != node->target &&
        !convert_typed(run, old, node->a->type, node->target, &old))
        return eval__fail(run, node);
    if (!operate_binary(run, (enum operator)node->op, old, b, ret))
        return eval__fail(run, node);
    if (!run->groovy && node->target == CLASS_DEF && narrow_compound(run, old, ret))
        return true;
    return fit_compound(run, node, old, ret) || eval__fail(run, node);
}

bool eval__compound(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct lvalue_target target;
    struct value old, b;
    if (!open_target(run, frame, node->a, &target))
        return false;
    if (!load_target(run, frame, node->a, &target, &old) || !eval(run, frame, node->b, &b))
        return false;
    return compute_compound(run, node, old, b, ret) && store_target(run, frame, node->a, &target, *ret);
}

bool eval__step(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct lvalue_target target;
    struct value old, stepped;
    if (node->a->kind == NODE_LOCAL && (node->a->flags & NODE_BOXED) == 0 && run->record == NULL) {
        struct value *slot = &frame->slots[node->a->slot];
        if (slot->kind == VALUE_INT) {
            old = *slot;
            *slot = value_int(old.i + (node->op == OP_ADD ? 1 : -1));
            *ret = node->flags & NODE_POSTFIX ? old : *slot;
            return true;
        }
    }
    bool stores = (node->flags & NODE_INTERNAL) == 0;
    if (stores ? !open_target(run, frame, node->a, &target) || !load_target(run, frame, node->a, &target, &old)
               : !eval(run, frame, node->a, &old))
        return false;
    if (run->record != NULL && (node->flags & NODE_POSTFIX))
        power_assert_record(run->record, node->a, old);
    bool ok = run->groovy ? groovy_step(run, (enum operator)node->op, old, &stepped)
                          : compute_compound(run, node, old,
                                             node->b->kind == NODE_CONST ? node->b->value : value_int(1), &stepped);
    if (!ok || (stores && !store_target(run, frame, node->a, &target, stepped)))
        return false;
    *ret = node->flags & NODE_POSTFIX ? old : stepped;
    return true;
}

/* Reading */

/* self*.name */
static bool get_each(struct run *run, const struct lvalue_target *target, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct iter iter;
    *ret = value_of(seq);
    if (!groovy_walk(run, &iter, target->self))
        return false;
    walk(&iter, item)
    {
        struct value one = VALUE_NONE;
        if ((item.kind != VALUE_NULL && !groovy_get(run, item, target->index, &one)) || !seq_add(run, seq, one))
            return false;
    }
    return run->thrown == NULL;
}

bool eval__dot(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct lvalue_target target;
    if (node->flags & NODE_STATIC)
        return (run->groovy ? groovy_static_get(run, node->a->target, node->text, ret)
                            : dispatch_get(run, node, VALUE_NONE, ret)) ||
               eval__fail(run, node);
    if (!open_target(run, frame, node, &target))
        return false;
    *ret = VALUE_NONE;
    if (target.skip)
        return true;
    if (node->flags & NODE_SPREAD) {
        if (target.self.kind == VALUE_NULL)
            return true;
        return get_each(run, &target, ret) || eval__fail(run, node);
    }
    return load_target(run, frame, node, &target, ret) && eval__take(run, node, ret);
}

bool eval__brace(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct lvalue_target target;
    return open_target(run, frame, node, &target) && load_target(run, frame, node, &target, ret) &&
           eval__take(run, node, ret);
}
