/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the feed, on any thread.
 */
#ifndef TL_CORE_FEED_READ_H
#define TL_CORE_FEED_READ_H

#include "base/error.h"
#include "base/slice.h"
#include "base/types.h"

struct store;

/* Outcomes of reads. */
enum {
    FEED_END = 1,
    FEED_TOO_OLD = 2, /* it does not reach back so far; *ret_from says how far */
    FEED_OFF = 3,
};

struct feed_record {
    tl_ts ts;
    uint32_t part;            /* of the unit's, from 0 on; the next record has the same `ts` where there are more */
    struct slice transaction; /* empty: none */
    struct slice changes;     /* for feed_change_take() */
};

struct feed_scan;

/*
 * Begins a walk over all records above `since` and up to `upto`, which must be stable.
 * Returns: 0; FEED_TOO_OLD, FEED_OFF; fatal codes. Owns: the caller; feed_scan_free(), NULL is fine.
 */
int feed_scan_new(struct store *store, tl_ts since, tl_ts upto, struct feed_scan **ret_scan,
                  tl_ts *ret_from) TL_MUST_USE;
void feed_scan_free(struct feed_scan *scan);
/* Steps to the next record, which lives until the next step. Returns: 0; FEED_END; TL_ERR_CORRUPT and the like. */
int feed_scan_next(struct feed_scan *scan, struct feed_record *ret_record) TL_MUST_USE;

#endif
