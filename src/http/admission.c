/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crowds: who gets a place when there are few left. See README.md, "Places".
 *
 * The table is looked through for each connection that comes when an address may have reached its limit, or all places are
 * taken: a matter of microseconds, in the watcher's thread, which alone opens connections.
 */
#include "http/http_internal.h"

#include <sys/socket.h>

enum { RESERVE_PART = 16, RESERVE_MAX = 64, LEAVING_MAX = 32 };

bool crowd_address(const struct sockaddr *address, struct in6_addr *ret_address)
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

/* Those that have not been told to leave. */
static size_t staying(const struct http *http)
{
    return atomic_load(&http->connection_count) - atomic_load(&http->leaving_count);
}

/* Places that only programs on this host get, so that its administrator does. */
static size_t reserve(const struct http *http)
{
    size_t part = http->options.connections_max / RESERVE_PART;
    return part < RESERVE_MAX ? part : RESERVE_MAX;
}

static size_t address_limit(const struct http *http, bool loopback)
{
    size_t max = http->options.connections_max, given = http->options.address_connections_max;
    return given > 0 ? given : loopback ? max : max / 2 + max % 2;
}

/* What one look at the table tells. */
struct look {
    const struct in6_addr *address; /* NULL: whoever */
    bool spare_loopback;            /* its connections are not ended */
    bool shaking;                   /* only handshakes are */
    size_t count;                   /* connections of the address */
    struct connection *idlest;      /* of those that wait for a request; NULL: none does */
};

static void take_look(const struct http *http, struct look *look)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < http->slots_used; i++) {
        struct connection *connection = &http->connections[i];
        int phase = atomic_load_explicit(&connection->phase, memory_order_acquire);
        if (phase == PHASE_FREE || atomic_load_explicit(&connection->leaving, memory_order_relaxed) ||
            (look->address != NULL && memcmp(&connection->address, look->address, sizeof *look->address) != 0))
            continue;
        look->count++;
        uint64_t since = atomic_load_explicit(&connection->since_ms, memory_order_relaxed);
        if (!phase_is_waiting(phase) || (look->shaking && phase != PHASE_HANDSHAKE) || since >= oldest || (look->spare_loopback && connection->loopback))
            continue;
        oldest = since;
        look->idlest = connection;
    }
}

/* What has come in of it is still read and answered. Returns: false when it has begun a request. */
static bool end_for_another(struct http *http, struct connection *connection)
{
    if (connection == NULL || atomic_load(&http->leaving_count) >= LEAVING_MAX)
        return false;
    pthread_mutex_lock(&connection->lock);
    bool idle = connection->fd >= 0 && phase_is_waiting(atomic_load(&connection->phase));
    if (idle) {
        handshake_over(connection);
        atomic_store(&connection->leaving, true);
        atomic_fetch_add(&http->leaving_count, 1);
        atomic_store(&connection->drained, true);
        (void)shutdown(connection->fd, SHUT_RD);
    }
    pthread_mutex_unlock(&connection->lock);
    return idle;
}

bool crowd_has_room(const struct http *http)
{
    struct look look = {.address = NULL};
    if (atomic_load(&http->leaving_count) >= LEAVING_MAX)
        return false;
    if (staying(http) < http->options.connections_max)
        return true;
    take_look(http, &look);
    return look.idlest != NULL;
}

enum crowd_answer crowd_admit(struct http *http, const struct sockaddr *address)
{
    struct in6_addr from;
    bool loopback = crowd_address(address, &from);
    size_t limit = address_limit(http, loopback);
    if (staying(http) >= limit) {
        struct look own = {.address = &from};
        take_look(http, &own);
        if (own.count >= limit)
            return end_for_another(http, own.idlest) ? CROWD_COME : CROWD_REFUSED;
    }
    if (http->tls != NULL && atomic_load(&http->handshakes) >= handshakes_max(http)) {
        struct look shaking = {.shaking = true};
        take_look(http, &shaking);
        return end_for_another(http, shaking.idlest) ? CROWD_COME : CROWD_REFUSED;
    }
    if (staying(http) < http->options.connections_max - (loopback ? 0 : reserve(http)))
        return CROWD_COME;
    struct look all = {.spare_loopback = !loopback};
    take_look(http, &all);
    return end_for_another(http, all.idlest) ? CROWD_COME : CROWD_REFUSED;
}
