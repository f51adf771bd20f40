/* SPDX-License-Identifier: Apache-2.0 */
/* Dates: ISO 8601, epoch numbers, zones; see date.h. Date math is in date_math.c. */
#include "mapping/date.h"

#include "base/calendar.h"
#include "base/digits.h"
#include "mapping/date_internal.h"

#include <stdlib.h>

#define YEAR_MAX INT64_C(290000000) /* of the year in a text */

void date_split(int64_t millis, struct date_parts *ret_parts)
{
    int64_t days = floor_div(millis, DAY_MS), rest = floor_mod(millis, DAY_MS);
    struct calendar_date date = calendar_date(days);
    *ret_parts = (struct date_parts){
        .year = date.year,
        .month = date.month,
        .day = date.day,
        .hour = (int)(rest / 3600000),
        .minute = (int)(rest / 60000 % 60),
        .second = (int)(rest / 1000 % 60),
        .millis = (int)(rest % 1000),
    };
}

int64_t date_join(const struct date_parts *parts)
{
    int64_t seconds = (parts->hour * 60 + parts->minute) * 60 + parts->second;
    return calendar_days(parts->year, parts->month, parts->day) * DAY_MS + seconds * 1000 + parts->millis;
}

int date_weekday(int64_t millis)
{
    return calendar_weekday(floor_div(millis, DAY_MS)) + 1;
}

bool date__take_zone(struct slice *text, int *ret_seconds)
{
    if (slice_take_byte(text, 'Z')) {
        *ret_seconds = 0;
        return true;
    }
    static const struct digits_offset_form form = {DIGITS_ANY_COLONS, .parts_min = 1, .parts_max = 2};
    struct slice rest = *text;
    struct digits_offset offset;
    bool negative = slice_take_byte(&rest, '-');
    if ((!negative && !slice_take_byte(&rest, '+')) || !digits_take_offset(&rest, &form, &offset))
        return false;
    if (offset.hours > 18 || offset.minutes > 59)
        return false;
    *ret_seconds = digits_offset_seconds(&offset, negative);
    *text = rest;
    return true;
}

int64_t date_local(const struct zone *zone, int64_t millis)
{
    return millis + (int64_t)zone_offset(zone, floor_div(millis, 1000)) * 1000;
}

int64_t date_of_local(const struct zone *zone, int64_t local, int32_t preferred)
{
    return zone == NULL ? local : zone_instant(zone, floor_div(local, 1000), preferred) * 1000 + floor_mod(local, 1000);
}

/* Returns: the value of a field; if unset, its lowest value, or with `round_up` the highest. */
static int or_default(int value, bool round_up, int low, int high)
{
    return value != DATE_UNSET ? value : round_up ? high : low;
}

/* Sets month and day from a day of the year. An invalid one gives an invalid day. */
static void set_day_of_year(struct date_parts *parts, int day_of_year)
{
    parts->month = 1;
    parts->day = day_of_year;
    while (parts->month < 12 && parts->day > calendar_month_days(parts->year, parts->month))
        parts->day -= calendar_month_days(parts->year, parts->month++);
}

/* Returns: the day of the Monday of the first week of a year of weeks. */
static int64_t first_monday(int64_t year)
{
    int64_t day = calendar_days(year, 1, 4);
    return day - calendar_weekday(day);
}

/* Converts a date of a year of weeks. Returns: false: it does not exist. */
static bool resolve_week(const struct date_fields *fields, bool clamped, int64_t *ret_days)
{
    enum { WEEKS_MAX = 53 };
    int64_t monday = first_monday(fields->week_year);
    int64_t weeks = (first_monday(fields->week_year + 1) - monday) / 7, week = fields->week;
    if (clamped && week == WEEKS_MAX)
        week = weeks;
    *ret_days = monday + (week - 1) * 7 + fields->weekday - 1;
    return week >= 1 && week <= weeks && fields->weekday >= 1 && fields->weekday <= 7;
}

