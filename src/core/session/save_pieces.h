/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces: the overlays of open transactions, the holds of lock owners, sessions and waits, as the
 * store has them between checkpoints, a piece for each chunk of one of these. Those that changed are
 * written ahead of a checkpoint, and the saved state only lists them. core/README.md, "Pieces".
 * Here is which of them have changed or are not needed any more; piece_codec.h writes and reads them.
 */
#ifndef TL_CORE_SAVE_PIECES_H
#define TL_CORE_SAVE_PIECES_H

#include "base/buf.h"
#include "base/list.h"

struct core;
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
/*
 * Records that a piece of this owner number is not needed any more.
 * Requires: the number was given.
 */
void save_pieces__delete(struct save_pieces *pieces, uint64_t owner);
/* Records that a transaction ends. */
void save_pieces__end(struct core *core, struct txn *txn);

#endif
