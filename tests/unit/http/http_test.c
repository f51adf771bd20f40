/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server with a handler of this test, over real sockets on loopback.
 *
 * The path selects the handler's behaviour: respond immediately, later from another thread, by a
 * stream, or only when the client has disconnected. Requests are written byte for byte, since
 * malformed ones are part of the tests.
 */
#include "http/http.h"

#include "base/list.h"
#include "http/http_internal.h"
#include "http/inflate.h"
#include "lib/unit.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

enum { QUEUE_MAX = 4096 };

#define FOREVER_US UINT64_MAX /* only the time limit of the test itself ends the wait */

struct fixture {
    struct http *http;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct exchange *queue[QUEUE_MAX]; /* to be answered by `thread` */
    size_t queued;
    size_t answered_later; /* by `thread` */
    bool pausing;          /* `thread` answers nothing */
    bool ending;
    bool blocking;         /* a polling thread waits until the test clears this */
    struct exchange *held; /* answered by the test, or by on_disconnect() */
    int disconnects;
    _Atomic int may_block;         /* requests that may block their polling thread */
    _Atomic int disconnects_later; /* hang-ups of exchanges that the thread answers */
};

static void answer(struct exchange *exchange)
{
    exchange->status = 200;
    exchange->timestamp = 1763700000000001;
    buf_printf(&exchange->response, "%.*s %.*s [%.*s] %zu", SLICE_ARG(exchange->method_name), SLICE_ARG(exchange->path),
               SLICE_ARG(exchange->query), exchange->body.len);
}

static void *answer_later(void *context)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    while (!f->ending || f->queued > 0) {
        if (f->queued == 0 || (f->pausing && !f->ending)) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        struct exchange *exchange = f->queue[--f->queued];
        pthread_mutex_unlock(&f->lock);
        answer(exchange);
        exchange_respond(exchange);
        pthread_mutex_lock(&f->lock);
        f->answered_later++;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* For exchanges that `thread` answers. */
static void count_disconnect(struct exchange *exchange)
{
    struct fixture *f = exchange->api_context;
    atomic_fetch_add(&f->disconnects_later, 1);
}

/* Counts after the exchange has ended: a test that sees the count may then call http_close(). */
static void on_disconnect(struct exchange *exchange)
{
    struct fixture *f = exchange->api_context;
    if (slice_is(exchange->path, "/stream")) {
        exchange->ops->stream_close(exchange);
    } else {
        answer(exchange);
        exchange_respond(exchange);
    }
    pthread_mutex_lock(&f->lock);
    f->disconnects++;
    f->held = NULL;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void hold(struct fixture *f, struct exchange *exchange)
{
    exchange->api_context = f;
    exchange->on_disconnect = on_disconnect;
    pthread_mutex_lock(&f->lock);
    f->held = exchange;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void handle(void *context, struct exchange *exchange)
{
    struct fixture *f = context;
    if (exchange->may_block)
        atomic_fetch_add(&f->may_block, 1);
    if (slice_is(exchange->path, "/later")) {
        exchange->api_context = f;
        exchange->on_disconnect = count_disconnect;
        pthread_mutex_lock(&f->lock);
        f->queue[f->queued++] = exchange;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock);
    } else if (slice_is(exchange->path, "/held")) {
        hold(f, exchange);
    } else if (slice_is(exchange->path, "/block")) { /* blocks the polling thread until the test ends it */
        pthread_mutex_lock(&f->lock);
        f->blocking = true;
        pthread_cond_broadcast(&f->changed);
        while (f->blocking)
            pthread_cond_wait(&f->changed, &f->lock);
        pthread_mutex_unlock(&f->lock);
        answer(exchange);
        exchange_respond(exchange);
    } else if (slice_is(exchange->path, "/queued")) { /* says how many answers wait for a permit */
        struct http_stats stats;
        http_stats(f->http, &stats);
        exchange->status = 200;
        buf_printf(&exchange->response, "%zu queued", stats.queued_answers);
        exchange_respond(exchange);
    } else if (slice_is(exchange->path, "/open")) { /* says how many connections are open */
        struct http_stats stats;
        http_stats(f->http, &stats);
        exchange->status = 200;
        buf_printf(&exchange->response, "%zu open", stats.connections);
        exchange_respond(exchange);
    } else if (slice_is(exchange->path, "/stream")) {
        exchange->status = 200;
        exchange->content_type = "application/x-ndjson";
        exchange->ops->stream_open(exchange);
        exchange->ops->stream_write(exchange, SLICE_LIT("first\n"));
        hold(f, exchange);
    } else if (slice_is(exchange->path, "/header")) {
        struct slice value = exchange_header(exchange, "x-question");
        exchange->status = 404;
        exchange->headers = arena_alloc(&exchange->arena, sizeof *exchange->headers);
        exchange->headers[exchange->header_count++] =
            (struct response_header){"X-Answer", arena_copy(&exchange->arena, value)};
        buf_slice(&exchange->response, exchange->body);
        exchange_respond(exchange);
    } else {
        answer(exchange);
        exchange_respond(exchange);
    }
}

static tl_ts timestamp(void *context)
{
    (void)context;
    return 42;
}

static struct http_options options(void)
{
    struct http_options options = http_options_default();
    options.port = 0;
    options.thread_count = 2;
    static const char *const names[] = {"h"};
    options.host_names = names;
    options.host_name_count = 1;
    options.body_bytes_max = 100000;
    return options;
}

static struct fixture *open_with(struct http_options chosen)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    assert_int_equal(pthread_create(&f->thread, NULL, answer_later, f), 0);
    struct http_handler handler = {handle, timestamp, f};
    assert_int_equal(http_open(&chosen, &handler, &f->http, NULL), 0);
    return f;
}

static void close_fixture(struct fixture *f)
{
    http_close(f->http);
    pthread_mutex_lock(&f->lock);
    f->ending = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    mem_free(f);
}

static int setup(void **state)
{
    *state = open_with(options());
    return 0;
}

static int teardown(void **state)
{
    close_fixture(*state);
    return 0;
}

/* --- A minimal client --- */

static int dial(struct fixture *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(http_port(f->http)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent <= 0)
            fail_msg("the server broke the connection");
        text += sent;
        len -= (size_t)sent;
    }
}

