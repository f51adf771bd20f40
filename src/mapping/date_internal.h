/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the date module share. */
#ifndef TL_MAPPING_DATE_INTERNAL_H
#define TL_MAPPING_DATE_INTERNAL_H

#include "mapping/date.h"

/* The fields of a date as read; those a text leaves out are DATE_UNSET. */
enum { DATE_UNSET = INT32_MIN };

struct date_fields {
    int64_t year; /* DATE_UNSET too */
    int month, day, hour, minute, second, millis;
    int day_of_year;
    int half; /* of the day: 0 AM, 1 PM; with an hour of 1 to 12 */
    int zone_minutes;
};

enum date_kind { DATE_ISO, DATE_EPOCH_MILLIS, DATE_EPOCH_SECOND, DATE_PATTERN };

/* A piece of a pattern: `count` letters, or a literal character where `letter` is 0. */
struct date_element {
    char letter;
    char literal;
    int count;
};

struct date_alternative {
    enum date_kind kind;
    bool strict; /* of DATE_ISO: two digits a part */
    const struct date_element *pieces;
    size_t piece_count;
};

#define DATE_ALTERNATIVES_MAX 16

struct date_format {
    struct slice text;
    const struct date_alternative *alternatives;
    size_t count;
};

/* What more digits than any date has amount to. */
#define DATE_NUMBER_MAX INT64_C(999999999999999999)

/*
 * Reads `min` to `max` digits off the front; a number beyond DATE_NUMBER_MAX is DATE_NUMBER_MAX, which is out of every range.
 * Returns: false where there are fewer.
 */
bool date__take_digits(struct slice *text, int min, int max, int64_t *ret_number);
/* "Z", "+01:00", "+0100", "+01". */
bool date__take_zone(struct slice *text, int *ret_minutes);
/* Returns: 0; DATE_INVALID with, in *ret_stop, the offset of the piece that could not be read. */
int date__parse_pattern(const struct date_alternative *alternative, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop);
void date__print_pattern(struct buf *buf, const struct date_alternative *alternative, int64_t millis);

#endif
