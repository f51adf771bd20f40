/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RocksDB where it differs from the in-memory store: the data directory, reopening,
 * damage, exhausted slots. tests/sim/store_diff.c tests that their results are equal.
 */
#include "../../lib/rocks_fixture.h"
#include "../../lib/settle.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "store/rocks_options.h"
#include "store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Asserts that opening fails with this code, and that the reason contains a word. */
static void assert_refused(struct fixture *f, bool read_only, int code, const char *word)
{
    char *reason = NULL;
    assert_int_equal(try_open(f, read_only, &reason), code);
    assert_non_null(reason);
    if (strstr(reason, word) == NULL)
        fail_msg("the reason '%s' does not hold '%s'", reason, word);
    mem_free(reason);
}

static void write_text(const struct fixture *f, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Writes `count` keys k0, k1, ... in one batch each, into a versioned space and SPACE_SYSTEM. */
static void write_keys(struct fixture *f, tl_ts first, int count)
{
    struct store_batch *batch = store_batch_new(f->store);
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        store_batch_clear(batch);
        store_batch_begin(batch, first + (tl_ts)i);
        store_batch_put(batch, SPACE_DOCUMENTS, slice_from(key), slice_from("a value to be found again"));
        store_batch_put(batch, SPACE_SYSTEM, slice_from("last"), slice_from(key));
        assert_int_equal(store_write(f->store, batch), 0);
    }
    store_batch_free(batch);
}

static size_t count_keys(struct fixture *f, enum store_space space)
{
    size_t count = 0;
    struct store_iter *iter = store_iter_new(f->store, space, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        count++;
    assert_int_equal(store_iter_status(iter), 0);
    store_iter_free(iter);
    return count;
}

/*
 * Goal: one process at a time opens a directory; a second one, even a read-only check, gets the
 * reason.
 */
static void test_rocks_directory_is_locked_exclusively(void **state)
{
    struct fixture *f = *state;
    must_open(f, false);
    struct fixture second = *f;
    second.store = NULL;
    assert_refused(&second, false, TL_ERR_BUSY, "in use");
    assert_refused(&second, true, TL_ERR_BUSY, f->directory);
    must_open(f, false);
}

/*
 * Goal: unknown or unreadable formats and directories of other programs are refused and not
 * changed.
 */
static void test_rocks_refuses_foreign_directories(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, true, TL_ERR_IO, "not a data directory");
    must_open(f, false);
    store_close(f->store);
    f->store = NULL;
    write_text(f, "FORMAT", "tidelock 4\n");
    assert_refused(f, false, TL_ERR_VERSION, "format 4");
    write_text(f, "FORMAT", "tidelock x\n");
    assert_refused(f, false, TL_ERR_CORRUPT, "FORMAT");
    write_text(f, "FORMAT", "");
    assert_refused(f, false, TL_ERR_CORRUPT, "FORMAT");
    write_text(f, "FORMAT", "tidelock 3\n");
    must_open(f, false);
    struct fixture other;
    strcpy(other.directory, "/proc/self");
    other.store = NULL;
    assert_refused(&other, false, TL_ERR_IO, "not a data directory");
    strcpy(other.directory, "/nonexistent/parent/data");
    assert_refused(&other, false, TL_ERR_IO, "/nonexistent/parent/data");
}

/*
 * Goal: after reopening, the checkpoint's data, its history and the history limit are there, also
 * when opened read-only.
 */
static void test_rocks_reopening_keeps_checkpoint(void **state)
{
    struct fixture *f = *state;
    must_open(f, false);
    write_keys(f, 100, 50);
    write_keys(f, 200, 60);
    settle(f->store);
    assert_int_equal(store_set_history_low(f->store, 120), 0);
    assert_int_equal(store_compact(f->store), 0);
    write_keys(f, 300, 70);
    settle(f->store);
    for (int read_only = 0; read_only < 2; read_only++) {
        must_open(f, read_only);
        assert_int_equal(store_history_low(f->store), 120);
        assert_int_equal(count_keys(f, SPACE_DOCUMENTS), 70);
        assert_int_equal(count_keys(f, SPACE_SYSTEM), 1);
        struct store_value value;
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, 119, SLICE_LIT("k1"), &value), STORE_TOO_OLD);
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, 150, SLICE_LIT("k55"), &value), STORE_NOT_FOUND);
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, 150, SLICE_LIT("k49"), &value), 0);
        store_value_release(&value);
        assert_int_equal(store_verify(f->store, NULL), 0);
        struct store_stats stats;
        store_stats(f->store, &stats);
        assert_true(stats.disk_bytes > 0 && stats.memory_bytes > 0);
    }
    struct store_batch *batch = store_batch_new(f->store);
    store_batch_begin(batch, 1000);
    store_batch_put(batch, SPACE_TREE, SLICE_LIT("k"), SLICE_LIT("v"));
    assert_true(store_write(f->store, batch) < 0);
    char *reason = store_reason(f->store);
    assert_non_null(reason);
    mem_free(reason);
    store_batch_free(batch);
}

