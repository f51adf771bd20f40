/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait queues. README-locks.md, "Requests", invariants 4 and 5.
 *
 * A waiting request is in the queues of all its resources, once for each bit. It watches one thing
 * that blocks it, and is evaluated again only when that is gone: lock_watch.c.
 */
#include <limits.h>

#include "base/check.h"
#include "base/magic.h"
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

/*
 * Updates `awaited` of a resource's holds after the first request of a bit was enqueued, or the
 * last one left.
 */
static void check_awaited(struct lock_table *table, const struct resource *resource, enum lock_bit bit)
{
    uint8_t mask = lock__conflicts[bit];
    for (struct lock_hold *hold = NULL; (hold = lock__hold_next(resource, hold, mask)) != NULL;) {
        table->work++;
        lock__hold_check_awaited(hold);
    }
}

static bool waiter_precedes(const struct treap_node *node, const void *request)
{
    return lock__precedes(container_of(node, const struct lock_waiter, order_node)->request, request);
}

struct treap_node *lock__queue_position(const struct lock_queue *queue, enum lock_bit bit,
                                        const struct lock_request *request)
{
    const struct list *last = queue->waiting[bit].prev;
    if (last == &queue->waiting[bit] || lock__precedes(list_entry(last, struct lock_waiter, link)->request, request))
        return NULL;
    return treap_find(&queue->order[bit], waiter_precedes, request);
}

bool lock__queue_same_owner(const struct treap_node *a, const struct treap_node *b)
{
    return container_of(a, const struct lock_waiter, order_node)->request->owner ==
           container_of(b, const struct lock_waiter, order_node)->request->owner;
}

/* Inserts a waiter at its position in the queue. After a move of a document it can be anywhere. */
static void waiter_link(struct lock_waiter *waiter)
{
    REQUIRE(!list_linked(&waiter->link));
    struct lock_queue *queue = queue_of(waiter->resource);
    struct treap_node *next = lock__queue_position(queue, waiter->bit, waiter->request);
    waiter->request->table->work++;
    list_insert_before(next == NULL ? &queue->waiting[waiter->bit]
                                    : &container_of(next, struct lock_waiter, order_node)->link,
                       &waiter->link);
    treap_insert_kind(&queue->order[waiter->bit], next, &waiter->order_node, lock__queue_same_owner);
    if (++queue->counts[waiter->bit] == 1)
        check_awaited(waiter->request->table, waiter->resource, waiter->bit);
}

static struct heap *heap_of(const struct lock_request *request)
{
    return request->owner->cleanup ? &request->table->ready_cleanup : &request->table->wake;
}

static void unschedule_wakeup(struct lock_request *request)
{
    if (heap_holds(&request->wake))
        heap_remove(heap_of(request), &request->wake);
}

void lock__queue_schedule(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING && request->watched == NULL);
    if (!heap_holds(&request->wake))
        heap_push(heap_of(request), &request->wake);
}

static void schedule_wakeup(struct lock_request *request)
{
    lock__watch_end(request);
    lock__queue_schedule(request);
}

void lock__queue_wake(struct lock_table *table, struct lock_request **watchers)
{
    for (; *watchers != NULL; table->work++)
        schedule_wakeup(*watchers);
}

/*
 * Removes a waiter from its queue. Its watchers then watch the waiter before it in the same list,
 * if that blocks them too. While grants are suspended, many waiters with the same thousands of
 * watchers can be removed in succession; so then the watchers are only scheduled, to be evaluated
 * once.
 */
static void waiter_unlink(struct lock_waiter *waiter)
{
    struct lock_table *table = waiter->request->table;
    struct lock_queue *queue = waiter->resource->queue;
    REQUIRE(queue != NULL && queue->counts[waiter->bit] > 0);
    table->work++;
    while (waiter->watchers != NULL) {
        struct lock_request *watcher = waiter->watchers;
        table->work++;
        if (table->grants_suspended > 0 || !lock__watch_before(watcher, waiter))
            schedule_wakeup(watcher);
    }
    list_remove(&waiter->link);
    treap_remove_kind(&queue->order[waiter->bit], &waiter->order_node, lock__queue_same_owner);
    if (--queue->counts[waiter->bit] > 0)
        return;
    bool empty = true;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        empty &= queue->counts[bit] == 0;
    if (empty) {
        mem_free(queue);
        waiter->resource->queue = NULL;
    }
    check_awaited(table, waiter->resource, waiter->bit);
}

