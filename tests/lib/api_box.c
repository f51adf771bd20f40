/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An api without sockets.
 */
#include "api_box.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "cmdlog_fixture.h"
#include "unit.h"

#include "base/alloc.h"

#define RESPONSE_BYTES_MAX ((size_t)64 << 20)

/* --- The server --------------------------------------------------------------------------------------------------- */

void api_box_open(struct api_box *box)
{
    struct journal_options journal = {.history_us = box->history_us, .group_max = 64};
    struct api_options options = {.worker_count = 1, .budget = box->budget};
    if (box->data_directory != NULL)
        options.data_directory = slice_from(box->data_directory);
    box->store = store_open_mem();
    box->kept = mem_zalloc(sizeof *box->kept);
    box->core = cmdlog_fixture_begin(box->kept, box->store, &journal);
    assert_int_equal(journal_open_local(box->core, box->store, &journal, &box->journal), 0);
    assert_int_equal(api_open(box->journal, box->store, &options, &box->api), 0);
}

void api_box_close(struct api_box *box)
{
    api_stop(box->api);
    api_close(box->api);
    journal_close(box->journal);
    core_close(box->core);
    cmdlog_fixture_end(box->kept);
    cmdlog_fixture_free(box->kept);
    mem_free(box->kept);
    store_close(box->store);
}

/* --- What http would provide -------------------------------------------------------------------------------------- */

static struct box_exchange *of(struct exchange *exchange)
{
    return (struct box_exchange *)exchange;
}

static struct slice box_header(struct exchange *exchange, const char *name)
{
    struct box_exchange *sent = of(exchange);
    for (size_t i = 0; i < sent->sent_count; i++)
        if (strcasecmp(sent->sent[i].name, name) == 0)
            return sent->sent[i].value;
    return SLICE_NONE;
}

static void box_change(struct box_exchange *sent, bool *flag)
{
    pthread_mutex_lock(&sent->lock);
    *flag = true;
    pthread_cond_broadcast(&sent->wake);
    pthread_mutex_unlock(&sent->lock);
}

static void box_release_body(struct exchange *exchange)
{
    exchange->body = SLICE_NONE;
}

static void box_respond(struct exchange *exchange)
{
    box_change(of(exchange), &of(exchange)->answered);
}

static void box_stream_open(struct exchange *exchange)
{
    box_change(of(exchange), &of(exchange)->streaming);
}

static size_t box_stream_behind(struct exchange *exchange)
{
    (void)exchange;
    return 0;
}

static void box_stream_write(struct exchange *exchange, struct slice bytes)
{
    struct box_exchange *sent = of(exchange);
    pthread_mutex_lock(&sent->lock);
    buf_slice(&sent->stream, bytes);
    pthread_cond_broadcast(&sent->wake);
    pthread_mutex_unlock(&sent->lock);
}

static void box_stream_close(struct exchange *exchange)
{
    box_change(of(exchange), &of(exchange)->closed);
}

static const struct exchange_ops box_ops = {box_header,       box_release_body,  box_respond,     box_stream_open,
                                            box_stream_write, box_stream_behind, box_stream_close};

/* --- Exchanges ---------------------------------------------------------------------------------------------------- */

static enum http_method method_of(const char *name)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
    for (int i = 0; i < HTTP_OTHER; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum http_method)i;
    return HTTP_OTHER;
}

struct box_exchange *box_exchange_new(const char *method, const char *target, const char *body)
{
    struct box_exchange *sent = mem_zalloc(sizeof *sent);
    struct slice all = slice_from(target);
    size_t mark = slice_find_byte(all, '?');
    pthread_mutex_init(&sent->lock, NULL);
    pthread_cond_init(&sent->wake, NULL);
    sent->stream = BUF_INIT(RESPONSE_BYTES_MAX);
    sent->exchange.ops = &box_ops;
    sent->exchange.local = true;
    sent->exchange.arena = ARENA_INIT;
    sent->exchange.method = method_of(method);
    sent->exchange.method_name = slice_from(method);
    sent->exchange.path = slice_make(target, mark);
    sent->exchange.query = mark < all.len ? slice_from_offset(all, mark + 1) : SLICE_NONE;
    sent->exchange.response = BUF_INIT(RESPONSE_BYTES_MAX);
    if (body != NULL) {
        sent->exchange.body = slice_from(body);
        box_exchange_header(sent, "Content-Type", "application/json");
    }
    return sent;
}

void box_exchange_free(struct box_exchange *sent)
{
    buf_deinit(&sent->stream);
    buf_deinit(&sent->exchange.response);
    arena_deinit(&sent->exchange.arena);
    pthread_cond_destroy(&sent->wake);
    pthread_mutex_destroy(&sent->lock);
    mem_free(sent);
}

void box_exchange_header(struct box_exchange *sent, const char *name, const char *value)
{
    for (size_t i = 0; i < sent->sent_count; i++)
        if (strcasecmp(sent->sent[i].name, name) == 0) {
            sent->sent[i].value = slice_from(value);
            return;
        }
    sent->sent[sent->sent_count++] = (struct response_header){name, slice_from(value)};
}

void box_exchange_start(struct api_box *box, struct box_exchange *sent)
{
    api_handle(box->api, &sent->exchange);
}

void box_exchange_wait(struct box_exchange *sent)
{
    pthread_mutex_lock(&sent->lock);
    while (!sent->answered && !sent->closed)
        pthread_cond_wait(&sent->wake, &sent->lock);
    pthread_mutex_unlock(&sent->lock);
}

bool box_exchange_wait_ms(struct box_exchange *sent, unsigned ms)
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

void box_exchange_wait_lines(struct box_exchange *sent, size_t lines)
{
    pthread_mutex_lock(&sent->lock);
    while (count_lines(&sent->stream) < lines && !sent->answered && !sent->closed)
        pthread_cond_wait(&sent->wake, &sent->lock);
    pthread_mutex_unlock(&sent->lock);
}

void box_exchange_break(struct box_exchange *sent)
{
    /*
     * The owner of the exchange may set it concurrently; GCC would read a plain function pointer without an atomic
     * load.
     */
    void (*on_disconnect)(struct exchange *exchange) = atomic_load(&sent->exchange.on_disconnect);
    if (on_disconnect != NULL)
        on_disconnect(&sent->exchange);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

int api_box_ask(struct api_box *box, const char *method, const char *target, const char *body, char **ret_body)
{
    struct box_exchange *sent = box_exchange_new(method, target, body);
    box_exchange_start(box, sent);
    box_exchange_wait(sent);
    int status = sent->exchange.status;
    if (ret_body != NULL)
        *ret_body = mem_strdup(sent->exchange.response.data == NULL ? "" : sent->exchange.response.data,
                               sent->exchange.response.len);
    box_exchange_free(sent);
    return status;
}

void api_box_expect(struct api_box *box, const char *method, const char *target, const char *body, int status,
                    const char *expected)
{
    char *got;
    int got_status = api_box_ask(box, method, target, body, &got);
    size_t len = strlen(expected);
    bool equal =
        len > 0 && expected[len - 1] == '*' ? strncmp(got, expected, len - 1) == 0 : strcmp(got, expected) == 0;
    if (got_status != status || !equal)
        fail_msg("%s %s: got %d %s, expected %d %s", method, target, got_status, got, status, expected);
    mem_free(got);
}
