/* SPDX-License-Identifier: Apache-2.0 */
/* How natives read their receiver and arguments, and return results. */
#ifndef TL_SCRIPT_METHOD_ARGS_H
#define TL_SCRIPT_METHOD_ARGS_H

#include "script/value/builder.h"
#include "script/value/function.h"
#include "script/value/iter.h"
#include "script/library/method.h"
#include "script/value/number.h"

/* Throws a NullPointerException if the argument is null. Other checks are not needed: arguments
   already have the types of their row. */
#define NOT_NULL(index)                                           \
    do {                                                          \
        if (call->args[index].kind == VALUE_NULL)                 \
            return run_throw_npe(call->run, "Object.toString()"); \
    } while (0)

/* A call that one native makes of another directly, without a row; a[0] is the receiver, `n`
   arguments follow. */
#define CALL(runs, a, n)                                             \
    &(struct call)                                                   \
    {                                                                \
        .run = (runs), .self = (a)[0], .args = (a) + 1, .count = (n) \
    }

/* Returns: the last argument, or the receiver if there are no arguments. */
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

/* Returns: the dictionary of a map or set. `doc` of searches is a Map but no dictionary: for the
   methods of Map it is an empty one. */
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

/* Gives an object. Returns: false if it is NULL, which means that its constructor threw. */
static inline bool give(struct value *ret, const void *object)
{
    *ret = value_of(object);
    return object != NULL;
}

static inline bool give_slice(struct run *run, struct value *ret, struct slice text)
{
    return give(ret, text_new(run, text));
}

/* Gives null, as the result of a void method. */
static inline bool give_nothing(struct value *ret)
{
    *ret = VALUE_NONE;
    return true;
}

/* Formats as Java's String.format does in the root locale. Returns: the text; NULL with a
   throwable in the run. */
struct text *format_text(struct run *run, struct text *format, const struct value *arguments, size_t count);

#endif
