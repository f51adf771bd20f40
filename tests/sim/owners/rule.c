/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of locks, as rows in arrays. See rule.h. */
#include "rule.h"

#include <string.h>

static const int8_t parents[OM_DIRS] = {-1, 0, 1, 0, 2};

void om_wrong(struct om_step *step, const char *what)
{
    if (step->wrong == NULL)
        step->wrong = what;
}

int om_session_of(const struct om *model, int owner)
{
    uint32_t serial = 0;

    if (owner >= om_wait_owner(0))
        serial = model->waits[owner - om_wait_owner(0)].session;
    else if (owner >= om_txn_owner(0))
        serial = model->txns[owner - om_txn_owner(0)].session;
    for (int i = 0; serial != 0 && i < OM_SESSIONS; i++)
        if (model->sessions[i].serial == serial)
            return i;
    return -1;
}

static bool passes(const struct om *model, int asker, int holder)
{
    return asker == holder || (holder < OM_SESSIONS && om_session_of(model, asker) == holder);
}

bool om_same(struct om_thing a, struct om_thing b)
{
    return a.kind == b.kind &&
           (a.kind == OM_ALL || (a.index == b.index && (a.kind == OM_INDEX || a.number == b.number)));
}

static bool dir_covers(int above, int dir)
{
    while (dir >= 0 && dir != above)
        dir = parents[dir];
    return dir == above && dir >= 0;
}

bool om_covers(const struct om *model, struct om_thing above, struct om_thing thing)
{
    if (above.kind == OM_ALL)
        return true;
    if (above.kind == OM_NAME || thing.kind == OM_NAME)
        return om_same(above, thing);
    if (thing.kind == OM_ALL || above.index != thing.index)
        return false;
    if (above.kind == OM_INDEX)
        return true;
    if (above.kind == OM_DOC)
        return thing.kind == OM_DOC && thing.number == above.number;
    if (thing.kind == OM_INDEX)
        return false;
    return dir_covers(above.number, thing.kind == OM_DIR ? thing.number : model->places[thing.index][thing.number]);
}

static bool go_together(int a, int b)
{
    return a != OM_X && b != OM_X && !(a == OM_U && b == OM_U);
}

bool om_against(const struct om *model, const struct om_want *a, const struct om_want *b)
{
    if (go_together(a->mode, b->mode) || (a->within && b->within))
        return false;
    return (!a->within && om_covers(model, a->on, b->on)) || (!b->within && om_covers(model, b->on, a->on));
}

static bool any_against(const struct om *model, const struct om_want *wants, int count, const struct om_want *what)
{
    for (int i = 0; i < count; i++)
        if (om_against(model, &wants[i], what))
            return true;
    return false;
}

static bool against_lock(const struct om *model, const struct om_wait *r, const struct om_lock *lock)
{
    return any_against(model, r->wants, r->want_count, &lock->what) && !passes(model, r->owner, lock->owner);
}

static bool against_request(const struct om *model, const struct om_wait *r, const struct om_wait *q)
{
    for (int i = 0; i < q->want_count; i++)
        if (any_against(model, r->wants, r->want_count, &q->wants[i]))
            return !passes(model, r->owner, q->owner);
    return false;
}

/* What ended sessions left, then upgrades, then all others; among themselves by arrival. */
static int rank(const struct om_wait *r)
{
    return r->kept != 0 ? 0 : r->upgrade ? 1 : 2;
}

static bool ahead(const struct om_wait *a, const struct om_wait *b)
{
    return rank(a) != rank(b) ? rank(a) < rank(b) : a->arrival < b->arrival;
}

/* Whether q waits for what `asker`, or whoever he passes, holds. */
static bool waits_behind(const struct om *model, const struct om_wait *q, int asker)
{
    for (int i = 0; i < model->lock_count; i++)
        if (passes(model, asker, model->locks[i].owner) && against_lock(model, q, &model->locks[i]))
            return true;
    return false;
}

/* Whether q's place in the queue is in r's way: not where q waits for what r's owner or its session holds. */
static bool stands_before(const struct om *model, const struct om_wait *q, const struct om_wait *r)
{
    return ahead(q, r) && against_request(model, r, q) && !waits_behind(model, q, r->owner);
}

static bool grantable(const struct om *model, const struct om_wait *r)
{
    for (int i = 0; i < model->lock_count; i++)
        if (against_lock(model, r, &model->locks[i]))
            return false;
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *q = &model->waits[i];
        if (q->state == OM_WAITING && q != r && stands_before(model, q, r))
            return false;
    }
    return true;
}

