/* SPDX-License-Identifier: Apache-2.0 */
/* Dates: parsing, printing, date math, and the calendar against a count day by day. */
#include "../../lib/unit.h"

#include "base/calendar.h"
#include "base/rand.h"
#include "mapping/date.h"
#include "mapping/date_internal.h"

#include "../../lib/zone_sample.h"

#include <inttypes.h>
#include <stdio.h>

static const struct date_format *format_by(struct arena *arena, const char *pattern, enum date_rules rules)
{
    const struct date_format *format;
    if (date_format_parse(arena, slice_from(pattern), rules, &format) != 0)
        fail_msg("no format: %s", pattern);
    return format;
}

static const struct date_format *format_of(struct arena *arena, const char *pattern)
{
    return format_by(arena, pattern, DATE_RULES_FIRST);
}

struct parse_row {
    const char *format;
    const char *text;
    const char *iso; /* NULL: refused */
};

static const struct parse_row parses[] = {
    {DATE_FORMAT_DEFAULT, "2020-01-02", "2020-01-02T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020", "2020-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020-03", "2020-03-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-02T10", "2020-01-02T10:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-02T10:11", "2020-01-02T10:11:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-02T10:11:12.5Z", "2020-01-02T10:11:12.500Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-02T10:11:12,123456789+01:30", "2020-01-02T08:41:12.123Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-02T00:00:00-0800", "2020-01-02T08:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "1577836800000", "2020-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "-1", "1969-12-31T23:59:59.999Z"},
    {DATE_FORMAT_DEFAULT, "2020-02-29", "2020-02-29T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2019-02-29", NULL},
    {DATE_FORMAT_DEFAULT, "1900-02-29", NULL},
    {DATE_FORMAT_DEFAULT, "2020-1-1", NULL},
    {DATE_FORMAT_DEFAULT, "2020-01-01 10:00", NULL},
    {DATE_FORMAT_DEFAULT, "2020-01-01T24:00", NULL},
    {DATE_FORMAT_DEFAULT, "2020-01-01T10:60", NULL},
    {DATE_FORMAT_DEFAULT, "2020-01-01T10:00Zx", NULL},
    /* asked of 7.10 */
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00ZZ", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00ZZ", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00.000ZZ", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00+01:00Z", "2021-12-31T23:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00+01:00+0200", "2021-12-31T23:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00Z+0100", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00Z+01", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00Z+01:00", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00+0100Z", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00+01Z", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T00:00:00ZZZ", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+01:00:30", "2022-01-01T10:59:30.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00-01:00:30", "2022-01-01T13:00:30.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+18:00:00", "2021-12-31T18:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+18:00:01", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+01:00:60", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+010030", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00+01:00:30Z", "2022-01-01T10:59:30.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00UTC", "2022-01-01T12:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00GMT", "2022-01-01T12:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00UT", "2022-01-01T12:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00utc", NULL},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00UTCZ", "2022-01-01T12:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00UTC+01:00", "2022-01-01T11:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2022-01-01T12:00:00UTC+1", NULL},
    {"date_optional_time", "2022-01-01T00:00ZZ", "2022-01-01T00:00:00.000Z"},
    {DATE_FORMAT_DEFAULT, "2020-01-", NULL},
    {DATE_FORMAT_DEFAULT, "", NULL},
    {DATE_FORMAT_DEFAULT, "x", NULL},
    {"date_optional_time", "2020-1-2T3:4", "2020-01-02T03:04:00.000Z"},
    {"epoch_second", "1577836800", "2020-01-01T00:00:00.000Z"},
    {"epoch_second", "1577836800.25", "2020-01-01T00:00:00.250Z"},
    {"yyyy-MM-dd HH:mm:ss", "2020-01-02 03:04:05", "2020-01-02T03:04:05.000Z"},
    {"yyyy-MM-dd HH:mm:ss", "2020-01-02T03:04:05", NULL},
    {"yyyy-MM-dd HH:mm:ss", "2020-1-2 03:04:05", NULL},
    {"dd/MM/yyyy", "31/12/2020", "2020-12-31T00:00:00.000Z"},
    {"dd/MM/yyyy", "31/11/2020", NULL},
    {"d.M.yyyy", "1.2.2020", "2020-02-01T00:00:00.000Z"},
    {"yyyyMMdd", "20200102", "2020-01-02T00:00:00.000Z"},
    {"yyyyMMdd", "2020010", NULL},
    {"yyyyMMdd'T'HHmmssZ", "20200102T030405+0100", "2020-01-02T02:04:05.000Z"},
    {"basic_date_time", "20200102T030405.678Z", "2020-01-02T03:04:05.678Z"},
    {"strict_date_hour_minute", "2020-01-02T03:04", "2020-01-02T03:04:00.000Z"},
    {"EEE, dd MMM yyyy HH:mm:ss zzz", "Thu, 02 Jan 2020 03:04:05 GMT", "2020-01-02T03:04:05.000Z"},
    {"MMMM d, yyyy", "January 2, 2020", "2020-01-02T00:00:00.000Z"},
    {"MM/dd/yyyy hh:mm a", "01/02/2020 12:30 AM", "2020-01-02T00:30:00.000Z"},
    {"MM/dd/yyyy hh:mm a", "01/02/2020 12:30 pm", "2020-01-02T12:30:00.000Z"},
    {"MM/dd/yyyy hh:mm a", "01/02/2020 13:30 PM", NULL},
    {"yyyy-DDD", "2020-366", "2020-12-31T00:00:00.000Z"},
    {"yyyy-DDD", "2019-366", NULL},
    {"yy", "19", "2019-01-01T00:00:00.000Z"},
    {"HH:mm", "10:20", "1970-01-01T10:20:00.000Z"},
    {"yyyy-MM-dd HH:mm:ss.SSSSSS", "2020-01-02 03:04:05.123456", "2020-01-02T03:04:05.123Z"},
    {"yyyy-MM-dd SSSSSSSSSSSSSSSSSSSSSSSSS", "2020-01-02 1239999999999999999999999", "2020-01-02T00:00:00.123Z"},
    {"yyyy-MM-dd S", "2020-01-02 1", "2020-01-02T00:00:00.100Z"},
    {"yyyyyyyyyyyyyyyyyyyyyyyyy", "9999999999999999999999999", NULL},
    {"yyyyyyyyyyyyyyyyyyyyyyyyy", "0000000000000000000002020", "2020-01-01T00:00:00.000Z"},
    {"uuuuuuuuuuuuuuuuuuuuuuuuu", "1000000000000000000000000", NULL},
    {"8yyyy-MM-dd", "2020-01-02", "2020-01-02T00:00:00.000Z"},
    {"yyyy''MM", "2020'03", "2020-03-01T00:00:00.000Z"},
    {"yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis", "2020/01/02", "2020-01-02T00:00:00.000Z"},
};

