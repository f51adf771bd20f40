/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of time; see rounding.h. */
#include "query/rounding.h"

#include "base/calendar.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

bool rounding_calendar(struct slice text, struct rounding *rounding)
{
    static const struct {
        const char *name, *sign;
        enum rounding_unit unit;
        int64_t millis;
    } units[] = {{"second", "1s", ROUND_FIXED, SECOND_MS}, {"minute", "1m", ROUND_FIXED, MINUTE_MS},
                 {"hour", "1h", ROUND_FIXED, HOUR_MS},     {"day", "1d", ROUND_FIXED, DAY_MS},
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

/* Milliseconds between UTC and the time that intervals begin at midnight of. */
static int64_t shift(const struct rounding *rounding)
{
    return rounding->zone_minutes * MINUTE_MS - rounding->offset;
}

static int64_t floor_months(int64_t day, int months)
{
    struct calendar_date date = calendar_date(day);
    return calendar_days(date.year, date.month - (date.month - 1) % months, 1) * DAY_MS;
}

int64_t rounding_floor(const struct rounding *rounding, int64_t millis)
{
    int64_t local = millis + shift(rounding), day = floor_div(local, DAY_MS), begin = 0;
    switch (rounding->unit) {
    case ROUND_FIXED: begin = floor_div(local, rounding->millis) * rounding->millis; break;
    case ROUND_WEEK: begin = (day - calendar_weekday(day)) * DAY_MS; break;
    case ROUND_MONTH: begin = floor_months(day, 1); break;
    case ROUND_QUARTER: begin = floor_months(day, 3); break;
    case ROUND_YEAR: begin = floor_months(day, 12); break;
    }
    return begin - shift(rounding);
}

int64_t rounding_next(const struct rounding *rounding, int64_t begin)
{
    /* The longest a unit lasts: one day short of it is in the unit still, one day over it in the next. */
    static const int days[] = {[ROUND_WEEK] = 7, [ROUND_MONTH] = 31, [ROUND_QUARTER] = 92, [ROUND_YEAR] = 366};
    if (rounding->unit == ROUND_FIXED)
        return begin + rounding->millis;
    return rounding_floor(rounding, begin + days[rounding->unit] * DAY_MS);
}
