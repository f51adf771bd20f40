/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's grammar, by recursive descent.
 *
 * A text that does not parse only sets `failed`; explain_painless finds the words for it. Offsets are those of the
 * first token of a construct, of the dot or bracket for what follows one: there the original points, too.
 */
#include "script/compile.h"

struct parser {
    struct compiler *compiler;
    size_t at;
    unsigned depth;
    bool failed;
};

static struct node *parse_expression(struct parser *parser);
static struct node *parse_unary(struct parser *parser);
static struct node *parse_block(struct parser *parser);
static struct node *parse_statement(struct parser *parser, bool in_block);

static const struct token *peek(const struct parser *parser, size_t ahead)
{
    size_t last = parser->compiler->token_count - 1;
    return &parser->compiler->tokens[parser->at + ahead < last ? parser->at + ahead : last];
}

static bool at(const struct parser *parser, const char *symbol)
{
    return token_is(peek(parser, 0), symbol);
}

static bool kind_at(const struct parser *parser, enum token_kind kind)
{
    return peek(parser, 0)->kind == kind;
}

static void *give_up(struct parser *parser)
{
    parser->failed = true;
    return NULL;
}

static bool accept(struct parser *parser, const char *symbol)
{
    if (parser->failed || !at(parser, symbol))
        return false;
    parser->at++;
    return true;
}

static bool expect(struct parser *parser, const char *symbol)
{
    if (!accept(parser, symbol))
        parser->failed = true;
    return !parser->failed;
}

static bool expect_kind(struct parser *parser, enum token_kind kind, struct slice *ret_text)
{
    if (parser->failed || !kind_at(parser, kind))
        return give_up(parser) != NULL;
    *ret_text = peek(parser, 0)->text;
    parser->at++;
    return true;
}

static struct node *make(struct parser *parser, enum node_kind kind, int32_t offset)
{
    return node_new(parser->compiler, kind, offset);
}

static bool enter(struct parser *parser)
{
    if (++parser->depth <= COMPILE_NESTING_MAX)
        return true;
    compile_fail(parser->compiler, CLASS_STACK_OVERFLOW_ERROR, -1, "nested deeper than %u", COMPILE_NESTING_MAX);
    return give_up(parser) != NULL;
}

/* Types */

/* Tokens of a type at `ahead`, without brackets; 0 where there is none. */
static size_t type_tokens(const struct parser *parser, size_t ahead)
{
    enum token_kind kind = peek(parser, ahead)->kind;
    if (kind == TOKEN_DEF || kind == TOKEN_PRIMITIVE)
        return 1;
    if (kind != TOKEN_ID)
        return 0;
    size_t count = 1;
    while (token_is(peek(parser, ahead + count), ".") && peek(parser, ahead + count + 1)->kind == TOKEN_DOT_ID)
        count += 2;
    return count;
}

static size_t decltype_tokens(const struct parser *parser, size_t ahead)
{
    size_t count = type_tokens(parser, ahead);
    while (count > 0 && token_is(peek(parser, ahead + count), "[") && token_is(peek(parser, ahead + count + 1), "]"))
        count += 2;
    return count;
}

/* The text of `count` tokens joined: types are spelled without spaces. */
static struct slice take_type(struct parser *parser, size_t count)
{
    struct slice text = SLICE_NONE;
    if (count == 0 || parser->failed) {
        parser->failed = true;
        return text;
    }
    for (size_t i = 0; i < count; i++) {
        struct slice part = peek(parser, i)->text;
        text = i == 0 ? part : arena_printf(parser->compiler->arena, "%.*s%.*s", SLICE_ARG(text), SLICE_ARG(part));
    }
    parser->at += count;
    return text;
}

/* Primary expressions */

static struct node *parse_lambda(struct parser *parser);

