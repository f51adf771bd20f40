/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's resolver, shared by the files resolve_groovy….c. */
#ifndef TL_SCRIPT_RESOLVE_GROOVY_H
#define TL_SCRIPT_RESOLVE_GROOVY_H

#include "script/syntax/compile.h"

/*
 * A declared variable. A closure that uses it has its own copy, linked to the original by `outer`.
 */
struct local {
    struct slice name;
    type_id type;
    uint32_t slot;
    bool shared;   /* a closure uses it, so it lives in a box */
    bool implicit; /* `it`: each nested closure has its own */
    struct local *outer;
};

/* A loop or switch that encloses a statement: a target of jumps. */
struct enclosing {
    const struct node *node;
    struct enclosing *outer;
};

struct local_scope {
    struct function *function;
    struct local *locals;      /* newest first */
    struct local *copies;      /* of variables of enclosing functions */
    struct local_scope *outer; /* scope that encloses the closure; NULL in a function */
    struct enclosing *enclosing;
};

/*
 * A use of a variable. NODE_BOXED is set at the end, when it is known which variables are shared.
 */
struct local_use {
    struct node *node;
    struct parameter *parameter;
    const struct local *local;
    struct local_use *next;
};

struct groovy_resolver {
    struct compiler *compiler;
    struct local_scope *scope;
    struct local_use *uses;
    unsigned closure_count;
};

/* All return false once the compiler has an error. */
bool resolve_groovy__expression(struct groovy_resolver *r, struct node *node);
bool resolve_groovy__statement(struct groovy_resolver *r, struct node *node);
/* Resolves the body of a function or closure and declares its parameters. */
bool resolve_groovy__function(struct groovy_resolver *r, struct function *function);
/* Resolves a type name; `name` NULL: TYPE_NONE. */
bool resolve_groovy__type(struct groovy_resolver *r, const struct node *name, type_id *ret_type);
/* Resolves a type name; errors are reported at `offset`. */
bool resolve_groovy__type_at(struct groovy_resolver *r, const struct node *name, int32_t offset, type_id *ret_type);
bool resolve_groovy__declare(struct groovy_resolver *r, struct node *node, type_id type);
struct local *resolve_groovy__find(struct groovy_resolver *r, struct local_scope *scope, struct slice name);
void resolve_groovy__use(struct groovy_resolver *r, struct node *node, const struct local *local);
bool resolve_groovy__refuse(struct groovy_resolver *r, int32_t offset, const char *format, ...) TL_PRINTF(3, 4);
/* Returns: the class of a name, imports first; CLASS_COUNT: not found. */
enum class_id resolve_groovy__class(struct groovy_resolver *r, struct slice name);

#endif
