/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions; see interp.h. */
#include "script/interp.h"

#include "base/check.h"
#include "script/convert.h"
#include "script/dict.h"
#include "script/method.h"
#include "script/methods_groovy.h"
#include "script/operate.h"
#include "script/range.h"
#include "script/regex.h"

#define eval interp__eval

bool interp__at(struct run *run, int32_t offset)
{
    if (run->thrown != NULL && run->thrown->offset < 0)
        run->thrown->offset = offset;
    return false;
}

static bool fail(struct run *run, const struct node *node)
{
    return interp__at(run, node->fault);
}

/* Converts what a call site hands out to the type its surroundings know. */
static bool take(struct run *run, const struct node *node, struct value *ret)
{
    if ((node->flags & NODE_OPTIMIZED) == 0 || node->type == CLASS_VOID)
        return true;
    return convert_site(run, *ret, node->type, ret) || fail(run, node);
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
    /* In Painless the tree has a conversion here, which lets only booleans through. */
    return convert_truth(run, value, ret) || fail(run, node);
}

/* Variables */

static struct value *local_place(struct frame *frame, const struct node *node)
{
    struct value *slot = &frame->slots[node->slot];
    if ((node->flags & NODE_BOXED) && slot->kind == VALUE_OBJECT)
        return &((struct box *)slot->object)->value;
    return slot;
}

static bool eval_param(struct run *run, const struct node *node, struct value *ret)
{
    struct entry *entry = run->params == NULL ? NULL : dict_find_text(run->params, (struct text *)node->value.object);
    *ret = entry == NULL ? VALUE_NONE : entry->value;
    return take(run, node, ret);
}

static bool eval_binding(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    return groovy_name_get(run, frame, node, ret) || fail(run, node);
}

/* Places that can be written */

struct target {
    struct value self;
    struct value index;
    bool skip; /* a null in front of ?. */
};

static bool eval_name(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
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

static bool open_target(struct run *run, struct frame *frame, const struct node *node, struct target *target)
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
        return eval_name(run, frame, node, &target->index);
    if (!eval(run, frame, node->b, &target->index))
        return false;
    return run->groovy || dispatch_index(run, node, target->self, &target->index) ||
           interp__at(run, (int32_t)node->slot);
}

