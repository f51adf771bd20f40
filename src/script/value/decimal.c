/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals of any size: an integer and a scale; see big.h. */
#include "script/value/big.h"

#include <stdlib.h>

/* Maximum number of digits that scaling adds; a larger result fails. */
#define DECIMAL_SCALE_MAX 100000

struct decimal *decimal_new(struct run *run, struct big *unscaled, int64_t scale)
{
    if (unscaled == NULL)
        return NULL;
    if (scale > DECIMAL_SCALE_MAX || scale < -DECIMAL_SCALE_MAX) {
        run_throw(run, CLASS_ARITHMETIC_EXCEPTION, scale > 0 ? "Underflow" : "Overflow");
        return NULL;
    }
    struct decimal *decimal = run_object(run, sizeof *decimal, CLASS_BIG_DECIMAL);
    decimal->unscaled = unscaled;
    decimal->scale = (int32_t)scale;
    return decimal;
}

struct decimal *decimal_from_slice(struct run *run, struct slice text)
{
    char digits[512];
    size_t count = 0, i = 0;
    int64_t scale = 0, exponent = 0;
    bool point = false, any = false;
    if (i < text.len && (text.data[i] == '-' || text.data[i] == '+'))
        digits[count++] = text.data[i++];
    for (; i < text.len && count + 1 < sizeof digits; i++) {
        char c = text.data[i];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            digits[count++] = c;
            scale += point;
            any = true;
        } else {
            break;
        }
    }
    if (any && i < text.len && (text.data[i] == 'e' || text.data[i] == 'E')) {
        struct slice rest = slice_from_offset(text, i + 1);
        if (rest.len > 0 && rest.data[0] == '+')
            rest = slice_from_offset(rest, 1);
        if (!slice_to_i64(rest, &exponent) || exponent > DECIMAL_SCALE_MAX || exponent < -DECIMAL_SCALE_MAX)
            return NULL;
        i = text.len;
    }
    if (!any || i < text.len)
        return NULL;
    return decimal_new(run, big_from_digits(run, slice_make(digits, count)), scale - exponent);
}

/* Java's constructor parses longer texts differently. */
#define SHORT_DIGITS_MAX 18

bool decimal_refuse(struct run *run, struct slice text)
{
    size_t digits = 0, points = 0, i = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    const char *missing = "Character array is missing \"exponent\" mark 'e' or 'E'.";
    for (; i < text.len && points < 2 && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        bool digit = text.data[i] >= '0' && text.data[i] <= '9';
        digits += digit;
        points += text.data[i] == '.';
        if (!digit && text.data[i] != '.' && text.len > SHORT_DIGITS_MAX)
            return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "%s", missing);
        if (!digit && text.data[i] != '.')
            return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION,
                             "Character %c is neither a decimal digit number, decimal point, nor \"e\" notation "
                             "exponential mark.",
                             text.data[i]);
    }
    if (points == 2)
        return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "Character array contains more than one decimal point.");
    bool empty = digits == 0 && i > 0 && i >= text.len;
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "%s", empty ? "No digits found." : missing);
}

static struct big *times_ten_to(struct run *run, const struct big *a, int64_t power)
{
    struct big *ten = big_from_i64(run, 10);
    struct big *factor = ten == NULL ? NULL : big_power(run, ten, (uint64_t)power);
    return factor == NULL ? NULL : big_multiply(run, a, factor);
}

/* Scales both operands to the larger of the two scales. */
static bool align_scales(struct run *run, const struct decimal *a, const struct decimal *b, const struct big **ret_a,
                         const struct big **ret_b)
{
    *ret_a = a->unscaled;
    *ret_b = b->unscaled;
    if (a->scale < b->scale)
        *ret_a = times_ten_to(run, a->unscaled, (int64_t)b->scale - a->scale);
    else if (b->scale < a->scale)
        *ret_b = times_ten_to(run, b->unscaled, (int64_t)a->scale - b->scale);
    return *ret_a != NULL && *ret_b != NULL;
}

struct decimal *decimal_add(struct run *run, const struct decimal *a, const struct decimal *b)
{
    const struct big *x, *y;
    if (!align_scales(run, a, b, &x, &y))
        return NULL;
    return decimal_new(run, big_add(run, x, y), a->scale > b->scale ? a->scale : b->scale);
}

