/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Character. */
#include "script/value/letter.h"
#include "script/library/methods_text.h"

static bool character_is_digit(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_is_digit((uint16_t)a[1].i));
}

static bool character_is_letter(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_is_letter((uint16_t)a[1].i));
}

static bool character_is_letter_or_digit(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_is_letter((uint16_t)a[1].i) || letter_is_digit((uint16_t)a[1].i));
}

static bool character_is_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_lower((uint16_t)a[1].i) != (uint16_t)a[1].i);
}

static bool character_is_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_upper((uint16_t)a[1].i) != (uint16_t)a[1].i || a[1].i == 0xdf);
}

static bool character_is_whitespace(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, letter_is_space((uint16_t)a[1].i));
}

static bool character_to_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_char(letter_upper((uint16_t)a[1].i));
    return true;
}

static bool character_to_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_char(letter_lower((uint16_t)a[1].i));
    return true;
}

static int64_t digit_value(uint16_t c)
{
    if (letter_is_digit(c))
        return c - '0';
    c = letter_lower(c);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1;
}

static bool character_numeric_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    int64_t value = digit_value((uint16_t)a[1].i);
    return give_int(ret, n == 2 && value >= a[2].i ? -1 : value);
}

static bool character_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1];
    return true;
}

static bool character_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, a[1].i - a[2].i);
}

static bool character_char_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

static bool character_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)a, (void)n;
    *ret = value_char(0xffff);
    return true;
}

static const struct method character_methods[] = {
    M0("MAX_VALUE", METHOD_BOTH | METHOD_STATIC | METHOD_FIELD, CHAR, character_max),
    M1("isDigit", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_digit),
    M1("isLetter", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter),
    M1("isAlphabetic", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter),
    M1("isLetterOrDigit", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter_or_digit),
    M1("isUpperCase", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_upper),
    M1("isLowerCase", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_lower),
    M1("isWhitespace", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_whitespace),
    M1("toUpperCase", METHOD_BOTH | METHOD_STATIC, CHAR, CHAR, character_to_upper),
    M1("toLowerCase", METHOD_BOTH | METHOD_STATIC, CHAR, CHAR, character_to_lower),
    M1("toString", METHOD_BOTH | METHOD_STATIC, STRING, CHAR, methods_text_value_of),
    M1("valueOf", METHOD_BOTH | METHOD_STATIC, CHAR_BOX, CHAR, character_value_of),
    M1("getNumericValue", METHOD_BOTH | METHOD_STATIC, INT, INT, character_numeric_value),
    M2("digit", METHOD_BOTH | METHOD_STATIC, INT, INT, INT, character_numeric_value),
    M2("compare", METHOD_BOTH | METHOD_STATIC, INT, CHAR, CHAR, character_compare),
    M0("charValue", METHOD_BOTH, CHAR, character_char_value),
};

const struct method_table methods_character[] = {
    METHOD_TABLE(CHAR_BOX, character_methods),
    {0, 0, NULL},
};
