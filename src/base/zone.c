/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones; see zone.h.
 *
 * The format of a database, with sizes in bytes; all numbers are little-endian, positions count
 * from its start:
 *
 *     "TLZ1"
 *     number of names (4)
 *     length of the version (4), version
 *     for each name, in order: position of the name (4), its length (4), position of its zone (4)
 *     for each zone: first offset (4), number of transitions (4), length of the rule (4), rule,
 *         instants of transitions (8 each), offsets after them (4 each)
 *     the names
 */
#include "base/zone.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "base/check.h"
#include "base/digits.h"

#define DAY 86400
#define MAGIC "TLZ1"
#define HEAD_BYTES 12
#define ROW_BYTES 12
/* Size of a zone's part before its rule. */
#define ZONE_BYTES 12
#define OFFSET_MAX (26 * 3600)
/* Beyond all supported dates; some TZif files start with a transition before the Big Bang. */
#define TIME_MAX ((int64_t)1 << 50)
/* Consecutive transitions of a rule are less than this apart. */
#define YEAR_SECONDS ((int64_t)370 * DAY)

static uint32_t load32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void store32(struct buf *buf, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        buf_byte(buf, (char)(number >> 8 * i & 0xff));
}

static void store64(struct buf *buf, int64_t number)
{
    store32(buf, (uint32_t)(uint64_t)number);
    store32(buf, (uint32_t)((uint64_t)number >> 32));
}

/* --- The rule of a footer ----------------------------------------------------------------------------------------- */

static bool take_number(struct slice *text, int max, int *ret_number)
{
    int number = 0, digits = 0;
    while (text->len > 0 && text->data[0] >= '0' && text->data[0] <= '9' && digits++ < 4) {
        number = number * 10 + (text->data[0] - '0');
        *text = slice_from_offset(*text, 1);
    }
    *ret_number = number;
    return digits > 0 && number <= max;
}

/* Skips an abbreviation: letters, or any text in angle brackets. */
static bool take_abbreviation(struct slice *text)
{
    size_t len = 0;
    if (slice_take_byte(text, '<')) {
        size_t end = slice_find_byte(*text, '>');
        *text = slice_from_offset(*text, end < text->len ? end + 1 : end);
        return end > 0;
    }
    while (len < text->len && ((text->data[len] | 0x20) >= 'a' && (text->data[len] | 0x20) <= 'z'))
        len++;
    *text = slice_from_offset(*text, len);
    return len > 0;
}

