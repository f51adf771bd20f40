/* SPDX-License-Identifier: Apache-2.0 */
/* References in queries; see references.h. */
#include "json/references.h"

#include "json/each.h"
#include "json/json.h"
#include "json/write.h"

void json_references_add(struct json_references *list, struct arena *arena, const struct json_reference *refer)
{
    list->items = arena_grow(arena, list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = *refer;
}

/*
 * Returns: a member as text, numbers and booleans in JSON form; SLICE_NONE if absent or no scalar.
 */
static struct slice text_of(yyjson_val *object, const char *name, struct arena *arena)
{
    yyjson_val *value = json_get(object, slice_from(name));
    if (value == NULL || yyjson_is_obj(value) || yyjson_is_arr(value) || yyjson_is_null(value))
        return SLICE_NONE;
    if (yyjson_is_str(value))
        return json_slice(value);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    json_write(&text, value, DIALECT_7);
    struct slice kept = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

static bool names_script(struct slice key)
{
    return key.len >= 6 && slice_is(slice_from_offset(key, key.len - 6), "script");
}

static void look_at(struct slice key, yyjson_val *object, struct arena *arena, struct json_references *list)
{
    struct slice id = text_of(object, "id", arena);
    struct slice stored = text_of(object, "stored", arena);
    struct slice index = text_of(object, "index", arena);
    if (index.data != NULL && id.data != NULL && json_get_lit(object, "path") != NULL)
        json_references_add(list, arena, &(struct json_reference){false, index, text_of(object, "type", arena), id});
    if (names_script(key) && (id.data != NULL || stored.data != NULL))
        json_references_add(list, arena,
                            &(struct json_reference){.script = true, .id = stored.data != NULL ? stored : id});
}

static void walk_references(struct slice key, yyjson_val *value, struct arena *arena, struct json_references *list)
{
    size_t i, max;
    yyjson_val *name, *item;
    if (yyjson_is_arr(value)) {
        json_arr_foreach (value, i, max, item)
            walk_references(key, item, arena, list);
    } else if (yyjson_is_obj(value)) {
        look_at(key, value, arena, list);
        json_obj_foreach (value, i, max, name, item)
            walk_references(json_slice(name), item, arena, list);
    }
}

void json_references(yyjson_val *value, struct arena *arena, struct json_references *list)
{
    walk_references(SLICE_NONE, value, arena, list);
}
