/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock table: the locks that owners hold and the requests that wait for them. README-locks.md
 * has the model, the rules and the invariants.
 *
 * The table is a plain data structure. It has no clock: a caller whose request has passed its
 * deadline frees the request. It knows no store and no commands. Besides its own result, a call can
 * grant waiting requests and choose deadlock victims. The table queues these events in order, for
 * lock_table_next_granted() and lock_table_next_victim().
 */
#ifndef TL_CORE_LOCK_H
#define TL_CORE_LOCK_H

#include "base/heap.h"
#include "base/magic.h"
#include "base/types.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

struct lock_request;
struct lock_unconfirmed;

/* Holds locks and makes requests. Embedded in a session, a transaction or an autocommit write. */
struct lock_owner {
    struct lock_owner *session; /* it belongs to this one and ignores its locks; NULL: to none */
    uint64_t number;            /* unique, ascending */
    tl_ts age;                  /* of its beginning, or of its first try; ties: by number */
    struct list holds;          /* struct lock_hold by `of_owner`, oldest first */
    struct list chunks;         /* struct lock_chunk by `of_owner`: parts of `holds`, in its order */
    struct list requests;       /* its waiting requests, by `of_owner` */
    struct list dependent_requests; /* those of the owners that belong to it, by `of_session` */
    size_t hold_count;              /* its locks and all their ancestors, each resource once */
    size_t lock_count;              /* holds with a mode, without auxiliary locks */
    size_t auxiliary_count;         /* auxiliary locks */
    size_t dependent_count;         /* owners that belong to it */
    size_t awaited_count;           /* holds whose `awaited` is set */
    uint64_t search_epoch;          /* the last deadlock search that reached its requests */
    uint64_t checked_epoch;         /* the last suspension in which its requests became suspects */
    size_t index;                   /* scratch of lock_codec.c and lock_move.c: in an array of owners */
    uint8_t followed;               /* lists of requests that this search has followed: lock_cycle.c */
    bool autocommit;                /* an autocommit write: a victim of this kind may be requeued */
    bool cleanup;                   /* of a cleanup request: highest priority, never a victim */
    void *user;
};

/*
 * Everything one owner has on one resource: a lock, intention locks, or both (PostgreSQL:
 * PROCLOCK).
 */
struct lock_hold {
    struct lock_owner *owner;
    struct resource *resource;
    struct lock_chunk *chunk;
    struct lock_hold *chain;       /* next in the hash bucket of the table */
    struct lock_hold *token_chain; /* next in the hash bucket of its token */
    struct list of_resource;
    struct list of_owner;
    struct treap_node by_bits;     /* in resource->held_by; its set is `bits` */
    struct lock_request *watchers; /* waiting requests that watch this hold */
    struct lock_unconfirmed *unconfirmed; /* its unconfirmed grants; NULL: none; invariant 9 */
    uint64_t order;                       /* ascending in resource->holds; not part of the state */
    uint64_t number;               /* unique number of the lock; 0 without a mode */
    tl_ts since;                   /* first grant of the lock */
    tl_ts token;                   /* of the last grant that changed it; TL_TS_NONE: no mode */
    tl_ts recorded_from;           /* since when it has had its recorded mode */
    uint8_t recorded_mode;         /* as recorded in wait/lock_history.h; LOCK_NONE: as loaded */
    uint32_t below[3];             /* the owner's locks on descendants: S, U, X; invariant 2 */
    uint8_t mode;                  /* enum lock_mode; LOCK_NONE: only intention locks */
    uint8_t bits;      /* set of enum lock_bit */
    bool auxiliary;    /* an auxiliary lock: not counted, not listed */
    bool awaited;      /* a conflicting request waits at its resource; invariant 3 */
};

/*
 * Some consecutive holds of an owner, which are saved together: core/README.md, "Pieces". Which
 * holds share a chunk is the host's own.
 */
