/* SPDX-License-Identifier: Apache-2.0 */
/* Hash sets and indexes of member names; see name_set.h. */
#include "json/name_set.h"

#include "base/alloc.h"
#include "base/siphash.h"
#include "json/each.h"

struct json_name_set_slot {
    size_t object; /* number of the object plus one; 0: empty slot */
    struct slice name;
};

/* Objects with fewer members are scanned, which is faster than building a table. */
enum { SMALL_OBJECT = 16 };

void json_name_set_deinit(struct json_name_set *set)
{
    mem_free(set->slots);
    *set = JSON_NAME_SET_INIT;
}

static struct json_name_set_slot *find_slot(const struct json_name_set *set, size_t object, struct slice name)
{
    size_t mask = set->size - 1;
    uint64_t hash = siphash_keyed(name) ^ (object * 0x9e3779b97f4a7c15u);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct json_name_set_slot *slot = &set->slots[i];
        if (slot->object == 0 || (slot->object == object + 1 && slice_equal(slot->name, name)))
            return slot;
    }
}

static void grow_slots(struct json_name_set *set)
{
    struct json_name_set old = *set;
    set->size = old.size == 0 ? 64 : old.size * 2;
    set->slots = mem_zalloc(set->size * sizeof *set->slots);
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].object != 0)
            *find_slot(set, old.slots[i].object - 1, old.slots[i].name) = old.slots[i];
    }
    mem_free(old.slots);
}

bool json_name_set_add(struct json_name_set *set, size_t object, struct slice name)
{
    if (set->count * 2 >= set->size)
        grow_slots(set);
    struct json_name_set_slot *slot = find_slot(set, object, name);
    if (slot->object != 0)
        return false;
    *slot = (struct json_name_set_slot){object + 1, name};
    set->count++;
    return true;
}

static struct slice key_name(yyjson_val *key)
{
    return (struct slice){unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key)};
}

/* Returns: the slot of a name in the table: the one with its key, else the empty one for it. */
static yyjson_val **find_member(const struct json_members *members, struct slice name)
{
    size_t mask = members->size - 1;
    size_t i = siphash_keyed(name) & mask;
    while (members->table[i] != NULL && !slice_equal(key_name(members->table[i]), name))
        i = (i + 1) & mask;
    return &members->table[i];
}

void json_members_init(struct json_members *members, yyjson_val *object)
{
    *members = (struct json_members){object, NULL, 0};
    size_t count = yyjson_obj_size(object);
    if (count < SMALL_OBJECT)
        return;
    members->size = 64;
    while (members->size < count * 2)
        members->size *= 2;
    members->table = mem_zalloc(members->size * sizeof *members->table);
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, max, key, value)
        *find_member(members, key_name(key)) = key;
}

void json_members_deinit(struct json_members *members)
{
    mem_free(members->table);
    members->table = NULL;
}

yyjson_val *json_members_get(const struct json_members *members, struct slice name)
{
    if (members->table != NULL) {
        yyjson_val *key = *find_member(members, name);
        return key == NULL ? NULL : key + 1;
    }
    yyjson_val *found = NULL;
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (members->object, i, max, key, value) {
        if (slice_equal(key_name(key), name))
            found = value;
    }
    return found;
}
