/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of locks. See oracle.h. */
#include "oracle.h"

#include <string.h>

#include "dirs.h"

void om_wrong(struct om_step *step, const char *what)
{
    if (step->wrong == NULL)
        step->wrong = what;
}

/* --- Rule 1: owners ----------------------------------------------------------------------------------------------- */

/* The session that an owner belongs to, as an owner; -1: none. */
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

static bool passes(const struct om *model, int asker, int holder)
{
    return holder == asker || holder == session_of(model, asker);
}

/* --- Rules 7 to 9: what stands against what ----------------------------------------------------------------------- */

bool om_same(struct om_thing a, struct om_thing b)
{
    bool index = a.kind == OM_ALL || a.index == b.index;
    bool number = (a.kind != OM_DIR && a.kind != OM_DOC) || a.number == b.number;

    return a.kind == b.kind && index && number;
}

/* What a thing lies in. */
static struct om_thing above(const struct om *model, struct om_thing thing)
{
    int directory = thing.kind == OM_DIR   ? dirs_above(thing.number)
                    : thing.kind == OM_DOC ? model->places[thing.index][thing.number]
                                           : -1;
    if (thing.kind == OM_INDEX || thing.kind == OM_NAME)
        return (struct om_thing){OM_ALL, 0, 0};
    if (directory < 0)
        return (struct om_thing){OM_INDEX, thing.index, 0};
    return (struct om_thing){OM_DIR, thing.index, (int16_t)directory};
}

/* Whether a thing is another one or lies in it, however deep. */
static bool lies_in(const struct om *model, struct om_thing thing, struct om_thing whole)
{
    while (!om_same(thing, whole)) {
        if (thing.kind == OM_ALL)
            return false;
        thing = above(model, thing);
    }
    return true;
}

static bool meet(const struct om *model, const struct om_want *a, const struct om_want *b)
{
    bool a_in_b = lies_in(model, a->on, b->on) && !b->within;
    bool b_in_a = lies_in(model, b->on, a->on) && !a->within;

    return a_in_b || b_in_a;
}

/* The table of docs/locking.md: what is held, and what is asked for. */
static const bool waits[4][4] = {
    [OM_S] = {[OM_S] = false, [OM_U] = false, [OM_X] = true},
    [OM_U] = {[OM_S] = false, [OM_U] = true, [OM_X] = true},
    [OM_X] = {[OM_S] = true, [OM_U] = true, [OM_X] = true},
};

static bool against(const struct om *model, const struct om_want *held, const struct om_want *asked)
{
    return waits[held->mode][asked->mode] && meet(model, held, asked);
}

static bool any_against(const struct om *model, const struct om_wait *request, const struct om_want *want)
{
    for (int i = 0; i < request->want_count; i++)
        if (against(model, &request->wants[i], want))
            return true;
    return false;
}

static bool requests_against(const struct om *model, const struct om_wait *a, const struct om_wait *b)
{
    for (int i = 0; i < b->want_count; i++)
        if (any_against(model, a, &b->wants[i]))
            return true;
    return false;
}

/* --- Rules 11 to 13: who is free ---------------------------------------------------------------------------------- */

/* Whether a request waits for a lock. */
static bool is_kept_by(const struct om *model, const struct om_wait *request, const struct om_lock *lock)
{
    return any_against(model, request, &lock->what) && !passes(model, request->owner, lock->owner);
}

/* Whether a request waits for something that an owner passes. */
static bool waits_for_his(const struct om *model, const struct om_wait *request, int owner)
{
    for (int i = 0; i < model->lock_count; i++)
        if (passes(model, owner, model->locks[i].owner) && is_kept_by(model, request, &model->locks[i]))
            return true;
    return false;
}

static bool strengthens(const struct om *model, const struct om_wait *request)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        bool counts = !lock->what.within && lock->what.on.kind != OM_NAME && passes(model, request->owner, lock->owner);
        for (int j = 0; counts && j < request->want_count; j++)
            if (lies_in(model, request->wants[j].on, lock->what.on))
                return true;
    }
    return false;
}

static bool is_ahead(const struct om_wait *a, const struct om_wait *b)
{
    int a_class = a->kept != 0 ? 0 : a->upgrade ? 1 : 2;
    int b_class = b->kept != 0 ? 0 : b->upgrade ? 1 : 2;

    if (a_class == 0 && b_class == 0)
        return a->place < b->place;
    return a_class != b_class ? a_class < b_class : a->arrival < b->arrival;
}

