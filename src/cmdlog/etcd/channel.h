/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a member of etcd: gRPC calls over HTTP/2 (nghttp2), any number at once. It never blocks. All of it is one thread's.
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
    CALL_LOST = -1, /* no answer, and none will come: the connection broke, or the deadline passed */
};

enum { CHANNEL_MESSAGE_MAX = 64 << 20 }; /* bytes of a message that is taken */

/*
 * A call, in memory of who makes it, which stays as it is until on_end() or channel_drop(). Both functions are called by
 * channel_work() and must not close the channel or call channel_work(); they may begin calls. on_end() comes last, once.
 */
struct call {
    const char *path;
    struct slice request; /* as call_frame() makes it */
    bool stays_open;      /* a stream of answers, until it is dropped */
    bool wants_leader;    /* ends when the member has no leader */
    uint64_t deadline;    /* of clock_boot_us(), kept by the client; UINT64_MAX: none */
    void *context;
    /* A message came, whose bytes may be taken by buf_detach(). It must not drop the call. */
    void (*on_message)(struct call *call, struct buf *message);
    void (*on_end)(struct call *call, int status, struct slice text);

    /* The channel's own. */
    struct list link;
    struct channel *channel; /* NULL: not under way */
    int32_t stream;
    size_t sent;    /* bytes of `request` */
    uint64_t begun; /* of clock_boot_us() */
    char prefix[5];
    size_t prefix_len;
    size_t expected;
    struct buf message;
    size_t withheld; /* bytes that came and for which the member was given no new room */
    bool throttled;
    int status;
    bool has_status;
    struct buf text;
};

/* Whether all of the request is on its way. */
static inline bool call_is_sent(const struct call *call)
{
    return call->sent == call->request.len;
}

/* Begins a request in an empty buffer, to which its message is appended then; call_frame_end() says that it is whole. */
void call_frame(struct buf *buf);
void call_frame_end(struct buf *buf);

/* Takes the transport; `authority` is HOST:PORT. Owns: the caller; channel_close(). */
struct channel *channel_open(struct transport *transport, const char *authority);

/* Ends all calls as lost. */
void channel_close(struct channel *channel, const char *why);

/* Begins a call. Returns: false: the connection takes no more. */
bool channel_call(struct channel *channel, struct call *call) TL_MUST_USE;

/* Ends a call without a word to its owner. Fine where it is not under way. */
void channel_drop(struct call *call);

/* While a call is throttled, no more than a window (4 MiB) of what the member sends for it is taken. */
void channel_throttle(struct call *call, bool throttled);

int channel_fd(const struct channel *channel);
/* Returns: what poll() is to wait for. */
short channel_wants(struct channel *channel);

/* Reads and writes what can be. Returns: 0; TL_ERR_IO: it is over, channel_trouble() says why. */
int channel_work(struct channel *channel, short events) TL_MUST_USE;
const char *channel_trouble(const struct channel *channel);

/* When anything was heard last, of clock_boot_us(); 0: nothing yet. */
uint64_t channel_heard(const struct channel *channel);

struct list *channel_calls(struct channel *channel);

#endif
