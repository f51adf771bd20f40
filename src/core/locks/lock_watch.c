/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waiting requests watch. README-locks.md, "What a request watches", invariants 5 and 10.
 *
 * A waiting request watches one thing that blocks it, its obstacle: a hold, or the nearest conflicting request that
 * precedes it, so that a release wakes one request of a long queue. It is evaluated again only when that is gone. The
 * choice of the obstacle has no effect on grants.
 *
 * Requests of one owner do not block each other, so one obstacle can block thousands of them. They form a group, whose
 * first one, the leader, watches the obstacle for all of them. When nothing blocks the leader at its place any more,
 * the next one leads, and is evaluated. So each change evaluates one request of a group, and one more for each that it
 * grants or that is blocked only elsewhere.
 */
#include "base/check.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

static bool is_awaited(const struct lock_owner *owner)
{
    return owner != NULL && owner->awaited_count > 0;
}

static bool is_blocked_by(const struct lock_waiter *waiter, const struct lock_owner *owner)
{
    const struct lock_hold *hold =
        is_awaited(owner) ? lock__hold_find(waiter->request->table, owner, waiter->resource) : NULL;
    return hold != NULL && (hold->bits & lock__conflicts[waiter->bit]) != 0 &&
           !lock__ignores(waiter->request->owner, owner);
}

