/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files eval….c share: one function a kind of expression, each taking a node of that kind.
 *
 * All return false with a throwable in `run`, which has its place in the source by then.
 */
#ifndef TL_SCRIPT_EVAL_H
#define TL_SCRIPT_EVAL_H

#include "script/run/convert.h"
#include "script/run/interp.h"

#define eval interp__eval

/* Gives the throwable the place where Painless and Groovy show faults of `node`. Returns: false. */
static inline bool eval__fail(struct run *run, const struct node *node)
{
    return interp__at(run, node->fault);
}

/* Converts what a call site hands out to the type its surroundings know. */
static inline bool eval__take(struct run *run, const struct node *node, struct value *ret)
{
    if ((node->flags & NODE_OPTIMIZED) == 0 || node->type == CLASS_VOID)
        return true;
    return convert_site(run, *ret, node->type, ret) || eval__fail(run, node);
}

/* Where a local variable is, in its box if closures share it. */
static inline struct value *eval__local(struct frame *frame, const struct node *node)
{
    struct value *slot = &frame->slots[node->slot];
    if ((node->flags & NODE_BOXED) && slot->kind == VALUE_OBJECT)
        return &((struct box *)slot->object)->value;
    return slot;
}

/* Places: eval_lvalue.c. */
bool eval__binding(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__assign(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__compound(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__step(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__dot(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__brace(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
/* The text behind a dot, which Groovy may compute. */
bool eval__name(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/* Values: eval_literal.c. */
bool eval__list(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__map(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__new_array(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__concat(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__range(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__lambda(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__reference(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/* A call in one of its three forms: eval_call.c. */
bool eval__call(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

#endif
