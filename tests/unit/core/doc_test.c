/* SPDX-License-Identifier: Apache-2.0 */
/* Document records: encoding and decoding; invalid bytes are rejected. */
#include "../../lib/unit.h"

#include "core/catalog/counter.h"
#include "core/documents/doc.h"

static const struct doc full = {
    .ts = 123456789,
    .version = INT64_MAX,
    .seq_no = 77,
    .batch = UINT64_MAX,
    .single_fields = {"\0\1\0\5", 4},
    .routing = {"r", 1},
    .lease = {"session", 7},
    .source = {"{\"a\":1}", 7},
};

static void test_doc_record_roundtrip(void **state)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct doc doc;
    (void)state;

    doc_encode(&buf, &full);
    assert_int_equal(doc_decode(buf_as_slice(&buf), &doc), 0);
    assert_int_equal(doc.ts, full.ts);
    assert_true(doc.version == INT64_MAX && doc.seq_no == 77 && doc.batch == UINT64_MAX && !doc.deleted);
    assert_slice_equal(doc.routing, "r");
    assert_slice_equal(doc.lease, "session");
    assert_slice_equal(doc.source, "{\"a\":1}");
    assert_true(doc_has_single_entries(&doc, 1) && doc_has_single_entries(&doc, 5) && !doc_has_single_entries(&doc, 2));
    assert_int_equal(doc_entry_batch(&doc, 5), 0);
    assert_true(doc_entry_batch(&doc, 6) == UINT64_MAX);
    buf_deinit(&buf);
}

static void test_doc_tombstone_has_no_source(void **state)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct doc tombstone = {.ts = 1, .version = 3, .seq_no = 9, .deleted = true, .source = SLICE_LIT("ignored")}, doc;
    (void)state;

    doc_encode(&buf, &tombstone);
    assert_int_equal(doc_decode(buf_as_slice(&buf), &doc), 0);
    assert_true(doc.deleted && doc.version == 3 && doc.source.len == 0);
    assert_null(doc.routing.data);
    buf_deinit(&buf);
}

static void test_doc_truncated_record_is_rejected_or_shorter(void **state)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct doc doc;
    (void)state;

    doc_encode(&buf, &full);
    for (size_t len = 0; len < buf.len - full.source.len; len++)
        assert_int_equal(doc_decode(slice_make(buf.data, len), &doc), TL_ERR_CORRUPT);
    buf.data[8] = (char)0x80; /* an unknown flag */
    assert_int_equal(doc_decode(buf_as_slice(&buf), &doc), TL_ERR_CORRUPT);
    buf_deinit(&buf);
}

static void test_doc_keys_sort_by_index_type_and_id(void **state)
{
    char a[DOC_KEY_BYTES_MAX], b[DOC_KEY_BYTES_MAX];
    struct slice id;
    uint32_t index;
    uint16_t type;
    (void)state;

    assert_true(slice_compare(doc_key(a, 1, 65535, SLICE_LIT("z")), doc_key(b, 2, 0, SLICE_LIT("a"))) < 0);
    assert_true(slice_compare(doc_key(a, 1, 1, SLICE_LIT("z")), doc_key(b, 1, 256, SLICE_LIT("a"))) < 0);
    assert_true(doc_key_parse(doc_key(a, 70000, 300, SLICE_LIT("id")), &index, &type, &id));
    assert_true(index == 70000 && type == 300 && slice_is(id, "id"));
    assert_false(doc_key_parse(SLICE_LIT("short"), &index, &type, &id));
}

static void test_counter_record_roundtrip(void **state)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct counter_record record = {5, 1000, 1u << 20}, again;
    char key[COUNTER_KEY_BYTES];
    uint32_t index;
    uint16_t type;
    (void)state;

    counter_encode(&buf, &record);
    assert_int_equal(counter_decode(buf_as_slice(&buf), &again), 0);
    assert_true(again.ts == 5 && again.next_seq_no == 1000 && again.documents == 1u << 20);
    assert_int_equal(counter_decode(slice_make(buf.data, 9), &again), TL_ERR_CORRUPT);
    for (uint64_t above = 0; above < 2; above++) { /* the highest number could not be counted further */
        buf_clear(&buf);
        buf_u64be(&buf, 5);
        buf_varint(&buf, (uint64_t)INT64_MAX + above); /* the next sequence number */
        buf_varint(&buf, 1);
        assert_int_equal(counter_decode(buf_as_slice(&buf), &again), TL_ERR_CORRUPT);
    }
    assert_true(counter_key_parse(counter_key(key, 70000, 300), &index, &type));
    assert_true(index == 70000 && type == 300);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doc_record_roundtrip),
        cmocka_unit_test(test_doc_tombstone_has_no_source),
        cmocka_unit_test(test_doc_truncated_record_is_rejected_or_shorter),
        cmocka_unit_test(test_doc_keys_sort_by_index_type_and_id),
        cmocka_unit_test(test_counter_record_roundtrip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
