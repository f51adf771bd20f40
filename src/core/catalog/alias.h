/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases in requests and replies: JSON bodies, and sets of them. */
#ifndef TL_CORE_ALIAS_H
#define TL_CORE_ALIAS_H

#include "base/map.h"
#include "core/catalog/catalog_internal.h"
#include "json/json.h"

struct core;

enum { ALIAS_REFUSED = 1 };

/* A set of aliases under construction; a later alias replaces an earlier one of its name. */
struct alias_set {
    struct catalog_alias *items;
    size_t count;
    size_t capacity;
    uint32_t *slots; /* of alias__parse_all(): hash table of positions from 1 on; 0: empty */
    size_t slot_count;
};

/*
 * Adds the aliases of {"name": {body}, …} to a set, checking their names. `json` may be NULL. `index`:
 * replaces "{index}" in names of a template's aliases; data NULL: the names stay as they are.
 * Returns: 0; ALIAS_REFUSED.
 */
int alias__parse_all(const struct catalog *catalog, yyjson_val *json, struct slice index, enum dialect dialect,
                     struct arena *arena, struct alias_set *set, struct problem *ret_problem) TL_MUST_USE;

/*
 * Checks that the filters and routings of an index's aliases have at most CATALOG_ALIAS_BYTES_MAX, or no more than
 * those that it has. Not in commands before version 23. Returns: 0; ALIAS_REFUSED.
 */
int alias__check_bytes(const struct core *core, struct slice index, const struct alias_set *aliases,
                       struct arena *arena, struct problem *ret_problem) TL_MUST_USE;
/*
 * Checks that all indices together have at most CATALOG_ALIAS_USES_MAX aliases with `more`. Not in commands before
 * COMMAND_SINCE_CATALOG_BOUNDS. Returns: 0; ALIAS_REFUSED.
 */
int alias__check_count(const struct core *core, size_t more, struct arena *arena,
                       struct problem *ret_problem) TL_MUST_USE;

/*
 * Requires: an open unit, which has the work of renewing the table of aliases.
 * Returns: whether an alias has the name. Counts the work of the look-up, which renews the table of aliases if some
 * have changed.
 */
bool alias__exists(struct core *core, struct slice name);

/*
 * As alias__check(), for the aliases of an index that is not created yet, nor refused for another reason. Not in
 * commands before COMMAND_SINCE_ALIASES_CHECKED. Returns: 0; ALIAS_REFUSED.
 */
int alias__check_new(struct core *core, struct slice index, const struct alias_set *aliases, struct arena *arena,
                     struct problem *ret_problem) TL_MUST_USE;

/*
 * Checks the aliases of an index: none has a second write index, and each is hidden on all of its
 * indices or on none. Names in `checked` are skipped; the others are added to it. NULL: all are
 * checked.
 * Returns: 0; ALIAS_REFUSED.
 */
int alias__check(struct core *core, const struct catalog_index *index, struct map *checked, struct arena *arena,
                 struct problem *ret_problem) TL_MUST_USE;

#endif
