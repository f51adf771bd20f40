/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's termination of sessions. docs/locking.md, "When a holder dies", rules 21 to 24:
 *
 * - Its transactions are rolled back, and its waits and theirs end.
 * - Unless it was closed in good order, its actions run one by one. Waiting requests do not block
 *   an action; held locks do, and then it is deferred. One that would create an index in a step without memory is
 *   set aside.
 * - Its ephemeral documents are removed at that timestamp. Too many for one batch are hidden, and
 *   purged in later ticks. The removal of a document that another owner has locked is deferred.
 * - Only then its locks are released, and other requests are granted.
 * - A step does a limited amount: sessions, transactions (also abandoned ones), actions, documents.
 *   Commands do not find an expired session, and its waits have ended; later ticks continue its
 *   cleanup, and other commands run in between.
 *
 * Deferred cleanup precedes all waiting requests, in the order of deferral, also after a restart.
 */
#include <string.h>

#include "parts.h"

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

static struct om_attempt *attempt_row(struct om *model, uint32_t session, uint64_t deferred, uint64_t action)
{
    for (int i = 0; i < OM_ATTEMPTS; i++) {
        struct om_attempt *attempt = &model->attempts[i];
        if (attempt->tries > 0 && attempt->session == session && attempt->deferred == deferred &&
            attempt->action == action)
            return attempt;
    }
    return NULL;
}

static int attempts_of(struct om *model, uint32_t session, uint64_t deferred, uint64_t action)
{
    const struct om_attempt *attempt = attempt_row(model, session, deferred, action);

    return attempt == NULL ? 0 : attempt->tries;
}

/* Drops the counts of a deferred cleanup, or with 0 those of a session's actions. */
static void drop_attempts(struct om *model, uint32_t session, uint64_t deferred)
{
    for (int i = 0; i < OM_ATTEMPTS; i++)
        if (deferred != 0 ? model->attempts[i].deferred == deferred
                          : model->attempts[i].deferred == 0 && model->attempts[i].session == session)
            model->attempts[i].tries = 0;
}

/* --- Deferred cleanup --------------------------------------------------------------------------------------------- */

static struct om_deferred *deferred_by_number(struct om *model, uint64_t number)
{
    for (int i = 0; number != 0 && i < OM_DEFERRED; i++)
        if (model->deferred[i].number == number)
            return &model->deferred[i];
    return NULL;
}

/* Requests its locks, before all other waiting requests. */
static void request_locks(struct om *model, struct om_step *step, const struct om_deferred *deferred)
{
    struct om_done none = {0};
    int slot = om_wait_new(model, step, &none, -1, 0, -1);
    struct om_wait *wait = &model->waits[slot];

    wait->deferred = deferred->number;
    wait->order = deferred->order;
    if (om_cleanup_request(model, step, slot, &deferred->item, false) == OM_YES)
        om_wait_ready(model, slot);
    else
        om_wait_park(model, slot, OM_NEVER);
}

static void defer(struct om *model, struct om_step *step, uint32_t session, const struct om_item *item, bool set_aside)
{
    for (int i = 0; i < OM_DEFERRED; i++) {
        if (model->deferred[i].number != 0)
            continue;
        model->last_deferred++;
        model->deferred[i] = (struct om_deferred){model->last_deferred, ++model->last_order, session, set_aside, *item};
        model->dirty = true;
        if (!set_aside)
            request_locks(model, step, &model->deferred[i]);
        return;
    }
    om_wrong(step, "the model has no room for another kept action");
}

/* Drops it after it was run, or by OP_ASIDE. */
static void drop_deferred(struct om *model, struct om_deferred *deferred)
{
    drop_attempts(model, 0, deferred->number);
    deferred->number = 0;
    model->dirty = true;
}

/* Withdraws its lock request. */
static void mark_set_aside(struct om *model, struct om_step *step, struct om_deferred *deferred)
{
    deferred->set_aside = true;
    model->dirty = true;
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].deferred == deferred->number)
            om_wait_free(model, step, i);
}

void om_deferred_resume(struct om *model, struct om_step *step, int slot)
{
    struct om_deferred *deferred = deferred_by_number(model, model->waits[slot].deferred);

    if (om_cleanup_request(model, step, slot, &deferred->item, true) != OM_YES) {
        om_wait_park(model, slot, OM_NEVER);
        return;
    }
    if (!om_cleanup_run(model, step, -1, slot, &deferred->item)) {
        mark_set_aside(model, step, deferred);
        return;
    }
    drop_deferred(model, deferred);
    om_wait_free(model, step, slot);
}

