/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's operators, from assignments down to casts. See parse_groovy.h; names, calls and
 * literals: parse_groovy_path.c.
 */
#include "script/syntax/parse_groovy.h"

bool parse__expression_ahead(const struct groovy_parser *parser)
{
    static const char *const starts[] = {"new", "this", "super", "true", "false", "null", "(", "[",
                                         "{",   "!",    "~",     "+",    "-",     "++",   "--"};
    const struct token *token = parse__peek(parser, 0);
    if (token->kind == TOKEN_ID || token->kind == TOKEN_PRIMITIVE ||
        (token->kind >= TOKEN_OCTAL && token->kind <= TOKEN_GSTRING_BEGIN))
        return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (token_is(token, starts[i]))
            return true;
    return false;
}

/* Numbers */

static struct slice without_underscores(struct arena *arena, struct slice text)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] != '_')
            buf_byte(&out, text.data[i]);
    struct slice plain = arena_copy(arena, buf_as_slice(&out));
    buf_deinit(&out);
    return plain;
}

/* A fraction is a double, as Elasticsearch compiled it, where Groovy has a decimal. */
static struct value parse_fraction(struct slice digits, char suffix)
{
    double d = 0;
    number_parse_double(digits, &d);
    return suffix == 'f' ? value_float(d) : value_double(d);
}

/* Arithmetic on constants needs no budget. */
static struct value big_constant(struct arena *arena, struct slice digits, unsigned radix)
{
    struct script_limits limits = SCRIPT_LIMITS_DEFAULT;
    struct run run = {.arena = arena, .limits = &limits, .steps_left = 1000000, .memory_left = 1 << 20};
    struct decimal *decimal = radix == 10 ? decimal_from_slice(&run, digits) : NULL;
    return decimal == NULL ? VALUE_NONE : value_of(number_to_big(&run, value_of(decimal)));
}

static struct value parse_whole(struct arena *arena, struct slice digits, unsigned radix, char suffix)
{
    int64_t i;
    bool small = number_parse_i64(digits, radix, INT32_MIN, INT32_MAX, &i);
    bool fits = number_parse_i64(digits, radix, INT64_MIN, INT64_MAX, &i);
    if (suffix == 'g')
        return big_constant(arena, fits ? arena_printf(arena, "%lld", (long long)i) : digits, fits ? 10 : radix);
    /* An int out of range wraps, as in Groovy. */
    if (suffix == 'i' || (suffix == '\0' && small))
        return fits ? value_int(i) : VALUE_NONE;
    if (fits)
        return value_long(i);
    return suffix == 'l' ? VALUE_NONE : big_constant(arena, digits, radix);
}

struct node *parse__number(struct groovy_parser *parser, const struct token *token, bool negative)
{
    struct arena *arena = parser->compiler->arena;
    struct slice text = without_underscores(arena, token->text);
    char suffix = (char)(text.data[text.len - 1] | 0x20);
    bool suffixed = strchr(token->kind == TOKEN_HEX ? "lig" : "ligfd", suffix) != NULL;
    struct node *node = parse__make(parser, NODE_CONST, token);
    unsigned radix = token->kind == TOKEN_OCTAL     ? 8
                     : token->kind != TOKEN_HEX     ? 10
                     : (text.data[1] | 0x20) == 'x' ? 16
                                                    : 2;
    node->text = token->text;
    text.len -= suffixed;
    if (radix != 10)
        text = slice_from_offset(text, radix == 8 ? 1 : 2);
    if (negative)
        text = arena_printf(arena, "-%.*s", SLICE_ARG(text));
    bool fractional = token->kind == TOKEN_DECIMAL || (suffixed && (suffix == 'f' || suffix == 'd'));
    node->value = fractional ? parse_fraction(text, suffix) : parse_whole(arena, text, radix, suffixed ? suffix : '\0');
    /* No negative zero: in Groovy the literal is a decimal, whose zero has no sign. */
    if (token->kind == TOKEN_DECIMAL && node->value.d == 0 && (!suffixed || suffix == 'g'))
        node->value.d = 0;
    if (node->value.kind == VALUE_NULL)
        return parse__refuse(parser, token, "the number is out of its type's range");
    return node;
}

