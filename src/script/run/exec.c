/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and calls; see interp.h. */
#include "script/run/interp.h"

#include "base/check.h"
#include "script/run/convert.h"
#include "script/value/iter.h"
#include "script/run/operate.h"
#include "script/value/range.h"

static enum flow_result exec_list(struct run *run, struct frame *frame, const struct node *list, struct value *ret)
{
    for (; list != NULL; list = list->next) {
        enum flow_result flow = interp__exec(run, frame, list, ret);
        if (flow != FLOW_NEXT)
            return flow;
    }
    return FLOW_NEXT;
}

/* Counts a loop iteration against Painless's limit and the step budget. */
static bool count_turn(struct run *run, struct frame *frame, const struct node *node)
{
    if (!run_step(run, 1))
        return interp__at(run, node->offset);
    if (run->groovy || --frame->iterations_left > 0)
        return true;
    run_throw(run, CLASS_PAINLESS_ERROR,
              "The maximum number of statements that can be executed in a loop has been reached.");
    return interp__at(run, node->offset);
}

/* A labelled jump leaves loops until it reaches the one it names. */
static enum flow_result arrive_at_loop(struct run *run, const struct node *loop)
{
    const struct node *jump = run->jump;
    if (loop->value.kind == VALUE_NULL ||
        !text_same(run, (const struct text *)loop->value.object, (const struct text *)jump->value.object))
        return FLOW_LEAVE;
    run->jump = NULL;
    return jump->kind == NODE_BREAK ? FLOW_BREAK : FLOW_NEXT;
}

static enum flow_result exec_body(struct run *run, struct frame *frame, const struct node *loop, struct value *ret)
{
    enum flow_result flow = loop->b == NULL ? FLOW_NEXT : interp__exec(run, frame, loop->b, ret);
    if (flow == FLOW_LEAVE)
        return arrive_at_loop(run, loop);
    return flow == FLOW_CONTINUE ? FLOW_NEXT : flow;
}

static enum flow_result exec_jump(struct run *run, const struct node *node)
{
    if (node->value.kind == VALUE_NULL)
        return node->kind == NODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
    run->jump = node;
    return FLOW_LEAVE;
}

static enum flow_result exec_do(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    for (;;) {
        bool go;
        enum flow_result flow = exec_body(run, frame, node, ret);
        if (flow != FLOW_NEXT)
            return flow == FLOW_BREAK ? FLOW_NEXT : flow;
        if (!interp__truth(run, frame, node->a, &go))
            return FLOW_THROW;
        if (!go)
            return FLOW_NEXT;
        if (!count_turn(run, frame, node))
            return FLOW_THROW;
    }
}

/* Executes an expression or a declaration in the head of a loop. */
static bool exec_head(struct run *run, struct frame *frame, const struct node *list)
{
    struct value ignored;
    for (; list != NULL; list = list->next) {
        bool declares = list->kind == NODE_DECLARE_ALL || list->kind == NODE_DECLARE;
        bool ok =
            declares ? interp__exec(run, frame, list, &ignored) == FLOW_NEXT : interp__eval(run, frame, list, &ignored);
        if (!ok)
            return false;
    }
    return true;
}

/* Executes `for`, and `while`, which has only a condition. */
static enum flow_result exec_for(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    if (!exec_head(run, frame, node->list))
        return FLOW_THROW;
    for (;;) {
        bool go = true;
        if (node->a != NULL && !interp__truth(run, frame, node->a, &go))
            return FLOW_THROW;
        if (!go)
            return FLOW_NEXT;
        if (!count_turn(run, frame, node))
            return FLOW_THROW;
        enum flow_result flow = exec_body(run, frame, node, ret);
        if (flow != FLOW_NEXT)
            return flow == FLOW_BREAK ? FLOW_NEXT : flow;
        if (!exec_head(run, frame, node->c))
            return FLOW_THROW;
    }
}

static void store_local(struct run *run, struct frame *frame, const struct node *node, struct value value, bool fresh)
{
    struct value *slot = &frame->slots[node->slot];
    if ((node->flags & NODE_BOXED) == 0) {
        *slot = value;
        return;
    }
    if (fresh || slot->kind == VALUE_NULL) {
        struct box *box = run_object(run, sizeof *box, CLASS_OBJECT);
        *slot = value_of(box);
    }
    ((struct box *)slot->object)->value = value;
}

