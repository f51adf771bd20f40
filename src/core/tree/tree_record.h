/* SPDX-License-Identifier: Apache-2.0 */
/* Records that renames leave in SPACE_TREE. README.md, "In the store". */
#ifndef TL_CORE_TREE_RECORD_H
#define TL_CORE_TREE_RECORD_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"

/* The timestamp of a rename that its transaction has not committed. */
#define TREE_TS_OPEN TL_TS_MAX

/* Where an origin is. The numbers are stored and never change. */
enum tree_state {
    TREE_UNMOVED = 0, /* it is at the path of its own text */
    TREE_RELOCATED = 1,
    TREE_DETACHED = 2, /* another origin replaced it; no document exists at or below it */
};

/*
 * An origin's relocation record. Synthetic origins, and origins that were ever renamed, have one.
 * Its slices point into the encoded record.
 */
struct tree_relocation {
    tl_ts ts; /* of its last rename; 0: none; TREE_TS_OPEN in an overlay */
    enum tree_state state;
    int64_t renames;     /* README.md, "Versions and renames" */
    int64_t seq_no;      /* of its last rename; -1: none */
    struct slice dirent; /* where it is now; only if TREE_RELOCATED */
};

/* Encode keys into `buf`, which is cleared. Returns: the key, valid until the buffer changes. */
struct slice tree_dirent_key(struct buf *buf, uint32_t index, struct slice dirent);
struct slice tree_relocation_key(struct buf *buf, uint32_t index, struct slice origin);
struct slice tree_history_key(struct buf *buf, uint32_t index, struct slice origin);
struct slice tree_last_rename_key(struct buf *buf, uint32_t index);
struct slice tree_reach_key(struct buf *buf, uint32_t index, struct slice origin);
struct slice tree_longest_key(struct buf *buf, uint32_t index);
struct slice tree_high_key(struct buf *buf, uint32_t index, struct slice document);
/* Returns: the directory entry, origin or document in a key. */
struct slice tree_key_text(struct slice key);
/* The keys [lower, upper) of all relocated directory entries with this prefix. */
void tree_dirent_bounds(struct buf *lower, struct buf *upper, uint32_t index, struct slice prefix);
/* The keys [lower, upper) of all documents with a high version. */
void tree_high_bounds(struct buf *lower, struct buf *upper, uint32_t index);
/* The range [lower, upper) of all keys of an index, 4 bytes each. */
void tree_index_bounds(uint32_t index, char ret_lower[4], char ret_upper[4]);

/*
 * Appends a synthetic origin, which no valid path equals. `number`: unique in the unit with this
 * timestamp.
 */
void tree_new_origin(struct buf *buf, tl_ts ts, uint32_t number);

void tree_relocation_encode(struct buf *buf, const struct tree_relocation *relocation);
int tree_relocation_decode(struct slice value,
                           struct tree_relocation *ret_relocation) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Appends an item to a relocation history: the record `before` a rename at `ts` changed it. Newest
 * items are first.
 * Requires: the rename has a timestamp.
 */
void tree_history_encode(struct buf *buf, tl_ts ts, const struct tree_relocation *before);
/*
 * Takes the first item of a history; *ret_relocation is the encoded record. Returns: 0;
 * TL_ERR_CORRUPT.
 */
int tree_history_take(struct slice *history, tl_ts *ret_ts, struct slice *ret_relocation) TL_MUST_USE;

/* Encode and decode a length: reach, or length of the longest origin. */
void tree_length_encode(struct buf *buf, size_t length);
int tree_length_decode(struct slice value, size_t *ret_length) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Returns: whether the record has the timestamp TREE_TS_OPEN in its first eight bytes, to be
 *   replaced by the commit's.
 */
bool tree_record_is_open(struct slice key, struct slice value);

/* Returns: whether a record is valid; for checks of a store. */
bool tree_record_is_valid(struct slice key, struct slice value);

#endif
