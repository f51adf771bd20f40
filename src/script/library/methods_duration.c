/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Duration, Period and ChronoUnit. */
#include "script/library/method_time.h"

/* Duration */

static bool duration_give(struct run *run, __int128 nanos, struct value *ret)
{
    __int128 limit = (__int128)TEMPORAL_SECONDS_MAX * 200 * 1000000000;
    if (nanos > limit || nanos < -limit)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    int64_t seconds = (int64_t)(nanos / 1000000000), rest = (int64_t)(nanos % 1000000000);
    return give(ret, temporal_new(run, CLASS_DURATION, seconds, (int32_t)rest));
}

static __int128 duration_nanos(const struct temporal *duration)
{
    return (__int128)duration->seconds * 1000000000 + duration->nanos;
}

/* Returns: the length of a unit in nanoseconds; the datum is its index in unit_nanos. */
static __int128 unit_of(const struct call *call)
{
    return unit_nanos[call->row->datum.number];
}

static bool duration_of_units(struct call *call, struct value *ret)
{
    return duration_give(call->run, call->args[0].i * unit_of(call), ret);
}

static bool duration_to_units(struct call *call, struct value *ret)
{
    return give_long(ret, (int64_t)(duration_nanos(temporal_of(call->self)) / unit_of(call)));
}

static bool duration_subtract(struct call *call, struct value *ret)
{
    return duration_give(call->run, duration_nanos(temporal_of(call->self)) - call->args[0].i * unit_of(call), ret);
}

static bool duration_add(struct call *call, struct value *ret)
{
    return duration_give(call->run, duration_nanos(temporal_of(call->self)) + call->args[0].i * unit_of(call), ret);
}

static bool duration_between(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    __int128 nanos =
        (__int128)(instant_of(temporal_of(call->args[1])) - instant_of(temporal_of(call->args[0]))) * 1000000000 +
        (temporal_of(call->args[1])->nanos - temporal_of(call->args[0])->nanos);
    return duration_give(call->run, nanos, ret);
}

static bool duration_plus(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return duration_give(call->run,
                         duration_nanos(temporal_of(call->self)) + duration_nanos(temporal_of(call->args[0])), ret);
}

static bool duration_minus(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return duration_give(call->run,
                         duration_nanos(temporal_of(call->self)) - duration_nanos(temporal_of(call->args[0])), ret);
}

static bool duration_multiplied(struct call *call, struct value *ret)
{
    if (call->args[0].i > 1000000000 || call->args[0].i < -1000000000)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "long overflow");
    return duration_give(call->run, duration_nanos(temporal_of(call->self)) * call->args[0].i, ret);
}

static bool duration_divided(struct call *call, struct value *ret)
{
    if (call->args[0].i == 0)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "Cannot divide by zero");
    return duration_give(call->run, duration_nanos(temporal_of(call->self)) / call->args[0].i, ret);
}

static bool duration_abs(struct call *call, struct value *ret)
{
    __int128 nanos = duration_nanos(temporal_of(call->self));
    return duration_give(call->run, nanos < 0 ? -nanos : nanos, ret);
}

/* Gives a count of a ChronoUnit in nanoseconds. Units longer than a day throw: their length is
   not fixed. */
static bool duration_in_units(struct run *run, int64_t count, struct value unit, __int128 *ret_nanos)
{
    int ordinal = ((struct enumerator *)unit.object)->ordinal;
    if (ordinal > 7)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unit must not have an estimated duration");
    *ret_nanos = (__int128)count * unit_nanos[ordinal];
    return true;
}

static bool duration_of(struct call *call, struct value *ret)
{
    NOT_NULL(1);
    __int128 nanos = 0;
    return duration_in_units(call->run, call->args[0].i, call->args[1], &nanos) && duration_give(call->run, nanos, ret);
}

