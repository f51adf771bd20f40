/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the change feed, on any thread. */
#ifndef TL_CORE_FEED_READ_H
#define TL_CORE_FEED_READ_H

#include "base/error.h"
#include "base/slice.h"
#include "base/types.h"

struct store;

enum {
    FEED_END = 1,
    FEED_TOO_OLD = 2, /* changes after `since` are missing; *ret_from: the earliest possible `since` */
    FEED_OFF = 3,
};

struct feed_record {
    tl_ts ts;
    uint32_t part;            /* part of its unit's changes, from 0; the next record may continue it */
    struct slice transaction; /* id; empty: none */
    struct slice changes;     /* for feed_change_take() */
};

struct feed_scan;

/*
 * Opens a scan of all records above `since` and up to `upto`.
 *
 * Assumes: `upto` is stable.
 * Returns: 0; FEED_TOO_OLD, FEED_OFF; fatal codes.
 * Owns: the caller; feed_scan_free(), which accepts NULL.
 */
int feed_scan_new(struct store *store, tl_ts since, tl_ts upto, struct feed_scan **ret_scan,
                  tl_ts *ret_from) TL_MUST_USE;
void feed_scan_free(struct feed_scan *scan);
/*
 * Reads the next record, which is valid until the next call. Returns: 0; FEED_END; TL_ERR_IO,
 * TL_ERR_CORRUPT.
 */
int feed_scan_next(struct feed_scan *scan, struct feed_record *ret_record) TL_MUST_USE;

#endif
