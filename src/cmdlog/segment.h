/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of segment headers and records; README.md, "The file log". */
#ifndef TL_CMDLOG_SEGMENT_H
#define TL_CMDLOG_SEGMENT_H

#include "cmdlog/cmdlog.h"

enum {
    SEGMENT_HEADER_BYTES = 512,
    RECORD_HEADER_BYTES = 32,
    RECORD_ALIGN = 8,
    RECORD_SPACE_MIN = RECORD_HEADER_BYTES + RECORD_ALIGN, /* a shorter rest is unused */
};

struct segment_header {
    char identity[CMDLOG_IDENTITY_BYTES];
    uint64_t number;
    uint64_t bytes;           /* of the whole segment */
    cmdlog_position position; /* of the entry that its first record belongs to */
    uint32_t prev_crc;        /* checksum of the record before its first one */
    bool continued;           /* its first record continues an entry of the previous segment */
    uint64_t salt;            /* random, new for each use of a file as a segment (invariant 4) */
};

enum record_kind { RECORD_WHOLE = 1, RECORD_FIRST, RECORD_MIDDLE, RECORD_LAST, RECORD_SEAL, RECORD_KIND_END };

struct record {
    uint32_t crc;             /* of the header after this field and of the payload */
    uint32_t len;             /* of the payload */
    cmdlog_position position; /* of its entry; of a seal: of the next entry */
    uint32_t prev_crc;        /* `crc` of the record before it, across segments */
    enum record_kind kind;
    cmdlog_position durable; /* the durable position at the time of writing */
};

void segment_header_encode(const struct segment_header *header, char bytes[SEGMENT_HEADER_BYTES]);
/* Returns: false if the bytes are not an intact header of a version that this program reads. */
bool segment_header_decode(const char bytes[SEGMENT_HEADER_BYTES], struct segment_header *ret_header);

/*
 * Returns: the initial value of a segment's record checksums; records of another log, segment or
 * use do not match it.
 */
uint32_t segment_seed(const char identity[CMDLOG_IDENTITY_BYTES], uint64_t number, uint64_t salt);

/* Encodes a record's header for the payload `parts`; sets record->crc. */
void record_encode(uint32_t seed, struct record *record, const struct slice *parts, size_t count,
                   char bytes[RECORD_HEADER_BYTES]);
/*
 * Decodes a record's header. Does not check record->crc. Returns: false if the header checksum or a
 * field is invalid.
 */
bool record_decode(uint32_t seed, const char bytes[RECORD_HEADER_BYTES], struct record *ret_record);
/* Returns: whether record->crc matches `bytes`, the record's header and payload. */
bool record_is_intact(uint32_t seed, const char *bytes, const struct record *record);

/* Returns: the bytes that a record occupies in its segment. */
static inline uint64_t record_bytes(uint64_t payload_len)
{
    return (RECORD_HEADER_BYTES + payload_len + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

#endif
