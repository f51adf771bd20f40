/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3; see siphash.h. */
#include "base/siphash.h"

#include <string.h>

static struct siphash_key process_key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

struct state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void mix(struct state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

static inline void take(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    s->v0 ^= word;
}

/*
 * Requires a little-endian processor, as SipHash reads words in that order; so does slice_hash().
 */
uint64_t siphash(const struct siphash_key *key, struct slice bytes)
{
    struct state s = {
        key->k0 ^ UINT64_C(0x736f6d6570736575),
        key->k1 ^ UINT64_C(0x646f72616e646f6d),
        key->k0 ^ UINT64_C(0x6c7967656e657261),
        key->k1 ^ UINT64_C(0x7465646279746573),
    };
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof word <= bytes.len; at += sizeof word) {
        memcpy(&word, bytes.data + at, sizeof word);
        take(&s, word);
    }
    word = 0;
    if (at < bytes.len)
        memcpy(&word, bytes.data + at, bytes.len - at);
    take(&s, word | (uint64_t)bytes.len << 56);
    s.v2 ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void siphash_set_key(const struct siphash_key *key)
{
    process_key = *key;
}

uint64_t siphash_keyed(struct slice bytes)
{
    return siphash(&process_key, bytes);
}
