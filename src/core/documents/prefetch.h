/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetch: the submitting thread reads the document that its write will replace.
 *
 * Every write reads the previous version of its document, which costs about half of its
 * computation. The core is a single thread, so the submitter may read it beforehand and attach it
 * to the item. The core uses it if the document was not written since. For that it keeps a table
 * from the hash of a key to the timestamp of the last write. A hash collision costs a second read
 * and nothing else. So prefetching affects no result.
 */
#ifndef TL_CORE_PREFETCH_H
#define TL_CORE_PREFETCH_H

#include "base/arena.h"
#include "core/documents/doc.h"

struct command;
struct write_item;

/* A document as of `ts`. */
struct prefetch {
    tl_ts ts;
    struct slice key; /* in SPACE_DOCUMENTS */
    bool found;       /* `doc` is set; it may be a tombstone */
    struct doc doc;
};

/*
 * Reads a document in a view without an overlay, on any thread.
 *
 * Requires: view->overlay is NULL.
 * Returns: the result, in `arena`; NULL if it cannot be read: the write then reads it and reports
 *   the error.
 * Owns: the caller; prefetch_release().
 */
struct prefetch *prefetch_read(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                               struct arena *arena);
/* Releases the document; NULL is allowed. */
void prefetch_release(struct prefetch *prefetch);
/*
 * Attaches a prefetched document (NULL is allowed) to an item of a WRITE, for which it was read.
 * Owns: the command, which releases it.
 */
void prefetch_attach(struct command *command, struct write_item *item, struct prefetch *prefetch);

/* Timestamps of the most recent writes, kept by the core. */
struct recent_writes {
    tl_ts floor; /* writes up to this timestamp are not in the table */
    tl_ts *last; /* by hash of the key */
};

/*
 * Initializes an empty table: no document was written after `ts`.
 *
 * Owns: the caller; recent_writes_deinit().
 */
void recent_writes_init(struct recent_writes *writes, tl_ts ts);
void recent_writes_deinit(struct recent_writes *writes);
/* Records a write of a document. Requires: `ts` is not below that of an earlier write. */
void recent_writes_record(struct recent_writes *writes, struct slice key, tl_ts ts);
/*
 * Invalidates everything that was read before `ts`, after a change of many documents.
 * Requires: `ts` is not below that of an earlier call.
 */
void recent_writes_invalidate_all(struct recent_writes *writes, tl_ts ts);
/* Returns: whether the prefetched document has this key and was not written since it was read. */
bool prefetch_is_valid(const struct prefetch *prefetch, const struct recent_writes *writes, struct slice key);

#endif