static bool is_upgrade(const struct om *model, const struct om_wait *r)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->what.within || lock->what.on.kind == OM_NAME || !passes(model, r->owner, lock->owner))
            continue;
        for (int j = 0; j < r->want_count; j++)
            if (om_covers(model, lock->what.on, r->wants[j].on))
                return true;
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

int om_lock_count(const struct om *model, int owner)
{
    int count = 0;

    for (int i = 0; i < model->lock_count; i++)
        count += model->locks[i].owner == owner && !model->locks[i].what.within;
    return count;
}

/* --- Looking beside requests -------------------------------------------------------------------------------------- */

bool om_free_for(const struct om *model, int session, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner != session && om_against(model, want, &model->locks[i].what))
            return false;
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *q = &model->waits[i];
        if (q->state == OM_WAITING && any_against(model, q->wants, q->want_count, want) &&
            (session < 0 || !waits_behind(model, q, session)))
            return false;
    }
    return true;
}

bool om_unheld_for(const struct om *model, int session, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner != session && om_against(model, want, &model->locks[i].what))
            return false;
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *q = &model->waits[i];
        if (q->state == OM_WAITING && q->kept != 0 && any_against(model, q->wants, q->want_count, want) &&
            (session < 0 || !waits_behind(model, q, session)))
            return false;
    }
    return true;
}

bool om_held_against(const struct om *model, int owner, int session, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner != owner && lock->owner != session && om_against(model, want, &lock->what))
            return true;
    }
    return false;
}

bool om_has(const struct om *model, int owner, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner == owner && !lock->what.within && lock->what.mode >= want->mode &&
            om_covers(model, lock->what.on, want->on))
            return true;
    }
    return false;
}

/* The session behind an owner; 0: none. */
static uint64_t session_behind(const struct om *model, int owner)
{
    if (owner < OM_SESSIONS)
        return model->sessions[owner].serial;
    return owner < om_wait_owner(0) ? model->txns[owner - om_txn_owner(0)].session : 0;
}

bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int place, uint64_t session,
                   int txn)
{
    struct om_thing dir = {place < 0 ? OM_INDEX : OM_DIR, document.index, (int8_t)place};

    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner < OM_SESSIONS && model->sessions[lock->owner].leaving != 0)
            continue; /* its tokens cover nothing any more */
        if (lock->token == token && !lock->what.within &&
            (om_same(lock->what.on, document) || om_covers(model, lock->what.on, dir)))
            return (txn >= 0 && lock->owner == om_txn_owner(txn)) ||
                   (session != 0 && session_behind(model, lock->owner) == session);
    }
    return false;
}

/* --- Granting ----------------------------------------------------------------------------------------------------- */

static struct om_lock *lock_on(struct om *model, int owner, struct om_thing on)
{
    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner == owner && !model->locks[i].what.within && om_same(model->locks[i].what.on, on))
            return &model->locks[i];
    return NULL;
}

bool om_holds(const struct om *model, int owner, const struct om_want *want)
{
    for (int i = 0; i < model->lock_count; i++) {
        const struct om_lock *lock = &model->locks[i];
        if (lock->owner == owner && !lock->what.within && om_same(lock->what.on, want->on))
            return lock->what.mode >= want->mode;
    }
    return false;
}

/*
 * The newest token of what is wanted when all of it is held already, else the timestamp of this grant, or the next that nobody
 * has. Writes of their own get none.
 */
static uint64_t choose_token(struct om *model, const struct om_wait *r)
{
    uint64_t newest = 0;

    if (r->owner >= om_wait_owner(0))
        return 0;
    for (int i = 0; i < r->want_count; i++) {
        const struct om_lock *lock = lock_on(model, r->owner, r->wants[i].on);
        if (lock == NULL || lock->what.mode < r->wants[i].mode)
            return model->last_token >= model->ts ? model->last_token + 1 : model->ts;
        newest = lock->token > newest ? lock->token : newest;
    }
    return newest;
}

static void add_lock(struct om *model, struct om_step *step, const struct om_lock *lock)
{
    if (model->lock_count == OM_LOCKS) {
        om_wrong(step, "the model has no room for another lock");
        return;
    }
    model->locks[model->lock_count++] = *lock;
}

