/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction's overlay: lookups, sizes, savepoints, and its batch. */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"
#include "base/rand.h"
#include "store/view.h"

#include <stdio.h>

static void assert_holds(const struct overlay *overlay, enum store_space space, const char *key, const char *value)
{
    struct slice got;
    assert_int_equal(overlay_get(overlay, space, slice_from(key), &got), 0);
    if (value == NULL)
        assert_null(got.data);
    else
        assert_slice_equal(got, value);
}

static void assert_unchanged(const struct overlay *overlay, enum store_space space, const char *key)
{
    struct slice got;
    assert_int_equal(overlay_get(overlay, space, slice_from(key), &got), STORE_NOT_FOUND);
}

/* Goal: a put, an empty put, a deletion and absence are four different results, in each space. */
static void test_overlay_distinguishes_put_delete_and_absence(void **state)
{
    (void)state;
    struct overlay *overlay = overlay_new();
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("a"), SLICE_LIT("1"));
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("b"), SLICE_NONE);
    overlay_delete(overlay, SPACE_TREE, SLICE_LIT("c"));
    assert_holds(overlay, SPACE_TREE, "a", "1");
    assert_holds(overlay, SPACE_TREE, "b", "");
    assert_holds(overlay, SPACE_TREE, "c", NULL);
    assert_unchanged(overlay, SPACE_TREE, "d");
    assert_unchanged(overlay, SPACE_FEED, "a");
    assert_int_equal(overlay_count(overlay), 3);
    assert_int_equal(overlay_bytes(overlay), 4);
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("c"), SLICE_LIT("333"));
    assert_holds(overlay, SPACE_TREE, "c", "333");
    assert_int_equal(overlay_count(overlay), 3);
    assert_int_equal(overlay_bytes(overlay), 7);
    overlay_clear(overlay);
    assert_int_equal(overlay_count(overlay), 0);
    assert_int_equal(overlay_bytes(overlay), 0);
    assert_unchanged(overlay, SPACE_TREE, "a");
    overlay_free(overlay);
}

/*
 * Goal: a rollback to a savepoint undoes new keys, replaced values and deletions, also with nested
 * savepoints.
 */
static void test_overlay_savepoints_nest(void **state)
{
    (void)state;
    struct overlay *overlay = overlay_new();
    overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("a"), SLICE_LIT("1"));
    size_t outer = overlay_savepoint(overlay);
    overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("a"), SLICE_LIT("2"));
    overlay_put(overlay, SPACE_ENTRIES, SLICE_LIT("e"), SLICE_LIT(""));
    size_t inner = overlay_savepoint(overlay);
    overlay_delete(overlay, SPACE_DOCUMENTS, SLICE_LIT("a"));
    overlay_delete(overlay, SPACE_ENTRIES, SLICE_LIT("e"));
    overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("b"), SLICE_LIT("3"));
    overlay_rollback_to(overlay, inner);
    assert_holds(overlay, SPACE_DOCUMENTS, "a", "2");
    assert_holds(overlay, SPACE_ENTRIES, "e", "");
    assert_unchanged(overlay, SPACE_DOCUMENTS, "b");
    overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("c"), SLICE_LIT("4"));
    overlay_rollback_to(overlay, outer);
    assert_holds(overlay, SPACE_DOCUMENTS, "a", "1");
    assert_unchanged(overlay, SPACE_ENTRIES, "e");
    assert_int_equal(overlay_count(overlay), 1);
    assert_int_equal(overlay_bytes(overlay), 2);
    overlay_put(overlay, SPACE_ENTRIES, SLICE_LIT("e"), SLICE_LIT("xyz"));
    overlay_release_savepoints(overlay);
    overlay_rollback_to(overlay, overlay_savepoint(overlay)); /* to the current state */
    assert_holds(overlay, SPACE_ENTRIES, "e", "xyz");
    assert_int_equal(overlay_bytes_in(overlay, SPACE_DOCUMENTS), 2);
    assert_int_equal(overlay_bytes_in(overlay, SPACE_ENTRIES), 4);
    overlay_free(overlay);
}

