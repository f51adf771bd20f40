/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java.util.Calendar, with the proleptic Gregorian years of java.time.
 *
 * A field may be set outside of its range, such as February 31. The date is normalized when a field
 * is read: the excess carries over into the larger fields. A calendar of the current time has the
 * time of the command that runs the script.
 */
#include "script/library/method_time.h"
#include "script/library/method_time.h"
#include "script/library/methods_number.h"

#include <stdio.h>

enum field {
    FIELD_ERA,
    FIELD_YEAR,
    FIELD_MONTH, /* from 0 */
    FIELD_WEEK_OF_YEAR,
    FIELD_WEEK_OF_MONTH,
    FIELD_DAY,
    FIELD_DAY_OF_YEAR,
    FIELD_DAY_OF_WEEK, /* Sunday is 1 */
    FIELD_WEEKDAY_IN_MONTH,
    FIELD_AM_PM,
    FIELD_HOUR, /* 0 to 11 */
    FIELD_HOUR_OF_DAY,
    FIELD_MINUTE,
    FIELD_SECOND,
    FIELD_MILLI,
    FIELD_ZONE_OFFSET,
    FIELD_DST_OFFSET,
    FIELD_COUNT,
};

#define CALENDAR_YEAR_MAX 280000000 /* about the range of Date, in years */

struct calendar {
    struct object object;
    /* local time, month from 0; perhaps not normalized */
    int64_t year, month, day, hour, minute, second, milli;
    int32_t offset; /* of the zone, in seconds */
};

static struct calendar *self_calendar(struct call *call)
{
    return (struct calendar *)call->self.object;
}

/* Returns: milliseconds since the epoch, in local time. */
static int64_t local_millis(const struct calendar *calendar)
{
    int64_t year = calendar->year + floor_div(calendar->month, 12);
    year = year > CALENDAR_YEAR_MAX ? CALENDAR_YEAR_MAX : year < -CALENDAR_YEAR_MAX ? -CALENDAR_YEAR_MAX : year;
    struct civil first = {.year = year, .month = (int)floor_mod(calendar->month, 12) + 1, .day = 1};
    int64_t days = floor_div(civil_seconds(&first), 86400) + calendar->day - 1;
    int64_t seconds = ((days * 24 + calendar->hour) * 60 + calendar->minute) * 60 + calendar->second;
    return seconds * 1000 + calendar->milli;
}

static int64_t calendar_millis(const struct calendar *calendar)
{
    return local_millis(calendar) - (int64_t)calendar->offset * 1000;
}

static void set_local(struct calendar *calendar, int64_t millis)
{
    struct temporal temporal = {.seconds = floor_div(millis, 1000)};
    temporal.object.class = CLASS_LOCAL_DATE_TIME;
    struct civil civil = temporal_civil(&temporal);
    calendar->year = civil.year;
    calendar->month = civil.month - 1;
    calendar->day = civil.day;
    calendar->hour = civil.hour;
    calendar->minute = civil.minute;
    calendar->second = civil.second;
    calendar->milli = floor_mod(millis, 1000);
}

static void set_millis(struct calendar *calendar, int64_t millis)
{
    int64_t limit = (int64_t)CALENDAR_YEAR_MAX * 31556952000;
    millis = millis > limit ? limit : millis < -limit ? -limit : millis;
    set_local(calendar, millis + (int64_t)calendar->offset * 1000);
}

/* Normalizes fields that are out of range. */
static void normalize_fields(struct calendar *calendar)
{
    set_millis(calendar, calendar_millis(calendar));
}

static int64_t weekday(const struct calendar *calendar)
{
    return floor_mod(floor_div(local_millis(calendar), 86400000) + 4, 7) + 1; /* day 0 was a Thursday */
}

static int64_t year_day(const struct calendar *calendar)
{
    struct calendar first = {.year = calendar->year, .day = 1};
    return floor_div(local_millis(calendar) - local_millis(&first), 86400000) + 1;
}

/* Returns: the week of the year. Weeks begin on Sunday; week 1 contains January 1. */
static int64_t year_week(const struct calendar *calendar)
{
    struct calendar first = {.year = calendar->year, .day = 1}, next = {.year = calendar->year + 1, .day = 1};
    int64_t left = floor_div(local_millis(&next) - local_millis(calendar) + 86399999, 86400000);
    if (left < weekday(&next)) /* already in week 1 of the next year */
        return 1;
    return (year_day(calendar) + weekday(&first) - 2) / 7 + 1;
}

