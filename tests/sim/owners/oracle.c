/* SPDX-License-Identifier: Apache-2.0 */
/* The lock oracle. See oracle.h. */
#include "oracle.h"

#include <string.h>

#include "dirs.h"
#include "parts.h"

void om_wrong(struct om_step *step, const char *what)
{
    if (step->wrong == NULL)
        step->wrong = what;
}

/* --- Rule 1: owners ----------------------------------------------------------------------------------------------- */

/* Returns: the session that an owner belongs to, as an owner; -1: none. */
static int session_of(const struct om *model, int owner)
{
    uint32_t serial = 0;

    if (owner >= om_wait_owner(0))
        serial = model->waits[owner - om_wait_owner(0)].session;
    else if (owner >= om_txn_owner(0))
        serial = model->txns[owner - om_txn_owner(0)].session;
    for (int i = 0; serial != 0 && i < OM_SESSIONS; i++)
        if (model->sessions[i].serial == serial)
            return om_session_owner(i);
    return -1;
}

static bool is_single_write(int owner)
{
    return owner >= om_wait_owner(0);
}

static bool ignores(const struct om *model, int asker, int holder)
{
    return holder == asker || holder == session_of(model, asker);
}

/* --- Rules 7 to 9: conflicts -------------------------------------------------------------------------------------- */

bool om_same(struct om_thing a, struct om_thing b)
{
    bool index = a.kind == OM_ALL || a.index == b.index;
    bool number = (a.kind != OM_DIR && a.kind != OM_DOC) || a.number == b.number;

    return a.kind == b.kind && index && number;
}

/* Returns: the parent of a thing. */
static struct om_thing above(const struct om *model, struct om_thing thing)
{
    int directory = thing.kind == OM_DIR   ? dirs_above(thing.number)
                    : thing.kind == OM_DOC ? model->dirs[thing.index][thing.number]
                                           : -1;
    if (thing.kind == OM_INDEX || thing.kind == OM_NAME)
        return (struct om_thing){OM_ALL, 0, 0};
    if (directory < 0)
        return (struct om_thing){OM_INDEX, thing.index, 0};
    return (struct om_thing){OM_DIR, thing.index, (int16_t)directory};
}

/* Whether a thing is another one or below it. */
static bool is_within(const struct om *model, struct om_thing thing, struct om_thing whole)
{
    while (!om_same(thing, whole)) {
        if (thing.kind == OM_ALL)
            return false;
        thing = above(model, thing);
    }
    return true;
}

static bool overlap(const struct om *model, const struct om_spec *a, const struct om_spec *b)
{
    bool a_in_b = is_within(model, a->on, b->on) && !b->insert_intention;
    bool b_in_a = is_within(model, b->on, a->on) && !a->insert_intention;

    return a_in_b || b_in_a;
}

/* The conflict table of docs/locking.md: held mode, then requested mode. */
static const bool waits[4][4] = {
    [OM_S] = {[OM_S] = false, [OM_U] = false, [OM_X] = true},
    [OM_U] = {[OM_S] = false, [OM_U] = true, [OM_X] = true},
    [OM_X] = {[OM_S] = true, [OM_U] = true, [OM_X] = true},
};

static bool conflicts(const struct om *model, const struct om_spec *held, const struct om_spec *asked)
{
    return waits[held->mode][asked->mode] && overlap(model, held, asked);
}

static bool any_conflicts(const struct om *model, const struct om_wait *request, const struct om_spec *spec)
{
    for (int i = 0; i < request->spec_count; i++)
        if (conflicts(model, &request->specs[i], spec))
            return true;
    return false;
}

static bool requests_conflict(const struct om *model, const struct om_wait *a, const struct om_wait *b)
{
    for (int i = 0; i < b->spec_count; i++)
        if (any_conflicts(model, a, &b->specs[i]))
            return true;
    return false;
}

/* --- Rules 11 to 13: requests that can be granted ----------------------------------------------------------------- */

