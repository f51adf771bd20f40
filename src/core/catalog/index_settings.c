/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of an index: the known ones and their validation. */
#include "core/catalog/index_settings.h"
#include "base/check.h"

#include <strings.h>

#include "base/suggest.h"
#include "core/catalog/setting_kind.h"
#include "core/step/core.h"
#include "json/time_value.h"
#include "json/write.h"
#include "mapping/mapping.h"

/* Settings are proposed for an unknown name whose similarity is above this. */
#define SIMILARITY_MIN 0.7

struct known {
    const char *key;
    enum setting_kind kind;
    bool dynamic;
    int64_t least, most; /* bounds of a number */
    int64_t bound;       /* of a number here, lower than Elasticsearch's; 0: none */
    enum setting_effect effect;
    const char *only; /* if FIXED: the accepted value; empty: none */
    const char *what;
};

static const struct known known_settings[] = {
#define X(key, kind, dynamic, least, most, bound, effect, only, what) \
    {key, SETTING_##kind, dynamic, least, most, bound, EFFECT_##effect, only, what},
#include "core/catalog/index_settings.def"
#undef X
};

enum { KNOWN_COUNT = sizeof(known_settings) / sizeof(known_settings[0]) };

static const struct known *find_known(struct slice key)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (setting__matches(known_settings[i].key, key))
            return &known_settings[i];
    return NULL;
}

/*
 * Sets a problem with `cause` as its cause, and with the text of the cause unless it has its own.
 */
static int refuse_because(struct problem *cause, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(cause->type != PROBLEM_NONE && cause->reason.data != NULL);
    if (ret_problem->reason.data == NULL)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(cause->reason));
    ret_problem->caused_by = cause;
    return INDEX_SETTINGS_REFUSED;
}

/* Sets the problem that a text is not a number. */
static int refuse_no_number(struct slice text, struct arena *arena, struct problem *ret_problem)
{
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    problem_set(cause, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
    return refuse_because(cause, arena, ret_problem);
}

static size_t count_digits(struct slice text)
{
    size_t digits = 0;
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    return digits;
}

static int refuse_time(const struct setting *setting, const char *why, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse setting [%.*s] with value [%.*s] as a time value: %s", SLICE_ARG(setting->key),
                SLICE_ARG(setting->values[0]), why);
    return INDEX_SETTINGS_REFUSED;
}

static int refuse_short_time(const struct setting *setting, int64_t least, struct arena *arena,
                             struct problem *ret_problem)
{
    /* Elasticsearch prints the bound in the unit of its source code. */
    bool minutes = slice_is(setting->key, "index.search.idle.after");
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse value [%.*s] for setting [%.*s], must be >= [%lld%s]", SLICE_ARG(setting->values[0]),
                SLICE_ARG(setting->key), (long long)least,
                least == -1 ? ""
                : minutes   ? "m"
                            : "ms");
    return INDEX_SETTINGS_REFUSED;
}

/* Refuses a text that is not of the form "12s". */
static int refuse_odd_time(const struct setting *setting, struct slice unit, struct arena *arena,
                           struct problem *ret_problem)
{
    REQUIRE(setting->value_count > 0 && setting->values[0].len >= unit.len);
    struct slice text = setting->values[0];
    if (text.len == unit.len) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "failed to parse [%.*s]", SLICE_ARG(text));
        return refuse_no_number(SLICE_NONE, arena, ret_problem);
    }
    if (text.data[0] == '-' && count_digits(slice_from_offset(text, 1)) + 1 + unit.len == text.len)
        /* Elasticsearch checks only this one later */
        return slice_is(setting->key, "index.refresh_interval")
                   ? refuse_short_time(setting, -1, arena, ret_problem)
                   : refuse_time(setting, "negative durations are not supported", arena, ret_problem);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse [%.*s], fractional time values are not supported", SLICE_ARG(text));
    return refuse_no_number(slice_make(text.data, text.len - unit.len), arena, ret_problem);
}

/* Returns: whether the amount before a unit is a number; *ret_nanos: the time, at most INT64_MAX. */
static bool time_of_amount(struct slice amount, const struct time_unit *unit, int64_t *ret_nanos)
{
    int64_t number;

    if (count_digits(amount) != amount.len || !slice_to_i64(amount, &number))
        return false;
    if (__builtin_mul_overflow(number, unit->nanos, ret_nanos))
        *ret_nanos = INT64_MAX;
    return true;
}

