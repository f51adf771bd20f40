/* SPDX-License-Identifier: Apache-2.0 */
/* The model's transactions. */
#include <stdio.h>
#include <string.h>

#include "parts.h"

static const struct om_outcome_record *outcome_of(const struct om *model, uint32_t serial)
{
    for (int i = 0; i < model->ended_count; i++)
        if (model->ended[i].txn == serial && model->ended[i].ended >= model->outcomes_from)
            return &model->ended[i];
    return NULL;
}

static void keep_outcome(struct om *model, const struct om_outcome_record *record)
{
    if (model->ended_count == OM_ENDED) /* the generator only uses recent ones */
        memmove(model->ended, model->ended + 1, --model->ended_count * sizeof(model->ended[0]));
    model->ended[model->ended_count++] = *record;
    model->dirty = true;
}

static enum om_problem explain_missing(const struct om *model, uint32_t serial)
{
    const struct om_outcome_record *outcome = outcome_of(model, serial);

    return outcome != NULL && !outcome->committed ? OM_TXN_ABORTED : OM_TXN_MISSING;
}

static int slot_of(const struct om *model, uint32_t serial)
{
    for (int i = 0; i < OM_TXNS; i++)
        if (serial != 0 && model->txns[i].serial == serial)
            return i;
    return -1;
}

/* Returns: the wait of a transaction's command; -1: none. */
static int wait_of(const struct om *model, int slot)
{
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].parked && model->waits[i].txn == slot)
            return i;
    return -1;
}

static bool session_is_terminating(const struct om *model, int slot)
{
    for (int i = 0; i < OM_SESSIONS; i++)
        if (model->txns[slot].session != 0 && model->sessions[i].serial == model->txns[slot].session)
            return model->sessions[i].terminating != 0;
    return false;
}

int om_txn_find(const struct om *model, uint32_t serial, uint32_t session, enum om_problem *ret_problem)
{
    int slot = slot_of(model, serial);

    if (slot < 0)
        *ret_problem = explain_missing(model, serial);
    else if (session != 0 && model->txns[slot].session != session)
        *ret_problem = OM_ILLEGAL;
    else if (model->txns[slot].abandoned || session_is_terminating(model, slot))
        *ret_problem = OM_TXN_ABORTED;
    else if (wait_of(model, slot) >= 0)
        *ret_problem = OM_ILLEGAL;
    else
        return slot;
    return -1;
}

void om_txn_touch(struct om *model, int slot)
{
    struct om_txn *txn = &model->txns[slot];

    om_set_deadline(model, &txn->idle, om_after(model, txn->timeout));
}

/* --- BEGIN and reads ---------------------------------------------------------------------------------------------- */

void om_txn_begin(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};
    int slot = 0, count = 0;
    int former = slot_of(model, op->retry_of);
    struct om_outcome_record abandoned = {0};
    const struct om_outcome_record *first = former >= 0 ? NULL : outcome_of(model, op->retry_of);

    if (former >= 0 && model->txns[former].abandoned) { /* it will be rolled back */
        abandoned.age = model->age[om_txn_owner(former)];
        first = &abandoned;
    }
    for (int i = 0; i < OM_TXNS; i++)
        count += model->txns[i].serial != 0;
    if (op->session != 0 && om_session_slot(model, op->session) < 0)
        done.problem = OM_SESSION_MISSING;
    else if (count >= model->limits.txns)
        done.problem = OM_LIMIT;
    else if (op->retry_of != 0 && (first == NULL || first->committed))
        done.problem = OM_ILLEGAL;
    if (done.problem == OM_FINE) {
        while (model->txns[slot].serial != 0)
            slot++;
        struct om_txn *txn = &model->txns[slot];
        *txn = (struct om_txn){.serial = op->txn, .session = op->session, .timeout = op->us};
        txn->host = op->host;
        txn->created = model->ts;
        txn->retry = op->retry_of != 0;
        model->age[om_txn_owner(slot)] = txn->retry ? first->age : model->ts;
        model->born[om_txn_owner(slot)] = ++model->last_born;
        model->dirty = true;
        om_txn_touch(model, slot);
    }
    om_complete(model, step, &done);
}

int om_txn_changes(const struct om_txn *txn)
{
    int count = txn->rename_count;

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            count += txn->written[i][j];
    return count;
}

