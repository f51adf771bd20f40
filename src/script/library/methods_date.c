/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Date and of date formatters. */
#include "script/library/method_time.h"

#include <stdio.h>

#define FRACTION_WIDTH_MAX 9   /* letters S of a pattern: nanoseconds */
#define FRACTION_DIGITS_MAX 18 /* digits of milliseconds in java.text */

enum iso_format {
    ISO_LOCAL_DATE,
    ISO_LOCAL_TIME,
    ISO_LOCAL_DATE_TIME,
    ISO_INSTANT,
    ISO_OFFSET_DATE_TIME,
    ISO_ZONED_DATE_TIME
};

static struct date_formatter *formatter_of(struct value v)
{
    return (struct date_formatter *)v.object;
}

static bool formatter_new(struct run *run, enum class_id id, struct text *pattern, int iso, struct value *ret)
{
    struct date_formatter *formatter = run_object(run, sizeof *formatter, id);
    formatter->pattern = pattern;
    formatter->iso = iso;
    return give(ret, formatter);
}

/* Returns: the most letters S in a row, outside of quotes. */
static size_t fraction_width(const struct text *pattern)
{
    size_t width = 0, most = 0;
    bool quoted = false;
    for (size_t i = 0; i < pattern->length; i++) {
        uint16_t c = text_at(pattern, i);
        quoted ^= c == '\'';
        width = c == 'S' && !quoted ? width + 1 : 0;
        most = width > most ? width : most;
    }
    return most;
}

static bool formatter_of_pattern(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    size_t width = fraction_width(text_of(call->args[0]));
    run_work(call->run, call->run->old_library ? 0 : text_of(call->args[0])->length);
    if (width > FRACTION_WIDTH_MAX && !call->run->old_library)
        return run_throw(call->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "Minimum width must be from 0 to 9 inclusive but was %zu", width);
    return formatter_new(call->run, CLASS_DATE_TIME_FORMATTER, text_of(call->args[0]), 0, ret);
}

static bool simple_format_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (call->count == 0)
        return formatter_new(run, CLASS_SIMPLE_DATE_FORMAT, text_new(run, SLICE_LIT("M/d/yy, h:mm a")), 0, ret);
    NOT_NULL(0);
    return formatter_new(run, CLASS_SIMPLE_DATE_FORMAT, text_of(call->args[0]), 0, ret);
}

static void write_number(struct text_buf *out, int64_t value, unsigned width)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%0*lld", (int)width, (long long)value);
    text_buf_ascii(out, digits);
}

static void write_zone(struct text_buf *out, const struct temporal *temporal, uint16_t letter, unsigned width)
{
    int32_t size = temporal->offset < 0 ? -temporal->offset : temporal->offset;
    char text[16];
    if ((letter == 'X' && temporal->offset == 0) || letter == 'z' || letter == 'V') {
        if (temporal->zone != NULL)
            text_buf_slice(out, temporal->zone->name);
        else
            text_buf_ascii(out, letter == 'z' && !is_zoned(temporal) ? "UTC" : "Z");
        return;
    }
    bool colon = width == 3 || width == 5;
    snprintf(text, sizeof text, "%c%02d%s%02d", temporal->offset < 0 ? '-' : '+', size / 3600, colon ? ":" : "",
             size / 60 % 60);
    text_buf_ascii(out, text);
}

static void write_name(struct text_buf *out, const char *name, bool full)
{
    text_buf_slice(out, slice_make(name, full ? strlen(name) : CALENDAR_SHORT_NAME));
}

