/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of http_exchanges, and the operations of the handler on them. See README.md, invariants
 * 1 to 3.
 *
 * A released http_exchange keeps small buffers, so that the usual request allocates nothing.
 */
#include "base/check.h"
#include "http/http_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    POOL_MAX = 256,             /* http_exchanges in the pool */
    USUAL_BYTES = 352,          /* initial arena; enough for a usual waiting request */
    KEPT_BYTES_MAX = 16 * 1024, /* of each buffer of an http_exchange in the pool */
};

static struct http_exchange *hx_of(struct exchange *exchange)
{
    return container_of(exchange, struct http_exchange, exchange);
}

static struct slice ops_header(struct exchange *exchange, const char *name)
{
    return slice_from(MHD_lookup_connection_value(hx_of(exchange)->mhd, MHD_HEADER_KIND, name));
}

/*
 * Moves the exchange to the answered state, and resumes its connection if that is suspended. On
 * return the exchange may have been released. No other thread touches a suspended connection, so it
 * is safe to resume it after the move, or to let it wait for a permit.
 */
static void answer_exchange(struct http_exchange *hx, enum http_exchange_state answered)
{
    atomic_fetch_sub_explicit(&hx->http->in_flight, 1, memory_order_relaxed);
    int state = HTTP_EXCHANGE_HANDLING;
    if (atomic_compare_exchange_strong(&hx->state, &state, answered))
        return; /* the polling thread is in the handler, or in suspend(), and will find it */
    REQUIRE(state == HTTP_EXCHANGE_WAITING);
    atomic_store(&hx->state, answered);
    permits_resume(hx);
}

static void ops_release_body(struct exchange *exchange)
{
    receive_drop_body(hx_of(exchange));
    exchange->body = SLICE_NONE;
}

static void ops_respond(struct exchange *exchange)
{
    struct http_exchange *hx = hx_of(exchange);
    if (exchange->on_disconnect != NULL) {
        pthread_mutex_lock(&hx->lock);
        hx->disconnect_reported = true;
        pthread_mutex_unlock(&hx->lock);
    }
    answer_exchange(hx, HTTP_EXCHANGE_RESPONDED);
}

/*
 * Sets TCP_USER_TIMEOUT (RFC 5482); 0 keeps the default. By default the kernel retransmits
 * unacknowledged bytes for about a quarter of an hour before the connection breaks.
 */
static void set_user_timeout(struct http_exchange *hx, uint32_t timeout_ms)
{
    struct connection *connection = hx->connection;
    if (timeout_ms == 0)
        return;
    pthread_mutex_lock(&connection->lock);
    if (connection->exchange == hx && connection->fd >= 0)
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    pthread_mutex_unlock(&connection->lock);
}

/*
 * Opens the stream. on_disconnect may have been called for the waiting request; a hang-up is
 * reported once more for the stream. The exchange stays valid: the handler owns it until it closes
 * the stream.
 */
static void ops_stream_open(struct exchange *exchange)
{
    struct http_exchange *hx = hx_of(exchange);
    pthread_mutex_lock(&hx->lock);
    hx->disconnect_reported = false;
    bool hung_up = atomic_load(&hx->connection->hung_up);
    pthread_mutex_unlock(&hx->lock);
    set_user_timeout(hx, exchange->tcp_user_timeout_ms);
    exchange->response.guard = NULL; /* stream_write() checks the budget itself */
    budget_tally(BUDGET_STREAMS, (ptrdiff_t)exchange->response.len);
    atomic_fetch_add_explicit(&hx->http->streams, 1, memory_order_relaxed);
    answer_exchange(hx, HTTP_EXCHANGE_STREAMING);
    if (hung_up)
        http_exchange_disconnected(hx);
}

