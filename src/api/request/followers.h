/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for something new in the store: GET /_changes?wait=, and reads that wait for a
 * timestamp (awaited.h); and for a change of the cluster's state: _cluster/health.
 *
 * They wait without a thread, and hold no snapshot of the store. One thread of this module watches
 * all of them: when the stable timestamp has passed the one that a request has seen, when its
 * timeout is over, its connection broken, or the server stops, the thread hands the request to a
 * worker, which looks again, and may let it wait again. The rate of handing over is bounded,
 * however much is written; the more requests wait, the longer the interval of each.
 *
 * A request that waits once, for one timestamp (`once`), is handed on as soon as that timestamp is
 * stable, to a worker for short work.
 *
 * A request that waits for the state (`on_state`) is handed on when journal_state_version() has
 * changed, to a worker for short work; writes of documents do not wake it.
 */
#ifndef TL_API_FOLLOWERS_H
#define TL_API_FOLLOWERS_H

#include "api/request/request.h"

struct followers;

/* One that waits; the request's, in its arena. */
struct follower {
    struct list link;
    struct request *request;
    request_handler *then; /* on a worker; it begins with request_look_again() */
    tl_ts seen;            /* up to when there was nothing for it */
    bool on_state;         /* it waits for the state, not for a timestamp */
    uint64_t seen_state;   /* if `on_state`: journal_state_version() before it looked */
    bool once;             /* it does not come back */
    uint64_t until_us;     /* by clock_boot_us() */
};

/* Returns: 0; TL_ERR_IO. Owns: the caller; followers_close(). */
int followers_open(struct journal *journal, struct followers **ret_followers) TL_MUST_USE;
/* Hands over all waiting requests and refuses later ones. From any thread, any number of times. */
void followers_stop(struct followers *followers);
/* Requires: none waits or comes any more. NULL is fine. */
void followers_close(struct followers *followers);

/*
 * Has the request wait. Returns: REQUEST_PENDING; REQUEST_DONE: it must not, the server stops, and
 * it still has the request.
 */
int followers_wait(struct followers *followers, struct follower *follower) TL_MUST_USE;

#endif
