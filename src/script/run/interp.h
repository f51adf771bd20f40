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
    uint32_t turns;                  /* Painless: loop turns that are left to this call */
    const struct delegate *delegate; /* Groovy: whose members names without a declaration are first, or NULL */
};

#define FRAME_TURNS_MAX 1000000u

/* LEAVE: on the way to the loop that run->jump names. */
enum flow_result { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_LEAVE, FLOW_RETURN, FLOW_THROW };

/* What a call site found for the class it met last. */
struct call_cache {
    uint16_t id; /* enum class_id; 0 (VOID): nothing yet */
    const struct method *method;
};

/* Evaluates; a throwable gets the place of `node` unless it has one. */
bool interp__eval(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
/* A condition: a boolean, or Groovy's truth. */
bool interp__truth(struct run *run, struct frame *frame, const struct node *node, bool *ret);
enum flow_result interp__exec(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/* Calls a function of the script; `closure` is the value it is the body of, NULL for one with a name. */
bool interp_call(struct run *run, const struct function *function, const struct closure *closure,
                 struct value *arguments, unsigned count, struct value *ret);

/* `count` values on the stack of locals, null. The caller restores stack_next and stack_end. */
struct value *interp__stack(struct run *run, unsigned count);

/* Gives the throwable in `run` a place. Returns: false. */
bool interp__at(struct run *run, int32_t offset);

/* Fields, indexes, methods of values known only now: dispatch.c. Faults get their places from the caller. */
bool dispatch_get(struct run *run, const struct node *node, struct value self, struct value *ret);
bool dispatch_set(struct run *run, const struct node *node, struct value self, struct value value);
/* *index is normalised: what Java's list takes. */
bool dispatch_index(struct run *run, const struct node *node, struct value self, struct value *index);
bool dispatch_get_at(struct run *run, struct value self, struct value index, struct value *ret);
bool dispatch_set_at(struct run *run, struct value self, struct value index, struct value value);
/* arguments[0] is the receiver. */
bool dispatch_call(struct run *run, const struct node *node, struct value *arguments, unsigned count,
                   struct value *ret);
bool dispatch_new(struct run *run, const struct node *node, struct value *arguments, unsigned count, struct value *ret);
/* A method by name, as references and library functions need it. */
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
 * The value of parameter `i`: the next of `count` arguments, a default, or what is left over as an array. *next is the
 * argument after it.
 */
bool groovy_argument(struct run *run, struct frame *frame, unsigned i, struct value *arguments, unsigned count,
                     unsigned *next, struct value *ret);
/* Calls a closure of the script. A list is split up where several parameters are waiting for it. */
bool groovy_invoke(struct run *run, struct closure *closure, struct value *arguments, unsigned count,
                   struct value *ret);
/* Names without a declaration, in a frame that may have delegates; what the script assigned, and the parameters. */
bool groovy_name_get(struct run *run, const struct frame *frame, const struct node *node, struct value *ret);
bool groovy_name_set(struct run *run, const struct frame *frame, const struct node *node, struct value value);
/* f(…) where no function of the script, nor a variable, is called f. arguments[0] is free. */
bool groovy_name_call(struct run *run, const struct frame *frame, const struct node *node, struct value *arguments,
                      unsigned count, struct value *ret);
/* Groovy's with. */
bool groovy_with(struct run *run, struct value self, struct value closure, struct value *ret);
bool groovy_missing_property(struct run *run, struct slice name, struct slice class_name);
/* The values of arguments as messages show them. */
bool groovy_show_arguments(struct run *run, struct value *arguments, unsigned count, struct slice *ret_types,
                           struct slice *ret_values);

/* Power assertions: power_assert.c. */
struct recorder;
bool power_assert(struct run *run, struct frame *frame, const struct node *node);
void power_assert_record(struct recorder *recorder, const struct node *node, struct value value);

/* Name of the Groovy class a script is: the SHA-1 of its text. */
struct slice script_class_name(const struct script *script);

#endif
