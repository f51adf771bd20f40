/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _search and _count.
 *
 * A search that reads little is answered at once; one that turns out long, before it has done anything, goes
 * to a worker.
 */
#include <math.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/location.h"
#include "api/request/preference.h"
#include "api/request/problem_reply.h"
#include "api/request/worker.h"
#include "api/search/search_service.h"
#include "api/search/task.h"
#include "api/search/slow.h"

enum {
    SOURCE_SHOWN_MAX = 1000,
    ATTEMPT_STEPS = 64 << 20, /* of an account: some tenths of a second */
};

struct search_job {
    struct search_call call;
    struct open_context *scroll; /* begins one; NULL: not a scroll */
    struct open_context *pit;    /* reads in one, entered; NULL: not */
    uint64_t keep_alive_us;
    int64_t begun_us;
    struct task_work work; /* while it is long */
};

/* What GET _tasks says that it is, as Elasticsearch does. */
static struct slice search_description(struct request *request, const struct search_call *call)
{
    struct slice body = request_body(request);
    return arena_printf(request->arena, "indices[%.*s], types[%.*s], search_type[QUERY_THEN_FETCH], source[%.*s%s]",
                        SLICE_ARG(call->index), SLICE_ARG(call->types),
                        (int)(body.len < SOURCE_SHOWN_MAX ? body.len : SOURCE_SHOWN_MAX), body.data,
                        body.len > SOURCE_SHOWN_MAX ? "..." : "");
}

static int reply_search(struct request *request, struct search_job *job, const struct search_result *result)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    request->found_nothing = search_result_is_empty(result);
    search_write(&writer, &job->call, result, (uint64_t)(search_clock_us() - job->begun_us), SLICE_NONE,
                 job->pit != NULL ? job->pit->id : SLICE_NONE);
    return REQUEST_DONE;
}

static void leave_pit(struct request *request, struct search_job *job)
{
    if (job->pit != NULL)
        open_context_leave(request->api->search_service, tl_steal(job->pit));
}

static int run_search(struct request *request, bool short_only)
{
    struct search_job *job = request->context;
    struct search_result result;
    job->call.context.short_only = short_only;
    int r = search_run(&job->call.context, &job->call.search, &result, &request->problem);
    if (r == 0)
        r = search_call_check(&job->call, &result, &request->problem);
    if (r == 0) {
        slow_search(request, &job->call, request_body(request), result.total, job->begun_us);
        search_call_note(&job->call, job->begun_us);
        reply_search(request, job, &result);
    }
    search_result_deinit(&result);
    return r;
}

static int search_over(struct request *request, int r)
{
    struct search_job *job = request->context;
    task_work_end(&job->work);
    if (r != 0)
        r = search_outcome(request, &job->call, r);
    leave_pit(request, job);
    return r;
}

static int search_long(struct request *request)
{
    return search_over(request, run_search(request, false));
}

/*
 * While all workers for long searches are busy, this one is tried by a worker for short jobs, so
 * that it does not have to wait for them if it is short.
 */
static int search_attempt(struct request *request)
{
    struct search_job *job = request->context;
    job->call.context.steps_max = ATTEMPT_STEPS;
    int r = run_search(request, false);
    job->call.context.steps_max = 0;
    return r == SEARCH_LONG ? request_work(request, search_long) : search_over(request, r);
}

/* The view is there. */
static int search_ready(struct request *request)
{
    struct search_job *job = request->context;
    job->begun_us = search_clock_us();
    if (job->pit == NULL) {
        job->call.view = request->view;
        job->call.catalog = request->catalog;
    }
    int r = search_call_open(&job->call, &request->problem);
    job->call.context.no_types = request->form.compatible_8;
    if (r == 0)
        r = search_default_timeout(request, &job->call);
    if (r == 0)
        r = run_search(request, true);
    if (r == SEARCH_LONG) {
        task_work_begin(request, &job->work, "indices:data/read/search", search_description(request, &job->call));
        return workers_busy(request->api->workers) ? request_work_short(request, search_attempt)
                                                   : request_work(request, search_long);
    }
    leave_pit(request, job);
    return r == 0 ? REQUEST_DONE : search_outcome(request, &job->call, r);
}

/* --- Points in time ----------------------------------------------------------------------------------------------- */

static int enter_pit(struct request *request, struct search_job *job)
{
    struct search_request *search = &job->call.search;
    uint64_t number = 0, keep_alive = 0;
    if (job->call.routing.data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[routing] cannot be used with point in time");
    if (search->pit_keep_alive.data != NULL) {
        int r = open_context_keep_alive(request, search->pit_keep_alive, "keep_alive", &keep_alive);
        if (r != 0)
            return r;
    }
    int r =
        open_context_enter(request->api->search_service, CONTEXT_PIT, search->pit_id, keep_alive, &job->pit, &number);
    if (r == CONTEXT_BAD_ID)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "invalid id: [%.*s]", SLICE_ARG(search->pit_id));
    if (r != 0) {
        open_context_missing(request, CONTEXT_PIT, search->pit_id, number);
        return REQUEST_REFUSED;
    }
    job->call.index = job->pit->call.index;
    job->call.options = job->pit->call.options;
    job->call.routing = job->pit->call.routing;
    job->call.view = job->pit->call.view;
    job->call.catalog = job->pit->call.catalog;
    request->exchange->timestamp = job->call.view.ts;
    return 0;
}

