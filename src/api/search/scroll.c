/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrolls: a search read page by page at the timestamp at which it began.
 *
 * A page is written by a worker directly from the documents that follow the previous page's last;
 * nothing is read twice.
 */
#include <ctype.h>

#include "api/request/api_internal.h"
#include "api/request/forward.h"
#include "api/request/handlers.h"
#include "api/request/location.h"
#include "api/request/request_budget.h"
#include "api/search/search_service.h"
#include "api/search/task.h"
#include "api/search/slow.h"
#include "json/each.h"
#include "query/failure.h"

struct scroll_job {
    bool other;               /* OpenSearch's form of the reply */
    struct open_context *held; /* entered, or not in the table yet */
    struct slice id;
    uint64_t keep_alive_us;
    struct problem objection; /* of shards, to its time; else PROBLEM_NONE */
    bool total_as_int;
    bool last; /* the request names no time to keep the context for: it ends with this page */
    int64_t begun_us;
    struct task_work work;
};

static void give_back(struct request *request, void *held)
{
    open_context_unref(request->api->search_service, held);
}

/* The request owns it until it is settled; the table has a reference of its own. */
static struct open_context *new_context(struct request *request, enum context_kind kind)
{
    struct open_context *held = open_context_new(request->api->search_service, kind);
    request_own(request, give_back, held);
    return held;
}

/*
 * Writes a page. Each request for one says by itself whether totals are numbers. Threads that clear the context read
 * its search meanwhile: only a copy is changed.
 */
static int reply_page(struct request *request, struct scroll_job *job, struct search_result *result)
{
    struct json_writer writer;
    struct search_call call = job->held->call;
    bool first = job->id.data == NULL;
    if (call.legacy_1x && result->hit_count == 0 && !first)
        call.shard_count = 0; /* 1.x: no shard had anything left */
    if (!first)
        call.total_as_int = job->total_as_int;
    request->found_nothing = search_result_is_empty(result) && first;
    reply_begin(request, 200, &writer);
    search_write(&writer, &call, result, (uint64_t)(search_clock_us() - job->begun_us),
                 job->last ? SLICE_NONE : job->held->id, SLICE_NONE);
    return REQUEST_DONE;
}

static int read_page(struct request *request, struct scroll_job *job)
{
    struct open_context *held = job->held;
    struct search_result result;
    struct arena arena = ARENA_INIT;
    held->call.context.memory = arena.guard = request->arena->guard;
    held->call.context.account = &request->account;
    held->call.context.arena = &arena; /* what binding makes is needed for this page only */
    request->exchange->timestamp = held->call.view.ts;
    int64_t begun_us = search_clock_us();
    int r = search_next(&held->call.context, &held->call.search, held->cursor, &result, &request->problem);
    if (r == 0) {
        slow_search(request, &held->call, SLICE_NONE, result.total, begun_us);
        search_call_note(&held->call, begun_us);
        reply_page(request, job, &result);
    } else if (r == SEARCH_REFUSED)
        request_keep_problem(request);
    search_result_deinit(&result);
    arena_deinit(&arena);
    held->call.context.memory = NULL;
    held->call.context.account = NULL;
    held->call.context.arena = held->call.arena;
    return r;
}

/*
 * What follows makes, moves or frees a context, which cannot be taken back: the request is refused here, or not at all.
 * Returns: 0; REQUEST_REFUSED.
 */
static int commit_to_reply(struct request *request)
{
    if (request_budget_refused(request))
        return request_budget_refuse(request);
    request_budget_committed(request);
    return 0;
}

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

static int refuse_too_many(struct request *request)
{
    return request_refuse(request, PROBLEM_LIMIT_EXCEEDED,
                          "Trying to create too many scroll contexts. Must be less than or equal to: [%d]. "
                          "This limit can be set by changing the [search.max_open_scroll_context] setting.",
                          CONTEXTS_SCROLL_MAX);
}

