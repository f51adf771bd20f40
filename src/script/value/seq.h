/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences: Java's lists and arrays.
 *
 * All list classes share one struct. A sub list refers to its root list directly, even through
 * other sub lists, so element access takes constant time. An array is a block of values with the
 * type of its elements.
 */
#ifndef TL_SCRIPT_SEQ_H
#define TL_SCRIPT_SEQ_H

#include "script/value/run.h"

enum {
    OBJECT_FIXED = 1,    /* elements may change, the size may not: Arrays.asList */
    OBJECT_READONLY = 2, /* neither: params, Collections.unmodifiable… */
};

struct seq {
    struct object object;
    uint32_t count;
    uint32_t capacity;
    uint32_t changes;    /* of the size; iterators compare it */
    uint32_t offset;     /* of a sub list in its root */
    uint32_t level;      /* sub lists from here to the root; 0: no sub list */
    struct seq *root;    /* of a sub list: the list that has the elements; else NULL */
    struct seq *parent;  /* of a sub list: the list it was created from, which grows and shrinks with it; else NULL */
    struct value *items; /* NULL in a sub list */
};

/* object.class of an array; no class of the table has this number. */
#define CLASS_ARRAY ((uint16_t)CLASS_COUNT)

struct array {
    struct object object;
    type_id element;
    uint32_t count;
    struct value items[];
};

#define SEQ_COUNT_MAX (16u << 20)

static inline bool value_is_seq(struct value v)
{
    return value_has_shape(v, SHAPE_LIST);
}

static inline bool value_is_array(struct value v)
{
    return v.kind == VALUE_OBJECT && v.object->class == CLASS_ARRAY;
}

/* Returns: an empty list; NULL and a throwable when `capacity` is beyond the budget. */
struct seq *seq_new(struct run *run, enum class_id id, size_t capacity);

/* Returns: an element; null past the end, as in a sub list whose parent shrank. */
struct value seq_item(const struct seq *seq, size_t index);

/* Throws if a sub list's parent was modified since; for operations on the whole list. */
bool seq_check(struct run *run, const struct seq *seq);

/* These throw as Java's lists do, for an index out of bounds or a list that does not change. */
bool seq_get(struct run *run, const struct seq *seq, int64_t index, struct value *ret);
bool seq_set(struct run *run, struct seq *seq, int64_t index, struct value value, struct value *ret_old);
bool seq_add(struct run *run, struct seq *seq, struct value value);
bool seq_insert(struct run *run, struct seq *seq, int64_t index, struct value value);
bool seq_remove(struct run *run, struct seq *seq, int64_t index, struct value *ret_old);
bool seq_clear(struct run *run, struct seq *seq);

/* Throws if the list is read-only. */
bool seq_check_writable(struct run *run, const struct seq *seq);

struct seq *seq_sub(struct run *run, struct seq *parent, int64_t from, int64_t to);

/*
 * Returns: an array of `count` default values; NULL and a throwable (negative, or beyond the
 * budget).
 */
struct array *array_new(struct run *run, type_id element, int64_t count);
bool array_check(struct run *run, const struct array *array, int64_t index);
/* Returns: the initial value of an array element or variable of this type. */
struct value value_default(type_id type);

/* Sorts in place, stable, by a comparator (NULL kind: natural order). */
bool values_sort(struct run *run, struct value *items, size_t count, struct value comparator);

#endif
