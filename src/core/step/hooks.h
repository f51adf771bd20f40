/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks by which sessions, locks and transactions take part in a step. Modules below core/owners
 * call only these.
 */
#ifndef TL_CORE_HOOKS_H
#define TL_CORE_HOOKS_H

#include "base/arena.h"
#include "base/error.h"
#include "core/step/command.h"

struct core;
struct sections;

/*
 * Life cycle: no owners at first; loads them from records of formats 1 and 2, if there are any
 * (old_records.c); frees all. core_open() and core_close() call them.
 */
void owners__open(struct core *core);
int owners__load_old(struct core *core) TL_MUST_USE;
void owners__close(struct core *core);
/*
 * Removes the records that owners__load_old() found, in the open unit; those of open transactions
 * become outcomes, since nothing else of these transactions is stored.
 * Returns: 0; fatal codes.
 */
int owners__convert(struct core *core) TL_MUST_USE;
/*
 * Writes the state of all owners, or reads it into a core without owners. If that fails, call
 * owners__discard_loaded().
 */
void owners__codec(struct core *core, struct sections *sections);
/* As core_save_ahead() and the first part of core_save_rest() (save.h). */
int owners__save_ahead(struct core *core, uint64_t bytes_max, bool *ret_more) TL_MUST_USE;
int owners__save_rest(struct core *core) TL_MUST_USE;
/* Discards partly read owners, so that they can be closed. */
void owners__discard_loaded(struct core *core);
/*
 * Returns: whether a command group with this host, life and number counts (README.md, "Hosts", 1).
 *   If so, records it as the host's newest.
 */
bool owners__accept_group(struct core *core, uint16_t host, uint64_t life, uint64_t number);
/*
 * Begins a step: sets how much cleanup of ended sessions it may do before a command of this type.
 */
void owners__begin_step(struct core *core, enum command_type type);
/* Begins a unit: locks granted in it are granted at its timestamp. */
void owners__begin(struct core *core);
/*
 * Returns: the newest timestamp used by the open unit: its own, or the last fencing token issued in
 *   it.
 */
tl_ts owners__last_ts(const struct core *core);
/*
 * Processes wakeups of the lock table before the unit is committed: ends deadlock victims,
 * completes granted LOCK commands, and queues other granted commands for owners__resume().
 * Returns: 0; fatal codes.
 */
int owners__before_commit(struct core *core) TL_MUST_USE;
/* Completes every waiting command with PROBLEM_STOPPING. */
void owners__stop(struct core *core);
/*
 * Does the work that is due before the command of a step, with no unit open. Continues the cleanup
 * of ended sessions. For a TICK (NULL: other command), expires waits with a deadline up to
 * core->clock, and leases and idle transactions with one up to the tick's barrier_clock, in order
 * of their deadlines. Each is a unit; the first one has the timestamp `at`.
 * Returns: 0; fatal codes.
 */
int owners__run_due(struct core *core, tl_ts at, const struct tick_command *tick) TL_MUST_USE;
/*
 * Runs granted waiting commands, oldest grant first, each in its own unit, up to the limit of one
 * step. Called with no unit open. Returns: 0; fatal codes.
 */
int owners__resume(struct core *core) TL_MUST_USE;
/*
 * Returns: the work of the lock table since core_open(), in locks, requests and resources visited.
 */
uint64_t owners__lock_work(const struct core *core);
/*
 * Reports the memory of locks, waits and deferred actions to the budget if it has changed much; at
 * the end of a step.
 */
void owners__update_budget(struct core *core);
/*
 * Returns: whether any lock is held or requested. If not, writes acquire none (README.md,
 *   "Autocommit writes").
 */
bool owners__any_locks(const struct core *core);
/* Returns: whether no lock held or requested can conflict with a write to the index. */
bool owners__index_is_unlocked(const struct core *core, struct slice index);
/*
 * Runs a write that has an owner or may conflict with a lock: checks session, transaction and
 * fencing token, and acquires or awaits its locks. Its results are allocated and zeroed.
 * Returns: as a handler.
 */
int owners__write(struct core *core, struct command *command) TL_MUST_USE;
/* Runs the handler of a DDL command once no other owner's lock conflicts. Returns: as a handler. */
int owners__run_ddl(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Checks that a session may own a new ephemeral document. Returns: 0; 1: *ret_problem has the
 * reason.
 */
int owners__check_ephemeral(struct core *core, struct slice session, struct arena *arena,
                            struct problem *ret_problem) TL_MUST_USE;
/*
 * Checks that a session may own `more` further ephemeral documents. Returns: 0; 1: *ret_problem has
 * the reason.
 */
int owners__check_ephemeral_count(struct core *core, struct slice session, size_t more, struct arena *arena,
                                  struct problem *ret_problem) TL_MUST_USE;
/*
 * Adds `change` (1 or -1) to the count of a session's ephemeral documents, for the document with
 * this key. core__rollback() reverts it.
 */
void owners__count_ephemeral(struct core *core, struct slice session, struct slice key, int change);
/*
 * Returns: whether a session is terminating, so that the store may still have its ephemeral
 *   documents.
 */
bool owners__any_terminating(const struct core *core);
/* Reverts the changes of ephemeral counts made in the open unit. */
void owners__rollback_ephemeral_counts(struct core *core);
/*
 * Subtracts the ephemeral documents of an index that the open unit deletes. Their ephemeral keys no
 * longer mean anything; owners__purge_ephemeral_keys() removes them.
 */
void owners__drop_index(struct core *core, uint32_t index);
/*
 * Removes ephemeral keys of deleted indices in the open unit. Returns: 0 and the number removed, at
 * most `max`; fatal codes.
 */
int owners__purge_ephemeral_keys(struct core *core, size_t max, size_t *ret_removed) TL_MUST_USE;
bool owners__transaction_is_open(const struct core *core, struct slice id);
/* Returns: the timestamp at which the oldest open update transaction began; TL_TS_MAX: none. */
tl_ts owners__oldest_update(const struct core *core);
/*
 * Purges outcomes of transactions that are due, in the open unit. Returns: 0 and the number of
 * keys; fatal codes.
 */
int owners__purge_outcomes(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;
/*
 * Checks the sums of the lock table and of the owners, and the order of overlays, and aborts if one
 * is violated. Called at the end of each step in builds of developers. It takes time linear in
 * their sizes, so it does nothing until steps have paid for that.
 */
void owners__check(struct core *core);
#ifdef TIDELOCK_CHECK_COSTLY /* builds of developers, in which the tests run */
enum { STEP_CHECKS_OWNERS = 1 };
#else
enum { STEP_CHECKS_OWNERS = 0 };
#endif
/* Adds the state of sessions and locks to a digest. Returns: 0; fatal codes. */
int owners__digest(struct core *core, uint64_t *digest) TL_MUST_USE;

#endif
