/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: lets requests that name the same transaction through one after another (README.md, invariant 6).
 */
#ifndef TL_API_GATE_H
#define TL_API_GATE_H

#include "api/request.h"

struct gate;

/* Owns: the caller; gate_free. */
struct gate *gate_new(void);
/* Requires: nobody is inside. NULL is fine. */
void gate_free(struct gate *gate);

/*
 * Returns: true when the request may go on; false when it was queued, and a later gate_leave() hands it out. Requests
 * without a transaction always may.
 */
bool gate_enter(struct gate *gate, struct request *request);

/* Ends a request's stay. Returns: the request that may go on in its place, or NULL. */
struct request *gate_leave(struct gate *gate, struct slice transaction);

#endif