bool lock__waits_for(const struct lock_request *request, const struct lock_owner *owner,
                     const struct lock_owner *session)
{
    if (!is_awaited(owner) && !is_awaited(session))
        return false;
    for (size_t i = 0; i < request->waiter_count; i++) {
        request->table->work++;
        if (is_blocked_by(&request->waiters[i], owner) || is_blocked_by(&request->waiters[i], session))
            return true;
    }
    return false;
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

/* Adds a request to a list of watchers, at `link`. */
static void link_watch(struct lock_request *request, struct lock_request **link)
{
    REQUIRE(request->watched == NULL);
    request->watch_next = *link;
    if (*link != NULL)
        (*link)->watched = &request->watch_next;
    *link = request;
    request->watched = link;
}

static void unlink_watch(struct lock_request *request)
{
    REQUIRE(request->watched != NULL);
    *request->watched = request->watch_next;
    if (request->watch_next != NULL)
        request->watch_next->watched = request->watched;
    request->watched = NULL;
    request->watch_next = NULL;
}

static void group_free_if_empty(struct lock_group *group)
{
    if (group->members != NULL)
        return;
    group->leader->group = NULL;
    mem_free(group);
}

/* Adds a request to the group of the nearest preceding one of its owner, `ahead`, which may have none yet. */
static void group_join(struct lock_request *request, struct lock_request *ahead)
{
    REQUIRE(request->group == NULL && request->owner == ahead->owner && lock__precedes(ahead, request));
    struct lock_group *group = ahead->group;
    if (group == NULL) {
        group = ahead->group = mem_zalloc(sizeof *group);
        group->leader = ahead;
    }
    request->group = group;
    link_watch(request, ahead == group->leader ? &group->members : &ahead->watch_next);
}

/* Has the next one lead the group that a request leads, if it does: that one is blocked at their place no more. */
static void group_pass_on(struct lock_request *request)
{
    struct lock_group *group = request->group;
    if (group == NULL)
        return;
    REQUIRE(group->leader == request && group->members != NULL);
    struct lock_request *next = group->members;
    request->table->work++;
    request->group = NULL;
    group->leader = next;
    unlink_watch(next);
    group_free_if_empty(group);
    lock__queue_schedule(next);
}

/* Returns: whether what a waiting request watches, or the leader of its group, blocks it at this one of its places. */
static bool is_known_blocked(const struct lock_waiter *waiter)
{
    const struct lock_request *request = waiter->request;
    const struct lock_request *leader = request->group == NULL ? request : request->group->leader;
    return request->blocked_at == waiter && leader->watched != NULL;
}

/* --- Obstacles ---------------------------------------------------------------------------------------------------- */

/* The search for a preceding waiter that blocks a request. */
struct obstacle_search {
    bool near; /* only the nearest ones of each list are visited */
    bool cut;  /* there are more */
};

/*
 * Waiters of a list that a request visits before it looks for a hold that blocks it. The first one blocks it as a rule.
 * But thousands may not: those of its owner, and those that wait for a hold of its owner.
 */
enum { NEAR_LOOKS = 4 };

/* What blocks a request. */
struct obstacle {
    struct lock_waiter *at;         /* where: one of the request's waiters */
    struct lock_request **watchers; /* of the hold or the waiter that blocks it there; NULL: `ahead` is blocked there */
    struct lock_request *ahead;     /* the nearest preceding request of its owner there */
};

static bool is_not_ignored(const struct treap_node *node, const void *owner)
{
    return !lock__ignores(owner, container_of(node, const struct lock_waiter, order_node)->request->owner);
}

/*
 * Returns: the link of the nearest waiter before `waiter` that `request` does not ignore, or the head. All waiters of
 * the owner in between are skipped: a transaction, which ignores its session's, too, has one request at a time.
 */
static const struct list *before_ignored(const struct list *head, const struct lock_waiter *waiter,
                                         const struct lock_request *request)
{
    uint64_t visits = 0;
    const struct treap_node *found = treap_prev_kind(&waiter->order_node, is_not_ignored, request->owner, &visits);
    request->table->work += visits;
    return found == NULL ? head : &container_of(found, const struct lock_waiter, order_node)->link;
}

/* Returns: the nearest waiter before `link` in its list that blocks a request, or NULL. */
static struct lock_waiter *nearest_before(const struct list *head, const struct list *link,
                                          const struct lock_request *request, struct obstacle_search *search)
{
    const struct lock_owner *owner = request->owner;
    int looks = 0;
    for (const struct list *at = link->prev; at != head;) {
        struct lock_waiter *waiter = list_entry(at, struct lock_waiter, link);
        bool ignored = lock__ignores(owner, waiter->request->owner);
        if (search->near && looks++ == NEAR_LOOKS) {
            search->cut = true;
            return NULL;
        }
        request->table->work++;
        if (!ignored && !lock__waits_for(waiter->request, owner, owner->session))
            return waiter;
        at = ignored && !search->near ? before_ignored(head, waiter, request) : at->prev;
    }
    return NULL;
}

/* Returns: the link of a list before which a request has, or would have, its place. */
static const struct list *place_in(const struct lock_queue *queue, enum lock_bit bit, const struct lock_waiter *waiter)
{
    if (bit == waiter->bit && list_linked(&waiter->link)) /* it is in this list itself */
        return &waiter->link;
    const struct treap_node *next = lock__queue_position(queue, bit, waiter->request);
    return next == NULL ? &queue->waiting[bit] : &container_of(next, const struct lock_waiter, order_node)->link;
}

/* Returns: whether a list has at most one request, and that is the owner's. */
static bool all_of(const struct list *ward_requests, const struct lock_owner *owner)
{
    return list_empty(ward_requests) ||
           (ward_requests->next == ward_requests->prev &&
            list_entry(ward_requests->next, struct lock_request, of_session)->owner == owner);
}

static bool blocks_all_waiters(const struct lock_request *request, const struct lock_owner *owner,
                               const struct resource *resource, enum lock_bit bit)
{
    const struct lock_hold *hold = is_awaited(owner) ? lock__hold_find(request->table, owner, resource) : NULL;
    return hold != NULL && (hold->bits & lock__conflicts[bit]) != 0 &&
           all_of(&owner->dependent_requests, request->owner);
}

/*
 * Returns: whether no waiter with a bit at a resource blocks a request, because all of them wait
 * for a hold of its owner, or of the owner's session, on this resource. Thousands are skipped
 * without a visit.
 */
static bool ignores_all_waiters(const struct lock_request *request, const struct resource *resource, enum lock_bit bit)
{
    return blocks_all_waiters(request, request->owner, resource, bit) ||
           blocks_all_waiters(request, request->owner->session, resource, bit);
}

/* Returns: the nearest preceding waiter of any bit that blocks `waiter` at its resource, or NULL. */
static struct lock_waiter *nearest_obstacle(const struct lock_waiter *waiter, struct obstacle_search *search)
{
    const struct lock_queue *queue = waiter->resource->queue;
    struct lock_waiter *nearest = NULL;
    for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        if ((lock__conflicts[waiter->bit] & lock__mask(bit)) == 0 || queue->counts[bit] == 0 ||
            ignores_all_waiters(waiter->request, waiter->resource, bit))
            continue;
        struct lock_waiter *found =
            nearest_before(&queue->waiting[bit], place_in(queue, bit, waiter), waiter->request, search);
        if (found != NULL && (nearest == NULL || lock__precedes(nearest->request, found->request)))
            nearest = found;
    }
    return nearest;
}