static int search_in_pit(struct request *request)
{
    int r = enter_pit(request, request->context);
    return r == 0 ? search_ready(request) : r;
}

/* --- _search ------------------------------------------------------------------------------------------------------ */

static int read_search(struct request *request, struct search_job *job, struct arena *arena, bool scroll)
{
    int r = search_call_init(request, arena, &job->call);
    if (r == 0)
        r = search_call_body(request, &job->call, request_body(request), false);
    if (r == 0)
        r = search_call_params(request, &job->call, scroll);
    return r == 0 ? request_accept(request) : r;
}

static int begin_read(struct request *request, struct search_call *call, request_handler *then)
{
    struct lock_target *targets;
    size_t count;
    search_call_targets(request, call, &targets, &count);
    return request_read(request, targets, count, then);
}

int handle_search(struct request *request)
{
    struct search_job *job = arena_zalloc(request->arena, sizeof *job);
    request->context = job;
    if (request_param(request, "scroll").data != NULL)
        return scroll_begin(request);
    int r = read_search(request, job, request->arena, false);
    if (r != 0)
        return r;
    if (job->call.search.pit_id.data == NULL)
        return begin_read(request, &job->call, search_ready);
    if ((r = open_context_forward(request, CONTEXT_PIT, job->call.search.pit_id)) != 0)
        return r;
    /* It was not known, and not locked, when the point in time was opened. */
    if (request->transaction.len > 0 && request->query == NULL && job->call.refers.count > 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "inside a transaction a search in a point in time can neither look up the values of a "
                              "[terms] query nor run stored scripts: name the indices in place of the [pit]");
    return open_context_allow(request, CONTEXT_PIT, job->call.search.pit_id, search_in_pit);
}

/* --- _count ------------------------------------------------------------------------------------------------------- */

struct count_job {
    struct search_call call;
    int32_t terminate_after;
    double min_score;
    struct task_work work; /* while it is long */
};

static int reply_count(struct request *request, const struct count_job *job, uint64_t count, bool early)
{
    struct json_writer writer;
    request->found_nothing = count == 0;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    if (job->terminate_after > 0) {
        json_key(&writer, "terminated_early");
        json_bool(&writer, early);
    }
    json_key(&writer, "count");
    json_u64(&writer, count);
    search_write_shards(&writer, &job->call);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int run_count(struct request *request, bool short_only)
{
    struct count_job *job = request->context;
    uint64_t count = 0;
    bool early = false;
    job->call.context.short_only = short_only;
    int r = search_count(&job->call.context, job->call.search.query, (uint64_t)job->terminate_after, job->min_score,
                         &count, &early, &request->problem);
    return r == 0 ? reply_count(request, job, count, early) : r;
}

static int count_long(struct request *request)
{
    struct count_job *job = request->context;
    int r = run_count(request, false);
    task_work_end(&job->work);
    return r == 0 ? REQUEST_DONE : search_outcome(request, &job->call, r);
}

static int count_ready(struct request *request)
{
    struct count_job *job = request->context;
    job->call.view = request->view;
    job->call.catalog = request->catalog;
    int r = search_call_open(&job->call, &request->problem);
    if (r == 0)
        r = run_count(request, true);
    if (r == SEARCH_LONG) {
        task_work_begin(request, &job->work, "indices:data/read/search", search_description(request, &job->call));
        return request_work(request, count_long);
    }
    return r == 0 ? REQUEST_DONE : search_outcome(request, &job->call, r);
}

static int read_min_score(struct request *request, double *ret_score)
{
    struct slice text = request_param(request, "min_score");
    *ret_score = NAN;
    if (text.data == NULL)
        return 0;
    if (!slice_to_double(text, ret_score))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Failed to parse float parameter [min_score] with value [%.*s]", SLICE_ARG(text));
    return 0;
}

int handle_count(struct request *request)
{
    struct count_job *job = arena_zalloc(request->arena, sizeof *job);
    struct slice body = request_body(request);
    int r;
    request->context = job;
    if ((r = search_call_init(request, request->arena, &job->call)) != 0 ||
        (r = search_call_body(request, &job->call, body, true)) != 0 ||
        (r = search_call_lucene_or_body(request, &job->call, body)) != 0 ||
        (r = read_min_score(request, &job->min_score)) != 0 ||
        (r = request_int(request, "terminate_after", &job->terminate_after)) != 0)
        return r;
    if (job->terminate_after < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "terminateAfter must be > 0");
    if ((r = request_accept(request)) != 0 ||
        (r = preference_check(request, request->dialect, NULL, PREFERENCE_ANY_SHARD, SLICE_NONE, SLICE_NONE, SLICE_NONE,
                              &request->problem)) != 0)
        return r;
    return begin_read(request, &job->call, count_ready);
}
