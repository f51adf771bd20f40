/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of java.time's moments and zones. */
#include "script/library/method_time.h"

#define PARSE(name, id)                                                                       \
    static bool name##_parse(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                         \
        (void)n;                                                                              \
        NEED(1);                                                                              \
        return parse_iso(run, a[1], id, ret);                                                 \
    }

PARSE(instant, CLASS_INSTANT)
PARSE(local_date, CLASS_LOCAL_DATE)
PARSE(local_time, CLASS_LOCAL_TIME)
PARSE(local_date_time, CLASS_LOCAL_DATE_TIME)
PARSE(zoned, CLASS_ZONED_DATE_TIME)
PARSE(offset_time, CLASS_OFFSET_DATE_TIME)

/* Fields */

#define GETTER(name, part)                                                                  \
    static bool get_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                       \
        (void)run, (void)n;                                                                 \
        return give_int(ret, part_of(moment_of(a[0]), part));                               \
    }

GETTER(year, YEAR)
GETTER(month_value, MONTH_VALUE)
GETTER(day_of_month, DAY_OF_MONTH)
GETTER(hour, HOUR)
GETTER(minute, MINUTE)
GETTER(second, SECOND)
GETTER(nano, NANO)
GETTER(day_of_year, DAY_OF_YEAR)

static bool get_day_of_week(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = enumerator_value(run, CLASS_DAY_OF_WEEK, moment_weekday(moment_of(a[0])));
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
    return give_int(ret, moment_weekday(moment_of(a[0])) + 1);
}

static bool get_epoch_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, instant_of(moment_of(a[0])));
}

/* Of a local time, were it in this zone. */
static bool local_epoch_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_long(ret, moment_of(a[0])->seconds - moment_of(a[1])->offset);
}

bool get_epoch_milli(struct run *run, struct value *a, unsigned n, struct value *ret)
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
    return give_boolean(ret, calendar_is_leap(part_of(moment_of(a[0]), YEAR)));
}

static bool length_of_month(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    struct civil civil = moment_civil(moment_of(a[0]));
    return give_int(ret, calendar_month_days(civil.year, civil.month));
}

/* ChronoField */

static bool get_field(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct moment *moment = moment_of(a[0]);
    NEED(1);
    int64_t day_seconds = floor_mod(moment->seconds, 86400);
    static const int parts[] = {[3] = SECOND,       [5] = MINUTE,       [7] = HOUR, [9] = DAY_OF_MONTH,
                                [10] = DAY_OF_YEAR, [12] = MONTH_VALUE, [13] = YEAR};
    switch (((struct enumerator *)a[1].object)->ordinal) {
    case 0: return give_long(ret, moment->nanos);
    case 1: return give_long(ret, moment->nanos / 1000);
    case 2: return give_long(ret, moment->nanos / 1000000);
    case 4: return give_long(ret, day_seconds);
    case 6: return give_long(ret, day_seconds / 60);
    case 8: return give_long(ret, moment_weekday(moment) + 1);
    case 11: return give_long(ret, floor_div(moment->seconds, 86400));
    case 14: return give_long(ret, instant_of(moment));
    case 15: return give_long(ret, moment->offset);
    case 16: return give_long(ret, day_seconds * 1000 + moment->nanos / 1000000);
    case 17: return give_long(ret, day_seconds * 1000000000 + moment->nanos);
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
    return give(ret, unit < 7 ? moment_later(run, moment, seconds, rest)
                              : moment_like(run, moment, moment->seconds + seconds, moment->nanos + rest));
}

static bool add_amount(struct run *run, const struct moment *moment, const struct moment *amount, int sign,
                       struct value *ret)
{
    if (amount->object.class == CLASS_PERIOD) {
        if (!add_months(run, moment, sign * ((int64_t)amount->years * 12 + amount->months), ret))
            return false;
        return add_unit(run, moment_of(*ret), sign * (int64_t)amount->days, 7, ret);
    }
    return give(ret, moment_later(run, moment, sign * amount->seconds, (int64_t)sign * amount->nanos));
}

#define ADDER(name, unit)                                                                     \
    static bool plus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)  \
    {                                                                                         \
        (void)n;                                                                              \
        return add_unit(run, moment_of(a[0]), a[1].i, unit, ret);                             \
    }                                                                                         \
    static bool minus_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                         \
        (void)n;                                                                              \
        return add_unit(run, moment_of(a[0]), -a[1].i, unit, ret);                            \
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
    case YEAR: civil.year = value; break;
    case MONTH_VALUE: civil.month = (int)value; break;
    case DAY_OF_MONTH: civil.day = (int)value; break;
    case HOUR: civil.hour = (int)value; break;
    case MINUTE: civil.minute = (int)value; break;
    case SECOND: civil.second = (int)value; break;
    case NANO: civil.nano = (int32_t)value; break;
    case DAY_OF_YEAR:
        if (value < 1 || value > 365 + calendar_is_leap(civil.year))
            return out_of_range(run, "DayOfYear", value, "1 - 365/366");
        return give(ret, moment_like(run, moment, moment->seconds + (value - part_of(moment, DAY_OF_YEAR)) * 86400,
                                     moment->nanos));
    }
    bool month = civil.month >= 1 && civil.month <= 12;
    if ((part == YEAR || part == MONTH_VALUE) && month && civil.day > calendar_month_days(civil.year, civil.month))
        civil.day = calendar_month_days(civil.year, civil.month);
    if (!check_date(run, civil.year, civil.month, civil.day) ||
        !check_time(run, civil.hour, civil.minute, civil.second, civil.nano))
        return false;
    return give(ret, moment_like(run, moment, civil_seconds(&civil), civil.nano));
}

