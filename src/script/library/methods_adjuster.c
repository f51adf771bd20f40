/* SPDX-License-Identifier: Apache-2.0 */
/* TemporalAdjusters: functions from a date to another, such as the last day of its month. */
#include "script/library/method_time.h"

/* What an adjuster finds: a day of the month or the year, or a day of the week from there. */
enum target {
    FIRST_OF_MONTH,
    LAST_OF_MONTH,
    FIRST_OF_NEXT_MONTH,
    FIRST_OF_YEAR,
    LAST_OF_YEAR,
    FIRST_OF_NEXT_YEAR,
    NEXT,
    NEXT_OR_SAME,
    PREVIOUS,
    PREVIOUS_OR_SAME,
    FIRST_IN_MONTH,
    LAST_IN_MONTH,
};

static int64_t days_to_weekday(const struct moment *date, enum target target, int64_t wanted)
{
    int64_t today = moment_weekday(date), day = part_of(date, DAY_OF_MONTH);
    int64_t ahead = floor_mod(wanted - today, 7), behind = floor_mod(today - wanted, 7);
    int64_t length = calendar_month_days(part_of(date, YEAR), (int)part_of(date, MONTH_VALUE));
    switch (target) {
    case NEXT: return ahead == 0 ? 7 : ahead;
    case NEXT_OR_SAME: return ahead;
    case PREVIOUS: return behind == 0 ? -7 : -behind;
    case PREVIOUS_OR_SAME: return -behind;
    case FIRST_IN_MONTH: return floor_mod(ahead + day - 1, 7) - (day - 1);
    default: return length - day - floor_mod(length - day - ahead, 7);
    }
}

static int64_t days_to(const struct moment *date, enum target target, int64_t weekday)
{
    int64_t day = part_of(date, DAY_OF_MONTH), year_day = part_of(date, DAY_OF_YEAR);
    int64_t month_days = calendar_month_days(part_of(date, YEAR), (int)part_of(date, MONTH_VALUE));
    int64_t year_days = 365 + calendar_is_leap(part_of(date, YEAR));
    switch (target) {
    case FIRST_OF_MONTH: return 1 - day;
    case LAST_OF_MONTH: return month_days - day;
    case FIRST_OF_NEXT_MONTH: return month_days - day + 1;
    case FIRST_OF_YEAR: return 1 - year_day;
    case LAST_OF_YEAR: return year_days - year_day;
    case FIRST_OF_NEXT_YEAR: return year_days - year_day + 1;
    default: return days_to_weekday(date, target, weekday);
    }
}

/* held[0] is the target, held[1] the day of the week from 0. */
static bool run_adjuster(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!value_is_moment(a[0]) || value_is(a[0], CLASS_LOCAL_TIME))
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported field: DayOfMonth");
    const struct moment *date = moment_of(a[0]);
    int64_t days = days_to(date, (enum target)closure->held[0].i, closure->held[1].i);
    return give(ret, moment_like(run, date, date->seconds + days * 86400, date->nanos));
}

#define ADJUSTER(name, target)                                                                   \
    static bool adjuster_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                            \
        if (n == 1)                                                                              \
            NEED(1);                                                                             \
        int64_t weekday = n == 1 ? ((struct enumerator *)a[1].object)->ordinal : 0;              \
        *ret = closure_native_new(run, run_adjuster, 1, value_int(target), value_int(weekday));  \
        return true;                                                                             \
    }

ADJUSTER(first_of_month, FIRST_OF_MONTH)
ADJUSTER(last_of_month, LAST_OF_MONTH)
ADJUSTER(first_of_next_month, FIRST_OF_NEXT_MONTH)
ADJUSTER(first_of_year, FIRST_OF_YEAR)
ADJUSTER(last_of_year, LAST_OF_YEAR)
ADJUSTER(first_of_next_year, FIRST_OF_NEXT_YEAR)
ADJUSTER(next, NEXT)
ADJUSTER(next_or_same, NEXT_OR_SAME)
ADJUSTER(previous, PREVIOUS)
ADJUSTER(previous_or_same, PREVIOUS_OR_SAME)
ADJUSTER(first_in_month, FIRST_IN_MONTH)
ADJUSTER(last_in_month, LAST_IN_MONTH)

/* date.with(adjuster); a date or a time puts itself in the place of its own part. */
static bool with_adjuster(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (!value_is_moment(a[1]))
        return run_invoke(run, a[1], a, 1, ret);
    const struct moment *moment = moment_of(a[0]), *part = moment_of(a[1]);
    bool date = part->object.class == CLASS_LOCAL_DATE;
    int64_t day = floor_div(date ? part->seconds : moment->seconds, 86400);
    int64_t second = floor_mod(date ? moment->seconds : part->seconds, 86400);
    return give(ret, moment_like(run, moment, day * 86400 + second, date ? moment->nanos : part->nanos));
}

static const struct method adjusters_methods[] = {
    M0("firstDayOfMonth", STATIC, TEMPORAL_ADJUSTER, adjuster_first_of_month),
    M0("lastDayOfMonth", STATIC, TEMPORAL_ADJUSTER, adjuster_last_of_month),
    M0("firstDayOfNextMonth", STATIC, TEMPORAL_ADJUSTER, adjuster_first_of_next_month),
    M0("firstDayOfYear", STATIC, TEMPORAL_ADJUSTER, adjuster_first_of_year),
    M0("lastDayOfYear", STATIC, TEMPORAL_ADJUSTER, adjuster_last_of_year),
    M0("firstDayOfNextYear", STATIC, TEMPORAL_ADJUSTER, adjuster_first_of_next_year),
    M1("next", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_next),
    M1("nextOrSame", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_next_or_same),
    M1("previous", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_previous),
    M1("previousOrSame", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_previous_or_same),
    M1("firstInMonth", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_first_in_month),
    M1("lastInMonth", STATIC, TEMPORAL_ADJUSTER, DAY_OF_WEEK, adjuster_last_in_month),
};

#define WITH(symbol) \
    static const struct method symbol##_with[] = {M1("with", METHOD_BOTH, symbol, TEMPORAL_ADJUSTER, with_adjuster)};

WITH(LOCAL_DATE)
WITH(LOCAL_DATE_TIME)
WITH(ZONED_DATE_TIME)
WITH(OFFSET_DATE_TIME)

const struct method_table methods_adjuster[] = {
    METHOD_TABLE(TEMPORAL_ADJUSTERS, adjusters_methods),   METHOD_TABLE(LOCAL_DATE, LOCAL_DATE_with),
    METHOD_TABLE(LOCAL_DATE_TIME, LOCAL_DATE_TIME_with),   METHOD_TABLE(ZONED_DATE_TIME, ZONED_DATE_TIME_with),
    METHOD_TABLE(OFFSET_DATE_TIME, OFFSET_DATE_TIME_with), {0, 0, NULL},
};
