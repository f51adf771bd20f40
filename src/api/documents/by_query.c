/* SPDX-License-Identifier: Apache-2.0 */
/* The by-query calls: their handlers, and what they answer. */
#include "api/documents/by_query.h"

#include <math.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/problem_reply.h"
#include "api/request/readable.h"
#include "api/request/request_budget.h"
#include "api/search/search_service.h"
#include "script/script.h"

/* --- Status and reply --------------------------------------------------------------------------------------------- */

static void write_number(struct json_writer *writer, const char *key, uint64_t value)
{
    json_key(writer, key);
    json_u64(writer, value);
}

static void write_rate(struct json_writer *writer, double rate)
{
    struct buf text = BUF_INIT(64);
    json_float_text(&text, isinf(rate) ? -1.0f : (float)rate);
    json_key(writer, "requests_per_second");
    json_raw(writer, buf_as_slice(&text));
    buf_deinit(&text);
}

/* Where a status is shown: a task has the counts of all kinds, and its result the readable times, too. */
enum status_form { STATUS_REPLY, STATUS_TASK, STATUS_RESULT };

static void write_time(struct json_writer *writer, const char *key, uint64_t us)
{
    struct arena arena = ARENA_INIT;
    json_key(writer, key);
    json_string(writer, readable_time(&arena, us / 1000 * 1000000));
    arena_deinit(&arena);
}

/* Writes the status as Elasticsearch shows it: inside braces of the caller's. `slice`: its number, -1: the whole. */
static void write_status(struct json_writer *writer, const struct by_query *by, const struct by_query_status *status,
                         int slice, double rate, enum status_form form)
{
    if (slice >= 0)
        write_number(writer, "slice_id", (uint64_t)slice);
    write_number(writer, "total", status->total);
    if (by->kind != BY_QUERY_DELETE || form != STATUS_REPLY)
        write_number(writer, "updated", status->updated);
    if (by->kind == BY_QUERY_REINDEX || form != STATUS_REPLY)
        write_number(writer, "created", status->created);
    write_number(writer, "deleted", status->deleted);
    write_number(writer, "batches", status->batches);
    write_number(writer, "version_conflicts", status->conflicts);
    write_number(writer, "noops", status->noops);
    json_key(writer, "retries");
    json_raw(writer, SLICE_LIT("{\"bulk\":0,\"search\":0}"));
    if (form == STATUS_RESULT)
        write_time(writer, "throttled", status->throttled_us);
    write_number(writer, "throttled_millis", status->throttled_us / 1000);
    write_rate(writer, rate);
    if (atomic_load(&by->task->cancelled)) {
        json_key(writer, "canceled");
        json_string(writer, SLICE_LIT("by user request"));
    }
    if (form == STATUS_RESULT)
        write_time(writer, "throttled_until", 0);
    write_number(writer, "throttled_until_millis", 0);
}

/* Writes the status of the whole call, which may be one slice of several calls: that of `slice` in its body. */
static void write_sum(struct json_writer *writer, const struct by_query *by, double rate, enum status_form form)
{
    bool slice = by->slices == 1 && by->call.search.slice_max > 0;
    write_status(writer, by, &by->sum, slice ? (int)by->call.search.slice_id : -1, rate, form);
}

static void write_slices(struct json_writer *writer, const struct by_query *by, double rate, enum status_form form)
{
    if (by->part_count <= 1)
        return;
    json_key(writer, "slices");
    json_begin(writer, '[');
    for (uint32_t i = 0; i < by->part_count; i++) {
        json_begin(writer, '{');
        write_status(writer, by, &by->parts[i], (int)i, rate, form);
        json_end(writer, '}');
    }
    json_end(writer, ']');
}

static void write_response(struct json_writer *writer, const struct by_query *by, enum status_form form)
{
    double rate = task_requests_per_second(by->task);
    json_begin(writer, '{');
    write_number(writer, "took", (uint64_t)(search_clock_us() - by->task->begun_us) / 1000);
    json_key(writer, "timed_out");
    json_bool(writer, by->timed_out);
    write_sum(writer, by, rate, form);
    if (by->rolled_back) {
        json_key(writer, "rolled_back");
        json_bool(writer, true);
    }
    write_slices(writer, by, rate, form);
    json_key(writer, "failures");
    json_begin(writer, '[');
    if (by->failures.len > 0)
        json_raw(writer, buf_as_slice(&by->failures));
    json_end(writer, ']');
    json_end(writer, '}');
}

