/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens RocksDB, and converts stores of older formats.
 *
 * Conversion. Up to format 2 RocksDB's WAL was the durable log. Opening for writing makes RocksDB
 * flush the WAL's content into files; then FORMAT is updated. After a power failure such a WAL may
 * have gaps that RocksDB skips silently. The versions that wrote it detect gaps. This version only
 * accepts a WAL that ends where SYNCED says, as every clean shutdown left it; otherwise it refers
 * to the version that wrote it. Opening for writing also adds families, which the older version
 * does not know. So both this and whether the content can be read (store_options.check_older) are
 * checked with the store opened read-only: a directory that is refused is as it was.
 */
#include "base/alloc.h"
#include "base/check.h"
#include "store/rocks_internal.h"
#include "store/rocks_tables.h"

#include <stdio.h>

/* Bytes: for a manifest, an options file and the first lines of the info log. */
enum { OPEN_BYTES_MIN = 4 << 20 };

void rocks__close_database(struct rocks_store *rocks)
{
    for (int space = 0; space < SPACE_COUNT; space++)
        if (rocks->families[space] != NULL)
            rocksdb_column_family_handle_destroy(rocks->families[space]);
    memset(rocks->families, 0, sizeof rocks->families);
    if (rocks->checkpoints != NULL)
        rocksdb_column_family_handle_destroy(rocks->checkpoints);
    if (rocks->records != NULL)
        rocksdb_column_family_handle_destroy(rocks->records);
    rocks->checkpoints = rocks->records = NULL;
    if (rocks->db != NULL)
        rocksdb_close(rocks->db);
    rocks->db = NULL;
}

/*
 * A store made before the feed existed has a column family of that purpose with timestamped keys,
 * and lacks the current one. The old family was always empty. RocksDB opens a store only with all
 * of its families, so the old one is opened and dropped. A store opened read-only keeps it, and has
 * no feed.
 */
static const char retired_family[] = "feed";

/* The families that a store has of those that are not in all stores. */
struct found {
    bool any;     /* the store exists */
    bool retired; /* it has the retired family */
    bool feed;    /* it has the feed's */
};

static struct found detect_families(const struct rocks_options *options, const char *path)
{
    size_t count = 0;
    char *error = NULL;
    char **names = rocksdb_list_column_families(options->database, path, &count, &error);
    struct found found = {.any = error == NULL && count > 0};
    for (size_t i = 0; error == NULL && i < count; i++) {
        found.retired |= strcmp(names[i], retired_family) == 0;
        found.feed |= strcmp(names[i], options->family_names[SPACE_FEED]) == 0;
    }
    /* The list is valid, though empty, also after an error. */
    rocksdb_list_column_families_destroy(names, count);
    rocksdb_free(error); /* opening will report the error */
    return found;
}

static char *drop_retired(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, bool read_only)
{
    REQUIRE(rocks->db != NULL && family != NULL);
    char *error = NULL;
    if (!read_only)
        rocksdb_drop_column_family(rocks->db, family, &error);
    rocksdb_column_family_handle_destroy(family);
    return error;
}

/* Stores the handles of an open database, in the order of the options. */
static void take_families(struct rocks_store *rocks, rocksdb_column_family_handle_t *const *opened)
{
    memcpy(rocks->families, opened, sizeof rocks->families);
    if (rocks->options.family_count == ROCKS_FAMILIES_MAX) {
        rocks->checkpoints = opened[ROCKS_CHECKPOINTS];
        rocks->records = opened[ROCKS_RECORDS];
    }
}

/*
 * Creates a store: first with RocksDB's default family alone, then the other families with the
 * options that rocks__never_full() would give them, one by one. RocksDB writes, syncs and reads
 * back a file of all options at each change of a family's, so this saves a quarter of the start's time.
 * Returns: as try_open(); after an error the database is closed.
 */