/* Operators before their operand */

static bool number_next(const struct groovy_parser *parser)
{
    enum token_kind kind = parse__peek(parser, 1)->kind;
    if (kind != TOKEN_INTEGER && kind != TOKEN_DECIMAL && kind != TOKEN_HEX && kind != TOKEN_OCTAL)
        return false;
    const struct token *following = parse__peek(parser, 2);
    return !token_is(following, ".") && !token_is(following, "[") && !token_is(following, "(") &&
           !token_is(following, "**") && !token_is(following, "?.") && !token_is(following, "*.");
}

static struct node *parse_prefix(struct groovy_parser *parser, enum node_kind kind, enum operator op)
{
    struct node *node = parse__make(parser, kind, parse__peek(parser, 0));
    node->op = (uint8_t)op;
    parser->at++;
    parse__newlines(parser);
    node->a = parse__unary(parser);
    return parser->failed ? NULL : node;
}

/*
 * Returns: whether the operand of a cast begins here; after a cast to a primitive also at a sign.
 */
static bool operand_ahead(const struct groovy_parser *parser, size_t ahead, bool primitive)
{
    struct groovy_parser there = *parser;
    there.at += ahead;
    bool sign = parse__at(&there, "+") || parse__at(&there, "-") || parse__at(&there, "++") || parse__at(&there, "--");
    return parse__expression_ahead(&there) && (primitive || !sign);
}

static struct node *parse_cast(struct groovy_parser *parser)
{
    size_t type = parse__at(parser, "(") ? parse__type_tokens(parser, 1) : 0;
    bool primitive = parse__peek(parser, 1)->kind == TOKEN_PRIMITIVE;
    if (type == 0 || !token_is(parse__peek(parser, type + 1), ")") || !operand_ahead(parser, type + 2, primitive))
        return NULL;
    struct node *node = parse__make(parser, NODE_CAST, parse__peek(parser, 0));
    node->flags = NODE_EXPLICIT;
    parser->at++;
    node->c = parse__type(parser);
    if (!parse__expect(parser, ")"))
        return NULL;
    node->a = parse__unary(parser);
    return parser->failed ? NULL : node;
}

static struct node *parse_postfix(struct groovy_parser *parser)
{
    struct node *node = parse__path(parser);
    const struct token *token = parse__peek(parser, 0);
    if (node == NULL || (!parse__at(parser, "++") && !parse__at(parser, "--")))
        return node;
    struct node *step = node_new(parser->compiler, NODE_STEP, node->offset);
    step->error_offset = token->start;
    step->op = (uint8_t)(parse__at(parser, "++") ? OP_ADD : OP_SUB);
    step->flags = NODE_POSTFIX;
    step->a = node;
    parser->at++;
    return step;
}

static struct node *parse_prefixed(struct groovy_parser *parser)
{
    if (parse__at(parser, "!"))
        return parse_prefix(parser, NODE_NOT, OP_ADD);
    if (parse__at(parser, "~"))
        return parse_prefix(parser, NODE_INVERT, OP_ADD);
    if (parse__at(parser, "++"))
        return parse_prefix(parser, NODE_STEP, OP_ADD);
    if (parse__at(parser, "--"))
        return parse_prefix(parser, NODE_STEP, OP_SUB);
    if (parse__at(parser, "-") && number_next(parser)) {
        const struct token *minus = parse__peek(parser, 0);
        struct node *node = parse__number(parser, parse__peek(parser, 1), true);
        parser->at += 2;
        if (node != NULL)
            node->offset = node->error_offset = minus->start;
        return node;
    }
    struct node *node = parse_cast(parser);
    return node != NULL || parser->failed ? node : parse_postfix(parser);
}

/* A power binds tighter than a sign: -2**2 is -(2**2). */
static struct node *parse_signed(struct groovy_parser *parser)
{
    bool minus = parse__at(parser, "-") && !number_next(parser);
    if (!minus && !parse__at(parser, "+"))
        return NULL;
    struct node *node = parse__make(parser, minus ? NODE_NEGATE : NODE_PLUS, parse__peek(parser, 0));
    parser->at++;
    parse__newlines(parser);
    node->a = parse__unary(parser);
    return parser->failed ? NULL : node;
}

