/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on temporals: ranges of fields, calendar fields, adding and counting months. */
#include "script/library/method_time.h"

/* In nanoseconds: ChronoUnit's first nine; unit_months has the larger ones. */
const int64_t unit_nanos[9] = {
    1, 1000, 1000000, 1000000000, 60000000000, 3600000000000, 43200000000000, 86400000000000, 604800000000000};
const int64_t unit_months[14] = {[9] = 1, [10] = 12, [11] = 120, [12] = 1200, [13] = 12000};

static struct temporal *temporal_at(struct run *run, const struct temporal *like, int64_t seconds, int64_t nanos)
{
    seconds += floor_div(nanos, 1000000000);
    if (seconds > TEMPORAL_SECONDS_MAX || seconds < -TEMPORAL_SECONDS_MAX) {
        run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Instant exceeds minimum or maximum instant");
        return NULL;
    }
    struct temporal *temporal = run_object(run, sizeof *temporal, (enum class_id)like->object.class);
    enum class_id id = (enum class_id)like->object.class;
    *temporal = *like;
    temporal->object.class = (uint16_t)id;
    temporal->seconds = id == CLASS_LOCAL_TIME ? floor_mod(seconds, 86400) : seconds;
    temporal->nanos = (int32_t)floor_mod(nanos, 1000000000);
    return temporal;
}

static void set_instant(struct temporal *temporal, int64_t instant)
{
    temporal->offset = zone_offset(temporal->zone, instant);
    temporal->seconds = instant + temporal->offset;
}

struct temporal *temporal_like(struct run *run, const struct temporal *like, int64_t seconds, int64_t nanos)
{
    struct temporal *temporal = temporal_at(run, like, seconds, nanos);
    if (temporal != NULL && temporal_has_zone_rules(temporal))
        set_instant(temporal, zone_instant(temporal->zone, temporal->seconds, like->offset));
    return temporal;
}

struct temporal *temporal_later(struct run *run, const struct temporal *from, int64_t seconds, int64_t nanos)
{
    struct temporal *temporal = temporal_at(run, from, from->seconds + seconds, from->nanos + nanos);
    if (temporal != NULL && temporal_has_zone_rules(temporal))
        set_instant(temporal, temporal->seconds - from->offset);
    return temporal;
}

struct temporal *temporal_as(struct run *run, const struct temporal *from, enum class_id id, int64_t seconds)
{
    struct temporal *temporal = run_object(run, sizeof *temporal, id);
    *temporal = *from;
    temporal->object.class = (uint16_t)id;
    temporal->seconds = seconds;
    return temporal;
}

bool out_of_range(struct run *run, const char *field, int64_t value, const char *valid)
{
    return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid value for %s (valid values %s): %lld", field, valid,
                     (long long)value);
}

bool check_date(struct run *run, int64_t year, int64_t month, int64_t day)
{
    if (year < -999999999 || year > 999999999)
        return out_of_range(run, "Year", year, "-999999999 - 999999999");
    if (month < 1 || month > 12)
        return out_of_range(run, "MonthOfYear", month, "1 - 12");
    if (day < 1 || day > 31)
        return out_of_range(run, "DayOfMonth", day, "1 - 28/31");
    if (day > calendar_month_days(year, (int)month))
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "Invalid date '%s %lld'",
                         enumerator_name(CLASS_MONTH, (int)month - 1), (long long)day);
    return true;
}

bool check_time(struct run *run, int64_t hour, int64_t minute, int64_t second, int64_t nano)
{
    if (hour < 0 || hour > 23)
        return out_of_range(run, "HourOfDay", hour, "0 - 23");
    if (minute < 0 || minute > 59)
        return out_of_range(run, "MinuteOfHour", minute, "0 - 59");
    if (second < 0 || second > 59)
        return out_of_range(run, "SecondOfMinute", second, "0 - 59");
    return (nano >= 0 && nano <= 999999999) || out_of_range(run, "NanoOfSecond", nano, "0 - 999999999");
}

int64_t civil_seconds(const struct civil *civil)
{
    return calendar_days(civil->year, civil->month, civil->day) * 86400 + civil->hour * 3600 + civil->minute * 60 +
           civil->second;
}

int64_t part_of(const struct temporal *temporal, enum part part)
{
    struct civil civil = temporal_civil(temporal);
    switch (part) {
    case YEAR: return civil.year;
    case MONTH_VALUE: return civil.month;
    case DAY_OF_MONTH: return civil.day;
    case HOUR: return civil.hour;
    case MINUTE: return civil.minute;
    case SECOND: return civil.second;
    case NANO: return civil.nano;
    case DAY_OF_YEAR: return floor_div(temporal->seconds, 86400) - calendar_days(civil.year, 1, 1) + 1;
    }
    return 0;
}

bool add_months(struct run *run, const struct temporal *temporal, int64_t count, struct value *ret)
{
    struct civil civil = temporal_civil(temporal);
    if (count > 12000000000 || count < -12000000000)
        return out_of_range(run, "Year", count / 12, "-999999999 - 999999999");
    int64_t months = civil.year * 12 + civil.month - 1 + count;
    civil.year = floor_div(months, 12);
    civil.month = (int)floor_mod(months, 12) + 1;
    if (civil.year < -999999999 || civil.year > 999999999)
        return out_of_range(run, "Year", civil.year, "-999999999 - 999999999");
    if (civil.day > calendar_month_days(civil.year, civil.month))
        civil.day = calendar_month_days(civil.year, civil.month);
    return give(ret, temporal_like(run, temporal, civil_seconds(&civil), temporal->nanos));
}

int64_t months_between(const struct temporal *from, const struct temporal *to)
{
    struct civil a = temporal_civil(from), b = temporal_civil(to);
    int64_t months = (b.year - a.year) * 12 + b.month - a.month;
    int64_t a_rest = (a.day * (int64_t)86400 + a.hour * 3600 + a.minute * 60 + a.second) * 1000000000 + a.nano;
    int64_t b_rest = (b.day * (int64_t)86400 + b.hour * 3600 + b.minute * 60 + b.second) * 1000000000 + b.nano;
    if (months > 0 && b_rest < a_rest)
        months--;
    else if (months < 0 && b_rest > a_rest)
        months++;
    return months;
}
