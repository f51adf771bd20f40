/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlock detection. README-locks.md, "Deadlock", invariant 6.
 *
 * The nodes of the wait-for graph are the waiting requests. A request r has
 *
 *   - a soft edge to each conflicting request that precedes it, except those that wait for a hold of
 *     r's owner or of its session;
 *   - a hard edge to each waiting request of an owner that holds a conflicting lock. If this owner is
 *     a session, also to the requests of its dependents. If it is a transaction, also to the requests
 *     of its session, because the session's client ends it.
 *
 * There is no cycle before a request is enqueued, so a new cycle contains that request. A
 * breadth-first search from it finds the shortest one.
 *
 * Thousands of requests can precede r. If one of them, f, conflicts with everything that r
 * conflicts with, then those that precede f need no edge from r: the search reaches them from f. So
 * in a queue for one X lock each request has one edge to follow.
 *
 * This is not valid when f ignores some requests that precede it, or when its owner has other
 * requests. Then each of n requests has an edge to each preceding one. So a search keeps a trace of
 * each resource that it visits, with the requests that it reached from there. The next request that
 * waits at this resource examines only the rest. Reaching a request again has no effect, so the
 * order of the search, and the cycle that it finds, are the same as without traces.
 *
 * When many requests have to be searched, after a commit has moved what they wait for, one search
 * continues from each request to the next. While grants are suspended, each call that can close a
 * cycle makes the requests that it concerns *suspects*, and all of them are searched at the end.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

/* Two chains through the waiters of one bit in a queue. */
enum chain {
    CHAIN_NEW,        /* requests that are not reached yet */
    CHAIN_NEW_OR_END, /* and requests at which a scan ends: covers_preceding() */
    CHAIN_COUNT
};

/*
 * The waiters of one bit in a queue. Positions count from 1, at the front; 0: none. before[chain]
 * is a disjoint-set forest with path halving: it leads from a position to the last position at or
 * before it that is in the chain.
 */
struct line {
    struct lock_waiter **waiters; /* in the arena of the search; NULL: not visited yet */
    uint32_t *before[CHAIN_COUNT];
    size_t count;
};

/* The progress of a search at one resource. */
struct lock_trace {
    struct line lines[LOCK_BIT_COUNT];
    /*
     * All holders that conflict with a bit were followed, except the owners in ignored[bit] (NULL:
     * none).
     */
    bool holders_followed[LOCK_BIT_COUNT];
    const struct lock_owner *ignored[LOCK_BIT_COUNT][2];
};

/* Bits of lock_owner.followed: the lists of requests that were reached, each as a whole. */
enum { FOLLOWED_REQUESTS = 1, FOLLOWED_WARDS = 2 };

struct search {
    struct lock_table *table;
    struct lock_request *start;
    struct lock_request **reached; /* in order of their distance from the start */
    size_t reached_count;
    size_t capacity;
    struct arena arena;       /* traces */
    struct wait_edge closing; /* the edge that leads back to the start; valid if `found` */
    uint64_t work;            /* work of all searches until now; follows from the state */
    bool found;
};

static bool is_reached(const struct search *search, const struct lock_request *request)
{
    return request->search_epoch == search->table->resources.epoch;
}

static void reach_request(struct search *search, struct lock_request *target, const struct wait_edge *edge)
{
    REQUIRE(target->state == LOCK_STATE_WAITING && edge->request->state == LOCK_STATE_WAITING);
    search->table->work++;
    if (search->found)
        return;
    if (target == search->start) {
        search->closing = *edge;
        search->found = true;
        return;
    }
    if (is_reached(search, target))
        return;
    target->search_epoch = search->table->resources.epoch;
    target->via = *edge;
    if (search->reached_count == search->capacity) {
        search->capacity = search->capacity ? search->capacity * 2 : 32;
        search->reached = mem_realloc(search->reached, search->capacity * sizeof *search->reached);
    }
    search->reached[search->reached_count++] = target;
}