/*
 * Converts the date in `parts`, by the rules of a grammar (NULL: none).
 * Returns: false: it does not exist.
 */
static bool resolve_days(const struct date_parts *parts, const struct date_grammar *grammar, int64_t *ret_days)
{
    int days, day = parts->day;
    if (grammar != NULL && grammar->lenient) {
        int64_t month = parts->year * 12 + parts->month - 1;
        *ret_days = calendar_days(floor_div(month, 12), (int)floor_mod(month, 12) + 1, 1) + day - 1;
        return true;
    }
    if (parts->month < 1 || parts->month > 12)
        return false;
    days = calendar_month_days(parts->year, parts->month);
    if (grammar != NULL && grammar->smart && day > days && day <= 31)
        day = days;
    *ret_days = calendar_days(parts->year, parts->month, day);
    return day >= 1 && day <= days;
}

/* Returns: whether a time is 24:00, which is that of the next day in ResolverStyle.SMART. */
static bool is_midnight(const struct date_parts *parts)
{
    return parts->hour == 24 && parts->minute == 0 && parts->second == 0 && parts->millis == 0;
}

/* Converts fields to milliseconds. Returns: 0; DATE_INVALID: a field is out of range. */
static int resolve_fields(const struct date_fields *fields, const struct date_grammar *grammar, bool round_up,
                          const struct zone *zone, int64_t *ret_millis)
{
    int hour = fields->hour;
    int64_t days = 0, excess = 0;
    bool week = fields->week != DATE_UNSET;
    if (fields->half != DATE_UNSET) {
        if (hour != DATE_UNSET && (hour < 1 || hour > 12))
            return DATE_INVALID;
        hour = (hour == DATE_UNSET ? 0 : hour % 12) + 12 * fields->half;
    }
    struct date_parts parts = {
        .year = week                         ? fields->week_year
                : fields->year == DATE_UNSET ? 1970
                                             : fields->year,
        .month = fields->month == DATE_UNSET ? 1 : fields->month,
        .hour = or_default(hour, round_up, 0, 23),
        .minute = or_default(fields->minute, round_up, 0, 59),
        .second = or_default(fields->second, round_up, 0, 59),
        .millis = or_default(fields->millis, round_up, 0, 999),
    };
    if (grammar != NULL && grammar->smart && is_midnight(&parts)) {
        parts.hour = 0;
        excess = fields->year != DATE_UNSET;
    }
    if (parts.year > YEAR_MAX || parts.year < -YEAR_MAX || parts.hour > 23 || parts.minute > 59 || parts.second > 59)
        return DATE_INVALID;
    parts.day = fields->day == DATE_UNSET ? 1 : fields->day; /* not rounded up, as in Elasticsearch */
    if (fields->day_of_year != DATE_UNSET)
        set_day_of_year(&parts, fields->day_of_year);
    if (week ? !resolve_week(fields, grammar->clamped_week, &days) : !resolve_days(&parts, grammar, &days))
        return DATE_INVALID;
    int64_t seconds = (parts.hour * 60 + parts.minute) * 60 + parts.second;
    int64_t local = (days + excess) * DAY_MS + seconds * 1000 + parts.millis;
    struct zone own = zone_fixed(fields->zone_seconds == DATE_UNSET ? 0 : fields->zone_seconds);
    *ret_millis = date_of_local(fields->zone_seconds == DATE_UNSET ? zone : &own, local, ZONE_PREFERS_NONE);
    return 0;
}

enum { FRACTION_MAX = 9 };

/* Parses a part of ISO 8601: two digits, or one or two if not strict. */
static bool take_part(struct slice *text, bool strict, int *ret_part)
{
    int64_t number;
    if (!digits_take(text, strict ? 2 : 1, 2, &number))
        return false;
    *ret_part = (int)number;
    return true;
}

static bool take_year(struct slice *text, bool strict, int64_t *ret_year)
{
    int sign = slice_take_byte(text, '-') ? -1 : 1;
    if (sign == 1)
        (void)slice_take_byte(text, '+');
    if (!digits_take(text, strict ? 4 : 1, 9, ret_year))
        return false;
    *ret_year *= sign;
    return true;
}