static bool stands_before(const struct om *model, const struct om_wait *q, const struct om_wait *request)
{
    return q != request && q->state == OM_WAITING && is_ahead(q, request) && requests_against(model, q, request) &&
           !passes(model, request->owner, q->owner) && !waits_for_his(model, q, request->owner);
}

static bool is_free(const struct om *model, const struct om_wait *request)
{
    for (int i = 0; i < model->lock_count; i++)
        if (is_kept_by(model, request, &model->locks[i]))
            return false;
    for (int i = 0; i < OM_WAITS; i++)
        if (stands_before(model, &model->waits[i], request))
            return false;
    return true;
}

/* --- Looking without asking --------------------------------------------------------------------------------------- */

bool om_held_against(const struct om *model, int owner, int session, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner != owner && lock->owner != session && against(model, &lock->what, want))
            return true;
    }
    return false;
}

/* Whether nobody awaits what stands against a want, but for a session's own locks; `kept`: of what ended sessions left. */
static bool is_unawaited(const struct om *model, int session, const struct om_want *want, bool kept)
{
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *q = &model->waits[i];
        if (q->state == OM_WAITING && (!kept || q->kept != 0) && any_against(model, q, want) &&
            (session < 0 || !waits_for_his(model, q, session)))
            return false;
    }
    return true;
}

bool om_untouched(const struct om *model, int session, const struct om_want *want)
{
    return !om_held_against(model, -1, session, want) && is_unawaited(model, session, want, false);
}

bool om_cleanup_may(const struct om *model, int session, const struct om_want *want)
{
    return !om_held_against(model, -1, session, want) && is_unawaited(model, session, want, true);
}

bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int place, uint64_t session,
                   int txn)
{
    struct om_thing dir = {place < 0 ? OM_INDEX : OM_DIR, document.index, (int16_t)place};

    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        int of = lock->owner < OM_SESSIONS ? lock->owner : session_of(model, lock->owner);
        bool leaving = lock->owner < OM_SESSIONS
                           ? model->sessions[lock->owner].leaving != 0
                           : lock->owner < OM_SESSIONS + OM_TXNS && model->txns[lock->owner - OM_SESSIONS].abandoned;
        if (leaving || lock->token != token || lock->what.within) /* who is leaving has no tokens any more */
            continue;
        if (om_same(document, lock->what.on) || lies_in(model, dir, lock->what.on))
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
        count += model->locks[i].owner == owner && !model->locks[i].what.within;
    return count;
}

static struct om_lock *lock_on(struct om *model, int owner, struct om_thing on)
{
    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner == owner && !model->locks[i].what.within && om_same(model->locks[i].what.on, on))
            return &model->locks[i];
    return NULL;
}

bool om_holds(const struct om *model, int owner, const struct om_want *want)
{
    const struct om_lock *lock = lock_on((struct om *)model, owner, want->on);

    return lock != NULL && lock->what.mode >= want->mode;
}

/* --- Rules 15 and 26: a grant ------------------------------------------------------------------------------------- */

