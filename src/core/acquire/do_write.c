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

static void make_results(struct command *command)
{
    size_t count = command->write.item_count;

    command->write.results = arena_zalloc(&command->arena, (count + 1) * sizeof(*command->write.results));
    command->write.rolled_back = false;
    command->write.postponed_count = 0;
    command->write.script_steps = 0;
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
    return may_conflict(core, &command->write) || terms->session.len > 0 || terms->transaction.len > 0 ||
           terms->fencing_token != 0;
}

int core__do_write(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    make_results(command);
    int r = request_outcome__find(core, command);
    if (r != REQUEST_OUTCOME_NONE)
        return r;
    if (command->write.atomic && command->owner.transaction.len == 0 &&
        command->write.item_count > core->limits.transaction_changes_max) {
        write__refuse_too_large(core, command);
        return 0;
    }
    if (needs_owners(core, command))
        return acquire__write(core, command);
    struct write_range all = {0, command->write.item_count};
    uint64_t work;
    return write_command__run(core, command, all, NULL, &(struct write_run){0}, &work);
}
