/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: evaluates a random script directly from its tree; see script_tree.h.
 *
 * Arithmetic is the Java Language Specification's: §15.17 to §15.22 for operators, §5.1.3 for
 * narrowing, §5.6 for promotion.
 */
#include "script_tree.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { STEPS_MAX = 200000 };

struct val {
    enum type type;
    int64_t i; /* ints in their range; booleans */
    double d;
    const char *s;
};

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE, FLOW_THROW };

struct machine {
    const struct script_tree *tree;
    struct arena *arena;
    struct val variables[VARIABLES + LOCALS];
    struct result *result;
    enum outcome thrown;
    int steps;
};

static bool eval(struct machine *m, const struct expr *e, struct val *ret);

static bool throw(struct machine * m, enum outcome outcome)
{
    m->thrown = outcome;
    return false;
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

static int32_t to_int(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    return low <= INT32_MAX ? (int32_t)low : (int32_t)(low - (uint32_t)INT32_MAX - 1) + INT32_MIN;
}

static int64_t to_long(uint64_t bits)
{
    return bits <= INT64_MAX ? (int64_t)bits : (int64_t)(bits - (uint64_t)INT64_MAX - 1) + INT64_MIN;
}

static int64_t narrow(enum type type, uint64_t bits)
{
    return type == TYPE_INT ? to_int(bits) : to_long(bits);
}

/*
 * Converts a floating-point number to an integer: NaN becomes 0, a number out of range the nearest
 * limit.
 */
static int64_t from_double(enum type type, double d)
{
    double least = type == TYPE_INT ? -2147483648.0 : -9223372036854775808.0;
    if (isnan(d))
        return 0;
    if (d <= least)
        return type == TYPE_INT ? INT32_MIN : INT64_MIN;
    if (d >= -least)
        return type == TYPE_INT ? INT32_MAX : INT64_MAX;
    return (int64_t)d;
}

static double as_double(struct val v)
{
    return v.type == TYPE_DOUBLE ? v.d : (double)v.i;
}

static struct val convert(struct val v, enum type type)
{
    struct val out = {.type = type, .i = v.i, .d = v.d, .s = v.s};
    if (type == TYPE_DOUBLE)
        out.d = as_double(v);
    else if ((type == TYPE_INT || type == TYPE_LONG) && v.type == TYPE_DOUBLE)
        out.i = from_double(type, v.d);
    else if (type == TYPE_INT)
        out.i = to_int((uint64_t)v.i);
    return out;
}

static enum type promoted(enum type a, enum type b)
{
    return a == TYPE_DOUBLE || b == TYPE_DOUBLE ? TYPE_DOUBLE : a == TYPE_LONG || b == TYPE_LONG ? TYPE_LONG : TYPE_INT;
}

static struct val shift(int op, struct val a, int64_t distance)
{
    unsigned bits = a.type == TYPE_INT ? 32 : 64, by = (unsigned)distance & (bits - 1);
    uint64_t pattern = a.type == TYPE_INT ? (uint64_t)(uint32_t)a.i : (uint64_t)a.i;
    if (op == OP_SHL)
        return (struct val){.type = a.type, .i = narrow(a.type, pattern << by)};
    if (op == OP_USHR)
        return (struct val){.type = a.type, .i = narrow(a.type, pattern >> by)};
    for (; by > 0; by--) /* the sign comes in from the left: halves, rounded down */
        a.i = (a.i - (a.i & 1)) / 2;
    return a;
}

static bool integral(struct machine *m, int op, enum type type, int64_t a, int64_t b, struct val *ret)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    *ret = (struct val){.type = type};
    if ((op == OP_DIV || op == OP_REM) && b == 0)
        return throw(m, OUTCOME_ARITHMETIC);
    switch (op) {
    case OP_ADD: ret->i = narrow(type, x + y); break;
    case OP_SUB: ret->i = narrow(type, x - y); break;
    case OP_MUL: ret->i = narrow(type, x * y); break;
    case OP_AND: ret->i = narrow(type, x & y); break;
    case OP_OR: ret->i = narrow(type, x | y); break;
    case OP_XOR: ret->i = narrow(type, x ^ y); break;
    case OP_DIV: ret->i = b == -1 ? narrow(type, 0 - x) : a / b; break;
    default: ret->i = b == -1 ? 0 : a % b; break;
    }
    return true;
}

