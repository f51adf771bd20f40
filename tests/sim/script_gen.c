/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random scripts, and their text; see script_tree.h.
 *
 * What would not compile is never made: conditions and dividends hold a variable, so that nothing
 * is constant where Painless refuses a constant; no name is used twice; a list is not changed while
 * it is walked.
 */
#include "script_tree.h"

#include <inttypes.h>
#include <math.h>

#include "base/arena.h"

struct maker {
    struct rng *rng;
    struct arena *arena;
    struct script_tree *tree;
    int function; /* in whose body we are; -1: the script */
    int loops;    /* around us */
    int walking;  /* loops over the list around us */
    int left;     /* statements still to be made */
};

static struct expr *make_expr(struct maker *m, enum type type, int depth);
static struct stmt *make_block(struct maker *m, int depth);

static int roll(struct rng *rng, int n)
{
    return (int)rng_below(rng, (uint64_t)n);
}

static struct expr *expr_new(struct maker *m, enum expr_kind kind, enum type type)
{
    struct expr *e = arena_zalloc(m->arena, sizeof *e);
    e->kind = kind;
    e->type = type;
    return e;
}

/* --- Leaves ------------------------------------------------------------------------------------------------------- */

static int64_t odd_integer(struct rng *rng, enum type type)
{
    static const int64_t ints[] = {0,   1,         -1,        2,  7,     10,  31,  32,  33,
                                   100, INT32_MAX, INT32_MIN, -7, 65536, 127, 128, -129};
    static const int64_t longs[] = {0,
                                    1,
                                    -1,
                                    3,
                                    63,
                                    64,
                                    INT32_MAX,
                                    INT64_C(2147483648),
                                    INT64_MAX,
                                    INT64_MIN,
                                    -5,
                                    INT64_C(4294967296),
                                    INT64_C(1099511627775)};
    if (roll(rng, 3) == 0)
        return type == TYPE_INT ? (int32_t)(uint32_t)rng_next(rng) : (int64_t)rng_next(rng);
    return type == TYPE_INT ? ints[roll(rng, sizeof ints / sizeof *ints)]
                            : longs[roll(rng, sizeof longs / sizeof *longs)];
}

static const char *odd_text(struct rng *rng)
{
    static const char *const texts[] = {"", "a", "b", "ab", "key", "Zz", "a1b", "long text"};
    return texts[roll(rng, sizeof texts / sizeof *texts)];
}

static struct expr *literal(struct maker *m, enum type type)
{
    static const double doubles[] = {0.0, 1.0, 0.5, 1.5, 2.25, 1e10, 1e-3, 1e300, 3e-300, 4294967296.0, 123456.789};
    struct expr *e = expr_new(m, EXPR_LITERAL, type);
    if (type == TYPE_DOUBLE)
        e->d = doubles[roll(m->rng, sizeof doubles / sizeof *doubles)];
    else if (type == TYPE_STRING)
        e->text = odd_text(m->rng);
    else
        e->i = odd_integer(m->rng, type);
    return e;
}

/* Chooses a variable in scope; functions see only their own. Returns: NULL if none has the type. */
static struct expr *variable(struct maker *m, enum type type)
{
    struct expr *e = expr_new(m, EXPR_VARIABLE, type);
    if (m->function >= 0) {
        const enum type *parameters = m->tree->functions[m->function].parameters;
        int first = roll(m->rng, LOCALS);
        for (int i = 0; i < LOCALS; i++) {
            int local = (first + i) % LOCALS;
            e->variable = VARIABLES + local;
            if ((local == 2 ? TYPE_INT : parameters[local]) == type)
                return e;
        }
        return NULL;
    }
    do
        e->variable = roll(m->rng, VARIABLES);
    while (type != TYPE_BOOLEAN && variable_type(e->variable) != type);
    return type == TYPE_BOOLEAN ? NULL : e;
}

static struct expr *field(struct maker *m, enum type type)
{
    struct expr *e = expr_new(m, EXPR_FIELD, type);
    e->variable = (type == TYPE_INT ? 0 : FIELDS / 2) + roll(m->rng, FIELDS / 2);
    e->i = 1; /* with a cast: its type is known, as narrowing a `def` fails where narrowing a long does not */
    return e;
}

/* Not a constant. */
static struct expr *reach(struct maker *m, enum type type)
{
    struct expr *e = type == TYPE_BOOLEAN ? NULL : variable(m, type);
    if (e != NULL)
        return e;
    e = expr_new(m, EXPR_CAST, type);
    e->op = 't';
    e->a = expr_new(m, EXPR_VARIABLE, TYPE_INT);
    e->a->variable = m->function >= 0 ? VARIABLES + 2 : 0;
    return e;
}

