/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permits, a counting semaphore of each polling thread, for answers that many requests get together.
 *
 * A polling thread sends the answers of all connections that were resumed before it reads another request. Thousands
 * of requests may wait for the same event, such as the end of their session, and are answered together. So at most
 * `permits_max` answers of requests that have waited long are with a polling thread at a time; the others are in a
 * queue, and their connections stay suspended. Each one that was sent passes its permit to the next one. A request
 * that has not waited long is answered at once, whatever is in the queue.
 *
 * A polling thread passes permits on to connections of its own only: libmicrohttpd resumes a connection under a lock
 * which the connection's thread holds while it visits all its suspended ones, about a millisecond with ten thousand.
 */
#include "base/check.h"
#include "base/mutex.h"
#include "http/http_internal.h"

/* Returns: the permits of a connection that has a request. */
static struct permits *permits_of(const struct http_exchange *hx)
{
    struct poller *poller = hx->connection->poller;
    return poller != NULL ? &poller->permits : &hx->http->permits;
}

void permits_init(struct http *http)
{
    mutex_init(&http->permits.lock);
    for (size_t i = 0; i < POLLERS_MAX; i++)
        mutex_init(&http->pollers[i].permits.lock);
}

static void deinit_one(struct permits *permits)
{
    INSIST(permits->first == NULL);
    pthread_mutex_destroy(&permits->lock);
}

void permits_deinit(struct http *http)
{
    deinit_one(&http->permits);
    for (size_t i = 0; i < POLLERS_MAX; i++)
        deinit_one(&http->pollers[i].permits);
}

static bool has_waited_long(const struct http_exchange *hx)
{
    uint64_t since = atomic_load_explicit(&hx->connection->since_ms, memory_order_relaxed);
    return (http_now_ms() - since) * TL_MS >= hx->http->options.permits_after_us;
}

/* Returns: whether it has a permit at once. Else it is in the queue. */
static bool take_permit(struct http_exchange *hx)
{
    struct permits *permits = permits_of(hx);
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
    if (!hx->needs_permit)
        return;
    struct permits *permits = permits_of(hx);
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

static size_t queued_of(struct permits *permits)
{
    pthread_mutex_lock(&permits->lock);
    size_t queued = permits->queued;
    pthread_mutex_unlock(&permits->lock);
    return queued;
}

size_t permits_queued(struct http *http)
{
    size_t queued = queued_of(&http->permits);
    for (size_t i = 0; i < POLLERS_MAX; i++)
        queued += queued_of(&http->pollers[i].permits);
    return queued;
}

static void resume_all(struct permits *permits)
{
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

void permits_end(struct http *http)
{
    resume_all(&http->permits);
    for (size_t i = 0; i < POLLERS_MAX; i++)
        resume_all(&http->pollers[i].permits);
}
