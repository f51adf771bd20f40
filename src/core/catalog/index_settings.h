/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that an index may have. */
#ifndef TL_CORE_INDEX_SETTINGS_H
#define TL_CORE_INDEX_SETTINGS_H

#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"

enum { INDEX_SETTINGS_REFUSED = 1 };

/*
 * Checks settings of a client against index_settings.def; `update`: of an index that exists.
 * Returns: 0; INDEX_SETTINGS_REFUSED: *ret_problem is Elasticsearch's error.
 */
int index_settings__check(const struct settings *settings, bool update, enum setting_rules rules, struct arena *arena,
                          struct problem *ret_problem) TL_MUST_USE;

/*
 * Refuses settings that 7.x removed in a new index or a template, also with null; an existing index may have them. Not
 * for the dialect of 5.x, which has them. Returns: as index_settings__check().
 */
int index_settings__check_removed(const struct settings *settings, enum setting_rules rules, struct arena *arena,
                                  struct problem *ret_problem) TL_MUST_USE;

/* Returns: the first setting that cannot change while an index is open; data NULL: none. */
struct slice index_settings__static(const struct settings *settings);

/*
 * Makes index.number_of_replicas follow index.auto_expand_replicas: there is one copy, so that it is
 * the lower bound.
 */
void index_settings__expand(struct settings *settings, struct arena *arena);

/*
 * Returns: how long the version of a deleted document counts, by index.gc_deletes; -1: it never
 *   does.
 */
int64_t index_settings__gc_deletes_us(const struct settings *settings);

/*
 * Checks index.number_of_routing_shards of a complete new index. Returns: as index_settings__check().
 */
int index_settings__check_routing(const struct settings *settings, struct arena *arena,
                                  struct problem *ret_problem) TL_MUST_USE;

#endif
