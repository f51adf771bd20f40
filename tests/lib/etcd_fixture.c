/* SPDX-License-Identifier: Apache-2.0 */
/* etcd for tests; see etcd_fixture.h. */
#include "etcd_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"

enum { MEMBERS_MAX = 3, ARGUMENTS_MAX = 40, TEXT_MAX = 512 };

struct etcd_member {
    pid_t pid;
    int client_port, peer_port;
};

struct etcd_fixture {
    int count;
    struct etcd_member members[MEMBERS_MAX];
    char directory[64];
    pid_t janitor;
    int janitor_fd; /* the write end of its pipe; at end of file it removes the directory */
    const char *const *arguments;
    char url[TEXT_MAX];
};

/* Returns: a listening socket; -1: the port is in use. */
static int listen_at(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0)
        return fd;
    REQUIRE(errno == EADDRINUSE);
    close(fd);
    return -1;
}

/* Listens on a port below the ephemeral range, so that it is still free when a member restarts. */
static int listen_at_stable_port(void)
{
    enum { LOW = 12000, COUNT = 8000 }; /* tests/lib/ports.py uses those from 20000 on */
    for (;;) {
        unsigned number;
        REQUIRE(getrandom(&number, sizeof number, 0) == sizeof number);
        int fd = listen_at(LOW + (int)(number % COUNT));
        if (fd >= 0)
            return fd;
    }
}

static int port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    return ntohs(address.sin_port);
}

/* Returns: the scheme of the members' client URLs: their arguments may include a certificate. */
static const char *scheme_of(const struct etcd_fixture *fixture)
{
    for (size_t i = 0; fixture->arguments != NULL && fixture->arguments[i] != NULL; i++)
        if (strcmp(fixture->arguments[i], "--cert-file") == 0)
            return "https";
    return "http";
}

/* --- Members ------------------------------------------------------------------------------------------------------ */