int scroll_check_size(enum dialect dialect, int32_t size, struct arena *arena, struct problem *ret_problem)
{
    if (size <= SEARCH_WINDOW_MAX)
        return 0;
    problem_set(ret_problem, arena, dialect == DIALECT_5 ? PROBLEM_QUERY_PHASE_EXECUTION : PROBLEM_ILLEGAL_ARGUMENT,
                "Batch size is too large, size must be less than or equal to: [%d] but was [%d]. Scroll batch sizes "
                "cost as much memory as result windows so they are controlled by the [index.max_result_window] index "
                "level setting.",
                SEARCH_WINDOW_MAX, size);
    return SEARCH_REFUSED;
}

/* What shards have against a scroll, found once it is known which they are. */
static int check_page(struct request *request, const struct scroll_job *job)
{
    const struct search_call *call = &job->held->call;
    struct problem problem = job->objection;
    if (problem.type != PROBLEM_NONE) {
        /* to its time */
    } else if (call->search.search_after != NULL) {
        problem_set(&problem, request->arena, PROBLEM_ILLEGAL_STATE,
                    "`search_after` cannot be used in a scroll context.");
        problem.name =
            call->dialect == DIALECT_5 ? SLICE_LIT("search_context_exception") : SLICE_LIT("search_exception");
    } else if (scroll_check_size(call->dialect, call->search.size, request->arena, &problem) == 0) {
        return 0;
    }
    if (call->context.index_count == 0)
        return 0;
    failure_wrap(&call->context, &call->context.indices[0], false, &problem, &request->problem);
    return SEARCH_REFUSED;
}

static int first_page(struct request *request)
{
    struct scroll_job *job = request->context;
    struct search_service *service = request->api->search_service;
    int r = search_call_open(&job->held->call, &request->problem);
    bool added = false;
    job->held->call.context.no_types = request->form.compatible_8;
    if (r == 0)
        r = check_page(request, job);
    if (r == 0 && job->held->call.legacy_1x && job->held->call.search.size > 0) {
        int64_t pages = (int64_t)job->held->call.search.size * job->held->call.shard_count; /* 1.x: a size a shard */
        job->held->call.search.size = pages > SEARCH_WINDOW_MAX ? SEARCH_WINDOW_MAX : (int32_t)pages;
    }
    if (r == 0)
        r = read_page(request, job);
    if (r == 0)
        r = commit_to_reply(request);
    added = r == 0 && open_context_add(service, job->held, job->keep_alive_us) == 0;
    if (r == 0 && !added)
        r = refuse_too_many(request);
    else if (r != 0)
        r = search_outcome(request, &job->held->call, r);
    task_work_end(&job->work);
    return r;
}

/* The view is there: the scroll pins it for itself. */
static int scroll_ready(struct request *request)
{
    struct scroll_job *job = request->context;
    struct open_context *held = job->held;
    int r = open_context_take_view(request, held);
    if (r == 0) {
        task_work_begin(request, &job->work, "indices:data/read/search",
                        arena_printf(request->arena, "indices[%.*s], scroll", SLICE_ARG(held->call.index)));
        return request_work(request, first_page);
    }
    return search_outcome(request, NULL, r);
}

static int read_begin(struct request *request, struct scroll_job *job)
{
    struct search_call *call = &job->held->call;
    int r = open_context_keep_alive(request, request_param(request, "scroll"), "scroll", &job->keep_alive_us);
    if (r == REQUEST_REFUSED && slice_starts_with(request->problem.reason, SLICE_LIT("Keep alive"))) {
        job->objection = request->problem;
        r = 0;
    }
    if (r == 0)
        r = search_call_init(request, &job->held->arena, call);
    if (r == 0)
        r = search_call_body(request, call, request_body(request), false);
    if (r == 0)
        r = search_call_params(request, call, true);
    return r == 0 ? request_accept(request) : r;
}

