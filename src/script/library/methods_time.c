/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of java.time's temporals and zones. */
#include "script/library/method_time.h"

/* Parses an ISO text of the row's result class. */
static bool temporal_parse(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return parse_iso(call->run, call->args[0], type_class(call->row->result), ret);
}

/* Fields */

/* The datum is the part. */
static bool get_part(struct call *call, struct value *ret)
{
    return give_int(ret, part_of(temporal_of(call->self), (enum part)call->row->datum.number));
}

static bool get_day_of_week(struct call *call, struct value *ret)
{
    *ret = enumerator_value(call->run, CLASS_DAY_OF_WEEK, temporal_weekday(temporal_of(call->self)));
    return true;
}

static bool get_month(struct call *call, struct value *ret)
{
    *ret = enumerator_value(call->run, CLASS_MONTH, (int)part_of(temporal_of(call->self), MONTH_VALUE) - 1);
    return true;
}

static bool get_day_of_week_number(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_weekday(temporal_of(call->self)) + 1);
}

static bool get_epoch_second(struct call *call, struct value *ret)
{
    return give_long(ret, instant_of(temporal_of(call->self)));
}

/* Gives the epoch second of a local time in the zone offset that is the argument. */
static bool local_epoch_second(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_long(ret, temporal_of(call->self)->seconds - temporal_of(call->args[0])->offset);
}

bool get_epoch_milli(struct call *call, struct value *ret)
{
    return give_long(ret, instant_of(temporal_of(call->self)) * 1000 + temporal_of(call->self)->nanos / 1000000);
}

static bool get_epoch_day(struct call *call, struct value *ret)
{
    return give_long(ret, floor_div(temporal_of(call->self)->seconds, 86400));
}

static bool is_leap_year(struct call *call, struct value *ret)
{
    return give_boolean(ret, calendar_is_leap(part_of(temporal_of(call->self), YEAR)));
}

static bool length_of_month(struct call *call, struct value *ret)
{
    struct civil civil = temporal_civil(temporal_of(call->self));
    return give_int(ret, calendar_month_days(civil.year, civil.month));
}

/* ChronoField */

static bool get_field(struct call *call, struct value *ret)
{
    const struct temporal *temporal = temporal_of(call->self);
    NOT_NULL(0);
    int64_t day_seconds = floor_mod(temporal->seconds, 86400);
    static const int parts[] = {[3] = SECOND,       [5] = MINUTE,       [7] = HOUR, [9] = DAY_OF_MONTH,
                                [10] = DAY_OF_YEAR, [12] = MONTH_VALUE, [13] = YEAR};
    switch (((struct enumerator *)call->args[0].object)->ordinal) {
    case 0: return give_long(ret, temporal->nanos);
    case 1: return give_long(ret, temporal->nanos / 1000);
    case 2: return give_long(ret, temporal->nanos / 1000000);
    case 4: return give_long(ret, day_seconds);
    case 6: return give_long(ret, day_seconds / 60);
    case 8: return give_long(ret, temporal_weekday(temporal) + 1);
    case 11: return give_long(ret, floor_div(temporal->seconds, 86400));
    case 14: return give_long(ret, instant_of(temporal));
    case 15: return give_long(ret, temporal->offset);
    case 16: return give_long(ret, day_seconds * 1000 + temporal->nanos / 1000000);
    case 17: return give_long(ret, day_seconds * 1000000000 + temporal->nanos);
    default:
        return give_long(ret,
                         part_of(temporal, (enum part)parts[((struct enumerator *)call->args[0].object)->ordinal]));
    }
}

static bool get_field_int(struct call *call, struct value *ret)
{
    return get_field(call, ret) && give_int(ret, ret->i);
}

/* Addition */

static bool add_unit(struct run *run, const struct temporal *temporal, int64_t count, int unit, struct value *ret)
{
    if (unit >= 9 && unit <= 13)
        return add_months(run, temporal, count * unit_months[unit], ret);
    if (unit > 13)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    if (temporal->object.class == CLASS_LOCAL_DATE && unit < 7)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unsupported unit: %s",
                         enumerator_text(CLASS_CHRONO_UNIT, unit));
    __int128 nanos = (__int128)count * unit_nanos[unit];
    int64_t seconds = (int64_t)(nanos / 1000000000), rest = (int64_t)(nanos % 1000000000);
    if (seconds > 2 * TEMPORAL_SECONDS_MAX || seconds < -2 * TEMPORAL_SECONDS_MAX)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    return give(ret, unit < 7 ? temporal_later(run, temporal, seconds, rest)
                              : temporal_like(run, temporal, temporal->seconds + seconds, temporal->nanos + rest));
}

static bool add_amount(struct run *run, const struct temporal *temporal, const struct temporal *amount, int sign,
                       struct value *ret)
{
    if (amount->object.class == CLASS_PERIOD) {
        if (!add_months(run, temporal, sign * ((int64_t)amount->years * 12 + amount->months), ret))
            return false;
        return add_unit(run, temporal_of(*ret), sign * (int64_t)amount->days, 7, ret);
    }
    return give(ret, temporal_later(run, temporal, sign * amount->seconds, (int64_t)sign * amount->nanos));
}

/* The datum is the unit. */
static bool plus_units(struct call *call, struct value *ret)
{
    return add_unit(call->run, temporal_of(call->self), call->args[0].i, (int)call->row->datum.number, ret);
}

static bool minus_units(struct call *call, struct value *ret)
{
    return add_unit(call->run, temporal_of(call->self), -call->args[0].i, (int)call->row->datum.number, ret);
}

static bool temporal_plus(struct call *call, struct value *ret)
{
    NOT_NULL(call->count - 1);
    return call->count == 2 ? add_unit(call->run, temporal_of(call->self), call->args[0].i,
                                       ((struct enumerator *)call->args[1].object)->ordinal, ret)
                            : add_amount(call->run, temporal_of(call->self), temporal_of(call->args[0]), 1, ret);
}

static bool temporal_minus(struct call *call, struct value *ret)
{
    NOT_NULL(call->count - 1);
    return call->count == 2 ? add_unit(call->run, temporal_of(call->self), -call->args[0].i,
                                       ((struct enumerator *)call->args[1].object)->ordinal, ret)
                            : add_amount(call->run, temporal_of(call->self), temporal_of(call->args[0]), -1, ret);
}

