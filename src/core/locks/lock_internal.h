/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the lock table: lock.c (holds and requests), lock_queue.c (wait queues),
 * lock_watch.c (obstacles that waiting requests watch), lock_cycle.c (deadlocks), lock_token.c
 * (fencing tokens), lock_undo.c (unconfirmed grants), lock_move.c (documents that move), lock_inspect.c
 * (inspection and checks), lock_codec.c (serialization), lock_chunk.c (chunks of holds).
 */
#ifndef TL_CORE_LOCK_INTERNAL_H
#define TL_CORE_LOCK_INTERNAL_H

#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

/* One bit of a waiting request in the queue of one resource. */
struct lock_waiter {
    struct lock_request *request;
    struct resource *resource;
    enum lock_bit bit;
    uint8_t held;                  /* what its owner held there when it was granted: lock_queue.c */
    struct list link;              /* in queue->waiting[bit] */
    struct treap_node order_node;  /* in queue->order[bit] */
    struct lock_request *watchers; /* waiting requests that watch this one */
};

/* The wait queue of a resource. Exists while at least one request waits there. */
struct lock_queue {
    /* struct lock_waiter by `link`, in order of lock__precedes() */
    struct list waiting[LOCK_BIT_COUNT];
    /* The same by `order_node`, of kinds by owner: to find a position, or another owner's waiter, in log n */
    struct treap order[LOCK_BIT_COUNT];
    uint32_t counts[LOCK_BIT_COUNT];
    uint64_t search_epoch;    /* the last deadlock search that visited it */
    struct lock_trace *trace; /* the requests which that search reached from here; lock_cycle.c */
};

/* A struct lock_spec whose resource has been opened. */
struct lock_spec_ref {
    struct resource *resource; /* owns a reference */
    enum lock_mode mode;
    bool insert_intention;
    bool auxiliary;
};

/*
 * The grant of one lock of a request, until the request is freed or undone. Only a request that
 * waited has these, since only it can be undone; autocommit writes and cleanup requests have none.
 */
struct lock_grant {
    struct lock_request *request;
    struct lock_hold *hold; /* NULL: an insert intention, or the lock has been released since */
    struct list link;       /* in hold->unconfirmed->grants */
};

/* The unconfirmed grants of a hold, and the confirmed lock, which stays if all of them are undone. */
struct lock_unconfirmed {
    struct list grants;               /* by `link`, oldest first: their tokens do not decrease; not empty */
    uint32_t counts[LOCK_MODE_COUNT]; /* the grants, by mode */
    uint32_t plain_count;             /* those that are not auxiliary */
    enum lock_mode mode;              /* confirmed; LOCK_NONE: no lock */
    tl_ts token;                      /* confirmed; TL_TS_NONE: no lock */
    bool auxiliary;                   /* confirmed */
    bool marked;                      /* lock_request_mark_names(): a grant is of the marked request */
};

/*
 * Waiting requests of one owner that wait for the same bit of a resource. The first of them is blocked there, and so
 * are the others (invariant 10). Exists while there are others.
 */
struct lock_group {
    struct lock_request *leader;  /* the first; it watches what blocks it there, or is scheduled */
    struct lock_request *members; /* the others, by `watch_next`, in queue order */
};

#define LOCK_REQUEST_MAGIC MAGIC('L', 'R', 'e', 'q')

struct lock_request {
    uint32_t magic; /* LOCK_REQUEST_MAGIC */
    struct lock_table *table;
    struct lock_owner *owner;
    void *user;
    enum lock_state state;
    bool upgrade;
    uint64_t arrival;
    tl_ts token;
    struct lock_waiter *waiters; /* each (resource, bit) of its locks and intention locks, once */
    size_t waiter_count;
    struct lock_grant *grants; /* by spec; NULL: its grant cannot be undone (struct lock_grant) */

    /*
     * Links in the watchers of the hold or waiter that it watches, or in the members of its group. `watched` NULL: it
     * watches nothing.
     */
    struct lock_request **watched;
    struct lock_request *watch_next;
    struct lock_waiter *blocked_at; /* the place at which its obstacle, or the last one, blocks it; NULL: none yet */
    struct lock_group *group;       /* that it leads or is in; NULL: none */
    struct heap_node wake; /* in table->wake, or in table->ready_cleanup if its owner is `cleanup` */

