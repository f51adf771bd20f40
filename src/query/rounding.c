/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds instants down to intervals; see rounding.h. */
#include "query/rounding.h"

#include "base/calendar.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

bool rounding_parse_calendar_unit(struct slice text, struct rounding *rounding)
{
    static const struct {
        const char *name, *sign;
        enum rounding_unit unit;
        int64_t millis;
    } units[] = {{"second", "1s", ROUND_TIME, SECOND_MS}, {"minute", "1m", ROUND_TIME, MINUTE_MS},
                 {"hour", "1h", ROUND_TIME, HOUR_MS},     {"day", "1d", ROUND_DAY, DAY_MS},
                 {"week", "1w", ROUND_WEEK, 0},           {"month", "1M", ROUND_MONTH, 0},
                 {"quarter", "1q", ROUND_QUARTER, 0},     {"year", "1y", ROUND_YEAR, 0}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (slice_is(text, units[i].name) || slice_is(text, units[i].sign)) {
            rounding->unit = units[i].unit;
            rounding->millis = units[i].millis;
            return true;
        }
    }
    return false;
}

static int64_t local_of(const struct rounding *rounding, int64_t millis)
{
    return millis + zone_offset(rounding->zone, floor_div(millis, SECOND_MS)) * SECOND_MS;
}

static struct zone_instants instants_of(const struct rounding *rounding, int64_t local)
{
    return zone_instants(rounding->zone, floor_div(local, SECOND_MS));
}

/*
 * Returns: the first instant at which clocks show a local time; if a transition skips it, that
 * transition.
 */
static int64_t first_instant(const struct rounding *rounding, int64_t local)
{
    struct zone_instants instants = instants_of(rounding, local);
    return (instants.count == 0 ? instants.transition : instants.first) * SECOND_MS +
           floor_mod(local, SECOND_MS) * (instants.count != 0);
}

static int64_t floor_months(int64_t day, int months)
{
    struct calendar_date date = calendar_date(day);
    return calendar_days(date.year, date.month - (date.month - 1) % months, 1) * DAY_MS;
}

/* Rounds a local time down to the midnight at which its calendar unit starts. */
static int64_t floor_local(const struct rounding *rounding, int64_t local)
{
    int64_t day = floor_div(local, DAY_MS);
    switch (rounding->unit) {
    case ROUND_WEEK: return (day - calendar_weekday(day)) * DAY_MS;
    case ROUND_MONTH: return floor_months(day, 1);
    case ROUND_QUARTER: return floor_months(day, 3);
    case ROUND_YEAR: return floor_months(day, 12);
    default: return day * DAY_MS;
    }
}

/*
 * Returns: the latest instant, not after `millis`, at which clocks show a local time; INT64_MIN:
 * none.
 */
static int64_t latest_instant(const struct rounding *rounding, int64_t local, int64_t millis)
{
    struct zone_instants instants = instants_of(rounding, local);
    int64_t rest = floor_mod(local, SECOND_MS), second = instants.second * SECOND_MS + rest,
            first = instants.first * SECOND_MS + rest;
    if (instants.count == 0)
        return INT64_MIN;
    return second <= millis ? second : first <= millis ? first : INT64_MIN;
}

/*
 * Rounds down to an hour, minute or second of the calendar. Does not round across a transition,
 * unless the unit starts at it.
 */
static int64_t floor_time(const struct rounding *rounding, int64_t millis)
{
    for (;;) {
        int64_t begin = latest_instant(
            rounding, floor_div(local_of(rounding, millis), rounding->millis) * rounding->millis, millis);
        int64_t transition = zone_transition_before(rounding->zone, floor_div(millis, SECOND_MS));
        if (transition < INT64_MIN / SECOND_MS || transition * SECOND_MS <= begin)
            return begin;
        millis = transition * SECOND_MS - 1;
    }
}

/*
 * Rounds down to a fixed interval. If clocks are set back within an interval, the interval ends
 * when its start is shown again. Until then the repeated local time belongs to the last interval
 * before the transition.
 */
static int64_t floor_fixed(const struct rounding *rounding, int64_t millis)
{
    int64_t local = floor_div(local_of(rounding, millis), rounding->millis) * rounding->millis;
    int64_t transition = zone_transition_before(rounding->zone, floor_div(millis, SECOND_MS));
    if (transition >= INT64_MIN / SECOND_MS) {
        int64_t before = zone_offset(rounding->zone, transition - 1), after = zone_offset(rounding->zone, transition);
        if (before > after && local < (transition + after) * SECOND_MS)
            return floor_div((transition + before) * SECOND_MS - 1, rounding->millis) * rounding->millis -
                   before * SECOND_MS;
    }
    int64_t begin = latest_instant(rounding, local, millis);
    return begin != INT64_MIN ? begin : first_instant(rounding, local);
}

