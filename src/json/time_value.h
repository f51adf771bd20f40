/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as Elasticsearch's parameters, bodies and settings write them: "500ms", "10s"; "-1" and "0" stand alone. */
#ifndef TL_JSON_TIME_VALUE_H
#define TL_JSON_TIME_VALUE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"
#include "json/dialect.h"

enum { TIME_VALUE_REFUSED = 1 };

/*
 * Reads a duration in microseconds; `setting` is its name in the message. Negative: *ret_value is -1, which 5.6 takes for any negative
 * one and 7.10 only for -1 of any unit. Longer than 126 years is 126 years.
 * Returns: 0; TIME_VALUE_REFUSED with *ret_problem.
 */
int time_value_parse(struct slice text, struct slice setting, enum dialect dialect, struct arena *arena,
                     int64_t *ret_value, struct problem *ret_problem) TL_MUST_USE;

/*
 * Of a text that was read as -1: whether it is a time before now. Elasticsearch counts in milliseconds, of which -1 is none: "-1" and
 * "-1ms" mean no limit, "-1s" one that has passed.
 */
bool time_value_has_passed(struct slice text);

#endif
