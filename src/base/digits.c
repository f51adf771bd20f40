/* SPDX-License-Identifier: Apache-2.0 */
/* Digits at the front of a text; see digits.h. */
#include "base/digits.h"

static bool is_digit_at(struct slice text, int at)
{
    return (size_t)at < text.len && text.data[at] >= '0' && text.data[at] <= '9';
}

bool digits_take(struct slice *text, int min, int max, int64_t *ret_number)
{
    int64_t number = 0;
    int count = 0;
    while (count < max && is_digit_at(*text, count)) {
        int digit = text->data[count++] - '0';
        number = number > (DIGITS_NUMBER_MAX - digit) / 10 ? DIGITS_NUMBER_MAX : number * 10 + digit;
    }
    if (count < min)
        return false;
    *text = slice_from_offset(*text, (size_t)count);
    *ret_number = number;
    return true;
}

bool digits_take_fraction(struct slice *text, int max, int places, int64_t *ret_number)
{
    int64_t number = 0;
    int count = 0;
    for (; count < max && is_digit_at(*text, count); count++)
        if (count < places)
            number = number * 10 + (text->data[count] - '0');
    if (count == 0)
        return false;
    for (int place = count; place < places; place++)
        number *= 10;
    *text = slice_from_offset(*text, (size_t)count);
    *ret_number = number;
    return true;
}