/* Finds the largest of RocksDB's files with this suffix. */
static void find_file(const struct fixture *f, const char *ending, char ret_path[512])
{
    char directory[128];
    snprintf(directory, sizeof directory, "%s/rocks", f->directory);
    DIR *listing = opendir(directory);
    off_t largest = -1;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        size_t len = strlen(entry->d_name);
        char path[512];
        struct stat status;
        if (len < strlen(ending) || strcmp(entry->d_name + len - strlen(ending), ending) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (stat(path, &status) == 0 && status.st_size > largest) {
            largest = status.st_size;
            strcpy(ret_path, path);
        }
    }
    closedir(listing);
    assert_true(largest > 0);
}

static void damage_file(const char *path, off_t offset)
{
    int fd = open(path, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte = (char)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

/* Goal: verification and reads report a flipped bit of stored data as an error. */
static void test_rocks_reports_damaged_data(void **state)
{
    enum { MANY = 10000 }; /* so that the largest file is one of documents */
    struct fixture *f = *state;
    must_open(f, false);
    write_keys(f, 100, MANY);
    settle(f->store);
    store_close(f->store);
    f->store = NULL;
    char path[512];
    find_file(f, ".sst", path);
    damage_file(path, 1000);
    must_open(f, true);
    char *reason = NULL;
    assert_int_equal(store_verify(f->store, &reason), TL_ERR_CORRUPT);
    assert_non_null(strstr(reason, "documents"));
    mem_free(reason);
    size_t corrupt = 0;
    for (int i = 0; i < MANY; i++) {
        char key[16];
        struct store_value value;
        snprintf(key, sizeof key, "k%d", i);
        int r = store_get(f->store, SPACE_DOCUMENTS, TL_TS_MAX, slice_from(key), &value);
        assert_true(r == 0 || r == TL_ERR_CORRUPT);
        corrupt += r == TL_ERR_CORRUPT;
        if (r == 0)
            store_value_release(&value);
    }
    assert_true(corrupt > 0 && corrupt < MANY);
    struct store_iter *iter = store_iter_new(f->store, SPACE_DOCUMENTS, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    for (store_iter_seek_first(iter); store_iter_valid(iter);)
        store_iter_next(iter);
    assert_int_equal(store_iter_status(iter), TL_ERR_CORRUPT);
    store_iter_free(iter);
}

/*
 * Goal: more concurrent readers than slots get correct values, which stay pinned after their slot
 * is free.
 */
static void test_rocks_values_outlive_later_reads(void **state)
{
    struct fixture *f = *state;
    must_open(f, false);
    write_keys(f, 100, 200);
    struct store_value values[200];
    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, TL_TS_MAX, slice_from(key), &values[i]), 0);
    }
    settle(f->store);
    assert_int_equal(store_compact(f->store), 0);
    for (int i = 0; i < 200; i++) {
        assert_slice_equal(values[i].bytes, "a value to be found again");
        store_value_release(&values[i]);
    }
}

/* Goal: the size on disk is the data's, after a checkpoint. */
static void test_rocks_disk_size_counts_data(void **state)
{
    struct fixture *f = *state;
    struct store_stats empty, filled;
    must_open(f, false);
    store_stats(f->store, &empty);
    assert_in_range(empty.disk_bytes, 0, 16 << 10);
    write_keys(f, 200, 2000);
    settle(f->store);
    store_stats(f->store, &filled);
    assert_in_range(filled.disk_bytes, 2000, 1 << 20);
    assert_true(filled.table_bytes > 2000 && filled.table_bytes <= filled.disk_bytes);
}

