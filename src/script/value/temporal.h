/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java.time: instants, dates with and without zone, durations, in the proleptic ISO calendar.
 *
 * A zone is an offset such as "+01:00", a name of UTC, or a region. The rules of regions change
 * with each release of the time zone database, but a script must give the same result on every host
 * (invariant 1). So the caller passes the database to each run (base/zone.h).
 */
#ifndef TL_SCRIPT_TEMPORAL_H
#define TL_SCRIPT_TEMPORAL_H

#include "base/zone.h"
#include "script/value/text.h"

/* One struct for all classes of java.time; the class decides which fields are used. */
struct temporal {
    struct object object;
    int64_t seconds; /* since the epoch; in local time for LOCAL_… and classes with a zone; of a DURATION its length */
    int32_t nanos;   /* 0 to 999,999,999 */
    int32_t offset;  /* of the zone at that instant, seconds; ZONE_ID, ZONE_OFFSET, ZONED_… and OFFSET_… */
    const struct zone *zone;     /* a named zone: a region, UTC, GMT+02:00; NULL: only an offset */
    int32_t years, months, days; /* PERIOD */
};

/* A row of java.time's enums: DayOfWeek, Month, ChronoUnit, ChronoField, RoundingMode, TimeUnit. */
struct enumerator {
    struct object object;
    int32_t ordinal;
};

struct date_formatter {
    struct object object;
    struct text *pattern; /* NULL: ISO, by `iso` */
    int iso;
    struct temporal *zone; /* ZONE_ID, ZONE_OFFSET or TIME_ZONE used to print and parse dates; NULL: UTC */
};

const char *enumerator_name(enum class_id id, int ordinal);
const char *enumerator_text(enum class_id id, int ordinal); /* its toString: "Days" for ChronoUnit.DAYS */
unsigned enumerator_count(enum class_id id);                /* 0 for any other class */
struct value enumerator_value(struct run *run, enum class_id id, int ordinal);

struct civil {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second;
    int32_t nano;
};

struct civil temporal_civil(const struct temporal *temporal);
/* Returns: whether the offset of its zone changes over time. */
static inline bool temporal_has_zone_rules(const struct temporal *temporal)
{
    return temporal->zone != NULL && (temporal->zone->count > 0 || temporal->zone->has_dst_rule);
}

int temporal_weekday(const struct temporal *temporal); /* Monday is 0 */
struct temporal *temporal_new(struct run *run, enum class_id id, int64_t seconds, int32_t nanos);
/* Appends toString. */
void temporal_write(const struct temporal *temporal, struct text_buf *out);
/* Appends java.util.Date.toString(). */
void temporal_write_date(const struct temporal *temporal, struct text_buf *out);
/* Appends Elasticsearch's JSON form: "2020-01-15T10:30:00.000Z". */
void temporal_write_json(const struct temporal *temporal, struct text_buf *out);
int temporal_compare(const struct temporal *a, const struct temporal *b);
bool temporal_equal(const struct temporal *a, const struct temporal *b);
int32_t temporal_hash(const struct temporal *temporal);

static inline bool value_is_temporal(struct value v)
{
    return value_has_shape(v, SHAPE_TEMPORAL);
}

static inline bool value_is_enumerator(struct value v)
{
    return value_has_shape(v, SHAPE_ENUM);
}

#endif
