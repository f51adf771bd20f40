/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's step: deadlines, the command, waits that resume; sessions and locks. See model.h.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* --- Units -------------------------------------------------------------------------------------------------------- */

void om_init(struct om *model, const struct om_limits *limits, uint64_t ts)
{
    memset(model, 0, sizeof(*model));
    model->limits = *limits;
    model->last_ts = ts;
    for (int i = 0; i < OM_SESSIONS; i++)
        model->sessions[i].lease.at = OM_NEVER;
    for (int i = 0; i < OM_TXNS; i++)
        model->txns[i].idle.at = OM_NEVER;
    for (int i = 0; i < OM_WAITS; i++)
        model->waits[i].deadline.at = OM_NEVER;
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            model->dirs[i][j] = -1;
}

void om_begin(struct om *model, uint64_t at)
{
    model->ts = at > model->last_ts ? at : model->last_ts + 1;
    model->dirty = false;
}

void om_end_unit(struct om *model)
{
    model->last_ts = model->last_token > model->ts ? model->last_token : model->ts;
}

void om_complete(struct om *model, struct om_step *step, const struct om_done *done)
{
    if (step->done_count == OM_DONE) {
        om_wrong(step, "the model has no room for another result");
        return;
    }
    step->done[step->done_count] = *done;
    step->done[step->done_count++].ts = model->ts;
}

void om_set_deadline(struct om *model, struct om_deadline *deadline, uint64_t at)
{
    *deadline = (struct om_deadline){at, ++model->last_deadline};
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

int om_wait_new(struct om *model, struct om_step *step, const struct om_done *done, int owner, uint32_t session,
                int txn)
{
    int slot = 0;

    while (slot < OM_WAITS - 1 && model->waits[slot].used)
        slot++;
    if (model->waits[slot].used)
        om_wrong(step, "the model has no room for another wait");
    struct om_wait *wait = &model->waits[slot];
    memset(wait, 0, sizeof(*wait));
    wait->used = true;
    wait->state = OM_NEW;
    wait->op = done->op;
    wait->done = *done;
    wait->owner = owner < 0 ? om_wait_owner(slot) : owner;
    wait->session = session;
    wait->txn = txn;
    wait->since = model->clock;
    wait->deadline.at = OM_NEVER;
    if (owner < 0) {
        model->born[wait->owner] = ++model->last_born;
        model->age[wait->owner] = model->ts;
    }
    return slot;
}

void om_wait_park(struct om *model, int slot, uint64_t until)
{
    struct om_wait *wait = &model->waits[slot];

    wait->until = until;
    om_set_deadline(model, &wait->deadline, until);
    if (wait->parked)
        return;
    wait->parked = true;
    wait->parked_number = ++model->last_parked;
    if (wait->txn >= 0)
        om_set_deadline(model, &model->txns[wait->txn].idle, OM_NEVER);
}

void om_wait_free(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];

    wait->ready = false;
    wait->parked = false;
    om_withdraw(model, step, slot);
    if (wait->owner == om_wait_owner(slot))
        om_release_all(model, step, wait->owner);
    wait->used = false;
    wait->state = OM_UNUSED;
    wait->deadline.at = OM_NEVER;
}

void om_wait_ready(struct om *model, int slot)
{
    struct om_wait *wait = &model->waits[slot];

    if (wait->ready)
        return;
    wait->ready = true;
    wait->ready_number = ++model->last_ready;
    wait->deadline.at = OM_NEVER;
}

void om_wait_continue_later(struct om *model, struct om_step *step, int slot, uint64_t until)
{
    struct om_wait *wait = &model->waits[slot];

    om_withdraw(model, step, slot);
    wait->state = OM_NEW;
    if (!wait->parked)
        om_wait_park(model, slot, until);
    wait->until = until;
    om_set_deadline(model, &model->txns[wait->txn].idle, OM_NEVER);
    om_wait_ready(model, slot);
}