static bool arithmetic(struct machine *m, int op, struct val a, struct val b, struct val *ret)
{
    if (op == OP_SHL || op == OP_SHR || op == OP_USHR) {
        *ret = shift(op, a, b.i);
        return true;
    }
    enum type type = promoted(a.type, b.type);
    if (type != TYPE_DOUBLE)
        return integral(m, op, type, a.i, b.i, ret);
    double x = as_double(a), y = as_double(b);
    *ret = (struct val){.type = TYPE_DOUBLE};
    ret->d = op == OP_ADD ? x + y : op == OP_SUB ? x - y : op == OP_MUL ? x * y : op == OP_DIV ? x / y : fmod(x, y);
    return true;
}

static bool compare(int op, struct val a, struct val b)
{
    if (a.type == TYPE_STRING)
        return (strcmp(a.s, b.s) == 0) == (op == OP_EQ);
    if (promoted(a.type, b.type) == TYPE_DOUBLE && a.type != TYPE_BOOLEAN) {
        double x = as_double(a), y = as_double(b);
        return op == OP_LT   ? x < y
               : op == OP_GT ? x > y
               : op == OP_LE ? x <= y
               : op == OP_GE ? x >= y
               : op == OP_EQ ? x == y
                             : x != y;
    }
    return op == OP_LT   ? a.i < b.i
           : op == OP_GT ? a.i > b.i
           : op == OP_LE ? a.i <= b.i
           : op == OP_GE ? a.i >= b.i
           : op == OP_EQ ? a.i == b.i
                         : a.i != b.i;
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static const char *keep(struct machine *m, struct slice text)
{
    return arena_copy(m->arena, text).data;
}

static const char *to_text(struct machine *m, struct val v)
{
    char digits[32];
    if (v.type == TYPE_STRING)
        return v.s;
    if (v.type == TYPE_BOOLEAN)
        return v.i ? "true" : "false";
    snprintf(digits, sizeof digits, "%lld", (long long)v.i);
    return keep(m, slice_from(digits));
}

static bool concatenate(struct machine *m, struct val a, struct val b, struct val *ret)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&out, slice_from(to_text(m, a)));
    buf_slice(&out, slice_from(to_text(m, b)));
    bool fits = buf_as_slice(&out).len <= TEXT_MAX;
    *ret = (struct val){.type = TYPE_STRING, .s = keep(m, buf_as_slice(&out))};
    buf_deinit(&out);
    return fits || throw(m, OUTCOME_TOO_LONG);
}

static bool substring(struct machine *m, const char *s, int64_t from, int64_t to, struct val *ret)
{
    if (from < 0 || to > (int64_t)strlen(s) || from > to)
        return throw(m, OUTCOME_TEXT_INDEX);
    *ret = (struct val){.type = TYPE_STRING, .s = keep(m, slice_make(s + from, (size_t)(to - from)))};
    return true;
}

/* The texts that are looked for are never empty. */
static bool replace(struct machine *m, const char *s, const char *from, const char *to, struct val *ret)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    for (const char *hit; (hit = strstr(s, from)) != NULL; s = hit + strlen(from)) {
        buf_slice(&out, slice_make(s, (size_t)(hit - s)));
        buf_slice(&out, slice_from(to));
    }
    buf_slice(&out, slice_from(s));
    bool fits = buf_as_slice(&out).len <= TEXT_MAX;
    *ret = (struct val){.type = TYPE_STRING, .s = keep(m, buf_as_slice(&out))};
    buf_deinit(&out);
    return fits || throw(m, OUTCOME_TOO_LONG);
}

