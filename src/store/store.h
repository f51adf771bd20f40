/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versioned key-value store.
 *
 * A store holds byte strings under byte-string keys in a few spaces. In a versioned space every write has a
 * timestamp and nothing is overwritten: a read names a timestamp and sees, for each key, the newest version
 * at or before it. Versions that no readable timestamp can see any more are dropped by compaction, once
 * the history cut-off has passed them. SPACE_FEED and SPACE_SYSTEM have no history: a read there sees the last write.
 *
 * Two implementations behind one interface: store_rocks.c on RocksDB with user-defined timestamps, and
 * store_mem.c, its twin for tests, which can also crash and lose what came after its last checkpoint.
 *
 * One thread at a time writes; any number of threads read meanwhile.
 *
 * See README.md for the invariants.
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
    SPACE_FEED,   /* no history: its keys are timestamps */
    SPACE_SYSTEM, /* no history: sessions, locks, counters, the last applied timestamp */
    SPACE_COUNT
};

/* Outcomes of reads. */
enum {
    STORE_NOT_FOUND = 1,
    STORE_TOO_OLD = 2, /* the timestamp is below the history cut-off */
};

struct buf;
struct store;
struct store_batch;
struct store_iter;

struct store_options {
    struct slice directory;    /* of the data; created when missing. Ignored by the twin */
    size_t cache_bytes;        /* block cache, index and filter blocks included; default 64 MiB */
    size_t write_buffer_bytes; /* that come between two checkpoints, twice; default 64 MiB */
    bool read_only;            /* for `tidelock check` */
    bool in_memory;            /* RocksDB on its memory environment; for tests */
};

/*
 * Opens a store on RocksDB, creating it when the directory is empty.
 *
 * Returns: 0; TL_ERR_BUSY another process has it; TL_ERR_VERSION written by a newer format;
 *          TL_ERR_IO, TL_ERR_CORRUPT. `ret_reason` (may be NULL) then says why, to be freed by mem_free.
 * Owns: the caller; store_close.
 */
int store_open_rocks(const struct store_options *options, struct store **ret_store, char **ret_reason) TL_MUST_USE;

/* Opens an empty twin in memory. */
struct store *store_open_mem(void);

/* Of the twin: a store_mem_crash() does not take back what was written so far. */
void store_mem_keep(struct store *store);

/*
 * Ends the twin's life as a crash would: it is as it was at its last checkpoint, or at a later store_mem_keep(), with the first `kept` of the
 * batches written since; then it is as if opened again. A store on RocksDB keeps none of those; that a test may ask for them lets it end
 * between any two batches.
 * Returns: how many batches there were since.
 */
size_t store_mem_crash(struct store *store, size_t kept);

/* Closes and frees. No batch, iterator or value of it may be in use. NULL is fine. */
void store_close(struct store *store);

/*
 * What the storage underneath said at the first fatal error, for the log of whoever ends the process.
 * Returns: NULL when there was none. Owns: the caller; mem_free.
 */
char *store_reason(struct store *store);

/*
 * Batches: what one command changes, written atomically. One batch may be cleared and used again.
 */
