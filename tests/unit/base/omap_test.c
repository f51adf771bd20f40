/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered map, compared with a simple model: an array with an element for each possible key.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/omap.h"

#include <stdio.h>

enum { KEY_COUNT = 400, STEPS = 40000 };

struct model {
    bool present[KEY_COUNT];
    int values[KEY_COUNT];
};

/* Keys of different lengths, in the order of their numbers: "", "\0", "\0\0", "\0\1", ... */
static struct slice key_of(int number, char *ret_bytes)
{
    int high = number / 20;
    int low = number % 20;
    size_t len = 0;
    if (high > 0)
        ret_bytes[len++] = (char)(high - 1);
    if (high > 0 && low > 0)
        ret_bytes[len++] = (char)(low * 13);
    if (high == 0 && low > 0)
        return (struct slice){NULL, SIZE_MAX}; /* there is only one empty key */
    return (struct slice){ret_bytes, len};
}

static void assert_at(const struct omap_entry *entry, const struct model *model, int number)
{
    if (number < 0 || number >= KEY_COUNT) {
        assert_null(entry);
        return;
    }
    char bytes[2];
    assert_non_null(entry);
    assert_true(slice_equal(omap_key(entry), key_of(number, bytes)));
    assert_int_equal(omap_value(entry).len, sizeof(int));
    assert_memory_equal(omap_value(entry).data, &model->values[number], sizeof(int));
}

static int model_next(const struct model *model, int number)
{
    while (number < KEY_COUNT && !model->present[number])
        number++;
    return number;
}

static int model_prev(const struct model *model, int number)
{
    while (number >= 0 && !model->present[number])
        number--;
    return number;
}

static void assert_walks_equal(const struct omap *map, const struct model *model)
{
    int number = -1;
    size_t count = 0;
    const struct omap_entry *entry = omap_first(map);
    for (; (number = model_next(model, number + 1)) < KEY_COUNT; entry = omap_next(entry), count++)
        assert_at(entry, model, number);
    assert_null(entry);
    assert_int_equal(map->count, count);
    entry = omap_last(map);
    for (number = KEY_COUNT; (number = model_prev(model, number - 1)) >= 0; entry = omap_prev(entry))
        assert_at(entry, model, number);
    assert_null(entry);
}

/* Goal: map and model stay equal. Method: random operations, with periodic complete iterations. */
static void test_omap_equals_model(void **state)
{
    (void)state;
    struct model model = {0};
    struct omap map;
    omap_init(&map);
    struct rng rng;
    rng_init(&rng, 7);
    for (int step = 0; step < STEPS; step++) {
        char bytes[2];
        int number = (int)rng_below(&rng, KEY_COUNT);
        struct slice key = key_of(number, bytes);
        if (key.len == SIZE_MAX)
            continue;
        switch (rng_below(&rng, 6)) {
        case 0:
        case 1:
            model.present[number] = true;
            model.values[number] = step;
            assert_at(omap_put(&map, key, slice_make(&step, sizeof step)), &model, number);
            break;
        case 2:
            assert_int_equal(omap_remove(&map, key), model.present[number]);
            model.present[number] = false;
            break;
        case 3: assert_at(omap_get(&map, key), &model, model.present[number] ? number : -1); break;
        case 4: assert_at(omap_seek(&map, key), &model, model_next(&model, number)); break;
        default: assert_at(omap_seek_for_prev(&map, key), &model, model_prev(&model, number));
        }
        if (step % 500 == 0)
            assert_walks_equal(&map, &model);
        if (step % 9999 == 0) {
            omap_clear(&map);
            model = (struct model){0};
        }
    }
    assert_walks_equal(&map, &model);
    omap_deinit(&map);
}

/* Goal: a value may be set from the bytes that it replaces; keys and values may be empty. */
static void test_omap_put_accepts_its_own_value(void **state)
{
    (void)state;
    struct omap map;
    omap_init(&map);
    struct omap_entry *entry = omap_put(&map, SLICE_LIT("k"), SLICE_LIT("value"));
    omap_put(&map, SLICE_LIT("k"), slice_from_offset(omap_value(entry), 2));
    assert_slice_equal(omap_value(entry), "lue");
    omap_put(&map, SLICE_LIT("k"), SLICE_NONE);
    assert_int_equal(omap_value(entry).len, 0);
    omap_put(&map, SLICE_NONE, SLICE_LIT("x"));
    assert_ptr_equal(omap_next(omap_get(&map, SLICE_NONE)), entry);
    omap_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_omap_equals_model),
        cmocka_unit_test(test_omap_put_accepts_its_own_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
