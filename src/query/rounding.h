/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds timestamps down to the begin of an interval: a calendar unit or a fixed length, in the
 * local time of a time zone.
 *
 * A calendar unit begins when local time first reaches its begin; if a transition skips that, at
 * the transition. An hour, minute or second that local time repeats is two intervals. Fixed lengths
 * are counted from local time 1970-01-01T00:00.
 */
#ifndef TL_QUERY_ROUNDING_H
#define TL_QUERY_ROUNDING_H

#include "base/slice.h"
#include "base/zone.h"

/* ROUND_TIME: calendar hours, minutes and seconds. */
enum rounding_unit { ROUND_FIXED, ROUND_TIME, ROUND_DAY, ROUND_WEEK, ROUND_MONTH, ROUND_QUARTER, ROUND_YEAR };

struct rounding {
    enum rounding_unit unit;
    int64_t millis;          /* length of ROUND_FIXED and ROUND_TIME */
    int64_t offset;          /* milliseconds by which all intervals begin later */
    const struct zone *zone; /* NULL: UTC */
};

/*
 * Parses a calendar unit ("month", "1M", "day" …) into unit and millis. Returns: false if the text
 * is not one.
 */
bool rounding_parse_calendar_unit(struct slice text, struct rounding *rounding);

/*
 * Returns: the begin of the interval that contains a timestamp; both in milliseconds since the
 * epoch.
 */
int64_t rounding_floor(const struct rounding *rounding, int64_t millis);
/* Returns: the begin of the next interval. Assumes: `begin` is the begin of an interval. */
int64_t rounding_next(const struct rounding *rounding, int64_t begin);
/*
 * Estimates in constant time how many intervals begin from `low` to `high`, both included. Exact in
 * UTC; in other time zones, transitions make it differ.
 * Assumes: low <= high; both are begins of intervals.
 */
uint64_t rounding_estimate_count(const struct rounding *rounding, int64_t low, int64_t high);

#endif