static bool lambda_ahead(const struct parser *parser)
{
    size_t ahead = 0;
    if (!at(parser, "(")) {
        size_t type = decltype_tokens(parser, 0);
        bool bare = kind_at(parser, TOKEN_ID) && token_is(peek(parser, 1), "->");
        return bare || (type > 0 && peek(parser, type)->kind == TOKEN_ID && token_is(peek(parser, type + 1), "->"));
    }
    for (ahead = 1; !token_is(peek(parser, ahead), ")"); ahead++) {
        size_t type = decltype_tokens(parser, ahead);
        bool typed = type > 0 && peek(parser, ahead + type)->kind == TOKEN_ID;
        if (!typed && peek(parser, ahead)->kind != TOKEN_ID)
            return false;
        ahead += typed ? type + 1 : 1;
        if (!token_is(peek(parser, ahead), ","))
            break;
    }
    return token_is(peek(parser, ahead), ")") && token_is(peek(parser, ahead + 1), "->");
}

static struct node *parse_reference(struct parser *parser, size_t type)
{
    struct node *node = make(parser, NODE_REFERENCE, peek(parser, 0)->start);
    struct slice owner = type > 0 ? take_type(parser, type) : SLICE_LIT("this");
    if (type == 0)
        parser->at++;
    expect(parser, "::");
    node->text = SLICE_LIT("new");
    if (type == 0 || !accept(parser, "new"))
        expect_kind(parser, TOKEN_ID, &node->text);
    node->value = node_text(parser->compiler, owner);
    node->a = make(parser, NODE_NAME, node->offset);
    node->a->text = owner;
    return node;
}

static struct node *parse_argument(struct parser *parser)
{
    size_t type = decltype_tokens(parser, 0);
    if (type > 0 && token_is(peek(parser, type), "::"))
        return parse_reference(parser, type);
    if (at(parser, "this") && token_is(peek(parser, 1), "::"))
        return parse_reference(parser, 0);
    return lambda_ahead(parser) ? parse_lambda(parser) : parse_expression(parser);
}

static struct node *parse_arguments(struct parser *parser)
{
    struct node *first = NULL, **end = &first;
    if (!expect(parser, "(") || accept(parser, ")"))
        return NULL;
    do {
        struct node *argument = parse_argument(parser);
        if (argument == NULL)
            return NULL;
        *end = argument;
        end = &argument->next;
    } while (accept(parser, ","));
    expect(parser, ")");
    return first;
}

static struct node *parse_parameters(struct parser *parser, struct function *function, bool typed_only)
{
    size_t capacity = 0;
    do {
        size_t type = decltype_tokens(parser, 0);
        struct parameter parameter = {.type = TYPE_NONE};
        struct slice type_text = SLICE_NONE;
        if (typed_only || (type > 0 && peek(parser, type)->kind == TOKEN_ID))
            type_text = take_type(parser, type);
        if (!expect_kind(parser, TOKEN_ID, &parameter.name))
            return NULL;
        if (type_text.len > 0) {
            parameter.initial = make(parser, NODE_NAME, 0);
            parameter.initial->text = type_text;
        }
        function->parameters = arena_grow(parser->compiler->arena, function->parameters, function->parameter_count,
                                          &capacity, sizeof *function->parameters);
        function->parameters[function->parameter_count++] = parameter;
    } while (accept(parser, ","));
    return NULL;
}

static struct node *parse_lambda(struct parser *parser)
{
    struct node *node = make(parser, NODE_LAMBDA, peek(parser, 0)->start);
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    function->lambda = true;
    function->offset = node->offset;
    node->function = function;
    if (!enter(parser))
        return NULL;
    if (accept(parser, "(")) {
        if (!at(parser, ")"))
            parse_parameters(parser, function, false);
        expect(parser, ")");
    } else {
        parse_parameters(parser, function, false);
    }
    expect(parser, "->");
    if (parser->failed)
        return NULL;
    if (at(parser, "{")) {
        function->body = parse_block(parser);
        if (function->body == NULL && !parser->failed)
            function->body = make(parser, NODE_BLOCK, node->offset);
    } else {
        struct node *result = make(parser, NODE_RETURN, node->offset);
        function->body = make(parser, NODE_BLOCK, node->offset);
        result->a = parse_expression(parser);
        function->body->list = result;
    }
    parser->depth--;
    return node;
}

