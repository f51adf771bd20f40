/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which entries name the documents of a path in an index where something was renamed: core/tree/README.md, "Contract, reader by reader".
 *
 * Entries of the path field say what a document was born as. Its family is found by them (mapping/README.md, 8), or by no entries at all:
 * those of other members say what was written.
 */
#ifndef TL_CORE_PATH_LOOKUP_H
#define TL_CORE_PATH_LOOKUP_H

#include "base/account.h"
#include "core/documents/doc.h"
#include "core/tree/tree.h"
#include "mapping/document.h"
#include "mapping/entry_range.h"
#include "mapping/mapping.h"

struct path_lookup {
    struct tree tree;
    const struct mapping_field *path; /* NULL: nothing was renamed in the view, and entries say what documents do */
};

/* Returns: 0; fatal codes. A view that is too old has no renames: who reads documents in it will be told. */
int path_lookup_init(const struct view *view, uint32_t index, const struct mapping *mapping,
                 struct path_lookup *ret_births) TL_MUST_USE;

/* Returns: whether the values of a field are where they are by renames, too, so that its entries do not say them. */
bool path_lookup_affects(const struct path_lookup *path_lookup, const struct mapping_field *field);
/* Returns: whether path_lookup_value() and path_lookup_prefix() find the documents of a field that they concern. */
bool path_lookup_can_find(const struct path_lookup *path_lookup, const struct mapping_field *field);

/* What is told of each range. Returns: false: no more are wanted. */
typedef bool path_lookup_visit(void *context, const struct entry_range *range);

/*
 * Names the ranges of entries in which all placed documents are that have a value, or a value that begins so. Those of the text itself are not
 * among them. Ranges live in `arena`.
 * `below`: what has the value as a directory, too.
 * Requires: path_lookup_can_find().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: the visitor wanted no more; fatal codes.
 */
enum { PATH_LOOKUP_INCOMPLETE = 1 };
int path_lookup_value(const struct path_lookup *path_lookup, struct slice value, bool below, struct arena *arena,
                    path_lookup_visit *visit, void *context) TL_MUST_USE;
int path_lookup_prefix(const struct path_lookup *path_lookup, struct slice prefix, struct arena *arena, path_lookup_visit *visit,
                     void *context) TL_MUST_USE;

/*
 * Makes of a document's values what its entries have: the path of one that is placed is its birth. `document` is of the source as it lies in
 * the store, or is to lie there.
 */
void path_lookup_rewrite_values(const struct mapping *mapping, const struct document *document, const struct doc *doc,
                struct field_value *values, size_t count);

/*
 * Finds whether a live document that is placed lies at a path, and whether one lies below it. Looks no further than at the first of each; `below` is
 * not looked for where ret_below is NULL. What is found once the account (NULL: none) is over is not all.
 * Requires: mapping_is_tree(); nothing is pending.
 * Returns: 0; fatal codes.
 */
int path_lookup_exists(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
               struct account *account, bool *ret_at, bool *ret_below) TL_MUST_USE;

/*
 * The same, with at most `most` documents looked at in vain, which lie elsewhere by now; *ret_vain is how many were. What was renamed away with its
 * directory is passed over whole, and does not count. So the outcome follows from documents and renames alone.
 * Returns: as path_lookup_exists(); PATH_LOOKUP_INCOMPLETE: it cannot be said without more.
 */
int path_lookup_exists_within(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                      size_t most, bool *ret_at, bool *ret_below, size_t *ret_vain) TL_MUST_USE;

/* Documents of one path that are looked at for their newest change. */
#define PATH_LOOKUP_SEQ_NO_DOCUMENTS_MAX 1000

/*
 * Finds the highest sequence number of the documents at a path; -1: none lies there.
 * Requires: as path_lookup_exists().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: more documents lie there than are looked at; fatal codes.
 */
int path_lookup_max_seq_no(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                  int64_t *ret_seq_no) TL_MUST_USE;

/* Documents with a high version that are looked at before a rename. */
#define PATH_LOOKUP_HIGH_VERSIONS_MAX 1000

/*
 * Finds a document at a path or below it that has the highest version there is; *ret_id, in `arena`, is its id, data NULL where there is none.
 * Requires: as path_lookup_exists().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: more documents of the index than are looked at have a high version; fatal codes.
 */
int path_lookup_max_version(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   struct arena *arena, struct slice *ret_id) TL_MUST_USE;

/* Documents, and births that were renamed, that are looked at for the longest path. */
#define PATH_LOOKUP_LONGEST_MAX 1000

/*
 * Finds the longest path of what lies at a path and below it.
 * Requires: as path_lookup_exists().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: there is more than that; fatal codes.
 */
int path_lookup_longest_path(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   size_t *ret_longest) TL_MUST_USE;

#endif
