/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the lock table share: lock.c (holds and requests), lock_queue.c (who waits behind whom),
 * lock_cycle.c (deadlocks), lock_token.c (fencing tokens), lock_inspect.c (reports and checks).
 */
#ifndef TL_CORE_LOCK_INTERNAL_H
#define TL_CORE_LOCK_INTERNAL_H

#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/step/command.h"

/* One bit of a waiting request on one resource, in that resource's queue. */
struct lock_waiter {
    struct lock_request *request;
    struct resource *resource;
    enum lock_bit bit;
    struct list link;        /* in queue->waiting[bit], ... */
    struct treap_node place; /* ... and in queue->lines[bit], in the same order: where another belongs is found by it */
    struct lock_request *watchers; /* who waits for this one to leave the queue */
};

/* Exists while somebody waits at the resource. Each list in the order of lock__precedes(). */
struct lock_queue {
    struct list waiting[LOCK_BIT_COUNT];
    struct treap order[LOCK_BIT_COUNT];
    uint32_t counts[LOCK_BIT_COUNT];
    uint64_t search_epoch;    /* of the last search for circles that visited it, ... */
    struct lock_trace *trace; /* ... and what that has reached from here; lock_cycle.c */
};

struct lock_spec_ref {
    struct resource *resource; /* a reference */
    enum lock_mode mode;
    bool insert_intention;
    bool auxiliary;
};

struct lock_request {
    struct lock_table *table;
    struct lock_owner *owner;
    void *user;
    enum lock_state state;
    bool upgrade;
    uint64_t arrival;
    tl_ts token;
    struct lock_waiter *waiters; /* each (resource, bit) of the wants and their marks, once */
    size_t waiter_count;

    /* What it watches: a link in the list of a hold's or an entry's watchers. NULL: nothing. */
    struct lock_request **watched;
    struct lock_request *watch_next;
    struct heap_node wake; /* in table->late if `late`, else in table->wake; or in neither */
    bool ready_cleanup;
    bool check_cycle; /* to be looked at for circles: at once, or when nothing is withheld any more */

    struct list of_owner;
    struct list of_session;
    struct list event; /* in table->granted or table->victims */

    /* The search for circles; valid while search_epoch is the search's. */
    uint64_t search_epoch;
    struct wait_edge via; /* the dependence by which it was reached */

    size_t spec_count;
    struct lock_spec_ref specs[];
};

/* Bit sets that a bit does not go with (README-locks.md). */
extern const uint8_t lock__conflicts[LOCK_BIT_COUNT];

static inline uint8_t lock__mask(enum lock_bit bit)
{
    return (uint8_t)(1u << bit);
}

static inline enum lock_bit lock__own_bit(enum lock_mode mode)
{
    return (enum lock_bit)(LOCK_BIT_S + (mode - LOCK_S));
}

static inline enum lock_bit lock__intention_bit(enum lock_mode mode)
{
    return (enum lock_bit)(LOCK_BIT_IS + (mode - LOCK_S));
}

/* Whether what `holder` has is no obstacle to `asker`. */
static inline bool lock__ignores(const struct lock_owner *asker, const struct lock_owner *holder)
{
    return asker == holder || asker->session == holder;
}

/* What ended sessions left stands first, then upgrades, then all others. */
static inline int lock__priority(const struct lock_request *request)
{
    return request->owner->cleanup ? 0 : request->upgrade ? 1 : 2;
}

/* Among each of them by arrival; of what sessions left, in the order in which it was left, however often one asks. */
static inline bool lock__precedes(const struct lock_request *a, const struct lock_request *b)
{
    int x = lock__priority(a), y = lock__priority(b);
    if (x == 0 && y == 0 && a->owner != b->owner)
        return a->owner->number < b->owner->number;
    return x != y ? x < y : a->arrival < b->arrival;
}

struct lock_hold *lock__hold_find(const struct lock_table *table, const struct lock_owner *owner,
                                  const struct resource *resource);
/* Returns: whether an owner that `asker` (owner or NULL, with its session) does not pass holds a bit of `mask`. */
bool lock__has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                        const struct lock_owner *session, const struct resource *resource, uint8_t mask);
/*
 * Returns: the oldest hold of a resource behind one (NULL: of all) that has a bit of `mask`, or NULL. Takes no look at those between, of which there may
 * be a hundred thousand that go with what is asked for.
 */
