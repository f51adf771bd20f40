/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar, and how Java and Elasticsearch write time; see temporal.h. */
#include "script/value/temporal.h"

#include "base/calendar.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

struct civil temporal_civil(const struct temporal *temporal)
{
    int64_t seconds = floor_mod(temporal->seconds, 86400);
    struct calendar_date date = calendar_date(floor_div(temporal->seconds, 86400));
    return (struct civil){.year = date.year,
                          .month = date.month,
                          .day = date.day,
                          .hour = (int)(seconds / 3600),
                          .minute = (int)(seconds / 60 % 60),
                          .second = (int)(seconds % 60),
                          .nano = temporal->nanos};
}

int temporal_weekday(const struct temporal *temporal)
{
    return calendar_weekday(floor_div(temporal->seconds, 86400));
}

struct temporal *temporal_new(struct run *run, enum class_id id, int64_t seconds, int32_t nanos)
{
    struct temporal *temporal = run_object(run, sizeof *temporal, id);
    temporal->seconds = seconds + floor_div(nanos, 1000000000);
    temporal->nanos = (int32_t)(nanos - floor_div(nanos, 1000000000) * 1000000000);
    return temporal;
}

/* Enums */

static const char *const days[] = {"MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"};
static const char *const months[] = {"JANUARY", "FEBRUARY", "MARCH",     "APRIL",   "MAY",      "JUNE",
                                     "JULY",    "AUGUST",   "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"};
static const char *const units[] = {"NANOS",     "MICROS",    "MILLIS", "SECONDS", "MINUTES", "HOURS",
                                    "HALF_DAYS", "DAYS",      "WEEKS",  "MONTHS",  "YEARS",   "DECADES",
                                    "CENTURIES", "MILLENNIA", "ERAS",   "FOREVER"};
static const char *const unit_texts[] = {"Nanos",     "Micros",    "Millis", "Seconds", "Minutes", "Hours",
                                         "HalfDays",  "Days",      "Weeks",  "Months",  "Years",   "Decades",
                                         "Centuries", "Millennia", "Eras",   "Forever"};
static const char *const fields[] = {"NANO_OF_SECOND",  "MICRO_OF_SECOND",
                                     "MILLI_OF_SECOND", "SECOND_OF_MINUTE",
                                     "SECOND_OF_DAY",   "MINUTE_OF_HOUR",
                                     "MINUTE_OF_DAY",   "HOUR_OF_DAY",
                                     "DAY_OF_WEEK",     "DAY_OF_MONTH",
                                     "DAY_OF_YEAR",     "EPOCH_DAY",
                                     "MONTH_OF_YEAR",   "YEAR",
                                     "INSTANT_SECONDS", "OFFSET_SECONDS",
                                     "MILLI_OF_DAY",    "NANO_OF_DAY"};
static const char *const field_texts[] = {
    "NanoOfSecond", "MicroOfSecond", "MilliOfSecond",  "SecondOfMinute", "SecondOfDay", "MinuteOfHour",
    "MinuteOfDay",  "HourOfDay",     "DayOfWeek",      "DayOfMonth",     "DayOfYear",   "EpochDay",
    "MonthOfYear",  "Year",          "InstantSeconds", "OffsetSeconds",  "MilliOfDay",  "NanoOfDay"};
static const char *const roundings[] = {"UP",      "DOWN",      "CEILING",   "FLOOR",
                                        "HALF_UP", "HALF_DOWN", "HALF_EVEN", "UNNECESSARY"};
static const char *const time_units[] = {"NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS",
                                         "MINUTES",     "HOURS",        "DAYS"};

static const char *const text_styles[] = {"FULL",   "FULL_STANDALONE",  "SHORT", "SHORT_STANDALONE",
                                          "NARROW", "NARROW_STANDALONE"};

#define ENUM_ROW(id, names, texts)                             \
    {                                                          \
        CLASS_##id, sizeof names / sizeof *names, names, texts \
    }

static const struct {
    uint16_t id;
    unsigned count;
    const char *const *names;
    const char *const *texts;
} enums[] = {ENUM_ROW(DAY_OF_WEEK, days, days),
             ENUM_ROW(MONTH, months, months),
             ENUM_ROW(CHRONO_UNIT, units, unit_texts),
             ENUM_ROW(CHRONO_FIELD, fields, field_texts),
             ENUM_ROW(ROUNDING_MODE, roundings, roundings),
             ENUM_ROW(TIME_UNIT, time_units, time_units),
             ENUM_ROW(TEXT_STYLE, text_styles, text_styles)};

