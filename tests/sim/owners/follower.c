/* SPDX-License-Identifier: Apache-2.0 */
#include "follower.h"
#include "../../lib/bounded.h"

#include <inttypes.h>

#include "core/step/command_group.h"
#include "world.h"

static void begin(struct world *world)
{
    struct other *other = &world->other;

    if (core_open(other->store, &other->limits, &other->core) != 0)
        world_fail(world, "the other core does not open");
    core_begin_chain(other->core, world->seed);
    core_begin_chain(world->core, world->seed);
}

void other_open(struct world *world, const struct core_limits *limits)
{
    struct other *other = &world->other;

    *other = (struct other){.limits = *limits, .store = store_open_mem(), .entry = BUF_INIT(BUF_UNLIMITED)};
    other->replies[0] = other->replies[1] = BUF_INIT(BUF_UNLIMITED);
    effects_init(&other->effects);
    begin(world);
}

/* Takes what has completed from the other core; its replies are noted. */
static void take_completed(struct other *other, bool noted);

static void end(struct world *world)
{
    struct other *other = &world->other;

    core_stop(other->core, &other->effects);
    take_completed(other, false);
    core_close(other->core);
    other->core = NULL;
}

void other_leave(struct world *world)
{
    struct other *other = &world->other;

    if (other->core != NULL)
        end(world);
    buf_clear(&other->entry);
}

void other_close(struct world *world)
{
    struct other *other = &world->other;

    if (other->store == NULL)
        return;
    other_leave(world);
    store_close(other->store);
    buf_deinit(&other->entry);
    buf_deinit(&other->replies[0]);
    buf_deinit(&other->replies[1]);
    other->store = NULL;
}

void other_add(struct world *world, const struct command *command)
{
    struct other *other = &world->other;

    if (other->core == NULL)
        return;
    if (other->entry.len == 0) {
        other->clock = command->clock;
        command_group_begin(&(struct command_group_header){.host = 1, .ts = command->ts, .clock = command->clock}, &other->entry);
    }
    command_group_add(command, &other->entry);
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
    case COMMAND_TXN_LOCK: buf_printf(text, "  %" PRIu64 "\n", command->txn_lock.read_ts); break;
    case COMMAND_TXN_COMMIT:
        buf_printf(text, "  %" PRIu64 " %" PRIu64 "\n", command->txn.commit_ts, command->txn.changes);
        break;
    default: break;
    }
}

void other_note(struct world *world, const struct command *command)
{
    if (world->other.core != NULL)
        note(command, &world->other.replies[0]);
}

static void take_completed(struct other *other, bool noted)
{
    while (!list_empty(&other->effects.completed)) {
        struct command *command = list_entry(other->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (noted && command->type != COMMAND_MAINTAIN)
            note(command, &other->replies[1]);
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

void other_apply(struct world *world)
{
    struct other *other = &world->other;
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;

    if (other->core == NULL || other->entry.len == 0)
        return;
    if (command_group_decode(buf_as_slice(&other->entry), &head, &commands) != 0 ||
        command_group_apply(other->core, &head, &commands, &other->effects) != 0)
        world_fail(world, "another host cannot apply the entry");
    char excess[200];
    if (!bounded(other->core, excess, sizeof excess))
        world_fail(world, "another host: %s", excess);
    take_completed(other, true);
    if (!slice_equal(buf_as_slice(&other->replies[0]), buf_as_slice(&other->replies[1])))
        world_fail(world, "another host replies otherwise:\n%.*s\nand not\n%.*s",
                   SLICE_ARG(buf_as_slice(&other->replies[1])), SLICE_ARG(buf_as_slice(&other->replies[0])));
    if (core_last_ts(other->core) != core_last_ts(world->core))
        world_fail(world, "another host is at another timestamp");
    if (core_chain(other->core) != core_chain(world->core))
        world_fail(world, "another host has written something else");
    buf_clear(&other->entry);
    buf_clear(&other->replies[0]);
    buf_clear(&other->replies[1]);
}

void other_restart(struct world *world, size_t kept)
{
    struct other *other = &world->other;

    if (other->core == NULL)
        return;
    end(world);
    if (kept != SIZE_MAX)
        store_mem_crash(other->store, kept);
    begin(world);
}
