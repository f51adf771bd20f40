/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was held and awaited and is no more: GET /_lock of a moment of the past.
 *
 * Whatever was held in one mode, or awaited, is an *interval* from one timestamp to another. One that goes on is known from the table of locks; one that has
 * ended is kept here, the newest LOCK_HISTORY_INTERVALS_MAX of them. So what was at T is what is there and began by then, and what is kept here and held T.
 *
 * 1. It is no part of the state: in no checkpoint, never acted upon, empty when the core is opened; who asks knows since when it is complete.
 * 2. It costs those nothing who are quick: what lasted less than LOCK_HISTORY_MIN_US is not kept, nor what goes beyond LOCK_HISTORY_PER_TS_MAX of one timestamp.
 * 3. A document is told where it lay in the end; the token of a lock is not told.
 */
#ifndef TL_CORE_LOCK_HISTORY_H
#define TL_CORE_LOCK_HISTORY_H

#include "base/buf.h"
#include "base/types.h"
#include "core/locks/lock.h"

struct wait;

enum {
    LOCK_HISTORY_MIN_US = 100 * 1000,
    LOCK_HISTORY_PER_TS_MAX = 1000,
    LOCK_HISTORY_INTERVALS_MAX = 20000,          /* intervals, ... */
    LOCK_HISTORY_BYTES_MAX = 8 << 20, /* ... and their bytes */
};

struct lock_history_interval {
    tl_ts from, to; /* it was there at T where from <= T < to */
    bool awaited;
    size_t key_bytes, name_bytes, who_bytes;
    char text[]; /* key, name and who, as a status_row has them */
};

struct lock_history {
    struct lock_history_interval **ring; /* by number modulo LOCK_HISTORY_INTERVALS_MAX; NULL: nothing was ever kept */
    uint64_t first, next;        /* the numbers of those that are kept, in order of their ends */
    size_t bytes;
    tl_ts complete_from; /* of those that ended before that some were let go */
    tl_ts at_once_ts;
    size_t at_once; /* were kept at that timestamp */
};

void lock_history_deinit(struct lock_history *past);

/* A lock has changed, or goes, as lock_hooks.changed has it. */
void lock_history_record_hold(struct lock_history *past, const struct lock_hold *hold, bool gone, tl_ts now);
/* A wait is over. */
void lock_history_record_wait(struct lock_history *past, const struct wait *wait, tl_ts now);

/* Returns: the number of the first interval that ends after `ts`; `next` where there is none. */
uint64_t lock_history_find(const struct lock_history *past, tl_ts ts);
/* Requires: first <= number < next. */
static inline const struct lock_history_interval *lock_history_get(const struct lock_history *past, uint64_t number)
{
    return past->ring[number % LOCK_HISTORY_INTERVALS_MAX];
}

#endif
