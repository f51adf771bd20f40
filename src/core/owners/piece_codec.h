/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the pieces of the saved state (save_pieces.h) ahead of a checkpoint and with it, and
 * reading them. A piece that was read encodes to the same bytes. core/README.md, "Pieces".
 */
#ifndef TL_CORE_PIECE_CODEC_H
#define TL_CORE_PIECE_CODEC_H

#include "base/buf.h"
#include "core/command/codec.h"
#include "core/owners/owners_codec.h"
#include "core/session/save_pieces.h"
#include "store/store.h"

struct core;
struct overlay;
struct txn;

/*
 * Writes or reads the list of the pieces of an overlay that is not empty, and when reading the
 * pieces, from the store. Requires: when writing, no chunk has changed.
 */
void piece_codec__overlay(struct codec *codec, struct core *core, struct txn *txn);
/*
 * Reads the bytes of a piece that is not of an overlay: `read_piece` of struct lock_codec_refs;
 * `core` is a struct core.
 */
bool piece_codec__read(void *core, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes);
/*
 * Writes or reads the list of the pieces of all sessions, or of all waits, and when reading the
 * pieces. `reader`: unused when writing. Requires: as piece_codec__overlay().
 */
void piece_codec__chunks(struct codec *codec, struct core *core, enum save_piece_kind kind,
                         struct piece_reader *reader);
/*
 * Returns: whether each chunk of sessions and of waits that has not changed is as its piece has it.
 * Takes time linear in their number.
 */
bool piece_codec__chunks_are_saved(struct core *core);
/*
 * Ends reading a record of this version. Returns: whether the store has exactly the pieces that were
 * read, and nothing that this version has in pieces was read otherwise; or no piece was read. Then
 * the next save deletes what the store has. Pieces of sessions and waits of an older version have
 * its form, so the next save writes them anew.
 */
bool piece_codec__check_loaded(struct core *core, unsigned version);
/*
 * Puts a record that was read into an overlay. Returns: false: a commit could not apply it; it is
 * left out.
 */
bool piece_codec__restore_record(struct overlay *overlay, enum store_space space, struct slice key, struct slice value);
/* As core_save_ahead() and the first part of core_save_rest() (save.h). */
int piece_codec__write_ahead(struct core *core, uint64_t bytes_max, bool *ret_more) TL_MUST_USE;
int piece_codec__write_rest(struct core *core) TL_MUST_USE;

#endif
