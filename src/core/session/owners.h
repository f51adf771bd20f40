/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: sessions, transactions, autocommit writes, and the commands that wait for locks.
 * README-locks.md describes their behaviour.
 *
 * All functions run in an open unit: its batch has the locks that sessions acquire or release, the
 * sessions, and the outcomes of transactions. A command may cause the lock table to grant other
 * requests or to choose deadlock victims; grants__settle() handles these at the end of each
 * unit at the latest.
 */
#ifndef TL_CORE_OWNERS_H
#define TL_CORE_OWNERS_H

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/deadline.h"
#include "core/owners/hosts.h"
#include "core/session/owner.h"
#include "core/session/session.h"
#include "core/wait/lock_history.h"
#include "core/wait/lock_event.h"
#include "core/session/save_chunk.h"
#include "core/session/save_pieces.h"

struct command;
struct core;
struct txn;
struct wait_ops;

/* A change of the number of ephemeral documents of a session. */
struct ephemeral_delta {
    struct slice session;
    uint32_t index;
    uint16_t type;
    int delta;
};

struct owners {
    struct core *core;
    struct lock_table locks;
    /* Returns: the callbacks of a command's row, NULL if it never waits; NULL: of deferred cleanup */
    const struct wait_ops *(*wait_ops_of)(const struct command *command);
    struct map sessions;     /* by id */
    struct map txns;         /* open ones, by id */
    struct list open_txns;   /* oldest first */
    struct map requests;     /* waits by request number of their command (u64be) */
    struct list waits;       /* in order of arrival */
    struct list cancelled;   /* waits that later steps end, in order of wait.cancel_number */
    uint64_t last_cancelled; /* highest cancel_number in `cancelled`; 0: it is empty */
    size_t kept_count;       /* waits that are kept (wait.kept) */
    struct map kept_writes;  /* named writes with a place (wait__has_place()), one by each ID and part */
    struct map named_writes; /* of the named writes that wait, the first by each ID and part: wait.of_name */
    struct list ready;       /* waits to resume or to answer, in order */
    size_t ready_count;
    uint64_t last_ready; /* highest ready_number in `ready`; 0: it is empty */
    uint64_t ready_before; /* last_ready when the step began */
    size_t cost_left;    /* cost that this step may still spend (cost.h) */
    size_t cost_kept;    /* further cost, which a TICK keeps for timeouts and `ready` while it cleans up */
    uint64_t work_left;  /* work that this step may still spend on grants and on `ready`: cost_charge_work() */
    uint64_t work_granted; /* locks.granted_work that has been charged to it */
    size_t cost_as_work;   /* points that the step has spent, as far as they have been charged to it */
    /* Terminating sessions, oldest end first, both lists empty before RESTART: */
    struct list sessions_to_clean; /* those with cleanup_pending */
    struct list sessions_to_purge; /* those whose documents remain to be purged */
    size_t terminating_count;      /* all terminating sessions */
    /* Changes of ephemeral counts by the open unit, in core->arena */
    struct ephemeral_delta *ephemeral_deltas;
    size_t ephemeral_delta_count;
    size_t ephemeral_delta_capacity;
    /* Numbers of the indices that the open unit deletes, also in the core's arena. */
    uint32_t *dropped_indices;
    size_t dropped_count;
    size_t dropped_capacity;
    struct list cleanup_attempts; /* struct cleanup_attempt, in order of their keys */
    struct hosts hosts;
    struct save_pieces pieces;         /* of overlays, holds, sessions and waits, in the store */
    struct save_chunks session_chunks; /* in the order of `sessions` */
    struct save_chunks wait_chunks;    /* in the order of `waits` */
    size_t abandoned_count;            /* open transactions that will be rolled back */
    struct list deferred;              /* struct deferred, oldest first */
    struct map deferred_by_number;     /* the same, by number (u64be) */
    struct list unrequested;           /* deferred cleanup without a lock request, in order; empty after RESTART */
    size_t deferred_count;
    uint64_t last_deferred; /* highest number ever given to deferred cleanup */
    struct deadlines leases;
    struct deadlines wait_ends;
    struct deadlines idles; /* idle timeouts of transactions */
    struct lock_events lock_events;
    struct lock_history lock_history;
    struct buf finished_slow_waits; /* lines about reported waits, for the next report */
    size_t finished_slow_wait_count;
    size_t events_reported; /* of lock_events.count */

    /* owners__check(): what the steps since the last check have paid, and what the next one costs. */
    size_t check_paid;
    size_t check_cost;

    /* For the budget's tallies only (base/budget.h, invariant 5). */
    size_t action_bytes;  /* of sessions' on_expire and of deferred cleanup */
    size_t wait_bytes;    /* of `waits` */
    size_t tallied_locks; /* last values that owners__update_budget() gave to the budget */
    size_t tallied_actions;
};

/*
 * Returns: whether any lock is held or requested. If not, writes acquire none (README.md,
 *   "Autocommit writes").
 */
static inline bool owners_any_locks(const struct owners *owners)
{
    return !lock_table_is_idle(&owners->locks);
}

/* Returns: whether no lock held or requested can conflict with a write to the index. */
static inline bool owners_index_is_unlocked(const struct owners *owners, struct slice index)
{
    return lock_table_index_is_unlocked(&owners->locks, index);
}

/* Returns: the session of this id, also one that is terminating, or NULL. */
static inline struct session *owners_session(const struct owners *owners, struct slice id)
{
    return map_get(&owners->sessions, id);
}

/* Returns: the session of this id; NULL: it does not exist, or is terminating. */
static inline struct session *owners_live_session(const struct owners *owners, struct slice id)
{
    struct session *session = map_get(&owners->sessions, id);
    return session == NULL || session->terminating ? NULL : session;
}

/*
 * As lock_table_find_token(), except that tokens of abandoned transactions and terminating sessions
 * are invalid.
 */
static inline bool owners_token(const struct owners *owners, tl_ts token, const struct resource_name *name,
                                struct lock_owner **ret_owner)
{
    REQUIRE(token != 0); /* no lock has it */
    struct lock_owner *owner;
    if (!lock_table_find_token(&owners->locks, token, name, &owner) || owner_of(owner)->abandoned ||
        (owner_of(owner)->session != NULL && owner_of(owner)->session->terminating))
        return false;
    *ret_owner = owner;
    return true;
}

/* Returns: the open transaction of this id, or NULL. */
static inline struct txn *owners_txn(const struct owners *owners, struct slice id)
{
    return map_get(&owners->txns, id);
}

#endif
