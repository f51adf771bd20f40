/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: scans find all written entries, in order, in both shapes, and resume at any position.
 *
 * Method: random documents with a few small values are written, changed and deleted through entry
 * sets, as single entries and as posting lists. A table models the values of each document. After
 * each command, the hits of every scan that have their document's batch must be exactly those of
 * the table.
 */
#include "../../lib/unit.h"

#include "base/rand.h"
#include "mapping/entry.h"

#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENTS = 60, VALUES_MAX = 4, INDEX = 7, COMMANDS = 200, FIELD_WORD = 1, FIELD_SIZE = 2, FIELD_RATIO = 3 };

struct model_document {
    bool live;
    uint64_t batch;
    size_t count;
    struct field_value values[VALUES_MAX];
};

static const char *const words[] = {"", "a", "a\0b", "ab", "b", "\xff", "long"};
static char long_word[2000];
static struct model_document documents[DOCUMENTS];

static struct slice word(struct rng *rng)
{
    uint64_t pick = rng_below(rng, sizeof words / sizeof *words);
    if (pick == 6)
        return slice_make(long_word, 250 + rng_below(rng, 1500));
    return pick == 2 ? slice_make("a\0b", 3) : slice_from(words[pick]);
}

static struct field_value random_value(struct rng *rng)
{
    switch (rng_below(rng, 3)) {
    case 0: return (struct field_value){.field = FIELD_WORD, .kind = FIELD_VALUE_BYTES, .bytes = word(rng)};
    case 1:
        return (struct field_value){
            .field = FIELD_SIZE, .kind = FIELD_VALUE_I64, .i64 = (int64_t)rng_below(rng, 7) - 3};
    default:
        return (struct field_value){
            .field = FIELD_RATIO, .kind = FIELD_VALUE_F64, .f64 = ((double)rng_below(rng, 7) - 3) / 2};
    }
}

static struct slice key_of(struct arena *arena, size_t document)
{
    char id[8];
    struct buf buf = BUF_INIT(64);
    entry_document_key(&buf, 1, slice_make(id, (size_t)snprintf(id, sizeof id, "d%02zu", document)));
    struct slice key = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return key;
}

static void put(void *context, struct slice key, struct slice value)
{
    store_batch_put(context, SPACE_ENTRIES, key, value);
}

static void drop(void *context, struct slice key)
{
    store_batch_delete(context, SPACE_ENTRIES, key);
}

static void run_command(struct store *store, struct store_batch *batch, struct rng *rng, tl_ts ts)
{
    struct arena arena = ARENA_INIT;
    struct entry_set set;
    uint64_t number = rng_below(rng, 2) == 0 ? 0 : ts;
    entry_set_init(&set, &arena, INDEX, number);
    for (uint64_t n = number ? 20 : 1; n > 0; n--) {
        size_t at = rng_below(rng, DOCUMENTS);
        struct model_document *d = &documents[at];
        struct model_document old = *d;
        if (d->live && rng_below(rng, 4) == 0) {
            struct slice values = arena_copy(&arena, slice_make(old.values, sizeof old.values));
            entry_set_delete(&set, key_of(&arena, at), (const void *)values.data, old.count, old.batch);
            d->live = false;
            continue;
        }
        d->live = true;
        d->batch = number;
        d->count = rng_below(rng, VALUES_MAX + 1);
        for (size_t i = 0; i < d->count; i++)
            d->values[i] = random_value(rng);
        struct field_value *values = arena_alloc(&arena, sizeof d->values);
        struct field_value *old_values = arena_alloc(&arena, sizeof old.values);
        memcpy(values, d->values, sizeof d->values);
        memcpy(old_values, old.values, sizeof old.values);
        entry_set_write(&set, key_of(&arena, at), values, d->count, old_values, old.live ? old.count : 0, old.batch);
    }
    store_batch_clear(batch);
    store_batch_begin(batch, ts);
    struct entry_sink sink = {put, drop, batch};
    entry_set_emit(&set, &sink);
    assert_int_equal(store_write(store, batch), 0);
    arena_deinit(&arena);
}

static bool has(const struct model_document *d, const struct field_value *value)
{
    for (size_t i = 0; d->live && i < d->count; i++)
        if (d->values[i].field == value->field &&
            (value->kind == FIELD_VALUE_BYTES ? slice_equal(d->values[i].bytes, value->bytes)
                                              : d->values[i].i64 == value->i64))
            return true;
    return false;
}

/*
 * Asserts that a scan names each document with the value once, and that entry_find() finds its
 * entry.
 */
