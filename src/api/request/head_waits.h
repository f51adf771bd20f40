/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a cluster: reads that must see everything that any host has acknowledged before them.
 *
 * One thread looks up the head of the log and waits until this host has applied it. One such lookup serves
 * all requests that waited when it began; those that arrive later wait for the next one, because
 * the head that is being looked up may precede what they must see. Before the next one begins, the thread waits a
 * while for the next reads of the clients that were just answered, so that one lookup serves all that read
 * again and again.
 *
 * 1. A request continues only after a lookup that began after its arrival has completed, and
 *    this host has applied the log up to that head.
 * 2. A miss, a read that found nothing, starts a lookup. Until it completes, each later
 *    read waits for one, too. So a client whose read missed an acknowledged write of another host, and
 *    that repeats it, finds it: writes that are answered before other hosts have them
 *    (distribute_timestamps=fast) cost their readers one retry at most.
 */
#ifndef TL_API_HEAD_WAITS_H
#define TL_API_HEAD_WAITS_H

#include "api/request/request.h"

struct head_waits;

/* Returns: 0; TL_ERR_IO. Owns: the caller; head_waits_close(). */
int head_waits_open(struct journal *journal, struct head_waits **ret_waits) TL_MUST_USE;
/* Ends all waits, and each later one at once. Idempotent. NULL is allowed. */
void head_waits_stop(struct head_waits *waits);
/* Requires: no request waits, and none will. NULL is allowed. */
void head_waits_close(struct head_waits *waits);

/* Records a miss. Called before it is answered. NULL: without effect. */
void head_waits_missed(struct head_waits *waits);
/* Returns: whether a lookup is pending because of a miss. NULL: false. */
bool head_waits_is_looking_up(struct head_waits *waits);

/*
 * Runs `then` on a worker, once this host has applied what any host acknowledged before this call.
 * Waits as long as the parameter `timeout` says, by default 10 s.
 * Returns: REQUEST_PENDING; REQUEST_REFUSED.
 */
int head_waits_add(struct request *request, request_handler *then) TL_MUST_USE;

#endif