struct lock_hold *lock__hold_next(const struct resource *resource, const struct lock_hold *after, uint8_t mask);
/* Makes a hold the youngest of its resource. */
void lock__hold_to_end(struct lock_hold *hold);
/* Returns: the oldest hold that stands against an entry, or NULL. */
struct lock_hold *lock__find_conflicting_hold(const struct lock_table *table, const struct lock_waiter *entry);
/* Computes the entries of a request from its wants. */
void lock__request_expand(struct lock_request *request);
/* Gives a request what it wants. */
void lock__request_grant(struct lock_request *request);

/* Updates hold->awaited and its owner's count, after the bits of the hold or the queue of its resource have changed. */
void lock__hold_check_awaited(struct lock_hold *hold);

/* For lock_codec.c, which has the table as it was, piece by piece. */
struct resource *lock__find_resource(const struct lock_table *table, const struct resource_name *name);
/* Returns: false when there is one already. Requires: bits come of it. */
bool lock__restore_hold(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                        const struct lock_hold *as);
/* One that waits, and watches nothing yet. */
struct lock_request *lock__restore_request(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *wants, size_t count, uint64_t arrival, bool upgrade);

/* lock_token.c */
/* Gives a hold a token, by which it is found from then on; TL_TS_NONE takes it away. */
void lock__token_set(struct lock_table *table, struct lock_hold *hold, tl_ts token);
/* After the table has more buckets than the old count. */
void lock__tokens_grow(struct lock_table *table, size_t old_count);

/* One that was granted; what came of it is among the holds. */
struct lock_request *lock__restore_granted(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *wants, size_t count, uint64_t arrival, bool upgrade,
                                           tl_ts token);

/* lock_queue.c */
/* Whether a waiting request waits for a hold of `owner` or of `session` (either may be NULL), so that neither need wait for it. */
bool lock__waits_for(const struct lock_request *request, const struct lock_owner *owner,
                        const struct lock_owner *session);
/* Whether a request that stands ahead of one of `owner` is in its way, where their bits conflict. */
static inline bool lock__blocks(const struct lock_owner *owner, const struct lock_request *ahead)
{
    return !lock__ignores(owner, ahead->owner) && !lock__waits_for(ahead, owner, owner->session);
}
void lock__queue_enter(struct lock_request *request);
void lock__queue_leave(struct lock_request *request);
/* Finds something in the way of a request and watches it. Returns: false when there is nothing. */
bool lock__queue_watch(struct lock_request *request);
/* The same for one that was saved, which may be free when an ended session left it. Returns: false when it ought not to wait. */
bool lock__queue_watch_restored(struct lock_request *request);
/* Whether something is in the way. */
bool lock__queue_is_blocked(const struct lock_request *request);
/* The same for one that has just come; with nothing in the way it is granted by the next lock__queue_process_wakeups(). */
void lock__queue_arrive(struct lock_request *request);
/*
 * After an owner was granted something: has what it, its wards and its session wait for looked at again, since others may
 * wait behind it now; looks for circles through that.
 */
void lock__queue_check_waits(struct lock_table *table, struct lock_owner *owner);
/* The same, when what was granted is a request, and all else is as it was. */
void lock__queue_check_granted(struct lock_request *request);
void lock__queue_unwatch(struct lock_request *request);
/* Has all watchers of something that goes looked at again. */
void lock__queue_wake(struct lock_table *table, struct lock_request **watchers);
/* A request that watches nothing is to be looked at. */
void lock__queue_schedule(struct lock_request *request);
/* Looks at those again, in order, and grants what can be granted. */
void lock__queue_process_wakeups(struct lock_table *table);

/* What the circles of one request may take, in looks, and one more search: README-locks.md, "Deadlock". Ten milliseconds. */
#define LOCK_CYCLE_WORK_MAX UINT64_C(100000)

/*
 * Looks for circles through waiting requests, in their order, and for each circle ends a request, which goes to table->victims, or sends one to
 * the end of the queue. Changes the array. While nothing is granted they are noted, and looked at later.
 */
void lock__cycle_break(struct lock_table *table, struct lock_request **requests, size_t count);
/* The same at once: of `suspect` ones, and of the others as long as that takes no time. */
void lock__cycle_break_now(struct lock_table *table, struct lock_request **requests, size_t count);

#endif