struct lock_chunk {
    struct lock_owner *owner;
    struct list of_owner;
    struct list changed;     /* in table->changed_chunks; not linked: its piece has these holds */
    struct lock_hold *first; /* the others follow in owner->holds */
    uint32_t count;          /* holds, at least one */
    uint32_t added;          /* holds ever added, at most LOCK_CHUNK_HOLDS */
    uint32_t saved_len;      /* of its piece, and the CRC32C */
    uint32_t saved_crc;
    uint64_t piece; /* number of its piece; 0: none was written yet */
};

enum { LOCK_CHUNK_HOLDS = 256 };

/*
 * The state of a request; lock.c has the table of transitions.
 *
 *     new ─┬────────────▶ granted       a waiting request may be requeued: it stays waiting
 *          └─▶ waiting ─┬─▶ granted
 *                       └─▶ deadlocked
 */
enum lock_state { LOCK_STATE_NEW, LOCK_STATE_WAITING, LOCK_STATE_GRANTED, LOCK_STATE_DEADLOCKED, LOCK_STATE_COUNT };

/* A resource and the mode in which to lock it (PostgreSQL's LOCKTAG and LOCKMODE). */
struct lock_spec {
    struct resource_name on;
    enum lock_mode mode;
    /* an insert intention: only intention locks, on `on` and its ancestors */
    bool insert_intention;
    bool auxiliary; /* an auxiliary lock, such as one on the alias that a request used */
};

/* An edge of the wait-for graph. */
struct wait_edge {
    const struct lock_request *request; /* waits */
    const struct lock_owner *holder;    /* of the lock, or, of a soft edge, of a preceding request */
    const struct resource *resource;
    enum lock_bit bit; /* that `request` waits for */
    bool soft;         /* a soft edge: `holder` only precedes `request` in the queue */
};

struct lock_hooks {
    /*
     * Called when a deadlock is found, before `victim` ends, or, if `requeued`, moves to the end of
     * the queue. The edges form the cycle. Queues and holds are as they were when it closed.
     */
    void (*deadlock)(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                     bool requeued);
    /*
     * Called after a lock was granted or changed, and before it is released (`gone`). Its recorded
     * mode is still the earlier one.
     */
    void (*changed)(void *context, const struct lock_hold *hold, bool gone);
    /* Called when the last hold of a chunk that has a piece is gone. */
    void (*piece_unused)(void *context, uint64_t piece);
    /* Called when a document has moved that a waiting request is to lock. */
    void (*request_moved)(void *context, const struct lock_request *request);
    void *context;
};

#define LOCK_TABLE_MAGIC MAGIC('L', 'o', 'c', 'k')

struct lock_table {
    uint32_t magic; /* LOCK_TABLE_MAGIC */
    struct resource_table resources;
    struct lock_hold **buckets;
    struct lock_hold **tokens; /* hash table of the same size: lock_token.c */
    size_t bucket_count;
    size_t hold_count;
    size_t lock_count;
    size_t waiting_count;
    /*
     * Statistics: locks held and locks requested, by mode; without auxiliary locks and insert
     * intentions.
     */
    size_t held[LOCK_MODE_COUNT];
    size_t requested[LOCK_MODE_COUNT];
    uint64_t last_owner;
    uint64_t last_arrival;
    uint64_t last_lock;
    uint64_t last_order;        /* of a hold; not part of the state */
    uint32_t chunk_holds;       /* added to a chunk at most; LOCK_CHUNK_HOLDS, fewer in simulators */
    struct list changed_chunks; /* struct lock_chunk by `changed` */
    size_t changed_chunk_count;
    tl_ts ts;
    uint64_t token_count; /* tokens given since lock_table_set_ts(), one a grant (invariant 7) */
    /*
     * Waiting requests that lost the obstacle they watched. Between calls it has some if grants are
     * suspended, or if the quota of grants is used up. Which ones differs between replicas: a
     * loaded table has only those that nothing blocks. So nothing but grants depends on it.
     */
    struct heap wake;
    /* The same kind of heap for cleanup requests. Between calls its first request is grantable. */
    struct heap ready_cleanup;
    uint64_t work;        /* work since lock_table_init(), as far as it follows from the state */
    size_t cleanup_quota; /* cleanup requests that may still be granted */
    size_t grant_quota;   /* cost of other waiting requests that may still be granted */
    uint64_t granted_work;     /* of granting waiting requests but cleanup, since lock_table_init() */
    uint64_t granted_work_max; /* its value beyond which the step grants no more of them */
    bool precedes_undo;   /* the step's command is of a version before 8: its grants are not unconfirmed */
    bool grants_by_specs; /* the step's command is of a version before 12 */
    /* calls of lock_table_suspend_grants() without their _resume_grants() */
    unsigned grants_suspended;
    uint64_t suspensions; /* since lock_table_init(), nested ones not counted */
    /* Waiting requests that may close a cycle, if grants are suspended. Empty between calls. */
    struct list suspects;
    struct list granted;
    struct list victims;
    struct lock_hooks hooks;
};

