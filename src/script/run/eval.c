/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: operators, and dispatch to the other files eval_….c; see interp.h. */
#include "script/run/eval.h"

#include "base/check.h"
#include "script/value/dict.h"
#include "script/run/operate.h"
#include "script/value/regex.h"

bool interp__at(struct run *run, int32_t offset)
{
    if (run->thrown != NULL && run->thrown->offset < 0)
        run->thrown->offset = offset;
    return false;
}

bool interp__truth(struct run *run, struct frame *frame, const struct node *node, bool *ret)
{
    struct value value;
    if (!eval(run, frame, node, &value))
        return false;
    if (value.kind == VALUE_BOOLEAN) {
        *ret = value.i != 0;
        return true;
    }
    /* In Painless the tree has a conversion here, which accepts only booleans. */
    return convert_truth(run, value, ret) || eval__fail(run, node);
}

static bool eval_param(struct run *run, const struct node *node, struct value *ret)
{
    struct map_entry *entry =
        run->params == NULL ? NULL : dict_find_text(run, run->params, (struct text *)node->value.object);
    *ret = entry == NULL ? VALUE_NONE : entry->value;
    return eval__take(run, node, ret);
}

/* Operators */

static bool eval_binary(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b))
        return false;
    return (operate_binary(run, (enum operator)node->op, a, b, ret) || eval__fail(run, node)) &&
           eval__take(run, node, ret);
}

static bool eval_compare(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool result;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b))
        return false;
    if (!operate_compare(run, (enum comparison)node->op, a, b, &result))
        return eval__fail(run, node);
    *ret = value_boolean(result);
    return true;
}

static bool eval_unary(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value v;
    if (!eval(run, frame, node->a, &v))
        return false;
    bool ok = node->kind == NODE_NEGATE ? operate_negate(run, v, ret)
              : node->kind == NODE_PLUS ? operate_plus(run, v, ret)
                                        : operate_invert(run, v, ret);
    return (ok || eval__fail(run, node)) && eval__take(run, node, ret);
}

static bool eval_cast(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value v;
    if (!eval(run, frame, node->a, &v))
        return false;
    bool explicit = (node->flags & NODE_EXPLICIT) != 0, ok;
    if (run->groovy)
        ok = convert_groovy(run, v, node->target, node->kind == NODE_COERCE, ret);
    else if (node->a->type == CLASS_DEF)
        ok = convert_def(run, v, node->target, explicit, ret);
    else
        ok = convert_typed(run, v, node->a->type, node->target, ret);
    return ok || eval__fail(run, node);
}

static bool eval_instanceof(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value v;
    if (!eval(run, frame, node->a, &v))
        return false;
    bool primitive = !run->groovy && node->a->type != TYPE_NONE && type_primitive(node->a->type);
    bool def = !run->groovy && node->target == CLASS_DEF;
    /* instanceof on a primitive is decided by static types; every value is a def. */
    bool is =
        def || (primitive ? type_boxed(node->target) == type_boxed(node->a->type) : value_instance_of(v, node->target));
    *ret = value_boolean(is);
    return true;
}

static bool eval_conditional(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool yes;
    if (!interp__truth(run, frame, node->a, &yes))
        return false;
    return eval(run, frame, yes ? node->b : node->c, ret);
}

static bool eval_elvis(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool yes = true;
    if (!eval(run, frame, node->a, ret))
        return false;
    if (!run->groovy)
        yes = ret->kind != VALUE_NULL;
    else if (!convert_truth(run, *ret, &yes))
        return eval__fail(run, node);
    return yes || eval(run, frame, node->b, ret);
}

static bool eval_logic(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool value;
    if (!interp__truth(run, frame, node->a, &value))
        return false;
    if (value == (node->kind == NODE_AND) && !interp__truth(run, frame, node->b, &value))
        return false;
    *ret = value_boolean(value);
    return true;
}

static bool eval_not(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool value;
    if (!interp__truth(run, frame, node->a, &value))
        return false;
    *ret = value_boolean(!value);
    return true;
}