    struct list of_owner;
    struct list of_session;
    struct list event;   /* in table->granted or table->victims */
    struct list suspect; /* in table->suspects */

    uint64_t search_epoch; /* the last deadlock search that reached it */
    struct wait_edge via;  /* the edge by which that search reached it */
    size_t index;          /* scratch of lock_codec.c: in the array of requests */

    size_t spec_count;
    struct lock_spec_ref specs[];
};

/* Of each bit, the set of bits it conflicts with (README-locks.md, "Modes"). */
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

/*
 * Returns: whether locks and requests of `holder` do not block `asker`: the same owner, or its
 * session.
 */
static inline bool lock__ignores(const struct lock_owner *asker, const struct lock_owner *holder)
{
    return asker == holder || asker->session == holder;
}

/* Returns: 0 for cleanup requests, 1 for upgrades, 2 for other requests; lower goes first. */
static inline int lock__priority(const struct lock_request *request)
{
    return request->owner->cleanup ? 0 : request->upgrade ? 1 : 2;
}

/*
 * Returns: whether `a` precedes `b` in a queue: by priority, then by arrival. Cleanup requests are
 * ordered by their owners' numbers, so that one that is requested again keeps its position.
 */
static inline bool lock__precedes(const struct lock_request *a, const struct lock_request *b)
{
    int x = lock__priority(a), y = lock__priority(b);
    if (x == 0 && y == 0 && a->owner != b->owner)
        return a->owner->number < b->owner->number;
    return x != y ? x < y : a->arrival < b->arrival;
}

/*
 * Returns: the hold of an owner on a resource; a new one is the youngest of both, without bits.
 * Ensures: the caller gives a new one bits, by lock__hold_update().
 */
struct lock_hold *lock__hold_open(struct lock_table *table, struct lock_owner *owner, struct resource *resource);
/* Updates a hold after its mode or its below[] changed. Frees it when nothing is left of it. */
void lock__hold_update(struct lock_table *table, struct lock_hold *hold);
/* Halves the hash table of holds while hardly any of its buckets is used. */
void lock__holds_shrink(struct lock_table *table);
/*
 * Changes an owner's intention locks on `resource` and its ancestors: one lock below has changed
 * from mode `out` to mode `in`. LOCK_NONE: there is no lock before, or after.
 */
void lock__intentions_change(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                             enum lock_mode out, enum lock_mode in);
/* Returns: the hold of an owner on a resource, or NULL. */
struct lock_hold *lock__hold_find(const struct lock_table *table, const struct lock_owner *owner,
                                  const struct resource *resource);
/*
 * Returns: whether an owner other than `owner` and `session` (each may be NULL) holds a bit of
 * `mask`.
 */
bool lock__has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                                const struct lock_owner *session, const struct resource *resource, uint8_t mask);
/*
 * Returns: the next younger hold of a resource after `after` (NULL: the oldest) that has a bit of
 * `mask`, or NULL. Compatible holds, of which there can be very many, are skipped without a visit.
 */
struct lock_hold *lock__hold_next(const struct resource *resource, const struct lock_hold *after, uint8_t mask);
/* Records that the fields of a hold, or the parent of its resource, have changed. */
static inline void lock__chunk_touch(struct lock_table *table, struct lock_chunk *chunk)
{
    if (list_linked(&chunk->changed))
        return;
    list_append(&table->changed_chunks, &chunk->changed);
    table->changed_chunk_count++;
}
/* Begins a chunk at the end of an owner's holds; it has none until lock__chunk_add(). */
struct lock_chunk *lock__chunk_begin(struct lock_table *table, struct lock_owner *owner);
/* Adds the last hold of its owner to the last chunk, or to a new one. */
void lock__chunk_add(struct lock_table *table, struct lock_hold *hold);
/* Removes a hold from its chunk, which ends with its last one. Requires: it is in owner->holds. */
void lock__chunk_remove(struct lock_table *table, struct lock_hold *hold);
/* Frees a chunk without holds. */
void lock__chunk_end(struct lock_table *table, struct lock_chunk *chunk);
/*
 * Moves a hold to the end of its resource's holds, as the youngest. `order` is for the caller to
 * change.
 */