const struct om_doc *om_txn_seen(const struct om_txn *txn, const struct om *model, int index, int doc)
{
    return txn->written[index][doc] || txn->moved[index][doc] ? &txn->overlay.at[index][doc]
                                                              : &model->docs.at[index][doc];
}

/* Fills in the documents that the transaction sees: committed ones through its own writes. */
static void look(const struct om *model, const struct om_txn *txn, struct om_docs *ret_seen)
{
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            ret_seen->at[i][j] = *om_txn_seen(txn, model, i, j);
}

static void answer_read(struct om *model, struct om_step *step, int slot, struct om_done *done)
{
    const struct om_txn *txn = &model->txns[slot];

    done->token = model->ts;
    if (step->done_count < OM_DONE)
        look(model, txn, &step->seen[step->done_count]);
    om_txn_touch(model, slot);
    om_complete(model, step, done);
}

/*
 * Collects the locks of a read that its transaction does not hold yet: its targets, or the first of them; for a missing
 * index also the name. A retry of a rolled-back transaction reads documents with update locks.
 */
static int read_specs(const struct om *model, const struct om_done *done, int owner, bool for_update, bool retry,
                      struct om_spec *specs)
{
    int count = 0;

    for (int i = 0; i < done->names; i++) {
        const struct om_spec *spec = &done->op->specs[i], name = {{OM_NAME, spec->on.index, 0}, OM_S, false};
        if (spec->on.kind != OM_ALL && !model->indices[spec->on.index].there && !om_holds(model, owner, &name))
            specs[count++] = name;
        if (retry && om_holds(model, owner, spec))
            continue;
        specs[count] = *spec;
        if (for_update && spec->on.kind == OM_DOC && spec->mode == OM_S)
            specs[count].mode = OM_U;
        count++;
    }
    return count;
}

static void ask_to_read(struct om *model, struct om_step *step, int wait, uint64_t deadline);

/* Requests locks again: an index that was missing may have been created since. */
void om_txn_read_resume(struct om *model, struct om_step *step, int wait)
{
    ask_to_read(model, step, wait, model->waits[wait].until);
}

void om_txn_read_granted(struct om *model, struct om_step *step, int wait)
{
    struct om_done done = model->waits[wait].done;
    int slot = model->waits[wait].txn;

    om_wait_free(model, step, wait);
    answer_read(model, step, slot, &done);
}

void om_txn_read(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};
    int slot = om_txn_find(model, op->txn, op->session, &done.problem);

    if (done.problem != OM_FINE) {
        om_complete(model, step, &done);
        return;
    }
    done.names = model->reads_one && op->count > 1 ? 1 : op->count;
    ask_to_read(model, step, om_wait_new(model, step, &done, om_txn_owner(slot), 0, slot), om_after(model, op->us));
}

static void ask_to_read(struct om *model, struct om_step *step, int wait, uint64_t deadline)
{
    struct om_done done = model->waits[wait].done;
    int slot = model->waits[wait].txn;
    struct om_spec specs[2 * OM_ITEMS];
    int count = read_specs(model, &done, om_txn_owner(slot), model->txns[slot].retry, model->waits[wait].parked, specs);
    bool may_wait = deadline > model->clock && !om_full(model);

    int counted = 0;
    for (int i = 0; i < count; i++)
        counted += specs[i].on.kind != OM_NAME;
    if (om_lock_count(model, om_txn_owner(slot)) + counted > model->limits.locks) {
        done.problem = OM_LIMIT;
        om_wait_free(model, step, wait);
        om_txn_touch(model, slot);
        om_complete(model, step, &done);
        return;
    }
    switch (count == 0 ? OM_YES : om_ask(model, step, wait, specs, count, may_wait)) {
    case OM_YES: om_txn_read_granted(model, step, wait); return;
    case OM_WAIT: om_wait_park(model, wait, deadline); return;
    case OM_NO: done.problem = deadline > model->clock ? OM_LIMIT : OM_LOCK_CONFLICT; break;
    case OM_CYCLE: done.problem = OM_DEADLOCK; break;
    }
    om_wait_free(model, step, wait);
    om_complete(model, step, &done);
    if (done.problem == OM_DEADLOCK)
        om_txn_abort(model, step, slot, false);
}

