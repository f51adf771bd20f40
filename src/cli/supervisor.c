/* SPDX-License-Identifier: Apache-2.0 */
/* How far the server is; see supervisor.h. */
#include "cli/supervisor.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

enum { SEND_SECONDS = 2 };

/* A path, or after '@' a name in the abstract namespace. Returns: the length of the address; 0: it is invalid. */
static socklen_t read_address(const char *name, struct sockaddr_un *ret_address)
{
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof ret_address->sun_path)
        return 0;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path, name, len);
    if (name[0] == '@')
        ret_address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

/* `flags`: of sendto(), among others. Returns: 0; an errno. */
static int send_state(const char *state, int flags)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    if (name == NULL)
        return 0;
    socklen_t len = read_address(name, &address);
    int fd = len == 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* A supervisor that reads nothing holds up neither the start nor the end. */
    const struct timeval most = {.tv_sec = SEND_SECONDS};
    bool sent = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0 &&
                sendto(fd, state, strlen(state), MSG_NOSIGNAL | flags, (const struct sockaddr *)&address, len) >= 0;
    int error = sent ? 0 : len == 0 ? EDESTADDRREQ : errno;
    if (fd >= 0)
        (void)close(fd);
    return error;
}

void supervisor_notify(const char *state)
{
    int error = send_state(state, 0);
    if (error != 0)
        log_warning("cannot notify NOTIFY_SOCKET of %s: %s", state,
                    error == EDESTADDRREQ ? "it names no socket" : strerror(error));
}

void supervisor_report(const char *state)
{
    (void)send_state(state, MSG_DONTWAIT);
}
