/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: instants, dates with and without zones, durations, in Java's proleptic ISO calendar.
 *
 * Zones are offsets such as "+01:00", UTC by its names, and regions. The rules of regions change with every release of a time
 * zone database, and a script must give the same on every host (invariant 1): so each run is handed the database (base/zone.h).
 */
#ifndef TL_SCRIPT_TEMPORAL_H
#define TL_SCRIPT_TEMPORAL_H

#include "base/zone.h"
#include "script/value/text.h"

/* One struct for all classes of time; which fields count depends on the class. */
struct temporal {
    struct object object;
    int64_t seconds;         /* since the epoch, local for LOCAL_… and with a zone; of a DURATION its length */
    int32_t nanos;           /* 0 to 999,999,999 */
    int32_t offset;          /* of the zone, seconds, at that moment; ZONE_ID, ZONE_OFFSET, ZONED_… and OFFSET_… */
    const struct zone *zone; /* one with a name: a region, UTC, GMT+02:00; NULL: the offset is all */
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
    struct temporal *zone; /* a ZONE_ID, ZONE_OFFSET or TIME_ZONE that dates are written and read in; NULL: UTC */
};

const char *enumerator_name(enum class_id id, int ordinal);
const char *enumerator_text(enum class_id id, int ordinal); /* its toString: "Days" for ChronoUnit.DAYS */
unsigned enumerator_count(enum class_id id);                /* 0 for a class that is no enumeration */
struct value enumerator_value(struct run *run, enum class_id id, int ordinal);

struct civil {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second;
    int32_t nano;
};

struct civil temporal_civil(const struct temporal *temporal);
/* Whether its zone has an offset that changes. */
static inline bool temporal_has_zone_rules(const struct temporal *temporal)
{
    return temporal->zone != NULL && (temporal->zone->count > 0 || temporal->zone->has_dst_rule);
}

int temporal_weekday(const struct temporal *temporal); /* Monday is 0 */
struct temporal *temporal_new(struct run *run, enum class_id id, int64_t seconds, int32_t nanos);
/* As Java writes them. */
void temporal_write(const struct temporal *temporal, struct text_buf *out);
/* Date.toString(). */
void temporal_write_date(const struct temporal *temporal, struct text_buf *out);
/* As Elasticsearch writes them into JSON: "2020-01-15T10:30:00.000Z". */
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
