/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java.util.Calendar in Java's ISO years: a date whose fields are set one by one and made sense of together.
 *
 * Fields that are set may be out of their range, "the 31st of February", until something reads the date: then they roll
 * over into the larger ones. A calendar of the present shows the time of the command that the script is part of.
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
    FIELD_HOUR, /* of the half day */
    FIELD_HOUR_OF_DAY,
    FIELD_MINUTE,
    FIELD_SECOND,
    FIELD_MILLI,
    FIELD_ZONE_OFFSET,
    FIELD_DST_OFFSET,
    FIELD_COUNT,
};

#define CALENDAR_YEAR_MAX 280000000 /* about as far as a Date reaches; its milliseconds fit */

struct calendar {
    struct object object;
    int64_t year, month, day, hour, minute, second, milli; /* local, month from 0; as they were set */
    int32_t offset;                                        /* of the zone, seconds */
};

static struct calendar *self(struct value *a)
{
    return (struct calendar *)a[0].object;
}

/* Milliseconds since the epoch, in local time. */
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
    struct moment moment = {.seconds = floor_div(millis, 1000)};
    moment.object.class = CLASS_LOCAL_DATE_TIME;
    struct civil civil = moment_civil(&moment);
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

/* Rolls what is out of its range over. */
static void settle(struct calendar *calendar)
{
    set_millis(calendar, calendar_millis(calendar));
}

static int64_t weekday(const struct calendar *calendar)
{
    return floor_mod(floor_div(local_millis(calendar), 86400000) + 4, 7) + 1; /* the epoch was a Thursday */
}

static int64_t year_day(const struct calendar *calendar)
{
    struct calendar first = {.year = calendar->year, .day = 1};
    return floor_div(local_millis(calendar) - local_millis(&first), 86400000) + 1;
}

/* Weeks from Sunday to Saturday; the first is that of the first of January. */
static int64_t year_week(const struct calendar *calendar)
{
    struct calendar first = {.year = calendar->year, .day = 1}, next = {.year = calendar->year + 1, .day = 1};
    int64_t left = floor_div(local_millis(&next) - local_millis(calendar) + 86399999, 86400000);
    if (left < weekday(&next)) /* already in the first week of the next year */
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

/* Of a settled calendar. */
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

/* Where a field is kept that needs no others to be set; NULL for the rest. */
static int64_t *place_of(struct calendar *calendar, enum field field)
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
    int64_t *place = place_of(calendar, field);
    if (place != NULL) {
        *place = value;
        return;
    }
    settle(calendar);
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

/* Later by so much; the day stays within a shorter month. */
static void add_field(struct calendar *calendar, enum field field, int64_t count)
{
    settle(calendar);
    if (field == FIELD_YEAR || field == FIELD_MONTH) {
        int64_t month = calendar->year * 12 + calendar->month + (field == FIELD_YEAR ? 12 * count : count);
        calendar->year = floor_div(month, 12);
        calendar->month = floor_mod(month, 12);
        int days = calendar_month_days(calendar->year, (int)calendar->month + 1);
        calendar->day = calendar->day > days ? days : calendar->day;
        return;
    }
    set_field(calendar, field, field_of(calendar, field) + count);
    settle(calendar);
}

/* Making one */

static struct calendar *calendar_new(struct run *run, int64_t millis, int32_t offset)
{
    struct calendar *calendar = run_object(run, sizeof *calendar, CLASS_GREGORIAN_CALENDAR);
    calendar->offset = offset;
    set_millis(calendar, millis);
    return calendar;
}

static bool calendar_now(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n > 0)
        NEED(1);
    if (n > 0 && moment_is_ruled(moment_of(a[1])))
        return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                         "a Calendar has a zone with a fixed offset here, and [%.*s] has none; use ZonedDateTime",
                         SLICE_ARG(moment_of(a[1])->zone->name));
    return give(ret, calendar_new(run, run->now_ms, n > 0 ? moment_of(a[1])->offset : 0));
}

