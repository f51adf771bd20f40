/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's ends of sessions. docs/locking.md, "When a holder dies", rules 21 to 24:
 *
 * - its transactions are rolled back and what waits for it ends;
 * - unless it ended in good order, its actions are done one by one. Who waits is no obstacle, who holds is: then the action is kept;
 * - its ephemeral documents go at that timestamp, though of many so few with each step are swept away; one that somebody holds is
 *   kept in the same way;
 * - only then its locks go, and others are granted something;
 * - with one step go so many things: sessions, transactions, those that are abandoned among them, actions, documents. A session whose lease is over is found by nobody from
 *   then on, and waits for nothing; what is left of its end goes on with the next steps, and others have their turn in between.
 *
 * What is kept stands ahead of all who wait, in the order in which it was kept, over restarts.
 */
#include <string.h>

#include "parts.h"

/* --- Put aside ---------------------------------------------------------------------------------------------------- */

static struct om_tried *tried_row(struct om *model, uint32_t session, uint64_t kept, uint64_t action)
{
    for (int i = 0; i < OM_TRIED; i++) {
        struct om_tried *tried = &model->tried[i];
        if (tried->tries > 0 && tried->session == session && tried->kept == kept && tried->action == action)
            return tried;
    }
    return NULL;
}

static int tries_of(struct om *model, uint32_t session, uint64_t kept, uint64_t action)
{
    const struct om_tried *tried = tried_row(model, session, kept, action);

    return tried == NULL ? 0 : tried->tries;
}

/* A session's own, or what is said of something that is kept. */
static void forget_tries(struct om *model, uint32_t session, uint64_t kept)
{
    for (int i = 0; i < OM_TRIED; i++)
        if (kept != 0 ? model->tried[i].kept == kept : model->tried[i].kept == 0 && model->tried[i].session == session)
            model->tried[i].tries = 0;
}

/* --- Kept --------------------------------------------------------------------------------------------------------- */

/* The first behind a place among all that is kept. */
static struct om_kept *next_kept(struct om *model, uint64_t after)
{
    struct om_kept *found = NULL;

    for (int i = 0; i < OM_KEPT; i++) {
        struct om_kept *kept = &model->kept[i];
        if (kept->number > after && (found == NULL || kept->number < found->number))
            found = kept;
    }
    return found;
}

static struct om_kept *kept_numbered(struct om *model, uint64_t number)
{
    for (int i = 0; number != 0 && i < OM_KEPT; i++)
        if (model->kept[i].number == number)
            return &model->kept[i];
    return NULL;
}

static uint64_t last_number(struct om *model)
{
    uint64_t last = 0;

    for (int i = 0; i < OM_KEPT; i++)
        if (model->kept[i].number > last)
            last = model->kept[i].number;
    return last;
}

/* Its request waits ahead of all others. */
static void await(struct om *model, struct om_step *step, const struct om_kept *kept)
{
    struct om_done none = {0};
    int slot = om_wait_new(model, step, &none, -1, 0, -1);
    struct om_wait *wait = &model->waits[slot];

    wait->kept = kept->number;
    wait->place = kept->place;
    if (om_left_ask(model, step, slot, &kept->item, false) == OM_YES)
        om_wait_ready(model, slot);
    else
        om_wait_park(model, slot, OM_NEVER);
}

static void keep(struct om *model, struct om_step *step, uint32_t session, const struct om_item *item, bool aside)
{
    for (int i = 0; i < OM_KEPT; i++) {
        if (model->kept[i].number != 0)
            continue;
        model->last_kept++;
        model->kept[i] = (struct om_kept){model->last_kept, ++model->last_place, session, aside, *item};
        model->dirty = true;
        if (!aside)
            await(model, step, &model->kept[i]);
        return;
    }
    om_wrong(step, "the model has no room for another kept action");
}

/* It was done, or is nobody's any more. */
static void forget_kept(struct om *model, struct om_kept *kept)
{
    forget_tries(model, 0, kept->number);
    kept->number = 0;
    model->dirty = true;
}

void om_kept_resume(struct om *model, struct om_step *step, int slot)
{
    struct om_kept *kept = kept_numbered(model, model->waits[slot].kept);

    if (om_left_ask(model, step, slot, &kept->item, true) != OM_YES) {
        om_wait_park(model, slot, OM_NEVER);
        return;
    }
    om_left_run(model, step, -1, slot, &kept->item);
    forget_kept(model, kept);
    om_wait_free(model, step, slot);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

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
    }
}