/* Makes an empty table. `hooks` may be NULL and is copied. */
void lock_table_init(struct lock_table *table, const struct lock_hooks *hooks);
/* Frees the table. Requires: no hold and no waiting request is left. */
void lock_table_deinit(struct lock_table *table);
/*
 * Sets the timestamp of the grants that follow.
 * Requires: `ts` is the current timestamp, or above lock_table_last_ts().
 */
void lock_table_set_ts(struct lock_table *table, tl_ts ts);
/*
 * Returns: the newest timestamp in use: the last token given, or the timestamp that was set if that
 * is newer.
 */
static inline tl_ts lock_table_last_ts(const struct lock_table *table)
{
    return table->token_count > 1 ? table->ts + table->token_count - 1 : table->ts;
}

/*
 * Returns: the work done since the table was made, including lookups. The number of lookups depends
 * on the lengths of hash chains, which differ from process to process; so a decision must use
 * `work` alone.
 */
static inline uint64_t lock_table_work(const struct lock_table *table)
{
    return table->work + table->resources.lookups;
}

/*
 * Returns: whether nothing is held and nothing requested, so that a write need not check for locks.
 */
static inline bool lock_table_is_idle(const struct lock_table *table)
{
    return table->hold_count + table->waiting_count == 0;
}

/* Initializes an owner; its age is the table's timestamp. `session`: or NULL. */
void lock_owner_init(struct lock_table *table, struct lock_owner *owner, struct lock_owner *session, void *user);
/*
 * Detaches an owner from its session.
 * Requires: it has no hold and no waiting request; no owner belongs to it any more.
 */
void lock_owner_deinit(struct lock_owner *owner);
/* Detaches an owner from its session, if it has one. Requires: no request of it waits. */
void lock_owner_leave_session(struct lock_owner *owner);

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/*
 * Makes a request for a set of locks, to be granted whole or not at all. `specs` is copied.
 * Requires: `spec_count` > 0.
 * Owns: the caller owns the request, in every state.
 */
struct lock_request *lock_request_new(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *specs,
                                      size_t spec_count, void *user);
/*
 * Frees a request, or NULL. A waiting one is withdrawn; the locks of a granted one stay with the
 * owner, and are confirmed: no lock_request_undo() takes them away.
 */
void lock_request_free(struct lock_request *request);
TL_DEFINE_FREEP(struct lock_request, lock_request_free)

/*
 * Acquires the locks of a request, or enqueues it.
 * Requires: the request is new, or was started before and returned LOCK_CONFLICT.
 * Returns: LOCK_GRANTED; LOCK_WAITS; LOCK_CONFLICT: it is blocked and `wait` is false;
 * LOCK_DEADLOCK: it was enqueued and is the victim, as the hook has reported.
 */
