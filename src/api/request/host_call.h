/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request from this host to another host of its cluster. The api knows no sockets: it fills in a call, and the sender that
 * it was opened with (api_options.hosts) carries it out.
 */
#ifndef TL_API_HOST_CALL_H
#define TL_API_HOST_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/types.h"

#define HOST_CALL_ERROR_BYTES 256

/* Slices live until `done`. */
struct host_call {
    struct slice address;        /* HOST:PORT */
    struct slice method;         /* as HTTP writes it */
    struct slice target;         /* path and query, escaped */
    const struct slice *headers; /* "Name: value" */
    size_t header_count;
    struct slice body; /* data NULL: none */

    /* The reply. */
    int status;                        /* 0: none has come, and `error` is the reason */
    struct buf *reply;                 /* the body is appended to it; it may refuse to grow, which ends the call */
    char error[HOST_CALL_ERROR_BYTES]; /* a C string */

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
    void *context;
};

#endif
