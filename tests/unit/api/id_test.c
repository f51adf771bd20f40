/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids: length, alphabet, order and uniqueness, also when the clock stops or moves back.
 */
#include "../../lib/unit.h"

#include "api/request/id.h"

static void test_documents(void **state)
{
    struct id_source source;
    struct arena arena = ARENA_INIT;
    struct slice last = SLICE_NONE;
    (void)state;
    assert_int_equal(id_source_init(&source), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        struct slice id = id_document(&source, i < 500 ? 1000000 + i : 900000, &arena);
        assert_int_equal(id.len, ID_DOCUMENT_BYTES);
        assert_false(slice_equal(id, last));
        last = id;
    }
    arena_deinit(&arena);
    id_source_deinit(&source);
}

static void test_random(void **state)
{
    struct id_source one, other;
    struct arena arena = ARENA_INIT;
    (void)state;
    assert_int_equal(id_source_init(&one), 0);
    assert_int_equal(id_source_init(&other), 0);
    struct slice first = id_random(&one, &arena);
    assert_int_equal(first.len, ID_BYTES);
    assert_false(slice_equal(first, id_random(&other, &arena)));
    assert_false(slice_equal(first, id_random(&one, &arena)));
    for (size_t i = 0; i < first.len; i++)
        assert_non_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", first.data[i]));
    arena_deinit(&arena);
    id_source_deinit(&one);
    id_source_deinit(&other);
}

static void test_of_names(void **state)
{
    char one[ID_BYTES + 1], other[ID_BYTES + 1];
    (void)state;
    id_of_name(SLICE_LIT("a"), one);
    assert_string_equal(one, "Wg27NAEeWSx5tjakzWInQw"); /* clients and logs keep it: it must not change */
    assert_int_equal(strlen(one), ID_BYTES);
    id_of_name(SLICE_LIT("b"), other);
    assert_string_not_equal(one, other);
}

static void test_query_txns(void **state)
{
    struct id_source source;
    struct arena arena = ARENA_INIT;
    (void)state;
    assert_int_equal(id_source_init(&source), 0);
    assert_int_equal(id_query_txn(&source, 0, &arena).len, ID_BYTES);
    assert_int_equal(id_query_txn_host(id_query_txn(&source, 0, &arena)), 0);
    for (unsigned host = 1; host <= UINT16_MAX; host += 771)
        assert_int_equal(id_query_txn_host(id_query_txn(&source, (uint16_t)host, &arena)), host);
    assert_int_equal(id_query_txn_host(SLICE_LIT("query00g1AAAAAAAAAAAAAAAAAAAAAA")), 0);
    assert_int_equal(id_query_txn_host(SLICE_LIT("query0001AAAAAAAAAAAAAAAAAAAAA")), 0);
    assert_int_equal(id_query_txn_host(SLICE_NONE), 0);
    arena_deinit(&arena);
    id_source_deinit(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_of_names), cmocka_unit_test(test_query_txns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
