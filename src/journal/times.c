/* SPDX-License-Identifier: Apache-2.0 */
/* Clock arithmetic; see times.h. */
#include "journal/times.h"
#include "base/check.h"

#include <string.h>

/* --- Durations ---------------------------------------------------------------------------------------------------- */

void run_clock_init(struct run_clock *run_clock, uint64_t boot)
{
    *run_clock = (struct run_clock){.last_boot = boot};
}

uint64_t run_clock_read(struct run_clock *run_clock, uint64_t boot)
{
    if (boot > run_clock->last_boot) {
        uint64_t gap = boot - run_clock->last_boot;
        run_clock->stalled_us += gap > RUN_CLOCK_STALL_US ? gap - RUN_CLOCK_STALL_US : 0;
        run_clock->last_boot = boot;
    }
    return run_clock->last_boot - run_clock->stalled_us;
}

/* --- Steps of the wall clock -------------------------------------------------------------------------------------- */

void cluster_clock_init(struct cluster_clock *cluster_clock, uint64_t boot, uint64_t clock)
{
    *cluster_clock = (struct cluster_clock){.clock = clock, .origin = boot - clock};
}

uint64_t cluster_clock_read(struct cluster_clock *cluster_clock, uint64_t boot)
{
    uint64_t now = boot - cluster_clock->origin;
    /* Exclude the stall. */
    if (now - cluster_clock->clock > CLUSTER_CLOCK_STALL_US && now > cluster_clock->clock) {
        now = cluster_clock->clock + CLUSTER_CLOCK_STALL_US;
        cluster_clock->origin = boot - now;
    }
    return now > cluster_clock->clock ? now : cluster_clock->clock;
}

void cluster_clock_observe(struct cluster_clock *cluster_clock, uint64_t boot, uint64_t clock)
{
    if (clock > cluster_clock_read(cluster_clock, boot))
        cluster_clock->origin = boot - clock;
    if (clock > cluster_clock->clock)
        cluster_clock->clock = clock;
}

bool clock_steps_observe(struct clock_steps *steps, uint64_t wall, uint64_t boot)
{
    int64_t offset = (int64_t)(wall - boot);
    int64_t step = steps->seen ? offset - steps->offset : 0;
    steps->seen = true;
    steps->offset = offset;
    if (step <= (int64_t)CLOCK_STEP_US_MIN && step >= -(int64_t)CLOCK_STEP_US_MIN)
        return false;
    steps->count++;
    steps->last = step;
    return true;
}

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

tl_ts ts_clock_read(struct ts_clock *ts_clock, uint64_t wall, uint64_t boot, tl_ts last)
{
    REQUIRE(last < TL_TS_MAX && (!ts_clock->slewing || last >= ts_clock->from));
    if (wall >= last) {
        ts_clock->slewing = false;
        return wall < TL_TS_MAX ? wall : TL_TS_MAX - 1;
    }
    if (!ts_clock->slewing)
        *ts_clock = (struct ts_clock){.slewing = true, .from = last, .from_boot = boot};
    return ts_clock->from + (boot > ts_clock->from_boot ? (boot - ts_clock->from_boot) / 2 : 0);
}

/* --- Timestamp history -------------------------------------------------------------------------------------------- */

void ts_history_init(struct ts_history *history, uint64_t span, uint64_t boot, tl_ts ts)
{
    history->spacing = span / (TS_HISTORY_POINTS / 2);
    ts_history_restart(history, boot, ts);
}

/*
 * The newest point moves until it is `spacing` after its predecessor, then stays. A full history
 * drops its oldest point: all points together span more than any query needs.
 */
void ts_history_record(struct ts_history *history, uint64_t boot, tl_ts ts)
{
    struct ts_history_point *points = history->points;
    size_t last = history->count - 1;
    REQUIRE(history->count > 0 && boot >= points[last].boot && ts >= points[last].ts);
    if (last > 0 && points[last].boot - points[last - 1].boot < history->spacing) {
        points[last] = (struct ts_history_point){boot, ts};
        return;
    }
    if (history->count == TS_HISTORY_POINTS) {
        memmove(points, points + 1, (TS_HISTORY_POINTS - 1) * sizeof *points);
        history->count--;
    }
    points[history->count++] = (struct ts_history_point){boot, ts};
}