/* Texts that date_parse() takes, and whether 7.10 takes them; asked of 7.10. */
static const struct {
    const char *format, *text;
    bool strict;
} strictness[] = {
    {DATE_FORMAT_DEFAULT, "2022-01-01", true},
    {DATE_FORMAT_DEFAULT, "20220-01-01", false},
    {DATE_FORMAT_DEFAULT, "02022-01-01", false},
    {DATE_FORMAT_DEFAULT, "+2022-01-01", false},
    {DATE_FORMAT_DEFAULT, "+20220-01-01", true},
    {DATE_FORMAT_DEFAULT, "-2022-01-01", true},
    {DATE_FORMAT_DEFAULT, "-20220-01-01", true},
    {DATE_FORMAT_DEFAULT, "-0000-01-01", false},
    {DATE_FORMAT_DEFAULT, "0000-01-01", true},
    {DATE_FORMAT_DEFAULT, "20220", true},
    {"strict_date_optional_time", "20220", false},
    {"strict_date_optional_time", "2022-01-01T12Z", true},
    {"strict_date_optional_time", "2022-01-01T12:00:00+18:00", true},
    {"strict_date_optional_time", "2022-01-01T12:00:00+18:01", false},
    {"strict_date_optional_time", "2022-01-01T12:00:00-1801", false},
    {"date_optional_time", "20220-01-01", true},
    {"date_optional_time", "202201-01-01", false},
    {"date_optional_time", "+20220-01-01", false},
    {"date_optional_time", "-1-1-1", true},
    {"date_optional_time", "-0000", false},
    {"date_optional_time", "2022-01-01T12", true},
    {"date_optional_time", "2022-01-01T12Z", false},
    {"date_optional_time", "2022-01-01T12+01:00", false},
    {"date_optional_time", "2022-01-01T12:00Z", true},
    {"epoch_millis", "1640995200000.123456", true},
    {"epoch_millis", "1640995200000.1234567", false},
    {"epoch_second", "1640995200.1234567", true},
    {"date", "0000-01-01", true},
    {"yyyy-MM-dd", "0000-01-01", false},
    {"uuuu-MM-dd", "0000-01-01", true},
    {"date_time", "2022-01-01T12:00:00.123+18:01", false},
    {"yyyy-MM-dd'T'HH:mm:ssZ", "2022-01-01T12:00:00+0100", true},
    {"yyyy-MM-dd'T'HH:mm:ssZ", "2022-01-01T12:00:00+01:00", false},
    {"yyyy-MM-dd'T'HH:mm:ssZ", "2022-01-01T12:00:00Z", false},
    {"basic_date_time_no_millis", "20220101T120000Z", true},
    {"yyyy-MM-dd'T'HH:mm:ssXXX", "2022-01-01T12:00:00+01:00", true},
    {"yyyy-MM-dd'T'HH:mm:ssXXX", "2022-01-01T12:00:00Z", true},
    {"yyyy-MM-dd'T'HH:mm:ssXXX", "2022-01-01T12:00:00+0100", false},
    {"yyyy-MM-dd'T'HH:mm:ssXXX", "2022-01-01T12:00:00+18:01", false},
    {"yyyy-MM-dd'T'HH:mm:ssX", "2022-01-01T12:00:00+01", true},
    {"yyyy-MM-dd'T'HH:mm:ssX", "2022-01-01T12:00:00+0100", true},
    {"yyyy-MM-dd'T'HH:mm:ssX", "2022-01-01T12:00:00+01:00", false},
    {"HH:mm z", "12:00 UTC", true},
    {"HH:mm z", "12:00 +01:00", true},
    {"HH:mm z", "12:00 +0100", false},
    {"hh:mm a", "01:00 PM", true},
    {"hh:mm a", "01:00 pm", false},
    {"KK:mm a", "12:00 PM", false},
    {"kk:mm", "00:00", false},
};

