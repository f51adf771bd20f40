/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's grammar: sequences of statements, conditions, loops, try. See parse_groovy.h. */
#include "script/syntax/parse_groovy_flow.h"

static struct node *parse_statement(struct groovy_parser *parser, bool after_newline);

bool flow__ended(const struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    return token->kind == TOKEN_EOF || token->kind == TOKEN_NEWLINE || token_is(token, ";") || token_is(token, "}") ||
           token_is(token, "else") || token_is(token, "case") || token_is(token, "default") || token_is(token, ")") ||
           token_is(token, "]") || token_is(token, ",");
}

/* Parses the body of an `if` or a loop. */
static struct node *parse_body(struct groovy_parser *parser)
{
    unsigned depth = parser->depth;
    if (!parse__enter(parser))
        return NULL;
    struct node *body = parse__at(parser, "{") ? parse__block(parser) : parse_statement(parser, false);
    parser->depth = depth;
    if (body == NULL || body->kind == NODE_BLOCK)
        return body;
    struct node *block = node_new(parser->compiler, NODE_BLOCK, body->offset);
    block->list = body;
    return block;
}

static struct node *parse_condition(struct groovy_parser *parser, struct node *(*what)(struct groovy_parser *))
{
    if (!parse__expect(parser, "("))
        return NULL;
    struct node *node = what(parser);
    if (!parse__expect(parser, ")"))
        return NULL;
    parse__newlines(parser);
    return node;
}

/*
 * Returns: tokens up to an `else` of this statement: 1 if it is next; 0 if there is no such `else`.
 */
static size_t else_ahead(const struct groovy_parser *parser)
{
    if (parse__at(parser, "else"))
        return parse__peek(parser, 1)->kind == TOKEN_EOF ? 0 : 1;
    const struct token *token = parse__peek(parser, 0);
    size_t ahead = 0;
    if (!token_is(token, ";") && token->kind != TOKEN_NEWLINE)
        return 0;
    while (token_is(parse__peek(parser, ahead), ";") || parse__peek(parser, ahead)->kind == TOKEN_NEWLINE)
        ahead++;
    return token_is(parse__peek(parser, ahead), "else") ? ahead + 1 : 0;
}

static struct node *parse_if(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_IF, token);
    node->a = parse_condition(parser, parse__conditional);
    if (!parser->failed)
        node->b = parse_body(parser);
    if (parser->failed)
        return NULL;
    size_t otherwise = else_ahead(parser);
    if (otherwise > 0) {
        parser->at += otherwise;
        parse__newlines(parser);
        node->c = parse_body(parser);
    } else if (!flow__ended(parser)) {
        return parse__unexpected(parser);
    }
    return node;
}

static struct node *parse_loop_body(struct groovy_parser *parser)
{
    return parser->failed || parse__accept(parser, ";") ? NULL : parse_body(parser);
}

static struct node *parse_while(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_WHILE, token);
    node->a = parse_condition(parser, parse__strict);
    node->b = parse_loop_body(parser);
    return parser->failed ? NULL : node;
}

/* Returns: whether the head of a loop has three parts: its first part ends in a semicolon. */
static bool three_parts(const struct groovy_parser *parser)
{
    for (size_t ahead = 0, depth = 0;; ahead++) {
        const struct token *token = parse__peek(parser, ahead);
        if (token->kind == TOKEN_EOF || token->kind == TOKEN_ERROR)
            return false;
        if (depth == 0 &&
            (token_is(token, ";") || token_is(token, ")") || token_is(token, ",") || token_is(token, "in")))
            return token_is(token, ";");
        depth += token_is(token, "(") || token_is(token, "[") || token_is(token, "{");
        depth -= token_is(token, ")") || token_is(token, "]") || token_is(token, "}");
    }
}

static struct node *parse_three(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_FOR, token);
    if (parse__peek(parser, 1)->kind == TOKEN_EOF)
        return parse__unexpected(parser);
    if (!parse__at(parser, ";"))
        node->list = parse__strict(parser);
    if (parse__expect(parser, ";") && !parse__at(parser, ";"))
        node->a = parse__strict(parser);
    if (parse__expect(parser, ";") && !parse__at(parser, ")"))
        node->c = parse__strict(parser);
    return parser->failed ? NULL : node;
}

