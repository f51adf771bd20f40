/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup of values by dotted path; see path.h. */
#include "json/path.h"
#include "json/each.h"

struct visit {
    json_path_visit *function;
    void *context;
};

static bool walk_value(yyjson_val *value, struct slice path, const struct visit *visit);

static bool walk_array(yyjson_val *array, struct slice path, const struct visit *visit)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (array, i, max, item) {
        if (!walk_value(item, path, visit))
            return false;
    }
    return true;
}

/* Tries each split of the path into a member's name and a rest, shortest name first. */
static bool walk_object(yyjson_val *object, struct slice path, const struct visit *visit)
{
    for (size_t end = 0; end <= path.len; end++) {
        end += slice_find_byte(slice_from_offset(path, end), '.');
        yyjson_val *member = json_get(object, slice_make(path.data, end));
        if (member == NULL)
            continue;
        /* An exhausted path has data NULL, which distinguishes it from an empty last name. */
        struct slice rest = end == path.len ? SLICE_NONE : slice_make(path.data + end + 1, path.len - end - 1);
        if (!walk_value(member, rest, visit))
            return false;
    }
    return true;
}

static bool walk_value(yyjson_val *value, struct slice path, const struct visit *visit)
{
    if (yyjson_is_arr(value))
        return walk_array(value, path, visit);
    if (path.data == NULL)
        return visit->function(visit->context, value);
    return yyjson_is_obj(value) ? walk_object(value, path, visit) : true;
}

bool json_path_each(yyjson_val *root, struct slice path, json_path_visit *function, void *context)
{
    return walk_value(root, path, &(struct visit){function, context});
}

static bool take_first(void *context, yyjson_val *leaf)
{
    *(yyjson_val **)context = leaf;
    return false;
}

yyjson_val *json_path_first(yyjson_val *root, struct slice path)
{
    yyjson_val *first = NULL;
    json_path_each(root, path, take_first, &first);
    return first;
}
