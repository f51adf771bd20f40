/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilation: the source, its tokens, the first error.
 *
 * Functions return NULL or false once an error is set. Only the first error is kept.
 */
#ifndef TL_SCRIPT_COMPILE_H
#define TL_SCRIPT_COMPILE_H

#include "base/stack.h"
#include "script/syntax/node.h"

struct compile_error {
    bool set;
    enum class_id type;    /* of the cause */
    const char *type_name; /* instead of `type`: a parser's error class, which scripts cannot name; or NULL */
    struct slice reason;
    int32_t offset;     /* -1: none */
    const char *cause;  /* error name of the cause's cause, which has no reason; or NULL */
    struct slice stack; /* Groovy: the only line of script_stack */
};

struct compiler {
    enum script_lang lang;
    enum script_context context;
    bool bare_names;       /* SCRIPT_DEFAULT: unknown names are parameters, assert is a statement */
    struct slice missing;  /* a bare name that the parameters of a run lack; empty: none */
    struct arena *arena;   /* of the script */
    struct arena *scratch; /* freed after compilation */
    struct slice source;
    struct slice name; /* Groovy's class name: SHA-1 of the source */
    struct compile_error error;
    struct token *tokens;
    size_t token_count;          /* the last one is TOKEN_EOF */
    const struct token *stopped; /* where the parser failed, or NULL */
    /*
     * If it failed: the start of the enclosing top-level function or statement, and whether a
     * statement precedes it.
     */
    const struct token *begun;
    bool begun_later;
    unsigned cache_count;
    unsigned lambda_count;
    struct node *bare; /* uses of bare parameter names, last one first, linked by `c` */
    struct function *functions;
    struct node *imports; /* Groovy: NODE_NAME with the alias, `value` the class's full name; by next */
};

enum token_kind {
    TOKEN_EOF,
    TOKEN_ERROR, /* the lexer stopped here with compiler->error */
    TOKEN_NEWLINE,
    TOKEN_ID,
    TOKEN_DOT_ID,      /* Painless: a name after a dot */
    TOKEN_DOT_INTEGER, /* Painless: digits after a dot */
    TOKEN_KEYWORD,
    TOKEN_PRIMITIVE,
    TOKEN_DEF,
    TOKEN_OCTAL,
    TOKEN_HEX,
    TOKEN_INTEGER,
    TOKEN_DECIMAL,
    TOKEN_STRING,
    TOKEN_GSTRING_BEGIN, /* Groovy: the text up to the first ${; MIDDLE and END follow */
    TOKEN_GSTRING_MIDDLE,
    TOKEN_GSTRING_END,
    TOKEN_REGEX,
    TOKEN_SYMBOL,
};

struct token {
    enum token_kind kind;
    int32_t start; /* offset, UTF-16 code units */
    int32_t end;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, UTF-16 code units */
    bool space_before;
    struct slice text; /* as in the source; of a Groovy string without quotes and escapes */
};

/* Sets the error. Returns: NULL, for `return compile_fail(...)`. */
void *compile_fail(struct compiler *compiler, enum class_id type, int32_t offset, const char *format, ...)
    TL_PRINTF(4, 5);

bool token_is(const struct token *token, const char *text);
/* Returns: whether a text is one of the words. */
bool token_is_among(const char *const *words, size_t count, struct slice text);
#define TOKEN_IS_AMONG(words, text) token_is_among(words, sizeof words / sizeof *words, text)

struct node *node_new(struct compiler *compiler, enum node_kind kind, int32_t offset);
/* Returns: a constant text in the script's arena. */
struct value node_text(struct compiler *compiler, struct slice utf8);

/* Limit of nested brackets, blocks and operators. */
#define COMPILE_NESTING_MAX SCRIPT_NESTING_MAX
/* Native stack that the parser, and each later pass over the tree, takes per level at most. */
#define COMPILE_LEVEL_BYTES ((size_t)3072 * STACK_FACTOR)
/* Returns: whether the tree may have `depth` levels. The parser checks it for all later passes. */
bool compile_may_nest(unsigned depth);

bool lex_painless(struct compiler *compiler);
struct function *parse_painless(struct compiler *compiler);
/* Sets compiler->error: why the tokens do not parse. */
void explain_painless(struct compiler *compiler);
/*
 * In this order: resolve types, symbols and control flow; fold constants; set the offsets of
 * errors.
 */
bool resolve_painless(struct compiler *compiler, struct function *main);
bool fold_painless(struct compiler *compiler, struct function *function);
void error_offset_painless(struct compiler *compiler, struct program *program);

bool lex_groovy(struct compiler *compiler);
/*
 * Sets the error of a text that does not parse, as groovyc words it. Line and column count from 1.
 */
void explain_groovy(struct compiler *compiler, uint32_t line, uint32_t column, const char *format, ...) TL_PRINTF(4, 5);
/* Returns: an expression as groovyc prints it: "(a == 1)". */
struct slice explain_groovy_text(struct compiler *compiler, const struct node *node);
struct function *parse_groovy(struct compiler *compiler);
bool resolve_groovy(struct compiler *compiler, struct function *main);

/* Sets `nesting` of a function from the depth of its body. */
void measure_nesting(struct function *function);

#endif
