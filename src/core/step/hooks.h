/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions, locks and transactions take part in a step: what the rooms below the owners call of them. core/owners has it all.
 */
#ifndef TL_CORE_HOOKS_H
#define TL_CORE_HOOKS_H

#include "base/arena.h"
#include "base/error.h"
#include "core/step/command.h"

struct core;
struct sections;

/* Begins with no owners; rebuilds from the store what it has of them; frees all. core_open() and core_close() call them. */
void owners__open(struct core *core);
int owners__load_stored(struct core *core) TL_MUST_USE;
void owners__close(struct core *core);
/* Removes the records of locks where there are any, in a batch of its own at the next timestamp, of which core_chain() knows nothing. Returns: 0; fatal codes. */
int owners__drop_lock_records(struct core *core) TL_MUST_USE;
/* Writes the owners and all they have, or reads them where there are none. When that is bad, owners__discard_loaded() is to follow. */
void owners__codec(struct core *core, struct sections *sections);
/* Takes back what was read of the owners so far, so that they can be closed. */
void owners__discard_loaded(struct core *core);
/* Returns: whether an entry of this host, in this life, with this number counts (README.md, "Hosts", 1); it is the last that did from now on. */
bool owners__accept_group(struct core *core, uint16_t host, uint64_t life, uint64_t number);
/* A step with such a command begins: how much of what was left goes on with it. */
void owners__begin_step(struct core *core, enum command_type type);
/* A unit was opened: what is granted in it is granted at its timestamp. */
void owners__begin(struct core *core);
/* Returns: the newest timestamp that the open unit has used: its own, or the last token given in it. */
tl_ts owners__last_ts(const struct core *core);
/*
 * A unit is about to be written: takes part in it with what its releases and waits have brought about. Fetches what the table of locks
 * did: ends victims, completes lock commands that were granted, makes ready the other commands that were.
 */
int owners__before_commit(struct core *core) TL_MUST_USE;
/* Completes every waiting command with PROBLEM_STOPPING. */
void owners__stop(struct core *core);
/*
 * What a step does before its command, with no unit open: a session that leaves in pieces loses one more, and what ended
 * sessions left goes on; and, when the command is a
 * TICK (NULL: it is not), waits with a deadline at or before core->clock fall due, and leases and idle transactions with one at or before
 * what it says was heard, in order of deadline, each in a unit of its own. The first unit has the timestamp `at`.
 */
int owners__run_due(struct core *core, tl_ts at, const struct tick_command *tick) TL_MUST_USE;
/* Runs the waiting commands that may go on, oldest grant first, each in a unit of its own, as many as go with one step. Called with none open. */
int owners__resume(struct core *core) TL_MUST_USE;
/* Returns: the locks, requests and resources that the table of locks has looked at since core_open(). */
uint64_t owners__lock_work(const struct core *core);
/* Tells the budget what locks, waits and actions take, where that has changed by much; at the end of each step. */
void owners__update_budget(struct core *core);
/* Returns: whether anyone holds or awaits a lock; while not, writes ask for none (the short path). */
bool owners__any_locks(const struct core *core);
/* Returns: whether no lock, held or awaited, can concern a write in this index. */
bool owners__index_is_unlocked(const struct core *core, struct slice index);
/*
 * Runs a write that belongs to somebody, or that something could stand against: checks session, transaction and fencing
 * token, takes or awaits its locks. Its results are there, zeroed. As a handler.
 */
int owners__write(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Runs the handler of a command that changes indices, once no lock of anybody else stands against it. As a handler.
 */
int owners__run_ddl(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Checks that a session may be given a document to live with it. Returns: 0; 1: *ret_problem says why not.
 */
int owners__check_ephemeral(struct core *core, struct slice session, struct arena *arena,
                        struct problem *ret_problem) TL_MUST_USE;
/* Checks that so many more documents may live with a session. Returns: 0; 1: *ret_problem says why not. */
int owners__check_ephemeral_count(struct core *core, struct slice session, size_t more, struct arena *arena,
                              struct problem *ret_problem) TL_MUST_USE;
/* Counts a document, by its key, that lives with a session, or does no more; core__rollback() takes it back. */
void owners__count_ephemeral(struct core *core, struct slice session, struct slice key, int change);
/* Returns: whether a session is leaving in pieces, so that a document may lie in the store that went with one. */
bool owners__any_terminating(const struct core *core);
/* Takes back what the unit has counted so far. */
void owners__rollback_ephemeral_counts(struct core *core);
/* Counts off the ephemeral documents of an index that the open unit deletes. Their marks, which mean nothing from then on, stay for owners__purge_ephemeral_keys(). */
void owners__drop_index(struct core *core, uint32_t index);
/* Removes marks of ephemeral documents whose index is deleted, in the open unit. Returns: 0 and how many, at most `max`; fatal codes. */
int owners__purge_ephemeral_keys(struct core *core, size_t max, size_t *ret_removed) TL_MUST_USE;
bool owners__transaction_is_open(const struct core *core, struct slice id);
/* Returns: when the oldest update transaction that is open began; TL_TS_MAX: none is. */
tl_ts owners__oldest_update(const struct core *core);
/* Writes the records of open query transactions that have none yet, oldest first. Returns: how many. */
size_t owners__record_query_txns(struct core *core, size_t keys_max);
/*
 * Removes for good what has been kept long enough, in the open unit: outcomes of transactions.
 * Returns: 0 and how many keys; fatal codes.
 */
int owners__purge_outcomes(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;
/* Folds the state of sessions and locks into a digest. */
int owners__digest(struct core *core, uint64_t *digest) TL_MUST_USE;

#endif
