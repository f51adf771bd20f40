/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An overlay's map against base/omap.h as its model: random changes, snapshots of all ages, and the
 * number of nodes that a change copies.
 */
#include "../../lib/reclaim_stop.h"
#include "../../lib/unit.h"

#include "base/omap.h"
#include "base/rand.h"
#include "store/overlay_map.h"

#include <stdio.h>
#include <string.h>

enum { SNAPSHOTS = 4, KEY_BYTES = 24 };

struct pair {
    struct overlay_map map;
    struct omap model;
};

static void pair_init(struct pair *pair)
{
    *pair = (struct pair){.map = {.root = NULL}};
    omap_init(&pair->model);
}

static void pair_clear(struct pair *pair)
{
    overlay_map_clear(&pair->map);
    omap_clear(&pair->model);
}

static void pair_put(struct pair *pair, struct slice key, struct slice value)
{
    overlay_map_put(&pair->map, overlay_entry_new(key, value, false, 0));
    omap_put(&pair->model, key, value);
}

/* Makes `ret` a snapshot; that of the model is a copy. */
static void pair_share(const struct pair *pair, struct pair *ret)
{
    pair_clear(ret);
    overlay_map_share(&pair->map, &ret->map);
    for (const struct omap_entry *entry = omap_first(&pair->model); entry != NULL; entry = omap_next(entry))
        omap_put(&ret->model, omap_key(entry), omap_value(entry));
}

static void assert_same(const struct overlay_entry *entry, const struct omap_entry *expected)
{
    assert_int_equal(entry == NULL, expected == NULL);
    if (entry == NULL)
        return;
    assert_true(slice_equal(overlay_entry_key(entry), omap_key(expected)));
    assert_true(slice_equal(overlay_entry_value(entry), omap_value(expected)));
}

/* Compares all entries in both directions. */
static void compare_all(const struct pair *pair)
{
    struct overlay_cursor cursor;
    overlay_map_check(&pair->map);
    assert_int_equal(pair->map.count, pair->model.count);
    const struct omap_entry *expected = omap_first(&pair->model);
    const struct overlay_entry *entry = overlay_cursor_first(&cursor, &pair->map);
    for (; expected != NULL; expected = omap_next(expected), entry = overlay_cursor_next(&cursor))
        assert_same(entry, expected);
    assert_null(entry);
    expected = omap_last(&pair->model);
    entry = overlay_cursor_last(&cursor, &pair->map);
    for (; expected != NULL; expected = omap_prev(expected), entry = overlay_cursor_prev(&cursor))
        assert_same(entry, expected);
    assert_null(entry);
}

/* Looks a key up, seeks it, and walks back and forth from there. */
static void compare_at(const struct pair *pair, struct slice key, struct rng *rng)
{
    struct overlay_cursor cursor;
    bool back = rng_below(rng, 2) == 0;
    assert_same(overlay_map_get(&pair->map, key), omap_get(&pair->model, key));
    const struct omap_entry *expected = back ? omap_seek_for_prev(&pair->model, key) : omap_seek(&pair->model, key);
    const struct overlay_entry *entry =
        back ? overlay_cursor_seek_for_prev(&cursor, &pair->map, key) : overlay_cursor_seek(&cursor, &pair->map, key);
    assert_same(entry, expected);
    for (int step = 0; step < 40 && expected != NULL; step++) {
        back = rng_below(rng, 8) == 0 ? !back : back;
        expected = back ? omap_prev(expected) : omap_next(expected);
        entry = back ? overlay_cursor_prev(&cursor) : overlay_cursor_next(&cursor);
        assert_same(entry, expected);
    }
}

static struct slice key_of(char text[KEY_BYTES], uint64_t number)
{
    return slice_make(text, (size_t)snprintf(text, KEY_BYTES, "%llu", (unsigned long long)number));
}

/* A change of the kind that the phase has most of; phases grow the map, and shrink it to nothing. */
static void change(struct pair *pair, struct rng *rng, unsigned phase, unsigned keys)
{
    char text[KEY_BYTES];
    struct slice key = key_of(text, rng_below(rng, keys));
    if (rng_below(rng, 10) < (phase % 2 == 0 ? 9U : 2U)) {
        pair_put(pair, key, slice_make("abcdefghijkl", rng_below(rng, 12)));
    } else if (omap_get(&pair->model, key) != NULL) {
        overlay_map_remove(&pair->map, key);
        omap_remove(&pair->model, key);
    }
}

