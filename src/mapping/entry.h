/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secondary index entries, from a field's value to the documents that have it, in SPACE_ENTRIES.
 *
 * Entries are hints. A hit counts only if its document, read in the same view, has the hit's batch
 * and matches the query when it is evaluated again. So a stale entry is harmless and a missing one
 * is a bug. There are two shapes (README.md, "Entries"; entry_key.h has the key layout):
 *
 *  - A single entry is one key for one value of one document. Ordinary puts write it and delete it
 *    when the document loses the value.
 *  - A posting list is one key for up to ENTRY_POSTING_LIST_MAX documents of a batch that share a
 *    value. Bulk loads write it and nothing modifies it. When its documents change it becomes
 *    stale; it is removed once no document refers to its batch.
 *
 * In one version of a document, all entries of a field have the same shape. The document's record
 * says which by its batch: 0 for single entries, else the number passed to entry_set_init(), with
 * the list of fields converted to single entries since (doc_entry_batch() in
 * core/documents/doc.h). An entry whose batch is not that of its document's field is stale.
 */
#ifndef TL_MAPPING_ENTRY_H
#define TL_MAPPING_ENTRY_H

#include "base/arena.h"
#include "base/buf.h"
#include "mapping/field.h"
#include "store/view.h"

#define ENTRY_POSTING_LIST_MAX 256     /* documents in one posting list */
#define ENTRY_VALUE_CHARACTERS_MAX 256 /* longer values are truncated and flagged (cut) */
#define ENTRY_DOCUMENT_KEY_MAX 514     /* bytes: type number and id */

/* Appends a document key: the type's number as u16be, then the id. */
void entry_document_key(struct buf *buf, uint16_t type, struct slice id);
/* Splits a document key. Returns: false if the length of `key` is invalid. */
bool entry_document_key_parse(struct slice key, uint16_t *ret_type, struct slice *ret_id);

/*
 * Collects the entries of one command. All slices passed in must stay valid until
 * entry_set_emit().
 */
struct entry_set {
    struct arena *arena;
    struct entry_item *items;
    size_t count;
    size_t capacity;
    uint32_t index;
    uint64_t batch;
};

/*
 * `batch`: 0 for single entries, else a number unique in the index, such as the command's
 * timestamp.
 */
void entry_set_init(struct entry_set *set, struct arena *arena, uint32_t index, uint64_t batch);

/*
 * Adds the changes of a document that is written: its new values and, if it replaces a version, the
 * old values with the batch of that version; `old_count` is 0 if it is new.
 * Assumes: the document's new record has set->batch.
 */
void entry_set_write(struct entry_set *set, struct slice document_key, const struct field_value *values, size_t count,
                     const struct field_value *old_values, size_t old_count, uint64_t old_batch);
/* Adds the changes of a document that is deleted. */
void entry_set_delete(struct entry_set *set, struct slice document_key, const struct field_value *old_values,
                      size_t old_count, uint64_t old_batch);

/*
 * The destination of entries: a store batch or an overlay. Slices are valid during the call only.
 */
struct entry_sink {
    void (*put)(void *context, struct slice key, struct slice value);
    void (*remove)(void *context, struct slice key);
    void *context;
};

/*
 * Writes all collected changes to the sink and empties the set: single entries, then posting lists,
 * each in key order. A document with the same value twice is written once, and costs little if they follow each other.
 * Returns: the number of keys put or removed.
 */
size_t entry_set_emit(struct entry_set *set, const struct entry_sink *sink);

/*
 * Returns: whether a key of SPACE_ENTRIES is that of a posting list; its batch in *ret_batch if
 * so.
 */
bool entry_is_posting_list(struct slice key, uint64_t *ret_batch);

/*
 * Computes the bounds [lower, upper) of all entry keys of an index. Requires: as big_endian_range_u32().
 */
void entry_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4]);

/* --- Scans ------------------------------------------------------------------------------------ */

