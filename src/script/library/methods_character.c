/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Character. */
#include "script/value/character.h"
#include "script/library/methods_text.h"

static bool character_is_digit(struct call *call, struct value *ret)
{
    return give_boolean(ret, char_is_digit((uint16_t)call->args[0].i));
}

static bool character_is_letter(struct call *call, struct value *ret)
{
    return give_boolean(ret, char_is_letter((uint16_t)call->args[0].i));
}

static bool character_is_letter_or_digit(struct call *call, struct value *ret)
{
    return give_boolean(ret, char_is_letter((uint16_t)call->args[0].i) || char_is_digit((uint16_t)call->args[0].i));
}

static bool character_is_upper(struct call *call, struct value *ret)
{
    return give_boolean(ret, char_lower((uint16_t)call->args[0].i) != (uint16_t)call->args[0].i);
}

static bool character_is_lower(struct call *call, struct value *ret)
{
    return give_boolean(ret,
                        char_upper((uint16_t)call->args[0].i) != (uint16_t)call->args[0].i || call->args[0].i == 0xdf);
}

static bool character_is_whitespace(struct call *call, struct value *ret)
{
    return give_boolean(ret, char_is_space((uint16_t)call->args[0].i));
}

static bool character_to_upper(struct call *call, struct value *ret)
{
    *ret = value_char(char_upper((uint16_t)call->args[0].i));
    return true;
}

static bool character_to_lower(struct call *call, struct value *ret)
{
    *ret = value_char(char_lower((uint16_t)call->args[0].i));
    return true;
}

static int64_t digit_value(uint16_t c)
{
    if (char_is_digit(c))
        return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1;
}

static bool character_numeric_value(struct call *call, struct value *ret)
{
    int64_t value = digit_value((uint16_t)call->args[0].i);
    return give_int(ret, call->count == 2 && value >= call->args[1].i ? -1 : value);
}

static bool character_value_of(struct call *call, struct value *ret)
{
    *ret = call->args[0];
    return true;
}

static bool character_compare(struct call *call, struct value *ret)
{
    return give_int(ret, call->args[0].i - call->args[1].i);
}

static bool character_char_value(struct call *call, struct value *ret)
{
    *ret = call->self;
    return true;
}

static bool character_max(struct call *call, struct value *ret)
{
    (void)call;
    *ret = value_char(0xffff);
    return true;
}

static const struct method_row character_methods[] = {
    {"static char MAX_VALUE", BOTH, character_max},
    {"static boolean isDigit(int)", BOTH, character_is_digit},
    {"static boolean isLetter(int)", BOTH, character_is_letter},
    {"static boolean isAlphabetic(int)", BOTH, character_is_letter},
    {"static boolean isLetterOrDigit(int)", BOTH, character_is_letter_or_digit},
    {"static boolean isUpperCase(int)", BOTH, character_is_upper},
    {"static boolean isLowerCase(int)", BOTH, character_is_lower},
    {"static boolean isWhitespace(int)", BOTH, character_is_whitespace},
    {"static char toUpperCase(char)", BOTH, character_to_upper},
    {"static char toLowerCase(char)", BOTH, character_to_lower},
    {"static String toString(char)", BOTH, methods_text_value_of},
    {"static Character valueOf(char)", BOTH, character_value_of},
    {"static int getNumericValue(int)", BOTH, character_numeric_value},
    {"static int digit(int, int)", BOTH, character_numeric_value},
    {"static int compare(char, char)", BOTH, character_compare},
    {"char charValue()", BOTH, character_char_value},
};

const struct method_table methods_character[] = {
    METHOD_ROWS(CHAR_BOX, character_methods),
    {0},
};
