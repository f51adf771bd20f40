/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter: walks the resolved tree. Shared by the files eval….c, exec.c and dispatch….c.
 */
#ifndef TL_SCRIPT_INTERP_H
#define TL_SCRIPT_INTERP_H

#include "script/value/function.h"
#include "script/syntax/node.h"

/* A call in progress. */
struct frame {
    const struct function *function;
    struct value *slots;
    uint32_t iterations_left;        /* Painless: loop iterations left to this call */
    const struct delegate *delegate; /* Groovy: its members are searched first for undeclared names; NULL: none */
};

#define FRAME_ITERATIONS_MAX 1000000u

/* LEAVE: unwinding to the loop that run->jump names. */
enum flow_result { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_LEAVE, FLOW_RETURN, FLOW_THROW };

/* Inline cache of a call site: the method for the receiver's class of the last call. */
struct call_cache {
    uint16_t id; /* enum class_id; 0 (VOID): empty */
    const struct method *method;
};

/*
 * Evaluates an expression. Returns: false with a throwable, whose offset is `node`'s unless it has
 * one.
 */
bool interp__eval(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
/* Evaluates a condition: a boolean, or Groovy's truth. */
bool interp__truth(struct run *run, struct frame *frame, const struct node *node, bool *ret);
enum flow_result interp__exec(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/*
 * Calls a function of the script; `closure` is the closure whose body it is, NULL for a named
 * function.
 */
bool interp_call(struct run *run, const struct function *function, const struct closure *closure,
                 struct value *arguments, unsigned count, struct value *ret);

/*
 * Pushes `count` nulls on the stack of locals. The caller restores stack_next and stack_end.
 * Returns: NULL with a throwable if memory is exhausted.
 */
struct value *interp__stack(struct run *run, unsigned count);

/* Sets the offset of the throwable in `run` unless it has one. Returns: false. */
bool interp__at(struct run *run, int32_t offset);

/* Fields, elements, methods of a `def`: dispatch.c. The caller sets the offset of a throwable. */
bool dispatch_get(struct run *run, const struct node *node, struct value self, struct value *ret);
bool dispatch_set(struct run *run, const struct node *node, struct value self, struct value value);
/* Normalises *index to one that Java's list takes. */
bool dispatch_index(struct run *run, const struct node *node, struct value self, struct value *index);
bool dispatch_get_at(struct run *run, struct value self, struct value index, struct value *ret);
bool dispatch_set_at(struct run *run, struct value self, struct value index, struct value value);
/* arguments[0] is the receiver. */
bool dispatch_call(struct run *run, const struct node *node, struct value *arguments, unsigned count,
                   struct value *ret);
bool dispatch_new(struct run *run, const struct node *node, struct value *arguments, unsigned count, struct value *ret);
/*
 * Calls a method by name, for method references and library functions. arguments[0] is the
 * receiver.
 */
bool dispatch_by_name(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret);

/* Groovy's counterparts: dispatch_groovy.c. */
bool groovy_get(struct run *run, struct value self, struct value name, struct value *ret);
bool groovy_set(struct run *run, struct value self, struct value name, struct value value);
bool groovy_get_at(struct run *run, struct value self, struct value index, struct value *ret);
bool groovy_set_at(struct run *run, struct value self, struct value index, struct value value);
bool groovy_call(struct run *run, struct value *arguments, struct slice name, unsigned count, struct value *ret);
bool groovy_static_call(struct run *run, type_id type, struct slice name, struct value *arguments, unsigned count,
                        struct value *ret);
bool groovy_static_get(struct run *run, type_id type, struct slice name, struct value *ret);
bool groovy_new(struct run *run, type_id type, struct value *arguments, unsigned count, struct value *ret);
bool groovy_step(struct run *run, enum operator op, struct value v, struct value *ret);
bool groovy_contains(struct run *run, struct value item, struct value collection, bool *ret);
/*
 * Sets *ret to the value of parameter `i`: the next of `count` arguments, its default, or the remaining arguments as an
 * array. Advances *next past the arguments it took.
 */
bool groovy_argument(struct run *run, struct frame *frame, unsigned i, struct value *arguments, unsigned count,
                     unsigned *next, struct value *ret);
/* Calls a closure of the script. A single list argument is spread over several parameters. */
bool groovy_invoke(struct run *run, struct closure *closure, struct value *arguments, unsigned count,
                   struct value *ret);
/*
 * Read, assign an undeclared name: a member of a delegate of the frame, a binding of the script, or
 * a parameter.
 */
bool groovy_name_get(struct run *run, const struct frame *frame, const struct node *node, struct value *ret);
bool groovy_name_set(struct run *run, const struct frame *frame, const struct node *node, struct value value);
/*
 * Calls f(…) where f is neither a function of the script nor a declared variable. arguments[0] is
 * unused.
 */
bool groovy_name_call(struct run *run, const struct frame *frame, const struct node *node, struct value *arguments,
                      unsigned count, struct value *ret);
/* Calls Groovy's with: `closure`, with `self` as its delegate. */
bool groovy_with(struct run *run, struct value self, struct value closure, struct value *ret);
bool groovy_missing_property(struct run *run, struct slice name, struct slice class_name);
/* Formats types and values of arguments for messages. */
bool groovy_show_arguments(struct run *run, struct value *arguments, unsigned count, struct slice *ret_types,
                           struct slice *ret_values);

/* Power assertions: power_assert.c. */
struct recorder;
bool power_assert(struct run *run, struct frame *frame, const struct node *node);
void power_assert_record(struct recorder *recorder, const struct node *node, struct value value);

/* Returns: the name of a script's Groovy class: the SHA-1 of its source. */
struct slice script_class_name(const struct script *script);

#endif
