/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks. README-locks.md, "Deadlock", invariant 6.
 *
 * The graph: waiting requests. From r goes a dependence to each request that stands ahead of r and conflicts, and
 * to each waiting request of an owner who holds what conflicts with r (of a session: and of its wards; of a transaction: and of its
 * session itself, whose client ends it). Not to who waits for what r's owner or its session holds. Since there
 * was no circle before, a new one passes through the new request: a breadth-first search from it finds the shortest.
 *
 * Ahead of r there may be thousands. Those that stand ahead of an f which conflicts with all that r conflicts
 * with need not be looked at from r, they are met from f; so a queue for one X lock costs one step each.
 *
 * That does not hold where f ignores some of those ahead of it, or its owner has other requests. Then each of n requests has an edge to each
 * ahead of it. So a search keeps a trace of each resource that it visits: which requests were reached from there. A second request that waits
 * at the resource looks only at those that are left. The order in which requests are reached, and so the circle that is found, is that of a
 * search without traces, because reaching a request again has no effect.
 *
 * Where many requests are looked at, after a commit that has moved what they wait for, one search goes on from one to the next.
 */
#include "base/arena.h"
#include "base/check.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

/* What is looked at by an entry of a queue. */
enum chain {
    CHAIN_NEW,        /* requests that are not reached yet */
    CHAIN_NEW_OR_END, /* and those at which the look ends: stands_alone() */
    CHAIN_COUNT
};

/*
 * The requests of one bit in a queue. Positions count from 1, at its front; 0 means none. before[chain] is a disjoint-set forest with path
 * halving: it leads from a position to the last one at or before it that is in the chain.
 */
struct line {
    struct lock_waiter **entries; /* NULL: not visited yet */
    uint32_t *before[CHAIN_COUNT];
    size_t count;
};

/* How far a search has followed a resource. */
struct lock_trace {
    struct line lines[LOCK_BIT_COUNT];
    bool holders_followed[LOCK_BIT_COUNT]; /* all holders that conflict with that bit were followed, except: */
    const struct lock_owner *passed[LOCK_BIT_COUNT][2]; /* an owner and its session; NULL: none */
};

/* lock_owner.followed: which of its lists of requests were reached, as a whole. */
enum { FOLLOWED_REQUESTS = 1, FOLLOWED_WARDS = 2 };

struct search {
    struct lock_table *table;
    struct lock_request *start;
    struct lock_request **reached; /* in order of their distance */
    size_t reached_count;
    size_t capacity;
    struct arena arena;       /* traces */
    struct wait_edge closing; /* the dependence that leads back to the start */
    uint64_t looks;           /* of all searches so far; follows from the state */
    bool found;
};

static bool is_reached(const struct search *search, const struct lock_request *request)
{
    return request->search_epoch == search->table->resources.epoch;
}

static void reach(struct search *search, struct lock_request *target, const struct wait_edge *step)
{
    search->table->work++;
    if (search->found)
        return;
    if (target == search->start) {
        search->closing = *step;
        search->found = true;
        return;
    }
    if (is_reached(search, target))
        return;
    target->search_epoch = search->table->resources.epoch;
    target->via = *step;
    if (search->reached_count == search->capacity) {
        search->capacity = search->capacity ? search->capacity * 2 : 32;
        search->reached = mem_realloc(search->reached, search->capacity * sizeof *search->reached);
    }
    search->reached[search->reached_count++] = target;
}

/* Returns: the trace at a resource that has a queue. */
static struct lock_trace *trace_of(struct search *search, const struct resource *resource)
{
    struct lock_queue *queue = resource->queue;
    if (queue->search_epoch != search->table->resources.epoch) {
        queue->search_epoch = search->table->resources.epoch;
        queue->trace = arena_zalloc(&search->arena, sizeof *queue->trace);
    }
    return queue->trace;
}

/* Notes that a list of an owner's requests is reached. Returns: false when this search has reached it before. */
static bool follow_first(const struct search *search, struct lock_owner *owner, uint8_t list)
{
    if (owner->search_epoch != search->table->resources.epoch)
        owner->followed = 0;
    owner->search_epoch = search->table->resources.epoch;
    bool first = (owner->followed & list) == 0;
    owner->followed |= list;
    return first;
}

