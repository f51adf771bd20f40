/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of segment headers and records; see segment.h. */
#include "cmdlog/segment.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

static const char magic[8] = {'T', 'i', 'd', 'e', 'l', 'o', 'g', '\n'};

enum { SEGMENT_VERSION = 1 };

/*
 * Fields by offset: 0 magic, 8 checksum of the bytes from 12 on, 12 version, 16 identity, 32
 * number, 40 bytes, 48 position, 56 prev_crc, 60 continued, 64 salt; the rest is zero.
 */
void segment_header_encode(const struct segment_header *header, char bytes[SEGMENT_HEADER_BYTES])
{
    REQUIRE(header->number > 0 && header->position > 0); /* what a reader demands */
    REQUIRE(header->bytes >= SEGMENT_HEADER_BYTES + RECORD_SPACE_MIN);
    memset(bytes, 0, SEGMENT_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    little_endian_put_u32(bytes + 12, SEGMENT_VERSION);
    memcpy(bytes + 16, header->identity, CMDLOG_IDENTITY_BYTES);
    little_endian_put_u64(bytes + 32, header->number);
    little_endian_put_u64(bytes + 40, header->bytes);
    little_endian_put_u64(bytes + 48, header->position);
    little_endian_put_u32(bytes + 56, header->prev_crc);
    bytes[60] = header->continued ? 1 : 0;
    little_endian_put_u64(bytes + 64, header->salt);
    little_endian_put_u32(bytes + 8, crc32c(0, bytes + 12, SEGMENT_HEADER_BYTES - 12));
}

bool segment_header_decode(const char bytes[SEGMENT_HEADER_BYTES], struct segment_header *ret_header)
{
    if (memcmp(bytes, magic, sizeof magic) != 0 || little_endian_get_u32(bytes + 12) != SEGMENT_VERSION ||
        little_endian_get_u32(bytes + 8) != crc32c(0, bytes + 12, SEGMENT_HEADER_BYTES - 12))
        return false;
    memcpy(ret_header->identity, bytes + 16, CMDLOG_IDENTITY_BYTES);
    ret_header->number = little_endian_get_u64(bytes + 32);
    ret_header->bytes = little_endian_get_u64(bytes + 40);
    ret_header->position = little_endian_get_u64(bytes + 48);
    ret_header->prev_crc = little_endian_get_u32(bytes + 56);
    ret_header->continued = bytes[60] == 1;
    ret_header->salt = little_endian_get_u64(bytes + 64);
    return ret_header->position > 0 && ret_header->bytes >= SEGMENT_HEADER_BYTES + RECORD_SPACE_MIN;
}

uint32_t segment_seed(const char identity[CMDLOG_IDENTITY_BYTES], uint64_t number, uint64_t salt)
{
    char bytes[16];
    little_endian_put_u64(bytes, number);
    little_endian_put_u64(bytes + 8, salt);
    return crc32c(crc32c(0, identity, CMDLOG_IDENTITY_BYTES), bytes, sizeof bytes);
}

/* Returns: 24 bits of a checksum over bytes 4 to 20 and 24 to 31 of the header. */
static uint32_t header_checksum_of(uint32_t seed, const char *bytes)
{
    return crc32c(crc32c(~seed, bytes + 4, 17), bytes + 24, 8) >> 8;
}

static void put_header_checksum(char *bytes, uint32_t guard)
{
    REQUIRE(guard >> 24 == 0);
    little_endian_put(bytes + 21, 3, guard);
}

static uint32_t get_header_checksum(const char *bytes)
{
    return (uint32_t)little_endian_get(bytes + 21, 3);
}

void record_encode(uint32_t seed, struct record *record, const struct slice *parts, size_t count,
                   char bytes[RECORD_HEADER_BYTES])
{
    uint64_t len = 0;
    REQUIRE(record->kind > 0 && record->kind < RECORD_KIND_END);
    REQUIRE(record->durable < record->position); /* invariant 6; a reader takes others as damage */
    memset(bytes, 0, RECORD_HEADER_BYTES);
    little_endian_put_u32(bytes + 4, record->len);
    little_endian_put_u64(bytes + 8, record->position);
    little_endian_put_u32(bytes + 16, record->prev_crc);
    bytes[20] = (char)record->kind;
    little_endian_put_u64(bytes + 24, record->durable);
    put_header_checksum(bytes, header_checksum_of(seed, bytes));
    uint32_t sum = crc32c(seed, bytes + 4, RECORD_HEADER_BYTES - 4);
    for (size_t i = 0; i < count; i++) {
        sum = crc32c(sum, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    REQUIRE(len == record->len);
    little_endian_put_u32(bytes, sum);
    record->crc = sum;
}

bool record_decode(uint32_t seed, const char bytes[RECORD_HEADER_BYTES], struct record *ret_record)
{
    ret_record->crc = little_endian_get_u32(bytes);
    ret_record->len = little_endian_get_u32(bytes + 4);
    ret_record->position = little_endian_get_u64(bytes + 8);
    ret_record->prev_crc = little_endian_get_u32(bytes + 16);
    ret_record->kind = (enum record_kind)(unsigned char)bytes[20];
    ret_record->durable = little_endian_get_u64(bytes + 24);
    return ret_record->kind > 0 && ret_record->kind < RECORD_KIND_END && ret_record->position > 0 &&
           ret_record->durable < ret_record->position && get_header_checksum(bytes) == header_checksum_of(seed, bytes);
}

bool record_is_intact(uint32_t seed, const char *bytes, const struct record *record)
{
    return crc32c(seed, bytes + 4, RECORD_HEADER_BYTES - 4 + record->len) == record->crc;
}
