/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the cluster. */
#include "core/catalog/cluster_settings.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/catalog/catalog.h"
#include "core/catalog/setting_kind.h"
#include "core/unit/work.h"
#include "json/filter.h"
#include "json/time_value.h"

struct known {
    const char *key;
    enum setting_kind kind;
    int64_t least; /* minimum of a number */
    enum setting_effect effect;
    const char *what;
};

static const struct known known_settings[] = {
#define X(key, kind, least, effect, what) {key, SETTING_##kind, least, EFFECT_##effect, what},
#include "core/catalog/cluster_settings.def"
#undef X
};

static const struct known *find_known(struct slice key)
{
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++)
        if (setting__matches(known_settings[i].key, key))
            return &known_settings[i];
    return NULL;
}

/* --- Validation --------------------------------------------------------------------------------------------------- */

/* What a value must be that is outside of the bounds of a number. */
static int refuse_bound(const struct setting *setting, const char *bound, struct arena *arena,
                        struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] for setting [%.*s] must be %s", SLICE_ARG(setting->values[0]),
                SLICE_ARG(setting->key), bound);
    return SETTINGS_REFUSED;
}

static int refuse_real(const struct setting *setting, enum setting_rules rules, struct arena *arena,
                       struct problem *ret_problem)
{
    (void)setting__refuse_no_number(setting, arena, ret_problem);
    if (rules < SETTING_RULES_VALUES)
        ret_problem->caused_by = NULL;
    else if (slice_trim(setting->values[0]).len == 0)
        problem_set(ret_problem->caused_by, arena, PROBLEM_NUMBER_FORMAT, "empty String");
    return SETTINGS_REFUSED;
}

/* Parses a number as Java does: "1.5", "1e3", "1f", "NaN" or "-Infinity", with blanks around it. */
static bool parse_real(struct slice text, double *ret_number)
{
    text = slice_trim(text);
    bool sign = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    struct slice word = slice_from_offset(text, sign ? 1 : 0);
    if (slice_is(word, "NaN") || slice_is(word, "Infinity")) {
        *ret_number = slice_is(word, "NaN") ? 0 : text.data[0] == '-' ? -1 : 1; /* only the sign matters */
        return true;
    }
    char last = text.len > 1 ? text.data[text.len - 1] : '\0';
    if (last == 'f' || last == 'F' || last == 'd' || last == 'D')
        text.len--;
    return slice_to_double(text, ret_number);
}

static int check_real(const struct setting *setting, enum setting_rules rules, struct arena *arena,
                      struct problem *ret_problem)
{
    double number;
    if (rules >= SETTING_RULES_VALUES) {
        if (!parse_real(setting->values[0], &number))
            return refuse_real(setting, rules, arena, ret_problem);
        return number < 0 ? refuse_bound(setting, ">= 0.0", arena, ret_problem) : 0;
    }
    const char *text = arena_printf(arena, "%.*s", SLICE_ARG(setting->values[0])).data;
    char *end;
    (void)strtod(text, &end);
    return end == text || *end != 0 ? refuse_real(setting, rules, arena, ret_problem) : 0;
}

/* Checks "512mb" or "1g", and "40%" if `shares` are accepted. */
static int check_bytes(const struct setting *setting, bool shares, struct arena *arena, struct problem *ret_problem)
{
    static const char *const units[] = {"b", "k", "kb", "m", "mb", "g", "gb", "t", "tb", "p", "pb", "%"};
    const size_t unit_count = sizeof units / sizeof *units - !shares;
    struct slice text = setting->values[0];
    size_t digits = 0;
    while (digits < text.len && ((text.data[digits] >= '0' && text.data[digits] <= '9') || text.data[digits] == '.'))
        digits++;
    struct slice unit = slice_from_offset(text, digits);
    if (slice_is(text, "0") || slice_is(text, "-1"))
        return 0;
    for (size_t i = 0; digits > 0 && i < unit_count; i++)
        if (slice_is_ignoring_case(unit, units[i]))
            return 0;
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    problem_set(cause, arena, PROBLEM_PARSE,
                "failed to parse setting [%.*s] with value [%.*s] as a size in bytes: unit is missing or unrecognized",
                SLICE_ARG(setting->key), SLICE_ARG(text));
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(cause->reason));
    ret_problem->caused_by = cause;
    return SETTINGS_REFUSED;
}