#define SETTER(name, part)                                                                   \
    static bool with_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                        \
        (void)n;                                                                             \
        return with_part(run, a, part, a[1].i, ret);                                         \
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

bool to_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
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
    return give(ret,
                moment_new(run, CLASS_LOCAL_TIME, floor_mod(moment_of(a[0])->seconds, 86400), moment_of(a[0])->nanos));
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
    struct moment *made = moment_as(run, moment_of(a[0]), CLASS_OFFSET_DATE_TIME, moment_of(a[0])->seconds);
    made->zone = NULL;
    return give(ret, made);
}

/* The same moment in a zone; for local ones the same clock. */
static struct moment *in_zone(struct run *run, const struct moment *moment, const struct moment *zone, enum class_id id,
                              bool keep_clock)
{
    int64_t instant = keep_clock ? moment->seconds - zone->offset : instant_of(moment);
    struct moment *made = moment_as(run, zone, id, 0);
    if (keep_clock && moment_is_ruled(zone))
        instant = zone_moment(zone->zone, moment->seconds, is_zoned(moment) ? moment->offset : ZONE_PREFERS_NONE);
    made->offset = moment_is_ruled(zone) ? zone_offset(zone->zone, instant) : zone->offset;
    made->seconds = instant + made->offset;
    made->nanos = moment->nanos;
    if (id != CLASS_ZONED_DATE_TIME)
        made->zone = NULL;
    if (id == CLASS_LOCAL_DATE_TIME)
        made->offset = 0;
    return made;
}

static bool zoned_of_instant(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct moment *made =
        in_zone(run, moment_of(a[1]), moment_of(a[2]), id, moment_of(a[1])->object.class == CLASS_LOCAL_DATE_TIME);
    return give(ret, made);
}

static bool at_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), CLASS_ZONED_DATE_TIME,
                             moment_of(a[0])->object.class != CLASS_INSTANT));
}

static bool at_offset(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), CLASS_OFFSET_DATE_TIME,
                             moment_of(a[0])->object.class != CLASS_INSTANT));
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

/* Of a date of a document, which is in UTC and of a class of its own. */
static bool doc_date_in_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, in_zone(run, moment_of(a[0]), moment_of(a[1]), CLASS_ZONED_DATE_TIME, false));
}

