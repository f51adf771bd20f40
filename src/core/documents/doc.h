/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored documents: keys, records, and reads in any view, on any thread.
 *
 * Key in SPACE_DOCUMENTS: index number (u32be), type number (u16be), id. Record: README.md,
 * "Document record".
 */
#ifndef TL_CORE_DOC_H
#define TL_CORE_DOC_H

#include "base/buf.h"
#include "base/error.h"
#include "base/omap.h"
#include "base/types.h"
#include "store/view.h"

struct tree_paths;

#define DOC_ID_BYTES_MAX 512
#define DOC_KEY_PREFIX_BYTES 6
#define DOC_KEY_BYTES_MAX (DOC_KEY_PREFIX_BYTES + DOC_ID_BYTES_MAX)

enum {
    DOC_NOT_FOUND = 1,
    DOC_TOO_OLD = 2, /* the view's timestamp is below the history limit */
    DOC_SCAN_END = 3,
};

/* One version of a document, decoded. Its slices are valid until doc_release(). */
struct doc {
    tl_ts ts; /* of the commit that wrote it */
    int64_t version;
    int64_t seq_no;
    uint64_t batch;             /* of its posting lists (mapping/entry.h); 0: all its entries are single */
    struct slice single_fields; /* fields (u16be, ascending) with single entries although `batch` is set */
    bool deleted;               /* a tombstone, without source */
    struct slice routing;       /* data NULL: none */
    struct slice lease;         /* session that owns it; data NULL: not ephemeral */
    struct slice source;        /* bytes as received, with the current path (core/tree/README.md) */

    bool path_tracked;     /* renames can move it; the next four fields are set: */
    struct slice origin;   /* permanent identity of its path */
    size_t path_offset;    /* of the path in `stored`, without the quotes */
    size_t path_len;       /* in bytes */
    int64_t rename_base;   /* renames on its path that its stored version includes */
    struct slice stored;   /* the source as stored */
    int64_t stored_seq_no; /* before renames raise it */

    struct store_value value;
};

/*
 * Reads a live document. Documents hidden by a session tombstone (session_tombstone.h) do not count
 * as live.
 *
 * Returns: 0; DOC_NOT_FOUND, also for tombstones; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 * Owns: the caller; doc_release().
 */
int doc_get(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct doc *ret_doc) TL_MUST_USE;
/* Like doc_get(), but also returns tombstones and documents that a session tombstone hides. */
int doc_get_any(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                struct doc *ret_doc) TL_MUST_USE;
/* Like doc_get_any() and doc_get(), with the document key of an entry: type number and id. */
int doc_get_key_any(const struct view *view, uint32_t index, struct slice document_key,
                    struct doc *ret_doc) TL_MUST_USE;
int doc_get_key(const struct view *view, uint32_t index, struct slice document_key, struct doc *ret_doc) TL_MUST_USE;
void doc_release(struct doc *doc);

/*
 * Encodes a document's key into `bytes`, which holds DOC_KEY_PREFIX_BYTES and the id. A deletion may
 * have an id of more than DOC_ID_BYTES_MAX. Returns: the key.
 */
struct slice doc_key(char *bytes, uint32_t index, uint16_t type, struct slice id);
/* Returns: false if `key` is not a document key. */
bool doc_key_parse(struct slice key, uint32_t *ret_index, uint16_t *ret_type, struct slice *ret_id);

/*
 * Like doc_get_any(), without renames applied. For callers with pending changes of the tree, which
 * the view does not contain (tree_write.h); they call doc_apply_renames().
 */
int doc_get_stored(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                   struct doc *ret_doc) TL_MUST_USE;
/*
 * Applies the renames that a view contains to a stored document: source, version, sequence number,
 * timestamp. `pending`: what the unit has put into SPACE_TREE; NULL: nothing.
 *
 * Returns: 0; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_apply_renames(const struct view *view, const struct omap *pending, uint32_t index, struct doc *doc) TL_MUST_USE;
/*
 * Like doc_apply_renames(), with the renames up to `as_of` only (0: all). For the purge of a
 * document that a session tombstone hides since `as_of`: later renames did not move it.
 */
