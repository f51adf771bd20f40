/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on a connection: the input's first byte says where they are cut in two, the rest is sent to the real server
 * over loopback, once whole and once in two pieces; the handler answers at once.
 *
 * What gets to the handler is fit to be seen (no control characters, bodies of the size that was said, one Host), and
 * the same however the bytes were cut, since what a proxy in front sees is one stream. The server closes when the
 * client has ended, and answers the next one.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/http.h"

enum { BODY_BYTES_MAX = 10000 };

static struct http *http;
static atomic_uint handled;
static atomic_uint_fast64_t digest;

static void mix(struct slice text)
{
    uint64_t hash = atomic_load(&digest);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 1099511628211u;
    atomic_store(&digest, hash);
}

static void check_text(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        MUST((unsigned char)text.data[i] > ' ' && text.data[i] != 0x7f);
}

/* One connection at a time, so one thread at a time. */
static void handle(void *context, struct exchange *exchange)
{
    (void)context;
    check_text(exchange->path);
    check_text(exchange->query);
    check_text(exchange->method_name);
    MUST(exchange->body.len <= BODY_BYTES_MAX && exchange->path.len > 0);
    struct slice host = exchange_header(exchange, "host");
    MUST(host.data == NULL || memchr(host.data, ',', host.len) == NULL);
    atomic_fetch_add(&handled, 1);
    mix(exchange->method_name);
    mix(exchange->path);
    mix(exchange->query);
    mix(exchange->body);
    exchange->status = 200;
    exchange->timestamp = 1;
    buf_printf(&exchange->response, "%zu", exchange->body.len);
    exchange_respond(exchange);
}

static void prepare(void)
{
    struct http_options options = http_options_default();
    struct http_handler handler = {.handle = handle};
    log_set_level(LOG_ERROR);
    options.thread_count = 1;
    options.body_bytes_max = BODY_BYTES_MAX;
    MUST(http_open(&options, &handler, &http, NULL) == 0);
}

static int dial(void)
{
    static unsigned calls;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(http_port(http)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* Addresses differ, so that ports do not run out. */
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (calls++ / 5000 % 200 << 8))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    MUST(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void send_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) /* it has closed: it had enough */
            return;
        bytes += sent;
        len -= (size_t)sent;
    }
}

/* Reads to the end. Returns: whether an answer began as one does. */
static bool drain(int fd)
{
    char bytes[4096], start[9] = "";
    size_t len = 0;
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int r;
        while ((r = poll(&ready, 1, -1)) < 0 && errno == EINTR) /* by the fuzzer's own timer */
            continue;
        MUST(r == 1);
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got && len < 8; i++)
            start[len++] = bytes[i];
    }
    return len == 0 || memcmp(start, "HTTP/1.1", len) == 0;
}

struct outcome {
    unsigned handled;
    uint64_t digest;
};

static struct outcome talk(const uint8_t *bytes, size_t len, size_t cut)
{
    int fd = dial();
    unsigned before = atomic_load(&handled);
    atomic_store(&digest, 14695981039346656037u);
    send_all(fd, bytes, cut);
    if (cut < len) {
        usleep(300);
        send_all(fd, bytes + cut, len - cut);
    }
    shutdown(fd, SHUT_WR);
    MUST(drain(fd));
    close(fd);
    return (struct outcome){atomic_load(&handled) - before, atomic_load(&digest)};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char next[] = "GET /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static unsigned runs;
    if (http == NULL)
        prepare();
    if (size < 2)
        return 0;
    struct outcome whole = talk(data + 1, size - 1, size - 1);
    struct outcome pieces = talk(data + 1, size - 1, data[0] % (size - 1));
    MUST(whole.handled == pieces.handled && whole.digest == pieces.digest);
    if (runs++ % 16 == 0)
        MUST(talk((const uint8_t *)next, sizeof next - 1, sizeof next - 1).handled == 1);
    return 0;
}
