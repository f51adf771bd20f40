/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timestamps as text.
 */
#include "api/request/instant.h"

#include <inttypes.h>

#include "base/calendar.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digits.h"

enum { FRACTION_MAX = 9, MICROS = 6 /* digits */ };

static bool take_number(struct slice *text, int digits, int64_t *ret_value)
{
    return digits_take(text, digits, digits, ret_value);
}

static bool take_zone(struct slice *text, int64_t *ret_minutes)
{
    int64_t hours, minutes;
    *ret_minutes = 0;
    if (text->len == 0 || slice_take_byte(text, 'Z') || slice_take_byte(text, 'z'))
        return true;
    int64_t sign = text->data[0] == '-' ? -1 : 1;
    if (!slice_take_byte(text, '+') && !slice_take_byte(text, '-'))
        return false;
    if (!take_number(text, 2, &hours) || hours > 18)
        return false;
    slice_take_byte(text, ':');
    if (!take_number(text, 2, &minutes) || minutes > 59)
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

/* "10:00", "10:00:00" or "10:00:00.123" and a zone. */
static bool take_time(struct slice *text, int64_t *ret_micros)
{
    int64_t hour, minute, second = 0, micros = 0, zone;
    if (!take_number(text, 2, &hour) || hour > 23 || !slice_take_byte(text, ':') || !take_number(text, 2, &minute) ||
        minute > 59)
        return false;
    if (slice_take_byte(text, ':') && (!take_number(text, 2, &second) || second > 59))
        return false;
    if (slice_take_byte(text, '.') && !digits_take_fraction(text, FRACTION_MAX, MICROS, &micros))
        return false;
    if (!take_zone(text, &zone))
        return false;
    *ret_micros = ((hour * 60 + minute - zone) * 60 + second) * (int64_t)TL_SECOND + micros;
    return true;
}

int instant_parse(struct slice text, tl_ts *ret_ts)
{
    int64_t year, month, day, micros = 0;
    if (!take_number(&text, 4, &year) || !slice_take_byte(&text, '-') || !take_number(&text, 2, &month) ||
        !slice_take_byte(&text, '-') || !take_number(&text, 2, &day))
        return INSTANT_INVALID;
    if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > calendar_month_days(year, (int)month))
        return INSTANT_INVALID;
    if (text.len > 0 && (!(slice_take_byte(&text, 'T') || slice_take_byte(&text, ' ')) || !take_time(&text, &micros)))
        return INSTANT_INVALID;
    int64_t at = calendar_days(year, (int)month, (int)day) * 86400 * (int64_t)TL_SECOND + micros;
    if (text.len > 0 || at <= 0)
        return INSTANT_INVALID;
    *ret_ts = (tl_ts)at;
    return 0;
}

struct slice instant_text(struct arena *arena, tl_ts ts, int fraction)
{
    REQUIRE(fraction == 0 || fraction == 3 || fraction == 6);
    int64_t seconds = (int64_t)(ts / TL_SECOND);
    struct calendar_date date = calendar_date(seconds / 86400);
    int64_t rest = seconds % 86400;
    struct slice head = arena_printf(arena, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d", date.year, date.month, date.day,
                                     (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    unsigned micros = (unsigned)(ts % TL_SECOND);
    if (fraction == 0)
        return arena_printf(arena, "%sZ", head.data);
    if (fraction == 3)
        return arena_printf(arena, "%s.%03uZ", head.data, micros / 1000);
    return arena_printf(arena, "%s.%06uZ", head.data, micros);
}

struct slice instant_end_text(struct arena *arena, tl_ts ts, tl_ts end)
{
    return instant_text(arena, clock_wall_us() + (end > ts ? end - ts : 0), 3);
}