/* Rule 21: ends a wait that a later unit answers: it has no owner and no locks any more. */
static void end_later(struct om *model, struct om_step *step, int slot, enum om_problem problem)
{
    struct om_wait *wait = &model->waits[slot];

    om_withdraw(model, step, slot);
    if (wait->owner == om_wait_owner(slot))
        om_release_all(model, step, wait->owner);
    wait->session = 0;
    wait->txn = -1;
    wait->parked = false;
    wait->cause = problem;
    wait->ended = true;
    om_wait_ready(model, slot);
}

/* Rule 17: a bulk fails as a whole, unless its transaction has done batches of it and lives on. */
static void fail_whole_or_rest(const struct om_wait *wait, struct om_done *done, enum om_problem problem)
{
    if (!wait->partial) {
        done->problem = problem;
        return;
    }
    for (int i = 0; i < wait->op->count; i++)
        if (wait->left[i])
            done->results[i] = (struct om_result){.outcome = OM_FAILED, .problem = (uint8_t)problem};
}

static void fail(struct om *model, struct om_step *step, int slot, enum om_problem problem, bool now)
{
    struct om_wait *wait = &model->waits[slot];
    struct om_done done = wait->done;
    int txn = wait->txn;

    if (wait->op != NULL && wait->op->txn != 0 && txn < 0)
        wait->partial = false;
    if ((wait->partial && wait->op->txn == 0) || !now) {
        end_later(model, step, slot, problem);
    } else {
        fail_whole_or_rest(wait, &done, problem);
        om_wait_free(model, step, slot);
        om_complete(model, step, &done);
    }
    if (txn >= 0)
        om_txn_touch(model, txn);
}

void om_wait_fail(struct om *model, struct om_step *step, int slot, enum om_problem problem)
{
    fail(model, step, slot, problem, true);
}

void om_wait_end(struct om *model, struct om_step *step, int slot, enum om_problem problem)
{
    bool now = model->cost_left > 0;

    om_charge(&model->cost_left, now);
    fail(model, step, slot, problem, now);
}

int om_wait_cost(const struct om_wait *wait)
{
    int items = 0;

    if (wait->op == NULL || wait->op->kind == OP_READ || wait->op->kind == OP_LOCK)
        return 1;
    if (wait->op->kind != OP_WRITE)
        return 20;
    for (int i = 0; i < wait->op->count; i++)
        items += !wait->partial || wait->left[i];
    return items > 0 ? items : 1;
}

/* --- Grants and deadlock victims ---------------------------------------------------------------------------------- */

/* Returns: the slot whose event in this state is the oldest; -1: none. */
static int next_event(const struct om *model, enum om_state state)
{
    int found = -1;

    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        if (wait->state == state && wait->event != 0 && (found < 0 || wait->event < model->waits[found].event))
            found = i;
    }
    return found;
}

static void end_victim(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];
    struct om_done done = wait->done;
    int txn = wait->txn;

    wait->event = 0;
    if (txn < 0 && wait->op->kind == OP_WRITE) {
        end_later(model, step, slot, OM_DEADLOCK);
        return;
    }
    done.problem = OM_DEADLOCK;
    wait->txn = -1;
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
    if (txn >= 0)
        om_txn_abort(model, step, txn, false);
}

/* Completes a LOCK that was granted. */
static void answer_granted(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];
    struct om_done done = wait->done;
    int txn = wait->txn;

    done.waited = model->clock - wait->since;
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
    if (txn >= 0)
        om_txn_touch(model, txn);
}

static void make_ready(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];

    wait->event = 0;
    if (wait->op != NULL && wait->op->kind == OP_LOCK)
        answer_granted(model, step, slot);
    else
        om_wait_ready(model, slot);
}

void om_settle(struct om *model, struct om_step *step)
{
    int slot;

    for (;;) {
        if ((slot = next_event(model, OM_REFUSED)) >= 0)
            end_victim(model, step, slot);
        else if ((slot = next_event(model, OM_GRANTED)) >= 0)
            make_ready(model, step, slot);
        else
            return;
    }
}

