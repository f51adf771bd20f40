/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locks: who holds what, who waits for what. README-locks.md has the model, the rules and the invariants.
 *
 * Plain data: it knows no time (a deadline is its caller's, who frees the request), no store and no commands.
 * What a call causes beyond its own result (requests granted, requests ended by a deadlock) is queued in the table,
 * in order, and fetched by lock_table_next_granted() and lock_table_next_victim().
 */
#ifndef TL_CORE_LOCK_H
#define TL_CORE_LOCK_H

#include "base/heap.h"
#include "base/types.h"
#include "core/locks/resource.h"
#include "core/step/command.h"

struct lock_request;

/* Who holds and waits. A member of its session, transaction or write. */
struct lock_owner {
    struct lock_owner *session; /* whose locks it passes; NULL: none */
    uint64_t number;            /* unique; rises */
    tl_ts age;                  /* the larger, the younger, and then by number: when it began, or its first try did */
    struct list holds;          /* struct lock_hold by `of_owner`, oldest first */
    struct list requests;       /* its waiting requests, by `of_owner` */
    struct list dependent_requests;  /* those of owners whose session it is, by `of_session` */
    size_t hold_count;          /* holds: its locks, and each resource above them once */
    size_t lock_count;          /* holds with a mode that are not aside */
    size_t auxiliary_count;         /* those that are */
    size_t dependent_count;          /* owners whose session it is */
    size_t awaited_count;       /* holds that requests wait for: lock_hold.awaited */
    uint64_t search_epoch;      /* of the last search for circles that reached requests by it, ... */
    uint8_t followed;           /* ... and which lists of them: lock_cycle.c */
    bool autocommit;              /* a write of its own: sent to the end of the queue rather than ended */
    bool cleanup;                 /* what an ended session left: stands ahead of all, gives way to nobody; set at once */
    void *user;
};

/* What one owner has on one resource. */
struct lock_hold {
    struct lock_owner *owner;
    struct resource *resource;
    struct lock_hold *chain;       /* next in the table's bucket, ... */
    struct lock_hold *token_chain; /* ... and in that of its token */
    struct list of_resource;
    struct list of_owner;
    struct treap_node by_bits; /* in resource->held_by; its set is `bits`: who stands against something is found so */
    struct lock_request *watchers; /* who waits for it to go */
    uint64_t number;               /* of the lock, unique; 0 without a mode */
    tl_ts since;                   /* of the lock's first grant */
    tl_ts token;                   /* of its last one that changed it; TL_TS_NONE without a mode: lock__token_set() */
    tl_ts recorded_from;               /* since when it has had past_mode, ... */
    uint8_t recorded_mode; /* ... for who tells what was (owners/lock_history.h); LOCK_NONE: it is as it was loaded */
    uint32_t below[3]; /* the owner's locks below: S, U, X; invariant 2 */
    uint8_t mode;      /* enum lock_mode; LOCK_NONE: marks only */
    uint8_t bits;      /* set of enum lock_bit */
    bool auxiliary;        /* a lock that goes with others: it is counted nowhere */
    bool awaited;      /* a request waits at its resource for a bit that conflicts with its bits; invariant 3 */
};

enum lock_state { LOCK_STATE_NEW, LOCK_STATE_WAITING, LOCK_STATE_GRANTED, LOCK_STATE_DEADLOCKED, LOCK_STATE_COUNT };

/*
 * What is asked for. With `within`: a place for something in `on` which is not there yet, only marks, no lock. With `aside`: it
 * goes with another that is asked for, such as the name by which that was found.
 */
struct lock_spec {
    struct resource_name on;
    enum lock_mode mode;
    bool insert_intention;
    bool auxiliary;
};

/* One step of a circle: who waits for whom, over what. */
struct wait_edge {
    const struct lock_request *request;
    const struct lock_owner *holder; /* of the lock, or who stands ahead */
    const struct resource *resource;
    enum lock_bit bit; /* what `request` wants there */
    bool soft;       /* `holder` does not hold it but waits ahead */
};

struct lock_hooks {
    /*
     * A circle was found: `victim` will end, or with `requeued` goes to the end of the queue. Everything named is as it
     * was when the circle closed.
     */
    void (*deadlock)(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                     bool requeued);
    /* A lock with a number came, changed or goes; its past_mode is still what it was before. */
    void (*changed)(void *context, const struct lock_hold *hold, bool gone);
    void *context;
};

struct lock_table {
    struct resource_table resources;
    struct lock_hold **buckets;
    struct lock_hold **tokens; /* as many buckets: lock_token.c */
    size_t bucket_count;
    size_t hold_count;
    size_t lock_count;
    size_t waiting_count;
    size_t held[LOCK_MODE_COUNT]; /* locks by mode, and ... */
    size_t requested
        [LOCK_MODE_COUNT]; /* ... those that requests wait for; without what is aside, and places. For people to look at */
    uint64_t last_owner;
    uint64_t last_arrival;
    uint64_t last_lock;
    tl_ts ts;
    uint64_t token_count; /* grants since lock_table_set_ts(), each with a token of its own (invariant 7) */
    struct heap wake;     /* waiting requests that lost what they watched; empty between calls, unless withheld */
    struct heap ready_cleanup;     /* the same of what ended sessions left; its first is free between calls */
    uint64_t work; /* work done, ever (core/step/work.h), as far as it follows from the state: lock_table_work() */
    size_t cleanup_quota; /* how many of those may still be granted: lock_table_set_cleanup_quota() */
    unsigned grants_suspended; /* lock_table_suspend_grants() without lock_table_resume_grants() */
    struct list granted;
    struct list victims;
    struct lock_hooks hooks;
};

void lock_table_init(struct lock_table *table, const struct lock_hooks *hooks);
/* Requires: no owner holds or awaits anything. */
void lock_table_deinit(struct lock_table *table);
/* Sets the timestamp of grants. Requires: it is above the one before and above lock_table_last_ts(), or the one before. */
void lock_table_set_ts(struct lock_table *table, tl_ts ts);
/* Returns: the newest timestamp in use, which is that of lock_table_set_ts() or the last token given since. */
static inline tl_ts lock_table_last_ts(const struct lock_table *table)
{
    return table->token_count > 1 ? table->ts + table->token_count - 1 : table->ts;
}

/*
 * Returns: the work done, ever, with the turns that no state tells of: how long chains of hashes are differs from process to process. What is decided by
 * work goes by `walked` alone.
 */
static inline uint64_t lock_table_work(const struct lock_table *table)
{
    return table->work + table->resources.lookups;
}

/* Returns: whether nothing is held or awaited, so that a write need not look. */
static inline bool lock_table_is_idle(const struct lock_table *table)
{
    return table->hold_count + table->waiting_count == 0;
}

void lock_owner_init(struct lock_table *table, struct lock_owner *owner, struct lock_owner *session, void *user);
/* Requires: it holds nothing and no request of it is left. */
void lock_owner_deinit(struct lock_owner *owner);
/* It belongs to no session any more. Requires: no request of it waits. */
void lock_owner_leave_session(struct lock_owner *owner);

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/*
 * Makes a request for a set of wants.
 * Requires: at least one want. Owns: the caller; lock_request_free(), in every state; a waiting one is withdrawn.
 */
struct lock_request *lock_request_new(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *wants,
                                      size_t want_count, void *user);
void lock_request_free(struct lock_request *request);
TL_DEFINE_FREEP(struct lock_request, lock_request_free)

/*
 * Asks. Requires: the request is new, or came back with LOCK_CONFLICT.
 * Returns: LOCK_GRANTED; LOCK_WAITS; LOCK_CONFLICT, only when it must not `wait`; LOCK_DEADLOCK, told to the hook.
 */
enum { LOCK_GRANTED = 0, LOCK_WAITS = 1, LOCK_CONFLICT = 2, LOCK_DEADLOCK = 3 };
int lock_request_start(struct lock_request *request, bool wait) TL_MUST_USE;

/* Gives back the locks of a granted request that its owner has had since `since` only. */
void lock_request_undo(struct lock_request *request, tl_ts since);
/* Returns: how many wants it has, names left out. */
size_t lock_request_spec_count(const struct lock_request *request);

enum lock_state lock_request_state(const struct lock_request *request);
void *lock_request_user(const struct lock_request *request);
struct lock_owner *lock_request_owner(const struct lock_request *request);
/* Requires: granted. */
tl_ts lock_request_token(const struct lock_request *request);
bool lock_request_is_upgrade(const struct lock_request *request);
/* Returns: how many requests stand ahead of a waiting one on the resource where most do. */
size_t lock_request_queue_position(const struct lock_request *request);
/* The resource and mode of one of its wants; false past the last. Marks for a place, and what is aside, are left out. */
bool lock_request_spec(const struct lock_request *request, size_t *position, const struct resource **ret_resource,
                       enum lock_mode *ret_mode);

/* What stands against a request that is not granted. */
struct lock_conflict {
    const struct lock_owner *owner;
    const struct resource *resource;
    enum lock_mode mode;
    bool waiting; /* it waits ahead; `hold` is NULL */
    const struct lock_hold *hold;
};
/*
 * Takes a number of looks that follows from `max`, however much the holders have locked. Of one that blocks by locks below names the first, as a rule; where
 * it has very many others, the resource above it, with the mode of the locks below.
 * Returns: how many were filled in, holders first; at most `max`.
 */
size_t lock_request_conflicts(struct lock_request *request, struct lock_conflict *ret_conflicts, size_t max);

/* Each returns NULL when there is no more. The request is the caller's again. */
struct lock_request *lock_table_next_granted(struct lock_table *table);
struct lock_request *lock_table_next_victim(struct lock_table *table);

/* --- Releasing ---------------------------------------------------------------------------------------------------- */

/* Releases one lock. Returns: false when the owner does not hold it. */
bool lock_release(struct lock_table *table, struct lock_owner *owner, const struct resource_name *name);
/* Releases all. Returns: how many locks they were, those aside not counted. */
size_t lock_release_all(struct lock_table *table, struct lock_owner *owner);

/* --- One moment --------------------------------------------------------------------------------------------------- */

/*
 * What is given back, taken back and moved between the two is one moment: nobody who waits is granted anything, or ended by a
 * deadlock, before the last lock_table_resume_grants(), and then by how things stand. They may lie within each other.
 */
void lock_table_suspend_grants(struct lock_table *table);
void lock_table_resume_grants(struct lock_table *table);

/*
 * What ended sessions left (lock_owner.first) may be much, and all be free at once: from here on at most `max` of it is granted, and
 * what is free beyond that goes on waiting, ahead of all others as before.
 */
void lock_table_set_cleanup_quota(struct lock_table *table, size_t max);
/* Returns: whether something of it waits that is free. */
bool lock_table_has_ready_cleanup(const struct lock_table *table);

/* --- Beside requests ---------------------------------------------------------------------------------------------- */

/*
 * Looks whether a want could be granted at once to an owner of its own that belongs to `session` (NULL: to none) and
 * holds nothing. The short path of writes; makes nothing.
 */
bool lock_table_can_grant(struct lock_table *table, struct lock_owner *session, const struct lock_spec *want);

/*
 * The same, whoever waits but what ended sessions left (lock_owner.first): whether nobody else *holds* what stands against it. For
 * the cleanup at the end of a session, which goes before all who wait (README-locks.md, "Sessions").
 */
bool lock_table_can_grant_ignoring_waiters(struct lock_table *table, struct lock_owner *session, const struct lock_spec *want);

/* Returns: whether nothing that is held or awaited can stand against a write of its own in this index, wherever it lies. */
bool lock_table_index_is_unlocked(const struct lock_table *table, struct slice index);

/* Returns: whether an owner holds a lock on a want's resource or above, at least as strong as its mode. */
bool lock_table_covers(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *want);

/* Puts a lock back as it was before a restart. */
void lock_table_restore(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *want,
                        uint64_t number, tl_ts since, tl_ts token);

/* Returns: whether somebody else than an owner (NULL: nobody) and a session (the same) holds what a want for a name conflicts with. */
bool lock_table_has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                             const struct lock_owner *session, const struct lock_spec *want);
/* Returns: whether an owner holds a lock on a want's very resource, at least as strong as its mode. */
bool lock_table_holds(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *want);
/* Returns: whether an owner has anything, a lock or a mark, in an index or on it. */
bool lock_table_has_holds_in_index(const struct lock_table *table, const struct lock_owner *owner, struct slice index);
/* The same of whoever: whether directories of an index are locked or awaited. */
bool lock_table_has_directories(const struct lock_table *table, struct slice index);