/*
 * Returns: whether anything blocks a request at one of its places, by the rule alone. Visits all requests that wait
 * there. For checks: it is no work of the step.
 */
static bool is_blocked_at(const struct lock_waiter *waiter)
{
    struct lock_table *table = waiter->request->table;
    const struct lock_queue *queue = waiter->resource->queue;
    uint64_t work = table->work, lookups = table->resources.lookups;
    bool blocked = lock__find_conflicting_hold(table, waiter) != NULL;
    for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT && !blocked; bit++) {
        if ((lock__conflicts[waiter->bit] & lock__mask(bit)) == 0)
            continue;
        list_for_each(link, &queue->waiting[bit])
        {
            const struct lock_request *other = list_entry(link, struct lock_waiter, link)->request;
            if (blocked || !lock__precedes(other, waiter->request))
                break;
            blocked = lock__blocks(waiter->request->owner, other);
        }
    }
    table->work = work;
    table->resources.lookups = lookups;
    return blocked;
}

/*
 * Returns: the nearest request of the same owner that precedes `waiter` in its list, if it is known to be blocked
 * there, and among the nearest ones; or NULL. What blocks it blocks this one, too (invariant 10).
 */
static struct lock_request *find_ahead(const struct lock_waiter *waiter)
{
    const struct lock_queue *queue = waiter->resource->queue;
    const struct list *head = &queue->waiting[waiter->bit], *at = place_in(queue, waiter->bit, waiter)->prev;
    for (int looks = 0; at != head && looks < NEAR_LOOKS; at = at->prev, looks++) {
        const struct lock_waiter *other = list_entry(at, struct lock_waiter, link);
        waiter->request->table->work++;
        if (other->request->owner != waiter->request->owner)
            continue;
        if (!is_known_blocked(other))
            return NULL;
#ifdef TIDELOCK_CHECK_COSTLY /* builds of developers, in which the tests run */
        INSIST(is_blocked_at(waiter));
#endif
        return other->request;
    }
    return NULL;
}

/* Returns: whether a request may join a group: it leads none, and another request of its owner waits. */
static bool may_join(const struct lock_request *request)
{
    const struct list *requests = &request->owner->requests;
    return request->group == NULL && !list_empty(requests) &&
           (requests->next != requests->prev || requests->next != &request->of_owner);
}

/* Finds a preceding waiter that blocks a request at one of its places, or a group that it may join. */
static bool find_waiter_at(struct lock_waiter *waiter, struct obstacle_search *search, struct obstacle *ret_obstacle)
{
    waiter->request->table->work++;
    if (waiter->resource->queue == NULL)
        return false;
    struct lock_request *ahead = may_join(waiter->request) ? find_ahead(waiter) : NULL;
    struct lock_waiter *blocks = ahead == NULL ? nearest_obstacle(waiter, search) : NULL;
    if (ahead == NULL && blocks == NULL)
        return false;
    *ret_obstacle = (struct obstacle){waiter, blocks == NULL ? NULL : &blocks->watchers, ahead};
    return true;
}

/* Finds a hold that blocks a request at one of its places. */
static bool find_hold_at(struct lock_waiter *waiter, struct obstacle *ret_obstacle)
{
    waiter->request->table->work++;
    struct lock_hold *hold = lock__find_conflicting_hold(waiter->request->table, waiter);
    if (hold == NULL)
        return false;
    *ret_obstacle = (struct obstacle){waiter, &hold->watchers, NULL};
    return true;
}

