/* SPDX-License-Identifier: Apache-2.0 */
/* Date formats: compilation of names and patterns, parsing and printing by patterns; see date.h. */
#include "mapping/date.h"

#include "base/calendar.h"
#include "base/digits.h"
#include "base/check.h"
#include "mapping/date_internal.h"

#include <stdlib.h>

static const char known_letters[] = "yuMdDHhkKmsSaEZXxz";
static const char printed_letters[] = "yuMdDHhkKmsSaEZXxzYwe"; /* in patterns of named formats */

/* "MMM" is a name of three letters, "MMMM" the full name. */
enum { SHORT_NAME = CALENDAR_SHORT_NAME };

const struct date_format *date_format_default(enum date_rules rules)
{
    static const struct date_alternative first[] = {{.kind = DATE_ISO, .strict = true}, {.kind = DATE_EPOCH_MILLIS}};
    static const struct date_format format = {
        {DATE_FORMAT_DEFAULT, sizeof DATE_FORMAT_DEFAULT - 1}, DATE_RULES_FIRST, first, 2};
    static const struct date_alternative exact[] = {
        {.kind = DATE_ISO, .strict = true, .grammar = &date__strict_date_optional_time, .exact = true},
        {.kind = DATE_EPOCH_MILLIS, .exact = true}};
    static const struct date_format exact_format = {
        {DATE_FORMAT_DEFAULT, sizeof DATE_FORMAT_DEFAULT - 1}, DATE_RULES_7_10, exact, 2};
    return rules == DATE_RULES_FIRST ? &format : &exact_format;
}

enum date_rules date_format_rules(const struct date_format *format)
{
    return format->rules;
}

struct slice date_format_text(const struct date_format *format)
{
    return format->text;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Compiles a pattern of `letters`. Returns: 0; DATE_INVALID: an unknown letter, or a malformed pattern. */
static int compile_pattern(struct arena *arena, struct slice pattern, const char *letters,
                           struct date_alternative *ret_alternative)
{
    struct date_element *elements = arena_alloc(arena, (pattern.len + 1) * sizeof *elements);
    size_t count = 0;
    bool quoted = false;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        if (c == '\'') {
            if (i + 1 < pattern.len && pattern.data[i + 1] == '\'')
                elements[count++] = (struct date_element){.literal = pattern.data[i++]};
            else
                quoted = !quoted;
        } else if (quoted || !is_letter(c)) {
            if (!quoted && (c == '[' || c == ']' || c == '{' || c == '}' || c == '#'))
                return DATE_INVALID;
            elements[count++] = (struct date_element){.literal = c};
        } else if (strchr(letters, c) == NULL) {
            return DATE_INVALID;
        } else if (count > 0 && elements[count - 1].letter == c) {
            elements[count - 1].count++;
        } else {
            elements[count++] = (struct date_element){.letter = c, .count = 1};
        }
    }
    if (count == 0 || quoted)
        return DATE_INVALID;
    *ret_alternative = (struct date_alternative){.kind = DATE_PATTERN, .elements = elements, .element_count = count};
    return 0;
}

/*
 * Compiles a named format for the rules of `rules`.
 * Returns: 0; DATE_INVALID: `text` is not a name.
 */
static int compile_name(struct arena *arena, struct slice text, enum date_rules rules,
                        struct date_alternative *ret_alternative)
{
    bool first = rules == DATE_RULES_FIRST;
    bool strict = slice_starts_with(text, SLICE_LIT("strict_"));
    struct slice name = strict ? slice_from_offset(text, 7) : text;
    if (slice_is(name, "dateOptionalTime"))
        name = SLICE_LIT("date_optional_time");
    const struct date_named *known = date__name(name);
    if (known == NULL || (first && !known->first))
        return DATE_INVALID;
    const struct date_grammar *grammar = strict ? &known->strict : &known->grammar;
    if (!first && grammar->elements == NULL)
        return DATE_INVALID;
    *ret_alternative = (struct date_alternative){.kind = DATE_ISO};
    if (known->pattern == NULL)
        ret_alternative->strict = strict || slice_is(name, "iso8601");
    else if (compile_pattern(arena, slice_from(known->pattern), printed_letters, ret_alternative) != 0)
        return DATE_INVALID;
    ret_alternative->named = true;
    ret_alternative->grammar = first ? NULL : grammar;
    return 0;
}

