/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's parser, shared by the files parse_groovy….c.
 *
 * Recursive descent along the grammar of Groovy 2.4, with its order of alternatives and its way to fail: a token that
 * cannot begin what is wanted is "unexpected", one that does not end what was begun is one where another was
 * "expected". Functions return NULL once the parser has failed.
 *
 * In the tree, `offset` is where a construct begins and `fault` is where an assertion shows its value: the name behind
 * the dot, the operator between its operands.
 */
#ifndef TL_SCRIPT_PARSE_GROOVY_H
#define TL_SCRIPT_PARSE_GROOVY_H

#include "script/syntax/compile.h"

struct parser {
    struct compiler *compiler;
    size_t at;
    size_t
        statement; /* where an expression began that stands alone: a block on the next line may belong to its first path */
    unsigned depth;
    unsigned hidden_count; /* variables without a name in the source */
    bool failed;
    const struct node
        *last_path; /* the last name, call or the like without operators; may take a command's arguments */
};

/* Tokens: parse_groovy.c. */
const struct token *parse__peek(const struct parser *parser, size_t ahead);
bool parse__at(const struct parser *parser, const char *symbol);
bool parse__accept(struct parser *parser, const char *symbol);
bool parse__expect(struct parser *parser, const char *symbol);
bool parse__expect_name(struct parser *parser, struct slice *ret_name);
/* An end of a line where one does not matter. */
void parse__newlines(struct parser *parser);
/* "unexpected token: …" here. Returns: NULL. */
void *parse__unexpected(struct parser *parser);
/* Refuses at a token, in these words. Returns: NULL. */
void *parse__refuse(struct parser *parser, const struct token *token, const char *message);
/* The same, for what the original refuses after it has parsed: the place stands in the words. Returns: NULL. */
void *parse__refuse_placed(struct parser *parser, const struct token *token, struct slice what);
/* Guards the depth of the tree; the caller restores parser->depth. */
bool parse__enter(struct parser *parser);
struct node *parse__make(struct parser *parser, enum node_kind kind, const struct token *token);
struct node *parse__text(struct parser *parser, const struct token *token, struct slice text);

/* Statements: parse_groovy.c. */
struct node *parse__block(struct parser *parser);
/* Up to the closing brace, which is taken. */
struct node *parse__block_body(struct parser *parser, const struct token *open);
/* The value of a function is that of the statement it ends with. */
void parse__return_last(struct parser *parser, struct node *block);

/* Types and declarations: parse_groovy_type.c. */
/* Tokens of a type at `ahead`, with type arguments and empty brackets; 0 where there is none. */
size_t parse__type_tokens(const struct parser *parser, size_t ahead);
/* A declaration, or a function's, begins here. */
bool parse__declaration_ahead(const struct parser *parser);
/* Takes a type. Returns: NODE_NAME with its name, "int[]", or NULL for none at all. */
struct node *parse__type(struct parser *parser);
/* Takes `def`, modifiers and a type, in front of a declared name. Returns: the type or NULL. */
struct node *parse__declared_type(struct parser *parser);
void parse__parameters(struct parser *parser, struct function *function, const char *end);
bool parse__parameters_ahead(const struct parser *parser, size_t ahead);
struct function *parse__function(struct parser *parser, struct slice name, struct node *result);

/* Expressions: parse_groovy_expression.c, parse_groovy_path.c. */
bool parse__expression_ahead(const struct parser *parser);
struct node *parse__expression(struct parser *parser);
/* Without assignments at the top. */
struct node *parse__conditional(struct parser *parser);
struct node *parse__shift(struct parser *parser);
struct node *parse__unary(struct parser *parser);
/* With a command's arguments, as in `foo x`. */
struct node *parse__command(struct parser *parser);
/* With what may stand in parentheses besides: a declaration. */
struct node *parse__strict(struct parser *parser);
struct node *parse__path(struct parser *parser);
struct node *parse__command_arguments(struct parser *parser, struct node *head);
struct node *parse__closure(struct parser *parser);
struct node *parse__number(struct parser *parser, const struct token *token, bool negative);
/* Arguments up to `end`, which is taken. */
struct node *parse__arguments(struct parser *parser, const char *end, bool *ret_labels);

#endif
