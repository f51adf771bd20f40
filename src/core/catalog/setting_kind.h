/* SPDX-License-Identifier: Apache-2.0 */
/* Types of settings, common to indices and the cluster. */
#ifndef TL_CORE_SETTING_KIND_H
#define TL_CORE_SETTING_KIND_H

#include "core/catalog/settings.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_NUMBER, /* integer, with bounds */
    SETTING_REAL,
    SETTING_BOOLEAN,
    SETTING_TIME,
    SETTING_BYTES,   /* "512mb", "40%" */
    SETTING_PRIVATE, /* set only by the server */
};

/* Effect of a setting in Tidelock; index_settings.def and cluster_settings.def explain them. */
enum setting_effect {
    EFFECT_USED,
    EFFECT_IDLE,
    EFFECT_FIXED,
    EFFECT_OWN,
    EFFECT_FIXED_19, /* since COMMAND_SINCE_FIXED_SETTINGS; before, as IDLE */
    EFFECT_OWN_19,
};

/* By which rules settings are checked: those of the command's version. */
enum setting_rules {
    SETTING_RULES_FIRST,   /* also of stored templates, which a command of any version may have put */
    SETTING_RULES_FIXED,   /* COMMAND_SINCE_FIXED_SETTINGS */
    SETTING_RULES_BOUNDED, /* COMMAND_SINCE_CATALOG_BOUNDS */
    SETTING_RULES_VALUES,  /* COMMAND_SINCE_SETTING_VALUES */
    SETTING_RULES_REMOVED, /* COMMAND_SINCE_SETTINGS_REMOVED */
    SETTING_RULES_LISTS,   /* COMMAND_SINCE_SETTING_LISTS */
    SETTING_RULES_WEIGHED, /* COMMAND_SINCE_PATTERNS_WEIGHED */
    SETTING_RULES_NEWEST = SETTING_RULES_WEIGHED
};

/* Returns: the rules for commands of a version. */
enum setting_rules setting__rules(unsigned version);

/* Returns: the effect by these rules. */
enum setting_effect setting__effect(enum setting_effect effect, enum setting_rules rules);

/*
 * Returns: a list as the one text that Elasticsearch reads where a setting has one: "[a, b]". Other settings are
 * returned as they are, and so are lists by rules before SETTING_RULES_BOUNDED.
 */
struct setting setting__as_text(const struct setting *setting, enum setting_rules rules, struct arena *arena);

/*
 * Returns: whether a setting of which only some values are accepted may have `text`. They are in
 *   `list`, with '|' between them. EFFECT_FIXED: exactly so, as in older commands; EFFECT_FIXED_19:
 *   letters of either case.
 */
bool setting__permits(enum setting_effect effect, struct slice text, const char *list);

/*
 * Returns: whether a pattern of a table matches a key; it is the key itself, or a prefix of it
 *   followed by '*'.
 */
bool setting__matches(const char *pattern, struct slice key);

/*
 * Check the one text of a setting. Returns: 0; SETTINGS_REFUSED with the problem in Elasticsearch's
 * words. The first refuses it, as no number.
 */
int setting__refuse_no_number(const struct setting *setting, struct arena *arena, struct problem *ret_problem);
int setting__check_number(const struct setting *setting, int64_t least, int64_t most, struct arena *arena,
                          struct problem *ret_problem) TL_MUST_USE;
int setting__check_boolean(const struct setting *setting, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

enum { SETTING_CHOICES_MAX = 7 };

/* A setting with a fixed set of texts. */
struct setting_choice {
    const char *key;
    bool any_case; /* case does not matter; the message has the refused text in capitals */
    const char *of[SETTING_CHOICES_MAX];
    const char *before, *after; /* parts of the message around the refused text */
};

/*
 * Checks the one text of a setting against its row of a table. Settings without a row may have any
 * text. Returns: as above.
 */
int setting__check_choice(const struct setting_choice *choices, size_t count, const struct setting *setting,
                          struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

#endif
