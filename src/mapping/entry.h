/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secondary entries: from a field's value to the documents that have it, in SPACE_ENTRIES.
 *
 * Entries are hints. A hit counts only when its document, read in the same view, was written with the hit's
 * batch and passes the query again; so a stale entry is harmless and a missing one is a bug. README.md has
 * the invariants, the key layout and why there are two shapes:
 *
 *   a single, written by ordinary puts: one key a value and document, deleted exactly when the value goes;
 *   a chunk, written by bulk loads: one key for up to ENTRY_POSTING_LIST_MAX documents of a batch that share a value,
 *   never changed, left behind as stale when its documents change, and removed when no document names its batch.
 *
 * In a document's version each field has its entries in one shape. Its record says which, as its *batch*: 0 for singles,
 * else the number the bulk load gave to entry_set_init(), with the fields named that have gone over to singles since
 * (doc_entry_batch() in core/documents/doc.h). An entry of another batch than its field's is stale.
 */
#ifndef TL_MAPPING_ENTRY_H
#define TL_MAPPING_ENTRY_H

#include "base/arena.h"
#include "base/buf.h"
#include "mapping/field.h"
#include "store/view.h"

#define ENTRY_POSTING_LIST_MAX 256            /* documents of one chunk */
#define ENTRY_VALUE_CHARACTERS_MAX 256 /* of a value; longer ones are cut and marked */
#define ENTRY_DOCUMENT_KEY_MAX 514     /* bytes: type number and id */

/* A document key: the type's number as u16be, then the id. */
void entry_document_key(struct buf *buf, uint16_t type, struct slice id);
/* Returns: false where `key` is no document key. */
bool entry_document_key_parse(struct slice key, uint16_t *ret_type, struct slice *ret_id);

/*
 * Collecting the entries of one command. Everything handed in must live until entry_set_emit().
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
 * `batch` is 0 for singles, else unique to this command in the index, such as its timestamp.
 */
void entry_set_init(struct entry_set *set, struct arena *arena, uint32_t index, uint64_t batch);

/*
 * A document written: its new values, and, where it replaces a version, the old values with that version's
 * batch. Its record must say set->batch. With `old_count` 0 it is a plain add.
 */
void entry_set_write(struct entry_set *set, struct slice document_key, const struct field_value *values, size_t count,
                     const struct field_value *old_values, size_t old_count, uint64_t old_batch);
/* A document deleted. */
void entry_set_delete(struct entry_set *set, struct slice document_key, const struct field_value *old_values,
                      size_t old_count, uint64_t old_batch);

/* Where entries go: a batch or an overlay. Slices live for the call. */
struct entry_sink {
    void (*put)(void *context, struct slice key, struct slice value);
    void (*remove)(void *context, struct slice key);
    void *context;
};

/*
 * Emits all: singles, then chunks, each in key order; duplicates of one document and value once.
 * Returns: how many keys were put or removed.
 */
size_t entry_set_emit(struct entry_set *set, const struct entry_sink *sink);

/* Returns: whether a key of SPACE_ENTRIES is a chunk's, and then of which batch. */
bool entry_is_posting_list(struct slice key, uint64_t *ret_batch);

/* Deletes a whole index's entries by key range: the bounds [lower, upper) of its keys. Each holds 4 bytes. */
void entry_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4]);

/*
 * Scanning.
 */
struct entry_range {
    uint32_t index;
    uint16_t field;
    const struct field_value *low; /* NULL: open */
    const struct field_value *high;
    bool low_exclusive;
    bool high_exclusive;
    bool prefix;  /* `low` is bytes that values begin with; `high` is NULL */
    bool reverse; /* from the highest value down; documents of one value stay in ascending runs or descending ones */
};

/* A document an entry names. Slices live until the scan moves. */
struct entry_hit {
    struct slice document_key;
    uint64_t batch;     /* must equal the document's */
    struct slice value; /* encoded; equal bytes are equal values unless `cut` */
    bool cut;           /* the value was too long: longer values share these bytes */
};

enum {
    ENTRY_SCAN_END = 1,
    ENTRY_SCAN_BAD_POSITION = 2,
};

struct entry_scan;

/*
 * A scan over the entries of one field within a range: by value, and for one value singles by document key
 * first, then chunks by batch. A document appears once for each of its values (stale hits aside).
 *
 * Owns: the caller; entry_scan_free. The view must outlive it.
 */
struct entry_scan *entry_scan_new(const struct view *view, const struct entry_range *range);
void entry_scan_free(struct entry_scan *scan);
TL_DEFINE_FREEP(struct entry_scan, entry_scan_free)
/* Returns: 0 and a hit; ENTRY_SCAN_END; TL_ERR_IO, TL_ERR_CORRUPT. */
int entry_scan_next(struct entry_scan *scan, struct entry_hit *ret_hit) TL_MUST_USE;

/*
 * Where a scan stands, behind its last hit, as bytes; and going on from there in a new scan of the same range
 * at the same timestamp. Returns: 0; ENTRY_SCAN_BAD_POSITION where the bytes are not such a position.
 */
void entry_scan_position(const struct entry_scan *scan, struct buf *buf);
int entry_scan_resume(struct entry_scan *scan, struct slice position) TL_MUST_USE;

/*
 * Returns: in *ret_hits at most how many hits a range has, counted up to `limit`: to choose between plans.
 *          0, TL_ERR_IO, TL_ERR_CORRUPT.
 */
int entry_estimate(const struct view *view, const struct entry_range *range, size_t limit,
                   size_t *ret_hits) TL_MUST_USE;

/* Appends the encoded form of a value: equal order as bytes. Returns: whether it had to be cut. */
bool entry_value_encode(struct buf *buf, const struct field_value *value);
/* The value back, bytes into `arena`. Returns: false where the bytes are no value of this kind. */
bool entry_value_decode(struct slice bytes, enum field_value_kind kind, struct arena *arena, struct field_value *ret_value);

/*
 * For `tidelock check`. Whether a version's entry is there: 0, ENTRY_SCAN_END where it is missing, TL_ERR_….
 * Walking every entry of an index: entry_walk_next() gives field and hit of each document named.
 */
int entry_find(const struct view *view, uint32_t index, struct slice document_key, const struct field_value *value,
               uint64_t batch) TL_MUST_USE;
struct entry_scan *entry_walk_new(const struct view *view, uint32_t index);
int entry_walk_next(struct entry_scan *walk, uint16_t *ret_field, struct entry_hit *ret_hit) TL_MUST_USE;

#endif
