/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of java.time's classes, Date and their formatters. */
#include "script/method_args.h"

#include "script/moment.h"

#include <stdio.h>

#define STATIC (METHOD_BOTH | METHOD_STATIC)
#define FIELD (METHOD_BOTH | METHOD_STATIC | METHOD_FIELD)

static struct moment *moment_of(struct value v)
{
    return (struct moment *)v.object;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a - floor_div(a, b) * b;
}

/* Far beyond any date a document holds, and near enough for no arithmetic to overflow. */
#define MOMENT_SECONDS_MAX ((int64_t)31556889864403199)

static struct moment *moment_like(struct run *run, const struct moment *like, int64_t seconds, int64_t nanos)
{
    seconds += floor_div(nanos, 1000000000);
    if (seconds > MOMENT_SECONDS_MAX || seconds < -MOMENT_SECONDS_MAX) {
        run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Instant exceeds minimum or maximum instant");
        return NULL;
    }
    struct moment *moment = run_object(run, sizeof *moment, (enum class_id)like->object.class);
    enum class_id id = (enum class_id)like->object.class;
    *moment = *like;
    moment->object.class = (uint16_t)id;
    moment->seconds = id == CLASS_LOCAL_TIME ? floor_mod(seconds, 86400) : seconds;
    moment->nanos = (int32_t)floor_mod(nanos, 1000000000);
    return moment;
}

static struct moment *moment_as(struct run *run, const struct moment *from, enum class_id id, int64_t seconds)
{
    struct moment *moment = run_object(run, sizeof *moment, id);
    *moment = *from;
    moment->object.class = (uint16_t)id;
    moment->seconds = seconds;
    return moment;
}

static bool is_zoned(const struct moment *moment)
{
    return moment->object.class == CLASS_ZONED_DATE_TIME || moment->object.class == CLASS_OFFSET_DATE_TIME;
}

static int64_t instant_of(const struct moment *moment)
{
    return moment->seconds - (is_zoned(moment) ? moment->offset : 0);
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_length(int64_t year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : lengths[month - 1];
}

static bool out_of_range(struct run *run, const char *field, int64_t value, const char *valid)
{
    return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid value for %s (valid values %s): %lld", field, valid,
                     (long long)value);
}

static bool check_date(struct run *run, int64_t year, int64_t month, int64_t day)
{
    if (year < -999999999 || year > 999999999)
        return out_of_range(run, "Year", year, "-999999999 - 999999999");
    if (month < 1 || month > 12)
        return out_of_range(run, "MonthOfYear", month, "1 - 12");
    if (day < 1 || day > 31)
        return out_of_range(run, "DayOfMonth", day, "1 - 28/31");
    if (day > month_length(year, (int)month))
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid date '%s %lld'",
                         enumerator_name(CLASS_MONTH, (int)month - 1), (long long)day);
    return true;
}

static bool check_time(struct run *run, int64_t hour, int64_t minute, int64_t second, int64_t nano)
{
    if (hour < 0 || hour > 23)
        return out_of_range(run, "HourOfDay", hour, "0 - 23");
    if (minute < 0 || minute > 59)
        return out_of_range(run, "MinuteOfHour", minute, "0 - 59");
    if (second < 0 || second > 59)
        return out_of_range(run, "SecondOfMinute", second, "0 - 59");
    return (nano >= 0 && nano <= 999999999) || out_of_range(run, "NanoOfSecond", nano, "0 - 999999999");
}

/* Parsing ISO texts */

struct scan {
    struct slice text;
    size_t at;
    bool failed;
};

static bool scan_char(struct scan *scan, char c)
{
    if (scan->at < scan->text.len && scan->text.data[scan->at] == c) {
        scan->at++;
        return true;
    }
    return false;
}

static int64_t scan_digits(struct scan *scan, unsigned min, unsigned max)
{
    int64_t value = 0;
    unsigned count = 0;
    while (count < max && scan->at < scan->text.len && scan->text.data[scan->at] >= '0' && scan->text.data[scan->at] <= '9') {
        value = value * 10 + (scan->text.data[scan->at++] - '0');
        count++;
    }
    if (count < min) {
        scan->at -= count;
        scan->failed = true;
    }
    return value;
}

static void scan_expect(struct scan *scan, char c)
{
    if (!scan->failed && !scan_char(scan, c))
        scan->failed = true;
}

static void scan_date(struct scan *scan, struct civil *civil)
{
    bool negative = scan_char(scan, '-'), plus = !negative && scan_char(scan, '+');
    civil->year = scan_digits(scan, 4, plus || negative ? 9 : 4);
    civil->year = negative ? -civil->year : civil->year;
    scan_expect(scan, '-');
    if (!scan->failed)
        civil->month = (int)scan_digits(scan, 2, 2);
    scan_expect(scan, '-');
    if (!scan->failed)
        civil->day = (int)scan_digits(scan, 2, 2);
}

static void scan_time(struct scan *scan, struct civil *civil)
{
    civil->hour = (int)scan_digits(scan, 2, 2);
    scan_expect(scan, ':');
    if (!scan->failed)
        civil->minute = (int)scan_digits(scan, 2, 2);
    if (scan->failed || !scan_char(scan, ':'))
        return;
    civil->second = (int)scan_digits(scan, 2, 2);
    if (scan->failed || !scan_char(scan, '.'))
        return;
    size_t begin = scan->at;
    int64_t nanos = scan_digits(scan, 0, 9);
    for (size_t digits = scan->at - begin; digits < 9; digits++)
        nanos *= 10;
    civil->nano = (int32_t)nanos;
}

static bool scan_offset(struct scan *scan, int32_t *ret_offset)
{
    *ret_offset = 0;
    if (scan_char(scan, 'Z') || scan_char(scan, 'z'))
        return true;
    bool negative = scan_char(scan, '-');
    if (!negative && !scan_char(scan, '+')) {
        scan->failed = true;
        return false;
    }
    int64_t hours = scan_digits(scan, 1, 2), minutes = 0, seconds = 0;
    scan_char(scan, ':');
    if (scan->at < scan->text.len && scan->text.data[scan->at] >= '0' && scan->text.data[scan->at] <= '9')
        minutes = scan_digits(scan, 2, 2);
    if (scan_char(scan, ':'))
        seconds = scan_digits(scan, 2, 2);
    int64_t total = hours * 3600 + minutes * 60 + seconds;
    *ret_offset = (int32_t)(negative ? -total : total);
    return !scan->failed && total <= 18 * 3600;
}

static bool parse_failed(struct run *run, const struct scan *scan)
{
    if (!scan->failed)
        return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text '%.*s' could not be parsed, unparsed text found at index %zu",
                         SLICE_ARG(scan->text), scan->at);
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text '%.*s' could not be parsed at index %zu", SLICE_ARG(scan->text),
                     scan->at);
}

static int64_t civil_seconds(const struct civil *civil)
{
    return days_from_civil(civil->year, civil->month, civil->day) * 86400 + civil->hour * 3600 + civil->minute * 60 + civil->second;
}

static bool check_civil(struct run *run, struct slice text, const struct civil *civil)
{
    bool ok = check_date(run, civil->year, civil->month, civil->day) &&
              check_time(run, civil->hour, civil->minute, civil->second, civil->nano);
    if (ok)
        return true;
    struct slice why = text_slice(run->arena, run->thrown->message);
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text '%.*s' could not be parsed: %.*s", SLICE_ARG(text), SLICE_ARG(why));
}