static bool duration_plus_units(struct call *call, struct value *ret)
{
    NOT_NULL(1);
    __int128 nanos = 0;
    return duration_in_units(call->run, call->args[0].i, call->args[1], &nanos) &&
           duration_give(call->run, duration_nanos(temporal_of(call->self)) + nanos, ret);
}

static bool duration_minus_units(struct call *call, struct value *ret)
{
    NOT_NULL(1);
    __int128 nanos = 0;
    return duration_in_units(call->run, call->args[0].i, call->args[1], &nanos) &&
           duration_give(call->run, duration_nanos(temporal_of(call->self)) - nanos, ret);
}

/* Parsing of "P2DT3H4.5S": numbers, each followed by the letter of its unit */

#define AMOUNT_MAX 999999999 /* limit of a number with a unit */

static bool scan_sign(struct scan *scan)
{
    bool negative = scan_char(scan, '-');
    if (!negative)
        scan_char(scan, '+');
    return negative;
}

static bool scan_letter(struct scan *scan, char upper)
{
    return scan_char(scan, upper) || scan_char(scan, (char)(upper | 0x20));
}

/* Reads a number if its unit is in `units`; else reads nothing and returns false. *ret_unit is
   the unit's index. */
static bool scan_amount(struct scan *scan, const char *units, int64_t *ret_amount, int32_t *ret_nanos, size_t *ret_unit)
{
    struct scan ahead = *scan;
    bool negative = scan_sign(&ahead);
    int64_t amount = scan_digits(&ahead, 1, 9);
    *ret_nanos = 0;
    if (!ahead.failed && (scan_char(&ahead, '.') || scan_char(&ahead, ','))) {
        size_t begin = ahead.at;
        int64_t part = scan_digits(&ahead, 0, 9);
        for (size_t digits = ahead.at - begin; digits < 9; digits++)
            part *= 10;
        *ret_nanos = (int32_t)(negative ? -part : part);
    }
    *ret_amount = negative ? -amount : amount;
    for (*ret_unit = 0; !ahead.failed && units[*ret_unit] != '\0'; ++*ret_unit)
        if (scan_letter(&ahead, units[*ret_unit])) {
            *scan = ahead;
            return true;
        }
    return false;
}

static bool throw_unreadable(struct run *run, const char *what)
{
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text cannot be parsed to a %s", what);
}

/* Adds up the amounts in one part of the text. Units must be in the order of `units`; only
   seconds may have a fraction. */
static bool scan_part(struct scan *scan, const char *units, const int64_t *nanos, __int128 *total, bool *ret_any)
{
    size_t next = 0, unit;
    int64_t amount;
    int32_t fraction;
    while (scan_amount(scan, units + next, &amount, &fraction, &unit)) {
        if (fraction != 0 && units[next + unit] != 'S')
            return false;
        *total += (__int128)amount * nanos[next + unit] + fraction;
        next += unit + 1;
        *ret_any = true;
    }
    return true;
}

static bool duration_parse(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    static const int64_t days[] = {86400000000000}, times[] = {3600000000000, 60000000000, 1000000000};
    struct text *text = value_to_text(run, call->args[0]);
    if (text == NULL)
        return false;
    struct scan scan = {.text = text_utf8(run, text)};
    bool negative = scan_sign(&scan), any = false, timed = false;
    __int128 total = 0;
    if (!scan_letter(&scan, 'P') || !scan_part(&scan, "D", days, &total, &any))
        return throw_unreadable(run, "Duration");
    if (scan_letter(&scan, 'T') && (!scan_part(&scan, "HMS", times, &total, &timed) || !timed))
        return throw_unreadable(run, "Duration");
    if (!(any || timed) || scan.at != scan.text.len)
        return throw_unreadable(run, "Duration");
    return duration_give(run, negative ? -total : total, ret);
}

static bool duration_negated(struct call *call, struct value *ret)
{
    return duration_give(call->run, -duration_nanos(temporal_of(call->self)), ret);
}