/* Whether a held lock blocks a request. */
static bool lock_blocks(const struct om *model, const struct om_wait *request, const struct om_lock *lock)
{
    return any_conflicts(model, request, &lock->what) && !ignores(model, request->owner, lock->owner);
}

/* Whether a request is blocked by a lock that does not block `owner`. */
static bool is_blocked_by_own(const struct om *model, const struct om_wait *request, int owner)
{
    for (int i = 0; i < model->lock_count; i++)
        if (ignores(model, owner, model->locks[i].owner) && lock_blocks(model, request, &model->locks[i]))
            return true;
    return false;
}

static bool strengthens(const struct om *model, const struct om_wait *request)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        bool counts = !lock->what.insert_intention && lock->what.on.kind != OM_NAME &&
                      ignores(model, request->owner, lock->owner);
        for (int j = 0; counts && j < request->spec_count; j++)
            if (is_within(model, request->specs[j].on, lock->what.on))
                return true;
    }
    return false;
}

static bool is_ahead(const struct om_wait *a, const struct om_wait *b)
{
    int a_class = a->deferred != 0 ? 0 : a->upgrade ? 1 : 2;
    int b_class = b->deferred != 0 ? 0 : b->upgrade ? 1 : 2;

    if (a_class == 0 && b_class == 0)
        return a->order < b->order;
    return a_class != b_class ? a_class < b_class : a->arrival < b->arrival;
}

static bool precedes(const struct om *model, const struct om_wait *q, const struct om_wait *request)
{
    return q != request && q->state == OM_WAITING && is_ahead(q, request) && requests_conflict(model, q, request) &&
           !ignores(model, request->owner, q->owner) && !is_blocked_by_own(model, q, request->owner);
}

static bool can_grant(const struct om *model, const struct om_wait *request)
{
    for (int i = 0; i < model->lock_count; i++)
        if (lock_blocks(model, request, &model->locks[i]))
            return false;
    for (int i = 0; i < OM_WAITS; i++)
        if (precedes(model, &model->waits[i], request))
            return false;
    return true;
}

/* --- Predicates --------------------------------------------------------------------------------------------------- */

bool om_is_blocked(const struct om *model, int owner, int session, const struct om_spec *spec)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner != owner && lock->owner != session && conflicts(model, &lock->what, spec))
            return true;
    }
    return false;
}

/*
 * Whether no waiting request conflicts with a spec, except requests blocked by the session's own
 * locks. `deferred`: only deferred cleanup counts.
 */
static bool is_unrequested(const struct om *model, int session, const struct om_spec *spec, bool deferred)
{
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *q = &model->waits[i];
        if (q->state == OM_WAITING && (!deferred || q->deferred != 0) && any_conflicts(model, q, spec) &&
            (session < 0 || !is_blocked_by_own(model, q, session)))
            return false;
    }
    return true;
}

bool om_untouched(const struct om *model, int session, const struct om_spec *spec)
{
    return !om_is_blocked(model, -1, session, spec) && is_unrequested(model, session, spec, false);
}

bool om_cleanup_may(const struct om *model, int session, const struct om_spec *spec)
{
    return !om_is_blocked(model, -1, session, spec) && is_unrequested(model, session, spec, true);
}

bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int dir, uint64_t session, int txn)
{
    struct om_thing covering = {dir < 0 ? OM_INDEX : OM_DIR, document.index, (int16_t)dir};

    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        int of = lock->owner < OM_SESSIONS ? lock->owner : session_of(model, lock->owner);
        bool terminating = lock->owner < OM_SESSIONS ? model->sessions[lock->owner].terminating != 0
                                                     : lock->owner < OM_SESSIONS + OM_TXNS &&
                                                           model->txns[lock->owner - OM_SESSIONS].abandoned;
        if (terminating || lock->token != token || lock->what.insert_intention) /* its tokens are invalid */
            continue;
        if (om_same(document, lock->what.on) || is_within(model, covering, lock->what.on))
            return (txn >= 0 && lock->owner == om_txn_owner(txn)) ||
                   (session != 0 && of >= 0 && model->sessions[of].serial == session);
    }
    return false;
}

