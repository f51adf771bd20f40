/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's calls, fields, indexes, constructors and functions as values. See resolve.h. */
#include "script/value/temporal.h"
#include "script/check/resolve.h"

#include "script/library/method.h"

/* An expression that is false; compile_fail() returns NULL. */
#define FAIL(type, offset, ...)                                       \
    __extension__({                                                   \
        compile_fail(r->compiler, CLASS_##type, offset, __VA_ARGS__); \
        false;                                                        \
    })
#define ILLEGAL(node, ...) FAIL(ILLEGAL_ARGUMENT_EXCEPTION, (node)->offset, __VA_ARGS__)

static unsigned count_nodes(const struct node *list)
{
    unsigned count = 0;
    for (; list != NULL; list = list->next)
        count++;
    return count;
}

/* Arrays have no methods in Painless, and only special fields. */
static const struct method *find_method(type_id type, struct slice name, unsigned count, unsigned kind)
{
    if (type_dims(type) > 0)
        return NULL;
    type_id owner = type_boxed(type);
    if (type != owner && (kind & METHOD_STATIC) == 0)
        type = owner;
    return method_find(&(struct method_lookup){type_class(type), name, count, METHOD_PAINLESS | kind});
}

static bool visit_arguments(struct resolver *r, struct node **list, const struct method *method)
{
    unsigned i = 0;
    for (struct node **argument = list; *argument != NULL; argument = &(*argument)->next)
        if (!resolve__as(r, argument, type_hint_argument(method->parameters[i++])))
            return false;
    return true;
}

/* Sets the type of a call or load on a `def`: the hint's type, to which the call site converts. */
static void take_hint(struct node *node, struct type_hint hint)
{
    bool wanted = hint.target != TYPE_NONE && hint.target != CLASS_ZONED_DATE_TIME && !hint.explicit;
    node->type = wanted ? hint.target : CLASS_DEF;
    if (node->type != CLASS_DEF)
        node->flags |= NODE_OPTIMIZED;
}

static bool call_def(struct resolver *r, struct node *node, struct type_hint hint)
{
    for (struct node **argument = &node->list; *argument != NULL; argument = &(*argument)->next) {
        if (!resolve__value(r, argument, type_hint_argument(TYPE_NONE)))
            return false;
        if ((*argument)->type == CLASS_VOID)
            return ILLEGAL(node, "Argument(s) cannot be of [void] type when calling method [%.*s].",
                           SLICE_ARG(node->text));
    }
    node->slot = r->compiler->cache_count++;
    take_hint(node, hint);
    return true;
}

bool resolve__call(struct resolver *r, struct node *node, struct type_hint hint)
{
    unsigned count = count_nodes(node->list);
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to method call [%.*s/%u]",
                       SLICE_ARG(node->text), count);
    if (!resolve__visit(r, &node->a, TYPE_HINT_READ))
        return false;
    if (node->a->kind == NODE_NAME)
        return ILLEGAL(node, "cannot resolve symbol [%.*s]", SLICE_ARG(node->a->text));
    bool is_static = node->a->kind == NODE_TYPE;
    type_id type = is_static ? node->a->target : node->a->type;
    if (!is_static && type == CLASS_DEF)
        return call_def(r, node, hint);
    node->method = find_method(type, node->text, count, is_static ? METHOD_STATIC : 0);
    if (node->method == NULL)
        return ILLEGAL(node, "%s method [%s, %.*s/%u] not found", is_static ? "static" : "member", show_type(type).text,
                       SLICE_ARG(node->text), count);
    node->flags |= is_static ? NODE_STATIC : 0;
    node->type = node->method->result;
    if (!visit_arguments(r, &node->list, node->method))
        return false;
    if ((node->flags & NODE_SAFE) && type_primitive(node->type))
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, -1, "Result of null safe operator must be nullable");
    return true;
}

bool resolve__call_local(struct resolver *r, struct node *node, struct type_hint hint)
{
    unsigned count = count_nodes(node->list), i = 0;
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to function call [%.*s/%u]",
                       SLICE_ARG(node->text), count);
    struct function *function = r->compiler->functions;
    while (function != NULL && !(slice_equal(function->name, node->text) && function->parameter_count == count))
        function = function->next;
    if (function == NULL) {
        struct slice shown = SLICE_NONE;
        for (const struct node *argument = node->list; argument != NULL; argument = argument->next)
            shown = arena_append(r->compiler->scratch, shown, "%s%.*s", shown.len > 0 ? ", " : "",
                                 SLICE_ARG(argument->text));
        return ILLEGAL(node, "Unknown call [%.*s] with [[%.*s]] arguments.", SLICE_ARG(node->text), SLICE_ARG(shown));
    }
    node->function = function;
    node->type = function->result;
    for (struct node **argument = &node->list; *argument != NULL; argument = &(*argument)->next)
        if (!resolve__as(r, argument, type_hint_argument(function->parameters[i++].type)))
            return false;
    return true;
}

