/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's parser, shared by the files parse_groovy….c.
 *
 * Recursive descent by the grammar of Groovy 2.4, with its order of alternatives and its errors: "unexpected token" for
 * a token that cannot begin the construct, "expecting …, found …" for one that cannot continue it. Functions return
 * NULL once the parser has failed.
 *
 * Of a node, `offset` is where the construct begins; `error_offset` is the position below which a failed assertion
 * shows its value: the name after the dot, the operator between its operands.
 */
#ifndef TL_SCRIPT_PARSE_GROOVY_H
#define TL_SCRIPT_PARSE_GROOVY_H

#include "script/syntax/compile.h"

struct groovy_parser {
    struct compiler *compiler;
    size_t at;
    size_t statement; /* start of an expression statement: a block on the next line may belong to its first path */
    unsigned depth;
    unsigned hidden_count; /* variables that the parser added */
    bool failed;
    const struct node *last_path; /* the last path expression (name, call, …), which may take a command's arguments */
};

/* Tokens: parse_groovy.c. */
const struct token *parse__peek(const struct groovy_parser *parser, size_t ahead);
bool parse__at(const struct groovy_parser *parser, const char *symbol);
bool parse__accept(struct groovy_parser *parser, const char *symbol);
bool parse__expect(struct groovy_parser *parser, const char *symbol);
bool parse__expect_name(struct groovy_parser *parser, struct slice *ret_name);
/* Skips ends of lines where they have no meaning. */
void parse__newlines(struct groovy_parser *parser);
/* Fails with "unexpected token: …" at the next token. Returns: NULL. */
void *parse__unexpected(struct groovy_parser *parser);
/* Fails at a token with this message. Returns: NULL. */
void *parse__refuse(struct groovy_parser *parser, const struct token *token, const char *message);
/* Fails as the original does after parsing: the message includes line and column. Returns: NULL. */
void *parse__refuse_placed(struct groovy_parser *parser, const struct token *token, struct slice what);
/* Guards the depth of the tree; the caller restores parser->depth. */
bool parse__enter(struct groovy_parser *parser);
struct node *parse__make(struct groovy_parser *parser, enum node_kind kind, const struct token *token);
struct node *parse__text(struct groovy_parser *parser, const struct token *token, struct slice text);

/* Statements: parse_groovy.c. */
struct node *parse__block(struct groovy_parser *parser);
/* Parses up to and including the closing brace. */
struct node *parse__block_body(struct groovy_parser *parser, const struct token *open);
/* Turns the last statement of a function into a return of its value. */
void parse__return_last(struct groovy_parser *parser, struct node *block);

/* Types and declarations: parse_groovy_type.c. */
/*
 * Returns: the number of tokens of the type at `ahead`, with type arguments and empty brackets; 0:
 * no type.
 */
size_t parse__type_tokens(const struct groovy_parser *parser, size_t ahead);
/* Returns: whether a declaration of a variable or function begins here. */
bool parse__declaration_ahead(const struct groovy_parser *parser);
/* Parses a type. Returns: NODE_NAME with its name, such as "int[]"; NULL if there is no type. */
struct node *parse__type(struct groovy_parser *parser);
/* Parses `def`, modifiers and a type before a declared name. Returns: the type, or NULL. */
struct node *parse__declared_type(struct groovy_parser *parser);
void parse__parameters(struct groovy_parser *parser, struct function *function, const char *end);
bool parse__parameters_ahead(const struct groovy_parser *parser, size_t ahead);
struct function *parse__function(struct groovy_parser *parser, struct slice name, struct node *result);

/* Expressions: parse_groovy_expression.c, parse_groovy_path.c. */
bool parse__expression_ahead(const struct groovy_parser *parser);
struct node *parse__expression(struct groovy_parser *parser);
/* Parses an expression without a top-level assignment. */
struct node *parse__conditional(struct groovy_parser *parser);
struct node *parse__shift(struct groovy_parser *parser);
struct node *parse__unary(struct groovy_parser *parser);
/* Parses an expression that may have a command's arguments, as in `foo x`. */
struct node *parse__command(struct groovy_parser *parser);
/* Parses the content of parentheses: an expression, or a declaration. */
struct node *parse__strict(struct groovy_parser *parser);
struct node *parse__path(struct groovy_parser *parser);
struct node *parse__command_arguments(struct groovy_parser *parser, struct node *head);
struct node *parse__closure(struct groovy_parser *parser);
struct node *parse__number(struct groovy_parser *parser, const struct token *token, bool negative);
/* Parses arguments up to and including `end`. */
struct node *parse__arguments(struct groovy_parser *parser, const char *end, bool *ret_labels);

#endif
