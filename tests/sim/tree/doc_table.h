/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document table on the core's path tree, kept as src/core/tree/README.md requires: a record with
 * origin and rename base, and an entry by origin. Does what the write executor does, without the
 * rest of the core.
 */
#ifndef TL_TESTS_SIM_TREE_DOC_TABLE_H
#define TL_TESTS_SIM_TREE_DOC_TABLE_H

#include "core/tree/tree_write.h"

/* A document as read in a view. */
struct stored_doc {
    bool live;
    struct slice origin;
    tl_ts ts;
    int64_t rename_base;
    int64_t version; /* version and the following: as stored */
    int64_t seq_no;
    struct slice path;
};

struct doc_table {
    struct store *store;
    struct store_batch *batch;
    struct omap pending;
    uint32_t made;
    struct arena arena; /* of results; reset by the caller */
};

/* The tree in a view. */
struct tree doc_table_tree(const struct doc_table *table, const struct view *view);
struct tree_writer doc_table_writer(struct doc_table *table, const struct view *view, struct overlay *overlay,
                                    tl_ts ts);

/* Reads a document in a view. Aborts on a corrupt store. */
struct stored_doc doc_table_get(struct doc_table *table, const struct view *view, uint32_t id);
/* Writes a document, or deletes it (`path` data NULL), into the overlay or the unit's batch. */
void doc_table_put(struct doc_table *table, const struct view *view, struct overlay *overlay, uint32_t id,
                   struct slice path, int64_t seq_no, tl_ts ts);
/*
 * Marks in `ret_found`, by id, the documents at a path, or at or below it (`path` data NULL: below
 * the absolute root).
 */
void doc_table_search(struct doc_table *table, const struct view *view, struct slice path, bool below, bool *ret_found,
                      size_t count);
/* Returns: whether a document exists at or below a path, as a rename checks it. */
bool doc_table_exists(struct doc_table *table, const struct view *view, struct slice path);
/* Moves a transaction's overlay into the batch. */
void doc_table_commit(struct doc_table *table, const struct overlay *overlay, tl_ts ts);

#endif