static struct node *parse_list_or_map(struct parser *parser)
{
    struct node *node = make(parser, NODE_LIST, peek(parser, 0)->start), **end = &node->list;
    parser->at++;
    if (accept(parser, "]"))
        return node;
    if (at(parser, ":") && token_is(peek(parser, 1), "]")) {
        parser->at += 2;
        node->kind = NODE_MAP;
        return node;
    }
    for (bool first = true;; first = false) {
        struct node *item = parse_expression(parser);
        if (item == NULL)
            return NULL;
        *end = item;
        end = &item->next;
        if (first && at(parser, ":"))
            node->kind = NODE_MAP;
        if (node->kind == NODE_MAP) {
            if (!expect(parser, ":") || (item = parse_expression(parser)) == NULL)
                return NULL;
            *end = item;
            end = &item->next;
        }
        if (!accept(parser, ","))
            break;
    }
    expect(parser, "]");
    return node;
}

/* A string literal without its quotes and escapes. */
static struct slice unquote(struct parser *parser, struct slice text)
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
    const struct token *token = peek(parser, 0);
    struct node *node = make(parser, NODE_CONST, token->start);
    node->text = token->text;
    parser->at++;
    switch (token->kind) {
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
        /* The value depends on what is asked for: resolve.c. `slot` tells the radix, 0 for a decimal fraction. */
        node->slot = token->kind == TOKEN_OCTAL     ? 8
                     : token->kind == TOKEN_HEX     ? 16
                     : token->kind == TOKEN_INTEGER ? 10
                                                    : 0;
        node->value.kind = VALUE_INT;
        break;
    case TOKEN_STRING:
        node->text = unquote(parser, token->text);
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
    const struct token *token = peek(parser, 0);
    struct node *node = make(parser, NODE_PATTERN, token->start);
    size_t end = token->text.len - 1;
    while (token->text.data[end] != '/')
        end--;
    node->text = slice_make(token->text.data + 1, end - 1);
    struct slice flags = slice_from_offset(token->text, end + 1);
    node->value = node_text(parser->compiler, flags);
    parser->at++;
    return node;
}

static struct node *parse_new(struct parser *parser)
{
    struct node *node = make(parser, NODE_NEW, peek(parser, 0)->start), **end = &node->list;
    parser->at++;
    node->text = take_type(parser, type_tokens(parser, 0));
    if (parser->failed)
        return NULL;
    if (!at(parser, "[")) {
        node->list = parse_arguments(parser);
        return node;
    }
    unsigned dims = 0;
    bool filled = token_is(peek(parser, 1), "]");
    node->kind = filled ? NODE_ARRAY_INIT : NODE_NEW_ARRAY;
    if (filled) {
        parser->at += 2;
        dims = 1;
        expect(parser, "{");
        bool more = !parser->failed && !at(parser, "}");
        while (more) {
            *end = parse_expression(parser);
            if (*end == NULL)
                return give_up(parser);
            end = &(*end)->next;
            more = accept(parser, ",");
        }
        expect(parser, "}");
    } else {
        while (accept(parser, "[")) {
            *end = parse_expression(parser);
            if (*end == NULL || !expect(parser, "]"))
                return NULL;
            end = &(*end)->next;
            dims++;
        }
    }
    while (dims-- > 0)
        node->text = arena_printf(parser->compiler->arena, "%.*s[]", SLICE_ARG(node->text));
    return node;
}

static struct node *parse_name(struct parser *parser)
{
    struct node *node = make(parser, NODE_NAME, peek(parser, 0)->start);
    node->text = peek(parser, 0)->text;
    parser->at++;
    if (at(parser, "(")) {
        node->kind = NODE_CALL_LOCAL;
        node->list = parse_arguments(parser);
    }
    return node;
}

