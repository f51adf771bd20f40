/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /_cluster/state and /_cluster/stats: what clients read of them before they work, and nothing
 * made up: what only a cluster of Elasticsearch has is left out.
 */
#include "api/request/api_internal.h"

#include <stdio.h>

#include "api/cluster/cluster_state.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/name_list.h"
#include "api/request/request_budget.h"
#include "core/catalog/settings.h"

/* --- State -------------------------------------------------------------------------------------------------------- */

static void write_nodes(const struct cluster_nodes *nodes, struct json_writer *writer)
{
    json_key(writer, "nodes");
    json_begin(writer, '{');
    for (size_t i = 0; i < nodes->count; i++) {
        json_key_slice(writer, nodes->items[i].id);
        json_begin(writer, '{');
        json_key(writer, "name");
        json_string(writer, nodes->items[i].name);
        json_key(writer, "ephemeral_id");
        json_string(writer, nodes->items[i].ephemeral_id);
        json_key(writer, "transport_address");
        json_string(writer, nodes->items[i].address);
        json_key(writer, "attributes");
        json_raw(writer, SLICE_LIT("{}"));
        json_end(writer, '}');
    }
    json_end(writer, '}');
}

static void write_index(const struct catalog_index *index, bool flat, struct json_writer *writer)
{
    bool typed = true;
    json_key_slice(writer, index->name);
    json_begin(writer, '{');
    json_key(writer, "state");
    json_string(writer, index->closed ? SLICE_LIT("close") : SLICE_LIT("open"));
    json_key(writer, "settings");
    settings_render(index->settings, flat, writer->buf);
    writer->comma = true;
    json_key(writer, "mappings");
    index_render_mapping(index, &typed, writer->buf);
    writer->comma = true;
    json_key(writer, "aliases");
    json_begin(writer, '[');
    for (size_t i = 0; i < index->alias_count; i++)
        json_string(writer, index->aliases[i].name);
    json_end(writer, ']');
    json_end(writer, '}');
}

/* "index_template": {"index_template": {name: …}}; nothing if no template exists. */
static void write_composable(const struct catalog *catalog, enum catalog_kind kind, const char *key,
                             struct json_writer *writer)
{
    if (catalog_object_count(catalog, kind) == 0)
        return;
    json_key(writer, key);
    json_begin(writer, '{');
    json_key(writer, key);
    json_begin(writer, '{');
    for (size_t i = 0; i < catalog_object_count(catalog, kind); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, kind, i);
        json_key_slice(writer, object->name);
        json_raw(writer, object->body);
    }
    json_end(writer, '}');
    json_end(writer, '}');
}

static void write_metadata(struct request *request, const struct index_set *set, bool flat, struct json_writer *writer)
{
    const struct catalog *catalog = request_catalog(request);
    json_key(writer, "metadata");
    json_begin(writer, '{');
    json_key(writer, "cluster_uuid");
    json_string(writer, slice_from(request->api->cluster_uuid));
    json_key(writer, "templates");
    json_begin(writer, '{');
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, CATALOG_TEMPLATES, i);
        json_key_slice(writer, object->name);
        json_raw(writer, object->body);
    }
    json_end(writer, '}');
    write_composable(catalog, CATALOG_INDEX_TEMPLATES, "index_template", writer);
    write_composable(catalog, CATALOG_COMPONENTS, "component_template", writer);
    json_key(writer, "indices");
    json_begin(writer, '{');
    for (size_t i = 0; i < set->count; i++)
        write_index(set->targets[i].index, flat, writer);
    json_end(writer, '}');
    json_end(writer, '}');
}

/* `on`: the node of the copy; NULL: it is unassigned. */
static void write_shard(const struct catalog_index *index, uint32_t shard, bool primary, const struct cluster_node *on,
                        struct json_writer *writer)
{
    json_begin(writer, '{');
    json_key(writer, "state");
    json_string(writer, on != NULL ? SLICE_LIT("STARTED") : SLICE_LIT("UNASSIGNED"));
    json_key(writer, "primary");
    json_bool(writer, primary);
    json_key(writer, "node");
    if (on != NULL)
        json_string(writer, on->id);
    else
        json_null(writer);
    json_key(writer, "relocating_node");
    json_null(writer);
    json_key(writer, "shard");
    json_u64(writer, shard);
    json_key(writer, "index");
    json_string(writer, index->name);
    json_end(writer, '}');
}

