/* SPDX-License-Identifier: Apache-2.0 */
/* The in-memory store: versions, the history limit, iterators, and crashes. */
#include "../../lib/unit.h"

#include "store/store.h"

#include <stdio.h>

struct fixture {
    struct store *store;
    struct store_batch *batch;
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture.store = store_open_mem();
    fixture.batch = store_batch_new(fixture.store);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_batch_free(f->batch);
    store_close(f->store);
    return 0;
}

/* Writes one key in one batch; value NULL deletes. */
static void write_one(struct fixture *f, tl_ts ts, enum store_space space, const char *key, const char *value)
{
    store_batch_clear(f->batch);
    store_batch_begin(f->batch, ts);
    if (value == NULL)
        store_batch_delete(f->batch, space, slice_from(key));
    else
        store_batch_put(f->batch, space, slice_from(key), slice_from(value));
    assert_int_equal(store_write(f->store, f->batch), 0);
}

/* Asserts the result of a read; value NULL: not found. */
static void assert_reads(struct fixture *f, tl_ts ts, enum store_space space, const char *key, const char *value)
{
    struct store_value got;
    int r = store_get(f->store, space, ts, slice_from(key), &got);
    assert_int_equal(r, value == NULL ? STORE_NOT_FOUND : 0);
    if (value == NULL)
        return;
    assert_slice_equal(got.bytes, value);
    store_value_release(&got);
}

/* Asserts a whole scan, forward and backward, written as "key=value key=value". */
static void assert_scan(struct store_iter *iter, const char *expected)
{
    char text[256] = "", backward[256] = "";
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s=%.*s", *text ? " " : "",
                 SLICE_ARG(store_iter_key(iter)), SLICE_ARG(store_iter_value(iter)));
    assert_string_equal(text, expected);
    for (store_iter_seek_last(iter); store_iter_valid(iter); store_iter_prev(iter)) {
        char rest[sizeof backward + 1];
        snprintf(rest, sizeof rest, "%s%s", *backward ? " " : "", backward);
        snprintf(backward, sizeof backward, "%.*s=%.*s%.200s", SLICE_ARG(store_iter_key(iter)),
                 SLICE_ARG(store_iter_value(iter)), rest);
    }
    assert_string_equal(backward, expected);
    assert_int_equal(store_iter_status(iter), 0);
}

static void assert_scan_at(struct fixture *f, tl_ts ts, enum store_space space, const char *lower, const char *upper,
                           const char *expected)
{
    struct store_iter *iter = store_iter_new(f->store, space, ts, slice_from(lower), slice_from(upper));
    assert_scan(iter, expected);
    store_iter_free(iter);
}

/*
 * Goal: a read returns the newest version at or before its timestamp; in SPACE_SYSTEM the last one.
 */
static void test_mem_read_returns_version_at_timestamp(void **state)
{
    struct fixture *f = *state;
    write_one(f, 10, SPACE_TREE, "k", "a");
    write_one(f, 20, SPACE_TREE, "k", NULL);
    write_one(f, 30, SPACE_TREE, "k", "");
    assert_reads(f, 9, SPACE_TREE, "k", NULL);
    assert_reads(f, 10, SPACE_TREE, "k", "a");
    assert_reads(f, 19, SPACE_TREE, "k", "a");
    assert_reads(f, 20, SPACE_TREE, "k", NULL);
    assert_reads(f, TL_TS_MAX, SPACE_TREE, "k", "");
    assert_reads(f, TL_TS_MAX, SPACE_FEED, "k", NULL);
    write_one(f, 40, SPACE_SYSTEM, "k", "x");
    write_one(f, 50, SPACE_SYSTEM, "k", "y");
    assert_reads(f, 0, SPACE_SYSTEM, "k", "y");
}

/* Goal: of several changes of a key in a batch the last one counts. */
static void test_mem_last_change_in_batch_wins(void **state)
{
    struct fixture *f = *state;
    store_batch_clear(f->batch);
    store_batch_begin(f->batch, 5);
    store_batch_put(f->batch, SPACE_TREE, SLICE_LIT("a"), SLICE_LIT("1"));
    store_batch_delete(f->batch, SPACE_TREE, SLICE_LIT("a"));
    store_batch_delete(f->batch, SPACE_TREE, SLICE_LIT("b"));
    store_batch_put(f->batch, SPACE_TREE, SLICE_LIT("b"), SLICE_LIT("2"));
    assert_int_equal(store_batch_count(f->batch), 4);
    assert_int_equal(store_write(f->store, f->batch), 0);
    assert_scan_at(f, 5, SPACE_TREE, "", "", "b=2");
}

