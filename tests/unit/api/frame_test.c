/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the stream GET /_events: a viewer that applies each frame's changes in order has the current rows, under
 * numbers that never mean another row.
 *
 * A model, a plain table, applies the frames; sections with random keys and texts follow each other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/unit.h"

#include "api/page/frame.h"
#include "base/rand.h"

enum { KEYS = 12, ROUNDS = 300, NUMBERS = 4096 };

static int reported[NUMBERS]; /* the text of each number, 0: none */
static int key_of[NUMBERS]; /* the key that had it first, + 1 */

/* Reads what frame_write() has written: {"put":[{"row":N,"t":T,"k":K},…],"drop":[N,…]}. */
static void follow(struct slice text)
{
    const char *at = text.data, *drop = strstr(at, "\"drop\":[");
    for (const char *put = strstr(at, "{\"row\":"); put != NULL && put < drop; put = strstr(put + 1, "{\"row\":")) {
        int row, value, key;
        assert_int_equal(sscanf(put, "{\"row\":%d,\"t\":%d,\"k\":%d}", &row, &value, &key), 3);
        assert_true(row > 0 && row < NUMBERS && (key_of[row] == 0 || key_of[row] == key + 1));
        reported[row] = value;
        key_of[row] = key + 1;
    }
    for (drop += strlen("\"drop\":["); *drop != ']'; drop += *drop == ',') {
        char *end;
        long row = strtol(drop, &end, 10);
        assert_true(row > 0 && row < NUMBERS && reported[row] != 0);
        reported[row] = 0;
        drop = end;
    }
}

static void expect(const int *texts)
{
    int found[KEYS] = {0};
    for (int row = 0; row < NUMBERS; row++)
        if (reported[row] != 0) {
            assert_int_equal(found[key_of[row] - 1], 0);
            found[key_of[row] - 1] = reported[row];
        }
    assert_memory_equal(found, texts, sizeof found);
}

static void write_terminated(const struct frame_section *section, bool all, struct buf *to)
{
    buf_clear(to);
    frame_write(section, all, to);
    buf_byte(to, '\0');
}

static void test_changes_add_up(void **state)
{
    struct frame_section section = {.arena = ARENA_INIT};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct rng random;
    int texts[KEYS] = {0};
    (void)state;
    rng_init(&random, 7);
    for (int round = 0; round < ROUNDS; round++) {
        struct frame_section next = {.arena = ARENA_INIT};
        bool changed = false;
        for (int key = KEYS - 1; key >= 0; key--) { /* not in their order */
            char name[16], row[48];
            int before = texts[key];
            if (rng_below(&random, 4) == 0)
                texts[key] = (int)rng_below(&random, 3);
            changed = changed || texts[key] != before;
            snprintf(name, sizeof name, "k%02d", key);
            snprintf(row, sizeof row, "\"t\":%d,\"k\":%d", texts[key], key);
            if (texts[key] != 0)
                frame_add(&next, slice_from(name), slice_from(row));
            if (texts[key] != 0 && rng_below(&random, 8) == 0)
                frame_add(&next, slice_from(name), slice_from(row)); /* added twice */
        }
        frame_take(&section, &next);
        assert_int_equal(frame_changed(&section), changed);
        write_terminated(&section, false, &text);
        follow(slice_from(text.data));
        expect(texts);
        if (round % 50 == 0) { /* a new viewer */
            memset(reported, 0, sizeof reported);
            write_terminated(&section, true, &text);
            follow(slice_from(text.data));
            expect(texts);
        }
        frame_section_deinit(&next);
    }
    frame_section_deinit(&section);
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
