/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a member of etcd; see transport.h. */
#include "cmdlog/etcd/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "cmdlog/etcd/tls.h"

struct transport {
    const struct transport_target *target;
    int fd;                   /* -1: the opening failed */
    bool connected;           /* TCP */
    bool plain_received;      /* bytes were received without TLS */
    gnutls_session_t session; /* NULL: without TLS */
    gnutls_certificate_credentials_t credentials;
    struct etcd_tls_verify verify;
    bool secured;  /* the handshake is complete */
    int tls_error; /* code that followed received bytes; 0: none */
    char error[256];
};

static int fail_transport(struct transport *transport, const char *what, int error)
{
    snprintf(transport->error, sizeof transport->error, "%s: %s", what, strerrordesc_np(error));
    return tl_trace(TL_ERR_IO);
}

/* `error`: of recv(); 0: the member closed the connection, or GnuTLS does not say more. */
static int fail_closed(struct transport *transport, int error)
{
    const char *hint = transport->plain_received || transport->secured ? ""
                       : transport->session != NULL
                           ? "; does it speak TLS there? http:// in --cluster is for members that do not"
                           : "; does it speak TLS there? https:// in --cluster is for members that do";
    snprintf(transport->error, sizeof transport->error, "the connection was closed%s%s%s", error != 0 ? ": " : "",
             error != 0 ? strerrordesc_np(error) : "", hint);
    return tl_trace(TL_ERR_IO);
}

static int fail_tls(struct transport *transport, int code)
{
    REQUIRE(transport->session != NULL && code < 0);
    if (code == GNUTLS_E_PREMATURE_TERMINATION || code == GNUTLS_E_PULL_ERROR || code == GNUTLS_E_PUSH_ERROR)
        return fail_closed(transport, 0);
    etcd_tls_explain(transport->session, transport->target->host, code, transport->error, sizeof transport->error);
    return tl_trace(TL_ERR_IO);
}

/* Returns: 0; TL_ERR_IO: the files cannot be used. */
static int prepare_tls(struct transport *transport, const struct etcd_tls_files *files)
{
    REQUIRE(transport->fd >= 0 && transport->session == NULL);
    char *reason = NULL;
    int r = etcd_tls_read(files, &transport->credentials, &reason);
    if (r == 0)
        transport->session =
            etcd_tls_session(transport->credentials, transport->fd, transport->target->host, &transport->verify);
    else
        snprintf(transport->error, sizeof transport->error, "%s", reason != NULL ? reason : "no memory");
    mem_free(reason);
    return r;
}

static int connect_to(struct transport *transport)
{
    const struct transport_target *target = transport->target;
    REQUIRE(target->len > 0 && target->len <= sizeof target->address);
    int on = 1;
    transport->fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (transport->fd < 0)
        return fail_transport(transport, "no socket", errno);
    setsockopt(transport->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(transport->fd, (const struct sockaddr *)&target->address, target->len) != 0 && errno != EINPROGRESS)
        return fail_transport(transport, "cannot connect", errno);
    return 0;
}

struct transport *transport_open(const struct transport_target *target, const struct etcd_tls_files *tls)
{
    REQUIRE(target->host != NULL);
    struct transport *transport = mem_zalloc(sizeof *transport);
    transport->target = target;
    int r = connect_to(transport);
    if (r == 0 && tls != NULL)
        r = prepare_tls(transport, tls);
    if (r != 0 && transport->fd >= 0) {
        close(transport->fd);
        transport->fd = -1;
    }
    return transport;
}

void transport_close(struct transport *transport)
{
    if (transport == NULL)
        return;
    if (transport->session != NULL) {
        if (transport->secured)
            (void)gnutls_bye(transport->session, GNUTLS_SHUT_WR);
        gnutls_deinit(transport->session);
    }
    if (transport->credentials != NULL)
        gnutls_certificate_free_credentials(transport->credentials);
    if (transport->fd >= 0)
        close(transport->fd);
    mem_free(transport);
}