static bool load_target(struct run *run, struct frame *frame, const struct node *node, struct target *target,
                        struct value *ret)
{
    bool ok;
    if (target->skip) {
        *ret = VALUE_NONE;
        return true;
    }
    switch (node->kind) {
    case NODE_LOCAL: *ret = *local_place(frame, node); return true;
    case NODE_BINDING: return eval_binding(run, frame, node, ret);
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
    return ok || interp__at(run, node->offset);
}

static bool store_target(struct run *run, struct frame *frame, const struct node *node, struct target *target,
                         struct value value)
{
    bool ok;
    if (target->skip)
        return true;
    switch (node->kind) {
    case NODE_LOCAL:
        if (run->groovy && node->target != TYPE_NONE && !convert_groovy(run, value, node->target, false, &value))
            return false;
        *local_place(frame, node) = value;
        return true;
    case NODE_BINDING: return groovy_name_set(run, frame, node, value) || fail(run, node);
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

static bool eval_assign(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct target target;
    if (!open_target(run, frame, node->a, &target))
        return false;
    /* Java, like both dialects, finds out about a null receiver only after the right side. */
    if (!eval(run, frame, node->b, ret))
        return false;
    if (target.skip)
        return true;
    if (run->groovy && node->a->kind == NODE_LOCAL && node->a->target != TYPE_NONE &&
        !convert_groovy(run, *ret, node->a->target, false, ret))
        return false;
    return store_target(run, frame, node->a, &target, *ret);
}

/* Painless: the result goes back to the class the variable's value had; typed ones are cut down to their type. */
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

/* A def that holds a number keeps its class: Integer -= Double is an Integer. */
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
    return both != NULL || fail(run, node);
}

static bool compute_compound(struct run *run, const struct node *node, struct value old, struct value b,
                             struct value *ret)
{
    if (!run->groovy && node->target == CLASS_STRING)
        return concat_two(run, node, old, b, ret);
    if (!run->groovy && node->target != CLASS_DEF && node->a->type != node->target &&
        !convert_typed(run, old, node->a->type, node->target, &old))
        return fail(run, node);
    if (!operate_binary(run, (enum operator)node->op, old, b, ret))
        return fail(run, node);
    if (!run->groovy && node->target == CLASS_DEF && narrow_compound(run, old, ret))
        return true;
    return fit_compound(run, node, old, ret) || fail(run, node);
}

static bool eval_compound(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct target target;
    struct value old, b;
    if (!open_target(run, frame, node->a, &target))
        return false;
    if (!load_target(run, frame, node->a, &target, &old) || !eval(run, frame, node->b, &b))
        return false;
    return compute_compound(run, node, old, b, ret) && store_target(run, frame, node->a, &target, *ret);
}

static bool eval_step(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct target target;
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
    bool place = (node->flags & NODE_INTERNAL) == 0;
    if (place ? !open_target(run, frame, node->a, &target) || !load_target(run, frame, node->a, &target, &old)
              : !eval(run, frame, node->a, &old))
        return false;
    if (run->record != NULL && (node->flags & NODE_POSTFIX))
        power_record(run->record, node->a, old);
    bool ok = run->groovy ? groovy_step(run, (enum operator)node->op, old, &stepped)
                          : compute_compound(run, node, old,
                                             node->b->kind == NODE_CONST ? node->b->value : value_int(1), &stepped);
    if (!ok || (place && !store_target(run, frame, node->a, &target, stepped)))
        return false;
    *ret = node->flags & NODE_POSTFIX ? old : stepped;
    return true;
}

/* Operators */

static bool eval_binary(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b))
        return false;
    return (operate_binary(run, (enum operator)node->op, a, b, ret) || fail(run, node)) && take(run, node, ret);
}

static bool eval_compare(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool result;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b))
        return false;
    if (!operate_compare(run, (enum comparison)node->op, a, b, &result))
        return fail(run, node);
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
    return (ok || fail(run, node)) && take(run, node, ret);
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
    return ok || fail(run, node);
}

static bool eval_instanceof(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value v;
    if (!eval(run, frame, node->a, &v))
        return false;
    bool primitive = !run->groovy && node->a->type != TYPE_NONE && type_primitive(node->a->type);
    bool def = !run->groovy && node->target == CLASS_DEF;
    /* Of a primitive the types decide, and everything is a def. */
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
        return fail(run, node);
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

/* Painless: `text =~ /pattern/` is a boolean. Groovy: a matcher, and the pattern may be a text. */
static bool eval_find(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool painless = !run->groovy;
    const struct node *first = painless ? node->b : node->a, *second = painless ? node->a : node->b;
    if (!eval(run, frame, first, painless ? &b : &a) || !eval(run, frame, second, painless ? &a : &b))
        return false;
    if (painless && (a.kind == VALUE_NULL || b.kind == VALUE_NULL))
        return run_throw_npe(run, "java.lang.CharSequence.length()") || fail(run, node);
    struct text *input = value_to_text(run, a);
    struct text *source = value_is(b, CLASS_PATTERN) || input == NULL ? NULL : value_to_text(run, b);
    struct pattern *pattern = value_is(b, CLASS_PATTERN) ? (struct pattern *)b.object
                              : source == NULL           ? NULL
                                                         : regex_new(run, source, 0);
    struct matcher *matcher = input == NULL || pattern == NULL ? NULL : matcher_new(run, pattern, input);
    if (matcher == NULL)
        return fail(run, node);
    *ret = value_of(matcher);
    bool found;
    if (node->kind == NODE_FIND && !painless)
        return true;
    bool ok =
        node->kind == NODE_FIND ? matcher_find(run, matcher, &found) : matcher_match_at(run, matcher, 0, true, &found);
    *ret = value_boolean(found);
    return ok || fail(run, node);
}

/* Literals */

static bool eval_list(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(seq);
    for (const struct node *item = node->list; item != NULL; item = item->next) {
        struct value value;
        bool spread = item->kind == NODE_SPREAD_ARGUMENT;
        if (!run_step(run, 1) || !eval(run, frame, spread ? item->a : item, &value))
            return false;
        if (!spread && !seq_add(run, seq, value))
            return fail(run, node);
        if (spread && (!operate_binary(run, OP_ADD, *ret, value, ret) || (seq = (struct seq *)ret->object) == NULL))
            return fail(run, node);
    }
    return true;
}

/* Groovy's [*:map], which also takes null. */
static bool put_spread(struct run *run, struct frame *frame, const struct node *node, struct dict *dict)
{
    struct value from;
    if (!eval(run, frame, node, &from))
        return false;
    if (from.kind == VALUE_NULL)
        return true;
    if (!value_is_map(from))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "a map is expected behind *:");
    return dict_put_all(run, dict, (struct dict *)from.object);
}

