/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered map from byte strings to byte strings, in byte order of the keys.
 *
 * It is a skip list. Its random levels come from a generator with a fixed seed, so equal operations
 * build equal lists. The lowest level is doubly linked, and an entry keeps its address until it is
 * removed, so a pointer to an entry is a cursor. Keys and values are copied. Concurrent readers
 * need no lock; a writer needs exclusive access. Appending keys in ascending order takes one
 * comparison each.
 */
#ifndef TL_BASE_OMAP_H
#define TL_BASE_OMAP_H

#include "base/rand.h"
#include "base/slice.h"

enum { OMAP_LEVELS = 16 };

struct omap_entry;

struct omap {
    struct omap_entry *heads[OMAP_LEVELS]; /* first entry of each level; NULL: empty */
    struct omap_entry *lasts[OMAP_LEVELS]; /* last entry of each level; NULL: empty */
    struct rng coin;                       /* draws the levels of new entries */
    size_t count;
};

void omap_init(struct omap *map);
void omap_deinit(struct omap *map);
/* Removes all entries; the map stays usable. */
void omap_clear(struct omap *map);

/*
 * Sets the value of a key.
 * Returns: its entry, new or existing. An earlier result of omap_value() for it is invalid.
 */
struct omap_entry *omap_put(struct omap *map, struct slice key, struct slice value);

/* Removes a key. Returns: whether it was present. */
bool omap_remove(struct omap *map, struct slice key);

/* These return NULL when there is no such entry. */
struct omap_entry *omap_get(const struct omap *map, struct slice key);
struct omap_entry *omap_first(const struct omap *map);
struct omap_entry *omap_last(const struct omap *map);
/* The first entry at or after `key`. */
struct omap_entry *omap_seek(const struct omap *map, struct slice key);
/* The last entry at or before `key`. */
struct omap_entry *omap_seek_for_prev(const struct omap *map, struct slice key);
struct omap_entry *omap_next(const struct omap_entry *entry);
struct omap_entry *omap_prev(const struct omap_entry *entry);
/* Prefetches the value of an entry and the entry after it, for a loop over all. */
void omap_prefetch(const struct omap_entry *entry);

/* Valid until the entry is removed; the value only until the next omap_put() of its key. */
struct slice omap_key(const struct omap_entry *entry);
struct slice omap_value(const struct omap_entry *entry);

#endif