static void test_date_knows_strict_texts(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof strictness / sizeof *strictness; i++) {
        const struct date_format *format = format_of(&arena, strictness[i].format);
        int64_t millis;
        if (date_parse(format, slice_from(strictness[i].text), false, &millis) != 0 ||
            date_is_strict(format, slice_from(strictness[i].text)) != strictness[i].strict)
            fail_msg("%s by %s", strictness[i].text, strictness[i].format);
        format = format_by(&arena, strictness[i].format, DATE_RULES_7_10);
        bool taken = date_parse(format, slice_from(strictness[i].text), false, &millis) == 0;
        if (taken != strictness[i].strict && !slice_is(slice_from(strictness[i].text), "20220"))
            fail_msg("%s by %s and the rules of 7.10", strictness[i].text, strictness[i].format);
    }
    arena_deinit(&arena);
}

/* Returns: whether a value of a recorded text, "MILLIS FORMAT FORMAT …", has the format. */
static bool has_format(const char *value, const char *format)
{
    size_t len = strlen(format);
    for (const char *at = strchr(value, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        if (strncmp(at + 1, format, len) == 0 && (at[1 + len] == ' ' || at[1 + len] == '\0'))
            return true;
    }
    return false;
}

/* Checks one recorded text by one format. `values` are separated by NULs, and an empty one is at their end. */
static unsigned check_recorded(const struct date_format *format, const char *name, const char *text, const char *values)
{
    int64_t millis, expected = 0;
    bool taken = false, epoch = strstr(name, "epoch") != NULL;
    for (const char *value = values; *value != '\0'; value += strlen(value) + 1) {
        if (has_format(value, name)) {
            taken = true;
            expected = strtoll(value, NULL, 10);
        }
    }
    int r = date_parse(format, slice_from(text), false, &millis);
    if (!taken && epoch && text[0] == '-')
        return 0; /* negative milliseconds (docs/compatibility.md) */
    if ((r == 0) == taken && (!taken || millis == expected))
        return 0;
    print_error("%s by %s: %s %" PRId64 ", 7.10 %" PRId64 "\n", text, name, taken ? "expected" : "refused",
                r == 0 ? millis : -1, expected);
    return 1;
}

/* Checks the recorded text of an instant by a format: "NAME MILLIS TEXT". */
static unsigned check_printed(struct arena *arena, char *line)
{
    char *name = strtok(line, " "), *millis = strtok(NULL, " "), *text = strtok(NULL, "");
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    date_print(&buf, format_by(arena, name, DATE_RULES_7_10), strtoll(millis, NULL, 10), NULL);
    unsigned wrong = !slice_is(buf_as_slice(&buf), text);
    if (wrong)
        print_error("%s shows %.*s, 7.10 %s\n", name, SLICE_ARG(buf_as_slice(&buf)), text);
    buf_deinit(&buf);
    return wrong;
}

/* dates.tsv has what 7.10 answered; record_dates.py describes its form. */
static void test_date_rules_equal_recorded(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    enum { FORMATS_MAX = 128 };
    const struct date_format *formats[FORMATS_MAX];
    const char *names[FORMATS_MAX];
    unsigned wrong = 0, checked = 0, count = 0;
    FILE *file = fopen(DATES_RECORDED, "r");
    assert_non_null(file);
    while ((len = getline(&line, &room, file)) > 0) {
        char *end = line + len - 1;
        *end = '\0';
        if (strncmp(line, "# printed ", 10) == 0)
            wrong += check_printed(&arena, line + 10);
        if (strncmp(line, "# formats: ", 11) == 0) {
            char *list = (char *)(uintptr_t)arena_printf(&arena, "%s", line + 11).data;
            for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " ")) {
                assert_true(count < FORMATS_MAX);
                names[count] = name;
                formats[count++] = format_by(&arena, name, DATE_RULES_7_10);
            }
        }
        if (line[0] == '#')
            continue;
        char *values = arena_zalloc(&arena, (size_t)len + 2);
        memcpy(values, line, (size_t)len);
        for (char *at = values; (at = strchr(at, '\t')) != NULL; at++)
            *at = '\0';
        for (unsigned i = 0; i < count; i++, checked++)
            wrong += check_recorded(formats[i], names[i], values, values + strlen(values) + 1);
    }
    free(line);
    assert_int_equal(fclose(file), 0);
    assert_true(checked > 50000);
    assert_int_equal(wrong, 0);
    arena_deinit(&arena);
}