/* Goal: a rollback restores each lookup and the size, whatever was done after the savepoint. */
static void test_overlay_rollback_restores_state_and_size(void **state)
{
    (void)state;
    enum { KEYS = 40 };
    struct rng rng;
    rng_init(&rng, 3);
    struct overlay *overlay = overlay_new();
    for (int round = 0; round < 300; round++) {
        struct slice before[KEYS];
        char copies[KEYS][16];
        char names[KEYS][16];
        size_t mark = overlay_savepoint(overlay);
        size_t bytes = overlay_bytes(overlay);
        size_t count = overlay_count(overlay);
        int silent[KEYS];
        for (int i = 0; i < KEYS; i++) {
            snprintf(names[i], sizeof names[i], "k%d", i);
            silent[i] = overlay_get(overlay, SPACE_TREE, slice_from(names[i]), &before[i]);
            if (silent[i] == 0 && before[i].data != NULL) {
                memcpy(copies[i], before[i].data, before[i].len);
                before[i].data = copies[i];
            }
        }
        for (int step = 0; step < 30; step++) {
            struct slice key = slice_from(names[rng_below(&rng, KEYS)]);
            if (rng_below(&rng, 3) == 0)
                overlay_delete(overlay, SPACE_TREE, key);
            else
                overlay_put(overlay, SPACE_TREE, key, slice_make("abcdefghijkl", rng_below(&rng, 12)));
        }
        if (rng_below(&rng, 2) == 0)
            continue; /* not rolled back, so that rounds start from different states */
        overlay_rollback_to(overlay, mark);
        assert_int_equal(overlay_bytes(overlay), bytes);
        assert_int_equal(overlay_count(overlay), count);
        for (int i = 0; i < KEYS; i++) {
            struct slice now = SLICE_NONE;
            assert_int_equal(overlay_get(overlay, SPACE_TREE, slice_from(names[i]), &now), silent[i]);
            if (silent[i] != 0)
                continue;
            assert_true(slice_equal(now, before[i]));
            assert_int_equal(now.data == NULL, before[i].data == NULL);
        }
    }
    overlay_free(overlay);
}

struct seen {
    const struct overlay *overlay;
    size_t count;
    size_t bytes;
};

static void see(void *context, enum store_space space, struct slice key, struct slice value)
{
    struct seen *seen = context;
    struct slice now;
    assert_int_equal(overlay_get(seen->overlay, space, key, &now), 0);
    assert_true(slice_equal(now, value) && (now.data == NULL) == (value.data == NULL));
    seen->count++;
    seen->bytes += key.len + value.len;
}

/* Every write is in one chunk. Returns: the number of changed chunks. */
static size_t check_chunks(const struct overlay *overlay)
{
    struct seen seen = {overlay, 0, 0};
    size_t changed = 0;
    for (size_t i = 0; i < overlay_chunk_count(overlay); i++) {
        size_t before = seen.count;
        changed += overlay_chunk(overlay, i)->changed;
        overlay_each_of_chunk(overlay, i, see, &seen);
        assert_true(seen.count > before);
        for (size_t j = 0; j < i; j++)
            assert_true(overlay_chunk(overlay, j)->number != overlay_chunk(overlay, i)->number);
    }
    assert_int_equal(seen.count, overlay_count(overlay));
    assert_int_equal(seen.bytes, overlay_bytes(overlay));
    return changed;
}

/* Marks all chunks as saved. Returns: how many had changed. */
static size_t save_chunks(struct overlay *overlay)
{
    size_t count = 0, index;
    for (; overlay_changed_chunk(overlay, &index); count++) {
        struct seen seen = {overlay, 0, 0};
        overlay_each_of_chunk(overlay, index, see, &seen);
        assert_true(seen.count == 1 || seen.bytes < 2 * OVERLAY_CHUNK_BYTES);
        overlay_chunk_saved(overlay, index, 1, 1);
    }
    assert_int_equal(check_chunks(overlay), 0);
    return count;
}

/*
 * Goal: each write is in one chunk, a change marks its chunk only, and chunks stay small, also
 * across rollbacks, snapshots and values that grow.
 */
static void test_overlay_chunks(void **state)
{
    (void)state;
    enum { KEYS = 3000, VALUE = 5000 };
    static char value[VALUE];
    struct rng rng;
    rng_init(&rng, 5);
    struct overlay *overlay = overlay_new(), *snapshot = NULL;
    assert_int_equal(save_chunks(overlay), 0);
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i * 7919 % KEYS);
        overlay_put(overlay, i % 3 == 0 ? SPACE_TREE : SPACE_DOCUMENTS, slice_from(key), slice_make(value, 100));
    }
    size_t count = save_chunks(overlay);
    assert_true(count > 10 && count < KEYS / 50);
    overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("new"), SLICE_LIT("1"));
    overlay_delete(overlay, SPACE_TREE, SLICE_LIT("k0")); /* the first */
    assert_int_equal(check_chunks(overlay), 2);
    assert_int_equal(save_chunks(overlay), 2);
    for (int round = 0; round < 200; round++) {
        size_t mark = overlay_savepoint(overlay);
        for (int step = 0; step < 20; step++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", (int)rng_below(&rng, 2 * KEYS));
            overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), slice_make(value, rng_below(&rng, VALUE)));
        }
        if (rng_below(&rng, 2) == 0)
            overlay_rollback_to(overlay, mark);
        overlay_release_savepoints(overlay);
        if (rng_below(&rng, 10) == 0) {
            overlay_free(snapshot);
            snapshot = overlay_snapshot(overlay);
            overlay_check(overlay);
        }
        if (rng_below(&rng, 3) == 0)
            save_chunks(overlay);
    }
    overlay_clear(overlay);
    assert_int_equal(save_chunks(overlay), 0);
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("k"), SLICE_NONE);
    assert_int_equal(save_chunks(overlay), 1);
    overlay_free(overlay);
    overlay_check(snapshot);
    overlay_free(snapshot);
}

