/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a cluster as its hosts write and read it: puts of several senders, each an entry or a part of one, cut by
 * envelope.h and put together by assembly.h. The log in memory takes the place of etcd: the
 * position of a put is its revision.
 *
 *     wire_send() ─▶ puts that wait, of each sender ─▶ wire_flow() ─▶ the log ─▶ wire_read() ─▶ entries
 *
 * Puts of one sender are in the log in their order; those of several interleave at random. A put may wait for long. A
 * sender may be interrupted: its puts that wait are lost, perhaps after the first parts of an entry.
 */
#ifndef TL_TESTS_SIM_REPLICAS_WIRE_H
#define TL_TESTS_SIM_REPLICAS_WIRE_H

#include "base/list.h"
#include "base/rand.h"
#include "cmdlog/cmdlog_memory.h"
#include "cmdlog/etcd/assembly.h"

enum { WIRE_SENDERS = 3 };

/* An entry that was sent. */
struct sent {
    struct list link; /* while it waits: in sender.unfinished */
    struct slice bytes;
    cmdlog_position position; /* 0: not all of it is in the log */
    struct sent *repeats;     /* the same entry before, whose answer was lost; NULL: none */
    bool counts;              /* it took effect; set by the user */
};

struct sender {
    struct cmdlog *log;
    uint64_t life, number;
    struct list puts, unfinished;
};

struct wire {
    struct cmdlog_medium *medium;
    struct rng rng;
    struct sender senders[WIRE_SENDERS];
    struct sent **entries; /* those in the log, in its order */
    size_t count, capacity;
    uint64_t cut, interrupted; /* entries in parts; those of which some parts are in the log, and never the rest */
};

void wire_init(struct wire *wire, uint64_t seed);
void wire_deinit(struct wire *wire);

/* Sends an entry in so many parts at most, or again one that the sender has sent last (`repeats`). */
struct sent *wire_send(struct wire *wire, unsigned sender, struct slice bytes, unsigned parts, struct sent *repeats);
/* Puts the next put of a random sender into the log. Returns: whether any waited. */
bool wire_flow(struct wire *wire);
/*
 * A sender loses all puts that wait, as when it dies, or when the log had no space. It sends the
 * oldest of these entries again. `dies`: it has another life from then on.
 */
void wire_interrupt(struct wire *wire, unsigned sender, bool dies);

/* How a host reads the log. */
struct wire_reader {
    struct wire *wire;
    struct cmdlog *log;
    struct cmdlog_cursor *cursor;
    struct assembly assembly;
    bool unreachable; /* the last attempt to read an earlier put was in vain */
    const char *damage;
};

/* Begins after a position, as a host that starts. */
void wire_begin(struct wire_reader *reader, struct wire *wire, cmdlog_position after);
void wire_end(struct wire_reader *reader);
/* Makes the log deliver some puts again. */
void wire_go_back(struct wire_reader *reader);
/*
 * Reads the next entry, from at most *budget puts, which it counts down. Returns: 0; CMDLOG_END; TL_ERR_CORRUPT with
 * reader->damage.
 */
int wire_read(struct wire_reader *reader, size_t *budget, struct cmdlog_entry *ret_entry);

#endif