static uint64_t token_for(struct om *model, const struct om_wait *request)
{
    uint64_t newest = 0;

    if (is_single_write(request->owner)) /* it is over before anybody could name it */
        return 0;
    for (int i = 0; i < request->want_count; i++) {
        if (!om_holds(model, request->owner, &request->wants[i]))
            return model->last_token >= model->ts ? model->last_token + 1 : model->ts;
        uint64_t token = lock_on(model, request->owner, request->wants[i].on)->token;
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
    for (int i = 0; i < request->want_count; i++) {
        const struct om_want *want = &request->wants[i];
        struct om_lock *lock = want->within ? NULL : lock_on(model, request->owner, want->on);
        if (lock == NULL && model->lock_count == OM_LOCKS) {
            om_wrong(step, "the model has no room for another lock");
            return;
        }
        bool same = lock != NULL && lock->token == token;
        uint8_t mode = lock != NULL && lock->what.mode > want->mode ? lock->what.mode : want->mode;
        if (lock == NULL)
            lock = &model->locks[model->lock_count++];
        *lock = (struct om_lock){request->owner, *want, token};
        lock->what.mode = mode;
        model->dirty |= !same && request->owner < OM_SESSIONS;
    }
}

/* --- Rules 18 to 20: circles -------------------------------------------------------------------------------------- */

/* Whether `q` waits with whoever holds a lock. */
static bool waits_with(const struct om *model, const struct om_wait *q, int holder)
{
    return q->owner == holder || session_of(model, q->owner) == holder ||
           (!is_single_write(holder) && session_of(model, holder) == q->owner);
}

static bool depends_on_locks(const struct om *model, const struct om_wait *request, const struct om_wait *q)
{
    for (int i = 0; i < model->lock_count; i++)
        if (is_kept_by(model, request, &model->locks[i]) && waits_with(model, q, model->locks[i].owner))
            return true;
    return false;
}

static bool is_younger(const struct om *model, const struct om_wait *a, const struct om_wait *b)
{
    if (b->kept != 0 || a->kept != 0)
        return b->kept != 0 && a->kept == 0;
    return model->age[a->owner] != model->age[b->owner] ? model->age[a->owner] > model->age[b->owner]
                                                        : model->born[a->owner] > model->born[b->owner];
}

/* Who depends on whom now: sets of requests, by their slots. */
struct dependences {
    uint32_t waiting;
    uint32_t queue[OM_WAITS]; /* on which it depends since they stand before it */
    uint32_t locks[OM_WAITS]; /* and since whoever they wait with holds what is against it */
};

static struct dependences look_around(const struct om *model)
{
    struct dependences all = {0};

    for (int i = 0; i < OM_WAITS; i++)
        all.waiting |= (uint32_t)(model->waits[i].state == OM_WAITING) << i;
    for (int i = 0; i < OM_WAITS; i++)
        for (int j = 0; (all.waiting >> i & 1) != 0 && j < OM_WAITS; j++) {
            if ((all.waiting >> j & 1) == 0)
                continue;
            all.queue[i] |= (uint32_t)stands_before(model, &model->waits[j], &model->waits[i]) << j;
            all.locks[i] |= (uint32_t)depends_on_locks(model, &model->waits[i], &model->waits[j]) << j;
        }
    return all;
}

enum by { BY_QUEUE = 1, BY_LOCK = 2, BY_ANY = 3 };

/*
 * Looks for a circle in which `victim` is the youngest: a way from it, over requests that wait and are not younger, back to it. The
 * last step of the way must be one over the queue, or over a lock.
 */
static bool closes_circle(const struct om *model, const struct dependences *all, const struct om_wait *victim, enum by last)
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

static bool any_circle(const struct om *model)
{
    struct dependences all = look_around(model);

    for (int i = 0; i < OM_WAITS; i++)
        if ((all.waiting >> i & 1) != 0 && closes_circle(model, &all, &model->waits[i], BY_ANY))
            return true;
    return false;
}

static struct om_wait *wait_named(struct om *model, uint64_t name)
{
    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *wait = &model->waits[i];
        if (wait->state == OM_WAITING && (wait->op != NULL ? wait->op->number : om_left(wait->kept)) == name)
            return wait;
    }
    return NULL;
}

/* What clients are told: each waits for the next. */
static bool told_truly(struct om *model, const struct dependences *all, const struct om_circle *circle)
{
    for (int i = 0; i < circle->count; i++) {
        const struct om_wait *from = wait_named(model, circle->steps[i]);
        const struct om_wait *to = wait_named(model, circle->steps[(i + 1) % circle->count]);
        if (from == NULL || to == NULL ||
            ((all->queue[from - model->waits] | all->locks[from - model->waits]) >> (to - model->waits) & 1) == 0)
            return false;
    }
    return true;
}

/* Rule 20: to the end of the queue goes a single write, where that opens a circle. NULL: it is as it must be. */
static const char *judge_circle(struct om *model, const struct om_circle *circle, const struct om_wait *victim)
{
    struct dependences all = look_around(model);

    if (victim == NULL || victim->kept != 0)
        return "the victim of a deadlock does not wait";
    if (!told_truly(model, &all, circle))
        return "a circle was reported that is none";
    if (!closes_circle(model, &all, victim, BY_ANY))
        return "the victim of a deadlock is not the youngest";
    bool may = is_single_write(victim->owner) && !victim->upgrade && closes_circle(model, &all, victim, BY_QUEUE);
    if (circle->requeued && !may)
        return "the victim of a deadlock goes to the end of the queue, and must not";
    if (!circle->requeued && may && !closes_circle(model, &all, victim, BY_LOCK))
        return "the victim of a deadlock does not go to the end of the queue";
    return NULL;
}

