/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the cluster: which there are (cluster_settings.def), what they may say, and what they say.
 *
 * 1. A setting has an effect here, or needs none, or is refused by name: none is kept that one would wait for in vain.
 * 2. A transient one counts before a persistent one of the same name.
 * 3. What older versions have kept stays, and can be taken away.
 */
#ifndef TL_CORE_CLUSTER_SETTINGS_H
#define TL_CORE_CLUSTER_SETTINGS_H

#include "core/catalog/settings.h"

struct catalog;

/*
 * Checks what is asked of a section ("transient", "persistent"), of which `kept` is there.
 * Returns: 0; SETTINGS_REFUSED: *ret_problem is an illegal_argument_exception in Elasticsearch's words.
 */
int cluster_settings__check(const char *section, const struct settings *asked, const struct settings *kept,
                            enum dialect dialect, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Returns: what a setting is set to, in `arena`, a list with commas; data NULL: not set. */
struct slice cluster_setting(const struct catalog *catalog, const char *key, struct arena *arena);
bool cluster_setting_is(const struct catalog *catalog, const char *key, const char *text, struct arena *arena);

/*
 * Whether a write may make an index of this name (action.auto_create_index).
 * Returns: 0; SETTINGS_REFUSED: *ret_problem is an index_not_found_exception, with nothing of PROBLEM_NONE where the setting is
 *          "false": then it is told as any missing index is.
 */
int cluster_settings__may_create(const struct catalog *catalog, struct slice name, struct arena *arena,
                                 struct problem *ret_problem) TL_MUST_USE;

#endif