/* Setting a field */

static bool with_part(struct call *call, enum part part, int64_t value, struct value *ret)
{
    struct run *run = call->run;
    const struct temporal *temporal = temporal_of(call->self);
    struct civil civil = temporal_civil(temporal);
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
        return give(ret,
                    temporal_like(run, temporal, temporal->seconds + (value - part_of(temporal, DAY_OF_YEAR)) * 86400,
                                  temporal->nanos));
    }
    bool month = civil.month >= 1 && civil.month <= 12;
    if ((part == YEAR || part == MONTH_VALUE) && month && civil.day > calendar_month_days(civil.year, civil.month))
        civil.day = calendar_month_days(civil.year, civil.month);
    if (!check_date(run, civil.year, civil.month, civil.day) ||
        !check_time(run, civil.hour, civil.minute, civil.second, civil.nano))
        return false;
    return give(ret, temporal_like(run, temporal, civil_seconds(&civil), civil.nano));
}

/* The datum is the part. */
static bool set_part(struct call *call, struct value *ret)
{
    return with_part(call, (enum part)call->row->datum.number, call->args[0].i, ret);
}

static bool truncated_to(struct call *call, struct value *ret)
{
    const struct temporal *temporal = temporal_of(call->self);
    NOT_NULL(0);
    int unit = ((struct enumerator *)call->args[0].object)->ordinal;
    if (unit > 7)
        return run_throw(call->run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION,
                         "Unit is too large to be used for truncation");
    int64_t of_day = floor_mod(temporal->seconds, 86400) * 1000000000 + temporal->nanos;
    int64_t cut = of_day / unit_nanos[unit] * unit_nanos[unit];
    return give(ret, temporal_like(call->run, temporal, temporal->seconds - floor_mod(temporal->seconds, 86400), cut));
}

/* Conversions between classes */

bool to_instant(struct call *call, struct value *ret)
{
    struct temporal *instant =
        temporal_new(call->run, CLASS_INSTANT, instant_of(temporal_of(call->self)), temporal_of(call->self)->nanos);
    return give(ret, instant);
}

static bool to_local_date(struct call *call, struct value *ret)
{
    return give(
        ret, temporal_new(call->run, CLASS_LOCAL_DATE, floor_div(temporal_of(call->self)->seconds, 86400) * 86400, 0));
}

static bool to_local_time(struct call *call, struct value *ret)
{
    return give(ret, temporal_new(call->run, CLASS_LOCAL_TIME, floor_mod(temporal_of(call->self)->seconds, 86400),
                                  temporal_of(call->self)->nanos));
}

static bool to_local_date_time(struct call *call, struct value *ret)
{
    return give(ret, temporal_new(call->run, CLASS_LOCAL_DATE_TIME, temporal_of(call->self)->seconds,
                                  temporal_of(call->self)->nanos));
}

static bool to_zoned(struct call *call, struct value *ret)
{
    return give(
        ret, temporal_as(call->run, temporal_of(call->self), CLASS_ZONED_DATE_TIME, temporal_of(call->self)->seconds));
}

static bool to_offset_time(struct call *call, struct value *ret)
{
    struct temporal *made =
        temporal_as(call->run, temporal_of(call->self), CLASS_OFFSET_DATE_TIME, temporal_of(call->self)->seconds);
    made->zone = NULL;
    return give(ret, made);
}

/* Returns: the temporal in a zone. With `keep_clock`, the local time stays the same; otherwise
   the instant does. */
static struct temporal *in_zone(struct run *run, const struct temporal *temporal, const struct temporal *zone,
                                enum class_id id, bool keep_clock)
{
    int64_t instant = keep_clock ? temporal->seconds - zone->offset : instant_of(temporal);
    struct temporal *made = temporal_as(run, zone, id, 0);
    if (keep_clock && temporal_has_zone_rules(zone))
        instant =
            zone_instant(zone->zone, temporal->seconds, is_zoned(temporal) ? temporal->offset : ZONE_PREFERS_NONE);
    made->offset = temporal_has_zone_rules(zone) ? zone_offset(zone->zone, instant) : zone->offset;
    made->seconds = instant + made->offset;
    made->nanos = temporal->nanos;
    if (id != CLASS_ZONED_DATE_TIME)
        made->zone = NULL;
    if (id == CLASS_LOCAL_DATE_TIME)
        made->offset = 0;
    return made;
}

static bool zoned_of_instant(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    struct temporal *made = in_zone(call->run, temporal_of(call->args[0]), temporal_of(call->args[1]), id,
                                    temporal_of(call->args[0])->object.class == CLASS_LOCAL_DATE_TIME);
    return give(ret, made);
}

static bool at_zone(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, in_zone(call->run, temporal_of(call->self), temporal_of(call->args[0]), CLASS_ZONED_DATE_TIME,
                             temporal_of(call->self)->object.class != CLASS_INSTANT));
}

static bool at_offset(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, in_zone(call->run, temporal_of(call->self), temporal_of(call->args[0]), CLASS_OFFSET_DATE_TIME,
                             temporal_of(call->self)->object.class != CLASS_INSTANT));
}

static bool with_zone_same_instant(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, in_zone(call->run, temporal_of(call->self), temporal_of(call->args[0]),
                             (enum class_id)call->self.object->class, false));
}

static bool with_zone_same_local(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, in_zone(call->run, temporal_of(call->self), temporal_of(call->args[0]),
                             (enum class_id)call->self.object->class, true));
}

/* Converts a document's date, which is in UTC and has a class of its own. */
static bool doc_date_in_zone(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret,
                in_zone(call->run, temporal_of(call->self), temporal_of(call->args[0]), CLASS_ZONED_DATE_TIME, false));
}

static bool get_zone(struct call *call, struct value *ret)
{
    const struct temporal *temporal = temporal_of(call->self);
    struct temporal *zone =
        temporal_as(call->run, temporal, temporal->zone != NULL ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET, 0);
    zone->nanos = 0;
    zone->offset = temporal_has_zone_rules(temporal) ? 0 : temporal->offset;
    return give(ret, zone);
}

static bool get_offset(struct call *call, struct value *ret)
{
    struct temporal *zone = temporal_new(call->run, CLASS_ZONE_OFFSET, 0, 0);
    zone->offset = temporal_of(call->self)->offset;
    return give(ret, zone);
}

