/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of time's methods share: arithmetic on moments, reading ISO texts, methods of more than one class. */
#ifndef TL_SCRIPT_METHOD_TIME_H
#define TL_SCRIPT_METHOD_TIME_H

#include "base/calendar.h"
#include "script/library/method_args.h"
#include "script/value/temporal.h"

/* Far beyond any date a document holds, and near enough for no arithmetic to overflow. */
#define MOMENT_SECONDS_MAX ((int64_t)31556889864403199)

static inline struct temporal *temporal_of(struct value v)
{
    return (struct temporal *)v.object;
}

static inline bool is_zoned(const struct temporal *temporal)
{
    return temporal->object.class == CLASS_ZONED_DATE_TIME || temporal->object.class == CLASS_OFFSET_DATE_TIME;
}

static inline int64_t instant_of(const struct temporal *temporal)
{
    return temporal->seconds - (is_zoned(temporal) ? temporal->offset : 0);
}

/* --- temporal_math.c ------------------------------------------------------------------------------------------------ */

/* Nanoseconds of ChronoUnit's first nine, months of the larger ones. */
extern const int64_t unit_nanos[9], unit_months[14];

enum part { YEAR, MONTH_VALUE, DAY_OF_MONTH, HOUR, MINUTE, SECOND, NANO, DAY_OF_YEAR };

/* A moment of the class and zone of another. Returns: NULL and a throwable beyond the years that Java knows. */
struct temporal *temporal_like(struct run *run, const struct temporal *like, int64_t seconds, int64_t nanos);
/* The same at an instant so much later, whatever the clocks of its zone do meanwhile. */
struct temporal *temporal_later(struct run *run, const struct temporal *from, int64_t seconds, int64_t nanos);
/* The same in another class. */
struct temporal *temporal_as(struct run *run, const struct temporal *from, enum class_id id, int64_t seconds);
/* Throws Java's "Invalid value for FIELD". Returns: false. */
bool out_of_range(struct run *run, const char *field, int64_t value, const char *valid);
bool check_date(struct run *run, int64_t year, int64_t month, int64_t day);
bool check_time(struct run *run, int64_t hour, int64_t minute, int64_t second, int64_t nano);
int64_t civil_seconds(const struct civil *civil);
int64_t part_of(const struct temporal *temporal, enum part part);
bool add_months(struct run *run, const struct temporal *temporal, int64_t count, struct value *ret);
/* Whole months from one to another. */
int64_t months_between(const struct temporal *from, const struct temporal *to);

/* --- temporal_scan.c ------------------------------------------------------------------------------------------------ */

/* A text being read; `failed` stays set, with `at` where it did. */
struct scan {
    struct slice text;
    size_t at;
    bool failed;
};

/* Whether the next one is `c`, which is read then. */
bool scan_char(struct scan *scan, char c);
void scan_expect(struct scan *scan, char c);
int64_t scan_digits(struct scan *scan, unsigned min, unsigned max);
bool scan_offset(struct scan *scan, int32_t *ret_offset);
/* Throws Java's DateTimeParseException for it. Returns: false. */
bool parse_failed(struct run *run, const struct scan *scan);
bool check_civil(struct run *run, struct slice text, const struct civil *civil);
/* Gives a moment the zone of that name, as ZoneId.of() reads it; of a region, the offset stays. Returns: false and a throwable. */
bool set_zone(struct run *run, struct temporal *temporal, struct slice name);
/* What each class's parse reads. */
bool parse_iso(struct run *run, struct value text, enum class_id id, struct value *ret);

/* --- methods of more than one file -------------------------------------------------------------------------------- */

bool is_before(struct call *call, struct value *ret);
bool is_after(struct call *call, struct value *ret);
bool temporal_compare_to(struct call *call, struct value *ret);
bool get_epoch_milli(struct call *call, struct value *ret);
bool to_instant(struct call *call, struct value *ret);
/* valueOf of every enum. */
bool enum_of_name(struct call *call, struct value *ret);
/* Time between two moments in a ChronoUnit. */
bool temporal_between(struct run *run, const struct temporal *from, const struct temporal *to, int unit, struct value *ret);
/* By a DateTimeFormatter. */
bool temporal_format(struct call *call, struct value *ret);
bool temporal_parse_by(struct call *call, struct value *ret);

#endif
