/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: lets requests that name the same transaction through one after another (README.md, invariant 6).
 *
 * Those of a query transaction bypass it: it has no overlay that one could read while another writes.
 */
#ifndef TL_API_TXN_QUEUE_H
#define TL_API_TXN_QUEUE_H

#include "api/request/request.h"

struct txn_queue;

/* Owns: the caller; txn_queue_free. */
struct txn_queue *txn_queue_new(void);
/* Requires: no request is inside. NULL is fine. */
void txn_queue_free(struct txn_queue *gate);

/*
 * Returns: true when the request may continue; false when it was queued, and a later txn_queue_leave()
 * hands it out. Requests without a transaction always may.
 */
bool txn_queue_enter(struct txn_queue *gate, struct request *request);

/* Ends a request's stay, if it has passed the gate. Returns: the request that may continue in its place, or NULL. */
struct request *txn_queue_leave(struct txn_queue *gate, const struct request *request);

#endif
