/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries from the puts of all hosts, in the order of the log; README.md, "An entry" and "Following". It knows nothing
 * of etcd's protocol, so simulators use it over a log in memory.
 *
 * 1. Each entry is returned once, at the position of its last part.
 * 2. A put that was taken before has no effect.
 * 3. Of a host's entry that was never completed nothing is returned.
 * 4. An entry whose first parts precede the assembly's start is returned whole: these parts are read from the log.
 */
#ifndef TL_CMDLOG_ETCD_ASSEMBLY_H
#define TL_CMDLOG_ETCD_ASSEMBLY_H

#include "base/buf.h"
#include "base/list.h"
#include "cmdlog/cmdlog.h"

/* A put of a host: an entry, or a part of one. */
struct assembly_put {
    struct slice host;
    cmdlog_position position;
    uint64_t number; /* how many puts the host has made, including this one */
    struct slice value;
};

/*
 * Reads a host's last put before a position, which may point into `reply`.
 * Returns: 0; CMDLOG_UNREACHABLE; CMDLOG_TRIMMED; TL_ERR_CORRUPT.
 */
typedef int assembly_read_before(void *context, struct slice host, cmdlog_position before, struct buf *reply,
                                 struct assembly_put *ret_put);

/* Parts of the entry that precede the start, while not all are read. */
struct assembly_earlier {
    cmdlog_position put;     /* the put that needs them; 0: none */
    uint32_t parts, missing; /* the part of that put; the last one that is missing */
    cmdlog_position from;    /* of the part after that */
    struct buf *replies;     /* by part, as the next */
    struct slice *bytes;
};

struct assembly {
    cmdlog_position position;         /* of the newest put that was taken */
    struct list streams;              /* one of each host */
    struct assembly_stream *returned; /* whose bytes are lent to the caller */
    struct assembly_earlier earlier;
    assembly_read_before *read_before;
    void *context;
};

/* Begins after a position. Owns: the caller; assembly_deinit(). */
void assembly_init(struct assembly *assembly, cmdlog_position after, assembly_read_before *read_before, void *context);
void assembly_deinit(struct assembly *assembly);

/*
 * Takes the log's next put.
 * Returns: 0 and an entry, whose bytes are valid until the next call, or as long as the put's; CMDLOG_END: a part of
 * one, or taken before; CMDLOG_UNREACHABLE: not all earlier parts could be read yet: the put is to be taken again;
 * CMDLOG_TRIMMED: they are trimmed; TL_ERR_CORRUPT with *ret_damage, a predicate of the put's entry.
 */
int assembly_take(struct assembly *assembly, const struct assembly_put *put, struct cmdlog_entry *ret_entry,
                  const char **ret_damage) TL_MUST_USE;
/* Frees the bytes of the entry that was returned last. */
void assembly_release(struct assembly *assembly);

#endif
