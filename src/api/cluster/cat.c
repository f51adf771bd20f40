/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The _cat calls about indices, for people at a terminal.
 */
#include "api/request/api_internal.h"
#include "api/request/cat_table.h"
#include "api/cluster/cluster_state.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/instant.h"
#include "api/request/name_list.h"
#include "base/clock.h"
#include "base/types.h"
#include "core/documents/doc.h"
#include "json/each.h"

int handle_cat(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct buf *buf = reply_text(request, 200);
    buf_lit(
        buf,
        "=^.^=\n/_cat/aliases\n/_cat/aliases/{alias}\n/_cat/copies\n/_cat/count\n/_cat/count/{index}\n/_cat/health\n"
        "/_cat/hosts\n/_cat/indices\n/_cat/indices/{index}\n/_cat/locks\n/_cat/master\n/_cat/memory\n/_cat/nodes\n"
        "/_cat/sessions\n/_cat/shards\n/_cat/shards/{index}\n/_cat/templates\n/_cat/templates/{name_pattern}\n"
        "/_cat/transactions\n");
    return REQUEST_DONE;
}

/* --- Indices ------------------------------------------------------------------------------------------------------ */

static const struct cat_column index_columns[] = {
    {"health", "h", "current health status", false, false},
    {"status", "s", "open/close status", false, false},
    {"index", "i,idx", "index name", false, false},
    {"uuid", "id,uuid", "index uuid", false, false},
    {"pri", "p,shards.primary,shardsPrimary", "number of primary shards", true, false},
    {"rep", "r,shards.replica,shardsReplica", "number of replica shards", true, false},
    {"docs.count", "dc,docsCount", "available docs", true, false},
    {"docs.deleted", "dd,docsDeleted", "deleted docs", true, false},
    {"store.size", "ss,storeSize", "store size of primaries & replicas", true, false},
    {"pri.store.size", "", "store size of primaries", true, false},
    {"creation.date", "cd", "index creation date (millisecond value)", false, true},
    {"creation.date.string", "cds", "index creation date (as string)", false, true},
};

static void add_index(struct request *request, const struct cluster_nodes *nodes, const struct catalog_index *index,
                      struct cat_table *table)
{
    struct cat_cell *row = cat_table_row(table, request->arena);
    row[0] = cat_text(slice_from(index_health(nodes, index)));
    row[1] = cat_text(index->closed ? SLICE_LIT("close") : SLICE_LIT("open"));
    row[2] = cat_text(index->name);
    row[3] = cat_text(index->uuid);
    row[4] = cat_number(index->shard_count);
    row[5] = cat_number(index->replica_count);
    if (!index->closed) {
        int64_t bytes = (int64_t)index_store_bytes(request, index);
        row[6] = cat_number((int64_t)catalog_index_documents(index));
        row[7] = cat_number(0);
        row[8] = cat_bytes(bytes);
        row[9] = cat_bytes(bytes);
    }
    row[10] = cat_text(arena_printf(request->arena, "%llu", (unsigned long long)index->created_ms));
    row[11] = cat_text(instant_text(request->arena, index->created_ms * TL_MS, 3));
}

