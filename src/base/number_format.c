/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtoa.h"

#define PER_MILLE "\xe2\x80\xb0"

enum {
    DIGITS_MAX = 40,   /* significant digits: 17 of a double, or 19 of a long and three zeros */
    PLACES_MAX = 1074, /* decimal places of the exact value of a double */
};

/* The text around the digits. */
struct affixes {
    struct slice prefix, suffix;
};

struct number_format {
    struct affixes positive, negative;
    unsigned multiplier; /* 1, 100, 1000 */
    unsigned whole_min;  /* minimum number of digits before the point */
    unsigned whole_max;  /* with exponents: digits before the point, at most; see print_decimal() */
    unsigned fraction_min, fraction_max;
    unsigned group;           /* 0: no groups */
    unsigned exponent_digits; /* 0: no exponent */
    bool point_always;
};

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

/*
 * One subpattern, such as "+0.0 kg" of "+0.0 kg;-0.0 kg". The digits of the second subpattern are
 * ignored.
 */
struct subpattern {
    struct buf prefix, suffix, *affix;
    unsigned multiplier;
    int left, zeros, right; /* number of '#', of '0', and of '#' after them */
    int point;              /* number of digits before the point; -1: no point */
    int group;              /* number of digits since the last comma; -1: no comma */
    unsigned exponent_digits;
    bool digits; /* parsing is inside of the digits, not in an affix */
    bool quoted;
};

/* The state of parsing a pattern. */
struct reader {
    struct arena *arena;
    struct slice pattern;
    size_t at;
    struct slice why; /* the error; data NULL: none */
};

static void fail_pattern(struct reader *r, const char *what)
{
    if (r->why.data == NULL)
        r->why = arena_printf(r->arena, "%s \"%.*s\"", what, SLICE_ARG(r->pattern));
}

static void fail_at(struct reader *r, const char *what, char c)
{
    if (r->why.data == NULL)
        r->why = arena_printf(r->arena, "%s '%c' in pattern \"%.*s\"", what, c, SLICE_ARG(r->pattern));
}

static bool is_digit_symbol(char c)
{
    return c == '#' || c == '0' || c == ',' || c == '.';
}

static bool next_is(const struct reader *r, size_t ahead, char c)
{
    return r->at + ahead < r->pattern.len && r->pattern.data[r->at + ahead] == c;
}

static void read_scale(struct reader *r, struct subpattern *sub, unsigned multiplier, struct slice sign)
{
    if (sub->multiplier != 1)
        fail_pattern(r, "Too many percent/per mille characters in pattern");
    sub->multiplier = multiplier;
    buf_slice(sub->affix, sign);
    r->at += sign.len;
}

/* Reads a quote, inside or outside of a quotation. Two in a row are a literal quote. */
static void read_quote(struct reader *r, struct subpattern *sub)
{
    if (next_is(r, 1, '\'')) {
        buf_byte(sub->affix, '\'');
        r->at += 2;
        return;
    }
    sub->quoted = !sub->quoted;
    r->at++;
}

/* Reads one element outside of the digits. Returns: false at the separator of subpatterns. */
static bool read_affix(struct reader *r, struct subpattern *sub, bool first)
{
    char c = r->pattern.data[r->at];
    if (c == '\'') {
        read_quote(r, sub);
    } else if (sub->quoted) {
        buf_byte(sub->affix, c);
        r->at++;
    } else if (is_digit_symbol(c)) {
        sub->digits = true;
    } else if (c == ';') {
        if (sub->affix == &sub->prefix || !first)
            fail_at(r, "Unquoted special character", c);
        r->at++;
        return false;
    } else if (c == '%') {
        read_scale(r, sub, 100, SLICE_LIT("%"));
    } else if (slice_starts_with(slice_from_offset(r->pattern, r->at), SLICE_LIT(PER_MILLE))) {
        read_scale(r, sub, 1000, SLICE_LIT(PER_MILLE));
    } else {
        buf_byte(sub->affix, c);
        r->at++;
    }
    return true;
}

static void end_digits(struct subpattern *sub)
{
    sub->digits = false;
    sub->affix = &sub->suffix;
}

static void read_exponent(struct reader *r, struct subpattern *sub)
{
    if (sub->exponent_digits > 0)
        fail_pattern(r, "Multiple exponential symbols in pattern");
    for (r->at++; next_is(r, 0, '0'); r->at++)
        sub->exponent_digits++;
    if (sub->left + sub->zeros < 1 || sub->exponent_digits < 1)
        fail_pattern(r, "Malformed exponential pattern");
    end_digits(sub);
}

