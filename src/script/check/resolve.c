/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's expressions: types, symbols, unused results. See resolve.h. */
#include "script/check/resolve.h"

#include "base/check.h"
#include "script/value/regex.h"

/* An expression that is false; compile_fail() returns NULL. */
#define FAIL(type, offset, ...)                                       \
    __extension__({                                                   \
        compile_fail(r->compiler, CLASS_##type, offset, __VA_ARGS__); \
        false;                                                        \
    })
#define ILLEGAL(node, ...) FAIL(ILLEGAL_ARGUMENT_EXCEPTION, (node)->offset, __VA_ARGS__)
#define MISCAST(node, ...) FAIL(CLASS_CAST_EXCEPTION, (node)->offset, __VA_ARGS__)

/* Variables */

struct variable *resolve__define(struct resolver *r, int32_t offset, type_id type, struct slice name, bool final)
{
    struct variable *old = resolve__find(r, name);
    if (old != NULL)
        return compile_fail(r->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, offset, "variable [%.*s] is already defined",
                            SLICE_ARG(name));
    struct resolver_scope *scope = r->scope;
    struct variable *variable = arena_zalloc(r->compiler->scratch, sizeof *variable);
    *variable = (struct variable){name, type, scope->function->slot_count++, final, scope->variables};
    scope->variables = variable;
    return variable;
}

static struct variable *find_in(struct resolver *r, struct resolver_scope *scope, struct slice name)
{
    for (struct variable *variable = scope->variables; variable != NULL; variable = variable->outer)
        if (slice_equal(variable->name, name))
            return variable;
    if (scope->lambda_outer == NULL)
        return NULL;
    struct variable *outer = find_in(r, scope->lambda_outer, name);
    if (outer == NULL)
        return NULL;
    /*
     * A lambda captures a copy, which is read-only. It follows the lambda's own variables in the
     * list.
     */
    struct function *function = scope->function;
    struct variable *copy = arena_zalloc(r->compiler->scratch, sizeof *copy), **last = &scope->variables;
    *copy = (struct variable){name, outer->type, function->slot_count++, true, NULL};
    while (*last != NULL)
        last = &(*last)->outer;
    *last = copy;
    size_t capacity = function->capture_count;
    if ((capacity & (capacity - 1)) == 0) {
        struct capture *captures =
            arena_alloc(r->compiler->arena, (capacity == 0 ? 1 : capacity * 2) * sizeof *captures);
        if (capacity > 0)
            memcpy(captures, function->captures, capacity * sizeof *captures);
        function->captures = captures;
    }
    function->captures[function->capture_count++] = (struct capture){name, outer->slot, copy->slot, outer->type};
    return copy;
}

struct variable *resolve__find(struct resolver *r, struct slice name)
{
    return find_in(r, r->scope, name);
}

/* Conversions */

bool resolve__cast(struct resolver *r, struct node **link, type_id target, bool explicit, bool internal)
{
    struct node *node = *link;
    if (target == TYPE_NONE || node->type == target)
        return true;
    if (!cast_legal(node->type, target, explicit, internal))
        return MISCAST(node, "Cannot cast from [%s] to [%s].", show_type(node->type).text, show_type(target).text);
    struct node *cast = node_new(r->compiler, NODE_CAST, node->offset);
    cast->a = node;
    cast->next = node->next;
    cast->type = cast->target = target;
    cast->flags = explicit ? NODE_EXPLICIT : 0;
    node->next = NULL;
    *link = cast;
    return true;
}

bool resolve__value(struct resolver *r, struct node **link, struct type_hint hint)
{
    if (!resolve__visit(r, link, hint))
        return false;
    struct node *node = *link;
    if (node->kind == NODE_NAME)
        return ILLEGAL(node, "cannot resolve symbol [%.*s]", SLICE_ARG(node->text));
    if (node->kind == NODE_TYPE)
        return ILLEGAL(node, "value required: instead found unexpected type [%s]", show_type(node->target).text);
    return true;
}

bool resolve__as(struct resolver *r, struct node **link, struct type_hint hint)
{
    return resolve__value(r, link, hint) && resolve__cast(r, link, hint.target, hint.explicit, hint.internal);
}

/* Errors that most expressions share: they can neither be assigned nor be a statement. */
static bool only_read(struct resolver *r, const struct node *node, struct type_hint hint, const char *what,
                      const char *unused)
{
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to %s", what);
    if (!hint.read)
        return ILLEGAL(node, "not a statement: %s", unused);
    return true;
}

static bool only_read_operator(struct resolver *r, const struct node *node, struct type_hint hint, const char *name,
                               const char *symbol)
{
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to %s operation [%s]", name, symbol);
    if (!hint.read)
        return ILLEGAL(node, "not a statement: result not used from %s operation [%s]", name, symbol);
    return true;
}

/* Constants */

static bool integer_constant(struct resolver *r, struct node *node, struct slice text, struct type_hint hint)
{
    unsigned radix = node->slot;
    char suffix = text.data[text.len - 1];
    int64_t i;
    if (suffix == 'l' || suffix == 'L') {
        if (!number_parse_i64(slice_make(text.data, text.len - 1), radix, INT64_MIN, INT64_MAX, &i))
            return ILLEGAL(node, "Invalid long constant [%.*s].", SLICE_ARG(text));
        node->value = value_long(i);
        node->type = CLASS_LONG;
        return true;
    }
    if (!number_parse_i64(text, radix, INT32_MIN, INT32_MAX, &i)) {
        bool as_long = number_parse_i64(text, radix, INT64_MIN, INT64_MAX, &i);
        if (as_long)
            return ILLEGAL(node, "Invalid int constant [%.*s]. If you want a long constant then change it to [%.*sL].",
                           SLICE_ARG(text), SLICE_ARG(text));
        return ILLEGAL(node, "Invalid int constant [%.*s].", SLICE_ARG(text));
    }
    node->value = value_int(i);
    node->type = CLASS_INT;
    if (hint.target == CLASS_BYTE && i >= INT8_MIN && i <= INT8_MAX)
        node->value.kind = VALUE_BYTE, node->type = CLASS_BYTE;
    else if (hint.target == CLASS_CHAR && i >= 0 && i <= UINT16_MAX)
        node->value.kind = VALUE_CHAR, node->type = CLASS_CHAR;
    else if (hint.target == CLASS_SHORT && i >= INT16_MIN && i <= INT16_MAX)
        node->value.kind = VALUE_SHORT, node->type = CLASS_SHORT;
    return true;
}

static bool number_constant(struct resolver *r, struct node *node, bool negate, struct type_hint hint)
{
    struct slice text = node->text;
    bool decimal = node->slot == 0;
    if (node->slot == 16)
        text = slice_from_offset(text, 2);
    else if (node->slot == 8)
        text = slice_from_offset(text, 1);
    if (negate)
        text = arena_printf(r->compiler->arena, "-%.*s", SLICE_ARG(text));
    const char *kind = decimal ? "decimal" : "numeric";
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to %s constant [%.*s]", kind, SLICE_ARG(text));
    if (!hint.read)
        return ILLEGAL(node, "not a statement: %s constant [%.*s] not used", kind, SLICE_ARG(text));
    char suffix = text.data[text.len - 1];
    bool is_double = suffix == 'd' || suffix == 'D', is_float = suffix == 'f' || suffix == 'F';
    if (!decimal && !is_double && !is_float)
        return integer_constant(r, node, text, hint);
    /*
     * As in the original, a hexadecimal constant that ends in d or f is read as a fraction and
     * refused.
     */
    if (!decimal && node->slot != 10)
        return FAIL(ILLEGAL_STATE_EXCEPTION, node->offset, "Illegal tree structure.");
    double d;
    struct slice digits = is_double || is_float ? slice_make(text.data, text.len - 1) : text;
    if (!number_parse_double(digits, &d))
        return ILLEGAL(node, "Invalid %s constant [%.*s].", is_float ? "float" : "double", SLICE_ARG(text));
    node->value = is_float ? value_float(d) : value_double(d);
    node->type = is_float ? CLASS_FLOAT : CLASS_DOUBLE;
    return true;
}

static bool visit_constant(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (node->value.kind == VALUE_INT)
        return number_constant(r, node, false, hint);
    if (node->value.kind == VALUE_NULL) {
        if (!only_read(r, node, hint, "null constant", "null constant not used"))
            return false;
        if (hint.target != TYPE_NONE && type_primitive(hint.target))
            return ILLEGAL(node, "Cannot cast null to a primitive type [%s].", show_type(hint.target).text);
        node->type = hint.target == TYPE_NONE ? CLASS_OBJECT : hint.target;
        return true;
    }
    const char *kind = node->value.kind == VALUE_BOOLEAN ? "boolean" : "string";
    if (hint.write)
        return ILLEGAL(node, "invalid assignment: cannot assign a value to %s constant [%.*s]", kind,
                       SLICE_ARG(node->text));
    if (!hint.read)
        return ILLEGAL(node, "not a statement: %s constant [%.*s] not used", kind, SLICE_ARG(node->text));
    node->type = node->value.kind == VALUE_BOOLEAN ? CLASS_BOOLEAN : CLASS_STRING;
    return true;
}

static bool is_number_constant(const struct node *node)
{
    return node->kind == NODE_CONST && node->value.kind == VALUE_INT && node->type == TYPE_NONE;
}

static bool visit_pattern(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct slice flags = text_slice(r->compiler->scratch, (struct text *)node->value.object);
    struct slice what = arena_printf(r->compiler->scratch, "regex constant [%.*s] with flags [%.*s]",
                                     SLICE_ARG(node->text), SLICE_ARG(flags));
    struct slice unused = arena_printf(r->compiler->scratch, "%.*s not used", SLICE_ARG(what));
    if (!only_read(r, node, hint, what.data, unused.data))
        return false;
    int bits;
    char letter;
    if (!regex_flags(flags, &bits, &letter))
        return FAIL(ILLEGAL_ARGUMENT_EXCEPTION, -1, "invalid regular expression: unknown flag [%c]", letter);
    const char *error;
    size_t index;
    struct regex *pattern =
        regex_compile(r->compiler->arena, text_constant(r->compiler->arena, node->text), bits, &error, &index);
    if (pattern == NULL) {
        compile_fail(r->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, node->offset + 1 + (int32_t)index,
                     "invalid regular expression: could not compile %.*s", SLICE_ARG(what));
        r->compiler->error.cause = "pattern_syntax_exception";
        return false;
    }
    node->kind = NODE_CONST;
    node->value = value_of(pattern);
    node->type = CLASS_PATTERN;
    return true;
}

/* Names */

static bool visit_name(struct resolver *r, struct node *node, struct type_hint hint)
{
    type_id type = resolve__type(node->text);
    if (type != TYPE_NONE) {
        struct shown shown = show_type(type);
        if (hint.write)
            return ILLEGAL(node, "invalid assignment: cannot write a value to a static type [%s]", shown.text);
        if (!hint.read)
            return ILLEGAL(node, "not a statement: static type [%s] not used", shown.text);
        node->kind = NODE_TYPE;
        node->target = type;
        return true;
    }
    struct variable *variable = resolve__find(r, node->text);
    if (variable == NULL) {
        bool missing = r->compiler->missing.len > 0 && slice_equal(node->text, r->compiler->missing);
        if (r->compiler->bare_names && !missing && !hint.write && hint.read) {
            node->kind = NODE_PARAM;
            node->value = node_text(r->compiler, node->text);
            node->type = hint.target != TYPE_NONE && !hint.explicit ? hint.target : CLASS_DEF;
            node->flags |= node->type != CLASS_DEF ? NODE_OPTIMIZED : 0;
            node->c = r->compiler->bare;
            r->compiler->bare = node;
        }
        return true; /* may be the first part of a qualified class name */
    }
    if (!hint.read && !hint.write)
        return ILLEGAL(node, "not a statement: variable [%.*s] not used", SLICE_ARG(node->text));
    if (hint.write && variable->final)
        return ILLEGAL(node, "Variable [%.*s] is read-only.", SLICE_ARG(node->text));
    node->kind = NODE_LOCAL;
    node->slot = variable->slot;
    node->type = variable->type;
    return true;
}

/* Operators */

static bool is_optimized(const struct node *node)
{
    return (node->kind == NODE_DOT || node->kind == NODE_BRACE) && node->a->type == CLASS_DEF;
}

static bool visit_assign(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!resolve__value(r, &node->a, (struct type_hint){.target = TYPE_NONE, .read = hint.read, .write = true}))
        return false;
    if (is_optimized(node->a)) {
        /* A `def` accepts any value without conversion. */
        if (!resolve__value(r, &node->b, TYPE_HINT_READ))
            return false;
        if (node->b->type == CLASS_VOID)
            return ILLEGAL(node, "invalid assignment: cannot assign type [void]");
        node->type = node->b->type;
    } else {
        if (!resolve__as(r, &node->b, type_hint_for(node->a->type)))
            return false;
        node->type = node->a->type;
    }
    if (!hint.read)
        node->type = CLASS_VOID;
    return true;
}