int transport_fd(const struct transport *transport)
{
    return transport->fd;
}

bool transport_is_tls(const struct transport *transport)
{
    return transport->session != NULL;
}

short transport_poll_events(const struct transport *transport, bool to_send)
{
    if (!transport->connected)
        return POLLOUT;
    if (transport->session != NULL && !transport->secured)
        return gnutls_record_get_direction(transport->session) == 0 ? POLLIN : POLLOUT;
    return (short)(POLLIN | (to_send ? POLLOUT : 0));
}

/* Returns: 1: connected; 0: not yet; TL_ERR_IO. */
static int finish_connect(struct transport *transport)
{
    struct pollfd look = {.fd = transport->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;
    if (transport->fd < 0)
        return tl_trace(TL_ERR_IO);
    if (!transport->connected) {
        if (poll(&look, 1, 0) <= 0)
            return 0;
        if (getsockopt(transport->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
            return fail_transport(transport, "cannot connect", error);
        transport->connected = true;
    }
    if (transport->session != NULL && !transport->secured) {
        int r = etcd_tls_handshake(transport->session);
        if (r <= 0)
            return r == 0 ? 0 : fail_tls(transport, r);
        transport->secured = true;
    }
    ENSURE(transport->connected && (transport->session == NULL || transport->secured));
    return 1;
}

/*
 * A member that refuses this host's certificate sends an alert after the handshake of TLS 1.3 and
 * closes the connection. The alert, which says why, is read even if sending failed first.
 */
static long send_tls(struct transport *transport, const char *bytes, size_t len)
{
    char byte;
    REQUIRE(transport->secured && len > 0);
    ssize_t sent = gnutls_record_send(transport->session, bytes, len);
    if (sent >= 0 || !gnutls_error_is_fatal((int)sent))
        return sent < 0 ? 0 : sent;
    ssize_t alert = gnutls_record_recv(transport->session, &byte, 1);
    return fail_tls(transport, alert == GNUTLS_E_FATAL_ALERT_RECEIVED ? (int)alert : (int)sent);
}

/* poll() does not report what GnuTLS has read already, so it reads while there is space. */
static long receive_tls(struct transport *transport, char *bytes, size_t len)
{
    REQUIRE(transport->secured && len > 0);
    size_t have = 0;
    while (have < len && transport->tls_error == 0) {
        ssize_t received = gnutls_record_recv(transport->session, bytes + have, len - have);
        if (received > 0)
            have += (size_t)received;
        else if (received < 0 && !gnutls_error_is_fatal((int)received))
            break;
        else
            transport->tls_error = received == 0 ? GNUTLS_E_PREMATURE_TERMINATION : (int)received;
    }
    return have > 0 || transport->tls_error == 0 ? (long)have : fail_tls(transport, transport->tls_error);
}

long transport_send(struct transport *transport, const char *bytes, size_t len)
{
    REQUIRE(len > 0);
    int r = finish_connect(transport);
    if (r <= 0)
        return r;
    if (transport->session != NULL)
        return send_tls(transport, bytes, len);
    ssize_t sent = send(transport->fd, bytes, len, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent < 0 ? fail_transport(transport, "cannot send", errno) : sent;
}

long transport_receive(struct transport *transport, char *bytes, size_t len)
{
    REQUIRE(len > 0);
    int r = finish_connect(transport);
    if (r <= 0)
        return r;
    if (transport->session != NULL)
        return receive_tls(transport, bytes, len);
    ssize_t received = recv(transport->fd, bytes, len, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (received <= 0)
        return fail_closed(transport, received == 0 ? 0 : errno);
    transport->plain_received = true;
    return received;
}

bool transport_has_input(const struct transport *transport)
{
    return transport->secured && (transport->tls_error != 0 || gnutls_record_check_pending(transport->session) > 0);
}

const char *transport_error(const struct transport *transport)
{
    return transport->error;
}
