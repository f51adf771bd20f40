/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map from byte strings to pointers.
 *
 * Keys are hashed with the secret key of the process (siphash.h), so that clients cannot choose
 * colliding keys. Iteration is in insertion order, never in the order of hashes or addresses, so
 * that results built from a map are equal in every run. The map copies keys; values belong to the
 * caller.
 */
#ifndef TL_BASE_MAP_H
#define TL_BASE_MAP_H

#include "base/slice.h"

struct map_slot;

struct map {
    struct map_slot *slots; /* in insertion order; removed slots have a NULL key */
    uint32_t *table;        /* open addressing: slot index + 1; 0: empty */
    size_t count;           /* slots that are not removed */
    size_t slot_count;      /* including removed slots */
    size_t slot_capacity;
    size_t table_size; /* power of two, or 0 */
};

#define MAP_INIT ((struct map){NULL, NULL, 0, 0, 0, 0})

/* Frees the table and the keys; not the values. */
void map_deinit(struct map *map);

/* Returns: the value; NULL: none. */
void *map_get(const struct map *map, struct slice key);

/* Sets a value (not NULL). Returns: the replaced value; NULL: none. */
void *map_put(struct map *map, struct slice key, void *value);

/* Removes a key. Returns: the removed value; NULL: none. */
void *map_remove(struct map *map, struct slice key);

/*
 * Iterates in insertion order; the first call has *position = 0. The map must not change meanwhile.
 * Returns: false at the end.
 */
bool map_next(const struct map *map, size_t *position, struct slice *ret_key, void **ret_value);

#endif
