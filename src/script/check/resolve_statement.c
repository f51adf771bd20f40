/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's statements: refuses unreachable code, missing results, and loops without effect.
 */
#include "script/check/resolve.h"

#include "base/check.h"

/* An expression that is false; compile_fail() returns NULL. */
#define FAIL(type, offset, ...)                                       \
    __extension__({                                                   \
        compile_fail(r->compiler, CLASS_##type, offset, __VA_ARGS__); \
        false;                                                        \
    })
#define ILLEGAL(node, ...) FAIL(ILLEGAL_ARGUMENT_EXCEPTION, (node)->offset, __VA_ARGS__)

/* The position of a statement. */
struct statement_position {
    bool last_source; /* last of the function: an expression there is its result */
    bool in_loop;
    bool last_loop; /* last of a loop's body */
};

/* How a statement may end. */
struct flow {
    bool method_escape; /* always leaves the function */
    bool loop_escape;   /* always leaves the loop */
    bool all_escape;    /* statements after it are unreachable */
    bool any_continue;
    bool any_break;
};

static bool visit_statement(struct resolver *r, struct node *node, struct statement_position position,
                            struct flow *flow);

/* begin_loop: the block is a loop's body. */
static bool visit_block(struct resolver *r, struct node *block, struct statement_position position, bool begin_loop,
                        struct flow *flow)
{
    *flow = (struct flow){false, false, false, false, false};
    if (block->list == NULL)
        return ILLEGAL(block, "invalid block: found no statements");
    for (struct node *node = block->list; node != NULL; node = node->next) {
        bool last = node->next == NULL;
        struct statement_position inner = {last && position.last_source, position.in_loop,
                                           last && (begin_loop || position.last_loop)};
        struct flow one = {false, false, false, false, false};
        if (!visit_statement(r, node, inner, &one))
            return false;
        if (one.all_escape && !last)
            return ILLEGAL(block, "invalid block: unreachable statement");
        flow->method_escape = one.method_escape;
        flow->loop_escape = one.loop_escape;
        flow->all_escape = one.all_escape;
        flow->any_continue |= one.any_continue;
        flow->any_break |= one.any_break;
    }
    return true;
}

/* Resolves a block with its own variables. */
static bool visit_scoped(struct resolver *r, struct node *block, struct statement_position position, struct flow *flow)
{
    struct variable *outer = r->scope->variables;
    bool ok = visit_block(r, block, position, false, flow);
    /*
     * Variables that a lambda captured are at the end of the list and stay; only the newest ones
     * are removed.
     */
    r->scope->variables = outer;
    return ok;
}

static bool constant_condition(const struct node *condition, bool *ret_value)
{
    if (condition->kind != NODE_CONST || condition->value.kind != VALUE_BOOLEAN)
        return false;
    *ret_value = condition->value.i != 0;
    return true;
}

static bool visit_if(struct resolver *r, struct node *node, struct statement_position position, struct flow *flow)
{
    bool constant, has_else = (node->flags & NODE_USED) != 0;
    if (!resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)))
        return false;
    if (constant_condition(node->a, &constant) || node->b == NULL)
        return ILLEGAL(node, "extraneous if block");
    struct flow yes, no;
    if (!visit_scoped(r, node->b, position, &yes))
        return false;
    flow->any_continue = yes.any_continue;
    flow->any_break = yes.any_break;
    if (!has_else)
        return true;
    if (node->c == NULL)
        return ILLEGAL(node, "extraneous else block.");
    if (!visit_scoped(r, node->c, position, &no))
        return false;
    *flow = (struct flow){yes.method_escape && no.method_escape, yes.loop_escape && no.loop_escape,
                          yes.all_escape && no.all_escape, yes.any_continue || no.any_continue,
                          yes.any_break || no.any_break};
    return true;
}