/* The first of a session's transactions, in order of their beginnings; with `waiting`, of those in which something waits. */
static int first_transaction(const struct om *model, uint32_t serial, bool waiting)
{
    int found = -1;

    for (int i = 0; i < OM_TXNS; i++)
        if (model->txns[i].serial != 0 && model->txns[i].session == serial && (!waiting || om_txn_waits(model, i)) &&
            (found < 0 || model->born[om_txn_owner(i)] < model->born[om_txn_owner(found)]))
            found = i;
    return found;
}

/* It is as good as gone from now on, and nothing of it waits. */
void om_begin_end(struct om *model, struct om_step *step, int slot, bool in_order)
{
    struct om_session *session = &model->sessions[slot];

    session->lease.at = OM_NEVER;
    session->leaving = ++model->last_leaving;
    session->ending = true;
    session->passed = 0;
    model->dirty = true;
    if (in_order) {
        session->action_count = 0;
        forget_tries(model, session->serial, 0);
    }
    cancel_waits(model, step, session->serial);
    for (int txn; (txn = first_transaction(model, session->serial, true)) >= 0;)
        om_txn_end_waiting(model, step, txn);
}

static void run_action(struct om *model, struct om_step *step, int slot, int i)
{
    const struct om_session *session = &model->sessions[slot];
    const struct om_item *item = &session->actions[i];

    if (tries_of(model, session->serial, 0, (uint64_t)i) == OM_TRIES)
        keep(model, step, session->serial, item, true);
    else if (om_left_held(model, slot, item))
        keep(model, step, session->serial, item, false);
    else
        om_left_run(model, step, slot, -1, item);
}

/* Whether a document lives with a session, and its removal is not kept by now. */
static bool lives_with(const struct om *model, uint32_t serial, int index, int doc)
{
    const struct om_doc *it = &model->docs.at[index][doc];

    if ((!it->live && !it->gone) || it->lease != serial)
        return false;
    for (int i = 0; i < OM_KEPT; i++)
        if (model->kept[i].number != 0 && model->kept[i].item.left_by == serial && model->kept[i].item.index == index &&
            model->kept[i].item.doc == doc)
            return false;
    return true;
}

int om_ephemeral_count(const struct om *model, uint32_t serial)
{
    int count = 0;

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            count += lives_with(model, serial, i, j);
    return count;
}

static struct om_item removal_of(uint32_t serial, int index, int doc)
{
    return (struct om_item){.action = OM_DELETE,
                            .index = (uint8_t)index,
                            .doc = (uint8_t)doc,
                            .dir = -1,
                            .if_seq_no = -1,
                            .left_by = serial};
}

/* The first few of its documents. Returns: whether there are more. */
static bool remove_some(struct om *model, struct om_step *step, int slot, int most)
{
    uint32_t serial = model->sessions[slot].serial;
    struct om_item removals[OM_INDICES * OM_DOCS], free[OM_INDICES * OM_DOCS];
    int count = 0, free_count = 0, total = om_ephemeral_count(model, serial);

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            if (count < most && lives_with(model, serial, i, j))
                removals[count++] = removal_of(serial, i, j);
    for (int i = 0; i < count; i++) {
        if (model->docs.at[removals[i].index][removals[i].doc].gone)
            continue;
        if (om_left_held(model, slot, &removals[i]))
            keep(model, step, serial, &removals[i], false);
        else
            free[free_count++] = removals[i];
    }
    for (int i = 0; i < free_count; i++)
        om_left_run(model, step, slot, -1, &free[i]);
    for (int i = 0; i < count; i++) /* nobody sees them: no lock keeps them */
        if (model->docs.at[removals[i].index][removals[i].doc].gone)
            om_sweep(model, step, removals[i].index, removals[i].doc);
    model->dirty |= count > 0;
    return total > count;
}

/* Whether somebody else holds an index or a directory of it. */
static bool index_held(const struct om *model, int slot, int index)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner != om_session_owner(slot) && !lock->what.within &&
            (lock->what.on.kind == OM_ALL ||
             ((lock->what.on.kind == OM_INDEX || lock->what.on.kind == OM_DIR) && lock->what.on.index == index)))
            return true;
    }
    return false;
}

