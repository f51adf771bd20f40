/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: requests from this host to other hosts of its cluster.
 *
 * The api knows no sockets. It fills in a call, and the one sender that it was opened with
 * (api_options.hosts; cli/host_sender.c, on libcurl) carries it out: forwarded requests and
 * questions to other hosts (forward.h), and questions for their timestamps (distribution.h).
 * Scheme, certificates, limits and connections are the sender's concern.
 *
 *     caller ─▶ send() ─▶ the sender's thread ─▶ connection to the host ─▶ done()
 *
 * A call is the caller's until send(), then the sender's until done(), which is called once.
 */
#ifndef TL_API_HOST_CALL_H
#define TL_API_HOST_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/types.h"

#define HOST_CALL_ERROR_BYTES 384

/* Slices live until `done`. */
struct host_call {
    struct slice address;        /* HOST:PORT */
    bool tls;                    /* by https */
    bool is_own;                 /* not for a client; at most one a host. Exempt from the sender's limit of calls */
    uint64_t timeout_us;         /* of all of it; 0: none */
    struct slice method;         /* as HTTP writes it */
    struct slice target;         /* path and query, escaped */
    const struct slice *headers; /* "Name: value" */
    size_t header_count;
    struct slice body; /* data NULL: none */

    /* The reply. */
    int status;                        /* 0: none has come, and `error` is the reason */
    struct buf *reply;                 /* the body is appended to it; it may refuse to grow, which ends the call */
    char error[HOST_CALL_ERROR_BYTES]; /* a C string, with the remedy where one is known */

    /* All on the sender's thread, which must not block. */
    void (*take_header)(struct host_call *call, struct slice name, struct slice value); /* NULL: not interested */
    bool (*gives_up)(struct host_call *call); /* asked about twice a second; true ends the call without a reply */
    void (*done)(struct host_call *call);     /* once; the call is not touched afterwards */
    void *context;

    struct list link; /* the sender's, and so is `handle` */
    void *handle;
};

struct host_sender {
    /* Sends a call. From any thread; does not block. */
    void (*send)(void *context, struct host_call *call);
    /* Has all calls asked now whether they give up. The same. */
    void (*look)(void *context);
    void *context;
};

#endif
