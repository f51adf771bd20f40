/* SPDX-License-Identifier: Apache-2.0 */
/* Open query transactions; see query_txns.h. */
#include "journal/query_txns.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"

static struct queries_part *part_of(struct queries *queries, struct slice id)
{
    return &queries->parts[siphash_keyed(id) % QUERIES_PARTS];
}

void queries_init(struct queries *queries)
{
    for (size_t i = 0; i < QUERIES_PARTS; i++) {
        pthread_mutex_init(&queries->parts[i].lock, NULL);
        queries->parts[i].open = MAP_INIT;
    }
}

static void part_deinit(struct queries_part *part)
{
    size_t position = 0;
    struct slice id;
    void *query;
    while (map_next(&part->open, &position, &id, &query))
        INSIST(query_unref(query));
    map_deinit(&part->open);
    pthread_mutex_destroy(&part->lock);
}

void queries_deinit(struct queries *queries)
{
    for (size_t i = 0; i < QUERIES_PARTS; i++)
        part_deinit(&queries->parts[i]);
}

void queries_seen(struct queries *queries, struct slice id, tl_ts read_ts, uint64_t fresh_until)
{
    struct queries_part *part = part_of(queries, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *query = map_get(&part->open, id);
    if (query == NULL) {
        query = mem_zalloc(sizeof *query);
        query->read_ts = read_ts;
        atomic_init(&query->references, 1);
        map_put(&part->open, id, query);
    }
    atomic_store_explicit(&query->fresh_until, fresh_until, memory_order_relaxed);
    pthread_mutex_unlock(&part->lock);
}

struct query_txn *queries_ended(struct queries *queries, struct slice id)
{
    struct queries_part *part = part_of(queries, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *query = map_remove(&part->open, id);
    pthread_mutex_unlock(&part->lock);
    return query;
}

struct query_txn *queries_use(struct queries *queries, struct slice id)
{
    struct queries_part *part = part_of(queries, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *query = map_get(&part->open, id);
    if (query != NULL)
        atomic_fetch_add_explicit(&query->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&part->lock);
    return query;
}

bool queries_has(struct queries *queries, struct slice id)
{
    struct queries_part *part = part_of(queries, id);
    pthread_mutex_lock(&part->lock);
    bool open = map_get(&part->open, id) != NULL;
    pthread_mutex_unlock(&part->lock);
    return open;
}

bool query_fresh(const struct query_txn *query, uint64_t clock)
{
    return clock < atomic_load_explicit(&query->fresh_until, memory_order_relaxed);
}

bool query_unref(struct query_txn *query)
{
    size_t before = atomic_fetch_sub_explicit(&query->references, 1, memory_order_acq_rel);
    REQUIRE(before > 0);
    if (before > 1)
        return false;
    catalog_unref(atomic_load_explicit(&query->catalog, memory_order_relaxed));
    mem_free(query);
    return true;
}

struct catalog *query_catalog(struct query_txn *query)
{
    struct catalog *catalog = atomic_load_explicit(&query->catalog, memory_order_acquire);
    return catalog == NULL ? NULL : catalog_ref(catalog);
}

/* Two may come with one: they are equal, and the first stays. */
void query_keep_catalog(struct query_txn *query, struct catalog *catalog)
{
    struct catalog *none = NULL;
    struct catalog *kept = catalog_ref(catalog);
    if (!atomic_compare_exchange_strong_explicit(&query->catalog, &none, kept, memory_order_release,
                                                 memory_order_relaxed))
        catalog_unref(kept);
}
