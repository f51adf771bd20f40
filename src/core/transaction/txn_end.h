/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How transactions end. README-locks.md, "Transactions".
 *
 * 1. A commit is one unit: all writes of the overlay, the outcome, and the release of the locks.
 * 2. A rollback first ends the command of the transaction that waits, if any, then writes the
 *    outcome and releases the locks.
 * 3. An *abandoned* transaction is rolled back by a later step. Until then it keeps its locks, but
 *    no command finds it and its fencing tokens are invalid.
 */
#ifndef TL_CORE_TXN_END_H
#define TL_CORE_TXN_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

struct core;
struct command;
struct txn;

/* Ends the waiting command, if any, of a transaction that is or will be rolled back. */
void txn__end_waiting(struct core *core, struct txn *txn, struct slice cause);
/*
 * Rolls back and frees the transaction in the open unit. Its outcome has the cause; a waiting
 * command ends.
 */
void txn__abort(struct core *core, struct txn *txn, const char *format, ...) TL_PRINTF(3, 4);
/*
 * Rolls back the transaction of a deadlock's victim, which has no waiting command, in the open unit, or abandons it if
 * the step's account has less work than that takes (session/cost.h): one request may close many cycles.
 */
void txn__end_victim(struct core *core, struct txn *txn, struct slice cause);
/*
 * Commits the transaction of an atomic write in pieces in the open unit, and frees it, without an outcome.
 * Returns: 0; 1, refused with the problem in the command, and still open; fatal codes.
 */
int txn__commit_write(struct core *core, struct txn *txn, struct command *command) TL_MUST_USE;
/* Abandons the transactions that a host began for requests, in the open unit. */
void txn__abandon_host(struct core *core, uint64_t host);
/* Abandons all update transactions, in the open unit; with `whole` rolls them back at once. */
void txn__abandon_updates(struct core *core, bool whole);
/*
 * Rolls back the transaction if nothing was done with it for too long, in the open unit, or abandons it if the step's
 * account has too little for that (cost_fits()). Charges the cost to *left, and to the account.
 */
void txn__end_idle(struct core *core, struct txn *txn, size_t *left);
/*
 * Rolls back abandoned transactions, oldest first, in the open unit, while *left > 0 and the step's account has enough
 * (cost_fits()); charges their cost to *left. The caller charges the account with it, as with all before.
 */
void txn__end_abandoned(struct core *core, size_t *left);
/* Returns: the cost of rolling back the first abandoned transaction, or 0 without one. Takes linear time. */
uint64_t txn__next_end_cost(struct core *core);

#endif
