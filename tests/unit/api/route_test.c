/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route table: fixed segments before parts, going back where the fixed ones lead nowhere, methods, splitting.
 */
#include "../../lib/unit.h"

#include "api/request/handlers.h"
#include "api/request/route.h"

static struct route_table *table;

static int setup(void **state)
{
    (void)state;
    table = route_table_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    route_table_free(table);
    return 0;
}

static struct route_match find(enum http_method method, const char *path, request_handler *expected)
{
    struct route_match match;
    assert_int_equal(route_find(table, method, slice_from(path), false, &match), 0);
    if (expected == NULL)
        assert_null(match.route);
    else if (match.route == NULL || match.route->handler != expected)
        fail_msg("%s leads to %s", path, match.route == NULL ? "no method" : match.route->pattern);
    return match;
}

static void test_parts(void **state)
{
    (void)state;
    struct route_match match = find(HTTP_GET, "/fs/_doc/%2Fa%2Fb", handle_doc_get);
    assert_slice_equal(match.parts[PART_INDEX], "fs");
    assert_slice_equal(match.parts[PART_ID], "%2Fa%2Fb");
    assert_null(match.parts[PART_TYPE].data);
    match = find(HTTP_POST, "/fs/lock/1/_update", handle_doc_update);
    assert_slice_equal(match.parts[PART_TYPE], "lock");
    assert_int_equal(match.form, FORM_TYPED);
    match = find(HTTP_GET, "/", handle_info);
    assert_null(match.parts[PART_INDEX].data);
}

/* /fs/_doc/1/_update: below the fixed "_doc" there is nothing, below {type} there is. */
static void test_route_matches_type_when_fixed_part_has_no_match(void **state)
{
    (void)state;
    struct route_match match = find(HTTP_POST, "/fs/_doc/1/_update", handle_doc_update);
    assert_slice_equal(match.parts[PART_TYPE], "_doc");
    find(HTTP_PUT, "/fs/_bulk", handle_bulk);
    find(HTTP_PUT, "/fs/lock/_bulk", handle_bulk);
}

/* The name of a call is no id, whatever precedes it; with a method that the call lacks, it may be one. */
static void test_names_of_calls(void **state)
{
    (void)state;
    struct route_match match = find(HTTP_POST, "/fs/_doc/_search", handle_search);
    assert_slice_equal(match.parts[PART_TYPE], "_doc");
    assert_null(match.parts[PART_ID].data);
    find(HTTP_GET, "/fs/_doc/_count", handle_count);
    find(HTTP_POST, "/fs/_doc/_delete_by_query", handle_delete_by_query);
    find(HTTP_POST, "/fs/_source/_search", handle_search);
    find(HTTP_POST, "/fs/_doc/_termvectors", handle_absent);
    find(HTTP_PUT, "/fs/_doc/_search", handle_doc_index);
    find(HTTP_POST, "/fs/_doc/_other", handle_doc_index);
    find(HTTP_PUT, "/fs/file/_search", NULL);
    match = find(HTTP_OTHER, "/fs/_doc/_bulk", NULL);
    assert_true((match.methods & (1u << HTTP_DELETE)) != 0 && (match.methods & (1u << HTTP_POST)) != 0);
}

static void test_methods(void **state)
{
    (void)state;
    struct route_match match = find(HTTP_PUT, "/fs/_update/1", NULL);
    assert_int_equal(match.methods, 1u << HTTP_POST);
    assert_int_equal(match.form, FORM_TYPELESS);
    match = find(HTTP_OTHER, "/_bulk", NULL);
    assert_int_equal(match.methods, (1u << HTTP_POST) | (1u << HTTP_PUT));
    /* method by method, as 5.6 looks: /_bulk is then an index */
    assert_int_equal(route_find(table, HTTP_DELETE, SLICE_LIT("/_bulk"), true, &match), 0);
    assert_ptr_equal(match.route->handler, handle_index_delete);
    assert_int_equal(route_find(table, HTTP_POST, SLICE_LIT("/"), true, &match), ROUTE_NONE);
}

static void test_split(void **state)
{
    struct route_match match;
    (void)state;
    find(HTTP_PUT, "/fs/_doc/1/", handle_doc_index);
    find(HTTP_GET, "//", handle_info);
    assert_int_equal(route_find(table, HTTP_PUT, SLICE_LIT("//fs/_doc/5"), false, &match), ROUTE_NONE);
    assert_int_equal(route_find(table, HTTP_GET, SLICE_LIT("/a/b/c/d/e"), false, &match), ROUTE_NONE);
    assert_int_equal(route_find(table, HTTP_GET, SLICE_LIT("/1/2/3/4/5/6/7/8/9/10/11/12/13/14"), false, &match),
                     ROUTE_NONE);
    assert_int_equal(route_find(table, HTTP_GET, SLICE_LIT("x"), false, &match), 0);
}

static const char *parameter(enum http_method method, const char *path, enum route_part part)
{
    struct route_match match;
    assert_int_equal(route_find(table, method, slice_from(path), false, &match), 0);
    return route_parameter_name(table, match.route, part);
}

/* Parts that another path of the call has, by the names that Elasticsearch gives them. */
static void test_parts_as_parameters(void **state)
{
    (void)state;
    assert_string_equal(parameter(HTTP_GET, "/_search", PART_INDEX), "index");
    assert_string_equal(parameter(HTTP_GET, "/fs/_search", PART_INDEX), "index");
    assert_null(parameter(HTTP_GET, "/_search", PART_TYPE)); /* of a typed path, another form */
    assert_string_equal(parameter(HTTP_GET, "/fs/file/_search", PART_TYPE), "type");
    assert_string_equal(parameter(HTTP_PUT, "/_alias", PART_NAME), "name");
    assert_string_equal(parameter(HTTP_GET, "/_cat/aliases", PART_NAME), "alias");
    assert_string_equal(parameter(HTTP_GET, "/_cluster/state", PART_INDEX), "indices");
    assert_string_equal(parameter(HTTP_POST, "/fs/_doc", PART_ID), "id");
    assert_null(parameter(HTTP_POST, "/_bulk", PART_INDEX)); /* the handler reads it */
    assert_null(parameter(HTTP_DELETE, "/_search/scroll", PART_SCROLL_ID));
    assert_null(parameter(HTTP_GET, "/fs", PART_METRIC));
    assert_null(parameter(HTTP_GET, "/_session", PART_ID)); /* our own calls have them in the path */
    assert_string_equal(parameter(HTTP_GET, "/_session/1", PART_ID), "id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_route_matches_type_when_fixed_part_has_no_match),
        cmocka_unit_test(test_names_of_calls), cmocka_unit_test(test_methods),
        cmocka_unit_test(test_split),          cmocka_unit_test(test_parts_as_parameters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