void lock__hold_to_end(struct lock_hold *hold);
/* Returns: the oldest hold that blocks a waiter, or NULL. */
struct lock_hold *lock__find_conflicting_hold(const struct lock_table *table, const struct lock_waiter *waiter);
/*
 * Computes the waiters of a request: the bits of its locks and of the intention locks above them.
 */
void lock__request_expand(struct lock_request *request);
/*
 * Changes the state of a request. Requires: the table of transitions in lock.c has it.
 */
void lock__request_set_state(struct lock_request *request, enum lock_state state);
/*
 * Acquires all locks of a request for its owner, without a check for conflicts. Requires: the
 * request is in no queue.
 */
void lock__request_grant(struct lock_request *request);

/*
 * Updates hold->awaited and the owner's count. Call after a change of the hold's bits or of the
 * queue.
 */
void lock__hold_check_awaited(struct lock_hold *hold);

/* --- lock_undo.c ------------------------------------------------------------------------------ */

/* The mode, token and kind of a lock. */
struct lock_value {
    enum lock_mode mode; /* LOCK_NONE: no lock */
    tl_ts token;
    bool auxiliary;
};
/* Returns: what a hold has now. */
static inline struct lock_value lock__value(const struct lock_hold *hold)
{
    return (struct lock_value){(enum lock_mode)hold->mode, hold->token, hold->auxiliary};
}
/* Makes the grants of a request unconfirmed, none with a hold yet. */
void lock__grants_open(struct lock_request *request);
/*
 * Files the grant of the request's lock `at` with its hold. `before`: what the hold had before it,
 * if this is its only unconfirmed grant.
 */
void lock__grant_add(struct lock_request *request, size_t at, struct lock_hold *hold, struct lock_value before);
/*
 * Makes a grant that has no struct lock_grant part of what the hold keeps.
 * Requires: `granted` has a mode.
 */
void lock__hold_confirm(struct lock_hold *hold, struct lock_value granted);
/* Confirms all grants of a request, and frees them. */
void lock__grants_confirm(struct lock_request *request);
/* Forgets the unconfirmed grants of a hold whose lock is released. */
void lock__hold_forget_grants(struct lock_hold *hold);
/*
 * Removes an unconfirmed grant from its hold. Returns: what the hold has without it.
 * Requires: grant->hold is not NULL.
 */
struct lock_value lock__grant_remove(struct lock_grant *grant);
/* Returns: what a hold has if all of its unconfirmed grants are undone. */
struct lock_value lock__confirmed_value(const struct lock_unconfirmed *unconfirmed);
/* Returns: what a hold has by its confirmed lock and its unconfirmed grants (invariant 9). */
struct lock_value lock__unconfirmed_value(const struct lock_unconfirmed *unconfirmed);

/* --- For lock_codec.c ------------------------------------------------------------------------- */

/* Returns: the resource of a name, or NULL when it is not in the table. */
struct resource *lock__find_resource(const struct lock_table *table, const struct resource_name *name);
/*
 * Makes a hold with the serialized fields of `as`.
 * Requires: `as` has a mode or locks below.
 * Returns: false when the owner already has a hold on the resource.
 */
bool lock__restore_hold(struct lock_table *table, struct lock_owner *owner, struct resource *resource,
                        const struct lock_hold *as);
/* Makes a waiting request that watches nothing yet. Owns: the caller owns the request. */
struct lock_request *lock__restore_request(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *specs, size_t count, uint64_t arrival, bool upgrade);

/* --- lock_token.c ----------------------------------------------------------------------------- */

/* Sets the token of a hold and files the hold under it; TL_TS_NONE removes both. */
void lock__token_set(struct lock_table *table, struct lock_hold *hold, tl_ts token);
/* Rehashes the tokens after bucket_count has changed from `old_count`. */
void lock__tokens_resize(struct lock_table *table, size_t old_count);

/*
 * Makes a granted request. Its locks are restored separately, as holds. For lock_codec.c.
 * Owns: the caller owns the request.
 */
struct lock_request *lock__restore_granted(struct lock_table *table, struct lock_owner *owner,
                                           const struct lock_spec *specs, size_t count, uint64_t arrival, bool upgrade,
                                           tl_ts token);

/* --- lock_queue.c ----------------------------------------------------------------------------- */

/*
 * Adds a request to the queues of all its resources, in the state waiting. It watches nothing yet.
 */
