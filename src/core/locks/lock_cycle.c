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
 */
#include "base/check.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

struct search {
    struct lock_table *table;
    struct lock_request *start;
    struct lock_request **reached; /* in order of their distance */
    size_t reached_count;
    size_t capacity;
    struct lock_step closing; /* the dependence that leads back to the start */
    bool found;
};

static void reach(struct search *search, struct lock_request *target, const struct lock_step *step)
{
    if (search->found)
        return;
    if (target == search->start) {
        search->closing = *step;
        search->found = true;
        return;
    }
    if (target->search_epoch == search->table->resources.epoch)
        return;
    target->search_epoch = search->table->resources.epoch;
    target->via = *step;
    if (search->reached_count == search->capacity) {
        search->capacity = search->capacity ? search->capacity * 2 : 32;
        search->reached = mem_realloc(search->reached, search->capacity * sizeof *search->reached);
    }
    search->reached[search->reached_count++] = target;
}

/* From an entry to whatever the holders against it wait for. */
static void follow_holders(struct search *search, const struct lock_entry *entry)
{
    const struct lock_request *request = entry->request;
    const struct lock_owner *owner = request->owner;
    uint8_t mask = lock__conflicts[entry->bit];
    if (!lock__held_against(search->table, owner, owner->session, entry->resource, mask))
        return;
    list_for_each(link, &entry->resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        if ((hold->bits & mask) == 0 || lock__passes(owner, hold->owner))
            continue;
        struct lock_step step = {request, hold->owner, entry->resource, entry->bit, false};
        list_for_each(waiting, &hold->owner->requests)
            reach(search, list_entry(waiting, struct lock_request, of_owner), &step);
        list_for_each(waiting, &hold->owner->ward_requests)
            reach(search, list_entry(waiting, struct lock_request, of_session), &step);
        if (hold->owner->session == NULL || hold->owner->one_shot) /* a write ends by itself */
            continue;
        list_for_each(waiting, &hold->owner->session->requests)
            reach(search, list_entry(waiting, struct lock_request, of_owner), &step);
    }
}

static bool awaited(const struct lock_owner *owner);

/*
 * Whether all ahead of f that conflict with `entry` are met from f. Not so where f passes some: its owner's own, and who waits
 * for what its owner holds.
 */
static bool stands_for_all(const struct lock_entry *f, const struct lock_entry *entry)
{
    const struct lock_owner *owner = f->request->owner;
    return (lock__conflicts[entry->bit] & ~lock__conflicts[f->bit]) == 0 &&
           owner->requests.next == owner->requests.prev &&
           (owner->session == NULL || (list_empty(&owner->session->requests) && !awaited(owner->session))) &&
           !awaited(owner);
}

static const struct list *start_of(const struct lock_entry *entry, const struct list *head, enum lock_bit bit)
{
    if (bit == entry->bit)
        return entry->link.prev;
    const struct list *at = head->prev;
    while (at != head && !lock__ahead(list_entry(at, struct lock_entry, link)->request, entry->request))
        at = at->prev;
    return at;
}

/* From an entry to the requests ahead of it that conflict. X first, since one of those stands for all before it. */
static void follow_queue(struct search *search, const struct lock_entry *entry)
{
    const struct lock_queue *queue = entry->resource->queue;
    const struct lock_request *request = entry->request;
    const struct lock_request *bound = NULL;
    for (int bit = LOCK_BIT_COUNT - 1; bit >= 0; bit--) {
        if ((lock__conflicts[entry->bit] & lock__mask((enum lock_bit)bit)) == 0 || queue->counts[bit] == 0)
            continue;
        const struct list *head = &queue->waiting[bit];
        for (const struct list *at = start_of(entry, head, (enum lock_bit)bit); at != head; at = at->prev) {
            const struct lock_entry *f = list_entry(at, struct lock_entry, link);
            if (bound != NULL && lock__ahead(f->request, bound))
                break;
            if (!lock__in_way(request->owner, f->request))
                continue;
            reach(search, f->request,
                  &(struct lock_step){request, f->request->owner, entry->resource, entry->bit, true});
            if (stands_for_all(f, entry)) {
                bound = f->request;
                break;
            }
        }
    }
}

