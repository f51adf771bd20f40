/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating, changing and deleting indices, for DDL commands and for writes that create their index.
 */
#ifndef TL_CORE_INDEX_H
#define TL_CORE_INDEX_H

#include "core/catalog/alias.h"

struct command;
struct core;

enum { INDEX_REFUSED = 1 };

/* A new index, assembled from templates first, then from the request. */
struct index_draft {
    struct slice name;
    struct slice uuid; /* empty: derived from the timestamp */
    enum dialect dialect;
    bool typed; /* mappings are keyed by type */
    /* Of a composable template: a field replaces an earlier one of its name completely */
    bool composed;
    bool hidden;                /* patterns that match everything do not match it */
    struct slice document_type; /* of the document that creates the index; empty: none */
    struct settings settings;
    struct settings_memory settings_memory; /* of settings_apply() */
    yyjson_val *mappings; /* merged; NULL: none */
    /* Mappings added since, in the draft's form, which are merged at once (COMMAND_SINCE_TEMPLATES_MERGED) */
    yyjson_val **parts;
    size_t part_count, part_capacity;
    struct slice type; /* the only type that the mappings name so far, of the first of them; data NULL: none */
    bool types;        /* they name more */
    struct alias_set aliases;
};

/*
 * Checks that an index may have a type: an index of 7.x has only one. Returns: 0; INDEX_REFUSED: it
 * would be the second.
 */
int index__check_type(const struct catalog_index *index, struct slice type, struct arena *arena,
                      struct problem *ret_problem) TL_MUST_USE;

/*
 * Creates the index for a document of the given type. The draft is in the scratch arena until the
 * call returns; only the problem is in `arena`. Returns: 0; INDEX_REFUSED.
 * Requires: an open unit; `arena` is not the core's scratch arena.
 */
int index__auto_create(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                       struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/*
 * Computes the mapping that such an index would have, without creating it.
 * Returns: 0; INDEX_REFUSED. Owns: the caller, *ret_mapping; mapping_unref().
 */
int index__auto_mapping(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/* Properties of an index to be created, from which its locks follow. */
struct index_plan {
    bool tree;             /* its documents have a path hierarchy */
    struct slice *aliases; /* in the core's arena */
    size_t alias_count;
};

/*
 * Returns: whether a SETTINGS_PUT blocks writes to an index. It then waits for uncommitted writes,
 *   which could not commit after it.
 */
bool index__blocks_writes(struct core *core, const struct command *command);
/*
 * Return the plan of an index that a document, or an INDEX_CREATE, would create; all zero if the
 * creation will be refused.
 * Requires: an open unit; for index__plan(), an INDEX_CREATE.
 */
struct index_plan index__plan_auto(struct core *core, struct slice name, struct slice type, enum dialect dialect);
struct index_plan index__plan(struct core *core, const struct command *command);

/*
 * Replaces the mapping of an index in the open unit. If the index has no types yet, it takes the
 * dialect of the call that adds the first: a client of 5.x may have created it by a call that all
 * versions have.
 */
void index__put_mapping(struct core *core, const struct catalog_index *index, const struct mapping *mapping,
                        enum dialect dialect);

/*
 * Checks that no block in the settings of an index forbids a change of its mapping, settings,
 * aliases or state, or its removal.
 * Returns: 0; INDEX_REFUSED.
 */
int index__check_block(const struct catalog_index *index, bool removal, struct arena *arena,
                       struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: the timestamp before which the version of a deleted document of the index counts no
 *   longer at `ts`. `index`: NULL: it is deleted. It never decreases.
 */
tl_ts index__deletes_horizon(const struct core *core, const struct catalog_index *index, tl_ts ts);

/*
 * Removes an index from the catalog; maintenance purges its documents (maintain.c).
 * Requires: an open unit.
 */
void index__delete(struct core *core, const struct catalog_index *index);

/*
 * Applies a template or the body of a request to a draft. `json` may have "settings", "mappings"
 * and "aliases". Mappings of a template are converted to the draft's form, typed or not.
 * Requires: an open unit.
 * Returns: 0; INDEX_REFUSED.
 */
int index__draft_add(struct core *core, struct index_draft *draft, yyjson_val *json, bool from_template,
                     struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Checks that a draft's mappings are valid. Returns: 0; INDEX_REFUSED. Requires: an open unit. */
int index__draft_check(struct core *core, struct index_draft *draft, struct arena *arena,
                       struct problem *ret_problem) TL_MUST_USE;

/* --- composable.c ------------------------------------------------------------------------------------------------- */

/*
 * Applies the composable template with the highest priority that matches the draft's name: its
 * components in order, then its own parts. *ret_found: whether there is one; then templates of the
 * older kind do not apply. Returns: 0; INDEX_REFUSED.
 * Requires: an open unit.
 */
int composable__apply(struct core *core, struct index_draft *draft, struct arena *arena, bool *ret_found,
                      struct problem *ret_problem) TL_MUST_USE;

/* --- template.c --------------------------------------------------------------------------------------------------- */

/* Returns: whether a template of either kind applies to a draft. Counts the work. */
bool template__matches(struct core *core, const struct index_draft *draft, const struct catalog_object *template);
/*
 * Checks the bytes of a template, or of a component, that is put: if it had more, each index that it applies to would
 * be refused. Returns: 0; INDEX_REFUSED.
 */
int template__check_bytes(const struct core *core, struct command *command, size_t bytes) TL_MUST_USE;
/*
 * Counts the work of all templates that apply to a draft, which have so many bytes, before they are parsed. Returns:
 * 0; INDEX_REFUSED: these are more than CATALOG_APPLIED_BYTES_MAX.
 * Requires: an open unit.
 */
int template__count(struct core *core, const struct index_draft *draft, size_t bytes, struct arena *arena,
                    struct problem *ret_problem) TL_MUST_USE;
/* Applies all templates that match the draft's name, by their order. Returns: 0; INDEX_REFUSED. */
int template__apply(struct core *core, struct index_draft *draft, struct arena *arena,
                    struct problem *ret_problem) TL_MUST_USE;

#endif