/* Compiles one alternative of a format. Returns: 0; DATE_INVALID. */
static int compile_alternative(struct arena *arena, struct slice text, enum date_rules rules,
                               struct date_alternative *ret_alternative)
{
    int r = 0;
    if (slice_is(text, "epoch_millis") || slice_is(text, "epoch_second")) {
        enum date_kind kind = slice_is(text, "epoch_millis") ? DATE_EPOCH_MILLIS : DATE_EPOCH_SECOND;
        *ret_alternative = (struct date_alternative){.kind = kind};
    } else if (compile_name(arena, text, rules, ret_alternative) != 0) {
        /* In 6.x and 7.x a leading "8" selected the letters of java.time. */
        if (text.len > 1 && text.data[0] == '8' && is_letter(text.data[1]))
            text = slice_from_offset(text, 1);
        r = compile_pattern(arena, text, known_letters, ret_alternative);
    }
    ret_alternative->exact = rules == DATE_RULES_7_10;
    return r;
}

int date_format_parse(struct arena *arena, struct slice pattern, enum date_rules rules,
                      const struct date_format **ret_format)
{
    if (slice_is(pattern, DATE_FORMAT_DEFAULT)) {
        *ret_format = date_format_default(rules);
        return 0;
    }
    if (pattern.len == 0 || pattern.len > DATE_FORMAT_BYTES_MAX)
        return DATE_INVALID;
    struct date_format *format = arena_alloc(arena, sizeof *format);
    struct date_alternative *alternatives = arena_alloc(arena, DATE_ALTERNATIVES_MAX * sizeof *alternatives);
    *format = (struct date_format){arena_copy(arena, pattern), rules, alternatives, 0};
    for (struct slice rest = format->text; rest.len > 0;) {
        const char *mark = memmem(rest.data, rest.len, "||", 2);
        size_t len = mark == NULL ? rest.len : (size_t)(mark - rest.data);
        if (format->count == DATE_ALTERNATIVES_MAX ||
            compile_alternative(arena, slice_make(rest.data, len), rules, &alternatives[format->count++]) != 0)
            return DATE_INVALID;
        rest = slice_from_offset(rest, mark == NULL ? len : len + 2);
    }
    *ret_format = format;
    return 0;
}

/* Parses one of `count` names, in full or of three letters. Returns: its position, or -1. */
static int take_name(struct slice *text, const char *const *list, int count, bool whole)
{
    for (int i = 0; i < count; i++) {
        struct slice name = slice_make(list[i], whole ? strlen(list[i]) : SHORT_NAME);
        if (slice_starts_with(*text, name)) {
            *text = slice_from_offset(*text, name.len);
            return i;
        }
    }
    return -1;
}

static bool take_month(struct slice *text, int count, struct date_fields *fields)
{
    int month = take_name(text, calendar_months, 12, count > SHORT_NAME);
    fields->month = month + 1;
    return month >= 0;
}

/* Parses a year of `count` letters; two digits mean 2000 to 2099, as in java.time. */
static bool take_pattern_year(struct slice *text, int count, struct date_fields *fields)
{
    int64_t year;
    if (!digits_take(text, count == 2 ? 2 : count, count == 2 ? 2 : count < 4 ? 9 : count, &year))
        return false;
    fields->year = count == 2 ? 2000 + year : year;
    return true;
}

/* Parses a fraction of `count` digits; those beyond milliseconds are ignored. */
static bool take_millis(struct slice *text, int count, int *ret_millis)
{
    int64_t number;
    struct slice digits = *text;
    if (!digits_take(&digits, count, count, &number) || !digits_take_fraction(text, count, 3, &number))
        return false;
    *ret_millis = (int)number;
    return true;
}

static bool take_zone_name(struct slice *text, struct date_fields *fields)
{
    static const struct slice utc[] = {{"UTC", 3}, {"GMT", 3}};
    for (size_t i = 0; i < 2; i++) {
        if (slice_starts_with(*text, utc[i])) {
            *text = slice_from_offset(*text, utc[i].len);
            fields->zone_seconds = 0;
            return true;
        }
    }
    return date__take_zone(text, &fields->zone_seconds);
}

