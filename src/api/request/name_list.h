/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of names in paths, parameters and bodies: separated by commas, with `*` for any characters.
 */
#ifndef TL_API_NAME_LIST_H
#define TL_API_NAME_LIST_H

#include "base/arena.h"
#include "json/value.h"

/* Returns: whether a pattern of the list matches the name. */
bool name_list_has(struct slice list, struct slice name);

/* Whether a name is asked for: by a pattern of the list, or because the list is empty or `_all`. */
bool name_list_match(struct slice list, struct slice name);

/* Returns: the names sorted, apart by commas; "" of none. Sorts `names` in place. */
struct slice name_list_sort(struct arena *arena, struct slice *names, size_t count);

/* Returns: a JSON text unchanged, the texts of an array separated by commas; SLICE_NONE for other values. */
struct slice name_list_of_json(struct arena *arena, yyjson_val *value);

#endif