struct node *parse__unary(struct groovy_parser *parser)
{
    unsigned depth = parser->depth;
    if (parser->failed || !parse__enter(parser))
        return NULL;
    struct node *node = parse_signed(parser);
    if (node == NULL && !parser->failed)
        node = parse_prefixed(parser);
    while (node != NULL && parse__at(parser, "**")) {
        const struct token *token = parse__peek(parser, 0);
        struct node *power = node_new(parser->compiler, NODE_BINARY, node->offset);
        power->error_offset = token->start;
        power->op = OP_POW;
        parser->at++;
        parse__newlines(parser);
        /* The sign's operand is the power. */
        bool is_signed = node->kind == NODE_NEGATE || node->kind == NODE_PLUS;
        power->a = is_signed ? node->a : node;
        power->b = parse__unary(parser);
        if (is_signed)
            node->a = power;
        else
            node = power;
        if (parser->failed)
            return NULL;
    }
    parser->depth = depth;
    return parser->failed ? NULL : node;
}

/* Operators between operands */

enum { LEVEL_OR = 2, LEVEL_RELATION = 9, LEVEL_SHIFT = 10 };

static const struct {
    const char *symbol;
    unsigned char level;
    unsigned char kind; /* enum node_kind */
    unsigned char op;
} binaries[] = {
    {"||", LEVEL_OR, NODE_OR, 0},
    {"&&", 3, NODE_AND, 0},
    {"|", 4, NODE_BINARY, OP_OR},
    {"^", 5, NODE_BINARY, OP_XOR},
    {"&", 6, NODE_BINARY, OP_AND},
    {"=~", 7, NODE_FIND, 0},
    {"==~", 7, NODE_MATCH, 0},
    {"==", 8, NODE_COMPARE, COMPARE_EQ},
    {"!=", 8, NODE_COMPARE, COMPARE_NE},
    {"<=>", 8, NODE_SPACESHIP, 0},
    {"===", 8, NODE_COMPARE, COMPARE_SAME},
    {"!==", 8, NODE_COMPARE, COMPARE_NOT_SAME},
    {"<", LEVEL_RELATION, NODE_COMPARE, COMPARE_LT},
    {">", LEVEL_RELATION, NODE_COMPARE, COMPARE_GT},
    {"<=", LEVEL_RELATION, NODE_COMPARE, COMPARE_LE},
    {">=", LEVEL_RELATION, NODE_COMPARE, COMPARE_GE},
    {"in", LEVEL_RELATION, NODE_IN, 0},
    {"instanceof", LEVEL_RELATION, NODE_INSTANCEOF, 0},
    {"as", LEVEL_RELATION, NODE_COERCE, 0},
    {"<<", LEVEL_SHIFT, NODE_BINARY, OP_SHL},
    {">>", LEVEL_SHIFT, NODE_BINARY, OP_SHR},
    {">>>", LEVEL_SHIFT, NODE_BINARY, OP_USHR},
    {"..", LEVEL_SHIFT, NODE_RANGE, 0},
    {"..<", LEVEL_SHIFT, NODE_RANGE, 1},
    {"+", 11, NODE_BINARY, OP_ADD},
    {"-", 11, NODE_BINARY, OP_SUB},
    {"*", 12, NODE_BINARY, OP_MUL},
    {"/", 12, NODE_BINARY, OP_DIV},
    {"%", 12, NODE_BINARY, OP_REM},
};
#define BINARY_COUNT (sizeof binaries / sizeof *binaries)

/* Returns: the next operator, if an operand can follow it; else NULL. */
static size_t binary_at(const struct groovy_parser *parser)
{
    size_t i = 0;
    while (i < BINARY_COUNT && !parse__at(parser, binaries[i].symbol))
        i++;
    bool type = i < BINARY_COUNT && (binaries[i].kind == NODE_INSTANCEOF || binaries[i].kind == NODE_COERCE);
    bool line = parse__peek(parser, 1)->kind == TOKEN_NEWLINE;
    bool can = type ? parse__type_tokens(parser, 1 + (size_t)line) > 0 : operand_ahead(parser, 1 + (size_t)line, true);
    return can ? i : BINARY_COUNT;
}

