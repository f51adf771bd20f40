/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calendar; see calendar.h.
 *
 * Internally years start in March, so that the leap day is the last of its year, and a linear
 * function gives the starts of months. 400 years form an era; all eras have the same length (Howard
 * Hinnant, "chrono-Compatible Low-Level Date Algorithms").
 */
#include "base/calendar.h"

#define ERA_DAYS 146097
/* From 0000-03-01 to 1970-01-01. */
#define EPOCH_DAYS 719468

int64_t calendar_days(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = floor_div(year, 400);
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS;
}

struct calendar_date calendar_date(int64_t days)
{
    int64_t shifted = days + EPOCH_DAYS, era = floor_div(shifted, ERA_DAYS);
    int64_t of_era = shifted - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = (int)(of_era - (365 * year + year / 4 - year / 100));
    int from_march = (5 * of_year + 2) / 153;
    int month = from_march < 10 ? from_march + 3 : from_march - 9;
    return (struct calendar_date){year + era * 400 + (month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1};
}

bool calendar_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int calendar_month_days(int64_t year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && calendar_is_leap(year));
}

const char *const calendar_months[12] = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};
const char *const calendar_weekdays[7] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
