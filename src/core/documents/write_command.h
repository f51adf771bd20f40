/* SPDX-License-Identifier: Apache-2.0 */
/* The WRITE command, after its locks were acquired. */
#ifndef TL_CORE_WRITE_COMMAND_H
#define TL_CORE_WRITE_COMMAND_H

#include "core/documents/write.h"
#include "core/command/command.h"

struct core;

/*
 * Runs the items of a WRITE in `range` that are selected by `chosen` (NULL: all) and fills their
 * results. Of `how`, the fields overlay, provisional, path_check, work_before, in_pieces and,
 * without `chosen`, parsed are used. In a transaction the changes go to `overlay` and `provisional`; if
 * the request rolls back, both are restored.
 *
 * write->exceeds_step: it did nothing, and is to be carried out in pieces; in a transaction, it is refused. With
 * `in_pieces`, it rolls back nothing and puts no outcome.
 *
 * Requires: the command's results are allocated; with `chosen`, the range has all items.
 * Returns: 0, the work of the items; fatal codes.
 */
int write_command__run(struct core *core, struct command *command, struct write_range range, const bool *chosen,
                       const struct write_run *how, uint64_t *ret_work) TL_MUST_USE;
/*
 * Requires: a write.
 * Returns: whether this is an atomic write in a client's transaction. It is one step, whose effects a failed item
 * undoes, so it is refused if it takes more than one step may (not in commands before version 19). `in_pieces`: it is
 * an atomic write in pieces, whose transaction no client knows.
 */
bool write_command__in_one_step(const struct core *core, const struct command *command, bool in_pieces);
/* Refuses all items of such a write: it takes more than one step may. */
void write__refuse_above_step(struct command *command);
/* Refuses all items: an atomic write has the limits of a transaction, and exceeds them. */
void write__refuse_too_large(const struct core *core, struct command *command);
/* Refuses all items: the results of an atomic write exceed WRITE_ATOMIC_RESULT_BYTES_MAX. */
void write__refuse_results_too_large(struct command *command);
/* Refuses all items: the scripts of an atomic write exceed their steps. */
void write__refuse_too_long(const struct core *core, struct command *command, uint64_t steps_max);

#endif
