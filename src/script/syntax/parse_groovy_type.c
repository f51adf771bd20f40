/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's types, and declarations of variables, parameters and functions. */
#include "script/syntax/parse_groovy.h"

#include <ctype.h>

static bool is_modifier(const struct token *token)
{
    static const char *const modifiers[] = {"final",  "private",      "public",    "protected", "static",
                                            "native", "synchronized", "transient", "volatile",  "abstract"};
    for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++)
        if (token_is(token, modifiers[i]))
            return true;
    return false;
}

/* Returns: the number of tokens of type arguments such as <A, B<C>>; 0 if absent or not closed. */
static size_t argument_tokens(const struct groovy_parser *parser, size_t ahead)
{
    size_t count = 0;
    int depth = 0;
    do {
        const struct token *token = parse__peek(parser, ahead + count);
        if (token_is(token, "<"))
            depth++;
        else if (token_is(token, ">") || token_is(token, ">>") || token_is(token, ">>>"))
            depth -= (int)token->text.len;
        else if (token->kind != TOKEN_ID && token->kind != TOKEN_PRIMITIVE && !token_is(token, ",") &&
                 !token_is(token, ".") && !token_is(token, "?") && !token_is(token, "[") && !token_is(token, "]") &&
                 !token_is(token, "extends") && !token_is(token, "super"))
            return 0;
        count++;
    } while (depth > 0);
    return depth == 0 && count > 1 ? count : 0;
}

static size_t bracket_tokens(const struct groovy_parser *parser, size_t ahead)
{
    size_t count = 0;
    while (token_is(parse__peek(parser, ahead + count), "[") && token_is(parse__peek(parser, ahead + count + 1), "]"))
        count += 2;
    return count;
}

static size_t name_tokens(const struct groovy_parser *parser, size_t ahead)
{
    enum token_kind kind = parse__peek(parser, ahead)->kind;
    if (kind == TOKEN_PRIMITIVE)
        return 1;
    if (kind != TOKEN_ID)
        return 0;
    size_t count = 1;
    while (token_is(parse__peek(parser, ahead + count), ".") &&
           parse__peek(parser, ahead + count + 1)->kind == TOKEN_ID)
        count += 2;
    return count;
}

size_t parse__type_tokens(const struct groovy_parser *parser, size_t ahead)
{
    size_t count = name_tokens(parser, ahead);
    if (count == 0)
        return 0;
    if (token_is(parse__peek(parser, ahead + count), "<"))
        count += argument_tokens(parser, ahead + count);
    return count + bracket_tokens(parser, ahead + count);
}

/*
 * Returns: whether a type may declare without `def`: its last name begins with a capital, or it is
 * a primitive.
 */
static bool type_declares(const struct groovy_parser *parser, size_t ahead)
{
    size_t count = name_tokens(parser, ahead);
    const struct token *last = parse__peek(parser, ahead + count - 1);
    return count > 0 && (last->kind == TOKEN_PRIMITIVE || isupper((unsigned char)last->text.data[0]));
}

bool parse__declaration_ahead(const struct groovy_parser *parser)
{
    size_t ahead = 0;
    bool modified = false;
    for (;;) {
        const struct token *token = parse__peek(parser, ahead);
        if (token->kind != TOKEN_DEF && !is_modifier(token))
            break;
        modified = true;
        ahead++;
    }
    const struct token *first = parse__peek(parser, ahead);
    size_t type = parse__type_tokens(parser, ahead);
    bool typed = type > 0 && type_declares(parser, ahead);
    enum token_kind following = parse__peek(parser, ahead + type)->kind;
    if (typed && (following == TOKEN_ID || following == TOKEN_STRING))
        return true;
    return modified && (first->kind == TOKEN_ID || first->kind == TOKEN_STRING);
}

struct node *parse__type(struct groovy_parser *parser)
{
    size_t count = parse__type_tokens(parser, 0), names = name_tokens(parser, 0);
    if (count == 0)
        return parse__unexpected(parser);
    struct node *type = parse__make(parser, NODE_NAME, parse__peek(parser, 0));
    for (size_t i = 0; i < names; i++)
        type->text = arena_append(parser->compiler->arena, type->text, "%.*s", SLICE_ARG(parse__peek(parser, i)->text));
    parser->at += names;
    if (parse__at(parser, "<"))
        parser->at += argument_tokens(parser, 0);
    for (size_t i = bracket_tokens(parser, 0); i > 0; i -= 2, parser->at += 2)
        type->text = arena_append(parser->compiler->arena, type->text, "[]");
    return type;
}