static struct node *parse_primary(struct parser *parser)
{
    struct node *node;
    switch (peek(parser, 0)->kind) {
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
    case TOKEN_STRING: return parse_constant(parser);
    case TOKEN_REGEX: return parse_pattern(parser);
    case TOKEN_ID: return parse_name(parser);
    default: break;
    }
    if (at(parser, "true") || at(parser, "false") || at(parser, "null"))
        return parse_constant(parser);
    if (at(parser, "["))
        return parse_list_or_map(parser);
    if (at(parser, "new"))
        return parse_new(parser);
    if (!accept(parser, "("))
        return give_up(parser);
    node = parse_expression(parser);
    expect(parser, ")");
    return node;
}

static struct node *parse_postfix(struct parser *parser, struct node *prefix)
{
    const struct token *token = peek(parser, 0);
    struct node *node = make(parser, NODE_BRACE, token->start);
    node->a = prefix;
    parser->at++;
    if (token_is(token, "[")) {
        node->b = parse_expression(parser);
        expect(parser, "]");
        return node;
    }
    node->kind = NODE_DOT;
    node->flags = token_is(token, "?.") ? NODE_SAFE : 0;
    if (!kind_at(parser, TOKEN_DOT_ID) && !kind_at(parser, TOKEN_DOT_INTEGER))
        return give_up(parser);
    bool name = kind_at(parser, TOKEN_DOT_ID);
    node->text = peek(parser, 0)->text;
    node->value = node_text(parser->compiler, node->text);
    parser->at++;
    if (name && at(parser, "(")) {
        node->kind = NODE_CALL;
        node->list = parse_arguments(parser);
    }
    return node;
}

static struct node *parse_chain(struct parser *parser)
{
    unsigned depth = parser->depth;
    struct node *node = parse_primary(parser);
    bool sized = node != NULL && node->kind == NODE_NEW_ARRAY;
    while (!parser->failed && node != NULL && (at(parser, ".") || at(parser, "?.") || (at(parser, "[") && !sized))) {
        node = enter(parser) ? parse_postfix(parser, node) : NULL;
        sized = false;
    }
    parser->depth = depth;
    return parser->failed ? NULL : node;
}

/* Operators */

static struct node *step(struct parser *parser, struct node *target, const struct token *token, int32_t offset,
                         unsigned flags)
{
    struct node *node = make(parser, NODE_STEP, offset);
    node->op = token_is(token, "++") ? OP_ADD : OP_SUB;
    node->flags = (uint16_t)flags;
    node->a = target;
    return node;
}