static bool eval_map(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct dict *dict = dict_new(run, run->groovy ? CLASS_LINKED_HASH_MAP : CLASS_HASH_MAP);
    *ret = value_of(dict);
    for (const struct node *key = node->list; key != NULL; key = key->next->next) {
        struct value k, v;
        if (key->kind == NODE_SPREAD_ARGUMENT) {
            if (!put_spread(run, frame, key->next, dict))
                return fail(run, node);
            continue;
        }
        if (!run_step(run, 1) || !eval(run, frame, key, &k) || !eval(run, frame, key->next, &v))
            return false;
        if (!dict_put(run, dict, k, v, NULL))
            return fail(run, node);
    }
    return true;
}

static bool fill_array(struct run *run, struct frame *frame, const struct node *node, struct array *array)
{
    size_t i = 0;
    for (const struct node *item = node->list; item != NULL; item = item->next)
        if (!run_step(run, 1) || !eval(run, frame, item, &array->items[i++]))
            return false;
    return true;
}

static struct array *nested_array(struct run *run, type_id type, const struct value *counts, unsigned dims)
{
    struct array *array = run_step(run, 1) ? array_new(run, type_element(type), number_to_i64(counts[0])) : NULL;
    if (array == NULL || dims == 1 || !run_step(run, array->count / 16))
        return run->thrown == NULL ? array : NULL;
    for (size_t i = 0; i < array->count; i++) {
        struct array *inner = nested_array(run, type_element(type), counts + 1, dims - 1);
        if (inner == NULL)
            return NULL;
        array->items[i] = value_of(inner);
    }
    return array;
}

static bool eval_new_array(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value counts[TYPE_DIMS_MAX];
    unsigned dims = 0;
    if (node->kind == NODE_ARRAY_INIT) {
        int64_t count = 0;
        for (const struct node *item = node->list; item != NULL; item = item->next)
            count++;
        struct array *array = array_new(run, type_element(node->target), count);
        *ret = value_of(array);
        return (array != NULL || fail(run, node)) && fill_array(run, frame, node, array);
    }
    for (const struct node *count = node->list; count != NULL && dims < TYPE_DIMS_MAX; count = count->next)
        if (!eval(run, frame, count, &counts[dims++]))
            return false;
    struct array *array = nested_array(run, node->target, counts, dims);
    *ret = value_of(array);
    return array != NULL || fail(run, node);
}

static bool eval_concat(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (const struct node *part = node->list; part != NULL; part = part->next) {
        struct value value;
        if (!eval(run, frame, part, &value))
            return false;
        bool calls = value_is(value, CLASS_CLOSURE) && function_arity(value) == 0;
        if (calls && !run_invoke(run, value, NULL, 0, &value))
            return fail(run, node);
        if (!value_append(run, value, &out) || !run_step(run, out.length / 256))
            return fail(run, node);
    }
    struct text *text = text_buf_done(&out);
    *ret = value_of(text);
    if (text != NULL && node->kind == NODE_GSTRING) {
        struct gstring *gstring = run_object(run, sizeof *gstring, CLASS_GSTRING);
        gstring->text = text;
        *ret = value_of(gstring);
    }
    return text != NULL || fail(run, node);
}

