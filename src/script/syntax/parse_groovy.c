/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's grammar: tokens and simple statements. See parse_groovy.h; loops and the like are in
 * parse_groovy_flow.c.
 */
#include "script/syntax/parse_groovy.h"
#include "script/syntax/parse_groovy_flow.h"

#include <stdio.h>

/* Tokens */

const struct token *parse__peek(const struct groovy_parser *parser, size_t ahead)
{
    size_t last = parser->compiler->token_count - 1;
    return &parser->compiler->tokens[parser->at + ahead < last ? parser->at + ahead : last];
}

bool parse__at(const struct groovy_parser *parser, const char *symbol)
{
    return token_is(parse__peek(parser, 0), symbol);
}

/*
 * A lexical error in the tokens that the original would have read by now has precedence; its text
 * is set elsewhere.
 */
static bool lexer_failed(const struct groovy_parser *parser)
{
    for (size_t i = 0; i < 3; i++)
        if (parse__peek(parser, i)->kind == TOKEN_ERROR)
            return true;
    return false;
}

void *parse__refuse(struct groovy_parser *parser, const struct token *token, const char *message)
{
    if (!parser->failed && !lexer_failed(parser))
        explain_groovy(parser->compiler, token->line, token->column, "%s", message);
    parser->failed = true;
    return NULL;
}

void *parse__refuse_placed(struct groovy_parser *parser, const struct token *token, struct slice what)
{
    struct slice message = arena_printf(parser->compiler->scratch, "%.*s at line: %u column: %u. File: %.*s",
                                        SLICE_ARG(what), token->line, token->column, SLICE_ARG(parser->compiler->name));
    return parse__refuse(parser, token, message.data);
}

void *parse__unexpected(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct slice message = arena_printf(parser->compiler->scratch, "unexpected token: %.*s", SLICE_ARG(token->text));
    return parse__refuse(parser, token, message.data);
}

static bool fail_expected(struct groovy_parser *parser, const char *what)
{
    const struct token *token = parse__peek(parser, 0);
    struct slice message =
        arena_printf(parser->compiler->scratch, "expecting %s, found '%.*s'", what, SLICE_ARG(token->text));
    return parse__refuse(parser, token, message.data) != NULL;
}

bool parse__accept(struct groovy_parser *parser, const char *symbol)
{
    if (parser->failed || !parse__at(parser, symbol))
        return false;
    parser->at++;
    return true;
}

bool parse__expect(struct groovy_parser *parser, const char *symbol)
{
    if (parser->failed || parse__accept(parser, symbol))
        return !parser->failed;
    char quoted[20];
    snprintf(quoted, sizeof quoted, "'%s'", symbol);
    return fail_expected(parser, quoted);
}

bool parse__expect_name(struct groovy_parser *parser, struct slice *ret_name)
{
    const struct token *token = parse__peek(parser, 0);
    if (parser->failed)
        return false;
    if (token->kind != TOKEN_ID)
        return fail_expected(parser, "an identifier");
    *ret_name = token->text;
    parser->at++;
    return true;
}

void parse__newlines(struct groovy_parser *parser)
{
    parser->at += parse__peek(parser, 0)->kind == TOKEN_NEWLINE;
}

bool parse__enter(struct groovy_parser *parser)
{
    if (compile_may_nest(++parser->depth))
        return true;
    if (!parser->failed)
        compile_fail(parser->compiler, CLASS_STACK_OVERFLOW_ERROR, -1, "nested deeper than %u", COMPILE_NESTING_MAX);
    parser->failed = true;
    return false;
}

struct node *parse__make(struct groovy_parser *parser, enum node_kind kind, const struct token *token)
{
    return node_new(parser->compiler, kind, token->start);
}

struct node *parse__text(struct groovy_parser *parser, const struct token *token, struct slice text)
{
    struct node *node = parse__make(parser, NODE_CONST, token);
    node->text = text;
    node->value = node_text(parser->compiler, text);
    return node;
}

/* Makes a variable with a name that no source can use. */
static struct slice hidden_name(struct groovy_parser *parser)
{
    return arena_printf(parser->compiler->arena, " %u", parser->hidden_count++);
}

/* The last statement as a result */