int om_waiting_count(const struct om *model)
{
    int count = 0;

    for (int i = 0; i < OM_WAITS; i++)
        count += model->waits[i].state == OM_WAITING;
    return count;
}

int om_ready_count(const struct om *model)
{
    int count = 0;

    for (int i = 0; i < OM_WAITS; i++)
        count += model->waits[i].used && model->waits[i].ready;
    return count;
}

int om_lock_count(const struct om *model, int owner)
{
    int count = 0;

    for (int i = 0; i < model->lock_count; i++)
        count += model->locks[i].owner == owner && !model->locks[i].what.insert_intention &&
                 model->locks[i].what.on.kind != OM_NAME; /* auxiliary: no limit counts it */
    return count;
}

static struct om_lock *lock_on(struct om *model, int owner, struct om_thing on)
{
    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner == owner && !model->locks[i].what.insert_intention &&
            om_same(model->locks[i].what.on, on))
            return &model->locks[i];
    return NULL;
}

bool om_holds(const struct om *model, int owner, const struct om_spec *spec)
{
    const struct om_lock *lock = lock_on((struct om *)model, owner, spec->on);

    return lock != NULL && lock->what.mode >= spec->mode;
}

/* --- Rules 15 and 26: a grant ------------------------------------------------------------------------------------- */

static uint64_t token_for(struct om *model, const struct om_wait *request)
{
    uint64_t newest = 0;

    if (is_single_write(request->owner)) /* it ends before a client could use it */
        return 0;
    for (int i = 0; i < request->spec_count; i++) {
        if (!om_holds(model, request->owner, &request->specs[i]))
            return model->last_token >= model->ts ? model->last_token + 1 : model->ts;
        uint64_t token = lock_on(model, request->owner, request->specs[i].on)->token;
        newest = token > newest ? token : newest;
    }
    return newest;
}

static void grant(struct om *model, struct om_step *step, struct om_wait *request)
{
    uint64_t token = token_for(model, request);

    model->last_token = token > model->last_token ? token : model->last_token;
    request->state = OM_GRANTED;
    request->done.token = token;
    for (int i = 0; i < request->spec_count; i++) {
        const struct om_spec *spec = &request->specs[i];
        struct om_lock *lock = spec->insert_intention ? NULL : lock_on(model, request->owner, spec->on);
        if (lock == NULL && model->lock_count == OM_LOCKS) {
            om_wrong(step, "the model has no room for another lock");
            return;
        }
        bool same = lock != NULL && lock->token == token;
        uint8_t mode = lock != NULL && lock->what.mode > spec->mode ? lock->what.mode : spec->mode;
        if (lock == NULL)
            lock = &model->locks[model->lock_count++];
        *lock = (struct om_lock){request->owner, *spec, token};
        lock->what.mode = mode;
        model->dirty |= !same && request->owner < OM_SESSIONS;
    }
}

/* --- Rules 18 to 20: deadlocks ------------------------------------------------------------------------------------ */

/*
 * Whether `holder` is stopped while `q` waits: `q` is its own, its session's or its transaction's.
 */
static bool waits_with(const struct om *model, const struct om_wait *q, int holder)
{
    return q->owner == holder || session_of(model, q->owner) == holder ||
           (!is_single_write(holder) && session_of(model, holder) == q->owner);
}

static bool depends_on_locks(const struct om *model, const struct om_wait *request, const struct om_wait *q)
{
    for (int i = 0; i < model->lock_count; i++)
        if (lock_blocks(model, request, &model->locks[i]) && waits_with(model, q, model->locks[i].owner))
            return true;
    return false;
}

static bool is_younger(const struct om *model, const struct om_wait *a, const struct om_wait *b)
{
    if (b->deferred != 0 || a->deferred != 0)
        return b->deferred != 0 && a->deferred == 0;
    return model->age[a->owner] != model->age[b->owner] ? model->age[a->owner] > model->age[b->owner]
                                                        : model->born[a->owner] > model->born[b->owner];
}

