/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding timestamps to intervals: their begins, that they are contiguous, time zones and offsets.
 */
#include "../../lib/unit.h"

#include "mapping/date.h"
#include "query/rounding.h"

#include "../../lib/zone_sample.h"

#define HOUR_MS (INT64_C(3600) * 1000)

static int64_t at(const char *text)
{
    int64_t millis;
    assert_int_equal(date_parse(date_format_default(DATE_RULES_7_10), slice_from(text), false, &millis), 0);
    return millis;
}

static struct rounding calendar(const char *unit)
{
    struct rounding rounding = {0};
    assert_true(rounding_parse_calendar_unit(slice_from(unit), &rounding));
    return rounding;
}

static void expect(const struct rounding *rounding, const char *timestamp, const char *begin)
{
    assert_int_equal(rounding_floor(rounding, at(timestamp)), at(begin));
}

static void test_floor_to_calendar_units(void **state)
{
    (void)state;
    struct rounding year = calendar("1y"), quarter = calendar("quarter"), month = calendar("1M"),
                    week = calendar("week"), day = calendar("day"), minute = calendar("1m");
    expect(&year, "2020-12-31T23:59:59.999Z", "2020-01-01");
    expect(&year, "1969-12-31T23:59:59.999Z", "1969-01-01");
    expect(&quarter, "2020-06-30T22:15:00Z", "2020-04-01");
    expect(&quarter, "2019-12-31T23:00:00Z", "2019-10-01");
    expect(&month, "2020-02-29T12:00:00Z", "2020-02-01");
    expect(&week, "2020-03-15T23:30:00Z", "2020-03-09"); /* a Sunday: weeks begin on Monday */
    expect(&week, "2020-03-16T00:00:00Z", "2020-03-16");
    expect(&day, "1960-05-05T13:00:00Z", "1960-05-05");
    expect(&minute, "2020-03-15T23:30:59.999Z", "2020-03-15T23:30:00Z");
}

static void test_floor_in_fixed_zones(void **state)
{
    (void)state;
    struct rounding month = calendar("month"), day = calendar("day");
    struct zone zone_of_month = zone_fixed((120) * 60);
    month.zone = &zone_of_month;
    expect(&month, "2020-06-30T22:15:00Z", "2020-06-30T22:00:00Z"); /* July in local time */
    struct zone zone_of_day = zone_fixed((-300) * 60);
    day.zone = &zone_of_day;
    expect(&day, "2020-01-01T04:59:59Z", "2019-12-31T05:00:00Z");
}

static void test_floor_with_offset(void **state)
{
    (void)state;
    struct rounding month = calendar("month"), fixed = {.unit = ROUND_FIXED, .millis = 24 * 30 * HOUR_MS};
    month.offset = 6 * HOUR_MS;
    expect(&month, "2020-02-01T05:59:00Z", "2020-01-01T06:00:00Z");
    fixed.offset = 5 * 24 * HOUR_MS;
    expect(&fixed, "2020-01-01T10:00:00Z", "2019-12-15");
}

/*
 * For every unit, zone and offset: each begin rounds to itself, and the next one is the first later
 * timestamp that does.
 */
static void test_intervals_are_contiguous(void **state)
{
    (void)state;
    static const char *const units[] = {"1s", "1m", "1h", "1d", "1w", "1M", "1q", "1y"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (int zone = -840; zone <= 840; zone += 330) {
            struct rounding rounding = calendar(units[i]);
            struct zone fixed = zone_fixed(zone * 60);
            rounding.zone = &fixed;
            rounding.offset = zone * INT64_C(977);
            int64_t begin = rounding_floor(&rounding, at("1967-11-30T07:00:00Z"));
            for (int step = 0; step < 300; step++) {
                int64_t next = rounding_next(&rounding, begin);
                assert_true(next > begin);
                assert_int_equal(rounding_floor(&rounding, begin), begin);
                assert_int_equal(rounding_floor(&rounding, next - 1), begin);
                assert_int_equal(rounding_floor(&rounding, next), next);
                begin = next;
            }
        }
    }
}

