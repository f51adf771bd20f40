/* SPDX-License-Identifier: Apache-2.0 */
/* How natives take their receiver and arguments. */
#ifndef TL_SCRIPT_METHOD_ARGS_H
#define TL_SCRIPT_METHOD_ARGS_H

#include "script/value/builder.h"
#include "script/value/function.h"
#include "script/value/iter.h"
#include "script/library/method.h"
#include "script/value/number.h"

/* Arguments have the types of their row already; only null is left to ask for. */
#define NOT_NULL(index)                                           \
    do {                                                          \
        if (call->args[index].kind == VALUE_NULL)                 \
            return run_throw_npe(call->run, "Object.toString()"); \
    } while (0)

/* A call that a native makes of another by itself, without a row; a[0] is the receiver. */
#define CALL(runs, a, n)                                             \
    &(struct call)                                                   \
    {                                                                \
        .run = (runs), .self = (a)[0], .args = (a) + 1, .count = (n) \
    }

/* The last argument; without one, what it is called on. */
static inline struct value call_last(const struct call *call)
{
    return call->count > 0 ? call->args[call->count - 1] : call->self;
}

static inline struct text *text_of(struct value v)
{
    return (struct text *)v.object;
}

static inline struct seq *seq_of(struct value v)
{
    return (struct seq *)v.object;
}

/* A map or set. `doc` of searches is a Map, too, though no dictionary: its own methods aside it is an empty one. */
static inline struct dict *dict_of(struct value v)
{
    static const struct dict nothing = {.object = {.class = CLASS_IMMUTABLE_MAP, .flags = OBJECT_READONLY}};
    return value_is(v, CLASS_DOC) ? (struct dict *)(uintptr_t)&nothing : (struct dict *)v.object;
}

static inline bool give_int(struct value *ret, int64_t i)
{
    *ret = value_int(i);
    return true;
}

static inline bool give_long(struct value *ret, int64_t i)
{
    *ret = value_long(i);
    return true;
}

static inline bool give_boolean(struct value *ret, bool b)
{
    *ret = value_boolean(b);
    return true;
}

static inline bool give_double(struct value *ret, double d)
{
    *ret = value_double(d);
    return true;
}

/* An object that is NULL when its making threw. */
static inline bool give(struct value *ret, const void *object)
{
    *ret = value_of(object);
    return object != NULL;
}

static inline bool give_slice(struct run *run, struct value *ret, struct slice text)
{
    return give(ret, text_new(run, text));
}

/* A method without a result. */
static inline bool give_nothing(struct value *ret)
{
    *ret = VALUE_NONE;
    return true;
}

/* Java's String.format, in the root locale. Returns: NULL and a throwable. */
struct text *format_text(struct run *run, struct text *format, const struct value *arguments, size_t count);

#endif
