/* SPDX-License-Identifier: Apache-2.0 */
/* Random scripts as Painless, with as few parentheses as its precedences allow, or with more; see script_tree.h. */
#include "script_tree.h"

#include <inttypes.h>

struct printer {
    struct buf *out;
    struct rng *rng;
    int names; /* given so far to variables of loops and catches */
};

static void print_expr(struct printer *p, const struct expr *e, int outer);
static void print_stmts(struct printer *p, const struct stmt *s);

static const char *const variables[] = {"i0", "i1", "i2", "j0", "j1", "d0", "d1", "s0", "s1", "p", "q", "r"};
static const char *const fields[] = {"f0", "f1", "g0", "g1"};
static const char *const types[] = {"int", "long", "double", "boolean", "String"};

static const char *symbol(int op)
{
    switch (op) {
    case OP_SHL: return "<<";
    case OP_SHR: return ">>";
    case OP_USHR: return ">>>";
    case OP_LE: return "<=";
    case OP_GE: return ">=";
    case OP_EQ: return "==";
    case OP_NE: return "!=";
    case OP_BOTH: return "&&";
    case OP_EITHER: return "||";
    case OP_MUL: return "*";
    case OP_DIV: return "/";
    case OP_REM: return "%";
    case OP_ADD: return "+";
    case OP_SUB: return "-";
    case OP_AND: return "&";
    case OP_XOR: return "^";
    case OP_OR: return "|";
    case OP_LT: return "<";
    default: return ">";
    }
}

/* How closely an operator binds. */
static int precedence(int op)
{
    switch (op) {
    case OP_MUL:
    case OP_DIV:
    case OP_REM: return 12;
    case OP_ADD:
    case OP_SUB: return 11;
    case OP_SHL:
    case OP_SHR:
    case OP_USHR: return 10;
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE: return 9;
    case OP_EQ:
    case OP_NE: return 8;
    case OP_AND: return 7;
    case OP_XOR: return 6;
    case OP_OR: return 5;
    case OP_BOTH: return 4;
    default: return 3;
    }
}

static void print_literal(struct printer *p, const struct expr *e)
{
    bool negative = e->type != TYPE_STRING && e->type != TYPE_DOUBLE && e->i < 0;
    buf_printf(p->out, "%s", negative ? "(" : "");
    if (e->type == TYPE_STRING)
        buf_printf(p->out, "'%s'", e->text);
    else if (e->type == TYPE_DOUBLE)
        buf_printf(p->out, "%.17gD", e->d);
    else
        buf_printf(p->out, "%" PRId64 "%s", e->i, e->type == TYPE_LONG ? "L" : "");
    buf_printf(p->out, "%s", negative ? ")" : "");
}

static void print_operation(struct printer *p, const struct expr *e, int outer)
{
    int own = precedence(e->op);
    bool brackets = own < outer || rng_below(p->rng, 4) == 0;
    buf_printf(p->out, "%s", brackets ? "(" : "");
    print_expr(p, e->a, own);
    buf_printf(p->out, " %s ", symbol(e->op));
    print_expr(p, e->b, own + 1);
    buf_printf(p->out, "%s", brackets ? ")" : "");
}

/* Ends in a closing bracket or is a name: something may follow with a dot. */
static void print_closed(struct printer *p, const struct expr *e)
{
    bool open = e->kind != EXPR_VARIABLE;
    buf_printf(p->out, "%s", open ? "(" : "");
    print_expr(p, e, 0);
    buf_printf(p->out, "%s", open ? ")" : "");
}

static void print_method(struct printer *p, const struct expr *e, const char *name)
{
    print_closed(p, e->a);
    buf_printf(p->out, ".%s(", name);
    if (e->b != NULL)
        print_expr(p, e->b, 0);
    if (e->c != NULL) {
        buf_lit(p->out, ", ");
        print_expr(p, e->c, 0);
    }
    buf_lit(p->out, ")");
}

static void print_step(struct printer *p, const struct expr *e)
{
    const char *sign = e->op == OP_ADD ? "++" : "--", *name = variables[e->variable];
    buf_printf(p->out, "%s%s", e->i ? sign : name, e->i ? name : sign);
}

static void print_prefixed(struct printer *p, const char *prefix, const struct expr *operand)
{
    buf_printf(p->out, "%s", prefix);
    print_closed(p, operand);
}

static void print_around(struct printer *p, const char *before, const struct expr *e, const char *behind)
{
    buf_printf(p->out, "%s", before);
    print_expr(p, e, 0);
    buf_printf(p->out, "%s", behind);
}

static void print_map_get(struct printer *p, const struct expr *e)
{
    print_around(p, "(m.containsKey(", e->a, ") ? (int)m.get(");
    print_expr(p, e->a, 0);
    print_around(p, ") : ", e->b, ")");
}

