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
        table->walked++;
        lock__hold_check_awaited(hold);
    }
}

/*
 * Links an entry where it belongs: upgrades are few and stand first, all others come last as a rule, of what ended sessions left, which
 * may be much, behind that.
 */
static void entry_link(struct lock_entry *entry)
{
    struct lock_queue *queue = queue_of(entry->resource);
    struct list *head = &queue->waiting[entry->bit];
    struct list *at = head;
    struct list **left = &queue->left[entry->bit];
    if (lock__rank(entry->request) == 0) {
        at = *left == NULL ? head->next : (*left)->next;
        while (at->prev != head && lock__ahead(entry->request, list_entry(at->prev, struct lock_entry, link)->request))
            at = at->prev;
        if (*left == NULL || at->prev == *left)
            *left = &entry->link;
    } else if (lock__rank(entry->request) == 1) {
        at = *left == NULL ? head->next : (*left)->next;
        while (at != head && lock__ahead(list_entry(at, struct lock_entry, link)->request, entry->request))
            at = at->next;
    } else {
        while (at->prev != head && lock__ahead(entry->request, list_entry(at->prev, struct lock_entry, link)->request))
            at = at->prev;
    }
    list_insert_before(at, &entry->link);
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
        heap_remove(request->late ? &request->table->late : &request->table->wake, &request->wake);
}

/* While nobody is granted anything all are noted alike: lock_table_let_in() looks for circles of those. */
void lock__queue_note(struct lock_request *request)
{
    struct lock_table *table = request->table;
    bool late = request->owner->first && table->withheld == 0;
    if (heap_holds(&request->wake) && (late || !request->late))
        return;
    forget_note(request);
    request->late = late;
    heap_push(late ? &table->late : &table->wake, &request->wake);
}

static void wake(struct lock_request *request)
{
    lock__queue_unwatch(request);
    lock__queue_note(request);
}

void lock__queue_wake(struct lock_table *table, struct lock_request **watchers)
{
    (void)table;
    while (*watchers != NULL)
        wake(*watchers);
}

static bool is_awaited(const struct lock_owner *owner)
{
    return owner != NULL && owner->awaited_count > 0;
}

static bool holds_against(const struct lock_entry *entry, const struct lock_owner *owner)
{
    const struct lock_hold *hold =
        is_awaited(owner) ? lock__hold_find(entry->request->table, owner, entry->resource) : NULL;
    return hold != NULL && (hold->bits & lock__conflicts[entry->bit]) != 0 &&
           !lock__passes(entry->request->owner, owner);
}

bool lock__waits_behind(const struct lock_request *request, const struct lock_owner *owner,
                        const struct lock_owner *session)
{
    if (!is_awaited(owner) && !is_awaited(session))
        return false;
    for (size_t i = 0; i < request->entry_count; i++) {
        request->table->walked++;
        if (holds_against(&request->entries[i], owner) || holds_against(&request->entries[i], session))
            return true;
    }
    return false;
}

/* Returns: the nearest entry before `link` in its list that a request must not pass, or NULL. */
static struct lock_entry *nearest_before(const struct list *head, const struct list *link,
                                         const struct lock_request *request)
{
    for (const struct list *at = link->prev; at != head; at = at->prev) {
        struct lock_entry *entry = list_entry(at, struct lock_entry, link);
        if (lock__in_way(request->owner, entry->request))
            return entry;
    }
    return NULL;
}

/* Takes an entry out. Who watched it watches the one before it in the same list, which is in his way as well. */
static void entry_unlink(struct lock_entry *entry)
{
    struct lock_queue *queue = entry->resource->queue;
    while (entry->watchers != NULL) {
        struct lock_request *watcher = entry->watchers;
        struct lock_entry *before = nearest_before(&queue->waiting[entry->bit], &entry->link, watcher);
        lock__queue_unwatch(watcher);
        if (before != NULL)
            watch(watcher, &before->watchers);
        else
            wake(watcher);
    }
    if (queue->left[entry->bit] == &entry->link) {
        struct list *before = entry->link.prev, *head = &queue->waiting[entry->bit];
        bool any = before != head && lock__rank(list_entry(before, struct lock_entry, link)->request) == 0;
        queue->left[entry->bit] = any ? before : NULL;
    }
    list_remove(&entry->link);
    if (--queue->counts[entry->bit] > 0)
        return;
    bool empty = true;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        empty &= queue->counts[bit] == 0;
    if (empty) {
        mem_free(queue);
        entry->resource->queue = NULL;
    }
    check_awaited(entry->request->table, entry->resource, entry->bit);
}

