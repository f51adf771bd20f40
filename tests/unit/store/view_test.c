/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged view: a store with an overlay returns what a store does to which the overlay was
 * written.
 */
#include "../../lib/unit.h"

#include "base/rand.h"
#include "store/view.h"

#include <stdio.h>

enum { KEYS = 60 };

static struct slice key_of(uint64_t number, char *ret_text)
{
    snprintf(ret_text, 8, "%02d", (int)number);
    return slice_make(ret_text, 2);
}

/* Puts the same random changes into the overlay of one store and a batch of the other. */
static void change_both(struct rng *rng, struct overlay *overlay, struct store_batch *batch, int changes)
{
    for (int i = 0; i < changes; i++) {
        char key_text[8], value_text[16];
        struct slice key = key_of(rng_below(rng, KEYS), key_text);
        snprintf(value_text, sizeof value_text, "o%d", i);
        bool deletes = rng_below(rng, 3) == 0;
        if (overlay != NULL && deletes)
            overlay_delete(overlay, SPACE_ENTRIES, key);
        else if (overlay != NULL)
            overlay_put(overlay, SPACE_ENTRIES, key, slice_from(value_text));
        if (deletes)
            store_batch_delete(batch, SPACE_ENTRIES, key);
        else
            store_batch_put(batch, SPACE_ENTRIES, key, slice_from(value_text));
    }
}

static void assert_same_position(struct view_iter *merged, struct store_iter *plain)
{
    assert_int_equal(view_iter_status(merged), 0);
    assert_int_equal(view_iter_valid(merged), store_iter_valid(plain));
    if (!store_iter_valid(plain))
        return;
    assert_true(slice_equal(view_iter_key(merged), store_iter_key(plain)));
    assert_true(slice_equal(view_iter_value(merged), store_iter_value(plain)));
}

/* Moves both iterators at random and compares each position. */
static void walk_both(struct rng *rng, struct view_iter *merged, struct store_iter *plain, int steps)
{
    for (int i = 0; i < steps; i++) {
        char text[8];
        struct slice key = key_of(rng_below(rng, KEYS), text);
        uint64_t choice = store_iter_valid(plain) ? rng_below(rng, 12) : rng_below(rng, 4);
        if (choice == 0) {
            view_iter_seek_first(merged);
            store_iter_seek_first(plain);
        } else if (choice == 1) {
            view_iter_seek_last(merged);
            store_iter_seek_last(plain);
        } else if (choice == 2) {
            view_iter_seek(merged, key);
            store_iter_seek(plain, key);
        } else if (choice == 3) {
            view_iter_seek_for_prev(merged, key);
            store_iter_seek_for_prev(plain, key);
        } else if (choice < 8) {
            view_iter_next(merged);
            store_iter_next(plain);
        } else {
            view_iter_prev(merged);
            store_iter_prev(plain);
        }
        assert_same_position(merged, plain);
    }
}

static void compare_gets(const struct view *view, struct store *plain)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        char text[8];
        struct slice key = key_of(i, text);
        struct store_value a = {SLICE_NONE, NULL, NULL}, b = a;
        int r = view_get(view, SPACE_ENTRIES, key, &a);
        assert_int_equal(r, store_get(plain, SPACE_ENTRIES, 2, key, &b));
        assert_true(slice_equal(a.bytes, b.bytes));
        store_value_release(&a);
        store_value_release(&b);
    }
}

static void compare_scans(struct rng *rng, const struct view *view, struct store *plain)
{
    char low_text[8], high_text[8];
    struct slice lower = key_of(rng_below(rng, KEYS / 2), low_text);
    struct slice upper = key_of(KEYS / 2 + rng_below(rng, KEYS / 2), high_text);
    lower.len *= rng_below(rng, 2);
    upper.len *= rng_below(rng, 2);
    struct view_iter *merged = view_iter_new(view, SPACE_ENTRIES, lower, upper);
    struct store_iter *straight = store_iter_new(plain, SPACE_ENTRIES, 2, lower, upper);
    walk_both(rng, merged, straight, 60);
    view_iter_free(merged);
    store_iter_free(straight);
}

