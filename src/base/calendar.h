/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calendar: days since 1970-01-01 as years, months and days, and back.
 *
 * It is the proleptic Gregorian one, as in ISO 8601 and in Java: today's rules for all times, and a year 0 before year 1.
 * Months and days count from 1. No years are refused; who reads them from a client bounds them.
 */
#ifndef TL_BASE_CALENDAR_H
#define TL_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

struct calendar_date {
    int64_t year;
    int month, day;
};

/* Rounds down, as what lies before the epoch wants it. Requires: b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* What floor_div leaves: 0 to b - 1. */
static inline int64_t floor_mod(int64_t a, int64_t b)
{
    return a - floor_div(a, b) * b;
}

/* Days since 1970-01-01. A day beyond its month is one of the months after. */
int64_t calendar_days(int64_t year, int month, int day);

struct calendar_date calendar_date(int64_t days);

bool calendar_is_leap(int64_t year);
int calendar_month_days(int64_t year, int month);

/* In English, as all dates that this program reads and writes have them: "January", "Monday". */
extern const char *const calendar_months[12], *const calendar_weekdays[7];
/* As many letters of one make its short form: "Jan", "Mon". */
enum { CALENDAR_SHORT_NAME = 3 };

/* Returns: 0 for Monday … 6 for Sunday. */
static inline int calendar_weekday(int64_t days)
{
    return (int)floor_mod(days + 3, 7); /* 1970-01-01 was a Thursday */
}

#endif