static bool visit_body(struct resolver *r, struct node *node, const char *loop, bool continuous, struct flow *flow)
{
    struct flow body;
    if (!visit_block(r, node->b, (struct statement_position){false, true, false}, true, &body))
        return false;
    if (body.loop_escape && !body.any_continue)
        return ILLEGAL(node, "extraneous %s loop", loop);
    if (continuous && !body.any_break)
        flow->method_escape = flow->all_escape = true;
    return true;
}

static bool visit_while(struct resolver *r, struct node *node, struct flow *flow)
{
    bool continuous = false;
    if (!resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)))
        return false;
    if (constant_condition(node->a, &continuous)) {
        if (!continuous)
            return ILLEGAL(node, "extraneous while loop");
        if (node->b == NULL)
            return ILLEGAL(node, "no paths escape from while loop");
    }
    return node->b == NULL || visit_body(r, node, "while", continuous, flow);
}

static bool visit_do(struct resolver *r, struct node *node, struct flow *flow)
{
    struct flow body;
    bool continuous;
    if (node->b == NULL)
        return ILLEGAL(node, "extraneous do-while loop");
    if (!visit_block(r, node->b, (struct statement_position){false, true, false}, true, &body))
        return false;
    if (body.loop_escape && !body.any_continue)
        return ILLEGAL(node, "extraneous do-while loop");
    if (!resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)))
        return false;
    if (constant_condition(node->a, &continuous)) {
        if (!continuous)
            return ILLEGAL(node, "extraneous do-while loop");
        if (!body.any_break)
            flow->method_escape = flow->all_escape = true;
    }
    return true;
}

static bool visit_for(struct resolver *r, struct node *node, struct flow *flow)
{
    bool continuous = node->a == NULL, constant;
    if (node->list != NULL && node->list->kind == NODE_DECLARE_ALL) {
        struct flow ignored;
        if (!visit_statement(r, node->list, (struct statement_position){false, false, false}, &ignored))
            return false;
    } else if (node->list != NULL && !resolve__value(r, &node->list, TYPE_HINT_NONE)) {
        return false;
    }
    if (node->a != NULL && !resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)))
        return false;
    if (node->a != NULL && constant_condition(node->a, &constant)) {
        continuous = constant;
        if (!constant)
            return ILLEGAL(node, "extraneous for loop");
        if (node->b == NULL)
            return ILLEGAL(node, "no paths escape from for loop");
    }
    if (node->c != NULL && !resolve__value(r, &node->c, TYPE_HINT_NONE))
        return false;
    return node->b == NULL || visit_body(r, node, "for", continuous, flow);
}

static bool visit_each(struct resolver *r, struct node *node)
{
    struct flow body;
    if (!resolve__value(r, &node->a, TYPE_HINT_READ))
        return false;
    type_id type = resolve__type(node->c->text), source = node->a->type;
    if (type == TYPE_NONE)
        return ILLEGAL(node, "invalid foreach loop: type [%.*s] not found", SLICE_ARG(node->c->text));
    struct variable *variable = resolve__define(r, node->offset, type, node->text, true);
    if (variable == NULL)
        return false;
    node->slot = variable->slot;
    node->target = type;
    node->c = NULL;
    if (node->b == NULL)
        return ILLEGAL(node, "extraneous foreach loop");
    if (!visit_block(r, node->b, (struct statement_position){false, true, false}, true, &body))
        return false;
    if (body.loop_escape && !body.any_continue)
        return ILLEGAL(node, "extraneous foreach loop");
    bool array = type_dims(source) > 0;
    if (!array && source != CLASS_DEF && !type_assignable(CLASS_ITERABLE, source))
        return ILLEGAL(node, "invalid foreach loop: cannot iterate over type [%s].", show_type(source).text);
    type_id item = array ? type_element(source) : CLASS_DEF;
    node->type = item;
    if (!cast_legal(item, type, true, true))
        return FAIL(CLASS_CAST_EXCEPTION, node->offset, "Cannot cast from [%s] to [%s].", show_type(item).text,
                    show_type(type).text);
    return true;
}

