/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of src/http share. See README.md for the life of a request and the invariants.
 */
#ifndef TL_HTTP_INTERNAL_H
#define TL_HTTP_INTERNAL_H

#include "base/budget.h"
#include "base/list.h"
#include "http/http.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

/* What a connection is doing, for its time limits. */
enum phase {
    PHASE_FREE, /* the slot holds no connection */
    PHASE_HANDSHAKE,
    PHASE_IDLE,
    PHASE_RECEIVING,
    PHASE_WORKING, /* no limit here: the handler's matter */
    PHASE_SENDING,
    PHASE_STREAMING,
    PHASE_COUNT
};

/* A polling thread; poller.c. All but `claimed` is its own. */
struct poller {
    _Atomic bool claimed; /* `thread` is set */
    pthread_t thread;
    uint64_t entered_ns; /* when the handler was called last */
    uint64_t left_ns;    /* when it returned */
    bool kept;           /* it had taken long */
    uint64_t keeps;      /* how many calls have */
    bool behind;         /* the request at hand was found waiting behind such a one */
    unsigned in_a_row;   /* how many requests were, and were answered at once, one after the other */
};

/* A slot in the table of connections. The memory stays; `generation` tells its tenants apart. */
struct connection {
    struct http *http;
    pthread_mutex_t lock;      /* fd, carrier, generation */
    struct carrier *carrier;   /* invariant 4 */
    struct carrier *receiving; /* polling thread's: the request that is coming in */
    struct poller *poller;     /* polling thread's: itself; NULL before the first request */
    uint64_t answered_keeps;   /* polling thread's: poller->keeps when it was answered last */
    int fd;                    /* -1: closed */
    uint32_t generation;
    uint32_t next_free;   /* slot, while this one is free, or expected */
    struct in6_addr address; /* the peer's, IPv4 mapped */
    bool loopback;           /* the peer is on this host */
    _Atomic bool leaving;    /* it has been ended to make room, and counts no more */
    _Atomic bool hung_up; /* the peer has closed its side */
    _Atomic bool drained; /* we have closed our reading side: a hang-up says nothing */
    _Atomic int phase;
    _Atomic uint64_t since_ms; /* when the phase began */
    _Atomic uint64_t phases;   /* begun so far: several may begin in the same millisecond */
    _Atomic size_t bytes;      /* moved, or to be moved, in this phase */
    _Atomic bool shaking; /* it counts in http->handshakes */
    bool begun;           /* polling thread's, of TLS: its first bytes have been read */
    struct tls_credentials *credentials; /* polling thread's: what it began TLS with; NULL: it has none */
    uint64_t idle_phase;       /* watcher's: the idle phase it has looked at, by `phases`; 0: none */
    uint64_t idle_received;    /* watcher's: bytes received when it first looked */
    uint64_t head_since_ms;    /* watcher's: when it first saw bytes of an unfinished header, 0 none */
    bool unheard;              /* watcher's: in the hearing at hand there is something of it to be read yet */
    uint32_t heard_generation; /* watcher's: the tenant that this is about */
    uint64_t heard_until;      /* watcher's: bytes that it had received when the hearing began */
};

enum carrier_state { CARRIER_RECEIVING, CARRIER_HANDLING, CARRIER_WAITING, CARRIER_RESPONDED, CARRIER_STREAMING };

/* An exchange and what carries it. */
struct carrier {
    struct exchange exchange;
    struct http *http;
    struct connection *connection;
    struct MHD_Connection *mhd;
    _Atomic int state;

    /* While receiving; polling thread's. */
    struct buf body;
    size_t dropped; /* bytes of a refused body */
    size_t charged; /* bytes counted in http->body_bytes */
    struct budget_guard memory; /* asked for the body */
    bool head_seen;
    bool handed_over;        /* the handler was called */
    bool last;               /* the connection is closed behind the answer */
    struct problem *refusal; /* NULL, or why the server itself answers; in the exchange's arena */
    struct slice target;     /* path and query as sent, with the authority where there is one */
    const char *target_at;   /* where libmicrohttpd had it: to be compared with, not to be read */

    /* Under `lock`. */
    pthread_mutex_t lock; /* recursive: on_disconnect may respond */
    bool disconnect_told; /* on_disconnect was called, or is of no use any more */
    bool connection_done;
    bool handler_done;
    bool stream_closed;
    bool stream_suspended;
    bool stream_broken; /* bytes were dropped: it must not end as if it were whole */
    size_t stream_sent; /* bytes of exchange.response that have gone out: a stream's are there until then */