struct decimal *decimal_subtract(struct run *run, const struct decimal *a, const struct decimal *b)
{
    const struct big *x, *y;
    if (!align_scales(run, a, b, &x, &y))
        return NULL;
    return decimal_new(run, big_subtract(run, x, y), a->scale > b->scale ? a->scale : b->scale);
}

struct decimal *decimal_multiply(struct run *run, const struct decimal *a, const struct decimal *b)
{
    return decimal_new(run, big_multiply(run, a->unscaled, b->unscaled), (int64_t)a->scale + b->scale);
}

int decimal_compare(struct run *run, const struct decimal *a, const struct decimal *b)
{
    const struct big *x, *y;
    return align_scales(run, a, b, &x, &y) ? big_compare(x, y) : 0;
}

/* Returns: whether a quotient with remainder `rest` is rounded away from zero. */
static bool rounds_away(struct run *run, const struct big *quotient, const struct big *rest, const struct big *divisor,
                        bool negative, int rounding)
{
    struct big *twice = big_add(run, rest, rest);
    if (twice == NULL || rest->count == 0)
        return false;
    struct big *divisor_size = divisor->negative ? big_negate(run, divisor) : NULL;
    struct big *twice_size = twice->negative ? big_negate(run, twice) : twice;
    if ((divisor->negative && divisor_size == NULL) || twice_size == NULL)
        return false;
    int half = big_compare(twice_size, divisor_size == NULL ? divisor : divisor_size);
    bool odd = quotient->count > 0 && (quotient->limbs[0] & 1);
    switch (rounding) {
    case ROUND_UP: return true;
    case ROUND_CEILING: return !negative;
    case ROUND_FLOOR: return negative;
    case ROUND_HALF_UP: return half >= 0;
    case ROUND_HALF_DOWN: return half > 0;
    case ROUND_HALF_EVEN: return half > 0 || (half == 0 && odd);
    default: return false;
    }
}

static struct big *divide_rounded(struct run *run, const struct big *a, const struct big *b, int rounding)
{
    struct big *quotient, *rest;
    if (!big_divide(run, a, b, &quotient, &rest))
        return NULL;
    if (rest->count > 0 && rounding == ROUND_UNNECESSARY) {
        run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Rounding necessary");
        return NULL;
    }
    bool negative = a->negative != b->negative;
    if (!rounds_away(run, quotient, rest, b, negative, rounding))
        return quotient;
    struct big *one = big_from_i64(run, negative ? -1 : 1);
    return one == NULL ? NULL : big_add(run, quotient, one);
}

struct decimal *decimal_set_scale(struct run *run, const struct decimal *a, int64_t scale, int rounding)
{
    if (scale > DECIMAL_SCALE_MAX || scale < -DECIMAL_SCALE_MAX)
        return decimal_new(run, a->unscaled, scale);
    if (scale >= a->scale)
        return decimal_new(run, times_ten_to(run, a->unscaled, scale - a->scale), scale);
    struct big *one = big_from_i64(run, 1);
    struct big *factor = one == NULL ? NULL : times_ten_to(run, one, a->scale - scale);
    return factor == NULL ? NULL : decimal_new(run, divide_rounded(run, a->unscaled, factor, rounding), scale);
}

/* Removes trailing zeros while the scale stays at or above `lowest`. */
static struct decimal *strip_to(struct run *run, const struct decimal *a, int64_t lowest)
{
    struct big *unscaled = a->unscaled, *ten = big_from_i64(run, 10);
    int64_t scale = a->scale;
    while (ten != NULL && scale > lowest && unscaled->count > 0) {
        struct big *quotient, *rest;
        if (!big_divide(run, unscaled, ten, &quotient, &rest))
            return NULL;
        if (rest->count > 0)
            break;
        unscaled = quotient;
        scale--;
    }
    if (unscaled->count == 0 && scale > lowest)
        scale = lowest;
    return decimal_new(run, unscaled, scale);
}

struct decimal *decimal_strip(struct run *run, const struct decimal *a)
{
    return a->unscaled->count == 0 ? decimal_new(run, a->unscaled, 0) : strip_to(run, a, -DECIMAL_SCALE_MAX);
}

/*
 * Returns: whether the expansion is finite: the reduced divisor has only the prime factors 2 and 5.
 */
