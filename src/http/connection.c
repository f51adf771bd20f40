/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of connections: a slot each, so that the watcher can walk them and an event can name one by number. Slots
 * are used again; their generation tells an event for a former tenant from one for the present.
 */
#include "base/check.h"
#include "base/log.h"
#include "http/http_internal.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

enum { NO_SLOT = UINT32_MAX, SLOTS_SPARE = 64 /* libmicrohttpd counts a connection out before it tells us */ };

uint64_t http_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + 1;
}

void connection_table_init(struct http *http)
{
    http->slot_count = http->options.connections_max + SLOTS_SPARE;
    http->connections = mem_zalloc(http->slot_count * sizeof *http->connections);
    http->first_free = NO_SLOT;
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
        pthread_mutex_init(&connection->lock, NULL);
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
    atomic_store_explicit(&connection->phase, phase, memory_order_release);
}

/* 127.0.0.0/8 and ::1, which no packet from outside can have. */
static bool is_loopback(const struct sockaddr *address)
{
    if (address != NULL && address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (address == NULL || address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

void connection_opened(struct http *http, struct MHD_Connection *mhd, void **socket_context)
{
    struct connection *connection = take_slot(http);
    *socket_context = connection;
    if (connection != NULL)
        atomic_fetch_add(&http->connection_count, 1);
    atomic_fetch_sub(&http->arriving, 1);
    if (connection == NULL)
        return;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    atomic_store_explicit(&connection->hung_up, false, memory_order_relaxed);
    atomic_store_explicit(&connection->drained, false, memory_order_relaxed);
    connection->loopback = is_loopback(MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    connection->receiving = NULL;
    connection->poller = NULL;
    connection->answered_keeps = 0;
    pthread_mutex_lock(&connection->lock);
    connection->fd = info->connect_fd;
    connection->generation++;
    pthread_mutex_unlock(&connection->lock);
    connection_enter(connection, PHASE_IDLE, 0);
    if (watch_add(http, (uint32_t)(connection - http->connections)) != 0)
        log_warning("cannot watch a connection; if it breaks, waiting requests of it will not be told");
}

void connection_closed(struct connection *connection)
{
    struct http *http = connection->http;
    atomic_store_explicit(&connection->phase, PHASE_FREE, memory_order_release);
    if (connection->receiving != NULL) /* libmicrohttpd did not say that the request was over */
        carrier_give_back(tl_steal(connection->receiving));
    pthread_mutex_lock(&connection->lock);
    INSIST(connection->carrier == NULL);
    connection->fd = -1;
    connection->generation++;
    pthread_mutex_unlock(&connection->lock);

    pthread_mutex_lock(&http->table_lock);
    connection->next_free = http->first_free;
    http->first_free = (uint32_t)(connection - http->connections);
    pthread_mutex_unlock(&http->table_lock);
    atomic_fetch_sub(&http->connection_count, 1);
}

void connection_set_carrier(struct connection *connection, struct carrier *carrier)
{
    pthread_mutex_lock(&connection->lock);
    connection->carrier = carrier;
    pthread_mutex_unlock(&connection->lock);
}
