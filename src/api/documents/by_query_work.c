/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a by-query call: read a batch of hits, make items of them, submit them as one command, wait,
 * count.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/request/api_internal.h"
#include "api/request/catalog_growth.h"
#include "api/documents/by_query.h"
#include "api/request/request_budget.h"
#include "api/request/source_filter.h"
#include "api/request/problem_reply.h"
#include "api/search/search_service.h"
#include "base/budget.h"
#include "base/clock.h"
#include "mapping/mapping.h"
#include "query/failure.h"
#include "script/script.h"

/*
 * Bytes of sources, read or written, after which a batch is complete: bounds its memory, and lets other requests write
 * between two batches.
 */
#define BATCH_BYTES_MAX ((size_t)2 << 20)
/* How long the batches of a call wait for memory before they are read, and how often they look. */
#define MEMORY_WAIT_US (10 * TL_SECOND)
#define MEMORY_POLL_US (20 * TL_MS)

/* --- Commands ----------------------------------------------------------------------------------------------------- */

void by_query_submit(struct by_query *by, struct command *command)
{
    command->waiter = &by->task->waiter;
    request_ask(by->api, command);
    if (command->type != COMMAND_TXN_LOCK && command->ts > by->written_ts)
        by->written_ts = command->ts;
}

static struct command *new_command(struct by_query *by, size_t count)
{
    struct command *command = command_new(COMMAND_WRITE, by->call.dialect);
    struct write_command *write = &command->write;
    write->items = arena_alloc(&command->arena, (count + 1) * sizeof *write->items);
    command->owner = (struct command_owner){
        .session = arena_copy(&command->arena, by->session),
        .transaction = arena_copy(&command->arena, by->transaction),
        .fencing_token = by->fencing_token,
        .timeout_us = by->options.timeout_us,
    };
    return command;
}

void by_query_store(struct by_query *by, const struct write_item *item)
{
    struct command *command = new_command(by, 1);
    command->owner = (struct command_owner){.timeout_us = by->options.timeout_us};
    command->write.items[0] = *item;
    command->write.items[0].index = arena_copy(&command->arena, item->index);
    command->write.items[0].id = arena_copy(&command->arena, item->id);
    command->write.items[0].source = arena_copy(&command->arena, item->source);
    command->write.item_count = 1;
    command->dialect = DIALECT_7;
    request_ask(by->api, command); /* also of a task that was cancelled */
    command_free(command);
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

/* A batch of hits, and the command that writes them. */
struct batch {
    struct by_query *by;
    struct by_query_status *status;
    struct command *command;
    size_t noops;
    size_t hits;
    size_t bytes; /* of the hits' sources, or of those that a script has made of them if they are longer */
    bool enough;  /* `bytes` has reached its limit */
    int r;        /* the error that ended it; 0: none */
};

static struct slice copy_text(struct batch *batch, struct slice text)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(&batch->command->arena, text);
}

/* Returns: the type to name in an item; empty for the only type of 7.x. */
static struct slice item_type(struct batch *batch, struct slice type)
{
    return slice_is(type, "_doc") ? SLICE_LIT("") : copy_text(batch, type);
}

static void guard_version(struct batch *batch, struct write_item *item, const struct search_hit *hit)
{
    if (batch->by->call.dialect == DIALECT_5) {
        item->version = hit->version;
        return;
    }
    item->if_seq_no = hit->seq_no;
    item->if_primary_term = 1;
}

