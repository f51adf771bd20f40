/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's resolution at compile time: slots of declared names, types, candidate functions of calls.
 *
 * A name that is neither declared nor a class is resolved at run time, among the parameters and the variables that the
 * script assigned. Variables that closures capture live in shared boxes.
 */
#include "script/check/resolve_groovy.h"

#include <stdarg.h>

bool resolve_groovy__refuse(struct groovy_resolver *r, int32_t offset, const char *format, ...)
{
    struct slice source = r->compiler->source;
    uint32_t line = 1, column = 1;
    const char *at = source.data, *end = source.data + source.len;
    for (int32_t units = 0; at < end && units < offset;) {
        bool newline = *at == '\n';
        unsigned width = utf8_next(&at, end) > 0xffff ? 2 : 1;
        units += (int32_t)width;
        column = newline ? 1 : column + width;
        line += newline;
    }
    va_list arguments;
    va_start(arguments, format);
    struct slice message = arena_vprintf(r->compiler->scratch, format, arguments);
    va_end(arguments);
    explain_groovy(r->compiler, line, column, "%.*s", SLICE_ARG(message));
    return false;
}

/* Types */

enum class_id resolve_groovy__class(struct groovy_resolver *r, struct slice name)
{
    struct arena *scratch = r->compiler->scratch;
    for (const struct node *import = r->compiler->imports; import != NULL; import = import->next)
        if (slice_equal(import->text, name))
            return class_from_groovy(text_slice(scratch, (const struct text *)import->value.object));
    enum class_id found = class_from_groovy(name);
    for (const struct node *import = r->compiler->imports; import != NULL && found == CLASS_COUNT;
         import = import->next)
        if (import->text.len == 0)
            found = class_from_groovy(arena_printf(
                scratch, "%.*s.%.*s", SLICE_ARG(text_slice(scratch, (const struct text *)import->value.object)),
                SLICE_ARG(name)));
    return found;
}

bool resolve_groovy__type(struct groovy_resolver *r, const struct node *name, type_id *ret_type)
{
    return resolve_groovy__type_at(r, name, name == NULL ? 0 : name->offset, ret_type);
}

bool resolve_groovy__type_at(struct groovy_resolver *r, const struct node *name, int32_t offset, type_id *ret_type)
{
    *ret_type = TYPE_NONE;
    if (name == NULL)
        return true;
    struct slice text = name->text;
    unsigned dims = 0;
    while (text.len > 2 && text.data[text.len - 1] == ']') {
        text.len -= 2;
        dims++;
    }
    enum class_id id = resolve_groovy__class(r, text);
    if (id == CLASS_COUNT)
        return resolve_groovy__refuse(r, offset, "unable to resolve class %.*s \n", SLICE_ARG(text));
    if (dims >= TYPE_DIMS_MAX)
        return resolve_groovy__refuse(r, offset, "an array has too many dimensions");
    *ret_type = type_array(id, dims);
    return true;
}

/* Variables */

void resolve_groovy__use(struct groovy_resolver *r, struct node *node, const struct local *local)
{
    struct local_use *use = arena_zalloc(r->compiler->scratch, sizeof *use);
    use->node = node;
    use->local = local;
    use->next = r->uses;
    r->uses = use;
    node->slot = local->slot;
}

static struct local *add_local(struct groovy_resolver *r, struct local_scope *scope, struct slice name, type_id type)
{
    struct local *local = arena_zalloc(r->compiler->scratch, sizeof *local);
    *local = (struct local){.name = name, .type = type, .slot = scope->function->slot_count++, .outer = scope->locals};
    scope->locals = local;
    return local;
}

/* A closure must not redeclare a variable of an enclosing scope. */
static bool is_taken(const struct groovy_resolver *r, struct slice name)
{
    for (const struct local_scope *scope = r->scope; scope != NULL; scope = scope->outer)
        for (const struct local *old = scope->locals; old != NULL; old = old->outer)
            if (slice_equal(old->name, name) && !old->implicit)
                return true;
    return false;
}

static bool refuse_name(struct groovy_resolver *r, int32_t offset, struct slice name)
{
    return resolve_groovy__refuse(r, offset, "The current scope already contains a variable of the name %.*s\n",
                                  SLICE_ARG(name));
}

bool resolve_groovy__declare(struct groovy_resolver *r, struct node *node, type_id type)
{
    if (is_taken(r, node->text))
        return refuse_name(r, node->offset, node->text);
    resolve_groovy__use(r, node, add_local(r, r->scope, node->text, type));
    return true;
}