static bool each_fails(struct run *run, struct value source)
{
    char name[TYPE_NAME_MAX];
    if (source.kind == VALUE_NULL)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION,
                         "Cannot invoke \"Object.getClass()\" because \"callArgs[0]\" is null");
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Cannot iterate over [%s]",
                     type_name(value_type(source), name));
}

/* Groovy: null has no iterations; any other value that is not iterable has one. */
static bool start_each(struct run *run, struct iter *iter, struct value source)
{
    if (iter_init(iter, run, source))
        return true;
    if (!run->groovy)
        return each_fails(run, source);
    if (source.kind == VALUE_NULL)
        return true;
    struct seq *once = seq_new(run, CLASS_ARRAY_LIST, 1);
    return once != NULL && seq_add(run, once, source) && iter_init(iter, run, value_of(once));
}

static bool next_item(struct run *run, const struct node *node, struct iter *iter, struct value *ret, bool *ret_more)
{
    if (!iter_next(iter, ret, ret_more))
        return interp__at(run, node->error_offset);
    if (!*ret_more || node->target == CLASS_DEF || node->target == TYPE_NONE)
        return true;
    bool ok = run->groovy               ? convert_groovy(run, *ret, node->target, false, ret)
              : node->type == CLASS_DEF ? convert_def(run, *ret, node->target, true, ret)
                                        : convert_typed(run, *ret, node->type, node->target, ret);
    return ok || interp__at(run, node->error_offset);
}

/* Iterates over a range of integers without creating the list. */
static bool range_each(struct run *run, struct frame *frame, const struct node *range, struct iter *iter,
                       bool *ret_done)
{
    struct value from, to, made;
    *ret_done = range->kind == NODE_RANGE;
    if (range->kind != NODE_RANGE)
        return true;
    if (!interp__eval(run, frame, range->a, &from) || !interp__eval(run, frame, range->b, &to))
        return false;
    bool exclusive = (range->flags & NODE_EXCLUSIVE) != 0;
    if (from.kind != VALUE_INT || to.kind != VALUE_INT)
        return range_new(run, value_plain(from), value_plain(to), exclusive, &made) && iter_init(iter, run, made);
    int64_t step = from.i <= to.i ? 1 : -1;
    *iter = (struct iter){.run = run, .kind = ITER_RANGE, .from = from.i, .to = exclusive ? to.i : to.i + step};
    return true;
}

static enum flow_result exec_each(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct iter iter;
    struct value source, item;
    bool more, done;
    if (!range_each(run, frame, node->a, &iter, &done))
        return FLOW_THROW;
    if (!done) {
        if (!interp__eval(run, frame, node->a, &source))
            return FLOW_THROW;
        if (!start_each(run, &iter, source)) {
            interp__at(run, node->error_offset);
            return FLOW_THROW;
        }
    }
    while (next_item(run, node, &iter, &item, &more)) {
        if (!more)
            return FLOW_NEXT;
        store_local(run, frame, node, item, true);
        if (!count_turn(run, frame, node))
            return FLOW_THROW;
        enum flow_result flow = exec_body(run, frame, node, ret);
        if (flow != FLOW_NEXT)
            return flow == FLOW_BREAK ? FLOW_NEXT : flow;
    }
    return FLOW_THROW;
}

static enum flow_result exec_declare(struct run *run, struct frame *frame, const struct node *node)
{
    struct value value = run->groovy ? VALUE_NONE : value_default(node->target);
    if (node->a != NULL && !interp__eval(run, frame, node->a, &value))
        return FLOW_THROW;
    if (run->groovy && node->a == NULL && node->target != TYPE_NONE && type_primitive(node->target))
        value = value_default(node->target);
    if (run->groovy && node->target != TYPE_NONE && !convert_groovy(run, value, node->target, false, &value))
        return FLOW_THROW;
    store_local(run, frame, node, value, true);
    return FLOW_NEXT;
}

static enum flow_result exec_throw(struct run *run, struct frame *frame, const struct node *node)
{
    struct value value;
    char name[TYPE_NAME_MAX];
    if (!interp__eval(run, frame, node->a, &value))
        return FLOW_THROW;
    bool throwable = value.kind == VALUE_OBJECT && value.object->class < CLASS_COUNT &&
                     class_infos[value.object->class].kind == CLASS_KIND_X;
    if (value.kind == VALUE_NULL)
        run_throw_npe(run, "throw");
    else if (!throwable)
        run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class java.lang.Throwable",
                  type_java_name(value_type(value), name));
    else
        run->thrown = (struct throwable *)value.object;
    interp__at(run, node->error_offset);
    return FLOW_THROW;
}

