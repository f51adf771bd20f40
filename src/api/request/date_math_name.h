/* SPDX-License-Identifier: Apache-2.0 */
/* Index names with dates in them: "<logs-{now/d}>", "<logs-{now/M{yyyy.MM}}>". */
#ifndef TL_API_DATE_MATH_NAME_H
#define TL_API_DATE_MATH_NAME_H

#include "base/arena.h"
#include "base/error.h"

enum { DATE_MATH_NAME_INVALID = 1 }; /* *ret_problem says why, in Elasticsearch's words */

/*
 * Resolves the date math in a comma-separated list of names; names without angle brackets stay as
 * they are. `now` is in milliseconds; `zones` is the database of time zones. Returns: 0,
 * DATE_MATH_NAME_INVALID. Lives: in `arena`, or is `names` itself.
 */
int date_math_name_resolve(struct arena *arena, struct slice names, int64_t now, struct slice zones,
                           struct slice *ret_names, struct problem *ret_problem) TL_MUST_USE;

#endif
