/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versioned key-value store.
 *
 * A store maps byte-string keys to byte strings, in a few spaces. In a versioned space every write
 * has a timestamp and overwrites nothing. A read names a timestamp and returns, for each key, the
 * newest version at or before it. Compaction drops versions that no permitted read can return,
 * after the history limit has passed them. SPACE_FEED and SPACE_SYSTEM are unversioned: a read
 * returns the last write.
 *
 * Two implementations: store_rocks.c on RocksDB with user-defined timestamps, and store_mem.c in
 * memory, for tests, which can simulate a crash.
 *
 * One thread at a time writes; any number of threads read concurrently.
 *
 * README.md has the invariants.
 */
#ifndef TL_STORE_STORE_H
#define TL_STORE_STORE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/types.h"

enum store_space {
    SPACE_DOCUMENTS,
    SPACE_ENTRIES,
    SPACE_TREE,
    SPACE_CATALOG,
    SPACE_FEED,   /* unversioned; its keys are timestamps */
    SPACE_SYSTEM, /* unversioned: sessions, locks, counters, the last applied timestamp */
    SPACE_COUNT
};

/* Outcomes of reads. */
enum {
    STORE_NOT_FOUND = 1,
    STORE_TOO_OLD = 2, /* the timestamp is below the history limit */
};

struct buf;
struct store;
struct store_batch;
struct store_iter;

/* Whether the content of a store, opened read-only, can be read. Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT. */
typedef int store_check(struct store *store, void *context);

struct store_options {
    struct slice directory;    /* the data directory, created if missing; ignored by store_mem.c */
    size_t cache_bytes;        /* block cache including index and filter blocks; 0: 64 MiB */
    size_t write_buffer_bytes; /* twice the expected bytes between two checkpoints; 0: 64 MiB */
    size_t part_bytes;         /* of a batch that are passed to RocksDB at once; 0: 256 KiB; tests set less */
    bool read_only;            /* for `tidelock check` */
    bool in_memory;            /* use RocksDB's in-memory environment; for tests */
    /* Called before a directory of an older format is converted; an error leaves it unchanged. NULL: none. */
    store_check *check_older;
    void *check_context;
};

/*
 * Opens a store on RocksDB; creates it if the directory is empty.
 * Returns: 0; TL_ERR_BUSY: another process has opened it; TL_ERR_VERSION: it has a newer format, or
 *          an older one and is opened read-only; TL_ERR_NO_SPACE; TL_ERR_IO; TL_ERR_CORRUPT; with
 *          *ret_reason (mem_free; may be NULL).
 * Owns: the caller; store_close().
 */
int store_open_rocks(const struct store_options *options, struct store **ret_store, char **ret_reason) TL_MUST_USE;

/* Opens an empty in-memory store. Owns: the caller; store_close(). */
struct store *store_open_mem(void);

/*
 * Makes everything written so far durable: a later store_mem_crash() keeps it. Requires: an
 * in-memory store.
 */
void store_mem_sync(struct store *store);

/*
 * Simulates a crash and a reopening of an in-memory store: it returns to its last checkpoint or
 * later store_mem_sync(), plus the first `kept` batches written since. A crash of a store on
 * RocksDB keeps none of these; `kept` lets a test crash between any two batches.
 * Returns: the number of batches since.
 * Requires: an in-memory store without iterators.
 */
size_t store_mem_crash(struct store *store, size_t kept);

/*
 * Copies the store as of its last checkpoint or later store_mem_sync(), as store_copy() does on RocksDB. Writes to the
 * original wait. Owns: the caller; store_close(). Requires: an in-memory store with a checkpoint.
 */
struct store *store_mem_copy(struct store *store);

/*
 * Closes and frees the store. NULL: no effect. Requires: no batch, iterator or value of it exists.
 */
void store_close(struct store *store);

/*
 * Returns: the text of the storage engine's first fatal error, for the log; NULL: there was none.
 * Owns: the caller; mem_free.
 */
char *store_reason(struct store *store);