/*
 * Goal: scans respect bounds, directions and byte order, with keys that are prefixes of others or
 * contain NUL.
 */
static void test_mem_scans_are_ordered_and_bounded(void **state)
{
    struct fixture *f = *state;
    write_one(f, 1, SPACE_TREE, "b", "2");
    write_one(f, 2, SPACE_TREE, "a", "1");
    write_one(f, 3, SPACE_TREE, "ab", "3");
    write_one(f, 4, SPACE_TREE, "c", "4");
    write_one(f, 5, SPACE_TREE, "c", NULL);
    assert_scan_at(f, 3, SPACE_TREE, "", "", "a=1 ab=3 b=2");
    assert_scan_at(f, 4, SPACE_TREE, "", "", "a=1 ab=3 b=2 c=4");
    assert_scan_at(f, 5, SPACE_TREE, "ab", "c", "ab=3 b=2");
    assert_scan_at(f, 5, SPACE_TREE, "aa", "ab", "");
    store_batch_clear(f->batch);
    store_batch_begin(f->batch, 6);
    store_batch_put(f->batch, SPACE_FEED, slice_make("a\0", 2), SLICE_LIT("nul"));
    store_batch_put(f->batch, SPACE_FEED, slice_make("a\0b", 3), SLICE_LIT("nul b"));
    store_batch_put(f->batch, SPACE_FEED, slice_make("a\1", 2), SLICE_LIT("one"));
    store_batch_put(f->batch, SPACE_FEED, slice_make("a", 1), SLICE_LIT("short"));
    assert_int_equal(store_write(f->store, f->batch), 0);
    struct store_iter *iter = store_iter_new(f->store, SPACE_FEED, 6, SLICE_NONE, SLICE_NONE);
    const char *expected[] = {"short", "nul", "nul b", "one"};
    store_iter_seek_first(iter);
    for (int i = 0; i < 4; i++, store_iter_next(iter))
        assert_slice_equal(store_iter_value(iter), expected[i]);
    assert_false(store_iter_valid(iter));
    store_iter_seek_for_prev(iter, slice_make("a\0a", 3));
    assert_slice_equal(store_iter_value(iter), "nul");
    store_iter_seek(iter, slice_make("a\0a", 3));
    assert_slice_equal(store_iter_value(iter), "nul b");
    store_iter_free(iter);
}