/*
 * Writes many values in descending order of key, each twice, the second time without copying. The
 * first one is overwritten.
 */
static void write_large(struct fixture *f, tl_ts ts, char fill)
{
    enum { KEYS = 3000, BYTES = 2048, KEY_BYTES = 16 };
    struct store_batch *batch = store_batch_new(f->store);
    char *values = mem_alloc((size_t)KEYS * BYTES), *keys = mem_alloc((size_t)KEYS * KEY_BYTES);
    for (int round = 0; round < 2; round++) { /* the batch is reused */
        store_batch_clear(batch);
        store_batch_begin(batch, ts + (tl_ts)round);
        for (int i = KEYS - 1; i >= 0; i--) {
            char *key = keys + (size_t)i * KEY_BYTES;
            snprintf(key, KEY_BYTES, "k%04d", i);
            memset(values + (size_t)i * BYTES, fill + round, BYTES);
            store_batch_put(batch, SPACE_DOCUMENTS, slice_from(key), SLICE_LIT("before"));
            store_batch_put_nocopy(batch, SPACE_DOCUMENTS, slice_from(key),
                                   slice_make(values + (size_t)i * BYTES, BYTES));
        }
        assert_int_equal(store_write(f->store, batch), 0);
    }
    mem_free(values);
    mem_free(keys);
    store_batch_clear(batch);
    store_batch_begin(batch, ts + 2);
    store_batch_put(batch, SPACE_DOCUMENTS, SLICE_LIT("small"), SLICE_LIT("one"));
    assert_int_equal(store_write(f->store, batch), 0);
    store_batch_free(batch);
}

/*
 * Goal: a batch of many megabytes, with uncopied values, is written completely and can be reused.
 */
static void test_rocks_large_batches_are_complete(void **state)
{
    struct fixture *f = *state;
    struct store_value value;
    must_open(f, false);
    write_large(f, 100, 'a');
    for (int i = 0; i < 3000; i += 299) {
        char key[16];
        snprintf(key, sizeof key, "k%04d", i);
        for (tl_ts ts = 100; ts <= 101; ts++) {
            assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, ts, slice_from(key), &value), 0);
            assert_int_equal(value.bytes.len, 2048);
            assert_int_equal(value.bytes.data[0], ts == 100 ? 'a' : 'b');
            assert_int_equal(value.bytes.data[2047], value.bytes.data[0]);
            store_value_release(&value);
        }
    }
    assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, 102, SLICE_LIT("small"), &value), 0);
    assert_slice_equal(value.bytes, "one");
    store_value_release(&value);
}

enum { SMALL_KEYS = 2000, SMALL_BYTES = 300 };

/* A batch of changes in each kind of space, many times as large as a part. */
static void write_all_spaces(struct fixture *f, tl_ts ts, char fill)
{
    struct store_batch *batch = store_batch_new(f->store);
    char key[16], value[SMALL_BYTES];
    memset(value, fill, sizeof value);
    store_batch_begin(batch, ts);
    store_batch_delete_range(batch, SPACE_SYSTEM, SLICE_LIT("k0000"), SLICE_LIT("k1"));
    for (int i = 0; i < SMALL_KEYS; i++) {
        snprintf(key, sizeof key, "k%04d", i);
        for (int space = 0; space < SPACE_COUNT; space++) {
            bool deletes = fill == 'b' && i % 3 == 0;
            if (deletes && (space == SPACE_DOCUMENTS || space == SPACE_FEED))
                store_batch_delete(batch, (enum store_space)space, slice_from(key));
            else if (space != SPACE_SYSTEM || fill == 'a' || i % 2 == 0)
                store_batch_put(batch, (enum store_space)space, slice_from(key), slice_make(value, sizeof value));
        }
    }
    assert_int_equal(store_write(f->store, batch), 0);
    store_batch_free(batch);
}

/*
 * Goal: a batch that is passed to RocksDB in parts has the effect of one: in each space, with the deletion of a range
 * before its puts, and at its timestamp alone.
 */
