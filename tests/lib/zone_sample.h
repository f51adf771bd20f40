/* SPDX-License-Identifier: Apache-2.0 */
/* Zones for tests that need no files: Central Europe's, from a file of the form that the system has. */
#ifndef TL_TESTS_ZONE_SAMPLE_H
#define TL_TESTS_ZONE_SAMPLE_H

#include <stdlib.h>

#include "base/zone.h"

static inline void zone_sample_u32(struct buf *buf, uint32_t number)
{
    buf_u32be(buf, number);
}

static inline void zone_sample_head(struct buf *buf, uint32_t times, uint32_t types)
{
    buf_append(buf, "TZif2", 5);
    for (int i = 0; i < 15; i++)
        buf_byte(buf, 0);
    zone_sample_u32(buf, 0); /* isut, isstd, leap */
    zone_sample_u32(buf, 0);
    zone_sample_u32(buf, 0);
    zone_sample_u32(buf, times);
    zone_sample_u32(buf, types);
    zone_sample_u32(buf, 1);
}

/*
 * Appends a TZif file: transitions to offsets, and the rule that follows them. `types` are the offsets; the first is
 * that of before.
 */
static inline void zone_sample_file(struct buf *buf, const int64_t *times, const uint8_t *to, uint32_t count,
                                    const int32_t *types, uint32_t type_count, const char *rule)
{
    zone_sample_head(buf, 0, 1);
    buf_append(buf, "\0\0\0\0\0\0", 6); /* of 32 bits: one type and nothing else */
    buf_byte(buf, 0);
    zone_sample_head(buf, count, type_count);
    for (uint32_t i = 0; i < count; i++)
        buf_u64be(buf, (uint64_t)times[i]);
    buf_append(buf, to, count);
    for (uint32_t i = 0; i < type_count; i++) {
        zone_sample_u32(buf, (uint32_t)types[i]);
        buf_append(buf, "\0\0", 2);
    }
    buf_byte(buf, 0);
    buf_printf(buf, "\n%s\n", rule);
}

#define ZONE_SAMPLE_RULE "CET-1CEST,M3.5.0,M10.5.0/3"

/*
 * Appends a database with "Europe/Berlin", whose clocks went by local time until 1893 and have known summer time since
 * 1980.
 */
static inline void zone_sample(struct buf *buf, const char *version)
{
    static const int64_t times[] = {-2422054408, 323830800, 338950800, 354675600, 370400400};
    static const int32_t types[] = {3208, 3600, 7200};
    static const uint8_t to[] = {1, 2, 1, 2, 1};
    struct buf file = BUF_INIT(BUF_UNLIMITED);
    zone_sample_file(&file, times, to, 5, types, 3, ZONE_SAMPLE_RULE);
    struct zone_file files[] = {{SLICE_LIT("Europe/Berlin"), buf_as_slice(&file)},
                                {SLICE_LIT("Bad/File"), SLICE_LIT("TZif2")}};
    zones_write(buf, slice_from(version), files, 2);
    buf_deinit(&file);
}

/* Returns: a zone of a database, which is copied to `bytes`. Requires: the database fits. */
static inline struct zone zone_sample_zone(const struct buf *database, char *bytes, struct slice name)
{
    struct arena arena = ARENA_INIT;
    struct problem problem;
    struct zone zone;
    memcpy(bytes, database->data, database->len);
    if (zone_parse(slice_make(bytes, database->len), name, &arena, &zone, &problem) != 0)
        abort();
    arena_deinit(&arena);
    return zone;
}

/* The zone of zone_sample(), its bytes static. */
static inline struct zone zone_berlin(void)
{
    static char bytes[4096];
    struct buf buf = BUF_INIT(sizeof bytes);
    zone_sample(&buf, "2025b");
    struct zone zone = zone_sample_zone(&buf, bytes, SLICE_LIT("Europe/Berlin"));
    buf_deinit(&buf);
    return zone;
}

/* Lord Howe Island, whose clocks are set by half an hour; its bytes static. */
static inline struct zone zone_lord_howe(void)
{
    static char bytes[4096];
    static const int64_t times[] = {1207407600, 1223134200};
    static const int32_t types[] = {39600, 37800};
    static const uint8_t to[] = {1, 0};
    struct buf file = BUF_INIT(BUF_UNLIMITED), buf = BUF_INIT(sizeof bytes);
    zone_sample_file(&file, times, to, 2, types, 2, "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0");
    struct zone_file files[] = {{SLICE_LIT("Australia/Lord_Howe"), buf_as_slice(&file)}};
    zones_write(&buf, SLICE_LIT("2025b"), files, 1);
    struct zone zone = zone_sample_zone(&buf, bytes, files[0].name);
    buf_deinit(&file);
    buf_deinit(&buf);
    return zone;
}

#endif