/* The wait-for graph: sets of requests, as bits by slot. */
struct wait_graph {
    uint32_t waiting;
    uint32_t queue[OM_WAITS]; /* that precede it in a queue (soft edges) */
    uint32_t locks[OM_WAITS]; /* whose owners hold a lock that blocks it (hard edges) */
};

static struct wait_graph build_wait_graph(const struct om *model)
{
    struct wait_graph all = {0};

    for (int i = 0; i < OM_WAITS; i++)
        all.waiting |= (uint32_t)(model->waits[i].state == OM_WAITING) << i;
    for (int i = 0; i < OM_WAITS; i++)
        for (int j = 0; (all.waiting >> i & 1) != 0 && j < OM_WAITS; j++) {
            if ((all.waiting >> j & 1) == 0)
                continue;
            all.queue[i] |= (uint32_t)precedes(model, &model->waits[j], &model->waits[i]) << j;
            all.locks[i] |= (uint32_t)depends_on_locks(model, &model->waits[i], &model->waits[j]) << j;
        }
    return all;
}

enum by { BY_QUEUE = 1, BY_LOCK = 2, BY_ANY = 3 };

/*
 * Searches for a cycle in which `victim` is the youngest: a path from it, over waiting requests
 * that are not younger, back to it. The last edge must be of the kind `last`.
 */
static bool closes_cycle(const struct om *model, const struct wait_graph *all, const struct om_wait *victim,
                         enum by last)
{
    uint32_t itself = (uint32_t)1 << (victim - model->waits), may = 0, reached = itself, before = 0;

    for (int i = 0; i < OM_WAITS; i++)
        may |= (uint32_t)((all->waiting >> i & 1) != 0 && !is_younger(model, &model->waits[i], victim)) << i;
    while (reached != before) {
        before = reached;
        for (int i = 0; i < OM_WAITS; i++)
            if ((before >> i & 1) != 0)
                reached |= (all->queue[i] | all->locks[i]) & may;
    }
    for (int i = 0; i < OM_WAITS; i++)
        if ((reached >> i & 1) != 0 && (((last & BY_QUEUE) != 0 && (all->queue[i] & itself) != 0) ||
                                        ((last & BY_LOCK) != 0 && (all->locks[i] & itself) != 0)))
            return true;
    return false;
}

static bool any_cycle(const struct om *model)
{
    struct wait_graph all = build_wait_graph(model);

    for (int i = 0; i < OM_WAITS; i++)
        if ((all.waiting >> i & 1) != 0 && closes_cycle(model, &all, &model->waits[i], BY_ANY))
            return true;
    return false;
}

static struct om_wait *wait_named(struct om *model, uint64_t name)
{
    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *wait = &model->waits[i];
        if (wait->state == OM_WAITING &&
            (wait->op != NULL ? wait->op->number : om_deferred_name(wait->deferred)) == name)
            return wait;
    }
    return NULL;
}

/* Whether in a reported cycle each request waits for the next one. */
static bool report_is_valid(struct om *model, const struct wait_graph *all, const struct om_cycle *cycle)
{
    for (int i = 0; i < cycle->count; i++) {
        const struct om_wait *from = wait_named(model, cycle->steps[i]);
        const struct om_wait *to = wait_named(model, cycle->steps[(i + 1) % cycle->count]);
        if (from == NULL || to == NULL ||
            ((all->queue[from - model->waits] | all->locks[from - model->waits]) >> (to - model->waits) & 1) == 0)
            return false;
    }
    return true;
}

/*
 * Rule 20: a victim that is an autocommit write is requeued, if that breaks the cycle.
 * Returns: NULL, or a description of the error.
 */