static bool calendar_of_fields(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct calendar *calendar = calendar_new(run, 0, 0);
    for (unsigned i = 1; i <= n; i++)
        *place_of(calendar, (enum field[]){FIELD_YEAR, FIELD_MONTH, FIELD_DAY, FIELD_HOUR_OF_DAY, FIELD_MINUTE,
                                           FIELD_SECOND}[i - 1]) = a[i].i;
    return give(ret, calendar);
}

static bool calendar_clone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct calendar *calendar = calendar_new(run, 0, self(a)->offset);
    *calendar = *self(a);
    return give(ret, calendar);
}

/* Methods */

static bool calendar_get(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!check_field(run, a[1].i))
        return false;
    settle(self(a));
    return give_int(ret, field_of(self(a), (enum field)a[1].i));
}

static bool calendar_set(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n > 2)
        for (unsigned i = 1; i <= n; i++)
            *place_of(self(a), (enum field[]){FIELD_YEAR, FIELD_MONTH, FIELD_DAY, FIELD_HOUR_OF_DAY, FIELD_MINUTE,
                                              FIELD_SECOND}[i - 1]) = a[i].i;
    else if (!check_field(run, a[1].i))
        return false;
    else
        set_field(self(a), (enum field)a[1].i, a[2].i);
    return give_nothing(ret);
}

static bool calendar_add(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!check_field(run, a[1].i))
        return false;
    if (a[1].i == FIELD_ERA || a[1].i >= FIELD_ZONE_OFFSET)
        return run_throw_null(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION);
    add_field(self(a), (enum field)a[1].i, a[2].i);
    return give_nothing(ret);
}

static bool calendar_clear(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct calendar *calendar = self(a);
    if (n == 0) {
        set_local(calendar, 0);
        return give_nothing(ret);
    }
    int64_t *place = check_field(run, a[1].i) ? place_of(calendar, (enum field)a[1].i) : NULL;
    if (place != NULL)
        *place = a[1].i == FIELD_YEAR ? 1970 : a[1].i == FIELD_DAY;
    return run->thrown == NULL && give_nothing(ret);
}

static bool calendar_actual_maximum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    static const int maxima[FIELD_COUNT] = {1, 292278994, 11, 0,  0,  0,   0,        7,      0,
                                            1, 11,        23, 59, 59, 999, 50400000, 7200000};
    (void)n;
    if (!check_field(run, a[1].i))
        return false;
    struct calendar last = *self(a);
    settle(&last);
    int days = calendar_month_days(last.year, (int)last.month + 1);
    switch (a[1].i) {
    case FIELD_DAY: return give_int(ret, days);
    case FIELD_WEEKDAY_IN_MONTH: return give_int(ret, (days - 1 - (last.day - 1) % 7) / 7 + 1);
    case FIELD_DAY_OF_YEAR: return give_int(ret, 365 + calendar_is_leap(last.year));
    case FIELD_WEEK_OF_MONTH: last.day = days; return give_int(ret, month_week(&last));
    case FIELD_WEEK_OF_YEAR:
        last.month = 11;
        last.day = 24;
        return give_int(ret, year_week(&last));
    default: return give_int(ret, maxima[a[1].i]);
    }
}

static bool calendar_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    settle(self(a));
    int64_t millis = calendar_millis(self(a));
    return give(ret, moment_new(run, CLASS_DATE, floor_div(millis, 1000), (int32_t)floor_mod(millis, 1000) * 1000000));
}

static bool calendar_to_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!calendar_time(run, a, n, ret))
        return false;
    ret->object->class = CLASS_INSTANT;
    return true;
}

static bool calendar_set_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    set_millis(self(a), moment_of(a[1])->seconds * 1000 + moment_of(a[1])->nanos / 1000000);
    return give_nothing(ret);
}

static bool calendar_time_millis(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    settle(self(a));
    return give_long(ret, calendar_millis(self(a)));
}