static int check_time(const struct setting *setting, int64_t least, struct arena *arena, struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    int64_t nanos;

    if (slice_is(text, "-1") || slice_is(text, "0"))
        return text.len == 2 ? (least <= -1 ? 0 : refuse_short_time(setting, least, arena, ret_problem))
                             : (least <= 0 ? 0 : refuse_short_time(setting, least, arena, ret_problem));
    const struct time_unit *unit = time_value_unit(text);
    if (unit == NULL)
        return refuse_time(setting, "unit is missing or unrecognized", arena, ret_problem);
    struct slice name = slice_from(unit->suffix);
    if (!time_of_amount(slice_make(text.data, text.len - name.len), unit, &nanos))
        return refuse_odd_time(setting, name, arena, ret_problem);
    return least <= 0 || nanos / 1000000 >= least ? 0 : refuse_short_time(setting, least, arena, ret_problem);
}

int64_t index_settings__gc_deletes_us(const struct settings *settings)
{
    struct slice text = settings_get_lit(settings, "index.gc_deletes");
    int64_t nanos;

    if (text.data == NULL)
        return (int64_t)CORE_TOMBSTONE_US;
    const struct time_unit *unit = time_value_unit(text);
    if (unit == NULL)
        return slice_is(text, "-1") ? -1 : 0;
    if (!time_of_amount(slice_make(text.data, text.len - slice_from(unit->suffix).len), unit, &nanos))
        return (int64_t)CORE_TOMBSTONE_US;   /* an early build may have kept it */
    return nanos / 1000000 * (int64_t)TL_MS; /* Elasticsearch counts milliseconds */
}

/* --- Bytes and fractions ------------------------------------------------------------------------------------------ */

static int refuse_bytes(const struct setting *setting, const char *why, struct arena *arena,
                        struct problem *ret_problem)
{
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    problem_set(cause, arena, PROBLEM_PARSE, "failed to parse setting [%.*s] with value [%.*s] as a size in bytes%s",
                SLICE_ARG(setting->key), SLICE_ARG(setting->values[0]), why);
    return refuse_because(cause, arena, ret_problem);
}

/* Refuses a negative or malformed size; Java's messages distinguish the two. */
static int refuse_negative_bytes(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    (void)refuse_bytes(setting, "", arena, ret_problem);
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    problem_set(cause, arena, PROBLEM_ILLEGAL_ARGUMENT, "Values less than -1 bytes are not supported: %.*s",
                SLICE_ARG(setting->values[0]));
    ret_problem->caused_by->caused_by = cause;
    return INDEX_SETTINGS_REFUSED;
}

static int refuse_few_bytes(const struct setting *setting, int64_t least, struct arena *arena,
                            struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    if (slice_is(setting->key, "index.merge.policy.floor_segment"))
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "floorSegmentMB must be > 0.0 (got %s)",
                    slice_is(text, "-1") ? "-9.5367431640625E-7" : "0.0");
    else if (slice_is(setting->key, "index.merge.policy.max_merged_segment"))
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "maxMergedSegmentMB must be >=0 (got -9.5367431640625E-7)");
    else
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "failed to parse value [%.*s] for setting [%.*s], must be >= [%lldb]", SLICE_ARG(text),
                    SLICE_ARG(setting->key), (long long)least);
    return INDEX_SETTINGS_REFUSED;
}

/* Checks a minimum that Elasticsearch has beyond that of the table; the table's is that of older commands. */
static int check_newer_minimum(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    if (!slice_is(setting->key, "index.flush_after_merge") || !slice_is(setting->values[0], "-1"))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse value [-1] for setting [%.*s], must be >= [0]", SLICE_ARG(setting->key));
    return INDEX_SETTINGS_REFUSED;
}

/* Checks a maximum that Lucene has beyond that of the table; the table's is that of older commands. */
static int check_newer_maximum(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    double value;
    if (!slice_is(setting->key, "index.merge.policy.expunge_deletes_allowed") ||
        !slice_to_double(setting->values[0], &value) || value <= 100)
        return 0;
    json_double_text(&text, value);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "forceMergeDeletesPctAllowed must be between 0.0 and 100.0 inclusive (got %.*s)",
                SLICE_ARG(buf_as_slice(&text)));
    buf_deinit(&text);
    return INDEX_SETTINGS_REFUSED;
}

