/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection to a member of etcd; see transport.h. */
#include "cmdlog/etcd/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"

struct transport {
    int fd;
    bool connected;
    char error[128];
};

static int fail(struct transport *transport, const char *what, int error)
{
    snprintf(transport->error, sizeof transport->error, "%s: %s", what, strerrordesc_np(error));
    return tl_trace(TL_ERR_IO);
}

struct transport *transport_open(const struct transport_target *target)
{
    int on = 1, fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&target->address, target->len) != 0 && errno != EINPROGRESS) {
        close(fd);
        return NULL;
    }
    struct transport *transport = mem_zalloc(sizeof *transport);
    transport->fd = fd;
    return transport;
}

void transport_close(struct transport *transport)
{
    if (transport == NULL)
        return;
    close(transport->fd);
    mem_free(transport);
}

int transport_fd(const struct transport *transport)
{
    return transport->fd;
}

short transport_poll_events(const struct transport *transport, bool to_send)
{
    return (short)(transport->connected ? POLLIN | (to_send ? POLLOUT : 0) : POLLOUT);
}

/* Returns: 1: connected; 0: not yet; TL_ERR_IO. */
static int connected(struct transport *transport)
{
    struct pollfd look = {.fd = transport->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;
    if (transport->connected)
        return 1;
    if (poll(&look, 1, 0) <= 0)
        return 0;
    if (getsockopt(transport->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
        return fail(transport, "cannot connect", error);
    transport->connected = true;
    return 1;
}

long transport_send(struct transport *transport, const char *bytes, size_t len)
{
    int r = connected(transport);
    if (r <= 0)
        return r;
    ssize_t sent = send(transport->fd, bytes, len, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent < 0 ? fail(transport, "cannot send", errno) : sent;
}

long transport_receive(struct transport *transport, char *bytes, size_t len)
{
    int r = connected(transport);
    if (r <= 0)
        return r;
    ssize_t received = recv(transport->fd, bytes, len, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (received == 0)
        return fail(transport, "the connection was closed", 0);
    return received < 0 ? fail(transport, "the connection broke", errno) : received;
}

const char *transport_error(const struct transport *transport)
{
    return transport->error;
}