static void resume_ddl(struct om *model, struct om_step *step, int slot);

static void answer_ended(struct om *model, struct om_step *step, int slot)
{
    struct om_done done = model->waits[slot].done;

    fail_whole_or_rest(&model->waits[slot], &done, model->waits[slot].cause);
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
}

static void resume_one(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];

    if (wait->ended && wait->op->kind == OP_WRITE && wait->op->txn == 0 &&
        (wait->partial || wait->cause == OM_DEADLOCK))
        om_write_ended(model, step, slot);
    else if (wait->ended)
        answer_ended(model, step, slot);
    else if (wait->op == NULL)
        om_deferred_resume(model, step, slot);
    else if (wait->op->kind == OP_READ)
        om_txn_read_resume(model, step, slot);
    else if (wait->op->kind == OP_RENAME)
        om_rename_resume(model, step, slot);
    else if (wait->op->kind != OP_WRITE)
        resume_ddl(model, step, slot);
    else
        om_write_resume(model, step, slot);
}

/* Rule 17: resumes ready waits while the step has cost left. */
static void resume(struct om *model, struct om_step *step)
{
    while (model->cost_left > 0) {
        int found = -1;
        for (int i = 0; i < OM_WAITS; i++)
            if (model->waits[i].ready && (found < 0 || model->waits[i].ready_number < model->waits[found].ready_number))
                found = i;
        if (found < 0 || step->wrong != NULL)
            return;
        model->waits[found].ready = false;
        om_begin(model, model->last_ts + 1);
        int cost = om_wait_cost(&model->waits[found]);
        resume_one(model, step, found);
        om_charge(&model->cost_left, cost);
        om_settle(model, step);
        om_end_unit(model);
    }
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

int om_session_slot(const struct om *model, uint32_t serial)
{
    for (int i = 0; i < OM_SESSIONS; i++)
        if (serial != 0 && model->sessions[i].serial == serial && model->sessions[i].terminating == 0)
            return i;
    return -1;
}

static int session_count(const struct om *model)
{
    int count = 0;

    for (int i = 0; i < OM_SESSIONS; i++)
        count += model->sessions[i].serial != 0;
    return count;
}

static void renew(struct om *model, struct om_session *session)
{
    om_set_deadline(model, &session->lease, om_after(model, session->ttl));
}

static void open_session(struct om *model, const struct om_op *op, struct om_done *done)
{
    int slot = 0;

    if (session_count(model) >= model->limits.sessions) {
        done->problem = OM_LIMIT;
        return;
    }
    while (model->sessions[slot].serial != 0)
        slot++;
    struct om_session *session = &model->sessions[slot];
    *session = (struct om_session){.serial = op->session, .ttl = op->us, .action_count = op->count};
    memcpy(session->actions, op->items, sizeof(session->actions));
    model->born[om_session_owner(slot)] = ++model->last_born;
    model->age[om_session_owner(slot)] = model->ts;
    renew(model, session);
    done->token = model->ts + session->ttl;
}

/* Returns: whether it waits. */
static bool session_command(struct om *model, struct om_step *step, const struct om_op *op, struct om_done *done)
{
    int slot = om_session_slot(model, op->session);

    if (op->kind == OP_OPEN) {
        open_session(model, op, done);
        return false;
    }
    if (op->kind == OP_DETACH) { /* a replaced attachment is ignored */
        if (slot >= 0 && model->sessions[slot].attachment == op->attachment)
            om_end_session(model, step, slot, false);
        return false;
    }
    if (slot < 0) {
        done->problem = OM_SESSION_MISSING;
    } else if (op->if_detached && model->sessions[slot].attachment != 0) {
        done->problem = OM_ATTACHED;
    } else if (op->kind == OP_CLOSE) {
        if (om_end_session(model, step, slot, !op->force)) {
            model->sessions[slot].close_op = op;
            return true;
        }
    } else {
        if (op->kind == OP_ATTACH)
            model->sessions[slot].attachment = op->attachment;
        renew(model, &model->sessions[slot]);
        done->token = model->ts + model->sessions[slot].ttl;
    }
    return false;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

/* Returns: the owner that requests locks; -1 with the problem. */
static int asker(const struct om *model, const struct om_op *op, int *ret_txn, enum om_problem *ret_problem)
{
    int slot;

    *ret_txn = -1;
    if (op->txn == 0) {
        slot = om_session_slot(model, op->session);
        if (slot < 0)
            *ret_problem = OM_SESSION_MISSING;
        return slot < 0 ? -1 : om_session_owner(slot);
    }
    slot = om_txn_find(model, op->txn, op->session, ret_problem);
    *ret_txn = slot;
    return slot < 0 ? -1 : om_txn_owner(slot);
}

static void lock_command(struct om *model, struct om_step *step, const struct om_op *op, struct om_done *done)
{
    int txn, owner = asker(model, op, &txn, &done->problem);

    for (int i = 0; owner >= 0 && i < op->count; i++) {
        const struct om_index *index = &model->indices[op->specs[i].on.index];
        if (op->specs[i].on.kind == OM_DIR && index->there && !index->mapped)
            done->problem = OM_ILLEGAL; /* no document can be there */
    }
    if (done->problem == OM_FINE && om_lock_count(model, owner) + op->count > model->limits.locks)
        done->problem = OM_LIMIT;
    if (done->problem != OM_FINE) {
        om_complete(model, step, done);
        return;
    }
    bool may_wait = op->us > 0 && !om_full(model);
    int slot = om_wait_new(model, step, done, owner, txn < 0 ? op->session : 0, txn);
    switch (om_ask(model, step, slot, op->specs, op->count, may_wait)) {
    case OM_YES: answer_granted(model, step, slot); return;
    case OM_WAIT: om_wait_park(model, slot, om_after(model, op->us)); return;
    case OM_NO: done->problem = op->us > 0 ? OM_LIMIT : OM_LOCK_CONFLICT; break;
    case OM_CYCLE: done->problem = OM_DEADLOCK; break;
    }
    om_wait_free(model, step, slot);
    om_complete(model, step, done);
    if (done->problem == OM_DEADLOCK && txn >= 0)
        om_txn_abort(model, step, txn, false);
}

/* Locks that are named are released together, or the first one alone. */
static void release_named(struct om *model, struct om_step *step, int slot, const struct om_op *op,
                          struct om_done *done)
{
    om_suspend_grants(model);
    done->names = model->unlocks_one ? 1 : op->count;
    for (int i = 0; i < done->names; i++)
        done->released += om_release(model, step, om_session_owner(slot), op->specs[i].on);
    om_resume_grants(model, step);
}

static void unlock_command(struct om *model, struct om_step *step, const struct om_op *op, struct om_done *done)
{
    int slot = om_session_slot(model, op->session);

    if (op->txn != 0)
        done->problem = OM_ILLEGAL;
    else if (slot < 0)
        done->problem = OM_SESSION_MISSING;
    else if (op->count == 0)
        done->released = (uint64_t)om_release_all(model, step, om_session_owner(slot));
    else
        release_named(model, step, slot, op, done);
}

/* Returns: the slot of the oldest parked wait of a request that was parked after `last`; -1: none. */
static int next_parked(const struct om *model, uint64_t last)
{
    int found = -1;

    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        if (wait->used && wait->parked && wait->op != NULL && wait->parked_number > last &&
            (found < 0 || wait->parked_number < model->waits[found].parked_number))
            found = i;
    }
    return found;
}

/* Ends all waits: the server is about to stop. Rule 21: none is granted by the end of another one. */
static void cancel_all(struct om *model, struct om_step *step)
{
    uint64_t last = 0;

    om_suspend_grants(model);
    for (int slot; (slot = next_parked(model, last)) >= 0;) {
        last = model->waits[slot].parked_number;
        om_wait_end(model, step, slot, OM_STOPPING);
    }
    om_resume_grants(model, step);
}

static void cancel_command(struct om *model, struct om_step *step, const struct om_op *op)
{
    if (op->target == 0) {
        cancel_all(model, step);
        return;
    }
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].parked && model->waits[i].op != NULL &&
            model->waits[i].op->number == op->target) {
            om_wait_fail(model, step, i, OM_LOCK_TIMEOUT);
            return;
        }
}