int scroll_begin(struct request *request)
{
    struct scroll_job *job = arena_zalloc(request->arena, sizeof *job);
    struct lock_target *targets = NULL;
    size_t count = 0;
    request->context = job;
    job->begun_us = search_clock_us();
    job->held = new_context(request, CONTEXT_SCROLL);
    job->held->cursor = search_cursor_new();
    int r = read_begin(request, job);
    if (r != 0)
        return r;
    search_call_targets(request, &job->held->call, &targets, &count);
    return request_read(request, targets, count, scroll_ready);
}

/* --- The next page ------------------------------------------------------------------------------------------------ */

static int refuse_member(struct request *request, struct slice name, yyjson_val *value)
{
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "Unknown parameter [%.*s] in request body or parameter is of the wrong type[%s] ",
                          SLICE_ARG(name), json_token(value));
}

/* An id, or, where several make sense, a list of them. */
static int read_id_member(struct request *request, yyjson_val *value, bool several, struct slice **ret_ids,
                          size_t *ret_count)
{
    bool list = yyjson_is_arr(value) && several;
    size_t items = list ? unsafe_yyjson_get_len(value) : 1;
    yyjson_val *item = list ? unsafe_yyjson_get_first(value) : value;
    if (!list && !yyjson_is_str(value))
        return refuse_member(request, SLICE_LIT("scroll_id"), value);
    *ret_ids = arena_alloc(request->arena, (items + 1) * sizeof **ret_ids);
    for (size_t i = 0; i < items; i++, item = unsafe_yyjson_get_next(item)) {
        if (!yyjson_is_str(item))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "scroll_id array element should only contain scroll_id");
        (*ret_ids)[(*ret_count)++] = json_slice(item);
    }
    return 0;
}

/*
 * A body is JSON, or, as in 1.x, the id and nothing else. `several`: it may name more than one.
 * Returns: 0, REQUEST_REFUSED.
 */