static struct node *parse_each(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_EACH, token);
    if (parse__peek(parser, 1)->kind == TOKEN_EOF)
        return parse__unexpected(parser);
    bool declared = parse__declaration_ahead(parser);
    node->c = declared ? parse__declared_type(parser) : NULL;
    if (!parser->failed && parse__peek(parser, 0)->kind != TOKEN_ID)
        return parse__unexpected(parser);
    if (!parse__expect_name(parser, &node->text))
        return NULL;
    if (parse__accept(parser, "in")) {
        node->a = parse__shift(parser);
    } else if (parse__at(parser, ":")) {
        if (!declared)
            return parse__refuse(
                parser, parse__peek(parser, 0),
                "Java-style for-each statement requires a type declaration.;\n   solution: Use the 'in' "
                "keyword, as for (x in y) {...}");
        parser->at++;
        node->a = parse__expression(parser);
    } else {
        return parse__unexpected(parser);
    }
    return parser->failed ? NULL : node;
}

static struct node *parse_for(struct groovy_parser *parser, const struct token *token)
{
    if (!parse__expect(parser, "("))
        return NULL;
    struct node *node = three_parts(parser) ? parse_three(parser, token) : parse_each(parser, token);
    if (node == NULL || !parse__expect(parser, ")"))
        return NULL;
    parse__newlines(parser);
    node->b = parse_loop_body(parser);
    return parser->failed ? NULL : node;
}

static struct node *parse_case(struct groovy_parser *parser)
{
    struct node *node = parse__make(parser, NODE_CASE, parse__peek(parser, 0));
    if (parse__accept(parser, "case"))
        node->a = parse__expression(parser);
    else if (!parse__accept(parser, "default"))
        return parse__unexpected(parser);
    if (!parse__expect(parser, ":"))
        return NULL;
    parse__newlines(parser);
    if (parse__at(parser, "case") || parse__at(parser, "default"))
        return node;
    node->b = node_new(parser->compiler, NODE_BLOCK, parse__peek(parser, 0)->start);
    flow__statements(parser, &node->b->list, "}");
    return parser->failed ? NULL : node;
}

/* Groovy moves the default after all cases; labels that share its body stay in place. */
static void default_last(struct node *node)
{
    struct node **link = &node->list, *fallback = NULL, *label = NULL;
    for (; *link != NULL; link = &(*link)->next) {
        fallback = (*link)->a == NULL ? *link : NULL;
        if (fallback != NULL)
            break;
        label = (*link)->b != NULL ? NULL : label == NULL ? *link : label;
    }
    if (fallback == NULL || fallback->next == NULL)
        return;
    for (; label != NULL && label != fallback; label = label->next)
        label->b = fallback->b;
    *link = fallback->next;
    fallback->next = NULL;
    while (*link != NULL)
        link = &(*link)->next;
    *link = fallback;
}

static struct node *parse_switch(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_SWITCH, token), **end = &node->list;
    node->a = parse_condition(parser, parse__strict);
    if (!parse__expect(parser, "{"))
        return NULL;
    parse__newlines(parser);
    while (!parser->failed && (parse__at(parser, "case") || parse__at(parser, "default"))) {
        *end = parse_case(parser);
        if (*end == NULL)
            return NULL;
        end = &(*end)->next;
    }
    default_last(node);
    return parse__expect(parser, "}") ? node : NULL;
}

/* Parses catch (e), catch (A e), catch (A | B e); the last form yields one node per class. */
static struct node *parse_catch(struct groovy_parser *parser)
{
    struct node *first = NULL, **end = &first;
    struct slice name;
    parser->at++;
    if (!parse__expect(parser, "("))
        return NULL;
    while (parse__peek(parser, 0)->kind == TOKEN_DEF || parse__at(parser, "final"))
        parser->at++;
    do {
        *end = parse__make(parser, NODE_CATCH, parse__peek(parser, 0));
        bool bare = parse__peek(parser, 0)->kind == TOKEN_ID && token_is(parse__peek(parser, 1), ")");
        (*end)->c = bare ? NULL : parse__type(parser);
        end = &(*end)->next;
    } while (parse__accept(parser, "|"));
    if (!parse__expect_name(parser, &name) || !parse__expect(parser, ")"))
        return NULL;
    parse__newlines(parser);
    first->b = parse__block(parser);
    for (struct node *one = first; one != NULL; one = one->next) {
        one->text = name;
        one->b = first->b;
    }
    return parser->failed ? NULL : first;
}

static bool clause_ahead(const struct groovy_parser *parser, const char *word)
{
    bool line = parse__peek(parser, 0)->kind == TOKEN_NEWLINE;
    return token_is(parse__peek(parser, line), word);
}