/* Finds something that blocks a request. Returns: whether anything does. */
static bool find_obstacle(const struct lock_request *request, struct obstacle *ret_obstacle)
{
    struct obstacle_search near = {.near = true}, all = {.near = false};
    struct lock_waiter *led = request->group == NULL ? NULL : request->blocked_at;
    /* The place of the group is first, so that the others need no evaluation. */
    if (led != NULL && (find_waiter_at(led, &near, ret_obstacle) || find_hold_at(led, ret_obstacle)))
        return true;
    for (size_t i = 0; i < request->waiter_count; i++)
        if (&request->waiters[i] != led && find_waiter_at(&request->waiters[i], &near, ret_obstacle))
            return true;
    for (size_t i = 0; i < request->waiter_count; i++)
        if (&request->waiters[i] != led && find_hold_at(&request->waiters[i], ret_obstacle))
            return true;
    for (size_t i = 0; i < request->waiter_count && near.cut; i++)
        if (find_waiter_at(&request->waiters[i], &all, ret_obstacle))
            return true;
    return false;
}

/* --- Watching ----------------------------------------------------------------------------------------------------- */

bool lock__watch_is_blocked(const struct lock_request *request)
{
    struct obstacle obstacle;
    return find_obstacle(request, &obstacle);
}

bool lock__watch_begin(struct lock_request *request)
{
    struct obstacle obstacle;
    REQUIRE(request->state == LOCK_STATE_WAITING && request->watched == NULL);
    if (!find_obstacle(request, &obstacle))
        return false;
    if (obstacle.at != request->blocked_at)
        group_pass_on(request);
    request->blocked_at = obstacle.at;
    if (obstacle.ahead != NULL)
        group_join(request, obstacle.ahead);
    else
        link_watch(request, obstacle.watchers);
    return true;
}

void lock__watch_end(struct lock_request *request)
{
    if (request->watched == NULL)
        return;
    unlink_watch(request);
    struct lock_group *group = request->group;
    if (group == NULL || group->leader == request)
        return;
    request->group = NULL;
    group_free_if_empty(group);
}

void lock__watch_leave(struct lock_request *request)
{
    lock__watch_end(request);
    group_pass_on(request);
    request->blocked_at = NULL;
}

bool lock__watch_before(struct lock_request *request, const struct lock_waiter *waiter)
{
    REQUIRE(request->watched != NULL && (request->group == NULL || request->group->leader == request));
    struct obstacle_search all = {.near = false};
    const struct list *head = &waiter->resource->queue->waiting[waiter->bit];
    struct lock_waiter *before = nearest_before(head, &waiter->link, request, &all);
    if (before == NULL)
        return false;
    unlink_watch(request);
    link_watch(request, &before->watchers);
    return true;
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

/* Invariant 10. */
static void check_group(const struct lock_request *request)
{
    const struct lock_group *group = request->group;
    const struct lock_request *leader = group->leader;
    INSIST(leader->group == group && group->members != NULL && leader->owner == request->owner);
    INSIST(leader->state == LOCK_STATE_WAITING && leader->blocked_at->resource == request->blocked_at->resource &&
           leader->blocked_at->bit == request->blocked_at->bit);
    if (request == leader)
        return;
    INSIST(!heap_holds(&request->wake) && lock__precedes(leader, request));
    INSIST(request->watch_next == NULL || lock__precedes(request, request->watch_next));
}

void lock__watch_check(const struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING);
    if (request->group != NULL)
        check_group(request);
    INSIST((request->watched == NULL) == heap_holds(&request->wake));
    if (request->watched == NULL || (request->group != NULL && heap_holds(&request->group->leader->wake)))
        return; /* it is scheduled, or its leader */
    INSIST(request->blocked_at >= request->waiters && request->blocked_at < request->waiters + request->waiter_count);
    INSIST(is_blocked_at(request->blocked_at));
}