#define ENUM_COUNT (sizeof enums / sizeof *enums)

/* Returns: ENUM_COUNT for a class that is not an enum. */
static size_t find_row(enum class_id id)
{
    size_t i = 0;
    while (i < ENUM_COUNT && enums[i].id != id)
        i++;
    return i;
}

static size_t enum_row(enum class_id id)
{
    size_t row = find_row(id);
    INSIST(row < ENUM_COUNT);
    return row;
}

const char *enumerator_name(enum class_id id, int ordinal)
{
    return enums[enum_row(id)].names[ordinal];
}

const char *enumerator_text(enum class_id id, int ordinal)
{
    return enums[enum_row(id)].texts[ordinal];
}

unsigned enumerator_count(enum class_id id)
{
    size_t row = find_row(id);
    return row == ENUM_COUNT ? 0 : enums[row].count;
}

struct value enumerator_value(struct run *run, enum class_id id, int ordinal)
{
    struct enumerator *enumerator = run_object(run, sizeof *enumerator, id);
    enumerator->ordinal = ordinal;
    return value_of(enumerator);
}

/* Writing */

static void write_format(struct text_buf *out, const char *format, ...) TL_PRINTF(2, 3);

static void write_format(struct text_buf *out, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_buf_ascii(out, text);
}

static void write_date(const struct civil *civil, struct text_buf *out)
{
    if (civil->year > 9999)
        write_format(out, "+%lld", (long long)civil->year);
    else if (civil->year < 0)
        write_format(out, "-%04lld", (long long)-civil->year);
    else
        write_format(out, "%04lld", (long long)civil->year);
    write_format(out, "-%02d-%02d", civil->month, civil->day);
}

/* Appends the fraction of a second with as few groups of three digits as possible. */
static void write_fraction(int32_t nanos, struct text_buf *out)
{
    if (nanos == 0)
        return;
    if (nanos % 1000000 == 0)
        write_format(out, ".%03d", nanos / 1000000);
    else if (nanos % 1000 == 0)
        write_format(out, ".%06d", nanos / 1000);
    else
        write_format(out, ".%09d", nanos);
}

static void write_time(const struct civil *civil, bool always_seconds, struct text_buf *out)
{
    write_format(out, "%02d:%02d", civil->hour, civil->minute);
    if (always_seconds || civil->second > 0 || civil->nano > 0)
        write_format(out, ":%02d", civil->second);
    write_fraction(civil->nano, out);
}

static void write_offset(int32_t offset, struct text_buf *out)
{
    int32_t size = offset < 0 ? -offset : offset;
    if (offset == 0) {
        text_buf_unit(out, 'Z');
        return;
    }
    write_format(out, "%c%02d:%02d", offset < 0 ? '-' : '+', size / 3600, size / 60 % 60);
    if (size % 60 != 0)
        write_format(out, ":%02d", size % 60);
}

static void write_duration(const struct temporal *duration, struct text_buf *out)
{
    int64_t seconds = duration->seconds;
    int32_t nanos = duration->nanos;
    if (seconds == 0 && nanos == 0) {
        text_buf_ascii(out, "PT0S");
        return;
    }
    bool borrow = seconds < 0 && nanos > 0;
    int64_t whole = borrow ? seconds + 1 : seconds;
    int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
    text_buf_ascii(out, "PT");
    if (hours != 0)
        write_format(out, "%lldH", (long long)hours);
    if (minutes != 0)
        write_format(out, "%lldM", (long long)minutes);
    if (rest == 0 && nanos == 0)
        return;
    if (borrow && rest == 0)
        text_buf_ascii(out, "-0");
    else
        write_format(out, "%lld", (long long)rest);
    if (nanos > 0) {
        char digits[12];
        int len = snprintf(digits, sizeof digits, "%09d", borrow ? 1000000000 - nanos : nanos);
        while (len > 0 && digits[len - 1] == '0')
            digits[--len] = '\0';
        write_format(out, ".%s", digits);
    }
    text_buf_unit(out, 'S');
}

static void write_period(const struct temporal *period, struct text_buf *out)
{
    text_buf_unit(out, 'P');
    if (period->years == 0 && period->months == 0 && period->days == 0)
        text_buf_ascii(out, "0D");
    if (period->years != 0)
        write_format(out, "%dY", period->years);
    if (period->months != 0)
        write_format(out, "%dM", period->months);
    if (period->days != 0)
        write_format(out, "%dD", period->days);
}