static struct node *parse_try(struct groovy_parser *parser, const struct token *token)
{
    struct node *node = parse__make(parser, NODE_TRY, token), **end = &node->list;
    parse__newlines(parser);
    node->b = parse__block(parser);
    while (!parser->failed && clause_ahead(parser, "catch")) {
        parse__newlines(parser);
        *end = parse_catch(parser);
        while (*end != NULL)
            end = &(*end)->next;
    }
    if (!parser->failed && clause_ahead(parser, "finally")) {
        parse__newlines(parser);
        parser->at++;
        parse__newlines(parser);
        node->c = parse__block(parser);
    }
    if (!parser->failed && node->list == NULL && node->c == NULL)
        return parse__refuse_placed(parser, token,
                                    SLICE_LIT("A try statement must have at least one catch or finally block."));
    return parser->failed ? NULL : node;
}

/* Parses import a.b.C, import a.b.C as D, import a.b.*; the last form declares no name. */
static struct node *parse_import(struct groovy_parser *parser, const struct token *token)
{
    struct node *import = parse__make(parser, NODE_NAME, token);
    struct slice name = SLICE_NONE, full = SLICE_NONE;
    parse__accept(parser, "static");
    do {
        if (parse__accept(parser, "*")) {
            name = SLICE_NONE;
            break;
        }
        if (!parse__expect_name(parser, &name))
            return NULL;
        full =
            full.len == 0 ? name : arena_printf(parser->compiler->arena, "%.*s.%.*s", SLICE_ARG(full), SLICE_ARG(name));
    } while (parse__accept(parser, "."));
    if (parse__accept(parser, "as"))
        parse__expect_name(parser, &name);
    import->text = name;
    import->value = node_text(parser->compiler, full);
    import->next = parser->compiler->imports;
    parser->compiler->imports = import;
    return parser->failed ? NULL : parse__make(parser, NODE_EMPTY, token);
}

static struct node *parse_labelled(struct groovy_parser *parser)
{
    struct slice label = parse__peek(parser, 0)->text;
    parser->at += 2;
    parse__newlines(parser);
    struct node *node = parse__at(parser, "{") && !parse__parameters_ahead(parser, 1) ? parse__block(parser)
                                                                                      : parse_statement(parser, false);
    bool loop = node != NULL && (node->kind == NODE_FOR || node->kind == NODE_WHILE || node->kind == NODE_EACH);
    if (loop)
        node->value = node_text(parser->compiler, label);
    return node;
}

static struct node *parse_compound(struct groovy_parser *parser)
{
    const struct token *token = parse__peek(parser, 0);
    if (token->kind == TOKEN_ID && token_is(parse__peek(parser, 1), ":"))
        return parse_labelled(parser);
    if (parse__accept(parser, "if"))
        return parse_if(parser, token);
    if (parse__accept(parser, "for"))
        return parse_for(parser, token);
    if (parse__accept(parser, "while"))
        return parse_while(parser, token);
    if (parse__accept(parser, "switch"))
        return parse_switch(parser, token);
    if (parse__accept(parser, "try"))
        return parse_try(parser, token);
    if (parse__accept(parser, "import"))
        return parse_import(parser, token);
    if (parse__accept(parser, "package"))
        return parse__type(parser) == NULL ? NULL : parse__make(parser, NODE_EMPTY, token);
    if (parse__at(parser, "class") || parse__at(parser, "interface") || parse__at(parser, "enum") ||
        parse__at(parser, "trait"))
        return parse__refuse(parser, token, "classes are not supported in scripts");
    return NULL;
}

static struct node *parse_statement(struct groovy_parser *parser, bool after_newline)
{
    unsigned depth = parser->depth;
    if (!parse__enter(parser))
        return NULL;
    struct node *node = parse_compound(parser);
    if (node == NULL && !parser->failed)
        node = flow__simple(parser, after_newline);
    parser->depth = depth;
    return parser->failed ? NULL : node;
}

static bool at_separator(const struct groovy_parser *parser)
{
    return parse__at(parser, ";") || parse__peek(parser, 0)->kind == TOKEN_NEWLINE;
}

void flow__statements(struct groovy_parser *parser, struct node **end, const char *close)
{
    bool first = true;
    while (!parser->failed) {
        bool after_newline = false;
        if (!first && !at_separator(parser))
            return;
        for (; at_separator(parser); parser->at++)
            after_newline = parse__peek(parser, 0)->kind == TOKEN_NEWLINE;
        first = false;
        const struct token *token = parse__peek(parser, 0);
        bool done =
            token->kind == TOKEN_EOF ||
            (close != NULL && (token_is(token, close) || token_is(token, "case") || token_is(token, "default")));
        if (done)
            return;
        *end = parse_statement(parser, after_newline);
        while (*end != NULL)
            end = &(*end)->next;
    }
}
