/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the conversions between days and dates are inverse, before and after the epoch and the year
 * 0. Method: known dates; every day of two eras, compared with a count by the lengths of months.
 */
#include "../../lib/unit.h"

#include "base/calendar.h"

static void test_calendar_converts_known_dates(void **state)
{
    (void)state;
    static const struct {
        int64_t days, year;
        int month, day, weekday; /* Monday is 0 */
    } rows[] = {
        {0, 1970, 1, 1, 3},      {-1, 1969, 12, 31, 2},    {11016, 2000, 2, 29, 1}, {11017, 2000, 3, 1, 2},
        {-25567, 1900, 1, 1, 0}, {20777, 2026, 11, 20, 4}, {-719468, 0, 3, 1, 2},   {-719469, 0, 2, 29, 1},
        {-719528, 0, 1, 1, 5},   {-719529, -1, 12, 31, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct calendar_date date = calendar_date(rows[i].days);
        assert_int_equal(date.year, rows[i].year);
        assert_int_equal(date.month, rows[i].month);
        assert_int_equal(date.day, rows[i].day);
        assert_int_equal(calendar_days(rows[i].year, rows[i].month, rows[i].day), rows[i].days);
        assert_int_equal(calendar_weekday(rows[i].days), rows[i].weekday);
    }
}

static void test_calendar_converts_every_day_of_two_eras(void **state)
{
    (void)state;
    int64_t days = calendar_days(-401, 1, 1);
    for (int64_t year = -401; year < 401; year++)
        for (int month = 1; month <= 12; month++)
            for (int day = 1; day <= calendar_month_days(year, month); day++, days++) {
                struct calendar_date date = calendar_date(days);
                assert_int_equal(calendar_days(year, month, day), days);
                assert_true(date.year == year && date.month == month && date.day == day);
            }
}

static void test_calendar_leap_years(void **state)
{
    (void)state;
    static const int64_t leap[] = {0, 4, 1600, 2000, 2024, -4, -400}, common[] = {1, 1700, 1900, 2026, 2100, -1, -100};
    for (size_t i = 0; i < sizeof leap / sizeof *leap; i++) {
        assert_int_equal(calendar_month_days(leap[i], 2), 29);
        assert_int_equal(calendar_month_days(common[i], 2), 28);
    }
    assert_int_equal(floor_div(-1, 7), -1);
    assert_int_equal(floor_mod(-1, 7), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calendar_converts_known_dates),
        cmocka_unit_test(test_calendar_converts_every_day_of_two_eras),
        cmocka_unit_test(test_calendar_leap_years),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
