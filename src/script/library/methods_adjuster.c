/* SPDX-License-Identifier: Apache-2.0 */
/* TemporalAdjusters: functions from a date to another date, such as the last day of its month. */
#include "script/library/method_time.h"

/* The day that an adjuster finds: in the month, in the year, or by day of the week. */
enum adjuster_target {
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

static int64_t days_to_weekday(const struct temporal *date, enum adjuster_target target, int64_t wanted)
{
    int64_t today = temporal_weekday(date), day = part_of(date, DAY_OF_MONTH);
    int64_t ahead = floor_mod(wanted - today, 7), days_back = floor_mod(today - wanted, 7);
    int64_t length = calendar_month_days(part_of(date, YEAR), (int)part_of(date, MONTH_VALUE));
    switch (target) {
    case NEXT: return ahead == 0 ? 7 : ahead;
    case NEXT_OR_SAME: return ahead;
    case PREVIOUS: return days_back == 0 ? -7 : -days_back;
    case PREVIOUS_OR_SAME: return -days_back;
    case FIRST_IN_MONTH: return floor_mod(ahead + day - 1, 7) - (day - 1);
    default: return length - day - floor_mod(length - day - ahead, 7);
    }
}

static int64_t days_to(const struct temporal *date, enum adjuster_target target, int64_t weekday)
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

/* Runs an adjuster: held[0] is the target, held[1] the day of the week, from 0. */
static bool run_adjuster(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!value_is_temporal(a[0]) || value_is(a[0], CLASS_LOCAL_TIME))
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported field: DayOfMonth");
    const struct temporal *date = temporal_of(a[0]);
    int64_t days = days_to(date, (enum adjuster_target)closure->held[0].i, closure->held[1].i);
    return give(ret, temporal_like(run, date, date->seconds + days * 86400, date->nanos));
}

/* Makes an adjuster. The datum is its target; weekday targets have an argument. */
static bool adjuster_make(struct call *call, struct value *ret)
{
    if (call->count == 1)
        NOT_NULL(0);
    int64_t weekday = call->count == 1 ? ((struct enumerator *)call->args[0].object)->ordinal : 0;
    *ret = closure_native_new(call->run, run_adjuster, 1, value_int(call->row->datum.number), value_int(weekday));
    return true;
}

/* The native of date.with(adjuster). A LocalDate or LocalTime argument replaces that part of the
   receiver. */
static bool with_adjuster(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    if (!value_is_temporal(call->args[0]))
        return run_invoke(call->run, call->args[0], &call->self, 1, ret);
    const struct temporal *temporal = temporal_of(call->self), *part = temporal_of(call->args[0]);
    bool date = part->object.class == CLASS_LOCAL_DATE;
    int64_t day = floor_div(date ? part->seconds : temporal->seconds, 86400);
    int64_t second = floor_mod(date ? temporal->seconds : part->seconds, 86400);
    return give(ret, temporal_like(call->run, temporal, day * 86400 + second, date ? temporal->nanos : part->nanos));
}

static const struct method_row adjusters_methods[] = {
    {"static TemporalAdjuster firstDayOfMonth()", BOTH, adjuster_make, {FIRST_OF_MONTH}},
    {"static TemporalAdjuster lastDayOfMonth()", BOTH, adjuster_make, {LAST_OF_MONTH}},
    {"static TemporalAdjuster firstDayOfNextMonth()", BOTH, adjuster_make, {FIRST_OF_NEXT_MONTH}},
    {"static TemporalAdjuster firstDayOfYear()", BOTH, adjuster_make, {FIRST_OF_YEAR}},
    {"static TemporalAdjuster lastDayOfYear()", BOTH, adjuster_make, {LAST_OF_YEAR}},
    {"static TemporalAdjuster firstDayOfNextYear()", BOTH, adjuster_make, {FIRST_OF_NEXT_YEAR}},
    {"static TemporalAdjuster next(DayOfWeek)", BOTH, adjuster_make, {NEXT}},
    {"static TemporalAdjuster nextOrSame(DayOfWeek)", BOTH, adjuster_make, {NEXT_OR_SAME}},
    {"static TemporalAdjuster previous(DayOfWeek)", BOTH, adjuster_make, {PREVIOUS}},
    {"static TemporalAdjuster previousOrSame(DayOfWeek)", BOTH, adjuster_make, {PREVIOUS_OR_SAME}},
    {"static TemporalAdjuster firstInMonth(DayOfWeek)", BOTH, adjuster_make, {FIRST_IN_MONTH}},
    {"static TemporalAdjuster lastInMonth(DayOfWeek)", BOTH, adjuster_make, {LAST_IN_MONTH}},
};

static const struct method_row LOCAL_DATE_with[] = {
    {"LocalDate with(TemporalAdjuster)", BOTH, with_adjuster},
};

static const struct method_row LOCAL_DATE_TIME_with[] = {
    {"LocalDateTime with(TemporalAdjuster)", BOTH, with_adjuster},
};

static const struct method_row ZONED_DATE_TIME_with[] = {
    {"ZonedDateTime with(TemporalAdjuster)", BOTH, with_adjuster},
};

static const struct method_row OFFSET_DATE_TIME_with[] = {
    {"OffsetDateTime with(TemporalAdjuster)", BOTH, with_adjuster},
};

const struct method_table methods_adjuster[] = {
    METHOD_ROWS(TEMPORAL_ADJUSTERS, adjusters_methods),   METHOD_ROWS(LOCAL_DATE, LOCAL_DATE_with),
    METHOD_ROWS(LOCAL_DATE_TIME, LOCAL_DATE_TIME_with),   METHOD_ROWS(ZONED_DATE_TIME, ZONED_DATE_TIME_with),
    METHOD_ROWS(OFFSET_DATE_TIME, OFFSET_DATE_TIME_with), {0},
};
