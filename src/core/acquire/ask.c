/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for locks; see ask.h. */
#include "core/acquire/ask.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/session/txn.h"
#include "core/transaction/txn_end.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

enum ask_outcome ask__locks(struct core *core, struct wait *wait, const struct lock_spec *specs, size_t count,
                            uint64_t until)
{
    REQUIRE(core->open && wait->command != NULL);
    bool has_time = until > core->clock, full = has_time && wait__limit_reached(core);
    switch (wait__acquire(core, wait, specs, count, has_time && !full)) {
    case LOCK_GRANTED: return ASK_GRANTED;
    case LOCK_WAITS: wait__park(core, wait, until); return ASK_PARKED;
    case LOCK_CONFLICT: return full ? ASK_FULL : ASK_BLOCKED;
    case LOCK_DEADLOCK: return ASK_VICTIM;
    }
    UNREACHABLE();
}

void ask__explain(struct core *core, struct wait *wait, enum ask_outcome outcome, enum problem_type type)
{
    struct command *command = wait->command;
    REQUIRE(outcome == ASK_BLOCKED || outcome == ASK_FULL);
    if (outcome == ASK_FULL)
        wait__explain_limit(core, &command->arena, &command->problem);
    else
        (void)wait__explain(core, wait, type, HOLDERS_REPORTED_MAX, &command->arena, &command->problem);
}

/* Rolls back the transaction of a victim. No client knows that of an atomic write in pieces: it has no outcome. */
static void end_victim(struct core *core, struct txn *txn, struct command *command, bool in_pieces)
{
    bool unnamed = in_pieces && core->command_version >= COMMAND_SINCE_LAST_ATTEMPT;
    if (unnamed)
        command->owner.transaction = SLICE_NONE;
    if (!unnamed || core->command_version >= COMMAND_SINCE_WORK_ACCOUNT) {
        txn__end_victim(core, txn, command->problem.reason);
    } else {
        core__work(core, txn->overlay == NULL ? 0 : overlay_count(txn->overlay) * WORK_LOCK);
        txn__free(core, txn);
    }
}

void ask__fail_victim(struct core *core, struct wait *wait)
{
    REQUIRE(wait->cause != NULL && wait->cause->type != PROBLEM_NONE);
    struct command *command = wait->command;
    struct txn *txn = wait->txn;
    bool in_pieces = wait__is_in_pieces(wait);
    command->problem = *wait__cause(wait);
    if (txn != NULL && txn->wait == wait) { /* it is parked */
        txn__end_wait(txn);
        wait->txn = NULL;
    }
    wait__free(core, wait);
    if (txn != NULL)
        end_victim(core, txn, command, in_pieces);
}