/* Checks "512mb" or "1.5g". */
static int check_bytes(const struct setting *setting, int64_t least, struct arena *arena, struct problem *ret_problem)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kb", 0x1p10}, {"k", 0x1p10}, {"mb", 0x1p20}, {"m", 0x1p20}, {"gb", 0x1p30}, {"g", 0x1p30},
                 {"tb", 0x1p40}, {"t", 0x1p40}, {"pb", 0x1p50}, {"p", 0x1p50}, {"b", 1}};
    struct slice text = setting->values[0];
    double number;

    if (slice_is(text, "-1") || slice_is(text, "0"))
        return (text.len == 2 ? -1 : 0) >= least ? 0 : refuse_few_bytes(setting, least, arena, ret_problem);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct slice unit = slice_from(units[i].name);
        if (text.len < unit.len || strncasecmp(text.data + text.len - unit.len, unit.data, unit.len) != 0)
            continue;
        if (text.len == unit.len) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse value [%.*s] for setting [%.*s]",
                        SLICE_ARG(text), SLICE_ARG(setting->key));
            return refuse_no_number(SLICE_NONE, arena, ret_problem);
        }
        if (!slice_to_double(slice_make(text.data, text.len - unit.len), &number) || number < 0)
            return refuse_negative_bytes(setting, arena, ret_problem);
        return number * units[i].bytes >= (double)least ? 0 : refuse_few_bytes(setting, least, arena, ret_problem);
    }
    return refuse_bytes(setting, ": unit is missing or unrecognized", arena, ret_problem);
}

static int check_real(const struct setting *setting, int64_t least, int64_t most, struct arena *arena,
                      struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    double value;
    if (!slice_to_double(text, &value)) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse value [%.*s] for setting [%.*s]",
                    SLICE_ARG(text), SLICE_ARG(setting->key));
        return refuse_no_number(text, arena, ret_problem);
    }
    bool low = !(value >= (double)least);
    if (!low && value <= (double)most)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] for setting [%.*s] must be %s %lld.0", SLICE_ARG(text),
                SLICE_ARG(setting->key), low ? ">=" : "<=", (long long)(low ? least : most));
    return INDEX_SETTINGS_REFUSED;
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static bool is_whole_number(struct slice text)
{
    int64_t value;
    return slice_to_i64(text, &value) && value >= 0;
}

/* Checks "0-1", "2-all" or "false". */
static int check_expand(const struct setting *setting, enum setting_rules rules, struct arena *arena,
                        struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    size_t dash = slice_find_byte(text, '-');
    struct slice least = slice_make(text.data, dash), most = slice_from_offset(text, dash + 1);
    int64_t low = 0, high = INT64_MAX;
    if (slice_is(text, "false"))
        return 0;
    if (dash < text.len && is_whole_number(least) && (slice_is(most, "all") || is_whole_number(most))) {
        if (rules < SETTING_RULES_VALUES || slice_is(most, "all") || !slice_to_i64(least, &low) ||
            !slice_to_i64(most, &high) || low <= high)
            return 0;
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "[%.*s] minReplicas must be =< maxReplicas but wasn't %lld > %lld", SLICE_ARG(setting->key),
                    (long long)low, (long long)high);
        return INDEX_SETTINGS_REFUSED;
    }
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "failed to parse [%.*s] from value: [%.*s] at index %d",
                SLICE_ARG(setting->key), SLICE_ARG(text), dash < text.len ? (int)dash : -1);
    return INDEX_SETTINGS_REFUSED;
}

/* Refuses all pipelines but "_none", since there are no ingest pipelines. */
static int check_pipeline(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    if (slice_is(setting->values[0], "_none") || setting->values[0].len == 0)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[%.*s] cannot be [%.*s]: there are no ingest pipelines here, only [_none]", SLICE_ARG(setting->key),
                SLICE_ARG(setting->values[0]));
    return INDEX_SETTINGS_REFUSED;
}