/* Takes the first of a list of patterns; since SETTING_RULES_VALUES, without the blanks around it. */
static struct slice next_pattern(struct slice *list, enum setting_rules rules)
{
    size_t comma = slice_find_byte(*list, ',');
    struct slice pattern = slice_make(list->data, comma);
    *list = comma < list->len ? slice_from_offset(*list, comma + 1) : SLICE_NONE;
    while (rules >= SETTING_RULES_VALUES && pattern.len > 0 && (unsigned char)pattern.data[0] <= ' ')
        pattern = slice_from_offset(pattern, 1);
    while (rules >= SETTING_RULES_VALUES && pattern.len > 0 && (unsigned char)pattern.data[pattern.len - 1] <= ' ')
        pattern.len--;
    return pattern;
}

/* Checks a list of name patterns. */
static int check_patterns(const struct setting *given, enum setting_rules rules, struct arena *arena,
                          struct problem *ret_problem)
{
    struct setting text = setting__as_text(given, rules >= SETTING_RULES_LISTS ? rules : SETTING_RULES_FIRST, arena);
    const struct setting *setting = &text;
    if (rules >= SETTING_RULES_REMOVED && !setting->list && setting->values[0].len == 0)
        return 0; /* no pattern: all indices are created */
    size_t bytes = 0;
    for (size_t i = 0; i < setting->value_count; i++)
        for (struct slice rest = setting->values[i]; rest.data != NULL;) {
            struct slice pattern = next_pattern(&rest, rules);
            bool sign = pattern.len > 0 && (pattern.data[0] == '+' || pattern.data[0] == '-');
            bytes += json_wildcard_bytes(pattern, CATALOG_NAME_BYTES_MAX);
            if (pattern.len == 0)
                problem_set(
                    ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Can't parse [%.*s] for setting [action.auto_create_index] must be either [true, false, or a "
                    "comma separated list of index patterns]",
                    SLICE_ARG(setting->values[i]));
            else if (sign && pattern.len == 1)
                problem_set(
                    ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Can't parse [%.*s] for setting [action.auto_create_index] must contain an index name after "
                    "[%c]",
                    SLICE_ARG(setting->values[i]), pattern.data[0]);
            if (pattern.len == 0 || (sign && pattern.len == 1))
                return SETTINGS_REFUSED;
        }
    if (rules < SETTING_RULES_WEIGHED || bytes / WORK_COMPARED_BYTES <= CLUSTER_PATTERNS_WORK_MAX)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the patterns of setting [action.auto_create_index] are so many that comparing the name of each new "
                "index with them takes too long: use fewer, or such as have one [*]");
    return SETTINGS_REFUSED;
}

/* Checks a log level of Elasticsearch. OFF and FATAL are refused: errors are always logged. */
static int check_level(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    static const char *const levels[] = {"trace", "debug", "info", "warn", "error"};
    struct slice text = setting->values[0];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (slice_is_ignoring_case(text, levels[i]))
            return 0;
    if (slice_is_ignoring_case(text, "off") || slice_is_ignoring_case(text, "fatal"))
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "[%.*s] cannot be [%.*s]: errors are always logged, [ERROR] is the least", SLICE_ARG(setting->key),
                    SLICE_ARG(text));
    else
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Unknown level constant [%.*s].", SLICE_ARG(text));
    return SETTINGS_REFUSED;
}