    struct carrier *next; /* in the pool */
};

enum { POLLERS_MAX = 256 };

/* A hearing; input_barrier.c. All but `wanted` is the watcher's. */
struct hearing {
    pthread_mutex_t lock; /* wanted, heard, context */
    bool wanted;
    void (*heard)(void *context);
    void *context;
    bool going_on;
    unsigned looks; /* so far */
};

struct http {
    struct http_options options;
    struct http_handler handler;
    struct MHD_Daemon *daemon;
    struct tls *tls; /* NULL: plain HTTP */
    pthread_mutex_t listen_lock;
    int listener;   /* -1 once given up; under listen_lock */
    _Atomic bool accepting; /* the watcher looks at the listener; false while there are as many connections as may be */
    uint16_t port;

    _Atomic bool refusing;
    _Atomic bool stopping;    /* tells the watcher to end */
    _Atomic size_t in_flight; /* handed over and not yet responded; streams count no more once open */
    _Atomic size_t open;      /* carriers out of the pool */
    _Atomic size_t streams;
    _Atomic size_t body_bytes;
    _Atomic uint64_t requests;
    _Atomic uint64_t accepted; /* connections */
    _Atomic uint64_t refused;  /* requests that the handler never saw */

    struct poller pollers[POLLERS_MAX];
    _Atomic unsigned pollers_claimed;
    _Atomic uint64_t crowd_until_ns; /* until then no request is lone */
    _Atomic uint64_t crowd_ns;       /* how long that was at last */

    pthread_mutex_t pool_lock;
    struct carrier *pool;
    size_t pool_count;

    pthread_mutex_t table_lock; /* free list and counts; the slots have locks of their own */
    struct connection *connections;
    uint32_t slot_count;
    uint32_t slots_used; /* slots that ever had a tenant */
    uint64_t swept_ms;   /* watcher's: when it last looked at all connections */
    uint64_t resumed_ms; /* watcher's: when the server went on after it had stood still; 0: it never did */
    uint32_t first_free;
    uint32_t first_expected; /* chain of those that were accepted and not yet taken up by their polling threads */
    _Atomic size_t connection_count;
    _Atomic size_t handshakes; /* of them, those that have not finished theirs and are not `leaving` */
    _Atomic size_t leaving_count; /* of them, those that are `leaving` */
    struct hearing hearing;

    int watch_epoll;
    int watch_wake; /* eventfd */
    bool watching;
    pthread_t watcher;
};

/* connection.c: the table of connections. */
void connection_table_init(struct http *http);
void connection_table_deinit(struct http *http);
/* Gives the socket that was accepted from `address` its place in the table. Returns: false when there is none. The watcher's. */
bool connection_expect(struct http *http, int fd, const struct sockaddr *address);
/* libmicrohttpd did not take it, and has closed it. */
void connection_unexpect(struct http *http, int fd);
void connection_opened(struct http *http, struct MHD_Connection *mhd, void **socket_context);
void connection_closed(struct connection *connection);
void connection_enter(struct connection *connection, enum phase phase, size_t bytes);
void connection_set_carrier(struct connection *connection, struct carrier *carrier);
/* Milliseconds since the machine was started; never 0. */
uint64_t http_now_ms(void);

/* Whether a connection in this phase can be ended without anybody losing an answer. */
static inline bool phase_is_waiting(int phase)
{
    return phase == PHASE_IDLE || phase == PHASE_HANDSHAKE;
}

/*
 * poller.c: around each call of the handler, on the polling thread.
 * poller_enter() returns whether the thread may stay with the request until it is answered.
 */
bool poller_enter(struct connection *connection, uint64_t now_ns);
void poller_leave(struct connection *connection, bool answered, uint64_t now_ns);
/* On the polling thread, when a request of the connection is answered, at once or after a while. */
void poller_answered(struct connection *connection);
uint64_t poller_clock_ns(void);

/* watch.c: hang-ups and time limits. */
int watch_start(struct http *http) TL_MUST_USE;
/* Has the watcher look whether there is room for those that wait at the listener. */
void watch_wake(struct http *http);
/* Ends the watcher's thread; connections can still be opened and closed. */
void watch_end(struct http *http);
/* The same, and gives back its descriptors: the polling threads must be gone. */
void watch_stop(struct http *http);
int watch_add(struct http *http, uint32_t slot);
/* Returns: bytes that a connection has received in its life; 0 when that cannot be told. */
uint64_t watch_received_bytes(int fd);
/* Ends connections that wait for a request: their reading side is closed. */
void watch_end_idle(struct http *http);

