/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of entries in SPACE_ENTRIES, shared by those who write and those who scan them.
 *
 *     single   index u32be  field u16be  value  01  document key                    -> empty
 *     chunk    index u32be  field u16be  value  02  batch u64be  first document key -> count varint, then for each
 *              further document key: bytes shared with the one before (varint), bytes of its own (varint), those bytes
 *
 * A value is a tag and bytes that sort as the values do and say themselves where they end:
 *
 *     'b' bytes, 00 as 00 ff, ended by 00 01; or by 00 02 when the value was cut, which sorts after the whole value
 *         of the same bytes and before every longer one
 *     'f' 64 bits of a double: those of a positive one with the sign bit set, those of a negative one inverted
 *     'i' 64 bits of an integer with the sign bit inverted
 */
#ifndef TL_MAPPING_ENTRY_KEY_H
#define TL_MAPPING_ENTRY_KEY_H

#include "mapping/entry.h"

enum {
    ENTRY_SINGLE = 1,
    ENTRY_POSTING_LIST = 2,
    ENTRY_SHAPES_END = 3, /* a value followed by this sorts after all its entries */
    ENTRY_FIELD_PREFIX_BYTES = 6,
};

/* A key taken apart. The slices are parts of it. */
struct entry_key {
    uint32_t index;
    uint16_t field;
    struct slice value; /* encoded, tag included */
    bool cut;
    uint8_t shape;
    uint64_t batch; /* 0 of a single */
    struct slice document_key;
};

/* Appends index and field. */
void entry_key_field(struct buf *buf, uint32_t index, uint16_t field);

/* Returns: false where the bytes are no key of an entry. */
bool entry_key_parse(struct slice key, struct entry_key *ret_key);

/* Appends the bytes that values with this prefix begin with, tag included. Returns: whether it had to be cut. */
bool entry_key_prefix(struct buf *buf, struct slice prefix);

#endif