static const char *check_cycle(struct om *model, const struct om_cycle *cycle, const struct om_wait *victim)
{
    struct wait_graph all = build_wait_graph(model);

    if (victim == NULL || victim->deferred != 0)
        return "the victim of a deadlock does not wait";
    if (!report_is_valid(model, &all, cycle))
        return "a reported cycle does not exist";
    if (!closes_cycle(model, &all, victim, BY_ANY))
        return "the victim of a deadlock is not the youngest";
    bool may = is_single_write(victim->owner) && !victim->upgrade && closes_cycle(model, &all, victim, BY_QUEUE);
    if (cycle->requeued && !may)
        return "the victim of a deadlock goes to the end of the queue, and must not";
    if (!cycle->requeued && may && !closes_cycle(model, &all, victim, BY_LOCK))
        return "the victim of a deadlock does not go to the end of the queue";
    return NULL;
}

/* Applies the product's resolution of a cycle, if it is valid. */
static void resolve_cycle(struct om *model, struct om_step *step)
{
    if (step->cycles_met == step->cycle_count) {
        om_wrong(step, "requests wait for each other in a cycle that was not detected");
        return;
    }
    const struct om_cycle *cycle = &step->cycles[step->cycles_met++];
    struct om_wait *victim = wait_named(model, cycle->victim);
    const char *wrong = check_cycle(model, cycle, victim);
    if (wrong != NULL) {
        om_wrong(step, wrong);
    } else if (cycle->requeued) {
        victim->arrival = ++model->last_arrival;
    } else {
        victim->state = OM_REFUSED;
        victim->cause = OM_DEADLOCK;
        victim->event = ++model->last_event;
    }
}

/* --- Rule 14: after each change ----------------------------------------------------------------------------------- */

/* Deferred cleanup is limited by cleanup_quota, all others by grant_quota. */
static bool is_beyond_quota(const struct om *model, const struct om_wait *request)
{
    return (request->deferred != 0 ? model->cleanup_quota : model->grant_quota) == 0;
}

static struct om_wait *first_grantable(struct om *model)
{
    struct om_wait *best = NULL;

    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *request = &model->waits[i];
        if (request->state == OM_WAITING && !is_beyond_quota(model, request) && can_grant(model, request) &&
            (best == NULL || is_ahead(request, best)))
            best = request;
    }
    return best;
}

/* Whether a spec locks a thing itself, or something below it. */
static bool locks_at(const struct om *model, const struct om_spec *spec, struct om_thing thing, bool below)
{
    bool itself = om_same(spec->on, thing);

    return below ? is_within(model, spec->on, thing) && (!itself || spec->insert_intention)
                 : itself && !spec->insert_intention;
}

/* Whether the first `count` specs of a request have a place: a thing, the mode, and whether it is below. */
static bool is_placed(const struct om *model, const struct om_wait *request, int count, struct om_thing thing,
                      uint8_t mode, bool below)
{
    for (int i = 0; i < count; i++)
        if (request->specs[i].mode == mode && locks_at(model, &request->specs[i], thing, below))
            return true;
    return false;
}

/* Rule 14: what a request counts when it is granted: one, and one for each 8 places. */
static int grant_cost(const struct om *model, const struct om_wait *request)
{
    int places = 0;

    for (int i = 0; i < request->spec_count; i++) {
        const struct om_spec *spec = &request->specs[i];
        struct om_thing thing = spec->on;
        for (bool below = spec->insert_intention;; below = true) {
            places += !is_placed(model, request, i, thing, spec->mode, below);
            if (thing.kind == OM_ALL)
                break;
            thing = above(model, thing);
        }
    }
    return 1 + places / 8;
}

static void settle(struct om *model, struct om_step *step)
{
    while (step->wrong == NULL && model->grants_suspended == 0) {
        struct om_wait *request;
        if (any_cycle(model)) {
            resolve_cycle(model, step);
        } else if ((request = first_grantable(model)) != NULL) {
            if (request->deferred != 0)
                model->cleanup_quota--;
            else
                om_charge(&model->grant_quota, grant_cost(model, request));
            grant(model, step, request);
            request->event = ++model->last_event;
        } else {
            return;
        }
    }
}

