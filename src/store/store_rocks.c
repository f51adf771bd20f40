/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RocksDB: open, write, single reads; see README.md.
 *
 * - A space is a column family. Versioned spaces use RocksDB's user-defined timestamps.
 * - store_write() inserts a batch into the memtables; checkpoints flush them (rocks_checkpoint.c).
 * - store_get() reads with options from a slot; an iterator has options of its own.
 *
 * An error of RocksDB becomes a code; the store keeps its text for the log (store_reason()).
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/magic.h"
#include "store/rocks_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void rocks__set_reason(char **ret_reason, const char *format, ...)
{
    if (ret_reason == NULL || *ret_reason != NULL)
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *ret_reason = mem_strdup(text, strlen(text));
}

/*
 * RocksDB's C interface has no codes, only a status text, which begins with the kind of the error.
 */
int rocks__code_of(const char *error)
{
    REQUIRE(error != NULL);
    if (strncmp(error, "Corruption", strlen("Corruption")) == 0)
        return TL_ERR_CORRUPT;
    if (strstr(error, "No space left on device") != NULL)
        return TL_ERR_NO_SPACE;
    return TL_ERR_IO;
}

int rocks__fail(struct rocks_store *rocks, char *error)
{
    REQUIRE(error != NULL);
    int code = rocks__code_of(error);
    pthread_mutex_lock(&rocks->reason_lock);
    rocks__set_reason(&rocks->reason, "%s", error);
    pthread_mutex_unlock(&rocks->reason_lock);
    rocksdb_free(error);
    return code;
}

static char *rocks_reason(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    char *copy = NULL;
    pthread_mutex_lock(&rocks->reason_lock);
    if (rocks->reason != NULL)
        rocks__set_reason(&copy, "%s", rocks->reason);
    pthread_mutex_unlock(&rocks->reason_lock);
    return copy;
}

/* Open and close */

static void rocks_close(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    rocks__close_database(rocks);
    for (int i = 0; i < ROCKS_READ_SLOTS; i++)
        rocksdb_readoptions_destroy(rocks->slots[i].options);
    rocksdb_readoptions_destroy(rocks->plain_read_options);
    rocksdb_writeoptions_destroy(rocks->write_options);
    rocks_options_deinit(&rocks->options);
    rocks_dir_close(&rocks->dir);
    pthread_mutex_destroy(&rocks->history_lock);
    pthread_mutex_destroy(&rocks->reason_lock);
    mem_free(rocks->reason);
    mem_free(rocks);
}

static rocksdb_readoptions_t *read_options_at(const char ts[ROCKS_TS_BYTES])
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_timestamp(options, ts, ROCKS_TS_BYTES);
    return options;
}

static struct rocks_store *rocks_new(const struct store_ops *ops)
{
    struct rocks_store *rocks = mem_zalloc(sizeof *rocks);
    rocks->base.magic = STORE_MAGIC;
    rocks->base.ops = ops;
    rocks->dir = ROCKS_DIR_NONE;
    rocks->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(rocks->write_options, 1);
    rocks->plain_read_options = rocksdb_readoptions_create();
    for (int i = 0; i < ROCKS_READ_SLOTS; i++)
        rocks->slots[i].options = read_options_at(rocks->slots[i].ts);
    pthread_mutex_init(&rocks->history_lock, NULL);
    pthread_mutex_init(&rocks->reason_lock, NULL);
    return rocks;
}

/* Writing */

/*
 * RocksDB accepts nothing until it has recovered from a full disk, and a refused batch had no
 * effect, so it can be retried. Its recovery flushes everything in memory, which is not the state
 * of a checkpoint. So the counter is raised to make the next checkpoint due at once.
 */
