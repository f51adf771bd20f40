/* SPDX-License-Identifier: Apache-2.0 */
/* Syntax errors of Groovy sources, formatted as by groovyc: the message with its position, the
   source line, and a caret below it. */
#include "script/syntax/compile.h"

#include <stdarg.h>

static struct slice line_of(struct slice source, uint32_t line)
{
    const char *at = source.data, *end = source.data + source.len;
    for (; line > 1 && at < end; at++)
        line -= *at == '\n';
    const char *stop = at;
    while (stop < end && *stop != '\n' && *stop != '\r')
        stop++;
    return slice_make(at, (size_t)(stop - at));
}

/* Formats a source line with the caret. If the column is beyond 40, only 30 columns before it
   and 10 from it on are shown. */
static struct slice source_sample(struct compiler *compiler, uint32_t line, uint32_t column)
{
    struct slice text = line_of(compiler->source, line);
    size_t units = utf8_units(text), start = 0, caret = column - 1;
    if (column > 40) {
        start = column - 31;
        text = utf8_part(text, start, column + 10 > units ? units : column + 9);
        caret = 30;
    }
    return arena_printf(compiler->scratch, "   %.*s\n   %*s^", SLICE_ARG(text), (int)caret, "");
}

void explain_groovy(struct compiler *compiler, uint32_t line, uint32_t column, const char *format, ...)
{
    if (compiler->error.set)
        return;
    va_list arguments;
    va_start(arguments, format);
    struct slice message = arena_vprintf(compiler->scratch, format, arguments);
    va_end(arguments);
    compiler->error = (struct compile_error){.set = true, .type = CLASS_ILLEGAL_ARGUMENT_EXCEPTION, .offset = -1};
    compiler->error.stack =
        arena_printf(compiler->scratch, "%.*s: %u: %.*s @ line %u, column %u.\n%.*s\n", SLICE_ARG(compiler->name), line,
                     SLICE_ARG(message), line, column, SLICE_ARG(source_sample(compiler, line, column)));
}

/* Expressions as text */

static void write_text(struct buf *out, const struct node *node);

static void write_list(struct buf *out, const struct node *list)
{
    for (; list != NULL; list = list->next) {
        write_text(out, list);
        if (list->next != NULL)
            buf_lit(out, ", ");
    }
}

static void write_map(struct buf *out, const struct node *list)
{
    buf_byte(out, '[');
    for (; list != NULL && list->next != NULL; list = list->next->next) {
        write_text(out, list);
        buf_lit(out, ": ");
        write_text(out, list->next);
        if (list->next->next != NULL)
            buf_lit(out, ", ");
    }
    buf_byte(out, ']');
}

static const char *symbol_of(const struct node *node)
{
    static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">=", "===", "!=="};
    switch (node->kind) {
    case NODE_COMPARE: return comparisons[node->op];
    case NODE_AND: return "&&";
    case NODE_OR: return "||";
    case NODE_FIND: return "=~";
    case NODE_MATCH: return "==~";
    case NODE_IN: return "in";
    case NODE_SPACESHIP: return "<=>";
    case NODE_ASSIGN: return "=";
    case NODE_BINARY: return node->op == OP_POW ? "**" : operator_symbol((enum operator)node->op);
    default: return NULL;
    }
}

static void write_call(struct buf *out, const struct node *node)
{
    if (node->kind == NODE_CALL) {
        write_text(out, node->a);
        buf_printf(out, "%s%s.", node->flags & NODE_SPREAD ? "*" : "", node->flags & NODE_SAFE ? "?" : "");
    } else {
        buf_lit(out, "this.");
    }
    buf_append(out, node->text.data, node->text.len);
    buf_byte(out, '(');
    write_list(out, node->list);
    buf_byte(out, ')');
}

static void write_text(struct buf *out, const struct node *node)
{
    const char *symbol = symbol_of(node);
    if (symbol != NULL) {
        buf_byte(out, '(');
        write_text(out, node->a);
        buf_printf(out, " %s ", symbol);
        write_text(out, node->b);
        buf_byte(out, ')');
        return;
    }
    switch (node->kind) {
    case NODE_NOT:
        buf_byte(out, '!');
        write_text(out, node->a);
        break;
    case NODE_DOT:
        write_text(out, node->a);
        buf_printf(out, "%s%s.%.*s", node->flags & NODE_SPREAD ? "*" : "", node->flags & NODE_SAFE ? "?" : "",
                   SLICE_ARG(node->text));
        break;
    case NODE_CALL:
    case NODE_CALL_LOCAL: write_call(out, node); break;
    case NODE_BRACE:
        write_text(out, node->a);
        buf_byte(out, '[');
        write_text(out, node->b);
        buf_byte(out, ']');
        break;
    case NODE_LIST:
        buf_byte(out, '[');
        write_list(out, node->list);
        buf_byte(out, ']');
        break;
    case NODE_MAP: write_map(out, node->list); break;
    case NODE_CONDITIONAL:
        buf_byte(out, '(');
        write_text(out, node->a);
        buf_lit(out, ") ? ");
        write_text(out, node->b);
        buf_lit(out, " : ");
        write_text(out, node->c);
        break;
    case NODE_THIS: buf_lit(out, "this"); break;
    default: buf_append(out, node->text.data, node->text.len);
    }
}

struct slice explain_groovy_text(struct compiler *compiler, const struct node *node)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    if (node != NULL)
        write_text(&out, node);
    struct slice text = arena_copy(compiler->arena, buf_as_slice(&out));
    buf_deinit(&out);
    return text;
}