static struct node *parse_binary(struct groovy_parser *parser, unsigned lowest)
{
    unsigned depth = parser->depth, highest = 100;
    struct node *left = parse__unary(parser);
    while (left != NULL) {
        size_t i = binary_at(parser);
        if (i == BINARY_COUNT || binaries[i].level < lowest || binaries[i].level > highest)
            break;
        if (!parse__enter(parser))
            return NULL;
        struct node *node = node_new(parser->compiler, (enum node_kind)binaries[i].kind, left->offset);
        node->error_offset = parse__peek(parser, 0)->start;
        node->op = node->kind == NODE_RANGE ? 0 : binaries[i].op;
        node->flags = node->kind == NODE_RANGE && binaries[i].op ? NODE_EXCLUSIVE : 0;
        node->a = left;
        left = node;
        parser->at++;
        parse__newlines(parser);
        if (node->kind == NODE_INSTANCEOF || node->kind == NODE_COERCE)
            node->c = parse__type(parser);
        else
            node->b = parse_binary(parser, binaries[i].level + 1u);
        /* One relation only: a < b < c does not parse. */
        highest = binaries[i].level == LEVEL_RELATION ? LEVEL_RELATION - 1 : binaries[i].level;
        if (parser->failed)
            return NULL;
    }
    parser->depth = depth;
    return left;
}

struct node *parse__shift(struct groovy_parser *parser)
{
    return parse_binary(parser, LEVEL_SHIFT);
}

/* A line may end before or after ?: and ?. */
static bool accept_next_line(struct groovy_parser *parser, const char *symbol)
{
    bool line = parse__peek(parser, 0)->kind == TOKEN_NEWLINE;
    if (parser->failed || !token_is(parse__peek(parser, line), symbol))
        return false;
    size_t following = 1 + (size_t)line + (parse__peek(parser, 1 + (size_t)line)->kind == TOKEN_NEWLINE);
    if (!operand_ahead(parser, following, true)) {
        parser->at += line;
        return parse__unexpected(parser) != NULL;
    }
    parser->at += 1 + (size_t)line;
    parse__newlines(parser);
    return true;
}

struct node *parse__conditional(struct groovy_parser *parser)
{
    unsigned depth = parser->depth;
    if (parser->failed || !parse__enter(parser))
        return NULL;
    struct node *node = parse_binary(parser, LEVEL_OR), *whole_node = node;
    const struct token *following = parse__peek(parser, parse__peek(parser, 0)->kind == TOKEN_NEWLINE);
    if (node != NULL && accept_next_line(parser, "?:")) {
        whole_node = node_new(parser->compiler, NODE_ELVIS, node->offset);
        whole_node->a = node;
        whole_node->b = parse__conditional(parser);
    } else if (node != NULL && accept_next_line(parser, "?")) {
        whole_node = node_new(parser->compiler, NODE_CONDITIONAL, node->offset);
        whole_node->a = node;
        whole_node->b = parse__expression(parser);
        parse__newlines(parser);
        if (!parse__expect(parser, ":"))
            return NULL;
        parse__newlines(parser);
        whole_node->c = parse__conditional(parser);
    }
    if (whole_node != node)
        whole_node->error_offset = following->start;
    parser->depth = depth;
    return parser->failed ? NULL : whole_node;
}

static const struct {
    const char *symbol;
    enum operator op;
} assignments[] = {{"+=", OP_ADD},  {"-=", OP_SUB},  {"*=", OP_MUL},    {"/=", OP_DIV}, {"%=", OP_REM}, {"**=", OP_POW},
                   {"<<=", OP_SHL}, {">>=", OP_SHR}, {">>>=", OP_USHR}, {"&=", OP_AND}, {"^=", OP_XOR}, {"|=", OP_OR}};