static void print_call(struct printer *p, const struct expr *e)
{
    buf_printf(p->out, "f%d(", e->variable);
    print_expr(p, e->a, 0);
    print_around(p, ", ", e->b, ")");
}

static void print_cast(struct printer *p, const struct expr *e)
{
    buf_printf(p->out, "(%s)", e->op == 'b' ? "byte" : e->op == 's' ? "short" : types[e->type]);
    print_closed(p, e->a);
}

static void print_expr(struct printer *p, const struct expr *e, int outer)
{
    switch (e->kind) {
    case EXPR_LITERAL: print_literal(p, e); break;
    case EXPR_VARIABLE: buf_printf(p->out, "%s", variables[e->variable]); break;
    case EXPR_FIELD:
        if (e->i)
            buf_printf(p->out, "((%s)ctx._source.%s)", types[e->type], fields[e->variable]);
        else
            buf_printf(p->out, "ctx._source.%s", fields[e->variable]);
        break;
    case EXPR_BINARY:
    case EXPR_COMPARE:
    case EXPR_LOGIC: print_operation(p, e, outer); break;
    case EXPR_NEGATE: print_prefixed(p, "-", e->a); break;
    case EXPR_INVERT: print_prefixed(p, "~", e->a); break;
    case EXPR_NOT: print_prefixed(p, "!", e->a); break;
    case EXPR_CAST: print_cast(p, e); break;
    case EXPR_CONDITIONAL:
        print_around(p, "(", e->a, " ? ");
        print_expr(p, e->b, 0);
        print_around(p, " : ", e->c, ")");
        break;
    case EXPR_STEP: print_step(p, e); break;
    case EXPR_ASSIGN:
        buf_printf(p->out, "(%s", variables[e->variable]);
        print_around(p, " = ", e->a, ")");
        break;
    case EXPR_CALL: print_call(p, e); break;
    case EXPR_LENGTH: print_method(p, e, "length"); break;
    case EXPR_SUBSTRING: print_method(p, e, "substring"); break;
    case EXPR_REPLACE: print_method(p, e, "replace"); break;
    case EXPR_UPPER: print_method(p, e, "toUpperCase"); break;
    case EXPR_CONTAINS: print_method(p, e, "contains"); break;
    case EXPR_SIZE: buf_lit(p->out, "l.size()"); break;
    case EXPR_GET: print_around(p, "(int)l.get(", e->a, ")"); break;
    case EXPR_MAP_SIZE: buf_lit(p->out, "m.size()"); break;
    case EXPR_MAP_HAS: print_around(p, "m.containsKey(", e->a, ")"); break;
    case EXPR_MAP_GET: print_map_get(p, e); break;
    }
}

static void print_block(struct printer *p, const struct stmt *s)
{
    buf_lit(p->out, "{\n");
    print_stmts(p, s);
    buf_lit(p->out, "}\n");
}

static void print_loop(struct printer *p, const struct stmt *s)
{
    int n = p->names++;
    long long turns = (long long)s->i;
    switch (s->kind) {
    case STMT_WHILE:
        buf_printf(p->out, "int k%d = 0; while (k%d++ < %lld && ", n, n, turns);
        print_closed(p, s->a);
        buf_lit(p->out, ") ");
        print_block(p, s->body);
        break;
    case STMT_DO:
        buf_printf(p->out, "int k%d = 1; do ", n);
        print_block(p, s->body);
        buf_printf(p->out, " while (k%d++ < %lld && ", n, turns);
        print_closed(p, s->a);
        buf_lit(p->out, ");\n");
        break;
    case STMT_FOR:
        buf_printf(p->out, "for (int k%d = 0; k%d < %lld && ", n, n, turns);
        print_closed(p, s->a);
        buf_printf(p->out, "; k%d++) ", n);
        print_block(p, s->body);
        break;
    default:
        buf_printf(p->out, "for (x%d in l) {\n%s = %s * 31 + (int)x%d;\n", n, variables[s->variable],
                   variables[s->variable], n);
        print_stmts(p, s->body);
        buf_lit(p->out, "}\n");
        break;
    }
}

static void print_try(struct printer *p, const struct stmt *s)
{
    buf_lit(p->out, "try ");
    print_block(p, s->body);
    buf_printf(p->out, "catch (%s e%d) ", s->op == 'e' ? "Exception" : "ArithmeticException", p->names++);
    print_block(p, s->other);
}

static void print_if(struct printer *p, const struct stmt *s)
{
    print_around(p, "if (", s->a, ") ");
    if (s->kind == STMT_BREAK) {
        buf_lit(p->out, "{ break; }\n");
    } else if (s->kind == STMT_CONTINUE) {
        buf_lit(p->out, "{ continue; }\n");
    } else if (s->kind == STMT_THROW) {
        buf_lit(p->out, "{ throw new IllegalStateException('thrown'); }\n");
    } else {
        print_block(p, s->body);
        if (s->other != NULL) {
            buf_lit(p->out, "else ");
            print_block(p, s->other);
        }
    }
}