/* Reaches the waiting requests of a holder, of its wards and of its session. */
static void follow_holder(struct search *search, const struct lock_hold *hold, const struct wait_edge *step)
{
    struct lock_owner *owner = hold->owner, *session = owner->session;
    if (follow_first(search, owner, FOLLOWED_REQUESTS))
        list_for_each(waiting, &owner->requests)
            reach(search, list_entry(waiting, struct lock_request, of_owner), step);
    if (follow_first(search, owner, FOLLOWED_WARDS))
        list_for_each(waiting, &owner->dependent_requests)
            reach(search, list_entry(waiting, struct lock_request, of_session), step);
    if (session == NULL || owner->autocommit) /* a write ends by itself */
        return;
    if (follow_first(search, session, FOLLOWED_REQUESTS))
        list_for_each(waiting, &session->requests)
            reach(search, list_entry(waiting, struct lock_request, of_owner), step);
}

/* Whether the holders were followed for another entry of this bit, and this one ignores those that were left out then. */
static bool holders_are_followed(const struct lock_trace *trace, const struct lock_waiter *entry)
{
    for (size_t i = 0; i < 2; i++) {
        const struct lock_owner *passed = trace->passed[entry->bit][i];
        if (passed != NULL && !lock__ignores(entry->request->owner, passed))
            return false;
    }
    return trace->holders_followed[entry->bit];
}

/* Keeps the owners that all entries of this bit ignore. The first sets two, each goes once, so holders are walked three times at most. */
static void note_holders(struct lock_trace *trace, const struct lock_waiter *entry)
{
    const struct lock_owner *owner = entry->request->owner;
    const struct lock_owner **passed = trace->passed[entry->bit];
    if (!trace->holders_followed[entry->bit]) {
        passed[0] = owner;
        passed[1] = owner->session;
        trace->holders_followed[entry->bit] = true;
    }
    for (size_t i = 0; i < 2; i++)
        if (passed[i] != NULL && !lock__ignores(owner, passed[i]))
            passed[i] = NULL;
}

/* From an entry to whatever the holders against it wait for. */
static void follow_holders(struct search *search, const struct lock_waiter *entry)
{
    const struct lock_request *request = entry->request;
    const struct lock_owner *owner = request->owner;
    uint8_t mask = lock__conflicts[entry->bit];
    if (!lock__has_conflicting_hold(search->table, owner, owner->session, entry->resource, mask))
        return;
    struct lock_trace *trace = trace_of(search, entry->resource);
    if (holders_are_followed(trace, entry))
        return;
    for (const struct lock_hold *hold = NULL; (hold = lock__hold_next(entry->resource, hold, mask)) != NULL;) {
        search->table->work++;
        if (lock__ignores(owner, hold->owner))
            continue;
        follow_holder(search, hold, &(struct wait_edge){request, hold->owner, entry->resource, entry->bit, false});
    }
    note_holders(trace, entry);
}

/*
 * Whether all ahead of a request with which it conflicts are met from it. Not so where it passes some: its owner's own, and who waits
 * for what its owner holds.
 */
static bool stands_alone(const struct lock_request *request)
{
    const struct lock_owner *owner = request->owner;
    return owner->requests.next == owner->requests.prev && owner->awaited_count == 0 &&
           (owner->session == NULL || (list_empty(&owner->session->requests) && owner->session->awaited_count == 0));
}

static uint32_t *positions(struct arena *arena, size_t count)
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
    if (line->entries != NULL)
        return line;
    search->table->work += queue->counts[bit];
    line->entries = arena_alloc(&search->arena, (queue->counts[bit] + 1) * sizeof(struct lock_waiter *));
    list_for_each(link, &queue->waiting[bit]) line->entries[++line->count] = list_entry(link, struct lock_waiter, link);
    for (enum chain chain = 0; chain < CHAIN_COUNT; chain++)
        line->before[chain] = positions(&search->arena, line->count);
    return line;
}