/* Writes the field of one pattern letter, repeated `width` times. */
static bool write_letter(struct run *run, const struct temporal *temporal, const struct civil *civil, uint16_t letter,
                         unsigned width, struct text_buf *out)
{
    switch (letter) {
    case 'y':
    case 'u':
        if (width == 2)
            write_number(out, floor_mod(civil->year, 100), 2);
        else
            write_number(out, civil->year, width);
        return true;
    case 'M':
    case 'L':
        if (width >= 3)
            write_name(out, calendar_months[civil->month - 1], width > 3);
        else
            write_number(out, civil->month, width);
        return true;
    case 'd': write_number(out, civil->day, width); return true;
    case 'D': write_number(out, part_of(temporal, DAY_OF_YEAR), width); return true;
    case 'E': write_name(out, calendar_weekdays[temporal_weekday(temporal)], width > 3); return true;
    case 'e': write_number(out, temporal_weekday(temporal) + 1, width); return true;
    case 'H': write_number(out, civil->hour, width); return true;
    case 'h': write_number(out, civil->hour % 12 == 0 ? 12 : civil->hour % 12, width); return true;
    case 'm': write_number(out, civil->minute, width); return true;
    case 's': write_number(out, civil->second, width); return true;
    case 'S': {
        char digits[12];
        if (temporal->object.class == CLASS_DATE && !run->old_formats) {
            write_number(out, civil->nano / 1000000, width);
            return true;
        }
        snprintf(digits, sizeof digits, "%09d", civil->nano);
        digits[width < 9 ? width : 9] = '\0';
        text_buf_ascii(out, digits);
        return true;
    }
    case 'n': write_number(out, civil->nano, width); return true;
    case 'a': text_buf_ascii(out, civil->hour < 12 ? "AM" : "PM"); return true;
    case 'z':
        if (temporal_has_zone_rules(temporal))
            return run_throw(
                run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION,
                "letter [z] of a pattern is not supported for zones with rules, such as [%.*s]; use [VV] or [XXX]",
                SLICE_ARG(temporal->zone->name));
        __attribute__((fallthrough));
    case 'Z':
    case 'X':
    case 'x':
    case 'V': write_zone(out, temporal, letter, width); return true;
    default: return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Unknown pattern letter: %c", letter);
    }
}

