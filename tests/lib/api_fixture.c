/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An api without sockets.
 */
#include "api_fixture.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "cmdlog_fixture.h"
#include "unit.h"

#include "base/alloc.h"

#define RESPONSE_BYTES_MAX ((size_t)64 << 20)

/* --- The server --------------------------------------------------------------------------------------------------- */

void api_fixture_open(struct api_fixture *fixture)
{
    struct journal_options journal = {.history_us = fixture->history_us, .group_max = 64};
    struct api_options options = {.worker_count = 1, .budget = fixture->budget};
    if (fixture->data_directory != NULL)
        options.data_directory = slice_from(fixture->data_directory);
    fixture->store = store_open_mem();
    fixture->kept = mem_zalloc(sizeof *fixture->kept);
    fixture->core = cmdlog_fixture_begin(fixture->kept, fixture->store, &journal);
    assert_int_equal(journal_open_local(fixture->core, fixture->store, &journal, &fixture->journal), 0);
    assert_int_equal(api_open(fixture->journal, fixture->store, &options, &fixture->api), 0);
}

void api_fixture_close(struct api_fixture *fixture)
{
    api_stop(fixture->api);
    api_close(fixture->api);
    journal_close(fixture->journal);
    core_close(fixture->core);
    cmdlog_fixture_end(fixture->kept);
    cmdlog_fixture_free(fixture->kept);
    mem_free(fixture->kept);
    store_close(fixture->store);
}

/* --- What http would provide -------------------------------------------------------------------------------------- */

static struct fixture_exchange *of(struct exchange *exchange)
{
    return (struct fixture_exchange *)exchange;
}

static struct slice fixture_header(struct exchange *exchange, const char *name)
{
    struct fixture_exchange *sent = of(exchange);
    for (size_t i = 0; i < sent->sent_count; i++)
        if (strcasecmp(sent->sent[i].name, name) == 0)
            return sent->sent[i].value;
    return SLICE_NONE;
}

static void fixture_change(struct fixture_exchange *sent, bool *flag)
{
    pthread_mutex_lock(&sent->lock);
    *flag = true;
    pthread_cond_broadcast(&sent->wake);
    pthread_mutex_unlock(&sent->lock);
}

static void fixture_release_body(struct exchange *exchange)
{
    exchange->body = SLICE_NONE;
}

static void fixture_respond(struct exchange *exchange)
{
    fixture_change(of(exchange), &of(exchange)->answered);
}

static void fixture_stream_open(struct exchange *exchange)
{
    fixture_change(of(exchange), &of(exchange)->streaming);
}

static size_t fixture_stream_unsent(struct exchange *exchange)
{
    (void)exchange;
    return 0;
}

static void fixture_stream_write(struct exchange *exchange, struct slice bytes)
{
    struct fixture_exchange *sent = of(exchange);
    pthread_mutex_lock(&sent->lock);
    buf_slice(&sent->stream, bytes);
    pthread_cond_broadcast(&sent->wake);
    pthread_mutex_unlock(&sent->lock);
}

static void fixture_stream_close(struct exchange *exchange)
{
    fixture_change(of(exchange), &of(exchange)->closed);
}

static const struct exchange_ops fixture_ops = {fixture_header,      fixture_release_body, fixture_respond,
                                                fixture_stream_open, fixture_stream_write, fixture_stream_unsent,
                                                fixture_stream_close};

/* --- Exchanges ---------------------------------------------------------------------------------------------------- */

static enum http_method method_of(const char *name)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
    for (int i = 0; i < HTTP_OTHER; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum http_method)i;
    return HTTP_OTHER;
}

struct fixture_exchange *fixture_exchange_new(const char *method, const char *target, const char *body)
{
    struct fixture_exchange *sent = mem_zalloc(sizeof *sent);
    struct slice all = slice_from(target);
    size_t mark = slice_find_byte(all, '?');
    pthread_mutex_init(&sent->lock, NULL);
    pthread_cond_init(&sent->wake, NULL);
    sent->stream = BUF_INIT(RESPONSE_BYTES_MAX);
    sent->exchange.ops = &fixture_ops;
    sent->exchange.local = true;
    sent->exchange.arena = ARENA_INIT;
    sent->exchange.method = method_of(method);
    sent->exchange.method_name = slice_from(method);
    sent->exchange.path = slice_make(target, mark);
    sent->exchange.query = mark < all.len ? slice_from_offset(all, mark + 1) : SLICE_NONE;
    sent->exchange.response = BUF_INIT(RESPONSE_BYTES_MAX);
    if (body != NULL) {
        sent->exchange.body = slice_from(body);
        fixture_exchange_header(sent, "Content-Type", "application/json");
    }
    return sent;
}