bool resolve__new(struct resolver *r, struct node *node, struct type_hint hint)
{
    unsigned count = count_nodes(node->list);
    if (hint.write)
        return ILLEGAL(node, "invalid assignment cannot assign a value to new object with constructor [%.*s/%u]",
                       SLICE_ARG(node->text), count);
    node->type = node->target = resolve__type(node->text);
    if (node->type == TYPE_NONE)
        return ILLEGAL(node, "Not a type [%.*s].", SLICE_ARG(node->text));
    node->method = find_method(node->type, SLICE_LIT("new"), count, METHOD_NEW);
    if (node->method == NULL)
        return ILLEGAL(node, "constructor [%s, <init>/%u] not found", show_type(node->type).text, count);
    return visit_arguments(r, &node->list, node->method);
}

/* Fields */

static const struct method *find_accessor(type_id type, const char *prefix, struct slice field, unsigned count,
                                          unsigned kind)
{
    char name[METHOD_ACCESSOR_MAX];
    struct slice accessor = method_accessor(name, prefix, field);
    return accessor.len == 0 ? NULL : find_method(type, accessor, count, kind);
}

/*
 * Returns: whether some class has a getter or field of that name; else it can only be a key of a
 * map.
 */
static bool has_accessor(struct slice name)
{
    char get[METHOD_ACCESSOR_MAX], is[METHOD_ACCESSOR_MAX];
    struct slice getter = method_accessor(get, "get", name);
    if (getter.len == 0 || method_exists(name, METHOD_PAINLESS | METHOD_FIELD))
        return true;
    return method_exists(getter, METHOD_PAINLESS) || method_exists(method_accessor(is, "is", name), METHOD_PAINLESS);
}

static bool dot_array(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!slice_is(node->text, "length"))
        return ILLEGAL(node, "Field [%.*s] does not exist for type [%s].", SLICE_ARG(node->text),
                       show_type(node->a->type).text);
    if (hint.write)
        return ILLEGAL(node,
                       "invalid assignment: cannot assign a value write to read-only field [length] for an array.");
    node->flags |= NODE_LENGTH;
    node->type = CLASS_INT;
    return true;
}

static bool dot_list(struct resolver *r, struct node *node)
{
    int64_t index;
    if (!number_parse_i64(node->text, 10, INT32_MIN, INT32_MAX, &index)) {
        ILLEGAL(node, "invalid list index [%.*s]", SLICE_ARG(node->text));
        r->compiler->error.cause = "number_format_exception";
        return false;
    }
    struct node *constant = node_new(r->compiler, NODE_CONST, node->offset);
    constant->value = value_int(index);
    constant->type = CLASS_INT;
    node->kind = NODE_BRACE;
    node->b = constant;
    node->type = CLASS_DEF;
    return true;
}

/* Resolves a constant of an enum by its name. Returns: whether the class has it. */
static bool dot_constant(struct resolver *r, struct node *node, type_id type)
{
    unsigned count = type_dims(type) > 0 ? 0 : enumerator_count(type_class(type)), i = 0;
    while (i < count && !slice_is(node->text, enumerator_name(type_class(type), (int)i)))
        i++;
    const struct method *by_name = i == count ? NULL : find_method(type, SLICE_LIT("valueOf"), 1, METHOD_STATIC);
    if (by_name == NULL)
        return false;
    struct node *name = node_new(r->compiler, NODE_CONST, node->offset);
    name->value = node_text(r->compiler, node->text);
    name->type = CLASS_STRING;
    node->kind = NODE_CALL;
    node->list = name;
    node->method = by_name;
    node->type = type;
    return true;
}

