/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RocksDB, as its own files see it: store_rocks.c (life, writing, reading),
 * rocks_open.c, rocks_batch.c, rocks_iter.c (scans), rocks_compact.c and rocks_maintenance.c (history, checking,
 * figures).
 */
#ifndef TL_STORE_ROCKS_INTERNAL_H
#define TL_STORE_ROCKS_INTERNAL_H

#include "store/rocks_dir.h"
#include "store/rocks_options.h"
#include "store/store_internal.h"

#include <pthread.h>

/* How many threads can read single keys at once without making read options of their own. */
enum { ROCKS_READ_SLOTS = 64 };

/*
 * Read options kept for store_get(): making them anew each time costs more than taking a slot. They
 * point at `ts`, so that naming another timestamp is writing eight bytes.
 */
struct rocks_read_slot {
    rocksdb_readoptions_t *options;
    char ts[ROCKS_TS_BYTES];
    atomic_bool taken;
    uint32_t draw;   /* random, see is_kept() */
    char apart[104]; /* keeps the slots of two threads out of one cache line */
};

struct rocks_store {
    struct store base;
    struct rocks_dir dir;
    struct rocks_options options;
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[SPACE_COUNT]; /* that of the feed NULL: an older store, only read */
    rocksdb_column_family_handle_t *checkpoints; /* NULL: none yet, as of the next; what is converted has none */
    rocksdb_column_family_handle_t *records;     /* of checkpoints, in pieces */
    _Atomic size_t unsaved_bytes;                /* written since the last one */
    atomic_bool given_up;                        /* nobody waits for room on the disk any more */
    atomic_bool compact_cancelled;
    _Atomic tl_ts begun_ts;   /* of the newest batch in the last one, */
    _Atomic tl_ts durable_ts; /* ... and in the last that is known to be on the disk */
    rocksdb_writeoptions_t *write_options;
    rocksdb_readoptions_t *plain_read_options; /* for SPACE_SYSTEM */
    _Atomic tl_ts newest_ts;                   /* of the batches written since the store was opened */
    pthread_mutex_t history_lock;              /* over pushed_low */
    tl_ts pushed_low;                          /* the cut-off that RocksDB knows */
    pthread_mutex_t reason_lock;
    char *reason; /* what RocksDB said at the first failure; NULL: none */
    struct rocks_read_slot slots[ROCKS_READ_SLOTS];
};

static inline struct rocks_store *rocks_of(struct store *store)
{
    return (struct rocks_store *)store;
}

/* Formats a reason into *ret_reason (NULL: nobody asks), replacing nothing: the first one stays. */
void rocks__say(char **ret_reason, const char *format, ...) TL_PRINTF(2, 3);

/* Frees RocksDB's message and keeps a copy of the first. Returns: the fatal code it means. */
int rocks__fail(struct rocks_store *rocks, char *error) TL_MUST_USE;
/* What RocksDB says, as a code. */
int rocks__code_of(const char *error);

/* Hands a batch to RocksDB. Waits while a full disk has it refused, until there is room or store_give_up(). Returns: 0; fatal codes. */
int rocks__put(struct rocks_store *rocks, rocksdb_writebatch_t *batch) TL_MUST_USE;

/* rocks_open.c */
int rocks__open_database(struct rocks_store *rocks, bool read_only, char **ret_reason) TL_MUST_USE;
void rocks__close_database(struct rocks_store *rocks);
/* Has no table in memory be full but that of checkpoints. */
int rocks__never_full(struct rocks_store *rocks) TL_MUST_USE;

/*
 * Turns off RocksDB's counters for the calling thread. They are kept in thread-local storage and cost a
 * quarter of an insertion, with nobody to read them.
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
void rocks__batch_put_kept(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void rocks__batch_delete(struct store_batch *batch, enum store_space space, struct slice key);
void rocks__batch_delete_range(struct store_batch *base, enum store_space space, struct slice lower,
                               struct slice upper);
/* Returns: the batch for RocksDB, in order of space and key. It lives until the batch is cleared or freed. */
rocksdb_writebatch_t *rocks__batch_sorted(struct store_batch *batch);

/* rocks_checkpoint.c */
int rocks__checkpoint(struct store *store, struct slice record) TL_MUST_USE;
int rocks__checkpointed(struct store *store) TL_MUST_USE;
int rocks__checkpoint_record(struct store *store, struct buf *ret_record) TL_MUST_USE;
size_t rocks__unsaved_bytes(const struct store *store);

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
int rocks__load_history_low(struct rocks_store *rocks) TL_MUST_USE;
int rocks__history_low_raised(struct store *store) TL_MUST_USE;
/* Tells RocksDB the cut-off if it has moved by at least `step_min`. */
int rocks__follow_history_low(struct rocks_store *rocks, tl_ts step_min) TL_MUST_USE;
int rocks__verify(struct store *store, char **ret_reason) TL_MUST_USE;
void rocks__stats(struct store *store, struct store_stats *ret_stats);
uint64_t rocks__range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper);
uint64_t rocks__free_bytes(const struct store *store);
bool rocks__is_ready(struct store *store);
/* Returns: 0 where it is; what RocksDB has to get over, TL_ERR_NO_SPACE of a full disk. */
int rocks__readiness(struct rocks_store *rocks) TL_MUST_USE;
/* Returns: the sum of a property of all spaces. */
uint64_t rocks__family_sum(struct rocks_store *rocks, const char *name);

/* rocks_compact.c */
int rocks__copy(struct store *store, const char *directory, char **ret_reason) TL_MUST_USE;
int rocks__compact(struct store *store) TL_MUST_USE;
void rocks__compact_cancel(struct store *store);

#endif
