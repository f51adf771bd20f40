/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _msearch: several searches in one request, all at one timestamp, one after another. Lines of a header and a
 * body each.
 */
#include "api/request/api_internal.h"
#include "api/request/dialect.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/name_list.h"
#include "api/request/problem_reply.h"
#include "api/request/request_budget.h"
#include "api/search/search_service.h"
#include "api/search/task.h"
#include "api/search/slow.h"
#include "json/each.h"
#include "query/node.h"

#define MSEARCH_ITEMS_MAX 10000

struct msearch_item {
    struct search_call call;
    struct slice body;        /* the request's */
    struct problem objection; /* to the combination of its options: its reply; PROBLEM_NONE: none */
};

struct msearch {
    struct search_call defaults;
    struct msearch_item **items;
    size_t count, capacity;
    struct dialect_names names; /* while the searches are parsed */
    struct task_work work;
};

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool next_line(struct slice *body, struct slice *ret_line)
{
    if (body->len == 0)
        return false;
    size_t len = slice_find_byte(*body, '\n');
    *ret_line = slice_make(body->data, len);
    *body = slice_from_offset(*body, len + 1);
    if (ret_line->len > 0 && ret_line->data[ret_line->len - 1] == '\r')
        ret_line->len--;
    return true;
}

/* An expression that is no date is the objection to its search alone. */
static int read_index(struct request *request, yyjson_val *value, struct search_call *call,
                      struct problem *ret_objection)
{
    size_t i, count;
    yyjson_val *item;
    if (yyjson_is_obj(value))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[index] must be a text or a list of texts");
    call->index = yyjson_is_num(value) ? query__scalar_text(request->arena, value) : json_slice(value);
    json_arr_foreach (value, i, count, item) { /* a number is a name, too */
        struct slice name = query__scalar_text(request->arena, item);
        call->index = arena_append(request->arena, call->index, "%s%.*s", i == 0 ? "" : ",", SLICE_ARG(name));
    }
    int r = request_resolve_names(request, request->arena, &call->index);
    if (r != REQUEST_REFUSED || request_budget_refused(request))
        return r;
    *ret_objection = request->problem;
    request->problem = (struct problem){.type = PROBLEM_NONE};
    return 0;
}