/* Does what the product did about a circle, once it is sure that it may. */
static void open_circle(struct om *model, struct om_step *step)
{
    if (step->circles_met == step->circle_count) {
        om_wrong(step, "requests wait for each other in a circle that was not seen");
        return;
    }
    const struct om_circle *circle = &step->circles[step->circles_met++];
    struct om_wait *victim = wait_named(model, circle->victim);
    const char *wrong = judge_circle(model, circle, victim);
    if (wrong != NULL) {
        om_wrong(step, wrong);
    } else if (circle->requeued) {
        victim->arrival = ++model->last_arrival;
    } else {
        victim->state = OM_REFUSED;
        victim->cause = OM_DEADLOCK;
        victim->event = ++model->last_event;
    }
}

/* --- Rule 14: after each change ----------------------------------------------------------------------------------- */

/* Of what ended sessions left only so many are granted in a step. */
static struct om_wait *foremost_free(struct om *model)
{
    struct om_wait *best = NULL;

    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *request = &model->waits[i];
        bool late = request->kept != 0 && model->left_max == 0;
        if (request->state == OM_WAITING && !late && is_free(model, request) &&
            (best == NULL || is_ahead(request, best)))
            best = request;
    }
    return best;
}

static void settle(struct om *model, struct om_step *step)
{
    while (step->wrong == NULL && model->withheld == 0) {
        struct om_wait *request;
        if (any_circle(model)) {
            open_circle(model, step);
        } else if ((request = foremost_free(model)) != NULL) {
            model->left_max -= request->kept != 0;
            grant(model, step, request);
            request->event = ++model->last_event;
        } else {
            return;
        }
    }
}

void om_grant_left(struct om *model, int max)
{
    model->left_max = max;
}

bool om_any_late(const struct om *model)
{
    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].state == OM_WAITING && model->waits[i].kept != 0 && is_free(model, &model->waits[i]))
            return true;
    return false;
}

void om_withhold(struct om *model)
{
    model->withheld++;
}

void om_let_in(struct om *model, struct om_step *step)
{
    model->withheld--;
    settle(model, step);
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

void om_withdraw(struct om *model, struct om_step *step, int wait)
{
    model->waits[wait].state = OM_NEW;
    model->waits[wait].event = 0;
    settle(model, step);
}

enum om_answer om_ask(struct om *model, struct om_step *step, int wait, const struct om_want *wants, int count,
                      bool may_wait)
{
    struct om_wait *request = &model->waits[wait];

    om_withdraw(model, step, wait);
    memcpy(request->wants, wants, (size_t)count * sizeof(*wants));
    request->want_count = count;
    request->arrival = ++model->last_arrival;
    request->upgrade = strengthens(model, request);
    bool left = request->kept != 0 && may_wait;
    if (is_free(model, request) && (!left || model->left_max > 0)) {
        model->left_max -= left;
        grant(model, step, request);
        settle(model, step);
        return OM_YES;
    }
    if (!may_wait)
        return OM_NO;
    request->state = OM_WAITING;
    settle(model, step);
    request->event = 0;
    return request->state == OM_WAITING ? OM_WAIT : request->state == OM_GRANTED ? OM_YES : OM_CIRCLE;
}

bool om_take(struct om *model, struct om_step *step, int owner, const struct om_want *want)
{
    struct om_wait request = {.owner = owner, .want_count = 1, .wants = {*want}, .arrival = ++model->last_arrival};

    request.upgrade = strengthens(model, &request);
    if (!is_free(model, &request))
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

void om_move(struct om *model, struct om_step *step, int index, int doc, int place)
{
    model->places[index][doc] = (int16_t)place;
    settle(model, step);
}

/* --- Between steps ------------------------------------------------------------------------------------------------ */

const char *om_check(const struct om *model)
{
    for (int i = 0; i < model->lock_count; i++)
        for (int j = 0; j < i; j++) {
            const struct om_lock *a = &model->locks[i], *b = &model->locks[j];
            if (against(model, &a->what, &b->what) && !passes(model, a->owner, b->owner) &&
                !passes(model, b->owner, a->owner))
                return "two locks are held that do not go together";
        }
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        if (wait->used && wait->ready) /* it has what it asked for, or has ended */
            continue;
        if (wait->used && wait->state != OM_WAITING)
            return "a wait is left that waits for nothing";
        bool late = wait->kept != 0 && model->left_max == 0;
        if (wait->used && !late && is_free(model, wait))
            return "a request waits that could be granted";
    }
    return any_circle(model) ? "requests wait for each other in a circle" : NULL;
}
