/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multiget returns the result of a point read for each key, or that it does not know. Random
 * documents, tombstones and older versions are read by random ascending keys, dense and sparse;
 * dense keys must be answered. Bulks with sorted ids, some of them repeated, must have the same
 * effect as single writes.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include "base/rand.h"
#include "core/documents/doc_multiget.h"

#include <stdio.h>

enum { ROUNDS = 200, IDS = 2000, LOOKUPS = 100 };

static struct slice key_of(char *bytes, unsigned number)
{
    char id[16];
    int len = snprintf(id, sizeof(id), "f%05u", number);
    return doc_key(bytes, 3, 1, slice_make(id, (size_t)len));
}

/*
 * Writes versions of some documents at timestamps 1 to 3, so that the view at 2 differs from the
 * newest state.
 */
static struct store *random_store(struct rng *rng, unsigned one_in)
{
    struct store *store = store_open_mem();
    struct store_batch *batch = store_batch_new(store);
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    for (tl_ts ts = 1; ts <= 3; ts++) {
        store_batch_begin(batch, ts);
        for (unsigned i = 0; i < IDS; i++) {
            char bytes[DOC_KEY_BYTES_MAX];
            if (rng_below(rng, one_in) != 0)
                continue;
            buf_clear(&record);
            doc_encode(&record, &(struct doc){.ts = ts, .version = (int64_t)i, .deleted = rng_below(rng, 4) == 0});
            store_batch_put(batch, SPACE_DOCUMENTS, key_of(bytes, i), buf_as_slice(&record));
        }
        assert_int_equal(store_write(store, batch), 0);
        store_batch_clear(batch);
    }
    buf_deinit(&record);
    store_batch_free(batch);
    return store;
}

/*
 * Compares each result with a point read. Returns: the number of keys that the multiget answered.
 */
static unsigned read_ascending(struct rng *rng, const struct view *view, unsigned first, unsigned step_max)
{
    char bytes[DOC_KEY_BYTES_MAX], last_bytes[DOC_KEY_BYTES_MAX];
    unsigned number = first, known = 0;
    struct doc_multiget *run =
        doc_multiget_new(view, key_of(bytes, first), key_of(last_bytes, first + LOOKUPS * step_max));
    for (unsigned i = 0; i < LOOKUPS; i++, number += 1 + (unsigned)rng_below(rng, step_max)) {
        struct slice key = key_of(bytes, number);
        struct doc walked = {0}, looked_up = {0};
        int expected = doc_get_any(view, 3, 1, slice_from_offset(key, DOC_KEY_PREFIX_BYTES), &looked_up);
        int r = doc_multiget_get(run, key, &walked);
        if (r != DOC_MULTIGET_UNKNOWN) {
            known++;
            assert_int_equal(r, expected);
            assert_true(walked.ts == looked_up.ts && walked.version == looked_up.version);
            assert_int_equal(walked.deleted, looked_up.deleted);
        }
        if (expected == 0)
            doc_release(&looked_up);
    }
    doc_multiget_free(run);
    return known;
}

static void test_multiget_equals_point_reads(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 11);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct store *store = random_store(&rng, 1 + (unsigned)rng_below(&rng, 50));
        struct view view = {store, 1 + (tl_ts)rng_below(&rng, 3), NULL};
        read_ascending(&rng, &view, (unsigned)rng_below(&rng, IDS), 1 + (unsigned)rng_below(&rng, 40));
        store_close(store);
    }
}

static void test_multiget_answers_dense_keys(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 12);
    struct store *dense = random_store(&rng, 1), *sparse = random_store(&rng, 1000);
    assert_int_equal(read_ascending(&rng, &(struct view){dense, 2, NULL}, 5, 2), LOOKUPS);
    assert_true(read_ascending(&rng, &(struct view){sparse, 2, NULL}, 5, 2) >= LOOKUPS - 1);
    store_close(dense);
    store_close(sparse);
}

static void test_multiget_stops_on_sparse_keys(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 13);
    struct store *dense = random_store(&rng, 1);
    assert_true(read_ascending(&rng, &(struct view){dense, 2, NULL}, 0, 30) < LOOKUPS / 2);
    store_close(dense);
}

