/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of many objects at once; see merge.h. */
#include "base/arena.h"
#include "base/check.h"
#include "base/map.h"
#include "json/each.h"
#include "json/hash_order.h"
#include "json/merge.h"
#include "json/name_set.h"
#include "json/write.h"

/* Objects of fewer members are scanned. */
enum { SCANNED = 8 };

/* A value that a member has in one of the objects, and those of the objects after it. */
struct version {
    yyjson_val *value;
    struct version *next;
};

struct member {
    struct slice key;
    struct version *first, *last;
    bool hashed; /* its first value is written in hash order: it was new to an object, or was within such a value */
};

/* The members of a merged object, in their order. */
struct members {
    struct member *items;
    size_t count, capacity;
    struct map positions; /* from 1 on; empty with up to SCANNED members */
};

struct merging {
    struct buf *buf;
    enum dialect dialect;
    json_merge_rule *rule; /* NULL: that of json_merge() */
    void *context;
    struct arena arena;
};

static struct member *find_member(struct members *members, struct slice key)
{
    if (members->count > SCANNED) {
        uintptr_t position = (uintptr_t)map_get(&members->positions, key);
        return position == 0 ? NULL : &members->items[position - 1];
    }
    for (size_t i = 0; i < members->count; i++)
        if (slice_equal(members->items[i].key, key))
            return &members->items[i];
    return NULL;
}

static struct member *add_member(struct merging *merging, struct members *members, struct slice key, bool hashed)
{
    members->items =
        arena_grow(&merging->arena, members->items, members->count, &members->capacity, sizeof(*members->items));
    struct member *member = &members->items[members->count++];
    *member = (struct member){.key = key, .hashed = hashed};
    if (members->count > SCANNED)
        for (size_t i = members->count == SCANNED + 1 ? 0 : members->count - 1; i < members->count; i++)
            map_put(&members->positions, members->items[i].key, (void *)(i + 1));
    return member;
}

static void add_version(struct merging *merging, struct member *member, yyjson_val *value)
{
    struct version *version = arena_alloc(&merging->arena, sizeof(*version));

    *version = (struct version){.value = value};
    if (member->last == NULL)
        member->first = version;
    else
        member->last->next = version;
    member->last = version;
}

/* Adds a new member, or a version of one. */
static void add_value(struct merging *merging, struct members *members, yyjson_val *key, bool hashed)
{
    struct member *member = find_member(members, json_slice(key));

    if (member == NULL)
        member = add_member(merging, members, json_slice(key), hashed);
    add_version(merging, member, json_value_of(key));
}

/* Adds the members of an object; `by_hash`: those that are new in hash order, else in its own. */
static void add_object(struct merging *merging, struct members *members, yyjson_val *object, bool by_hash)
{
    struct json_members of_object;
    size_t i, max;
    yyjson_val *key, *value;

    json_members_init(&of_object, object);
    if (by_hash) {
        struct hash_order order;
        hash_order_init(&order, object, &of_object);
        for (i = 0; i < order.count; i++)
            add_value(merging, members, order.keys[i], true);
        hash_order_deinit(&order);
    } else {
        json_obj_foreach (object, i, max, key, value)
            if (json_members_get(&of_object, json_slice(key)) == value) /* else a later one replaces it */
                add_value(merging, members, key, false);
    }
    json_members_deinit(&of_object);
}

static void put_comma(struct buf *buf, bool *comma)
{
    if (*comma)
        buf_byte(buf, ',');
    *comma = true;
}

/* --- Arrays of objects with one key each -------------------------------------------------------------------------- */

/* Returns: the key of an object with one member; empty for anything else. */
static struct slice only_key(yyjson_val *item)
{
    struct slice key = yyjson_obj_size(item) > 0 ? json_slice(unsafe_yyjson_get_first(item)) : SLICE_NONE;

    return key.data == NULL ? SLICE_LIT("") : key;
}

/* An item of the merged array. */
struct named {
    yyjson_val *item;
    struct named *next;     /* in the array */
    struct named *same;     /* one before it of its key */
    size_t added, replaced; /* by which of the arrays, the latter with all in `same` */
};