static void test_rocks_batches_in_parts_are_as_one(void **state)
{
    struct fixture *f = *state;
    struct store_value value;
    char key[16];
    must_open(f, false);
    write_all_spaces(f, 100, 'a');
    write_all_spaces(f, 200, 'b');
    for (int i = 0; i < SMALL_KEYS; i++) {
        snprintf(key, sizeof key, "k%04d", i);
        for (int space = 0; space < SPACE_COUNT; space++) {
            bool versioned = space < SPACE_FEED;
            bool deleted = i % 3 == 0 && (space == SPACE_DOCUMENTS || space == SPACE_FEED);
            if (space == SPACE_SYSTEM)
                deleted = i % 2 != 0 && i < 1000; /* of the range, and not put again */
            int r = store_get(f->store, (enum store_space)space, 200, slice_from(key), &value);
            assert_int_equal(r, deleted ? STORE_NOT_FOUND : 0);
            if (r == 0) {
                bool older = space == SPACE_SYSTEM && i % 2 != 0;
                assert_int_equal(value.bytes.data[0], older ? 'a' : 'b');
                store_value_release(&value);
            }
            if (!versioned)
                continue;
            assert_int_equal(store_get(f->store, (enum store_space)space, 199, slice_from(key), &value), 0);
            assert_int_equal(value.bytes.data[0], 'a');
            store_value_release(&value);
        }
    }
}

enum { STAMPED = 200, STAMPED_BYTES = 50000 };

/* Returns: the digest of a batch of large values with the timestamp in front, which is written at `ts`. */
static uint64_t write_stamped(struct fixture *f, tl_ts ts, bool joined, const char *value)
{
    struct store_batch *batch = store_batch_new(f->store);
    char copy[STAMPED_BYTES], keys[STAMPED][8];
    memcpy(copy, value, sizeof copy);
    for (int i = 0; i < STORE_STAMP_BYTES; i++)
        copy[i] = (char)(ts >> (56 - 8 * i));
    store_batch_track_digest(batch);
    store_batch_begin(batch, ts);
    for (int i = 0; i < STAMPED; i++) {
        snprintf(keys[i], sizeof keys[i], "s%03d", i * 77 % STAMPED);
        if (joined)
            store_batch_put(batch, SPACE_DOCUMENTS, slice_from(keys[i]), slice_make(copy, sizeof copy));
        else
            store_batch_put_stamped(batch, SPACE_DOCUMENTS, slice_from(keys[i]), slice_make(value, sizeof copy));
    }
    assert_int_equal(store_batch_bytes(batch), STAMPED * (4 + STAMPED_BYTES));
    uint64_t digest = store_batch_digest(batch);
    assert_int_equal(store_write(f->store, batch), 0);
    mem_thread_end();
    if (!joined)
        assert_true(mem_used() < (size_t)STAMPED * STAMPED_BYTES / 2); /* it has no copies */
    store_batch_free(batch);
    return digest;
}

/*
 * Goal: a stamped value is written with the batch's timestamp, and is as any other of these bytes; its bytes in memory
 * are neither changed nor copied.
 */
static void test_rocks_stamped_values_have_timestamp(void **state)
{
    struct fixture *f = *state;
    char value[STAMPED_BYTES], before[STAMPED_BYTES];
    must_open(f, false);
    memset(value, 'v', sizeof value);
    memcpy(before, value, sizeof value);
    uint64_t stamped = write_stamped(f, 0x0102030405060, false, value);
    assert_memory_equal(value, before, sizeof value);
    for (int i = 0; i < STAMPED; i += 33) {
        struct store_value found;
        char key[8];
        snprintf(key, sizeof key, "s%03d", i);
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, TL_TS_MAX, slice_from(key), &found), 0);
        assert_int_equal(found.bytes.len, sizeof value);
        assert_memory_equal(found.bytes.data, "\x00\x00\x10\x20\x30\x40\x50\x60", STORE_STAMP_BYTES);
        assert_memory_equal(found.bytes.data + STORE_STAMP_BYTES, value, sizeof value - STORE_STAMP_BYTES);
        store_value_release(&found);
    }
    store_close(f->store);
    f->store = store_open_mem();
    assert_true(write_stamped(f, 0x0102030405060, true, value) == stamped);
}

