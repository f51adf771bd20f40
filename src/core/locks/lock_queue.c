/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits behind whom. README-locks.md, "Requests", invariants 4 and 5.
 *
 * A waiting request stands, bit by bit, in the queues of all resources that it touches. It watches one thing that is in
 * its way and is looked at again only when that goes: at arrival the nearest conflicting request ahead, so that a
 * long queue is a chain and not a crowd around its head; without one, a hold.
 */
#include "base/check.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

static struct lock_queue *queue_of(struct resource *resource)
{
    if (resource->queue == NULL) {
        resource->queue = mem_zalloc(sizeof *resource->queue);
        for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
            list_init(&resource->queue->waiting[bit]);
    }
    return resource->queue;
}

/* Updates which holds of a resource are awaited, after the first request of a bit has come or the last has left. */
static void check_awaited(struct lock_table *table, const struct resource *resource, enum lock_bit bit)
{
    uint8_t mask = lock__conflicts[bit];
    for (struct lock_hold *hold = NULL; (hold = lock__hold_next(resource, hold, mask)) != NULL;) {
        table->work++;
        lock__hold_check_awaited(hold);
    }
}

static bool entry_is_ahead(const struct treap_node *node, const void *request)
{
    return lock__precedes(container_of(node, const struct lock_waiter, place)->request, request);
}

/* Returns: the place in a queue before which a request stands, or would; NULL: it is behind all. As a rule it came last. */
static struct treap_node *find_place(const struct lock_queue *queue, enum lock_bit bit,
                                     const struct lock_request *request)
{
    const struct list *last = queue->waiting[bit].prev;
    if (last == &queue->waiting[bit] || lock__precedes(list_entry(last, struct lock_waiter, link)->request, request))
        return NULL;
    return treap_find(&queue->order[bit], entry_is_ahead, request);
}

/* Links an entry where it belongs: of many that come again, since what they wait for has moved, each may stand anywhere. */
static void entry_link(struct lock_waiter *entry)
{
    struct lock_queue *queue = queue_of(entry->resource);
    struct treap_node *behind = find_place(queue, entry->bit, entry->request);
    entry->request->table->work++;
    list_insert_before(behind == NULL ? &queue->waiting[entry->bit]
                                      : &container_of(behind, struct lock_waiter, place)->link,
                       &entry->link);
    treap_insert(&queue->order[entry->bit], behind, &entry->place, 1);
    if (++queue->counts[entry->bit] == 1)
        check_awaited(entry->request->table, entry->resource, entry->bit);
}

static void watch(struct lock_request *request, struct lock_request **watchers)
{
    REQUIRE(request->watched == NULL);
    request->watch_next = *watchers;
    if (*watchers != NULL)
        (*watchers)->watched = &request->watch_next;
    *watchers = request;
    request->watched = watchers;
}

void lock__queue_unwatch(struct lock_request *request)
{
    if (request->watched == NULL)
        return;
    *request->watched = request->watch_next;
    if (request->watch_next != NULL)
        request->watch_next->watched = request->watched;
    request->watched = NULL;
    request->watch_next = NULL;
}

static void forget_note(struct lock_request *request)
{
    if (heap_holds(&request->wake))
        heap_remove(request->ready_cleanup ? &request->table->ready_cleanup : &request->table->wake, &request->wake);
}

/* While nobody is granted anything all are noted alike: lock_table_resume_grants() looks for circles of those. */
void lock__queue_schedule(struct lock_request *request)
{
    struct lock_table *table = request->table;
    bool late = request->owner->cleanup && table->grants_suspended == 0;
    if (heap_holds(&request->wake) && (late || !request->ready_cleanup))
        return;
    forget_note(request);
    request->ready_cleanup = late;
    heap_push(late ? &table->ready_cleanup : &table->wake, &request->wake);
}

static void wake(struct lock_request *request)
{
    lock__queue_unwatch(request);
    lock__queue_schedule(request);
}

void lock__queue_wake(struct lock_table *table, struct lock_request **watchers)
{
    for (; *watchers != NULL; table->work++)
        wake(*watchers);
}

static bool is_awaited(const struct lock_owner *owner)
{
    return owner != NULL && owner->awaited_count > 0;
}