static void follow(struct search *search, const struct lock_request *request)
{
    for (size_t i = 0; i < request->entry_count && !search->found; i++) {
        follow_holders(search, &request->entries[i]);
        follow_queue(search, &request->entries[i]);
    }
}

/* Whether somebody waits at a resource for what an owner holds there. */
static bool awaited(const struct lock_owner *owner)
{
    list_for_each(link, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        const struct lock_queue *queue = hold->resource->queue;
        if (queue == NULL)
            continue;
        for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++)
            if (queue->counts[bit] > 0 && (lock__conflicts[bit] & hold->bits) != 0)
                return true;
    }
    return false;
}

/* Whether somebody stands behind a request, in conflict with it. */
static bool has_followers(const struct lock_request *request)
{
    for (size_t i = 0; i < request->entry_count; i++) {
        const struct lock_entry *entry = &request->entries[i];
        for (enum lock_bit bit = 0; bit < LOCK_BIT_COUNT; bit++) {
            if ((lock__conflicts[entry->bit] & lock__mask(bit)) == 0)
                continue;
            const struct list *head = &entry->resource->queue->waiting[bit];
            if (!list_empty(head) && lock__ahead(request, list_entry(head->prev, struct lock_entry, link)->request))
                return true;
        }
    }
    return false;
}

/* The cheap test before the search: a circle needs somebody who depends on this request or its owner. */
static bool may_close(const struct lock_request *request)
{
    const struct lock_owner *owner = request->owner;
    return awaited(owner) || (owner->session != NULL && awaited(owner->session)) || owner->ward_count > 0 ||
           has_followers(request);
}

static bool find_circle(struct search *search)
{
    resource_new_epoch(&search->table->resources);
    search->found = false;
    search->reached_count = 0;
    follow(search, search->start);
    for (size_t i = 0; i < search->reached_count && !search->found; i++)
        follow(search, search->reached[i]);
    return search->found;
}

/* The circle as steps: the start first, then whom each waits for. Returns: an array of *ret_count; mem_free. */
static struct lock_step *circle_steps(const struct search *search, size_t *ret_count)
{
    size_t count = 1;
    for (const struct lock_request *at = search->closing.request; at != search->start; at = at->via.request)
        count++;
    struct lock_step *steps = mem_alloc(count * sizeof *steps);
    const struct lock_step *step = &search->closing;
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
static size_t youngest(const struct lock_step *steps, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        const struct lock_owner *owner = steps[i].request->owner;
        if (!owner->first && (found == count || younger(owner, steps[found].request->owner)))
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
    lock__queue_note(request);
}

/* Opens one circle. Returns: the request that was ended, or went to the end of the queue. */
static struct lock_request *open_circle(const struct search *search)
{
    size_t count;
    tl_cleanup(mem_freep) struct lock_step *steps = circle_steps(search, &count);
    size_t index = youngest(steps, count);
    /* Requests are the table's to change; steps are handed out read-only. */
    struct lock_request *victim = (struct lock_request *)steps[index].request;
    /* An upgrade would stand ahead of the others again, wherever it is put. */
    bool again = victim->owner->one_shot && !victim->upgrade && steps[(index + count - 1) % count].behind;
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
 * Who was sent to the end of the queue depends on others than before, so it is looked at in turn. That ends: behind it
 * are only such as came there later and on whom nobody depends.
 */
bool lock__cycle_break(struct lock_request *request)
{
    struct lock_table *table = request->table;
    struct search search = {.table = table};
    if (table->withheld > 0) {
        lock__queue_arrive(request);
        return true;
    }
    struct list suspects;
    list_init(&suspects);
    list_append(&suspects, &request->event);
    while (!list_empty(&suspects)) {
        search.start = list_entry(suspects.next, struct lock_request, event);
        if (!may_close(search.start) || !find_circle(&search)) {
            list_remove(&search.start->event);
            continue;
        }
        struct lock_request *victim = open_circle(&search);
        if (list_linked(&victim->event))
            list_remove(&victim->event);
        if (victim->state == LOCK_STATE_WAITING)
            list_append(&suspects, &victim->event);
        else
            list_append(&table->victims, &victim->event);
    }
    mem_free(search.reached);
    return request->state == LOCK_STATE_WAITING;
}