enum { MODEL_KEYS = 60, MODEL_SNAPSHOTS = 5 };

/* What an overlay has for each key: 0: nothing, 1: a deletion, else a value of so many bytes less 2. */
struct model {
    unsigned char values[MODEL_KEYS];
};

static struct slice model_key(char text[16], unsigned number)
{
    return slice_make(text, (size_t)snprintf(text, 16, "%u", number * 7919 % 1000));
}

static void change_at_random(struct overlay *overlay, struct model *model, struct rng *rng)
{
    char text[16];
    unsigned number = (unsigned)rng_below(rng, MODEL_KEYS);
    enum store_space space = number % 2 == 0 ? SPACE_DOCUMENTS : SPACE_ENTRIES;
    model->values[number] = (unsigned char)(1 + rng_below(rng, 14));
    if (model->values[number] == 1)
        overlay_delete(overlay, space, model_key(text, number));
    else
        overlay_put(overlay, space, model_key(text, number), slice_make("abcdefghijkl", model->values[number] - 2U));
}

static void compare_with_model(const struct overlay *overlay, const struct model *model)
{
    size_t count = 0, bytes = 0;
    overlay_check(overlay);
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        char text[16];
        struct slice key = model_key(text, i), value = SLICE_NONE;
        int r = overlay_get(overlay, i % 2 == 0 ? SPACE_DOCUMENTS : SPACE_ENTRIES, key, &value);
        assert_int_equal(r, model->values[i] == 0 ? STORE_NOT_FOUND : 0);
        if (r != 0)
            continue;
        assert_int_equal(value.data == NULL, model->values[i] == 1);
        assert_int_equal(value.len, model->values[i] == 1 ? 0 : model->values[i] - 2);
        count++;
        bytes += key.len + value.len;
    }
    assert_int_equal(overlay_count(overlay), count);
    assert_int_equal(overlay_bytes(overlay), bytes);
    assert_int_equal(overlay_memory_bytes(overlay), bytes + count * OVERLAY_ENTRY_BYTES);
}

/*
 * Goal: each snapshot equals the overlay at its time, after any later writes and rollbacks, and
 * whichever of them ends first; the overlay is as it would be without snapshots.
 */
static void test_overlay_snapshots_equal_model(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct overlay *overlay = overlay_new(), *snapshots[MODEL_SNAPSHOTS] = {NULL};
        struct model now = {{0}}, then[MODEL_SNAPSHOTS];
        struct rng rng;
        rng_init(&rng, seed);
        for (int round = 0; round < 200; round++) {
            struct model before = now;
            size_t savepoint = overlay_savepoint(overlay);
            for (uint64_t steps = rng_below(&rng, 10); steps > 0; steps--)
                change_at_random(overlay, &now, &rng);
            if (rng_below(&rng, 3) == 0) {
                overlay_rollback_to(overlay, savepoint);
                now = before;
            }
            overlay_release_savepoints(overlay);
            unsigned slot = (unsigned)rng_below(&rng, MODEL_SNAPSHOTS);
            overlay_free(tl_steal(snapshots[slot]));
            if (rng_below(&rng, 3) > 0) {
                snapshots[slot] = overlay_snapshot(overlay);
                then[slot] = now;
            }
            compare_with_model(overlay, &now);
            for (int i = 0; i < MODEL_SNAPSHOTS; i++)
                if (snapshots[i] != NULL)
                    compare_with_model(snapshots[i], &then[i]);
            check_chunks(overlay);
            if (rng_below(&rng, 10) == 0)
                save_chunks(overlay);
        }
        overlay_free(overlay);
        for (int i = 0; i < MODEL_SNAPSHOTS; i++) {
            if (snapshots[i] != NULL)
                compare_with_model(snapshots[i], &then[i]);
            overlay_free(snapshots[i]);
        }
        assert_int_equal(budget_tallied(BUDGET_TRANSACTIONS), 0);
    }
}