static void make_item(struct batch *batch, struct write_item *item, const struct search_hit *hit)
{
    struct by_query *by = batch->by;
    *item = WRITE_ITEM_INIT;
    item->dialect = by->call.dialect;
    item->op = by->kind == BY_QUERY_DELETE ? WRITE_DELETE : by->dest.create ? WRITE_CREATE : WRITE_INDEX;
    item->id = copy_text(batch, hit->id);
    item->routing = copy_text(batch, hit->routing);
    item->lease = copy_text(batch, by->options.lease);
    if (by->kind != BY_QUERY_DELETE)
        item->source = copy_text(batch, hit->source);
    if (by->kind != BY_QUERY_REINDEX) {
        item->index = copy_text(batch, hit->index->name);
        item->type = item_type(batch, hit->type);
        guard_version(batch, item, hit);
        return;
    }
    item->index = copy_text(batch, by->dest.index);
    item->type = by->dest.type.len > 0 ? copy_text(batch, by->dest.type) : item_type(batch, hit->type);
    if (by->dest.routing.data != NULL)
        item->routing = by->dest.routing.len > 0 ? copy_text(batch, by->dest.routing) : SLICE_NONE;
    if (by->dest.versioned) {
        item->version_type = by->dest.version_type;
        item->version = hit->version;
    }
}

static int refuse_call(struct by_query *by, const struct problem *problem)
{
    problem_copy(&by->problem, problem, &by->task->arena);
    return SEARCH_REFUSED;
}

