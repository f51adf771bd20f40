/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's path expressions: names, literals, and chained members, calls and elements. See
 * parse_groovy.h.
 */
#include "script/syntax/parse_groovy.h"

/* Literals */

/* Parses an interpolated value: a name with dots, or a block. */
static struct node *parse_part(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    if (parse__at(parser, "{")) {
        struct node *closure = parse__closure(parser);
        struct node *only = closure == NULL ? NULL : closure->function->body->list;
        if (closure == NULL)
            return NULL;
        if (only == NULL)
            return parse__make(parser, NODE_CONST, token);
        if (only->next == NULL && only->kind == NODE_RETURN && only->a != NULL && closure->function->implicit_it)
            return only->a;
        struct node *call = parse__make(parser, NODE_CALL_LOCAL, token);
        call->text = SLICE_LIT("call");
        call->a = closure;
        return call;
    }
    struct node *node = parse__make(parser, parse__accept(parser, "this") ? NODE_THIS : NODE_NAME, token);
    if (node->kind == NODE_NAME && !parse__expect_name(parser, &node->text))
        return NULL;
    while (parse__accept(parser, ".")) {
        struct node *dot = node_new(parser->compiler, NODE_DOT, node->offset);
        dot->error_offset = parse__peek(parser, 0)->start;
        dot->a = node;
        dot->text = parse__peek(parser, 0)->text;
        dot->value = node_text(parser->compiler, dot->text);
        parser->at++;
        node = dot;
    }
    return node;
}

static struct node *parse_gstring(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *node = parse__make(parser, NODE_GSTRING, token), **end = &node->list;
    while (!parser->failed) {
        token = parse__peek(parser, 0);
        parser->at++;
        if (token->text.len > 0) {
            *end = parse__text(parser, token, token->text);
            end = &(*end)->next;
        }
        if (token->kind == TOKEN_GSTRING_END)
            return node;
        *end = parse_part(parser);
        if (*end == NULL)
            return NULL;
        end = &(*end)->next;
        if (parse__peek(parser, 0)->kind != TOKEN_GSTRING_MIDDLE && parse__peek(parser, 0)->kind != TOKEN_GSTRING_END)
            return parse__unexpected(parser);
    }
    return NULL;
}

struct node *parse__closure(struct groovy_parser *parser)
{
    const struct token *open = parse__peek(parser, 0);
    struct node *node = parse__make(parser, NODE_LAMBDA, open);
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    unsigned depth = parser->depth;
    node->function = function;
    function->lambda = true;
    function->result = TYPE_NONE;
    function->offset = open->start;
    if (!parse__expect(parser, "{") || !parse__enter(parser))
        return NULL;
    function->implicit_it = !parse__parameters_ahead(parser, 0);
    if (!function->implicit_it) {
        parse__newlines(parser);
        parse__parameters(parser, function, "->");
        parse__newlines(parser);
        parse__expect(parser, "->");
    }
    function->body = parser->failed ? NULL : parse__block_body(parser, open);
    if (function->body == NULL)
        return NULL;
    parse__return_last(parser, function->body);
    parser->depth = depth;
    return node;
}

/* Arguments, elements, keys and values */

static bool label_ahead(const struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    bool simple = token->kind == TOKEN_ID || token->kind == TOKEN_KEYWORD || token->kind == TOKEN_DEF ||
                  token->kind == TOKEN_PRIMITIVE || (token->kind >= TOKEN_OCTAL && token->kind <= TOKEN_STRING);
    if (simple)
        return token_is(parse__peek(parser, 1), ":");
    if (!token_is(token, "(") && token->kind != TOKEN_GSTRING_BEGIN)
        return false;
    size_t ahead = 0;
    for (unsigned depth = 0;; ahead++) {
        token = parse__peek(parser, ahead);
        depth +=
            token_is(token, "(") || token_is(token, "[") || token_is(token, "{") || token->kind == TOKEN_GSTRING_BEGIN;
        depth -=
            token_is(token, ")") || token_is(token, "]") || token_is(token, "}") || token->kind == TOKEN_GSTRING_END;
        if (depth == 0 || token->kind == TOKEN_EOF || token->kind == TOKEN_ERROR)
            break;
    }
    return token_is(parse__peek(parser, ahead + 1), ":");
}

static struct node *parse_primary(struct groovy_parser *parser);

/* Parses a key of a map literal: a name is a text; in parentheses it is an expression. */
static struct node *parse_label(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    bool word = token->kind == TOKEN_ID || token->kind == TOKEN_KEYWORD || token->kind == TOKEN_DEF ||
                token->kind == TOKEN_PRIMITIVE;
    if (!word)
        return parse_primary(parser);
    parser->at++;
    return parse__text(parser, token, token->text);
}

