/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RocksDB, shared by its files: store_rocks.c (open, write, single reads),
 * rocks_open.c, rocks_batch.c, rocks_iter.c (scans), rocks_checkpoint.c, rocks_compact.c,
 * rocks_copy.c and rocks_maintenance.c (history limit, verification, statistics).
 */
#ifndef TL_STORE_ROCKS_INTERNAL_H
#define TL_STORE_ROCKS_INTERNAL_H

#include "store/rocks_dir.h"
#include "store/rocks_options.h"
#include "store/store_internal.h"

#include <pthread.h>

/* Number of threads that can read single keys at once without allocating read options. */
enum { ROCKS_READ_SLOTS = 64 };

/*
 * Reusable read options for store_get(): creating them costs more than taking a slot. They point at
 * `ts`, so another timestamp costs a store of eight bytes.
 */
struct rocks_read_slot {
    rocksdb_readoptions_t *options;
    char ts[ROCKS_TS_BYTES];
    atomic_bool taken;
    uint32_t draw;   /* state of the random numbers of fills_cache() */
    char apart[104]; /* padding: two slots never share a cache line */
};

/* Bytes of a batch that are passed to RocksDB at once: a part stays in the processor's cache. */
enum { ROCKS_PART_BYTES = 256 << 10 };

struct rocks_store {
    struct store base;
    struct rocks_dir dir;
    struct rocks_options options;
    rocksdb_t *db;
    bool created; /* by this opening, with its families but the default one never full */
    /* The feed's is NULL in an older store opened read-only. */
    rocksdb_column_family_handle_t *families[SPACE_COUNT];
    /* NULL: the family does not exist, as in a store being converted; so also `records`. */
    rocksdb_column_family_handle_t *checkpoints;
    rocksdb_column_family_handle_t *records; /* checkpoint records, in parts */
    size_t part_bytes;                       /* of a batch that are passed to RocksDB at once */
    _Atomic size_t uncheckpointed_bytes;     /* since the last checkpoint was begun */
    atomic_bool given_up;                    /* store_give_up() was called */
    atomic_bool compact_cancelled;
    _Atomic tl_ts begun_ts;   /* newest batch in the last checkpoint */
    _Atomic tl_ts durable_ts; /* newest batch in the last checkpoint known to be durable */
    rocksdb_writeoptions_t *write_options;
    rocksdb_readoptions_t *plain_read_options; /* for SPACE_SYSTEM */
    _Atomic tl_ts newest_ts;                   /* newest batch since the store was opened */
    pthread_mutex_t history_lock;              /* protects pushed_low */
    tl_ts pushed_low;                          /* the history limit last set in RocksDB */
    pthread_mutex_t reason_lock;
    char *reason; /* text of RocksDB's first error; NULL: none */
    struct rocks_read_slot slots[ROCKS_READ_SLOTS];
};

static inline struct rocks_store *rocks_of(struct store *store)
{
    return (struct rocks_store *)store;
}

/* Formats a reason into *ret_reason. No effect if ret_reason is NULL or a reason is already set. */
void rocks__set_reason(char **ret_reason, const char *format, ...) TL_PRINTF(2, 3);

/* Records RocksDB's message if it is the first, and frees it. Returns: the fatal code for it. */
int rocks__fail(struct rocks_store *rocks, char *error) TL_MUST_USE;
/* Returns: the fatal code for a message of RocksDB. */
int rocks__code_of(const char *error);

/*
 * Writes a batch to RocksDB. Blocks while RocksDB refuses it because of a full disk, until there is
 * space or store_give_up() is called. Returns: 0; fatal codes.
 */
int rocks__put(struct rocks_store *rocks, rocksdb_writebatch_t *batch) TL_MUST_USE;

/* rocks_open.c */
int rocks__open_database(struct rocks_store *rocks, const struct store_options *settings,
                         char **ret_reason) TL_MUST_USE;
void rocks__close_database(struct rocks_store *rocks);
/*
 * Sets the memtables' sizes such that only a checkpoint fills one (README.md, "Checkpoints"), and
 * permits compactions.
 * Requires: the database is open.
 */