/* Whether a type in parentheses is followed by what can only be its operand. */
static bool cast_ahead(const struct parser *parser, size_t *ret_type)
{
    size_t type = at(parser, "(") ? decltype_tokens(parser, 1) : 0;
    if (type == 0 || !token_is(peek(parser, type + 1), ")"))
        return false;
    *ret_type = type;
    if (type == 1 && peek(parser, 1)->kind != TOKEN_ID)
        return true;
    const struct token *follows = peek(parser, type + 2);
    static const char *const starts[] = {"(", "!", "~", "new", "true", "false", "null"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (token_is(follows, starts[i]))
            return true;
    if (token_is(follows, "["))
        return type > 1 && token_is(peek(parser, type), "]");
    switch (follows->kind) {
    case TOKEN_ID:
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
    case TOKEN_STRING:
    case TOKEN_REGEX: return true;
    default: return false;
    }
}

static struct node *parse_operand(struct parser *parser)
{
    const struct token *token = peek(parser, 0);
    size_t type;
    static const struct {
        const char *symbol;
        enum node_kind kind;
    } prefixes[] = {{"+", NODE_PLUS}, {"-", NODE_NEGATE}, {"!", NODE_NOT}, {"~", NODE_INVERT}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (!token_is(token, prefixes[i].symbol))
            continue;
        struct node *node = make(parser, prefixes[i].kind, token->start);
        parser->at++;
        node->a = parse_unary(parser);
        return node;
    }
    if (token_is(token, "++") || token_is(token, "--")) {
        parser->at++;
        struct node *target = parse_chain(parser);
        return target == NULL ? NULL : step(parser, target, token, token->start, 0);
    }
    if (cast_ahead(parser, &type)) {
        struct node *node = make(parser, NODE_CAST, token->start);
        node->flags = NODE_EXPLICIT;
        parser->at++;
        node->text = take_type(parser, type);
        parser->at++;
        node->a = parse_unary(parser);
        return node;
    }
    struct node *node = parse_chain(parser);
    if (node != NULL && (at(parser, "++") || at(parser, "--"))) {
        node = step(parser, node, peek(parser, 0), token->start, NODE_POSTFIX);
        parser->at++;
    }
    return node;
}

/* Operators before their operand nest without brackets. */
static struct node *parse_unary(struct parser *parser)
{
    unsigned depth = parser->depth;
    bool chain = kind_at(parser, TOKEN_ID);
    struct node *node = chain || enter(parser) ? parse_operand(parser) : NULL;
    parser->depth = depth;
    return parser->failed ? NULL : node;
}

static const struct {
    const char *symbol;
    unsigned char precedence;
    unsigned char kind; /* enum node_kind */
    unsigned char op;
} binaries[] = {
    {"*", 13, NODE_BINARY, OP_MUL},
    {"/", 13, NODE_BINARY, OP_DIV},
    {"%", 13, NODE_BINARY, OP_REM},
    {"+", 12, NODE_BINARY, OP_ADD},
    {"-", 12, NODE_BINARY, OP_SUB},
    {"=~", 11, NODE_FIND, 0},
    {"==~", 11, NODE_MATCH, 0},
    {"<<", 10, NODE_BINARY, OP_SHL},
    {">>", 10, NODE_BINARY, OP_SHR},
    {">>>", 10, NODE_BINARY, OP_USHR},
    {"<", 9, NODE_COMPARE, COMPARE_LT},
    {"<=", 9, NODE_COMPARE, COMPARE_LE},
    {">", 9, NODE_COMPARE, COMPARE_GT},
    {">=", 9, NODE_COMPARE, COMPARE_GE},
    {"instanceof", 8, NODE_INSTANCEOF, 0},
    {"==", 7, NODE_COMPARE, COMPARE_EQ},
    {"===", 7, NODE_COMPARE, COMPARE_SAME},
    {"!=", 7, NODE_COMPARE, COMPARE_NE},
    {"!==", 7, NODE_COMPARE, COMPARE_NOT_SAME},
    {"&", 6, NODE_BINARY, OP_AND},
    {"^", 5, NODE_BINARY, OP_XOR},
    {"|", 4, NODE_BINARY, OP_OR},
    {"&&", 3, NODE_AND, 0},
    {"||", 2, NODE_OR, 0},
    {"?:", 1, NODE_ELVIS, 0},
};

static size_t binary_at(const struct parser *parser)
{
    size_t count = sizeof binaries / sizeof *binaries;
    for (size_t i = 0; i < count; i++)
        if (at(parser, binaries[i].symbol))
            return i;
    return count;
}

static struct node *parse_binary(struct parser *parser, unsigned lowest)
{
    int32_t start = peek(parser, 0)->start;
    unsigned depth = parser->depth;
    struct node *left = parse_unary(parser);
    while (left != NULL) {
        size_t i = binary_at(parser);
        if (i == sizeof binaries / sizeof *binaries || binaries[i].precedence < lowest)
            break;
        parser->at++;
        if (!enter(parser))
            return NULL;
        struct node *node = make(parser, (enum node_kind)binaries[i].kind, start);
        node->op = binaries[i].op;
        node->a = left;
        left = node;
        if (node->kind == NODE_INSTANCEOF)
            node->text = take_type(parser, decltype_tokens(parser, 0));
        else
            node->b = parse_binary(parser, node->kind == NODE_ELVIS ? 1 : binaries[i].precedence + 1u);
        if (parser->failed)
            return NULL;
    }
    parser->depth = depth;
    return left;
}

static const struct {
    const char *symbol;
    enum operator op;
} assignments[] = {{"+=", OP_ADD}, {"-=", OP_SUB}, {"*=", OP_MUL},  {"/=", OP_DIV},  {"%=", OP_REM},   {"&=", OP_AND},
                   {"^=", OP_XOR}, {"|=", OP_OR},  {"<<=", OP_SHL}, {">>=", OP_SHR}, {">>>=", OP_USHR}};

static struct node *parse_tail(struct parser *parser, struct node *left, int32_t start)
{
    struct node *node;
    if (accept(parser, "?")) {
        node = make(parser, NODE_CONDITIONAL, start);
        node->a = left;
        node->b = parse_expression(parser);
        expect(parser, ":");
        node->c = parser->failed ? NULL : parse_expression(parser);
        return node;
    }
    if (accept(parser, "=")) {
        node = make(parser, NODE_ASSIGN, start);
        node->a = left;
        node->b = parse_expression(parser);
        return node;
    }
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments; i++) {
        if (!accept(parser, assignments[i].symbol))
            continue;
        node = make(parser, NODE_COMPOUND, start);
        node->op = (uint8_t)assignments[i].op;
        node->a = left;
        node->b = parse_expression(parser);
        return node;
    }
    return left;
}

