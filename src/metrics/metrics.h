/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single numbers: counters, gauges, histograms. All zero is a valid beginning. From any thread, without locks; README.md.
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

/* The buckets of a histogram are up to each of these, and one for all above. */
enum { METRIC_BOUNDS = 15 };
extern const uint64_t metric_times_us[METRIC_BOUNDS]; /* 100 us to 60 s */
extern const uint64_t metric_sizes[METRIC_BOUNDS];    /* 1 to 16384: how many at once */

struct metric_histogram {
    metric_value buckets[METRIC_BOUNDS + 1]; /* each without those below it */
    metric_value sum;
};

void metric_observe(struct metric_histogram *histogram, const uint64_t bounds[static METRIC_BOUNDS], uint64_t value);

/* One that was read: plain numbers, which can be added up. */
struct metric_reading {
    uint64_t buckets[METRIC_BOUNDS + 1];
    uint64_t sum;
};

/* Adds what the histogram has to *reading. */
void metric_read_histogram(const struct metric_histogram *histogram, struct metric_reading *reading);

#endif