/* 1.x: the shards of each index, and nothing about the deleted documents. */
static void write_response_old(struct json_writer *writer, const struct by_query *by)
{
    json_begin(writer, '{');
    json_key(writer, "_indices");
    json_begin(writer, '{');
    for (size_t i = 0; i < by->call.context.index_count; i++) {
        const struct search_index *index = &by->call.context.indices[i];
        json_key_slice(writer, index->name);
        json_begin(writer, '{');
        reply_shards(writer, index->shard_count, index->shard_count);
        json_end(writer, '}');
    }
    json_end(writer, '}');
    json_end(writer, '}');
}

static void publish_status(struct by_query *by)
{
    struct buf text = BUF_INIT(1u << 20);
    struct json_writer writer;
    double rate = task_requests_per_second(by->task);
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    write_sum(&writer, by, rate, STATUS_TASK);
    write_slices(&writer, by, rate, STATUS_TASK);
    json_end(&writer, '}');
    task_set_status(by->task, buf_as_slice(&text));
    buf_deinit(&text);
}

/* --- What became of it -------------------------------------------------------------------------------------------- */

/* A document of .tasks, so that the result outlives this process. */
static void store_result(struct by_query *by, const char *member, struct slice json)
{
    struct task *task = by->task;
    struct arena arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    struct write_item *item = arena_alloc(&arena, sizeof *item);
    json_writer_init(&writer, &text);
    task_write_record(&writer, task, member, json);
    *item = WRITE_ITEM_INIT;
    item->op = WRITE_INDEX;
    item->index = SLICE_LIT(".tasks");
    item->id = task_id(by->api, task->number, &arena);
    item->source = buf_as_slice(&text);
    by_query_store(by, item);
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void answer_task(struct by_query *by)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    bool failed = by->problem.type != PROBLEM_NONE;
    json_writer_init(&writer, &text);
    if (failed)
        problem_write_item(&writer, &by->problem);
    else
        write_response(&writer, by, STATUS_RESULT);
    publish_status(by);
    if (failed)
        task_set_error(by->task, buf_as_slice(&text));
    else
        task_set_result(by->task, buf_as_slice(&text));
    store_result(by, failed ? "error" : "response", buf_as_slice(&text));
    buf_deinit(&text);
}

static void answer_request(struct by_query *by)
{
    struct request *request = by->task->request;
    struct json_writer writer;
    request->exchange->timestamp = 0;
    request->written_ts = by->written_ts;
    request_budget_committed(request); /* its changes are reported, even if the reply exceeds the memory budget */
    if (by->problem.type != PROBLEM_NONE) {
        problem_copy(&request->problem, &by->problem, request->arena);
        request_finish(request, REQUEST_REFUSED);
        return;
    }
    int status = by->failure_count > 0 ? by->failure_status : 200;
    reply_begin(request, by->rolled_back ? 409 : status, &writer);
    if (by->legacy_1x && by->failure_count == 0)
        write_response_old(&writer, by);
    else
        write_response(&writer, by, STATUS_REPLY);
    request_finish(request, REQUEST_DONE);
}

/* The task's work. */
static void run_call(struct task *task)
{
    struct by_query *by = task->context;
    if (by->atomic)
        by_query_work_atomic(by);
    else
        by_query_work(by);
    if (task->request != NULL)
        answer_request(by);
    else
        answer_task(by);
}

void by_query_leave_view(struct by_query *by)
{
    core_overlay_unref(tl_steal(by->overlay));
    catalog_unref(tl_steal(by->call.catalog));
    if (by->pinned)
        journal_unpin(by->api->journal, by->call.view.ts);
    by->pinned = false;
}

static void free_call(void *context)
{
    struct by_query *by = context;
    script_unref(by->compiled);
    by_query_leave_view(by);
    buf_deinit(&by->failures);
}

/* --- Handlers ----------------------------------------------------------------------------------------------------- */

static int reply_started(struct request *request, uint64_t task_number)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "task");
    json_string(&writer, task_id(request->api, task_number, request->arena));
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* The call ended before its task was started. */
static void discard_task(struct request *request, void *task)
{
    (void)request;
    task_discard(task);
}

