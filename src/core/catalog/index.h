/* SPDX-License-Identifier: Apache-2.0 */
/* Making, changing and deleting indices, for their commands and for writes that make an index on the way. */
#ifndef TL_CORE_INDEX_H
#define TL_CORE_INDEX_H

#include "core/catalog/alias.h"

struct command;
struct core;

enum { INDEX_REFUSED = 1 };

/* What a new index is put together from: templates first, then what the request says. */
struct index_draft {
    struct slice name;
    struct slice uuid; /* empty: made from the timestamp */
    enum dialect dialect;
    bool typed;                 /* mappings are named by type */
    bool composed;              /* of a composable template: a field replaces one of its name, whatever it had */
    bool hidden;                /* patterns that match everything do not match it */
    struct slice document_type; /* of the document that makes the index; empty: none */
    struct settings settings;
    yyjson_val *mappings; /* merged; NULL: none */
    struct alias_set aliases;
};

/* Indices of 7.x have one type. Returns: 0; INDEX_REFUSED where a type would be the second. */
int index__check_type(const struct catalog_index *index, struct slice type, struct arena *arena,
                      struct problem *ret_problem) TL_MUST_USE;

/* Makes the index that a document is written to. `type` is the document's. */
int index__auto_create(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                       struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/*
 * Finds out what the mapping of that index would be, without making it.
 * Returns: 0; INDEX_REFUSED. Owns: the caller, *ret_mapping; mapping_unref().
 */
int index__auto_mapping(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/* What a new index will be, for the locks of who makes it. */
struct index_plan {
    bool tree;             /* its documents lie in directories */
    struct slice *aliases; /* in the core's arena */
    size_t alias_count;
};

/* Whether a SETTINGS_PUT blocks an index against writes: then nothing may change behind it that was written before, and not committed. */
bool index__blocks_writes(struct core *core, const struct command *command);
/* Of the index that a document would make, or an INDEX_CREATE. One that will be refused has no plan: all zero. */
struct index_plan index__plan_auto(struct core *core, struct slice name, struct slice type, enum dialect dialect);
struct index_plan index__plan(struct core *core, const struct command *command);

/*
 * Gives an index another mapping in the open unit. One without types becomes what the first call that brings some is: a
 * client of 5.x may have made it by a call that all versions have in common.
 */
void index__put_mapping(struct core *core, const struct catalog_index *index, const struct mapping *mapping,
                        enum dialect dialect);

/*
 * Refuses a change of an index's mapping, settings, aliases or state, or its removal, where a block of its settings forbids it.
 * Returns: 0; INDEX_REFUSED.
 */
int index__check_block(const struct catalog_index *index, bool removal, struct arena *arena,
                       struct problem *ret_problem) TL_MUST_USE;

/* Takes an index out of the catalog; its documents go later (maintain.c). */
void index__delete(struct core *core, const struct catalog_index *index);

/*
 * Lays a template, or the body of a request, over a draft. `json` holds "settings", "mappings", "aliases", each or none.
 * A template's mappings may be typed or not; they are brought into the draft's form.
 */
int index__draft_add(struct core *core, struct index_draft *draft, yyjson_val *json, bool from_template,
                     struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Finds out whether a draft's mappings make a mapping. Returns: 0; INDEX_REFUSED. */
int index__draft_check(const struct index_draft *draft, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* --- composable.c ------------------------------------------------------------------------------------------------- */

/*
 * Lays the composable template that matches the draft's name with the highest priority over it: its components in their order, then its
 * own. *ret_found says whether there is one; templates of the older kind do not count then.
 */
int composable__apply(struct core *core, struct index_draft *draft, struct arena *arena, bool *ret_found,
                      struct problem *ret_problem) TL_MUST_USE;
/* Whether a pattern of a template is for that draft. */
bool template__pattern_matches(const struct index_draft *draft, struct slice pattern);

/* --- template.c --------------------------------------------------------------------------------------------------- */

/* Lays every template that matches the draft's name over it, by their order. */
int template__apply(struct core *core, struct index_draft *draft, struct arena *arena,
                    struct problem *ret_problem) TL_MUST_USE;

#endif
