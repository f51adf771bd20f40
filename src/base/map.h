/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map from byte strings to pointers.
 *
 * Keys are hashed under the key of the process (siphash.h), so nobody who chooses them can make them collide. Iteration goes in insertion order (removals leave no trace in it), never in the order of hashes or
 * addresses, so what is built by walking a map is the same on every run. Keys are copied; values are the
 * caller's.
 */
#ifndef TL_BASE_MAP_H
#define TL_BASE_MAP_H

#include "base/slice.h"

struct map_slot;

struct map {
    struct map_slot *slots; /* in insertion order; removed ones have a NULL key */
    uint32_t *table;        /* open addressing: slot index + 1, 0 empty */
    size_t count;           /* live entries */
    size_t slot_count;      /* used slots, removed ones included */
    size_t slot_capacity;
    size_t table_size; /* power of two, or 0 */
};

#define MAP_INIT ((struct map){NULL, NULL, 0, 0, 0, 0})

/* Frees the table and the keys; the values are the caller's to free before. */
void map_deinit(struct map *map);

/* Returns: the value, or NULL where there is none. */
void *map_get(const struct map *map, struct slice key);

/* Sets a value (not NULL). Returns: the value that was there before, or NULL. */
void *map_put(struct map *map, struct slice key, void *value);

/* Returns: the value that was there, or NULL. */
void *map_remove(struct map *map, struct slice key);

/* Walks in insertion order: start with *position = 0. Returns: false at the end. */
bool map_next(const struct map *map, size_t *position, struct slice *ret_key, void **ret_value);

#endif
