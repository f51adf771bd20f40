/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, counted: by line, which is a route with a method, and by status, with the time that each took. Every thread counts in a
 * shard, of which threads share one only when there are more than TRAFFIC_SHARDS; README.md, invariants 1 and 6.
 */
#ifndef TL_METRICS_TRAFFIC_H
#define TL_METRICS_TRAFFIC_H

#include "metrics/metrics.h"

#include <stdbool.h>

enum { TRAFFIC_SHARDS = 16 };

/* The statuses that are counted apart; the first stands for all others. */
enum { TRAFFIC_STATUSES = 29 };
extern const int traffic_statuses[TRAFFIC_STATUSES];

struct traffic;

/* Owns: the caller; traffic_free(). */
struct traffic *traffic_new(size_t line_count);
void traffic_free(struct traffic *traffic);

/* Counts a request. Requires: line < line_count. */
void traffic_record(struct traffic *traffic, size_t line, int status, uint64_t us);

struct traffic_reading {
    uint64_t statuses[TRAFFIC_STATUSES];
    struct metric_reading time; /* in microseconds, by metric_times_us */
};

/* Returns: false when no request of the line was ever counted; *ret_reading is all zero then. */
bool traffic_read(const struct traffic *traffic, size_t line, struct traffic_reading *ret_reading);

#endif