/* Returns: whether a document is in the table and lies where `place` says. */
bool lock_table_document_is_at(const struct lock_table *table, const struct resource_name *place);

/* Returns: whether nobody else has or awaits a lock on the resource of a hold. */
bool lock_hold_is_sole(const struct lock_hold *hold);

/* Tells that a document now lies elsewhere: locks on it and waits for it go along. */
void lock_table_move_document(struct lock_table *table, const struct resource_name *document, struct slice path);

/*
 * Returns: whether `token` is that of a lock that is held now, on the resource or above; *ret_owner (may be NULL) is
 * whose.
 */
bool lock_table_find_token(const struct lock_table *table, tl_ts token, const struct resource_name *name,
                      struct lock_owner **ret_owner);

/* --- Looking around ----------------------------------------------------------------------------------------------- */

/* Returns: the resources that are locked or awaited as such, in order of the tree, in `arena`. */
const struct resource **lock_table_resources(const struct lock_table *table, struct arena *arena, size_t *ret_count);
/*
 * Returns: the names of the documents of one index that are locked or awaited, in the same order, in `arena`: a resource may go when
 * another one moves, its name stays. Of the others' locks it takes a look at each, some 30 ns, and no more.
 */
const struct resource_name *lock_table_documents(const struct lock_table *table, struct slice index,
                                                 struct arena *arena, size_t *ret_count);
