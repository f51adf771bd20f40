/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's grammar: names, literals, calls, functions as values, and what follows a dot or a
 * bracket.
 */
#include "script/syntax/parse_painless.h"

/* Functions as values */

static struct node *parse_lambda(struct parser *parser);

static bool lambda_ahead(const struct parser *parser)
{
    size_t ahead = 0;
    if (!painless__at(parser, "(")) {
        size_t type = painless__decltype_tokens(parser, 0);
        bool bare = painless__kind_at(parser, TOKEN_ID) && token_is(painless__peek(parser, 1), "->");
        return bare || (type > 0 && painless__peek(parser, type)->kind == TOKEN_ID &&
                        token_is(painless__peek(parser, type + 1), "->"));
    }
    for (ahead = 1; !token_is(painless__peek(parser, ahead), ")"); ahead++) {
        size_t type = painless__decltype_tokens(parser, ahead);
        bool typed = type > 0 && painless__peek(parser, ahead + type)->kind == TOKEN_ID;
        if (!typed && painless__peek(parser, ahead)->kind != TOKEN_ID)
            return false;
        ahead += typed ? type + 1 : 1;
        if (!token_is(painless__peek(parser, ahead), ","))
            break;
    }
    return token_is(painless__peek(parser, ahead), ")") && token_is(painless__peek(parser, ahead + 1), "->");
}

static struct node *parse_reference(struct parser *parser, size_t type)
{
    struct node *node = painless__make(parser, NODE_REFERENCE, painless__peek(parser, 0)->start);
    struct slice owner = type > 0 ? painless__take_type(parser, type) : SLICE_LIT("this");
    if (type == 0)
        parser->at++;
    painless__expect(parser, "::");
    node->text = SLICE_LIT("new");
    if (type == 0 || !painless__accept(parser, "new"))
        painless__expect_kind(parser, TOKEN_ID, &node->text);
    node->value = node_text(parser->compiler, owner);
    node->a = painless__make(parser, NODE_NAME, node->offset);
    node->a->text = owner;
    return node;
}

static struct node *parse_argument(struct parser *parser)
{
    size_t type = painless__decltype_tokens(parser, 0);
    if (type > 0 && token_is(painless__peek(parser, type), "::"))
        return parse_reference(parser, type);
    if (painless__at(parser, "this") && token_is(painless__peek(parser, 1), "::"))
        return parse_reference(parser, 0);
    return lambda_ahead(parser) ? parse_lambda(parser) : painless__expression(parser);
}

static struct node *parse_arguments(struct parser *parser)
{
    struct node *first = NULL, **end = &first;
    if (!painless__expect(parser, "(") || painless__accept(parser, ")"))
        return NULL;
    do {
        struct node *argument = parse_argument(parser);
        if (argument == NULL)
            return NULL;
        *end = argument;
        end = &argument->next;
    } while (painless__accept(parser, ","));
    painless__expect(parser, ")");
    return first;
}

void painless__parameters(struct parser *parser, struct function *function, bool typed_only)
{
    size_t capacity = 0;
    do {
        size_t type = painless__decltype_tokens(parser, 0);
        struct parameter parameter = {.type = TYPE_NONE};
        struct slice type_text = SLICE_NONE;
        if (typed_only || (type > 0 && painless__peek(parser, type)->kind == TOKEN_ID))
            type_text = painless__take_type(parser, type);
        if (!painless__expect_kind(parser, TOKEN_ID, &parameter.name))
            return;
        if (type_text.len > 0) {
            parameter.initial = painless__make(parser, NODE_NAME, 0);
            parameter.initial->text = type_text;
        }
        function->parameters = arena_grow(parser->compiler->arena, function->parameters, function->parameter_count,
                                          &capacity, sizeof *function->parameters);
        function->parameters[function->parameter_count++] = parameter;
    } while (painless__accept(parser, ","));
}

