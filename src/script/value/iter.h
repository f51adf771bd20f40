/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking: lists, arrays, maps, sets, views of maps, streams, and in Groovy texts, one element at a time.
 *
 * A walk notices when what it walks changes under it, at the places where Java does.
 */
#ifndef TL_SCRIPT_ITER_H
#define TL_SCRIPT_ITER_H

#include "script/value/dict.h"

enum iter_kind { ITER_EMPTY, ITER_SEQ, ITER_ARRAY, ITER_DICT, ITER_TEXT, ITER_RANGE };

struct iter {
    struct run *run;
    enum iter_kind kind;
    uint16_t part; /* ITER_DICT: CLASS_KEY_SET, CLASS_VALUE_COLLECTION or CLASS_ENTRY_SET */
    struct value source;
    uint32_t expected;  /* changes seen at the start */
    size_t index;       /* of the next element */
    bool back;          /* ITER_SEQ: the last element handed out was the one before, so it is the next again */
    struct map_entry *next; /* ITER_DICT */
    struct map_entry *last;
    int64_t from, to; /* ITER_RANGE: next value and the last, which may lie below */
};

/* A java.util.Iterator in a script's hands. */
struct cursor {
    struct object object; /* CLASS_CURSOR */
    struct iter iter;
};

/* Starts a walk. Returns: false, without a throwable, when the value cannot be walked. */
bool iter_init(struct iter *iter, struct run *run, struct value source);
/* Returns: false on a throwable; *ret_more tells whether *ret was set. Counts a step. */
bool iter_next(struct iter *iter, struct value *ret, bool *ret_more);

/* Runs its body for each element. Ends early on a throwable: the caller asks `run->thrown` after it. */
#define walk(iter, item) \
    for (struct value item = VALUE_NONE, *more_ = &item; more_ != NULL && iter_walk(iter, &item, &more_);)

static inline bool iter_walk(struct iter *iter, struct value *item, struct value **more)
{
    bool has;
    if (iter_next(iter, item, &has) && has)
        return true;
    *more = NULL;
    return false;
}

bool iter_has_next(const struct iter *iter);
/* Removes the element that was handed out last. */
bool iter_remove(struct iter *iter);

/* The number of elements of what iter_init takes. */
size_t values_count(struct value collection);

/* All elements as a new list of class `id`. */
struct seq *values_to_seq(struct run *run, struct value collection, enum class_id id);

#endif