/* Returns: how many of a line stand ahead of a request. */
static size_t line_ahead(const struct line *line, const struct lock_request *request)
{
    size_t low = 0, high = line->count;
    while (low < high) {
        size_t middle = (low + high) / 2 + 1;
        if (lock__precedes(line->entries[middle]->request, request))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Returns: the last position of a chain at or before one; 0: none. */
static size_t last_of_chain(uint32_t *before, size_t at)
{
    while (before[at] != at) {
        before[at] = before[before[at]];
        at = before[at];
    }
    return at;
}

/*
 * Reaches the requests of one line that block an entry, the nearest first, down to `bound` (NULL: all).
 * Returns: the request at which the look ends: those ahead of it are met from it; NULL: none.
 */
static const struct lock_request *follow_line(struct search *search, const struct lock_waiter *entry, enum lock_bit bit,
                                              const struct lock_request *bound)
{
    const struct lock_request *request = entry->request;
    struct line *line = line_of(search, entry->resource, bit);
    bool ends = (lock__conflicts[entry->bit] & ~lock__conflicts[bit]) == 0;
    uint32_t *before = line->before[ends ? CHAIN_NEW_OR_END : CHAIN_NEW];
    size_t at = last_of_chain(before, line_ahead(line, request));
    for (; at > 0; at = last_of_chain(before, at - 1)) {
        struct lock_request *f = line->entries[at]->request;
        bool end = ends && stands_alone(f);
        search->table->work++;
        if (bound != NULL && lock__precedes(f, bound))
            return bound;
        if (is_reached(search, f) && !end) {
            before[at] = (uint32_t)at - 1;
            continue;
        }
        if (!lock__blocks(request->owner, f))
            continue;
        reach(search, f, &(struct wait_edge){request, f->owner, entry->resource, entry->bit, true});
        if (end)
            return f;
    }
    return bound;
}

/* From an entry to the requests ahead of it that conflict. X first, since one of those stands for all before it. */
static void follow_queue(struct search *search, const struct lock_waiter *entry)
{
    const struct lock_queue *queue = entry->resource->queue;
    const struct lock_request *bound = NULL;
    for (int bit = LOCK_BIT_COUNT - 1; bit >= 0; bit--)
        if ((lock__conflicts[entry->bit] & lock__mask((enum lock_bit)bit)) != 0 && queue->counts[bit] > 0)
            bound = follow_line(search, entry, (enum lock_bit)bit, bound);
}

static void follow(struct search *search, const struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count && !search->found; i++) {
        search->table->work++;
        follow_holders(search, &request->waiters[i]);
        follow_queue(search, &request->waiters[i]);
    }
}

/* Whether somebody stands behind a request, in conflict with it. */
static bool has_followers(const struct lock_request *request)
{
    for (size_t i = 0; i < request->waiter_count; i++) {
        const struct lock_waiter *entry = &request->waiters[i];
        request->table->work++;
        for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
            if ((lock__conflicts[entry->bit] & lock__mask(bit)) == 0)
                continue;
            const struct list *head = &entry->resource->queue->waiting[bit];
            if (!list_empty(head) && lock__precedes(request, list_entry(head->prev, struct lock_waiter, link)->request))
                return true;
        }
    }
    return false;
}

/* The cheap test before the search: a circle needs somebody who depends on this request or its owner. */
static bool may_close(const struct lock_request *request)
{
    const struct lock_owner *owner = request->owner;
    return owner->awaited_count > 0 || (owner->session != NULL && owner->session->awaited_count > 0) ||
           owner->dependent_count > 0 || has_followers(request);
}

static void new_search(struct search *search)
{
    resource_new_epoch(&search->table->resources);
    arena_reset(&search->arena);
}

/* What this search has reached for others before is not reached again: they stand on no circle, so none of it leads back to them, nor to this one. */
static bool find_circle_from(struct search *search, struct lock_request *start)
{
    uint64_t before = search->table->work;
    search->start = start;
    search->found = false;
    search->reached_count = 0;
    follow(search, search->start);
    for (size_t i = 0; i < search->reached_count && !search->found; i++)
        follow(search, search->reached[i]);
    search->looks += search->table->work - before;
    return search->found;
}

/* The circle as steps: the start first, then whom each waits for. Returns: an array of *ret_count; mem_free. */
static struct wait_edge *circle_steps(const struct search *search, size_t *ret_count)
{
    size_t count = 1;
    for (const struct lock_request *at = search->closing.request; at != search->start; at = at->via.request)
        count++;
    struct wait_edge *steps = mem_alloc(count * sizeof *steps);
    const struct wait_edge *step = &search->closing;
    for (size_t i = count; i-- > 0; step = &step->request->via)
        steps[i] = *step;
    *ret_count = count;
    return steps;
}

