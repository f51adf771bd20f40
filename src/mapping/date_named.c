/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elasticsearch's named formats: their patterns for printing, and the texts that DATE_RULES_7_10
 * reads by them.
 *
 * A grammar describes these texts. It is a sequence of elements as in java.time:
 *
 *   Y M d j H m s w e   year, month, day, day of the year, hour, minute, second, week, day of the
 *                       week; then the number of digits, or the least and the most: "M1-2"
 *   P X Q E             years, too: P with "+" if it is longer than its least number of digits,
 *                       X and Q that of a week (X as Y, Q as P), E of an era (as P, not 0)
 *   F f                 a fraction of a second after ".", and without a mark; digits as above
 *   z                   "Z", an offset with a colon, or UTC by name
 *   o c                 "Z", or an offset without, or with, a colon
 *   [ ]                 optional; if its text does not match, the text before it is kept
 *   ~                   letters match in both cases from here
 *   others              themselves
 *
 * As in java.time, nothing is tried again: an element takes all digits that it can, except that a
 * year leaves those of the fields of fixed width that follow it directly.
 */
#include "mapping/date.h"

#include "base/digits.h"
#include "mapping/date_internal.h"

#define YMD "Y1-5[-M1-2[-d1-2]]"
#define STRICT_YMD "P4-10[-M2[-d2]]"
#define HM "H1-2:m1-2"
#define HMS HM ":s1-2"
#define STRICT_HMS "H2:m2:s2"
#define BASIC_HMS "H2m2s2"
#define ORDINAL "P4-10-j1-3"
#define STRICT_ORDINAL "P4-10-j3"
#define WEEK "Q4-10-Ww1-2-e1"
#define STRICT_WEEK "~Q4-10-Ww2-e1"
#define BASIC_WEEK "X1-19Ww1-2e1-19"
#define STRICT_BASIC_WEEK "X4Ww1-2e1-19"
#define COMMAS "[F1-9][,f1-9]"
#define ZONES "[z][o]"

#define STRICT_DATE_OPTIONAL_TIME STRICT_YMD "[T[H2[:m2[:s2" COMMAS "]]" ZONES "]]"

const struct date_grammar date__strict_date_optional_time = {STRICT_DATE_OPTIONAL_TIME, .iso = true};