/*
 * Goal: the map and each of its snapshots have what the model has, whatever was changed since, and
 * in whichever order snapshots end.
 */
static void test_map_and_snapshots_equal_model(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        const unsigned keys = seed % 3 == 0 ? 12 : seed % 3 == 1 ? 300 : 4000;
        struct pair pair, snapshots[SNAPSHOTS];
        struct rng rng;
        rng_init(&rng, seed);
        pair_init(&pair);
        for (int i = 0; i < SNAPSHOTS; i++)
            pair_init(&snapshots[i]);
        for (unsigned phase = 0; phase < 6; phase++) {
            for (unsigned step = 0; step < 2000; step++) {
                char text[KEY_BYTES];
                change(&pair, &rng, phase, keys);
                if (rng_below(&rng, 100) == 0)
                    pair_share(&pair, &snapshots[rng_below(&rng, SNAPSHOTS)]);
                if (rng_below(&rng, 200) == 0)
                    pair_clear(&snapshots[rng_below(&rng, SNAPSHOTS)]);
                compare_at(&pair, key_of(text, rng_below(&rng, keys)), &rng);
                compare_at(&snapshots[0], key_of(text, rng_below(&rng, keys)), &rng);
            }
            compare_all(&pair);
            for (int i = 0; i < SNAPSHOTS; i++)
                compare_all(&snapshots[i]);
        }
        pair_clear(&pair);
        for (int i = 0; i < SNAPSHOTS; i++) {
            compare_all(&snapshots[i]);
            pair_clear(&snapshots[i]);
        }
    }
}

/* Goal: removals in each order leave a map that is empty, and usable. */
static void test_map_is_emptied_in_any_order(void **state)
{
    (void)state;
    enum { KEYS = 3000 };
    struct pair pair;
    char text[KEY_BYTES];
    pair_init(&pair);
    for (int order = 0; order < 4; order++) {
        for (unsigned i = 0; i < KEYS; i++)
            pair_put(&pair, key_of(text, 10000 + (order % 2 == 0 ? i : KEYS - i)), SLICE_LIT("v"));
        compare_all(&pair);
        while (pair.model.count > 0) {
            struct slice key = omap_key(order < 2 ? omap_first(&pair.model) : omap_last(&pair.model));
            overlay_map_remove(&pair.map, key);
            omap_remove(&pair.model, key);
            if (pair.model.count % 500 == 0)
                compare_all(&pair);
        }
        assert_null(pair.map.root);
    }
}

/* Returns: the number of nodes that a change of the key copies. */
static uint64_t copied_by(struct overlay_map *map, uint64_t number, bool removes)
{
    char text[KEY_BYTES];
    uint64_t before = map->copied;
    if (removes)
        overlay_map_remove(map, key_of(text, number));
    else
        overlay_map_put(map, overlay_entry_new(key_of(text, number), SLICE_LIT("new"), false, 0));
    return map->copied - before;
}

/*
 * Goal: a change after a snapshot copies at most a node of each level, also with a hundred times the
 * keys and many snapshots; without one, or when it has ended, it copies none.
 */
static void test_change_copies_one_node_of_each_level(void **state)
{
    (void)state;
    enum { OLD = 20 };
    static const unsigned counts[] = {1, 100, 1000, 100000};
    static const unsigned levels[] = {1, 3, 5, 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct overlay_map map = {.root = NULL}, old[OLD];
        struct rng rng;
        rng_init(&rng, i);
        for (unsigned n = 0; n < counts[i]; n++)
            assert_int_equal(copied_by(&map, 1000000 + n * UINT64_C(7919) % counts[i], false), 0);
        assert_int_equal(map.count, counts[i]);
        for (int round = 0; round < OLD; round++) {
            uint64_t number = 1000000 + rng_below(&rng, counts[i]);
            overlay_map_share(&map, &old[round]);
            uint64_t copied = copied_by(&map, number, false);
            assert_true(copied >= 1 && copied <= levels[i]);
            assert_int_equal(copied_by(&map, number, false), 0); /* its nodes are the map's own now */
        }
        for (int round = 0; round < OLD; round++) {
            assert_int_equal(old[round].count, counts[i]);
            overlay_map_clear(&old[round]);
        }
        for (int round = 0; round < OLD; round++)
            assert_int_equal(copied_by(&map, 1000000 + rng_below(&rng, counts[i]), false), 0);
        overlay_map_share(&map, &old[0]);
        assert_true(copied_by(&map, 1000000, true) <= levels[i]);
        overlay_map_check(&map);
        overlay_map_check(&old[0]);
        assert_int_equal(old[0].count, map.count + 1);
        overlay_map_clear(&map);
        overlay_map_clear(&old[0]);
    }
}