/* Resolves a member of a class or typed value: a field, a getter, a map's key, a list's index. */
static bool dot_typed(struct resolver *r, struct node *node, type_id type, bool is_static, struct type_hint hint)
{
    unsigned kind = is_static ? METHOD_STATIC : 0;
    const struct method *field = find_method(type, node->text, 0, METHOD_FIELD | kind);
    node->flags |= is_static ? NODE_STATIC : 0;
    if (field != NULL) {
        if (hint.write)
            return ILLEGAL(node, "invalid assignment: cannot assign a value to read-only field [%.*s]",
                           SLICE_ARG(node->text));
        node->method = field;
        node->type = field->result;
        return true;
    }
    if (is_static && !hint.write && dot_constant(r, node, type))
        return true;
    const struct method *getter = find_accessor(type, "get", node->text, 0, kind);
    if (getter == NULL)
        getter = find_accessor(type, "is", node->text, 0, kind);
    if (getter != NULL) {
        if (hint.write)
            return ILLEGAL(node, "Illegal shortcut on field [%.*s] for type [%s].", SLICE_ARG(node->text),
                           show_type(type).text);
        node->method = getter;
        node->type = getter->result;
        return true;
    }
    if (!is_static && type_assignable(CLASS_MAP, type)) {
        node->type = CLASS_DEF;
        return true;
    }
    if (!is_static && type_assignable(CLASS_LIST, type))
        return dot_list(r, node);
    return ILLEGAL(node, "field [%s, %.*s] not found", show_type(type).text, SLICE_ARG(node->text));
}

/* Appends a part to a qualified class name. */
static bool dot_name(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct slice name =
        arena_printf(r->compiler->scratch, "%.*s.%.*s", SLICE_ARG(node->a->text), SLICE_ARG(node->text));
    type_id type = resolve__type(name);
    node->text = name;
    node->kind = type == TYPE_NONE ? NODE_NAME : NODE_TYPE;
    node->target = type;
    if (type != TYPE_NONE && hint.write)
        return ILLEGAL(node, "invalid assignment: cannot write a value to a static type [%s]", show_type(type).text);
    return true;
}

/* Returns: whether a class has a nested class, as Map.Entry. */
static bool has_class(struct resolver *r, const struct node *node)
{
    return node->a->kind == NODE_TYPE &&
           resolve__type(arena_printf(r->compiler->scratch, "%.*s.%.*s", SLICE_ARG(node->a->text),
                                      SLICE_ARG(node->text))) != TYPE_NONE;
}

bool resolve__dot(struct resolver *r, struct node **link, struct type_hint hint)
{
    struct node *node = *link;
    if (!hint.read && !hint.write)
        return ILLEGAL(node, "not a statement: result of dot operator [.] not used");
    if (!resolve__visit(r, &node->a, TYPE_HINT_READ))
        return false;
    if (node->a->kind == NODE_NAME || has_class(r, node))
        return dot_name(r, node, hint);
    bool is_static = node->a->kind == NODE_TYPE, ok = true;
    type_id type = is_static ? node->a->target : node->a->type;
    if (!is_static && type_dims(type) > 0) {
        ok = dot_array(r, node, hint);
    } else if (!is_static && type == CLASS_DEF) {
        node->slot = r->compiler->cache_count++;
        node->op = has_accessor(node->text) ? DOT_ANY : DOT_KEY;
        take_hint(node, hint);
    } else {
        ok = dot_typed(r, node, type, is_static, hint);
    }
    if (!ok)
        return false;
    if ((node->flags & NODE_SAFE) && hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to a null safe operation [?.]");
    if ((node->flags & NODE_SAFE) && type_primitive(node->type))
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, -1, "Result of null safe operator must be nullable");
    return true;
}

bool resolve__brace(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!hint.read && !hint.write)
        return ILLEGAL(node, "not a statement: result of brace operator not used");
    if (!resolve__value(r, &node->a, TYPE_HINT_READ))
        return false;
    type_id type = node->a->type;
    if (type_dims(type) > 0) {
        node->type = type_element(type);
        return resolve__as(r, &node->b, type_hint_for(CLASS_INT));
    }
    if (type == CLASS_DEF) {
        take_hint(node, hint);
        return resolve__value(r, &node->b, TYPE_HINT_READ);
    }
    node->type = CLASS_DEF;
    if (type_assignable(CLASS_MAP, type))
        return resolve__as(r, &node->b, type_hint_for(CLASS_DEF));
    if (type_assignable(CLASS_LIST, type))
        return resolve__as(r, &node->b, type_hint_for(CLASS_INT));
    return ILLEGAL(node, "Illegal array access on type [%s].", show_type(type).text);
}

/* Functions as values */