/*
 * Goal: a snapshot copies nothing, and a write after it a few nodes, also of an overlay of 100,000
 * keys. (It was copied whole.)
 */
static void test_overlay_write_after_snapshot_copies_few_nodes(void **state)
{
    (void)state;
    enum { KEYS = 100000, LEVELS = 8, ROUNDS = 50 };
    struct overlay *overlay = overlay_new();
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i * 7919 % KEYS);
        overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), SLICE_LIT("a value"));
    }
    assert_int_equal(overlay_nodes_copied(overlay), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct overlay *snapshot = overlay_snapshot(overlay);
        uint64_t before = overlay_nodes_copied(overlay);
        size_t used = mem_used();
        snprintf(key, sizeof key, "k%d", round * 977);
        size_t savepoint = overlay_savepoint(overlay);
        overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), SLICE_LIT("another"));
        overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("new"), SLICE_LIT("another"));
        if (round % 2 == 0)
            overlay_rollback_to(overlay, savepoint);
        overlay_release_savepoints(overlay);
        assert_true(overlay_nodes_copied(overlay) - before <= 2 * LEVELS);
        assert_true(mem_used() <= used + MEM_UNCOUNTED_MAX);
        assert_int_equal(overlay_count(snapshot), round < 2 ? KEYS : KEYS + 1);
        overlay_free(snapshot);
    }
    overlay_free(overlay);
}

/* Goal: each changed chunk is saved, though the first and the third one change all the time. */
static void test_overlay_chunks_take_turns(void **state)
{
    (void)state;
    enum { KEYS = 2000 };
    struct overlay *overlay = overlay_new();
    size_t index, saved = 0;
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), SLICE_LIT("a value of some length, for large chunks"));
    }
    size_t hot = overlay_chunk(overlay, 2)->first, count = overlay_chunk_count(overlay);
    assert_true(count > 5);
    snprintf(key, sizeof key, "k%zu", hot);
    for (; check_chunks(overlay) > 2; saved++) {
        assert_true(overlay_changed_chunk(overlay, &index));
        overlay_chunk_saved(overlay, index, 1, 1);
        overlay_put(overlay, SPACE_DOCUMENTS, SLICE_LIT("k0"), SLICE_LIT("1"));
        overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), SLICE_LIT("1"));
        assert_true(saved < 2 * count);
    }
    overlay_free(overlay);
}

/* Goal: after applying an overlay the store returns what the overlay did. */
static void test_overlay_apply_writes_everything(void **state)
{
    (void)state;
    struct store *store = store_open_mem();
    struct store_batch *batch = store_batch_new(store);
    store_batch_begin(batch, 10);
    store_batch_put(batch, SPACE_TREE, SLICE_LIT("gone"), SLICE_LIT("x"));
    assert_int_equal(store_write(store, batch), 0);
    struct overlay *overlay = overlay_new();
    overlay_delete(overlay, SPACE_TREE, SLICE_LIT("gone"));
    overlay_put(overlay, SPACE_TREE, SLICE_LIT("new"), SLICE_LIT("y"));
    overlay_put(overlay, SPACE_SYSTEM, SLICE_LIT("s"), SLICE_LIT("z"));
    store_batch_clear(batch);
    store_batch_begin(batch, 20);
    overlay_apply(overlay, batch);
    assert_int_equal(store_batch_count(batch), 3);
    assert_int_equal(store_batch_bytes(batch), overlay_bytes(overlay));
    assert_int_equal(store_write(store, batch), 0);
    struct store_value value;
    assert_int_equal(store_get(store, SPACE_TREE, 20, SLICE_LIT("gone"), &value), STORE_NOT_FOUND);
    assert_int_equal(store_get(store, SPACE_TREE, 20, SLICE_LIT("new"), &value), 0);
    assert_slice_equal(value.bytes, "y");
    store_value_release(&value);
    assert_int_equal(store_get(store, SPACE_SYSTEM, 0, SLICE_LIT("s"), &value), 0);
    store_value_release(&value);
    overlay_free(overlay);
    store_batch_free(batch);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlay_distinguishes_put_delete_and_absence),
        cmocka_unit_test(test_overlay_savepoints_nest),
        cmocka_unit_test(test_overlay_rollback_restores_state_and_size),
        cmocka_unit_test(test_overlay_chunks),
        cmocka_unit_test(test_overlay_snapshots_equal_model),
        cmocka_unit_test(test_overlay_write_after_snapshot_copies_few_nodes),
        cmocka_unit_test(test_overlay_chunks_take_turns),
        cmocka_unit_test(test_overlay_apply_writes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