static bool eval_range(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value from, to;
    if (!eval(run, frame, node->a, &from) || !eval(run, frame, node->b, &to))
        return false;
    return range_new(run, value_plain(from), value_plain(to), (node->flags & NODE_EXCLUSIVE) != 0, ret) ||
           fail(run, node);
}

/* Functions as values */

static bool eval_lambda(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    const struct function *function = node->function;
    struct closure *closure = run_object(run, sizeof *closure, CLASS_CLOSURE);
    closure->kind = CLOSURE_BODY;
    closure->body = function;
    closure->arity = function->parameter_count;
    closure->delegate = frame->delegate;
    *ret = value_of(closure);
    if (function->capture_count == 0)
        return true;
    closure->captured = run_alloc_large(run, function->capture_count * sizeof *closure->captured);
    if (closure->captured == NULL)
        return fail(run, node);
    for (unsigned i = 0; i < function->capture_count; i++)
        closure->captured[i] = frame->slots[function->captures[i].outer];
    return true;
}

static bool eval_reference(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct closure *closure = run_object(run, sizeof *closure, CLASS_CLOSURE);
    *ret = value_of(closure);
    closure->arity = 1;
    if (node->function != NULL) {
        closure->kind = CLOSURE_BODY;
        closure->body = node->function;
        closure->arity = node->function->parameter_count;
        return true;
    }
    closure->kind = CLOSURE_CALLER;
    closure->name = text_new(run, node->text);
    if (node->a != NULL)
        return eval(run, frame, node->a, &closure->held[0]);
    struct class_object *owner = run_object(run, sizeof *owner, CLASS_CLASS);
    owner->type = node->target;
    closure->held[1] = value_of(owner);
    return true;
}

/* Calls */

#define ARGUMENTS_MAX 64u

/* Room on the stack of locals for a receiver, the arguments and one more. */
static struct value *reserve_arguments(struct run *run, const struct node *list)
{
    unsigned count = 3;
    for (; list != NULL; list = list->next)
        count = list->kind == NODE_SPREAD_ARGUMENT ? ARGUMENTS_MAX : count + 1;
    return interp__stack(run, count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX);
}

/* Evaluates arguments behind `first`. */
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
    /* Named ones go first, as one map. */
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

/* Arguments, one a bit, that are cast to Object: the way to a list's remove by value. */
static uint32_t cast_to_object(const struct node *list)
{
    uint32_t mask = 0;
    unsigned i = 0;
    for (const struct node *argument = list; argument != NULL && i < 32; argument = argument->next, i++)
        if (argument->kind == NODE_CAST && argument->target == CLASS_OBJECT)
            mask |= 1u << i;
    return mask;
}