void om_set_cleanup_quota(struct om *model, int max)
{
    model->cleanup_quota = max;
}

bool om_has_pending_grants(const struct om *model)
{
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].state == OM_WAITING && model->waits[i].deferred == 0 && can_grant(model, &model->waits[i]))
            return true;
    return false;
}

bool om_has_ready_cleanup(const struct om *model)
{
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].state == OM_WAITING && model->waits[i].deferred != 0 && can_grant(model, &model->waits[i]))
            return true;
    return false;
}

void om_suspend_grants(struct om *model)
{
    model->grants_suspended++;
}

void om_resume_grants(struct om *model, struct om_step *step)
{
    model->grants_suspended--;
    settle(model, step);
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

void om_withdraw(struct om *model, struct om_step *step, int wait)
{
    model->waits[wait].state = OM_NEW;
    model->waits[wait].event = 0;
    settle(model, step);
}

enum om_answer om_ask(struct om *model, struct om_step *step, int wait, const struct om_spec *specs, int count,
                      bool may_wait)
{
    struct om_wait *request = &model->waits[wait];

    om_withdraw(model, step, wait);
    memcpy(request->specs, specs, (size_t)count * sizeof(*specs));
    request->spec_count = count;
    request->arrival = ++model->last_arrival;
    request->upgrade = strengthens(model, request);
    bool left = request->deferred != 0 && may_wait;
    if (can_grant(model, request) && (!left || model->cleanup_quota > 0)) {
        model->cleanup_quota -= left;
        grant(model, step, request);
        settle(model, step);
        return OM_YES;
    }
    if (!may_wait)
        return OM_NO;
    request->state = OM_WAITING;
    settle(model, step);
    request->event = 0;
    return request->state == OM_WAITING ? OM_WAIT : request->state == OM_GRANTED ? OM_YES : OM_CYCLE;
}

bool om_take(struct om *model, struct om_step *step, int owner, const struct om_spec *spec)
{
    struct om_wait request = {.owner = owner, .spec_count = 1, .specs = {*spec}, .arrival = ++model->last_arrival};

    request.upgrade = strengthens(model, &request);
    if (!can_grant(model, &request))
        return false;
    grant(model, step, &request);
    settle(model, step);
    return true;
}

static void drop(struct om *model, struct om_lock *lock)
{
    model->dirty |= lock->owner < OM_SESSIONS;
    *lock = model->locks[--model->lock_count];
}

int om_release_all(struct om *model, struct om_step *step, int owner)
{
    int released = om_lock_count(model, owner);

    for (int i = model->lock_count; i-- > 0;)
        if (model->locks[i].owner == owner)
            drop(model, &model->locks[i]);
    settle(model, step);
    return released;
}

bool om_release(struct om *model, struct om_step *step, int owner, struct om_thing on)
{
    struct om_lock *lock = lock_on(model, owner, on);

    if (lock == NULL)
        return false;
    drop(model, lock);
    settle(model, step);
    return true;
}

void om_move(struct om *model, struct om_step *step, int index, int doc, int dir)
{
    model->dirs[index][doc] = (int16_t)dir;
    settle(model, step);
}

/* --- Between steps ------------------------------------------------------------------------------------------------ */

const char *om_check(const struct om *model)
{
    for (int i = 0; i < model->lock_count; i++)
        for (int j = 0; j < i; j++) {
            const struct om_lock *a = &model->locks[i], *b = &model->locks[j];
            if (conflicts(model, &a->what, &b->what) && !ignores(model, a->owner, b->owner) &&
                !ignores(model, b->owner, a->owner))
                return "two locks are held that do not go together";
        }
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        if (wait->used && wait->ready) /* granted, or ended */
            continue;
        if (wait->used && wait->state != OM_WAITING)
            return "a wait is left that waits for nothing";
        if (wait->used && !is_beyond_quota(model, wait) && can_grant(model, wait))
            return "a request waits that could be granted";
    }
    return any_cycle(model) ? "requests wait for each other in a cycle" : NULL;
}