static bool local_date_at_start(struct call *call, struct value *ret)
{
    return call->count == 1 ? at_zone(call, ret)
                            : to_local_date_time(&(struct call){call->run, call->row, call->self, call->args, 0}, ret);
}

static bool local_date_at_time(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    int64_t seconds = temporal_of(call->self)->seconds;
    if (call->count == 1) {
        NOT_NULL(0);
        return give(ret, temporal_new(run, CLASS_LOCAL_DATE_TIME, seconds + temporal_of(call->args[0])->seconds,
                                      temporal_of(call->args[0])->nanos));
    }
    int64_t second = call->count > 2 ? call->args[2].i : 0, nano = call->count > 3 ? call->args[3].i : 0;
    return check_time(run, call->args[0].i, call->args[1].i, second, nano) &&
           give(ret, temporal_new(run, CLASS_LOCAL_DATE_TIME,
                                  seconds + call->args[0].i * 3600 + call->args[1].i * 60 + second, (int32_t)nano));
}

/* Constructors */

static bool instant_of_milli(struct call *call, struct value *ret)
{
    return give(ret, temporal_new(call->run, CLASS_INSTANT, floor_div(call->args[0].i, 1000),
                                  (int32_t)floor_mod(call->args[0].i, 1000) * 1000000));
}

static bool instant_of_second(struct call *call, struct value *ret)
{
    struct temporal zero = {.object = {.class = CLASS_INSTANT}};
    int64_t nanos = call->count == 2 ? call->args[1].i : 0;
    if (call->args[0].i > TEMPORAL_SECONDS_MAX || call->args[0].i < -TEMPORAL_SECONDS_MAX)
        return run_throw(call->run, CLASS_DATE_TIME_EXCEPTION, "Instant exceeds minimum or maximum instant");
    return give(ret, temporal_like(call->run, &zero, call->args[0].i, nanos));
}

static bool instant_epoch(struct call *call, struct value *ret)
{
    return give(ret, temporal_new(call->run, CLASS_INSTANT, 0, 0));
}

/* Makes a local temporal from the arguments: year, month (number or enum), day, hour, minute,
   second, nano. Trailing ones may be missing. */
static bool make_local(struct call *call, enum class_id id, struct value *ret)
{
    struct run *run = call->run;
    int64_t parts[7] = {1970, 1, 1, 0, 0, 0, 0};
    unsigned first = id == CLASS_LOCAL_TIME ? 3 : 0;
    for (unsigned i = 0; i < call->count && first + i < 7; i++)
        parts[first + i] = value_is(call->args[i], CLASS_MONTH)
                               ? ((struct enumerator *)call->args[i].object)->ordinal + 1
                               : call->args[i].i;
    if (!check_date(run, parts[0], parts[1], parts[2]) || !check_time(run, parts[3], parts[4], parts[5], parts[6]))
        return false;
    struct civil civil = {parts[0],      (int)parts[1], (int)parts[2],    (int)parts[3],
                          (int)parts[4], (int)parts[5], (int32_t)parts[6]};
    return give(ret, temporal_new(run, id, civil_seconds(&civil), civil.nano));
}

static bool local_date_of(struct call *call, struct value *ret)
{
    return make_local(call, CLASS_LOCAL_DATE, ret);
}

static bool local_date_of_epoch_day(struct call *call, struct value *ret)
{
    if (call->args[0].i > 365241780471 || call->args[0].i < -365243219162)
        return out_of_range(call->run, "EpochDay", call->args[0].i, "-365243219162 - 365241780471");
    return give(ret, temporal_new(call->run, CLASS_LOCAL_DATE, call->args[0].i * 86400, 0));
}

static bool local_time_of(struct call *call, struct value *ret)
{
    return make_local(call, CLASS_LOCAL_TIME, ret);
}

static bool local_date_time_of(struct call *call, struct value *ret)
{
    if (call->count > 2)
        return make_local(call, CLASS_LOCAL_DATE_TIME, ret);
    NOT_NULL(0);
    NOT_NULL(1);
    return give(ret, temporal_new(call->run, CLASS_LOCAL_DATE_TIME,
                                  temporal_of(call->args[0])->seconds + temporal_of(call->args[1])->seconds,
                                  temporal_of(call->args[1])->nanos));
}

/* Makes a zoned temporal; the last argument is the zone. */
static bool zoned_of(struct call *call, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    struct value local = call->args[0];
    NOT_NULL(call->count - 1);
    if (call->count > 2 &&
        !local_date_time_of(&(struct call){call->run, call->row, call->self, call->args, call->count - 1}, &local))
        return false;
    return give(ret, in_zone(call->run, temporal_of(local), temporal_of(call_last(call)), id, true));
}

static bool zone_of(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    struct temporal *zone = temporal_new(run, id, 0, 0);
    struct problem problem;
    struct slice name = text_utf8(run, text_of(call->args[0]));
    if (id == CLASS_ZONE_OFFSET && zone_parse_offset(name, run->arena, &zone->offset, &problem) != 0)
        return run_throw(run, CLASS_DATE_TIME_EXCEPTION, "%.*s", SLICE_ARG(problem.reason));
    if (id != CLASS_ZONE_OFFSET && !set_zone(run, zone, name))
        return false;
    zone->object.class = zone->zone != NULL ? CLASS_ZONE_ID : CLASS_ZONE_OFFSET;
    return give(ret, zone);
}

static bool time_zone_of(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct temporal *zone = temporal_new(run, CLASS_TIME_ZONE, 0, 0);
    if (!set_zone(run, zone, text_utf8(run, text_of(call->args[0])))) { /* Java falls back to GMT */
        run->thrown = NULL;
        (void)set_zone(run, zone, SLICE_LIT("GMT"));
    }
    return give(ret, zone);
}

static bool zone_offset_utc(struct call *call, struct value *ret)
{
    return give(ret, temporal_new(call->run, CLASS_ZONE_OFFSET, 0, 0));
}

static bool zone_offset_of_hours(struct call *call, struct value *ret)
{
    int64_t seconds = call->args[0].i * 3600 + (call->count == 2 ? call->args[1].i * 60 : 0);
    if (seconds > 64800 || seconds < -64800)
        return run_throw(call->run, CLASS_DATE_TIME_EXCEPTION, "Zone offset not in valid range: -18:00 to +18:00");
    struct temporal *zone = temporal_new(call->run, CLASS_ZONE_OFFSET, 0, 0);
    zone->offset = (int32_t)seconds;
    return give(ret, zone);
}

