/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange: one HTTP request and its response, as the api sees them.
 *
 * src/http makes exchanges out of connections and calls api_handle() when a request has come in whole. The api
 * answers by filling in the response and calling exchange_respond(), before api_handle() returns or later, from any
 * thread: an exchange that waits costs no thread. src/http sends the response and ends the exchange's life.
 *
 * Streams. For a response that stays open the api calls exchange_stream_open() instead, then exchange_stream_write()
 * any number of times, then exchange_stream_close().
 *
 * Broken connections. While an exchange waits or streams, src/http watches its connection; when
 * that breaks, it calls `on_disconnect` once (if set), from a thread of its own, and never after
 * the response has begun. The api must still respond (the response goes nowhere) or close the
 * stream: until then the exchange lives. Before it opens a stream the api may set another
 * `on_disconnect`; that one is called for a connection that has broken already, too, possibly by
 * the opening.
 */
#ifndef TL_API_EXCHANGE_H
#define TL_API_EXCHANGE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/types.h"

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_OPTIONS, HTTP_OTHER, HTTP_METHOD_COUNT };

enum { RESPONSE_HEADERS_MAX = 8 };

struct response_header {
    const char *name;   /* static */
    struct slice value; /* NUL-terminated, in the exchange's arena or static */
};

struct exchange;

struct server_stats {
    uint64_t connections;
    uint64_t connections_max;
    uint64_t accepted; /* connections, since the start */
    uint64_t in_flight; /* requests between their arrival and their answer */
    uint64_t streams;
    uint64_t requests; /* since the start, also those that the server itself refused */
    uint64_t refused;  /* of them, those */
};

/* What src/http provides. */
struct exchange_ops {
    /* Returns: the value of a request header (first one, name in any case), data NULL when absent. */
    struct slice (*header)(struct exchange *exchange, const char *name);
    /* Frees the request body, which is not read again: for exchanges that may wait for long. */
    void (*release_body)(struct exchange *exchange);
    void (*respond)(struct exchange *exchange);
    void (*stream_open)(struct exchange *exchange);
    void (*stream_write)(struct exchange *exchange, struct slice bytes);
    /* Returns: the bytes of the stream that are written and not sent yet; more than a limit breaks it. */
    size_t (*stream_unsent)(struct exchange *exchange);
    void (*stream_close)(struct exchange *exchange);
    /* Writes the client's address, "127.0.0.1:4711". Returns: its length, below `room`. NULL: it is unknown. */
    size_t (*peer)(struct exchange *exchange, char *to, size_t room);
    /* Returns statistics of the exchange's server. NULL: they are unknown. */
    void (*server)(struct exchange *exchange, struct server_stats *ret_stats);
};

struct exchange {
    const struct exchange_ops *ops;
    struct arena arena; /* lives as long as the exchange; used by one thread at a time */

    /* The request; valid until the response. */
    enum http_method method;
    struct slice method_name; /* as sent */
    struct slice path;        /* as sent, percent escapes included, without the query */
    struct slice query;       /* after the '?', as sent; data NULL: no '?' */
    struct slice body;        /* whole; empty: none, or released */
    bool local;               /* from this host itself, and by its headers neither from a browser nor through a proxy */
    /*
     * The calling thread may wait until its first command is durable: no other request waits for the thread. False from
     * then on, as the request continues on another thread, or within the completion.
     */
    bool may_block;

    /* The response. */
    int status;
    uint32_t tcp_user_timeout_ms;    /* of a stream (RFC 5482); 0: the default of the system */
    const char *content_type;        /* static or in the arena; NULL: application/json; charset=UTF-8 */
    tl_ts timestamp;                 /* for Tidelock-Timestamp; 0: the current stable timestamp, set by the api */
    struct response_header *headers; /* room for RESPONSE_HEADERS_MAX in the arena; NULL: none */
    size_t header_count;
    struct buf response; /* the body; src/http frees it and fills it for a stream. HEAD: sent as its length only */

    void (*_Atomic on_disconnect)(struct exchange *exchange); /* set by the api; NULL: not interested */
    void *api_context;                                        /* the api's */
};

static inline struct slice exchange_header(struct exchange *exchange, const char *name)
{
    return exchange->ops->header(exchange, name);
}

static inline void exchange_respond(struct exchange *exchange)
{
    exchange->ops->respond(exchange);
}

#endif
