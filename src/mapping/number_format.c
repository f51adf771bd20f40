/* SPDX-License-Identifier: Apache-2.0 */
#include "mapping/number_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtoa.h"

#define PER_MILLE "\xe2\x80\xb0"

enum {
    DIGITS_MAX = 40, /* of a number that is shown: 17 of a double, or 19 of a long and three zeros */
};

/* What is written around the digits. */
struct affixes {
    struct slice prefix, suffix;
};

struct number_format {
    struct affixes positive, negative;
    unsigned multiplier; /* 1, 100, 1000 */
    unsigned whole_min;  /* digits before the point */
    unsigned whole_max;  /* of numbers with exponents; they share as many digits as this and fraction_max together */
    unsigned fraction_min, fraction_max;
    unsigned group;           /* 0: no groups */
    unsigned exponent_digits; /* 0: no exponent */
    bool point_always;
};

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

/* One half of a pattern, "+0.0 kg" of "+0.0 kg;-0.0 kg". The digits of the second say nothing. */
struct half {
    struct buf prefix, suffix, *affix;
    unsigned multiplier;
    int left, zeros, right; /* #, 0, and # again */
    int point;              /* how many digits stand before it; -1: there is none */
    int group;              /* digits since the last comma; -1: there is none */
    unsigned exponent_digits;
    bool digits; /* is among the digits, not around them */
    bool quoted;
};

struct reader {
    struct arena *arena;
    struct slice pattern;
    size_t at;
    struct slice why; /* set: malformed */
};

static void fail(struct reader *r, const char *what)
{
    if (r->why.data == NULL)
        r->why = arena_printf(r->arena, "%s \"%.*s\"", what, SLICE_ARG(r->pattern));
}

static void fail_at(struct reader *r, const char *what, char c)
{
    if (r->why.data == NULL)
        r->why = arena_printf(r->arena, "%s '%c' in pattern \"%.*s\"", what, c, SLICE_ARG(r->pattern));
}

static bool is_digit_place(char c)
{
    return c == '#' || c == '0' || c == ',' || c == '.';
}

static bool next_is(const struct reader *r, size_t ahead, char c)
{
    return r->at + ahead < r->pattern.len && r->pattern.data[r->at + ahead] == c;
}

static void read_scale(struct reader *r, struct half *half, unsigned multiplier, struct slice sign)
{
    if (half->multiplier != 1)
        fail(r, "Too many percent/per mille characters in pattern");
    half->multiplier = multiplier;
    buf_slice(half->affix, sign);
    r->at += sign.len;
}

/* A quote inside or outside of quotes; two of them are one that is meant. */
static void read_quote(struct reader *r, struct half *half)
{
    if (next_is(r, 1, '\'')) {
        buf_byte(half->affix, '\'');
        r->at += 2;
        return;
    }
    half->quoted = !half->quoted;
    r->at++;
}

/* Takes what stands at r->at. Returns: false where this half ends with a separator. */
static bool read_affix(struct reader *r, struct half *half, bool first)
{
    char c = r->pattern.data[r->at];
    if (c == '\'') {
        read_quote(r, half);
    } else if (half->quoted) {
        buf_byte(half->affix, c);
        r->at++;
    } else if (is_digit_place(c)) {
        half->digits = true;
    } else if (c == ';') {
        if (half->affix == &half->prefix || !first)
            fail_at(r, "Unquoted special character", c);
        r->at++;
        return false;
    } else if (c == '%') {
        read_scale(r, half, 100, SLICE_LIT("%"));
    } else if (slice_starts_with(slice_from_offset(r->pattern, r->at), SLICE_LIT(PER_MILLE))) {
        read_scale(r, half, 1000, SLICE_LIT(PER_MILLE));
    } else {
        buf_byte(half->affix, c);
        r->at++;
    }
    return true;
}

static void end_digits(struct half *half)
{
    half->digits = false;
    half->affix = &half->suffix;
}