static type_id compound_type(enum operator op, type_id left, type_id right)
{
    switch (op) {
    case OP_ADD: return promote_add(left, right);
    case OP_SHL:
    case OP_SHR:
    case OP_USHR: return promote_unary(right, false) == TYPE_NONE ? TYPE_NONE : promote_unary(left, false);
    case OP_AND:
    case OP_OR:
    case OP_XOR: return promote_xor(left, right);
    default: return promote_numeric(left, right, true);
    }
}

static bool is_shift(enum operator op)
{
    return op == OP_SHL || op == OP_SHR || op == OP_USHR;
}

/* The right side of a shift keeps its own type; a long is narrowed to int. */
static bool cast_distance(struct resolver *r, struct node **link)
{
    type_id type = promote_unary((*link)->type, false);
    if (type == CLASS_LONG)
        return resolve__cast(r, link, CLASS_INT, true, false);
    return resolve__cast(r, link, type, false, false);
}

static bool visit_compound(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!resolve__value(r, &node->a, (struct type_hint){.target = TYPE_NONE, .read = hint.read, .write = true}))
        return false;
    bool step = node->kind == NODE_STEP;
    if (step) {
        node->b = node_new(r->compiler, NODE_CONST, node->offset);
        node->b->value = value_int(1);
        node->b->type = CLASS_INT;
    } else if (!resolve__value(r, &node->b, TYPE_HINT_READ)) {
        return false;
    }
    enum operator op =(enum operator) node->op;
    type_id left = node->a->type, type = compound_type(op, left, node->b->type);
    if (type == TYPE_NONE)
        return MISCAST(node, "invalid compound assignment: cannot apply [%s=] to types [%s] and [%s]",
                       operator_symbol(op), show_type(left).text, show_type(node->b->type).text);
    bool ok = is_shift(op) && type != CLASS_DEF
                  ? cast_distance(r, &node->b)
                  : type == CLASS_STRING || resolve__cast(r, &node->b, type, false, false);
    if (!ok)
        return false;
    if (!cast_legal(left, type, false, false) || !cast_legal(type, left, true, false)) {
        bool up = !cast_legal(left, type, false, false);
        return MISCAST(node, "Cannot cast from [%s] to [%s].", show_type(up ? left : type).text,
                       show_type(up ? type : left).text);
    }
    node->target = type;
    node->type = hint.read ? left : CLASS_VOID;
    return true;
}