/* Parses one argument: a label makes a NODE_NAMED_ARGUMENT, a star a NODE_SPREAD_ARGUMENT. */
static struct node *parse_argument(struct groovy_parser *parser, bool *ret_labels)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *node = NULL;
    if (label_ahead(parser)) {
        node = parse__make(parser, NODE_NAMED_ARGUMENT, token);
        node->b = parse_label(parser);
        parse__expect(parser, ":");
        parse__newlines(parser);
        *ret_labels = true;
    } else if (parse__accept(parser, "*")) {
        node = parse__make(parser, NODE_SPREAD_ARGUMENT, token);
        if (parse__accept(parser, ":")) {
            *ret_labels = true;
            node->flags |= NODE_SPREAD;
        }
    }
    struct node *value = parse__strict(parser);
    if (value != NULL && parse__at(parser, ":"))
        return parse__refuse(
            parser, parse__peek(parser, 0),
            "illegal colon after argument expression;\n   solution: a complex label expression before a colon "
            "must be parenthesized");
    if (node == NULL || value == NULL)
        return value;
    node->a = value;
    return node;
}

struct node *parse__arguments(struct groovy_parser *parser, const char *end, bool *ret_labels)
{
    struct node *first = NULL, **last = &first;
    bool gap = false; /* one superfluous comma is allowed */
    *ret_labels = false;
    if (!parse__at(parser, end) && parse__peek(parser, 1)->kind == TOKEN_EOF)
        return parse__unexpected(parser);
    while (!parser->failed && !parse__at(parser, end)) {
        if (first != NULL && !gap && parse__accept(parser, ",")) {
            gap = true;
            continue;
        }
        *last = parse_argument(parser, ret_labels);
        if (*last == NULL)
            return NULL;
        last = &(*last)->next;
        if (!parse__at(parser, ",") && !parse__at(parser, end))
            return parse__unexpected(parser);
        parse__accept(parser, ",");
    }
    parse__expect(parser, end);
    return first;
}

/* Parses keys and values, alternating; a spread map is the value of a NODE_SPREAD_ARGUMENT key. */
static void make_map(struct node *node)
{
    struct node *arguments = node->list, **end = &node->list;
    node->kind = NODE_MAP;
    while (arguments != NULL) {
        struct node *one = arguments, *key = one->kind == NODE_NAMED_ARGUMENT ? one->b : one;
        arguments = one->next;
        *end = key;
        key->next = one->a;
        end = &one->a->next;
    }
    *end = NULL;
}

/* Fails at a value without a key in a map. */
static struct node *refuse_element(struct groovy_parser *parser, const struct node *element)
{
    const struct token *token = parser->compiler->tokens;
    while (token->start < element->offset)
        token++;
    return parse__refuse_placed(parser, token,
                                SLICE_LIT("Unexpected node type: EXPR found when expecting type: LABELED_ARG"));
}

static struct node *parse_collection(struct groovy_parser *parser)
{
    struct node *node = parse__make(parser, NODE_LIST, parse__peek(parser, 0));
    bool labels;
    if (parse__peek(parser, 1)->kind == TOKEN_EOF || token_is(parse__peek(parser, 1), ","))
        return parse__unexpected(parser);
    parser->at++;
    if (parse__at(parser, ":") && token_is(parse__peek(parser, 1), "]")) {
        parser->at += 2;
        node->kind = NODE_MAP;
        return node;
    }
    node->list = parse__arguments(parser, "]", &labels);
    if (parser->failed)
        return NULL;
    for (struct node *one = node->list; labels && one != NULL; one = one->next)
        if (one->kind != NODE_NAMED_ARGUMENT && (one->flags & NODE_SPREAD) == 0)
            return refuse_element(parser, one);
    if (labels)
        make_map(node);
    return node;
}

/* new T(…), new T[n] */
static struct node *parse_new(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *node = parse__make(parser, NODE_NEW, token);
    bool labels;
    parser->at++;
    parse__newlines(parser);
    node->c = parse__type(parser);
    if (node->c == NULL)
        return NULL;
    parse__newlines(parser);
    if (parse__accept(parser, "(")) {
        node->list = parse__arguments(parser, ")", &labels);
        return parser->failed ? NULL : node;
    }
    if (!parse__at(parser, "["))
        return parse__unexpected(parser);
    node->kind = NODE_NEW_ARRAY;
    size_t dims = 0;
    for (struct node **end = &node->list; parse__accept(parser, "["); end = &(*end)->next, dims++) {
        *end = parse__expression(parser);
        if (*end == NULL || !parse__expect(parser, "]"))
            return NULL;
    }
    node->c->text = arena_copy(parser->compiler->arena, node->c->text);
    for (; dims > 0; dims--)
        node->c->text = arena_append(parser->compiler->arena, node->c->text, "[]");
    return node;
}

