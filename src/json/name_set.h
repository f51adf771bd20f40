/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash sets of member names, to detect duplicates, and hash indexes of members, to find them in
 * constant time. Private to the json layer.
 */
#ifndef TL_JSON_NAME_SET_H
#define TL_JSON_NAME_SET_H

#include "base/slice.h"
#include "json/value.h"

/* A set of (object, name) pairs; the caller numbers the objects. */
struct json_name_set {
    struct json_name_set_slot *slots; /* open addressing; NULL if size is 0 */
    size_t count;
    size_t size; /* slots: a power of two, or 0 */
};

#define JSON_NAME_SET_INIT ((struct json_name_set){NULL, 0, 0})

void json_name_set_deinit(struct json_name_set *set);

/*
 * Adds a name.
 * Assumes: the bytes of `name` outlive the set.
 * Returns: false if this object already had the name.
 */
bool json_name_set_add(struct json_name_set *set, size_t object, struct slice name);

/* A hash index of the members of one object. Small objects have no table and are scanned. */
struct json_members {
    yyjson_val *object;
    yyjson_val **table; /* keys, open addressing; NULL for small objects */
    size_t size;        /* slots of the table, a power of two; 0 without one */
};

void json_members_init(struct json_members *members, yyjson_val *object);
void json_members_deinit(struct json_members *members);
/* Returns: the value of the last member with this name, or NULL. */
yyjson_val *json_members_get(const struct json_members *members, struct slice name);

#endif
