/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: responses that stay open. The handler appends to the buffer from any thread. The polling
 * thread sends the buffer and suspends the connection while it is empty.
 *
 * When a client does not read, the buffer grows up to `stream_bytes_max`, or until the budget
 * refuses more (base/budget.h). Then the stream is broken: it accepts no more bytes and ends with
 * an error.
 */
#include "base/check.h"
#include "http/http_internal.h"

enum { BLOCK_BYTES = 16 * 1024 }; /* maximum size of a chunk */

static struct http_exchange *hx_of(struct exchange *exchange)
{
    return container_of(exchange, struct http_exchange, exchange);
}

/* Returns: the number of bytes written and not yet sent. Assumes: the lock, a recursive one, whose owner is unknown. */
static size_t unsent_bytes(const struct http_exchange *hx)
{
    return hx->exchange.response.len - hx->stream_sent;
}

/*
 * Returns: whether the caller must resume the connection, after releasing the lock.
 * Assumes: the lock.
 */
static bool take_suspension(struct http_exchange *hx)
{
    bool suspended = hx->stream_suspended && !hx->connection_done;
    hx->stream_suspended = false;
    return suspended;
}

/*
 * Removes sent bytes from the buffer once they exceed the unsent ones, so that a client that always
 * lags a little does not make the buffer grow.
 */
static void discard_sent(struct http_exchange *hx)
{
    struct buf *response = &hx->exchange.response;
    if (hx->stream_sent < BLOCK_BYTES || hx->stream_sent < unsent_bytes(hx) || response->overflow)
        return;
    buf_remove(response, 0, hx->stream_sent);
    hx->stream_sent = 0;
}

/*
 * Returns: whether `more` bytes would exceed the limit of the stream or the budget. Up to
 * BUDGET_CHUNK bytes the budget is not asked.
 */
static bool exceeds_limit(const struct http_exchange *hx, size_t more)
{
    const struct http_options *options = &hx->http->options;
    size_t unsent = unsent_bytes(hx) + more;
    return unsent > options->stream_bytes_max ||
           (unsent > BUDGET_CHUNK && !budget_fits(options->budget, BUDGET_RETAINED, more));
}

void stream_write(struct exchange *exchange, struct slice bytes)
{
    struct http_exchange *hx = hx_of(exchange);
    pthread_mutex_lock(&hx->lock);
    REQUIRE(!hx->stream_closed);
    bool full = exceeds_limit(hx, bytes.len);
    hx->stream_broken = hx->stream_broken || full;
    if (!hx->connection_done && !hx->stream_broken) {
        discard_sent(hx);
        buf_slice(&hx->exchange.response, bytes);
        budget_tally(BUDGET_STREAMS, (ptrdiff_t)bytes.len);
    }
    bool resume = take_suspension(hx);
    pthread_mutex_unlock(&hx->lock);
    if (resume)
        MHD_resume_connection(hx->mhd);
    if (full)
        http_exchange_disconnected(hx);
}

size_t stream_unsent(struct exchange *exchange)
{
    struct http_exchange *hx = hx_of(exchange);
    pthread_mutex_lock(&hx->lock);
    size_t unsent = unsent_bytes(hx);
    pthread_mutex_unlock(&hx->lock);
    return unsent;
}

void stream_close(struct exchange *exchange)
{
    struct http_exchange *hx = hx_of(exchange);
    struct MHD_Connection *mhd = hx->mhd;
    pthread_mutex_lock(&hx->lock);
    REQUIRE(!hx->stream_closed);
    hx->stream_closed = hx->handler_done = hx->disconnect_reported = true;
    bool resume = take_suspension(hx);
    bool last = hx->connection_done;
    atomic_fetch_sub_explicit(&hx->http->streams, 1, memory_order_relaxed);
    pthread_mutex_unlock(&hx->lock);
    if (resume)
        MHD_resume_connection(mhd);
    else if (last)
        http_exchange_release(hx);
}

bool stream_connection_done(struct http_exchange *hx)
{
    http_exchange_disconnected(hx); /* first: a stream_close() inside must not release the exchange */
    pthread_mutex_lock(&hx->lock);
    hx->connection_done = true;
    bool last = hx->handler_done;
    pthread_mutex_unlock(&hx->lock);
    return last;
}

/*
 * MHD_ContentReaderCallback: copies unsent bytes, or suspends the connection until there are some.
 */
static ssize_t stream_read(void *context, uint64_t position, char *to, size_t max)
{
    (void)position;
    struct http_exchange *hx = context;
    ssize_t len;
    pthread_mutex_lock(&hx->lock);
    size_t ready = unsent_bytes(hx);
    if (ready > 0) {
        size_t taken = ready < max ? ready : max;
        memcpy(to, hx->exchange.response.data + hx->stream_sent, taken);
        hx->stream_sent += taken;
        budget_tally(BUDGET_STREAMS, -(ptrdiff_t)taken);
        if (hx->stream_sent == hx->exchange.response.len) {
            buf_clear(&hx->exchange.response);
            hx->stream_sent = 0;
        }
        len = (ssize_t)taken;
    } else if (hx->stream_closed) {
        len = hx->stream_broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        MHD_suspend_connection(hx->mhd);
        hx->stream_suspended = true;
        len = 0;
    }
    pthread_mutex_unlock(&hx->lock);
    return len;
}

struct MHD_Response *stream_response(struct http_exchange *hx)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, hx, NULL);
}