/* --- Termination -------------------------------------------------------------------------------------------------- */

static void cancel_waits(struct om *model, struct om_step *step, uint32_t serial)
{
    for (;;) {
        int found = -1;
        for (int i = 0; i < OM_WAITS; i++) {
            const struct om_wait *wait = &model->waits[i];
            if (wait->used && wait->parked && wait->session == serial &&
                (found < 0 || wait->parked_number < model->waits[found].parked_number))
                found = i;
        }
        if (found < 0)
            return;
        om_wait_end(model, step, found, OM_SESSION_MISSING);
        model->cancel_count++;
    }
}

/*
 * Returns: the slot of the oldest transaction of a session; with `waiting`, of those with a waiting
 * command; -1: none.
 */
static int first_transaction(const struct om *model, uint32_t serial, bool waiting)
{
    int found = -1;

    for (int i = 0; i < OM_TXNS; i++)
        if (model->txns[i].serial != 0 && model->txns[i].session == serial && (!waiting || om_txn_waits(model, i)) &&
            (found < 0 || model->born[om_txn_owner(i)] < model->born[om_txn_owner(found)]))
            found = i;
    return found;
}

void om_begin_termination(struct om *model, struct om_step *step, int slot, bool in_order)
{
    struct om_session *session = &model->sessions[slot];

    session->lease.at = OM_NEVER;
    session->terminating = ++model->last_termination;
    session->cleanup_pending = true;
    session->processed = 0;
    model->dirty = true;
    if (in_order) {
        session->action_count = 0;
        drop_attempts(model, session->serial, 0);
    }
    cancel_waits(model, step, session->serial);
    for (int txn; (txn = first_transaction(model, session->serial, true)) >= 0;) {
        om_txn_end_waiting(model, step, txn);
        model->cancel_count++;
    }
}

static void run_action(struct om *model, struct om_step *step, int slot, int i)
{
    const struct om_session *session = &model->sessions[slot];
    const struct om_item *item = &session->actions[i];

    if (attempts_of(model, session->serial, 0, (uint64_t)i) == OM_ATTEMPTS_MAX)
        defer(model, step, session->serial, item, true);
    else if (om_cleanup_is_blocked(model, slot, item))
        defer(model, step, session->serial, item, false);
    else if (!om_cleanup_run(model, step, slot, -1, item))
        defer(model, step, session->serial, item, true);
}

/* Whether a document is ephemeral of a session, and its removal is not deferred. */
static bool is_ephemeral_of(const struct om *model, uint32_t serial, int index, int doc)
{
    const struct om_doc *it = &model->docs.at[index][doc];

    if ((!it->live && !it->hidden) || it->lease != serial)
        return false;
    for (int i = 0; i < OM_DEFERRED; i++)
        if (model->deferred[i].number != 0 && model->deferred[i].item.only_session == serial &&
            model->deferred[i].item.index == index && model->deferred[i].item.doc == doc)
            return false;
    return true;
}

int om_ephemeral_count(const struct om *model, uint32_t serial)
{
    int count = 0;

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            count += is_ephemeral_of(model, serial, i, j);
    return count;
}

static struct om_item removal_of(uint32_t serial, int index, int doc)
{
    return (struct om_item){.action = OM_DELETE,
                            .index = (uint8_t)index,
                            .doc = (uint8_t)doc,
                            .dir = -1,
                            .if_seq_no = -1,
                            .only_session = serial};
}

/*
 * Removes up to `most` of its documents, or defers their removal.
 * Returns: whether there are more.
 */
static bool remove_batch(struct om *model, struct om_step *step, int slot, int most)
{
    uint32_t serial = model->sessions[slot].serial;
    struct om_item removals[OM_INDICES * OM_DOCS], free[OM_INDICES * OM_DOCS];
    int count = 0, free_count = 0, total = om_ephemeral_count(model, serial);

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            if (count < most && is_ephemeral_of(model, serial, i, j))
                removals[count++] = removal_of(serial, i, j);
    for (int i = 0; i < count; i++) {
        if (model->docs.at[removals[i].index][removals[i].doc].hidden)
            continue;
        if (om_cleanup_is_blocked(model, slot, &removals[i]))
            defer(model, step, serial, &removals[i], false);
        else
            free[free_count++] = removals[i];
    }
    for (int i = 0; i < free_count; i++)
        (void)om_cleanup_run(model, step, slot, -1, &free[i]); /* a removal creates nothing */
    for (int i = 0; i < count; i++) /* hidden: locks do not matter */
        if (model->docs.at[removals[i].index][removals[i].doc].hidden)
            om_purge(model, step, removals[i].index, removals[i].doc);
    model->dirty |= count > 0;
    return total > count;
}

