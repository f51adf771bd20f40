/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's parser, shared by the files parse_painless….c: the grammar by recursive descent.
 *
 * A text that does not parse only sets `failed`; explain_painless finds the words for it. Functions return NULL then, and
 * may be called all the same: they take nothing any more. Offsets are those of the first token of a construct, of the
 * dot or bracket for what follows one: there the original points, too.
 */
#ifndef TL_SCRIPT_PARSE_PAINLESS_H
#define TL_SCRIPT_PARSE_PAINLESS_H

#include "script/syntax/compile.h"

struct parser {
    struct compiler *compiler;
    size_t at; /* the next token */
    unsigned depth;
    bool failed;
};

/* Tokens: parse_painless.c. */
/* The token `ahead` of the next one; the last one beyond the end. */
const struct token *painless__peek(const struct parser *parser, size_t ahead);
bool painless__at(const struct parser *parser, const char *symbol);
bool painless__kind_at(const struct parser *parser, enum token_kind kind);
/* Fails. Returns: NULL. */
void *painless__give_up(struct parser *parser);
/* Takes the symbol if it is next. */
bool painless__accept(struct parser *parser, const char *symbol);
/* The same, and fails if it is not. */
bool painless__expect(struct parser *parser, const char *symbol);
bool painless__expect_kind(struct parser *parser, enum token_kind kind, struct slice *ret_text);
/* Whether the books' `assert condition` is next: where scripts name no language. */
bool painless__at_assertion(const struct parser *parser);
struct node *painless__make(struct parser *parser, enum node_kind kind, int32_t offset);
/* Guards the depth of the tree; the caller restores parser->depth. */
bool painless__enter(struct parser *parser);

/* Types: parse_painless.c. */
/* Tokens of a type at `ahead`, without brackets; 0 where there is none. */
size_t painless__type_tokens(const struct parser *parser, size_t ahead);
/* The same with empty brackets. */
size_t painless__decltype_tokens(const struct parser *parser, size_t ahead);
/* Takes `count` tokens of a type. Returns: its name, without spaces. */
struct slice painless__take_type(struct parser *parser, size_t count);

/* Expressions: parse_painless_expression.c, parse_painless_primary.c. */
struct node *painless__expression(struct parser *parser);
/* With the operators in front of it. */
struct node *painless__unary(struct parser *parser);
/* A name or literal with all that hangs on it by dots and brackets. */
struct node *painless__chain(struct parser *parser);
/* Names of parameters, with types where `typed_only`, else where the source has them. */
void painless__parameters(struct parser *parser, struct function *function, bool typed_only);

/* Statements: parse_painless_statement.c. */
struct node *painless__statement(struct parser *parser, bool in_block);
/* Returns: a block; NULL for an empty one, or on failure. */
struct node *painless__block(struct parser *parser);

#endif
