/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timestamps as text: round trips, and invalid ones.
 */
#include "../../lib/unit.h"

#include "api/request/instant.h"

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static tl_ts parse(const char *text)
{
    tl_ts ts;
    if (instant_parse(slice_from(text), &ts) != 0)
        fail_msg("%s is no time", text);
    return ts;
}

static void test_forms(void **state)
{
    (void)state;
    assert_true(parse("2026-11-20T10:00:00Z") == 1795168800000000);
    assert_true(parse("2026-11-20T10:00:00.123456Z") == 1795168800123456);
    assert_true(parse("2026-11-20T12:00+02:00") == 1795168800000000);
    assert_true(parse("2026-11-20T10:00:00") == 1795168800000000);
    assert_true(parse("2026-11-20") == 1795132800000000);
    assert_true(parse("2024-02-29T00:00:00.5Z") - parse("2024-02-29") == 500000);
}

static void test_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "2026",
                                        "2026-13-01",
                                        "2026-11-31",
                                        "2026-02-29",
                                        "2026-11-20T",
                                        "2026-11-20x",
                                        "1969-12-31",
                                        "2026-11-20T24:00",
                                        "2026-11-20T10:00:00Zx",
                                        "now",
                                        "2026-11-20T10:00:00.Z",
                                        "99999-01-01"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tl_ts ts;
        if (instant_parse(slice_from(texts[i]), &ts) == 0)
            fail_msg("%s is a time", texts[i]);
    }
}

/* Every day of many years, at odd times. */
static void test_round_trip(void **state)
{
    (void)state;
    for (tl_ts ts = 1; ts < (tl_ts)7000000000 * TL_SECOND; ts += 86399 * TL_SECOND + 12345679) {
        struct slice text = instant_text(&arena, ts, 6);
        if (parse(text.data) != ts)
            fail_msg("%s is not where it came from", text.data);
        arena_reset(&arena);
    }
    assert_slice_equal(instant_text(&arena, 1795168800123456, 3), "2026-11-20T10:00:00.123Z");
    assert_slice_equal(instant_text(&arena, 1795168800123456, 0), "2026-11-20T10:00:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
