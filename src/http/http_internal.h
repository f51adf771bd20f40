/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of src/http. See README.md for the life of a request and the
 * invariants.
 */
#ifndef TL_HTTP_INTERNAL_H
#define TL_HTTP_INTERNAL_H

#include "base/budget.h"
#include "base/list.h"
#include "base/thread.h"
#include "http/http.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

/* The phase of a connection; it decides which time limit applies (watch.c). */
enum phase {
    PHASE_FREE, /* the slot holds no connection */
    PHASE_HANDSHAKE,
    PHASE_IDLE, /* between requests */
    PHASE_RECEIVING,
    PHASE_WORKING, /* the handler has the request; no time limit here */
    PHASE_SENDING,
    PHASE_STREAMING, /* no time limit */
    PHASE_COUNT
};

/* Answers of requests that have waited long, of the connections of one polling thread (permits.c). */
struct permits {
    pthread_mutex_t lock;
    struct http_exchange *first, *last; /* the queue: answered exchanges with suspended connections */
    size_t queued;
    size_t taken; /* exchanges whose connections were resumed, and whose answers are not sent yet */
};

/*
 * A polling thread; poller.c. Only that thread uses the fields, except for `claimed`, `thread` and `permits`.
 */
struct poller {
    _Atomic bool claimed; /* `thread` is set */
    pthread_t thread;
    uint64_t entered_ns;      /* start of the most recent call of the handler */
    uint64_t left_ns;         /* return of the most recent call; 0: none yet */
    bool slow;                /* that call took longer than SLOW_NS */
    uint64_t slow_count;      /* number of slow calls */
    bool queued_behind_slow;  /* the current request waited during a slow call */
    unsigned queued_in_a_row; /* consecutive requests that did so and were answered immediately */
    struct permits permits;
};

/*
 * A slot in the connection table. Slots are reused and never freed before the server; `generation`
 * distinguishes successive connections in one slot.
 */
struct connection {
    struct http *http;
    pthread_mutex_t lock;            /* guards fd, exchange, generation */
    struct http_exchange *exchange;  /* invariant 4; NULL: none */
    struct http_exchange *receiving; /* polling thread: the request being received; NULL: none */
    /* Its polling thread; NULL before the first request. Constant while a request waits; else of that thread alone. */
    struct poller *poller;
    uint64_t answered_slow_count;    /* polling thread: poller->slow_count at the last response */
    int fd;                          /* -1: closed */
    uint32_t generation;
    uint32_t next_free;       /* next slot of the free list or of the pending list */
    struct in6_addr address;  /* of the peer; IPv4 addresses are mapped */
    bool loopback;            /* the peer is on this host */
    _Atomic bool evicted;     /* reading side shut to admit another connection (admission.c) */
    _Atomic bool hung_up;     /* the peer has closed its side */
    _Atomic bool read_closed; /* the server has shut the reading side; later hang-ups are ignored */
    _Atomic int phase;
    _Atomic uint64_t since_ms;           /* start of the phase */
    _Atomic uint64_t phases;             /* number of phases entered; since_ms alone may repeat */
    _Atomic size_t bytes;                /* received or to be sent in this phase */
    _Atomic bool handshaking;            /* counted in http->handshakes */
    bool tls_bytes_seen;                 /* polling thread: the first bytes of the TLS handshake were read */
    struct tls_credentials *credentials; /* polling thread; invariant 6; NULL: none */
    uint64_t idle_phase;                 /* watcher: the idle phase last examined, by `phases`; 0: none */
    uint64_t idle_received;              /* watcher: bytes received when it first examined that phase */
    uint64_t header_since_ms;            /* watcher: first sight of an unfinished header; 0: none */
    bool unread;                         /* watcher: the current input barrier waits for this connection */
    uint32_t unread_generation;          /* watcher: the connection that `unread` refers to */
    uint64_t unread_until;               /* watcher: bytes it had received when the barrier started */
};

/* Invariant 2. */
enum http_exchange_state {
    HTTP_EXCHANGE_RECEIVING,
    HTTP_EXCHANGE_HANDLING,
    HTTP_EXCHANGE_WAITING,
    HTTP_EXCHANGE_RESPONDED,
    HTTP_EXCHANGE_STREAMING
};

/* An exchange with the state that the server needs to receive its request and send its response. */
struct http_exchange {
    struct exchange exchange;
    struct http *http;
    struct connection *connection;
    struct MHD_Connection *mhd;
    _Atomic int state;

