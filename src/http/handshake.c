/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS handshakes, on the connection's polling thread. See README.md, "TLS".
 *
 * libmicrohttpd drives them. It does not report the end of a handshake and cannot answer a client
 * that sends plain HTTP. Both are done by callbacks of GnuTLS: one that reads from the socket, and
 * one for the client's last handshake message.
 */
#include "http/http_internal.h"
#include "http/tls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { HANDSHAKE_PART = 4, HANDSHAKES_MIN = 16 };

#define PLAIN "this port speaks TLS: ask it by https://, not http://"

/* A fatal alert, internal_error, unencrypted: no keys exist before the handshake. */
static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 80};

size_t handshakes_max(const struct http *http)
{
    size_t part = http->options.connections_max / HANDSHAKE_PART;
    return part > HANDSHAKES_MIN ? part : HANDSHAKES_MIN;
}

void handshake_enter(struct connection *connection)
{
    atomic_store(&connection->handshaking, true);
    atomic_fetch_add(&connection->http->handshakes, 1);
    connection_enter(connection, PHASE_HANDSHAKE, 0);
}

void handshake_leave(struct connection *connection)
{
    if (atomic_exchange(&connection->handshaking, false))
        atomic_fetch_sub(&connection->http->handshakes, 1);
}

void handshake_refuse(int fd)
{
    (void)!send(fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* HTTP methods begin with a capital letter; the first byte of a TLS record is below 32. */
static bool is_plain(const unsigned char *bytes, ssize_t count)
{
    return count > 0 && bytes[0] >= 'A' && bytes[0] <= 'Z';
}

/*
 * Responds in plain HTTP. Unread input is discarded first: it would make close() reset the
 * connection.
 */
static void answer_plain(int fd)
{
    static const char body[] =
        "{\"error\":{\"root_cause\":[{\"type\":\"illegal_argument_exception\",\"reason\":\"" PLAIN
        "\"}],\"type\":\"illegal_argument_exception\",\"reason\":\"" PLAIN "\"},\"status\":400}";
    char text[1024];
    int len =
        snprintf(text, sizeof text,
                 "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=UTF-8\r\nX-Elastic-Product: "
                 "Elasticsearch\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 sizeof body - 1, body);
    char dropped[4096];
    for (int i = 0; i < 256 && recv(fd, dropped, sizeof dropped, MSG_DONTWAIT) > 0; i++)
        continue;
    (void)!send(fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
}

/* Reads from the socket for GnuTLS; answers a client that sends plain HTTP. */
static ssize_t pull_bytes(gnutls_transport_ptr_t context, void *to, size_t room)
{
    struct connection *connection = context;
    int fd = connection->fd; /* only this thread closes it */
    ssize_t count = recv(fd, to, room, 0);
    if (connection->tls_bytes_seen || count <= 0)
        return count;
    connection->tls_bytes_seen = true;
    if (!is_plain(to, count))
        return count;
    answer_plain(fd);
    return 0; /* end of file: ends the handshake */
}

/* Ends the handshake phase when the client's last message has been received. */
static int on_finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message)
{
    (void)type;
    (void)when;
    (void)message;
    struct connection *connection = connection_of(gnutls_session_get_ptr(session));
    if (incoming == 0 || connection == NULL)
        return 0;
    handshake_leave(connection);
    connection_enter(connection, PHASE_IDLE, 0);
    return 0;
}

void handshake_setup(struct connection *connection, struct MHD_Connection *mhd)
{
    gnutls_session_t session = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
    connection->tls_bytes_seen = false;
    connection->credentials = tls_begin(connection->http->tls, session);
    gnutls_transport_set_ptr2(session, connection, (gnutls_transport_ptr_t)(intptr_t)connection->fd);
    gnutls_transport_set_pull_function(session, pull_bytes);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, on_finished);
}