static void read_exponent(struct reader *r, struct half *half)
{
    if (half->exponent_digits > 0)
        fail(r, "Multiple exponential symbols in pattern");
    for (r->at++; next_is(r, 0, '0'); r->at++)
        half->exponent_digits++;
    if (half->left + half->zeros < 1 || half->exponent_digits < 1)
        fail(r, "Malformed exponential pattern");
    end_digits(half);
}

static void read_digit(struct reader *r, struct half *half, bool first)
{
    char c = r->pattern.data[r->at];
    if (!is_digit_place(c) && c != 'E') {
        end_digits(half);
        return;
    }
    if (!first) {
        r->at++;
        return;
    }
    if (c == 'E') {
        read_exponent(r, half);
        return;
    }
    if (c == '#' && half->zeros > 0)
        half->right++;
    else if (c == '#')
        half->left++;
    else if (c == '0' && half->right > 0)
        fail_at(r, "Unexpected", c);
    else if (c == '0')
        half->zeros++;
    else if (c == '.' && half->point >= 0)
        fail(r, "Multiple decimal separators in pattern");
    else if (c == '.')
        half->point = half->left + half->zeros + half->right;
    if (c == ',')
        half->group = 0;
    else if (c != '.' && half->group >= 0 && half->point < 0)
        half->group++;
    r->at++;
}

static void read_half(struct reader *r, struct half *half, bool first)
{
    bool more = true;
    *half = (struct half){.prefix = BUF_INIT(NUMBER_FORMAT_BYTES_MAX),
                          .suffix = BUF_INIT(NUMBER_FORMAT_BYTES_MAX),
                          .multiplier = 1,
                          .point = -1,
                          .group = -1};
    half->affix = &half->prefix;
    while (more && r->at < r->pattern.len && r->why.data == NULL) {
        if (half->digits)
            read_digit(r, half, first);
        else
            more = read_affix(r, half, first);
    }
    if (half->zeros == 0 && half->left > 0 && half->point >= 0) { /* "#.##" is "0.##" */
        int before = half->point == 0 ? 1 : half->point;
        half->right = half->left - before;
        half->left = before - 1;
        half->zeros = 1;
    }
    if ((half->point >= 0 && (half->point < half->left || half->point > half->left + half->zeros)) ||
        (half->point < 0 && half->right > 0) || half->group == 0 || half->quoted)
        fail(r, "Malformed pattern");
}

static void half_deinit(struct half *half)
{
    buf_deinit(&half->prefix);
    buf_deinit(&half->suffix);
}

static struct affixes keep_affixes(struct arena *arena, const struct half *half)
{
    return (struct affixes){arena_copy(arena, buf_as_slice(&half->prefix)), arena_copy(arena, buf_as_slice(&half->suffix))};
}

static void settle(const struct reader *r, const struct half *half, struct number_format *format)
{
    int total = half->left + half->zeros + half->right, point = half->point >= 0 ? half->point : total;
    format->positive = keep_affixes(r->arena, half);
    format->negative = format->positive;
    format->negative.prefix = arena_printf(r->arena, "-%.*s", SLICE_ARG(format->positive.prefix));
    format->multiplier = half->multiplier;
    format->whole_min = (unsigned)(point - half->left);
    format->whole_max = (unsigned)half->left + format->whole_min;
    format->fraction_min = half->point >= 0 ? (unsigned)(half->left + half->zeros - half->point) : 0;
    format->fraction_max = (unsigned)(total - point);
    format->group = half->group > 0 ? (unsigned)half->group : 0;
    format->exponent_digits = half->exponent_digits;
    format->point_always = half->point == 0 || (half->point >= 0 && half->point == total);
}