int rocks__put(struct rocks_store *rocks, rocksdb_writebatch_t *batch)
{
    REQUIRE(rocks->db != NULL && batch != NULL);
    enum { WAIT_US = 50 * 1000 };
    for (bool waited = false;; waited = true) {
        char *error = NULL;
        rocksdb_write(rocks->db, rocks->write_options, batch, &error);
        if (error == NULL && waited)
            atomic_fetch_add_explicit(&rocks->uncheckpointed_bytes, SIZE_MAX / 4, memory_order_relaxed);
        if (error == NULL)
            return 0;
        int r = rocks__fail(rocks, error);
        if (r != TL_ERR_NO_SPACE || atomic_load(&rocks->given_up))
            return tl_trace(r);
        usleep(WAIT_US);
    }
}

static void rocks_give_up(struct store *store)
{
    atomic_store(&rocks_of(store)->given_up, true);
}

static int rocks_write(struct store *store, struct store_batch *batch)
{
    struct rocks_store *rocks = rocks_of(store);
    rocksdb_writebatch_t *part;
    rocks__quiet();
    rocks__batch_sort(batch);
    while ((part = rocks__batch_next(batch)) != NULL) {
        size_t bytes;
        rocksdb_writebatch_data(part, &bytes);
        atomic_fetch_add_explicit(&rocks->uncheckpointed_bytes, bytes, memory_order_relaxed);
        int r = rocks__put(rocks, part);
        if (r < 0)
            return tl_trace(r);
    }
    atomic_store_explicit(&rocks->newest_ts, batch->ts, memory_order_relaxed);
    return 0;
}

/* Single reads */

/*
 * Takes a free slot. Each thread starts its search at a place derived from its stack's address, so
 * threads rarely contend.
 * Returns: NULL: all slots are taken.
 */
static struct rocks_read_slot *slot_take(struct rocks_store *rocks)
{
    char here;
    size_t start = (size_t)(((uintptr_t)&here >> 16) * 0x9e3779b97f4a7c15u >> 32);
    for (size_t i = 0; i < ROCKS_READ_SLOTS; i++) {
        struct rocks_read_slot *slot = &rocks->slots[(start + i) % ROCKS_READ_SLOTS];
        if (!atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire))
            return slot;
    }
    return NULL;
}

/*
 * Decides whether this read puts fetched blocks into the cache: one in eight does. Frequently read
 * blocks get there anyway. Blocks read once no longer pass through 64 MiB of memory, evicting
 * others, but stay within a few KiB that are in the processor's cache. The choice is random,
 * because requests read in patterns.
 */
static bool fills_cache(struct rocks_read_slot *slot)
{
    enum { FILL_BITS = 3 };
    slot->draw = slot->draw * 1664525 + 1013904223;
    return slot->draw >> (32 - FILL_BITS) == 0;
}

static rocksdb_pinnableslice_t *get_at(struct rocks_store *rocks, enum store_space space, tl_ts ts, struct slice key,
                                       char **ret_error)
{
    struct rocks_read_slot *slot = slot_take(rocks);
    if (slot != NULL) {
        rocks_ts_encode(ts, slot->ts);
        rocksdb_readoptions_set_fill_cache(slot->options, fills_cache(slot));
        rocksdb_pinnableslice_t *pinned =
            rocksdb_get_pinned_cf(rocks->db, slot->options, rocks->families[space], key.data, key.len, ret_error);
        atomic_store_explicit(&slot->taken, false, memory_order_release);
        return pinned;
    }
    char bytes[ROCKS_TS_BYTES];
    rocks_ts_encode(ts, bytes);
    rocksdb_readoptions_t *options = read_options_at(bytes);
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned_cf(rocks->db, options, rocks->families[space], key.data, key.len, ret_error);
    rocksdb_readoptions_destroy(options);
    return pinned;
}

static void value_release(struct store_value *value)
{
    rocksdb_pinnableslice_destroy(value->pin);
}

