/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query transactions that are open, for readers on any thread: they need no lock, so a read inside one needs to know no more
 * than its timestamp, and not to ask the core for it each time.
 *
 * The core says when one is used and when it ends. A transaction that is read through here alone would seem idle to the
 * core and be ended; so an entry is fresh for a short while only, by which the core lets it idle longer, and the read that finds
 * it too old goes the long way, by which the core notices.
 *
 * Any number of readers may use one at a time, and it may end meanwhile: the table and each user hold a reference. The
 * table is split by the hash of the id, so that readers of different transactions do not meet.
 */
#ifndef TL_JOURNAL_QUERY_TXNS_H
#define TL_JOURNAL_QUERY_TXNS_H

#include "base/map.h"
#include "base/types.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { QUERIES_PARTS = 16 };

struct catalog;

struct query_txn {
    tl_ts read_ts;
    _Atomic uint64_t fresh_until; /* by the clock of commands */
    _Atomic size_t references;
    struct catalog *_Atomic catalog; /* as of read_ts; NULL: nobody has asked for it yet */
};

struct queries_part {
    pthread_mutex_t lock;
    struct map open; /* struct query_txn by the transaction's id */
};

struct queries {
    struct queries_part parts[QUERIES_PARTS];
};

void queries_init(struct queries *queries);
/* Requires: nobody uses any. */
void queries_deinit(struct queries *queries);

/* It was begun or used, and need not be told of again before that. */
void queries_seen(struct queries *queries, struct slice id, tl_ts read_ts, uint64_t fresh_until);
/* It is over. Returns: it, with the reference that the table had; NULL when it is not there. */
struct query_txn *queries_ended(struct queries *queries, struct slice id);
/* Returns: it, with a reference for the caller; NULL when it is not open. Owns: the caller; query_unref(). */
struct query_txn *queries_use(struct queries *queries, struct slice id);
/* Returns: whether it is open. */
bool queries_has(struct queries *queries, struct slice id);

/* Returns: whether the core has heard of its use late enough. */
bool query_fresh(const struct query_txn *query, uint64_t clock);
/* Returns: whether that was the last reference, so that it is gone. */
bool query_unref(struct query_txn *query);

/* Returns: its catalog, with a reference for the caller; NULL when none was kept yet. */
struct catalog *query_catalog(struct query_txn *query);
/* Keeps a catalog for those who ask next. */
void query_keep_catalog(struct query_txn *query, struct catalog *catalog);

#endif
