/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the tree of an index: nodes for documents that are written, renames, and nodes that nobody needs any more. Only in a unit
 * of the core. Whether documents lie somewhere is the caller's to know; the table of nodes does not.
 */
#ifndef TL_CORE_TREE_WRITE_H
#define TL_CORE_TREE_WRITE_H

#include "core/tree/tree.h"

/* Outcomes beside those of tree.h. */
enum {
    TREE_INTO_ITSELF = 3, /* a rename to the same path, or to one below it */
    TREE_IN_USE = 4,      /* names in the node have records still */
};

/* Where one unit's changes of one index's tree go. */
struct tree_writer {
    struct tree tree;          /* of the newest state, the transaction's overlay and what is pending included */
    struct overlay *overlay;   /* the transaction's; NULL: there is none */
    struct store_batch *batch; /* the unit's */
    struct omap *pending;      /* what the unit has put into the batch: key to value, empty: deleted. tree.pending */
    uint64_t *next_node;       /* the number the next node gets */
};

/*
 * Finds where a document of this path is to be stored, and its stamp; what lies above it gets numbers where it has none. In a
 * transaction that happens ahead of its commit (invariant 6). The place's name is part of `path`.
 * Returns: 0; fatal codes.
 */
int tree_make(struct tree_writer *writer, struct slice path, struct tree_place *ret_place,
              int64_t *ret_stamp) TL_MUST_USE;

/*
 * Renames what lies at `from`, and with it all below, as one change with this sequence number. `ts` is the unit's, or
 * TREE_TS_OPEN in a transaction.
 * Requires: both paths are held exclusively; nothing lies at `to` or below it.
 * Returns: 0; TREE_NOT_FOUND: nothing can lie at `from`; TREE_INTO_ITSELF, both with nothing changed; fatal codes.
 */
int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts) TL_MUST_USE;

/*
 * Removes a numbered node. Outside a transaction.
 * Requires: no document is stored at it, at a name in it, or at the name where it was born; and no open transaction holds anything at its path
 *           or that of the name where it was born, so that none has one there that is not committed.
 * Returns: 0; TREE_IN_USE and TREE_NOT_FOUND with nothing changed; fatal codes.
 */
int tree_remove(struct tree_writer *writer, uint64_t node) TL_MUST_USE;

/* Moves one of a transaction's records from its overlay into the batch of its commit; value data NULL: it is deleted. */
void tree_commit(struct store_batch *batch, struct slice key, struct slice value, tl_ts ts);

#endif