static bool is_pattern_letter(uint16_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool write_pattern(struct run *run, const struct temporal *temporal, const struct text *pattern,
                          struct text_buf *out)
{
    struct civil civil = temporal_civil(temporal);
    for (size_t i = 0; i < pattern->length;) {
        uint16_t c = text_at(pattern, i);
        size_t width = 1;
        if (c == '\'') {
            bool quote = i + 1 < pattern->length && text_at(pattern, i + 1) == '\'';
            for (i++; !quote && i < pattern->length && text_at(pattern, i) != '\''; i++)
                text_buf_unit(out, text_at(pattern, i));
            if (quote)
                text_buf_unit(out, '\'');
            i++;
            continue;
        }
        while (is_pattern_letter(c) && i + width < pattern->length && text_at(pattern, i + width) == c)
            width++;
        if (!is_pattern_letter(c))
            text_buf_unit(out, c);
        else if (!run_step(run, 1) || !write_letter(run, temporal, &civil, c, (unsigned)width, out))
            return false;
        i += width;
    }
    return true;
}

static bool format_temporal(struct run *run, const struct temporal *temporal, const struct date_formatter *formatter,
                            struct value *ret)
{
    struct text_buf out;
    static const uint16_t classes[] = {[ISO_LOCAL_DATE] = CLASS_LOCAL_DATE,
                                       [ISO_LOCAL_TIME] = CLASS_LOCAL_TIME,
                                       [ISO_LOCAL_DATE_TIME] = CLASS_LOCAL_DATE_TIME,
                                       [ISO_INSTANT] = CLASS_INSTANT,
                                       [ISO_OFFSET_DATE_TIME] = CLASS_OFFSET_DATE_TIME,
                                       [ISO_ZONED_DATE_TIME] = CLASS_ZONED_DATE_TIME};
    text_buf_init(&out, run);
    if (formatter->pattern != NULL)
        return write_pattern(run, temporal, formatter->pattern, &out) && give(ret, text_buf_done(&out));
    struct temporal copy = *temporal;
    copy.object.class = classes[formatter->iso];
    copy.seconds = formatter->iso == ISO_INSTANT ? instant_of(temporal) : temporal->seconds;
    struct civil civil = temporal_civil(&copy);
    if (formatter->iso == ISO_LOCAL_DATE || formatter->iso == ISO_INSTANT) {
        temporal_write(&copy, &out);
        return give(ret, text_buf_done(&out));
    }
    /* These formats always have seconds; temporal_write omits zero seconds. */
    temporal_write(&copy, &out);
    struct text *text = text_buf_done(&out);
    if (text == NULL || civil.second > 0 || civil.nano > 0)
        return give(ret, text);
    struct text_buf full;
    text_buf_init(&full, run);
    size_t minutes = formatter->iso == ISO_LOCAL_TIME ? 5 : 16;
    text_buf_range(&full, text, 0, minutes < text->length ? minutes : text->length);
    text_buf_ascii(&full, ":00");
    text_buf_range(&full, text, minutes < text->length ? minutes : text->length, text->length);
    return give(ret, text_buf_done(&full));
}

bool temporal_format(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return format_temporal(call->run, temporal_of(call->self), formatter_of(call->args[0]), ret);
}

static bool formatter_format(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return format_temporal(call->run, temporal_of(call->args[0]), formatter_of(call->self), ret);
}

/* Returns: the offset from UTC of the formatter's zone at an instant, in seconds. */
static int32_t formatter_offset(const struct date_formatter *formatter, int64_t instant)
{
    const struct temporal *zone = formatter->zone;
    return zone == NULL ? 0 : temporal_has_zone_rules(zone) ? zone_offset(zone->zone, instant) : zone->offset;
}

/* Returns: the offset from UTC of the formatter's zone at a local time, in seconds. */
static int32_t local_offset(const struct date_formatter *formatter, int64_t local)
{
    const struct temporal *zone = formatter->zone;
    bool ruled = zone != NULL && temporal_has_zone_rules(zone);
    return ruled ? (int32_t)(local - zone_instant(zone->zone, local, ZONE_PREFERS_NONE))
                 : formatter_offset(formatter, local);
}

/* Formats a Date in the formatter's zone. */
static bool format_date(struct run *run, const struct temporal *date, const struct date_formatter *formatter,
                        struct value *ret)
{
    struct temporal local = *date;
    local.offset = formatter_offset(formatter, date->seconds);
    local.seconds += local.offset;
    local.zone = formatter->zone == NULL ? NULL : formatter->zone->zone;
    return format_temporal(run, &local, formatter, ret);
}

static bool simple_format_format(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return format_date(call->run, temporal_of(call->args[0]), formatter_of(call->self), ret);
}

static bool simple_format_set_zone(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    formatter_of(call->self)->zone = temporal_of(call->args[0]);
    return give_nothing(ret);
}

static bool date_format_pattern(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(call->count - 1);
    struct date_formatter formatter = {.pattern = text_of(call->args[0]),
                                       .zone = call->count == 2 ? temporal_of(call->args[1]) : NULL};
    return format_date(call->run, temporal_of(call->self), &formatter, ret);
}

/* State of parsing by a format pattern: the fields read up to now. */
struct date_parser {
    struct scan scan;
    struct civil civil;
    int32_t offset;
    int64_t seconds; /* java.text: those of the milliseconds */
    bool pm;
    bool text;    /* by java.text, not java.time */
    bool adjoins; /* a letter follows at once, so a number has no more digits than letters */
};

/* Reads a month's English name, ignoring case: three letters, or in full. */
static void scan_month_name(struct date_parser *parser, bool full)
{
    struct scan *scan = &parser->scan;
    for (int month = 0; month < 12; month++) {
        const char *name = calendar_months[month];
        size_t len = full ? strlen(name) : CALENDAR_SHORT_NAME;
        if (scan->text.len - scan->at >= len && strncasecmp(scan->text.data + scan->at, name, len) == 0) {
            parser->civil.month = month + 1;
            scan->at += len;
            return;
        }
    }
    scan->failed = true;
}

/* Reads milliseconds as java.text does: an int, which wraps. */
static void scan_millis(struct date_parser *parser, unsigned width)
{
    int32_t millis = (int32_t)(uint32_t)scan_digits(&parser->scan, 1, width);
    parser->seconds = floor_div(millis, 1000);
    parser->civil.nano = (int32_t)floor_mod(millis, 1000) * 1000000;
}

/* Reads a fraction of a second. Version 18 of commands refused a wider one, which only java.text may have. */
static int32_t scan_fraction(const struct run *run, struct scan *scan, unsigned width)
{
    if (width > FRACTION_WIDTH_MAX && !run->old_library) {
        scan->failed = true;
        return 0;
    }
    int64_t nanos = scan_digits(scan, width, width);
    for (unsigned i = width; i < 9; i++)
        nanos *= 10;
    return (int32_t)nanos;
}

static bool scan_half_day(struct scan *scan)
{
    bool pm = scan->at < scan->text.len && (scan->text.data[scan->at] | 32) == 'p';
    scan->at += 2;
    scan->failed = scan->at > scan->text.len;
    return pm;
}

/* Returns: whether letters of a pattern stand for offsets of one form. */
static bool form_of_letters(const struct date_parser *parser, uint16_t letter, unsigned width,
                            struct offset_form *ret_form)
{
    bool rfc_822 = parser->text ? letter == 'z' || letter == 'Z' : letter == 'Z' && width < 4; /* +0100 */
    bool iso = letter == 'X' || letter == 'x' || (letter == 'Z' && width == 5);
    *ret_form = (struct offset_form){
        .zulu = letter == 'X' || (letter == 'Z' && !rfc_822),
        .colon = !rfc_822 && (width == 3 || width == 5),
        .minutes = rfc_822 || width > 1 || !parser->text,
        .needs_minutes = rfc_822 || width > 1,
        .seconds = !rfc_822 && width > 3,
    };
    return rfc_822 || (iso && width <= 5);
}

static void scan_zone(struct run *run, struct date_parser *parser, uint16_t letter, unsigned width)
{
    struct scan *scan = &parser->scan;
    struct offset_form form;
    bool one_form = form_of_letters(parser, letter, width, &form) && !run->old_formats;
    bool named = !one_form || (parser->text && letter != 'X');
    struct slice next = slice_make(scan->text.data + scan->at, scan->text.len - scan->at < 3 ? 0 : 3);
    if (named && (slice_is(next, "UTC") || slice_is(next, "GMT")))
        scan->at += 3;
    else if (one_form)
        scan_offset_as(scan, &form, &parser->offset);
    else
        scan_offset(scan, &parser->offset);
}

/* Reads the field of one pattern letter repeated `width` times, or one other character. */
static bool scan_letter(struct run *run, struct date_parser *parser, uint16_t letter, unsigned width)
{
    struct scan *scan = &parser->scan;
    struct civil *civil = &parser->civil;
    unsigned max = width == 1 ? 9 : width;
    switch (letter) {
    case 'y':
    case 'u': civil->year = scan_digits(scan, width, width == 4 ? 9 : max) + (width == 2 ? 2000 : 0); break;
    case 'M':
        if (width >= 3)
            scan_month_name(parser, width > 3);
        else
            civil->month = (int)scan_digits(scan, width, max);
        break;
    case 'd': civil->day = (int)scan_digits(scan, width, max); break;
    case 'H':
    case 'h': civil->hour = (int)scan_digits(scan, width, max); break;
    case 'm': civil->minute = (int)scan_digits(scan, width, max); break;
    case 's': civil->second = (int)scan_digits(scan, width, max); break;
    case 'S':
        if (parser->text && !run->old_formats)
            scan_millis(parser, parser->adjoins ? width : FRACTION_DIGITS_MAX);
        else
            civil->nano = scan_fraction(run, scan, width);
        break;
    case 'a': parser->pm = scan_half_day(scan); break;
    case 'X':
    case 'x':
    case 'Z':
    case 'z':
    case 'V': scan_zone(run, parser, letter, width); break;
    default:
        if (is_pattern_letter(letter))
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Unknown pattern letter: %c", letter);
        scan_expect(scan, (char)letter);
    }
    return true;
}

/* Reads a text by a format pattern of letters and literals. */
static bool scan_pattern(struct run *run, struct date_parser *parser, const struct text *pattern)
{
    for (size_t i = 0; i < pattern->length && !parser->scan.failed;) {
        uint16_t c = text_at(pattern, i);
        unsigned width = 1;
        if (c == '\'') {
            for (i++; i < pattern->length && text_at(pattern, i) != '\''; i++)
                scan_expect(&parser->scan, (char)text_at(pattern, i));
            i++;
            continue;
        }
        while (is_pattern_letter(c) && i + width < pattern->length && text_at(pattern, i + width) == c)
            width++;
        i += width;
        parser->adjoins = i < pattern->length && is_pattern_letter(text_at(pattern, i));
        if (!scan_letter(run, parser, c, width))
            return false;
    }
    return true;
}

static bool parse_by(struct run *run, struct value text, const struct date_formatter *formatter, enum class_id id,
                     struct value *ret)
{
    struct text *source = value_to_text(run, text);
    if (formatter->pattern == NULL)
        return parse_iso(run, text, id, ret);
    if (source == NULL)
        return false;
    struct date_parser parser = {.scan = {.text = text_utf8(run, source), .short_hours = !run->old_library},
                                 .civil = {.year = 1970, .month = 1, .day = 1},
                                 .text = id == CLASS_DATE};
    struct scan *scan = &parser.scan;
    struct civil *civil = &parser.civil;
    if (!scan_pattern(run, &parser, formatter->pattern))
        return false;
    if (scan->failed || (scan->at < scan->text.len && id != CLASS_DATE))
        return parse_failed(run, scan);
    civil->hour = parser.pm && civil->hour < 12 ? civil->hour + 12 : civil->hour;
    if (!check_civil(run, scan->text, civil))
        return false;
    if (!check_offset(run, scan->text, id, parser.offset))
        return false;
    struct temporal *temporal = temporal_new(run, id, civil_seconds(civil) + parser.seconds, civil->nano);
    if (id == CLASS_DATE || id == CLASS_INSTANT)
        temporal->seconds -= parser.offset != 0 ? parser.offset : local_offset(formatter, temporal->seconds);
    else
        temporal->offset = parser.offset;
    if (id == CLASS_LOCAL_DATE)
        temporal->seconds = floor_div(temporal->seconds, 86400) * 86400;
    if (id == CLASS_LOCAL_TIME)
        temporal->seconds = floor_mod(temporal->seconds, 86400);
    return give(ret, temporal);
}

bool temporal_parse_by(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    return parse_by(call->run, call->args[0], formatter_of(call->args[1]),
                    type_class(((struct class_object *)call->self.object)->type), ret);
}

/* Parses as java.text does, and throws its error. */
static bool parse_date(struct run *run, struct value text, const struct date_formatter *formatter, struct value *ret)
{
    if (parse_by(run, text, formatter, CLASS_DATE, ret))
        return true;
    if (run->thrown->object.class != CLASS_DATE_TIME_PARSE_EXCEPTION)
        return false;
    run->thrown = NULL;
    return run_throw(run, CLASS_PARSE_EXCEPTION, "Unparseable date: \"%.*s\"",
                     SLICE_ARG(text_utf8(run, text_of(text))));
}

static bool step_day(struct call *call, struct value *ret)
{
    int64_t days = call->row->datum.number;
    const struct temporal *date = (const struct temporal *)call->self.object;
    return give(ret, temporal_new(call->run, CLASS_DATE, date->seconds + days * 86400, date->nanos));
}

/* Sets the Date itself to its midnight. */
static bool date_clear_time(struct call *call, struct value *ret)
{
    struct temporal *date = temporal_of(call->self);
    date->seconds = floor_div(date->seconds, 86400) * 86400;
    date->nanos = 0;
    *ret = call->self;
    return true;
}

static bool simple_format_parse(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return parse_date(call->run, call->args[0], formatter_of(call->self), ret);
}

static bool date_parse_static(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    NOT_NULL(1);
    struct date_formatter formatter = {.pattern = text_of(call->args[0])};
    return parse_date(call->run, call->args[1], &formatter, ret);
}

/* A formatter of one of DateTimeFormatter's constants; the datum is an enum iso_format. */
static bool iso_formatter(struct call *call, struct value *ret)
{
    return formatter_new(call->run, CLASS_DATE_TIME_FORMATTER, NULL, (enum iso_format)call->row->datum.number, ret);
}

/* Date; the current time is the command's */

static bool date_new(struct call *call, struct value *ret)
{
    int64_t ms = call->count == 1 ? call->args[0].i : call->run->now_ms;
    return give(ret, temporal_new(call->run, CLASS_DATE, floor_div(ms, 1000), (int32_t)floor_mod(ms, 1000) * 1000000));
}

static bool date_set_time(struct call *call, struct value *ret)
{
    temporal_of(call->self)->seconds = floor_div(call->args[0].i, 1000);
    temporal_of(call->self)->nanos = (int32_t)floor_mod(call->args[0].i, 1000) * 1000000;
    return give_nothing(ret);
}

static bool date_from(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, temporal_new(call->run, CLASS_DATE, temporal_of(call->args[0])->seconds,
                                  temporal_of(call->args[0])->nanos / 1000000 * 1000000));
}

