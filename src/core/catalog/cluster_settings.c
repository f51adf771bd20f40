/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the cluster. */
#include "core/catalog/cluster_settings.h"
#include "base/check.h"

#include <stdlib.h>

#include "base/buf.h"
#include "core/catalog/catalog.h"
#include "core/catalog/setting_kind.h"
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

static int refuse_real(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse value [%.*s] for setting [%.*s]",
                SLICE_ARG(setting->values[0]), SLICE_ARG(setting->key));
    return SETTINGS_REFUSED;
}

static int check_real(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    const char *text = arena_printf(arena, "%.*s", SLICE_ARG(setting->values[0])).data;
    char *end;
    (void)strtod(text, &end);
    return end == text || *end != 0 ? refuse_real(setting, arena, ret_problem) : 0;
}

/* Checks "512mb", "1g" or "40%". */
static int check_bytes(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    static const char *const units[] = {"b", "k", "kb", "m", "mb", "g", "gb", "t", "tb", "p", "pb", "%"};
    struct slice text = setting->values[0];
    size_t digits = 0;
    while (digits < text.len && ((text.data[digits] >= '0' && text.data[digits] <= '9') || text.data[digits] == '.'))
        digits++;
    struct slice unit = slice_from_offset(text, digits);
    if (slice_is(text, "0") || slice_is(text, "-1"))
        return 0;
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof *units; i++)
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

/* Checks a list of name patterns. */
static int check_patterns(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    for (size_t i = 0; i < setting->value_count; i++)
        for (struct slice rest = setting->values[i]; rest.data != NULL;) {
            size_t comma = slice_find_byte(rest, ',');
            struct slice pattern = slice_make(rest.data, comma);
            bool sign = pattern.len > 0 && (pattern.data[0] == '+' || pattern.data[0] == '-');
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
            rest = comma < rest.len ? slice_from_offset(rest, comma + 1) : SLICE_NONE;
        }
    return 0;
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

static int check_kind(const struct known *known, const struct setting *given, enum dialect dialect,
                      enum setting_rules rules, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(given->list || given->value_count > 0); /* a removal has no value to check */
    int64_t us;
    if (slice_is(given->key, "action.auto_create_index"))
        return check_patterns(given, arena, ret_problem);
    const struct setting text = setting__as_text(given, rules, arena), *setting = &text;
    if (slice_is(setting->key, "logger._root"))
        return check_level(setting, arena, ret_problem);
    if (setting->list)
        return 0;
    switch (known->kind) {
    case SETTING_NUMBER: return setting__check_number(setting, known->least, INT64_MAX, arena, ret_problem);
    case SETTING_BOOLEAN: return setting__check_boolean(setting, arena, ret_problem);
    case SETTING_REAL: return check_real(setting, arena, ret_problem);
    case SETTING_BYTES: return check_bytes(setting, arena, ret_problem);
    case SETTING_TIME:
        return time_value_parse(setting->values[0], setting->key, dialect, arena, &us, ret_problem) == 0
                   ? 0
                   : SETTINGS_REFUSED;
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

struct slice cluster_setting(const struct catalog *catalog, const char *key, struct arena *arena)
{
    REQUIRE(key != NULL && arena != NULL);
    const struct catalog_object *object = catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("settings"));

    if (object == NULL)
        return SLICE_NONE;
    const struct cluster_values *values =
        object->values != NULL ? object->values : cluster_settings__parse(object->body, arena);
    const struct setting *setting = settings_find(&values->transient, slice_from(key));
    if (setting == NULL || setting->value_count == 0)
        setting = settings_find(&values->persistent, slice_from(key));
    return setting == NULL || setting->value_count == 0 ? SLICE_NONE : join_values(setting, arena);
}

bool cluster_setting_is(const struct catalog *catalog, const char *key, const char *text, struct arena *arena)
{
    return slice_is(cluster_setting(catalog, key, arena), text);
}

/* --- Index creation by writes ------------------------------------------------------------------------------------- */

int cluster_settings__may_create(const struct catalog *catalog, struct slice name, struct arena *arena,
                                 struct problem *ret_problem)
{
    struct slice list = cluster_setting(catalog, "action.auto_create_index", arena);
    *ret_problem = (struct problem){0};
    if (list.data == NULL || slice_is(list, "true"))
        return 0;
    if (slice_is(list, "false"))
        return SETTINGS_REFUSED;
    for (struct slice rest = list; rest.data != NULL;) {
        size_t comma = slice_find_byte(rest, ',');
        struct slice pattern = slice_make(rest.data, comma);
        bool sign = pattern.len > 0 && (pattern.data[0] == '+' || pattern.data[0] == '-');
        rest = comma < rest.len ? slice_from_offset(rest, comma + 1) : SLICE_NONE;
        if (!json_wildcard(sign ? slice_from_offset(pattern, 1) : pattern, name))
            continue;
        if (pattern.data[0] != '-')
            return 0;
        problem_set(
            ret_problem, arena, PROBLEM_INDEX_NOT_FOUND,
            "no such index [%.*s] and [action.auto_create_index] contains [%.*s] which forbids automatic creation "
            "of the index",
            SLICE_ARG(name), SLICE_ARG(pattern));
        return SETTINGS_REFUSED;
    }
    problem_set(ret_problem, arena, PROBLEM_INDEX_NOT_FOUND,
                "no such index [%.*s] and [action.auto_create_index] ([%.*s]) doesn't match", SLICE_ARG(name),
                SLICE_ARG(list));
    return SETTINGS_REFUSED;
}