static bool visit_unary(struct resolver *r, struct node **link, struct type_hint hint)
{
    struct node *node = *link;
    static const struct {
        const char *name, *symbol;
    } names[] = {[NODE_NOT] = {"not", "!"},
                 [NODE_NEGATE] = {"subtraction", "-"},
                 [NODE_PLUS] = {"addition", "+"},
                 [NODE_INVERT] = {"bitwise not", "~"}};
    const char *name = names[node->kind].name, *symbol = names[node->kind].symbol;
    if (!only_read_operator(r, node, hint, name, symbol))
        return false;
    if (node->kind == NODE_NEGATE && is_number_constant(node->a)) {
        /* The smallest int has no positive counterpart: sign and digits are one constant. */
        struct node *constant = node->a;
        constant->next = node->next;
        *link = constant;
        return number_constant(r, constant, true, hint);
    }
    if (node->kind == NODE_NOT) {
        node->type = CLASS_BOOLEAN;
        return resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN));
    }
    if (!resolve__value(r, &node->a, TYPE_HINT_READ))
        return false;
    type_id type = promote_unary(node->a->type, node->kind != NODE_INVERT);
    if (type == TYPE_NONE)
        return MISCAST(node, "cannot apply the %s operator [%s] to the type [%s]", name, symbol,
                       show_type(node->a->type).text);
    node->target = type;
    node->type = type == CLASS_DEF && hint.target != TYPE_NONE && !hint.explicit ? hint.target : type;
    if (node->type != type)
        node->flags |= NODE_OPTIMIZED;
    return resolve__cast(r, &node->a, type, false, false);
}