enum { LOCK_GRANTED = 0, LOCK_WAITS = 1, LOCK_CONFLICT = 2, LOCK_DEADLOCK = 3 };
int lock_request_start(struct lock_request *request, bool wait) TL_MUST_USE;

/*
 * Undoes the grant of a request that has waited: each of its locks gets the mode and the token that
 * it would have without this grant, or is released. Locks that were released since stay so. Then
 * grants the requests that nothing blocks any more. README-locks.md, "Undone requests".
 * Requires: the request is granted, not by lock_request_start() at once. `since`: the timestamp of
 * the grant; only for one of a version before 8, of which each lock acquired then is released, and
 * a lock that was held before keeps its mode.
 */
void lock_request_undo(struct lock_request *request, tl_ts since);
/* Returns: how many locks it asks for, without locks on names. */
size_t lock_request_spec_count(const struct lock_request *request);
/*
 * Returns: in how many queues it waits: one for each resource that it locks, or on which it sets an intention lock, in
 * one mode. Follows from the state. Requires: it waits.
 */
size_t lock_request_place_count(const struct lock_request *request);

enum lock_state lock_request_state(const struct lock_request *request);
void *lock_request_user(const struct lock_request *request);
struct lock_owner *lock_request_owner(const struct lock_request *request);
/* Returns: the fencing token of its grant. Requires: it was granted. */
tl_ts lock_request_token(const struct lock_request *request);
/*
 * Returns: whether its owner holds all locks that it was granted, by its token: none was released since, or
 * got another token. Names and auxiliary locks do not count. Requires: it was granted.
 */
bool lock_request_is_in_force(const struct lock_request *request);
/*
 * Returns: whether it is an upgrade, and so precedes other requests (README-locks.md, "Requests").
 */
bool lock_request_is_upgrade(const struct lock_request *request);
/* Returns: how many conflicting requests precede a waiting one, at the resource with the most. */
size_t lock_request_queue_position(const struct lock_request *request);
/*
 * Reads the next lock that a request asks for, without insert intentions and auxiliary locks.
 * *position is 0 at first. Returns: false after the last.
 */
bool lock_request_spec(const struct lock_request *request, size_t *position, const struct resource **ret_resource,
                       enum lock_mode *ret_mode);

/* Something that blocks a request. */
struct lock_conflict {
    const struct lock_owner *owner;
    const struct resource *resource;
    enum lock_mode mode;
    bool waiting; /* a request that precedes in the queue; then `hold` is NULL */
    const struct lock_hold *hold;
};
/*
 * Finds what blocks a request that is not granted: first holders, then preceding requests. The work
 * is proportional to `max`, however many locks there are. Of a holder that blocks by locks on
 * descendants, one of these is returned; if the owner has so many other locks that none is found in
 * time, the ancestor, with the strongest mode of the locks below it.
 * Returns: the number of conflicts filled in, at most `max`.
 */
size_t lock_request_conflicts(struct lock_request *request, struct lock_conflict *ret_conflicts, size_t max);
/* As above. *ret_looks: the locks and ancestors that were examined, which follows from the state. */
size_t lock_request_conflicts_counted(struct lock_request *request, struct lock_conflict *ret_conflicts, size_t max,
                                      uint64_t *ret_looks);

/*
 * Removes the next event: a request granted after a wait, a deadlock victim. Returns: NULL at the
 * end.
 */
struct lock_request *lock_table_next_granted(struct lock_table *table);
struct lock_request *lock_table_next_victim(struct lock_table *table);

/* --- Releasing ---------------------------------------------------------------------------------------------------- */

/* Releases one lock. Returns: false when the owner does not hold it. */
bool lock_release(struct lock_table *table, struct lock_owner *owner, const struct resource_name *name);
/*
 * Releases all locks of an owner. The memory of LOCK_RECLAIMED_MIN locks and intention locks or more is left to the
 * reclaimer (base/reclaim.h), since to free it takes half of the time. Returns: how many there were, without
 * auxiliary locks.
 */
