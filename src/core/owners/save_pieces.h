/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces: the overlays of open transactions, the holds of lock owners, sessions and waits, as the
 * store has them between checkpoints, a piece for each chunk of one of these. Those that changed are
 * written ahead of a checkpoint, and the saved state only lists them. core/README.md, "Pieces".
 */
#ifndef TL_CORE_SAVE_PIECES_H
#define TL_CORE_SAVE_PIECES_H

#include "base/buf.h"
#include "base/list.h"
#include "core/command/codec.h"
#include "core/owners/owners_codec.h"
#include "store/store.h"

struct core;
struct overlay;
struct save_chunk;
struct save_chunks;
struct txn;

/* The contents of pieces. */
enum save_piece_kind { PIECE_OVERLAY, PIECE_HOLDS, PIECE_SESSIONS, PIECE_WAITS, PIECE_KIND_COUNT };

/* The host's own, not part of the state. */
struct save_pieces {
    struct list unsaved; /* struct txn by of_unsaved: those whose overlay may have changed chunks */
    uint64_t last_owner; /* highest piece owner ever given to a transaction or to another chunk */
    uint64_t *ended;     /* piece owners whose pieces are to be deleted */
    bool ended_sorted;
    size_t ended_count;
    size_t ended_capacity;
    bool known;         /* the store has pieces of this state only; else they are deleted first */
    uint64_t bytes_max; /* of pieces written ahead of one checkpoint; 0: none was written yet */
    uint64_t bytes;     /* written ahead of the next checkpoint */
    uint64_t kind_bytes[PIECE_KIND_COUNT]; /* of each kind, among them */
    size_t named;       /* number of pieces that were read */
    struct buf piece;   /* scratch */
};

void save_pieces__init(struct core *core);
void save_pieces__deinit(struct core *core);
/* Records that the overlay of a transaction will change. */
void save_pieces__touch(struct core *core, struct txn *txn);
/* Records that a piece of this owner number is not needed any more. */
void save_pieces__delete(struct save_pieces *pieces, uint64_t owner);
/* Records that a transaction ends. */
void save_pieces__end(struct core *core, struct txn *txn);
/*
 * Writes or reads the list of the pieces of an overlay that is not empty, and when reading the
 * pieces, from the store. Requires: when writing, no chunk has changed.
 */
void save_pieces__codec(struct codec *codec, struct core *core, struct txn *txn);
/*
 * Reads the bytes of a piece that is not of an overlay: `read_piece` of struct lock_codec_refs;
 * `core` is a struct core.
 */
bool save_pieces__read(void *core, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes);
/*
 * Writes or reads the list of the pieces of all sessions, or of all waits, and when reading the
 * pieces. `reader`: unused when writing. Requires: as save_pieces__codec().
 */
void save_pieces__codec_chunks(struct codec *codec, struct core *core, enum save_piece_kind kind,
                               struct piece_reader *reader);
/*
 * Returns: whether each chunk of sessions and of waits that has not changed is as its piece has it.
 * Takes time linear in their number.
 */
bool save_pieces__chunks_are_saved(struct core *core);
/*
 * Ends reading a record of this version. Returns: whether the store has exactly the pieces that were
 * read, and nothing that this version has in pieces was read otherwise; or no piece was read. Then
 * the next save deletes what the store has.
 */
bool save_pieces__check_loaded(struct core *core, unsigned version);
/*
 * Puts a record that was read into an overlay. Returns: false: a commit could not apply it; it is
 * left out.
 */
bool save_pieces__restore_record(struct overlay *overlay, enum store_space space, struct slice key, struct slice value);

#endif
