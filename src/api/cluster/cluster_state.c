/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health and sizes.
 */
#include "api/cluster/cluster_state.h"

#include "api/request/api_internal.h"

struct cluster_health cluster_health_begin(struct request *request)
{
    return (struct cluster_health){.refuses = !journal_writable(request->api->journal)};
}

void cluster_health_add(struct cluster_health *health, const struct catalog_index *index)
{
    health->active += index->shard_count;
    health->unassigned += index->shard_count * index->replica_count;
}

const char *cluster_health_status(const struct cluster_health *health)
{
    if (health->refuses)
        return "red";
    return health->unassigned > 0 ? "yellow" : "green";
}

double cluster_health_percent(const struct cluster_health *health)
{
    uint32_t all = health->active + health->unassigned;
    return all == 0 ? 100 : 100.0 * health->active / all;
}

const char *index_health(const struct catalog_index *index)
{
    return index->replica_count > 0 ? "yellow" : "green";
}

uint64_t index_store_bytes(struct request *request, const struct catalog_index *index)
{
    struct store_stats stats;
    uint64_t all = 0, mine = catalog_index_documents(index);
    const struct catalog *catalog = request_catalog(request);
    for (size_t i = 0; i < catalog_index_count(catalog); i++)
        all += catalog_index_documents(catalog_index_at(catalog, i));
    if (all == 0)
        return 0;
    store_stats(request->api->store, &stats);
    return (uint64_t)((double)stats.disk_bytes * ((double)mine / (double)all));
}

struct slice cluster_address(struct request *request)
{
    struct slice host = exchange_header(request->exchange, "Host");
    return host.len > 0 ? host : SLICE_LIT("127.0.0.1:9200");
}
