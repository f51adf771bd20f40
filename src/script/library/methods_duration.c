/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Duration, Period and ChronoUnit. */
#include "script/library/method_time.h"

/* Duration */

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

#define DURATION(name, unit)                                                                                   \
    static bool duration_of_##name(struct run *run, struct value *a, unsigned n, struct value *ret)            \
    {                                                                                                          \
        (void)n;                                                                                               \
        return duration_give(run, (__int128)a[1].i * unit_nanos[unit], ret);                                   \
    }                                                                                                          \
    static bool duration_to_##name(struct run *run, struct value *a, unsigned n, struct value *ret)            \
    {                                                                                                          \
        (void)run, (void)n;                                                                                    \
        __int128 nanos = duration_nanos(moment_of(a[0]));                                                      \
        return give_long(ret, (int64_t)(nanos / unit_nanos[unit]));                                            \
    }                                                                                                          \
    static bool duration_minus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)         \
    {                                                                                                          \
        (void)n;                                                                                               \
        return duration_give(run, duration_nanos(moment_of(a[0])) - (__int128)a[1].i * unit_nanos[unit], ret); \
    }                                                                                                          \
    static bool duration_plus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)          \
    {                                                                                                          \
        (void)n;                                                                                               \
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

static bool duration_divided(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Cannot divide by zero");
    return duration_give(run, duration_nanos(moment_of(a[0])) / a[1].i, ret);
}

static bool duration_abs(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    __int128 nanos = duration_nanos(moment_of(a[0]));
    return duration_give(run, nanos < 0 ? -nanos : nanos, ret);
}

/* So many of a ChronoUnit; longer ones than a day have no length of their own. */
static bool duration_in_units(struct run *run, int64_t count, struct value unit, __int128 *ret_nanos)
{
    int ordinal = ((struct enumerator *)unit.object)->ordinal;
    if (ordinal > 7)
        return run_throw(run, CLASS_UNSUPPORTED_TEMPORAL_TYPE_EXCEPTION, "Unit must not have an estimated duration");
    *ret_nanos = (__int128)count * unit_nanos[ordinal];
    return true;
}

static bool duration_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(2);
    __int128 nanos = 0;
    return duration_in_units(run, a[1].i, a[2], &nanos) && duration_give(run, nanos, ret);
}

static bool duration_plus_units(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(2);
    __int128 nanos = 0;
    return duration_in_units(run, a[1].i, a[2], &nanos) &&
           duration_give(run, duration_nanos(moment_of(a[0])) + nanos, ret);
}

static bool duration_minus_units(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(2);
    __int128 nanos = 0;
    return duration_in_units(run, a[1].i, a[2], &nanos) &&
           duration_give(run, duration_nanos(moment_of(a[0])) - nanos, ret);
}

/* Reading "P2DT3H4.5S": numbers, each with the letter of its unit */

#define AMOUNT_MAX 999999999 /* of a number with a unit */

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

/* Reads one number if its unit is among `units`, from *unit on; *ret_unit is the unit's place there. */
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

static bool unreadable(struct run *run, const char *what)
{
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text cannot be parsed to a %s", what);
}

/* Adds up the amounts of one part, the units in their order; only seconds may have digits behind a point. */
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

static bool duration_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    static const int64_t days[] = {86400000000000}, times[] = {3600000000000, 60000000000, 1000000000};
    struct text *text = value_to_text(run, a[1]);
    if (text == NULL)
        return false;
    struct scan scan = {.text = text_utf8(run, text)};
    bool negative = scan_sign(&scan), any = false, timed = false;
    __int128 total = 0;
    if (!scan_letter(&scan, 'P') || !scan_part(&scan, "D", days, &total, &any))
        return unreadable(run, "Duration");
    if (scan_letter(&scan, 'T') && (!scan_part(&scan, "HMS", times, &total, &timed) || !timed))
        return unreadable(run, "Duration");
    if (!(any || timed) || scan.at != scan.text.len)
        return unreadable(run, "Duration");
    return duration_give(run, negative ? -total : total, ret);
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

