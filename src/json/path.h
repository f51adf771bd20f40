/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking into documents by dotted paths, as Elasticsearch flattens them: "a.b.c" goes through objects and
 * through every element of arrays, and a key may hold dots itself ({"a.b": {"c": 1}}).
 */
#ifndef TL_JSON_PATH_H
#define TL_JSON_PATH_H

#include "json/json.h"

/* Called for each leaf; nested arrays are flattened, nulls are given too. Returns: false to stop. */
typedef bool json_path_visit(void *context, yyjson_val *leaf);

/*
 * Visits every value at `path` below `root`, in order of the text. An object at the end is given as it is.
 * Returns: false when a visit stopped it.
 */
bool json_path_each(yyjson_val *root, struct slice path, json_path_visit *visit, void *context);

/* Returns: the first value at `path` that is no array, or NULL. */
yyjson_val *json_path_first(yyjson_val *root, struct slice path);

#endif
