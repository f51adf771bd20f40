/* SPDX-License-Identifier: Apache-2.0 */
/* Which pieces of the saved state have changed; see save_pieces.h. */
#include "core/session/save_pieces.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"

static struct save_pieces *pieces_of(const struct core *core)
{
    return &core->owners->pieces;
}

void save_pieces__init(struct core *core)
{
    struct save_pieces *pieces = pieces_of(core);
    list_init(&pieces->unsaved);
    pieces->piece = BUF_INIT(BUF_UNLIMITED);
}

void save_pieces__deinit(struct core *core)
{
    struct save_pieces *pieces = pieces_of(core);
    REQUIRE(list_empty(&pieces->unsaved)); /* all transactions were freed */
    mem_free(pieces->ended);
    buf_deinit(&pieces->piece);
}

void save_pieces__touch(struct core *core, struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    if (!list_linked(&txn->of_unsaved))
        list_append(&pieces_of(core)->unsaved, &txn->of_unsaved);
}

void save_pieces__end(struct core *core, struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    struct save_pieces *pieces = pieces_of(core);
    if (list_linked(&txn->of_unsaved))
        list_remove(&txn->of_unsaved);
    if (txn->piece_owner != 0)
        save_pieces__delete(pieces, txn->piece_owner);
}

void save_pieces__delete(struct save_pieces *pieces, uint64_t owner)
{
    REQUIRE(owner != 0 && owner <= pieces->last_owner);
    if (pieces->ended_count == pieces->ended_capacity) {
        pieces->ended_capacity = pieces->ended_capacity ? 2 * pieces->ended_capacity : 16;
        pieces->ended = mem_realloc(pieces->ended, pieces->ended_capacity * sizeof *pieces->ended);
    }
    pieces->ended[pieces->ended_count++] = owner;
    pieces->ended_sorted = false;
}
