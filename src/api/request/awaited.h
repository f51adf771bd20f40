/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for a timestamp before they are handled.
 *
 * Every response names a timestamp. A client that sends it back in the header Tidelock-After, to any
 * host of a cluster, is answered from a state that has everything up to it: the request waits until
 * that timestamp is stable on this host. In a cluster, a read at ?timestamp= waits, too.
 *
 * 1. The wait comes before the queue of the transaction, so that it delays no other request of it,
 *    and before the handler: a request that is refused here has had no effect.
 * 2. Waiting requests use no thread (followers.h).
 */
#ifndef TL_API_AWAITED_H
#define TL_API_AWAITED_H

#include "api/request/request.h"

/*
 * Reads the header Tidelock-After into request->after.
 * Returns: 0; REQUEST_REFUSED: it is no timestamp.
 */
int awaited_read(struct request *request) TL_MUST_USE;

/*
 * Runs `then` when `ts` is stable on this host: at once, or later on a worker. Waits as long as the
 * parameter `timeout` says, by default 10 s.
 * Returns: what `then` returned; REQUEST_PENDING; REQUEST_REFUSED: the timestamp was not reached in
 *          time, or the server stops.
 */
int awaited_timestamp(struct request *request, tl_ts ts, request_handler *then) TL_MUST_USE;

#endif
