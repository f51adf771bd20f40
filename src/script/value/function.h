/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function values: lambdas, closures, method references, comparators, and classes as values.
 */
#ifndef TL_SCRIPT_FUNCTION_H
#define TL_SCRIPT_FUNCTION_H

#include "script/value/run.h"

enum closure_kind {
    CLOSURE_BODY,   /* a lambda or closure of the script, with its captured variables */
    CLOSURE_NATIVE, /* made by a library function: Comparator.reversed() */
    /* Calls a method by name on held[0] or the class held[1]: String::length, Groovy's x.&name */
    CLOSURE_CALLER,
};

struct closure;
typedef bool closure_native(struct run *run, struct closure *closure, struct value *arguments, unsigned count,
                            struct value *ret);

/* Groovy's with: inside the closure, names are looked up first among the members of this value. */
struct delegate {
    struct value value;
    const struct delegate *outer; /* of the closure around it, or NULL */
};

struct closure {
    struct object object; /* CLASS_CLOSURE */
    enum closure_kind kind;
    unsigned arity;
    const struct function *body;
    struct value *captured; /* of a BODY; in Groovy boxes of variables */
    closure_native *native;
    struct value held[4];            /* captured values of a native one */
    struct text *name;               /* CALLER */
    const struct delegate *delegate; /* of a BODY in Groovy, or NULL */
};

/* A class as a value, Groovy's `x.class`. */
struct class_object {
    struct object object; /* CLASS_CLASS */
    type_id type;
};

/* A variable that closures share (Groovy). */
struct box {
    struct object object;
    struct value value;
};

/* Returns: Groovy's class name of a closure of the script; empty for any other value. */
struct slice closure_class_name(struct run *run, struct value v);

/* Returns: a function that calls `first`, then `second` with its result. */
struct value function_then(struct run *run, struct value first, struct value second);

struct value closure_native_new(struct run *run, closure_native *native, unsigned arity, struct value a,
                                struct value b);

#endif
