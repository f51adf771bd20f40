/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: numbers are printed as Java prints them, with the fewest digits that read back. Method: a
 * table from the specification of Double.toString() and from recordings. For many bit patterns, all
 * decimals near the number are tried: with one digit less none may read back, and with as many
 * digits none that reads back may be nearer.
 */
#include "../../lib/unit.h"

#include "base/dtoa.h"
#include "base/rand.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_dtoa_prints_as_java(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1.5, "-1.5"},
        {100000, "100000.0"},
        {9999999, "9999999.0"},
        {1e7, "1.0E7"},
        {12345678, "1.2345678E7"},
        {0.001, "0.001"},
        {0.00123, "0.00123"},
        {0.000999, "9.99E-4"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {2e23, "2.0E23"},
        {1e23, "1.0E23"},
        {9007199254740993.0, "9.007199254740992E15"},
        {0x1p-44, "5.684341886080802E-14"},
        {DBL_MAX, "1.7976931348623157E308"},
        {DBL_MIN, "2.2250738585072014E-308"},
        {0x1p-1074, "4.9E-324"},
        {0x1p-1073, "9.9E-324"},
        {0x1.8p-1073, "1.5E-323"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {NAN, "NaN"},
        {-NAN, "NaN"},
        {-1.2345678901234567e-300, "-1.2345678901234568E-300"},
    };
    static const struct {
        float value;
        const char *text;
    } floats[] = {
        {0.1f, "0.1"},
        {16777216.0f, "1.6777216E7"},
        {0x1p-149f, "1.4E-45"},
        {FLT_MAX, "3.4028235E38"},
        {FLT_MIN, "1.1754944E-38"},
        {1.0f / 3, "0.33333334"},
        {-0.0f, "-0.0"},
        {33554432.0f, "3.3554432E7"},
    };
    char text[DTOA_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(dtoa_double(rows[i].value, text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        assert_int_equal(dtoa_float(floats[i].value, text), strlen(floats[i].text));
        assert_string_equal(text, floats[i].text);
    }
}

/* Returns: the number of digits from the first to the last one that is not 0. */
static int digit_count(const char *text)
{
    int count = 0, last = 0;

    for (; *text != '\0' && *text != 'E'; text++) {
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0'))
            count++;
        if (*text >= '1' && *text <= '9')
            last = count;
    }
    return last;
}

static bool same(const char *text, double value, bool is_float)
{
    return is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/*
 * Checks the decimals of `count` digits around a number, the nearest two on either side. `shorter`:
 * none of them may read back; otherwise none that reads back may be nearer than `text`.
 */
static void check_candidates(double value, bool is_float, const char *text, int count, bool shorter)
{
    char near[64];
    long long first;
    int exponent;

    snprintf(near, sizeof near, "%.*e", count - 1, value);
    exponent = atoi(strchr(near, 'e') + 1);
    first = 0;
    for (const char *c = near; *c != 'e'; c++)
        first = *c == '.' ? first : first * 10 + (*c - '0');
    for (long long at = first - 2; at <= first + 2; at++) {
        snprintf(near, sizeof near, "%llde%d", at, exponent - (count - 1));
        if (!same(near, value, is_float))
            continue;
        assert_false(shorter);
        long double other = fabsl(strtold(near, NULL) - (long double)value),
                    ours = fabsl(strtold(text, NULL) - (long double)value);
        assert_true(ours <= other);
    }
}

static void check(double value, bool is_float)
{
    char text[DTOA_TEXT_MAX];

    if (is_float)
        dtoa_float((float)value, text);
    else
        dtoa_double(value, text);
    assert_true(same(text, value, is_float));
    int count = digit_count(text);
    if (count > 2)
        check_candidates(value, is_float, text, count - 1, true);
    check_candidates(value, is_float, text, count < 2 ? 2 : count, false);
}

static void test_dtoa_prints_shortest_text(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, 1);
    for (int exponent = -1074; exponent < 1024; exponent++) { /* powers of two, and their neighbours */
        check(ldexp(1, exponent), false);
        check(nextafter(ldexp(1, exponent), 0) == 0 ? 1 : nextafter(ldexp(1, exponent), 0), false);
        if (exponent >= -149 && exponent < 128)
            check(ldexp(1, exponent), true);
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rng_next(&rng) >> 1;
        uint32_t narrow = (uint32_t)bits >> 1;
        double value;
        float small;
        memcpy(&value, &bits, sizeof value);
        memcpy(&small, &narrow, sizeof small);
        if (isfinite(value) && value != 0)
            check(value, false);
        if (isfinite(small) && small != 0)
            check((double)small, true);
        check((double)(bits % 1000000 + 1) / 1000, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtoa_prints_as_java),
        cmocka_unit_test(test_dtoa_prints_shortest_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
