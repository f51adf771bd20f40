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
    int64_t week_year;
    int week, weekday; /* 1 to 53; 1 (Monday) to 7 */
    int zone_seconds;
};

/* No field is set. */
#define DATE_FIELDS_UNSET                                                                                     \
    ((struct date_fields){DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, \
                          DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET, DATE_UNSET})

enum { DATE_TRAILING = 2 };

enum date_kind { DATE_ISO, DATE_EPOCH_MILLIS, DATE_EPOCH_SECOND, DATE_PATTERN };

/* An element of a pattern: `count` equal letters, or a literal character if `letter` is 0. */
struct date_element {
    char letter;
    char literal;
    int count;
};

/* What 7.10 reads by a named format; date_named.c has the notation of the elements. */
struct date_grammar {
    const char *elements; /* NULL: there is no such format */
    char zone;            /* at the end: 'a' as z or o, 'b' as c or o; 0: none */
    bool zone_optional;
    bool smart;        /* ResolverStyle.SMART: 24:00 is the next day, February 30 the last of its month */
    bool lenient;      /* ResolverStyle.LENIENT: month 13 is the next January, day 0 the day before the first */
    bool clamped_week; /* week 53 of a year without one is its last week */
    bool iso;          /* it reads the texts of the form of date__take_iso() as that does, which is faster */
};

struct date_named {
    const char *name;
    const char *pattern;                 /* prints, and with DATE_RULES_FIRST also parses; NULL: ISO 8601 */
    bool first;                          /* also in DATE_RULES_FIRST, there with "strict_", too */
    struct date_grammar grammar, strict; /* the latter of the name with "strict_" */
};

struct date_alternative {
    enum date_kind kind;
    bool strict;                         /* DATE_ISO only: each part has exactly two digits, the year at least four */
    bool named;                          /* DATE_PATTERN only: the pattern of a named format */
    const struct date_element *elements; /* DATE_PATTERN only */
    size_t element_count;
    const struct date_grammar *grammar; /* how a named format is parsed; NULL: by the members above */
    bool exact;                         /* what 7.10 refuses is refused */
};

#define DATE_ALTERNATIVES_MAX 16

struct date_format {
    struct slice text;
    enum date_rules rules;
    const struct date_alternative *alternatives;
    size_t count;
};

#define DAY_MS INT64_C(86400000)
#define DATE_ZONE_SECONDS_MAX (18 * 3600)

/* Parses and removes "Z", "+01:00", "+0100" or "+01". Returns: false if there is no such offset. */
bool date__take_zone(struct slice *text, int *ret_seconds);
/*
 * Parses and removes "Z", an offset, or a name of UTC, which an offset with a colon may follow:
 * "UTC+01:00". *ret_full: it is not an offset without a colon. Returns: false if the text begins
 * with no zone.
 */
bool date__take_iso_zone(struct slice *text, int *ret_seconds, bool *ret_full);
/* Parses and removes 1 to `max` (at most 9) digits of a fraction of a second; those beyond milliseconds are ignored. */
bool date__take_fraction(struct slice *text, int max, int *ret_millis);
/* Returns: whether an offset that date__take_zone() took is at most 18 hours; true for "Z" and names. */
bool date__is_valid_offset(struct slice offset);
/* Parses a date without date math. `zone` as in date_parse_math(). Returns: 0; DATE_INVALID. */
int date__parse(const struct date_format *format, struct slice text, bool round_up, const struct zone *zone,
                int64_t *ret_millis) TL_MUST_USE;
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
 * Assumes: date__parse_pattern() takes the text.
 */
bool date__is_strict_pattern(const struct date_alternative *alternative, struct slice text, size_t *ret_stop);
/* Returns: whether 7.10 takes the year at the front of an ISO 8601 text. Removes the year. */
bool date__take_strict_year(struct slice *text, bool strict);
/* That of the default format. */
extern const struct date_grammar date__strict_date_optional_time;
/* Returns: the named format with this name, which does not begin with "strict_"; NULL: none. */
const struct date_named *date__name(struct slice name);
/*
 * Parses the form that most texts have: "2020-01-02T03:04:05Z", or with a fraction of one to nine digits.
 * Returns: false, with the fields unchanged: it has another form. Whether the fields are in range is not checked.
 */
bool date__take_iso(struct slice text, struct date_fields *fields);
/*
 * Parses `text` by a grammar.
 * Returns: 0; DATE_INVALID, and *ret_stop is the offset of what does not match; DATE_TRAILING, and
 *          *ret_stop is the offset of what follows the last element.
 */
int date__parse_grammar(const struct date_grammar *grammar, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop);
/* Appends a local time, in milliseconds, in a pattern. `offset`: that of its zone, in seconds. */
void date__print_pattern(struct buf *buf, const struct date_alternative *alternative, int64_t local, int32_t offset);

#endif