/* --- Deadlines ---------------------------------------------------------------------------------------------------- */

static bool earlier(const struct om_deadline *a, const struct om_deadline *b)
{
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static const struct om_deadline never = {OM_NEVER, UINT64_MAX};

static int first_lease(const struct om *model, struct om_deadline *ret_first)
{
    int found = -1;

    *ret_first = never;
    for (int i = 0; i < OM_SESSIONS; i++)
        if (model->sessions[i].serial != 0 && earlier(&model->sessions[i].lease, ret_first)) {
            *ret_first = model->sessions[i].lease;
            found = i;
        }
    return found;
}

static int first_wait(const struct om *model, struct om_deadline *ret_first)
{
    int found = -1;

    *ret_first = never;
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && earlier(&model->waits[i].deadline, ret_first)) {
            *ret_first = model->waits[i].deadline;
            found = i;
        }
    return found;
}

static int first_idle(const struct om *model, struct om_deadline *ret_first)
{
    int found = -1;

    *ret_first = never;
    for (int i = 0; i < OM_TXNS; i++)
        if (model->txns[i].serial != 0 && earlier(&model->txns[i].idle, ret_first)) {
            *ret_first = model->txns[i].idle;
            found = i;
        }
    return found;
}

/* Whether the next OP_TICK continues terminations or deferred cleanup. */
static bool has_cleanup(const struct om *model)
{
    return om_any_terminating(model) || om_has_ready_cleanup(model);
}