static bool divide_exactly(struct run *run, const struct decimal *a, const struct decimal *b,
                           struct decimal **ret_exact)
{
    *ret_exact = NULL;
    /* Enough digits for any fraction that ends: 10 a 3 bits of the divisor. */
    int64_t extra = (int64_t)big_digits(b->unscaled) * 10 / 3 + 1;
    struct big *scaled = times_ten_to(run, a->unscaled, extra), *quotient, *rest;
    if (scaled == NULL || !big_divide(run, scaled, b->unscaled, &quotient, &rest))
        return false;
    if (rest->count > 0)
        return true;
    int64_t preferred = (int64_t)a->scale - b->scale;
    struct decimal *whole = decimal_new(run, quotient, preferred + extra);
    *ret_exact = whole == NULL ? NULL : strip_to(run, whole, preferred);
    return *ret_exact != NULL;
}

struct decimal *decimal_divide(struct run *run, const struct decimal *a, const struct decimal *b)
{
    if (b->unscaled->count == 0) {
        run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Division %s", a->unscaled->count == 0 ? "undefined" : "by zero");
        return NULL;
    }
    struct decimal *exact;
    if (!divide_exactly(run, a, b, &exact) || exact != NULL)
        return exact;
    size_t a_digits = big_digits(a->unscaled), b_digits = big_digits(b->unscaled);
    int64_t precision = (int64_t)(a_digits > b_digits ? a_digits : b_digits) + 10;
    /*
     * Scale so far that the quotient has at least `precision` digits, then round to exactly that
     * many.
     */
    int64_t shift = precision + (int64_t)b_digits - (int64_t)a_digits + 1;
    int64_t least = 10;
    least = a->scale > least ? a->scale : least;
    least = b->scale > least ? b->scale : least;
    struct big *scaled = times_ten_to(run, a->unscaled, shift > 0 ? shift : 0), *quotient;
    if (scaled == NULL || !big_divide(run, scaled, b->unscaled, &quotient, NULL))
        return NULL;
    int64_t scale = (int64_t)a->scale - b->scale + (shift > 0 ? shift : 0);
    int64_t digits = (int64_t)big_digits(quotient);
    int64_t rounded_scale = scale - (digits > precision ? digits - precision : 0);
    struct decimal *rough = decimal_new(run, quotient, scale);
    struct decimal *result = rough == NULL ? NULL : decimal_set_scale(run, rough, rounded_scale, ROUND_HALF_UP);
    if (result == NULL || result->scale <= least)
        return result;
    return decimal_set_scale(run, result, least, ROUND_HALF_UP);
}

struct slice decimal_plain(struct run *run, const struct decimal *a)
{
    struct slice digits = big_slice(run, a->unscaled);
    if (a->scale <= 0) {
        int zeros = a->unscaled->count == 0 ? 0 : -a->scale;
        return zeros == 0 ? digits : run_printf(run, "%.*s%0*d", SLICE_ARG(digits), zeros, 0);
    }
    bool negative = a->unscaled->negative;
    if (negative)
        digits = slice_from_offset(digits, 1);
    const char *sign = negative ? "-" : "";
    if (digits.len > (size_t)a->scale) {
        size_t whole = digits.len - (size_t)a->scale;
        return run_printf(run, "%s%.*s.%.*s", sign, (int)whole, digits.data, a->scale, digits.data + whole);
    }
    int zeros = a->scale - (int)digits.len;
    if (zeros == 0)
        return run_printf(run, "%s0.%.*s", sign, SLICE_ARG(digits));
    return run_printf(run, "%s0.%0*d%.*s", sign, zeros, 0, SLICE_ARG(digits));
}

struct slice decimal_slice(struct run *run, const struct decimal *a)
{
    struct slice digits = big_slice(run, a->unscaled);
    size_t count = digits.len - a->unscaled->negative;
    int64_t adjusted = (int64_t)count - 1 - a->scale;
    if (a->scale == 0)
        return digits;
    if (a->scale > 0 && adjusted >= -6)
        return decimal_plain(run, a);
    const char *sign = a->unscaled->negative ? "-" : "";
    const char *first = digits.data + a->unscaled->negative;
    if (count == 1)
        return run_printf(run, "%s%cE%+lld", sign, first[0], (long long)adjusted);
    return run_printf(run, "%s%c.%.*sE%+lld", sign, first[0], (int)count - 1, first + 1, (long long)adjusted);
}

double decimal_to_double(struct run *run, const struct decimal *a)
{
    struct slice digits = big_slice(run, a->unscaled);
    return strtod(run_printf(run, "%.*se%d", SLICE_ARG(digits), -a->scale).data, NULL);
}
