/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's grammar: statements. */
#include "script/syntax/parse_painless.h"

static bool declaration_ahead(const struct parser *parser)
{
    size_t type = painless__decltype_tokens(parser, 0);
    return type > 0 && painless__peek(parser, type)->kind == TOKEN_ID;
}

static struct node *parse_declaration(struct parser *parser)
{
    struct node *all = painless__make(parser, NODE_DECLARE_ALL, painless__peek(parser, 0)->start), **end = &all->list;
    struct slice type = painless__take_type(parser, painless__decltype_tokens(parser, 0));
    do {
        struct node *node = painless__make(parser, NODE_DECLARE, painless__peek(parser, 0)->start);
        node->value = node_text(parser->compiler, type);
        node->c = painless__make(parser, NODE_NAME, node->offset);
        node->c->text = type;
        if (!painless__expect_kind(parser, TOKEN_ID, &node->text))
            return NULL;
        if (painless__accept(parser, "="))
            node->a = painless__expression(parser);
        *end = node;
        end = &node->next;
    } while (painless__accept(parser, ","));
    return all;
}

/* Parses a statement that ends in a semicolon, without consuming it. */
static struct node *parse_simple(struct parser *parser)
{
    int32_t start = painless__peek(parser, 0)->start;
    struct node *node;
    if (declaration_ahead(parser))
        return parse_declaration(parser);
    if (painless__accept(parser, "do")) {
        node = painless__make(parser, NODE_DO, start);
        node->b = painless__block(parser);
        if (painless__expect(parser, "while") && painless__expect(parser, "("))
            node->a = painless__expression(parser);
        painless__expect(parser, ")");
        return node;
    }
    if (painless__accept(parser, "continue"))
        return painless__make(parser, NODE_CONTINUE, start);
    if (painless__accept(parser, "break"))
        return painless__make(parser, NODE_BREAK, start);
    if (painless__accept(parser, "return")) {
        node = painless__make(parser, NODE_RETURN, start);
        bool empty = painless__at(parser, ";") || painless__at(parser, "}") || painless__kind_at(parser, TOKEN_EOF);
        node->a = empty ? NULL : painless__expression(parser);
        return node;
    }
    if (painless__accept(parser, "throw")) {
        node = painless__make(parser, NODE_THROW, start);
        node->a = painless__expression(parser);
        return node;
    }
    node = painless__make(parser, NODE_EXPRESSION, start);
    node->a = painless__expression(parser);
    return node;
}

/* Returns: a block; NULL for an empty one, or on failure. */
struct node *painless__block(struct parser *parser)
{
    struct node *block = painless__make(parser, NODE_BLOCK, painless__peek(parser, 0)->start), **end = &block->list;
    if (!painless__enter(parser) || !painless__expect(parser, "{"))
        return NULL;
    while (!parser->failed && !painless__at(parser, "}")) {
        *end = painless__statement(parser, true);
        if (*end == NULL)
            return NULL;
        end = &(*end)->next;
    }
    painless__expect(parser, "}");
    parser->depth--;
    return block->list == NULL ? NULL : block;
}

static struct node *parse_trailer(struct parser *parser)
{
    if (painless__at(parser, "{"))
        return painless__block(parser);
    if (!painless__enter(parser))
        return NULL;
    struct node *block = painless__make(parser, NODE_BLOCK, painless__peek(parser, 0)->start);
    block->list = painless__statement(parser, false);
    parser->depth--;
    return block->list == NULL ? NULL : block;
}

/* Parses the body of a loop; NULL also for a single semicolon. */
static struct node *parse_body(struct parser *parser)
{
    return painless__accept(parser, ";") ? NULL : parse_trailer(parser);
}

/* Compound statements */

static struct node *parse_if(struct parser *parser, int32_t start)
{
    struct node *node = painless__make(parser, NODE_IF, start);
    if (painless__expect(parser, "("))
        node->a = painless__expression(parser);
    if (!painless__expect(parser, ")"))
        return NULL;
    node->b = parse_trailer(parser);
    if (painless__accept(parser, "else")) {
        node->flags |= NODE_USED; /* there is an else, possibly empty */
        node->c = parse_trailer(parser);
    }
    return node;
}

