/* SPDX-License-Identifier: Apache-2.0 */
/* Shard numbers for replies; see shard.h. */
#include "mapping/shard.h"

#include "base/check.h"
#include "base/little_endian.h"
#include "mapping/analysis_internal.h"

/*
 * UTF-16 code units that are hashed. Ids have at most 512 bytes; of a longer routing value, only
 * the first code units count.
 */
enum { CODE_UNITS_MAX = 4096 };

static uint32_t rotate_left(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t mix_block(uint32_t block)
{
    return rotate_left(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t finish_hash(uint32_t hash)
{
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

uint32_t shard_murmur3(const void *bytes, size_t len, uint32_t seed)
{
    const uint8_t *data = bytes;
    uint32_t hash = seed;
    size_t whole = len & ~(size_t)3;
    for (size_t i = 0; i < whole; i += 4)
        hash = rotate_left(hash ^ mix_block(little_endian_get_u32((const char *)data + i)), 13) * 5 + 0xe6546b64u;
    uint32_t tail = 0;
    for (size_t i = len; i > whole; i--)
        tail = tail << 8 | data[i - 1];
    if (len != whole)
        hash ^= mix_block(tail);
    return finish_hash(hash ^ (uint32_t)len);
}

/* Writes the UTF-16 code units of a text. Returns: their number, at most CODE_UNITS_MAX. */
static size_t utf16_units(struct slice text, uint16_t units[CODE_UNITS_MAX])
{
    size_t count = 0;
    while (text.len > 0 && count + 2 <= CODE_UNITS_MAX) {
        uint32_t point = utf8__take(&text);
        if (point >= 0x10000) {
            units[count++] = (uint16_t)(0xd7c0 + (point >> 10));
            units[count++] = (uint16_t)(0xdc00 | (point & 0x3ff));
        } else {
            units[count++] = (uint16_t)point;
        }
    }
    return count;
}

uint32_t shard_of(struct slice routing, uint32_t shards)
{
    REQUIRE(shards > 0);
    uint16_t units[CODE_UNITS_MAX];
    uint8_t bytes[2 * CODE_UNITS_MAX];
    size_t count = utf16_units(routing, units);
    for (size_t i = 0; i < count; i++) {
        bytes[2 * i] = (uint8_t)units[i];
        bytes[2 * i + 1] = (uint8_t)(units[i] >> 8);
    }
    int64_t remainder = (int32_t)shard_murmur3(bytes, 2 * count, 0) % (int64_t)shards;
    return (uint32_t)(remainder < 0 ? remainder + shards : remainder);
}

uint32_t shard_of_djb(struct slice routing, uint32_t shards)
{
    REQUIRE(shards > 0);
    uint16_t units[CODE_UNITS_MAX];
    size_t count = utf16_units(routing, units);
    uint32_t hash = 5381;
    for (size_t i = 0; i < count; i++)
        hash = hash * 33 + units[i];
    int64_t remainder = (int32_t)hash % (int64_t)shards;
    return (uint32_t)(remainder < 0 ? -remainder : remainder);
}