/* Merges one more array; by_key: the last struct named of each key. Returns: where the next item is linked. */
static struct named **add_array(struct merging *merging, struct map *by_key, struct named **end, yyjson_val *array,
                                size_t position)
{
    struct map last = MAP_INIT;
    size_t i, max;
    yyjson_val *item;

    json_arr_foreach (array, i, max, item)
        map_put(&last, only_key(item), item);
    json_arr_foreach (array, i, max, item) {
        struct named *known = map_get(by_key, only_key(item));
        if (known == NULL || known->added == position) {
            struct named *added = arena_alloc(&merging->arena, sizeof(*added));
            *added = (struct named){.item = item, .same = known, .added = position, .replaced = position};
            map_put(by_key, only_key(item), added);
            *end = added;
            end = &added->next;
        } else if (known->replaced < position) {
            known->replaced = position;
            for (struct named *each = known; each != NULL; each = each->same)
                each->item = map_get(&last, only_key(item));
        }
    }
    map_deinit(&last);
    return end;
}

/* Writes arrays merged by JSON_MERGE_NAMED. */
static void write_named(struct merging *merging, const struct version *versions)
{
    struct map by_key = MAP_INIT;
    struct named *items = NULL, **end = &items;
    bool comma = false;
    size_t position = 0;

    for (; versions != NULL; versions = versions->next)
        end = add_array(merging, &by_key, end, versions->value, position++);
    buf_byte(merging->buf, '[');
    for (struct named *each = items; each != NULL; each = each->next) {
        put_comma(merging->buf, &comma);
        json_write(merging->buf, each->item, merging->dialect);
    }
    buf_byte(merging->buf, ']');
    map_deinit(&by_key);
}

/* --- Objects ------------------------------------------------------------------------------------------------------ */

static void write_objects(struct merging *merging, const struct version *versions, bool hashed, int how);

/* How two versions of a member are merged, of which the later one is not the first. */
static int how_merged(struct merging *merging, int how, struct slice key, yyjson_val *base, yyjson_val *patch)
{
    int inner = merging->rule == NULL ? 0 : merging->rule(merging->context, how, key, base, patch);
    bool lists = yyjson_is_arr(base) && yyjson_is_arr(patch);
    bool objects = yyjson_is_obj(base) && yyjson_is_obj(patch);

    return (inner == JSON_MERGE_NAMED && lists) || (inner >= 0 && objects) ? inner : JSON_MERGE_REPLACE;
}

/* Writes the last version of a member that replaces those before it, with the later ones merged into it. */
static void write_member(struct merging *merging, const struct member *member, int how)
{
    const struct version *from = member->first;
    bool hashed = member->hashed;
    int inner = JSON_MERGE_REPLACE;

    for (const struct version *each = from; each->next != NULL; each = each->next) {
        inner = how_merged(merging, how, member->key, each->value, each->next->value);
        if (inner != JSON_MERGE_REPLACE)
            continue;
        from = each->next;
        hashed = merging->rule == NULL;
    }
    buf_json_string(merging->buf, member->key);
    buf_byte(merging->buf, ':');
    if (from->next != NULL && inner == JSON_MERGE_NAMED)
        write_named(merging, from);
    else if (from->next != NULL)
        write_objects(merging, from, hashed, inner);
    else if (hashed)
        json_write_hashed(merging->buf, from->value, merging->dialect);
    else
        json_write(merging->buf, from->value, merging->dialect);
}

/* Writes objects merged; `hashed`: the members of the first are in hash order, and all in them. */
static void write_objects(struct merging *merging, const struct version *versions, bool hashed, int how)
{
    struct members members = {.positions = MAP_INIT};
    bool comma = false;

    for (const struct version *each = versions; each != NULL; each = each->next)
        add_object(merging, &members, each->value, each == versions ? hashed : merging->rule == NULL);
    buf_byte(merging->buf, '{');
    for (size_t i = 0; i < members.count; i++) {
        put_comma(merging->buf, &comma);
        write_member(merging, &members.items[i], how);
    }
    buf_byte(merging->buf, '}');
    map_deinit(&members.positions);
}

void json_merge_list(struct buf *buf, yyjson_val *const *objects, size_t count, enum dialect dialect,
                     json_merge_rule *rule, void *context, int how)
{
    REQUIRE(count > 0);
    struct merging merging = {.buf = buf, .dialect = dialect, .rule = rule, .context = context, .arena = ARENA_INIT};
    struct member all = {0};

    for (size_t i = 0; i < count; i++) {
        REQUIRE(yyjson_is_obj(objects[i]));
        add_version(&merging, &all, objects[i]);
    }
    write_objects(&merging, all.first, false, how);
    arena_deinit(&merging.arena);
}
