/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: the read path of all layers above.
 *
 * A view is a timestamp and, inside a transaction, the transaction's overlay: its own writes, which
 * no other reader may see. A view with an overlay shows them merged over the store, for single keys
 * and for scans alike. So documents, entries and tree nodes need no code of their own inside a
 * transaction.
 *
 * A view is a plain value and owns nothing. It is valid while the store is open, its timestamp is
 * not below the history limit, and its overlay exists and is not written to.
 */
#ifndef TL_STORE_VIEW_H
#define TL_STORE_VIEW_H

#include "base/omap.h"
#include "store/store.h"

struct overlay;

struct view {
    struct store *store;
    tl_ts ts;
    const struct overlay *overlay; /* NULL outside transactions */
    struct view_cache *cache;      /* NULL: none */
};

/*
 * A cache of view_get() results in one space, for a reader that looks up the same few records again
 * and again while it reads many documents. Values returned through it stay valid as long as the
 * cache. If many keys with the same first four bytes are requested, and there are few such records,
 * all are read at once. Values of an overlay are not cached.
 * Requires: nothing is written at the view's timestamp any more; used by one thread.
 */
enum { VIEW_CACHE_RECORDS_MAX = 2048, VIEW_CACHE_RECENT = 16 };
struct view_cache {
    enum store_space space;
    struct omap records; /* key → a byte and the value; empty value: the key does not exist */
    /* Records requested recently, by a hash of the key. */
    const struct omap_entry *recent[VIEW_CACHE_RECENT];
    unsigned missed; /* number of cache misses */
    bool complete;   /* `records` has all keys that begin with `prefix` */
    char prefix[4];
};
void view_cache_init(struct view_cache *cache, enum store_space space);
void view_cache_deinit(struct view_cache *cache);

/*
 * Returns: whether the view is below the history limit. Results read before a call that returns
 *          false are complete; a scan that meets the limit just ends.
 */
static inline bool view_is_too_old(const struct view *view)
{
    return view->ts < store_history_low(view->store);
}

/* As store_get(). A value from the overlay is valid until the overlay changes. */
int view_get(const struct view *view, enum store_space space, struct slice key,
             struct store_value *ret_value) TL_MUST_USE;

/* As the store_iter functions, over the merged view. */
struct view_iter *view_iter_new(const struct view *view, enum store_space space, struct slice lower,
                                struct slice upper);
void view_iter_free(struct view_iter *iter);
void view_iter_seek_first(struct view_iter *iter);
void view_iter_seek_last(struct view_iter *iter);
void view_iter_seek(struct view_iter *iter, struct slice key);
void view_iter_seek_for_prev(struct view_iter *iter, struct slice key);
void view_iter_next(struct view_iter *iter);
void view_iter_prev(struct view_iter *iter);
bool view_iter_valid(const struct view_iter *iter);
struct slice view_iter_key(const struct view_iter *iter);
struct slice view_iter_value(const struct view_iter *iter);
int view_iter_status(const struct view_iter *iter) TL_MUST_USE;

/*
 * Overlays: a transaction's writes, ordered by space and key, with savepoints, so that one failed
 * request can be undone without losing the transaction. Written by one thread, while no view of the
 * overlay is in use; readers on other threads have snapshots.
 */
struct overlay *overlay_new(void);
/*
 * NULL: no effect. A snapshot: from any thread. Much of a large one is left to the reclaimer (base/reclaim.h), so that
 * the end of a transaction takes the writer no time for its writes.
 */
void overlay_free(struct overlay *overlay);
/*
 * Makes a snapshot for one reader, which may keep it beyond the end of the transaction. It shares its
 * memory with the overlay, and costs O(1); each later change of the overlay copies O(log n) of the
 * shared nodes (overlay_map.h). It is never changed, and has no chunks.
 * Returns: the snapshot. Owns: the caller; overlay_free(). Requires: no savepoint, not a snapshot itself.
 */