/* Merges a chain of text concatenations into one node. */
static void join_concat(struct node *node)
{
    struct node *parts[2] = {node->a, node->b}, **end = &node->list;
    node->kind = NODE_CONCAT;
    for (unsigned i = 0; i < 2; i++) {
        *end = parts[i]->kind == NODE_CONCAT && (parts[i]->flags & NODE_PARENTHESES) == 0 ? parts[i]->list : parts[i];
        while (*end != NULL)
            end = &(*end)->next;
    }
    node->a = node->b = NULL;
}

static bool visit_binary(struct resolver *r, struct node *node, struct type_hint hint)
{
    enum operator op =(enum operator) node->op;
    const char *name = operator_name(op), *symbol = operator_symbol(op);
    if (!only_read_operator(r, node, hint, name, symbol) || !resolve__value(r, &node->a, TYPE_HINT_READ) ||
        !resolve__value(r, &node->b, TYPE_HINT_READ))
        return false;
    type_id left = node->a->type, right = node->b->type, type;
    if (op == OP_AND || op == OP_OR)
        type = promote_numeric(left, right, false);
    else
        type = compound_type(op, left, right);
    if (type == TYPE_NONE)
        return MISCAST(node, "cannot apply the %s operator [%s] to the types [%s] and [%s]", name, symbol,
                       show_type(left).text, show_type(right).text);
    node->type = node->target = type;
    if (type == CLASS_STRING) {
        join_concat(node);
        return true;
    }
    if (type == CLASS_DEF || (is_shift(op) && promote_unary(right, false) == CLASS_DEF)) {
        if (hint.target != TYPE_NONE && !hint.explicit) {
            node->type = hint.target;
            node->flags |= hint.target != CLASS_DEF ? NODE_OPTIMIZED : 0;
        }
        node->target = CLASS_DEF;
        return true;
    }
    return resolve__cast(r, &node->a, type, false, false) &&
           (is_shift(op) ? cast_distance(r, &node->b) : resolve__cast(r, &node->b, type, false, false));
}

