/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors for texts that are not dates, in the wording of java.time for 7.x and of Joda for 5.x.
 *
 * Both report how far they parsed the text. Here that is determined by parsing prefixes of the
 * text, the longest first.
 */
#include "base/buf.h"
#include "base/calendar.h"
#include "mapping/date_internal.h"
#include "mapping/mapping_internal.h"

/* Returns: whether the only parser of a format stops at the year, which has the wrong number of digits. */
static bool stops_at_year(const struct date_format *format, struct slice text)
{
    const struct date_alternative *first = &format->alternatives[0];
    return format->count == 1 && first->kind == DATE_ISO && first->strict && !date__take_strict_year(&text, true);
}

/* Returns: the length of the longest prefix of `text` that is a date of the format; 0: none. */
static size_t longest_date(const struct date_format *format, struct slice text, bool strict)
{
    enum { LOOKED_AT_MAX = 64 };
    if (strict && stops_at_year(format, text))
        return 0;
    for (size_t len = text.len < LOOKED_AT_MAX ? text.len : LOOKED_AT_MAX; len > 0; len--) {
        int64_t ignored;
        struct slice prefix = slice_make(text.data, len);
        if (date_parse(format, prefix, false, &ignored) == 0 && (!strict || date_is_strict(format, prefix)))
            return len;
    }
    return 0;
}

/* Returns: whether a text begins with the form of yyyy-MM-dd. */
static bool is_shaped_date(struct slice text)
{
    static const char shape[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (i >= text.len || (shape[i] == 'd' ? text.data[i] < '0' || text.data[i] > '9' : text.data[i] != '-'))
            return false;
    }
    return true;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + text[1] - '0';
}

/*
 * Sets the problem for an invalid month or day, which Joda names. Returns: false if both are
 * valid.
 */
static bool explain_part(struct slice text, struct arena *arena, struct problem *ret_problem)
{
    if (!is_shaped_date(text))
        return false;
    int month = two_digits(text.data + 5);
    int day = two_digits(text.data + 8);
    int64_t year = two_digits(text.data) * 100 + two_digits(text.data + 2);
    bool bad_month = month < 1 || month > 12;
    int last = bad_month ? 31 : calendar_month_days(year, month);
    if (!bad_month && day >= 1 && day <= last)
        return false;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Cannot parse \"%.*s\": Value %d for %s must be in the range [1,%d]", SLICE_ARG(text),
                bad_month ? month : day, bad_month ? "monthOfYear" : "dayOfMonth", bad_month ? 12 : last);
    ret_problem->name = SLICE_LIT("illegal_field_value_exception");
    return true;
}

static void explain_as_joda(const struct date_format *format, struct slice text, struct arena *arena,
                            struct problem *ret_problem)
{
    if (explain_part(text, arena, ret_problem))
        return;
    size_t stop = longest_date(format, text, false);
    bool digits = text.len > 0 && text.data[0] >= '0' && text.data[0] <= '9';
    if (stop > 0)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: \"%.*s\" is malformed at \"%.*s\"",
                    SLICE_ARG(text), SLICE_ARG(slice_from_offset(text, stop)));
    else if (digits && format->count == 1)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: \"%.*s\" is too short",
                    SLICE_ARG(text));
    else
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: \"%.*s\"", SLICE_ARG(text));
}

/* Sets the innermost cause of a named format with one parser. */
static void explain_grammar(const struct date_grammar *grammar, struct slice text, struct arena *arena,
                            struct problem *cause)
{
    struct date_fields fields = DATE_FIELDS_UNSET;
    size_t stop;
    int r = date__parse_grammar(grammar, text, &fields, &stop);
    problem_set(cause, arena, PROBLEM_PARSE, "Text '%.*s' could not be parsed", SLICE_ARG(text));
    if (r != 0)
        cause->reason = arena_printf(arena, "%.*s%s at index %zu", SLICE_ARG(cause->reason),
                                     r == DATE_TRAILING ? ", unparsed text found" : "", stop);
    cause->name = SLICE_LIT("date_time_parse_exception");
}

/* Sets the innermost cause in java.time's wording. */
static void explain_parsers(const struct date_format *format, struct slice text, struct arena *arena,
                            struct problem *cause)
{
    struct date_fields fields = DATE_FIELDS_UNSET;
    size_t stop, failed = 0;
    const struct date_alternative *first = &format->alternatives[0];
    if (first->grammar != NULL && format->count == 1 && first->grammar->zone == 0) {
        explain_grammar(first->grammar, text, arena, cause);
        return;
    }
    /* Elasticsearch has several parsers of epoch numbers, and of formats with a zone. */
    bool epoch = first->grammar != NULL || first->kind == DATE_EPOCH_MILLIS || first->kind == DATE_EPOCH_SECOND;
    stop = longest_date(format, text, true);
    if (format->count > 1 || epoch)
        problem_set(cause, arena, PROBLEM_PARSE, "Failed to parse with all enclosed parsers");
    else if (stop > 0 && stop < text.len)
        problem_set(cause, arena, PROBLEM_PARSE, "Text '%.*s' could not be parsed, unparsed text found at index %zu",
                    SLICE_ARG(text), stop);
    else if (first->kind == DATE_PATTERN && date__parse_pattern(first, text, &fields, &failed) == 0 &&
             (first->named || date__is_strict_pattern(first, text, &failed) || failed == text.len))
        problem_set(cause, arena, PROBLEM_PARSE, "Text '%.*s' could not be parsed", SLICE_ARG(text));
    else
        problem_set(cause, arena, PROBLEM_PARSE, "Text '%.*s' could not be parsed at index %zu", SLICE_ARG(text),
                    failed);
    cause->name = SLICE_LIT("date_time_parse_exception");
}

void date__explain(const struct date_format *format, struct slice text, enum dialect dialect, struct arena *arena,
                   struct problem *ret_problem)
{
    if (dialect == DIALECT_5) {
        explain_as_joda(format, text, arena, ret_problem);
        return;
    }
    if (text.len == 0) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "cannot parse empty date");
        return;
    }
    struct problem *cause = arena_alloc(arena, sizeof *cause);
    explain_parsers(format, text, arena, cause);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "failed to parse date field [%.*s] with format [%.*s]",
                SLICE_ARG(text), SLICE_ARG(date_format_text(format)));
    ret_problem->caused_by = cause;
}

/* Sets the cause for a pattern that date_format_parse() refused. */
static void describe_pattern_error(struct arena *arena, struct slice pattern, struct problem *cause)
{
    bool quoted = false;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        quoted = quoted != (c == '\'');
        if (quoted)
            continue;
        if (c == '#' || c == '{' || c == '}') {
            problem_set(cause, arena, PROBLEM_ILLEGAL_ARGUMENT, "Pattern includes reserved character: '%c'", c);
            return;
        }
        if (letter && strchr("yuMdDHhkKmsSaEZXxz", c) == NULL) {
            problem_set(cause, arena, PROBLEM_ILLEGAL_ARGUMENT, "Unknown pattern letter: %c", c);
            return;
        }
    }
    problem_set(cause, arena, PROBLEM_ILLEGAL_ARGUMENT, "a part of it is not supported");
}

void date_format_describe_error(struct arena *arena, struct slice pattern, struct problem *ret_problem)
{
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    describe_pattern_error(arena, pattern, cause);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: [%.*s]: %.*s", SLICE_ARG(pattern),
                SLICE_ARG(cause->reason));
    ret_problem->caused_by = cause;
}