static char *create_store(struct rocks_store *rocks, const char *path)
{
    struct rocks_options *options = &rocks->options;
    REQUIRE(options->family_count == ROCKS_FAMILIES_MAX);
    rocksdb_column_family_handle_t *opened[ROCKS_FAMILIES_MAX] = {0};
    char *error = NULL;
    const rocksdb_options_t *family = options->families[SPACE_SYSTEM];
    rocks->db = rocksdb_open_column_families(options->database, path, 1, &options->family_names[SPACE_SYSTEM], &family,
                                             &opened[SPACE_SYSTEM], &error);
    if (error != NULL) {
        rocks->db = NULL;
        return error;
    }
    for (int i = 0; i < ROCKS_FAMILIES_MAX && error == NULL; i++) {
        if (i == SPACE_SYSTEM)
            continue;
        rocksdb_options_t *final = rocks_options_never_full(options, i);
        opened[i] = rocksdb_create_column_family(rocks->db, final, options->family_names[i], &error);
        rocksdb_options_destroy(final);
    }
    take_families(rocks, opened);
    rocks->created = error == NULL;
    if (error != NULL)
        rocks__close_database(rocks);
    return error;
}

/* Returns: RocksDB's message; NULL: the store is open. */
static char *try_open(struct rocks_store *rocks, bool read_only)
{
    REQUIRE(rocks->db == NULL); /* else the open database is leaked, with its lock */
    const struct rocks_options *options = &rocks->options;
    const char *path = rocks->dir.rocks_path != NULL ? rocks->dir.rocks_path : "/memory";
    const rocksdb_options_t *families[ROCKS_FAMILIES_MAX + 1];
    const char *names[ROCKS_FAMILIES_MAX + 1];
    rocksdb_column_family_handle_t *opened[ROCKS_FAMILIES_MAX + 1] = {0};
    memcpy(families, options->families, sizeof options->families);
    memcpy(names, options->family_names, sizeof options->family_names);
    struct found found = detect_families(options, path);
    if (rocks->dir.fresh && !found.any && !read_only)
        return create_store(rocks, path);
    bool retired = found.retired, feed = found.feed;
    int count = options->family_count + retired;
    if (retired) {
        families[count - 1] = options->families[SPACE_CATALOG]; /* it has the same order of keys */
        names[count - 1] = retired_family;
    }
    if (retired && read_only && !feed) {
        families[SPACE_FEED] = families[count - 1];
        names[SPACE_FEED] = names[count - 1];
        count--;
    }
    char *error = NULL;
    if (read_only)
        rocks->db = rocksdb_open_for_read_only_column_families(options->database, path, count, names, families, opened,
                                                               0, &error);
    else
        rocks->db = rocksdb_open_column_families(options->database, path, count, names, families, opened, &error);
    if (error != NULL) {
        rocks->db = NULL;
        return error;
    }
    take_families(rocks, opened);
    if (retired && read_only && !feed) { /* it cannot be read as the feed, and is empty */
        rocksdb_column_family_handle_destroy(rocks->families[SPACE_FEED]);
        rocks->families[SPACE_FEED] = NULL;
        return NULL;
    }
    return retired ? drop_retired(rocks, opened[count - 1], read_only) : NULL;
}

/*
 * Compactions begin only now. When one ends, RocksDB 7.8 gives the memtable the limit that held when
 * the compaction began: one from before would make the memtable full at the limit of the opening.
 */
static char *widen_memtable(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, bool filtered)
{
    char bytes[24], filter[24];
    const char *const names[] = {"disable_auto_compactions", "write_buffer_size", "memtable_prefix_bloom_size_ratio"};
    const char *const values[] = {"false", bytes, filter};
    char *error = NULL;
    snprintf(bytes, sizeof bytes, "%zu", ROCKS_NEVER_FULL_BYTES);
    snprintf(filter, sizeof filter, "%.9f", rocks->options.memtable_filter);
    rocksdb_set_options_cf(rocks->db, family, filtered ? 3 : 2, names, values, &error);
    return error;
}

