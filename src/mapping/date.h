/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates: milliseconds since the epoch, UTC, in the proleptic Gregorian calendar.
 *
 * A format is one or more alternatives joined by "||". Each is the name of a format of
 * Elasticsearch (strict_date_optional_time, epoch_millis, basic_date …) or a pattern such as
 * "yyyy-MM-dd HH:mm:ss".
 *
 * A format is compiled for the rules of an index. The value of a text determines the entries of the
 * documents that have it, so an index keeps its rules for ever (enum date_rules).
 *
 * With DATE_RULES_FIRST, date_parse() takes texts that Elasticsearch 7.10 refuses (`20220-01-01`), which
 * stored documents have, and date_is_strict() says which of them 7.10 takes too. It only refuses, so
 * that the entries of a document are found, whether it was written before or after that check.
 *
 * Other readers of dates: base/digits.h.
 */
#ifndef TL_MAPPING_DATE_H
#define TL_MAPPING_DATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/zone.h"

#define DATE_FORMAT_DEFAULT "strict_date_optional_time||epoch_millis"
#define DATE_FORMAT_BYTES_MAX 256

enum {
    DATE_INVALID = 1, /* the text is not a date of the format, or the format is invalid */
};

struct date_format;

/* Which texts a format reads, and what they mean. An index keeps those that it was created with. */
enum date_rules {
    DATE_RULES_FIRST, /* of indices that commands of versions before 9, or calls of 5.x, created */
    DATE_RULES_7_10,  /* those of 7.10, and negative epoch numbers; date_is_strict() holds of all texts */
};

/*
 * Compiles a format.
 * Returns: 0; DATE_INVALID: a pattern has an unknown letter, or is too long or malformed, or the
 *          rules do not have a name.
 * Owns: the format is allocated in `arena`; the default format is static.
 */
int date_format_parse(struct arena *arena, struct slice pattern, enum date_rules rules,
                      const struct date_format **ret_format) TL_MUST_USE;
/*
 * Sets the problem for a format that date_format_parse() refused, in java.time's wording: "Invalid
 * format: [xx t]: Unknown pattern letter: t".
 */
void date_format_describe_error(struct arena *arena, struct slice pattern, struct problem *ret_problem);
/* Returns: the format DATE_FORMAT_DEFAULT by these rules; static. */
const struct date_format *date_format_default(enum date_rules rules);
enum date_rules date_format_rules(const struct date_format *format);
/* Returns: the text the format was compiled from. */
struct slice date_format_text(const struct date_format *format);

/*
 * Parses a date. A missing month or day is 1. A missing hour, minute, second or millisecond is 0,
 * or with `round_up` the highest one, as for upper bounds of ranges.
 * Returns: 0; DATE_INVALID.
 */
int date_parse(const struct date_format *format, struct slice text, bool round_up, int64_t *ret_millis) TL_MUST_USE;

/*
 * Returns: whether 7.10 takes a text that date_parse() takes. Negative epoch numbers count as taken.
 */
bool date_is_strict(const struct date_format *format, struct slice text);

/*
 * Parses a date or date math: "now-1d/d", "2020-01-01||+1M/d". `now` is in milliseconds. `zone`
 * (NULL: UTC) applies to dates without a zone, and to the calendar units that are added or rounded
 * to. As in Elasticsearch, it also shifts epoch numbers, as if they were local times.
 * Returns: 0; DATE_INVALID.
 */
int date_parse_math(const struct date_format *format, struct slice text, int64_t now, bool round_up,
                    const struct zone *zone, int64_t *ret_millis) TL_MUST_USE;

/*
 * Appends a date in the first alternative of a format, as the local time of a zone (NULL: UTC) with
 * its offset, if the format has one.
 */
void date_print(struct buf *buf, const struct date_format *format, int64_t millis, const struct zone *zone);
/* Appends a date in the form 2020-01-01T00:00:00.000Z. */
void date_print_iso(struct buf *buf, int64_t millis);

/*
 * Convert an instant to the local time of a zone, and back (see zone_instant() for ambiguous
 * times). In milliseconds; zone NULL is UTC.
 */
int64_t date_local(const struct zone *zone, int64_t millis);
int64_t date_of_local(const struct zone *zone, int64_t local, int32_t preferred);

/* A date and time of day. Months and days count from 1; see base/calendar.h. */
struct date_parts {
    int64_t year;
    int month, day, hour, minute, second, millis;
};
void date_split(int64_t millis, struct date_parts *ret_parts);
int64_t date_join(const struct date_parts *parts);
/* Returns: the day of the week, 1 (Monday) to 7 (Sunday). */
int date_weekday(int64_t millis);

#endif
