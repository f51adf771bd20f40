/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of each update transaction: requests that name it are executed one after another, in
 * order of arrival (README.md, invariant 6).
 *
 * Requests of a query transaction bypass it: it has no overlay that one could read while another writes.
 */
#ifndef TL_API_TXN_QUEUE_H
#define TL_API_TXN_QUEUE_H

#include "api/request/request.h"

struct txn_queue;

/* Owns: the caller; txn_queue_free. */
struct txn_queue *txn_queue_new(void);
/* Requires: no request is in a queue. NULL has no effect. */
void txn_queue_free(struct txn_queue *queue);

/*
 * Returns: true: the request may continue; false: it waits, and a later txn_queue_leave() returns it.
 * Requests without a transaction always may.
 */
bool txn_queue_enter(struct txn_queue *queue, struct request *request);

/*
 * Removes a request that has continued. Has no effect on one that was in no queue.
 * Returns: the next request of its transaction, which may continue; NULL: none waits.
 */
struct request *txn_queue_leave(struct txn_queue *queue, const struct request *request);

#endif
