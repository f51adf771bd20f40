/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the methods of java.time: arithmetic, parsing of ISO texts, and natives of more than
 * one class. Other readers of dates: api/request/instant.h.
 */
#ifndef TL_SCRIPT_METHOD_TIME_H
#define TL_SCRIPT_METHOD_TIME_H

#include "base/calendar.h"
#include "script/library/method_args.h"
#include "script/value/temporal.h"

/* Far beyond any date in a document, yet small enough that sums cannot overflow int64_t. */
#define TEMPORAL_SECONDS_MAX ((int64_t)31556889864403199)

static inline struct temporal *temporal_of(struct value v)
{
    return (struct temporal *)v.object;
}

/* Returns: whether the temporal has an offset from UTC. */
static inline bool is_zoned(const struct temporal *temporal)
{
    return temporal->object.class == CLASS_ZONED_DATE_TIME || temporal->object.class == CLASS_OFFSET_DATE_TIME;
}

/* Returns: seconds since the epoch in UTC; those of a local temporal are taken as UTC. */
static inline int64_t instant_of(const struct temporal *temporal)
{
    return temporal->seconds - (is_zoned(temporal) ? temporal->offset : 0);
}

/* --- temporal_math.c ---------------------------------------------------------------------------------------------- */

/* Length of ChronoUnit's units: nanoseconds of the first nine, months of the larger ones. */
extern const int64_t unit_nanos[9], unit_months[14];

enum part { YEAR, MONTH_VALUE, DAY_OF_MONTH, HOUR, MINUTE, SECOND, NANO, DAY_OF_YEAR };

/* Makes a temporal of the class and zone of `like`, at a local time. Returns: NULL with a
   throwable in the run if the time is outside of Java's range of years. */
struct temporal *temporal_like(struct run *run, const struct temporal *like, int64_t seconds, int64_t nanos);
/* As temporal_like, but at an instant that much later than `from`, whatever offset changes its
   zone has in between. */
struct temporal *temporal_later(struct run *run, const struct temporal *from, int64_t seconds, int64_t nanos);
/* Copies a temporal with another class and other seconds. */
struct temporal *temporal_as(struct run *run, const struct temporal *from, enum class_id id, int64_t seconds);
/* Throws Java's "Invalid value for FIELD". Returns: false. */
bool out_of_range(struct run *run, const char *field, int64_t value, const char *valid);
/* Throw as java.time does if a field is out of range. Returns: whether all are in range. */
bool check_date(struct run *run, int64_t year, int64_t month, int64_t day);
bool check_time(struct run *run, int64_t hour, int64_t minute, int64_t second, int64_t nano);
/* Returns: seconds from 1970-01-01T00:00 to a date and time in the same zone. */
int64_t civil_seconds(const struct civil *civil);
/* Returns: a field of the temporal's local date and time. */
int64_t part_of(const struct temporal *temporal, enum part part);
/* Gives the temporal `count` months later; the day is limited to the length of that month. */
bool add_months(struct run *run, const struct temporal *temporal, int64_t count, struct value *ret);
/* Returns: the number of whole months between two temporals; negative if `to` is earlier. */
int64_t months_between(const struct temporal *from, const struct temporal *to);

/* --- temporal_scan.c ---------------------------------------------------------------------------------------------- */

/* Parser state. Once set, `failed` stays set; `at` is then the error offset in bytes. */
struct scan {
    struct slice text;
    size_t at;
    bool failed;
    bool short_hours; /* minutes and seconds of an offset are at most 59, as in Java; not with old_library */
};

/* Returns: whether the next character is `c`; if so, it is consumed. */
bool scan_char(struct scan *scan, char c);
/* As scan_char; sets `failed` if the next character differs. Does nothing after a failure. */
void scan_expect(struct scan *scan, char c);
/* Reads at most `max` digits. Returns: their value, which wraps beyond 64 bits. Sets `failed`, and reads
   nothing, if there are fewer than `min`. */
int64_t scan_digits(struct scan *scan, unsigned min, unsigned max);
/* Texts of offsets: two digits of hours, then, of two digits each, minutes and perhaps seconds. */
struct offset_form {
    bool zulu;    /* or "Z" */
    bool colon;   /* before minutes and seconds */
    bool minutes; /* may have minutes */
    bool needs_minutes;
    bool seconds; /* may have seconds */
};

/* Reads an offset of a form, in seconds; of the range of hours says check_offset(). Sets `failed`, and `at` to the
   offset, if it is malformed. As in Java, what follows a complete offset is left. */
void scan_offset_as(struct scan *scan, const struct offset_form *form, int32_t *ret_offset);
/* Reads "Z", "+01", "+01:30" and the like, in seconds: for old_formats, and letters of zones. Sets `failed` if it is
   malformed. The range of all is of check_offset(). */
void scan_offset(struct scan *scan, int32_t *ret_offset);
/* Throws Java's DateTimeParseException at scan->at. Returns: false. */
bool parse_failed(struct run *run, const struct scan *scan);
/* Throws Java's DateTimeParseException if a field of a parsed text is out of range. Returns: whether
   all are in range. */
bool check_civil(struct run *run, struct slice text, const struct civil *civil);
/* Throws Java's DateTimeParseException if a parsed offset is out of the range of class `id`. Returns: whether it is in
   range. */
bool check_offset(struct run *run, struct slice text, enum class_id id, int32_t offset);
/* Sets the zone by its name, as ZoneId.of() reads it. A region leaves the offset unchanged.
   Returns: true; false with a throwable in the run. */
bool set_zone(struct run *run, struct temporal *temporal, struct slice name);
/* Parses a text as the parse() of class `id` does. */
bool parse_iso(struct run *run, struct value text, enum class_id id, struct value *ret);

/* --- natives of more than one file -------------------------------------------------------------------------------- */

bool is_before(struct call *call, struct value *ret);
bool is_after(struct call *call, struct value *ret);
bool temporal_compare_to(struct call *call, struct value *ret);
bool get_epoch_milli(struct call *call, struct value *ret);
bool to_instant(struct call *call, struct value *ret);
/* The native of valueOf of every enum. */
bool enum_of_name(struct call *call, struct value *ret);
/* Gives the time between two temporals in a ChronoUnit, `unit` being its ordinal. */
bool temporal_between(struct run *run, const struct temporal *from, const struct temporal *to, int unit,
                      struct value *ret);
/* Natives that format and parse with a DateTimeFormatter. */
bool temporal_format(struct call *call, struct value *ret);
bool temporal_parse_by(struct call *call, struct value *ret);

#endif