/* Parses [+-]hh[:mm[:ss]]. */
static bool take_time(struct slice *text, int32_t *ret_seconds)
{
    int sign = slice_take_byte(text, '-') ? -1 : 1, hours, minutes = 0, seconds = 0;
    if (sign == 1)
        (void)slice_take_byte(text, '+');
    if (!take_number(text, 167, &hours) || (slice_take_byte(text, ':') && !take_number(text, 59, &minutes)) ||
        (slice_take_byte(text, ':') && !take_number(text, 59, &seconds)))
        return false;
    *ret_seconds = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool take_transition(struct slice *text, struct zone_transition *ret_transition)
{
    bool ok = true;
    *ret_transition = (struct zone_transition){.form = 'D', .second = 7200};
    if (slice_take_byte(text, 'M')) {
        ret_transition->form = 'M';
        ok = take_number(text, 12, &ret_transition->month) && slice_take_byte(text, '.') &&
             take_number(text, 5, &ret_transition->week) && slice_take_byte(text, '.') &&
             take_number(text, 6, &ret_transition->day) && ret_transition->month > 0 && ret_transition->week > 0;
    } else {
        ret_transition->form = slice_take_byte(text, 'J') ? 'J' : 'D';
        ok = take_number(text, 365, &ret_transition->day) && (ret_transition->form == 'D' || ret_transition->day > 0);
    }
    return ok && (!slice_take_byte(text, '/') || take_time(text, &ret_transition->second));
}

/* Parses "CET-1CEST,M3.5.0,M10.5.0/3". An empty rule is valid. Returns: whether it is valid. */
static bool parse_rule(struct slice text, struct zone *zone)
{
    int32_t west = 0, summer_west;
    zone->has_dst_rule = false;
    if (text.len == 0)
        return true;
    if (!take_abbreviation(&text) || !take_time(&text, &west))
        return false;
    zone->standard = -west;
    if (text.len == 0)
        return true;
    summer_west = west - 3600;
    if (!take_abbreviation(&text) || (text.len > 0 && text.data[0] != ',' && !take_time(&text, &summer_west)))
        return false;
    zone->daylight = -summer_west;
    zone->has_dst_rule = slice_take_byte(&text, ',') && take_transition(&text, &zone->begin) &&
                         slice_take_byte(&text, ',') && take_transition(&text, &zone->end) && text.len == 0;
    return zone->has_dst_rule;
}

/* Returns: the local time of a transition in a year. */
static int64_t transition_local(const struct zone_transition *transition, int64_t year)
{
    int64_t days;
    if (transition->form == 'M') {
        days = calendar_days(year, transition->month, 1);
        days += floor_mod(transition->day - 1 - calendar_weekday(days), 7) +
                7 * (transition->week - 1); /* 0 is Sunday in a rule */
        while (days >= calendar_days(year, transition->month, 1) + calendar_month_days(year, transition->month))
            days -= 7;
    } else {
        days = calendar_days(year, 1, 1) + transition->day;
        if (transition->form == 'J')
            days -= !(calendar_is_leap(year) && transition->day >= 60);
    }
    return days * DAY + transition->second;
}

/* Returns: the instant of a transition in a year: 0: to daylight saving time, 1: back. */
static int64_t rule_transition(const struct zone *zone, int64_t year, int which)
{
    return which == 0 ? transition_local(&zone->begin, year) - zone->standard
                      : transition_local(&zone->end, year) - zone->daylight;
}

/*
 * Returns: the last transition of the rule at or before an instant or, with `after`, the first
 * after it. *ret_offset, if not NULL: the offset after that transition.
 */
static int64_t rule_near(const struct zone *zone, int64_t seconds, bool after, int32_t *ret_offset)
{
    int64_t year = calendar_date(floor_div(seconds, DAY)).year, best = after ? INT64_MAX : INT64_MIN;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        for (int which = 0; which < 2; which++) {
            int64_t at = rule_transition(zone, y, which);
            if (after ? at > seconds && at < best : at <= seconds && at >= best) {
                best = at;
                if (ret_offset != NULL)
                    *ret_offset = which == 0 ? zone->daylight : zone->standard;
            }
        }
    }
    return best;
}

static int32_t rule_offset(const struct zone *zone, int64_t seconds)
{
    int32_t offset = zone->standard;
    if (zone->has_dst_rule)
        (void)rule_near(zone, seconds, false, &offset);
    return offset;
}

/* --- Instants and local times ------------------------------------------------------------------------------------- */

static int64_t time_at(const struct zone *zone, size_t i)
{
    const uint8_t *bytes = zone->times + 8 * i;
    return (int64_t)((uint64_t)load32(bytes) | (uint64_t)load32(bytes + 4) << 32);
}

static int32_t offset_at(const struct zone *zone, size_t i)
{
    return i == 0 ? zone->first : (int32_t)load32(zone->offsets + 4 * (i - 1));
}

