/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding of moments down to intervals: units of the calendar, or fixed lengths, in a time zone of a fixed offset.
 */
#ifndef TL_QUERY_ROUNDING_H
#define TL_QUERY_ROUNDING_H

#include "base/slice.h"

enum rounding_unit { ROUND_FIXED, ROUND_WEEK, ROUND_MONTH, ROUND_QUARTER, ROUND_YEAR };

struct rounding {
    enum rounding_unit unit;
    int64_t millis;   /* ROUND_FIXED: how long */
    int64_t offset;   /* milliseconds that all intervals begin later */
    int zone_minutes; /* east of UTC */
};

/* "month", "1M", "day" … of the calendar. Returns: false where it is none. */
bool rounding_calendar(struct slice text, struct rounding *rounding);

/* Returns: when the interval begins in which a moment lies; both are milliseconds since the epoch. */
int64_t rounding_floor(const struct rounding *rounding, int64_t millis);
/* Returns: when the one behind it begins. `begin` is where one begins. */
int64_t rounding_next(const struct rounding *rounding, int64_t begin);

#endif
