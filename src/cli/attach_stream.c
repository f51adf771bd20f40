/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life line; see attach_stream.h. */
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
    struct attach_stream_attachment *attachment = context;
    struct attach_stream *line = attachment->line;
    long status = 0;
    (void)bytes;
    curl_easy_getinfo(attachment->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && attachment == line->now) {
        if (line->heard_us < line->before_us)
            line->heard_us = line->before_us;
        if (line->newest_us < line->looked_us)
            line->newest_us = line->looked_us;
        line->stood = attachment->stood = true;
    }
    return size * count;
}

static void attach(struct attach_stream *line)
{
    line->newest_us = clock_boot_us();
    line->attached = true;
    line->now->stood = false;
    curl_multi_add_handle(line->multi, line->now->curl);
}

/* Sets `now` up for a server. */
static void make_attachment(struct attach_stream *line, const char *url)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/_session/", url);
    client_escape(&path, slice_from(line->session));
    buf_lit(&path, "/_attach");
    buf_byte(&path, '\0');
    struct attach_stream_attachment *now = line->now = mem_zalloc(sizeof *now);
    *now = (struct attach_stream_attachment){.line = line, .curl = curl_easy_init()};
    client_configure(now->curl, NULL);
    curl_easy_setopt(now->curl, CURLOPT_URL, path.data);
    curl_easy_setopt(now->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(now->curl, CURLOPT_WRITEDATA, now);
    curl_easy_setopt(now->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(now->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(line->ttl_us / TL_MS / 3));
    line->server = mem_strdup(url, strlen(url));
}

static void free_attachment(struct attach_stream *line, struct attach_stream_attachment *attachment)
{
    if (attachment == NULL)
        return;
    curl_multi_remove_handle(line->multi, attachment->curl);
    curl_easy_cleanup(attachment->curl);
    mem_free(attachment);
}

void attach_stream_init(struct attach_stream *line, const char *url, const char *session, uint64_t ttl_us)
{
    *line = (struct attach_stream){
        .multi = curl_multi_init(), .session = session, .ttl_us = ttl_us, .heard_us = clock_boot_us()};
    make_attachment(line, url);
    attach(line);
}

void attach_stream_move(struct attach_stream *line, const char *url)
{
    if (line->lost || strcmp(line->server, url) == 0)
        return;
    mem_free(line->server);
    if (line->attached && line->now->stood) {
        free_attachment(line, line->former);
        line->former = line->now;
    } else {
        free_attachment(line, line->now);
    }
    make_attachment(line, url);
    attach(line);
}

void attach_stream_deinit(struct attach_stream *line)
{
    free_attachment(line, line->former);
    free_attachment(line, line->now);
    curl_multi_cleanup(line->multi);
    mem_free(line->server);
}

static void on_end(struct attach_stream *line, CURL *curl)
{
    long status = 0;
    if (curl != line->now->curl) {
        free_attachment(line, tl_steal(line->former));
        return;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(line->multi, curl);
    line->attached = false;
    line->failed = !line->now->stood && status != 404;
    line->lost = line->lost || status == 404;
}

void attach_stream_wait(struct attach_stream *line, int fd, uint64_t wait_us)
{
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int running;
    int queued;
    if (!line->attached && !line->lost) {
        if (clock_boot_us() - line->newest_us >= RETRY_US)
            attach(line);
        else if (wait_us > RETRY_US)
            wait_us = RETRY_US;
    }
    line->before_us = line->newest_us;
    curl_multi_perform(line->multi, &running);
    curl_multi_poll(line->multi, &extra, 1, (int)(wait_us / TL_MS) + 1, NULL);
    uint64_t look_us = clock_boot_us();
    curl_multi_perform(line->multi, &running);
    line->looked_us = look_us;
    for (const CURLMsg *message; (message = curl_multi_info_read(line->multi, &queued)) != NULL;)
        on_end(line, message->easy_handle);
    if (line->now->stood)
        free_attachment(line, tl_steal(line->former));
}

void attach_stream_wake(struct attach_stream *line)
{
    (void)curl_multi_wakeup(line->multi);
}

bool attach_stream_await(struct attach_stream *line)
{
    uint64_t end = clock_boot_us() + line->ttl_us / AWAIT_PARTS;
    while (!line->stood && !line->lost && clock_boot_us() < end)
        attach_stream_wait(line, -1, end - clock_boot_us());
    return line->stood;
}

bool attach_stream_renew(struct attach_stream *line, struct client *client, uint64_t wait_us)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&path, "/_session/");
    client_escape(&path, slice_from(line->session));
    buf_lit(&path, "/_keepalive");
    buf_byte(&path, '\0');
    uint64_t asked_us = clock_boot_us();
    long status = client_request(client, "POST", path.data, SLICE_LIT(""), wait_us);
    if (status == 200)
        line->heard_us = line->newest_us = asked_us;
    line->lost = line->lost || status == 404;
    return status == 200 || status == 404;
}

uint64_t attach_stream_left(const struct attach_stream *line)
{
    uint64_t end = line->heard_us + line->ttl_us;
    uint64_t now = clock_boot_us();
    return line->lost || now >= end ? 0 : end - now;
}