static void run_seed(uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    struct store *under = store_open_mem(), *plain = store_open_mem();
    struct store_batch *batch = store_batch_new(plain), *under_batch = store_batch_new(under);
    int base_changes = (int)rng_below(&rng, 80);
    struct rng again = rng;
    store_batch_begin(batch, 1);
    store_batch_begin(under_batch, 1);
    change_both(&rng, NULL, batch, base_changes);
    change_both(&again, NULL, under_batch, base_changes);
    assert_int_equal(store_write(plain, batch), 0);
    assert_int_equal(store_write(under, under_batch), 0);
    struct overlay *overlay = overlay_new();
    store_batch_clear(batch);
    store_batch_begin(batch, 2);
    change_both(&rng, overlay, batch, (int)rng_below(&rng, 80));
    assert_int_equal(store_write(plain, batch), 0);

    struct view view = {under, 1, overlay};
    compare_gets(&view, plain);
    for (int i = 0; i < 5; i++)
        compare_scans(&rng, &view, plain);

    overlay_free(overlay);
    store_batch_free(batch);
    store_batch_free(under_batch);
    store_close(under);
    store_close(plain);
}

static void test_view_merge_equals_written_store(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++)
        run_seed(seed);
}

/*
 * Goal: an error of the store ends a merged scan, too; the overlay alone would be an incomplete
 * result.
 */
static void test_view_reports_store_errors(void **state)
{
    (void)state;
    struct store *store = store_open_mem();
    struct overlay *overlay = overlay_new();
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("k"), SLICE_LIT("v"));
    assert_int_equal(store_set_history_low(store, 10), 0);
    struct view view = {store, 9, overlay};
    struct view_iter *iter = view_iter_new(&view, SPACE_TREE, SLICE_NONE, SLICE_NONE);
    view_iter_seek_first(iter);
    assert_false(view_iter_valid(iter));
    assert_int_equal(view_iter_status(iter), STORE_TOO_OLD);
    view_iter_seek_last(iter);
    assert_false(view_iter_valid(iter));
    view_iter_free(iter);
    overlay_free(overlay);
    store_close(store);
}

/* Keys with two prefixes; most of them do not exist. */
static struct slice cached_key(struct rng *rng, unsigned range, char *ret_text)
{
    snprintf(ret_text, 16, "%s%05u", rng_below(rng, 4) == 0 ? "bbbb" : "aaaa", (unsigned)rng_below(rng, range));
    return slice_make(ret_text, 9);
}

/*
 * Goal: a view with a cache finds the existing records, for any number of records, and also in the
 * overlay.
 */
static void test_view_cache_returns_current_records(void **state)
{
    (void)state;
    /* Very few, few, too many to be read at once. */
    static const unsigned counts[] = {0, 3, 60, 70, 1500, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct rng rng;
        struct store *store = store_open_mem();
        struct store_batch *batch = store_batch_new(store);
        struct overlay *overlay = overlay_new();
        struct view_cache cache;
        struct view plain = {.store = store, .ts = 1, .overlay = overlay}, cached = plain;
        char text[16];
        rng_init(&rng, i + 1);
        store_batch_begin(batch, 1);
        for (unsigned n = 0; n < counts[i]; n++) {
            struct slice key = cached_key(&rng, 8 * counts[i], text);
            store_batch_put(batch, SPACE_TREE, key, key);
        }
        assert_int_equal(store_write(store, batch), 0);
        overlay_put(overlay, SPACE_TREE, cached_key(&rng, 8 * counts[i] + 1, text), SLICE_LIT("own"));
        view_cache_init(&cache, SPACE_TREE);
        cached.cache = &cache;
        for (int look = 0; look < 4000; look++) {
            struct slice key = cached_key(&rng, 8 * counts[i] + 8, text);
            struct store_value now = {0}, then = {0};
            int r = view_get(&cached, SPACE_TREE, key, &now);
            assert_int_equal(r, view_get(&plain, SPACE_TREE, key, &then));
            assert_true(r != 0 || slice_equal(now.bytes, then.bytes));
            store_value_release(&now);
            store_value_release(&then);
        }
        view_cache_deinit(&cache);
        overlay_free(overlay);
        store_batch_free(batch);
        store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_merge_equals_written_store),
        cmocka_unit_test(test_view_reports_store_errors),
        cmocka_unit_test(test_view_cache_returns_current_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