/* `in`: it begins to wait; else it does no more. */
static void count_wanted(struct lock_request *request, bool in)
{
    for (size_t i = 0; i < request->want_count; i++)
        if (!request->wants[i].within && !request->wants[i].aside)
            request->table->wanted[request->wants[i].mode] += in ? 1 : (size_t)-1;
}

void lock__queue_enter(struct lock_request *request)
{
    struct lock_owner *owner = request->owner;
    request->state = LOCK_STATE_WAITING;
    for (size_t i = 0; i < request->entry_count; i++)
        entry_link(&request->entries[i]);
    list_append(&owner->requests, &request->of_owner);
    if (owner->session != NULL)
        list_append(&owner->session->ward_requests, &request->of_session);
    request->table->waiting_count++;
    count_wanted(request, true);
}

void lock__queue_leave(struct lock_request *request)
{
    struct lock_table *table = request->table;
    lock__queue_unwatch(request);
    forget_note(request);
    for (size_t i = 0; i < request->entry_count; i++)
        entry_unlink(&request->entries[i]);
    list_remove(&request->of_owner);
    if (request->owner->session != NULL)
        list_remove(&request->of_session);
    table->waiting_count--;
    count_wanted(request, false);
}

/* Returns: a waiting entry of one bit that stands ahead of a request's entry and is in its way, or NULL. */
static struct lock_entry *ahead_of_bit(const struct lock_queue *queue, enum lock_bit bit,
                                       const struct lock_entry *waiting)
{
    const struct list *head = &queue->waiting[bit];
    const struct lock_request *request = waiting->request;
    if (bit == waiting->bit && list_linked(&waiting->link)) /* it stands in this list itself */
        return nearest_before(head, &waiting->link, request);
    const struct lock_request *last =
        list_empty(head) ? NULL : list_entry(head->prev, struct lock_entry, link)->request;
    if (last == NULL)
        return NULL;
    if (lock__ahead(last, request)) /* he came after all of them: the nearest is the last */
        return nearest_before(head, head, request);
    list_for_each(link, head)
    {
        struct lock_entry *entry = list_entry(link, struct lock_entry, link);
        if (!lock__ahead(entry->request, request))
            break;
        if (lock__in_way(request->owner, entry->request))
            return entry;
    }
    return NULL;
}

/* Of those in the way at one resource, the nearest: so X after many S after X watches an S. */
static struct lock_entry *entry_ahead(const struct lock_entry *entry)
{
    const struct lock_queue *queue = entry->resource->queue;
    struct lock_entry *nearest = NULL;
    if (queue == NULL)
        return NULL;
    for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        if ((lock__conflicts[entry->bit] & lock__mask(bit)) == 0 || queue->counts[bit] == 0)
            continue;
        struct lock_entry *found = ahead_of_bit(queue, bit, entry);
        if (found != NULL && (nearest == NULL || lock__ahead(nearest->request, found->request)))
            nearest = found;
    }
    return nearest;
}

/* Returns: the list of watchers of something that is in the way, or NULL. */
static struct lock_request **find_obstacle(const struct lock_request *request)
{
    for (size_t i = 0; i < request->entry_count; i++) {
        struct lock_entry *ahead = entry_ahead(&request->entries[i]);
        if (ahead != NULL)
            return &ahead->watchers;
    }
    for (size_t i = 0; i < request->entry_count; i++) {
        struct lock_hold *hold = lock__holder_against(request->table, &request->entries[i]);
        if (hold != NULL)
            return &hold->watchers;
    }
    return NULL;
}