/*
 * Returns: the start of the next fixed interval. A transition that clocks are set forward by starts
 * it if they skip its start; after one that they are set back by, it is the first start that they
 * show (see floor_fixed()).
 */
static int64_t next_fixed(const struct rounding *rounding, int64_t begin)
{
    int64_t offset = local_of(rounding, begin) - begin, second = floor_div(begin, SECOND_MS);
    int64_t start = (floor_div(begin + offset, rounding->millis) + 1) * rounding->millis;
    for (;;) {
        int64_t transition = zone_transition_after(rounding->zone, second);
        if (transition > INT64_MAX / SECOND_MS || start - offset < transition * SECOND_MS)
            return start - offset;
        int64_t after = zone_offset(rounding->zone, transition) * SECOND_MS, shown = transition * SECOND_MS + after;
        if (after < offset)
            start = -floor_div(-shown, rounding->millis) * rounding->millis;
        else if (start <= shown)
            return transition * SECOND_MS;
        offset = after;
        second = transition;
    }
}

/*
 * Returns: the start of the next hour, minute or second of the calendar. An interval that a
 * transition prolongs is up to twice as long.
 */
static int64_t next_time(const struct rounding *rounding, int64_t begin)
{
    int64_t next = floor_time(rounding, begin + rounding->millis);
    return next > begin ? next : floor_time(rounding, begin + 2 * rounding->millis);
}

static int64_t floor_shifted(const struct rounding *rounding, int64_t millis)
{
    if (rounding->unit == ROUND_FIXED)
        return floor_fixed(rounding, millis);
    if (rounding->unit == ROUND_TIME)
        return floor_time(rounding, millis);
    return first_instant(rounding, floor_local(rounding, local_of(rounding, millis)));
}

int64_t rounding_floor(const struct rounding *rounding, int64_t millis)
{
    return floor_shifted(rounding, millis - rounding->offset) + rounding->offset;
}

int64_t rounding_next(const struct rounding *rounding, int64_t begin)
{
    /*
     * Maximum length of each unit, in days. Added to the start of a unit it reaches the next one,
     * never the one after that.
     */
    static const int days[] = {
        [ROUND_DAY] = 1, [ROUND_WEEK] = 7, [ROUND_MONTH] = 31, [ROUND_QUARTER] = 92, [ROUND_YEAR] = 366};
    int64_t shifted = begin - rounding->offset, next;
    if (rounding->unit == ROUND_TIME)
        next = next_time(rounding, shifted);
    else if (rounding->unit == ROUND_FIXED)
        next = next_fixed(rounding, shifted);
    else
        next = first_instant(rounding, floor_local(rounding, floor_local(rounding, local_of(rounding, shifted)) +
                                                                 days[rounding->unit] * DAY_MS));
    /* A large backward transition must not stop a caller that iterates over intervals. */
    return (next > shifted ? next : shifted + (rounding->millis > 0 ? rounding->millis : DAY_MS)) + rounding->offset;
}

/* Returns: a - b, or 0 if that is negative. */
static uint64_t positive_difference(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : 0;
}

static uint64_t months_between(int64_t low_day, int64_t high_day)
{
    struct calendar_date low = calendar_date(low_day), high = calendar_date(high_day);
    return positive_difference((high.year - low.year) * INT64_C(12) + high.month, low.month);
}

uint64_t rounding_estimate_count(const struct rounding *rounding, int64_t low, int64_t high)
{
    int64_t from = local_of(rounding, low - rounding->offset), to = local_of(rounding, high - rounding->offset);
    int64_t from_day = floor_div(from, DAY_MS), to_day = floor_div(to, DAY_MS);
    uint64_t elapsed, shown;
    switch (rounding->unit) {
    case ROUND_DAY: return positive_difference(to_day, from_day) + 1;
    case ROUND_WEEK: return positive_difference(to_day, from_day) / 7 + 1;
    case ROUND_MONTH: return months_between(from_day, to_day) + 1;
    case ROUND_QUARTER: return months_between(from_day, to_day) / 3 + 1;
    case ROUND_YEAR: return months_between(from_day, to_day) / 12 + 1;
    case ROUND_FIXED:
    case ROUND_TIME: break;
    }
    /* Clocks that were set forward have skipped intervals; a fixed one lasts while they repeat. */
    elapsed = positive_difference(high, low);
    shown = rounding->unit == ROUND_FIXED ? positive_difference(to, from) : elapsed;
    return (elapsed < shown ? elapsed : shown) / (uint64_t)rounding->millis + 1;
}