int number_format_parse(struct arena *arena, struct slice pattern, const struct number_format **ret_format,
                        struct slice *ret_why)
{
    struct reader r = {.arena = arena, .pattern = pattern};
    struct number_format *format = arena_zalloc(arena, sizeof *format);
    struct half first, second;
    if (pattern.len > NUMBER_FORMAT_BYTES_MAX) {
        *ret_why = arena_printf(arena, "a format has at most %d bytes", NUMBER_FORMAT_BYTES_MAX);
        return NUMBER_FORMAT_MALFORMED;
    }
    read_half(&r, &first, true);
    settle(&r, &first, format);
    if (pattern.len == 0) { /* everything there is, in the way of nobody in particular */
        format->fraction_max = DIGITS_MAX * 10;
        format->group = 3;
    }
    if (r.at < pattern.len && r.why.data == NULL) {
        read_half(&r, &second, false);
        struct affixes negative = keep_affixes(arena, &second);
        if (!slice_equal(negative.prefix, format->positive.prefix) ||
            !slice_equal(negative.suffix, format->positive.suffix))
            format->negative = negative;
        half_deinit(&second);
    }
    half_deinit(&first);
    *ret_format = format;
    *ret_why = r.why;
    return r.why.data == NULL ? 0 : NUMBER_FORMAT_MALFORMED;
}

/* --- Digits ------------------------------------------------------------------------------------------------------- */

/* 0.d1d2d3… times ten to the power of `point`; no zeros at either end. */
struct decimal {
    char digits[DIGITS_MAX];
    int count;
    int point;
    bool negative;
};

static void trim(struct decimal *d)
{
    while (d->count > 0 && d->digits[d->count - 1] == '0')
        d->count--;
    if (d->count == 0)
        d->point = 0;
}

/* Takes "12.34E-5". */
static void decimal_read(struct decimal *d, const char *text)
{
    bool point = false;
    *d = (struct decimal){.negative = *text == '-'};
    for (text += d->negative; *text != '\0' && *text != 'E'; text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        bool leading = d->count == 0 && *text == '0';
        if (!leading && d->count < DIGITS_MAX)
            d->digits[d->count++] = *text;
        d->point += (!point && !leading) - (point && leading);
    }
    if (*text == 'E')
        d->point += atoi(text + 1);
    trim(d);
}

/* Whether what is cut off behind `keep` digits rounds up, half to even. `exact`: how the number compares with its shortest digits. */
static bool rounds_up(const struct decimal *d, int keep, int exact)
{
    char next = d->digits[keep];
    if (next != '5' || keep + 1 < d->count)
        return next >= '5';
    if (exact != 0)
        return exact > 0;
    return keep > 0 && (d->digits[keep - 1] - '0') % 2 != 0;
}

static void decimal_round(struct decimal *d, int keep, int exact)
{
    if (keep >= d->count)
        return;
    bool up = keep >= 0 && rounds_up(d, keep, exact);
    d->count = keep < 0 ? 0 : keep;
    if (up) {
        while (d->count > 0 && d->digits[d->count - 1] == '9')
            d->count--;
        if (d->count > 0) {
            d->digits[d->count - 1]++;
        } else {
            d->digits[d->count++] = '1';
            d->point++;
        }
    }
    trim(d);
}

