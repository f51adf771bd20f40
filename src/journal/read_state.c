/* SPDX-License-Identifier: Apache-2.0 */
/* What readers ask of the journal: the stable timestamp, the catalog, pins, query transactions. */
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
    return queries_use(&journal->queries, id);
}

/* The pin is the one that its end took, when it has ended in between. */
void journal_query_txn_release(struct journal *journal, struct query_txn *query)
{
    tl_ts pinned = query->read_ts;
    if (query_unref(query))
        journal_unpin(journal, pinned);
}

bool journal_query_txn_is_fresh(struct journal *journal, const struct query_txn *query, tl_ts *ret_ts)
{
    /* A gap that has not been read yet makes it seem later, and so the core is asked. */
    uint64_t clock = journal__boot(journal) - atomic_load_explicit(&journal->pace_lost, memory_order_relaxed);
    *ret_ts = query->read_ts;
    return query_fresh(query, clock) && query->read_ts <= journal_stable(journal);
}

int journal_query_txn_catalog(struct journal *journal, struct query_txn *query, struct catalog **ret_catalog)
{
    int r = 0;
    *ret_catalog = query_catalog(query);
    if (*ret_catalog != NULL)
        return 0;
    *ret_catalog = journal_catalog_at(journal, query->read_ts);
    if (*ret_catalog == NULL)
        r = catalog_load(&(struct view){journal->store, query->read_ts, NULL}, ret_catalog);
    if (r == 0)
        query_keep_catalog(query, *ret_catalog);
    return r;
}

void journal__query_seen(struct effects *effects, struct slice id, tl_ts read_ts, uint64_t fresh_us)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    queries_seen(&journal->queries, id, read_ts, journal->step_clock + fresh_us);
}

/*
 * Those who read in it just now keep what they see: the end takes a pin in its place, which goes with the last of them. The
 * core has held the history until now, and moves the cut-off under the lock that this thread has.
 */
void journal__query_ended(struct effects *effects, struct slice id)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    struct query_txn *query = queries_ended(&journal->queries, id);
    if (query == NULL)
        return;
    pthread_mutex_lock(&journal->pin_lock);
    pins_add(&journal->pins, query->read_ts);
    pthread_mutex_unlock(&journal->pin_lock);
    journal_query_txn_release(journal, query);
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
