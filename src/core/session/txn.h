/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: owners of locks with an overlay, and the stored outcomes of those that ended.
 * README-locks.md, "Transactions".
 *
 * This is the record of an open transaction, and the command that begins it. txn_end.h ends it.
 */
#ifndef TL_CORE_TXN_H
#define TL_CORE_TXN_H

#include "base/magic.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/command/command.h"

struct core;
struct overlay;
struct wait;

/*
 * Why a transaction is abandoned: it will be rolled back in batches (README-locks.md,
 * "Transactions").
 */
enum txn_abandon {
    TXN_HOST_ENDED,
    TXN_HOST_CRASHED,
    /* If the account of the step has too little for the rollback: */
    TXN_VICTIM,      /* of a deadlock; since version 24 of commands */
    TXN_IDLE,        /* for too long; since version 26 */
    TXN_WRITE_ENDED, /* the atomic write in pieces that has it; since version 26 */
    TXN_ABANDON_COUNT
};

/*
 * The state of a transaction; txn.c has the table of transitions.
 *
 *     open ─┬─▶ waiting ─▶ open      a command of it waits for locks
 *           ├─▶ abandoned ─┐
 *           └──────────────┴─▶ ended
 *
 * It follows from `wait` and owner.abandoned. Only txn.c and txn_end.c change these; what reads a
 * checkpoint refuses impossible ones.
 */
enum txn_state { TXN_OPEN, TXN_WAITING, TXN_ABANDONED, TXN_ENDED, TXN_STATE_COUNT };

#define TXN_MAGIC MAGIC('T', 'x', 'n', '\0')

struct txn {
    uint32_t magic; /* TXN_MAGIC */
    struct owner owner;
    struct slice id; /* secret; mem_free */
    tl_ts created;
    uint64_t timeout_us;             /* idle time after which it is rolled back */
    struct deadline idle;            /* not set while one of its commands waits, or when abandoned */
    struct overlay *overlay;         /* its writes; NULL: none; readers have snapshots */
    bool retry;                      /* it retries one that was rolled back: its reads take update locks */
    bool of_host;                    /* begun by a host for one request; ends with that host's life */
    uint16_t host;                   /* number of that host; 0 without of_host */
    bool of_write;                   /* of an atomic write in pieces; no client knows its id, so it has no outcome */
    enum txn_abandon abandon_reason; /* valid with owner.abandoned */
    uint64_t piece_owner;            /* of its pieces in the store (save_pieces.h); 0: it has none */
    uint32_t undo_record_count;      /* of its provisional index entries (provisional.h) */
    struct list of_session;
    struct list of_all;     /* in owners->open_txns, oldest first */
    struct list of_unsaved; /* in owners->pieces.unsaved, or not linked */
    struct wait *wait;      /* NULL: no command waits */
};

/*
 * Finds an open transaction for a command; `session`, if not empty, must be the one it belongs to.
 * Returns: it; NULL with *ret_problem in `arena`: it ended (and how), never existed, will be rolled
 * back, belongs to another session, or a command of it waits.
 */
struct txn *txn__find(struct core *core, struct slice id, struct slice session, struct arena *arena,
                      struct problem *ret_problem);
/* Returns: the open transaction of this public number in decimal, or NULL. Takes linear time. */
struct txn *txn__by_number(const struct core *core, struct slice number);
/* Returns: the timestamp at which the oldest open update transaction began; TL_TS_MAX: none. */
tl_ts txn__oldest_update(const struct core *core);
/* Returns: whether a transaction with this id is open. */
bool txn__is_open(const struct core *core, struct slice id);
/* Returns: the overlay, for its next writes; a new one before the first. */
struct overlay *txn__overlay(struct core *core, struct txn *txn);
/* Restarts the idle time. */
void txn__touch(struct core *core, struct txn *txn);
/* Releases its locks and frees it. Requires: no command of it waits. */
void txn__free(struct core *core, struct txn *txn);
/*
 * Returns: the cost of rolling it back (session/cost.h): a point, its locks, and its written records,
 * which are freed (not for commands before version 10).
 */
uint64_t txn__rollback_cost(const struct core *core, const struct txn *txn);
/* Returns: its work, for the account of a step. */
uint64_t txn__rollback_work(const struct txn *txn);
/* Marks it as abandoned: a later step rolls it back. Requires: no command of it waits. */
void txn__abandon(struct core *core, struct txn *txn, enum txn_abandon why);
/*
 * Ends the transaction of an atomic write in pieces, which has no outcome: releases its locks and frees it, or abandons
 * it if the step's account has less than that takes (cost_fits()). Requires: no command of it waits.
 */
void txn__drop(struct core *core, struct txn *txn);
/*
 * Makes an open transaction with an id and an owner only. `session`: NULL: none.
 * Owns: owners->txns; txn__free().
 */
struct txn *txn__make(struct core *core, struct slice id, struct session *session);
/* Returns: its state. */
enum txn_state txn__state(const struct txn *txn);
/* Requires: the table of transitions in txn.c lets it enter this state now. */
void txn__check_may_enter(const struct txn *txn, enum txn_state state);
/*
 * Returns: whether the transaction belongs to `session`; an empty id matches any. If not, with
 * *ret_problem in `arena`.
 */
bool txn__belongs_to(const struct txn *txn, struct slice session, struct arena *arena,
                     struct problem *ret_problem) TL_MUST_USE;
/* Fills in how a transaction that is not open ended, or that it is unknown. */
void txn__explain_missing(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem);
/* Returns: the reason for which it is rolled back, for texts; in `arena`, or constant. */
struct slice txn__abandon_text(const struct core *core, const struct txn *txn, enum txn_abandon why,
                               struct arena *arena);
/* Records that a command of it waits. Requires: it is open, and no command of it waits. */
void txn__begin_wait(struct txn *txn, struct wait *wait);
/* Records that its command no longer waits; without a waiting command it does nothing. */
void txn__end_wait(struct txn *txn);
/* txn_store.c: outcomes of ended transactions, kept for an hour. */
struct txn_outcome {
    bool committed;
    bool by_request;    /* rolled back by TXN_ROLLBACK */
    enum txn_mode mode; /* TXN_QUERY: of an older version, which kept query transactions in the core */
    tl_ts created;
    tl_ts ended;
    tl_ts commit_ts;
    uint64_t changes;
    struct slice session; /* its public number in decimal; in older stores its id */
    struct slice cause;   /* of the rollback */
    tl_ts age;            /* as lock_owner.age; a retry inherits it */
};
/*
 * Returns: the public number of its session in decimal, in `arena`; data NULL: it has no session.
 */
struct slice txn__session_text(const struct txn *txn, struct arena *arena);
/*
 * Writes the outcome and counts it in the metrics, in the open unit.
 * Requires: `commit_ts` is set if it was committed, and only then.
 */
void txn__put_outcome(struct core *core, struct slice id, const struct txn_outcome *outcome);
/*
 * Returns: 0; STORE_NOT_FOUND, also when it is older than an hour; fatal codes. Slices are in
 * `arena`.
 */
int txn__get_outcome(struct core *core, struct slice id, struct arena *arena,
                     struct txn_outcome *ret_outcome) TL_MUST_USE;
/*
 * Purges outcomes of transactions that are due, in the open unit. Returns: 0 and the number of
 * keys; fatal codes.
 */
int txn__purge_outcomes(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;

#endif
