/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket.
 *
 * The watcher accepts connections and assigns them to the polling threads in turn. If the polling
 * threads shared the listener, the first to wake would accept all connections that a client opens
 * at once, and would then serve all of them.
 */
#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/http_internal.h"
#include "http/reason.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

#define REFUSED                                                                               \
    "the limit of open connections is reached, and none of them is idle (--max-connections, " \
    "--max-connections-per-address); close some, or try again later"

static int fail_listen(char **ret_reason, const char *host, uint16_t port, const char *why)
{
    return reason_fail(ret_reason, "cannot listen on %s:%u: %s", host, port, why);
}

/* Returns: the message of a bind(2) error, with its remedy. */
static const char *why_not(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "Address already in use: a server runs there; --listen names another port, 0 for a free one";
    case EADDRNOTAVAIL:
        return "Cannot assign requested address: it is not an address of this host; 0.0.0.0 means all of them";
    case EACCES: return "Permission denied: ports below 1024 are for privileged programs";
    default: return strerror(error);
    }
}

static int try_address(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

int listen_open(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port, char **ret_reason)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host, service, &hints, &addresses);
    if (failed != 0)
        return fail_listen(ret_reason, host, port, gai_strerror(failed));

    int fd = -1;
    for (const struct addrinfo *a = addresses; a != NULL && fd < 0; a = a->ai_next)
        fd = try_address(a);
    int saved = errno;
    freeaddrinfo(addresses);
    if (fd < 0)
        return fail_listen(ret_reason, host, port, why_not(saved));
    *ret_port = bound_port(fd);
    *ret_fd = fd;
    return 0;
}

/* --- Accepting ---------------------------------------------------------------------------------------------------- */

/* Requires: listen_lock. */
static int set_accepting(struct http *http, bool accepting)
{
    REQUIRE(mutex_is_held(&http->listen_lock));
    struct epoll_event event = {.events = accepting ? EPOLLIN : 0, .data.u64 = WATCH_LISTENER};
    http->accepting = accepting;
    return epoll_ctl(http->watch_epoll, EPOLL_CTL_MOD, http->listener, &event) == 0 ? 0 : TL_ERR_IO;
}

/* Sends a 429 (a TLS alert with TLS) as far as that does not block, and closes the socket. */
static void refuse_connection(const struct http *http, int fd)
{
    static const char body[] =
        "{\"error\":{\"root_cause\":[{\"type\":\"limit_exceeded_exception\",\"reason\":\"" REFUSED "\"}],\"type\":"
        "\"limit_exceeded_exception\",\"reason\":\"" REFUSED "\"},\"status\":429}";
    char text[1024];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json; charset=UTF-8\r\nConnection: "
                       "close\r\nContent-Length: %zu\r\n\r\n%s",
                       sizeof body - 1, body);
    if (http->tls != NULL)
        handshake_refuse(fd);
    else
        (void)!send(fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    close(fd);
}

/* Passes an accepted connection to a polling thread, or refuses it. */
static void admit_socket(struct http *http, int fd, const struct sockaddr *address, socklen_t len)
{
    if (admission_check(http, address) != ADMISSION_OK || !connection_reserve(http, fd, address))
        refuse_connection(http, fd);
    else if (MHD_add_connection(http->daemon, fd, address, len) != MHD_YES) /* which closed fd */
        connection_cancel(http, fd);
}

/* Accepts one connection. Requires: listen_lock. Returns: whether more may be pending. */
static bool accept_one(struct http *http)
{
    REQUIRE(mutex_is_held(&http->listen_lock));
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    int fd = accept4(http->listener, (struct sockaddr *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        admit_socket(http, fd, (struct sockaddr *)&address, len);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        log_warning("cannot accept connections at present: %s", strerror(errno));
        (void)set_accepting(http, false);
    }
    return errno == EINTR || errno == ECONNABORTED;
}

int listen_watch(struct http *http, char **ret_reason)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WATCH_LISTENER};
    pthread_mutex_lock(&http->listen_lock); /* the watcher is running and uses the listener */
    http->accepting = true;
    int r = 0;
    if (epoll_ctl(http->watch_epoll, EPOLL_CTL_ADD, http->listener, &event) != 0)
        r = reason_fail(ret_reason, "cannot watch the listening socket: %s", strerror(errno));
    pthread_mutex_unlock(&http->listen_lock);
    return r;
}

bool listen_accept(struct http *http)
{
    enum { AT_ONCE = 64 }; /* then the watcher processes hang-ups */
    pthread_mutex_lock(&http->listen_lock);
    bool more = http->listener >= 0;
    for (int i = 0; more && i < AT_ONCE; i++) {
        more = admission_has_slot(http);
        if (!more)
            (void)set_accepting(http, false);
        else
            more = accept_one(http);
    }
    pthread_mutex_unlock(&http->listen_lock);
    return more;
}

void listen_again(struct http *http)
{
    pthread_mutex_lock(&http->listen_lock);
    if (http->listener >= 0 && !http->accepting && admission_has_slot(http))
        (void)set_accepting(http, true);
    pthread_mutex_unlock(&http->listen_lock);
}

void listen_close(struct http *http)
{
    pthread_mutex_lock(&http->listen_lock);
    if (http->listener >= 0)
        close(http->listener); /* also removes it from the watcher's epoll set */
    http->listener = -1;
    pthread_mutex_unlock(&http->listen_lock);
}
