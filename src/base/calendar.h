/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calendar: converts days since 1970-01-01 to years, months and days, and back.
 *
 * It is the proleptic Gregorian calendar, as in ISO 8601 and Java: the current rules for all times,
 * and a year 0 before year 1. Months and days count from 1. Years are not checked; code that reads
 * them from a client must limit them.
 */
#ifndef TL_BASE_CALENDAR_H
#define TL_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

struct calendar_date {
    int64_t year;
    int month, day;
};

/* Divides and rounds down, also for negative numbers (times before the epoch). Requires: b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    REQUIRE(b > 0);
    return a / b - (a % b < 0);
}

/* Returns: the remainder of floor_div(), 0 to b - 1. Requires: b > 0. */
static inline int64_t floor_mod(int64_t a, int64_t b)
{
    REQUIRE(b > 0);
    return a - floor_div(a, b) * b;
}

/* Returns: days since 1970-01-01. A day beyond the end of its month counts on into later months. */
int64_t calendar_days(int64_t year, int month, int day);

/* Returns: the date of a day given in days since 1970-01-01. */
struct calendar_date calendar_date(int64_t days);

bool calendar_is_leap(int64_t year);
int calendar_month_days(int64_t year, int month);

/* English names: "January", "Monday". */
extern const char *const calendar_months[12], *const calendar_weekdays[7];
/* Number of letters of a short name: "Jan", "Mon". */
enum { CALENDAR_SHORT_NAME = 3 };

/* Returns: 0 for Monday … 6 for Sunday. */
static inline int calendar_weekday(int64_t days)
{
    return (int)floor_mod(days + 3, 7); /* 1970-01-01 was a Thursday */
}

#endif
