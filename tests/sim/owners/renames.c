/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's renames: docs/http-api.md, "Renames", and rules 27 to 30. A document has its whole
 * path, so a rename changes every document below the directory.
 */
#include <string.h>

#include "dirs.h"
#include "parts.h"

/* The state of a rename. */
struct work {
    struct om *model;
    struct om_step *step;
    const struct om_op *op;
    struct om_done done;
    int txn; /* slot; -1: none */
};

static const struct om_doc *seen(const struct work *at, int doc)
{
    const struct om *model = at->model;

    return at->txn >= 0 ? om_txn_seen(&model->txns[at->txn], model, at->op->index, doc)
                        : &model->docs.at[at->op->index][doc];
}

static enum om_problem check_index(const struct om *model, const struct om_op *op)
{
    const struct om_index *index = &model->indices[op->index];

    return !index->there    ? OM_NO_INDEX
           : index->closed  ? OM_CLOSED
           : index->blocked ? OM_BLOCKED
           : !index->mapped ? OM_ILLEGAL
                            : OM_FINE;
}

/* Whether a rename is of or to the root, onto itself, or to a path below itself. */
static bool is_impossible(const struct om_op *op)
{
    return op->from == 0 || op->to == 0 || dirs_within(op->to, op->from);
}

/* Whether there are documents at a path, and below it. */
static void look_for(const struct work *at, int dir, bool *ret_at, bool *ret_below)
{
    *ret_at = *ret_below = false;
    for (int i = 0; i < OM_DOCS; i++) {
        const struct om_doc *doc = seen(at, i);
        if (!doc->live || !dirs_within(doc->dir, dir))
            continue;
        *ret_at |= doc->dir == dir;
        *ret_below |= doc->dir != dir;
    }
}

/* Returns: the highest sequence number of documents at the path; -1: no document. */
static int64_t newest_at(const struct work *at)
{
    int64_t highest = -1;

    for (int i = 0; i < OM_DOCS; i++)
        if (seen(at, i)->live && seen(at, i)->dir == at->op->from && seen(at, i)->seq_no > highest)
            highest = seen(at, i)->seq_no;
    return highest;
}

static enum om_problem check_there(struct work *at)
{
    bool is_at, is_below;

    look_for(at, at->op->from, &at->done.at, &at->done.below);
    if (!at->done.at && !at->done.below)
        return OM_PATH_MISSING;
    if (at->op->slash && !at->done.below)
        return OM_ILLEGAL;
    if (at->op->if_seq_no >= 0 && at->op->if_seq_no != newest_at(at))
        return OM_CONFLICT;
    look_for(at, at->op->to, &is_at, &is_below);
    return is_at || is_below ? OM_PATH_EXISTS : OM_FINE;
}

static void move_one(struct work *at, int doc)
{
    struct om *model = at->model;
    struct om_doc now = *seen(at, doc);
    int index = at->op->index;

    now.dir = (int16_t)dirs_moved(now.dir, at->op->from, at->op->to);
    now.version++;
    now.seq_no = at->done.seq_no;
    now.ts = at->txn < 0 ? model->ts : OM_NEVER; /* unknown before the commit, and not reported */
    if (at->txn < 0) {
        om_store(model, at->step, index, doc, &now);
        om_move(model, at->step, index, doc, now.dir);
        return;
    }
    model->txns[at->txn].moved[index][doc] = true;
    model->txns[at->txn].overlay.at[index][doc] = now;
}

