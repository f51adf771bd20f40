/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of ISO texts to temporals, and of zone names. */
#include "script/library/method_time.h"

#include "base/digits.h"

bool scan_char(struct scan *scan, char c)
{
    if (scan->at < scan->text.len && scan->text.data[scan->at] == c) {
        scan->at++;
        return true;
    }
    return false;
}

int64_t scan_digits(struct scan *scan, unsigned min, unsigned max)
{
    int64_t value = 0;
    unsigned count = 0;
    while (count < max && scan->at < scan->text.len && scan->text.data[scan->at] >= '0' &&
           scan->text.data[scan->at] <= '9') {
        value = (int64_t)((uint64_t)value * 10 + (uint64_t)(scan->text.data[scan->at++] - '0'));
        count++;
    }
    if (count < min) {
        scan->at -= count;
        scan->failed = true;
    }
    return value;
}

void scan_expect(struct scan *scan, char c)
{
    if (!scan->failed && !scan_char(scan, c))
        scan->failed = true;
}

static void scan_date(struct scan *scan, struct civil *civil)
{
    bool negative = scan_char(scan, '-'), plus = !negative && scan_char(scan, '+');
    civil->year = scan_digits(scan, 4, plus || negative ? 9 : 4);
    civil->year = negative ? -civil->year : civil->year;
    scan_expect(scan, '-');
    if (!scan->failed)
        civil->month = (int)scan_digits(scan, 2, 2);
    scan_expect(scan, '-');
    if (!scan->failed)
        civil->day = (int)scan_digits(scan, 2, 2);
}

static void scan_time(struct scan *scan, struct civil *civil)
{
    civil->hour = (int)scan_digits(scan, 2, 2);
    scan_expect(scan, ':');
    if (!scan->failed)
        civil->minute = (int)scan_digits(scan, 2, 2);
    if (scan->failed || !scan_char(scan, ':'))
        return;
    civil->second = (int)scan_digits(scan, 2, 2);
    if (scan->failed || !scan_char(scan, '.'))
        return;
    size_t begin = scan->at;
    int64_t nanos = scan_digits(scan, 0, 9);
    for (size_t digits = scan->at - begin; digits < 9; digits++)
        nanos *= 10;
    civil->nano = (int32_t)nanos;
}

void scan_offset(struct scan *scan, int32_t *ret_offset)
{
    *ret_offset = 0;
    if (scan_char(scan, 'Z') || scan_char(scan, 'z'))
        return;
    bool negative = scan_char(scan, '-');
    if (!negative && !scan_char(scan, '+')) {
        scan->failed = true;
        return;
    }
    int64_t hours = scan_digits(scan, 1, 2), minutes = 0, seconds = 0;
    scan_char(scan, ':');
    if (scan->at < scan->text.len && scan->text.data[scan->at] >= '0' && scan->text.data[scan->at] <= '9')
        minutes = scan_digits(scan, 2, 2);
    if (scan_char(scan, ':'))
        seconds = scan_digits(scan, 2, 2);
    if (scan->short_hours && (minutes > 59 || seconds > 59))
        scan->failed = true;
    int64_t total = hours * 3600 + minutes * 60 + seconds;
    *ret_offset = (int32_t)(negative ? -total : total);
}

void scan_offset_as(struct scan *scan, const struct offset_form *form, int32_t *ret_offset)
{
    struct digits_offset_form taken = {.colons = form->colon ? DIGITS_COLONS : DIGITS_NO_COLONS,
                                       .parts_min = form->needs_minutes ? 2 : 1,
                                       .parts_max = !form->minutes  ? 1
                                                    : form->seconds ? 3
                                                                    : 2,
                                       .leaves_large = true};
    struct digits_offset offset;
    *ret_offset = 0;
    if (form->zulu && scan_char(scan, 'Z'))
        return;
    struct slice rest = slice_from_offset(scan->text, scan->at);
    bool negative = slice_take_byte(&rest, '-');
    if (scan->failed || (!negative && !slice_take_byte(&rest, '+')) || !digits_take_offset(&rest, &taken, &offset)) {
        scan->failed = true;
        return;
    }
    scan->at = scan->text.len - rest.len;
    *ret_offset = digits_offset_seconds(&offset, negative);
}

bool parse_failed(struct run *run, const struct scan *scan)
{
    if (!scan->failed)
        return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION,
                         "Text '%.*s' could not be parsed, unparsed text found at index %zu", SLICE_ARG(scan->text),
                         scan->at);
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text '%.*s' could not be parsed at index %zu",
                     SLICE_ARG(scan->text), scan->at);
}