/* Appends to `to` until it contains `end`. Returns: false when the connection ended before. */
static bool read_until(int fd, struct buf *to, const char *end)
{
    for (;;) {
        buf_byte(to, '\0');
        to->len--;
        if (strstr(to->data, end) != NULL)
            return true;
        char *at = buf_reserve(to, 65536);
        ssize_t got = recv(fd, at, 65536, 0);
        if (got <= 0)
            return false;
        to->len += (size_t)got;
    }
}

static void expect_on(int fd, const char *request, const char *start, const char *end)
{
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    say(fd, request, strlen(request));
    if (!read_until(fd, &reply, end))
        fail_msg("'%s' is not in the reply: %s", end, reply.data);
    if (strncmp(reply.data, start, strlen(start)) != 0)
        fail_msg("the reply does not begin with '%s': %s", start, reply.data);
    buf_deinit(&reply);
}

static void expect(struct fixture *f, const char *request, const char *start, const char *end)
{
    int fd = dial(f);
    expect_on(fd, request, start, end);
    close(fd);
}

/* Waits for a condition that the handler or the other thread establishes. */
#define wait_until(f, condition)                          \
    do {                                                  \
        pthread_mutex_lock(&(f)->lock);                   \
        while (!(condition))                              \
            pthread_cond_wait(&(f)->changed, &(f)->lock); \
        pthread_mutex_unlock(&(f)->lock);                 \
    } while (0)

/* --- Tests --- */