int rocks__never_full(struct rocks_store *rocks)
{
    REQUIRE(rocks->db != NULL && rocks->records != NULL);
    char *error = NULL;
    for (int space = 0; space < SPACE_COUNT && error == NULL; space++)
        if (!rocks->created || space == SPACE_SYSTEM)
            error =
                widen_memtable(rocks, rocks->families[space], rocks_options_space_is_filtered((enum store_space)space));
    if (error == NULL && !rocks->created)
        error = widen_memtable(rocks, rocks->records, false);
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

static int fail_open(struct rocks_store *rocks, char *error, char **ret_reason)
{
    REQUIRE(error != NULL);
    rocks__set_reason(ret_reason, "%s", error);
    return rocks__fail(rocks, error);
}

static int open_database(struct rocks_store *rocks, bool read_only, char **ret_reason)
{
    char *error = try_open(rocks, read_only);
    /* a RocksDB built without LZ4 or ZSTD fails only here */
    if (error != NULL && strstr(error, "is not linked with the binary") != NULL) {
        rocksdb_free(error);
        rocks_options_set_uncompressed(&rocks->options);
        error = try_open(rocks, read_only);
    }
    return error == NULL ? 0 : fail_open(rocks, error, ret_reason);
}

/* Checks that the WAL of an older format ends where it was last synced. */
static int check_synced(struct rocks_store *rocks, char **ret_reason)
{
    uint64_t found = rocksdb_get_latest_sequence_number(rocks->db), expected = rocks_dir_synced(&rocks->dir);
    if (found == expected)
        return 0;
    rocks__set_reason(
        ret_reason,
        "%s is of format %u and was not closed in order: its log ends at change %llu, and was synced up to %llu; "
        "start the version that wrote it, end it in order, and start this one again",
        rocks->dir.path, rocks->dir.format, (unsigned long long)found, (unsigned long long)expected);
    return TL_ERR_VERSION;
}

/* Checks that the content of an older format can be read. */
static int check_content(struct rocks_store *rocks, const struct store_options *settings, char **ret_reason)
{
    int r = rocks__load_history_low(rocks, true);
    if (r == 0 && settings->check_older != NULL)
        r = settings->check_older(&rocks->base, settings->check_context);
    if (r < 0)
        rocks__set_reason(ret_reason,
                          "%s is of format %u, and its content cannot be read, so it is not converted: start the "
                          "version that wrote it, or restore a backup; if it is of Debian 12, start this version on "
                          "it there once, since RocksDB 8 and newer do not read its log, of RocksDB 7",
                          rocks->dir.path, rocks->dir.format);
    return r;
}

/* Whether a directory of an older format can be converted. Changes nothing. */
static int check_convertible(struct rocks_store *rocks, const struct store_options *settings, char **ret_reason)
{
    int families = rocks->options.family_count;
    rocks->options.family_count = SPACE_COUNT; /* it has no further families */
    int r = open_database(rocks, true, ret_reason);
    rocks->options.family_count = families;
    if (r < 0)
        return tl_trace(r);
    r = check_synced(rocks, ret_reason);
    if (r == 0)
        r = check_content(rocks, settings, ret_reason);
    rocks__close_database(rocks);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Checks the free space: opening creates files, and some versions of RocksDB abort if their first
 * line does not fit.
 */
static int check_free_space(const struct rocks_store *rocks, char **ret_reason)
{
    uint64_t free_bytes = rocks_dir_free_bytes(&rocks->dir);
    if (free_bytes >= OPEN_BYTES_MIN)
        return 0;
    rocks__set_reason(
        ret_reason, "the disk is full: %llu bytes are free, and to open the store takes %d; make room and start again",
        (unsigned long long)free_bytes, OPEN_BYTES_MIN);
    return TL_ERR_NO_SPACE;
}

int rocks__open_database(struct rocks_store *rocks, const struct store_options *settings, char **ret_reason)
{
    bool read_only = settings->read_only;
    if (!read_only && rocks->dir.rocks_path != NULL) {
        int r = check_free_space(rocks, ret_reason);
        if (r < 0)
            return r;
    }
    if (rocks->dir.rocks_path != NULL && !rocks->dir.fresh) {
        int r = rocks_tables_check(rocks->dir.rocks_path, ret_reason);
        if (r < 0)
            return r;
    }
    bool older = rocks->dir.rocks_path != NULL && !rocks->dir.fresh && rocks->dir.format < ROCKS_FORMAT;
    int r = older ? check_convertible(rocks, settings, ret_reason) : 0;
    return r == 0 ? open_database(rocks, read_only, ret_reason) : tl_trace(r);
}
