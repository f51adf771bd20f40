/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names; see name_list.h. */
#include "api/request/name_list.h"

#include <stdlib.h>

#include "json/each.h"
#include "json/filter.h"
#include "json/json.h"

bool name_list_has(struct slice list, struct slice name)
{
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        if (json_wildcard(slice_make(list.data, len), name))
            return true;
        list = slice_from_offset(list, len + 1);
    }
    return false;
}

bool name_list_match(struct slice list, struct slice name)
{
    return list.len == 0 || slice_is(list, "_all") || name_list_has(list, name);
}

struct slice name_list_sort(struct arena *arena, struct slice *names, size_t count)
{
    struct slice text = SLICE_LIT("");
    qsort(names, count, sizeof *names, slice_order);
    for (size_t i = 0; i < count; i++)
        text = arena_append(arena, text, "%s%.*s", i == 0 ? "" : ",", SLICE_ARG(names[i]));
    return text;
}

struct slice name_list_of_json(struct arena *arena, yyjson_val *value)
{
    struct slice all = json_slice(value);
    size_t index, count;
    yyjson_val *item;
    json_arr_foreach (value, index, count, item) {
        all = all.data == NULL ? arena_copy(arena, json_slice(item))
                               : arena_append(arena, all, ",%.*s", SLICE_ARG(json_slice(item)));
    }
    return all;
}