static const struct setting_choice choices[] = {
    {"cluster.no_master_block",
     false,
     {"all", "write", "metadata_write"},
     "invalid no-master block [",
     "], must be one of [all, write, metadata_write]"},
    {"cluster.persistent_tasks.allocation.enable",
     true,
     {"all", "none"},
     "Illegal value [",
     "] for [cluster.persistent_tasks.allocation.enable]"},
    {"cluster.routing.allocation.allow_rebalance",
     true,
     {"always", "indices_primaries_active", "indices_all_active"},
     "Illegal value for [cluster.routing.allocation.allow_rebalance]: ",
     ""},
    {"cluster.routing.allocation.enable",
     true,
     {"none", "new_primaries", "primaries", "all"},
     "Illegal allocation.enable value [",
     "]"},
    {"cluster.routing.allocation.shard_state.reroute.priority",
     true,
     {"immediate", "urgent", "high", "normal", "low", "languid"},
     "No enum constant org.elasticsearch.common.Priority.",
     ""},
    {"cluster.routing.rebalance.enable",
     true,
     {"none", "primaries", "replicas", "all"},
     "Illegal rebalance.enable value [",
     "]"},
    {"discovery.zen.no_master_block",
     false,
     {"all", "write", "metadata_write"},
     "invalid no-master block [",
     "], must be one of [all, write, metadata_write]"},
    {"tidelock.distribute_timestamps",
     false,
     {"fast", "strict", "cluster"},
     "[tidelock.distribute_timestamps] must be one of [fast, strict, cluster], got [",
     "]"},
    {"tidelock.multi_version_concurrency_control",
     false,
     {"nonblocking", "contemporaneous"},
     "[tidelock.multi_version_concurrency_control] must be one of [nonblocking, contemporaneous], got [",
     "]"},
};

/* Checks a rate such as "10/1m". */
static int check_rate(const struct setting *setting, enum dialect dialect, struct arena *arena,
                      struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    size_t slash = slice_find_byte(text, '/');
    uint64_t number;
    int64_t us;
    if (slash < text.len && slice_to_u64(slice_make(text.data, slash), &number) &&
        time_value_parse(slice_from_offset(text, slash + 1), setting->key, dialect, arena, &us, ret_problem) == 0)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "parameter must contain a positive integer and a timevalue, i.e. 10/1m, but was [%.*s]",
                SLICE_ARG(text));
    return SETTINGS_REFUSED;
}

/*
 * Elasticsearch's bounds of values, for commands since COMMAND_SINCE_SETTING_VALUES: of numbers without a row those of
 * the table of settings and of a 32-bit integer, of times 0.
 */
static const struct value_bounds {
    const char *key;
    int64_t least, most; /* of times in milliseconds, without a maximum */
    const char *text;    /* the minimum of a time in Elasticsearch's source */
} value_bounds[] = {
    {"cluster.info.update.interval", 10000, INT64_MAX, "10s"},
    {"cluster.persistent_tasks.allocation.recheck_interval", 10000, INT64_MAX, "10s"},
    {"cluster.routing.allocation.cluster_concurrent_rebalance", -1, INT32_MAX, NULL},
    {"cluster.snapshot.info.max_concurrent_fetches", 1, INT32_MAX, NULL},
    {"discovery.zen.commit_timeout", -1, INT64_MAX, "-1"},
    {"indices.mapping.max_in_flight_updates", 1, 1000, NULL},
    {"indices.recovery.internal_action_long_timeout", 0, INT64_MAX, "0s"},
    {"indices.recovery.max_concurrent_file_chunks", 1, 5, NULL},
    {"indices.recovery.max_concurrent_operations", 1, 4, NULL},
    {"indices.recovery.recovery_activity_timeout", 0, INT64_MAX, "0s"},
    {"indices.replication.initial_retry_backoff_bound", 10, INT64_MAX, "10ms"},
    {"indices.replication.retry_timeout", -1, INT64_MAX, "-1"},
    {"monitor.fs.health.slow_path_logging_threshold", 1, INT64_MAX, "1ms"},
    {"search.default_search_timeout", -1, INT64_MAX, "-1"},
    {"snapshot.max_concurrent_operations", 1, INT32_MAX, NULL},
};