/* Reads one character of the digits, whose positions count in the first subpattern only. */
static void read_digit(struct reader *r, struct subpattern *sub, bool first)
{
    char c = r->pattern.data[r->at];
    if (!is_digit_symbol(c) && c != 'E') {
        end_digits(sub);
        return;
    }
    if (!first) {
        r->at++;
        return;
    }
    if (c == 'E') {
        read_exponent(r, sub);
        return;
    }
    if (c == '#' && sub->zeros > 0)
        sub->right++;
    else if (c == '#')
        sub->left++;
    else if (c == '0' && sub->right > 0)
        fail_at(r, "Unexpected", c);
    else if (c == '0')
        sub->zeros++;
    else if (c == '.' && sub->point >= 0)
        fail_pattern(r, "Multiple decimal separators in pattern");
    else if (c == '.')
        sub->point = sub->left + sub->zeros + sub->right;
    if (c == ',')
        sub->group = 0;
    else if (c != '.' && sub->group >= 0 && sub->point < 0)
        sub->group++;
    r->at++;
}

static void read_subpattern(struct reader *r, struct subpattern *sub, bool first)
{
    bool more = true;
    *sub = (struct subpattern){.prefix = BUF_INIT(NUMBER_FORMAT_BYTES_MAX),
                               .suffix = BUF_INIT(NUMBER_FORMAT_BYTES_MAX),
                               .multiplier = 1,
                               .point = -1,
                               .group = -1};
    sub->affix = &sub->prefix;
    while (more && r->at < r->pattern.len && r->why.data == NULL) {
        if (sub->digits)
            read_digit(r, sub, first);
        else
            more = read_affix(r, sub, first);
    }
    if (sub->zeros == 0 && sub->left > 0 && sub->point >= 0) { /* "#.##" is "0.##" */
        int before = sub->point == 0 ? 1 : sub->point;
        sub->right = sub->left - before;
        sub->left = before - 1;
        sub->zeros = 1;
    }
    if ((sub->point >= 0 && (sub->point < sub->left || sub->point > sub->left + sub->zeros)) ||
        (sub->point < 0 && sub->right > 0) || sub->group == 0 || sub->quoted)
        fail_pattern(r, "Malformed pattern");
}

static void subpattern_deinit(struct subpattern *sub)
{
    buf_deinit(&sub->prefix);
    buf_deinit(&sub->suffix);
}

static struct affixes keep_affixes(struct arena *arena, const struct subpattern *sub)
{
    return (struct affixes){arena_copy(arena, buf_as_slice(&sub->prefix)),
                            arena_copy(arena, buf_as_slice(&sub->suffix))};
}

/* Sets a format from the first subpattern. */
static void set_format(const struct reader *r, const struct subpattern *sub, struct number_format *format)
{
    int total = sub->left + sub->zeros + sub->right, point = sub->point >= 0 ? sub->point : total;
    format->positive = keep_affixes(r->arena, sub);
    format->negative = format->positive;
    format->negative.prefix = arena_printf(r->arena, "-%.*s", SLICE_ARG(format->positive.prefix));
    format->multiplier = sub->multiplier;
    format->whole_min = (unsigned)(point - sub->left);
    format->whole_max = (unsigned)sub->left + format->whole_min;
    format->fraction_min = sub->point >= 0 ? (unsigned)(sub->left + sub->zeros - sub->point) : 0;
    format->fraction_max = (unsigned)(total - point);
    format->group = sub->group > 0 ? (unsigned)sub->group : 0;
    format->exponent_digits = sub->exponent_digits;
    format->point_always = sub->point == 0 || (sub->point >= 0 && sub->point == total);
}

int number_format_parse(struct arena *arena, struct slice pattern, const struct number_format **ret_format,
                        struct slice *ret_why)
{
    struct reader r = {.arena = arena, .pattern = pattern};
    struct number_format *format = arena_zalloc(arena, sizeof *format);
    struct subpattern first, second;
    if (pattern.len > NUMBER_FORMAT_BYTES_MAX) {
        *ret_why = arena_printf(arena, "a format has at most %d bytes", NUMBER_FORMAT_BYTES_MAX);
        return NUMBER_FORMAT_MALFORMED;
    }
    read_subpattern(&r, &first, true);
    set_format(&r, &first, format);
    if (pattern.len == 0) { /* all digits, grouped by thousands */
        format->fraction_max = DIGITS_MAX * 10;
        format->group = 3;
    }
    if (r.at < pattern.len && r.why.data == NULL) {
        read_subpattern(&r, &second, false);
        struct affixes negative = keep_affixes(arena, &second);
        if (!slice_equal(negative.prefix, format->positive.prefix) ||
            !slice_equal(negative.suffix, format->positive.suffix))
            format->negative = negative;
        subpattern_deinit(&second);
    }
    subpattern_deinit(&first);
    *ret_format = format;
    *ret_why = r.why;
    return r.why.data == NULL ? 0 : NUMBER_FORMAT_MALFORMED;
}

/* --- Digits ------------------------------------------------------------------------------------------------------- */

/*
 * A decimal number: 0.d1d2d3… times ten to the power of `point`, without leading or trailing zeros.
 */
