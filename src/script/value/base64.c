/* SPDX-License-Identifier: Apache-2.0 */
/* Base64; see base64.h. */
#include "script/value/base64.h"

#include <string.h>

#include "base/check.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t count, char ret_digits[4])
{
    uint32_t bits = 0;
    REQUIRE(count >= 1 && count <= 3);
    for (size_t i = 0; i < 3; i++)
        bits = bits << 8 | (i < count ? bytes[i] : 0);
    for (size_t i = 0; i < 4; i++)
        ret_digits[i] = i <= count ? digits[bits >> (18 - 6 * i) & 63] : '=';
}

int base64_value(uint32_t digit)
{
    const char *found = digit > 0 && digit < 128 ? strchr(digits, (int)digit) : NULL;
    return found == NULL ? -1 : (int)(found - digits);
}
