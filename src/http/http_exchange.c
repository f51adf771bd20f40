/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carriers: their pool, and what the handler may do with the exchange in one. See README.md, invariants 1 to 3.
 *
 * A carrier that goes back keeps a little memory, so that the usual request allocates nothing.
 */
#include "base/check.h"
#include "http/http_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    POOL_MAX = 256,             /* carriers kept */
    USUAL_BYTES = 352,          /* of an exchange's arena: what a request that waits has in it, its body read */
    KEPT_BYTES_MAX = 16 * 1024, /* of each buffer of a carrier that is kept */
};

static struct carrier *carrier_of(struct exchange *exchange)
{
    return container_of(exchange, struct carrier, exchange);
}

static struct slice ops_header(struct exchange *exchange, const char *name)
{
    return slice_from(MHD_lookup_connection_value(carrier_of(exchange)->mhd, MHD_HEADER_KIND, name));
}

/*
 * Moves the exchange to its answered state and lets the connection go on. The carrier may be gone when this returns.
 * Until a waiting connection is resumed nobody else touches it, so resuming after the move is safe.
 */
static void answer(struct carrier *carrier, enum carrier_state answered)
{
    struct MHD_Connection *mhd = carrier->mhd;
    atomic_fetch_sub_explicit(&carrier->http->in_flight, 1, memory_order_relaxed);
    int state = CARRIER_HANDLING;
    if (atomic_compare_exchange_strong(&carrier->state, &state, answered))
        return; /* the polling thread is still in the handler, or about to look */
    REQUIRE(state == CARRIER_WAITING);
    atomic_store(&carrier->state, answered);
    MHD_resume_connection(mhd);
}

static void ops_forget_body(struct exchange *exchange)
{
    intake_drop_body(carrier_of(exchange));
    exchange->body = SLICE_NONE;
}

static void ops_respond(struct exchange *exchange)
{
    struct carrier *carrier = carrier_of(exchange);
    if (exchange->on_disconnect != NULL) {
        pthread_mutex_lock(&carrier->lock);
        carrier->disconnect_told = true;
        pthread_mutex_unlock(&carrier->lock);
    }
    answer(carrier, CARRIER_RESPONDED);
}

/* The kernel would go on for a quarter of an hour to send again what nobody confirms. */
static void limit_silence(struct carrier *carrier, uint32_t silence_ms)
{
    struct connection *connection = carrier->connection;
    if (silence_ms == 0)
        return;
    pthread_mutex_lock(&connection->lock);
    if (connection->carrier == carrier && connection->fd >= 0)
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
    pthread_mutex_unlock(&connection->lock);
}

/*
 * What a hang-up meant for the waiting request and what it means for the stream are two things: it is told anew. A
 * stream is its handler's until it closes it, so the carrier stays.
 */
static void ops_stream_open(struct exchange *exchange)
{
    struct carrier *carrier = carrier_of(exchange);
    pthread_mutex_lock(&carrier->lock);
    carrier->disconnect_told = false;
    bool hung_up = atomic_load(&carrier->connection->hung_up);
    pthread_mutex_unlock(&carrier->lock);
    limit_silence(carrier, exchange->silence_ms);
    exchange->response.guard = NULL; /* each write of a stream asks (stream.c) */
    budget_tally(BUDGET_STREAMS, (ptrdiff_t)exchange->response.len);
    atomic_fetch_add_explicit(&carrier->http->streams, 1, memory_order_relaxed);
    answer(carrier, CARRIER_STREAMING);
    if (hung_up)
        carrier_disconnected(carrier);
}