static bool known_zone(struct slice name)
{
    static const char *const names[] = {"UTC", "GMT", "UT", "Etc/UTC", "Etc/GMT", "Universal", "Zulu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

static bool set_zone(struct run *run, struct moment *moment, struct slice name)
{
    struct scan scan = {.text = name};
    if (known_zone(name)) {
        moment->utc_named = true;
        snprintf(moment->zone, sizeof moment->zone, "%.*s", SLICE_ARG(name));
        return true;
    }
    if (scan_offset(&scan, &moment->offset) && scan.at == name.len)
        return true;
    return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "the rules of the zone [%.*s] are not at hand: only UTC and fixed offsets are",
                     SLICE_ARG(name));
}

/* What each class's parse reads. */
static bool parse_iso(struct run *run, struct value text, enum class_id id, struct value *ret)
{
    struct civil civil = {.year = 1970, .month = 1, .day = 1};
    struct moment *moment = moment_new(run, id, 0, 0);
    struct text *source = value_to_text(run, text);
    if (source == NULL)
        return false;
    struct scan scan = {.text = text_slice(run->arena, source)};
    if (id != CLASS_LOCAL_TIME)
        scan_date(&scan, &civil);
    if (id != CLASS_LOCAL_TIME && id != CLASS_LOCAL_DATE)
        scan_expect(&scan, 'T');
    if (!scan.failed && id != CLASS_LOCAL_DATE)
        scan_time(&scan, &civil);
    bool zoned = id == CLASS_ZONED_DATE_TIME || id == CLASS_OFFSET_DATE_TIME || id == CLASS_INSTANT;
    if (zoned && !scan.failed)
        scan_offset(&scan, &moment->offset);
    if (id == CLASS_ZONED_DATE_TIME && !scan.failed && scan_char(&scan, '[')) {
        size_t begin = scan.at;
        while (scan.at < scan.text.len && scan.text.data[scan.at] != ']')
            scan.at++;
        if (!set_zone(run, moment, slice_make(scan.text.data + begin, scan.at - begin)))
            return false;
        scan_expect(&scan, ']');
    }
    if (scan.failed || scan.at < scan.text.len)
        return parse_failed(run, &scan);
    if (!check_civil(run, scan.text, &civil))
        return false;
    moment->seconds = civil_seconds(&civil) - (id == CLASS_INSTANT ? moment->offset : 0);
    moment->offset = id == CLASS_INSTANT ? 0 : moment->offset;
    moment->nanos = civil.nano;
    return give(ret, moment);
}

#define PARSE(name, id)                                                                                      \
    static bool name##_parse(struct run *run, struct value *a, unsigned n, struct value *ret)                \
    {                                                                                                        \
        (void)n;                                                                                             \
        NEED(1);                                                                                             \
        return parse_iso(run, a[1], id, ret);                                                                \
    }

PARSE(instant, CLASS_INSTANT)
PARSE(local_date, CLASS_LOCAL_DATE)
PARSE(local_time, CLASS_LOCAL_TIME)
PARSE(local_date_time, CLASS_LOCAL_DATE_TIME)
PARSE(zoned, CLASS_ZONED_DATE_TIME)
PARSE(offset_time, CLASS_OFFSET_DATE_TIME)

/* Fields */

enum part { YEAR, MONTH_VALUE, DAY_OF_MONTH, HOUR, MINUTE, SECOND, NANO, DAY_OF_YEAR };

static int64_t part_of(const struct moment *moment, enum part part)
{
    struct civil civil = moment_civil(moment);
    switch (part) {
    case YEAR:
        return civil.year;
    case MONTH_VALUE:
        return civil.month;
    case DAY_OF_MONTH:
        return civil.day;
    case HOUR:
        return civil.hour;
    case MINUTE:
        return civil.minute;
    case SECOND:
        return civil.second;
    case NANO:
        return civil.nano;
    case DAY_OF_YEAR:
        return floor_div(moment->seconds, 86400) - days_from_civil(civil.year, 1, 1) + 1;
    }
    return 0;
}

#define GETTER(name, part)                                                                                   \
    static bool get_##name(struct run *run, struct value *a, unsigned n, struct value *ret)                  \
    {                                                                                                        \
        (void)run, (void)n;                                                                                  \
        return give_int(ret, part_of(moment_of(a[0]), part));                                                \
    }

GETTER(year, YEAR)
GETTER(month_value, MONTH_VALUE)
GETTER(day_of_month, DAY_OF_MONTH)
GETTER(hour, HOUR)
GETTER(minute, MINUTE)
GETTER(second, SECOND)
GETTER(nano, NANO)
GETTER(day_of_year, DAY_OF_YEAR)

static int weekday_of(const struct moment *moment)
{
    return (int)floor_mod(floor_div(moment->seconds, 86400) + 3, 7);
}

static bool get_day_of_week(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = enumerator_value(run, CLASS_DAY_OF_WEEK, weekday_of(moment_of(a[0])));
    return true;
}

static bool get_month(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = enumerator_value(run, CLASS_MONTH, (int)part_of(moment_of(a[0]), MONTH_VALUE) - 1);
    return true;
}

static bool get_day_of_week_number(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, weekday_of(moment_of(a[0])) + 1);
}

static bool get_epoch_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, instant_of(moment_of(a[0])));
}

static bool get_epoch_milli(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, instant_of(moment_of(a[0])) * 1000 + moment_of(a[0])->nanos / 1000000);
}

static bool get_epoch_day(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, floor_div(moment_of(a[0])->seconds, 86400));
}

static bool is_leap_year(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, is_leap(part_of(moment_of(a[0]), YEAR)));
}

static bool length_of_month(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    struct civil civil = moment_civil(moment_of(a[0]));
    return give_int(ret, month_length(civil.year, civil.month));
}

/* ChronoField */

static bool get_field(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct moment *moment = moment_of(a[0]);
    NEED(1);
    int64_t day_seconds = floor_mod(moment->seconds, 86400);
    static const int parts[] = {[3] = SECOND, [5] = MINUTE, [7] = HOUR, [9] = DAY_OF_MONTH, [10] = DAY_OF_YEAR,
                                [12] = MONTH_VALUE, [13] = YEAR};
    switch (((struct enumerator *)a[1].object)->ordinal) {
    case 0:
        return give_long(ret, moment->nanos);
    case 1:
        return give_long(ret, moment->nanos / 1000);
    case 2:
        return give_long(ret, moment->nanos / 1000000);
    case 4:
        return give_long(ret, day_seconds);
    case 6:
        return give_long(ret, day_seconds / 60);
    case 8:
        return give_long(ret, weekday_of(moment) + 1);
    case 11:
        return give_long(ret, floor_div(moment->seconds, 86400));
    case 14:
        return give_long(ret, instant_of(moment));
    case 15:
        return give_long(ret, moment->offset);
    case 16:
        return give_long(ret, day_seconds * 1000 + moment->nanos / 1000000);
    case 17:
        return give_long(ret, day_seconds * 1000000000 + moment->nanos);
    default:
        (void)run;
        return give_long(ret, part_of(moment, (enum part)parts[((struct enumerator *)a[1].object)->ordinal]));
    }
}

static bool get_field_int(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return get_field(run, a, n, ret) && give_int(ret, ret->i);
}

/* Adding */

static bool add_months(struct run *run, const struct moment *moment, int64_t count, struct value *ret)
{
    struct civil civil = moment_civil(moment);
    if (count > 12000000000 || count < -12000000000)
        return out_of_range(run, "Year", count / 12, "-999999999 - 999999999");
    int64_t months = civil.year * 12 + civil.month - 1 + count;
    civil.year = floor_div(months, 12);
    civil.month = (int)floor_mod(months, 12) + 1;
    if (civil.year < -999999999 || civil.year > 999999999)
        return out_of_range(run, "Year", civil.year, "-999999999 - 999999999");
    if (civil.day > month_length(civil.year, civil.month))
        civil.day = month_length(civil.year, civil.month);
    return give(ret, moment_like(run, moment, civil_seconds(&civil), moment->nanos));
}

/* Nanoseconds of ChronoUnit's first nine; the larger ones are months. */
static const int64_t unit_nanos[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000, 43200000000000, 86400000000000,
                                     604800000000000};
static const int64_t unit_months[] = {[9] = 1, [10] = 12, [11] = 120, [12] = 1200, [13] = 12000};

static bool add_unit(struct run *run, const struct moment *moment, int64_t count, int unit, struct value *ret)
{
    if (unit >= 9 && unit <= 13)
        return add_months(run, moment, count * unit_months[unit], ret);
    if (unit > 13)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    if (moment->object.class == CLASS_LOCAL_DATE && unit < 7)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    __int128 nanos = (__int128)count * unit_nanos[unit];
    int64_t seconds = (int64_t)(nanos / 1000000000), rest = (int64_t)(nanos % 1000000000);
    if (seconds > 2 * MOMENT_SECONDS_MAX || seconds < -2 * MOMENT_SECONDS_MAX)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    return give(ret, moment_like(run, moment, moment->seconds + seconds, moment->nanos + rest));
}

static bool add_amount(struct run *run, const struct moment *moment, const struct moment *amount, int sign, struct value *ret)
{
    if (amount->object.class == CLASS_PERIOD) {
        if (!add_months(run, moment, sign * ((int64_t)amount->years * 12 + amount->months), ret))
            return false;
        return add_unit(run, moment_of(*ret), sign * (int64_t)amount->days, 7, ret);
    }
    return give(ret, moment_like(run, moment, moment->seconds + sign * amount->seconds, moment->nanos + (int64_t)sign * amount->nanos));
}

#define ADDER(name, unit)                                                                                    \
    static bool plus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)                 \
    {                                                                                                        \
        (void)n;                                                                                             \
        return add_unit(run, moment_of(a[0]), a[1].i, unit, ret);                                            \
    }                                                                                                        \
    static bool minus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)                \
    {                                                                                                        \
        (void)n;                                                                                             \
        return add_unit(run, moment_of(a[0]), -a[1].i, unit, ret);                                           \
    }

ADDER(nanos, 0)
ADDER(millis, 2)
ADDER(seconds, 3)
ADDER(minutes, 4)
ADDER(hours, 5)
ADDER(days, 7)
ADDER(weeks, 8)
ADDER(months, 9)
ADDER(years, 10)

static bool moment_plus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(n);
    return n == 2 ? add_unit(run, moment_of(a[0]), a[1].i, ((struct enumerator *)a[2].object)->ordinal, ret)
                  : add_amount(run, moment_of(a[0]), moment_of(a[1]), 1, ret);
}