/* Prints a change of a collection or a field, with a cast that keeps the class of its value. */
static void print_change(struct printer *p, const struct stmt *s)
{
    const char *type = s->kind == STMT_FIELD ? types[s->variable < FIELDS / 2 ? TYPE_INT : TYPE_LONG] : "int";
    if (s->kind == STMT_FIELD)
        buf_printf(p->out, "ctx._source.%s %s= ", fields[s->variable], s->op == 0 ? "" : symbol(s->op));
    else if (s->kind == STMT_LIST_ADD)
        buf_lit(p->out, "l.add(");
    else if (s->kind == STMT_LIST_INSERT)
        print_around(p, "l.add(", s->b, ", ");
    else
        print_around(p, s->kind == STMT_MAP_PUT ? "m[" : "l[", s->b, "] = ");
    buf_printf(p->out, "(%s)", type);
    print_closed(p, s->a);
    buf_printf(p->out, "%s;\n", s->kind == STMT_LIST_ADD || s->kind == STMT_LIST_INSERT ? ")" : "");
}

static void print_stmt(struct printer *p, const struct stmt *s)
{
    switch (s->kind) {
    case STMT_ASSIGN:
    case STMT_COMPOUND:
        buf_printf(p->out, "%s %s= ", variables[s->variable], s->kind == STMT_COMPOUND ? symbol(s->op) : "");
        print_around(p, "", s->a, ";\n");
        break;
    case STMT_STEP: print_around(p, "", s->a, ";\n"); break;
    case STMT_IF:
    case STMT_BREAK:
    case STMT_CONTINUE:
    case STMT_THROW: print_if(p, s); break;
    case STMT_WHILE:
    case STMT_DO:
    case STMT_FOR:
    case STMT_EACH: print_loop(p, s); break;
    case STMT_TRY: print_try(p, s); break;
    case STMT_LIST_REMOVE: print_around(p, "l.remove(", s->a, ");\n"); break;
    case STMT_MAP_REMOVE: print_around(p, "m.remove(", s->b, ");\n"); break;
    default: print_change(p, s); break;
    }
}

static void print_stmts(struct printer *p, const struct stmt *s)
{
    for (; s != NULL; s = s->next)
        print_stmt(p, s);
}

static void print_function(struct printer *p, const struct script_function *f, int number)
{
    buf_printf(p->out, "%s f%d(%s p, %s q) {\nint r = 0;\n", types[f->result], number, types[f->parameters[0]],
               types[f->parameters[1]]);
    print_stmts(p, f->body);
    print_around(p, "return ", f->value, ";\n}\n");
}

/* Doubles that JSON has no number for are kept by name. */
static void print_keep(struct printer *p, int variable)
{
    const char *name = variables[variable];
    if (variable_type(variable) == TYPE_DOUBLE)
        buf_printf(p->out,
                   "if (%s != %s) { ctx._source.%s = 'NaN' } else if (%s - %s != 0.0) { ctx._source.%s = 'inf' } "
                   "else { ctx._source.%s = %s }\n",
                   name, name, name, name, name, name, name, name);
    else
        buf_printf(p->out, "ctx._source.%s = %s;\n", name, name);
}

void tree_print(const struct script_tree *tree, struct rng *rng, struct buf *out)
{
    struct printer p = {.out = out, .rng = rng};
    for (int i = 0; i < tree->function_count; i++)
        print_function(&p, &tree->functions[i], i);
    buf_lit(out, "List l = ctx._source.l; Map m = ctx._source.m;\n");
    for (int i = 0; i < VARIABLES; i++)
        buf_printf(out, "%s %s = %s;\n", types[variable_type(i)], variables[i],
                   variable_type(i) == TYPE_STRING ? "''" : "0");
    print_stmts(&p, tree->body);
    for (int i = 0; i < VARIABLES; i++)
        print_keep(&p, i);
}

void tree_print_document(const struct script_tree *tree, struct buf *out)
{
    buf_byte(out, '{');
    for (int i = 0; i < FIELDS; i++)
        buf_printf(out, "\"%s\":%" PRId64 ",", fields[i], tree->fields[i]);
    buf_lit(out, "\"l\":[");
    for (int i = 0; i < tree->list_count; i++)
        buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", tree->list[i]);
    buf_lit(out, "],\"m\":{");
    for (int i = 0; i < tree->map_count; i++)
        buf_printf(out, "%s\"%s\":%" PRId64, i > 0 ? "," : "", tree->keys[i], tree->values[i]);
    buf_lit(out, "}}");
}