static struct node *parse_parentheses(struct groovy_parser *parser)
{
    parser->at++;
    struct node *node = parse__strict(parser);
    if (node == NULL || !parse__expect(parser, ")"))
        return NULL;
    node->flags |= NODE_PARENTHESES;
    return node;
}

static struct node *parse_word(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_CONST, token);
    node->text = token->text;
    if (parse__accept(parser, "true") || parse__accept(parser, "false"))
        node->value = value_boolean(slice_is(token->text, "true"));
    else if (parse__accept(parser, "this"))
        node->kind = NODE_THIS;
    else if (!parse__accept(parser, "null"))
        return parse__unexpected(parser);
    return node;
}

static struct node *parse_primary(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    struct node *node;
    switch (token->kind) {
    case TOKEN_ID:
    case TOKEN_PRIMITIVE:
        node = parse__make(parser, NODE_NAME, token);
        node->text = token->text;
        parser->at++;
        return node;
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
    case TOKEN_HEX:
    case TOKEN_OCTAL: parser->at++; return parse__number(parser, token, false);
    case TOKEN_STRING: parser->at++; return parse__text(parser, token, token->text);
    case TOKEN_GSTRING_BEGIN: return parse_gstring(parser);
    default: break;
    }
    if (parse__at(parser, "("))
        return parse_parentheses(parser);
    if (parse__at(parser, "["))
        return parse_collection(parser);
    if (parse__at(parser, "{"))
        return parse__closure(parser);
    return parse__at(parser, "new") ? parse_new(parser) : parse_word(parser, token);
}

/* Chained links */

static struct node *chained_link(struct groovy_parser *parser, enum node_kind kind, struct node *left, int32_t fault)
{
    struct node *node = node_new(parser->compiler, kind, left->offset);
    node->error_offset = fault;
    node->a = left;
    return node;
}

/* Parses the name after a dot: a name, a keyword, a text, or a computed name. */
static struct node *parse_member(struct groovy_parser *parser, struct node *left, const struct token *dot)
{
    size_t before = parser->at - 1;
    parse__newlines(parser);
    parse__accept(parser, "@");
    const struct token *token = parse__peek(parser, 0);
    struct node *node = chained_link(parser, NODE_DOT, left, token->start);
    bool word = token->kind == TOKEN_ID || token->kind == TOKEN_KEYWORD || token->kind == TOKEN_DEF ||
                token->kind == TOKEN_PRIMITIVE || token->kind == TOKEN_STRING || dot->kind != TOKEN_SYMBOL;
    node->flags = token_is(dot, "?.") ? NODE_SAFE : token_is(dot, "*.") ? NODE_SPREAD : 0;
    if (word) {
        node->text = token->text;
        node->value = node_text(parser->compiler, token->text);
        parser->at++;
    } else if (token->kind == TOKEN_GSTRING_BEGIN || parse__at(parser, "(")) {
        node->b = parse_primary(parser);
    } else {
        parser->at = before;
        return parse__unexpected(parser);
    }
    if (token_is(dot, ".&"))
        node->kind = NODE_REFERENCE;
    return parser->failed ? NULL : node;
}

/* Makes a call of a member or a name; for any other callee a call of its method `call`. */
static struct node *make_call(struct groovy_parser *parser, struct node *callee)
{
    bool member = callee->kind == NODE_DOT && (callee->flags & NODE_PARENTHESES) == 0;
    if (member) {
        callee->kind = NODE_CALL;
        return callee;
    }
    struct node *node = node_new(parser->compiler, NODE_CALL_LOCAL, callee->offset);
    node->error_offset = callee->error_offset;
    bool name = callee->kind == NODE_NAME && (callee->flags & NODE_PARENTHESES) == 0;
    node->text = name ? callee->text : SLICE_LIT("call");
    node->value = node_text(parser->compiler, node->text);
    node->a = name ? NULL : callee;
    return node;
}

static void append_argument(struct node *call, struct node *argument)
{
    struct node **end = &call->list;
    while (*end != NULL)
        end = &(*end)->next;
    *end = argument;
}

static bool is_call(const struct node *node)
{
    return (node->kind == NODE_CALL || node->kind == NODE_CALL_LOCAL) && (node->flags & NODE_PARENTHESES) == 0;
}

