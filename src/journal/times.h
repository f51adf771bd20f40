/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the journal derives from the machine's two clocks (README.md, "Time"): the command clock,
 * timestamps, and the timestamp at an earlier time. Pure arithmetic over readings that the caller
 * supplies; not thread-safe.
 *
 * `wall` is clock_wall_us(), `boot` is clock_boot_us() (base/clock.h), both in microseconds.
 */
#ifndef TL_JOURNAL_TIMES_H
#define TL_JOURNAL_TIMES_H

#include "base/buf.h"
#include "base/types.h"

#include <stdbool.h>
#include <stddef.h>

/* --- Durations ---------------------------------------------------------------------------------------------------- */

/*
 * The longest time between two readings of the clock in a running server, while anything can
 * expire.
 */
#define RUN_CLOCK_POLL_US (250 * TL_MS)
/* A longer time between two readings is a stall; the excess is not counted. */
#define RUN_CLOCK_STALL_US (2 * RUN_CLOCK_POLL_US)

/*
 * The command clock of a single host: microseconds in which the server ran. It follows `boot`, but
 * advances by at most RUN_CLOCK_STALL_US from one reading to the next. Leases and waits are not
 * counted down while the server could receive nothing.
 */
struct run_clock {
    uint64_t last_boot;
    uint64_t stalled_us; /* excluded so far */
};

void run_clock_init(struct run_clock *run_clock, uint64_t boot);
/* Returns: the command clock. A `boot` below the last one counts as the last. */
uint64_t run_clock_read(struct run_clock *run_clock, uint64_t boot);

/* --- Durations in a cluster --------------------------------------------------------------------------------------- */

/* The longest time without an entry that is counted. */
#define CLUSTER_CLOCK_STALL_US (2 * TL_SECOND)

/*
 * The command clock that all hosts of a cluster share. Each host continues by its own `boot` from
 * the highest value in an applied entry, at most CLUSTER_CLOCK_STALL_US beyond it.
 */
struct cluster_clock {
    uint64_t clock;  /* the highest value in an applied entry */
    uint64_t origin; /* clock = boot - origin, modulo 2^64 */
};

void cluster_clock_init(struct cluster_clock *cluster_clock, uint64_t boot, uint64_t clock);
/* Returns: the command clock. */
uint64_t cluster_clock_read(struct cluster_clock *cluster_clock, uint64_t boot);
/* Records the clock of an entry that was just applied. */
void cluster_clock_observe(struct cluster_clock *cluster_clock, uint64_t boot, uint64_t clock);

/* --- Steps of the wall clock -------------------------------------------------------------------------------------- */

/* Smaller changes are ordinary corrections of the clock, not steps. */
#define CLOCK_STEP_US_MIN TL_SECOND

struct clock_steps {
    bool seen;      /* there was a reading */
    int64_t offset; /* wall - boot at the last reading */
    size_t count;   /* number of steps */
    int64_t last;   /* size of the last step; negative: backward */
};

/*
 * Records two readings taken together. Returns: whether the wall clock was stepped since the last
 * ones.
 */
bool clock_steps_observe(struct clock_steps *steps, uint64_t wall, uint64_t boot);

/* --- Timestamps --------------------------------------------------------------------------------------------------- */

/*
 * The clock of timestamps: the wall clock, but never below a timestamp already issued. While the
 * wall clock is below that, it slews: it advances at half speed until the wall clock has caught up.
 */
struct ts_clock {
    bool slewing;
    tl_ts from;         /* the timestamp at which slewing began */
    uint64_t from_boot; /* `boot` at that time */
};

/*
 * Returns: the time for the next timestamp. It may be at or below `last`, the newest timestamp
 *          issued.
 * Requires: `last` is not below that of an earlier call.
 */
tl_ts ts_clock_read(struct ts_clock *ts_clock, uint64_t wall, uint64_t boot, tl_ts last);

/*
 * Returns: the median of clocks, as offsets from any common one. Of an even number it is the lower of
 *          the two in the middle: timestamps can follow a clock forward, but never back.
 * Requires: count > 0. Sorts the offsets.
 */
int64_t clock_median(int64_t *offsets, size_t count);

/* --- Timestamp history -------------------------------------------------------------------------------------------- */

enum { TS_HISTORY_POINTS = 512 };

/*
 * Added to `boot` by callers of ts_history functions, so that times before the start of the machine
 * are positive.
 */
#define TS_HISTORY_ORIGIN ((uint64_t)1 << 60)

struct ts_history_point {
    uint64_t boot;
    tl_ts ts;
};

/*
 * Maps elapsed time to timestamps: the newest timestamp at an earlier `boot`, even if the wall
 * clock was set since.
 */
struct ts_history {
    struct ts_history_point points[TS_HISTORY_POINTS]; /* oldest first */
    size_t count;
    uint64_t spacing; /* minimum distance between points */
};

/*
 * Begins a history at timestamp `ts`. `span`: how far back it will be queried. Earlier timestamps
 * are assumed to have followed elapsed time.
 */
void ts_history_init(struct ts_history *history, uint64_t span, uint64_t boot, tl_ts ts);
/*
 * Records that `ts` was the newest timestamp at `boot`. Requires: neither is below the previous
 * one.
 */
void ts_history_record(struct ts_history *history, uint64_t boot, tl_ts ts);
/* Begins it anew at timestamp `ts`, for the same span: the points that it has are not valid. */
void ts_history_restart(struct ts_history *history, uint64_t boot, tl_ts ts);
/* Returns: the timestamp of its newest point. */
tl_ts ts_history_newest(const struct ts_history *history);
/* Appends the points between which timestamps did not follow elapsed time. */
void ts_history_save(const struct ts_history *history, uint64_t boot, struct buf *buf);
/*
 * Begins a history as ts_history_init(), with the points saved by an earlier run. The time between
 * the runs counts as zero.
 * Returns: false: the bytes are invalid and ignored.
 */
bool ts_history_load(struct ts_history *history, uint64_t span, uint64_t boot, tl_ts ts, struct slice saved);
/*
 * Returns: the newest timestamp at `us` before `boot`, or an earlier timestamp.
 * Requires: `boot` is not below that of the oldest point.
 */
tl_ts ts_history_at(const struct ts_history *history, uint64_t boot, uint64_t us);

#endif
