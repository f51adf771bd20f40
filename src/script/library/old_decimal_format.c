/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java.text.DecimalFormat as it was for commands before version 18: script_update.old_library.
 *
 * Documents have texts that it wrote, and a replay of those commands writes them again; so its results stay. They
 * differ from base/number_format.h: it prints the digits beyond a double's shortest form, has no exponents, and
 * accepts some malformed patterns.
 *
 * A pattern has a prefix, digits, perhaps a point with fraction digits, and a suffix. `#` is an
 * optional digit, `0` a required one, `,` separates groups. After a `;` follows the pattern of
 * negative numbers, of which only prefix and suffix count. Text in quotes is literal. The exact
 * value of a double is rounded half to even.
 */
#include "script/library/old_decimal_format.h"

#include "script/library/method_args.h"

#include <math.h>
#include <stdio.h>

#define DIGITS_MAX 340 /* limit of a double's whole digits and of a pattern's fraction digits */

struct old_decimal_format {
    struct object object;
    const struct text *pattern;
    struct affixes {
        size_t start, begin, end, stop; /* offsets of the prefix, the digits, the suffix, and its end */
    } positive, negative;               /* negative: start == 0 if the pattern has no negative part */
    unsigned whole_min, part_min, part_max;
    unsigned group; /* digits in a group; 0: no grouping */
    double factor;  /* 100 for percent, 1000 for permille */
};

static bool is_digit(uint16_t c)
{
    return c == '#' || c == '0' || c == ',' || c == '.';
}

/* Returns: the end of the prefix or suffix that starts at `at`: a digit (for a prefix), a `;`,
   or the pattern's end. */
static size_t affix_end(const struct text *pattern, size_t at, bool before)
{
    for (bool quoted = false; at < pattern->length; at++) {
        uint16_t c = text_at(pattern, at);
        if (c == '\'')
            quoted = !quoted;
        else if (!quoted && (c == ';' || (before && is_digit(c))))
            break;
    }
    return at;
}

static struct affixes read_affixes(const struct text *pattern, size_t start)
{
    struct affixes affixes = {.start = start, .begin = affix_end(pattern, start, true)};
    affixes.end = affixes.begin;
    while (affixes.end < pattern->length && is_digit(text_at(pattern, affixes.end)))
        affixes.end++;
    affixes.stop = affix_end(pattern, affixes.end, false);
    return affixes;
}

static void count_digit(struct old_decimal_format *format, uint16_t c, bool part)
{
    if (part) {
        format->part_min = c == '0' ? format->part_max + 1 : format->part_min;
        format->part_max++;
        return;
    }
    format->whole_min += c == '0';
    format->group += format->group > 0;
}

static bool throw_malformed(struct run *run, const struct text *pattern, const char *what)
{
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "%s in pattern \"%.*s\"", what,
                     SLICE_ARG(text_utf8(run, pattern)));
}

/* Parses the pattern's digits. While it runs, `group` is 1 plus the digits since the last comma. */
static bool read_digits(struct run *run, struct old_decimal_format *format)
{
    const struct text *pattern = format->pattern;
    bool part = false;
    for (size_t i = format->positive.begin; i < format->positive.end; i++) {
        uint16_t c = text_at(pattern, i);
        if (part && (c == '.' || c == ','))
            return throw_malformed(run, pattern, c == '.' ? "Multiple decimal separators" : "Malformed pattern");
        if (c == '.')
            part = true;
        else if (c == ',')
            format->group = 1;
        else
            count_digit(format, c, part);
    }
    format->group -= format->group > 0;
    /* Of digits that are all optional, one becomes required. */
    if (part && format->whole_min == 0 && format->part_min == 0)
        *(text_at(pattern, format->positive.begin) == '.' ? &format->part_min : &format->whole_min) = 1;
    format->part_max = format->part_max < DIGITS_MAX ? format->part_max : DIGITS_MAX;
    format->part_min = format->part_min < format->part_max ? format->part_min : format->part_max;
    return true;
}

/* Finds percent and permille signs in the prefix and suffix; rejects exponents. */
static bool read_factor(struct run *run, struct old_decimal_format *format)
{
    const struct text *pattern = format->pattern;
    const struct affixes *affixes = &format->positive;
    bool quoted = false;
    if (affixes->end < affixes->stop && text_at(pattern, affixes->end) == 'E')
        return throw_malformed(run, pattern, "An exponent, which is not supported,");
    for (size_t i = affixes->start; i < affixes->stop; i++) {
        uint16_t c = text_at(pattern, i);
        quoted ^= c == '\'';
        if (!quoted && (c == '%' || c == 0x2030))
            format->factor = c == '%' ? 100 : 1000;
    }
    return true;
}