static void check_value(const struct view *view, const struct field_value *value, bool reverse)
{
    struct entry_range range = {.index = INDEX, .field = value->field, .low = value, .high = value, .reverse = reverse};
    struct entry_scan *scan = entry_scan_new(view, &range);
    struct entry_hit hit;
    size_t named[DOCUMENTS] = {0};
    int r;
    while ((r = entry_scan_next(scan, &hit)) == 0) {
        uint16_t type;
        struct slice id;
        assert_true(entry_document_key_parse(hit.document_key, &type, &id));
        size_t at = (size_t)atoi(id.data + 1);
        if (documents[at].live && documents[at].batch == hit.batch)
            named[at]++;
    }
    assert_int_equal(r, ENTRY_SCAN_END);
    entry_scan_free(scan);
    struct arena arena = ARENA_INIT;
    for (size_t at = 0; at < DOCUMENTS; at++) {
        if (!has(&documents[at], value))
            continue;
        assert_true(named[at] >= 1);
        assert_true(named[at] == 1 || value->bytes.len > 256); /* truncated values share an entry */
        assert_int_equal(entry_find(view, INDEX, key_of(&arena, at), value, documents[at].batch), 0);
    }
    arena_deinit(&arena);
}

static void test_entries_equal_model(void **state)
{
    (void)state;
    memset(long_word, 'x', sizeof long_word);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct store *store = store_open_mem();
        struct store_batch *batch = store_batch_new(store);
        struct rng rng;
        rng_init(&rng, seed);
        memset(documents, 0, sizeof documents);
        for (tl_ts ts = 1; ts <= COMMANDS; ts++) {
            run_command(store, batch, &rng, ts);
            struct view view = {store, ts, NULL};
            for (int i = 0; i < 10; i++) {
                struct field_value value = random_value(&rng);
                check_value(&view, &value, i % 2);
            }
        }
        store_batch_free(batch);
        store_close(store);
    }
}

/* Goal: the entry of a value that a field has twice remains when one of the two is removed. */
static void test_entry_remains_while_one_of_equal_values_remains(void **state)
{
    (void)state;
    static const char *const before[] = {"dog", "x", "dog", "ant"};
    static const char *const after[] = {"y", "dog", "z", "ant"};
    struct arena arena = ARENA_INIT;
    struct store *store = store_open_mem();
    struct store_batch *batch = store_batch_new(store);
    struct field_value old_values[4], values[4];
    for (size_t i = 0; i < 4; i++) {
        old_values[i] = (struct field_value){.field = 1, .kind = FIELD_VALUE_BYTES, .bytes = slice_from(before[i])};
        values[i] = (struct field_value){.field = 1, .kind = FIELD_VALUE_BYTES, .bytes = slice_from(after[i])};
    }
    for (tl_ts ts = 1; ts <= 2; ts++) {
        struct entry_set set;
        entry_set_init(&set, &arena, INDEX, 0);
        entry_set_write(&set, key_of(&arena, 1), ts == 1 ? old_values : values, 4, old_values, ts == 1 ? 0 : 4, 0);
        store_batch_clear(batch);
        store_batch_begin(batch, ts);
        entry_set_emit(&set, &(struct entry_sink){put, drop, batch});
        assert_int_equal(store_write(store, batch), 0);
    }
    struct view view = {store, 2, NULL};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(entry_find(&view, INDEX, key_of(&arena, 1), &values[i], 0), 0);
    assert_int_equal(entry_find(&view, INDEX, key_of(&arena, 1), &old_values[1], 0), ENTRY_SCAN_END);
    store_batch_free(batch);
    store_close(store);
    arena_deinit(&arena);
}

/* Goal: encoded values sort as the values do, and decode to the same values. */
static void test_entry_value_encoding_keeps_order_and_decodes(void **state)
{
    (void)state;
    const double doubles[] = {-1.0 / 0.0, -1e300, -2, -0.5, 0, 0.5, 2, 1e300, 1.0 / 0.0};
    const int64_t integers[] = {INT64_MIN, -256, -1, 0, 1, 255, 256, INT64_MAX};
    struct slice bytes[] = {SLICE_LIT(""),     slice_make("\0", 1),  slice_make("\0\0", 2), slice_make("\0\x01", 2),
                            SLICE_LIT("\x01"), SLICE_LIT("a"),       slice_make("a\0", 2),  SLICE_LIT("a\x01"),
                            SLICE_LIT("ab"),   SLICE_LIT("\xff\xff")};
    struct arena arena = ARENA_INIT;
    struct field_value values[3][10];
    size_t counts[3] = {9, 8, 10};
    for (size_t i = 0; i < 9; i++)
        values[0][i] = (struct field_value){.kind = FIELD_VALUE_F64, .f64 = doubles[i]};
    for (size_t i = 0; i < 8; i++)
        values[1][i] = (struct field_value){.kind = FIELD_VALUE_I64, .i64 = integers[i]};
    for (size_t i = 0; i < 10; i++)
        values[2][i] = (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = bytes[i]};
    for (int kind = 0; kind < 3; kind++) {
        struct slice before = SLICE_NONE;
        for (size_t i = 0; i < counts[kind]; i++) {
            struct buf buf = BUF_INIT(4096);
            assert_false(entry_value_encode(&buf, &values[kind][i]));
            struct slice encoded = arena_copy(&arena, buf_as_slice(&buf));
            buf_deinit(&buf);
            assert_true(i == 0 || slice_compare(before, encoded) < 0);
            before = encoded;
            struct field_value back;
            assert_true(entry_value_decode(encoded, values[kind][i].kind, &arena, &back));
            if (kind == 2)
                assert_true(slice_equal(back.bytes, values[kind][i].bytes));
            else
                assert_true(back.i64 == values[kind][i].i64);
            assert_false(
                entry_value_decode(slice_make(encoded.data, encoded.len - 1), values[kind][i].kind, &arena, &back));
        }
    }
    arena_deinit(&arena);
}