uint64_t om_next_deadline(const struct om *model)
{
    struct om_deadline lease, wait, idle;

    if (has_cleanup(model) || om_ready_count(model) > 0 || om_txn_any_abandoned(model) ||
        om_has_pending_grants(model)) /* one batch per step */
        return 0;
    first_lease(model, &lease);
    first_wait(model, &wait);
    first_idle(model, &idle);
    uint64_t first = lease.at < wait.at ? lease.at : wait.at;
    return idle.at < first ? idle.at : first;
}

/* Whether any deadline is due. */
static bool any_expired(const struct om *model, uint64_t barrier_clock)
{
    struct om_deadline lease, wait, idle;

    first_lease(model, &lease);
    first_wait(model, &wait);
    first_idle(model, &idle);
    return (wait.at != OM_NEVER && wait.at <= model->clock) || (lease.at != OM_NEVER && lease.at <= barrier_clock) ||
           (idle.at != OM_NEVER && idle.at <= barrier_clock);
}

static void time_out(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];
    struct om_done done = wait->done;
    int txn = wait->txn;

    if (wait->op->kind == OP_WRITE) {
        om_write_timed_out(model, step, slot);
        return;
    }
    done.waited = model->clock - wait->since;
    done.problem = OM_LOCK_TIMEOUT;
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
    if (txn >= 0)
        om_txn_touch(model, txn);
}

/*
 * Rule 22: begins the termination of expired sessions, in order, then cleans up while *left > 0.
 * Nothing is granted before the last cleanup of the step.
 */
static void clean_sessions(struct om *model, struct om_step *step, uint64_t ts, uint64_t barrier_clock, int *left)
{
    struct om_deadline first;
    int slot = first_lease(model, &first), all = *left;
    bool run_due = slot >= 0 && first.at <= barrier_clock;

    if (!run_due && (om_first_to_clean(model) < 0 || all == 0))
        return;
    om_suspend_grants(model);
    if (run_due) {
        om_begin(model, ts);
        for (; slot >= 0 && first.at <= barrier_clock; slot = first_lease(model, &first))
            om_begin_termination(model, step, slot, false);
        om_charge_ended(model, left);
        if (*left == 0)
            om_resume_grants(model, step);
        om_settle(model, step);
        om_end_unit(model);
    }
    while (*left > 0 && (slot = om_first_to_clean(model)) >= 0) {
        om_begin(model, ts);
        om_continue_cleanup(model, step, slot, left, all);
        if (*left == 0 || om_first_to_clean(model) < 0)
            om_resume_grants(model, step);
        om_settle(model, step);
        om_end_unit(model);
    }
}