/* Returns: the number of transitions at or before an instant. */
static size_t transitions_before(const struct zone *zone, int64_t seconds)
{
    size_t low = 0, high = zone->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time_at(zone, middle) <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct zone zone_fixed(int32_t seconds)
{
    return (struct zone){.first = seconds};
}

int32_t zone_offset(const struct zone *zone, int64_t seconds)
{
    if (zone == NULL)
        return 0;
    size_t before = transitions_before(zone, seconds);
    return before == zone->count && zone->has_dst_rule ? rule_offset(zone, seconds) : offset_at(zone, before);
}

int64_t zone_transition_after(const struct zone *zone, int64_t seconds)
{
    if (zone == NULL)
        return INT64_MAX;
    size_t before = transitions_before(zone, seconds);
    if (before < zone->count)
        return time_at(zone, before);
    return zone->has_dst_rule ? rule_near(zone, seconds, true, NULL) : INT64_MAX;
}

int64_t zone_transition_before(const struct zone *zone, int64_t seconds)
{
    if (zone == NULL)
        return INT64_MIN;
    size_t before = transitions_before(zone, seconds);
    int64_t last = before > 0 ? time_at(zone, before - 1) : INT64_MIN;
    if (before < zone->count || !zone->has_dst_rule)
        return last;
    int64_t ruled = rule_near(zone, seconds, false, NULL);
    return ruled > last ? ruled : last;
}

struct zone_instants zone_instants(const struct zone *zone, int64_t local)
{
    int32_t before = zone_offset(zone, local - DAY), after = zone_offset(zone, local + DAY);
    bool by_before = zone_offset(zone, local - before) == before, by_after = zone_offset(zone, local - after) == after;
    struct zone_instants resolved = {.count = 1, .before = before, .after = after};
    if (before != after && by_before && by_after) {
        resolved.count = 2;
        resolved.first = local - before;
        resolved.second = local - after;
    } else if (by_before || by_after) {
        resolved.first = resolved.second = local - (by_before ? before : after);
    } else {
        resolved.count = 0;
        resolved.transition = zone_transition_after(zone, local - after);
        resolved.first = resolved.second = local - before;
    }
    return resolved;
}

int64_t zone_instant(const struct zone *zone, int64_t local, int32_t preferred)
{
    struct zone_instants resolved = zone_instants(zone, local);
    return resolved.count == 2 && preferred == resolved.after ? resolved.second : resolved.first;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static int refuse_zone(struct arena *arena, struct problem *problem, const char *name, const char *reason,
                       struct slice text)
{
    problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s%.*s", reason, SLICE_ARG(text));
    problem->name = slice_from(name);
    return ZONE_REFUSED;
}

#define DATE_TIME "date_time_exception"

static int check_part(struct arena *arena, struct problem *problem, const char *part, int number, int max)
{
    if (number <= max)
        return 0;
    return refuse_zone(arena, problem, DATE_TIME, "",
                       arena_printf(arena, "Zone offset %s not in valid range: value %d is not in the range %s to %d",
                                    part, number, max == 18 ? "-18" : "0", max));
}

/* Parses "Z", "+h", "+hh", "+hh:mm", "+hhmm", "+hh:mm:ss", "+hhmmss". */
int zone_parse_offset(struct slice text, struct arena *arena, int32_t *ret_seconds, struct problem *problem)
{
    static const char *const why = "Invalid ID for ZoneOffset, non numeric characters found: ";
    *ret_seconds = 0;
    if (slice_is(text, "Z"))
        return 0;
    if (text.len == 2)
        text = arena_printf(arena, "%c0%c", text.data[0], text.data[1]);
    bool colons = text.len == 6 || text.len == 9;
    if (text.len != 3 && text.len != 5 && text.len != 7 && !colons)
        return refuse_zone(arena, problem, DATE_TIME, "Invalid ID for ZoneOffset, invalid format: ", text);
    int parts = text.len > 6 ? 3 : text.len > 3 ? 2 : 1;
    struct digits_offset_form form = {colons ? DIGITS_COLONS : DIGITS_NO_COLONS, parts, parts};
    struct slice unsigned_text = slice_from_offset(text, 1);
    struct digits_offset offset;
    if (!digits_take_offset(&unsigned_text, &form, &offset) || unsigned_text.len > 0)
        return refuse_zone(arena, problem, DATE_TIME, why, text);
    if (text.data[0] != '+' && text.data[0] != '-')
        return refuse_zone(arena, problem, DATE_TIME,
                           "Invalid ID for ZoneOffset, plus/minus not found when expected: ", text);
    if (check_part(arena, problem, "hours", offset.hours, 18) != 0 ||
        check_part(arena, problem, "minutes", offset.minutes, 59) != 0 ||
        check_part(arena, problem, "seconds", offset.seconds, 59) != 0)
        return ZONE_REFUSED;
    if (offset.hours == 18 && (offset.minutes > 0 || offset.seconds > 0))
        return refuse_zone(arena, problem, DATE_TIME, "Zone offset not in valid range: -18:00 to +18:00",
                           SLICE_LIT(""));
    *ret_seconds = digits_offset_seconds(&offset, text.data[0] == '-');
    return 0;
}

void zone_write_offset(struct buf *buf, int32_t seconds)
{
    int32_t size = seconds < 0 ? -seconds : seconds;
    if (size == 0) {
        buf_byte(buf, 'Z');
        return;
    }
    buf_printf(buf, "%c%02d:%02d", seconds < 0 ? '-' : '+', size / 3600, size / 60 % 60);
    if (size % 60 != 0)
        buf_printf(buf, ":%02d", size % 60);
}

/*
 * Parses "GMT+2": a name of UTC of length `prefix`, with an offset. The zone is named "GMT+02:00".
 */
static int parse_prefixed(struct slice text, size_t prefix, struct arena *arena, struct zone *ret_zone,
                          struct problem *problem)
{
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    struct buf name = BUF_INIT(64);
    int32_t seconds;
    ret_zone->name = text;
    if (text.len == prefix)
        return 0;
    if (zone_parse_offset(slice_from_offset(text, prefix), arena, &seconds, cause) != 0) {
        (void)refuse_zone(arena, problem, DATE_TIME, "Invalid ID for offset-based ZoneId: ", text);
        problem->caused_by = cause;
        return ZONE_REFUSED;
    }
    ret_zone->first = seconds;
    buf_append(&name, text.data, prefix);
    if (seconds != 0)
        zone_write_offset(&name, seconds);
    ret_zone->name = arena_copy(arena, buf_as_slice(&name));
    buf_deinit(&name);
    return 0;
}

static bool is_region(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || strchr("~/._+-", c) != NULL)))
            return false;
    }
    return text.len >= 2;
}