static void run(struct work *at)
{
    struct om *model = at->model;

    at->done.problem = check_index(model, at->op);
    if (at->done.problem == OM_FINE)
        at->done.problem = check_there(at);
    if (at->done.problem != OM_FINE)
        return;
    at->done.seq_no = model->indices[at->op->index].next_seq_no++;
    om_suspend_grants(model); /* the moves are atomic */
    for (int i = 0; i < OM_DOCS; i++)
        if (seen(at, i)->live && dirs_within(seen(at, i)->dir, at->op->from))
            move_one(at, i);
    if (at->txn >= 0) {
        struct om_txn *txn = &model->txns[at->txn];
        txn->renames[txn->rename_count++] =
            (struct om_renamed){(uint8_t)at->op->index, (int16_t)at->op->from, (int16_t)at->op->to};
    }
    om_resume_grants(model, at->step);
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static void complete(struct work *at, int wait)
{
    if (wait >= 0)
        om_wait_free(at->model, at->step, wait);
    om_complete(at->model, at->step, &at->done);
    if (at->txn >= 0)
        om_txn_touch(at->model, at->txn);
}

/* Whether the token is of locks that cover both paths. */
static bool token_holds(const struct work *at)
{
    const struct om_op *op = at->op;
    const struct om *model = at->model;
    uint64_t session = at->txn >= 0 ? model->txns[at->txn].session : op->session;
    struct om_thing from = {OM_DIR, op->index, op->from}, to = {OM_DIR, op->index, op->to};

    return op->token == 0 || (om_token_held(model, op->token, from, op->from, session, at->txn) &&
                              om_token_held(model, op->token, to, op->to, session, at->txn));
}

static void ask(struct work *at, int slot, uint64_t deadline)
{
    struct om *model = at->model;
    struct om_spec specs[2] = {{{OM_DIR, at->op->index, at->op->from}, OM_X, false},
                               {{OM_DIR, at->op->index, at->op->to}, OM_X, false}};
    bool may_wait = deadline > model->clock && !om_full(model);
    int txn = at->txn;

    if (!token_holds(at)) {
        at->done.problem = OM_STALE_TOKEN;
        complete(at, slot);
        return;
    }
    switch (om_ask(model, at->step, slot, specs, 2, may_wait)) {
    case OM_YES: run(at); break;
    case OM_WAIT: om_wait_park(model, slot, deadline); return;
    case OM_NO: at->done.problem = deadline > model->clock ? OM_LIMIT : OM_LOCK_TIMEOUT; break;
    case OM_CYCLE: at->done.problem = OM_DEADLOCK; at->txn = -1;
    }
    complete(at, slot);
    if (at->done.problem == OM_DEADLOCK && txn >= 0)
        om_txn_abort(model, at->step, txn, false);
}

void om_rename(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct work at = {.model = model, .step = step, .op = op, .done = {.op = op}, .txn = -1};

    at.done.problem = check_index(model, op);
    if (at.done.problem == OM_FINE && is_impossible(op))
        at.done.problem = OM_ILLEGAL;
    if (at.done.problem == OM_FINE && op->txn != 0)
        at.txn = om_txn_find(model, op->txn, op->session, &at.done.problem);
    else if (at.done.problem == OM_FINE && op->session != 0 && om_session_slot(model, op->session) < 0)
        at.done.problem = OM_SESSION_MISSING;
    if (at.txn >= 0 && om_lock_count(model, om_txn_owner(at.txn)) + 2 > model->limits.locks)
        at.done.problem = OM_TOO_LARGE;
    else if (at.txn >= 0 && om_txn_changes(&model->txns[at.txn]) + 1 > model->limits.changes)
        at.done.problem = OM_TOO_LARGE;
    if (at.done.problem != OM_FINE) {
        complete(&at, -1);
        return;
    }
    int slot = om_wait_new(model, step, &at.done, at.txn >= 0 ? om_txn_owner(at.txn) : -1,
                           at.txn >= 0 ? 0 : op->session, at.txn);
    ask(&at, slot, om_after(model, op->us));
}

void om_rename_resume(struct om *model, struct om_step *step, int slot)
{
    struct om_wait *wait = &model->waits[slot];
    struct work at = {.model = model, .step = step, .op = wait->op, .done = wait->done, .txn = wait->txn};

    ask(&at, slot, wait->until);
}
