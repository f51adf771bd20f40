/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An overlay's map of one space: an ordered map whose snapshots share its memory.
 *
 * It is a B+ tree that is copied on write. A snapshot takes a reference to the root. A change copies
 * the shared nodes on its way to one leaf, and changes nodes that only this map has in place. So a
 * snapshot costs O(1), and a change O(log n), however many snapshots there are and whatever they
 * share. Keys and values are in entries that the copies of a leaf share.
 *
 * Invariants
 *  1. An entry is never modified after it was put. A value is replaced by another entry.
 *  2. A node with more than one reference is not modified, nor is any node below one. A node with
 *     one reference, below nodes with one reference, is reachable through this map only.
 *  3. References are only added by the thread that changes the map, to nodes that it reaches
 *     through it. Any thread may drop those of its snapshot. So a node found to have one reference
 *     keeps it, and a node below others is freed by whichever thread drops its last reference.
 *  4. No node is empty. All leaves have level 0; a node of level n has children of level n - 1. The
 *     root has no single child after a removal.
 *  5. For each child but the first: the keys of the children before it are below its `low`, and its
 *     own keys are not. `low` never changes. The first child's is not used, and it never becomes
 *     a later child.
 *  6. A change copies at most one node of each level, and splits at most one of each. Only a full
 *     node is split, in halves but at the right edge, so a level is split at most once in
 *     OVERLAY_NODE_MAX / 2 splits of the one below. OVERLAY_LEVELS_MAX levels take 10^13 new keys,
 *     also if others are removed, which does not join nodes.
 *  7. A node without references is freed by the thread that drops the last one, or if there are many
 *     by the reclaimer (base/reclaim.h): the writer drops a tree of any size at the same cost.
 *  8. A cursor is valid until its map changes. Readers of different snapshots need no lock.
 */
#ifndef TL_STORE_OVERLAY_MAP_H
#define TL_STORE_OVERLAY_MAP_H

#include <stdatomic.h>

#include "base/slice.h"

enum { OVERLAY_NODE_MAX = 16, OVERLAY_LEVELS_MAX = 16 };

/* A change of a key. */
struct overlay_entry {
    atomic_uint refs;
    uint32_t ordinal; /* of the key, in order of the first write */
    uint32_t key_len;
    bool deleted; /* there is no value */
    size_t value_len;
    char bytes[]; /* of the key, then of the value */
};

/* Returns: a new entry with one reference. value.data NULL and `deleted`: a deletion. */
struct overlay_entry *overlay_entry_new(struct slice key, struct slice value, bool deleted, uint32_t ordinal);
void overlay_entry_ref(struct overlay_entry *entry);
/* The last one frees it. NULL: no effect. */
void overlay_entry_unref(struct overlay_entry *entry);

static inline struct slice overlay_entry_key(const struct overlay_entry *entry)
{
    return (struct slice){entry->bytes, entry->key_len};
}

/* Returns: the value; data NULL: deleted. */
static inline struct slice overlay_entry_value(const struct overlay_entry *entry)
{
    return entry->deleted ? SLICE_NONE : (struct slice){entry->bytes + entry->key_len, entry->value_len};
}

struct overlay_node;

/* All zero: an empty map. */
struct overlay_map {
    struct overlay_node *root; /* NULL: empty */
    size_t count;              /* of entries */
    uint64_t changes;          /* since it was made: invariant 8 */
    uint64_t copied;           /* nodes copied since it was made, because they were shared */
};

/* Removes all entries. Snapshots keep theirs. */
void overlay_map_clear(struct overlay_map *map);
/* Makes a snapshot, which must not be changed but by overlay_map_clear(). */
void overlay_map_share(const struct overlay_map *map, struct overlay_map *ret_snapshot);
/* Puts an entry, in place of one with the same key. Owns: the map gets the caller's reference. */
void overlay_map_put(struct overlay_map *map, struct overlay_entry *entry);
/* Removes a key. Requires: it is present. `key` may be that of the entry in the map. */
void overlay_map_remove(struct overlay_map *map, struct slice key);
/* Returns: the entry, valid until the key is changed; NULL: none. */
struct overlay_entry *overlay_map_get(const struct overlay_map *map, struct slice key);
/* Checks invariants 4, 5 and the number of entries, and aborts if one is violated. */
void overlay_map_check(const struct overlay_map *map);

struct overlay_cursor {
    const struct overlay_map *map;
    uint64_t changes; /* of the map, when it was last positioned */
    unsigned depth;   /* nodes in `path`; 0: at no entry */
    struct {
        const struct overlay_node *node;
        unsigned index;
    } path[OVERLAY_LEVELS_MAX]; /* from the root to a leaf */
};

/* Each of these positions the cursor. Returns: the entry there; NULL: none, the cursor is at no entry. */
const struct overlay_entry *overlay_cursor_first(struct overlay_cursor *cursor, const struct overlay_map *map);
const struct overlay_entry *overlay_cursor_last(struct overlay_cursor *cursor, const struct overlay_map *map);
/* The first entry at or after `key`. */
const struct overlay_entry *overlay_cursor_seek(struct overlay_cursor *cursor, const struct overlay_map *map,
                                                struct slice key);
/* The last entry at or before `key`. */
const struct overlay_entry *overlay_cursor_seek_for_prev(struct overlay_cursor *cursor, const struct overlay_map *map,
                                                         struct slice key);
/* Requires: the cursor is at an entry, and the map has not changed since. */
const struct overlay_entry *overlay_cursor_next(struct overlay_cursor *cursor);
const struct overlay_entry *overlay_cursor_prev(struct overlay_cursor *cursor);

#endif
