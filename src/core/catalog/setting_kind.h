/* SPDX-License-Identifier: Apache-2.0 */
/* What a setting may say: what those of an index and of the cluster have in common. */
#ifndef TL_CORE_SETTING_KIND_H
#define TL_CORE_SETTING_KIND_H

#include "core/catalog/settings.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_NUMBER, /* whole, with bounds */
    SETTING_REAL,
    SETTING_BOOLEAN,
    SETTING_TIME,
    SETTING_BYTES,   /* "512mb", "40%" */
    SETTING_PRIVATE, /* set by the server alone */
};

/* What a setting does here; the tables say more. */
enum setting_effect { EFFECT_USED, EFFECT_IDLE, EFFECT_FIXED, EFFECT_OWN };

/* Whether a row of a table is about a key: its name, or, with '*' behind it, the beginning of it. */
bool setting__matches(const char *pattern, struct slice key);

/* Check the one text of a setting. Returns: 0; SETTINGS_REFUSED with the problem in Elasticsearch's words. */
int setting__check_number(const struct setting *setting, int64_t least, int64_t most, struct arena *arena,
                          struct problem *ret_problem) TL_MUST_USE;
int setting__check_boolean(const struct setting *setting, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

#endif