/* Names of week years are absent: 7.10 has them, and takes no text by them. */
static const struct date_named names[] = {
    {"basic_date", "yyyyMMdd", true, {"Y1-4M1-2d1-2"}, {NULL}},
    {"basic_date_time", "yyyyMMdd'T'HHmmss.SSSXXX", true, {"Y4M2d2T" BASIC_HMS "F1-9", 'a'}, {NULL}},
    {"basic_date_time_no_millis", "yyyyMMdd'T'HHmmssXXX", true, {"Y4M2d2T" BASIC_HMS, 'a'}, {NULL}},
    {"basic_ordinal_date", "yyyyDDD", true, {"P4-19j3"}, {NULL}},
    {"basic_ordinal_date_time", "yyyyDDD'T'HHmmss.SSSXXX", false, {"E4-19j3T" BASIC_HMS "F1-9", 'a'}, {NULL}},
    {"basic_ordinal_date_time_no_millis", "yyyyDDD'T'HHmmssXXX", false, {"P4-19j3T" BASIC_HMS, 'a'}, {NULL}},
    {"basic_t_time", "'T'HHmmss.SSSXXX", false, {"T" BASIC_HMS "F1-9", 'a'}, {NULL}},
    {"basic_t_time_no_millis", "'T'HHmmssXXX", false, {"T" BASIC_HMS, 'a'}, {NULL}},
    {"basic_time", "HHmmss.SSSXXX", true, {BASIC_HMS "F1-9", 'a'}, {NULL}},
    {"basic_time_no_millis", "HHmmssXXX", true, {BASIC_HMS, 'a'}, {NULL}},
    {"basic_week_date", "YYYY'W'wwe", false, {BASIC_WEEK}, {STRICT_BASIC_WEEK}},
    {"basic_week_date_time",
     "YYYY'W'wwe'T'HHmmss.SSSXXX",
     false,
     {BASIC_WEEK "T" BASIC_HMS "F1-9", 'a'},
     {STRICT_BASIC_WEEK "T" BASIC_HMS "F1-9", 'a'}},
    {"basic_week_date_time_no_millis",
     "YYYY'W'wwe'T'HHmmssXXX",
     false,
     {BASIC_WEEK "T" BASIC_HMS, 'a'},
     {"X4Ww2e1-19T" BASIC_HMS, 'a'}},
    {"date", "yyyy-MM-dd", true, {YMD}, {"P4-10-M2-d2", .lenient = true}},
    {"date_hour", "yyyy-MM-dd'T'HH", true, {YMD "TH1-2"}, {"P4-19-M2-d2TH2", .smart = true}},
    {"date_hour_minute", "yyyy-MM-dd'T'HH:mm", true, {YMD "T" HM}, {"P4-19-M2-d2TH2:m2", .smart = true}},
    {"date_hour_minute_second",
     "yyyy-MM-dd'T'HH:mm:ss",
     true,
     {YMD "T" HMS},
     {"P4-19-M2-d2T" STRICT_HMS, .smart = true}},
    {"date_hour_minute_second_fraction",
     "yyyy-MM-dd'T'HH:mm:ss.SSS",
     true,
     {YMD "T" HMS "F1-9"},
     {STRICT_YMD "T" STRICT_HMS "F1-9"}},
    {"date_hour_minute_second_millis",
     "yyyy-MM-dd'T'HH:mm:ss.SSS",
     true,
     {YMD "T" HMS "F1-3"},
     {STRICT_YMD "T" STRICT_HMS "F1-9"}},
    {"date_optional_time",
     NULL,
     true,
     {YMD "[T[H1-2[:m1-2[:s1-2]" COMMAS ZONES "]]]"},
     {STRICT_DATE_OPTIONAL_TIME, .iso = true}},
    {"date_optional_time_nanos", NULL, false, {NULL}, {STRICT_YMD "[T" STRICT_HMS COMMAS ZONES "]"}},
    {"date_time",
     "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
     true,
     {YMD "T" HM "[:s1-2F1-9]", 'b'},
     {STRICT_YMD "T" STRICT_HMS "[F1-9]", 'a'}},
    {"date_time_no_millis",
     "yyyy-MM-dd'T'HH:mm:ssXXX",
     true,
     {YMD "T" HM "[:s1-2]", 'a', .zone_optional = true},
     {STRICT_YMD "T" STRICT_HMS, 'a'}},
    {"hour", "HH", true, {"H1-2"}, {"H2", .smart = true}},
    {"hour_minute", "HH:mm", true, {HM}, {"H2:m2", .smart = true}},
    {"hour_minute_second", "HH:mm:ss", true, {HMS}, {STRICT_HMS}},
    {"hour_minute_second_fraction", "HH:mm:ss.SSS", true, {HMS "F1-9"}, {STRICT_HMS "F1-9"}},
    {"hour_minute_second_millis", "HH:mm:ss.SSS", true, {HMS "F1-3"}, {STRICT_HMS "F1-9"}},
    {"iso8601", NULL, true, {STRICT_YMD "[T[H2[:m2[:s2" COMMAS "]]]" ZONES "]"}, {NULL}},
    {"ordinal_date", "yyyy-DDD", true, {ORDINAL}, {STRICT_ORDINAL}},
    {"ordinal_date_time",
     "yyyy-DDD'T'HH:mm:ss.SSSXXX",
     false,
     {ORDINAL "T" HM "[:s1-2F1-9]", 'a'},
     {STRICT_ORDINAL "TH2:m2[:s2F1-9]", 'a'}},
    {"ordinal_date_time_no_millis",
     "yyyy-DDD'T'HH:mm:ssXXX",
     false,
     {ORDINAL "T" HMS, 'a'},
     {STRICT_ORDINAL "T" STRICT_HMS, 'a'}},
    {"t_time", "'T'HH:mm:ss.SSSXXX", false, {"T" HMS "F1-9", 'a'}, {"T" STRICT_HMS "F1-9", 'a'}},
    {"t_time_no_millis", "'T'HH:mm:ssXXX", false, {"T" HMS, 'a'}, {"T" STRICT_HMS, 'a'}},
    {"time", "HH:mm:ss.SSSXXX", true, {HMS "F1-9", 'a'}, {STRICT_HMS "F1-9", 'a'}},
    {"time_no_millis", "HH:mm:ssXXX", true, {HMS, 'a'}, {STRICT_HMS, 'a'}},
    {"week_date", "YYYY-'W'ww-e", false, {WEEK}, {STRICT_WEEK}},
    {"week_date_time",
     "YYYY-'W'ww-e'T'HH:mm:ss.SSSXXX",
     false,
     {WEEK "T" HMS "F1-9", 'a'},
     {STRICT_WEEK "T" STRICT_HMS "F1-9", 'a'}},
    {"week_date_time_no_millis",
     "YYYY-'W'ww-e'T'HH:mm:ssXXX",
     false,
     {WEEK "T" HMS, 'a'},
     {STRICT_WEEK "T" STRICT_HMS, 'a'}},
    {"weekyear_week_day",
     "YYYY-'W'ww-e",
     false,
     {"X1-19-Ww1-19-e1-19", .clamped_week = true},
     {"Q4-10-Ww2-e1-19", .clamped_week = true}},
    {"year", "yyyy", true, {"Y1-19"}, {"P4-10"}},
    {"year_month", "yyyy-MM", true, {"Y1-19-M1-19"}, {"P4-10-M2"}},
    {"year_month_day", "yyyy-MM-dd", true, {"Y1-19-M1-19-d1-19"}, {STRICT_YMD}},
};

