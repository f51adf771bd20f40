/* SPDX-License-Identifier: Apache-2.0 */
/* The session, transaction or autocommit write that a lock_owner represents. */
#ifndef TL_CORE_OWNER_H
#define TL_CORE_OWNER_H

#include "core/locks/lock.h"

struct core;
struct session;

enum owner_kind { OWNER_SESSION, OWNER_TXN, OWNER_WRITE };

/* Embedded in struct session, struct txn or struct write_wait, by `kind`. */
struct owner {
    enum owner_kind kind;
    struct lock_owner locks; /* in the lock table; its `user` is this struct */
    struct session *session; /* that it belongs to; of a session: itself; NULL: none */
    bool abandoned;          /* will be rolled back (txn.h); its fencing tokens are invalid */
};

/*
 * Releases all locks of an owner, which is indivisible: locks_per_session_max and transaction_held_max bound it.
 * Requires: an open unit. Returns: as lock_release_all().
 */
size_t owner__release_locks(struct core *core, struct owner *owner);

/* Returns: the struct that contains `owner`; never NULL. */
static inline struct owner *owner_of(const struct lock_owner *owner)
{
    return owner->user;
}

#endif
