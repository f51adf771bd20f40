/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the clocks' readings: durations without the gaps, timestamps, steps, and where an hour ago was. */
#include "lib/unit.h"

#include "journal/times.h"

#define YEAR (365 * 86400 * TL_SECOND)

static void test_the_clock_of_commands_leaves_out_gaps(void **state)
{
    struct pace pace;
    (void)state;
    pace_init(&pace, 5000 * TL_SECOND);
    uint64_t start = pace_read(&pace, 5000 * TL_SECOND);
    assert_int_equal(pace_read(&pace, 5000 * TL_SECOND + PACE_BEAT_US) - start, PACE_BEAT_US);
    /* Three hours of SIGSTOP, or of a machine that slept. */
    uint64_t after = 5000 * TL_SECOND + PACE_BEAT_US + 3 * 3600 * TL_SECOND;
    assert_int_equal(pace_read(&pace, after) - start, PACE_BEAT_US + PACE_GAP_US);
    assert_int_equal(pace_read(&pace, after + 1000) - start, PACE_BEAT_US + PACE_GAP_US + 1000);
    /* Two threads may bring their readings in the other order. */
    assert_int_equal(pace_read(&pace, after) - start, PACE_BEAT_US + PACE_GAP_US + 1000);
}

static void test_steps_are_told_from_drift(void **state)
{
    struct steps steps = {0};
    uint64_t wall = 1700000000 * TL_SECOND, boot = 77 * TL_SECOND;
    (void)state;
    assert_false(steps_look(&steps, wall, boot));
    for (int i = 0; i < 1000; i++) /* a clock that is kept right, by half a millisecond a second */
        assert_false(steps_look(&steps, wall += TL_SECOND + 500, boot += TL_SECOND));
    assert_true(steps_look(&steps, wall + YEAR, boot));
    assert_true(steps.last == (int64_t)YEAR && steps.count == 1);
    assert_true(steps_look(&steps, wall - 8 * TL_SECOND, boot));
    assert_true(steps.last == -(int64_t)(YEAR + 8 * TL_SECOND) && steps.count == 2);
    assert_false(steps_look(&steps, wall - 8 * TL_SECOND + 3600 * TL_SECOND, boot + 3600 * TL_SECOND));
}

static void test_timestamps_go_on_when_the_clock_is_back(void **state)
{
    struct present present = {0};
    const tl_ts last = 1700000000 * TL_SECOND;
    uint64_t boot = 9 * TL_SECOND;
    (void)state;
    assert_int_equal(present_read(&present, last + 5, boot, last), last + 5);
    /* An hour back: half as fast, until the clock has caught up. */
    uint64_t wall = last - 3600 * TL_SECOND;
    assert_int_equal(present_read(&present, wall, boot, last), last);
    assert_int_equal(present_read(&present, wall + 1000, boot + 1000, last), last + 500);
    assert_int_equal(present_read(&present, wall + 3600 * TL_SECOND, boot + 3600 * TL_SECOND, last + 500),
                     last + 1800 * TL_SECOND);
    boot += 7200 * TL_SECOND;
    wall += 7200 * TL_SECOND;
    assert_int_equal(present_read(&present, wall, boot, last + 3600 * TL_SECOND), last + 3600 * TL_SECOND);
    assert_int_equal(present_read(&present, wall + 1, boot + 1, last + 3600 * TL_SECOND), last + 3600 * TL_SECOND + 1);
    /* Beyond all timestamps. */
    assert_int_equal(present_read(&present, UINT64_MAX, boot, last), TL_TS_MAX - 1);
}