/* Rolls back abandoned transactions, with the rest of the batch. */
static void end_abandoned(struct om *model, struct om_step *step, uint64_t ts, int *left)
{
    if (*left == 0 || !om_txn_any_abandoned(model))
        return;
    om_begin(model, ts);
    om_txn_end_abandoned(model, step, left);
    om_settle(model, step);
    om_end_unit(model);
}

/* Rule 24. Waits expire by the clock; leases and idle transactions by the input barrier. */
static void run_due(struct om *model, struct om_step *step, uint64_t ts, uint64_t barrier_clock)
{
    while (model->cost_left > 0 && step->wrong == NULL) { /* one batch */
        struct om_deadline wait, idle;
        int waiting = first_wait(model, &wait), idling = first_idle(model, &idle);
        bool wait_expired = wait.at <= model->clock && wait.at != OM_NEVER;
        bool idle_expired = idle.at <= barrier_clock && idle.at != OM_NEVER;
        if (!wait_expired && !idle_expired)
            return;
        om_begin(model, ts);
        if (wait_expired && (!idle_expired || wait.at <= idle.at)) {
            int cost = om_wait_cost(&model->waits[waiting]);
            time_out(model, step, waiting);
            om_charge(&model->cost_left, cost);
        } else {
            om_charge(&model->cost_left, 1);
            om_txn_abort(model, step, idling, false);
        }
        om_settle(model, step);
        om_end_unit(model);
    }
}

/*
 * Rule 24. What cleanup has left of the account of OP_TICK, and at least 1 for timeouts if any are due,
 * and for ready waits if there are any. The limits are so low that cleanup keeps nothing for them.
 */
static void begin_timeouts(struct om *model, bool expired)
{
    model->cost_kept = om_ready_count(model) > 0;
    model->cost_left -= model->cost_left > 0 && model->cost_kept;
    if (expired && model->cost_left == 0)
        model->cost_left = 1;
}

static void purge_step(struct om *model, struct om_step *step, uint64_t ts)
{
    om_begin(model, ts);
    om_purge_batch(model, step);
    om_settle(model, step);
    om_end_unit(model);
}

/* --- Restart ------------------------------------------------------------------------------------------------------ */

/* Sessions that were attached to the server lose their attachment; their leases begin anew. */
static void restart(struct om *model, struct om_step *step)
{
    int left = model->limits.piece;

    om_txn_end_abandoned(model, step, &left);
    for (;;) {
        int found = -1;
        for (int i = 0; i < OM_SESSIONS; i++)
            if (model->sessions[i].serial != 0 && model->sessions[i].terminating == 0 &&
                model->sessions[i].attachment != 0 &&
                (found < 0 || model->born[om_session_owner(i)] < model->born[om_session_owner(found)]))
                found = i;
        if (found < 0)
            break;
        model->sessions[found].attachment = 0;
        renew(model, &model->sessions[found]);
    }
}

/* --- DDL ---------------------------------------------------------------------------------------------------------- */

static void run_ddl(struct om *model, struct om_step *step, struct om_done *done)
{
    bool there = model->indices[done->op->index].there;

    if (done->op->kind == OP_CREATE_INDEX && there)
        done->problem = OM_EXISTS;
    else if (done->op->kind == OP_CREATE_INDEX)
        om_make_index(model, step);
    else if (!there)
        done->problem = OM_NO_INDEX;
    else if (done->op->kind == OP_DELETE_INDEX)
        om_drop_index(model, step);
    else if (done->op->kind == OP_BLOCK)
        model->indices[done->op->index].blocked = done->op->on;
    else if (done->op->kind == OP_STATE)
        model->indices[done->op->index].closed = done->op->on;
}