static bool duration_get_seconds(struct call *call, struct value *ret)
{
    return give_long(ret, temporal_of(call->self)->seconds);
}

static bool duration_get_nano(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->nanos);
}

static bool duration_is_negative(struct call *call, struct value *ret)
{
    return give_boolean(ret, temporal_of(call->self)->seconds < 0);
}

static bool duration_is_zero(struct call *call, struct value *ret)
{
    return give_boolean(ret, temporal_of(call->self)->seconds == 0 && temporal_of(call->self)->nanos == 0);
}

static bool duration_zero(struct call *call, struct value *ret)
{
    return duration_give(call->run, 0, ret);
}

/* Period */

static bool period_give(struct run *run, int64_t years, int64_t months, int64_t period_days, struct value *ret)
{
    if (years != (int32_t)years || months != (int32_t)months || period_days != (int32_t)period_days)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "integer overflow");
    struct temporal *period = temporal_new(run, CLASS_PERIOD, 0, 0);
    period->years = (int32_t)years;
    period->months = (int32_t)months;
    period->days = (int32_t)period_days;
    return give(ret, period);
}

static bool period_zero(struct call *call, struct value *ret)
{
    return period_give(call->run, 0, 0, 0, ret);
}

static bool period_parse(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct text *text = value_to_text(run, call->args[0]);
    if (text == NULL)
        return false;
    struct scan scan = {.text = text_utf8(run, text)};
    int64_t sign = scan_sign(&scan) ? -1 : 1, amounts[4] = {0}, amount;
    size_t next = 0, unit;
    int32_t fraction = 0;
    if (!scan_letter(&scan, 'P'))
        return throw_unreadable(run, "Period");
    while (fraction == 0 && scan_amount(&scan, &"YMWD"[next], &amount, &fraction, &unit)) {
        next += unit + 1;
        amounts[next - 1] = sign * amount;
    }
    if (next == 0 || fraction != 0 || scan.at != scan.text.len)
        return throw_unreadable(run, "Period");
    return period_give(run, amounts[0], amounts[1], amounts[2] * 7 + amounts[3], ret);
}

/* Gives a period whose parts are multiplied by `factor`, then increased by `more`. */
static bool period_changed(struct run *run, const struct temporal *period, int64_t factor, const int64_t more[3],
                           struct value *ret)
{
    return period_give(run, period->years * factor + more[0], period->months * factor + more[1],
                       period->days * factor + more[2], ret);
}

static bool period_multiplied(struct call *call, struct value *ret)
{
    return period_changed(call->run, temporal_of(call->self), call->args[0].i, (int64_t[3]){0}, ret);
}

static bool period_negated(struct call *call, struct value *ret)
{
    return period_changed(call->run, temporal_of(call->self), -1, (int64_t[3]){0}, ret);
}

/* The datum: 0 for years, 1 for months, 2 for days. */
static bool period_plus_units(struct call *call, struct value *ret)
{
    int64_t i = call->args[0].i, more[3] = {0};
    more[call->row->datum.number] = i > INT32_MAX ? INT32_MAX + 1ll : i < INT32_MIN ? INT32_MIN - 1ll : i;
    return period_changed(call->run, temporal_of(call->self), 1, more, ret);
}

static bool period_minus_units(struct call *call, struct value *ret)
{
    int64_t i = call->args[0].i;
    call->args[0].i = i < -INT32_MAX ? INT32_MAX + 1ll : -i;
    return period_plus_units(call, ret);
}

static bool period_add(struct run *run, const struct temporal *period, const struct temporal *more, int64_t sign,
                       struct value *ret)
{
    return period_changed(run, period, 1, (int64_t[3]){sign * more->years, sign * more->months, sign * more->days},
                          ret);
}

static bool period_plus(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return period_add(call->run, temporal_of(call->self), temporal_of(call->args[0]), 1, ret);
}

static bool period_minus(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return period_add(call->run, temporal_of(call->self), temporal_of(call->args[0]), -1, ret);
}