static bool lambda_types(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct function *function = node->function;
    const struct class_function *wanted = NULL;
    function->result = CLASS_DEF;
    if (hint.target != TYPE_NONE) {
        wanted = type_dims(hint.target) > 0 ? NULL : class_function(type_class(hint.target));
        if (wanted == NULL)
            return ILLEGAL(node, "Cannot pass lambda to [%s], not a functional interface", show_type(hint.target).text);
        if (wanted->count != function->parameter_count)
            return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, -1, "Incorrect number of parameters for [%s] in [%s]", wanted->name,
                        show_type(hint.target).text);
        if (wanted->result != CLASS_VOID)
            function->result = wanted->result;
    }
    for (unsigned i = 0; i < function->parameter_count; i++) {
        struct parameter *parameter = &function->parameters[i];
        parameter->type = wanted != NULL ? wanted->parameters[i] : CLASS_DEF;
        if (parameter->initial == NULL)
            continue;
        parameter->type = resolve__type(parameter->initial->text);
        if (parameter->type == TYPE_NONE)
            return ILLEGAL(node, "cannot resolve type [%.*s]", SLICE_ARG(parameter->initial->text));
        parameter->initial = NULL;
    }
    return true;
}

bool resolve__lambda(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to a lambda");
    if (!hint.read)
        return ILLEGAL(node, "not a statement: lambda not used");
    struct function *function = node->function;
    if (!lambda_types(r, node, hint))
        return false;
    struct resolver_scope scope = {.function = function, .lambda_outer = r->scope}, *outer = r->scope;
    r->scope = &scope;
    for (unsigned i = 0; i < function->parameter_count; i++) {
        /* Unlike a block's variable, a parameter must not have the name of an outer variable. */
        if (resolve__define(r, node->offset, function->parameters[i].type, function->parameters[i].name, true) == NULL)
            return false;
    }
    if (function->body->list == NULL)
        return ILLEGAL(node, "cannot generate empty lambda");
    bool ok = resolve__block(r, function->body, true);
    r->scope = outer;
    node->type = hint.target == TYPE_NONE ? CLASS_STRING : hint.target;
    function->name = arena_printf(r->compiler->arena, "lambda$synthetic$%u", r->compiler->lambda_count++);
    measure_nesting(function);
    return ok;
}

static struct function *find_function(struct resolver *r, struct slice name, unsigned count, bool any_count)
{
    struct function *function = r->compiler->functions;
    while (function != NULL &&
           !(slice_equal(function->name, name) && (any_count || function->parameter_count == count)))
        function = function->next;
    return function;
}

/* With a known interface the method must exist; without one it is looked up when called. */
bool resolve__reference(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct slice owner = node->a->text;
    if (hint.write || !hint.read)
        return ILLEGAL(node, "not a statement: function reference [%.*s:%.*s] not used", SLICE_ARG(owner),
                       SLICE_ARG(node->text));
    bool is_this = slice_is(owner, "this");
    type_id type = is_this ? TYPE_NONE : resolve__type(owner);
    node->type = hint.target == TYPE_NONE ? CLASS_STRING : hint.target;
    const struct class_function *wanted =
        hint.target == TYPE_NONE || type_dims(hint.target) > 0 ? NULL : class_function(type_class(hint.target));
    if (hint.target != TYPE_NONE && wanted == NULL)
        return ILLEGAL(node, "Cannot convert function reference [%.*s::%.*s] to [%s], not a functional interface",
                       SLICE_ARG(owner), SLICE_ARG(node->text), show_type(hint.target).text);
    unsigned count = wanted == NULL ? 0 : wanted->count;
    if (is_this) {
        node->function = find_function(r, node->text, count, wanted == NULL);
        node->a = NULL;
        if (node->function == NULL)
            return ILLEGAL(node, "function reference [this::%.*s/%u] matching [%s, %s/%u] not found",
                           SLICE_ARG(node->text), count, wanted == NULL ? "def" : show_type(hint.target).text,
                           wanted == NULL ? "" : wanted->name, count);
        return true;
    }
    if (type == TYPE_NONE) {
        struct variable *variable = resolve__find(r, owner);
        if (variable == NULL)
            return ILLEGAL(node, "cannot resolve symbol [%.*s]", SLICE_ARG(owner));
        node->a->kind = NODE_LOCAL;
        node->a->slot = variable->slot;
        node->a->type = variable->type;
        return true;
    }
    if (wanted != NULL && !method_referred(type, node->text, count))
        return ILLEGAL(node, "function reference [%.*s::%.*s/%u] matching [%s, %s/%u] not found", SLICE_ARG(owner),
                       SLICE_ARG(node->text), count, show_type(hint.target).text, wanted->name, count);
    node->a = NULL;
    node->target = type;
    return true;
}
