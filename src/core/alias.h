/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases as they come in and go out: JSON bodies, and sets of them. */
#ifndef TL_CORE_ALIAS_H
#define TL_CORE_ALIAS_H

#include "core/catalog_internal.h"
#include "json/json.h"

enum { ALIAS_REFUSED = 1 };

/* A set of aliases being put together; of equal names the last one put stays. */
struct alias_set {
    struct catalog_alias *items;
    size_t count;
    size_t capacity;
};

/* Reads {"filter": …, "routing": …, "index_routing", "search_routing", "is_write_index", "is_hidden"}; NULL: nothing set. */
int alias__parse(struct slice name, yyjson_val *body, struct arena *arena, struct catalog_alias *ret_alias,
                 struct problem *ret_problem) TL_MUST_USE;

void alias__put(struct alias_set *set, struct arena *arena, const struct catalog_alias *alias);
/* Returns: whether it was there. */
bool alias__remove(struct alias_set *set, struct slice name);

/* Adds those of {"name": {body}, …} to a set, checking their names. `json` may be NULL. */
int alias__parse_all(const struct catalog *catalog, yyjson_val *json, enum dialect dialect, struct arena *arena,
                     struct alias_set *set, struct problem *ret_problem) TL_MUST_USE;

/* Checks that no alias of an index has a second write index. */
int alias__check_write_index(const struct catalog *catalog, const struct catalog_index *index, struct arena *arena,
                             struct problem *ret_problem) TL_MUST_USE;

#endif