/* Parses one element of a pattern. Returns: false if the text does not match it. */
static bool take_element(struct slice *text, const struct date_element *element, struct date_fields *fields)
{
    int *number = NULL;
    switch (element->letter) {
    case 0:
        if (text->len == 0 || text->data[0] != element->literal)
            return false;
        *text = slice_from_offset(*text, 1);
        return true;
    case 'y':
    case 'u': return take_pattern_year(text, element->count, fields);
    case 'M':
        if (element->count >= SHORT_NAME)
            return take_month(text, element->count, fields);
        number = &fields->month;
        break;
    case 'E': return take_name(text, calendar_weekdays, 7, element->count > SHORT_NAME) >= 0;
    case 'a':
        if (text->len < 2 || (text->data[1] | 0x20) != 'm' ||
            ((text->data[0] | 0x20) != 'a' && (text->data[0] | 0x20) != 'p'))
            return false;
        fields->half = (text->data[0] | 0x20) == 'p';
        *text = slice_from_offset(*text, 2);
        return true;
    case 'S': return take_millis(text, element->count, &fields->millis);
    case 'Z':
    case 'X':
    case 'x': return date__take_zone(text, &fields->zone_seconds);
    case 'z': return take_zone_name(text, fields);
    case 'd': number = &fields->day; break;
    case 'D': number = &fields->day_of_year; break;
    case 'm': number = &fields->minute; break;
    case 's': number = &fields->second; break;
    default: /* H, h, k, K */ number = &fields->hour;
    }
    int64_t value;
    int digits = element->letter == 'D' ? 3 : 2;
    if (!digits_take(text, element->count < digits ? element->count : digits, digits, &value))
        return false;
    *number = (int)value;
    return true;
}

/*
 * Returns: whether the text has more digits than the `count` letters (four or more) of a year, and
 *          no other field follows it directly. Such a year is refused, not split.
 */
static bool year_is_too_long(const struct date_alternative *alternative, size_t element, struct slice text)
{
    const struct date_element *year = &alternative->elements[element];
    bool alone = element + 1 == alternative->element_count || alternative->elements[element + 1].letter == 0;
    size_t digits = 0;
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    return (year->letter == 'y' || year->letter == 'u') && year->count >= 4 && alone && digits > (size_t)year->count;
}

int date__parse_pattern(const struct date_alternative *alternative, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop)
{
    size_t whole = text.len;
    for (size_t i = 0; i < alternative->element_count; i++) {
        *ret_stop = whole - text.len;
        if (year_is_too_long(alternative, i, text) || !take_element(&text, &alternative->elements[i], ret_fields))
            return DATE_INVALID;
    }
    *ret_stop = whole - text.len;
    return text.len == 0 ? 0 : DATE_INVALID;
}

/*
 * Returns: whether an offset has the form of its letters in java.time: Z +0100; XXX +01:00; XX +0100;
 *          X +01 or +0100; x as X without "Z"; z a name or +01:00.
 */
static bool is_strict_offset(const struct date_element *element, struct slice offset)
{
    char letter = element->letter;
    bool is_signed = offset.data[0] == '+' || offset.data[0] == '-';
    bool colon = offset.len == 6;
    if (!date__is_valid_offset(offset))
        return false;
    if (!is_signed)
        return letter == 'z' || letter == 'X';
    if (letter == 'z')
        return colon;
    if (letter == 'Z')
        return element->count > 3 || offset.len == 5;
    return element->count == 3 ? colon : element->count == 2 ? offset.len == 5 : !colon;
}

/* Returns: whether the text of one element, which gave a field, is as 7.10 wants it. */
static bool is_strict_element(const struct date_element *element, struct slice text, const struct date_fields *fields)
{
    switch (element->letter) {
    case 'y': return fields->year != 0;
    case 'a': return text.data[1] == 'M' && (text.data[0] == 'A' || text.data[0] == 'P');
    case 'h': return fields->hour >= 1 && fields->hour <= 12;
    case 'K': return fields->hour < 12;
    case 'k': return fields->hour >= 1;
    case 'Z':
    case 'X':
    case 'x':
    case 'z': return is_strict_offset(element, text);
    default: return true;
    }
}

bool date__is_strict_pattern(const struct date_alternative *alternative, struct slice text, size_t *ret_stop)
{
    struct date_fields fields = {0};
    size_t whole = text.len;
    for (size_t i = 0; i < alternative->element_count; i++) {
        struct slice rest = text;
        const struct date_element *element = &alternative->elements[i];
        if (!take_element(&rest, element, &fields) ||
            !is_strict_element(element, slice_make(text.data, text.len - rest.len), &fields)) {
            *ret_stop = strchr("yhKk", element->letter) != NULL ? whole : whole - text.len;
            return false;
        }
        text = rest;
    }
    return true;
}

