/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket. */
#include "http/http_internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

static int fail(char **ret_reason, const char *host, uint16_t port, const char *why)
{
    if (ret_reason != NULL && asprintf(ret_reason, "cannot listen on %s:%u: %s", host, port, why) < 0)
        *ret_reason = NULL;
    return TL_ERR_IO;
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
        return fail(ret_reason, host, port, gai_strerror(failed));

    int fd = -1;
    for (const struct addrinfo *a = addresses; a != NULL && fd < 0; a = a->ai_next)
        fd = try_address(a);
    int saved = errno;
    freeaddrinfo(addresses);
    if (fd < 0)
        return fail(ret_reason, host, port, strerror(saved));
    *ret_port = bound_port(fd);
    *ret_fd = fd;
    return 0;
}
