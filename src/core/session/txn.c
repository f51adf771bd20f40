/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: begin, commit, rollback. README-locks.md, "Transactions".
 *
 *     BEGIN ─▶ open ─┬─ COMMIT ────────────────────────▶ committed ────┐ an hour
 *                    └─ ROLLBACK, deadlock, timeout, ──▶ rolled back ──┴─────────▶ purged
 *                       end of session, restart
 *
 * An open transaction is a struct txn: locks in the lock table, writes in an overlay; the store
 * only has a record that it is open. An ended one is only a record of its outcome. One batch
 * replaces the one by the other, together with all writes.
 *
 * Query transactions are not the core's: they belong to a host (journal/query_txns.h).
 */
#include "core/session/txn.h"

#include <stdarg.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/locks/lock.h"
#include "core/session/command_owner.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

/* --- States ------------------------------------------------------------------------------------------------------- */

static const struct sm_state states[TXN_STATE_COUNT] = {
    [TXN_OPEN] = {"open", SM_TO(TXN_WAITING) | SM_TO(TXN_ABANDONED) | SM_TO(TXN_ENDED)},
    [TXN_WAITING] = {"waiting", SM_TO(TXN_OPEN)},
    [TXN_ABANDONED] = {"abandoned", SM_TO(TXN_ENDED)},
    [TXN_ENDED] = {"ended", 0},
};

static const struct sm machine = {"transaction", states, TXN_STATE_COUNT};

enum txn_state txn__state(const struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    return txn->owner.abandoned ? TXN_ABANDONED : txn->wait != NULL ? TXN_WAITING : TXN_OPEN;
}

void txn__check_may_enter(const struct txn *txn, enum txn_state state)
{
    SM_CHECK(&machine, txn__state(txn), state);
}

void txn__begin_wait(struct txn *txn, struct wait *wait)
{
    REQUIRE(wait != NULL);
    txn__check_may_enter(txn, TXN_WAITING);
    txn->wait = wait;
}

void txn__end_wait(struct txn *txn)
{
    if (txn->wait == NULL)
        return;
    txn__check_may_enter(txn, TXN_OPEN);
    txn->wait = NULL;
}

/* --- Open transactions -------------------------------------------------------------------------------------------- */

struct txn *txn__make(struct core *core, struct slice id, struct session *session)
{
    struct owners *owners = core->owners;
    REQUIRE(id.len > 0 && map_get(&owners->txns, id) == NULL);
    struct txn *txn = mem_zalloc(sizeof *txn);
    txn->magic = TXN_MAGIC;
    txn->owner = (struct owner){.kind = OWNER_TXN, .session = session};
    lock_owner_init(&owners->locks, &txn->owner.locks, session == NULL ? NULL : &session->owner.locks, &txn->owner);
    txn->id = mem_dup_slice(id);
    list_append(&owners->open_txns, &txn->of_all);
    if (session != NULL)
        list_append(&session->transactions, &txn->of_session);
    map_put(&owners->txns, txn->id, txn);
    return txn;
}

void txn__free(struct core *core, struct txn *txn)
{
    struct owners *owners = core->owners;
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC) && txn->wait == NULL);
    core__work(core, WORK_OWNER);
    INSIST(owners->abandoned_count >= txn->owner.abandoned);
    deadline_set(&owners->idles, &txn->idle, TL_TS_MAX);
    owners->abandoned_count -= txn->owner.abandoned;
    owner__release_locks(core, &txn->owner);
    lock_owner_deinit(&txn->owner.locks);
    save_pieces__end(core, txn);
    overlay_free(txn->overlay);
    map_remove(&owners->txns, txn->id);
    list_remove(&txn->of_all);
    if (list_linked(&txn->of_session))
        list_remove(&txn->of_session);
    mem_free_slice(&txn->id);
    magic_clear(&txn->magic);
    mem_free(txn);
}

struct overlay *txn__overlay(struct core *core, struct txn *txn)
{
    REQUIRE(core->open);
    REQUIRE(txn__state(txn) != TXN_ABANDONED);
    save_pieces__touch(core, txn);
    if (txn->overlay == NULL)
        txn->overlay = overlay_new();
    return txn->overlay;
}

void txn__touch(struct core *core, struct txn *txn)
{
    REQUIRE(txn__state(txn) != TXN_ABANDONED);
    deadline_set(&core->owners->idles, &txn->idle, deadline_after(core, txn->timeout_us));
}

static void explain_end(struct slice id, const struct txn_outcome *outcome, struct arena *arena,
                        struct problem *ret_problem)
{
    if (outcome->committed)
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_MISSING, "transaction [%.*s] was committed at [%llu]",
                    SLICE_ARG(id), (unsigned long long)outcome->commit_ts);
    else
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %.*s",
                    SLICE_ARG(id), SLICE_ARG(outcome->cause));
}

