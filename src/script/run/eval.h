/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files eval….c: one function per kind of expression, each taking a node of that kind.
 *
 * All return false with a throwable in `run` whose offset in the source is set.
 */
#ifndef TL_SCRIPT_EVAL_H
#define TL_SCRIPT_EVAL_H

#include "script/run/convert.h"
#include "script/run/interp.h"

#define eval interp__eval

/*
 * Sets the throwable's offset to the one that Painless and Groovy report for `node`. Returns:
 * false.
 */
static inline bool eval__fail(struct run *run, const struct node *node)
{
    return interp__at(run, node->error_offset);
}

/* Converts the result of a dynamic call site to the static type of its context (NODE_OPTIMIZED). */
static inline bool eval__take(struct run *run, const struct node *node, struct value *ret)
{
    if ((node->flags & NODE_OPTIMIZED) == 0 || node->type == CLASS_VOID)
        return true;
    return convert_site(run, *ret, node->type, ret) || eval__fail(run, node);
}

/* Returns: the storage of a local variable: its slot, or its box if closures share it. */
static inline struct value *eval__local(struct frame *frame, const struct node *node)
{
    struct value *slot = &frame->slots[node->slot];
    if ((node->flags & NODE_BOXED) && slot->kind == VALUE_OBJECT)
        return &((struct box *)slot->object)->value;
    return slot;
}

/* Variables, members, elements, and assignments to them: eval_lvalue.c. */
bool eval__binding(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__assign(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__compound(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__step(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__dot(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__brace(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
/* Sets *ret to the name after a dot, which Groovy may compute. */
bool eval__name(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/* Values: eval_literal.c. */
bool eval__list(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__map(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__new_array(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__concat(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__range(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__lambda(struct run *run, struct frame *frame, const struct node *node, struct value *ret);
bool eval__reference(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

/* Calls of methods, of functions of the script, and constructors: eval_call.c. */
bool eval__call(struct run *run, struct frame *frame, const struct node *node, struct value *ret);

#endif