/* Returns: the length of "UTC", "GMT" or "UT", alone or before an offset; 0: none of them. */
static size_t utc_prefix(struct slice text)
{
    static const char *const names[] = {"UTC", "GMT", "UT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        if (slice_starts_with(text, slice_from(names[i])) &&
            (text.len == len || text.data[len] == '+' || text.data[len] == '-'))
            return len;
    }
    return 0;
}

const struct zone *zone_copy(const struct zone *zone, struct arena *arena)
{
    struct zone *copy = arena_alloc(arena, sizeof *copy);
    *copy = *zone;
    copy->name = arena_copy(arena, zone->name);
    copy->times = (const uint8_t *)arena_copy(arena, slice_make(zone->times, 8 * zone->count)).data;
    copy->offsets = (const uint8_t *)arena_copy(arena, slice_make(zone->offsets, 4 * zone->count)).data;
    return copy;
}

static bool find_zone(struct slice database, struct slice name, struct zone *ret_zone);

int zone_parse(struct slice database, struct slice text, struct arena *arena, struct zone *ret_zone,
               struct problem *ret_problem)
{
    *ret_zone = zone_fixed(0);
    if (text.len <= 1 || text.data[0] == '+' || text.data[0] == '-')
        return zone_parse_offset(text, arena, &ret_zone->first, ret_problem);
    size_t prefix = utc_prefix(text);
    if (prefix > 0)
        return parse_prefixed(text, prefix, arena, ret_zone, ret_problem);
    if (!is_region(text))
        return refuse_zone(arena, ret_problem, DATE_TIME, "Invalid ID for region-based ZoneId, invalid format: ", text);
    if (find_zone(database, text, ret_zone))
        return 0;
    return refuse_zone(arena, ret_problem, "zone_rules_exception", "Unknown time-zone ID: ", text);
}

