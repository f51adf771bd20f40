/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permits, a counting semaphore, for answers that many requests get together.
 *
 * A polling thread sends the answers of all connections that were resumed before it reads another request. Thousands
 * of requests may wait for the same event, such as the end of their session, and are answered together. So at most
 * `permits_max` answers of requests that have waited long are with the polling threads at a time; the others are in a
 * queue, and their connections stay suspended. Each one that was sent passes its permit to the next one. A request
 * that has not waited long is answered at once, whatever is in the queue.
 */
#include "base/check.h"
#include "base/mutex.h"
#include "http/http_internal.h"

void permits_init(struct http *http)
{
    mutex_init(&http->permits.lock);
}

void permits_deinit(struct http *http)
{
    INSIST(http->permits.first == NULL);
    pthread_mutex_destroy(&http->permits.lock);
}

static bool has_waited_long(const struct http_exchange *hx)
{
    uint64_t since = atomic_load_explicit(&hx->connection->since_ms, memory_order_relaxed);
    return (http_now_ms() - since) * TL_MS >= hx->http->options.permits_after_us;
}

/* Returns: whether it has a permit at once. Else it is in the queue. */
static bool take_permit(struct http_exchange *hx)
{
    struct permits *permits = &hx->http->permits;
    pthread_mutex_lock(&permits->lock);
    bool now = permits->taken < hx->http->options.permits_max;
    hx->needs_permit = true;
    if (now) {
        permits->taken++;
    } else {
        hx->next = NULL;
        *(permits->first == NULL ? &permits->first : &permits->last->next) = hx;
        permits->last = hx;
        permits->queued++;
    }
    pthread_mutex_unlock(&permits->lock);
    return now;
}

void permits_resume(struct http_exchange *hx)
{
    struct MHD_Connection *mhd = hx->mhd;
    if (!has_waited_long(hx) || take_permit(hx))
        MHD_resume_connection(mhd);
}

/* Returns: the first exchange of the queue, which it leaves; NULL: none. Requires: the lock. */
static struct http_exchange *pop(struct permits *permits)
{
    REQUIRE(mutex_is_held(&permits->lock));
    struct http_exchange *hx = permits->first;
    if (hx == NULL)
        return NULL;
    permits->first = hx->next;
    permits->queued--;
    hx->next = NULL;
    return hx;
}

void permits_release(struct http_exchange *hx)
{
    struct permits *permits = &hx->http->permits;
    if (!hx->needs_permit)
        return;
    hx->needs_permit = false;
    pthread_mutex_lock(&permits->lock);
    struct http_exchange *next = pop(permits);
    if (next == NULL) {
        INSIST(permits->taken > 0);
        permits->taken--;
    }
    if (next != NULL) /* before the unlock: the polling threads do not end before permits_end() has had the lock */
        MHD_resume_connection(next->mhd);
    pthread_mutex_unlock(&permits->lock);
}

size_t permits_queued(struct http *http)
{
    pthread_mutex_lock(&http->permits.lock);
    size_t queued = http->permits.queued;
    pthread_mutex_unlock(&http->permits.lock);
    return queued;
}

void permits_end(struct http *http)
{
    struct permits *permits = &http->permits;
    for (;;) {
        pthread_mutex_lock(&permits->lock);
        struct http_exchange *hx = pop(permits);
        permits->taken += hx != NULL;
        pthread_mutex_unlock(&permits->lock);
        if (hx == NULL)
            return;
        MHD_resume_connection(hx->mhd);
    }
}
