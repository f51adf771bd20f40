/* SPDX-License-Identifier: Apache-2.0 */
#include "query/named.h"

struct named_query {
    struct slice name;
    const struct bound_query *matcher;
    uint32_t hash; /* of the name, folded as by java.util.HashMap */
};

/* One step of String.hashCode(). */
static uint32_t hash_unit(uint32_t hash, uint32_t unit)
{
    return 31 * hash + unit;
}

/*
 * Returns: Java's String.hashCode(), over UTF-16 code units, with the upper half folded into the
 * lower as HashMap does.
 */
static uint32_t java_hash(struct slice text)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < text.len;) {
        unsigned char lead = (unsigned char)text.data[i++];
        uint32_t point = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1fu : lead < 0xf0 ? lead & 0xfu : lead & 7u;
        for (; i < text.len && ((unsigned char)text.data[i] & 0xc0) == 0x80; i++)
            point = point << 6 | ((unsigned char)text.data[i] & 0x3fu);
        if (point >= 0x10000) {
            hash = hash_unit(hash, 0xd7c0 + (point >> 10));
            point = 0xdc00 | (point & 0x3ff);
        }
        hash = hash_unit(hash, point);
    }
    return hash ^ hash >> 16;
}

/* Returns: the number of buckets of a Java HashMap with `count` names. Its load factor is 0.75. */
static uint32_t table_size(size_t count)
{
    uint32_t size = 16;
    while (count > size / 4 * 3)
        size *= 2;
    return size;
}

/* Sorts by bucket, in Java's iteration order. Insertion order is retained within a bucket. */
static void sort_by_bucket(struct named_list *list)
{
    uint32_t mask = table_size(list->count) - 1;
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
    list->items[list->count++] = (struct named_query){.name = name, .matcher = matcher, .hash = java_hash(name)};
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
