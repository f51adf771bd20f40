/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries: Java's maps and sets (a set is a map without values).
 *
 * The hash table has the layout of java.util.HashMap, since its iteration order shows in documents: the same hash
 * spreading, table sizes and order within a bucket. A table below 64 buckets also doubles for a bucket of more than 8
 * entries. Not copied: in a larger table Java turns such a bucket into a tree, which can change the order within it.
 * Entries are also linked in insertion order, the iteration order of a LinkedHashMap. A tree map has its entries in a
 * sorted array.
 */
#ifndef TL_SCRIPT_DICT_H
#define TL_SCRIPT_DICT_H

#include "script/value/seq.h"
#include "script/value/text.h"

struct map_entry {
    struct object object; /* CLASS_ENTRY: Map.Entry is the entry itself; SIMPLE_ENTRY for one without a map */
    int32_t hash;         /* spread */
    struct dict *owner;
    struct value key;
    struct value value;
    struct map_entry *chain;  /* next in the bucket */
    struct map_entry *before; /* in the order of insertion */
    struct map_entry *after;
};

struct dict {
    struct object object;
    uint32_t count;
    uint32_t changes;      /* of the set of keys */
    uint32_t bucket_count; /* 0, or a power of two */
    uint32_t reserve;      /* the table's first size; 0 for Java's 16 */
    uint32_t capacity;     /* of `sorted` */
    struct map_entry **buckets;
    struct map_entry *head;
    struct map_entry *tail;
    struct map_entry **sorted; /* tree maps and sets: all entries by key */
    struct value comparator; /* of these; null: natural order */
    struct value initial;    /* MAP_WITH_DEFAULT: the closure that makes a missing key's value */
};

#define DICT_COUNT_MAX (4u << 20)

/* A live view of a map: its keys, values or entries. */
struct map_view {
    struct object object; /* CLASS_KEY_SET, CLASS_VALUE_COLLECTION, CLASS_ENTRY_SET */
    struct dict *dict;
};

static inline bool value_is_map(struct value v)
{
    return value_has_shape(v, SHAPE_MAP);
}

/* A set with a table of its own, not a view. */
static inline bool value_is_set(struct value v)
{
    return value_has_shape(v, SHAPE_SET);
}

struct dict *dict_new(struct run *run, enum class_id id);
/* Turns a map into one of Collections.unmodifiableMap(), in the same order. */
void dict_freeze(struct dict *dict);
/* Sizes the table for `count` more entries as HashMap.putAll and the copying constructors do. */
bool dict_reserve(struct run *run, struct dict *dict, size_t count);

/* Returns: false if the key's hash or equality throws; else true with the entry or NULL. */
bool dict_find(struct run *run, struct dict *dict, struct value key, struct map_entry **ret_entry);
/* Returns: the entry of a text key, or NULL. Never throws. */
struct map_entry *dict_find_text(struct run *run, const struct dict *dict, struct text *key);
struct map_entry *dict_find_ascii(struct run *run, struct dict *dict, const char *key);

/* Sets a value; *ret_old (may be NULL) is the previous value, null if there was none. */
bool dict_put(struct run *run, struct dict *dict, struct value key, struct value value, struct value *ret_old);
bool dict_put_ascii(struct run *run, struct dict *dict, const char *key, struct value value);
/* Adds to a set; *ret_added: the key was not in it. */
bool dict_add(struct run *run, struct dict *dict, struct value key, bool *ret_added);
bool dict_remove(struct run *run, struct dict *dict, struct value key, struct map_entry **ret_entry);
bool dict_remove_entry(struct run *run, struct dict *dict, struct map_entry *entry);
bool dict_clear(struct run *run, struct dict *dict);
bool dict_put_all(struct run *run, struct dict *to, struct dict *from);
bool dict_check_writable(struct run *run, const struct dict *dict);

/*
 * Finds the index of a key in `sorted`, or where it would be inserted. Returns: false if a
 * comparison throws.
 */
bool dict_search(struct run *run, const struct dict *dict, struct value key, uint32_t *ret_index, bool *ret_found);

/*
 * The first entry in iteration order, and the next; NULL at the end. Invalid after the set of keys
 * changes.
 */
struct map_entry *dict_first(const struct dict *dict);
struct map_entry *dict_next(const struct dict *dict, const struct map_entry *entry);

struct map_entry *entry_new(struct run *run, struct value key, struct value value);

#endif