static bool moment_minus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(n);
    return n == 2 ? add_unit(run, moment_of(a[0]), -a[1].i, ((struct enumerator *)a[2].object)->ordinal, ret)
                  : add_amount(run, moment_of(a[0]), moment_of(a[1]), -1, ret);
}

/* Setting a field */

static bool with_part(struct run *run, struct value *a, enum part part, int64_t value, struct value *ret)
{
    const struct moment *moment = moment_of(a[0]);
    struct civil civil = moment_civil(moment);
    switch (part) {
    case YEAR:
        civil.year = value;
        break;
    case MONTH_VALUE:
        civil.month = (int)value;
        break;
    case DAY_OF_MONTH:
        civil.day = (int)value;
        break;
    case HOUR:
        civil.hour = (int)value;
        break;
    case MINUTE:
        civil.minute = (int)value;
        break;
    case SECOND:
        civil.second = (int)value;
        break;
    case NANO:
        civil.nano = (int32_t)value;
        break;
    case DAY_OF_YEAR:
        if (value < 1 || value > 365 + is_leap(civil.year))
            return out_of_range(run, "DayOfYear", value, "1 - 365/366");
        return give(ret, moment_like(run, moment, moment->seconds + (value - part_of(moment, DAY_OF_YEAR)) * 86400, moment->nanos));
    }
    bool month = civil.month >= 1 && civil.month <= 12;
    if ((part == YEAR || part == MONTH_VALUE) && month && civil.day > month_length(civil.year, civil.month))
        civil.day = month_length(civil.year, civil.month);
    if (!check_date(run, civil.year, civil.month, civil.day) || !check_time(run, civil.hour, civil.minute, civil.second, civil.nano))
        return false;
    return give(ret, moment_like(run, moment, civil_seconds(&civil), civil.nano));
}

#define SETTER(name, part)                                                                                   \
    static bool with_##name(struct run *run, struct value *a, unsigned n, struct value *ret)                 \
    {                                                                                                        \
        (void)n;                                                                                             \
        return with_part(run, a, part, a[1].i, ret);                                                         \
    }

SETTER(year, YEAR)
SETTER(month, MONTH_VALUE)
SETTER(day_of_month, DAY_OF_MONTH)
SETTER(day_of_year, DAY_OF_YEAR)
SETTER(hour, HOUR)
SETTER(minute, MINUTE)
SETTER(second, SECOND)
SETTER(nano, NANO)

static bool truncated_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct moment *moment = moment_of(a[0]);
    NEED(1);
    int unit = ((struct enumerator *)a[1].object)->ordinal;
    if (unit > 7)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unit is too large to be used for truncation");
    int64_t of_day = floor_mod(moment->seconds, 86400) * 1000000000 + moment->nanos;
    int64_t cut = of_day / unit_nanos[unit] * unit_nanos[unit];
    return give(ret, moment_like(run, moment, moment->seconds - floor_mod(moment->seconds, 86400), cut));
}

/* Conversions between classes */

static bool to_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct moment *instant = moment_new(run, CLASS_INSTANT, instant_of(moment_of(a[0])), moment_of(a[0])->nanos);
    return give(ret, instant);
}

static bool to_local_date(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_new(run, CLASS_LOCAL_DATE, floor_div(moment_of(a[0])->seconds, 86400) * 86400, 0));
}

static bool to_local_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_new(run, CLASS_LOCAL_TIME, floor_mod(moment_of(a[0])->seconds, 86400), moment_of(a[0])->nanos));
}

static bool to_local_date_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_new(run, CLASS_LOCAL_DATE_TIME, moment_of(a[0])->seconds, moment_of(a[0])->nanos));
}

static bool to_zoned(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_as(run, moment_of(a[0]), CLASS_ZONED_DATE_TIME, moment_of(a[0])->seconds));
}

static bool to_offset_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_as(run, moment_of(a[0]), CLASS_OFFSET_DATE_TIME, moment_of(a[0])->seconds));
}

/* The same moment in a zone; for local ones the same clock. */
static struct moment *in_zone(struct run *run, const struct moment *moment, const struct moment *zone, enum class_id id,
                              bool keep_clock)
{
    struct moment *made = moment_as(run, zone, id, keep_clock ? moment->seconds : instant_of(moment) + zone->offset);
    made->nanos = moment->nanos;
    return made;
}

static bool zoned_of_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct moment *made = in_zone(run, moment_of(a[1]), moment_of(a[2]), id, moment_of(a[1])->object.class == CLASS_LOCAL_DATE_TIME);
    return give(ret, made);
}

static bool at_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), CLASS_ZONED_DATE_TIME, moment_of(a[0])->object.class != CLASS_INSTANT));
}

static bool at_offset(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), CLASS_OFFSET_DATE_TIME, moment_of(a[0])->object.class != CLASS_INSTANT));
}

static bool with_zone_same_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), (enum class_id)a[0].object->class, false));
}

static bool with_zone_same_local(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), (enum class_id)a[0].object->class, true));
}

static bool get_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct moment *zone = moment_as(run, moment_of(a[0]), moment_of(a[0])->utc_named ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET, 0);
    zone->nanos = 0;
    return give(ret, zone);
}

static bool local_date_at_start(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return n == 1 ? at_zone(run, a, n, ret) : to_local_date_time(run, a, 0, ret);
}

static bool local_date_at_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t seconds = moment_of(a[0])->seconds;
    if (n == 1) {
        NEED(1);
        return give(ret, moment_new(run, CLASS_LOCAL_DATE_TIME, seconds + moment_of(a[1])->seconds, moment_of(a[1])->nanos));
    }
    int64_t second = n > 2 ? a[3].i : 0, nano = n > 3 ? a[4].i : 0;
    return check_time(run, a[1].i, a[2].i, second, nano) &&
           give(ret, moment_new(run, CLASS_LOCAL_DATE_TIME, seconds + a[1].i * 3600 + a[2].i * 60 + second, (int32_t)nano));
}

/* Making */

static bool instant_of_milli(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, moment_new(run, CLASS_INSTANT, floor_div(a[1].i, 1000), (int32_t)floor_mod(a[1].i, 1000) * 1000000));
}

static bool instant_of_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct moment zero = {.object = {.class = CLASS_INSTANT}};
    int64_t nanos = n == 2 ? a[2].i : 0;
    if (a[1].i > MOMENT_SECONDS_MAX || a[1].i < -MOMENT_SECONDS_MAX)
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Instant exceeds minimum or maximum instant");
    return give(ret, moment_like(run, &zero, a[1].i, nanos));
}

static bool instant_epoch(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return give(ret, moment_new(run, CLASS_INSTANT, 0, 0));
}

/* year, month (number or enum), day, hour, minute, second, nano; whatever is given. */
static bool make_local(struct run *run, struct value *a, unsigned n, enum class_id id, struct value *ret)
{
    int64_t parts[7] = {1970, 1, 1, 0, 0, 0, 0};
    unsigned first = id == CLASS_LOCAL_TIME ? 3 : 0;
    for (unsigned i = 0; i < n && first + i < 7; i++)
        parts[first + i] = value_is(a[i + 1], CLASS_MONTH) ? ((struct enumerator *)a[i + 1].object)->ordinal + 1 : a[i + 1].i;
    if (!check_date(run, parts[0], parts[1], parts[2]) || !check_time(run, parts[3], parts[4], parts[5], parts[6]))
        return false;
    struct civil civil = {parts[0], (int)parts[1], (int)parts[2], (int)parts[3], (int)parts[4], (int)parts[5], (int32_t)parts[6]};
    return give(ret, moment_new(run, id, civil_seconds(&civil), civil.nano));
}

static bool local_date_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return make_local(run, a, n, CLASS_LOCAL_DATE, ret);
}

static bool local_date_of_epoch_day(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i > 365241780471 || a[1].i < -365243219162)
        return out_of_range(run, "EpochDay", a[1].i, "-365243219162 - 365241780471");
    return give(ret, moment_new(run, CLASS_LOCAL_DATE, a[1].i * 86400, 0));
}

static bool local_time_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return make_local(run, a, n, CLASS_LOCAL_TIME, ret);
}

static bool local_date_time_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n > 2)
        return make_local(run, a, n, CLASS_LOCAL_DATE_TIME, ret);
    NEED(1);
    NEED(2);
    return give(ret, moment_new(run, CLASS_LOCAL_DATE_TIME, moment_of(a[1])->seconds + moment_of(a[2])->seconds, moment_of(a[2])->nanos));
}

/* The last argument is the zone. */
static bool zoned_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct value local = a[1];
    NEED(n);
    if (n > 2 && !local_date_time_of(run, a, n - 1, &local))
        return false;
    return give(ret, in_zone(run, moment_of(local), moment_of(a[n]), id, true));
}

static bool zone_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct moment *zone = moment_new(run, id, 0, 0);
    if (!set_zone(run, zone, text_slice(run->arena, text_of(a[1]))))
        return false;
    zone->object.class = zone->utc_named ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET;
    return give(ret, zone);
}

