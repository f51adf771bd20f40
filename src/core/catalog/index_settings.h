/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that an index may have. */
#ifndef TL_CORE_INDEX_SETTINGS_H
#define TL_CORE_INDEX_SETTINGS_H

#include "core/catalog/settings.h"

enum { INDEX_SETTINGS_REFUSED = 1 };

/*
 * Checks settings of a client against index_settings.def; `update`: of an index that exists.
 * Returns: 0; INDEX_SETTINGS_REFUSED: *ret_problem is Elasticsearch's error.
 */
int index_settings__check(const struct settings *settings, bool update, struct arena *arena,
                          struct problem *ret_problem) TL_MUST_USE;

/* Returns: the first setting that cannot change while an index is open; data NULL: none. */
struct slice index_settings__static(const struct settings *settings);

#endif
