/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of locks, for GET /_lock at an earlier timestamp.
 *
 * An *interval* is the time during which an owner held a resource in one mode, or waited for it.
 * The lock table has the open intervals; this ring has the newest LOCK_HISTORY_INTERVALS_MAX that
 * have ended. So the locks at timestamp T are the open intervals that began at T or before, and the
 * ended ones that contain T.
 *
 * 1. The history is not part of the state: no checkpoint has it, nothing depends on it, and it is
 *    empty when the core is opened. `complete_from` says from which timestamp it is complete.
 * 2. Short locks cost nothing: an interval shorter than LOCK_HISTORY_MIN_US is not recorded. Nor
 *    are more than LOCK_HISTORY_PER_TS_MAX intervals that end at one timestamp, or, if their paths are long, than
 *    LOCK_HISTORY_STEP_BYTES in one step.
 * 3. A document is shown at the path it had when the interval ended. Fencing tokens are not
 *    recorded.
 */
#ifndef TL_CORE_LOCK_HISTORY_H
#define TL_CORE_LOCK_HISTORY_H

#include "base/buf.h"
#include "base/check.h"
#include "base/types.h"
#include "core/locks/lock.h"

struct wait;

enum {
    LOCK_HISTORY_MIN_US = 100 * 1000,   /* shorter intervals are not recorded */
    LOCK_HISTORY_PER_TS_MAX = 1000,     /* intervals recorded with one end timestamp */
    LOCK_HISTORY_INTERVALS_MAX = 20000, /* intervals in the ring */
    LOCK_HISTORY_BYTES_MAX = 8 << 20,   /* and their bytes */
    LOCK_HISTORY_STEP_BYTES = 1 << 20,  /* bytes recorded in one step; exceeded by its last interval only */
};

struct lock_history_interval {
    tl_ts from, to; /* it contains T when from <= T < to */
    bool waiting;   /* a waiting request; else a held lock */
    size_t key_bytes, name_bytes, owner_bytes;
    char text[]; /* key, name and owner, as in struct status_row; lengths above */
};

struct lock_history {
    struct lock_history_interval **ring; /* by number modulo its size; NULL: none recorded yet */
    uint64_t first, next;                /* the ring has [first, next), by end timestamp */
    size_t bytes;                        /* of the intervals in the ring; at most LOCK_HISTORY_BYTES_MAX */
    tl_ts complete_from;                 /* intervals that ended later are all in the ring */
    tl_ts newest_end_ts;                 /* of all intervals, recorded or not */
    size_t newest_end_count;             /* intervals that ended at it */
    size_t step_bytes;                   /* recorded in this step */
};

void lock_history_deinit(struct lock_history *history);

/* Begins a step: LOCK_HISTORY_STEP_BYTES. */
void lock_history_begin_step(struct lock_history *history);
/* Records the end of the mode that a lock has had; called by the hook lock_hooks.changed. */
void lock_history_record_hold(struct lock_history *history, const struct lock_hold *hold, bool gone, tl_ts now);
/* Records each lock that a wait, which ends now, has waited for. */
void lock_history_record_wait(struct lock_history *history, const struct wait *wait, tl_ts now);

/* Returns: the number of the first interval that ends after `ts`; history->next if none does. */
uint64_t lock_history_find(const struct lock_history *history, tl_ts ts);
/* Returns: an interval. Requires: history->first <= number < history->next. */
static inline const struct lock_history_interval *lock_history_get(const struct lock_history *history, uint64_t number)
{
    REQUIRE(history->first <= number && number < history->next);
    return history->ring[number % LOCK_HISTORY_INTERVALS_MAX];
}

#endif
