/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of entries in SPACE_ENTRIES, shared by the writer and the scanner.
 *
 * Single entry:
 *     key    index u32be | field u16be | value | 01 | document key
 *     value  empty
 * Posting list:
 *     key    index u32be | field u16be | value | 02 | batch u64be | first document key value
 *     count of further document keys (varint), then each one front-coded: length of the prefix
 *            shared with the previous key (varint), length of the suffix (varint), suffix
 *
 * An encoded value is a tag and self-delimiting bytes whose order is the order of the values:
 *
 *     'b' bytes, with 00 escaped as 00 ff, terminated by 00 01. A truncated value is terminated by
 *         00 02, so it sorts after the complete value of the same bytes and before every longer one
 *     'f' 64 bits of a double; the sign bit is set if positive, all bits are inverted if negative
 *     'i' 64 bits of an integer, with the sign bit inverted
 */
#ifndef TL_MAPPING_ENTRY_KEY_H
#define TL_MAPPING_ENTRY_KEY_H

#include "mapping/entry.h"

enum {
    ENTRY_SINGLE = 1,
    ENTRY_POSTING_LIST = 2,
    ENTRY_SHAPES_END = 3, /* an upper bound: value and this byte sort after all entries of the value */
    ENTRY_FIELD_PREFIX_BYTES = 6,
};

/* A parsed key. The slices are parts of the key. */
struct entry_key {
    uint32_t index;
    uint16_t field;
    struct slice value;        /* encoded, tag included */
    bool cut;                  /* the value was truncated */
    uint8_t shape;             /* ENTRY_SINGLE or ENTRY_POSTING_LIST */
    uint64_t batch;            /* 0 for a single entry */
    struct slice document_key; /* of a posting list: the first one */
};

/* Appends index and field: the common prefix of all entries of a field. */
void entry_key_field(struct buf *buf, uint32_t index, uint16_t field);

/* Returns: false if the bytes are not the key of an entry. */
bool entry_key_parse(struct slice key, struct entry_key *ret_key);

/*
 * Appends the encoded prefix that all values beginning with the bytes `prefix` share, tag included.
 * Returns: whether `prefix` was truncated.
 */
bool entry_key_prefix(struct buf *buf, struct slice prefix);

#endif
