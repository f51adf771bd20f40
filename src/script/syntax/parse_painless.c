/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's grammar: tokens, types, and functions; see parse_painless.h. */
#include "script/syntax/parse_painless.h"

const struct token *painless__peek(const struct parser *parser, size_t ahead)
{
    size_t last = parser->compiler->token_count - 1;
    return &parser->compiler->tokens[parser->at + ahead < last ? parser->at + ahead : last];
}

bool painless__at(const struct parser *parser, const char *symbol)
{
    return token_is(painless__peek(parser, 0), symbol);
}

bool painless__kind_at(const struct parser *parser, enum token_kind kind)
{
    return painless__peek(parser, 0)->kind == kind;
}

void *painless__give_up(struct parser *parser)
{
    parser->failed = true;
    return NULL;
}

bool painless__accept(struct parser *parser, const char *symbol)
{
    if (parser->failed || !painless__at(parser, symbol))
        return false;
    parser->at++;
    return true;
}

bool painless__expect(struct parser *parser, const char *symbol)
{
    if (!painless__accept(parser, symbol))
        parser->failed = true;
    return !parser->failed;
}

bool painless__expect_kind(struct parser *parser, enum token_kind kind, struct slice *ret_text)
{
    if (parser->failed || !painless__kind_at(parser, kind))
        return painless__give_up(parser) != NULL;
    *ret_text = painless__peek(parser, 0)->text;
    parser->at++;
    return true;
}

bool painless__at_assertion(const struct parser *parser)
{
    const struct token *token = painless__peek(parser, 0);
    return parser->compiler->bare_names && token->kind == TOKEN_ID && slice_is(token->text, "assert") &&
           !token_is(painless__peek(parser, 1), "=");
}

struct node *painless__make(struct parser *parser, enum node_kind kind, int32_t offset)
{
    return node_new(parser->compiler, kind, offset);
}

bool painless__enter(struct parser *parser)
{
    if (compile_may_nest(++parser->depth))
        return true;
    compile_fail(parser->compiler, CLASS_STACK_OVERFLOW_ERROR, -1, "nested deeper than %u", COMPILE_NESTING_MAX);
    return painless__give_up(parser) != NULL;
}

/* Types */

size_t painless__type_tokens(const struct parser *parser, size_t ahead)
{
    enum token_kind kind = painless__peek(parser, ahead)->kind;
    if (kind == TOKEN_DEF || kind == TOKEN_PRIMITIVE)
        return 1;
    if (kind != TOKEN_ID)
        return 0;
    size_t count = 1;
    while (token_is(painless__peek(parser, ahead + count), ".") &&
           painless__peek(parser, ahead + count + 1)->kind == TOKEN_DOT_ID)
        count += 2;
    return count;
}

size_t painless__decltype_tokens(const struct parser *parser, size_t ahead)
{
    size_t count = painless__type_tokens(parser, ahead);
    while (count > 0 && token_is(painless__peek(parser, ahead + count), "[") &&
           token_is(painless__peek(parser, ahead + count + 1), "]"))
        count += 2;
    return count;
}

/* Joins the texts of `count` tokens. */
struct slice painless__take_type(struct parser *parser, size_t count)
{
    struct slice text = SLICE_NONE;
    if (count == 0 || parser->failed) {
        parser->failed = true;
        return text;
    }
    for (size_t i = 0; i < count; i++) {
        struct slice part = painless__peek(parser, i)->text;
        text = i == 0 ? part : arena_printf(parser->compiler->arena, "%.*s%.*s", SLICE_ARG(text), SLICE_ARG(part));
    }
    parser->at += count;
    return text;
}

/* Functions */

static struct function *parse_function(struct parser *parser)
{
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    function->offset = painless__peek(parser, 0)->start;
    struct slice type = painless__take_type(parser, painless__decltype_tokens(parser, 0));
    struct node *result = painless__make(parser, NODE_NAME, function->offset);
    result->text = type;
    if (!painless__expect_kind(parser, TOKEN_ID, &function->name) || !painless__expect(parser, "("))
        return NULL;
    if (!painless__at(parser, ")"))
        painless__parameters(parser, function, true);
    if (!painless__expect(parser, ")"))
        return NULL;
    struct node *block = painless__make(parser, NODE_BLOCK, painless__peek(parser, 0)->start);
    struct node *body = painless__block(parser);
    if (parser->failed)
        return NULL;
    function->body = body == NULL ? block : body;
    function->body->c = result; /* until resolved: the name of the result's type */
    return function;
}

static bool function_ahead(const struct parser *parser)
{
    size_t type = painless__decltype_tokens(parser, 0);
    return type > 0 && !painless__at_assertion(parser) && painless__peek(parser, type)->kind == TOKEN_ID &&
           token_is(painless__peek(parser, type + 1), "(");
}

struct function *parse_painless(struct compiler *compiler)
{
    struct parser parser = {.compiler = compiler};
    struct function *main = arena_zalloc(compiler->arena, sizeof *main), **last = &compiler->functions;
    main->name = SLICE_LIT("execute");
    main->body = node_new(compiler, NODE_BLOCK, 0);
    while (!parser.failed && function_ahead(&parser)) {
        compiler->begun = painless__peek(&parser, 0);
        *last = parse_function(&parser);
        if (*last != NULL)
            last = &(*last)->next;
    }
    struct node **end = &main->body->list;
    while (!parser.failed && !painless__kind_at(&parser, TOKEN_EOF)) {
        compiler->begun = painless__peek(&parser, 0);
        compiler->begun_later = main->body->list != NULL;
        *end = painless__statement(&parser, false);
        if (*end == NULL)
            parser.failed = true;
        else
            end = &(*end)->next;
    }
    if (parser.failed)
        compiler->stopped = painless__peek(&parser, 0);
    return parser.failed ? NULL : main;
}