int handle_cat_indices(struct request *request)
{
    static const struct catalog_options options = {
        .allow_no_indices = true, .expand_open = true, .expand_closed = true, .allow_closed = true};
    struct cat_table table;
    struct index_set set;
    struct slice health = request_param(request, "health");
    int r = cat_table_begin(request, index_columns, COUNT_OF(index_columns));
    if (r != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    if (health.data != NULL && !slice_is(health, "green") && !slice_is(health, "yellow") && !slice_is(health, "red"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "unknown cluster health status [%.*s]",
                              SLICE_ARG(health));
    const struct cluster_nodes *nodes = nodes_list(request);
    cat_table_init(&table, index_columns, COUNT_OF(index_columns));
    for (size_t i = 0; i < set.count; i++)
        if (health.data == NULL || slice_is(health, index_health(nodes, set.targets[i].index)))
            add_index(request, nodes, set.targets[i].index, &table);
    return cat_table_reply(request, &table);
}

/* --- Count -------------------------------------------------------------------------------------------------------- */

static const struct cat_column count_columns[] = {
    {"epoch", "t,time", "seconds since 1970-01-01 00:00:00", false, false},
    {"timestamp", "ts,hms,hhmmss", "time in HH:MM:SS", false, false},
    {"count", "dc,docs.count,docsCount", "the document count", false, false},
};

/* "epoch" and "timestamp" of a row. */
static void add_time(struct request *request, struct cat_cell *row)
{
    int64_t now = (int64_t)(clock_wall_us() / TL_SECOND);
    row[0] = cat_number(now);
    row[1] = cat_text(
        arena_printf(request->arena, "%02d:%02d:%02d", (int)(now / 3600 % 24), (int)(now / 60 % 60), (int)(now % 60)));
}

int handle_cat_count(struct request *request)
{
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    struct cat_table table;
    struct index_set set;
    uint64_t count = 0;
    int r = cat_table_begin(request, count_columns, COUNT_OF(count_columns));
    if (r != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    for (size_t i = 0; i < set.count; i++)
        count += catalog_index_documents(set.targets[i].index);
    cat_table_init(&table, count_columns, COUNT_OF(count_columns));
    struct cat_cell *row = cat_table_row(&table, request->arena);
    add_time(request, row);
    row[2] = cat_number((int64_t)count);
    return cat_table_reply(request, &table);
}

/* --- Aliases ------------------------------------------------------------------------------------------------------ */

static const struct cat_column alias_columns[] = {
    {"alias", "a", "alias name", false, false},
    {"index", "i,idx", "index alias points to", false, false},
    {"filter", "f,fi", "filter", false, false},
    {"routing.index", "ri,routingIndex", "index routing", false, false},
    {"routing.search", "rs,routingSearch", "search routing", false, false},
    {"is_write_index", "w,isWriteIndex", "write index", false, false},
};

static struct slice or_dash(struct slice text)
{
    return text.len > 0 ? text : SLICE_LIT("-");
}

static void add_alias(struct request *request, const struct catalog_index *index, const struct catalog_alias *alias,
                      struct cat_table *table)
{
    static const char *const flags[] = {"-", "false", "true"};
    struct cat_cell *row = cat_table_row(table, request->arena);
    row[0] = cat_text(alias->name);
    row[1] = cat_text(index->name);
    row[2] = cat_text(alias->filter.len > 0 ? SLICE_LIT("*") : SLICE_LIT("-"));
    row[3] = cat_text(or_dash(alias->index_routing));
    row[4] = cat_text(or_dash(alias->search_routing));
    row[5] = cat_text(slice_from(flags[alias->write_index + 1]));
}

int handle_cat_aliases(struct request *request)
{
    struct cat_table table;
    struct slice wanted = request_part(request, PART_NAME);
    int r = cat_table_begin(request, alias_columns, COUNT_OF(alias_columns));
    if (r != 0)
        return r;
    const struct catalog *catalog = request_catalog(request);
    cat_table_init(&table, alias_columns, COUNT_OF(alias_columns));
    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        for (size_t k = 0; k < index->alias_count; k++)
            if (name_list_match(wanted, index->aliases[k].name))
                add_alias(request, index, &index->aliases[k], &table);
    }
    return cat_table_reply(request, &table);
}

/* --- Health ------------------------------------------------------------------------------------------------------- */

static const struct cat_column health_columns[] = {
    {"epoch", "t,time", "seconds since 1970-01-01 00:00:00", false, false},
    {"timestamp", "ts,hms,hhmmss", "time in HH:MM:SS", false, false},
    {"cluster", "cl", "cluster name", false, false},
    {"status", "st", "health status", false, false},
    {"node.total", "nt,nodeTotal", "total number of nodes", true, false},
    {"node.data", "nd,nodeData", "number of nodes that can store data", true, false},
    {"shards", "t,sh,shards.total,shardsTotal", "total number of shards", true, false},
    {"pri", "p,shards.primary,shardsPrimary", "number of primary shards", true, false},
    {"relo", "r,shards.relocating,shardsRelocating", "number of relocating nodes", true, false},
    {"init", "i,shards.initializing,shardsInitializing", "number of initializing nodes", true, false},
    {"unassign", "u,shards.unassigned,shardsUnassigned", "number of unassigned shards", true, false},
    {"pending_tasks", "pt,pendingTasks", "number of pending tasks", true, false},
    {"max_task_wait_time", "mtwt,maxTaskWaitTime", "wait time of longest task pending", true, false},
    {"active_shards_percent", "asp,activeShardsPercent", "active number of shards in percent", true, false},
};

int handle_cat_health(struct request *request)
{
    struct cat_table table;
    struct cluster_health health = cluster_health_begin(request);
    int r = cat_table_begin(request, health_columns, COUNT_OF(health_columns));
    if (r != 0)
        return r;
    const struct catalog *catalog = request_catalog(request);
    for (size_t i = 0; i < catalog_index_count(catalog); i++)
        cluster_health_add(&health, catalog_index_at(catalog, i));
    cat_table_init(&table, health_columns, COUNT_OF(health_columns));
    struct cat_cell *row = cat_table_row(&table, request->arena);
    add_time(request, row);
    row[2] = cat_text(request->api->options.cluster_name);
    row[3] = cat_text(slice_from(cluster_health_status(&health)));
    row[4] = row[5] = cat_number((int64_t)health.nodes->count);
    row[6] = cat_number(health.active);
    row[7] = cat_number(health.primaries);
    row[8] = row[9] = cat_number(0);
    row[10] = cat_number(health.unassigned);
    row[11] = cat_number(0);
    row[12] = cat_text(SLICE_LIT("-"));
    row[13] = cat_text(arena_printf(request->arena, "%.1f%%", cluster_health_percent(&health)));
    return cat_table_reply(request, &table);
}

/* --- Templates ---------------------------------------------------------------------------------------------------- */

static const struct cat_column template_columns[] = {
    {"name", "n", "template name", false, false},
    {"index_patterns", "t", "template index patterns", false, false},
    {"order", "o,p", "template application order/priority number", false, false},
    {"version", "v", "version", false, false},
    {"composed_of", "c", "component templates comprising index template", false, false},
};

static struct slice names_of(struct request *request, yyjson_val *list)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t i, count;
    yyjson_val *item;
    buf_byte(&text, '[');
    json_arr_foreach (list, i, count, item) {
        if (i > 0)
            buf_lit(&text, ", ");
        buf_slice(&text, json_slice(item));
    }
    buf_byte(&text, ']');
    struct slice names = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return names;
}

static void add_template(struct request *request, const struct catalog_object *object, bool composable,
                         struct cat_table *table)
{
    struct json_doc doc;
    if (json_parse_stored(request->arena, object->body, &doc) != 0)
        return;
    struct cat_cell *row = cat_table_row(table, request->arena);
    row[0] = cat_text(object->name);
    row[1] = cat_text(names_of(request, json_get_lit(doc.root, "index_patterns")));
    row[2] = cat_number(yyjson_get_sint(json_get(doc.root, slice_from(composable ? "priority" : "order"))));
    if (yyjson_is_int(json_get_lit(doc.root, "version")))
        row[3] = cat_number(yyjson_get_sint(json_get_lit(doc.root, "version")));
    row[4] = cat_text(composable ? names_of(request, json_get_lit(doc.root, "composed_of")) : SLICE_LIT(""));
}

static void add_templates(struct request *request, enum catalog_kind kind, struct cat_table *table)
{
    const struct catalog *catalog = request_catalog(request);
    struct slice wanted = request_part(request, PART_NAME);
    for (size_t i = 0; i < catalog_object_count(catalog, kind); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, kind, i);
        if (name_list_match(wanted, object->name))
            add_template(request, object, kind == CATALOG_INDEX_TEMPLATES, table);
    }
}

int handle_cat_templates(struct request *request)
{
    struct cat_table table;
    int r = cat_table_begin(request, template_columns, COUNT_OF(template_columns));
    if (r != 0)
        return r;
    cat_table_init(&table, template_columns, COUNT_OF(template_columns));
    add_templates(request, CATALOG_TEMPLATES, &table);
    add_templates(request, CATALOG_INDEX_TEMPLATES, &table);
    return cat_table_reply(request, &table);
}