static const char *upper(struct machine *m, const char *s)
{
    char *copy = (char *)(uintptr_t)keep(m, slice_from(s));
    for (char *p = copy; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    return copy;
}

static bool text_expr(struct machine *m, const struct expr *e, struct val *ret)
{
    struct val a, b = {0}, c = {0};
    if (!eval(m, e->a, &a) || (e->b != NULL && !eval(m, e->b, &b)) || (e->c != NULL && !eval(m, e->c, &c)))
        return false;
    switch (e->kind) {
    case EXPR_LENGTH: *ret = (struct val){.type = TYPE_INT, .i = (int64_t)strlen(a.s)}; return true;
    case EXPR_SUBSTRING: return substring(m, a.s, b.i, c.i, ret);
    case EXPR_REPLACE: return replace(m, a.s, b.s, c.s, ret);
    case EXPR_UPPER: *ret = (struct val){.type = TYPE_STRING, .s = upper(m, a.s)}; return true;
    default: *ret = (struct val){.type = TYPE_BOOLEAN, .i = strstr(a.s, b.s) != NULL}; return true;
    }
}

/* --- The list and the map ----------------------------------------------------------------------------------------- */

static int map_find(const struct result *r, const char *key)
{
    for (int i = 0; i < r->map_count; i++)
        if (strcmp(r->keys[i], key) == 0)
            return i;
    return -1;
}

static bool collection_expr(struct machine *m, const struct expr *e, struct val *ret)
{
    struct result *r = m->result;
    struct val a = {0};
    if (e->a != NULL && !eval(m, e->a, &a))
        return false;
    *ret = (struct val){.type = e->type};
    switch (e->kind) {
    case EXPR_SIZE: ret->i = r->list_count; return true;
    case EXPR_MAP_SIZE: ret->i = r->map_count; return true;
    case EXPR_MAP_HAS: ret->i = map_find(r, a.s) >= 0; return true;
    case EXPR_GET:
        if (a.i < 0 || a.i >= r->list_count)
            return throw(m, OUTCOME_INDEX);
        ret->i = r->list[a.i];
        return true;
    default: {
        int at = map_find(r, a.s);
        if (at < 0)
            return eval(m, e->b, ret);
        ret->i = r->values[at];
        return true;
    }
    }
}

/* l[b] and l.remove(a) take an index from the end if it is negative; l.get, l.add do not. */
static bool change_list(struct machine *m, const struct stmt *s)
{
    struct result *r = m->result;
    struct val a, b = {0};
    if (s->b != NULL && !eval(m, s->b, &b))
        return false;
    if (!eval(m, s->a, &a))
        return false;
    int64_t at = s->kind == STMT_LIST_REMOVE ? a.i : s->kind == STMT_LIST_ADD ? r->list_count : b.i;
    if (s->kind == STMT_LIST_SET && at < 0)
        at += r->list_count;
    bool grows = s->kind == STMT_LIST_ADD || s->kind == STMT_LIST_INSERT;
    if (at < 0 || at > r->list_count - (grows ? 0 : 1))
        return throw(m, OUTCOME_INDEX);
    if (grows && r->list_count == LIST_MAX)
        return throw(m, OUTCOME_TOO_LONG);
    if (grows)
        memmove(&r->list[at + 1], &r->list[at], (size_t)(r->list_count++ - at) * sizeof *r->list);
    if (s->kind == STMT_LIST_REMOVE)
        memmove(&r->list[at], &r->list[at + 1], (size_t)(--r->list_count - at) * sizeof *r->list);
    else
        r->list[at] = a.i;
    return true;
}

static bool change_map(struct machine *m, const struct stmt *s)
{
    struct result *r = m->result;
    struct val a = {0}, b;
    if (!eval(m, s->b, &b) || (s->a != NULL && !eval(m, s->a, &a)))
        return false;
    int at = map_find(r, b.s);
    if (s->kind == STMT_MAP_REMOVE) {
        for (int i = at; at >= 0 && i < r->map_count - 1; i++) {
            r->keys[i] = r->keys[i + 1];
            r->values[i] = r->values[i + 1];
        }
        r->map_count -= at >= 0;
        return true;
    }
    if (at < 0 && r->map_count == MAP_MAX)
        return throw(m, OUTCOME_TOO_LONG);
    if (at < 0)
        r->keys[at = r->map_count++] = b.s;
    r->values[at] = a.i;
    return true;
}

/* --- Expressions -------------------------------------------------------------------------------------------------- */

static bool step(struct machine *m, const struct expr *e, struct val *ret)
{
    struct val *v = &m->variables[e->variable], before = *v;
    struct val one = {.type = TYPE_INT, .i = 1};
    struct val after;
    if (!arithmetic(m, e->op, before, one, &after))
        return false;
    *v = convert(after, before.type);
    *ret = e->i ? *v : before;
    return true;
}

static bool cast(struct machine *m, const struct expr *e, struct val *ret)
{
    struct val a;
    if (!eval(m, e->a, &a))
        return false;
    *ret = convert(a, e->op == 'b' || e->op == 's' ? TYPE_INT : e->type);
    uint64_t bits = (uint64_t)ret->i;
    if (e->op == 'b')
        ret->i = (int64_t)(bits & 0x7f) - (int64_t)(bits & 0x80);
    if (e->op == 's')
        ret->i = (int64_t)(bits & 0x7fff) - (int64_t)(bits & 0x8000);
    return true;
}

static bool exec(struct machine *m, const struct stmt *s, enum flow *ret_flow);

static bool call(struct machine *m, const struct expr *e, struct val *ret)
{
    const struct script_function *f = &m->tree->functions[e->variable];
    struct val arguments[2], outer[LOCALS];
    if (!eval(m, e->a, &arguments[0]) || !eval(m, e->b, &arguments[1]))
        return false;
    memcpy(outer, &m->variables[VARIABLES], sizeof outer);
    for (int i = 0; i < 2; i++)
        m->variables[VARIABLES + i] = convert(arguments[i], f->parameters[i]);
    m->variables[VARIABLES + 2] = (struct val){.type = TYPE_INT};
    enum flow flow;
    bool ok = exec(m, f->body, &flow) && eval(m, f->value, ret);
    if (ok)
        *ret = convert(*ret, f->result);
    memcpy(&m->variables[VARIABLES], outer, sizeof outer);
    return ok;
}

static bool logic(struct machine *m, const struct expr *e, struct val *ret)
{
    if (!eval(m, e->a, ret))
        return false;
    return (e->op == OP_BOTH) != (ret->i != 0) || eval(m, e->b, ret);
}

static bool binary(struct machine *m, const struct expr *e, struct val *ret)
{
    struct val a, b;
    if (!eval(m, e->a, &a) || !eval(m, e->b, &b))
        return false;
    if (e->type == TYPE_STRING)
        return concatenate(m, a, b, ret);
    if (e->kind != EXPR_COMPARE)
        return arithmetic(m, e->op, a, b, ret);
    *ret = (struct val){.type = TYPE_BOOLEAN, .i = compare(e->op, a, b)};
    return true;
}

static bool unary(struct machine *m, const struct expr *e, struct val *ret)
{
    if (!eval(m, e->a, ret))
        return false;
    if (e->kind == EXPR_NOT)
        ret->i = !ret->i;
    else if (e->kind == EXPR_INVERT)
        ret->i = -1 - ret->i;
    else if (ret->type == TYPE_DOUBLE)
        ret->d = -ret->d;
    else
        ret->i = narrow(ret->type, 0 - (uint64_t)ret->i);
    return true;
}

static bool conditional(struct machine *m, const struct expr *e, struct val *ret)
{
    struct val a;
    if (!eval(m, e->a, &a) || !eval(m, a.i ? e->b : e->c, ret))
        return false;
    *ret = convert(*ret, e->type);
    return true;
}

static bool assign(struct machine *m, const struct expr *e, struct val *ret)
{
    if (!eval(m, e->a, ret))
        return false;
    *ret = m->variables[e->variable] = convert(*ret, variable_type(e->variable));
    return true;
}

static bool eval(struct machine *m, const struct expr *e, struct val *ret)
{
    if (++m->steps > STEPS_MAX)
        return throw(m, OUTCOME_TOO_LONG);
    switch (e->kind) {
    case EXPR_LITERAL: *ret = (struct val){.type = e->type, .i = e->i, .d = e->d, .s = e->text}; return true;
    case EXPR_VARIABLE: *ret = m->variables[e->variable]; return true;
    case EXPR_FIELD: *ret = (struct val){.type = e->type, .i = m->result->fields[e->variable]}; return true;
    case EXPR_BINARY:
    case EXPR_COMPARE: return binary(m, e, ret);
    case EXPR_LOGIC: return logic(m, e, ret);
    case EXPR_NEGATE:
    case EXPR_INVERT:
    case EXPR_NOT: return unary(m, e, ret);
    case EXPR_CAST: return cast(m, e, ret);
    case EXPR_CONDITIONAL: return conditional(m, e, ret);
    case EXPR_STEP: return step(m, e, ret);
    case EXPR_ASSIGN: return assign(m, e, ret);
    case EXPR_CALL: return call(m, e, ret);
    case EXPR_LENGTH:
    case EXPR_SUBSTRING:
    case EXPR_REPLACE:
    case EXPR_UPPER:
    case EXPR_CONTAINS: return text_expr(m, e, ret);
    default: return collection_expr(m, e, ret);
    }
}

/* --- Statements --------------------------------------------------------------------------------------------------- */

static bool compound(struct machine *m, const struct stmt *s)
{
    struct val before = m->variables[s->variable], a, after;
    if (!eval(m, s->a, &a))
        return false;
    bool ok = before.type == TYPE_STRING ? concatenate(m, before, a, &after) : arithmetic(m, s->op, before, a, &after);
    if (ok)
        m->variables[s->variable] = convert(after, before.type);
    return ok;
}

static bool change_field(struct machine *m, const struct stmt *s)
{
    enum type type = field_type(s->variable);
    struct val before = {.type = type, .i = m->result->fields[s->variable]}, a, after;
    if (!eval(m, s->a, &a))
        return false;
    after = a;
    if (s->op != 0 && !arithmetic(m, s->op, before, a, &after))
        return false;
    m->result->fields[s->variable] = convert(after, type).i;
    return true;
}

/* Executes a loop's body. Returns: false if it threw; *ret_go: whether the loop continues. */
static bool turn(struct machine *m, const struct stmt *s, bool *ret_go)
{
    enum flow flow;
    bool ok = exec(m, s->body, &flow);
    *ret_go = ok && flow != FLOW_BREAK;
    return ok;
}

static bool loop(struct machine *m, const struct stmt *s)
{
    bool go = true;
    struct val a;
    for (int64_t n = 0; go && (n < s->i || (s->kind == STMT_DO && n == 0)); n++) {
        if (s->kind != STMT_DO && (!eval(m, s->a, &a) || !a.i))
            return m->thrown == OUTCOME_DONE;
        if (!turn(m, s, &go))
            return false;
        if (go && s->kind == STMT_DO && n + 1 < s->i && (!eval(m, s->a, &a) || !a.i))
            return m->thrown == OUTCOME_DONE;
    }
    return true;
}

static bool each(struct machine *m, const struct stmt *s)
{
    bool go = true;
    for (int i = 0; go && i < m->result->list_count; i++) {
        struct val *v = &m->variables[s->variable];
        v->i = to_int((uint64_t)v->i * 31 + (uint64_t)m->result->list[i]);
        if (!turn(m, s, &go))
            return false;
    }
    return true;
}

static bool catches(const struct stmt *s, enum outcome thrown)
{
    return thrown != OUTCOME_TOO_LONG && (s->op == 'e' || thrown == OUTCOME_ARITHMETIC);
}

static bool simple(struct machine *m, const struct stmt *s, enum flow *ret_flow)
{
    struct val a;
    switch (s->kind) {
    case STMT_ASSIGN:
        if (!eval(m, s->a, &a))
            return false;
        m->variables[s->variable] = convert(a, m->variables[s->variable].type);
        return true;
    case STMT_COMPOUND: return compound(m, s);
    case STMT_STEP: return eval(m, s->a, &a);
    case STMT_FIELD: return change_field(m, s);
    case STMT_LIST_ADD:
    case STMT_LIST_INSERT:
    case STMT_LIST_SET:
    case STMT_LIST_REMOVE: return change_list(m, s);
    case STMT_MAP_PUT:
    case STMT_MAP_REMOVE: return change_map(m, s);
    default:
        if (!eval(m, s->a, &a))
            return false;
        if (a.i && s->kind == STMT_THROW)
            return throw(m, OUTCOME_THROWN);
        if (a.i)
            *ret_flow = s->kind == STMT_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return true;
    }
}

static bool one(struct machine *m, const struct stmt *s, enum flow *ret_flow)
{
    struct val a;
    switch (s->kind) {
    case STMT_IF: return eval(m, s->a, &a) && exec(m, a.i ? s->body : s->other, ret_flow);
    case STMT_WHILE:
    case STMT_DO:
    case STMT_FOR: return loop(m, s);
    case STMT_EACH: return each(m, s);
    case STMT_TRY:
        if (exec(m, s->body, ret_flow))
            return true;
        if (!catches(s, m->thrown))
            return false;
        m->thrown = OUTCOME_DONE;
        return exec(m, s->other, ret_flow);
    default: return simple(m, s, ret_flow);
    }
}

static bool exec(struct machine *m, const struct stmt *s, enum flow *ret_flow)
{
    *ret_flow = FLOW_ON;
    for (; s != NULL && *ret_flow == FLOW_ON; s = s->next)
        if (++m->steps > STEPS_MAX ? !throw(m, OUTCOME_TOO_LONG) : !one(m, s, ret_flow))
            return false;
    return true;
}

void tree_evaluate(const struct script_tree *tree, struct arena *arena, struct result *ret_result)
{
    struct machine m = {.tree = tree, .arena = arena, .result = ret_result};
    enum flow flow;
    *ret_result = (struct result){.list_count = tree->list_count, .map_count = tree->map_count};
    memcpy(ret_result->fields, tree->fields, sizeof tree->fields);
    memcpy(ret_result->list, tree->list, sizeof tree->list);
    memcpy(ret_result->keys, tree->keys, sizeof tree->keys);
    memcpy(ret_result->values, tree->values, sizeof tree->values);
    for (int i = 0; i < VARIABLES; i++)
        m.variables[i] = (struct val){.type = variable_type(i), .s = ""};
    if (!exec(&m, tree->body, &flow))
        ret_result->outcome = m.thrown;
    for (int i = 0; i < VARIABLES; i++) {
        ret_result->integers[i] = m.variables[i].i;
        ret_result->doubles[i] = m.variables[i].d;
        ret_result->texts[i] = (char *)(uintptr_t)m.variables[i].s;
    }
}
