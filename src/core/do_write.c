/* SPDX-License-Identifier: Apache-2.0 */
/* The command WRITE: its locks, then its items. */
#include "core/core_internal.h"

static struct write_result *make_results(struct command *command)
{
    size_t count = command->write.item_count;
    struct write_result *results = arena_zalloc(&command->arena, (count + 1) * sizeof(*results));

    command->write.results = results;
    command->write.rolled_back = false;
    return results;
}

/* Whether anything could stand against the write, or it belongs to somebody. */
static bool needs_owners(const struct core *core, const struct write_command *write)
{
    return owners__any(core) || write->session.len > 0 || write->transaction.len > 0 || write->fencing_token != 0;
}

static int admit(struct core *core, struct command *command, struct overlay **ret_overlay)
{
    struct write_targets targets = {0};
    const struct overlay *overlay = NULL;
    int r = 0;

    *ret_overlay = NULL;
    if (!needs_owners(core, &command->write))
        return 0;
    if (command->write.transaction.len > 0)
        overlay = owners__overlay(core, command->write.transaction);
    r = write__targets(core, command, overlay, &targets);
    return r < 0 ? tl_trace(r) : owners__admit_write(core, command, &targets, ret_overlay);
}

int core__run_write(struct core *core, struct command *command, struct overlay *overlay)
{
    struct write_command *write = &command->write;
    struct write_run run = {
        .dialect = command->dialect,
        .items = write->items,
        .count = write->item_count,
        .atomic = write->atomic,
        .last = true,
        .overlay = overlay,
        .arena = &command->arena,
        .results = write->results,
    };
    size_t mark = overlay != NULL ? overlay_mark(overlay) : 0;
    bool failed;
    int r = write__run(core, &run, &failed);

    if (r < 0)
        return tl_trace(r);
    write->rolled_back = write->atomic && failed;
    if (write->rolled_back && overlay != NULL)
        overlay_rollback_to(overlay, mark);
    return 0;
}

int core__do_write(struct core *core, struct command *command)
{
    struct overlay *overlay;
    int r;

    make_results(command);
    r = admit(core, command, &overlay);
    if (r != 0 || command->problem.type != PROBLEM_NONE)
        return r;
    return core__run_write(core, command, overlay);
}