int rocks__never_full(struct rocks_store *rocks) TL_MUST_USE;

/*
 * Disables RocksDB's performance counters for the calling thread. They are thread-local, cost a
 * quarter of an insertion, and are not used.
 */
static inline void rocks__quiet(void)
{
    rocksdb_set_perf_level(rocksdb_disable);
}

/* rocks_batch.c */
struct store_batch *rocks__batch_new(struct store *store);
void rocks__batch_free(struct store_batch *batch);
void rocks__batch_clear(struct store_batch *batch);
void rocks__batch_put(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void rocks__batch_put_nocopy(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void rocks__batch_put_stamped(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void rocks__batch_delete(struct store_batch *batch, enum store_space space, struct slice key);
void rocks__batch_delete_range(struct store_batch *base, enum store_space space, struct slice lower,
                               struct slice upper);
/* Sorts the changes by space and key, and begins with the first part. */
void rocks__batch_sort(struct store_batch *batch);
/*
 * Returns: the next part of the batch for RocksDB, valid until the next call or until the batch is cleared or freed;
 *          NULL after the last one. A large batch has several: all unversioned changes, then the others.
 * Assumes: rocks__batch_sort() was called after the last change.
 */
rocksdb_writebatch_t *rocks__batch_next(struct store_batch *batch);

/* rocks_checkpoint.c */
int rocks__checkpoint(struct store *store, struct slice record) TL_MUST_USE;
int rocks__checkpointed(struct store *store) TL_MUST_USE;
int rocks__checkpoint_record(struct store *store, struct buf *ret_record) TL_MUST_USE;
/* Returns: whether a store of the present format has no checkpoint yet. */
bool rocks__lacks_checkpoint(struct rocks_store *rocks);
int rocks__put_piece(struct store *store, struct store_piece piece, struct slice bytes) TL_MUST_USE;
int rocks__delete_pieces(struct store *store, uint64_t first, uint64_t last) TL_MUST_USE;
int rocks__get_piece(struct store *store, struct store_piece piece, struct buf *ret_bytes) TL_MUST_USE;
int rocks__count_pieces(struct store *store, size_t *ret_count) TL_MUST_USE;
size_t rocks__uncheckpointed_bytes(const struct store *store);

/* rocks_iter.c */
struct store_iter *rocks__iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                   struct slice upper);
void rocks__iter_free(struct store_iter *iter);
void rocks__iter_seek_first(struct store_iter *iter);
void rocks__iter_seek_last(struct store_iter *iter);
void rocks__iter_seek(struct store_iter *iter, struct slice key);
void rocks__iter_seek_for_prev(struct store_iter *iter, struct slice key);
void rocks__iter_next(struct store_iter *iter);
void rocks__iter_prev(struct store_iter *iter);

/* rocks_maintenance.c */
int rocks__load_history_low(struct rocks_store *rocks, bool read_only) TL_MUST_USE;
int rocks__history_low_raised(struct store *store) TL_MUST_USE;
/* Sets the history limit in RocksDB if it has advanced by at least `step_min`. */
int rocks__push_history_low(struct rocks_store *rocks, tl_ts step_min) TL_MUST_USE;
int rocks__verify(struct store *store, char **ret_reason) TL_MUST_USE;
void rocks__stats(struct store *store, struct store_stats *ret_stats);
uint64_t rocks__range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper);
uint64_t rocks__free_bytes(const struct store *store);
bool rocks__is_ready(struct store *store);
/*
 * Returns: 0: RocksDB accepts writes; else the code of its background error, TL_ERR_NO_SPACE: a
 *          full disk.
 */
int rocks__readiness(struct rocks_store *rocks) TL_MUST_USE;
/* Returns: the sum of an integer property over all spaces. */
uint64_t rocks__family_sum(struct rocks_store *rocks, const char *name);

/* rocks_compact.c */
int rocks__copy(struct store *store, const char *directory, char **ret_reason) TL_MUST_USE;
int rocks__compact(struct store *store) TL_MUST_USE;
void rocks__compact_cancel(struct store *store);

#endif