static void run_member(struct etcd_fixture *fixture, int member, int log_fd)
{
    static char text[8][TEXT_MAX];
    const char *arguments[ARGUMENTS_MAX] = {"etcd",  "--name",
                                            text[0], "--data-dir",
                                            text[1], "--listen-client-urls",
                                            text[2], "--advertise-client-urls",
                                            text[2], "--listen-peer-urls",
                                            text[3], "--initial-advertise-peer-urls",
                                            text[3], "--initial-cluster",
                                            text[4], "--logger",
                                            "zap",   "--log-outputs",
                                            "stderr"};
    size_t count = 19;
    snprintf(text[0], TEXT_MAX, "m%d", member);
    snprintf(text[1], TEXT_MAX, "%s/m%d", fixture->directory, member);
    snprintf(text[2], TEXT_MAX, "%s://127.0.0.1:%d", scheme_of(fixture), fixture->members[member].client_port);
    snprintf(text[3], TEXT_MAX, "http://127.0.0.1:%d", fixture->members[member].peer_port);
    for (int i = 0; i < fixture->count; i++)
        snprintf(text[4] + strlen(text[4]), TEXT_MAX - strlen(text[4]), "%sm%d=http://127.0.0.1:%d", i == 0 ? "" : ",",
                 i, fixture->members[i].peer_port);
    for (size_t i = 0; fixture->arguments != NULL && fixture->arguments[i] != NULL; i++)
        arguments[count++] = fixture->arguments[i];
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 0); /* required by etcd 3.4 on arm64 */
    execvp("etcd", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static void start_member(struct etcd_fixture *fixture, int member)
{
    char path[TEXT_MAX];
    pid_t parent = getpid();
    snprintf(path, sizeof path, "%s/m%d.log", fixture->directory, member);
    int log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(log_fd >= 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        run_member(fixture, member, log_fd);
    }
    close(log_fd);
    fixture->members[member].pid = pid;
}

/* Forks a process that removes the directory once the test has ended in any way. */
static void start_janitor(struct etcd_fixture *fixture)
{
    int fds[2];
    char byte;
    REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
    fixture->janitor = fork();
    REQUIRE(fixture->janitor >= 0);
    if (fixture->janitor == 0) {
        close(fds[1]);
        setsid();
        while (read(fds[0], &byte, 1) > 0)
            ;
        execlp("rm", "rm", "-rf", fixture->directory, NULL);
        _exit(127);
    }
    close(fds[0]);
    fixture->janitor_fd = fds[1];
}

/* All ports are held at the same time, so they are distinct. The members bind them later. */
struct etcd_fixture *etcd_fixture_start(int members, const char *const *arguments)
{
    struct etcd_fixture *fixture = mem_zalloc(sizeof *fixture);
    int held[2 * MEMBERS_MAX];
    REQUIRE(members <= MEMBERS_MAX);
    fixture->count = members;
    fixture->arguments = arguments;
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/etcd_box.XXXXXX");
    REQUIRE(mkdtemp(fixture->directory) != NULL);
    start_janitor(fixture);
    for (int i = 0; i < 2 * members; i++)
        held[i] = listen_at_stable_port();
    for (int i = 0; i < members; i++) {
        fixture->members[i].client_port = port_of(held[2 * i]);
        fixture->members[i].peer_port = port_of(held[2 * i + 1]);
    }
    for (int i = 0; i < 2 * members; i++)
        close(held[i]);
    for (int i = 0; i < members; i++)
        start_member(fixture, i);
    return fixture;
}

void etcd_fixture_signal(struct etcd_fixture *fixture, int member, int number)
{
    kill(fixture->members[member].pid, number);
}

void etcd_fixture_kill(struct etcd_fixture *fixture, int member)
{
    if (fixture->members[member].pid == 0)
        return;
    kill(fixture->members[member].pid, SIGKILL);
    waitpid(fixture->members[member].pid, NULL, 0);
    fixture->members[member].pid = 0;
}

void etcd_fixture_restart(struct etcd_fixture *fixture, int member)
{
    start_member(fixture, member);
}

void etcd_fixture_stop(struct etcd_fixture *fixture)
{
    for (int i = 0; i < fixture->count; i++)
        etcd_fixture_kill(fixture, i);
    close(fixture->janitor_fd);
    waitpid(fixture->janitor, NULL, 0);
    mem_free(fixture);
}

const char *etcd_fixture_url(struct etcd_fixture *fixture, const char *prefix)
{
    fixture->url[0] = '\0';
    for (int i = 0; i < fixture->count; i++)
        snprintf(fixture->url + strlen(fixture->url), TEXT_MAX - strlen(fixture->url), "%s%s://127.0.0.1:%d",
                 i == 0 ? "" : ",", scheme_of(fixture), fixture->members[i].client_port);
    snprintf(fixture->url + strlen(fixture->url), TEXT_MAX - strlen(fixture->url), "/%s", prefix);
    return fixture->url;
}

int etcd_fixture_port(const struct etcd_fixture *fixture, int member)
{
    return fixture->members[member].client_port;
}

uint64_t etcd_fixture_cpu_us(const struct etcd_fixture *fixture)
{
    uint64_t ticks = 0;
    for (int i = 0; i < fixture->count; i++) {
        char path[64], text[1024];
        unsigned long user = 0, kernel = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", fixture->members[i].pid);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        size_t len = fread(text, 1, sizeof text - 1, file);
        text[len] = '\0';
        char *name_end = strrchr(text, ')');
        if (name_end != NULL &&
            sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) == 2)
            ticks += user + kernel;
        fclose(file);
    }
    return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* --- Relays ------------------------------------------------------------------------------------------------------- */

enum { PAIRS_MAX = 64, CHUNK = 64 * 1024 };

struct relay {
    pthread_t thread;
    int fd, target;
    int pairs[PAIRS_MAX][2]; /* client, member; -1: none */
    atomic_bool stopping, cut, held, dropping;
    atomic_size_t drop_bytes;
};

static void close_pair(struct relay *relay, int pair)
{
    for (int i = 0; i < 2; i++)
        if (relay->pairs[pair][i] >= 0)
            close(relay->pairs[pair][i]);
    relay->pairs[pair][0] = relay->pairs[pair][1] = -1;
}

static void accept_client(struct relay *relay)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)relay->target), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = accept4(relay->fd, NULL, NULL, SOCK_CLOEXEC), member, pair = 0;
    if (client < 0)
        return;
    while (pair < PAIRS_MAX && relay->pairs[pair][0] >= 0)
        pair++;
    member = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (atomic_load(&relay->cut) || pair == PAIRS_MAX ||
        connect(member, (struct sockaddr *)&address, sizeof address) != 0) {
        close(client);
        close(member);
        return;
    }
    relay->pairs[pair][0] = client;
    relay->pairs[pair][1] = member;
}