/* --- Reading a database ------------------------------------------------------------------------------------------- */

/* Returns: `len` bytes at `offset`; NULL: beyond the end of the database. */
static const uint8_t *bytes_at(struct slice database, size_t offset, size_t len)
{
    return offset <= database.len && len <= database.len - offset ? (const uint8_t *)database.data + offset : NULL;
}

/* Returns: the table of names; NULL: not a database. */
static const uint8_t *rows_of(struct slice database, size_t *ret_count)
{
    const uint8_t *head = bytes_at(database, 0, HEAD_BYTES);
    *ret_count = 0;
    if (head == NULL || memcmp(head, MAGIC, 4) != 0)
        return NULL;
    size_t count = load32(head + 4), version = load32(head + 8);
    const uint8_t *rows = count <= ZONES_MAX ? bytes_at(database, HEAD_BYTES + version, count * ROW_BYTES) : NULL;
    *ret_count = rows == NULL ? 0 : count;
    return rows;
}

static struct slice name_of(struct slice database, const uint8_t *row)
{
    const uint8_t *name = bytes_at(database, load32(row), load32(row + 4));
    return name == NULL ? SLICE_NONE : slice_make(name, load32(row + 4));
}

static bool read_zone(struct slice database, size_t offset, struct zone *ret_zone)
{
    const uint8_t *head = bytes_at(database, offset, ZONE_BYTES);
    if (head == NULL)
        return false;
    struct zone zone = {.first = (int32_t)load32(head), .count = load32(head + 4)};
    size_t rule = load32(head + 8);
    if (zone.count > ZONE_FILE_BYTES_MAX || rule > 256 ||
        bytes_at(database, offset, ZONE_BYTES + rule + 12 * zone.count) == NULL)
        return false;
    if (!parse_rule(slice_make(head + ZONE_BYTES, rule), &zone))
        return false;
    zone.times = head + ZONE_BYTES + rule;
    zone.offsets = zone.times + 8 * zone.count;
    *ret_zone = zone;
    return true;
}

