/* SPDX-License-Identifier: Apache-2.0 */
/* Base64; see base64.h. */
#include "base/base64.h"

#include <string.h>

#include "base/check.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode_group(const char *with, const uint8_t *bytes, size_t count, char ret_digits[4])
{
    uint32_t bits = 0;
    REQUIRE(count >= 1 && count <= 3);
    for (size_t i = 0; i < 3; i++)
        bits = bits << 8 | (i < count ? bytes[i] : 0);
    for (size_t i = 0; i < 4; i++)
        ret_digits[i] = i <= count ? with[bits >> (18 - 6 * i) & 63] : '=';
}

void base64_encode(const uint8_t *bytes, size_t count, char ret_digits[4])
{
    encode_group(digits, bytes, count, ret_digits);
}

void base64_url_encode(const uint8_t bytes[3], char ret_digits[4])
{
    encode_group(url_digits, bytes, 3, ret_digits);
}

char base64_url_digit(uint64_t bits)
{
    return url_digits[bits & 63];
}

int base64_value(uint32_t digit)
{
    const char *found = digit > 0 && digit < 128 ? strchr(digits, (int)digit) : NULL;
    return found == NULL ? -1 : (int)(found - digits);
}
