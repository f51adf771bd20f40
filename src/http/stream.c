/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: responses that stay open. The handler appends from any thread; the polling thread takes what there is and
 * leaves the connection suspended while there is nothing.
 *
 * A client that does not read makes the buffer grow up to `stream_bytes_max`, or as long as there is memory (base/budget.h); then
 * the stream counts as broken.
 */
#include "base/check.h"
#include "http/http_internal.h"

enum { BLOCK_BYTES = 16 * 1024 }; /* the most that goes into one chunk */

static struct carrier *carrier_of(struct exchange *exchange)
{
    return container_of(exchange, struct carrier, exchange);
}

/* Returns: how many bytes are written and not yet sent. */
static size_t left(const struct carrier *carrier)
{
    return carrier->exchange.response.len - carrier->stream_sent;
}

/* Returns: true when the caller has to resume the connection, after it let go of the lock. */
static bool take_suspension(struct carrier *carrier)
{
    bool suspended = carrier->stream_suspended && !carrier->connection_done;
    carrier->stream_suspended = false;
    return suspended;
}

/* What has been sent goes, where that is more than what is left: a client that is always a little behind holds no more. */
static void forget_sent(struct carrier *carrier)
{
    struct buf *response = &carrier->exchange.response;
    if (carrier->stream_sent < BLOCK_BYTES || carrier->stream_sent < left(carrier) || response->overflow)
        return;
    buf_remove(response, 0, carrier->stream_sent);
    carrier->stream_sent = 0;
}

/* Whether the client has fallen too far behind. What is little is written however full the server is. */
static bool fell_behind(const struct carrier *carrier, size_t more)
{
    const struct http_options *options = &carrier->http->options;
    size_t behind = left(carrier) + more;
    return behind > options->stream_bytes_max ||
           (behind > BUDGET_CHUNK && !budget_fits(options->budget, BUDGET_RETAINED, more));
}

void stream_write(struct exchange *exchange, struct slice bytes)
{
    struct carrier *carrier = carrier_of(exchange);
    pthread_mutex_lock(&carrier->lock);
    REQUIRE(!carrier->stream_closed);
    bool full = fell_behind(carrier, bytes.len);
    carrier->stream_broken = carrier->stream_broken || full;
    if (!carrier->connection_done && !carrier->stream_broken) {
        forget_sent(carrier);
        buf_slice(&carrier->exchange.response, bytes);
        budget_tally(BUDGET_STREAMS, (ptrdiff_t)bytes.len);
    }
    bool resume = take_suspension(carrier);
    pthread_mutex_unlock(&carrier->lock);
    if (resume)
        MHD_resume_connection(carrier->mhd);
    if (full)
        carrier_disconnected(carrier);
}

size_t stream_behind(struct exchange *exchange)
{
    struct carrier *carrier = carrier_of(exchange);
    pthread_mutex_lock(&carrier->lock);
    size_t behind = left(carrier);
    pthread_mutex_unlock(&carrier->lock);
    return behind;
}

void stream_close(struct exchange *exchange)
{
    struct carrier *carrier = carrier_of(exchange);
    struct MHD_Connection *mhd = carrier->mhd;
    pthread_mutex_lock(&carrier->lock);
    REQUIRE(!carrier->stream_closed);
    carrier->stream_closed = carrier->handler_done = carrier->disconnect_told = true;
    bool resume = take_suspension(carrier);
    bool last = carrier->connection_done;
    atomic_fetch_sub_explicit(&carrier->http->streams, 1, memory_order_relaxed);
    pthread_mutex_unlock(&carrier->lock);
    if (resume)
        MHD_resume_connection(mhd);
    else if (last)
        carrier_give_back(carrier);
}

bool stream_connection_done(struct carrier *carrier)
{
    carrier_disconnected(carrier); /* before `connection_done`: stream_close() inside must not be the last */
    pthread_mutex_lock(&carrier->lock);
    carrier->connection_done = true;
    bool last = carrier->handler_done;
    pthread_mutex_unlock(&carrier->lock);
    return last;
}

/* MHD_ContentReaderCallback: hands out what was written, or suspends until there is more. */
static ssize_t stream_read(void *context, uint64_t position, char *to, size_t max)
{
    (void)position;
    struct carrier *carrier = context;
    ssize_t len;
    pthread_mutex_lock(&carrier->lock);
    size_t ready = left(carrier);
    if (ready > 0) {
        size_t taken = ready < max ? ready : max;
        memcpy(to, carrier->exchange.response.data + carrier->stream_sent, taken);
        carrier->stream_sent += taken;
        budget_tally(BUDGET_STREAMS, -(ptrdiff_t)taken);
        if (carrier->stream_sent == carrier->exchange.response.len) {
            buf_clear(&carrier->exchange.response);
            carrier->stream_sent = 0;
        }
        len = (ssize_t)taken;
    } else if (carrier->stream_closed) {
        len = carrier->stream_broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        MHD_suspend_connection(carrier->mhd);
        carrier->stream_suspended = true;
        len = 0;
    }
    pthread_mutex_unlock(&carrier->lock);
    return len;
}

struct MHD_Response *stream_response(struct carrier *carrier)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, carrier, NULL);
}
