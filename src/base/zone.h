/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones: how far the clocks of a place are ahead of UTC, and when that changes.
 *
 * Zones with names come from a *database of zones*: bytes made of the system's TZif files (RFC 8536) by whoever may read files.
 * Since scripts that change documents may ask for zones, the database is part of the log (core/README.md, "Zones"), and whoever
 * reads a zone is handed the bytes.
 *
 * 1. A zone says the same for ever and everywhere: it depends on the bytes alone. Behind its last transition the rule of the
 *    file's footer goes on ("CET-1CEST,M3.5.0,M10.5.0/3"), for all years.
 * 2. Any bytes may be handed in: those that are no database know no names.
 * 3. Moments are seconds since the epoch in UTC; a *local* time is what a clock shows, counted the same way. A clock that is set
 *    forward leaves local times out (a gap), one that is set back shows some twice (an overlap).
 */
#ifndef TL_BASE_ZONE_H
#define TL_BASE_ZONE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Names that a database may have, and bytes of one zone's file and of the whole. */
#define ZONES_MAX 2000
#define ZONE_FILE_BYTES_MAX ((size_t)64 << 10)
#define ZONES_BYTES_MAX ((size_t)4 << 20)

enum {
    ZONE_REFUSED = 1, /* no such zone; *ret_problem says so as Java does */
    ZONE_NO_FILE = 2, /* bytes that are no TZif */
};

/* When clocks change each year: a day of it and seconds from its midnight, which may be below zero and above a day. */
struct zone_change {
    char form; /* 'M' the week's day of a month, 'J' a day without 29 February, from 1, 'D' a day, from 0 */
    int month, week, day;
    int32_t second;
};

struct zone {
    struct slice name;     /* as Java's getId(): "Europe/Berlin", "UTC", "GMT+02:00"; empty: a bare offset */
    int32_t first;         /* seconds ahead of UTC, before the first transition */
    size_t count;          /* of transitions; 0: none */
    const uint8_t *times;  /* 8 bytes each, rising */
    const uint8_t *offsets; /* 4 bytes each: from then on */
    bool has_dst_rule;           /* a rule goes on behind the last of them */
    int32_t standard, daylight;
    struct zone_change begin, end; /* of the daylight time; by the clock that is ahead then */
};

/* Always UTC, and one that is a fixed offset. */
struct zone zone_fixed(int32_t seconds);

/*
 * Reads "Europe/Berlin", "UTC", "Z", "+01:00", "GMT+2" and whatever else Java's ZoneId.of() takes.
 * Returns: 0; ZONE_REFUSED. Lives: the zone as long as the database, and `arena` where its name is made up.
 */
int zone_parse(struct slice database, struct slice text, struct arena *arena, struct zone *ret_zone,
               struct problem *ret_problem) TL_MUST_USE;

/* The same for a bare offset: "Z", "+01:00", "+1". */
int zone_parse_offset(struct slice text, struct arena *arena, int32_t *ret_seconds, struct problem *ret_problem) TL_MUST_USE;

/* Returns: a copy that refers to nothing but `arena`. */
const struct zone *zone_copy(const struct zone *zone, struct arena *arena);

/* In all of these NULL is UTC. Returns: seconds ahead of UTC at a moment. */
int32_t zone_offset(const struct zone *zone, int64_t seconds);
/* Returns: the first moment after `seconds` at which the clocks change, INT64_MAX for never. */
int64_t zone_transition_after(const struct zone *zone, int64_t seconds);
/* Returns: the last moment at or before `seconds` at which they did; INT64_MIN for never. */
int64_t zone_transition_before(const struct zone *zone, int64_t seconds);

/* What moments a local time is. */
struct zone_instants {
    unsigned count;         /* 1; 0 in a gap; 2 in an overlap */
    int64_t first, second;  /* the earlier and the later; the same where there is one */
    int32_t before, after;  /* of the change, in a gap or an overlap: seconds ahead of UTC */
    int64_t transition;         /* when it happens, in a gap */
};
struct zone_instants zone_instants(const struct zone *zone, int64_t local);

/* Returns: the moment Java takes: in a gap as much later as it is long, in an overlap that of `preferred` seconds ahead (else the first). */
int64_t zone_instant(const struct zone *zone, int64_t local, int32_t preferred);
#define ZONE_PREFERS_NONE INT32_MIN

/* Appends "Z", "+01:00" or "+01:00:30", as Java names an offset. */
void zone_write_offset(struct buf *buf, int32_t seconds);

/* --- The database ------------------------------------------------------------------------------------------------- */

/* A zone's file as read. */
struct zone_file {
    struct slice name;
    struct slice bytes;
};

/*
 * Makes a database of files; those that are no TZif are left out.
 * Requires: count <= ZONES_MAX. Ensures: the same files give the same bytes, in whatever order they come.
 */
void zones_write(struct buf *buf, struct slice version, struct zone_file *files, size_t count);
/* Returns: whether every name of it leads to a zone. */
bool zones_check(struct slice database);
/* Returns: the release, such as "2025b"; empty for bytes that are no database. */
struct slice zones_version(struct slice database);
size_t zones_count(struct slice database);

#endif
