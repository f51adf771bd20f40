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
/*
 * Parses `text` by a pattern.
 * Returns: 0; DATE_INVALID. In both cases *ret_stop is the offset at which parsing stopped.
 */
int date__parse_pattern(const struct date_alternative *alternative, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop);
/* Appends a date in a pattern. */
void date__print_pattern(struct buf *buf, const struct date_alternative *alternative, int64_t millis);

#endif