/* `ret_objection`: PROBLEM_NONE unless the header names an index wrongly. */
/* A flag of a header; null leaves it as it is. `shown`: its name in the refusal; NULL: only the cause. */
static int read_flag(struct request *request, yyjson_val *value, const char *shown, bool *ret_flag)
{
    struct slice text = query__scalar_text(request->arena, value);
    bool is_true = slice_is(text, "true");
    if (request->dialect != DIALECT_7 || is_true || slice_is(text, "false")) {
        *ret_flag = is_true;
        return 0;
    }
    if (yyjson_is_null(value))
        return 0;
    struct problem *cause = arena_zalloc(request->arena, sizeof *cause);
    problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    if (shown == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(cause->reason));
    request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Could not convert [%s] to boolean", shown);
    request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

/* Members without effect, read so that invalid ones are refused. Returns: 0; REQUEST_REFUSED. */
static int read_idle(struct request *request, struct slice name, yyjson_val *value)
{
    bool flag = false;
    if (slice_is(name, "request_cache") || slice_is(name, "requestCache"))
        return read_flag(request, value, "request_cache", &flag);
    if (slice_is(name, "ccs_minimize_roundtrips"))
        return read_flag(request, value, NULL, &flag);
    if (slice_is(name, "ignore_throttled"))
        return read_flag(request, value, "ignore_throttled", &flag);
    if (slice_is(name, "preference") || request->dialect != DIALECT_7 || yyjson_is_null(value))
        return 0;
    struct slice type = query__scalar_text(request->arena, value);
    if (slice_is(type, "query_then_fetch") || slice_is(type, "dfs_query_then_fetch"))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No search type for [%.*s]", SLICE_ARG(type));
}

static int read_header(struct request *request, struct slice line, struct search_call *call,
                       struct problem *ret_objection)
{
    struct json_doc doc;
    size_t index, count;
    yyjson_val *key, *value;
    *ret_objection = (struct problem){.type = PROBLEM_NONE};
    if (line.len == 0)
        return 0;
    int r = json_parse(request->arena, line, request->dialect, 0, &doc, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : tl_trace(r);
    json_obj_foreach (doc.root, index, count, key, value) {
        struct slice name = json_slice(key);
        if (slice_is(name, "index") || slice_is(name, "indices")) {
            r = read_index(request, value, call, ret_objection);
        } else if (slice_is(name, "type") || slice_is(name, "types"))
            call->types = name_list_of_json(request->arena, value);
        else if (slice_is(name, "routing"))
            call->routing = name_list_of_json(request->arena, value);
        else if (slice_is(name, "ignore_unavailable") || slice_is(name, "ignoreUnavailable"))
            r = read_flag(request, value, "ignore_unavailable", &call->options.ignore_unavailable);
        else if (slice_is(name, "allow_no_indices") || slice_is(name, "allowNoIndices"))
            r = read_flag(request, value, "allow_no_indices", &call->options.allow_no_indices);
        else if (slice_is(name, "expand_wildcards") || slice_is(name, "expandWildcards"))
            r = index_options_expand(request, name_list_of_json(request->arena, value), &call->options);
        else if (slice_is(name, "allow_partial_search_results")) {
            bool partial = !call->whole;
            r = read_flag(request, value, "null", &partial); /* the name that 7.10 has there */
            call->whole = !partial;
        } else if (slice_is(name, "search_type") || slice_is(name, "searchType") || slice_is(name, "preference") ||
                   slice_is(name, "request_cache") || slice_is(name, "requestCache") ||
                   slice_is(name, "ccs_minimize_roundtrips") || slice_is(name, "ignore_throttled"))
            r = read_idle(request, name, value);
        else
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "key [%.*s] is not supported in the metadata section", SLICE_ARG(name));
        if (r != 0)
            return r;
    }
    return 0;
}

/*
 * A search has the dialect that it would have as a request of its own, independent of the other searches. Each may
 * compare as many names as such a request; with more, finding its indices refuses it, too.
 */
static int settle_dialect(struct request *request, struct msearch *all, struct search_call *call)
{
    const struct search_call *last = all->count == 0 ? &all->defaults : &all->items[all->count - 1]->call;
    call->dialect = last->dialect;
    if (request->form.compatible_8 || (slice_equal(call->index, last->index) && slice_equal(call->types, last->types)))
        return 0;
    all->names.looks_left = CATALOG_LOOKS_MAX;
    if (dialect_of_named(request, &all->names, call->index, call->types, &call->dialect) != 0)
        request->problem = (struct problem){.type = PROBLEM_NONE};
    return request_budget_stops(request, CATALOG_LOOKS_MAX - all->names.looks_left) ? request_budget_refuse(request)
                                                                                    : 0;
}

/* A body that is no JSON fails the request; an error in its query fails the item. */
static int read_item(struct request *request, struct msearch *all, struct slice header, struct slice body)
{
    struct msearch_item *item = arena_zalloc(request->arena, sizeof *item);
    if (all->count >= MSEARCH_ITEMS_MAX)
        return request_refuse(request, PROBLEM_LIMIT_EXCEEDED, "more than %d searches in a request", MSEARCH_ITEMS_MAX);
    item->call = all->defaults;
    item->body = body;
    struct problem objection;
    int r = read_header(request, header, &item->call, &objection);
    if (r == 0)
        r = settle_dialect(request, all, &item->call);
    if (r == 0)
        r = search_call_body(request, &item->call, body, false);
    if (r != 0)
        return r;
    if (item->call.search.pit_id.data != NULL && item->call.index.data != NULL)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: [indices] cannot be used with point in time;");
    if (item->call.search.pit_id.data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[pit] is not supported in _msearch: read in a point in time by _search");
    search_call_combine(&item->call, &item->objection);
    if (objection.type != PROBLEM_NONE)
        item->objection = objection;
    int32_t track = item->call.search.track_total_hits;
    if (item->call.total_as_int && track >= 0 && track != TOTAL_HITS_ALL)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, got %d", track);
    if (item->call.total_as_int && track == TOTAL_HITS_UNSET)
        item->call.search.track_total_hits = TOTAL_HITS_ALL;
    all->items = arena_grow(request->arena, all->items, all->count, &all->capacity, sizeof *all->items);
    all->items[all->count++] = item;
    return 0;
}

static int read_items(struct request *request, struct msearch *all)
{
    struct slice body = request_body(request), header, line;
    if (body.len > 0 && body.data[body.len - 1] != '\n')
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "The msearch request must be terminated by a newline [\\n]");
    while (next_line(&body, &header)) {
        if (!next_line(&body, &line)) {
            if (header.len == 0)
                break;
            line = SLICE_LIT("");
        }
        int r = read_item(request, all, header, line);
        if (r != 0)
            return r;
    }
    return all->count > 0
               ? 0
               : request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: no requests added;");
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static int run_item(struct request *request, struct msearch_item *item, int64_t begun_us, struct search_result *result)
{
    if (item->objection.type != PROBLEM_NONE) {
        request->problem = item->objection;
        return REQUEST_REFUSED;
    }
    item->call.view = request->view;
    item->call.catalog = request->catalog;
    int r = search_call_open(&item->call, &request->problem);
    item->call.context.no_types = request->form.compatible_8;
    if (r == 0)
        r = search_default_timeout(request, &item->call);
    if (r == 0)
        r = search_run(&item->call.context, &item->call.search, result, &request->problem);
    if (r == 0)
        r = search_call_check(&item->call, result, &request->problem);
    if (r == 0) {
        slow_search(request, &item->call, item->body, result->total, begun_us);
        search_call_note(&item->call, begun_us);
    }
    if (r == SEARCH_CANCELLED) /* and so is the whole */
        (void)account_poll(&request->account);
    return r == 0                  ? 0
           : r == SEARCH_CANCELLED ? request_budget_refuse(request)
                                   : search_outcome(request, &item->call, r);
}

static void write_failure(struct request *request, enum dialect dialect, struct json_writer *writer)
{
    json_begin(writer, '{');
    json_key(writer, "error");
    problem_write(writer, &request->problem, dialect);
    json_key(writer, "status");
    json_i64(writer, problem_status(&request->problem));
    json_end(writer, '}');
}

static int write_item(struct request *request, struct json_writer *writer, struct msearch_item *item)
{
    struct search_result result = {.hits = BUF_INIT(0), .aggregations = BUF_INIT(0)};
    struct buf text = BUF_INIT(SEARCH_RESPONSE_BYTES_MAX);
    text.guard = request->arena->guard;
    struct json_writer inner;
    int64_t begun = search_clock_us();
    int r = run_item(request, item, begun, &result);
    if (r == 0) {
        request->found_nothing = request->found_nothing || search_result_is_empty(&result);
        json_writer_init(&inner, &text);
        search_write(&inner, &item->call, &result, (uint64_t)(search_clock_us() - begun), SLICE_NONE, SLICE_NONE);
        if (text.overflow)
            r = SEARCH_REFUSED; /* as is the whole */
    }
    if (r == 0) {
        buf_chop(&text, 1); /* the status goes inside the object */
        buf_lit(&text, ",\"status\":200}");
        json_raw(writer, buf_as_slice(&text));
    } else if (r > 0) {
        request->found_nothing = request->found_nothing || problem_status(&request->problem) == 404;
        write_failure(request, item->call.dialect, writer);
        r = 0;
    }
    buf_deinit(&text);
    search_result_deinit(&result);
    return r;
}

static int answer_all(struct request *request)
{
    struct msearch *all = request->context;
    struct json_writer writer;
    int64_t begun = search_clock_us();
    struct buf items = BUF_INIT(SEARCH_RESPONSE_BYTES_MAX);
    items.guard = request->arena->guard;
    struct json_writer list;
    json_writer_init(&list, &items);
    json_begin(&list, '[');
    int r = 0;
    for (size_t i = 0; r == 0 && i < all->count && !request_budget_refused(request); i++)
        r = write_item(request, &list, all->items[i]);
    json_end(&list, ']');
    if (r == 0) {
        reply_begin(request, 200, &writer);
        json_begin(&writer, '{');
        if (request->dialect == DIALECT_7) {
            json_key(&writer, "took");
            json_u64(&writer, (uint64_t)(search_clock_us() - begun) / 1000);
        }
        json_key(&writer, "responses");
        json_raw(&writer, buf_as_slice(&items));
        json_end(&writer, '}');
    }
    buf_deinit(&items);
    return r;
}

static int run_all(struct request *request)
{
    struct msearch *all = request->context;
    int r = answer_all(request);
    task_work_end(&all->work);
    return r;
}

static int msearch_ready(struct request *request)
{
    struct msearch *all = request->context;
    task_work_begin(request, &all->work, "indices:data/read/msearch",
                    arena_printf(request->arena, "requests[%zu]", all->count));
    return request_work(request, run_all);
}

/* Returns the locks that all searches take together, in one array; none outside of a transaction. */
static struct lock_target *all_targets(struct request *request, const struct msearch *all, size_t *ret_count)
{
    struct lock_target *targets = NULL;
    size_t capacity = 0;
    *ret_count = 0;
    for (size_t i = 0; request->transaction.len > 0 && i < all->count; i++) {
        struct lock_target *some;
        size_t some_count;
        search_call_targets(request, &all->items[i]->call, &some, &some_count);
        for (size_t j = 0; j < some_count; j++) {
            targets = arena_grow(request->arena, targets, *ret_count, &capacity, sizeof *targets);
            targets[(*ret_count)++] = some[j];
        }
    }
    return targets;
}

int handle_msearch(struct request *request)
{
    struct msearch *all = arena_zalloc(request->arena, sizeof *all);
    bool ignored;
    int r;
    request->context = all;
    if ((r = search_call_init(request, request->arena, &all->defaults)) != 0 ||
        (r = request_bool(request, "rest_total_hits_as_int", &all->defaults.total_as_int)) != 0 ||
        (r = request_bool(request, "typed_keys", &all->defaults.typed_keys)) != 0 ||
        (r = request_bool(request, "ccs_minimize_roundtrips", &ignored)) != 0 ||
        (r = search_call_type(request, &all->defaults, false)) != 0 || (r = search_call_idle(request)) != 0)
        return r;
    all->names = DIALECT_NAMES_INIT;
    r = read_items(request, all);
    dialect_names_deinit(&all->names);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    size_t count;
    struct lock_target *targets = all_targets(request, all, &count);
    return request_read(request, targets, count, msearch_ready);
}