static bool zone_offset_utc(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return give(ret, moment_new(run, CLASS_ZONE_OFFSET, 0, 0));
}

static bool zone_offset_of_hours(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t seconds = a[1].i * 3600 + (n == 2 ? a[2].i * 60 : 0);
    if (seconds > 64800 || seconds < -64800)
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Zone offset not in valid range: -18:00 to +18:00");
    struct moment *zone = moment_new(run, CLASS_ZONE_OFFSET, 0, 0);
    zone->offset = (int32_t)seconds;
    return give(ret, zone);
}

static bool zone_id_text(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[0]));
}

static bool zone_total_seconds(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->offset);
}

/* Comparing */

static bool is_before(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_boolean(ret, moment_compare(moment_of(a[0]), moment_of(a[1])) < 0);
}

static bool is_after(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_boolean(ret, moment_compare(moment_of(a[0]), moment_of(a[1])) > 0);
}

static bool is_equal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_boolean(ret, moment_compare(moment_of(a[0]), moment_of(a[1])) == 0);
}

static bool moment_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_int(ret, moment_compare(moment_of(a[0]), moment_of(a[1])));
}

/* Whole months from one to another. */
static int64_t months_between(const struct moment *from, const struct moment *to)
{
    struct civil a = moment_civil(from), b = moment_civil(to);
    int64_t months = (b.year - a.year) * 12 + b.month - a.month;
    int64_t a_rest = (a.day * (int64_t)86400 + a.hour * 3600 + a.minute * 60 + a.second) * 1000000000 + a.nano;
    int64_t b_rest = (b.day * (int64_t)86400 + b.hour * 3600 + b.minute * 60 + b.second) * 1000000000 + b.nano;
    if (months > 0 && b_rest < a_rest)
        months--;
    else if (months < 0 && b_rest > a_rest)
        months++;
    return months;
}

static bool between(struct run *run, const struct moment *from, const struct moment *to, int unit, struct value *ret)
{
    if (unit >= 9 && unit <= 13)
        return give_long(ret, months_between(from, to) / unit_months[unit]);
    if (unit > 13)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    __int128 nanos = (__int128)(instant_of(to) - instant_of(from)) * 1000000000 + (to->nanos - from->nanos);
    return give_long(ret, (int64_t)(nanos / unit_nanos[unit]));
}

static bool unit_between(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    return between(run, moment_of(a[1]), moment_of(a[2]), ((struct enumerator *)a[0].object)->ordinal, ret);
}

static bool moment_until(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    return between(run, moment_of(a[0]), moment_of(a[1]), ((struct enumerator *)a[2].object)->ordinal, ret);
}

/* Duration and Period */

static bool duration_give(struct run *run, __int128 nanos, struct value *ret)
{
    __int128 limit = (__int128)MOMENT_SECONDS_MAX * 200 * 1000000000;
    if (nanos > limit || nanos < -limit)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    int64_t seconds = (int64_t)(nanos / 1000000000), rest = (int64_t)(nanos % 1000000000);
    return give(ret, moment_new(run, CLASS_DURATION, seconds, (int32_t)rest));
}

static __int128 duration_nanos(const struct moment *duration)
{
    return (__int128)duration->seconds * 1000000000 + duration->nanos;
}

#define DURATION(name, unit)                                                                                 \
    static bool duration_of_##name(struct run *run, struct value *a, unsigned n, struct value *ret)          \
    {                                                                                                        \
        (void)n;                                                                                             \
        return duration_give(run, (__int128)a[1].i * unit_nanos[unit], ret);                                 \
    }                                                                                                        \
    static bool duration_to_##name(struct run *run, struct value *a, unsigned n, struct value *ret)          \
    {                                                                                                        \
        (void)run, (void)n;                                                                                  \
        __int128 nanos = duration_nanos(moment_of(a[0]));                                                    \
        return give_long(ret, (int64_t)(nanos / unit_nanos[unit]));                                          \
    }                                                                                                        \
    static bool duration_plus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)        \
    {                                                                                                        \
        (void)n;                                                                                             \
        return duration_give(run, duration_nanos(moment_of(a[0])) + (__int128)a[1].i * unit_nanos[unit], ret); \
    }

DURATION(nanos, 0)
DURATION(millis, 2)
DURATION(seconds, 3)
DURATION(minutes, 4)
DURATION(hours, 5)
DURATION(days, 7)

static bool duration_between(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    __int128 nanos = (__int128)(instant_of(moment_of(a[2])) - instant_of(moment_of(a[1]))) * 1000000000 +
                     (moment_of(a[2])->nanos - moment_of(a[1])->nanos);
    return duration_give(run, nanos, ret);
}

static bool duration_plus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return duration_give(run, duration_nanos(moment_of(a[0])) + duration_nanos(moment_of(a[1])), ret);
}

static bool duration_minus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return duration_give(run, duration_nanos(moment_of(a[0])) - duration_nanos(moment_of(a[1])), ret);
}

static bool duration_multiplied(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i > 1000000000 || a[1].i < -1000000000)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    return duration_give(run, duration_nanos(moment_of(a[0])) * a[1].i, ret);
}

static bool duration_negated(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return duration_give(run, -duration_nanos(moment_of(a[0])), ret);
}

static bool duration_get_seconds(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, moment_of(a[0])->seconds);
}

static bool duration_get_nano(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->nanos);
}

static bool duration_is_negative(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, moment_of(a[0])->seconds < 0);
}

static bool duration_is_zero(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, moment_of(a[0])->seconds == 0 && moment_of(a[0])->nanos == 0);
}

static bool duration_zero(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return duration_give(run, 0, ret);
}

static bool period_give(struct run *run, int64_t years, int64_t months, int64_t period_days, struct value *ret)
{
    struct moment *period = moment_new(run, CLASS_PERIOD, 0, 0);
    period->years = (int32_t)years;
    period->months = (int32_t)months;
    period->days = (int32_t)period_days;
    return give(ret, period);
}

static bool period_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_give(run, a[1].i, a[2].i, a[3].i, ret);
}

static bool period_of_days(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_give(run, 0, 0, a[1].i, ret);
}

static bool period_of_weeks(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_give(run, 0, 0, a[1].i * 7, ret);
}

static bool period_of_months(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_give(run, 0, a[1].i, 0, ret);
}

static bool period_of_years(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_give(run, a[1].i, 0, 0, ret);
}

static bool period_between(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    struct value moved;
    int64_t months = months_between(moment_of(a[1]), moment_of(a[2]));
    if (!add_months(run, moment_of(a[1]), months, &moved))
        return false;
    return period_give(run, months / 12, months % 12, (moment_of(a[2])->seconds - moment_of(moved)->seconds) / 86400, ret);
}

static bool period_get_days(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->days);
}

static bool period_get_months(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->months);
}

static bool period_get_years(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->years);
}

/* Enums */

static bool enum_of_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    for (unsigned i = 0; i < enumerator_count(id); i++)
        if (text_is(text_of(a[1]), enumerator_name(id, (int)i))) {
            *ret = enumerator_value(run, id, (int)i);
            return true;
        }
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "No enum constant %s.%.*s", class_infos[id].java,
                     SLICE_ARG(text_slice(run->arena, text_of(a[1]))));
}

static bool enum_name(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_slice(run, ret, slice_from(enumerator_name((enum class_id)a[0].object->class, ((struct enumerator *)a[0].object)->ordinal)));
}

static bool enum_ordinal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, ((struct enumerator *)a[0].object)->ordinal);
}

static bool enum_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, ((struct enumerator *)a[0].object)->ordinal + 1);
}

static bool enum_of_number(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    if (a[1].i < 1 || a[1].i > enumerator_count(id))
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid value for %s: %lld",
                         id == CLASS_MONTH ? "MonthOfYear" : "DayOfWeek", (long long)a[1].i);
    *ret = enumerator_value(run, id, (int)a[1].i - 1);
    return true;
}

static bool enum_plus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    enum class_id id = (enum class_id)a[0].object->class;
    int64_t ordinal = ((struct enumerator *)a[0].object)->ordinal;
    *ret = enumerator_value(run, id, (int)floor_mod(ordinal + a[1].i % enumerator_count(id), enumerator_count(id)));
    return true;
}

static bool enum_minus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    a[1].i = -(a[1].i % enumerator_count((enum class_id)a[0].object->class));
    return enum_plus(run, a, n, ret);
}

/* TimeUnit.HOURS.toMinutes(2): both counts in nanoseconds. */
static bool time_unit_to(struct run *run, struct value *a, int unit, struct value *ret)
{
    static const int64_t nanos[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000, 86400000000000};
    (void)run;
    __int128 total = (__int128)a[1].i * nanos[((struct enumerator *)a[0].object)->ordinal] / nanos[unit];
    return give_long(ret, total > INT64_MAX ? INT64_MAX : total < INT64_MIN ? INT64_MIN : (int64_t)total);
}