static bool get_zone(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct moment *moment = moment_of(a[0]);
    struct moment *zone = moment_as(run, moment, moment->zone != NULL ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET, 0);
    zone->nanos = 0;
    zone->offset = moment_is_ruled(moment) ? 0 : moment->offset;
    return give(ret, zone);
}

static bool get_offset(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct moment *zone = moment_new(run, CLASS_ZONE_OFFSET, 0, 0);
    zone->offset = moment_of(a[0])->offset;
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
        return give(ret,
                    moment_new(run, CLASS_LOCAL_DATE_TIME, seconds + moment_of(a[1])->seconds, moment_of(a[1])->nanos));
    }
    int64_t second = n > 2 ? a[3].i : 0, nano = n > 3 ? a[4].i : 0;
    return check_time(run, a[1].i, a[2].i, second, nano) &&
           give(ret,
                moment_new(run, CLASS_LOCAL_DATE_TIME, seconds + a[1].i * 3600 + a[2].i * 60 + second, (int32_t)nano));
}

/* Making */

static bool instant_of_milli(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret,
                moment_new(run, CLASS_INSTANT, floor_div(a[1].i, 1000), (int32_t)floor_mod(a[1].i, 1000) * 1000000));
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
        parts[first + i] =
            value_is(a[i + 1], CLASS_MONTH) ? ((struct enumerator *)a[i + 1].object)->ordinal + 1 : a[i + 1].i;
    if (!check_date(run, parts[0], parts[1], parts[2]) || !check_time(run, parts[3], parts[4], parts[5], parts[6]))
        return false;
    struct civil civil = {parts[0],      (int)parts[1], (int)parts[2],    (int)parts[3],
                          (int)parts[4], (int)parts[5], (int32_t)parts[6]};
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
    return give(ret, moment_new(run, CLASS_LOCAL_DATE_TIME, moment_of(a[1])->seconds + moment_of(a[2])->seconds,
                                moment_of(a[2])->nanos));
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
    struct problem problem;
    struct slice name = text_utf8(run, text_of(a[1]));
    if (id == CLASS_ZONE_OFFSET && zone_parse_offset(name, run->arena, &zone->offset, &problem) != 0)
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "%.*s", SLICE_ARG(problem.reason));
    if (id != CLASS_ZONE_OFFSET && !set_zone(run, zone, name))
        return false;
    zone->object.class = zone->zone != NULL ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET;
    return give(ret, zone);
}

static bool time_zone_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct moment *zone = moment_new(run, CLASS_TIME_ZONE, 0, 0);
    (void)n;
    if (!set_zone(run, zone, text_utf8(run, text_of(a[1])))) { /* Java knows no better, and says nothing */
        run->thrown = NULL;
        (void)set_zone(run, zone, SLICE_LIT("GMT"));
    }
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

bool is_before(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_boolean(ret, moment_compare(moment_of(a[0]), moment_of(a[1])) < 0);
}

bool is_after(struct run *run, struct value *a, unsigned n, struct value *ret)
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

/* Java tells by how many years two local dates differ, else by how many months, else days. */
static int64_t compare_dates(const struct moment *a, const struct moment *b)
{
    struct civil one = moment_civil(a), two = moment_civil(b);
    return one.year != two.year     ? one.year - two.year
           : one.month != two.month ? one.month - two.month
                                    : one.day - two.day;
}

bool moment_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const struct moment *one = moment_of(a[0]), *two = moment_of(a[1]);
    bool local = one->object.class == CLASS_LOCAL_DATE || one->object.class == CLASS_LOCAL_DATE_TIME;
    int64_t dates = local ? compare_dates(one, two) : 0;
    return give_int(ret, dates != 0 ? dates : moment_compare(one, two));
}

