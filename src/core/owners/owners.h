/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: sessions, transactions, writes of their own, and the commands that wait for locks.
 *
 * README-locks.md says what they do. Everything here happens in an open unit: locks that sessions gain or lose, sessions
 * and outcomes of transactions are written in its batch. What the table of locks causes beside the call at hand is
 * fetched by owners__before_commit(), at the end of each unit at the latest.
 */
#ifndef TL_CORE_OWNERS_H
#define TL_CORE_OWNERS_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/hosts.h"
#include "core/owners/owner.h"
#include "core/owners/session.h"
#include "core/owners/lock_history.h"
#include "core/owners/lock_event.h"

struct core;
struct txn;

struct owners {
    struct core *core;
    struct lock_table locks;
    struct map sessions; /* by id */
    struct map txns;     /* open ones, by id */
    struct list open_txns;
    struct list unrecorded_txns; /* query transactions that were begun since the last upkeep */
    struct map requests;         /* waits by the number of their command (u64be) */
    struct list waits;
    struct list ready; /* waits that go on, or are answered, in their order; some may be left for a later step */
    size_t ready_count;
    uint64_t last_ready;  /* of their numbers; 0 while there are none */
    size_t cost_left;   /* of what goes on with the step at hand (cost.h) */
    struct list sessions_to_clean;   /* sessions whose end goes on in pieces, oldest end first; empty before RESTART */
    struct list sessions_to_purge;  /* those that are past that, with documents to be swept away, likewise */
    size_t terminating_count; /* sessions that are leaving */
    struct list cleanup_attempts;    /* cleanup_attempt.c */
    struct hosts hosts;
    size_t abandoned_count; /* open transactions that are going to be rolled back */
    struct list deferred;
    struct list
        unrequested; /* what is kept and has asked for nothing yet, in its order: between opening the store and RESTART */
    size_t deferred_count;
    uint64_t last_deferred;
    struct deadlines leases;
    struct deadlines wait_ends;
    struct deadlines idles;
    struct lock_events lock_events;
    struct lock_history lock_history;
    struct buf finished_slow_waits; /* lines about waits that were told as slow and have ended since the last look */
    size_t finished_slow_wait_count;
    size_t events_reported; /* of stories.count, as news */

    /* For the budget's tallies only (base/budget.h, invariant 5). */
    size_t action_bytes; /* of sessions, and kept ones */
    size_t wait_bytes;   /* of `waits` */
    size_t tallied_locks;   /* of what owners__update_budget() has told */
    size_t tallied_actions;
};

static inline struct session *owners_session(const struct owners *owners, struct slice id)
{
    return map_get(&owners->sessions, id);
}

/* Returns: a session that lives, or NULL. */
static inline struct session *owners_live_session(const struct owners *owners, struct slice id)
{
    struct session *session = map_get(&owners->sessions, id);
    return session == NULL || session->terminating ? NULL : session;
}

/* As lock_table_find_token(), of an owner that is not abandoned, and whose session lives still. */
static inline bool owners_token(const struct owners *owners, tl_ts token, const struct resource_name *name,
                                struct lock_owner **ret_owner)
{
    struct lock_owner *owner;
    if (!lock_table_find_token(&owners->locks, token, name, &owner) || owner_of(owner)->abandoned ||
        (owner_of(owner)->session != NULL && owner_of(owner)->session->terminating))
        return false;
    *ret_owner = owner;
    return true;
}

/* Returns: an open transaction, or NULL. */
static inline struct txn *owners_txn(const struct owners *owners, struct slice id)
{
    return map_get(&owners->txns, id);
}

#endif