/* --- COMMIT and ROLLBACK ------------------------------------------------------------------------------------------ */

static void end(struct om *model, struct om_step *step, int slot)
{
    om_release_all(model, step, om_txn_owner(slot));
    memset(&model->txns[slot], 0, sizeof(model->txns[slot]));
    model->txns[slot].idle.at = OM_NEVER;
}

bool om_txn_waits(const struct om *model, int slot)
{
    return wait_of(model, slot) >= 0;
}

/* Its session is terminating: the transaction will be rolled back. */
void om_txn_end_waiting(struct om *model, struct om_step *step, int slot)
{
    int wait = wait_of(model, slot);

    model->waits[wait].txn = -1;
    om_wait_end(model, step, wait, OM_TXN_ABORTED);
}

void om_txn_abort(struct om *model, struct om_step *step, int slot, bool by_request)
{
    struct om_outcome_record record = {.txn = model->txns[slot].serial,
                                       .by_request = by_request,
                                       .age = model->age[om_txn_owner(slot)],
                                       .ended = model->ts};
    int wait = wait_of(model, slot);

    if (wait >= 0) {
        model->waits[wait].txn = -1;
        om_wait_end(model, step, wait, OM_TXN_ABORTED);
    }
    keep_outcome(model, &record);
    end(model, step, slot);
}

void om_txn_rollback(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};
    int slot = slot_of(model, op->txn);
    const struct om_outcome_record *outcome = outcome_of(model, op->txn);

    if (slot >= 0 && op->session != 0 && model->txns[slot].session != op->session)
        done.problem = OM_ILLEGAL;
    else if (slot >= 0)
        om_txn_abort(model, step, slot, true);
    else if (outcome == NULL || !outcome->by_request)
        done.problem = explain_missing(model, op->txn);
    om_complete(model, step, &done);
}

static bool session_has_ended(const struct om *model, const struct om_txn *txn)
{
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            const struct om_doc *doc = &txn->overlay.at[i][j];
            if (txn->written[i][j] && doc->live && doc->lease != 0 && om_session_slot(model, doc->lease) < 0)
                return true;
        }
    return false;
}

/* Whether a commit would exceed the limit of ephemeral documents of a session. */
static bool lease_full(const struct om *model, const struct om_txn *txn)
{
    for (int s = 0; s < OM_SESSIONS; s++) {
        uint32_t serial = model->sessions[s].serial;
        int more = 0;
        for (int i = 0; serial != 0 && i < OM_INDICES; i++)
            for (int j = 0; j < OM_DOCS; j++) {
                const struct om_doc *now = &txn->overlay.at[i][j], *old = &model->docs.at[i][j];
                more += txn->written[i][j] && now->live && now->lease == serial && !(old->live && old->lease == serial);
            }
        if (more > 0 && om_ephemeral_count(model, serial) + more > model->limits.ephemeral)
            return true;
    }
    return false;
}

/*
 * Whether the token of a commit is not of a lock, its own or its session's, that covers all its
 * writes.
 */
static bool token_stale(const struct om *model, const struct om_txn *txn, uint64_t token)
{
    int slot = (int)(txn - model->txns);

    for (int i = 0; token != 0 && i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            const struct om_doc *doc = &txn->overlay.at[i][j];
            int dir = doc->live && model->indices[i].mapped ? doc->dir : -1;
            if (txn->written[i][j] && !om_token_held(model, token, (struct om_thing){OM_DOC, (uint8_t)i, (int16_t)j},
                                                     dir, txn->session, slot))
                return true;
        }
    for (int i = 0; token != 0 && i < txn->rename_count; i++) {
        const struct om_renamed *renamed = &txn->renames[i];
        struct om_thing from = {OM_DIR, renamed->index, renamed->from}, to = {OM_DIR, renamed->index, renamed->to};
        if (!om_token_held(model, token, from, from.number, txn->session, slot) ||
            !om_token_held(model, token, to, to.number, txn->session, slot))
            return true;
    }
    return false;
}

static uint64_t commit_docs(struct om *model, struct om_step *step, struct om_txn *txn)
{
    uint64_t changes = (uint64_t)txn->rename_count;

    model->committing = true;
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            if (txn->written[i][j] || txn->moved[i][j]) {
                txn->overlay.at[i][j].ts = model->ts;
                om_store(model, step, i, j, &txn->overlay.at[i][j]);
                changes += txn->written[i][j];
            }
    model->committing = false;
    return changes;
}

