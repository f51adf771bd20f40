/* SPDX-License-Identifier: Apache-2.0 */
/* Open query transactions; see queries.h. */
#include "journal/queries.h"

#include "base/alloc.h"

struct query {
    tl_ts read_ts;
    tl_ts good_until;
};

void queries_init(struct queries *queries)
{
    pthread_mutex_init(&queries->lock, NULL);
    queries->open = MAP_INIT;
}

void queries_deinit(struct queries *queries)
{
    size_t position = 0;
    struct slice id;
    void *query;
    while (map_next(&queries->open, &position, &id, &query))
        mem_free(query);
    map_deinit(&queries->open);
    pthread_mutex_destroy(&queries->lock);
}

void queries_seen(struct queries *queries, struct slice id, tl_ts read_ts, uint64_t timeout_us, tl_ts now)
{
    pthread_mutex_lock(&queries->lock);
    struct query *query = map_get(&queries->open, id);
    if (query == NULL) {
        query = mem_alloc(sizeof *query);
        map_put(&queries->open, id, query);
    }
    *query = (struct query){read_ts, now + timeout_us / 4};
    pthread_mutex_unlock(&queries->lock);
}

void queries_ended(struct queries *queries, struct slice id)
{
    pthread_mutex_lock(&queries->lock);
    mem_free(map_remove(&queries->open, id));
    pthread_mutex_unlock(&queries->lock);
}

bool queries_find(struct queries *queries, struct slice id, tl_ts now, tl_ts *ret_ts)
{
    pthread_mutex_lock(&queries->lock);
    const struct query *query = map_get(&queries->open, id);
    bool good = query != NULL && now < query->good_until;
    if (good)
        *ret_ts = query->read_ts;
    pthread_mutex_unlock(&queries->lock);
    return good;
}
