/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of Groovy's lexer share: where it stands, and the texts it reads. */
#ifndef TL_SCRIPT_LEX_GROOVY_H
#define TL_SCRIPT_LEX_GROOVY_H

#include "script/syntax/compile.h"

/* A text with values in it: what ends it, and where it goes on after a value. */
enum lex_quote { LEX_SINGLE, LEX_TRIPLE_SINGLE, LEX_DOUBLE, LEX_TRIPLE_DOUBLE, LEX_SLASHY, LEX_DOLLAR_SLASHY };

/* One pair of braces, or the text whose value is being read. */
struct lex_level {
    unsigned parentheses; /* open ones: inside, ends of lines mean nothing */
    bool in_text;         /* the closing brace goes on with a text */
    enum lex_quote quote;
};

#define LEX_LEVELS_MAX (COMPILE_NESTING_MAX + 1)

struct lex_place {
    const char *at;
    int32_t units; /* of what lies before `at` */
    uint32_t line;
    uint32_t column;
};

struct lexer {
    struct compiler *compiler;
    const char *end;
    struct lex_place place;
    size_t capacity;
    struct lex_level levels[LEX_LEVELS_MAX];
    unsigned level;
    bool space; /* there was some before the next token */
};

/* Moves on over one character. */
void lex__skip(struct lexer *lexer);
/* The place of the next token; lex__push fills in where it ends. */
struct token lex__begin(const struct lexer *lexer);
bool lex__push(struct lexer *lexer, struct token token, enum token_kind kind, struct slice text);
/* Reports a lexical error at `at`; parsers that come this far give it. Returns: false. */
bool lex__fail(struct lexer *lexer, const char *format, ...) TL_PRINTF(2, 3);
/* "'x'", "'<EOF>'": the character at `at` as errors name it. */
const char *lex__shown(const struct lexer *lexer, char out[8]);
bool lex__starts(const struct lexer *lexer, const char *text);
/* A letter a name may begin with. */
bool lex__letter(const struct lexer *lexer, size_t ahead);
bool lex__name(struct lexer *lexer, bool in_text);

/* The text that begins, or goes on behind a value, at `at`: its own part up to the next value or the end. */
bool lex__text(struct lexer *lexer, enum lex_quote quote, bool begins);

#endif
