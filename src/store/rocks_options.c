/* SPDX-License-Identifier: Apache-2.0 */
/* RocksDB's options with their reasons; see rocks_options.h. */
#include "store/rocks_options.h"

#include "base/check.h"
#include "store/store_internal.h"

#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define FILTER_PART 0.01 /* of a memtable */

enum { CACHE_BYTES_DEFAULT = 64 << 20, WRITE_BUFFER_BYTES_DEFAULT = 64 << 20 };

/* Options that differ between spaces. */
struct profile {
    const char *family;
    size_t block_bytes;
    bool filter;    /* a Bloom filter, for lookups of single keys that often do not exist */
    int last_level; /* compression of the last level, which has nine tenths of the data */
};

/*
 * SPACE_SYSTEM is RocksDB's default family, which always exists. It has no timestamps, nor has
 * SPACE_FEED, whose keys are timestamps.
 *
 * Documents, the tree and the system are read by key. A read that misses the cache decompresses a
 * whole block: hence small blocks and LZ4. With 1,000,000 documents and a cache of 64 MiB a get
 * takes 7.5 us of processor time. With ZSTD it takes 14 us for a file of two thirds the size (12 us
 * with blocks of 2 KiB; a dictionary of 8 KiB costs another 4 us). Entries and the feed are read by
 * range: larger blocks and ZSTD, which makes entries a third smaller than LZ4.
 */
static const struct profile profiles[SPACE_COUNT] = {
    [SPACE_DOCUMENTS] = {"documents", 4 * KIB, true, rocksdb_lz4_compression},
    [SPACE_ENTRIES] = {"entries", 8 * KIB, false, rocksdb_zstd_compression},
    [SPACE_TREE] = {"tree", 4 * KIB, true, rocksdb_lz4_compression},
    [SPACE_CATALOG] = {"catalog", 4 * KIB, false, rocksdb_lz4_compression},
    /* the name "feed" is retired (rocks_open.c) */
    [SPACE_FEED] = {"changes", 16 * KIB, false, rocksdb_zstd_compression},
    [SPACE_SYSTEM] = {"default", 4 * KIB, true, rocksdb_lz4_compression},
};

/* The order of keys */

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return slice_compare(slice_make(a, a_len), slice_make(b, b_len));
}

static int compare_ts(void *state, const char *a, size_t a_len, const char *b, size_t b_len)
{
    (void)state;
    (void)a_len;
    (void)b_len;
    tl_ts a_ts = rocks_ts_decode(a), b_ts = rocks_ts_decode(b);
    return (a_ts > b_ts) - (a_ts < b_ts);
}

static int compare_without_ts(void *state, const char *a, size_t a_len, unsigned char a_has_ts, const char *b,
                              size_t b_len, unsigned char b_has_ts)
{
    (void)state;
    return compare_bytes(a, a_len - (a_has_ts ? ROCKS_TS_BYTES : 0), b, b_len - (b_has_ts ? ROCKS_TS_BYTES : 0));
}

/* RocksDB requires the newer version of a key first. */
static int compare_timestamps(void *state, const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t a_key = a_len - ROCKS_TS_BYTES, b_key = b_len - ROCKS_TS_BYTES;
    int order = compare_bytes(a, a_key, b, b_key);
    return order != 0 ? order : -compare_ts(state, a + a_key, ROCKS_TS_BYTES, b + b_key, ROCKS_TS_BYTES);
}

/* Order, encoding and name of RocksDB's own comparator, so that its tools can read the files. */
static const char *comparator_name(void *state)
{
    (void)state;
    return "leveldb.BytewiseComparator.u64ts";
}

static void no_destructor(void *state)
{
    (void)state;
}

/* Building */

/* Upper levels are rewritten often; LZ4 costs little. */
static void set_compression(rocksdb_options_t *options, const struct profile *profile)
{
    /*
     * ZSTD's lowest level: RocksDB's default, 3, takes twice the time and saves nothing on this
     * data.
     */
    enum { WINDOW_BITS = -14, ZSTD_LEVEL = 1 };
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(options, profile->last_level);
    if (profile->last_level == rocksdb_zstd_compression)
        rocksdb_options_set_bottommost_compression_options(options, WINDOW_BITS, ZSTD_LEVEL, 0, 0, 1);
}

/* Returns: the expected size of the memtables. */
static size_t table_bytes(const struct store_options *settings)
{
    return (settings->write_buffer_bytes ? settings->write_buffer_bytes : WRITE_BUFFER_BYTES_DEFAULT) / 2;
}

/*
 * The newest format that RocksDB 7.8 reads: 9.10 would write 6, so that a data directory, a backup or a checkpoint of
 * Debian 13 could not be opened on Debian 12. rocks_tables_check() knows the formats up to it, too.
 */
enum { TABLE_FORMAT = 5 };

