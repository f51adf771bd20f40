/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic writes in pieces; README.md, "Atomic writes in pieces".
 *
 * An atomic write that takes more than one step may is continued in a transaction of its own, which no
 * client knows: its items run in batches as those of a bulk of a transaction do, and the step after
 * the last one commits it, or rolls it back if an item failed. The command is the transaction's only
 * one, and under way until its end.
 *
 * 1. Before its last attempt it never waits while it holds a lock, so it is in no cycle that it would
 *    not be in as one step. If a piece is blocked, all is rolled back, and the write waits for the
 *    locks of that piece alone; when they are granted, the next attempt begins with its first item. In
 *    its last one it waits as any transaction does, so that its cost is bounded, whatever others lock.
 * 2. Whatever ends its wait ends the transaction, and the reverse.
 * 3. No client has the transaction's id, and the store gets no outcome of it.
 */
#include "base/check.h"
#include "core/acquire/acquire.h"
#include "core/acquire/acquire_internal.h"
#include "core/acquire/ask.h"
#include "core/command/command.h"
#include "core/documents/request_outcome.h"
#include "core/documents/update.h"
#include "core/documents/write_command.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/transaction/txn_end.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

/*
 * Attempts that release their locks when a piece is blocked; the next one is the last. Each repeats all pieces done
 * before. Two writes of the same documents in opposite orders need one.
 */
enum { PIECES_ATTEMPTS_MAX = 4 };

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

/* Resets the results of earlier attempts, of which nothing is in the store. */
static void reset_results(struct acquisition *at)
{
    struct write_command *write = acquisition__write(at);
    core__work(at->core, write->item_count * WORK_LOCK);
    for (size_t i = 0; i < write->item_count; i++)
        write->results[i] = (struct write_result){0};
    write->script_steps = 0;
    write->result_bytes = 0;
    write->postponed_count = 0;
    write->exceeds_step = false;
    at->steps_before = 0;
}

/*
 * Makes the wait of a write that begins, in a new transaction: all of its items are still to run. Each attempt has an
 * id of its own, by which maintenance finds the provisional entries of one that was rolled back. `pending_items`: the
 * memory of the attempt before, or NULL.
 */
static void make_wait(struct acquisition *at, bool *pending_items, struct session *session, uint64_t deadline)
{
    struct core *core = at->core;
    struct command *command = at->command;
    struct slice id = arena_printf(&command->arena, "atomic-%llu-%llu", (unsigned long long)command->request,
                                   (unsigned long long)core->ts);
    at->txn = txn__make(core, id, session);
    at->txn->created = core->ts;
    at->txn->of_write = true;
    at->txn->timeout_us = CORE_TXN_IDLE_US_MAX;
    core__note_change(core, slice_hash(id));
    txn__touch(core, at->txn); /* until its command waits */
    command->owner.transaction = id;
    if (deadline < TL_TS_MAX) /* the rest of it, from now on */
        command->owner.timeout_us = deadline > core->clock ? deadline - core->clock : 0;
    at->wait = wait__new(core, command, &at->txn->owner.locks, NULL, at->txn);
    at->wait->pending_items =
        pending_items != NULL ? pending_items : arena_alloc(&command->arena, acquisition__write(at)->item_count + 1);
    memset(at->wait->pending_items, true, acquisition__write(at)->item_count);
}

/* Enqueues the wait for its first piece, in a later step. */
static int begin_later(struct acquisition *at)
{
    wait__continue_later(at->core, tl_steal(at->wait));
    at->core->owners->cost_left = at->core->owners->cost_kept = 0;
    return CORE_WAITS;
}

int acquisition__begin_pieces(struct acquisition *at, uint64_t deadline)
{
    REQUIRE(at->core->open && acquisition__write(at)->atomic && at->txn == NULL);
    struct core *core = at->core;
    acquisition__free_wait(at);
    reset_results(at);
    if (core->owners->txns.count >= core->limits.transactions_max) {
        problem_set(&at->command->problem, &at->command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "[%zu] transactions are open already", core->limits.transactions_max);
        return 0;
    }
    make_wait(at, NULL, at->session, deadline);
    return begin_later(at);
}

/* The submitter gets the command back as a write of no transaction, whose effects are seen at once. */
static void leave_transaction(struct acquisition *at)
{
    at->command->owner.transaction = SLICE_NONE;
}

void acquisition__end_pieces(struct acquisition *at)
{
    REQUIRE(at->in_pieces && at->txn != NULL);
    struct txn *txn = tl_steal(at->txn);
    leave_transaction(at);
    acquisition__free_wait(at);
    txn__drop(at->core, txn);
}