/* Forwards bytes from one side of a pair to the other. Returns: false: the pair is closed. */
static bool forward(struct relay *relay, int pair, int from)
{
    static _Thread_local char bytes[CHUNK];
    ssize_t len = recv(relay->pairs[pair][from], bytes, sizeof bytes, 0);
    if (len <= 0)
        return false;
    if (from == 1 && atomic_load(&relay->dropping)) {
        size_t left = atomic_load(&relay->drop_bytes);
        if ((size_t)len >= left) {
            atomic_store(&relay->dropping, false);
            for (int i = 0; i < PAIRS_MAX; i++)
                close_pair(relay, i);
            return true;
        }
        atomic_store(&relay->drop_bytes, left - (size_t)len);
        return true;
    }
    for (ssize_t sent = 0; sent < len;) {
        ssize_t now = send(relay->pairs[pair][1 - from], bytes + sent, (size_t)(len - sent), MSG_NOSIGNAL);
        if (now <= 0)
            return false;
        sent += now;
    }
    return true;
}

static void *run_relay(void *context)
{
    struct relay *relay = context;
    while (!atomic_load(&relay->stopping)) {
        struct pollfd fds[1 + 2 * PAIRS_MAX] = {{.fd = relay->fd, .events = POLLIN}};
        for (int i = 0; i < PAIRS_MAX; i++) {
            if (atomic_load(&relay->cut))
                close_pair(relay, i);
            for (int side = 0; side < 2; side++)
                fds[1 + 2 * i + side] =
                    (struct pollfd){.fd = atomic_load(&relay->held) ? -1 : relay->pairs[i][side], .events = POLLIN};
        }
        if (poll(fds, 1 + 2 * PAIRS_MAX, 5) <= 0)
            continue;
        for (int i = 0; i < PAIRS_MAX; i++)
            for (int side = 0; side < 2; side++)
                if (fds[1 + 2 * i + side].revents != 0 && relay->pairs[i][side] == fds[1 + 2 * i + side].fd &&
                    !forward(relay, i, side))
                    close_pair(relay, i);
        if (fds[0].revents != 0)
            accept_client(relay);
    }
    return NULL;
}

struct relay *relay_start(int port)
{
    struct relay *relay = mem_zalloc(sizeof *relay);
    relay->fd = listen_at(0);
    relay->target = port;
    for (int i = 0; i < PAIRS_MAX; i++)
        relay->pairs[i][0] = relay->pairs[i][1] = -1;
    REQUIRE(pthread_create(&relay->thread, NULL, run_relay, relay) == 0);
    return relay;
}

void relay_stop(struct relay *relay)
{
    atomic_store(&relay->stopping, true);
    pthread_join(relay->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        close_pair(relay, i);
    close(relay->fd);
    mem_free(relay);
}

int relay_port(const struct relay *relay)
{
    return port_of(relay->fd);
}

void relay_drop_replies(struct relay *relay, size_t reply_bytes)
{
    atomic_store(&relay->drop_bytes, reply_bytes);
    atomic_store(&relay->dropping, true);
}

void relay_cut(struct relay *relay)
{
    atomic_store(&relay->cut, true);
}

void relay_mend(struct relay *relay)
{
    atomic_store(&relay->cut, false);
}

void relay_hold(struct relay *relay, bool held)
{
    atomic_store(&relay->held, held);
}