static const struct method_row formatter_methods[] = {
    {"static DateTimeFormatter ISO_LOCAL_DATE", BOTH, iso_formatter, {ISO_LOCAL_DATE}},
    {"static DateTimeFormatter ISO_DATE", BOTH, iso_formatter, {ISO_LOCAL_DATE}},
    {"static DateTimeFormatter ISO_LOCAL_TIME", BOTH, iso_formatter, {ISO_LOCAL_TIME}},
    {"static DateTimeFormatter ISO_LOCAL_DATE_TIME", BOTH, iso_formatter, {ISO_LOCAL_DATE_TIME}},
    {"static DateTimeFormatter ISO_INSTANT", BOTH, iso_formatter, {ISO_INSTANT}},
    {"static DateTimeFormatter ISO_OFFSET_DATE_TIME", BOTH, iso_formatter, {ISO_OFFSET_DATE_TIME}},
    {"static DateTimeFormatter ISO_ZONED_DATE_TIME", BOTH, iso_formatter, {ISO_ZONED_DATE_TIME}},
    {"static DateTimeFormatter ISO_DATE_TIME", BOTH, iso_formatter, {ISO_OFFSET_DATE_TIME}},
    {"static DateTimeFormatter ofPattern(String)", BOTH, formatter_of_pattern},
    {"static DateTimeFormatter ofPattern(String, Locale)", BOTH, formatter_of_pattern},
    {"String format(Temporal)", BOTH, formatter_format},
};