struct store_batch *store_batch_new(struct store *store);
void store_batch_free(struct store_batch *batch);
void store_batch_clear(struct store_batch *batch);
/* Writes land at the `ts` of store_batch_begin(), which must come first after new or clear. */
void store_batch_begin(struct store_batch *batch, tl_ts ts);
void store_batch_put(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
/* Puts a value without copying it: its bytes stay as they are until the batch is written, cleared or freed. */
void store_batch_put_nocopy(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
void store_batch_delete(struct store_batch *batch, enum store_space space, struct slice key);
/*
 * Deletes all keys within [lower, upper) that earlier batches have put, however many, for the price of one.
 * Requires: a space without history; lower is below upper. What the batch itself puts within comes after it, and stays.
 */
void store_batch_delete_range(struct store_batch *batch, enum store_space space, struct slice lower,
                              struct slice upper);
size_t store_batch_count(const struct store_batch *batch);
size_t store_batch_bytes(const struct store_batch *batch);
/* From now on a digest is kept of what changes, over store_batch_clear() too. Requires: the batch is empty. */
void store_batch_track_digest(struct store_batch *batch);
/* Returns: a hash of all that was put and deleted, in its order, and of the timestamp; the same of every store. Requires: watched. */
uint64_t store_batch_digest(const struct store_batch *batch);

/*
 * Applies a batch: visible to reads from now on, durable with the next checkpoint.
 *
 * Requires: the batch's timestamp is above that of every batch applied before.
 * Returns: 0, or TL_ERR_IO / TL_ERR_NO_SPACE with nothing applied.
 */
int store_write(struct store *store, struct store_batch *batch) TL_MUST_USE;

/*
 * Checkpoints; README.md has what they promise.
 *
 * store_checkpoint() begins one: all that was written so far, and `record`, are after a crash what the store is, as soon as they are on the
 * disk; until then it is what it was at the checkpoint before. What is written later is part of neither. It returns at once and the
 * rest is done beside the writer.
 * Requires: called as store_write(); the one before is on the disk.
 * Returns: 0; TL_ERR_IO, TL_ERR_NO_SPACE.
 *
 * A full disk is no error of such a store: RocksDB takes nothing until there is room, and store_write() and store_checkpoint() wait for that.
 */
int store_checkpoint(struct store *store, struct slice record) TL_MUST_USE;
/* Returns: 1 when the last one is on the disk, 0 not yet; fatal codes, after which there will be no further one. From any thread. */
int store_checkpointed(struct store *store) TL_MUST_USE;
/* Nobody waits for room on the disk any more: what would wait returns TL_ERR_NO_SPACE from now on. From any thread. */
void store_give_up(struct store *store);
/* Appends the record of the last one. Returns: 0; STORE_NOT_FOUND: there was none yet; fatal codes. */
int store_checkpoint_record(struct store *store, struct buf *ret_record) TL_MUST_USE;
/* Returns: about how many bytes in memory are part of none. From any thread. */
size_t store_uncheckpointed_bytes(const struct store *store);

/* A value read. `bytes` lives until store_value_release(). */
struct store_value {
    struct slice bytes;
    void *pin;                             /* NULL: nothing to release */
    void (*release)(struct store_value *); /* NULL: nothing to release */
};

static inline void store_value_release(struct store_value *value)
{
    if (value->release != NULL)
        value->release(value);
    *value = (struct store_value){SLICE_NONE, NULL, NULL};
}

/*
 * Reads one key as of `ts` (ignored in spaces without history).
 * Returns: 0, STORE_NOT_FOUND, STORE_TOO_OLD, TL_ERR_IO, TL_ERR_CORRUPT. Owns: the caller releases
 * *ret_value.
 */
int store_get(struct store *store, enum store_space space, tl_ts ts, struct slice key,
              struct store_value *ret_value) TL_MUST_USE;

/*
 * An iterator over the keys of a space as of `ts`, in byte order, within [lower, upper); an empty bound
 * is open. It starts nowhere: seek first. It sees what was written before it was made, and keeps it.
 * Owns: the caller; store_iter_free.
 */
struct store_iter *store_iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                  struct slice upper);
void store_iter_free(struct store_iter *iter);
void store_iter_seek_first(struct store_iter *iter);
void store_iter_seek_last(struct store_iter *iter);
/* To the first key at or after `key`. */
void store_iter_seek(struct store_iter *iter, struct slice key);
/* To the last key at or before `key`. */
void store_iter_seek_for_prev(struct store_iter *iter, struct slice key);
void store_iter_next(struct store_iter *iter);
void store_iter_prev(struct store_iter *iter);
bool store_iter_valid(const struct store_iter *iter);
/* Key and value of a valid position; they live until the iterator moves. */
struct slice store_iter_key(const struct store_iter *iter);
struct slice store_iter_value(const struct store_iter *iter);
/* Returns: 0, or why the iterator became invalid: STORE_TOO_OLD, TL_ERR_IO, TL_ERR_CORRUPT. */
int store_iter_status(const struct store_iter *iter) TL_MUST_USE;
/*
 * Visits the keys of a space as of `ts`, in byte order, within [lower, upper). What a visitor other than 0 returns ends the walk.
 * Returns: 0; what the visitor returned; as store_iter_status().
 */
typedef int store_visit(void *context, struct slice key, struct slice value);
int store_each(struct store *store, enum store_space space, tl_ts ts, struct slice lower, struct slice upper,
               store_visit *visit, void *context) TL_MUST_USE;

/*
 * Raises the history cut-off: reads below `ts` are refused from now on, and compaction may drop the
 * versions that only they could see. Never lowers it.
 */
int store_set_history_low(struct store *store, tl_ts ts) TL_MUST_USE;
tl_ts store_history_low(const struct store *store);

/*
 * Compacts what checkpoints have brought to the disk: what no read can see any more leaves it. Beside the writer on RocksDB,
 * where writes and compactions of its own go on, and it takes two seconds at least; not so on the twin in memory.
 */
int store_compact(struct store *store) TL_MUST_USE;
/* Ends store_compact() where it is, for good: it has done a part, or nothing, and returns 0. From any thread. */
void store_compact_cancel(struct store *store);

/* Reads every block, verifies its checksum, and looks every key up. Returns: 0, TL_ERR_CORRUPT, TL_ERR_IO. */
int store_verify(struct store *store, char **ret_reason) TL_MUST_USE;

/*
 * Makes `directory`, which is empty, a data directory with the store as of its newest checkpoint on the disk, durably: by links to the files that never
 * change, or copies where that is another file system. Writes go on beside it, and it flushes nothing. From any thread that may wait.
 * Requires: a checkpoint is on the disk. Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO, with *ret_reason (mem_free).
 */
int store_copy(struct store *store, const char *directory, char **ret_reason) TL_MUST_USE;

struct store_stats {
    uint64_t disk_bytes;   /* of data in files */
    uint64_t memory_bytes; /* cache and memtables */

    /* Of those: */
    uint64_t table_bytes; /* in the tables of the spaces */
    uint64_t table_count;
    uint64_t cache_bytes;
    uint64_t cache_bytes_max;
    uint64_t unflushed_bytes;   /* written, and in no table yet */
    uint64_t flushes_running;
    uint64_t compactions_running;
    uint64_t compaction_due_bytes; /* that compactions have yet to rewrite, estimated */
    uint64_t errors;               /* in the background, since it was opened */
    bool stopped;                  /* it takes no writes now, until flushes or compactions have come after */

    /* Since it was opened: */
    uint64_t flushes;
    uint64_t compactions;
};
void store_stats(struct store *store, struct store_stats *ret_stats);

/*
 * Bytes in files of the versions of keys within [lower, upper), as near as the files' indexes tell without reading them. What
 * was written and not flushed yet is in none. From any thread.
 */
uint64_t store_range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper);

/*
 * Bytes free on the file system of the data directory; UINT64_MAX for a store in memory. The writer refuses changes while this is below
 * STORE_RESERVE_BYTES (README.md, "A full disk").
 */
uint64_t store_free_bytes(const struct store *store);

/*
 * Returns: whether a store_write() would be taken: not while RocksDB has yet to get over a flush that met a full disk,
 * which takes it some seconds once there is room. May run on any thread.
 */
bool store_is_ready(struct store *store);
#define STORE_RESERVE_BYTES ((uint64_t)256 << 20)

#endif
