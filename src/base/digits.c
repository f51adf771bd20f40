/* SPDX-License-Identifier: Apache-2.0 */
/* Digits at the front of a text; see digits.h. */
#include "base/digits.h"

#include "base/check.h"

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

/* Parses minutes or seconds. Returns: 1; 0, with `text` unchanged, if they are not there; -1: a colon is refused. */
static int take_sixtieths(struct slice *text, const struct digits_offset_form *form, int *ret_number)
{
    struct slice rest = *text;
    int64_t number;
    bool colon = form->colons != DIGITS_NO_COLONS && slice_take_byte(&rest, ':');
    if (form->colons == DIGITS_COLONS && !colon)
        return 0;
    if (!digits_take(&rest, 2, 2, &number))
        return colon && form->colons == DIGITS_ANY_COLONS ? -1 : 0;
    if (form->leaves_large && number > 59)
        return 0;
    *text = rest;
    *ret_number = (int)number;
    return 1;
}

bool digits_take_offset(struct slice *text, const struct digits_offset_form *form, struct digits_offset *ret_offset)
{
    REQUIRE(form->parts_min >= 1 && form->parts_min <= form->parts_max && form->parts_max <= 3);
    struct slice rest = *text;
    int64_t hours;
    int parts[3] = {0}, count = 1, taken = 1;
    if (!digits_take(&rest, 2, 2, &hours))
        return false;
    parts[0] = (int)hours;
    while (count < form->parts_max && (taken = take_sixtieths(&rest, form, &parts[count])) > 0)
        count++;
    if (taken < 0 || count < form->parts_min)
        return false;
    *text = rest;
    *ret_offset = (struct digits_offset){parts[0], parts[1], parts[2]};
    return true;
}