static bool find_zone(struct slice database, struct slice name, struct zone *ret_zone)
{
    size_t count, low = 0;
    const uint8_t *rows = rows_of(database, &count);
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        const uint8_t *row = rows + middle * ROW_BYTES;
        struct slice found = name_of(database, row);
        int order = slice_compare(found, name);
        if (order == 0) {
            bool ok = read_zone(database, load32(row + 8), ret_zone);
            ret_zone->name = found;
            return ok;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool zones_check(struct slice database)
{
    size_t count;
    const uint8_t *rows = rows_of(database, &count);
    struct slice before = SLICE_NONE;
    for (size_t i = 0; i < count; i++) {
        struct slice name = name_of(database, rows + i * ROW_BYTES);
        struct zone zone;
        if (name.len == 0 || (i > 0 && slice_compare(before, name) >= 0) ||
            !read_zone(database, load32(rows + i * ROW_BYTES + 8), &zone))
            return false;
        for (size_t k = 0; k < zone.count; k++) {
            int32_t offset = offset_at(&zone, k + 1);
            if ((k > 0 && time_at(&zone, k - 1) >= time_at(&zone, k)) || time_at(&zone, k) < -TIME_MAX ||
                time_at(&zone, k) > TIME_MAX || offset > OFFSET_MAX || offset < -OFFSET_MAX)
                return false;
        }
        before = name;
    }
    return rows != NULL;
}

struct slice zones_version(struct slice database)
{
    size_t count;
    if (rows_of(database, &count) == NULL)
        return SLICE_LIT("");
    return slice_make(database.data + HEAD_BYTES, load32((const uint8_t *)database.data + 8));
}

size_t zones_count(struct slice database)
{
    size_t count;
    (void)rows_of(database, &count);
    return count;
}

/* --- Compiling a database ----------------------------------------------------------------------------------------- */

/* The parts of a TZif file. */
struct tzif {
    size_t times, types;               /* counts */
    const uint8_t *time, *type, *info; /* elements of 8 bytes, 1 byte (index into info), 6 bytes */
    struct slice rule;
};

static uint32_t big32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

#define TZIF_HEAD_BYTES 44

/* Reads the six counts of a header, and removes it. Returns: false: not a valid header. */
static bool take_header(struct slice *text, uint32_t ret_counts[static 6])
{
    if (text->len < TZIF_HEAD_BYTES || memcmp(text->data, "TZif", 4) != 0)
        return false;
    for (int i = 0; i < 6; i++)
        ret_counts[i] = big32((const uint8_t *)text->data + 20 + 4 * i);
    for (int i = 0; i < 6; i++)
        if (ret_counts[i] > ZONE_FILE_BYTES_MAX)
            return false;
    *text = slice_from_offset(*text, TZIF_HEAD_BYTES);
    return true;
}

static size_t block_bytes(const uint32_t c[static 6], size_t time_bytes)
{
    return c[3] * time_bytes + c[3] + c[4] * 6 + c[5] + c[2] * (time_bytes + 4) + c[1] + c[0];
}

/*
 * Reads a file of version 2 or later; skips its first block, of 32-bit times.
 * Returns: whether it is valid.
 */
static bool read_tzif(struct slice text, struct tzif *ret_file)
{
    uint32_t c[6]; /* isut, isstd, leap, time, type, char */
    bool old = text.len < 5 || text.data[4] < '2';
    if (text.len > ZONE_FILE_BYTES_MAX || old || !take_header(&text, c) || text.len < block_bytes(c, 4))
        return false;
    text = slice_from_offset(text, block_bytes(c, 4));
    if (!take_header(&text, c) || text.len < block_bytes(c, 8) || c[4] == 0 || c[2] != 0)
        return false;
    const uint8_t *data = (const uint8_t *)text.data;
    *ret_file = (struct tzif){
        .times = c[3], .types = c[4], .time = data, .type = data + c[3] * 8, .info = data + c[3] * 8 + c[3]};
    for (size_t i = 0; i < ret_file->times; i++)
        if (ret_file->type[i] >= ret_file->types)
            return false;
    text = slice_from_offset(text, block_bytes(c, 8));
    if (!slice_take_byte(&text, '\n'))
        return false;
    ret_file->rule = slice_make(text.data, slice_find_byte(text, '\n'));
    return true;
}

static int32_t tzif_offset(const struct tzif *file, size_t type)
{
    return (int32_t)big32(file->info + 6 * type);
}

static int64_t tzif_time(const struct tzif *file, size_t i)
{
    return (int64_t)((uint64_t)big32(file->time + 8 * i) << 32 | big32(file->time + 8 * i + 4));
}

/*
 * Returns: whether the rule has a transition at `time`, from the offset `from` to the offset `to`.
 */
static bool rule_covers(const struct zone *rule, int64_t time, int32_t to, int32_t from)
{
    return rule->has_dst_rule && rule_offset(rule, time) == to && rule_offset(rule, time - 1) == from;
}

/*
 * Appends a zone, without transitions that keep the offset, and without final transitions that the
 * rule covers. Returns: whether the file is valid.
 */
static bool write_zone(struct buf *buf, const struct tzif *file)
{
    struct zone rule = {.first = 0};
    int64_t *times = mem_alloc((file->times + 1) * sizeof *times);
    int32_t *offsets = mem_alloc((file->times + 1) * sizeof *offsets);
    size_t count = 0;
    bool ok = parse_rule(file->rule, &rule);
    offsets[0] = tzif_offset(file, 0); /* offsets[n] precedes transition n */
    for (size_t i = 0; i < file->times && ok; i++) {
        int32_t offset = tzif_offset(file, file->type[i]);
        if (offset == offsets[count] || tzif_time(file, i) < -TIME_MAX || tzif_time(file, i) > TIME_MAX)
            continue;
        ok = offset <= OFFSET_MAX && offset >= -OFFSET_MAX && (count == 0 || tzif_time(file, i) > times[count - 1]);
        times[count++] = tzif_time(file, i);
        offsets[count] = offset;
    }
    /* the last one is covered at each step: at first by this, then by the step before */
    if (count >= 2 && rule_covers(&rule, times[count - 1], offsets[count], offsets[count - 1]))
        while (count >= 2 && times[count - 1] - times[count - 2] < YEAR_SECONDS &&
               rule_covers(&rule, times[count - 2], offsets[count - 1], offsets[count - 2]))
            count--;
    store32(buf, (uint32_t)offsets[0]);
    store32(buf, (uint32_t)count);
    store32(buf, (uint32_t)file->rule.len);
    buf_slice(buf, file->rule);
    for (size_t i = 0; i < count; i++)
        store64(buf, times[i]);
    for (size_t i = 0; i < count; i++)
        store32(buf, (uint32_t)offsets[i + 1]);
    mem_free(times);
    mem_free(offsets);
    return ok;
}

static int by_name(const void *left, const void *right)
{
    const struct zone_file *a = left, *b = right;
    return slice_compare(a->name, b->name);
}

/*
 * Returns: the start of an equal zone among the first `count`, after removing the bytes from
 * `begin` on; otherwise `begin`.
 */
static size_t share_equal_zone(struct buf *buf, size_t begin, const uint32_t *starts, const uint32_t *lengths,
                               size_t count)
{
    size_t len = buf->len - begin;
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] == len && memcmp(buf->data + starts[i], buf->data + begin, len) == 0) {
            buf_truncate(buf, begin);
            return starts[i];
        }
    }
    return begin;
}

