/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1; see sha1.h. */
#include "script/library/sha1.h"

#include <stdio.h>

static uint32_t rotate_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static void sha1_block(uint32_t h[5], const uint8_t block[64])
{
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], s[5];
    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)block[t * 4] << 24 | (uint32_t)block[t * 4 + 1] << 16 | (uint32_t)block[t * 4 + 2] << 8 |
               block[t * 4 + 3];
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    memcpy(s, h, sizeof s);
    for (unsigned t = 0; t < 80; t++) {
        uint32_t b = s[1], c = s[2], d = s[3];
        uint32_t f = t < 20 ? (b & c) | (~b & d) : t >= 40 && t < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t next = rotate_left(s[0], 5) + f + s[4] + constants[t / 20] + w[t];
        s[4] = d;
        s[3] = c;
        s[2] = rotate_left(b, 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        h[i] += s[i];
}

void sha1_hex(struct slice bytes, char out[41])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t whole = bytes.len / 64 * 64, rest = bytes.len - whole;
    for (size_t i = 0; i < whole; i += 64)
        sha1_block(h, (const uint8_t *)bytes.data + i);
    uint8_t tail[128] = {0};
    size_t tail_len = rest < 56 ? 64 : 128;
    if (rest > 0)
        memcpy(tail, bytes.data + whole, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[tail_len - 1 - i] = (uint8_t)((uint64_t)bytes.len * 8 >> (8 * i));
    for (size_t i = 0; i < tail_len; i += 64)
        sha1_block(h, tail + i);
    for (unsigned i = 0; i < 5; i++)
        snprintf(out + i * 8, 9, "%08x", h[i]);
}