static bool visit_declare(struct resolver *r, struct node *node)
{
    if (resolve__type(node->text) != TYPE_NONE)
        return ILLEGAL(node, "invalid declaration: type [%.*s] cannot be a name", SLICE_ARG(node->text));
    type_id type = resolve__type(node->c->text);
    if (type == TYPE_NONE)
        return ILLEGAL(node, "invalid declaration: cannot resolve type [%.*s]", SLICE_ARG(node->c->text));
    if (node->a != NULL && !resolve__as(r, &node->a, type_hint_for(type)))
        return false;
    struct variable *variable = resolve__define(r, node->offset, type, node->text, false);
    if (variable == NULL)
        return false;
    node->slot = variable->slot;
    node->target = type;
    node->c = NULL;
    return true;
}

static bool visit_return(struct resolver *r, struct node *node, struct flow *flow)
{
    type_id result = r->scope->function->result;
    flow->method_escape = flow->loop_escape = flow->all_escape = true;
    if (node->a != NULL)
        return resolve__as(r, &node->a, type_hint_argument(result));
    if (result != CLASS_VOID)
        return FAIL(CLASS_CAST_EXCEPTION, node->offset, "cannot cast from [%s] to [void]", show_type(result).text);
    return true;
}

static bool visit_expression(struct resolver *r, struct node *node, struct statement_position position,
                             struct flow *flow)
{
    type_id result = r->scope->function->result;
    bool returns = position.last_source && result != CLASS_VOID;
    if (!resolve__value(r, &node->a, returns ? TYPE_HINT_READ : TYPE_HINT_NONE))
        return false;
    if (!returns || node->a->type == CLASS_VOID)
        return true;
    if (!resolve__cast(r, &node->a, result, false, true))
        return false;
    node->kind = NODE_RETURN;
    flow->method_escape = flow->loop_escape = flow->all_escape = true;
    return true;
}

static bool visit_catch(struct resolver *r, struct node *node, struct statement_position position, struct flow *flow)
{
    *flow = (struct flow){false, false, false, false, false};
    if (resolve__type(node->text) != TYPE_NONE)
        return ILLEGAL(node, "invalid catch declaration: type [%.*s] cannot be a name", SLICE_ARG(node->text));
    type_id type = resolve__type(node->c->text);
    if (type == TYPE_NONE)
        return ILLEGAL(node, "invalid catch declaration: cannot resolve type [%.*s]", SLICE_ARG(node->c->text));
    struct variable *variable = resolve__define(r, node->offset, type, node->text, false);
    if (variable == NULL)
        return false;
    if (!type_assignable(CLASS_EXCEPTION, type))
        return FAIL(CLASS_CAST_EXCEPTION, node->offset, "cannot cast from [%s] to [java.lang.Exception]",
                    show_type(type).text);
    node->slot = variable->slot;
    node->target = type;
    node->c = NULL;
    return node->b == NULL || visit_block(r, node->b, position, false, flow);
}

static bool visit_try(struct resolver *r, struct node *node, struct statement_position position, struct flow *flow)
{
    if (node->b == NULL)
        return ILLEGAL(node, "extraneous try statement");
    if (!visit_scoped(r, node->b, position, flow))
        return false;
    for (struct node *trap = node->list; trap != NULL; trap = trap->next) {
        struct variable *outer = r->scope->variables;
        struct flow one;
        if (!visit_catch(r, trap, position, &one))
            return false;
        r->scope->variables = outer;
        flow->method_escape &= one.method_escape;
        flow->loop_escape &= one.loop_escape;
        flow->all_escape &= one.all_escape;
        flow->any_continue |= one.any_continue;
        flow->any_break |= one.any_break;
    }
    return true;
}

