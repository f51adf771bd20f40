/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the items of a WRITE command whose locks are held; see write_command.h. */
#include "core/documents/write_command.h"

#include "base/check.h"
#include "core/documents/provisional.h"
#include "core/documents/request_outcome.h"
#include "core/documents/write_internal.h"
#include "core/unit/unit.h"

void write__refuse_too_large(const struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    bool by_work = core->command_version >= COMMAND_SINCE_WHOLE_WORK;
    problem_set(
        &command->problem, &command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
        "an atomic request holds at most [%zu] bytes of documents, [%zu] with their entries, and [%zu] changes%s; "
        "nothing of it was done%s",
        core->limits.transaction_bytes_max, core->limits.transaction_held_max, core->limits.transaction_changes_max,
        by_work ? ", or fewer if its documents have many values" : "", by_work ? ": send it in several requests" : "");
    for (size_t i = 0; command->write.results != NULL && i < command->write.item_count; i++)
        command->write.results[i].outcome = WRITE_FAILED;
}

void write__refuse_too_long(const struct core *core, struct command *command, uint64_t steps_max)
{
    REQUIRE(command->type == COMMAND_WRITE);
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the scripts of an atomic request take at most [%llu] steps together%s%s; nothing of it was "
                "done: send it in several requests, or let its scripts do less",
                (unsigned long long)steps_max,
                steps_max == core->limits.script.steps_max ? " [--script-steps]" : " in a transaction",
                core->command_version < COMMAND_SINCE_MAPPING_LIMIT ||
                        core->command_version >= COMMAND_SINCE_ATOMIC_PIECES
                    ? ""
                    : ", and the mappings of the indices that it creates at most 50 ms");
    for (size_t i = 0; i < command->write.item_count; i++)
        command->write.results[i].outcome = WRITE_FAILED;
}

bool write_command__in_one_step(const struct core *core, const struct command *command, bool in_pieces)
{
    REQUIRE(command->type == COMMAND_WRITE);
    return command->write.atomic && !in_pieces && command->owner.transaction.len > 0 &&
           core->command_version >= COMMAND_SINCE_ATOMIC_STEP;
}

void write__refuse_above_step(struct command *command)
{
    struct write_command *write = &command->write;
    REQUIRE(command->type == COMMAND_WRITE);
    problem_set(
        &command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
        "the request takes more work than an atomic one in a transaction may, since others would wait for it; nothing "
        "of it was done: divide it, or send it without [atomic], and roll the transaction back if an item fails, or "
        "without [transaction]");
    for (size_t i = 0; write->results != NULL && i < write->item_count; i++)
        write->results[i] = (struct write_result){.outcome = WRITE_FAILED};
    write->postponed_count = 0;
}

void write__refuse_results_too_large(struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    problem_set(
        &command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
        "the sources that an atomic request returns, and the reasons of its failed items, have at most [%zu] bytes; "
        "nothing of it was done: send it in several requests, or ask for less of [_source]",
        WRITE_ATOMIC_RESULT_BYTES_MAX);
    for (size_t i = 0; i < command->write.item_count; i++)
        command->write.results[i] = (struct write_result){.outcome = WRITE_FAILED};
}

void write__postpone(struct core *core, struct command *command, size_t item)
{
    REQUIRE(command->write.results != NULL && item < command->write.item_count);
    if (command->write.results[item].postponed)
        return;
    write_executor__postpone(core, &command->arena, &command->write.results[item]);
    command->write.postponed_count++;
}

void write__postpone_from(struct core *core, struct command *command, size_t first)
{
    struct write_command *write = &command->write;
    struct write_result postponed = {0};
    REQUIRE(write->results != NULL && first <= write->item_count);
    write_executor__postpone(core, &command->arena, &postponed);
    for (size_t i = first; i < write->item_count; i++) {
        struct write_result *result = &write->results[i];
        if (result->postponed)
            continue;
        result->outcome = postponed.outcome;
        result->postponed = true;
        result->problem = postponed.problem;
        write->postponed_count++;
    }
}