/* Whether another owner holds a lock on the root, an index, or a directory of it. */
static bool index_is_locked(const struct om *model, int slot, int index)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner != om_session_owner(slot) && !lock->what.insert_intention &&
            (lock->what.on.kind == OM_ALL ||
             ((lock->what.on.kind == OM_INDEX || lock->what.on.kind == OM_DIR) && lock->what.on.index == index)))
            return true;
    }
    return false;
}

/* Returns: how many of a session's documents in an index are blocked. */
static int blocked_count(struct om *model, int slot, int index)
{
    int count = 0;

    for (int j = 0; j < OM_DOCS; j++) {
        struct om_item removal = removal_of(model->sessions[slot].serial, index, j);
        count += is_ephemeral_of(model, model->sessions[slot].serial, index, j) &&
                 om_cleanup_is_blocked(model, slot, &removal);
    }
    return count;
}

/*
 * Hides more documents than one batch removes. The removal of blocked documents is deferred. An
 * index is excluded if another owner has locked it, a directory of it, or more of these documents
 * than fit a batch; its documents are removed in batches.
 * Returns: whether no index is excluded.
 */
static bool hide_documents(struct om *model, struct om_step *step, int slot)
{
    uint32_t serial = model->sessions[slot].serial;
    bool hides[OM_INDICES][OM_DOCS] = {{false}}, excluded[OM_INDICES], all = true;

    for (int i = 0; i < OM_INDICES; i++)
        excluded[i] = index_is_locked(model, slot, i) || blocked_count(model, slot, i) > model->limits.piece;

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            struct om_item removal = removal_of(serial, i, j);
            if (!is_ephemeral_of(model, serial, i, j))
                continue;
            if (excluded[i]) {
                all = false;
                continue;
            }
            hides[i][j] = !om_cleanup_is_blocked(model, slot, &removal);
            if (!hides[i][j])
                defer(model, step, serial, &removal, false);
        }
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            if (!hides[i][j])
                continue;
            struct om_doc now = model->docs.at[i][j];
            now.live = false;
            now.hidden = true;
            now.ts = model->ts;
            om_store(model, step, i, j, &now);
            om_move(model, step, i, j, -1);
        }
    return all;
}

static void delete_session(struct om *model, struct om_step *step, int slot)
{
    struct om_session *session = &model->sessions[slot];
    struct om_done done = {.op = session->close_op};

    om_release_all(model, step, om_session_owner(slot));
    model->dirty = true;
    memset(session, 0, sizeof(*session));
    session->lease.at = OM_NEVER;
    if (done.op != NULL)
        om_complete(model, step, &done);
}

/*
 * Removes or hides its documents.
 * Returns: whether visible documents are left, and its locks stay.
 */
static bool remove_documents(struct om *model, struct om_step *step, int slot)
{
    struct om_session *session = &model->sessions[slot];

    if (om_ephemeral_count(model, session->serial) > model->limits.piece) {
        session->locks_released = hide_documents(model, step, slot);
        if (session->locks_released)
            om_release_all(model, step, om_session_owner(slot));
        if (session->locks_released && session->close_op != NULL) {
            struct om_done done = {.op = session->close_op};
            session->close_op = NULL;
            om_complete(model, step, &done);
        }
        return !session->locks_released;
    }
    if (remove_batch(model, step, slot, model->limits.piece))
        return true;
    delete_session(model, step, slot);
    return false;
}

/*
 * Continues the cleanup while *left > 0. `all`: *left before any cleanup of this step. The last part is
 * left to the next step if it exceeds a rest.
 * Returns: whether its locks stay, because some of it is left.
 */
static bool continue_cleanup(struct om *model, struct om_step *step, int slot, int *left, int all)
{
    struct om_session *session = &model->sessions[slot];
    int txn;

    model->dirty = true;
    while (*left > 0 && (txn = first_transaction(model, session->serial, false)) >= 0) {
        om_charge(left, 1);
        om_txn_abort(model, step, txn, false);
    }
    for (; *left > 0 && session->processed < session->action_count; session->processed++) {
        run_action(model, step, slot, session->processed);
        om_charge(left, 1);
    }
    if (*left == 0 && first_transaction(model, session->serial, false) >= 0)
        return true;
    if (session->processed < session->action_count)
        return true;
    session->action_count = 0;
    drop_attempts(model, session->serial, 0);
    if (*left == 0)
        return true;
    int cost = 1 + om_ephemeral_count(model, session->serial);
    if (cost > *left && *left < all) {
        *left = 0;
        return true;
    }
    om_charge(left, cost);
    session->cleanup_pending = false;
    return remove_documents(model, step, slot);
}