/* Returns: the trace at a resource that has a queue. */
static struct lock_trace *trace_of(struct search *search, const struct resource *resource)
{
    REQUIRE(resource->queue != NULL);
    struct lock_queue *queue = resource->queue;
    if (queue->search_epoch != search->table->resources.epoch) {
        queue->search_epoch = search->table->resources.epoch;
        queue->trace = arena_zalloc(&search->arena, sizeof *queue->trace);
    }
    return queue->trace;
}

/*
 * Marks a list of an owner's requests as followed. Returns: false if this search has followed it
 * before.
 */
static bool mark_followed(const struct search *search, struct lock_owner *owner, uint8_t list)
{
    if (owner->search_epoch != search->table->resources.epoch)
        owner->followed = 0;
    owner->search_epoch = search->table->resources.epoch;
    bool first = (owner->followed & list) == 0;
    owner->followed |= list;
    return first;
}

/* Reaches the waiting requests of a holder, of its dependents and of its session. */
static void follow_holder(struct search *search, const struct lock_hold *hold, const struct wait_edge *edge)
{
    struct lock_owner *owner = hold->owner, *session = owner->session;
    if (mark_followed(search, owner, FOLLOWED_REQUESTS))
        list_for_each(waiting, &owner->requests)
            reach_request(search, list_entry(waiting, struct lock_request, of_owner), edge);
    if (mark_followed(search, owner, FOLLOWED_WARDS))
        list_for_each(waiting, &owner->dependent_requests)
            reach_request(search, list_entry(waiting, struct lock_request, of_session), edge);
    if (session == NULL || owner->autocommit) /* a write ends without its session */
        return;
    if (mark_followed(search, session, FOLLOWED_REQUESTS))
        list_for_each(waiting, &session->requests)
            reach_request(search, list_entry(waiting, struct lock_request, of_owner), edge);
}

/*
 * Returns: whether the holders were followed for another waiter with this bit, so that this one has
 * nothing to add: it ignores the owners that were left out.
 */
static bool holders_are_followed(const struct lock_trace *trace, const struct lock_waiter *waiter)
{
    for (size_t i = 0; i < 2; i++) {
        const struct lock_owner *ignored = trace->ignored[waiter->bit][i];
        if (ignored != NULL && !lock__ignores(waiter->request->owner, ignored))
            return false;
    }
    return trace->holders_followed[waiter->bit];
}

/*
 * Records the owners that all waiters of this bit have ignored. There are two at first, and each is
 * removed at most once, so the holders are followed at most three times.
 */
static void record_ignored(struct lock_trace *trace, const struct lock_waiter *waiter)
{
    const struct lock_owner *owner = waiter->request->owner;
    const struct lock_owner **ignored = trace->ignored[waiter->bit];
    if (!trace->holders_followed[waiter->bit]) {
        ignored[0] = owner;
        ignored[1] = owner->session;
        trace->holders_followed[waiter->bit] = true;
    }
    for (size_t i = 0; i < 2; i++)
        if (ignored[i] != NULL && !lock__ignores(owner, ignored[i]))
            ignored[i] = NULL;
}

/*
 * Follows the hard edges of a waiter: to the requests of the owners that hold a conflicting lock.
 */
static void follow_holders(struct search *search, const struct lock_waiter *waiter)
{
    const struct lock_request *request = waiter->request;
    const struct lock_owner *owner = request->owner;
    uint8_t mask = lock__conflicts[waiter->bit];
    if (!lock__has_conflicting_hold(search->table, owner, owner->session, waiter->resource, mask))
        return;
    struct lock_trace *trace = trace_of(search, waiter->resource);
    if (holders_are_followed(trace, waiter))
        return;
    for (const struct lock_hold *hold = NULL; (hold = lock__hold_next(waiter->resource, hold, mask)) != NULL;) {
        search->table->work++;
        if (lock__ignores(owner, hold->owner))
            continue;
        follow_holder(search, hold, &(struct wait_edge){request, hold->owner, waiter->resource, waiter->bit, false});
    }
    record_ignored(trace, waiter);
}

/*
 * Returns: whether a request has an edge to every conflicting request that precedes it. It has not
 * if it may ignore some: other requests of its owner or session, and requests that wait for their
 * holds.
 */