void lock__queue_enter(struct lock_request *request);
/* Removes a waiting request from all queues. Its state is the caller's to change. */
void lock__queue_leave(struct lock_request *request);
/*
 * Returns: the waiter before which a request belongs in a queue; NULL: at the end, which is the
 * usual case.
 */
struct treap_node *lock__queue_position(const struct lock_queue *queue, enum lock_bit bit,
                                        const struct lock_request *request);
/* Returns: whether two waiters are of the same owner. They are given by their `order_node`. */
bool lock__queue_same_owner(const struct treap_node *a, const struct treap_node *b);
/*
 * Has a restored request watch what blocks it. If nothing blocks it, it has to wait for a quota, and is
 * scheduled instead.
 */
void lock__queue_watch_restored(struct lock_request *request);
/*
 * Has a request that was just enqueued watch what blocks it. If nothing does, or grants are
 * suspended, it is scheduled instead.
 */
void lock__queue_arrive(struct lock_request *request);
/*
 * Reacts to a change of what an owner holds. Requests of the owner, its dependents and its session
 * may now have other edges: searches for cycles through them, and schedules those of the owner and
 * its dependents.
 */
void lock__queue_check_waits(struct lock_table *table, struct lock_owner *owner);
/*
 * Does the same after `request` was granted, if any request waits for one of its locks.
 * Requires: the request is granted.
 */
void lock__queue_check_granted(struct lock_request *request);
/* Schedules all requests that watch something which is about to go. */
void lock__queue_wake(struct lock_table *table, struct lock_request **watchers);
/*
 * Schedules a request to be evaluated by lock__queue_process_wakeups(). Requires: it watches
 * nothing.
 */
void lock__queue_schedule(struct lock_request *request);
/*
 * Evaluates the scheduled requests, in queue order, and grants those that nothing blocks
 * (PostgreSQL: ProcLockWakeup). Does nothing while grants are suspended.
 */
void lock__queue_process_wakeups(struct lock_table *table);

/* --- lock_watch.c ----------------------------------------------------------------------------- */

/*
 * Returns: whether a waiting request is blocked by a hold of `owner` or of `session` (each may be
 * NULL). Then it does not block these owners, since it cannot be granted before they release.
 */
bool lock__waits_for(const struct lock_request *request, const struct lock_owner *owner,
                     const struct lock_owner *session);
/*
 * Returns: whether a request blocks one of `owner` that it precedes, provided that their bits
 * conflict.
 */
static inline bool lock__blocks(const struct lock_owner *owner, const struct lock_request *ahead)
{
    return !lock__ignores(owner, ahead->owner) && !lock__waits_for(ahead, owner, owner->session);
}
/* Returns: whether anything blocks a request, which may be new. */
bool lock__watch_is_blocked(const struct lock_request *request);
/*
 * Has a waiting request watch something that blocks it. Returns: false: nothing blocks it.
 * Requires: it watches nothing.
 */
bool lock__watch_begin(struct lock_request *request) TL_MUST_USE;
/* Has a request watch nothing. If it leads a group, it still does. */
void lock__watch_end(struct lock_request *request);
/* Has a request that leaves its queues watch nothing. The next one of a group that it leads is scheduled. */
void lock__watch_leave(struct lock_request *request);
/*
 * Has a request that watches `waiter`, which is about to leave its list, watch the nearest one before it that blocks
 * it, too. Returns: false: no other one does.
 */
bool lock__watch_before(struct lock_request *request, const struct lock_waiter *waiter) TL_MUST_USE;
/* Checks invariants 5 and 10 for a waiting request. Visits all that wait where it is blocked. */
void lock__watch_check(const struct lock_request *request);

/* --- lock_cycle.c ----------------------------------------------------------------------------- */

/*
 * The work that may be spent on the cycles of one request after the first search; about ten
 * milliseconds. One search can exceed it. README-locks.md, "Deadlock".
 */
#define LOCK_CYCLE_WORK_MAX UINT64_C(100000)

/*
 * Searches for cycles through waiting requests, in the given order. For each cycle one request
 * becomes a victim, in table->victims, or is requeued. Reorders the array. While grants are
 * suspended the requests become suspects instead.
 */
void lock__cycle_break(struct lock_table *table, struct lock_request **requests, size_t count);
/* Searches through all suspects, in queue order. Requires: grants are not suspended. */
void lock__cycle_break_suspects(struct lock_table *table);

#endif
