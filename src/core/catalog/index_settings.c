/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of an index: which there are, and what they may say. */
#include "core/catalog/index_settings.h"

enum kind { TEXT, NUMBER, BOOLEAN, TIME, PRIVATE };

struct known {
    const char *key;
    enum kind kind;
    bool dynamic;
    int64_t least, most; /* of a number */
};

static const struct known known_settings[] = {
#define X(key, kind, dynamic, least, most) {key, kind, dynamic, least, most},
#include "core/catalog/index_settings.def"
#undef X
};

enum { KNOWN_COUNT = sizeof(known_settings) / sizeof(known_settings[0]) };

static const struct known *find(struct slice key)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        struct slice pattern = slice_from(known_settings[i].key);
        bool group = pattern.data[pattern.len - 1] == '*';
        if (group ? slice_starts_with(key, slice_make(pattern.data, pattern.len - 1)) : slice_equal(key, pattern))
            return &known_settings[i];
    }
    return NULL;
}

static int refuse_number(const struct setting *setting, const char *bound, int64_t limit, struct arena *arena,
                         struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] for setting [%.*s] must be %s %lld", SLICE_ARG(setting->values[0]),
                SLICE_ARG(setting->key), bound, (long long)limit);
    return INDEX_SETTINGS_REFUSED;
}

static int check_number(const struct known *known, const struct setting *setting, struct arena *arena,
                        struct problem *ret_problem)
{
    int64_t value;

    if (!slice_to_i64(setting->values[0], &value)) {
        struct problem *cause = arena_zalloc(arena, sizeof(*cause));
        problem_set(cause, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(setting->values[0]));
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse value [%.*s] for setting [%.*s]",
                    SLICE_ARG(setting->values[0]), SLICE_ARG(setting->key));
        ret_problem->caused_by = cause;
        return INDEX_SETTINGS_REFUSED;
    }
    if (value < known->least)
        return refuse_number(setting, ">=", known->least, arena, ret_problem);
    if (value > known->most)
        return refuse_number(setting, "<=", known->most, arena, ret_problem);
    return 0;
}

static int check_boolean(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    struct slice text = setting->values[0];

    if (slice_is(text, "true") || slice_is(text, "false"))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    return INDEX_SETTINGS_REFUSED;
}

static int check_time(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    static const char *const units[] = {"nanos", "micros", "ms", "s", "m", "h", "d"};
    struct slice text = setting->values[0];
    size_t digits = 0;

    if (slice_is(text, "-1") || slice_is(text, "0"))
        return 0;
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    for (size_t i = 0; digits > 0 && i < sizeof(units) / sizeof(units[0]); i++)
        if (slice_is(slice_from_offset(text, digits), units[i]))
            return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse setting [%.*s] with value [%.*s] as a time value: unit is missing or unrecognized",
                SLICE_ARG(setting->key), SLICE_ARG(text));
    return INDEX_SETTINGS_REFUSED;
}

static bool is_whole_number(struct slice text)
{
    int64_t value;
    return slice_to_i64(text, &value) && value >= 0;
}

/* "0-1", "2-all", "false". */
static int check_expand(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    size_t dash = slice_find_byte(text, '-');
    struct slice most = slice_from_offset(text, dash + 1);
    if (slice_is(text, "false"))
        return 0;
    if (dash < text.len && is_whole_number(slice_make(text.data, dash)) &&
        (slice_is(most, "all") || is_whole_number(most)))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "failed to parse [%.*s] from value: [%.*s] at index %d",
                SLICE_ARG(setting->key), SLICE_ARG(text), dash < text.len ? (int)dash : -1);
    return INDEX_SETTINGS_REFUSED;
}

/* No pipeline is kept here that a document could go through. */
static int check_pipeline(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    if (slice_is(setting->values[0], "_none") || setting->values[0].len == 0)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[%.*s] cannot be [%.*s]: there are no ingest pipelines here, only [_none]", SLICE_ARG(setting->key),
                SLICE_ARG(setting->values[0]));
    return INDEX_SETTINGS_REFUSED;
}

/* Of the texts, those that must be one of a few. */
static int check_text(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    if (slice_is(setting->key, "index.auto_expand_replicas"))
        return check_expand(setting, arena, ret_problem);
    if (slice_is(setting->key, "index.default_pipeline") || slice_is(setting->key, "index.final_pipeline"))
        return check_pipeline(setting, arena, ret_problem);
    if (!slice_is(setting->key, "index.codec") || slice_is(text, "default") || slice_is(text, "best_compression") ||
        slice_is(text, "lucene_default"))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "unknown value for [index.codec] must be one of [default, best_compression] but was: %.*s",
                SLICE_ARG(text));
    return INDEX_SETTINGS_REFUSED;
}

static int check_value(const struct known *known, const struct setting *setting, struct arena *arena,
                       struct problem *ret_problem)
{
    if (known->kind == PRIVATE) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "private index setting [%.*s] can not be set explicitly", SLICE_ARG(setting->key));
        return INDEX_SETTINGS_REFUSED;
    }
    if (setting->list || setting->value_count == 0)
        return 0;
    switch (known->kind) {
    case NUMBER: return check_number(known, setting, arena, ret_problem);
    case BOOLEAN: return check_boolean(setting, arena, ret_problem);
    case TIME: return check_time(setting, arena, ret_problem);
    default: return check_text(setting, arena, ret_problem);
    }
}

int index_settings__check(const struct settings *settings, struct arena *arena, struct problem *ret_problem)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->items[i];
        const struct known *known = find(setting->key);
        bool pattern = setting->value_count == 0 && slice_find_byte(setting->key, '*') < setting->key.len;
        if (known == NULL && pattern)
            continue;
        if (known == NULL) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                        "unknown setting [%.*s] please check that any required plugins are installed, or check the "
                        "breaking changes documentation for removed settings",
                        SLICE_ARG(setting->key));
            return INDEX_SETTINGS_REFUSED;
        }
        int r = check_value(known, setting, arena, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

struct slice index_settings__static(const struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct known *known = find(settings->items[i].key);
        if (known != NULL && !known->dynamic)
            return settings->items[i].key;
    }
    return SLICE_NONE;
}
