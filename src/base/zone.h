/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones: the offset of local time from UTC, and its transitions.
 *
 * Named zones come from a *zone database*: bytes compiled from the system's TZif files (RFC 8536)
 * by code that may read files. Scripts that change documents may use zones, so the database is part
 * of the command log (core/README.md, "Zones"), and the functions here get its bytes as an
 * argument.
 *
 * 1. A zone depends on the bytes alone, so its results are equal on all hosts and at all times.
 *    After its last transition the rule of the file's footer applies
 *    ("CET-1CEST,M3.5.0,M10.5.0/3"), in all years.
 * 2. Any bytes are permitted as a database; invalid ones contain no names.
 * 3. An instant is given in seconds since 1970-01-01T00:00:00Z. A *local* time is the time of a
 *    clock in the zone, counted the same way. A forward transition skips local times (a gap); a
 *    backward one repeats some (an overlap).
 */
#ifndef TL_BASE_ZONE_H
#define TL_BASE_ZONE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Maximum number of names in a database, and maximum sizes of a TZif file and of the database. */
#define ZONES_MAX 2000
#define ZONE_FILE_BYTES_MAX ((size_t)64 << 10)
#define ZONES_BYTES_MAX ((size_t)4 << 20)

enum {
    ZONE_REFUSED = 1, /* no such zone; *ret_problem has Java's exception */
    ZONE_NO_FILE = 2, /* not a TZif file */
};

/* A yearly transition in the rule of a footer (POSIX TZ). */
struct zone_transition {
    char form;            /* 'M': weekday of a month; 'J': day from 1, without 29 February; 'D': day from 0 */
    int month, week, day; /* 'M': 1-12, 1-5 (5: the last), 0-6 (0: Sunday); otherwise only `day` */
    int32_t second;       /* from midnight of that day; may be negative or more than a day */
};

struct zone {
    struct slice name;                 /* as Java's getId(): "Europe/Berlin", "UTC", "GMT+02:00"; empty: an offset */
    int32_t first;                     /* offset before the first transition, in seconds east of UTC */
    size_t count;                      /* of transitions; 0: none */
    const uint8_t *times;              /* of transitions: 8 bytes each, ascending; in the database */
    const uint8_t *offsets;            /* after each transition: 4 bytes each; in the database */
    bool has_dst_rule;                 /* a daylight saving rule applies after the last transition */
    int32_t standard, daylight;        /* offsets of the rule */
    struct zone_transition begin, end; /* of daylight saving time, each in the local time before it */
};

/* Returns: a zone with a fixed offset and no name. */
struct zone zone_fixed(int32_t seconds);

/*
 * Parses "Europe/Berlin", "UTC", "Z", "+01:00", "GMT+2" and all other texts that Java's ZoneId.of()
 * accepts. The zone refers to the database, and to `text` or `arena` for its name.
 * Returns: 0; ZONE_REFUSED.
 */
int zone_parse(struct slice database, struct slice text, struct arena *arena, struct zone *ret_zone,
               struct problem *ret_problem) TL_MUST_USE;

/* Parses an offset: "Z", "+01:00", "+1". Returns: 0; ZONE_REFUSED. */
int zone_parse_offset(struct slice text, struct arena *arena, int32_t *ret_seconds,
                      struct problem *ret_problem) TL_MUST_USE;

/* Returns: a copy that refers to nothing but `arena`. */
const struct zone *zone_copy(const struct zone *zone, struct arena *arena);

/* Returns: the offset at an instant, in seconds east of UTC. Here and below, `zone` NULL: UTC. */
int32_t zone_offset(const struct zone *zone, int64_t seconds);
/* Returns: the instant of the first transition after `seconds`; INT64_MAX: none. */
int64_t zone_transition_after(const struct zone *zone, int64_t seconds);
/* Returns: the instant of the last transition at or before `seconds`; INT64_MIN: none. */
int64_t zone_transition_before(const struct zone *zone, int64_t seconds);

/* The instants of a local time. */
struct zone_instants {
    unsigned count;        /* 1; 0 in a gap; 2 in an overlap */
    int64_t first, second; /* earlier and later; equal if count is 1; see zone_instant() for a gap */
    int32_t before, after; /* offsets around the transition of a gap or an overlap */
    int64_t transition;    /* its instant, in a gap only */
};
struct zone_instants zone_instants(const struct zone *zone, int64_t local);

/*
 * Returns: the instant of a local time as Java chooses it. In a gap the local time is moved forward
 * by the length of the gap. In an overlap the instant with the offset `preferred` is chosen,
 * otherwise the first.
 */
int64_t zone_instant(const struct zone *zone, int64_t local, int32_t preferred);
#define ZONE_PREFERS_NONE INT32_MIN

/* Appends "Z", "+01:00" or "+01:00:30", as Java's ZoneOffset.getId(). */
void zone_write_offset(struct buf *buf, int32_t seconds);

/* --- The database ------------------------------------------------------------------------------------------------- */

/* The name and the bytes of a TZif file. */
struct zone_file {
    struct slice name;
    struct slice bytes;
};

/*
 * Compiles a database from files, which are sorted by name; those that are not TZif are skipped.
 * Requires: count <= ZONES_MAX. Ensures: the bytes do not depend on the original order of the
 * files.
 */
void zones_write(struct buf *buf, struct slice version, struct zone_file *files, size_t count);
/* Returns: whether the database is valid: sorted names, each with a valid zone. */
bool zones_check(struct slice database);
/* Returns: the release, such as "2025b"; empty: not a database. */
struct slice zones_version(struct slice database);
/* Returns: the number of names. */
size_t zones_count(struct slice database);

#endif
