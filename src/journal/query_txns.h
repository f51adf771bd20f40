/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open query transactions, for readers on any thread. They need no lock, so a read in one needs
 * only its timestamp, and usually not the core.
 *
 * The core reports each use and the end of a query transaction. A transaction used through this
 * table alone would look idle to the core, and expire. So an entry is fresh for a short time only,
 * by which the core extends the idle limit. A reader that finds it stale submits a command, by
 * which the core records the use.
 *
 * Any number of readers may use a transaction at once, and it may end meanwhile: the table and each
 * reader hold a reference. The table is partitioned by the hash of the id, to reduce contention.
 */
#ifndef TL_JOURNAL_QUERY_TXNS_H
#define TL_JOURNAL_QUERY_TXNS_H

#include "base/map.h"
#include "base/types.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { QUERY_TXNS_PARTS = 16 };

struct catalog;

struct query_txn {
    tl_ts read_ts;
    _Atomic uint64_t fresh_until; /* command clock */
    _Atomic size_t references;
    struct catalog *_Atomic catalog; /* as of read_ts; NULL: not loaded yet */
};

struct query_txns_part {
    pthread_mutex_t lock;
    struct map open; /* struct query_txn by transaction id */
};

struct query_txns {
    struct query_txns_part parts[QUERY_TXNS_PARTS];
};

void query_txns_init(struct query_txns *query_txns);
/* Frees the table. Requires: no reader holds a reference. */
void query_txns_deinit(struct query_txns *query_txns);

/*
 * Records that a transaction was begun or used; it is fresh until `fresh_until` of the command
 * clock.
 */
void query_txns_record(struct query_txns *query_txns, struct slice id, tl_ts read_ts, uint64_t fresh_until);
/*
 * Removes a transaction that has ended.
 * Returns: the transaction with the table's reference; NULL: it is not in the table.
 * Owns: the caller; query_txn_unref().
 */
struct query_txn *query_txns_remove(struct query_txns *query_txns, struct slice id);
/*
 * Returns: the open transaction; NULL: none is open under this id.
 * Owns: the caller; query_txn_unref().
 */
struct query_txn *query_txns_use(struct query_txns *query_txns, struct slice id);
/* Returns: whether a transaction is open under this id. */
bool query_txns_has(struct query_txns *query_txns, struct slice id);

/* Returns: whether the core has recorded a use recently enough. */
bool query_txn_is_fresh(const struct query_txn *txn, uint64_t clock);
/* Drops a reference. Returns: whether it was the last, so that the transaction was freed. */
bool query_txn_unref(struct query_txn *txn);

/* Returns: its catalog; NULL: not loaded yet. Owns: the caller; catalog_unref(). */
struct catalog *query_txn_catalog(struct query_txn *txn);
/* Caches a catalog for later readers; takes a reference of its own. */
void query_txn_cache_catalog(struct query_txn *txn, struct catalog *catalog);

#endif