/* Adds a request to the statistics of requested locks (`in`), or removes it. */
static void count_requested(struct lock_request *request, bool in)
{
    for (size_t i = 0; i < request->spec_count; i++)
        if (!request->specs[i].insert_intention && !request->specs[i].auxiliary) {
            INSIST(in || request->table->requested[request->specs[i].mode] > 0);
            request->table->requested[request->specs[i].mode] += in ? 1 : (size_t)-1;
        }
}

void lock__queue_enter(struct lock_request *request)
{
    struct lock_owner *owner = request->owner;
    REQUIRE(request->waiter_count > 0 && request->watched == NULL && !list_linked(&request->of_owner));
    lock__request_set_state(request, LOCK_STATE_WAITING);
    for (size_t i = 0; i < request->waiter_count; i++)
        waiter_link(&request->waiters[i]);
    list_append(&owner->requests, &request->of_owner);
    if (owner->session != NULL)
        list_append(&owner->session->dependent_requests, &request->of_session);
    request->table->waiting_count++;
    count_requested(request, true);
}

void lock__queue_leave(struct lock_request *request)
{
    struct lock_table *table = request->table;
    REQUIRE(request->state == LOCK_STATE_WAITING && table->waiting_count > 0);
    unschedule_wakeup(request);
    lock__watch_leave(request);
    if (list_linked(&request->suspect))
        list_remove(&request->suspect);
    for (size_t i = 0; i < request->waiter_count; i++)
        waiter_unlink(&request->waiters[i]);
    list_remove(&request->of_owner);
    if (request->owner->session != NULL)
        list_remove(&request->of_session);
    table->waiting_count--;
    count_requested(request, false);
}

/* Appends the requests of a list to a growing array. */
static void append_requests(struct lock_table *table, const struct list *list, bool of_session,
                            struct lock_request ***requests, size_t *count, size_t *capacity)
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
        schedule_wakeup(request);
    }
}

/*
 * A grant turns soft edges to a request into edges to its owner, which may wait for something else
 * at the same time. So a grant can close a cycle, too. A transaction depends on the requests of its
 * session. While grants are suspended, once for each owner is enough: its requests stay suspects,
 * and one that is enqueued later becomes a suspect then.
 */
void lock__queue_check_waits(struct lock_table *table, struct lock_owner *owner)
{
    table->work++;
    if (table->grants_suspended > 0 && owner->checked_epoch == table->suspensions)
        return;
    if (table->grants_suspended > 0)
        owner->checked_epoch = table->suspensions;
    tl_cleanup(mem_freep) struct lock_request **requests = NULL;
    size_t count = 0, capacity = 0;
    append_requests(table, &owner->requests, false, &requests, &count, &capacity);
    append_requests(table, &owner->dependent_requests, true, &requests, &count, &capacity);
    if (owner->session != NULL)
        append_requests(table, &owner->session->requests, false, &requests, &count, &capacity);
    if (count > 0)
        lock__cycle_break(table, requests, count);
    wake_all(&owner->requests, false);
    wake_all(&owner->dependent_requests, true);
}

/*
 * Notes what the owner of a request holds before that is granted. Without awaited holds that need not be known: then
 * one that is awaited afterwards is new, or has more bits.
 */
static void note_held(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING);
    for (size_t i = 0; i < request->waiter_count; i++) {
        struct lock_waiter *waiter = &request->waiters[i];
        const struct lock_hold *hold = request->owner->awaited_count == 0
                                           ? NULL
                                           : lock__hold_find(request->table, request->owner, waiter->resource);
        request->table->work++;
        waiter->held = hold == NULL ? 0 : hold->bits;
    }
}

/*
 * If no request waits for the granted locks, no edge of the wait-for graph has changed. Nor has one if the owner had
 * all bits before: then what waits for them waited for its requests already.
 */
void lock__queue_check_granted(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_GRANTED);
    for (size_t i = 0; i < request->waiter_count && request->owner->awaited_count > 0; i++) {
        const struct lock_waiter *waiter = &request->waiters[i];
        const struct lock_hold *hold = lock__hold_find(request->table, request->owner, waiter->resource);
        request->table->work++;
        if (hold == NULL || !hold->awaited || (hold->bits & ~waiter->held) == 0)
            continue;
        lock__queue_check_waits(request->table, request->owner);
        return;
    }
}

void lock__queue_arrive(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING);
    bool looked_at_later = request->table->grants_suspended > 0;
    if (!heap_holds(&request->wake) && (looked_at_later || !lock__watch_begin(request)))
        lock__queue_schedule(request);
}