static bool visit_find(struct resolver *r, struct node *node, struct type_hint hint)
{
    bool find = node->kind == NODE_FIND;
    node->type = CLASS_BOOLEAN;
    return only_read_operator(r, node, hint, find ? "find" : "match", find ? "=~" : "==~") &&
           resolve__value(r, &node->a, TYPE_HINT_READ) && resolve__value(r, &node->b, TYPE_HINT_READ) &&
           resolve__cast(r, &node->a, CLASS_STRING, false, false) &&
           resolve__cast(r, &node->b, CLASS_PATTERN, false, false);
}

static bool visit_logic(struct resolver *r, struct node *node, struct type_hint hint)
{
    bool and = node->kind == NODE_AND;
    node->type = CLASS_BOOLEAN;
    return only_read_operator(r, node, hint, and? "boolean and" : "boolean or", and? "&&" : "||") &&
           resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)) &&
           resolve__as(r, &node->b, type_hint_for(CLASS_BOOLEAN));
}

static bool is_null(const struct node *node)
{
    return node->kind == NODE_CONST && node->value.kind == VALUE_NULL;
}

static bool visit_compare(struct resolver *r, struct node *node, struct type_hint hint)
{
    static const struct {
        const char *name, *symbol;
    } names[] = {
        [COMPARE_EQ] = {"equals", "=="},
        [COMPARE_NE] = {"not equals", "!="},
        [COMPARE_LT] = {"less than", "<"},
        [COMPARE_LE] = {"less than or equals", "<="},
        [COMPARE_GT] = {"greater than", ">"},
        [COMPARE_GE] = {"greater than or equals", ">="},
        [COMPARE_SAME] = {"reference equals", "==="},
        [COMPARE_NOT_SAME] = {"reference not equals", "!=="},
    };
    const char *name = names[node->op].name, *symbol = names[node->op].symbol;
    if (!only_read_operator(r, node, hint, name, symbol) || !resolve__value(r, &node->a, TYPE_HINT_READ) ||
        !resolve__value(r, &node->b, TYPE_HINT_READ))
        return false;
    bool ordered = node->op >= COMPARE_LT && node->op <= COMPARE_GE;
    bool same = node->op == COMPARE_SAME || node->op == COMPARE_NOT_SAME;
    type_id left = node->a->type, right = node->b->type;
    type_id type = ordered ? promote_numeric(left, right, true) : promote_equality(left, right);
    if (type == TYPE_NONE)
        return MISCAST(node, "cannot apply the %s operator [%s] to the types [%s] and [%s]", name, symbol,
                       show_type(left).text, show_type(right).text);
    if (!ordered && is_null(node->a) && is_null(node->b))
        return ILLEGAL(node, "extraneous comparison of [null] constants");
    node->type = CLASS_BOOLEAN;
    node->target = type;
    if (type == CLASS_DEF && !same)
        return true;
    return resolve__cast(r, &node->a, type, false, false) && resolve__cast(r, &node->b, type, false, false);
}

