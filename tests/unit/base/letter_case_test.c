/* SPDX-License-Identifier: Apache-2.0 */
/* Case of letters: samples of each set, and that no set changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/letter_case.h"

enum { CODE_POINTS = 0x110000 };

static void test_letters_map_by_set(void **state)
{
    (void)state;
    static const struct {
        uint32_t capital, small;
        unsigned lower, upper; /* sets */
    } rows[] = {
        {'A', 'a', 7, 3},     {0xc4, 0xe4, 7, 3},     {0x139, 0x13a, 7, 3},     {0x178, 0xff, 5, 3},
        {0x130, 'i', 5, 0},   {0x1e00, 0x1e01, 5, 1}, {0x38f, 0x3ce, 5, 1},     {0x3a9, 0x3c9, 7, 3},
        {0x42f, 0x44f, 7, 3}, {0x10a0, 0x2d00, 4, 0}, {0x10400, 0x10428, 5, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned set = LETTER_CASE_TOKENS; set <= LETTER_CASE_NAMES; set *= 2) {
            bool lower = (rows[i].lower & set) != 0;
            assert_int_equal(case_lower(set, rows[i].capital), lower ? rows[i].small : rows[i].capital);
            assert_int_equal(case_is_upper(set, rows[i].capital), lower);
            assert_false(case_is_upper(set, rows[i].small));
        }
        for (unsigned set = LETTER_CASE_TOKENS; set <= LETTER_CASE_SCRIPTS; set *= 2) {
            uint32_t small = rows[i].small, other = small == 'i' ? 'I' : small;
            assert_int_equal(case_upper(set, small), (rows[i].upper & set) != 0 ? rows[i].capital : other);
        }
    }
}

/* The checksums are those of the functions that 0.1.0-core5 had for each use. */
static void test_sets_map_as_recorded(void **state)
{
    (void)state;
    static const uint32_t recorded[] = {0xbd56f562, 0x93d1112b, 0x44d0badc, 0x94b5c497, 0xb49bde06};
    uint32_t sums[sizeof recorded / sizeof *recorded] = {0};
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        uint32_t results[] = {case_lower(LETTER_CASE_TOKENS, c), case_upper(LETTER_CASE_TOKENS, c),
                              case_lower(LETTER_CASE_SCRIPTS, c), case_upper(LETTER_CASE_SCRIPTS, c),
                              case_is_upper(LETTER_CASE_NAMES, c)};
        for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
            sums[i] = crc32c(sums[i], &results[i], sizeof results[i]);
    }
    assert_memory_equal(sums, recorded, sizeof recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_map_by_set),
        cmocka_unit_test(test_sets_map_as_recorded),
    };
    return cmocka_run_group_tests_name("letter_case", tests, NULL, NULL);
}
