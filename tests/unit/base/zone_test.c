/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: zones follow their TZif files, names are parsed as Java does, and corrupt databases cause
 * no access outside of their bytes. Method: a generated file with transitions, a gap, an overlap
 * and a rule; every prefix of a database, and every byte of it changed.
 */
#include "../../lib/unit.h"

#include "../../lib/zone_sample.h"
#include "base/zone.h"

static void test_zone_offsets_and_transitions(void **state)
{
    (void)state;
    struct zone zone = zone_berlin();
    static const struct {
        int64_t at;
        int32_t offset;
    } rows[] = {
        {-3000000000, 3208}, {-2422054409, 3208}, {-2422054408, 3600}, {323830799, 3600},  {323830800, 7200},
        {338950800, 3600},   {1585443599, 3600},  {1585443600, 7200},  {1603587599, 7200}, {1603587600, 3600},
        {4109878799, 3600},  {4109878800, 7200},  {41090000000, 3600}, /* by the rule */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (zone_offset(&zone, rows[i].at) != rows[i].offset)
            fail_msg("%lld: %d", (long long)rows[i].at, zone_offset(&zone, rows[i].at));
    assert_int_equal(zone_transition_after(&zone, 1585443599), 1585443600);
    assert_int_equal(zone_transition_after(&zone, 1585443600), 1603587600);
    assert_int_equal(zone_transition_before(&zone, 1585443600), 1585443600);
    assert_int_equal(zone_transition_before(&zone, 1585443599), 1572138000);
    assert_int_equal(zone_transition_before(&zone, -3000000000), INT64_MIN);
    assert_int_equal(zone_offset(NULL, 7), 0);
    assert_int_equal(zone_transition_after(NULL, 7), INT64_MAX);
}

/*
 * In a gap the local time moves forward by its length; in an overlap the first or preferred instant
 * is chosen.
 */
static void test_zone_resolves_local_times(void **state)
{
    (void)state;
    struct zone zone = zone_berlin();
    int64_t gap = 1585449000 /* 2020-03-29T02:30 */, overlap = 1603593000 /* 2020-10-25T02:30 */;
    struct zone_instants instants = zone_instants(&zone, gap);
    assert_int_equal(instants.count, 0);
    assert_int_equal(instants.transition, 1585443600);
    assert_int_equal(zone_instant(&zone, gap, ZONE_PREFERS_NONE), 1585445400);
    instants = zone_instants(&zone, overlap);
    assert_int_equal(instants.count, 2);
    assert_int_equal(instants.first, overlap - 7200);
    assert_int_equal(instants.second, overlap - 3600);
    assert_int_equal(zone_instant(&zone, overlap, 3600), overlap - 3600);
    assert_int_equal(zone_instant(&zone, overlap, 7200), overlap - 7200);
    for (int64_t at = 1500000000; at < 1700000000; at += 1799) {
        instants = zone_instants(&zone, at + zone_offset(&zone, at));
        assert_true(instants.first == at || (instants.count == 2 && instants.second == at));
    }
}

/* Names and error messages as in Elasticsearch 7.10. */
static void test_zone_parses_names_as_java(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name; /* name NULL: refused, with these words */
        int32_t offset;
        const char *words;
    } rows[] = {
        {"Europe/Berlin", "Europe/Berlin", 3208, NULL},
        {"UTC", "UTC", 0, NULL},
        {"GMT+2", "GMT+02:00", 7200, NULL},
        {"GMT+0", "GMT", 0, NULL},
        {"UT-5", "UT-05:00", -18000, NULL},
        {"Z", "", 0, NULL},
        {"+1", "", 3600, NULL},
        {"-0130", "", -5400, NULL},
        {"+01:30:15", "", 5415, NULL},
        {"+18:00", "", 64800, NULL},
        {"europe/berlin", NULL, 0, "Unknown time-zone ID: europe/berlin"},
        {"Bad/File", NULL, 0, "Unknown time-zone ID: Bad/File"},
        {"Europe/ Berlin", NULL, 0, "Invalid ID for region-based ZoneId, invalid format: Europe/ Berlin"},
        {"", NULL, 0, "Invalid ID for ZoneOffset, invalid format: "},
        {"z", NULL, 0, "Invalid ID for ZoneOffset, invalid format: z"},
        {"+x", NULL, 0, "Invalid ID for ZoneOffset, non numeric characters found: +0x"},
        {"+25:00", NULL, 0, "Zone offset hours not in valid range: value 25 is not in the range -18 to 18"},
        {"+18:01", NULL, 0, "Zone offset not in valid range: -18:00 to +18:00"},
        {"GMT+x", NULL, 0, "Invalid ID for offset-based ZoneId: GMT+x"},
    };
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    struct arena arena = ARENA_INIT;
    zone_sample(&zones, "2025b");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct zone zone;
        struct problem problem = {0};
        int r = zone_parse(buf_as_slice(&zones), slice_from(rows[i].text), &arena, &zone, &problem);
        if ((r == 0) != (rows[i].name != NULL))
            fail_msg("%s: %d", rows[i].text, r);
        if (r != 0) {
            assert_slice_equal(problem.reason, rows[i].words);
            continue;
        }
        assert_slice_equal(zone.name, rows[i].name);
        assert_int_equal(zone_offset(&zone, -3000000000), rows[i].offset);
    }
    buf_deinit(&zones);
    arena_deinit(&arena);
}

