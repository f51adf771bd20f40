/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: from an exchange to libmicrohttpd, and those that the server gives by itself. */
#include "base/check.h"
#include "http/http_internal.h"

#include <stdio.h>

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    /* Fails only for values with line breaks, which must not get out. */
    (void)MHD_add_response_header(response, name, value);
}

static void add_headers(struct carrier *carrier, struct MHD_Response *response)
{
    struct exchange *exchange = &carrier->exchange;
    char digits[24];
    add_header(response, "content-type",
               exchange->content_type != NULL ? exchange->content_type : "application/json; charset=UTF-8");
    add_header(response, "X-Elastic-Product",
               "Elasticsearch"); /* without it libraries of 7.14 and later refuse the server */
    struct slice opaque = exchange_header(exchange, "X-Opaque-Id");
    if (opaque.len > 0)
        add_header(response, "X-Opaque-Id", opaque.data);
    if (exchange->timestamp != TL_TS_NONE) {
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)exchange->timestamp);
        add_header(response, "Tidelock-Timestamp", digits);
    }
    for (size_t i = 0; i < exchange->header_count; i++)
        add_header(response, exchange->headers[i].name, exchange->headers[i].value.data);
    if (carrier->last || atomic_load_explicit(&carrier->http->refusing, memory_order_relaxed))
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* The body stays in the carrier, which outlives the response. */
static struct MHD_Response *whole_response(struct carrier *carrier)
{
    struct buf *body = &carrier->exchange.response;
    INSIST(!body->overflow);
    static char nothing[1];
    return MHD_create_response_from_buffer(body->len, body->data != NULL ? body->data : nothing,
                                           MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result response_queue(struct carrier *carrier)
{
    bool streams = atomic_load(&carrier->state) == CARRIER_STREAMING;
    struct MHD_Response *response = streams ? stream_response(carrier) : whole_response(carrier);
    if (response == NULL)
        return MHD_NO;
    add_headers(carrier, response);
    if (streams)
        connection_enter(carrier->connection, PHASE_STREAMING, 0);
    else
        connection_enter(carrier->connection, PHASE_SENDING, carrier->exchange.response.len);
    REQUIRE(carrier->exchange.status >= 100 && carrier->exchange.status < 1000);
    enum MHD_Result queued = MHD_queue_response(carrier->mhd, (unsigned)carrier->exchange.status, response);
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

/* Elasticsearch's envelope, for the few errors that no handler is asked about. */
void response_refuse(struct carrier *carrier)
{
    struct exchange *exchange = &carrier->exchange;
    const struct problem *problem = carrier->refusal;
    const struct http_handler *handler = &carrier->http->handler;
    exchange->status = problem_status(problem);
    bool stopping = atomic_load(&carrier->http->refusing); /* the handler may be going already */
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
    (void)atomic_fetch_add_explicit(&carrier->http->refused, 1, memory_order_relaxed);
    atomic_store(&carrier->state, CARRIER_RESPONDED);
}
