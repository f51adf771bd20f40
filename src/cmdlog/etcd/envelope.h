/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around an entry, or a part of one, in etcd; README.md, "An entry". */
#ifndef TL_CMDLOG_ETCD_ENVELOPE_H
#define TL_CMDLOG_ETCD_ENVELOPE_H

#include "base/buf.h"

enum {
    ENVELOPE_BYTES = 40,
    ENVELOPE_PART_BYTES = 1 << 20, /* of an entry, at most, in one put */
    ENVELOPE_PARTS_MAX = 1024,
};

struct envelope {
    uint64_t life;
    uint64_t number;    /* of this put; what etcd counts as the version of the host's key */
    uint64_t submitted; /* microseconds since 1970, by the host's clock */
    uint32_t part;      /* from 1 */
    uint32_t parts;
};

/* Writes what stands before `bytes`, which are those of a part, given in pieces. */
void envelope_write(const struct envelope *envelope, struct slice host, const struct slice *pieces, size_t count,
                    char ret_bytes[ENVELOPE_BYTES]);

/* Takes a value apart. Returns: 0; TL_ERR_VERSION: of a form that is not known; TL_ERR_CORRUPT. */
int envelope_read(struct slice value, struct slice host, struct envelope *ret_envelope,
                  struct slice *ret_bytes) TL_MUST_USE;

#endif
