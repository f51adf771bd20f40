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

/* Ranges of capitals, ascending. */
static const struct {
    uint32_t first, last; /* of the capitals; of all letters where they alternate */
    int32_t step;         /* from a capital to its lower-case letter; ALTERNATE */
    uint8_t lower, upper; /* the sets in which capitals, or lower-case letters, are mapped */
} rows[] = {
    {'A', 'Z', 32, T | S | N, T | S},
    {0xc0, 0xd6, 32, T | S | N, T | S},
    {0xd8, 0xde, 32, T | S | N, T | S},
    {0x100, 0x12f, ALTERNATE, T | S | N, T | S},
    {0x130, 0x130, 'i' - 0x130, T | N, 0},
    {0x132, 0x137, ALTERNATE, T | S | N, T | S},
    {0x139, 0x148, ALTERNATE, T | S | N, T | S},
    {0x14a, 0x177, ALTERNATE, T | S | N, T | S},
    {0x178, 0x178, 0xff - 0x178, T | N, T | S},
    {0x179, 0x17e, ALTERNATE, T | S | N, T | S},
    {0x1cd, 0x1dc, ALTERNATE, T | N, T},
    {0x1de, 0x1ef, ALTERNATE, T | N, T},
    {0x1f8, 0x21f, ALTERNATE, T | N, T},
    {0x222, 0x233, ALTERNATE, T | N, T},
    {0x370, 0x373, ALTERNATE, T, T},
    {0x386, 0x386, 38, T | N, T},
    {0x388, 0x38a, 37, T | N, T},
    {0x38b, 0x38b, 37, N, 0}, /* not assigned */
    {0x38c, 0x38c, 64, T | N, T},
    {0x38d, 0x38d, 64, N, 0}, /* not assigned */
    {0x38e, 0x38f, 63, T | N, T},
    {0x391, 0x3a1, 32, T | S | N, T | S},
    {0x3a2, 0x3a2, 32, S, 0}, /* not assigned */
    {0x3a3, 0x3a9, 32, T | S | N, T | S},
    {0x3aa, 0x3ab, 32, T | N, T},
    {0x3d8, 0x3ef, ALTERNATE, T | N, T},
    {0x400, 0x40f, 80, T | S | N, T | S},
    {0x410, 0x42f, 32, T | S | N, T | S},
    {0x460, 0x481, ALTERNATE, T | N, T},
    {0x48a, 0x4bf, ALTERNATE, T | N, T},
    {0x4c1, 0x4ce, ALTERNATE, T | N, T},
    {0x4d0, 0x52f, ALTERNATE, T | N, T},
    {0x531, 0x556, 48, T | N, T},
    {0x10a0, 0x10c5, 0x2d00 - 0x10a0, N, 0},
    {0x13a0, 0x13ef, 0xab70 - 0x13a0, N, 0},
    {0x13f0, 0x13f5, 8, N, 0},
    {0x1e00, 0x1e95, ALTERNATE, T | N, T},
    {0x1ea0, 0x1eff, ALTERNATE, T | N, T},
    {0x2160, 0x216f, 16, N, 0},
    {0x24b6, 0x24cf, 26, N, 0},
    {0x2c00, 0x2c2e, 48, N, 0},
    {0x2c80, 0x2ce3, ALTERNATE, N, 0},
    {0xa640, 0xa66d, ALTERNATE, N, 0},
    {0xa722, 0xa72f, ALTERNATE, N, 0},
    {0xff21, 0xff3a, 32, T | N, T},
    {0x10400, 0x10427, 40, T | N, T},
    {0x1e900, 0x1e921, 34, N, 0},
};

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