static bool read_pattern(struct run *run, struct old_decimal_format *format)
{
    const struct text *pattern = format->pattern;
    format->positive = read_affixes(pattern, 0);
    if (format->positive.stop + 1 < pattern->length)
        format->negative = read_affixes(pattern, format->positive.stop + 1);
    return read_digits(run, format) && read_factor(run, format) && run_step(run, pattern->length / 16);
}

bool old_decimal_format_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (call->count == 1)
        NOT_NULL(0);
    struct old_decimal_format *format = run_object(run, sizeof *format, CLASS_DECIMAL_FORMAT);
    format->pattern = call->count == 1 ? text_of(call->args[0]) : text_new(run, SLICE_LIT("#,##0.###"));
    format->factor = 1;
    *ret = value_of(format);
    return format->pattern != NULL && read_pattern(run, format);
}

/* Writes a prefix or suffix without its quotes; two quotes are a literal one. */
static void write_affix(struct text_buf *out, const struct text *pattern, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        bool quote = text_at(pattern, i) == '\'';
        bool doubled = quote && i + 1 < end && text_at(pattern, i + 1) == '\'';
        if (!quote || doubled)
            text_buf_unit(out, text_at(pattern, i));
        i += doubled;
    }
}

static void write_whole(struct text_buf *out, const struct old_decimal_format *format, const char *digits,
                        unsigned count)
{
    bool none = count == 1 && *digits == '0' && format->whole_min == 0 && format->part_max > 0;
    unsigned given = none ? 0 : count, all = given < format->whole_min ? format->whole_min : given;
    for (unsigned left = all; left > 0; left--) {
        text_buf_unit(out, left > given ? '0' : (uint16_t)digits[given - left]);
        if (format->group > 0 && left > 1 && (left - 1) % format->group == 0)
            text_buf_unit(out, ',');
    }
}

/* Writes `digits`, the absolute value with part_max fraction digits. */
static void write_digits(struct text_buf *out, const struct old_decimal_format *format, const char *digits)
{
    unsigned whole = 0, part = format->part_max;
    while (digits[whole] != '\0' && digits[whole] != '.')
        whole++;
    write_whole(out, format, digits, whole);
    while (part > format->part_min && digits[whole + part] == '0')
        part--;
    if (part == 0)
        return;
    text_buf_unit(out, '.');
    for (unsigned i = 1; i <= part; i++)
        text_buf_unit(out, (uint16_t)digits[whole + i]);
}

/* Gives the digits of the absolute value, with part_max fraction digits. Integers are exact
   unless they are multiplied by a factor. */
static void digits_of(const struct old_decimal_format *format, struct value value, double number, char *digits,
                      size_t size)
{
    if (!value_integral(value) || format->factor > 1) {
        snprintf(digits, size, "%.*f", (int)format->part_max, fabs(number));
        return;
    }
    unsigned long long whole = value.i < 0 ? 0 - (unsigned long long)value.i : (unsigned long long)value.i;
    snprintf(digits, size, "%llu%s", whole, format->part_max > 0 ? "." : "");
    size_t length = strlen(digits);
    memset(digits + length, '0', format->part_max);
    digits[length + format->part_max] = '\0';
}

bool old_decimal_format_format(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct old_decimal_format *format = (const struct old_decimal_format *)call->self.object;
    if (!value_number(call->args[0]))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Cannot format given Object as a Number");
    char digits[2 * DIGITS_MAX + 8];
    double number = number_to_double(run, call->args[0]) * format->factor;
    struct text_buf out;
    text_buf_init(&out, run);
    if (isnan(number)) {
        text_buf_ascii(&out, "NaN");
        return give(ret, text_buf_done(&out));
    }
    digits_of(format, call->args[0], number, digits, sizeof digits);
    bool own = signbit(number) && format->negative.start > 0;
    const struct affixes *affixes = own ? &format->negative : &format->positive;
    if (signbit(number) && !own)
        text_buf_unit(&out, '-');
    write_affix(&out, format->pattern, affixes->start, affixes->begin);
    if (isinf(number))
        text_buf_unit(&out, 0x221e);
    else
        write_digits(&out, format, digits);
    write_affix(&out, format->pattern, affixes->end, affixes->stop);
    return run_step(run, strlen(digits) / 16) && give(ret, text_buf_done(&out));
}
