/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that is gone at a chosen offset of its answer, for a program under test: preloaded (LD_PRELOAD), it limits
 * the number of writes and of bytes to a connection; then the connection breaks, and writes to it fail with ECONNRESET.
 * The connection, by its port on the client's side, and the limits are read from the file that TIDELOCK_TEST_SENDS
 * names, mapped:
 *
 *     uint64_t port; int64_t calls, bytes;       as many writes as succeed, as many bytes as go out; counted down here
 *
 * Others are written to as always. A write that reaches the last byte is cut short there, as the kernel cuts one that
 * finds the socket's buffer full. The kernel is asked by system call, so that the interceptors of sanitizers are
 * bypassed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

enum { PARTS_MAX = 16 };

struct send_plan {
    _Atomic uint64_t port;
    _Atomic int64_t calls;
    _Atomic int64_t bytes;
};

static struct send_plan *plan;

__attribute__((constructor)) static void map_plan(void)
{
    const char *name = getenv("TIDELOCK_TEST_SENDS");
    int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        plan = mapped;
    close(fd);
}

static int is_chosen(int fd)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    uint64_t port = plan == NULL ? 0 : atomic_load(&plan->port);
    return port != 0 && syscall(SYS_getpeername, fd, &peer, &len) == 0 && peer.sin_family == AF_INET &&
           ntohs(peer.sin_port) == port;
}

/* Both directions, as when the peer has reset it. */
static ssize_t broken(int fd)
{
    (void)syscall(SYS_shutdown, fd, SHUT_RDWR);
    errno = ECONNRESET;
    return -1;
}

static ssize_t send_parts(int fd, const struct iovec *parts, size_t count, int flags)
{
    struct iovec taken[PARTS_MAX];
    int64_t left = atomic_load(&plan->bytes);
    size_t n = 0;
    if (atomic_fetch_sub(&plan->calls, 1) <= 0 || left <= 0)
        return broken(fd);
    for (size_t at = 0; at < count && n < PARTS_MAX && left > 0; at++) {
        taken[n] = parts[at];
        if (taken[n].iov_len > (size_t)left)
            taken[n].iov_len = (size_t)left;
        left -= (int64_t)taken[n++].iov_len;
    }
    struct msghdr message = {.msg_iov = taken, .msg_iovlen = n};
    ssize_t sent = syscall(SYS_sendmsg, fd, &message, flags);
    if (sent > 0 && atomic_fetch_sub(&plan->bytes, sent) <= sent)
        (void)syscall(SYS_shutdown, fd, SHUT_RDWR);
    return sent;
}

VISIBLE ssize_t sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
    struct iovec part = {(void *)(uintptr_t)data, len};
    return is_chosen(fd) ? send_parts(fd, &part, 1, flags) : syscall(SYS_sendto, fd, data, len, flags, to, to_len);
}

VISIBLE ssize_t send(int fd, const void *data, size_t len, int flags)
{
    return sendto(fd, data, len, flags, NULL, 0);
}

VISIBLE ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return is_chosen(fd) ? send_parts(fd, message->msg_iov, message->msg_iovlen, flags)
                         : syscall(SYS_sendmsg, fd, message, flags);
}

VISIBLE ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return is_chosen(fd) ? send_parts(fd, parts, (size_t)count, MSG_NOSIGNAL) : syscall(SYS_writev, fd, parts, count);
}