/* Of the routing table, at least: "state", "primary", "node", "relocating_node", "shard", "index". */
enum { SHARD_BYTES = 100 };

static void write_routing(const struct index_set *set, const struct cluster_nodes *nodes, struct json_writer *writer)
{
    json_key(writer, "routing_table");
    json_begin(writer, '{');
    json_key(writer, "indices");
    json_begin(writer, '{');
    for (size_t i = 0; i < set->count; i++) {
        const struct catalog_index *index = set->targets[i].index;
        json_key_slice(writer, index->name);
        json_begin(writer, '{');
        json_key(writer, "shards");
        json_begin(writer, '{');
        for (uint32_t shard = 0; shard < index->shard_count; shard++) {
            char name[16];
            snprintf(name, sizeof name, "%u", shard);
            json_key(writer, name);
            json_begin(writer, '[');
            for (uint32_t copy = 0; copy <= index->replica_count && !writer->buf->overflow; copy++)
                write_shard(index, shard, copy == 0, cluster_copy_node(nodes, copy), writer);
            json_end(writer, ']');
        }
        json_end(writer, '}');
        json_end(writer, '}');
    }
    json_end(writer, '}');
    json_end(writer, '}');
}

struct state_job {
    struct index_set set;
    bool flat;
};

static int write_state(struct request *request)
{
    const struct state_job *job = request->context;
    struct slice metrics = request_part(request, PART_METRIC);
    const struct cluster_nodes *nodes = nodes_list(request);
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "cluster_name");
    json_string(&writer, request->api->options.cluster_name);
    json_key(&writer, "cluster_uuid");
    json_string(&writer, slice_from(request->api->cluster_uuid));
    if (name_list_match(metrics, SLICE_LIT("version"))) {
        json_key(&writer, "version");
        json_u64(&writer, journal_stable(request->api->journal));
    }
    if (name_list_match(metrics, SLICE_LIT("master_node"))) {
        json_key(&writer, "master_node");
        if (nodes->master != NULL)
            json_string(&writer, nodes->master->id);
        else
            json_null(&writer);
    }
    if (name_list_match(metrics, SLICE_LIT("blocks"))) {
        json_key(&writer, "blocks");
        json_raw(&writer, SLICE_LIT("{}"));
    }
    if (name_list_match(metrics, SLICE_LIT("nodes")))
        write_nodes(nodes, &writer);
    if (name_list_match(metrics, SLICE_LIT("metadata")))
        write_metadata(request, &job->set, job->flat, &writer);
    if (name_list_match(metrics, SLICE_LIT("routing_table")))
        write_routing(&job->set, nodes, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_cluster_state(struct request *request)
{
    struct state_job *job = arena_zalloc(request->arena, sizeof *job);
    bool local = false;
    int r = request_bool(request, "local", &local);
    if (r != 0 || (r = request_bool(request, "flat_settings", &job->flat)) != 0 ||
        (r = index_set_read(request, &catalog_options_every_index, &job->set)) != 0)
        return r;
    request->context = job;
    uint64_t rows =
        name_list_match(request_part(request, PART_METRIC), SLICE_LIT("routing_table")) ? index_set_rows(&job->set) : 0;
    if (rows <= INDEX_SET_SHORT)
        return write_state(request);
    r = request_budget_take(request, rows * SHARD_BYTES);
    return r != 0 ? r : request_work(request, write_state);
}

/* --- Stats -------------------------------------------------------------------------------------------------------- */

static void write_indices(struct request *request, struct json_writer *writer)
{
    const struct catalog *catalog = request_catalog(request);
    uint64_t shards = 0, documents = 0, bytes = 0, open = 0, least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        if (index->closed)
            continue;
        open++;
        shards += index->shard_count;
        least = index->shard_count < least ? index->shard_count : least;
        most = index->shard_count > most ? index->shard_count : most;
        documents += catalog_index_documents(index);
        bytes += index_store_bytes(request, index);
    }
    buf_printf(writer->buf, "\"indices\":{\"count\":%llu,\"shards\":{", (unsigned long long)open);
    if (open > 0) { /* else the object is empty, there, too */
        static const char *const names[] = {"shards", "primaries"};
        buf_printf(writer->buf, "\"total\":%llu,\"primaries\":%llu,\"replication\":0.0,\"index\":{",
                   (unsigned long long)shards, (unsigned long long)shards);
        for (int i = 0; i < 2; i++)
            buf_printf(writer->buf, "\"%s\":{\"min\":%llu,\"max\":%llu,\"avg\":%.1f},", names[i],
                       (unsigned long long)least, (unsigned long long)most, (double)shards / (double)open);
        buf_lit(writer->buf, "\"replication\":{\"min\":0.0,\"max\":0.0,\"avg\":0.0}}");
    }
    buf_printf(writer->buf,
               "},\"docs\":{\"count\":%llu,\"deleted\":0},\"store\":{\"size_in_bytes\":%llu,\"reserved_in_bytes\":0}",
               (unsigned long long)documents, (unsigned long long)bytes);
    writer->comma = true;
    stats_write_zeros(writer, SLICE_LIT("fielddata,query_cache,completion,segments"));
    buf_byte(writer->buf, '}');
}