static size_t collect(struct entry_scan *scan, size_t limit, char (*ids)[8])
{
    struct entry_hit hit;
    size_t count = 0;
    while (count < limit && entry_scan_next(scan, &hit) == 0)
        snprintf(ids[count++], 8, "%.*s", (int)hit.document_key.len - 2, hit.document_key.data + 2);
    return count;
}

/* Goal: a scan resumed at any position returns the remaining hits, also inside of posting lists. */
static void test_entry_scan_resumes_at_any_position(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    struct store *store = store_open_mem();
    struct store_batch *batch = store_batch_new(store);
    struct arena arena = ARENA_INIT;
    struct entry_sink sink = {put, drop, batch};
    for (tl_ts ts = 1; ts <= 2; ts++) {
        struct entry_set set;
        entry_set_init(&set, &arena, INDEX, ts == 1 ? 0 : ts);
        for (int i = 0; i < COUNT / 2; i++) {
            char id[8];
            struct buf buf = BUF_INIT(64);
            struct field_value *value = arena_alloc(&arena, sizeof *value);
            *value = (struct field_value){.field = FIELD_SIZE, .kind = FIELD_VALUE_I64, .i64 = i % 2};
            entry_document_key(&buf, 1, slice_make(id, (size_t)snprintf(id, sizeof id, "%d-%03d", (int)ts, i)));
            entry_set_write(&set, arena_copy(&arena, buf_as_slice(&buf)), value, 1, NULL, 0, 0);
            buf_deinit(&buf);
        }
        store_batch_clear(batch);
        store_batch_begin(batch, ts);
        assert_int_equal(entry_set_emit(&set, &sink), ts == 1 ? COUNT / 2 : 2);
        assert_int_equal(store_write(store, batch), 0);
    }
    struct view view = {store, 2, NULL};
    for (int reverse = 0; reverse < 2; reverse++) {
        struct entry_range range = {.index = INDEX, .field = FIELD_SIZE, .reverse = reverse};
        static char whole[COUNT + 1][8];
        static char parts[COUNT + 1][8];
        struct entry_scan *scan = entry_scan_new(&view, &range);
        assert_int_equal(collect(scan, COUNT + 1, whole), COUNT);
        entry_scan_free(scan);
        size_t count = 0;
        struct buf position = BUF_INIT(4096);
        buf_byte(&position, 'b');
        for (size_t step = 1; count < COUNT; step = step % 7 + 1) {
            scan = entry_scan_new(&view, &range);
            assert_int_equal(entry_scan_resume(scan, buf_as_slice(&position)), 0);
            count += collect(scan, step < COUNT - count ? step : COUNT - count, parts + count);
            buf_clear(&position);
            entry_scan_position(scan, &position);
            entry_scan_free(scan);
        }
        assert_memory_equal(whole, parts, COUNT * sizeof *whole);
        scan = entry_scan_new(&view, &range);
        assert_int_equal(entry_scan_resume(scan, SLICE_LIT("k\1nonsense")), ENTRY_SCAN_BAD_POSITION);
        entry_scan_free(scan);
        size_t hits;
        assert_int_equal(entry_estimate(&view, &range, 10000, &hits), 0);
        assert_int_equal(hits, COUNT);
        assert_int_equal(entry_estimate(&view, &range, 5, &hits), 0);
        assert_int_equal(hits, 5);
        buf_deinit(&position);
    }
    arena_deinit(&arena);
    store_batch_free(batch);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry_value_encoding_keeps_order_and_decodes),
        cmocka_unit_test(test_entries_equal_model),
        cmocka_unit_test(test_entry_remains_while_one_of_equal_values_remains),
        cmocka_unit_test(test_entry_scan_resumes_at_any_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
