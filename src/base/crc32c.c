/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C; see crc32c.h. */
#include "base/crc32c.h"

#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reversed */

static uint32_t table[256];

__attribute__((constructor)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value >> 1) ^ ((value & 1) != 0 ? POLYNOMIAL : 0);
        table[i] = value;
    }
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t len)
{
    uint64_t sum = ~crc;
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    for (; len > 0; at++, len--)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *at);
    return ~(uint32_t)sum;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? by_instruction(crc, bytes, len) : crc32c_by_table(crc, bytes, len);
}

#else

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return crc32c_by_table(crc, bytes, len);
}

#endif