bool date__take_fraction(struct slice *text, int max, int *ret_millis)
{
    int64_t millis;
    if (!digits_take_fraction(text, max, 3, &millis))
        return false;
    *ret_millis = (int)millis;
    return true;
}

/* Whether a text begins with an offset that has a colon. */
static bool has_colon_offset(struct slice text)
{
    return text.len > 3 && text.data[3] == ':';
}

/* Parses the seconds of an offset with a colon, which may follow: "+01:00:30". */
static bool take_offset_seconds(struct slice *text, int *offset)
{
    int64_t seconds;
    if (!slice_take_byte(text, ':'))
        return true;
    if (!digits_take(text, 2, 2, &seconds) || seconds > 59)
        return false;
    *offset += *offset < 0 ? -(int)seconds : (int)seconds;
    return *offset >= -DATE_ZONE_SECONDS_MAX && *offset <= DATE_ZONE_SECONDS_MAX;
}

bool date__take_iso_zone(struct slice *text, int *ret_seconds, bool *ret_full)
{
    static const char *const names_of_utc[] = {"UTC", "GMT", "UT"};
    bool named = false;
    for (size_t i = 0; !named && i < sizeof names_of_utc / sizeof *names_of_utc; i++) {
        named = slice_starts_with(*text, slice_from(names_of_utc[i]));
        if (named)
            *text = slice_from_offset(*text, strlen(names_of_utc[i]));
    }
    bool colon = has_colon_offset(*text);
    *ret_full = named || colon || (text->len > 0 && text->data[0] == 'Z');
    if (named && !colon) {
        *ret_seconds = 0;
        return true;
    }
    return date__take_zone(text, ret_seconds) && (!colon || take_offset_seconds(text, ret_seconds));
}

/*
 * Parses the zone at the end of a text; an empty text is accepted. As in Elasticsearch, a zone that
 * is not an offset without a colon may be followed by one of these or "Z", without effect: "ZZ".
 */
static bool parse_iso_zone(struct slice text, struct date_fields *fields)
{
    int ignored;
    bool full;
    if (text.len == 0)
        return true;
    if (!date__take_iso_zone(&text, &fields->zone_seconds, &full))
        return false;
    return text.len == 0 || (full && !has_colon_offset(text) && date__take_zone(&text, &ignored) && text.len == 0);
}

/* Parses HH[:mm[:ss[.SSS]]][zone], which must be the whole text; an empty text is accepted. */
static bool parse_iso_time(struct slice text, bool strict, struct date_fields *fields)
{
    if (text.len == 0)
        return true;
    if (!take_part(&text, strict, &fields->hour))
        return false;
    if (slice_take_byte(&text, ':')) {
        if (!take_part(&text, strict, &fields->minute))
            return false;
        if (slice_take_byte(&text, ':')) {
            if (!take_part(&text, strict, &fields->second))
                return false;
            if ((slice_take_byte(&text, '.') || slice_take_byte(&text, ',')) &&
                !date__take_fraction(&text, FRACTION_MAX, &fields->millis))
                return false;
        }
    }
    return parse_iso_zone(text, fields);
}

/* Parses yyyy[-MM[-dd]][T…], which must be the whole text. */
static bool parse_iso(struct slice text, bool strict, struct date_fields *fields)
{
    if (!take_year(&text, strict, &fields->year))
        return false;
    if (slice_take_byte(&text, '-')) {
        if (!take_part(&text, strict, &fields->month))
            return false;
        if (slice_take_byte(&text, '-') && !take_part(&text, strict, &fields->day))
            return false;
    }
    return text.len == 0 || (slice_take_byte(&text, 'T') && parse_iso_time(text, strict, fields));
}

/*
 * Parses a number of milliseconds or seconds with an optional fraction: "-1577836800123.5".
 * `round_up`: seconds without a fraction end with their last millisecond.
 */
