/* SPDX-License-Identifier: Apache-2.0 */
/* The response that keeps a session; see attach_stream.h. */
#include "cli/attach_stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/types.h"
#include "cli/client.h"

enum { RETRY_US = 200 * 1000, AWAIT_PARTS = 2 /* of the time to live */ };

/*
 * A line was sent at some time before now, and after the previous one arrived: so it is certain
 * only that the lease runs from the previous line. The first counts from our request. Lines that
 * arrive together count as one: when we were stopped for an hour they were sent at any time in it,
 * and the server may be gone since.
 */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct attach_stream_response *attachment = context;
    struct attach_stream *stream = attachment->stream;
    long status = 0;
    (void)bytes;
    curl_easy_getinfo(attachment->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && attachment == stream->now) {
        if (stream->alive_us < stream->before_us)
            stream->alive_us = stream->before_us;
        if (stream->newest_us < stream->looked_us)
            stream->newest_us = stream->looked_us;
        stream->alive = attachment->alive = true;
    }
    return size * count;
}

static void attach_session(struct attach_stream *stream)
{
    stream->newest_us = clock_boot_us();
    stream->attached = true;
    stream->now->alive = false;
    curl_multi_add_handle(stream->multi, stream->now->curl);
}

/* Sets `now` up for a server. */
static void make_attachment(struct attach_stream *stream, const char *url)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/_session/", url);
    client_escape(&path, slice_from(stream->session));
    buf_lit(&path, "/_attach");
    buf_byte(&path, '\0');
    struct attach_stream_response *now = stream->now = mem_zalloc(sizeof *now);
    *now = (struct attach_stream_response){.stream = stream, .curl = curl_easy_init()};
    client_configure(now->curl, NULL);
    curl_easy_setopt(now->curl, CURLOPT_URL, path.data);
    curl_easy_setopt(now->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(now->curl, CURLOPT_WRITEDATA, now);
    curl_easy_setopt(now->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(now->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(stream->ttl_us / TL_MS / 3));
    stream->server = mem_strdup(url, strlen(url));
}

static void free_attachment(struct attach_stream *stream, struct attach_stream_response *attachment)
{
    if (attachment == NULL)
        return;
    curl_multi_remove_handle(stream->multi, attachment->curl);
    curl_easy_cleanup(attachment->curl);
    mem_free(attachment);
}

void attach_stream_init(struct attach_stream *stream, const char *url, const char *session, uint64_t ttl_us)
{
    *stream = (struct attach_stream){
        .multi = curl_multi_init(), .session = session, .ttl_us = ttl_us, .alive_us = clock_boot_us()};
    make_attachment(stream, url);
    attach_session(stream);
}

void attach_stream_move(struct attach_stream *stream, const char *url)
{
    if (stream->lost || strcmp(stream->server, url) == 0)
        return;
    mem_free(stream->server);
    if (stream->attached && stream->now->alive) {
        free_attachment(stream, stream->former);
        stream->former = stream->now;
    } else {
        free_attachment(stream, stream->now);
    }
    make_attachment(stream, url);
    attach_session(stream);
}

void attach_stream_deinit(struct attach_stream *stream)
{
    free_attachment(stream, stream->former);
    free_attachment(stream, stream->now);
    curl_multi_cleanup(stream->multi);
    mem_free(stream->server);
}

/* Returns: whether the same request gets the same reply again: a refusal, except for a reason that passes. */
static bool is_final(long status)
{
    return status >= 400 && status < 500 && status != 404 && status != 408 && status != 429;
}

static void on_end(struct attach_stream *stream, CURL *curl)
{
    long status = 0;
    if (curl != stream->now->curl) {
        free_attachment(stream, tl_steal(stream->former));
        return;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(stream->multi, curl);
    stream->attached = false;
    stream->failed = !stream->now->alive && status != 404;
    stream->lost = stream->lost || status == 404;
    if (!stream->alive && is_final(status))
        stream->refused = status;
}

void attach_stream_wait(struct attach_stream *stream, int fd, uint64_t wait_us)
{
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int running;
    int queued;
    if (!stream->attached && !stream->lost) {
        if (clock_boot_us() - stream->newest_us >= RETRY_US)
            attach_session(stream);
        else if (wait_us > RETRY_US)
            wait_us = RETRY_US;
    }
    stream->before_us = stream->newest_us;
    curl_multi_perform(stream->multi, &running);
    curl_multi_poll(stream->multi, &extra, 1, (int)(wait_us / TL_MS) + 1, NULL);
    uint64_t look_us = clock_boot_us();
    curl_multi_perform(stream->multi, &running);
    stream->looked_us = look_us;
    for (const CURLMsg *message; (message = curl_multi_info_read(stream->multi, &queued)) != NULL;)
        on_end(stream, message->easy_handle);
    if (stream->now->alive)
        free_attachment(stream, tl_steal(stream->former));
}

void attach_stream_wake(struct attach_stream *stream)
{
    (void)curl_multi_wakeup(stream->multi);
}

bool attach_stream_await(struct attach_stream *stream)
{
    uint64_t end = clock_boot_us() + stream->ttl_us / AWAIT_PARTS;
    while (!stream->alive && !stream->lost && stream->refused == 0 && clock_boot_us() < end)
        attach_stream_wait(stream, -1, end - clock_boot_us());
    return stream->alive;
}

bool attach_stream_renew(struct attach_stream *stream, struct client *client, uint64_t wait_us)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&path, "/_session/");
    client_escape(&path, slice_from(stream->session));
    buf_lit(&path, "/_keepalive");
    buf_byte(&path, '\0');
    uint64_t asked_us = clock_boot_us();
    long status = client_request(client, "POST", path.data, SLICE_LIT(""), wait_us);
    if (status == 200)
        stream->alive_us = stream->newest_us = asked_us;
    stream->lost = stream->lost || status == 404;
    return status == 200 || status == 404;
}

uint64_t attach_stream_left(const struct attach_stream *stream)
{
    uint64_t end = stream->alive_us + stream->ttl_us;
    uint64_t now = clock_boot_us();
    return stream->lost || now >= end ? 0 : end - now;
}