const struct date_named *date__name(struct slice name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_is(name, names[i].name))
            return &names[i];
    }
    return NULL;
}

/* The rest of a grammar and of a text. */
struct reading {
    const char *grammar;
    struct slice text;
    struct date_fields *fields;
    bool any_case;
};

static int take_number(const char **grammar)
{
    int number = 0;
    while (**grammar >= '0' && **grammar <= '9')
        number = number * 10 + *(*grammar)++ - '0';
    return number;
}

/* Reads the digits of an element from the grammar: "2", "1-2". */
static void take_width(const char **grammar, int *ret_min, int *ret_max)
{
    *ret_min = *ret_max = take_number(grammar);
    if (**grammar == '-' && (*grammar)[1] >= '0' && (*grammar)[1] <= '9') {
        ++*grammar;
        *ret_max = take_number(grammar);
    }
}

/* Returns: the digits of the fields of fixed width that follow directly in the grammar. */
static int fixed_width(const char *grammar)
{
    int width = 0, min, max;
    while (*grammar != 0 && strchr("Mdj", *grammar) != NULL) {
        grammar++;
        take_width(&grammar, &min, &max);
        if (min != max)
            return 0;
        width += min;
    }
    return width;
}

static int count_digits(struct slice text)
{
    size_t count = 0;
    while (count < text.len && text.data[count] >= '0' && text.data[count] <= '9')
        count++;
    return (int)(count < 64 ? count : 64);
}