size_t lock_release_all(struct lock_table *table, struct lock_owner *owner);
enum { LOCK_RECLAIMED_MIN = 1000 };

/*
 * For a loop over the holds of an owner that has come to `link`: prefetches the hold after the next one, and the
 * resource of the next one, since both are scattered.
 */
static inline void lock_holds_prefetch(const struct lock_owner *owner, const struct list *link)
{
    const struct list *next = link->next;
    if (next == &owner->holds)
        return;
    const struct lock_hold *hold = list_entry(next, struct lock_hold, of_owner);
    __builtin_prefetch(&hold->resource->holds);
    __builtin_prefetch(&hold->resource->kind);
    if (next->next == &owner->holds)
        return;
    hold = list_entry(next->next, struct lock_hold, of_owner);
    __builtin_prefetch(&hold->of_owner);
    __builtin_prefetch(&hold->resource);
    __builtin_prefetch(&hold->mode);
}

/* --- Atomic changes ----------------------------------------------------------------------------------------------- */

/*
 * Makes all releases, withdrawals and moves between the two calls one atomic change. Until the last
 * lock_table_resume_grants() no waiting request is granted and no deadlock victim is chosen; then
 * the queues are evaluated again. Pairs of calls nest.
 */
void lock_table_suspend_grants(struct lock_table *table);
/* Requires: a matching lock_table_suspend_grants(). */
void lock_table_resume_grants(struct lock_table *table);

/*
 * Allows `max` more cleanup requests (lock_owner.cleanup) to be granted, since very many can become
 * grantable at once. The remaining grantable ones continue to wait; they still precede all other
 * requests.
 */
void lock_table_set_cleanup_quota(struct lock_table *table, size_t max);
/* Returns: whether a cleanup request waits only because of the quota. */
bool lock_table_has_ready_cleanup(const struct lock_table *table);
/*
 * Begins a step in which waiting requests of at most `max` cost may be granted, and the last one of
 * them whatever it costs: one for each request, one for LOCK_GRANT_PLACES of the resources that it
 * locks or sets an intention lock on (with `grants_by_specs`, for LOCK_GRANT_SPECS of its locks), and one
 * for LOCK_GRANT_PASSED requests that wait where it does. The remaining ones continue to wait, in
 * their order; those that follow in a queue do not overtake them. Unlimited in a new table.
 */
void lock_table_set_grant_quota(struct lock_table *table, size_t max);
enum { LOCK_GRANT_PLACES = 8, LOCK_GRANT_SPECS = 50, LOCK_GRANT_PASSED = 400 };
/*
 * Allows grants of at most `work` units from now on, and the last one whatever it takes; not more than the limits of
 * the step that were set before. The quota is used up then. Unlimited in a new table.
 */
void lock_table_limit_grants(struct lock_table *table, uint64_t work);
/*
 * Work of a grant, with the end of what waits for it; of each place that the request has in queues. Requests that it
 * may pass, for a unit.
 */
enum { LOCK_GRANT_WORK = 110, LOCK_GRANT_PLACE_WORK = 8, LOCK_GRANT_PASSED_WORK = 10 };
/* Returns: whether a request waits only because of that quota. */
bool lock_table_has_pending_grants(struct lock_table *table);
/* Grants what waits only because of the quota, as far as that allows now. */
void lock_table_continue_grants(struct lock_table *table);

/* --- Checks without a request ------------------------------------------------------------------------------------- */

/*
 * Returns: whether a lock could be granted at once to a new owner that belongs to `session` (NULL:
 * to none). The fast path of autocommit writes; changes nothing.
 */
bool lock_table_can_grant(struct lock_table *table, struct lock_owner *session, const struct lock_spec *spec);

/*
 * Returns: as lock_table_can_grant(), but of waiting requests only cleanup requests block. For the
 * cleanup at the end of a session, which precedes all others (README-locks.md, "Sessions").
 */