/* The view is there: the task takes over. */
static int by_query_ready(struct request *request)
{
    struct by_query *by = request->context;
    struct task *task = by->task;
    uint64_t number_of_task = task->number;
    by->call.view = request->view;
    by->call.catalog = catalog_ref(request->catalog);
    by->overlay = tl_steal(request->overlay);
    by->pinned = by->overlay == NULL && journal_pin(request->api->journal, by->call.view.ts) == 0;
    task->context = by;
    task->free = free_call;
    task->run = run_call;
    task->requests_per_second = by->rate;
    task->request = by->wait ? request : NULL;
    if (by->wait)
        account_commit(&request->account); /* its changes are reported, however long they took */
    bool wait = by->wait;
    publish_status(by);
    if (!wait && request_budget_refused(request))
        return request_budget_refuse(request);
    if (!wait)
        request_budget_committed(request); /* the task continues, so its number is returned */
    request_pass_on(request);
    int r = task_start(task, request->arena, &request->problem);
    if (r != 0)
        return r;
    return wait ? REQUEST_PENDING : reply_started(request, number_of_task);
}

/* Adds "[a, b]". */
static void describe_names(struct buf *text, struct slice names)
{
    buf_lit(text, "[");
    for (size_t i = 0; i < names.len; i++) {
        buf_byte(text, names.data[i]);
        if (names.data[i] == ',')
            buf_lit(text, " ");
    }
    buf_lit(text, "]");
}

/* Returns: "reindex from [a, b] to [c][_doc]". */
static struct slice describe_call(struct by_query *by)
{
    static const char *const names[] = {"delete-by-query ", "update-by-query ", "reindex from "};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&text, slice_from(names[by->kind]));
    describe_names(&text, by->call.index.data != NULL ? by->call.index : SLICE_LIT("_all"));
    if (by->call.types.len > 0)
        describe_names(&text, by->call.types);
    if (by->kind == BY_QUERY_REINDEX) {
        buf_lit(&text, " to ");
        describe_names(&text, by->dest.index);
        if (by->dest.type.len > 0 || by->call.dialect == DIALECT_7)
            describe_names(&text, by->dest.type.len > 0 ? by->dest.type : SLICE_LIT("_doc"));
    }
    struct slice description = arena_copy(&by->task->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return description;
}

static int begin_by_query(struct request *request, enum by_query_kind kind, const char *action, bool legacy_1x)
{
    struct task *task = task_new(search_service_tasks(request->api->search_service), request, action);
    struct by_query *by = arena_zalloc(&task->arena, sizeof *by);
    struct lock_target *targets = NULL;
    size_t count = 0;
    *by = (struct by_query){.kind = kind,
                            .task = task,
                            .api = request->api,
                            .wait = true,
                            .legacy_1x = legacy_1x,
                            .docs_max = -1,
                            .rate = INFINITY,
                            .slices = 1,
                            .failures = BUF_INIT(64u << 20)};
    request->context = by;
    request_own(request, discard_task, task);
    int r = by_query_read(request, by);
    if (r == 0 && by->transaction.len > 0 && !by->wait)
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                           "[wait_for_completion=false] is not allowed inside a transaction");
    if (r == 0 && by->transaction.len > 0 && by->atomic)
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                           "[atomic] is not allowed inside a transaction, of which the changes of the call are a part");
    if (r != 0)
        return r;
    task->description = describe_call(by);
    search_call_targets(request, &by->call, &targets, &count);
    return request_read(request, targets, count, by_query_ready);
}

int handle_delete_by_query(struct request *request)
{
    return begin_by_query(request, BY_QUERY_DELETE, "indices:data/write/delete/byquery", false);
}

/* 1.x's DELETE /index/type/_query. */
int handle_delete_by_query_old(struct request *request)
{
    return begin_by_query(request, BY_QUERY_DELETE, "indices:data/write/delete/byquery", true);
}

int handle_update_by_query(struct request *request)
{
    return begin_by_query(request, BY_QUERY_UPDATE, "indices:data/write/update/byquery", false);
}

int handle_reindex(struct request *request)
{
    return begin_by_query(request, BY_QUERY_REINDEX, "indices:data/write/reindex", false);
}

void by_query_progress(struct by_query *by)
{
    publish_status(by);
}
