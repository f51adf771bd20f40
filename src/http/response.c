/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: from an exchange to libmicrohttpd, and refusals by the server itself. */
#include "base/check.h"
#include "http/http_internal.h"

#include <stdio.h>

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    /* Fails only for values with line breaks, which must not be sent. */
    (void)MHD_add_response_header(response, name, value);
}

static void add_headers(struct http_exchange *hx, struct MHD_Response *response)
{
    struct exchange *exchange = &hx->exchange;
    char digits[24];
    add_header(response, "content-type",
               exchange->content_type != NULL ? exchange->content_type : "application/json; charset=UTF-8");
    add_header(response, "X-Elastic-Product", "Elasticsearch"); /* client libraries since 7.14 require it */
    struct slice opaque = exchange_header(exchange, "X-Opaque-Id");
    if (opaque.len > 0)
        add_header(response, "X-Opaque-Id", opaque.data);
    if (exchange->timestamp != TL_TS_NONE) {
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)exchange->timestamp);
        add_header(response, "Tidelock-Timestamp", digits);
    }
    for (size_t i = 0; i < exchange->header_count; i++)
        add_header(response, exchange->headers[i].name, exchange->headers[i].value.data);
    if (hx->close_after || atomic_load_explicit(&hx->http->refusing, memory_order_relaxed))
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* The body stays in the exchange, which outlives the response. */
static struct MHD_Response *whole_response(struct http_exchange *hx)
{
    struct buf *body = &hx->exchange.response;
    INSIST(!body->overflow);
    static char nothing[1];
    return MHD_create_response_from_buffer(body->len, body->data != NULL ? body->data : nothing,
                                           MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result response_queue(struct http_exchange *hx)
{
    bool streams = atomic_load(&hx->state) == HTTP_EXCHANGE_STREAMING;
    struct MHD_Response *response = streams ? stream_response(hx) : whole_response(hx);
    if (response == NULL)
        return MHD_NO;
    add_headers(hx, response);
    if (streams)
        connection_enter(hx->connection, PHASE_STREAMING, 0);
    else
        connection_enter(hx->connection, PHASE_SENDING, hx->exchange.response.len);
    REQUIRE(hx->exchange.status >= 100 && hx->exchange.status < 1000);
    enum MHD_Result queued = MHD_queue_response(hx->mhd, (unsigned)hx->exchange.status, response);
    MHD_destroy_response(response); /* libmicrohttpd holds its own reference */
    return queued;
}

static void append_cause(struct buf *to, const struct problem *problem)
{
    buf_lit(to, "\"type\":");
    buf_json_string(to, slice_from(problem_name(problem->type)));
    buf_lit(to, ",\"reason\":");
    buf_json_string(to, problem->reason);
    if (problem->details.len > 0) {
        buf_byte(to, ',');
        buf_slice(to, problem->details);
    }
}

/*
 * Writes the refusal in Elasticsearch's error envelope, as src/api does for errors of the handler.
 */
void response_refuse(struct http_exchange *hx)
{
    struct exchange *exchange = &hx->exchange;
    const struct problem *problem = hx->refusal;
    const struct http_handler *handler = &hx->http->handler;
    exchange->status = problem_status(problem);
    bool stopping = atomic_load(&hx->http->refusing); /* the handler's context may have been freed */
    if (handler->timestamp != NULL && !stopping)
        exchange->timestamp = handler->timestamp(handler->context);
    struct buf *to = &exchange->response;
    buf_clear(to);
    buf_lit(to, "{\"error\":{\"root_cause\":[{");
    append_cause(to, problem);
    buf_lit(to, "}],");
    append_cause(to, problem);
    buf_lit(to, "},\"status\":");
    buf_i64(to, exchange->status);
    buf_lit(to, "}");
    (void)atomic_fetch_add_explicit(&hx->http->refused, 1, memory_order_relaxed);
    atomic_store(&hx->state, HTTP_EXCHANGE_RESPONDED);
}