static struct value_bounds bounds_of(const struct known *known)
{
    for (size_t i = 0; i < sizeof value_bounds / sizeof *value_bounds; i++)
        if (strcmp(known->key, value_bounds[i].key) == 0)
            return value_bounds[i];
    if (known->kind == SETTING_TIME)
        return (struct value_bounds){known->key, 0, INT64_MAX, "0ms"};
    return (struct value_bounds){known->key, known->least, INT32_MAX, NULL};
}

static int check_number(const struct known *known, const struct setting *setting, enum setting_rules rules,
                        struct arena *arena, struct problem *ret_problem)
{
    struct value_bounds bounds = {known->key, known->least, INT64_MAX, NULL};
    int64_t number;
    if (rules < SETTING_RULES_VALUES || known->effect == EFFECT_FIXED)
        return setting__check_number(setting, bounds.least, bounds.most, arena, ret_problem);
    bounds = bounds_of(known);
    if (slice_to_i64(setting->values[0], &number) && (number > INT32_MAX || number < INT32_MIN))
        return setting__refuse_no_number(setting, arena, ret_problem);
    return setting__check_number(setting, bounds.least, bounds.most, arena, ret_problem);
}

static int check_time(const struct known *known, const struct setting *setting, enum dialect dialect,
                      enum setting_rules rules, struct arena *arena, struct problem *ret_problem)
{
    const struct value_bounds bounds = bounds_of(known);
    int64_t us;
    if (time_value_parse(setting->values[0], setting->key, dialect, arena, &us, ret_problem) != 0)
        return SETTINGS_REFUSED;
    if (rules < SETTING_RULES_VALUES || (us < 0 ? bounds.least < 0 : us / (int64_t)TL_MS >= bounds.least))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse value [%.*s] for setting [%.*s], must be >= [%s]", SLICE_ARG(setting->values[0]),
                SLICE_ARG(setting->key), bounds.text);
    return SETTINGS_REFUSED;
}

static int check_kind(const struct known *known, const struct setting *given, enum dialect dialect,
                      enum setting_rules rules, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(given->list || given->value_count > 0); /* a removal has no value to check */
    bool shares = rules < SETTING_RULES_VALUES || known->effect == EFFECT_OWN;
    if (slice_is(given->key, "action.auto_create_index"))
        return check_patterns(given, rules, arena, ret_problem);
    const struct setting text = setting__as_text(given, rules, arena), *setting = &text;
    if (slice_is(setting->key, "logger._root"))
        return check_level(setting, arena, ret_problem);
    if (setting->list)
        return 0;
    switch (known->kind) {
    case SETTING_NUMBER: return check_number(known, setting, rules, arena, ret_problem);
    case SETTING_BOOLEAN: return setting__check_boolean(setting, arena, ret_problem);
    case SETTING_REAL: return check_real(setting, rules, arena, ret_problem);
    case SETTING_BYTES: return check_bytes(setting, shares, arena, ret_problem);
    case SETTING_TIME: return check_time(known, setting, dialect, rules, arena, ret_problem);
    default:
        return slice_is(setting->key, "script.max_compilations_rate")
                   ? check_rate(setting, dialect, arena, ret_problem)
                   : setting__check_choice(choices, sizeof choices / sizeof *choices, setting, arena, ret_problem);
    }
}

static int check_effect(const struct known *known, const struct setting *setting, enum setting_rules rules,
                        struct arena *arena, struct problem *ret_problem)
{
    enum setting_effect effect = setting__effect(known->effect, rules);
    if (effect == EFFECT_OWN)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] has no effect here: %s",
                    SLICE_ARG(setting->key), known->what);
    else if (effect == EFFECT_FIXED && !setting__permits(known->effect, setting->values[0], known->what))
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] cannot be [%.*s]: it is [%s] here",
                    SLICE_ARG(setting->key), SLICE_ARG(setting->values[0]), known->what);
    else
        return 0;
    return SETTINGS_REFUSED;
}

