/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a store by checkpoints is after its end, in order or not, what it was at its last checkpoint, to the batch, in all spaces; a store
 * that had a log becomes one.
 * Method: on RocksDB, and its twin where that can. Nothing tells a close in order from a crash here: neither writes anything.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char directory[64];
    struct store *store;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    strcpy(f->directory, "/tmp/store_checkpoint_test.XXXXXX");
    *state = f;
    return mkdtemp(f->directory) == NULL;
}

static void remove_tree(const char *path)
{
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        char child[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            remove_tree(child);
        else
            unlink(child);
    }
    if (listing != NULL)
        closedir(listing);
    rmdir(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    remove_tree(f->directory);
    mem_free(f);
    return 0;
}

static int try_open(struct fixture *f, bool by_checkpoints, bool read_only, char **ret_reason)
{
    struct store_options options = {
        .directory = slice_from(f->directory), .by_checkpoints = by_checkpoints, .read_only = read_only};
    store_close(f->store);
    f->store = NULL;
    return store_open_rocks(&options, &f->store, ret_reason);
}

static void must_open(struct fixture *f, bool by_checkpoints)
{
    char *reason = NULL;
    if (try_open(f, by_checkpoints, false, &reason) != 0)
        fail_msg("open: %s", reason);
}

/* Writes the number of each batch to all spaces. */
static void write_batches(struct store *store, tl_ts first, tl_ts last)
{
    struct store_batch *batch = store_batch_new(store);
    for (tl_ts ts = first; ts <= last; ts++) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)ts);
        store_batch_clear(batch);
        store_batch_begin(batch, ts);
        for (int space = 0; space < SPACE_COUNT; space++)
            store_batch_put(batch, (enum store_space)space, SLICE_LIT("number"), slice_from(text));
        assert_int_equal(store_write(store, batch), 0);
    }
    store_batch_free(batch);
}

static void assert_number(struct store *store, int expected)
{
    for (int space = 0; space < SPACE_COUNT; space++) {
        struct store_value value;
        int r = store_get(store, (enum store_space)space, TL_TS_MAX, SLICE_LIT("number"), &value);
        if (expected == 0) {
            assert_int_equal(r, STORE_NOT_FOUND);
            continue;
        }
        uint64_t number = 0;
        assert_int_equal(r, 0);
        assert_true(slice_to_u64(value.bytes, &number));
        assert_int_equal(number, expected);
        store_value_release(&value);
    }
}

static void assert_record(struct store *store, const char *expected)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = store_checkpoint_record(store, &record);
    if (expected == NULL) {
        assert_int_equal(r, STORE_NOT_FOUND);
    } else {
        assert_int_equal(r, 0);
        assert_true(slice_is(buf_view(&record), expected));
    }
    buf_deinit(&record);
}

static void await_disk(struct store *store)
{
    int r;
    while ((r = store_checkpointed(store)) == 0)
        usleep(1000);
    assert_int_equal(r, 1);
}

static void test_it_is_what_it_was_at_the_last_checkpoint(void **state)
{
    struct fixture *f = *state;
    must_open(f, true);
    write_batches(f->store, 1, 20);
    must_open(f, true); /* never a checkpoint */
    assert_number(f->store, 0);
    assert_record(f->store, NULL);
    write_batches(f->store, 1, 30);
    assert_true(store_unsaved_bytes(f->store) > 0);
    assert_int_equal(store_checkpoint(f->store, SLICE_LIT("thirty")), 0);
    assert_int_equal(store_unsaved_bytes(f->store), 0);
    write_batches(f->store, 31, 40); /* beside the flush, and no part of it */
    assert_number(f->store, 40);
    await_disk(f->store);
    assert_record(f->store, "thirty");
    must_open(f, true);
    assert_number(f->store, 30);
    assert_record(f->store, "thirty");
    for (int i = 31; i < 60; i++) {
        char text[16];
        write_batches(f->store, (tl_ts)i, (tl_ts)i);
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(store_checkpoint(f->store, slice_from(text)), 0);
        await_disk(f->store);
    }
    must_open(f, true);
    assert_number(f->store, 59);
    assert_record(f->store, "59");
    assert_int_equal(store_compact(f->store), 0);
    write_batches(f->store, 60, 70);
    must_open(f, true);
    assert_number(f->store, 59);
}

/* A record of several pieces, and a shorter one after it. */
static void test_records_of_any_length(void **state)
{
    static const size_t lengths[] = {(size_t)40 << 20, 0, 100000, (size_t)16 << 20, 1};
    struct fixture *f = *state;
    struct buf record = BUF_INIT(BUF_UNLIMITED), read = BUF_INIT(BUF_UNLIMITED);
    must_open(f, true);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        buf_clear(&record);
        while (record.len < lengths[i])
            buf_byte(&record, (char)(record.len * 31 >> 7));
        assert_int_equal(store_checkpoint(f->store, buf_view(&record)), 0);
        await_disk(f->store);
        must_open(f, true);
        buf_clear(&read);
        assert_int_equal(store_checkpoint_record(f->store, &read), 0);
        assert_true(slice_equal(buf_view(&read), buf_view(&record)));
    }
    buf_deinit(&record);
    buf_deinit(&read);
}

/* What a log of RocksDB's held, is there; older programs keep off, and who only reads changes nothing. */
static void test_a_store_with_a_log_is_converted(void **state)
{
    struct fixture *f = *state;
    char *reason = NULL;
    must_open(f, false);
    write_batches(f->store, 1, 20);
    assert_int_equal(store_sync(f->store), 0);
    assert_int_equal(try_open(f, true, true, &reason), 0);
    assert_number(f->store, 20);
    must_open(f, false);
    write_batches(f->store, 21, 25);
    assert_int_equal(store_sync(f->store), 0);
    must_open(f, true);
    assert_number(f->store, 25);
    assert_record(f->store, NULL);
    write_batches(f->store, 26, 30);
    must_open(f, true);
    assert_number(f->store, 25);
    assert_int_equal(try_open(f, false, false, &reason), TL_ERR_VERSION);
    assert_non_null(strstr(reason, "format 3"));
    mem_free(reason);
    reason = NULL;
    assert_int_equal(try_open(f, true, true, &reason), 0);
    assert_number(f->store, 25);
}

static void test_the_twin_does_the_same(void **state)
{
    struct store *store = store_open_mem();
    (void)state;
    write_batches(store, 1, 20);
    assert_record(store, NULL);
    assert_int_equal(store_checkpoint(store, SLICE_LIT("twenty")), 0);
    assert_int_equal(store_checkpointed(store), 1);
    write_batches(store, 21, 30);
    assert_true(store_unsaved_bytes(store) > 0);
    store_mem_crash(store, 0);
    assert_number(store, 20);
    assert_record(store, "twenty");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_what_it_was_at_the_last_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_records_of_any_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_store_with_a_log_is_converted, setup, teardown),
        cmocka_unit_test(test_the_twin_does_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
