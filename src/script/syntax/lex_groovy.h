/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's lexer, shared by lex_groovy.c and lex_groovy_text.c. */
#ifndef TL_SCRIPT_LEX_GROOVY_H
#define TL_SCRIPT_LEX_GROOVY_H

#include "script/syntax/compile.h"

/* The delimiters of a string; decide where it ends, also after an interpolated value. */
enum lex_quote { LEX_SINGLE, LEX_TRIPLE_SINGLE, LEX_DOUBLE, LEX_TRIPLE_DOUBLE, LEX_SLASHY, LEX_DOLLAR_SLASHY };

/* One open pair of braces: a block, or an interpolated value `${…}`. */
struct lex_level {
    unsigned parentheses; /* open ones; ends of lines inside them are ignored */
    bool in_text;         /* after the closing brace the string continues */
    enum lex_quote quote;
};

#define LEX_LEVELS_MAX (COMPILE_NESTING_MAX + 1)

struct lex_location {
    const char *at;
    int32_t units; /* UTF-16 code units before `at` */
    uint32_t line;
    uint32_t column;
};

struct groovy_lexer {
    struct compiler *compiler;
    const char *end;
    struct lex_location location;
    size_t capacity;
    struct lex_level levels[LEX_LEVELS_MAX];
    unsigned level;
    bool space; /* white space precedes the next token */
};

/* Skips one character. */
void lex__skip(struct groovy_lexer *lexer);
/* Returns: a token that begins here; lex__push sets its end. */
struct token lex__begin(const struct groovy_lexer *lexer);
bool lex__push(struct groovy_lexer *lexer, struct token token, enum token_kind kind, struct slice text);
/*
 * Adds a TOKEN_ERROR with a lexical error at `at`; it is reported if the parser reaches it.
 * Returns: false.
 */
bool lex__fail(struct groovy_lexer *lexer, const char *format, ...) TL_PRINTF(2, 3);
/* Returns: the character at `at` as errors print it, in `out`: "'x'", "'<EOF>'". */
const char *lex__shown(const struct groovy_lexer *lexer, char out[8]);
bool lex__starts(const struct groovy_lexer *lexer, const char *text);
/* Returns: whether the character `ahead` bytes after `at` may begin a name. */
bool lex__letter(const struct groovy_lexer *lexer, size_t ahead);
bool lex__name(struct groovy_lexer *lexer, bool in_text);

/*
 * Reads one part of a string, up to the next value or its end. `begins`: the first part, else the
 * part after a value.
 */
bool lex__text(struct groovy_lexer *lexer, enum lex_quote quote, bool begins);

#endif
