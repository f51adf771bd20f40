/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the date module. */
#ifndef TL_MAPPING_DATE_INTERNAL_H
#define TL_MAPPING_DATE_INTERNAL_H

#include "mapping/date.h"

/* The fields of a parsed date; DATE_UNSET for a field that the text does not have. */
enum { DATE_UNSET = INT32_MIN };

struct date_fields {
    int64_t year;
    int month, day, hour, minute, second, millis;
    int day_of_year;
    int half; /* half of the day: 0 AM, 1 PM; the hour is then 1 to 12 */
    int zone_seconds;
};

enum date_kind { DATE_ISO, DATE_EPOCH_MILLIS, DATE_EPOCH_SECOND, DATE_PATTERN };

/* An element of a pattern: `count` equal letters, or a literal character if `letter` is 0. */
struct date_element {
    char letter;
    char literal;
    int count;
};

struct date_alternative {
    enum date_kind kind;
    bool strict;                         /* DATE_ISO only: each part has exactly two digits, the year at least four */
    bool named;                          /* DATE_PATTERN only: the pattern of a named format */
    const struct date_element *elements; /* DATE_PATTERN only */
    size_t element_count;
};

#define DATE_ALTERNATIVES_MAX 16

struct date_format {
    struct slice text;
    const struct date_alternative *alternatives;
    size_t count;
};

/* The number to which digits beyond the range of any date are clamped. */
#define DATE_NUMBER_MAX INT64_C(999999999999999999)

/*
 * Parses and removes `min` to `max` digits at the front of `text`. The number is clamped to
 * DATE_NUMBER_MAX, which is outside of all valid ranges.
 * Returns: false, with `text` unchanged, if there are fewer than `min` digits.
 */
bool date__take_digits(struct slice *text, int min, int max, int64_t *ret_number);
/* Parses and removes "Z", "+01:00", "+0100" or "+01". Returns: false if there is no such offset. */
bool date__take_zone(struct slice *text, int *ret_seconds);
/* Returns: whether an offset that date__take_zone() took is at most 18 hours; true for "Z" and names. */
bool date__is_valid_offset(struct slice offset);
/*
 * Parses `text` by a pattern.
 * Returns: 0; DATE_INVALID. In both cases *ret_stop is the offset at which parsing stopped.
 */
int date__parse_pattern(const struct date_alternative *alternative, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop);
/*
 * Returns: whether 7.10 takes a text by a pattern that a client wrote: the year of an era is not 0, AM
 *          and PM are in capitals, hours are in the range of their letter, and offsets have its form.
 *          If not, *ret_stop is where it stops: the length of the text if a number is out of range.
 * Requires: date__parse_pattern() takes the text.
 */
bool date__is_strict_pattern(const struct date_alternative *alternative, struct slice text, size_t *ret_stop);
/* Returns: whether 7.10 takes the year at the front of an ISO 8601 text. Removes the year. */
bool date__take_strict_year(struct slice *text, bool strict);
/* Appends a date in a pattern. */
void date__print_pattern(struct buf *buf, const struct date_alternative *alternative, int64_t millis);

#endif
