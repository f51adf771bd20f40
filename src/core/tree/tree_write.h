/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the tree of an index: births for documents that are written, and renames. Only in a unit of the core. Whether documents
 * lie somewhere is the caller's to know; the records here do not.
 */
#ifndef TL_CORE_TREE_WRITE_H
#define TL_CORE_TREE_WRITE_H

#include "core/tree/tree.h"

/* Outcome beside those of tree.h. */
enum {
    TREE_INTO_ITSELF = 3, /* a rename to the same path, or to one below it */
};

/* Where one unit's changes of one index's tree go. */
struct tree_writer {
    struct tree tree;          /* of the newest state, the transaction's overlay and what is pending included */
    struct overlay *overlay;   /* the transaction's; NULL: there is none */
    struct store_batch *batch; /* the unit's */
    struct omap *pending;      /* what the unit has put into the batch: key to value, empty: deleted. tree.pending */
    tl_ts ts;                  /* the unit's */
    uint32_t *origins_created;            /* births that it has made so far */
    tl_ts history_from; /* a rename keeps how births were from then on: README.md, "The past of a birth"; 0: it need not */
};

/*
 * Finds what a document of this path is to be born as, and its stamp; vacant places get a guest. In a transaction that happens ahead of
 * its commit (invariant 6). The birth is in `arena`, or `path` itself.
 * Returns: 0; fatal codes.
 */
int tree_resolve_or_create(struct tree_writer *writer, struct slice path, struct arena *arena, struct slice *ret_birth,
              int64_t *ret_stamp) TL_MUST_USE;

/*
 * Renames what lies at `from`, and with it all below, as one change with this sequence number. `ts` is the unit's, or
 * TREE_TS_OPEN in a transaction.
 * Requires: both paths are held exclusively, and not empty; nothing lies at `to` or below it.
 * Returns: 0; TREE_NOT_FOUND: nothing can lie at `from`; TREE_INTO_ITSELF, both with nothing changed; fatal codes.
 */
int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts) TL_MUST_USE;

/* Notes that a document's version is high, or is no more: TREE_VERSION_HIGH. `document`: its key without the index. */
void tree_set_version_high(struct tree_writer *writer, struct slice document, bool high);

/* Moves one of a transaction's records from its overlay into the batch of its commit; value data NULL: it is deleted. */
void tree_commit(struct store_batch *batch, struct slice key, struct slice value, tl_ts ts);

#endif
