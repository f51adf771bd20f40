/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's expressions and statements; see resolve_groovy.h. */
#include "script/check/resolve_groovy.h"

static bool resolve_child(struct groovy_resolver *r, struct node *node)
{
    return node == NULL || resolve_groovy__expression(r, node);
}

static bool visit_list(struct groovy_resolver *r, struct node *list)
{
    for (; list != NULL; list = list->next)
        if (!resolve_groovy__expression(r, list))
            return false;
    return true;
}

/* Names */

static void become_type(struct node *node, type_id type)
{
    node->kind = NODE_TYPE;
    node->target = type;
    node->a = NULL;
}

static void become_binding(struct groovy_resolver *r, struct node *node)
{
    node->kind = NODE_BINDING;
    node->a = NULL;
    node->value = node_text(r->compiler, node->text);
}

static bool visit_name(struct groovy_resolver *r, struct node *node)
{
    struct local *local = resolve_groovy__find(r, r->scope, node->text);
    if (local != NULL) {
        node->kind = NODE_LOCAL;
        node->type = TYPE_NONE;
        node->target = local->type;
        resolve_groovy__use(r, node, local);
        return true;
    }
    enum class_id id = resolve_groovy__class(r, node->text);
    if (id != CLASS_COUNT)
        become_type(node, (type_id)id);
    else
        become_binding(r, node);
    return true;
}

/* Returns: a.b.C as one text if all parts are names and `a` is not a variable; else empty. */
static struct slice dotted_name(struct groovy_resolver *r, const struct node *node)
{
    if (node->kind == NODE_NAME)
        return resolve_groovy__find(r, r->scope, node->text) == NULL ? node->text : SLICE_NONE;
    if (node->kind != NODE_DOT || node->b != NULL || node->flags != 0)
        return SLICE_NONE;
    struct slice left = dotted_name(r, node->a);
    return left.len == 0 ? left
                         : arena_printf(r->compiler->scratch, "%.*s.%.*s", SLICE_ARG(left), SLICE_ARG(node->text));
}

/* Only names that begin like a package are looked up. */
static bool visit_class_name(struct groovy_resolver *r, struct node *node)
{
    const struct node *root = node;
    while (root->kind == NODE_DOT)
        root = root->a;
    static const char *const roots[] = {"java", "groovy", "org", "Map"};
    bool possible = false;
    for (size_t i = 0; root->kind == NODE_NAME && i < sizeof roots / sizeof *roots; i++)
        possible |= slice_is(root->text, roots[i]);
    struct slice name = possible ? dotted_name(r, node) : SLICE_NONE;
    enum class_id id = name.len == 0 ? CLASS_COUNT : resolve_groovy__class(r, name);
    if (id != CLASS_COUNT)
        become_type(node, (type_id)id);
    return id != CLASS_COUNT;
}

static bool visit_dot(struct groovy_resolver *r, struct node *node)
{
    if (visit_class_name(r, node))
        return true;
    if (node->a->kind == NODE_THIS && node->b == NULL) {
        become_binding(r, node);
        return true;
    }
    if (!resolve_child(r, node->a) || !resolve_child(r, node->b))
        return false;
    if (node->a->kind != NODE_TYPE || node->b != NULL)
        return true;
    if (slice_is(node->text, "class"))
        become_type(node, node->a->target);
    else
        node->flags |= NODE_STATIC;
    return true;
}

/* Calls */

/* Returns: whether a parameter accepts any value and has no default. */
static bool is_plain(const struct parameter *parameter)
{
    const struct node *both = parameter->initial;
    return parameter->type == TYPE_NONE &&
           (both == NULL || (both->kind == NODE_DECLARE && both->a == NULL && both->c == NULL));
}