/* Calls all functions that read a database, for any bytes. */
static void query_all(struct slice zones)
{
    struct arena arena = ARENA_INIT;
    struct problem problem;
    struct zone zone;
    (void)zones_version(zones);
    bool whole = zones_check(zones);
    if (zone_parse(zones, SLICE_LIT("Europe/Berlin"), &arena, &zone, &problem) == 0 && whole)
        (void)zone_offset(zone_copy(&zone, &arena), 1600000000);
    arena_deinit(&arena);
}

static void test_zone_database_rejects_corrupt_bytes(void **state)
{
    (void)state;
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    zone_sample(&zones, "2025b");
    assert_true(zones_check(buf_as_slice(&zones)));
    assert_slice_equal(zones_version(buf_as_slice(&zones)), "2025b");
    assert_int_equal(zones_count(buf_as_slice(&zones)), 1);
    for (size_t len = 0; len < zones.len; len++) {
        char *copy = malloc(len + 1); /* a separate allocation, so that a sanitizer detects reads beyond it */
        memcpy(copy, zones.data, len);
        assert_false(zones_check(slice_make(copy, len)));
        query_all(slice_make(copy, len));
        free(copy);
    }
    for (size_t at = 0; at < zones.len; at++) {
        char *copy = malloc(zones.len);
        memcpy(copy, zones.data, zones.len);
        copy[at] = (char)(copy[at] ^ 0x81);
        query_all(slice_make(copy, zones.len));
        free(copy);
    }
    buf_deinit(&zones);
}

/* Final transitions that the footer's rule covers are not stored; the offsets are unchanged. */
static void test_zone_drops_transitions_covered_by_footer_rule(void **state)
{
    (void)state;
    int64_t times[80];
    uint8_t to[80];
    static const int32_t types[] = {3600, 7200};
    struct zone berlin = zone_berlin();
    int64_t at = 0;
    for (size_t i = 0; i < 80; i++) {
        at = times[i] = zone_transition_after(&berlin, i == 0 ? 600000000 : at);
        to[i] = zone_offset(&berlin, at) == 7200;
    }
    struct buf file = BUF_INIT(BUF_UNLIMITED), zones = BUF_INIT(BUF_UNLIMITED);
    zone_sample_file(&file, times, to, 80, types, 2, ZONE_SAMPLE_RULE);
    struct zone_file files[] = {{SLICE_LIT("A/B"), buf_as_slice(&file)}, {SLICE_LIT("A/C"), buf_as_slice(&file)}};
    zones_write(&zones, SLICE_LIT("1"), files, 2);
    assert_true(zones.len < 200 && zones_count(buf_as_slice(&zones)) == 2);
    struct arena arena = ARENA_INIT;
    struct zone zone;
    struct problem problem;
    assert_int_equal(zone_parse(buf_as_slice(&zones), SLICE_LIT("A/C"), &arena, &zone, &problem), 0);
    for (int64_t instant = 630000000; instant < 2000000000; instant += 86399)
        assert_int_equal(zone_offset(&zone, instant), zone_offset(&berlin, instant));
    buf_deinit(&file);
    buf_deinit(&zones);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zone_offsets_and_transitions),
        cmocka_unit_test(test_zone_resolves_local_times),
        cmocka_unit_test(test_zone_parses_names_as_java),
        cmocka_unit_test(test_zone_database_rejects_corrupt_bytes),
        cmocka_unit_test(test_zone_drops_transitions_covered_by_footer_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
