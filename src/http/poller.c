/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a request may block its polling thread until its writes are durable (`may_block`).
 *
 * A request that is processed on the thread that read it needs no hand-over to another thread,
 * which would wake an idle processor. On a host with two processors, hand-overs are half of the
 * latency of a single client, and most of the delay when two clients pass a lock to each other.
 * However, the other connections of a blocked thread are not read. So requests may block their
 * threads until contention is detected:
 *
 * - A call of the handler that takes longer than SLOW_NS is slow; the time of its return is
 *   recorded.
 * - A request that enters within QUEUED_NS after a slow call was queued during it. The exception is
 *   a connection whose previous response was sent after that call: its client has only now sent the
 *   request. It is the client of the slow call, or a client to which that call granted a lock.
 * - A queued request that is then answered immediately was delayed by the slow call alone. A
 *   request that is not answered immediately would have waited in any case, for a lock.
 * - CONTENDED_AFTER such requests in a row are contention: for a period no request of the server
 *   may block its thread. The period doubles each time contention recurs within CALM_NS.
 */
#include "http/http_internal.h"

#include <time.h>

#define SLOW_NS UINT64_C(50000)   /* a longer call of the handler is slow */
#define QUEUED_NS UINT64_C(40000) /* covers sending the response of the slow call */
#define CONTENDED_NS_MIN UINT64_C(16000000)
#define CONTENDED_NS_MAX UINT64_C(1024000000)
#define CALM_NS UINT64_C(200000000) /* without contention; then the next period is the minimum */

enum { CONTENDED_AFTER = 2 };

uint64_t poller_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Returns: the calling thread's element of http->pollers, claimed at its first request; NULL when
 * all are claimed: then its requests never block the thread.
 */
static struct poller *poller_of_thread(struct http *http)
{
    pthread_t self = pthread_self();
    unsigned claimed = atomic_load(&http->pollers_claimed);
    for (unsigned i = 0; i < claimed && i < POLLERS_MAX; i++)
        if (atomic_load(&http->pollers[i].claimed) && pthread_equal(http->pollers[i].thread, self))
            return &http->pollers[i];
    unsigned index = atomic_fetch_add(&http->pollers_claimed, 1);
    if (index >= POLLERS_MAX)
        return NULL;
    http->pollers[index].thread = self;
    atomic_store(&http->pollers[index].claimed, true);
    return &http->pollers[index];
}

bool poller_enter(struct connection *connection, uint64_t now_ns)
{
    struct http *http = connection->http;
    if (connection->poller == NULL)
        connection->poller = poller_of_thread(http);
    struct poller *poller = connection->poller;
    if (poller == NULL)
        return false;
    bool answered_since = connection->answered_slow_count == poller->slow_count;
    poller->queued_behind_slow = poller->slow && now_ns - poller->left_ns < QUEUED_NS && !answered_since;
    poller->entered_ns = now_ns;
    return atomic_load_explicit(&http->contended_until_ns, memory_order_relaxed) <= now_ns;
}

/* Starts a period of contention. Threads may race here; either of their values is good enough. */
static void note_contention(struct http *http, uint64_t now_ns)
{
    uint64_t until = atomic_load_explicit(&http->contended_until_ns, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&http->contended_ns, memory_order_relaxed);
    if (until > now_ns)
        return;
    uint64_t ns = last == 0 || now_ns - until > CALM_NS ? CONTENDED_NS_MIN : last < CONTENDED_NS_MAX ? last * 2 : last;
    atomic_store_explicit(&http->contended_ns, ns, memory_order_relaxed);
    atomic_store_explicit(&http->contended_until_ns, now_ns + ns, memory_order_relaxed);
}

void poller_leave(struct connection *connection, bool answered, uint64_t now_ns)
{
    struct poller *poller = connection->poller;
    if (poller == NULL)
        return;
    poller->left_ns = now_ns;
    poller->slow = now_ns - poller->entered_ns > SLOW_NS;
    poller->slow_count += poller->slow;
    if (!poller->queued_behind_slow)
        poller->queued_in_a_row = 0;
    else if (answered && ++poller->queued_in_a_row >= CONTENDED_AFTER)
        note_contention(connection->http, now_ns);
}

void poller_answered(struct connection *connection)
{
    if (connection->poller != NULL)
        connection->answered_slow_count = connection->poller->slow_count;
}
