/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection table: a slot for each connection. The watcher iterates over the slots, and an
 * event names a connection by its slot number. Slots are reused; the generation in an event shows
 * whether it belongs to the current connection or to an earlier one.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/http_internal.h"
#include "http/tls.h"

enum { NO_SLOT = UINT32_MAX, SLOTS_SPARE = 64 /* evicted connections keep their slots until they are closed */ };

uint64_t http_now_ms(void)
{
    return clock_boot_us() / TL_MS + 1;
}

void connection_table_init(struct http *http)
{
    http->slot_count = http->options.connections_max + SLOTS_SPARE;
    http->connections = mem_zalloc(http->slot_count * sizeof *http->connections);
    http->first_free = http->first_pending = NO_SLOT;
}

void connection_table_deinit(struct http *http)
{
    for (uint32_t i = 0; i < http->slots_used; i++)
        pthread_mutex_destroy(&http->connections[i].lock);
    mem_free(http->connections);
    http->connections = NULL;
}

static struct connection *take_slot(struct http *http)
{
    struct connection *connection = NULL;
    pthread_mutex_lock(&http->table_lock);
    if (http->first_free != NO_SLOT) {
        connection = &http->connections[http->first_free];
        http->first_free = connection->next_free;
    } else if (http->slots_used < http->slot_count) {
        connection = &http->connections[http->slots_used++];
        mutex_init(&connection->lock);
        connection->http = http;
        connection->fd = -1;
    }
    pthread_mutex_unlock(&http->table_lock);
    return connection;
}

void connection_enter(struct connection *connection, enum phase phase, size_t bytes)
{
    atomic_store_explicit(&connection->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&connection->since_ms, http_now_ms(), memory_order_relaxed);
    atomic_fetch_add_explicit(&connection->phases, 1, memory_order_relaxed);
    atomic_store_explicit(&connection->phase, phase, memory_order_release);
}

bool connection_reserve(struct http *http, int fd, const struct sockaddr *address)
{
    struct connection *connection = take_slot(http);
    if (connection == NULL)
        return false;
    connection->loopback = admission_peer_address(address, &connection->address);
    atomic_store_explicit(&connection->evicted, false, memory_order_relaxed);
    atomic_store_explicit(&connection->hung_up, false, memory_order_relaxed);
    atomic_store_explicit(&connection->read_closed, false, memory_order_relaxed);
    connection->receiving = NULL;
    connection->poller = NULL;
    connection->answered_slow_count = 0;
    pthread_mutex_lock(&connection->lock);
    connection->fd = fd;
    connection->generation++;
    pthread_mutex_unlock(&connection->lock);
    if (http->tls != NULL)
        handshake_enter(connection);
    else
        connection_enter(connection, PHASE_IDLE, 0);
    atomic_fetch_add(&http->connection_count, 1);
    pthread_mutex_lock(&http->table_lock);
    connection->next_free = http->first_pending;
    http->first_pending = (uint32_t)(connection - http->connections);
    pthread_mutex_unlock(&http->table_lock);
    return true;
}

/*
 * Removes the connection with the socket from the pending list.
 * Returns: NULL when it is not there.
 */
static struct connection *take_pending(struct http *http, int fd)
{
    struct connection *connection = NULL;
    pthread_mutex_lock(&http->table_lock);
    for (uint32_t *at = &http->first_pending; *at != NO_SLOT; at = &http->connections[*at].next_free)
        if (http->connections[*at].fd == fd) {
            connection = &http->connections[*at];
            *at = connection->next_free;
            break;
        }
    pthread_mutex_unlock(&http->table_lock);
    return connection;
}

void connection_cancel(struct http *http, int fd)
{
    struct connection *connection = take_pending(http, fd);
    if (connection != NULL)
        connection_closed(connection);
}

struct connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void connection_opened(struct http *http, struct MHD_Connection *mhd, void **socket_context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = take_pending(http, info->connect_fd);
    watch_enter_polling_thread();
    *socket_context = connection;
    (void)atomic_fetch_add_explicit(&http->accepted, 1, memory_order_relaxed);
    if (connection != NULL && watch_add(http, (uint32_t)(connection - http->connections)) != 0)
        log_warning("cannot watch a connection; if it breaks, its waiting requests will not be notified");
    if (connection != NULL && http->tls != NULL)
        handshake_setup(connection, mhd);
}

void connection_closed(struct connection *connection)
{
    struct http *http = connection->http;
    atomic_store_explicit(&connection->phase, PHASE_FREE, memory_order_release);
    handshake_leave(connection);
    tls_credentials_unref(tl_steal(connection->credentials)); /* the GnuTLS session has ended */
    if (connection->receiving != NULL)                        /* closed without a call of on_completed() */
        http_exchange_release(tl_steal(connection->receiving));
    pthread_mutex_lock(&connection->lock);
    INSIST(connection->exchange == NULL);
    connection->fd = -1;
    connection->generation++;
    pthread_mutex_unlock(&connection->lock);

    if (atomic_exchange(&connection->evicted, false))
        atomic_fetch_sub(&http->evicted_count, 1);
    pthread_mutex_lock(&http->table_lock);
    connection->next_free = http->first_free;
    http->first_free = (uint32_t)(connection - http->connections);
    pthread_mutex_unlock(&http->table_lock);
    atomic_fetch_sub(&http->connection_count, 1);
    if (!atomic_load(&http->accepting))
        watch_wake(http); /* a slot is free: accept again */
}

void connection_set_exchange(struct connection *connection, struct http_exchange *hx)
{
    pthread_mutex_lock(&connection->lock);
    connection->exchange = hx;
    pthread_mutex_unlock(&connection->lock);
}
