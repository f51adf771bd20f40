/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of the best hits: a heap with the worst hit on top, which a better hit replaces.
 * See sort.h.
 */
#include "query/sort.h"

#include "base/check.h"

#include <stdlib.h>

void hit_queue_init(struct hit_queue *queue, const struct sort_key *keys, size_t key_count, size_t limit)
{
    *queue = (struct hit_queue){.keys = keys, .key_count = key_count, .limit = limit};
}

void hit_queue_deinit(struct hit_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        mem_free(queue->items[i]);
    mem_free(queue->items);
    map_deinit(&queue->groups);
    *queue = (struct hit_queue){.keys = NULL};
}

struct queued_hit *queued_hit_copy(uint32_t index, float score, struct slice key, const struct sort_value *values,
                                   size_t count, struct slice group)
{
    size_t bytes = sizeof(struct queued_hit) + count * sizeof *values + key.len + group.len;
    for (size_t i = 0; i < count; i++)
        bytes += sort_kind_is_bytes(values[i].kind) ? values[i].bytes.len : 0;
    struct queued_hit *hit = mem_alloc(bytes);
    char *at = (char *)&hit->values[count];
    *hit = (struct queued_hit){.index = index, .score = score, .bytes = bytes, .value_count = count};
    hit->key = (struct slice){memcpy(at, key.data, key.len), key.len};
    at += key.len;
    for (size_t i = 0; i < count; i++) {
        hit->values[i] = values[i];
        if (sort_kind_is_bytes(values[i].kind) && values[i].bytes.len > 0) {
            hit->values[i].bytes.data = memcpy(at, values[i].bytes.data, values[i].bytes.len);
            at += values[i].bytes.len;
        }
    }
    if (group.data != NULL) {
        hit->group = slice_make(at, group.len);
        if (group.len > 0)
            memcpy(at, group.data, group.len);
        hit->bytes += group.len + sizeof(void *) * 8; /* about what the map of groups takes */
    }
    return hit;
}

static int compare_candidate(const struct hit_queue *queue, uint32_t index, float score, struct slice key,
                             const struct sort_value *values, const struct queued_hit *b)
{
    int order = queue->key_count > 0 ? sort_compare(queue->keys, queue->key_count, values, b->values)
                                     : (score < b->score) - (score > b->score);
    if (order == 0)
        order = (index > b->index) - (index < b->index);
    return order != 0 ? order : slice_compare(key, b->key);
}

/* Compares two hits in the total order. Returns: <0, 0, >0. */
static int compare_hits(const struct hit_queue *queue, const struct queued_hit *a, const struct queued_hit *b)
{
    return compare_candidate(queue, a->index, a->score, a->key, a->values, b);
}

static void set_at(struct hit_queue *queue, size_t at, struct queued_hit *hit)
{
    queue->items[at] = hit;
    hit->heap_index = at;
}

static void swap_hits(struct hit_queue *queue, size_t a, size_t b)
{
    struct queued_hit *moved = queue->items[a];
    set_at(queue, a, queue->items[b]);
    set_at(queue, b, moved);
}

static void sift_down(struct hit_queue *queue, size_t at)
{
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < queue->count; child++) {
            if (compare_hits(queue, queue->items[child], queue->items[worst]) > 0)
                worst = child;
        }
        if (worst == at)
            return;
        swap_hits(queue, at, worst);
        at = worst;
    }
}

static void sift_up(struct hit_queue *queue, size_t at)
{
    while (at > 0 && compare_hits(queue, queue->items[at], queue->items[(at - 1) / 2]) > 0) {
        swap_hits(queue, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void add_hit(struct hit_queue *queue, struct queued_hit *hit)
{
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity > 0 ? queue->capacity * 2 : 16;
        queue->items = mem_realloc(queue->items, queue->capacity * sizeof(struct queued_hit *));
    }
    set_at(queue, queue->count++, hit);
    queue->bytes += hit->bytes;
    sift_up(queue, queue->count - 1);
}

static void evict_worst(struct hit_queue *queue)
{
    queue->bytes -= queue->items[0]->bytes;
    if (queue->items[0]->group.data != NULL)
        (void)map_remove(&queue->groups, queue->items[0]->group);
    mem_free(queue->items[0]);
    if (--queue->count == 0)
        return;
    set_at(queue, 0, queue->items[queue->count]);
    sift_down(queue, 0);
}

void hit_queue_offer(struct hit_queue *queue, uint32_t index, float score, struct slice key,
                     const struct sort_value *values)
{
    if (queue->limit == 0)
        return;
    if (queue->after != NULL && compare_candidate(queue, index, score, key, values, queue->after) <= 0)
        return;
    if (queue->count == queue->limit && compare_candidate(queue, index, score, key, values, queue->items[0]) >= 0)
        return;
    add_hit(queue, queued_hit_copy(index, score, key, values, queue->key_count, SLICE_NONE));
    if (queue->count > queue->limit)
        evict_worst(queue);
}

/*
 * Replaces the hit of a group by a better one, which can only sink in the heap: the worst hits are
 * on top.
 */
static void replace_hit(struct hit_queue *queue, struct queued_hit *old, struct queued_hit *better)
{
    size_t at = old->heap_index;
    queue->bytes += better->bytes;
    queue->bytes -= old->bytes;
    (void)map_put(&queue->groups, better->group, better);
    set_at(queue, at, better);
    mem_free(old);
    sift_down(queue, at);
}

void hit_queue_offer_group(struct hit_queue *queue, uint32_t index, float score, struct slice key,
                           const struct sort_value *values, struct slice group)
{
    if (queue->limit == 0)
        return;
    struct queued_hit *old = map_get(&queue->groups, group);
    const struct queued_hit *worst = old != NULL ? old : queue->count == queue->limit ? queue->items[0] : NULL;
    if (worst != NULL && compare_candidate(queue, index, score, key, values, worst) >= 0)
        return;
    struct queued_hit *hit = queued_hit_copy(index, score, key, values, queue->key_count, group);
    if (old != NULL) {
        replace_hit(queue, old, hit);
        return;
    }
    add_hit(queue, hit);
    (void)map_put(&queue->groups, hit->group, hit);
    if (queue->count > queue->limit)
        evict_worst(queue);
}

static int by_order(const void *a, const void *b, void *context)
{
    return compare_hits(context, *(struct queued_hit *const *)a, *(struct queued_hit *const *)b);
}

void hit_queue_finish(struct hit_queue *queue)
{
    if (queue->count > 1)
        qsort_r(queue->items, queue->count, sizeof *queue->items, by_order, queue);
}