static void test_an_hour_ago_is_where_it_was(void **state)
{
    const uint64_t hour = 3600 * TL_SECOND;
    struct past past;
    uint64_t boot = 100 * hour;
    tl_ts ts = 1700000000 * TL_SECOND;
    (void)state;
    past_init(&past, hour, boot, ts);
    assert_int_equal(past_before(&past, boot, hour), ts - hour);
    for (int i = 0; i < 3600 * 5 / 2; i++)
        past_note(&past, boot += TL_SECOND, ts += TL_SECOND);
    assert_true(past.count <= PAST_POINTS);
    assert_int_equal(past_before(&past, boot, hour), ts - hour);
    /* Set forward by a year: an hour ago is still before that, and for an hour. */
    tl_ts before = ts;
    ts += YEAR;
    past_note(&past, boot += TL_SECOND, ts);
    assert_true(past_before(&past, boot, hour) <= before - hour + TL_SECOND);
    assert_true(past_before(&past, boot, hour) >= before - hour - 30 * TL_SECOND);
    for (int i = 0; i < 3500; i++)
        past_note(&past, boot += TL_SECOND, ts += TL_SECOND);
    assert_true(past_before(&past, boot, hour) <= before);
    for (int i = 0; i < 200; i++)
        past_note(&past, boot += TL_SECOND, ts += TL_SECOND);
    assert_int_equal(past_before(&past, boot, hour), ts - hour);
}

/* The same over a restart of server and machine; the time in between does not count. */
static void test_an_hour_ago_is_kept_over_restarts(void **state)
{
    const uint64_t hour = 3600 * TL_SECOND;
    struct past past, again;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    uint64_t boot = PAST_ORIGIN + hour;
    tl_ts ts = 1700000000 * TL_SECOND;
    (void)state;
    past_init(&past, hour, boot, ts);
    for (int i = 0; i < 9000; i++)
        past_note(&past, boot += TL_SECOND, ts += i == 8000 ? YEAR : i % 100 == 0 ? 1000 : TL_SECOND);
    past_save(&past, boot, &saved);
    assert_true(saved.len < 4096);
    assert_true(past_load(&again, hour, PAST_ORIGIN + 5, ts + 7, buf_as_slice(&saved)));
    for (uint64_t us = 0; us <= hour; us += 10 * TL_SECOND) {
        tl_ts before = past_before(&past, boot, us), after = past_before(&again, PAST_ORIGIN + 5, us);
        assert_true(after <= before + TL_SECOND && before <= after + TL_SECOND); /* less is not worth keeping */
        if (us > 1100 * TL_SECOND)
            assert_true(after < ts - 300 * 86400 * TL_SECOND);
    }
    assert_false(past_load(&again, hour, PAST_ORIGIN, ts, slice_make(saved.data, saved.len - 1)));
    assert_int_equal(past_before(&again, PAST_ORIGIN, hour), ts - hour);
    assert_true(past_load(&again, hour, PAST_ORIGIN, ts, SLICE_NONE));
    assert_int_equal(past_before(&again, PAST_ORIGIN, hour), ts - hour);
    buf_deinit(&saved);
}

/* The clock of a cluster goes with each host's own, from the furthest that was ordered, and stands where nothing is ordered. */
static void a_common_clock_goes_as_far_as_the_order(void **state)
{
    struct common common;
    (void)state;

    common_init(&common, 100 * TL_SECOND, 7 * TL_SECOND);
    assert_int_equal(common_read(&common, 101 * TL_SECOND), 8 * TL_SECOND);
    assert_int_equal(common_read(&common, 130 * TL_SECOND), 7 * TL_SECOND + COMMON_GAP_US);
    common_note(&common, 130 * TL_SECOND, 9 * TL_SECOND); /* what it proposed itself goes on from there */
    assert_int_equal(common_read(&common, 131 * TL_SECOND), 10 * TL_SECOND);
    common_note(&common, 131 * TL_SECOND, 20 * TL_SECOND); /* another is ahead */
    assert_int_equal(common_read(&common, 132 * TL_SECOND), 21 * TL_SECOND);
    common_note(&common, 132 * TL_SECOND, 5 * TL_SECOND); /* and another behind */
    assert_int_equal(common_read(&common, 132 * TL_SECOND + 1), 21 * TL_SECOND + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_common_clock_goes_as_far_as_the_order),
        cmocka_unit_test(test_the_clock_of_commands_leaves_out_gaps),
        cmocka_unit_test(test_steps_are_told_from_drift),
        cmocka_unit_test(test_timestamps_go_on_when_the_clock_is_back),
        cmocka_unit_test(test_an_hour_ago_is_where_it_was),
        cmocka_unit_test(test_an_hour_ago_is_kept_over_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
