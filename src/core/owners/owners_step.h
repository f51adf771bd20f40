/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sessions, locks and transactions do in a step: functions for the modules above core/owners.
 */
#ifndef TL_CORE_OWNERS_STEP_H
#define TL_CORE_OWNERS_STEP_H

#include "base/arena.h"
#include "base/error.h"
#include "core/command/command.h"

struct core;
struct sections;
struct wait_ops;

/* The part in units, and the functions for writes of documents; core_open() registers them. */
struct unit_part;
struct document_owners;
extern const struct unit_part owners__part;
extern const struct document_owners owners__of_documents;

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
/* Discards partly read owners, so that they can be closed. */
void owners__discard_loaded(struct core *core);
/*
 * Returns: whether a command group with this host, life and number counts (README.md, "Hosts", 1).
 *   If so, records it as the host's newest.
 * Requires: no unit is open.
 */
bool owners__accept_group(struct core *core, uint16_t host, uint64_t life, uint64_t number);
/* Returns: the callbacks of a command, NULL if it never waits; of a deferred action for NULL. */
const struct wait_ops *owners__wait_ops(const struct command *command);
/*
 * Begins a step: sets how much cleanup of ended sessions it may do before a command of this type.
 */
void owners__begin_step(struct core *core, enum command_type type);
/* Completes every waiting command with PROBLEM_STOPPING. Requires: no unit is open. */
void owners__stop(struct core *core);
/*
 * Does the work that is due before the command of a step, with no unit open. For a TICK, continues
 * the cleanup of ended sessions, then expires waits with a deadline up to core->clock, and leases and
 * idle transactions with one up to the tick's barrier_clock, in order of their deadlines. For other
 * commands (NULL), nothing; before version 9, continues the cleanup. Each is a unit; the first one
 * has the timestamp `at`.
 * Returns: 0; fatal codes.
 */
int owners__run_due(struct core *core, tl_ts at, const struct tick_command *tick) TL_MUST_USE;
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