static struct expr *leaf(struct maker *m, enum type type)
{
    bool integral = type == TYPE_INT || type == TYPE_LONG;
    if (integral && m->function < 0 && roll(m->rng, 5) == 0)
        return field(m, type);
    return roll(m->rng, 2) == 0 ? literal(m, type) : reach(m, type);
}

/* --- Operators ---------------------------------------------------------------------------------------------------- */

static enum type number_up_to(struct maker *m, enum type type)
{
    return type == TYPE_DOUBLE && roll(m->rng, 2) ? TYPE_DOUBLE
           : type != TYPE_INT && roll(m->rng, 2)  ? TYPE_LONG
                                                  : TYPE_INT;
}

static struct expr *number_operator(struct maker *m, enum type type, int depth)
{
    static const char integral[] = "+-*/%&|^lru", floating[] = "+-*/%";
    struct expr *e = expr_new(m, EXPR_BINARY, type);
    e->op = type == TYPE_DOUBLE ? floating[roll(m->rng, 5)] : integral[roll(m->rng, 11)];
    bool shift = e->op == OP_SHL || e->op == OP_SHR || e->op == OP_USHR;
    bool divides = e->op == OP_DIV || e->op == OP_REM;
    bool left = shift || roll(m->rng, 2) == 0;
    e->a = divides ? reach(m, left ? type : number_up_to(m, type))
                   : make_expr(m, left ? type : number_up_to(m, type), depth);
    enum type other = shift ? TYPE_INT + (enum type)roll(m->rng, 2) : e->a->type == type ? number_up_to(m, type) : type;
    e->b = make_expr(m, other, depth);
    return e;
}

static struct expr *unary(struct maker *m, enum expr_kind kind, enum type type, int depth)
{
    struct expr *e = expr_new(m, kind, type);
    e->a = make_expr(m, type, depth);
    return e;
}

static struct expr *cast(struct maker *m, enum type type, int depth)
{
    struct expr *e = expr_new(m, EXPR_CAST, type);
    e->op = type == TYPE_INT ? "tbs"[roll(m->rng, 3)] : 't';
    e->a = make_expr(m, TYPE_INT + (enum type)roll(m->rng, 3), depth);
    return e;
}

static struct expr *conditional(struct maker *m, enum type type, int depth)
{
    struct expr *e = expr_new(m, EXPR_CONDITIONAL, type);
    e->a = make_expr(m, TYPE_BOOLEAN, depth);
    e->b = make_expr(m, type, depth);
    e->c = make_expr(m, type, depth);
    return e;
}

static struct expr *step(struct maker *m, enum type type)
{
    struct expr *e = variable(m, type);
    if (e == NULL)
        return leaf(m, type);
    e->kind = EXPR_STEP;
    e->op = roll(m->rng, 2) ? OP_ADD : OP_SUB;
    e->i = roll(m->rng, 2);
    return e;
}

static struct expr *assignment(struct maker *m, enum type type, int depth)
{
    struct expr *e = m->function >= 0 ? NULL : variable(m, type);
    if (e == NULL)
        return leaf(m, type);
    e->kind = EXPR_ASSIGN;
    e->a = make_expr(m, type, depth);
    return e;
}

/* A function calls only those before it. */
static struct expr *call(struct maker *m, enum type type, int depth)
{
    int count = m->function >= 0 ? m->function : m->tree->function_count;
    for (int i = count - 1; i >= 0; i--) {
        const struct script_function *f = &m->tree->functions[i];
        if (f->result != type)
            continue;
        struct expr *e = expr_new(m, EXPR_CALL, type);
        e->variable = i;
        e->a = make_expr(m, f->parameters[0], depth);
        e->b = make_expr(m, f->parameters[1], depth);
        return e;
    }
    return leaf(m, type);
}

static struct expr *key(struct maker *m)
{
    return roll(m->rng, 3) ? literal(m, TYPE_STRING) : variable(m, TYPE_STRING);
}

