/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of the text of a setting. */
#include "core/catalog/setting_kind.h"
#include "base/check.h"

#include <strings.h>

#include "base/buf.h"
#include "core/command/command.h"

bool setting__matches(const char *pattern, struct slice key)
{
    REQUIRE(pattern[0] != '\0');
    struct slice whole = slice_from(pattern);
    bool group = whole.data[whole.len - 1] == '*';
    return group ? slice_starts_with(key, slice_make(whole.data, whole.len - 1)) : slice_equal(key, whole);
}

enum setting_rules setting__rules(unsigned version)
{
    return version >= COMMAND_SINCE_PATTERNS_WEIGHED   ? SETTING_RULES_WEIGHED
           : version >= COMMAND_SINCE_SETTING_LISTS    ? SETTING_RULES_LISTS
           : version >= COMMAND_SINCE_SETTINGS_REMOVED ? SETTING_RULES_REMOVED
           : version >= COMMAND_SINCE_SETTING_VALUES   ? SETTING_RULES_VALUES
           : version >= COMMAND_SINCE_CATALOG_BOUNDS   ? SETTING_RULES_BOUNDED
           : version >= COMMAND_SINCE_FIXED_SETTINGS   ? SETTING_RULES_FIXED
                                                       : SETTING_RULES_FIRST;
}

struct setting setting__as_text(const struct setting *setting, enum setting_rules rules, struct arena *arena)
{
    struct setting one = *setting;
    struct buf text = BUF_INIT(BUF_UNLIMITED);

    if (!setting->list || rules < SETTING_RULES_BOUNDED)
        return one;
    buf_byte(&text, '[');
    for (size_t i = 0; i < setting->value_count; i++) {
        if (i > 0)
            buf_lit(&text, ", ");
        buf_slice(&text, setting->values[i]);
    }
    buf_byte(&text, ']');
    one.values = arena_alloc(arena, sizeof *one.values);
    one.values[0] = arena_copy(arena, buf_as_slice(&text));
    one.value_count = 1;
    one.list = false;
    buf_deinit(&text);
    return one;
}

enum setting_effect setting__effect(enum setting_effect effect, enum setting_rules rules)
{
    bool early = rules < SETTING_RULES_FIXED;
    switch (effect) {
    case EFFECT_FIXED_19: return early ? EFFECT_IDLE : EFFECT_FIXED;
    case EFFECT_OWN_19: return early ? EFFECT_IDLE : EFFECT_OWN;
    default: return effect;
    }
}

bool setting__permits(enum setting_effect effect, struct slice text, const char *list)
{
    REQUIRE(list != NULL);
    if (effect == EFFECT_FIXED)
        return slice_is(text, list);
    for (struct slice rest = slice_from(list); rest.data != NULL;) {
        size_t bar = slice_find_byte(rest, '|');
        if (text.len == bar && strncasecmp(text.data, rest.data, bar) == 0)
            return true;
        rest = bar < rest.len ? slice_from_offset(rest, bar + 1) : SLICE_NONE;
    }
    return false;
}

static int refuse_number(const struct setting *setting, const char *bound, int64_t limit, struct arena *arena,
                         struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] for setting [%.*s] must be %s %lld", SLICE_ARG(setting->values[0]),
                SLICE_ARG(setting->key), bound, (long long)limit);
    return SETTINGS_REFUSED;
}

int setting__refuse_no_number(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    problem_set(cause, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(setting->values[0]));
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse value [%.*s] for setting [%.*s]",
                SLICE_ARG(setting->values[0]), SLICE_ARG(setting->key));
    ret_problem->caused_by = cause;
    return SETTINGS_REFUSED;
}

int setting__check_number(const struct setting *setting, int64_t least, int64_t most, struct arena *arena,
                          struct problem *ret_problem)
{
    REQUIRE(least <= most && arena != NULL && ret_problem != NULL);
    int64_t value;

    if (!slice_to_i64(setting->values[0], &value))
        return setting__refuse_no_number(setting, arena, ret_problem);
    if (value < least)
        return refuse_number(setting, ">=", least, arena, ret_problem);
    if (value > most)
        return refuse_number(setting, "<=", most, arena, ret_problem);
    return 0;
}

int setting__check_boolean(const struct setting *setting, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    struct slice text = setting->values[0];

    if (slice_is(text, "true") || slice_is(text, "false"))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    return SETTINGS_REFUSED;
}

static struct slice in_capitals(struct slice text, struct arena *arena)
{
    char *upper = arena_alloc(arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++)
        upper[i] = text.data[i] >= 'a' && text.data[i] <= 'z' ? (char)(text.data[i] - 'a' + 'A') : text.data[i];
    return slice_make(upper, text.len);
}

static bool is_choice(const struct setting_choice *choice, struct slice text)
{
    for (size_t i = 0; i < SETTING_CHOICES_MAX && choice->of[i] != NULL; i++) {
        struct slice one = slice_from(choice->of[i]);
        if (text.len == one.len &&
            (choice->any_case ? strncasecmp(text.data, one.data, one.len) == 0 : slice_equal(text, one)))
            return true;
    }
    return false;
}

int setting__check_choice(const struct setting_choice *choices, size_t count, const struct setting *setting,
                          struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(setting->value_count > 0); /* without a value a setting is reset */
    struct slice text = setting->values[0];
    const struct setting_choice *choice = choices;
    while (choice < choices + count && !slice_is(setting->key, choice->key))
        choice++;
    if (choice == choices + count || is_choice(choice, text))
        return 0;
    if (choice->any_case)
        text = in_capitals(text, arena);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s%.*s%s", choice->before, SLICE_ARG(text),
                choice->after);
    return SETTINGS_REFUSED;
}