/* Returns: the only function of that name, if it fits all arguments; NULL: decided at run time. */
static struct function *find_function(struct groovy_resolver *r, const struct node *call)
{
    struct function *found = NULL;
    unsigned count = 0;
    for (const struct node *argument = call->list; argument != NULL; argument = argument->next, count++)
        if (argument->kind == NODE_NAMED_ARGUMENT || argument->kind == NODE_SPREAD_ARGUMENT)
            return NULL;
    for (struct function *function = r->compiler->functions; function != NULL; function = function->next) {
        if (!slice_equal(function->name, call->text))
            continue;
        if (found != NULL || function->parameter_count != count)
            return NULL;
        found = function;
    }
    for (unsigned i = 0; i < count && found != NULL; i++)
        if (!is_plain(&found->parameters[i]))
            return NULL;
    return found;
}

static bool visit_call_local(struct groovy_resolver *r, struct node *node)
{
    if (!visit_list(r, node->list))
        return false;
    node->value = node_text(r->compiler, node->text);
    if (node->a != NULL)
        return resolve_child(r, node->a);
    struct local *local = resolve_groovy__find(r, r->scope, node->text);
    if (local == NULL) {
        node->function = r->scope->outer == NULL ? find_function(r, node) : NULL;
        return true;
    }
    node->a = node_new(r->compiler, NODE_LOCAL, node->offset);
    resolve_groovy__use(r, node->a, local);
    return true;
}

static bool visit_call(struct groovy_resolver *r, struct node *node)
{
    if (node->a->kind == NODE_THIS && node->b == NULL) {
        node->kind = NODE_CALL_LOCAL;
        node->a = NULL;
        return visit_call_local(r, node);
    }
    if (!resolve_child(r, node->a) || !resolve_child(r, node->b) || !visit_list(r, node->list))
        return false;
    if (node->a->kind == NODE_TYPE)
        node->flags |= NODE_STATIC;
    return true;
}

/*
 * Returns: the offset of an error for an unknown class: of `as`, of a cast's parenthesis, of `new`.
 */
static int32_t type_place(const struct node *node, const struct node *type)
{
    if (node->kind == NODE_INSTANCEOF)
        return type->offset;
    return node->kind == NODE_COERCE ? node->error_offset : node->offset;
}

static bool visit_typed(struct groovy_resolver *r, struct node *node)
{
    const struct node *type = node->c;
    node->c = NULL;
    if (!resolve_child(r, node->a) || !resolve_groovy__type_at(r, type, type_place(node, type), &node->target) ||
        !visit_list(r, node->list))
        return false;
    bool made = node->kind == NODE_NEW && type_dims(node->target) == 0;
    if (!made || class_infos[type_class(node->target)].kind != CLASS_KIND_I)
        return true;
    return resolve_groovy__refuse(r, node->offset, "You cannot create an instance from the abstract interface '%s'.\n",
                                  class_infos[type_class(node->target)].java);
}

/* obj.&name; `this.&name` is one of the script's own functions. */
static bool visit_reference(struct groovy_resolver *r, struct node *node)
{
    if (node->b != NULL)
        return resolve_groovy__refuse(r, node->offset, "a computed method reference is not supported");
    if (node->a->kind != NODE_THIS)
        return resolve_child(r, node->a);
    node->a = NULL;
    for (struct function *function = r->compiler->functions; function != NULL; function = function->next)
        if (slice_equal(function->name, node->text))
            node->function = function;
    return node->function != NULL ||
           resolve_groovy__refuse(r, node->offset, "no method of the script is called %.*s", SLICE_ARG(node->text));
}

static bool visit_closure(struct groovy_resolver *r, struct node *node)
{
    struct local_scope scope = {.function = node->function, .outer = r->scope};
    const struct function *around = r->scope->function;
    bool inner = r->scope->outer != NULL;
    /* Groovy names a closure's class by the enclosing function and its number in the script. */
    node->function->name = arena_printf(r->compiler->arena, inner ? "%.*s$_closure%u" : "_%.*s_closure%u",
                                        SLICE_ARG(around->name), ++r->closure_count);
    r->scope = &scope;
    bool ok = resolve_groovy__function(r, node->function);
    r->scope = scope.outer;
    return ok;
}