static struct expr *of_collections(struct maker *m, int depth)
{
    static const enum expr_kind kinds[] = {EXPR_LENGTH, EXPR_SIZE, EXPR_GET, EXPR_MAP_SIZE, EXPR_MAP_GET};
    if (m->function >= 0)
        return leaf(m, TYPE_INT);
    struct expr *e = expr_new(m, kinds[roll(m->rng, 5)], TYPE_INT);
    if (e->kind == EXPR_LENGTH)
        e->a = make_expr(m, TYPE_STRING, depth);
    if (e->kind == EXPR_GET) { /* mostly one that is there */
        e->a = make_expr(m, TYPE_INT, depth);
        struct expr *size = expr_new(m, EXPR_BINARY, TYPE_INT);
        size->op = OP_AND;
        size->a = e->a;
        size->b = expr_new(m, EXPR_LITERAL, TYPE_INT);
        size->b->i = 3;
        e->a = roll(m->rng, 8) ? size : e->a;
    }
    if (e->kind == EXPR_MAP_GET) {
        e->a = key(m);
        e->b = make_expr(m, TYPE_INT, depth);
    }
    return e;
}

static struct expr *number(struct maker *m, enum type type, int depth)
{
    switch (roll(m->rng, 14)) {
    case 0: return unary(m, EXPR_NEGATE, type, depth);
    case 1: return type == TYPE_DOUBLE ? leaf(m, type) : unary(m, EXPR_INVERT, type, depth);
    case 2: return cast(m, type, depth);
    case 3: return conditional(m, type, depth);
    case 4: return step(m, type);
    case 5: return assignment(m, type, depth);
    case 6: return call(m, type, depth);
    case 7: return type == TYPE_INT ? of_collections(m, depth) : leaf(m, type);
    case 8:
    case 9: return leaf(m, type);
    default: return number_operator(m, type, depth);
    }
}

static struct expr *comparison(struct maker *m, int depth)
{
    static const char numbers[] = "<>LG=!";
    struct expr *e = expr_new(m, EXPR_COMPARE, TYPE_BOOLEAN);
    bool texts = m->function < 0 && roll(m->rng, 5) == 0;
    e->op = texts ? "=!"[roll(m->rng, 2)] : numbers[roll(m->rng, 6)];
    e->a = reach(m, texts ? TYPE_STRING : TYPE_INT + (enum type)roll(m->rng, 3));
    e->b = make_expr(m, texts ? TYPE_STRING : TYPE_INT + (enum type)roll(m->rng, 3), depth);
    if (e->b->kind == EXPR_FIELD)
        e->b->i = roll(m->rng, 2);
    return e;
}

static struct expr *boolean(struct maker *m, int depth)
{
    struct expr *e;
    switch (roll(m->rng, depth > 0 ? 8 : 1)) {
    case 1: return unary(m, EXPR_NOT, TYPE_BOOLEAN, depth);
    case 2:
    case 3:
        e = expr_new(m, EXPR_LOGIC, TYPE_BOOLEAN);
        e->op = roll(m->rng, 2) ? OP_BOTH : OP_EITHER;
        e->a = make_expr(m, TYPE_BOOLEAN, depth);
        e->b = make_expr(m, TYPE_BOOLEAN, depth);
        return e;
    case 4:
        if (m->function >= 0)
            return comparison(m, depth);
        e = expr_new(m, roll(m->rng, 2) ? EXPR_MAP_HAS : EXPR_CONTAINS, TYPE_BOOLEAN);
        e->a = e->kind == EXPR_MAP_HAS ? key(m) : variable(m, TYPE_STRING);
        e->b = e->kind == EXPR_MAP_HAS ? NULL : make_expr(m, TYPE_STRING, depth);
        return e;
    default: return comparison(m, depth);
    }
}

static struct expr *text(struct maker *m, int depth)
{
    struct expr *e;
    switch (roll(m->rng, 8)) {
    case 0:
    case 1:
    case 2:
        e = expr_new(m, EXPR_BINARY, TYPE_STRING);
        e->op = OP_ADD;
        e->a = make_expr(m, TYPE_STRING, depth);
        e->b = make_expr(m, (enum type[]){TYPE_INT, TYPE_LONG, TYPE_BOOLEAN, TYPE_STRING}[roll(m->rng, 4)], depth);
        return e;
    case 3:
        e = expr_new(m, EXPR_SUBSTRING, TYPE_STRING);
        e->a = make_expr(m, TYPE_STRING, depth);
        e->b = literal(m, TYPE_INT);
        e->b->i = roll(m->rng, 8) == 0;
        e->c = roll(m->rng, 4) == 0 ? make_expr(m, TYPE_INT, depth) : expr_new(m, EXPR_LITERAL, TYPE_INT);
        return e;
    case 4:
        e = expr_new(m, EXPR_REPLACE, TYPE_STRING);
        e->a = make_expr(m, TYPE_STRING, depth);
        e->b = literal(m, TYPE_STRING);
        e->b->text = "ab";
        e->c = make_expr(m, TYPE_STRING, depth);
        return e;
    case 5: return unary(m, EXPR_UPPER, TYPE_STRING, depth);
    case 6: return conditional(m, TYPE_STRING, depth);
    default: return leaf(m, TYPE_STRING);
    }
}