static struct node *parse_expression(struct parser *parser)
{
    if (parser->failed || !enter(parser))
        return NULL;
    int32_t start = peek(parser, 0)->start;
    struct node *node = parse_binary(parser, 1);
    if (node != NULL)
        node = parse_tail(parser, node, start);
    parser->depth--;
    return parser->failed ? NULL : node;
}

/* Statements */

static struct node *parse_declaration(struct parser *parser)
{
    struct node *all = make(parser, NODE_DECLARE_ALL, peek(parser, 0)->start), **end = &all->list;
    struct slice type = take_type(parser, decltype_tokens(parser, 0));
    do {
        struct node *node = make(parser, NODE_DECLARE, peek(parser, 0)->start);
        node->value = node_text(parser->compiler, type);
        node->c = make(parser, NODE_NAME, node->offset);
        node->c->text = type;
        if (!expect_kind(parser, TOKEN_ID, &node->text))
            return NULL;
        if (accept(parser, "="))
            node->a = parse_expression(parser);
        *end = node;
        end = &node->next;
    } while (accept(parser, ","));
    return all;
}

static bool declaration_ahead(const struct parser *parser)
{
    size_t type = decltype_tokens(parser, 0);
    return type > 0 && peek(parser, type)->kind == TOKEN_ID;
}

/* A statement that ends in a semicolon, which is not taken here. */
static struct node *parse_simple(struct parser *parser)
{
    int32_t start = peek(parser, 0)->start;
    struct node *node;
    if (declaration_ahead(parser))
        return parse_declaration(parser);
    if (accept(parser, "do")) {
        node = make(parser, NODE_DO, start);
        node->b = parse_block(parser);
        if (expect(parser, "while") && expect(parser, "("))
            node->a = parse_expression(parser);
        expect(parser, ")");
        return node;
    }
    if (accept(parser, "continue"))
        return make(parser, NODE_CONTINUE, start);
    if (accept(parser, "break"))
        return make(parser, NODE_BREAK, start);
    if (accept(parser, "return")) {
        node = make(parser, NODE_RETURN, start);
        bool empty = at(parser, ";") || at(parser, "}") || kind_at(parser, TOKEN_EOF);
        node->a = empty ? NULL : parse_expression(parser);
        return node;
    }
    if (accept(parser, "throw")) {
        node = make(parser, NODE_THROW, start);
        node->a = parse_expression(parser);
        return node;
    }
    node = make(parser, NODE_EXPRESSION, start);
    node->a = parse_expression(parser);
    return node;
}

