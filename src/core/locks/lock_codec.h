/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serialization of the lock table for checkpoints. A table that was read makes the same decisions
 * as the one that was written: the same grants in the same order, with the same numbers and tokens,
 * and the same deadlock victims.
 *
 * Owners and requests belong to the caller. To write, it passes all of them, in any order. To read,
 * it first makes the same number of owners with lock_owner_init(), with the same sessions, and
 * passes them in the same order. The requests are made here.
 */
#ifndef TL_CORE_LOCK_CODEC_H
#define TL_CORE_LOCK_CODEC_H

#include "core/locks/lock.h"
#include "core/command/codec.h"

/* The owners and requests that a table refers to. */
struct lock_codec_refs {
    /* all owners that have a hold or a waiting request; others may be among them */
    struct lock_owner **owners;
    size_t owner_count;
    /*
     * All waiting requests, and the granted ones that have not been resumed yet. After a read, the
     * array is in the codec's arena; the caller owns each request and sets its user.
     */
    struct lock_request **requests;
    size_t request_count;

    /*
     * Holds are in pieces, and the table only lists them. To write it so, set `in_pieces`; no chunk
     * may have changed since its piece was written. A read needs `read_piece`: it appends the bytes
     * of a piece, and returns whether there is one of this length and CRC32C.
     */
    bool in_pieces;
    bool (*read_piece)(void *context, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes);
    void *context;

    /*
     * The table has the requests without the specs of those that wait. The caller wrote them with
     * lock_codec_write_specs(), and to read passes them in the order of the requests.
     */
    bool without_specs;
    const struct slice *specs;
    size_t specs_count;
};

/*
 * Writes a table, or reads one into a table that was just initialized. No hook is called.
 * Requires: the table's queues of granted requests and victims are empty.
 * Ensures: `codec` is bad if the data is invalid; then only lock_codec_discard() may follow.
 */
void lock_codec_table(struct codec *codec, struct lock_table *table, struct lock_codec_refs *refs);
/*
 * Removes all that was read into a table, and frees the requests, so that table and owners can be
 * freed.
 */
void lock_codec_discard(struct lock_table *table, struct lock_codec_refs *refs);

/* Writes the specs of a request, with the names that their resources have now. */
void lock_codec_write_specs(struct codec *codec, const struct lock_request *request);

/* Writes the bytes of a chunk's piece. Requires: the chunk has a hold. */
void lock_codec_write_chunk(struct codec *codec, struct lock_table *table, const struct lock_chunk *chunk);

/*
 * Checks that each chunk that is not changed is as its piece has it, and aborts if not. For tests:
 * takes time linear in the number of holds. Requires: lengths and checksums of pieces are CRC32C.
 */
void lock_codec_check_chunks(struct lock_table *table);

/* Sets the user of a request that was read. */
void lock_request_set_user(struct lock_request *request, void *user);

#endif
