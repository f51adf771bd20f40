/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: the one place where a command passes from waiting to executing, or to its end.
 *
 * The lock table decides which requests are granted and which are deadlock victims, and remembers
 * both. This takes them from there:
 *
 *     parked ─┬─ granted ─▶ on_grant() ─▶ ready ─▶ resume() ─▶ done, or parked again
 *             ├─ victim ──▶ on_deadlock()
 *             ├─ timeout ─▶ on_timeout()
 *             └─ cancelled, in batches ─▶ ended ─▶ answer()
 *
 * README-locks.md, "Waiting", has the states.
 *
 * 1. At the end of each unit no grant and no victim is left in the lock table (grants__settle()).
 * 2. A command is resumed in a unit of its own, in the order of owners->ready.
 * 3. A cancelled wait is never resumed: if its locks are granted, they are released in that unit.
 */
#ifndef TL_CORE_GRANTS_H
#define TL_CORE_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/wait/wait.h"

struct core;

/*
 * Processes wakeups of the lock table before the unit is committed: ends deadlock victims,
 * completes granted LOCK commands, and queues other granted commands for grants__resume().
 * Requires: a unit is open.
 * Returns: 0; fatal codes.
 */
int grants__settle(struct core *core) TL_MUST_USE;
/*
 * Runs granted waiting commands, oldest grant first, each in its own unit, up to the limit of one
 * step. Requires: no unit is open. Returns: 0; fatal codes.
 */
int grants__resume(struct core *core) TL_MUST_USE;
/* Times out a wait, in the open unit; charges the cost to *left. Returns: 0; fatal codes. */
int grants__time_out(struct core *core, struct wait *wait, size_t *left) TL_MUST_USE;
/*
 * Ends a cancelled wait, as wait__end(), or keeps its place. `granted`: the unit grants its locks, which are released,
 * or kept with it. Returns: 0; fatal codes.
 */
int grants__end_cancelled(struct core *core, struct wait *wait, bool granted) TL_MUST_USE;
/*
 * Cancels all waits of a host that ends, also kept ones, and ends the first batch of them; with `single_step`, all.
 * A host of today keeps places: grants__cancel_restarted_host().
 * Returns: 0; fatal codes.
 */
int grants__cancel_stopping_host(struct core *core, uint64_t host, bool single_step) TL_MUST_USE;
/*
 * Cancels all waits of a host that has left its cluster, and ends the first batch of them; with `single_step`, all.
 * LOCKs of sessions and named writes are kept, as in grants__cancel_restarted_host(); in commands before version 19
 * they end, and before version 21 the writes do.
 * Returns: 0; fatal codes.
 */
int grants__cancel_gone_host(struct core *core, uint64_t host, bool single_step) TL_MUST_USE;
/*
 * Cancels all waits of a host that ends or has started again, and ends the first batch of them. LOCKs of sessions
 * that wait for their locks, and named writes that have run nothing, are kept instead, for KEPT_PLACE_US, each in its
 * turn (in commands before version 17 at once). A write of whose ID there is an outcome is not.
 * Returns: 0; fatal codes.
 */
int grants__cancel_restarted_host(struct core *core, uint64_t host) TL_MUST_USE;
/* Cancels the wait of one request of a host that ends, or keeps its place, at once. Returns: 0; fatal codes. */
int grants__cancel_at_end(struct core *core, struct wait *wait) TL_MUST_USE;
/*
 * Returns: whether a step leaves a command that has its locks to a later one: it may take a whole step, and others
 * have spent more than a part of this one.
 */
bool grants__is_left(const struct core *core, const struct wait *wait);
/*
 * Returns: whether a TICK resumes the first ready command before anything else: one that is not divided and may take a
 * whole step, as an atomic write in a client's transaction and a LOCK of many names. If the TICK has `others` to do,
 * they take turns by the clock; in the turn of the others it resumes after them, and only if they have taken little.
 * If it has none, the command resumes after the TICK, as others do (in commands before version 26 before it).
 * Requires: no unit is open.
 */
bool grants__has_turn(const struct core *core, bool others);
/* Charges the end of a wait, which releases its locks, to the step's account of work; before it ends. */
void grants__charge_end(struct core *core, const struct wait *wait);
/*
 * Ends one batch of cancelled waits, oldest first, in the open unit, as far as *left goes, and a few
 * in any case; charges the cost to *left. Returns: 0; fatal codes.
 */
int grants__end_some_cancelled(struct core *core, size_t *left) TL_MUST_USE;
/*
 * The callback on_deadlock that most commands share: fails the command, rolls its transaction back.
 * Requires: `wait->cause` says why.
 */
void grants__on_deadlock(struct core *core, struct wait *wait);

#endif