bool acquisition__is_last_attempt(const struct acquisition *at)
{
    REQUIRE(at->in_pieces);
    return acquisition__write(at)->attempts >= PIECES_ATTEMPTS_MAX;
}

int acquisition__attempt_again(struct acquisition *at, uint64_t deadline)
{
    REQUIRE(at->in_pieces && at->txn != NULL && at->wait != NULL && deadline > at->core->clock);
    struct core *core = at->core;
    bool *pending_items = at->wait->pending_items;
    struct session *session = at->txn->owner.session;
    if (core->command_version >= COMMAND_SINCE_LAST_ATTEMPT)
        acquisition__write(at)->attempts++;
    ENSURE(acquisition__write(at)->attempts <= PIECES_ATTEMPTS_MAX);
    acquisition__end_pieces(at);
    reset_results(at);
    make_wait(at, pending_items, session, deadline);
    switch (ask__locks(core, at->wait, at->specs.items, at->specs.count, deadline)) {
    case ASK_GRANTED: return begin_later(at);
    case ASK_PARKED: at->wait = NULL; return CORE_WAITS;
    case ASK_BLOCKED:
    case ASK_FULL:
        wait__explain_limit(core, &at->command->arena, &at->command->problem);
        acquisition__end_pieces(at);
        return 0;
    case ASK_VICTIM:
        ask__fail_victim(core, tl_steal(at->wait));
        at->txn = NULL;
        return 0;
    }
    UNREACHABLE();
}

/* --- Pieces ------------------------------------------------------------------------------------------------------- */

int acquisition__find_repetition(struct acquisition *at)
{
    REQUIRE(at->in_pieces && at->wait != NULL);
    const struct write_command *write = acquisition__write(at);
    const bool *pending = at->wait->pending_items;
    /* Its locks keep a repetition from the documents in between; one that generated its ids has other documents. */
    if (!pending[0] && pending[write->item_count - 1])
        return REQUEST_OUTCOME_NONE;
    int r = request_outcome__find(at->core, at->command);
    if (r == 0)
        acquisition__end_pieces(at);
    return r;
}

static bool has_failed(const struct acquisition *at)
{
    const struct write_command *write = acquisition__write(at);
    core__work(at->core, write->item_count * WORK_LOCK);
    for (size_t i = 0; i < write->item_count; i++)
        if (write->results[i].outcome == WRITE_FAILED)
            return true;
    return false;
}

static int commit_pieces(struct acquisition *at)
{
    struct txn *txn = at->txn;
    if (has_failed(at)) {
        acquisition__write(at)->rolled_back = true;
        acquisition__end_pieces(at);
        return 0;
    }
    acquisition__free_wait(at);
    leave_transaction(at);
    int r = txn__commit_write(at->core, txn, at->command);
    if (r < 0)
        return tl_trace(r);
    at->txn = NULL;
    if (r > 0) {
        txn__drop(at->core, txn);
        return 0;
    }
    request_outcome__put(at->core, at->command);
    acquire__end_place(at->core, at->command);
    return 0;
}

/* Leaves the items of the range that were postponed to the next piece. */
static void keep_postponed(struct acquisition *at)
{
    struct write_command *write = acquisition__write(at);
    size_t end = at->range.begin;
    while (end < at->range.end && !write->results[end].postponed)
        end++;
    INSIST(end > at->range.begin); /* a run begins at least one item */
    for (size_t i = end; i < at->range.end; i++)
        write->results[i] = (struct write_result){0};
    write->postponed_count = 0;
    at->range.end = end;
}

int acquisition__run_piece(struct acquisition *at)
{
    REQUIRE(at->in_pieces && at->txn != NULL && at->wait != NULL);
    struct core *core = at->core;
    struct write_command *write = acquisition__write(at);
    if (at->range.begin == write->item_count)
        return commit_pieces(at);
    int r = acquisition__run_in_txn(at);
    if (r < 0)
        return tl_trace(r);
    if (at->command->problem.type == PROBLEM_NONE &&
        write->script_steps > update_command_steps_max(&core->limits.script, true))
        write__refuse_too_long(core, at->command, update_command_steps_max(&core->limits.script, true));
    else if (at->command->problem.type == PROBLEM_NONE && write->result_bytes > WRITE_ATOMIC_RESULT_BYTES_MAX &&
             core->command_version >= COMMAND_SINCE_RESULT_BYTES)
        write__refuse_results_too_large(at->command);
    if (at->command->problem.type != PROBLEM_NONE) {
        acquisition__end_pieces(at);
        return 0;
    }
    keep_postponed(at);
    return acquisition__continue_later(at);
}