static void test_http_passes_requests_and_responses(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    /* One connection, one request after another; escapes arrive as sent. */
    expect_on(fd, "GET /a%2Fb/c?x=%20&y HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n",
              "GET /a%2Fb/c [x=%20&y] 0");
    expect_on(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /later [] 0");
    expect_on(fd, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\n", "POST /a [] 3");
    expect_on(fd,
              "PUT /later HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
              "HTTP/1.1 200 OK\r\n", "PUT /later [] 5");
    expect_on(fd, "DELETE http://h:1/x/y?z HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "DELETE /x/y [z] 0");
    expect_on(fd, "BREW / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "BREW / [] 0");
    close(fd);
    assert_int_equal(f->may_block, 6);
}

static void test_http_passes_headers(void **state)
{
    struct fixture *f = *state;
    expect(f, "GET /header HTTP/1.1\r\nHost: h\r\nX-Question: why\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
           "X-Answer: why\r\n");
    expect(f, "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
           "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=UTF-8\r\n",
           "Tidelock-Timestamp: 1763700000000001\r\n");
    expect(f, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "X-Elastic-Product: Elasticsearch\r\n");
    expect(f, "GET / HTTP/1.1\r\nHost: h\r\nX-Opaque-Id: job 7\r\n\r\n", "HTTP/1.1 200 OK\r\n",
           "X-Opaque-Id: job 7\r\n");
}

/*
 * libmicrohttpd reads 128 events at a time from the kernel. With exactly that many it would wait
 * for a further event before it processes them (epoll_wait() in watch.c).
 */
static void test_http_serves_exactly_128_ready_connections(void **state)
{
    enum { AT_ONCE = 128 };
    struct http_options one = options();
    one.thread_count = 1;
    struct fixture *f = open_with(one);
    int blocking = dial(f), fds[AT_ONCE];
    for (size_t i = 0; i < AT_ONCE; i++) {
        fds[i] = dial(f);
        expect_on(fds[i], "GET /before HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /before [] 0");
    }
    const char *request = "GET /block HTTP/1.1\r\nHost: h\r\n\r\n";
    say(blocking, request, strlen(request));
    wait_until(f, f->blocking);
    for (size_t i = 0; i < AT_ONCE; i++)
        say(fds[i], "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", strlen("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"));
    pthread_mutex_lock(&f->lock);
    f->blocking = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < AT_ONCE; i++) {
        expect_on(fds[i], "", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");
        close(fds[i]);
    }
    close(blocking);
    close_fixture(f);
    (void)state;
}

static void set_flag(struct fixture *f, bool *flag, bool value)
{
    pthread_mutex_lock(&f->lock);
    *flag = value;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static size_t queued_answers(struct fixture *f)
{
    struct http_stats stats;
    http_stats(f->http, &stats);
    return stats.queued_answers;
}

/*
 * Many requests that have waited are answered together, while the only polling thread is busy. A request that arrives
 * meanwhile is processed before most of their answers are sent.
 */
static void test_http_requests_get_between_many_answers(void **state)
{
    (void)state;
    enum { WAITING = 100, AT_ONCE = 4 };
    static const char before[] = "GET /before HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char later[] = "GET /later HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char block[] = "GET /block HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char queued[] = "GET /queued HTTP/1.1\r\nHost: h\r\n\r\n";
    struct http_options one = options();
    one.thread_count = 1;
    one.permits_after_us = 0;
    one.permits_max = AT_ONCE;
    struct fixture *f = open_with(one);
    int other = dial(f), blocking = dial(f), fds[WAITING];
    struct buf reply = BUF_INIT(BUF_UNLIMITED);

    expect_on(other, before, "HTTP/1.1 200 OK\r\n", "GET /before [] 0");
    set_flag(f, &f->pausing, true);
    for (size_t i = 0; i < WAITING; i++) {
        fds[i] = dial(f);
        say(fds[i], later, strlen(later));
    }
    wait_until(f, f->queued == WAITING);
    say(blocking, block, strlen(block));
    wait_until(f, f->blocking); /* so all connections of the others are suspended */
    set_flag(f, &f->pausing, false);
    wait_until(f, f->answered_later == WAITING);
    assert_int_equal(queued_answers(f), WAITING - AT_ONCE);

    say(other, queued, strlen(queued));
    set_flag(f, &f->blocking, false);
    assert_true(read_until(other, &reply, " queued"));
    assert_true(strtoul(strstr(reply.data, "\r\n\r\n") + 4, NULL, 10) > WAITING / 2);
    for (size_t i = 0; i < WAITING; i++) {
        expect_on(fds[i], "", "HTTP/1.1 200 OK\r\n", "GET /later [] 0");
        close(fds[i]);
    }
    assert_int_equal(queued_answers(f), 0);
    buf_deinit(&reply);
    close(other);
    close(blocking);
    close_fixture(f);
}

/* Waits until the watcher has seen that clients have ended so many connections. */
static void await_hang_ups(struct http *http, size_t wanted)
{
    for (size_t seen = 0; seen < wanted; usleep(1000)) {
        pthread_mutex_lock(&http->table_lock);
        uint32_t used = http->slots_used;
        pthread_mutex_unlock(&http->table_lock);
        seen = 0;
        for (uint32_t i = 0; i < used; i++)
            seen += atomic_load(&http->connections[i].hung_up);
    }
}

/*
 * Many connections end while the only polling thread is busy. A request that arrives after that is processed before
 * most of them are closed.
 */
static void test_http_requests_get_between_many_ends_of_connections(void **state)
{
    (void)state;
    enum { ENDING = 400 };
    static const char before[] = "GET /before HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char block[] = "GET /block HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char count[] = "GET /open HTTP/1.1\r\nHost: h\r\n\r\n";
    struct http_options one = options();
    one.thread_count = 1;
    struct fixture *f = open_with(one);
    int other = dial(f), blocking = dial(f), fds[ENDING];
    struct buf reply = BUF_INIT(BUF_UNLIMITED);

    expect_on(other, before, "HTTP/1.1 200 OK\r\n", "GET /before [] 0");
    for (size_t i = 0; i < ENDING; i++) {
        fds[i] = dial(f);
        expect_on(fds[i], before, "HTTP/1.1 200 OK\r\n", "GET /before [] 0");
    }
    say(blocking, block, strlen(block));
    wait_until(f, f->blocking);
    for (size_t i = 0; i < ENDING; i++)
        close(fds[i]);
    await_hang_ups(f->http, ENDING);
    say(other, count, strlen(count));
    set_flag(f, &f->blocking, false);
    assert_true(read_until(other, &reply, " open"));
    assert_true(strtoul(strstr(reply.data, "\r\n\r\n") + 4, NULL, 10) > ENDING / 2);
    buf_deinit(&reply);
    close(other);
    close(blocking);
    close_fixture(f);
}

static void test_http_head_response_has_no_body(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    expect_on(fd, "HEAD /aa HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "Content-Length: 13\r\n\r\n");
    expect_on(fd, "GET /bb HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /bb [] 0");
    close(fd);
}

static void test_http_answers_expect_continue(void **state)
{
    int fd = dial(*state);
    expect_on(fd, "PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
              "HTTP/1.1 100 Continue\r\n", "\r\n\r\n");
    expect_on(fd, "ab", "HTTP/1.1 200 OK\r\n", "PUT /a [] 2");
    close(fd);
}

static void test_http_refuses_too_large_body(void **state)
{
    char *body = mem_alloc(400000);
    memset(body, 'x', 400000);
    int fd = dial(*state);
    const char *head = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 400000\r\n\r\n";
    say(fd, head, strlen(head));
    say(fd, body, 400000);
    expect_on(fd, "", "HTTP/1.1 413 ", "\"type\":\"content_too_long_exception\"");
    /* The connection is still usable. */
    expect_on(fd, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");

    /* Chunked, that is, of unknown length: detected while receiving. */
    head = "PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n61A80\r\n";
    say(fd, head, strlen(head));
    say(fd, body, 400000);
    expect_on(fd, "\r\n0\r\n\r\n", "HTTP/1.1 413 ", "\"status\":413}");
    close(fd);
    mem_free(body);

    /*
     * With Expect: 100-continue, or a length that would not be discarded: refused before the body.
     */
    expect(*state, "PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 400000\r\n\r\n",
           "HTTP/1.1 413 ", "\"status\":413}");
    expect(*state, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n{", "HTTP/1.1 413 ",
           "\"status\":413}");
}

static void test_http_limits_bodies_together(void **state)
{
    (void)state;
    struct http_options chosen = options();
    chosen.bodies_bytes_max = 10;
    struct fixture *f = open_with(chosen);
    /* The limit for small bodies is an eighth higher. */
    expect(f, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\n123456789012", "HTTP/1.1 429 ",
           "limit_exceeded_exception");
    expect(f, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n12345678901", "HTTP/1.1 200 ", "PUT /a [] 11");
    close_fixture(f);
}

/* Compresses `len` times the letter x. */
static size_t compress_x(size_t len, char *to, size_t room, bool gzip)
{
    char *plain = mem_alloc(len);
    memset(plain, 'x', len);
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)plain;
    stream.avail_in = (unsigned)len;
    stream.next_out = (unsigned char *)to;
    stream.avail_out = (unsigned)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t packed = room - stream.avail_out;
    deflateEnd(&stream);
    mem_free(plain);
    return packed;
}

static void send_compressed(struct fixture *f, const char *encoding, const char *body, size_t len, const char *start,
                            const char *end)
{
    char head[256];
    int fd = dial(f);
    int head_len =
        snprintf(head, sizeof head, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
                 encoding, len);
    say(fd, head, (size_t)head_len);
    say(fd, body, len);
    expect_on(fd, "", start, end);
    close(fd);
}

static void test_http_decompresses_bodies(void **state)
{
    char packed[4096];
    size_t len = compress_x(90000, packed, sizeof packed, true);
    send_compressed(*state, "gzip", packed, len, "HTTP/1.1 200 ", "PUT /a [] 90000");
    send_compressed(*state, "gzip", packed, len - 1, "HTTP/1.1 400 ", "is cut off");
    send_compressed(*state, "br", packed, len, "HTTP/1.1 415 ", "Content-Encoding [br] is not supported");
    len = compress_x(100001, packed, sizeof packed, true);
    send_compressed(*state, "gzip", packed, len, "HTTP/1.1 413 ", "content_too_long_exception");
    len = compress_x(100000, packed, sizeof packed, false);
    send_compressed(*state, "deflate", packed, len, "HTTP/1.1 200 ", "PUT /a [] 100000");
}

static void test_http_refuses_malformed_requests(void **state)
{
    static const char *const broken[] = {
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: many\r\n\r\n",
        "GET /a HTTP/1.1\r\n no name\r\n\r\n",
        "PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnope\r\n",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct buf reply = BUF_INIT(BUF_UNLIMITED);
        int fd = dial(*state);
        say(fd, broken[i], strlen(broken[i]));
        shutdown(fd, SHUT_WR);
        (void)read_until(fd, &reply, "never said");
        if (reply.len > 0 && strncmp(reply.data, "HTTP/1.1 4", 10) != 0 && strncmp(reply.data, "HTTP/1.0 4", 10) != 0)
            fail_msg("request %zu: %s", i, reply.data);
        buf_deinit(&reply);
        close(fd);
    }
    /* A header larger than the memory of a connection. */
    struct buf head = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&head, "GET /");
    for (int i = 0; i < 60000; i++)
        buf_byte(&head, 'a');
    buf_lit(&head, " HTTP/1.1\r\nHost: h\r\n\r\n");
    int fd = dial(*state);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    (void)send(fd, head.data, head.len, MSG_NOSIGNAL);
    (void)read_until(fd, &reply, "never said");
    if (reply.len > 0 && strncmp(reply.data, "HTTP/1.1 4", 10) != 0)
        fail_msg("long path: %s", reply.data);
    close(fd);
    buf_deinit(&head);
    buf_deinit(&reply);
    expect(*state, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");
}

/*
 * Headers that a proxy may interpret differently. Each is refused with 400 and its connection is
 * closed, so that the bytes after it are not processed as a request. Sent at once, and again byte
 * by byte.
 */
#define HEAD(text)               \
    {                            \
        (text), sizeof(text) - 1 \
    }
static const struct {
    const char *text;
    size_t len;
} ambiguous[] = {
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX\0: y\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\0evil\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: \0y\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\0\r\nY: b\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\0Y: b\r\n\r\n"),
    HEAD("POST /a\0b HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a\0 HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST\0X /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h@evil\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h:80:80\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost:\r\n\r\n"),
    HEAD("POST /a HTTP/1.9\r\nHost: h\r\n\r\n"),
    HEAD("POST  /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a  HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a b HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a\tb HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("PO(ST /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\r\n\tTransfer-Encoding: chunked\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\r\n \r\n\r\n"),
    HEAD("POST /a HTTP/1.1\nHost: h\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nX: y\r\nHost: h\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\n\n"),
    HEAD("POST /a HTTP/1.1\nHost: h\n\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\r\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nX: a\x1b[2J\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\n: y\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0x3\r\n\r\nabc"),
    HEAD("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\nabc"),
};

static void test_http_refuses_ambiguous_headers(void **state)
{
    static const char next[] = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous * 2; i++) {
        struct buf reply = BUF_INIT(BUF_UNLIMITED);
        const char *text = ambiguous[i / 2].text;
        int fd = dial(*state), on = 1;
        assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
        for (size_t k = 0; k < ambiguous[i / 2].len; k++)
            if (i % 2 == 1 && send(fd, text + k, 1, MSG_NOSIGNAL) != 1)
                break;
        if (i % 2 == 0)
            say(fd, text, ambiguous[i / 2].len);
        (void)send(fd, next, sizeof next - 1, MSG_NOSIGNAL);
        (void)read_until(fd, &reply, "never said"); /* until the server closes the connection */
        if (strncmp(reply.data, "HTTP/1.1 400 ", 13) != 0 && strncmp(reply.data, "HTTP/1.0 400 ", 13) != 0 &&
            reply.len > 0)
            fail_msg("head %zu: %s", i / 2, reply.data);
        if (strstr(reply.data, "smuggled") != NULL)
            fail_msg("head %zu, smuggled: %s", i / 2, reply.data);
        buf_deinit(&reply);
        close(fd);
    }
    expect(*state, "GET /a HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");
    expect(*state, "GET /a HTTP/1.1\r\nHost:   h:80\t \r\nX:\r\nY: \xc3\xa4\tb\r\n\r\n", "HTTP/1.1 200 OK\r\n",
           "GET /a [] 0");
}

/* Permitted origins of requests and names of the server. */
static void test_http_checks_host_and_origin(void **state)
{
    static const struct {
        const char *headers, *status;
    } cases[] = {
        {"Host: h", "200"},
        {"Host: H.:9200", "200"},
        {"Host: localhost:9200", "200"},
        {"Host: LocalHost.", "200"},
        {"Host: 127.0.0.1:9200", "200"},
        {"Host: 192.168.7.7", "200"},
        {"Host: [::1]:9200", "200"},
        {"Host: [::1]", "200"},
        {"Host: evil.example", "403"},
        {"Host: localhost.evil.example", "403"},
        {"Host: hh", "403"},
        {"Host: 127.1", "403"},
        {"Host: 127.0.0.1.evil.example", "403"},
        {"Host: [h]", "400"},
        {"Host: [localhost]", "400"},
        {"Host: h\r\nOrigin: http://h", "200"},
        {"Host: h:9200\r\nOrigin: https://H:9200", "200"},
        {"Host: h:9200\r\nOrigin: http://h", "403"},
        {"Host: h\r\nOrigin: http://h.evil.example", "403"},
        {"Host: h\r\nOrigin: http://evil.example", "403"},
        {"Host: h\r\nOrigin: http://evil/h", "403"},
        {"Host: h\r\nOrigin: null", "403"},
        {"Host: h\r\nOrigin:", "403"},
        {"Host: h\r\nOrigin: file://", "403"},
        {"Host: h\r\nOrigin: http://h\r\nOrigin: http://evil", "400"},
        {"Host: h\r\nSec-Fetch-Site: same-origin", "200"},
        {"Host: h\r\nSec-Fetch-Site: none", "200"},
        {"Host: h\r\nSec-Fetch-Site: cross-site", "403"},
        {"Host: h\r\nSec-Fetch-Site: same-site", "403"},
    };
    static const char *const methods[] = {"GET", "POST", "OPTIONS", "DELETE"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t m = 0; m < 4; m++) {
            char request[512], start[32];
            snprintf(request, sizeof request, "%s /a HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n", methods[m],
                     cases[i].headers);
            snprintf(start, sizeof start, "HTTP/1.1 %s ", cases[i].status);
            const char *type = *cases[i].status == '2'     ? " /a [] 0"
                               : cases[i].status[2] == '3' ? "security_"
                                                           : "illegal_";
            expect(*state, request, start, type);
        }
    expect(*state, "GET http://evil.example/a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 403 ", "security_");
    expect(*state, "GET HTTP://h/a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", "GET /a [] 0");
}

/* Half a request and the end of the stream arrive together: the server closes the connection. */
static void test_http_closes_on_end_with_partial_request(void **state)
{
    int fds[50];
    for (size_t i = 0; i < 50; i++) {
        fds[i] = dial(*state);
        say(fds[i], "GET /a HT", 9);
        shutdown(fds[i], SHUT_WR);
    }
    for (size_t i = 0; i < 50; i++) {
        struct buf reply = BUF_INIT(BUF_UNLIMITED);
        assert_false(read_until(fds[i], &reply, "never said"));
        buf_deinit(&reply);
        close(fds[i]);
    }
}

static void test_disconnect_is_reported_while_request_waits(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    say(fd, "GET /held HTTP/1.1\r\nHost: h\r\n\r\n", 31);
    wait_until(f, f->held != NULL);
    close(fd);
    wait_until(f, f->disconnects == 1);
    assert_true(http_drain(f->http, FOREVER_US));
}

/* Response and hang-up race: each order is handled. */
static void test_disconnect_races_with_response(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 300; i++) {
        int fd = dial(f);
        say(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n", 32);
        close(fd);
    }
    assert_true(http_drain(f->http, FOREVER_US));
}

static void test_stream_sends_until_closed(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    expect_on(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
              "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n", "first\n\r\n");
    wait_until(f, f->held != NULL);
    struct exchange *stream = f->held;
    stream->ops->stream_write(stream, SLICE_LIT("second\n"));
    expect_on(fd, "", "7\r\n", "second\n\r\n");
    stream->ops->stream_close(stream);
    expect_on(fd, "", "0\r\n", "\r\n\r\n");
    expect_on(fd, "GET /b HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /b [] 0");
    close(fd);
    assert_int_equal(f->disconnects, 0);
}

static void test_stream_reports_disconnect(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    expect_on(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "first\n\r\n");
    wait_until(f, f->held != NULL);
    close(fd);
    wait_until(f, f->disconnects == 1);
    assert_true(http_drain(f->http, FOREVER_US));
}

static void test_stream_breaks_at_its_limit(void **state)
{
    (void)state;
    struct http_options chosen = options();
    chosen.stream_bytes_max = 100000;
    struct fixture *f = open_with(chosen);
    int fd = dial(f);
    expect_on(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "first\n\r\n");
    wait_until(f, f->held != NULL);
    struct exchange *stream = f->held;
    char block[10000];
    memset(block, 'x', sizeof block);
    /* First the buffers of the sockets fill, then that of the stream; then the stream breaks. */
    for (int i = 0; i < 10000 && f->disconnects == 0; i++)
        stream->ops->stream_write(stream, (struct slice){block, sizeof block});
    assert_int_equal(f->disconnects, 1);
    close(fd);
    close_fixture(f);
}

/*
 * A header or a body that is sent too slowly: the connection is closed; the server serves others.
 */
static void test_http_closes_slow_connections(void **state)
{
    (void)state;
    struct http_options chosen = options();
    chosen.header_us = chosen.stall_us = 500 * TL_MS;
    chosen.idle_us = 20 * TL_SECOND;
    struct fixture *f = open_with(chosen);
    int head = dial(f);
    int body = dial(f);
    const char *start = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    say(body, start, strlen(start));
    bool head_ended = false;
    bool body_ended = false;
    while (!head_ended || !body_ended) {
        head_ended = head_ended || send(head, "G", 1, MSG_NOSIGNAL) < 0;
        body_ended = body_ended || send(body, "x", 1, MSG_NOSIGNAL) < 0;
        poll(NULL, 0, 50);
    }
    close(head);
    close(body);
    expect(f, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");
    close_fixture(f);
}

/* Writes a self-signed certificate and its key into one new file, which the caller removes. */
static void write_pair(char path[static 32])
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
    gnutls_datum_t key_text, cert_text;
    strcpy(path, "/tmp/tidelock-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_crt_init(&cert), 0);
    assert_int_equal(
        gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), 0);
    assert_int_equal(gnutls_x509_crt_set_version(cert, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(cert, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_key(cert, key), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(cert, time(NULL) - 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(cert, time(NULL) + 3600), 0);
    assert_int_equal(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_text), 0);
    assert_int_equal(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &cert_text), 0);
    assert_int_equal(write(fd, key_text.data, key_text.size), key_text.size);
    assert_int_equal(write(fd, cert_text.data, cert_text.size), cert_text.size);
    close(fd);
    gnutls_free(key_text.data);
    gnutls_free(cert_text.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

/* A handshake exceeds its time limit: the client sends nothing, a beginning, or byte after byte. */
static void test_http_closes_unfinished_handshakes(void **state)
{
    (void)state;
    enum { SILENT, BEGUN, DRIBBLING, COUNT };
    struct http_options chosen = options();
    char path[32];
    write_pair(path);
    chosen.header_us = 500 * TL_MS;
    chosen.tls = (struct tls_files){.cert = path, .key = path};
    struct fixture *f = open_with(chosen);
    int fds[COUNT];
    bool ended[COUNT] = {false};
    for (int i = 0; i < COUNT; i++)
        fds[i] = dial(f);
    say(fds[BEGUN], "\x16\x03\x01", 3);
    say(fds[DRIBBLING], "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    while (!ended[SILENT] || !ended[BEGUN] || !ended[DRIBBLING]) {
        (void)send(fds[DRIBBLING], "x", 1, MSG_NOSIGNAL);
        for (int k = 0; k < COUNT; k++) {
            char byte;
            ssize_t got = recv(fds[k], &byte, 1, MSG_DONTWAIT);
            ended[k] = ended[k] || got == 0 || (got < 0 && errno != EAGAIN);
        }
        poll(NULL, 0, 50);
    }
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close_fixture(f);
    unlink(path);
}

static void test_quiesce_closes_idle_and_finishes_busy(void **state)
{
    struct fixture *f = *state;
    int idle = dial(f);
    int busy = dial(f);
    expect_on(idle, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a [] 0");
    say(busy, "GET /held HTTP/1.1\r\nHost: h\r\n\r\n", 31);
    wait_until(f, f->held != NULL);
    http_quiesce(f->http);
    assert_false(http_drain(f->http, 20 * TL_MS));
    assert_false(http_settled(f->http, 0)); /* the handler still has the request */
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    assert_false(read_until(idle, &reply, "never said")); /* closed */
    buf_deinit(&reply);
    answer(f->held);
    exchange_respond(f->held);
    assert_true(http_settled(f->http, 0));
    expect_on(busy, "", "HTTP/1.1 200 OK\r\n", "Connection: close\r\n");
    assert_true(http_drain(f->http, FOREVER_US));
    close(idle);
    close(busy);
}

static void *load(void *context)
{
    struct fixture *f = context;
    int fd = dial(f);
    for (int i = 0; i < 500; i++) {
        if (i % 2 == 0)
            expect_on(fd, "PUT /later?q HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\n",
                      "PUT /later [q] 3");
        else
            expect_on(fd, "GET /now HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /now [] 0");
    }
    close(fd);
    return NULL;
}

static void test_http_serves_concurrent_clients(void **state)
{
    pthread_t threads[16];
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load, *state), 0);
    for (size_t i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    struct http_stats stats;
    http_stats(((struct fixture *)*state)->http, &stats);
    assert_int_equal(stats.requests, 16 * 500);
    assert_int_equal(stats.in_flight, 0);
}

static void test_open_reports_port_in_use(void **state)
{
    struct fixture *f = *state;
    struct http_options chosen = options();
    chosen.port = http_port(f->http);
    struct http_handler handler = {handle, timestamp, f};
    struct http *second = NULL;
    char *reason = NULL;
    assert_int_equal(http_open(&chosen, &handler, &second, &reason), TL_ERR_IO);
    assert_non_null(strstr(reason, "Address already in use"));
    mem_free(reason);
}

/*
 * A reason is allocated by base/alloc: after its release the account of memory is the same as
 * before. (A reason of asprintf() was not counted, but subtracted.)
 */
static void test_open_failure_leaves_memory_account_unchanged(void **state)
{
    (void)state;
    struct http_options no_host = options(), no_file = options();
    no_host.host = "256.0.0.1";
    no_file.tls.cert = no_file.tls.key = "/nonexistent/file";
    const struct http_options *const cases[] = {&no_host, &no_file};
    struct http_handler handler = {handle, timestamp, NULL};
    void *held = mem_alloc((size_t)64 << 20); /* mem_used() would show a negative account as 0 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http *http = NULL;
        char *reason = NULL;
        mem_thread_end(); /* the total has the calling thread's bytes */
        size_t before = mem_used();
        assert_int_equal(http_open(cases[i], &handler, &http, &reason), TL_ERR_IO);
        assert_non_null(reason);
        mem_free(reason);
        mem_thread_end();
        assert_int_equal(mem_used(), before);
    }
    mem_free(held);
}

/*
 * With k more file descriptors, for k = 0, 1, 2 ... until the server starts: each failure, of the
 * listener, the watcher and the polling threads, has a reason.
 */
static void test_open_reports_missing_descriptors(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int free_fd = dup(STDIN_FILENO);
    assert_true(free_fd >= 0);
    close(free_fd);
    struct http_options chosen = options();
    struct http_handler handler = {handle, timestamp, NULL};
    struct http *http = NULL;
    unsigned watchers = 0, pollers = 0;
    for (rlim_t k = 0; http == NULL; k++) {
        char *reason = NULL;
        struct rlimit few = {.rlim_cur = (rlim_t)free_fd + k, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int r = http_open(&chosen, &handler, &http, &reason);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (r == 0)
            break;
        assert_int_equal(r, TL_ERR_IO);
        assert_non_null(reason);
        watchers += strstr(reason, "cannot watch connections: Too many open files") != NULL;
        pollers += strstr(reason, "cannot start 2 polling threads") != NULL;
        mem_free(reason);
    }
    assert_true(watchers > 0);
    assert_true(pollers > 0);
    http_close(http);
}

struct passage {
    pthread_mutex_t *lock;
    pthread_cond_t *changed;
    unsigned count;
};

static void count_passage(void *context)
{
    struct passage *passage = context;
    pthread_mutex_lock(passage->lock);
    passage->count++;
    pthread_cond_broadcast(passage->changed);
    pthread_mutex_unlock(passage->lock);
}

static void await_passage(struct passage *passage)
{
    pthread_mutex_lock(passage->lock);
    while (passage->count == 0)
        pthread_cond_wait(passage->changed, passage->lock);
    pthread_mutex_unlock(passage->lock);
}

/* Calls made before and while a barrier is running are completed once each. */
static void test_input_barrier_completes_each_call_once(void **state)
{
    struct fixture *f = *state;
    struct passage passages[4];
    for (size_t i = 0; i < 4; i++)
        passages[i] = (struct passage){.lock = &f->lock, .changed = &f->changed};
    for (size_t i = 0; i < 3; i++)
        http_input_barrier(f->http, count_passage, &passages[i]);
    await_passage(&passages[2]);
    http_input_barrier(f->http, count_passage, &passages[3]);
    await_passage(&passages[3]); /* the callbacks of earlier calls have been called before this one */
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(passages[i].count, 1);
}

#define with_server(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(test_http_passes_requests_and_responses),
        with_server(test_http_passes_headers),
        cmocka_unit_test(test_http_serves_exactly_128_ready_connections),
        cmocka_unit_test(test_http_requests_get_between_many_answers),
        cmocka_unit_test(test_http_requests_get_between_many_ends_of_connections),
        with_server(test_http_head_response_has_no_body),
        with_server(test_http_answers_expect_continue),
        with_server(test_http_refuses_too_large_body),
        cmocka_unit_test(test_http_limits_bodies_together),
        with_server(test_http_decompresses_bodies),
        with_server(test_http_refuses_malformed_requests),
        with_server(test_http_refuses_ambiguous_headers),
        with_server(test_http_checks_host_and_origin),
        with_server(test_http_closes_on_end_with_partial_request),
        with_server(test_disconnect_is_reported_while_request_waits),
        with_server(test_disconnect_races_with_response),
        with_server(test_stream_sends_until_closed),
        with_server(test_stream_reports_disconnect),
        cmocka_unit_test(test_stream_breaks_at_its_limit),
        cmocka_unit_test(test_http_closes_slow_connections),
        cmocka_unit_test(test_http_closes_unfinished_handshakes),
        with_server(test_quiesce_closes_idle_and_finishes_busy),
        with_server(test_http_serves_concurrent_clients),
        with_server(test_open_reports_port_in_use),
        cmocka_unit_test(test_open_failure_leaves_memory_account_unchanged),
        cmocka_unit_test(test_open_reports_missing_descriptors),
        with_server(test_input_barrier_completes_each_call_once),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
