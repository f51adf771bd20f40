/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms; see metrics.h. */
#include "metrics/metrics.h"

const uint64_t metric_times_us[METRIC_BOUNDS] = {100,   250,    500,    1000,    2500,    5000,     10000,   25000,
                                                 50000, 100000, 500000, 1000000, 5000000, 10000000, 60000000};
const uint64_t metric_sizes[METRIC_BOUNDS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

void metric_observe(struct metric_histogram *histogram, const uint64_t bounds[static METRIC_BOUNDS], uint64_t value)
{
    size_t at = 0;
    while (at < METRIC_BOUNDS && value > bounds[at])
        at++;
    metric_add(&histogram->buckets[at], 1);
    metric_add(&histogram->sum, value);
}

void metric_read_histogram(const struct metric_histogram *histogram, struct metric_reading *reading)
{
    for (size_t i = 0; i <= METRIC_BOUNDS; i++)
        reading->buckets[i] += metric_read(&histogram->buckets[i]);
    reading->sum += metric_read(&histogram->sum);
}
