/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of requests; see traffic.h. */
#include "metrics/traffic.h"

#include "base/alloc.h"
#include "base/check.h"

const int traffic_statuses[TRAFFIC_STATUSES] = {0,   200, 201, 202, 204, 304, 400, 401, 403, 404,
                                                405, 406, 408, 409, 410, 411, 412, 413, 414, 415,
                                                416, 422, 424, 429, 431, 500, 501, 503, 507};

/* The counters of one endpoint in one shard; padded so that cells hardly share cache lines. */
struct cell {
    metric_value statuses[TRAFFIC_STATUSES];
    struct metric_histogram time;
    char padding[64];
};

struct traffic {
    size_t endpoint_count;
    _Atomic(struct cell *) cells[]; /* endpoint * TRAFFIC_SHARDS + shard; NULL: no request counted */
};

struct traffic *traffic_new(size_t endpoint_count)
{
    struct traffic *traffic = mem_zalloc(sizeof *traffic + endpoint_count * TRAFFIC_SHARDS * sizeof *traffic->cells);
    traffic->endpoint_count = endpoint_count;
    return traffic;
}

void traffic_free(struct traffic *traffic)
{
    if (traffic == NULL)
        return;
    for (size_t i = 0; i < traffic->endpoint_count * TRAFFIC_SHARDS; i++)
        mem_free(atomic_load(&traffic->cells[i]));
    mem_free(traffic);
}

/*
 * Returns: the calling thread's shard; shards are assigned in turn at the first count of a thread.
 */
static size_t own_shard(void)
{
    static _Atomic unsigned given;
    static _Thread_local unsigned own; /* plus one; 0: none yet */
    if (own == 0)
        own = 1 + atomic_fetch_add_explicit(&given, 1, memory_order_relaxed) % TRAFFIC_SHARDS;
    return own - 1;
}

static struct cell *cell_of(struct traffic *traffic, size_t endpoint)
{
    _Atomic(struct cell *) *cell_slot = &traffic->cells[endpoint * TRAFFIC_SHARDS + own_shard()];
    struct cell *cell = atomic_load_explicit(cell_slot, memory_order_acquire);
    if (cell != NULL)
        return cell;
    struct cell *fresh = mem_zalloc(sizeof *fresh);
    if (atomic_compare_exchange_strong(cell_slot, &cell, fresh))
        return fresh;
    mem_free(fresh); /* another thread of this shard was faster */
    return cell;
}

void traffic_record(struct traffic *traffic, size_t endpoint, int status, uint64_t us)
{
    REQUIRE(endpoint < traffic->endpoint_count);
    struct cell *cell = cell_of(traffic, endpoint);
    size_t at = TRAFFIC_STATUSES - 1;
    while (at > 0 && traffic_statuses[at] != status)
        at--;
    metric_add(&cell->statuses[at], 1);
    metric_observe(&cell->time, metric_times_us, us);
}

bool traffic_read(const struct traffic *traffic, size_t endpoint, struct traffic_reading *ret_reading)
{
    bool any = false;
    REQUIRE(endpoint < traffic->endpoint_count);
    *ret_reading = (struct traffic_reading){0};
    for (size_t shard = 0; shard < TRAFFIC_SHARDS; shard++) {
        const struct cell *cell =
            atomic_load_explicit(&traffic->cells[endpoint * TRAFFIC_SHARDS + shard], memory_order_acquire);
        if (cell == NULL)
            continue;
        any = true;
        for (size_t i = 0; i < TRAFFIC_STATUSES; i++)
            ret_reading->statuses[i] += metric_read(&cell->statuses[i]);
        metric_read_histogram(&cell->time, &ret_reading->time);
    }
    return any;
}
