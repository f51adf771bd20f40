/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of member names, for noticing duplicates and finding members of large objects in constant time.
 * Of the json module only.
 */
#ifndef TL_JSON_NAME_SET_H
#define TL_JSON_NAME_SET_H

#include "base/slice.h"

#include <yyjson.h>

/* Names seen, each within an object that the caller numbers. */
struct json_name_set {
    struct json_name_set_slot *slots; /* open addressing; NULL while empty */
    size_t count;
    size_t size; /* power of two, or 0 */
};

#define JSON_NAME_SET_INIT ((struct json_name_set){NULL, 0, 0})

void json_name_set_deinit(struct json_name_set *keys);

/* Adds a name. Returns: false where this object had it already. The bytes of `name` must stay. */
bool json_name_set_add(struct json_name_set *keys, size_t object, struct slice name);

/* An index over the members of one object; small ones are searched as they are. */
struct json_members {
    yyjson_val *object;
    yyjson_val **table; /* keys, open addressing; NULL for small objects */
    size_t size;
};

void json_members_init(struct json_members *members, yyjson_val *object);
void json_members_deinit(struct json_members *members);
/* Returns: the value of the last member of this name, or NULL. */
yyjson_val *json_members_get(const struct json_members *members, struct slice name);

#endif