static bool zone_id_text(struct call *call, struct value *ret)
{
    return give(ret, value_to_text(call->run, call->self));
}

static bool zone_total_seconds(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->offset);
}

/* Comparison */

bool is_before(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_boolean(ret, temporal_compare(temporal_of(call->self), temporal_of(call->args[0])) < 0);
}

bool is_after(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_boolean(ret, temporal_compare(temporal_of(call->self), temporal_of(call->args[0])) > 0);
}

static bool is_equal(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_boolean(ret, temporal_compare(temporal_of(call->self), temporal_of(call->args[0])) == 0);
}

/* Returns: the difference in years, else in months, else in days, which is what Java's compareTo
   gives. */
static int64_t compare_dates(const struct temporal *a, const struct temporal *b)
{
    struct civil one = temporal_civil(a), two = temporal_civil(b);
    return one.year != two.year     ? one.year - two.year
           : one.month != two.month ? one.month - two.month
                                    : one.day - two.day;
}

bool temporal_compare_to(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    const struct temporal *one = temporal_of(call->self), *two = temporal_of(call->args[0]);
    bool local = one->object.class == CLASS_LOCAL_DATE || one->object.class == CLASS_LOCAL_DATE_TIME;
    int64_t dates = local ? compare_dates(one, two) : 0;
    return give_int(ret, dates != 0 ? dates : temporal_compare(one, two));
}