bool lock_table_can_grant_ignoring_waiters(struct lock_table *table, struct lock_owner *session,
                                           const struct lock_spec *spec);

/* Returns: whether nothing held or requested can block an autocommit write anywhere in an index. */
bool lock_table_index_is_unlocked(const struct lock_table *table, struct slice index);

/* Returns: whether `owner` (or NULL) holds at least this mode on the resource or an ancestor. */
bool lock_table_covers(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *spec);

/* Grants a lock as it was before a restart, with no check for conflicts. */
void lock_table_restore(struct lock_table *table, struct lock_owner *owner, const struct lock_spec *spec,
                        uint64_t number, tl_ts since, tl_ts token);

/*
 * Returns: whether an owner other than `owner` and `session` (each may be NULL) holds a lock that
 * conflicts with one on a name.
 * Requires: `spec` is a lock on a name, or on all names of a space.
 */
bool lock_table_has_conflicting_hold(const struct lock_table *table, const struct lock_owner *owner,
                                     const struct lock_owner *session, const struct lock_spec *spec);
/* Returns: whether an owner holds at least this mode on exactly this resource. */
bool lock_table_holds(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *spec);
/*
 * Returns: whether an owner holds at least this mode on a name, or on all names of a space, by a confirmed lock or by
 * a grant of the request that is marked: until it releases that, also if other requests are undone.
 */
bool lock_table_keeps_name(const struct lock_table *table, const struct lock_owner *owner,
                           const struct lock_spec *spec);
/* Marks the grants on names of a granted request, or ends that. One request is marked at a time, within one call. */
void lock_request_mark_names(struct lock_request *request, bool marked);
/* Returns: whether an owner has a lock or an intention lock on an index. */
bool lock_table_has_holds_in_index(const struct lock_table *table, const struct lock_owner *owner, struct slice index);
/* Returns: whether any owner holds or requests something at or below a directory of an index. */
bool lock_table_has_directories(const struct lock_table *table, struct slice index);

/* Returns: whether a document is in the table, in the directory that its name here says. */
bool lock_table_document_is_at(const struct lock_table *table, const struct resource_name *name);

/* Returns: whether no other owner holds or requests anything on the resource of a hold. */
bool lock_hold_is_sole(const struct lock_hold *hold);

/*
 * Moves a document to another directory; `path` with data NULL: directly into its index. Its locks
 * and the requests that wait for it move along. Does nothing when the document is not in the table.
 */
void lock_table_move_document(struct lock_table *table, const struct resource_name *document, struct slice path);
/*
 * Moves each document, in this order, to the directory that its name here says, with the effect of as many
 * lock_table_move_document(). The work is linear in the documents, and in the locks that the requests ask for which
 * wait for any of them.
 * Requires: grants are suspended.
 * Returns: the number of these locks.
 */
size_t lock_table_move_documents(struct lock_table *table, const struct resource_name *documents, size_t count);
/*
 * As lock_table_move_documents(), for the documents that are elsewhere: the others, and the requests that wait for
 * them alone, keep their order.
 * Requires: also: where a document is named twice, its paths are equal.
 */
size_t lock_table_relocate_documents(struct lock_table *table, const struct resource_name *documents, size_t count);

/*
 * Returns: whether `token` belongs to a lock that is held now, on the resource or an ancestor. Then
 * *ret_owner (may be NULL) is its owner.
 */
bool lock_table_find_token(const struct lock_table *table, tl_ts token, const struct resource_name *name,
                           struct lock_owner **ret_owner);

/* --- Saving in pieces --------------------------------------------------------------------------------------------- */

/* Returns: a chunk that its piece does not have as it is now, or NULL. */
struct lock_chunk *lock_table_changed_chunk(const struct lock_table *table);
/* Records that a piece has a chunk as it is now, with this length and CRC32C. */
void lock_chunk_saved(struct lock_table *table, struct lock_chunk *chunk, uint64_t piece, uint32_t len, uint32_t crc);