/* Period */

static bool period_give(struct run *run, int64_t years, int64_t months, int64_t period_days, struct value *ret)
{
    if (years != (int32_t)years || months != (int32_t)months || period_days != (int32_t)period_days)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "integer overflow");
    struct moment *period = moment_new(run, CLASS_PERIOD, 0, 0);
    period->years = (int32_t)years;
    period->months = (int32_t)months;
    period->days = (int32_t)period_days;
    return give(ret, period);
}

static bool period_zero(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    return period_give(run, 0, 0, 0, ret);
}

static bool period_parse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *text = value_to_text(run, a[1]);
    if (text == NULL)
        return false;
    struct scan scan = {.text = text_utf8(run, text)};
    int64_t sign = scan_sign(&scan) ? -1 : 1, amounts[4] = {0}, amount;
    size_t next = 0, unit;
    int32_t fraction = 0;
    if (!scan_letter(&scan, 'P'))
        return unreadable(run, "Period");
    while (fraction == 0 && scan_amount(&scan, &"YMWD"[next], &amount, &fraction, &unit)) {
        next += unit + 1;
        amounts[next - 1] = sign * amount;
    }
    if (next == 0 || fraction != 0 || scan.at != scan.text.len)
        return unreadable(run, "Period");
    return period_give(run, amounts[0], amounts[1], amounts[2] * 7 + amounts[3], ret);
}

/* A period with its parts times `factor`, and more of each. */
static bool period_changed(struct run *run, const struct moment *period, int64_t factor, const int64_t more[3],
                           struct value *ret)
{
    return period_give(run, period->years * factor + more[0], period->months * factor + more[1],
                       period->days * factor + more[2], ret);
}

static bool period_multiplied(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_changed(run, moment_of(a[0]), a[1].i, (int64_t[3]){0}, ret);
}

static bool period_negated(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return period_changed(run, moment_of(a[0]), -1, (int64_t[3]){0}, ret);
}

#define PERIOD_STEP(name, years, months, days)                                                              \
    static bool period_plus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)         \
    {                                                                                                       \
        (void)n;                                                                                            \
        int64_t i = a[1].i > INT32_MAX ? INT32_MAX + 1ll : a[1].i < INT32_MIN ? INT32_MIN - 1ll : a[1].i;   \
        return period_changed(run, moment_of(a[0]), 1, (int64_t[3]){years * i, months * i, days * i}, ret); \
    }                                                                                                       \
    static bool period_minus_##name(struct run *run, struct value *a, unsigned n, struct value *ret)        \
    {                                                                                                       \
        a[1].i = a[1].i < -INT32_MAX ? INT32_MAX + 1ll : -a[1].i;                                           \
        return period_plus_##name(run, a, n, ret);                                                          \
    }

PERIOD_STEP(years, 1, 0, 0)
PERIOD_STEP(months, 0, 1, 0)
PERIOD_STEP(days, 0, 0, 1)

static bool period_add(struct run *run, const struct moment *period, const struct moment *more, int64_t sign,
                       struct value *ret)
{
    return period_changed(run, period, 1, (int64_t[3]){sign * more->years, sign * more->months, sign * more->days},
                          ret);
}

static bool period_plus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return period_add(run, moment_of(a[0]), moment_of(a[1]), 1, ret);
}

static bool period_minus(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return period_add(run, moment_of(a[0]), moment_of(a[1]), -1, ret);
}

static bool period_total_months(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_long(ret, (int64_t)moment_of(a[0])->years * 12 + moment_of(a[0])->months);
}

/* Months beyond a year go to the years; days stay. */
static bool period_normalized(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t total = (int64_t)moment_of(a[0])->years * 12 + moment_of(a[0])->months;
    return period_give(run, total / 12, total % 12, moment_of(a[0])->days, ret);
}

static bool period_is_negative(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, moment_of(a[0])->years < 0 || moment_of(a[0])->months < 0 || moment_of(a[0])->days < 0);
}

