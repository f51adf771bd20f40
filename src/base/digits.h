/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digits at the front of a text: the numbers that readers of dates and offsets are made of.
 *
 * Each reader of dates has its own rules, and a header that says whose: mapping/date.h reads documents and
 * queries, in milliseconds; api/request/instant.h the server's own parameters, in microseconds;
 * script/library/method_time.h texts of scripts, in nanoseconds, as java.time; zone.h names of zones. They
 * differ in what they take, not in how they count, so this is all that they share, with calendar.h. Scripts
 * count by themselves: a number beyond 64 bits wraps there, and a replay repeats what a script did.
 */
#ifndef TL_BASE_DIGITS_H
#define TL_BASE_DIGITS_H

#include "base/slice.h"

/* The number to which more than 18 digits are clamped; outside of all ranges that a reader accepts. */
#define DIGITS_NUMBER_MAX INT64_C(999999999999999999)

/*
 * Parses and removes `min` to `max` digits at the front of `text`. The number is clamped to
 * DIGITS_NUMBER_MAX.
 * Returns: false, with `text` unchanged, if there are fewer than `min` digits.
 */
bool digits_take(struct slice *text, int min, int max, int64_t *ret_number);

/*
 * Parses and removes 1 to `max` digits of a decimal fraction. *ret_number is in units of the last of
 * `places` digits, as milliseconds for 3; digits beyond are ignored.
 * Returns: false, with `text` unchanged, if there is no digit.
 */
bool digits_take_fraction(struct slice *text, int max, int places, int64_t *ret_number);

#endif