    /* While receiving; used by the polling thread only. */
    struct buf body;
    size_t dropped;             /* bytes read and discarded after the refusal of a body */
    size_t charged;             /* bytes counted in http->body_bytes */
    struct budget_guard memory; /* of the body */
    bool header_seen;
    bool handed_over;        /* the handler was called */
    bool close_after;        /* the connection is closed after the response */
    struct problem *refusal; /* the server responds with it itself; in the exchange's arena; NULL: none */
    struct slice target;     /* path and query as sent, with the authority if present */
    const char *target_at;   /* the target in libmicrohttpd's buffer; compared, never dereferenced */

    /* Under `lock`. */
    pthread_mutex_t lock;     /* recursive: on_disconnect may respond */
    bool disconnect_reported; /* on_disconnect was called, or must not be called any more */
    bool connection_done;
    bool handler_done;
    bool stream_closed;
    bool stream_suspended;
    bool stream_broken; /* bytes were dropped: the response must end with an error */
    size_t stream_sent; /* bytes of exchange.response already sent; they are removed later */

    bool needs_permit;          /* its answer has a permit, or waits for one; set before its connection is resumed */
    struct http_exchange *next; /* in the pool, or in the queue for a permit */
};

enum { POLLERS_MAX = 256 };

/* State of the input barrier (input_barrier.c). The watcher alone uses `running` and `polls`. */
struct input_barrier_call;
struct input_barrier {
    pthread_mutex_t lock;                 /* guards requested */
    struct input_barrier_call *requested; /* calls that wait for the next barrier; NULL: none */
    struct input_barrier_call *running;   /* calls of the running barrier; NULL: none is running */
    unsigned polls;                       /* since the barrier started */
};

struct http {
    struct http_options options;
    struct http_handler handler;
    struct MHD_Daemon *daemon;
    struct tls *tls; /* NULL: plain HTTP */
    pthread_mutex_t listen_lock;
    int listener;           /* -1: closed; under listen_lock */
    _Atomic bool accepting; /* the watcher polls the listener; false while no slot is available */
    uint16_t port;

    _Atomic bool refusing;    /* set by http_quiesce() */
    _Atomic bool stopping;    /* the watcher must end */
    _Atomic size_t in_flight; /* requests handed over and not answered; open streams not included */
    _Atomic size_t open;      /* exchanges in use, that is, outside of the pool */
    _Atomic size_t streams;
    _Atomic size_t body_bytes;
    _Atomic uint64_t requests; /* handed over since the start */
    _Atomic uint64_t accepted; /* connections */
    _Atomic uint64_t refused;  /* requests that the server answered without the handler */

    struct poller pollers[POLLERS_MAX];
    _Atomic unsigned pollers_claimed;
    _Atomic uint64_t contended_until_ns; /* until this time no request may block its polling thread */
    _Atomic uint64_t contended_ns;       /* length of the most recent such period; 0: none yet */

    pthread_mutex_t pool_lock;
    struct http_exchange *pool;
    size_t pool_count;

    pthread_mutex_t table_lock; /* guards the lists and counts of slots; each slot has its own lock */
    struct connection *connections;
    uint32_t slot_count;
    uint32_t slots_used; /* slots that have ever held a connection; they precede all others */
    uint64_t swept_ms;   /* watcher: time of the last sweep */
    uint64_t resumed_ms; /* watcher: end of the last stall of the server; 0: there was none */
    uint32_t first_free;
    uint32_t first_pending; /* connections accepted but not yet opened by their polling threads */
    _Atomic size_t connection_count;
    _Atomic size_t handshakes;    /* connections in their TLS handshake, evicted ones not included */
    _Atomic size_t evicted_count; /* connections that are evicted and not yet closed */
    struct input_barrier input_barrier;
    struct permits permits; /* of all threads without an element in `pollers` */

    int watch_epoll;
    int watch_wake; /* eventfd */
    struct thread watcher;
};

/* --- connection.c: the connection table --------------------------------------------------------- */

void connection_table_init(struct http *http);
void connection_table_deinit(struct http *http);
/*
 * Assigns a slot to an accepted socket and adds it to the pending list. Called by the watcher.
 * `address` is the peer's; NULL: unknown. Returns: false when no slot is free.
 */
bool connection_reserve(struct http *http, int fd, const struct sockaddr *address);
/* Frees the slot of a pending socket that libmicrohttpd rejected and closed. */
void connection_cancel(struct http *http, int fd);
/*
 * Moves a pending connection to its polling thread. *socket_context: its slot; NULL: not pending.
 */
