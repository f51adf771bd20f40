/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was held and awaited and is no more: GET /_lock of a moment of the past.
 *
 * Whatever was held in one mode, or awaited, is an *interval* from one timestamp to another. One that goes on is known from the table of locks; one that has
 * ended is kept here, the newest PAST_MAX of them. So what was at T is what is there and began by then, and what is kept here and held T.
 *
 * 1. It is no part of the state: in no checkpoint, never acted upon, empty when the core is opened; who asks knows since when it is complete.
 * 2. It costs those nothing who are quick: what lasted less than PAST_LEAST_US is not kept, nor what goes beyond PAST_AT_ONCE of one timestamp.
 * 3. A document is told where it lay in the end; the token of a lock is not told.
 */
#ifndef TL_CORE_LOCK_PAST_H
#define TL_CORE_LOCK_PAST_H

#include "base/buf.h"
#include "base/types.h"
#include "core/locks/lock.h"

struct wait;

enum {
    PAST_LEAST_US = 100 * 1000,
    PAST_AT_ONCE = 1000,
    PAST_MAX = 20000,          /* intervals, ... */
    PAST_BYTES_MAX = 8 << 20, /* ... and their bytes */
};

struct past_interval {
    tl_ts from, to; /* it was there at T where from <= T < to */
    bool awaited;
    size_t key_bytes, name_bytes, who_bytes;
    char text[]; /* key, name and who, as a status_row has them */
};

struct lock_past {
    struct past_interval **ring; /* by number modulo PAST_MAX; NULL: nothing was ever kept */
    uint64_t first, next;        /* the numbers of those that are kept, in order of their ends */
    size_t bytes;
    tl_ts complete_from; /* of those that ended before that some were let go */
    tl_ts at_once_ts;
    size_t at_once; /* were kept at that timestamp */
};

void lock_past_deinit(struct lock_past *past);

/* A lock has changed, or goes, as lock_hooks.changed has it. */
void lock_past_changed(struct lock_past *past, const struct lock_hold *hold, bool gone, tl_ts now);
/* A wait is over. */
void lock_past_waited(struct lock_past *past, const struct wait *wait, tl_ts now);

/* Returns: the number of the first interval that ends after `ts`; `next` where there is none. */
uint64_t lock_past_after(const struct lock_past *past, tl_ts ts);
/* Requires: first <= number < next. */
static inline const struct past_interval *lock_past_at(const struct lock_past *past, uint64_t number)
{
    return past->ring[number % PAST_MAX];
}

#endif