static struct node *parse_lambda(struct parser *parser)
{
    struct node *node = painless__make(parser, NODE_LAMBDA, painless__peek(parser, 0)->start);
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    function->lambda = true;
    function->offset = node->offset;
    node->function = function;
    if (!painless__enter(parser))
        return NULL;
    if (painless__accept(parser, "(")) {
        if (!painless__at(parser, ")"))
            painless__parameters(parser, function, false);
        painless__expect(parser, ")");
    } else {
        painless__parameters(parser, function, false);
    }
    painless__expect(parser, "->");
    if (parser->failed)
        return NULL;
    if (painless__at(parser, "{")) {
        function->body = painless__block(parser);
        if (function->body == NULL && !parser->failed)
            function->body = painless__make(parser, NODE_BLOCK, node->offset);
    } else {
        struct node *result = painless__make(parser, NODE_RETURN, node->offset);
        function->body = painless__make(parser, NODE_BLOCK, node->offset);
        result->a = painless__expression(parser);
        function->body->list = result;
    }
    parser->depth--;
    return node;
}

/* Literals */

static struct node *parse_list_or_map(struct parser *parser)
{
    struct node *node = painless__make(parser, NODE_LIST, painless__peek(parser, 0)->start), **end = &node->list;
    parser->at++;
    if (painless__accept(parser, "]"))
        return node;
    if (painless__at(parser, ":") && token_is(painless__peek(parser, 1), "]")) {
        parser->at += 2;
        node->kind = NODE_MAP;
        return node;
    }
    for (bool first = true;; first = false) {
        struct node *item = painless__expression(parser);
        if (item == NULL)
            return NULL;
        *end = item;
        end = &item->next;
        if (first && painless__at(parser, ":"))
            node->kind = NODE_MAP;
        if (node->kind == NODE_MAP) {
            if (!painless__expect(parser, ":") || (item = painless__expression(parser)) == NULL)
                return NULL;
            *end = item;
            end = &item->next;
        }
        if (!painless__accept(parser, ","))
            break;
    }
    painless__expect(parser, "]");
    return node;
}

/* Returns: a string literal without its quotes and escapes. */
static struct slice unquote_literal(struct parser *parser, struct slice text)
{
    char *out = arena_alloc(parser->compiler->arena, text.len);
    size_t len = 0;
    for (size_t i = 1; i + 1 < text.len; i++) {
        if (text.data[i] == '\\')
            i++;
        out[len++] = text.data[i];
    }
    return slice_make(out, len);
}

static struct node *parse_constant(struct parser *parser)
{
    const struct token *token = painless__peek(parser, 0);
    struct node *node = painless__make(parser, NODE_CONST, token->start);
    node->text = token->text;
    parser->at++;
    switch (token->kind) {
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
        /*
         * The resolver makes the value from the type hint (resolve.c). `slot` is the radix; 0: a
         * decimal fraction.
         */
        node->slot = token->kind == TOKEN_OCTAL     ? 8
                     : token->kind == TOKEN_HEX     ? 16
                     : token->kind == TOKEN_INTEGER ? 10
                                                    : 0;
        node->value.kind = VALUE_INT;
        break;
    case TOKEN_STRING:
        node->text = unquote_literal(parser, token->text);
        node->value = node_text(parser->compiler, node->text);
        break;
    default:
        if (!slice_is(token->text, "null"))
            node->value = value_boolean(slice_is(token->text, "true"));
    }
    return node;
}

static struct node *parse_pattern(struct parser *parser)
{
    const struct token *token = painless__peek(parser, 0);
    struct node *node = painless__make(parser, NODE_PATTERN, token->start);
    size_t end = token->text.len - 1;
    while (token->text.data[end] != '/')
        end--;
    node->text = slice_make(token->text.data + 1, end - 1);
    struct slice flags = slice_from_offset(token->text, end + 1);
    node->value = node_text(parser->compiler, flags);
    parser->at++;
    return node;
}

/* Names and what follows them */

