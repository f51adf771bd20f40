/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a member of etcd: TCP, with TLS if wanted. Never blocks. */
#ifndef TL_CMDLOG_ETCD_TRANSPORT_H
#define TL_CMDLOG_ETCD_TRANSPORT_H

#include <sys/socket.h>

#include "base/error.h"

struct transport;
struct etcd_tls_files;

struct transport_target {
    struct sockaddr_storage address;
    socklen_t len;
    const char *host; /* name or address that the member's certificate must be for */
};

/*
 * Starts to connect. `tls`: the files for TLS, read here; NULL: without TLS. If that fails at once,
 * the first transport_send() or transport_receive() reports it.
 * Owns: the caller; transport_close(), before the end of `target`.
 */
struct transport *transport_open(const struct transport_target *target, const struct etcd_tls_files *tls);
/* NULL is allowed. */
void transport_close(struct transport *transport);
/* Returns: the socket; -1: none, the connection has failed. */
int transport_fd(const struct transport *transport);
bool transport_is_tls(const struct transport *transport);

/* Returns: the events to wait for with poll(); `to_send`: the caller has bytes to send. */
short transport_poll_events(const struct transport *transport, bool to_send);

/*
 * Returns: bytes sent or received; 0: none now; TL_ERR_IO: the connection has failed,
 * transport_error() says why. After transport_send() returned 0 it is called again with the same
 * bytes.
 */
long transport_send(struct transport *transport, const char *bytes, size_t len);
long transport_receive(struct transport *transport, char *bytes, size_t len);
/* Returns: whether received bytes are buffered here, for which poll() reports no event. */
bool transport_has_input(const struct transport *transport);
const char *transport_error(const struct transport *transport);

#endif