static void return_each(struct groovy_parser *parser, struct node *list)
{
    for (; list != NULL; list = list->next)
        if (list->b != NULL)
            parse__return_last(parser, list->b);
}

/*
 * Of a switch: in the default, and in cases that end in a break, the statement before the break is
 * returned.
 */
static void return_cases(struct groovy_parser *parser, struct node *cases)
{
    for (; cases != NULL; cases = cases->next) {
        struct node *before = NULL, *last = cases->b == NULL ? NULL : cases->b->list;
        while (last != NULL && last->next != NULL) {
            before = last;
            last = last->next;
        }
        bool ends = last != NULL && last->kind == NODE_BREAK && last->value.kind == VALUE_NULL;
        if (ends) {
            last->kind = NODE_RETURN;
            if (before != NULL)
                parse__return_last(parser, before);
        } else if (last != NULL && cases->a == NULL) {
            parse__return_last(parser, cases->b);
        }
    }
}

/* The value of a declaration is the value of its last variable. */
static void return_declared(struct groovy_parser *parser, struct node *all)
{
    struct node *last = all->list;
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last == NULL || last->kind != NODE_DECLARE)
        return;
    last->next = node_new(parser->compiler, NODE_RETURN, last->offset);
    last->next->a = node_new(parser->compiler, NODE_NAME, last->offset);
    last->next->a->text = last->text;
}

void parse__return_last(struct groovy_parser *parser, struct node *block)
{
    struct node *last = block;
    if (block->kind == NODE_BLOCK) {
        last = block->list;
        while (last != NULL && last->next != NULL)
            last = last->next;
    }
    if (last == NULL)
        return;
    switch (last->kind) {
    case NODE_EXPRESSION: last->kind = NODE_RETURN; break;
    case NODE_DECLARE_ALL: return_declared(parser, last); break;
    case NODE_IF:
        if (last->b != NULL)
            parse__return_last(parser, last->b);
        if (last->c != NULL)
            parse__return_last(parser, last->c);
        break;
    case NODE_TRY:
        parse__return_last(parser, last->b);
        return_each(parser, last->list);
        break;
    case NODE_BLOCK:
        if (last != block)
            parse__return_last(parser, last);
        break;
    default: break;
    }
    if (last->kind == NODE_SWITCH)
        return_cases(parser, last->list);
}

/* Declarations */

static struct node *declare_variable(struct groovy_parser *parser, const struct token *token, struct slice name,
                                     struct node *type, struct node *initial)
{
    struct node *node = parse__make(parser, NODE_DECLARE, token);
    node->text = name;
    node->c = type;
    node->a = initial;
    return node;
}

static struct node *name_of(struct groovy_parser *parser, const struct token *token, struct slice name)
{
    struct node *node = parse__make(parser, NODE_NAME, token);
    node->text = name;
    return node;
}

/* The element of a hidden list. */
static struct node *element_of(struct groovy_parser *parser, const struct token *token, struct slice list, int index)
{
    struct node *node = parse__make(parser, NODE_BRACE, token);
    node->a = name_of(parser, token, list);
    node->b = parse__make(parser, NODE_CONST, token);
    node->b->value = value_int(index);
    return node;
}

/*
 * Parses the rest of `def (a, b) = list` or `(a, b) = list` after the parenthesis. Evaluates the
 * list once, then assigns its elements.
 */
static struct node *parse_several(struct groovy_parser *parser, const struct token *token, bool declares)
{
    struct node *all = parse__make(parser, NODE_DECLARE_ALL, token), *first = NULL, **end = &first;
    struct slice list = hidden_name(parser);
    for (int index = 0; !parser->failed; index++) {
        const struct token *one = parse__peek(parser, 0);
        struct slice name = SLICE_NONE;
        struct node *type = declares ? parse__declared_type(parser) : NULL;
        if (!parse__expect_name(parser, &name))
            return NULL;
        struct node *element = element_of(parser, one, list, index);
        if (declares) {
            *end = declare_variable(parser, one, name, type, element);
        } else {
            *end = parse__make(parser, NODE_EXPRESSION, one);
            (*end)->a = parse__make(parser, NODE_ASSIGN, one);
            (*end)->a->a = name_of(parser, one, name);
            (*end)->a->b = element;
        }
        end = &(*end)->next;
        if (!parse__accept(parser, ","))
            break;
    }
    if (!parse__expect(parser, ")") || !parse__expect(parser, "="))
        return NULL;
    parse__newlines(parser);
    all->list = declare_variable(parser, token, list, NULL, parse__command(parser));
    all->list->next = first;
    return parser->failed ? NULL : all;
}

