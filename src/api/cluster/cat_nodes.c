/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The _cat calls about hosts and their shards: nodes, master, shards.
 *
 * An index is listed with as many shards as it was made with; its documents are counted with the first.
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/cat_table.h"
#include "api/cluster/cluster_state.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/request_budget.h"
#include "base/types.h"

/* --- The host ----------------------------------------------------------------------------------------------------- */

struct host_load {
    int ram_percent; /* -1: unknown */
    double load[3];  /* of 1, 5 and 15 minutes; -1: unknown */
};

/* Returns: the value of a line of /proc/meminfo, in KiB; 0: the line is missing. */
static unsigned long memory_line(FILE *file, const char *format)
{
    char line[128];
    unsigned long kib = 0;
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, format, &kib) == 1)
            return kib;
    return 0;
}

static int ram_percent(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return -1;
    unsigned long total = memory_line(file, "MemTotal: %lu kB");
    unsigned long available = memory_line(file, "MemAvailable: %lu kB");
    fclose(file);
    return total == 0 ? -1 : (int)((total - available) * 100 / total);
}

static struct host_load host_load_read(void)
{
    struct host_load host = {.ram_percent = ram_percent()};
    int known = getloadavg(host.load, 3);
    for (int i = known < 0 ? 0 : known; i < 3; i++)
        host.load[i] = -1;
    return host;
}

/* The columns, in Elasticsearch's order. Those without a value here stay empty. */
enum {
    NODE_ID,
    NODE_IP,
    NODE_PORT,
    NODE_HTTP_ADDRESS,
    NODE_VERSION,
    NODE_HEAP_PERCENT,
    NODE_RAM_PERCENT,
    NODE_CPU,
    NODE_LOAD, /* and the next two */
    NODE_ROLE = NODE_LOAD + 3,
    NODE_MASTER,
    NODE_NAME,
    NODE_COLUMNS
};

static const struct cat_column node_columns[NODE_COLUMNS] = {
    {"id", "id,nodeId", "unique node id", false, true},
    {"ip", "i", "ip address", false, false},
    {"port", "po", "bound transport port", false, true},
    {"http_address", "http", "bound http address", false, true},
    {"version", "v", "es version", false, true},
    {"heap.percent", "hp,heapPercent", "used heap ratio", true, false},
    {"ram.percent", "rp,ramPercent", "used machine memory ratio", true, false},
    {"cpu", "cpu", "recent cpu usage", true, false},
    {"load_1m", "l", "1m load avg", true, false},
    {"load_5m", "l", "5m load avg", true, false},
    {"load_15m", "l", "15m load avg", true, false},
    {"node.role", "r,role,nodeRole", "m:master eligible node, d:data node, i:ingest node, -:coordinating node only",
     false, false},
    {"master", "m", "*:current master", false, false},
    {"name", "n", "node name", false, false},
};

/* Fills in the load of this host; that of other hosts is unknown. */
static void fill_load(struct request *request, struct cat_cell *row)
{
    struct host_load host = host_load_read();
    if (host.ram_percent >= 0)
        row[NODE_RAM_PERCENT] = cat_number(host.ram_percent);
    for (int i = 0; i < 3; i++)
        if (host.load[i] >= 0)
            row[NODE_LOAD + i] = cat_text(arena_printf(request->arena, "%.2f", host.load[i]));
}

int handle_cat_nodes(struct request *request)
{
    struct cat_table table;
    bool full = false;
    int r = request_bool(request, "full_id", &full);
    if (r != 0 || (r = cat_table_begin(request, node_columns, NODE_COLUMNS)) != 0)
        return r;
    const struct cluster_nodes *nodes = nodes_list(request);
    cat_table_init(&table, node_columns, NODE_COLUMNS);
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cluster_node *node = &nodes->items[i];
        struct cat_cell *row = cat_table_row(&table, request->arena);
        row[NODE_ID] = cat_text(full ? node->id : slice_make(node->id.data, 4));
        row[NODE_IP] = cat_text(node_host(node));
        row[NODE_PORT] = cat_text(node_port(node));
        row[NODE_HTTP_ADDRESS] = cat_text(node->address);
        row[NODE_VERSION] = cat_text(SLICE_LIT("7.10.2"));
        if (node->self)
            fill_load(request, row);
        row[NODE_ROLE] = cat_text(SLICE_LIT("dim"));
        row[NODE_MASTER] = cat_text(slice_from(node->master ? "*" : "-"));
        row[NODE_NAME] = cat_text(node->name);
    }
    return cat_table_reply(request, &table);
}

