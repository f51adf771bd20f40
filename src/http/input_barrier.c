/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input barrier: all requests that arrived before its start are handled before it passes
 * (http.h).
 *
 * After a stall of the server, the kernel's buffers may hold requests that arrived in time, such as
 * keepalives of sessions. No lease may expire before they are processed.
 *
 * The watcher runs the barrier. It accepts the pending connections and records for each connection
 * how many bytes it has received. The barrier waits for a connection until that many bytes have
 * been read, and no handler is working on them. It does not wait for bytes that the polling thread
 * cannot read yet: those of a pipelined request, and those of a client that must first read its
 * response.
 *
 * Each call of http_input_barrier() is completed exactly once, by a barrier that began after the
 * call. Calls made while a barrier is running wait for the next one, which serves all of them.
 *
 * libmicrohttpd may be delayed between reading bytes and a change of the phase. Therefore the first
 * check comes some milliseconds after the start.
 */
#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/http_internal.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

enum { POLL_MS = 10 };

void input_barrier_init(struct http *http)
{
    mutex_init(&http->input_barrier.lock);
}

/* One call of http_input_barrier() that has not been completed. */
struct input_barrier_call {
    void (*passed)(void *context);
    void *context;
    struct input_barrier_call *next; /* the call made before */
};

static void free_calls(struct input_barrier_call *call)
{
    while (call != NULL) {
        struct input_barrier_call *next = call->next;
        mem_free(call);
        call = next;
    }
}

void input_barrier_deinit(struct http *http)
{
    struct input_barrier *barrier = &http->input_barrier;
    free_calls(barrier->requested);
    free_calls(barrier->running);
    pthread_mutex_destroy(&barrier->lock);
}

void http_input_barrier(struct http *http, void (*passed)(void *context), void *context)
{
    struct input_barrier *barrier = &http->input_barrier;
    struct input_barrier_call *call = mem_alloc(sizeof *call);
    pthread_mutex_lock(&barrier->lock);
    *call = (struct input_barrier_call){.passed = passed, .context = context, .next = barrier->requested};
    barrier->requested = call;
    pthread_mutex_unlock(&barrier->lock);
    watch_wake(http);
}

static uint32_t slots_used(struct http *http)
{
    pthread_mutex_lock(&http->table_lock);
    uint32_t used = http->slots_used;
    pthread_mutex_unlock(&http->table_lock);
    return used;
}

static uint64_t queued_bytes(int fd, unsigned long which)
{
    int bytes = 0;
    return ioctl(fd, which, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/* Records for each connection how many bytes the barrier waits for. */
static void record_unread(struct http *http)
{
    uint32_t used = slots_used(http);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        pthread_mutex_lock(&connection->lock);
        connection->unread = connection->fd >= 0;
        connection->unread_generation = connection->generation;
        if (connection->unread)
            connection->unread_until = watch_received_bytes(connection->fd);
        pthread_mutex_unlock(&connection->lock);
    }
}

/*
 * Returns: whether the barrier need not wait for the connection.
 * Requires: the connection's lock.
 */
static bool is_read(struct connection *connection)
{
    REQUIRE(mutex_is_held(&connection->lock));
    if (connection->fd < 0 || connection->generation != connection->unread_generation)
        return true;
    uint64_t received = watch_received_bytes(connection->fd);
    struct http_exchange *hx = connection->exchange;
    int state = hx != NULL ? atomic_load(&hx->state) : HTTP_EXCHANGE_RECEIVING;
    bool read = received >= connection->unread_until + queued_bytes(connection->fd, SIOCINQ);
    switch (atomic_load_explicit(&connection->phase, memory_order_acquire)) {
    case PHASE_HANDSHAKE:
    case PHASE_IDLE:
    case PHASE_RECEIVING: return read;
    case PHASE_SENDING: return read || queued_bytes(connection->fd, SIOCOUTQ) > 0;
    case PHASE_WORKING:
        /*
         * If more bytes have arrived since, the handler has a later request, or the client
         * pipelines.
         */
        return received != connection->unread_until ||
               (state != HTTP_EXCHANGE_RECEIVING && state != HTTP_EXCHANGE_HANDLING);
    default: return true;
    }
}

static bool all_read(struct http *http)
{
    bool all = true;
    uint32_t used = slots_used(http);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        if (!connection->unread)
            continue;
        pthread_mutex_lock(&connection->lock);
        connection->unread = !is_read(connection);
        pthread_mutex_unlock(&connection->lock);
        all = all && !connection->unread;
    }
    return all;
}

/* Begins a barrier for the calls that were made before. Returns: whether there was one. */
static bool begin_barrier(struct http *http)
{
    struct input_barrier *barrier = &http->input_barrier;
    pthread_mutex_lock(&barrier->lock);
    barrier->running = tl_steal(barrier->requested);
    pthread_mutex_unlock(&barrier->lock);
    if (barrier->running == NULL)
        return false;
    while (listen_accept(http) && !atomic_load(&http->stopping))
        continue;
    record_unread(http);
    barrier->polls = 0;
    return true;
}

/* A callback may call http_input_barrier(). */
static void end_barrier(struct input_barrier *barrier)
{
    struct input_barrier_call *calls = tl_steal(barrier->running);
    for (const struct input_barrier_call *call = calls; call != NULL; call = call->next)
        call->passed(call->context);
    free_calls(calls);
}

int input_barrier_poll(struct http *http)
{
    struct input_barrier *barrier = &http->input_barrier;
    if (barrier->running == NULL)
        return begin_barrier(http) ? POLL_MS : 0;
    bool late = /* counts polls instead of time: the time of a stall must not count */
        ++barrier->polls > HTTP_INPUT_BARRIER_TIMEOUT_US / TL_MS / POLL_MS;
    if (late)
        log_warning("requests that have arrived are not read; leases expire nevertheless");
    if (!late && !all_read(http))
        return POLL_MS;
    end_barrier(barrier);
    return begin_barrier(http) ? POLL_MS : 0;
}
