/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hearing what was sent before: after the server has stood still, or was busy, there may be requests in the kernel's buffers
 * that came in time. Nobody's lease may run out before they were read (http.h).
 *
 * The watcher does it. It takes the connections that wait to be accepted, and notes
 * of each connection how many bytes it has received. A connection is heard when as many have been read, and it is in no handler
 * with what they said. Bytes that the polling thread does not read because their request must wait for the one before (a
 * pipeline), or that the client must read an answer first, are not waited for.
 *
 * Between reading bytes and saying so libmicrohttpd may be held up for a moment; so a first look comes some milliseconds later.
 */
#include "base/check.h"
#include "base/log.h"
#include "http/http_internal.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

enum { LOOK_AGAIN_MS = 10 };

void hear_init(struct http *http)
{
    pthread_mutex_init(&http->hearing.lock, NULL);
}

void hear_deinit(struct http *http)
{
    pthread_mutex_destroy(&http->hearing.lock);
}

void http_input_barrier(struct http *http, void (*heard)(void *context), void *context)
{
    struct hearing *hearing = &http->hearing;
    pthread_mutex_lock(&hearing->lock);
    hearing->wanted = true;
    hearing->heard = heard;
    hearing->context = context;
    pthread_mutex_unlock(&hearing->lock);
    watch_wake(http);
}

static uint32_t slots_used(struct http *http)
{
    pthread_mutex_lock(&http->table_lock);
    uint32_t used = http->slots_used;
    pthread_mutex_unlock(&http->table_lock);
    return used;
}

static uint64_t waiting_bytes(int fd, unsigned long which)
{
    int bytes = 0;
    return ioctl(fd, which, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/* Notes what there is to be heard of each connection. */
static void mark(struct http *http)
{
    uint32_t used = slots_used(http);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        pthread_mutex_lock(&connection->lock);
        connection->unheard = connection->fd >= 0;
        connection->heard_generation = connection->generation;
        if (connection->unheard)
            connection->heard_until = watch_received_bytes(connection->fd);
        pthread_mutex_unlock(&connection->lock);
    }
}

/* Requires: the connection's lock. */
static bool is_heard(struct connection *connection)
{
    if (connection->fd < 0 || connection->generation != connection->heard_generation)
        return true;
    uint64_t received = watch_received_bytes(connection->fd);
    struct carrier *carrier = connection->carrier;
    int state = carrier != NULL ? atomic_load(&carrier->state) : CARRIER_RECEIVING;
    bool read = received >= connection->heard_until + waiting_bytes(connection->fd, SIOCINQ);
    switch (atomic_load_explicit(&connection->phase, memory_order_acquire)) {
    case PHASE_HANDSHAKE:
    case PHASE_IDLE:
    case PHASE_RECEIVING: return read;
    case PHASE_SENDING: return read || waiting_bytes(connection->fd, SIOCOUTQ) > 0;
    case PHASE_WORKING:
        /* Who has sent more since then is in there with that, or is no more waiting to be heard than others are. */
        return received != connection->heard_until || (state != CARRIER_RECEIVING && state != CARRIER_HANDLING);
    default: return true;
    }
}

static bool all_heard(struct http *http)
{
    bool all = true;
    uint32_t used = slots_used(http);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        if (!connection->unheard)
            continue;
        pthread_mutex_lock(&connection->lock);
        connection->unheard = !is_heard(connection);
        pthread_mutex_unlock(&connection->lock);
        all = all && !connection->unheard;
    }
    return all;
}

static void begin(struct http *http)
{
    struct hearing *hearing = &http->hearing;
    while (listen_accept(http) && !atomic_load(&http->stopping))
        continue;
    mark(http);
    hearing->going_on = true;
    hearing->looks = 0;
}

static void end(struct hearing *hearing)
{
    hearing->going_on = false;
    pthread_mutex_lock(&hearing->lock);
    void (*heard)(void *context) = hearing->heard;
    void *context = hearing->context;
    pthread_mutex_unlock(&hearing->lock);
    heard(context);
}

int hear_look(struct http *http)
{
    struct hearing *hearing = &http->hearing;
    if (!hearing->going_on) {
        pthread_mutex_lock(&hearing->lock);
        bool wanted = hearing->wanted;
        hearing->wanted = false;
        pthread_mutex_unlock(&hearing->lock);
        if (!wanted)
            return 0;
        begin(http);
        return LOOK_AGAIN_MS;
    }
    bool late =
        ++hearing->looks > HTTP_HEAR_US / TL_MS / LOOK_AGAIN_MS; /* by the clock a server that stood still would be */
    if (late)
        log_warning("requests that have come in are not read; leases run out all the same");
    if (!late && !all_heard(http))
        return LOOK_AGAIN_MS;
    end(hearing);
    return 0;
}
