/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health and sizes.
 */
#include "api/cluster/cluster_state.h"

#include "api/request/api_internal.h"
#include "base/big_endian.h"
#include "base/check.h"

struct cluster_health cluster_health_begin(struct request *request)
{
    return (struct cluster_health){.refuses = !journal_writable(request->api->journal), .nodes = nodes_list(request)};
}

static uint32_t assigned_replicas(const struct cluster_nodes *nodes, const struct catalog_index *index)
{
    return index->replica_count < nodes->count ? index->replica_count : (uint32_t)(nodes->count - 1);
}

void cluster_health_add(struct cluster_health *health, const struct catalog_index *index)
{
    uint32_t assigned = assigned_replicas(health->nodes, index);
    health->primaries += index->shard_count;
    health->active += index->shard_count * (1 + assigned);
    health->unassigned += index->shard_count * (index->replica_count - assigned);
}

const char *cluster_health_status(const struct cluster_health *health)
{
    REQUIRE(health->nodes != NULL);
    if (health->refuses || !health->nodes->in)
        return "red";
    return health->unassigned > 0 || !health->nodes->current ? "yellow" : "green";
}

double cluster_health_percent(const struct cluster_health *health)
{
    uint32_t all = health->active + health->unassigned;
    return all == 0 ? 100 : 100.0 * health->active / all;
}

const char *index_health(const struct cluster_nodes *nodes, const struct catalog_index *index)
{
    return assigned_replicas(nodes, index) < index->replica_count ? "yellow" : "green";
}

const struct cluster_node *cluster_copy_node(const struct cluster_nodes *nodes, uint32_t copy)
{
    const struct cluster_node *first = nodes->master != NULL ? nodes->master : nodes->self;
    uint32_t others = 0;
    if (copy == 0)
        return first;
    for (size_t i = 0; i < nodes->count; i++)
        if (&nodes->items[i] != first && ++others == copy)
            return &nodes->items[i];
    return NULL;
}

uint64_t index_store_bytes(struct request *request, const struct catalog_index *index)
{
    struct store *store = request->api->store;
    char from[4], to[4];
    big_endian_range_u32(index->number, from, to);
    struct slice lower = slice_make(from, sizeof from), upper = slice_make(to, sizeof to);
    return store_range_bytes(store, SPACE_DOCUMENTS, lower, upper) +
           store_range_bytes(store, SPACE_ENTRIES, lower, upper);
}

void index_stats_add(struct request *request, const struct catalog_index *index, struct index_stats *stats)
{
    stats->documents += catalog_index_documents(index);
    stats->bytes += index_store_bytes(request, index);
    for (int i = 0; i < INDEX_STAT_COUNT; i++)
        stats->counts[i] += catalog_index_stat(index, (enum index_stat)i);
}

static void write_member(struct json_writer *writer, const char *name, uint64_t value)
{
    json_key(writer, name);
    json_u64(writer, value);
}

/* Members that clients look for, but that are not measured, or always zero here. `names` are separated by spaces. */
static void write_zeros(struct json_writer *writer, const char *names)
{
    for (const char *name = names; *name != '\0';) {
        size_t len = strcspn(name, " ");
        json_key_slice(writer, slice_make(name, len));
        json_u64(writer, 0);
        name += len + (name[len] == ' ');
    }
}

void index_stats_write(struct json_writer *writer, enum index_stats_metric metric, const struct index_stats *numbers)
{
    const uint64_t *counts = numbers->counts;
    uint64_t open_scrolls = counts[INDEX_STAT_SCROLLS_OPENED] - counts[INDEX_STAT_SCROLLS_ENDED];
    json_begin(writer, '{');
    switch (metric) {
    case METRIC_DOCS:
        write_member(writer, "count", numbers->documents);
        write_member(writer, "deleted", 0); /* deleted documents are in the history alone, and cost searches nothing */
        break;
    case METRIC_STORE:
        write_member(writer, "size_in_bytes", numbers->bytes);
        write_member(writer, "reserved_in_bytes", 0);
        break;
    case METRIC_INDEXING:
        write_member(writer, "index_total", counts[INDEX_STAT_INDEXED]);
        write_zeros(writer, "index_time_in_millis index_current");
        write_member(writer, "index_failed", counts[INDEX_STAT_FAILED]);
        write_member(writer, "delete_total", counts[INDEX_STAT_DELETED]);
        write_zeros(writer, "delete_time_in_millis delete_current");
        write_member(writer, "noop_update_total", counts[INDEX_STAT_NOOPS]);
        json_key(writer, "is_throttled");
        json_bool(writer, false);
        write_member(writer, "throttle_time_in_millis", 0);
        break;
    case METRIC_GET:
        write_member(writer, "total", counts[INDEX_STAT_GETS_FOUND] + counts[INDEX_STAT_GETS_MISSING]);
        write_zeros(writer, "time_in_millis");
        write_member(writer, "exists_total", counts[INDEX_STAT_GETS_FOUND]);
        write_zeros(writer, "exists_time_in_millis");
        write_member(writer, "missing_total", counts[INDEX_STAT_GETS_MISSING]);
        write_zeros(writer, "missing_time_in_millis current");
        break;
    default:
        write_member(writer, "open_contexts",
                     open_scrolls + counts[INDEX_STAT_PITS_OPENED] - counts[INDEX_STAT_PITS_ENDED]);
        write_member(writer, "query_total", counts[INDEX_STAT_SEARCHES]);
        write_member(writer, "query_time_in_millis", counts[INDEX_STAT_SEARCH_US] / 1000); /* with that of fetching */
        write_zeros(writer, "query_current");
        write_member(writer, "fetch_total", counts[INDEX_STAT_FETCHES]);
        write_zeros(writer, "fetch_time_in_millis fetch_current");
        write_member(writer, "scroll_total", counts[INDEX_STAT_SCROLLS_ENDED]); /* as there */
        write_member(writer, "scroll_time_in_millis", counts[INDEX_STAT_SCROLL_US] / 1000);
        write_member(writer, "scroll_current", open_scrolls);
        write_zeros(writer, "suggest_total suggest_time_in_millis suggest_current");
        break;
    }
    json_end(writer, '}');
}

/* --- What calls have in common ------------------------------------------------------------------------------------ */

void cluster_write_head(struct request *request, size_t total, struct json_writer *writer)
{
    json_key(writer, "_nodes");
    json_raw(writer, arena_printf(request->arena, "{\"total\":%zu,\"successful\":%zu,\"failed\":0}", total, total));
    json_key(writer, "cluster_name");
    json_string(writer, request->api->options.cluster_name);
}

static void write_text(struct json_writer *writer, const char *key, struct slice text)
{
    json_key(writer, key);
    json_string(writer, text);
}

void cluster_write_node(const struct cluster_node *node, struct json_writer *writer)
{
    write_text(writer, "name", node->name);
    write_text(writer, "transport_address", node->address);
    write_text(writer, "host", node_host(node));
    write_text(writer, "ip", node_host(node));
    json_key(writer, "roles");
    json_raw(writer, SLICE_LIT("[\"data\",\"ingest\",\"master\"]"));
    json_key(writer, "attributes");
    json_raw(writer, SLICE_LIT("{}"));
}
