/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: libmicrohttpd's callbacks, start and stop. See README.md for the life of a request.
 */
#include "http/http.h"

#include "base/check.h"
#include "base/mutex.h"
#include "http/http_internal.h"
#include "http/reason.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTION_MEMORY = 16 * 1024, /* of libmicrohttpd, per connection: header and a block of the body */
    CLOSE_PATIENCE_MS = 5000,      /* http_close() waits this long for clients to read their responses */
};

struct http_options http_options_default(void)
{
    return (struct http_options){
        .host = "127.0.0.1",
        .port = 9200,
        .body_bytes_max = (size_t)100 << 20,
        .bodies_bytes_max = (size_t)512 << 20,
        .stream_bytes_max = (size_t)16 << 20,
        .connections_max = 16384,
        .idle_us = 600 * TL_SECOND,
        .header_us = 30 * TL_SECOND,
        .stall_us = 30 * TL_SECOND,
        .stall_bytes_second = 1024,
        .permits_after_us = 100 * TL_MS,
        .permits_max = 64,
    };
}

/* --- Callbacks of libmicrohttpd, on its polling threads --- */

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_opened(context, mhd, socket_context);
    else if (*socket_context != NULL)
        connection_closed(*socket_context);
}

static void *on_request_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    if (connection == NULL)
        return NULL;
    struct http_exchange *hx = http_exchange_acquire(context);
    hx->connection = connection;
    hx->mhd = mhd;
    connection->receiving = hx;
    connection_enter(connection, PHASE_RECEIVING, 0);
    receive_begin(hx, uri);
    return hx;
}

/* Leaves escapes in place: the handler decodes paths and parameters according to their meaning. */
static size_t on_unescape(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

/* Suspends the connection until the handler responds (invariant 2). */
static enum MHD_Result suspend_connection(struct http_exchange *hx)
{
    struct connection *connection = hx->connection;
    MHD_suspend_connection(hx->mhd);
    int state = HTTP_EXCHANGE_HANDLING;
    if (!atomic_compare_exchange_strong(&hx->state, &state, HTTP_EXCHANGE_WAITING)) {
        MHD_resume_connection(hx->mhd); /* the handler has responded meanwhile */
        return MHD_YES;
    }
    /*
     * From here the exchange may be answered and released at any time; connection->exchange shows
     * it.
     */
    if (atomic_load(&connection->hung_up)) {
        pthread_mutex_lock(&connection->lock);
        struct http_exchange *waiting = connection->exchange;
        if (waiting != NULL)
            pthread_mutex_lock(&waiting->lock);
        pthread_mutex_unlock(&connection->lock);
        if (waiting != NULL) {
            http_exchange_disconnected(waiting);
            pthread_mutex_unlock(&waiting->lock);
        }
    }
    return MHD_YES;
}

static bool is_answered(struct http_exchange *hx)
{
    int state = atomic_load(&hx->state);
    return state == HTTP_EXCHANGE_RESPONDED || state == HTTP_EXCHANGE_STREAMING;
}

/*
 * Returns: whether the request may be handed to the handler. It is counted before the check of
 * `refusing`, so that http_settled() misses none.
 */
static bool admit_request(struct http *http)
{
    atomic_fetch_add(&http->in_flight, 1);
    if (!atomic_load(&http->refusing))
        return true;
    atomic_fetch_sub(&http->in_flight, 1);
    return false;
}

static void hand_over(struct http_exchange *hx)
{
    struct http *http = hx->http;
    struct connection *connection = hx->connection;
    if (!admit_request(http)) {
        receive_refuse_stopping(hx);
        response_refuse(hx);
        return;
    }
    hx->handed_over = true;
    connection_set_exchange(connection, hx);
    connection_enter(connection, PHASE_WORKING, 0);
    hx->exchange.may_block = poller_enter(connection, poller_clock_ns());
    atomic_fetch_add_explicit(&http->requests, 1, memory_order_relaxed);
    atomic_store(&hx->state, HTTP_EXCHANGE_HANDLING);
    http->handler.handle(http->handler.context, &hx->exchange);
    poller_leave(connection, is_answered(hx), poller_clock_ns());
}

/*
 * Called by libmicrohttpd for the header, for each block of the body, at the end of the request,
 * and after each resumption of the connection.
 */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_len, void **request_context)
{
    (void)context;
    (void)mhd;
    (void)url;
    struct http_exchange *hx = *request_context;
    if (hx == NULL)
        return MHD_NO;
    if (!hx->header_seen) {
        hx->header_seen = true;
        if (!header_check(hx, method, version) && hx->close_after) {
            response_refuse(hx);
            return response_queue(hx);
        }
        if (receive_header(hx, method))
            return MHD_YES;
        response_refuse(hx);
        return response_queue(hx);
    }
    if (*data_len > 0) {
        bool go_on = receive_body(hx, (struct slice){data, *data_len});
        atomic_fetch_add_explicit(&hx->connection->bytes, *data_len, memory_order_relaxed);
        *data_len = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    if (!hx->handed_over && !is_answered(hx)) {
        receive_end(hx);
        if (hx->refusal != NULL)
            response_refuse(hx);
        else
            hand_over(hx);
    }
    if (!is_answered(hx))
        return suspend_connection(hx);
    poller_answered(hx->connection);
    enum MHD_Result queued = response_queue(hx);
    permits_release(hx);
    return queued;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)mhd;
    (void)code;
    struct http_exchange *hx = *request_context;
    if (hx == NULL)
        return;
    *request_context = NULL;
    struct connection *connection = hx->connection;
    permits_release(hx);
    connection->receiving = NULL;
    connection_enter(connection, PHASE_IDLE, 0);
    if (hx->handed_over)
        connection_set_exchange(connection, NULL);
    bool gone = true;
    if (atomic_load(&hx->state) == HTTP_EXCHANGE_STREAMING) {
        gone = stream_connection_done(hx);
    } else if (hx->handed_over) {
        /*
         * The watcher may still hold the lock of the exchange, taken in report_hang_up() before it
         * was detached from the connection. Wait for it: afterwards the exchange may serve another
         * connection, to which the hang-up would be attributed, or be freed.
         */
        pthread_mutex_lock(&hx->lock);
        pthread_mutex_unlock(&hx->lock);
    }
    if (gone)
        http_exchange_release(hx);
}

