/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's stripMargin and stripIndent: remove the margin of each line of a string. */
#include "script/library/method_args.h"

/* A line of a text, without its line end; offsets in code units. */
struct line {
    size_t begin, end;
};

/* Reads the line at *at and advances *at. Returns: whether there was one. */
static bool next_line(const struct text *text, size_t *at, struct line *ret_line)
{
    if (*at >= text->length)
        return false;
    size_t end = *at;
    while (end < text->length && text_at(text, end) != '\n')
        end++;
    *ret_line = (struct line){*at, end > *at && text_at(text, end - 1) == '\r' ? end - 1 : end};
    *at = end + 1;
    return true;
}

static size_t indent_of(const struct text *text, struct line line)
{
    size_t at = line.begin;
    while (at < line.end && text_at(text, at) <= ' ')
        at++;
    return at - line.begin;
}

/* Removes from each line the whitespace up to and including `sign` (`margin` is true), or
   `indent` code units. A line without the sign stays as it is. */
static bool strip_lines(struct run *run, const struct text *text, bool margin, uint16_t sign, size_t indent,
                        struct value *ret)
{
    struct text_buf out;
    struct line line;
    text_buf_init(&out, run);
    for (size_t at = 0; next_line(text, &at, &line);) {
        size_t drop = margin ? indent_of(text, line) : indent;
        if (margin && (line.begin + drop == line.end || text_at(text, line.begin + drop) != sign))
            drop = 0;
        else
            drop += margin;
        for (size_t i = line.begin + drop; i < line.end; i++)
            text_buf_unit(&out, text_at(text, i));
        if (at <= text->length)
            text_buf_unit(&out, '\n');
    }
    return run_step(run, text->length / 16) && give(ret, text_buf_done(&out));
}

static bool string_strip_margin(struct call *call, struct value *ret)
{
    uint16_t sign = '|';
    if (call->count == 1 && call->args[0].kind == VALUE_CHAR)
        sign = (uint16_t)call->args[0].i;
    else if (call->count == 1) {
        NOT_NULL(0);
        sign = text_of(call->args[0])->length > 0 ? text_at(text_of(call->args[0]), 0) : '|';
    }
    return strip_lines(call->run, text_of(call->self), true, sign, 0, ret);
}

/* Removes the given indentation, or that of the least indented line, blank lines not counted. */
static bool string_strip_indent(struct call *call, struct value *ret)
{
    const struct text *text = text_of(call->self);
    size_t least = SIZE_MAX;
    struct line line;
    if (call->count == 1) {
        least = call->args[0].i < 0 ? 0 : (size_t)call->args[0].i;
    } else {
        for (size_t at = 0; next_line(text, &at, &line);) {
            size_t indent = indent_of(text, line);
            if (line.begin + indent < line.end && indent < least)
                least = indent;
        }
    }
    return strip_lines(call->run, text, false, 0, least == SIZE_MAX ? 0 : least, ret);
}

static const struct method_row string_methods[] = {
    {"String stripMargin()", GROOVY, string_strip_margin},
    {"String stripMargin(char)", GROOVY, string_strip_margin},
    {"String stripMargin(String)", GROOVY, string_strip_margin},
    {"String stripIndent()", GROOVY, string_strip_indent},
    {"String stripIndent(int)", GROOVY, string_strip_indent},
};

const struct method_table methods_groovy_margin[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
