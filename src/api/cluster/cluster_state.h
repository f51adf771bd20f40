/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health and sizes, as Elasticsearch counts them. Each host holds a copy of every shard: the
 * keeper's is the primary, those of the other live hosts are replicas, as many as an index asks
 * for; the replicas that it asks for beyond them are unassigned.
 */
#ifndef TL_API_CLUSTER_STATE_H
#define TL_API_CLUSTER_STATE_H

#include "api/request/nodes.h"
#include "api/request/request.h"
#include "core/catalog/catalog.h"
#include "json/write.h"

struct cluster_health {
    uint32_t primaries;
    uint32_t active; /* shards, primaries and replicas */
    uint32_t unassigned;
    bool refuses; /* changes, for want of room on the disk */
    const struct cluster_nodes *nodes;
};

/*
 * Returns: the health of the cluster without any index. It is red where this host refuses changes
 * or is cut off from the log, and yellow while not all hosts are current.
 */
struct cluster_health cluster_health_begin(struct request *request);

void cluster_health_add(struct cluster_health *health, const struct catalog_index *index);
/* Returns: "green", "yellow" or "red". Requires: cluster_health_begin(). */
const char *cluster_health_status(const struct cluster_health *health);
double cluster_health_percent(const struct cluster_health *health);

const char *index_health(const struct cluster_nodes *nodes, const struct catalog_index *index);

/* Returns: the node of a copy of each shard, 0 for the primary; NULL: it is unassigned. */
const struct cluster_node *cluster_copy_node(const struct cluster_nodes *nodes, uint32_t copy);

/*
 * Returns: an index's bytes on disk: documents with their history, and entries, estimated. As in
 * Elasticsearch, documents in the log alone are not counted: all of them until the first flush.
 */
uint64_t index_store_bytes(struct request *request, const struct catalog_index *index);

/* The statistics of one index, or of several, for _stats. */
struct index_stats {
    uint64_t documents;
    uint64_t bytes;
    uint64_t counts[INDEX_STAT_COUNT];
};
void index_stats_add(struct request *request, const struct catalog_index *index, struct index_stats *stats);
/* The metrics of _stats that are counted here. */
enum index_stats_metric { METRIC_DOCS, METRIC_STORE, METRIC_INDEXING, METRIC_GET, METRIC_SEARCH, METRIC_COUNT };
/* Writes the object of one. */
void index_stats_write(struct json_writer *writer, enum index_stats_metric metric, const struct index_stats *stats);

/*
 * Writes metrics of _stats that are zeros, all but those of enum index_stats_metric, or those that a
 * list names. Of stats.c.
 */
void stats_write_zeros(struct json_writer *writer, struct slice names);

/* Returns: how many files and sockets the process has open. */
uint64_t cluster_open_descriptors(void);

/* Writes the sizes of the disk that holds the data: total_in_bytes, free_in_bytes, available_in_bytes; 0: not known. */
void cluster_write_disk(struct request *request, struct json_writer *writer);

/* Returns: the time of processors that the process has taken. */
uint64_t cluster_processor_us(void);

/* Writes "breakers": {…}, the budget of memory. */
void breakers_write(struct request *request, struct json_writer *writer);

/*
 * Writes "_nodes", of as many as were asked for and answered, and "cluster_name", with which calls
 * about nodes begin their replies.
 */
void cluster_write_head(struct request *request, size_t total, struct json_writer *writer);

/* Writes what every call that lists nodes says of one: its name, addresses, roles and attributes, as members. */
void cluster_write_node(const struct cluster_node *node, struct json_writer *writer);

#endif