static bool covers_preceding(const struct lock_request *request)
{
    const struct lock_owner *owner = request->owner;
    return owner->requests.next == owner->requests.prev && owner->awaited_count == 0 &&
           (owner->session == NULL || (list_empty(&owner->session->requests) && owner->session->awaited_count == 0));
}

static uint32_t *new_positions(struct arena *arena, size_t count)
{
    uint32_t *items = arena_alloc(arena, (count + 1) * sizeof *items);
    for (size_t i = 0; i <= count; i++)
        items[i] = (uint32_t)i;
    return items;
}

static struct line *line_of(struct search *search, const struct resource *resource, enum lock_bit bit)
{
    const struct lock_queue *queue = resource->queue;
    struct line *line = &trace_of(search, resource)->lines[bit];
    if (line->waiters != NULL)
        return line;
    search->table->work += queue->counts[bit];
    line->waiters = arena_alloc(&search->arena, (queue->counts[bit] + 1) * sizeof(struct lock_waiter *));
    list_for_each(link, &queue->waiting[bit]) line->waiters[++line->count] = list_entry(link, struct lock_waiter, link);
    INSIST(line->count == queue->counts[bit]);
    for (enum chain chain = 0; chain < CHAIN_COUNT; chain++)
        line->before[chain] = new_positions(&search->arena, line->count);
    return line;
}

/* Returns: the number of waiters of a line that precede a request. */
static size_t count_preceding(const struct line *line, const struct lock_request *request)
{
    size_t low = 0, high = line->count;
    while (low < high) {
        size_t middle = (low + high) / 2 + 1;
        if (lock__precedes(line->waiters[middle]->request, request))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Returns: the last position of a chain at or before `at`; 0: none. */
static size_t last_of_chain(uint32_t *before, size_t at)
{
    while (before[at] != at) {
        INSIST(before[at] < at); /* a chain leads to the front */
        before[at] = before[before[at]];
        at = before[at];
    }
    return at;
}

/*
 * Reaches the requests of one line that block a waiter, the nearest first, back to `bound` (NULL:
 * all).
 * Returns: the request at which the scan ends, since the preceding ones are reached from it; NULL:
 * none.
 */
static const struct lock_request *follow_line(struct search *search, const struct lock_waiter *waiter,
                                              enum lock_bit bit, const struct lock_request *bound)
{
    const struct lock_request *request = waiter->request;
    struct line *line = line_of(search, waiter->resource, bit);
    bool ends = (lock__conflicts[waiter->bit] & ~lock__conflicts[bit]) == 0;
    uint32_t *before = line->before[ends ? CHAIN_NEW_OR_END : CHAIN_NEW];
    size_t at = last_of_chain(before, count_preceding(line, request));
    for (; at > 0; at = last_of_chain(before, at - 1)) {
        struct lock_request *f = line->waiters[at]->request;
        bool end = ends && covers_preceding(f);
        search->table->work++;
        if (bound != NULL && lock__precedes(f, bound))
            return bound;
        if (is_reached(search, f) && !end) {
            before[at] = (uint32_t)at - 1;
            continue;
        }
        if (!lock__blocks(request->owner, f))
            continue;
        reach_request(search, f, &(struct wait_edge){request, f->owner, waiter->resource, waiter->bit, true});
        if (end)
            return f;
    }
    return bound;
}

/* Follows the soft edges of a waiter. X first, since a scan can end at a request for X. */
static void follow_queue(struct search *search, const struct lock_waiter *waiter)
{
    const struct lock_queue *queue = waiter->resource->queue;
    const struct lock_request *bound = NULL;
    for (int bit = LOCK_BIT_COUNT - 1; bit >= 0; bit--)
        if ((lock__conflicts[waiter->bit] & lock__mask((enum lock_bit)bit)) != 0 && queue->counts[bit] > 0)
            bound = follow_line(search, waiter, (enum lock_bit)bit, bound);
}

static void follow_waits(struct search *search, const struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count && !search->found; i++) {
        search->table->work++;
        follow_holders(search, &request->waiters[i]);
        follow_queue(search, &request->waiters[i]);
    }
}

/* Returns: whether a conflicting request follows this one in a queue. */
static bool has_following(const struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count; i++) {
        const struct lock_waiter *waiter = &request->waiters[i];
        request->table->work++;
        for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
            if ((lock__conflicts[waiter->bit] & lock__mask(bit)) == 0)
                continue;
            const struct list *head = &waiter->resource->queue->waiting[bit];
            if (!list_empty(head) && lock__precedes(request, list_entry(head->prev, struct lock_waiter, link)->request))
                return true;
        }
    }
    return false;
}

