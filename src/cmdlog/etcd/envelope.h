/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an entry, or of a part of one, as a value in etcd; README.md, "An entry". */
#ifndef TL_CMDLOG_ETCD_ENVELOPE_H
#define TL_CMDLOG_ETCD_ENVELOPE_H

#include "base/buf.h"

enum {
    ENVELOPE_BYTES = 40,
    ENVELOPE_PART_BYTES = 1 << 20, /* of an entry in one put, at most */
    ENVELOPE_PARTS_MAX = 1024,
};

struct envelope {
    uint64_t life;
    uint64_t number;    /* of this put; equals etcd's version of the host's log key */
    uint64_t submitted; /* microseconds since 1970, by the host's clock */
    uint32_t part;      /* from 1 */
    uint32_t parts;
};

/* Returns: how many parts of at most so many bytes an entry of `len` bytes has. */
static inline uint64_t envelope_count_parts(size_t len, size_t part_bytes)
{
    return (len + part_bytes - 1) / part_bytes;
}
/*
 * Selects a part, from 1, of an entry, which is the concatenation of `entry`.
 * Returns: the number of its slices, at most `count`, and the part's length.
 */
size_t envelope_cut(const struct slice *entry, size_t count, uint32_t part, size_t part_bytes, struct slice *ret_slices,
                    size_t *ret_len);

/*
 * Encodes the header of a part, whose bytes are the concatenation of `slices`.
 * Requires: what envelope_read() demands of a header.
 */
void envelope_write(const struct envelope *envelope, struct slice host, const struct slice *slices, size_t count,
                    char ret_bytes[ENVELOPE_BYTES]);

/*
 * Decodes a value that `host` has put.
 * Returns: 0, the header, and the part's bytes, which point into `value`; TL_ERR_VERSION: an
 * unknown format; TL_ERR_CORRUPT.
 */
int envelope_read(struct slice value, struct slice host, struct envelope *ret_envelope,
                  struct slice *ret_bytes) TL_MUST_USE;

#endif