bool lock__queue_blocked(const struct lock_request *request)
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

/* Returns: false when a request of the list was ended, and the list is no longer as it was. */
static bool break_circles(struct lock_table *table, struct list *requests, bool of_session)
{
    list_for_each(link, requests)
    {
        struct lock_request *request = of_session ? list_entry(link, struct lock_request, of_session)
                                                  : list_entry(link, struct lock_request, of_owner);
        uint64_t arrivals = table->last_arrival;
        if (!lock__cycle_break(request) || table->last_arrival != arrivals) /* ended, or sent to the end */
            return false;
    }
    return true;
}

static void wake_all(struct list *requests, bool of_session)
{
    list_for_each(link, requests)
    {
        struct lock_request *request = of_session ? list_entry(link, struct lock_request, of_session)
                                                  : list_entry(link, struct lock_request, of_owner);
        wake(request);
    }
}

/*
 * A grant turns dependences on a request into dependences on its owner, who may wait for something else at the same time:
 * a circle can close here, too. A transaction depends on what its session waits for.
 */
void lock__queue_check_waits(struct lock_table *table, struct lock_owner *owner)
{
    struct list *of_session = owner->session == NULL ? NULL : &owner->session->requests;
    while (!break_circles(table, &owner->requests, false) || !break_circles(table, &owner->ward_requests, true) ||
           (of_session != NULL && !break_circles(table, of_session, false)))
        ;
    wake_all(&owner->requests, false);
    wake_all(&owner->ward_requests, true);
}

void lock__queue_arrive(struct lock_request *request)
{
    bool looked_at_later = request->table->withheld > 0;
    if (!heap_holds(&request->wake) && (looked_at_later || !lock__queue_watch(request)))
        lock__queue_note(request);
}

bool lock__queue_watch_again(struct lock_request *request)
{
    if (lock__queue_watch(request))
        return true;
    if (request->owner->first)
        lock__queue_note(request);
    return request->owner->first;
}

void lock_table_withhold(struct lock_table *table)
{
    table->withheld++;
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
    }
    return woken;
}

void lock_table_let_in(struct lock_table *table)
{
    REQUIRE(table->withheld > 0);
    if (--table->withheld > 0)
        return;
    size_t count;
    tl_cleanup(mem_freep) struct lock_request **woken = take_woken(table, &count);
    for (size_t i = 0; i < count; i++)
        if (woken[i]->state == LOCK_STATE_WAITING)
            (void)lock__cycle_break(woken[i]);
    for (size_t i = 0; i < count; i++)
        if (woken[i]->state == LOCK_STATE_WAITING)
            wake(woken[i]);
    lock__queue_settle(table);
}

static void grant_waiting(struct lock_table *table, struct lock_request *request)
{
    lock__queue_leave(request);
    lock__request_grant(request);
    list_append(&table->granted, &request->event);
    lock__queue_check_waits(table, request->owner);
}

/* The foremost of what ended sessions left that is free. NULL: nothing. */
static struct lock_request *first_late(struct lock_table *table)
{
    struct heap_node *first;
    while ((first = heap_first(&table->late)) != NULL) {
        struct lock_request *request = container_of(first, struct lock_request, wake);
        if (!lock__queue_watch(request))
            return request;
        forget_note(request);
    }
    return NULL;
}

void lock__queue_settle(struct lock_table *table)
{
    while (table->withheld == 0) {
        struct lock_request *left = first_late(table);
        struct heap_node *first = heap_first(&table->wake);
        if (left != NULL && table->late_max > 0) {
            table->late_max--;
            grant_waiting(table, left);
        } else if (first != NULL) {
            struct lock_request *request = container_of(first, struct lock_request, wake);
            forget_note(request);
            if (!lock__queue_watch(request))
                grant_waiting(table, request);
        } else {
            return;
        }
    }
}

void lock_table_grant_late(struct lock_table *table, size_t max)
{
    table->late_max = max;
    lock__queue_settle(table);
}

bool lock_table_any_late(const struct lock_table *table)
{
    return heap_first(&table->late) != NULL;
}