static struct node *parse_new(struct parser *parser)
{
    struct node *node = painless__make(parser, NODE_NEW, painless__peek(parser, 0)->start), **end = &node->list;
    parser->at++;
    node->text = painless__take_type(parser, painless__type_tokens(parser, 0));
    if (parser->failed)
        return NULL;
    if (!painless__at(parser, "[")) {
        node->list = parse_arguments(parser);
        return node;
    }
    unsigned dims = 0;
    bool filled = token_is(painless__peek(parser, 1), "]");
    node->kind = filled ? NODE_ARRAY_INIT : NODE_NEW_ARRAY;
    if (filled) {
        parser->at += 2;
        dims = 1;
        painless__expect(parser, "{");
        bool more = !parser->failed && !painless__at(parser, "}");
        while (more) {
            *end = painless__expression(parser);
            if (*end == NULL)
                return painless__give_up(parser);
            end = &(*end)->next;
            more = painless__accept(parser, ",");
        }
        painless__expect(parser, "}");
    } else {
        while (painless__accept(parser, "[")) {
            *end = painless__expression(parser);
            if (*end == NULL || !painless__expect(parser, "]"))
                return NULL;
            end = &(*end)->next;
            dims++;
        }
    }
    node->text = arena_copy(parser->compiler->arena, node->text);
    while (dims-- > 0)
        node->text = arena_append(parser->compiler->arena, node->text, "[]");
    return node;
}

static struct node *parse_name(struct parser *parser)
{
    struct node *node = painless__make(parser, NODE_NAME, painless__peek(parser, 0)->start);
    node->text = painless__peek(parser, 0)->text;
    parser->at++;
    if (painless__at(parser, "(")) {
        node->kind = NODE_CALL_LOCAL;
        node->list = parse_arguments(parser);
    }
    return node;
}

static struct node *parse_primary(struct parser *parser)
{
    struct node *node;
    switch (painless__peek(parser, 0)->kind) {
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
    case TOKEN_STRING: return parse_constant(parser);
    case TOKEN_REGEX: return parse_pattern(parser);
    case TOKEN_ID: return parse_name(parser);
    default: break;
    }
    if (painless__at(parser, "true") || painless__at(parser, "false") || painless__at(parser, "null"))
        return parse_constant(parser);
    if (painless__at(parser, "["))
        return parse_list_or_map(parser);
    if (painless__at(parser, "new"))
        return parse_new(parser);
    if (!painless__accept(parser, "("))
        return painless__give_up(parser);
    node = painless__expression(parser);
    painless__expect(parser, ")");
    return node;
}

static struct node *parse_postfix(struct parser *parser, struct node *prefix)
{
    const struct token *token = painless__peek(parser, 0);
    struct node *node = painless__make(parser, NODE_BRACE, token->start);
    node->a = prefix;
    parser->at++;
    if (token_is(token, "[")) {
        node->b = painless__expression(parser);
        painless__expect(parser, "]");
        return node;
    }
    node->kind = NODE_DOT;
    node->flags = token_is(token, "?.") ? NODE_SAFE : 0;
    if (!painless__kind_at(parser, TOKEN_DOT_ID) && !painless__kind_at(parser, TOKEN_DOT_INTEGER))
        return painless__give_up(parser);
    bool name = painless__kind_at(parser, TOKEN_DOT_ID);
    node->text = painless__peek(parser, 0)->text;
    node->value = node_text(parser->compiler, node->text);
    parser->at++;
    if (name && painless__at(parser, "(")) {
        node->kind = NODE_CALL;
        node->list = parse_arguments(parser);
    }
    return node;
}

struct node *painless__chain(struct parser *parser)
{
    unsigned depth = parser->depth;
    struct node *node = parse_primary(parser);
    bool sized = node != NULL && node->kind == NODE_NEW_ARRAY;
    while (!parser->failed && node != NULL &&
           (painless__at(parser, ".") || painless__at(parser, "?.") || (painless__at(parser, "[") && !sized))) {
        node = painless__enter(parser) ? parse_postfix(parser, node) : NULL;
        sized = false;
    }
    parser->depth = depth;
    return parser->failed ? NULL : node;
}