/* Parses a year. `padded`: a longer one than `min` has "+", as SignStyle.EXCEEDS_PAD wants it. */
static bool take_year(struct reading *reading, bool padded, int min, int max, int64_t *ret_year)
{
    struct slice *text = &reading->text;
    bool minus = slice_take_byte(text, '-');
    bool plus = !minus && padded && slice_take_byte(text, '+');
    int reserved = fixed_width(reading->grammar);
    int digits = count_digits(*text);
    digits = digits < max + reserved ? digits : max + reserved;
    digits = digits - reserved > min ? digits - reserved : min;
    if (!digits_take(text, digits, digits, ret_year) || (minus && *ret_year == 0))
        return false;
    if (minus)
        *ret_year = -*ret_year;
    return minus || !padded || (plus ? digits > min : digits == min);
}

static int *field_of(struct date_fields *fields, char letter)
{
    switch (letter) {
    case 'M': return &fields->month;
    case 'd': return &fields->day;
    case 'j': return &fields->day_of_year;
    case 'H': return &fields->hour;
    case 'm': return &fields->minute;
    case 's': return &fields->second;
    case 'w': return &fields->week;
    default: return &fields->weekday;
    }
}

/* Parses the field of an element, whose letter has been taken from the grammar. */
static bool take_field(struct reading *reading, char letter)
{
    enum { NUMBER_MAX = 10000 }; /* beyond the range of every field but the year */
    int min, max;
    int64_t number = 0;
    take_width(&reading->grammar, &min, &max);
    if (letter == 'F' || letter == 'f')
        return (letter == 'f' || slice_take_byte(&reading->text, '.')) && count_digits(reading->text) >= min &&
               date__take_fraction(&reading->text, max, &reading->fields->millis);
    if (strchr("YPXQE", letter) != NULL) {
        bool week = letter == 'X' || letter == 'Q';
        bool padded = letter == 'P' || letter == 'Q' || letter == 'E';
        bool fixed = letter == 'X' && min == max;
        if (fixed && reading->text.len > 0 && reading->text.data[0] == '-')
            return false;
        return take_year(reading, padded, min, max, week ? &reading->fields->week_year : &reading->fields->year) &&
               (letter != 'E' || reading->fields->year > 0);
    }
    if (!digits_take(&reading->text, min, max, &number))
        return false;
    *field_of(reading->fields, letter) = number > NUMBER_MAX ? NUMBER_MAX : (int)number;
    return true;
}

/* Parses a zone by the letter of an element. A zone that follows another one has no effect. */
static bool take_zone(struct slice *text, char letter, struct date_fields *fields)
{
    struct slice rest = *text;
    int seconds;
    bool full;
    bool taken = letter == 'z' ? date__take_iso_zone(&rest, &seconds, &full) && full : date__take_zone(&rest, &seconds);
    struct slice offset = slice_make(text->data, text->len - rest.len);
    bool colon = offset.len > 3 && offset.data[3] == ':';
    if (!taken || (letter == 'o' && colon) || (letter == 'c' && !colon && offset.len > 1))
        return false;
    if (seconds > DATE_ZONE_SECONDS_MAX || seconds < -DATE_ZONE_SECONDS_MAX)
        return false;
    if (fields->zone_seconds == DATE_UNSET)
        fields->zone_seconds = seconds;
    *text = rest;
    return true;
}

static bool take_literal(struct reading *reading, char c)
{
    if (reading->text.len == 0)
        return false;
    char given = reading->text.data[0];
    if (reading->any_case && given >= 'a' && given <= 'z')
        given = (char)(given & ~0x20);
    if (given != c)
        return false;
    reading->text = slice_from_offset(reading->text, 1);
    return true;
}

/* Returns: the grammar after the "]" that ends an optional part, whose "[" has been taken. */
static const char *end_of_optional(const char *grammar)
{
    for (int depth = 1; depth > 0; grammar++)
        depth += *grammar == '[' ? 1 : *grammar == ']' ? -1 : 0;
    return grammar;
}