/* A refused DDL command rolls back its unit, so it runs in an empty one. */
static void finish_ddl(struct om *model, struct om_step *step, int slot)
{
    struct om_done done = model->waits[slot].done;

    if (model->dirty) {
        om_end_unit(model);
        om_begin(model, model->last_ts + 1);
    }
    run_ddl(model, step, &done);
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
}

/*
 * X on the index, or an insert intention; and X on a name that it changes, if another owner has
 * locked it.
 */
static int ddl_specs(const struct om *model, int slot, struct om_spec *specs)
{
    const struct om_wait *wait = &model->waits[slot];
    const struct om_op *op = wait->op;
    int session = om_session_slot(model, wait->session);
    /* A name is bound to an index, whether patterns match it, and whether it is open. */
    bool named = op->kind == OP_CREATE_INDEX ? !model->indices[op->index].there : op->kind != OP_PUT_MAPPING;

    bool whole = op->kind == OP_DELETE_INDEX || op->kind == OP_STATE || (op->kind == OP_BLOCK && op->on);

    specs[0] = (struct om_spec){{OM_INDEX, op->index, 0}, OM_X, !whole};
    specs[1] = (struct om_spec){{OM_NAME, op->index, 0}, OM_X, false};
    return named && om_is_blocked(model, wait->owner, session < 0 ? -1 : om_session_owner(session), &specs[1]) ? 2 : 1;
}

static void request_ddl(struct om *model, struct om_step *step, int slot, uint64_t deadline)
{
    struct om_done done = model->waits[slot].done;
    struct om_spec specs[2];
    int count = ddl_specs(model, slot, specs);
    bool may_wait = deadline > model->clock && !om_full(model);

    switch (om_ask(model, step, slot, specs, count, may_wait)) {
    case OM_YES: finish_ddl(model, step, slot); return;
    case OM_WAIT: om_wait_park(model, slot, deadline); return;
    case OM_NO: done.problem = deadline > model->clock ? OM_LIMIT : OM_LOCK_TIMEOUT; break;
    case OM_CYCLE: done.problem = OM_DEADLOCK; break;
    }
    om_wait_free(model, step, slot);
    om_complete(model, step, &done);
}

/* Runs a granted DDL command, or requests its locks again if its name has been locked since. */
static void resume_ddl(struct om *model, struct om_step *step, int slot)
{
    struct om_spec specs[2];

    if (ddl_specs(model, slot, specs) == 1) {
        finish_ddl(model, step, slot);
        return;
    }
    om_release_all(model, step, model->waits[slot].owner);
    request_ddl(model, step, slot, model->waits[slot].until);
}

static void ddl_command(struct om *model, struct om_step *step, const struct om_op *op, struct om_done *done)
{
    if (op->session != 0 && om_session_slot(model, op->session) < 0) {
        done->problem = OM_SESSION_MISSING;
        om_complete(model, step, done);
        return;
    }
    request_ddl(model, step, om_wait_new(model, step, done, -1, op->session, -1), om_after(model, op->us));
}

/* --- The step ----------------------------------------------------------------------------------------------------- */

/* Runs a command that never waits. */
static void run_simple(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};

    switch (op->kind) {
    case OP_OPEN:
    case OP_KEEPALIVE:
    case OP_ATTACH:
    case OP_DETACH:
    case OP_CLOSE:
        if (session_command(model, step, op, &done))
            return;
        break;
    case OP_UNLOCK: unlock_command(model, step, op, &done); break;
    case OP_CANCEL: cancel_command(model, step, op); break;
    case OP_TRIED: om_attempt(model, step, op); break;
    case OP_ASIDE: done.problem = om_aside(model, step, op); break;
    case OP_RESTART: restart(model, step); break;
    case OP_HOST_UP:
    case OP_MACHINE_LOST: {
        int left = model->limits.piece;
        om_txn_abandon(model, step, op->host);
        om_txn_end_abandoned(model, step, &left);
        break;
    }
    default: break;
    }
    om_complete(model, step, &done);
}