static const struct method_row simple_format_methods[] = {
    {"new SimpleDateFormat()", BOTH, simple_format_new},
    {"new SimpleDateFormat(String)", BOTH, simple_format_new},
    {"new SimpleDateFormat(String, Locale)", BOTH, simple_format_new},
    {"String format(Date)", BOTH, simple_format_format},
    {"void setTimeZone(TimeZone)", BOTH, simple_format_set_zone},
    {"Date parse(String)", BOTH, simple_format_parse},
};

static const struct method_row date_methods[] = {
    {"new Date()", BOTH, date_new},
    {"new Date(long)", BOTH, date_new},
    {"boolean after(Date)", BOTH, is_after},
    {"boolean before(Date)", BOTH, is_before},
    {"int compareTo(Date)", BOTH, temporal_compare_to},
    {"static Date from(Instant)", BOTH, date_from},
    {"long getTime()", BOTH, get_epoch_milli},
    {"void setTime(long)", BOTH, date_set_time},
    {"Instant toInstant()", GROOVY, to_instant},
    {"String format(String)", GROOVY, date_format_pattern},
    {"String format(String, TimeZone)", GROOVY, date_format_pattern},
    {"Date clearTime()", GROOVY, date_clear_time},
    {"static Date parse(String, String)", GROOVY, date_parse_static},
    {"Date next()", GROOVY, step_day, {1}},
    {"Date previous()", GROOVY, step_day, {-1}},
};

const struct method_table methods_date[] = {
    METHOD_ROWS(DATE_TIME_FORMATTER, formatter_methods),
    METHOD_ROWS(SIMPLE_DATE_FORMAT, simple_format_methods),
    METHOD_ROWS(DATE, date_methods),
    {0},
};
