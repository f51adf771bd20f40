/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of all locks, put together from the pieces in which the core tells it (STATUS_LOCKS).
 */
#ifndef TL_API_LOCK_LIST_H
#define TL_API_LOCK_LIST_H

#include "api/request/request.h"

/* What is done with the list, a JSON object that lives as long as the request. */
typedef int lock_list_taker(struct request *request, struct slice body);

/*
 * Asks for the list. What fits in one piece is taken where the command is completed; the rest is asked for on a worker. Either
 * way the requests of others are applied between the pieces.
 * Returns: REQUEST_PENDING, or what the taker returned; REQUEST_REFUSED.
 */
int lock_list_read(struct request *request, struct slice index, struct slice path, lock_list_taker *then) TL_MUST_USE;

#endif
