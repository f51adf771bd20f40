/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax tree: built by a parser, annotated by the resolvers, executed by the interpreter.
 *
 * All kinds of nodes share one struct; the comments of the kinds name the members that each uses. A node is allocated
 * in the script's arena and is read-only after compilation (invariant 5).
 */
#ifndef TL_SCRIPT_NODE_H
#define TL_SCRIPT_NODE_H

#include "script/value/number.h"

struct method;
struct function;

enum node_kind {
    /* Expressions. `list` is a chain of nodes by `next`. */
    NODE_CONST,    /* value */
    NODE_NAME,     /* text: a name that is not resolved yet */
    NODE_LOCAL,    /* slot; NODE_BOXED: through a box that closures share */
    NODE_PARAM,    /* text: a parameter by bare name; value: the text */
    NODE_BINDING,  /* text, value: an undeclared name in Groovy */
    NODE_TYPE,     /* target: a class as such */
    NODE_ASSIGN,   /* a = b */
    NODE_COMPOUND, /* a op= b */
    NODE_STEP,     /* ++a, a--: op OP_ADD or OP_SUB; NODE_POSTFIX */
    NODE_BINARY,   /* a op b */
    NODE_COMPARE,  /* a op b, op a comparison */
    NODE_AND,      /* a && b */
    NODE_OR,
    NODE_NOT,             /* !a */
    NODE_NEGATE,          /* -a */
    NODE_PLUS,            /* +a */
    NODE_INVERT,          /* ~a */
    NODE_CAST,            /* a as target; NODE_EXPLICIT: written in the source */
    NODE_COERCE,          /* Groovy's a as target */
    NODE_INSTANCEOF,      /* a instanceof target */
    NODE_CONDITIONAL,     /* a ? b : c */
    NODE_ELVIS,           /* a ?: b */
    NODE_LIST,            /* list */
    NODE_MAP,             /* list of keys and values in turn */
    NODE_NEW,             /* new target(list) */
    NODE_NEW_ARRAY,       /* new target[list]: target the whole type */
    NODE_ARRAY_INIT,      /* new target[] {list} */
    NODE_DOT,             /* a.text; NODE_SAFE, NODE_SPREAD; value: the text; b: a computed name (Groovy) */
    NODE_BRACE,           /* a[b] */
    NODE_CALL,            /* a.text(list); NODE_SAFE, NODE_SPREAD; method when known; b: a computed name */
    NODE_CALL_LOCAL,      /* text(list); function when known */
    NODE_LAMBDA,          /* function */
    NODE_REFERENCE,       /* target::text, this::text; function or method when known; a: Groovy's a.&text */
    NODE_PATTERN,         /* /text/ */
    NODE_FIND,            /* a =~ b */
    NODE_MATCH,           /* a ==~ b */
    NODE_GSTRING,         /* list of parts */
    NODE_RANGE,           /* a..b; NODE_EXCLUSIVE */
    NODE_IN,              /* a in b */
    NODE_SPACESHIP,       /* a <=> b */
    NODE_SPREAD_ARGUMENT, /* *a in a list or in arguments */
    NODE_NAMED_ARGUMENT,  /* b: a in arguments */
    NODE_THIS,
    NODE_CONCAT, /* list: parts of a text joined by + (Painless) */

    /* Statements. */
    NODE_BLOCK,       /* list */
    NODE_EXPRESSION,  /* a */
    NODE_DECLARE,     /* slot, target, a: first value or NULL */
    NODE_DECLARE_ALL, /* list of NODE_DECLARE */
    NODE_IF,          /* a, b, c or NULL */
    NODE_WHILE,       /* a, b or NULL; of all loops and jumps: value, Groovy's label or null */
    NODE_DO,          /* b, a */
    NODE_FOR,         /* list: initialiser or NULL; a condition, c afterthought, b body; each may be NULL */
    NODE_EACH,        /* slot, target: the variable; a: the collection; b: body */
    NODE_RETURN,      /* a or NULL */
    NODE_THROW,       /* a */
    NODE_TRY,         /* b; list of NODE_CATCH; c: finally (Groovy) */
    NODE_CATCH,       /* slot, target; b */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_ASSERT, /* a; b: a message; text: the source of the statement */
    NODE_SWITCH, /* a; list of NODE_CASE */
    NODE_CASE,   /* a, NULL for default; b */
    NODE_EMPTY,
    NODE_KIND_COUNT
};

enum node_flag {
    NODE_POSTFIX = 1,
    NODE_SAFE = 2,   /* ?. */
    NODE_SPREAD = 4, /* *. */
    NODE_EXPLICIT = 8,
    NODE_INTERNAL = 16, /* a cast that may box: arguments, returns; of a NODE_STEP: the operand is not assigned */
    NODE_BOXED = 32,
    NODE_EXCLUSIVE = 64, /* ..< */
    NODE_USED = 128,     /* the result is read */
    NODE_STATIC = 256,   /* a call or field of a class */
    NODE_LENGTH = 512,   /* .length of an array */
    NODE_FINAL = 1024,
    NODE_ESCAPED = 2048, /* `a` of a method call by name on the script itself */
    NODE_PARENTHESES = 4096,
    NODE_OPTIMIZED = 8192, /* of a `def`: converted by the call site, not by a cast */
    NODE_STATEMENT = 16384,
    NODE_COMMAND = 32768, /* Groovy: f x, without parentheses */
};

enum comparison {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_SAME,
    COMPARE_NOT_SAME
};

/*
 * Of a NODE_DOT on a `def`. DOT_ANY: some class has a getter of that name; DOT_KEY: it can only be
 * a map key.
 */
enum dot { DOT_ANY, DOT_KEY };

struct node {
    uint8_t kind; /* enum node_kind */
    uint8_t op;   /* enum operator or enum comparison; NODE_DOT: enum dot */
    uint16_t flags;
    type_id type;   /* of the value, in Painless */
    type_id target; /* a type that the source or a resolver names */
    int32_t offset; /* in the source, UTF-16 code units */
    /*
     * Reported for a throwable of this node (error_offset.c); Groovy: below it, assertions show the
     * value
     */
    int32_t error_offset;
    uint32_t slot; /* of a local; index of a call site's cache */
    struct node *a, *b, *c;
    struct node *list;
    struct node *next;
    struct slice text;
    struct value value;
    const struct method *method;
    const struct method *setter; /* of a NODE_DOT or NODE_BRACE that is assigned */
    struct function *function;
};

struct parameter {
    struct slice name;
    type_id type;
    bool boxed;           /* Groovy: shared with a closure */
    struct node *initial; /* Groovy: its default */
};

/* A variable of the enclosing function that a lambda or closure uses. */
struct capture {
    struct slice name;
    uint32_t outer, inner; /* its slots in the enclosing function and in the lambda */
    type_id type;
};

struct function {
    struct slice name;
    type_id result;
    unsigned parameter_count;
    struct parameter *parameters;
    unsigned capture_count;
    struct capture *captures;
    unsigned slot_count; /* parameters, captures, locals */
    unsigned nesting;    /* upper bound of the C frames of a call */
    struct node *body;
    bool implicit_it; /* a closure without a parameter list: has `it` */
    bool lambda;
    bool returns_last; /* the value of the last statement is the result */
    int32_t offset;
    struct function *next;
};

/* A parsed and resolved source. */
struct program {
    struct function *main;
    struct function *functions; /* by next */
    unsigned cache_count;       /* call sites */
    /*
     * Painless: offsets of statements, ascending; a runtime error quotes the statement that failed.
     */
    int32_t *starts;
    unsigned start_count;
};

#endif
