/* SPDX-License-Identifier: Apache-2.0 */
/* The work of commands that release what their owner has, as far as it follows from the state before the step. */
#include "base/check.h"
#include "base/magic.h"
#include "core/command/command.h"
#include "core/documents/provisional.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "store/view.h"

static uint64_t session_work(const struct core *core, struct slice id)
{
    const struct session *session = owners_session(core->owners, id);
    return WORK_OWNER + (session == NULL ? 0 : WORK_END_LOCK * (uint64_t)session->owner.locks.hold_count);
}

static uint64_t txn_work(const struct core *core, struct slice id)
{
    const struct txn *txn = owners_txn(core->owners, id);
    if (txn == NULL)
        return WORK_END; /* its outcome is read */
    uint64_t work = WORK_END + (WORK_END_LOCK + WORK_COMMIT_PATH) * (uint64_t)txn->owner.locks.hold_count +
                    WORK_WRITE * (uint64_t)(txn->undo_record_count < UNDO_RECORDS_SINGLY ? txn->undo_record_count
                                                                                         : UNDO_RECORDS_SINGLY);
    const struct overlay *overlay = txn->overlay;
    if (overlay == NULL)
        return work;
    /* A rename visits the locks of its index. */
    if (overlay_count_in(overlay, SPACE_FEED) > 0)
        return CORE_WORK_UNKNOWN;
    return work + WORK_COMMIT * (uint64_t)overlay_count(overlay) + overlay_bytes(overlay) / WORK_BYTES;
}

uint64_t core_end_work(const struct core *core, const struct command *command)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL); /* between steps */
    /* A release executes the requests that wait for the locks. */
    if (!list_empty(&core->owners->waits) || core->owners->deferred_count > 0 || core_next_wait_end(core) != TL_TS_MAX)
        return CORE_WORK_UNKNOWN;
    switch (command->type) {
    case COMMAND_UNLOCK:
        return command->lock.target_count == 0 ? session_work(core, command->owner.session) : CORE_WORK_UNKNOWN;
    case COMMAND_TXN_COMMIT:
        return command->owner.fencing_token == 0 ? txn_work(core, command->txn.id) : CORE_WORK_UNKNOWN;
    case COMMAND_TXN_ROLLBACK: return command->txn.force ? CORE_WORK_UNKNOWN : txn_work(core, command->txn.id);
    default: return CORE_WORK_UNKNOWN;
    }
}
