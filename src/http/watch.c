/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher: a thread that accepts connections, detects hang-ups immediately and checks the time
 * limits of all connections once a second.
 *
 * Each connection's socket is in its epoll set for hang-ups only, edge-triggered: that is one
 * system call per connection, and an idle server sleeps. Time limits are not left to libmicrohttpd,
 * whose timer restarts with every byte: a client that sends one byte a second would never time out.
 */
#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/http_internal.h"
#include "http/reason.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SWEEP_MS = 1000,
    GAP_MS = 5000, /* a longer time between sweeps is a stall of process or host */
    EVENTS = 64,
    /* Ended connections that a polling thread closes before it looks for others' requests again, a millisecond. */
    ENDED_AT_ONCE = 32,
    ENDED_LOOKS = 8, /* reads of further events meanwhile */
};

/* Of events of libmicrohttpd's connections, as in its epoll_ctl(). */
#define CONNECTION_EVENTS (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLET)

static _Thread_local bool is_polling_thread;

void watch_enter_polling_thread(void)
{
    is_polling_thread = true;
}

/*
 * Whether an event of a polling thread is of a connection that its client has ended. libmicrohttpd's other descriptors
 * are read only.
 */
static bool is_of_ended(const struct epoll_event *event)
{
    if ((event->events & EPOLLOUT) == 0)
        return false;
    const struct connection *connection = connection_of(event->data.ptr);
    return connection != NULL && atomic_load(&connection->hung_up);
}

/* Moves an event to the end of the kernel's queue. */
static void requeue_event(int epoll, const struct epoll_event *event)
{
    const struct connection *connection = connection_of(event->data.ptr);
    struct epoll_event again = {.events = CONNECTION_EVENTS, .data = event->data};
    int r = epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, &again);
    INSIST(r == 0); /* the connection is open, and in the set, or it would have no event */
}

/*
 * Reads the events that follow those of ended connections. `count`: as many as a polling thread may read at once.
 * Thousands may end together, and it takes longer to close a connection than to end it: a request would wait for all
 * that ended before it. So ENDED_AT_ONCE of them are left in the array, and the others requeued. Returns: the number
 * of events in the array.
 */
static int put_off_ended(int epoll, struct epoll_event *events, int count, int room)
{
    int kept = 0, ended = 0;
    for (int look = 0;; look++) {
        for (int i = kept; i < count; i++) {
            if (is_of_ended(&events[i]) && ++ended > ENDED_AT_ONCE)
                requeue_event(epoll, &events[i]);
            else
                events[kept++] = events[i];
        }
        if (count < room || kept == room || look == ENDED_LOOKS)
            return kept;
        int more = epoll_pwait(epoll, events + kept, room - kept, 0, NULL);
        count = kept + (more > 0 ? more : 0);
    }
}

/*
 * Replaces the C library's epoll_wait() in this process; never fills the caller's array completely.
 *
 * libmicrohttpd (0.9.75 to 1.0.1, MHD_epoll()) calls epoll_wait() again when its array of 128
 * events was full, with the same timeout, which is usually infinite. If exactly 128 connections are
 * ready, they and all new ones wait until one more is ready: forever, if that one waits for them.
 * An array that is not full is processed immediately, and the next call returns the remaining
 * events.
 *
 * The program's definition takes precedence over the C library's, also for shared libraries. It is
 * in this file because the linker would prefer a sanitizer's definition to one in an object file of
 * its own. It uses epoll_pwait(), which sanitizers intercept.
 */
__attribute__((visibility("default"))) int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
    int room = max > 1 ? max - 1 : max;
    int count = epoll_pwait(epoll, events, room, timeout_ms, NULL);
    return is_polling_thread && count == room ? put_off_ended(epoll, events, count, room) : count;
}