/* A variable, a member, an element. */
static bool can_be_written(const struct node *node)
{
    bool member = node->kind == NODE_DOT || node->kind == NODE_BRACE;
    bool name = node->kind == NODE_LOCAL || node->kind == NODE_BINDING;
    return name || (member && (node->flags & (NODE_SPREAD | NODE_STATIC)) == 0);
}

bool resolve_groovy__expression(struct groovy_resolver *r, struct node *node)
{
    switch (node->kind) {
    case NODE_CONST: return true;
    case NODE_NAME: return visit_name(r, node);
    case NODE_DOT: return visit_dot(r, node);
    case NODE_CALL: return visit_call(r, node);
    case NODE_CALL_LOCAL: return visit_call_local(r, node);
    case NODE_CAST:
    case NODE_COERCE:
    case NODE_INSTANCEOF:
    case NODE_NEW:
    case NODE_NEW_ARRAY: return visit_typed(r, node);
    case NODE_REFERENCE: return visit_reference(r, node);
    case NODE_LAMBDA: return visit_closure(r, node);
    case NODE_NAMED_ARGUMENT: return resolve_child(r, node->b) && resolve_child(r, node->a);
    case NODE_STEP:
        /* An operand that is no lvalue still yields its successor. */
        if (!resolve_child(r, node->a))
            return false;
        node->flags |= can_be_written(node->a) ? 0 : NODE_INTERNAL;
        return true;
    case NODE_ASSIGN:
    case NODE_COMPOUND:
        if (!resolve_child(r, node->a) || !resolve_child(r, node->b))
            return false;
        return can_be_written(node->a) || resolve_groovy__refuse(r, node->offset, "this cannot be assigned to");
    case NODE_THIS: return resolve_groovy__refuse(r, node->offset, "the script as an object is not supported");
    default:
        if (node->kind >= NODE_BLOCK)
            return resolve_groovy__refuse(r, node->offset, "a statement as a value is not supported");
        return resolve_child(r, node->a) && resolve_child(r, node->b) && resolve_child(r, node->c) &&
               visit_list(r, node->list);
    }
}

/* Statements */

static bool visit_statements(struct groovy_resolver *r, struct node *list)
{
    for (; list != NULL; list = list->next)
        if (!resolve_groovy__statement(r, list))
            return false;
    return true;
}

/* Names declared inside are unknown outside. */
static bool visit_block(struct groovy_resolver *r, struct node *list)
{
    struct local *outer = r->scope->locals;
    bool ok = visit_statements(r, list);
    r->scope->locals = outer;
    return ok;
}

static bool visit_declare(struct groovy_resolver *r, struct node *node)
{
    const struct node *type = node->c;
    node->c = NULL;
    return resolve_groovy__type_at(r, type, node->offset, &node->target) && resolve_child(r, node->a) &&
           resolve_groovy__declare(r, node, node->target);
}

static bool visit_body(struct groovy_resolver *r, struct node *body)
{
    return body == NULL || resolve_groovy__statement(r, body);
}

static bool visit_catch(struct groovy_resolver *r, struct node *node, struct node *body)
{
    struct local *outer = r->scope->locals;
    const struct node *type = node->c;
    node->c = NULL;
    if (!resolve_groovy__type(r, type, &node->target) || !resolve_groovy__declare(r, node, node->target))
        return false;
    if (type == NULL)
        node->target = CLASS_EXCEPTION;
    bool ok = visit_body(r, body);
    r->scope->locals = outer;
    return ok;
}