static int64_t month_week(const struct calendar *calendar)
{
    struct calendar first = {.year = calendar->year, .month = calendar->month, .day = 1};
    return (calendar->day + weekday(&first) - 2) / 7 + 1;
}

static bool check_field(struct run *run, int64_t field)
{
    return (field >= 0 && field < FIELD_COUNT) ||
           run_throw(run, CLASS_ARRAY_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index %lld out of bounds for length %d",
                     (long long)field, FIELD_COUNT);
}

/* Returns: the value of a field. Requires: a normalized calendar. */
static int64_t field_of(const struct calendar *calendar, enum field field)
{
    switch (field) {
    case FIELD_ERA: return calendar->year > 0;
    case FIELD_YEAR: return calendar->year > 0 ? calendar->year : 1 - calendar->year;
    case FIELD_MONTH: return calendar->month;
    case FIELD_WEEK_OF_YEAR: return year_week(calendar);
    case FIELD_WEEK_OF_MONTH: return month_week(calendar);
    case FIELD_DAY: return calendar->day;
    case FIELD_DAY_OF_YEAR: return year_day(calendar);
    case FIELD_DAY_OF_WEEK: return weekday(calendar);
    case FIELD_WEEKDAY_IN_MONTH: return (calendar->day - 1) / 7 + 1;
    case FIELD_AM_PM: return calendar->hour / 12;
    case FIELD_HOUR: return calendar->hour % 12;
    case FIELD_HOUR_OF_DAY: return calendar->hour;
    case FIELD_MINUTE: return calendar->minute;
    case FIELD_SECOND: return calendar->second;
    case FIELD_MILLI: return calendar->milli;
    case FIELD_ZONE_OFFSET: return (int64_t)calendar->offset * 1000;
    default: return 0;
    }
}

/* Returns: the storage of a field that is stored directly; NULL for derived fields. */
static int64_t *storage_of(struct calendar *calendar, enum field field)
{
    switch (field) {
    case FIELD_YEAR: return &calendar->year;
    case FIELD_MONTH: return &calendar->month;
    case FIELD_DAY: return &calendar->day;
    case FIELD_HOUR_OF_DAY: return &calendar->hour;
    case FIELD_MINUTE: return &calendar->minute;
    case FIELD_SECOND: return &calendar->second;
    case FIELD_MILLI: return &calendar->milli;
    default: return NULL;
    }
}

static void set_field(struct calendar *calendar, enum field field, int64_t value)
{
    int64_t *storage = storage_of(calendar, field);
    if (storage != NULL) {
        *storage = value;
        return;
    }
    normalize_fields(calendar);
    int64_t more = value - field_of(calendar, field);
    switch (field) {
    case FIELD_WEEK_OF_YEAR:
    case FIELD_WEEK_OF_MONTH:
    case FIELD_WEEKDAY_IN_MONTH: calendar->day += 7 * more; return;
    case FIELD_DAY_OF_YEAR:
    case FIELD_DAY_OF_WEEK: calendar->day += more; return;
    case FIELD_AM_PM: calendar->hour += 12 * more; return;
    case FIELD_HOUR: calendar->hour += more; return;
    default: return;
    }
}

/* Adds to a field. After adding months or years, the day is limited to the length of the month. */
static void add_field(struct calendar *calendar, enum field field, int64_t count)
{
    normalize_fields(calendar);
    if (field == FIELD_YEAR || field == FIELD_MONTH) {
        int64_t month = calendar->year * 12 + calendar->month + (field == FIELD_YEAR ? 12 * count : count);
        calendar->year = floor_div(month, 12);
        calendar->month = floor_mod(month, 12);
        int days = calendar_month_days(calendar->year, (int)calendar->month + 1);
        calendar->day = calendar->day > days ? days : calendar->day;
        return;
    }
    set_field(calendar, field, field_of(calendar, field) + count);
    normalize_fields(calendar);
}

/* Constructors */

static struct calendar *calendar_new(struct run *run, int64_t millis, int32_t offset)
{
    struct calendar *calendar = run_object(run, sizeof *calendar, CLASS_GREGORIAN_CALENDAR);
    calendar->offset = offset;
    set_millis(calendar, millis);
    return calendar;
}