/* input_barrier.c: the watcher's part in hearings. */
void hear_init(struct http *http);
void hear_deinit(struct http *http);
/* Looks how far it is. Returns: in how many milliseconds to look again; 0: no hearing goes on. */
int hear_look(struct http *http);

/* http_exchange.c: the pool, and the handler's side of an exchange. */
struct carrier *carrier_take(struct http *http);
void carrier_give_back(struct carrier *carrier);
void carrier_pool_deinit(struct http *http);
/* The peer is gone while the handler has the exchange: tells it, once. */
void carrier_disconnected(struct carrier *carrier);

/* stream.c */
void stream_write(struct exchange *exchange, struct slice bytes);
size_t stream_behind(struct exchange *exchange);
void stream_close(struct exchange *exchange);
struct MHD_Response *stream_response(struct carrier *carrier);
/* Returns: true when the handler is done as well, and the carrier free to go. */
bool stream_connection_done(struct carrier *carrier);

/*
 * header_check.c: whether the head of a request is one that everybody reads alike, from somebody who may ask. Fills in exchange.local.
 * Returns: false when it is refused; where carrier->last is set, at once and without reading what follows.
 */
bool head_check(struct carrier *carrier, const char *method, const char *version) TL_MUST_USE;

/* Whether libmicrohttpd itself is strict about the form of heads: 1.x. Both have one soname, so the running one is asked. */
bool head_left_to_library(void);

/* receive.c: from the wire to the handler. */
void intake_begin(struct carrier *carrier, const char *uri);
/* Returns: false when the refusal is to be answered at once, without the body. */
bool intake_head(struct carrier *carrier, const char *method) TL_MUST_USE;
/* Returns: false when the connection is to be broken: too much of a refused body. */
bool intake_body(struct carrier *carrier, struct slice bytes) TL_MUST_USE;
/* Unpacks the body and fills the exchange, or sets the refusal. */
void intake_end(struct carrier *carrier);
/* The refusal of a server that stops. */
void intake_refuse_stopping(struct carrier *carrier);
void intake_release(struct carrier *carrier);
/* Gives back the memory of the body, and what it was charged with. */
void intake_drop_body(struct carrier *carrier);

/* response.c */
enum MHD_Result response_queue(struct carrier *carrier);
void response_refuse(struct carrier *carrier);

/* admission.c: who gets a place when there are few left. */
enum crowd_answer { CROWD_COME, CROWD_REFUSED };
/* Whether there is a place for one more, or a connection that could be ended for it. The watcher's. */
bool crowd_has_room(const struct http *http);
/* Makes room for one from the address, which may end another connection. The watcher's. */
enum crowd_answer crowd_admit(struct http *http, const struct sockaddr *address);
/* The address as IPv6. Returns: whether it is loopback's. */
bool crowd_address(const struct sockaddr *address, struct in6_addr *ret_address);

/* handshake.c: the way to TLS. */
/* The most that go on at one moment: for one more the oldest is ended. */
size_t handshakes_max(const struct http *http);
/* The connection that was accepted will begin one. The watcher's. */
void handshake_expect(struct connection *connection);
/* libmicrohttpd has made its session: on its polling thread, before anything is read. */
void handshake_begin(struct connection *connection, struct MHD_Connection *mhd);
/* It counts no more: done, given up, or the connection is at its end. */
void handshake_over(struct connection *connection);
/* The word to who is not taken in. */
void handshake_refuse(int fd);

/* listen.c: the listening socket, and what comes in by it. */
int listen_open(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port, char **ret_reason) TL_MUST_USE;
/* Has the watcher look at the listener. */
int listen_watch(struct http *http) TL_MUST_USE;
/* Takes what connections there are and hands each to a polling thread. The watcher's. Returns: whether there may be more. */
bool listen_accept(struct http *http);
/* Goes on accepting where there is room again. The watcher's. */
void listen_again(struct http *http);
/* Gives the listener up. */
void listen_close(struct http *http);

/* What the watcher's epoll calls the events that are no connection's. */
#define WATCH_WAKE UINT64_MAX
#define WATCH_LISTENER (UINT64_MAX - 1)

#endif