static const struct setting_choice choices[] = {
    {"index.codec",
     false,
     {"default", "best_compression", "lucene_default"},
     "unknown value for [index.codec] must be one of [default, best_compression] but was: ",
     ""},
    {"index.fielddata.cache", false, {"node", "none"}, "failed to parse [", "] must be one of [node,none]"},
    {"index.indexing.slowlog.level",
     true,
     {"trace", "debug", "info", "warn"},
     "No enum constant org.elasticsearch.index.SlowLogLevel.",
     ""},
    {"index.recovery.type", false, {""}, "Unknown recovery type [", "]"},
    {"index.routing.allocation.enable",
     true,
     {"none", "new_primaries", "primaries", "all"},
     "Illegal allocation.enable value [",
     "]"},
    {"index.routing.rebalance.enable",
     true,
     {"none", "primaries", "replicas", "all"},
     "Illegal rebalance.enable value [",
     "]"},
    {"index.search.slowlog.level",
     true,
     {"trace", "debug", "info", "warn"},
     "No enum constant org.elasticsearch.index.SlowLogLevel.",
     ""},
    {"index.shard.check_on_startup",
     false,
     {"true", "false", "checksum"},
     "unknown value for [index.shard.check_on_startup] must be one of [true, false, checksum] but was: ",
     ""},
    {"index.store.fs.fs_lock",
     false,
     {"native", "simple"},
     "unrecognized [index.store.fs.fs_lock] \"",
     "\": must be native or simple"},
    {"index.store.type", false, {"niofs", "mmapfs", "simplefs", "hybridfs", "fs"}, "Unknown store type [", "]"},
    {"index.translog.durability",
     true,
     {"request", "async"},
     "No enum constant org.elasticsearch.index.translog.Translog.Durability.",
     ""},
};

/* Checks a boolean or a share of an index. */
static int check_compound(struct slice text, struct arena *arena, struct problem *ret_problem)
{
    double part;
    if (slice_is(text, "true") || slice_is(text, "false") || (slice_to_double(text, &part) && part >= 0 && part <= 1))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Expected a boolean or a value in the interval [0..1] but was: [%.*s]", SLICE_ARG(text));
    return slice_to_double(text, &part) ? INDEX_SETTINGS_REFUSED : refuse_no_number(text, arena, ret_problem);
}

static int check_replicas(struct slice text, struct arena *arena, struct problem *ret_problem)
{
    if (slice_is(text, "all") || is_whole_number(text))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "cannot parse ActiveShardCount[%.*s]", SLICE_ARG(text));
    return refuse_no_number(text, arena, ret_problem);
}

/* Checks the number of characters that a slow log has of a document, or a boolean. */
static int check_slow_source(const struct setting *setting, enum setting_rules rules, struct arena *arena,
                             struct problem *ret_problem)
{
    int64_t characters;
    if (setting->values[0].len == 0 ||
        (slice_to_i64(setting->values[0], &characters) &&
         (rules < SETTING_RULES_REMOVED || (characters >= INT32_MIN && characters <= INT32_MAX))))
        return 0;
    return setting__check_boolean(setting, arena, ret_problem) == 0 ? 0 : INDEX_SETTINGS_REFUSED;
}

/* Checks the texts that have restricted values. */
static int check_text(const struct setting *setting, enum setting_rules rules, struct arena *arena,
                      struct problem *ret_problem)
{
    struct slice text = setting->values[0];
    if (slice_is(setting->key, "index.auto_expand_replicas"))
        return check_expand(setting, rules, arena, ret_problem);
    if (slice_is(setting->key, "index.default_pipeline") || slice_is(setting->key, "index.final_pipeline"))
        return check_pipeline(setting, arena, ret_problem);
    if (slice_is(setting->key, "index.compound_format"))
        return check_compound(text, arena, ret_problem);
    if (slice_is(setting->key, "index.write.wait_for_active_shards"))
        return check_replicas(text, arena, ret_problem);
    if (slice_is(setting->key, "index.indexing.slowlog.source"))
        return check_slow_source(setting, rules, arena, ret_problem);
    return setting__check_choice(choices, sizeof choices / sizeof *choices, setting, arena, ret_problem) == 0
               ? 0
               : INDEX_SETTINGS_REFUSED;
}

