/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of segments and records; README.md, "The file log". */
#ifndef TL_CMDLOG_SEGMENT_H
#define TL_CMDLOG_SEGMENT_H

#include "cmdlog/cmdlog.h"

enum {
    SEGMENT_HEADER_BYTES = 512,
    RECORD_HEADER_BYTES = 32,
    RECORD_ALIGN = 8,
    RECORD_ROOM_MIN = RECORD_HEADER_BYTES + RECORD_ALIGN, /* with less, the log goes on in the next segment */
};

struct segment_header {
    char identity[CMDLOG_IDENTITY_BYTES];
    uint64_t number;
    uint64_t bytes;        /* of the whole segment */
    cmdlog_position position; /* of the entry that its first record belongs to */
    uint32_t chain;        /* checksum of the last record before it */
    bool continued;        /* that entry began before */
    uint64_t use;          /* a random number, another one for each use of a file as a segment (invariant 4) */
};

enum record_kind { RECORD_WHOLE = 1, RECORD_FIRST, RECORD_MIDDLE, RECORD_LAST, RECORD_SEAL, RECORD_KIND_END };

struct record {
    uint32_t sum;
    uint32_t len;          /* of the payload */
    cmdlog_position position; /* of its entry; of a seal: of the one that would come next */
    uint32_t chain;
    enum record_kind kind;
    cmdlog_position durable;
};

void segment_header_encode(const struct segment_header *header, char bytes[SEGMENT_HEADER_BYTES]);
/* Returns: false when they are not the bytes of a header, or of one that this program can read. */
bool segment_header_decode(const char bytes[SEGMENT_HEADER_BYTES], struct segment_header *ret_header);

/* What the checksums of a segment's records begin with: they tell whose they are, and of which use. */
uint32_t segment_seed(const char identity[CMDLOG_IDENTITY_BYTES], uint64_t number, uint64_t use);

/* Encodes a record's header, with the checksum over it and its payload's parts; sets record->sum. */
void record_encode(uint32_t seed, struct record *record, const struct slice *parts, size_t count,
                   char bytes[RECORD_HEADER_BYTES]);
/* Returns: false when no record of the segment has such a header, by its guard. The whole record's checksum is not looked at. */
bool record_decode(uint32_t seed, const char bytes[RECORD_HEADER_BYTES], struct record *ret_record);
/* Returns: whether the checksum of a record is right; `bytes`: header and payload. */
bool record_sound(uint32_t seed, const char *bytes, const struct record *record);

/* Bytes that a record takes in its segment. */
static inline uint64_t record_bytes(uint64_t payload_len)
{
    return (RECORD_HEADER_BYTES + payload_len + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* Little-endian numbers, as the log's files have them. */
void cmdlog_put_u32(char *bytes, uint32_t value);
void cmdlog_put_u64(char *bytes, uint64_t value);
uint32_t cmdlog_get_u32(const char *bytes);
uint64_t cmdlog_get_u64(const char *bytes);

#endif
