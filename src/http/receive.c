/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives requests: from the socket to the handler.
 *
 * The body of a refused request is still read and discarded, up to DROPPED_BYTES_MAX: a client that
 * is sending then reads the response instead of finding a broken connection. The refusal is sent
 * immediately if the client waits for permission to send (Expect: 100-continue), or announces a
 * longer body.
 */
#include "http/http_internal.h"
#include "http/inflate.h"

#include <strings.h>

enum {
    BODY_RESERVE_MAX = BUDGET_CHUNK,       /* allocated in advance for an announced Content-Length */
    DROPPED_BYTES_MAX = 1024 * 1024 * 512, /* of a refused body; beyond it the connection is closed */
};

static enum http_method method_of(struct slice name)
{
    static const char *const names[HTTP_OTHER] = {
        [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
    };
    for (int i = 0; i < HTTP_OTHER; i++)
        if (slice_is(name, names[i]))
            return (enum http_method)i;
    return HTTP_OTHER;
}

/*
 * Removes the authority of a target in absolute form, as proxies send it (RFC 9112, section 3.2.2).
 */
static struct slice without_authority(struct slice uri)
{
    if (strncasecmp(uri.data, "http://", 7) != 0 && strncasecmp(uri.data, "https://", 8) != 0)
        return uri;
    struct slice rest = slice_from_offset(uri, slice_find_byte(uri, ':') + 3);
    struct slice path = slice_from_offset(rest, slice_find_byte(rest, '/'));
    return path.len > 0 ? path : SLICE_LIT("/");
}

void receive_begin(struct http_exchange *hx, const char *uri)
{
    struct exchange *exchange = &hx->exchange;
    hx->target_at = uri;
    hx->target = arena_copy(&exchange->arena, slice_from(uri));
    struct slice all = without_authority(hx->target);
    size_t mark = slice_find_byte(all, '?');
    exchange->path = (struct slice){all.data, mark};
    exchange->query = mark < all.len ? slice_from_offset(all, mark + 1) : SLICE_NONE;
}

static const char *header_value(struct http_exchange *hx, const char *name)
{
    return MHD_lookup_connection_value(hx->mhd, MHD_HEADER_KIND, name);
}

static void refuse_too_large(struct http_exchange *hx)
{
    problem_set(
        http_exchange_refuse(hx), &hx->exchange.arena, PROBLEM_CONTENT_TOO_LARGE,
        "the body of this request is larger than the limit of %zu bytes; send less at once, or raise --max-body",
        hx->http->options.body_bytes_max);
}

static bool is_compressed(struct http_exchange *hx)
{
    const char *encoding = header_value(hx, MHD_HTTP_HEADER_CONTENT_ENCODING);
    return encoding != NULL && strcasecmp(encoding, "identity") != 0;
}

static void check_encoding(struct http_exchange *hx)
{
    const char *encoding = header_value(hx, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0 ||
        strcasecmp(encoding, "deflate") == 0)
        return;
    problem_set(http_exchange_refuse(hx), &hx->exchange.arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Content-Encoding [%s] is not supported; send the body plain, or as gzip or deflate", encoding);
    hx->refusal->status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
}

static void refuse_memory(struct http_exchange *hx)
{
    struct exchange *exchange = &hx->exchange;
    struct slice what = arena_printf(&exchange->arena, "the body of %.*s %.*s", SLICE_ARG(exchange->method_name),
                                     (int)(exchange->path.len < 100 ? exchange->path.len : 100), exchange->path.data);
    budget_problem(&hx->memory, what, &exchange->arena, http_exchange_refuse(hx));
}

bool receive_header(struct http_exchange *hx, const char *method)
{
    struct exchange *exchange = &hx->exchange;
    exchange->method_name = arena_copy(&exchange->arena, slice_from(method));
    exchange->method = method_of(exchange->method_name);
    if (is_compressed(hx))
        check_encoding(hx);
    /* The budget exempts buffers below a chunk, so that unlocks pass a full server. */
    budget_guard_init(&hx->memory, hx->http->options.budget, BUDGET_BODIES, BUDGET_TRANSIENT);
    hx->body.guard = &hx->memory;
    uint64_t length;
    const char *text = header_value(hx, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (text == NULL || !slice_to_u64(slice_from(text), &length) || length == 0)
        return true;
    if (length > hx->http->options.body_bytes_max) {
        refuse_too_large(hx);
        return length <= DROPPED_BYTES_MAX && header_value(hx, MHD_HTTP_HEADER_EXPECT) == NULL;
    }
    (void)buf_reserve(&hx->body, length + 1 < BODY_RESERVE_MAX ? length + 1 : BODY_RESERVE_MAX);
    return true;
}

/* Small bodies have a limit one eighth higher, so that large ones do not starve them. */
static size_t bodies_max(const struct http_exchange *hx)
{
    size_t max = hx->http->options.bodies_bytes_max;
    return hx->charged <= BUDGET_SMALL ? max + max / 8 : max;
}

/* Counts bytes of a body against bodies_bytes_max. Returns: false when refused. */
static bool charge_body(struct http_exchange *hx, size_t bytes)
{
    struct http *http = hx->http;
    size_t before = atomic_fetch_add_explicit(&http->body_bytes, bytes, memory_order_relaxed);
    hx->charged += bytes;
    if (before + bytes <= bodies_max(hx))
        return true;
    problem_set(http_exchange_refuse(hx), &hx->exchange.arena, PROBLEM_LIMIT_EXCEEDED,
                "requests in flight already hold %zu bytes of the %zu that all together may hold; try again later",
                before, http->options.bodies_bytes_max);
    return false;
}

void receive_uncharge(struct http_exchange *hx)
{
    if (hx->charged > 0)
        atomic_fetch_sub_explicit(&hx->http->body_bytes, hx->charged, memory_order_relaxed);
    hx->charged = 0;
    budget_guard_end(&hx->memory);
}

void receive_drop_body(struct http_exchange *hx)
{
    buf_deinit(&hx->body);
    receive_uncharge(hx);
}

bool receive_body(struct http_exchange *hx, struct slice bytes)
{
    if (hx->refusal == NULL) {
        if (hx->body.len + bytes.len > hx->http->options.body_bytes_max)
            refuse_too_large(hx);
        else if (charge_body(hx, bytes.len))
            buf_slice(&hx->body, bytes);
        if (hx->body.overflow && hx->refusal == NULL)
            refuse_memory(hx);
        if (hx->refusal != NULL)
            receive_drop_body(hx);
        return true;
    }
    hx->dropped += bytes.len;
    return hx->dropped <= DROPPED_BYTES_MAX;
}

static void decompress_body(struct http_exchange *hx)
{
    struct buf plain = BUF_INIT(hx->http->options.body_bytes_max + 1);
    plain.guard = &hx->memory;
    switch (inflate_whole(buf_as_slice(&hx->body), &plain)) {
    case 0:
        if (plain.len > hx->http->options.body_bytes_max)
            refuse_too_large(hx);
        else
            (void)charge_body(hx, plain.len);
        break;
    case INFLATE_TOO_LARGE:
        if (hx->memory.refused)
            refuse_memory(hx);
        else
            refuse_too_large(hx);
        break;
    default:
        problem_set(http_exchange_refuse(hx), &hx->exchange.arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the body is not in the format that Content-Encoding says, or is cut off");
        break;
    }
    buf_deinit(&hx->body);
    hx->body = plain;
    hx->body.max = BUF_UNLIMITED;
}

void receive_refuse_stopping(struct http_exchange *hx)
{
    problem_set(http_exchange_refuse(hx), &hx->exchange.arena, PROBLEM_STOPPING, "this server is shutting down");
}

void receive_end(struct http_exchange *hx)
{
    if (hx->refusal == NULL && hx->body.len > 0 && is_compressed(hx))
        decompress_body(hx);
    if (hx->refusal == NULL && atomic_load_explicit(&hx->http->refusing, memory_order_relaxed))
        receive_refuse_stopping(hx);
    if (hx->refusal == NULL && hx->body.len > 0) {
        buf_byte(&hx->body, '\0');
        if (hx->body.overflow)
            refuse_memory(hx);
    }
    if (hx->refusal != NULL)
        return;
    if (hx->body.len > 0) {
        hx->exchange.body = (struct slice){hx->body.data, hx->body.len - 1};
    }
}