static const struct node *find_catch(const struct node *list, const struct throwable *thrown)
{
    for (; list != NULL; list = list->next)
        if (class_extends((enum class_id)thrown->object.class, type_class(list->target)))
            return list;
    return NULL;
}

static enum flow_result exec_try(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    enum flow_result flow = interp__exec(run, frame, node->b, ret);
    bool caught = flow == FLOW_THROW && run->thrown->object.class != CLASS_LIMIT_EXCEEDED;
    const struct node *trap = caught ? find_catch(node->list, run->thrown) : NULL;
    if (trap != NULL) {
        struct throwable *thrown = run->thrown;
        run->thrown = NULL;
        store_local(run, frame, trap, value_of(thrown), true);
        flow = trap->b == NULL ? FLOW_NEXT : interp__exec(run, frame, trap->b, ret);
    }
    if (node->c == NULL || (flow == FLOW_THROW && run->thrown->object.class == CLASS_LIMIT_EXCEEDED))
        return flow;
    struct throwable *pending = run->thrown;
    struct value result = *ret;
    run->thrown = NULL;
    enum flow_result last = interp__exec(run, frame, node->c, ret);
    if (last != FLOW_NEXT)
        return last;
    run->thrown = pending;
    *ret = result;
    return flow;
}

static enum flow_result exec_switch(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value subject, label;
    const struct node *start = NULL, *fallback = NULL;
    if (!interp__eval(run, frame, node->a, &subject))
        return FLOW_THROW;
    for (const struct node *one = node->list; one != NULL && start == NULL; one = one->next) {
        bool hit = false;
        if (one->a == NULL) {
            fallback = one;
            continue;
        }
        if (!interp__eval(run, frame, one->a, &label) || !groovy_contains(run, subject, label, &hit))
            return FLOW_THROW;
        if (hit)
            start = one;
    }
    for (const struct node *one = start != NULL ? start : fallback; one != NULL; one = one->next) {
        enum flow_result flow = one->b == NULL ? FLOW_NEXT : interp__exec(run, frame, one->b, ret);
        if (flow != FLOW_NEXT)
            return flow == FLOW_BREAK ? FLOW_NEXT : flow;
    }
    return FLOW_NEXT;
}

static enum flow_result exec_if(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    bool yes;
    if (!interp__truth(run, frame, node->a, &yes))
        return FLOW_THROW;
    const struct node *branch = yes ? node->b : node->c;
    return branch == NULL ? FLOW_NEXT : interp__exec(run, frame, branch, ret);
}

enum flow_result interp__exec(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value ignored;
    if (!run_step(run, 1)) {
        interp__at(run, node->offset);
        return FLOW_THROW;
    }
    switch (node->kind) {
    case NODE_BLOCK:
    case NODE_DECLARE_ALL: return exec_list(run, frame, node->list, ret);
    case NODE_EXPRESSION: return interp__eval(run, frame, node->a, &ignored) ? FLOW_NEXT : FLOW_THROW;
    case NODE_DECLARE: return exec_declare(run, frame, node);
    case NODE_IF: return exec_if(run, frame, node, ret);
    case NODE_DO: return exec_do(run, frame, node, ret);
    case NODE_WHILE:
    case NODE_FOR: return exec_for(run, frame, node, ret);
    case NODE_EACH: return exec_each(run, frame, node, ret);
    case NODE_RETURN:
        *ret = VALUE_NONE;
        return node->a == NULL || interp__eval(run, frame, node->a, ret) ? FLOW_RETURN : FLOW_THROW;
    case NODE_THROW: return exec_throw(run, frame, node);
    case NODE_TRY: return exec_try(run, frame, node, ret);
    case NODE_BREAK:
    case NODE_CONTINUE: return exec_jump(run, node);
    case NODE_ASSERT: return power_assert(run, frame, node) ? FLOW_NEXT : FLOW_THROW;
    case NODE_SWITCH: return exec_switch(run, frame, node, ret);
    case NODE_EMPTY: return FLOW_NEXT;
    default: UNREACHABLE(); return FLOW_THROW;
    }
}

/* Calls */

#define STACK_CHUNK_VALUES 2048u

