/* SPDX-License-Identifier: Apache-2.0 */
/* Partial updates; see merge.h. */
#include "json/merge.h"

#include "base/check.h"
#include "base/map.h"
#include "json/each.h"
#include "json/hash_order.h"
#include "json/name_set.h"
#include "json/write.h"

static void put_key(struct buf *buf, yyjson_val *key, bool *comma)
{
    if (*comma)
        buf_byte(buf, ',');
    *comma = true;
    buf_json_string(buf, json_slice(key));
    buf_byte(buf, ':');
}

/* Writes the merged value of a member of both objects. Returns: whether it differs from `base`. */
static bool merge_value(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect)
{
    if (yyjson_is_obj(base) && yyjson_is_obj(patch))
        return json_merge(buf, base, patch, dialect);
    json_write_hashed(buf, patch, dialect);
    return !json_equal(base, patch);
}

bool json_merge(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect)
{
    REQUIRE(yyjson_is_obj(base) && yyjson_is_obj(patch));
    struct json_members of_base, of_patch;
    struct hash_order order;
    json_members_init(&of_base, base);
    json_members_init(&of_patch, patch);
    bool changed = false;
    bool comma = false;
    size_t i, max;
    yyjson_val *key, *value;
    buf_byte(buf, '{');
    json_obj_foreach (base, i, max, key, value) {
        if (json_members_get(&of_base, json_slice(key)) != value)
            continue; /* a later member with this name replaces it */
        yyjson_val *other = json_members_get(&of_patch, json_slice(key));
        put_key(buf, key, &comma);
        if (other != NULL)
            changed |= merge_value(buf, value, other, dialect);
        else
            json_write(buf, value, dialect);
    }
    hash_order_init(&order, patch, &of_patch);
    for (i = 0; i < order.count; i++) {
        if (json_members_get(&of_base, json_slice(order.keys[i])) != NULL)
            continue;
        put_key(buf, order.keys[i], &comma);
        json_write_hashed(buf, json_value_of(order.keys[i]), dialect);
        changed = true;
    }
    hash_order_deinit(&order);
    buf_byte(buf, '}');
    json_members_deinit(&of_base);
    json_members_deinit(&of_patch);
    return changed;
}

/* --- Merge by a rule -------------------------------------------------------------------------- */

/* Returns: the key of an object with one member; SLICE_NONE for anything else. */
static struct slice only_key(yyjson_val *item)
{
    return yyjson_obj_size(item) > 0 ? json_slice(unsafe_yyjson_get_first(item)) : SLICE_NONE;
}

static void put_item(struct buf *buf, yyjson_val *item, enum dialect dialect, bool *comma)
{
    if (*comma)
        buf_byte(buf, ',');
    *comma = true;
    json_write(buf, item, dialect);
}

/* Merges two arrays of objects with one key each; see JSON_MERGE_NAMED. */
static void merge_named(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect)
{
    struct map named = MAP_INIT, met = MAP_INIT;
    bool comma = false;
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (patch, i, max, item)
        map_put(&named, only_key(item), item);
    buf_byte(buf, '[');
    json_arr_foreach (base, i, max, item) {
        yyjson_val *other = map_get(&named, only_key(item));
        map_put(&met, only_key(item), item);
        put_item(buf, other != NULL ? other : item, dialect, &comma);
    }
    json_arr_foreach (patch, i, max, item)
        if (map_get(&met, only_key(item)) == NULL)
            put_item(buf, item, dialect, &comma);
    buf_byte(buf, ']');
    map_deinit(&named);
    map_deinit(&met);
}

static void put_merged(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect,
                       json_merge_rule *rule, void *context, int how)
{
    if (how == JSON_MERGE_NAMED && yyjson_is_arr(base) && yyjson_is_arr(patch))
        merge_named(buf, base, patch, dialect);
    else if (how >= 0 && yyjson_is_obj(base) && yyjson_is_obj(patch))
        json_merge_by(buf, base, patch, dialect, rule, context, how);
    else
        json_write(buf, patch, dialect);
}

void json_merge_by(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect, json_merge_rule *rule,
                   void *context, int how)
{
    REQUIRE(yyjson_is_obj(base) && yyjson_is_obj(patch));
    struct json_members of_base, of_patch;
    json_members_init(&of_base, base);
    json_members_init(&of_patch, patch);
    bool comma = false;
    size_t i, max;
    yyjson_val *key, *value;
    buf_byte(buf, '{');
    json_obj_foreach (base, i, max, key, value) {
        yyjson_val *other = json_members_get(&of_patch, json_slice(key));
        put_key(buf, key, &comma);
        if (other != NULL)
            put_merged(buf, value, other, dialect, rule, context, rule(context, how, json_slice(key), value, other));
        else
            json_write(buf, value, dialect);
    }
    json_obj_foreach (patch, i, max, key, value) {
        if (json_members_get(&of_base, json_slice(key)) != NULL)
            continue;
        put_key(buf, key, &comma);
        json_write(buf, value, dialect);
    }
    buf_byte(buf, '}');
    json_members_deinit(&of_base);
    json_members_deinit(&of_patch);
}