bool moment_between(struct run *run, const struct moment *from, const struct moment *to, int unit, struct value *ret)
{
    bool dates = unit >= 7 && is_zoned(from) && is_zoned(to);
    if (dates) /* counted on the calendar of the first one's zone */
        to = in_zone(run, to, from, (enum class_id)from->object.class, false);
    if (unit >= 9 && unit <= 13)
        return give_long(ret, months_between(from, to) / unit_months[unit]);
    if (unit > 13)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    int64_t seconds = dates ? to->seconds - from->seconds : instant_of(to) - instant_of(from);
    __int128 nanos = (__int128)seconds * 1000000000 + (to->nanos - from->nanos);
    return give_long(ret, (int64_t)(nanos / unit_nanos[unit]));
}

static bool moment_until(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    return moment_between(run, moment_of(a[0]), moment_of(a[1]), ((struct enumerator *)a[2].object)->ordinal, ret);
}

static bool local_date_of_year_day(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!check_date(run, a[1].i, 1, 1))
        return false;
    struct value first[2] = {value_of(
        moment_new(run, CLASS_LOCAL_DATE, civil_seconds(&(struct civil){.year = a[1].i, .month = 1, .day = 1}), 0))};
    return with_part(run, first, DAY_OF_YEAR, a[2].i, ret);
}

#define DATE_FIELDS                                                                                             \
    M0("getYear", METHOD_BOTH, INT, get_year), M0("getMonthValue", METHOD_BOTH, INT, get_month_value),          \
        M0("getMonth", METHOD_BOTH, MONTH, get_month), M0("getDayOfMonth", METHOD_BOTH, INT, get_day_of_month), \
        M0("getDayOfYear", METHOD_BOTH, INT, get_day_of_year)
#define TIME_FIELDS                                                                           \
    M0("getHour", METHOD_BOTH, INT, get_hour), M0("getMinute", METHOD_BOTH, INT, get_minute), \
        M0("getSecond", METHOD_BOTH, INT, get_second), M0("getNano", METHOD_BOTH, INT, get_nano)
#define COMPARISONS(self)                                                                                       \
    M1("isBefore", METHOD_BOTH, BOOLEAN, self, is_before), M1("isAfter", METHOD_BOTH, BOOLEAN, self, is_after), \
        M1("isEqual", METHOD_BOTH, BOOLEAN, self, is_equal),                                                    \
        M1("compareTo", METHOD_BOTH, INT, self, moment_compare_to)
#define ARITHMETIC(self)                                                                                            \
    M1("plus", METHOD_BOTH, self, DEF, moment_plus), M2("plus", METHOD_BOTH, self, LONG, CHRONO_UNIT, moment_plus), \
        M1("minus", METHOD_BOTH, self, DEF, moment_minus),                                                          \
        M2("minus", METHOD_BOTH, self, LONG, CHRONO_UNIT, moment_minus),                                            \
        M2("until", METHOD_BOTH, LONG, TEMPORAL, CHRONO_UNIT, moment_until)
#define DATE_ARITHMETIC(self)                                                                                         \
    M1("plusDays", METHOD_BOTH, self, LONG, plus_days), M1("minusDays", METHOD_BOTH, self, LONG, minus_days),         \
        M1("plusWeeks", METHOD_BOTH, self, LONG, plus_weeks), M1("minusWeeks", METHOD_BOTH, self, LONG, minus_weeks), \
        M1("plusMonths", METHOD_BOTH, self, LONG, plus_months),                                                       \
        M1("minusMonths", METHOD_BOTH, self, LONG, minus_months),                                                     \
        M1("plusYears", METHOD_BOTH, self, LONG, plus_years), M1("minusYears", METHOD_BOTH, self, LONG, minus_years), \
        M1("withYear", METHOD_BOTH, self, INT, with_year), M1("withMonth", METHOD_BOTH, self, INT, with_month),       \
        M1("withDayOfMonth", METHOD_BOTH, self, INT, with_day_of_month),                                              \
        M1("withDayOfYear", METHOD_BOTH, self, INT, with_day_of_year)