static bool calendar_set_time_millis(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    set_millis(self(a), a[1].i);
    return give_nothing(ret);
}

static bool calendar_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct moment *zone = moment_new(run, CLASS_TIME_ZONE, 0, 0);
    zone->offset = self(a)->offset;
    static const struct zone utc = {.name = {"UTC", 3}};
    zone->zone = zone->offset == 0 ? &utc : NULL;
    return give(ret, zone);
}

static bool calendar_set_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (moment_is_ruled(moment_of(a[1])))
        return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                         "a Calendar has a zone with a fixed offset here, and [%.*s] has none; use ZonedDateTime",
                         SLICE_ARG(moment_of(a[1])->zone->name));
    int64_t millis = calendar_millis(self(a));
    self(a)->offset = moment_of(a[1])->offset;
    set_millis(self(a), millis);
    return give_nothing(ret);
}

static int64_t difference(struct value *a)
{
    return calendar_millis(self(a)) - calendar_millis((struct calendar *)a[1].object);
}

static bool calendar_before(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, value_is(a[1], CLASS_GREGORIAN_CALENDAR) && difference(a) < 0);
}

static bool calendar_after(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, value_is(a[1], CLASS_GREGORIAN_CALENDAR) && difference(a) > 0);
}

static bool calendar_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    int64_t order = difference(a);
    return give_int(ret, (order > 0) - (order < 0));
}

static bool calendar_is_leap_year(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, calendar_is_leap(a[1].i));
}

/* Groovy's date[Calendar.YEAR]. */
static bool date_get_field(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!check_field(run, a[1].i))
        return false;
    const struct moment *date = moment_of(a[0]);
    struct calendar calendar = {.year = 0};
    set_millis(&calendar, date->seconds * 1000 + date->nanos / 1000000);
    return give_int(ret, field_of(&calendar, (enum field)a[1].i));
}

/* Groovy's calendar[Calendar.YEAR] = 2020. */
static bool calendar_put_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return calendar_set(run, a, n, ret);
}

#define CALENDAR_CONSTANTS(X)                                                                                          \
    X(ERA, FIELD_ERA)                                                                                                  \
    X(YEAR, FIELD_YEAR)                                                                                                \
    X(MONTH, FIELD_MONTH) X(WEEK_OF_YEAR, FIELD_WEEK_OF_YEAR) X(WEEK_OF_MONTH, FIELD_WEEK_OF_MONTH) X(DATE, FIELD_DAY) \
        X(DAY_OF_MONTH, FIELD_DAY) X(DAY_OF_YEAR, FIELD_DAY_OF_YEAR) X(DAY_OF_WEEK, FIELD_DAY_OF_WEEK)                 \
            X(DAY_OF_WEEK_IN_MONTH, FIELD_WEEKDAY_IN_MONTH) X(AM_PM, FIELD_AM_PM) X(HOUR, FIELD_HOUR)                  \
                X(HOUR_OF_DAY, FIELD_HOUR_OF_DAY) X(MINUTE, FIELD_MINUTE) X(SECOND, FIELD_SECOND)                      \
                    X(MILLISECOND, FIELD_MILLI) X(ZONE_OFFSET, FIELD_ZONE_OFFSET) X(DST_OFFSET, FIELD_DST_OFFSET)      \
                        X(JANUARY, 0) X(FEBRUARY, 1) X(MARCH, 2) X(APRIL, 3) X(MAY, 4) X(JUNE, 5) X(JULY, 6)           \
                            X(AUGUST, 7) X(SEPTEMBER, 8) X(OCTOBER, 9) X(NOVEMBER, 10) X(DECEMBER, 11) X(SUNDAY, 1)    \
                                X(MONDAY, 2) X(TUESDAY, 3) X(WEDNESDAY, 4) X(THURSDAY, 5) X(FRIDAY, 6) X(SATURDAY, 7)  \
                                    X(AM, 0) X(PM, 1)
