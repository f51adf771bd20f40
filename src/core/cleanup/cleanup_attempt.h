/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts for each cleanup action how often the process ended while it ran.
 * README-locks.md, "Actions that crash the process".
 */
#ifndef TL_CORE_CLEANUP_ATTEMPT_H
#define TL_CORE_CLEANUP_ATTEMPT_H

#include "base/error.h"
#include "base/slice.h"

struct codec;
struct core;

/* An action that has ended the process so often is set aside. */
enum { CLEANUP_ATTEMPTS_MAX = 2 };

/*
 * Report to the core_watch, if any, that an action begins, or has ended. `deferred` and `action` as
 * in cleanup_attempt__count().
 */
void cleanup_attempt__begin(const struct core *core, struct slice session, uint64_t deferred, uint64_t action);
void cleanup_attempt__end(const struct core *core);

/*
 * Returns: how often the process ended in this action.
 * Requires: either `deferred` is the number of a deferred cleanup and `action` is 0, or `deferred` is 0 and
 *   `action` is an index into the session's on_expire.
 */
unsigned cleanup_attempt__count(const struct core *core, struct slice session, uint64_t deferred, uint64_t action);

/*
 * Counts one more attempt of an action that is still to be run, in the open unit.
 * Returns: how many there are now; at most CLEANUP_ATTEMPTS_MAX.
 */
unsigned cleanup_attempt__add(struct core *core, struct slice session, uint64_t deferred, uint64_t action);
/*
 * Drop the counts of a session's actions, or of a deferred cleanup, in the open unit: they are
 * not needed any more.
 * Requires: an open unit; the session has an id; `deferred` is not 0, with which the counts of all sessions would go.
 */
void cleanup_attempt__forget_session(struct core *core, struct slice session);
void cleanup_attempt__forget_deferred(struct core *core, uint64_t deferred);

/* Adds a count that was read from a store of an older format (old_records.c). */
void cleanup_attempt__restore(struct core *core, struct slice session, uint64_t deferred, uint64_t action,
                              uint64_t count);
void cleanup_attempt__free_all(struct core *core);
/* Returns: a sum of hashes, which does not depend on the order of loading. */
uint64_t cleanup_attempt__digest(const struct core *core);
/*
 * Writes all counts to a checkpoint, or reads them. Errors are in `codec`.
 * Requires: when reading, there are no counts yet.
 */
void cleanup_attempt__codec(struct codec *codec, struct core *core);

#endif
