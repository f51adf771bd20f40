/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases as they come in and go out: JSON bodies, and sets of them. */
#ifndef TL_CORE_ALIAS_H
#define TL_CORE_ALIAS_H

#include "base/map.h"
#include "core/catalog/catalog_internal.h"
#include "json/json.h"

enum { ALIAS_REFUSED = 1 };

/* A set of aliases being put together; of equal names the last one put stays. */
struct alias_set {
    struct catalog_alias *items;
    size_t count;
    size_t capacity;
};

/* Adds those of {"name": {body}, …} to a set, checking their names. `json` may be NULL. */
int alias__parse_all(const struct catalog *catalog, yyjson_val *json, enum dialect dialect, struct arena *arena,
                     struct alias_set *set, struct problem *ret_problem) TL_MUST_USE;

/*
 * Checks that no alias of an index has a second write index, and that each is hidden on all of its indices or on none. `checked` has the names that need no look any more, and gets those of
 * the index; NULL: all need one.
 */
int alias__check(const struct catalog *catalog, const struct catalog_index *index, struct map *checked, struct arena *arena,
                 struct problem *ret_problem) TL_MUST_USE;

#endif
