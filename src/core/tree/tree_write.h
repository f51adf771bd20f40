/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the tree of an index: origins for written documents, and renames. Called in a unit of the
 * core. The records here do not know whether documents exist at a path; the caller does.
 */
#ifndef TL_CORE_TREE_WRITE_H
#define TL_CORE_TREE_WRITE_H

#include "core/tree/tree.h"

/* In addition to those in tree.h. */
enum {
    TREE_INTO_ITSELF = 3, /* a rename to the same path, or to one below it */
};

/* The destination of a unit's changes of one index's tree. */
struct tree_writer {
    struct tree tree;          /* newest state, including the transaction's overlay and pending changes */
    struct overlay *overlay;   /* the transaction's; NULL: none */
    struct store_batch *batch; /* the unit's */
    struct omap *pending;      /* of the batch: key to value, empty: deleted; equals tree.pending */
    tl_ts ts;                  /* the unit's */
    uint32_t *origins_created; /* counts the unit's synthetic origins */
    tl_ts history_from;        /* renames keep history from here on; 0: none (README.md, "Relocation history") */
};

/*
 * Finds the origin of a document to be written at `path`, and its rename base. A vacated directory
 * entry on the way gets a synthetic origin; in a transaction, before the commit (invariant 6).
 * *ret_origin is in `arena`, or `path` itself.
 *
 * Returns: 0; fatal codes.
 */
int tree_resolve_or_create(struct tree_writer *writer, struct slice path, struct arena *arena, struct slice *ret_origin,
                           int64_t *ret_rename_base) TL_MUST_USE;

/*
 * Renames `from`, with everything below it, as one change with this sequence number. `ts`: the
 * unit's, or TREE_TS_OPEN in a transaction.
 *
 * Requires: both paths are locked exclusively and not empty; no document exists at or below `to`.
 * Returns: 0; TREE_NOT_FOUND: nothing can exist at `from`; TREE_INTO_ITSELF; fatal codes. Except
 *   for 0, nothing is changed.
 */
int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts) TL_MUST_USE;

/*
 * Records whether a document's version is at least TREE_VERSION_HIGH. `document`: its key without
 * the index.
 */
void tree_set_version_high(struct tree_writer *writer, struct slice document, bool high);

/*
 * Moves a record from a transaction's overlay to the batch of its commit; `value` with data NULL: a
 * deletion.
 */
void tree_commit(struct store_batch *batch, struct slice key, struct slice value, tl_ts ts);

#endif
