/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that take turns.
 *
 * A polling thread sends the answers of all connections that were resumed before it reads another request. Thousands
 * of requests may wait for the same event, such as the end of their session, and are answered together. So at most
 * `turns_max` answers of requests that have waited long are with the polling threads at a time; the others are in a
 * queue, and their connections stay suspended. Each one that was sent gives its turn to the next one. A request
 * that has not waited long is answered at once, whatever is in the queue.
 */
#include "base/check.h"
#include "base/mutex.h"
#include "http/http_internal.h"

void turns_init(struct http *http)
{
    mutex_init(&http->turns.lock);
}

void turns_deinit(struct http *http)
{
    INSIST(http->turns.first == NULL);
    pthread_mutex_destroy(&http->turns.lock);
}

static bool has_waited_long(const struct http_exchange *hx)
{
    uint64_t since = atomic_load_explicit(&hx->connection->since_ms, memory_order_relaxed);
    return (http_now_ms() - since) * TL_MS >= hx->http->options.turns_after_us;
}

/* Returns: whether it has its turn at once. Else it is in the queue. */
static bool take_turn(struct http_exchange *hx)
{
    struct turns *turns = &hx->http->turns;
    pthread_mutex_lock(&turns->lock);
    bool now = turns->taken < hx->http->options.turns_max;
    hx->in_turn = true;
    if (now) {
        turns->taken++;
    } else {
        hx->next = NULL;
        *(turns->first == NULL ? &turns->first : &turns->last->next) = hx;
        turns->last = hx;
        turns->queued++;
    }
    pthread_mutex_unlock(&turns->lock);
    return now;
}

void turns_resume(struct http_exchange *hx)
{
    struct MHD_Connection *mhd = hx->mhd;
    if (!has_waited_long(hx) || take_turn(hx))
        MHD_resume_connection(mhd);
}

/* Returns: the first exchange of the queue, which it leaves; NULL: none. Requires: the lock. */
static struct http_exchange *pop(struct turns *turns)
{
    REQUIRE(mutex_is_held(&turns->lock));
    struct http_exchange *hx = turns->first;
    if (hx == NULL)
        return NULL;
    turns->first = hx->next;
    turns->queued--;
    hx->next = NULL;
    return hx;
}

void turns_pass_on(struct http_exchange *hx)
{
    struct turns *turns = &hx->http->turns;
    if (!hx->in_turn)
        return;
    hx->in_turn = false;
    pthread_mutex_lock(&turns->lock);
    struct http_exchange *next = pop(turns);
    if (next == NULL) {
        INSIST(turns->taken > 0);
        turns->taken--;
    }
    if (next != NULL) /* before the unlock: the polling threads do not end before turns_end() has had the lock */
        MHD_resume_connection(next->mhd);
    pthread_mutex_unlock(&turns->lock);
}

size_t turns_queued(struct http *http)
{
    pthread_mutex_lock(&http->turns.lock);
    size_t queued = http->turns.queued;
    pthread_mutex_unlock(&http->turns.lock);
    return queued;
}

void turns_end(struct http *http)
{
    struct turns *turns = &http->turns;
    for (;;) {
        pthread_mutex_lock(&turns->lock);
        struct http_exchange *hx = pop(turns);
        turns->taken += hx != NULL;
        pthread_mutex_unlock(&turns->lock);
        if (hx == NULL)
            return;
        MHD_resume_connection(hx->mhd);
    }
}
