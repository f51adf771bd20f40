/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Date math: "now-1d/d", "2020-01-01||+1M/d". Operations are applied from left to right: `+` and `-`
 * add calendar units, `/` rounds to one. See date_parse_math() in date.h.
 */
#include "base/calendar.h"
#include "base/digits.h"
#include "mapping/date_internal.h"

/* The limit of milliseconds after each operation. One more operation beyond it still fits in 64 bits. */
#define MILLIS_MAX INT64_C(9152000000000000000)

/* Rounds down to a calendar unit. Returns: false for an unknown unit. */
static bool round_down(struct date_parts *parts, char unit)
{
    switch (unit) {
    case 'y': parts->month = 1; __attribute__((fallthrough));
    case 'M': parts->day = 1; __attribute__((fallthrough));
    case 'w':
    case 'd': parts->hour = 0; __attribute__((fallthrough));
    case 'h':
    case 'H': parts->minute = 0; __attribute__((fallthrough));
    case 'm': parts->second = 0; __attribute__((fallthrough));
    case 's': parts->millis = 0; return true;
    default: return false;
    }
}

/* Adds months. A day that the resulting month does not have becomes its last day. */
static int64_t add_months(int64_t millis, int64_t months)
{
    struct date_parts parts;
    date_split(millis, &parts);
    int64_t total = parts.year * 12 + parts.month - 1 + months;
    parts.year = floor_div(total, 12);
    parts.month = (int)(total - parts.year * 12) + 1;
    int days = calendar_month_days(parts.year, parts.month);
    parts.day = parts.day < days ? parts.day : days;
    return date_join(&parts);
}

/*
 * Adds calendar units. Days and longer units are added in local time of the zone, hours and shorter
 * units as elapsed time.
 * Returns: false for an unknown unit.
 */
static bool add_units(const struct zone *zone, int64_t *millis, int64_t count, char unit)
{
    static const struct {
        char unit;
        int64_t millis;
    } fixed[] = {{'w', 7 * DAY_MS}, {'d', DAY_MS}, {'h', 3600000}, {'H', 3600000}, {'m', 60000}, {'s', 1000}};
    int64_t local = date_local(zone, *millis);
    int32_t ahead = (int32_t)((local - *millis) / 1000);
    if (unit == 'y' || unit == 'M') {
        *millis = date_of_local(zone, add_months(local, unit == 'y' ? count * 12 : count), ahead);
        return true;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i].unit == unit) {
            *millis =
                i < 2 ? date_of_local(zone, local + count * fixed[i].millis, ahead) : *millis + count * fixed[i].millis;
            return true;
        }
    }
    return false;
}

/* Rounds to a calendar unit: down to its start, or `up` to its last millisecond. */
static bool round_to(const struct zone *zone, int64_t *millis, char unit, bool up)
{
    struct date_parts parts;
    int64_t local = date_local(zone, *millis);
    int32_t ahead = (int32_t)((local - *millis) / 1000);
    if (unit == 'w')
        local -= (date_weekday(local) - 1) * DAY_MS;
    date_split(local, &parts);
    if (!round_down(&parts, unit))
        return false;
    *millis = date_of_local(zone, date_join(&parts), ahead);
    if (up) {
        add_units(zone, millis, 1, unit);
        --*millis;
    }
    return true;
}

/* Applies date math such as "+1M-2d/d" to *millis. Returns: 0; DATE_INVALID. */
static int apply_math(struct slice math, bool round_up, const struct zone *zone, int64_t *millis)
{
    while (math.len > 0) {
        char operation = math.data[0];
        math = slice_from_offset(math, 1);
        if (operation != '/' && operation != '+' && operation != '-')
            return DATE_INVALID;
        int64_t count = 1;
        bool counted = digits_take(&math, 1, 6, &count);
        if (math.len == 0)
            return DATE_INVALID;
        char unit = math.data[0];
        math = slice_from_offset(math, 1);
        bool known = operation == '/' ? !counted || count == 1 : true;
        known = known && (operation == '/' ? round_to(zone, millis, unit, round_up)
                                           : add_units(zone, millis, operation == '+' ? count : -count, unit));
        if (!known || *millis > MILLIS_MAX || *millis < -MILLIS_MAX)
            return DATE_INVALID;
    }
    return 0;
}

int date_parse_math(const struct date_format *format, struct slice text, int64_t now, bool round_up,
                    const struct zone *zone, int64_t *ret_millis)
{
    int64_t millis = now;
    struct slice math;
    if (slice_starts_with(text, SLICE_LIT("now"))) {
        math = slice_from_offset(text, 3);
    } else {
        const char *mark = text.len == 0 ? NULL : memmem(text.data, text.len, "||", 2);
        if (mark == NULL)
            return date__parse(format, text, round_up, zone, ret_millis);
        size_t len = (size_t)(mark - text.data);
        math = slice_from_offset(text, len + 2);
        if (date__parse(format, slice_make(text.data, len), false, zone, &millis) != 0)
            return DATE_INVALID;
    }
    if (apply_math(math, round_up, zone, &millis) != 0)
        return DATE_INVALID;
    *ret_millis = millis;
    return 0;
}
