/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Date math in index names: inside angle brackets, each {EXPRESSION{FORMAT|ZONE}} becomes a date. A backslash
 * takes the next character as it is.
 */
#include "api/request/date_math_name.h"

#include "base/buf.h"
#include "mapping/date.h"

#define FORMAT_DEFAULT "yyyy.MM.dd"

struct date_math_name {
    struct arena *arena;
    struct arena *scratch; /* of one placeholder: a list may have thousands, and a format takes 800 bytes */
    struct slice name; /* without the angle brackets */
    size_t at;
    int64_t now;
    struct slice zones;
    struct buf *out;
    struct problem *problem;
};

static int refuse_name(struct date_math_name *d, const char *reason)
{
    problem_set(d->problem, d->arena, PROBLEM_PARSE, "invalid dynamic name expression [%.*s]. %s", SLICE_ARG(d->name),
                reason);
    return DATE_MATH_NAME_INVALID;
}

/* Splits "now/M{yyyy.MM|+02:00}" into its parts. */
static void split_placeholder(struct slice text, struct slice *ret_math, struct slice *ret_format,
                              struct slice *ret_zone)
{
    size_t brace = slice_find_byte(text, '{');
    *ret_math = slice_make(text.data, brace);
    *ret_format = SLICE_LIT(FORMAT_DEFAULT);
    *ret_zone = SLICE_NONE;
    if (brace == text.len)
        return;
    struct slice inner = slice_from_offset(text, brace + 1);
    inner.len -= inner.len > 0; /* the closing brace */
    size_t bar = slice_find_byte(inner, '|');
    *ret_format = slice_make(inner.data, bar);
    if (bar < inner.len)
        *ret_zone = slice_from_offset(inner, bar + 1);
}

static int write_date(struct date_math_name *d, struct slice placeholder)
{
    struct slice math, pattern, zone_text;
    const struct date_format *format;
    int64_t millis;
    struct zone zone = zone_fixed(0);
    struct problem unknown;
    split_placeholder(placeholder, &math, &pattern, &zone_text);
    arena_reset(d->scratch);
    if (pattern.len == 0 || date_format_parse(d->scratch, pattern, DATE_RULES_7_10, &format) != 0)
        return refuse_name(d, "missing or unknown date format");
    if (zone_text.data != NULL && zone_parse(d->zones, zone_text, d->scratch, &zone, &unknown) != 0)
        return refuse_name(d, "unknown time zone");
    if (date_parse_math(date_format_default(DATE_RULES_7_10), math, d->now, false, &zone, &millis) != 0)
        return refuse_name(d, "failed to parse date math");
    date_print(d->out, format, millis, &zone);
    return 0;
}

/* After '{': up to the '}' that closes it. */
static int take_placeholder(struct date_math_name *d)
{
    size_t start = d->at, depth = 1;
    for (; d->at < d->name.len; d->at++) {
        char c = d->name.data[d->at];
        depth += c == '{';
        if (c == '}' && --depth == 0)
            break;
    }
    if (d->at == d->name.len)
        return refuse_name(d, "date math placeholder is open ended");
    return write_date(d, slice_make(d->name.data + start, d->at - start));
}

static int resolve_one(struct date_math_name *d)
{
    for (; d->at < d->name.len; d->at++) {
        char c = d->name.data[d->at];
        if (c == '\\' && d->at + 1 < d->name.len) {
            buf_byte(d->out, d->name.data[++d->at]);
        } else if (c == '{') {
            d->at++;
            int r = take_placeholder(d);
            if (r != 0)
                return r;
        } else if (c == '}') {
            return refuse_name(d, "`{` and `}` are reserved characters and should be escaped when used as part of "
                                  "the index name using `\\` (e.g. `\\{text\\}`)");
        } else {
            buf_byte(d->out, c);
        }
    }
    return 0;
}

int date_math_name_resolve(struct arena *arena, struct slice names, int64_t now, struct slice zones,
                           struct slice *ret_names, struct problem *ret_problem)
{
    *ret_names = names;
    if (slice_find_byte(names, '<') == names.len)
        return 0;
    tl_cleanup(buf_deinit) struct buf out = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(arena_deinit) struct arena scratch = ARENA_INIT;
    while (names.len > 0) {
        size_t comma = slice_find_byte(names, ',');
        struct slice name = slice_make(names.data, comma);
        if (out.len > 0)
            buf_byte(&out, ',');
        if (name.len > 2 && name.data[0] == '<' && name.data[name.len - 1] == '>') {
            struct date_math_name d = {.arena = arena,
                                       .scratch = &scratch,
                                       .name = slice_make(name.data + 1, name.len - 2),
                                       .now = now,
                                       .zones = zones,
                                       .out = &out,
                                       .problem = ret_problem};
            int r = resolve_one(&d);
            if (r != 0)
                return r;
        } else {
            buf_slice(&out, name);
        }
        names = slice_from_offset(names, comma + 1);
    }
    *ret_names = arena_copy(arena, buf_as_slice(&out));
    return 0;
}