static bool eval_groovy_call(struct run *run, const struct node *node, struct frame *frame, struct value *arguments,
                             unsigned count, struct value *ret)
{
    struct slice name = node->text;
    if (node->b != NULL) {
        struct value computed;
        if (!eval_name(run, frame, node, &computed))
            return false;
        name = text_slice(run->arena, (struct text *)computed.object);
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
        return fail(run, node);
    bool ok = run->groovy ? eval_groovy_call(run, node, frame, arguments, count - 1, ret)
                          : dispatch_call(run, node, arguments, count - 1, ret);
    return (ok || fail(run, node)) && take(run, node, ret);
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
        return fail(run, node);
    count--;
    if (node->function != NULL)
        return interp_call(run, node->function, NULL, arguments + 1, count, ret) || fail(run, node);
    struct value callee;
    if (node->a != NULL) /* a local that holds a closure, or an expression that yields one */
        return eval(run, frame, node->a, &callee) &&
               (call_value(run, callee, arguments, count, ret) || fail(run, node));
    return groovy_name_call(run, frame, node, arguments, count, ret) || fail(run, node);
}

static bool new_with(struct run *run, struct frame *frame, const struct node *node, struct value *arguments,
                     struct value *ret)
{
    unsigned count = 1;
    if (!eval_arguments(run, frame, node->list, arguments, &count) || !run_step(run, 1))
        return fail(run, node);
    bool ok = run->groovy ? groovy_new(run, node->target, arguments, count - 1, ret)
                          : dispatch_new(run, node, arguments, count - 1, ret);
    if (!ok)
        return fail(run, node);
    /* A throwable is where it was made. */
    if (class_infos[type_class(node->target)].kind == CLASS_KIND_X && ret->kind == VALUE_OBJECT)
        ((struct throwable *)ret->object)->offset = node->fault;
    return true;
}

/* A call in one of its three forms, with room for its arguments. */
static bool eval_call(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value *next = run->stack_next, *end = run->stack_end;
    struct value *arguments = reserve_arguments(run, node->list);
    if (arguments == NULL)
        return fail(run, node);
    bool ok = node->kind == NODE_CALL         ? call_with(run, frame, node, arguments, ret)
              : node->kind == NODE_CALL_LOCAL ? call_local_with(run, frame, node, arguments, ret)
                                              : new_with(run, frame, node, arguments, ret);
    run->stack_next = next;
    run->stack_end = end;
    return ok;
}

/* self*.name */
static bool get_each(struct run *run, const struct target *target, struct value *ret)
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

static bool eval_dot(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct target target;
    if (node->flags & NODE_STATIC)
        return (run->groovy ? groovy_static_get(run, node->a->target, node->text, ret)
                            : dispatch_get(run, node, VALUE_NONE, ret)) ||
               fail(run, node);
    if (!open_target(run, frame, node, &target))
        return false;
    *ret = VALUE_NONE;
    if (target.skip)
        return true;
    if (node->flags & NODE_SPREAD) {
        if (target.self.kind == VALUE_NULL)
            return true;
        return get_each(run, &target, ret) || fail(run, node);
    }
    return load_target(run, frame, node, &target, ret) && take(run, node, ret);
}

static bool eval_brace(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct target target;
    return open_target(run, frame, node, &target) && load_target(run, frame, node, &target, ret) &&
           take(run, node, ret);
}

static bool eval_in(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    bool found;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b) || !groovy_contains(run, a, b, &found))
        return fail(run, node);
    *ret = value_boolean(found);
    return true;
}

static bool eval_spaceship(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value a, b;
    int order;
    if (!eval(run, frame, node->a, &a) || !eval(run, frame, node->b, &b) || !operate_order(run, a, b, &order))
        return fail(run, node);
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

static bool eval_not(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool value;
    if (!interp__truth(run, frame, node->a, &value))
        return false;
    *ret = value_boolean(!value);
    return true;
}

static bool eval_any(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    switch (node->kind) {
    case NODE_PARAM: return eval_param(run, node, ret);
    case NODE_BINDING: return eval_binding(run, frame, node, ret);
    case NODE_TYPE: return eval_class(run, node, ret);
    case NODE_ASSIGN: return eval_assign(run, frame, node, ret);
    case NODE_COMPOUND: return eval_compound(run, frame, node, ret);
    case NODE_STEP: return eval_step(run, frame, node, ret);
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
    case NODE_LIST: return eval_list(run, frame, node, ret);
    case NODE_MAP: return eval_map(run, frame, node, ret);
    case NODE_NEW_ARRAY:
    case NODE_ARRAY_INIT: return eval_new_array(run, frame, node, ret);
    case NODE_DOT: return eval_dot(run, frame, node, ret);
    case NODE_BRACE: return eval_brace(run, frame, node, ret);
    case NODE_CALL:
    case NODE_CALL_LOCAL:
    case NODE_NEW: return eval_call(run, frame, node, ret);
    case NODE_LAMBDA: return eval_lambda(run, frame, node, ret);
    case NODE_REFERENCE: return eval_reference(run, frame, node, ret);
    case NODE_FIND:
    case NODE_MATCH: return eval_find(run, frame, node, ret);
    case NODE_CONCAT:
    case NODE_GSTRING: return eval_concat(run, frame, node, ret);
    case NODE_RANGE: return eval_range(run, frame, node, ret);
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
        *ret = *local_place(frame, node);
    else
        ok = eval_any(run, frame, node, ret);
    if (ok && __builtin_expect(run->record != NULL, 0))
        power_record(run->record, node, *ret);
    return ok;
}