static int parse_epoch(struct slice text, bool seconds, bool round_up, int64_t *ret_millis)
{
    bool negative = slice_take_byte(&text, '-');
    int64_t number;
    int last = negative ? -999 : 999, fraction = seconds && round_up ? last : 0;
    if (!digits_take(&text, 1, 18, &number))
        return DATE_INVALID;
    if (slice_take_byte(&text, '.') && !date__take_fraction(&text, FRACTION_MAX, &fraction))
        return DATE_INVALID;
    if (text.len > 0 || (seconds && number > INT64_MAX / 1000 - 1))
        return DATE_INVALID;
    number = seconds ? number * 1000 + fraction : number;
    *ret_millis = negative ? -number : number;
    return 0;
}

/* Parses a text as DATE_RULES_FIRST, or as the grammar of a named format says. */
static int read_alternative(const struct date_alternative *alternative, struct slice text, bool round_up,
                            const struct zone *zone, int64_t *ret_millis)
{
    const struct date_grammar *grammar = alternative->grammar;
    struct date_fields fields = DATE_FIELDS_UNSET;
    size_t stop;
    if (grammar != NULL)
        return date__parse_grammar(grammar, text, &fields, &stop) != 0
                   ? DATE_INVALID
                   : resolve_fields(&fields, grammar, round_up, zone, ret_millis);
    if (alternative->kind == DATE_EPOCH_MILLIS || alternative->kind == DATE_EPOCH_SECOND) {
        int r = parse_epoch(text, alternative->kind == DATE_EPOCH_SECOND, round_up, ret_millis);
        if (r == 0)
            *ret_millis = date_of_local(zone, *ret_millis, ZONE_PREFERS_NONE);
        return r;
    }
    if (alternative->kind == DATE_ISO ? !parse_iso(text, alternative->strict, &fields)
                                      : date__parse_pattern(alternative, text, &fields, &stop) != 0)
        return DATE_INVALID;
    return resolve_fields(&fields, NULL, round_up, zone, ret_millis);
}

static bool is_strict_alternative(const struct date_alternative *alternative, struct slice text);

int date__parse(const struct date_format *format, struct slice text, bool round_up, const struct zone *zone,
                int64_t *ret_millis)
{
    for (size_t i = 0; i < format->count; i++) {
        const struct date_alternative *alternative = &format->alternatives[i];
        if (read_alternative(alternative, text, round_up, zone, ret_millis) == 0 &&
            (!alternative->exact || is_strict_alternative(alternative, text)))
            return 0;
    }
    return DATE_INVALID;
}

int date_parse(const struct date_format *format, struct slice text, bool round_up, int64_t *ret_millis)
{
    return date__parse(format, text, round_up, NULL, ret_millis);
}

/* --- What 7.10 takes ---------------------------------------------------------------------------------------------- */

bool date__take_strict_year(struct slice *text, bool strict)
{
    bool minus = slice_take_byte(text, '-'), plus = !minus && slice_take_byte(text, '+');
    int64_t year;
    size_t digits = text->len;
    if (!digits_take(text, 1, 9, &year))
        return false;
    digits -= text->len;
    if (minus && year == 0)
        return false;
    if (!strict)
        return !plus && digits <= 5;
    return minus || (plus ? digits > 4 : digits == 4);
}

bool date__is_valid_offset(struct slice offset)
{
    if (offset.len < 5 || (offset.data[0] != '+' && offset.data[0] != '-'))
        return true;
    return memcmp(offset.data + 1, "18", 2) != 0 || memcmp(offset.data + offset.len - 2, "00", 2) == 0;
}

/* Returns: whether the offset at the end of a text, "+18:00" or "+1800", is valid. */
static bool has_valid_offset(struct slice text)
{
    struct slice end = text.len < 6 ? text : slice_from_offset(text, text.len - 6);
    bool colon = end.len == 6 && end.data[3] == ':';
    return date__is_valid_offset(colon || end.len < 6 ? end : slice_from_offset(end, 1));
}

