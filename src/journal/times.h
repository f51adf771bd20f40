/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the journal makes of the machine's two clocks (README.md, "Time"): the clock of commands, the timestamps that may be
 * given, and where an hour ago was. Plain arithmetic over readings that the caller brings; nothing here is locked.
 *
 * `wall` is base/clock.h's clock_wall_us(), `boot` its clock_boot_us().
 */
#ifndef TL_JOURNAL_TIMES_H
#define TL_JOURNAL_TIMES_H

#include "base/buf.h"
#include "base/types.h"

#include <stdbool.h>
#include <stddef.h>

/* --- Durations ---------------------------------------------------------------------------------------------------- */

/* A server that works reads its clock at least so often while anything can run out, ... */
#define PACE_BEAT_US (250 * TL_MS)
/* ... so what is more than this between two readings is time in which it did not work. */
#define PACE_GAP_US (2 * PACE_BEAT_US)

/*
 * The clock of commands: microseconds in which the server worked. It goes with `boot`, but no further than PACE_GAP_US from one
 * reading to the next: leases and waits are not counted down while nobody could have been heard.
 */
struct pace {
    uint64_t last_boot;
    uint64_t lost; /* of `boot`, in gaps */
};

void pace_init(struct pace *pace, uint64_t boot);
/* Returns: the clock now. A `boot` before the last one counts as the last. */
uint64_t pace_read(struct pace *pace, uint64_t boot);

/* --- Durations in a cluster ---------------------------------------------------------------------------------------- */

/* Time in which nothing was ordered counts up to so much. */
#define COMMON_GAP_US (2 * TL_SECOND)

/*
 * The clock of commands that all hosts share: each goes on by its own `boot` from the furthest that it has seen in the order, and no more than
 * COMMON_GAP_US beyond the newest.
 */
struct common {
    uint64_t clock;  /* the highest in the order */
    uint64_t origin; /* of the clock, by `boot`: clock = boot - origin, modulo 2^64 */
};

void common_init(struct common *common, uint64_t boot, uint64_t clock);
/* Returns: the clock now. */
uint64_t common_read(struct common *common, uint64_t boot);
/* An entry with this clock came just now. */
void common_note(struct common *common, uint64_t boot, uint64_t clock);

/* --- Steps of the wall clock -------------------------------------------------------------------------------------- */

/* Steps of less are no matter: it is how the clock is kept right. */
#define STEP_US_MIN TL_SECOND

struct steps {
    bool seen;
    int64_t ahead; /* wall - boot, when it was looked at last */
    size_t count;  /* steps so far */
    int64_t last;  /* the last one, in microseconds; below 0: back */
};

/* Looks at a pair of readings taken together. Returns: whether the wall clock has been set since the last. */
bool steps_look(struct steps *steps, uint64_t wall, uint64_t boot);

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

/*
 * The present, for timestamps: the wall clock, but while that is behind what was given already, half as fast as time passes,
 * until it has caught up. So timestamps neither sink nor stand still, however far back the clock was set.
 */
struct present {
    bool slow;
    tl_ts from;
    uint64_t from_boot;
};

/* Returns: the present, which may be at or below `last`, the newest timestamp given. */
tl_ts present_read(struct present *present, uint64_t wall, uint64_t boot, tl_ts last);

/* --- The past ----------------------------------------------------------------------------------------------------- */

enum { PAST_POINTS = 512 };

/* What past functions take for `boot`, so that there is room before the start of the machine. */
#define PAST_ORIGIN ((uint64_t)1 << 60)

struct past_point {
    uint64_t boot;
    tl_ts ts;
};

/* Which timestamp was the newest at a moment, though the wall clock may have been set since. */
struct past {
    struct past_point points[PAST_POINTS]; /* oldest first */
    size_t count;
    uint64_t spacing; /* between points, at least */
};

/*
 * The server begins, and the newest timestamp is `ts`; `span` is how far back anybody will ask. What was before is taken to have passed as
 * its timestamps say.
 */
void past_init(struct past *past, uint64_t span, uint64_t boot, tl_ts ts);
/* At `boot` the newest timestamp was `ts`. Neither sinks. */
void past_note(struct past *past, uint64_t boot, tl_ts ts);
/* Appends what is worth keeping of it: where timestamps did not go as time did. */
void past_save(const struct past *past, uint64_t boot, struct buf *buf);
/*
 * The server begins again, as past_init(), with what was saved in its life before; the time in between does not count.
 * Returns: false when those bytes are not sound: they count for nothing.
 */
bool past_load(struct past *past, uint64_t span, uint64_t boot, tl_ts ts, struct slice saved);
/* Returns: the newest timestamp `us` before `boot`, or an earlier one. */
tl_ts past_before(const struct past *past, uint64_t boot, uint64_t us);

#endif
