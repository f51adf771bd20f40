/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Duration, Period and ChronoUnit. */
#include "script/method_time.h"

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