struct overlay *overlay_snapshot(struct overlay *overlay);
/* Returns: how many nodes changes have copied because snapshots shared them; for tests. */
uint64_t overlay_nodes_copied(const struct overlay *overlay);
void overlay_put(struct overlay *overlay, enum store_space space, struct slice key, struct slice value);
void overlay_delete(struct overlay *overlay, enum store_space space, struct slice key);
/* Sizes, for the transaction's limits: bytes of keys and values, and the number of keys. */
size_t overlay_bytes(const struct overlay *overlay);
/*
 * Returns: bytes of keys and values plus OVERLAY_ENTRY_BYTES for each key: an estimate of its
 *          memory that is the same on all hosts.
 */
enum { OVERLAY_ENTRY_BYTES = 96 };
size_t overlay_memory_bytes(const struct overlay *overlay);
size_t overlay_bytes_in(const struct overlay *overlay, enum store_space space);
size_t overlay_count(const struct overlay *overlay);
size_t overlay_count_in(const struct overlay *overlay, enum store_space space);
/*
 * Looks a key up in the overlay alone.
 * Returns: 0, with the value, data NULL: deleted; STORE_NOT_FOUND: the overlay has no change of the
 *          key.
 */
int overlay_get(const struct overlay *overlay, enum store_space space, struct slice key,
                struct slice *ret_value) TL_MUST_USE;
/* Calls `visit` for each of its writes in one space, in order of key; value data NULL: deleted. */
typedef void overlay_visit(void *context, struct slice key, struct slice value);
void overlay_each(const struct overlay *overlay, enum store_space space, overlay_visit *visit, void *context);
/*
 * Checks the order of the keys, the tags, and the sums of bytes, and aborts if one is violated. For
 * tests and builds of developers: takes time linear in the size of the overlay.
 */
void overlay_check(const struct overlay *overlay);
/* Appends its writes to a batch, in order of space and key. */
void overlay_apply(const struct overlay *overlay, struct store_batch *batch);
/*
 * overlay_savepoint() sets a savepoint; overlay_rollback_to() returns to it and discards later
 * ones.
 */
size_t overlay_savepoint(struct overlay *overlay);
void overlay_rollback_to(struct overlay *overlay, size_t savepoint);
/* Releases all savepoints and frees the undo list. */
void overlay_release_savepoints(struct overlay *overlay);
/* Removes all writes and savepoints. */
void overlay_clear(struct overlay *overlay);

/*
 * Chunks: each key of an overlay is in one chunk of some 16 KiB of keys and values, with those that
 * were first written shortly before and after it. So that a checkpoint need not write an overlay
 * whole, its owner saves each chunk that has changed since it was last saved. README.md, "Chunks".
 * Only the writer calls these functions.
 */
enum { OVERLAY_CHUNK_BYTES = 16 * 1024 };

struct overlay_chunk {
    uint32_t number;               /* unique in the overlay; 0 is the first */
    uint32_t first;                /* keys that are in chunks before it */
    size_t weight;                 /* of keys and values, with an overhead for each */
    bool changed;                  /* since it was saved; a new one is changed */
    uint32_t saved_len, saved_crc; /* as given to overlay_chunk_saved() */
};

size_t overlay_chunk_count(const struct overlay *overlay);
const struct overlay_chunk *overlay_chunk(const struct overlay *overlay, size_t index);
/*
 * Finds a changed chunk: the next one after that which was saved last, and after the end the first
 * one. So each is found, also if others change all the time. One that has grown to twice the size is
 * first cut into several, which changes the indexes of those after it.
 * Returns: whether there is one. Requires: no savepoint.
 */
bool overlay_changed_chunk(struct overlay *overlay, size_t *ret_index);
/* Calls `visit` for each write of a chunk, in the order in which the keys were first written. */
typedef void overlay_chunk_visit(void *context, enum store_space space, struct slice key, struct slice value);
void overlay_each_of_chunk(const struct overlay *overlay, size_t index, overlay_chunk_visit *visit, void *context);
/* Records that a chunk was saved, with length and checksum of its saved form. */
void overlay_chunk_saved(struct overlay *overlay, size_t index, uint32_t len, uint32_t crc);
/*
 * Begins a chunk with a number that no other has, to read a saved one: it gets all new keys until
 * overlay_chunk_saved(). Returns: its index. Requires: it gets at least one.
 */
size_t overlay_begin_chunk(struct overlay *overlay, uint32_t number);

#endif
