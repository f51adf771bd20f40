/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: live documents by index and type, sequence numbers, index numbers.
 *
 * A unit changes them in memory; then they are committed or rolled back with it. Committed ones are
 * written with the unit's batch, in SPACE_CATALOG, so a count is exact at any timestamp. The totals
 * are also in atomics, which readers share through the catalog.
 *
 * Key: 'n', index (u32be), type (u16be). Value: timestamp (u64be), next sequence number (varint),
 * documents (varint). The next sequence number of an index is the highest of its types. A
 * transaction records its change of a count under the same key in SPACE_SYSTEM of its overlay, as a
 * u64be that wraps around; its commit adds it.
 */
#ifndef TL_CORE_COUNTER_H
#define TL_CORE_COUNTER_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"
#include "store/view.h"

struct catalog_counters;

enum { COUNTER_KEY_BYTES = 7 };

struct counter_record {
    tl_ts ts;
    int64_t next_seq_no;
    uint64_t documents;
};

/* Returns: the key of a counter, in `bytes`, which holds COUNTER_KEY_BYTES. */
struct slice counter_key(char *bytes, uint32_t index, uint16_t type);
/* Returns: false if `key` is not the key of a counter. */
bool counter_key_parse(struct slice key, uint32_t *ret_index, uint16_t *ret_type);
void counter_encode(struct buf *buf, const struct counter_record *record);
/* 0, TL_ERR_CORRUPT */
int counter_decode(struct slice value, struct counter_record *ret_record) TL_MUST_USE;

/* Counter of a type. */
struct counter_type {
    uint64_t documents;
    uint64_t documents_before; /* when the unit began */
    bool dirty;
};

/* Counters of an index. */
struct counter {
    uint32_t index;
    int64_t next_seq_no;
    int64_t next_seq_no_before;
    bool dirty;                /* changed in the open unit, and in counters->dirty */
    uint64_t indexed, deleted; /* documents, in the open unit */
    /* Documents written to posting lists since the last sweep or start, including failed writes */
    uint64_t posting_list_documents;
    tl_ts swept_to; /* where the next sweep of the index begins, since the one before had too many batches; else 0 */
    struct counter_type *types; /* by type number */
    size_t type_count;
    struct catalog_counters *shared;
};

struct counters {
    struct counter **items; /* in order of index number */
    size_t count;
    size_t capacity;
    struct counter **dirty;
    size_t dirty_count;
    size_t dirty_capacity;
    uint32_t next_index; /* the number the next new index gets; from 1 */
    uint32_t next_index_before;
};

/*
 * Loads the counters from the store. *ret_last_ts: their newest timestamp. Returns: 0; fatal codes.
 */
int counters__open(struct counters *counters, struct store *store, tl_ts *ret_last_ts) TL_MUST_USE;
void counters__deinit(struct counters *counters);

/* Returns: the counter of an index, created if missing; valid until counters__drop(). */
struct counter *counters__of(struct counters *counters, uint32_t index);
/* Removes the counter of a purged index. */
void counters__drop(struct counters *counters, uint32_t index);

/* Returns: the live documents of an index. */
uint64_t counter__documents(const struct counter *counter);
int64_t counter__take_seq_no(struct counters *counters, struct counter *counter, uint16_t type);
void counter__add(struct counters *counters, struct counter *counter, uint16_t type, int64_t documents);
/*
 * Counts an operation of the unit as indexed or deleted. Requires: the unit took a sequence number
 * for it.
 */
void counter__record(struct counter *counter, bool deleted);
uint32_t counters__take_index(struct counters *counters);

/*
 * Writes the unit's changes at `ts` and publishes them to readers. Returns: whether the batch now
 * has a record that stores the timestamp.
 */
bool counters__commit(struct counters *counters, struct store_batch *batch, tl_ts ts);
/* Reverts the unit's changes. */
void counters__rollback(struct counters *counters);

#endif