/* No item before the range is postponed: those after a postponed one are not run (update.h). */
static void count_postponed(struct write_command *write, struct write_range range)
{
    write->postponed_count = 0;
    for (size_t i = range.begin; i < range.end; i++)
        write->postponed_count += write->results[i].postponed;
}

/* Copies the chosen items, the kept results of their updates, and their results into arrays of `run`. */
static void gather_chosen(struct core *core, struct command *command, const bool *chosen, struct write_run *run)
{
    const struct update_kept *const *kept_all = run->kept;
    const struct update_kept **kept = NULL;
    const struct write_command *write = &command->write;
    struct write_item *items = arena_alloc(&command->arena, (write->item_count + 1) * sizeof(*items));
    struct write_result *results = arena_alloc(&command->arena, (write->item_count + 1) * sizeof(*results));

    if (kept_all != NULL)
        run->kept = kept = arena_alloc(&core->arena, write->item_count * sizeof *kept);
    run->count = 0;
    run->items = items;
    run->results = results;
    for (size_t i = 0; i < write->item_count; i++)
        if (chosen[i]) {
            if (kept_all != NULL)
                kept[run->count] = kept_all[i];
            items[run->count] = write->items[i];
            results[run->count++] = write->results[i];
        }
}

static void scatter_results(struct command *command, const bool *chosen, const struct write_run *run)
{
    size_t next = 0;

    for (size_t i = 0; i < command->write.item_count; i++)
        if (chosen[i])
            command->write.results[i] = run->results[next++];
    ENSURE(next == run->count);
}

int write_command__run(struct core *core, struct command *command, struct write_range range, const bool *chosen,
                       const struct write_run *how, uint64_t *ret_work)
{
    struct write_command *write = &command->write;
    REQUIRE(core->open && write->results != NULL);
    REQUIRE(range.begin <= range.end && range.end <= write->item_count);
    REQUIRE(chosen == NULL || (range.begin == 0 && range.end == write->item_count));
    struct overlay *overlay = how->overlay;
    struct write_run run = {
        .items = write->items + range.begin,
        .count = range.end - range.begin,
        .atomic = write->atomic && !how->in_pieces,
        .in_pieces = how->in_pieces,
        .one_step = write_command__in_one_step(core, command, how->in_pieces),
        .cleanup = write->cleanup,
        .last = chosen == NULL,
        .alone = write->item_count == 1,
        .overlay = overlay,
        .provisional = how->provisional,
        .path_check = how->path_check,
        .parsed = chosen == NULL ? how->parsed : NULL,
        .kept = how->kept,
        .arena = &command->arena,
        .results = write->results + range.begin,
        .work_before = how->work_before,
        .result_bytes_before = how->in_pieces ? 0 : write->result_bytes,
    };
    size_t savepoint = overlay != NULL ? overlay_savepoint(overlay) : 0;
    bool failed;

    *ret_work = 0;
    if (chosen != NULL)
        gather_chosen(core, command, chosen, &run);
    int r = write__run(core, &run, &failed);
    if (r < 0)
        return tl_trace(r);
    if (chosen != NULL)
        scatter_results(command, chosen, &run);
    write->script_steps += run.script_steps;
    write->result_bytes += run.result_bytes;
    core->write_work += run.work;
    *ret_work = run.work;
    count_postponed(write, range);
    write->exceeds_step = run.exceeds_step && !run.one_step;
    if (write->exceeds_step)
        return 0;
    if (run.exceeds_step)
        write__refuse_above_step(command);
    if (run.too_large)
        write__refuse_too_large(core, command);
    if (run.too_long)
        write__refuse_too_long(core, command, write_executor__steps_max(core, true));
    if (run.results_too_large)
        write__refuse_results_too_large(command);
    if (how->in_pieces)
        return 0; /* the last one decides */
    write->rolled_back = write->atomic && failed;
    if (write->rolled_back && overlay != NULL) {
        overlay_rollback_to(overlay, savepoint);
        provisional_clear(how->provisional);
    }
    request_outcome__put(core, command);
    return 0;
}