/* Batches: the changes of one step, written atomically. A batch may be cleared and reused. */
struct store_batch *store_batch_new(struct store *store);
void store_batch_free(struct store_batch *batch);
void store_batch_clear(struct store_batch *batch);
/* Sets the timestamp of the batch's changes. Requires: called once, first after new or clear. */
void store_batch_begin(struct store_batch *batch, tl_ts ts);
void store_batch_put(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
/*
 * Puts a key and a value without copying them. Requires: their bytes stay unchanged until the batch
 * is written, cleared or freed.
 */
void store_batch_put_nocopy(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
/*
 * As store_batch_put_nocopy(), but the value begins with the batch's timestamp, big endian, in place of its own first
 * STORE_STAMP_BYTES: others may read these bytes meanwhile. Requires: the value has as many.
 */
enum { STORE_STAMP_BYTES = 8 };
void store_batch_put_stamped(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void store_batch_delete(struct store_batch *batch, enum store_space space, struct slice key);
/*
 * Deletes all keys within [lower, upper) that earlier batches have put, at the cost of one change.
 * Puts of the same batch in that range take effect after the deletion.
 * Requires: an unversioned space; lower is below upper.
 */
void store_batch_delete_range(struct store_batch *batch, enum store_space space, struct slice lower,
                              struct slice upper);
/* Returns: the number of changes in the batch. */
size_t store_batch_count(const struct store_batch *batch);
/* Returns: the bytes of keys and values in the batch. */
size_t store_batch_bytes(const struct store_batch *batch);
/*
 * Begins to compute a digest of the batch's changes; store_batch_clear() resets it but does not end
 * this. Requires: the batch is empty.
 */
void store_batch_track_digest(struct store_batch *batch);
/*
 * Returns: a hash of the changes, in order, and of the timestamp; independent of the
 *          implementation. Requires: store_batch_track_digest().
 */
uint64_t store_batch_digest(const struct store_batch *batch);

/*
 * Applies a batch, which can then only be cleared or freed: visible to reads at once, durable with the next checkpoint.
 * Returns: 0; TL_ERR_IO, TL_ERR_NO_SPACE: nothing was applied.
 * Requires: the batch's timestamp is above those of all earlier batches and above the history
 *          limit.
 */
int store_write(struct store *store, struct store_batch *batch) TL_MUST_USE;

/*
 * Checkpoints; see README.md.
 *
 * Begins a checkpoint: everything written so far, with `record`. As soon as it is durable, a crash
 * returns the store to this state; until then, to the previous checkpoint. Later writes are part of
 * neither. Returns at once; the rest runs in the background.
 * Returns: 0; TL_ERR_IO; TL_ERR_NO_SPACE, only after store_give_up().
 * Requires: called by the writer; the previous checkpoint is durable.
 *
 * On a full disk RocksDB accepts nothing: store_write() and store_checkpoint() then block until
 * there is space.
 */
int store_checkpoint(struct store *store, struct slice record) TL_MUST_USE;
/*
 * Returns: 1: the last checkpoint is durable; 0: not yet; fatal codes, after which no checkpoint
 *          will be. From any thread.
 */
int store_checkpointed(struct store *store) TL_MUST_USE;
/*
 * Ends waiting for disk space: calls that would block return TL_ERR_NO_SPACE from now on. From any
 * thread.
 */
void store_give_up(struct store *store);
/*
 * Appends the record of the last checkpoint. Returns: 0; STORE_NOT_FOUND: there is no checkpoint;
 * fatal codes.
 */
int store_checkpoint_record(struct store *store, struct buf *ret_record) TL_MUST_USE;
/*
 * Pieces: parts of a large record that are written ahead of its checkpoint (README.md, "Pieces").
 * A piece has an owner and a number. Its bytes are part of the next checkpoint, as a batch is.
 */
struct store_piece {
    uint64_t owner; /* below UINT64_MAX */
    uint32_t number;
};
/*
 * Writes or replaces a piece.
 * Returns: 0; TL_ERR_IO; TL_ERR_NO_SPACE, only after store_give_up(). Blocks as store_write().
 * Requires: called by the writer.
 */
int store_put_piece(struct store *store, struct store_piece piece, struct slice bytes) TL_MUST_USE;
/*
 * Deletes the pieces of the owners from `first` to `last`, if there are any. Returns, Requires: as
 * store_put_piece().
 */
int store_delete_pieces(struct store *store, uint64_t first, uint64_t last) TL_MUST_USE;
/* Appends the bytes of a piece. Returns: 0; STORE_NOT_FOUND; fatal codes. */
int store_get_piece(struct store *store, struct store_piece piece, struct buf *ret_bytes) TL_MUST_USE;
/* Counts all pieces; reads all of them. Returns: 0; fatal codes. */
int store_count_pieces(struct store *store, size_t *ret_count) TL_MUST_USE;
/*
 * Returns: approximately the bytes in memory written since the last checkpoint was begun. From any
 *          thread.
 */
size_t store_uncheckpointed_bytes(const struct store *store);

/* A value read. `bytes` is valid until store_value_release(). */
struct store_value {
    struct slice bytes;
    void *pin;                             /* NULL: nothing to release */
    void (*release)(struct store_value *); /* NULL: nothing to release */
};

/* Releases a value and clears it. From any thread. */
static inline void store_value_release(struct store_value *value)
{
    if (value->release != NULL)
        value->release(value);
    *value = (struct store_value){SLICE_NONE, NULL, NULL};
}

/*
 * Reads one key as of `ts`, which is ignored in unversioned spaces.
 * Returns: 0; STORE_NOT_FOUND; STORE_TOO_OLD; TL_ERR_IO; TL_ERR_CORRUPT.
 * Owns: the caller; store_value_release().
 */
int store_get(struct store *store, enum store_space space, tl_ts ts, struct slice key,
              struct store_value *ret_value) TL_MUST_USE;

/*
 * Makes an iterator over the keys of a space as of `ts`, in byte order, within [lower, upper); an
 * empty bound is open. It has no position before the first seek. It shows the batches written
 * before its creation, and pins them until it is freed.
 * Owns: the caller; store_iter_free().
 */
struct store_iter *store_iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                  struct slice upper);
void store_iter_free(struct store_iter *iter);
void store_iter_seek_first(struct store_iter *iter);
void store_iter_seek_last(struct store_iter *iter);
/* Moves to the first key at or after `key`. */
void store_iter_seek(struct store_iter *iter, struct slice key);
/* Moves to the last key at or before `key`. */
void store_iter_seek_for_prev(struct store_iter *iter, struct slice key);
void store_iter_next(struct store_iter *iter);
void store_iter_prev(struct store_iter *iter);
bool store_iter_valid(const struct store_iter *iter);
/* The key and value at a valid position, valid until the iterator moves. */
struct slice store_iter_key(const struct store_iter *iter);
struct slice store_iter_value(const struct store_iter *iter);
/*
 * Returns: 0, also at the end of the range; STORE_TOO_OLD, TL_ERR_IO, TL_ERR_CORRUPT: why the
 *          iterator is invalid.
 */
int store_iter_status(const struct store_iter *iter) TL_MUST_USE;
/*
 * Calls `visit` for each key of a space as of `ts`, in byte order, within [lower, upper), until it
 * returns non-zero.
 * Returns: 0; the visitor's non-zero value; as store_iter_status().
 */
typedef int store_visit(void *context, struct slice key, struct slice value);
int store_each(struct store *store, enum store_space space, tl_ts ts, struct slice lower, struct slice upper,
               store_visit *visit, void *context) TL_MUST_USE;

/*
 * Raises the history limit: reads below `ts` are refused from now on, and compaction may drop
 * versions that only they could return. A lower `ts` has no effect. From any thread.
 * Returns: 0; fatal codes.
 */
int store_set_history_low(struct store *store, tl_ts ts) TL_MUST_USE;
tl_ts store_history_low(const struct store *store);

/*
 * Compacts the tables of the last checkpoints: versions that no read can return are removed. On
 * RocksDB it runs concurrently with the writer and takes at least two seconds. In memory it blocks
 * readers.
 * Returns: 0; fatal codes.
 */
int store_compact(struct store *store) TL_MUST_USE;
/*
 * Cancels a running store_compact() and all later ones: they stop early and return 0. From any
 * thread.
 */
void store_compact_cancel(struct store *store);

/*
 * Reads every block, verifies its checksum, and looks up every key. Returns: 0; TL_ERR_CORRUPT,
 * TL_ERR_IO, with *ret_reason (mem_free; may be NULL).
 */
int store_verify(struct store *store, char **ret_reason) TL_MUST_USE;

/*
 * Copies the store as of its newest durable checkpoint into the empty `directory`, durably. Links
 * the immutable files, or copies them to another file system. Writes continue; nothing is flushed.
 * Blocks. From any thread.
 * Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO, with *ret_reason (mem_free).
 * Requires: a checkpoint is durable; a store on RocksDB.
 */
int store_copy(struct store *store, const char *directory, char **ret_reason) TL_MUST_USE;

struct store_stats {
    uint64_t disk_bytes;   /* of table files */
    uint64_t memory_bytes; /* of cache, memtables and table readers */

    /* In detail: */
    uint64_t table_bytes; /* of live tables, in all spaces */
    uint64_t table_count;
    uint64_t cache_bytes;
    uint64_t cache_bytes_max;
    uint64_t unflushed_bytes; /* in memtables */
    uint64_t flushes_running;
    uint64_t compactions_running;
    uint64_t compaction_due_bytes; /* estimate of the bytes that compactions have yet to rewrite */
    uint64_t errors;               /* background errors since the store was opened */
    bool stopped;                  /* writes are stalled until flushes or compactions catch up */

    /* Since the store was opened: */
    uint64_t flushes;
    uint64_t compactions;
};
/* Fills in the statistics; fields that do not apply to the implementation are 0. From any thread. */
void store_stats(struct store *store, struct store_stats *ret_stats);

/*
 * Returns: an estimate, from the tables' indexes, of the bytes of versions within [lower, upper).
 *          Unflushed data is not counted. From any thread.
 */
uint64_t store_range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper);

/*
 * Returns: free bytes on the file system of the data directory; UINT64_MAX: in memory, or unknown.
 *          The writer refuses changes below STORE_RESERVE_BYTES (README.md, "A full disk").
 */
uint64_t store_free_bytes(const struct store *store);

/*
 * Returns: whether store_write() would not block: false while RocksDB has not recovered from a
 *          flush that met a full disk. Recovery takes some seconds after there is space. From any
 *          thread.
 */
bool store_is_ready(struct store *store);
#define STORE_RESERVE_BYTES ((uint64_t)256 << 20)

#endif