static int read_ids(struct request *request, bool several, struct slice **ret_ids, size_t *ret_count,
                    struct slice *ret_scroll)
{
    struct json_doc doc;
    size_t index, count;
    yyjson_val *key, *value;
    struct slice body = request_body(request);
    *ret_count = 0;
    if (body.len > 0 && strchr("{[ \n", body.data[0]) == NULL) {
        *ret_count = search_request_split(request->arena, body, ret_ids);
        return 0;
    }
    int r = request_json(request, 0, &doc);
    if (r != 0)
        return r < 0 ? r : request_wrap(request, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse request body");
    if (doc.root == NULL)
        return 0;
    if (!yyjson_is_obj(doc.root))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Malformed content, must start with an object");
    json_obj_foreach (doc.root, index, count, key, value) {
        struct slice name = json_slice(key);
        if (slice_is(name, "scroll") && yyjson_is_str(value) && !several)
            *ret_scroll = json_slice(value);
        else if (slice_is(name, "scroll_id"))
            r = read_id_member(request, value, several, ret_ids, ret_count);
        else
            r = refuse_member(request, name, value);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Ids are base64; others are refused with the reason. */
static int refuse_id(struct request *request, struct slice id)
{
    struct problem *cause = arena_zalloc(request->arena, sizeof *cause);
    size_t i = 0;
    while (i < id.len &&
           (isalnum((unsigned char)id.data[i]) || id.data[i] == '-' || id.data[i] == '_' || id.data[i] == '='))
        i++;
    if (id.len == 0)
        problem_set(cause, request->arena, PROBLEM_ARRAY_INDEX_OUT_OF_BOUNDS, "Index 0 out of bounds for length 0");
    else if (i < id.len)
        problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "Illegal base64 character %x",
                    (unsigned char)id.data[i]);
    else if (id.len == 1)
        problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Input byte[] should at least have 2 bytes for base64 bytes");
    else if (id.len % 4 == 1)
        problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "Last unit does not have enough valid bits");
    else
        cause = NULL;
    int r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Cannot parse scroll id");
    request->problem.caused_by = cause;
    return r;
}

static int read_next(struct request *request)
{
    struct scroll_job *job = request->context;
    struct search_service *service = request->api->search_service;
    uint64_t number = 0;
    int r = open_context_enter(service, CONTEXT_SCROLL, job->id, job->keep_alive_us, &job->held, &number);
    if (r == CONTEXT_BAD_ID)
        return refuse_id(request, job->id);
    if (r != 0) {
        open_context_missing(request, CONTEXT_SCROLL, job->id, number);
        return REQUEST_REFUSED;
    }
    r = read_page(request, job);
    r = r != 0 ? search_outcome(request, &job->held->call, r) : commit_to_reply(request);
    if (r == REQUEST_REFUSED)
        request_keep_problem(request); /* the context may be cleared, and end with this page */
    if (r != 0)
        search_cursor_repeat(job->held->cursor); /* for a repeated request */
    open_context_leave(service, job->held);
    if (job->last && r == 0)
        (void)open_context_clear(service, CONTEXT_SCROLL, job->id);
    return r;
}

static int next_page(struct request *request)
{
    struct scroll_job *job = request->context;
    int r = read_next(request);
    task_work_end(&job->work);
    return r;
}

static int work_on(struct request *request)
{
    struct scroll_job *job = request->context;
    task_work_begin(request, &job->work, "indices:data/read/scroll",
                    arena_printf(request->arena, "scrollId[%.*s]", SLICE_ARG(job->id)));
    return request_work(request, next_page);
}

static struct slice named_id(const struct request *request)
{
    struct slice id = request_part(request, PART_SCROLL_ID);
    return id.data != NULL ? id : request_param(request, "scroll_id");
}

int handle_scroll(struct request *request)
{
    struct scroll_job *job = arena_zalloc(request->arena, sizeof *job);
    struct slice *ids = NULL, scroll = request_param(request, "scroll");
    size_t count = 0;
    request->context = job;
    job->begun_us = search_clock_us();
    int r = read_ids(request, false, &ids, &count, &scroll);
    if (r == 0)
        r = request_bool(request, "rest_total_hits_as_int", &job->total_as_int);
    job->last = scroll.data == NULL;
    if (r == 0 && !job->last)
        r = open_context_keep_alive(request, scroll, "scroll", &job->keep_alive_us);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    job->id = count > 0 ? ids[0] : named_id(request);
    if (job->id.data == NULL)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: scrollId is missing;");
    r = open_context_forward(request, CONTEXT_SCROLL, job->id);
    return r != 0 ? r : open_context_allow(request, CONTEXT_SCROLL, job->id, work_on);
}

/* --- Clearing ----------------------------------------------------------------------------------------------------- */

/*
 * Contexts that are to end, here and on other hosts. With `all` set those of all hosts, else those that are named.
 */
struct clearing {
    enum context_kind kind;
    const struct slice *ids;
    size_t id_count;
    bool all;
    size_t freed; /* on this host, in shards */
    struct host_ask *asks;
    size_t ask_count;
};

/* {"scroll_id": […]} of those of the ids that name a host. Returns: SLICE_NONE where none does. */
static struct slice body_for(struct request *request, const struct clearing *clearing, uint16_t host)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    bool any = false;
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    json_key(&writer, clearing->kind == CONTEXT_SCROLL ? "scroll_id" : "pit_id");
    json_begin(&writer, '[');
    for (size_t i = 0; i < clearing->id_count; i++)
        if (open_context_host(clearing->kind, clearing->ids[i]) == host) {
            json_string(&writer, clearing->ids[i]);
            any = true;
        }
    json_end(&writer, ']');
    json_end(&writer, '}');
    struct slice body = any ? arena_copy(request->arena, buf_as_slice(&text)) : SLICE_NONE;
    buf_deinit(&text);
    return body;
}

