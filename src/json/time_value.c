/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of durations; see time_value.h. */
#include "json/time_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"

static const struct time_unit time_units[] = {
    /* a suffix comes before any other suffix that it ends with */
    {"nanos", 1},       {"micros", 1000},     {"ms", 1000000},       {"s", 1000000000},
    {"m", 60000000000}, {"h", 3600000000000}, {"d", 86400000000000},
};

static int bad_time(struct slice text, struct slice setting, const char *why, enum dialect dialect, struct arena *arena,
                    struct problem *ret_problem)
{
    problem_set(ret_problem, arena, dialect == DIALECT_5 ? PROBLEM_PARSE : PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse setting [%.*s] with value [%.*s] as a time value: %s", SLICE_ARG(setting),
                SLICE_ARG(text), why);
    return TIME_VALUE_REFUSED;
}

/* Refuses a number before the unit that is not a 64-bit integer. */
static int bad_time_number(struct slice text, struct slice number, enum dialect dialect, struct arena *arena,
                           struct problem *ret_problem)
{
    char *end;
    struct slice copy = arena_copy(arena, number);
    bool fractional = copy.len > 0 && (strtod(copy.data, &end), *end == '\0');
    problem_set(ret_problem, arena, dialect == DIALECT_5 ? PROBLEM_PARSE : PROBLEM_ILLEGAL_ARGUMENT,
                "failed to parse [%.*s]%s", SLICE_ARG(text),
                fractional ? ", fractional time values are not supported" : "");
    ret_problem->caused_by = arena_zalloc(arena, sizeof *ret_problem->caused_by);
    problem_set(ret_problem->caused_by, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(number));
    return TIME_VALUE_REFUSED;
}

/* Accepts the numbers that need no unit: "-1", "-01" (no limit) and "0", "000" (zero). */
static bool time_without_unit(struct slice text, int64_t *ret_value)
{
    bool negative = text.len > 1 && text.data[0] == '-';
    for (size_t i = negative; i + (negative ? 1 : 0) < text.len; i++)
        if (text.data[i] != '0')
            return false;
    if (text.len == 0 || (negative && text.data[text.len - 1] != '1'))
        return false;
    *ret_value = negative ? -1 : 0;
    return true;
}

const struct time_unit *time_value_unit(struct slice text)
{
    for (size_t i = 0; i < sizeof time_units / sizeof *time_units; i++) {
        size_t suffix = strlen(time_units[i].suffix);
        if (text.len >= suffix && strncasecmp(text.data + text.len - suffix, time_units[i].suffix, suffix) == 0)
            return &time_units[i];
    }
    return NULL;
}

/* The cap of durations, 126 years; the current time plus this is still a valid timestamp. */
#define TIME_US_MAX INT64_C(4000000000000000)

int time_value_parse(struct slice text, struct slice setting, enum dialect dialect, struct arena *arena,
                     int64_t *ret_value, struct problem *ret_problem)
{
    int64_t number, nanos;
    if (time_without_unit(text, ret_value))
        return 0;
    const struct time_unit *unit = time_value_unit(text);
    if (unit == NULL)
        return bad_time(text, setting, "unit is missing or unrecognized", dialect, arena, ret_problem);
    struct slice digits = slice_make(text.data, text.len - strlen(unit->suffix));
    while (digits.len > 0 && digits.data[digits.len - 1] == ' ')
        digits.len--;
    if (!slice_to_i64(digits, &number))
        return bad_time_number(text, digits, dialect, arena, ret_problem);
    if (number < -1 && dialect != DIALECT_5)
        return bad_time(text, setting, "negative durations are not supported", dialect, arena, ret_problem);
    if (__builtin_mul_overflow(number, unit->nanos, &nanos) || nanos / 1000 > TIME_US_MAX)
        nanos = TIME_US_MAX * 1000;
    *ret_value = number < 0 ? -1 : nanos / 1000;
    return 0;
}

bool time_value_has_passed(struct slice text)
{
    const struct time_unit *unit = time_value_unit(text);
    return unit != NULL && unit->nanos > 1000000 && text.data[0] == '-';
}

const char *time_value_print(struct arena *arena, uint64_t us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {
        {"d", 86400 * TL_SECOND}, {"h", 3600 * TL_SECOND}, {"m", 60 * TL_SECOND}, {"s", TL_SECOND}, {"ms", TL_MS}};
    REQUIRE(us <= UINT64_MAX / 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (us < units[i].us)
            continue;
        uint64_t tenths = us * 10 / units[i].us;
        return tenths % 10 == 0
                   ? arena_printf(arena, "%" PRIu64 "%s", tenths / 10, units[i].name).data
                   : arena_printf(arena, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, units[i].name).data;
    }
    return arena_printf(arena, "%" PRIu64 "micros", us).data;
}