void ts_history_restart(struct ts_history *history, uint64_t boot, tl_ts ts)
{
    history->points[0] = (struct ts_history_point){boot, ts};
    history->count = 1;
}

tl_ts ts_history_newest(const struct ts_history *history)
{
    REQUIRE(history->count > 0);
    return history->points[history->count - 1].ts;
}

/*
 * Returns: whether timestamps followed elapsed time between two points. Only points where they did
 *          not are worth saving.
 */
static bool goes_as_time_does(const struct ts_history_point *from, const struct ts_history_point *to)
{
    REQUIRE(to->boot >= from->boot && to->ts >= from->ts);
    uint64_t time = to->boot - from->boot, ts = to->ts - from->ts;
    return (time > ts ? time - ts : ts - time) < CLOCK_STEP_US_MIN;
}

static void save_point(const struct ts_history_point *point, uint64_t boot, struct buf *buf)
{
    REQUIRE(boot >= point->boot);
    buf_varint(buf, boot - point->boot);
    buf_varint(buf, point->ts);
}

void ts_history_save(const struct ts_history *history, uint64_t boot, struct buf *buf)
{
    REQUIRE(history->count > 0 && history->count <= TS_HISTORY_POINTS);
    const struct ts_history_point *points = history->points, *saved = points;
    save_point(saved, boot, buf);
    for (size_t i = 1; i < history->count; i++) {
        if (i + 1 < history->count && goes_as_time_does(saved, &points[i]))
            continue;
        if (saved < &points[i - 1])
            save_point(&points[i - 1], boot, buf);
        saved = &points[i];
        save_point(saved, boot, buf);
    }
}

bool ts_history_load(struct ts_history *history, uint64_t span, uint64_t boot, tl_ts ts, struct slice saved)
{
    uint64_t age, at;
    ts_history_init(history, span, boot, ts);
    history->count = 0;
    while (saved.len > 0) {
        const struct ts_history_point *before = history->count > 0 ? &history->points[history->count - 1] : NULL;
        if (history->count == TS_HISTORY_POINTS - 1 || !slice_take_varint(&saved, &age) ||
            !slice_take_varint(&saved, &at) || age > boot || at > ts ||
            (before != NULL && (boot - age < before->boot || at < before->ts))) {
            ts_history_init(history, span, boot, ts);
            return false;
        }
        history->points[history->count++] = (struct ts_history_point){boot - age, at};
    }
    history->points[history->count++] = (struct ts_history_point){boot, ts};
    return true;
}

tl_ts ts_history_at(const struct ts_history *history, uint64_t boot, uint64_t us)
{
    REQUIRE(history->count > 0 && boot >= history->points[0].boot);
    uint64_t at = boot > us ? boot - us : 0;
    size_t i = history->count;
    while (i > 0 && history->points[i - 1].boot > at)
        i--;
    if (i == 0) {
        uint64_t before = us - (boot - history->points[0].boot);
        return history->points[0].ts > before ? history->points[0].ts - before : 0;
    }
    const struct ts_history_point *point = &history->points[i - 1];
    tl_ts ts = point->ts + (at - point->boot);
    if (i < history->count)
        return ts < history->points[i].ts ? ts : history->points[i].ts;
    return point->ts; /* no later point is known */
}

/* --- Clocks of several hosts -------------------------------------------------------------------------------------- */

int64_t clock_median(int64_t *offsets, size_t count)
{
    REQUIRE(count > 0);
    for (size_t i = 1; i < count; i++) {
        int64_t offset = offsets[i];
        size_t at = i;
        for (; at > 0 && offsets[at - 1] > offset; at--)
            offsets[at] = offsets[at - 1];
        offsets[at] = offset;
    }
    return offsets[(count - 1) / 2];
}
