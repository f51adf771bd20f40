/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents as they lie in the store: keys, records, and reading them in any view, on any thread.
 *
 * Key in SPACE_DOCUMENTS: index number (u32be), type number (u16be), id. Record: README.md, "Document record".
 */
#ifndef TL_CORE_DOC_H
#define TL_CORE_DOC_H

#include "base/buf.h"
#include "base/error.h"
#include "base/omap.h"
#include "base/types.h"
#include "store/view.h"

#define DOC_ID_BYTES_MAX 512
#define DOC_KEY_PREFIX_BYTES 6
#define DOC_KEY_BYTES_MAX (DOC_KEY_PREFIX_BYTES + DOC_ID_BYTES_MAX)

enum {
    DOC_NOT_FOUND = 1,
    DOC_TOO_OLD = 2, /* the view's timestamp is below the history cut-off */
    DOC_SCAN_END = 3,
};

/* One version of a document, decoded. Its slices live in `value`, until doc_release(). */
struct doc {
    tl_ts ts; /* of the commit that wrote it */
    int64_t version;
    int64_t seq_no;
    uint64_t batch;       /* of its entries (mapping/entry.h): 0 singles, else chunks of this batch, except for: */
    struct slice single_fields; /* fields (u16be each, in order) whose entries are singles all the same; empty: none */
    bool deleted;         /* a tombstone: no source */
    struct slice routing; /* data NULL: none */
    struct slice lease;   /* session it lives with; data NULL: none */
    struct slice source;  /* byte for byte as it came in, with the path that it has by now (core/tree/README.md) */

    bool path_tracked;           /* renames can move it: */
    struct slice origin;    /* ... what it was born as */
    size_t path_offset;        /* ... where in `stored` its path stands, without the quotes, and how many bytes it has there */
    size_t path_len;       /* ... */
    int64_t rename_base;         /* ... renames that counted when it was written */
    struct slice stored;   /* the source as it lies in the store */
    int64_t stored_seq_no; /* without renames */

    struct store_value value;
};

/*
 * Reads a live document, which one that went with its session is no more (session_tombstone.h).
 * Returns: 0; DOC_NOT_FOUND, for tombstones too; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 * Owns: the caller; doc_release().
 */
int doc_get(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct doc *ret_doc) TL_MUST_USE;
/* Reads what lies there: tombstones included, and what went with its session until it is swept. */
int doc_get_any(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                struct doc *ret_doc) TL_MUST_USE;
/*
 * Reads by key: the index's number and the document key of an entry (type number and id). The second finds what lies there, also what
 * has gone with its session and is not swept yet (session_tombstone.h), and tombstones.
 */
int doc_get_key_any(const struct view *view, uint32_t index, struct slice document_key,
                    struct doc *ret_doc) TL_MUST_USE;
int doc_get_key(const struct view *view, uint32_t index, struct slice document_key, struct doc *ret_doc) TL_MUST_USE;
void doc_release(struct doc *doc);

/* The key of a document in `bytes`, which holds DOC_KEY_BYTES_MAX. Returns: the key. */
struct slice doc_key(char *bytes, uint32_t index, uint16_t type, struct slice id);
/* Returns: false where `key` is no document's key. */
bool doc_key_parse(struct slice key, uint32_t *ret_index, uint16_t *ret_type, struct slice *ret_id);

/*
 * Reads what lies there as it lies there: what renames have made of it, doc_apply_renames() says. That is for who has changes pending that the view
 * does not know (tree_write.h).
 */
int doc_get_stored(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                   struct doc *ret_doc) TL_MUST_USE;
/*
 * Makes of a document as it is stored what renames have made of it in a view: source, version, sequence number and timestamp. `pending` is what
 * the unit has put into the tree; NULL: nothing.
 * Returns: 0; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_apply_renames(const struct view *view, const struct omap *pending, uint32_t index, struct doc *doc) TL_MUST_USE;
/*
 * The same of a document that went with its session at `as_of`, and is about to be swept away: what renames had made of it by then. Later
 * ones have moved no document there.
 */
int doc_apply_renames_as_of(const struct view *view, const struct omap *pending, uint32_t index, tl_ts as_of,
                    struct doc *doc) TL_MUST_USE;

/* Appends a record; ts, version, seq_no, batch, singles, deleted, routing, lease, source and the placed ones of `doc` count. */
void doc_encode(struct buf *buf, const struct doc *doc);
/* Returns: 0 with slices into `record`, or TL_ERR_CORRUPT. */
int doc_decode(struct slice record, struct doc *ret_doc) TL_MUST_USE;
/* Returns: whether the entries of a field are singles although the document has chunks. */
bool doc_has_single_entries(const struct doc *doc, uint16_t field);
/* Returns: the batch that an entry of this field must have to speak of this version. */
static inline uint64_t doc_entry_batch(const struct doc *doc, uint16_t field)
{
    return doc->batch == 0 || doc_has_single_entries(doc, field) ? 0 : doc->batch;
}
/* Overwrites the timestamp of an encoded record: a transaction knows it only when it commits. */
void doc_set_ts(char *record, tl_ts ts);

/*
 * A walk over the live documents of an index, or of one of its types, by type number and id.
 * Owns: the caller; doc_scan_free. The view must outlive it.
 */
#define DOC_TYPE_ANY (-1)
struct doc_scan;
struct doc_scan *doc_scan_new(const struct view *view, uint32_t index, int type);
void doc_scan_free(struct doc_scan *scan);
TL_DEFINE_FREEP(struct doc_scan, doc_scan_free)
/* To the first document at or after a document key (type number and id), or just behind it. */
void doc_scan_seek(struct doc_scan *scan, struct slice document_key, bool behind);
/*
 * Steps to the next document, the first one at first. What it hands out lives until the next step.
 * Returns: 0; DOC_SCAN_END; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_scan_next(struct doc_scan *scan, uint16_t *ret_type, struct slice *ret_id, struct doc *ret_doc) TL_MUST_USE;

/*
 * Counts the live documents of an index, or of one of its types, in a view, without looking at them.
 * Returns: 0; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_count(const struct view *view, uint32_t index, int type, uint64_t *ret_count) TL_MUST_USE;

#endif