static bool visit_jump(struct resolver *r, struct node *node, struct statement_position position, struct flow *flow)
{
    bool is_break = node->kind == NODE_BREAK;
    if (!position.in_loop)
        return ILLEGAL(node, "invalid %s statement: not inside loop", is_break ? "break" : "continue");
    if (!is_break && position.last_loop)
        return ILLEGAL(node, "extraneous continue statement");
    flow->all_escape = true;
    flow->loop_escape = flow->any_break = is_break;
    flow->any_continue = !is_break;
    return true;
}

static bool visit_loop(struct resolver *r, struct node *node, struct flow *flow)
{
    struct variable *outer = r->scope->variables;
    bool ok = node->kind == NODE_WHILE ? visit_while(r, node, flow)
              : node->kind == NODE_DO  ? visit_do(r, node, flow)
              : node->kind == NODE_FOR ? visit_for(r, node, flow)
                                       : visit_each(r, node);
    r->scope->variables = outer;
    return ok;
}

static bool visit_statement(struct resolver *r, struct node *node, struct statement_position position,
                            struct flow *flow)
{
    *flow = (struct flow){false, false, false, false, false};
    switch (node->kind) {
    case NODE_IF: return visit_if(r, node, position, flow);
    case NODE_WHILE:
    case NODE_DO:
    case NODE_FOR:
    case NODE_EACH: return visit_loop(r, node, flow);
    case NODE_DECLARE_ALL:
        for (struct node *one = node->list; one != NULL; one = one->next)
            if (!visit_declare(r, one))
                return false;
        return true;
    case NODE_RETURN: return visit_return(r, node, flow);
    case NODE_EXPRESSION: return visit_expression(r, node, position, flow);
    case NODE_TRY: return visit_try(r, node, position, flow);
    case NODE_THROW:
        flow->method_escape = flow->loop_escape = flow->all_escape = true;
        return resolve__as(r, &node->a, type_hint_for(CLASS_EXCEPTION));
    case NODE_BREAK:
    case NODE_CONTINUE: return visit_jump(r, node, position, flow);
    case NODE_ASSERT: return resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN));
    case NODE_EMPTY: return true;
    default: UNREACHABLE(); return false;
    }
}

bool resolve__block(struct resolver *r, struct node *block, bool last_source)
{
    struct flow flow;
    if (!visit_block(r, block, (struct statement_position){last_source, false, false}, false, &flow))
        return false;
    struct function *function = r->scope->function;
    function->returns_last = flow.method_escape;
    if (!flow.method_escape && function->lambda)
        return compile_fail(r->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                            "not all paths return a value for lambda") != NULL;
    return true;
}

static bool function_types(struct resolver *r, struct function *function)
{
    struct node *result = function->body->c;
    function->body->c = NULL;
    function->result = resolve__type(result->text);
    if (function->result == TYPE_NONE)
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                    "invalid function definition: return type [%.*s] not found for function [%.*s/%u]",
                    SLICE_ARG(result->text), SLICE_ARG(function->name), function->parameter_count);
    for (unsigned i = 0; i < function->parameter_count; i++) {
        struct parameter *parameter = &function->parameters[i];
        parameter->type = resolve__type(parameter->initial->text);
        if (parameter->type == TYPE_NONE)
            return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                        "invalid function definition: parameter type [%.*s] not found for function [%.*s/%u]",
                        SLICE_ARG(parameter->initial->text), SLICE_ARG(function->name), function->parameter_count);
        parameter->initial = NULL;
    }
    for (const struct function *other = r->compiler->functions; other != function; other = other->next)
        if (slice_equal(other->name, function->name) && other->parameter_count == function->parameter_count)
            return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                        "invalid function definition: found duplicate function [%.*s/%u].", SLICE_ARG(function->name),
                        function->parameter_count);
    return true;
}

