/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka, with the headers it wants first. */
#ifndef TL_TESTS_LIB_UNIT_H
#define TL_TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/slice.h"

#define assert_slice_equal(actual, text)                                               \
    do {                                                                               \
        struct slice actual_ = (actual);                                               \
        struct slice expected_ = slice_from(text);                                     \
        if (!slice_equal(actual_, expected_))                                          \
            fail_msg("got '%.*s', expected '%s'", SLICE_ARG(actual_), expected_.data); \
    } while (0)

#endif