/* Of the families without a profile, which share the table factory. */
static void set_default_table(rocksdb_options_t *options)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_format_version(table, TABLE_FORMAT);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

static void set_table(rocksdb_options_t *options, const struct profile *profile, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_format_version(table, TABLE_FORMAT);
    rocksdb_block_based_options_set_block_size(table, profile->block_bytes);
    rocksdb_block_based_options_set_block_cache(table, cache);
    /*
     * Indexes and filters are in the block cache too, partitioned. pin_parts() keeps those of open
     * files there, so that memory is bounded by the number of open files, independent of the amount
     * of data.
     */
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_index_type(table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_metadata_block_size(table, 4 * KIB);
    if (profile->filter) {
        rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
        rocksdb_block_based_options_set_partition_filters(table, 1);
        rocksdb_block_based_options_set_whole_key_filtering(table, 1);
    }
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

/*
 * Pins the indexes and filters of open files in the cache: 5 bytes per document, 400 KiB per file.
 * A get needs two to five partitions, and looking each up in the cache cost more than searching it.
 * The C interface has no function for this, only RocksDB's option strings.
 */
static rocksdb_options_t *pin_parts(rocksdb_options_t *family)
{
    rocksdb_options_t *pinned = rocksdb_options_create();
    char *error = NULL;
    rocksdb_get_options_from_string(
        family, "block_based_table_factory={metadata_cache_options={partition_pinning=kAll;};}", pinned, &error);
    INSIST(error == NULL);
    rocksdb_options_destroy(family);
    return pinned;
}

static void set_durability(rocksdb_options_t *options)
{
    /* for the WAL of an older format (rocks_open.c, "Conversion"); format 3 has no WAL */
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_tolerate_corrupted_tail_records_recovery);
    rocksdb_options_set_paranoid_checks(options, 1);
    /* memtables are flushed at checkpoints only, of all families together */
    rocksdb_options_set_atomic_flush(options, 1);
}

/* The C interface has no function for this option. */
static rocksdb_options_t *set_no_flush_at_close(rocksdb_options_t *options)
{
    rocksdb_options_t *silent = rocksdb_options_create();
    char *error = NULL;
    rocksdb_get_options_from_string(options, "avoid_flush_during_shutdown=true;", silent, &error);
    INSIST(error == NULL);
    rocksdb_options_destroy(options);
    return silent;
}

static void set_memory(rocksdb_options_t *options)
{
    /*
     * no memtable is full before its checkpoint; the store's owner limits their size
     * (store_uncheckpointed_bytes())
     */
    rocksdb_options_set_db_write_buffer_size(options, 0);
    rocksdb_options_set_write_buffer_size(options, ROCKS_OPENING_TABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, 4);
    /* enough for the files of 10,000,000 documents; their memory is in the cache */
    rocksdb_options_set_max_open_files(options, 256);
}

static void set_background(rocksdb_options_t *options)
{
    /*
     * One flush and one compaction at a time, at normal priority. At a lower one a bulk load ends
     * sooner (14 s instead of 20 for 1,000,000 documents on two busy cores). But the compactions
     * left over then take long. Until they are done a get takes 9 us longer, and a term query five
     * times as long.
     */
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_target_file_size_base(options, 32 * MIB);
    /*
     * One million documents then fit into one level, ten million into two. Each level rewrites a
     * change once more, and must be searched. Compactions take 9.4 us of a put at a random id
     * instead of 16 with 128 MiB. A trigger of six level 0 files would save 1.2 us more, but a get
     * would take 2 us longer, and a term query an eighth longer.
     */
    rocksdb_options_set_max_bytes_for_level_base(options, 512 * MIB);
    /*
     * write files to the disk gradually, so that a sync of the command log does not wait for a
     * burst
     */
    rocksdb_options_set_bytes_per_sync(options, 1 * MIB);
    /* there is one writer, so no memtable with concurrent inserts */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    /* until rocks__never_full(); but see add_checkpoints() */
    rocksdb_options_set_disable_auto_compactions(options, 1);
}

static void set_log(rocksdb_options_t *options)
{
#ifdef ROCKS_LOG_OUTLIVES_ERRORS
    enum { LEVEL_WARN = 2 };
    rocksdb_options_set_info_log_level(options, LEVEL_WARN);
#else /* no messages after opening, so that none can fail (README.md, "A full disk") */
    enum { LEVEL_FATAL = 4 };
    rocksdb_options_set_info_log_level(options, LEVEL_FATAL);
#endif
    rocksdb_options_set_keep_log_file_num(options, 4);
    rocksdb_options_set_max_log_file_size(options, 1 * MIB);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
}

static rocksdb_options_t *database_options(const struct rocks_options *options, const struct store_options *settings)
{
    rocksdb_options_t *database = rocksdb_options_create();
    rocksdb_options_set_env(database, options->env);
    rocksdb_options_set_create_if_missing(database, !settings->read_only);
    rocksdb_options_set_create_missing_column_families(database, !settings->read_only);
    set_durability(database);
    set_memory(database);
    set_background(database);
    set_default_table(database);
    set_log(database);
    return set_no_flush_at_close(database);
}

/*
 * Adds the families of checkpoints; a checkpoint fills the first one's memtable
 * (rocks_checkpoint.c).
 */
static void add_checkpoints(struct rocks_options *options)
{
    for (int i = ROCKS_CHECKPOINTS; i < ROCKS_FAMILIES_MAX; i++) {
        options->families[i] = rocksdb_options_create_copy(options->database);
        rocksdb_options_set_compression(options->families[i], rocksdb_no_compression);
    }
    /* This family's memtable keeps its size, so its compactions need not wait. */
    rocksdb_options_set_write_buffer_size(options->families[ROCKS_CHECKPOINTS], ROCKS_CHECKPOINT_TABLE_BYTES);
    rocksdb_options_set_disable_auto_compactions(options->families[ROCKS_CHECKPOINTS], 0);
    options->family_names[ROCKS_CHECKPOINTS] = "checkpoints";
    options->family_names[ROCKS_RECORDS] = "records";
    options->family_count = ROCKS_FAMILIES_MAX;
}

void rocks_options_init(struct rocks_options *ret_options, const struct store_options *settings)
{
    ret_options->env = settings->in_memory ? rocksdb_create_mem_env() : rocksdb_create_default_env();
    ret_options->cache = rocksdb_cache_create_lru(settings->cache_bytes ? settings->cache_bytes : CACHE_BYTES_DEFAULT);
    ret_options->versioned = rocksdb_comparator_with_ts_create(NULL, no_destructor, compare_timestamps, compare_ts,
                                                               compare_without_ts, comparator_name, ROCKS_TS_BYTES);
    ret_options->database = database_options(ret_options, settings);
    for (int space = 0; space < SPACE_COUNT; space++) {
        INSIST(profiles[space].family != NULL && profiles[space].block_bytes > 0); /* a new space needs a row */
        rocksdb_options_t *family = rocksdb_options_create_copy(ret_options->database);
        set_table(family, &profiles[space], ret_options->cache);
        set_compression(family, &profiles[space]);
        if (profiles[space].filter)
            /* Its size is set by rocks__never_full(). */
            rocksdb_options_set_memtable_whole_key_filtering(family, 1);
        if (store__space_is_versioned((enum store_space)space))
            rocksdb_options_set_comparator(family, ret_options->versioned);
        ret_options->families[space] = pin_parts(family);
        ret_options->family_names[space] = profiles[space].family;
    }
    /*
     * A lookup of a single key first searches the memtable, which rarely has it: 3 us of a put's 70
     * (RocksDB 7.8). A filter of a hundredth of the memtable's expected size avoids that. RocksDB
     * sizes it as a fraction of the maximum size, which is never reached.
     */
    ret_options->memtable_filter = FILTER_PART * (double)table_bytes(settings) / (double)ROCKS_NEVER_FULL_BYTES;
    add_checkpoints(ret_options);
}

rocksdb_options_t *rocks_options_never_full(const struct rocks_options *options, int family)
{
    REQUIRE(family >= 0 && family < options->family_count);
    rocksdb_options_t *wide = rocksdb_options_create_copy(options->families[family]);
    if (family != ROCKS_CHECKPOINTS)
        rocksdb_options_set_write_buffer_size(wide, ROCKS_NEVER_FULL_BYTES);
    rocksdb_options_set_disable_auto_compactions(wide, 0);
    if (family < SPACE_COUNT && profiles[family].filter)
        rocksdb_options_set_memtable_prefix_bloom_size_ratio(wide, options->memtable_filter);
    return wide;
}

bool rocks_options_space_is_filtered(enum store_space space)
{
    REQUIRE(space >= 0 && space < SPACE_COUNT);
    return profiles[space].filter;
}

void rocks_options_set_uncompressed(struct rocks_options *options)
{
    for (int space = 0; space < SPACE_COUNT; space++) {
        rocksdb_options_set_compression(options->families[space], rocksdb_no_compression);
        rocksdb_options_set_bottommost_compression(options->families[space], rocksdb_no_compression);
    }
}

void rocks_options_deinit(struct rocks_options *options)
{
    if (options->database == NULL)
        return;
    for (int family = 0; family < options->family_count; family++)
        rocksdb_options_destroy(options->families[family]);
    rocksdb_options_destroy(options->database);
    rocksdb_comparator_destroy(options->versioned);
    rocksdb_cache_destroy(options->cache);
    rocksdb_env_destroy(options->env);
    *options = (struct rocks_options){0};
}
