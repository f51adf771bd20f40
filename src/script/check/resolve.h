/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Painless checks before a script runs, shared by the files resolve_….c.
 *
 * Each expression is visited with what its surroundings want of it: that it is read or written, the type they would
 * like, and whether the conversion to that type is written out or may box. The visit sets the node's type; the
 * conversion itself becomes a node of its own, put in by resolve__cast.
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

struct scope {
    struct function *function;
    struct variable *variables; /* newest first, the enclosing blocks' behind */
    struct scope *lambda_outer; /* where a lambda stands; NULL in a function */
};

struct resolver {
    struct compiler *compiler;
    struct scope *scope;
};

struct want {
    type_id target; /* TYPE_NONE: any */
    bool read, write, explicit, internal;
};

#define WANT_READ ((struct want){.target = TYPE_NONE, .read = true})
#define WANT_NOTHING ((struct want){.target = TYPE_NONE})

static inline struct want want_type(type_id target)
{
    return (struct want){.target = target, .read = true};
}

static inline struct want want_argument(type_id target)
{
    return (struct want){.target = target, .read = true, .internal = true};
}

/* All return false once the compiler has an error. */

/* Visits an expression that must be a value; `place` is where the tree points to it. */
bool resolve__value(struct resolver *r, struct node **place, struct want want);
/* The same, and converts to want.target. */
bool resolve__as(struct resolver *r, struct node **place, struct want want);
/* Visits without the demand for a value: a class or the beginning of a class's name may come out. */
bool resolve__visit(struct resolver *r, struct node **place, struct want want);
/* Puts a conversion in. */
bool resolve__cast(struct resolver *r, struct node **place, type_id target, bool explicit, bool internal);
bool resolve__block(struct resolver *r, struct node *block, bool last_source);

/* Calls, fields, constructors, functions: resolve_call.c. */
bool resolve__call(struct resolver *r, struct node *node, struct want want);
bool resolve__call_local(struct resolver *r, struct node *node, struct want want);
bool resolve__new(struct resolver *r, struct node *node, struct want want);
bool resolve__dot(struct resolver *r, struct node **place, struct want want);
bool resolve__brace(struct resolver *r, struct node *node, struct want want);
bool resolve__lambda(struct resolver *r, struct node *node, struct want want);
bool resolve__reference(struct resolver *r, struct node *node, struct want want);

/* The type a source names ("def", "int[]", "Map.Entry"), or TYPE_NONE. */
type_id resolve__type(struct slice name);

struct variable *resolve__define(struct resolver *r, int32_t offset, type_id type, struct slice name, bool final);
struct variable *resolve__find(struct resolver *r, struct slice name);

/* Types of operators; TYPE_NONE where they do not apply. */
type_id promote_unary(type_id type, bool decimal);
type_id promote_numeric(type_id a, type_id b, bool decimal);
type_id promote_add(type_id a, type_id b);
type_id promote_xor(type_id a, type_id b);
type_id promote_equality(type_id a, type_id b);
type_id promote_conditional(type_id a, type_id b);
bool cast_legal(type_id actual, type_id expected, bool explicit, bool internal);

/* "[java.lang.String]" for messages. */
struct shown {
    char text[TYPE_NAME_MAX];
};
struct shown show_type(type_id type);

#endif
