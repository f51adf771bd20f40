/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: lets requests that name the same transaction through one after another (README.md, invariant 6).
 *
 * Those of a query transaction bypass it: it has no overlay that one could read while another writes.
 */
#ifndef TL_API_GATE_H
#define TL_API_GATE_H

#include "api/request/request.h"

struct gate;

/* Owns: the caller; gate_free. */
struct gate *gate_new(void);
/* Requires: no request is inside. NULL is fine. */
void gate_free(struct gate *gate);

/*
 * Returns: true when the request may continue; false when it was queued, and a later gate_leave()
 * hands it out. Requests without a transaction always may.
 */
bool gate_enter(struct gate *gate, struct request *request);

/* Ends a request's stay, if it has passed the gate. Returns: the request that may continue in its place, or NULL. */
struct request *gate_leave(struct gate *gate, const struct request *request);

#endif