/* --- Inspection --------------------------------------------------------------------------------------------------- */

/* Returns: the resources that are themselves locked or requested, in tree order, in `arena`. */
const struct resource **lock_table_resources(const struct lock_table *table, struct arena *arena, size_t *ret_count);
/*
 * Returns: the names of an index's documents that are locked or requested, without their paths, in tree order, in
 * `arena`. They are names because a move of one document can free the resource of another. Only resources of the index
 * are examined.
 */
const struct resource_name *lock_table_documents(const struct lock_table *table, struct slice index,
                                                 struct arena *arena, size_t *ret_count);
/*
 * Returns: as lock_table_documents(), of documents at or below one of `paths`. Only resources there are examined. Those
 * that only `except` (may be NULL) holds, and to which no request refers, are left out: they end with its locks.
 */
const struct resource_name *lock_table_documents_below(const struct lock_table *table, struct slice index,
                                                       const struct slice *paths, size_t path_count,
                                                       const struct lock_owner *except, struct arena *arena,
                                                       size_t *ret_count);
/*
 * How much a lock on a document counts that moves in the table, with so many levels above it before or after the move,
 * whichever are more: each is visited, for each lock.
 */
#define LOCK_MOVE_COUNT(levels) (1 + (levels) / 16)
/*
 * Returns: how much the locks on documents of an index (`path` data NULL), or at or below a path, count if they move;
 * `most` + 1 or more: more than `most`. `levels`: those above a document at the path, before or after the move,
 * whichever are more. Documents that are only requested do not count.
 */
size_t lock_table_held_below(const struct lock_table *table, struct slice index, struct slice path, size_t levels,
                             size_t most);
/*
 * Returns: an array of *ret_count documents of an index that are locked, each once for each lock, one after the other,
 *          `most` at most, in no particular order. The names are valid as long as the documents are in the table.
 */
const struct resource_name *lock_table_held_documents(const struct lock_table *table, struct slice index, size_t most,
                                                      struct arena *arena, size_t *ret_count);
/* Returns: whether owners other than `owner` (NULL: any), and those that belong to it, have locked a document. */
bool lock_table_others_hold_documents(const struct lock_table *table, struct slice index,
                                      const struct lock_owner *owner);
/* Returns: whether a resource itself, and not only a descendant, is locked or requested. */
bool lock_resource_is_in_use(const struct resource *resource);
/* Returns: whether an owner other than `owner` has a lock on a resource, intention locks apart. */
bool lock_resource_is_locked_by_others(const struct resource *resource, const struct lock_owner *owner);
/* Returns: the number of waiters in its queue, one for each bit of each waiting request. */
size_t lock_resource_waiter_count(const struct resource *resource);

/*
 * Iterates over the requests that wait to lock a resource itself, in queue order.
 * Assumes: the table does not change meanwhile.
 */
struct lock_waiter_iter {
    const struct lock_queue *queue;        /* NULL: no request waits */
    const struct list *at[LOCK_BIT_COUNT]; /* next in the list of each of S, U, X */
};
struct lock_waiter_iter lock_waiter_iter(const struct resource *resource);
/* Returns: false at the end; else true, a request, and the strongest mode that it asks for. */
bool lock_waiter_iter_next(struct lock_waiter_iter *iter, const struct lock_request **ret_request,
                           enum lock_mode *ret_mode);

/*
 * Checks invariants 2, 3, 5 and 8, and aborts if one is violated. For tests: takes time linear in
 * the size of the table, and in the square of the number of waiting requests.
 */
void lock_table_check(struct lock_table *table);
/* Returns: an estimate of its time, in tens of nanoseconds. */
size_t lock_table_check_cost(const struct lock_table *table);

/* Returns: "none", "shared", "update" or "exclusive". */
const char *lock_mode_name(enum lock_mode mode);

#endif
