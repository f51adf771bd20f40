/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the feed; see feed_read.h. */
#include "core/feed/feed_read.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/feed/feed.h"
#include "core/feed/feed_record.h"
#include "store/store.h"

struct feed_scan {
    struct store_iter *iter;
    bool begun;
};

/*
 * Checks that the feed has all changes after `since`. Called after the iterator was opened, so that
 * a trim in between is noticed.
 */
static int check_reach(struct store *store, tl_ts since, tl_ts *ret_from)
{
    bool off = false;
    int r = feed_read_state(store, &off, ret_from);

    if (r < 0)
        return tl_trace(r);
    if (r == STORE_NOT_FOUND) {
        *ret_from = TL_TS_MAX;
        return FEED_TOO_OLD;
    }
    if (off)
        return FEED_OFF;
    return since < *ret_from ? FEED_TOO_OLD : 0;
}

int feed_scan_new(struct store *store, tl_ts since, tl_ts upto, struct feed_scan **ret_scan, tl_ts *ret_from)
{
    char lower[FEED_KEY_BYTES], upper[FEED_KEY_BYTES];
    tl_ts end = upto < since ? since : upto;
    struct feed_scan *scan = mem_zalloc(sizeof *scan);

    scan->iter =
        store_iter_new(store, SPACE_FEED, TL_TS_MAX, feed_key(lower, since + 1, 0), feed_key(upper, end + 1, 0));
    int r = check_reach(store, since, ret_from);
    if (r != 0) {
        feed_scan_free(scan);
        return r;
    }
    *ret_scan = scan;
    return 0;
}

void feed_scan_free(struct feed_scan *scan)
{
    if (scan == NULL)
        return;
    store_iter_free(scan->iter);
    mem_free(scan);
}

int feed_scan_next(struct feed_scan *scan, struct feed_record *ret_record)
{
    REQUIRE(scan->iter != NULL);
    if (scan->begun)
        store_iter_next(scan->iter);
    else
        store_iter_seek_first(scan->iter);
    scan->begun = true;
    if (!store_iter_valid(scan->iter)) {
        int r = store_iter_status(scan->iter);
        return r == 0 ? FEED_END : tl_trace(r < 0 ? r : TL_ERR_CORRUPT);
    }
    ret_record->changes = store_iter_value(scan->iter);
    bool sound = feed_key_parse(store_iter_key(scan->iter), &ret_record->ts, &ret_record->part) &&
                 feed_record_open(&ret_record->changes, &ret_record->transaction);
    return sound ? 0 : tl_trace(TL_ERR_CORRUPT);
}
