/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query transactions of a host: a table, and the outcomes of those that ended. README.md,
 * "Query transactions".
 *
 * A query transaction reads at one timestamp, which is pinned while it is open and while a reader
 * holds a reference. It has no locks and no writes, so it is not part of the core's state, and no
 * command concerns it: its begin, uses and end are operations on this table, from any thread.
 *
 * The table is partitioned by the hash of the id, to reduce contention. It has no clock: callers
 * give the host's clock and the current timestamp.
 *
 * Invariants
 *  1. A transaction is in `open` of its part, or has an outcome there, or the table does not know
 *     it. It changes from the first to the second in one critical section.
 *  2. `unpin` is called once for each transaction, when it has ended and no reader holds it.
 *  3. A transaction with a reader is not idle. Its idle time begins with the end of its last use,
 *     and is never shorter than its limit.
 *  4. After query_txns_stop() none is open, and none can be begun.
 *  5. The number of open transactions, and that of outcomes, is limited.
 */
#ifndef TL_JOURNAL_QUERY_TXNS_H
#define TL_JOURNAL_QUERY_TXNS_H

#include "base/arena.h"
#include "base/list.h"
#include "base/magic.h"
#include "base/map.h"
#include "journal/query_txn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    QUERY_TXNS_PARTS = 16,
    QUERY_TXNS_OUTCOMES_MAX = 10000, /* in all parts; beyond it the oldest one is dropped */
    QUERY_TXN_CAUSE_BYTES = 64,
};

struct catalog;

/* Constant but for the last five members. */
#define QUERY_TXN_MAGIC MAGIC('Q', 'T', 'x', 'n')

struct query_txn {
    uint32_t magic;          /* QUERY_TXN_MAGIC */
    struct slice id;         /* secret */
    struct slice session_id; /* secret; empty: it belongs to no session */
    tl_ts read_ts;
    tl_ts created;
    uint64_t number; /* public */
    uint64_t timeout_us;
    _Atomic uint64_t session; /* public number; 0: it has none, or it is not known yet */
    _Atomic uint64_t used_at; /* host's clock at the end of the last use */
    _Atomic size_t references;
    struct catalog *_Atomic catalog; /* as of read_ts; NULL: not loaded yet */
    struct list of_session;          /* under sessions_lock; not linked: it has no session */
};

struct query_txns_part {
    pthread_mutex_t lock;
    struct map open;     /* struct query_txn by id */
    struct map outcomes; /* struct query_txn_outcome by id */
    struct list by_end;  /* outcomes, oldest first */
};

struct query_txns {
    struct query_txns_part parts[QUERY_TXNS_PARTS];
    size_t open_max;
    void (*unpin)(void *context, tl_ts ts); /* called without a lock of the table */
    void *context;
    pthread_mutex_t sessions_lock;
    struct map sessions; /* struct query_txns_session by id of the session */
    atomic_bool stopped;
    _Atomic size_t open_count;
    _Atomic uint64_t last_number;
    _Atomic uint64_t next_end; /* host's clock: nothing is idle before; UINT64_MAX: none is open */
    struct query_txn_metrics metrics;
};

/* The host's clock and timestamp of an operation. */
struct query_txns_now {
    uint64_t clock;
    tl_ts ts;
};

/* `unpin`: releases the pin of a transaction. `open_max`: limit of open ones. */
void query_txns_init(struct query_txns *table, size_t open_max, void (*unpin)(void *context, tl_ts ts), void *context);
/* Frees the table. Requires: no reader holds a reference; query_txns_stop(). */
void query_txns_deinit(struct query_txns *table);
/* Ends all transactions. Idempotent. */
void query_txns_stop(struct query_txns *table);

/*
 * Begins a transaction.
 * Requires: terms->read_ts is pinned; the id is new.
 * Ensures: when it succeeds the pin is the table's.
 * Returns: 0 with *ret_info, whose texts are those of the terms; QUERY_TXNS_FULL;
 *          QUERY_TXNS_STOPPED.
 */
enum { QUERY_TXNS_FULL = 1, QUERY_TXNS_STOPPED };
int query_txns_begin(struct query_txns *table, const struct query_txn_terms *terms, struct query_txns_now now,
                     struct query_txn_info *ret_info) TL_MUST_USE;
/*
 * Completes the begin of a transaction of a session, which lives: records the session's public
 * number.
 * Requires: `session` is not 0.
 */
void query_txns_set_session(struct query_txns *table, struct slice id, uint64_t session);
/* Ends a transaction whose begin failed: its session has ended. */
void query_txns_discard(struct query_txns *table, struct slice id, struct query_txns_now now);

/*
 * Begins a use.
 * Returns: the open transaction; NULL: none is open under this id.
 * Owns: the caller; query_txns_release().
 */
struct query_txn *query_txns_use(struct query_txns *table, struct slice id);
/* Ends a use. */
void query_txns_release(struct query_txns *table, struct query_txn *txn, uint64_t clock);

/*
 * Checks that a transaction belongs to a session; an empty id matches any.
 * Returns: false with *ret_problem in `arena`.
 */
bool query_txn_check_session(const struct query_txn *txn, struct slice session, struct arena *arena,
                             struct problem *ret_problem);
/* Returns: whether a command is to run in a transaction, which may be a query transaction. */
bool query_txns_concerns(const struct command *command);
/*
 * Refuses a command that is to run in a query transaction, open or ended, of this table.
 * Returns: whether it was refused; its problem is then set.
 */
bool query_txns_refuse(struct query_txns *table, struct command *command, struct query_txns_now now);

/*
 * Ends a transaction on request. A repeated commit, or rollback, succeeds.
 * Returns: the state before, as query_txns_find(); unless that is QUERY_TXN_UNKNOWN with *ret_info,
 *          and with *ret_problem if it was refused.
 */
enum query_txn_state query_txns_end(struct query_txns *table, const struct query_txn_ending *ending,
                                    struct query_txns_now now, struct arena *arena, struct query_txn_info *ret_info,
                                    struct problem *ret_problem);
/*
 * Finds a transaction by its id, or with `or_number` an open one by its public number.
 * Returns: its state; unless that is QUERY_TXN_UNKNOWN, with *ret_info in `arena`.
 */
enum query_txn_state query_txns_find(struct query_txns *table, struct slice id, bool or_number,
                                     struct query_txns_now now, struct arena *arena, struct query_txn_info *ret_info);
/*
 * Lists the open transactions in order of their numbers.
 * Returns: their number, with *ret_infos in `arena`.
 */
size_t query_txns_list(struct query_txns *table, uint64_t clock, struct arena *arena,
                       struct query_txn_info **ret_infos);

/* Ends the transactions of a session that has ended; `how` says how, such as "was closed". */
void query_txns_end_session(struct query_txns *table, struct slice session, uint64_t number, const char *how,
                            struct query_txns_now now);
/*
 * Ends idle transactions. `barrier_clock`: all input sent before this value of the host's clock has been
 * handled. Updates `next_end`.
 */
void query_txns_end_idle(struct query_txns *table, uint64_t barrier_clock, struct query_txns_now now);

/* Returns: its catalog; NULL: not loaded yet. Owns: the caller; catalog_unref(). */
struct catalog *query_txn_catalog(struct query_txn *txn);
/* Caches a catalog for later readers; takes a reference of its own. */
void query_txn_cache_catalog(struct query_txn *txn, struct catalog *catalog);

#endif