static void grant(struct om *model, struct om_step *step, struct om_wait *r)
{
    uint64_t token = choose_token(model, r);

    model->last_token = token > model->last_token ? token : model->last_token;
    r->state = OM_GRANTED;
    r->done.token = token;
    for (int i = 0; i < r->want_count; i++) {
        struct om_lock *lock = r->wants[i].within ? NULL : lock_on(model, r->owner, r->wants[i].on);
        if (lock == NULL) {
            add_lock(model, step, &(struct om_lock){r->owner, r->wants[i], token});
            model->dirty |= r->owner < OM_SESSIONS;
            continue;
        }
        lock->what.mode = r->wants[i].mode > lock->what.mode ? r->wants[i].mode : lock->what.mode;
        model->dirty |= lock->token != token && r->owner < OM_SESSIONS;
        lock->token = token;
    }
}

/* Grants the foremost of those that can be granted. */
static bool grant_one(struct om *model, struct om_step *step)
{
    struct om_wait *best = NULL;

    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *r = &model->waits[i];
        if (r->state == OM_WAITING && (best == NULL || ahead(r, best)) && grantable(model, r))
            best = r;
    }
    if (best == NULL)
        return false;
    grant(model, step, best);
    best->event = ++model->last_event;
    return true;
}

/* --- Circles ------------------------------------------------------------------------------------------------------ */

/*
 * Whether r depends on q: q is ahead and in the way, or what is in the way is held by q's owner, its session, or a transaction of
 * q's owner, which nobody ends before q does. So r may depend on itself.
 */
static bool depends(const struct om *model, const struct om_wait *r, const struct om_wait *q)
{
    if (stands_before(model, q, r))
        return true;
    int session = om_session_of(model, q->owner);
    for (int i = 0; i < model->lock_count; i++) {
        int holder = model->locks[i].owner;
        bool ends_it = q->owner == holder || session == holder ||
                       (holder < om_wait_owner(0) && om_session_of(model, holder) == q->owner);
        if (ends_it && against_lock(model, r, &model->locks[i]))
            return true;
    }
    return false;
}

/* No circle: requests can be taken away one by one, each when it depends on none that is left. */
static bool has_circle(const struct om *model)
{
    const struct om_wait *left[OM_WAITS];
    uint64_t on[OM_WAITS];
    int count = 0;

    for (int i = 0; i < OM_WAITS; i++)
        if (model->waits[i].state == OM_WAITING)
            left[count++] = &model->waits[i];
    for (int i = 0; i < count; i++) {
        on[i] = 0;
        for (int j = 0; j < count; j++)
            on[i] |= (uint64_t)depends(model, left[i], left[j]) << j;
    }
    uint64_t open = ((uint64_t)1 << count) - 1;
    for (bool progress = true; progress && open != 0;) {
        progress = false;
        for (int i = 0; i < count; i++)
            if ((open >> i & 1) != 0 && (on[i] & open) == 0) {
                open &= ~((uint64_t)1 << i);
                progress = true;
            }
    }
    return open != 0;
}

static struct om_wait *wait_named(struct om *model, uint64_t name)
{
    for (int i = 0; i < OM_WAITS; i++) {
        struct om_wait *wait = &model->waits[i];
        if (wait->used && (wait->op != NULL ? wait->op->number : om_left(wait->kept)) == name)
            return wait;
    }
    return NULL;
}

static bool younger(const struct om *model, int a, int b)
{
    return model->age[a] != model->age[b] ? model->age[a] > model->age[b] : model->born[a] > model->born[b];
}

/* Does what the product did about a circle, once it is sure that it was right. */
static void open_circle(struct om *model, struct om_step *step)
{
    if (step->circles_met == step->circle_count) {
        om_wrong(step, "requests wait for each other in a circle that was not seen");
        return;
    }
    const struct om_circle *circle = &step->circles[step->circles_met++];
    struct om_wait *victim = wait_named(model, circle->victim);
    for (int i = 0; i < circle->count; i++) {
        const struct om_wait *from = wait_named(model, circle->steps[i]);
        const struct om_wait *to = wait_named(model, circle->steps[(i + 1) % circle->count]);
        if (from == NULL || to == NULL || from->state != OM_WAITING || !depends(model, from, to))
            om_wrong(step, "a circle was reported that is none");
        else if (victim != NULL && from->kept == 0 && younger(model, from->owner, victim->owner))
            om_wrong(step, "the victim of a deadlock is not the youngest");
    }
    if (victim == NULL || victim->state != OM_WAITING || victim->kept != 0) {
        om_wrong(step, "the victim of a deadlock does not wait");
        return;
    }
    if (circle->requeued) {
        victim->arrival = ++model->last_arrival;
        return;
    }
    victim->state = OM_REFUSED;
    victim->cause = OM_DEADLOCK;
    victim->event = ++model->last_event;
}