static bool period_total_months(struct call *call, struct value *ret)
{
    return give_long(ret, (int64_t)temporal_of(call->self)->years * 12 + temporal_of(call->self)->months);
}

/* Carries months beyond 11 over into years; days do not change. */
static bool period_normalized(struct call *call, struct value *ret)
{
    int64_t total = (int64_t)temporal_of(call->self)->years * 12 + temporal_of(call->self)->months;
    return period_give(call->run, total / 12, total % 12, temporal_of(call->self)->days, ret);
}

static bool period_is_negative(struct call *call, struct value *ret)
{
    return give_boolean(ret, temporal_of(call->self)->years < 0 || temporal_of(call->self)->months < 0 ||
                                 temporal_of(call->self)->days < 0);
}

static bool period_is_zero(struct call *call, struct value *ret)
{
    return give_boolean(ret, temporal_of(call->self)->years == 0 && temporal_of(call->self)->months == 0 &&
                                 temporal_of(call->self)->days == 0);
}

static bool period_of(struct call *call, struct value *ret)
{
    return period_give(call->run, call->args[0].i, call->args[1].i, call->args[2].i, ret);
}

static bool period_of_days(struct call *call, struct value *ret)
{
    return period_give(call->run, 0, 0, call->args[0].i, ret);
}

static bool period_of_weeks(struct call *call, struct value *ret)
{
    return period_give(call->run, 0, 0, call->args[0].i * 7, ret);
}

static bool period_of_months(struct call *call, struct value *ret)
{
    return period_give(call->run, 0, call->args[0].i, 0, ret);
}

static bool period_of_years(struct call *call, struct value *ret)
{
    return period_give(call->run, call->args[0].i, 0, 0, ret);
}

static bool period_between(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    struct value moved;
    int64_t months = months_between(temporal_of(call->args[0]), temporal_of(call->args[1]));
    if (!add_months(call->run, temporal_of(call->args[0]), months, &moved))
        return false;
    return period_give(call->run, months / 12, months % 12,
                       (temporal_of(call->args[1])->seconds - temporal_of(moved)->seconds) / 86400, ret);
}

static bool period_get_days(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->days);
}

static bool period_get_months(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->months);
}

static bool period_get_years(struct call *call, struct value *ret)
{
    return give_int(ret, temporal_of(call->self)->years);
}

static bool unit_between(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    return temporal_between(call->run, temporal_of(call->args[0]), temporal_of(call->args[1]),
                            ((struct enumerator *)call->self.object)->ordinal, ret);
}

