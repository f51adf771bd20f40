/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WRITE command. It runs its items at once if nothing can block it, otherwise it acquires locks
 * first.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/documents/request_outcome.h"
#include "core/documents/write.h"
#include "core/documents/write_command.h"
#include "core/acquire/acquire.h"
#include "core/session/owners.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

static void make_results(struct core *core, struct command *command)
{
    size_t count = command->write.item_count;

    core__work(core, count * WORK_LOCK);
    command->write.results = arena_zalloc(&command->arena, (count + 1) * sizeof(*command->write.results));
    command->write.rolled_back = false;
    command->write.exceeds_step = false;
    command->write.postponed_count = 0;
    command->write.script_steps = 0;
    command->write.result_bytes = 0;
}

/*
 * Whether a lock may conflict with the write: some lock is at, above or below one of its indices.
 */
static bool may_conflict(const struct core *core, const struct write_command *write)
{
    struct slice unlocked = SLICE_NONE;

    if (!owners_any_locks(core->owners))
        return false;
    for (size_t i = 0; i < write->item_count; i++) {
        struct slice index = write->items[i].index;
        if (unlocked.data != NULL && slice_equal(index, unlocked))
            continue;
        /* An unknown name may be an alias, or be created by this write; lock resolution decides. */
        if (catalog_index(core->catalog, index) == NULL || !owners_index_is_unlocked(core->owners, index))
            return true;
        unlocked = index;
    }
    return false;
}

/* Whether the write may be blocked, or belongs to a session or transaction. */
static bool needs_owners(const struct core *core, const struct command *command)
{
    const struct command_owner *terms = &command->owner;
    return terms->session.len > 0 || terms->transaction.len > 0 || terms->fencing_token != 0 ||
           may_conflict(core, &command->write);
}

/*
 * Whether an atomic write is too much for one step by its items and sources alone: it is not begun
 * in vain, and asks for locks once, or if it is to be refused, for none.
 */
static bool surely_exceeds_step(const struct core *core, const struct command *command)
{
    const struct write_command *write = &command->write;
    bool in_txn = command->owner.transaction.len > 0;
    uint64_t work = 0;

    if (!write->atomic || write->item_count < 2 ||
        core->command_version < (in_txn ? COMMAND_SINCE_ATOMIC_STEP : COMMAND_SINCE_ATOMIC_PIECES))
        return false;
    for (size_t i = 0; i < write->item_count && work <= core->atomic_work_max; i++)
        work += WORK_ITEM + WORK_READ + WORK_WRITE + write->items[i].source.len / WORK_BYTES;
    return work > core->atomic_work_max;
}

int core__do_write(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    /* An atomic write that is refused for its size has no results: it may have a million items. */
    if (write_command__in_one_step(core, command, false) && surely_exceeds_step(core, command))
        return acquire__refuse_above_step(core, command);
    if (request_outcome__is_refused(command))
        return 0;
    if (command->write.atomic && command->owner.transaction.len == 0 &&
        command->write.item_count > core->limits.transaction_changes_max) {
        write__refuse_too_large(core, command);
        return 0;
    }
    make_results(core, command);
    int r = request_outcome__find(core, command);
    if (r != REQUEST_OUTCOME_NONE)
        return r;
    bool in_pieces = surely_exceeds_step(core, command);
    if (in_pieces && core->command_version < COMMAND_SINCE_PLACES_OF_WRITES)
        return acquire__write_in_pieces(core, command);
    if (acquire__take_over(core, command, &r))
        return r;
    if (in_pieces)
        return acquire__write_in_pieces(core, command);
    if (needs_owners(core, command))
        return acquire__write(core, command);
    struct write_range all = {0, command->write.item_count};
    uint64_t work;
    r = write_command__run(core, command, all, NULL, &(struct write_run){0}, &work);
    if (r == 0 && command->write.exceeds_step)
        return acquire__write_in_pieces(core, command);
    if (r == 0)
        acquire__end_place(core, command);
    return r;
}