int cluster_settings__check(const char *section, const struct settings *requested, const struct settings *current,
                            enum dialect dialect, enum setting_rules rules, struct arena *arena,
                            struct problem *ret_problem)
{
    for (size_t i = 0; i < requested->count; i++) {
        const struct setting *setting = &requested->items[i];
        const struct known *known = find_known(setting->key);
        bool removal = setting->value_count == 0 && (!setting->list || rules < SETTING_RULES_BOUNDED);
        if (removal && (known != NULL || slice_find_byte(setting->key, '*') < setting->key.len ||
                        settings_find(current, setting->key) != NULL))
            continue;
        if (known == NULL) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s setting [%.*s], %s", section,
                        SLICE_ARG(setting->key),
                        cluster_settings__is_static(setting->key) ? "not dynamically updateable" : "not recognized");
            return SETTINGS_REFUSED;
        }
        int r = check_kind(known, setting, dialect, rules, arena, ret_problem);
        if (r == 0)
            r = check_effect(known, setting, rules, arena, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Returns: the time of a setting that is stored, with a transient value before a persistent one, in microseconds. */
static int64_t time_of(const struct cluster_sections *in, const char *key, int64_t otherwise, struct arena *arena)
{
    struct slice text = settings_get(&in->transient, slice_from(key));
    struct problem unused;
    int64_t us;
    if (text.data == NULL)
        text = settings_get(&in->persistent, slice_from(key));
    if (text.data == NULL || time_value_parse(text, slice_from(key), DIALECT_7, arena, &us, &unused) != 0)
        return otherwise;
    return us < 0 ? 0 : us;
}

int cluster_settings__check_keep_alive(const struct cluster_sections *before, const struct cluster_sections *after,
                                       struct arena *arena, struct problem *ret_problem)
{
    static const char usual[] = "search.default_keep_alive", most[] = "search.max_keep_alive";
    int64_t us = time_of(after, usual, CLUSTER_KEEP_ALIVE_US, arena);
    int64_t us_max = time_of(after, most, CLUSTER_KEEP_ALIVE_MAX_US, arena);
    if (us / (int64_t)TL_MS <= us_max / (int64_t)TL_MS) /* Elasticsearch compares milliseconds */
        return 0;
    if (us == time_of(before, usual, CLUSTER_KEEP_ALIVE_US, arena) &&
        us_max == time_of(before, most, CLUSTER_KEEP_ALIVE_MAX_US, arena))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Default keep alive setting for request [%s] should be smaller than max keep alive [%s], was (%s > %s)",
                usual, most, time_value_print(arena, (uint64_t)us), time_value_print(arena, (uint64_t)us_max));
    return SETTINGS_REFUSED;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static struct slice join_values(const struct setting *setting, struct arena *arena)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < setting->value_count; i++) {
        buf_printf(&text, "%s%.*s", i == 0 ? "" : ",", SLICE_ARG(setting->values[i]));
    }
    struct slice copy = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return copy;
}

const struct cluster_values *cluster_settings__parse(struct slice body, struct arena *arena)
{
    struct cluster_values *values = arena_zalloc(arena, sizeof(*values));
    struct arena parsed = ARENA_INIT;
    struct problem problem;
    struct json_doc doc;

    /* A section with more settings than a request may have, which earlier versions stored, has no effect. */
    if (json_parse_stored(&parsed, body, &doc) == 0) {
        if (settings_parse(json_get_lit(doc.root, "transient"), SLICE_LIT(""), arena, &values->transient, &problem) !=
            0)
            values->transient = (struct settings){0};
        if (settings_parse(json_get_lit(doc.root, "persistent"), SLICE_LIT(""), arena, &values->persistent, &problem) !=
            0)
            values->persistent = (struct settings){0};
    }
    arena_deinit(&parsed);
    return values;
}

