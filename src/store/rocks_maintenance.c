/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance of the store on RocksDB: history limit, verification, statistics. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "store/rocks_internal.h"

#include <stdio.h>

/*
 * History
 *
 * Each change of RocksDB's own history limit writes and syncs its manifest, once per family.
 * store.c refuses reads from the time its limit is raised. So RocksDB's may follow in steps: when a
 * sixteenth of the history, or a minute, can be dropped.
 */
enum { HISTORY_STEPS = 16 };

#define HISTORY_STEP_MAX (60 * TL_SECOND)

static int push_history_low(struct rocks_store *rocks, tl_ts low)
{
    REQUIRE(low >= rocks->pushed_low);
    char bytes[ROCKS_TS_BYTES];
    rocks_ts_encode(low, bytes);
    for (int space = 0; space < SPACE_COUNT; space++) {
        if (!store__space_is_versioned(space))
            continue;
        char *error = NULL;
        rocksdb_increase_full_history_ts_low(rocks->db, rocks->families[space], bytes, sizeof bytes, &error);
        if (error != NULL)
            return rocks__fail(rocks, error);
    }
    rocks->pushed_low = low;
    return 0;
}

int rocks__push_history_low(struct rocks_store *rocks, tl_ts step_min)
{
    int r = 0;
    pthread_mutex_lock(&rocks->history_lock);
    tl_ts low = atomic_load(&rocks->base.history_low);
    tl_ts most = atomic_load_explicit(&rocks->durable_ts, memory_order_relaxed);
    if (low > most)
        /*
         * After a crash the batches after the checkpoint are written again, which RocksDB permits
         * only above its limit.
         */
        low = most;
    if (low > rocks->pushed_low && low - rocks->pushed_low >= step_min)
        r = push_history_low(rocks, low);
    pthread_mutex_unlock(&rocks->history_lock);
    return r == TL_ERR_NO_SPACE ? 0 : r; /* a later call repeats it */
}

int rocks__history_low_raised(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    tl_ts newest = atomic_load_explicit(&rocks->newest_ts, memory_order_relaxed);
    tl_ts low = atomic_load(&store->history_low);
    tl_ts step = newest > low ? (newest - low) / HISTORY_STEPS : 0;
    return rocks__push_history_low(rocks, step < HISTORY_STEP_MAX ? step : HISTORY_STEP_MAX);
}

/*
 * Whether the limit may never have been set, although a new store sets it first: damage of the manifest may look like
 * a write that was torn, and RocksDB then opens the store as it was before. It has no checkpoint then, and no tables.
 */
static bool may_lack_history_low(struct rocks_store *rocks)
{
    uint64_t bytes = 0;
    return rocks__lacks_checkpoint(rocks) &&
           rocksdb_property_int_cf(rocks->db, rocks->families[SPACE_DOCUMENTS], "rocksdb.total-sst-files-size",
                                   &bytes) == 0 &&
           bytes == 0;
}

/* Sets the limit that is asked for, unless it is set: RocksDB refuses a lower one. */
static void set_lowest(struct rocks_store *rocks)
{
    char bytes[ROCKS_TS_BYTES], *error = NULL;
    rocks_ts_encode(TL_TS_NONE, bytes);
    rocksdb_increase_full_history_ts_low(rocks->db, rocks->families[SPACE_DOCUMENTS], bytes, sizeof bytes, &error);
    rocksdb_free(error);
}

/*
 * Loads the history limit from RocksDB. With assertions enabled, as in Debian's build, RocksDB
 * aborts when asked for a limit that was never set, so a new store sets it first.
 */
int rocks__load_history_low(struct rocks_store *rocks, bool read_only)
{
    if (rocks->dir.fresh)
        return push_history_low(rocks, TL_TS_NONE);
    bool may_lack = may_lack_history_low(rocks);
    if (may_lack && read_only)
        return 0;
    if (may_lack)
        set_lowest(rocks);
    char *error = NULL;
    size_t len = 0;
    char *bytes = rocksdb_get_full_history_ts_low(rocks->db, rocks->families[SPACE_DOCUMENTS], &len, &error);
    if (error != NULL)
        return rocks__fail(rocks, error);
    if (bytes != NULL && len == ROCKS_TS_BYTES)
        rocks->pushed_low = rocks_ts_decode(bytes);
    rocksdb_free(bytes);
    atomic_store(&rocks->base.history_low, rocks->pushed_low);
    return 0;
}

/* Verification */

/*
 * Reads all versions of a family, bypassing the cache, so that the checksum of every data block is
 * verified.
 */
