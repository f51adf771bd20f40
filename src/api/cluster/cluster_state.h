/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health and sizes, as Elasticsearch counts them. One host holds one copy of each shard; replicas are unassigned.
 */
#ifndef TL_API_CLUSTER_STATE_H
#define TL_API_CLUSTER_STATE_H

#include "api/request/request.h"
#include "core/catalog/catalog.h"

struct cluster_health {
    uint32_t active;
    uint32_t unassigned;
    bool refuses; /* changes, for want of room on the disk */
};

/* Returns: the health of the server without any index. */
struct cluster_health cluster_health_begin(struct request *request);

void cluster_health_add(struct cluster_health *health, const struct catalog_index *index);
const char *cluster_health_status(
    const struct cluster_health *health); /* "green", "yellow"; "red": writes are refused */
double cluster_health_percent(const struct cluster_health *health);

const char *index_health(const struct catalog_index *index);

/*
 * Returns: an estimate of an index's bytes on disk: its share, by documents, of the whole store. The store keeps all
 * indices in the same files.
 */
uint64_t index_store_bytes(struct request *request, const struct catalog_index *index);

/* Returns: where clients reach this node, HOST:PORT: the address that this one came by. */
struct slice cluster_address(struct request *request);

#endif