#define TIME_ARITHMETIC(self)                                                                                         \
    M1("plusHours", METHOD_BOTH, self, LONG, plus_hours), M1("minusHours", METHOD_BOTH, self, LONG, minus_hours),     \
        M1("plusMinutes", METHOD_BOTH, self, LONG, plus_minutes),                                                     \
        M1("minusMinutes", METHOD_BOTH, self, LONG, minus_minutes),                                                   \
        M1("plusSeconds", METHOD_BOTH, self, LONG, plus_seconds),                                                     \
        M1("minusSeconds", METHOD_BOTH, self, LONG, minus_seconds),                                                   \
        M1("plusNanos", METHOD_BOTH, self, LONG, plus_nanos), M1("minusNanos", METHOD_BOTH, self, LONG, minus_nanos), \
        M1("withHour", METHOD_BOTH, self, INT, with_hour), M1("withMinute", METHOD_BOTH, self, INT, with_minute),     \
        M1("withSecond", METHOD_BOTH, self, INT, with_second), M1("withNano", METHOD_BOTH, self, INT, with_nano),     \
        M1("truncatedTo", METHOD_BOTH, self, CHRONO_UNIT, truncated_to)
#define PARSERS(self, parser)                         \
    M1("parse", STATIC, self, CHAR_SEQUENCE, parser), \
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
    DATE_FIELDS,
    ARITHMETIC(LOCAL_DATE),
    DATE_ARITHMETIC(LOCAL_DATE),
    COMPARISONS(LOCAL_DATE),
    PARSERS(LOCAL_DATE, local_date_parse),
    M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),
    M3("of", STATIC, LOCAL_DATE, INT, INT, INT, local_date_of),
    M1("ofEpochDay", STATIC, LOCAL_DATE, LONG, local_date_of_epoch_day),
    M2("ofYearDay", STATIC, LOCAL_DATE, INT, INT, local_date_of_year_day),
    M0("toEpochDay", METHOD_BOTH, LONG, get_epoch_day),
    M0("atStartOfDay", METHOD_BOTH, LOCAL_DATE_TIME, local_date_at_start),
    M1("atStartOfDay", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, local_date_at_start),
    M1("atTime", METHOD_BOTH, LOCAL_DATE_TIME, LOCAL_TIME, local_date_at_time),
    M2("atTime", METHOD_BOTH, LOCAL_DATE_TIME, INT, INT, local_date_at_time),
    M3("atTime", METHOD_BOTH, LOCAL_DATE_TIME, INT, INT, INT, local_date_at_time),
    M0("isLeapYear", METHOD_BOTH, BOOLEAN, is_leap_year),
    M0("lengthOfMonth", METHOD_BOTH, INT, length_of_month),
};

static bool local_time_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, moment_of(a[0])->seconds);
}

static bool local_time_nano(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, moment_of(a[0])->seconds * 1000000000 + moment_of(a[0])->nanos);
}

static bool local_time_of_second(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0 || a[1].i > 86399)
        return out_of_range(run, "SecondOfDay", a[1].i, "0 - 86399");
    return give(ret, moment_new(run, CLASS_LOCAL_TIME, a[1].i, 0));
}

static bool local_time_of_nano(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0 || a[1].i >= unit_nanos[7])
        return out_of_range(run, "NanoOfDay", a[1].i, "0 - 86399999999999");
    return give(ret, moment_new(run, CLASS_LOCAL_TIME, a[1].i / 1000000000, (int32_t)(a[1].i % 1000000000)));
}

static bool local_time_at_date(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, moment_as(run, moment_of(a[0]), CLASS_LOCAL_DATE_TIME,
                               moment_of(a[1])->seconds + moment_of(a[0])->seconds));
}

#define TIME_CONSTANT(name, seconds, nanos)                                                        \
    static bool local_time_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                              \
        (void)a, (void)n;                                                                          \
        return give(ret, moment_new(run, CLASS_LOCAL_TIME, seconds, nanos));                       \
    }

