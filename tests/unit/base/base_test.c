/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas, buffers, slices, maps and lists, each against a simple specification.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rand.h"

#include <stdio.h>
#include <stdlib.h>

/* Goal: an arena allocates any size, aligned, and a reset makes its memory usable again. */
static void test_arena_allocates_any_size(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 400000; size = size * 3 + 1) {
            char *p = arena_alloc(&arena, size);
            assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
            memset(p, 0xab, size);
        }
        assert_slice_equal(arena_printf(&arena, "%s-%d", "x", 7), "x-7");
        struct slice longer = arena_printf(&arena, "%0600d", 1);
        assert_int_equal(longer.len, 600);
        assert_int_equal(longer.data[599], '1');
        arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    arena_deinit(&arena);
}

/* Goal: a buffer holds all bytes written up to its maximum, and sets `overflow` beyond it. */
static void test_buf_overflows_at_maximum(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT(10);
    buf_lit(&buf, "12345");
    buf_u64(&buf, 6789);
    assert_slice_equal(buf_as_slice(&buf), "123456789");
    buf_lit(&buf, "ab");
    assert_true(buf.overflow);
    assert_int_equal(buf.len, 9);
    buf_byte(&buf, 'x');
    assert_int_equal(buf.len, 9);
    buf_deinit(&buf);
}

/* Goal: written bytes can be changed, except after an overflow. */
static void test_buf_edits_written_bytes(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT(10);
    buf_insert(&buf, 0, SLICE_LIT("cd"));
    buf_insert(&buf, 0, SLICE_LIT("ab"));
    buf_insert(&buf, 4, SLICE_LIT("ef"));
    buf_insert(&buf, 2, SLICE_LIT(""));
    assert_slice_equal(buf_as_slice(&buf), "abcdef");
    buf_overwrite(&buf, 4, "EF", 2);
    buf_overwrite(&buf, 6, "x", 0);
    assert_slice_equal(buf_from(&buf, 2), "cdEF");
    assert_int_equal(buf_from(&buf, 6).len, 0);
    buf_remove(&buf, 1, 3);
    assert_slice_equal(buf_as_slice(&buf), "aEF");
    buf_chop(&buf, 1);
    buf_truncate(&buf, 5);
    assert_slice_equal(buf_as_slice(&buf), "aE");

    buf_insert(&buf, 1, SLICE_LIT("123456789"));
    assert_true(buf.overflow);
    buf_chop(&buf, 3);
    buf_remove(&buf, 7, 3);
    buf_overwrite(&buf, 7, "xyz", 3);
    buf_insert(&buf, 0, SLICE_LIT("x"));
    assert_int_equal(buf_from(&buf, 0).len, 0);
    assert_slice_equal(buf_as_slice(&buf), "aE");
    buf_truncate(&buf, 1);
    assert_slice_equal(buf_as_slice(&buf), "a");
    buf_clear(&buf);
    buf_byte(&buf, 'a');
    buf_increment_last(&buf);
    assert_slice_equal(buf_as_slice(&buf), "b");
    buf_clear(&buf);
    char *room = buf_reserve(&buf, 4);
    assert_non_null(room);
    memcpy(room, "xyz?", 4);
    buf_commit(&buf, 3);
    assert_slice_equal(buf_as_slice(&buf), "xyz");
    buf_deinit(&buf);

    struct buf none = BUF_INIT(0);
    buf_byte(&none, 'x');
    buf_chop(&none, 1);
    buf_insert(&none, 0, SLICE_LIT("x"));
    assert_int_equal(none.len, 0);
    buf_deinit(&none);
}