static bool several_ahead(const struct groovy_parser *parser)
{
    if (!parse__at(parser, "("))
        return false;
    for (size_t ahead = 1;; ahead += 2) {
        if (parse__peek(parser, ahead)->kind != TOKEN_ID)
            return false;
        if (token_is(parse__peek(parser, ahead + 1), ")"))
            return token_is(parse__peek(parser, ahead + 2), "=");
        if (!token_is(parse__peek(parser, ahead + 1), ","))
            return false;
    }
}

static struct node *parse_method(struct groovy_parser *parser, const struct token *token, struct slice name,
                                 struct node *type)
{
    struct function **last = &parser->compiler->functions;
    while (*last != NULL)
        last = &(*last)->next;
    struct function *function = parse__function(parser, name, type);
    if (function == NULL)
        return NULL;
    *last = function;
    return parse__make(parser, NODE_EMPTY, token);
}

/* Variables of one type, or a function. */
static struct node *parse_declaration(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *type = parse__declared_type(parser);
    struct node *all = parse__make(parser, NODE_DECLARE_ALL, token), **end = &all->list;
    do {
        if (end != &all->list)
            parse__newlines(parser);
        const struct token *name = parse__peek(parser, 0);
        if (name->kind != TOKEN_ID && name->kind != TOKEN_STRING)
            return parse__unexpected(parser);
        parser->at++;
        if (end == &all->list && parse__at(parser, "("))
            return parse_method(parser, token, name->text, type);
        *end = declare_variable(parser, name, name->text, type, NULL);
        if (parse__accept(parser, "=")) {
            parse__newlines(parser);
            (*end)->a = parse__command(parser);
        }
        end = &(*end)->next;
    } while (parse__accept(parser, ","));
    return parser->failed ? NULL : all;
}

/* Statements */

struct node *parse__block_body(struct groovy_parser *parser, const struct token *open)
{
    struct node *block = parse__make(parser, NODE_BLOCK, open), **end = &block->list;
    unsigned depth = parser->depth;
    if (!parse__enter(parser))
        return NULL;
    parse__newlines(parser);
    flow__statements(parser, end, "}");
    if (!parse__expect(parser, "}"))
        return NULL;
    parser->depth = depth;
    return block;
}

struct node *parse__block(struct groovy_parser *parser)
{
    const struct token *open = parse__peek(parser, 0);
    return parse__expect(parser, "{") ? parse__block_body(parser, open) : NULL;
}

/* The text of an assertion: up to the next token, each line trimmed. */
static struct slice assertion_text(struct groovy_parser *parser, const struct token *from)
{
    struct slice source = parser->compiler->source;
    const char *start = from->text.data, *end = start, *stop = source.data + source.len;
    int32_t units = from->start;
    while (end < stop && units < parse__peek(parser, 0)->start)
        units += utf8_next(&end, stop) > 0xffff ? 2 : 1;
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    while (start < end) {
        const char *line = memchr(start, '\n', (size_t)(end - start));
        struct slice text = slice_trim(slice_make(start, (size_t)((line == NULL ? end : line) - start)));
        if (out.len > 0 && text.len > 0)
            buf_byte(&out, ' ');
        buf_append(&out, text.data, text.len);
        start = line == NULL ? end : line + 1;
    }
    struct slice all = arena_copy(parser->compiler->arena, buf_as_slice(&out));
    buf_deinit(&out);
    return all;
}

static struct node *parse_assert(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_ASSERT, token);
    node->a = parse__conditional(parser);
    if (parse__accept(parser, ":") || parse__accept(parser, ",")) {
        parse__newlines(parser);
        node->b = parse__expression(parser);
    }
    if (parser->failed)
        return NULL;
    node->text = assertion_text(parser, token);
    node->value = node_text(parser->compiler, explain_groovy_text(parser->compiler, node->a));
    return node;
}