static bool calendar_now(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (call->count > 0)
        NOT_NULL(0);
    if (call->count > 0 && temporal_has_zone_rules(temporal_of(call->args[0])))
        return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                         "a Calendar has a zone with a fixed offset here, and [%.*s] has none; use ZonedDateTime",
                         SLICE_ARG(temporal_of(call->args[0])->zone->name));
    return give(ret, calendar_new(run, run->now_ms, call->count > 0 ? temporal_of(call->args[0])->offset : 0));
}

static bool calendar_of_fields(struct call *call, struct value *ret)
{
    struct calendar *calendar = calendar_new(call->run, 0, 0);
    for (unsigned i = 0; i < call->count; i++)
        *storage_of(calendar, (enum field[]){FIELD_YEAR, FIELD_MONTH, FIELD_DAY, FIELD_HOUR_OF_DAY, FIELD_MINUTE,
                                             FIELD_SECOND}[i]) = call->args[i].i;
    return give(ret, calendar);
}

static bool calendar_clone(struct call *call, struct value *ret)
{
    struct calendar *calendar = calendar_new(call->run, 0, self_calendar(call)->offset);
    *calendar = *self_calendar(call);
    return give(ret, calendar);
}

/* Methods */

static bool calendar_get(struct call *call, struct value *ret)
{
    if (!check_field(call->run, call->args[0].i))
        return false;
    normalize_fields(self_calendar(call));
    return give_int(ret, field_of(self_calendar(call), (enum field)call->args[0].i));
}

static bool calendar_set(struct call *call, struct value *ret)
{
    if (call->count > 2)
        for (unsigned i = 0; i < call->count; i++)
            *storage_of(self_calendar(call), (enum field[]){FIELD_YEAR, FIELD_MONTH, FIELD_DAY, FIELD_HOUR_OF_DAY,
                                                            FIELD_MINUTE, FIELD_SECOND}[i]) = call->args[i].i;
    else if (!check_field(call->run, call->args[0].i))
        return false;
    else
        set_field(self_calendar(call), (enum field)call->args[0].i, call->args[1].i);
    return give_nothing(ret);
}

static bool calendar_add(struct call *call, struct value *ret)
{
    if (!check_field(call->run, call->args[0].i))
        return false;
    if (call->args[0].i == FIELD_ERA || call->args[0].i >= FIELD_ZONE_OFFSET)
        return run_throw_null(call->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION);
    add_field(self_calendar(call), (enum field)call->args[0].i, call->args[1].i);
    return give_nothing(ret);
}

static bool calendar_clear(struct call *call, struct value *ret)
{
    struct calendar *calendar = self_calendar(call);
    if (call->count == 0) {
        set_local(calendar, 0);
        return give_nothing(ret);
    }
    int64_t *storage =
        check_field(call->run, call->args[0].i) ? storage_of(calendar, (enum field)call->args[0].i) : NULL;
    if (storage != NULL)
        *storage = call->args[0].i == FIELD_YEAR ? 1970 : call->args[0].i == FIELD_DAY;
    return call->run->thrown == NULL && give_nothing(ret);
}

static bool calendar_actual_maximum(struct call *call, struct value *ret)
{
    static const int maxima[FIELD_COUNT] = {1, 292278994, 11, 0,  0,  0,   0,        7,      0,
                                            1, 11,        23, 59, 59, 999, 50400000, 7200000};
    if (!check_field(call->run, call->args[0].i))
        return false;
    struct calendar last = *self_calendar(call);
    normalize_fields(&last);
    int days = calendar_month_days(last.year, (int)last.month + 1);
    switch (call->args[0].i) {
    case FIELD_DAY: return give_int(ret, days);
    case FIELD_WEEKDAY_IN_MONTH: return give_int(ret, (days - 1 - (last.day - 1) % 7) / 7 + 1);
    case FIELD_DAY_OF_YEAR: return give_int(ret, 365 + calendar_is_leap(last.year));
    case FIELD_WEEK_OF_MONTH: last.day = days; return give_int(ret, month_week(&last));
    case FIELD_WEEK_OF_YEAR:
        last.month = 11;
        last.day = 24;
        return give_int(ret, year_week(&last));
    default: return give_int(ret, maxima[call->args[0].i]);
    }
}

static bool calendar_time(struct call *call, struct value *ret)
{
    normalize_fields(self_calendar(call));
    int64_t millis = calendar_millis(self_calendar(call));
    return give(
        ret, temporal_new(call->run, CLASS_DATE, floor_div(millis, 1000), (int32_t)floor_mod(millis, 1000) * 1000000));
}

