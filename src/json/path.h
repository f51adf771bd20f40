/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup of values by dotted path, as Elasticsearch flattens documents: "a.b.c" descends through
 * objects and through every element of arrays, and a name may contain dots ({"a.b": {"c": 1}}).
 */
#ifndef TL_JSON_PATH_H
#define TL_JSON_PATH_H

#include "json/json.h"

/* Called for each value found. Arrays are flattened, nulls are included. Returns: false to stop. */
typedef bool json_path_visit(void *context, yyjson_val *leaf);

/*
 * Visits every value at `path` below `root`: in text order, but where a path can be split in
 * several ways, shorter names first. An object at the end of the path is visited itself.
 * Returns: false if a visit stopped the walk.
 */
bool json_path_each(yyjson_val *root, struct slice path, json_path_visit *visit, void *context);

/* Returns: the first value at `path` that is not an array, or NULL. */
yyjson_val *json_path_first(yyjson_val *root, struct slice path);

#endif