static void print_padded(struct buf *buf, int64_t number, int width)
{
    buf_printf(buf, "%0*lld", width, (long long)number);
}

static int day_of_year(const struct date_parts *parts)
{
    int day = parts->day;
    for (int month = 1; month < parts->month; month++)
        day += calendar_month_days(parts->year, month);
    return day;
}

/* Sets year, week (from 1) and day (1 to 7) in the calendar of weeks. */
static void split_week(int64_t millis, int64_t *ret_year, int *ret_week, int *ret_day)
{
    struct date_parts thursday;
    *ret_day = date_weekday(millis);
    date_split(millis + (4 - *ret_day) * INT64_C(86400000), &thursday);
    *ret_year = thursday.year;
    *ret_week = (day_of_year(&thursday) - 1) / 7 + 1;
}

static void print_week_element(struct buf *buf, const struct date_element *element, int64_t millis)
{
    int64_t year;
    int week, day;
    split_week(millis, &year, &week, &day);
    print_padded(buf, element->letter == 'Y' ? year : element->letter == 'w' ? week : day, element->count);
}

/* Appends the offset of a zone, as java.time's letters X, x and Z do; z is as XXX. */
static void print_offset(struct buf *buf, const struct date_element *element, int32_t seconds)
{
    int minutes = abs(seconds) / 60, width = element->count;
    bool colon = element->letter == 'z' || (element->letter == 'Z' ? width == 5 : width == 3 || width == 5);
    bool short_form = width == 1 && (element->letter == 'X' || element->letter == 'x');
    if (seconds == 0 && (element->letter == 'X' || (element->letter == 'Z' && width == 5))) {
        buf_byte(buf, 'Z');
        return;
    }
    buf_printf(buf, "%c%02d", seconds < 0 ? '-' : '+', minutes / 60);
    if (!short_form || minutes % 60 != 0)
        buf_printf(buf, "%s%02d", colon ? ":" : "", minutes % 60);
}

static void print_element(struct buf *buf, const struct date_element *element, const struct date_parts *p,
                          int64_t millis, int32_t offset)
{
    int width = element->count;
    switch (element->letter) {
    case 0: buf_byte(buf, element->literal); break;
    case 'y':
    case 'u': print_padded(buf, width == 2 ? p->year % 100 : p->year, width); break;
    case 'M':
        if (width >= SHORT_NAME)
            buf_append(buf, calendar_months[p->month - 1],
                       width > SHORT_NAME ? strlen(calendar_months[p->month - 1]) : SHORT_NAME);
        else
            print_padded(buf, p->month, width);
        break;
    case 'E': {
        const char *name = calendar_weekdays[date_weekday(millis) - 1];
        buf_append(buf, name, width > SHORT_NAME ? strlen(name) : SHORT_NAME);
        break;
    }
    case 'a': buf_slice(buf, p->hour >= 12 ? SLICE_LIT("PM") : SLICE_LIT("AM")); break;
    case 'S':
        for (int digit = 100, i = 0; i < width; i++, digit /= 10)
            print_padded(buf, digit == 0 ? 0 : p->millis / digit % 10, 1);
        break;
    case 'Z':
    case 'x':
    case 'X': print_offset(buf, element, offset); break;
    case 'z':
        if (offset == 0)
            buf_lit(buf, "UTC");
        else
            print_offset(buf, element, offset);
        break;
    case 'Y':
    case 'w':
    case 'e': print_week_element(buf, element, millis); break;
    case 'd': print_padded(buf, p->day, width); break;
    case 'D': print_padded(buf, day_of_year(p), width); break;
    case 'H': print_padded(buf, p->hour, width); break;
    case 'h': print_padded(buf, p->hour % 12 == 0 ? 12 : p->hour % 12, width); break;
    case 'k': print_padded(buf, p->hour == 0 ? 24 : p->hour, width); break;
    case 'K': print_padded(buf, p->hour % 12, width); break;
    case 'm': print_padded(buf, p->minute, width); break;
    default: /* s */ print_padded(buf, p->second, width);
    }
}

void date__print_pattern(struct buf *buf, const struct date_alternative *alternative, int64_t local, int32_t offset)
{
    struct date_parts parts;
    date_split(local, &parts);
    for (size_t i = 0; i < alternative->element_count; i++)
        print_element(buf, &alternative->elements[i], &parts, local, offset);
}