static bool period_is_zero(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, moment_of(a[0])->years == 0 && moment_of(a[0])->months == 0 && moment_of(a[0])->days == 0);
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
    return period_give(run, months / 12, months % 12, (moment_of(a[2])->seconds - moment_of(moved)->seconds) / 86400,
                       ret);
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

static bool unit_between(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    return moment_between(run, moment_of(a[1]), moment_of(a[2]), ((struct enumerator *)a[0].object)->ordinal, ret);
}

#define DURATION_ROWS(upper, name)                                                                                     \
    M1("of" upper, STATIC, DURATION, LONG, duration_of_##name), M0("to" upper, METHOD_BOTH, LONG, duration_to_##name), \
        M1("plus" upper, METHOD_BOTH, DURATION, LONG, duration_plus_##name),                                           \
        M1("minus" upper, METHOD_BOTH, DURATION, LONG, duration_minus_##name)

static const struct method duration_methods[] = {
    M0("ZERO", FIELD, DURATION, duration_zero),
    DURATION_ROWS("Nanos", nanos),
    DURATION_ROWS("Millis", millis),
    DURATION_ROWS("Seconds", seconds),
    DURATION_ROWS("Minutes", minutes),
    DURATION_ROWS("Hours", hours),
    DURATION_ROWS("Days", days),
    M1("parse", STATIC, DURATION, CHAR_SEQUENCE, duration_parse),
    M2("of", STATIC, DURATION, LONG, CHRONO_UNIT, duration_of),
    M2("plus", METHOD_BOTH, DURATION, LONG, CHRONO_UNIT, duration_plus_units),
    M2("minus", METHOD_BOTH, DURATION, LONG, CHRONO_UNIT, duration_minus_units),
    M1("dividedBy", METHOD_BOTH, DURATION, LONG, duration_divided),
    M0("abs", METHOD_BOTH, DURATION, duration_abs),
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
    M0("ZERO", FIELD, PERIOD, period_zero),
    M1("parse", STATIC, PERIOD, CHAR_SEQUENCE, period_parse),
    M1("plusYears", METHOD_BOTH, PERIOD, LONG, period_plus_years),
    M1("plusMonths", METHOD_BOTH, PERIOD, LONG, period_plus_months),
    M1("plusDays", METHOD_BOTH, PERIOD, LONG, period_plus_days),
    M1("minusYears", METHOD_BOTH, PERIOD, LONG, period_minus_years),
    M1("minusMonths", METHOD_BOTH, PERIOD, LONG, period_minus_months),
    M1("minusDays", METHOD_BOTH, PERIOD, LONG, period_minus_days),
    M1("plus", METHOD_BOTH, PERIOD, PERIOD, period_plus),
    M1("minus", METHOD_BOTH, PERIOD, PERIOD, period_minus),
    M1("multipliedBy", METHOD_BOTH, PERIOD, INT, period_multiplied),
    M0("negated", METHOD_BOTH, PERIOD, period_negated),
    M0("normalized", METHOD_BOTH, PERIOD, period_normalized),
    M0("toTotalMonths", METHOD_BOTH, LONG, period_total_months),
    M0("isNegative", METHOD_BOTH, BOOLEAN, period_is_negative),
    M0("isZero", METHOD_BOTH, BOOLEAN, period_is_zero),
    M2("between", STATIC, PERIOD, LOCAL_DATE, LOCAL_DATE, period_between),
    M0("getDays", METHOD_BOTH, INT, period_get_days),
    M0("getMonths", METHOD_BOTH, INT, period_get_months),
    M0("getYears", METHOD_BOTH, INT, period_get_years),
};

static const struct method chrono_unit_methods[] = {
    M1("valueOf", STATIC, CHRONO_UNIT, STRING, enum_of_name),
    M2("between", METHOD_BOTH, LONG, TEMPORAL, TEMPORAL, unit_between),
};

const struct method_table methods_duration[] = {
    METHOD_TABLE(DURATION, duration_methods),
    METHOD_TABLE(PERIOD, period_methods),
    METHOD_TABLE(CHRONO_UNIT, chrono_unit_methods),
    {0, 0, NULL},
};