static int rocks_get(struct store *store, enum store_space space, tl_ts ts, struct slice key,
                     struct store_value *ret_value)
{
    struct rocks_store *rocks = rocks_of(store);
    char *error = NULL;
    rocks__quiet();
    rocksdb_pinnableslice_t *pinned = store__space_is_versioned(space)
                                          ? get_at(rocks, space, ts, key, &error)
                                          : rocksdb_get_pinned_cf(rocks->db, rocks->plain_read_options,
                                                                  rocks->families[space], key.data, key.len, &error);
    if (error != NULL)
        return rocks__fail(rocks, error);
    if (pinned == NULL)
        return STORE_NOT_FOUND;
    *ret_value = (struct store_value){SLICE_NONE, pinned, value_release};
    ret_value->bytes.data = rocksdb_pinnableslice_value(pinned, &ret_value->bytes.len);
    return 0;
}

static const struct store_ops rocks_ops = {
    .close = rocks_close,
    .reason = rocks_reason,
    .batch_new = rocks__batch_new,
    .batch_free = rocks__batch_free,
    .batch_clear = rocks__batch_clear,
    .batch_put = rocks__batch_put,
    .batch_put_nocopy = rocks__batch_put_nocopy,
    .batch_put_stamped = rocks__batch_put_stamped,
    .batch_delete = rocks__batch_delete,
    .batch_delete_range = rocks__batch_delete_range,
    .write = rocks_write,
    .checkpoint = rocks__checkpoint,
    .checkpointed = rocks__checkpointed,
    .checkpoint_record = rocks__checkpoint_record,
    .put_piece = rocks__put_piece,
    .delete_pieces = rocks__delete_pieces,
    .get_piece = rocks__get_piece,
    .count_pieces = rocks__count_pieces,
    .uncheckpointed_bytes = rocks__uncheckpointed_bytes,
    .give_up = rocks_give_up,
    .get = rocks_get,
    .iter_new = rocks__iter_new,
    .iter_free = rocks__iter_free,
    .iter_seek_first = rocks__iter_seek_first,
    .iter_seek_last = rocks__iter_seek_last,
    .iter_seek = rocks__iter_seek,
    .iter_seek_for_prev = rocks__iter_seek_for_prev,
    .iter_next = rocks__iter_next,
    .iter_prev = rocks__iter_prev,
    .history_low_raised = rocks__history_low_raised,
    .copy = rocks__copy,
    .compact = rocks__compact,
    .compact_cancel = rocks__compact_cancel,
    .verify = rocks__verify,
    .stats = rocks__stats,
    .range_bytes = rocks__range_bytes,
    .free_bytes = rocks__free_bytes,
    .is_ready = rocks__is_ready,
};

static int open_all(struct rocks_store *rocks, const struct store_options *settings, char **ret_reason)
{
    int r = 0;
    rocks__quiet();
    if (!settings->in_memory)
        r = rocks_dir_open(settings->directory, settings->read_only, &rocks->dir, ret_reason);
    else
        rocks->dir.fresh = true;
    if (r < 0)
        return tl_trace(r);
    rocks_options_init(&rocks->options, settings);
    rocks->part_bytes = settings->part_bytes > 0 ? settings->part_bytes : ROCKS_PART_BYTES;
    r = rocks__open_database(rocks, settings, ret_reason);
    if (r == 0 && !settings->read_only)
        r = rocks__never_full(rocks);
    if (r == 0)
        r = rocks__load_history_low(rocks, settings->read_only);
    if (r == 0 && !settings->in_memory)
        r = rocks_dir_finish(&rocks->dir, ret_reason);
    return r;
}

int store_open_rocks(const struct store_options *settings, struct store **ret_store, char **ret_reason)
{
    if (ret_reason != NULL)
        *ret_reason = NULL;
    struct rocks_store *rocks = rocks_new(&rocks_ops);
    int r = open_all(rocks, settings, ret_reason);
    if (r < 0) {
        rocks_close(&rocks->base);
        return tl_trace(r);
    }
    *ret_store = &rocks->base;
    return 0;
}