static struct node *parse_index(struct groovy_parser *parser, struct node *left, const struct token *open)
{
    struct node *node = chained_link(parser, NODE_BRACE, left, open->start);
    bool labels;
    parser->at++;
    struct node *list = parse__arguments(parser, "]", &labels);
    if (parser->failed)
        return NULL;
    node->b = list;
    if (list != NULL && list->next == NULL && list->kind != NODE_SPREAD_ARGUMENT && !labels)
        return node;
    node->b = parse__make(parser, NODE_LIST, open);
    node->b->list = list;
    return list == NULL || labels ? parse__refuse(parser, open, "an index is expected") : node;
}

static bool dot_ahead(const struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, parse__peek(parser, 0)->kind == TOKEN_NEWLINE);
    return token_is(token, ".") || token_is(token, "?.") || token_is(token, "*.") || token_is(token, ".&");
}

static bool link_ahead(const struct groovy_parser *parser)
{
    return dot_ahead(parser) || parse__at(parser, "(") || parse__at(parser, "{") || parse__at(parser, "[");
}

static struct node *parse_link(struct groovy_parser *parser, struct node *node)
{
    const struct token *token = parse__peek(parser, 0);
    bool labels;
    if (dot_ahead(parser)) {
        parse__newlines(parser);
        token = parse__peek(parser, 0);
        parser->at++;
        return parse_member(parser, node, token);
    }
    if (parse__at(parser, "[")) {
        return parse_index(parser, node, token);
    }
    bool block = parse__at(parser, "{");
    if (!block || !is_call(node))
        node = make_call(parser, node);
    if (block) {
        append_argument(node, parse__closure(parser));
        return node;
    }
    parser->at++;
    append_argument(node, parse__arguments(parser, ")", &labels));
    return node;
}

/* Links nest in the tree, though not in the source. `alone`: a block may begin on the next line. */
static struct node *parse_chain(struct groovy_parser *parser, struct node *node, bool alone)
{
    while (node != NULL && !parser->failed) {
        bool line = alone && parse__peek(parser, 0)->kind == TOKEN_NEWLINE && token_is(parse__peek(parser, 1), "{");
        parser->at += line;
        if (!link_ahead(parser))
            break;
        node = parse__enter(parser) ? parse_link(parser, node) : NULL;
    }
    return parser->failed ? NULL : node;
}

struct node *parse__path(struct groovy_parser *parser)
{
    unsigned depth = parser->depth;
    bool alone = parser->at == parser->statement;
    struct node *node = parser->failed ? NULL : parse_primary(parser);
    node = node == NULL ? NULL : parse_chain(parser, node, alone);
    parser->depth = depth;
    parser->last_path = node;
    return node;
}

/* Commands: foo x, y */

static bool argument_ahead(const struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    bool never = token_is(token, "+") || token_is(token, "-") || token_is(token, "++") || token_is(token, "--") ||
                 token_is(token, "(") || token_is(token, "[") || token_is(token, "{");
    return !never && (parse__expression_ahead(parser) || label_ahead(parser));
}

static struct node *take_arguments(struct groovy_parser *parser, struct node *head)
{
    struct node *call = make_call(parser, head);
    bool labels = false;
    call->flags |= NODE_COMMAND;
    do {
        parse__newlines(parser);
        struct node *argument = label_ahead(parser) ? parse_argument(parser, &labels) : parse__expression(parser);
        if (argument == NULL)
            return NULL;
        append_argument(call, argument);
    } while (parse__accept(parser, ","));
    return call;
}

/*
 * Returns: whether the next token may name a further call of a command chain; an invalid name fails
 * at run time.
 */
static bool word_ahead(const struct groovy_parser *parser)
{
    enum token_kind kind = parse__peek(parser, 0)->kind;
    return kind == TOKEN_ID || (kind >= TOKEN_OCTAL && kind <= TOKEN_STRING);
}

struct node *parse__command_arguments(struct groovy_parser *parser, struct node *head)
{
    unsigned depth = parser->depth;
    if (!is_call(head) && argument_ahead(parser))
        head = take_arguments(parser, head);
    /* a b c d: a(b).c(d) */
    while (head != NULL && !parser->failed && is_call(head) && word_ahead(parser)) {
        if (!parse__enter(parser))
            return NULL;
        head = parse_member(parser, head, parse__peek(parser, 0));
        if (head != NULL && (parse__at(parser, "(") || parse__at(parser, "{") || parse__at(parser, "[")))
            head = parse_chain(parser, head, false);
        else if (head != NULL && argument_ahead(parser))
            head = take_arguments(parser, head);
    }
    parser->depth = depth;
    return parser->failed ? NULL : head;
}
