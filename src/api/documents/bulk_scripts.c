/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of the items of a _bulk; see bulk_scripts.h. */
#include "api/documents/bulk_scripts.h"

#include "api/request/api_internal.h"
#include "core/documents/update.h"

void bulk_scripts_init(struct bulk_scripts *scripts, const struct request *request, bool atomic)
{
    *scripts = (struct bulk_scripts){
        .atomic = atomic, .named = request->named.id.len > 0, .in_one_step = atomic && request->transaction.len > 0};
}

void bulk_scripts_deinit(struct bulk_scripts *scripts)
{
    for (struct script_run *run = scripts->first; run != NULL; run = run->next) {
        arena_deinit(&run->made);
        arena_deinit(&run->kept_texts);
    }
}

/* --- Limits ------------------------------------------------------------------------------------------------------- */

/* Returns: the steps that the next script of the request may take: all share what those of one command do. */
static uint64_t steps_left(const struct request *request, const struct bulk_scripts *scripts)
{
    uint64_t shared = update_steps_shared(&request->api->options.script);
    return UPDATE_STEPS_MIN + (scripts->steps_taken < shared ? shared - scripts->steps_taken : 0);
}

/* Whether the update of an item runs in the core, whatever it takes. */
static bool is_in_core(const struct bulk_scripts *scripts, const struct script_run *run,
                       const struct write_update *update)
{
    if (scripts->in_one_step && !update_has_script(update))
        return true;
    return (scripts->named && !scripts->atomic) || (run != NULL && run->in_core);
}

void bulk_scripts_limit(const struct request *request, const struct bulk_scripts *scripts, const struct script_run *run,
                        struct arena *arena, struct write_item *item)
{
    if (item->update == NULL)
        return;
    struct write_update *update = arena_alloc(arena, sizeof *update);
    bool in_core = is_in_core(scripts, run, item->update);
    uint64_t most = in_core ? UPDATE_COMMAND_STEPS_MAX : DRY_RUN_STEPS;
    uint64_t left = update_has_script(item->update) ? steps_left(request, scripts) : most;
    *update = *item->update;
    if (run != NULL)
        update->ready = run->ready;
    if (in_core && left <= DRY_RUN_STEPS)
        left = DRY_RUN_STEPS + 1; /* else the core would leave it to others */
    update->script_steps = update->ready.given || left > most ? most : left;
    update->script_postpones = !scripts->atomic && !in_core;
    item->update = update;
}

bool bulk_scripts_takes_long(const struct write_item *item, const struct write_result *result)
{
    return result->script_long && (item->update->ready.given || item->update->script_steps <= DRY_RUN_STEPS);
}

void bulk_scripts_explain_limit(const struct bulk_scripts *scripts, struct command *command)
{
    struct write_command *write = &command->write;
    if (write->results == NULL || (!scripts->named && scripts->first == NULL)) /* refused before it was executed */
        return;
    for (size_t i = 0; i < write->item_count; i++)
        if (write->results[i].script_long && write->items[i].update->script_steps == UPDATE_COMMAND_STEPS_MAX)
            problem_set(&write->results[i].problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                        scripts->atomic
                            ? "the script takes more than [%llu] steps, and an earlier item of this atomic request "
                              "writes its document: let one script do both, or send them in several requests"
                            : "the script takes more than [%llu] steps, the most in a [_bulk] with [Tidelock-Request]: "
                              "send it with [atomic=true], or as an [_update]",
                        (unsigned long long)UPDATE_COMMAND_STEPS_MAX);
}

/* --- Runs outside of the core ------------------------------------------------------------------------------------- */

struct script_run *bulk_scripts_run_of(struct request *request, struct bulk_scripts *scripts,
                                       struct script_run **io_run, int32_t retries, uint64_t until_us)
{
    if (*io_run != NULL)
        return *io_run;
    struct script_run *run = arena_zalloc(request->arena, sizeof *run);
    run->runs = dry_runs_of(retries, until_us);
    run->next = scripts->first;
    scripts->first = run;
    return *io_run = run;
}

/*
 * Scripts of one request may make much, so what they return is kept for one item by itself. An item that has not been
 * done with it, since it waits for a lock, is postponed for its script again.
 */
static void forget_run(struct script_run *run)
{
    run->ready = (struct update_ready){.given = false};
    arena_deinit(&run->made);
}

/* The failure of a script, for the item. */
static struct write_result failure_of(const struct write_result *result, const struct problem *problem)
{
    return (struct write_result){.outcome = WRITE_FAILED,
                                 .index = result->index,
                                 .index_uuid = result->index_uuid,
                                 .shard_count = result->shard_count,
                                 .type = result->type,
                                 .problem = *problem};
}

/* Keeps what the script returned; not given: the document is missing, which the core reports. */
static void keep_ready(struct script_run *run, const struct update_ready *ready)
{
    run->ready = *ready;
    if (ready->source.data != NULL)
        run->ready.source = arena_copy(&run->made, ready->source);
}

/* The scripts of an atomic request are all kept: as much as it may write. Returns: 0; REQUEST_REFUSED. */
static int check_kept(struct request *request, const struct bulk_scripts *scripts)
{
    size_t bytes = 0;
    for (const struct script_run *run = scripts->first; run != NULL; run = run->next)
        bytes += run->ready.source.len;
    if (!scripts->atomic || bytes <= SCRIPT_RUNS_BYTES_MAX)
        return 0;
    return request_refuse(request, PROBLEM_TRANSACTION_TOO_LARGE,
                          "the documents that scripts of an atomic request return have at most [%zu] bytes; nothing of "
                          "it was done: send it in several requests",
                          SCRIPT_RUNS_BYTES_MAX);
}

/* Takes what a run has returned, or its failure. */
static void take_run(struct request *request, struct script_run *run, const struct dry_run *dry, int r,
                     struct write_result *result)
{
    struct problem problem = request->problem;
    request->problem = (struct problem){.type = PROBLEM_NONE};
    if (r == 0)
        keep_ready(run, &dry->ready);
    else
        *result = failure_of(result, &problem);
}

int bulk_scripts_run(struct request *request, struct bulk_scripts *scripts, struct script_run *run,
                     const struct write_item *item, struct view view, struct write_result *result)
{
    struct arena made = ARENA_INIT;
    struct dry_run dry = {.item = item, .view = view, .arena = &made};
    if (!dry_runs_next(&run->runs)) {
        result->postponed = false; /* it has the problem */
        return 0;
    }
    for (struct script_run *other = scripts->first; other != NULL; other = other->next)
        if (!scripts->atomic)
            forget_run(other);
    scripts->steps_taken -= run->steps;
    dry.steps_max = steps_left(request, scripts);
    int r = dry_run_script(request, &dry);
    scripts->steps_taken += run->steps = dry.steps;
    if (r >= 0 && !account_ended(&request->account)) {
        take_run(request, run, &dry, r, result);
        r = check_kept(request, scripts);
    }
    arena_deinit(&made);
    return r;
}

void bulk_scripts_stop(struct script_run *run, struct write_result *result)
{
    struct write_result stopped = *result;
    forget_run(run);
    arena_deinit(&run->kept_texts);
    stopped.index = arena_copy(&run->kept_texts, result->index);
    stopped.type = arena_copy(&run->kept_texts, result->type);
    stopped.index_uuid = arena_copy(&run->kept_texts, result->index_uuid);
    problem_copy(&stopped.problem, &result->problem, &run->kept_texts);
    stopped.source = stopped.routing = stopped.id = SLICE_NONE; /* of items that were done */
    stopped.postponed = true;
    *result = stopped;
}