/* Days of 23 and 25 hours around transitions; a local hour that is repeated is two intervals. */
static void test_intervals_across_transitions(void **state)
{
    (void)state;
    struct zone zone = zone_berlin();
    struct rounding day = calendar("day"), month = calendar("month"), hour = calendar("hour"),
                    half = {.unit = ROUND_FIXED, .millis = HOUR_MS / 2},
                    half_day = {.unit = ROUND_FIXED, .millis = 12 * HOUR_MS};
    struct rounding *all[] = {&day, &month, &hour, &half, &half_day};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->zone = &zone;
    expect(&day, "2020-03-29T21:59:59Z", "2020-03-28T23:00:00Z");
    expect(&day, "2020-10-25T22:59:59Z", "2020-10-24T22:00:00Z");
    expect(&month, "2020-10-31T22:59:59Z", "2020-09-30T22:00:00Z");
    expect(&hour, "2020-10-25T00:59:59Z", "2020-10-25T00:00:00Z");
    expect(&hour, "2020-10-25T01:30:00Z", "2020-10-25T01:00:00Z");
    expect(&half_day, "2020-10-25T10:59:00Z", "2020-10-24T22:00:00Z");
    assert_int_equal(rounding_next(&half, at("2020-10-25T00:30:00Z")), at("2020-10-25T01:00:00Z"));
    assert_int_equal(rounding_next(&half_day, at("2020-10-24T22:00:00Z")), at("2020-10-25T11:00:00Z"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t begin = rounding_floor(all[i], at("2019-12-30T07:00:00Z"));
        for (int step = 0; step < 2500 && begin < at("2021-01-02"); step++) {
            int64_t next = rounding_next(all[i], begin);
            assert_true(next > begin);
            assert_int_equal(rounding_floor(all[i], begin), begin);
            assert_int_equal(rounding_floor(all[i], next - 1), begin);
            assert_int_equal(rounding_floor(all[i], next), next);
            begin = next;
        }
    }
}

/* Checks that intervals are contiguous during the four days around each of two transitions. */
static void check_contiguous(struct rounding *rounding, const char *const transitions[2])
{
    for (int i = 0; i < 2; i++) {
        int64_t begin = rounding_floor(rounding, at(transitions[i]) - 48 * HOUR_MS), end = begin + 96 * HOUR_MS;
        while (begin < end) {
            int64_t next = rounding_next(rounding, begin);
            assert_true(next > begin);
            assert_int_equal(rounding_floor(rounding, begin), begin);
            assert_int_equal(rounding_floor(rounding, next - 1), begin);
            assert_int_equal(rounding_floor(rounding, next), next);
            begin = next;
        }
    }
}

/* Intervals that do not divide a transition, and transitions of half an hour. */
static void test_next_interval_at_odd_transitions(void **state)
{
    (void)state;
    static const int64_t minutes[] = {1, 7, 20, 30, 45, 90, 120, 420, 1440};
    static const char *const berlin_transitions[] = {"2020-03-29T01:00:00Z", "2020-10-25T01:00:00Z"},
                             *const lord_howe_transitions[] = {"2020-04-04T15:00:00Z", "2020-10-03T15:30:00Z"};
    struct zone berlin = zone_berlin(), lord_howe = zone_lord_howe();
    for (size_t i = 0; i <= sizeof minutes / sizeof *minutes; i++) {
        struct rounding rounding = {.unit = ROUND_FIXED, .millis = i == 0 ? 0 : minutes[i - 1] * 60 * 1000};
        if (i == 0)
            rounding = calendar("hour");
        rounding.offset = i % 2 == 0 ? 0 : 11 * 60 * 1000;
        rounding.zone = &berlin;
        check_contiguous(&rounding, berlin_transitions);
        rounding.zone = &lord_howe;
        check_contiguous(&rounding, lord_howe_transitions);
    }
}

/*
 * The estimate of a number of intervals is exact in UTC, and nearly so across the transitions of a
 * year.
 */
static void test_estimated_counts(void **state)
{
    (void)state;
    struct zone zone = zone_berlin();
    struct rounding all[] = {calendar("hour"),
                             calendar("day"),
                             calendar("week"),
                             calendar("month"),
                             calendar("quarter"),
                             calendar("year"),
                             {.unit = ROUND_FIXED, .millis = HOUR_MS / 2}};
    for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        struct rounding *rounding = &all[i / 2];
        rounding->zone = i % 2 == 0 ? NULL : &zone;
        rounding->offset = 2 * HOUR_MS;
        int64_t low = rounding_floor(rounding, at("2019-12-30T07:00:00Z")), begin = low;
        for (uint64_t count = 1; begin < at("2021-02-02"); count++, begin = rounding_next(rounding, begin)) {
            uint64_t estimate = rounding_estimate_count(rounding, low, begin), error = rounding->zone == NULL ? 0 : 2;
            assert_in_range(estimate, count - (count < error ? count : error), count + error);
        }
    }
}

static void test_parse_rejects_unknown_units(void **state)
{
    (void)state;
    struct rounding rounding;
    assert_false(rounding_parse_calendar_unit(SLICE_LIT("2M"), &rounding));
    assert_false(rounding_parse_calendar_unit(SLICE_LIT(""), &rounding));
    assert_false(rounding_parse_calendar_unit(SLICE_LIT("Month"), &rounding));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floor_to_calendar_units),
                                       cmocka_unit_test(test_floor_in_fixed_zones),
                                       cmocka_unit_test(test_floor_with_offset),
                                       cmocka_unit_test(test_intervals_are_contiguous),
                                       cmocka_unit_test(test_intervals_across_transitions),
                                       cmocka_unit_test(test_next_interval_at_odd_transitions),
                                       cmocka_unit_test(test_estimated_counts),
                                       cmocka_unit_test(test_parse_rejects_unknown_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