/*
 * The cheap test before a search: a cycle needs a request that depends on this one or on its owner.
 */
static bool may_close(const struct lock_request *request)
{
    const struct lock_owner *owner = request->owner;
    return owner->awaited_count > 0 || (owner->session != NULL && owner->session->awaited_count > 0) ||
           owner->dependent_count > 0 || has_following(request);
}

static void new_search(struct search *search)
{
    resource_new_epoch(&search->table->resources);
    arena_reset(&search->arena);
}

/*
 * Searches for a cycle through `start`. Requests that this search has reached from earlier starts
 * are not reached again: those starts are in no cycle, so no path leads from there back to them or
 * to this one.
 */
static bool find_cycle_from(struct search *search, struct lock_request *start)
{
    REQUIRE(start->state == LOCK_STATE_WAITING);
    uint64_t before = search->table->work;
    search->start = start;
    search->found = false;
    search->reached_count = 0;
    follow_waits(search, search->start);
    for (size_t i = 0; i < search->reached_count && !search->found; i++)
        follow_waits(search, search->reached[i]);
    search->work += search->table->work - before;
    return search->found;
}

/*
 * Returns: the edges of the cycle, in order from the start: an array of *ret_count, for mem_free().
 */
static struct wait_edge *cycle_edges(const struct search *search, size_t *ret_count)
{
    REQUIRE(search->found);
    size_t count = 1;
    for (const struct lock_request *at = search->closing.request; at != search->start; at = at->via.request) {
        count++;
        INSIST(count <= search->reached_count + 1);
    }
    struct wait_edge *edges = mem_alloc(count * sizeof *edges);
    const struct wait_edge *edge = &search->closing;
    for (size_t i = count; i-- > 0; edge = &edge->request->via)
        edges[i] = *edge;
    *ret_count = count;
    return edges;
}

static bool owner_is_younger(const struct lock_owner *a, const struct lock_owner *b)
{
    return a->age != b->age ? a->age > b->age : a->number > b->number;
}

/*
 * Returns: the index of the edge whose request has the youngest owner. Cleanup requests are left
 * out: their owners hold nothing while they wait, so each cycle has other requests.
 */
static size_t find_youngest(const struct wait_edge *edges, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        const struct lock_owner *owner = edges[i].request->owner;
        if (!owner->cleanup && (found == count || owner_is_younger(owner, edges[found].request->owner)))
            found = i;
    }
    INSIST(found < count);
    return found;
}

/* Moves a request to the end of its queues. */
static void requeue_victim(struct lock_request *request)
{
    REQUIRE(request->state == LOCK_STATE_WAITING && !request->upgrade);
    lock__queue_leave(request);
    request->arrival = ++request->table->last_arrival;
    lock__queue_enter(request);
    lock__queue_schedule(request);
}

/*
 * Breaks the cycle that was found. `start`: the victim is the request that the search started from.
 * Returns: the victim, or the request that was requeued instead: that one is still waiting.
 */
static struct lock_request *break_cycle(const struct search *search, bool start)
{
    size_t count;
    tl_cleanup(mem_freep) struct wait_edge *edges = cycle_edges(search, &count);
    size_t index = start ? 0 : find_youngest(edges, count);
    /* The edges are const for the hook; the request itself belongs to the table. */
    struct lock_request *victim = (struct lock_request *)edges[index].request;
    INSIST(victim->state == LOCK_STATE_WAITING && !victim->owner->cleanup);
    /* An upgrade cannot be requeued, since it precedes other requests in any case. */
    bool requeued = victim->owner->autocommit && !victim->upgrade && edges[(index + count - 1) % count].soft;
    const struct lock_hooks *hooks = &search->table->hooks;
    if (hooks->deadlock != NULL)
        hooks->deadlock(hooks->context, victim, edges, count, requeued);
    if (requeued) {
        requeue_victim(victim);
        return victim;
    }
    lock__queue_leave(victim);
    lock__request_set_state(victim, LOCK_STATE_DEADLOCKED);
    return victim;
}

