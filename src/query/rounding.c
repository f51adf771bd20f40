/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of time; see rounding.h. */
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
                 {"week", "1w", ROUND_WEEK, 0},            {"month", "1M", ROUND_MONTH, 0},
                 {"quarter", "1q", ROUND_QUARTER, 0},      {"year", "1y", ROUND_YEAR, 0}};
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

static struct zone_instants moments_of(const struct rounding *rounding, int64_t local)
{
    return zone_instants(rounding->zone, floor_div(local, SECOND_MS));
}

/* When clocks first show a local time, or are set to one behind it. */
static int64_t first_moment(const struct rounding *rounding, int64_t local)
{
    struct zone_instants moments = moments_of(rounding, local);
    return (moments.count == 0 ? moments.transition : moments.first) * SECOND_MS + floor_mod(local, SECOND_MS) * (moments.count != 0);
}

static int64_t floor_months(int64_t day, int months)
{
    struct calendar_date date = calendar_date(day);
    return calendar_days(date.year, date.month - (date.month - 1) % months, 1) * DAY_MS;
}

/* Down to a local midnight at which a unit begins. */
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

/* The later of the moments that clocks show a local time at which is not behind another; INT64_MIN where there is none. */
static int64_t latest_moment(const struct rounding *rounding, int64_t local, int64_t millis)
{
    struct zone_instants moments = moments_of(rounding, local);
    int64_t rest = floor_mod(local, SECOND_MS), second = moments.second * SECOND_MS + rest, first = moments.first * SECOND_MS + rest;
    if (moments.count == 0)
        return INT64_MIN;
    return second <= millis ? second : first <= millis ? first : INT64_MIN;
}

/* Of the calendar: never back over a change of the clocks that does not lie at its begin. */
static int64_t floor_time(const struct rounding *rounding, int64_t millis)
{
    for (;;) {
        int64_t begin = latest_moment(rounding, floor_div(local_of(rounding, millis), rounding->millis) * rounding->millis, millis);
        int64_t change = zone_transition_before(rounding->zone, floor_div(millis, SECOND_MS));
        if (change < INT64_MIN / SECOND_MS || change * SECOND_MS <= begin)
            return begin;
        millis = change * SECOND_MS - 1;
    }
}

/* An interval that begins before clocks are set back ends where they come to it again: what is behind belongs to the last one of before. */
static int64_t floor_fixed(const struct rounding *rounding, int64_t millis)
{
    int64_t local = floor_div(local_of(rounding, millis), rounding->millis) * rounding->millis;
    int64_t change = zone_transition_before(rounding->zone, floor_div(millis, SECOND_MS));
    if (change >= INT64_MIN / SECOND_MS) {
        int64_t before = zone_offset(rounding->zone, change - 1), after = zone_offset(rounding->zone, change);
        if (before > after && local < (change + after) * SECOND_MS)
            return floor_div((change + before) * SECOND_MS - 1, rounding->millis) * rounding->millis - before * SECOND_MS;
    }
    int64_t begin = latest_moment(rounding, local, millis);
    return begin != INT64_MIN ? begin : first_moment(rounding, local);
}

/* By the clock; but where clocks are set back and show a begin once more, that. */
static int64_t next_fixed(const struct rounding *rounding, int64_t begin)
{
    int64_t local = local_of(rounding, begin) + rounding->millis;
    int64_t next = moments_of(rounding, local).first * SECOND_MS + floor_mod(local, SECOND_MS);
    int64_t again = floor_fixed(rounding, begin + rounding->millis);
    return again > begin && again < next ? again : next;
}

static int64_t floor_shifted(const struct rounding *rounding, int64_t millis)
{
    if (rounding->unit == ROUND_FIXED)
        return floor_fixed(rounding, millis);
    if (rounding->unit == ROUND_TIME)
        return floor_time(rounding, millis);
    return first_moment(rounding, floor_local(rounding, local_of(rounding, millis)));
}

int64_t rounding_floor(const struct rounding *rounding, int64_t millis)
{
    return floor_shifted(rounding, millis - rounding->offset) + rounding->offset;
}

int64_t rounding_next(const struct rounding *rounding, int64_t begin)
{
    /* The longest a unit lasts: one day short of it is in the unit still, one day over it in the next. */
    static const int days[] = {[ROUND_DAY] = 1, [ROUND_WEEK] = 7, [ROUND_MONTH] = 31, [ROUND_QUARTER] = 92, [ROUND_YEAR] = 366};
    int64_t shifted = begin - rounding->offset, next;
    if (rounding->unit == ROUND_TIME)
        next = floor_time(rounding, shifted + rounding->millis);
    else if (rounding->unit == ROUND_FIXED)
        next = next_fixed(rounding, shifted);
    else
        next = first_moment(rounding, floor_local(rounding, floor_local(rounding, local_of(rounding, shifted)) +
                                                                days[rounding->unit] * DAY_MS));
    /* Clocks that are set back by much must not hold up who counts on. */
    return (next > shifted ? next : shifted + (rounding->millis > 0 ? rounding->millis : DAY_MS)) + rounding->offset;
}