TIME_CONSTANT(midnight, 0, 0)
TIME_CONSTANT(noon, 43200, 0)
TIME_CONSTANT(last, 86399, 999999999)

static const struct method local_time_methods[] = {
    M0("MIDNIGHT", FIELD, LOCAL_TIME, local_time_midnight),
    M0("MIN", FIELD, LOCAL_TIME, local_time_midnight),
    M0("NOON", FIELD, LOCAL_TIME, local_time_noon),
    M0("MAX", FIELD, LOCAL_TIME, local_time_last),
    M1("ofSecondOfDay", STATIC, LOCAL_TIME, LONG, local_time_of_second),
    M1("ofNanoOfDay", STATIC, LOCAL_TIME, LONG, local_time_of_nano),
    M0("toSecondOfDay", METHOD_BOTH, INT, local_time_second),
    M0("toNanoOfDay", METHOD_BOTH, LONG, local_time_nano),
    M1("atDate", METHOD_BOTH, LOCAL_DATE_TIME, LOCAL_DATE, local_time_at_date),
    TIME_FIELDS,
    ARITHMETIC(LOCAL_TIME),
    TIME_ARITHMETIC(LOCAL_TIME),
    COMPARISONS(LOCAL_TIME),
    PARSERS(LOCAL_TIME, local_time_parse),
    M2("of", STATIC, LOCAL_TIME, INT, INT, local_time_of),
    M3("of", STATIC, LOCAL_TIME, INT, INT, INT, local_time_of),
};

static const struct method local_date_time_methods[] = {
    DATE_FIELDS,
    TIME_FIELDS,
    ARITHMETIC(LOCAL_DATE_TIME),
    DATE_ARITHMETIC(LOCAL_DATE_TIME),
    M1("toEpochSecond", METHOD_BOTH, LONG, ZONE_OFFSET, local_epoch_second),
    TIME_ARITHMETIC(LOCAL_DATE_TIME),
    COMPARISONS(LOCAL_DATE_TIME),
    PARSERS(LOCAL_DATE_TIME, local_date_time_parse),
    M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),
    M2("of", STATIC, LOCAL_DATE_TIME, LOCAL_DATE, LOCAL_TIME, local_date_time_of),
    M5("of", STATIC, LOCAL_DATE_TIME, INT, INT, INT, INT, INT, local_date_time_of),
    {"of",
     STATIC,
     6,
     CLASS_LOCAL_DATE_TIME,
     {CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT},
     local_date_time_of},
    M2("ofInstant", STATIC, LOCAL_DATE_TIME, INSTANT, ZONE_ID, zoned_of_instant),
    M1("atZone", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, at_zone),
    M1("atOffset", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, at_offset),
    M0("toLocalDate", METHOD_BOTH, LOCAL_DATE, to_local_date),
    M0("toLocalTime", METHOD_BOTH, LOCAL_TIME, to_local_time),
};

#define ZONED(self, parser)                                                                                          \
    DATE_FIELDS, TIME_FIELDS, ARITHMETIC(self), DATE_ARITHMETIC(self), TIME_ARITHMETIC(self), COMPARISONS(self),     \
        PARSERS(self, parser), M0("getDayOfWeek", METHOD_BOTH, DAY_OF_WEEK, get_day_of_week),                        \
        M2("ofInstant", STATIC, self, INSTANT, ZONE_ID, zoned_of_instant),                                           \
        M0("toInstant", METHOD_BOTH, INSTANT, to_instant), M0("toEpochSecond", METHOD_BOTH, LONG, get_epoch_second), \
        M0("toLocalDate", METHOD_BOTH, LOCAL_DATE, to_local_date),                                                   \
        M0("toLocalTime", METHOD_BOTH, LOCAL_TIME, to_local_time),                                                   \
        M0("toLocalDateTime", METHOD_BOTH, LOCAL_DATE_TIME, to_local_date_time),                                     \
        M0("getOffset", METHOD_BOTH, ZONE_OFFSET, get_offset)

