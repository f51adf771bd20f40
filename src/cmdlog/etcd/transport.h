/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection to a member of etcd. Never blocks. */
#ifndef TL_CMDLOG_ETCD_TRANSPORT_H
#define TL_CMDLOG_ETCD_TRANSPORT_H

#include <sys/socket.h>

#include "base/error.h"

struct transport;

struct transport_target {
    struct sockaddr_storage address;
    socklen_t len;
};

/* Starts to connect. Returns: NULL if that fails at once. Owns: the caller; transport_close(). */
struct transport *transport_open(const struct transport_target *target);
/* NULL is allowed. */
void transport_close(struct transport *transport);
int transport_fd(const struct transport *transport);

/* Returns: the events to wait for with poll(); `to_send`: the caller has bytes to send. */
short transport_poll_events(const struct transport *transport, bool to_send);

/*
 * Returns: bytes sent or received; 0: none now; TL_ERR_IO: the connection has failed,
 * transport_error() says why.
 */
long transport_send(struct transport *transport, const char *bytes, size_t len);
long transport_receive(struct transport *transport, char *bytes, size_t len);
const char *transport_error(const struct transport *transport);

#endif
