/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One write while it acquires its locks: declarations shared by the files that do.
 *
 *     acquire.c ── find targets ─▶ acquire_targets.c
 *               ── ask ──────────▶ ask.h
 *               ── run ──────────▶ acquire_run.c
 *
 * 1. Targets and specs are valid in one unit: a write that is resumed, or that opens another unit,
 *    finds them again.
 * 2. Each target is of an item in `range`.
 */
#ifndef TL_CORE_ACQUIRE_INTERNAL_H
#define TL_CORE_ACQUIRE_INTERNAL_H

#include "base/check.h"
#include "core/acquire/lock_resolve.h"
#include "core/command/command.h"
#include "core/documents/write.h"
#include "core/wait/wait.h"

struct core;
struct session;
struct txn;

/*
 * The paths of a write's targets, before and after the write: a hash table with open addressing, by
 * index, id and path, in the core's arena. A slot has the position of a target, counted from 1, and
 * a bit for its old path; 0: free.
 */
struct path_set {
    uint32_t *slots; /* NULL: not built yet */
    size_t mask;
};

/* The state of one write while it acquires its locks. */
struct acquisition {
    struct core *core;
    struct command *command;
    struct session *session;
    struct txn *txn;
    struct wait *wait;        /* NULL: it has requested no lock, and this is its first batch */
    struct write_range range; /* the items of this call: all, or one batch in a transaction */
    struct write_targets targets;
    struct path_set paths; /* of `targets` */
    struct lock_spec_list specs;
    uint64_t work;          /* of this write in this step: targets found and items run (WRITE_WORK_MAX) */
    size_t explained_bytes; /* of the problems of failed items, or what took as much work */
    bool full;              /* items are blocked and may not wait, since limits.waiters_max requests do */
    bool one_step;          /* an atomic write in a client's transaction: write_command__in_one_step() */
    bool in_pieces;         /* an atomic write in a transaction of its own (acquire_pieces.c) */
    uint64_t steps_before;  /* in_pieces: write->script_steps when this piece began */
};

static inline struct write_command *acquisition__write(const struct acquisition *at)
{
    REQUIRE(at->command->type == COMMAND_WRITE);
    return &at->command->write;
}

/* Whether an item is still to run. In a transaction, all items of the range are. */
static inline bool acquisition__is_pending(const struct acquisition *at, size_t item)
{
    REQUIRE(item < at->command->write.item_count);
    return at->wait == NULL || at->wait->pending_items == NULL || at->wait->pending_items[item];
}

/* --- acquire.c ---------------------------------------------------------------------------------------------------- */

/*
 * Makes the items after the range pending, and the write ready. The step runs no more ready
 * commands: the batch was as much as one may.
 * Requires: a transaction. Returns: CORE_WAITS.
 */
int acquisition__continue_later(struct acquisition *at);
/* Frees its wait, if it has one. */
void acquisition__free_wait(struct acquisition *at);

/* --- acquire_pieces.c --------------------------------------------------------------------------------------------- */

/*
 * Begins to carry out an atomic write in pieces, from its first item on. Nothing of it is in the open unit.
 * Returns: 0, refused; CORE_WAITS.
 */
int acquisition__begin_pieces(struct acquisition *at, uint64_t deadline) TL_MUST_USE;
/* Ends the attempt: releases all locks, and waits for those of the piece alone. Returns: as begin. */
int acquisition__attempt_again(struct acquisition *at, uint64_t deadline) TL_MUST_USE;
/* Whether its attempt is the last one: it keeps its locks while it waits for others. */
bool acquisition__is_last_attempt(const struct acquisition *at);
/* Runs one piece, or commits if all have run. Returns: 0, done; CORE_WAITS; fatal codes. */
int acquisition__run_piece(struct acquisition *at) TL_MUST_USE;
/*
 * Before a piece: whether the write is answered by the outcome of a repetition. Returns: 0, it is, and
 * is rolled back; REQUEST_OUTCOME_NONE; fatal codes.
 */
int acquisition__find_repetition(struct acquisition *at) TL_MUST_USE;
/* Rolls back an atomic write in pieces, and frees its wait. */
void acquisition__end_pieces(struct acquisition *at);

/* --- acquire_targets.c -------------------------------------------------------------------------------------------- */

/*
 * Sets the range: all items, or the next batch of a write in a transaction. A batch has the cost of
 * one step, without that of its scripts.
 */
void acquisition__choose_range(struct acquisition *at);
/*
 * Sets the range, and finds what its pending items will change. Leaves out items that fail for their
 * token or for a self-conflict.
 * Returns: 0; fatal codes.
 */
int acquisition__find_targets(struct acquisition *at) TL_MUST_USE;
/*
 * Requires: an open unit; an item in the range.
 * Returns: the locks of one item; outside a transaction without those on unheld names.
 */
struct lock_spec_list acquisition__specs_of(const struct acquisition *at, const struct write_target *target);
/* Collects the locks of the targets that are `blocked` (NULL: all). Requires: an open unit. */
void acquisition__collect_specs(struct acquisition *at, const bool *blocked);

/* --- acquire_run.c ------------------------------------------------------------------------------------------------ */

/*
 * Runs the chosen items (NULL: all) outside a transaction, and moves the locks of their documents.
 * Requires: no transaction.
 * Returns: 0; fatal codes.
 */
int acquisition__run(struct acquisition *at, const bool *chosen) TL_MUST_USE;
/*
 * Runs the items of the range in the transaction. If that makes it too large, reverts them and
 * refuses the rest of the write.
 * Requires: a transaction.
 * Returns: 0; fatal codes.
 */
int acquisition__run_in_txn(struct acquisition *at) TL_MUST_USE;
/*
 * Refuses the rest of a write in a transaction: the request, or if earlier batches of it were done,
 * the items from this batch on.
 * Requires: a transaction.
 */
void acquisition__refuse_too_large(struct acquisition *at);
void acquisition__refuse_too_many_locks(struct acquisition *at);

#endif