/* Returns: the setting that counts; NULL: none. `empty`: a list without values counts, too. */
static const struct setting *find_setting(const struct catalog *catalog, const char *key, bool empty,
                                          struct arena *arena)
{
    const struct catalog_object *object = catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("settings"));

    if (object == NULL)
        return NULL;
    const struct cluster_values *values =
        object->values != NULL ? object->values : cluster_settings__parse(object->body, arena);
    const struct settings *both[] = {&values->transient, &values->persistent};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const struct setting *setting = settings_find(both[i], slice_from(key));
        if (setting != NULL && (setting->value_count > 0 || (empty && setting->list)))
            return setting;
    }
    return NULL;
}

struct slice cluster_setting(const struct catalog *catalog, const char *key, struct arena *arena)
{
    REQUIRE(key != NULL && arena != NULL);
    const struct setting *setting = find_setting(catalog, key, false, arena);

    return setting == NULL ? SLICE_NONE : join_values(setting, arena);
}

bool cluster_setting_is(const struct catalog *catalog, const char *key, const char *text, struct arena *arena)
{
    return slice_is(cluster_setting(catalog, key, arena), text);
}

/* --- Index creation by writes ------------------------------------------------------------------------------------- */

/*
 * The patterns as one text. Since SETTING_RULES_LISTS a list has brackets around it, which belong to its first and last
 * pattern, as in Elasticsearch: few names match a list.
 */
static struct slice creation_patterns(const struct catalog *catalog, enum setting_rules rules, struct arena *arena)
{
    static const char key[] = "action.auto_create_index";
    const struct setting *setting = find_setting(catalog, key, rules >= SETTING_RULES_LISTS, arena);

    if (setting == NULL || !setting->list || rules < SETTING_RULES_LISTS)
        return cluster_setting(catalog, key, arena);
    return setting__as_text(setting, rules, arena).values[0];
}

/*
 * Finds the first pattern that matches a name. *ret_bytes: those that were compared. Returns: the pattern, with its
 * sign; data NULL: none matches.
 */
static struct slice find_pattern(struct slice list, struct slice name, enum setting_rules rules, size_t *ret_bytes)
{
    size_t bytes = 0;
    struct slice found = SLICE_NONE;
    for (struct slice rest = list; rest.data != NULL && found.data == NULL;) {
        struct slice pattern = next_pattern(&rest, rules);
        bool sign = pattern.len > 0 && (pattern.data[0] == '+' || pattern.data[0] == '-');
        bytes += json_wildcard_bytes(pattern, name.len);
        if (json_wildcard(sign ? slice_from_offset(pattern, 1) : pattern, name))
            found = pattern;
    }
    *ret_bytes = bytes;
    return found;
}

int cluster_settings__may_create(const struct catalog *catalog, struct slice name, enum setting_rules rules,
                                 struct arena *arena, uint64_t *ret_work, struct problem *ret_problem)
{
    struct slice list = creation_patterns(catalog, rules, arena);
    size_t bytes;
    *ret_problem = (struct problem){0};
    *ret_work = 0;
    if (list.len == 0 || slice_is(list, "true"))
        return 0;
    if (slice_is(list, "false"))
        return SETTINGS_REFUSED;
    struct slice pattern = find_pattern(list, name, rules, &bytes);
    *ret_work = list.len / WORK_LIST_BYTES + bytes / WORK_COMPARED_BYTES;
    if (pattern.data != NULL && (pattern.len == 0 || pattern.data[0] != '-'))
        return 0;
    if (pattern.data != NULL)
        problem_set(
            ret_problem, arena, PROBLEM_INDEX_NOT_FOUND,
            "no such index [%.*s] and [action.auto_create_index] contains [%.*s] which forbids automatic creation "
            "of the index",
            SLICE_ARG(name), SLICE_ARG(pattern));
    else
        problem_set(ret_problem, arena, PROBLEM_INDEX_NOT_FOUND,
                    "no such index [%.*s] and [action.auto_create_index] ([%.*s]) doesn't match", SLICE_ARG(name),
                    SLICE_ARG(list));
    return SETTINGS_REFUSED;
}