/* Returns: whether the hour after the 'T' has no minutes but a zone, which only strict formats take. */
static bool has_zone_after_hour(struct slice text)
{
    int64_t hour;
    size_t time = slice_find_byte(text, 'T');
    if (time == text.len)
        return false;
    text = slice_from_offset(text, time + 1);
    return digits_take(&text, 1, 2, &hour) && text.len > 0 && text.data[0] != ':';
}

static bool is_strict_iso(struct slice text, bool strict)
{
    return date__take_strict_year(&text, strict) && has_valid_offset(text) && (strict || !has_zone_after_hour(text));
}

/* Returns: whether the fraction of a number of milliseconds has at most six digits. */
static bool is_strict_epoch_millis(struct slice text)
{
    enum { FRACTION_DIGITS_MAX = 6 };
    size_t mark = slice_find_byte(text, '.');
    return mark == text.len || text.len - mark - 1 <= FRACTION_DIGITS_MAX;
}

static bool is_strict_alternative(const struct date_alternative *alternative, struct slice text)
{
    int64_t ignored;
    size_t stop;
    if (alternative->grammar != NULL)
        return true;
    if (read_alternative(alternative, text, false, NULL, &ignored) != 0)
        return false;
    switch (alternative->kind) {
    case DATE_ISO: return is_strict_iso(text, alternative->strict);
    case DATE_EPOCH_MILLIS: return is_strict_epoch_millis(text);
    case DATE_EPOCH_SECOND: return true;
    case DATE_PATTERN: break;
    }
    return alternative->named ? has_valid_offset(text) : date__is_strict_pattern(alternative, text, &stop);
}

bool date_is_strict(const struct date_format *format, struct slice text)
{
    if (format->rules == DATE_RULES_7_10)
        return true;
    for (size_t i = 0; i < format->count; i++) {
        if (is_strict_alternative(&format->alternatives[i], text))
            return true;
    }
    return false;
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

void date_print_iso(struct buf *buf, int64_t millis)
{
    struct date_parts p;
    date_split(millis, &p);
    buf_printf(buf, "%s%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ",
               p.year < 0      ? "-"
               : p.year > 9999 ? "+"
                               : "",
               (long long)(p.year < 0 ? -p.year : p.year), p.month, p.day, p.hour, p.minute, p.second, p.millis);
}

/* Appends milliseconds as seconds, with a fraction if there is one: "12.25". */
static void print_seconds(struct buf *buf, int64_t millis)
{
    uint64_t size = millis < 0 ? 0 - (uint64_t)millis : (uint64_t)millis;
    buf_printf(buf, "%s%llu", millis < 0 ? "-" : "", (unsigned long long)(size / 1000));
    unsigned fraction = (unsigned)(size % 1000);
    int digits = fraction % 100 == 0 ? 1 : fraction % 10 == 0 ? 2 : 3;
    if (fraction != 0)
        buf_printf(buf, ".%0*u", digits, digits == 1 ? fraction / 100 : digits == 2 ? fraction / 10 : fraction);
}

/* Appends 2020-01-01T00:00:00.000 and an offset: Z or +02:00. */
static void print_local_iso(struct buf *buf, int64_t local, int32_t offset)
{
    int minutes = abs(offset) / 60;
    date_print_iso(buf, local);
    if (offset == 0)
        return;
    buf_chop(buf, 1); /* the Z */
    buf_printf(buf, "%c%02d:%02d", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

void date_print(struct buf *buf, const struct date_format *format, int64_t millis, const struct zone *zone)
{
    const struct date_alternative *first = &format->alternatives[0];
    int64_t local = date_local(zone, millis);
    int32_t offset = (int32_t)((local - millis) / 1000);
    switch (first->kind) {
    case DATE_ISO: print_local_iso(buf, local, offset); break;
    case DATE_EPOCH_MILLIS: buf_i64(buf, millis); break;
    case DATE_EPOCH_SECOND: print_seconds(buf, millis); break;
    case DATE_PATTERN: date__print_pattern(buf, first, local, offset); break;
    }
}
