/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate.
 */
#include "api/owners/txn_queue.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/map.h"

/* A transaction that has a request inside. */
struct txn_queue_lane {
    struct list queue; /* of waiting requests, by `link` */
};

struct txn_queue {
    pthread_mutex_t lock;
    struct map lanes; /* by transaction id */
};

struct txn_queue *txn_queue_new(void)
{
    struct txn_queue *gate = mem_zalloc(sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    gate->lanes = MAP_INIT;
    return gate;
}

void txn_queue_free(struct txn_queue *gate)
{
    if (gate == NULL)
        return;
    INSIST(gate->lanes.count == 0);
    map_deinit(&gate->lanes);
    pthread_mutex_destroy(&gate->lock);
    mem_free(gate);
}

bool txn_queue_enter(struct txn_queue *gate, struct request *request)
{
    if (request->transaction.len == 0 || request->query != NULL)
        return true;
    request->gated = true;
    pthread_mutex_lock(&gate->lock);
    struct txn_queue_lane *lane = map_get(&gate->lanes, request->transaction);
    bool free = lane == NULL;
    if (free) {
        lane = mem_alloc(sizeof *lane);
        list_init(&lane->queue);
        map_put(&gate->lanes, request->transaction, lane);
    } else {
        list_append(&lane->queue, &request->link);
    }
    pthread_mutex_unlock(&gate->lock);
    return free;
}

struct request *txn_queue_leave(struct txn_queue *gate, const struct request *request)
{
    struct request *next = NULL;
    struct slice transaction = request->transaction;
    if (!request->gated)
        return NULL;
    pthread_mutex_lock(&gate->lock);
    struct txn_queue_lane *lane = map_get(&gate->lanes, transaction);
    INSIST(lane != NULL);
    if (list_empty(&lane->queue)) {
        map_remove(&gate->lanes, transaction);
        mem_free(lane);
    } else {
        next = list_entry(lane->queue.next, struct request, link);
        list_remove(&next->link);
    }
    pthread_mutex_unlock(&gate->lock);
    return next;
}
