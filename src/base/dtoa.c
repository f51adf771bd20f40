/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point numbers as text; see dtoa.h. */
#include "base/dtoa.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT_MIN = 2,
    COUNT_DOUBLE = 17, /* sufficient for every double */
    COUNT_FLOAT = 9,
    /* The search starts here: few computed numbers need less, and trailing zeros are removed. */
    COUNT_DOUBLE_USUAL = 15,
    COUNT_FLOAT_USUAL = 6,
};

#define DOUBLE_SUBNORMAL_BELOW 0x1p-1022
#define FLOAT_SUBNORMAL_BELOW 0x1p-126

/* A positive number d.ddd × 10^exponent. */
struct dtoa_decimal {
    char digits[COUNT_DOUBLE + 1];
    int count;
    int exponent;
};

static bool reads_back(const struct dtoa_decimal *decimal, double value, bool is_float)
{
    char text[40];

    snprintf(text, sizeof text, "%c.%.*se%d", decimal->digits[0], decimal->count - 1, decimal->digits + 1,
             decimal->exponent);
    return is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Returns: the decimal of `count` digits that is nearest to the value. */
static struct dtoa_decimal nearest_decimal(double value, int count)
{
    struct dtoa_decimal decimal = {.count = 0};
    char text[40];
    const char *c = text;

    snprintf(text, sizeof text, "%.*e", count - 1, value);
    for (; *c != 'e'; c++)
        if (*c != '.')
            decimal.digits[decimal.count++] = *c;
    decimal.exponent = atoi(c + 1);
    return decimal;
}

/* Returns: the next greater decimal with the same number of digits. */
static struct dtoa_decimal decimal_above(struct dtoa_decimal decimal)
{
    int i = decimal.count - 1;

    while (i >= 0 && decimal.digits[i] == '9')
        decimal.digits[i--] = '0';
    if (i >= 0) {
        decimal.digits[i]++;
    } else {
        decimal.digits[0] = '1';
        decimal.exponent++;
    }
    return decimal;
}

/*
 * Returns: the shortest decimal that reads back as the value, up to the minimum counts.
 *
 * A text reads back as the value if it is within half the distance to the neighbouring numbers.
 * Usually both neighbours are equally distant: if any decimal of some length reads back, the
 * nearest one does. A power of two has its lower neighbour at half the distance: there the nearest
 * decimal may be too low while the next greater one reads back.
 */
static struct dtoa_decimal shortest_decimal(double value, bool is_float)
{
    int most = is_float ? COUNT_FLOAT : COUNT_DOUBLE;
    bool tiny = value < (is_float ? FLOAT_SUBNORMAL_BELOW : DOUBLE_SUBNORMAL_BELOW);
    int exponent, count = tiny ? COUNT_MIN : is_float ? COUNT_FLOAT_USUAL : COUNT_DOUBLE_USUAL;
    bool power = frexp(value, &exponent) == 0.5;

    for (;; count++) {
        struct dtoa_decimal decimal = nearest_decimal(value, count);
        if (count == most || reads_back(&decimal, value, is_float))
            return decimal;
        decimal = decimal_above(decimal);
        if (power && reads_back(&decimal, value, is_float))
            return decimal;
    }
}

static char *put_digits(char *to, const struct dtoa_decimal *decimal, int from, int until)
{
    for (int i = from; i < until; i++)
        *to++ = i >= 0 && i < decimal->count ? decimal->digits[i] : '0';
    return to;
}

static size_t print_number(double value, bool is_float, char out[DTOA_TEXT_MAX])
{
    char *to = out;

    if (signbit(value) && !isnan(value))
        *to++ = '-';
    value = fabs(value);
    if (value == 0 || !isfinite(value)) {
        strcpy(to, isnan(value) ? "NaN" : value == 0 ? "0.0" : "Infinity");
        return strlen(out);
    }
    struct dtoa_decimal decimal = shortest_decimal(value, is_float);
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;

    bool plain = value >= 1e-3 && value < 1e7;
    int whole = !plain ? 1 : decimal.exponent + 1; /* digits before the point; below 1 the point is followed by zeros */
    if (whole < 1)
        *to++ = '0';
    to = put_digits(to, &decimal, 0, whole);
    *to++ = '.';
    to = put_digits(to, &decimal, whole, decimal.count > whole ? decimal.count : whole + 1);
    *to = '\0';
    return (size_t)(to - out) +
           (plain ? 0 : (size_t)snprintf(to, (size_t)(out + DTOA_TEXT_MAX - to), "E%d", decimal.exponent));
}

size_t dtoa_double(double value, char out[DTOA_TEXT_MAX])
{
    return print_number(value, false, out);
}

size_t dtoa_float(float value, char out[DTOA_TEXT_MAX])
{
    return print_number((double)value, true, out);
}