/* Opens circles and grants until neither is left to do. `circles`: one may have closed. */
static void settle(struct om *model, struct om_step *step, bool circles)
{
    while (step->wrong == NULL) {
        if (circles && has_circle(model)) {
            open_circle(model, step);
            continue;
        }
        circles = grant_one(model, step);
        if (!circles)
            return;
    }
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

void om_withdraw(struct om *model, struct om_step *step, int wait)
{
    struct om_wait *r = &model->waits[wait];
    bool waited = r->state == OM_WAITING;

    r->state = OM_NEW;
    r->event = 0;
    if (waited)
        settle(model, step, false);
}

enum om_answer om_ask(struct om *model, struct om_step *step, int wait, const struct om_want *wants, int count,
                      bool may_wait)
{
    struct om_wait *r = &model->waits[wait];

    om_withdraw(model, step, wait);
    memcpy(r->wants, wants, (size_t)count * sizeof(*wants));
    r->want_count = count;
    r->arrival = ++model->last_arrival;
    r->upgrade = is_upgrade(model, r);
    if (grantable(model, r)) {
        grant(model, step, r);
        settle(model, step, true);
        return OM_YES;
    }
    if (!may_wait)
        return OM_NO;
    r->state = OM_WAITING;
    settle(model, step, true);
    r->event = 0;
    return r->state == OM_WAITING ? OM_WAIT : r->state == OM_GRANTED ? OM_YES : OM_CIRCLE;
}

bool om_take(struct om *model, struct om_step *step, int owner, const struct om_want *want)
{
    struct om_wait request = {.owner = owner, .want_count = 1, .wants = {*want}, .arrival = ++model->last_arrival};

    request.session = 0;
    request.upgrade = is_upgrade(model, &request);
    if (!grantable(model, &request))
        return false;
    grant(model, step, &request);
    settle(model, step, true);
    return true;
}

int om_release_all(struct om *model, struct om_step *step, int owner)
{
    int kept = 0, released = 0;

    for (int i = 0; i < model->lock_count; i++) {
        if (model->locks[i].owner != owner)
            model->locks[kept++] = model->locks[i];
        else
            released += !model->locks[i].what.within;
    }
    bool any = kept < model->lock_count;
    model->lock_count = kept;
    model->dirty |= any && owner < OM_SESSIONS;
    if (any) /* who waited behind it may be in its own way now */
        settle(model, step, true);
    return released;
}

bool om_release(struct om *model, struct om_step *step, int owner, struct om_thing on)
{
    struct om_lock *lock = lock_on(model, owner, on);

    if (lock == NULL)
        return false;
    *lock = model->locks[--model->lock_count];
    model->dirty |= owner < OM_SESSIONS;
    settle(model, step, true);
    return true;
}

void om_move(struct om *model, struct om_step *step, int index, int doc, int place)
{
    if (model->places[index][doc] == place)
        return;
    model->places[index][doc] = (int8_t)place;
    settle(model, step, true);
}

bool om_alone(const struct om *model, int owner, int index, int doc)
{
    struct om_thing document = {OM_DOC, (uint8_t)index, (int8_t)doc};

    for (int i = 0; i < model->lock_count; i++)
        if (model->locks[i].owner != owner && om_same(model->locks[i].what.on, document))
            return false;
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        for (int j = 0; wait->used && wait->state == OM_WAITING && j < wait->want_count; j++)
            if (om_same(wait->wants[j].on, document))
                return false;
    }
    return true;
}

/* --- Between steps ------------------------------------------------------------------------------------------------ */

const char *om_check(const struct om *model)
{
    for (int i = 0; i < model->lock_count; i++)
        for (int j = 0; j < i; j++) {
            const struct om_lock *a = &model->locks[i], *b = &model->locks[j];
            if (om_against(model, &a->what, &b->what) && !passes(model, a->owner, b->owner) &&
                !passes(model, b->owner, a->owner))
                return "two locks are held that do not go together";
        }
    for (int i = 0; i < OM_WAITS; i++) {
        const struct om_wait *wait = &model->waits[i];
        if (wait->used && wait->state != OM_WAITING)
            return "a wait is left that waits for nothing";
        if (wait->used && grantable(model, wait))
            return "a request waits that could be granted";
    }
    return has_circle(model) ? "requests wait for each other in a circle" : NULL;
}
