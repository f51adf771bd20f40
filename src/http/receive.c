/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intake: requests from the wire to the handler.
 *
 * A request that will be refused is still read (and dropped) up to a point, so that its sender, who is busy writing,
 * gets to see the answer instead of a broken connection. One that waits to be told to go on (Expect: 100-continue), or
 * that announces more than we would drop, is answered at once.
 */
#include "http/http_internal.h"
#include "http/inflate.h"

#include <strings.h>

enum {
    BODY_RESERVE_MAX = BUDGET_CHUNK,       /* taken in advance on the word of a Content-Length */
    DROPPED_BYTES_MAX = 1024 * 1024 * 512, /* of a refused body, before the connection is broken */
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

/* The absolute form that proxies use: the path begins after the authority (RFC 9112, section 3.2.2). */
static struct slice without_authority(struct slice uri)
{
    if (strncasecmp(uri.data, "http://", 7) != 0 && strncasecmp(uri.data, "https://", 8) != 0)
        return uri;
    struct slice rest = slice_from_offset(uri, slice_find_byte(uri, ':') + 3);
    struct slice path = slice_from_offset(rest, slice_find_byte(rest, '/'));
    return path.len > 0 ? path : SLICE_LIT("/");
}

void intake_begin(struct carrier *carrier, const char *uri)
{
    struct exchange *exchange = &carrier->exchange;
    carrier->target_at = uri;
    carrier->target = arena_copy(&exchange->arena, slice_from(uri));
    struct slice all = without_authority(carrier->target);
    size_t mark = slice_find_byte(all, '?');
    exchange->path = (struct slice){all.data, mark};
    exchange->query = mark < all.len ? slice_from_offset(all, mark + 1) : SLICE_NONE;
}

static const char *header(struct carrier *carrier, const char *name)
{
    return MHD_lookup_connection_value(carrier->mhd, MHD_HEADER_KIND, name);
}

/* Returns: where to say why the server itself answers. */
static struct problem *refusal(struct carrier *carrier)
{
    carrier->refusal = arena_zalloc(&carrier->exchange.arena, sizeof *carrier->refusal);
    return carrier->refusal;
}

static void refuse_too_large(struct carrier *carrier)
{
    problem_set(
        refusal(carrier), &carrier->exchange.arena, PROBLEM_CONTENT_TOO_LARGE,
        "the body of this request is larger than the limit of %zu bytes; send less at once, or raise --max-body",
        carrier->http->options.body_bytes_max);
}

static bool packed(struct carrier *carrier)
{
    const char *encoding = header(carrier, MHD_HTTP_HEADER_CONTENT_ENCODING);
    return encoding != NULL && strcasecmp(encoding, "identity") != 0;
}

static void check_encoding(struct carrier *carrier)
{
    const char *encoding = header(carrier, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0 ||
        strcasecmp(encoding, "deflate") == 0)
        return;
    problem_set(refusal(carrier), &carrier->exchange.arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Content-Encoding [%s] is not supported; send the body plain, or as gzip or deflate", encoding);
    carrier->refusal->status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
}

/* Bodies of less than a chunk are not asked for: what relieves a full server must get through. */
static void guard_body(struct carrier *carrier)
{
    budget_guard_init(&carrier->memory, carrier->http->options.budget, BUDGET_BODIES, BUDGET_TRANSIENT);
    carrier->body.guard = &carrier->memory;
}

static void refuse_memory(struct carrier *carrier)
{
    struct exchange *exchange = &carrier->exchange;
    struct slice what = arena_printf(&exchange->arena, "the body of %.*s %.*s", SLICE_ARG(exchange->method_name),
                                     (int)(exchange->path.len < 100 ? exchange->path.len : 100), exchange->path.data);
    budget_problem(&carrier->memory, what, &exchange->arena, refusal(carrier));
}

bool intake_head(struct carrier *carrier, const char *method)
{
    struct exchange *exchange = &carrier->exchange;
    exchange->method_name = arena_copy(&exchange->arena, slice_from(method));
    exchange->method = method_of(exchange->method_name);
    if (packed(carrier))
        check_encoding(carrier);
    guard_body(carrier);
    uint64_t length;
    const char *text = header(carrier, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (text == NULL || !slice_to_u64(slice_from(text), &length) || length == 0)
        return true;
    if (length > carrier->http->options.body_bytes_max) {
        refuse_too_large(carrier);
        return length <= DROPPED_BYTES_MAX && header(carrier, MHD_HTTP_HEADER_EXPECT) == NULL;
    }
    (void)buf_reserve(&carrier->body, length + 1 < BODY_RESERVE_MAX ? length + 1 : BODY_RESERVE_MAX);
    return true;
}

/* Small bodies have an eighth more, so that large ones do not keep them out (base/budget.h, invariant 2). */
static size_t bodies_max(const struct carrier *carrier)
{
    size_t max = carrier->http->options.bodies_bytes_max;
    return carrier->charged <= BUDGET_SMALL ? max + max / 8 : max;
}

/* Counts bytes against what all requests may hold together. */
static bool charge(struct carrier *carrier, size_t bytes)
{
    struct http *http = carrier->http;
    size_t before = atomic_fetch_add_explicit(&http->body_bytes, bytes, memory_order_relaxed);
    carrier->charged += bytes;
    if (before + bytes <= bodies_max(carrier))
        return true;
    problem_set(refusal(carrier), &carrier->exchange.arena, PROBLEM_LIMIT_EXCEEDED,
                "requests in flight already hold %zu bytes of the %zu that all together may hold; try again later",
                before, http->options.bodies_bytes_max);
    return false;
}

void intake_release(struct carrier *carrier)
{
    if (carrier->charged > 0)
        atomic_fetch_sub_explicit(&carrier->http->body_bytes, carrier->charged, memory_order_relaxed);
    carrier->charged = 0;
    budget_guard_end(&carrier->memory);
}

void intake_drop_body(struct carrier *carrier)
{
    buf_deinit(&carrier->body);
    intake_release(carrier);
}

bool intake_body(struct carrier *carrier, struct slice bytes)
{
    if (carrier->refusal == NULL) {
        if (carrier->body.len + bytes.len > carrier->http->options.body_bytes_max)
            refuse_too_large(carrier);
        else if (charge(carrier, bytes.len))
            buf_slice(&carrier->body, bytes);
        if (carrier->body.overflow && carrier->refusal == NULL)
            refuse_memory(carrier);
        if (carrier->refusal != NULL)
            intake_drop_body(carrier);
        return true;
    }
    carrier->dropped += bytes.len;
    return carrier->dropped <= DROPPED_BYTES_MAX;
}

static void unpack(struct carrier *carrier)
{
    struct buf plain = BUF_INIT(carrier->http->options.body_bytes_max + 1);
    plain.guard = &carrier->memory;
    switch (inflate_whole(buf_as_slice(&carrier->body), &plain)) {
    case 0:
        if (plain.len > carrier->http->options.body_bytes_max)
            refuse_too_large(carrier);
        else
            (void)charge(carrier, plain.len);
        break;
    case INFLATE_TOO_LARGE:
        if (carrier->memory.refused)
            refuse_memory(carrier);
        else
            refuse_too_large(carrier);
        break;
    default:
        problem_set(refusal(carrier), &carrier->exchange.arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the body is not in the format that Content-Encoding says, or is cut off");
        break;
    }
    buf_deinit(&carrier->body);
    carrier->body = plain;
    carrier->body.max = BUF_UNLIMITED;
}

void intake_refuse_stopping(struct carrier *carrier)
{
    problem_set(refusal(carrier), &carrier->exchange.arena, PROBLEM_STOPPING, "this server is shutting down");
}

void intake_end(struct carrier *carrier)
{
    if (carrier->refusal == NULL && carrier->body.len > 0 && packed(carrier))
        unpack(carrier);
    if (carrier->refusal == NULL && atomic_load_explicit(&carrier->http->refusing, memory_order_relaxed))
        intake_refuse_stopping(carrier);
    if (carrier->refusal == NULL && carrier->body.len > 0) {
        buf_byte(&carrier->body, '\0');
        if (carrier->body.overflow)
            refuse_memory(carrier);
    }
    if (carrier->refusal != NULL)
        return;
    if (carrier->body.len > 0) {
        carrier->exchange.body = (struct slice){carrier->body.data, carrier->body.len - 1};
    }
}