#define CONSTANT(name, number) METHOD_CONSTANT(name, value_int(number))
#define CONSTANT_ROW(name, number) M0(#name, FIELD, INT, constant_##name),

CALENDAR_CONSTANTS(CONSTANT)

#define SIX(name, flags, result, call)                                                                           \
    {                                                                                                            \
        name, flags, 6, CLASS_##result, {CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT}, call \
    }

static const struct method calendar_methods[] = {
    CALENDAR_CONSTANTS(CONSTANT_ROW) M0("getInstance", STATIC, CALENDAR, calendar_now),
    M1("getInstance", STATIC, CALENDAR, TIME_ZONE, calendar_now),
    M2("getInstance", STATIC, CALENDAR, TIME_ZONE, LOCALE, calendar_now),
    M1("get", METHOD_BOTH, INT, INT, calendar_get),
    M1("getAt", METHOD_GROOVY, INT, INT, calendar_get),
    M2("putAt", METHOD_GROOVY, VOID, INT, INT, calendar_put_at),
    M2("set", METHOD_BOTH, VOID, INT, INT, calendar_set),
    M3("set", METHOD_BOTH, VOID, INT, INT, INT, calendar_set),
    M5("set", METHOD_BOTH, VOID, INT, INT, INT, INT, INT, calendar_set),
    SIX("set", METHOD_BOTH, VOID, calendar_set),
    M2("add", METHOD_BOTH, VOID, INT, INT, calendar_add),
    M0("clear", METHOD_BOTH, VOID, calendar_clear),
    M1("clear", METHOD_BOTH, VOID, INT, calendar_clear),
    M1("getActualMaximum", METHOD_BOTH, INT, INT, calendar_actual_maximum),
    M0("getTime", METHOD_BOTH, DATE, calendar_time),
    M1("setTime", METHOD_BOTH, VOID, DATE, calendar_set_time),
    M0("getTimeInMillis", METHOD_BOTH, LONG, calendar_time_millis),
    M1("setTimeInMillis", METHOD_BOTH, VOID, LONG, calendar_set_time_millis),
    M0("getTimeZone", METHOD_BOTH, TIME_ZONE, calendar_zone),
    M1("setTimeZone", METHOD_BOTH, VOID, TIME_ZONE, calendar_set_zone),
    M0("toInstant", METHOD_BOTH, INSTANT, calendar_to_instant),
    M0("clone", METHOD_BOTH, DEF, calendar_clone),
    M1("before", METHOD_BOTH, BOOLEAN, OBJECT, calendar_before),
    M1("after", METHOD_BOTH, BOOLEAN, OBJECT, calendar_after),
    M1("compareTo", METHOD_BOTH, INT, CALENDAR, calendar_compare_to),
};

static const struct method gregorian_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, GREGORIAN_CALENDAR, calendar_now),
    M1("new", METHOD_BOTH | METHOD_NEW, GREGORIAN_CALENDAR, TIME_ZONE, calendar_now),
    M3("new", METHOD_BOTH | METHOD_NEW, GREGORIAN_CALENDAR, INT, INT, INT, calendar_of_fields),
    M5("new", METHOD_BOTH | METHOD_NEW, GREGORIAN_CALENDAR, INT, INT, INT, INT, INT, calendar_of_fields),
    SIX("new", METHOD_BOTH | METHOD_NEW, GREGORIAN_CALENDAR, calendar_of_fields),
    M1("isLeapYear", METHOD_BOTH, BOOLEAN, INT, calendar_is_leap_year),
};

static const struct method date_methods[] = {
    M1("getAt", METHOD_GROOVY, INT, INT, date_get_field),
};

const struct method_table methods_calendar[] = {
    METHOD_TABLE(CALENDAR, calendar_methods),
    METHOD_TABLE(GREGORIAN_CALENDAR, gregorian_methods),
    METHOD_TABLE(DATE, date_methods),
    {0, 0, NULL},
};