/* Painless: `text =~ /pattern/` is a boolean. Groovy: a matcher, and the pattern may be a text. */
static bool eval_find(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool painless = !run->groovy;
    const struct node *first = painless ? node->b : node->a, *second = painless ? node->a : node->b;
    if (!eval(run, frame, first, painless ? &b : &a) || !eval(run, frame, second, painless ? &a : &b))
        return false;
    if (painless && (a.kind == VALUE_NULL || b.kind == VALUE_NULL))
        return run_throw_npe(run, "java.lang.CharSequence.length()") || eval__fail(run, node);
    struct text *input = value_to_text(run, a);
    struct text *source = value_is(b, CLASS_PATTERN) || input == NULL ? NULL : value_to_text(run, b);
    struct regex *pattern = value_is(b, CLASS_PATTERN) ? (struct regex *)b.object
                            : source == NULL           ? NULL
                                                       : regex_new(run, source, 0);
    struct regex_matcher *matcher = input == NULL || pattern == NULL ? NULL : regex_matcher_new(run, pattern, input);
    if (matcher == NULL)
        return eval__fail(run, node);
    *ret = value_of(matcher);
    bool found;
    if (node->kind == NODE_FIND && !painless)
        return true;
    bool ok = node->kind == NODE_FIND ? regex_matcher_find(run, matcher, &found)
                                      : regex_matcher_match_at(run, matcher, 0, true, &found);
    *ret = value_boolean(found);
    return ok || eval__fail(run, node);
}

static bool eval_in(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool found;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b) || !groovy_contains(run, a, b, &found))
        return eval__fail(run, node);
    *ret = value_boolean(found);
    return true;
}

static bool eval_spaceship(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    int order;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b) || !operate_order(run, a, b, &order))
        return eval__fail(run, node);
    *ret = value_int((order > 0) - (order < 0));
    return true;
}

static bool eval_class(struct run *run, const struct node *node, struct value *ret)
{
    struct class_object *object = run_object(run, sizeof *object, CLASS_CLASS);
    object->type = node->target;
    *ret = value_of(object);
    return true;
}

/* Any expression */

static bool eval_any(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    switch (node->kind) {
    case NODE_PARAM: return eval_param(run, node, ret);
    case NODE_BINDING: return eval__binding(run, frame, node, ret);
    case NODE_TYPE: return eval_class(run, node, ret);
    case NODE_ASSIGN: return eval__assign(run, frame, node, ret);
    case NODE_COMPOUND: return eval__compound(run, frame, node, ret);
    case NODE_STEP: return eval__step(run, frame, node, ret);
    case NODE_BINARY: return eval_binary(run, frame, node, ret);
    case NODE_COMPARE: return eval_compare(run, frame, node, ret);
    case NODE_AND:
    case NODE_OR: return eval_logic(run, frame, node, ret);
    case NODE_NOT: return eval_not(run, frame, node, ret);
    case NODE_NEGATE:
    case NODE_PLUS:
    case NODE_INVERT: return eval_unary(run, frame, node, ret);
    case NODE_CAST:
    case NODE_COERCE: return eval_cast(run, frame, node, ret);
    case NODE_INSTANCEOF: return eval_instanceof(run, frame, node, ret);
    case NODE_CONDITIONAL: return eval_conditional(run, frame, node, ret);
    case NODE_ELVIS: return eval_elvis(run, frame, node, ret);
    case NODE_LIST: return eval__list(run, frame, node, ret);
    case NODE_MAP: return eval__map(run, frame, node, ret);
    case NODE_NEW_ARRAY:
    case NODE_ARRAY_INIT: return eval__new_array(run, frame, node, ret);
    case NODE_DOT: return eval__dot(run, frame, node, ret);
    case NODE_BRACE: return eval__brace(run, frame, node, ret);
    case NODE_CALL:
    case NODE_CALL_LOCAL:
    case NODE_NEW: return eval__call(run, frame, node, ret);
    case NODE_LAMBDA: return eval__lambda(run, frame, node, ret);
    case NODE_REFERENCE: return eval__reference(run, frame, node, ret);
    case NODE_FIND:
    case NODE_MATCH: return eval_find(run, frame, node, ret);
    case NODE_CONCAT:
    case NODE_GSTRING: return eval__concat(run, frame, node, ret);
    case NODE_RANGE: return eval__range(run, frame, node, ret);
    case NODE_IN: return eval_in(run, frame, node, ret);
    case NODE_SPACESHIP: return eval_spaceship(run, frame, node, ret);
    default: UNREACHABLE(); return false;
    }
}

bool interp__eval(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    if (node->kind == NODE_CONST) {
        *ret = node->value;
        return true;
    }
    bool ok = true;
    if (node->kind == NODE_LOCAL)
        *ret = *eval__local(frame, node);
    else
        ok = eval_any(run, frame, node, ret);
    if (ok && __builtin_expect(run->record != NULL, 0))
        power_assert_record(run->record, node, *ret);
    return ok;
}