/* How many of a session's documents in an index somebody else holds. */
static int held_count(struct om *model, int slot, int index)
{
    int count = 0;

    for (int j = 0; j < OM_DOCS; j++) {
        struct om_item removal = removal_of(model->sessions[slot].serial, index, j);
        count += lives_with(model, model->sessions[slot].serial, index, j) && om_left_held(model, slot, &removal);
    }
    return count;
}

/*
 * More documents than one step removes go all the same at this timestamp: nobody sees them from now on. Those that somebody holds stay
 * until their locks go; an index in which somebody holds all, a directory, or more of them than are in a piece, is left to the pieces.
 * Returns: whether there is none such.
 */
static bool vanish(struct om *model, struct om_step *step, int slot)
{
    uint32_t serial = model->sessions[slot].serial;
    bool goes[OM_INDICES][OM_DOCS] = {{false}}, spared[OM_INDICES], all = true;

    for (int i = 0; i < OM_INDICES; i++)
        spared[i] = index_held(model, slot, i) || held_count(model, slot, i) > model->limits.piece;

    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            struct om_item removal = removal_of(serial, i, j);
            if (!lives_with(model, serial, i, j))
                continue;
            if (spared[i]) {
                all = false;
                continue;
            }
            goes[i][j] = !om_left_held(model, slot, &removal);
            if (!goes[i][j])
                keep(model, step, serial, &removal, false);
        }
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++) {
            if (!goes[i][j])
                continue;
            struct om_doc now = model->docs.at[i][j];
            now.live = false;
            now.gone = true;
            now.ts = model->ts;
            om_store(model, step, i, j, &now);
            om_move(model, step, i, j, -1);
        }
    return all;
}

static void end_last(struct om *model, struct om_step *step, int slot)
{
    struct om_session *session = &model->sessions[slot];
    struct om_done done = {.op = session->closing};

    om_release_all(model, step, om_session_owner(slot));
    model->dirty = true;
    memset(session, 0, sizeof(*session));
    session->lease.at = OM_NEVER;
    if (done.op != NULL)
        om_complete(model, step, &done);
}

/* Returns: whether some of it is left that others see. */
static bool remove_all(struct om *model, struct om_step *step, int slot)
{
    struct om_session *session = &model->sessions[slot];

    if (om_ephemeral_count(model, session->serial) > model->limits.piece) {
        session->over = vanish(model, step, slot);
        if (session->over)
            om_release_all(model, step, om_session_owner(slot));
        if (session->over && session->closing != NULL) {
            struct om_done done = {.op = session->closing};
            session->closing = NULL;
            om_complete(model, step, &done);
        }
        return !session->over;
    }
    if (remove_some(model, step, slot, model->limits.piece))
        return true;
    end_last(model, step, slot);
    return false;
}

/* Goes on with an end while there is something left to do with this step. Returns: whether some of it is left that others see. */
static bool go_on(struct om *model, struct om_step *step, int slot, int *left)
{
    struct om_session *session = &model->sessions[slot];
    int txn;

    model->dirty = true;
    while (*left > 0 && (txn = first_transaction(model, session->serial, false)) >= 0) {
        om_take_off(left, 1);
        om_txn_abort(model, step, txn, false);
    }
    for (; *left > 0 && session->passed < session->action_count; session->passed++) {
        run_action(model, step, slot, session->passed);
        om_take_off(left, 1);
    }
    if (*left == 0 && first_transaction(model, session->serial, false) >= 0)
        return true;
    if (session->passed < session->action_count)
        return true;
    session->action_count = 0;
    forget_tries(model, session->serial, 0);
    if (*left == 0)
        return true;
    om_take_off(left, 1 + om_ephemeral_count(model, session->serial));
    session->ending = false;
    return remove_all(model, step, slot);
}

bool om_end_session(struct om *model, struct om_step *step, int slot, bool in_order)
{
    int left = model->limits.piece;

    om_withhold(model);
    om_begin_end(model, step, slot, in_order);
    bool waits = go_on(model, step, slot, &left);
    om_let_in(model, step);
    return waits;
}

static int first_leaving(const struct om *model, bool ending)
{
    int found = -1;

    for (int i = 0; i < OM_SESSIONS; i++)
        if (model->sessions[i].leaving != 0 && model->sessions[i].ending == ending &&
            (found < 0 || model->sessions[i].leaving < model->sessions[found].leaving))
            found = i;
    return found;
}

/* Leases, waits and what is left of an end go on with the restart, and not before it. */
bool om_any_leaving(const struct om *model)
{
    return !model->stopped && (first_leaving(model, true) >= 0 || first_leaving(model, false) >= 0);
}

