/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock arithmetic: durations without stalls, timestamps, clock steps, and the timestamp at an
 * earlier time.
 */
#include "lib/unit.h"

#include "journal/times.h"

#define YEAR (365 * 86400 * TL_SECOND)

static void test_run_clock_excludes_stalls(void **state)
{
    struct run_clock run_clock;
    (void)state;
    run_clock_init(&run_clock, 5000 * TL_SECOND);
    uint64_t start = run_clock_read(&run_clock, 5000 * TL_SECOND);
    assert_int_equal(run_clock_read(&run_clock, 5000 * TL_SECOND + RUN_CLOCK_POLL_US) - start, RUN_CLOCK_POLL_US);
    /* three hours of SIGSTOP, or of a suspended machine */
    uint64_t after = 5000 * TL_SECOND + RUN_CLOCK_POLL_US + 3 * 3600 * TL_SECOND;
    assert_int_equal(run_clock_read(&run_clock, after) - start, RUN_CLOCK_POLL_US + RUN_CLOCK_STALL_US);
    assert_int_equal(run_clock_read(&run_clock, after + 1000) - start, RUN_CLOCK_POLL_US + RUN_CLOCK_STALL_US + 1000);
    /* two threads may pass their readings in the opposite order */
    assert_int_equal(run_clock_read(&run_clock, after) - start, RUN_CLOCK_POLL_US + RUN_CLOCK_STALL_US + 1000);
}

static void test_clock_steps_ignore_drift(void **state)
{
    struct clock_steps steps = {0};
    uint64_t wall = 1700000000 * TL_SECOND, boot = 77 * TL_SECOND;
    (void)state;
    assert_false(clock_steps_observe(&steps, wall, boot));
    /* An NTP-corrected clock that drifts half a millisecond per second. */
    for (int i = 0; i < 1000; i++)
        assert_false(clock_steps_observe(&steps, wall += TL_SECOND + 500, boot += TL_SECOND));
    assert_true(clock_steps_observe(&steps, wall + YEAR, boot));
    assert_true(steps.last == (int64_t)YEAR && steps.count == 1);
    assert_true(clock_steps_observe(&steps, wall - 8 * TL_SECOND, boot));
    assert_true(steps.last == -(int64_t)(YEAR + 8 * TL_SECOND) && steps.count == 2);
    assert_false(clock_steps_observe(&steps, wall - 8 * TL_SECOND + 3600 * TL_SECOND, boot + 3600 * TL_SECOND));
}

static void test_ts_clock_slews_while_wall_clock_is_behind(void **state)
{
    struct ts_clock ts_clock = {0};
    const tl_ts last = 1700000000 * TL_SECOND;
    uint64_t boot = 9 * TL_SECOND;
    (void)state;
    assert_int_equal(ts_clock_read(&ts_clock, last + 5, boot, last), last + 5);
    /* an hour back: half speed until the wall clock has caught up */
    uint64_t wall = last - 3600 * TL_SECOND;
    assert_int_equal(ts_clock_read(&ts_clock, wall, boot, last), last);
    assert_int_equal(ts_clock_read(&ts_clock, wall + 1000, boot + 1000, last), last + 500);
    assert_int_equal(ts_clock_read(&ts_clock, wall + 3600 * TL_SECOND, boot + 3600 * TL_SECOND, last + 500),
                     last + 1800 * TL_SECOND);
    boot += 7200 * TL_SECOND;
    wall += 7200 * TL_SECOND;
    assert_int_equal(ts_clock_read(&ts_clock, wall, boot, last + 3600 * TL_SECOND), last + 3600 * TL_SECOND);
    assert_int_equal(ts_clock_read(&ts_clock, wall + 1, boot + 1, last + 3600 * TL_SECOND),
                     last + 3600 * TL_SECOND + 1);
    /* above the largest timestamp */
    assert_int_equal(ts_clock_read(&ts_clock, UINT64_MAX, boot, last), TL_TS_MAX - 1);
}

static void test_ts_history_ignores_clock_steps(void **state)
{
    const uint64_t hour = 3600 * TL_SECOND;
    struct ts_history history;
    uint64_t boot = 100 * hour;
    tl_ts ts = 1700000000 * TL_SECOND;
    (void)state;
    ts_history_init(&history, hour, boot, ts);
    assert_int_equal(ts_history_at(&history, boot, hour), ts - hour);
    for (int i = 0; i < 3600 * 5 / 2; i++)
        ts_history_record(&history, boot += TL_SECOND, ts += TL_SECOND);
    assert_true(history.count <= TS_HISTORY_POINTS);
    assert_int_equal(ts_history_at(&history, boot, hour), ts - hour);
    /* set forward by a year: for an hour, an hour ago is before the step */
    tl_ts before = ts;
    ts += YEAR;
    ts_history_record(&history, boot += TL_SECOND, ts);
    assert_true(ts_history_at(&history, boot, hour) <= before - hour + TL_SECOND);
    assert_true(ts_history_at(&history, boot, hour) >= before - hour - 30 * TL_SECOND);
    for (int i = 0; i < 3500; i++)
        ts_history_record(&history, boot += TL_SECOND, ts += TL_SECOND);
    assert_true(ts_history_at(&history, boot, hour) <= before);
    for (int i = 0; i < 200; i++)
        ts_history_record(&history, boot += TL_SECOND, ts += TL_SECOND);
    assert_int_equal(ts_history_at(&history, boot, hour), ts - hour);
}