static void test_buf_writes_json_and_numbers(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&buf, slice_make("a\"b\\c\n\x01\0z", 9));
    assert_slice_equal(buf_as_slice(&buf), "\"a\\\"b\\\\c\\n\\u0001\\u0000z\"");
    buf_clear(&buf);
    buf_json_string(&buf, SLICE_LIT("\xc3\xa4\xff\"\xe2\x82\xe2\x82\xac\xed\xa0\x80\xf0\x9f\x98\x80\xc3"));
    assert_slice_equal(buf_as_slice(&buf), "\"\xc3\xa4\xef\xbf\xbd\\\"\xef\xbf\xbd\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd"
                                           "\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd\"");
    buf_clear(&buf);
    buf_i64(&buf, INT64_MIN);
    buf_byte(&buf, ' ');
    buf_i64(&buf, -1);
    assert_slice_equal(buf_as_slice(&buf), "-9223372036854775808 -1");
    buf_clear(&buf);
    uint64_t values[] = {0, 1, 127, 128, 300, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        buf_varint(&buf, values[i]);
        buf_u64be(&buf, values[i]);
        buf_u32be(&buf, (uint32_t)values[i]);
    }
    struct slice rest = buf_as_slice(&buf);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint64_t value;
        uint32_t narrow;
        assert_true(slice_take_varint(&rest, &value));
        assert_true(value == values[i]);
        assert_true(slice_take_u64be(&rest, &value));
        assert_true(value == values[i]);
        assert_true(slice_take_u32be(&rest, &narrow));
        assert_true(narrow == (uint32_t)values[i]);
    }
    assert_int_equal(rest.len, 0);
    buf_deinit(&buf);
}