static size_t ops_peer(struct exchange *exchange, char *to, size_t room)
{
    struct carrier *carrier = carrier_of(exchange);
    struct connection *connection = carrier->connection;
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    pthread_mutex_lock(&connection->lock);
    bool known = connection->carrier == carrier && connection->fd >= 0 &&
                 getpeername(connection->fd, (struct sockaddr *)&address, &len) == 0;
    pthread_mutex_unlock(&connection->lock);
    if (!known || (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return (size_t)snprintf(to, room, "a client that is gone");
    bool v6 = address.ss_family == AF_INET6;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address;
    (void)inet_ntop(address.ss_family, v6 ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr, host,
                    sizeof host);
    return (size_t)snprintf(to, room, "%s:%u", host, ntohs(v6 ? six->sin6_port : four->sin_port));
}

static void ops_server(struct exchange *exchange, struct server_figures *ret_figures)
{
    struct carrier *carrier = container_of(exchange, struct carrier, exchange);
    struct http *http = carrier->http;
    struct http_stats stats;
    http_stats(http, &stats);
    *ret_figures = (struct server_figures){
        .connections = stats.connections,
        .connections_max = http->options.connections_max,
        .accepted = atomic_load_explicit(&http->accepted, memory_order_relaxed),
        .in_flight = stats.in_flight,
        .streams = stats.streams,
        .requests = stats.requests,
        .refused = atomic_load_explicit(&http->refused, memory_order_relaxed),
    };
}

static const struct exchange_ops carrier_ops = {
    .header = ops_header,
    .forget_body = ops_forget_body,
    .respond = ops_respond,
    .stream_open = ops_stream_open,
    .stream_write = stream_write,
    .stream_behind = stream_behind,
    .stream_close = stream_close,
    .peer = ops_peer,
    .server = ops_server,
};

static struct carrier *carrier_new(struct http *http)
{
    struct carrier *carrier = mem_zalloc(sizeof *carrier);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&carrier->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    carrier->http = http;
    carrier->exchange.ops = &carrier_ops;
    carrier->exchange.arena = ARENA_INIT;
    arena_reserve(&carrier->exchange.arena, USUAL_BYTES);
    carrier->exchange.response = BUF_INIT(BUF_UNLIMITED);
    carrier->body = BUF_INIT(BUF_UNLIMITED);
    return carrier;
}

static void carrier_free(struct carrier *carrier)
{
    arena_deinit(&carrier->exchange.arena);
    buf_deinit(&carrier->exchange.response);
    buf_deinit(&carrier->body);
    pthread_mutex_destroy(&carrier->lock);
    mem_free(carrier);
}

static void buf_recycle(struct buf *buf)
{
    if (buf->capacity > KEPT_BYTES_MAX)
        buf_deinit(buf);
    buf_clear(buf);
}

/* Makes the carrier as new, but for the memory it keeps. */
static void carrier_clear(struct carrier *carrier)
{
    intake_release(carrier);
    struct arena arena = carrier->exchange.arena;
    struct buf response = carrier->exchange.response;
    if (atomic_load(&carrier->state) == CARRIER_STREAMING)
        budget_tally(BUDGET_STREAMS, -(ptrdiff_t)(response.len - carrier->stream_sent));
    response.guard = carrier->body.guard = NULL;
    if (arena.used > KEPT_BYTES_MAX)
        arena_deinit(&arena);
    else
        arena_reset(&arena);
    buf_recycle(&response);
    buf_recycle(&carrier->body);
    carrier->exchange = (struct exchange){.ops = &carrier_ops, .arena = arena, .response = response};
    carrier->connection = NULL;
    carrier->mhd = NULL;
    carrier->dropped = 0;
    carrier->head_seen = carrier->handed_over = false;
    carrier->last = false;
    carrier->refusal = NULL;
    carrier->target = SLICE_NONE;
    carrier->target_at = NULL;
    carrier->disconnect_told = carrier->connection_done = carrier->handler_done = false;
    carrier->stream_closed = carrier->stream_suspended = carrier->stream_broken = false;
    carrier->stream_sent = 0;
}

struct carrier *carrier_take(struct http *http)
{
    pthread_mutex_lock(&http->pool_lock);
    struct carrier *carrier = http->pool;
    if (carrier != NULL) {
        http->pool = carrier->next;
        http->pool_count--;
    }
    pthread_mutex_unlock(&http->pool_lock);
    if (carrier == NULL)
        carrier = carrier_new(http);
    carrier->next = NULL;
    atomic_store_explicit(&carrier->state, CARRIER_RECEIVING, memory_order_relaxed);
    atomic_fetch_add_explicit(&http->open, 1, memory_order_relaxed);
    return carrier;
}

void carrier_give_back(struct carrier *carrier)
{
    struct http *http = carrier->http;
    carrier_clear(carrier);
    pthread_mutex_lock(&http->pool_lock);
    bool kept = http->pool_count < POOL_MAX;
    if (kept) {
        carrier->next = http->pool;
        http->pool = carrier;
        http->pool_count++;
    }
    pthread_mutex_unlock(&http->pool_lock);
    if (!kept)
        carrier_free(carrier);
    atomic_fetch_sub(&http->open, 1); /* last: http_drain() may let the server go now */
}

void carrier_pool_deinit(struct http *http)
{
    while (http->pool != NULL) {
        struct carrier *carrier = http->pool;
        http->pool = carrier->next;
        carrier_free(carrier);
    }
    http->pool_count = 0;
}

void carrier_disconnected(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->lock);
    int state = atomic_load(&carrier->state);
    bool theirs = (state == CARRIER_WAITING || state == CARRIER_STREAMING) && !carrier->handler_done;
    if (theirs && !carrier->disconnect_told) {
        /* Whoever has the exchange may set it in this moment; GCC reads what is called through its name without care for that. */
        void (*on_disconnect)(struct exchange *exchange) = atomic_load(&carrier->exchange.on_disconnect);
        carrier->disconnect_told = on_disconnect != NULL;
        if (on_disconnect != NULL)
            on_disconnect(&carrier->exchange);
    }
    pthread_mutex_unlock(&carrier->lock);
}