/* Replaces the cast by its operand and, if needed, a conversion node. */
static bool visit_cast(struct resolver *r, struct node **link, struct type_hint hint)
{
    struct node *node = *link;
    struct slice what =
        arena_printf(r->compiler->scratch, "an explicit cast with target type [%.*s]", SLICE_ARG(node->text));
    struct slice unused = arena_printf(
        r->compiler->scratch, "result not used from explicit cast with target type [%.*s]", SLICE_ARG(node->text));
    if (!only_read(r, node, hint, what.data, unused.data))
        return false;
    type_id type = resolve__type(node->text);
    if (type == TYPE_NONE)
        return ILLEGAL(node, "cannot resolve type [%.*s]", SLICE_ARG(node->text));
    if (!resolve__as(r, &node->a, (struct type_hint){.target = type, .read = true, .explicit = true}))
        return false;
    node->a->next = node->next;
    *link = node->a;
    return true;
}

static bool visit_instanceof(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct slice what = arena_printf(r->compiler->scratch, "instanceof with target type [%.*s]", SLICE_ARG(node->text));
    struct slice unused = arena_printf(r->compiler->scratch, "result not used from %.*s", SLICE_ARG(what));
    if (!only_read(r, node, hint, what.data, unused.data))
        return false;
    node->target = resolve__type(node->text);
    if (node->target == TYPE_NONE)
        return ILLEGAL(node, "Not a type [%.*s].", SLICE_ARG(node->text));
    node->type = CLASS_BOOLEAN;
    return resolve__value(r, &node->a, TYPE_HINT_READ);
}

static bool visit_conditional(struct resolver *r, struct node *node, struct type_hint hint)
{
    struct type_hint inner = hint;
    inner.read = true;
    if (!only_read(r, node, hint, "conditional operation [?:]", "result not used from conditional operation [?:]") ||
        !resolve__as(r, &node->a, type_hint_for(CLASS_BOOLEAN)) || !resolve__value(r, &node->b, inner) ||
        !resolve__value(r, &node->c, inner))
        return false;
    type_id type = hint.target;
    if (type == TYPE_NONE)
        type = promote_conditional(node->b->type, node->c->type);
    if (type == TYPE_NONE)
        return MISCAST(node, "cannot apply the conditional operator [?:] to the types [%s] and [%s]",
                       show_type(node->b->type).text, show_type(node->c->type).text);
    node->type = type;
    return resolve__cast(r, &node->b, type, hint.explicit, hint.internal) &&
           resolve__cast(r, &node->c, type, hint.explicit, hint.internal);
}

