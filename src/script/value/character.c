/* SPDX-License-Identifier: Apache-2.0 */
/* Characters; see character.h. */
#include "script/value/character.h"

#include "base/letter_case.h"

uint16_t char_upper(uint16_t c)
{
    return (uint16_t)case_upper(LETTER_CASE_SCRIPTS, c);
}

uint16_t char_lower(uint16_t c)
{
    return (uint16_t)case_lower(LETTER_CASE_SCRIPTS, c);
}

bool char_is_letter(uint16_t c)
{
    return char_upper(c) != c || char_lower(c) != c || c == 0xdf || c == 0xaa || c == 0xba ||
           (c >= 0x3400 && c <= 0x9fff) || (c >= 0x5d0 && c <= 0x5ea) || (c >= 0x620 && c <= 0x64a) ||
           (c >= 0x3040 && c <= 0x30ff) || (c >= 0xac00 && c <= 0xd7a3);
}

bool char_is_digit(uint16_t c)
{
    return c >= '0' && c <= '9';
}

bool char_is_space(uint16_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x1680 || (c >= 0x2000 && c <= 0x200a && c != 0x2007) ||
           c == 0x2028 || c == 0x2029 || c == 0x205f || c == 0x3000;
}

int char_compare_ignore_case(struct run *run, const struct text *a, const struct text *b)
{
    size_t common = a->length < b->length ? a->length : b->length;
    for (size_t i = 0; i < common; i++) {
        run_work(run, i % RUN_UNITS_PER_STEP == 0 ? RUN_UNITS_PER_STEP : 0);
        int x = char_lower(char_upper(text_at(a, i))), y = char_lower(char_upper(text_at(b, i)));
        if (x != y)
            return x - y;
    }
    return (int)a->length - (int)b->length;
}
