/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered map of byte strings, a skip list; see omap.h. */
#include "base/omap.h"

#include "base/alloc.h"
#include "base/check.h"

struct omap_entry {
    struct omap_entry *prev; /* on the lowest level; NULL: the first entry */
    char *value;
    size_t value_len;
    size_t key_len;
    int levels;
    struct omap_entry *next[]; /* `levels` pointers, then the bytes of the key */
};

/* Any seed will do; a fixed one makes runs repeatable. */
enum { COIN_SEED = 1 };

static char *key_bytes(const struct omap_entry *entry)
{
    return (char *)&entry->next[entry->levels];
}

void omap_init(struct omap *map)
{
    *map = (struct omap){.count = 0};
    rng_init(&map->coin, COIN_SEED);
}

static void entry_free(struct omap_entry *entry)
{
    mem_free(entry->value);
    mem_free(entry);
}

void omap_clear(struct omap *map)
{
    struct omap_entry *entry = map->heads[0];
    while (entry != NULL) {
        struct omap_entry *following = entry->next[0];
        entry_free(entry);
        entry = following;
    }
    omap_init(map);
}

void omap_deinit(struct omap *map)
{
    omap_clear(map);
}

struct slice omap_key(const struct omap_entry *entry)
{
    return (struct slice){key_bytes(entry), entry->key_len};
}

struct slice omap_value(const struct omap_entry *entry)
{
    return (struct slice){entry->value, entry->value_len};
}

/* Returns: the next pointer of `entry` (NULL: of the head) on a level. */
static struct omap_entry **link_after(const struct omap *map, struct omap_entry *entry, int level)
{
    return entry == NULL ? (struct omap_entry **)&map->heads[level] : &entry->next[level];
}

/* Returns: whether the key is greater than all keys of a map that is not empty. */
static bool is_after_all(const struct omap *map, struct slice key)
{
    return map->lasts[0] != NULL && slice_compare(omap_key(map->lasts[0]), key) < 0;
}

/*
 * Finds the last entry before `key` on each level; NULL: none. ret_before may be NULL.
 * Returns: the entry of the lowest level.
 */
static struct omap_entry *find_before(const struct omap *map, struct slice key,
                                      struct omap_entry *ret_before[OMAP_LEVELS])
{
    struct omap_entry *before = NULL;
    struct omap_entry *known = NULL; /* ended the search on the level above: not before the key */
    if (is_after_all(map, key)) {
        if (ret_before != NULL)
            memcpy(ret_before, map->lasts, sizeof map->lasts);
        return map->lasts[0];
    }
    int level = OMAP_LEVELS - 1;
    for (; level > 0 && map->heads[level] == NULL; level--) /* most are empty in a small map */
        if (ret_before != NULL)
            ret_before[level] = NULL;
    for (; level >= 0; level--) {
        struct omap_entry *next = *link_after(map, before, level);
        while (next != known && next != NULL && slice_compare(omap_key(next), key) < 0) {
            before = next;
            next = before->next[level];
        }
        known = next;
        if (ret_before != NULL)
            ret_before[level] = before;
    }
    return before;
}

struct omap_entry *omap_seek(const struct omap *map, struct slice key)
{
    return *link_after(map, find_before(map, key, NULL), 0);
}

struct omap_entry *omap_get(const struct omap *map, struct slice key)
{
    struct omap_entry *entry = omap_seek(map, key);
    return entry != NULL && slice_equal(omap_key(entry), key) ? entry : NULL;
}

struct omap_entry *omap_seek_for_prev(const struct omap *map, struct slice key)
{
    struct omap_entry *before = find_before(map, key, NULL);
    struct omap_entry *next = *link_after(map, before, 0);
    return next != NULL && slice_equal(omap_key(next), key) ? next : before;
}

struct omap_entry *omap_first(const struct omap *map)
{
    return map->heads[0];
}

struct omap_entry *omap_last(const struct omap *map)
{
    return map->lasts[0];
}

struct omap_entry *omap_next(const struct omap_entry *entry)
{
    return entry->next[0];
}

void omap_prefetch(const struct omap_entry *entry)
{
    __builtin_prefetch(entry->value);
    __builtin_prefetch(entry->next[0]);
}

struct omap_entry *omap_prev(const struct omap_entry *entry)
{
    return entry->prev;
}

/* Returns: a random number of levels; a quarter of the entries of a level reach the next one. */
static int random_levels(struct omap *map)
{
    uint64_t bits = rng_next(&map->coin);
    int levels = 1;
    while (levels < OMAP_LEVELS && (bits & 3) == 0) {
        bits >>= 2;
        levels++;
    }
    return levels;
}

static struct omap_entry *entry_new(int levels, struct slice key)
{
    struct omap_entry *entry = mem_alloc(sizeof *entry + (size_t)levels * sizeof entry->next[0] + key.len);
    *entry = (struct omap_entry){.key_len = key.len, .levels = levels};
    if (key.len > 0)
        memcpy(key_bytes(entry), key.data, key.len);
    return entry;
}

static void set_value(struct omap_entry *entry, struct slice value)
{
    /* The old bytes are freed last: `value` may point into them. */
    char *before = entry->value;
    entry->value = mem_dup(value.data, value.len);
    entry->value_len = value.len;
    mem_free(before);
}

struct omap_entry *omap_put(struct omap *map, struct slice key, struct slice value)
{
    struct omap_entry *before[OMAP_LEVELS];
    find_before(map, key, before);
    struct omap_entry *entry = *link_after(map, before[0], 0);
    if (entry != NULL && slice_equal(omap_key(entry), key)) {
        set_value(entry, value);
        return entry;
    }
    entry = entry_new(random_levels(map), key);
    set_value(entry, value);
    for (int level = 0; level < entry->levels; level++) {
        struct omap_entry **link = link_after(map, before[level], level);
        entry->next[level] = *link;
        *link = entry;
        if (entry->next[level] == NULL)
            map->lasts[level] = entry;
    }
    entry->prev = before[0];
    if (entry->next[0] != NULL)
        entry->next[0]->prev = entry;
    map->count++;
    return entry;
}

bool omap_remove(struct omap *map, struct slice key)
{
    struct omap_entry *before[OMAP_LEVELS];
    find_before(map, key, before);
    struct omap_entry *entry = *link_after(map, before[0], 0);
    if (entry == NULL || !slice_equal(omap_key(entry), key))
        return false;
    for (int level = 0; level < entry->levels; level++) {
        struct omap_entry **link = link_after(map, before[level], level);
        INSIST(*link == entry);
        *link = entry->next[level];
        if (map->lasts[level] == entry)
            map->lasts[level] = before[level];
    }
    if (entry->next[0] != NULL)
        entry->next[0]->prev = entry->prev;
    entry_free(entry);
    map->count--;
    return true;
}