int om_first_ending(const struct om *model)
{
    return model->stopped ? -1 : first_leaving(model, true);
}

void om_end_on(struct om *model, struct om_step *step, int slot, int *left)
{
    go_on(model, step, slot, left);
}

void om_leave_on(struct om *model, struct om_step *step)
{
    int slot = model->stopped ? -1 : first_leaving(model, false);

    om_withhold(model);
    if (slot >= 0 && !remove_some(model, step, slot, model->limits.sweep))
        end_last(model, step, slot);
    om_let_in(model, step);
}

/* --- What ended the process --------------------------------------------------------------------------------------- */

/* Whether there is such a thing to be done still. */
static bool to_be_done(struct om *model, const struct om_op *op)
{
    const struct om_kept *kept = kept_numbered(model, op->kept);
    int slot = -1;

    if (op->kept != 0)
        return kept != NULL && kept->session == op->session && op->action == 0;
    for (int i = 0; i < OM_SESSIONS; i++) /* one that is ending, too */
        if (op->session != 0 && model->sessions[i].serial == op->session)
            slot = i;
    return slot >= 0 && model->sessions[slot].action_count > 0 && op->action >= (uint64_t)model->sessions[slot].passed;
}

static void count_try(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_tried *tried = tried_row(model, op->session, op->kept, op->action);

    for (int i = 0; tried == NULL && i < OM_TRIED; i++)
        if (model->tried[i].tries == 0) {
            tried = &model->tried[i];
            *tried = (struct om_tried){0, op->session, op->kept, op->action};
        }
    if (tried == NULL)
        om_wrong(step, "the model has no room for another thing that was tried");
    else if (tried->tries < OM_TRIES)
        tried->tries++;
    model->dirty = true;
}

/* Who keeps something aside waits for nothing, and stands before nobody. */
static void put_aside(struct om *model, struct om_step *step, struct om_kept *kept)
{
    kept->aside = true;
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].kept == kept->number)
            om_wait_free(model, step, i);
}

void om_tried(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_kept *kept = kept_numbered(model, op->kept);

    if (!to_be_done(model, op))
        return;
    count_try(model, step, op);
    if (kept != NULL && !kept->aside && tries_of(model, op->session, op->kept, op->action) == OM_TRIES)
        put_aside(model, step, kept);
}

/* Somebody has looked at it. */
enum om_problem om_aside(struct om *model, struct om_step *step, const struct om_op *op)
{
    struct om_kept *kept = kept_numbered(model, op->kept);

    if (kept == NULL || !kept->aside)
        return kept == NULL ? OM_KEPT_MISSING : OM_ILLEGAL;
    if (!op->again) {
        forget_kept(model, kept);
        return OM_FINE;
    }
    forget_tries(model, 0, kept->number);
    kept->aside = false;
    kept->place = ++model->last_place;
    model->dirty = true;
    await(model, step, kept);
    return OM_FINE;
}

/* --- Over restarts ------------------------------------------------------------------------------------------------ */

void om_ends_stop(struct om *model)
{
    model->last_kept = last_number(model);
    model->stopped = true;
    model->withheld = 0;
    for (int i = 0; i < OM_SESSIONS; i++)
        model->sessions[i].closing = NULL;
}

static bool has_asked(const struct om *model, const struct om_kept *kept)
{
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].used && model->waits[i].kept == kept->number)
            return true;
    return false;
}

bool om_ends_restart(struct om *model, struct om_step *step, int *left)
{
    for (struct om_kept *kept = next_kept(model, 0); kept != NULL; kept = next_kept(model, kept->number)) {
        if (kept->aside || has_asked(model, kept))
            continue;
        if (*left == 0)
            return true;
        om_take_off(left, 1);
        kept->place = ++model->last_place;
        await(model, step, kept);
    }
    model->stopped = false;
    /* Those that were leaving go on, the older first. */
    uint64_t order[OM_SESSIONS];
    for (int i = 0; i < OM_SESSIONS; i++) {
        order[i] = 0;
        for (int j = 0; model->sessions[i].leaving != 0 && j < OM_SESSIONS; j++)
            order[i] +=
                model->sessions[j].leaving != 0 && model->born[om_session_owner(j)] <= model->born[om_session_owner(i)];
    }
    for (int i = 0; i < OM_SESSIONS; i++)
        model->sessions[i].leaving = order[i];
    model->last_leaving = OM_SESSIONS;
    return false;
}