/* A history that began above the timestamps that followed begins anew; the saved points can be loaded. */
static void test_ts_history_begins_anew(void **state)
{
    const uint64_t hour = 3600 * TL_SECOND;
    const tl_ts ts = 1700000000 * TL_SECOND;
    struct ts_history history, again;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    ts_history_init(&history, hour, TS_HISTORY_ORIGIN, ts + hour);
    assert_int_equal(ts_history_newest(&history), ts + hour);
    ts_history_restart(&history, TS_HISTORY_ORIGIN + TL_SECOND, ts);
    assert_int_equal(ts_history_newest(&history), ts);
    assert_int_equal(ts_history_at(&history, TS_HISTORY_ORIGIN + TL_SECOND, hour), ts - hour);
    for (int i = 1; i < 3600; i++)
        ts_history_record(&history, TS_HISTORY_ORIGIN + (1 + i) * TL_SECOND, ts + i * TL_SECOND);
    ts_history_save(&history, TS_HISTORY_ORIGIN + hour, &saved);
    assert_true(ts_history_load(&again, hour, TS_HISTORY_ORIGIN + hour, ts + hour, buf_as_slice(&saved)));
    buf_deinit(&saved);
}

/* The history survives a restart of server and machine; the time in between counts as zero. */
static void test_ts_history_survives_restart(void **state)
{
    const uint64_t hour = 3600 * TL_SECOND;
    struct ts_history history, again;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    uint64_t boot = TS_HISTORY_ORIGIN + hour;
    tl_ts ts = 1700000000 * TL_SECOND;
    (void)state;
    ts_history_init(&history, hour, boot, ts);
    for (int i = 0; i < 9000; i++)
        ts_history_record(&history, boot += TL_SECOND, ts += i == 8000 ? YEAR : i % 100 == 0 ? 1000 : TL_SECOND);
    ts_history_save(&history, boot, &saved);
    assert_true(saved.len < 4096);
    assert_true(ts_history_load(&again, hour, TS_HISTORY_ORIGIN + 5, ts + 7, buf_as_slice(&saved)));
    for (uint64_t us = 0; us <= hour; us += 10 * TL_SECOND) {
        tl_ts before = ts_history_at(&history, boot, us), after = ts_history_at(&again, TS_HISTORY_ORIGIN + 5, us);
        /* Smaller differences are not saved. */
        assert_true(after <= before + TL_SECOND && before <= after + TL_SECOND);
        if (us > 1100 * TL_SECOND)
            assert_true(after < ts - 300 * 86400 * TL_SECOND);
    }
    assert_false(ts_history_load(&again, hour, TS_HISTORY_ORIGIN, ts, slice_make(saved.data, saved.len - 1)));
    assert_int_equal(ts_history_at(&again, TS_HISTORY_ORIGIN, hour), ts - hour);
    assert_true(ts_history_load(&again, hour, TS_HISTORY_ORIGIN, ts, SLICE_NONE));
    assert_int_equal(ts_history_at(&again, TS_HISTORY_ORIGIN, hour), ts - hour);
    buf_deinit(&saved);
}

/*
 * The cluster clock follows each host's own clock from the highest value ordered, and stops while
 * nothing is ordered.
 */
static void test_cluster_clock_stops_without_entries(void **state)
{
    struct cluster_clock cluster_clock;
    (void)state;

    cluster_clock_init(&cluster_clock, 100 * TL_SECOND, 7 * TL_SECOND);
    assert_int_equal(cluster_clock_read(&cluster_clock, 101 * TL_SECOND), 8 * TL_SECOND);
    assert_int_equal(cluster_clock_read(&cluster_clock, 130 * TL_SECOND), 7 * TL_SECOND + CLUSTER_CLOCK_STALL_US);
    /* This host's own entry, from which it continues. */
    cluster_clock_observe(&cluster_clock, 130 * TL_SECOND, 9 * TL_SECOND);
    assert_int_equal(cluster_clock_read(&cluster_clock, 131 * TL_SECOND), 10 * TL_SECOND);
    /* Another host is ahead. */
    cluster_clock_observe(&cluster_clock, 131 * TL_SECOND, 20 * TL_SECOND);
    assert_int_equal(cluster_clock_read(&cluster_clock, 132 * TL_SECOND), 21 * TL_SECOND);
    cluster_clock_observe(&cluster_clock, 132 * TL_SECOND, 5 * TL_SECOND); /* another host is late */
    assert_int_equal(cluster_clock_read(&cluster_clock, 132 * TL_SECOND + 1), 21 * TL_SECOND + 1);
}

static void test_clock_median_is_robust_against_a_minority(void **state)
{
    const int64_t year = (int64_t)365 * 86400 * (int64_t)TL_SECOND;
    (void)state;
    assert_int_equal(clock_median((int64_t[]){year}, 1), year);
    assert_int_equal(clock_median((int64_t[]){year, 5}, 2), 5);
    assert_int_equal(clock_median((int64_t[]){0, year, 7}, 3), 7);
    assert_int_equal(clock_median((int64_t[]){0, -year, 7}, 3), 0);
    assert_int_equal(clock_median((int64_t[]){year, 3, year, 4}, 4), 4);
    assert_int_equal(clock_median((int64_t[]){-year, 1, 2, 3, year}, 5), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_clock_stops_without_entries),
        cmocka_unit_test(test_clock_median_is_robust_against_a_minority),
        cmocka_unit_test(test_run_clock_excludes_stalls),
        cmocka_unit_test(test_clock_steps_ignore_drift),
        cmocka_unit_test(test_ts_clock_slews_while_wall_clock_is_behind),
        cmocka_unit_test(test_ts_history_ignores_clock_steps),
        cmocka_unit_test(test_ts_history_begins_anew),
        cmocka_unit_test(test_ts_history_survives_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