struct value *interp__stack(struct run *run, unsigned count)
{
    if (run->stack_next == NULL || (size_t)(run->stack_end - run->stack_next) < count) {
        unsigned size = count > STACK_CHUNK_VALUES ? count : STACK_CHUNK_VALUES;
        struct value *chunk = run_alloc_large(run, size * sizeof *chunk);
        if (chunk == NULL)
            return NULL;
        run->stack_next = chunk;
        run->stack_end = chunk + size;
    }
    struct value *slots = run->stack_next;
    run->stack_next += count;
    memset(slots, 0, count * sizeof *slots);
    return slots;
}

/* Binds arguments: converts those of typed parameters, boxes shared ones; see groovy_argument. */
static bool bind_groovy(struct run *run, struct frame *frame, struct value *arguments, unsigned count)
{
    const struct function *function = frame->function;
    unsigned next = 0;
    for (unsigned i = 0; i < function->parameter_count; i++) {
        const struct parameter *parameter = &function->parameters[i];
        struct value value;
        if (!groovy_argument(run, frame, i, arguments, count, &next, &value))
            return false;
        if (parameter->type != TYPE_NONE && !convert_groovy(run, value, parameter->type, false, &value))
            return false;
        struct node target = {.slot = i, .flags = parameter->boxed ? NODE_BOXED : 0};
        store_local(run, frame, &target, value, true);
    }
    return true;
}

static bool bind_painless(struct run *run, struct frame *frame, struct value *arguments, unsigned count)
{
    const struct function *function = frame->function;
    for (unsigned i = 0; i < function->parameter_count && i < count; i++) {
        type_id type = function->parameters[i].type;
        frame->slots[i] = arguments[i];
        if (function->lambda && type != CLASS_DEF && !convert_site(run, arguments[i], type, &frame->slots[i]))
            return false;
    }
    return true;
}

static bool call_body(struct run *run, struct frame *frame, const struct closure *closure, struct value *arguments,
                      unsigned count, struct value *ret)
{
    const struct function *function = frame->function;
    for (unsigned i = 0; i < function->capture_count; i++)
        frame->slots[function->captures[i].inner] = closure->captured[i];
    bool bound = run->groovy ? bind_groovy(run, frame, arguments, count) : bind_painless(run, frame, arguments, count);
    if (!bound)
        return false;
    *ret = VALUE_NONE;
    enum flow_result flow = interp__exec(run, frame, function->body, ret);
    if (flow != FLOW_RETURN || (run->groovy && function->result == CLASS_VOID))
        *ret = VALUE_NONE;
    if (flow != FLOW_THROW && run->groovy && function->result != TYPE_NONE && function->result != CLASS_VOID)
        return convert_groovy(run, *ret, function->result, false, ret);
    return flow != FLOW_THROW;
}

bool interp_call(struct run *run, const struct function *function, const struct closure *closure,
                 struct value *arguments, unsigned count, struct value *ret)
{
    struct value *next = run->stack_next, *end = run->stack_end;
    if (!run_step(run, 1))
        return false;
    if (run->depth >= run->limits->depth_max)
        return run_throw_null(run, CLASS_STACK_OVERFLOW_ERROR);
    if (!run_enter(run, function->nesting))
        return false;
    run->depth++;
    struct recorder *record =
        run->record; /* records subexpressions of an assertion, not those of functions they call */
    struct frame frame = {.function = function, .iterations_left = FRAME_ITERATIONS_MAX};
    run->record = NULL;
    frame.delegate = closure == NULL ? NULL : closure->delegate;
    frame.slots = interp__stack(run, function->slot_count);
    bool ok = frame.slots != NULL && call_body(run, &frame, closure, arguments, count, ret);
    run->record = record;
    run->depth--;
    run_leave(run, function->nesting);
    run->stack_next = next;
    run->stack_end = end;
    return ok;
}

unsigned function_arity(struct value function)
{
    if (!value_is(function, CLASS_CLOSURE))
        return 1;
    const struct closure *closure = (const struct closure *)function.object;
    return closure->kind == CLOSURE_BODY ? closure->body->parameter_count : closure->arity;
}

struct value closure_native_new(struct run *run, closure_native *native, unsigned arity, struct value a, struct value b)
{
    struct closure *closure = run_object(run, sizeof *closure, CLASS_CLOSURE);
    closure->kind = CLOSURE_NATIVE;
    closure->native = native;
    closure->arity = arity;
    closure->held[0] = a;
    closure->held[1] = b;
    return value_of(closure);
}
