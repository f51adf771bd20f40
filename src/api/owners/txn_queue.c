/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of update transactions; see txn_queue.h. */
#include "api/owners/txn_queue.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/map.h"

/* A transaction with a request that is being executed. */
struct txn_queue_lane {
    struct list queue; /* of waiting requests, by `link` */
};

struct txn_queue {
    pthread_mutex_t lock;
    struct map lanes; /* by transaction id */
};

struct txn_queue *txn_queue_new(void)
{
    struct txn_queue *queue = mem_zalloc(sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    queue->lanes = MAP_INIT;
    return queue;
}

void txn_queue_free(struct txn_queue *queue)
{
    if (queue == NULL)
        return;
    INSIST(queue->lanes.count == 0);
    map_deinit(&queue->lanes);
    pthread_mutex_destroy(&queue->lock);
    mem_free(queue);
}

bool txn_queue_enter(struct txn_queue *queue, struct request *request)
{
    if (request->transaction.len == 0 || request->query != NULL)
        return true;
    request->in_txn_queue = true;
    pthread_mutex_lock(&queue->lock);
    struct txn_queue_lane *lane = map_get(&queue->lanes, request->transaction);
    bool free = lane == NULL;
    if (free) {
        lane = mem_alloc(sizeof *lane);
        list_init(&lane->queue);
        map_put(&queue->lanes, request->transaction, lane);
    } else {
        list_append(&lane->queue, &request->link);
    }
    pthread_mutex_unlock(&queue->lock);
    return free;
}

struct request *txn_queue_leave(struct txn_queue *queue, const struct request *request)
{
    struct request *next = NULL;
    struct slice transaction = request->transaction;
    if (!request->in_txn_queue)
        return NULL;
    pthread_mutex_lock(&queue->lock);
    struct txn_queue_lane *lane = map_get(&queue->lanes, transaction);
    INSIST(lane != NULL);
    if (list_empty(&lane->queue)) {
        map_remove(&queue->lanes, transaction);
        mem_free(lane);
    } else {
        next = list_entry(lane->queue.next, struct request, link);
        list_remove(&next->link);
    }
    pthread_mutex_unlock(&queue->lock);
    return next;
}