struct entry_range {
    uint32_t index;
    uint16_t field;
    const struct field_value *low;  /* NULL: unbounded */
    const struct field_value *high; /* NULL: unbounded */
    bool low_exclusive;
    bool high_exclusive;
    bool prefix;  /* `low` is a prefix of the values, in bytes; `high` is NULL */
    bool reverse; /* descending key order; inside of a posting list documents stay ascending */
};

/* A document named by an entry. Slices are valid until the next call on the scan. */
struct entry_hit {
    struct slice document_key;
    uint64_t batch;     /* the hit is stale unless the document's record has the same */
    struct slice value; /* encoded; equal bytes are equal values unless `cut` */
    bool cut;           /* the value was truncated, so different values may have these bytes */
};

enum {
    ENTRY_SCAN_END = 1,
    ENTRY_SCAN_BAD_POSITION = 2,
};

struct entry_scan;

/*
 * Creates a scan over the entries of one field within a range. Hits are ordered by value; for one
 * value, single entries by document key come before posting lists by batch. Apart from stale hits,
 * a document appears once for each of its values.
 *
 * Owns: the caller; entry_scan_free(). The view must outlive it.
 */
struct entry_scan *entry_scan_new(const struct view *view, const struct entry_range *range);
void entry_scan_free(struct entry_scan *scan);
TL_DEFINE_FREEP(struct entry_scan, entry_scan_free)
/* Advances the scan. Returns: 0 with the hit; ENTRY_SCAN_END; TL_ERR_IO; TL_ERR_CORRUPT. */
int entry_scan_next(struct entry_scan *scan, struct entry_hit *ret_hit) TL_MUST_USE;

/* Appends the position of a scan, after its last hit, as opaque bytes for entry_scan_resume(). */
void entry_scan_position(const struct entry_scan *scan, struct buf *buf);
/*
 * Moves a new scan of the same range, at the same timestamp, to a saved position.
 * Requires: no hit was read from the scan.
 * Returns: 0; ENTRY_SCAN_BAD_POSITION: the bytes are not a position in this range; TL_ERR_IO;
 *          TL_ERR_CORRUPT.
 */
int entry_scan_resume(struct entry_scan *scan, struct slice position) TL_MUST_USE;

/*
 * Counts the hits of a range, stale ones included, up to `limit`; for choosing a query plan.
 * Returns: 0; TL_ERR_IO; TL_ERR_CORRUPT.
 */
int entry_estimate(const struct view *view, const struct entry_range *range, size_t limit,
                   size_t *ret_hits) TL_MUST_USE;

/*
 * Appends the encoded form of a value, whose bytes sort as the values do (entry_key.h).
 * Returns: whether the value was truncated.
 */
bool entry_value_encode(struct buf *buf, const struct field_value *value);
/*
 * Decodes a value; its bytes are allocated in `arena`. ret_value->field is not set.
 * Returns: false if the bytes are not an encoded value of this kind.
 */
bool entry_value_decode(struct slice bytes, enum field_value_kind kind, struct arena *arena,
                        struct field_value *ret_value);

/* --- For `tidelock check` --------------------------------------------------------------------- */

/*
 * Looks for the entry of one value of a document's version.
 * Returns: 0: it exists; ENTRY_SCAN_END: it is missing; TL_ERR_IO; TL_ERR_CORRUPT.
 */
int entry_find(const struct view *view, uint32_t index, struct slice document_key, const struct field_value *value,
               uint64_t batch) TL_MUST_USE;
/* Creates a scan over all entries of an index. Owns: as entry_scan_new(). */
struct entry_scan *entry_walk_new(const struct view *view, uint32_t index);
/* As entry_scan_next(), for a scan made by entry_walk_new(); sets the hit's field too. */
int entry_walk_next(struct entry_scan *walk, uint16_t *ret_field, struct entry_hit *ret_hit) TL_MUST_USE;

#endif
