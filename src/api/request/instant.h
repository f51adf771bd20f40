/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timestamps as text: ISO 8601 in UTC with microseconds.
 *
 * Elasticsearch has no such parameter, so the forms are this server's own; other readers of dates:
 * base/digits.h.
 */
#ifndef TL_API_INSTANT_H
#define TL_API_INSTANT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"

enum { INSTANT_INVALID = 1 };

/*
 * Reads "2026-11-20", "2026-11-20T10:00", "2026-11-20T10:00:00.123456Z", "…+02:00"; omitted parts are zero, no zone
 * is UTC. Years 1970 to 2199.
 * Returns: 0, INSTANT_INVALID.
 */
int instant_parse(struct slice text, tl_ts *ret_ts) TL_MUST_USE;

/* Returns: "2026-11-20T10:00:00.123456Z"; with `fraction` digits of 0, 3 or 6. */
struct slice instant_text(struct arena *arena, tl_ts ts, int fraction);

/*
 * Returns: the time of day at which something ends that at the timestamp `ts` was to end at the
 * timestamp `end`, with milliseconds. Timestamps may be ahead of the clock that people read, while
 * it has been set back.
 */
struct slice instant_end_text(struct arena *arena, tl_ts ts, tl_ts end);

#endif