void temporal_write(const struct temporal *temporal, struct text_buf *out)
{
    struct civil civil = temporal_civil(temporal);
    switch (temporal->object.class) {
    case CLASS_DURATION: write_duration(temporal, out); return;
    case CLASS_PERIOD: write_period(temporal, out); return;
    case CLASS_ZONE_ID:
    case CLASS_ZONE_OFFSET:
    case CLASS_TIME_ZONE:
        if (temporal->zone != NULL)
            write_format(out, "%.*s", SLICE_ARG(temporal->zone->name));
        else
            write_offset(temporal->offset, out);
        return;
    case CLASS_LOCAL_TIME: write_time(&civil, false, out); return;
    default: break;
    }
    write_date(&civil, out);
    if (temporal->object.class == CLASS_LOCAL_DATE)
        return;
    text_buf_unit(out, 'T');
    bool instant = temporal->object.class == CLASS_INSTANT, joda = temporal->object.class == CLASS_DOC_DATE_TIME;
    if (joda && civil.nano % 1000000 == 0) {
        write_format(out, "%02d:%02d:%02d.%03dZ", civil.hour, civil.minute, civil.second, civil.nano / 1000000);
        return;
    }
    write_time(&civil, instant || joda, out);
    if (instant || joda)
        text_buf_unit(out, 'Z');
    if (temporal->object.class == CLASS_OFFSET_DATE_TIME || temporal->object.class == CLASS_ZONED_DATE_TIME)
        write_offset(temporal->offset, out);
    if (temporal->object.class == CLASS_ZONED_DATE_TIME && temporal->zone != NULL)
        write_format(out, "[%.*s]", SLICE_ARG(temporal->zone->name));
}

void temporal_write_date(const struct temporal *temporal, struct text_buf *out)
{
    struct civil civil = temporal_civil(temporal);
    write_format(out, "%.3s %.3s %02d %02d:%02d:%02d UTC %04lld", calendar_weekdays[temporal_weekday(temporal)],
                 calendar_months[civil.month - 1], civil.day, civil.hour, civil.minute, civil.second,
                 (long long)civil.year);
}

void temporal_write_json(const struct temporal *temporal, struct text_buf *out)
{
    struct civil civil = temporal_civil(temporal);
    uint16_t class = temporal->object.class;
    if (class == CLASS_LOCAL_TIME || class == CLASS_DURATION || class == CLASS_PERIOD || class == CLASS_ZONE_ID) {
        temporal_write(temporal, out);
        return;
    }
    write_date(&civil, out);
    if (class == CLASS_LOCAL_DATE)
        return;
    write_format(out, "T%02d:%02d:%02d", civil.hour, civil.minute, civil.second);
    if (civil.nano % 1000000 == 0)
        write_format(out, ".%03d", civil.nano / 1000000);
    else
        write_fraction(civil.nano, out);
    if (class != CLASS_LOCAL_DATE_TIME)
        write_offset(class == CLASS_ZONED_DATE_TIME || class == CLASS_OFFSET_DATE_TIME ? temporal->offset : 0, out);
}

/* Comparing */

static int64_t instant_seconds(const struct temporal *temporal)
{
    bool zoned = temporal->object.class == CLASS_ZONED_DATE_TIME || temporal->object.class == CLASS_OFFSET_DATE_TIME;
    return temporal->seconds - (zoned ? temporal->offset : 0);
}

int temporal_compare(const struct temporal *a, const struct temporal *b)
{
    int64_t x = instant_seconds(a), y = instant_seconds(b);
    if (x != y)
        return x < y ? -1 : 1;
    return (a->nanos > b->nanos) - (a->nanos < b->nanos);
}

bool temporal_equal(const struct temporal *a, const struct temporal *b)
{
    return a->object.class == b->object.class && a->seconds == b->seconds && a->nanos == b->nanos &&
           a->offset == b->offset && a->years == b->years && a->months == b->months && a->days == b->days &&
           (a->zone == NULL) == (b->zone == NULL) && (a->zone == NULL || slice_equal(a->zone->name, b->zone->name));
}

int32_t temporal_hash(const struct temporal *temporal)
{
    uint64_t seconds = (uint64_t)temporal->seconds;
    return (int32_t)((uint32_t)(seconds ^ seconds >> 32) + 51u * (uint32_t)temporal->nanos +
                     7u * (uint32_t)temporal->offset + 31u * (uint32_t)temporal->months + (uint32_t)temporal->days);
}
