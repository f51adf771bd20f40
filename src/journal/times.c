/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of clocks; see times.h. */
#include "journal/times.h"

#include <string.h>

/* --- Durations ---------------------------------------------------------------------------------------------------- */

void pace_init(struct pace *pace, uint64_t boot)
{
    *pace = (struct pace){.last_boot = boot};
}

uint64_t pace_read(struct pace *pace, uint64_t boot)
{
    if (boot > pace->last_boot) {
        uint64_t gap = boot - pace->last_boot;
        pace->lost += gap > PACE_GAP_US ? gap - PACE_GAP_US : 0;
        pace->last_boot = boot;
    }
    return pace->last_boot - pace->lost;
}

/* --- Steps of the wall clock -------------------------------------------------------------------------------------- */

void common_init(struct common *common, uint64_t boot, uint64_t clock)
{
    *common = (struct common){.clock = clock, .origin = boot - clock};
}

uint64_t common_read(struct common *common, uint64_t boot)
{
    uint64_t now = boot - common->origin;
    if (now - common->clock > COMMON_GAP_US && now > common->clock) { /* the gap is left out */
        now = common->clock + COMMON_GAP_US;
        common->origin = boot - now;
    }
    return now > common->clock ? now : common->clock;
}

void common_note(struct common *common, uint64_t boot, uint64_t clock)
{
    if (clock > common_read(common, boot))
        common->origin = boot - clock;
    if (clock > common->clock)
        common->clock = clock;
}

bool steps_look(struct steps *steps, uint64_t wall, uint64_t boot)
{
    int64_t ahead = (int64_t)(wall - boot);
    int64_t step = steps->seen ? ahead - steps->ahead : 0;
    steps->seen = true;
    steps->ahead = ahead;
    if (step <= (int64_t)STEP_US_MIN && step >= -(int64_t)STEP_US_MIN)
        return false;
    steps->count++;
    steps->last = step;
    return true;
}

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

tl_ts present_read(struct present *present, uint64_t wall, uint64_t boot, tl_ts last)
{
    if (wall >= last) {
        present->slow = false;
        return wall < TL_TS_MAX ? wall : TL_TS_MAX - 1;
    }
    if (!present->slow)
        *present = (struct present){.slow = true, .from = last, .from_boot = boot};
    return present->from + (boot > present->from_boot ? (boot - present->from_boot) / 2 : 0);
}

/* --- The past ----------------------------------------------------------------------------------------------------- */

void past_init(struct past *past, uint64_t span, uint64_t boot, tl_ts ts)
{
    past->spacing = span / (PAST_POINTS / 2);
    past->points[0] = (struct past_point){boot, ts};
    past->count = 1;
}

/*
 * A point is kept for good once it is `spacing` after the one before; until then the newest is moved on. The oldest go: all of
 * them together span more than anybody asks for.
 */
void past_note(struct past *past, uint64_t boot, tl_ts ts)
{
    struct past_point *points = past->points;
    size_t last = past->count - 1;
    if (last > 0 && points[last].boot - points[last - 1].boot < past->spacing) {
        points[last] = (struct past_point){boot, ts};
        return;
    }
    if (past->count == PAST_POINTS) {
        memmove(points, points + 1, (PAST_POINTS - 1) * sizeof *points);
        past->count--;
    }
    points[past->count++] = (struct past_point){boot, ts};
}

/* Between two points timestamps go as time does, up to the later one; so only those matter where they did not. */
static bool goes_as_time_does(const struct past_point *from, const struct past_point *to)
{
    uint64_t time = to->boot - from->boot, ts = to->ts - from->ts;
    return (time > ts ? time - ts : ts - time) < STEP_US_MIN;
}

static void save_point(const struct past_point *point, uint64_t boot, struct buf *buf)
{
    buf_varint(buf, boot - point->boot);
    buf_varint(buf, point->ts);
}

void past_save(const struct past *past, uint64_t boot, struct buf *buf)
{
    const struct past_point *points = past->points, *saved = points;
    save_point(saved, boot, buf);
    for (size_t i = 1; i < past->count; i++) {
        if (i + 1 < past->count && goes_as_time_does(saved, &points[i]))
            continue;
        if (saved < &points[i - 1])
            save_point(&points[i - 1], boot, buf);
        saved = &points[i];
        save_point(saved, boot, buf);
    }
}

bool past_load(struct past *past, uint64_t span, uint64_t boot, tl_ts ts, struct slice saved)
{
    uint64_t age, at;
    past_init(past, span, boot, ts);
    past->count = 0;
    while (saved.len > 0) {
        const struct past_point *before = past->count > 0 ? &past->points[past->count - 1] : NULL;
        if (past->count == PAST_POINTS - 1 || !slice_take_varint(&saved, &age) || !slice_take_varint(&saved, &at) ||
            age > boot || at > ts || (before != NULL && (boot - age < before->boot || at < before->ts))) {
            past_init(past, span, boot, ts);
            return false;
        }
        past->points[past->count++] = (struct past_point){boot - age, at};
    }
    past->points[past->count++] = (struct past_point){boot, ts};
    return true;
}

tl_ts past_before(const struct past *past, uint64_t boot, uint64_t us)
{
    uint64_t at = boot > us ? boot - us : 0;
    size_t i = past->count;
    while (i > 0 && past->points[i - 1].boot > at)
        i--;
    if (i == 0) {
        uint64_t before = us - (boot - past->points[0].boot);
        return past->points[0].ts > before ? past->points[0].ts - before : 0;
    }
    const struct past_point *point = &past->points[i - 1];
    tl_ts ts = point->ts + (at - point->boot);
    if (i < past->count)
        return ts < past->points[i].ts ? ts : past->points[i].ts;
    return point->ts; /* nothing is known of later ones */
}