/* Returns: a closure's own copy of a variable that it captures. */
static struct local *capture_variable(struct groovy_resolver *r, struct local_scope *scope, struct local *outer)
{
    struct function *function = scope->function;
    struct local *copy = arena_zalloc(r->compiler->scratch, sizeof *copy);
    *copy = (struct local){.name = outer->name,
                           .type = outer->type,
                           .slot = function->slot_count++,
                           .shared = true,
                           .outer = scope->copies};
    outer->shared = true;
    scope->copies = copy;
    size_t count = function->capture_count;
    if ((count & (count - 1)) == 0) {
        struct capture *more = arena_alloc(r->compiler->arena, (count == 0 ? 1 : count * 2) * sizeof *more);
        if (count > 0)
            memcpy(more, function->captures, count * sizeof *more);
        function->captures = more;
    }
    function->captures[function->capture_count++] = (struct capture){outer->name, outer->slot, copy->slot, outer->type};
    return copy;
}

struct local *resolve_groovy__find(struct groovy_resolver *r, struct local_scope *scope, struct slice name)
{
    if (scope == NULL)
        return NULL;
    struct local *const known[] = {scope->locals, scope->copies};
    for (unsigned i = 0; i < 2; i++)
        for (struct local *local = known[i]; local != NULL; local = local->outer)
            if (slice_equal(local->name, name))
                return local;
    struct local *outer = resolve_groovy__find(r, scope->outer, name);
    return outer == NULL ? NULL : capture_variable(r, scope, outer);
}

/* Functions */

static bool declare_parameters(struct groovy_resolver *r, struct function *function)
{
    if (function->implicit_it) {
        function->parameters = arena_zalloc(r->compiler->arena, sizeof *function->parameters);
        function->parameters[0] = (struct parameter){.name = SLICE_LIT("it"), .type = TYPE_NONE};
        function->parameter_count = 1;
    }
    for (unsigned i = 0; i < function->parameter_count; i++) {
        struct parameter *parameter = &function->parameters[i];
        struct node *both = parameter->initial;
        struct local_use *use = arena_zalloc(r->compiler->scratch, sizeof *use);
        if (both != NULL && !resolve_groovy__type(r, both->c, &parameter->type))
            return false;
        parameter->initial = both == NULL ? NULL : both->a;
        if (parameter->initial != NULL && !resolve_groovy__expression(r, parameter->initial))
            return false;
        if (both != NULL && is_taken(r, parameter->name))
            return refuse_name(r, both->offset, parameter->name);
        *use = (struct local_use){.parameter = parameter, .next = r->uses};
        struct local *local = add_local(r, r->scope, parameter->name, parameter->type);
        local->implicit = function->implicit_it;
        use->local = local;
        r->uses = use;
    }
    return true;
}

/* Slots of parameters come first, so all are declared before their defaults are resolved. */
bool resolve_groovy__function(struct groovy_resolver *r, struct function *function)
{
    struct node *result = function->body->c;
    function->body->c = NULL;
    if (!declare_parameters(r, function) || !resolve_groovy__type(r, result, &function->result) ||
        !resolve_groovy__statement(r, function->body))
        return false;
    measure_nesting(function);
    return true;
}

static bool resolve_in(struct groovy_resolver *r, struct function *function)
{
    struct local_scope scope = {.function = function};
    r->scope = &scope;
    return resolve_groovy__function(r, function);
}

bool resolve_groovy(struct compiler *compiler, struct function *main)
{
    struct groovy_resolver r = {.compiler = compiler};
    for (struct function *function = compiler->functions; function != NULL; function = function->next)
        if (!resolve_in(&r, function))
            return false;
    for (const struct node *import = compiler->imports; import != NULL; import = import->next)
        if (import->text.len > 0 && resolve_groovy__class(&r, import->text) == CLASS_COUNT)
            return resolve_groovy__refuse(
                &r, import->offset, "unable to resolve class %.*s\n",
                SLICE_ARG(text_slice(compiler->scratch, (const struct text *)import->value.object)));
    if (!resolve_in(&r, main))
        return false;
    for (const struct local_use *use = r.uses; use != NULL; use = use->next) {
        if (use->parameter != NULL)
            use->parameter->boxed = use->local->shared;
        else if (use->local->shared)
            use->node->flags |= NODE_BOXED;
    }
    return true;
}
