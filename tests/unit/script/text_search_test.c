/* SPDX-License-Identifier: Apache-2.0 */
/* Compares text search with a naive search: all parts up to some length, in many texts over a small alphabet. */
#include "../../lib/unit.h"

#include "script/value/text_search.h"

static const struct script_limits limits = {(uint64_t)1 << 40, (size_t)1 << 30, 256};

/* Returns: a text of `length` letters, chosen by the bits of `letters`. */
static struct text *make(struct run *run, uint64_t letters, unsigned length, bool wide)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (unsigned i = 0; i < length; i++)
        text_buf_unit(&out, (uint16_t)((wide ? 0x4e00 : 'a') + (letters >> i & 1)));
    return text_buf_done(&out);
}

static bool stands_at(const struct text *text, const struct text *part, int64_t at)
{
    for (size_t i = 0; i < part->length; i++)
        if (text_at(text, (size_t)at + i) != text_at(part, i))
            return false;
    return true;
}

static void check(struct run *run, const struct text *text, const struct text *part)
{
    int64_t last = (int64_t)text->length - (int64_t)part->length, at = 0;
    struct text_search forth, back;
    text_search_init(&forth, run, text, part, 0);
    for (at = 0; at <= last; at++)
        if (stands_at(text, part, at))
            assert_int_equal(text_search_next(&forth), at);
    assert_int_equal(text_search_next(&forth), -1);
    text_search_init_back(&back, run, text, part, INT32_MAX);
    for (at = last; at >= 0; at--)
        if (stands_at(text, part, at))
            assert_int_equal(text_search_next(&back), at);
    assert_int_equal(text_search_next(&back), -1);
}

static void test_all_small(void **state)
{
    struct arena arena = ARENA_INIT;
    struct run run = {
        .arena = &arena, .limits = &limits, .steps_left = limits.steps_max, .memory_left = limits.memory_bytes_max};
    (void)state;
    for (unsigned part_length = 0; part_length <= 7; part_length++)
        for (uint64_t part = 0; part < (uint64_t)1 << part_length; part++)
            for (uint64_t seed = 0; seed < 60; seed++) {
                uint64_t letters = (seed * 2 + 1) * 0x9e3779b97f4a7c15ull >> (seed % 7);
                bool wide = seed % 3 == 0;
                struct text *text = make(&run, seed < 4 ? 0 : letters, (unsigned)(seed % 40), wide);
                check(&run, text, make(&run, part, part_length, wide));
            }
    arena_deinit(&arena);
}

/* Periodic parts in periodic texts. */
static void test_periods(void **state)
{
    struct arena arena = ARENA_INIT;
    struct run run = {
        .arena = &arena, .limits = &limits, .steps_left = limits.steps_max, .memory_left = limits.memory_bytes_max};
    (void)state;
    for (unsigned period = 1; period <= 9; period++)
        for (uint64_t unit = 0; unit < (uint64_t)1 << period; unit++) {
            uint64_t letters = 0;
            for (unsigned i = 0; i < 64; i++)
                letters |= (unit >> i % period & 1) << i;
            for (unsigned length = period; length <= 30; length += 3) {
                check(&run, make(&run, letters, 63, false), make(&run, letters, length, false));
                check(&run, make(&run, letters ^ (uint64_t)1 << 40, 63, false), make(&run, letters, length, false));
                check(&run, make(&run, letters, 63, false),
                      make(&run, letters ^ (uint64_t)1 << (length - 1), length, false));
            }
        }
    arena_deinit(&arena);
}

static void test_from(void **state)
{
    struct arena arena = ARENA_INIT;
    struct run run = {
        .arena = &arena, .limits = &limits, .steps_left = limits.steps_max, .memory_left = limits.memory_bytes_max};
    (void)state;
    struct text *text = text_new(&run, SLICE_LIT("abcabcabc")), *part = text_new(&run, SLICE_LIT("abc"));
    struct text *empty = text_new(&run, SLICE_LIT(""));
    static const struct {
        int64_t from, first, last;
    } rows[] = {{-5, 0, -1}, {0, 0, 0}, {1, 3, 0}, {3, 3, 3}, {5, 6, 3}, {6, 6, 6}, {7, -1, 6}, {100, -1, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(text_index(&run, text, part, rows[i].from), rows[i].first);
        assert_int_equal(text_last_index(&run, text, part, rows[i].from), rows[i].last);
    }
    assert_int_equal(text_index(&run, text, empty, 4), 4);
    assert_int_equal(text_index(&run, text, empty, 100), 9);
    assert_int_equal(text_last_index(&run, text, empty, 100), 9);
    assert_int_equal(text_index(&run, empty, part, 0), -1);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_small),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