static const struct cat_column master_columns[] = {
    {"id", "", "node id", false, false},
    {"host", "h", "host name", false, false},
    {"ip", "", "ip address ", false, false},
    {"node", "n", "node name", false, false},
};

int handle_cat_master(struct request *request)
{
    struct cat_table table;
    int r = cat_table_begin(request, master_columns, COUNT_OF(master_columns));
    if (r != 0)
        return r;
    cat_table_init(&table, master_columns, COUNT_OF(master_columns));
    const struct cluster_node *master = nodes_list(request)->master;
    struct cat_cell *row = cat_table_row(&table, request->arena);
    row[0] = cat_text(master != NULL ? master->id : SLICE_LIT("-")); /* as there, where none is known */
    row[1] = row[2] = cat_text(master != NULL ? node_host(master) : SLICE_LIT("-"));
    row[3] = cat_text(master != NULL ? master->name : SLICE_LIT("-"));
    return cat_table_reply(request, &table);
}

/* --- Shards ------------------------------------------------------------------------------------------------------- */

static const struct cat_column shard_columns[] = {
    {"index", "i,idx", "index name", false, false},
    {"shard", "s,sh", "shard name", false, false},
    {"prirep", "p,pr,primaryOrReplica", "primary or replica", false, false},
    {"state", "st", "shard state", false, false},
    {"docs", "d,dc", "number of docs in shard", true, false},
    {"store", "sto", "store size of shard (how much disk it uses)", true, false},
    {"ip", "", "ip of node where it lives", false, false},
    {"id", "", "unique id of node where it lives", false, true},
    {"node", "n", "name of node where it lives", false, false},
};

/* `on`: the node of the copy; NULL: it is unassigned. */
static void add_shard(struct request *request, const struct catalog_index *index, uint32_t shard, bool primary,
                      const struct cluster_node *on, struct cat_table *table)
{
    struct cat_cell *row = cat_table_row(table, request->arena);
    row[0] = cat_text(index->name);
    row[1] = cat_number(shard);
    row[2] = cat_text(primary ? SLICE_LIT("p") : SLICE_LIT("r"));
    row[3] = cat_text(on != NULL ? SLICE_LIT("STARTED") : SLICE_LIT("UNASSIGNED"));
    if (on == NULL)
        return;
    row[4] = cat_number(shard == 0 ? (int64_t)catalog_index_documents(index) : 0);
    row[5] = cat_bytes(shard == 0 ? (int64_t)index_store_bytes(request, index) : 0);
    row[6] = cat_text(node_host(on));
    row[7] = cat_text(on->id);
    row[8] = cat_text(on->name);
}

static int write_shards(struct request *request)
{
    const struct index_set *set = request->context;
    const struct cluster_nodes *nodes = nodes_list(request);
    struct cat_table table;
    cat_table_init(&table, shard_columns, COUNT_OF(shard_columns));
    for (size_t i = 0; i < set->count && !request_budget_refused(request); i++) {
        const struct catalog_index *index = set->targets[i].index;
        for (uint32_t shard = 0; shard < index->shard_count; shard++)
            for (uint32_t copy = 0; copy <= index->replica_count && !request_budget_refused(request); copy++)
                add_shard(request, index, shard, copy == 0, cluster_copy_node(nodes, copy), &table);
    }
    return request_budget_refused(request) ? request_budget_refuse(request) : cat_table_reply(request, &table);
}

enum { SHARD_BYTES = 2 * COUNT_OF(shard_columns) * sizeof(struct cat_cell) };

int handle_cat_shards(struct request *request)
{
    static const struct catalog_options options = {
        .allow_no_indices = true, .expand_open = true, .expand_closed = true, .allow_closed = true};
    struct index_set *set = arena_alloc(request->arena, sizeof *set);
    uint64_t rows;
    int r = cat_table_begin(request, shard_columns, COUNT_OF(shard_columns));
    if (r != 0 || (r = index_set_read(request, &options, set)) != 0)
        return r;
    rows = index_set_rows(set);
    request->context = set;
    if (rows > INDEX_SET_SHORT && (r = request_budget_take(request, rows * SHARD_BYTES)) != 0)
        return r;
    return rows > INDEX_SET_SHORT ? request_work(request, write_shards) : write_shards(request);
}