static bool holds_against(const struct lock_waiter *entry, const struct lock_owner *owner)
{
    const struct lock_hold *hold =
        is_awaited(owner) ? lock__hold_find(entry->request->table, owner, entry->resource) : NULL;
    return hold != NULL && (hold->bits & lock__conflicts[entry->bit]) != 0 &&
           !lock__ignores(entry->request->owner, owner);
}

bool lock__waits_for(const struct lock_request *request, const struct lock_owner *owner,
                        const struct lock_owner *session)
{
    if (!is_awaited(owner) && !is_awaited(session))
        return false;
    for (size_t i = 0; i < request->waiter_count; i++) {
        request->table->work++;
        if (holds_against(&request->waiters[i], owner) || holds_against(&request->waiters[i], session))
            return true;
    }
    return false;
}

/* Returns: the nearest entry before `link` in its list that a request must not pass, or NULL. */
static struct lock_waiter *nearest_before(const struct list *head, const struct list *link,
                                         const struct lock_request *request)
{
    for (const struct list *at = link->prev; at != head; at = at->prev) {
        struct lock_waiter *entry = list_entry(at, struct lock_waiter, link);
        request->table->work++;
        if (lock__blocks(request->owner, entry->request))
            return entry;
    }
    return NULL;
}

/*
 * Takes an entry out. Who watched it watches the one before it in the same list, which is in his way as well. While nothing is granted many may go, one
 * after the other, and the same thousands watch each: then they are noted, and look for themselves when all have gone.
 */
static void entry_unlink(struct lock_waiter *entry)
{
    struct lock_table *table = entry->request->table;
    struct lock_queue *queue = entry->resource->queue;
    table->work++;
    while (entry->watchers != NULL) {
        struct lock_request *watcher = entry->watchers;
        struct lock_waiter *before =
            table->grants_suspended > 0 ? NULL : nearest_before(&queue->waiting[entry->bit], &entry->link, watcher);
        table->work++;
        lock__queue_unwatch(watcher);
        if (before != NULL)
            watch(watcher, &before->watchers);
        else
            wake(watcher);
    }
    list_remove(&entry->link);
    treap_remove(&queue->order[entry->bit], &entry->place);
    if (--queue->counts[entry->bit] > 0)
        return;
    bool empty = true;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        empty &= queue->counts[bit] == 0;
    if (empty) {
        mem_free(queue);
        entry->resource->queue = NULL;
    }
    check_awaited(table, entry->resource, entry->bit);
}

/* `in`: it begins to wait; else it does no more. */
static void count_wanted(struct lock_request *request, bool in)
{
    for (size_t i = 0; i < request->spec_count; i++)
        if (!request->specs[i].insert_intention && !request->specs[i].auxiliary)
            request->table->requested[request->specs[i].mode] += in ? 1 : (size_t)-1;
}

void lock__queue_enter(struct lock_request *request)
{
    struct lock_owner *owner = request->owner;
    request->state = LOCK_STATE_WAITING;
    for (size_t i = 0; i < request->waiter_count; i++)
        entry_link(&request->waiters[i]);
    list_append(&owner->requests, &request->of_owner);
    if (owner->session != NULL)
        list_append(&owner->session->dependent_requests, &request->of_session);
    request->table->waiting_count++;
    count_wanted(request, true);
}

void lock__queue_leave(struct lock_request *request)
{
    struct lock_table *table = request->table;
    lock__queue_unwatch(request);
    forget_note(request);
    for (size_t i = 0; i < request->waiter_count; i++)
        entry_unlink(&request->waiters[i]);
    list_remove(&request->of_owner);
    if (request->owner->session != NULL)
        list_remove(&request->of_session);
    table->waiting_count--;
    count_wanted(request, false);
}

/* Whether all requests of a list are of one owner. */
static bool all_of(const struct list *ward_requests, const struct lock_owner *owner)
{
    return list_empty(ward_requests) ||
           (ward_requests->next == ward_requests->prev &&
            list_entry(ward_requests->next, struct lock_request, of_session)->owner == owner);
}

static bool has_against(const struct lock_request *request, const struct lock_owner *owner,
                        const struct resource *resource, enum lock_bit bit)
{
    const struct lock_hold *hold = is_awaited(owner) ? lock__hold_find(request->table, owner, resource) : NULL;
    return hold != NULL && (hold->bits & lock__conflicts[bit]) != 0 && all_of(&owner->dependent_requests, request->owner);
}

