/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths are those of APIs that only Elasticsearch has. */
#include "../../lib/unit.h"

#include "api/request/unsupported_api.h"

#include <stdio.h>

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
    assert_absent("/fs/_block/write", "_block");
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

/* Goal: each name is found, at the ends of the table and within it. */
static void test_each_name(void **state)
{
    (void)state;
    static const char names[] =
        "_async_search _autoscaling _block _cat/allocation _cat/fielddata _cat/ml _cat/nodeattrs _cat/pending_tasks "
        "_cat/plugins _cat/recovery _cat/repositories _cat/segments _cat/snapshots _cat/tasks "
        "_cat/thread_pool _cat/transforms _ccr _clone _cluster/allocation _cluster/pending_tasks "
        "_cluster/reroute _cluster/voting_config_exclusions _dangling _enrich _eql _explain _flush/synced "
        "_freeze _graph _ilm _index_template/_simulate _index_template/_simulate_index _ingest _license "
        "_logstash _migration _ml _monitoring _msearch/template _mtermvectors _nodes/hot_threads "
        "_nodes/reload_secure_settings _nodes/usage _percolate _rank_eval _recovery _reload_search_analyzers "
        "_remote _render/template _resolve _rollover _rollup _script_context _script_language "
        "_search/template _search_shards _searchable_snapshots _security _segments _shard_stores _shrink _slm "
        "_snapshot _split _sql _ssl _suggest _termvectors _transform _unfreeze _upgrade _watcher _xpack";
    struct slice rest = slice_from(names);
    while (rest.len > 0) {
        size_t len = slice_find_byte(rest, ' ');
        char path[64];
        snprintf(path, sizeof path, "/%.*s", (int)len, rest.data);
        assert_absent(path, path + 1);
        rest = slice_from_offset(rest, len < rest.len ? len + 1 : len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_each_name),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