void connection_opened(struct http *http, struct MHD_Connection *mhd, void **socket_context);
/* Frees the slot. */
void connection_closed(struct connection *connection);
/* Returns: the slot that connection_opened() has given a connection; NULL: none. */
struct connection *connection_of(struct MHD_Connection *mhd);
/* Enters a phase: its time and its byte count start again. */
void connection_enter(struct connection *connection, enum phase phase, size_t bytes);
/* Sets connection->exchange; NULL: none. */
void connection_set_exchange(struct connection *connection, struct http_exchange *hx);
/* Returns: milliseconds since the boot of the host; never 0. */
uint64_t http_now_ms(void);

/* Returns: whether a connection in this phase can be closed without the loss of a response. */
static inline bool phase_is_waiting(int phase)
{
    return phase == PHASE_IDLE || phase == PHASE_HANDSHAKE;
}

/* --- poller.c: around each call of the handler, on the polling thread --------------------------- */

/* Returns: whether the request may block the thread until it is answered. */
bool poller_enter(struct connection *connection, uint64_t now_ns);
/* `answered`: the handler responded before it returned. */
void poller_leave(struct connection *connection, bool answered, uint64_t now_ns);
/* Records the response to a request of the connection, immediate or deferred. */
void poller_answered(struct connection *connection);
uint64_t poller_clock_ns(void);

/* --- permits.c: answers of requests that have waited long ------------------------------------------ */

void permits_init(struct http *http);
void permits_deinit(struct http *http);
/*
 * Resumes the connection of an exchange that was answered while it waited: now, or with a permit. On return the
 * exchange may have been released.
 */
void permits_resume(struct http_exchange *hx);
/* The answer was passed to libmicrohttpd, or the connection is closed: the next one gets its permit. Idempotent. */
void permits_release(struct http_exchange *hx);
/* Returns: the number of answers that wait for a permit. */
size_t permits_queued(struct http *http);
/* Resumes all that wait for a permit. Assumes: the handler has responded to every exchange. */
void permits_end(struct http *http);

/* --- watch.c: hang-ups and time limits ---------------------------------------------------------- */

/* Starts the watcher. Returns: 0; TL_ERR_IO with *ret_reason (reason.h). */
int watch_start(struct http *http, char **ret_reason) TL_MUST_USE;
/* Wakes the watcher: it accepts again if a slot is available, and starts a requested barrier. */
void watch_wake(struct http *http);
/* The calling thread is a polling thread: connections that clients have ended do not delay its other ones. */
void watch_enter_polling_thread(void);
/* Ends the watcher's thread; connections can still be opened and closed. */
void watch_end(struct http *http);
/* Calls watch_end() and closes the descriptors. Assumes: the polling threads have ended. */
void watch_stop(struct http *http);
/* Registers the slot's socket for hang-ups. Returns: 0; TL_ERR_IO. */
int watch_add(struct http *http, uint32_t slot);
/* Returns: bytes received by the connection since it was opened; 0 when unknown. */
uint64_t watch_received_bytes(int fd);
/* Shuts the reading side of all connections that wait for a request. */
void watch_end_idle(struct http *http);

/* --- input_barrier.c: the watcher's part of http_input_barrier() -------------------------------- */

void input_barrier_init(struct http *http);
void input_barrier_deinit(struct http *http);
/*
 * Starts a requested barrier, or checks the running one and completes its calls when it has passed.
 * Returns: milliseconds until the next check; 0: no barrier is running.
 */
int input_barrier_poll(struct http *http);

/* --- http_exchange.c: the pool, and the operations for the handler ------------------------------ */

/* Returns: an empty exchange in state RECEIVING. Owns: the caller; http_exchange_release(). */
struct http_exchange *http_exchange_acquire(struct http *http);
void http_exchange_release(struct http_exchange *hx);
void http_exchange_pool_deinit(struct http *http);
/* Calls on_disconnect unless it was called already or the handler is done (invariant 3). */
void http_exchange_disconnected(struct http_exchange *hx);
/* Refuses the request. Returns: the refusal, to be filled in. */
struct problem *http_exchange_refuse(struct http_exchange *hx);

/* --- stream.c ----------------------------------------------------------------------------------- */

