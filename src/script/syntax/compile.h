/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling: the source, its tokens, the first error.
 *
 * Functions return NULL or false once an error is set; the first one stays.
 */
#ifndef TL_SCRIPT_COMPILE_H
#define TL_SCRIPT_COMPILE_H

#include "base/stack.h"
#include "script/syntax/node.h"

struct compile_error {
    bool set;
    enum class_id type;    /* of the cause */
    const char *type_name; /* instead of `type`, for errors of parsers that no script can meet */
    struct slice reason;
    int32_t offset;     /* -1: none */
    const char *cause;  /* name of a cause's cause without a reason, or NULL */
    struct slice stack; /* Groovy: the one line of script_stack */
};

struct compiler {
    enum script_lang lang;
    enum script_context context;
    bool bare_names;       /* SCRIPT_DEFAULT: unknown names are parameters, assert is a statement */
    struct slice missing;  /* a name that is no parameter after all, or none */
    struct arena *arena;   /* of the script */
    struct arena *scratch; /* for the time of compiling */
    struct slice source;
    struct slice name; /* what Groovy calls the class: SHA-1 of the source */
    struct compile_error error;
    struct token *tokens;
    size_t token_count;          /* the last one is TOKEN_EOF */
    const struct token *stopped; /* where the parser gave up, or NULL */
    /* Then also: the function or statement of the script itself that it was in, and whether a statement came before. */
    const struct token *begun;
    bool begun_later;
    unsigned cache_count;
    unsigned lambda_count;
    struct node *bare; /* parameters by bare name, the last one first, linked by `c` */
    struct function *functions;
    struct node *imports; /* Groovy: NODE_NAME with the alias, `value` the class's full name; by next */
};

enum token_kind {
    TOKEN_EOF,
    TOKEN_ERROR, /* the lexer stopped here; compiler->error says why */
    TOKEN_NEWLINE,
    TOKEN_ID,
    TOKEN_DOT_ID,      /* Painless: a name behind a dot */
    TOKEN_DOT_INTEGER, /* Painless: digits behind a dot */
    TOKEN_KEYWORD,
    TOKEN_PRIMITIVE,
    TOKEN_DEF,
    TOKEN_OCTAL,
    TOKEN_HEX,
    TOKEN_INTEGER,
    TOKEN_DECIMAL,
    TOKEN_STRING,
    TOKEN_GSTRING_BEGIN, /* Groovy: the text up to the first ${; parts and ends follow */
    TOKEN_GSTRING_MIDDLE,
    TOKEN_GSTRING_END,
    TOKEN_REGEX,
    TOKEN_SYMBOL,
};

struct token {
    enum token_kind kind;
    int32_t start; /* UTF-16 units */
    int32_t end;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, UTF-16 units */
    bool space_before;
    struct slice text; /* as in the source; of a Groovy string the text it stands for */
};

/* Sets the error. Returns: NULL, for `return compile_fail(...)`. */
void *compile_fail(struct compiler *compiler, enum class_id type, int32_t offset, const char *format, ...)
    TL_PRINTF(4, 5);

bool token_is(const struct token *token, const char *text);

struct node *node_new(struct compiler *compiler, enum node_kind kind, int32_t offset);
/* A constant text. */
struct value node_text(struct compiler *compiler, struct slice utf8);

/* The nesting of brackets, blocks and operators; also fails for a source too deep to walk. */
#define COMPILE_NESTING_MAX SCRIPT_NESTING_MAX
/* Native stack that all who walk the tree take a level, the parser itself included. */
#define COMPILE_LEVEL_BYTES ((size_t)3072 * STACK_FACTOR)
/* Whether a parser may go down to `depth`; asked before anything else walks what it makes, for all of them. */
bool compile_may_nest(unsigned depth);

bool lex_painless(struct compiler *compiler);
struct function *parse_painless(struct compiler *compiler);
/* Says why the tokens do not parse; sets compiler->error. */
void explain_painless(struct compiler *compiler);
/* Types, symbols, flow; then constants, then the places of errors. */
bool resolve_painless(struct compiler *compiler, struct function *main);
bool fold_painless(struct compiler *compiler, struct function *function);
void error_offset_painless(struct compiler *compiler, struct program *program);

bool lex_groovy(struct compiler *compiler);
/* Sets the error of a text that does not parse, at a line and a column, both from 1, in the words of groovyc. */
void explain_groovy(struct compiler *compiler, uint32_t line, uint32_t column, const char *format, ...) TL_PRINTF(4, 5);
/* An expression as groovyc would write it: "(a == 1)". */
struct slice explain_groovy_text(struct compiler *compiler, const struct node *node);
struct function *parse_groovy(struct compiler *compiler);
bool resolve_groovy(struct compiler *compiler, struct function *main);

/* The C frames a call of each function may take, by the depth of its tree. */
void measure_nesting(struct function *function);

#endif