int doc_apply_renames_as_of(const struct view *view, const struct omap *pending, uint32_t index, tl_ts as_of,
                            struct doc *doc) TL_MUST_USE;
/*
 * Like doc_apply_renames(), but leaves the source as it is stored, so that it is not copied, and
 * returns the current path instead. For callers that use no source.
 *
 * Returns: 0 with *ret_path, valid as long as `doc` and `arena`; data NULL: the source has the path;
 *   DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_apply_renames_to_path(const struct view *view, const struct omap *pending, uint32_t index, struct arena *arena,
                              struct doc *doc, struct slice *ret_path) TL_MUST_USE;
/*
 * Finds the path that doc_apply_renames_to_path() returns, for many documents in succession, and applies nothing to
 * `doc`. Requires: that of tree_paths_locate(). Returns: as doc_apply_renames_to_path().
 */
int doc_find_path(const struct view *view, const struct omap *pending, uint32_t index, struct tree_paths *paths,
                  struct arena *arena, const struct doc *doc, struct slice *ret_path) TL_MUST_USE;

/*
 * Appends the record of `doc`. stored, stored_seq_no and value are ignored. It begins with the timestamp: that of a
 * transaction's record is known only at its commit, which sets it by store_batch_put_stamped().
 */
void doc_encode(struct buf *buf, const struct doc *doc);
/* Appends the record without the source, which is its end unless the document is deleted. */
void doc_encode_head(struct buf *buf, const struct doc *doc);
/* Decodes a record. Returns: 0, *ret_doc with slices into `record`; TL_ERR_CORRUPT. */
int doc_decode(struct slice record, struct doc *ret_doc) TL_MUST_USE;
/* Returns: whether the field has single entries although the document has posting lists. */
bool doc_has_single_entries(const struct doc *doc, uint16_t field);
/* Returns: whether any of its entries may be single, to be removed one by one. */
static inline bool doc_may_have_single_entries(const struct doc *doc)
{
    return doc->batch == 0 || doc->single_fields.len > 0;
}
/* Returns: the levels of the path by which its renames are found; 0: renames cannot move it. */
uint64_t doc_path_levels(const struct doc *doc, char delimiter);
/*
 * Returns: the batch of this field's entries of this version; an entry of another batch is stale.
 */
static inline uint64_t doc_entry_batch(const struct doc *doc, uint16_t field)
{
    return doc->batch == 0 || doc_has_single_entries(doc, field) ? 0 : doc->batch;
}
/*
 * Iterates over the live documents of an index, or of one of its types, by type number and id.
 *
 * Requires: the view outlives the scan.
 * Owns: the caller; doc_scan_free().
 */
#define DOC_TYPE_ANY (-1)
struct doc_scan;
struct doc_scan *doc_scan_new(const struct view *view, uint32_t index, int type);
void doc_scan_free(struct doc_scan *scan);
TL_DEFINE_FREEP(struct doc_scan, doc_scan_free)
/*
 * Positions before the first document at or after a document key, or after it if `after` is set.
 */
void doc_scan_seek(struct doc_scan *scan, struct slice document_key, bool after);
/*
 * Reads the next document, first the first one. The results are valid until the next call.
 *
 * Returns: 0; DOC_SCAN_END; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_scan_next(struct doc_scan *scan, uint16_t *ret_type, struct slice *ret_id, struct doc *ret_doc) TL_MUST_USE;

/*
 * Counts the live documents of an index, or of one of its types, in a view. Reads counters, no
 * documents.
 *
 * Returns: 0; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_count(const struct view *view, uint32_t index, int type, uint64_t *ret_count) TL_MUST_USE;

#endif