#define TIME_UNIT(name, unit)                                                                                \
    static bool time_unit_to_##name(struct run *run, struct value *a, unsigned n, struct value *ret)         \
    {                                                                                                        \
        (void)n;                                                                                             \
        return time_unit_to(run, a, unit, ret);                                                              \
    }

TIME_UNIT(nanos, 0)
TIME_UNIT(micros, 1)
TIME_UNIT(millis, 2)
TIME_UNIT(seconds, 3)
TIME_UNIT(minutes, 4)
TIME_UNIT(hours, 5)
TIME_UNIT(days, 6)

/* Formatters */

enum iso_format { ISO_LOCAL_DATE, ISO_LOCAL_TIME, ISO_LOCAL_DATE_TIME, ISO_INSTANT, ISO_OFFSET_DATE_TIME };

static struct date_formatter *formatter_of(struct value v)
{
    return (struct date_formatter *)v.object;
}

static bool formatter_new(struct run *run, enum class_id id, struct text *pattern, int iso, struct value *ret)
{
    struct date_formatter *formatter = run_object(run, sizeof *formatter, id);
    formatter->pattern = pattern;
    formatter->iso = iso;
    return give(ret, formatter);
}

static bool formatter_of_pattern(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return formatter_new(run, CLASS_DATE_TIME_FORMATTER, text_of(a[1]), 0, ret);
}

static bool simple_format_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n == 0)
        return formatter_new(run, CLASS_SIMPLE_DATE_FORMAT, text_new(run, SLICE_LIT("M/d/yy, h:mm a")), 0, ret);
    NEED(1);
    return formatter_new(run, CLASS_SIMPLE_DATE_FORMAT, text_of(a[1]), 0, ret);
}

static void write_number(struct text_buf *out, int64_t value, unsigned width)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%0*lld", (int)width, (long long)value);
    text_buf_ascii(out, digits);
}

static void write_zone(struct text_buf *out, const struct moment *moment, uint16_t letter, unsigned width)
{
    int32_t size = moment->offset < 0 ? -moment->offset : moment->offset;
    char text[16];
    if ((letter == 'X' && moment->offset == 0) || letter == 'z' || letter == 'V') {
        text_buf_ascii(out, moment->utc_named ? moment->zone : letter == 'z' && !is_zoned(moment) ? "UTC" : "Z");
        return;
    }
    bool colon = width == 3 || width == 5;
    snprintf(text, sizeof text, "%c%02d%s%02d", moment->offset < 0 ? '-' : '+', size / 3600, colon ? ":" : "", size / 60 % 60);
    text_buf_ascii(out, text);
}

static void write_title(struct text_buf *out, const char *upper, unsigned length)
{
    for (unsigned i = 0; upper[i] != '\0' && i < length; i++)
        text_buf_unit(out, (uint16_t)(i == 0 ? upper[i] : upper[i] | 32));
}

/* One run of a pattern's letter. */
static bool write_letter(struct run *run, const struct moment *moment, const struct civil *civil, uint16_t letter,
                         unsigned width, struct text_buf *out)
{
    switch (letter) {
    case 'y':
    case 'u':
        if (width == 2)
            write_number(out, floor_mod(civil->year, 100), 2);
        else
            write_number(out, civil->year, width);
        return true;
    case 'M':
    case 'L':
        if (width >= 3)
            write_title(out, enumerator_name(CLASS_MONTH, civil->month - 1), width == 3 ? 3 : 20);
        else
            write_number(out, civil->month, width);
        return true;
    case 'd':
        write_number(out, civil->day, width);
        return true;
    case 'D':
        write_number(out, part_of(moment, DAY_OF_YEAR), width);
        return true;
    case 'E':
        write_title(out, enumerator_name(CLASS_DAY_OF_WEEK, weekday_of(moment)), width < 4 ? 3 : 20);
        return true;
    case 'e':
        write_number(out, weekday_of(moment) + 1, width);
        return true;
    case 'H':
        write_number(out, civil->hour, width);
        return true;
    case 'h':
        write_number(out, civil->hour % 12 == 0 ? 12 : civil->hour % 12, width);
        return true;
    case 'm':
        write_number(out, civil->minute, width);
        return true;
    case 's':
        write_number(out, civil->second, width);
        return true;
    case 'S': {
        char digits[12];
        snprintf(digits, sizeof digits, "%09d", civil->nano);
        digits[width < 9 ? width : 9] = '\0';
        text_buf_ascii(out, digits);
        return true;
    }
    case 'n':
        write_number(out, civil->nano, width);
        return true;
    case 'a':
        text_buf_ascii(out, civil->hour < 12 ? "AM" : "PM");
        return true;
    case 'z':
    case 'Z':
    case 'X':
    case 'x':
    case 'V':
        write_zone(out, moment, letter, width);
        return true;
    default:
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Unknown pattern letter: %c", letter);
    }
}

static bool is_pattern_letter(uint16_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool write_pattern(struct run *run, const struct moment *moment, const struct text *pattern, struct text_buf *out)
{
    struct civil civil = moment_civil(moment);
    for (size_t i = 0; i < pattern->length;) {
        uint16_t c = text_at(pattern, i);
        size_t width = 1;
        if (c == '\'') {
            bool quote = i + 1 < pattern->length && text_at(pattern, i + 1) == '\'';
            for (i++; !quote && i < pattern->length && text_at(pattern, i) != '\''; i++)
                text_buf_unit(out, text_at(pattern, i));
            if (quote)
                text_buf_unit(out, '\'');
            i++;
            continue;
        }
        while (is_pattern_letter(c) && i + width < pattern->length && text_at(pattern, i + width) == c)
            width++;
        if (!is_pattern_letter(c))
            text_buf_unit(out, c);
        else if (!run_step(run, 1) || !write_letter(run, moment, &civil, c, (unsigned)width, out))
            return false;
        i += width;
    }
    return true;
}

static bool format_moment(struct run *run, const struct moment *moment, const struct date_formatter *formatter, struct value *ret)
{
    struct text_buf out;
    static const uint16_t classes[] = {[ISO_LOCAL_DATE] = CLASS_LOCAL_DATE, [ISO_LOCAL_TIME] = CLASS_LOCAL_TIME,
                                       [ISO_LOCAL_DATE_TIME] = CLASS_LOCAL_DATE_TIME, [ISO_INSTANT] = CLASS_INSTANT,
                                       [ISO_OFFSET_DATE_TIME] = CLASS_OFFSET_DATE_TIME};
    text_buf_init(&out, run);
    if (formatter->pattern != NULL)
        return write_pattern(run, moment, formatter->pattern, &out) && give(ret, text_buf_done(&out));
    struct moment copy = *moment;
    copy.object.class = classes[formatter->iso];
    copy.seconds = formatter->iso == ISO_INSTANT ? instant_of(moment) : moment->seconds;
    struct civil civil = moment_civil(&copy);
    if (formatter->iso == ISO_LOCAL_DATE || formatter->iso == ISO_INSTANT) {
        moment_write(&copy, &out);
        return give(ret, text_buf_done(&out));
    }
    /* These always have seconds. */
    moment_write(&copy, &out);
    struct text *text = text_buf_done(&out);
    if (text == NULL || civil.second > 0 || civil.nano > 0)
        return give(ret, text);
    struct text_buf full;
    text_buf_init(&full, run);
    size_t minutes = formatter->iso == ISO_LOCAL_TIME ? 5 : 16;
    text_buf_range(&full, text, 0, minutes < text->length ? minutes : text->length);
    text_buf_ascii(&full, ":00");
    text_buf_range(&full, text, minutes < text->length ? minutes : text->length, text->length);
    return give(ret, text_buf_done(&full));
}

static bool moment_format(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return format_moment(run, moment_of(a[0]), formatter_of(a[1]), ret);
}

static bool formatter_format(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return format_moment(run, moment_of(a[1]), formatter_of(a[0]), ret);
}

static bool date_format_pattern(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct date_formatter formatter = {.pattern = text_of(a[1])};
    return format_moment(run, moment_of(a[0]), &formatter, ret);
}

/* Reads a text by a pattern of letters and literals. */
static bool scan_pattern(struct run *run, struct scan *scan, const struct text *pattern, struct civil *civil, int32_t *offset,
                         bool *pm)
{
    for (size_t i = 0; i < pattern->length && !scan->failed;) {
        uint16_t c = text_at(pattern, i);
        unsigned width = 1;
        if (c == '\'') {
            for (i++; i < pattern->length && text_at(pattern, i) != '\''; i++)
                scan_expect(scan, (char)text_at(pattern, i));
            i++;
            continue;
        }
        while (is_pattern_letter(c) && i + width < pattern->length && text_at(pattern, i + width) == c)
            width++;
        i += width;
        unsigned min = width, max = width == 1 ? 9 : width;
        switch (c) {
        case 'y':
        case 'u':
            civil->year = scan_digits(scan, min, width == 4 ? 9 : max);
            civil->year += width == 2 ? 2000 : 0;
            break;
        case 'M':
            if (width >= 3) {
                bool found = false;
                for (int m = 0; m < 12 && !found; m++) {
                    const char *name = enumerator_name(CLASS_MONTH, m);
                    size_t len = width == 3 ? 3 : strlen(name);
                    found = scan->text.len - scan->at >= len && strncasecmp(scan->text.data + scan->at, name, len) == 0;
                    civil->month = found ? m + 1 : civil->month;
                    scan->at += found ? len : 0;
                }
                scan->failed = !found;
            } else {
                civil->month = (int)scan_digits(scan, min, max);
            }
            break;
        case 'd':
            civil->day = (int)scan_digits(scan, min, max);
            break;
        case 'H':
        case 'h':
            civil->hour = (int)scan_digits(scan, min, max);
            break;
        case 'm':
            civil->minute = (int)scan_digits(scan, min, max);
            break;
        case 's':
            civil->second = (int)scan_digits(scan, min, max);
            break;
        case 'S': {
            int64_t nanos = scan_digits(scan, min, width);
            for (unsigned k = width; k < 9; k++)
                nanos *= 10;
            civil->nano = (int32_t)nanos;
            break;
        }
        case 'a':
            *pm = scan->at < scan->text.len && (scan->text.data[scan->at] | 32) == 'p';
            scan->at += 2;
            scan->failed = scan->at > scan->text.len;
            break;
        case 'X':
        case 'x':
        case 'Z':
        case 'z':
        case 'V':
            if (scan->text.len - scan->at >= 3 && known_zone(slice_make(scan->text.data + scan->at, 3)))
                scan->at += 3;
            else
                scan_offset(scan, offset);
            break;
        default:
            if (is_pattern_letter(c))
                return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Unknown pattern letter: %c", c);
            scan_expect(scan, (char)c);
        }
    }
    return true;
}

static bool parse_by(struct run *run, struct value text, const struct date_formatter *formatter, enum class_id id, struct value *ret)
{
    struct civil civil = {.year = 1970, .month = 1, .day = 1};
    struct text *source = value_to_text(run, text);
    int32_t offset = 0;
    bool pm = false;
    if (formatter->pattern == NULL)
        return parse_iso(run, text, id, ret);
    if (source == NULL)
        return false;
    struct scan scan = {.text = text_slice(run->arena, source)};
    if (!scan_pattern(run, &scan, formatter->pattern, &civil, &offset, &pm))
        return false;
    if (scan.failed || (scan.at < scan.text.len && id != CLASS_DATE))
        return parse_failed(run, &scan);
    civil.hour = pm && civil.hour < 12 ? civil.hour + 12 : civil.hour;
    if (!check_civil(run, scan.text, &civil))
        return false;
    struct moment *moment = moment_new(run, id, civil_seconds(&civil), civil.nano);
    if (id == CLASS_DATE || id == CLASS_INSTANT)
        moment->seconds -= offset;
    else
        moment->offset = offset;
    if (id == CLASS_LOCAL_DATE)
        moment->seconds = floor_div(moment->seconds, 86400) * 86400;
    if (id == CLASS_LOCAL_TIME)
        moment->seconds = floor_mod(moment->seconds, 86400);
    return give(ret, moment);
}

static bool moment_parse_by(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    return parse_by(run, a[1], formatter_of(a[2]), type_class(((struct class_object *)a[0].object)->type), ret);
}

static bool simple_format_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return parse_by(run, a[1], formatter_of(a[0]), CLASS_DATE, ret);
}

