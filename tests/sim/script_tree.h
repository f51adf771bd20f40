/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random scripts as trees: made and printed by script_gen.c, worked out by script_eval.c, compared by script_sim.c.
 *
 * The language of these trees is a part of Painless in which everything has a known type: int, long, double, boolean and String
 * expressions; a list of ints, a map from texts to ints; control flow, functions, exceptions, updates of ctx._source. The evaluator
 * follows the Java Language Specification by the plainest means and shares nothing with the product.
 */
#ifndef TL_TESTS_SCRIPT_TREE_H
#define TL_TESTS_SCRIPT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rand.h"

enum type { TYPE_INT, TYPE_LONG, TYPE_DOUBLE, TYPE_BOOLEAN, TYPE_STRING };

enum expr_kind {
    EXPR_LITERAL,     /* i, d or text */
    EXPR_VARIABLE,    /* of the function or script */
    EXPR_FIELD,       /* ctx._source's int or long: as EXPR_VARIABLE, but its type is found out as it runs */
    EXPR_BINARY,      /* a op b */
    EXPR_COMPARE,     /* a op b: boolean */
    EXPR_LOGIC,       /* a && b, a || b */
    EXPR_NEGATE,      /* -a */
    EXPR_INVERT,      /* ~a */
    EXPR_NOT,         /* !a */
    EXPR_CAST,        /* (type)a; op: 'b' byte, 's' short, else type */
    EXPR_CONDITIONAL, /* a ? b : c */
    EXPR_STEP,        /* variable++ and the like: op one of "+-", prefix in i */
    EXPR_ASSIGN,      /* (variable = a) */
    EXPR_CALL,        /* function(a, b) */
    EXPR_LENGTH,      /* a.length() */
    EXPR_SUBSTRING,   /* a.substring(b, c) */
    EXPR_REPLACE,     /* a.replace(b, c) */
    EXPR_UPPER,       /* a.toUpperCase() */
    EXPR_CONTAINS,    /* a.contains(b) */
    EXPR_SIZE,        /* l.size() */
    EXPR_GET,         /* (int)l.get(a) */
    EXPR_MAP_SIZE,
    EXPR_MAP_HAS, /* m.containsKey(a) */
    EXPR_MAP_GET, /* (m.containsKey(a) ? (int)m.get(a) : b) */
};

/* Operators by their first characters, doubled ones by a letter of their own. */
enum op {
    OP_MUL = '*',
    OP_DIV = '/',
    OP_REM = '%',
    OP_ADD = '+',
    OP_SUB = '-',
    OP_AND = '&',
    OP_XOR = '^',
    OP_OR = '|',
    OP_SHL = 'l',
    OP_SHR = 'r',
    OP_USHR = 'u',
    OP_LT = '<',
    OP_GT = '>',
    OP_LE = 'L',
    OP_GE = 'G',
    OP_EQ = '=',
    OP_NE = '!',
    OP_BOTH = 'A',
    OP_EITHER = 'O',
};

struct expr {
    enum expr_kind kind;
    enum type type;
    int op;
    int variable; /* or function */
    int64_t i;
    double d;
    const char *text;
    struct expr *a, *b, *c;
};

enum stmt_kind {
    STMT_ASSIGN,   /* variable = a */
    STMT_COMPOUND, /* variable op= a */
    STMT_STEP,     /* a, an EXPR_STEP */
    STMT_FIELD,    /* ctx._source.field op= a, op 0 for a plain assignment */
    STMT_IF,       /* a, body, other */
    STMT_WHILE,    /* counts `i` turns in a variable of its own */
    STMT_DO,
    STMT_FOR,
    STMT_EACH,        /* over the list, adding to an int variable */
    STMT_BREAK,       /* if (a) break */
    STMT_CONTINUE,    /* if (a) continue */
    STMT_TRY,         /* body, other; op: 'a' catches ArithmeticException, 'e' Exception */
    STMT_THROW,       /* if (a) throw new IllegalArgumentException('thrown') */
    STMT_LIST_ADD,    /* l.add(a) */
    STMT_LIST_INSERT, /* l.add(b, a) */
    STMT_LIST_SET,    /* l[b] = a */
    STMT_LIST_REMOVE, /* l.remove(a) */
    STMT_MAP_PUT,     /* m[b] = a */
    STMT_MAP_REMOVE,  /* m.remove(b) */
};

struct stmt {
    enum stmt_kind kind;
    int op;
    int variable;
    int64_t i;
    struct expr *a, *b;
    struct stmt *body, *other, *next;
};

enum {
    VARIABLES = 9, /* of the script: three ints, two longs, two doubles, two strings */
    FIELDS = 4,    /* of the document: two ints, two longs */
    LOCALS = 3,    /* parameters and locals of a function, from VARIABLES on */
    FUNCTIONS_MAX = 3,
    LIST_MAX = 64,
    MAP_MAX = 16,
    TEXT_MAX = 400, /* what a string may come to be; longer ones are cut by neither side: see generate */
};

struct function {
    enum type result;
    enum type parameters[2];
    struct stmt *body;
    struct expr *value;
};

/* A script, and the document it meets. */
struct tree {
    struct function functions[FUNCTIONS_MAX];
    int function_count;
    struct stmt *body;
    int64_t fields[FIELDS];
    int64_t list[8];
    int list_count;
    const char *keys[4];
    int64_t values[4];
    int map_count;
};

static inline enum type variable_type(int variable)
{
    return variable < 3 ? TYPE_INT : variable < 5 ? TYPE_LONG : variable < 7 ? TYPE_DOUBLE : TYPE_STRING;
}

static inline enum type field_type(int field)
{
    return field < FIELDS / 2 ? TYPE_INT : TYPE_LONG;
}

struct arena;

/* A script of about `size` statements. */
struct tree *tree_generate(struct rng *rng, int size, struct arena *arena);
/* As Painless; the document as JSON. */
void tree_print(const struct tree *tree, struct rng *rng, struct buf *out);
void tree_print_document(const struct tree *tree, struct buf *out);

enum outcome { OUTCOME_DONE, OUTCOME_ARITHMETIC, OUTCOME_INDEX, OUTCOME_TEXT_INDEX, OUTCOME_THROWN, OUTCOME_TOO_LONG };

struct result {
    enum outcome outcome;
    int64_t integers[VARIABLES]; /* of ints and longs */
    double doubles[VARIABLES];
    char *texts[VARIABLES];
    int64_t fields[FIELDS];
    int64_t list[LIST_MAX];
    int list_count;
    const char *keys[MAP_MAX];
    int64_t values[MAP_MAX];
    int map_count;
};

/* What the script comes to. */
void tree_evaluate(const struct tree *tree, struct arena *arena, struct result *ret_result);

#endif