static bool calendar_to_instant(struct call *call, struct value *ret)
{
    if (!calendar_time(call, ret))
        return false;
    ret->object->class = CLASS_INSTANT;
    return true;
}

static bool calendar_set_time(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    set_millis(self_calendar(call),
               temporal_of(call->args[0])->seconds * 1000 + temporal_of(call->args[0])->nanos / 1000000);
    return give_nothing(ret);
}

static bool calendar_time_millis(struct call *call, struct value *ret)
{
    normalize_fields(self_calendar(call));
    return give_long(ret, calendar_millis(self_calendar(call)));
}

static bool calendar_set_time_millis(struct call *call, struct value *ret)
{
    set_millis(self_calendar(call), call->args[0].i);
    return give_nothing(ret);
}

static bool calendar_zone(struct call *call, struct value *ret)
{
    struct temporal *zone = temporal_new(call->run, CLASS_TIME_ZONE, 0, 0);
    zone->offset = self_calendar(call)->offset;
    static const struct zone utc = {.name = {"UTC", 3}};
    zone->zone = zone->offset == 0 ? &utc : NULL;
    return give(ret, zone);
}

static bool calendar_set_zone(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    if (temporal_has_zone_rules(temporal_of(call->args[0])))
        return run_throw(call->run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                         "a Calendar has a zone with a fixed offset here, and [%.*s] has none; use ZonedDateTime",
                         SLICE_ARG(temporal_of(call->args[0])->zone->name));
    int64_t millis = calendar_millis(self_calendar(call));
    self_calendar(call)->offset = temporal_of(call->args[0])->offset;
    set_millis(self_calendar(call), millis);
    return give_nothing(ret);
}

static int64_t millis_between(struct call *call)
{
    return calendar_millis(self_calendar(call)) - calendar_millis((struct calendar *)call->args[0].object);
}

static bool calendar_before(struct call *call, struct value *ret)
{
    return give_boolean(ret, value_is(call->args[0], CLASS_GREGORIAN_CALENDAR) && millis_between(call) < 0);
}

static bool calendar_after(struct call *call, struct value *ret)
{
    return give_boolean(ret, value_is(call->args[0], CLASS_GREGORIAN_CALENDAR) && millis_between(call) > 0);
}

static bool calendar_compare_to(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    int64_t order = millis_between(call);
    return give_int(ret, (order > 0) - (order < 0));
}

static bool calendar_is_leap_year(struct call *call, struct value *ret)
{
    return give_boolean(ret, calendar_is_leap(call->args[0].i));
}

/* Groovy's date[Calendar.YEAR]. */
static bool date_get_field(struct call *call, struct value *ret)
{
    if (!check_field(call->run, call->args[0].i))
        return false;
    const struct temporal *date = temporal_of(call->self);
    struct calendar calendar = {.year = 0};
    set_millis(&calendar, date->seconds * 1000 + date->nanos / 1000000);
    return give_int(ret, field_of(&calendar, (enum field)call->args[0].i));
}

