/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of sessions, and of waits: some consecutive ones that are saved together, in a piece of
 * the store (core/README.md, "Pieces"). Which members share a chunk is the host's own.
 *
 * Whatever changes what the piece has of a member calls save_chunk__touch() in the same step.
 */
#ifndef TL_CORE_SAVE_CHUNK_H
#define TL_CORE_SAVE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum { SAVE_CHUNK_MEMBERS = 256, SAVE_CHUNK_BYTES = 128 << 10 };

struct save_chunk {
    struct list of_all;  /* in chunks->all, in the order of the members */
    struct list changed; /* in chunks->changed; not linked: its piece has these members */
    struct list members; /* struct save_member by of_chunk, in order; not empty between steps */
    uint32_t added;      /* members ever added */
    uint32_t saved_len;  /* of its piece, and the CRC32C */
    uint32_t saved_crc;
    uint64_t bytes; /* estimate of what the members take in the piece */
    uint64_t piece; /* number of its piece; 0: none was written yet */
};

/* In each session and each wait. */
struct save_member {
    struct list of_chunk;
    struct save_chunk *chunk; /* NULL: it is in none, and nothing of it is saved */
    uint64_t bytes;           /* counted in chunk->bytes */
};

struct save_chunks {
    struct list all;
    struct list changed;     /* struct save_chunk by `changed` */
    struct save_chunk *open; /* the chunk that is read from its piece; NULL: none */
    size_t count;            /* members */
    uint32_t members_max;    /* SAVE_CHUNK_MEMBERS, fewer in simulators */
};

void save_chunks__init(struct save_chunks *chunks);
/* Frees all chunks; their members leave them. */
void save_chunks__deinit(struct save_chunks *chunks);
/*
 * Appends a member, whose piece is estimated at `bytes`, to the last chunk, or to a new one if that
 * is full. While a chunk is read, it joins that one.
 */
void save_chunk__add(struct save_chunks *chunks, struct save_member *member, uint64_t bytes);
/* Records that a member has changed; without effect if it is in no chunk. */
void save_chunk__touch(struct save_chunks *chunks, struct save_member *member);
/* Records that all chunks have changed: their pieces have the form of an older version. */
void save_chunk__touch_all(struct save_chunks *chunks);
/*
 * Removes a member, if it is in a chunk.
 * Returns: the piece of the chunk, which ended with its last member, to be deleted; 0: none.
 */
uint64_t save_chunk__remove(struct save_chunks *chunks, struct save_member *member);
/* Begins a chunk at the end, for the members that are read from its piece. */
struct save_chunk *save_chunk__begin(struct save_chunks *chunks);
/* Records that a piece has the chunk as it is. */
void save_chunk__saved(struct save_chunks *chunks, struct save_chunk *chunk, uint64_t piece, uint32_t len,
                       uint32_t crc);
/* Returns: a chunk that has changed, the one longest changed; NULL: none. */
struct save_chunk *save_chunk__changed(const struct save_chunks *chunks);

#endif