bool om_end_session(struct om *model, struct om_step *step, int slot, bool in_order)
{
    int all = model->limits.piece, left = all;

    om_suspend_grants(model);
    om_begin_termination(model, step, slot, in_order);
    om_charge_ended(model, &left);
    bool waits = continue_cleanup(model, step, slot, &left, all);
    om_resume_grants(model, step);
    om_charge(&model->cost_left, all - left);
    return waits;
}

static int first_terminating(const struct om *model, bool cleanup_pending)
{
    int found = -1;

    for (int i = 0; i < OM_SESSIONS; i++)
        if (model->sessions[i].terminating != 0 && model->sessions[i].cleanup_pending == cleanup_pending &&
            (found < 0 || model->sessions[i].terminating < model->sessions[found].terminating))
            found = i;
    return found;
}

bool om_any_terminating(const struct om *model)
{
    return first_terminating(model, true) >= 0 || first_terminating(model, false) >= 0;
}

int om_first_to_clean(const struct om *model)
{
    return first_terminating(model, true);
}

void om_charge_ended(struct om *model, int *left)
{
    om_charge(left, model->cancel_count / 5);
    model->cancel_count = 0;
}

void om_continue_cleanup(struct om *model, struct om_step *step, int slot, int *left, int all)
{
    continue_cleanup(model, step, slot, left, all);
}

void om_purge_batch(struct om *model, struct om_step *step)
{
    int slot = first_terminating(model, false);

    om_suspend_grants(model);
    if (slot >= 0) {
        int before = om_ephemeral_count(model, model->sessions[slot].serial);
        bool more = remove_batch(model, step, slot, model->limits.sweep);
        om_charge(&model->cost_left, before - om_ephemeral_count(model, model->sessions[slot].serial));
        if (!more)
            delete_session(model, step, slot);
    }
    om_resume_grants(model, step);
}

/* --- Actions that ended the process ------------------------------------------------------------------------------- */

/* Whether the action is still to be run. */
static bool is_pending(struct om *model, const struct om_op *op)
{
    const struct om_deferred *deferred = deferred_by_number(model, op->deferred);
    int slot = -1;

    if (op->deferred != 0)
        return deferred != NULL && deferred->session == op->session && op->action == 0;
    for (int i = 0; i < OM_SESSIONS; i++) /* also one that is terminating */
        if (op->session != 0 && model->sessions[i].serial == op->session)
            slot = i;
    return slot >= 0 && model->sessions[slot].action_count > 0 &&
           op->action >= (uint64_t)model->sessions[slot].processed;
}

static void count_attempt(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_attempt *attempt = attempt_row(model, op->session, op->deferred, op->action);

    for (int i = 0; attempt == NULL && i < OM_ATTEMPTS; i++)
        if (model->attempts[i].tries == 0) {
            attempt = &model->attempts[i];
            *attempt = (struct om_attempt){0, op->session, op->deferred, op->action};
        }
    if (attempt == NULL)
        om_wrong(step, "the model has no room for another thing that was tried");
    else if (attempt->tries < OM_ATTEMPTS_MAX)
        attempt->tries++;
    model->dirty = true;
}

void om_attempt(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_deferred *deferred = deferred_by_number(model, op->deferred);

    if (!is_pending(model, op))
        return;
    count_attempt(model, step, op);
    if (deferred != NULL && !deferred->set_aside &&
        attempts_of(model, op->session, op->deferred, op->action) == OM_ATTEMPTS_MAX)
        mark_set_aside(model, step, deferred);
}

/* Retries or drops a cleanup that was set aside. */
enum om_problem om_aside(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_deferred *deferred = deferred_by_number(model, op->deferred);

    if (deferred == NULL || !deferred->set_aside)
        return deferred == NULL ? OM_KEPT_MISSING : OM_ILLEGAL;
    if (!op->retry) {
        drop_deferred(model, deferred);
        return OM_FINE;
    }
    drop_attempts(model, 0, deferred->number);
    deferred->set_aside = false;
    deferred->order = ++model->last_order;
    model->dirty = true;
    request_locks(model, step, deferred);
    return OM_FINE;
}