/* Whether a number is above, at or below its shortest digits: they are told apart where those have run out, exactly. */
static int compare_exact(const struct decimal *d, double number)
{
    char text[1200];
    struct decimal exact;
    int places = d->count - d->point;
    if (places <= 0 || places > 320)
        return 0;
    /* All digits of a double end within 1,074 places; those behind the shortest say which way they were rounded. */
    snprintf(text, sizeof text, "%.*f", 1074, number);
    size_t len = strlen(text), end = len - 1074 + (size_t)places;
    bool rest = strspn(text + end, "0") != len - end;
    text[end] = '\0';
    decimal_read(&exact, text);
    bool same =
        exact.point == d->point && exact.count == d->count && memcmp(exact.digits, d->digits, (size_t)d->count) == 0;
    return same ? rest : -1; /* cut off before the shortest digits: they were rounded up */
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static char digit_at(const struct decimal *d, int at)
{
    return at >= 0 && at < d->count ? d->digits[at] : '0';
}

static void print_plain(struct buf *buf, const struct number_format *format, const struct decimal *d)
{
    int whole = d->point > (int)format->whole_min ? d->point : (int)format->whole_min;
    bool fraction = format->fraction_min > 0 || d->count > d->point;
    for (int i = whole - 1; i >= 0; i--) {
        buf_byte(buf, i < d->point ? digit_at(d, d->point - 1 - i) : '0');
        if (format->group > 0 && i > 0 && i % (int)format->group == 0)
            buf_byte(buf, ',');
    }
    if (!fraction && whole <= 0)
        buf_byte(buf, '0');
    if (format->point_always || fraction)
        buf_byte(buf, '.');
    for (int i = 0; i < (int)format->fraction_max && (i < (int)format->fraction_min || d->point + i < d->count); i++)
        buf_byte(buf, digit_at(d, d->point + i));
}

/* Exponents are multiples of whole_max where that is more than whole_min: "##0.##E0" is what engineers write. */
static void print_exponent(struct buf *buf, const struct number_format *format, const struct decimal *d)
{
    int step = (int)format->whole_max, least = (int)format->whole_min, exponent = d->point;
    int digits_min = least + (int)format->fraction_min;
    if (step > 1 && step > least) {
        exponent = (exponent >= 1 ? (exponent - 1) / step : (exponent - step) / step) * step;
        least = 1;
    } else {
        exponent -= least;
    }
    int whole = d->count == 0 ? least : d->point - exponent;
    int total = d->count > digits_min ? d->count : digits_min;
    if (d->count == 0)
        exponent = 0;
    if (total < whole)
        total = whole;
    for (int i = 0; i < total; i++) {
        if (i == whole)
            buf_byte(buf, '.');
        buf_byte(buf, digit_at(d, i));
    }
    if (format->point_always && total == whole)
        buf_byte(buf, '.');
    buf_printf(buf, "E%s%0*d", exponent < 0 ? "-" : "", (int)format->exponent_digits, abs(exponent));
}

static void print(struct buf *buf, const struct number_format *format, struct decimal *d, double number, bool whole)
{
    const struct affixes *around = d->negative ? &format->negative : &format->positive;
    int keep = format->exponent_digits > 0 ? (int)(format->whole_max + format->fraction_max)
                                           : d->point + (int)format->fraction_max;
    if (keep < d->count)
        decimal_round(d, keep, whole ? 0 : compare_exact(d, fabs(number)));
    buf_slice(buf, around->prefix);
    if (format->exponent_digits > 0)
        print_exponent(buf, format, d);
    else
        print_plain(buf, format, d);
    buf_slice(buf, around->suffix);
}

void number_print_double(struct buf *buf, const struct number_format *format, double number)
{
    char text[DTOA_TEXT_MAX];
    struct decimal d;
    if (isnan(number)) {
        buf_lit(buf, "NaN");
        return;
    }
    number *= format->multiplier;
    if (isinf(number)) {
        const struct affixes *around = number < 0 ? &format->negative : &format->positive;
        buf_slice(buf, around->prefix);
        buf_lit(buf, "\xe2\x88\x9e");
        buf_slice(buf, around->suffix);
        return;
    }
    dtoa_double(number, text);
    decimal_read(&d, text);
    print(buf, format, &d, number, false);
}

void number_print_i64(struct buf *buf, const struct number_format *format, int64_t number)
{
    char text[32];
    struct decimal d;
    snprintf(text, sizeof text, "%lld%s", (long long)number,
             number == 0 || format->multiplier == 1 ? ""
             : format->multiplier == 100            ? "00"
                                                    : "000");
    decimal_read(&d, text);
    print(buf, format, &d, 0, true);
}
