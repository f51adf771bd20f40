/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies.
 */
#include "api/request/reply.h"

#include "api/request/problem_reply.h"
#include "api/request/readable.h"
#include "api/request/request_budget.h"
#include "api/request/yaml.h"
#include "base/check.h"
#include "json/filter.h"

void reply_begin(struct request *request, int status, struct json_writer *ret_writer)
{
    request->exchange->status = status;
    buf_clear(&request->exchange->response);
    json_writer_init(ret_writer, &request->exchange->response);
}

struct buf *reply_text(struct request *request, int status)
{
    request->exchange->status = status;
    request->exchange->content_type = "text/plain; charset=UTF-8";
    request->form.bare = true;
    buf_clear(&request->exchange->response);
    return &request->exchange->response;
}

void reply_header(struct request *request, const char *name, struct slice value)
{
    struct exchange *exchange = request->exchange;
    REQUIRE(exchange->header_count < RESPONSE_HEADERS_MAX);
    if (exchange->headers == NULL)
        exchange->headers = arena_alloc(&exchange->arena, RESPONSE_HEADERS_MAX * sizeof *exchange->headers);
    exchange->headers[exchange->header_count++] = (struct response_header){name, value};
}

int reply_empty(struct request *request, int status)
{
    request->exchange->status = status;
    buf_clear(&request->exchange->response);
    return REQUEST_DONE;
}

int reply_acknowledged(struct request *request)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, SLICE_LIT("{\"acknowledged\":true}"));
    return REQUEST_DONE;
}

void reply_shards(struct json_writer *writer, unsigned total, unsigned successful)
{
    json_key(writer, "_shards");
    json_begin(writer, '{');
    json_key(writer, "total");
    json_u64(writer, total);
    json_key(writer, "successful");
    json_u64(writer, successful);
    json_key(writer, "failed");
    json_u64(writer, 0);
    json_end(writer, '}');
}

/* --- The last touch ----------------------------------------------------------------------------------------------- */

/* Puts `text` in place of the response. */
static void replace_response(struct request *request, struct buf *text)
{
    struct buf *response = &request->exchange->response;
    buf_deinit(response);
    *response = *text;
}

/* A text to put there: it asks for memory as the response does. */
static struct buf new_text(struct request *request)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    text.guard = request->exchange->response.guard;
    return text;
}

static yyjson_val *parse_response(struct request *request)
{
    struct json_doc doc;
    struct slice text = buf_as_slice(&request->exchange->response);
    if (budget_guard_asks(&request->memory, text.len) &&
        !budget_guard_take(&request->memory, request_budget_of_json(text)))
        return NULL; /* refused, or over */
    struct budget_guard *guard = tl_steal(request->arena->guard); /* it has been asked */
    int r = json_parse_stored(request->arena, text, &doc);
    request->arena->guard = guard;
    return r == 0 ? doc.root : NULL;
}

static size_t split_patterns(struct slice list, struct slice *patterns, size_t max)
{
    size_t count = 0;
    while (list.len > 0 && count < max) {
        size_t len = slice_find_byte(list, ',');
        if (len > 0)
            patterns[count++] = slice_make(list.data, len);
        list = slice_from_offset(list, len + 1);
    }
    return count;
}

static void apply_filter_path(struct request *request)
{
    struct slice *patterns = arena_alloc(request->arena, JSON_FILTER_PATTERNS_MAX * sizeof *patterns);
    size_t count = split_patterns(request->form.filter_path, patterns, JSON_FILTER_PATTERNS_MAX);
    yyjson_val *root = count > 0 ? parse_response(request) : NULL;
    if (root == NULL)
        return;
    struct buf text = new_text(request);
    json_filter_path(&text, root, patterns, count, request->dialect);
    replace_response(request, &text);
}

static void apply_readable(struct request *request)
{
    yyjson_val *root = parse_response(request);
    if (root == NULL)
        return;
    struct buf text = new_text(request);
    readable_write(request, &text, root);
    replace_response(request, &text);
}

static void apply_layout(struct request *request)
{
    yyjson_val *root = parse_response(request);
    if (root == NULL)
        return;
    struct buf text = new_text(request);
    if (request->form.yaml) {
        yaml_write(&text, root, request->dialect);
    } else {
        json_write_pretty(&text, root, request->dialect);
        buf_byte(&text, '\n');
    }
    replace_response(request, &text);
}

static void apply_content_type(struct request *request)
{
    struct exchange *exchange = request->exchange;
    if (request->form.bare || exchange->content_type != NULL)
        return;
    if (request->form.yaml)
        exchange->content_type = "application/yaml";
    else if (request->form.compatible_8)
        exchange->content_type = "application/vnd.elasticsearch+json;compatible-with=8";
}

static void apply_form(struct request *request)
{
    if (request->form.bare || request->exchange->response.len == 0)
        return;
    if (readable_applies(request))
        apply_readable(request);
    if (request->form.filter_path.len > 0)
        apply_filter_path(request);
    if (request->form.pretty || request->form.yaml)
        apply_layout(request);
}

bool reply_takes_long(const struct request *request)
{
    const struct reply_form *form = &request->form;
    bool changed = form->filter_path.len > 0 || form->pretty || form->yaml || readable_applies(request);
    return changed && !form->bare && request->exchange->response.len > REQUEST_INLINE_BYTES;
}

void reply_finish(struct request *request)
{
    if (!request_budget_refused(request))
        apply_form(request);
    if (request_budget_refused(request)) { /* the problem replaces a response without room for it or its form */
        (void)request_budget_refuse(request);
        request_budget_committed(request);
        account_reset(&request->account);
        buf_deinit(&request->exchange->response);
        problem_reply(request, &request->problem);
        apply_form(request);
    }
    apply_content_type(request);
}
