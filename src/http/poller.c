/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling threads, and whether one may stay with a request until the disk has it.
 *
 * A request that is worked off where it was read costs no hand-over between threads, each of which wakes an idle
 * processor; on a machine with two of them that is half of what one client waits for, and most of what passes between
 * two who hand a lock to each other. But the other connections of this thread wait meanwhile, unread. So a thread stays
 * with its requests (`lone`) as long as nobody is found waiting behind it:
 *
 * - A handler that keeps its thread for long is noted, and when it returned.
 * - Whoever comes in right after that had been waiting, unless the answer to its last request went out even later: that is
 *   the same client again, or the one that was given the lock. If one that had been waiting is answered at once, it waited in
 *   vain: twice in a row is a *crowd*, and all requests are handed over for a while, the longer the more often that has
 *   happened. (One that is not answered now would have waited anyway, for a lock.)
 */
#include "http/http_internal.h"

#include <time.h>

#define KEPT_NS UINT64_C(50000)   /* a handler that takes longer keeps others waiting */
#define BEHIND_NS UINT64_C(40000) /* who comes in so soon after it was there before; in between its response went out */
#define CROWD_NS_MIN UINT64_C(16000000)
#define CROWD_NS_MAX UINT64_C(1024000000)
#define CALM_NS UINT64_C(200000000) /* after so long without a crowd it is believed to be over */

enum { CROWD_AFTER = 2 };

uint64_t poller_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Every polling thread claims a place at its first request; one that finds none is never lone. */
static struct poller *poller_of_thread(struct http *http)
{
    pthread_t self = pthread_self();
    unsigned claimed = atomic_load(&http->pollers_claimed);
    for (unsigned i = 0; i < claimed && i < POLLERS_MAX; i++)
        if (atomic_load(&http->pollers[i].claimed) && pthread_equal(http->pollers[i].thread, self))
            return &http->pollers[i];
    unsigned place = atomic_fetch_add(&http->pollers_claimed, 1);
    if (place >= POLLERS_MAX)
        return NULL;
    http->pollers[place].thread = self;
    atomic_store(&http->pollers[place].claimed, true);
    return &http->pollers[place];
}

bool poller_enter(struct connection *connection, uint64_t now_ns)
{
    struct http *http = connection->http;
    if (connection->poller == NULL)
        connection->poller = poller_of_thread(http);
    struct poller *poller = connection->poller;
    if (poller == NULL)
        return false;
    bool answered_since = connection->answered_keeps == poller->keeps;
    poller->behind = poller->kept && now_ns - poller->left_ns < BEHIND_NS && !answered_since;
    poller->entered_ns = now_ns;
    return atomic_load_explicit(&http->crowd_until_ns, memory_order_relaxed) <= now_ns;
}

/* Two threads may do so at once: the one or the other is right enough. */
static void note_crowd(struct http *http, uint64_t now_ns)
{
    uint64_t until = atomic_load_explicit(&http->crowd_until_ns, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&http->crowd_ns, memory_order_relaxed);
    if (until > now_ns)
        return;
    uint64_t ns = last == 0 || now_ns - until > CALM_NS ? CROWD_NS_MIN : last < CROWD_NS_MAX ? last * 2 : last;
    atomic_store_explicit(&http->crowd_ns, ns, memory_order_relaxed);
    atomic_store_explicit(&http->crowd_until_ns, now_ns + ns, memory_order_relaxed);
}

void poller_leave(struct connection *connection, bool answered, uint64_t now_ns)
{
    struct poller *poller = connection->poller;
    if (poller == NULL)
        return;
    poller->left_ns = now_ns;
    poller->kept = now_ns - poller->entered_ns > KEPT_NS;
    poller->keeps += poller->kept;
    if (!poller->behind)
        poller->in_a_row = 0;
    else if (answered && ++poller->in_a_row >= CROWD_AFTER)
        note_crowd(connection->http, now_ns);
}

void poller_answered(struct connection *connection)
{
    if (connection->poller != NULL)
        connection->answered_keeps = connection->poller->keeps;
}
