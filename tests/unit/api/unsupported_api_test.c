/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths are those of APIs that only Elasticsearch has. */
#include "../../lib/unit.h"

#include "api/request/unsupported_api.h"

static void assert_absent(const char *path, const char *name)
{
    struct slice found;
    if (!unsupported_api_find(slice_from(path), &found))
        fail_msg("%s is not taken for %s", path, name);
    assert_slice_equal(found, name);
}

static void assert_other(const char *path)
{
    struct slice found;
    if (unsupported_api_find(slice_from(path), &found))
        fail_msg("%s is taken for %.*s", path, SLICE_ARG(found));
}

static void test_names(void **state)
{
    (void)state;
    assert_absent("/_segments", "_segments");
    assert_absent("/fs/_segments", "_segments");
    assert_absent("/_cat/allocation", "_cat/allocation");
    assert_absent("/_cat/allocation/vm", "_cat/allocation");
    assert_absent("/fs/_search/template", "_search/template");
    assert_absent("/fs/file/_search/template", "_search/template");
    assert_absent("/fs/file/1/_explain", "_explain");
    assert_absent("/_ml/anomaly_detectors/a/_open", "_ml");
    assert_absent("_snapshot", "_snapshot");
}

static void test_others(void **state)
{
    (void)state;
    assert_other("/");
    assert_other("");
    assert_other("/fs");
    assert_other("/fs/_search");
    assert_other("/_search/scroll");
    assert_other("/_cat/indices");
    assert_other("/_cat");
    assert_other("/fs/_validate/query");
    assert_other("/fs/_field_caps");
    assert_other("/fs/_validate");
    assert_other("/fs/file/_analyze"); /* an id */
    assert_other("/analyze");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
