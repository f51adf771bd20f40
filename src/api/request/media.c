/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Media types.
 */
#include "api/request/media.h"

#include <strings.h>

#include "api/request/problem_reply.h"
#include "api/request/reply.h"

/* "type/subtype" of a header, without its parameters. */
static struct slice media_type(struct slice header)
{
    size_t len = slice_find_byte(header, ';');
    while (len > 0 && header.data[len - 1] == ' ')
        len--;
    return slice_make(header.data, len);
}

/* Returns: the version of "application/vnd.elasticsearch+json; compatible-with=8", 0 for any other type. */
static int compatible_version(struct slice header)
{
    static const char name[] = "compatible-with=";
    struct slice type = media_type(header);
    if (!slice_is_ignoring_case(type, "application/vnd.elasticsearch+json") &&
        !slice_is_ignoring_case(type, "application/vnd.elasticsearch+x-ndjson"))
        return 0;
    for (size_t i = type.len; i + sizeof name <= header.len; i++)
        if (strncasecmp(header.data + i, name, sizeof name - 1) == 0) {
            char digit = header.data[i + sizeof name - 1];
            return digit >= '7' && digit <= '9' ? digit - '0' : -1;
        }
    return 8;
}

void media_accept(struct request *request)
{
    struct slice accept = exchange_header(request->exchange, "Accept");
    struct slice content = exchange_header(request->exchange, "Content-Type");
    struct slice wanted = media_type(accept);
    bool any =
        accept.len == 0 || slice_is_ignoring_case(wanted, "*/*"); /* then the answer is of the kind that the body is */
    if (compatible_version(accept) >= 8 || (any && compatible_version(content) >= 8))
        request->form.compatible_8 = true;
    if (any)
        wanted = media_type(content);
    request->form.yaml = slice_is_ignoring_case(wanted, "application/yaml");
}

/* A media type is "a/b" with both sides of letters, digits and a few signs. */
static bool well_formed(struct slice header)
{
    struct slice type = media_type(header);
    size_t slash = slice_find_byte(type, '/');
    if (slash == 0 || slash + 1 >= type.len)
        return false;
    for (size_t i = 0; i < type.len; i++) {
        unsigned char c = (unsigned char)type.data[i];
        bool token =
            (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || strchr("!#$%&'*+.^_`|~-", c) != NULL;
        if (i != slash && (!token || c == '\0'))
            return false;
    }
    return true;
}

static int refuse_malformed(struct request *request, struct slice header)
{
    struct problem *cause = arena_zalloc(request->arena, sizeof *cause);
    problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "invalid Content-Type header [%.*s]",
                SLICE_ARG(header));
    problem_set(&request->problem, request->arena, PROBLEM_CONTENT_TYPE_HEADER,
                "java.lang.IllegalArgumentException: %.*s", SLICE_ARG(cause->reason));
    request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

static bool media_is_taken(struct slice header)
{
    struct slice type = media_type(header);
    return slice_is_ignoring_case(type, "application/json") || slice_is_ignoring_case(type, "application/x-ndjson") ||
           slice_is_ignoring_case(type, "application/yaml") || compatible_version(header) >= 7;
}

/* What a page may have a browser send anywhere without asking first is what a form can be sent as (or nothing). */
static bool is_left_out(struct slice header)
{
    return header.data == NULL || slice_is_ignoring_case(media_type(header), "application/x-www-form-urlencoded");
}

/*
 * 5.6 took whatever a body was said to be and looked at the bytes. So it does for programs on this
 * host: curl's own type and none at all, for there clients were written that way; other types where
 * a page cannot send them unasked, which POST can.
 */
static bool is_taken_as_before(const struct request *request, struct slice header)
{
    const struct exchange *exchange = request->exchange;
    bool typed = request->route->form == FORM_TYPED;
    struct slice type = media_type(header);
    if (!exchange->local || (!typed && request->route->form != FORM_NATIVE && request->dialect != DIALECT_5))
        return false;
    if (is_left_out(header))
        return true;
    return typed && exchange->method != HTTP_POST && !slice_is_ignoring_case(type, "application/smile") &&
           !slice_is_ignoring_case(type, "application/cbor");
}

int media_check(struct request *request)
{
    struct exchange *exchange = request->exchange;
    struct slice header = exchange_header(exchange, "Content-Type");
    bool own = request->route->form == FORM_TYPED || request->route->form == FORM_NATIVE;
    if (!own && header.data != NULL && !well_formed(header))
        return refuse_malformed(request, header);
    if (exchange->body.len == 0 || (header.data != NULL && media_is_taken(header)) ||
        is_taken_as_before(request, header))
        return 0;
    struct slice text = arena_printf(request->arena, "Content-Type header [%.*s] is not supported", SLICE_ARG(header));
    problem_reply_text(request, request->form.compatible_8 ? 415 : 406, text, true);
    return REQUEST_ANSWERED;
}
