/* SPDX-License-Identifier: Apache-2.0 */
/* State for readers: the stable timestamp, the catalog, pins. */
#include "base/check.h"
#include "base/magic.h"
#include "core/catalog/catalog.h"
#include "journal/journal_internal.h"
#include "store/view.h"

tl_ts journal_stable(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return atomic_load_explicit(&journal->stable_ts, memory_order_acquire);
}

tl_ts journal_oldest(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return store_history_low(journal->store);
}

struct catalog *journal_catalog(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = catalog_ref(journal->catalog);
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = ts >= journal->catalog_ts ? catalog_ref(journal->catalog) : NULL;
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

int journal_pin(struct journal *journal, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->pin_lock);
    bool old = ts < store_history_low(journal->store);
    if (!old)
        pins_add(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
    return old ? JOURNAL_TOO_OLD : 0;
}

tl_ts journal__pin_stable(struct journal *journal)
{
    pthread_mutex_lock(&journal->pin_lock);
    tl_ts ts = journal_stable(journal); /* not below the history limit, which is raised under this lock */
    pins_add(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
    return ts;
}

void journal_unpin(struct journal *journal, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->pin_lock);
    pins_remove(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
}
