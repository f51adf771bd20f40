/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a submitter has seen: the document that its write will find, read ahead on its own thread.
 *
 * Every write looks up what is there before it. That costs as much as all else it computes, and the core is one thread, so
 * whoever submits may look it up before and put it beside the item. The core believes it when nothing has changed the
 * document since the timestamp of that reading, which it knows from a small table: for each hash of a key the timestamp
 * of the last change. Keys that share a hash cost a reading that was not needed, nothing else; so what is seen, by
 * whomever, and whether at all, changes no result.
 */
#ifndef TL_CORE_PREFETCH_H
#define TL_CORE_PREFETCH_H

#include "base/arena.h"
#include "core/documents/doc.h"

/* A document as of `ts`. */
struct prefetch {
    tl_ts ts;
    struct slice key; /* in SPACE_DOCUMENTS */
    bool found;       /* `doc` is set; it may be a tombstone */
    struct doc doc;
};

/*
 * Reads a document in a view without an overlay; from any thread.
 * Returns: what is there, its memory in `arena`; NULL when it cannot be read, which the write will find out for itself.
 * Owns: the caller; prefetch_release().
 */
struct prefetch *prefetch_read(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct arena *arena);
/* NULL is fine. */
void prefetch_release(struct prefetch *seen);

/* When documents were changed last: the core's side. */
struct recent_writes {
    tl_ts floor; /* changes up to here are not in the table */
    tl_ts *last; /* by hash of the key */
};

/* Nothing was changed after `ts`. Owns: the caller; recent_writes_deinit(). */
void recent_writes_init(struct recent_writes *changes, tl_ts ts);
void recent_writes_deinit(struct recent_writes *changes);
void recent_writes_record(struct recent_writes *changes, struct slice key, tl_ts ts);
/* So many documents have changed that nothing seen before holds. */
void recent_writes_invalidate_all(struct recent_writes *changes, tl_ts ts);
/* Returns: whether what was seen is of this key and still so. */
bool prefetch_is_valid(const struct prefetch *seen, const struct recent_writes *changes, struct slice key);

#endif
