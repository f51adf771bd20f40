/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in Elasticsearch's syntax: "500ms", "10s"; only "-1" and "0" need no unit. */
#ifndef TL_JSON_TIME_VALUE_H
#define TL_JSON_TIME_VALUE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"
#include "json/dialect.h"

enum { TIME_VALUE_REFUSED = 1 };

struct time_unit {
    const char *suffix;
    int64_t nanos;
};

/* Returns: the unit that a text ends with, in letters of either case; NULL: none. */
const struct time_unit *time_value_unit(struct slice text);

/*
 * Parses a duration into microseconds. `setting` is the name of the parameter in error messages.
 * Durations above 126 years are capped to 126 years. A negative duration gives -1; 7.10 accepts
 * only -1 of any unit, 5.6 any negative number.
 * Returns: 0; TIME_VALUE_REFUSED with *ret_problem.
 */
int time_value_parse(struct slice text, struct slice setting, enum dialect dialect, struct arena *arena,
                     int64_t *ret_value, struct problem *ret_problem) TL_MUST_USE;

/* Returns: a time as TimeValue prints it: one digit after the point, truncated, of the largest unit that it fills. */
const char *time_value_print(struct arena *arena, uint64_t us);

/*
 * Returns: whether a timeout that was parsed as -1 has already expired. To Elasticsearch, -1 ms
 *          means
 * "no limit": "-1" and "-1ms" are no limit, "-1s" is a timeout in the past.
 */
bool time_value_has_passed(struct slice text);

#endif