static struct node *parse_jump(struct groovy_parser *parser, enum node_kind kind, const struct token *token)
{
    struct node *node = parse__make(parser, kind, token);
    if (parse__peek(parser, 0)->kind == TOKEN_ID) {
        node->text = parse__peek(parser, 0)->text;
        node->value = node_text(parser->compiler, node->text);
        parser->at++;
    }
    return node;
}

/*
 * Parses return, throw, break, continue, assert. Returns: NULL without failing if none of them is
 * next.
 */
static struct node *parse_branch(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *node = NULL;
    if (parse__accept(parser, "return")) {
        node = parse__make(parser, NODE_RETURN, token);
        if (parse__expression_ahead(parser))
            node->a = parse__expression(parser);
        else if (!flow__ended(parser))
            return parse__unexpected(parser);
    } else if (parse__accept(parser, "throw")) {
        node = parse__make(parser, NODE_THROW, token);
        node->a = parse__expression(parser);
    } else if (parse__accept(parser, "break")) {
        return parse_jump(parser, NODE_BREAK, token);
    } else if (parse__accept(parser, "continue")) {
        return parse_jump(parser, NODE_CONTINUE, token);
    } else if (parse__accept(parser, "assert")) {
        return parse_assert(parser, token);
    }
    return parser->failed ? NULL : node;
}

static struct node *parse_expression_statement(struct groovy_parser *parser, bool after_newline)
{
    const struct token *token = parse__peek(parser, 0);
    if (parse__at(parser, "{") && !parse__parameters_ahead(parser, 1))
        return parse__refuse(
            parser, token,
            after_newline
                ? "Ambiguous expression could be a parameterless closure expression, an isolated open code block, or "
                  "it may continue a previous statement;\n   solution: Add an explicit parameter list, e.g. {it -> "
                  "...}, "
                  "or force it to be treated as an open block by giving it a label, e.g. L:{...}, and also either "
                  "remove the previous newline, or add an explicit semicolon ';'"
                : "Ambiguous expression could be either a parameterless closure expression or an isolated open code "
                  "block;\n   solution: Add an explicit closure parameter list, e.g. {it -> ...}, or force it to be "
                  "treated as an open block by giving it a label, e.g. L:{...}");
    if (several_ahead(parser)) {
        parser->at++;
        return parse_several(parser, token, false);
    }
    struct node *node = parse__make(parser, NODE_EXPRESSION, token);
    node->a = parse__command(parser);
    return parser->failed ? NULL : node;
}

struct node *flow__simple(struct groovy_parser *parser, bool after_newline)
{
    const struct token *token = parse__peek(parser, 0);
    if (token->kind == TOKEN_DEF && token_is(parse__peek(parser, 1), "(")) {
        parser->at += 2;
        return parse_several(parser, token, true);
    }
    if (parse__declaration_ahead(parser))
        return parse_declaration(parser);
    struct node *node = parse_branch(parser);
    return node != NULL || parser->failed ? node : parse_expression_statement(parser, after_newline);
}

struct node *parse__strict(struct groovy_parser *parser)
{
    if (!parse__declaration_ahead(parser)) {
        struct node *branch = parse_branch(parser);
        return branch != NULL || parser->failed ? branch : parse__expression(parser);
    }
    const struct token *token = parse__peek(parser, 0);
    struct node *type = parse__declared_type(parser);
    struct slice name = SLICE_NONE;
    if (!parse__expect_name(parser, &name))
        return NULL;
    struct node *node = declare_variable(parser, token, name, type, NULL);
    if (parse__accept(parser, "=")) {
        parse__newlines(parser);
        node->a = parse__command(parser);
    }
    return parser->failed ? NULL : node;
}

struct function *parse_groovy(struct compiler *compiler)
{
    struct groovy_parser parser = {.compiler = compiler};
    struct function *main = arena_zalloc(compiler->arena, sizeof *main);
    main->name = SLICE_LIT("run");
    main->result = TYPE_NONE;
    main->body = node_new(compiler, NODE_BLOCK, 0);
    parse__newlines(&parser);
    flow__statements(&parser, &main->body->list, NULL);
    if (!parser.failed && parse__peek(&parser, 0)->kind != TOKEN_EOF)
        fail_expected(&parser, "EOF");
    if (parser.failed)
        return NULL;
    parse__return_last(&parser, main->body);
    return main;
}