/*
 * Checks a setting that would change replies in Elasticsearch: only its default is accepted. An
 * empty text sets nothing.
 */
static int check_fixed(const struct known *known, const struct setting *setting, enum setting_rules rules,
                       struct arena *arena, struct problem *ret_problem)
{
    bool none = setting->value_count == 0 ||
                (setting->value_count == 1 && known->kind == SETTING_TEXT && setting->values[0].len == 0);
    if (setting__effect(known->effect, rules) != EFFECT_FIXED || none ||
        (known->only[0] != '\0' && setting->value_count == 1 &&
         setting__permits(known->effect, setting->values[0], known->only)))
        return 0;
    if (known->only[0] == '\0')
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] is not supported: %s",
                    SLICE_ARG(setting->key), known->what);
    else
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] is not supported, only [%s]: %s",
                    SLICE_ARG(setting->key), known->only, known->what);
    return INDEX_SETTINGS_REFUSED;
}

/* Refuses a number with which one change of a mapping, or one document, would take longer than a step may. */
static int check_bound(const struct known *known, const struct setting *setting, enum setting_rules rules,
                       struct arena *arena, struct problem *ret_problem)
{
    int64_t number;

    if (rules < SETTING_RULES_BOUNDED || known->bound == 0 || !slice_to_i64(setting->values[0], &number) ||
        number <= known->bound)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] for setting [%.*s] must be <= %lld here: %s",
                SLICE_ARG(setting->values[0]), SLICE_ARG(setting->key), (long long)known->bound, known->what);
    return INDEX_SETTINGS_REFUSED;
}

static int check_kind(const struct known *known, const struct setting *given, enum setting_rules rules,
                      struct arena *arena, struct problem *ret_problem)
{
    const struct setting text = setting__as_text(given, rules, arena), *setting = &text;

    if (setting->list || setting->value_count == 0)
        return 0;
    switch (known->kind) {
    case SETTING_NUMBER:
        return setting__check_number(setting, known->least, known->most, arena, ret_problem) == 0
                   ? check_bound(known, setting, rules, arena, ret_problem)
                   : INDEX_SETTINGS_REFUSED;
    case SETTING_BOOLEAN: return setting__check_boolean(setting, arena, ret_problem) == 0 ? 0 : INDEX_SETTINGS_REFUSED;
    case SETTING_TIME: return check_time(setting, known->least, arena, ret_problem);
    case SETTING_BYTES:
        return check_bytes(setting, known->least, arena, ret_problem) == 0 &&
                       (rules < SETTING_RULES_REMOVED || check_newer_minimum(setting, arena, ret_problem) == 0)
                   ? 0
                   : INDEX_SETTINGS_REFUSED;
    case SETTING_REAL:
        return check_real(setting, known->least, known->most, arena, ret_problem) == 0 &&
                       (rules < SETTING_RULES_REMOVED || check_newer_maximum(setting, arena, ret_problem) == 0)
                   ? 0
                   : INDEX_SETTINGS_REFUSED;
    default: return check_text(setting, rules, arena, ret_problem);
    }
}

/* Returns: whether Elasticsearch proposes a setting for an unknown name: one key, not a list. */
static bool is_proposed(struct slice key)
{
    return slice_find_byte(key, '*') == key.len && !slice_starts_with(key, SLICE_LIT("index.sort.")) &&
           !slice_is(key, "index.query.default_field");
}

/* Refuses a name that is no setting, with the settings whose names are similar. */
static int refuse_unknown(struct slice key, struct arena *arena, struct problem *ret_problem)
{
    struct slice similar[KNOWN_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        struct slice known = slice_from(known_settings[i].key);
        if (is_proposed(known) && suggest_similarity(key, known) > SIMILARITY_MIN)
            similar[count++] = known;
    }
    struct buf proposal = BUF_INIT(BUF_UNLIMITED);
    suggest_append(&proposal, "", key, similar, count);
    if (count == 0)
        buf_lit(&proposal, " please check that any required plugins are installed, or check the breaking changes "
                           "documentation for removed settings");
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "unknown setting [%.*s]%.*s", SLICE_ARG(key),
                SLICE_ARG(buf_as_slice(&proposal)));
    buf_deinit(&proposal);
    return INDEX_SETTINGS_REFUSED;
}

