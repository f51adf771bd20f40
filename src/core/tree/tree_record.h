/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What renames have left, as it lies in SPACE_TREE: README.md, "In the store".
 */
#ifndef TL_CORE_TREE_RECORD_H
#define TL_CORE_TREE_RECORD_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"

/* The timestamp of a rename whose transaction has not committed yet. */
#define TREE_TS_OPEN TL_TS_MAX

enum tree_state {
    TREE_UNMOVED = 0, /* at the place of its own text */
    TREE_RELOCATED = 1,
    TREE_DETACHED = 2, /* it was empty, and gave way to another */
};

/* A birth that was renamed, or was made for a vacant place. Slices lie in the record. */
struct tree_relocation {
    tl_ts ts; /* of its newest rename; 0: none. TREE_TS_OPEN in an overlay */
    enum tree_state state;
    int64_t renames;
    int64_t seq_no;     /* of its newest rename; -1: none */
    struct slice dirent; /* where it is at a place */
};

/* Keys, in a buffer that is cleared first. Returns: the key, which lives as long as the buffer's bytes. */
struct slice tree_dirent_key(struct buf *buf, uint32_t index, struct slice place);
struct slice tree_relocation_key(struct buf *buf, uint32_t index, struct slice birth);
struct slice tree_history_key(struct buf *buf, uint32_t index, struct slice birth);
struct slice tree_last_rename_key(struct buf *buf, uint32_t index);
struct slice tree_reach_key(struct buf *buf, uint32_t index, struct slice birth);
struct slice tree_longest_key(struct buf *buf, uint32_t index);
struct slice tree_high_key(struct buf *buf, uint32_t index, struct slice document);
/* Returns: the place, birth or document that a record is of. */
struct slice tree_key_text(struct slice key);
/* The keys [lower, upper) of the guests at all places that begin with these bytes. */
void tree_dirent_bounds(struct buf *lower, struct buf *upper, uint32_t index, struct slice prefix);
/* The keys [lower, upper) of all documents with a high version. */
void tree_high_bounds(struct buf *lower, struct buf *upper, uint32_t index);
/* All keys of an index: [lower, upper), 4 bytes each. */
void tree_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4]);

/* Appends the birth that no text is: `number` is unique within the unit that has this timestamp. */
void tree_new_origin(struct buf *buf, tl_ts ts, uint32_t number);

void tree_relocation_encode(struct buf *buf, const struct tree_relocation *moved);
int tree_relocation_decode(struct slice value, struct tree_relocation *ret_moved) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/* Appends what a birth's record was before a rename at `ts` changed it. A past is such items, the newest first. */
void tree_history_encode(struct buf *buf, tl_ts ts, const struct tree_relocation *before);
/* Takes an item off a past, with the record as it is encoded. Returns: 0, TL_ERR_CORRUPT. */
int tree_history_take(struct slice *past, tl_ts *ret_ts, struct slice *ret_moved) TL_MUST_USE;

/* Values of reaches, and of the longest birth: a length. */
void tree_length_encode(struct buf *buf, size_t length);
int tree_length_decode(struct slice value, size_t *ret_length) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Returns: whether the record tells of a rename of a transaction that has not committed: its first eight bytes are to become the
 * commit's timestamp.
 */
bool tree_record_is_open(struct slice key, struct slice value);

/* Returns: whether a record is one that is understood. */
bool tree_record_is_valid(struct slice key, struct slice value);

#endif