/* Returns: the index of a file with equal bytes among the first `count`; otherwise `count`. */
static size_t find_copy(const struct zone_file *files, size_t count, struct slice bytes)
{
    size_t i = 0;
    while (i < count && !slice_equal(files[i].bytes, bytes))
        i++;
    return i;
}

void zones_write(struct buf *buf, struct slice version, struct zone_file *files, size_t count)
{
    REQUIRE(count <= ZONES_MAX);
    uint32_t *starts = mem_alloc((count + 1) * sizeof *starts), *lengths = mem_alloc((count + 1) * sizeof *lengths);
    struct buf zones = BUF_INIT(BUF_UNLIMITED);
    struct tzif file;
    size_t kept = 0;
    qsort(files, count, sizeof *files, by_name);
    for (size_t i = 0; i < count; i++) {
        size_t begin = zones.len;
        bool duplicate = kept > 0 && slice_equal(files[kept - 1].name, files[i].name);
        size_t copy = duplicate ? kept : find_copy(files, kept, files[i].bytes);
        if (copy < kept) { /* half of the names are links, and reading a zone takes longer than finding it */
            lengths[kept] = lengths[copy];
            starts[kept] = starts[copy];
            files[kept++] = files[i];
            continue;
        }
        if (duplicate || !read_tzif(files[i].bytes, &file) || !write_zone(&zones, &file)) {
            buf_truncate(&zones, begin);
            continue;
        }
        lengths[kept] = (uint32_t)(zones.len - begin);
        starts[kept] = (uint32_t)share_equal_zone(&zones, begin, starts, lengths, kept);
        files[kept++] = files[i];
    }
    size_t at = HEAD_BYTES + version.len + kept * ROW_BYTES, name_at = at + zones.len;
    buf_append(buf, MAGIC, 4);
    store32(buf, (uint32_t)kept);
    store32(buf, (uint32_t)version.len);
    buf_slice(buf, version);
    for (size_t i = 0; i < kept; i++) {
        store32(buf, (uint32_t)name_at);
        store32(buf, (uint32_t)files[i].name.len);
        store32(buf, (uint32_t)(at + starts[i]));
        name_at += files[i].name.len;
    }
    buf_slice(buf, buf_as_slice(&zones));
    for (size_t i = 0; i < kept; i++)
        buf_slice(buf, files[i].name);
    buf_deinit(&zones);
    mem_free(starts);
    mem_free(lengths);
}
