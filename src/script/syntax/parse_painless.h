/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's parser, shared by the files parse_painless….c: the grammar by recursive descent.
 *
 * A text that does not parse only sets `failed`; explain_painless words the error. Functions may
 * still be called then: they consume no token and return NULL. The offset of a construct is, as in
 * the original, the offset of its first token, or of the dot or bracket for a member or element.
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
/* Returns: the token `ahead` places after the next one; beyond the end the last one. */
const struct token *painless__peek(const struct parser *parser, size_t ahead);
bool painless__at(const struct parser *parser, const char *symbol);
bool painless__kind_at(const struct parser *parser, enum token_kind kind);
/* Fails. Returns: NULL. */
void *painless__give_up(struct parser *parser);
/* Consumes the symbol if it is next. */
bool painless__accept(struct parser *parser, const char *symbol);
/* Consumes the symbol; fails if it is not next. */
bool painless__expect(struct parser *parser, const char *symbol);
bool painless__expect_kind(struct parser *parser, enum token_kind kind, struct slice *ret_text);
/*
 * Returns: whether `assert condition` is next; only in SCRIPT_DEFAULT, for examples of
 * Elasticsearch: The Definitive Guide.
 */
bool painless__at_assertion(const struct parser *parser);
struct node *painless__make(struct parser *parser, enum node_kind kind, int32_t offset);
/* Guards the depth of the tree; the caller restores parser->depth. */
bool painless__enter(struct parser *parser);

/* Types: parse_painless.c. */
/* Returns: the number of tokens of the type at `ahead`, without brackets; 0: no type. */
size_t painless__type_tokens(const struct parser *parser, size_t ahead);
/* Returns: the same number including empty brackets. */
size_t painless__decltype_tokens(const struct parser *parser, size_t ahead);
/* Consumes `count` tokens of a type. Returns: its name without spaces. */
struct slice painless__take_type(struct parser *parser, size_t count);

/* Expressions: parse_painless_expression.c, parse_painless_primary.c. */
struct node *painless__expression(struct parser *parser);
/* Parses an operand with its prefix operators. */
struct node *painless__unary(struct parser *parser);
/* Parses a name or literal with its member accesses, calls and brackets. */
struct node *painless__chain(struct parser *parser);
/* Parses parameters; their types are required with `typed_only`, else optional. */
void painless__parameters(struct parser *parser, struct function *function, bool typed_only);

/* Statements: parse_painless_statement.c. */
struct node *painless__statement(struct parser *parser, bool in_block);
/* Returns: a block; NULL for an empty one, or on failure. */
struct node *painless__block(struct parser *parser);

#endif