static size_t ops_peer(struct exchange *exchange, char *to, size_t room)
{
    struct http_exchange *hx = hx_of(exchange);
    struct connection *connection = hx->connection;
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    pthread_mutex_lock(&connection->lock);
    bool known = connection->exchange == hx && connection->fd >= 0 &&
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

static void ops_server(struct exchange *exchange, struct server_stats *ret_stats)
{
    struct http_exchange *hx = container_of(exchange, struct http_exchange, exchange);
    struct http *http = hx->http;
    struct http_stats stats;
    http_stats(http, &stats);
    *ret_stats = (struct server_stats){
        .connections = stats.connections,
        .connections_max = http->options.connections_max,
        .accepted = atomic_load_explicit(&http->accepted, memory_order_relaxed),
        .in_flight = stats.in_flight,
        .streams = stats.streams,
        .requests = stats.requests,
        .refused = atomic_load_explicit(&http->refused, memory_order_relaxed),
    };
}

static const struct exchange_ops http_exchange_ops = {
    .header = ops_header,
    .release_body = ops_release_body,
    .respond = ops_respond,
    .stream_open = ops_stream_open,
    .stream_write = stream_write,
    .stream_unsent = stream_unsent,
    .stream_close = stream_close,
    .peer = ops_peer,
    .server = ops_server,
};

static struct http_exchange *http_exchange_new(struct http *http)
{
    struct http_exchange *hx = mem_zalloc(sizeof *hx);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&hx->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    hx->http = http;
    hx->exchange.ops = &http_exchange_ops;
    hx->exchange.arena = ARENA_INIT;
    arena_reserve(&hx->exchange.arena, USUAL_BYTES);
    hx->exchange.response = BUF_INIT(BUF_UNLIMITED);
    hx->body = BUF_INIT(BUF_UNLIMITED);
    return hx;
}

static void http_exchange_free(struct http_exchange *hx)
{
    arena_deinit(&hx->exchange.arena);
    buf_deinit(&hx->exchange.response);
    buf_deinit(&hx->body);
    pthread_mutex_destroy(&hx->lock);
    mem_free(hx);
}

static void buf_recycle(struct buf *buf)
{
    if (buf->capacity > KEPT_BYTES_MAX)
        buf_deinit(buf);
    buf_clear(buf);
}

/* Resets all fields to those of a new http_exchange, except for the retained buffers. */
static void http_exchange_clear(struct http_exchange *hx)
{
    receive_uncharge(hx);
    struct arena arena = hx->exchange.arena;
    struct buf response = hx->exchange.response;
    if (atomic_load(&hx->state) == HTTP_EXCHANGE_STREAMING)
        budget_tally(BUDGET_STREAMS, -(ptrdiff_t)(response.len - hx->stream_sent));
    response.guard = hx->body.guard = NULL;
    if (arena.used > KEPT_BYTES_MAX)
        arena_deinit(&arena);
    else
        arena_reset(&arena);
    buf_recycle(&response);
    buf_recycle(&hx->body);
    hx->exchange = (struct exchange){.ops = &http_exchange_ops, .arena = arena, .response = response};
    hx->connection = NULL;
    hx->mhd = NULL;
    hx->dropped = 0;
    hx->header_seen = hx->handed_over = hx->needs_permit = false;
    hx->close_after = false;
    hx->refusal = NULL;
    hx->target = SLICE_NONE;
    hx->target_at = NULL;
    hx->disconnect_reported = hx->connection_done = hx->handler_done = false;
    hx->stream_closed = hx->stream_suspended = hx->stream_broken = false;
    hx->stream_sent = 0;
}

struct problem *http_exchange_refuse(struct http_exchange *hx)
{
    hx->refusal = arena_zalloc(&hx->exchange.arena, sizeof *hx->refusal);
    return hx->refusal;
}

struct http_exchange *http_exchange_acquire(struct http *http)
{
    pthread_mutex_lock(&http->pool_lock);
    struct http_exchange *hx = http->pool;
    if (hx != NULL) {
        http->pool = hx->next;
        http->pool_count--;
    }
    pthread_mutex_unlock(&http->pool_lock);
    if (hx == NULL)
        hx = http_exchange_new(http);
    hx->next = NULL;
    atomic_store_explicit(&hx->state, HTTP_EXCHANGE_RECEIVING, memory_order_relaxed);
    atomic_fetch_add_explicit(&http->open, 1, memory_order_relaxed);
    return hx;
}

void http_exchange_release(struct http_exchange *hx)
{
    struct http *http = hx->http;
    http_exchange_clear(hx);
    pthread_mutex_lock(&http->pool_lock);
    bool kept = http->pool_count < POOL_MAX;
    if (kept) {
        hx->next = http->pool;
        http->pool = hx;
        http->pool_count++;
    }
    pthread_mutex_unlock(&http->pool_lock);
    if (!kept)
        http_exchange_free(hx);
    atomic_fetch_sub(&http->open, 1); /* last: now http_drain() may return and the server be freed */
}

void http_exchange_pool_deinit(struct http *http)
{
    while (http->pool != NULL) {
        struct http_exchange *hx = http->pool;
        http->pool = hx->next;
        http_exchange_free(hx);
    }
    http->pool_count = 0;
}

void http_exchange_disconnected(struct http_exchange *hx)
{
    pthread_mutex_lock(&hx->lock);
    int state = atomic_load(&hx->state);
    bool owned = (state == HTTP_EXCHANGE_WAITING || state == HTTP_EXCHANGE_STREAMING) && !hx->handler_done;
    if (owned && !hx->disconnect_reported) {
        /*
         * The handler may set it concurrently; a call through the member would not be an atomic
         * load.
         */
        void (*on_disconnect)(struct exchange * exchange) = atomic_load(&hx->exchange.on_disconnect);
        hx->disconnect_reported = on_disconnect != NULL;
        if (on_disconnect != NULL)
            on_disconnect(&hx->exchange);
    }
    pthread_mutex_unlock(&hx->lock);
}
