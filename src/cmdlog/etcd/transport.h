/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from a member of etcd, over TCP. It never blocks. */
#ifndef TL_CMDLOG_ETCD_TRANSPORT_H
#define TL_CMDLOG_ETCD_TRANSPORT_H

#include <sys/socket.h>

#include "base/error.h"

struct transport;

struct transport_target {
    struct sockaddr_storage address;
    socklen_t len;
};

/* Begins to connect. Returns: NULL where that fails at once. Owns: the caller; transport_close(). */
struct transport *transport_open(const struct transport_target *target);
void transport_close(struct transport *transport);
int transport_fd(const struct transport *transport);

/* Returns: what poll() is to wait for, given that the caller has something to send or not. */
short transport_wants(const struct transport *transport, bool to_send);

/* Returns: bytes sent or received; 0: none now; TL_ERR_IO: the connection is over, transport_trouble() says why. */
long transport_send(struct transport *transport, const char *bytes, size_t len);
long transport_receive(struct transport *transport, char *bytes, size_t len);
const char *transport_trouble(const struct transport *transport);

#endif