bool temporal_between(struct run *run, const struct temporal *from, const struct temporal *to, int unit,
                      struct value *ret)
{
    bool dates = unit >= 7 && is_zoned(from) && is_zoned(to);
    if (dates) /* counted in the calendar of the first one's zone */
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

static bool temporal_until(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    return temporal_between(call->run, temporal_of(call->self), temporal_of(call->args[0]),
                            ((struct enumerator *)call->args[1].object)->ordinal, ret);
}

static bool local_date_of_year_day(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (!check_date(run, call->args[0].i, 1, 1))
        return false;
    struct value first[2] = {value_of(temporal_new(
        run, CLASS_LOCAL_DATE, civil_seconds(&(struct civil){.year = call->args[0].i, .month = 1, .day = 1}), 0))};
    return with_part(CALL(run, first, call->count), DAY_OF_YEAR, call->args[1].i, ret);
}

static const struct method_row temporal_methods[] = {
    {"int get(ChronoField)", BOTH, get_field_int},
    {"long getLong(ChronoField)", BOTH, get_field},
    {"String format(DateTimeFormatter)", BOTH, temporal_format},
};

static const struct method_row instant_methods[] = {
    {"static Instant EPOCH", BOTH, instant_epoch},
    {"static Instant ofEpochMilli(long)", BOTH, instant_of_milli},
    {"static Instant ofEpochSecond(long)", BOTH, instant_of_second},
    {"static Instant ofEpochSecond(long, long)", BOTH, instant_of_second},
    {"static Instant parse(CharSequence)", BOTH, temporal_parse},
    {"long toEpochMilli()", BOTH, get_epoch_milli},
    {"long getEpochSecond()", BOTH, get_epoch_second},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"ZonedDateTime atZone(ZoneId)", BOTH, at_zone},
    {"OffsetDateTime atOffset(ZoneOffset)", BOTH, at_offset},
    {"Instant plusMillis(long)", BOTH, plus_units, {2}},
    {"Instant minusMillis(long)", BOTH, minus_units, {2}},
    {"Instant plusSeconds(long)", BOTH, plus_units, {3}},
    {"Instant minusSeconds(long)", BOTH, minus_units, {3}},
    {"Instant plusNanos(long)", BOTH, plus_units, {0}},
    {"Instant minusNanos(long)", BOTH, minus_units, {0}},
    {"Instant truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"Instant plus(def)", BOTH, temporal_plus},
    {"Instant plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"Instant minus(def)", BOTH, temporal_minus},
    {"Instant minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"boolean isBefore(Instant)", BOTH, is_before},
    {"boolean isAfter(Instant)", BOTH, is_after},
    {"boolean isEqual(Instant)", BOTH, is_equal},
    {"int compareTo(Instant)", BOTH, temporal_compare_to},
};

static const struct method_row local_date_methods[] = {
    {"int getYear()", BOTH, get_part, {YEAR}},
    {"int getMonthValue()", BOTH, get_part, {MONTH_VALUE}},
    {"Month getMonth()", BOTH, get_month},
    {"int getDayOfMonth()", BOTH, get_part, {DAY_OF_MONTH}},
    {"int getDayOfYear()", BOTH, get_part, {DAY_OF_YEAR}},
    {"LocalDate plus(def)", BOTH, temporal_plus},
    {"LocalDate plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"LocalDate minus(def)", BOTH, temporal_minus},
    {"LocalDate minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"LocalDate plusDays(long)", BOTH, plus_units, {7}},
    {"LocalDate minusDays(long)", BOTH, minus_units, {7}},
    {"LocalDate plusWeeks(long)", BOTH, plus_units, {8}},
    {"LocalDate minusWeeks(long)", BOTH, minus_units, {8}},
    {"LocalDate plusMonths(long)", BOTH, plus_units, {9}},
    {"LocalDate minusMonths(long)", BOTH, minus_units, {9}},
    {"LocalDate plusYears(long)", BOTH, plus_units, {10}},
    {"LocalDate minusYears(long)", BOTH, minus_units, {10}},
    {"LocalDate withYear(int)", BOTH, set_part, {YEAR}},
    {"LocalDate withMonth(int)", BOTH, set_part, {MONTH_VALUE}},
    {"LocalDate withDayOfMonth(int)", BOTH, set_part, {DAY_OF_MONTH}},
    {"LocalDate withDayOfYear(int)", BOTH, set_part, {DAY_OF_YEAR}},
    {"boolean isBefore(LocalDate)", BOTH, is_before},
    {"boolean isAfter(LocalDate)", BOTH, is_after},
    {"boolean isEqual(LocalDate)", BOTH, is_equal},
    {"int compareTo(LocalDate)", BOTH, temporal_compare_to},
    {"static LocalDate parse(CharSequence)", BOTH, temporal_parse},
    {"static LocalDate parse(CharSequence, DateTimeFormatter)", BOTH, temporal_parse_by},
    {"DayOfWeek getDayOfWeek()", BOTH, get_day_of_week},
    {"static LocalDate of(int, int, int)", BOTH, local_date_of},
    {"static LocalDate ofEpochDay(long)", BOTH, local_date_of_epoch_day},
    {"static LocalDate ofYearDay(int, int)", BOTH, local_date_of_year_day},
    {"long toEpochDay()", BOTH, get_epoch_day},
    {"LocalDateTime atStartOfDay()", BOTH, local_date_at_start},
    {"ZonedDateTime atStartOfDay(ZoneId)", BOTH, local_date_at_start},
    {"LocalDateTime atTime(LocalTime)", BOTH, local_date_at_time},
    {"LocalDateTime atTime(int, int)", BOTH, local_date_at_time},
    {"LocalDateTime atTime(int, int, int)", BOTH, local_date_at_time},
    {"boolean isLeapYear()", BOTH, is_leap_year},
    {"int lengthOfMonth()", BOTH, length_of_month},
};

static bool local_time_second(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->seconds);
}

static bool local_time_nano(struct call *call, struct value *ret)
{
    return give_long(ret, temporal_of(call->self)->seconds * 1000000000 + temporal_of(call->self)->nanos);
}

static bool local_time_of_second(struct call *call, struct value *ret)
{
    if (call->args[0].i < 0 || call->args[0].i > 86399)
        return out_of_range(call->run, "SecondOfDay", call->args[0].i, "0 - 86399");
    return give(ret, temporal_new(call->run, CLASS_LOCAL_TIME, call->args[0].i, 0));
}

static bool local_time_of_nano(struct call *call, struct value *ret)
{
    if (call->args[0].i < 0 || call->args[0].i >= unit_nanos[7])
        return out_of_range(call->run, "NanoOfDay", call->args[0].i, "0 - 86399999999999");
    return give(ret, temporal_new(call->run, CLASS_LOCAL_TIME, call->args[0].i / 1000000000,
                                  (int32_t)(call->args[0].i % 1000000000)));
}

static bool local_time_at_date(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, temporal_as(call->run, temporal_of(call->self), CLASS_LOCAL_DATE_TIME,
                                 temporal_of(call->args[0])->seconds + temporal_of(call->self)->seconds));
}

/* Gives a constant time of day; the datum is in nanoseconds. */
static bool local_time_constant(struct call *call, struct value *ret)
{
    int64_t nanos = call->row->datum.number;
    return give(ret, temporal_new(call->run, CLASS_LOCAL_TIME, nanos / 1000000000, (int32_t)(nanos % 1000000000)));
}

static const struct method_row local_time_methods[] = {
    {"static LocalTime MIDNIGHT", BOTH, local_time_constant, {0}},
    {"static LocalTime MIN", BOTH, local_time_constant, {0}},
    {"static LocalTime NOON", BOTH, local_time_constant, {43200ll * 1000000000}},
    {"static LocalTime MAX", BOTH, local_time_constant, {86400ll * 1000000000 - 1}},
    {"static LocalTime ofSecondOfDay(long)", BOTH, local_time_of_second},
    {"static LocalTime ofNanoOfDay(long)", BOTH, local_time_of_nano},
    {"int toSecondOfDay()", BOTH, local_time_second},
    {"long toNanoOfDay()", BOTH, local_time_nano},
    {"LocalDateTime atDate(LocalDate)", BOTH, local_time_at_date},
    {"int getHour()", BOTH, get_part, {HOUR}},
    {"int getMinute()", BOTH, get_part, {MINUTE}},
    {"int getSecond()", BOTH, get_part, {SECOND}},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"LocalTime plus(def)", BOTH, temporal_plus},
    {"LocalTime plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"LocalTime minus(def)", BOTH, temporal_minus},
    {"LocalTime minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"LocalTime plusHours(long)", BOTH, plus_units, {5}},
    {"LocalTime minusHours(long)", BOTH, minus_units, {5}},
    {"LocalTime plusMinutes(long)", BOTH, plus_units, {4}},
    {"LocalTime minusMinutes(long)", BOTH, minus_units, {4}},
    {"LocalTime plusSeconds(long)", BOTH, plus_units, {3}},
    {"LocalTime minusSeconds(long)", BOTH, minus_units, {3}},
    {"LocalTime plusNanos(long)", BOTH, plus_units, {0}},
    {"LocalTime minusNanos(long)", BOTH, minus_units, {0}},
    {"LocalTime withHour(int)", BOTH, set_part, {HOUR}},
    {"LocalTime withMinute(int)", BOTH, set_part, {MINUTE}},
    {"LocalTime withSecond(int)", BOTH, set_part, {SECOND}},
    {"LocalTime withNano(int)", BOTH, set_part, {NANO}},
    {"LocalTime truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"boolean isBefore(LocalTime)", BOTH, is_before},
    {"boolean isAfter(LocalTime)", BOTH, is_after},
    {"boolean isEqual(LocalTime)", BOTH, is_equal},
    {"int compareTo(LocalTime)", BOTH, temporal_compare_to},
    {"static LocalTime parse(CharSequence)", BOTH, temporal_parse},
    {"static LocalTime parse(CharSequence, DateTimeFormatter)", BOTH, temporal_parse_by},
    {"static LocalTime of(int, int)", BOTH, local_time_of},
    {"static LocalTime of(int, int, int)", BOTH, local_time_of},
};

static const struct method_row local_date_time_methods[] = {
    {"int getYear()", BOTH, get_part, {YEAR}},
    {"int getMonthValue()", BOTH, get_part, {MONTH_VALUE}},
    {"Month getMonth()", BOTH, get_month},
    {"int getDayOfMonth()", BOTH, get_part, {DAY_OF_MONTH}},
    {"int getDayOfYear()", BOTH, get_part, {DAY_OF_YEAR}},
    {"int getHour()", BOTH, get_part, {HOUR}},
    {"int getMinute()", BOTH, get_part, {MINUTE}},
    {"int getSecond()", BOTH, get_part, {SECOND}},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"LocalDateTime plus(def)", BOTH, temporal_plus},
    {"LocalDateTime plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"LocalDateTime minus(def)", BOTH, temporal_minus},
    {"LocalDateTime minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"LocalDateTime plusDays(long)", BOTH, plus_units, {7}},
    {"LocalDateTime minusDays(long)", BOTH, minus_units, {7}},
    {"LocalDateTime plusWeeks(long)", BOTH, plus_units, {8}},
    {"LocalDateTime minusWeeks(long)", BOTH, minus_units, {8}},
    {"LocalDateTime plusMonths(long)", BOTH, plus_units, {9}},
    {"LocalDateTime minusMonths(long)", BOTH, minus_units, {9}},
    {"LocalDateTime plusYears(long)", BOTH, plus_units, {10}},
    {"LocalDateTime minusYears(long)", BOTH, minus_units, {10}},
    {"LocalDateTime withYear(int)", BOTH, set_part, {YEAR}},
    {"LocalDateTime withMonth(int)", BOTH, set_part, {MONTH_VALUE}},
    {"LocalDateTime withDayOfMonth(int)", BOTH, set_part, {DAY_OF_MONTH}},
    {"LocalDateTime withDayOfYear(int)", BOTH, set_part, {DAY_OF_YEAR}},
    {"long toEpochSecond(ZoneOffset)", BOTH, local_epoch_second},
    {"LocalDateTime plusHours(long)", BOTH, plus_units, {5}},
    {"LocalDateTime minusHours(long)", BOTH, minus_units, {5}},
    {"LocalDateTime plusMinutes(long)", BOTH, plus_units, {4}},
    {"LocalDateTime minusMinutes(long)", BOTH, minus_units, {4}},
    {"LocalDateTime plusSeconds(long)", BOTH, plus_units, {3}},
    {"LocalDateTime minusSeconds(long)", BOTH, minus_units, {3}},
    {"LocalDateTime plusNanos(long)", BOTH, plus_units, {0}},
    {"LocalDateTime minusNanos(long)", BOTH, minus_units, {0}},
    {"LocalDateTime withHour(int)", BOTH, set_part, {HOUR}},
    {"LocalDateTime withMinute(int)", BOTH, set_part, {MINUTE}},
    {"LocalDateTime withSecond(int)", BOTH, set_part, {SECOND}},
    {"LocalDateTime withNano(int)", BOTH, set_part, {NANO}},
    {"LocalDateTime truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"boolean isBefore(LocalDateTime)", BOTH, is_before},
    {"boolean isAfter(LocalDateTime)", BOTH, is_after},
    {"boolean isEqual(LocalDateTime)", BOTH, is_equal},
    {"int compareTo(LocalDateTime)", BOTH, temporal_compare_to},
    {"static LocalDateTime parse(CharSequence)", BOTH, temporal_parse},
    {"static LocalDateTime parse(CharSequence, DateTimeFormatter)", BOTH, temporal_parse_by},
    {"DayOfWeek getDayOfWeek()", BOTH, get_day_of_week},
    {"static LocalDateTime of(LocalDate, LocalTime)", BOTH, local_date_time_of},
    {"static LocalDateTime of(int, int, int, int, int)", BOTH, local_date_time_of},
    {"static LocalDateTime of(int, int, int, int, int, int)", BOTH, local_date_time_of},
    {"static LocalDateTime ofInstant(Instant, ZoneId)", BOTH, zoned_of_instant},
    {"ZonedDateTime atZone(ZoneId)", BOTH, at_zone},
    {"OffsetDateTime atOffset(ZoneOffset)", BOTH, at_offset},
    {"LocalDate toLocalDate()", BOTH, to_local_date},
    {"LocalTime toLocalTime()", BOTH, to_local_time},
};

static const struct method_row zoned_methods[] = {
    {"int getYear()", BOTH, get_part, {YEAR}},
    {"int getMonthValue()", BOTH, get_part, {MONTH_VALUE}},
    {"Month getMonth()", BOTH, get_month},
    {"int getDayOfMonth()", BOTH, get_part, {DAY_OF_MONTH}},
    {"int getDayOfYear()", BOTH, get_part, {DAY_OF_YEAR}},
    {"int getHour()", BOTH, get_part, {HOUR}},
    {"int getMinute()", BOTH, get_part, {MINUTE}},
    {"int getSecond()", BOTH, get_part, {SECOND}},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"ZonedDateTime plus(def)", BOTH, temporal_plus},
    {"ZonedDateTime plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"ZonedDateTime minus(def)", BOTH, temporal_minus},
    {"ZonedDateTime minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"ZonedDateTime plusDays(long)", BOTH, plus_units, {7}},
    {"ZonedDateTime minusDays(long)", BOTH, minus_units, {7}},
    {"ZonedDateTime plusWeeks(long)", BOTH, plus_units, {8}},
    {"ZonedDateTime minusWeeks(long)", BOTH, minus_units, {8}},
    {"ZonedDateTime plusMonths(long)", BOTH, plus_units, {9}},
    {"ZonedDateTime minusMonths(long)", BOTH, minus_units, {9}},
    {"ZonedDateTime plusYears(long)", BOTH, plus_units, {10}},
    {"ZonedDateTime minusYears(long)", BOTH, minus_units, {10}},
    {"ZonedDateTime withYear(int)", BOTH, set_part, {YEAR}},
    {"ZonedDateTime withMonth(int)", BOTH, set_part, {MONTH_VALUE}},
    {"ZonedDateTime withDayOfMonth(int)", BOTH, set_part, {DAY_OF_MONTH}},
    {"ZonedDateTime withDayOfYear(int)", BOTH, set_part, {DAY_OF_YEAR}},
    {"ZonedDateTime plusHours(long)", BOTH, plus_units, {5}},
    {"ZonedDateTime minusHours(long)", BOTH, minus_units, {5}},
    {"ZonedDateTime plusMinutes(long)", BOTH, plus_units, {4}},
    {"ZonedDateTime minusMinutes(long)", BOTH, minus_units, {4}},
    {"ZonedDateTime plusSeconds(long)", BOTH, plus_units, {3}},
    {"ZonedDateTime minusSeconds(long)", BOTH, minus_units, {3}},
    {"ZonedDateTime plusNanos(long)", BOTH, plus_units, {0}},
    {"ZonedDateTime minusNanos(long)", BOTH, minus_units, {0}},
    {"ZonedDateTime withHour(int)", BOTH, set_part, {HOUR}},
    {"ZonedDateTime withMinute(int)", BOTH, set_part, {MINUTE}},
    {"ZonedDateTime withSecond(int)", BOTH, set_part, {SECOND}},
    {"ZonedDateTime withNano(int)", BOTH, set_part, {NANO}},
    {"ZonedDateTime truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"boolean isBefore(ZonedDateTime)", BOTH, is_before},
    {"boolean isAfter(ZonedDateTime)", BOTH, is_after},
    {"boolean isEqual(ZonedDateTime)", BOTH, is_equal},
    {"int compareTo(ZonedDateTime)", BOTH, temporal_compare_to},
    {"static ZonedDateTime parse(CharSequence)", BOTH, temporal_parse},
    {"static ZonedDateTime parse(CharSequence, DateTimeFormatter)", BOTH, temporal_parse_by},
    {"DayOfWeek getDayOfWeek()", BOTH, get_day_of_week},
    {"static ZonedDateTime ofInstant(Instant, ZoneId)", BOTH, zoned_of_instant},
    {"Instant toInstant()", BOTH, to_instant},
    {"long toEpochSecond()", BOTH, get_epoch_second},
    {"LocalDate toLocalDate()", BOTH, to_local_date},
    {"LocalTime toLocalTime()", BOTH, to_local_time},
    {"LocalDateTime toLocalDateTime()", BOTH, to_local_date_time},
    {"ZoneOffset getOffset()", BOTH, get_offset},
    {"static ZonedDateTime of(LocalDate, LocalTime, ZoneId)", BOTH, zoned_of},
    {"static ZonedDateTime of(LocalDateTime, ZoneId)", BOTH, zoned_of},
    {"static ZonedDateTime of(int, int, int, int, int, int, int, ZoneId)", BOTH, zoned_of},
    {"ZoneId getZone()", BOTH, get_zone},
    {"OffsetDateTime toOffsetDateTime()", BOTH, to_offset_time},
    {"ZonedDateTime withZoneSameInstant(ZoneId)", BOTH, with_zone_same_instant},
    {"ZonedDateTime withZoneSameLocal(ZoneId)", BOTH, with_zone_same_local},
};

static const struct method_row offset_time_methods[] = {
    {"int getYear()", BOTH, get_part, {YEAR}},
    {"int getMonthValue()", BOTH, get_part, {MONTH_VALUE}},
    {"Month getMonth()", BOTH, get_month},
    {"int getDayOfMonth()", BOTH, get_part, {DAY_OF_MONTH}},
    {"int getDayOfYear()", BOTH, get_part, {DAY_OF_YEAR}},
    {"int getHour()", BOTH, get_part, {HOUR}},
    {"int getMinute()", BOTH, get_part, {MINUTE}},
    {"int getSecond()", BOTH, get_part, {SECOND}},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"OffsetDateTime plus(def)", BOTH, temporal_plus},
    {"OffsetDateTime plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"OffsetDateTime minus(def)", BOTH, temporal_minus},
    {"OffsetDateTime minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"OffsetDateTime plusDays(long)", BOTH, plus_units, {7}},
    {"OffsetDateTime minusDays(long)", BOTH, minus_units, {7}},
    {"OffsetDateTime plusWeeks(long)", BOTH, plus_units, {8}},
    {"OffsetDateTime minusWeeks(long)", BOTH, minus_units, {8}},
    {"OffsetDateTime plusMonths(long)", BOTH, plus_units, {9}},
    {"OffsetDateTime minusMonths(long)", BOTH, minus_units, {9}},
    {"OffsetDateTime plusYears(long)", BOTH, plus_units, {10}},
    {"OffsetDateTime minusYears(long)", BOTH, minus_units, {10}},
    {"OffsetDateTime withYear(int)", BOTH, set_part, {YEAR}},
    {"OffsetDateTime withMonth(int)", BOTH, set_part, {MONTH_VALUE}},
    {"OffsetDateTime withDayOfMonth(int)", BOTH, set_part, {DAY_OF_MONTH}},
    {"OffsetDateTime withDayOfYear(int)", BOTH, set_part, {DAY_OF_YEAR}},
    {"OffsetDateTime plusHours(long)", BOTH, plus_units, {5}},
    {"OffsetDateTime minusHours(long)", BOTH, minus_units, {5}},
    {"OffsetDateTime plusMinutes(long)", BOTH, plus_units, {4}},
    {"OffsetDateTime minusMinutes(long)", BOTH, minus_units, {4}},
    {"OffsetDateTime plusSeconds(long)", BOTH, plus_units, {3}},
    {"OffsetDateTime minusSeconds(long)", BOTH, minus_units, {3}},
    {"OffsetDateTime plusNanos(long)", BOTH, plus_units, {0}},
    {"OffsetDateTime minusNanos(long)", BOTH, minus_units, {0}},
    {"OffsetDateTime withHour(int)", BOTH, set_part, {HOUR}},
    {"OffsetDateTime withMinute(int)", BOTH, set_part, {MINUTE}},
    {"OffsetDateTime withSecond(int)", BOTH, set_part, {SECOND}},
    {"OffsetDateTime withNano(int)", BOTH, set_part, {NANO}},
    {"OffsetDateTime truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"boolean isBefore(OffsetDateTime)", BOTH, is_before},
    {"boolean isAfter(OffsetDateTime)", BOTH, is_after},
    {"boolean isEqual(OffsetDateTime)", BOTH, is_equal},
    {"int compareTo(OffsetDateTime)", BOTH, temporal_compare_to},
    {"static OffsetDateTime parse(CharSequence)", BOTH, temporal_parse},
    {"static OffsetDateTime parse(CharSequence, DateTimeFormatter)", BOTH, temporal_parse_by},
    {"DayOfWeek getDayOfWeek()", BOTH, get_day_of_week},
    {"static OffsetDateTime ofInstant(Instant, ZoneId)", BOTH, zoned_of_instant},
    {"Instant toInstant()", BOTH, to_instant},
    {"long toEpochSecond()", BOTH, get_epoch_second},
    {"LocalDate toLocalDate()", BOTH, to_local_date},
    {"LocalTime toLocalTime()", BOTH, to_local_time},
    {"LocalDateTime toLocalDateTime()", BOTH, to_local_date_time},
    {"ZoneOffset getOffset()", BOTH, get_offset},
    {"static OffsetDateTime of(LocalDateTime, ZoneOffset)", BOTH, zoned_of},
    {"static OffsetDateTime of(int, int, int, int, int, int, int, ZoneOffset)", BOTH, zoned_of},
    {"ZonedDateTime atZoneSameInstant(ZoneId)", BOTH, at_zone},
    {"ZonedDateTime toZonedDateTime()", BOTH, to_zoned},
    {"OffsetDateTime withOffsetSameInstant(ZoneOffset)", BOTH, with_zone_same_instant},
    {"OffsetDateTime withOffsetSameLocal(ZoneOffset)", BOTH, with_zone_same_local},
};

/* The class of doc['date'].value: ZonedDateTime with the methods of Joda's DateTime. */
static const struct method_row doc_date_methods[] = {
    {"int getYear()", BOTH, get_part, {YEAR}},
    {"int getMonthValue()", BOTH, get_part, {MONTH_VALUE}},
    {"Month getMonth()", BOTH, get_month},
    {"int getDayOfMonth()", BOTH, get_part, {DAY_OF_MONTH}},
    {"int getDayOfYear()", BOTH, get_part, {DAY_OF_YEAR}},
    {"int getHour()", BOTH, get_part, {HOUR}},
    {"int getMinute()", BOTH, get_part, {MINUTE}},
    {"int getSecond()", BOTH, get_part, {SECOND}},
    {"int getNano()", BOTH, get_part, {NANO}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plus(def)", BOTH, temporal_plus},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plus(long, ChronoUnit)", BOTH, temporal_plus},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minus(def)", BOTH, temporal_minus},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minus(long, ChronoUnit)", BOTH, temporal_minus},
    {"long until(Temporal, ChronoUnit)", BOTH, temporal_until},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusDays(long)", BOTH, plus_units, {7}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusDays(long)", BOTH, minus_units, {7}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusWeeks(long)", BOTH, plus_units, {8}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusWeeks(long)", BOTH, minus_units, {8}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusMonths(long)", BOTH, plus_units, {9}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusMonths(long)", BOTH, minus_units, {9}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusYears(long)", BOTH, plus_units, {10}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusYears(long)", BOTH, minus_units, {10}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withYear(int)", BOTH, set_part, {YEAR}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withMonth(int)", BOTH, set_part, {MONTH_VALUE}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withDayOfMonth(int)", BOTH, set_part, {DAY_OF_MONTH}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withDayOfYear(int)", BOTH, set_part, {DAY_OF_YEAR}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusHours(long)", BOTH, plus_units, {5}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusHours(long)", BOTH, minus_units, {5}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusMinutes(long)", BOTH, plus_units, {4}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusMinutes(long)", BOTH, minus_units, {4}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusSeconds(long)", BOTH, plus_units, {3}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusSeconds(long)", BOTH, minus_units, {3}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime plusNanos(long)", BOTH, plus_units, {0}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime minusNanos(long)", BOTH, minus_units, {0}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withHour(int)", BOTH, set_part, {HOUR}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withMinute(int)", BOTH, set_part, {MINUTE}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withSecond(int)", BOTH, set_part, {SECOND}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime withNano(int)", BOTH, set_part, {NANO}},
    {"org.elasticsearch.script.JodaCompatibleZonedDateTime truncatedTo(ChronoUnit)", BOTH, truncated_to},
    {"boolean isBefore(Temporal)", BOTH, is_before},
    {"boolean isAfter(Temporal)", BOTH, is_after},
    {"boolean isEqual(Temporal)", BOTH, is_equal},
    {"ZonedDateTime withZoneSameInstant(ZoneId)", BOTH, doc_date_in_zone},
    {"ZoneOffset getOffset()", BOTH, get_offset},
    {"ZoneId getZone()", BOTH, get_zone},
    {"long getMillis()", BOTH, get_epoch_milli},
    {"Instant toInstant()", BOTH, to_instant},
    {"long toEpochSecond()", BOTH, get_epoch_second},
    {"LocalDate toLocalDate()", BOTH, to_local_date},
    {"LocalDateTime toLocalDateTime()", BOTH, to_local_date_time},
    {"int getDayOfWeek()", BOTH, get_day_of_week_number},
    {"DayOfWeek getDayOfWeekEnum()", BOTH, get_day_of_week},
    {"int getHourOfDay()", BOTH, get_part, {HOUR}},
    {"int getMinuteOfHour()", BOTH, get_part, {MINUTE}},
    {"int getSecondOfMinute()", BOTH, get_part, {SECOND}},
    {"int getMonthOfYear()", BOTH, get_part, {MONTH_VALUE}},
};

static const struct method_row zone_methods[] = {
    {"static ZoneId of(String)", BOTH, zone_of},
    {"String getId()", BOTH, zone_id_text},
    {"static ZoneId systemDefault()", BOTH, zone_offset_utc},
};

static const struct method_row time_zone_methods[] = {
    {"static TimeZone getTimeZone(String)", BOTH, time_zone_of},
    {"String getID()", BOTH, zone_id_text},
};

static const struct method_row zone_offset_methods[] = {
    {"static ZoneOffset UTC", BOTH, zone_offset_utc},
    {"static ZoneOffset of(String)", BOTH, zone_of},
    {"static ZoneOffset ofHours(int)", BOTH, zone_offset_of_hours},
    {"static ZoneOffset ofHoursMinutes(int, int)", BOTH, zone_offset_of_hours},
    {"int getTotalSeconds()", BOTH, zone_total_seconds},
};

const struct method_table methods_time[] = {
    METHOD_ROWS(TEMPORAL, temporal_methods),
    METHOD_ROWS(INSTANT, instant_methods),
    METHOD_ROWS(LOCAL_DATE, local_date_methods),
    METHOD_ROWS(LOCAL_TIME, local_time_methods),
    METHOD_ROWS(LOCAL_DATE_TIME, local_date_time_methods),
    METHOD_ROWS(ZONED_DATE_TIME, zoned_methods),
    METHOD_ROWS(OFFSET_DATE_TIME, offset_time_methods),
    METHOD_ROWS(DOC_DATE_TIME, doc_date_methods),
    METHOD_ROWS(ZONE_ID, zone_methods),
    METHOD_ROWS(ZONE_OFFSET, zone_offset_methods),
    METHOD_ROWS(TIME_ZONE, time_zone_methods),
    {0},
};