static struct expr *make_expr(struct maker *m, enum type type, int depth)
{
    if (depth <= 0)
        return type == TYPE_BOOLEAN ? boolean(m, 0) : leaf(m, type);
    depth -= 1 + roll(m->rng, 2);
    return type == TYPE_BOOLEAN ? boolean(m, depth) : type == TYPE_STRING ? text(m, depth) : number(m, type, depth);
}

/* --- Statements --------------------------------------------------------------------------------------------------- */

static int own_variable(struct maker *m, enum type *ret_type)
{
    int variable = m->function >= 0 ? VARIABLES + roll(m->rng, LOCALS) : roll(m->rng, VARIABLES);
    if (m->function < 0)
        *ret_type = variable_type(variable);
    else
        *ret_type =
            variable == VARIABLES + 2 ? TYPE_INT : m->tree->functions[m->function].parameters[variable - VARIABLES];
    return variable;
}

static void make_compound(struct maker *m, struct stmt *s, enum type type, int depth)
{
    static const char integral[] = "+-*/%&|^lru", floating[] = "+-*/%";
    if (type == TYPE_STRING) {
        s->op = OP_ADD;
        s->a = make_expr(m, (enum type[]){TYPE_INT, TYPE_LONG, TYPE_STRING}[roll(m->rng, 3)], depth);
        return;
    }
    s->op = type == TYPE_DOUBLE ? floating[roll(m->rng, 5)] : integral[roll(m->rng, 11)];
    bool any = strchr(floating, s->op) != NULL;
    s->a = make_expr(m, TYPE_INT + (enum type)roll(m->rng, any ? 3 : 2), depth);
}

static void make_field(struct maker *m, struct stmt *s, int depth)
{
    s->kind = STMT_FIELD;
    s->variable = roll(m->rng, FIELDS);
    s->op = "\0+-*&|^"[roll(m->rng, 7)];
    s->a = make_expr(m, field_type(s->variable), depth);
}

static void make_collections(struct maker *m, struct stmt *s, int depth)
{
    static const enum stmt_kind kinds[] = {STMT_LIST_ADD,    STMT_LIST_ADD, STMT_LIST_INSERT, STMT_LIST_SET,
                                           STMT_LIST_REMOVE, STMT_MAP_PUT,  STMT_MAP_PUT,     STMT_MAP_REMOVE};
    s->kind = kinds[m->walking > 0 ? 5 + roll(m->rng, 3) : roll(m->rng, 8)];
    if (s->kind != STMT_MAP_REMOVE)
        s->a = make_expr(m, TYPE_INT, depth);
    if (s->kind == STMT_LIST_REMOVE || s->kind == STMT_LIST_INSERT || s->kind == STMT_LIST_SET) {
        struct expr *index = expr_new(m, EXPR_LITERAL, TYPE_INT);
        index->i = roll(m->rng, 3);
        *(s->kind == STMT_LIST_REMOVE ? &s->a : &s->b) = roll(m->rng, 4) ? index : make_expr(m, TYPE_INT, depth);
    }
    if (s->kind == STMT_MAP_PUT || s->kind == STMT_MAP_REMOVE)
        s->b = key(m);
}

static void make_simple(struct maker *m, struct stmt *s, int depth)
{
    enum type type;
    int pick = roll(m->rng, m->function >= 0 ? 6 : 12);
    s->variable = own_variable(m, &type);
    if (pick < 3) {
        s->kind = STMT_ASSIGN;
        s->a = make_expr(m, type, depth);
    } else if (pick < 5) {
        s->kind = STMT_COMPOUND;
        make_compound(m, s, type, depth);
    } else if (pick < 6) {
        s->kind = STMT_STEP;
        s->a = step(m, TYPE_INT);
        if (s->a->kind != EXPR_STEP) {
            s->kind = STMT_ASSIGN;
            s->variable = m->function >= 0 ? VARIABLES + 2 : 0;
        }
    } else if (pick < 9) {
        make_field(m, s, depth);
    } else {
        make_collections(m, s, depth);
    }
}

/* A continue at the end of a loop is refused: something follows it. */
static void end_loop(struct maker *m, struct stmt **end)
{
    while (*end != NULL)
        end = &(*end)->next;
    *end = arena_zalloc(m->arena, sizeof **end);
    make_simple(m, *end, 1);
}

