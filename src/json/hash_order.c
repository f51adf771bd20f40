/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a java.util.HashMap; see hash_order.h. */
#include "json/hash_order.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "json/each.h"
#include "json/write.h"

/* --- Hashes ------------------------------------------------------------------------------------------------------- */

/* One step of String.hashCode(). */
static uint32_t hash_unit(uint32_t hash, uint32_t unit)
{
    return 31 * hash + unit;
}

uint32_t hash_order_hash(struct slice name)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < name.len;) {
        unsigned char lead = (unsigned char)name.data[i++];
        uint32_t point = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1fu : lead < 0xf0 ? lead & 0xfu : lead & 7u;
        for (; i < name.len && ((unsigned char)name.data[i] & 0xc0) == 0x80; i++)
            point = point << 6 | ((unsigned char)name.data[i] & 0x3fu);
        if (point >= 0x10000) {
            hash = hash_unit(hash, 0xd7c0 + (point >> 10));
            point = 0xdc00 | (point & 0x3ff);
        }
        hash = hash_unit(hash, point);
    }
    return hash ^ hash >> 16;
}

uint32_t hash_order_buckets(size_t count)
{
    uint32_t size = 16; /* with a load factor of 0.75 */
    while (count > size / 4 * 3)
        size *= 2;
    return size;
}

/* --- Members of an object ----------------------------------------------------------------------------------------- */

struct hash_place {
    uint32_t bucket;
    uint32_t position; /* in the object */
    yyjson_val *key;
};

static int compare_places(const void *a, const void *b)
{
    const struct hash_place *one = a, *other = b;
    if (one->bucket != other->bucket)
        return one->bucket < other->bucket ? -1 : 1;
    return one->position < other->position ? -1 : one->position > other->position;
}

void hash_order_init(struct hash_order *order, yyjson_val *object, const struct json_members *members)
{
    struct hash_place *places = mem_alloc((yyjson_obj_size(object) + 1) * sizeof *places);
    size_t i, max;
    yyjson_val *key, *value;
    order->count = 0;
    json_obj_foreach (object, i, max, key, value) {
        if (json_members_get(members, json_slice(key)) != value)
            continue;
        places[order->count] = (struct hash_place){
            .bucket = hash_order_hash(json_slice(key)), .position = (uint32_t)order->count, .key = key};
        order->count++;
    }
    uint32_t mask = hash_order_buckets(order->count) - 1;
    for (i = 0; i < order->count; i++)
        places[i].bucket &= mask;
    qsort(places, order->count, sizeof *places, compare_places);
    order->keys = mem_alloc((order->count + 1) * sizeof(yyjson_val *));
    for (i = 0; i < order->count; i++)
        order->keys[i] = places[i].key;
    mem_free(places);
}

void hash_order_deinit(struct hash_order *order)
{
    mem_free(order->keys);
}

static void write_object(struct buf *buf, yyjson_val *object, enum dialect dialect)
{
    struct json_members members;
    struct hash_order order;
    json_members_init(&members, object);
    hash_order_init(&order, object, &members);
    buf_byte(buf, '{');
    for (size_t i = 0; i < order.count; i++) {
        if (i > 0)
            buf_byte(buf, ',');
        buf_json_string(buf, json_slice(order.keys[i]));
        buf_byte(buf, ':');
        json_write_hashed(buf, json_value_of(order.keys[i]), dialect);
    }
    buf_byte(buf, '}');
    hash_order_deinit(&order);
    json_members_deinit(&members);
}

void json_write_hashed(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    size_t i, max;
    yyjson_val *item;
    if (yyjson_is_obj(value)) {
        write_object(buf, value, dialect);
        return;
    }
    if (!yyjson_is_arr(value)) {
        json_write(buf, value, dialect);
        return;
    }
    buf_byte(buf, '[');
    json_arr_foreach (value, i, max, item) {
        if (i > 0)
            buf_byte(buf, ',');
        json_write_hashed(buf, item, dialect);
    }
    buf_byte(buf, ']');
}
