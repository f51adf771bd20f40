/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds documents by path in an index with renames; core/tree/README.md, "Contract, reader by
 * reader".
 *
 * Entries of the path field contain a document's origin, not its current path. A query on any field
 * of the path's multi-field group is answered by these entries, or by none (mapping/README.md, 8):
 * the entries of the group's other fields contain the path as it was written.
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
    const struct mapping_field *path; /* NULL: the view has no renames, and each origin equals its path */
};

/*
 * Prepares lookups in one index of a view. A view below the history limit is treated as one without
 * renames, since reading a document in it reports DOC_TOO_OLD.
 *
 * Returns: 0; fatal codes.
 */
int path_lookup_init(const struct view *view, uint32_t index, const struct mapping *mapping,
                     struct path_lookup *ret_lookup) TL_MUST_USE;

/* Returns: whether renames change the field's values, so that its entries may be out of date. */
bool path_lookup_affects(const struct path_lookup *lookup, const struct mapping_field *field);
/*
 * Returns: whether path_lookup_value() and path_lookup_prefix() find all documents of an affected
 *   field.
 */
bool path_lookup_can_find(const struct path_lookup *lookup, const struct mapping_field *field);

/* Receives one entry range. Returns: false to stop the lookup. */
typedef bool path_lookup_visit(void *context, const struct entry_range *range);

/*
 * Visits the entry ranges that contain every path-tracked document with this value, or with a value
 * that has this prefix. Documents that are not path-tracked are found by the text itself, for which
 * the caller adds a range. `below`: documents below the directory `value` count as well. The ranges
 * live in `arena`.
 *
 * Requires: path_lookup_can_find().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: stopped by the visitor; fatal codes.
 */
enum { PATH_LOOKUP_INCOMPLETE = 10, PATH_LOOKUP_STALE = 11 }; /* none of TREE_NOT_FOUND, TREE_TOO_OLD */
int path_lookup_value(const struct path_lookup *lookup, struct slice value, bool below, struct arena *arena,
                      path_lookup_visit *visit, void *context) TL_MUST_USE;
int path_lookup_prefix(const struct path_lookup *lookup, struct slice prefix, struct arena *arena,
                       path_lookup_visit *visit, void *context) TL_MUST_USE;

/*
 * Replaces a document's path by its origin in `values`, as its entries have it. No-op for a
 * document that is not path-tracked. `document` was parsed from the stored source, or from the
 * source to be stored.
 */
void path_lookup_rewrite_values(const struct mapping *mapping, const struct document *document, const struct doc *doc,
                                struct field_value *values, size_t count);

/*
 * Finds whether a live path-tracked document exists at a path, and whether one exists below it.
 * Stops at the first of each. ret_below may be NULL. The result is incomplete if `account` (NULL:
 * unlimited) has ended.
 *
 * Requires: mapping_is_tree(); the unit has no pending changes.
 * Returns: 0; fatal codes.
 */
int path_lookup_exists(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                       struct account *account, bool *ret_at, bool *ret_below) TL_MUST_USE;

/*
 * Like path_lookup_exists(), but reads at most `most` documents that turn out to be elsewhere, and
 * at most *reads_left entries and directory entries, which it lowers (NULL: no limit); *ret_misses
 * is the number of documents elsewhere. Documents that were renamed with their directory are skipped
 * together and do not count, so the result depends on documents and renames alone.
 *
 * Returns: as path_lookup_exists(); PATH_LOOKUP_INCOMPLETE: the limit was reached before the answer
 *   was known.
 */
int path_lookup_exists_within(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                              size_t most, size_t *reads_left, bool *ret_at, bool *ret_below,
                              size_t *ret_misses) TL_MUST_USE;

/*
 * Like path_lookup_exists(), but finds the documents: their keys as in entries, in `arena`; data
 * NULL: none.
 */
int path_lookup_find(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                     struct account *account, struct arena *arena, struct slice *ret_document,
                     struct slice *ret_below) TL_MUST_USE;

/*
 * Like path_lookup_exists(), but reads at most `most` entries and directory entries; *ret_read is
 * their number. It and the result depend on documents, entries and renames alone.
 *
 * Returns: as path_lookup_exists(); PATH_LOOKUP_INCOMPLETE: the limit was reached before the answer
 *   was known.
 */
int path_lookup_exists_limited(const struct view *view, uint32_t index, const struct mapping *mapping,
                               struct slice path, size_t most, bool *ret_at, bool *ret_below,
                               size_t *ret_read) TL_MUST_USE;

/*
 * Finds whether one document, given by its key in an entry, exists at a path, or below it. Any bytes
 * may be given as key.
 *
 * Requires: as path_lookup_exists().
 * Returns: 0; fatal codes.
 */
int path_lookup_verify(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                       struct slice document_key, bool *ret_at, bool *ret_below) TL_MUST_USE;

/* Documents at one path that path_lookup_max_seq_no() reads at most. */
#define PATH_LOOKUP_SEQ_NO_DOCUMENTS_MAX 1000

/*
 * Finds the highest sequence number of the documents at a path; -1: no document exists there. *ret_read: documents
 * that were read. Stale entries (src/core/README.md, "Stale posting lists") are read too, *misses_left at most, which
 * is lowered by as many.
 *
 * Requires: as path_lookup_exists().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: more documents than the limit; PATH_LOOKUP_STALE: more stale entries; fatal
 *   codes.
 */
int path_lookup_max_seq_no(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                           size_t *misses_left, int64_t *ret_seq_no, size_t *ret_read) TL_MUST_USE;

/*
 * Documents with a high version (TREE_VERSION_HIGH) that path_lookup_max_version() reads at most.
 */
#define PATH_LOOKUP_HIGH_VERSIONS_MAX 1000

/*
 * Finds a document at or below a path whose version is INT64_MAX, so that a rename cannot raise it.
 * *ret_id is its id, in `arena`; data NULL: no such document. *ret_read: documents that were read.
 *
 * Requires: as path_lookup_exists().
 * Returns: 0; PATH_LOOKUP_INCOMPLETE: more documents with a high version than the limit; fatal
 *   codes.
 */
int path_lookup_max_version(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct arena *arena, struct slice *ret_id, size_t *ret_read) TL_MUST_USE;

/* Documents and relocated origins that path_lookup_longest_path() reads at most. */
#define PATH_LOOKUP_LONGEST_MAX 1000

/*
 * Finds the length in bytes of the longest path at or below a path. *misses_left and *ret_read: as of
 * path_lookup_max_seq_no().
 *
 * Requires: as path_lookup_exists().
 * Returns: as path_lookup_max_seq_no().
 */
int path_lookup_longest_path(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                             size_t *misses_left, size_t *ret_longest, size_t *ret_read) TL_MUST_USE;

#endif
