/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of new connections when slots are scarce. See README.md, "Connection slots".
 *
 * The table is scanned for each new connection while an address may have reached its limit or all
 * slots are taken. A scan takes microseconds and runs on the watcher's thread, which alone admits
 * connections.
 */
#include "http/http_internal.h"

#include <sys/socket.h>

enum { RESERVE_PART = 16, RESERVE_MAX = 64, EVICTED_MAX = 32 /* evicted and not yet closed */ };

bool admission_peer_address(const struct sockaddr *address, struct in6_addr *ret_address)
{
    *ret_address = in6addr_any;
    if (address != NULL && address->sa_family == AF_INET6) {
        *ret_address = ((const struct sockaddr_in6 *)address)->sin6_addr;
    } else if (address != NULL && address->sa_family == AF_INET) {
        ret_address->s6_addr[10] = ret_address->s6_addr[11] = 0xff;
        memcpy(&ret_address->s6_addr[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
    return IN6_IS_ADDR_LOOPBACK(ret_address) ||
           (IN6_IS_ADDR_V4MAPPED(ret_address) && ret_address->s6_addr[12] == IN_LOOPBACKNET);
}

/* Returns: the number of connections that are not evicted. */
static size_t admitted_count(const struct http *http)
{
    return atomic_load(&http->connection_count) - atomic_load(&http->evicted_count);
}

/*
 * Returns: the number of slots for loopback connections only, so that an administrator can connect.
 */
static size_t loopback_reserve(const struct http *http)
{
    size_t part = http->options.connections_max / RESERVE_PART;
    return part < RESERVE_MAX ? part : RESERVE_MAX;
}

static size_t address_limit(const struct http *http, bool loopback)
{
    size_t max = http->options.connections_max, given = http->options.address_connections_max;
    return given > 0 ? given : loopback ? max : max / 2 + max % 2;
}

/* A scan of the table: its filters and its results. */
struct slot_scan {
    const struct in6_addr *address; /* only connections of this address; NULL: of all */
    bool exclude_loopback;          /* do not select a loopback connection */
    bool handshaking;               /* select only a connection in its handshake */
    size_t count;                   /* connections of the address, evicted ones not included */
    struct connection *idlest;      /* the eviction candidate: waits longest; NULL: none waits */
};

static void scan_table(const struct http *http, struct slot_scan *scan)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < http->slots_used; i++) {
        struct connection *connection = &http->connections[i];
        int phase = atomic_load_explicit(&connection->phase, memory_order_acquire);
        if (phase == PHASE_FREE || atomic_load_explicit(&connection->evicted, memory_order_relaxed) ||
            (scan->address != NULL && memcmp(&connection->address, scan->address, sizeof *scan->address) != 0))
            continue;
        scan->count++;
        uint64_t since = atomic_load_explicit(&connection->since_ms, memory_order_relaxed);
        if (!phase_is_waiting(phase) || (scan->handshaking && phase != PHASE_HANDSHAKE) || since >= oldest ||
            (scan->exclude_loopback && connection->loopback))
            continue;
        oldest = since;
        scan->idlest = connection;
    }
}

/*
 * Evicts a connection (NULL: none); bytes that it has received are still processed and answered.
 * Returns: false when it does not wait for a request any more, or too many evictions are pending.
 */
static bool evict_connection(struct http *http, struct connection *connection)
{
    if (connection == NULL || atomic_load(&http->evicted_count) >= EVICTED_MAX)
        return false;
    pthread_mutex_lock(&connection->lock);
    bool idle = connection->fd >= 0 && phase_is_waiting(atomic_load(&connection->phase));
    if (idle) {
        handshake_leave(connection);
        atomic_store(&connection->evicted, true);
        atomic_fetch_add(&http->evicted_count, 1);
        atomic_store(&connection->read_closed, true);
        (void)shutdown(connection->fd, SHUT_RD);
    }
    pthread_mutex_unlock(&connection->lock);
    return idle;
}

bool admission_has_slot(const struct http *http)
{
    struct slot_scan scan = {.address = NULL};
    if (atomic_load(&http->evicted_count) >= EVICTED_MAX)
        return false;
    if (admitted_count(http) < http->options.connections_max)
        return true;
    scan_table(http, &scan);
    return scan.idlest != NULL;
}

enum admission_result admission_check(struct http *http, const struct sockaddr *address)
{
    struct in6_addr from;
    bool loopback = admission_peer_address(address, &from);
    size_t limit = address_limit(http, loopback);
    if (admitted_count(http) >= limit) {
        struct slot_scan own = {.address = &from};
        scan_table(http, &own);
        if (own.count >= limit)
            return evict_connection(http, own.idlest) ? ADMISSION_OK : ADMISSION_REFUSED;
    }
    if (http->tls != NULL && atomic_load(&http->handshakes) >= handshakes_max(http)) {
        struct slot_scan handshaking = {.handshaking = true};
        scan_table(http, &handshaking);
        return evict_connection(http, handshaking.idlest) ? ADMISSION_OK : ADMISSION_REFUSED;
    }
    if (admitted_count(http) < http->options.connections_max - (loopback ? 0 : loopback_reserve(http)))
        return ADMISSION_OK;
    struct slot_scan all = {.exclude_loopback = !loopback};
    scan_table(http, &all);
    return evict_connection(http, all.idlest) ? ADMISSION_OK : ADMISSION_REFUSED;
}
