/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of writes, DDL, cleanup actions of ended sessions, and those that were deferred.
 *
 * 1. A command runs only with all the locks that its names mean in the unit in which it runs: names
 *    are resolved again whenever it is resumed.
 * 2. An autocommit write or DDL command holds no lock after the unit in which it is complete. The
 *    locks of a transaction stay with it, also if the command fails.
 * 3. A command that fails before it runs changes nothing but its own wait.
 *
 * ask.h requests the locks; grants.h resumes the command.
 */
#ifndef TL_CORE_ACQUIRE_H
#define TL_CORE_ACQUIRE_H

#include "core/command/command.h"

struct core;
struct resource_name;
struct session;
struct wait;
struct wait_ops;

/*
 * Runs a write that has an owner or may conflict with a lock: checks session, transaction and
 * fencing token, and acquires or awaits its locks. Its results are allocated and zeroed.
 * Returns: as a handler.
 */
int acquire__write(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Refuses an atomic write in a client's transaction, since it takes more than one step may; as any write, if it has no
 * such transaction. Returns: as a handler.
 */
int acquire__refuse_above_step(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Carries out an atomic write outside of a transaction in pieces, since it takes more than one step
 * may. Nothing of it is in the open unit. Returns: as a handler.
 */
int acquire__write_in_pieces(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Continues the place that the same request, by its ID, has kept over a restart (README-locks.md, "Kept places").
 * Requires: no outcome of it was found. Returns: whether it did, or refused the command; then *ret is as of a handler.
 */
bool acquire__take_over(struct core *core, struct command *command, int *ret) TL_MUST_USE;
/*
 * Ends the place that is kept by the ID and the part of a write that has run, if that left an outcome, which any
 * repetition finds. The write is of another session: one of the same session would have taken the place over.
 */
void acquire__end_place(struct core *core, const struct command *command);
/*
 * Runs the only item of `command`, a cleanup action of an ending session, in the open unit. Waiting
 * requests do not block it.
 * Requires: the command lives as long as the unit, which reads the documents it wrote in its
 *          memory.
 * Returns: 0, with the item's result; 1, another owner holds a conflicting lock: nothing was run,
 *          and an alias in the item is replaced by its current index; fatal codes.
 */
int acquire__run_cleanup(struct core *core, struct session *session, struct command *command) TL_MUST_USE;
/*
 * Returns: whether another owner holds a lock that conflicts with the removal of an ephemeral
 * document of the session. Waiting requests do not count.
 * Requires: an open unit; the item deletes.
 */
bool acquire__removal_is_blocked(struct core *core, struct session *session, const struct write_item *removal);
/*
 * Requires: an open unit; the document has an id.
 * Returns: the same for a change of a document that has a resource in the lock table.
 */
bool acquire__document_is_blocked(struct core *core, struct session *session, const struct resource_name *document);
/* Requests the locks of a deferred action. Returns: 0, granted; CORE_WAITS, parked; fatal codes. */
int acquire__request_deferred(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;
/*
 * Runs a deferred action whose locks were granted, after resolving its locks again.
 * Returns: 0, with its result; CORE_WAITS, it needs other locks now: those it had are released, and
 *          it is parked; fatal codes.
 */
int acquire__resume_deferred(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;
/* Runs the handler of a DDL command once no other owner's lock conflicts. Returns: as a handler. */
int acquire__ddl(struct core *core, struct command *command) TL_MUST_USE;

/*
 * Finds another write that waits for its own client and repeats that of `wait`, by its ID: the newest one, of so many
 * that many calls are bounded. Returns: NULL: none; *ret_later: whether it came later than `wait`; adds to *looks how
 * many requests it looked at.
 */
struct wait *acquire__find_repeated(struct core *core, const struct wait *wait, size_t *looks, bool *ret_later);
/*
 * Finds among the later requests of its session one that waits and repeats the LOCK of `wait`, the newest one. It looks
 * at so many that many calls are bounded. Returns: NULL: none; adds to *looks how many requests and locks it looked at.
 */
struct wait *lock__find_repeated(struct core *core, const struct wait *wait, size_t *looks);

/* Returns: the callbacks of the row of a command; NULL: it never waits. */
const struct wait_ops *acquire__wait_ops(enum command_type type);
/* These callbacks. */
extern const struct wait_ops write__wait_ops;    /* acquire.c */
extern const struct wait_ops change__wait_ops;   /* acquire_ddl.c */
extern const struct wait_ops lock__wait_ops;     /* do_lock.c */
extern const struct wait_ops txn_lock__wait_ops; /* do_lock.c */
extern const struct wait_ops rename__wait_ops;   /* do_rename.c */

#endif
