/* SPDX-License-Identifier: Apache-2.0 */
#include "follower.h"
#include "../../lib/bounded.h"
#include "../../lib/settle.h"

#include <inttypes.h>

#include "core/step/command_group.h"
#include "core/step/save.h"
#include "core/unit/unit.h"
#include "world.h"

void follower_open(struct world *world, const struct core_limits *limits)
{
    struct sim_follower *follower = &world->follower;

    *follower = (struct sim_follower){.limits = *limits, .store = store_open_mem()};
    follower->saved = follower->entry = follower->replies[0] = follower->replies[1] = BUF_INIT(BUF_UNLIMITED);
    effects_init(&follower->effects);
    if (core_open(follower->store, &follower->limits, &follower->core) != 0)
        world_fail(world, "the other core does not open");
    follower->core->provisional_work = world->core->provisional_work;
    follower->core->unlock_work = world->core->unlock_work;
    follower->core->reads_work_max = world->core->reads_work_max;
    follower->core->action_work = world->core->action_work;
    core_begin_chain(follower->core, world->seed);
    core_begin_chain(world->core, world->seed);
}

/* Takes the completed commands from the follower's core and records their replies. */
static void take_completed(struct sim_follower *follower, bool noted);

static void end(struct world *world)
{
    struct sim_follower *follower = &world->follower;

    core_stop(follower->core, &follower->effects);
    take_completed(follower, false);
    core_close(follower->core);
    follower->core = NULL;
}

void follower_close(struct world *world)
{
    struct sim_follower *follower = &world->follower;

    if (follower->store == NULL)
        return;
    end(world);
    store_close(follower->store);
    buf_deinit(&follower->saved);
    buf_deinit(&follower->entry);
    buf_deinit(&follower->replies[0]);
    buf_deinit(&follower->replies[1]);
    follower->store = NULL;
}

void follower_add(struct world *world, const struct command *command)
{
    struct sim_follower *follower = &world->follower;

    if (follower->core == NULL)
        return;
    if (follower->entry.len == 0) {
        follower->clock = command->clock;
        follower->memory_full = command->memory_full;
        const struct command_group_header head = {
            .host = 1, .ts = command->ts, .clock = command->clock, .memory_full = command->memory_full};
        command_group_begin(&head, &follower->entry);
    }
    command_group_add(command, &follower->entry);
}

static void note_results(const struct command *command, struct buf *text)
{
    for (size_t i = 0; command->write.results != NULL && i < command->write.item_count; i++) {
        const struct write_result *result = &command->write.results[i];
        buf_printf(text, "  %d %.*s %" PRId64 " %" PRId64 " %d %.*s\n", result->outcome, SLICE_ARG(result->index),
                   result->version, result->seq_no, result->problem.type, SLICE_ARG(result->problem.reason));
    }
}

static void note(const struct command *command, struct buf *text)
{
    buf_printf(text, "#%" PRIu64 " at %" PRIu64 ": %d %.*s %.*s\n", command->request, command->ts,
               command->problem.type, SLICE_ARG(command->problem.reason), SLICE_ARG(command->problem.details));
    switch (command->type) {
    case COMMAND_WRITE: note_results(command, text); break;
    case COMMAND_LOCK:
        buf_printf(text, "  %" PRIu64 " %" PRIu64 " %zu\n", command->lock.fencing_token, command->lock.waited_us,
                   command->lock.queue_position);
        break;
    case COMMAND_TXN_LOCK:
        buf_printf(text, "  %" PRIu64 " %zu\n", command->txn_lock.read_ts,
                   command->problem.type == PROBLEM_NONE ? command->txn_lock.done : 0);
        break;
    case COMMAND_TXN_COMMIT:
        buf_printf(text, "  %" PRIu64 " %" PRIu64 "\n", command->txn.commit_ts, command->txn.changes);
        break;
    default: break;
    }
}

void follower_note_reply(struct world *world, const struct command *command)
{
    if (world->follower.core != NULL)
        note(command, &world->follower.replies[0]);
}

static void take_completed(struct sim_follower *follower, bool noted)
{
    while (!list_empty(&follower->effects.completed)) {
        struct command *command = list_entry(follower->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (noted && command->type != COMMAND_MAINTAIN)
            note(command, &follower->replies[1]);
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

void follower_apply(struct world *world)
{
    struct sim_follower *follower = &world->follower;
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;

    if (follower->core == NULL || follower->entry.len == 0)
        return;
    if (command_group_decode(buf_as_slice(&follower->entry), &head, &commands) != 0 ||
        command_group_apply(follower->core, &head, &commands, &follower->effects) != 0)
        world_fail(world, "another host cannot apply the entry");
    char excess[200];
    if (!bounded(follower->core, excess, sizeof excess))
        world_fail(world, "another host: %s", excess);
    take_completed(follower, true);
    if (!slice_equal(buf_as_slice(&follower->replies[0]), buf_as_slice(&follower->replies[1])))
        world_fail(world, "another host replies otherwise:\n%.*s\nand not\n%.*s",
                   SLICE_ARG(buf_as_slice(&follower->replies[1])), SLICE_ARG(buf_as_slice(&follower->replies[0])));
    if (core_last_ts(follower->core) != core_last_ts(world->core))
        world_fail(world, "another host is at another timestamp");
    if (core_chain(follower->core) != core_chain(world->core))
        world_fail(world, "another host has written something else");
    buf_clear(&follower->entry);
    buf_clear(&follower->replies[0]);
    buf_clear(&follower->replies[1]);
}

void follower_checkpoint(struct world *world)
{
    struct sim_follower *follower = &world->follower;

    if (follower->core == NULL)
        return;
    buf_clear(&follower->saved);
    if (core_save_rest(follower->core, &follower->saved) != 0)
        world_fail(world, "the other core cannot be saved");
    settle(follower->store);
}

void follower_restart(struct world *world, size_t kept)
{
    struct sim_follower *follower = &world->follower;

    if (follower->core == NULL)
        return;
    end(world);
    store_mem_crash(follower->store, 0);
    follower->core = world_recover(world, follower->store, buf_as_slice(&follower->saved), kept, &follower->effects);
    if (core_chain(follower->core) != core_chain(world->core))
        world_fail(world, "another host has written something else after a restart");
}
