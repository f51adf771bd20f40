/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: connections, limits, and exchanges for a handler. See README.md.
 */
#ifndef TL_HTTP_HTTP_H
#define TL_HTTP_HTTP_H

#include "api/request/exchange.h"
#include "http/tls.h"

struct budget;
struct http;

/* The callbacks of the code that answers requests. */
struct http_handler {
    /*
     * Handles a request. Called once for each, on a polling thread, which it must not block for
     * long.
     * Requires: it sets `on_disconnect`, if at all, before it returns.
     * Ensures: it responds or opens a stream, before it returns or later, from any thread
     * (exchange.h).
     */
    void (*handle)(void *context, struct exchange *exchange);
    /*
     * Returns: the value of Tidelock-Timestamp for responses of the server itself; TL_TS_NONE:
     * none. Called from any thread; not after http_quiesce(). NULL: those responses have no such
     * header.
     */
    tl_ts (*timestamp)(void *context);
    void *context;
};

struct http_options {
    const char *host;              /* name or address; an IPv6 address without its brackets */
    uint16_t port;                 /* 0: any free port */
    struct tls_files tls;          /* `cert` NULL: plain HTTP */
    const char *const *host_names; /* names accepted in Host, besides localhost and addresses */
    size_t host_name_count;
    unsigned thread_count;   /* polling threads; 0: one for each processor */
    size_t body_bytes_max;   /* of one request, after decompression */
    size_t bodies_bytes_max; /* of all requests at a time */
    struct budget *budget;   /* of memory; outlives the server; NULL: no limit besides these */
    size_t stream_bytes_max; /* written to a stream and not yet sent to its client */
    unsigned connections_max;
    unsigned address_connections_max; /* per address; 0: half of all, loopback without a limit */
    uint64_t idle_us;                 /* maximum time between requests of a connection */
    uint64_t header_us;               /* maximum time to receive a header, or for a TLS handshake */
    uint64_t stall_us;                /* grace period of a body or a response */
    size_t stall_bytes_second;        /* minimum average rate of it after the grace period */
    uint64_t permits_after_us;        /* answers of requests that waited so long need a permit (permits.c) */
    size_t permits_max;               /* of those, so many are sent at a time by one polling thread */
};

struct http_options http_options_default(void);

/*
 * Starts the server.
 *
 * Assumes: all signals that the program handles are blocked in the calling thread; the server's
 * threads inherit its mask.
 * Returns: 0; TL_ERR_IO when it cannot listen, cannot use the TLS files, or cannot start a thread:
 * *ret_reason has the cause, to be freed by mem_free (NULL: not wanted).
 * Owns: the caller; http_close().
 */
int http_open(const struct http_options *options, const struct http_handler *handler, struct http **ret_http,
              char **ret_reason) TL_MUST_USE;

/* Returns: the port that the server listens on. */
uint16_t http_port(const struct http *http);

/*
 * Reads the TLS files again. New connections use their contents; open ones keep their credentials.
 * May be called from any thread.
 *
 * Requires: the server was opened with TLS.
 * Returns: 0; TL_ERR_IO when the files cannot be used: *ret_reason has the cause, to be freed by
 * mem_free, and the former credentials stay in use.
 */
int http_reload_tls(struct http *http, char **ret_reason) TL_MUST_USE;

/* Stops accepting connections, closes idle ones, and refuses further requests with 503. */
void http_quiesce(struct http *http);

/*
 * Waits until no request is being received, handled or answered; streams do not count.
 * Returns: false when `us` microseconds were not enough.
 */
bool http_drain(struct http *http, uint64_t us);

/*
 * Waits until the handler has neither a request nor a stream. After http_quiesce() the handler gets
 * no further ones: once this has returned true, its context may be freed.
 * Returns: false when `us` microseconds were not enough.
 */
bool http_settled(struct http *http, uint64_t us);

/*
 * Closes all connections and frees the server. NULL is permitted.
 * Requires: the handler has responded to every exchange and closed every stream.
 */
void http_close(struct http *http);

/*
 * Starts an input barrier: calls `passed` once, when the handler has returned from all requests
 * that had arrived at this host before the call, or after HTTP_INPUT_BARRIER_TIMEOUT_US.
 *
 * The callback runs on a thread of the server; it is not called if the server is closed earlier. A
 * call while a barrier is running waits for the next barrier, which starts when the running one has
 * passed.
 */
#define HTTP_INPUT_BARRIER_TIMEOUT_US (60 * TL_SECOND)
void http_input_barrier(struct http *http, void (*passed)(void *context), void *context);

struct http_stats {
    size_t connections;
    size_t in_flight; /* requests handed to the handler and not answered; without open streams */
    size_t streams;
    size_t queued_answers; /* of requests that waited long: they wait for a permit */
    uint64_t requests;     /* handed to the handler since the start */
};

void http_stats(struct http *http, struct http_stats *ret_stats);

#endif
