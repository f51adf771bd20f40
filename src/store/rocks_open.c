/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening RocksDB, and the stores of older formats.
 *
 * Conversion. Up to format 2 RocksDB had a log of its own, which was what was durable. What it has RocksDB puts into files when it is opened, before it
 * is written to; from then on the store is what it is converted to, once FORMAT says so. After a power cut such a log may have holes that RocksDB steps over.
 * The versions that wrote it find them; this one takes only a log that ends where SYNCED says, as every end in order left it, and asks for the version
 * that wrote it where it does not. That is looked at read-only: nothing is changed before.
 */
#include "base/alloc.h"
#include "store/rocks_internal.h"

#include <stdio.h>

enum { ROOM_TO_OPEN = 4 << 20 }; /* bytes: a manifest, its options, the first lines of its log */

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
 * A store made before the feed was written has a family for it whose keys have timestamps, and lacks the one that it has now. Nothing ever lay in
 * the old one. RocksDB opens no store but with all its families, so it is opened along and dropped; a store that is only read keeps it, and
 * goes without the new one.
 */
static const char retired_family[] = "feed";

/* Whether a store has the retired family, and whether it has that of the feed. One that is not there yet has neither. */
static void look_at_families(const struct rocks_options *options, const char *path, bool *ret_retired, bool *ret_feed)
{
    size_t count = 0;
    char *error = NULL;
    char **names = rocksdb_list_column_families(options->database, path, &count, &error);
    *ret_retired = *ret_feed = false;
    for (size_t i = 0; error == NULL && i < count; i++) {
        *ret_retired |= strcmp(names[i], retired_family) == 0;
        *ret_feed |= strcmp(names[i], options->family_names[SPACE_FEED]) == 0;
    }
    rocksdb_list_column_families_destroy(names, count); /* there is a list, if of none, also with an error */
    rocksdb_free(error);                                /* of a failure opening tells */
}

static char *drop_retired(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, bool read_only)
{
    char *error = NULL;
    if (!read_only)
        rocksdb_drop_column_family(rocks->db, family, &error);
    rocksdb_column_family_handle_destroy(family);
    return error;
}

/* Returns: RocksDB's message, NULL when it is open. */
static char *try_open(struct rocks_store *rocks, bool read_only)
{
    const struct rocks_options *options = &rocks->options;
    const char *path = rocks->dir.rocks_path != NULL ? rocks->dir.rocks_path : "/memory";
    const rocksdb_options_t *families[ROCKS_FAMILIES_MAX + 1];
    const char *names[ROCKS_FAMILIES_MAX + 1];
    rocksdb_column_family_handle_t *opened[ROCKS_FAMILIES_MAX + 1] = {0};
    memcpy(families, options->families, sizeof options->families);
    memcpy(names, options->family_names, sizeof options->family_names);
    bool retired, feed;
    look_at_families(options, path, &retired, &feed);
    int count = options->family_count + retired;
    if (retired) {
        families[count - 1] = options->families[SPACE_CATALOG]; /* it had that order of keys */
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
    memcpy(rocks->families, opened, sizeof rocks->families);
    if (options->family_count == ROCKS_FAMILIES_MAX) {
        rocks->checkpoints = opened[ROCKS_CHECKPOINTS];
        rocks->records = opened[ROCKS_RECORDS];
    }
    if (retired && read_only && !feed) { /* nobody can read it as the feed, and there is nothing in it */
        rocksdb_column_family_handle_destroy(rocks->families[SPACE_FEED]);
        rocks->families[SPACE_FEED] = NULL;
        return NULL;
    }
    return retired ? drop_retired(rocks, opened[count - 1], read_only) : NULL;
}

int rocks__never_full(struct rocks_store *rocks)
{
    char bytes[24], filter[24];
    const char *const names[] = {"write_buffer_size", "memtable_prefix_bloom_size_ratio"};
    const char *const values[] = {bytes, filter};
    char *error = NULL;
    snprintf(bytes, sizeof bytes, "%zu", ROCKS_NEVER_FULL_BYTES);
    snprintf(filter, sizeof filter, "%.9f", rocks->options.memtable_filter);
    for (int space = 0; space < SPACE_COUNT && error == NULL; space++)
        rocksdb_set_options_cf(rocks->db, rocks->families[space],
                               rocks_options_space_is_filtered((enum store_space)space) ? 2 : 1, names, values, &error);
    if (error == NULL)
        rocksdb_set_options_cf(rocks->db, rocks->records, 1, names, values, &error);
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

static int fail_open(struct rocks_store *rocks, char *error, char **ret_reason)
{
    rocks__say(ret_reason, "%s", error);
    return rocks__fail(rocks, error);
}

static int open_database(struct rocks_store *rocks, bool read_only, char **ret_reason)
{
    char *error = try_open(rocks, read_only);
    /* A RocksDB built without LZ4 or ZSTD says so only now. */
    if (error != NULL && strstr(error, "is not linked with the binary") != NULL) {
        rocksdb_free(error);
        rocks_options_set_uncompressed(&rocks->options);
        error = try_open(rocks, read_only);
    }
    return error == NULL ? 0 : fail_open(rocks, error, ret_reason);
}

/* Whether all that the log of an older format has is known to have been synced, and nothing of it is missing. */
static int check_convertible(struct rocks_store *rocks, char **ret_reason)
{
    int families = rocks->options.family_count;
    rocks->options.family_count = SPACE_COUNT; /* it may have no more */
    int r = open_database(rocks, true, ret_reason);
    rocks->options.family_count = families;
    if (r < 0)
        return tl_trace(r);
    uint64_t found = rocksdb_get_latest_sequence_number(rocks->db), expected = rocks_dir_synced(&rocks->dir);
    rocks__close_database(rocks);
    if (found == expected)
        return 0;
    rocks__say(ret_reason,
               "%s is of format %u and was not closed in order: its log ends at change %llu, and was synced up to "
               "%llu; start the version that "
               "wrote it, end it in order, and start this one again",
               rocks->dir.path, rocks->dir.format, (unsigned long long)found, (unsigned long long)expected);
    return TL_ERR_VERSION;
}

/* RocksDB begins files of its own, and some of its versions abort where there is no room for the first line of them. */
static int check_room(const struct rocks_store *rocks, char **ret_reason)
{
    uint64_t free_bytes = rocks_dir_free_bytes(&rocks->dir);
    if (free_bytes >= ROOM_TO_OPEN)
        return 0;
    rocks__say(ret_reason, "the disk is full: %llu bytes are free, and to open the store takes %d; make room and start again",
               (unsigned long long)free_bytes, ROOM_TO_OPEN);
    return TL_ERR_NO_SPACE;
}

int rocks__open_database(struct rocks_store *rocks, bool read_only, char **ret_reason)
{
    if (!read_only && rocks->dir.rocks_path != NULL) {
        int room = check_room(rocks, ret_reason);
        if (room < 0)
            return room;
    }
    bool older = rocks->dir.rocks_path != NULL && !rocks->dir.fresh && rocks->dir.format < ROCKS_FORMAT;
    int r = older ? check_convertible(rocks, ret_reason) : 0;
    return r == 0 ? open_database(rocks, read_only, ret_reason) : tl_trace(r);
}
