/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a member of etcd: concurrent gRPC calls over HTTP/2 (nghttp2). Never blocks. Only
 * the thread that opened it uses it and the calls in progress, which is checked; another one may
 * close it when that thread has ended.
 */
#ifndef TL_CMDLOG_ETCD_CHANNEL_H
#define TL_CMDLOG_ETCD_CHANNEL_H

#include "base/buf.h"
#include "base/list.h"

struct transport;
struct channel;

enum {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    CALL_LOST = -1, /* ended without a gRPC status: the connection broke, or the deadline passed */
};

enum { CHANNEL_MESSAGE_MAX = 64 << 20 }; /* bytes of a received message */

/*
 * A call, in the caller's memory, which must stay unchanged until on_end() or channel_drop().
 * channel_work() and channel_close() call both functions. They may start calls, but must not close
 * the channel or call channel_work().
 */
struct grpc_call {
    const char *path;
    struct slice request; /* between grpc_frame_begin() and grpc_frame_end() */
    bool is_stream;       /* a stream of messages, until it is dropped */
    bool requires_leader; /* ends if the member loses its leader */
    uint64_t deadline;    /* of clock_boot_us(), enforced by client.c; UINT64_MAX: none */
    void *context;
    /* Receives a message; buf_detach() may take its bytes. It must not drop the call. */
    void (*on_message)(struct grpc_call *call, struct buf *message);
    /*
     * Called once, last, with a gRPC status or CALL_LOST and the reason, which need not outlive it.
     */
    void (*on_end)(struct grpc_call *call, int status, struct slice text);

    /* Private to the channel. */
    struct list link;
    struct channel *channel; /* NULL: not in progress */
    int32_t stream;
    size_t sent;      /* bytes of `request` */
    uint64_t started; /* of clock_boot_us() */
    char prefix[5];   /* of the message being received: compression flag, length */
    size_t prefix_len;
    size_t expected; /* bytes of the message being received */
    struct buf message;
    size_t unconsumed; /* bytes received that have not been returned to the flow-control window */
    bool throttled;
    int status;
    bool has_status;
    struct buf text;
};

/* Returns: whether the whole request has been handed to nghttp2. */
static inline bool grpc_call_is_sent(const struct grpc_call *call)
{
    return call->sent == call->request.len;
}

/*
 * Starts a request in an empty buffer. The caller appends its message, then calls grpc_frame_end().
 */
void grpc_frame_begin(struct buf *buf);
void grpc_frame_end(struct buf *buf);

/*
 * Opens a channel over `transport`, which it owns; `authority` is HOST:PORT. Owns: the caller;
 * channel_close().
 */
struct channel *channel_open(struct transport *transport, const char *authority);

/* Ends all calls with CALL_LOST and the text `why`, and frees the channel; NULL is allowed. */
void channel_close(struct channel *channel, const char *why);

/* Starts a call. Returns: false: the connection accepts no more calls. */
bool channel_call(struct channel *channel, struct grpc_call *call) TL_MUST_USE;

/* Cancels a call; its on_end() is not called. No effect if the call is not in progress. */
void channel_drop(struct grpc_call *call);

/*
 * While a call is throttled, the member can send at most a flow-control window (4 MiB) more.
 * Requires: the thread of the channel, if the call is in progress.
 */
void channel_throttle(struct grpc_call *call, bool throttled);

int channel_fd(const struct channel *channel);
/* Returns: the events to wait for with poll(). Requires: the thread of the channel. */
short channel_poll_events(struct channel *channel);

/*
 * Reads and writes without blocking. Returns: 0; TL_ERR_IO: the connection has failed,
 * channel_error() says why.
 */
int channel_work(struct channel *channel, short events) TL_MUST_USE;
const char *channel_error(const struct channel *channel);

/* Returns: the time when bytes were last received, of clock_boot_us(); 0: never. */
uint64_t channel_last_received(const struct channel *channel);

/* Returns: the calls in progress. */
struct list *channel_calls(struct channel *channel);

#endif
