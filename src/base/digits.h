/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digits at the front of a text: the numbers that readers of dates and offsets are made of.
 *
 * Each reader of dates has its own rules, and a header that says whose: mapping/date.h reads documents and
 * queries, in milliseconds; api/request/instant.h the server's own parameters, in microseconds;
 * script/library/method_time.h texts of scripts, in nanoseconds, as java.time; zone.h names of zones. They
 * differ in what they take, not in how they count, so this is all that they share, with calendar.h. Scripts
 * count by themselves: a number beyond 64 bits wraps there, and a replay repeats what a script did. Their offsets
 * are read here, except in replays and by letters of zones, which take more forms (scan_offset()).
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

/* Colons between the parts of an offset. */
enum digits_colons {
    DIGITS_NO_COLONS,  /* 0130 */
    DIGITS_COLONS,     /* 01:30 */
    DIGITS_ANY_COLONS, /* both; a colon without digits after it is refused */
};

/* What digits_take_offset() takes. Parts: 1, hours; 2, also minutes; 3, also seconds. Each has two digits. */
struct digits_offset_form {
    enum digits_colons colons;
    int parts_min, parts_max;
    bool leaves_large; /* minutes and seconds above 59 are left, as if they were not there; else the caller checks */
};

/* The parts of an offset; 0 where the text does not have them. */
struct digits_offset {
    int hours, minutes, seconds;
};

/*
 * Parses and removes an offset without its sign at the front of `text`. What follows the parts that it has is left.
 * The caller checks the range of the hours.
 * Returns: false, with `text` unchanged, if there are fewer than `parts_min` parts.
 */
bool digits_take_offset(struct slice *text, const struct digits_offset_form *form, struct digits_offset *ret_offset);

/* Returns: the seconds of an offset. */
static inline int digits_offset_seconds(const struct digits_offset *offset, bool negative)
{
    int seconds = (offset->hours * 60 + offset->minutes) * 60 + offset->seconds;
    return negative ? -seconds : seconds;
}

#endif