/*
 * Whether nobody who waits for a bit at a resource is in the way of a request, for all of them wait for what its owner has there, or its session:
 * of thousands that is known without a look at them.
 */
static bool stands_before_all(const struct lock_request *request, const struct resource *resource, enum lock_bit bit)
{
    return has_against(request, request->owner, resource, bit) ||
           has_against(request, request->owner->session, resource, bit);
}

/* Returns: a waiting entry of one bit that stands ahead of a request's entry and is in its way, or NULL. */
static struct lock_waiter *ahead_of_bit(const struct lock_queue *queue, enum lock_bit bit,
                                       const struct lock_waiter *waiting)
{
    const struct list *head = &queue->waiting[bit];
    const struct lock_request *request = waiting->request;
    if (stands_before_all(request, waiting->resource, bit))
        return NULL;
    if (bit == waiting->bit && list_linked(&waiting->link)) /* it stands in this list itself */
        return nearest_before(head, &waiting->link, request);
    const struct treap_node *behind = find_place(queue, bit, request);
    return nearest_before(head, behind == NULL ? head : &container_of(behind, const struct lock_waiter, place)->link,
                          request);
}

/* Of those in the way at one resource, the nearest: so X after many S after X watches an S. */
static struct lock_waiter *entry_ahead(const struct lock_waiter *entry)
{
    const struct lock_queue *queue = entry->resource->queue;
    struct lock_waiter *nearest = NULL;
    if (queue == NULL)
        return NULL;
    for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        if ((lock__conflicts[entry->bit] & lock__mask(bit)) == 0 || queue->counts[bit] == 0)
            continue;
        struct lock_waiter *found = ahead_of_bit(queue, bit, entry);
        if (found != NULL && (nearest == NULL || lock__precedes(nearest->request, found->request)))
            nearest = found;
    }
    return nearest;
}

/* Returns: the list of watchers of something that is in the way, or NULL. */
static struct lock_request **find_obstacle(const struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count; i++) {
        request->table->work++;
        struct lock_waiter *ahead = entry_ahead(&request->waiters[i]);
        if (ahead != NULL)
            return &ahead->watchers;
    }
    for (size_t i = 0; i < request->waiter_count; i++) {
        request->table->work++;
        struct lock_hold *hold = lock__find_conflicting_hold(request->table, &request->waiters[i]);
        if (hold != NULL)
            return &hold->watchers;
    }
    return NULL;
}

bool lock__queue_is_blocked(const struct lock_request *request)
{
    return find_obstacle(request) != NULL;
}

bool lock__queue_watch(struct lock_request *request)
{
    struct lock_request **watchers = find_obstacle(request);
    if (watchers == NULL)
        return false;
    watch(request, watchers);
    return true;
}

/* Adds the requests of a list to an array. */
static void gather(struct lock_table *table, const struct list *list, bool of_session, struct lock_request ***requests,
                   size_t *count, size_t *capacity)
{
    list_for_each(link, list)
    {
        table->work++;
        if (*count == *capacity) {
            *capacity = *capacity ? *capacity * 2 : 16;
            *requests = mem_realloc(*requests, *capacity * sizeof **requests);
        }
        (*requests)[(*count)++] = of_session ? list_entry(link, struct lock_request, of_session)
                                             : list_entry(link, struct lock_request, of_owner);
    }
}

static void wake_all(struct list *requests, bool of_session)
{
    list_for_each(link, requests)
    {
        struct lock_request *request = of_session ? list_entry(link, struct lock_request, of_session)
                                                  : list_entry(link, struct lock_request, of_owner);
        request->table->work++;
        wake(request);
    }
}

/*
 * A grant turns dependences on a request into dependences on its owner, who may wait for something else at the same time:
 * a circle can close here, too. A transaction depends on what its session waits for.
 */
