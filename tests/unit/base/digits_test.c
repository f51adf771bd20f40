/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: digits at the front of a text are read up to their limits, and the text is left unchanged
 * where there are too few. Method: rows of texts and limits, with the number and the rest.
 */
#include "../../lib/unit.h"

#include "base/digits.h"

static void test_digits_are_taken_between_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int min, max;
        const char *rest; /* NULL: refused */
        int64_t number;
    } rows[] = {
        {"12-3", 1, 4, "-3", 12},
        {"2026", 2, 2, "26", 20},
        {"0007", 4, 4, "", 7},
        {"x", 0, 4, "x", 0},
        {"", 1, 4, NULL, 0},
        {"1:", 2, 2, NULL, 0},
        {"999999999999999999", 1, 19, "", DIGITS_NUMBER_MAX},
        {"1000000000000000000", 1, 19, "", DIGITS_NUMBER_MAX},
        {"99999999999999999999999999999", 1, 29, "", DIGITS_NUMBER_MAX},
        {"0000000000000000000000000000001", 1, 40, "", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice text = slice_from(rows[i].text);
        int64_t number = -1;
        bool taken = digits_take(&text, rows[i].min, rows[i].max, &number);
        assert_int_equal(taken, rows[i].rest != NULL);
        assert_true(slice_is(text, taken ? rows[i].rest : rows[i].text));
        assert_int_equal(number, taken ? rows[i].number : -1);
    }
}

static void test_fractions_are_scaled(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int max, places;
        const char *rest; /* NULL: refused */
        int64_t number;
    } rows[] = {
        {"5Z", 9, 3, "Z", 500},
        {"123456789", 9, 3, "", 123},
        {"123456789", 9, 6, "", 123456},
        {"0001", 9, 3, "", 0},
        {"1234567890", 9, 9, "0", 123456789},
        {"25", 1, 3, "5", 200},
        {"", 9, 3, NULL, 0},
        {".5", 9, 3, NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice text = slice_from(rows[i].text);
        int64_t number = -1;
        bool taken = digits_take_fraction(&text, rows[i].max, rows[i].places, &number);
        assert_int_equal(taken, rows[i].rest != NULL);
        assert_true(slice_is(text, taken ? rows[i].rest : rows[i].text));
        assert_int_equal(number, taken ? rows[i].number : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits_are_taken_between_limits),
        cmocka_unit_test(test_fractions_are_scaled),
    };
    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
