/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters, gauges and histograms. Zeroed memory is a valid initial state. All functions may be
 * called from any thread and take no locks; see README.md, invariants 1 and 2.
 */
#ifndef TL_METRICS_METRICS_H
#define TL_METRICS_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A counter, or a gauge. */
typedef _Atomic uint64_t metric_value;

static inline void metric_add(metric_value *number, uint64_t more)
{
    (void)atomic_fetch_add_explicit(number, more, memory_order_relaxed);
}

static inline void metric_set(metric_value *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

static inline uint64_t metric_read(const metric_value *number)
{
    return atomic_load_explicit((metric_value *)(uintptr_t)number, memory_order_relaxed);
}

/* Upper bounds (inclusive) of the buckets of a histogram; a last bucket counts larger values. */
enum { METRIC_BOUNDS = 15 };
extern const uint64_t metric_times_us[METRIC_BOUNDS]; /* 100 us to 60 s */
extern const uint64_t metric_sizes[METRIC_BOUNDS];    /* 1 to 16384: batch sizes */

struct metric_histogram {
    metric_value buckets[METRIC_BOUNDS + 1]; /* not cumulative */
    metric_value sum;
};

/* Counts a value. */
void metric_observe(struct metric_histogram *histogram, const uint64_t bounds[static METRIC_BOUNDS], uint64_t value);

/* A histogram as read: plain numbers, which can be added. */
struct metric_reading {
    uint64_t buckets[METRIC_BOUNDS + 1];
    uint64_t sum;
};

/* Adds the numbers of the histogram to *reading. */
void metric_read_histogram(const struct metric_histogram *histogram, struct metric_reading *reading);

#endif
