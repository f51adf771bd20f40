/* SPDX-License-Identifier: Apache-2.0 */
/* Partial updates; see merge.h. */
#include "json/merge.h"

#include "base/check.h"
#include "json/keys.h"
#include "json/write.h"

static void put_key(struct buf *buf, yyjson_val *key, bool *comma)
{
    if (*comma)
        buf_byte(buf, ',');
    *comma = true;
    buf_json_string(buf, json_slice(key));
    buf_byte(buf, ':');
}

/* Writes one member of both. Returns: whether it changed. */
static bool merge_value(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect)
{
    if (yyjson_is_obj(base) && yyjson_is_obj(patch))
        return json_merge(buf, base, patch, dialect);
    json_write(buf, patch, dialect);
    return !json_equal(base, patch);
}

bool json_merge(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect)
{
    REQUIRE(yyjson_is_obj(base) && yyjson_is_obj(patch));
    struct json_members of_base, of_patch;
    json_members_init(&of_base, base);
    json_members_init(&of_patch, patch);
    bool changed = false;
    bool comma = false;
    size_t i, max;
    yyjson_val *key, *value;
    buf_byte(buf, '{');
    yyjson_obj_foreach (base, i, max, key, value) {
        if (json_members_get(&of_base, json_slice(key)) != value)
            continue; /* a later member of this name replaces it */
        yyjson_val *other = json_members_get(&of_patch, json_slice(key));
        put_key(buf, key, &comma);
        if (other != NULL)
            changed |= merge_value(buf, value, other, dialect);
        else
            json_write(buf, value, dialect);
    }
    yyjson_obj_foreach (patch, i, max, key, value) {
        if (json_members_get(&of_base, json_slice(key)) != NULL ||
            json_members_get(&of_patch, json_slice(key)) != value)
            continue;
        put_key(buf, key, &comma);
        json_write(buf, value, dialect);
        changed = true;
    }
    buf_byte(buf, '}');
    json_members_deinit(&of_base);
    json_members_deinit(&of_patch);
    return changed;
}