struct node *parse__declared_type(struct groovy_parser *parser)
{
    while (parse__peek(parser, 0)->kind == TOKEN_DEF || is_modifier(parse__peek(parser, 0))) {
        parser->at++;
        parse__newlines(parser);
    }
    enum token_kind following = parse__peek(parser, parse__type_tokens(parser, 0))->kind;
    bool typed = parse__type_tokens(parser, 0) > 0 && (following == TOKEN_ID || following == TOKEN_STRING);
    return typed || parse__peek(parser, 0)->kind == TOKEN_PRIMITIVE ? parse__type(parser) : NULL;
}

/* Scans names and types from a brace up to an arrow; skips nested blocks and brackets. */
bool parse__parameters_ahead(const struct groovy_parser *parser, size_t ahead)
{
    if (parse__peek(parser, ahead)->kind == TOKEN_NEWLINE)
        ahead++;
    for (unsigned depth = 0;; ahead++) {
        const struct token *token = parse__peek(parser, ahead);
        bool opens = token_is(token, "(") || token_is(token, "[") || token_is(token, "{");
        bool closes = token_is(token, ")") || token_is(token, "]") || token_is(token, "}");
        if (token->kind == TOKEN_EOF || token->kind == TOKEN_ERROR || (closes && depth == 0))
            return false;
        if (depth == 0 && token_is(token, "->"))
            return true;
        if (depth == 0 &&
            (token_is(token, ";") || (token->kind == TOKEN_NEWLINE && !token_is(parse__peek(parser, ahead + 1), "->") &&
                                      !token_is(parse__peek(parser, ahead - 1), ","))))
            return false;
        depth += opens;
        depth -= closes;
    }
}

/* Makes the type of a variable-length parameter: `Object... rest`. */
static struct node *rest_type(struct groovy_parser *parser, struct node *type)
{
    struct node *rest = parse__make(parser, NODE_NAME, parse__peek(parser, 0));
    rest->text =
        arena_printf(parser->compiler->arena, "%.*s[]", SLICE_ARG(type == NULL ? SLICE_LIT("Object") : type->text));
    return rest;
}

static bool rest_ahead(const struct groovy_parser *parser)
{
    size_t type = parse__type_tokens(parser, 0);
    return type > 0 && token_is(parse__peek(parser, type), "...");
}

static void add_parameter(struct groovy_parser *parser, struct function *function, struct parameter parameter)
{
    unsigned count = function->parameter_count;
    if ((count & (count - 1)) == 0) {
        struct parameter *more = arena_alloc(parser->compiler->arena, (count == 0 ? 1 : count * 2) * sizeof *more);
        if (count > 0)
            memcpy(more, function->parameters, count * sizeof *more);
        function->parameters = more;
    }
    function->parameters[function->parameter_count++] = parameter;
}

void parse__parameters(struct groovy_parser *parser, struct function *function, const char *end)
{
    while (!parser->failed && !parse__at(parser, end)) {
        struct parameter parameter = {.type = TYPE_NONE};
        struct node *type = rest_ahead(parser) ? parse__type(parser) : parse__declared_type(parser);
        if (parse__accept(parser, "..."))
            type = rest_type(parser, type);
        struct node *both = parse__make(parser, NODE_DECLARE, parse__peek(parser, 0));
        if (!parse__expect_name(parser, &parameter.name))
            return;
        if (parse__accept(parser, "=")) {
            parse__newlines(parser);
            parameter.initial = parse__command(parser);
        }
        /* Until it is resolved, the type is stored with the default. */
        both->a = parameter.initial;
        both->c = type;
        parameter.initial = both;
        add_parameter(parser, function, parameter);
        if (!parse__accept(parser, ","))
            break;
        parse__newlines(parser);
    }
}

struct function *parse__function(struct groovy_parser *parser, struct slice name, struct node *result)
{
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    function->name = name;
    function->offset = parse__peek(parser, 0)->start;
    function->result = TYPE_NONE;
    if (!parse__expect(parser, "("))
        return NULL;
    parse__parameters(parser, function, ")");
    if (!parse__expect(parser, ")"))
        return NULL;
    parse__newlines(parser);
    function->body = parse__block(parser);
    if (function->body == NULL)
        return NULL;
    parse__return_last(parser, function->body);
    function->body->c = result; /* until resolved */
    return function;
}