/* Returns: a block; NULL for an empty one, or on failure. */
static struct node *parse_block(struct parser *parser)
{
    struct node *block = make(parser, NODE_BLOCK, peek(parser, 0)->start), **end = &block->list;
    if (!enter(parser) || !expect(parser, "{"))
        return NULL;
    while (!parser->failed && !at(parser, "}")) {
        *end = parse_statement(parser, true);
        if (*end == NULL)
            return NULL;
        end = &(*end)->next;
    }
    expect(parser, "}");
    parser->depth--;
    return block->list == NULL ? NULL : block;
}

static struct node *parse_trailer(struct parser *parser)
{
    if (at(parser, "{"))
        return parse_block(parser);
    if (!enter(parser))
        return NULL;
    struct node *block = make(parser, NODE_BLOCK, peek(parser, 0)->start);
    block->list = parse_statement(parser, false);
    parser->depth--;
    return block->list == NULL ? NULL : block;
}

/* The body of a loop; NULL also for a lone semicolon. */
static struct node *parse_body(struct parser *parser)
{
    return accept(parser, ";") ? NULL : parse_trailer(parser);
}

static struct node *parse_if(struct parser *parser, int32_t start)
{
    struct node *node = make(parser, NODE_IF, start);
    if (expect(parser, "("))
        node->a = parse_expression(parser);
    if (!expect(parser, ")"))
        return NULL;
    node->b = parse_trailer(parser);
    if (accept(parser, "else")) {
        node->flags |= NODE_USED; /* there is an else, if perhaps an empty one */
        node->c = parse_trailer(parser);
    }
    return node;
}

static struct node *parse_each(struct parser *parser, int32_t start, bool typed)
{
    struct node *node = make(parser, NODE_EACH, start);
    struct slice type = typed ? take_type(parser, decltype_tokens(parser, 0)) : SLICE_LIT("def");
    node->c = make(parser, NODE_NAME, start);
    node->c->text = type;
    expect_kind(parser, TOKEN_ID, &node->text);
    parser->at++;
    node->a = parse_expression(parser);
    if (!expect(parser, ")"))
        return NULL;
    node->b = parse_trailer(parser);
    return node;
}

static struct node *parse_for(struct parser *parser, int32_t start)
{
    struct node *node = make(parser, NODE_FOR, start);
    if (!expect(parser, "("))
        return NULL;
    size_t type = decltype_tokens(parser, 0);
    if (type > 0 && peek(parser, type)->kind == TOKEN_ID && token_is(peek(parser, type + 1), ":"))
        return parse_each(parser, start, true);
    if (kind_at(parser, TOKEN_ID) && token_is(peek(parser, 1), "in"))
        return parse_each(parser, start, false);
    if (declaration_ahead(parser))
        node->list = parse_declaration(parser);
    else if (!at(parser, ";"))
        node->list = parse_expression(parser);
    if (expect(parser, ";") && !at(parser, ";"))
        node->a = parse_expression(parser);
    if (expect(parser, ";") && !at(parser, ")"))
        node->c = parse_expression(parser);
    if (!expect(parser, ")"))
        return NULL;
    node->b = parse_body(parser);
    return node;
}

static struct node *parse_try(struct parser *parser, int32_t start)
{
    struct node *node = make(parser, NODE_TRY, start), **end = &node->list;
    node->b = parse_block(parser);
    while (!parser->failed && at(parser, "catch")) {
        struct node *trap = make(parser, NODE_CATCH, peek(parser, 0)->start);
        parser->at++;
        if (!expect(parser, "("))
            return NULL;
        trap->c = make(parser, NODE_NAME, trap->offset);
        trap->c->text = take_type(parser, type_tokens(parser, 0));
        expect_kind(parser, TOKEN_ID, &trap->text);
        if (!expect(parser, ")"))
            return NULL;
        trap->b = parse_block(parser);
        *end = trap;
        end = &trap->next;
    }
    return node->list == NULL ? give_up(parser) : node;
}

