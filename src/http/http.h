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

/* Who answers. */
struct http_handler {
    /*
     * Called once for each request, on a polling thread, which it must not hold for long. Ensures: a response or a
     * stream, now or later (exchange.h). `on_disconnect` is set before it returns, if at all.
     */
    void (*handle)(void *context, struct exchange *exchange);
    /* For Tidelock-Timestamp of what the server answers by itself; from any thread. NULL: none. */
    tl_ts (*timestamp)(void *context);
    void *context;
};

struct http_options {
    const char *host;              /* name or address; an IPv6 address without its brackets */
    uint16_t port;                 /* 0: a free one */
    struct tls_files tls;          /* its `cert` NULL: plain HTTP */
    const char *const *host_names; /* what requests may call the server besides localhost and addresses */
    size_t host_name_count;
    unsigned thread_count;   /* polling threads; 0: as many as there are processors */
    size_t body_bytes_max;   /* of one request, unpacked */
    size_t bodies_bytes_max; /* of all requests at one moment */
    struct budget *budget;   /* of memory, outlives the server; NULL: no limit but these */
    size_t stream_bytes_max; /* written to a stream and not yet read by its client */
    unsigned connections_max;
    unsigned address_connections_max; /* of one address; 0: half of all, and any number of loopback's */
    uint64_t idle_us;          /* a connection may stay open between requests */
    uint64_t head_us;          /* from the first byte of a request to the end of its header; a TLS handshake from its beginning */
    uint64_t stall_us;         /* grace for a body or a response, beyond which it must move by... */
    size_t stall_bytes_second; /* ... this many bytes a second on average */
};

struct http_options http_options_default(void);

/*
 * Starts listening and answering.
 *
 * Requires: all signals that the program handles are blocked in the calling thread, whose mask the server's inherit.
 * Returns: 0; TL_ERR_IO when it cannot listen or has no use for the files of TLS, `ret_reason` then says why, to be freed by mem_free.
 * Owns: the caller; http_close().
 */
int http_open(const struct http_options *options, const struct http_handler *handler, struct http **ret_http,
              char **ret_reason) TL_MUST_USE;

/* Returns: the port it listens at. */
uint16_t http_port(const struct http *http);

/*
 * Reads the files of TLS again: connections that begin from now on are by what they say, others go on. From any thread.
 * Requires: it was opened with TLS.
 * Returns: 0; TL_ERR_IO when they are not what they should be, `ret_reason` then says why, and all stays as it was.
 */
int http_reload_tls(struct http *http, char **ret_reason) TL_MUST_USE;

/* Takes no more connections, ends idle ones, and refuses new requests on others with 503. */
void http_quiesce(struct http *http);

/* Waits until no request but streams is being received, handled or answered. Returns: false when `us` was too short. */
bool http_drain(struct http *http, uint64_t us);

/*
 * Waits until the handler has no request and no stream any more. After http_quiesce() none comes anew, so once this has
 * returned true the handler may go.
 * Returns: false when `us` was too short.
 */
bool http_settled(struct http *http, uint64_t us);

/*
 * Ends all connections and frees the server. NULL is fine.
 * Requires: the handler has responded to every exchange and closed every stream.
 */
void http_close(struct http *http);

/*
 * Hears what was sent to the server: calls `heard` once every request that had reached this host before has been given to the handler
 * in whole, and the handler has returned, or after HTTP_HEAR_US in any case. It is called on a thread of the server's; not at all when
 * the server is closed before. While one hearing goes on, another is part of it.
 */
#define HTTP_HEAR_US (60 * TL_SECOND)
void http_input_barrier(struct http *http, void (*heard)(void *context), void *context);

struct http_stats {
    size_t connections;
    size_t in_flight; /* requests between their arrival and their answer */
    size_t streams;
    uint64_t requests; /* since the start */
};

void http_stats(struct http *http, struct http_stats *ret_stats);

#endif
