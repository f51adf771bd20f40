/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _validate/query: whether a query would be run, index by index, and the query that it becomes there.
 *
 * An invalid query is no error here but the response: {"valid": false}. Nothing is searched; only
 * the mapping of an index is read.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/location.h"
#include "api/request/request_budget.h"
#include "api/search/search_service.h"

enum { INLINE_BYTES = 4096 }; /* of a query, for all indices together: longer ones run on a worker */

struct query_validation {
    struct search_call call;
    bool explain, rewrite, all_shards;
    size_t bytes; /* of the query */
};

/* What an index says. */
struct verdict {
    bool valid;
    struct slice text;
};

static bool is_explained(const struct query_validation *validation)
{
    return validation->explain || validation->rewrite || validation->all_shards;
}

/* Of a query that cannot even be parsed. */
static int reply_broken(struct request *request, const struct query_validation *validation)
{
    struct slice reason = arena_copy(request->arena, request->problem.reason);
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "valid");
    json_bool(&writer, false);
    if (validation->explain) {
        json_key(&writer, "error");
        json_string(&writer, reason);
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static void write_shards(struct json_writer *w, unsigned count)
{
    json_key(w, "_shards");
    json_begin(w, '{');
    json_key(w, "total");
    json_u64(w, count);
    json_key(w, "successful");
    json_u64(w, count);
    json_key(w, "failed");
    json_u64(w, 0);
    json_end(w, '}');
}

static void write_verdict(struct json_writer *w, const struct query_validation *validation,
                          const struct search_index *index, unsigned shard, const struct verdict *verdict)
{
    json_begin(w, '{');
    json_key(w, "index");
    json_string(w, index->name);
    if (validation->all_shards) {
        json_key(w, "shard");
        json_u64(w, shard);
    }
    json_key(w, "valid");
    json_bool(w, verdict->valid);
    json_key(w, verdict->valid ? "explanation" : "error");
    json_string(w, verdict->text);
    json_end(w, '}');
}

static int reply_verdicts(struct request *request, const struct query_validation *validation,
                          const struct verdict *verdicts, bool valid)
{
    const struct search_context *context = &validation->call.context;
    struct json_writer w;
    reply_begin(request, 200, &w);
    json_begin(&w, '{');
    write_shards(&w, validation->all_shards ? validation->call.shard_count : (unsigned)context->index_count);
    json_key(&w, "valid");
    json_bool(&w, valid);
    if (is_explained(validation) && context->index_count > 0) {
        json_key(&w, "explanations");
        json_begin(&w, '[');
        for (size_t i = 0; i < context->index_count; i++) {
            unsigned shards = validation->all_shards ? context->indices[i].shard_count : 1;
            for (unsigned shard = 0; shard < shards && !request_budget_refused(request); shard++)
                write_verdict(&w, validation, &context->indices[i], shard, &verdicts[i]);
        }
        json_end(&w, ']');
    }
    json_end(&w, '}');
    return REQUEST_DONE;
}

static int ask_index(struct request *request, const struct query_validation *validation,
                     const struct search_index *index, struct verdict *ret_verdict)
{
    const struct search_context *context = &validation->call.context;
    const struct query *query = query_filtered(request->arena, validation->call.search.query, index->filter);
    struct problem problem = {0};
    int r =
        search_explain(index, query, context->dialect, context->now_ms, request->arena, &ret_verdict->text, &problem);
    ret_verdict->valid = r == 0;
    if (r == SEARCH_REFUSED)
        ret_verdict->text =
            arena_printf(request->arena, "[%.*s] %.*s", SLICE_ARG(index->name), SLICE_ARG(problem.reason));
    return r == SEARCH_REFUSED ? 0 : r;
}

static int ask_all(struct request *request)
{
    struct query_validation *validation = request->context;
    const struct search_context *context = &validation->call.context;
    struct verdict *verdicts = arena_zalloc(request->arena, (context->index_count + 1) * sizeof *verdicts);
    bool valid = true;
    for (size_t i = 0; i < context->index_count; i++) {
        if (request_budget_stops(request, validation->bytes + 1))
            return request_budget_refuse(request);
        int r = ask_index(request, validation, &context->indices[i], &verdicts[i]);
        if (r != 0)
            return search_outcome(request, &validation->call, r);
        valid = valid && verdicts[i].valid;
    }
    if (request_budget_refused(request))
        return request_budget_refuse(request);
    return reply_verdicts(request, validation, verdicts, valid);
}

static int validate_when_ready(struct request *request)
{
    struct query_validation *validation = request->context;
    validation->call.view = request->view;
    validation->call.catalog = request->catalog;
    int r = search_call_open(&validation->call, &request->problem);
    if (r != 0)
        return search_outcome(request, &validation->call, r);
    bool is_short = (validation->bytes + 1) * (validation->call.context.index_count + 1) <= INLINE_BYTES;
    return is_short ? ask_all(request) : request_work(request, ask_all);
}

static bool is_blank_object(struct slice body)
{
    struct slice value = location_first_value(body);
    while (value.len > 0 && location_is_blank(slice_make(value.data, 1)))
        value = slice_from_offset(value, 1);
    return value.len >= 2 && value.data[0] == '{' && location_is_blank(slice_make(value.data + 1, value.len - 2));
}

int handle_validate_query(struct request *request)
{
    struct query_validation *validation = arena_zalloc(request->arena, sizeof *validation);
    struct slice body = request_body(request);
    struct catalog_options some = {.expand_open = true}; /* no index at all is an error, as there */
    struct lock_target *targets;
    size_t count;
    int r;
    request->context = validation;
    validation->bytes = body.len + request_param(request, "q").len;
    if ((r = request_bool(request, "explain", &validation->explain)) != 0 ||
        (r = request_bool(request, "rewrite", &validation->rewrite)) != 0 ||
        (r = request_bool(request, "all_shards", &validation->all_shards)) != 0 ||
        (r = search_call_init(request, request->arena, &validation->call)) != 0 ||
        (r = index_options_read(request, &some, &validation->call.options)) != 0 ||
        (r = search_call_lucene_or_body(request, &validation->call, body)) != 0 || (r = request_accept(request)) != 0)
        return r;
    if (is_blank_object(body))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: query cannot be null;");
    r = search_call_body(request, &validation->call, body, true);
    if (r != 0 && request->problem.type != PROBLEM_LIMIT_EXCEEDED && !request_budget_refused(request))
        return reply_broken(request, validation);
    if (r != 0)
        return r;
    search_call_targets(request, &validation->call, &targets, &count);
    return request_read(request, targets, count, validate_when_ready);
}