static const struct method_row duration_methods[] = {
    {"static Duration ZERO", BOTH, duration_zero},
    {"static Duration ofNanos(long)", BOTH, duration_of_units, {0}},
    {"long toNanos()", BOTH, duration_to_units, {0}},
    {"Duration plusNanos(long)", BOTH, duration_add, {0}},
    {"Duration minusNanos(long)", BOTH, duration_subtract, {0}},
    {"static Duration ofMillis(long)", BOTH, duration_of_units, {2}},
    {"long toMillis()", BOTH, duration_to_units, {2}},
    {"Duration plusMillis(long)", BOTH, duration_add, {2}},
    {"Duration minusMillis(long)", BOTH, duration_subtract, {2}},
    {"static Duration ofSeconds(long)", BOTH, duration_of_units, {3}},
    {"long toSeconds()", BOTH, duration_to_units, {3}},
    {"Duration plusSeconds(long)", BOTH, duration_add, {3}},
    {"Duration minusSeconds(long)", BOTH, duration_subtract, {3}},
    {"static Duration ofMinutes(long)", BOTH, duration_of_units, {4}},
    {"long toMinutes()", BOTH, duration_to_units, {4}},
    {"Duration plusMinutes(long)", BOTH, duration_add, {4}},
    {"Duration minusMinutes(long)", BOTH, duration_subtract, {4}},
    {"static Duration ofHours(long)", BOTH, duration_of_units, {5}},
    {"long toHours()", BOTH, duration_to_units, {5}},
    {"Duration plusHours(long)", BOTH, duration_add, {5}},
    {"Duration minusHours(long)", BOTH, duration_subtract, {5}},
    {"static Duration ofDays(long)", BOTH, duration_of_units, {7}},
    {"long toDays()", BOTH, duration_to_units, {7}},
    {"Duration plusDays(long)", BOTH, duration_add, {7}},
    {"Duration minusDays(long)", BOTH, duration_subtract, {7}},
    {"static Duration parse(CharSequence)", BOTH, duration_parse},
    {"static Duration of(long, ChronoUnit)", BOTH, duration_of},
    {"Duration plus(long, ChronoUnit)", BOTH, duration_plus_units},
    {"Duration minus(long, ChronoUnit)", BOTH, duration_minus_units},
    {"Duration dividedBy(long)", BOTH, duration_divided},
    {"Duration abs()", BOTH, duration_abs},
    {"static Duration between(Temporal, Temporal)", BOTH, duration_between},
    {"Duration plus(Duration)", BOTH, duration_plus},
    {"Duration minus(Duration)", BOTH, duration_minus},
    {"Duration multipliedBy(long)", BOTH, duration_multiplied},
    {"Duration negated()", BOTH, duration_negated},
    {"long getSeconds()", BOTH, duration_get_seconds},
    {"int getNano()", BOTH, duration_get_nano},
    {"boolean isNegative()", BOTH, duration_is_negative},
    {"boolean isZero()", BOTH, duration_is_zero},
    {"int compareTo(Duration)", BOTH, temporal_compare_to},
};

static const struct method_row period_methods[] = {
    {"static Period of(int, int, int)", BOTH, period_of},
    {"static Period ofDays(int)", BOTH, period_of_days},
    {"static Period ofWeeks(int)", BOTH, period_of_weeks},
    {"static Period ofMonths(int)", BOTH, period_of_months},
    {"static Period ofYears(int)", BOTH, period_of_years},
    {"static Period ZERO", BOTH, period_zero},
    {"static Period parse(CharSequence)", BOTH, period_parse},
    {"Period plusYears(long)", BOTH, period_plus_units, {0}},
    {"Period plusMonths(long)", BOTH, period_plus_units, {1}},
    {"Period plusDays(long)", BOTH, period_plus_units, {2}},
    {"Period minusYears(long)", BOTH, period_minus_units, {0}},
    {"Period minusMonths(long)", BOTH, period_minus_units, {1}},
    {"Period minusDays(long)", BOTH, period_minus_units, {2}},
    {"Period plus(Period)", BOTH, period_plus},
    {"Period minus(Period)", BOTH, period_minus},
    {"Period multipliedBy(int)", BOTH, period_multiplied},
    {"Period negated()", BOTH, period_negated},
    {"Period normalized()", BOTH, period_normalized},
    {"long toTotalMonths()", BOTH, period_total_months},
    {"boolean isNegative()", BOTH, period_is_negative},
    {"boolean isZero()", BOTH, period_is_zero},
    {"static Period between(LocalDate, LocalDate)", BOTH, period_between},
    {"int getDays()", BOTH, period_get_days},
    {"int getMonths()", BOTH, period_get_months},
    {"int getYears()", BOTH, period_get_years},
};

static const struct method_row chrono_unit_methods[] = {
    {"static ChronoUnit valueOf(String)", BOTH, enum_of_name},
    {"long between(Temporal, Temporal)", BOTH, unit_between},
};

const struct method_table methods_duration[] = {
    METHOD_ROWS(DURATION, duration_methods),
    METHOD_ROWS(PERIOD, period_methods),
    METHOD_ROWS(CHRONO_UNIT, chrono_unit_methods),
    {0},
};