static int verify_family(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, bool versioned,
                         char **ret_error)
{
    static const char oldest[ROCKS_TS_BYTES] = {0};
    if (family == NULL)
        return 0;
    char newest[ROCKS_TS_BYTES];
    rocks_ts_encode(UINT64_MAX, newest);
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    if (versioned) {
        rocksdb_readoptions_set_timestamp(options, newest, sizeof newest);
        rocksdb_readoptions_set_iter_start_ts(options, oldest, sizeof oldest);
    }
    rocksdb_iterator_t *iter = rocksdb_create_iterator_cf(rocks->db, options, family);
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    }
    rocksdb_iter_get_error(iter, ret_error);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    return *ret_error == NULL ? 0 : -1;
}

static int verify_key(struct store *store, enum store_space space, const struct store_iter *iter)
{
    REQUIRE(store_iter_valid(iter));
    struct store_value value;
    int r = store_get(store, space, TL_TS_MAX, store_iter_key(iter), &value);
    if (r != 0)
        return r < 0 ? tl_trace(r) : TL_ERR_CORRUPT;
    bool equal = slice_equal(value.bytes, store_iter_value(iter));
    store_value_release(&value);
    return equal ? 0 : TL_ERR_CORRUPT;
}

/* Looks up each key, which detects filters that hide a key. */
static int verify_lookups(struct store *store, enum store_space space)
{
    struct store_iter *iter = store_iter_new(store, space, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    int r = 0;
    for (store_iter_seek_first(iter); r == 0 && store_iter_valid(iter); store_iter_next(iter))
        r = verify_key(store, space, iter);
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    return r;
}

int rocks__verify(struct store *store, char **ret_reason)
{
    struct rocks_store *rocks = rocks_of(store);
    char *damage = NULL;
    if (verify_family(rocks, rocks->checkpoints, false, &damage) != 0 ||
        verify_family(rocks, rocks->records, false, &damage) != 0) {
        rocks__set_reason(ret_reason, "the records of checkpoints: %s", damage);
        return rocks__fail(rocks, damage);
    }
    for (int space = 0; space < SPACE_COUNT; space++) {
        const char *name = rocks->options.family_names[space];
        char *error = NULL;
        if (verify_family(rocks, rocks->families[space], store__space_is_versioned(space), &error) != 0) {
            rocks__set_reason(ret_reason, "%s: %s", name, error);
            return rocks__fail(rocks, error);
        }
        int r = rocks_options_space_is_filtered(space) ? verify_lookups(store, space) : 0;
        if (r != 0) {
            rocks__set_reason(ret_reason, "%s: a key that a scan finds cannot be read", name);
            return tl_trace(r);
        }
    }
    return 0;
}

/* Statistics */

uint64_t rocks__family_sum(struct rocks_store *rocks, const char *name)
{
    uint64_t sum = 0;
    for (int space = 0; space < SPACE_COUNT; space++) {
        uint64_t value = 0;
        if (rocks->families[space] != NULL &&
            rocksdb_property_int_cf(rocks->db, rocks->families[space], name, &value) == 0)
            sum += value;
    }
    return sum;
}

/* Returns: whether a line begins with a word; *ret_rest: the rest of the line. */
static bool line_begins(struct slice line, const char *word, struct slice *ret_rest)
{
    size_t at = 0, len = strlen(word);
    while (at < line.len && line.data[at] == ' ')
        at++;
    if (line.len < at + len || memcmp(line.data + at, word, len) != 0)
        return false;
    *ret_rest = slice_from_offset(line, at + len);
    return true;
}

/* Returns: the n-th word of a line from the right, 0 the last; empty: there are fewer words. */
static struct slice word_from_right(struct slice line, size_t n)
{
    for (size_t end = line.len;;) {
        while (end > 0 && line.data[end - 1] == ' ')
            end--;
        size_t at = end;
        while (at > 0 && line.data[at - 1] != ' ')
            at--;
        if (n-- == 0 || at == 0)
            return slice_make(line.data + at, n == SIZE_MAX ? end - at : 0);
        end = at;
    }
}

/* Returns: the index from the right of the column `name` in a table's header; SIZE_MAX: none. */
static size_t column_from_right(struct slice head, const char *name)
{
    for (size_t n = 0;; n++) {
        struct slice word = word_from_right(head, n);
        if (word.len == 0)
            return SIZE_MAX;
        if (slice_is(word, name))
            return n;
    }
}

/*
 * RocksDB's C interface reports its counts of flushes and compactions only in a text table. In its
 * column Comp(cnt) the row of level 0 counts flushes (including, rarely, compactions within level
 * 0), and the row Sum counts all. Values not found are not counted. Columns are counted from the
 * right, since sizes are two words.
 */
static void count_jobs(struct slice text, struct store_stats *stats)
{
    size_t column = SIZE_MAX;
    while (text.len > 0) {
        size_t len = slice_find_byte(text, '\n');
        struct slice line = slice_make(text.data, len), rest;
        uint64_t count;
        text = slice_from_offset(text, len + 1);
        if (line_begins(line, "Level ", &rest))
            column = column_from_right(rest, "Comp(cnt)");
        else if (column != SIZE_MAX && line_begins(line, "L0 ", &rest) &&
                 slice_to_u64(word_from_right(rest, column), &count)) {
            stats->flushes += count;
            stats->compactions -= count;
        } else if (column != SIZE_MAX && line_begins(line, "Sum ", &rest) &&
                   slice_to_u64(word_from_right(rest, column), &count))
            stats->compactions += count;
        else if (line_begins(line, "Int ", &rest))
            return;
    }
}

static void count_all_jobs(struct rocks_store *rocks, struct store_stats *stats)
{
    for (int space = 0; space < SPACE_COUNT; space++) {
        char *text = rocksdb_property_value_cf(rocks->db, rocks->families[space], "rocksdb.cfstats-no-file-histogram");
        if (text != NULL)
            count_jobs(slice_from(text), stats);
        rocksdb_free(text);
    }
}

static uint64_t db_property(struct rocks_store *rocks, const char *name)
{
    uint64_t value = 0;
    return rocksdb_property_int(rocks->db, name, &value) == 0 ? value : 0;
}

static uint64_t table_count(struct rocks_store *rocks)
{
    enum { LEVELS = 7 };
    uint64_t count = 0;
    for (int space = 0; space < SPACE_COUNT; space++)
        for (int level = 0; level < LEVELS; level++) {
            char name[48];
            uint64_t value;
            snprintf(name, sizeof name, "rocksdb.num-files-at-level%d", level);
            char *text = rocksdb_property_value_cf(rocks->db, rocks->families[space], name);
            if (text != NULL && slice_to_u64(slice_from(text), &value))
                count += value;
            rocksdb_free(text);
        }
    return count;
}

void rocks__stats(struct store *store, struct store_stats *ret_stats)
{
    struct rocks_store *rocks = rocks_of(store);
    ret_stats->disk_bytes = rocks->dir.rocks_path != NULL ? rocks_dir_disk_bytes(&rocks->dir)
                                                          : rocks__family_sum(rocks, "rocksdb.total-sst-files-size");
    ret_stats->memory_bytes = rocksdb_cache_get_usage(rocks->options.cache) +
                              rocks__family_sum(rocks, "rocksdb.size-all-mem-tables") +
                              rocks__family_sum(rocks, "rocksdb.estimate-table-readers-mem");
    ret_stats->table_bytes = rocks__family_sum(rocks, "rocksdb.total-sst-files-size");
    ret_stats->table_count = table_count(rocks);
    ret_stats->cache_bytes = rocksdb_cache_get_usage(rocks->options.cache);
    ret_stats->cache_bytes_max = rocksdb_cache_get_capacity(rocks->options.cache);
    ret_stats->unflushed_bytes = rocks__family_sum(rocks, "rocksdb.cur-size-all-mem-tables");
    ret_stats->flushes_running = db_property(rocks, "rocksdb.num-running-flushes");
    ret_stats->compactions_running = db_property(rocks, "rocksdb.num-running-compactions");
    ret_stats->compaction_due_bytes = rocks__family_sum(rocks, "rocksdb.estimate-pending-compaction-bytes");
    ret_stats->errors = db_property(rocks, "rocksdb.background-errors");
    ret_stats->stopped = db_property(rocks, "rocksdb.is-write-stopped") != 0;
    count_all_jobs(rocks, ret_stats);
}

uint64_t rocks__range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper)
{
    struct rocks_store *rocks = rocks_of(store);
    uint64_t bytes = 0;
    char *error = NULL;
    rocksdb_approximate_sizes_cf(rocks->db, rocks->families[space], 1, &lower.data, &lower.len, &upper.data, &upper.len,
                                 &bytes, &error);
    bool failed = error != NULL;
    rocksdb_free(error);
    return failed ? 0 : bytes;
}

uint64_t rocks__free_bytes(const struct store *store)
{
    return rocks_dir_free_bytes(&((const struct rocks_store *)store)->dir);
}

/*
 * Writes an empty batch: it changes nothing, and is refused while RocksDB has a background error.
 */
int rocks__readiness(struct rocks_store *rocks)
{
    char *error = NULL;
    rocksdb_writebatch_t *nothing = rocksdb_writebatch_create();
    rocksdb_write(rocks->db, rocks->write_options, nothing, &error);
    rocksdb_writebatch_destroy(nothing);
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

bool rocks__is_ready(struct store *store)
{
    return rocks__readiness(rocks_of(store)) == 0;
}