static void test_slice_parses_numbers(void **state)
{
    (void)state;
    uint64_t u;
    int64_t i;
    assert_true(slice_to_u64(SLICE_LIT("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(slice_to_u64(SLICE_LIT("18446744073709551616"), &u));
    assert_false(slice_to_u64(SLICE_LIT(""), &u));
    assert_false(slice_to_u64(SLICE_LIT("1x"), &u));
    assert_true(slice_to_i64(SLICE_LIT("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_false(slice_to_i64(SLICE_LIT("9223372036854775808"), &i));
    assert_false(slice_to_i64(SLICE_LIT("-"), &i));
    double d = 7;
    assert_true(slice_to_double(SLICE_LIT("-1.5e2"), &d) && d == -150);
    assert_true(slice_to_double(SLICE_LIT("3."), &d) && d == 3);
    assert_true(slice_to_double(SLICE_LIT(".5"), &d) && d == 0.5);
    assert_true(slice_to_double(SLICE_LIT("+00012"), &d) && d == 12);
    static const char *const none[] = {"",    "-",        ".",    "e1",    "1e", "1e+", "NaN", "nan",
                                       "inf", "Infinity", "0x10", "1e999", " 1", "1 ",  "1x",  "1..2"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        if (slice_to_double(slice_from(none[k]), &d))
            fail_msg("'%s' was read as a number", none[k]);
    assert_true(d == 12);
}

static void test_slice_compares_words(void **state)
{
    static const char *const words[] = {"no", "off", NULL};
    struct slice texts[] = {SLICE_LIT("b"), SLICE_NONE, SLICE_LIT("ab"), SLICE_LIT("a\0b"), SLICE_LIT("a")};
    (void)state;

    assert_true(slice_is_ignoring_case(SLICE_LIT("Content-TYPE"), "content-type"));
    assert_false(slice_is_ignoring_case(SLICE_LIT("content-typ"), "content-type"));
    assert_false(slice_is_ignoring_case(SLICE_LIT("content-typed"), "content-type"));
    assert_true(slice_is_ignoring_case(SLICE_NONE, ""));
    assert_false(slice_is_ignoring_case(SLICE_NONE, "a"));
    assert_false(slice_is_ignoring_case(SLICE_LIT("\xc3\x84"), "\xc3\xa4")); /* letters of ASCII only */

    assert_true(slice_is_any(SLICE_LIT("off"), words));
    assert_false(slice_is_any(SLICE_LIT("OFF"), words));
    assert_false(slice_is_any(SLICE_NONE, words));

    qsort(texts, 5, sizeof *texts, slice_order);
    for (size_t i = 1; i < 5; i++)
        assert_true(slice_compare(texts[i - 1], texts[i]) < 0);
    assert_slice_equal(texts[4], "b");
}

/* Method: blocks of each size are used and freed before, so that their memory is not zero by chance. */
static void test_zeroed_memory_is_zero(void **state)
{
    enum { MOST = 3000 };
    (void)state;
    for (size_t size = 0; size <= MOST; size++) {
        char *used = mem_alloc(size);
        memset(used, 0x55, size);
        mem_free(used);
        char *zeroed = mem_zalloc(size);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(zeroed[i], 0);
        mem_free(zeroed);
    }
}

/* The hash of two slices equals that of both joined. */
static void test_slice_hash_joins(void **state)
{
    char bytes[40];
    (void)state;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 1);
    for (size_t head = 0; head <= 16; head += 8)
        for (size_t len = head; len <= sizeof bytes; len++)
            assert_true(slice_hash_joined(slice_make(bytes, head), slice_make(bytes + head, len - head)) ==
                        slice_hash(slice_make(bytes, len)));
    assert_true(slice_hash_joined(SLICE_NONE, SLICE_NONE) == slice_hash(SLICE_NONE));
}

static void test_slice_checks_utf8(void **state)
{
    (void)state;
    assert_int_equal(slice_utf8_valid_prefix(SLICE_LIT("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")), 10);
    assert_int_equal(slice_utf8_valid_prefix(SLICE_LIT("ab\xc0\x80")), 2);    /* overlong */
    assert_int_equal(slice_utf8_valid_prefix(SLICE_LIT("a\xed\xa0\x80")), 1); /* surrogate */
    assert_int_equal(slice_utf8_valid_prefix(SLICE_LIT("a\xf4\x90\x80\x80")), 1);
    assert_int_equal(slice_utf8_valid_prefix(SLICE_LIT("a\xe2\x82")), 1); /* truncated */
}

/*
 * Goal: the map equals an array under random puts, gets and removes, including its order.
 * Method: only 200 keys, so that removals, rebuilds and repeated insertions are frequent.
 */
static void test_map_equals_model(void **state)
{
    (void)state;
    enum { KEYS = 200, STEPS = 50000 };
    struct map map = MAP_INIT;
    struct rng rng;
    rng_init(&rng, 1);
    static uintptr_t value_of[KEYS];
    static uint64_t order_of[KEYS];
    uint64_t clock = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t k = rng_below(&rng, KEYS);
        char name[16];
        struct slice key = {name, (size_t)snprintf(name, sizeof name, "key%d", (int)k)};
        assert_true((uintptr_t)map_get(&map, key) == value_of[k]);
        if (rng_below(&rng, 2) == 0) {
            uintptr_t value = (uintptr_t)step + 1;
            assert_true((uintptr_t)map_put(&map, key, (void *)value) == value_of[k]);
            if (value_of[k] == 0)
                order_of[k] = ++clock;
            value_of[k] = value;
        } else {
            assert_true((uintptr_t)map_remove(&map, key) == value_of[k]);
            value_of[k] = 0;
        }
        if (step % 1000 == 0) {
            size_t position = 0;
            size_t seen = 0;
            uint64_t last = 0;
            void *value;
            while (map_next(&map, &position, &key, &value)) {
                int id = atoi(key.data + 3);
                assert_true((uintptr_t)value == value_of[id]);
                assert_true(order_of[id] > last);
                last = order_of[id];
                seen++;
            }
            assert_int_equal(seen, map.count);
        }
    }
    map_deinit(&map);
}

struct item {
    int number;
    struct list link;
};

static void test_list_keeps_order(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    list_append(&head, &items[1].link);
    list_prepend(&head, &items[0].link);
    list_append(&head, &items[2].link);
    int expected = 0;
    list_for_each(link, &head) assert_int_equal(list_entry(link, struct item, link)->number, expected++);
    list_remove(&items[1].link);
    assert_false(list_linked(&items[1].link));
    assert_int_equal(list_entry(head.next->next, struct item, link)->number, 2);
}

/* Goal: a rewind keeps allocations made before the mark, and frees those made after it. */
static void test_arena_rewinds_to_mark(void **state)
{
    struct arena arena = ARENA_INIT;
    struct arena_mark none = arena_mark(&arena);
    (void)state;

    struct slice kept = arena_printf(&arena, "kept");
    struct arena_mark mark = arena_mark(&arena);
    for (size_t size = 1; size < 1000000; size *= 3)
        memset(arena_alloc(&arena, size), 'x', size);
    arena_rewind(&arena, mark);
    assert_slice_equal(kept, "kept");
    assert_int_equal(arena.used, mark.used);
    char *again = arena_alloc(&arena, 1);
    assert_ptr_equal(again, mark.next);
    arena_rewind(&arena, none);
    assert_int_equal(arena.used, 0);
    memset(arena_alloc(&arena, 100), 'y', 100);
    arena_deinit(&arena);
}

/* Goal: reserved bytes are contiguous, and an arena with enough free bytes does not grow. */
static void test_arena_reserves_contiguous_memory(void **state)
{
    struct arena arena = ARENA_INIT;
    (void)state;

    arena_reserve(&arena, 1600);
    char *first = arena_alloc(&arena, 16);
    for (int i = 1; i < 100; i++)
        assert_ptr_equal(arena_alloc(&arena, 16), first + 16 * i);
    arena_reset(&arena);
    arena_reserve(&arena, 1600);
    assert_ptr_equal(arena_alloc(&arena, 16), first);
    arena_deinit(&arena);
}

static void test_buf_escapes_text_in_a_line(void **state)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    buf_escape_line(&buf, SLICE_LIT("a\nb\0\x7f\xc3\xa4 \\"));
    assert_slice_equal(buf_as_slice(&buf), "a\\nb\\000\\177\xc3\xa4 \\\\");
    buf_clear(&buf);
    buf_escape_line(&buf, SLICE_NONE);
    assert_int_equal(buf.len, 0);
    /*
     * ESC, CSI (C1), right-to-left override, isolate, zero width space, a byte that is not UTF-8, a
     * truncated character.
     */
    buf_escape_line(&buf, SLICE_LIT("\x1b[31m\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\x9b\xe2\x82"));
    assert_slice_equal(buf_as_slice(&buf),
                       "\\033[31m\\302\\233\\342\\200\\256\\342\\201\\246\\342\\200\\213\\233\xe2\\202");
    buf_clear(&buf);
    buf_escape_line(&buf, SLICE_LIT("\xe2\x82\xac \xf0\x9f\x94\x92"));
    assert_slice_equal(buf_as_slice(&buf), "\xe2\x82\xac \xf0\x9f\x94\x92");
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_allocates_any_size), cmocka_unit_test(test_buf_overflows_at_maximum),
        cmocka_unit_test(test_buf_edits_written_bytes),  cmocka_unit_test(test_buf_writes_json_and_numbers),
        cmocka_unit_test(test_slice_parses_numbers),     cmocka_unit_test(test_slice_compares_words),
        cmocka_unit_test(test_zeroed_memory_is_zero),    cmocka_unit_test(test_slice_hash_joins),
        cmocka_unit_test(test_slice_checks_utf8),        cmocka_unit_test(test_map_equals_model),
        cmocka_unit_test(test_list_keeps_order),         cmocka_unit_test(test_buf_escapes_text_in_a_line),
        cmocka_unit_test(test_arena_rewinds_to_mark),    cmocka_unit_test(test_arena_reserves_contiguous_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