static void move_docs(struct om *model, struct om_step *step, bool written[OM_INDICES][OM_DOCS])
{
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            if (written[i][j]) {
                const struct om_doc *doc = &model->docs.at[i][j];
                om_move(model, step, i, j, doc->live && model->indices[i].mapped ? doc->dir : -1);
            }
}

void om_txn_commit(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_done done = {.op = op};
    int slot = slot_of(model, op->txn);
    const struct om_outcome_record *outcome = outcome_of(model, op->txn);

    if (slot < 0 && outcome != NULL && outcome->committed) { /* a repeated COMMIT has the same reply */
        done.token = outcome->commit_ts;
        done.released = outcome->changes;
    } else if (slot < 0) {
        done.problem = explain_missing(model, op->txn);
    } else if (om_txn_find(model, op->txn, op->session, &done.problem) < 0) {
        ;
    } else if (token_stale(model, &model->txns[slot], op->token)) {
        done.problem = OM_STALE_TOKEN;
        om_txn_touch(model, slot);
    } else if (session_has_ended(model, &model->txns[slot])) {
        done.problem = OM_TXN_ABORTED;
        om_txn_abort(model, step, slot, false);
    } else if (lease_full(model, &model->txns[slot])) {
        done.problem = OM_EPHEMERAL;
        om_txn_abort(model, step, slot, false);
    } else {
        struct om_txn *txn = &model->txns[slot];
        struct om_outcome_record record = {.txn = op->txn, .committed = true, .ended = model->ts};
        bool written[OM_INDICES][OM_DOCS];
        record.changes = done.released = commit_docs(model, step, txn);
        record.commit_ts = done.token = model->ts;
        for (int i = 0; i < OM_INDICES; i++)
            for (int j = 0; j < OM_DOCS; j++)
                written[i][j] = txn->written[i][j] || txn->moved[i][j];
        keep_outcome(model, &record);
        om_suspend_grants(model); /* rule 25 */
        end(model, step, slot);
        move_docs(model, step, written);
        om_resume_grants(model, step);
    }
    om_complete(model, step, &done);
}

/* Returns: the oldest abandoned transaction that began after `after`; -1: none. */
static int next_by_age(const struct om *model, bool abandoned, uint64_t after)
{
    int found = -1;

    for (int i = 0; i < OM_TXNS; i++)
        if (model->txns[i].serial != 0 && model->txns[i].abandoned == abandoned &&
            model->born[om_txn_owner(i)] > after &&
            (found < 0 || model->born[om_txn_owner(i)] < model->born[om_txn_owner(found)]))
            found = i;
    return found;
}

void om_txn_abandon(struct om *model, struct om_step *step, uint16_t host)
{
    uint64_t after = 0;

    for (int slot; (slot = next_by_age(model, false, after)) >= 0;) {
        struct om_txn *txn = &model->txns[slot];
        after = model->born[om_txn_owner(slot)];
        if (host != 0 && txn->host != host)
            continue;
        txn->abandoned = true;
        if (wait_of(model, slot) >= 0)
            om_txn_end_waiting(model, step, slot);
        om_set_deadline(model, &txn->idle, OM_NEVER);
    }
}

bool om_txn_any_abandoned(const struct om *model)
{
    return next_by_age(model, true, 0) >= 0;
}

void om_txn_end_abandoned(struct om *model, struct om_step *step, int *left)
{
    for (int slot; *left > 0 && (slot = next_by_age(model, true, 0)) >= 0; --*left)
        om_txn_abort(model, step, slot, false);
}

/* --- Reads at a timestamp ----------------------------------------------------------------------------------------- */

void om_docs_at(const struct om *model, const struct om_history *history, uint64_t ts, struct om_docs *ret_docs)
{
    memset(ret_docs, 0, sizeof(*ret_docs));
    for (size_t i = 0; i < model->history && history->versions[i].ts <= ts; i++) {
        const struct om_version *version = &history->versions[i];
        if (version->number == OM_WHOLE_INDEX)
            memset(ret_docs->at[version->index], 0, sizeof(ret_docs->at[version->index]));
        else
            ret_docs->at[version->index][version->number] = version->doc;
    }
}
