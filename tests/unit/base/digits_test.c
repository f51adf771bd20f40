/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: digits and offsets at the front of a text are read up to their limits, and the text is left
 * unchanged where there are too few. Method: rows of texts and limits, with the number and the rest.
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

static void test_offsets_are_taken_by_form(void **state)
{
    (void)state;
    static const struct digits_offset_form any = {DIGITS_ANY_COLONS, 1, 2, false};
    static const struct digits_offset_form iso = {DIGITS_COLONS, 1, 3, true};
    static const struct digits_offset_form plain = {DIGITS_NO_COLONS, 2, 3, false};
    static const struct {
        const struct digits_offset_form *form;
        const char *text;
        const char *rest; /* NULL: refused */
        int seconds;
    } rows[] = {
        {&any, "01", "", 3600},
        {&any, "0130", "", 5400},
        {&any, "01:30", "", 5400},
        {&any, "013", "3", 3600},
        {&any, "01:3", NULL, 0},
        {&any, "01:30:15", ":15", 5400},
        {&any, "99:99", "", (99 * 60 + 99) * 60}, /* the caller checks */
        {&any, "1", NULL, 0},
        {&any, "", NULL, 0},
        {&iso, "01:30:15", "", 5415},
        {&iso, "01:60:15", ":60:15", 3600},
        {&iso, "01:30:60", ":60", 5400},
        {&iso, "0130", "30", 3600},
        {&iso, "01:x", ":x", 3600},
        {&plain, "013015", "", 5415},
        {&plain, "0130", "", 5400},
        {&plain, "01", NULL, 0},
        {&plain, "01:30", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice text = slice_from(rows[i].text);
        struct digits_offset offset = {0};
        bool taken = digits_take_offset(&text, rows[i].form, &offset);
        assert_int_equal(taken, rows[i].rest != NULL);
        assert_true(slice_is(text, taken ? rows[i].rest : rows[i].text));
        assert_int_equal(digits_offset_seconds(&offset, false), rows[i].seconds);
        assert_int_equal(digits_offset_seconds(&offset, true), -rows[i].seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits_are_taken_between_limits),
        cmocka_unit_test(test_fractions_are_scaled),
        cmocka_unit_test(test_offsets_are_taken_by_form),
    };
    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
