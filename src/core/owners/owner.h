/* SPDX-License-Identifier: Apache-2.0 */
/* Who is behind an owner of locks. */
#ifndef TL_CORE_OWNER_H
#define TL_CORE_OWNER_H

#include "core/locks/lock.h"

struct session;

enum owner_kind { OWNER_SESSION, OWNER_TXN, OWNER_WRITE };

/* Who is behind a lock_owner; its `user`. */
struct owner {
    enum owner_kind kind;
    struct lock_owner locks;
    struct session *session; /* that it belongs to; itself for a session; NULL: none */
    bool abandoned;          /* a transaction that is going to be rolled back (txn.h): tokens of it cover nothing */
};

static inline struct owner *owner_of(const struct lock_owner *owner)
{
    return owner->user;
}

#endif
