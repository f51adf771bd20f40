/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts requests by endpoint (a route and a method) and by status, with their durations. Each
 * thread counts in a shard; threads share shards only if there are more than TRAFFIC_SHARDS of
 * them. See README.md, invariants 1 and 6.
 */
#ifndef TL_METRICS_TRAFFIC_H
#define TL_METRICS_TRAFFIC_H

#include "metrics/metrics.h"

#include <stdbool.h>

enum { TRAFFIC_SHARDS = 16 };

/* The statuses that are counted separately; element 0 counts all others. */
enum { TRAFFIC_STATUSES = 29 };
extern const int traffic_statuses[TRAFFIC_STATUSES];

struct traffic;

/* Owns: the caller; traffic_free(). */
struct traffic *traffic_new(size_t endpoint_count);
/* NULL is permitted. */
void traffic_free(struct traffic *traffic);

/* Counts a request of `us` microseconds. Requires: endpoint < endpoint_count. */
void traffic_record(struct traffic *traffic, size_t endpoint, int status, uint64_t us);

struct traffic_reading {
    uint64_t statuses[TRAFFIC_STATUSES];
    struct metric_reading time; /* in microseconds, by metric_times_us */
};

/*
 * Reads the sums of all shards.
 * Returns: false, with *ret_reading zero, when nothing was counted.
 */
bool traffic_read(const struct traffic *traffic, size_t endpoint, struct traffic_reading *ret_reading);

#endif
