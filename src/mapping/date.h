/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates: milliseconds since the epoch, UTC, in the proleptic Gregorian calendar, years -9999 to 9999 (wider
 * ones as Elasticsearch's epoch_millis allows).
 *
 * A format is one or more patterns joined by "||", each a name Elasticsearch knows
 * (strict_date_optional_time, epoch_millis, basic_date …) or letters as in "yyyy-MM-dd HH:mm:ss".
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
    DATE_INVALID = 1, /* no date of that format, or no such format */
};

struct date_format;

/* Returns: 0, DATE_INVALID where a pattern has letters nobody knows. Lives in `arena`. */
int date_format_parse(struct arena *arena, struct slice pattern, const struct date_format **ret_format) TL_MUST_USE;
/* Says why a pattern is none, as java.time does: "Invalid format: [xx t]: Unknown pattern letter: t". */
void date_format_describe_error(struct arena *arena, struct slice pattern, struct problem *ret_problem);
/* Returns: the default format; static. */
const struct date_format *date_format_default(void);
struct slice date_format_text(const struct date_format *format);

/*
 * Reads a date. Parts left out are filled with the first of their kind, or, where `round_up`, with the last
 * ("2020" is then 2020-12-31T23:59:59.999), as the upper ends of ranges want.
 */
int date_parse(const struct date_format *format, struct slice text, bool round_up, int64_t *ret_millis) TL_MUST_USE;

/*
 * Reads a date or date math: "now-1d/d", "2020-01-01||+1M/d".
 * `now` is milliseconds. `zone` (NULL: UTC) is that of dates which name none, and of the days and months that are counted and
 * rounded to. A number of milliseconds is shifted by it, too, as if a clock showed it: Elasticsearch's way.
 */
int date_parse_math(const struct date_format *format, struct slice text, int64_t now, bool round_up,
                    const struct zone *zone, int64_t *ret_millis) TL_MUST_USE;

/* Writes a date by the first pattern of a format. */
void date_print(struct buf *buf, const struct date_format *format, int64_t millis);
/* Writes 2020-01-01T00:00:00.000Z. */
void date_print_iso(struct buf *buf, int64_t millis);

/* A moment as the clocks of a zone show it, and back: see zone_instant(). Milliseconds; zone NULL is UTC. */
int64_t date_local(const struct zone *zone, int64_t millis);
int64_t date_of_local(const struct zone *zone, int64_t local, int32_t preferred);

/* Months and days count from 1; see base/calendar.h. */
struct date_parts {
    int64_t year;
    int month, day, hour, minute, second, millis;
};
void date_split(int64_t millis, struct date_parts *ret_parts);
int64_t date_join(const struct date_parts *parts);
/* 1 Monday … 7 Sunday. */
int date_weekday(int64_t millis);

#endif
