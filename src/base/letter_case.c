/* SPDX-License-Identifier: Apache-2.0 */
/* Case of letters; see letter_case.h. */
#include "base/letter_case.h"

#include <stddef.h>

#include "base/check.h"

#define T LETTER_CASE_TOKENS
#define S LETTER_CASE_SCRIPTS
#define N LETTER_CASE_NAMES

/* A range in which capitals and lower-case letters alternate, a capital first. */
enum { ALTERNATE = 0 };

#define X(first, last, step, lower, upper) {first, last, step, lower, upper},

static const struct {
    uint32_t first, last; /* of the capitals; of all letters where they alternate */
    int32_t step;         /* from a capital to its lower-case letter; ALTERNATE */
    uint8_t lower, upper; /* the sets in which capitals, or lower-case letters, are mapped */
} rows[] = {
#include "base/letter_case.def"
};

#undef X
#undef T
#undef S
#undef N

enum { ROW_COUNT = sizeof rows / sizeof *rows };

uint32_t case_lower(enum letter_case_set set, uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    for (size_t i = 0; i < ROW_COUNT && rows[i].first <= c; i++) {
        if (c > rows[i].last || (rows[i].lower & set) == 0)
            continue;
        return rows[i].step != ALTERNATE ? c + (uint32_t)rows[i].step : c + ((c - rows[i].first) % 2 == 0);
    }
    return c;
}

uint32_t case_upper(enum letter_case_set set, uint32_t c)
{
    REQUIRE(set != LETTER_CASE_NAMES);
    if (c < 0x80)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        uint32_t capital = c - (uint32_t)rows[i].step;
        if (capital < rows[i].first || capital > rows[i].last || (rows[i].upper & set) == 0)
            continue;
        return rows[i].step != ALTERNATE ? capital : c - (c - rows[i].first) % 2;
    }
    return c;
}

bool case_is_upper(enum letter_case_set set, uint32_t c)
{
    return case_lower(set, c) != c;
}
