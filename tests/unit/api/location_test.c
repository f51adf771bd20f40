/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a body: of keys, members, ends; and where the first value of a text stops.
 */
#include "../../lib/unit.h"

#include "api/request/location.h"
#include "json/each.h"

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static struct json_doc parse(const char *text)
{
    struct json_doc doc;
    struct problem problem;
    assert_int_equal(json_parse(&arena, slice_from(text), DIALECT_7, 0, &doc, &problem), 0);
    return doc;
}

static void test_members(void **state)
{
    (void)state;
    struct json_doc doc = parse(" {\"a\" : {\"b\": \"x\\\"}\"},\n \"c\": [1, {}] }");
    yyjson_val *a = unsafe_yyjson_get_first(doc.root);
    size_t line, column;
    assert_int_equal(location_of_root(&doc), 1);
    assert_int_equal(location_of_string(&doc, a), 2);
    assert_int_equal(location_of_member(&doc, a), 8);
    assert_int_equal(doc.source.data[location_of_end(&doc, 8)], '}');
    assert_int_equal(doc.source.data[location_after(&doc, 8)], ',');
    yyjson_val *c = unsafe_yyjson_get_next(a + 1);
    location_line(&doc, location_of_member(&doc, c), &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 7);
    assert_string_equal(json_token(yyjson_obj_iter_get_val(c)), "START_ARRAY");
}

static void first_value(const char *text, const char *expected)
{
    assert_slice_equal(location_first_value(slice_from(text)), expected);
}

static void test_first_value(void **state)
{
    (void)state;
    first_value("{\"a\":1} x", "{\"a\":1}");
    first_value("{\"a\":\"}\"}{}", "{\"a\":\"}\"}");
    first_value("{\"a\":1", "{\"a\":1");
    first_value("{\"a", "{\"a");
    first_value("", "");
    first_value("[1,[2]] ,", "[1,[2]]");
    first_value("\xef\xbb\xbf{} y", "\xef\xbb\xbf{}");
    assert_int_equal(location_first_value(slice_make("{\"a\":\0x}", 8)).len, 8);
}

/* Jackson passes over them, wherever they are. */
static void test_comments_are_passed_over(void **state)
{
    (void)state;
    first_value("/* } */ {\"a\":1} x", "/* } */ {\"a\":1}");
    first_value(" // {\n/**/{} y", " // {\n/**/{}");
    first_value("{\"a\":1/*}*/,\"b\": // \"\r[2]} z", "{\"a\":1/*}*/,\"b\": // \"\r[2]}");
    first_value("{\"a\":\"/*\"} */", "{\"a\":\"/*\"}");
    first_value("{/* }", "{/* }");
    first_value("{/", "{/");
    first_value("/x {}", "/x");
    struct json_doc doc = parse("/* \"a\" */{\"a\" /* : */ : // 1\n {\"b\": 1 /* } */}}");
    yyjson_val *a = unsafe_yyjson_get_first(doc.root);
    assert_int_equal(location_of_root(&doc), 9);
    assert_int_equal(doc.source.data[location_of_member(&doc, a)], '{');
    assert_int_equal(location_of_end(&doc, location_of_member(&doc, a)), doc.source.len - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members), cmocka_unit_test(test_first_value),
                                       cmocka_unit_test(test_comments_are_passed_over)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