void lock__queue_check_waits(struct lock_table *table, struct lock_owner *owner)
{
    tl_cleanup(mem_freep) struct lock_request **requests = NULL;
    size_t count = 0, capacity = 0;
    gather(table, &owner->requests, false, &requests, &count, &capacity);
    gather(table, &owner->dependent_requests, true, &requests, &count, &capacity);
    if (owner->session != NULL)
        gather(table, &owner->session->requests, false, &requests, &count, &capacity);
    if (count > 0)
        lock__cycle_break(table, requests, count);
    wake_all(&owner->requests, false);
    wake_all(&owner->dependent_requests, true);
}

/* Nobody depends otherwise than before, or stands behind somebody, where nobody waits for what was granted. */
void lock__queue_check_granted(struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count && request->owner->awaited_count > 0; i++) {
        const struct lock_hold *hold = lock__hold_find(request->table, request->owner, request->waiters[i].resource);
        request->table->work++;
        if (hold == NULL || !hold->awaited)
            continue;
        lock__queue_check_waits(request->table, request->owner);
        return;
    }
}

void lock__queue_arrive(struct lock_request *request)
{
    bool looked_at_later = request->table->grants_suspended > 0;
    if (!heap_holds(&request->wake) && (looked_at_later || !lock__queue_watch(request)))
        lock__queue_schedule(request);
}

bool lock__queue_watch_restored(struct lock_request *request)
{
    if (lock__queue_watch(request))
        return true;
    if (request->owner->cleanup)
        lock__queue_schedule(request);
    return request->owner->cleanup;
}

void lock_table_suspend_grants(struct lock_table *table)
{
    table->grants_suspended++;
}

/* Takes those that are to be looked at, in their order. Returns: an array of *ret_count; mem_free. */
static struct lock_request **take_woken(struct lock_table *table, size_t *ret_count)
{
    struct lock_request **woken = mem_alloc((table->wake.count + 1) * sizeof *woken);
    struct heap_node *first;
    *ret_count = 0;
    while ((first = heap_first(&table->wake)) != NULL) {
        woken[(*ret_count)++] = container_of(first, struct lock_request, wake);
        forget_note(woken[*ret_count - 1]);
        table->work++;
    }
    return woken;
}

void lock_table_resume_grants(struct lock_table *table)
{
    REQUIRE(table->grants_suspended > 0);
    if (--table->grants_suspended > 0)
        return;
    size_t count;
    tl_cleanup(mem_freep) struct lock_request **woken = take_woken(table, &count);
    tl_cleanup(mem_freep) struct lock_request **suspects = mem_alloc((count + 1) * sizeof *suspects);
    memcpy(suspects, woken, count * sizeof *woken);
    lock__cycle_break_now(table, suspects, count);
    for (size_t i = 0; i < count; i++)
        if (woken[i]->state == LOCK_STATE_WAITING)
            wake(woken[i]);
    lock__queue_process_wakeups(table);
}

static void grant_waiting(struct lock_table *table, struct lock_request *request)
{
    lock__queue_leave(request);
    lock__request_grant(request);
    list_append(&table->granted, &request->event);
    lock__queue_check_granted(request);
}

/* The foremost of what ended sessions left that is free. NULL: nothing. */
static struct lock_request *first_late(struct lock_table *table)
{
    struct heap_node *first;
    while ((first = heap_first(&table->ready_cleanup)) != NULL) {
        struct lock_request *request = container_of(first, struct lock_request, wake);
        table->work++;
        if (!lock__queue_watch(request))
            return request;
        forget_note(request);
    }
    return NULL;
}

void lock__queue_process_wakeups(struct lock_table *table)
{
    while (table->grants_suspended == 0) {
        struct lock_request *left = first_late(table);
        struct heap_node *first = heap_first(&table->wake);
        if (left != NULL && table->cleanup_quota > 0) {
            table->cleanup_quota--;
            grant_waiting(table, left);
        } else if (first != NULL) {
            struct lock_request *request = container_of(first, struct lock_request, wake);
            forget_note(request);
            table->work++;
            if (!lock__queue_watch(request))
                grant_waiting(table, request);
        } else {
            return;
        }
    }
}

void lock_table_set_cleanup_quota(struct lock_table *table, size_t max)
{
    table->cleanup_quota = max;
    lock__queue_process_wakeups(table);
}

bool lock_table_has_ready_cleanup(const struct lock_table *table)
{
    return heap_first(&table->ready_cleanup) != NULL;
}
