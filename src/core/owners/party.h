/* SPDX-License-Identifier: Apache-2.0 */
/* Who is behind an owner of locks. */
#ifndef TL_CORE_PARTY_H
#define TL_CORE_PARTY_H

#include "core/locks/lock.h"

struct session;

enum party_kind { PARTY_SESSION, PARTY_TXN, PARTY_WRITE };

/* Who is behind a lock_owner; its `user`. */
struct party {
    enum party_kind kind;
    struct lock_owner owner;
    struct session *session; /* that it belongs to; itself for a session; NULL: none */
    bool abandoned;          /* a transaction that is going to be rolled back (txn.h): tokens of it cover nothing */
};

static inline struct party *party_of(const struct lock_owner *owner)
{
    return owner->user;
}

#endif
