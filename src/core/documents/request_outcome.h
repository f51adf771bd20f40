/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes of named requests: what a repeated write is answered with. README.md, "Repeated
 * requests", has the concept and its invariants.
 *
 * In SPACE_SYSTEM, next to the outcomes of transactions:
 *
 *   'Q', id, part (u32be)                 hash, time, and the results
 *   'Q', id, UINT32_MAX (u32be)           of a divided request: which of its commands had an effect
 *   'q', ended (u64be), id, part (u32be)  index by time, from which old ones are purged; empty value
 *
 * A command of a divided request leaves a record also if all of its items failed. That is an outcome only if another
 * command of the request had an effect: as a whole, a request without effect is executed when it is sent again. (Not in
 * commands before version 22, of which such a one leaves none.)
 */
#ifndef TL_CORE_REQUEST_OUTCOME_H
#define TL_CORE_REQUEST_OUTCOME_H

#include "base/error.h"
#include "core/command/command.h"

struct core;

enum {
    REQUEST_OUTCOME_NONE = 1, /* the write has no name, or did not run before: it is to be run */
};

/*
 * Returns: whether a write has an invalid name, with the problem in the command. The api refuses these;
 * a command of a damaged log may have them. Asked when a write begins, before it may get a transaction
 * of its own (acquire_pieces.c).
 */
bool request_outcome__is_refused(struct command *command);
/*
 * Looks up the outcome of a write by its request.
 *
 * Requires: the results are allocated; the open unit has changed nothing.
 * Returns: 0, the write is done: its results are those of the first time, or command->problem says
 * why the request is refused; REQUEST_OUTCOME_NONE; fatal codes.
 */
int request_outcome__find(struct core *core, struct command *command) TL_MUST_USE;

/*
 * Finds whether a repetition of a write finds an outcome, or is refused for one. Reads the store: what the open unit
 * has put is not found.
 * Returns: 0, it does; REQUEST_OUTCOME_NONE; fatal codes.
 * Requires: the request has an ID.
 */
int request_outcome__exists(struct core *core, const struct write_request *request) TL_MUST_USE;

/*
 * Puts the outcome of a write into the open unit, if the write has a name, and did or postponed
 * something, or is part of a divided request.
 * Requires: all items of the command ran in this unit.
 */
void request_outcome__put(struct core *core, const struct command *command);

/*
 * Returns: whether a write that has ended has left an outcome which any repetition finds, whatever the other commands
 * of its request did.
 */
bool request_outcome__is_final(const struct command *command);
/*
 * Purges outcomes that are due, in the open unit. Each record is read, so one of many bytes counts as
 * several keys; only the last one may exceed `keys_max`. Returns: 0 and the number counted; fatal
 * codes.
 */
int request_outcome__purge(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;

#endif