int watch_add(struct http *http, uint32_t slot)
{
    struct connection *connection = &http->connections[slot];
    struct epoll_event event = {
        .events = EPOLLRDHUP | EPOLLET,
        .data.u64 = (uint64_t)slot << 32 | connection->generation,
    };
    return epoll_ctl(http->watch_epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0 ? 0 : TL_ERR_IO;
}

static void report_hang_up(struct http *http, uint64_t name)
{
    struct connection *connection = &http->connections[name >> 32];
    struct http_exchange *hx = NULL;
    pthread_mutex_lock(&connection->lock);
    if (connection->generation == (uint32_t)name && !atomic_load(&connection->read_closed)) {
        atomic_store(&connection->hung_up, true);
        hx = connection->exchange;
        if (hx != NULL)
            pthread_mutex_lock(&hx->lock); /* before it is detached from the connection (on_completed()) */
    }
    pthread_mutex_unlock(&connection->lock);
    if (hx != NULL) {
        http_exchange_disconnected(hx);
        pthread_mutex_unlock(&hx->lock);
    }
}

uint64_t watch_received_bytes(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

/* Returns: milliseconds since `since`, or since the end of the last stall if that was later. */
static uint64_t elapsed_ms(const struct http *http, uint64_t since, uint64_t now)
{
    return now - (since > http->resumed_ms ? since : http->resumed_ms);
}

/*
 * Checks a connection between requests: idle for too long, or an unfinished header. libmicrohttpd
 * does not report the start of a header; a change in the number of received bytes during the idle
 * phase shows it. Returns: the exceeded limit, or NULL.
 */
static const char *idle_limit_exceeded(struct connection *connection, uint64_t since, uint64_t now)
{
    const struct http_options *options = &connection->http->options;
    const struct http *http = connection->http;
    if (elapsed_ms(http, since, now) > options->idle_us / TL_MS)
        return "idle";
    uint64_t phase = atomic_load_explicit(&connection->phases, memory_order_relaxed);
    uint64_t received = watch_received_bytes(connection->fd);
    if (connection->idle_phase != phase) {
        connection->idle_phase = phase;
        connection->idle_received = received;
        connection->header_since_ms = 0;
    } else if (received != connection->idle_received && connection->header_since_ms == 0) {
        connection->header_since_ms = now;
    }
    bool slow = connection->header_since_ms != 0 &&
                elapsed_ms(http, connection->header_since_ms, now) > options->header_us / TL_MS;
    return slow ? "header not finished" : NULL;
}

/*
 * Returns: whether a transfer has exceeded its grace period and is below the minimum average rate.
 */
static bool is_stalled(const struct http *http, uint64_t since, uint64_t now, size_t bytes)
{
    const struct http_options *options = &http->options;
    uint64_t allowed = options->stall_us / TL_MS + bytes / (options->stall_bytes_second / 1000 + 1);
    return elapsed_ms(http, since, now) > allowed;
}

/* Requires: the connection's lock. Returns: the limit that the connection exceeds, or NULL. */
static const char *limit_exceeded(struct connection *connection, uint64_t now)
{
    REQUIRE(mutex_is_held(&connection->lock));
    const struct http *http = connection->http;
    uint64_t since = atomic_load_explicit(&connection->since_ms, memory_order_relaxed);
    size_t bytes = atomic_load_explicit(&connection->bytes, memory_order_relaxed);
    if (now <= since)
        return NULL;
    switch (atomic_load_explicit(&connection->phase, memory_order_acquire)) {
    case PHASE_HANDSHAKE:
        return elapsed_ms(http, since, now) > http->options.header_us / TL_MS ? "handshake not finished" : NULL;
    case PHASE_IDLE: return idle_limit_exceeded(connection, since, now);
    case PHASE_RECEIVING: return is_stalled(http, since, now, bytes) ? "body too slow" : NULL;
    case PHASE_SENDING: return is_stalled(http, since, now, bytes) ? "response not read" : NULL;
    default: return NULL;
    }
}

/*
 * Makes libmicrohttpd notice an end of the stream that it has missed. After a read that fills less
 * than its buffer it considers the socket drained, even if the end arrived together with the bytes.
 * Another shutdown() makes its epoll report the socket again.
 */
static void retrigger_end_of_stream(struct connection *connection)
{
    int phase = atomic_load_explicit(&connection->phase, memory_order_acquire);
    bool ended = atomic_load(&connection->hung_up) || atomic_load(&connection->read_closed);
    /* It was sending a response without "Connection: close" when http_quiesce() ended idle ones. */
    bool left_over = phase_is_waiting(phase) && atomic_load(&connection->http->refusing);
    if (left_over || (ended && (phase == PHASE_IDLE || phase == PHASE_RECEIVING)))
        (void)shutdown(connection->fd, SHUT_RD);
}

static void sweep_stalled(struct http *http)
{
    uint64_t now = http_now_ms();
    if (now - http->swept_ms > GAP_MS) /* nothing was read during a stall: restart all time limits */
        http->resumed_ms = now;
    http->swept_ms = now;
    pthread_mutex_lock(&http->table_lock);
    uint32_t used = http->slots_used;
    pthread_mutex_unlock(&http->table_lock);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        if (atomic_load_explicit(&connection->phase, memory_order_relaxed) == PHASE_FREE)
            continue;
        pthread_mutex_lock(&connection->lock);
        const char *why = connection->fd >= 0 ? limit_exceeded(connection, now) : NULL;
        if (why != NULL) {
            log_debug("connection %u ended: %s", i, why);
            (void)shutdown(connection->fd, SHUT_RDWR);
        } else if (connection->fd >= 0) {
            retrigger_end_of_stream(connection);
        }
        pthread_mutex_unlock(&connection->lock);
    }
}

void watch_end_idle(struct http *http)
{
    pthread_mutex_lock(&http->table_lock);
    uint32_t used = http->slots_used;
    pthread_mutex_unlock(&http->table_lock);
    for (uint32_t i = 0; i < used; i++) {
        struct connection *connection = &http->connections[i];
        pthread_mutex_lock(&connection->lock);
        if (connection->fd >= 0 && phase_is_waiting(atomic_load(&connection->phase))) {
            /* Requests that were received already are still read and answered. */
            atomic_store(&connection->read_closed, true);
            (void)shutdown(connection->fd, SHUT_RD);
        }
        pthread_mutex_unlock(&connection->lock);
    }
}

static void warn_when_full(struct http *http, bool *warned)
{
    bool full = atomic_load(&http->connection_count) >= http->options.connections_max;
    if (full && !*warned)
        log_warning("%u connections are open, the limit (--max-connections); the longest idle ones are closed, and if "
                    "none is idle new ones wait",
                    http->options.connections_max);
    *warned = full;
}

void watch_wake(struct http *http)
{
    ssize_t written = write(http->watch_wake, &(uint64_t){1}, sizeof(uint64_t));
    INSIST(written == sizeof(uint64_t));
}

static void take_event(struct http *http, uint64_t name)
{
    if (name == WATCH_LISTENER) {
        (void)listen_accept(http);
    } else if (name == WATCH_WAKE) {
        uint64_t times;
        (void)!read(http->watch_wake, &times, sizeof times);
        listen_again(http);
    } else {
        report_hang_up(http, name);
    }
}

static void watch_run(void *context)
{
    struct http *http = context;
    uint64_t next_sweep = http_now_ms() + SWEEP_MS;
    http->swept_ms = http_now_ms();
    bool warned = false;
    while (!atomic_load(&http->stopping)) {
        struct epoll_event events[EVENTS];
        int barrier_ms = input_barrier_poll(http);
        uint64_t now = http_now_ms();
        int wait_ms = now < next_sweep ? (int)(next_sweep - now) : 0;
        if (barrier_ms > 0 && barrier_ms < wait_ms)
            wait_ms = barrier_ms;
        int count = epoll_wait(http->watch_epoll, events, EVENTS, wait_ms);
        INSIST(count >= 0 || errno == EINTR);
        for (int i = 0; i < count; i++)
            take_event(http, events[i].data.u64);
        if (http_now_ms() >= next_sweep) {
            sweep_stalled(http);
            listen_again(http);
            warn_when_full(http, &warned);
            next_sweep = http_now_ms() + SWEEP_MS;
        }
    }
}

static int fail_watch(char **ret_reason, int error)
{
    return reason_fail(ret_reason, "cannot watch connections: %s%s", strerror(error),
                       error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

int watch_start(struct http *http, char **ret_reason)
{
    http->watch_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (http->watch_epoll < 0)
        return fail_watch(ret_reason, errno);
    http->watch_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->watch_wake < 0)
        return fail_watch(ret_reason, errno);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WATCH_WAKE};
    if (epoll_ctl(http->watch_epoll, EPOLL_CTL_ADD, http->watch_wake, &event) != 0)
        return fail_watch(ret_reason, errno);
    if (thread_start(&http->watcher, "watcher", watch_run, http) != 0)
        return fail_watch(ret_reason, errno);
    return 0;
}

void watch_end(struct http *http)
{
    if (!http->watcher.runs)
        return;
    atomic_store(&http->stopping, true);
    watch_wake(http);
    thread_join(&http->watcher);
}

void watch_stop(struct http *http)
{
    watch_end(http);
    if (http->watch_epoll >= 0)
        close(http->watch_epoll);
    if (http->watch_wake >= 0)
        close(http->watch_wake);
    http->watch_epoll = http->watch_wake = -1;
}
