/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's static checks, shared by the files resolve_….c.
 *
 * Each expression is visited with a type hint from its context: whether it is read or written, the preferred type, and
 * whether the conversion to that type is an explicit cast or may box. The visit sets the node's type; resolve__cast
 * inserts the conversion as a separate node.
 */
#ifndef TL_SCRIPT_RESOLVE_H
#define TL_SCRIPT_RESOLVE_H

#include "script/syntax/compile.h"

struct variable {
    struct slice name;
    type_id type;
    uint32_t slot;
    bool final;
    struct variable *outer; /* declared before it, in this or an enclosing block */
};

struct resolver_scope {
    struct function *function;
    struct variable *variables;          /* newest first, then those of enclosing blocks */
    struct resolver_scope *lambda_outer; /* scope that encloses the lambda; NULL in a function */
};

struct resolver {
    struct compiler *compiler;
    struct resolver_scope *scope;
};

struct type_hint {
    type_id target; /* TYPE_NONE: any */
    bool read, write, explicit, internal;
};

#define TYPE_HINT_READ ((struct type_hint){.target = TYPE_NONE, .read = true})
#define TYPE_HINT_NONE ((struct type_hint){.target = TYPE_NONE})

static inline struct type_hint type_hint_for(type_id target)
{
    return (struct type_hint){.target = target, .read = true};
}

static inline struct type_hint type_hint_argument(type_id target)
{
    return (struct type_hint){.target = target, .read = true, .internal = true};
}

/* All return false once the compiler has an error. */

/*
 * Visits an expression that must be a value; *link is the tree's link to it, which may be
 * replaced.
 */
bool resolve__value(struct resolver *r, struct node **link, struct type_hint hint);
/* Visits an expression that must be a value and converts it to hint.target. */
bool resolve__as(struct resolver *r, struct node **link, struct type_hint hint);
/* Visits an expression that may also be a class or the first part of a qualified class name. */
bool resolve__visit(struct resolver *r, struct node **link, struct type_hint hint);
/* Inserts a conversion to `target` unless none is needed; fails if it is illegal. */
bool resolve__cast(struct resolver *r, struct node **link, type_id target, bool explicit, bool internal);
bool resolve__block(struct resolver *r, struct node *block, bool last_source);

/* Calls, fields, constructors, functions: resolve_call.c. */
bool resolve__call(struct resolver *r, struct node *node, struct type_hint hint);
bool resolve__call_local(struct resolver *r, struct node *node, struct type_hint hint);
bool resolve__new(struct resolver *r, struct node *node, struct type_hint hint);
bool resolve__dot(struct resolver *r, struct node **link, struct type_hint hint);
bool resolve__brace(struct resolver *r, struct node *node, struct type_hint hint);
bool resolve__lambda(struct resolver *r, struct node *node, struct type_hint hint);
bool resolve__reference(struct resolver *r, struct node *node, struct type_hint hint);

/* Returns: the type named in a source ("def", "int[]", "Map.Entry"), or TYPE_NONE. */
type_id resolve__type(struct slice name);

struct variable *resolve__define(struct resolver *r, int32_t offset, type_id type, struct slice name, bool final);
struct variable *resolve__find(struct resolver *r, struct slice name);

/*
 * Return: the common type to which an operator promotes its operands; TYPE_NONE if it does not
 * apply.
 */
type_id promote_unary(type_id type, bool decimal);
type_id promote_numeric(type_id a, type_id b, bool decimal);
type_id promote_add(type_id a, type_id b);
type_id promote_xor(type_id a, type_id b);
type_id promote_equality(type_id a, type_id b);
type_id promote_conditional(type_id a, type_id b);
bool cast_legal(type_id actual, type_id expected, bool explicit, bool internal);

/* A type's name for messages: "java.lang.String". */
struct shown {
    char text[TYPE_NAME_MAX];
};
struct shown show_type(type_id type);

#endif