/* The same of documents that lie at one of these paths, or below: others are passed over at some 30 ns each. */
const struct resource_name *lock_table_documents_below(const struct lock_table *table, struct slice index,
                                                       const struct slice *paths, size_t path_count,
                                                       struct arena *arena, size_t *ret_count);
/* Whether a resource is locked or awaited as such, not only for what lies below. */
bool lock_resource_is_in_use(const struct resource *resource);
/* Returns: how many places there are in its queue, at most two of one request's. */
size_t lock_resource_waiter_count(const struct resource *resource);

/* Walks over the requests that wait to lock this very resource, as they stand. Requires: nothing changes meanwhile. */
struct lock_waiter_iter {
    const struct lock_queue *queue;        /* NULL: nobody waits */
    const struct list *at[LOCK_BIT_COUNT]; /* of its own bits: the next in each list */
};
struct lock_waiter_iter lock_waiter_iter(const struct resource *resource);
/* Gives the mode that is wanted, too. Returns: false at the end. */
bool lock_waiter_iter_next(struct lock_waiter_iter *waiters, const struct lock_request **ret_request, enum lock_mode *ret_mode);

/* Checks invariants 2, 3, 5, 8 and aborts where one fails; for tests. Takes time in proportion to the table. */
void lock_table_check(struct lock_table *table);

const char *lock_mode_name(enum lock_mode mode);

#endif