static bool visit_elvis(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!only_read(r, node, hint, "elvis operation [?:]", "result not used from elvis operation [?:]"))
        return false;
    if (hint.target != TYPE_NONE && type_primitive(hint.target))
        return ILLEGAL(node, "Elvis operator cannot return primitives");
    const struct node *left = node->a;
    bool constant = left->kind == NODE_CONST && left->value.kind != VALUE_NULL;
    if (!resolve__value(r, &node->a, hint) || !resolve__value(r, &node->b, hint))
        return false;
    if (is_null(node->a))
        return ILLEGAL(node, "Extraneous elvis operator. LHS is null.");
    if (constant)
        return ILLEGAL(node, "Extraneous elvis operator. LHS is a constant.");
    if (type_primitive(node->a->type))
        return ILLEGAL(node, "Extraneous elvis operator. LHS is a primitive.");
    if (is_null(node->b))
        return ILLEGAL(node, "Extraneous elvis operator. RHS is null.");
    node->type = hint.target == TYPE_NONE ? promote_conditional(node->a->type, node->b->type) : hint.target;
    return resolve__cast(r, &node->a, node->type, hint.explicit, hint.internal) &&
           resolve__cast(r, &node->b, node->type, hint.explicit, hint.internal);
}

static bool visit_elements(struct resolver *r, struct node **list, type_id type)
{
    for (struct node **item = list; *item != NULL; item = &(*item)->next)
        if (!resolve__as(r, item, type_hint_argument(type)))
            return false;
    return true;
}

static bool visit_list(struct resolver *r, struct node *node, struct type_hint hint)
{
    bool map = node->kind == NODE_MAP;
    node->type = map ? CLASS_HASH_MAP : CLASS_ARRAY_LIST;
    return only_read(r, node, hint, map ? "map initializer" : "list initializer",
                     map ? "result not used from map initializer" : "result not used from list initializer") &&
           visit_elements(r, &node->list, CLASS_DEF);
}

static bool visit_new_array(struct resolver *r, struct node *node, struct type_hint hint)
{
    if (!only_read(r, node, hint, "new array", "result not used from new array"))
        return false;
    node->type = node->target = resolve__type(node->text);
    if (node->type == TYPE_NONE)
        return ILLEGAL(node, "Not a type [%.*s].", SLICE_ARG(node->text));
    return visit_elements(r, &node->list, node->kind == NODE_ARRAY_INIT ? type_element(node->type) : CLASS_INT);
}

bool resolve__visit(struct resolver *r, struct node **link, struct type_hint hint)
{
    struct node *node = *link;
    switch (node->kind) {
    case NODE_CONST: return visit_constant(r, node, hint);
    case NODE_PATTERN: return visit_pattern(r, node, hint);
    case NODE_NAME: return visit_name(r, node, hint);
    case NODE_ASSIGN: return visit_assign(r, node, hint);
    case NODE_COMPOUND:
    case NODE_STEP: return visit_compound(r, node, hint);
    case NODE_NOT:
    case NODE_NEGATE:
    case NODE_PLUS:
    case NODE_INVERT: return visit_unary(r, link, hint);
    case NODE_BINARY: return visit_binary(r, node, hint);
    case NODE_FIND:
    case NODE_MATCH: return visit_find(r, node, hint);
    case NODE_AND:
    case NODE_OR: return visit_logic(r, node, hint);
    case NODE_COMPARE: return visit_compare(r, node, hint);
    case NODE_CAST: return visit_cast(r, link, hint);
    case NODE_INSTANCEOF: return visit_instanceof(r, node, hint);
    case NODE_CONDITIONAL: return visit_conditional(r, node, hint);
    case NODE_ELVIS: return visit_elvis(r, node, hint);
    case NODE_LIST:
    case NODE_MAP: return visit_list(r, node, hint);
    case NODE_NEW_ARRAY:
    case NODE_ARRAY_INIT: return visit_new_array(r, node, hint);
    case NODE_NEW: return resolve__new(r, node, hint);
    case NODE_DOT: return resolve__dot(r, link, hint);
    case NODE_BRACE: return resolve__brace(r, node, hint);
    case NODE_CALL: return resolve__call(r, node, hint);
    case NODE_CALL_LOCAL: return resolve__call_local(r, node, hint);
    case NODE_LAMBDA: return resolve__lambda(r, node, hint);
    case NODE_REFERENCE: return resolve__reference(r, node, hint);
    default: UNREACHABLE(); return false;
    }
}
