/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of Groovy's resolver share. */
#ifndef TL_SCRIPT_RESOLVE_GROOVY_H
#define TL_SCRIPT_RESOLVE_GROOVY_H

#include "script/syntax/compile.h"

/* A declared name. A closure that uses it has a copy of its own, linked to what it stands for. */
struct local {
    struct slice name;
    type_id type;
    uint32_t slot;
    bool shared;   /* some closure uses it: it lives in a box */
    bool implicit; /* `it`, which closures in closures have each their own */
    struct local *outer;
};

/* A loop or a switch around a statement: what a jump may leave. */
struct enclosing {
    const struct node *node;
    struct enclosing *outer;
};

struct local_scope {
    struct function *function;
    struct local *locals;      /* newest first */
    struct local *copies;      /* of variables of enclosing functions */
    struct local_scope *outer; /* where a closure stands; NULL in a function */
    struct enclosing *enclosing;
};

/* A node that reads or writes a variable; whether through a box is known at the end. */
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
/* The body of a function or closure, its parameters declared. */
bool resolve_groovy__function(struct groovy_resolver *r, struct function *function);
/* Types as written: NULL for none, which leaves TYPE_NONE. */
bool resolve_groovy__type(struct groovy_resolver *r, const struct node *name, type_id *ret_type);
/* The same, but what is wrong with it is said to be at `offset`. */
bool resolve_groovy__type_at(struct groovy_resolver *r, const struct node *name, int32_t offset, type_id *ret_type);
bool resolve_groovy__declare(struct groovy_resolver *r, struct node *node, type_id type);
struct local *resolve_groovy__find(struct groovy_resolver *r, struct local_scope *scope, struct slice name);
void resolve_groovy__use(struct groovy_resolver *r, struct node *node, const struct local *local);
bool resolve_groovy__refuse(struct groovy_resolver *r, int32_t offset, const char *format, ...) TL_PRINTF(3, 4);
/* The class a name stands for, an import's first; CLASS_COUNT for none. */
enum class_id resolve_groovy__class(struct groovy_resolver *r, struct slice name);

#endif
