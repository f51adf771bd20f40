/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding of moments down to intervals: units of the calendar, or fixed lengths, by the clocks of a time zone.
 *
 * A unit of the calendar begins when the clocks of the zone first show its begin; where they leave that out, when they are set.
 * Hours, minutes and seconds that clocks show twice are two. A fixed length is counted from the local time 0 of the epoch.
 */
#ifndef TL_QUERY_ROUNDING_H
#define TL_QUERY_ROUNDING_H

#include "base/slice.h"
#include "base/zone.h"

enum rounding_unit { ROUND_FIXED, ROUND_TIME, ROUND_DAY, ROUND_WEEK, ROUND_MONTH, ROUND_QUARTER, ROUND_YEAR };

struct rounding {
    enum rounding_unit unit;
    int64_t millis;          /* ROUND_FIXED, ROUND_TIME (an hour, minute or second of the calendar): how long */
    int64_t offset;          /* milliseconds that all intervals begin later */
    const struct zone *zone; /* NULL: UTC */
};

/* "month", "1M", "day" … of the calendar. Returns: false where it is none. */
bool rounding_parse_calendar_unit(struct slice text, struct rounding *rounding);

/* Returns: when the interval begins in which a moment lies; both are milliseconds since the epoch. */
int64_t rounding_floor(const struct rounding *rounding, int64_t millis);
/* Returns: when the one behind it begins. `begin` is where one begins. */
int64_t rounding_next(const struct rounding *rounding, int64_t begin);

#endif
