/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which entries name the documents of a path in an index where something was renamed: core/tree/README.md, "Contract, reader by reader".
 *
 * Entries of the path field say what a document was born as. Its family is found by them (mapping/README.md, 8), or by no entries at all:
 * those of other members say what was written.
 */
#ifndef TL_CORE_BIRTHS_H
#define TL_CORE_BIRTHS_H

#include "base/account.h"
#include "core/documents/doc.h"
#include "core/tree/tree.h"
#include "mapping/document.h"
#include "mapping/entry_range.h"
#include "mapping/mapping.h"

struct births {
    struct tree tree;
    const struct mapping_field *path; /* NULL: nothing was renamed in the view, and entries say what documents do */
};

/* Returns: 0; fatal codes. A view that is too old has no renames: who reads documents in it will be told. */
int births_begin(const struct view *view, uint32_t index, const struct mapping *mapping,
                 struct births *ret_births) TL_MUST_USE;

/* Returns: whether the values of a field are where they are by renames, too, so that its entries do not say them. */
bool births_concern(const struct births *births, const struct mapping_field *field);
/* Returns: whether births_of_value() and births_of_prefix() find the documents of a field that they concern. */
bool births_find(const struct births *births, const struct mapping_field *field);

/* What is told of each range. Returns: false: no more are wanted. */
typedef bool births_visit(void *context, const struct entry_range *range);

/*
 * Names the ranges of entries in which all placed documents are that have a value, or a value that begins so. Those of the text itself are not
 * among them. Ranges live in `arena`.
 * `below`: what has the value as a directory, too.
 * Requires: births_find().
 * Returns: 0; BIRTHS_ENOUGH: the visitor wanted no more; fatal codes.
 */
enum { BIRTHS_ENOUGH = 1 };
int births_of_value(const struct births *births, struct slice value, bool below, struct arena *arena,
                    births_visit *visit, void *context) TL_MUST_USE;
int births_of_prefix(const struct births *births, struct slice prefix, struct arena *arena, births_visit *visit,
                     void *context) TL_MUST_USE;

/*
 * Makes of a document's values what its entries have: the path of one that is placed is its birth. `document` is of the source as it lies in
 * the store, or is to lie there.
 */
void births_put(const struct mapping *mapping, const struct document *document, const struct doc *doc,
                struct field_value *values, size_t count);

/*
 * Finds whether a live document that is placed lies at a path, and whether one lies below it. Looks no further than at the first of each; `below` is
 * not looked for where ret_below is NULL. What is found once the account (NULL: none) is over is not all.
 * Requires: mapping_is_tree(); nothing is pending.
 * Returns: 0; fatal codes.
 */
int births_lie(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
               struct account *account, bool *ret_at, bool *ret_below) TL_MUST_USE;

/*
 * The same, with at most `most` documents looked at in vain, which lie elsewhere by now; *ret_vain is how many were. What was renamed away with its
 * directory is passed over whole, and does not count. So the outcome follows from documents and renames alone.
 * Returns: as births_lie(); BIRTHS_ENOUGH: it cannot be said without more.
 */
int births_lie_within(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                      size_t most, bool *ret_at, bool *ret_below, size_t *ret_vain) TL_MUST_USE;

/* Documents of one path that are looked at for their newest change. */
#define BIRTHS_SEQ_NO_DOCUMENTS_MAX 1000

/*
 * Finds the highest sequence number of the documents at a path; -1: none lies there.
 * Requires: as births_lie().
 * Returns: 0; BIRTHS_ENOUGH: more documents lie there than are looked at; fatal codes.
 */
int births_seq_no(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                  int64_t *ret_seq_no) TL_MUST_USE;

/* Documents with a high version that are looked at before a rename. */
#define BIRTHS_HIGH_MAX 1000

/*
 * Finds a document at a path or below it that has the highest version there is; *ret_id, in `arena`, is its id, data NULL where there is none.
 * Requires: as births_lie().
 * Returns: 0; BIRTHS_ENOUGH: more documents of the index than are looked at have a high version; fatal codes.
 */
int births_highest(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   struct arena *arena, struct slice *ret_id) TL_MUST_USE;

/* Documents, and births that were renamed, that are looked at for the longest path. */
#define BIRTHS_LONGEST_MAX 1000

/*
 * Finds the longest path of what lies at a path and below it.
 * Requires: as births_lie().
 * Returns: 0; BIRTHS_ENOUGH: there is more than that; fatal codes.
 */
int births_longest(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   size_t *ret_longest) TL_MUST_USE;

#endif