void stream_write(struct exchange *exchange, struct slice bytes);
/* Returns: bytes written to the stream and not yet sent. */
size_t stream_unsent(struct exchange *exchange);
void stream_close(struct exchange *exchange);
struct MHD_Response *stream_response(struct http_exchange *hx);
/* Reports the end of the connection. Returns: whether the caller must release the exchange. */
bool stream_connection_done(struct http_exchange *hx);

/* --- header_check.c ----------------------------------------------------------------------------- */

/*
 * Checks that the header has one interpretation only, and that its origin is permitted. Sets
 * exchange.local.
 * Returns: false when the request is refused (hx->refusal). If hx->close_after is set, the refusal
 * must be sent immediately, and nothing more be read.
 */
bool header_check(struct http_exchange *hx, const char *method, const char *version) TL_MUST_USE;

/*
 * Returns: whether libmicrohttpd checks the syntax of headers itself, as 1.x does. Both releases
 * have the same soname, so the running library is asked.
 */
bool header_check_is_delegated(void);

/* --- receive.c: from the socket to the handler -------------------------------------------------- */

/* Sets path and query. */
void receive_begin(struct http_exchange *hx, const char *uri);
/* Returns: false when the refusal must be sent immediately, before the body is read. */
bool receive_header(struct http_exchange *hx, const char *method) TL_MUST_USE;
/* Returns: false when the connection must be closed: too many bytes of a refused body. */
bool receive_body(struct http_exchange *hx, struct slice bytes) TL_MUST_USE;
/* Decompresses the body and sets exchange.body, or sets the refusal. */
void receive_end(struct http_exchange *hx);
/* Sets the refusal of a server that is stopping. */
void receive_refuse_stopping(struct http_exchange *hx);
/* Ends the accounting of the body's memory. */
void receive_uncharge(struct http_exchange *hx);
/* Frees the body and ends the accounting of its memory. */
void receive_drop_body(struct http_exchange *hx);

/* --- response.c --------------------------------------------------------------------------------- */

/* Passes the response, or the stream, to libmicrohttpd. */
enum MHD_Result response_queue(struct http_exchange *hx);
/* Responds with hx->refusal. */
void response_refuse(struct http_exchange *hx);

/* --- admission.c: assigns connection slots when few are left ------------------------------------ */

enum admission_result { ADMISSION_OK, ADMISSION_REFUSED };
/* Returns: whether a slot is free or can be freed by an eviction. Called by the watcher. */
bool admission_has_slot(const struct http *http);
/* Checks the limits for a new connection; may evict another one. Called by the watcher. */
enum admission_result admission_check(struct http *http, const struct sockaddr *address);
/*
 * Converts an address to IPv6; NULL gives in6addr_any.
 * Returns: whether it is a loopback address.
 */
bool admission_peer_address(const struct sockaddr *address, struct in6_addr *ret_address);

/* --- handshake.c: TLS handshakes ---------------------------------------------------------------- */

/* Returns: the maximum number of handshakes at a time. For one more the oldest is evicted. */
size_t handshakes_max(const struct http *http);
/* Enters PHASE_HANDSHAKE and counts the connection in http->handshakes. Called by the watcher. */
void handshake_enter(struct connection *connection);
/* Sets the credentials and callbacks of a new session, on its polling thread, before it is read. */
void handshake_setup(struct connection *connection, struct MHD_Connection *mhd);
/* Removes the connection from http->handshakes: finished, evicted or closed. Idempotent. */
void handshake_leave(struct connection *connection);
/* Sends a TLS alert to a client that is not admitted; the socket stays open. */
void handshake_refuse(int fd);

/* --- listen.c: the listening socket ------------------------------------------------------------- */

/* Returns: 0; TL_ERR_IO with *ret_reason (reason.h). */
int listen_open(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port, char **ret_reason) TL_MUST_USE;
/* Registers the listener with the watcher. Returns: 0; TL_ERR_IO with *ret_reason (reason.h). */
int listen_watch(struct http *http, char **ret_reason) TL_MUST_USE;
/*
 * Accepts a limited number of connections and assigns each to a polling thread. Called by the
 * watcher. Returns: whether more may be pending.
 */
bool listen_accept(struct http *http);
/* Polls the listener again if a slot is available. Called by the watcher. */
void listen_again(struct http *http);
/* Closes the listener. */
void listen_close(struct http *http);

/* Event numbers of the watcher's epoll that do not stand for a connection. */
#define WATCH_WAKE UINT64_MAX
#define WATCH_LISTENER (UINT64_MAX - 1)

#endif