static const struct method_row calendar_methods[] = {
    {"static int ERA", BOTH, method_constant, {FIELD_ERA}},
    {"static int YEAR", BOTH, method_constant, {FIELD_YEAR}},
    {"static int MONTH", BOTH, method_constant, {FIELD_MONTH}},
    {"static int WEEK_OF_YEAR", BOTH, method_constant, {FIELD_WEEK_OF_YEAR}},
    {"static int WEEK_OF_MONTH", BOTH, method_constant, {FIELD_WEEK_OF_MONTH}},
    {"static int DATE", BOTH, method_constant, {FIELD_DAY}},
    {"static int DAY_OF_MONTH", BOTH, method_constant, {FIELD_DAY}},
    {"static int DAY_OF_YEAR", BOTH, method_constant, {FIELD_DAY_OF_YEAR}},
    {"static int DAY_OF_WEEK", BOTH, method_constant, {FIELD_DAY_OF_WEEK}},
    {"static int DAY_OF_WEEK_IN_MONTH", BOTH, method_constant, {FIELD_WEEKDAY_IN_MONTH}},
    {"static int AM_PM", BOTH, method_constant, {FIELD_AM_PM}},
    {"static int HOUR", BOTH, method_constant, {FIELD_HOUR}},
    {"static int HOUR_OF_DAY", BOTH, method_constant, {FIELD_HOUR_OF_DAY}},
    {"static int MINUTE", BOTH, method_constant, {FIELD_MINUTE}},
    {"static int SECOND", BOTH, method_constant, {FIELD_SECOND}},
    {"static int MILLISECOND", BOTH, method_constant, {FIELD_MILLI}},
    {"static int ZONE_OFFSET", BOTH, method_constant, {FIELD_ZONE_OFFSET}},
    {"static int DST_OFFSET", BOTH, method_constant, {FIELD_DST_OFFSET}},
    {"static int JANUARY", BOTH, method_constant, {0}},
    {"static int FEBRUARY", BOTH, method_constant, {1}},
    {"static int MARCH", BOTH, method_constant, {2}},
    {"static int APRIL", BOTH, method_constant, {3}},
    {"static int MAY", BOTH, method_constant, {4}},
    {"static int JUNE", BOTH, method_constant, {5}},
    {"static int JULY", BOTH, method_constant, {6}},
    {"static int AUGUST", BOTH, method_constant, {7}},
    {"static int SEPTEMBER", BOTH, method_constant, {8}},
    {"static int OCTOBER", BOTH, method_constant, {9}},
    {"static int NOVEMBER", BOTH, method_constant, {10}},
    {"static int DECEMBER", BOTH, method_constant, {11}},
    {"static int SUNDAY", BOTH, method_constant, {1}},
    {"static int MONDAY", BOTH, method_constant, {2}},
    {"static int TUESDAY", BOTH, method_constant, {3}},
    {"static int WEDNESDAY", BOTH, method_constant, {4}},
    {"static int THURSDAY", BOTH, method_constant, {5}},
    {"static int FRIDAY", BOTH, method_constant, {6}},
    {"static int SATURDAY", BOTH, method_constant, {7}},
    {"static int AM", BOTH, method_constant, {0}},
    {"static int PM", BOTH, method_constant, {1}},
    {"static Calendar getInstance()", BOTH, calendar_now},
    {"static Calendar getInstance(TimeZone)", BOTH, calendar_now},
    {"static Calendar getInstance(TimeZone, Locale)", BOTH, calendar_now},
    {"int get(int)", BOTH, calendar_get},
    {"int getAt(int)", GROOVY, calendar_get},
    {"void putAt(int, int)", GROOVY, calendar_set},
    {"void set(int, int)", BOTH, calendar_set},
    {"void set(int, int, int)", BOTH, calendar_set},
    {"void set(int, int, int, int, int)", BOTH, calendar_set},
    {"void set(int, int, int, int, int, int)", BOTH, calendar_set},
    {"void add(int, int)", BOTH, calendar_add},
    {"void clear()", BOTH, calendar_clear},
    {"void clear(int)", BOTH, calendar_clear},
    {"int getActualMaximum(int)", BOTH, calendar_actual_maximum},
    {"Date getTime()", BOTH, calendar_time},
    {"void setTime(Date)", BOTH, calendar_set_time},
    {"long getTimeInMillis()", BOTH, calendar_time_millis},
    {"void setTimeInMillis(long)", BOTH, calendar_set_time_millis},
    {"TimeZone getTimeZone()", BOTH, calendar_zone},
    {"void setTimeZone(TimeZone)", BOTH, calendar_set_zone},
    {"Instant toInstant()", BOTH, calendar_to_instant},
    {"def clone()", BOTH, calendar_clone},
    {"boolean before(Object)", BOTH, calendar_before},
    {"boolean after(Object)", BOTH, calendar_after},
    {"int compareTo(Calendar)", BOTH, calendar_compare_to},
};

static const struct method_row gregorian_methods[] = {
    {"new GregorianCalendar()", BOTH, calendar_now},
    {"new GregorianCalendar(TimeZone)", BOTH, calendar_now},
    {"new GregorianCalendar(int, int, int)", BOTH, calendar_of_fields},
    {"new GregorianCalendar(int, int, int, int, int)", BOTH, calendar_of_fields},
    {"new GregorianCalendar(int, int, int, int, int, int)", BOTH, calendar_of_fields},
    {"boolean isLeapYear(int)", BOTH, calendar_is_leap_year},
};

static const struct method_row date_methods[] = {
    {"int getAt(int)", GROOVY, date_get_field},
};

const struct method_table methods_calendar[] = {
    METHOD_ROWS(CALENDAR, calendar_methods),
    METHOD_ROWS(GREGORIAN_CALENDAR, gregorian_methods),
    METHOD_ROWS(DATE, date_methods),
    {0},
};
