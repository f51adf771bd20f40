/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iteration over lists, arrays, maps, sets, map views, streams, and in Groovy texts.
 *
 * A concurrent modification is detected at the same points as in Java.
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
    uint32_t expected;  /* the source's `changes` at the start */
    size_t index;       /* of the next element */
    bool back;          /* ITER_SEQ: the last element returned came from previous(), so next() returns it again */
    struct map_entry *next; /* ITER_DICT */
    struct map_entry *last;
    int64_t from, to; /* ITER_RANGE: the next value and the last, which may be smaller */
};

/* A java.util.Iterator, a value of a script. */
struct cursor {
    struct object object; /* CLASS_CURSOR */
    struct iter iter;
};

/* Starts an iteration. Returns: false, without a throwable, if the value is not iterable. */
bool iter_init(struct iter *iter, struct run *run, struct value source);
/*
 * Advances; takes a step. Returns: false with a throwable. *ret_more: *ret was set; false at the
 * end.
 */
bool iter_next(struct iter *iter, struct value *ret, bool *ret_more);

/*
 * Runs its body for each element. Ends early on a throwable: the caller must check `run->thrown`
 * afterwards.
 */
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
/* Removes the element returned last. */
bool iter_remove(struct iter *iter);

/* Returns: the number of elements of a value that iter_init accepts. */
size_t values_count(struct value collection);

/* Returns: all elements in a new list of class `id`; NULL with a throwable. */
struct seq *values_to_seq(struct run *run, struct value collection, enum class_id id);

#endif