/* Returns: groovyc's name and class of an expression that cannot be assigned. */
static struct slice describe_target(struct groovy_parser *parser, const struct node *target)
{
    static const char *const classes[NODE_KIND_COUNT] = {[NODE_RANGE] = "RangeExpression",
                                                         [NODE_NEGATE] = "UnaryMinusExpression",
                                                         [NODE_PLUS] = "UnaryPlusExpression",
                                                         [NODE_NOT] = "NotExpression",
                                                         [NODE_INVERT] = "BitwiseNegationExpression",
                                                         [NODE_LIST] = "ListExpression",
                                                         [NODE_MAP] = "MapExpression",
                                                         [NODE_CAST] = "CastExpression",
                                                         [NODE_COERCE] = "CastExpression",
                                                         [NODE_LAMBDA] = "ClosureExpression",
                                                         [NODE_GSTRING] = "GStringExpression",
                                                         [NODE_CONDITIONAL] = "TernaryExpression",
                                                         [NODE_ELVIS] = "ElvisOperatorExpression",
                                                         [NODE_NEW] = "ConstructorCallExpression",
                                                         [NODE_STEP] = "PostfixExpression"};
    struct arena *arena = parser->compiler->scratch;
    bool sign = target->kind == NODE_NEGATE || target->kind == NODE_PLUS;
    struct slice shown = explain_groovy_text(parser->compiler, sign ? target->a : target);
    if (target->kind == NODE_CONST)
        return arena_printf(arena, "[%.*s] is a constant expression, but it should be a variable expression",
                            SLICE_ARG(shown));
    if (target->kind == NODE_CALL || target->kind == NODE_CALL_LOCAL)
        return arena_printf(arena, "\"%.*s\" is a method call expression, but it should be a variable expression",
                            SLICE_ARG(shown));
    if (classes[target->kind] == NULL)
        return arena_printf(arena, "%.*s is a binary expression, but it should be a variable expression",
                            SLICE_ARG(shown));
    return arena_printf(
        arena,
        "class org.codehaus.groovy.ast.expr.%s, with its value '%.*s', is a bad expression as the left hand "
        "side of an assignment operator",
        classes[target->kind], SLICE_ARG(shown));
}

/* Only names, members and elements can be assigned. */
static struct node *check_target(struct groovy_parser *parser, const struct token *token, struct node *target)
{
    if (target->kind == NODE_NAME || target->kind == NODE_DOT || target->kind == NODE_BRACE)
        return target;
    struct slice what = arena_printf(parser->compiler->scratch, "\n%.*s", SLICE_ARG(describe_target(parser, target)));
    return parse__refuse_placed(parser, token, what);
}

static struct node *parse_assignment(struct groovy_parser *parser, struct node *target)
{
    const struct token *token = parse__peek(parser, 0);
    enum node_kind kind = parse__at(parser, "=") ? NODE_ASSIGN : NODE_COMPOUND;
    size_t i = 0, count = sizeof assignments / sizeof *assignments;
    while (kind == NODE_COMPOUND && i < count && !parse__at(parser, assignments[i].symbol))
        i++;
    if (i == count)
        return target;
    struct node *node = node_new(parser->compiler, kind, target->offset);
    node->error_offset = token->start;
    node->op = kind == NODE_COMPOUND ? (uint8_t)assignments[i].op : 0;
    node->a = target;
    parser->at++;
    parse__newlines(parser);
    node->b = parse__command(parser);
    if (parser->failed || check_target(parser, token, target) == NULL)
        return NULL;
    return node;
}

struct node *parse__expression(struct groovy_parser *parser)
{
    unsigned depth = parser->depth;
    if (parser->failed || !parse__enter(parser))
        return NULL;
    struct node *node = parse__conditional(parser);
    if (node != NULL)
        node = parse_assignment(parser, node);
    parser->depth = depth;
    return parser->failed ? NULL : node;
}

struct node *parse__command(struct groovy_parser *parser)
{
    parser->statement = parser->at;
    struct node *head = parse__expression(parser);
    if (head == NULL || head != parser->last_path || parse__at(parser, "else"))
        return head;
    return parse__command_arguments(parser, head);
}
