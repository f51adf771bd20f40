/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life line; see lifeline.h. */
#include "cli/lifeline.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/types.h"
#include "cli/client.h"

enum { RETRY_US = 200 * 1000, AWAIT_PARTS = 2 /* of the time to live */ };

/*
 * A line was sent at some time before now, and after the previous one arrived: so it is certain only that the lease runs from the
 * previous line. The first counts from our request. Lines that arrive together count as one: when we were stopped for an hour they
 * were sent at any time in it, and the server may be gone since.
 */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct lifeline *line = context;
    long status = 0;
    (void)bytes;
    curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) {
        if (line->heard_us < line->before_us)
            line->heard_us = line->before_us;
        if (line->newest_us < line->looked_us)
            line->newest_us = line->looked_us;
        line->stood = true;
    }
    return size * count;
}

static void attach(struct lifeline *line)
{
    line->newest_us = clock_boot_us();
    line->attached = true;
    curl_multi_add_handle(line->multi, line->curl);
}

void lifeline_init(struct lifeline *line, const char *url, const char *session, uint64_t ttl_us)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    size_t len;
    buf_printf(&path, "%s/_session/", url);
    client_escape(&path, slice_from(session));
    buf_lit(&path, "/_attach");
    *line = (struct lifeline){.multi = curl_multi_init(),
                              .curl = curl_easy_init(),
                              .session = session,
                              .ttl_us = ttl_us,
                              .heard_us = clock_boot_us()};
    line->url = buf_detach(&path, &len);
    client_configure(line->curl, NULL);
    curl_easy_setopt(line->curl, CURLOPT_URL, line->url);
    curl_easy_setopt(line->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(line->curl, CURLOPT_WRITEDATA, line);
    curl_easy_setopt(line->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(line->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(ttl_us / TL_MS / 3));
    attach(line);
}

void lifeline_deinit(struct lifeline *line)
{
    curl_multi_remove_handle(line->multi, line->curl);
    curl_easy_cleanup(line->curl);
    curl_multi_cleanup(line->multi);
    mem_free(line->url);
}

static void on_end(struct lifeline *line)
{
    long status = 0;
    curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(line->multi, line->curl);
    line->attached = false;
    line->lost = line->lost || status == 404;
}

void lifeline_wait(struct lifeline *line, int fd, uint64_t wait_us)
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
    while (curl_multi_info_read(line->multi, &queued) != NULL)
        on_end(line);
}

void lifeline_wake(struct lifeline *line)
{
    (void)curl_multi_wakeup(line->multi);
}

bool lifeline_await(struct lifeline *line)
{
    uint64_t end = clock_boot_us() + line->ttl_us / AWAIT_PARTS;
    while (!line->stood && !line->lost && clock_boot_us() < end)
        lifeline_wait(line, -1, end - clock_boot_us());
    return line->stood;
}

void lifeline_renew(struct lifeline *line, struct client *client, uint64_t wait_us)
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
}

uint64_t lifeline_left(const struct lifeline *line)
{
    uint64_t end = line->heard_us + line->ttl_us;
    uint64_t now = clock_boot_us();
    return line->lost || now >= end ? 0 : end - now;
}