/* Goal: an iterator shows the state at its creation, in every kind of space. */
static void test_mem_iterators_are_snapshots(void **state)
{
    struct fixture *f = *state;
    write_one(f, 1, SPACE_SYSTEM, "k", "1");
    write_one(f, 2, SPACE_TREE, "k", "1");
    struct store_iter *plain = store_iter_new(f->store, SPACE_SYSTEM, 0, SLICE_NONE, SLICE_NONE);
    struct store_iter *versioned = store_iter_new(f->store, SPACE_TREE, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    write_one(f, 3, SPACE_SYSTEM, "k", "2");
    write_one(f, 4, SPACE_SYSTEM, "j", "2");
    write_one(f, 5, SPACE_TREE, "k", NULL);
    store_mem_sync(f->store);
    assert_int_equal(store_set_history_low(f->store, 5), 0);
    assert_int_equal(store_compact(f->store), 0);
    assert_scan(plain, "k=1");
    assert_scan(versioned, "k=1");
    store_iter_free(plain);
    store_iter_free(versioned);
    assert_scan_at(f, 5, SPACE_SYSTEM, "", "", "j=2 k=2");
    assert_scan_at(f, 5, SPACE_TREE, "", "", "");
}

/*
 * Goal: reads below the history limit are refused, reads at it are correct, and old versions are
 * freed.
 */
static void test_mem_history_limit_refuses_reads_and_drops_versions(void **state)
{
    struct fixture *f = *state;
    for (tl_ts ts = 1; ts <= 100; ts++)
        write_one(f, ts, SPACE_TREE, ts % 2 ? "odd" : "even", "value");
    write_one(f, 101, SPACE_TREE, "gone", "value");
    write_one(f, 102, SPACE_TREE, "gone", NULL);
    store_mem_sync(f->store);
    struct store_stats before, after;
    store_stats(f->store, &before);
    assert_int_equal(store_set_history_low(f->store, 102), 0);
    assert_int_equal(store_set_history_low(f->store, 50), 0);
    assert_int_equal(store_history_low(f->store), 102);
    struct store_value value;
    assert_int_equal(store_get(f->store, SPACE_TREE, 101, SLICE_LIT("odd"), &value), STORE_TOO_OLD);
    struct store_iter *iter = store_iter_new(f->store, SPACE_TREE, 101, SLICE_NONE, SLICE_NONE);
    store_iter_seek_first(iter);
    assert_false(store_iter_valid(iter));
    assert_int_equal(store_iter_status(iter), STORE_TOO_OLD);
    store_iter_free(iter);
    assert_int_equal(store_compact(f->store), 0);
    assert_scan_at(f, 102, SPACE_TREE, "", "", "even=value odd=value");
    store_stats(f->store, &after);
    assert_true(after.memory_bytes * 20 < before.memory_bytes);
    write_one(f, 200, SPACE_SYSTEM, "k", "v");
    assert_reads(f, 0, SPACE_SYSTEM, "k", "v");
}

/* Goal: a crash keeps the durable batches and the requested number of complete later ones. */
static void test_mem_crash_keeps_prefix_of_batches(void **state)
{
    struct fixture *f = *state;
    for (size_t kept = 0; kept < 6; kept++) {
        tl_ts start = (kept + 1) * 100;
        write_one(f, start, SPACE_SYSTEM, "count", "-");
        write_one(f, start + 1, SPACE_TREE, "count", "-");
        store_mem_sync(f->store);
        for (tl_ts i = 0; i < 4; i++) {
            char text[8];
            snprintf(text, sizeof text, "%d", (int)i);
            store_batch_clear(f->batch);
            store_batch_begin(f->batch, start + 2 + i);
            store_batch_put(f->batch, SPACE_SYSTEM, SLICE_LIT("count"), slice_from(text));
            store_batch_put(f->batch, SPACE_TREE, SLICE_LIT("count"), slice_from(text));
            assert_int_equal(store_write(f->store, f->batch), 0);
        }
        assert_int_equal(store_mem_crash(f->store, kept), 4);
        const char *expected[] = {"-", "0", "1", "2", "3", "3"};
        assert_reads(f, 0, SPACE_SYSTEM, "count", expected[kept]);
        assert_reads(f, TL_TS_MAX, SPACE_TREE, "count", expected[kept]);
        assert_reads(f, start + 2, SPACE_TREE, "count", kept > 0 ? "0" : "-");
        assert_int_equal(store_mem_crash(f->store, 0), 0);
        assert_reads(f, 0, SPACE_SYSTEM, "count", expected[kept]);
    }
}

/* Goal: a crash restores versions hidden by a removed batch, even if compaction ran between. */
static void test_mem_crash_restores_hidden_versions(void **state)
{
    struct fixture *f = *state;
    write_one(f, 1, SPACE_TREE, "k", "old");
    write_one(f, 2, SPACE_SYSTEM, "k", "old");
    store_mem_sync(f->store);
    write_one(f, 3, SPACE_TREE, "k", NULL);
    write_one(f, 4, SPACE_SYSTEM, "k", NULL);
    assert_int_equal(store_set_history_low(f->store, 4), 0);
    assert_int_equal(store_compact(f->store), 0);
    store_mem_crash(f->store, 0);
    assert_reads(f, 4, SPACE_TREE, "k", "old");
    assert_reads(f, 0, SPACE_SYSTEM, "k", "old");
    char *reason = NULL;
    assert_int_equal(store_verify(f->store, &reason), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mem_read_returns_version_at_timestamp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_last_change_in_batch_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_scans_are_ordered_and_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_iterators_are_snapshots, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_history_limit_refuses_reads_and_drops_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_crash_keeps_prefix_of_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mem_crash_restores_hidden_versions, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