static bool date_parse_static(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    struct date_formatter formatter = {.pattern = text_of(a[1])};
    return parse_by(run, a[2], &formatter, CLASS_DATE, ret);
}

#define ISO(name, kind)                                                                                      \
    static bool iso_##name(struct run *run, struct value *a, unsigned n, struct value *ret)                  \
    {                                                                                                        \
        (void)a, (void)n;                                                                                    \
        return formatter_new(run, CLASS_DATE_TIME_FORMATTER, NULL, kind, ret);                               \
    }

ISO(local_date, ISO_LOCAL_DATE)
ISO(local_time, ISO_LOCAL_TIME)
ISO(local_date_time, ISO_LOCAL_DATE_TIME)
ISO(instant, ISO_INSTANT)
ISO(offset_date_time, ISO_OFFSET_DATE_TIME)

/* Date: the clock is the command's. */

static bool date_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t ms = n == 1 ? a[1].i : run->now_ms;
    return give(ret, moment_new(run, CLASS_DATE, floor_div(ms, 1000), (int32_t)floor_mod(ms, 1000) * 1000000));
}

static bool date_set_time(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    moment_of(a[0])->seconds = floor_div(a[1].i, 1000);
    moment_of(a[0])->nanos = (int32_t)floor_mod(a[1].i, 1000) * 1000000;
    return give_nothing(ret);
}

static bool date_from(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, moment_new(run, CLASS_DATE, moment_of(a[1])->seconds, moment_of(a[1])->nanos / 1000000 * 1000000));
}

#define DATE_FIELDS                                                                                          \
    M0("getYear", METHOD_BOTH, INT, get_year), M0("getMonthValue", METHOD_BOTH, INT, get_month_value),       \
        M0("getMonth", METHOD_BOTH, MONTH, get_month), M0("getDayOfMonth", METHOD_BOTH, INT, get_day_of_month), \
        M0("getDayOfYear", METHOD_BOTH, INT, get_day_of_year)
#define TIME_FIELDS                                                                                          \
    M0("getHour", METHOD_BOTH, INT, get_hour), M0("getMinute", METHOD_BOTH, INT, get_minute),                \
        M0("getSecond", METHOD_BOTH, INT, get_second), M0("getNano", METHOD_BOTH, INT, get_nano)
#define COMPARISONS(self)                                                                                    \
    M1("isBefore", METHOD_BOTH, BOOLEAN, self, is_before), M1("isAfter", METHOD_BOTH, BOOLEAN, self, is_after), \
        M1("isEqual", METHOD_BOTH, BOOLEAN, self, is_equal), M1("compareTo", METHOD_BOTH, INT, self, moment_compare_to)
#define ARITHMETIC(self)                                                                                     \
    M1("plus", METHOD_BOTH, self, DEF, moment_plus), M2("plus", METHOD_BOTH, self, LONG, CHRONO_UNIT, moment_plus), \
        M1("minus", METHOD_BOTH, self, DEF, moment_minus),                                                   \
        M2("minus", METHOD_BOTH, self, LONG, CHRONO_UNIT, moment_minus),                                     \
        M2("until", METHOD_BOTH, LONG, TEMPORAL, CHRONO_UNIT, moment_until)
#define DATE_ARITHMETIC(self)                                                                                \
    M1("plusDays", METHOD_BOTH, self, LONG, plus_days), M1("minusDays", METHOD_BOTH, self, LONG, minus_days), \
        M1("plusWeeks", METHOD_BOTH, self, LONG, plus_weeks), M1("minusWeeks", METHOD_BOTH, self, LONG, minus_weeks), \
        M1("plusMonths", METHOD_BOTH, self, LONG, plus_months), M1("minusMonths", METHOD_BOTH, self, LONG, minus_months), \
        M1("plusYears", METHOD_BOTH, self, LONG, plus_years), M1("minusYears", METHOD_BOTH, self, LONG, minus_years), \
        M1("withYear", METHOD_BOTH, self, INT, with_year), M1("withMonth", METHOD_BOTH, self, INT, with_month), \
        M1("withDayOfMonth", METHOD_BOTH, self, INT, with_day_of_month),                                     \
        M1("withDayOfYear", METHOD_BOTH, self, INT, with_day_of_year)
#define TIME_ARITHMETIC(self)                                                                                \
    M1("plusHours", METHOD_BOTH, self, LONG, plus_hours), M1("minusHours", METHOD_BOTH, self, LONG, minus_hours), \
        M1("plusMinutes", METHOD_BOTH, self, LONG, plus_minutes),                                            \
        M1("minusMinutes", METHOD_BOTH, self, LONG, minus_minutes),                                          \
        M1("plusSeconds", METHOD_BOTH, self, LONG, plus_seconds),                                            \
        M1("minusSeconds", METHOD_BOTH, self, LONG, minus_seconds), M1("plusNanos", METHOD_BOTH, self, LONG, plus_nanos), \
        M1("minusNanos", METHOD_BOTH, self, LONG, minus_nanos), M1("withHour", METHOD_BOTH, self, INT, with_hour), \
        M1("withMinute", METHOD_BOTH, self, INT, with_minute), M1("withSecond", METHOD_BOTH, self, INT, with_second), \
        M1("withNano", METHOD_BOTH, self, INT, with_nano), M1("truncatedTo", METHOD_BOTH, self, CHRONO_UNIT, truncated_to)
#define PARSERS(self, parser)                                                                                \
    M1("parse", STATIC, self, CHAR_SEQUENCE, parser),                                                        \
        M2("parse", STATIC, self, CHAR_SEQUENCE, DATE_TIME_FORMATTER, moment_parse_by)

