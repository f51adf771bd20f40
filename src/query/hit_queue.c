/* SPDX-License-Identifier: Apache-2.0 */
/* The best hits seen so far: a heap with the worst on top, so that a better one takes its place. */
#include "query/sort.h"

#include "base/check.h"

#include <stdlib.h>

void hit_queue_init(struct hit_queue *kept, const struct sort_key *keys, size_t key_count, size_t limit)
{
    *kept = (struct hit_queue){.keys = keys, .key_count = key_count, .limit = limit};
}

void hit_queue_deinit(struct hit_queue *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        mem_free(kept->items[i]);
    mem_free(kept->items);
    map_deinit(&kept->groups);
    *kept = (struct hit_queue){.keys = NULL};
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
        hit->bytes += group.len + sizeof(void *) * 8; /* the map has it, too */
    }
    return hit;
}

static int compare(const struct hit_queue *kept, uint32_t index, float score, struct slice key,
                   const struct sort_value *values, const struct queued_hit *b)
{
    int order = kept->key_count > 0 ? sort_compare(kept->keys, kept->key_count, values, b->values)
                                    : (score < b->score) - (score > b->score);
    if (order == 0)
        order = (index > b->index) - (index < b->index);
    return order != 0 ? order : slice_compare(key, b->key);
}

/* <0, 0, >0: the total order. */
static int compare_hits(const struct hit_queue *kept, const struct queued_hit *a, const struct queued_hit *b)
{
    return compare(kept, a->index, a->score, a->key, a->values, b);
}

static void place(struct hit_queue *kept, size_t at, struct queued_hit *hit)
{
    kept->items[at] = hit;
    hit->heap_index = at;
}

static void swap(struct hit_queue *kept, size_t a, size_t b)
{
    struct queued_hit *moved = kept->items[a];
    place(kept, a, kept->items[b]);
    place(kept, b, moved);
}

static void sink(struct hit_queue *kept, size_t at)
{
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < kept->count; child++) {
            if (compare_hits(kept, kept->items[child], kept->items[worst]) > 0)
                worst = child;
        }
        if (worst == at)
            return;
        swap(kept, at, worst);
        at = worst;
    }
}

static void rise(struct hit_queue *kept, size_t at)
{
    while (at > 0 && compare_hits(kept, kept->items[at], kept->items[(at - 1) / 2]) > 0) {
        swap(kept, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void add(struct hit_queue *kept, struct queued_hit *hit)
{
    if (kept->count == kept->capacity) {
        kept->capacity = kept->capacity > 0 ? kept->capacity * 2 : 16;
        kept->items = mem_realloc(kept->items, kept->capacity * sizeof(struct queued_hit *));
    }
    place(kept, kept->count++, hit);
    kept->bytes += hit->bytes;
    rise(kept, kept->count - 1);
}

static void drop_last(struct hit_queue *kept)
{
    kept->bytes -= kept->items[0]->bytes;
    if (kept->items[0]->group.data != NULL)
        (void)map_remove(&kept->groups, kept->items[0]->group);
    mem_free(kept->items[0]);
    if (--kept->count == 0)
        return;
    place(kept, 0, kept->items[kept->count]);
    sink(kept, 0);
}

void hit_queue_offer(struct hit_queue *kept, uint32_t index, float score, struct slice key,
                     const struct sort_value *values)
{
    if (kept->limit == 0)
        return;
    if (kept->after != NULL && compare(kept, index, score, key, values, kept->after) <= 0)
        return;
    if (kept->count == kept->limit && compare(kept, index, score, key, values, kept->items[0]) >= 0)
        return;
    add(kept, queued_hit_copy(index, score, key, values, kept->key_count, SLICE_NONE));
    if (kept->count > kept->limit)
        drop_last(kept);
}

/* A better hit of a group that is kept: the old one's place is too high up the heap for it, never too low. */
static void replace(struct hit_queue *kept, struct queued_hit *old, struct queued_hit *better)
{
    size_t at = old->heap_index;
    kept->bytes += better->bytes;
    kept->bytes -= old->bytes;
    (void)map_put(&kept->groups, better->group, better);
    place(kept, at, better);
    mem_free(old);
    sink(kept, at);
}

void hit_queue_offer_group(struct hit_queue *kept, uint32_t index, float score, struct slice key,
                           const struct sort_value *values, struct slice group)
{
    if (kept->limit == 0)
        return;
    struct queued_hit *old = map_get(&kept->groups, group);
    const struct queued_hit *rival = old != NULL ? old : kept->count == kept->limit ? kept->items[0] : NULL;
    if (rival != NULL && compare(kept, index, score, key, values, rival) >= 0)
        return;
    struct queued_hit *hit = queued_hit_copy(index, score, key, values, kept->key_count, group);
    if (old != NULL) {
        replace(kept, old, hit);
        return;
    }
    add(kept, hit);
    (void)map_put(&kept->groups, hit->group, hit);
    if (kept->count > kept->limit)
        drop_last(kept);
}

static int by_order(const void *a, const void *b, void *context)
{
    return compare_hits(context, *(struct queued_hit *const *)a, *(struct queued_hit *const *)b);
}

void hit_queue_finish(struct hit_queue *kept)
{
    if (kept->count > 1)
        qsort_r(kept->items, kept->count, sizeof *kept->items, by_order, kept);
}