static struct node *parse_each(struct parser *parser, int32_t start, bool typed)
{
    struct node *node = painless__make(parser, NODE_EACH, start);
    struct slice type = typed ? painless__take_type(parser, painless__decltype_tokens(parser, 0)) : SLICE_LIT("def");
    node->c = painless__make(parser, NODE_NAME, start);
    node->c->text = type;
    painless__expect_kind(parser, TOKEN_ID, &node->text);
    parser->at++;
    node->a = painless__expression(parser);
    if (!painless__expect(parser, ")"))
        return NULL;
    node->b = parse_trailer(parser);
    return node;
}

static struct node *parse_for(struct parser *parser, int32_t start)
{
    struct node *node = painless__make(parser, NODE_FOR, start);
    if (!painless__expect(parser, "("))
        return NULL;
    size_t type = painless__decltype_tokens(parser, 0);
    if (type > 0 && painless__peek(parser, type)->kind == TOKEN_ID && token_is(painless__peek(parser, type + 1), ":"))
        return parse_each(parser, start, true);
    if (painless__kind_at(parser, TOKEN_ID) && token_is(painless__peek(parser, 1), "in"))
        return parse_each(parser, start, false);
    if (declaration_ahead(parser))
        node->list = parse_declaration(parser);
    else if (!painless__at(parser, ";"))
        node->list = painless__expression(parser);
    if (painless__expect(parser, ";") && !painless__at(parser, ";"))
        node->a = painless__expression(parser);
    if (painless__expect(parser, ";") && !painless__at(parser, ")"))
        node->c = painless__expression(parser);
    if (!painless__expect(parser, ")"))
        return NULL;
    node->b = parse_body(parser);
    return node;
}

static struct node *parse_try(struct parser *parser, int32_t start)
{
    struct node *node = painless__make(parser, NODE_TRY, start), **end = &node->list;
    node->b = painless__block(parser);
    while (!parser->failed && painless__at(parser, "catch")) {
        struct node *trap = painless__make(parser, NODE_CATCH, painless__peek(parser, 0)->start);
        parser->at++;
        if (!painless__expect(parser, "("))
            return NULL;
        trap->c = painless__make(parser, NODE_NAME, trap->offset);
        trap->c->text = painless__take_type(parser, painless__type_tokens(parser, 0));
        painless__expect_kind(parser, TOKEN_ID, &trap->text);
        if (!painless__expect(parser, ")"))
            return NULL;
        trap->b = painless__block(parser);
        *end = trap;
        end = &trap->next;
    }
    return node->list == NULL ? painless__give_up(parser) : node;
}

/* Parses `assert condition`, an extension in SCRIPT_DEFAULT. */
static struct node *parse_assert(struct parser *parser, const struct token *token)
{
    struct node *node = painless__make(parser, NODE_ASSERT, token->start);
    parser->at++;
    node->a = painless__expression(parser);
    const struct token *last = parser->at > 0 ? &parser->compiler->tokens[parser->at - 1] : token;
    node->text = slice_make(token->text.data, (size_t)(last->text.data + last->text.len - token->text.data));
    return node;
}

static struct node *parse_complex(struct parser *parser)
{
    const struct token *token = painless__peek(parser, 0);
    if (painless__accept(parser, "if"))
        return parse_if(parser, token->start);
    if (painless__accept(parser, "for"))
        return parse_for(parser, token->start);
    if (painless__accept(parser, "try"))
        return parse_try(parser, token->start);
    if (!painless__accept(parser, "while") || !painless__expect(parser, "("))
        return NULL;
    struct node *node = painless__make(parser, NODE_WHILE, token->start);
    node->a = painless__expression(parser);
    if (!painless__expect(parser, ")"))
        return NULL;
    node->b = parse_body(parser);
    return node;
}

struct node *painless__statement(struct parser *parser, bool in_block)
{
    bool complex = painless__at(parser, "if") || painless__at(parser, "for") || painless__at(parser, "while") ||
                   painless__at(parser, "try");
    const struct token *token = painless__peek(parser, 0);
    struct node *node;
    if (complex) {
        node = parse_complex(parser);
        return parser->failed ? NULL : node;
    }
    if (parser->compiler->bare_names && painless__accept(parser, ";"))
        return painless__make(parser, NODE_EMPTY, token->start);
    node = painless__at_assertion(parser) ? parse_assert(parser, token) : parse_simple(parser);
    if (parser->failed)
        return NULL;
    if (!painless__accept(parser, ";") && !(in_block && painless__at(parser, "}")) &&
        !painless__kind_at(parser, TOKEN_EOF))
        return painless__give_up(parser);
    return node;
}