struct format_decimal {
    char *digits; /* room for one at least */
    int count;
    int point;
    bool negative;
};

static void trim_zeros(struct format_decimal *d)
{
    while (d->count > 0 && d->digits[d->count - 1] == '0')
        d->count--;
    if (d->count == 0)
        d->point = 0;
}

/* Parses a number in the form of dtoa_double(): "12.34E-5". `digits`: room for DIGITS_MAX. */
static void decimal_read(struct format_decimal *d, char *digits, const char *text)
{
    bool point = false;
    *d = (struct format_decimal){.digits = digits, .negative = *text == '-'};
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
    trim_zeros(d);
}

/*
 * Returns: whether rounding to `keep` digits rounds up, half to even. `exact` is the sign of the
 *          difference between the number and its shortest decimal form (compare_exact).
 */
static bool rounds_up(const struct format_decimal *d, int keep, int exact)
{
    char next = d->digits[keep];
    if (next != '5' || keep + 1 < d->count)
        return next >= '5';
    if (exact != 0)
        return exact > 0;
    return keep > 0 && (d->digits[keep - 1] - '0') % 2 != 0;
}

/* Rounds to `keep` digits, half to even; `exact` as in rounds_up(). */
static void decimal_round(struct format_decimal *d, int keep, int exact)
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
    trim_zeros(d);
}

/* Returns: the digit at a position; '0' outside of the stored digits. */
static char digit_at(const struct format_decimal *d, int at)
{
    return at >= 0 && at < d->count ? d->digits[at] : '0';
}

/*
 * Returns: >0, 0 or <0: the exact value of a double is above, equal to or below its shortest
 *          decimal form `d`. As in Java, integers below 2^63 are above: exponents round their halves up.
 */
static int compare_exact(const struct format_decimal *d, double number)
{
    char text[1200]; /* of a number with decimal places, or of one without: 2^53 or 309 digits before the point */
    char digits[DIGITS_MAX];
    struct format_decimal exact;
    int places = d->count > d->point ? d->count - d->point : 0, decimals = places > 0 ? PLACES_MAX : 0;
    if (number < 0x1p63 && number == floor(number))
        return 1;
    snprintf(text, sizeof text, "%.*f", decimals, number);
    size_t len = strlen(text), end = len - (size_t)(decimals - places);
    bool rest = strspn(text + end, "0") != len - end;
    text[end] = '\0';
    decimal_read(&exact, digits, text);
    if (exact.count == 0 || exact.point != d->point)
        return exact.count > 0 && exact.point > d->point ? 1 : -1;
    for (int i = 0; i < exact.count || i < d->count; i++)
        if (digit_at(&exact, i) != digit_at(d, i))
            return digit_at(&exact, i) > digit_at(d, i) ? 1 : -1;
    return rest;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* Appends a number without exponent. */
static void print_plain(struct buf *buf, const struct number_format *format, const struct format_decimal *d)
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

/*
 * Appends a number with exponent. The exponent is a multiple of whole_max if that is above
 * whole_min: "##0.##E0" is engineering notation.
 */
static void print_exponent(struct buf *buf, const struct number_format *format, const struct format_decimal *d)
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

/*
 * Appends a number, rounded as the format requires: to fraction_max places, or with exponents to
 * whole_max + fraction_max digits. `whole`: it is an integer, so its digits are exact.
 */
static void print_decimal(struct buf *buf, const struct number_format *format, struct format_decimal *d, double number,
                          bool whole)
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
    char text[DTOA_TEXT_MAX], digits[DIGITS_MAX];
    struct format_decimal d;
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
    decimal_read(&d, digits, text);
    print_decimal(buf, format, &d, number, false);
}

void number_print_i64(struct buf *buf, const struct number_format *format, int64_t number)
{
    char text[32], digits[DIGITS_MAX];
    struct format_decimal d;
    snprintf(text, sizeof text, "%lld%s", (long long)number,
             number == 0 || format->multiplier == 1 ? ""
             : format->multiplier == 100            ? "00"
                                                    : "000");
    decimal_read(&d, digits, text);
    print_decimal(buf, format, &d, 0, true);
}

void number_print_digits(struct buf *buf, const struct number_format *format, bool negative, struct slice digits,
                         int64_t scale)
{
    REQUIRE(digits.len > 0 && digits.len <= NUMBER_DIGITS_MAX && scale >= -NUMBER_DIGITS_MAX &&
            scale <= NUMBER_DIGITS_MAX);
    int shift = format->multiplier == 1 ? 0 : format->multiplier == 100 ? 2 : 3;
    struct format_decimal d = {.digits = mem_alloc(digits.len),
                               .count = (int)digits.len,
                               .point = (int)((int64_t)digits.len - scale) + shift,
                               .negative = negative};
    memcpy(d.digits, digits.data, digits.len);
    trim_zeros(&d);
    print_decimal(buf, format, &d, 0, true);
    mem_free(d.digits);
}