static void make_loop(struct maker *m, struct stmt *s, int depth)
{
    static const enum stmt_kind kinds[] = {STMT_WHILE, STMT_DO, STMT_FOR, STMT_EACH};
    s->kind = kinds[roll(m->rng, m->function >= 0 ? 3 : 4)];
    s->i = 1 + roll(m->rng, 6);
    s->variable = roll(m->rng, 3);
    s->a = s->kind == STMT_EACH ? NULL : make_expr(m, TYPE_BOOLEAN, 2);
    m->loops++;
    m->walking += s->kind == STMT_EACH;
    s->body = make_block(m, depth - 1);
    end_loop(m, &s->body);
    m->walking -= s->kind == STMT_EACH;
    m->loops--;
}

static struct stmt *make_stmt(struct maker *m, int depth)
{
    struct stmt *s = arena_zalloc(m->arena, sizeof *s);
    int pick = depth > 0 ? roll(m->rng, 16) : 15;
    m->left--;
    if (pick < 3) {
        s->kind = STMT_IF;
        s->a = make_expr(m, TYPE_BOOLEAN, 2);
        s->body = make_block(m, depth - 1);
        s->other = roll(m->rng, 2) ? make_block(m, depth - 1) : NULL;
    } else if (pick < 6) {
        make_loop(m, s, depth);
    } else if (pick < 8) {
        s->kind = STMT_TRY;
        s->op = roll(m->rng, 3) == 0 ? 'a' : 'e';
        s->body = make_block(m, depth - 1);
        s->other = make_block(m, depth - 1);
    } else if (pick < 10 && m->loops > 0) {
        s->kind = roll(m->rng, 2) ? STMT_BREAK : STMT_CONTINUE;
        s->a = make_expr(m, TYPE_BOOLEAN, 2);
    } else if (pick == 10 && roll(m->rng, 4) == 0) {
        s->kind = STMT_THROW;
        s->a = make_expr(m, TYPE_BOOLEAN, 1);
    } else {
        make_simple(m, s, 3);
    }
    return s;
}

static struct stmt *make_block(struct maker *m, int depth)
{
    struct stmt *first = NULL, **end = &first;
    int count = 1 + roll(m->rng, 3);
    for (int i = 0; i < count && (i == 0 || m->left > 0); i++) {
        *end = make_stmt(m, depth);
        end = &(*end)->next;
    }
    return first;
}

static void make_functions(struct maker *m)
{
    int count = roll(m->rng, FUNCTIONS_MAX + 1);
    for (m->function = 0; m->function < count; m->function++) {
        struct script_function *f = &m->tree->functions[m->function];
        f->result = (enum type)roll(m->rng, 3);
        f->parameters[0] = (enum type)roll(m->rng, 3);
        f->parameters[1] = (enum type)roll(m->rng, 3);
        m->left = 6;
        f->body = make_block(m, 2);
        f->value = make_expr(m, f->result, 3);
        m->tree->function_count++;
    }
    m->function = -1;
}

static void make_document(struct maker *m)
{
    static const char *const keys[] = {"a", "key", "b", "ab"};
    struct script_tree *tree = m->tree;
    for (int i = 0; i < FIELDS; i++) { /* a number that fits an int is an int when it is read from JSON */
        int64_t large = INT64_C(1) << (32 + roll(m->rng, 30));
        tree->fields[i] = field_type(i) == TYPE_INT ? odd_integer(m->rng, TYPE_INT) : large + roll(m->rng, 1000);
    }
    tree->list_count = roll(m->rng, 6);
    for (int i = 0; i < tree->list_count; i++)
        tree->list[i] = odd_integer(m->rng, TYPE_INT);
    tree->map_count = roll(m->rng, 4);
    for (int i = 0; i < tree->map_count; i++) {
        tree->keys[i] = keys[i];
        tree->values[i] = odd_integer(m->rng, TYPE_INT);
    }
}

struct script_tree *tree_generate(struct rng *rng, int size, struct arena *arena)
{
    struct script_tree *tree = arena_zalloc(arena, sizeof *tree);
    struct maker m = {.rng = rng, .arena = arena, .tree = tree, .function = -1};
    struct stmt **end = &tree->body;
    make_document(&m);
    make_functions(&m);
    for (m.left = size; m.left > 0;) {
        *end = make_stmt(&m, 3);
        end = &(*end)->next;
    }
    return tree;
}