static void run(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};

    switch (op->kind) {
    case OP_WRITE: om_write(model, step, op); break;
    case OP_LOCK: lock_command(model, step, op, &done); break;
    case OP_BEGIN: om_txn_begin(model, step, op); break;
    case OP_READ: om_txn_read(model, step, op); break;
    case OP_RENAME: om_rename(model, step, op); break;
    case OP_COMMIT: om_txn_commit(model, step, op); break;
    case OP_ROLLBACK: om_txn_rollback(model, step, op); break;
    case OP_CREATE_INDEX:
    case OP_DELETE_INDEX:
    case OP_BLOCK:
    case OP_STATE:
    case OP_PUT_MAPPING: ddl_command(model, step, op, &done); break;
    default: run_simple(model, step, op); break;
    }
}

/*
 * Rule 24. Whether it is the turn of a write that needs a step, the first that is ready, while `others` is what OP_TICK
 * does otherwise: they take turns, each for a tenth of a second.
 */
static bool is_turn_of_write(const struct om *model, bool others)
{
    const struct om_wait *first = NULL;

    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].ready &&
            (first == NULL || model->waits[i].ready_number < first->ready_number))
            first = &model->waits[i];
    return others && model->clock / (OM_SECOND / 10) % 2 == 1 && first != NULL && first->op != NULL && !first->ended &&
           first->op->kind == OP_WRITE && first->op->txn != 0 && first->op->atomic && first->op->count > 1;
}

/* What OP_TICK does before waits that are ready. */
static void run_cleanup(struct om *model, struct om_step *step, uint64_t ts, uint64_t barrier_clock, bool cleanup,
                        bool expired)
{
    if (cleanup)
        purge_step(model, step, ts);
    clean_sessions(model, step, ts, barrier_clock, &model->cost_left);
    end_abandoned(model, step, ts, &model->cost_left);
    begin_timeouts(model, expired);
    if (expired && !om_has_pending_grants(model))
        run_due(model, step, ts, barrier_clock);
    model->cost_left += model->cost_kept;
    model->cost_kept = 0;
}

void om_apply(struct om *model, const struct om_op *op, uint64_t ts, struct om_step *step)
{
    model->clock = op->clock > model->clock ? op->clock : model->clock;
    model->memory_full = op->memory_full;
    /* Only OP_TICK does what earlier steps have left; OP_TRIED runs no deferred cleanup at all. */
    bool tick = op->kind == OP_TICK, tried = op->kind == OP_TRIED;
    bool grants_cleanup = tick || (!tried && !om_has_ready_cleanup(model));
    om_set_cleanup_quota(model, grants_cleanup ? model->limits.sweep : 0);
    bool resumes = tick || (!tried && om_ready_count(model) == 0);
    model->cost_left = resumes ? model->limits.piece : 0;
    model->cost_kept = 0;
    bool pending = om_has_pending_grants(model);
    model->grant_quota = tick || !pending ? 3 * model->limits.piece : 0;
    bool cleanup = tick && (pending || has_cleanup(model)), abandoned = tick && om_txn_any_abandoned(model);
    uint64_t barrier_clock = op->barrier_clock < model->clock ? op->barrier_clock : model->clock;
    bool expired = tick && any_expired(model, barrier_clock);
    bool others = cleanup || abandoned || expired;
    if (tick && is_turn_of_write(model, others))
        model->grant_quota = pending ? 0 : model->grant_quota;
    else if (tick)
        run_cleanup(model, step, ts, barrier_clock, cleanup, expired);
    if (others)
        resume(model, step);
    om_begin(model, ts);
    run(model, step, op);
    om_settle(model, step);
    om_end_unit(model);
    if (op->kind == OP_WRITE)
        om_charge(&model->cost_left, op->count);
    resume(model, step);
    if (step->cycles_met < step->cycle_count)
        om_wrong(step, "a cycle was reported where there was none");
}
