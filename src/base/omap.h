/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered map from byte strings to byte strings, in byte order of the keys.
 *
 * A skip list whose coin is a generator of its own with a fixed seed, so equal operations build equal
 * lists. The lowest level is linked both ways; an entry keeps its address until it is removed, so a
 * pointer to one is a cursor. Keys and values are copied. Reading needs no lock against other readers;
 * a writer needs the map for itself. Keys that come in rising order are not searched for: each takes one
 * comparison, with the last.
 */
#ifndef TL_BASE_OMAP_H
#define TL_BASE_OMAP_H

#include "base/rand.h"
#include "base/slice.h"

enum { OMAP_LEVELS = 16 };

struct omap_entry;

struct omap {
    struct omap_entry *heads[OMAP_LEVELS]; /* first entry of each level, NULL when empty */
    struct omap_entry *lasts[OMAP_LEVELS]; /* last entry of each level, NULL when empty */
    struct rng coin;
    size_t count;
};

void omap_init(struct omap *map);
void omap_deinit(struct omap *map);
/* Removes all entries; the map may be used again. */
void omap_clear(struct omap *map);

/*
 * Sets the value of a key.
 * Returns: its entry, new or reused; what omap_value() returned for it before is no longer good.
 */
struct omap_entry *omap_put(struct omap *map, struct slice key, struct slice value);

/* Removes a key. Returns: whether it was there. */
bool omap_remove(struct omap *map, struct slice key);

/* Each returns NULL where there is no such entry. */
struct omap_entry *omap_get(const struct omap *map, struct slice key);
struct omap_entry *omap_first(const struct omap *map);
struct omap_entry *omap_last(const struct omap *map);
/* The first entry at or after `key`. */
struct omap_entry *omap_seek(const struct omap *map, struct slice key);
/* The last entry at or before `key`. */
struct omap_entry *omap_seek_for_prev(const struct omap *map, struct slice key);
struct omap_entry *omap_next(const struct omap_entry *entry);
struct omap_entry *omap_prev(const struct omap_entry *entry);

/* They live until the entry is removed, the value also until the next omap_put() of its key. */
struct slice omap_key(const struct omap_entry *entry);
struct slice omap_value(const struct omap_entry *entry);

#endif