/* --- Start and stop --- */

/* MHD_OPTION_CLIENT_DISCIPLINE_LVL of libmicrohttpd 1.x, which the headers of 0.9 do not define. */
#define OPTION_CLIENT_DISCIPLINE 38
#define CLIENT_DISCIPLINE_STRICTEST 3

/*
 * Never used: libmicrohttpd requires a certificate callback, but handshake_setup() sets
 * credentials.
 */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                          const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **ret_certs,
                          unsigned *ret_cert_count, gnutls_privkey_t *ret_key)
{
    (void)session, (void)names, (void)name_count, (void)algorithms, (void)algorithm_count, (void)ret_certs,
        (void)ret_cert_count, (void)ret_key;
    return -1;
}

static struct MHD_Daemon *start_daemon(struct http *http)
{
    unsigned threads = http->options.thread_count;
    struct MHD_OptionItem pool[] = {
        {threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (intptr_t)threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    /* 0.9 in strict mode closes without a response. header_check() checks the same and says why. */
    struct MHD_OptionItem strict[] = {
        {header_check_is_delegated() ? OPTION_CLIENT_DISCIPLINE : MHD_OPTION_END, CLIENT_DISCIPLINE_STRICTEST, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    bool tls = http->tls != NULL;
    struct MHD_OptionItem secure[] = {
        {tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, 0, (void *)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)no_certificate},
        {MHD_OPTION_END, 0, NULL},
    };
    /*
     * No Date, as Elasticsearch. Admission limits connections; here each thread may have all of
     * them.
     */
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_SUPPRESS_DATE_NO_CLOCK | (tls ? MHD_USE_TLS : 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, http,                               //
                            MHD_OPTION_CONNECTION_LIMIT, http->options.connections_max * threads, //
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,        //
                            MHD_OPTION_CONNECTION_TIMEOUT, 0u,                                    //
                            MHD_OPTION_URI_LOG_CALLBACK, on_request_line, http,                   //
                            MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,                      //
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,                    //
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,                      //
                            MHD_OPTION_ARRAY, pool, MHD_OPTION_ARRAY, strict, MHD_OPTION_ARRAY, secure, MHD_OPTION_END);
}

static struct http *http_new(const struct http_options *options, const struct http_handler *handler)
{
    struct http *http = mem_zalloc(sizeof *http);
    http->options = *options;
    http->handler = *handler;
    http->listener = http->watch_epoll = http->watch_wake = -1;
    if (http->options.thread_count == 0) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        http->options.thread_count = processors > 0 ? (unsigned)processors : 1;
    }
    mutex_init(&http->pool_lock);
    mutex_init(&http->table_lock);
    mutex_init(&http->listen_lock);
    connection_table_init(http);
    input_barrier_init(http);
    permits_init(http);
    return http;
}

static void http_free(struct http *http)
{
    watch_stop(http);
    listen_close(http);
    tls_close(http->tls);
    http_exchange_pool_deinit(http);
    connection_table_deinit(http);
    input_barrier_deinit(http);
    permits_deinit(http);
    pthread_mutex_destroy(&http->pool_lock);
    pthread_mutex_destroy(&http->table_lock);
    pthread_mutex_destroy(&http->listen_lock);
    mem_free(http);
}

/*
 * Starts the watcher and the polling threads. On failure no polling thread runs; http_free() ends
 * the watcher.
 * Returns: 0; TL_ERR_IO with *ret_reason.
 */
static int start_threads(struct http *http, char **ret_reason)
{
    int r = watch_start(http, ret_reason);
    if (r != 0)
        return r;
    errno = 0; /* libmicrohttpd does not always set it */
    http->daemon = start_daemon(http);
    if (http->daemon == NULL)
        return reason_fail(ret_reason, "cannot start %u polling threads%s%s; each needs file descriptors (ulimit -n)",
                           http->options.thread_count, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    r = listen_watch(http, ret_reason);
    if (r != 0) {
        watch_end(http); /* first: the watcher may be in a call that resumes a connection */
        MHD_stop_daemon(http->daemon);
    }
    return r;
}

int http_open(const struct http_options *options, const struct http_handler *handler, struct http **ret_http,
              char **ret_reason)
{
    struct http *http = http_new(options, handler);
    int r = options->tls.cert != NULL ? tls_open(&options->tls, &http->tls, ret_reason) : 0;
    if (r == 0)
        r = listen_open(options->host, options->port, &http->listener, &http->port, ret_reason);
    if (r == 0)
        r = start_threads(http, ret_reason);
    if (r != 0) {
        http_free(http);
        return tl_trace(r);
    }
    *ret_http = http;
    return 0;
}

uint16_t http_port(const struct http *http)
{
    return http->port;
}

int http_reload_tls(struct http *http, char **ret_reason)
{
    REQUIRE(http->tls != NULL);
    return tls_reload(http->tls, ret_reason);
}

void http_quiesce(struct http *http)
{
    if (atomic_exchange(&http->refusing, true))
        return;
    listen_close(http);
    watch_end_idle(http);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

bool http_drain(struct http *http, uint64_t us)
{
    uint64_t end = http_now_ms() + us / TL_MS;
    while (atomic_load(&http->open) > atomic_load(&http->streams)) {
        if (http_now_ms() >= end)
            return false;
        sleep_ms(2);
    }
    return true;
}

bool http_settled(struct http *http, uint64_t us)
{
    uint64_t end = http_now_ms() + us / TL_MS;
    while (atomic_load(&http->in_flight) > 0 || atomic_load(&http->streams) > 0) {
        if (http_now_ms() >= end)
            return false;
        sleep_ms(2);
    }
    return true;
}

void http_close(struct http *http)
{
    if (http == NULL)
        return;
    http_quiesce(http);
    REQUIRE(atomic_load(&http->in_flight) == 0 && atomic_load(&http->streams) == 0);
    (void)http_drain(http, CLOSE_PATIENCE_MS * TL_MS);
    watch_end(http); /* first: the watcher may be in a call that resumes a connection */
    permits_end(http); /* libmicrohttpd must not end with suspended connections */
    MHD_stop_daemon(http->daemon);
    http_free(http);
}

void http_stats(struct http *http, struct http_stats *ret_stats)
{
    *ret_stats = (struct http_stats){
        .connections = atomic_load(&http->connection_count),
        .in_flight = atomic_load(&http->in_flight),
        .streams = atomic_load(&http->streams),
        .queued_answers = permits_queued(http),
        .requests = atomic_load(&http->requests),
    };
}
