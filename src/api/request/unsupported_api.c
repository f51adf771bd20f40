/* SPDX-License-Identifier: Apache-2.0 */
/* Names of APIs; see unsupported_api.h. */
#include "api/request/unsupported_api.h"

/*
 * By Elasticsearch 7.10's reference, its default distribution included. A name of two segments needs both; all paths
 * below a name are absent too. In the order of their bytes, since requests of other APIs are looked up, too.
 */
static const char *const names[] = {
    "_async_search",
    "_autoscaling",
    "_block",
    "_cat/allocation",
    "_cat/fielddata",
    "_cat/ml",
    "_cat/nodeattrs",
    "_cat/pending_tasks",
    "_cat/plugins",
    "_cat/recovery",
    "_cat/repositories",
    "_cat/segments",
    "_cat/snapshots",
    "_cat/tasks",
    "_cat/thread_pool",
    "_cat/transforms",
    "_ccr",
    "_clone",
    "_cluster/allocation",
    "_cluster/pending_tasks",
    "_cluster/reroute",
    "_cluster/voting_config_exclusions",
    "_dangling",
    "_enrich",
    "_eql",
    "_explain",
    "_flush/synced",
    "_freeze",
    "_graph",
    "_ilm",
    "_index_template/_simulate",
    "_index_template/_simulate_index",
    "_ingest",
    "_license",
    "_logstash",
    "_migration",
    "_ml",
    "_monitoring",
    "_msearch/template",
    "_mtermvectors",
    "_nodes/hot_threads",
    "_nodes/reload_secure_settings",
    "_nodes/usage",
    "_percolate",
    "_rank_eval",
    "_recovery",
    "_reload_search_analyzers",
    "_remote",
    "_render/template",
    "_resolve",
    "_rollover",
    "_rollup",
    "_script_context",
    "_script_language",
    "_search/template",
    "_search_shards",
    "_searchable_snapshots",
    "_security",
    "_segments",
    "_shard_stores",
    "_shrink",
    "_slm",
    "_snapshot",
    "_split",
    "_sql",
    "_ssl",
    "_suggest",
    "_termvectors",
    "_transform",
    "_unfreeze",
    "_upgrade",
    "_watcher",
    "_xpack",
};

enum { NAME_COUNT = sizeof names / sizeof *names };

/* The segment at the head of *path, which is taken off. */
static struct slice take_segment(struct slice *path)
{
    size_t len = slice_find_byte(*path, '/');
    struct slice segment = slice_make(path->data, len);
    *path = slice_from_offset(*path, len < path->len ? len + 1 : len);
    return segment;
}

/* Whether the segment `first`, followed by `rest`, begins with the name. */
static bool begins_with(struct slice first, struct slice rest, struct slice name)
{
    size_t len = slice_find_byte(name, '/');
    if (!slice_equal(first, slice_make(name.data, len)))
        return false;
    if (len + 1 >= name.len)
        return true;
    return slice_equal(take_segment(&rest), slice_from_offset(name, len + 1));
}

/* Returns: the first name that is not less than a segment; NAME_COUNT: none. Those that begin with it follow. */
static size_t lower_bound(struct slice segment)
{
    size_t low = 0, high = NAME_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(slice_from(names[middle]), segment) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool unsupported_api_find(struct slice path, struct slice *ret_name)
{
    enum { PLACES = 4, OF_AN_ID = 2 }; /* INDEX/TYPE/ID/_explain; an id may look like any one segment */
    if (path.len > 0 && path.data[0] == '/')
        path = slice_from_offset(path, 1);
    for (int place = 0; place < PLACES && path.len > 0; place++) {
        struct slice first = take_segment(&path);
        if (first.len == 0 || first.data[0] != '_')
            continue;
        for (size_t i = lower_bound(first); i < NAME_COUNT && slice_starts_with(slice_from(names[i]), first); i++) {
            *ret_name = slice_from(names[i]);
            bool may_be_an_id = place == OF_AN_ID && slice_find_byte(*ret_name, '/') == ret_name->len;
            if (!may_be_an_id && begins_with(first, path, *ret_name))
                return true;
        }
    }
    return false;
}