/* Has other hosts end theirs. */
static int clear_elsewhere(struct request *request, struct clearing *clearing, request_handler *then)
{
    const char *path = clearing->kind == CONTEXT_SCROLL ? "/_search/scroll" : "/_search/point_in_time";
    size_t count, kept = 0;
    struct host_ask *asks = request_asks(request, SLICE_NONE, &count);
    for (size_t i = 0; i < count; i++) {
        struct host_ask ask = asks[i];
        ask.method = "DELETE";
        ask.target = arena_printf(request->arena, "%s%s", path, clearing->all ? "/_all" : "");
        if (!clearing->all)
            ask.body = body_for(request, clearing, ask.node->number);
        if (clearing->all || ask.body.data != NULL)
            asks[kept++] = ask;
    }
    clearing->asks = asks;
    clearing->ask_count = kept;
    request->context = clearing;
    return request_ask_hosts(request, asks, kept, then);
}

static int reply_cleared(struct request *request, size_t freed, bool succeeded)
{
    struct json_writer writer;
    reply_begin(request, freed > 0 ? 200 : 404, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "succeeded");
    json_bool(&writer, succeeded);
    json_key(&writer, "num_freed");
    json_u64(&writer, freed);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int scrolls_cleared(struct request *request)
{
    struct clearing *clearing = request->context;
    size_t freed = clearing->freed;
    bool succeeded = true;
    for (size_t i = 0; i < clearing->ask_count; i++) {
        yyjson_val *reply = host_ask_json(request, &clearing->asks[i]);
        freed += yyjson_get_uint(json_get_lit(reply, "num_freed"));
        succeeded = succeeded && reply != NULL;
    }
    return reply_cleared(request, freed, succeeded);
}

int handle_scroll_clear(struct request *request)
{
    struct clearing *clearing = arena_zalloc(request->arena, sizeof *clearing);
    struct slice *ids = NULL, scroll = SLICE_NONE;
    size_t count = 0;
    int r = read_ids(request, true, &ids, &count, &scroll);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    if (count == 0)
        count = search_request_split(request->arena, named_id(request), &ids);
    if (count == 0)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: no scroll ids specified;");
    bool all = count == 1 && slice_is(ids[0], "_all");
    for (size_t i = 0; i < count && !all; i++)
        if (!open_context_is_id(CONTEXT_SCROLL, ids[i]))
            return refuse_id(request, ids[i]);
    if ((r = commit_to_reply(request)) != 0)
        return r;
    *clearing = (struct clearing){.kind = CONTEXT_SCROLL, .ids = ids, .id_count = count, .all = all};
    for (size_t i = 0; i < count; i++)
        clearing->freed +=
            open_context_clear(request->api->search_service, CONTEXT_SCROLL, all ? SLICE_LIT("") : ids[i]);
    return clear_elsewhere(request, clearing, scrolls_cleared);
}

/* --- Points in time ----------------------------------------------------------------------------------------------- */

static int pit_ready(struct request *request)
{
    struct scroll_job *job = request->context;
    struct open_context *held = job->held;
    struct json_writer writer;
    int r = open_context_take_view(request, held);
    if (r == 0)
        r = search_call_open(&held->call, &request->problem);
    if (r == 0)
        r = commit_to_reply(request);
    if (r != 0)
        r = search_outcome(request, NULL, r);
    else if (open_context_add(request->api->search_service, held, job->keep_alive_us) != 0)
        r = refuse_too_many(request);
    if (r == 0) {
        reply_begin(request, 200, &writer);
        json_begin(&writer, '{');
        json_key(&writer, job->other ? "pit_id" : "id");
        json_string(&writer, held->id);
        if (job->other) {
            search_write_shards(&writer, &held->call);
            json_key(&writer, "creation_time");
            json_u64(&writer, request->view.ts / TL_MS);
        }
        json_end(&writer, '}');
    }
    return r;
}

static int open_pit(struct request *request, bool other)
{
    struct scroll_job *job = arena_zalloc(request->arena, sizeof *job);
    job->other = other;
    struct slice keep_alive = request_param(request, "keep_alive");
    struct lock_target *targets = NULL;
    size_t count = 0;
    request->context = job;
    if (keep_alive.data == NULL)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: [keep_alive] is not specified;");
    job->held = new_context(request, CONTEXT_PIT);
    int r = open_context_keep_alive(request, keep_alive, "keep_alive", &job->keep_alive_us);
    if (r == 0)
        r = search_call_init(request, &job->held->arena, &job->held->call);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    search_call_targets(request, &job->held->call, &targets, &count);
    return request_read(request, targets, count, pit_ready);
}

int handle_pit_open(struct request *request)
{
    return open_pit(request, false);
}

int handle_pit_open_other(struct request *request)
{
    return open_pit(request, true);
}

static void write_closed(struct json_writer *writer, struct slice id, bool closed)
{
    json_begin(writer, '{');
    json_key(writer, "successful");
    json_bool(writer, closed);
    json_key(writer, "pit_id");
    json_string(writer, id);
    json_end(writer, '}');
}

/* Returns: the ask to the host that an id names; NULL: it is this host's, or a host's that is out. */
static struct host_ask *asked_for(const struct clearing *clearing, struct slice id)
{
    for (size_t i = 0; i < clearing->ask_count; i++)
        if (clearing->asks[i].node->number == open_context_host(clearing->kind, id))
            return &clearing->asks[i];
    return NULL;
}

static int pits_closed(struct request *request)
{
    struct clearing *clearing = request->context;
    struct search_service *service = request->api->search_service;
    struct json_writer writer;
    size_t at, max;
    yyjson_val *closed;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "pits");
    json_begin(&writer, '[');
    if (clearing->all)
        open_context_clear(service, CONTEXT_PIT, SLICE_LIT(""));
    for (size_t i = 0; i < clearing->id_count; i++) {
        struct slice id = clearing->ids[i];
        struct host_ask *ask = asked_for(clearing, id);
        if (ask == NULL)
            write_closed(&writer, id, open_context_clear(service, CONTEXT_PIT, id) > 0);
        else if (host_ask_json(request, ask) == NULL)
            write_closed(&writer, id, false);
    }
    for (size_t i = 0; i < clearing->ask_count; i++)
        json_arr_foreach (json_get_lit(host_ask_json(request, &clearing->asks[i]), "pits"), at, max, closed)
            json_value(&writer, closed, DIALECT_7);
    json_end(&writer, ']');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* DELETE /_search/point_in_time {"pit_id": [...]}, as OpenSearch has it; without a body, of all. */
int handle_pit_close_other(struct request *request)
{
    struct clearing *clearing = arena_zalloc(request->arena, sizeof *clearing);
    struct json_doc doc;
    size_t i, max;
    yyjson_val *id;
    int r = request_json(request, 0, &doc);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    yyjson_val *ids = json_get_lit(doc.root, "pit_id");
    bool all = strstr(request->route->pattern, "/_all") != NULL;
    if (!all && (!yyjson_is_arr(ids) || yyjson_arr_size(ids) == 0) && !yyjson_is_str(ids))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: no pit ids specified;");
    struct slice *named = arena_alloc(request->arena, (yyjson_arr_size(ids) + 1) * sizeof *named);
    *clearing = (struct clearing){.kind = CONTEXT_PIT, .ids = named, .all = all};
    if (yyjson_is_str(ids) && !all)
        named[clearing->id_count++] = json_slice(ids);
    json_arr_foreach (all ? NULL : ids, i, max, id)
        named[clearing->id_count++] = json_slice(id);
    if ((r = commit_to_reply(request)) != 0)
        return r;
    return clear_elsewhere(request, clearing, pits_closed);
}

int handle_pit_close(struct request *request)
{
    struct json_doc doc;
    int r = request_json(request, 0, &doc);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    yyjson_val *id = json_get_lit(doc.root, "id");
    if (!yyjson_is_str(id))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "point in time id is not provided");
    if ((r = open_context_forward(request, CONTEXT_PIT, json_slice(id))) != 0)
        return r;
    if ((r = commit_to_reply(request)) != 0)
        return r;
    return reply_cleared(request, open_context_clear(request->api->search_service, CONTEXT_PIT, json_slice(id)), true);
}