static bool visit_function(struct resolver *r, struct function *function)
{
    struct resolver_scope scope = {.function = function};
    r->scope = &scope;
    for (unsigned i = 0; i < function->parameter_count; i++)
        if (resolve__define(r, function->offset, function->parameters[i].type, function->parameters[i].name, false) ==
            NULL)
            return false;
    if (function->body->list == NULL)
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                    "invalid function definition: found no statements for function [%.*s] with [%u] parameters",
                    SLICE_ARG(function->name), function->parameter_count);
    if (!resolve__block(r, function->body, true))
        return false;
    if (!function->returns_last && function->result != CLASS_VOID)
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, function->offset,
                    "invalid function definition: not all paths provide a return value for function [%.*s] with [%u] "
                    "parameters",
                    SLICE_ARG(function->name), function->parameter_count);
    measure_nesting(function);
    return true;
}

enum { INPUTS_MAX = 5 };

/* The variables declared for each context, in the order in which script_run.c passes them. */
static const struct {
    const char *name;
    type_id type;
} inputs[SCRIPT_CONTEXT_COUNT][INPUTS_MAX] = {
    [SCRIPT_FOR_UPDATE] = {{"params", CLASS_MAP}, {"ctx", CLASS_MAP}},
    [SCRIPT_FOR_FILTER] = {{"params", CLASS_MAP}, {"doc", CLASS_MAP}},
    [SCRIPT_FOR_FIELD] = {{"params", CLASS_MAP}, {"doc", CLASS_MAP}},
    [SCRIPT_FOR_NUMBER_SORT] = {{"params", CLASS_MAP}, {"doc", CLASS_MAP}, {"_score", CLASS_DOUBLE}},
    [SCRIPT_FOR_STRING_SORT] = {{"params", CLASS_MAP}, {"doc", CLASS_MAP}, {"_score", CLASS_DOUBLE}},
    [SCRIPT_FOR_SCORE] = {{"params", CLASS_MAP}, {"doc", CLASS_MAP}, {"_score", CLASS_DOUBLE}},
    [SCRIPT_FOR_TEST] = {{"params", CLASS_MAP}},
    [SCRIPT_FOR_ANY] = {{"params", CLASS_MAP},
                        {"_score", CLASS_DOUBLE},
                        {"doc", CLASS_MAP},
                        {"_value", CLASS_DEF},
                        {"ctx", CLASS_MAP}},
};

static const type_id results[SCRIPT_CONTEXT_COUNT] = {
    [SCRIPT_FOR_UPDATE] = CLASS_VOID,        [SCRIPT_FOR_FILTER] = CLASS_BOOLEAN,
    [SCRIPT_FOR_FIELD] = CLASS_DEF,          [SCRIPT_FOR_NUMBER_SORT] = CLASS_DOUBLE,
    [SCRIPT_FOR_STRING_SORT] = CLASS_STRING, [SCRIPT_FOR_SCORE] = CLASS_DOUBLE,
    [SCRIPT_FOR_TEST] = CLASS_DEF,           [SCRIPT_FOR_ANY] = CLASS_DEF};

bool resolve_painless(struct compiler *compiler, struct function *main)
{
    struct resolver resolver = {.compiler = compiler}, *r = &resolver;
    for (struct function *function = compiler->functions; function != NULL; function = function->next)
        if (!function_types(r, function))
            return false;
    for (struct function *function = compiler->functions; function != NULL; function = function->next)
        if (!visit_function(r, function))
            return false;
    struct resolver_scope scope = {.function = main};
    r->scope = &scope;
    main->result = results[compiler->context];
    for (unsigned i = 0; i < INPUTS_MAX; i++) {
        struct slice name = slice_from(inputs[compiler->context][i].name);
        if (name.len > 0)
            resolve__define(r, 0, inputs[compiler->context][i].type, name, false);
    }
    if (main->body->list == NULL)
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, 0,
                    "invalid function definition: found no statements for function [execute] with [0] parameters");
    if (!resolve__block(r, main->body, true))
        return false;
    measure_nesting(main);
    return true;
}