static int refuse_text(struct by_query *by, const char *text)
{
    problem_set(&by->problem, &by->task->arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", text);
    return SEARCH_REFUSED;
}

/* Applies the metadata that the script left in ctx. An update by query may change the source only. */
static int apply_metadata(struct batch *batch, struct write_item *item, const struct script_update *update)
{
    struct by_query *by = batch->by;
    if (by->kind != BY_QUERY_REINDEX) {
        const char *changed = update->index_changed     ? "_index"
                              : update->type_changed    ? "_type"
                              : update->id_changed      ? "_id"
                              : update->version_changed ? "_version"
                              : update->routing_changed ? "_routing"
                                                        : NULL;
        if (changed == NULL)
            return 0;
        return refuse_text(by, arena_printf(&by->task->arena, "Modifying [%s] not allowed", changed).data);
    }
    if (update->index_changed && update->index_after.data == NULL) {
        problem_set(&by->problem, &by->task->arena, PROBLEM_NULL_POINTER, "Can't reindex without a destination index!");
        return SEARCH_REFUSED;
    }
    if (update->index_changed)
        item->index = copy_text(batch, update->index_after);
    if (update->type_changed)
        item->type = copy_text(batch, update->type_after);
    if (update->routing_changed)
        item->routing = copy_text(batch, update->routing_after);
    if (update->version_changed) {
        item->version = update->version_after < 0 ? VERSION_ANY : update->version_after;
        item->version_type = update->version_after < 0 ? VERSION_INTERNAL : item->version_type;
    }
    if (update->id_changed) {
        item->id_generated = update->id_after.data == NULL;
        item->id = item->id_generated ? id_document(&by->api->ids, clock_wall_us(), &batch->command->arena)
                                      : copy_text(batch, update->id_after);
    }
    return 0;
}

/* Returns: whether a script sees versions: in 7.x only if a reindex takes them over. */
static bool knows_version(const struct by_query *by)
{
    return by->call.dialect == DIALECT_5 || (by->kind == BY_QUERY_REINDEX && by->dest.versioned);
}

/* Applies ctx after the script to the item. Returns: 0 with *ret_wanted; SEARCH_REFUSED. */
static int apply_update(struct batch *batch, struct write_item *item, const struct script_update *update,
                        bool *ret_wanted)
{
    struct by_query *by = batch->by;
    int r = apply_metadata(batch, item, update);
    if (r != 0)
        return r;
    *ret_wanted = update->op_after == SCRIPT_OP_INDEX || update->op_after == SCRIPT_OP_DELETE;
    if (update->op_after == SCRIPT_OP_OTHER)
        return refuse_text(by, arena_printf(&by->task->arena,
                                            "Operation type [%.*s] not allowed, only [noop, index, delete] are allowed",
                                            SLICE_ARG(update->op_text))
                                   .data);
    if (update->op_after == SCRIPT_OP_INDEX && update->invalid_ctx_keys.data != NULL)
        return refuse_text(by, arena_printf(&by->task->arena, "Invalid fields added to context [%.*s]",
                                            SLICE_ARG(update->invalid_ctx_keys))
                                   .data);
    item->source = copy_text(batch, update->source_after);
    if (update->op_after == SCRIPT_OP_DELETE) {
        item->op = WRITE_DELETE;
        item->source = SLICE_NONE;
        if (by->kind == BY_QUERY_REINDEX) {
            item->version = VERSION_ANY;
            item->version_type = VERSION_INTERNAL;
        }
    }
    return 0;
}

/* Returns: 0 with *ret_wanted; SEARCH_REFUSED. */
static int run_script(struct batch *batch, struct write_item *item, const struct search_hit *hit, bool *ret_wanted)
{
    struct by_query *by = batch->by;
    struct arena arena = ARENA_INIT;
    struct problem problem;
    bool typed = by->call.dialect == DIALECT_5;
    struct script_update update = {.ctx = typed ? SCRIPT_CTX_BY_QUERY_TYPED : SCRIPT_CTX_BY_QUERY,
                                   .index = hit->index->name,
                                   .type = hit->type,
                                   .id = hit->id,
                                   .routing = hit->routing,
                                   .version = knows_version(by) ? hit->version : -1,
                                   .now_ms = by->call.context.now_ms,
                                   .zones = catalog_zones(by->call.catalog),
                                   .source = hit->source,
                                   .params = by->script.script_params,
                                   .account = &by->account};
    *ret_wanted = false;
    if (!task_script_begin(by->task, &by->account))
        return SEARCH_CANCELLED;
    int r = script_run_update(by->compiled, NULL, &arena, &update, &problem);
    if (r > 0 && account_ended(&by->account)) {
        r = SEARCH_CANCELLED;
    } else if (r > 0) {
        r = refuse_call(by, &problem);
    } else if (r == 0) {
        r = apply_update(batch, item, &update, ret_wanted);
        bool nothing = r == 0 && !*ret_wanted;
        batch->status->noops += nothing;
        by->sum.noops += nothing;
        batch->noops += nothing;
    }
    arena_deinit(&arena);
    task_script_end(by->task);
    return r;
}

static int check_source(struct by_query *by, const struct search_hit *hit)
{
    const struct mapping_type *type = mapping_type(hit->index->mapping, hit->type);
    if (by->kind == BY_QUERY_DELETE || type == NULL || type->source_enabled)
        return 0;
    return refuse_text(by, arena_printf(&by->task->arena, "[%.*s][%.*s][%.*s] didn't store _source",
                                        SLICE_ARG(hit->index->name), SLICE_ARG(hit->type), SLICE_ARG(hit->id))
                               .data);
}

/* Filters the source as a search does: by the mapping, then by the call's own filter. */
static int show_source(struct batch *batch, const struct search_hit *hit, struct slice *ret_source)
{
    const struct by_query *by = batch->by;
    const struct mapping_type *type = mapping_type(hit->index->mapping, hit->type);
    const struct source_filter filter = {.fetch = true, .filter = by->call.search.source};
    struct arena *arena = &batch->command->arena;
    int r = mapping_filter_source(type, hit->source, by->call.dialect, arena, ret_source);
    if (r != 0 || (filter.filter.include_count == 0 && filter.filter.exclude_count == 0))
        return r;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    r = source_filter_write(&text, *ret_source, &filter, arena, by->call.dialect);
    *ret_source = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return r;
}

static int take_hit(void *user, const struct search_hit *found)
{
    struct batch *batch = user;
    struct by_query *by = batch->by;
    struct search_hit shown = *found;
    const struct search_hit *hit = &shown;
    struct write_item *item = &batch->command->write.items[batch->command->write.item_count];
    bool wanted = true;
    batch->hits++;
    int r = check_source(by, hit);
    if (r == 0 && by->kind != BY_QUERY_DELETE)
        r = show_source(batch, found, &shown.source);
    if (r != 0)
        return r;
    make_item(batch, item, hit);
    if (by->compiled != NULL)
        r = run_script(batch, item, hit, &wanted);
    batch->command->write.item_count += r == 0 && wanted;
    batch->bytes += hit->source.len > item->source.len ? hit->source.len : item->source.len;
    batch->enough = batch->bytes >= BATCH_BYTES_MAX;
    return r;
}

/* --- Outcomes ----------------------------------------------------------------------------------------------------- */

static void add_failure(struct by_query *by, const struct write_item *item, const struct problem *problem)
{
    struct json_writer writer;
    int status = problem_status(problem);
    by->failure_status = status > by->failure_status ? status : by->failure_status;
    if (by->failure_count++ >= BY_QUERY_FAILURES_MAX)
        return;
    if (by->failures.len > 0)
        buf_lit(&by->failures, ",");
    json_writer_init(&writer, &by->failures);
    json_begin(&writer, '{');
    json_key(&writer, "index");
    json_string(&writer, item->index);
    json_key(&writer, "type");
    json_string(&writer, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    json_key(&writer, "id");
    json_string(&writer, item->id);
    json_key(&writer, "cause");
    problem_write_item(&writer, problem);
    json_key(&writer, "status");
    json_i64(&writer, status);
    json_end(&writer, '}');
}

/* Returns: whether the call may continue. */
static bool count_result(struct batch *batch, struct request *shell, const struct write_item *item,
                         struct write_result *result)
{
    struct by_query *by = batch->by;
    struct by_query_status *both[] = {batch->status, &by->sum};
    for (size_t i = 0; i < 2; i++) {
        struct by_query_status *status = both[i];
        status->created += result->outcome == WRITE_CREATED;
        status->updated += result->outcome == WRITE_UPDATED;
        status->deleted += result->outcome == WRITE_DELETED;
        status->conflicts += result->outcome == WRITE_FAILED && result->problem.type == PROBLEM_VERSION_CONFLICT;
    }
    if (result->outcome != WRITE_FAILED || (result->problem.type == PROBLEM_VERSION_CONFLICT && by->proceed))
        return true;
    write_result_problem(shell, item, result);
    add_failure(by, item, &result->problem);
    return false;
}

/* Counts the results of a command, except of postponed items. */
static int count_results(struct batch *batch, struct command *command)
{
    struct by_query *by = batch->by;
    struct write_command *write = &command->write;
    struct request shell = {.api = by->api, .arena = &command->arena, .dialect = by->call.dialect};
    bool go_on = true;
    if (command->problem.type != PROBLEM_NONE)
        return refuse_call(by, &command->problem);
    for (size_t i = 0; i < write->item_count; i++)
        go_on =
            (write->results[i].postponed || count_result(batch, &shell, &write->items[i], &write->results[i])) && go_on;
    return go_on ? 0 : SEARCH_CANCELLED;
}

/* The client waits for copies that do not exist: every item fails. */
static bool lacks_copies(struct batch *batch)
{
    struct by_query *by = batch->by;
    struct write_command *write = &batch->command->write;
    struct request shell = {
        .api = by->api, .arena = &batch->command->arena, .dialect = by->call.dialect, .catalog = by->call.catalog};
    bool lacks = false;
    for (size_t i = 0; i < write->item_count; i++) {
        if (write_check_copies(&shell, &by->options, &write->items[i], 0) == 0)
            break;
        lacks = true;
        add_failure(by, &write->items[i], &shell.problem);
    }
    return lacks;
}

/* --- Batches ------------------------------------------------------------------------------------------------------ */

/* A batch of n hits lasts n / rate seconds at least; rethrottling counts at once. */
static void throttle_batch(struct by_query *by, struct by_query_status *status, size_t hits)
{
    uint64_t slept = 0;
    while (!atomic_load(&by->task->cancelled)) {
        double rate = task_requests_per_second(by->task);
        double wanted = isinf(rate) ? 0 : (double)hits / rate * 1e6;
        if (wanted <= (double)slept)
            break;
        double left = wanted - (double)slept;
        slept += task_sleep(by->task, left > 3.6e9 ? 3600 * TL_SECOND : (uint64_t)left + 1);
    }
    status->throttled_us += slept;
    by->sum.throttled_us += slept;
}

/*
 * Reserves memory for the indices and fields that a command of a batch makes: the call was admitted before those of the
 * batches so far. Returns: 0; SEARCH_REFUSED; as count_results().
 */
static int submit_batch(struct batch *batch, struct command *command)
{
    struct by_query *by = batch->by;
    struct growth_promise promise = {0};
    if (catalog_growth_reserve_write(by->api, &command->write, slice_from(by->task->action), &by->task->arena, &promise,
                                     &by->problem) != 0)
        return SEARCH_REFUSED;
    by_query_submit(by, command);
    growth_promise_end(&promise);
    if (command->problem.type != PROBLEM_NONE && atomic_load(&batch->by->task->cancelled))
        return SEARCH_CANCELLED; /* it waited for a lock, or was not begun */
    return count_results(batch, command);
}

/* The items of a batch that are still to be written, in the memory of the batch's command. */
struct remaining {
    struct write_item *items;
    size_t count;
};

/* Removes the items that a command, which had the first ones, did not postpone. */
static void remove_written(struct remaining *remaining, const struct write_command *done)
{
    size_t kept = 0;
    for (size_t i = 0; i < remaining->count; i++)
        if (i >= done->item_count || done->results[i].postponed)
            remaining->items[kept++] = remaining->items[i];
    remaining->count = kept;
}

/*
 * Makes a command of the first remaining items, at most `max`. Returns: NULL if the task was
 * cancelled, or with by->problem if the memory budget refuses the mappings that they may make.
 */
static struct command *command_of(struct by_query *by, const struct remaining *remaining, size_t max)
{
    size_t count = remaining->count < max ? remaining->count : max;
    if (atomic_load(&by->task->cancelled) ||
        request_budget_check_growth_for(by->api, slice_from(by->task->action), &by->task->arena, &by->problem) != 0)
        return NULL;
    struct command *command = new_command(by, count);
    for (size_t i = 0; i < count; i++)
        command->write.items[i] = remaining->items[i];
    command->write.item_count = count;
    return command;
}

/*
 * Writes a batch: by its command, and by further ones as long as items are postponed. All of them together wait for
 * locks as long as the client has said.
 */
static int write_batch(struct batch *batch)
{
    struct by_query *by = batch->by;
    const struct write_command *all = &batch->command->write;
    if (all->item_count == 0)
        return 0;
    if (lacks_copies(batch))
        return SEARCH_CANCELLED;
    struct remaining remaining = {arena_alloc(&batch->command->arena, all->item_count * sizeof *remaining.items),
                                  all->item_count};
    memcpy(remaining.items, all->items, all->item_count * sizeof *remaining.items);
    uint64_t until_us = write_wait_end(&by->options);
    int r = submit_batch(batch, batch->command);
    if (r == 0)
        remove_written(&remaining, all);
    size_t max = r == 0 ? write_resubmitted_max(all) : 0;
    while (r == 0 && remaining.count > 0) {
        struct command *command = command_of(by, &remaining, max);
        if (command == NULL)
            return by->problem.type == PROBLEM_NONE ? SEARCH_CANCELLED : SEARCH_REFUSED;
        command->owner.timeout_us = write_wait_left(until_us);
        r = submit_batch(batch, command);
        if (r == 0) {
            remove_written(&remaining, &command->write);
            max = write_resubmitted_max(&command->write);
        }
        command_free(command);
    }
    return r;
}

/*
 * A batch has the time that a request has, so that the call may run for as long as there are
 * documents; a client ends it by cancelling the task.
 */
static void open_account(struct by_query *by)
{
    uint64_t time_us = by->api->options.request_us;
    by->account =
        (struct account){.clock_us = clock_boot_us, .deadline_us = time_us == 0 ? 0 : clock_boot_us() + time_us};
    by->account.flags[ACCOUNT_FLAG_CANCELLED] = &by->task->cancelled;
    by->call.context.account = &by->account;
}

static int refuse_late(struct by_query *by)
{
    problem_set(&by->problem, &by->task->arena, PROBLEM_TIMEOUT,
                "a batch took longer than [%" PRIu64 "ms], the [--request-time] of this server: "
                "make the batches smaller with [scroll_size], or raise [--request-time]",
                by->api->options.request_us / TL_MS);
    return SEARCH_REFUSED;
}

static int refuse_memory(struct by_query *by, const struct budget_guard *memory)
{
    budget_problem(memory, slice_from(by->task->action), &by->task->arena, &by->problem);
    return SEARCH_REFUSED;
}

static bool begin_script(void *task, struct account *account)
{
    return task_script_begin(task, account);
}

static void end_script(void *task)
{
    task_script_end(task);
}

/*
 * Waits until there is memory for a batch: other calls free theirs, and one that was refused it now would end with a
 * part of its work done. All batches of a call share the time: they may fit although the server has little memory.
 */
static void await_memory(struct by_query *by)
{
    while (by->memory_waited_us < MEMORY_WAIT_US && !atomic_load(&by->task->cancelled) &&
           !budget_fits(by->api->options.budget, BUDGET_RETAINED, BATCH_BYTES_MAX))
        by->memory_waited_us += task_sleep(by->task, MEMORY_POLL_US);
}

/*
 * Reads a batch. In the first one, `docs_max` limits the total (negative: unlimited).
 * Returns: 0 with batch->hits; SEARCH_…; fatal codes.
 */
static int read_batch(struct batch *batch, struct search_cursor *cursor, int32_t size, bool first, int64_t docs_max)
{
    struct by_query *by = batch->by;
    struct search_result result;
    struct problem problem = {0};
    struct arena arena = ARENA_INIT;
    struct budget_guard memory;
    budget_guard_init(&memory, by->api->options.budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    by->call.context.memory = arena.guard = &memory;
    by->call.context.arena = &arena;
    by->call.context.end_page = &batch->enough;
    by->call.context.gate = &(struct search_script_gate){begin_script, end_script, by->task};
    open_account(by);
    by->call.search.size = size;
    batch->command = new_command(by, (size_t)size);
    int r = search_next_each(&by->call.context, &by->call.search, cursor, take_hit, batch, &result, &problem);
    task_script_yield(by->task);
    if (memory.refused)
        r = refuse_memory(by, &memory);
    if (r == SEARCH_CANCELLED && !atomic_load(&by->task->cancelled))
        r = refuse_late(by);
    if (r == SEARCH_REFUSED && by->problem.type == PROBLEM_NONE)
        refuse_call(by, &problem);
    if (r == 0 && first) {
        uint64_t total = docs_max >= 0 && result.total > (uint64_t)docs_max ? (uint64_t)docs_max : result.total;
        batch->status->total += total;
        by->sum.total += total;
    }
    if (r == 0 && result.timed_out) { /* as Elasticsearch: the hits of this batch are not changed */
        by->timed_out = true;
        r = SEARCH_CANCELLED;
    }
    search_result_deinit(&result);
    arena_deinit(&arena);
    budget_guard_end(&memory);
    by->call.context.memory = NULL;
    by->call.context.arena = by->call.arena;
    by->call.context.end_page = NULL;
    by->call.context.gate = NULL;
    return r;
}

static int run_slice(struct by_query *by, struct by_query_status *status, int64_t docs_max)
{
    tl_cleanup(search_cursor_freep) struct search_cursor *cursor = search_cursor_new();
    int32_t batch_size = by->call.search.size;
    size_t before = 0;
    int r = 0;
    for (bool first = true; r == 0 && docs_max != 0; first = false) {
        struct batch batch = {.by = by, .status = status};
        int32_t size = docs_max > 0 && docs_max < batch_size ? (int32_t)docs_max : batch_size;
        await_memory(by);
        r = read_batch(&batch, cursor, size, first, docs_max);
        bool end = batch.hits == 0;
        if (r == 0 && !end) {
            if (!first)
                throttle_batch(by, status, before);
            status->batches++;
            by->sum.batches++;
            docs_max -= docs_max > 0 ? (int64_t)batch.hits : 0;
            before = batch.hits;
            r = atomic_load(&by->task->cancelled) ? SEARCH_CANCELLED : write_batch(&batch);
            by_query_progress(by);
        }
        command_free(batch.command);
        if (end)
            break;
    }
    by->call.search.size = batch_size;
    return r;
}

/* --- The call ----------------------------------------------------------------------------------------------------- */

static int compile_script(struct by_query *by)
{
    struct query_script spec = {.source = by->script.script_source,
                                .id = by->script.script_id,
                                .file = by->script.script_file,
                                .lang = by->script.script_lang};
    if (spec.source.data == NULL && spec.id.data == NULL && spec.file.data == NULL)
        return 0;
    struct problem problem = {0};
    int r = by->call.context.compile(by->call.context.compile_user, &spec, SCRIPT_FOR_UPDATE, &by->compiled,
                                     by->call.arena, &problem);
    if (r > 0 && by->call.dialect == DIALECT_5 &&
        problem.type == PROBLEM_SCRIPT) /* in 5.x a script that does not compile is an error of the server */
        problem.status = 500;
    return r > 0 ? refuse_call(by, &problem) : r;
}

/* Returns: the number of shards of the index that has the fewest, at most 20. */
static uint32_t automatic_slices(const struct by_query *by)
{
    uint32_t slices = by->call.context.index_count > 0 ? UINT32_MAX : 1;
    for (size_t i = 0; i < by->call.context.index_count; i++)
        slices = by->call.context.indices[i].shard_count < slices ? by->call.context.indices[i].shard_count : slices;
    return slices > 20 ? 20 : slices;
}

static int run_slices(struct by_query *by)
{
    uint32_t slices = by->slices != 0 ? by->slices : automatic_slices(by);
    int r = 0;
    if (by->docs_max >= 0 && by->docs_max < (int64_t)slices) /* of `slices=auto`, which are known only now */
        return refuse_text(by, "[max_docs] should be >= [slices]");
    by->parts = arena_zalloc(&by->task->arena, slices * sizeof *by->parts);
    by->part_count = slices;
    for (uint32_t i = 0; r == 0 && i < slices; i++) {
        if (slices > 1) {
            by->call.search.slice_max = slices;
            by->call.search.slice_id = i;
        }
        r = run_slice(by, &by->parts[i], by->docs_max >= 0 && slices > 1 ? by->docs_max / slices : by->docs_max);
    }
    return r;
}

/*
 * Checks what Elasticsearch bounds in each shard's search; the failure is one of the search. Without
 * a shard no search reports it, but the number of slices is bounded all the same: each takes memory.
 */
static int check_bounds(struct by_query *by)
{
    const struct search_context *context = &by->call.context;
    bool has_shards = context->index_count > 0;
    struct problem problem = {0}, wrapped;
    if ((!has_shards || scroll_check_size(by->call.dialect, by->batch, by->call.arena, &problem) == 0) &&
        by->slices > BY_QUERY_SLICES_MAX)
        problem_set(&problem, by->call.arena,
                    by->call.dialect == DIALECT_5 && has_shards ? PROBLEM_QUERY_PHASE_EXECUTION
                                                                : PROBLEM_ILLEGAL_ARGUMENT,
                    "The number of slices [%u] is too large. It must be less than [%d]. This limit can be set by "
                    "changing the [index.max_slices_per_scroll] index level setting.",
                    (unsigned)by->slices, BY_QUERY_SLICES_MAX);
    if (problem.type == PROBLEM_NONE)
        return 0;
    if (!has_shards)
        return refuse_call(by, &problem);
    failure_wrap(context, &context->indices[0], false, &problem, &wrapped);
    return refuse_call(by, &wrapped);
}

void by_query_work(struct by_query *by)
{
    struct problem problem = {0};
    int r = search_call_open(&by->call, &problem);
    if (r == SEARCH_REFUSED)
        refuse_call(by, &problem);
    if (r == 0)
        r = check_bounds(by);
    if (r == 0)
        r = compile_script(by);
    if (r == 0)
        r = run_slices(by);
    if (r == SEARCH_TOO_OLD)
        problem_set(&by->problem, &by->task->arena, PROBLEM_TIMESTAMP_TOO_OLD,
                    "the history that this call reads is gone");
    if (r < 0)
        problem_from_code(&by->problem, &by->task->arena, r);
}