/* Parses the elements up to the end of the grammar, or of the optional part. */
static bool take_elements(struct reading *reading)
{
    while (*reading->grammar != 0 && *reading->grammar != ']') {
        char letter = *reading->grammar++;
        struct slice before = reading->text;
        bool taken = true;
        if (letter == '[') {
            struct reading part = *reading;
            struct date_fields fields = *reading->fields;
            part.fields = &fields;
            reading->grammar = end_of_optional(reading->grammar);
            if (take_elements(&part)) {
                reading->text = part.text;
                *reading->fields = fields;
            }
        } else if (letter == '~') {
            reading->any_case = true;
        } else if (strchr("YPXQEMdjHmsweFf", letter) != NULL) {
            taken = take_field(reading, letter);
        } else if (strchr("zoc", letter) != NULL) {
            taken = take_zone(&reading->text, letter, reading->fields);
        } else {
            taken = take_literal(reading, letter);
        }
        if (!taken) {
            reading->text = before;
            return false;
        }
    }
    return true;
}

/* Parses the zone at the end of the text: one of two forms, of which the whole text must be one. */
static bool take_end(const struct date_grammar *grammar, struct reading *reading)
{
    struct slice rest = reading->text;
    if (grammar->zone == 0 || (grammar->zone_optional && rest.len == 0))
        return rest.len == 0;
    if (reading->any_case && rest.len == 1 && rest.data[0] == 'z')
        rest = SLICE_LIT("Z");
    if (take_zone(&rest, grammar->zone == 'a' ? 'z' : 'c', reading->fields) && rest.len == 0)
        return true;
    reading->fields->zone_seconds = DATE_UNSET;
    rest = reading->text;
    return take_zone(&rest, 'o', reading->fields) && rest.len == 0;
}

/* Returns: whether a text has the form of a template, in which '0' matches any digit. */
static bool has_form(const char *text, const char *form)
{
    for (; *form != 0; form++, text++) {
        bool digit = *text >= '0' && *text <= '9';
        if (*form == '0' ? !digit : *text != *form)
            return false;
    }
    return true;
}

static int two_digits(const char *digits)
{
    return (digits[0] - '0') * 10 + digits[1] - '0';
}

bool date__take_iso(struct slice text, struct date_fields *fields)
{
    static const char form[] = "0000-00-00T00:00:00";
    enum { YEAR = 0, MONTH = 5, DAY = 8, HOUR = 11, MINUTE = 14, SECOND = 17, END = sizeof form - 1, FRACTION_MAX = 9 };
    int millis = DATE_UNSET;
    if (text.len < END + 1 || text.data[text.len - 1] != 'Z' || !has_form(text.data, form))
        return false;
    struct slice fraction = slice_make(text.data + END, text.len - END - 1);
    if (fraction.len > 0 && (!slice_take_byte(&fraction, '.') ||
                             !date__take_fraction(&fraction, FRACTION_MAX, &millis) || fraction.len > 0))
        return false;
    fields->year = two_digits(text.data + YEAR) * 100 + two_digits(text.data + YEAR + 2);
    fields->month = two_digits(text.data + MONTH);
    fields->day = two_digits(text.data + DAY);
    fields->hour = two_digits(text.data + HOUR);
    fields->minute = two_digits(text.data + MINUTE);
    fields->second = two_digits(text.data + SECOND);
    fields->millis = millis;
    fields->zone_seconds = 0;
    return true;
}

int date__parse_grammar(const struct date_grammar *grammar, struct slice text, struct date_fields *ret_fields,
                        size_t *ret_stop)
{
    if (grammar->iso && date__take_iso(text, ret_fields)) {
        *ret_stop = text.len;
        return 0;
    }
    struct reading reading = {grammar->elements, text, ret_fields, false};
    bool taken = take_elements(&reading);
    *ret_stop = text.len - reading.text.len;
    if (!taken)
        return DATE_INVALID;
    if (!take_end(grammar, &reading))
        return grammar->zone == 0 ? DATE_TRAILING : DATE_INVALID;
    *ret_stop = text.len;
    return 0;
}
