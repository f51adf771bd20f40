/* SPDX-License-Identifier: Apache-2.0 */
/* State for readers: the stable timestamp, the catalog, pins, query transactions. */
#include "core/catalog/catalog.h"
#include "journal/journal_internal.h"
#include "store/view.h"

tl_ts journal_stable(struct journal *journal)
{
    return atomic_load_explicit(&journal->stable_ts, memory_order_acquire);
}

tl_ts journal_oldest(struct journal *journal)
{
    return store_history_low(journal->store);
}

struct catalog *journal_catalog(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = catalog_ref(journal->catalog);
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = ts >= journal->catalog_ts ? catalog_ref(journal->catalog) : NULL;
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

struct query_txn *journal_query_txn_use(struct journal *journal, struct slice id)
{
    return query_txns_use(&journal->query_txns, id);
}

/* The last reference releases the pin that journal__query_txn_ended() took. */
void journal_query_txn_release(struct journal *journal, struct query_txn *txn)
{
    tl_ts pinned = txn->read_ts;
    if (query_txn_unref(txn))
        journal_unpin(journal, pinned);
}

bool journal_query_txn_is_fresh(struct journal *journal, const struct query_txn *txn, tl_ts *ret_ts)
{
    /*
     * A stall not yet excluded makes this clock run ahead, so the core is asked too early at worst.
     */
    uint64_t clock =
        journal__boot(journal) - atomic_load_explicit(&journal->run_clock_stalled_us, memory_order_relaxed);
    *ret_ts = txn->read_ts;
    return query_txn_is_fresh(txn, clock) && txn->read_ts <= journal_stable(journal);
}

int journal_query_txn_catalog(struct journal *journal, struct query_txn *txn, struct catalog **ret_catalog)
{
    int r = 0;
    *ret_catalog = query_txn_catalog(txn);
    if (*ret_catalog != NULL)
        return 0;
    *ret_catalog = journal_catalog_at(journal, txn->read_ts);
    if (*ret_catalog == NULL)
        r = catalog_load(&(struct view){journal->store, txn->read_ts, NULL}, ret_catalog);
    if (r == 0)
        query_txn_cache_catalog(txn, *ret_catalog);
    return r;
}

void journal__query_txn_used(struct effects *effects, struct slice id, tl_ts read_ts, uint64_t fresh_us)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    query_txns_record(&journal->query_txns, id, read_ts, journal->step_clock + fresh_us);
}

/*
 * Replaces the transaction's hold on the history by a pin, which the last of its readers releases.
 * The core has held the history until now, and the history limit is raised under core_lock only,
 * which this thread holds.
 */
void journal__query_txn_ended(struct effects *effects, struct slice id)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    struct query_txn *txn = query_txns_remove(&journal->query_txns, id);
    if (txn == NULL)
        return;
    pthread_mutex_lock(&journal->pin_lock);
    pins_add(&journal->pins, txn->read_ts);
    pthread_mutex_unlock(&journal->pin_lock);
    journal_query_txn_release(journal, txn);
}

int journal_pin(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->pin_lock);
    bool old = ts < store_history_low(journal->store);
    if (!old)
        pins_add(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
    return old ? JOURNAL_TOO_OLD : 0;
}

void journal_unpin(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->pin_lock);
    pins_remove(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
}