static void test_multiget_refers_keys_out_of_range_or_order(void **state)
{
    struct rng rng;
    char first[DOC_KEY_BYTES_MAX], last[DOC_KEY_BYTES_MAX], other[DOC_KEY_BYTES_MAX];
    struct doc doc;
    (void)state;
    rng_init(&rng, 14);
    struct store *store = random_store(&rng, 1);
    struct doc_multiget *run = doc_multiget_new(&(struct view){store, 3, NULL}, key_of(first, 10), key_of(last, 20));
    assert_int_equal(doc_multiget_get(run, key_of(other, 9), &doc), DOC_MULTIGET_UNKNOWN);
    assert_int_equal(doc_multiget_get(run, key_of(other, 12), &doc), 0);
    assert_int_equal(doc_multiget_get(run, key_of(other, 11), &doc), DOC_MULTIGET_UNKNOWN);
    assert_int_equal(doc_multiget_get(run, key_of(other, 20), &doc), 0);
    assert_int_equal(doc_multiget_get(run, key_of(other, 21), &doc), DOC_MULTIGET_UNKNOWN);
    doc_multiget_free(run);
    store_close(store);
}

/* Sources depend on the round; an id may occur twice in a row. */
static struct write_item bulk_item(struct rng *rng, unsigned number, char id[16], char source[32])
{
    static const enum write_op ops[] = {WRITE_INDEX, WRITE_INDEX, WRITE_INDEX, WRITE_CREATE, WRITE_DELETE};
    enum write_op op = ops[rng_below(rng, 5)];
    snprintf(id, 16, "f%05u", number);
    snprintf(source, 32, "{\"n\":%u}", (unsigned)rng_below(rng, 3));
    struct write_item item = fixture_item(op, "fs", "", id, source);
    if (op == WRITE_DELETE)
        item.source = SLICE_NONE;
    if (rng_below(rng, 6) == 0)
        item.version = (int64_t)rng_below(rng, 3) + 1;
    return item;
}

static void compare(struct core_fixture *single, struct command *command)
{
    for (size_t i = 0; i < command->write.item_count; i++) {
        const struct write_result *expected = fixture_write_one(single, command->write.items[i]);
        const struct write_result *result = &command->write.results[i];
        assert_int_equal(result->outcome, expected->outcome);
        assert_int_equal(result->conflict, expected->conflict);
        assert_int_equal(result->version, expected->version);
        assert_int_equal(result->seq_no, expected->seq_no);
    }
}

/* `in_transactions`: a few bulks in each, which read the writes of earlier ones. */
static void compare_bulks(bool in_transactions, uint64_t seed)
{
    enum { BULKS = 60, ITEMS = 50, BULKS_OF_ONE = 4 };
    struct core_fixture bulked, single;
    struct rng rng;
    rng_init(&rng, seed);
    fixture_open(&bulked);
    fixture_open(&single);
    for (unsigned b = 0; b < BULKS; b++) {
        char id[16], ids[ITEMS][16], sources[ITEMS][32];
        snprintf(id, sizeof id, "t%u", b / BULKS_OF_ONE);
        struct command *command = fixture_write_command(&bulked, ITEMS);
        unsigned number = (unsigned)rng_below(&rng, 300), step_max = 1 + (unsigned)rng_below(&rng, 20);
        for (unsigned i = 0; i < ITEMS; i++, number += (unsigned)rng_below(&rng, step_max + 1))
            command->write.items[i] = bulk_item(&rng, number, ids[i], sources[i]);
        if (in_transactions && b % BULKS_OF_ONE == 0)
            fixture_txn(&bulked, COMMAND_TXN_BEGIN, id);
        if (in_transactions)
            command->owner.transaction = slice_from(id);
        fixture_run(&bulked, command, 1);
        compare(&single, command);
        if (in_transactions && b % BULKS_OF_ONE == BULKS_OF_ONE - 1)
            fixture_txn(&bulked, COMMAND_TXN_COMMIT, id);
        if (!in_transactions || b % BULKS_OF_ONE == BULKS_OF_ONE - 1)
            assert_int_equal(fixture_count(&bulked, "fs"), fixture_count(&single, "fs"));
    }
    fixture_close(&bulked);
    fixture_close(&single);
}

static void test_sorted_bulk_equals_single_writes(void **state)
{
    (void)state;
    compare_bulks(false, 15);
}

static void test_sorted_bulk_equals_single_writes_in_transaction(void **state)
{
    (void)state;
    for (uint64_t seed = 16; seed < 20; seed++)
        compare_bulks(true, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiget_equals_point_reads),
        cmocka_unit_test(test_multiget_answers_dense_keys),
        cmocka_unit_test(test_multiget_stops_on_sparse_keys),
        cmocka_unit_test(test_multiget_refers_keys_out_of_range_or_order),
        cmocka_unit_test(test_sorted_bulk_equals_single_writes),
        cmocka_unit_test(test_sorted_bulk_equals_single_writes_in_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
