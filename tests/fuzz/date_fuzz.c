/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Date formats: the input's first line is a format, the second a date or date math, the rest a number of milliseconds.
 *
 * An accepted format parses and prints; a printed text parses as the same instant, if the format names the instant
 * completely, and prints as the same text in any case.
 */
#include "fuzz.h"

#include "mapping/date.h"

#include <string.h>

static struct slice take_line(struct slice *input)
{
    size_t end = slice_find_byte(*input, '\n');
    struct slice line = slice_make(input->data, end);
    *input = slice_from_offset(*input, end + 1);
    return line;
}

/* A printed text parses, and prints as the same text. */
static void check_printed(const struct date_format *format, int64_t millis, bool whole)
{
    struct buf first = BUF_INIT(BUF_UNLIMITED), second = BUF_INIT(BUF_UNLIMITED);
    int64_t again;
    date_print(&first, format, millis, NULL);
    if (date_parse(format, buf_as_slice(&first), false, &again) == 0) {
        date_print(&second, format, again, NULL);
        if (whole)
            MUST(again == millis && slice_equal(buf_as_slice(&first), buf_as_slice(&second)));
    } else {
        MUST(!whole);
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void check_calendar(int64_t millis)
{
    struct date_parts parts;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    date_split(millis, &parts);
    MUST(date_join(&parts) == millis && date_weekday(millis) >= 1 && date_weekday(millis) <= 7);
    MUST(parts.month >= 1 && parts.month <= 12 && parts.day >= 1 && parts.day <= 31 && parts.hour < 24);
    date_print_iso(&buf, millis);
    buf_deinit(&buf);
}

static void check_read(const struct date_format *format, struct slice text)
{
    int64_t low, high, math;
    struct zone east = zone_fixed(90 * 60), west = zone_fixed(-1080 * 60);
    int r = date_parse(format, text, false, &low);
    MUST(r == 0 || r == DATE_INVALID);
    if (r == 0 && date_parse(format, text, true, &high) == 0)
        MUST(low <= high);
    r = date_parse_math(format, text, 1600000000000, false, &east, &math);
    MUST(r == 0 || r == DATE_INVALID);
    r = date_parse_math(format, text, -62135596800000, true, &west, &math);
    MUST(r == 0 || r == DATE_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Years 1 to 9999. */
    static const int64_t earliest = -62135596800000, latest = 253402300799999;
    struct arena arena = ARENA_INIT;
    struct slice input = slice_make(data, size), pattern = take_line(&input), text = take_line(&input);
    const struct date_format *format;
    int64_t millis = 0;
    struct zone zone;
    struct problem problem;
    memcpy(&millis, input.data, input.len < sizeof millis ? input.len : sizeof millis);
    millis = earliest + (int64_t)((uint64_t)millis % (uint64_t)(latest - earliest));
    check_calendar(millis);
    check_printed(date_format_default(DATE_RULES_FIRST), millis, true);
    check_printed(date_format_default(DATE_RULES_7_10), millis, true);
    (void)!zone_parse(SLICE_LIT(""), text, &arena, &zone, &problem);
    for (enum date_rules rules = DATE_RULES_FIRST; rules <= DATE_RULES_7_10; rules++) {
        if (date_format_parse(&arena, pattern, rules, &format) != 0)
            continue;
        MUST(slice_equal(date_format_text(format), pattern));
        check_read(format, text);
        check_printed(format, millis, false);
    }
    arena_deinit(&arena);
    return 0;
}