static const struct method temporal_methods[] = {
    M1("get", METHOD_BOTH, INT, CHRONO_FIELD, get_field_int),
    M1("getLong", METHOD_BOTH, LONG, CHRONO_FIELD, get_field),
    M1("format", METHOD_BOTH, STRING, DATE_TIME_FORMATTER, moment_format),
};

static const struct method instant_methods[] = {
    M0("EPOCH", FIELD, INSTANT, instant_epoch),
    M1("ofEpochMilli", STATIC, INSTANT, LONG, instant_of_milli),
    M1("ofEpochSecond", STATIC, INSTANT, LONG, instant_of_second),
    M2("ofEpochSecond", STATIC, INSTANT, LONG, LONG, instant_of_second),
    M1("parse", STATIC, INSTANT, CHAR_SEQUENCE, instant_parse),
    M0("toEpochMilli", METHOD_BOTH, LONG, get_epoch_milli),
    M0("getEpochSecond", METHOD_BOTH, LONG, get_epoch_second),
    M0("getNano", METHOD_BOTH, INT, get_nano),
    M1("atZone", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, at_zone),
    M1("atOffset", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, at_offset),
    M1("plusMillis", METHOD_BOTH, INSTANT, LONG, plus_millis),
    M1("minusMillis", METHOD_BOTH, INSTANT, LONG, minus_millis),
    M1("plusSeconds", METHOD_BOTH, INSTANT, LONG, plus_seconds),
    M1("minusSeconds", METHOD_BOTH, INSTANT, LONG, minus_seconds),
    M1("plusNanos", METHOD_BOTH, INSTANT, LONG, plus_nanos),
    M1("minusNanos", METHOD_BOTH, INSTANT, LONG, minus_nanos),
    M1("truncatedTo", METHOD_BOTH, INSTANT, CHRONO_UNIT, truncated_to),
    ARITHMETIC(INSTANT),
    COMPARISONS(INSTANT),
};

static const struct method local_date_methods[] = {
    DATE_FIELDS, ARITHMETIC(LOCAL_DATE), DATE_ARITHMETIC(LOCAL_DATE), COMPARISONS(LOCAL_DATE),
    PARSERS(LOCAL_DATE, local_date_parse),
    M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),
    M3("of", STATIC, LOCAL_DATE, INT, INT, INT, local_date_of),
    M1("ofEpochDay", STATIC, LOCAL_DATE, LONG, local_date_of_epoch_day),
    M0("toEpochDay", METHOD_BOTH, LONG, get_epoch_day),
    M0("atStartOfDay", METHOD_BOTH, LOCAL_DATE_TIME, local_date_at_start),
    M1("atStartOfDay", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, local_date_at_start),
    M1("atTime", METHOD_BOTH, LOCAL_DATE_TIME, LOCAL_TIME, local_date_at_time),
    M2("atTime", METHOD_BOTH, LOCAL_DATE_TIME, INT, INT, local_date_at_time),
    M3("atTime", METHOD_BOTH, LOCAL_DATE_TIME, INT, INT, INT, local_date_at_time),
    M0("isLeapYear", METHOD_BOTH, BOOLEAN, is_leap_year),
    M0("lengthOfMonth", METHOD_BOTH, INT, length_of_month),
};

static const struct method local_time_methods[] = {
    TIME_FIELDS, ARITHMETIC(LOCAL_TIME), TIME_ARITHMETIC(LOCAL_TIME), COMPARISONS(LOCAL_TIME),
    PARSERS(LOCAL_TIME, local_time_parse),
    M2("of", STATIC, LOCAL_TIME, INT, INT, local_time_of),
    M3("of", STATIC, LOCAL_TIME, INT, INT, INT, local_time_of),
};

static const struct method local_date_time_methods[] = {
    DATE_FIELDS, TIME_FIELDS, ARITHMETIC(LOCAL_DATE_TIME), DATE_ARITHMETIC(LOCAL_DATE_TIME), TIME_ARITHMETIC(LOCAL_DATE_TIME),
    COMPARISONS(LOCAL_DATE_TIME), PARSERS(LOCAL_DATE_TIME, local_date_time_parse),
    M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),
    M2("of", STATIC, LOCAL_DATE_TIME, LOCAL_DATE, LOCAL_TIME, local_date_time_of),
    M5("of", STATIC, LOCAL_DATE_TIME, INT, INT, INT, INT, INT, local_date_time_of),
    {"of", STATIC, 6, CLASS_LOCAL_DATE_TIME, {CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT}, local_date_time_of},
    M2("ofInstant", STATIC, LOCAL_DATE_TIME, INSTANT, ZONE_ID, zoned_of_instant),
    M1("atZone", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, at_zone),
    M1("atOffset", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, at_offset),
    M0("toLocalDate", METHOD_BOTH, LOCAL_DATE, to_local_date),
    M0("toLocalTime", METHOD_BOTH, LOCAL_TIME, to_local_time),
};

#define ZONED(self, parser)                                                                                  \
    DATE_FIELDS, TIME_FIELDS, ARITHMETIC(self), DATE_ARITHMETIC(self), TIME_ARITHMETIC(self), COMPARISONS(self), \
        PARSERS(self, parser), M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),                \
        M2("ofInstant", STATIC, self, INSTANT, ZONE_ID, zoned_of_instant),                                   \
        M0("toInstant", METHOD_BOTH, INSTANT, to_instant), M0("toEpochSecond", METHOD_BOTH, LONG, get_epoch_second), \
        M0("toLocalDate", METHOD_BOTH, LOCAL_DATE, to_local_date),                                           \
        M0("toLocalTime", METHOD_BOTH, LOCAL_TIME, to_local_time),                                           \
        M0("toLocalDateTime", METHOD_BOTH, LOCAL_DATE_TIME, to_local_date_time),                             \
        M0("getOffset", METHOD_BOTH, ZONE_OFFSET, get_zone)

static const struct method zoned_methods[] = {
    ZONED(ZONED_DATE_TIME, zoned_parse),
    {"of", STATIC, 3, CLASS_ZONED_DATE_TIME, {CLASS_LOCAL_DATE, CLASS_LOCAL_TIME, CLASS_ZONE_ID}, zoned_of},
    M2("of", STATIC, ZONED_DATE_TIME, LOCAL_DATE_TIME, ZONE_ID, zoned_of),
    M0("getZone", METHOD_BOTH, ZONE_ID, get_zone),
    M0("toOffsetDateTime", METHOD_BOTH, OFFSET_DATE_TIME, to_offset_time),
    M1("withZoneSameInstant", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, with_zone_same_instant),
    M1("withZoneSameLocal", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, with_zone_same_local),
};

static const struct method offset_time_methods[] = {
    ZONED(OFFSET_DATE_TIME, offset_time_parse),
    M2("of", STATIC, OFFSET_DATE_TIME, LOCAL_DATE_TIME, ZONE_OFFSET, zoned_of),
    M1("atZoneSameInstant", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, at_zone),
    M0("toZonedDateTime", METHOD_BOTH, ZONED_DATE_TIME, to_zoned),
    M1("withOffsetSameInstant", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, with_zone_same_instant),
    M1("withOffsetSameLocal", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, with_zone_same_local),
};

/* What doc['date'].value is: a ZonedDateTime with Joda's methods beside it. */
static const struct method doc_date_methods[] = {
    DATE_FIELDS, TIME_FIELDS, ARITHMETIC(DOC_DATE_TIME), DATE_ARITHMETIC(DOC_DATE_TIME), TIME_ARITHMETIC(DOC_DATE_TIME),
    M1("isBefore", METHOD_BOTH, BOOLEAN, TEMPORAL, is_before),
    M1("isAfter", METHOD_BOTH, BOOLEAN, TEMPORAL, is_after),
    M1("isEqual", METHOD_BOTH, BOOLEAN, TEMPORAL, is_equal),
    M0("getMillis", METHOD_BOTH, LONG, get_epoch_milli),
    M0("toInstant", METHOD_BOTH, INSTANT, to_instant),
    M0("toEpochSecond", METHOD_BOTH, LONG, get_epoch_second),
    M0("toLocalDate", METHOD_BOTH, LOCAL_DATE, to_local_date),
    M0("toLocalDateTime", METHOD_BOTH, LOCAL_DATE_TIME, to_local_date_time),
    M0("getDayOfWeek", METHOD_BOTH, INT, get_day_of_week_number),
    M0("getDayOfWeekEnum", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),
    M0("getHourOfDay", METHOD_BOTH, INT, get_hour),
    M0("getMinuteOfHour", METHOD_BOTH, INT, get_minute),
    M0("getSecondOfMinute", METHOD_BOTH, INT, get_second),
    M0("getMonthOfYear", METHOD_BOTH, INT, get_month_value),
};

