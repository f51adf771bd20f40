/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked to every program that uses cmocka: the environment variable CMOCKA_TEST_FILTER selects
 * its test cases, by a pattern with '*' and '?'. Without it all of them run.
 */
#include <stdlib.h>

#include "unit.h"

__attribute__((constructor)) static void select_cases(void)
{
    const char *pattern = getenv("CMOCKA_TEST_FILTER");
    if (pattern != NULL)
        cmocka_set_test_filter(pattern);
}