/* Of files and disks it knows those of the host that is asked. */
static void write_stats_of_nodes(struct request *request, size_t count, struct json_writer *writer)
{
    unsigned long long descriptors = cluster_open_descriptors();
    json_begin(writer, '{');
    json_key(writer, "count");
    json_raw(writer, arena_printf(request->arena,
                                  "{\"total\":%zu,\"coordinating_only\":0,\"data\":%zu,\"ingest\":%zu,\"master\":%zu,"
                                  "\"remote_cluster_client\":0}",
                                  count, count, count, count));
    json_key(writer, "versions");
    json_raw(writer, SLICE_LIT("[\"7.10.2\"]"));
    json_key(writer, "process");
    json_raw(writer, arena_printf(request->arena,
                                  "{\"cpu\":{\"percent\":-1},\"open_file_descriptors\":{\"min\":%llu,\"max\":%llu,"
                                  "\"avg\":%llu}}",
                                  descriptors, descriptors, descriptors));
    json_key(writer, "fs");
    json_begin(writer, '{');
    cluster_write_disk(request, writer);
    json_end(writer, '}');
    json_key(writer, "plugins");
    json_raw(writer, SLICE_LIT("[]"));
    json_key(writer, "ingest");
    json_raw(writer, SLICE_LIT("{\"number_of_pipelines\":0,\"processor_stats\":{}}"));
    json_end(writer, '}');
}

int handle_cluster_stats(struct request *request)
{
    struct cluster_health health = cluster_health_begin(request);
    struct json_writer writer;
    bool flat = false;
    int64_t ignored = 0;
    int r = request_bool(request, "flat_settings", &flat);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 || (r = request_accept(request)) != 0)
        return r;
    const struct catalog *catalog = request_catalog(request);
    for (size_t i = 0; i < catalog_index_count(catalog); i++)
        cluster_health_add(&health, catalog_index_at(catalog, i));
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    cluster_write_head(request, health.nodes->count, &writer);
    json_key(&writer, "cluster_uuid");
    json_string(&writer, slice_from(request->api->cluster_uuid));
    json_key(&writer, "timestamp");
    json_u64(&writer, journal_stable(request->api->journal) / TL_MS);
    json_key(&writer, "status");
    json_string(&writer, slice_from(cluster_health_status(&health)));
    buf_byte(writer.buf, ',');
    write_indices(request, &writer);
    json_key(&writer, "nodes");
    write_stats_of_nodes(request, health.nodes->count, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}