/* Goal: an entry is shared, not copied, by a copied leaf, and freed with the last one that has it. */
static void test_entries_are_shared(void **state)
{
    (void)state;
    struct overlay_map map = {.root = NULL}, snapshot;
    char text[KEY_BYTES];
    for (uint64_t n = 0; n < 10; n++)
        overlay_map_put(&map, overlay_entry_new(key_of(text, n), SLICE_LIT("old"), false, (uint32_t)n));
    const struct overlay_entry *kept = overlay_map_get(&map, SLICE_LIT("3"));
    struct overlay_entry *replaced = overlay_map_get(&map, SLICE_LIT("4"));
    overlay_map_share(&map, &snapshot);
    copied_by(&map, 4, false);
    assert_ptr_equal(overlay_map_get(&map, SLICE_LIT("3")), kept);
    assert_ptr_equal(overlay_map_get(&snapshot, SLICE_LIT("3")), kept);
    assert_ptr_equal(overlay_map_get(&snapshot, SLICE_LIT("4")), replaced);
    assert_slice_equal(overlay_entry_value(overlay_map_get(&map, SLICE_LIT("4"))), "new");
    overlay_entry_ref(replaced);
    overlay_map_clear(&snapshot);
    assert_slice_equal(overlay_entry_value(replaced), "old");
    overlay_map_put(&map, replaced); /* as a rollback does */
    assert_ptr_equal(overlay_map_get(&map, SLICE_LIT("4")), replaced);
    overlay_map_clear(&map);
}

/* Returns: the bytes that a map of so many keys has taken. */
static size_t fill_map(struct overlay_map *map, unsigned count)
{
    size_t before = reclaim_stop_used();
    char text[KEY_BYTES];
    for (unsigned n = 0; n < count; n++) {
        struct slice key = key_of(text, n * UINT64_C(7919) % count);
        overlay_map_put(map, overlay_entry_new(key, SLICE_LIT("value"), false, n));
    }
    return reclaim_stop_used() - before;
}

/*
 * Goal: the thread that drops a large map frees little of it itself, and the reclaimer the rest, without the nodes of a
 * snapshot; a small one is freed at once. Method: the reclaimer is stopped.
 */
static void test_large_map_is_left_to_reclaimer(void **state)
{
    (void)state;
    enum { LARGE = 50000, SMALL = 500 };
    struct overlay_map large = {.root = NULL}, small = {.root = NULL}, shared = {.root = NULL}, snapshot;
    size_t before = reclaim_stop_used();
    reclaim_stop_begin();
    size_t unused = reclaim_stop_used(), bytes = fill_map(&large, LARGE);
    overlay_map_clear(&large);
    assert_true(reclaim_stop_used() > unused + bytes - bytes / 10);
    unused = reclaim_stop_used();
    fill_map(&small, SMALL);
    assert_true(reclaim_stop_used() > unused);
    overlay_map_clear(&small);
    assert_int_equal(reclaim_stop_used(), unused);
    fill_map(&shared, LARGE);
    overlay_map_share(&shared, &snapshot);
    copied_by(&shared, 1, false); /* their roots differ */
    overlay_map_clear(&shared);
    reclaim_stop_end();
    overlay_map_check(&snapshot);
    assert_int_equal(snapshot.count, LARGE);
    overlay_map_clear(&snapshot);
    assert_int_equal(reclaim_stop_used(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_and_snapshots_equal_model),        cmocka_unit_test(test_map_is_emptied_in_any_order),
        cmocka_unit_test(test_change_copies_one_node_of_each_level), cmocka_unit_test(test_entries_are_shared),
        cmocka_unit_test(test_large_map_is_left_to_reclaimer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
