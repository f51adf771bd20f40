/* SPDX-License-Identifier: Apache-2.0 */
/* Open query transactions; see query_txns.h. */
#include "journal/query_txns.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"

static struct query_txns_part *part_of(struct query_txns *query_txns, struct slice id)
{
    return &query_txns->parts[siphash_keyed(id) % QUERY_TXNS_PARTS];
}

void query_txns_init(struct query_txns *query_txns)
{
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        pthread_mutex_init(&query_txns->parts[i].lock, NULL);
        query_txns->parts[i].open = MAP_INIT;
    }
}

static void part_deinit(struct query_txns_part *part)
{
    size_t position = 0;
    struct slice id;
    void *txn;
    while (map_next(&part->open, &position, &id, &txn))
        INSIST(query_txn_unref(txn));
    map_deinit(&part->open);
    pthread_mutex_destroy(&part->lock);
}

void query_txns_deinit(struct query_txns *query_txns)
{
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++)
        part_deinit(&query_txns->parts[i]);
}

void query_txns_record(struct query_txns *query_txns, struct slice id, tl_ts read_ts, uint64_t fresh_until)
{
    struct query_txns_part *part = part_of(query_txns, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *txn = map_get(&part->open, id);
    if (txn == NULL) {
        txn = mem_zalloc(sizeof *txn);
        txn->read_ts = read_ts;
        atomic_init(&txn->references, 1);
        map_put(&part->open, id, txn);
    }
    atomic_store_explicit(&txn->fresh_until, fresh_until, memory_order_relaxed);
    pthread_mutex_unlock(&part->lock);
}

struct query_txn *query_txns_remove(struct query_txns *query_txns, struct slice id)
{
    struct query_txns_part *part = part_of(query_txns, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *txn = map_remove(&part->open, id);
    pthread_mutex_unlock(&part->lock);
    return txn;
}

struct query_txn *query_txns_use(struct query_txns *query_txns, struct slice id)
{
    struct query_txns_part *part = part_of(query_txns, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *txn = map_get(&part->open, id);
    if (txn != NULL)
        atomic_fetch_add_explicit(&txn->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&part->lock);
    return txn;
}

bool query_txns_has(struct query_txns *query_txns, struct slice id)
{
    struct query_txns_part *part = part_of(query_txns, id);
    pthread_mutex_lock(&part->lock);
    bool open = map_get(&part->open, id) != NULL;
    pthread_mutex_unlock(&part->lock);
    return open;
}

bool query_txn_is_fresh(const struct query_txn *txn, uint64_t clock)
{
    return clock < atomic_load_explicit(&txn->fresh_until, memory_order_relaxed);
}

bool query_txn_unref(struct query_txn *txn)
{
    size_t before = atomic_fetch_sub_explicit(&txn->references, 1, memory_order_acq_rel);
    REQUIRE(before > 0);
    if (before > 1)
        return false;
    catalog_unref(atomic_load_explicit(&txn->catalog, memory_order_relaxed));
    mem_free(txn);
    return true;
}

struct catalog *query_txn_catalog(struct query_txn *txn)
{
    struct catalog *catalog = atomic_load_explicit(&txn->catalog, memory_order_acquire);
    return catalog == NULL ? NULL : catalog_ref(catalog);
}

/* Two readers may cache equal catalogs at once; the first one stays. */
void query_txn_cache_catalog(struct query_txn *txn, struct catalog *catalog)
{
    struct catalog *none = NULL;
    struct catalog *kept = catalog_ref(catalog);
    if (!atomic_compare_exchange_strong_explicit(&txn->catalog, &none, kept, memory_order_release,
                                                 memory_order_relaxed))
        catalog_unref(kept);
}