void txn__explain_missing(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    struct txn_outcome outcome;
    if (id.len > 0 && txn__get_outcome(core, id, arena, &outcome) == 0)
        explain_end(id, &outcome, arena, ret_problem);
    else
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_MISSING,
                    "no transaction [%.*s]: it ended more than an hour ago, or never existed", SLICE_ARG(id));
}

struct slice txn__abandon_text(const struct core *core, const struct txn *txn, enum txn_abandon why,
                               struct arena *arena)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC) && why < TXN_ABANDON_COUNT);
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;
    switch (why) {
    case TXN_HOST_ENDED:
        return plain ? SLICE_LIT("the host that began it for a request was restarted, or was out of the cluster")
                     : SLICE_LIT("the host that had it for a request was restarted, or was out of the cluster");
    case TXN_HOST_CRASHED:
        return plain ? SLICE_LIT("the server's machine crashed, and requests of the transaction may be lost")
                     : SLICE_LIT("the machine of the server went down, and requests of it may be missing");
    case TXN_VICTIM: return SLICE_LIT("it was the victim of a deadlock");
    case TXN_IDLE:
        return arena_printf(arena, "nothing was done with it for %llu ms",
                            (unsigned long long)(txn->timeout_us / TL_MS));
    case TXN_WRITE_ENDED: return SLICE_LIT("its request has ended");
    case TXN_ABANDON_COUNT: break;
    }
    return SLICE_NONE;
}

bool txn__belongs_to(const struct txn *txn, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC) && arena != NULL && ret_problem != NULL);
    if (session.len == 0 || (txn->owner.session != NULL && slice_equal(txn->owner.session->id, session)))
        return true;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "transaction [%.*s] does not belong to session [%.*s]",
                SLICE_ARG(txn->id), SLICE_ARG(session));
    return false;
}

/* --- Rolling back ------------------------------------------------------------------------------------------------- */

uint64_t txn__rollback_cost(const struct core *core, const struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    const struct lock_owner *owner = &txn->owner.locks;
    bool plain = core->command_version < COMMAND_SINCE_PLAIN_LOCKS;
    uint64_t cost = 1 + (plain ? owner->lock_count : owner->hold_count) / LOCKS_PER_COST;
    if (core->command_version >= COMMAND_SINCE_WORK_BATCHES && txn->overlay != NULL)
        cost += overlay_count(txn->overlay) / TXN_RECORDS_PER_COST;
    if (core->command_version < COMMAND_SINCE_WORK_ACCOUNT)
        return cost;
    uint64_t by_work = (txn__rollback_work(txn) + WRITE_WORK_PER_COST - 1) / WRITE_WORK_PER_COST;
    return cost > by_work ? cost : by_work; /* a point for a part of one, not for each kind */
}

uint64_t txn__rollback_work(const struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    uint64_t records = txn->overlay == NULL ? 0 : overlay_count(txn->overlay);
    return WORK_UNIT + WORK_END + WORK_RELEASE * (uint64_t)txn->owner.locks.hold_count + WORK_LOCK * records;
}

void txn__abandon(struct core *core, struct txn *txn, enum txn_abandon why)
{
    REQUIRE(txn->wait == NULL && why < TXN_ABANDON_COUNT);
    txn__check_may_enter(txn, TXN_ABANDONED);
    txn->owner.abandoned = true;
    txn->abandon_reason = why;
    core->owners->abandoned_count++;
    INSIST(core->owners->abandoned_count <= core->owners->txns.count);
    deadline_set(&core->owners->idles, &txn->idle, TL_TS_MAX);
}

void txn__drop(struct core *core, struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC) && txn->of_write && txn->wait == NULL);
    uint64_t cost = txn__rollback_cost(core, txn);
    if (!cost_fits(core, 0, cost)) {
        txn__abandon(core, txn, TXN_WRITE_ENDED);
        return;
    }
    core__work(core, txn->overlay == NULL ? 0 : overlay_count(txn->overlay) * WORK_LOCK);
    if (core->command_version >= COMMAND_SINCE_ENDS_FIT)
        cost_charge_work(core, WRITE_WORK_PER_COST * cost);
    txn__free(core, txn);
}

/* --- Finding ------------------------------------------------------------------------------------------------------ */

