/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map in insertion order; see map.h. */
#include "base/map.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"

enum { TABLE_SIZE_MIN = 16 };

struct map_slot {
    uint64_t hash;
    char *key; /* NULL: removed */
    size_t key_len;
    void *value;
};

void map_deinit(struct map *map)
{
    for (size_t i = 0; i < map->slot_count; i++)
        mem_free(map->slots[i].key);
    mem_free(map->slots);
    mem_free(map->table);
    *map = MAP_INIT;
}

/* Returns: the table position of the key, or the empty position that ended the search. */
static size_t find_slot(const struct map *map, struct slice key, uint64_t hash)
{
    size_t mask = map->table_size - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t entry = map->table[i];
        if (entry == 0)
            return i;
        const struct map_slot *slot = &map->slots[entry - 1];
        if (slot->key != NULL && slot->hash == hash && slice_equal((struct slice){slot->key, slot->key_len}, key))
            return i;
    }
}

/* Enters a slot into the table. */
static void index_slot(struct map *map, size_t slot_index)
{
    size_t mask = map->table_size - 1;
    size_t i = map->slots[slot_index].hash & mask;
    while (map->table[i] != 0)
        i = (i + 1) & mask;
    map->table[i] = (uint32_t)slot_index + 1;
}

/*
 * Removes the removed slots, and sizes the table for at least three positions per remaining slot.
 */
static void rebuild_slots(struct map *map)
{
    size_t live = 0;
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].key != NULL)
            map->slots[live++] = map->slots[i];
    map->slot_count = live;
    size_t size = TABLE_SIZE_MIN;
    while (size < (live + 1) * 3)
        size *= 2;
    mem_free(map->table);
    map->table = mem_zalloc(size * sizeof *map->table);
    map->table_size = size;
    for (size_t i = 0; i < live; i++)
        index_slot(map, i);
}

void *map_get(const struct map *map, struct slice key)
{
    if (map->count == 0)
        return NULL;
    uint32_t entry = map->table[find_slot(map, key, siphash_keyed(key))];
    return entry == 0 ? NULL : map->slots[entry - 1].value;
}

void *map_put(struct map *map, struct slice key, void *value)
{
    REQUIRE(value != NULL);
    uint64_t hash = siphash_keyed(key);
    if (map->table_size > 0) {
        uint32_t entry = map->table[find_slot(map, key, hash)];
        if (entry != 0) {
            void *before = map->slots[entry - 1].value;
            map->slots[entry - 1].value = value;
            return before;
        }
    }
    if ((map->slot_count + 1) * 4 > map->table_size * 3)
        rebuild_slots(map);
    if (map->slot_count == map->slot_capacity) {
        map->slot_capacity = map->slot_capacity ? map->slot_capacity * 2 : 8;
        map->slots = mem_realloc(map->slots, map->slot_capacity * sizeof *map->slots);
    }
    map->slots[map->slot_count] = (struct map_slot){hash, mem_strdup(key.data, key.len), key.len, value};
    index_slot(map, map->slot_count++);
    map->count++;
    return NULL;
}

void *map_remove(struct map *map, struct slice key)
{
    if (map->count == 0)
        return NULL;
    uint32_t entry = map->table[find_slot(map, key, siphash_keyed(key))];
    if (entry == 0)
        return NULL;
    /* The table position stays in use until the next rebuild, so that searches continue past it. */
    struct map_slot *slot = &map->slots[entry - 1];
    void *value = slot->value;
    mem_free(slot->key);
    slot->key = NULL;
    map->count--;
    return value;
}

bool map_next(const struct map *map, size_t *position, struct slice *ret_key, void **ret_value)
{
    while (*position < map->slot_count) {
        const struct map_slot *slot = &map->slots[(*position)++];
        if (slot->key == NULL)
            continue;
        *ret_key = (struct slice){slot->key, slot->key_len};
        *ret_value = slot->value;
        return true;
    }
    return false;
}