#define DURATION_ROWS(upper, name)                                                                           \
    M1("of" upper, STATIC, DURATION, LONG, duration_of_##name), M0("to" upper, METHOD_BOTH, LONG, duration_to_##name), \
        M1("plus" upper, METHOD_BOTH, DURATION, LONG, duration_plus_##name)

static const struct method duration_methods[] = {
    M0("ZERO", FIELD, DURATION, duration_zero),
    DURATION_ROWS("Nanos", nanos),
    DURATION_ROWS("Millis", millis),
    DURATION_ROWS("Seconds", seconds),
    DURATION_ROWS("Minutes", minutes),
    DURATION_ROWS("Hours", hours),
    DURATION_ROWS("Days", days),
    M2("between", STATIC, DURATION, TEMPORAL, TEMPORAL, duration_between),
    M1("plus", METHOD_BOTH, DURATION, DURATION, duration_plus),
    M1("minus", METHOD_BOTH, DURATION, DURATION, duration_minus),
    M1("multipliedBy", METHOD_BOTH, DURATION, LONG, duration_multiplied),
    M0("negated", METHOD_BOTH, DURATION, duration_negated),
    M0("getSeconds", METHOD_BOTH, LONG, duration_get_seconds),
    M0("getNano", METHOD_BOTH, INT, duration_get_nano),
    M0("isNegative", METHOD_BOTH, BOOLEAN, duration_is_negative),
    M0("isZero", METHOD_BOTH, BOOLEAN, duration_is_zero),
    M1("compareTo", METHOD_BOTH, INT, DURATION, moment_compare_to),
};

static const struct method period_methods[] = {
    M3("of", STATIC, PERIOD, INT, INT, INT, period_of),
    M1("ofDays", STATIC, PERIOD, INT, period_of_days),
    M1("ofWeeks", STATIC, PERIOD, INT, period_of_weeks),
    M1("ofMonths", STATIC, PERIOD, INT, period_of_months),
    M1("ofYears", STATIC, PERIOD, INT, period_of_years),
    M2("between", STATIC, PERIOD, LOCAL_DATE, LOCAL_DATE, period_between),
    M0("getDays", METHOD_BOTH, INT, period_get_days),
    M0("getMonths", METHOD_BOTH, INT, period_get_months),
    M0("getYears", METHOD_BOTH, INT, period_get_years),
};

static const struct method zone_methods[] = {
    M1("of", STATIC, ZONE_ID, STRING, zone_of),
    M0("getId", METHOD_BOTH, STRING, zone_id_text),
    M0("systemDefault", STATIC, ZONE_ID, zone_offset_utc),
};

static const struct method zone_offset_methods[] = {
    M0("UTC", FIELD, ZONE_OFFSET, zone_offset_utc),
    M1("of", STATIC, ZONE_OFFSET, STRING, zone_of),
    M1("ofHours", STATIC, ZONE_OFFSET, INT, zone_offset_of_hours),
    M2("ofHoursMinutes", STATIC, ZONE_OFFSET, INT, INT, zone_offset_of_hours),
    M0("getTotalSeconds", METHOD_BOTH, INT, zone_total_seconds),
};

static const struct method enum_methods[] = {
    M0("name", METHOD_BOTH, STRING, enum_name),
    M0("ordinal", METHOD_BOTH, INT, enum_ordinal),
};

static const struct method numbered_enum_methods[] = {
    M1("valueOf", STATIC, ENUM, STRING, enum_of_name), M1("of", STATIC, ENUM, INT, enum_of_number),
    M0("getValue", METHOD_BOTH, INT, enum_value),      M1("plus", METHOD_BOTH, ENUM, LONG, enum_plus),
    M1("minus", METHOD_BOTH, ENUM, LONG, enum_minus),
};

static const struct method named_enum_methods[] = {
    M1("valueOf", STATIC, ENUM, STRING, enum_of_name),
};

static const struct method chrono_unit_methods[] = {
    M1("valueOf", STATIC, CHRONO_UNIT, STRING, enum_of_name),
    M2("between", METHOD_BOTH, LONG, TEMPORAL, TEMPORAL, unit_between),
};

static const struct method time_unit_methods[] = {
    M1("toNanos", METHOD_GROOVY, LONG, LONG, time_unit_to_nanos),
    M1("toMicros", METHOD_GROOVY, LONG, LONG, time_unit_to_micros),
    M1("toMillis", METHOD_GROOVY, LONG, LONG, time_unit_to_millis),
    M1("toSeconds", METHOD_GROOVY, LONG, LONG, time_unit_to_seconds),
    M1("toMinutes", METHOD_GROOVY, LONG, LONG, time_unit_to_minutes),
    M1("toHours", METHOD_GROOVY, LONG, LONG, time_unit_to_hours),
    M1("toDays", METHOD_GROOVY, LONG, LONG, time_unit_to_days),
};

static const struct method formatter_methods[] = {
    M0("ISO_LOCAL_DATE", FIELD, DATE_TIME_FORMATTER, iso_local_date),
    M0("ISO_DATE", FIELD, DATE_TIME_FORMATTER, iso_local_date),
    M0("ISO_LOCAL_TIME", FIELD, DATE_TIME_FORMATTER, iso_local_time),
    M0("ISO_LOCAL_DATE_TIME", FIELD, DATE_TIME_FORMATTER, iso_local_date_time),
    M0("ISO_INSTANT", FIELD, DATE_TIME_FORMATTER, iso_instant),
    M0("ISO_OFFSET_DATE_TIME", FIELD, DATE_TIME_FORMATTER, iso_offset_date_time),
    M0("ISO_ZONED_DATE_TIME", FIELD, DATE_TIME_FORMATTER, iso_offset_date_time),
    M0("ISO_DATE_TIME", FIELD, DATE_TIME_FORMATTER, iso_offset_date_time),
    M1("ofPattern", STATIC, DATE_TIME_FORMATTER, STRING, formatter_of_pattern),
    M2("ofPattern", STATIC, DATE_TIME_FORMATTER, STRING, LOCALE, formatter_of_pattern),
    M1("format", METHOD_BOTH, STRING, TEMPORAL, formatter_format),
};

static const struct method simple_format_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, SIMPLE_DATE_FORMAT, simple_format_new),
    M1("new", METHOD_BOTH | METHOD_NEW, SIMPLE_DATE_FORMAT, STRING, simple_format_new),
    M2("new", METHOD_BOTH | METHOD_NEW, SIMPLE_DATE_FORMAT, STRING, LOCALE, simple_format_new),
    M1("format", METHOD_BOTH, STRING, DATE, formatter_format),
    M1("parse", METHOD_BOTH, DATE, STRING, simple_format_parse),
};

static const struct method date_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, DATE, date_new),
    M1("new", METHOD_BOTH | METHOD_NEW, DATE, LONG, date_new),
    M1("after", METHOD_BOTH, BOOLEAN, DATE, is_after),
    M1("before", METHOD_BOTH, BOOLEAN, DATE, is_before),
    M1("compareTo", METHOD_BOTH, INT, DATE, moment_compare_to),
    M1("from", STATIC, DATE, INSTANT, date_from),
    M0("getTime", METHOD_BOTH, LONG, get_epoch_milli),
    M1("setTime", METHOD_BOTH, VOID, LONG, date_set_time),
    M0("toInstant", METHOD_GROOVY, INSTANT, to_instant),
    M1("format", METHOD_GROOVY, STRING, STRING, date_format_pattern),
    M2("parse", METHOD_GROOVY | METHOD_STATIC, DATE, STRING, STRING, date_parse_static),
};

const struct method_table methods_time[] = {
    METHOD_TABLE(TEMPORAL, temporal_methods),
    METHOD_TABLE(INSTANT, instant_methods),
    METHOD_TABLE(LOCAL_DATE, local_date_methods),
    METHOD_TABLE(LOCAL_TIME, local_time_methods),
    METHOD_TABLE(LOCAL_DATE_TIME, local_date_time_methods),
    METHOD_TABLE(ZONED_DATE_TIME, zoned_methods),
    METHOD_TABLE(OFFSET_DATE_TIME, offset_time_methods),
    METHOD_TABLE(DOC_DATE_TIME, doc_date_methods),
    METHOD_TABLE(DURATION, duration_methods),
    METHOD_TABLE(PERIOD, period_methods),
    METHOD_TABLE(ZONE_ID, zone_methods),
    METHOD_TABLE(ZONE_OFFSET, zone_offset_methods),
    METHOD_TABLE(ENUM, enum_methods),
    METHOD_TABLE(DAY_OF_WEEK, numbered_enum_methods),
    METHOD_TABLE(MONTH, numbered_enum_methods),
    METHOD_TABLE(CHRONO_FIELD, named_enum_methods),
    METHOD_TABLE(ROUNDING_MODE, named_enum_methods),
    METHOD_TABLE(CHRONO_UNIT, chrono_unit_methods),
    METHOD_TABLE(TIME_UNIT, time_unit_methods),
    METHOD_TABLE(DATE_TIME_FORMATTER, formatter_methods),
    METHOD_TABLE(SIMPLE_DATE_FORMAT, simple_format_methods),
    METHOD_TABLE(DATE, date_methods),
    {0, 0, NULL},
};
