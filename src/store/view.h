/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: how everything reads.
 *
 * A view is a timestamp and, inside a transaction, the transaction's overlay: what it has written and nobody
 * else may see. A view with an overlay shows the overlay's writes merged over the store, for single keys and
 * for scans alike, so that documents, entries and tree nodes need no code of their own inside a transaction.
 *
 * A view is a plain value; it owns nothing. It is good as long as the store is open, its timestamp is above
 * the history cut-off, and its overlay lives and is not written to.
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
 * What view_get() has found in one space, for who asks for the same few records again and again while he reads many documents. Only for a view whose
 * timestamp nothing is written at any more, and for one thread; of an overlay nothing is kept. Where many keys with the same first four bytes
 * are asked for, and there are few such records, all are read at once. What it hands out lives as long as it does.
 */
enum { VIEW_CACHE_RECORDS_MAX = 2048, VIEW_CACHE_RECENT = 16 };
struct view_cache {
    enum store_space space;
    struct omap records; /* key to a byte and the value; empty: there is none */
    const struct omap_entry *recent[VIEW_CACHE_RECENT]; /* of them, each by its key: every document asks for some of the same */
    unsigned missed;
    bool whole; /* all records that begin with these bytes are there */
    char prefix[4];
};
void view_cache_init(struct view_cache *cache, enum store_space space);
void view_cache_deinit(struct view_cache *cache);

/*
 * Returns: whether the history cut-off has passed the view. What was read before a call that returns false is complete; a scan
 * that meets the cut-off just ends.
 */
static inline bool view_is_too_old(const struct view *view)
{
    return view->ts < store_history_low(view->store);
}

/* As store_get(). A value from the overlay lives until the overlay changes. */
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
 * Overlays: a transaction's writes, ordered by space and key, with savepoints so that one failed request
 * can be undone without losing the transaction. Written by one thread, while no view of it is in use.
 */
struct overlay *overlay_new(void);
/* Frees it, or gives one of its references back. From any thread; NULL is fine. */
void overlay_free(struct overlay *overlay);
/* Takes another reference, with which a reader keeps it alive while its transaction ends. */
struct overlay *overlay_ref(struct overlay *overlay);
/* Returns: whether a reader has a reference beside its owner's, so that it must not be written to. */
bool overlay_is_shared(const struct overlay *overlay);
/* Returns: its writes in an overlay of their own, without savepoints. Owns: the caller; overlay_free(). */
struct overlay *overlay_copy(const struct overlay *overlay);
void overlay_put(struct overlay *overlay, enum store_space space, struct slice key, struct slice value);
void overlay_delete(struct overlay *overlay, enum store_space space, struct slice key);
/* Bytes of keys and values held, and how many keys; for the transaction's limits. */
size_t overlay_bytes(const struct overlay *overlay);
/* The same with OVERLAY_ENTRY_BYTES for each key: what it takes in memory, counted alike on all hosts. */
enum { OVERLAY_ENTRY_BYTES = 96 };
size_t overlay_memory_bytes(const struct overlay *overlay);
size_t overlay_bytes_in(const struct overlay *overlay, enum store_space space);
size_t overlay_count(const struct overlay *overlay);
size_t overlay_count_in(const struct overlay *overlay, enum store_space space);
/*
 * Looks a key up in the overlay alone.
 * Returns: 0 and the value (data NULL: deleted), or STORE_NOT_FOUND when it says nothing of the key.
 */
int overlay_get(const struct overlay *overlay, enum store_space space, struct slice key,
                struct slice *ret_value) TL_MUST_USE;
/* Calls `visit` for each of its writes in one space, in order of key; value data NULL: deleted. */
typedef void overlay_visit(void *context, struct slice key, struct slice value);
void overlay_each(const struct overlay *overlay, enum store_space space, overlay_visit *visit, void *context);
/* Appends all its writes to a batch, in order of space and key. */
void overlay_apply(const struct overlay *overlay, struct store_batch *batch);
/* A savepoint, and going back to it; the newest first. */
size_t overlay_savepoint(struct overlay *overlay);
void overlay_rollback_to(struct overlay *overlay, size_t mark);
/* No savepoint is needed any more: frees what they have kept. */
void overlay_release_savepoints(struct overlay *overlay);
void overlay_clear(struct overlay *overlay);

#endif