struct txn *txn__find(struct core *core, struct slice id, struct slice session, struct arena *arena,
                      struct problem *ret_problem)
{
    struct txn *txn = map_get(&core->owners->txns, id);
    if (txn == NULL) {
        txn__explain_missing(core, id, arena, ret_problem);
        return NULL;
    }
    if (!txn__belongs_to(txn, session, arena, ret_problem))
        return NULL;
    if (txn->owner.abandoned) {
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %.*s",
                    SLICE_ARG(id), SLICE_ARG(txn__abandon_text(core, txn, txn->abandon_reason, arena)));
        return NULL;
    }
    if (txn->owner.session != NULL && txn->owner.session->terminating) {
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED,
                    "transaction [%.*s] was rolled back: its session #%llu has ended", SLICE_ARG(id),
                    (unsigned long long)session_number(txn->owner.session));
        return NULL;
    }
    if (txn->wait != NULL) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a request of transaction [%.*s] is under way",
                    SLICE_ARG(id));
        return NULL;
    }
    ENSURE(txn__state(txn) == TXN_OPEN);
    return txn;
}

struct txn *txn__by_number(const struct core *core, struct slice number)
{
    uint64_t wanted_number;
    if (!slice_to_u64(number, &wanted_number))
        return NULL;
    list_for_each(link, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        if (txn->owner.locks.number == wanted_number)
            return txn;
    }
    return NULL;
}

/* --- BEGIN -------------------------------------------------------------------------------------------------------- */

/* Finds the transaction that `retry_of` names. Returns: false with the problem in the command. */
static bool find_retried(struct core *core, struct command *command, struct txn_outcome *ret_first)
{
    struct slice id = command->txn.retry_of;
    const struct txn *open = map_get(&core->owners->txns, id);
    *ret_first = (struct txn_outcome){0};
    if (id.len == 0)
        return true;
    int r = open != NULL ? 1 : txn__get_outcome(core, id, &command->arena, ret_first);
    if (open != NULL && open->owner.abandoned) { /* it will be rolled back */
        *ret_first = (struct txn_outcome){.mode = TXN_UPDATE, .age = open->owner.locks.age};
        r = 0;
    }
    if (r == 0 && !ret_first->committed && ret_first->mode == TXN_UPDATE)
        return true;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[retry_of] must name an update transaction that was rolled back within the last hour, to be retried "
                "by another; "
                "[%.*s] is not such a transaction",
                SLICE_ARG(id));
    return false;
}

static bool begin_is_valid(struct core *core, struct command *command)
{
    const struct txn_command *request = &command->txn;
    struct txn_outcome outcome;
    if (request->id.len == 0 || map_get(&core->owners->txns, request->id) != NULL ||
        txn__get_outcome(core, request->id, &command->arena, &outcome) == 0)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "there is a transaction [%.*s] already", SLICE_ARG(request->id));
    else if (core->owners->txns.count >= core->limits.transactions_max)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "[%zu] transactions are open already",
                    core->limits.transactions_max);
    else if (request->idle_us == 0 || request->idle_us > CORE_TXN_IDLE_US_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "[timeout] must be above 0 and at most 24h");
    return command->problem.type == PROBLEM_NONE;
}

/*
 * Logs of version 4 and older begin query transactions by commands. Such a command only takes a
 * number, so that later owners get those that their clients know; commands in the transaction find
 * none.
 */
static void refuse_query(struct core *core, struct command *command)
{
    struct lock_owner unused;
    lock_owner_init(&core->owners->locks, &unused, NULL, NULL);
    lock_owner_deinit(&unused);
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "query transactions are not begun by commands");
}

int core__do_txn_begin(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TXN_BEGIN);
    struct txn_command *request = &command->txn;
    struct session *session = NULL;
    struct txn_outcome first;
    if (!command_owner__session(core, command, &session) || !begin_is_valid(core, command) ||
        !find_retried(core, command, &first))
        return 0;
    if (request->mode == TXN_QUERY) {
        refuse_query(core, command);
        return 0;
    }
    struct txn *txn = txn__make(core, request->id, session);
    txn->created = core->ts;
    txn->timeout_us = request->idle_us;
    txn->retry = request->retry_of.len > 0;
    txn->of_host = request->of_host;
    txn->host = request->of_host ? (uint16_t)host_of_number(command->request) : 0;
    if (txn->retry)
        txn->owner.locks.age = first.age;
    ENSURE(txn__state(txn) == TXN_OPEN && txn->owner.session == session);
    core__note_change(core, slice_hash(txn->id));
    txn__touch(core, txn);
    metric_add(&core->metrics.txns_begun, 1);
    request->number = txn->owner.locks.number;
    return 0;
}

bool txn__is_open(const struct core *core, struct slice id)
{
    return owners_txn(core->owners, id) != NULL;
}

tl_ts txn__oldest_update(const struct core *core)
{
    const struct list *txns = &core->owners->open_txns;
    return list_empty(txns) ? TL_TS_MAX : list_entry(txns->next, struct txn, of_all)->created;
}

void core_overlay_unref(struct overlay *overlay)
{
    overlay_free(overlay);
}