bool check_civil(struct run *run, struct slice text, const struct civil *civil)
{
    bool ok = check_date(run, civil->year, civil->month, civil->day) &&
              check_time(run, civil->hour, civil->minute, civil->second, civil->nano);
    if (ok)
        return true;
    struct slice why = text_utf8(run, run->thrown->message);
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION, "Text '%.*s' could not be parsed: %.*s", SLICE_ARG(text),
                     SLICE_ARG(why));
}

/* java.text knows offsets of less than a day, java.time those up to 18 hours; an Instant has none. */
bool check_offset(struct run *run, struct slice text, enum class_id id, int32_t offset)
{
    int32_t most = id == CLASS_DATE ? 86400 - 1 : 18 * 3600;
    if (run->old_library || (offset >= -most && offset <= most))
        return true;
    if (id == CLASS_INSTANT)
        return parse_failed(run, &(struct scan){.text = text, .failed = true});
    return run_throw(run, CLASS_DATE_TIME_PARSE_EXCEPTION,
                     "Text '%.*s' could not be parsed: Zone offset not in valid range: -18:00 to +18:00",
                     SLICE_ARG(text));
}

bool set_zone(struct run *run, struct temporal *temporal, struct slice name)
{
    struct zone zone;
    struct problem problem;
    if (zone_parse(run->zones, name, run->arena, &zone, &problem) != 0) {
        run_charge(run, problem.reason.len);
        bool rules = slice_is(problem.name, "zone_rules_exception");
        run_throw(run, rules ? CLASS_ZONE_RULES_EXCEPTION : CLASS_DATE_TIME_EXCEPTION, "%.*s",
                  SLICE_ARG(problem.reason));
        return false;
    }
    bool ruled = zone.count > 0 || zone.has_dst_rule;
    temporal->offset = ruled ? temporal->offset : zone_offset(&zone, 0);
    temporal->zone = NULL;
    if (zone.name.len > 0) {
        temporal->zone = zone_copy(&zone, run->arena);
        run_charge(run, sizeof zone + zone.name.len + 12 * zone.count);
    }
    return true;
}

bool parse_iso(struct run *run, struct value text, enum class_id id, struct value *ret)
{
    static const struct offset_form iso = {.zulu = true, .colon = true, .minutes = true, .seconds = true};
    struct civil civil = {.year = 1970, .month = 1, .day = 1};
    struct temporal *temporal = temporal_new(run, id, 0, 0);
    struct text *source = value_to_text(run, text);
    struct slice region = SLICE_NONE;
    if (source == NULL)
        return false;
    struct scan scan = {.text = text_utf8(run, source), .short_hours = !run->old_library};
    if (id != CLASS_LOCAL_TIME)
        scan_date(&scan, &civil);
    if (id != CLASS_LOCAL_TIME && id != CLASS_LOCAL_DATE)
        scan_expect(&scan, 'T');
    if (!scan.failed && id != CLASS_LOCAL_DATE)
        scan_time(&scan, &civil);
    bool zoned = id == CLASS_ZONED_DATE_TIME || id == CLASS_OFFSET_DATE_TIME || id == CLASS_INSTANT;
    if (zoned && !scan.failed && run->old_formats)
        scan_offset(&scan, &temporal->offset);
    else if (zoned && !scan.failed && !scan_char(&scan, 'z'))
        scan_offset_as(&scan, &iso, &temporal->offset);
    if (id == CLASS_ZONED_DATE_TIME && !scan.failed && scan_char(&scan, '[')) {
        size_t begin = scan.at;
        while (scan.at < scan.text.len && scan.text.data[scan.at] != ']')
            scan.at++;
        region = slice_make(scan.text.data + begin, scan.at - begin);
        scan_expect(&scan, ']');
    }
    if (scan.failed || scan.at < scan.text.len)
        return parse_failed(run, &scan);
    if (!check_civil(run, scan.text, &civil) || !check_offset(run, scan.text, id, temporal->offset))
        return false;
    temporal->seconds = civil_seconds(&civil) - (id == CLASS_INSTANT ? temporal->offset : 0);
    temporal->offset = id == CLASS_INSTANT ? 0 : temporal->offset;
    temporal->nanos = civil.nano;
    if (region.data == NULL)
        return give(ret, temporal);
    int64_t instant = temporal->seconds - temporal->offset;
    if (!set_zone(run, temporal, region))
        return false;
    temporal->offset = temporal_has_zone_rules(temporal) ? zone_offset(temporal->zone, instant) : temporal->offset;
    temporal->seconds = instant + temporal->offset;
    return give(ret, temporal);
}