/* A catch of several classes has a node for each; they share body and variable. */
static bool visit_try(struct groovy_resolver *r, struct node *node)
{
    if (!visit_body(r, node->b))
        return false;
    for (struct node *one = node->list, *first = node->list; one != NULL; one = one->next) {
        bool shares = one != first && one->b == first->b;
        if (shares) {
            type_id type;
            if (!resolve_groovy__type(r, one->c, &type))
                return false;
            one->c = NULL;
            one->target = type;
            one->slot = first->slot;
            one->flags = first->flags;
            continue;
        }
        first = one;
        if (!visit_catch(r, one, one->b))
            return false;
    }
    return visit_body(r, node->c);
}

/* Resolves the body of a loop or switch, a target of break and continue. */
static bool visit_inside(struct groovy_resolver *r, const struct node *outer, struct node *body)
{
    struct enclosing here = {outer, r->scope->enclosing};
    r->scope->enclosing = &here;
    bool ok = visit_body(r, body);
    r->scope->enclosing = here.outer;
    return ok;
}

static bool visit_jump(struct groovy_resolver *r, const struct node *node)
{
    bool breaks = node->kind == NODE_BREAK, labelled = node->value.kind != VALUE_NULL;
    for (const struct enclosing *one = r->scope->enclosing; one != NULL; one = one->outer) {
        if (one->node->kind == NODE_SWITCH ? breaks && !labelled : !labelled)
            return true;
        if (labelled && one->node->value.kind != VALUE_NULL &&
            text_equal((const struct text *)one->node->value.object, (const struct text *)node->value.object))
            return true;
    }
    if (labelled)
        return resolve_groovy__refuse(r, node->offset, "%s to missing label\n", breaks ? "break" : "continue");
    return resolve_groovy__refuse(r, node->offset, "the %s statement is only allowed inside loops%s\n",
                                  breaks ? "break" : "continue", breaks ? " or switches" : "");
}

static bool visit_loop(struct groovy_resolver *r, struct node *node)
{
    if (node->kind == NODE_FOR) {
        bool ok = node->list == NULL ||
                  (node->list->kind == NODE_DECLARE ? visit_declare(r, node->list) : resolve_child(r, node->list));
        return ok && resolve_child(r, node->a) && resolve_child(r, node->c) && visit_inside(r, node, node->b);
    }
    if (node->kind == NODE_WHILE)
        return resolve_child(r, node->a) && visit_inside(r, node, node->b);
    const struct node *type = node->c;
    node->c = NULL;
    return resolve_groovy__type(r, type, &node->target) && resolve_child(r, node->a) &&
           resolve_groovy__declare(r, node, node->target) && visit_inside(r, node, node->b);
}

static bool visit_switch(struct groovy_resolver *r, struct node *node)
{
    if (!resolve_child(r, node->a))
        return false;
    for (struct node *one = node->list; one != NULL; one = one->next)
        if (!resolve_child(r, one->a) || !visit_inside(r, node, one->b))
            return false;
    return true;
}

bool resolve_groovy__statement(struct groovy_resolver *r, struct node *node)
{
    struct local *outer = r->scope->locals;
    bool ok;
    switch (node->kind) {
    case NODE_BLOCK: return visit_block(r, node->list);
    case NODE_DECLARE_ALL: return visit_statements(r, node->list);
    case NODE_DECLARE: return visit_declare(r, node);
    case NODE_EXPRESSION:
    case NODE_RETURN:
    case NODE_THROW: return resolve_child(r, node->a);
    case NODE_ASSERT: return resolve_child(r, node->a) && resolve_child(r, node->b);
    case NODE_IF: return resolve_child(r, node->a) && visit_body(r, node->b) && visit_body(r, node->c);
    case NODE_FOR:
    case NODE_WHILE:
    case NODE_EACH:
        ok = visit_loop(r, node);
        r->scope->locals = outer;
        return ok;
    case NODE_TRY: return visit_try(r, node);
    case NODE_SWITCH: return visit_switch(r, node);
    case NODE_BREAK:
    case NODE_CONTINUE: return visit_jump(r, node);
    case NODE_EMPTY: return true;
    default: return resolve_groovy__refuse(r, node->offset, "this statement is not supported");
    }
}
