/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of owners__check() that take long: sums and orders; see owners/owners_step.h. */
#include "base/check.h"
#include "base/magic.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/owners/owners_step.h"
#include "core/owners/piece_codec.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"
#include "store/view.h"

/* What each step pays for the next check, and what visits cost, in tens of nanoseconds. */
enum { PAID_BY_STEP = 100, OWNER_COST = 10, ENTRY_COST = 10 };

static void check_counters(const struct session *session)
{
    size_t counted = 0, orphans = 0;
    for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
        const struct ephemeral_counter *counter = &session->ephemeral_counters[i];
        *(counter->orphaned ? &orphans : &counted) += counter->count;
    }
    INSIST(session->ephemeral_count == counted && session->orphan_count == orphans);
}

static void check_sessions(const struct owners *owners)
{
    size_t position = 0, terminating = 0;
    struct slice id;
    void *value;
    while (map_next(&owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        enum session_state state = session__state(session);
        INSIST(slice_equal(session->id, id) && session->owner.session == session);
        INSIST(state == SESSION_LIVE || session->lease.at == TL_TS_MAX);
        INSIST(state < SESSION_REMOVING || (list_empty(&session->transactions) && list_empty(&session->waits)));
        INSIST(state < SESSION_PURGING || session->owner.locks.hold_count == 0);
        check_counters(session);
        terminating += state != SESSION_LIVE;
    }
    INSIST(owners->terminating_count == terminating);
}

static void check_txns(const struct owners *owners)
{
    size_t abandoned = 0, count = 0;
    list_for_each(link, &owners->open_txns)
    {
        const struct txn *txn = list_entry(link, struct txn, of_all);
        enum txn_state state = txn__state(txn);
        INSIST(owners_txn(owners, txn->id) == txn);
        INSIST(state == TXN_OPEN || txn->idle.at == TL_TS_MAX);
        INSIST(state != TXN_WAITING || (MAGIC_VALID(txn->wait, WAIT_MAGIC) && txn->wait->txn == txn));
        if (txn->overlay != NULL)
            overlay_check(txn->overlay);
        abandoned += state == TXN_ABANDONED;
        count++;
    }
    INSIST(owners->abandoned_count == abandoned && owners->txns.count == count);
}

static void check_waits(const struct owners *owners)
{
    size_t bytes = 0, ready = 0, count = 0, kept = 0, kept_writes = 0;
    uint64_t last_ready = 0;
    list_for_each(link, &owners->waits)
    {
        const struct wait *wait = list_entry(link, struct wait, of_all);
        enum wait_state state = wait__state(wait);
        INSIST(state != WAIT_NEW && (wait->command != NULL || wait->deferred != NULL));
        INSIST(state == WAIT_ENDED ? wait->owner == NULL && wait->request == NULL : wait->owner != NULL);
        INSIST(list_linked(&wait->of_cancelled) == (wait->cancelled != WAIT_NOT_CANCELLED));
        INSIST(!wait->kept || state == WAIT_PARKED);
        INSIST(!wait__is_to_be_kept(wait) || (state <= WAIT_READY && !wait->kept));
        INSIST(list_linked(&wait->of_name) ==
               (state != WAIT_ENDED && wait->command != NULL && wait->command->type == COMMAND_WRITE &&
                wait->command->write.request.id.len > 0));
        INSIST(list_linked(&wait->of_resolved) || wait->command == NULL || wait->command->type != COMMAND_LOCK ||
               wait->session == NULL || wait->names_epoch == WAIT_NAMES_AGAIN);
        if (wait__has_place(wait)) {
            bool write = wait->command->type == COMMAND_WRITE;
            INSIST(write ? wait->command->write.request.id.len > 0 : wait->session != NULL);
            kept_writes += write;
        }
        kept += wait->kept;
        bytes += wait->bytes;
        count++;
    }
    INSIST(owners->kept_count == kept && owners->kept_writes.count == kept_writes);
    list_for_each(link, &owners->ready)
    {
        const struct wait *wait = list_entry(link, struct wait, link);
        INSIST(wait->ready && wait->ready_number > last_ready);
        last_ready = wait->ready_number;
        ready++;
    }
    INSIST(owners->wait_chunks.count == count && owners->session_chunks.count == owners->sessions.count);
    INSIST(owners->wait_bytes == bytes && owners->ready_count == ready && last_ready <= owners->last_ready);
}

static size_t cost_of(const struct owners *owners)
{
    size_t cost = lock_table_check_cost(&owners->locks) +
                  OWNER_COST * (owners->sessions.count + owners->txns.count + owners->locks.waiting_count);
    list_for_each(link, &owners->open_txns)
    {
        const struct txn *txn = list_entry(link, struct txn, of_all);
        cost += txn->overlay == NULL ? 0 : ENTRY_COST * overlay_count(txn->overlay);
    }
    return cost;
}

void owners__check(struct core *core)
{
    struct owners *owners = core->owners;
    owners->check_paid += PAID_BY_STEP;
    if (owners->check_paid < owners->check_cost)
        return;
    INSIST(list_empty(&owners->locks.granted) && list_empty(&owners->locks.victims)); /* acquire/grants.h, 1 */
    INSIST(owners->locks.grants_suspended == 0);
    lock_table_check(&owners->locks);
    lock_codec_check_chunks(&owners->locks);
    INSIST(piece_codec__chunks_are_saved(core));
    check_sessions(owners);
    check_txns(owners);
    check_waits(owners);
    owners->check_paid = 0;
    owners->check_cost = cost_of(owners);
}