void fixture_exchange_free(struct fixture_exchange *sent)
{
    buf_deinit(&sent->stream);
    buf_deinit(&sent->exchange.response);
    arena_deinit(&sent->exchange.arena);
    pthread_cond_destroy(&sent->wake);
    pthread_mutex_destroy(&sent->lock);
    mem_free(sent);
}

void fixture_exchange_header(struct fixture_exchange *sent, const char *name, const char *value)
{
    for (size_t i = 0; i < sent->sent_count; i++)
        if (strcasecmp(sent->sent[i].name, name) == 0) {
            sent->sent[i].value = slice_from(value);
            return;
        }
    sent->sent[sent->sent_count++] = (struct response_header){name, slice_from(value)};
}

void fixture_exchange_start(struct api_fixture *fixture, struct fixture_exchange *sent)
{
    api_handle(fixture->api, &sent->exchange);
}

void fixture_exchange_wait(struct fixture_exchange *sent)
{
    pthread_mutex_lock(&sent->lock);
    while (!sent->answered && !sent->closed)
        pthread_cond_wait(&sent->wake, &sent->lock);
    pthread_mutex_unlock(&sent->lock);
}

bool fixture_exchange_wait_ms(struct fixture_exchange *sent, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&sent->lock);
    while (!sent->answered && !sent->closed)
        if (pthread_cond_timedwait(&sent->wake, &sent->lock, &until) != 0)
            break;
    bool came = sent->answered || sent->closed;
    pthread_mutex_unlock(&sent->lock);
    return came;
}

static size_t count_lines(const struct buf *buf)
{
    size_t lines = 0;
    for (size_t i = 0; i < buf->len; i++)
        lines += buf->data[i] == '\n';
    return lines;
}

void fixture_exchange_wait_lines(struct fixture_exchange *sent, size_t lines)
{
    pthread_mutex_lock(&sent->lock);
    while (count_lines(&sent->stream) < lines && !sent->answered && !sent->closed)
        pthread_cond_wait(&sent->wake, &sent->lock);
    pthread_mutex_unlock(&sent->lock);
}

void fixture_exchange_break(struct fixture_exchange *sent)
{
    /*
     * The owner of the exchange may set it concurrently; GCC would read a plain function pointer without an atomic
     * load.
     */
    void (*on_disconnect)(struct exchange * exchange) = atomic_load(&sent->exchange.on_disconnect);
    if (on_disconnect != NULL)
        on_disconnect(&sent->exchange);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

int api_fixture_ask(struct api_fixture *fixture, const char *method, const char *target, const char *body,
                    char **ret_body)
{
    struct fixture_exchange *sent = fixture_exchange_new(method, target, body);
    fixture_exchange_start(fixture, sent);
    fixture_exchange_wait(sent);
    int status = sent->exchange.status;
    if (ret_body != NULL)
        *ret_body = mem_strdup(sent->exchange.response.data == NULL ? "" : sent->exchange.response.data,
                               sent->exchange.response.len);
    fixture_exchange_free(sent);
    return status;
}

void api_fixture_expect(struct api_fixture *fixture, const char *method, const char *target, const char *body,
                        int status, const char *expected)
{
    char *got;
    int got_status = api_fixture_ask(fixture, method, target, body, &got);
    size_t len = strlen(expected);
    bool equal =
        len > 0 && expected[len - 1] == '*' ? strncmp(got, expected, len - 1) == 0 : strcmp(got, expected) == 0;
    if (got_status != status || !equal)
        fail_msg("%s %s: got %d %s, expected %d %s", method, target, got_status, got, status, expected);
    mem_free(got);
}
