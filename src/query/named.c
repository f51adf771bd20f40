/* SPDX-License-Identifier: Apache-2.0 */
#include "query/named.h"

#include "json/hash_order.h"

struct named_query {
    struct slice name;
    const struct bound_query *matcher;
    uint32_t hash; /* of the name (json/hash_order.h) */
};

/* Sorts by bucket, in Java's iteration order. Insertion order is retained within a bucket. */
static void sort_by_bucket(struct named_list *list)
{
    uint32_t mask = hash_order_buckets(list->count) - 1;
    for (size_t i = 1; i < list->count; i++) {
        struct named_query moved = list->items[i];
        size_t at = i;
        for (; at > 0 && (list->items[at - 1].hash & mask) > (moved.hash & mask); at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = moved;
    }
}

void named_put(struct named_list *list, struct arena *arena, struct slice name, const struct bound_query *matcher)
{
    for (size_t i = 0; i < list->count; i++) {
        if (slice_equal(list->items[i].name, name)) {
            list->items[i].matcher = matcher;
            return;
        }
    }
    list->items = arena_grow(arena, list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = (struct named_query){.name = name, .matcher = matcher, .hash = hash_order_hash(name)};
    sort_by_bucket(list);
}

void named_write(const struct named_list *list, struct match_doc *match_doc, struct buf *buf)
{
    bool begun = false;
    float score;
    for (size_t i = 0; i < list->count; i++) {
        if (!bound_query_match(list->items[i].matcher, match_doc, &score))
            continue;
        if (begun)
            buf_byte(buf, ',');
        else
            buf_lit(buf, ",\"matched_queries\":[");
        begun = true;
        buf_json_string(buf, list->items[i].name);
    }
    if (begun)
        buf_byte(buf, ']');
}
