/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Member names in the iteration order of a java.util.HashMap.
 *
 * Elasticsearch reads some objects into such a map and shows them in its order, so that the order is
 * a part of its replies: the names of matched queries, the new members of a partial update. The
 * order is by bucket, and by insertion within a bucket. (Java turns a bucket of nine names into a
 * tree, whose order differs; that is not repeated here.)
 */
#ifndef TL_JSON_HASH_ORDER_H
#define TL_JSON_HASH_ORDER_H

#include <stdint.h>

#include "base/buf.h"
#include "json/json.h"
#include "json/name_set.h"

/* Returns: Java's String.hashCode() of UTF-8, its upper half folded into the lower as HashMap does. */
uint32_t hash_order_hash(struct slice name);

/* Returns: the number of buckets of a map into which `count` names were put; a power of two. */
uint32_t hash_order_buckets(size_t count);

/* The members of an object in this order. */
struct hash_order {
    yyjson_val **keys;
    size_t count;
};

/*
 * Sorts the members of an object; of members with one name it takes the one that `members` has.
 * Assumes: `members` is of this object. Owns: hash_order_deinit() frees the keys.
 */
void hash_order_init(struct hash_order *order, yyjson_val *object, const struct json_members *members);
void hash_order_deinit(struct hash_order *order);

/* Appends a value as json_write() does, with the members of each object in it in this order. */
void json_write_hashed(struct buf *buf, yyjson_val *value, enum dialect dialect);

#endif