static void test_date_parses_texts(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof parses / sizeof *parses; i++) {
        int64_t millis;
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        if (date_parse(format_of(&arena, parses[i].format), slice_from(parses[i].text), false, &millis) == 0)
            date_print_iso(&buf, millis);
        if (!slice_is(buf_as_slice(&buf), parses[i].iso == NULL ? "" : parses[i].iso))
            fail_msg("%s by %s: got %.*s", parses[i].text, parses[i].format, SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

static void test_date_format_refuses_unknown_patterns(void **state)
{
    (void)state;
    static const char *const patterns[] = {"", "bogus", "yyyy-MM-dd'T", "yyyy[-MM]", "yyyy||", "||yyyy", "QQ"};
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const struct date_format *format;
        int r = date_format_parse(&arena, slice_from(patterns[i]), DATE_RULES_FIRST, &format);
        if (r != DATE_INVALID && i != 4)
            fail_msg("%s was taken", patterns[i]);
    }
    arena_deinit(&arena);
}

static void test_date_math_adds_and_rounds(void **state)
{
    (void)state;
    static const char now[] = "2020-05-15T10:20:30.400Z"; /* a Friday */
    static const struct {
        const char *text;
        bool round_up;
        int zone;
        const char *iso;
    } rows[] = {
        {"now", false, 0, now},
        {"now-1d", false, 0, "2020-05-14T10:20:30.400Z"},
        {"now-1d/d", false, 0, "2020-05-14T00:00:00.000Z"},
        {"now/d", true, 0, "2020-05-15T23:59:59.999Z"},
        {"now/w", false, 0, "2020-05-11T00:00:00.000Z"},
        {"now/M+1M-1d", false, 0, "2020-05-31T00:00:00.000Z"},
        {"now/y", true, 0, "2020-12-31T23:59:59.999Z"},
        {"now/h", false, 0, "2020-05-15T10:00:00.000Z"},
        {"now+2h-30m", false, 0, "2020-05-15T11:50:30.400Z"},
        {"now/d", false, 120, "2020-05-14T22:00:00.000Z"},
        {"2020-01-31||+1M", false, 0, "2020-02-29T00:00:00.000Z"},
        {"2020-01-01||+1M/d", true, 0, "2020-02-01T23:59:59.999Z"},
        {"2020-02-29||-1y", false, 0, "2019-02-28T00:00:00.000Z"},
        {"2020", true, 0, "2020-01-01T23:59:59.999Z"},
        {"2020-02", true, 0, "2020-02-01T23:59:59.999Z"},
        {"2020-02-03T10", true, 0, "2020-02-03T10:59:59.999Z"},
        {"2020-02-03", false, 60, "2020-02-02T23:00:00.000Z"},
        {"2020-01-01||", false, 0, "2020-01-01T00:00:00.000Z"},
        {"now-", false, 0, NULL},
        {"now-1", false, 0, NULL},
        {"now-1x", false, 0, NULL},
        {"now/2d", false, 0, NULL},
        {"now 1d", false, 0, NULL},
        {"nowhere", false, 0, NULL},
        {"x||-1d", false, 0, NULL},
    };
    int64_t instant;
    assert_int_equal(date_parse(date_format_default(DATE_RULES_FIRST), slice_from(now), false, &instant), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t millis;
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        struct zone zone = zone_fixed(rows[i].zone * 60);
        if (date_parse_math(date_format_default(DATE_RULES_FIRST), slice_from(rows[i].text), instant, rows[i].round_up,
                            &zone, &millis) == 0)
            date_print_iso(&buf, millis);
        if (!slice_is(buf_as_slice(&buf), rows[i].iso == NULL ? "" : rows[i].iso))
            fail_msg("%s: got %.*s", rows[i].text, SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
    }
}

/* Asked of 7.10, by ranges with `gt`. */
static void test_date_rounds_up_in_format(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        int64_t millis;
    } rows[] = {
        {"epoch_second", "24", 24999},
        {"epoch_second", "24.5", 24500},
        {"epoch_second", "-24", -23001},
        {"epoch_millis", "24", 24},
        {"date_hour", "2022-03-04T05", 1646373599999},
        {"date||epoch_millis", "1234", -23225788800001},
        {"strict_hour_minute", "05:06", 18419999},
        {"iso8601", "2022-03-04T-0000", 1646438399999},
        {"date_time", "2022-03-04T05:06:07.089123456Z", 1646370367089},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t millis;
        const struct date_format *format = format_by(&arena, rows[i].format, DATE_RULES_7_10);
        assert_int_equal(date_parse(format, slice_from(rows[i].text), true, &millis), 0);
        if (millis != rows[i].millis)
            fail_msg("%s by %s: got %" PRId64, rows[i].text, rows[i].format, millis);
    }
    arena_deinit(&arena);
}

static void test_date_prints_in_format(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "yyyy-MM-dd HH:mm:ss",
        "dd/MM/yyyy",
        "yyyyMMdd'T'HHmmss.SSSZ",
        "EEE, dd MMM yyyy HH:mm:ss zzz",
        "MMMM d, yyyy hh:mm:ss a",
        "yyyy-DDD HH:mm:ss",
        "date_time",
    };
    struct arena arena = ARENA_INIT;
    int64_t millis;
    assert_int_equal(
        date_parse(date_format_default(DATE_RULES_FIRST), SLICE_LIT("2020-07-08T13:04:05Z"), false, &millis), 0);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const struct date_format *format = format_of(&arena, patterns[i]);
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        int64_t again;
        date_print(&buf, format, millis, NULL);
        assert_int_equal(date_parse(format, buf_as_slice(&buf), false, &again), 0);
        if (again != millis && i != 1)
            fail_msg("%s: %.*s", patterns[i], SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

/* Asked of 7.10; it takes no negative epoch numbers, but those are printed so that they can be parsed. */
static void test_date_prints_offset_of_zone(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        int32_t seconds;
        const char *text;
    } rows[] = {
        {"strict_date_time", 7200, "2020-07-08T15:04:05.000+02:00"},
        {"strict_date_time", 0, "2020-07-08T13:04:05.000Z"},
        {"basic_date_time", -19800, "20200708T073405.000-05:30"},
        {"strict_date_optional_time", -19800, "2020-07-08T07:34:05.000-05:30"},
        {"yyyy-MM-dd'T'HH:mm:ssXXX", 7200, "2020-07-08T15:04:05+02:00"},
        {"HH:mm X", 7200, "15:04 +02"},
        {"HH:mm X", -19800, "07:34 -0530"},
        {"HH:mm XX", 7200, "15:04 +0200"},
        {"HH:mm x", 0, "13:04 +00"},
        {"HH:mm xxx", 0, "13:04 +00:00"},
        {"HH:mm Z", 7200, "15:04 +0200"},
        {"HH:mm ZZZZZ", 7200, "15:04 +02:00"},
        {"HH:mm z", 7200, "15:04 +02:00"},
        {"epoch_second", 7200, "1594213445"},
    };
    struct arena arena = ARENA_INIT;
    int64_t millis;
    assert_int_equal(
        date_parse(date_format_default(DATE_RULES_FIRST), SLICE_LIT("2020-07-08T13:04:05Z"), false, &millis), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct zone zone = zone_fixed(rows[i].seconds);
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        date_print(&buf, format_of(&arena, rows[i].format), millis, &zone);
        if (!slice_is(buf_as_slice(&buf), rows[i].text))
            fail_msg("%s: got %.*s", rows[i].text, SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

static void test_date_prints_signs_and_fractions(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        int64_t millis;
    } rows[] = {
        {DATE_FORMAT_DEFAULT, "+20220-01-01T00:00:00.000Z", 575914320000000},
        {DATE_FORMAT_DEFAULT, "9999-12-31T00:00:00.000Z", 253402214400000},
        {DATE_FORMAT_DEFAULT, "-2022-01-01T00:00:00.000Z", -125975347200000},
        {"epoch_second", "1640995200", 1640995200000},
        {"epoch_second", "1640995200.5", 1640995200500},
        {"epoch_second", "12.25", 12250},
        {"epoch_second", "0.007", 7},
        {"epoch_second", "-0.5", -500},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        int64_t again;
        date_print(&buf, format_of(&arena, rows[i].format), rows[i].millis, NULL);
        if (!slice_is(buf_as_slice(&buf), rows[i].text))
            fail_msg("%s: %.*s", rows[i].text, SLICE_ARG(buf_as_slice(&buf)));
        assert_int_equal(date_parse(format_of(&arena, rows[i].format), buf_as_slice(&buf), false, &again), 0);
        assert_true(again == rows[i].millis);
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

/*
 * Goal: splitting and joining agree with a count day by day, and with each other for distant
 * years.
 */
static void test_date_split_and_join_equal_day_count(void **state)
{
    (void)state;
    struct date_parts expected = {.year = 1600, .month = 1, .day = 1};
    int weekday = 6; /* 1600-01-01 was a Saturday */
    for (int64_t day = -135140; day < 100000; day++) {
        struct date_parts parts;
        date_split(day * 86400000, &parts);
        assert_true(parts.year == expected.year && parts.month == expected.month && parts.day == expected.day);
        assert_int_equal(date_join(&parts), day * 86400000);
        assert_int_equal(date_weekday(day * 86400000), weekday);
        weekday = weekday % 7 + 1;
        if (++expected.day > calendar_month_days(expected.year, expected.month)) {
            expected.day = 1;
            expected.year += expected.month / 12;
            expected.month = expected.month % 12 + 1;
        }
    }
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 100000; i++) {
        int64_t millis = (int64_t)rng_next(&rng) / 2;
        struct date_parts parts;
        date_split(millis, &parts);
        assert_true(date_join(&parts) == millis);
    }
}

/*
 * Goal: days are counted in local time, hours as elapsed time; a local time that occurs twice is
 * resolved to the first one.
 */
static void test_date_math_uses_zone(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool round_up;
        const char *iso;
    } rows[] = {
        {"2020-03-29T02:30:00", false, "2020-03-29T01:30:00.000Z"}, /* a local time that does not exist */
        {"2020-10-25T02:30:00", false, "2020-10-25T00:30:00.000Z"},
        {"2020-10-25T02:30:00+01:00", false, "2020-10-25T01:30:00.000Z"},
        {"2020-03-28T12:00:00||+1d", false, "2020-03-29T10:00:00.000Z"},
        {"2020-03-28T12:00:00||+24h", false, "2020-03-29T11:00:00.000Z"},
        {"2020-03-28||+1M", false, "2020-04-27T22:00:00.000Z"},
        {"2020-10-25T12:00:00||/d", false, "2020-10-24T22:00:00.000Z"},
        {"2020-10-25T12:00:00||/d", true, "2020-10-25T22:59:59.999Z"},
        {"2020-07-01||/y", false, "2019-12-31T23:00:00.000Z"},
        {"2050-07-01", false, "2050-06-30T22:00:00.000Z"}, /* beyond the table of transitions, by the rule */
        {"2020-03-29T02:30:00||/h", false, "2020-03-29T01:00:00.000Z"},
        {"1585443600000", false, "2020-03-29T00:00:00.000Z"}, /* epoch numbers are shifted too: local time 01:00 */
    };
    struct zone zone = zone_berlin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t millis;
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        if (date_parse_math(date_format_default(DATE_RULES_FIRST), slice_from(rows[i].text), 0, rows[i].round_up, &zone,
                            &millis) == 0)
            date_print_iso(&buf, millis);
        if (!slice_is(buf_as_slice(&buf), rows[i].iso))
            fail_msg("%s: got %.*s", rows[i].text, SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
    }
}

/* Goal: no text makes the arithmetic overflow 64 bits (as the sanitizers would report). */
static void test_date_extremes_do_not_overflow(void **state)
{
    (void)state;
    static const char *const texts[] = {"999999999-12-31||+999999y+999999y", "-999999999-01-01",
                                        "now+999999w+999999w+999999w",       "999999999999999999||+999999y",
                                        "290000000-12-31||+999999M",         "-290000000-01-01||-999999y"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t millis;
        (void)!date_parse_math(date_format_default(DATE_RULES_FIRST), slice_from(texts[i]),
                               INT64_C(9000000000000000000), true, NULL, &millis);
        struct zone west = zone_fixed(-18 * 3600), rules = zone_berlin();
        (void)!date_parse_math(date_format_default(DATE_RULES_FIRST), slice_from(texts[i]), 0, false, &west, &millis);
        (void)!date_parse_math(date_format_default(DATE_RULES_FIRST), slice_from(texts[i]), 0, true, &rules, &millis);
    }
}

static void assert_equal_fields(const struct date_fields *a, const struct date_fields *b)
{
    assert_int_equal(a->year, b->year);
    assert_int_equal(a->month, b->month);
    assert_int_equal(a->day, b->day);
    assert_int_equal(a->hour, b->hour);
    assert_int_equal(a->minute, b->minute);
    assert_int_equal(a->second, b->second);
    assert_int_equal(a->millis, b->millis);
    assert_int_equal(a->zone_seconds, b->zone_seconds);
}

/*
 * Goal: the usual form is read as the grammar reads it, and no other text is taken for it. Each text differs from a
 * usual one in up to three bytes, or is a beginning of one.
 */
static void test_date_usual_form_equals_grammar(void **state)
{
    (void)state;
    enum { TEXTS = 200000, TAKEN_MIN = TEXTS / 10 };
    static const char *const usual[] = {"2026-11-29T00:03:18Z", "0000-00-99T24:60:61Z", "1969-12-31T23:59:59.9Z",
                                        "9999-02-29T11:22:33.123456789Z", "2020-01-02T03:04:05.0000000001Z"};
    static const char bytes[] = "0123456789-+:.,TZtz /U";
    struct date_grammar whole = date__strict_date_optional_time;
    struct rng rng;
    int taken = 0;
    whole.iso = false;
    rng_init(&rng, 20261129);
    for (int i = 0; i < TEXTS; i++) {
        const char *from = usual[rng_below(&rng, sizeof usual / sizeof *usual)];
        size_t len = strlen(from), stop = 0, stop_whole = 0;
        len -= rng_below(&rng, 4) == 0 ? rng_below(&rng, len) : 0;
        char *text = malloc(len); /* without the end of a string, so that a read beyond it is found */
        memcpy(text, from, len);
        for (uint64_t changes = rng_below(&rng, 4); changes > 0; changes--)
            text[rng_below(&rng, len)] = bytes[rng_below(&rng, sizeof bytes - 1)];
        struct date_fields fields = DATE_FIELDS_UNSET, ours = DATE_FIELDS_UNSET, grammars = DATE_FIELDS_UNSET;
        struct slice slice = slice_make(text, len);
        taken += date__take_iso(slice, &fields);
        int r = date__parse_grammar(&date__strict_date_optional_time, slice, &ours, &stop);
        assert_int_equal(r, date__parse_grammar(&whole, slice, &grammars, &stop_whole));
        assert_int_equal(stop, stop_whole);
        if (r == 0)
            assert_equal_fields(&ours, &grammars);
        free(text);
    }
    assert_in_range(taken, TAKEN_MIN, TEXTS - TAKEN_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_date_parses_texts),
        cmocka_unit_test(test_date_knows_strict_texts),
        cmocka_unit_test(test_date_rules_equal_recorded),
        cmocka_unit_test(test_date_format_refuses_unknown_patterns),
        cmocka_unit_test(test_date_math_adds_and_rounds),
        cmocka_unit_test(test_date_math_uses_zone),
        cmocka_unit_test(test_date_rounds_up_in_format),
        cmocka_unit_test(test_date_prints_in_format),
        cmocka_unit_test(test_date_prints_offset_of_zone),
        cmocka_unit_test(test_date_prints_signs_and_fractions),
        cmocka_unit_test(test_date_split_and_join_equal_day_count),
        cmocka_unit_test(test_date_extremes_do_not_overflow),
        cmocka_unit_test(test_date_usual_form_equals_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
