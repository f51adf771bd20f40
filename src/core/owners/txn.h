/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: owners of locks with an overlay, and what is kept of those that ended. */
#ifndef TL_CORE_TXN_H
#define TL_CORE_TXN_H

#include "core/owners/deadline.h"
#include "core/owners/owner.h"
#include "core/step/command.h"

struct core;
struct overlay;
struct wait;

/* Why a transaction is going to be rolled back, in pieces (README-locks.md, "Transactions"). */
enum txn_abandon { TXN_HOST_ENDED, TXN_HOST_CRASHED, TXN_ABANDON_COUNT };

struct txn {
    struct owner owner;
    struct slice id; /* mem_free */
    enum txn_mode mode;
    tl_ts created;
    tl_ts read_ts; /* TXN_QUERY */
    uint64_t timeout_us;
    struct deadline idle;    /* not set while a command of it waits */
    struct overlay *overlay; /* NULL: nothing written */
    bool retry;              /* it tries again what was rolled back: it reads documents for update */
    bool of_host;            /* a host has it for a request, and it ends with the life of that: */
    uint16_t host;
    enum txn_abandon abandon_reason;    /* party.abandoned */
    uint32_t undo_record_count;    /* of entries that it has put into the store already (provisional.h) */
    struct list of_session;
    struct list of_all;     /* in owners->open_txns, oldest first */
    struct list unrecorded; /* in owners->unrecorded_txns, oldest first: the store does not know that it is open */
    struct wait *wait;      /* NULL: no command waits */
};

/*
 * Finds an open transaction for a command that may name a session as well.
 * Returns: it, or NULL with *ret_problem in `arena` saying how it ended.
 */
struct txn *txn__find(struct core *core, struct slice id, struct slice session, struct arena *arena,
                      struct problem *ret_problem);
/* Returns: an open transaction by its public number as text, or NULL. Looks at all of them. */
struct txn *txn__by_number(const struct core *core, struct slice number);
/* Returns: the overlay to write to; pointers into it from before are no longer good. */
struct overlay *txn__overlay(struct txn *txn);
/*
 * Something was done with it: its idle time begins again. Readers of a query transaction tell that only when the core has not heard
 * of it for TXN_FRESH_US or an eighth of its timeout, so it may idle that much longer.
 */
#define TXN_FRESH_US (250 * TL_MS)
void txn__touch(struct core *core, struct txn *txn);
/* Ends the command that waits in a transaction, which is being rolled back, or is going to be. */
void txn__end_waiting(struct core *core, struct txn *txn, struct slice cause);
/* Rolls back in the open unit, with a cause that is kept. A command that waits ends. It is freed. */
void txn__abort(struct core *core, struct txn *txn, const char *format, ...) TL_PRINTF(3, 4);
void txn__free(struct core *core, struct txn *txn);
/* Makes an open one, of which nothing else is known yet. */
struct txn *txn__make(struct core *core, struct slice id, struct session *session);
/* Goes on with a TXN_LOCK. */
void txn__lock_granted(struct core *core, struct wait *wait);
/* All that a host has itself, in the open unit. */
void txn__abandon_host(struct core *core, uint64_t host);
/* Update transactions of all, in the open unit; or with `whole` rolls them back there, one after the other. */
void txn__abandon_updates(struct core *core, bool whole);
/* Rolls back those that are abandoned, in the open unit, while *left things may be done; takes off what it has done. */
void txn__end_abandoned(struct core *core, size_t *left);

/* txn_store.c: the outcomes of ended transactions, kept for an hour. */
struct txn_outcome {
    bool committed;
    bool by_request; /* rolled back because its owner said so */
    enum txn_mode mode;
    tl_ts created;
    tl_ts ended;
    tl_ts commit_ts;
    uint64_t changes;
    struct slice session; /* its public number as text; of stores that are older an id */
    struct slice cause;   /* of a roll back */
    tl_ts age;            /* its owner's */
};
/* Returns: what is told of its session, data NULL where it has none. */
struct slice txn__session_text(const struct txn *txn, struct arena *arena);
void txn__put_open(struct core *core, const struct txn *txn);
void txn__drop_open(struct core *core, struct slice id);
void txn__put_outcome(struct core *core, struct slice id, const struct txn_outcome *outcome);
/* Returns: 0; STORE_NOT_FOUND, also when it is older than an hour; fatal codes. Slices live in `arena`. */
int txn__get_outcome(struct core *core, struct slice id, struct arena *arena,
                     struct txn_outcome *ret_outcome) TL_MUST_USE;
/*
 * Turns transactions into outcomes that the store says are open, and that are not, while *left things may be done; takes off what it has done.
 * Returns: 0; 1 there are more; fatal codes.
 */
int txn__end_lost(struct core *core, size_t *left) TL_MUST_USE;

#endif