static const struct method zoned_methods[] = {
    ZONED(ZONED_DATE_TIME, zoned_parse),
    {"of", STATIC, 3, CLASS_ZONED_DATE_TIME, {CLASS_LOCAL_DATE, CLASS_LOCAL_TIME, CLASS_ZONE_ID}, zoned_of},
    M2("of", STATIC, ZONED_DATE_TIME, LOCAL_DATE_TIME, ZONE_ID, zoned_of),
    {"of",
     STATIC,
     8,
     CLASS_ZONED_DATE_TIME,
     {CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_ZONE_ID},
     zoned_of},
    M0("getZone", METHOD_BOTH, ZONE_ID, get_zone),
    M0("toOffsetDateTime", METHOD_BOTH, OFFSET_DATE_TIME, to_offset_time),
    M1("withZoneSameInstant", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, with_zone_same_instant),
    M1("withZoneSameLocal", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, with_zone_same_local),
};

static const struct method offset_time_methods[] = {
    ZONED(OFFSET_DATE_TIME, offset_time_parse),
    M2("of", STATIC, OFFSET_DATE_TIME, LOCAL_DATE_TIME, ZONE_OFFSET, zoned_of),
    {"of",
     STATIC,
     8,
     CLASS_OFFSET_DATE_TIME,
     {CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_INT, CLASS_ZONE_OFFSET},
     zoned_of},
    M1("atZoneSameInstant", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, at_zone),
    M0("toZonedDateTime", METHOD_BOTH, ZONED_DATE_TIME, to_zoned),
    M1("withOffsetSameInstant", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, with_zone_same_instant),
    M1("withOffsetSameLocal", METHOD_BOTH, OFFSET_DATE_TIME, ZONE_OFFSET, with_zone_same_local),
};

/* What doc['date'].value is: a ZonedDateTime with Joda's methods beside it. */
static const struct method doc_date_methods[] = {
    DATE_FIELDS,
    TIME_FIELDS,
    ARITHMETIC(DOC_DATE_TIME),
    DATE_ARITHMETIC(DOC_DATE_TIME),
    TIME_ARITHMETIC(DOC_DATE_TIME),
    M1("isBefore", METHOD_BOTH, BOOLEAN, TEMPORAL, is_before),
    M1("isAfter", METHOD_BOTH, BOOLEAN, TEMPORAL, is_after),
    M1("isEqual", METHOD_BOTH, BOOLEAN, TEMPORAL, is_equal),
    M1("withZoneSameInstant", METHOD_BOTH, ZONED_DATE_TIME, ZONE_ID, doc_date_in_zone),
    M0("getOffset", METHOD_BOTH, ZONE_OFFSET, get_offset),
    M0("getZone", METHOD_BOTH, ZONE_ID, get_zone),
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

static const struct method zone_methods[] = {
    M1("of", STATIC, ZONE_ID, STRING, zone_of),
    M0("getId", METHOD_BOTH, STRING, zone_id_text),
    M0("systemDefault", STATIC, ZONE_ID, zone_offset_utc),
};

static const struct method time_zone_methods[] = {
    M1("getTimeZone", STATIC, TIME_ZONE, STRING, time_zone_of),
    M0("getID", METHOD_BOTH, STRING, zone_id_text),
};

static const struct method zone_offset_methods[] = {
    M0("UTC", FIELD, ZONE_OFFSET, zone_offset_utc),
    M1("of", STATIC, ZONE_OFFSET, STRING, zone_of),
    M1("ofHours", STATIC, ZONE_OFFSET, INT, zone_offset_of_hours),
    M2("ofHoursMinutes", STATIC, ZONE_OFFSET, INT, INT, zone_offset_of_hours),
    M0("getTotalSeconds", METHOD_BOTH, INT, zone_total_seconds),
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
    METHOD_TABLE(ZONE_ID, zone_methods),
    METHOD_TABLE(ZONE_OFFSET, zone_offset_methods),
    METHOD_TABLE(TIME_ZONE, time_zone_methods),
    {0, 0, NULL},
};