/* Refuses private settings of a new index, all of them in one text. Returns: 0: it has no private settings. */
static int refuse_private(const struct settings *settings, struct arena *arena, struct problem *ret_problem)
{
    struct slice text = SLICE_NONE;
    size_t count = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct known *known = find_known(settings->items[i].key);
        if (known != NULL && known->kind == SETTING_PRIVATE)
            text = arena_append(arena, text, "%zu: private index setting [%.*s] can not be set explicitly;", ++count,
                                SLICE_ARG(settings->items[i].key));
    }
    if (count == 0)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_VALIDATION, "Validation Failed: %.*s", SLICE_ARG(text));
    return INDEX_SETTINGS_REFUSED;
}

static int check_one(const struct setting *setting, bool update, enum setting_rules rules, struct arena *arena,
                     struct problem *ret_problem)
{
    const struct known *known = find_known(setting->key);
    bool pattern = setting->value_count == 0 && slice_find_byte(setting->key, '*') < setting->key.len;
    if (known == NULL)
        return pattern ? 0 : refuse_unknown(setting->key, arena, ret_problem);
    if (known->kind != SETTING_PRIVATE) {
        int r = check_kind(known, setting, rules, arena, ret_problem);
        return r != 0 ? r : check_fixed(known, setting, rules, arena, ret_problem);
    }
    if (!update)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "can not update private setting [%.*s]; this setting is managed by Elasticsearch",
                SLICE_ARG(setting->key));
    return INDEX_SETTINGS_REFUSED;
}

int index_settings__check(const struct settings *settings, bool update, enum setting_rules rules, struct arena *arena,
                          struct problem *ret_problem)
{
    for (size_t i = 0; i < settings->count; i++) {
        int r = check_one(&settings->items[i], update, rules, arena, ret_problem);
        if (r != 0)
            return r;
    }
    return update ? 0 : refuse_private(settings, arena, ret_problem);
}

int index_settings__check_removed(const struct settings *settings, enum setting_rules rules, struct arena *arena,
                                  struct problem *ret_problem)
{
    static const char *const removed[][2] = {
        {"index.mapper.dynamic", "Setting index.mapper.dynamic was removed after version 6.0.0"},
        {"index.optimize_auto_generated_id",
         "Setting [index.optimize_auto_generated_id] was removed in version 7.0.0"}};
    REQUIRE(arena != NULL && ret_problem != NULL);
    for (size_t i = 0; rules >= SETTING_RULES_REMOVED && i < sizeof removed / sizeof *removed; i++) {
        if (settings_find(settings, slice_from(removed[i][0])) == NULL)
            continue;
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", removed[i][1]);
        return INDEX_SETTINGS_REFUSED;
    }
    return 0;
}

struct slice index_settings__static(const struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct known *known = find_known(settings->items[i].key);
        if (known != NULL && !known->dynamic)
            return settings->items[i].key;
    }
    return SLICE_NONE;
}

/* --- Shards ------------------------------------------------------------------------------------------------------- */

void index_settings__expand(struct settings *settings, struct arena *arena)
{
    struct slice text = settings_get_lit(settings, "index.auto_expand_replicas");
    size_t dash = text.data == NULL ? 0 : slice_find_byte(text, '-');
    int64_t least;

    if (dash < text.len && slice_to_i64(slice_make(text.data, dash), &least) && least >= 0)
        settings_set(settings, arena, SLICE_LIT("index.number_of_replicas"), slice_make(text.data, dash));
}

int index_settings__check_routing(const struct settings *settings, struct arena *arena, struct problem *ret_problem)
{
    struct slice routing = settings_get_lit(settings, "index.number_of_routing_shards");
    struct slice shards = settings_get_lit(settings, "index.number_of_shards");
    int64_t most, count;

    if (routing.data == NULL || !slice_to_i64(routing, &most) || !slice_to_i64(shards, &count) || count < 1)
        return 0;
    if (most >= count && most % count == 0)
        return 0;
    if (most < count)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "index.number_of_routing_shards [%lld] must be >= index.number_of_shards [%lld]", (long long)most,
                    (long long)count);
    else
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the number of source shards [%lld] must be a factor of [%lld]", (long long)count, (long long)most);
    return INDEX_SETTINGS_REFUSED;
}