void lock__queue_watch_restored(struct lock_request *request)
{
    if (!lock__watch_begin(request))
        lock__queue_schedule(request);
}

void lock_table_suspend_grants(struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && table->grants_suspended < UINT_MAX);
    if (table->grants_suspended++ == 0)
        table->suspensions++;
}

/*
 * Visits only the requests that became suspects or lost their obstacle since the suspension. Very
 * many may wait for the quota of grants since earlier steps.
 */
void lock_table_resume_grants(struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && table->grants_suspended > 0);
    if (--table->grants_suspended > 0)
        return;
    lock__cycle_break_suspects(table);
    lock__queue_process_wakeups(table);
}

static void grant_waiting(struct lock_table *table, struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING && request->watched == NULL);
    note_held(request);
    lock__queue_leave(request);
    lock__request_grant(request);
    list_append(&table->granted, &request->event);
    lock__queue_check_granted(request);
}

/*
 * Returns: the first request of a heap of scheduled requests, `ready_cleanup` or `wake`, that nothing
 * blocks, or NULL. Those before it watch what blocks them.
 */
static struct lock_request *first_unblocked(struct lock_table *table, struct heap *scheduled)
{
    struct heap_node *first;
    while ((first = heap_first(scheduled)) != NULL) {
        struct lock_request *request = container_of(first, struct lock_request, wake);
        table->work++;
        INSIST(request->state == LOCK_STATE_WAITING && request->table == table);
        if (!lock__watch_begin(request))
            return request;
        unschedule_wakeup(request);
    }
    return NULL;
}

/* Returns: how many requests a grant may have to pass. All count: the number of visits differs between replicas. */
static size_t passed_by(const struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING); /* else its resources may have no queue */
    size_t passed = 0;
    for (size_t i = 0; i < request->waiter_count; i++) {
        const struct lock_waiter *waiter = &request->waiters[i];
        for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
            if ((lock__conflicts[waiter->bit] & lock__mask((enum lock_bit)bit)) != 0)
                passed += waiter->resource->queue->counts[bit];
    }
    return passed;
}

static size_t grant_cost(const struct lock_request *request, size_t passed)
{
    size_t places = request->table->grants_by_specs ? request->spec_count / LOCK_GRANT_SPECS
                                                    : request->waiter_count / LOCK_GRANT_PLACES;
    return 1 + places + passed / LOCK_GRANT_PASSED;
}

/* Counts a grant to the quotas of the step. */
static void count_grant(struct lock_table *table, const struct lock_request *request)
{
    size_t passed = passed_by(request), cost = grant_cost(request, passed);
    table->grant_quota = cost < table->grant_quota ? table->grant_quota - cost : 0;
    table->granted_work +=
        LOCK_GRANT_WORK + LOCK_GRANT_PLACE_WORK * (uint64_t)request->waiter_count + passed / LOCK_GRANT_PASSED_WORK;
    if (table->granted_work >= table->granted_work_max)
        table->grant_quota = 0;
}

void lock__queue_process_wakeups(struct lock_table *table)
{
    while (table->grants_suspended == 0) {
        struct lock_request *cleanup = first_unblocked(table, &table->ready_cleanup), *request;
        if (cleanup != NULL && table->cleanup_quota > 0) {
            table->cleanup_quota--;
            grant_waiting(table, cleanup);
        } else if ((request = first_unblocked(table, &table->wake)) != NULL && table->grant_quota > 0) {
            count_grant(table, request);
            grant_waiting(table, request);
        } else {
            return;
        }
    }
}

void lock_table_set_grant_quota(struct lock_table *table, size_t max)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    table->grant_quota = max;
    table->granted_work_max = UINT64_MAX;
}

void lock_table_limit_grants(struct lock_table *table, uint64_t work)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    uint64_t max = work < UINT64_MAX - table->granted_work ? table->granted_work + work : UINT64_MAX;
    if (max < table->granted_work_max)
        table->granted_work_max = max;
    if (work == 0)
        table->grant_quota = 0;
}

bool lock_table_has_pending_grants(struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return table->grants_suspended == 0 && first_unblocked(table, &table->wake) != NULL;
}

void lock_table_continue_grants(struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    lock__queue_process_wakeups(table);
}

void lock_table_set_cleanup_quota(struct lock_table *table, size_t max)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    table->cleanup_quota = max;
    lock__queue_process_wakeups(table);
}

bool lock_table_has_ready_cleanup(const struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return heap_first(&table->ready_cleanup) != NULL;
}