static bool younger(const struct lock_owner *a, const struct lock_owner *b)
{
    return a->age != b->age ? a->age > b->age : a->number > b->number;
}

/* Returns: the step whose request's owner is the youngest. What an ended session left holds nothing: others are in each circle. */
static size_t youngest(const struct wait_edge *steps, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        const struct lock_owner *owner = steps[i].request->owner;
        if (!owner->cleanup && (found == count || younger(owner, steps[found].request->owner)))
            found = i;
    }
    INSIST(found < count);
    return found;
}

/* Sends a request to the end of the queue. */
static void requeue(struct lock_request *request)
{
    lock__queue_leave(request);
    request->arrival = ++request->table->last_arrival;
    lock__queue_enter(request);
    lock__queue_schedule(request);
}

/*
 * Opens one circle; `start` says that the request from which it was found is the one to end. Returns: the request that was ended, or went to the end
 * of the queue.
 */
static struct lock_request *open_circle(const struct search *search, bool start)
{
    size_t count;
    tl_cleanup(mem_freep) struct wait_edge *steps = circle_steps(search, &count);
    size_t index = start ? 0 : youngest(steps, count);
    /* Requests are the table's to change; steps are handed out read-only. */
    struct lock_request *victim = (struct lock_request *)steps[index].request;
    /* An upgrade would stand ahead of the others again, wherever it is put. */
    bool again = victim->owner->autocommit && !victim->upgrade && steps[(index + count - 1) % count].soft;
    const struct lock_hooks *hooks = &search->table->hooks;
    if (hooks->deadlock != NULL)
        hooks->deadlock(hooks->context, victim, steps, count, again);
    if (again) {
        requeue(victim);
        return victim;
    }
    lock__queue_leave(victim);
    victim->state = LOCK_STATE_DEADLOCKED;
    return victim;
}

/*
 * Opens all circles through a request, of which one was found. Who was sent to the end of the queue depends on others than before, so it is looked at in
 * turn. That ends: behind it are only such as came there later and on whom nobody depends.
 */
static void open_circles(struct search *search)
{
    struct lock_table *table = search->table;
    uint64_t before = search->looks;
    struct lock_request *request = search->start;
    bool found = true;
    struct list suspects;
    list_init(&suspects);
    list_append(&suspects, &request->event);
    while (!list_empty(&suspects)) {
        struct lock_request *start = list_entry(suspects.next, struct lock_request, event);
        if (!found && may_close(start)) {
            new_search(search);
            found = find_circle_from(search, start);
        }
        if (!found) {
            list_remove(&start->event);
            continue;
        }
        bool over = search->looks - before > LOCK_CYCLE_WORK_MAX && !start->owner->cleanup;
        struct lock_request *victim = open_circle(search, over && start == request);
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
 * Looks at some requests in their order. Where they are so many that a search for each takes too long, only those that must be are looked at, one search
 * goes on from one to the next, and one to which another led already has its turn after the others. Returns: how many are left, in `requests`: in the
 * reverse order, for in a chain of them the last has to go first.
 */
static size_t break_round(struct search *search, struct lock_request **requests, size_t count)
{
    size_t left = 0;
    new_search(search);
    for (size_t i = 0; i < count; i++) {
        struct lock_request *request = requests[i];
        bool many = search->looks > LOCK_CYCLE_WORK_MAX;
        bool asked = request->check_cycle || !many;
        search->table->work++;
        if (!many)
            new_search(search);
        if (asked && many && is_reached(search, request)) {
            requests[left++] = request;
            continue;
        }
        request->check_cycle = false;
        if (!asked || request->state != LOCK_STATE_WAITING || !may_close(request))
            continue;
        if (find_circle_from(search, request)) {
            open_circles(search);
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
    return left;
}

void lock__cycle_break_now(struct lock_table *table, struct lock_request **requests, size_t count)
{
    struct search search = {.table = table, .arena = ARENA_INIT};
    while (count > 0)
        count = break_round(&search, requests, count);
    mem_free(search.reached);
    arena_deinit(&search.arena);
}

void lock__cycle_break(struct lock_table *table, struct lock_request **requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        requests[i]->check_cycle = true;
        if (table->grants_suspended > 0)
            lock__queue_arrive(requests[i]);
    }
    if (table->grants_suspended == 0)
        lock__cycle_break_now(table, requests, count);
}
