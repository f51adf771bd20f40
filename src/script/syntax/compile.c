/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by all stages of compilation; see compile.h. */
#include "script/syntax/compile.h"

#include <stdarg.h>

void *compile_fail(struct compiler *compiler, enum class_id type, int32_t offset, const char *format, ...)
{
    if (compiler->error.set)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    compiler->error = (struct compile_error){.set = true, .type = type, .offset = offset};
    compiler->error.reason = arena_vprintf(compiler->scratch, format, arguments);
    va_end(arguments);
    return NULL;
}

bool compile_may_nest(unsigned depth)
{
    return depth <= COMPILE_NESTING_MAX && stack_here() > stack_floor() + depth * COMPILE_LEVEL_BYTES;
}

bool token_is(const struct token *token, const char *text)
{
    bool plain = token->kind == TOKEN_SYMBOL || token->kind == TOKEN_KEYWORD;
    return plain && slice_is(token->text, text);
}

bool token_is_among(const char *const *words, size_t count, struct slice text)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(text, words[i]))
            return true;
    return false;
}

struct node *node_new(struct compiler *compiler, enum node_kind kind, int32_t offset)
{
    struct node *node = arena_zalloc(compiler->arena, sizeof *node);
    node->kind = (uint8_t)kind;
    node->type = node->target = TYPE_NONE;
    node->offset = node->error_offset = offset;
    return node;
}

struct value node_text(struct compiler *compiler, struct slice utf8)
{
    return value_of(text_constant(compiler->arena, utf8));
}

static unsigned depth_of(const struct node *node)
{
    unsigned deepest = 0;
    for (; node != NULL; node = node->next) {
        const struct node *const children[] = {node->a, node->b, node->c, node->list};
        for (unsigned i = 0; i < 4; i++) {
            unsigned depth = children[i] == NULL ? 0 : depth_of(children[i]);
            deepest = depth > deepest ? depth : deepest;
        }
    }
    return deepest + 1;
}

void measure_nesting(struct function *function)
{
    function->nesting = depth_of(function->body) + 2;
}