/*
 * Breaks all cycles through a request, of which one has been found. A requeued request has new
 * edges, so it is searched in its turn. This terminates: only requests that were requeued later
 * follow it, and no request depends on those.
 */
static void break_cycles(struct search *search)
{
    struct lock_table *table = search->table;
    uint64_t before = search->work;
    struct lock_request *request = search->start;
    bool found = true;
    struct list suspects;
    list_init(&suspects);
    list_append(&suspects, &request->event);
    while (!list_empty(&suspects)) {
        struct lock_request *start = list_entry(suspects.next, struct lock_request, event);
        if (!found && may_close(start)) {
            new_search(search);
            found = find_cycle_from(search, start);
        }
        if (!found) {
            list_remove(&start->event);
            continue;
        }
        bool over = search->work - before > LOCK_CYCLE_WORK_MAX && !start->owner->cleanup;
        struct lock_request *victim = break_cycle(search, over && start == request);
        found = false;
        if (list_linked(&victim->event))
            list_remove(&victim->event);
        if (victim->state == LOCK_STATE_WAITING)
            list_append(&suspects, &victim->event);
        else
            list_append(&table->victims, &victim->event);
    }
}

/*
 * Searches from each request in the given order. Once the searches have taken too much work, one
 * search continues from one request to the next; requests that it has reached already are left for
 * the next round.
 * Returns: how many are left, at the beginning of `requests`. They are in reverse order, since in a
 * chain of requests the last has to be searched first.
 */
static size_t break_round(struct search *search, struct lock_request **requests, size_t count)
{
    size_t left = 0;
    new_search(search);
    for (size_t i = 0; i < count; i++) {
        struct lock_request *request = requests[i];
        bool many = search->work > LOCK_CYCLE_WORK_MAX;
        search->table->work++;
        if (!many)
            new_search(search);
        if (many && is_reached(search, request)) {
            requests[left++] = request;
            continue;
        }
        if (request->state != LOCK_STATE_WAITING || !may_close(request))
            continue;
        if (find_cycle_from(search, request)) {
            break_cycles(search);
            new_search(search);
        } else {
            request->search_epoch = search->table->resources.epoch;
        }
    }
    for (size_t i = 0, j = left; i + 1 < j; i++) {
        struct lock_request *moved = requests[i];
        requests[i] = requests[--j];
        requests[j] = moved;
    }
    ENSURE(left < count); /* the first one is searched in any case */
    return left;
}

static void break_now(struct lock_table *table, struct lock_request **requests, size_t count)
{
    struct search search = {.table = table, .arena = ARENA_INIT};
    while (count > 0)
        count = break_round(&search, requests, count);
    mem_free(search.reached);
    arena_deinit(&search.arena);
}

void lock__cycle_break(struct lock_table *table, struct lock_request **requests, size_t count)
{
    if (table->grants_suspended == 0) {
        break_now(table, requests, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!list_linked(&requests[i]->suspect))
            list_append(&table->suspects, &requests[i]->suspect);
}

static int by_queue_order(const void *left, const void *right)
{
    const struct lock_request *a = *(struct lock_request *const *)left, *b = *(struct lock_request *const *)right;
    return lock__precedes(a, b) ? -1 : lock__precedes(b, a);
}

void lock__cycle_break_suspects(struct lock_table *table)
{
    REQUIRE(table->grants_suspended == 0);
    tl_cleanup(mem_freep) struct lock_request **requests = NULL;
    size_t count = 0, capacity = 0;
    while (!list_empty(&table->suspects)) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            requests = mem_realloc(requests, capacity * sizeof *requests);
        }
        requests[count] = list_entry(table->suspects.next, struct lock_request, suspect);
        list_remove(&requests[count++]->suspect);
        table->work++;
    }
    if (count == 0)
        return;
    qsort(requests, count, sizeof *requests, by_queue_order);
    break_now(table, requests, count);
}
