/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the cluster: the known ones (cluster_settings.def), their validation, and their
 * values.
 *
 * 1. Each setting has an effect, needs none, or is refused by name: none is accepted and then
 *    ignored.
 * 2. A transient setting precedes a persistent one of the same name.
 * 3. Settings stored by older versions stay and can be removed.
 */
#ifndef TL_CORE_CLUSTER_SETTINGS_H
#define TL_CORE_CLUSTER_SETTINGS_H

#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"

struct catalog;

/*
 * Checks requested settings of a section ("transient", "persistent") whose current settings are
 * `current`.
 * Returns: 0; SETTINGS_REFUSED: *ret_problem is an illegal_argument_exception in Elasticsearch's
 *   words.
 */
int cluster_settings__check(const char *section, const struct settings *requested, const struct settings *current,
                            enum dialect dialect, enum setting_rules rules, struct arena *arena,
                            struct problem *ret_problem) TL_MUST_USE;

/* The work of comparing a name of the greatest length with all patterns of action.auto_create_index, at most: 10 ms. */
#define CLUSTER_PATTERNS_WORK_MAX UINT64_C(100000)

/* Defaults of search.default_keep_alive and search.max_keep_alive. */
#define CLUSTER_KEEP_ALIVE_US (5 * 60 * TL_SECOND)
#define CLUSTER_KEEP_ALIVE_MAX_US (24 * 3600 * TL_SECOND)

/* The two sections of the settings, before or after a change. */
struct cluster_sections {
    struct settings persistent, transient;
};

/*
 * Checks that a change of the settings leaves search.default_keep_alive at most search.max_keep_alive. Values that
 * earlier versions stored may be otherwise, and stay. Returns: as cluster_settings__check().
 */
int cluster_settings__check_keep_alive(const struct cluster_sections *before, const struct cluster_sections *after,
                                       struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Returns: whether a name is a setting of a node, which is not set by a call. */
bool cluster_settings__is_static(struct slice key);

/* The settings of the cluster, parsed: those that are set until all nodes stop, which come first, and the others. */
struct cluster_values {
    struct settings transient, persistent;
};

/* Returns: the values of a stored body, in `arena`. */
const struct cluster_values *cluster_settings__parse(struct slice body, struct arena *arena);

/* Returns: the value of a setting, in `arena`, a list with commas; data NULL: not set. */
struct slice cluster_setting(const struct catalog *catalog, const char *key, struct arena *arena);
bool cluster_setting_is(const struct catalog *catalog, const char *key, const char *text, struct arena *arena);

/*
 * Checks whether a write may create an index of this name (action.auto_create_index). *ret_work: the work of comparing
 * it with the patterns, in units (work.h).
 * Returns: 0; SETTINGS_REFUSED: *ret_problem is an index_not_found_exception, or PROBLEM_NONE if
 *   the setting is "false": the caller then reports a missing index as usual.
 */
int cluster_settings__may_create(const struct catalog *catalog, struct slice name, enum setting_rules rules,
                                 struct arena *arena, uint64_t *ret_work, struct problem *ret_problem) TL_MUST_USE;

#endif