/* The books' `assert condition`, an addition for scripts that name no language. */
static struct node *parse_assert(struct parser *parser, const struct token *token)
{
    struct node *node = make(parser, NODE_ASSERT, token->start);
    parser->at++;
    node->a = parse_expression(parser);
    const struct token *last = parser->at > 0 ? &parser->compiler->tokens[parser->at - 1] : token;
    node->text = slice_make(token->text.data, (size_t)(last->text.data + last->text.len - token->text.data));
    return node;
}

static struct node *parse_complex(struct parser *parser)
{
    const struct token *token = peek(parser, 0);
    if (accept(parser, "if"))
        return parse_if(parser, token->start);
    if (accept(parser, "for"))
        return parse_for(parser, token->start);
    if (accept(parser, "try"))
        return parse_try(parser, token->start);
    if (!accept(parser, "while") || !expect(parser, "("))
        return NULL;
    struct node *node = make(parser, NODE_WHILE, token->start);
    node->a = parse_expression(parser);
    if (!expect(parser, ")"))
        return NULL;
    node->b = parse_body(parser);
    return node;
}

static struct node *parse_statement(struct parser *parser, bool in_block)
{
    bool complex = at(parser, "if") || at(parser, "for") || at(parser, "while") || at(parser, "try");
    const struct token *token = peek(parser, 0);
    struct node *node;
    if (complex) {
        node = parse_complex(parser);
        return parser->failed ? NULL : node;
    }
    bool assertion = parser->compiler->bare_names && token->kind == TOKEN_ID && slice_is(token->text, "assert") &&
                     !token_is(peek(parser, 1), "=");
    if (parser->compiler->bare_names && accept(parser, ";"))
        return make(parser, NODE_EMPTY, token->start);
    node = assertion ? parse_assert(parser, token) : parse_simple(parser);
    if (parser->failed)
        return NULL;
    if (!accept(parser, ";") && !(in_block && at(parser, "}")) && !kind_at(parser, TOKEN_EOF))
        return give_up(parser);
    return node;
}

static struct function *parse_function(struct parser *parser)
{
    struct function *function = arena_zalloc(parser->compiler->arena, sizeof *function);
    function->offset = peek(parser, 0)->start;
    struct slice type = take_type(parser, decltype_tokens(parser, 0));
    struct node *result = make(parser, NODE_NAME, function->offset);
    result->text = type;
    if (!expect_kind(parser, TOKEN_ID, &function->name) || !expect(parser, "("))
        return NULL;
    if (!at(parser, ")"))
        parse_parameters(parser, function, true);
    if (!expect(parser, ")"))
        return NULL;
    struct node *block = make(parser, NODE_BLOCK, peek(parser, 0)->start);
    struct node *body = parse_block(parser);
    if (parser->failed)
        return NULL;
    function->body = body == NULL ? block : body;
    function->body->c = result; /* until resolved: the name of the result's type */
    return function;
}

static bool function_ahead(const struct parser *parser)
{
    size_t type = decltype_tokens(parser, 0);
    return type > 0 && peek(parser, type)->kind == TOKEN_ID && token_is(peek(parser, type + 1), "(");
}

struct function *parse_painless(struct compiler *compiler)
{
    struct parser parser = {.compiler = compiler};
    struct function *main = arena_zalloc(compiler->arena, sizeof *main), **last = &compiler->functions;
    main->name = SLICE_LIT("execute");
    main->body = node_new(compiler, NODE_BLOCK, 0);
    while (!parser.failed && function_ahead(&parser)) {
        *last = parse_function(&parser);
        if (*last != NULL)
            last = &(*last)->next;
    }
    struct node **end = &main->body->list;
    while (!parser.failed && !kind_at(&parser, TOKEN_EOF)) {
        *end = parse_statement(&parser, false);
        if (*end == NULL)
            parser.failed = true;
        else
            end = &(*end)->next;
    }
    if (parser.failed)
        compiler->stopped = peek(&parser, 0);
    return parser.failed ? NULL : main;
}
