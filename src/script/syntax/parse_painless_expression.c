/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's grammar: operators and casts around what parse_painless_primary.c takes. */
#include "script/syntax/parse_painless.h"

static struct node *make_step(struct parser *parser, struct node *target, const struct token *token, int32_t offset,
                              unsigned flags)
{
    struct node *node = painless__make(parser, NODE_STEP, offset);
    node->op = token_is(token, "++") ? OP_ADD : OP_SUB;
    node->flags = (uint16_t)flags;
    node->a = target;
    return node;
}

/*
 * Returns: whether the bracket `offset` tokens ahead opens a literal: `[]`, `[1, 2]`, `['a': 1]`. A
 * bracket that could also be an index is one, as the original's grammar tries that first.
 */
static bool literal_ahead(const struct parser *parser, size_t offset)
{
    size_t open = 0, conditions = 0;
    for (size_t i = offset + 1;; i++) {
        const struct token *token = painless__peek(parser, i);
        if (token->kind == TOKEN_EOF)
            return false;
        if (open == 0 && (token_is(token, ",") || (token_is(token, ":") && conditions-- == 0)))
            return true;
        if (open == 0 && token_is(token, "?"))
            conditions++;
        if (token_is(token, "(") || token_is(token, "[") || token_is(token, "{"))
            open++;
        else if (token_is(token, ")") || token_is(token, "]") || token_is(token, "}")) {
            if (open == 0)
                return i == offset + 1;
            open--;
        }
    }
}

/*
 * Returns: whether a type in parentheses is followed by a token that can only begin a cast's
 * operand.
 */
static bool cast_ahead(const struct parser *parser, size_t *ret_type)
{
    size_t type = painless__at(parser, "(") ? painless__decltype_tokens(parser, 1) : 0;
    if (type == 0 || !token_is(painless__peek(parser, type + 1), ")"))
        return false;
    *ret_type = type;
    if (type == 1 && painless__peek(parser, 1)->kind != TOKEN_ID)
        return true;
    const struct token *follows = painless__peek(parser, type + 2);
    static const char *const starts[] = {"(", "!", "~", "new", "true", "false", "null"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (token_is(follows, starts[i]))
            return true;
    if (token_is(follows, "["))
        return (type > 1 && token_is(painless__peek(parser, type), "]")) || literal_ahead(parser, type + 2);
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
    const struct token *token = painless__peek(parser, 0);
    size_t type;
    static const struct {
        const char *symbol;
        enum node_kind kind;
    } prefixes[] = {{"+", NODE_PLUS}, {"-", NODE_NEGATE}, {"!", NODE_NOT}, {"~", NODE_INVERT}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (!token_is(token, prefixes[i].symbol))
            continue;
        struct node *node = painless__make(parser, prefixes[i].kind, token->start);
        parser->at++;
        node->a = painless__unary(parser);
        return node;
    }
    if (token_is(token, "++") || token_is(token, "--")) {
        parser->at++;
        struct node *target = painless__chain(parser);
        return target == NULL ? NULL : make_step(parser, target, token, token->start, 0);
    }
    if (cast_ahead(parser, &type)) {
        struct node *node = painless__make(parser, NODE_CAST, token->start);
        node->flags = NODE_EXPLICIT;
        parser->at++;
        node->text = painless__take_type(parser, type);
        parser->at++;
        node->a = painless__unary(parser);
        return node;
    }
    struct node *node = painless__chain(parser);
    if (node != NULL && (painless__at(parser, "++") || painless__at(parser, "--"))) {
        node = make_step(parser, node, painless__peek(parser, 0), token->start, NODE_POSTFIX);
        parser->at++;
    }
    return node;
}

/* Operators before their operand nest without brackets. */
struct node *painless__unary(struct parser *parser)
{
    unsigned depth = parser->depth;
    bool chain = painless__kind_at(parser, TOKEN_ID);
    struct node *node = chain || painless__enter(parser) ? parse_operand(parser) : NULL;
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
        if (painless__at(parser, binaries[i].symbol))
            return i;
    return count;
}

static struct node *parse_binary(struct parser *parser, unsigned lowest)
{
    int32_t start = painless__peek(parser, 0)->start;
    unsigned depth = parser->depth;
    struct node *left = painless__unary(parser);
    while (left != NULL) {
        size_t i = binary_at(parser);
        if (i == sizeof binaries / sizeof *binaries || binaries[i].precedence < lowest)
            break;
        parser->at++;
        if (!painless__enter(parser))
            return NULL;
        struct node *node = painless__make(parser, (enum node_kind)binaries[i].kind, start);
        node->op = binaries[i].op;
        node->a = left;
        left = node;
        if (node->kind == NODE_INSTANCEOF)
            node->text = painless__take_type(parser, painless__decltype_tokens(parser, 0));
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
    if (painless__accept(parser, "?")) {
        node = painless__make(parser, NODE_CONDITIONAL, start);
        node->a = left;
        node->b = painless__expression(parser);
        painless__expect(parser, ":");
        node->c = parser->failed ? NULL : painless__expression(parser);
        return node;
    }
    if (painless__accept(parser, "=")) {
        node = painless__make(parser, NODE_ASSIGN, start);
        node->a = left;
        node->b = painless__expression(parser);
        return node;
    }
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments; i++) {
        if (!painless__accept(parser, assignments[i].symbol))
            continue;
        node = painless__make(parser, NODE_COMPOUND, start);
        node->op = (uint8_t)assignments[i].op;
        node->a = left;
        node->b = painless__expression(parser);
        return node;
    }
    return left;
}

struct node *painless__expression(struct parser *parser)
{
    if (parser->failed || !painless__enter(parser))
        return NULL;
    int32_t start = painless__peek(parser, 0)->start;
    struct node *node = parse_binary(parser, 1);
    if (node != NULL)
        node = parse_tail(parser, node, start);
    parser->depth--;
    return parser->failed ? NULL : node;
}
