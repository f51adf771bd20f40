/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents over the table of births, as src/core/tree/README.md lays down that they are kept: a record with its birth and its stamp,
 * an entry by birth. What the core does, done by hand.
 */
#ifndef TL_TESTS_SIM_TREE_DOC_TABLE_H
#define TL_TESTS_SIM_TREE_DOC_TABLE_H

#include "core/tree/tree_write.h"

/* A document as it is read. */
struct table_doc {
    bool live;
    struct slice birth;
    tl_ts ts;
    int64_t stamp;
    int64_t version; /* as stored, and so on */
    int64_t seq_no;
    struct slice path;
};

struct table {
    struct store *store;
    struct store_batch *batch;
    struct omap pending;
    uint32_t made;
    struct arena arena; /* of what is read; reset by the caller */
};

/* A view's tree. */
struct tree table_tree(const struct table *table, const struct view *view);
struct tree_writer table_writer(struct table *table, const struct view *view, struct overlay *overlay, tl_ts ts);

/* Reads a document as the view has it. Aborts on damage. */
struct table_doc table_get(struct table *table, const struct view *view, uint32_t id);
/* Writes one, or deletes it (`path` data NULL), at the unit's or the transaction's sink. */
void table_put(struct table *table, const struct view *view, struct overlay *overlay, uint32_t id, struct slice path,
               int64_t seq_no, tl_ts ts);
/* Marks in `ret_found`, by id, what lies at a path, or at it and below (`path` data NULL: below the absolute root). */
void table_search(struct table *table, const struct view *view, struct slice path, bool below, bool *ret_found,
                  size_t count);
/* Whether anything lies at a path or below, as a rename asks. */
bool table_exists(struct table *table, const struct view *view, struct slice path);
/* Moves a transaction's overlay into the batch. */
void table_commit(struct table *table, const struct overlay *overlay, tl_ts ts);

#endif