/* Turns a store into one made before the feed had an unversioned family. */
static void make_older(struct fixture *f)
{
    const struct store_options settings = {.directory = slice_from(f->directory)};
    struct rocks_options options = {0};
    rocksdb_column_family_handle_t *opened[ROCKS_FAMILIES_MAX] = {0};
    char path[128], *error = NULL;
    rocks_options_init(&options, &settings);
    snprintf(path, sizeof path, "%s/rocks", f->directory);
    rocksdb_t *db = rocksdb_open_column_families(options.database, path, options.family_count, options.family_names,
                                                 (const rocksdb_options_t *const *)options.families, opened, &error);
    assert_null(error);
    rocksdb_column_family_handle_t *older =
        rocksdb_create_column_family(db, options.families[SPACE_CATALOG], "feed", &error);
    assert_null(error);
    rocksdb_drop_column_family(db, opened[SPACE_FEED], &error);
    assert_null(error);
    rocksdb_column_family_handle_destroy(older);
    for (int i = 0; i < options.family_count; i++)
        rocksdb_column_family_handle_destroy(opened[i]);
    rocksdb_close(db);
    rocks_options_deinit(&options);
}

/*
 * Goal: a store made before the feed existed can be verified read-only, and is converted when
 * opened for writing.
 */
static void test_rocks_converts_stores_without_feed(void **state)
{
    struct fixture *f = *state;
    struct store_value value;
    must_open(f, false);
    write_large(f, 100, 'a');
    settle(f->store);
    store_close(f->store);
    f->store = NULL;
    make_older(f);
    for (int round = 0; round < 3; round++) {
        must_open(f, round == 0);
        assert_int_equal(store_get(f->store, SPACE_DOCUMENTS, 102, SLICE_LIT("small"), &value), 0);
        store_value_release(&value);
        assert_int_equal(store_verify(f->store, NULL), 0);
        if (round == 1) {
            struct store_batch *batch = store_batch_new(f->store);
            store_batch_begin(batch, 200);
            store_batch_put(batch, SPACE_FEED, SLICE_LIT("k"), SLICE_LIT("v"));
            assert_int_equal(store_write(f->store, batch), 0);
            settle(f->store);
            store_batch_free(batch);
        }
        if (round == 2) {
            assert_int_equal(store_get(f->store, SPACE_FEED, 0, SLICE_LIT("k"), &value), 0);
            assert_slice_equal(value.bytes, "v");
            store_value_release(&value);
        }
        store_close(f->store);
        f->store = NULL;
    }
}

/* A creation that was interrupted after RocksDB had made some of the families is completed. */
static void test_rocks_completes_interrupted_creation(void **state)
{
    struct fixture *f = *state;
    const struct store_options settings = {.directory = slice_from(f->directory)};
    for (int made = 0; made < 3; made++) {
        struct rocks_options options = {0};
        rocksdb_column_family_handle_t *opened[3] = {0};
        const rocksdb_options_t *families[3];
        const char *names[3];
        char path[128], *error = NULL;
        rocks_options_init(&options, &settings);
        for (int i = 0; i <= made; i++) {
            families[i] = options.families[i == 0 ? SPACE_SYSTEM : i - 1];
            names[i] = options.family_names[i == 0 ? SPACE_SYSTEM : i - 1];
        }
        remove_tree(f->directory);
        assert_int_equal(mkdir(f->directory, 0700), 0);
        snprintf(path, sizeof path, "%s/rocks", f->directory);
        rocksdb_t *db = rocksdb_open_column_families(options.database, path, made + 1, names, families, opened, &error);
        assert_null(error);
        for (int i = 0; i <= made; i++)
            rocksdb_column_family_handle_destroy(opened[i]);
        rocksdb_close(db);
        rocks_options_deinit(&options);
        must_open(f, false);
        write_large(f, 100, 'a');
        settle(f->store);
        must_open(f, false);
        assert_int_equal(store_verify(f->store, NULL), 0);
        store_close(f->store);
        f->store = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rocks_directory_is_locked_exclusively, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_refuses_foreign_directories, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_converts_stores_without_feed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_completes_interrupted_creation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_reopening_keeps_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_reports_damaged_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_values_outlive_later_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_disk_size_counts_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_large_batches_are_complete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_batches_in_parts_are_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rocks_stamped_values_have_timestamp, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
